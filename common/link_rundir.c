/*
 * link - the directory that the sockets of an application live in.
 *
 * Whoever may write there can take a server's place, so it must be a real directory of its owner, with no more rights
 * than PERM gives, and sticky where strangers may write.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link.h"

static mode_t	/* who may use a socket must be able to search the directory: rw becomes rwx */
dir_mode(unsigned perm)
{
	mode_t mode = 0;

	for (int shift = 0; shift <= 6; shift += 3)
		if ((perm >> shift & 06) != 0)
			mode |= 07u << shift;
	if (mode & S_IWOTH)
		mode |= S_ISVTX;
	return mode | S_IRWXU;
}

static int	/* what it is, in *st; ENOTDIR for a symbolic link too */
look(const char *dir, struct stat *st)
{
	if (lstat(dir, st) != 0)
		return -1;
	if (!S_ISDIR(st->st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return 0;
}

int
link_rundir_make(const char *dir, unsigned perm)
{
	struct stat st;

	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return -1;
	if (look(dir, &st) != 0)
		return -1;
	if (st.st_uid != geteuid()) {
		errno = EPERM;
		return -1;
	}
	return (st.st_mode & 07777) == dir_mode(perm) ? 0 : chmod(dir, dir_mode(perm));
}

int
link_rundir_check(const char *dir, unsigned long owner_uid)
{
	struct stat st;

	if (look(dir, &st) != 0)
		return -1;
	if (st.st_uid != owner_uid && st.st_uid != 0) {
		errno = EPERM;
		return -1;
	}
	if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0) {	/* strangers could replace a socket */
		errno = EPERM;
		return -1;
	}
	return 0;
}
