/*
 * Capacity commands: once when use reaches the high mark, again only after it fell to the low mark; over transactions,
 * aborted batches, restarts and crashes.
 */
#include <sys/wait.h>

#include "given_space.h"

static int fired;
static char fired_queue[32], fired_cmd[128];
static bool can_run = true;

static bool
on_threshold(void *arg, const char *queue, const char *cmd)
{
	(void)arg;
	if (!can_run)
		return false;
	fired++;
	snprintf(fired_queue, sizeof fired_queue, "%s", queue);
	snprintf(fired_cmd, sizeof fired_cmd, "%s", cmd);
	return true;
}

static void
listen(struct given_space *g)
{
	fired = 0;
	can_run = true;
	qspace_on_threshold(g->qs, on_threshold, NULL);
}

static struct queue_params
marked(const char *name, long high, long low, char unit)
{
	struct queue_params p = queue_of(name, QC_FIFO, 0, 0, 0);

	p.persistent = (struct threshold){ .high = high, .low = low, .unit = unit, .cmd = "run me" };
	return p;
}

static struct given_space *
given_marked(long high, long low, char unit)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = marked("orders", high, low, unit);

	p.retries = 1000;
	create(g, &p);
	listen(g);
	return g;
}

static void
change(struct given_space *g, const struct queue_params *p)
{
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_change(g->qs, p), 0);
	commit(g);
}

static struct qmsg_in
sized(size_t n, bool is_np)
{
	static char body[1 << 16];
	struct qmsg_in in = text("");

	in.body = body;
	in.body_len = n;
	if (is_np) {
		in.flags = TPQDELIVERYQOS;
		in.delivery_qos = TPQQOSNONPERSISTENT;
	}
	return in;
}

static void
puts_n(struct given_space *g, int n)
{
	while (n-- > 0)
		CU_ASSERT_EQUAL(put(g, "orders", "x"), 0);
}

static void
takes_n(struct given_space *g, int n)
{
	while (n-- > 0)
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "x");
}

static void
it_runs_once_until_use_has_fallen_to_the_low_mark(void)
{
	struct given_space *g = given_marked(5, 2, 'm');

	puts_n(g, 4);
	CU_ASSERT_EQUAL(fired, 0);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 1);
	CU_ASSERT_STRING_EQUAL(fired_cmd, "run me");
	CU_ASSERT_STRING_EQUAL(fired_queue, "orders");
	puts_n(g, 3);
	takes_n(g, 5);			/* three left */
	puts_n(g, 5);
	CU_ASSERT_EQUAL(fired, 1);
	takes_n(g, 6);			/* two left: armed again */
	puts_n(g, 2);
	CU_ASSERT_EQUAL(fired, 1);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 2);
	given_done(g);
}

