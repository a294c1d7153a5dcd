/*
 * space_file - the text file SPACE in a queue space's directory: disk version, identity, and the numbers it was made
 * with.
 *
 * Text, so that the version can be told, and an administrator can look, before anything is opened.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "places.h"
#include "qspace_impl.h"
#include "version.h"

enum { FILE_MAX = 16384 };

#define CHECK "check "		/* the last line: the sum of what stands before it */

char *
why_set(char **why, const char *fmt, ...)
{
	va_list ap;

	if (why == NULL)
		return NULL;
	free(*why);
	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return *why;
}

/* Every number of the file: its word, and where it is kept. */
#define NUMBERS(X) \
	X(ipckey) \
	X(pages) X(queues) X(trans) X(procs) X(messages) X(blocking) X(actions) X(handles) X(cursors) X(owners) \
	    X(tmpqueues) X(filter_memory) X(overflow_memory) X(nonpersistent_bytes)

static int	/* All of it, synced, under another name first. */
file_replace(const char *dir, const char *name, const char *text, size_t n, char **why)
{
	char tmp[4200], path[4200];
	int fd, ok;

	snprintf(tmp, sizeof tmp, "%s/%s.new", dir, name);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) == -1) {
		why_set(why, "%s: %s", tmp, strerror(errno));
		return QMEOS;
	}
	ok = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
	if (!ok)
		why_set(why, "%s: %s", tmp, strerror(errno));
	close(fd);
	if (ok && rename(tmp, path) == 0)
		return 0;
	if (ok)
		why_set(why, "%s: %s", path, strerror(errno));
	(void)unlink(tmp);
	return QMEOS;
}

int
space_file_write(const struct qspace *qs, char **why)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int rc;

	if (f == NULL)
		return QMEOS;
	fprintf(f, "atmiq queue space\nversion %d\ndevice %s\nuuid %s\nname %s\nerrorq %s\ninit %d\nlog_bytes %zu\n",
	    DISK_VERSION, qs->device_uuid, qs->uuid, qs->params.name, qs->params.errorq, qs->params.init,
	    qs->log_bytes);
#define WRITE(m) fprintf(f, #m " %lld\n", (long long)qs->params.m);
	NUMBERS(WRITE)
#undef WRITE
	if (fflush(f) == 0)
		fprintf(f, CHECK "%08" PRIx32 "\n", checksum_of((const uint8_t *)text, n));
	if (fclose(f) != 0) {
		free(text);
		return QMEOS;
	}
	rc = file_replace(qs->dir, "SPACE", text, n, why);
	free(text);
	if (rc == 0)
		places_limit(qs->dir, qs->params.procs);
	return rc;
}

static bool	/* all of `value` is a number from lo to hi */
number_read(const char *value, long long lo, long long hi, long long *n)
{
	char *end;

	errno = 0;
	*n = strtoll(value, &end, 10);
	return errno == 0 && end != value && *end == '\0' && (isdigit((unsigned char)value[0]) || value[0] == '-') &&
	    *n >= lo && *n <= hi;
}

enum { WORD_TAKEN, WORD_UNKNOWN, WORD_NO_NUMBER };

