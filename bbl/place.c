/*
 * The run directory, and that one BBL alone serves it.
 *
 * Two locks: a name in the abstract socket namespace, which nobody can take away from a living BBL, and flock on
 * bbl.lock, whose text says whose BBL it is.  Whoever has the name has the place; bbl.lock also keeps out a BBL that
 * does not see our names (another network namespace).
 *
 * The directory may be taken away while we run, by hand or by something that clears /tmp: then it is made again, and
 * the servers make their sockets again in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bbl.h"
#include "clock.h"
#include "gtt.h"
#include "slots.h"
#include "supervisor.h"
#include "ulog.h"

#define TOUCH_US INT64_C(600000000)	/* what is younger is not cleared away for its age */
#define GTT_US INT64_C(10000000)	/* and the table of transactions is swept */
#define LOCK_TRIES 5			/* of 20 ms */
#define NAME_TRIES 60			/* of 50 ms: for a living BBL to put its directory back */

static void
why_is(char **why, const char *what, const char *path)
{
	if (asprintf(why, "%s%s: %s", what, path, strerror(errno)) < 0)
		*why = NULL;
}

/* bbl.lock is held: by our own application, or by another with the same IPCKEY? */
static int
lock_judge(const struct bbl *b, const char *path, char **why)
{
	char text[4200] = "", *tuxconfig;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if ((tuxconfig = strchr(text, ' ')) != NULL)
		*tuxconfig++ = '\0';
	if (tuxconfig != NULL && strcmp(tuxconfig, b->app.tuxconfig) != 0) {
		if (asprintf(why, "IPCKEY %ld of %s is in use by the application of %s (BBL is process %s)", b->app.ubb->res.ipckey,
		    b->app.tuxconfig, tuxconfig, text) < 0)
			*why = NULL;
		return PLACE_REFUSED;
	}
	if (asprintf(why, "%s", text) < 0)
		*why = NULL;
	return PLACE_DUPLICATE;
}

