/*
 * story_forward_threads - TMQFORWARD -w: several messages under way in one process.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "given_forward.h"

static void
ask_many(const char *queue, const char *name, int n, const char *steps)
{
	char as[TMCORRIDLEN];

	for (int i = 0; i < n; i++) {
		snprintf(as, sizeof as, "%s%d", name, i);
		ask(queue, as, steps);
	}
}

static void
as_many_are_under_way_as_w_says(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 4"), SERVERS(6), "");

	ask_many("WORK", "r", 6, "note begun; wait go");
	CU_ASSERT_TRUE(noted(g, "begun", 4));
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(depth(g, "WORK"), 6);	/* held, and two that wait */
	CU_ASSERT_EQUAL(notes_of(g, "begun"), 4);
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(all_come("ANSWER", "r", 6, 20));
	CU_ASSERT_EQUAL(notes_of(g, "begun"), 6);
	given_done(g);
}

static long	/* Voluntary context switches of all threads so far. */
switches(pid_t pid)
{
	char path[100], line[200];
	struct dirent *d;
	long sum = 0, n;
	FILE *f;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir = opendir(path));
	while ((d = readdir(dir)) != NULL) {
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)pid, d->d_name);
		if (d->d_name[0] == '.' || (f = fopen(path, "r")) == NULL)
			continue;
		while (fgets(line, sizeof line, f) != NULL)
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		fclose(f);
	}
	closedir(dir);
	return sum;
}

static void	/* 40 threads, and one of them is woken for a message; none when there is none. */
one_message_wakes_one_thread(void)
{
	enum { N = 50 };
	struct given *g = given_forwarding(FORWARDER("-q WORK,MORE -w 40"), SERVERS(1), "");
	pid_t pid = given_pid(g, "TMQFORWARD", 0);
	char name[TMCORRIDLEN];
	long before, after;
	double until;

	ask("WORK", "first", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "first"));
	before = switches(pid);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "r%d", i);
		ask("WORK", name, "");
		CU_ASSERT_TRUE(next_is("ANSWER", name));
	}
	after = switches(pid);
	CU_ASSERT(after - before < 25 * N);	/* some seven for each; all threads would be forty more */
	before = switches(pid);
	for (until = now_s() + 1; now_s() < until;)
		nap_ms(50);
	CU_ASSERT(switches(pid) - before < 60);	/* its conversation with BBL */
	CU_ASSERT_EQUAL(given_pid(g, "TMQFORWARD", 0), pid);
	given_done(g);
}

static void
no_message_is_taken_by_two(void)
{
	enum { N = 400 };
	struct given *g = given_forwarding(FORWARDER_AS(5, "-q WORK,MORE -w 8") FORWARDER_AS(6, "-q MORE,WORK -w 8")
	    FORWARDER_AS(7, "-q WORK -w 3"), SERVERS(4), "");

	ask_many("WORK", "r", N / 2, "note work");
	ask_many("MORE", "m", N / 2, "note more; put QSPACE FAILED x");
	CU_ASSERT_TRUE(comes_to(g, "ANSWER", N));
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "MORE") + depth(g, "ERRQ"), 0);
	CU_ASSERT_EQUAL(depth(g, "FAILED"), N / 2);
	CU_ASSERT_EQUAL(notes_of(g, "work"), N / 2);
	CU_ASSERT_EQUAL(notes_of(g, "more"), N / 2);
	given_done(g);
}

static void	/* Each thread's answer is the one to its own request: data, identifier, code. */
answers_are_not_mixed_up(void)
{
	enum { N = 200 };
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 16"), SERVERS(5), "");
	char name[TMCORRIDLEN], steps[100], *got, *text;
	TPQCTL c;

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%d", i);
		snprintf(steps, sizeof steps, "call MORE (tran); put QSPACE FAILED %d; take QSPACE %s", i, i % 2 ? "NO" : name);
		ask("WORK", name, steps);
	}
	for (int i = 0; i < N; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(got = next_name("ANSWER", 30, &c, &text));
		snprintf(steps, sizeof steps, "0 0 %d", QMEBADQUEUE);
		CU_ASSERT_STRING_EQUAL(text, steps);
		CU_ASSERT_EQUAL(c.urcode, 7);
		free(got);
		free(text);
	}
	CU_ASSERT_EQUAL(depth(g, "FAILED"), N);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void
