/*
 * story_forward_order - TMQFORWARD -w n -o: messages of a queue are under way side by side, and keep its order.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "given_forward.h"

/* Request i of six is noted, waits for the file that lets it go, and does what `then` says. */
static void
ask_numbered(int i, const char *then)
{
	char name[TMCORRIDLEN], steps[200];

	snprintf(name, sizeof name, "r%d", i);
	snprintf(steps, sizeof steps, "note b%d; wait go%d; %s; note e%d", i, i, then, i);
	ask("WORK", name, steps);
}

static void
let_go(struct given *g, int i)
{
	char file[20];

	snprintf(file, sizeof file, "go%d", i);
	given_write(g, file, "x");
}

static bool
begun(struct given *g, int i, int times)
{
	char line[20];

	snprintf(line, sizeof line, "b%d", i);
	return noted(g, line, times);
}

static bool
answers_are(const char *numbers)
{
	char name[TMCORRIDLEN];
	bool well = true;

	for (; *numbers != '\0' && well; numbers++) {
		snprintf(name, sizeof name, "r%c", *numbers);
		well = next_is("ANSWER", name);
	}
	return well && depth(given_standing(), "ANSWER") == 0;
}

static void	/* The last one's service is done first. */
answers_come_in_the_order_of_the_requests(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 6 -o"), SERVERS(6), "");

	for (int i = 0; i < 6; i++)
		ask_numbered(i, "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));		/* all of them at a time */
	for (int i = 5; i > 0; i--) {
		let_go(g, i);
		CU_ASSERT_TRUE(noted(g, (char[]){ 'e', (char)('0' + i), '\0' }, 1));
		CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	}
	let_go(g, 0);
	CU_ASSERT_TRUE(answers_are("012345"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

static void	/* One server: it gets them in their order. */
requests_are_sent_in_the_order_of_the_queue(void)
{
	enum { N = 100 };
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 8 -o"), SERVERS(1), "");
	char name[TMCORRIDLEN], steps[50], *notes, *at;

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%d", i);
		snprintf(steps, sizeof steps, "note %d", i);
		ask("WORK", name, steps);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%d", i);
		CU_ASSERT_TRUE_FATAL(next_is("ANSWER", name));
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(notes = at = given_read(g, "notes"));
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(strtol(at, &at, 10), i);
	free(notes);
	given_done(g);
}

/* The queue takes no failure twice: who is counted is on the error queue. */
static void
those_behind_one_that_fails_are_not_counted(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 6 -o"), SERVERS(6), "");

	for (int i = 0; i < 6; i++)
		ask_numbered(i, i == 1 ? "fail" : "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	for (int i = 5; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("02345"));
	CU_ASSERT_TRUE(next_is("ERRQ", "r1"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	CU_ASSERT_EQUAL(notes_of(g, "b0"), 1);
	for (int i = 2; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 2));		/* undone, and done again */
	given_done(g);
}

static void	/* Those behind it have failed too, and before it: that is not looked at. */
only_the_first_failure_counts(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 6 -o"), SERVERS(6), "");

	for (int i = 0; i < 6; i++)
		ask_numbered(i, i == 0 ? "fail" : i < 3 ? (i == 1 ? "failonce one" : "dieonce two") : "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	for (int i = 5; i >= 0; i--) {
		let_go(g, i);
		if (i == 1 || i == 2)	/* surely before the first one */
			for (int n = 0; n < 2000 && !given_exists(g, i == 1 ? "one" : "two"); n++)
				nap_ms(5);
	}
	CU_ASSERT_TRUE(answers_are("12345"));
	CU_ASSERT_TRUE(next_is("ERRQ", "r0"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

/* Two retries without a delay: it goes first again, and alone, until it is through. */
static void
one_that_failed_goes_alone_until_it_is_through(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = SERVERS(6), .servers = FORWARDER("-q WORK -w 6 -o"),
	    .queues = "qcreate WORK fifo none 2 0 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n" });
	char *notes;

	for (int i = 0; i < 6; i++)
		ask_numbered(i, i == 1 ? "failonce one; failonce two" : "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	for (int i = 5; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("012345"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(notes = given_read(g, "notes"));
	CU_ASSERT_EQUAL(count_of(notes, "b1\n"), 3);
	CU_ASSERT_TRUE(has(notes, "b1\nb1\ne1\n"));	/* nobody began beside it */
	for (int i = 2; i < 6; i++)
		CU_ASSERT_EQUAL(count_of(notes, (char[]){ 'b', (char)('0' + i), '\n', '\0' }), 2);
	free(notes);
	given_done(g);
}

/* A retry delay: those behind it go on meanwhile, and none of them was counted. */
static void
around_one_in_its_retry_delay_the_others_go_on(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = SERVERS(6), .servers = FORWARDER("-q WORK -w 6 -o"),
	    .queues = "qcreate WORK fifo none 1 3 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n" });

	for (int i = 0; i < 6; i++)
		ask_numbered(i, i == 1 ? "failonce one" : "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	for (int i = 5; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("023451"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

/* All of them wait behind the first in one hung server, and their time is over as well: the first one counts. */
static void
a_service_that_hangs_costs_one_message(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 6 -o -t 2"), SERVERS(1), "");

	for (int i = 0; i < 6; i++)
		ask_numbered(i, "lev");
	for (int i = 1; i < 6; i++)
		let_go(g, i);
	CU_ASSERT_TRUE(next_is("ERRQ", "r0"));		/* it had no retry */
	let_go(g, 0);
	CU_ASSERT_TRUE(answers_are("12345"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

/* Its servers go away with messages under way, and come back: in order, and no retry counted but that of one that was begun. */
static void
servers_that_come_and_go_keep_the_order(void)
{
	enum { N = 60 };
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 4 -o"), SERVERS(2), "");
	char name[TMCORRIDLEN];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%d", i);
		ask("WORK", name, "note done; pause 10");
	}
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_TRUE(noted(g, "done", 12 * i));
		free(given_ok(g, NULL, "tmshutdown -y -g APP"));
		free(given_ok(g, NULL, "tmboot -y -g APP"));
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%d", i);
		CU_ASSERT_TRUE_FATAL(next_is("ANSWER", name));
	}
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

/* A high priority goes ahead of those that wait, not of those that are under way. */
static void
the_order_is_that_of_the_queue(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = SERVERS(2), .servers = FORWARDER("-q WORK -w 2 -o"),
	    .queues = "qcreate WORK priority,fifo none 1 3 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n" });
	TPQCTL c;

	for (int i = 0; i < 4; i++)
		ask_numbered(i, "lev");
	CU_ASSERT_TRUE(begun(g, 0, 1) && begun(g, 1, 1));
	memset(&c, 0, sizeof c);
	c.flags = TPQPRIORITY;
	c.priority = 90;
	ask_as("WORK", "r9", "", c);
	for (int i = 3; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("01923"));
	given_done(g);
}

/* Each queue for itself: one that waits for its first message does not stop the other. */
static void
queues_do_not_wait_for_each_other(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK,MORE -w 4 -o"), SERVERS(4), "");

	for (int i = 0; i < 3; i++)
		ask_numbered(i, "lev");
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	let_go(g, 2);
	ask("MORE", "m0", "");
	ask("MORE", "m1", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "m0") && next_is("ANSWER", "m1"));
	let_go(g, 1);
	let_go(g, 0);
	CU_ASSERT_TRUE(answers_are("012"));
	given_done(g);
}

/* -d: the answer of one that fails goes to the failure queue, the message is deleted, and the others were not counted. */
static void
with_d_the_line_goes_on_behind_what_is_deleted(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s WORK:DO",
	    .server_params = SERVERS(6), .servers = FORWARDER("-d -q WORK -w 6 -o"),
	    .queues = "qcreate WORK fifo none 1 0 100% 0% \"\"\nqcreate ANSWER fifo none 0 0 100% 0% \"\"\n"
		      "qcreate FAILED fifo none 0 0 100% 0% \"\"\n" });

	for (int i = 0; i < 6; i++)
		ask_numbered(i, i == 1 || i == 4 ? "tran; fail" : "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	for (int i = 5; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("0235"));
	CU_ASSERT_TRUE(next_is("FAILED", "r1") && next_is("FAILED", "r4"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK") + depth(g, "FAILED"), 0);
	given_done(g);
}

/* The queue manager dies with all of them under way: nothing is counted, and they go on in their order. */
static void
a_queue_manager_that_dies_leaves_the_order(void)
{
	struct given *g = given_forwarding(FORWARDER("-q WORK -w 6 -o -t 5"), SERVERS(6), "");
	pid_t old;

	for (int i = 0; i < 6; i++)
		ask_numbered(i, "lev");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(begun(g, i, 1));
	old = given_pid(g, "TMQUEUE", 0);
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 20));
	for (int i = 5; i >= 0; i--)
		let_go(g, i);
	CU_ASSERT_TRUE(answers_are("012345"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "WORK"), 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(answers_come_in_the_order_of_the_requests), UNIT(requests_are_sent_in_the_order_of_the_queue),
		UNIT(those_behind_one_that_fails_are_not_counted), UNIT(only_the_first_failure_counts),
		UNIT(one_that_failed_goes_alone_until_it_is_through), UNIT(around_one_in_its_retry_delay_the_others_go_on),
		UNIT(a_service_that_hangs_costs_one_message), UNIT(servers_that_come_and_go_keep_the_order),
		UNIT(the_order_is_that_of_the_queue), UNIT(queues_do_not_wait_for_each_other),
		UNIT(with_d_the_line_goes_on_behind_what_is_deleted), UNIT(a_queue_manager_that_dies_leaves_the_order),
	};

	return unit_run("forwarding in order", tests, UNIT_COUNT(tests));
}
