/*
 * story_qmadmin - the real qmadmin, answer by answer, on a stopped space and on one that is served.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

/* What follows the banner, whose first line changes with each version; NULL when there is none. */
static const char *
after_banner(const char *out)
{
	static const char second[] = "QMCONFIG=QUE\n";
	const char *line = strncmp(out, "qmadmin of atmiq ", 17) == 0 ? strchr(out, '\n') : NULL;

	return line != NULL && strncmp(line + 1, second, sizeof second - 1) == 0 ? line + sizeof second : NULL;
}

/* What qmadmin prints for these lines, which must be exactly this. */
static void
prints(const struct given *g, const char *lines, const char *expected)
{
	struct ran r = given_run(g, lines, "qmadmin QUE");
	const char *answers = after_banner(r.out);

	if (r.status != 0 || answers == NULL || strcmp(answers, expected) != 0)
		printf("\n--- printed (%d)\n%s--- expected\n%s---\n", r.status, r.out, expected);
	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_TRUE(answers != NULL && strcmp(answers, expected) == 0);
	ran_free(&r);
}

/* The same for stderr, where the directory of the test reads as @. */
static void
complains(const struct given *g, const char *lines, const char *expected)
{
	struct ran r = given_run(g, lines, "qmadmin QUE");
	size_t n = strlen(given_dir(g));

	for (char *at = r.err; (at = strstr(at, given_dir(g))) != NULL; at++) {
		*at = '@';
		memmove(at + 1, at + n, strlen(at + n) + 1);
	}

	if (strcmp(r.err, expected) != 0)
		printf("\n--- complained\n%s--- expected\n%s---\n", r.err, expected);
	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_STRING_EQUAL(r.err, expected);
	ran_free(&r);
}

static void
refuses_to_start(const struct given *g, const char *command, const char *number, const char *words)
{
	struct ran r = given_run(g, "q\n", "%s", command);

	if (!has(r.err, number) || !has(r.err, words))
		printf("\n%s complained: %s", command, r.err);
	CU_ASSERT_EQUAL(r.status, 1);
	CU_ASSERT_TRUE(has(r.err, number));
	CU_ASSERT_TRUE(has(r.err, words));
	ran_free(&r);
}

/* --- before anything is there --- */

static void
a_start_that_cannot_work_says_why(void)
{
	struct given *g = given_directory();

	refuses_to_start(g, "unset QMCONFIG; qmadmin", "QM_CAT:1101: ERROR: ", "QMCONFIG is not set");
	refuses_to_start(g, "qmadmin -x", "QM_CAT:1100: ERROR: ", "usage: [QMCONFIG=device] qmadmin [device]");
	refuses_to_start(g, "qmadmin QUE extra", "QM_CAT:1102: ERROR: ", "\"extra\"");
	refuses_to_start(g, "qmadmin no/QUE", "QM_CAT:1104: ERROR: ", "no/");
	given_write(g, "other", "something else\n");
	refuses_to_start(g, "qmadmin other", "QM_CAT:1104: ERROR: ", "other:1: not a device file");
	given_write(g, "other", "atmiq-device 7\n");
	refuses_to_start(g, "qmadmin other", "QM_CAT:1104: ERROR: ",
	    "version 7; this program reads and writes version 1");
	if (geteuid() == 0) {
		free(given_ok(g, NULL, "chown 12345 other"));
		refuses_to_start(g, "qmadmin other", "QM_CAT:1105: ERROR: ",
		    "effective user id 0 is not its owner, user id 12345");
	}
	given_done(g);
}

