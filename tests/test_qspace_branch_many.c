/*
 * Many operations in one transaction, and many transactions: 200,000 each with TEST_LONG.  What must not grow does not.
 */
#include <time.h>

#include "given_space.h"
#include "qspace_impl.h"

static long
scaled(long n, long with)
{
	return getenv("TEST_LONG") != NULL ? with : n;
}

static long
rss_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		sscanf(line, "VmRSS: %ld", &kb);
	if (f != NULL)
		fclose(f);
	return kb;
}

static struct given_space *
given_large_space(long messages)
{
	struct qspace_params p = given_params("QS");

	p.messages = messages;
	p.pages = 3 * messages;
	p.trans = 20000;
	return given_space(&p);
}

static struct qmsg_in
kilobyte(long no)
{
	static char body[1024];
	struct qmsg_in in = text(body);

	snprintf(body, sizeof body, "%ld", no);
	in.body_len = sizeof body;
	return in;
}

struct measured { int64_t all_us, cpu_us, longest_us; long batches; };	/* longest_us: of a batch, by the clock */

static void	/* until it is carried out, with somebody else's message in each batch */
carry_out(struct given_space *g, struct measured *m)
{
	int64_t began = clock_mono_us();
	clock_t cpu = clock();

	*m = (struct measured){ 0 };
	while (is_ending(g)) {
		struct qmsg_in in = text("other");
		int64_t from = clock_mono_us(), us;
		uint8_t id[TMMSGIDLEN];
		struct qmsg *other;
		begin(g);
		qspace_tick(g->qs, clock_now_us());
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "others", &in, id), 0);
		CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "others", NULL, &other), 0);
		qmsg_free(other);
		commit(g);
		us = clock_mono_us() - from;
		m->longest_us = us > m->longest_us ? us : m->longest_us;
		m->batches++;
	}
	m->all_us = clock_mono_us() - began;
	m->cpu_us = (int64_t)(clock() - cpu) * 1000000 / CLOCKS_PER_SEC;
}

static void	/* n messages come and n go in one transaction; 64 operations a batch */
many_in_one_transaction(void)
{
	long n = scaled(10000, 200000), before, grown, held;
	struct given_space *g = given_large_space(2 * n + 10000);
	struct measured m;
	struct branch *b;
	uint8_t id[TMMSGIDLEN];
	int rc;

	create_fifo(g, "in", 5, 0);
	create_fifo(g, "out", 5, 0);
	create_fifo(g, "others", 5, 0);
	for (long i = 0; i < n;) {
		begin(g);
		for (int k = 0; k < 64 && i < n; k++, i++) {
			struct qmsg_in in = kilobyte(i);
			CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "in", &in, id), 0);
		}
		commit(g);
	}
	before = rss_kb();
	b = tx(g, "t1");
	for (long i = 0; i < 2 * n;) {
		begin(g);
		for (int k = 0; k < 64 && i < 2 * n; k++, i++) {
			struct qmsg_in in = kilobyte(i);
			struct qmsg *got;
			if (i < n) {
				CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "out", &in, id), 0);
			} else {
				CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "in", NULL, &got), 0);
				qmsg_free(got);
			}
		}
		commit(g);
	}
	grown = rss_kb() - before;
	held = g->qs->used.branch_bytes;
	begin(g);
	rc = qspace_branch_commit(g->qs, b);
	commit(g);
	CU_ASSERT_EQUAL(rc, QSPACE_AGAIN);
	carry_out(g, &m);
	printf("\n    %ld enqueues and %ld dequeues of 1 KiB in one transaction: %ld KB of memory more (the cache too), %ld batches to the end in %.2f s, "
	    "%.1f ms of processor each, the longest %.1f ms ", n, n, grown, m.batches, (double)m.all_us / 1e6,
	    (double)m.cpu_us / 1e3 / (double)m.batches, (double)m.longest_us / 1e3);
	CU_ASSERT_EQUAL(stat_of(g, "out").messages, n);
	CU_ASSERT_EQUAL(stat_of(g, "in").messages, 0);
	CU_ASSERT_TRUE(held < 2 * n * 500);	/* not what their bodies are */
	b = tx(g, "t2");	/* and 200,000 dequeues, which come back */
	for (long i = 0; i < n;) {
		begin(g);
		for (int k = 0; k < 64 && i < n; k++, i++) {
			struct qmsg *got;
			CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "out", NULL, &got), 0);
			CU_ASSERT_EQUAL(atol((const char *)got->body), i);
			qmsg_free(got);
		}
		commit(g);
	}
	begin(g);
	rc = qspace_branch_rollback(g->qs, b);
	commit(g);
	CU_ASSERT_EQUAL(rc, QSPACE_AGAIN);
	carry_out(g, &m);
	printf("\n    and %ld of them rolled back: %ld batches in %.2f s, %.1f ms of processor each, the longest %.1f ms ", n, m.batches,
	    (double)m.all_us / 1e6, (double)m.cpu_us / 1e3 / (double)m.batches, (double)m.longest_us / 1e3);
	CU_ASSERT_EQUAL(stat_of(g, "out").held, 0);
	CU_ASSERT_EQUAL(atol(next(g, "out")), 0);
	given_done(g);
}

