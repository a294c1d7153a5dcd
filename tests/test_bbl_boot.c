/*
 * BBL, tmboot, tmshutdown, tmadmin and tmipcrm as processes, with this very program as the servers that they start:
 * the word after `--` in CLOPT says how such a server behaves.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "app.h"
#include "bb.h"
#include "clock.h"
#include "link.h"
#include "proc.h"
#include "state.h"

/* --- the server --- */

static struct bb_agent *agent, *ending;

static void
on_term(int sig)
{
	(void)sig;
	if (agent != NULL)
		bb_agent_stop_now(agent);
}

static int
server_main(int argc, char **argv)
{
	const char *how = argv[argc - 1];
	char endpoint[300], bbl[300], *why = NULL;
	struct pollfd p = { .events = POLLIN };
	struct bb_agent_conf conf = { .program = "fake", .clopt = "", .rqaddr = "" };
	char program[PATH_MAX];
	struct ubb *u;
	int c;

	while ((c = getopt(argc, argv, "C:g:i:u:U:m:As:")) != -1)
		if (c == 'g')
			conf.grpno = atol(optarg);
		else if (c == 'i')
			conf.srvid = atol(optarg);
	if (strcmp(how, "fail") == 0)
		return 3;
	if (tuxconfig_read(getenv("TUXCONFIG"), &u, &why) != 0)
		return 10;
	ubb_server_endpoint(u, conf.grpno, conf.srvid, endpoint, sizeof endpoint);
	ubb_bbl_endpoint(u, bbl, sizeof bbl);
	snprintf(program, sizeof program, "%s/bin/BBL", getenv("TUXDIR"));
	conf.endpoint = endpoint;
	conf.bbl_endpoint = bbl;
	conf.bbl_program = program;
	conf.tuxconfig = getenv("TUXCONFIG");
	for (size_t i = 0; i < u->n_groups; i++)
		if (u->groups[i].grpno == conf.grpno)
			conf.group = u->groups[i].name;
	if (bb_agent_start(&conf, &agent) != 0)
		return 11;
	signal(SIGTERM, strcmp(how, "deaf") == 0 ? SIG_IGN : on_term);
	snprintf(endpoint, sizeof endpoint, "SVC%ld", conf.srvid);
	if (bb_agent_advertise(agent, endpoint, "SVC") != 0)
		return 12;
	while (strcmp(how, "slow") == 0 && access("go", F_OK) != 0)
		(void)usleep(5000);
	bb_agent_ready(agent);
	if (strcmp(how, "crash") == 0)
		kill(getpid(), SIGKILL);
	p.fd = bb_agent_wake_fd(agent);
	while (strcmp(how, "leave") != 0 && (!bb_agent_stopping(agent) || strcmp(how, "deaf") == 0))
		if (strcmp(how, "deaf") == 0)
			pause();
		else
			(void)poll(&p, 1, -1);
	ending = agent;
	agent = NULL;
	bb_agent_end(ending, 0);
	ubb_free(u);
	return 0;
}

/* --- an application of our own --- */

static char dir[256], self[PATH_MAX], tuxdir[PATH_MAX];
static long ipckey = 40000;
static struct app app;

static void
write_file(const char *name, const char *text)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((f = fopen(path, "w")) != NULL) {
		fputs(text, f);
		fclose(f);
	}
}

/* A shell line in the application's directory: exit status, and what it said on stdout and stderr in `said`. */
static char *said;

static int
sh(const char *line)
{
	char command[4096], buf[4096];
	size_t n = 0, got;
	FILE *p;

	free(said);
	said = calloc(1, 1);
	snprintf(command, sizeof command, "cd %s && { %s ; } 2>&1", dir, line);
	if ((p = popen(command, "r")) == NULL)
		return -1;
	while ((got = fread(buf, 1, sizeof buf, p)) > 0) {
		said = realloc(said, n + got + 1);
		memcpy(said + n, buf, got);
		said[n += got] = '\0';
	}
	return WEXITSTATUS(pclose(p));
}

static bool
says(const char *text)
{
	if (strstr(said, text) != NULL)
		return true;
	printf("\n  expected: %s\n  said:\n%s\n", text, said);
	return false;
}

