/*
 * log_check - is the log there that the tables rest on?
 *
 * Recovery takes what it finds: where the log ends too early, it ends there; where there is none, it begins a new one.
 * What was acknowledged would be missing without a word.  So a space whose log is not there, has no beginning, lacks the file
 * that was begun last or the one that recovery begins with, or ends before what its own tables know of, is not opened; and the trouble that Berkeley DB has with the log itself is told
 * with the file's name and a way out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qspace_impl.h"

#define LOG_MAGIC 0x040988u		/* Berkeley DB's, behind the 12 bytes that begin every record */
enum { MAGIC_AT = 12, LAST_PAGE_AT = 32,	/* of a table's first page */
	PAGES_LOOKED_AT = 256 };

static int	/* of the first and last log file; 0: there is none */
log_numbers(const char *dir, unsigned long *first, unsigned long *last)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	*first = *last = 0;
	if (d == NULL)
		return -1;
	while ((e = readdir(d)) != NULL) {
		unsigned long n;
		char *end;

		if (strncmp(e->d_name, "log.", 4) != 0 || (n = strtoul(e->d_name + 4, &end, 10)) == 0 || *end != '\0')
			continue;
		if (*first == 0 || n < *first)
			*first = n;
		if (n > *last)
			*last = n;
	}
	closedir(d);
	return 0;
}

static void
log_bad(struct qspace *qs, unsigned long number, const char *what)
{
	char text[4600];

	snprintf(text, sizeof text, "%s/log.%010lu %s", qs->dir, number, what);
	qs->env.trouble[0] = '\0';	/* this says it better */
	env_trouble(qs, text);
	ulog("QM_CAT:1350: ERROR: queue space %s: %s; it is not opened, for messages would be missing: put back the whole "
	    "directory, logs and tables, from one backup, or destroy the space and create it anew", qs->params.name, text);
}

static int	/* Is the file there that was begun last, and all of it? */
last_is_whole(struct qspace *qs, unsigned long first)
{
	char path[4200], what[120];
	struct log_last l;
	struct stat st;

	if (!log_last_read(qs->dir, &l) || l.no < first)	/* later ones could not be written down, and it was removed */
		return 0;
	snprintf(path, sizeof path, "%s/log.%010" PRIu32, qs->dir, l.no);
	if (stat(path, &st) != 0) {
		log_bad(qs, l.no, errno == ENOENT ? "is missing" : strerror(errno));
		return errno == ENOENT ? QMESYSTEM : QMEOS;
	}
	if (st.st_size >= (off_t)l.bytes)
		return 0;
	snprintf(what, sizeof what, "is cut off at byte %lld of %" PRIu32, (long long)st.st_size, l.bytes);
	log_bad(qs, l.no, what);
	return QMESYSTEM;
}

static int	/* Is all there that recovery begins with?  It would go on with what it finds. */
first_is_there(struct qspace *qs, unsigned long first, const struct log_end *end)
{
	if (first == 1 || (end->needs.file != 0 && end->needs.file >= first))
		return 0;
	log_bad(qs, end->needs.file != 0 ? end->needs.file : first - 1, "is missing");
	return QMESYSTEM;
}

int
log_check_begin(struct qspace *qs, struct log_end *end)
{
	char path[4200], what[200];
	unsigned long first, last;
	uint32_t magic = 0;
	int fd, e, rc;

	*end = (struct log_end){ .sound = true };
	if (log_numbers(qs->dir, &first, &last) != 0)
		return 0;		/* what is wrong with the directory, others tell */
	if (first == 0) {
		log_bad(qs, 1, "or a later log file is missing");
		return QMESYSTEM;
	}
	snprintf(path, sizeof path, "%s/log.%010lu", qs->dir, first);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return 0;
	if (pread(fd, &magic, sizeof magic, MAGIC_AT) != (ssize_t)sizeof magic)
		magic = 0;
	close(fd);
	if (__builtin_bswap32(magic) == LOG_MAGIC)	/* of a machine with the other byte order: Berkeley DB reads it */
		return 0;
	if (magic != LOG_MAGIC) {
		log_bad(qs, first, "is damaged: its beginning is missing");
		return QMESYSTEM;
	}
	if ((rc = last_is_whole(qs, first)) != 0)
		return rc;
	if ((e = log_find_end(qs, (uint32_t)first, (uint32_t)last, end)) != 0) {
		snprintf(what, sizeof what, "cannot be read or written: %s", strerror(e));
		log_bad(qs, end->end.file, what);
		return QMEOS;
	}
	if (end->torn)
		ulog("QM_CAT:1364: INFO: queue space %s: the last write to %s/log.%010" PRIu32 " was cut off at byte %" PRIu32
		    " and was never acknowledged", qs->params.name, qs->dir, end->end.file, end->end.offset);
	if (end->sound)
		return first_is_there(qs, first, end);
	snprintf(what, sizeof what, "is damaged at byte %" PRIu32, end->end.offset);
	log_bad(qs, end->end.file, what);
	return QMESYSTEM;
}

static void	/* A space of an earlier release, or the disk was full: from now on it is known. */
last_write_down(const struct qspace *qs, uint32_t no)
{
	struct log_last l;
	char path[4200];
	struct stat st;

	snprintf(path, sizeof path, "%s/log.%010" PRIu32, qs->dir, no);
	if ((!log_last_read(qs->dir, &l) || l.no < no) && stat(path, &st) == 0 && st.st_size <= UINT32_MAX)
		log_last_write(qs->dir, (struct log_last){ no, (uint32_t)st.st_size });
}

