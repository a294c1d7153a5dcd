/*
 * story_forward_absent - TMQFORWARD and services that are not there, go away, come back, or cannot be called.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "given_forward.h"

#define ONE_TRY "qcreate WORK fifo none 0 0 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n"

static struct given *	/* Every failure that is counted shows on the error queue. */
given_one_try(const char *options, const char *services)
{
	return given_system(&(struct given_conf){ .queues = ONE_TRY, .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = "RESTART=Y MAXGEN=255 GRACE=0", .servers = options, .services = services, .not_booted = true });
}

static void
r19_a_forwarder_booted_before_its_service_burns_no_retry(void)
{
	struct given *g = given_one_try(FORWARDER("-q WORK"), NULL);
	double since;

	free(given_ok(g, NULL, "tmboot -A -y && tmboot -y -g QUE1"));
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "");
	}
	CU_ASSERT_TRUE(logged(g, "nobody offers service WORK"));
	CU_ASSERT_EQUAL(depth(g, "WORK"), 3);
	free(given_ok(g, NULL, "tmboot -y -g APP"));
	since = now_s();
	CU_ASSERT_TRUE(all_come("ANSWER", "r", 3, 20));
	CU_ASSERT(now_s() - since < 3);			/* a quarter of a second */
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	{
		char *log = given_log(g);

		CU_ASSERT_EQUAL(count_of(log, "nobody offers service WORK"), 1);
		CU_ASSERT_EQUAL(count_of(log, "queue WORK is served again"), 1);
		free(log);
	}
	given_done(g);
}

/* In Tuxedo TMQFORWARD needs none; who comes from there must be told why nothing moves. */
static void
a_queue_manager_that_is_missing_is_told_once_and_found_again(void)
{
	struct given *g = given_one_try(FORWARDER("-q WORK -i 1"), NULL);
	char *log;

	given_boot(g);
	ask("WORK", "r0", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "r0"));
	free(given_ok(g, NULL, "tmshutdown -y -s TMQUEUE"));
	CU_ASSERT_TRUE(logged(g, "no TMQUEUE of this queue space answers"));
	free(given_ok(g, NULL, "tmboot -y -s TMQUEUE"));
	CU_ASSERT_TRUE(logged(g, "the queues are served again"));
	ask("WORK", "r1", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "r1"));
	log = given_log(g);
	CU_ASSERT_EQUAL(count_of(log, "no TMQUEUE of this queue space answers"), 1);
	free(log);
	given_done(g);
}

/* The last server takes its service back while it lives: TMQFORWARD knows it still, and is refused. */
static void
one_that_is_unadvertised_burns_no_retry(void)
{
	struct given *g = given_one_try(FORWARDER("-q WORK -w 4"), NULL);

	given_boot(g);
	ask("WORK", "r0", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "r0"));
	ask("WORK", "r1", "sendoff WORK");
	CU_ASSERT_TRUE(next_is("ANSWER", "r1"));
	for (int i = 0; i < 5; i++)
		ask("WORK", "r2", "");
	CU_ASSERT_TRUE(logged(g, "nobody offers service WORK"));
	CU_ASSERT_EQUAL(depth(g, "WORK"), 5);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	free(given_ok(g, NULL, "tmshutdown -y -g APP && tmboot -y -g APP"));
	CU_ASSERT_TRUE(comes_to(g, "ANSWER", 5));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

/* Its server is shut down, over and over, between the question and the call too. */
static void
one_that_is_shut_down_under_load_burns_no_retry(void)
{
	enum { N = 150 };
	struct given *g = given_one_try(FORWARDER("-q WORK -w 8"), NULL);
	char name[8];

	given_boot(g);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "note done; pause 3");
	}
	for (int i = 1; i <= 4; i++) {
		CU_ASSERT_TRUE(noted(g, "done", 30 * i));
		free(given_ok(g, NULL, "tmshutdown -y -g APP"));
		free(given_ok(g, NULL, "tmboot -y -g APP"));
	}
	CU_ASSERT_TRUE(all_come("ANSWER", "r", N, 20));
	CU_ASSERT_EQUAL(notes_of(g, "done"), N);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void	/* Tuxedo's way, for who wants it */
