/*
 * story_supervision - BBL looks after the servers, and the servers after BBL.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

#define FOR_EVER "RESTART=Y GRACE=0 MAXGEN=255"

/* FATE is called with one word: exit, die, hang the process or its routine; INIT of the environment's file decides about the start. */
static const char source[] =
    "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "static void note(const char *file, const char *text) { FILE *f = fopen(file, \"a\"); if (f) { fprintf(f, \"%s\\n\", text); fclose(f); } }\n"
    "int tpsvrinit(int argc, char **argv) { (void)argc; (void)argv; note(\"starts\", \"one\");\n"
    "  if (access(\"fail_init\", F_OK) == 0) return -1;\n"
    "  if (access(\"die_in_init\", F_OK) == 0) kill(getpid(), SIGKILL);\n  return 0; }\n"
    "void tpsvrdone(void) { note(\"dones\", \"one\"); }\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, getpid(), m->data, m->len, 0); }\n"
    "void FATE(TPSVCINFO *m) {\n"
    "  note(\"fates\", m->data);\n"
    "  if (strcmp(m->data, \"exit\") == 0) tpreturn(TPEXIT, 1, NULL, 0, 0);\n"
    "  if (strcmp(m->data, \"die\") == 0) kill(getpid(), SIGKILL);\n"
    "  while (strcmp(m->data, \"work\") == 0 && access(\"enough\", F_OK) != 0) usleep(10000);\n"
    "  if (strcmp(m->data, \"offer\") == 0 && tpadvertise(\"MORE\", ECHO) != 0) tpreturn(TPFAIL, tperrno, NULL, 0, 0);\n"
    "  if (strcmp(m->data, \"take\") == 0 && tpunadvertise(\"MORE\") != 0) tpreturn(TPFAIL, tperrno, NULL, 0, 0);\n"
    "  tpreturn(TPSUCCESS, getpid(), m->data, 0, 0); }\n";

static struct given *
given_servers(const char *params, const char *more, const char *resources, const char *services)
{
	return given_system(&(struct given_conf){ .no_queue_group = true, .server_source = source,
	    .server_services = "-s ECHO,FATE", .server_params = params, .servers = more, .resources = resources,
	    .services = services });
}

/* One call: 0 or tperrno. */
static int
call(const char *service, const char *text)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	int e;

	snprintf(data, 64, "%s", text);
	e = tpcall((char *)(uintptr_t)service, data, 0, &data, &len, 0) == -1 ? tperrno : 0;
	tpfree(data);
	return e;
}

static bool
echo_answers(void *unused)
{
	(void)unused;
	return call("ECHO", "hello") == 0;
}

static bool
server_1_is_gone(void *g)
{
	return given_pid_as(g, 1, 1) == 0;
}

struct changed { const struct given *g; int srvid; pid_t old; };

static bool
another_runs(void *arg)
{
	const struct changed *c = arg;
	pid_t now = given_pid_as(c->g, 1, c->srvid);

	return now != 0 && now != c->old;
}

static bool
wait_server_changes(const struct given *g, int srvid, pid_t old, double seconds)
{
	return wait_until(another_runs, &(struct changed){ g, srvid, old }, seconds);
}

struct line { const struct given *g; const char *text; int times; };

static bool
logged_often(void *arg)
{
	const struct line *l = arg;
	char *log = given_log(l->g);
	bool is = count_of(log, l->text) >= l->times;

	free(log);
	return is;
}

static bool
wait_logged(const struct given *g, const char *text, int times, double seconds)
{
	return wait_until(logged_often, &(struct line){ g, text, times }, seconds);
}

static int
lines_in(const struct given *g, const char *file)
{
	char *text = given_read(g, file);
	int n = text != NULL ? count_of(text, "\n") : 0;

	free(text);
	return n;
}

static void
let_exist(const struct given *g, const char *file)
{
	given_write(g, file, "%s", "now\n");
}

/* --- BBL and servers die together --- */

/* The new BBL has taken the server in, which has not spoken to it yet, when it dies. */
static void
a_server_that_dies_before_it_greets_the_new_bbl_is_restarted(void)
{
	struct given *g = given_servers(FOR_EVER " MIN=2 MAX=2", NULL, NULL, NULL);
	pid_t bbl = given_pid(g, "BBL", 0), one = given_pid_as(g, 1, 1);

	CU_ASSERT_TRUE_FATAL(one != 0 && given_pid_as(g, 1, 2) != 0);
	for (int round = 0; round < 2; round++) {	/* the second time a BBL is killed that has not heard of it either */
		kill(one, SIGSTOP);
		given_kill(g, "BBL", SIGKILL);
		CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
		CU_ASSERT_TRUE_FATAL(wait_logged(g, "CMDTUX_CAT:1695", round + 1, 20));
		bbl = given_pid(g, "BBL", 0);
		if (round == 1) {
			given_kill(g, "BBL", SIGKILL);
			CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
			CU_ASSERT_TRUE_FATAL(wait_logged(g, "CMDTUX_CAT:1695", 3, 20));
			bbl = given_pid(g, "BBL", 0);
		}
		kill(one, SIGKILL);
		CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, one, 20));
		CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
		one = given_pid_as(g, 1, 1);
		kill(one, SIGCONT);
		CU_ASSERT_TRUE(wait_logged(g, "runs again", round + 1, 20));
	}
	given_done(g);
}