static int	/* 0, or -1 and errno; EADDRINUSE: a living BBL has it */
name_take(struct bbl *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s/bbl", b->app.rundir);
	int saved;

	if (n >= (int)sizeof a.sun_path - 1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if ((b->name_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
	    bind(b->name_fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
		return 0;
	saved = errno;
	if (b->name_fd >= 0)
		close(b->name_fd);
	b->name_fd = -1;
	errno = saved;
	return -1;
}

/* Is the file at `path` the one that we have locked? */
static bool
lock_is_there(const struct bbl *b, const char *path)
{
	struct stat mine, there;

	return b->lock_fd >= 0 && fstat(b->lock_fd, &mine) == 0 && stat(path, &there) == 0 &&
	    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* A tool that looks whether somebody has it locks it itself for a moment. */
static int
lock_try(int fd)
{
	const struct timespec nap = { .tv_nsec = 20000000 };

	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
		if (errno != EWOULDBLOCK || tries == LOCK_TRIES)
			return -1;
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* PLACE_DUPLICATE: somebody else has locked it. */
static int
lock_take(struct bbl *b, const char *path)
{
	char text[4200];

	for (;;) {
		if ((b->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0)
			return PLACE_REFUSED;
		if (lock_try(b->lock_fd) != 0) {
			close(b->lock_fd);
			b->lock_fd = -1;
			return PLACE_DUPLICATE;
		}
		/* A BBL that ended meanwhile has taken the file away: what we locked is not what others will see. */
		if (lock_is_there(b, path))
			break;
		close(b->lock_fd);
	}
	snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), b->app.tuxconfig);
	if (ftruncate(b->lock_fd, 0) != 0 || pwrite(b->lock_fd, text, strlen(text), 0) < 0)
		return PLACE_REFUSED;
	return PLACE_OURS;
}

int
place_take(struct bbl *b, bool resume, char **why)
{
	const struct timespec nap = { .tv_nsec = 50000000 };
	char path[512];
	int rc;

	app_file(&b->app, APP_LOCK, path, sizeof path);
	for (int tries = 0; name_take(b) != 0; tries++) {
		if (errno != EADDRINUSE) {
			why_is(why, "the name of ", b->app.rundir);
			return PLACE_REFUSED;
		}
		if (resume)
			return PLACE_DUPLICATE;
		if (access(path, F_OK) == 0)
			return lock_judge(b, path, why);
		if (tries == NAME_TRIES) {
			errno = EADDRINUSE;
			why_is(why, "a process holds the name of this application but not ", path);
			return PLACE_REFUSED;
		}
		nanosleep(&nap, NULL);
	}
	if (resume && access(b->app.rundir, F_OK) != 0)
		return PLACE_DUPLICATE;		/* shut down since, and cleared away */
	if (link_rundir_make(b->app.rundir, (unsigned)app_perm(&b->app)) != 0) {
		why_is(why, "run directory ", b->app.rundir);
		return PLACE_REFUSED;
	}
	if ((rc = lock_take(b, path)) == PLACE_REFUSED)
		why_is(why, "", path);
	b->touched_us = clock_mono_us();
	return rc == PLACE_DUPLICATE ? lock_judge(b, path, why) : rc;
}

/* The state file is wanted before anybody can ask: who dies now must be known to the BBL that follows. */
static void
place_put_back(struct bbl *b, const char *lock)
{
	int old = b->lock_fd;

	if (link_rundir_make(b->app.rundir, (unsigned)app_perm(&b->app)) != 0 || lock_take(b, lock) != PLACE_OURS) {
		if (!b->no_place)
			ulog("CMDTUX_CAT:1704: ERROR: The run directory %s was taken away and cannot be made again: %s; nobody new "
			    "can join", b->app.rundir, strerror(errno));
		b->no_place = true;
		if (b->lock_fd < 0)
			b->lock_fd = old;
		return;
	}
	close(old);
	supervisor_save(b);
	link_server_look(b->link, true);
	ulog("CMDTUX_CAT:1705: WARN: Files of the run directory %s were taken away while the application runs; put back",
	    b->app.rundir);
	b->no_place = false;
}

void
place_keep(struct bbl *b)
{
	char lock[512], state[512];

	app_file(&b->app, APP_LOCK, lock, sizeof lock);
	app_file(&b->app, APP_STATE, state, sizeof state);
	if (!lock_is_there(b, lock))
		place_put_back(b, lock);
	else if (access(state, F_OK) != 0)
		supervisor_save(b);
	if (clock_mono_us() - b->touched_us >= TOUCH_US) {
		b->touched_us = clock_mono_us();
		(void)utimensat(AT_FDCWD, lock, NULL, AT_SYMLINK_NOFOLLOW);
		(void)utimensat(AT_FDCWD, state, NULL, AT_SYMLINK_NOFOLLOW);
		app_file(&b->app, APP_GTT, state, sizeof state);
		(void)utimensat(AT_FDCWD, state, NULL, AT_SYMLINK_NOFOLLOW);
		app_file(&b->app, APP_SLOTS, state, sizeof state);
		(void)utimensat(AT_FDCWD, state, NULL, AT_SYMLINK_NOFOLLOW);
	}
	gtt_keep(b);
	servers_table_keep(b);
}

/* A table that was taken away is replaced by an empty one: processes that have the old one go on with it. */
void
gtt_keep(struct bbl *b)
{
	char path[512], *why = NULL;

	app_file(&b->app, APP_GTT, path, sizeof path);
	if (b->gtt == NULL || !gtt_is_at(b->gtt, path)) {
		if (b->gtt != NULL)
			ulog("CMDTUX_CAT:1706: WARN: The table of transactions %s was taken away; MAXGTT counts anew for programs "
			    "that join from now on", path);
		gtt_close(b->gtt);
		b->gtt = NULL;
		if (gtt_make(path, (unsigned)b->app.machine->maxgtt, (mode_t)app_perm(&b->app), &b->gtt, &why) != 0) {
			if (!b->no_gtt)
				ulog("CMDTUX_CAT:1707: ERROR: The table of transactions cannot be made: %s; MAXGTT does not hold",
				    why != NULL ? why : "out of memory");
			free(why);
			b->no_gtt = true;
			return;
		}
		b->no_gtt = false;
	}
	if (clock_mono_us() - b->gtt_swept_us >= GTT_US) {
		b->gtt_swept_us = clock_mono_us();
		(void)gtt_sweep(b->gtt);
	}
}

/* Servers that have the old table go on with it, unseen by who comes later, until they are started again. */
void
servers_table_keep(struct bbl *b)
{
	char path[512], *why = NULL;

	app_file(&b->app, APP_SLOTS, path, sizeof path);
	if (b->slots == NULL || !slots_is_at(b->slots, path)) {
		unsigned n = 2 * (unsigned)b->app.ubb->res.maxservers + SLOTS_SPARE;

		slots_close(b->slots);
		b->slots = NULL;
		if (slots_make(path, n, (mode_t)app_perm(&b->app), &b->slots, &why) != 0) {
			if (!b->no_slots)
				ulog("LIBTUX_CAT:5230: ERROR: The table of servers cannot be made: %s; requests are not sent to the "
				     "server with the least load", why != NULL ? why : "out of memory");
			free(why);
			b->no_slots = true;
			return;
		}
		b->no_slots = false;
	}
	if (clock_mono_us() - b->slots_swept_us >= GTT_US) {
		b->slots_swept_us = clock_mono_us();
		(void)slots_sweep(b->slots);
	}
}

void
place_leave(struct bbl *b)
{
	gtt_close(b->gtt);
	b->gtt = NULL;
	slots_close(b->slots);
	b->slots = NULL;
	if (b->lock_fd >= 0)
		close(b->lock_fd);
	if (b->name_fd >= 0)
		close(b->name_fd);
	b->lock_fd = b->name_fd = -1;
}
