/*
 * log_end - where the log ends, and whether it ended there by itself.
 *
 * Recovery takes the first record that is not valid for the end of the log.  That is right for a write that a kill or
 * a power cut tore, and wrong for a place that was damaged later: what was acknowledged behind it would be gone without
 * a word.  So the log is read before recovery may.  Two things tell damage from tearing:
 *
 * Marks.  Each batch that is flushed puts a record of ours before its commit, which names the mark of the last batch
 * whose flush was done.  A mark behind the end that names a mark at or behind the end, or the last one before it
 * though its commit is missing, was begun after a flush that must have been whole.
 *
 * Sectors.  The log lies on zeroes.  A record that is where one belongs (it names its predecessor), and has something
 * in each sector it covers, was written whole, and yet its checksum is wrong.  This guards the last batch, behind which no
 * mark stands.
 *
 * What was torn is made zero, so that no later end has old bytes behind it.
 *
 * Berkeley DB's log: records of 12 bytes header (offset of the one before, length, checksum, in the byte order of the
 * machine) and content, one behind the other; the first one of a file holds LOG_MAGIC, and names the last of the file before.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qspace_impl.h"

#define LOG_MAGIC 0x040988u
static const char MARK[8] = "atmiqMK1";	/* no NUL ends it */
enum { HEAD = 12, FIRST = HEAD + 16, SECTOR = 512, MARK_TYPE = 10000, COMMIT_TYPE = 10, CHECKPOINT_TYPE = 11, MARK_MAGIC_AT = 16,
	MARK_BYTES = MARK_MAGIC_AT + 8 + 8, OPCODE_AT = 16, TXN_COMMIT = 1, NEEDS_AT = 16 };

struct file { uint8_t *p; size_t n, used; uint32_t no; };	/* used: up to the last byte that is not 0 */
struct head { uint32_t prev, len, sum; };

static uint32_t
u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static bool
is_before(struct lsn a, struct lsn b)
{
	return a.file < b.file || (a.file == b.file && a.offset < b.offset);
}

/* --- the mark --- */

int
log_mark(struct qspace *qs)
{
	uint8_t b[MARK_BYTES] = { 0 };
	uint32_t type = MARK_TYPE;
	DBT rec = { .data = b, .size = sizeof b };
	DB_LSN at;
	int rc;

	memcpy(b, &type, sizeof type);		/* what recovery looks at: type, no transaction, no record before */
	memcpy(b + MARK_MAGIC_AT, MARK, sizeof MARK);
	be32(b + MARK_MAGIC_AT + 8, qs->env.flushed.file);
	be32(b + MARK_MAGIC_AT + 12, qs->env.flushed.offset);
	if ((rc = qs->env.e->log_put(qs->env.e, &at, &rec, 0)) != 0)
		return batch_dead(qs, env_error(qs, N_TABLES, "log", rc));
	qs->env.marked = (struct lsn){ at.file, at.offset };
	return 0;
}

int	/* Recovery passes our marks by. */
log_dispatch(DB_ENV *e, DBT *rec, DB_LSN *lsn, db_recops op)
{
	(void)e, (void)rec, (void)lsn, (void)op;
	return 0;
}

static bool	/* at `at` of the file stands one; what it names */
mark_read(const struct file *f, size_t at, struct lsn *names)
{
	const uint8_t *p = f->p + at;

	if (at + HEAD + MARK_BYTES > f->n || u32_at(p + 4) != HEAD + MARK_BYTES || u32_at(p + HEAD) != MARK_TYPE ||
	    memcmp(p + HEAD + MARK_MAGIC_AT, MARK, sizeof MARK) != 0)
		return false;
	*names = (struct lsn){ get32(p + HEAD + MARK_MAGIC_AT + 8), get32(p + HEAD + MARK_MAGIC_AT + 12) };
	return true;
}

/* --- records --- */

static struct head
head_at(const struct file *f, size_t at)
{
	return (struct head){ u32_at(f->p + at), u32_at(f->p + at + 4), u32_at(f->p + at + 8) };
}

static bool
sum_is_right(const struct file *f, size_t at, const struct head *h)
{
	return h->len > HEAD && at + h->len <= f->n &&
	    (checksum_of(f->p + at + HEAD, h->len - HEAD) ^ h->prev ^ h->len) == h->sum;
}

static bool
is_record(const struct file *f, size_t at, uint32_t prev, struct head *h)
{
	if (at + HEAD + 4 > f->n)
		return false;
	*h = head_at(f, at);
	return h->prev == prev && sum_is_right(f, at, h) && (at != 0 || u32_at(f->p + HEAD) == LOG_MAGIC);
}

enum { PIECE = 256 << 10 };