/* Each unit: so many bytes a message, the number of messages that reaches the mark, and that leaves it armed again. */
static void
every_unit_is_exact(void)
{
	static const struct { bool np; char unit; long high, low; size_t body; int reach, back; } t[] = {
		{ false, 'b', 1000, 100, 100, 10, 1 }, { false, 'B', 6, 3, 513, 3, 1 }, { false, 'm', 7, 0, 1, 7, 0 },
		{ false, '%', 10, 5, 1, 10, 5 }, { false, '%', 1, 0, 1, 1, 0 }, { false, '%', 100, 0, 1024, 50, 0 },
		{ true, '%', 50, 25, 2000, 0, 0 }, { true, 'b', 5000, 0, 10, 0, 0 }, { true, 'B', 20, 2, 700, 0, 0 },
	};

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct qspace_params sp = given_params("QS");
		struct queue_params p = marked("orders", 5, 1, 'm'), other = marked("other", 1, 0, '%');
		struct given_space *g;
		int64_t whole = t[i].np ? 32768 : 100, at;
		int n = 0;

		sp.pages = 100;
		sp.nonpersistent_bytes = 32768;
		g = given_space(&sp);
		p.persistent = (struct threshold){ .high = 100, .unit = '%' };
		*(t[i].np ? &p.nonpersistent : &p.persistent) =
		    (struct threshold){ .high = t[i].high, .low = t[i].low, .unit = t[i].unit, .cmd = "c" };
		other.persistent.cmd[0] = '\0';
		create(g, &p);
		create(g, &other);
		if (t[i].high < 100)
			put(g, "other", "what lies elsewhere does not count for this queue");
		listen(g);
		do {
			struct queue_stat st;
			CU_ASSERT_EQUAL_FATAL(put_in(g, NULL, "orders", sized(t[i].body, t[i].np), NULL), 0);
			n++;
			st = stat_of(g, "orders");
			at = t[i].unit == 'm' ? st.messages : t[i].unit == 'b' ? (t[i].np ? st.np_bytes : st.bytes) :
			    t[i].unit == 'B' ? (t[i].np ? (st.np_bytes + 511) / 512 : st.blocks) :
			    (t[i].np ? st.np_bytes : st.blocks) * 100;
			CU_ASSERT_EQUAL(fired, at >= t[i].high * (t[i].unit == '%' ? whole : 1));
		} while (fired == 0);
		if (!t[i].np)
			CU_ASSERT_EQUAL(n, t[i].reach);
		for (; stat_of(g, "orders").messages > t[i].back || stat_of(g, "orders").np_messages > t[i].back; n--)
			(void)next(g, "orders");
		for (; fired == 1; n++)
			CU_ASSERT_EQUAL_FATAL(put_in(g, NULL, "orders", sized(t[i].body, t[i].np), NULL), 0);
		CU_ASSERT_EQUAL(fired, 2);
		given_done(g);
	}
}

static void	/* One page of many is not 0 %. */
zero_percent_means_empty(void)
{
	struct given_space *g = given_marked(1, 0, '%');

	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1000 * 512 / 8, false), NULL), 0);
	for (int i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1000 * 512 / 8, false), NULL), 0);
	CU_ASSERT_EQUAL(fired, 1);
	CU_ASSERT_EQUAL(put(g, "orders", "last"), 0);
	for (int i = 0; i < 8; i++)
		(void)next(g, "orders");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(1000 * 512 / 8, false), NULL), 0);
	CU_ASSERT_EQUAL(fired, 1);
	given_done(g);
}

static void
a_transaction_counts_when_it_commits_and_as_a_whole(void)
{
	struct given_space *g = given_marked(5, 0, 'm');
	struct branch *b = tx(g, "t");

	puts_n(g, 4);
	for (int i = 0; i < 4; i++)		/* four in and four out: nobody ever saw eight, or none */
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_EQUAL(fired, 0);
	takes_n(g, 4);
	b = tx(g, "t");
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), 0);
	CU_ASSERT_EQUAL(fired, 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(fired, 0);
	b = tx(g, "t");
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), 0);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_EQUAL(fired, 1);		/* once, however far above the mark */
	b = tx(g, "t");
	for (int i = 0; i < 20; i++)
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);	/* held is not gone */
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 1);
	takes_n(g, 21 - 4);			/* not yet low: four left */
	b = tx(g, "t");				/* four out and four in: nobody ever saw more, or fewer */
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 1);
	given_done(g);
}

static void	/* A batch is many callers' work: what each of them saw counts. */
requests_of_one_batch_are_looked_at_one_by_one(void)
{
	struct given_space *g = given_marked(5, 0, 'm');
	struct qmsg_in in = text("x");
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	puts_n(g, 5);
	CU_ASSERT_EQUAL(fired, 1);
	begin(g);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
		qmsg_free(m);
	}
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	commit(g);
	CU_ASSERT_EQUAL(fired, 2);
	begin(g);				/* and what is undone was not */
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
		qmsg_free(m);
	}
	for (int i = 0; i < 9; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	qspace_batch_abort(g->qs);
	CU_ASSERT_EQUAL(fired, 2);
	takes_n(g, 4);
	puts_n(g, 9);
	CU_ASSERT_EQUAL(fired, 2);
	given_done(g);
}

