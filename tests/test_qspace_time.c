/*
 * Time: availability, expiry, retry delays, deadlines, and a clock that was set back.  The clock is moved, nobody
 * waits.
 */
#include "given_space.h"

#define SECOND INT64_C(1000000)
static int64_t shifted;

static void
later(int64_t us)
{
	clock_shift_us(us);
	shifted += us;
}

static void
done(struct given_space *g)
{
	given_done(g);
	later(-shifted);
}

static struct qmsg_in
at(const char *body, int64_t seconds)
{
	struct qmsg_in in = text(body);

	in.flags = TPQTIME_REL;
	in.deq_time = seconds;
	return in;
}

static struct qmsg_in
until(const char *body, int64_t seconds)
{
	struct qmsg_in in = text(body);

	in.flags = TPQEXPTIME_REL;
	in.exp_time = seconds;
	return in;
}

static void
not_before_its_time_and_not_later(void)
{
	struct given_space *g = given_space(NULL);
	int64_t now = clock_now_us();
	struct qmsg_in in = text("absolute");

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", at("in a minute", 60), NULL), 0);
	in.flags = TPQTIME_ABS;
	in.deq_time = now / SECOND + 100;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	in.deq_time = 1;		/* long past */
	in.body = "now......";
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "now......");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	reopen(g);
	later(59 * SECOND);
	CU_ASSERT_FALSE(qspace_has_eligible(g->qs, "orders"));
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	later(SECOND);
	CU_ASSERT_TRUE(qspace_has_eligible(g->qs, "orders"));
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "in a minute");	/* no tick was needed */
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	later(40 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "absolute");
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 0);
	done(g);
}

static int told;
static void
tell(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	(void)arg, (void)queue, (void)msgid, (void)corrid;
	told++;
}

static void
the_tick_says_when_and_whoever_waits_is_told(void)
{
	struct given_space *g = given_space(NULL);
	int64_t now = clock_now_us(), due;

	create_fifo(g, "orders", 0, 0);
	qspace_on_eligible(g->qs, tell, NULL);
	told = 0;
	for (int i = 0; i < 3000; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", at("x", 60), NULL), 0);
	begin(g);
	due = qspace_tick(g->qs, clock_now_us());
	commit(g);
	CU_ASSERT_TRUE(due >= now + 60 * SECOND && due < now + 75 * SECOND);
	later(80 * SECOND);
	for (int i = 0; i < 12; i++) {
		begin(g);
		due = qspace_tick(g->qs, clock_now_us());
		commit(g);
		CU_ASSERT_EQUAL(due <= clock_now_us(), i < 11);	/* bounded pieces */
	}
	CU_ASSERT_EQUAL(told, 3000);
	CU_ASSERT_EQUAL(due, INT64_MAX);
	done(g);
}

static void
time_orders_a_queue_of_time(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("plan", QC_TIME, QC_FIFO, 0, 0),
			    e = queue_of("soonest", QC_EXPIRATION, QC_FIFO, 0, 0);

	create(g, &p);
	create(g, &e);
	CU_ASSERT_EQUAL(put_in(g, NULL, "plan", at("third", 30), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "plan", at("first", 10), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "plan", at("second", 20), NULL), 0);
	CU_ASSERT_EQUAL(put(g, "soonest", "never"), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "soonest", until("late", 300), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "soonest", until("soon", 200), NULL), 0);
	later(60 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "plan"), "first");
	CU_ASSERT_STRING_EQUAL(next(g, "plan"), "second");
	CU_ASSERT_STRING_EQUAL(next(g, "plan"), "third");
	CU_ASSERT_STRING_EQUAL(next(g, "soonest"), "soon");
	CU_ASSERT_STRING_EQUAL(next(g, "soonest"), "late");
	CU_ASSERT_STRING_EQUAL(next(g, "soonest"), "never");
	done(g);
}

static void
what_has_expired_is_never_delivered_and_gives_its_room_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = until("zero", 0);
	struct queue_params p;

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);	/* gone at once, and no error */
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", until("short", 10), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", until("long", 100), NULL), 0);
	in = at("never seen", 50);
	in.flags |= TPQEXPTIME_REL;
	in.exp_time = 20;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(qspace_queue_get(g->qs, "orders", &p, NULL), 0);
	p.default_expiration = 15;
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_change(g->qs, &p), 0);
	commit(g);
	CU_ASSERT_EQUAL(put(g, "orders", "by default"), 0);
	in = text("not by default");
	in.flags = TPQEXPTIME_NONE;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 5);
	reopen(g);
	later(12 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "long");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 3);
	later(12 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "not by default");
	done(g);
}