a_service_that_hangs_stops_its_own_queue_alone(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK,MORE -w 3"), SERVERS(8), "");

	ask_many("WORK", "w", 5, "note hangs; wait go");
	CU_ASSERT_TRUE(noted(g, "hangs", 2));
	ask_many("MORE", "m", 5, "");
	CU_ASSERT_TRUE(all_come("ANSWER", "m", 5, 20));
	CU_ASSERT_EQUAL(notes_of(g, "hangs"), 2);	/* the third thread is kept for the other queue */
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(all_come("ANSWER", "w", 5, 20));
	given_done(g);
}

static void
a_single_queue_has_all_threads(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 3"), SERVERS(3), "");

	ask_many("WORK", "w", 3, "note hangs; wait go");
	CU_ASSERT_TRUE(noted(g, "hangs", 3));
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(all_come("ANSWER", "w", 3, 20));
	given_done(g);
}

static void	/* One thread, and messages on both: each queue has its turn. */
queues_take_turns(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK,MORE,THIRD"), SERVERS(1), "qcreate THIRD fifo none 0 0 100% 0% \"\"\n");
	char *notes;

	ask("WORK", "first", "note started; wait go; pause 50");
	CU_ASSERT_TRUE(noted(g, "started", 1));
	for (int i = 0; i < 4; i++) {
		ask("WORK", "w", "note w");
		ask("MORE", "m", "note m");
	}
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(comes_to(g, "ANSWER", 9));
	notes = given_read(g, "notes");
	CU_ASSERT_TRUE(has(notes, "m\nw\nm\nw\nm\nw\n"));
	free(notes);
	given_done(g);
}

static bool
forwarder_is_gone(void *g)
{
	return given_count(g, "TMQFORWARD") == 0;
}

static void
e_ends_once_the_last_thread_has_done(void)
{
	struct given *g = given_forwarding("TMQFORWARD SRVGRP=QUE1 SRVID=5 RESTART=N CLOPT=\"-- -e -w 5 -q WORK,MORE,ABSENT,NONE\"\n", SERVERS(6),
	    "qcreate ABSENT fifo none 0 0 100% 0% \"\"\n");

	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));	/* at once: there is nothing */
	ask("WORK", "slow", "note begun; wait go; put QSPACE MORE late");
	for (int i = 0; i < 20; i++)
		ask("MORE", "m", "note more");
	free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	CU_ASSERT_TRUE(noted(g, "more", 20));
	CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 1);
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "MORE") + depth(g, "ERRQ"), 0);
	put("ABSENT", "nobody serves it");
	free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	CU_ASSERT_TRUE(logged(g, "nobody offers service ABSENT"));
	CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 1);	/* a message is left */
	free(take("ABSENT"));
	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));
	given_done(g);
}

static void	/* A queue manager that does not answer has not said that its queues are empty. */
e_goes_on_while_nobody_says_that_nothing_is_left(void)
{
	struct given *g = given_forwarding("TMQFORWARD SRVGRP=QUE1 SRVID=5 RESTART=N CLOPT=\"-- -e -q WORK\"\n", SERVERS(2), "");
	pid_t queue_manager = given_pid(g, "TMQUEUE", 0);

	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));
	ask("WORK", "m", "note more");
	CU_ASSERT_EQUAL(kill(queue_manager, SIGSTOP), 0);
	free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	CU_ASSERT_FALSE(wait_until(forwarder_is_gone, g, 2));
	CU_ASSERT_EQUAL(kill(queue_manager, SIGCONT), 0);
	CU_ASSERT_TRUE(noted(g, "more", 1));
	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));
	given_done(g);
}

static void	/* The pause of -f is that of all threads together. */
f_pauses_between_messages(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 4 -f 1"), SERVERS(4), "");
	double first, third;

	for (int i = 0; i < 3; i++)
		ask("WORK", "f", "tran; note begun");
	CU_ASSERT_TRUE(noted(g, "begun", 1));
	first = now_s();
	CU_ASSERT_TRUE(noted(g, "begun", 3));
	third = now_s();
	CU_ASSERT(third - first > 1.5);
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	given_done(g);
}

