/*
 * story_boot - tmboot and tmshutdown in any order: parts, again, at once with another, interrupted, with what hangs or fails.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

/* A server that behaves as the word after -- in its CLOPT says, and offers the service named by the next. */
static const char source[] =
    "#include <fcntl.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n#include <atmi.h>\n"
    "static char how[20], name[20];\n"
    "static void touch(const char *file) { close(open(file, O_CREAT | O_WRONLY, 0600)); }\n"
    "static void until(const char *file) { while (access(file, F_OK) != 0) usleep(2000); }\n"
    "void SVC(TPSVCINFO *m) {\n"
    "  if (m->data != NULL && strcmp(m->data, \"hang\") == 0) { touch(\"hanging\"); for (;;) pause(); }\n"
    "  if (m->data != NULL && strcmp(m->data, \"wait\") == 0) { touch(\"working\"); until(\"go\"); }\n"
    "  tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "int tpsvrinit(int argc, char **argv) {\n"
    "  if (argc > 2) { snprintf(how, sizeof how, \"%s\", argv[argc - 2]); snprintf(name, sizeof name, \"%s\", argv[argc - 1]); }\n"
    "  if (strcmp(how, \"refuse\") == 0) return -1;\n"
    "  if (strcmp(how, \"slow\") == 0) { touch(\"starting\"); until(\"go\"); }\n"
    "  return name[0] != 0 ? tpadvertise(name, SVC) : 0; }\n"
    "void tpsvrdone(void) { if (strcmp(how, \"stay\") == 0) { touch(\"staying\"); until(\"go\"); } }\n";

static struct given *
application(const char *servers, const char *services)
{
	return given_system(&(struct given_conf){ .no_queue_group = true, .not_booted = true, .server_source = source,
	    .server_params = "CLOPT=\"-A -- good FIRST\"", .servers = servers, .services = services });
}

static struct given *
application_of_three(void)
{
	return application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- good SECOND\"\nserver SRVGRP=APP SRVID=3 SEQUENCE=7 CLOPT=\"-A -- good THIRD\"\n", "");
}

/* Run it, expect `status`, and all of `text` in what it says on stdout and stderr. */
static void
runs(const struct given *g, int status, const char *command, const char *text)
{
	struct ran r = given_run(g, NULL, "%s 2>&1", command);

	CU_ASSERT_EQUAL(r.status, status);
	CU_ASSERT_TRUE(has(r.out, text));
	if (r.status != status || !has(r.out, text))
		fprintf(stderr, "\n%s: status %d, expected %d and \"%s\"\n%s\n", command, r.status, status, text, r.out);
	ran_free(&r);
}

static int	/* 0, or tperrno */
call(const char *service, const char *text)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	int rc;

	snprintf(data, 64, "%s", text);
	rc = tpcall((char *)service, data, 0, &data, &len, 0) == -1 ? tperrno : 0;
	tpfree(data);
	return rc;
}