/* --- RESTART, MAXGEN, GRACE, RCMD --- */

static void
maxgen_less_one_restarts_within_grace(void)
{
	struct given *g = given_servers("RESTART=Y MAXGEN=3 GRACE=600", NULL, NULL, NULL);

	for (int i = 0; i < 2; i++) {
		pid_t old = given_pid_as(g, 1, 1);

		kill(old, SIGKILL);
		CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, old, 20));
		CU_ASSERT_TRUE(wait_logged(g, "runs again", i + 1, 20));
	}
	kill(given_pid_as(g, 1, 1), SIGKILL);
	CU_ASSERT_TRUE(wait_logged(g, "not restarted: MAXGEN=3 allows 2 restarts within GRACE=600 seconds", 1, 20));
	CU_ASSERT_TRUE(server_1_is_gone(g));
	CU_ASSERT_EQUAL(call("ECHO", "x"), TPENOENT);
	given_done(g);
}

static bool
it_is_later(void *when)
{
	return now_s() > *(double *)when;
}

/* One restart each two seconds, whichever BBL counts. */
static void
after_grace_the_count_begins_anew(void)
{
	struct given *g = given_servers("RESTART=Y MAXGEN=2 GRACE=2", "server SRVGRP=APP SRVID=2 RESTART=N\n", NULL, NULL);
	pid_t old, bbl = given_pid(g, "BBL", 0);

	for (int i = 0; i < 2; i++) {
		double later = now_s() + 2.2;

		old = given_pid_as(g, 1, 1);
		kill(old, SIGKILL);
		CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, old, 20));
		CU_ASSERT_TRUE(wait_logged(g, "runs again", i + 1, 20));
		if (i == 0) {
			given_kill(g, "BBL", SIGKILL);
			CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
			CU_ASSERT_TRUE(wait_logged(g, "CMDTUX_CAT:1695", 1, 20));
		}
		CU_ASSERT_TRUE(wait_until(it_is_later, &(double){ later }, 20));
	}
	given_done(g);
}

static void
a_new_bbl_knows_how_often_a_server_was_restarted(void)
{
	struct given *g = given_servers("RESTART=Y MAXGEN=2 GRACE=600", "server SRVGRP=APP SRVID=2 RESTART=N\n", NULL, NULL);
	pid_t old = given_pid_as(g, 1, 1), bbl = given_pid(g, "BBL", 0);

	kill(old, SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, old, 20));
	CU_ASSERT_TRUE(wait_logged(g, "runs again", 1, 20));
	given_kill(g, "BBL", SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_TRUE(wait_logged(g, "CMDTUX_CAT:1695", 1, 20));
	kill(given_pid_as(g, 1, 1), SIGKILL);
	CU_ASSERT_TRUE(wait_logged(g, "MAXGEN=2 allows 1 restarts", 1, 20));
	CU_ASSERT_TRUE(server_1_is_gone(g));
	given_done(g);
}

static bool
rcmd_has_run(void *g)
{
	return given_exists(g, "rcmd.env");
}

