/*
 * story_threshold - capacity commands with real processes: what they get, and that whatever they do holds nobody up.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "given.h"

#define FOR_EVER "RESTART=Y GRACE=0 MAXGEN=255"

static struct given *
given_marked(const char *queues, const char *script)
{
	struct given *g = given_system(&(struct given_conf){ .queues = queues, .not_booted = true,
	    .space = "8000 120 50 50 4000 ERRQ n 16", .space_options = "-n 200B",
	    .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });

	given_write(g, "run.sh", "%s", script);
	given_boot(g);
	return g;
}

static bool
file_is_there(void *name)
{
	return given_exists(given_standing(), name);
}

static int
lines(const char *file)
{
	char *text = given_read(given_standing(), file);
	int n = text == NULL ? 0 : count_of(text, "\n");

	free(text);
	return n;
}

struct expected { const char *file; int n; };

static bool
has_lines(void *arg)
{
	struct expected *e = arg;

	return lines(e->file) >= e->n;
}

static void
await_lines(const char *file, int n)
{
	struct expected e = { file, n };

	CU_ASSERT_TRUE(wait_until(has_lines, &e, 30));
	CU_ASSERT_EQUAL(lines(file), n);
}

static int	/* children of the process that have ended and were not buried */
zombies(pid_t parent)
{
	char path[300], *stat, *at;
	struct dirent *d;
	int n = 0;
	DIR *proc = opendir("/proc");

	while ((d = readdir(proc)) != NULL) {
		FILE *f;
		char line[600] = "";

		if (*d->d_name < '0' || *d->d_name > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/stat", d->d_name);
		if ((f = fopen(path, "re")) == NULL)
			continue;
		stat = fgets(line, sizeof line, f);
		fclose(f);
		if (stat != NULL && (at = strrchr(stat, ')')) != NULL && at[1] != '\0' && at[2] == 'Z' &&
		    strtol(at + 3, NULL, 10) == parent)
			n++;
	}
	closedir(proc);
	return n;
}

static bool
no_zombie(void *parent)
{
	return zombies(*(pid_t *)parent) == 0;
}

/* --- what it gets --- */

static void
a_command_has_the_environment_and_nothing_else_of_the_server(void)
{
	struct given *g = given_marked("qcreate ORDERS fifo none 0 0 2m 0m \"sh run.sh $PPID\"\n",
	    "ls /proc/$$/fd >fds\ncat >input\necho $TUXCONFIG >config\nid -u >user\npwd >dir\necho $1 >parent\n"
	    "ps -o sid= -p $$ >sid\necho to stdout\nmv user user.all\n");
	char *got;
	pid_t queue = given_pid(g, "TMQUEUE", 0);
	char want[300];

	put("ORDERS", "one");
	put("ORDERS", "two");
	CU_ASSERT_TRUE(wait_until(file_is_there, "user.all", 20));
	got = given_read(g, "fds");
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	for (char *fd = strtok(got, "\n"); fd != NULL; fd = strtok(NULL, "\n"))
		CU_ASSERT_TRUE(atoi(fd) <= 2 || atoi(fd) >= 10);	/* the shell's own script is above */
	free(got);
	got = given_read(g, "input");
	CU_ASSERT_STRING_EQUAL(got, "");		/* /dev/null */
	free(got);
	got = given_read(g, "config");
	snprintf(want, sizeof want, "%s/", given_dir(g));
	CU_ASSERT_PTR_NOT_NULL(strstr(got, want));
	free(got);
	got = given_read(g, "user.all");
	CU_ASSERT_EQUAL(strtol(got, NULL, 10), (long)getuid());
	free(got);
	got = given_read(g, "parent");
	CU_ASSERT_EQUAL(strtol(got, NULL, 10), queue);
	free(got);
	CU_ASSERT_TRUE(wait_until(no_zombie, &queue, 20));
	given_done(g);
}

static void
it_runs_once_over_restarts_and_kills(void)
{
	struct given *g = given_marked(
	    "qcreate -n \"3B,0B,echo np >>ran\" ORDERS fifo none 0 0 3m 1m \"echo p >>ran\"\n", "");
	char *text;
	pid_t old;

	for (int i = 0; i < 3; i++)
		put("ORDERS", "x");
	await_lines("ran", 1);
	for (int i = 0; i < 3; i++) {
		put("ORDERS", "x");			/* what was run is on disk with this, at the latest */
		old = given_pid(g, "TMQUEUE", 0);
		if (i == 1) {
			tpterm();
			given_shutdown(g);
			given_boot(g);
			continue;
		}
		given_kill(g, "TMQUEUE", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 20));
		free(take_within("ORDERS", 20));
	}
	CU_ASSERT_EQUAL(lines("ran"), 1);
	while (depth(g, "ORDERS") > 1)
		free(take("ORDERS"));
	put("ORDERS", "x");
	CU_ASSERT_EQUAL(lines("ran"), 1);
	put("ORDERS", "x");
	await_lines("ran", 2);
	for (int i = 0; i < 6; i++) {			/* the other kind has marks of its own */
		TPQCTL ctl = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT };
		char *data = tpalloc("CARRAY", NULL, 300);
		memset(data, 0, 300);
		GIVEN_CALL_OK(tpenqueue("QSPACE", "ORDERS", &ctl, data, 300, 0));
		tpfree(data);
	}
	await_lines("ran", 3);
	text = given_read(g, "ran");
	CU_ASSERT_TRUE(has(text, "np"));
	free(text);
	given_done(g);
}

