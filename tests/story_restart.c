/*
 * story_restart - processes die and come back; what was acknowledged is there, and nobody has to be told.
 */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "given.h"

#define FOR_EVER "RESTART=Y GRACE=0 MAXGEN=255"
#define QUEUES "qcreate ORDERS fifo none 100 0 100% 0% \"\"\nqcreate PRIO priority none 100 0 100% 0% \"\"\n" \
    "qcreate ANSWERS fifo none 100 0 100% 0% \"\"\n"

#define EXPECT(got, want) do { \
	char *expect_got = (got); \
	CU_ASSERT_PTR_NOT_NULL(expect_got); \
	if (expect_got != NULL) \
		CU_ASSERT_STRING_EQUAL(expect_got, (want)); \
	free(expect_got); \
} while (0)

static struct given *
given_queues(void)
{
	return given_system(&(struct given_conf){ .queues = QUEUES, .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
}

static bool
can_put(void *queue)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	return tpenqueue("QSPACE", queue, &ctl, NULL, 0, 0) != -1;
}

static void
kill_and_await(const struct given *g, const char *name)
{
	pid_t old = given_pid(g, name, 0);

	given_kill(g, name, SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, name, old, 10));
}

static void
acknowledged_messages_survive_the_queue_manager(void)
{
	struct given *g = given_queues();
	TPQCTL ctl = { .flags = TPQPRIORITY, .priority = 80 };

	put("ORDERS", "one");
	put("ORDERS", "two");
	put("PRIO", "usual");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "PRIO", &ctl, NULL, 0, 0));
	kill_and_await(g, "TMQUEUE");
	EXPECT(take_within("ORDERS", 10), "one");
	EXPECT(take("ORDERS"), "two");
	EXPECT(take("PRIO"), "");		/* the priority is remembered too */
	EXPECT(take("PRIO"), "usual");
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	given_done(g);
}

static void
what_was_not_committed_is_undone_by_the_kill(void)
{
	struct given *g = given_queues();

	put("ORDERS", "stays");
	GIVEN_CALL_OK(tpbegin(60, 0));
	EXPECT(take("ORDERS"), "stays");
	put("ANSWERS", "never committed");
	kill_and_await(g, "TMQUEUE");
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_TRUE(tperrno == TPEABORT || tperrno == TPETIME);
	EXPECT(take_within("ORDERS", 10), "stays");
	CU_ASSERT_PTR_NULL(take("ANSWERS"));
	given_done(g);
}

/* What the old queue manager held is lost with it; the new one must not commit the rest of the transaction alone. */
static void
a_transaction_does_not_outlive_its_queue_manager_by_half(void)
{
	struct given *g = given_queues();
	char *data = tpalloc("STRING", NULL, 64);
	TPQCTL ctl = { .flags = TPNOFLAGS };
	int i;

	for (i = 0; i < 3; i++) {
		put("ORDERS", "an order");
		GIVEN_CALL_OK(tpbegin(60, 0));
		EXPECT(take_within("ORDERS", 10), "an order");
		kill_and_await(g, "TMQUEUE");
		snprintf(data, 64, "its answer");
		if (i == 1)
			nap_ms(300);		/* so that the loss is seen before the next call, or in it */
		ctl.flags = TPNOFLAGS;
		if (tpenqueue("QSPACE", "ANSWERS", &ctl, data, 0, 0) == -1)
			tpabort(0);
		else
			CU_ASSERT_EQUAL(tpcommit(0), -1);
		EXPECT(take_within("ORDERS", 10), "an order");
		CU_ASSERT_PTR_NULL(take("ANSWERS"));
	}
	tpfree(data);
	given_done(g);
}

/* An administrator's open qmadmin notices nothing, and clients work again within two seconds. */
static void
an_open_qmadmin_outlives_the_queue_manager(void)
{
	struct given *g = given_queues();
	char *out = NULL;
	FILE *qm;
	double killed;
	char cmd[512];

	put("ORDERS", "one");
	snprintf(cmd, sizeof cmd, "cd %s && qmadmin >qm.out 2>qm.err", given_dir(g));
	CU_ASSERT_PTR_NOT_NULL_FATAL(qm = popen(cmd, "w"));
	fprintf(qm, "qopen QSPACE\nqinfo ORDERS\n");
	fflush(qm);
	for (double end = now_s() + 10; now_s() < end; nap_ms(10)) {
		free(out);
		out = given_read(g, "qm.out");
		if (has(out, "ORDERS"))
			break;
	}
	given_kill(g, "TMQUEUE", SIGKILL);
	killed = now_s();
	CU_ASSERT_TRUE(wait_until(can_put, "ORDERS", 10));
	CU_ASSERT_TRUE(now_s() - killed < 8);	/* two seconds on a machine that does nothing else */
	fprintf(qm, "qset ORDERS\nqinfo ORDERS\nq\n");
	CU_ASSERT_EQUAL(pclose(qm), 0);
	free(out);
	out = given_read(g, "qm.out");
	CU_ASSERT_TRUE(count_of(out, "ORDERS") >= 2);
	free(out);
	out = given_read(g, "qm.err");
	CU_ASSERT_STRING_EQUAL(out, "");
	free(out);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);
	given_done(g);
}