/* A command that runs beside the story, in its own session as from another terminal; its output goes to NAME.out. */
static pid_t
begin(const struct given *g, const char *name, const char *command)
{
	pid_t pid = fork();
	char line[300];

	if (pid == 0) {
		snprintf(line, sizeof line, "exec %s >%s.out 2>&1", command, name);
		setsid();
		if (chdir(given_dir(g)) == 0)
			execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int status_of_end;

static bool
has_ended(void *pid)
{
	return waitpid(*(pid_t *)pid, &status_of_end, WNOHANG) == *(pid_t *)pid;
}

static int	/* its exit status; 128 + signal; -1: it does not end */
end_of(pid_t pid)
{
	if (!wait_until(has_ended, &pid, 40)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	return WIFEXITED(status_of_end) ? WEXITSTATUS(status_of_end) : 128 + WTERMSIG(status_of_end);
}

static bool
file_is_there(void *name)
{
	return given_exists(given_standing(), name);
}

#define COMES(file) CU_ASSERT_TRUE_FATAL(wait_until(file_is_there, file, 20))

/* --- parts --- */

static void
parts_are_booted_and_stopped_in_any_order(void)
{
	struct given *g = application_of_three();

	runs(g, 1, "tmboot -i 1", "CMDTUX_CAT:764: ERROR: no bulletin board exists");
	runs(g, 0, "tmboot -A", "1 process started.");
	runs(g, 0, "tmboot -o 7", "1 process started.");
	runs(g, 0, "tmboot -s server -i 2", "1 process started.");
	CU_ASSERT_EQUAL(call("THIRD", "x"), 0);
	CU_ASSERT_EQUAL(call("SECOND", "x"), 0);
	CU_ASSERT_EQUAL(call("FIRST", "x"), TPENOENT);
	runs(g, 0, "tmboot -y", "1 process started.");
	given_done(g);
}

static void
what_runs_is_a_duplicate_and_what_does_not_is_passed_over(void)
{
	struct given *g = application_of_three();

	runs(g, 0, "tmboot -y", "4 processes started.");
	runs(g, 0, "tmboot -g APP", "0 processes started.");
	runs(g, 0, "tmboot -i 2", "CMDTUX_CAT:821: INFO: Duplicate server.");
	runs(g, 0, "tmshutdown -i 2", "\n1 process stopped.");
	runs(g, 0, "tmshutdown -i 2", "\n0 processes stopped.");
	runs(g, 0, "tmboot -g APP", "1 process started.");
	runs(g, 0, "tmshutdown -y", "\n4 processes stopped.");
	runs(g, 1, "tmshutdown -y", "no bulletin board exists");
	given_done(g);
}

static void
bbl_is_the_last_to_go(void)
{
	struct given *g = application_of_three();

	runs(g, 0, "tmboot -y", "4 processes started.");
	runs(g, 1, "tmshutdown -A", "3 servers still run, the first is ");
	runs(g, 1, "tmshutdown -M", "0 processes stopped.");
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
	tpterm();
	runs(g, 0, "tmshutdown -S", "3 processes stopped.");
	runs(g, 0, "tmshutdown -B SITE1", "1 process stopped.");
	given_done(g);
}

static void
clients_keep_bbl_unless_c_is_given(void)
{
	struct given *g = application_of_three();

	runs(g, 0, "tmboot -y", "4 processes started.");
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);		/* we are a client now */
	runs(g, 1, "tmshutdown -y", "1 clients are still attached");
	CU_ASSERT_EQUAL(given_count(g, NULL), 1);
	runs(g, 0, "tmboot -y", "3 processes started.");
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);		/* and are one still */
	runs(g, 0, "tmshutdown -y -c", "4 processes stopped.");
	runs(g, 0, "tmboot -y", "4 processes started.");
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
	given_done(g);
}

static void
min_instances_boot_and_all_that_run_are_stopped(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=10 MIN=2 MAX=4 CLOPT=\"-A -- good MANY\"\n", "");

	runs(g, 0, "tmboot -y", "4 processes started.");
	runs(g, 0, "tmboot -i 13", "1 process started.");
	runs(g, 1, "tmboot -i 14", "nothing in ");
	runs(g, 0, "tmshutdown -i 10", "1 process stopped.");
	runs(g, 0, "tmshutdown -s server -g APP", "3 processes stopped.");
	CU_ASSERT_EQUAL(given_count(g, "server"), 0);
	given_done(g);
}

static void
a_tms_is_chosen_by_group_program_and_id(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate Q fifo none 0 0 100% 0% \"\"\n", .not_booted = true });

	runs(g, 0, "tmboot -A -T QUE1", "3 processes started.");	/* TMSCOUNT=2 */
	runs(g, 0, "tmboot -s TMQUEUE", "1 process started.");
	put("Q", "x");
	runs(g, 0, "tmshutdown -s TMS_QM -i 30002", "1 process stopped.");
	runs(g, 0, "tmshutdown -T QUE1", "1 process stopped.");	/* before the group's servers: they work on */
	put("Q", "y");
	runs(g, 0, "tmboot -g QUE1 -s TMS_QM", "2 processes started.");
	given_done(g);
}

