/*
 * story_foreground - BBL as the one process that a container or systemd looks after: boots all, says so, ends all in order.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static const char source[] =
    "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "int tpsvrinit(int argc, char **argv) { (void)argc; (void)argv; printf(\"a word of the server\\n\"); fflush(stdout);\n"
    "  while (access(\"wait\", F_OK) == 0) usleep(10000);\n"
    "  return access(\"fail\", F_OK) == 0 ? -1 : 0; }\n"
    "void tpsvrdone(void) { FILE *f = fopen(\"dones\", \"a\"); if (f) { fprintf(f, \"one\\n\"); fclose(f); } }\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "void ORPHAN(TPSVCINFO *m) { FILE *f; if (fork() == 0) { if (fork() == 0) { f = fopen(\"orphan\", \"w\");\n"
    "  if (f) { fprintf(f, \"%d\\n\", getpid()); fclose(f); } while (access(\"enough\", F_OK) != 0) usleep(10000); } _exit(0); }\n"
    "  tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n";

static struct given *
given_files(const char *params)
{
	return given_system(&(struct given_conf){ .no_queue_group = true, .server_source = source, .server_services = "-s ECHO,ORPHAN",
	    .server_params = params, .servers = "server SRVGRP=APP SRVID=2 CLOPT=\"-s ECHO\"\n", .not_booted = true });
}

/* --- the one who listens --- */

static int heard_fd = -1;
static char heard[4096];	/* all that was said, a datagram a line or several */

static void
listen_at(const struct given *g, bool abstract)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char name[sizeof a.sun_path];
	size_t n;

	snprintf(name, sizeof name, "%s%s/notify", abstract ? "@" : "", given_dir(g));
	n = strlen(name);
	memcpy(a.sun_path, name, n);
	if (abstract)
		a.sun_path[0] = '\0';
	heard[0] = '\0';
	heard_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CU_ASSERT_EQUAL_FATAL(bind(heard_fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + !abstract)), 0);
	setenv("NOTIFY_SOCKET", name, 1);
}

static bool
was_heard(void *text)
{
	size_t n = strlen(heard);
	ssize_t got;

	while (n < sizeof heard - 2 && (got = recv(heard_fd, heard + n, sizeof heard - 2 - n, 0)) > 0) {
		n += (size_t)got;
		heard[n++] = '\n';
		heard[n] = '\0';
	}
	return has(heard, text);
}

static void
listen_no_more(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	close(heard_fd);
	heard_fd = -1;
}

/* --- BBL in the foreground --- */