/* The dialogue of the book, with the answers of a script. */
static void
a_device_and_a_space_are_made_by_answers(void)
{
	struct given *g = given_directory();

	prints(g, "crdl QUE 0 2000\nqspacecreate\nORDERS\n61000\n800\n6\n10\n12\n500\nERRQ\ny\n\nv\nlidl\nlivtoc\nq\n",
	    "> Created device QUE, offset 0, size 2000 on QUE\n"
	    "> Queue space name: IPC Key for queue space: Size of queue space in disk pages: Number of queues in queue space: "
	    "Number of concurrent transactions in queue space: Number of concurrent processes in queue space: "
	    "Number of messages in queue space: Error queue name: Initialize extents (y, n [default=n]): Blocking factor [default=16]: "
	    "> Verbose mode is now on\n"
	    "> universal device index. 0:\n  name: QUE\n  start: 0\n  size: 2000\n  free space map(1 entry used 47 available):\n"
	    "    size[1]: 1174  addr[1]: 826\n"
	    "> volume table of contents entry. 0:\n  name: ORDERS\n  kind: qspace\n  device: QUE\n  offset: 26\n  pages: 800\n  extent: 0\n"
	    "> ");
	prints(g, "qopen ORDERS\nqcreate\nREQ\nfifo\nnone\n2\n30\n5m\n\n\nqinfo REQ\n",
	    "> > Queue name: Queue order (priority, time, expiration, fifo, lifo): "
	    "Out-of-ordering enqueuing (top, msgid, [default=none]): Retries [default=0]: Retry delay in seconds [default=0]: "
	    "High limit for queue capacity warning (b for bytes used, B for blocks used, % for percent used, m for messages [default=100%]): "
	    "Reset (low) limit for queue capacity warning [default=0m]: Queue capacity command: "
	    "> queue: REQ\n  messages: 0\n  bytes: 0\n  blocks: 0\n  non-persistent messages: 0\n  non-persistent bytes: 0\n"
	    "  held by transactions: 0\n  not available yet: 0\n> ");
	given_done(g);
}

static void
input_that_ends_in_a_question_makes_nothing(void)
{
	struct given *g = given_directory();

	free(given_ok(g, "crdl QUE 0 400\n", "qmadmin QUE"));
	complains(g, "qspacecreate\nORDERS\n61000\n",
	    "ERROR: the input ended where an answer to \"Size of queue space in disk pages:\" was expected; the command was not carried out\n");
	complains(g, "qspacedestroy ORDERS\n",
	    "ERROR: the input ended where an answer to \"Destroy queue space ORDERS\" was expected; "
	    "the command was not carried out\n");
	prints(g, "livtoc\n", "> > ");
	given_done(g);
}

static void
mistakes_have_their_numbers_and_the_rest_goes_on(void)
{
	struct given *g = given_directory();

	free(given_ok(g, "crdl QUE 0 400\nqspc S 61000 100 6 4 9 30 ERR n 16\n", "qmadmin QUE"));
	complains(g, "qspc T 61001 100 6 4 9 30 ERR n x\nqspc T 61001 4 6 4 9 30 ERR n 16\nqspc S 61001 100 6 4 9 30 ERR n 16\n"
	    "qspc T 61001 1000 6 4 9 30 ERR n 16\nqopen NONE\nqopen S\nqcr Q fifo none 0 x 100% 0 ''\nqcr Q fifo none 0 0 5x 0 ''\n"
	    "qcr Q fifo none 0 0 xm 0 ''\nqcr Q fifo none 0 0 0% 0 ''\nqcr Q fifo none 0 0 5m 1% ''\nqcr Q fifo none 0 0 5m 5 ''\n"
	    "qcr Q fifo none 0 0 5m 0 ''\nqset Q\nqlist\nqdltm -y\nqcp -y 10\nqspch \"\"\nq\n",
	    "QM_CAT:1505: ERROR: blocking factor \"x\" is not a number from 1 on\n"
	    "ERROR: 4 pages do not cover the overhead of a queue space with 6 queues: one page, and one for each queue\n"
	    "ERROR: Create queue space: @/QUE: there is a qspace of the name S already\n"
	    "ERROR: Create queue space: @/QUE: 1000 pages wanted for T, 274 free on its 1 entry\n"
	    "QM_CAT:1350: ERROR: Open queue space: queue space NONE: @/QUE: there is no queue space NONE\n"
	    "QM_CAT:1201: ERROR: retry delay \"x\" is not a number of seconds\n"
	    "QM_CAT:1205: ERROR: high limit \"5x\": unit is none of bBm%\n"
	    "QM_CAT:1206: ERROR: high limit \"xm\" is not a number\n"
	    "QM_CAT:1207: ERROR: high limit \"0%\": must be above 0 and at most 100%\n"
	    "QM_CAT:1210: ERROR: low limit \"1%\": its unit is not that of the high limit, m\n"
	    "QM_CAT:1212: ERROR: low limit 5m is not below the high limit 5m\n"
	    "QM_CAT:1401: INFO: qlist: no message of queue Q matches the selection criteria of qscan\n"
	    "QM_CAT:1407: INFO: qdeletemsg: no message of queue Q matches the selection criteria of qscan\n"
	    "ERROR: qchangeprio: not available in this version\n"
	    "QM_CAT:1507: ERROR: Change queue space: the queue space name is empty\n");
	given_done(g);
}