static void
application(const char *groups, const char *servers)
{
	char *text = NULL, *why = NULL;
	struct utsname un;
	struct ubb *u;
	FILE *in;

	snprintf(dir, sizeof dir, "%s/bbl.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	if (mkdtemp(dir) == NULL || uname(&un) != 0)
		exit(2);
	ipckey++;
	if (asprintf(&text, "*RESOURCES\nIPCKEY %ld\nMASTER SITE1\nMODEL SHM\nPERM 0600\n"
	    "*MACHINES\n\"%s\" LMID=SITE1 TUXDIR=\"%s\" APPDIR=\"%s\" TUXCONFIG=\"%s/tuxconfig\"\n"
	    "*GROUPS\n%s*SERVERS\n%s*SERVICES\n", ipckey, un.nodename, tuxdir, dir, dir, groups, servers) < 0)
		exit(2);
	write_file("ubb", text);
	in = fmemopen(text, strlen(text), "r");
	CU_ASSERT_EQUAL_FATAL(ubb_parse(in, "ubb", stdout, NULL, &u), 0);
	fclose(in);
	free(text);
	snprintf(app.tuxconfig, sizeof app.tuxconfig, "%s/tuxconfig", dir);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, app.tuxconfig), 0);
	ubb_free(u);
	setenv("TUXCONFIG", app.tuxconfig, 1);
	setenv("APPDIR", dir, 1);
	CU_ASSERT_EQUAL_FATAL(app_open(&app, &why), 0);
}

/* Nothing may be left: no run directory, no word on stderr. */
static void
application_done(void)
{
	char line[600];
	struct stat st;

	sh("tmshutdown -y -w 1 -c");
	CU_ASSERT_NOT_EQUAL(stat(app.rundir, &st), 0);
	if (stat(app.rundir, &st) == 0) {
		printf("\n%s\n", said);
		sh("cat ULOG*");
		printf("%s\n", said);
		sh("tmipcrm -y");
	}
	sh("cat stderr stdout 2>/dev/null");
	CU_ASSERT_STRING_EQUAL(said, "");
	snprintf(line, sizeof line, "rm -rf %s", dir);
	app_close(&app);
	CU_ASSERT_EQUAL(system(line), 0);
}

static bool
wait_until(bool (*is_so)(void))
{
	int64_t end = clock_mono_us() + 30000000;

	while (!is_so())
		if (clock_mono_us() > end)
			return false;
		else
			poll(NULL, 0, 5);
	return true;
}

/* What BBL says of a server: "pid", "state", "generation"; -1 when it is not there. */
static struct wire_adminreply rows;

static const struct record *
row(long srvid)
{
	bb_reply_free(&rows);
	if (app_ask(&app, "psr", 5000, &rows, NULL) != 0)
		return NULL;
	for (size_t i = 0; i < rows.doc.n; i++)
		if (record_long(&rows.doc.rec[i], "srvid", -1) == srvid)
			return &rows.doc.rec[i];
	return NULL;
}

static long
pid_of(long srvid)
{
	const struct record *r = row(srvid);

	return r != NULL && strcmp(record_get(r, "state"), "ready") == 0 ? record_long(r, "pid", -1) : -1;
}

static int	/* servers that offer it; -1: nobody does */
resolve(const char *service)
{
	struct wire_adminreply reply;
	int n;

	if (app_ask(&app, "resolve", 5000, &reply, "service", service, NULL) != 0)
		return -2;
	n = reply.status == 0 ? (int)reply.doc.n : -1;
	bb_reply_free(&reply);
	return n;
}

#define G1 "GROUP1 LMID=SITE1 GRPNO=1\n"
static char server_lines[8 * PATH_MAX];

static const char *	/* a SERVERS line for this program */
fake(long srvid, const char *how, const char *more)
{
	static char line[4][2 * PATH_MAX];
	static int k;

	k = (k + 1) % 4;
	snprintf(line[k], sizeof line[k], "\"%s\" SRVGRP=GROUP1 SRVID=%ld %s CLOPT=\"-A -- %s\"\n", self, srvid, more, how);
	return line[k];
}

