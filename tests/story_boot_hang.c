/*
 * story_boot_hang - the limits of tmboot and tmshutdown, a minute each, all waited for at once: a server that hangs is told of, left to
 * itself, and nothing else is held up by it.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static const char source[] =
    "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\n#include <atmi.h>\n"
    "static const char *how = \"\";\n"
    "void SVC(TPSVCINFO *m) {\n"
    "  close(open(\"hanging\", O_CREAT | O_WRONLY, 0600));\n"
    "  while (access(\"go\", F_OK) != 0) usleep(2000);\n"
    "  tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "int tpsvrinit(int argc, char **argv) { how = argv[argc - 1];\n"
    "  while (strcmp(how, \"init\") == 0 && access(\"go\", F_OK) != 0) usleep(2000);\n"
    "  return 0; }\n"
    "void tpsvrdone(void) { while (strcmp(how, \"done\") == 0 && access(\"go\", F_OK) != 0) usleep(2000); }\n";

static pid_t
begin(const struct given *g, const char *name, const char *command)
{
	pid_t pid = fork();
	char line[300];

	if (pid == 0) {
		snprintf(line, sizeof line, "exec %s >%s.out 2>&1", command, name);
		if (chdir(given_dir(g)) == 0)
			execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static bool
has_failed(void *arg)
{
	pid_t *pid = arg;
	int st = 0;

	if (waitpid(*pid, &st, WNOHANG) != *pid)
		return false;
	CU_ASSERT_TRUE(WIFEXITED(st));
	CU_ASSERT_EQUAL(WEXITSTATUS(st), 1);
	return true;
}

static bool
hangs(void *g)
{
	return given_exists(g, "hanging");
}

static void
ends_and_says(const struct given *g, pid_t pid, const char *name, const char *text)
{
	char file[32], *out;

	CU_ASSERT_TRUE_FATAL(wait_until(has_failed, &pid, 100));
	snprintf(file, sizeof file, "%s.out", name);
	out = given_read(g, file);
	CU_ASSERT_TRUE(has(out, text));
	if (!has(out, text))
		fprintf(stderr, "\n%s: expected \"%s\"\n%s\n", name, text, out);
	free(out);
}

static bool
all_servers_are_gone(void *g)
{
	return given_count(g, "server") == 0;
}

static void
what_hangs_is_told_of_after_a_minute_and_left_to_itself(void)
{
	struct given *g = given_system(&(struct given_conf){ .no_queue_group = true, .not_booted = true, .server_source = source,
	    .server_services = "-s SVC", .server_params = "CLOPT=\"-A -- service\"",
	    .servers = "server SRVGRP=APP SRVID=2 CLOPT=\"-- init\"\nserver SRVGRP=APP SRVID=3 CLOPT=\"-- done\"\nserver SRVGRP=APP SRVID=4 CLOPT=\"-- stopped\"\n" });
	pid_t client, boot, done, service, stopped;
	double began;

	free(given_ok(g, NULL, "tmboot -A; tmboot -i 1; tmboot -i 3; tmboot -i 4"));
	if ((client = fork()) == 0) {
		char *data = tpalloc("STRING", NULL, 16);
		long len;
		_exit(tpcall("SVC", data, 0, &data, &len, TPNOTIME) == -1 ? tperrno : 0);
	}
	CU_ASSERT_TRUE_FATAL(wait_until(hangs, g, 20));
	kill(given_pid_as(g, 1, 4), SIGSTOP);
	began = now_s();
	boot = begin(g, "boot", "tmboot -i 2");
	done = begin(g, "done", "tmshutdown -i 3");
	service = begin(g, "service", "tmshutdown -i 1");
	stopped = begin(g, "stopped", "tmshutdown -i 4");
	ends_and_says(g, boot, "boot", "is still initialising after 60 s");
	ends_and_says(g, done, "done", "still runs 60 s after the order to stop");
	ends_and_says(g, service, "service", "still runs 60 s after the order to stop");
	ends_and_says(g, stopped, "stopped", "still runs 60 s after the order to stop");
	CU_ASSERT_TRUE(now_s() - began >= 59);
	/* Those that come to an end after all do what they were told. */
	free(given_ok(g, NULL, "echo psr | tmadmin -r >/dev/null 2>&1"));
	kill(given_pid_as(g, 1, 4), SIGCONT);
	given_write(g, "go", "now");
	waitpid(client, NULL, 0);
	free(given_ok(g, NULL, "tmshutdown -S"));		/* the one that was so slow to start */
	CU_ASSERT_TRUE(wait_until(all_servers_are_gone, g, 20));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(what_hangs_is_told_of_after_a_minute_and_left_to_itself) };

	return unit_run("boot hang", tests, UNIT_COUNT(tests));
}