static void
questions_are_asked_only_where_nothing_narrows_the_scope(void)
{
	struct given *g = application_of_three();

	runs(g, 0, "echo n | tmboot", "Boot all admin and server processes? (y/n):");
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	runs(g, 0, "tmboot -n -d1", "exec server -C dom=given -g 1 -i 3 ");
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	runs(g, 0, "tmboot -c", "IPC needs of ");
	free(given_ok(g, NULL, "tmboot -q </dev/null >quiet 2>&1 && test ! -s quiet"));	/* -q: and no question */
	CU_ASSERT_EQUAL(given_count(g, NULL), 4);
	runs(g, 0, "tmshutdown </dev/null", "Shutdown all admin and server processes? (y/n):");
	runs(g, 0, "tmshutdown -n", "\tServer Id = 2 Group Id = APP Machine = SITE1\n");
	CU_ASSERT_EQUAL(given_count(g, NULL), 4);
	runs(g, 1, "tmshutdown -H NOSITE", "machine NOSITE is not in section MACHINES");
	runs(g, 0, "tmshutdown -H SITE1 </dev/null", "\n4 processes stopped.");
	runs(g, 1, "tmshutdown -w x", "usage: tmshutdown ");
	runs(g, 1, "tmshutdown -k HUP", "usage: tmshutdown ");
	given_done(g);
}

/* --- what fails --- */

static void
what_cannot_start_is_said_and_the_rest_runs(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- refuse X\"\nnosuch SRVGRP=APP SRVID=3\n"
	    "server SRVGRP=APP SRVID=4 CLOPT=\"-s NOTBUILT\"\nserver SRVGRP=APP SRVID=5 CLOPT=\"-A -- good LAST\"\n", "");

	runs(g, 1, "tmboot -y -e 'echo bail >>bailed'", "\n3 processes started.");
	free(given_ok(g, NULL, "test `wc -l <bailed` -eq 3"));
	runs(g, 1, "tmboot -i 2", "\tprocess id=");
	runs(g, 1, "tmboot -i 2", "CMDTUX_CAT:1685: ERROR: Application initialization failure");
	runs(g, 1, "tmboot -s nosuch", "no executable file nosuch");
	CU_ASSERT_TRUE(given_logged(g, "tpsvrinit() failed"));
	CU_ASSERT_TRUE(given_logged(g, "NOTBUILT"));
	CU_ASSERT_EQUAL(call("LAST", "x"), 0);
	given_done(g);
}

static void
a_command_on_failure_may_bail_out(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- refuse X\"\nserver SRVGRP=APP SRVID=3 CLOPT=\"-A -- good X\"\n", "");

	runs(g, 1, "tmboot -y -e 'tmshutdown -y'", "\n2 processes started.");	/* what came before, and was stopped again */
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	given_done(g);
}

/* --- at once, and interrupted --- */

static void
two_boots_at_once_start_each_server_once(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=10 MIN=10 CLOPT=\"-A -- good MANY\"\n", "");
	int i;

	for (i = 0; i < 3; i++) {
		pid_t one = begin(g, "one", "tmboot -y"), other = begin(g, "other", "tmboot -y");

		CU_ASSERT_EQUAL(end_of(one), 0);
		CU_ASSERT_EQUAL(end_of(other), 0);
		CU_ASSERT_EQUAL(given_count(g, "server"), 11);
		free(given_ok(g, NULL, "test `cat one.out other.out | grep -c Started` -eq 12"));
		given_shutdown(g);
	}
	given_done(g);
}

static void
two_shutdowns_at_once_leave_nothing(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=10 MIN=10 CLOPT=\"-A -- good MANY\"\n", "");
	int i;

	for (i = 0; i < 3; i++) {
		pid_t one, other;

		free(given_ok(g, NULL, "tmboot -y"));
		one = begin(g, "one", "tmshutdown -y");
		other = begin(g, "other", "tmshutdown -y");
		/* Who comes when all is over says so. */
		CU_ASSERT_TRUE(end_of(one) >= 0);
		CU_ASSERT_TRUE(end_of(other) >= 0);
		CU_ASSERT_EQUAL(given_count(g, NULL), 0);
		free(given_ok(g, NULL, "! grep -E '1702|does not answer' one.out other.out"));
	}
	given_done(g);
}

