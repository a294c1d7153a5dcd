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

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(held_messages_of_the_same_corrid_cost_nothing),
		UNIT(delayed_messages_of_the_same_corrid_cost_nothing),
		UNIT(many_corrids_with_many_held_stay_in_order),
		UNIT(expired_messages_of_the_same_corrid_go_as_they_are_met),
	};
	(void)look, (void)any, (void)by_msgid;
	return unit_run("qspace select", tests, UNIT_COUNT(tests));
}
