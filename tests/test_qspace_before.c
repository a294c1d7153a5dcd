/*
 * TPQTOP and TPQBEFOREMSGID: where they put a message, what they may name, and what they answer when they may not.
 */
#include "given_space.h"

#define SECOND INT64_C(1000000)

static struct qmsg_in
with(const char *body, uint32_t flags, const uint8_t *before)
{
	struct qmsg_in in = text(body);

	in.flags = flags;
	if (before != NULL) {
		in.flags |= TPQBEFOREMSGID;
		memcpy(in.msgid, before, TMMSGIDLEN);
	}
	return in;
}

static int
put_before(struct given_space *g, struct branch *b, const char *body, const uint8_t *before, uint8_t *id)
{
	return put_in(g, b, "q", with(body, 0, before), id);
}

static void	/* All messages of the queue, taken, with a blank between two. */
expect(struct given_space *g, const char *want)
{
	char all[512] = "";
	const char *body;

	while (strcmp(body = next(g, "q"), "") != 0 && strlen(all) < 400) {
		strcat(all, all[0] == '\0' ? "" : " ");
		strcat(all, body);
	}
	CU_ASSERT_STRING_EQUAL(all, want);
}

static void
the_queue_must_allow_it(void)
{
	struct given_space *g = given_space(NULL);
	uint8_t id[TMMSGIDLEN];

	for (int top = 0; top < 2; top++)
		for (int msgid = 0; msgid < 2; msgid++) {
			struct queue_params p = queue_of("q", QC_FIFO, 0, 0, 0);
			p.top = top;
			p.msgid = msgid;
			create(g, &p);
			put_before(g, NULL, "a", NULL, id);
			CU_ASSERT_EQUAL(put_in(g, NULL, "q", with("t", TPQTOP, NULL), NULL), top ? 0 : QMEINVAL);
			CU_ASSERT_EQUAL(put_before(g, NULL, "b", id, NULL), msgid ? 0 : QMEINVAL);
			CU_ASSERT_EQUAL(put_in(g, NULL, "q", with("x", TPQTOP, id), NULL), QMEINVAL);
			expect(g, top && msgid ? "t b a" : top ? "t a" : msgid ? "b a" : "a");
			begin(g);
			CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "q", false), 0);
			commit(g);
		}
	given_done(g);
}

static void
the_last_one_on_top_is_first(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("q", QC_PRIORITY, QC_EXPIRATION, QC_TIME, QC_LIFO);
	uint8_t id[TMMSGIDLEN];
	struct branch *b;

	create(g, &p);
	for (int i = 0; i < 2; i++) {
		struct qmsg_in in = with("high", TPQPRIORITY, NULL);
		in.priority = 100;
		put_in(g, NULL, "q", in, NULL);
		in = with("1", TPQTOP | TPQPRIORITY, NULL);
		in.priority = 1;
		put_in(g, NULL, "q", in, NULL);
		put_in(g, NULL, "q", with("2", TPQTOP, NULL), id);
		b = tx(g, "b");
		put_in(g, b, "q", with("3", TPQTOP, NULL), NULL);
		put_in(g, NULL, "q", with("4", TPQTOP, NULL), NULL);
		put_before(g, NULL, "before 2", id, NULL);
		if (i)
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
		reopen(g);
		expect(g, i ? "4 3 before 2 2 1 high" : "4 before 2 2 1 high");
	}
	given_done(g);
}

static void	/* Held, delayed, rolled back, waiting for its retry, non-persistent: it has a place, and that counts. */
whatever_is_there_can_be_named(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in;
	uint8_t held[TMMSGIDLEN], delayed[TMMSGIDLEN], np[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "q", 9, 10);
	put_before(g, NULL, "a", NULL, held);
	in = with("b", TPQTIME_REL, NULL);
	in.deq_time = 5;
	put_in(g, NULL, "q", in, delayed);
	in = with("c", TPQDELIVERYQOS, NULL);
	in.delivery_qos = TPQQOSNONPERSISTENT;
	put_in(g, NULL, "q", in, np);
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "q"), "a");
	CU_ASSERT_EQUAL(put_before(g, NULL, "a1", held, NULL), 0);
	CU_ASSERT_EQUAL(put_before(g, NULL, "b1", delayed, NULL), 0);
	CU_ASSERT_EQUAL(put_before(g, NULL, "c1", np, NULL), 0);
	in = with("c2", TPQDELIVERYQOS, np);
	in.delivery_qos = TPQQOSNONPERSISTENT;
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", in, NULL), 0);
	in = with("a2", TPQDELIVERYQOS, held);
	in.delivery_qos = TPQQOSNONPERSISTENT;
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", in, NULL), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(put_before(g, NULL, "a3", held, NULL), 0);	/* it waits for its retry */
	clock_shift_us(20 * SECOND);
	CU_ASSERT_EQUAL(put_before(g, NULL, "a4", held, NULL), 0);	/* it is due again */
	reopen(g);
	expect(g, "a1 a2 a3 a4 a b1 b c1 c2 c");
	clock_shift_us(-20 * SECOND);
	given_done(g);
}

