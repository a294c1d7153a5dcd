/*
 * flush - what a failed flush means.
 *
 * The kernel says once that pages could not be written, marks them clean, and the next fsync of the file succeeds: what
 * it rests on may be lost at a power cut.  Berkeley DB tries an EIO again, a hundred times, and would believe it.  So it
 * flushes through flush_checked(): after a failure the file stays `unsure` and every further flush of it fails, until
 * flush_settle() has written over it what can be read of it, which is what everybody saw and goes on from, and flushed
 * that.  The space is recovered then: see space_recover() in qspace.c.
 *
 * Nor is a commit's word taken when a write of the log failed in it: Berkeley DB 5.3 answers 0 when the commit is in a
 * log file none of which is flushed yet (it takes the file before for proof that the record is on disk).
 *
 * An empty file NAME.unsure beside it says so to a process that comes after this one.  It need not be durable: what a
 * power cut leaves is what the disk has, and nobody can have seen anything else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qspace_impl.h"

#define SUFFIX ".unsure"
enum { UNSURE_MAX = 64, CHUNK = 256 << 10 };

static pthread_mutex_t unsure_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { dev_t dev; ino_t ino; char *path; } unsure[UNSURE_MAX];	/* path NULL: no memory */
static atomic_int n_unsure;

int
fault_at(int fd, size_t n)
{
	int (*fault)(int, size_t) = env_fault;

	return fault == NULL ? 0 : fault(fd, n);
}

static void
path_of(int fd, char path[4096])	/* "": cannot be known */
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, 4095);
	path[n > 0 ? n : 0] = '\0';
}

void
flush_write_failed(int fd)
{
	char path[4096];
	const char *slash;

	path_of(fd, path);
	if ((slash = strrchr(path, '/')) != NULL && strncmp(slash, "/log.", 5) == 0)
		keeper_log_failed(path);
}

static int	/* its place in the list, or -1.  Too many to remember: any. */
unsure_find(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return 0;
	for (int i = 0; i < n_unsure; i++)
		if (unsure[i].dev == st.st_dev && unsure[i].ino == st.st_ino)
			return i;
	return n_unsure == UNSURE_MAX ? 0 : -1;
}

static void
unsure_add(int fd)
{
	char path[4096], mark[4200];
	struct stat st;
	int m;

	path_of(fd, path);
	pthread_mutex_lock(&unsure_lock);
	if (unsure_find(fd) == -1 && fstat(fd, &st) == 0) {
		unsure[n_unsure].dev = st.st_dev;
		unsure[n_unsure].ino = st.st_ino;
		unsure[n_unsure].path = strdup(path);
		n_unsure++;
	}
	pthread_mutex_unlock(&unsure_lock);
	snprintf(mark, sizeof mark, "%s%s", path, SUFFIX);
	if ((m = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) != -1)
		close(m);
	keeper_flush_failed(path);
}

int	/* Berkeley DB's fsync(): 0, or an errno */
flush_checked(int fd)
{
	int e;

	if (n_unsure > 0) {
		pthread_mutex_lock(&unsure_lock);
		e = unsure_find(fd) == -1 ? 0 : EIO;
		pthread_mutex_unlock(&unsure_lock);
		if (e != 0) {
			errno = e;
			return e;
		}
	}
	if ((e = fault_at(fd, 0)) == 0) {
		do
			e = fdatasync(fd) == 0 ? 0 : errno;
		while (e == EINTR);
		if (e == 0)
			return 0;
	}
	e = e > 0 ? e : EIO;
	flush_write_failed(fd);
	unsure_add(fd);
	errno = e;
	return e;
}

static int	/* 0, or an errno */
file_rewrite(struct qspace *qs, const char *path)
{
	char *b = malloc(CHUNK), text[4400], mark[4400];
	int fd, e = b == NULL ? ENOMEM : 0;
	off_t off = 0;
	ssize_t n;

	snprintf(mark, sizeof mark, "%s%s", path, SUFFIX);
	if (e == 0 && (fd = open(path, O_RDWR | O_CLOEXEC)) == -1) {
		e = errno == ENOENT ? 0 : errno;	/* removed since: nothing rests on it */
	} else if (e == 0) {
		while (e == 0 && (n = pread(fd, b, CHUNK, off)) != 0) {
			errno = EIO;
			if (n < 0 || (e = fault_at(fd, (size_t)n)) != 0 || pwrite(fd, b, (size_t)n, off) != n)
				e = e > 0 ? e : errno;
			off += n;
		}
		if (e == 0 && (e = fault_at(fd, 0)) == 0 && fdatasync(fd) != 0)
			e = errno;
		close(fd);
	}
	free(b);
	if (e == 0) {
		if (unlink(mark) == 0)
			ulog("QM_CAT:1363: WARN: queue space %s: a flush of %s had failed; it was written again",
			    qs->params.name, path);
		return 0;
	}
	snprintf(text, sizeof text, "%s: written again after a failed flush: %s", path, strerror(e > 0 ? e : EIO));
	env_trouble(qs, text);
	return e;
}

static bool
is_of(const struct qspace *qs, const char *path)
{
	size_t n = strlen(qs->dir);

	return path != NULL && strncmp(path, qs->dir, n) == 0 && path[n] == '/';
}

static int	/* What this process remembers. */
settle_remembered(struct qspace *qs)
{
	int rc = 0;

	pthread_mutex_lock(&unsure_lock);
	for (int i = n_unsure - 1; i >= 0 && rc == 0; i--)
		if (is_of(qs, unsure[i].path) && (rc = file_rewrite(qs, unsure[i].path)) == 0) {
			free(unsure[i].path);
			unsure[i] = unsure[n_unsure - 1];
			n_unsure--;
		}
	pthread_mutex_unlock(&unsure_lock);
	return rc;
}

int
flush_settle(struct qspace *qs)
{
	char path[4400];
	struct dirent *e;
	int rc = settle_remembered(qs);
	DIR *d = opendir(qs->dir);

	while (rc == 0 && d != NULL && (e = readdir(d)) != NULL) {
		size_t n = strlen(e->d_name), s = sizeof SUFFIX - 1;

		if (n > s && strcmp(e->d_name + n - s, SUFFIX) == 0) {
			snprintf(path, sizeof path, "%s/%.*s", qs->dir, (int)(n - s), e->d_name);
			rc = file_rewrite(qs, path);
		}
	}
	if (d != NULL)
		closedir(d);
	return rc == 0 ? 0 : QMEOS;
}
