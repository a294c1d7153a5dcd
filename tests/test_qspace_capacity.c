/*
 * Messages, pages and non-persistent memory: what the space says it takes it takes, to the last one, however they come; one more is
 * refused; everything else goes on; and whatever way a message goes, its room comes back.  Capacity is counted, and a walk agrees.
 */
#include "given_space.h"
#include "qspace_impl.h"

#define SECOND INT64_C(1000000)
enum { NP_BYTES = 1 << 20 };

static int64_t used_max;

static struct given_space *
given_room(long messages, long pages, int64_t np_bytes, const char *errorq)
{
	struct qspace_params p = given_params("QS");

	p.messages = messages;
	p.pages = pages;
	p.nonpersistent_bytes = np_bytes;
	snprintf(p.errorq, sizeof p.errorq, "%s", errorq);
	return given_space(&p);
}

static void	/* as qspacechange would, without the file */
resize(struct given_space *g, long messages, long pages, int64_t np_bytes)
{
	g->params.messages = g->qs->params.messages = messages;
	g->params.pages = g->qs->params.pages = pages;
	g->qs->params.nonpersistent_bytes = np_bytes;
}

static void
empty(struct given_space *g, const char *queue)
{
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_destroy(g->qs, queue, true), 0);
	commit(g);
	create_fifo(g, queue, 0, 0);
}

static struct qmsg_in
sized(size_t n, bool np)
{
	static uint8_t zeroes[1 << 20];
	struct qmsg_in in = { .type = "CARRAY", .subtype = "", .has_body = n > 0, .body = zeroes, .body_len = n };

	CU_ASSERT_TRUE_FATAL(n <= sizeof zeroes);
	if (np) {
		in.flags = TPQDELIVERYQOS;
		in.delivery_qos = TPQQOSNONPERSISTENT;
	}
	return in;
}

/* How many more of these the space takes.  Nothing of it is left. */
static int
room_for(struct given_space *g, const char *queue, struct qmsg_in in)
{
	struct branch *b = tx(g, "how many more?");
	uint8_t id[TMMSGIDLEN];
	int n = 0, rc;

	begin(g);
	while ((rc = qspace_enqueue(g->qs, b, queue, &in, id)) == 0)
		n++;
	commit(g);
	CU_ASSERT_EQUAL(rc, QMENOSPACE);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	return n;
}

static int
room(struct given_space *g)
{
	return room_for(g, "orders", sized(1, false));
}

/* --- a walk, to compare with what is counted --- */

struct sums { int64_t messages, pages, bytes, np_messages, np_bytes, delayed, np_weight; };

static void
walk_table(struct given_space *g, enum table t, bool np, struct queue *q, struct sums *s)
{
	struct walk w;
	struct okey k;
	struct oval v;
	int64_t us;
	int rc;

	for (rc = walk_first(g->qs, &w, t, np, "", 0); rc == 0; rc = walk_next(g->qs, &w)) {
		if (w.kn < 4 || get32(w.k) != q->id)
			continue;
		CU_ASSERT_EQUAL_FATAL(t == T_ORDER ? oval_decode(w.v, w.vn, &v) : delayed_decode(&w, &us, &k, &v), 0);
		CU_ASSERT_EQUAL(!!(v.flags & OV_NP), np);
		s->delayed += t == T_DELAYED;
		if (np) {
			s->np_messages++;
			s->np_bytes += v.weight;
		} else {
			s->messages++;
			s->bytes += v.bytes;
			s->pages += pages_of(v.bytes);
		}
	}
	walk_end(g->qs, &w);
	CU_ASSERT_EQUAL(rc, DB_NOTFOUND);
}

