/*
 * The device file as bytes: one text, read whole, written whole.
 *
 *	atmiq-device 1
 *	uuid 6fd1e2a0-....
 *	entry OFFSET SIZE NAME
 *	table KIND ENTRY OFFSET PAGES EXTENT NAME
 *	end
 *
 * Lists are in order; names come last in a line because they may hold blanks.  "end" shows that nothing was cut off.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device_impl.h"
#include "version.h"

#define MAGIC "atmiq-device "

int
device_fail(char **why, int code, const char *fmt, ...)
{
	va_list ap;

	if (why == NULL)
		return code;
	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return code;
}

int
device_locate(const char *path, struct device *d, char **why)
{
	char dirname[PATH_MAX], real[PATH_MAX];
	const char *base;
	int n;

	memset(d, 0, sizeof *d);
	if (path == NULL || *path == '\0')
		return device_fail(why, DEVE_INVAL, "the device name is empty");
	if (strlen(path) >= sizeof dirname)
		return device_fail(why, DEVE_INVAL, "device name longer than %zu characters", sizeof dirname - 1);
	if (realpath(path, real) != NULL)
		n = snprintf(d->path, sizeof d->path, "%s", real);
	else {
		base = strrchr(path, '/');
		base = base != NULL ? base + 1 : path;
		if (*base == '\0')
			return device_fail(why, DEVE_INVAL, "%s: names a directory, not a device", path);
		n = snprintf(dirname, sizeof dirname, "%.*s", (int)(base - path), path);
		if (realpath(n > 0 ? dirname : ".", real) == NULL)
			return device_fail(why, errno == ENOENT || errno == ENOTDIR ? DEVE_NOENT : DEVE_OS,
			    "%s: directory of device %s: %s", n > 0 ? dirname : ".", path, strerror(errno));
		n = snprintf(d->path, sizeof d->path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
	}
	if (n < 0 || (size_t)n >= sizeof d->path - 8)
		return device_fail(why, DEVE_INVAL, "%s: device name too long", path);
	snprintf(d->dir, sizeof d->dir, "%.*s.d", (int)sizeof d->dir - 8, d->path);
	return DEVE_OK;
}

/* A number of at most 15 digits at *s, and the blank behind it. */
static bool
take_number(const char **s, long *out)
{
	long v = 0;
	int digits = 0;

	while (**s >= '0' && **s <= '9' && digits++ < 15)
		v = v * 10 + (*(*s)++ - '0');
	if (digits == 0 || **s != ' ')
		return false;
	(*s)++;
	*out = v;
	return true;
}

static bool
take_rest(const char *s, char *to, size_t size)
{
	size_t n = strlen(s);

	if (n == 0 || n >= size)
		return false;
	memcpy(to, s, n + 1);
	return true;
}

static bool
parse_entry(const char *s, struct device *d)
{
	struct device_entry *e;

	if (d->n_entries == DEVICE_MAX_ENTRIES)
		return false;
	e = &d->entry[d->n_entries];
	if (!take_number(&s, &e->offset) || !take_number(&s, &e->size) || e->size == 0 ||
	    !take_rest(s, e->name, sizeof e->name))
		return false;
	if (d->n_entries == 0 && (e->offset != 0 || e->size <= DEVICE_HEADER_PAGES))
		return false;
	d->n_entries++;
	return true;
}

static bool
parse_table(const char *s, struct device *d)
{
	struct device_table *t;
	const struct device_entry *e;
	const char *blank = strchr(s, ' ');
	long entry, extent;

	if (d->n_tables == DEVICE_MAX_TABLES || blank == NULL)
		return false;
	t = &d->table[d->n_tables];
	if (blank == s || (size_t)(blank - s) >= sizeof t->kind)
		return false;
	memcpy(t->kind, s, (size_t)(blank - s));
	t->kind[blank - s] = '\0';
	s = blank + 1;
	if (!take_number(&s, &entry) || !take_number(&s, &t->offset) || !take_number(&s, &t->pages) ||
	    !take_number(&s, &extent) ||
	    !take_rest(s, t->name, sizeof t->name))
		return false;
	if (entry >= d->n_entries || extent >= DEVICE_MAX_TABLES || t->pages == 0)
		return false;
	e = &d->entry[entry];
	if (t->offset < e->offset || t->offset + t->pages > e->offset + e->size)
		return false;
	t->entry = (int)entry;
	t->extent = (int)extent;
	d->n_tables++;
	return true;
}

