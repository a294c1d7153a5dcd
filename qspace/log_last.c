/*
 * log_last - which log file was begun last, and how long it is: the file LAST_LOG.
 *
 * A log without its last file, or whose last file was cut off between two records, reads like one that ends there: what
 * was acknowledged behind it would be missing without a word.  Log files have their full size from the beginning, so once
 * one is durably there, and before anything is written to it, its number and its size are written down.  A kill between
 * the two leaves the number of the file before, which is true as well.
 *
 * A LAST_LOG that is not there (an earlier release), cannot be written (a full disk) or cannot be understood says nothing:
 * the log is looked at as before.  It is written over in place, a line shorter than a sector.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qspace_impl.h"

enum { LINE_MAX = 64, SUM_AT = 31 };	/* "log NNNNNNNNNN bytes NNNNNNNNNN", then its checksum */

static size_t
line_make(char line[LINE_MAX], struct log_last l)
{
	snprintf(line, LINE_MAX, "log %010" PRIu32 " bytes %010" PRIu32, l.no, l.bytes);
	return SUM_AT + (size_t)snprintf(line + SUM_AT, LINE_MAX - SUM_AT, " %08" PRIx32 "\n",
	    checksum_of((const uint8_t *)line, SUM_AT));
}

bool
log_last_read(const char *dir, struct log_last *l)
{
	char path[4200], line[LINE_MAX] = "", again[LINE_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/LAST_LOG", dir);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	n = pread(fd, line, sizeof line - 1, 0);
	close(fd);
	if (n <= 0 || sscanf(line, "log %10" SCNu32 " bytes %10" SCNu32, &l->no, &l->bytes) != 2)
		return false;
	return line_make(again, *l) == (size_t)n && memcmp(line, again, (size_t)n) == 0;
}

void
log_last_write(const char *dir, struct log_last l)
{
	char path[4200], line[LINE_MAX];
	size_t n = line_make(line, l);
	int fd;

	snprintf(path, sizeof path, "%s/LAST_LOG", dir);
	if (fault_at(-1, 0) != 0 || (fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == -1)
		return;
	if (fault_at(fd, n) == 0 && pwrite(fd, line, n, 0) == (ssize_t)n && fault_at(fd, 0) == 0)
		(void)fdatasync(fd);
	close(fd);
}