static void
counters_agree_with_a_walk(struct given_space *g)
{
	int64_t messages = 0, pages = 0, np_bytes = 0, branch_bytes = 0;

	for (struct queue *q = g->qs->queues; q != NULL; q = q->next) {
		struct sums s = { 0 };
		struct queue_stat st = stat_of(g, q->p.name);
		int64_t held = 0, pending = 0;

		for (int np = 0; np < 2; np++) {
			walk_table(g, T_ORDER, np, q, &s);
			walk_table(g, T_DELAYED, np, q, &s);
		}
		for (struct branch *b = g->qs->branches; b != NULL; b = b->hh.next)
			for (size_t i = 0; i < b->n; i++)
				if (b->op[i].q == q)
					*(b->op[i].kind == OP_DEQUEUE ? &held : &pending) += 1;
		CU_ASSERT_EQUAL(st.messages, s.messages);
		CU_ASSERT_EQUAL(st.bytes, s.bytes);
		CU_ASSERT_EQUAL(st.blocks, s.pages);
		CU_ASSERT_EQUAL(st.np_messages, s.np_messages);
		CU_ASSERT_EQUAL(st.np_bytes, s.np_bytes);
		CU_ASSERT_EQUAL(st.delayed, s.delayed);
		CU_ASSERT_EQUAL(st.held, held);
		CU_ASSERT_EQUAL(q->n.pending, pending);
		messages += s.messages + s.np_messages;
		pages += s.pages;
		np_bytes += s.np_bytes;
	}
	for (struct branch *b = g->qs->branches; b != NULL; b = b->hh.next) {
		branch_bytes += (int64_t)b->bytes;
		for (size_t i = 0; i < b->n; i++) {
			if (b->op[i].kind != OP_ENQUEUE)
				continue;
			messages++;
			if (b->op[i].m->v.flags & OV_NP)
				np_bytes += b->op[i].m->v.weight;
			else
				pages += pages_of(b->op[i].m->v.bytes);
		}
	}
	CU_ASSERT_EQUAL(g->qs->used.messages, messages);
	CU_ASSERT_EQUAL(g->qs->used.pages, pages);
	CU_ASSERT_EQUAL(g->qs->used.np_bytes, np_bytes);
	CU_ASSERT_EQUAL(g->qs->used.branch_bytes, branch_bytes);
	CU_ASSERT_TRUE(messages <= g->params.messages);
	CU_ASSERT_TRUE(pages <= g->params.pages);
	if (messages > used_max)
		used_max = messages;
}

/* --- exact --- */

static void
as_many_as_the_limit_says_and_not_one_more(void)
{
	static const struct { const char *what; long messages, pages; int64_t np; size_t body; bool in_memory; int n; } cases[] = {
		{ "messages", 7, 1000, NP_BYTES, 1, false, 7 },
		{ "messages without data", 7, 1000, NP_BYTES, 0, false, 7 },
		{ "messages in memory count too", 7, 1000, NP_BYTES, 1, true, 7 },
		{ "a page each", 1000, 7, NP_BYTES, 512, false, 7 },
		{ "a page for nothing", 1000, 7, NP_BYTES, 0, false, 7 },
		{ "two pages each, and one is left", 1000, 7, NP_BYTES, 513, false, 3 },
		{ "the space in one", 1000, 700, NP_BYTES, (size_t)700 * 512, false, 1 },
		{ "and one byte more", 1000, 700, NP_BYTES, (size_t)700 * 512 + 1, false, 0 },
		{ "in parts", 1000, 3 * 600, NP_BYTES, (size_t)600 * 512, false, 3 },
		{ "in parts, a page short", 1000, 3 * 600 - 1, NP_BYTES, (size_t)600 * 512, false, 2 },
		{ "memory", 1000, 1000, 4 * 512, 512 - NP_PLAIN, true, 4 },
		{ "memory, a byte short", 1000, 1000, 4 * 512, 512 - NP_PLAIN + 1, true, 3 },
		{ "no memory", 1000, 1000, 0, 1, true, 0 },
	};

	struct given_space *g = given_room(1, 100000, NP_BYTES, "ERRQ");

	create_fifo(g, "orders", 0, 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct qmsg_in in = sized(cases[i].body, cases[i].in_memory);
		int rc = 0, n;

		resize(g, cases[i].messages, cases[i].pages, cases[i].np);
		n = room_for(g, "orders", in);
		if (n != cases[i].n)
			fprintf(stderr, "\n%s: %d in a transaction\n", cases[i].what, n);
		CU_ASSERT_EQUAL(n, cases[i].n);
		for (n = 0; n < 100 && (rc = put_in(g, NULL, "orders", in, NULL)) == 0; n++)
			;
		if (n != cases[i].n)
			fprintf(stderr, "\n%s: %d outside\n", cases[i].what, n);
		CU_ASSERT_EQUAL(n, cases[i].n);
		CU_ASSERT_EQUAL(rc, QMENOSPACE);
		counters_agree_with_a_walk(g);
		empty(g, "orders");
	}
	given_done(g);
}

