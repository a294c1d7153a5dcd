/*
 * Loaded into TMQUEUE with LD_PRELOAD: while the control page (FAULT_CONTROL, see given_control.h) says so, one in so many
 * writes and flushes of files of the queue space fails, with an error or short.  Nothing else is touched.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "given_control.h"

static struct control *control;

__attribute__((constructor)) static void
map_control(void)
{
	const char *path = getenv("FAULT_CONTROL"), *self = program_invocation_short_name;
	int fd;

	if (path == NULL || strcmp(self, "TMQUEUE") != 0 || (fd = open(path, O_RDWR | O_CLOEXEC)) == -1)
		return;
	control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		control = NULL;
	close(fd);
}

static int
is_of_the_space(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	return strstr(path, "/QUE.d/") != NULL;
}

/* 0: go on.  An errno: fail with it.  -1: write the half. */
static int
trouble(int fd, unsigned kinds)
{
	static __thread unsigned seed;
	unsigned one_in, pick;

	if (control == NULL || (one_in = control->fault_one_in) == 0 || (kinds &= control->fault_kinds) == 0)
		return 0;
	if (seed == 0)
		seed = (unsigned)getpid() ^ (unsigned)(size_t)&seed;
	if ((unsigned)rand_r(&seed) % one_in != 0 || !is_of_the_space(fd))
		return 0;
	do
		pick = 1u << ((unsigned)rand_r(&seed) % 4);
	while ((pick & kinds) == 0);
	control->faults++;
	return pick == FAULT_EIO || pick == FAULT_SYNC ? EIO : pick == FAULT_ENOSPC ? ENOSPC : -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static size_t	/* A disk writes pages of 4096 bytes whole (D6), and tables have pages of that size; the log has none. */
shorter(int fd, size_t n, off_t at)
{
	char link[64], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof path - 1);
	path[len > 0 ? len : 0] = '\0';
	if (strstr(path, "/log.") != NULL || strstr(path, "/spare.") != NULL)
		return n / 2;
	return at % 4096 == 0 ? n / 2 / 4096 * 4096 : 0;
}

#define WRITES (FAULT_EIO | FAULT_ENOSPC | FAULT_SHORT)
#define PWRITE(name) \
ssize_t \
name(int fd, const void *p, size_t n, off_t at) \
{ \
	static ssize_t (*real)(int, const void *, size_t, off_t); \
	int e = trouble(fd, WRITES); \
 \
	if (real == NULL) \
		real = REAL(name); \
	if (e > 0) { \
		errno = e; \
		return -1; \
	} \
	if (e == -1 && (n = shorter(fd, n, at)) == 0) { \
		errno = EIO; \
		return -1; \
	} \
	return real(fd, p, n, at); \
}
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t
write(int fd, const void *p, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	int e = trouble(fd, WRITES);

	if (real == NULL)
		real = REAL(write);
	if (e > 0) {
		errno = e;
		return -1;
	}
	if (e == -1 && (n = shorter(fd, n, lseek(fd, 0, SEEK_CUR))) == 0) {
		errno = EIO;
		return -1;
	}
	return real(fd, p, n);
}

#define FLUSH(name) \
int \
name(int fd) \
{ \
	static int (*real)(int); \
	int e = trouble(fd, FAULT_SYNC); \
 \
	if (real == NULL) \
		real = REAL(name); \
	if (e > 0) { \
		errno = e; \
		return -1; \
	} \
	return real(fd); \
}
FLUSH(fdatasync)
FLUSH(fsync)

#define ALLOCATE(name) \
int \
name(int fd, int mode, off_t from, off_t n) \
{ \
	static int (*real)(int, int, off_t, off_t); \
	int e = trouble(fd, FAULT_ENOSPC); \
 \
	if (real == NULL) \
		real = REAL(name); \
	if (e > 0) { \
		errno = e; \
		return -1; \
	} \
	return real(fd, mode, from, n); \
}
ALLOCATE(fallocate)
ALLOCATE(fallocate64)
