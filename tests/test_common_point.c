/*
 * test_common_point - a process stops or dies where it is told, once, and nowhere else.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "point.h"
#include "unit.h"

static char dir[PATH_MAX];

static void
file_make(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

static bool	/* and it is gone then */
file_was(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return unlink(path) == 0;
}

/* A child that was started with the variable passes two points, the first one twice; how it ended or stopped. */
static int
child(const char *variable, pid_t *pid)
{
	int st;

	if ((*pid = fork()) == 0) {
		if (variable != NULL)
			setenv("ATMIQ_TEST_POINT", variable, 1);
		execl("/proc/self/exe", "child", "pass", (char *)NULL);
		_exit(9);
	}
	waitpid(*pid, &st, WUNTRACED);
	return st;
}

static void
without_the_variable_nothing_happens(void)
{
	pid_t pid;
	int st;

	file_make("COMMIT_SEND.kill");
	st = child(NULL, &pid);
	CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	CU_ASSERT_TRUE(file_was("COMMIT_SEND.kill"));
	st = child("relative", &pid);
	CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}

static void
without_the_file_nothing_happens(void)
{
	pid_t pid;
	int st;

	file_make("COMMIT_ANSWERED.kill");
	st = child(dir, &pid);
	CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	CU_ASSERT_TRUE(file_was("COMMIT_ANSWERED.kill"));
}

static void
it_kills_once(void)
{
	pid_t pid;
	int st;

	file_make("COMMIT_SEND.kill");
	st = child(dir, &pid);
	CU_ASSERT_TRUE(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
	CU_ASSERT_TRUE(file_was("hit.COMMIT_SEND"));
	st = child(dir, &pid);
	CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}

static void
it_stops_at_the_second_time_and_goes_on(void)
{
	pid_t pid;
	int st;

	file_make("COMMIT_SEND.stop.1");
	st = child(dir, &pid);
	CU_ASSERT_TRUE(WIFSTOPPED(st));
	CU_ASSERT_TRUE(file_was("hit.COMMIT_SEND"));
	CU_ASSERT_TRUE(file_was("passed"));
	kill(pid, SIGCONT);
	waitpid(pid, &st, 0);
	CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(without_the_variable_nothing_happens),
		UNIT(without_the_file_nothing_happens),
		UNIT(it_kills_once),
		UNIT(it_stops_at_the_second_time_and_goes_on),
	};
	const char *tmp = getenv("TMPDIR");
	int failed;

	if (argc > 1 && strcmp(argv[1], "pass") == 0) {
		point(POINT_COMMIT_SEND);
		if (point_dir != NULL) {
			snprintf(dir, sizeof dir, "%s", point_dir);
			file_make("passed");
		}
		point(POINT_COMMIT_SEND);
		point(POINT_COMMIT_SENT);
		return 0;
	}
	snprintf(dir, sizeof dir, "%s/point.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL)
		return 2;
	failed = unit_run("common: test points", tests, UNIT_COUNT(tests));
	file_was("passed");
	rmdir(dir);
	return failed;
}