static void	/* Neither area substitutes for the other; the message limit is that of both. */
one_area_full_leaves_the_other(void)
{
	struct given_space *g = given_room(10, 4, 512, "");

	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(512, false), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1, false), NULL), QMENOSPACE);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(512 - NP_PLAIN, true), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(0, true), NULL), QMENOSPACE);
	CU_ASSERT_NOT_EQUAL(*next(g, "orders"), '!');
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(0, true), NULL), QMENOSPACE);	/* a page is free, memory is not */
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1, false), NULL), 0);
	counters_agree_with_a_walk(g);
	given_done(g);
}

static void
branches_share_what_there_is(void)
{
	struct given_space *g = given_room(5, 1000, 0, "");
	struct branch *a, *b;

	create_fifo(g, "orders", 5, 0);
	a = tx(g, "a");
	b = tx(g, "b");
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(put_in(g, i % 2 ? a : b, "orders", text("x"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, a, "orders", text("x"), NULL), QMENOSPACE);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), QMENOSPACE);
	CU_ASSERT_EQUAL(put(g, "orders", "x"), QMENOSPACE);
	CU_ASSERT_FALSE(qspace_branch_doomed(a));	/* it may go on with what it has */
	counters_agree_with_a_walk(g);
	CU_ASSERT_EQUAL(tx_commit(g, a), 0);		/* has its room: it cannot fail for want of it */
	CU_ASSERT_EQUAL(room(g), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(room(g), 3);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "x");
	a = tx(g, "c");
	CU_ASSERT_STRING_EQUAL(next_in(g, a, "orders"), "x");
	CU_ASSERT_EQUAL(room(g), 4);			/* taken, and not gone: it may come back */
	CU_ASSERT_EQUAL(tx_roll_back(g, a), 0);
	CU_ASSERT_EQUAL(room(g), 4);
	counters_agree_with_a_walk(g);
	given_done(g);
}

static void	/* The batch fails: what it took is free again, what it freed is taken. */
a_batch_that_is_undone_took_nothing(void)
{
	struct given_space *g = given_room(3, 1000, NP_BYTES, "");
	struct qmsg_in in = text("y");
	uint8_t id[TMMSGIDLEN];
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "x");
	b = tx(g, "t");
	begin(g);
	CU_ASSERT_EQUAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
	qmsg_free(m);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(g->qs, i == 1 ? b : NULL, "orders", &in, id), 0);
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), QMENOSPACE);
	qspace_batch_abort(g->qs);
	counters_agree_with_a_walk(g);
	CU_ASSERT_EQUAL(room(g), 2);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_EQUAL(room(g), 2);
	given_done(g);
}