static const char *
servers(const char *a, const char *b, const char *c)
{
	snprintf(server_lines, sizeof server_lines, "%s%s%s", a, b, c);
	return server_lines;
}

/* --- the stories --- */

static void
boot_and_shutdown_say_what_they_do_and_leave_nothing(void)
{
	application(G1, servers(fake(1, "good", ""), fake(2, "good", "MIN=2 SEQUENCE=1"), ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE(says("Booting all admin and server processes in "));
	CU_ASSERT_TRUE(says("\nINFO: atmiq, Version "));
	CU_ASSERT_TRUE(says("\n\nBooting admin processes ...\n\nexec BBL -A :\n\tprocess id="));
	CU_ASSERT_TRUE(says(" ... Started.\n\nBooting server processes ...\n\nexec "));
	CU_ASSERT_TRUE(says("\n4 processes started.\n"));
	CU_ASSERT_EQUAL(resolve("SVC1"), 1);
	CU_ASSERT_EQUAL(resolve("SVC3"), 1);
	CU_ASSERT_EQUAL(resolve("SVC4"), -1);
	CU_ASSERT_EQUAL(sh("echo y | tmshutdown"), 0);
	CU_ASSERT_TRUE(says("\tServer Id = 1 Group Id = GROUP1 Machine = SITE1:\tshutdown succeeded\n"));
	CU_ASSERT_TRUE(says("\n\nShutting down admin processes ...\n\n"
	    "\tServer Id = 0 Group Id = SITE1 Machine = SITE1:\tshutdown succeeded\n\n4 processes stopped.\n"));
	CU_ASSERT_TRUE(strstr(said, "Server Id = 1 ") < strstr(said, "Server Id = 3 "));
	CU_ASSERT_TRUE(strstr(said, "Server Id = 3 ") < strstr(said, "Server Id = 2 "));
	CU_ASSERT_EQUAL(sh("tmshutdown -y"), 1);
	CU_ASSERT_TRUE(says("no bulletin board exists"));
	application_done();
}

static void
a_second_boot_finds_duplicates_and_is_well(void)
{
	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE(says("exec BBL -A :\n\tCMDTUX_CAT:821: INFO: Duplicate server.\n"));
	CU_ASSERT_TRUE(says("\n0 processes started.\n"));
	CU_ASSERT_EQUAL(sh("tmboot -n -i 1"), 0);
	CU_ASSERT_EQUAL(sh("tmshutdown -i 1 && tmboot -i 1"), 0);
	CU_ASSERT_TRUE(says("\n1 process started.\n"));
	CU_ASSERT_EQUAL(sh("tmboot -s nosuch"), 1);
	CU_ASSERT_EQUAL(sh("tmboot -x"), 1);
	application_done();
}

static void
what_cannot_be_booted_is_said_and_the_rest_goes_on(void)
{
	application("GROUP1 LMID=SITE1 GRPNO=1\n"
	    "QUE1 LMID=SITE1 GRPNO=2 TMSNAME=TMS_QM OPENINFO=\"TUXEDO/QM:/nowhere/QUE:QSPACE\"\n",
	    servers(fake(1, "fail", "RESTART=Y MAXGEN=5"), "nosuch SRVGRP=GROUP1 SRVID=9\nnosuch SRVGRP=QUE1 SRVID=10\n",
	    fake(3, "good", "")));
	CU_ASSERT_EQUAL(sh("tmboot -y -e 'echo bail >> bailed'"), 1);
	CU_ASSERT_TRUE(says("\tFailed.\n"));
	CU_ASSERT_TRUE(says("CMDTUX_CAT:1685: ERROR: Application initialization failure: "));
	CU_ASSERT_TRUE(says("/nowhere/QUE"));
	CU_ASSERT_TRUE(says("the TMS of group QUE1 is not booted"));
	CU_ASSERT_TRUE(says("ended with exit status 3 before it was ready"));
	CU_ASSERT_TRUE(says("no executable file nosuch; looked at "));
	CU_ASSERT_TRUE(says("\n2 processes started.\n"));
	CU_ASSERT_EQUAL(sh("grep -c bail bailed"), 0);
	CU_ASSERT_EQUAL(resolve("SVC3"), 1);
	application_done();
}

static long killed;

static bool
server_1_runs_anew(void)
{
	int n = resolve("SVC1");
	long pid = pid_of(1);

	CU_ASSERT_TRUE(n >= 0);		/* known all the while: running, or being started */
	return pid > 0 && pid != killed && n == 1;
}

static void
a_server_that_dies_is_restarted_and_its_service_stays_known(void)
{
	application(G1, servers(fake(1, "good", "RESTART=Y GRACE=0 RCMD=\"echo rcmd >> rcmds\""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_TRUE_FATAL((killed = pid_of(1)) > 0);
		kill((pid_t)killed, SIGKILL);
		CU_ASSERT_TRUE(wait_until(server_1_runs_anew));
	}
	CU_ASSERT_EQUAL(record_long(row(1), "generation", 0), 6);
	CU_ASSERT_EQUAL(sh("grep -c 'was killed by signal 9' ULOG*"), 0);
	CU_ASSERT_TRUE(says("5"));
	application_done();
}

static bool server_1_is_gone(void) { return row(1) == NULL && rows.doc.n > 0; }

static void
maxgen_and_restart_n_hold(void)
{
	application(G1, servers(fake(1, "crash", "RESTART=Y MAXGEN=3 GRACE=3600"), fake(2, "good", ""), ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE(wait_until(server_1_is_gone));
	CU_ASSERT_EQUAL(resolve("SVC1"), -1);
	CU_ASSERT_EQUAL(sh("grep -c 'restarted in' ULOG*"), 0);
	CU_ASSERT_STRING_EQUAL(said, "2\n");
	CU_ASSERT_EQUAL(sh("grep 'not restarted: MAXGEN=3' ULOG*"), 0);
	CU_ASSERT_EQUAL(resolve("SVC2"), 1);
	application_done();
}

static void
a_server_that_ends_by_itself_stays_away(void)
{
	application(G1, servers(fake(1, "leave", "RESTART=Y GRACE=0"), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE(wait_until(server_1_is_gone));
	CU_ASSERT_EQUAL(sh("tmboot -i 1"), 0);
	CU_ASSERT_TRUE(says("1 process started."));
	application_done();
}

static pid_t bbl_was;

static bool
another_bbl_is_there(void)
{
	pid_t now = 0;

	return app_is_booted(&app, &now) && now != bbl_was;
}

static long kept;
static bool server_2_is_known_again(void) { return pid_of(2) == kept && resolve("SVC2") == 1; }
static bool both_are_there(void) { return server_1_runs_anew() && server_2_is_known_again(); }

static void
a_bbl_that_is_killed_is_started_again_by_a_server(void)
{
	application(G1, servers(fake(1, "good", "RESTART=Y GRACE=0"), fake(2, "good", ""), ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	killed = pid_of(1);
	kept = pid_of(2);
	CU_ASSERT_TRUE_FATAL(app_is_booted(&app, &bbl_was));
	kill(bbl_was, SIGKILL);
	kill((pid_t)killed, SIGKILL);		/* and a server dies while nobody looks */
	CU_ASSERT_TRUE(wait_until(another_bbl_is_there));
	CU_ASSERT_TRUE(wait_until(both_are_there));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE(says("\n0 processes started.\n"));
	CU_ASSERT_EQUAL(sh("tmshutdown -y"), 0);
	CU_ASSERT_TRUE(says("\n3 processes stopped.\n"));
	application_done();
}

static void
tmshutdown_right_after_the_death_of_bbl_stops_everything(void)
{
	application(G1, servers(fake(1, "good", "RESTART=Y GRACE=0"), fake(2, "good", ""), ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_TRUE_FATAL(app_is_booted(&app, &bbl_was));
	kill(bbl_was, SIGKILL);
	CU_ASSERT_EQUAL(sh("tmshutdown -y"), 0);
	CU_ASSERT_TRUE(says("\n3 processes stopped.\n"));
	application_done();
}

static void
a_deaf_server_is_ended_by_force(void)
{
	application(G1, servers(fake(1, "deaf", "RESTART=Y GRACE=0"), fake(2, "deaf", ""), ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_EQUAL(sh("tmshutdown -i 1 -w 1"), 0);
	CU_ASSERT_TRUE(says("shutdown succeeded"));
	CU_ASSERT_EQUAL(sh("tmshutdown -i 2 -k KILL"), 0);
	CU_ASSERT_PTR_NULL(row(1));
	application_done();
}

static void
tmipcrm_clears_what_a_crash_left_and_boot_works(void)
{
	application(G1, servers(fake(1, "good", "RESTART=Y GRACE=0"), fake(2, "good", ""), ""));
	CU_ASSERT_EQUAL(sh("tmipcrm -y"), 0);
	CU_ASSERT_STRING_EQUAL(said, "");
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
		CU_ASSERT_TRUE(says("\n3 processes started.\n"));
		if (i == 1 && app_is_booted(&app, &bbl_was))
			kill(bbl_was, SIGKILL);
		CU_ASSERT_EQUAL(sh("tmipcrm -y"), 0);
		CU_ASSERT_NOT_EQUAL(access(app.rundir, F_OK), 0);
	}
	application_done();
}

static void
another_application_of_the_same_ipckey_is_refused(void)
{
	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_EQUAL(sh("mkdir other && sed \"s,$APPDIR,$APPDIR/other,g\" ubb > other/ubb && cd other && "
	    "export TUXCONFIG=$APPDIR/other/tuxconfig && tmloadcf -y ubb && { tmboot -y; [ $? -eq 1 ]; }"), 0);
	CU_ASSERT_TRUE(says("is in use by the application of"));
	CU_ASSERT_EQUAL(sh("TUXCONFIG=$APPDIR/other/tuxconfig tmipcrm -y"), 1);
	CU_ASSERT_EQUAL(resolve("SVC1"), 1);
	application_done();
}

static void
what_the_environment_lacks_is_named(void)
{
	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("unset TUXCONFIG; tmboot -y"), 1);
	CU_ASSERT_TRUE(says("TUXCONFIG is not set"));
	CU_ASSERT_EQUAL(sh("TUXCONFIG=/nowhere/tux tmshutdown -y"), 1);
	CU_ASSERT_TRUE(says("/nowhere/tux"));
	CU_ASSERT_EQUAL(sh("ln -s tuxconfig t2; TUXCONFIG=$APPDIR/t2 tmboot -y"), 1);
	CU_ASSERT_TRUE(says("byte for byte"));
	application_done();
}

static void
clients_that_live_hold_bbl_and_dead_ones_do_not(void)
{
	struct wire_adminreply reply;
	char pid[24];
	pid_t child;

	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	if ((child = fork()) == 0) {
		for (;;)
			pause();
	}
	snprintf(pid, sizeof pid, "%ld", (long)child);
	CU_ASSERT_EQUAL(app_ask(&app, "join", 5000, &reply, "usrname", "u", "cltname", "c", "pid", pid, NULL), 0);
	CU_ASSERT_EQUAL(reply.status, 0);
	bb_reply_free(&reply);
	CU_ASSERT_EQUAL(sh("tmshutdown -y"), 1);
	CU_ASSERT_TRUE(says("1 clients are still attached"));
	CU_ASSERT_EQUAL(sh("echo pclt | tmadmin -r 2>/dev/null"), 0);
	CU_ASSERT_TRUE(says("SITE1           u               c                0:00:0"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CU_ASSERT_EQUAL(sh("tmshutdown -y"), 0);
	application_done();
}

static void
tmadmin_shows_columns_that_scripts_cut(void)
{
	application("GROUP_LONG1 LMID=SITE1 GRPNO=7 TMSNAME=TMS TMSCOUNT=2\n" G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y -q"), 0);
	CU_ASSERT_STRING_EQUAL(said, "");
	CU_ASSERT_EQUAL(sh("echo psr | tmadmin -r 2>/dev/null"), 0);
	CU_ASSERT_TRUE(says("> Prog Name      Queue Name  Grp Name      ID RqDone Load Done Current Service\n"
	    "---------      ----------  --------      -- ------ --------- ---------------\nBBL            "));
	CU_ASSERT_TRUE(says("\nfake           00001.00001 GROUP1         1      0         0 (  IDLE )\n"));
	CU_ASSERT_TRUE(says("\nTMS            GROUP_LONG1 GROUP_L+   30001      0         0 (  IDLE )\n"));
	CU_ASSERT_EQUAL(sh("echo psc | tmadmin -r 2>/dev/null"), 0);
	CU_ASSERT_TRUE(says("\nSVC1         SVC          fake       GROUP1     1      SITE1       0 AVAIL\n"));
	CU_ASSERT_EQUAL(sh("echo pq | tmadmin -r 2>/dev/null | grep 00001.00001"), 0);
	CU_ASSERT_STRING_EQUAL(said, "fake           00001.00001       1         0         0       0.0      SITE1\n");
	CU_ASSERT_EQUAL(sh("printf 'bbs\\n\\nnosuch\\npsr -x\\nq\\n' | tmadmin"), 0);
	CU_ASSERT_TRUE(says("\tCurrent number of servers: 4\n"));
	CU_ASSERT_TRUE(says("TMADMIN_CAT:111"));
	CU_ASSERT_TRUE(says("TMADMIN_CAT:112"));
	CU_ASSERT_EQUAL(sh("printf 'pt\\nabort -yes 0\\ncommittrans -g NONE 1\\ndl -n x\\nadv -q a b\\nq\\n' | tmadmin"), 0);
	CU_ASSERT_TRUE(says("109: ERROR: there is no transaction of index \"0\"") && says("112: ERROR: Invalid option to committrans: -g NONE") &&
	    says("machine SITE1 has no TLOGDEVICE") && says("109: ERROR: advertise: not available in this version") && !says("111:"));
	CU_ASSERT_EQUAL(sh("printf 'pt\nabort 0\nq\n' | tmadmin -r"), 0);
	CU_ASSERT_TRUE(says("aborttrans cannot be used in read-only mode"));
	CU_ASSERT_EQUAL(sh("printf 'help pt\nhelp adv\n' | tmadmin"), 0);
	CU_ASSERT_TRUE(says("printtrans [-m machine] [-g groupname]") && says("Not available in this version."));
	/* what can match nothing is a mistake, and no table */
	CU_ASSERT_EQUAL(sh("printf 'psr -i abc\\npsr -i 1x\\npsr -g NONE\\npsc -a 7\\npsr -m NONE\\nd -i x\\nq\\n' | tmadmin"), 0);
	CU_ASSERT_TRUE(says("112: ERROR: Invalid option to printserver: -i abc is not a server id; syntax: printserver ") &&
	    says("-i 1x is not") && says("-g NONE is not in section GROUPS") && says("-a 7 is none of") &&
	    says("-m NONE is not in section MACHINES") && says("Invalid option to default: -i x is not") && !says("Prog Name"));
	CU_ASSERT_EQUAL(sh("printf 'psr -i 29\\nd -i 1\\nd -i \"*\"\\nq\\n' | tmadmin"), 0);
	CU_ASSERT_TRUE(says("Prog Name") && !says("112:"));	/* nobody has that number now */
	CU_ASSERT_EQUAL(sh("printf 'crlog\\n' | tmadmin -r"), 0);
	CU_ASSERT_TRUE(says("crlog cannot be used in read-only mode"));
	application_done();
}

static void
bytes_that_mean_nothing_do_no_harm(void)
{
	uint8_t junk[4096];
	struct link_client *c = NULL;

	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y"), 0);
	CU_ASSERT_EQUAL_FATAL(link_client_open(app.endpoint, &c), LINK_OK);
	for (int i = 0; i < 50; i++) {
		for (size_t k = 0; k < sizeof junk; k++)
			junk[k] = (uint8_t)rand();
		junk[0] = i % 2 ? 1 : junk[0];
		CU_ASSERT_EQUAL(link_client_send(c, junk, (size_t)(i * 81), NULL, clock_mono_us() + 5000000), LINK_OK);
	}
	link_client_close(c);
	CU_ASSERT_EQUAL(resolve("SVC1"), 1);
	application_done();
}

static void	/* Who comes after it finds them there. */
a_second_boot_waits_for_the_servers_of_the_first(void)
{
	application(G1, servers(fake(1, "slow", ""), "", ""));
	CU_ASSERT_EQUAL(sh("tmboot -y -w"), 0);
	CU_ASSERT_EQUAL(sh("tmboot -y -w"), 0);
	CU_ASSERT_TRUE(says("Duplicate server"));
	CU_ASSERT_EQUAL(sh("{ sleep 0.2; touch went go; } & tmboot -y && ls went; wait"), 0);
	CU_ASSERT_TRUE(says("Duplicate server") && says("\n0 processes started.\n") && says("\nwent\n"));
	CU_ASSERT_TRUE(pid_of(1) > 0);
	application_done();
}

static void
a_boot_that_is_interrupted_can_be_done_again(void)
{
	application(G1, servers(fake(1, "good", ""), fake(2, "good", ""), ""));
	for (int i = 1; i <= 5; i++) {
		char line[100];

		snprintf(line, sizeof line, "timeout -s INT 0.00%d tmboot -y; tmboot -y", i * 2);
		CU_ASSERT_EQUAL(sh(line), 0);
		CU_ASSERT_EQUAL(resolve("SVC2"), 1);
		snprintf(line, sizeof line, "timeout -s INT 0.00%d tmshutdown -y; tmshutdown -y; true", i * 2);
		CU_ASSERT_EQUAL(sh(line), 0);
		CU_ASSERT_NOT_EQUAL(access(app.rundir, F_OK), 0);
	}
	application_done();
}

static void
the_environment_of_tmboot_is_the_servers(void)
{
	application(G1, servers(fake(1, "good", ""), "", ""));
	CU_ASSERT_EQUAL(sh("FLAVOUR=vanilla tmboot -y; tmshutdown -i 1; FLAVOUR='with = and blank' tmboot -i 1"), 0);
	kept = pid_of(1);
	char line[200];
	snprintf(line, sizeof line, "tr '\\0' '\\n' < /proc/%ld/environ | grep '^FLAVOUR'", kept);
	CU_ASSERT_EQUAL(sh(line), 0);
	CU_ASSERT_STRING_EQUAL(said, "FLAVOUR=with = and blank\n");
	application_done();
}

static void
find_ourselves(void)
{
	char path[3 * PATH_MAX], here[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n <= 0 || proc_self_dir(here, sizeof here) != 0)
		exit(2);
	self[n] = '\0';
	snprintf(path, sizeof path, "%s/../tuxdir", here);
	if (realpath(path, tuxdir) == NULL)
		exit(2);
	snprintf(path, sizeof path, "%s/bin:%s", tuxdir, getenv("PATH"));
	setenv("PATH", path, 1);
	setenv("TUXDIR", tuxdir, 1);
	unsetenv("ULOGPFX");
	ipckey += getpid() % 20000;
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(boot_and_shutdown_say_what_they_do_and_leave_nothing),
		UNIT(a_second_boot_finds_duplicates_and_is_well),
		UNIT(what_cannot_be_booted_is_said_and_the_rest_goes_on),
		UNIT(a_server_that_dies_is_restarted_and_its_service_stays_known),
		UNIT(maxgen_and_restart_n_hold),
		UNIT(a_server_that_ends_by_itself_stays_away),
		UNIT(a_bbl_that_is_killed_is_started_again_by_a_server),
		UNIT(tmshutdown_right_after_the_death_of_bbl_stops_everything),
		UNIT(a_deaf_server_is_ended_by_force),
		UNIT(tmipcrm_clears_what_a_crash_left_and_boot_works),
		UNIT(another_application_of_the_same_ipckey_is_refused),
		UNIT(what_the_environment_lacks_is_named),
		UNIT(clients_that_live_hold_bbl_and_dead_ones_do_not),
		UNIT(tmadmin_shows_columns_that_scripts_cut),
		UNIT(bytes_that_mean_nothing_do_no_harm),
		UNIT(a_second_boot_waits_for_the_servers_of_the_first),
		UNIT(a_boot_that_is_interrupted_can_be_done_again),
		UNIT(the_environment_of_tmboot_is_the_servers),
	};

	if (argc > 2 && strcmp(argv[1], "-C") == 0)
		return server_main(argc, argv);
	find_ourselves();
	return unit_run("bbl boot", tests, UNIT_COUNT(tests));
}