/* --- what it may do --- */

static void	/* It ignores every signal, hangs, and outlives the server, which does not wait. */
one_that_hangs_holds_nobody_up(void)
{
	struct given *g = given_marked("qcreate ORDERS fifo none 0 0 1m 0m \"sh run.sh\"\n",
	    "trap '' HUP INT TERM QUIT\necho $$ >pid.new\nmv pid.new pid\nwhile :; do sleep 1000; done\n");
	double began;
	char *text;
	pid_t pid, group;

	put("ORDERS", "x");
	CU_ASSERT_TRUE_FATAL(wait_until(file_is_there, "pid", 20));
	text = given_read(g, "pid");
	pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	for (int i = 0; i < 20; i++)
		put("ORDERS", "x");
	free(take("ORDERS"));
	tpterm();
	began = now_s();
	given_shutdown(g);
	CU_ASSERT_TRUE(now_s() - began < 60);
	group = getpgid(pid);				/* still there */
	CU_ASSERT_TRUE_FATAL(group > 0 && group == getsid(pid) && group != getpgid(0));
	CU_ASSERT_EQUAL(kill(-group, SIGKILL), 0);
	given_done(g);
}

static void
one_that_fails_forks_or_talks_does_no_harm(void)
{
	struct given *g = given_marked(
	    "qcreate FAILS fifo none 0 0 1m 0m \"exit 3\"\nqcreate DIES fifo none 0 0 1m 0m \"kill -9 $$\"\n"
	    "qcreate FORKS fifo none 0 0 1m 0m \"(sleep 0.2; echo x >>forked) & (echo x >>forked) &\"\n"
	    "qcreate TALKS fifo none 0 0 1m 0m \"head -c 3000000 /dev/zero; echo x >>talked\"\n"
	    "qcreate WRONG fifo none 0 0 1m 0m \"no-such-command-at-all 2>/dev/null\"\n",
	    "");
	pid_t queue = given_pid(g, "TMQUEUE", 0);
	char *log;

	put("FAILS", "x");
	put("DIES", "x");
	put("FORKS", "x");
	put("TALKS", "x");
	put("WRONG", "x");
	await_lines("talked", 1);
	await_lines("forked", 2);
	for (double end = now_s() + 20; now_s() < end && !given_logged(g, "queue WRONG ended with status 127"); nap_ms(20))
		;
	log = given_log(g);
	CU_ASSERT_TRUE(has(log, "command \"exit 3\" of queue FAILS ended with status 3"));
	CU_ASSERT_TRUE(has(log, "of queue DIES was ended by signal 9"));
	CU_ASSERT_TRUE(has(log, "of queue WRONG ended with status 127"));
	CU_ASSERT_FALSE(has(log, "of queue FORKS"));
	free(log);
	CU_ASSERT_TRUE(wait_until(no_zombie, &queue, 20));
	CU_ASSERT_EQUAL(given_pid(g, "TMQUEUE", 0), queue);
	given_done(g);
}

