/*
 * Selection: by message identifier, by correlation identifier, by both; all 32 bytes; only what is eligible; and what is in
 * the way costs nothing.  TPQPEEK with each of them.
 */
#include "given_space.h"
#include "qspace_impl.h"

#define SECOND INT64_C(1000000)

static struct qselect
by_corrid(const uint8_t corrid[TMCORRIDLEN])
{
	struct qselect sel = { .flags = TPQGETBYCORRID };

	memcpy(sel.corrid, corrid, TMCORRIDLEN);
	return sel;
}

static struct qselect
by_msgid(const uint8_t msgid[TMMSGIDLEN])
{
	struct qselect sel = { .flags = TPQGETBYMSGID };

	memcpy(sel.msgid, msgid, TMMSGIDLEN);
	return sel;
}

static struct qmsg_in
with_corrid(const char *body, const uint8_t corrid[TMCORRIDLEN])
{
	struct qmsg_in in = text(body);

	in.flags = TPQCORRID;
	memcpy(in.corrid, corrid, TMCORRIDLEN);
	return in;
}

static const char *	/* body; "" none, "!" refused, valid until the next call */
get(struct given_space *g, struct branch *b, const char *queue, struct qselect sel)
{
	static char body[64];
	struct qmsg *m;
	int rc = take(g, b, queue, &sel, &m);

	if (rc != 0)
		return rc == QMENOMSG ? "" : "!";
	snprintf(body, sizeof body, "%.*s", (int)m->body_len, (const char *)m->body);
	qmsg_free(m);
	return body;
}

static const char *
look(struct given_space *g, const char *queue, struct qselect sel)
{
	sel.flags |= TPQPEEK;
	return get(g, NULL, queue, sel);
}

static struct qselect
any(void)
{
	return (struct qselect){ 0 };
}

static uint64_t	/* entries that one dequeue by this correlation id looks at; in a batch that is open */
steps(struct given_space *g, struct branch *b, const char *queue, const uint8_t *corrid, const char *want)
{
	struct qspace_counts before, after;
	struct qselect sel = by_corrid(corrid);
	struct qmsg *m;

	qspace_counts(g->qs, &before);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, queue, &sel, &m), 0);
	qspace_counts(g->qs, &after);
	if (want != NULL)
		CU_ASSERT_STRING_EQUAL((const char *)m->body, want);
	qmsg_free(m);
	return after.steps - before.steps;
}

enum { MANY = 5000 };

static void
put_many(struct given_space *g, const char *queue, struct qmsg_in in, int n)
{
	uint8_t id[TMMSGIDLEN];

	begin(g);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, queue, &in, id), 0);
	commit(g);
}

static void	/* As many as a window reads at once, again and again: what is held is passed over once. */
held_messages_of_the_same_corrid_cost_nothing(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t id[TMCORRIDLEN] = "the same";
	struct branch *a = tx(g, "holder"), *b;
	uint64_t sum = 0, most = 0, n;

	create_fifo(g, "q", 999, 0);
	put_many(g, "q", with_corrid("many", id), 2 * MANY);
	begin(g);
	for (int i = 0; i < MANY; i++) {
		n = steps(g, a, "q", id, "many");
		sum += n;
		most = n > most ? n : most;
	}
	commit(g);
	CU_ASSERT_TRUE(sum < 4 * MANY);		/* and not MANY * MANY / 2 */
	CU_ASSERT_TRUE(most < 400);
	/* The first one comes back and is taken again, and that costs nothing either. */
	for (int i = 0; i < 100; i++) {
		b = tx(g, "b");
		begin(g);
		CU_ASSERT_TRUE(steps(g, b, "q", id, "many") < 400);
		CU_ASSERT_EQUAL(qspace_branch_rollback(g->qs, b), 0);
		commit(g);
	}
	CU_ASSERT_EQUAL(tx_roll_back(g, a), 0);
	begin(g);
	for (int i = 0; i < 2 * MANY; i++)
		steps(g, NULL, "q", id, "many");
	commit(g);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "");
	given_done(g);
}