with_r_a_missing_service_burns_retries(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate NOBODY fifo none 3 0 100% 0% \"\"\n",
	    .servers = FORWARDER("-r -q NOBODY") });
	char *out;

	put("NOBODY", "lost");
	CU_ASSERT_TRUE(comes_to(g, "ERRQ", 1));
	out = given_qmadmin(g, "verbose on\nqset ERRQ\nqlist");
	CU_ASSERT_TRUE(has(out, "failed deliveries: 4\n"));
	CU_ASSERT_TRUE(has(out, "tperrno: TPENOENT (6)\n"));
	free(out);
	given_done(g);
}

struct failure { const char *steps, *told; };

static void	/* Each counts as a retry, and with the last one the message is on the error queue and tells why. */
every_other_failure_of_a_call_counts(void)
{
	static const struct failure ways[] = {
		{ "fail", "TPESVCFAIL (11)" }, { "tran; fail", "TPESVCFAIL (11)" }, { "die", "TPESVCERR (10)" }, { "bad", "TPESVCERR (10)" },
		{ "none", "TPESVCERR (10)" }, { "acall WORK (lev)", "TPESVCERR (10)" }, { "forward NOWHERE", "TPESVCERR (10)" },
		{ "wait never", "TPETIME (13)" },
	};
	struct given *g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = SERVERS(3), .servers = FORWARDER("-q WORK -t 2"),
	    .queues = "qcreate WORK fifo none 1 0 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n" });
	char *out, line[100];

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		ask("WORK", "r", ways[i].steps);
		CU_ASSERT_TRUE(comes_to(g, "ERRQ", 1));
		out = given_qmadmin(g, "verbose on\nqset ERRQ\nqlist");
		snprintf(line, sizeof line, "tperrno: %s\n", ways[i].told);
		if (!has(out, line) || !has(out, "failed deliveries: 2\n") || !has(out, "from queue: WORK\n")) {
			fprintf(stderr, "\n%s: not %s, twice:\n%s\n", ways[i].steps, line, out);
			CU_FAIL("a failure is told otherwise");
		}
		free(out);
		CU_ASSERT_TRUE(next_is("ERRQ", "r"));
	}
	CU_ASSERT_EQUAL(depth(g, "ANSWER") + depth(g, "WORK"), 0);
	given_write(g, "never", "after all");
	given_done(g);
}

static void	/* BUFTYPE of the service does not take the message's type */
a_buffer_type_that_the_service_refuses_counts(void)
{
	struct given *g = given_one_try(FORWARDER("-q WORK"), "WORK BUFTYPE=\"CARRAY\"");
	char *out;

	given_boot(g);
	ask("WORK", "r", "");
	CU_ASSERT_TRUE(comes_to(g, "ERRQ", 1));
	out = given_qmadmin(g, "verbose on\nqset ERRQ\nqlist");
	CU_ASSERT_TRUE(has(out, "tperrno: TPEITYPE (17)\n"));
	free(out);
	given_done(g);
}

/* A server that is killed at work, with others in its queue: each message is answered or on the error queue, once. */
static void
a_service_that_dies_at_each_call_ends_on_the_error_queue(void)
{
	enum { N = 12 };
	struct given *g = given_one_try(FORWARDER("-q WORK -w 4"), NULL);
	char name[8];

	given_boot(g);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "die");
	}
	CU_ASSERT_TRUE(all_come("ERRQ", "r", N, 60));
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "ANSWER"), 0);
	given_done(g);
}

/* -b: a call of -n is given up before the time of the transaction. */
static void
b_bounds_the_call_of_n(void)
{
	struct given *g = given_one_try(FORWARDER("-q WORK -n -b 1 -t 60"), NULL);
	double since;

	given_boot(g);
	since = now_s();
	ask("WORK", "r", "wait go");
	CU_ASSERT_TRUE(comes_to(g, "ERRQ", 1));
	CU_ASSERT(now_s() - since < 25);
	given_write(g, "go", "x");
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(r19_a_forwarder_booted_before_its_service_burns_no_retry), UNIT(a_queue_manager_that_is_missing_is_told_once_and_found_again),
		UNIT(one_that_is_unadvertised_burns_no_retry),
		UNIT(one_that_is_shut_down_under_load_burns_no_retry), UNIT(with_r_a_missing_service_burns_retries),
		UNIT(every_other_failure_of_a_call_counts), UNIT(a_buffer_type_that_the_service_refuses_counts),
		UNIT(a_service_that_dies_at_each_call_ends_on_the_error_queue), UNIT(b_bounds_the_call_of_n),
	};

	return unit_run("forwarding to services that are not there", tests, UNIT_COUNT(tests));
}
