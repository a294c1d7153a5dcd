/*
 * story_forward_mishaps - TMQFORWARD with many messages under way, and something dies or is full: each request is answered once, and what
 * its service did is done once.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "given_crash_space.h"
#include "given_forward.h"

enum { N = 200 };
#define QUEUES \
	"qcreate WORK fifo none 500 0 100% 0% \"\"\nqcreate ANSWER fifo none 500 0 100% 0% \"\"\nqcreate SEEN fifo none 500 0 100% 0% \"\"\n"

static struct given *
given_load(struct given *g, const char *forwarders, const char *tmqueue)
{
	struct given_conf conf = { .queues = QUEUES, .space = SPACE_OF_MANY, .server_source = given_doer, .server_services = "-s WORK:DO",
		.server_params = SERVERS(4), .servers = forwarders, .tmqueue = tmqueue };

	return g == NULL ? given_system(&conf) : given_system_in(g, &conf);
}

#define TMQUEUE_ALONE "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\""

static void
ask_all(void)
{
	char name[TMCORRIDLEN];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "put QSPACE SEEN x; pause 4; note done");
	}
}

static void
each_is_done_once(struct given *g)
{
	CU_ASSERT_TRUE(all_come("ANSWER", "r", N, 60));
	CU_ASSERT_TRUE(comes_to(g, "SEEN", N));
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "ERRQ") + depth(g, "ANSWER"), 0);
}

static void
the_queue_manager_is_killed(void)
{
	struct given *g = given_load(NULL, FORWARDER_AS(5, "-q WORK -w 8 -t 10") FORWARDER_AS(6, "-q WORK -w 8 -t 10"), TMQUEUE_ALONE);

	ask_all();
	for (int i = 1; i <= 3; i++) {
		pid_t old = given_pid(g, "TMQUEUE", 0);

		CU_ASSERT_TRUE(noted(g, "done", 20 * i));
		given_kill(g, "TMQUEUE", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 20));
	}
	each_is_done_once(g);
	given_done(g);
}

static void	/* What it held comes back when its transactions time out. */
forwarders_are_killed(const char *forwarders)
{
	struct given *g = given_load(NULL, forwarders, TMQUEUE_ALONE);

	ask_all();
	for (int i = 1; i <= 3; i++) {
		pid_t old = given_pid(g, "TMQFORWARD", 0);

		CU_ASSERT_TRUE(noted(g, "done", 20 * i));
		given_kill(g, "TMQFORWARD", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQFORWARD", old, 20));
	}
	each_is_done_once(g);
	given_done(g);
}

static void
a_forwarder_of_eight_threads_is_killed(void)
{
	forwarders_are_killed(FORWARDER("-q WORK -w 8 -t 3"));
}

static void
one_of_two_that_keep_the_order_is_killed(void)
{
	forwarders_are_killed(FORWARDER_AS(5, "-q WORK -w 8 -t 3 -o") FORWARDER_AS(6, "-q WORK -w 8 -t 3 -o"));
}

static bool
some_server_runs(void *g)
{
	return given_pid(g, "server", 0) > 0;
}

static void
the_servers_are_killed(void)
{
	struct given *g = given_load(NULL, FORWARDER_AS(5, "-q WORK -w 8 -t 10") FORWARDER_AS(6, "-q WORK -w 2 -t 10"), TMQUEUE_ALONE);

	ask_all();
	for (int i = 1; i <= 6; i++) {
		CU_ASSERT_TRUE(noted(g, "done", 15 * i));
		CU_ASSERT_TRUE(wait_until(some_server_runs, g, 20));
		given_kill(g, "server", SIGKILL);
	}
	each_is_done_once(g);
	given_done(g);
}

static void
bbl_is_killed(void)
{
	struct given *g = given_load(NULL, FORWARDER("-q WORK -w 8 -t 10"), TMQUEUE_ALONE);

	ask_all();
	CU_ASSERT_TRUE(noted(g, "done", 20));
	given_kill(g, "BBL", SIGKILL);
	each_is_done_once(g);
	given_done(g);
}

/* No room for an answer: the request waits on its queue with its retries, and goes on when there is room. */
static void
the_space_is_full(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .space = "4000 20 50 50 40 ERRQ n 16",
	    .server_source = given_doer, .server_services = "-s WORK:DO", .server_params = SERVERS(2), .servers = FORWARDER("-q WORK -w 4") });
	TPQCTL c = { .flags = TPNOFLAGS };
	int fill = 0;

	free(given_ok(g, NULL, "tmshutdown -y -s TMQFORWARD"));
	for (int i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "note done");
	}
	while (tpenqueue("QSPACE", "SEEN", &c, NULL, 0, 0) != -1 && fill < 100)
		fill++;
	CU_ASSERT_EQUAL(fill, 35);
	free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	CU_ASSERT_TRUE(logged(g, "the answer to a message of queue WORK does not get onto queue ANSWER"));
	CU_ASSERT_EQUAL(depth(g, "WORK"), 5);
	while (fill-- > 0)
		CU_ASSERT_EQUAL(take_diagnostic("SEEN"), 0);
	CU_ASSERT_TRUE(all_come("ANSWER", "r", 5, 20));
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "ERRQ"), 0);
	given_done(g);
}