static void
the_error_queue_and_expiry_count_too(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = marked("ERRQ", 2, 0, 'm'), q = marked("orders", 2, 0, 'm');
	struct qmsg_in in = text("x");
	struct branch *b;

	create(g, &p);
	create(g, &q);
	listen(g);
	in.flags = TPQEXPTIME_REL;
	in.exp_time = 100;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(fired, 1);
	b = tx(g, "t");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(fired, 2);
	CU_ASSERT_STRING_EQUAL(fired_queue, "ERRQ");
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(fired, 3);
	clock_shift_us(101 * 1000000LL);
	tick(g);
	clock_shift_us(-101 * 1000000LL);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(fired, 4);
	given_done(g);
}

static void
whether_it_is_armed_survives_a_restart(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = marked("orders", 5, 2, 'm');

	p.nonpersistent = (struct threshold){ .high = 4, .low = 1, .unit = 'B', .cmd = "np" };
	create(g, &p);
	listen(g);
	puts_n(g, 5);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(600, true), NULL), 0);
	CU_ASSERT_EQUAL(fired, 2);
	for (int i = 0; i < 3; i++) {
		reopen(g);
		listen(g);
		puts_n(g, 1);
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(600, true), NULL), 0);
		tick(g);
		CU_ASSERT_EQUAL(fired, 0);
	}
	takes_n(g, 5);
	for (int i = 0; i < 4; i++)
		(void)next(g, "orders");
	while (stat_of(g, "orders").messages > 1 || stat_of(g, "orders").np_messages > 0)
		(void)next(g, "orders");
	reopen(g);
	listen(g);
	while (stat_of(g, "orders").messages < 5)
		put(g, "orders", "x");
	CU_ASSERT_EQUAL(fired, 1);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", sized(600, true), NULL), 0);
	CU_ASSERT_EQUAL(fired, 2);
	CU_ASSERT_STRING_EQUAL(fired_cmd, "np");
	given_done(g);
}

static void
fill_and_die(struct given_space *g)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		given_open(g);
		listen(g);
		can_run = false;	/* the kill comes between the commit and the command */
		puts_n(g, 5);
		_exit(fired);
	}
	CU_ASSERT_TRUE_FATAL(waitpid(pid, &status, 0) == pid && status == 0);
}

static void	/* Else the forwarder that it starts never comes, and nothing ever takes the queue below the mark. */
a_command_that_a_crash_prevented_is_run_after_it(void)
{
	struct given_space *g = given_marked(5, 0, 'm');

	qspace_close(g->qs);
	g->qs = NULL;
	fill_and_die(g);
	given_open(g);			/* an administrator's look: nobody there to run it */
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 5);
	reopen(g);
	listen(g);
	tick(g);
	CU_ASSERT_EQUAL(fired, 1);
	tick(g);
	puts_n(g, 3);
	reopen(g);
	listen(g);
	tick(g);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 0);
	given_done(g);
}

static void
one_that_cannot_be_run_now_is_offered_again(void)
{
	struct given_space *g = given_marked(5, 0, 'm');
	int64_t now = clock_now_us();

	can_run = false;
	puts_n(g, 6);
	begin(g);
	CU_ASSERT_TRUE(qspace_tick(g->qs, now) <= now + 1000000);	/* a batch is wanted soon */
	commit(g);
	takes_n(g, 6);			/* even if use has fallen meanwhile: it did reach the mark */
	can_run = true;
	tick(g);
	CU_ASSERT_EQUAL(fired, 1);
	tick(g);
	puts_n(g, 5);			/* and it is armed, since use is low */
	CU_ASSERT_EQUAL(fired, 2);
	can_run = false;
	takes_n(g, 5);
	puts_n(g, 5);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), 0);	/* nothing left to be run for */
	commit(g);
	can_run = true;
	tick(g);
	CU_ASSERT_EQUAL(fired, 2);
	given_done(g);
}