static void
boot_and_shutdown_at_once_leave_a_system_that_boots(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=10 MIN=10 CLOPT=\"-A -- good MANY\"\n", "");
	int i;

	for (i = 0; i < 4; i++) {
		pid_t up, down;

		free(given_ok(g, NULL, "tmboot -y"));
		down = begin(g, "down", "tmshutdown -y");
		up = begin(g, "up", "tmboot -y");
		CU_ASSERT_TRUE(end_of(down) >= 0);
		CU_ASSERT_TRUE(end_of(up) >= 0);
		free(given_ok(g, NULL, "tmboot -y"));
		CU_ASSERT_EQUAL(given_count(g, "server"), 11);
		up = begin(g, "up", "tmboot -g APP");
		down = begin(g, "down", "tmshutdown -y");
		CU_ASSERT_TRUE(end_of(down) >= 0);
		CU_ASSERT_TRUE(end_of(up) >= 0);
		free(given_ok(g, NULL, "tmboot -y; tmshutdown -y"));
		CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	}
	given_done(g);
}

static void
a_boot_that_is_killed_is_done_again(void)
{
	static const int signals[] = { SIGKILL, SIGINT };
	size_t i;

	for (i = 0; i < UNIT_COUNT(signals); i++) {
		struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- slow SLOW\"\n"
		    "server SRVGRP=APP SRVID=3 CLOPT=\"-A -- good LAST\"\n", "");
		pid_t one = begin(g, "one", "tmboot -y"), other;

		COMES("starting");
		kill(one, signals[i]);
		CU_ASSERT_EQUAL(end_of(one), 128 + signals[i]);
		other = begin(g, "other", "tmboot -y");		/* waits for what the first one left */
		given_write(g, "go", "now");
		CU_ASSERT_EQUAL(end_of(other), 0);
		CU_ASSERT_EQUAL(call("SLOW", "x"), 0);
		CU_ASSERT_EQUAL(call("LAST", "x"), 0);
		given_done(g);
	}
}

static void
a_shutdown_that_is_killed_is_done_again(void)
{
	static const int signals[] = { SIGKILL, SIGINT };
	size_t i;

	for (i = 0; i < UNIT_COUNT(signals); i++) {
		struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- stay STAYS\"\n"
		    "server SRVGRP=APP SRVID=3 CLOPT=\"-A -- good LAST\"\n", "");
		pid_t one, other;

		free(given_ok(g, NULL, "tmboot -y"));
		one = begin(g, "one", "tmshutdown -y");
		COMES("staying");
		kill(one, signals[i]);
		CU_ASSERT_EQUAL(end_of(one), 128 + signals[i]);
		CU_ASSERT_EQUAL(call("LAST", "x"), TPENOENT);
		CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
		tpterm();
		runs(g, 1, "tmboot -i 2", "still being shut down");
		other = begin(g, "other", "tmshutdown -y");
		given_write(g, "go", "now");
		CU_ASSERT_EQUAL(end_of(other), 0);
		CU_ASSERT_EQUAL(given_count(g, NULL), 0);
		given_done(g);
	}
}

static void
bbl_dies_while_something_is_booted_or_stopped(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- slow SLOW\"\n"
	    "server SRVGRP=APP SRVID=3 CLOPT=\"-A -- stay STAYS\"\n", "");
	pid_t pid = begin(g, "up", "tmboot -y");

	COMES("starting");
	given_kill(g, "BBL", SIGKILL);
	given_write(g, "go", "now");
	CU_ASSERT_EQUAL(end_of(pid), 0);
	CU_ASSERT_EQUAL(call("STAYS", "x"), 0);
	tpterm();
	free(given_ok(g, NULL, "rm go"));
	pid = begin(g, "down", "tmshutdown -y");
	COMES("staying");
	given_kill(g, "BBL", SIGKILL);
	given_write(g, "go", "now");
	CU_ASSERT_EQUAL(end_of(pid), 0);
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	given_done(g);
}