static void
what_is_not_there_cannot(void)
{
	struct given_space *g = given_space(NULL), *h = given_space(NULL);
	uint8_t id[TMMSGIDLEN], other[TMMSGIDLEN], gone[TMMSGIDLEN], short_lived[TMMSGIDLEN], zero[TMMSGIDLEN] = { 0 };
	struct qmsg_in in = with("short", TPQEXPTIME_REL, NULL);
	struct branch *a, *b;

	create_fifo(g, "q", 0, 0);
	create_fifo(g, "r", 0, 0);
	create_fifo(h, "q", 0, 0);
	put_in(g, NULL, "r", text("elsewhere"), other);
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", other, NULL), QMEBADMSGID);
	put_in(h, NULL, "q", text("elsewhere"), other);
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", other, NULL), QMEBADMSGID);
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", zero, NULL), QMEBADMSGID);
	put_before(g, NULL, "gone", NULL, gone);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "gone");
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", gone, NULL), QMEBADMSGID);
	in.exp_time = 5;
	put_in(g, NULL, "q", in, short_lived);
	clock_shift_us(6 * SECOND);
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", short_lived, NULL), QMEBADMSGID);	/* expired, tick or no tick */
	clock_shift_us(-6 * SECOND);
	tick(g);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "short");
	/* Of another transaction that may still roll back; of the own one it is a matter of that one alone. */
	a = tx(g, "a");
	b = tx(g, "b");
	put_in(g, a, "q", text("mine"), id);
	CU_ASSERT_EQUAL(put_before(g, NULL, "x", id, NULL), QMEBADMSGID);
	CU_ASSERT_EQUAL(put_before(g, b, "x", id, NULL), QMEBADMSGID);
	CU_ASSERT_FALSE(qspace_branch_doomed(b));
	CU_ASSERT_EQUAL(put_before(g, a, "ahead", id, id), 0);
	CU_ASSERT_EQUAL(put_before(g, a, "first", id, NULL), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(tx_commit(g, a), 0);
	expect(g, "first ahead mine");
	given_done(g);
	given_done(h);
}

static void	/* taken by a transaction and given back: where it stood, and what stood ahead of it still does */
a_rolled_back_message_keeps_its_place(void)
{
	struct given_space *g = given_space(NULL);
	uint8_t id[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "q", 9, 0);
	put_before(g, NULL, "a", NULL, NULL);
	put_before(g, NULL, "b", NULL, id);
	put_before(g, NULL, "b1", id, id);
	put_before(g, NULL, "b11", id, NULL);
	b = tx(g, "b");
	for (int i = 0; i < 3; i++)
		next_in(g, b, "q");
	put_before(g, NULL, "b12", id, NULL);	/* ahead of one that is held */
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	reopen(g);
	expect(g, "a b11 b12 b1 b");
	given_done(g);
}

enum { CHAIN = 3000 };

static void	/* Each ahead of the last one, or all ahead of the same one: thousands, in a transaction too, over a restart. */
chains_of_thousands(void)
{
	for (int how = 0; how < 8; how++) {
		bool same = how & 1, in_branch = how & 2, strict = how & 4;
		struct given_space *g = given_space(NULL);
		struct queue_params p = strict ? queue_of("q", QC_PRIORITY, QC_TIME, QC_EXPIRATION, QC_LIFO) :
						 queue_of("q", QC_FIFO, 0, 0, 0);
		uint8_t target[TMMSGIDLEN], id[TMMSGIDLEN];
		struct branch *b = NULL;
		char body[16];
		int bad = 0;

		create(g, &p);
		if (!strict)
			put_before(g, NULL, "start", NULL, NULL);
		put_before(g, NULL, "end", NULL, target);
		if (in_branch)
			b = tx(g, "b");
		begin(g);
		for (int i = 0; i < CHAIN; i++) {
			struct qmsg_in in;
			snprintf(body, sizeof body, "%d", i);
			in = with(body, 0, target);
			CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "q", &in, id), 0);
			if (!same)
				memcpy(target, id, sizeof id);
		}
		commit(g);
		if (in_branch)
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
		reopen(g);
		if (!strict)
			CU_ASSERT_STRING_EQUAL(next(g, "q"), "start");
		begin(g);
		for (int i = 0; i < CHAIN; i++) {
			struct qmsg *m;
			CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "q", NULL, &m), 0);
			snprintf(body, sizeof body, "%d", same ? i : CHAIN - 1 - i);
			bad += strcmp((const char *)m->body, body) != 0;
			qmsg_free(m);
		}
		commit(g);
		CU_ASSERT_EQUAL(bad, 0);
		expect(g, "end");
		given_done(g);
	}
}

static void	/* It too has an identifier, by which it is found, held and given back. */
a_message_deep_in_a_chain_is_like_any_other(void)
{
	struct given_space *g = given_space(NULL);
	uint8_t target[TMMSGIDLEN], deep[TMMSGIDLEN];
	struct qselect sel = { .flags = TPQGETBYMSGID };
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "q", 9, 0);
	put_before(g, NULL, "end", NULL, target);
	begin(g);
	for (int i = 0; i < 100; i++) {
		struct qmsg_in in = with(i == 50 ? "deep" : "x", i == 50 ? TPQCORRID : 0, target);
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "q", &in, target), 0);
		if (i == 50)
			memcpy(deep, target, sizeof deep);
	}
	commit(g);
	memcpy(sel.msgid, deep, sizeof deep);
	b = tx(g, "b");
	CU_ASSERT_EQUAL_FATAL(take(g, b, "q", &sel, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "deep");
	qmsg_free(m);
	CU_ASSERT_EQUAL(put_before(g, NULL, "still deeper", deep, NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "G"), 0);
	commit(g);
	given_killed(g);
	CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "b")), 0);
	for (int i = 0; i < 49; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "x");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "still deeper");
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "q", &sel, &m), 0);
	CU_ASSERT_EQUAL(m->retries, 1);
	qmsg_free(m);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_queue_must_allow_it),
		UNIT(the_last_one_on_top_is_first),
		UNIT(whatever_is_there_can_be_named),
		UNIT(what_is_not_there_cannot),
		UNIT(a_rolled_back_message_keeps_its_place),
		UNIT(chains_of_thousands),
		UNIT(a_message_deep_in_a_chain_is_like_any_other),
	};
	return unit_run("qspace before", tests, UNIT_COUNT(tests));
}
