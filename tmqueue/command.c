#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ulog.h"

extern char **environ;

static pid_t running[COMMAND_MAX];
static int n_running;

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
	posix_spawnattr_destroy(&attr);
files_done:
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

void
command_run(const char *queue, const char *cmd)
{
	pid_t pid;
	int rc;

	command_reap();
	if (n_running == COMMAND_MAX) {
		ulog("QM_CAT:1615: ERROR: TMQUEUE: command \"%s\" of queue %s is not run: %d commands run already", cmd, queue,
		    COMMAND_MAX);
		return;
	}
	if ((rc = spawn_shell(cmd, &pid)) != 0) {
		ulog("QM_CAT:1615: ERROR: TMQUEUE: command \"%s\" of queue %s cannot be started: %s", cmd, queue, strerror(rc));
		return;
	}
	running[n_running++] = pid;
}

bool
command_reap(void)
{
	for (int i = 0; i < n_running;) {
		/* By its own id: BBL, when the agent starts it again, is a child too. */
		if (waitpid(running[i], NULL, WNOHANG) == 0)
			i++;
		else
			running[i] = running[--n_running];
	}
	return n_running > 0;
}