/* What RCMD does takes as long as it likes: the server is there meanwhile. */
static void
rcmd_runs_beside_the_restart_with_the_servers_environment(void)
{
	char params[PATH_MAX + 400];
	struct given *g = given_directory();
	char *env;
	pid_t old;

	snprintf(params, sizeof params, FOR_EVER " ENVFILE=\"%s/srv.env\" "
	    "RCMD=\"env >rcmd.new; mv rcmd.new rcmd.env; while test ! -f enough; do sleep 0.05; done; touch rcmd.ended\"", given_dir(g));
	given_write(g, "srv.env", "%s", "WHOSE=the servers\n");
	given_system_in(g, &(struct given_conf){ .no_queue_group = true, .server_source = source, .server_services = "-s ECHO,FATE",
	    .server_params = params });
	CU_ASSERT_FALSE(given_exists(g, "rcmd.env"));
	old = given_pid_as(g, 1, 1);
	kill(old, SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, old, 20));
	CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
	CU_ASSERT_TRUE(wait_until(rcmd_has_run, g, 20));
	CU_ASSERT_FALSE(given_exists(g, "rcmd.ended"));
	env = given_read(g, "rcmd.env");
	CU_ASSERT_TRUE(has(env, "WHOSE=the servers\n"));
	CU_ASSERT_TRUE(has(env, "TUXCONFIG="));
	free(env);
	let_exist(g, "enough");
	for (double end = now_s() + 20; !given_exists(g, "rcmd.ended") && now_s() < end;)
		nap_ms(20);
	CU_ASSERT_TRUE(given_exists(g, "rcmd.ended"));
	given_done(g);
}

/* Callers wait while it is tried again and again, in growing distances. */
static void
a_server_that_dies_in_its_initialisation_is_tried_again_and_its_callers_wait(void)
{
	struct given *g = given_servers(FOR_EVER, NULL, NULL, NULL);

	tpterm();
	let_exist(g, "die_in_init");
	given_kill(g, "server", SIGKILL);
	free(given_ok(g, NULL, "(while ! grep -q 'restarted in 400 ms' ULOG.*; do sleep 0.05; done; rm die_in_init) >/dev/null 2>&1 &"));
	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	CU_ASSERT_TRUE(given_logged(g, "restarted in 400 ms"));
	CU_ASSERT_TRUE(lines_in(g, "starts") >= 4);
	given_done(g);
}

static void
tpexit_ends_the_server_and_restart_brings_it_back(void)
{
	struct given *g = given_servers("RESTART=Y MAXGEN=2 GRACE=600", NULL, NULL, NULL);
	pid_t old = given_pid_as(g, 1, 1);

	CU_ASSERT_EQUAL(call("FATE", "exit"), TPESVCFAIL);
	CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, old, 20));
	CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
	CU_ASSERT_EQUAL(call("FATE", "exit"), TPESVCFAIL);
	CU_ASSERT_TRUE(wait_until(server_1_is_gone, g, 20));
	CU_ASSERT_TRUE(wait_logged(g, "not restarted", 1, 20));
	CU_ASSERT_EQUAL(lines_in(g, "starts"), 2);
	given_done(g);
}

/* --- SANITYSCAN --- */

#define SCAN "SCANUNIT\t2\nSANITYSCAN\t1\nBLOCKTIME\t8\n"	/* three seconds: no less is taken for a sign */

static void
a_process_that_hangs_is_killed_and_restarted_a_busy_one_is_not(void)
{
	struct given *g = given_servers(FOR_EVER, "server SRVGRP=APP SRVID=2 " FOR_EVER " CLOPT=\"-s ONLY2:FATE\"\n", SCAN, NULL);
	pid_t hangs = given_pid_as(g, 1, 1), busy = given_pid_as(g, 1, 2);
	char *data = tpalloc("STRING", NULL, 20);
	long len;
	int cd;

	snprintf(data, 20, "work");
	cd = tpacall("ONLY2", data, 0, TPNOTIME);
	CU_ASSERT_TRUE_FATAL(cd > 0);
	for (double end = now_s() + 20; lines_in(g, "fates") == 0 && now_s() < end;)
		nap_ms(10);
	kill(hangs, SIGSTOP);
	CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, hangs, 30));
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:1740"));
	CU_ASSERT_TRUE(given_logged(g, "and was killed; restarted"));
	CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
	CU_ASSERT_EQUAL(given_pid_as(g, 1, 2), busy);
	let_exist(g, "enough");
	CU_ASSERT_EQUAL(tpgetrply(&cd, &data, &len, TPNOTIME), 0);
	tpfree(data);
	given_done(g);
}

