/*
 * bb - starting BBL again when it is gone without having been shut down.
 *
 * Any server may do it, one at a time: who holds the lock on bbl.start.  BBL leaves a file bbl.stopped when it was
 * meant to end; then nobody starts it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bb_impl.h"
#include "clock.h"
#include "ulog.h"

#define PATIENCE_US 5000000	/* for a BBL we started to answer, before another may try */
#define AGAIN_US 500000		/* after one that ended before it answered; twice that after the next one, up to PATIENCE_US */
#define VANISHED_US 3000000	/* the run directory has to be gone that long before we take it for an accident */

static int	/* the environment of now, with TUXCONFIG: later another thread may be changing it */
copy_environment(struct revive *r, const char *tuxconfig)
{
	size_t n = 0, k = 0;

	while (environ[n] != NULL)
		n++;
	if ((r->envp = calloc(n + 2, sizeof *r->envp)) == NULL)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "TUXCONFIG=", 10) != 0 && (r->envp[k++] = strdup(environ[i])) == NULL)
			return -1;
	return asprintf(&r->envp[k], "TUXCONFIG=%s", tuxconfig) < 0 ? -1 : 0;
}

int
revive_prepare(struct revive *r, const struct bb_agent_conf *conf)
{
	const char *path = conf->bbl_endpoint + 6, *slash;

	*r = (struct revive){ .lock_fd = -1 };
	if (conf->bbl_program == NULL || *conf->bbl_program == '\0' || strncmp(conf->bbl_endpoint, "ipc://", 6) != 0 ||
	    (slash = strrchr(path, '/')) == NULL)
		return 0;
	if ((r->rundir = strndup(path, (size_t)(slash - path))) == NULL ||
	    (r->program = strdup(conf->bbl_program)) == NULL)
		return -1;
	return copy_environment(r, conf->tuxconfig);
}

void
revive_free(struct revive *r)
{
	revive_over(r);
	free(r->program);
	free(r->rundir);
	for (size_t i = 0; r->envp != NULL && r->envp[i] != NULL; i++)
		free(r->envp[i]);
	free(r->envp);
	*r = (struct revive){ .lock_fd = -1 };
}

static bool
was_shut_down(const struct revive *r)
{
	char path[4200];

	snprintf(path, sizeof path, "%s/bbl.stopped", r->rundir);
	return access(path, F_OK) == 0;
}

/*
 * BBL takes the run directory away when the application is shut down, but only after its servers: if it stays away and
 * we live, somebody has removed it.  BBL gives it its right mode.
 */
static void
make_rundir(struct revive *r)
{
	int64_t now = clock_mono_us();

	if (access(r->rundir, F_OK) == 0 || errno != ENOENT) {
		r->vanished_us = 0;
	} else if (r->vanished_us == 0) {
		r->vanished_us = now;
	} else if (now - r->vanished_us > VANISHED_US && mkdir(r->rundir, 0700) == 0) {
		ulog("LIBATMIQ_CAT:114: WARN: The run directory %s and BBL are gone though nobody shut the application down; "
		    "made again", r->rundir);
	}
}

static bool	/* are we the one? */
take_lock(struct revive *r)
{
	char path[4200];

	snprintf(path, sizeof path, "%s/bbl.start", r->rundir);
	if ((r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return false;
	if (flock(r->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	revive_over(r);
	return false;
}

static int	/* 0 or an errno */
spawn(struct revive *r)
{
	char *argv[] = { r->program, (char[]){ "-R" }, NULL };
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	if ((rc = posix_spawnattr_init(&attr)) != 0)
		return rc;
	posix_spawnattr_setsigmask(&attr, &none);	/* ours are blocked, in this thread */
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(&r->pid, r->program, NULL, &attr, argv, r->envp);
	posix_spawnattr_destroy(&attr);
	if (rc != 0)
		r->pid = 0;
	return rc;
}

void
revive_try(struct revive *r)
{
	int64_t now = clock_mono_us();
	int rc;

	if (r->program == NULL)
		return;
	if (was_shut_down(r)) {
		revive_over(r);
		return;
	}
	if (r->lock_fd < 0) {
		make_rundir(r);
		take_lock(r);	/* one more attempt to reach BBL comes first: who had the lock may have started it */
		return;
	}
	if (r->since_us != 0) {
		if (now - r->since_us > PATIENCE_US)
			revive_over(r);
		return;
	}
	if (now < r->not_before_us)
		return;
	r->since_us = now;
	if ((rc = spawn(r)) != 0)
		ulog("LIBATMIQ_CAT:111: ERROR: BBL is gone and cannot be started again: %s: %s", r->program,
		    strerror(rc));
	else
		ulog("LIBATMIQ_CAT:112: WARN: BBL was gone without having been shut down; started again as process %ld",
		    (long)r->pid);
}

void
revive_over(struct revive *r)
{
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	r->lock_fd = -1;
	r->since_us = 0;
}

/* It was killed, or left the place to one that has ended since: another is needed sooner than when one is only slow. */
void
revive_reap(struct revive *r)
{
	if (r->pid <= 0 || waitpid(r->pid, NULL, WNOHANG) == 0)
		return;
	r->pid = 0;
	if (r->since_us == 0)
		return;
	r->since_us = 0;
	r->pause_us = r->pause_us == 0 ? AGAIN_US : r->pause_us * 2 < PATIENCE_US ? r->pause_us * 2 : PATIENCE_US;
	r->not_before_us = clock_mono_us() + r->pause_us;
}