/* R35: thousands of open transactions; what an operation walks over, and what it writes, is the same with them. */
static void
open_transactions_cost_others_nothing(void)
{
	struct given_space *g = given_large_space(100000);
	struct qspace_counts at[3];
	struct branch_id id;
	struct branch *b;
	char name[16];
	uint64_t steps[2], bytes[2];

	create_fifo(g, "in", 5, 0);
	create_fifo(g, "out", 5, 0);
	for (int i = 0; i < 11000; i++) {
		struct qmsg_in in = text("x");
		uint8_t msgid[TMMSGIDLEN];
		if (i % 100 == 0)
			begin(g);
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "in", &in, msgid), 0);
		if (i % 100 == 99)
			commit(g);
	}
	for (int round = 0; round < 2; round++) {
		qspace_counts(g->qs, &at[0]);
		for (int i = 0; i < 1500; i++) {	/* some windows of the next keys */
			snprintf(name, sizeof name, "s%d-%d", round, i);
			b = tx(g, name);
			CU_ASSERT_EQUAL(put_in(g, b, "out", text("y"), NULL), 0);
			CU_ASSERT_STRING_EQUAL(next_in(g, b, "in"), "x");
			tick(g);
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
		}
		qspace_counts(g->qs, &at[1]);
		steps[round] = at[1].steps - at[0].steps;
		bytes[round] = at[1].log_bytes - at[0].log_bytes;
		for (int i = 0; round == 0 && i < 10000; i++) {
			snprintf(name, sizeof name, "open-%d", i);
			id = (struct branch_id){ .len = (uint8_t)strlen(name) };
			memcpy(id.gtrid, name, id.len);
			if (i % 100 == 0)
				begin(g);
			CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, clock_now_us() + INT64_C(3600) * 1000000, &b), 0);
			if (i % 2 == 0) {
				struct qmsg *m;
				CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "in", NULL, &m), 0);
				qmsg_free(m);
			}
			if (i % 100 == 99)
				commit(g);
		}
	}
	CU_ASSERT_TRUE(steps[1] <= 2 * steps[0] + 100);
	CU_ASSERT_TRUE(bytes[1] <= 2 * bytes[0]);
	given_done(g);
}

/* R29: one long transaction is open while others look again and again; nothing of it piles up. */
static void
looking_beside_a_long_transaction_takes_nothing(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect look = { .flags = TPQPEEK };
	long n = scaled(100000, 1000000), after_some = 0;
	DB_TXN_STAT *txn;
	struct branch *b;
	uint32_t flags = 0;

	create_fifo(g, "in", 5, 0);
	for (int i = 0; i < 200; i++)
		CU_ASSERT_EQUAL_FATAL(put(g, "in", "x"), 0);
	b = tx(g, "long");
	for (int i = 0; i < 100; i++)
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "in"), "x");
	for (long i = 0; i < n; i++) {
		struct document in = { 0 }, out = { 0 };
		char *why = NULL;
		struct qmsg *m;
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "in", &look, &m), 0);
		qmsg_free(m);
		if (i % 100 == 0) {
			record_set(document_add(&in), "queue", "in");
			CU_ASSERT_EQUAL(qadmin_run(g->qs, "qlist", &in.rec[0], &out, &why), 0);
			document_free(&in);
			document_free(&out);
			free(why);
		}
		if (i == n / 10)
			after_some = rss_kb();
	}
#ifndef TEST_SANFLAGS	/* a sanitizer keeps what was freed */
	CU_ASSERT_TRUE(rss_kb() - after_some < 1024);
#else
	(void)after_some;
#endif
	CU_ASSERT_EQUAL(g->qs->env.e->get_open_flags(g->qs->env.e, &flags), 0);
	CU_ASSERT_EQUAL(flags & DB_INIT_LOCK, 0);	/* no locks at all, so none that pile up */
	CU_ASSERT_EQUAL_FATAL(g->qs->env.e->txn_stat(g->qs->env.e, &txn, 0), 0);
	CU_ASSERT_EQUAL(txn->st_nactive, 0);
	free(txn);
	CU_ASSERT_EQUAL(stat_of(g, "in").held, 100);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "in").messages, 100);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(many_in_one_transaction),
		UNIT(open_transactions_cost_others_nothing),
		UNIT(looking_beside_a_long_transaction_takes_nothing),
	};

	return unit_run("qspace many in transactions", tests, UNIT_COUNT(tests));
}