static int	/* Where its last byte that is not 0 ends.  Most of a file may be zeroes: they are read through a small piece of memory. */
used_find(int fd, size_t size, size_t *used)
{
	static const uint8_t zeroes[PIECE];
	uint8_t *piece = malloc(PIECE);
	size_t n = 0;
	int e = piece == NULL ? ENOMEM : 0;

	for (*used = size; e == 0 && *used > 0; *used -= n) {
		n = (*used - 1) % PIECE + 1;
		errno = EIO;
		if (pread(fd, piece, n, (off_t)(*used - n)) != (ssize_t)n)
			e = errno;
		else if (memcmp(piece, zeroes, n) != 0)
			break;
	}
	while (e == 0 && *used > 0 && piece[--n] == 0)
		--*used;
	free(piece);
	return e;
}

static int	/* All of it; 0, or an errno. */
file_read(const char *dir, uint32_t no, struct file *f)
{
	char path[4200];
	struct stat st;
	ssize_t n;
	int fd, e = 0;

	*f = (struct file){ .no = no };
	snprintf(path, sizeof path, "%s/log.%010" PRIu32, dir, no);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return errno;
	if (fstat(fd, &st) != 0)
		e = errno;
	else if (st.st_size > UINT32_MAX)
		e = EFBIG;
	else if ((f->p = calloc(1, (size_t)st.st_size + 1)) == NULL)	/* what is not read takes no memory */
		e = ENOMEM;
	else if ((e = used_find(fd, (size_t)st.st_size, &f->used)) == 0)
		f->n = (size_t)st.st_size;
	for (size_t got = 0; e == 0 && got < f->used; got += (size_t)n) {
		errno = EIO;
		if ((n = pread(fd, f->p + got, f->used - got, (off_t)got)) <= 0)
			e = errno;
	}
	close(fd);
	if (e != 0) {
		free(f->p);
		f->p = NULL;
	}
	return e;
}

/* --- reading on from record to record --- */

struct reading { struct lsn end, last_mark, needs; bool committed; uint32_t last; };	/* last: offset of the last record */

static void
file_walk(const struct file *f, struct reading *r)
{
	struct head h;
	struct lsn names;
	size_t at = 0;
	uint32_t type;

	for (; at < f->used && is_record(f, at, at == 0 && r->end.file == 0 ? u32_at(f->p) : r->last, &h); at += h.len) {
		r->last = (uint32_t)at;
		type = h.len >= HEAD + 20 ? u32_at(f->p + at + HEAD) : 0;
		if (at == 0)
			continue;
		if (type == COMMIT_TYPE && u32_at(f->p + at + HEAD + OPCODE_AT) == TXN_COMMIT)
			r->committed = true;
		if (type == CHECKPOINT_TYPE && h.len >= HEAD + NEEDS_AT + 8)
			r->needs = (struct lsn){ u32_at(f->p + at + HEAD + NEEDS_AT), u32_at(f->p + at + HEAD + NEEDS_AT + 4) };
		if (mark_read(f, at, &names)) {
			r->last_mark = (struct lsn){ f->no, (uint32_t)at };
			r->committed = false;
		}
	}
	r->end = (struct lsn){ f->no, (uint32_t)at };
}

/* --- what stands behind the end --- */

static bool
sectors_are_written(const struct file *f, size_t from, size_t to)
{
	for (size_t at = from, next; at < to; at = next) {
		bool any = false;

		next = (at / SECTOR + 1) * SECTOR;
		next = next < to ? next : to;
		for (size_t i = at; i < next && !any; i++)
			any = f->p[i] != 0;
		if (!any)
			return false;
	}
	return true;
}

static bool	/* A mark behind the end says that what is missing was flushed. */
marks_tell(const struct file *f, size_t from, const struct reading *r)
{
	const uint8_t *p = f->p + from, *end = f->p + f->used, *hit;
	struct lsn names;
	struct head h;

	while (p < end && (hit = memmem(p, (size_t)(end - p), MARK, sizeof MARK)) != NULL) {
		size_t magic = (size_t)(hit - f->p), at = magic - HEAD - MARK_MAGIC_AT;

		p = hit + 1;
		if (magic < HEAD + MARK_MAGIC_AT || !mark_read(f, at, &names))
			continue;
		h = head_at(f, at);
		if (sum_is_right(f, at, &h) && (!is_before(names, r->end) ||
			(!r->committed && names.file == r->last_mark.file && names.offset == r->last_mark.offset)))
			return true;
	}
	return false;
}

static bool	/* The record at the end was written whole, and is not what was written. */
record_was_whole(const struct file *f, const struct reading *r)
{
	size_t at = f->no == r->end.file ? r->end.offset : 0;
	struct head h, fixed;
	uint32_t sum = 0;

	if (at + HEAD > f->used || !sectors_are_written(f, at, at + HEAD))
		return false;
	h = head_at(f, at);
	fixed = h;
	fixed.prev = r->last;
	if (h.prev != r->last)			/* its place in the chain is wrong, and all else right */
		return sum_is_right(f, at, &fixed);
	if (h.len > HEAD && h.len <= f->n - at && sectors_are_written(f, at, at + h.len))
		return true;
	for (size_t i = at + HEAD; i < f->used; i++) {	/* its length is wrong: is it right with another? */
		sum = sum * 33u + f->p[i];	/* checksum_of(), byte by byte */
		fixed.len = (uint32_t)(i + 1 - at);
		if ((sum ^ fixed.prev ^ fixed.len) == h.sum && fixed.len > HEAD + 8)
			return true;
	}
	return false;
}

