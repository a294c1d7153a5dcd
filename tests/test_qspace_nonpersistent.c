/*
 * Non-persistent messages: every rule holds for them, and only a crash loses them (D7).  A close in good order keeps
 * them: test_qspace_keep.
 */
#include <sys/wait.h>

#include "given_space.h"

static struct qmsg_in
np(const char *body)
{
	struct qmsg_in in = text(body);

	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	return in;
}

static void	/* The owner ended without a close. */
crash(struct given_space *g)
{
	int status;
	pid_t pid;

	qspace_close(g->qs);
	if ((pid = fork()) == 0) {
		given_open(g);
		_exit(0);
	}
	CU_ASSERT_TRUE_FATAL(waitpid(pid, &status, 0) == pid && status == 0);
	given_open(g);
}

static void
they_stand_in_one_order_with_the_others(void)
{
	struct given_space *g = given_space(NULL);
	char body[32];

	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(body, sizeof body, "%d", i);
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", i % 3 ? np(body) : text(body), NULL), 0);
	}
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1000);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 2000);
	for (int i = 0; i < 2000; i++) {
		snprintf(body, sizeof body, "%d", i);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	reopen(g);
	for (int i = 2000; i < 3000; i++) {
		snprintf(body, sizeof body, "%d", i);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	given_done(g);
}

static void
they_cost_no_flush(void)
{
	struct given_space *g = given_space(NULL);
	struct qspace_counts a, b;

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("x"), NULL), 0);
	qspace_counts(g->qs, &a);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("x"), NULL), 0);
	for (int i = 0; i < 101; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "x");
	qspace_counts(g->qs, &b);
	CU_ASSERT_EQUAL(b.flushes, a.flushes);
	given_done(g);
}

static void
they_obey_transactions_and_retries(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 1, 0);
	create_fifo(g, "ERRQ", 0, 0);
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", np("never"), NULL), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", np("one"), NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	for (int i = 0; i < 2; i++) {
		b = tx(g, "t2");
		CU_ASSERT_EQUAL_FATAL(take(g, b, "orders", NULL, &m), 0);
		CU_ASSERT_EQUAL(m->retries, i);
		CU_ASSERT_FALSE(m->persistent);
		qmsg_free(m);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	}
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").np_messages, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "one");
	given_done(g);
}

static void
an_aborted_batch_undoes_them_too(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = np("x");
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("stays"), NULL), 0);
	begin(g);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
	qmsg_free(m);
	qspace_batch_abort(g->qs);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "stays");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Until it says no, again and again, with large and small ones; then there is room again. */
their_memory_is_a_limit(void)
{
	struct given_space *g = given_space(NULL);
	size_t sizes[] = { 0, 10, 1000, 30000 };
	char *body = calloc(1, 30000);
	struct qmsg_in in = np("");
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	for (int round = 0; round < 8; round++) {
		int n = 0, rc;
		in.body = body;
		in.body_len = sizes[round % 4];
		while ((rc = put_in(g, NULL, "orders", in, NULL)) == 0)
			n++;
		CU_ASSERT_EQUAL(rc, QMENOSPACE);
		CU_ASSERT_TRUE(n >= (int)((1 << 20) / (sizes[round % 4] + 200)));
		CU_ASSERT_EQUAL(put(g, "orders", "persistent ones have room of their own"), 0);
		while (take(g, NULL, "orders", NULL, &m) == 0) {
			CU_ASSERT_TRUE(!m->persistent || round >= 0);
			qmsg_free(m);
		}
		CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	}
	free(body);
	given_done(g);
}

/* Every attribute there is, no body, every message delayed: what they take besides the body is counted, or Berkeley DB
 * would run out of memory before the limit is reached, and that is QMEOS for everybody. */
static void
what_they_take_besides_the_body_is_counted(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct qmsg_in in = np("");
	char name[TMQNAMELEN + 1];
	struct qmsg *m;
	uint8_t id[TMMSGIDLEN];
	int n = 0, rc = 0;

	memset(name, 'n', TMQNAMELEN);
	name[TMQNAMELEN] = '\0';
	p.nonpersistent_bytes = 24 << 20;
	p.messages = 1000000;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	in.flags |= TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQTIME_REL | TPQEXPTIME_REL;
	in.replyqueue = in.failurequeue = name;
	in.deq_time = 50;
	in.exp_time = 1000;
	in.body_len = 0;
	while (rc == 0) {
		begin(g);
		for (int i = 0; i < 1000 && rc == 0; i++, n++) {
			in.corrid[i % TMCORRIDLEN] = (char)(n >> i % 8);
			rc = qspace_enqueue(g->qs, NULL, "orders", &in, id);
		}
		if (rc == 0 || rc == QMENOSPACE)
			commit(g);
		else
			qspace_batch_abort(g->qs);
	}
	printf("(%d messages) ", n);
	CU_ASSERT_EQUAL(rc, QMENOSPACE);
	CU_ASSERT_EQUAL(put(g, "orders", "persistent ones do not notice"), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "persistent ones do not notice");
	clock_shift_us(51 * 1000000LL);
	for (int i = 0; i < 100; i++) {
		tick(g);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
		qmsg_free(m);
	}
	clock_shift_us(-51 * 1000000LL);
	given_done(g);
}

static void
without_memory_for_them_they_are_refused(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct queue_params q = queue_of("orders", QC_FIFO, 0, 0, 0);

	p.nonpersistent_bytes = 0;
	g = given_space(&p);
	q.default_nonpersistent = true;
	create(g, &q);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("x"), NULL), QMENOSPACE);
	CU_ASSERT_EQUAL(put(g, "orders", "x"), QMENOSPACE);	/* the queue's policy */
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void
a_prepared_branch_keeps_what_is_persistent_in_a_crash(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "p");
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("n"), NULL), 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "p");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "n");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", np("n2"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("p2"), NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "G"), 0);
	commit(g);
	crash(g);
	CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "t1")), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "p2");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Their memory is used again, whatever went through it: it was a cache too small for a segment. */
their_memory_is_used_again(void)
{
	struct given_space *g = given_space(NULL);
	static char body[40000];
	struct qmsg_in in = np("");
	struct qmsg *m;
	int put = 0, taken = 0;

	create_fifo(g, "orders", 0, 0);
	in.body = body;
	for (int i = 0; i < 8000; i++) {		/* some 160 MB, of which 600 kB at most are there at a time */
		in.body_len = (size_t)(i * 7919) % sizeof body;
		body[0] = (char)put;
		if (put_in(g, NULL, "orders", in, NULL) != 0) {
			CU_FAIL("no memory");
			break;
		}
		put++;
		if (put - taken <= 15 + i % 16)
			continue;
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
		CU_ASSERT_TRUE(m->body_len == 0 || m->body[0] == (uint8_t)taken);
		taken++;
		qmsg_free(m);
	}
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(they_stand_in_one_order_with_the_others),
		UNIT(they_cost_no_flush),
		UNIT(they_obey_transactions_and_retries),
		UNIT(an_aborted_batch_undoes_them_too),
		UNIT(their_memory_is_a_limit),
		UNIT(their_memory_is_used_again),
		UNIT(what_they_take_besides_the_body_is_counted),
		UNIT(without_memory_for_them_they_are_refused),
		UNIT(a_prepared_branch_keeps_what_is_persistent_in_a_crash),
	};
	return unit_run("qspace nonpersistent", tests, UNIT_COUNT(tests));
}
