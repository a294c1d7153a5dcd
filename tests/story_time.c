/*
 * story_time - messages that come and go at their time, with real processes: never early, to the millisecond and not to the scan; and
 * a space whose last use lies in the future.
 */
#include <string.h>
#include <time.h>

#include "given.h"

#define ROOM "qcreate ROOM fifo none 5 0 100% 0% \"\"\n"

static double
wall_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
put_timed(const char *text, long flags, long deq_time, long exp_time)
{
	TPQCTL ctl = { .flags = flags, .deq_time = deq_time, .exp_time = exp_time };
	char *data = tpalloc("STRING", NULL, 64);

	strcpy(data, text);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", &ctl, data, 0, 0));
	tpfree(data);
}

static void
wait_for(const char *text, long flags)
{
	TPQCTL ctl = { .flags = TPQWAIT | flags };
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	GIVEN_CALL_OK(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME));
	CU_ASSERT_STRING_EQUAL(data, text);
	tpfree(data);
}

static void	/* Late by a busy machine, sometimes; by a scan unit, each time. */
whoever_waits_gets_it_at_its_time(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ROOM });
	double sent, late, least = 10;
	time_t at;

	for (int i = 0; i < 3; i++) {
		sent = now_s();
		put_timed("relative", TPQTIME_REL, 1, 0);
		wait_for("relative", i == 1 ? TPQPEEK : 0);
		late = now_s() - sent - 1;
		CU_ASSERT_TRUE(late >= 0);
		least = late < least ? late : least;
		if (i == 1)
			wait_for("relative", 0);
	}
	CU_ASSERT_TRUE(least < 0.25);
	at = (time_t)wall_s() + 2;
	put_timed("absolute", TPQTIME_ABS, at, 0);
	wait_for("absolute", 0);
	CU_ASSERT_TRUE(wall_s() >= (double)at);
	given_done(g);
}

static void
an_expired_message_is_not_even_seen(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ROOM });
	double sent = now_s(), stored, asked;

	put_timed("short", TPQEXPTIME_REL, 0, 1);
	stored = now_s();
	do
		asked = now_s();
	while (peeks("ROOM", "short"));
	CU_ASSERT_TRUE(now_s() >= sent + 1);
	CU_ASSERT_TRUE(asked < stored + 30);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);		/* its room is free as well */
	given_done(g);
}

/* Used by a qmadmin whose clock is an hour ahead; then TMQUEUE and qmadmin refuse it and tell the way out, which works. */
static void
a_space_that_was_used_in_the_future_is_refused_with_a_way_out(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ROOM });
	struct ran r;

	put("ROOM", "kept");
	tpterm();
	given_shutdown(g);
	given_write(g, "ahead.c",
	    "#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n"
	    "int clock_gettime(clockid_t id, struct timespec *ts)\n"
	    "{ int rc = (int)syscall(SYS_clock_gettime, id, ts); if (id == CLOCK_REALTIME) ts->tv_sec += 3600; return rc; }\n");
	free(given_ok(g, NULL, "cc -shared -fPIC -o ahead.so ahead.c"));
	free(given_ok(g, "qopen QSPACE\nqcreate ANOTHER fifo none 0 0 100% 0% \"\"\nqclose\nquit\n",
	    "ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS LD_PRELOAD=./ahead.so qmadmin"));
	r = given_run(g, "qopen QSPACE\nquit\n", "qmadmin 2>&1");
	CU_ASSERT_TRUE(has(r.out, "1502"));
	CU_ASSERT_TRUE(has(r.out, "ATMIQ_CLOCK_BACK=accept"));
	ran_free(&r);
	r = given_run(g, NULL, "tmboot -y");
	CU_ASSERT_NOT_EQUAL(r.status, 0);
	ran_free(&r);
	CU_ASSERT_TRUE(given_logged(g, "1502"));
	CU_ASSERT_TRUE(given_logged(g, "ATMIQ_CLOCK_BACK=accept"));
	r = given_run(g, NULL, "tmshutdown -y -c");
	ran_free(&r);
	r = given_run(g, NULL, "ATMIQ_CLOCK_BACK=accept tmboot -y");
	CU_ASSERT_EQUAL(r.status, 0);
	ran_free(&r);
	CU_ASSERT_TRUE(given_logged(g, ": accepted"));
	CU_ASSERT_TRUE(peeks("ROOM", "kept"));
	tpterm();
	free(given_ok(g, NULL, "tmshutdown -y"));
	given_boot(g);			/* and from then on as ever */
	CU_ASSERT_TRUE(peeks("ROOM", "kept"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(whoever_waits_gets_it_at_its_time),
		UNIT(an_expired_message_is_not_even_seen),
		UNIT(a_space_that_was_used_in_the_future_is_refused_with_a_way_out),
	};
	return unit_run("time", tests, UNIT_COUNT(tests));
}
