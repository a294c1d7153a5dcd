/*
 * room - the disk's blocks are taken before a message is accepted, so that a full disk refuses messages and stops
 * nothing else.
 *
 * Berkeley DB lets a file grow in its cache and finds out when it writes the page that the disk is full.  By then the
 * message is acknowledged, and a cache full of pages that cannot be written cannot even read: dequeues, which would
 * make room, failed after ten seconds each.  So the blocks behind the end of each file are allocated here (fallocate,
 * without changing its size) for more than the next messages can need; when there are none, the answer is QMENOSPACE.
 * The log has its room in the spare files (spare.c): while there is none and the disk has no room for one, nothing is
 * enqueued, and what is left of the log is for taking messages out.
 *
 * To look at each message would cost as much as storing it: CREDIT messages, or CREDIT_BYTES, go by on one look.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "qspace_impl.h"

enum {
	CREDIT = 32,			/* messages; each adds an entry or two to a table */
	CREDIT_BYTES = 256 << 10,
	TABLE_AHEAD = 16 * ENV_PAGE,
	TABLE_CHUNK = 64 * ENV_PAGE,	/* taken at once, where there is enough; of a segment: */
	ENTRY_BYTES = 400,		/* of a message in a table, half filled pages reckoned in */
	SPLITS = 8,			/* pages on the way to the root */
	CHUNK_MIN = 256 << 10,
	CHUNK_MAX = 8 << 20
};

static atomic_uint given_up;	/* how often blocks behind a table were lost to others */

int64_t
disk_free(const char *dir)
{
	struct statvfs st;

	return statvfs(dir, &st) == 0 ? (int64_t)st.f_bavail * (int64_t)st.f_frsize : -1;
}

int64_t	/* no more than a small space may ever need */
room_chunk(const struct qspace *qs)
{
	int64_t eighth = qs->params.pages * PAGE_BYTES / 8;

	return eighth < CHUNK_MIN ? CHUNK_MIN : eighth > CHUNK_MAX ? CHUNK_MAX : eighth;
}

static int	/* 0, or an errno.  A file system that cannot do it is trusted. */
allocate(int fd, int64_t from, int64_t to)
{
	int rc;

	do
		rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, from, to - from) == 0 ? 0 : errno;
	while (rc == EINTR);
	return rc == ENOSPC || rc == EDQUOT || rc == EFBIG || rc == EIO ? rc : 0;
}

/*
 * Berkeley DB cuts a table that has free pages at its end, and the file system gives up all that was allocated behind.
 * It is taken again at once: messages that rest on it were accepted before.
 */
int
room_truncate(int fd, off_t size)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || ftruncate(fd, size) != 0)
		return -1;
	if (st.st_blocks * 512 > size && allocate(fd, size, st.st_blocks * 512) != 0)
		given_up++;
	return 0;
}

int
room_behind(const struct qspace *qs, const char *file, DB *db, int64_t ahead, int64_t chunk, db_pgno_t *last,
    int64_t *reserved)
{
	DB_MPOOLFILE *pages = db->get_mpf(db);
	char path[4200];
	int64_t need;
	int fd, rc;

	if (pages->get_last_pgno(pages, last) != 0)
		return 0;
	need = ((int64_t)*last + 1) * ENV_PAGE + ahead;
	if (need <= *reserved)
		return 0;
	snprintf(path, sizeof path, "%s/%s", qs->dir, file);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1)
		return errno;
	if (disk_free(qs->dir) < 4 * chunk)
		chunk = 0;
	rc = env_fault != NULL ? env_fault(fd, (size_t)(need + chunk - *reserved)) : 0;
	if (rc == 0)
		rc = allocate(fd, *reserved, need + chunk);
	(void)close(fd);
	if (rc == 0)
		*reserved = need + chunk;
	return rc;
}

/* A table that was larger has free pages inside: enough for all that is stored, reckoned high, and some more. */
static bool
table_has_holes(const struct qspace *qs, int t, db_pgno_t last, int64_t ops)
{
	int64_t wanted = (qs->used.messages + ops + CREDIT) * ENTRY_BYTES + SPLITS * ENV_PAGE;

	return t < N_MESSAGE_TABLES && t != T_PARTS && ((int64_t)last + 1) * ENV_PAGE >= wanted;
}

static int	/* 0, or an errno */
tables_room(struct qspace *qs, int64_t ops)
{
	char file[32];
	db_pgno_t last = 0;
	int rc = 0;

	for (int t = 0; t < N_TABLES && rc == 0; t++) {
		env_file_name(file, sizeof file, t);
		if (t >= N_MESSAGE_TABLES && ops > CREDIT)	/* nothing of each of them goes there */
			ops = CREDIT;
		rc = room_behind(qs, file, qs->env.db[0][t], TABLE_AHEAD + ops * ENTRY_BYTES, TABLE_CHUNK,
		    &last, &qs->env.room.reserved[t]);
		if (rc != 0 && table_has_holes(qs, t, last, ops))
			rc = 0;
	}
	return rc;
}

int
room_take(struct qspace *qs, size_t bytes, size_t ops)
{
	struct room *r = &qs->env.room;
	int64_t n = (int64_t)bytes;
	int rc;

	if (r->given_up != given_up)	/* look at all of them again */
		*r = (struct room){ .given_up = given_up };
	if (r->segment == qs->env.seg[0].current && r->messages > 0 && r->bytes >= n) {
		r->messages--;
		r->bytes -= n;
		return 0;
	}
	rc = !keeper_has_room(qs->env.keeper) ? ENOSPC : tables_room(qs, (int64_t)ops);
	if (rc == 0)
		rc = segment_room(qs, qs->used.branch_bytes + n + CREDIT_BYTES);
	if (rc == 0) {
		r->segment = qs->env.seg[0].current;
		r->messages = CREDIT;
		r->bytes = CREDIT_BYTES;
		return 0;
	}
	keeper_ask_checkpoint(qs->env.keeper);
	space_say_full(qs, FULL_DISK);
	return QMENOSPACE;
}
