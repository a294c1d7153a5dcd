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
	for (int i = 0; i < 3; i++) {
		begin(g);
		due = qspace_tick(g->qs, clock_now_us());
		commit(g);
		CU_ASSERT_EQUAL(due <= clock_now_us(), i < 2);	/* bounded pieces */
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

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(not_before_its_time_and_not_later),
		UNIT(the_tick_says_when_and_whoever_waits_is_told),
		UNIT(time_orders_a_queue_of_time),
		UNIT(what_has_expired_is_never_delivered_and_gives_its_room_back),
		UNIT(what_expires_in_a_transaction_goes_when_it_ends),
		UNIT(a_clock_that_was_set_back_is_refused_and_loses_nothing),
	};
	return unit_run("qspace time", tests, UNIT_COUNT(tests));
}