static int	/* From `from` to the last byte that is there: zeroes.  0, or an errno. */
file_clear(const char *dir, const struct file *f, size_t from)
{
	static const uint8_t zeroes[64 << 10];
	char path[4200];
	int fd, e = 0;

	snprintf(path, sizeof path, "%s/log.%010" PRIu32, dir, f->no);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1)
		return errno;
	for (size_t at = from, n; at < f->used && e == 0; at += n) {
		n = f->used - at < sizeof zeroes ? f->used - at : sizeof zeroes;
		if ((e = fault_at(fd, n)) != 0 || pwrite(fd, zeroes, n, (off_t)at) != (ssize_t)n)
			e = e > 0 ? e : errno != 0 ? errno : EIO;
	}
	if (e == 0 && (e = flush_checked(fd)) != 0 && errno != 0)
		e = errno;
	close(fd);
	return e;
}

static bool	/* a file that begins as one does, whatever it follows */
is_begun(const struct file *f)
{
	struct head h;

	return f->used >= FIRST && is_record(f, 0, u32_at(f->p), &h);
}

/* Behind the end in the last file, or at the beginning of it when the file before does not lead there. */
static int
judge(struct qspace *qs, const struct file *f, const struct reading *r, struct log_end *out)
{
	size_t from = f->no == r->end.file ? r->end.offset : 0;

	if (marks_tell(f, from, r) || record_was_whole(f, r) || (from == 0 && is_begun(f))) {
		out->sound = false;
		return 0;
	}
	out->torn = true;
	return file_clear(qs->dir, f, from);
}

/* --- Berkeley DB writes zeroes from the end of the log to the end of its file at each start: they are there --- */

static _Thread_local struct { dev_t dev; ino_t ino; off_t from; } zeroed;	/* ino 0: nothing */

static void
zeroes_are_from(const char *dir, struct lsn from)
{
	char path[4200];
	struct stat st;

	snprintf(path, sizeof path, "%s/log.%010" PRIu32, dir, from.file);
	zeroed.ino = 0;
	if (stat(path, &st) != 0)
		return;
	zeroed.dev = st.st_dev;
	zeroed.ino = st.st_ino;
	zeroed.from = from.offset;
}

void
log_zeroes_forget(void)
{
	zeroed.ino = 0;
}

bool
log_zeroes_pass(int fd, const uint8_t *p, size_t n)
{
	struct stat st;
	off_t at;

	if (zeroed.ino == 0 || n == 0 || p[0] != 0 || memcmp(p, p + 1, n - 1) != 0 || fstat(fd, &st) != 0 ||
	    st.st_ino != zeroed.ino || st.st_dev != zeroed.dev || (at = lseek(fd, 0, SEEK_CUR)) < zeroed.from)
		return false;
	return lseek(fd, (off_t)n, SEEK_CUR) == at + (off_t)n;
}

static int	/* A log file is made, and written to later: the end may be in the one before. */
last_written(struct qspace *qs, uint32_t first, uint32_t *last)
{
	struct file f = { 0 };
	int e = 0;

	if (*last > first && (e = file_read(qs->dir, *last, &f)) == 0)
		*last -= f.used == 0;
	free(f.p);
	return e;
}

int
log_find_end(struct qspace *qs, uint32_t first, uint32_t last, struct log_end *out)
{
	struct reading r = { .end = { 0, 0 } };
	struct file f = { 0 };
	bool clean = true, leads = true;
	int e = last_written(qs, first, &last);

	*out = (struct log_end){ .sound = true, .end = { last, 0 } };
	for (uint32_t no = first; no <= last && e == 0 && leads; no++) {
		if ((e = file_read(qs->dir, no, &f)) != 0) {
			r.end = (struct lsn){ no, 0 };
		} else if (no != first && !is_record(&f, 0, r.last, &(struct head){ 0 })) {
			leads = false;
			if (no != last)
				out->sound = false;
			else
				e = judge(qs, &f, &r, out);
			if (!out->sound && clean && !is_begun(&f))
				r.end = (struct lsn){ no, 0 };
		} else {
			file_walk(&f, &r);
			clean = r.end.offset >= f.used;
			if (no == last && !clean)
				e = judge(qs, &f, &r, out);
		}
		free(f.p);
		f.p = NULL;
	}
	if (e == 0 && out->sound)
		zeroes_are_from(qs->dir, r.end);
	out->end = r.end;
	out->mark = r.last_mark;
	out->committed = r.committed;
	out->needs = r.needs;
	return e;
}