static void	/* A transaction is never failed by expiry: committed, it was delivered; rolled back, it is gone. */
what_expires_in_a_transaction_goes_when_it_ends(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *a, *b;

	create_fifo(g, "orders", 5, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", until("one", 10), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", until("two", 10), NULL), 0);
	a = tx(g, "a");
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(next_in(g, a, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "two");
	CU_ASSERT_EQUAL(put_in(g, a, "orders", until("three", 10), NULL), 0);
	later(20 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 2);
	CU_ASSERT_EQUAL(tx_commit(g, a), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	reopen(g);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	done(g);
}

static void
a_clock_that_was_set_back_is_refused_and_loses_nothing(void)
{
	struct given_space *g = given_space(NULL);
	char *why = NULL;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "kept");
	later(3600 * SECOND);
	reopen(g);
	qspace_close(g->qs);
	later(-3600 * SECOND);
	CU_ASSERT_EQUAL(qspace_open(g->device, "QS", NULL, &g->qs, &why), QMESYSTEM);
	CU_ASSERT_PTR_NULL(g->qs);
	CU_ASSERT_PTR_NOT_NULL_FATAL(why);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "QM_CAT:1502"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "ATMIQ_CLOCK_BACK=accept"));
	free(why);
	setenv("ATMIQ_CLOCK_BACK", "accept", 1);
	given_open(g);
	unsetenv("ATMIQ_CLOCK_BACK");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "kept");
	reopen(g);			/* and from here on it is a clock like any other */
	done(g);
}

static struct qmsg_in
timed(const char *body, uint32_t flags, int64_t deq_time, int64_t exp_time)
{
	struct qmsg_in in = text(body);

	in.flags = flags;
	in.deq_time = deq_time;
	in.exp_time = exp_time;
	return in;
}

static void	/* One microsecond before, and then. */
to_the_microsecond(void)
{
	struct given_space *g;
	int64_t now;

	clock_stop();
	g = given_space(NULL);
	now = clock_now_us();
	create_fifo(g, "q", 0, 0);
	put_in(g, NULL, "q", timed("relative", TPQTIME_REL, 2, 0), NULL);
	put_in(g, NULL, "q", timed("absolute", TPQTIME_ABS, now / SECOND + 4, 0), NULL);
	later(2 * SECOND - 1);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	later(1);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "relative");
	later((now / SECOND + 4) * SECOND - clock_now_us() - 1);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	CU_ASSERT_FALSE(qspace_has_eligible(g->qs, "q"));
	later(1);
	CU_ASSERT_TRUE(qspace_has_eligible(g->qs, "q"));
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "absolute");
	for (int i = 0; i < 2; i++) {		/* by order, and by a peek */
		put_in(g, NULL, "q", timed("short", TPQEXPTIME_REL, 0, 3), NULL);
		later(3 * SECOND - 1);
		CU_ASSERT_TRUE(qspace_has_eligible(g->qs, "q"));
		later(1);
		CU_ASSERT_FALSE(qspace_has_eligible(g->qs, "q"));
		if (i == 0)
			CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	}
	done(g);
	clock_go();
}

static void
times_that_are_absurd_are_refused_or_never(void)
{
	struct given_space *g = given_space(NULL);
	const int64_t huge[] = { INT64_MAX, INT64_MAX / 1000000, INT64_MAX / 1000000 - 1, INT64_C(1) << 40 };

	create_fifo(g, "q", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQTIME_ABS, -1, 0), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQTIME_REL, -1, 0), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_ABS, 0, -1), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_REL, 0, INT64_MIN), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQTIME_ABS | TPQTIME_REL, 0, 0), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_ABS | TPQEXPTIME_NONE, 0, 9), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_REL | TPQEXPTIME_NONE, 0, 9), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_REL | TPQEXPTIME_ABS, 0, 9), NULL), QMEINVAL);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_ABS, 0, 0), NULL), 0);	/* gone at once, and no error */
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_ABS, 0, 1), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("x", TPQEXPTIME_REL, 0, 0), NULL), 0);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("never", TPQTIME_ABS, huge[i], 0), NULL), 0);
		CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("never", TPQTIME_REL, huge[i], 0), NULL), 0);
		CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("for ever", TPQEXPTIME_ABS, 0, huge[i]), NULL), 0);
		CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("for ever", TPQEXPTIME_REL, 0, huge[i]), NULL), 0);
	}
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("at once", TPQTIME_REL, 0, 0), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "q", timed("at once", TPQTIME_ABS, 0, 0), NULL), 0);
	reopen(g);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").delayed, 8);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "for ever");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "at once");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "at once");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	done(g);
}