static void
a_device_made_anew_moves_its_old_data_aside(void)
{
	struct given *g = given_directory();
	struct ran r;

	free(given_ok(g, "crdl QUE 0 400\nqspc S 61000 100 6 4 9 30 ERR n 16\nqopen S\nqcr Q fifo none 0 0 100% 0 ''\n", "qmadmin QUE"));
	free(given_ok(g, NULL, "rm QUE"));
	r = given_run(g, "crdl QUE 0 400\nqopen S\n", "qmadmin QUE");
	CU_ASSERT_TRUE(has(r.out, "Created device QUE, offset 0, size 400 on QUE\n"));
	CU_ASSERT_TRUE(has(r.err, "INFO: ") && has(r.err, "was moved to ") && has(r.err, "QUE.d.old"));
	CU_ASSERT_TRUE(has(r.err, "QM_CAT:1350: ERROR: Open queue space"));
	ran_free(&r);
	CU_ASSERT_TRUE(given_exists(g, "QUE.d.old/S"));
	given_done(g);
}

static void
things_are_taken_down_again(void)
{
	struct given *g = given_directory();

	prints(g, "crdl QUE 0 400\ncrdl spare 0 50\nqspc S 61000 100 6 4 9 30 ERR n 16\nqopen S\nqcr Q fifo none 0 0 100% 0 ''\n"
	    "qds Q\nn\nqds Q\ny\nqinfo\nqspds -y S\ndsdl 1\ny\nchdl 0 OTHER\nlidl\ndsdl -y 0\n",
	    "> Created device QUE, offset 0, size 400 on QUE\n> Created device spare, offset 0, size 50 on QUE\n> > > "
	    "> Destroy queue Q (y/n)? > Destroy queue Q (y/n)? > > > "
	    "Remove device spare, offset 0 from the universal device list (y/n)? > > universal device index. 0:\n  name: OTHER\n"
	    "  start: 0\n  size: 400\n> > ");
	CU_ASSERT_FALSE(given_exists(g, "QUE"));
	CU_ASSERT_FALSE(given_exists(g, "QUE.d"));
	given_done(g);
}

static void
a_space_is_changed_and_grows(void)
{
	struct given *g = given_directory();
	char *out;

	free(given_ok(g, "crdl QUE 0 400\nqspc S 61000 100 6 4 9 30 ERR n 16\nqadd S 51\nqspch -n 10B S\n\n7\n\n99\n\n\n8\n", "qmadmin QUE"));
	out = given_ok(g, "qspl S\n", "qmadmin QUE");
	CU_ASSERT_TRUE(has(out,
	    "queue space: S\n  ipc key: 61000\n  pages: 148\n  queues: 6\n  transactions: 7\n  processes: 9\n  messages: 99\n"
	    "  error queue: ERR\n  initialize extents: n\n  blocking factor: 8\n  non-persistent memory in bytes: 5120\n"));
	CU_ASSERT_TRUE(has(out, "  extent 0: 100 pages at 26 on QUE\n  extent 1: 48 pages at 126 on QUE\n"));
	free(out);
	complains(g, "qadd S 1000\n", "ERROR: Add extent: @/QUE: 1000 pages wanted for S, 226 free on its 1 entry\n");
	given_done(g);
}

