/*
 * The directory beside a device file: its lock, and how an older one is moved out of the way.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device_impl.h"

void
device_uuid_make(char uuid[37])
{
	uint8_t b[16];

	for (size_t n = 0; n < sizeof b;) {
		ssize_t got = getrandom(b + n, sizeof b - n, 0);
		if (got > 0)
			n += (size_t)got;
	}
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(uuid, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
	    b[3],
	    b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* False when the directory was moved away, or made anew, while we waited for the lock of the old one. */
static bool
still_the_same(int fd, const char *path)
{
	struct stat mine, now;

	return fstat(fd, &mine) == 0 && stat(path, &now) == 0 && mine.st_dev == now.st_dev && mine.st_ino == now.st_ino;
}

int
device_lock(const struct device *d, int *out, char **why)
{
	char path[PATH_MAX + 8];
	int fd, tries = 0;

	snprintf(path, sizeof path, "%s/lock", d->dir);
	for (;;) {
		if (mkdir(d->dir, 0700) != 0 && errno != EEXIST)
			return device_fail(why, DEVE_OS, "%s: cannot make the directory: %s", d->dir, strerror(errno));
		if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0) {
			if (errno == ENOENT && ++tries < 100)
				continue;	/* moved away just now */
			return device_fail(why, DEVE_OS, "%s: %s", path, strerror(errno));
		}
		while (flock(fd, LOCK_EX) != 0)
			if (errno != EINTR) {
				close(fd);
				return device_fail(why, DEVE_OS, "%s: cannot lock: %s", path, strerror(errno));
			}
		if (still_the_same(fd, path)) {
			*out = fd;
			return DEVE_OK;
		}
		close(fd);
	}
}

bool
device_dir_is_bare(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool bare = true;

	if (d == NULL)
		return errno == ENOENT;
	while (bare && (e = readdir(d)) != NULL)
		bare = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, "lock") == 0 ||
		    strcmp(e->d_name, "uuid") == 0 || strcmp(e->d_name, "uuid.new") == 0;
	closedir(d);
	return bare;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

int
device_dir_set_aside(const char *dir, char **why)
{
	char old[PATH_MAX + 8];
	struct stat st;

	snprintf(old, sizeof old, "%s.old", dir);
	if (lstat(old, &st) == 0 && nftw(old, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		return device_fail(why, DEVE_OS, "%s: cannot remove it to keep %s there: %s", old, dir,
		    strerror(errno));
	if (rename(dir, old) != 0)
		return device_fail(why, DEVE_OS, "%s: cannot rename it to %s: %s", dir, old, strerror(errno));
	return DEVE_OK;
}
