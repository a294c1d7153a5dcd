/*
 * Starting BBL.  BBL itself finds its place (session, directory, files); here it is found and run, and a pipe hears
 * what became of it: one line, "ready", "duplicate ..." or "failed ...".
 */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "state.h"

#define LAUNCH_PATIENCE_MS 30000
#define SECOND_PATIENCE_MS 5000
#define REVIVE_PATIENCE_MS 10000

/* One line of at most size-1 bytes.  Length, 0 at its end without a line, -1 when it did not come in time. */
static int
line_hear(int fd, char *buf, size_t size)
{
	int64_t deadline = clock_mono_us() + LAUNCH_PATIENCE_MS * INT64_C(1000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	for (;;) {
		int64_t left = (deadline - clock_mono_us()) / 1000;
		ssize_t got;

		if (left <= 0)
			return -1;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		if ((got = read(fd, buf + n, size - 1 - n)) < 0 && errno == EINTR)
			continue;
		if (got > 0)
			n += (size_t)got;
		buf[n] = '\0';
		if (got <= 0 || n == size - 1 || strchr(buf, '\n') != NULL) {
			buf[strcspn(buf, "\n")] = '\0';
			return (int)strlen(buf);
		}
	}
}

static pid_t
bbl_spawn(const char *program, int ready_fd)
{
	char fd[16];
	pid_t pid;

	snprintf(fd, sizeof fd, "%d", ready_fd);
	if ((pid = fork()) != 0)
		return pid;
	execl(program, "BBL", "-A", "-p", fd, (char *)NULL);
	_exit(127);
}

static int
bbl_judge(int heard, const char *line, pid_t pid, char **why)
{
	char how[128] = "does not answer";
	int status = 0;

	if (heard > 0 && strncmp(line, "ready", 5) == 0)
		return LAUNCH_STARTED;
	if (heard > 0) {
		*why = strdup(line + strcspn(line, " ") + (strchr(line, ' ') != NULL));
		waitpid(pid, NULL, 0);
		return strncmp(line, "duplicate", 9) == 0 ? LAUNCH_DUPLICATE : LAUNCH_FAILED;
	}
	if (heard == 0 && waitpid(pid, &status, 0) == pid)
		proc_tell_end(WIFSIGNALED(status) ? CLD_KILLED : CLD_EXITED,
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), how, sizeof how);
	if (asprintf(why, "BBL, process %ld, %s; see the userlog and %s", (long)pid, how, "stderr in APPDIR") < 0)
		*why = NULL;
	return LAUNCH_FAILED;
}

int
app_launch_bbl(const struct app *a, pid_t *pid, char **why)
{
	char program[PATH_MAX], bin[PATH_MAX], self[PATH_MAX] = "", line[1024];
	const char *dirs[] = { bin, self, NULL };
	int fds[2], rc;

	*pid = 0;
	snprintf(bin, sizeof bin, "%s/bin", a->machine->tuxdir);
	(void)proc_self_dir(self, sizeof self);
	if (proc_find_program("BBL", dirs, getenv("PATH"), program, sizeof program, why) != 0)
		return LAUNCH_FAILED;
	if (pipe(fds) != 0) {
		*why = strdup(strerror(errno));
		return LAUNCH_FAILED;
	}
	(void)fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	fflush(NULL);
	*pid = bbl_spawn(program, fds[1]);
	close(fds[1]);
	rc = bbl_judge(*pid > 0 ? line_hear(fds[0], line, sizeof line) : -1, line, *pid, why);
	close(fds[0]);
	/* The other may have been started in the same moment: who goes on from here finds it ready to answer. */
	for (int64_t until = clock_mono_us() + SECOND_PATIENCE_MS * INT64_C(1000);
	     rc == LAUNCH_DUPLICATE && !app_is_booted(a, NULL) && clock_mono_us() < until;)
		(void)poll(NULL, 0, 20);
	return rc;
}

bool
app_was_shut_down(const struct app *a)
{
	char path[512];

	app_file(a, APP_STOPPED, path, sizeof path);
	return access(a->rundir, F_OK) != 0 || access(path, F_OK) == 0;
}

bool
app_servers_live(const struct app *a)
{
	char path[512];
	struct state old;
	bool lives = false;

	app_file(a, APP_STATE, path, sizeof path);
	if (state_read(path, &old) != 0)
		return false;
	for (size_t i = 0; i < old.n && !lives; i++)
		lives = state_server_lives(&old.servers[i]);
	state_free(&old);
	return lives;
}

bool
app_bring_back_bbl(const struct app *a)
{
	char *why = NULL;
	pid_t pid;
	bool runs;

	if (!app_servers_live(a))
		return false;
	runs = app_launch_bbl(a, &pid, &why) != LAUNCH_FAILED;
	free(why);
	return runs;
}

bool
app_await_bbl(const struct app *a)
{
	int64_t until = clock_mono_us() + REVIVE_PATIENCE_MS * INT64_C(1000);

	while (!app_is_booted(a, NULL)) {
		if (!app_servers_live(a) || clock_mono_us() > until)
			return false;
		(void)poll(NULL, 0, 50);
	}
	return true;
}