static void	/* Zombies are buried while there is always something else to do. */
none_is_left_unburied_by_a_busy_server(void)
{
	struct given *g = given_marked("qcreate ORDERS fifo none 0 0 1m 0m \"echo x >>ran\"\nqcreate BUSY fifo none 0 0 100% 0% \"\"\n", "");
	pid_t queue = given_pid(g, "TMQUEUE", 0);
	double end;

	put("ORDERS", "x");
	for (end = now_s() + 20; now_s() < end;) {
		put("BUSY", "x");
		free(take("BUSY"));
		if (lines("ran") > 0 && zombies(queue) == 0)
			break;
	}
	CU_ASSERT_TRUE(now_s() < end);
	given_done(g);
}

static void	/* 64 at a time; the others are run when there is room, and none is forgotten. */
many_at_once_are_bounded_and_none_is_forgotten(void)
{
	enum { QUEUES = 80, AT_ONCE = 64 };
	static char queues[QUEUES * 80];
	size_t n = 0;
	struct given *g;
	char name[16], path[300];

	for (int i = 0; i < QUEUES; i++)
		n += (size_t)snprintf(queues + n, sizeof queues - n, "qcreate Q%d fifo none 0 0 1m 0m \"sh run.sh %d\"\n", i, i);
	g = given_marked(queues, "echo $1 >>started\nread x <go\necho $1 >>ended\n");
	snprintf(path, sizeof path, "%s/go", given_dir(g));
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	for (int i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "Q%d", i);
		put(name, "x");
	}
	await_lines("started", AT_ONCE);
	for (double end = now_s() + 20; now_s() < end && !given_logged(g, "64 commands run already"); nap_ms(20))
		;
	CU_ASSERT_EQUAL(lines("started"), AT_ONCE);
	for (double end = now_s() + 60; now_s() < end && lines("ended") < QUEUES; nap_ms(50)) {
		int fd = open(path, O_WRONLY | O_NONBLOCK);	/* whoever waits for it goes on */
		if (fd != -1)
			close(fd);
	}
	CU_ASSERT_EQUAL(lines("started"), QUEUES);
	CU_ASSERT_EQUAL(lines("ended"), QUEUES);
	given_done(g);
}

/* --- the classic --- */

static bool
drained(void *queue)
{
	put("BUSY", "x");		/* the server has more to do than to wait for a forwarder */
	free(take("BUSY"));
	return depth(given_standing(), queue) == 0;
}

static void
it_starts_a_forwarder_of_a_busy_server_each_time(void)
{
	struct given *g = given_system(&(struct given_conf){
	    .queues = "qcreate Q_LOG fifo none 20 0 5m 0m \"tmboot -s TMQFORWARD\"\nqcreate BUSY fifo none 0 0 100% 0% \"\"\n",
	    .server_source = "#include \"atmi.h\"\nvoid Q_LOG(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n",
	    .server_services = "-s Q_LOG",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -e -n -d -q Q_LOG\"\n", .not_booted = true });

	free(given_ok(g, NULL, "tmboot -A -y; tmboot -s server; tmboot -s TMQUEUE"));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 7; i++)
			put("Q_LOG", "a line");
		CU_ASSERT_TRUE(wait_until(drained, "Q_LOG", 30));
		for (double end = now_s() + 30; now_s() < end && given_count(g, "TMQFORWARD") > 0; nap_ms(20))
			;
		CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);	/* -e */
		CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	}
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_command_has_the_environment_and_nothing_else_of_the_server),
		UNIT(it_runs_once_over_restarts_and_kills),
		UNIT(one_that_hangs_holds_nobody_up),
		UNIT(one_that_fails_forks_or_talks_does_no_harm),
		UNIT(none_is_left_unburied_by_a_busy_server),
		UNIT(many_at_once_are_bounded_and_none_is_forgotten),
		UNIT(it_starts_a_forwarder_of_a_busy_server_each_time),
	};

	return unit_run("threshold", tests, UNIT_COUNT(tests));
}