static int
word_take(struct qspace *qs, const char *word, const char *value)
{
	struct qspace_params *p = &qs->params;
	long long n = 0;
	bool good = true;

	if (strcmp(word, "device") == 0)
		snprintf(qs->device_uuid, sizeof qs->device_uuid, "%s", value);
	else if (strcmp(word, "uuid") == 0)
		snprintf(qs->uuid, sizeof qs->uuid, "%s", value);
	else if (strcmp(word, "name") == 0)
		snprintf(p->name, sizeof p->name, "%s", value);
	else if (strcmp(word, "errorq") == 0)
		snprintf(p->errorq, sizeof p->errorq, "%s", value);
	else if (strcmp(word, "init") == 0) {
		good = number_read(value, 0, 1, &n);
		p->init = n != 0;
	} else if (strcmp(word, "log_bytes") == 0) {
		good = number_read(value, MIB, UINT32_MAX, &n);
		qs->log_bytes = (size_t)n;
	}
#define READ(m) \
	else if (strcmp(word, #m) == 0) { \
		good = number_read(value, 0, LONG_MAX, &n); \
		p->m = n; \
	}
	NUMBERS(READ)
#undef READ
	else
		return WORD_UNKNOWN;
	return good ? WORD_TAKEN : WORD_NO_NUMBER;
}

static int	/* every number once, or the space would have other limits than it was made with */
words_count(void)
{
	int n = 6;			/* device, uuid, name, errorq, init, log_bytes */

#define COUNT(m) n++;
	NUMBERS(COUNT)
#undef COUNT
	return n;
}

static bool	/* Without such a line the file is of version 1, or somebody changed it by hand and took the line out. */
sum_is_right(const char *text, size_t n)
{
	const char *line = strstr(text, "\n" CHECK);
	char sum[16];

	if (line == NULL)
		return true;
	line++;
	snprintf(sum, sizeof sum, "%08" PRIx32 "\n", checksum_of((const uint8_t *)text, (size_t)(line - text)));
	return n == (size_t)(line - text) + sizeof CHECK - 1 + strlen(sum) && strcmp(line + sizeof CHECK - 1, sum) == 0;
}

enum { WORDS_MAX = 32 };

static bool	/* A word that stands there twice stands there for another that is missing. */
is_new(const char *seen[WORDS_MAX], int n, const char *word)
{
	for (int i = 0; i < n; i++)
		if (strcmp(seen[i], word) == 0)
			return false;
	return n < WORDS_MAX;
}

static int
file_parse(struct qspace *qs, const char *path, char *text, size_t size, char **why)
{
	const char *seen[WORDS_MAX];
	const bool sum_right = sum_is_right(text, size);
	char *next = text, *line = strsep(&next, "\n"), *value;
	int version = 0, number = 1, words = 0, taken;
	long long n;

	if (line == NULL || strcmp(line, "atmiq queue space") != 0) {
		why_set(why, "%s: not the description of a queue space", path);
		return QMESYSTEM;
	}
	while ((line = strsep(&next, "\n")) != NULL) {
		number++;
		if (*line == '\0' && next == NULL)
			break;
		if ((value = strchr(line, ' ')) == NULL) {
			why_set(why, "%s, line %d: a word without a value: %s", path, number, line);
			return QMESYSTEM;
		}
		*value++ = '\0';
		if (strcmp(line, "version") == 0) {
			if (!number_read(value, DISK_VERSION_OLDEST, DISK_VERSION, &n)) {
				why_set(why, "%s: disk version %s, this program reads and writes version %d; nothing was changed",
				    path, value, DISK_VERSION);
				return QMERELEASE;
			}
			version = qs->disk_version = (int)n;
		} else if (strcmp(line, "check") == 0) {
			continue;
		} else if ((taken = word_take(qs, line, value)) != WORD_TAKEN) {
			why_set(why, taken == WORD_UNKNOWN ? "%s, line %d: unknown word %s" : "%s, line %d: %s %s: not a number, or "
			    "out of range", path, number, line, value);
			return QMESYSTEM;
		} else if (!is_new(seen, words, line)) {
			why_set(why, "%s, line %d: %s is there twice", path, number, line);
			return QMESYSTEM;
		} else {
			seen[words++] = line;
		}
	}
	if (words != words_count() || version == 0 || strlen(qs->uuid) != 36 || qs->log_bytes < MIB || qs->log_bytes > UINT32_MAX) {
		why_set(why, "%s: incomplete", path);
		return QMESYSTEM;
	}
	if (!sum_right) {
		why_set(why, "%s: damaged: its check line does not fit what it says", path);
		return QMESYSTEM;
	}
	return 0;
}

int
space_file_read(struct qspace *qs, char **why)
{
	char path[4200], text[FILE_MAX + 1];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/SPACE", qs->dir);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1) {
		why_set(why, "%s: %s", path, strerror(errno));
		return errno == ENOENT ? QMEBADRMID : QMEOS;
	}
	n = read(fd, text, FILE_MAX);
	close(fd);
	if (n < 0) {
		why_set(why, "%s: %s", path, strerror(errno));
		return QMEOS;
	}
	text[n] = '\0';
	return file_parse(qs, path, text, (size_t)n, why);
}

/* --- who owns the space --- */

int
owner_write(const struct qspace *qs, const char *endpoint, char **why)
{
	char text[4400], path[4200];
	char *cause = NULL;
	int fd, rc = QMEOS, n;

	n = snprintf(text, sizeof text, "pid %ld\nendpoint %s\n", (long)getpid(), endpoint == NULL ? "" : endpoint);
	if (file_replace(qs->dir, "OWNER", text, (size_t)n, &cause) == 0)
		return 0;
	/* A full disk is no reason not to serve: the block of the last owner's file is there. */
	snprintf(path, sizeof path, "%s/OWNER", qs->dir);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) != -1) {
		rc = pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0 ? 0 : QMEOS;
		close(fd);
	}
	if (rc != 0)
		why_set(why, "%s", cause != NULL ? cause : path);
	free(cause);
	return rc;
}

int
owner_read(const char *dir, char *endpoint, size_t size, long *pid)
{
	char path[4200], line[4400];
	FILE *f;
	int found = 0;

	snprintf(path, sizeof path, "%s/OWNER", dir);
	if ((f = fopen(path, "re")) == NULL)
		return -1;
	while (fgets(line, sizeof line, f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "pid ", 4) == 0) {
			if (pid != NULL)
				*pid = strtol(line + 4, NULL, 10);
			found |= 1;
		} else if (strncmp(line, "endpoint ", 9) == 0) {
			if (endpoint != NULL)
				snprintf(endpoint, size, "%s", line + 9);
			found |= 2;
		}
	}
	fclose(f);
	return found == 3 ? 0 : -1;
}

/* Open file description locks: whether one is held can be asked without taking it for a moment. */
int
owner_lock(const char *dir, int *fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[4200];

	snprintf(path, sizeof path, "%s/lock", dir);
	if ((*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) == -1)
		return QMEOS;
	if (fcntl(*fd, F_OFD_SETLK, &l) == 0)
		return 0;
	close(*fd);
	*fd = -1;
	return errno == EAGAIN || errno == EACCES ? QSPACE_OWNED : QMEOS;
}

bool
owner_is_alive(const char *dir)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[4200];
	bool held;
	int fd;

	snprintf(path, sizeof path, "%s/lock", dir);
	if ((fd = open(path, O_RDWR | O_CLOEXEC)) == -1)
		return false;
	held = fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
	close(fd);
	return held;
}