/* Every change of a page is in the log before the page is on disk, and its number is in the page's first eight bytes. */
int
log_check_end(struct qspace *qs)
{
	uint32_t at[2], file = 0, offset = 0;
	char path[4200], text[160];
	DB_LOG_STAT *st;
	bool past;
	int fd;

	snprintf(path, sizeof path, "%s/%s.db", qs->dir, table_name(T_SPACE));
	if (qs->env.e->log_stat(qs->env.e, &st, 0) != 0)
		return 0;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
		for (off_t page = 0; page < PAGES_LOOKED_AT; page++) {
			if (pread(fd, at, sizeof at, page * ENV_PAGE) != (ssize_t)sizeof at)
				break;
			if (at[0] > file || (at[0] == file && at[1] > offset)) {
				file = at[0];
				offset = at[1];
			}
		}
		close(fd);
	}
	qs->env.flushed = (struct lsn){ st->st_cur_file, st->st_cur_offset - 1 };	/* recovery flushed its checkpoint */
	past = file > st->st_cur_file || (file == st->st_cur_file && offset > st->st_cur_offset);
	snprintf(text, sizeof text, "is damaged or cut off: it ends at byte %" PRIu32 " and table %s knows of log file %"
	    PRIu32 ", byte %" PRIu32, st->st_cur_offset, table_name(T_SPACE), file, offset);
	if (past)
		log_bad(qs, st->st_cur_file, text);
	else
		last_write_down(qs, st->st_cur_file);
	free(st);
	return past ? QMESYSTEM : 0;
}

static bool
table_opens(const char *path)
{
	DB *db;
	bool opens;

	if (db_create(&db, NULL, 0) != 0)
		return true;
	db->set_errfile(db, NULL);
	db->set_errcall(db, NULL);
	opens = db->open(db, NULL, path, NULL, DB_UNKNOWN, DB_RDONLY, 0) == 0;
	(void)db->close(db, DB_NOSYNC);
	return opens;
}

static bool	/* It ends before the last page that its first one knows of.  Only asked when recovery failed. */
table_is_cut_off(const char *path)
{
	uint32_t last;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool cut = fd != -1 && fstat(fd, &st) == 0 && pread(fd, &last, sizeof last, LAST_PAGE_AT) == (ssize_t)sizeof last &&
	    st.st_size / ENV_PAGE <= (off_t)last;

	if (fd != -1)
		close(fd);
	return cut;
}

/* Recovery does not say which table it could not open, or use. */
static void
tables_tell(struct qspace *qs)
{
	struct dirent *e;
	char path[4400], text[4420];
	DIR *d = opendir(qs->dir);
	bool opens;

	while (d != NULL && (e = readdir(d)) != NULL) {
		size_t n = strlen(e->d_name);

		snprintf(path, sizeof path, "%s/%s", qs->dir, e->d_name);
		if (n < 3 || strcmp(e->d_name + n - 3, ".db") != 0)
			continue;
		opens = table_opens(path);
		if (opens && !table_is_cut_off(path))
			continue;
		qs->env.trouble[0] = '\0';
		snprintf(text, sizeof text, "%s is %s", path, opens ? "cut off" : "damaged");
		env_trouble(qs, text);
		ulog("QM_CAT:1350: ERROR: queue space %s: table %s: put back the whole directory, logs and tables, from one "
		    "backup, or destroy the space and create it anew", qs->params.name, path);
	}
	if (d != NULL)
		closedir(d);
}

/*
 * Recovery writes the pages that are not in the tables yet.  A table that it could not finish looks cut off, and is whole
 * again once it can: nobody is to destroy a space for want of room.
 */
static bool
disk_was_full(struct qspace *qs, const char *trouble)
{
	char text[4500];

	if (strstr(trouble, strerror(ENOSPC)) == NULL && strstr(trouble, strerror(EDQUOT)) == NULL)
		return false;
	snprintf(text, sizeof text, "the disk of %s is full, and recovery has pages to write", qs->dir);
	qs->env.trouble[0] = '\0';
	env_trouble(qs, text);
	ulog("QM_CAT:1350: ERROR: queue space %s: %s (%lld KB are free): nothing is lost, it opens when there is room again",
	    qs->params.name, text, (long long)(disk_free(qs->dir) / 1024));
	return true;
}

void
recovery_tell(struct qspace *qs, const char *trouble)
{
	unsigned long first, last;
	const char *file = strstr(trouble, "log.");

	if (disk_was_full(qs, trouble))
		return;
	if (strstr(trouble, ".db") == NULL && strstr(trouble, "log.") == NULL)
		tables_tell(qs);
	if (strstr(trouble, ".db") == NULL && log_numbers(qs->dir, &first, &last) == 0 && last != 0 &&
	    (strstr(trouble, "log file") != NULL || strstr(trouble, "log record") != NULL ||
		strstr(trouble, "past end of log") != NULL))
		log_bad(qs, file != NULL ? strtoul(file + 4, NULL, 10) : last, file == NULL && first != last ?
		    "or one before it is damaged" : "is damaged");
}