static void	/* Written over many batches: it counts from the first one on, and if it never comes it counts no more. */
a_body_on_its_way_has_its_room(void)
{
	struct given_space *g = given_room(10, 1300, NP_BYTES, "");
	struct qmsg_in in = sized((size_t)600 * 512, false);
	uint8_t id[TMMSGIDLEN];
	struct spool *one, *two, *three;
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_spool_begin(g->qs, "orders", &in, &one), 0);
	CU_ASSERT_EQUAL(qspace_spool_begin(g->qs, "orders", &in, &two), 0);
	CU_ASSERT_EQUAL(qspace_spool_begin(g->qs, "orders", &in, &three), QMENOSPACE);
	CU_ASSERT_PTR_NULL(three);
	commit(g);
	CU_ASSERT_EQUAL(room(g), 8);
	CU_ASSERT_EQUAL(room_for(g, "orders", sized(512 * 10, false)), 8);
	CU_ASSERT_EQUAL(room_for(g, "orders", sized(512 * 101, false)), 0);
	qspace_spool_drop(two);
	CU_ASSERT_EQUAL(room(g), 9);
	b = tx(g, "t");
	while (!qspace_spool_full(one)) {
		begin(g);
		CU_ASSERT_EQUAL_FATAL(qspace_spool_write(one, in.body, PART_BYTES), 0);
		commit(g);
	}
	begin(g);
	in.spool = one;
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, b, "orders", &in, id), 0);
	commit(g);
	counters_agree_with_a_walk(g);
	CU_ASSERT_EQUAL(room(g), 9);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	counters_agree_with_a_walk(g);
	CU_ASSERT_EQUAL(room(g), 9);
	CU_ASSERT_EQUAL(room_for(g, "orders", sized((size_t)700 * 512, false)), 1);
	CU_ASSERT_NOT_EQUAL(*next(g, "orders"), '!');
	CU_ASSERT_EQUAL(room(g), 10);
	counters_agree_with_a_walk(g);
	given_done(g);
}

/* --- the ways that room comes back --- */

static void
by_commit(struct given_space *g)
{
	struct branch *b = tx(g, "t");

	CU_ASSERT_NOT_EQUAL(*next_in(g, b, "orders"), '!');
	CU_ASSERT_EQUAL(room(g), 0);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
}

static void
by_plain_dequeue(struct given_space *g)
{
	CU_ASSERT_NOT_EQUAL(*next(g, "orders"), '!');
}

static void
by_expiry(struct given_space *g)
{
	clock_pass_us(100 * SECOND);
	tick(g);
}

static void
by_purge(struct given_space *g)
{
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", false), QMEINUSE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), 0);
	commit(g);
	create_fifo(g, "orders", 0, 0);
}

static void
by_the_administrator(struct given_space *g)
{
	struct document args = { 0 }, out = { 0 };
	struct record *r = document_add(&args);
	char *said = NULL;

	CU_ASSERT_EQUAL_FATAL(record_set(r, "queue", "orders"), 0);
	CU_ASSERT_EQUAL(qadmin_run(g->qs, "qdeletemsg", r, &out, &said), 0);
	if (said != NULL)
		fprintf(stderr, "\n%s\n", said);
	free(said);
	document_free(&args);
	document_free(&out);
}

static void	/* no retries, no error queue: the first rollback ends it */
by_spent_retries(struct given_space *g)
{
	struct branch *b = tx(g, "t");

	CU_ASSERT_NOT_EQUAL(*next_in(g, b, "orders"), '!');
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
}

static void	/* the same by time */
by_time_out(struct given_space *g)
{
	struct branch_id id = { 4, "late" };
	struct branch *b;

	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, clock_now_us() + SECOND, &b), 0);
	commit(g);
	CU_ASSERT_NOT_EQUAL(*next_in(g, b, "orders"), '!');
	clock_pass_us(2 * SECOND);
	tick(g);
	CU_ASSERT_PTR_NULL(find_tx(g, "late"));
}

static void
room_comes_back_each_way(void)
{
	static const struct { const char *how; void (*go)(struct given_space *); int n; } ways[] = {
		{ "commit", by_commit, 1 }, { "dequeue", by_plain_dequeue, 1 }, { "expiry", by_expiry, 4 }, { "purge", by_purge, 4 },
		{ "qdeletemsg", by_the_administrator, 4 }, { "retries", by_spent_retries, 1 }, { "time-out", by_time_out, 1 },
	};
	enum { SMALL, IN_MEMORY, IN_PARTS, KINDS };

	struct given_space *g = given_room(4, 100000, NP_BYTES, "");

	clock_stop();
	create_fifo(g, "orders", 0, 0);
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
			struct qmsg_in in = sized(kind == IN_PARTS ? 300000 : 100, kind == IN_MEMORY);
			int n;

			in.flags |= TPQEXPTIME_REL;
			in.exp_time = 100;
			for (int k = 0; k < 4; k++)
				CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
			CU_ASSERT_EQUAL(room(g), 0);
			ways[i].go(g);
			if ((n = room(g)) != ways[i].n)
				fprintf(stderr, "\n%s, kind %d: %d\n", ways[i].how, kind, n);
			CU_ASSERT_EQUAL(n, ways[i].n);
			counters_agree_with_a_walk(g);
			reopen(g);
			CU_ASSERT_EQUAL(room(g), ways[i].n);
			counters_agree_with_a_walk(g);
			empty(g, "orders");
		}
	given_done(g);
	clock_go();
}

