#include "places.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

/* The file: a line of this length with the limit.  Locks lie behind it, where nothing is ever written. */
enum { HEAD = 64, TURN = 1000, FIRST_SERVER = 1 << 20, FIRST_ADMIN = 1 << 30, MOST = 1 << 29 };

static int
open_file(const char *dir, int flags)
{
	char path[8300];
	int n = snprintf(path, sizeof path, "%s/PROCESSES", dir);

	return n < 0 || (size_t)n >= sizeof path ? -1 : open(path, O_RDWR | O_CLOEXEC | flags, 0600);
}

static long	/* 0: none is written */
limit_of(int fd)
{
	char text[HEAD + 1] = "";

	return pread(fd, text, HEAD, 0) > 0 && strncmp(text, "limit ", 6) == 0 ? strtol(text + 6, NULL, 10) : 0;
}

void
places_limit(const char *dir, long limit)
{
	char text[HEAD + 1];
	int fd = open_file(dir, O_CREAT);

	if (fd == -1)
		return;
	snprintf(text, sizeof text, "limit %-*ld\n", HEAD - 7, limit);
	if (limit_of(fd) != limit && pwrite(fd, text, HEAD, 0) != HEAD)
		(void)ftruncate(fd, 0);		/* a full disk: without a limit, rather than with a wrong one */
	close(fd);
}

/*
 * The locks that others hold on these bytes, a byte each; *gap: the first byte that none has, when it was -1.  The kernel tells any of
 * them, not the first one.
 */
static long	// NOLINT(misc-no-recursion): as deep as there are locks
count(int fd, off_t from, off_t end, off_t *gap)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = end - from };
	long before, behind;

	if (from == end)
		return 0;	/* a length of 0 would mean all bytes */
	if (fcntl(fd, F_OFD_GETLK, &l) != 0)
		return -1;
	if (l.l_type == F_UNLCK) {
		if (*gap == -1)
			*gap = from;
		return 0;
	}
	if ((before = count(fd, from, l.l_start, gap)) < 0 || (behind = count(fd, l.l_start + 1, end, gap)) < 0)
		return -1;
	return before + 1 + behind;
}

static long
count_kind(int fd, enum places_kind kind, off_t *gap)
{
	off_t from = kind == PLACES_SERVER ? FIRST_SERVER : FIRST_ADMIN;

	*gap = -1;
	return count(fd, from, from + MOST, gap);
}

long
places_in_use(const char *dir)
{
	int fd = open_file(dir, 0);
	long servers, admins;
	off_t gap;

	if (fd == -1)
		return -1;
	servers = count_kind(fd, PLACES_SERVER, &gap);
	admins = count_kind(fd, PLACES_ADMIN, &gap);
	close(fd);
	return servers < 0 || admins < 0 ? -1 : servers + admins;
}

static int
set_lock(int fd, short type, off_t at)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l);
}

static int	/* One counts at a time.  Nobody is waited for for long: he may have been stopped just now. */
take_turn(int fd)
{
	struct timespec pause = { 0, 5000000 };
	int rc;

	for (int tries = 0; (rc = set_lock(fd, F_WRLCK, TURN)) != 0 && tries < 200; tries++)
		nanosleep(&pause, NULL);
	return rc;
}

static int	/* 0: it has one, 1: all are taken, -1: it cannot be done */
take(int fd, enum places_kind kind, long limit, long *servers, long *admins)
{
	off_t server_gap, admin_gap, at;
	int rc;

	if (take_turn(fd) != 0)
		return -1;
	*servers = count_kind(fd, PLACES_SERVER, &server_gap);
	*admins = count_kind(fd, PLACES_ADMIN, &admin_gap);
	at = kind == PLACES_SERVER ? server_gap : admin_gap;
	if (*servers < 0 || *admins < 0 || at < 0)
		rc = -1;
	else if (*servers + (kind == PLACES_ADMIN ? *admins : 0) >= limit)
		rc = 1;
	else
		rc = set_lock(fd, F_WRLCK, at);
	(void)set_lock(fd, F_UNLCK, TURN);
	return rc;
}

int
places_take(const char *device, const char *space, enum places_kind kind, int *fd, char **why)
{
	struct device *d = calloc(1, sizeof *d);
	long limit, servers = 0, admins = 0;
	char dir[8200];
	int rc = -1;

	*fd = -1;
	*why = NULL;
	if (d != NULL && device_read(device, d, NULL) == DEVE_OK) {
		snprintf(dir, sizeof dir, "%s/%s", d->dir, space);
		*fd = open_file(dir, 0);
	}
	free(d);
	if (*fd == -1)
		return 0;
	if ((limit = limit_of(*fd)) > 0)
		rc = take(*fd, kind, limit, &servers, &admins);
	if (rc == 0)
		return 0;
	close(*fd);
	*fd = -1;
	if (rc == -1)
		return 0;
	if (asprintf(why, "queue space %s in %s: no more room: the limit of %ld concurrent processes is reached: %ld servers and "
	    "%ld qmadmin have it open (qspacechange allows more)", space, device, limit, servers, admins) == -1)
		*why = NULL;
	return -1;
}