/* --- what hangs --- */

static pid_t
client_that_calls(const char *service, const char *text)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(call(service, text));
	return pid;
}

static pid_t	/* the same, and it touches a file once its request is sent */
client_that_waits(const struct given *g, const char *service, const char *file)
{
	pid_t pid = fork();
	char *data;
	long len;
	int cd;

	if (pid == 0) {
		data = tpalloc("STRING", NULL, 64);
		snprintf(data, 64, "x");
		cd = tpacall((char *)service, data, 0, 0);
		given_write(g, file, "now");
		_exit(cd == -1 || tpgetrply(&cd, &data, &len, 0) == -1 ? tperrno : 0);
	}
	return pid;
}

static void
what_hangs_in_a_service_is_ended_by_w_and_k(void)
{
	static const char *const ways[] = { "tmshutdown -i 1 -w 1", "tmshutdown -i 1 -k KILL", "tmshutdown -i 1 -k TERM -w 1", "tmshutdown -i 1 -w 0" };
	struct given *g = application_of_three();
	size_t i;

	free(given_ok(g, NULL, "tmboot -y"));
	for (i = 0; i < UNIT_COUNT(ways); i++) {
		pid_t client = client_that_calls("FIRST", "hang");

		COMES("hanging");
		runs(g, 0, ways[i], "\n1 process stopped.");
		CU_ASSERT_EQUAL(end_of(client), TPESVCERR);
		free(given_ok(g, NULL, "rm hanging; tmboot -i 1"));
		CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
	}
	given_done(g);
}

static void
a_stopped_process_is_ended_by_w(void)
{
	struct given *g = application_of_three();

	free(given_ok(g, NULL, "tmboot -y"));
	kill(given_pid_as(g, 1, 1), SIGSTOP);
	kill(given_pid_as(g, 1, 2), SIGSTOP);
	runs(g, 0, "tmshutdown -y -w 1", "\n4 processes stopped.");
	given_done(g);
}

static void
what_hangs_in_tpsvrinit_or_tpsvrdone_is_ended(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- slow SLOW\"\n"
	    "server SRVGRP=APP SRVID=3 CLOPT=\"-A -- stay STAYS\"\n", "");
	pid_t up;

	free(given_ok(g, NULL, "tmboot -A; tmboot -i 3"));
	up = begin(g, "up", "tmboot -i 2");
	COMES("starting");
	runs(g, 0, "tmshutdown -i 2 -k KILL", "\n1 process stopped.");
	CU_ASSERT_EQUAL(end_of(up), 1);
	free(given_ok(g, NULL, "grep 'shut down before it was ready' up.out"));
	runs(g, 0, "tmshutdown -y -w 1", "\n2 processes stopped.");
	given_done(g);
}

static void
a_second_order_takes_nothing_back_of_the_first(void)
{
	struct given *g = application("server SRVGRP=APP SRVID=2 CLOPT=\"-A -- stay STAYS\"\n", "");
	pid_t first, second;

	free(given_ok(g, NULL, "tmboot -y"));
	first = begin(g, "first", "tmshutdown -i 2 -w 2");
	COMES("staying");
	second = begin(g, "second", "tmshutdown -i 2");		/* without a limit of its own it would wait a minute */
	CU_ASSERT_EQUAL(end_of(first), 0);
	CU_ASSERT_EQUAL(end_of(second), 0);
	given_done(g);
}

/* --- suspended before they are stopped --- */

static bool
shows_first_suspended(void *g)
{
	char *out = given_ok(g, NULL, "echo psc | tmadmin -r 2>/dev/null | grep '^FIRST .* SUSP$'; true");
	bool so = *out != '\0';

	free(out);
	return so;
}

