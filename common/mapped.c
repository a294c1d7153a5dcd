#include "mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc.h"

struct head { char magic[8]; uint32_t version, n; char boot[48]; };
_Static_assert(sizeof(struct head) == MAPPED_HEAD, "the layout of mapped.h");

static size_t
file_size(const struct mapped_kind *kind, unsigned n)
{
	return MAPPED_SLOTS + n * kind->slot;
}

static int
trouble(char **why, const char *path, const char *text)
{
	if (asprintf(why, "%s: %s", path, text) < 0)
		*why = NULL;
	return -1;
}

static bool
head_good(const struct mapped_kind *kind, const struct head *h, off_t size, unsigned n)
{
	return memcmp(h->magic, kind->magic, sizeof h->magic) == 0 && h->version == kind->version && h->n <= kind->max &&
	    (n == 0 || h->n == n) && size == (off_t)file_size(kind, h->n) && strncmp(h->boot, proc_boot_id(), sizeof h->boot) == 0;
}

int
mapped_open(const struct mapped_kind *kind, const char *path, unsigned n, struct mapped *out, char **why)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), rc = -1;
	struct head h;
	struct stat st;

	*why = NULL;
	if (fd < 0 || fstat(fd, &st) != 0)
		trouble(why, path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || !head_good(kind, &h, st.st_size, n))
		trouble(why, path, "damaged, or of another size, version or boot of the machine");
	else {
		*out = (struct mapped){ .n = h.n, .size = file_size(kind, h.n), .dev = st.st_dev, .ino = st.st_ino };
		out->p = mmap(NULL, out->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rc = out->p == MAP_FAILED ? trouble(why, path, strerror(errno)) : 0;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

/* All of its room at once: where the disk is full it is refused here, for later it would be a SIGBUS in whoever uses it. */
static bool
room_take(int fd, size_t size)
{
	int err;

	while ((err = posix_fallocate(fd, 0, (off_t)size)) == EINTR)
		;
	if (err == EOPNOTSUPP)		/* a file system that cannot tell */
		return ftruncate(fd, (off_t)size) == 0;
	errno = err;
	return err == 0;
}

/* Complete before it has its name, so that nobody finds half of it. */
static int
file_make(const struct mapped_kind *kind, const char *path, unsigned n, mode_t mode, char **why)
{
	struct head h = { .version = kind->version, .n = n };
	char fresh[512];
	int fd;

	memcpy(h.magic, kind->magic, sizeof h.magic);
	snprintf(h.boot, sizeof h.boot, "%s", proc_boot_id());
	snprintf(fresh, sizeof fresh, "%s.new", path);
	(void)unlink(fresh);
	if ((fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
		return trouble(why, fresh, strerror(errno));
	if (fchmod(fd, mode) == 0 && room_take(fd, file_size(kind, n)) &&
	    pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && rename(fresh, path) == 0) {
		close(fd);
		return 0;
	}
	trouble(why, fresh, strerror(errno));
	close(fd);
	(void)unlink(fresh);
	return -1;
}

int
mapped_make(const struct mapped_kind *kind, const char *path, unsigned n, mode_t mode, bool larger, struct mapped *out, char **why)
{
	mode &= 0666;
	if (mapped_open(kind, path, larger ? 0 : n, out, why) == 0) {
		if ((larger ? out->n >= n : out->n == n) && chmod(path, mode) == 0)
			return 0;
		mapped_close(out);
	}
	free(*why);
	*why = NULL;
	return file_make(kind, path, n, mode, why) != 0 ? -1 : mapped_open(kind, path, n, out, why);
}

bool
mapped_is_at(const struct mapped *m, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_dev == m->dev && st.st_ino == m->ino;
}

void
mapped_close(const struct mapped *m)
{
	munmap(m->p, m->size);
}