static void	/* Moved, it takes what it took; a full space does not keep a message from the error queue. */
the_error_queue_needs_no_room(void)
{
	struct given_space *g = given_room(2, 4, 0, "ERRQ");
	struct branch *b;

	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1024, false), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1024, false), NULL), 0);
	b = tx(g, "t");
	CU_ASSERT_NOT_EQUAL(*next_in(g, b, "orders"), '!');
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 1);
	CU_ASSERT_EQUAL(room(g), 0);
	counters_agree_with_a_walk(g);
	CU_ASSERT_NOT_EQUAL(*next(g, "ERRQ"), '!');
	CU_ASSERT_EQUAL(room(g), 1);
	counters_agree_with_a_walk(g);
	given_done(g);
}

static void	/* There it says where it came from, which counts too, for as long as it is there. */
a_message_in_memory_weighs_more_on_the_error_queue(void)
{
	struct given_space *g = given_room(100, 1000, 20 * 512, "ERRQ");
	int before;

	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "orders", 0, 0);
	before = room_for(g, "orders", sized(100, true));
	CU_ASSERT_EQUAL(before, 20 * 512 / (100 + NP_PLAIN));
	for (int i = 0; i < 20; i++) {
		struct branch *b = tx(g, "t");

		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(100, true), NULL), 0);
		CU_ASSERT_NOT_EQUAL(*next_in(g, b, "orders"), '!');
		CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
		CU_ASSERT_EQUAL(g->qs->used.np_bytes, 100 + NP_PLAIN + NP_ORIGIN);
		CU_ASSERT_EQUAL(stat_of(g, "ERRQ").np_bytes, g->qs->used.np_bytes);
		CU_ASSERT_NOT_EQUAL(*next(g, "ERRQ"), '!');
	}
	CU_ASSERT_EQUAL(room_for(g, "orders", sized(100, true)), before);
	counters_agree_with_a_walk(g);
	given_done(g);
}

static void	/* An end in good order keeps all; a kill takes what was in memory, and open transactions; in doubt counts on. */
a_restart_gives_back_what_it_takes(void)
{
	struct given_space *g = given_room(10, 100000, NP_BYTES, "");
	struct branch *b;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "x");
	put(g, "orders", "y");
	put_in(g, NULL, "orders", sized(10, true), NULL);
	b = tx(g, "in doubt");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("z"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", sized(300000, false), NULL), 0);
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "G"), 0);
	commit(g);
	b = tx(g, "open");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("q"), NULL), 0);
	CU_ASSERT_EQUAL(room(g), 4);
	reopen(g);
	CU_ASSERT_EQUAL(room(g), 5);
	counters_agree_with_a_walk(g);
	b = tx(g, "open");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("q"), NULL), 0);
	CU_ASSERT_EQUAL(room(g), 4);
	given_killed(g);
	CU_ASSERT_EQUAL(room(g), 6);
	counters_agree_with_a_walk(g);
	CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "in doubt")), 0);
	CU_ASSERT_EQUAL(room(g), 7);
	counters_agree_with_a_walk(g);
	given_done(g);
}

static void	/* In doubt ones count, over a restart; one that ends makes room for one. */
transactions_are_counted_over_a_restart(void)
{
	struct qspace_params p = given_params("QS");
	struct branch_id id = { 3, "t-9" };
	struct given_space *g;
	struct branch *b;

	p.trans = 3;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "x");
	for (int i = 0; i < 2; i++) {
		char name[8];
		snprintf(name, sizeof name, "t-%d", i);
		b = tx(g, name);
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("y"), NULL), 0);
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "G"), 0);
		commit(g);
	}
	tx(g, "t-2");
	for (int killed = 0; killed < 2; killed++) {
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, 0, &b), QMENOSPACE);
		commit(g);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "x");		/* who needs none goes on */
		CU_ASSERT_EQUAL(put(g, "orders", "x"), 0);
		if (killed)
			given_killed(g);
		else
			reopen(g);
		tx(g, "t-3");						/* t-2 is gone, the others are not */
	}
	CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "t-0")), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, 0, &b), 0);
	commit(g);
	given_done(g);
}