static void
delayed_messages_of_the_same_corrid_cost_nothing(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t id[TMCORRIDLEN] = "the same";
	struct qmsg_in in = with_corrid("later", id);

	create_fifo(g, "q", 9, 100);
	in.flags |= TPQTIME_REL;
	in.deq_time = 1000;
	put_many(g, "q", in, MANY);
	put_in(g, NULL, "q", with_corrid("now", id), NULL);
	begin(g);
	CU_ASSERT_TRUE(steps(g, NULL, "q", id, "now") < 10);
	commit(g);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "");
	/* Rolled back with a delay: out of the way, and there again when it is over. */
	put_in(g, NULL, "q", with_corrid("again", id), NULL);
	struct branch *a = tx(g, "a");
	CU_ASSERT_STRING_EQUAL(get(g, a, "q", by_corrid(id)), "again");
	CU_ASSERT_EQUAL(tx_roll_back(g, a), 0);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "");
	clock_shift_us(101 * SECOND);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "again");
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "");
	clock_shift_us(1000 * SECOND);
	begin(g);
	for (int i = 0; i < MANY; i++)
		steps(g, NULL, "q", id, "later");
	commit(g);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "");
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	clock_shift_us(-1101 * SECOND);
	given_done(g);
}

static void	/* Most wins: a window per correlation id, forgotten when there are too many of them, is never wrong. */
many_corrids_with_many_held_stay_in_order(void)
{
	struct qspace_params params = given_params("QS");
	params.nonpersistent_bytes = 8 << 20;
	struct given_space *g = given_space(&params);
	struct branch *a = tx(g, "holder");
	uint8_t id[TMCORRIDLEN] = { 0 };
	char body[16];

	enum { IDS = 300, EACH = 60, HELD = 40 };

	create_fifo(g, "q", 99, 0);
	for (int k = 0; k < EACH; k++) {
		begin(g);
		for (int i = 0; i < IDS; i++) {
			uint8_t msgid[TMMSGIDLEN];
			be32(id, (uint32_t)i);
			snprintf(body, sizeof body, "%d", k);
			struct qmsg_in in = with_corrid(body, id);
			if (k % 2) {
				in.flags |= TPQDELIVERYQOS;
				in.delivery_qos = TPQQOSNONPERSISTENT;
			}
			CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "q", &in, msgid), 0);
		}
		commit(g);
	}
	begin(g);
	for (int k = 0; k < HELD; k++)
		for (int i = 0; i < IDS; i++) {
			be32(id, (uint32_t)i);
			snprintf(body, sizeof body, "%d", k);
			steps(g, a, "q", id, body);
		}
	for (int i = 0; i < IDS; i++) {
		be32(id, (uint32_t)i);
		steps(g, NULL, "q", id, "40");
	}
	commit(g);
	CU_ASSERT_EQUAL(tx_roll_back(g, a), 0);
	begin(g);
	for (int k = 0; k < EACH; k++)
		for (int i = 0; k != HELD && i < IDS; i++) {
			be32(id, (uint32_t)i);
			snprintf(body, sizeof body, "%d", k);
			steps(g, NULL, "q", id, body);
		}
	commit(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages + stat_of(g, "q").np_messages, 0);
	given_done(g);
}

static void
expired_messages_of_the_same_corrid_go_as_they_are_met(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t id[TMCORRIDLEN] = "the same";
	struct qmsg_in in = with_corrid("short", id);

	create_fifo(g, "q", 0, 0);
	in.flags |= TPQEXPTIME_REL;
	in.exp_time = 10;
	put_many(g, "q", in, 500);
	put_in(g, NULL, "q", with_corrid("long", id), NULL);
	put_in(g, NULL, "q", with_corrid("longer", id), NULL);
	clock_shift_us(11 * SECOND);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id)), "long");
	begin(g);
	CU_ASSERT_TRUE(steps(g, NULL, "q", id, "longer") < 10);
	commit(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	clock_shift_us(-11 * SECOND);
	given_done(g);
}