static void	/* Queues without a retry delay: between the rollback and the deletion no other thread takes it. */
d_deletes_what_failed_before_others_take_it(void)
{
	enum { N = 40 };
	struct given *g = given_system(&(struct given_conf){ .space = SPACE_OF_MANY, .server_source = given_doer, .server_services = "-s RETRY:DO",
	    .server_params = SERVERS(5), .servers = FORWARDER("-d -q RETRY -w 8"),
	    .queues = "qcreate RETRY fifo none 50 0 100% 0% \"\"\nqcreate FAILED fifo none 0 0 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n" });
	ask_many("RETRY", "r", N, "note called; tran; fail");
	CU_ASSERT_TRUE(all_come("FAILED", "r", N, 20));
	CU_ASSERT_EQUAL(notes_of(g, "called"), N);
	CU_ASSERT_EQUAL(depth(g, "RETRY") + depth(g, "ERRQ") + depth(g, "ANSWER"), 0);
	given_done(g);
}

static void
psr_counts_what_the_threads_have_done(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 8"), SERVERS(4), "");
	char *out;
	bool told = false;

	ask_many("WORK", "r", 30, "");
	ask_many("WORK", "f", 3, "fail");
	CU_ASSERT_TRUE(all_come("ANSWER", "r", 30, 20));
	CU_ASSERT_TRUE(comes_to(g, "ERRQ", 3));
	for (int i = 0; i < 400 && !told; i++) {
		out = given_ok(g, "psr\nq\n", "tmadmin -r 2>/dev/null | grep TMQFORWARD");
		told = has(out, " 33 ");
		free(out);
		if (!told)
			nap_ms(20);
	}
	CU_ASSERT_TRUE(told);
	given_done(g);
}

static void	/* Each thread ends what it is at; nothing is lost, nothing is done twice. */
a_shutdown_in_the_midst_of_it(void)
{
	enum { N = 200 };
	struct given *g = given_forwarding(FORWARDER_AS(5, "-q WORK -w 8") FORWARDER_AS(6, "-q WORK -w 8"), SERVERS(4), "");

	ask_many("WORK", "r", N, "note called; pause 5");
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_TRUE(noted(g, "called", 30 * i));
		free(given_ok(g, NULL, "tmshutdown -y -s TMQFORWARD"));
		CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
		CU_ASSERT_EQUAL(depth(g, "ANSWER") + depth(g, "WORK"), N);
		free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	}
	CU_ASSERT_TRUE(all_come("ANSWER", "r", N, 20));
	CU_ASSERT_EQUAL(notes_of(g, "called"), N);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void
each_failure_tells_its_own_reason(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK,MORE -w 8"), SERVERS(4), "");
	char *out;

	ask_many("WORK", "f", 3, "fail");
	ask_many("MORE", "d", 2, "die");
	CU_ASSERT_TRUE(comes_to(g, "ERRQ", 5));
	out = given_qmadmin(g, "verbose on\nqset ERRQ\nqlist");
	CU_ASSERT_EQUAL(count_of(out, "reason: service WORK: "), 3);
	CU_ASSERT_EQUAL(count_of(out, "reason: service MORE: "), 2);
	CU_ASSERT_EQUAL(count_of(out, "tperrno: TPESVCFAIL"), 3);
	CU_ASSERT_EQUAL(count_of(out, "tperrno: TPESVCERR"), 2);
	CU_ASSERT_EQUAL(count_of(out, "tpurcode: 7\n"), 3);
	free(out);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(as_many_are_under_way_as_w_says), UNIT(one_message_wakes_one_thread), UNIT(no_message_is_taken_by_two),
		UNIT(answers_are_not_mixed_up), UNIT(a_service_that_hangs_stops_its_own_queue_alone), UNIT(a_single_queue_has_all_threads),
		UNIT(queues_take_turns), UNIT(e_ends_once_the_last_thread_has_done), UNIT(e_goes_on_while_nobody_says_that_nothing_is_left), UNIT(f_pauses_between_messages),
		UNIT(d_deletes_what_failed_before_others_take_it), UNIT(psr_counts_what_the_threads_have_done),
		UNIT(a_shutdown_in_the_midst_of_it), UNIT(each_failure_tells_its_own_reason),
	};

	return unit_run("forwarding: several at a time", tests, UNIT_COUNT(tests));
}