static void	/* A queue that goes makes room for one, once it is gone for good; the error queue is one of them. */
queues_make_room_for_queues(void)
{
	struct qspace_params p = given_params("QS");
	struct queue_params q = queue_of("q3", QC_FIFO, 0, 0, 0);
	struct given_space *g;

	p.queues = 3;
	g = given_space(&p);
	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "q1", 0, 0);
	create_fifo(g, "q2", 0, 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &q), QMENOSPACE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "q1", false), 0);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &q), QMENOSPACE);
	qspace_batch_abort(g->qs);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &q), QMENOSPACE);
	commit(g);
	reopen(g);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &q), QMENOSPACE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "q2", false), 0);
	commit(g);
	create(g, &q);
	CU_ASSERT_EQUAL(put(g, "q1", "x"), 0);
	given_done(g);
}

/*
 * Sizes that scripts in the field use.  There a page of the space went to the space itself and one to each queue, and a message
 * took one page at least.
 */
static void
a_space_takes_as_many_as_it_took_before(void)
{
	static const struct { long pages, messages, queues; } field[] = {
		{ 100, 200, 5 }, { 100, 100, 10 }, { 500, 200, 20 }, { 200, 100, 5 }, { 1000, 800, 10 }, { 800, 500, 6 },
	};
	static const size_t bodies[] = { 0, 1, 100, 512, 513, 1024, 5000 };

	struct given_space *g = given_room(1, 1000, 0, "");

	create_fifo(g, "orders", 0, 0);
	for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
		resize(g, field[i].messages, field[i].pages, 0);
		for (size_t k = 0; k < sizeof bodies / sizeof bodies[0]; k++) {
			long before = (field[i].pages - 1 - field[i].queues) / (long)((bodies[k] + 512 - (bodies[k] > 0)) / 512);

			if (before > field[i].messages)
				before = field[i].messages;
			CU_ASSERT_TRUE(room_for(g, "orders", sized(bodies[k], false)) >= before);
		}
	}
	given_done(g);
}

/* --- thousands of random operations --- */

static unsigned seed;

static unsigned
dice(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

static void
random_enqueue(struct given_space *g, struct branch *b, const char *queue)
{
	struct qmsg_in in = sized(dice(40) == 0 ? 300000 + dice(100000) : dice(3000), dice(3) == 0);
	uint8_t id[TMMSGIDLEN];
	int rc;

	if (dice(4) == 0) {
		in.flags |= TPQEXPTIME_REL;
		in.exp_time = dice(4);
	}
	if (dice(4) == 0) {
		in.flags |= TPQTIME_REL;
		in.deq_time = dice(4);
	}
	if (dice(3) == 0) {
		in.flags |= TPQCORRID;
		in.corrid[0] = (uint8_t)(1 + dice(5));
	}
	if (dice(5) == 0) {
		in.flags |= TPQREPLYQ;
		in.replyqueue = "REPLIES";
	}
	rc = qspace_enqueue(g->qs, b, queue, &in, id);
	CU_ASSERT_TRUE_FATAL(rc == 0 || rc == QMENOSPACE);
}

static void
random_dequeue(struct given_space *g, struct branch *b, const char *queue)
{
	struct qselect sel = { .flags = dice(3) == 0 ? TPQGETBYCORRID : 0, .corrid = { (uint8_t)(1 + dice(5)) } };
	struct qmsg *m;
	int rc = qspace_dequeue(g->qs, b, queue, &sel, &m);

	CU_ASSERT_TRUE_FATAL(rc == 0 || rc == QMENOMSG);
	if (rc == 0)
		qmsg_free(m);
}

static void
random_end(struct given_space *g, struct branch **b, char name[16], int no)
{
	int how = (int)dice(4);

	begin(g);
	if (how == 0)
		CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, *b, "G"), 0);
	CU_ASSERT_EQUAL(how < 3 ? qspace_branch_commit(g->qs, *b) : qspace_branch_rollback(g->qs, *b), 0);
	commit(g);
	snprintf(name, 16, "t%d", no);
	*b = tx(g, name);
}