/* Two administrators on a stopped space: each command of both is carried out. */
static void
two_of_them_take_turns_on_a_stopped_space(void)
{
	struct given *g = given_directory();
	char *out;

	free(given_ok(g, "crdl QUE 0 1000\nqspc S 61000 800 60 4 9 30 ERR n 16\n", "qmadmin QUE"));
	given_write(g, "many",
	    "f() { echo qopen S; for i in 1 2 3 4 5 6 7 8; do echo \"qcr $1$i fifo none 0 0 100%% 0 ''\"; done; }\n"
	    "f A | qmadmin QUE 2>err.a & f B | qmadmin QUE 2>err.b; wait\ncat err.a err.b >&2\n");
	free(given_ok(g, NULL, "sh ./many && test ! -s err.a -a ! -s err.b"));
	out = given_ok(g, "qopen S\nqinfo\n", "qmadmin QUE");
	CU_ASSERT_EQUAL(count_of(out, "queue: A"), 8);
	CU_ASSERT_EQUAL(count_of(out, "queue: B"), 8);
	free(out);
	given_done(g);
}

/* --- on a space that is served --- */

static const struct given_conf one_queue = { .queues = "qcreate ORDERS fifo none 0 0 100% 0% \"\"\n" };

static void
a_served_space_answers_the_same_commands(void)
{
	struct given *g = given_system(&one_queue);
	char *out;

	put("ORDERS", "two boxes of nails");
	put("ORDERS", "a hammer");
	out = given_qmadmin(g,
	    "qinfo ORDERS\nqset ORDERS\nqlist\nqcr NEW prio none 0 0 100% 0 ''\nqcr NEW prio none 0 0 100% 0 ''\nipcs\n"
	    "qdltm -y\nqinfo ORDERS\nqds -y NEW\nqspacelist\nqpt\n");
	CU_ASSERT_TRUE(has(out, "queue: ORDERS\n  messages: 2\n"));
	CU_ASSERT_TRUE(has(out, "  length: 19\n") || has(out, "  length: 18\n"));
	CU_ASSERT_EQUAL(count_of(out, "message: "), 2);
	CU_ASSERT_TRUE(has(out, "  endpoint: ipc://"));
	CU_ASSERT_TRUE(has(out, "2 messages deleted\n"));
	CU_ASSERT_TRUE(has(out, "queue: ORDERS\n  messages: 0\n"));
	CU_ASSERT_TRUE(has(out, "queue space: QSPACE\n"));
	free(out);
	CU_ASSERT_EQUAL(take_diagnostic("ORDERS"), QMENOMSG);
	given_done(g);
}

/* One qmadmin that lives through the death and the return of the process that serves the space. */
static void
qmadmin_outlives_the_server_of_its_space(void)
{
	struct given *g = given_system(&one_queue);
	char *out;
	pid_t old = given_pid(g, "TMQUEUE", 0);

	put("ORDERS", "survives");
	given_write(g, "script", "echo qopen QSPACE; echo qinfo ORDERS; echo '!kill -9 %ld'; echo qinfo ORDERS; "
	    "echo \"qcr LATER fifo none 0 0 100%% 0 ''\"; echo qinfo LATER\n", (long)old);
	out = given_ok(g, NULL, "sh ./script | qmadmin 2>&1");
	CU_ASSERT_EQUAL(count_of(out, "queue: ORDERS\n  messages: 1\n"), 2);
	CU_ASSERT_EQUAL(count_of(out, "queue: LATER\n"), 1);
	if (has(out, "ERROR"))
		printf("\n%s\n", out);
	CU_ASSERT_FALSE(has(out, "ERROR"));
	free(out);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 10));
	out = take_within("ORDERS", 10);
	CU_ASSERT_PTR_NOT_NULL(out);
	free(out);
	put("LATER", "new work");
	given_done(g);
}