static bool
psr_shows_all(void *arg)
{
	struct ran r = given_run(arg, "psr\nq\n", "tmadmin");
	bool all = has(r.out, "TMQUEUE ") && has(r.out, "BBL ");

	ran_free(&r);
	return all;
}

static void
without_the_bulletin_board_work_goes_on_and_it_comes_back(void)
{
	struct given *g = given_queues();
	pid_t old = given_pid(g, "BBL", 0), queue = given_pid(g, "TMQUEUE", 0);

	put("ORDERS", "before");
	given_kill(g, "BBL", SIGKILL);
	put("ORDERS", "meanwhile");
	CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", old, 20));
	CU_ASSERT_TRUE(wait_until(psr_shows_all, g, 20));
	CU_ASSERT_EQUAL(given_pid(g, "TMQUEUE", 0), queue);
	CU_ASSERT_EQUAL(given_count(g, "BBL"), 1);
	tpterm();				/* a client that joins now finds everything */
	EXPECT(take("ORDERS"), "before");
	EXPECT(take("ORDERS"), "meanwhile");
	kill_and_await(g, "TMQUEUE");		/* and the new one supervises */
	CU_ASSERT_TRUE(wait_until(can_put, "ORDERS", 10));
	given_done(g);
}

/* The new queue manager may not have registered yet when BBL dies: then it is the only one left to start BBL. */
static void
bulletin_board_and_queue_manager_die_one_after_the_other(void)
{
	struct given *g = given_queues();
	int i;

	put("ORDERS", "before");
	for (i = 0; i < 2; i++) {
		pid_t old = given_pid(g, "BBL", 0);
		kill_and_await(g, "TMQUEUE");
		given_kill(g, "BBL", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", old, 20));
		CU_ASSERT_TRUE(wait_until(psr_shows_all, g, 20));
		CU_ASSERT_TRUE(wait_until(can_put, "ANSWERS", 10));
	}
	EXPECT(take("ORDERS"), "before");
	given_done(g);
}

static void
a_second_queue_manager_stands_by_and_takes_over(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES,
	    .tmqueue = "MIN=2 MAX=2 RESTART=N CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });

	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 2);
	put("ORDERS", "one");
	given_kill(g, "TMQUEUE", SIGKILL);
	/* Whichever of the two had the space, a caller waits for the other; at most it spoke to the dead one still. */
	for (double end = now_s() + 20; !can_put("ANSWERS") && now_s() < end;)
		CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(can_put("ANSWERS"));
	EXPECT(take("ORDERS"), "one");
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	given_done(g);
}

/* What fails when it is started again is tried again: here because the device is away for a moment. */
static void
a_restart_that_fails_is_tried_again(void)
{
	struct given *g = given_queues();
	char *log = NULL;

	put("ORDERS", "one");
	free(given_ok(g, NULL, "mv QUE QUE.away"));
	given_kill(g, "TMQUEUE", SIGKILL);
	for (double end = now_s() + 20; now_s() < end && !has(log, "restarted in 200 ms"); nap_ms(20)) {
		free(log);
		log = given_log(g);
	}
	CU_ASSERT_TRUE(has(log, "restarted in 200 ms"));
	free(log);
	free(given_ok(g, NULL, "mv QUE.away QUE"));
	CU_ASSERT_TRUE(wait_until(can_put, "ANSWERS", 20));
	EXPECT(take("ORDERS"), "one");
	given_done(g);
}

/* --- the run directory is taken away --- */

static bool
new_clients_can_join(void *queue)
{
	tpterm();
	return can_put(queue);
}