static pid_t
bbl_begin(const struct given *g, const char *const *options)
{
	char path[PATH_MAX], out[PATH_MAX], err[PATH_MAX];
	const char *argv[8] = { "BBL" };
	pid_t pid;

	snprintf(path, sizeof path, "%s/bin/BBL", given_tuxdir(g));
	snprintf(out, sizeof out, "%s/bbl.out", given_dir(g));
	snprintf(err, sizeof err, "%s/bbl.err", given_dir(g));
	for (int i = 0; options[i] != NULL && i < 6; i++)
		argv[i + 1] = options[i];
	if ((pid = fork()) == 0) {
		dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
		dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
		execv(path, (char **)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

struct end { pid_t pid; int status; };

static bool
has_ended(void *arg)
{
	struct end *e = arg;

	return e->pid == 0 || (waitpid(e->pid, &e->status, WNOHANG) == e->pid && (e->pid = 0, true));
}

static int	/* its exit status; -1: it did not end, or not by itself */
bbl_end(pid_t pid, int signal, double seconds)
{
	struct end e = { pid, 0 };

	if (signal != 0)
		kill(pid, signal);
	if (!wait_until(has_ended, &e, seconds)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	return WIFEXITED(e.status) ? WEXITSTATUS(e.status) : -1;
}

static bool
echo_answers(void *unused)
{
	char *data = tpalloc("STRING", NULL, 10);
	long len;
	int rc;

	(void)unused;
	data[0] = '\0';
	rc = tpcall("ECHO", data, 0, &data, &len, 0);
	tpfree(data);
	return rc == 0;
}

static bool
logged_booted(void *g)
{
	return given_logged(g, "CMDTUX_CAT:1744");
}

static int
lines_in(const struct given *g, const char *file)
{
	char *text = given_read(g, file);
	int n = text != NULL ? count_of(text, "\n") : 0;

	free(text);
	return n;
}

static bool
in_file(const struct given *g, const char *file, const char *text)
{
	char *all = given_read(g, file);
	bool is = has(all, text);

	free(all);
	return is;
}

static void
nothing_is_left(const struct given *g)
{
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	CU_ASSERT_NOT_EQUAL(access(given_rundir(g), F_OK), 0);
}

static const char *const boots[] = { "-f", "-b", NULL };

static void
one_process_boots_all_and_ends_all_in_order(void)
{
	static const int signals[] = { SIGTERM, SIGINT };

	for (int i = 0; i < 2; i++) {
		struct given *g = given_files("");
		pid_t bbl = bbl_begin(g, boots);

		CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
		CU_ASSERT_EQUAL(given_pid(g, "BBL", 0), bbl);
		CU_ASSERT_EQUAL(given_count(g, "server"), 2);
		CU_ASSERT_TRUE(echo_answers(NULL));
		tpterm();
		CU_ASSERT_EQUAL(bbl_end(bbl, signals[i], 30), 0);
		CU_ASSERT_EQUAL(lines_in(g, "dones"), 2);
		CU_ASSERT_EQUAL(lines_in(g, "bbl.err"), 0);
		nothing_is_left(g);
		given_done(g);
	}
}

static void
ready_is_said_when_all_are_there_and_stopping_when_they_go(void)
{
	for (int abstract = 0; abstract < 2; abstract++) {
		struct given *g = given_files("");
		pid_t bbl;

		listen_at(g, abstract);
		setenv("WATCHDOG_USEC", "200000", 1);
		given_write(g, "wait", "%s", "now\n");
		bbl = bbl_begin(g, boots);
		CU_ASSERT_TRUE(wait_until(was_heard, "STATUS=Booting", 20));
		for (double end = now_s() + 20; given_count(g, "server") == 0 && now_s() < end;)
			nap_ms(10);
		CU_ASSERT_TRUE(wait_until(was_heard, "WATCHDOG=1", 20));	/* while it boots, too */
		CU_ASSERT_FALSE(was_heard("READY=1"));
		free(given_ok(g, NULL, "rm wait"));
		CU_ASSERT_TRUE(wait_until(was_heard, "READY=1", 30));
		CU_ASSERT_EQUAL(given_count(g, "server"), 2);
		CU_ASSERT_FALSE(was_heard("STOPPING=1"));
		CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 30), 0);
		CU_ASSERT_TRUE(was_heard("STOPPING=1"));
		listen_no_more();
		nothing_is_left(g);
		given_done(g);
	}
}

static void
a_boot_that_fails_is_told_and_leaves_nothing(void)
{
	struct given *g = given_files("");
	pid_t bbl;

	listen_at(g, false);
	given_write(g, "fail", "%s", "now\n");
	bbl = bbl_begin(g, boots);
	CU_ASSERT_EQUAL(bbl_end(bbl, 0, 60), 1);
	CU_ASSERT_TRUE(in_file(g, "bbl.err", "Application initialization failure"));
	CU_ASSERT_TRUE(in_file(g, "bbl.err", "the application is not booted"));
	CU_ASSERT_FALSE(was_heard("READY=1"));
	listen_no_more();
	nothing_is_left(g);
	given_done(g);
}

static void
a_signal_while_it_boots_ends_it(void)
{
	struct given *g = given_files("");
	pid_t bbl;

	given_write(g, "wait", "%s", "now\n");
	bbl = bbl_begin(g, (const char *const[]){ "-f", "-b", "-t", "8", NULL });
	for (double end = now_s() + 20; given_count(g, "server") == 0 && now_s() < end;)
		nap_ms(10);
	CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 40), 0);
	nothing_is_left(g);
	given_done(g);
}

/* It is ended by force, in the time that was given; the others in order. */
static void
a_server_that_hangs_does_not_keep_it(void)
{
	struct given *g = given_files("");
	pid_t bbl = bbl_begin(g, (const char *const[]){ "-f", "-b", "-t", "8", NULL });

	CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
	kill(given_pid_as(g, 1, 2), SIGSTOP);	/* the first to be stopped */
	CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 30), 0);
	CU_ASSERT_EQUAL(lines_in(g, "dones"), 1);
	nothing_is_left(g);
	given_done(g);
}

static void
an_administrators_tmshutdown_ends_it_well(void)
{
	struct given *g = given_files("");
	pid_t bbl = bbl_begin(g, boots);

	CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
	free(given_ok(g, NULL, "tmshutdown -y & wait $!"));
	CU_ASSERT_EQUAL(bbl_end(bbl, 0, 20), 0);
	nothing_is_left(g);
	given_done(g);
}

static void
with_e_all_is_said_on_its_own_output(void)
{
	struct given *g = given_files("");
	pid_t bbl = bbl_begin(g, (const char *const[]){ "-b", "-e", NULL });

	CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
	CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 30), 0);
	CU_ASSERT_TRUE(in_file(g, "bbl.out", "a word of the server"));
	CU_ASSERT_TRUE(in_file(g, "bbl.err", "CMDTUX_CAT:1699"));
	CU_ASSERT_TRUE(in_file(g, "bbl.err", "Standard main starting"));
	given_done(g);
}

static pid_t orphan;

static bool
orphan_is_known(void *g)
{
	char *text = given_read(g, "orphan");

	orphan = text != NULL && strchr(text, '\n') != NULL ? (pid_t)atol(text) : 0;
	free(text);
	return orphan != 0;
}

static bool
orphan_is_no_more(void *unused)
{
	(void)unused;
	return process_state(orphan) == 0;	/* not even as a zombie */
}