static int
code(struct given_space *g, const char *queue, struct qselect sel)
{
	struct qmsg *m;
	int rc = take(g, NULL, queue, &sel, &m);

	if (rc == 0)
		qmsg_free(m);
	return rc;
}

static void	/* They differ in the last byte, in the first, and by zeroes in the middle. */
all_32_bytes_of_a_corrid_count(void)
{
	struct given_space *g = given_space(NULL);
	uint8_t id[4][TMCORRIDLEN], other[TMCORRIDLEN];
	static const char *const body[] = { "a", "b", "c", "d" };

	create_fifo(g, "q", 0, 0);
	memset(id, 'x', sizeof id);
	id[1][31] = 'y';
	id[2][0] = 0;
	id[3][15] = 0;
	for (int i = 0; i < 4; i++)
		put_in(g, NULL, "q", with_corrid(body[i], id[i]), NULL);
	put(g, "q", "without");		/* which is not the same as 32 zero bytes */
	memset(other, 0, sizeof other);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(other)), "");
	memset(other, 'x', sizeof other);
	other[30] = 'y';
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(other)), "");
	for (int i = 3; i >= 0; i--) {
		CU_ASSERT_STRING_EQUAL(look(g, "q", by_corrid(id[i])), body[i]);
		CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id[i])), body[i]);
		CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(id[i])), "");
	}
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "without");
	memset(other, 0, sizeof other);		/* given, it is an identifier like any other */
	put_in(g, NULL, "q", with_corrid("zeroes", other), NULL);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(other)), "zeroes");
	given_done(g);
}

static void
the_old_bits_select_like_the_new_ones(void)
{
	struct given_space *g = given_space(NULL);
	static const uint32_t bits[] = { TPQGETBYMSGID, TPQGETBYMSGIDOLD, TPQGETBYMSGID & ~TPQGETBYMSGIDOLD, TPQGETBYCORRID,
		TPQGETBYCORRIDOLD, TPQGETBYCORRID & ~TPQGETBYCORRIDOLD };
	const uint8_t corrid[TMCORRIDLEN] = "c";
	struct qselect sel;
	uint8_t id[TMMSGIDLEN];

	create_fifo(g, "q", 0, 0);
	for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
		put(g, "q", "first");
		put_in(g, NULL, "q", with_corrid("meant", corrid), id);
		sel = by_msgid(id);
		memcpy(sel.corrid, corrid, sizeof corrid);
		sel.flags = bits[i];
		CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", sel), "meant");
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "first");
	}
	given_done(g);
}

static void
both_must_match(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t c[TMCORRIDLEN] = "c", d[TMCORRIDLEN] = "d";
	struct qselect sel;
	uint8_t id[TMMSGIDLEN], id2[TMMSGIDLEN];

	create_fifo(g, "q", 0, 0);
	put_in(g, NULL, "q", with_corrid("one", c), id);
	put_in(g, NULL, "q", with_corrid("two", c), id2);
	sel = by_msgid(id2);
	sel.flags |= TPQGETBYCORRID;
	memcpy(sel.corrid, d, sizeof d);
	CU_ASSERT_EQUAL(code(g, "q", sel), QMENOMSG);
	memcpy(sel.corrid, c, sizeof c);
	CU_ASSERT_STRING_EQUAL(look(g, "q", sel), "two");
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", sel), "two");
	CU_ASSERT_EQUAL(code(g, "q", sel), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "one");
	given_done(g);
}