/* SECOND works until it may go, one more request waits for it; FIRST is idle, and known to us.  Then tmshutdown -w of both. */
static pid_t
shutdown_that_waits_for_the_second(struct given *g, pid_t *at_work, pid_t *waits)
{
	pid_t down;

	*at_work = client_that_calls("SECOND", "wait");
	COMES("working");
	*waits = client_that_waits(g, "SECOND", "sent");
	COMES("sent");
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
	down = begin(g, "down", "tmshutdown -i 1 -i 2 -w 30");
	CU_ASSERT_TRUE(wait_until(shows_first_suspended, g, 20));
	return down;
}

static void
w_suspends_all_that_are_selected_and_lets_them_finish(void)
{
	struct given *g = application_of_three();
	pid_t at_work, waits, down;

	free(given_ok(g, NULL, "tmboot -y"));
	down = shutdown_that_waits_for_the_second(g, &at_work, &waits);
	CU_ASSERT_EQUAL(call("FIRST", "x"), TPENOENT);
	CU_ASSERT_EQUAL(call("SECOND", "x"), TPENOENT);
	CU_ASSERT_EQUAL(call("THIRD", "x"), 0);		/* was not selected */
	CU_ASSERT_EQUAL(given_count(g, "server"), 3);
	given_write(g, "go", "now");
	CU_ASSERT_EQUAL(end_of(at_work), 0);
	CU_ASSERT_EQUAL(end_of(waits), 0);
	CU_ASSERT_EQUAL(end_of(down), 0);
	CU_ASSERT_EQUAL(given_count(g, "server"), 1);
	free(given_ok(g, NULL, "tmboot -y"));
	CU_ASSERT_EQUAL(call("FIRST", "x"), 0);
	given_done(g);
}

static bool
first_answers(void *arg)
{
	(void)arg;
	return call("FIRST", "x") == 0;
}

static void
who_was_suspended_and_not_stopped_serves_again(void)
{
	struct given *g = application_of_three();
	pid_t at_work, waits, down;

	free(given_ok(g, NULL, "tmboot -y"));
	down = shutdown_that_waits_for_the_second(g, &at_work, &waits);
	CU_ASSERT_EQUAL(call("FIRST", "x"), TPENOENT);
	kill(down, SIGKILL);
	CU_ASSERT_EQUAL(end_of(down), 128 + SIGKILL);
	CU_ASSERT_TRUE(wait_until(first_answers, NULL, 20));
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:1770: WARN: server APP/1 (server) serves again"));
	given_write(g, "go", "now");
	CU_ASSERT_EQUAL(end_of(at_work), 0);
	CU_ASSERT_EQUAL(end_of(waits), 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(parts_are_booted_and_stopped_in_any_order),
		UNIT(what_runs_is_a_duplicate_and_what_does_not_is_passed_over),
		UNIT(bbl_is_the_last_to_go),
		UNIT(clients_keep_bbl_unless_c_is_given),
		UNIT(min_instances_boot_and_all_that_run_are_stopped),
		UNIT(a_tms_is_chosen_by_group_program_and_id),
		UNIT(questions_are_asked_only_where_nothing_narrows_the_scope),
		UNIT(what_cannot_start_is_said_and_the_rest_runs),
		UNIT(a_command_on_failure_may_bail_out),
		UNIT(two_boots_at_once_start_each_server_once),
		UNIT(two_shutdowns_at_once_leave_nothing),
		UNIT(boot_and_shutdown_at_once_leave_a_system_that_boots),
		UNIT(a_boot_that_is_killed_is_done_again),
		UNIT(a_shutdown_that_is_killed_is_done_again),
		UNIT(bbl_dies_while_something_is_booted_or_stopped),
		UNIT(what_hangs_in_a_service_is_ended_by_w_and_k),
		UNIT(a_stopped_process_is_ended_by_w),
		UNIT(what_hangs_in_tpsvrinit_or_tpsvrdone_is_ended),
		UNIT(a_second_order_takes_nothing_back_of_the_first),
		UNIT(w_suspends_all_that_are_selected_and_lets_them_finish),
		UNIT(who_was_suspended_and_not_stopped_serves_again),
	};

	return unit_run("boot", tests, UNIT_COUNT(tests));
}