static void
expiry_before_availability_is_never_delivered(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "q", 0, 0);
	put_in(g, NULL, "q", timed("never", TPQTIME_REL | TPQEXPTIME_REL, 20, 10), NULL);
	put_in(g, NULL, "q", timed("never", TPQTIME_REL | TPQEXPTIME_REL, 20, 20), NULL);
	put_in(g, NULL, "q", timed("once", TPQTIME_REL | TPQEXPTIME_REL, 20, 40), NULL);
	later(11 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 2);
	later(10 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "once");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	done(g);
}

static void	/* Changing a queue's default does not touch what is stored. */
the_default_counts_when_a_message_arrives(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("q", QC_FIFO, 0, 0, 0);

	p.default_expiration = 10;
	create(g, &p);
	put(g, "q", "ten");
	p.default_expiration = 100;
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_change(g->qs, &p), 0);
	commit(g);
	put(g, "q", "hundred");
	put_in(g, NULL, "q", timed("none", TPQEXPTIME_NONE, 0, 0), NULL);
	put_in(g, NULL, "q", timed("thousand", TPQEXPTIME_REL, 0, 1000), NULL);
	reopen(g);
	later(11 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 3);
	later(90 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 2);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "none");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "thousand");
	done(g);
}

/* Back by an hour while it runs: nothing is lost, what is due by the new clock comes, what was delayed until a time of the old one
 * comes when the new one gets there; the order of what is there does not change. */
static void
the_clock_set_back_while_running(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "q", 9, 0);
	put(g, "q", "first");
	put_in(g, NULL, "q", timed("in a minute", TPQTIME_REL, 60, 0), NULL);
	put_in(g, NULL, "q", timed("held", TPQEXPTIME_REL, 0, 10), NULL);
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "q"), "first");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "q"), "held");
	later(20 * SECOND);
	tick(g);			/* "held" has expired, and is passed over */
	later(-3600 * SECOND);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);	/* it has not, by this clock */
	tick(g);
	put(g, "q", "second");
	put_in(g, NULL, "q", timed("soon", TPQTIME_REL, 30, 0), NULL);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 5);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "first");
	later(31 * SECOND);
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "q").delayed, 1);
	later(3570 * SECOND);
	tick(g);			/* there again: now it goes */
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 3);
	later(41 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "in a minute");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "second");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "soon");
	CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
	done(g);
}

static void	/* Whoever is killed afterwards can open it again; so can who accepted a time that has not come. */
the_time_of_last_use_follows_the_clock(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "q", 0, 0);
	tick(g);
	later(-3600 * SECOND);
	tick(g);			/* nobody has used it since */
	given_killed(g);
	put(g, "q", "kept");
	later(3600 * SECOND);
	reopen(g);
	qspace_close(g->qs);
	later(-3600 * SECOND);
	setenv("ATMIQ_CLOCK_BACK", "accept", 1);
	given_open(g);
	unsetenv("ATMIQ_CLOCK_BACK");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "kept");
	given_killed(g);
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	done(g);
}

static void	/* A day forward, and over a restart: what is due by the new clock is there. */
the_clock_set_forward(void)
{
	for (int restart = 0; restart < 2; restart++) {
		struct given_space *g = given_space(NULL);
		struct queue_params p = queue_of("q", QC_FIFO, 0, 0, 0);
		struct branch *b;

		p.retries = 3;
		p.retry_delay = 600;
		create(g, &p);
		put(g, "q", "failed");
		b = tx(g, "b");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "q"), "failed");
		CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
		put_in(g, NULL, "q", timed("delayed", TPQTIME_REL, 7200, 0), NULL);
		put_in(g, NULL, "q", timed("expired", TPQEXPTIME_REL, 0, 7200), NULL);
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "expired");
		put_in(g, NULL, "q", timed("expired", TPQEXPTIME_REL, 0, 7200), NULL);
		later(86400 * SECOND);
		if (restart)
			reopen(g);
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "failed");
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "delayed");
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
		tick(g);
		CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
		done(g);
	}
}