/* Every second write finds the disk full, for a while. */
static void
the_disk_is_full(void)
{
	char preload[PATH_MAX] = "", file[PATH_MAX], tmqueue[PATH_MAX * 2];
	struct control *control;
	struct given *g;

	if (!failing_writes_are_there(preload, sizeof preload)) {
		printf("(not with a sanitizer) ");
		return;
	}
	g = given_directory();
	snprintf(tmqueue, sizeof tmqueue, "%s ENVFILE=\"%s/envfile\"", TMQUEUE_ALONE, given_dir(g));
	snprintf(file, sizeof file, "%s/control", given_dir(g));
	given_write(g, "control", "%*s", (int)sizeof(struct control), "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(control = control_open(file));
	memset((void *)control, 0, sizeof *control);
	given_write(g, "envfile", "FAULT_CONTROL=%s\nLD_PRELOAD=%s\n", file, preload);
	given_load(g, FORWARDER("-q WORK -w 8 -t 10"), tmqueue);
	ask_all();
	for (int i = 1; i <= 3; i++) {
		uint32_t before = control->faults;

		CU_ASSERT_TRUE(noted(g, "done", 15 * i));
		control->fault_kinds = FAULT_ENOSPC;
		control->fault_one_in = 2;
		for (double end = now_s() + 20; control->faults < before + 10 && now_s() < end;)
			nap_ms(5);
		control->fault_one_in = 0;
		CU_ASSERT(control->faults > before);
	}
	each_is_done_once(g);
	munmap(control, sizeof *control);
	given_done(g);
}

/* qdestroy -f does not take a message away that is under way. */
static void
a_queue_is_destroyed_under_it(void)
{
	struct given *g = given_load(NULL, FORWARDER("-q WORK -w 4"), TMQUEUE_ALONE);
	char *out;

	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "note begun; wait go");
	}
	CU_ASSERT_TRUE(noted(g, "begun", 4));
	free(given_qmadmin(g, "qdestroy -f -y WORK"));
	CU_ASSERT_EQUAL(depth(g, "WORK"), 4);
	free(given_qmadmin(g, "qdestroy -f -y ANSWER"));	/* the answers are dropped then */
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(comes_to(g, "WORK", 0));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	out = given_qmadmin(g, "qdestroy -y WORK\nqinfo");
	CU_ASSERT_FALSE(has(out, "WORK\n  messages"));
	free(out);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_queue_manager_is_killed), UNIT(a_forwarder_of_eight_threads_is_killed), UNIT(one_of_two_that_keep_the_order_is_killed),
		UNIT(the_servers_are_killed), UNIT(bbl_is_killed), UNIT(the_space_is_full), UNIT(the_disk_is_full),
		UNIT(a_queue_is_destroyed_under_it),
	};

	return unit_run("forwarding, and something goes wrong", tests, UNIT_COUNT(tests));
}