static void
with_restart_n_one_that_hangs_is_not_offered_until_it_lives(void)
{
	struct given *g = given_servers("RESTART=N", "server SRVGRP=APP SRVID=2 " FOR_EVER " CLOPT=\"-s ONLY2:FATE\"\n", SCAN, NULL);
	pid_t hangs = given_pid_as(g, 1, 1), other = given_pid_as(g, 1, 2);
	char *out;

	tpterm();
	kill(hangs, SIGSTOP);
	CU_ASSERT_TRUE_FATAL(wait_logged(g, "CMDTUX_CAT:1741", 1, 30));
	CU_ASSERT_EQUAL(call("ECHO", "x"), TPENOENT);
	out = given_ok(g, "psc\nq\n", "tmadmin");
	CU_ASSERT_TRUE(has(out, "ECHO") && has(out, "UNAVAIL"));
	free(out);
	kill(other, SIGSTOP);			/* when this one is killed, the first one could have been told of twice */
	CU_ASSERT_TRUE(wait_server_changes(g, 2, other, 30));
	CU_ASSERT_FALSE(wait_logged(g, "CMDTUX_CAT:1741", 2, 0));
	CU_ASSERT_EQUAL(given_pid_as(g, 1, 1), hangs);
	kill(hangs, SIGCONT);
	CU_ASSERT_TRUE(wait_logged(g, "CMDTUX_CAT:1742", 1, 20));
	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	given_done(g);
}

static void
one_that_is_traced_is_left_alone(void)
{
	struct given *g = given_servers(FOR_EVER, NULL, SCAN, NULL);
	pid_t pid = given_pid_as(g, 1, 1);

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0) {
		printf("(ptrace is not allowed) ");
		given_done(g);
		return;
	}
	kill(pid, SIGSTOP);			/* its other threads too */
	CU_ASSERT_TRUE(wait_logged(g, "CMDTUX_CAT:1743", 1, 30));
	CU_ASSERT_EQUAL(given_pid_as(g, 1, 1), pid);
	kill(pid, SIGCONT);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGCONT);
	CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
	CU_ASSERT_EQUAL(given_pid_as(g, 1, 1), pid);
	CU_ASSERT_FALSE(given_logged(g, "CMDTUX_CAT:1740"));
	given_done(g);
}

static bool
can_put(void *queue)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	return tpenqueue("QSPACE", queue, &ctl, NULL, 0, 0) != -1;
}

static void
when_the_queue_manager_hangs_the_other_takes_over(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 2 30 80% 0% \"\"\n", .resources = SCAN,
	    .tmqueue = "MIN=2 MAX=2 " FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	pid_t first = given_pid_as(g, 2, 1);
	char *text;

	put("ORDERS", "one");
	kill(first, SIGSTOP);
	CU_ASSERT_TRUE(wait_until(can_put, "ORDERS", 40));
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:1740"));
	text = take("ORDERS");
	CU_ASSERT_PTR_NOT_NULL(text);
	if (text != NULL)
		CU_ASSERT_STRING_EQUAL(text, "one");
	free(text);
	given_done(g);
}

/* --- SVCTIMEOUT --- */

#define LIMITED "FATE SVCTIMEOUT=1\n"

static void
a_service_that_takes_too_long_is_ended_with_its_server(void)
{
	struct given *g = given_servers(FOR_EVER, "server SRVGRP=APP SRVID=2 " FOR_EVER " CLOPT=\"-s ONLY2:FATE\"\n", NULL, LIMITED);
	pid_t late = given_pid_as(g, 1, 1), unlimited = given_pid_as(g, 1, 2);
	char *data = tpalloc("STRING", NULL, 20);
	long len;
	int cd;

	snprintf(data, 20, "work");
	cd = tpacall("ONLY2", data, 0, TPNOTIME);	/* the same routine, as a service without a limit */
	CU_ASSERT_TRUE_FATAL(cd > 0);
	CU_ASSERT_EQUAL(call("FATE", "work"), TPESVCERR);
	CU_ASSERT_TRUE(wait_logged(g, "CMDTUX_CAT:1750: ERROR: service FATE of server APP/1", 1, 20));
	CU_ASSERT_TRUE(given_logged(g, "SVCTIMEOUT is 1 s; killed"));
	CU_ASSERT_TRUE_FATAL(wait_server_changes(g, 1, late, 20));
	CU_ASSERT_TRUE(wait_until(echo_answers, NULL, 20));
	CU_ASSERT_EQUAL(call("FATE", "quick"), 0);
	CU_ASSERT_EQUAL(given_pid_as(g, 1, 2), unlimited);
	let_exist(g, "enough");
	CU_ASSERT_EQUAL(tpgetrply(&cd, &data, &len, TPNOTIME), 0);
	tpfree(data);
	given_done(g);
}