static void	/* A well-formed identifier that leads nowhere is no error; what cannot be one is. */
identifiers_from_elsewhere_find_nothing(void)
{
	struct given_space *g = given_space(NULL), *h = given_space(NULL);
	uint8_t id[TMMSGIDLEN], of_r[TMMSGIDLEN], of_h[TMMSGIDLEN], random[TMMSGIDLEN];
	unsigned seed = 5;
	int none = 0, bad = 0, rc;

	create_fifo(g, "q", 0, 0);
	create_fifo(g, "r", 0, 0);
	create_fifo(h, "q", 0, 0);
	put_in(g, NULL, "q", text("here"), id);
	put_in(g, NULL, "r", text("other queue"), of_r);
	put_in(h, NULL, "q", text("other space"), of_h);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(of_r)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(of_h)), QMENOMSG);
	for (int i = 0; i < TMMSGIDLEN; i++) {	/* each byte counts */
		memcpy(random, id, sizeof id);
		random[i] ^= 1;
		rc = code(g, "q", by_msgid(random));
		CU_ASSERT(rc == QMENOMSG || rc == QMEBADMSGID);
	}
	for (int i = 0; i < 2000; i++) {
		for (int k = 0; k < TMMSGIDLEN; k++)
			random[k] = (uint8_t)rand_r(&seed);
		if (i % 2)		/* half of them look right at the beginning */
			memcpy(random, id, 1 + (size_t)i % 20);
		rc = code(g, "q", by_msgid(random));
		none += rc == QMENOMSG;
		bad += rc == QMEBADMSGID;
	}
	CU_ASSERT_EQUAL(none + bad, 2000);
	CU_ASSERT_TRUE(none > 0 && bad > 0);
	memset(random, 0, sizeof random);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(random)), QMEBADMSGID);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_msgid(id)), "here");
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);	/* deleted */
	CU_ASSERT_EQUAL(stat_of(g, "r").messages, 1);
	given_done(g);
	given_done(h);
}

static void	/* It is another message there; the correlation id stays. */
a_moved_message_has_a_new_identifier(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t c[TMCORRIDLEN] = "follow me";
	struct qselect sel = by_corrid(c);
	uint8_t id[TMMSGIDLEN];
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "q", 0, 0);
	create_fifo(g, "ERRQ", 0, 0);
	put_in(g, NULL, "q", with_corrid("poison", c), id);
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(get(g, b, "q", by_msgid(id)), "poison");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "ERRQ", by_msgid(id)), QMENOMSG);
	sel.flags |= TPQPEEK;
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "ERRQ", &sel, &m), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(m->msgid, id, sizeof id), 0);
	memcpy(id, m->msgid, sizeof id);
	qmsg_free(m);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "ERRQ", by_msgid(id)), "poison");
	given_done(g);
}

/* Our rule is Oracle's as we read it (api 2.5): identifiers choose among those that are available, and override nothing. */
static void
r13_an_identifier_does_not_override_the_time(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t c[TMCORRIDLEN] = "c";
	struct qmsg_in in = with_corrid("tomorrow", c);
	uint8_t id[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "q", 3, 60);
	in.flags |= TPQTIME_REL;
	in.deq_time = 100;
	put_in(g, NULL, "q", in, id);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_corrid(c)), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_msgid(id)), "");
	clock_shift_us(101 * SECOND);
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_msgid(id)), "tomorrow");
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_corrid(c)), "tomorrow");
	/* Held by another; waiting for its retry; expired: likewise. */
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(get(g, b, "q", by_msgid(id)), "tomorrow");
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_corrid(c)), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_msgid(id)), "");
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_corrid(c)), "");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_corrid(c)), QMENOMSG);
	clock_shift_us(61 * SECOND);
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_msgid(id)), "tomorrow");
	in.flags = TPQCORRID | TPQEXPTIME_REL;
	in.exp_time = 5;
	put_in(g, NULL, "q", in, id);
	clock_shift_us(6 * SECOND);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_corrid(c)), QMENOMSG);
	clock_shift_us(-168 * SECOND);
	given_done(g);
}

static void
identifiers_find_uncommitted_messages_when_they_commit(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t c[TMCORRIDLEN] = "c";
	struct branch *b;
	uint8_t id[TMMSGIDLEN];

	create_fifo(g, "q", 0, 0);
	b = tx(g, "b");
	put_in(g, b, "q", with_corrid("mine", c), id);
	CU_ASSERT_EQUAL(code(g, "q", by_msgid(id)), QMENOMSG);
	CU_ASSERT_EQUAL(code(g, "q", by_corrid(c)), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(get(g, b, "q", by_msgid(id)), "");	/* in the same transaction neither */
	CU_ASSERT_STRING_EQUAL(look(g, "q", any()), "");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	reopen(g);
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_msgid(id)), "mine");
	CU_ASSERT_STRING_EQUAL(get(g, NULL, "q", by_corrid(c)), "mine");
	given_done(g);
}