static void
an_open_qmadmin_does_not_keep_the_server_from_booting(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 0 0 100% 0% \"\"\n",
	    .not_booted = true });
	char *out;

	out = given_qmadmin(g, "qinfo ORDERS\n!tmboot -y >boot.out 2>&1\nqinfo ORDERS\nipcs\n");
	CU_ASSERT_EQUAL(count_of(out, "queue: ORDERS\n"), 2);
	CU_ASSERT_TRUE(has(out, "  endpoint: ipc://"));
	free(out);
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	given_done(g);
}

static void
what_is_in_use_is_not_taken_away(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 0 0 100% 0% \"\"\n",
	    .space_options = "-n 100B" });
	TPQCTL ctl = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT };
	struct ran r;
	char *data = tpalloc("STRING", NULL, 16);

	strncpy(data, "in memory", 16);
	put("ORDERS", "on disk");
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "ORDERS", &ctl, data, 0, 0), 0);
	tpfree(data);
	r = given_run(g, "ipcrm -y QSPACE\nqspacedestroy -y QSPACE\nqspacedestroy -f -y QSPACE\n", "qmadmin");
	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_TRUE(has(r.err, "ipcrm: process ") && has(r.err, "serves queue space QSPACE"));
	CU_ASSERT_EQUAL(count_of(r.err, "ERROR: Destroy queue space: "), 2);
	ran_free(&r);
	r = given_run(g, "v\nipcrm -f -y QSPACE\n", "qmadmin");
	CU_ASSERT_TRUE(has(r.out, "1 non-persistent messages removed from queue space QSPACE\n"));
	ran_free(&r);
	r = given_run(g, "crdl QUE 0 400\n", "rm QUE; qmadmin QUE");
	CU_ASSERT_TRUE(has(r.err, "still serves QSPACE"));
	ran_free(&r);
	CU_ASSERT_TRUE(peeks("ORDERS", "on disk"));
	given_done(g);
}

/* Messages that arrive while a queue is being cleared are not lost: what was put is what was deleted and what is left. */
static void
only_what_is_shown_as_deleted_vanishes(void)
{
	struct given *g = given_system(&one_queue);
	pid_t child;
	char *out, *at;
	long deleted = 0;
	int status;

	for (int i = 0; i < 300; i++)
		put("ORDERS", "before");
	if ((child = fork()) == 0) {
		execl("/bin/sh", "sh", "-c",
		    "cd $APPDIR; printf 'qopen QSPACE\\nqset ORDERS\\nqdltm -y\\n' | qmadmin >deleted", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 200; i++)
		put("ORDERS", "during");
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	out = given_read(g, "deleted");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	if ((at = strstr(out, " messages deleted")) != NULL) {
		while (at > out && at[-1] >= '0' && at[-1] <= '9')
			at--;
		deleted = atol(at);
	}
	CU_ASSERT_TRUE(deleted >= 300);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 500 - deleted);
	free(out);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_start_that_cannot_work_says_why),
		UNIT(a_device_and_a_space_are_made_by_answers),
		UNIT(input_that_ends_in_a_question_makes_nothing),
		UNIT(mistakes_have_their_numbers_and_the_rest_goes_on),
		UNIT(a_device_made_anew_moves_its_old_data_aside),
		UNIT(things_are_taken_down_again),
		UNIT(a_space_is_changed_and_grows),
		UNIT(two_of_them_take_turns_on_a_stopped_space),
		UNIT(a_served_space_answers_the_same_commands),
		UNIT(qmadmin_outlives_the_server_of_its_space),
		UNIT(an_open_qmadmin_does_not_keep_the_server_from_booting),
		UNIT(what_is_in_use_is_not_taken_away),
		UNIT(only_what_is_shown_as_deleted_vanishes),
	};

	return unit_run("qmadmin", tests, UNIT_COUNT(tests));
}
