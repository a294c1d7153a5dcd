#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "ulog.h"

extern char **environ;

#define SAY_EVERY_US 60000000

struct running { pid_t pid; char queue[128], cmd[128]; };
static struct running running[COMMAND_MAX];
static int n_running;
static struct rlimit files_limit;
static bool has_files_limit;

void
command_files(const struct rlimit *files)
{
	files_limit = *files;
	has_files_limit = true;
}

static int
spawn_shell(const char *cmd, pid_t *pid)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)cmd, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, standard;
	int rc;

	if ((rc = posix_spawn_file_actions_init(&files)) != 0)
		return rc;
	if ((rc = posix_spawnattr_init(&attr)) != 0)
		goto files_done;
	sigemptyset(&none);
	sigemptyset(&standard);
	sigaddset(&standard, SIGPIPE);
	sigaddset(&standard, SIGHUP);
	sigaddset(&standard, SIGTERM);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &standard);
	/* No socket, lock or table of ours may live on in it. */
	if ((rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
	    (rc = posix_spawn_file_actions_addclosefrom_np(&files, 3)) == 0)
		rc = posix_spawn(pid, "/bin/sh", &files, &attr, argv, environ);
	if (rc == 0 && has_files_limit)
		(void)prlimit(*pid, RLIMIT_NOFILE, &files_limit, NULL);
	posix_spawnattr_destroy(&attr);
files_done:
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

static void
say_not_now(const char *queue, const char *cmd, const char *why)
{
	static int64_t said_us;
	int64_t now = clock_mono_us();

	if (said_us != 0 && now - said_us < SAY_EVERY_US)
		return;
	said_us = now;
	ulog("QM_CAT:1615: ERROR: TMQUEUE: command \"%s\" of queue %s is not run yet: %s; it is tried again", cmd, queue, why);
}

bool
command_run(const char *queue, const char *cmd)
{
	struct running *r;
	char why[64];
	int rc;

	if (n_running == COMMAND_MAX)
		(void)command_reap();
	if (n_running == COMMAND_MAX) {
		snprintf(why, sizeof why, "%d commands run already", COMMAND_MAX);
		say_not_now(queue, cmd, why);
		return false;
	}
	r = &running[n_running];
	if ((rc = spawn_shell(cmd, &r->pid)) != 0) {
		say_not_now(queue, cmd, strerror(rc));
		return false;
	}
	snprintf(r->queue, sizeof r->queue, "%s", queue);
	snprintf(r->cmd, sizeof r->cmd, "%s", cmd);
	n_running++;
	return true;
}

static void
say_end(const struct running *r, int status)
{
	if (WIFSIGNALED(status))
		ulog("QM_CAT:1629: WARN: TMQUEUE: command \"%s\" of queue %s was ended by signal %d", r->cmd, r->queue,
		    WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		ulog("QM_CAT:1629: WARN: TMQUEUE: command \"%s\" of queue %s ended with status %d", r->cmd, r->queue,
		    WEXITSTATUS(status));
}

bool
command_reap(void)
{
	pid_t pid;
	int status;

	for (int i = 0; i < n_running;) {
		/* By its own id: BBL, when the agent starts it again, is a child too. */
		if ((pid = waitpid(running[i].pid, &status, WNOHANG)) == 0) {
			i++;
			continue;
		}
		if (pid == running[i].pid)
			say_end(&running[i], status);
		running[i] = running[--n_running];
	}
	return n_running > 0;
}