static void
what_others_leave_behind_is_reaped(void)
{
	struct given *g = given_files("");
	pid_t bbl = bbl_begin(g, boots);
	char path[64], status[2000] = "", *data = tpalloc("STRING", NULL, 10), want[40];
	long len;
	FILE *f;

	CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
	data[0] = '\0';
	CU_ASSERT_EQUAL(tpcall("ORPHAN", data, 0, &data, &len, 0), 0);
	tpfree(data);
	CU_ASSERT_TRUE_FATAL(wait_until(orphan_is_known, g, 20));
	snprintf(path, sizeof path, "/proc/%ld/status", (long)orphan);
	if ((f = fopen(path, "r")) != NULL) {
		status[fread(status, 1, sizeof status - 1, f)] = '\0';
		fclose(f);
	}
	snprintf(want, sizeof want, "PPid:\t%ld\n", (long)bbl);
	for (double end = now_s() + 20; !has(status, want) && now_s() < end; nap_ms(10))
		if ((f = fopen(path, "r")) != NULL) {
			status[fread(status, 1, sizeof status - 1, f)] = '\0';
			fclose(f);
		}
	CU_ASSERT_TRUE(has(status, want));
	given_write(g, "enough", "%s", "now\n");
	CU_ASSERT_TRUE(wait_until(orphan_is_no_more, NULL, 20));
	tpterm();
	CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 30), 0);
	given_done(g);
}

static bool
no_zombie_was_left(void *g)
{
	return given_exists(g, "clean");
}

/* Process 1 of a pid namespace, as in a container: the kernel gives it every orphan, and ends all with it. */
static void
it_may_be_the_first_process_of_a_container(void)
{
	struct given *g = given_files("");
	struct ran r = given_run(g, NULL, "unshare --pid --fork --mount-proc true");
	bool may = r.status == 0;

	ran_free(&r);
	if (!may) {
		printf("(unshare is not allowed) ");
		given_done(g);
		return;
	}
	free(given_ok(g, NULL, "cat >in <<'END'\n"
	    "(while ! grep -q CMDTUX_CAT:1744 ULOG.* 2>/dev/null; do sleep 0.05; done\n"
	    "sh -c '(sleep 0.1; touch orphaned) &'; while ! test -f orphaned; do sleep 0.05; done\n"
	    "while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.05; done; touch clean; kill -TERM 1) >/dev/null 2>&1 &\n"
	    "exec BBL -f -b\nEND\n"));
	free(given_ok(g, NULL, "unshare --pid --fork --mount-proc sh in"));
	CU_ASSERT_TRUE(wait_until(no_zombie_was_left, g, 5));
	CU_ASSERT_EQUAL(lines_in(g, "dones"), 2);
	nothing_is_left(g);
	given_done(g);
}

static void
a_second_one_is_told_who_runs(void)
{
	struct given *g = given_files("");
	pid_t bbl = bbl_begin(g, boots);
	struct ran r;

	CU_ASSERT_TRUE_FATAL(wait_until(logged_booted, g, 30));
	r = given_run(g, NULL, "BBL -f -b");
	CU_ASSERT_EQUAL(r.status, 1);
	CU_ASSERT_TRUE(has(r.err, "runs already"));
	ran_free(&r);
	CU_ASSERT_TRUE(echo_answers(NULL));
	tpterm();
	CU_ASSERT_EQUAL(bbl_end(bbl, SIGTERM, 30), 0);
	given_done(g);
}

static void
the_unit_is_one_that_systemd_takes(void)
{
	struct given *g = given_directory();
	struct ran r = given_run(g, NULL, "systemd-analyze --version >/dev/null");

	if (r.status != 0) {
		printf("(systemd-analyze is not there) ");
	} else {
		free(given_ok(g, NULL, "sed 's|^ExecStart=[^ ]*/bin/BBL|ExecStart=%s/bin/BBL|' %s/share/systemd/atmiq@.service >atmiq@x.service",
		    given_tuxdir(g), given_tuxdir(g)));
		free(given_ok(g, NULL, "systemd-analyze verify --man=no ./atmiq@x.service"));
	}
	ran_free(&r);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(one_process_boots_all_and_ends_all_in_order),
		UNIT(ready_is_said_when_all_are_there_and_stopping_when_they_go),
		UNIT(a_boot_that_fails_is_told_and_leaves_nothing),
		UNIT(a_signal_while_it_boots_ends_it),
		UNIT(a_server_that_hangs_does_not_keep_it),
		UNIT(an_administrators_tmshutdown_ends_it_well),
		UNIT(with_e_all_is_said_on_its_own_output),
		UNIT(what_others_leave_behind_is_reaped),
		UNIT(it_may_be_the_first_process_of_a_container),
		UNIT(a_second_one_is_told_who_runs),
		UNIT(the_unit_is_one_that_systemd_takes),
	};

	return unit_run("foreground", tests, UNIT_COUNT(tests));
}
