/*
 * story_supervision - BBL looks after the servers, and the servers after BBL.
 */
#include <signal.h>
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
server_1_runs(void *g)
{
	return given_pid_as(g, 1, 1) != 0;
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

static void
take_away(const struct given *g, const char *file)
{
	free(given_ok(g, NULL, "rm -f %s", file));
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

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_server_that_dies_before_it_greets_the_new_bbl_is_restarted),
	};

	(void)server_1_runs; (void)server_1_is_gone; (void)lines_in; (void)let_exist; (void)take_away;
	return unit_run("supervision", tests, UNIT_COUNT(tests));
}