static void	/* Once the command was run this is on disk within a batch or a second; a crash then runs nothing twice. */
that_it_was_run_is_remembered_over_a_crash(void)
{
	struct given_space *g = given_marked(5, 0, 'm');
	int status;
	pid_t pid;

	qspace_close(g->qs);
	g->qs = NULL;
	if ((pid = fork()) == 0) {
		given_open(g);
		listen(g);
		puts_n(g, 5);
		tick(g);
		_exit(fired != 1);
	}
	CU_ASSERT_TRUE_FATAL(waitpid(pid, &status, 0) == pid && status == 0);
	given_open(g);
	listen(g);
	tick(g);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 0);
	given_done(g);
}

static void
changing_the_marks_looks_anew(void)
{
	struct given_space *g = given_marked(5, 0, 'm');
	struct queue_params p = marked("orders", 5, 0, 'm');

	puts_n(g, 6);
	CU_ASSERT_EQUAL(fired, 1);
	p.retries = 7;			/* other attributes, and another command, are for the next time */
	snprintf(p.persistent.cmd, sizeof p.persistent.cmd, "other");
	change(g, &p);
	CU_ASSERT_EQUAL(fired, 1);
	p.persistent.high = 8;
	change(g, &p);			/* not reached: armed for it */
	CU_ASSERT_EQUAL(fired, 1);
	puts_n(g, 2);
	CU_ASSERT_EQUAL(fired, 2);
	CU_ASSERT_STRING_EQUAL(fired_cmd, "other");
	p.persistent.high = 3;
	change(g, &p);			/* reached already */
	CU_ASSERT_EQUAL(fired, 3);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 3);
	p.persistent.cmd[0] = '\0';
	change(g, &p);
	snprintf(p.persistent.cmd, sizeof p.persistent.cmd, "back");
	change(g, &p);			/* a queue that gets a command while it is full */
	CU_ASSERT_EQUAL(fired, 4);
	reopen(g);
	listen(g);
	puts_n(g, 1);
	CU_ASSERT_EQUAL(fired, 0);
	given_done(g);
}

/* --- a model --- */

static void
at_random_it_does_what_a_counter_would_do(void)
{
	struct given_space *g = given_marked(9, 4, 'm');
	unsigned r = 4711;
	int n = 0, want = 0, got = 0;
	bool armed = true;

	for (int step = 0; step < 4000; step++) {
		int k = 1, by;
		r = r * 1103515245 + 12345;
		by = n == 0 ? 1 : n > 14 ? -1 : r >> 16 & 1 ? 1 : -1;
		if ((r >> 17 & 7) == 0) {		/* a transaction of several */
			struct branch *b = tx(g, "t");
			k = by < 0 ? 1 + (int)(r >> 24) % n : 1 + (int)(r >> 24) % 12;
			for (int i = 0; i < k; i++) {
				if (by > 0)
					CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), 0);
				if (by < 0)
					CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
			}
			if (r >> 20 & 1) {
				CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
				continue;
			}
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
		} else if (by > 0) {
			puts_n(g, 1);
		} else {
			takes_n(g, 1);
		}
		n += by * k;
		if (armed && n >= 9) {
			armed = false;
			want++;
		} else if (n <= 4) {
			armed = true;
		}
		CU_ASSERT_EQUAL_FATAL(got + fired, want);
		if ((r >> 8 & 127) == 0) {
			got += fired;
			reopen(g);
			listen(g);
		}
	}
	CU_ASSERT_TRUE(want > 20);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(it_runs_once_until_use_has_fallen_to_the_low_mark),
		UNIT(every_unit_is_exact),
		UNIT(zero_percent_means_empty),
		UNIT(a_transaction_counts_when_it_commits_and_as_a_whole),
		UNIT(requests_of_one_batch_are_looked_at_one_by_one),
		UNIT(the_error_queue_and_expiry_count_too),
		UNIT(whether_it_is_armed_survives_a_restart),
		UNIT(a_command_that_a_crash_prevented_is_run_after_it),
		UNIT(one_that_cannot_be_run_now_is_offered_again),
		UNIT(that_it_was_run_is_remembered_over_a_crash),
		UNIT(changing_the_marks_looks_anew),
		UNIT(at_random_it_does_what_a_counter_would_do),
	};
	return unit_run("qspace threshold", tests, UNIT_COUNT(tests));
}