static bool
parse_uuid(const char *s, struct device *d)
{
	return strlen(s) == 36 && strspn(s, "0123456789abcdef-") == 36 && take_rest(s, d->uuid, sizeof d->uuid);
}

static int
check_version(const char *text, size_t len, const char *where, char **why)
{
	long found;
	char *end;

	if (len < sizeof MAGIC || strncmp(text, MAGIC, sizeof MAGIC - 1) != 0)
		return device_fail(why, DEVE_FORMAT,
		    "%s:1: not a device file (it begins with other words than \"%s%d\")", where, MAGIC, DEVICE_VERSION);
	found = strtol(text + sizeof MAGIC - 1, &end, 10);
	if (*end != '\n')
		return device_fail(why, DEVE_FORMAT, "%s:1: not a device file (no version number after \"%s\")",
		    where, MAGIC);
	if (found != DEVICE_VERSION)
		return device_fail(why, DEVE_VERSION,
		    "%s:1: device file of version %ld; this program reads and writes version %d; nothing was changed",
		    where, found, DEVICE_VERSION);
	return DEVE_OK;
}

/* One line behind the first.  False: it is not one of ours, or does not fit what came before. */
static bool
parse_line(const char *line, struct device *d)
{
	if (strncmp(line, "uuid ", 5) == 0)
		return parse_uuid(line + 5, d);
	if (strncmp(line, "entry ", 6) == 0)
		return parse_entry(line + 6, d);
	if (strncmp(line, "table ", 6) == 0)
		return parse_table(line + 6, d);
	return false;
}

int
device_text_parse(const char *text, size_t len, const char *where, struct device *d, char **why)
{
	char line[512];
	const char *p, *nl, *end = text + len;
	int rc, lineno = 1;

	d->n_entries = d->n_tables = 0;
	d->uuid[0] = '\0';
	/* strtol() stops at a byte that is no digit: the text is terminated by whoever read it. */
	if ((rc = check_version(text, len, where, why)) != DEVE_OK)
		return rc;
	for (p = memchr(text, '\n', len); p != NULL && ++p < end; p = nl) {
		lineno++;
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL || (size_t)(nl - p) >= sizeof line || memchr(p, '\0', (size_t)(nl - p)) != NULL)
			return device_fail(why, DEVE_FORMAT, "%s:%d: damaged device file: no whole line", where,
			    lineno);
		memcpy(line, p, (size_t)(nl - p));
		line[nl - p] = '\0';
		if (strcmp(line, "end") == 0) {
			if (d->uuid[0] == '\0' || d->n_entries == 0 || nl + 1 != end)
				return device_fail(why, DEVE_FORMAT, "%s:%d: damaged device file: %s", where, lineno,
				    nl + 1 != end ? "text behind its end" : "no uuid or no entry");
			return DEVE_OK;
		}
		if (!parse_line(line, d))
			return device_fail(why, DEVE_FORMAT, "%s:%d: damaged device file: %.60s", where, lineno, line);
	}
	return device_fail(why, DEVE_FORMAT, "%s:%d: damaged device file: it ends too early", where, lineno);
}