static void	/* Ticks do not look at what is not due: a thousand queues, twenty thousand branches' worth of deadlines. */
a_tick_walks_over_nothing(void)
{
	struct qspace_params params = given_params("QS");
	struct qspace_counts before, after;
	struct given_space *g;
	struct branch_id id = { .len = 4 };
	struct branch *b;

	params.queues = 400;
	params.trans = 2000;
	g = given_space(&params);
	begin(g);
	for (int i = 0; i < 300; i++) {
		struct queue_params p = queue_of("", QC_FIFO, 0, 0, 0);
		struct qmsg_in in = timed("later", TPQTIME_REL, 1000 + i, 0);
		uint8_t msgid[TMMSGIDLEN];
		snprintf(p.name, sizeof p.name, "q%d", i);
		CU_ASSERT_EQUAL_FATAL(qspace_queue_create(g->qs, &p), 0);
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, p.name, &in, msgid), 0);
	}
	for (int i = 0; i < 2000; i++) {
		memcpy(id.gtrid, &i, sizeof i);
		CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, clock_now_us() + (2000 - i) * SECOND, &b), 0);
	}
	commit(g);
	tick(g);
	qspace_counts(g->qs, &before);
	for (int i = 0; i < 100; i++) {		/* a second each: one branch is out of time in each */
		clock_pass_us(SECOND);
		tick(g);
	}
	qspace_counts(g->qs, &after);
	CU_ASSERT_TRUE(after.steps - before.steps <= 10);
	for (int i = 0; i < 2000; i++) {
		memcpy(id.gtrid, &i, sizeof i);
		CU_ASSERT_EQUAL(qspace_branch_find(g->qs, &id) == NULL, i >= 2000 - 100);
	}
	clock_pass_us(1000 * SECOND);
	CU_ASSERT_STRING_EQUAL(next(g, "q0"), "later");
	CU_ASSERT_STRING_EQUAL(next(g, "q99"), "later");
	CU_ASSERT_STRING_EQUAL(next(g, "q150"), "");
	clock_pass_us(-1100 * SECOND);
	given_done(g);
}

static void	/* The time that is the first of all is one, and not that of who gives none. */
the_epoch_is_a_time_like_others(void)
{
	struct queue_params p = queue_of("timed", QC_TIME, QC_FIFO, 0, 0);
	struct given_space *g = given_space(NULL);

	create(g, &p);
	put(g, "timed", "now");
	put_in(g, NULL, "timed", timed("later", TPQTIME_ABS, 1, 0), NULL);
	put_in(g, NULL, "timed", timed("first", TPQTIME_ABS, 0, 0), NULL);
	CU_ASSERT_STRING_EQUAL(next(g, "timed"), "first");
	CU_ASSERT_STRING_EQUAL(next(g, "timed"), "later");
	CU_ASSERT_STRING_EQUAL(next(g, "timed"), "now");
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_epoch_is_a_time_like_others),
		UNIT(not_before_its_time_and_not_later),
		UNIT(the_tick_says_when_and_whoever_waits_is_told),
		UNIT(time_orders_a_queue_of_time),
		UNIT(what_has_expired_is_never_delivered_and_gives_its_room_back),
		UNIT(what_expires_in_a_transaction_goes_when_it_ends),
		UNIT(a_clock_that_was_set_back_is_refused_and_loses_nothing),
		UNIT(to_the_microsecond),
		UNIT(times_that_are_absurd_are_refused_or_never),
		UNIT(expiry_before_availability_is_never_delivered),
		UNIT(the_default_counts_when_a_message_arrives),
		UNIT(the_clock_set_back_while_running),
		UNIT(the_time_of_last_use_follows_the_clock),
		UNIT(the_clock_set_forward),
		UNIT(a_tick_walks_over_nothing),
	};
	return unit_run("qspace time", tests, UNIT_COUNT(tests));
}