static void
a_new_bbl_knows_since_when_a_service_runs(void)
{
	struct given *g = given_servers("RESTART=N", "server SRVGRP=APP SRVID=2 RESTART=N CLOPT=\"-s ONLY2:ECHO\"\n", NULL,
	    "FATE SVCTIMEOUT=3\n");
	pid_t bbl = given_pid(g, "BBL", 0);
	char *data = tpalloc("STRING", NULL, 20);
	long len;
	int cd;

	snprintf(data, 20, "work");
	cd = tpacall("FATE", data, 0, TPNOTIME);
	for (double end = now_s() + 20; lines_in(g, "fates") == 0 && now_s() < end;)
		nap_ms(10);
	given_kill(g, "BBL", SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_EQUAL(tpgetrply(&cd, &data, &len, TPNOTIME), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_TRUE(wait_logged(g, "SVCTIMEOUT is 3 s; killed", 1, 20));
	CU_ASSERT_TRUE(wait_until(server_1_is_gone, g, 20));
	tpfree(data);
	given_done(g);
}

/* --- away for a while --- */

/* The client is one and the same, which knows the service from before. */
static void
a_service_that_was_away_is_found_again(void)
{
	struct given *g = given_servers("RESTART=N", "server SRVGRP=APP SRVID=2 RESTART=N CLOPT=\"-s ONLY2:ECHO\"\n", NULL, NULL);

	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	CU_ASSERT_EQUAL(call("ONLY2", "x"), 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(call("MORE", "x"), TPENOENT);
		CU_ASSERT_EQUAL(call("FATE", "offer"), 0);
		CU_ASSERT_EQUAL(call("MORE", "x"), 0);
		CU_ASSERT_EQUAL(call("FATE", "take"), 0);
	}
	for (int i = 0; i < 2; i++) {
		free(given_ok(g, NULL, "tmshutdown -y -i 1"));
		CU_ASSERT_EQUAL(call("ECHO", "x"), TPENOENT);
		CU_ASSERT_EQUAL(call("ONLY2", "x"), 0);
		free(given_ok(g, NULL, "tmboot -y -i 1"));
		CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	}
	kill(given_pid_as(g, 1, 1), SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_logged(g, "not restarted: RESTART=N", 1, 20));
	CU_ASSERT_EQUAL(call("ECHO", "x"), TPENOENT);
	free(given_ok(g, NULL, "tmboot -y -i 1"));
	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	given_done(g);
}

/* --- what psr and psc show --- */

static char *
psc_line(const struct given *g, const char *service)	/* of server 1; malloc'ed, NULL: not shown */
{
	char *out = given_ok(g, "psc\nq\n", "tmadmin"), *line = strstr(out, service), *copy;

	copy = line != NULL ? strndup(line, strcspn(line, "\n")) : NULL;
	free(out);
	return copy;
}

static bool
more_is_shown(void *g)
{
	char *line = psc_line(g, "MORE ");
	bool is = line != NULL;

	free(line);
	return is;
}

static bool
echo_was_done_3_times(void *g)
{
	char *line = psc_line(g, "ECHO "), *status = line != NULL ? strstr(line, " AVAIL") : NULL;
	bool is = status != NULL && status > line && status[-1] == '3';

	free(line);
	return is;
}

static void
after_its_restart_bbl_shows_what_is_offered_now_and_what_was_done(void)
{
	struct given *g = given_servers(FOR_EVER, NULL, NULL, NULL);
	pid_t bbl = given_pid(g, "BBL", 0);

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	CU_ASSERT_EQUAL(call("FATE", "offer"), 0);
	CU_ASSERT_TRUE(more_is_shown(g));
	CU_ASSERT_TRUE(echo_was_done_3_times(g));
	given_kill(g, "BBL", SIGKILL);
	CU_ASSERT_EQUAL(call("FATE", "take"), 0);	/* while nobody is there to be told */
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_TRUE(wait_until(echo_was_done_3_times, g, 20));
	CU_ASSERT_FALSE(more_is_shown(g));
	CU_ASSERT_EQUAL(call("FATE", "offer"), 0);
	CU_ASSERT_TRUE(more_is_shown(g));
	given_done(g);
}

/* --- deaths in any order --- */

static bool
all_is_well(void *arg)
{
	const struct given *g = arg;
	char *out = given_ok(g, "psr\nq\n", "tmadmin");
	bool is = given_count(g, "BBL") == 1 && given_count(g, "TMQUEUE") == 1 && given_count(g, "server") == 1 &&
	    has(out, "BBL ") && has(out, "TMQUEUE ") && has(out, "server ");

	free(out);
	return is;
}

static void
kill_one(const struct given *g, const char *name)
{
	pid_t pid = given_pid(g, name, 0);

	if (pid > 0)
		kill(pid, SIGKILL);
}

/* One server always lives, so that somebody is there to start BBL.  A client that joins, and one that calls, need not try twice. */
static void
bbl_and_servers_may_die_in_any_order(void)
{
	static const char *const deaths[][3] = { { "BBL", "TMQUEUE" }, { "TMQUEUE", "BBL" }, { "BBL", "BBL" }, { "BBL", "TMQUEUE", "BBL" },
		{ "TMQUEUE", "BBL", "TMQUEUE" }, { "TMQUEUE", "TMQUEUE", "BBL" }, { "server", "BBL" }, { "BBL", "server" } };
	const char *env = getenv("SUPERVISION_ROUNDS");
	int rounds = env != NULL ? atoi(env) : 8;
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 2 30 80% 0% \"\"\n",
	    .server_source = source, .server_services = "-s ECHO,FATE", .server_params = FOR_EVER,
	    .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	unsigned seed = (unsigned)getpid();

	printf("(seed %u) ", seed);
	for (int i = 0; i < rounds; i++) {
		const char *const *d = deaths[i % 8];

		tpterm();
		for (int k = 0; k < 3 && d[k] != NULL; k++) {
			kill_one(g, d[k]);
			if (rand_r(&seed) % 3 > 0)
				nap_ms((int)(rand_r(&seed) % (k == 0 && rand_r(&seed) % 2 ? 1400u : 150u)));
		}
		GIVEN_CALL_OK(tpinit(NULL));
		CU_ASSERT_TRUE(can_put("ORDERS"));
		CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
		if (!wait_until(all_is_well, g, 30)) {
			fprintf(stderr, "round %d (%s, %s, %s) is not got over\n", i, d[0], d[1], d[2] != NULL ? d[2] : "nothing");
			CU_FAIL_FATAL("something does not come back");
		}
	}
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), rounds);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_server_that_dies_before_it_greets_the_new_bbl_is_restarted),
		UNIT(maxgen_less_one_restarts_within_grace),
		UNIT(after_grace_the_count_begins_anew),
		UNIT(a_new_bbl_knows_how_often_a_server_was_restarted),
		UNIT(rcmd_runs_beside_the_restart_with_the_servers_environment),
		UNIT(a_server_that_dies_in_its_initialisation_is_tried_again_and_its_callers_wait),
		UNIT(tpexit_ends_the_server_and_restart_brings_it_back),
		UNIT(a_process_that_hangs_is_killed_and_restarted_a_busy_one_is_not),
		UNIT(with_restart_n_one_that_hangs_is_not_offered_until_it_lives),
		UNIT(one_that_is_traced_is_left_alone),
		UNIT(when_the_queue_manager_hangs_the_other_takes_over),
		UNIT(a_service_that_takes_too_long_is_ended_with_its_server),
		UNIT(a_new_bbl_knows_since_when_a_service_runs),
		UNIT(a_service_that_was_away_is_found_again),
		UNIT(after_its_restart_bbl_shows_what_is_offered_now_and_what_was_done),
		UNIT(bbl_and_servers_may_die_in_any_order),
	};

	return unit_run("supervision", tests, UNIT_COUNT(tests));
}