/* --- TPQPEEK --- */

static void
a_peek_takes_nothing_holds_nothing_and_is_in_no_transaction(void)
{
	struct given_space *g = given_space(NULL);
	const uint8_t c[TMCORRIDLEN] = "c";
	struct qselect peek = { .flags = TPQPEEK };
	struct branch *b, *other;
	struct branch_info *info;
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m[3];
	size_t n;

	create_fifo(g, "q", 0, 0);
	put_in(g, NULL, "q", with_corrid("one", c), id);
	put(g, "q", "two");
	b = tx(g, "b");
	begin(g);	/* many at once, in a transaction and outside, and a dequeue between them */
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "q", &peek, &m[0]), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "q", &peek, &m[1]), 0);
	CU_ASSERT_EQUAL(stat_of(g, "q").held, 0);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "q", NULL, &m[2]), 0);
	commit(g);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_STRING_EQUAL((const char *)m[i]->body, "one");
		qmsg_free(m[i]);
	}
	CU_ASSERT_EQUAL(qspace_branch_list(g->qs, &info, &n), 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_EQUAL(info[0].dequeues, 0);
	free(info);
	qspace_branch_doom(b);		/* a peek does not mind */
	CU_ASSERT_STRING_EQUAL(get(g, b, "q", peek), "two");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_STRING_EQUAL(look(g, "q", any()), "two");
	/* What a transaction has taken or put there is not seen. */
	other = tx(g, "other");
	CU_ASSERT_STRING_EQUAL(get(g, other, "q", any()), "two");
	put_in(g, other, "q", text("three"), NULL);
	CU_ASSERT_STRING_EQUAL(look(g, "q", any()), "");
	CU_ASSERT_STRING_EQUAL(get(g, other, "q", peek), "");
	CU_ASSERT_EQUAL(tx_commit(g, other), 0);
	CU_ASSERT_STRING_EQUAL(look(g, "q", any()), "three");
	CU_ASSERT_STRING_EQUAL(look(g, "q", by_msgid(id)), "");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "three");
	given_done(g);
}

static void
a_peek_counts_no_retry_and_writes_nothing(void)
{
	struct given_space *g = given_space(NULL);
	struct qspace_counts before, after;
	struct qmsg *m;

	create_fifo(g, "q", 0, 0);
	put(g, "q", "one");
	qspace_counts(g->qs, &before);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_STRING_EQUAL(look(g, "q", any()), "one");
	qspace_counts(g->qs, &after);
	CU_ASSERT_EQUAL(after.flushes, before.flushes);
	CU_ASSERT_EQUAL(after.dequeues, before.dequeues);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "q", NULL, &m), 0);
	CU_ASSERT_EQUAL(m->retries, 0);
	qmsg_free(m);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(held_messages_of_the_same_corrid_cost_nothing),
		UNIT(delayed_messages_of_the_same_corrid_cost_nothing),
		UNIT(many_corrids_with_many_held_stay_in_order),
		UNIT(expired_messages_of_the_same_corrid_go_as_they_are_met),
		UNIT(all_32_bytes_of_a_corrid_count),
		UNIT(the_old_bits_select_like_the_new_ones),
		UNIT(both_must_match),
		UNIT(identifiers_from_elsewhere_find_nothing),
		UNIT(a_moved_message_has_a_new_identifier),
		UNIT(r13_an_identifier_does_not_override_the_time),
		UNIT(identifiers_find_uncommitted_messages_when_they_commit),
		UNIT(a_peek_takes_nothing_holds_nothing_and_is_in_no_transaction),
		UNIT(a_peek_counts_no_retry_and_writes_nothing),
	};
	return unit_run("qspace select", tests, UNIT_COUNT(tests));
}