static void
counters_agree_after_thousands_of_operations(void)
{
	static const char *const queues[] = { "one", "two", "ERRQ", "three" };
	int rounds = getenv("TEST_LONG") != NULL ? 2000 : 250;
	struct given_space *g = given_room(120, 1500, 60 * 512, "ERRQ");
	struct branch *b[3];
	char name[3][16];

	clock_stop();
	seed = getenv("TEST_SEED") != NULL ? (unsigned)atoi(getenv("TEST_SEED")) : 1;
	create_fifo(g, "one", 0, 0);
	create_fifo(g, "two", 2, 1);
	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "three", 0, 2);
	for (int i = 0; i < 3; i++) {
		snprintf(name[i], sizeof name[i], "s%d", i);
		b[i] = tx(g, name[i]);
	}
	for (int round = 0; round < rounds; round++) {
		bool undo = dice(10) == 0;

		begin(g);
		for (int i = 0; i < 30; i++) {
			struct branch *in = dice(2) ? NULL : b[dice(3)];
			if (dice(20) < 13)
				random_enqueue(g, in, queues[dice(4)]);
			else
				random_dequeue(g, in, queues[dice(4)]);
		}
		if (undo)
			qspace_batch_abort(g->qs);
		else
			commit(g);
		if (dice(2))
			random_end(g, &b[round % 3], name[round % 3], round);
		if (dice(3) == 0)
			clock_shift_us(dice(3) * SECOND);
		if (dice(3) == 0)
			tick(g);
		if (dice(60) == 0) {
			begin(g);
			if (qspace_queue_destroy(g->qs, "one", true) == 0) {
				commit(g);
				create_fifo(g, "one", 0, 0);
			} else
				commit(g);
		}
		if (round % 50 == 49) {
			if (dice(2))
				reopen(g);
			else
				given_killed(g);
			for (int i = 0; i < 3; i++)
				b[i] = tx(g, name[i]);
		}
		if (round % 5 == 0 || round % 50 == 49)
			counters_agree_with_a_walk(g);
	}
	CU_ASSERT_EQUAL(used_max, 120);		/* it was full more than once */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(tx_roll_back(g, b[i]), 0);
	for (int i = 0; i < 4; i++) {
		begin(g);
		CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, queues[i], true), 0);
		commit(g);
	}
	CU_ASSERT_EQUAL(g->qs->used.messages, 0);
	CU_ASSERT_EQUAL(g->qs->used.pages, 0);
	CU_ASSERT_EQUAL(g->qs->used.np_bytes, 0);
	CU_ASSERT_EQUAL(g->qs->used.branch_bytes, 0);
	given_done(g);
	clock_go();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(as_many_as_the_limit_says_and_not_one_more),
		UNIT(one_area_full_leaves_the_other),
		UNIT(branches_share_what_there_is),
		UNIT(a_batch_that_is_undone_took_nothing),
		UNIT(a_body_on_its_way_has_its_room),
		UNIT(room_comes_back_each_way),
		UNIT(the_error_queue_needs_no_room),
		UNIT(a_message_in_memory_weighs_more_on_the_error_queue),
		UNIT(a_restart_gives_back_what_it_takes),
		UNIT(transactions_are_counted_over_a_restart),
		UNIT(queues_make_room_for_queues),
		UNIT(a_space_takes_as_many_as_it_took_before),
		UNIT(counters_agree_after_thousands_of_operations),
	};
	if (access("/dev/shm", W_OK) == 0)	/* not about the disk */
		given_root = "/dev/shm";
	return unit_run("qspace capacity", tests, UNIT_COUNT(tests));
}