char *
device_text_format(const struct device *d)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (f == NULL)
		return NULL;
	fprintf(f, MAGIC "%d\nuuid %s\n", DEVICE_VERSION, d->uuid);
	for (int i = 0; i < d->n_entries; i++)
		fprintf(f, "entry %ld %ld %s\n", d->entry[i].offset, d->entry[i].size, d->entry[i].name);
	for (int i = 0; i < d->n_tables; i++) {
		const struct device_table *t = &d->table[i];
		fprintf(f, "table %s %d %ld %ld %d %s\n", t->kind, t->entry, t->offset, t->pages, t->extent, t->name);
	}
	fprintf(f, "end\n");
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int
check_owner(int fd, const char *path, char **why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return device_fail(why, DEVE_OS, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return device_fail(why, DEVE_FORMAT, "%s: not a device file (it is no regular file)", path);
	if (st.st_uid != geteuid())
		return device_fail(why, DEVE_OWNER,
		    "%s: effective user id %ld is not its owner, user id %ld, and may not administer it",
		    path, (long)geteuid(), (long)st.st_uid);
	if (st.st_size >= DEVICE_TEXT_MAX)
		return device_fail(why, DEVE_FORMAT, "%s: not a device file (%lld bytes long)", path,
		    (long long)st.st_size);
	return DEVE_OK;
}

/* A file that another user owns often cannot be opened either; say whose it is then. */
static int
explain_open(const char *path, int err, char **why)
{
	struct stat st;

	if (err == ENOENT || err == ENOTDIR)
		return device_fail(why, DEVE_NOENT, "%s: no such device", path);
	if (stat(path, &st) == 0 && st.st_uid != geteuid())
		return device_fail(why, DEVE_OWNER,
		    "%s: effective user id %ld is not its owner, user id %ld, and may not administer it",
		    path, (long)geteuid(), (long)st.st_uid);
	return device_fail(why, DEVE_OS, "%s: %s", path, strerror(err));
}

int
device_file_load(struct device *d, char **why)
{
	char text[DEVICE_TEXT_MAX + 1];
	size_t n = 0;
	ssize_t got;
	int fd, rc;

	if ((fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return explain_open(d->path, errno, why);
	if ((rc = check_owner(fd, d->path, why)) != DEVE_OK)
		goto done;
	while (n < DEVICE_TEXT_MAX && (got = read(fd, text + n, DEVICE_TEXT_MAX - n)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			rc = device_fail(why, DEVE_OS, "%s: %s", d->path, strerror(errno));
			goto done;
		}
		n += (size_t)got;
	}
	text[n] = '\0';
	rc = device_text_parse(text, n, d->path, d, why);
done:
	close(fd);
	return rc;
}

static int
write_whole(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(fd, text, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		left -= (size_t)n;
	}
	return fsync(fd);
}

static void
sync_directory_of(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd;

	snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return;
	(void)fsync(fd);	/* some file systems cannot; the rename itself is atomic anyway */
	close(fd);
}

/* Replace `path` by `text`, atomically and durably.  0 or -1 with errno. */
static int
replace_file(const char *path, const char *text)
{
	char temp[PATH_MAX + 8];
	int fd, rc, err;

	snprintf(temp, sizeof temp, "%s.new", path);
	if ((fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
		return -1;
	rc = write_whole(fd, text);
	err = errno;
	if (close(fd) != 0 && rc == 0) {
		rc = -1;
		err = errno;
	}
	if (rc == 0 && (rc = rename(temp, path)) != 0)
		err = errno;
	if (rc != 0) {
		unlink(temp);
		errno = err;
		return -1;
	}
	sync_directory_of(path);
	return 0;
}

int
device_file_store(const struct device *d, char **why)
{
	char *text = device_text_format(d);
	int rc = DEVE_OK;

	if (text == NULL)
		return device_fail(why, DEVE_OS, "%s: out of memory", d->path);
	if (replace_file(d->path, text) != 0)
		rc = device_fail(why, DEVE_OS, "%s: cannot write the device file: %s", d->path, strerror(errno));
	free(text);
	return rc;
}

int
device_stamp_read(const char *dir, char uuid[37])
{
	char path[PATH_MAX + 8];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/uuid", dir);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return errno == ENOENT || errno == ENOTDIR ? DEVE_NOENT : DEVE_OS;
	n = read(fd, uuid, 36);
	close(fd);
	uuid[n > 0 ? n : 0] = '\0';
	return n == 36 ? DEVE_OK : DEVE_FORMAT;
}

int
device_stamp_write(const char *dir, const char *uuid, char **why)
{
	char path[PATH_MAX + 8], text[40];

	snprintf(path, sizeof path, "%s/uuid", dir);
	snprintf(text, sizeof text, "%s\n", uuid);
	if (replace_file(path, text) != 0)
		return device_fail(why, DEVE_OS, "%s: %s", path, strerror(errno));
	return DEVE_OK;
}