static void	/* as it was, and one of each */
all_is_in_its_place(const struct given *g, pid_t bbl, pid_t queue)
{
	struct stat st;
	char path[300];

	snprintf(path, sizeof path, "%s/bbl", given_rundir(g));
	CU_ASSERT_TRUE(stat(given_rundir(g), &st) == 0 && (st.st_mode & 07777) == 0700);
	CU_ASSERT_TRUE(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	CU_ASSERT_EQUAL(given_count(g, "BBL"), 1);
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	if (bbl != 0)
		CU_ASSERT_EQUAL(given_pid(g, "BBL", 0), bbl);
	CU_ASSERT_EQUAL(given_pid(g, "TMQUEUE", 0), queue);
}

static void
the_run_directory_is_taken_away_and_comes_back(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .resources = "PERM 0600\n",
	    .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	pid_t bbl = given_pid(g, "BBL", 0), queue = given_pid(g, "TMQUEUE", 0);
	struct ran r;

	put("ORDERS", "before");
	free(given_ok(g, NULL, "rm -rf %s", given_rundir(g)));
	put("ORDERS", "meanwhile");		/* who is connected notices nothing */
	r = given_run(g, NULL, "tmboot -y");	/* no second application beside the old one */
	ran_free(&r);
	CU_ASSERT_TRUE(wait_until(new_clients_can_join, "ANSWERS", 10));
	CU_ASSERT_TRUE(wait_until(psr_shows_all, g, 10));
	all_is_in_its_place(g, bbl, queue);
	free(given_ok(g, NULL, "rm %s/bbl.lock %s/bbl.state", given_rundir(g), given_rundir(g)));
	for (double end = now_s() + 10; now_s() < end; nap_ms(20)) {
		r = given_run(g, NULL, "test -s %s/bbl.lock && test -s %s/bbl.state", given_rundir(g), given_rundir(g));
		ran_free(&r);
		if (r.status == 0)
			break;
	}
	all_is_in_its_place(g, bbl, queue);
	given_kill(g, "BBL", SIGKILL);		/* what was put back is what the next BBL needs */
	CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_TRUE(wait_until(psr_shows_all, g, 20));
	kill_and_await(g, "TMQUEUE");
	CU_ASSERT_TRUE(wait_until(can_put, "ANSWERS", 10));
	EXPECT(take("ORDERS"), "before");
	EXPECT(take("ORDERS"), "meanwhile");
	given_done(g);
}

static void
the_run_directory_and_the_bulletin_board_are_gone_and_come_back(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .resources = "PERM 0600\n",
	    .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	pid_t bbl = given_pid(g, "BBL", 0), queue = given_pid(g, "TMQUEUE", 0);

	put("ORDERS", "before");
	given_kill(g, "BBL", SIGKILL);
	free(given_ok(g, NULL, "rm -rf %s", given_rundir(g)));
	CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_TRUE(wait_until(new_clients_can_join, "ANSWERS", 10));
	CU_ASSERT_TRUE(wait_until(psr_shows_all, g, 10));
	all_is_in_its_place(g, 0, queue);
	EXPECT(take("ORDERS"), "before");
	given_done(g);
}

/* --- a service, and the forwarder in front of it --- */

static const char service[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <signal.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "void ORDERS(TPSVCINFO *m)\n{\n"
    "\tFILE *f = fopen(\"attempts\", \"a\");\n\tif (f) { fprintf(f, \"%s\\n\", m->data); fclose(f); }\n"
    "\tif (strncmp(m->data, \"die\", 3) == 0 && access(\"already\", F_OK) != 0) {\n"
    "\t\tfclose(fopen(\"already\", \"w\"));\n\t\tkill(getpid(), SIGKILL);\n\t}\n"
    "\ttpreturn(TPSUCCESS, 7, m->data, 0, 0);\n}\n";

static struct given *
given_forwarding(void)
{
	return given_system(&(struct given_conf){ .queues = QUEUES, .server_source = service, .server_services = "-s ORDERS",
	    .server_params = FOR_EVER, .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 " FOR_EVER " CLOPT=\"-- -i 2 -t 5 -q ORDERS\"\n" });
}

static void
request(const char *text)
{
	TPQCTL ctl = { .flags = TPQREPLYQ, .replyqueue = "ANSWERS" };
	char *data = tpalloc("STRING", NULL, 64);

	snprintf(data, 64, "%s", text);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ORDERS", &ctl, data, 0, 0));
	tpfree(data);
}

static void
a_service_that_dies_gets_its_request_again(void)
{
	struct given *g = given_forwarding();
	char *attempts;

	request("die once");
	EXPECT(take_within("ANSWERS", 30), "die once");
	attempts = given_read(g, "attempts");
	CU_ASSERT_EQUAL(count_of(attempts, "die once"), 2);
	free(attempts);
	CU_ASSERT_PTR_NULL(take("ANSWERS"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void
a_forwarder_that_dies_loses_and_doubles_nothing(void)
{
	struct given *g = given_forwarding();
	char text[32], *got;
	int i, n = 40, seen[40] = { 0 }, k;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof text, "order %d", i);
		request(text);
		if (i % 10 == 5)
			kill_and_await(g, "TMQFORWARD");
	}
	for (i = 0; i < n; i++) {
		got = take_within("ANSWERS", 30);
		CU_ASSERT_PTR_NOT_NULL_FATAL(got);
		if (sscanf(got, "order %d", &k) == 1 && k >= 0 && k < n)
			seen[k]++;
		free(got);
	}
	for (i = 0; i < n; i++)
		CU_ASSERT_EQUAL(seen[i], 1);
	CU_ASSERT_PTR_NULL(take("ANSWERS"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	given_done(g);
}

/* --- the end, and a new beginning --- */

static void
a_restart_of_everything_keeps_everything(void)
{
	struct given *g = given_queues();

	put("ORDERS", "one");
	put("ORDERS", "two");
	tpterm();
	given_shutdown(g);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);	/* by qmadmin, with nobody else there */
	given_boot(g);
	EXPECT(take("ORDERS"), "one");
	EXPECT(take("ORDERS"), "two");
	given_done(g);
}

/* What operators do when a system is in a bad way: an error is ignored, everything is zapped, and booted again. */
static void
zapped_and_booted_again_it_works(void)
{
	struct given *g = given_queues();
	char text[32], *last = NULL;
	int i;

	for (i = 0; i < 4; i++) {
		struct ran r;
		snprintf(text, sizeof text, "round %d", i);
		put("ORDERS", text);
		tpterm();
		given_kill(g, i % 2 ? "TMQUEUE" : "BBL", SIGKILL);
		r = given_run(g, NULL, "tmshutdown -y");
		ran_free(&r);
		r = given_run(g, NULL, "tmipcrm -y");
		CU_ASSERT_NOT_EQUAL(r.status, -1);
		ran_free(&r);
		for (double end = now_s() + 20; given_count(g, NULL) > 0 && now_s() < end;)
			nap_ms(20);
		CU_ASSERT_EQUAL(given_count(g, NULL), 0);
		given_boot(g);
	}
	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof text, "round %d", i);
		last = take("ORDERS");
		CU_ASSERT_PTR_NOT_NULL(last);
		if (last != NULL)
			CU_ASSERT_STRING_EQUAL(last, text);
		free(last);
	}
	given_done(g);
}

static void
a_server_that_uses_up_its_lives_stays_down(void)
{
	struct given *g = given_system(&(struct given_conf){ .no_queue_group = true, .server_source = service,
	    .server_services = "-s ORDERS", .server_params = "RESTART=Y MAXGEN=2 GRACE=600" });
	pid_t old = given_pid(g, "server", 0);

	given_kill(g, "server", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "server", old, 10));
	old = given_pid(g, "server", 0);
	given_kill(g, "server", SIGKILL);
	CU_ASSERT_FALSE(wait_pid_changes(g, "server", old, 1.5));
	CU_ASSERT_TRUE(given_logged(g, "server"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(acknowledged_messages_survive_the_queue_manager),
		UNIT(what_was_not_committed_is_undone_by_the_kill),
		UNIT(a_transaction_does_not_outlive_its_queue_manager_by_half),
		UNIT(an_open_qmadmin_outlives_the_queue_manager),
		UNIT(without_the_bulletin_board_work_goes_on_and_it_comes_back),
		UNIT(bulletin_board_and_queue_manager_die_one_after_the_other),
		UNIT(a_second_queue_manager_stands_by_and_takes_over),
		UNIT(a_restart_that_fails_is_tried_again),
		UNIT(the_run_directory_is_taken_away_and_comes_back),
		UNIT(the_run_directory_and_the_bulletin_board_are_gone_and_come_back),
		UNIT(a_service_that_dies_gets_its_request_again),
		UNIT(a_forwarder_that_dies_loses_and_doubles_nothing),
		UNIT(a_restart_of_everything_keeps_everything),
		UNIT(zapped_and_booted_again_it_works),
		UNIT(a_server_that_uses_up_its_lives_stays_down),
	};

	return unit_run("restart", tests, UNIT_COUNT(tests));
}
