/*
 * segment - the messages table, in pieces of one heap file each.
 *
 * Berkeley DB looks for room in a heap from the earliest region with a deletion on, and fetches each page that might
 * do: with 10^6 messages behind a dequeue that was 300,000 pages for one enqueue.  So a heap is never let grow beyond
 * one region (64 MB): we append to one segment until its last pages are reached, then to the emptiest one that is
 * mostly free, else to a new one.  Each pass goes over a segment's pages once, so a search costs less than a page fetch
 * a message, whatever is stored.
 *
 * Table `space`, key 'g' and the number: how much lives in a segment, written with each batch that changes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "qspace_impl.h"

#define SEGMENT_VERSION 1
enum {
	LAST_PAGE = 15900,		/* of the 16,280 that one region of 4 KiB pages maps */
	MOSTLY_FREE = 24 << 20,		/* a segment with less alive is used again */
	NP_LAST_PAGE_MIN = 128,
	HEADER_WEIGHT = 200,
	NEW_NEEDS = 1 << 20,		/* bytes of disk */
	EMPTY_KEPT = 2,
	REMOVE_EVERY_US = 200000
};

struct segment {
	uint32_t no;
	bool stored;			/* the table `space` knows of it: its file is not made anew */
	DB *db;				/* NULL: not opened yet */
	int64_t records, weight;	/* alive */
	int64_t reserved;		/* bytes of the file whose blocks are allocated */
	uint64_t batch;			/* the batch that saved these: */
	int64_t saved_records, saved_weight;
	struct segment *touched_next;
	struct segment *prev, *next;	/* of those whose file is open: the one that was used last is at the end */
	UT_hash_handle hh;
};

unsigned segments_open_max = 64;	/* files, whatever is stored */

static void
segment_name(char *to, size_t size, bool np, uint32_t no)
{
	snprintf(to, size, np ? "np_messages.%u" : "messages.%u.db", no);
}

static int
segment_error(struct qspace *qs, bool np, const struct segment *s, const char *what, int dbrc)
{
	char name[32];

	segment_name(name, sizeof name, np, s->no);
	return batch_dead(qs, env_error_at(qs, name, what, dbrc));
}

static struct segment *
segment_find(struct qspace *qs, bool np, uint32_t no)
{
	struct segment *s;

	HASH_FIND(hh, qs->env.seg[np].all, &no, sizeof no, s);
	return s;
}

static struct segment *
segment_add(struct qspace *qs, bool np, uint32_t no)
{
	struct segments *g = &qs->env.seg[np];
	struct segment *s = calloc(1, sizeof *s);

	if (s == NULL)
		return NULL;
	s->no = no;
	if (no >= g->next_no)
		g->next_no = no + 1;
	HASH_ADD(hh, g->all, no, sizeof s->no, s);
	return s;
}

static int
segment_open(struct qspace *qs, bool np, struct segment *s)
{
	char name[32];
	int rc;

	if (s->db != NULL) {
		if (s->next != NULL) {
			DL_DELETE(qs->env.seg[np].open, s);
			DL_APPEND(qs->env.seg[np].open, s);
		}
		return 0;
	}
	segment_name(name, sizeof name, np, s->no);
	if ((rc = env_db_open(qs, name, DB_HEAP, np, !s->stored, &s->db)) != 0)
		return batch_dead(qs, rc);
	DL_APPEND(qs->env.seg[np].open, s);
	qs->env.seg[np].n_open++;
	return 0;
}

static int
segment_close(struct qspace *qs, bool np, struct segment *s, uint32_t flags)
{
	int rc;

	if (s->db == NULL)
		return 0;
	DL_DELETE(qs->env.seg[np].open, s);
	qs->env.seg[np].n_open--;
	rc = env_db_close(s->db, flags);
	s->db = NULL;
	return rc == 0 || qs->env.panicked ? 0 : segment_error(qs, np, s, "close", rc);
}

static void
segment_touch(struct qspace *qs, struct segment *s)
{
	if (s->batch == qs->batch.no)
		return;
	s->batch = qs->batch.no;
	s->saved_records = s->records;
	s->saved_weight = s->weight;
	s->touched_next = qs->batch.segments;
	qs->batch.segments = s;
}

/* --- all of them --- */

static int	/* A file that somebody removed. */
segment_is_there(struct qspace *qs, const struct segment *s)
{
	char name[32], path[4200];

	segment_name(name, sizeof name, false, s->no);
	snprintf(path, sizeof path, "%s/%s", qs->dir, name);
	return access(path, F_OK) == 0 ? 0 : env_error_at(qs, name, "open", errno);
}

int
segments_load(struct qspace *qs)
{
	struct segment *s;
	struct walk w;
	int rc;

	qs->env.seg[0].next_no = 1;
	for (rc = walk_first(qs, &w, T_SPACE, false, "g", 1); rc == 0; rc = walk_next(qs, &w)) {
		if (w.kn != 5 || w.k[0] != 'g')
			break;
		if (w.vn != 17 || w.v[0] != SEGMENT_VERSION) {
			rc = env_error(qs, T_SPACE, "an entry of a segment is not of this version", EINVAL);
			break;
		}
		if ((s = segment_add(qs, false, get32(w.k + 1))) == NULL) {
			rc = QMEOS;
			break;
		}
		s->records = (int64_t)get64(w.v + 1);
		s->weight = (int64_t)get64(w.v + 9);
		s->stored = true;
		if ((rc = segment_is_there(qs, s)) != 0)
			break;
	}
	walk_end(qs, &w);
	return rc == DB_NOTFOUND ? 0 : rc;
}

void
segments_close(struct qspace *qs, bool np, uint32_t flags)
{
	struct segment *s, *next;

	for (s = qs->env.seg[np].all; s != NULL; s = next) {
		next = s->hh.next;
		(void)segment_close(qs, np, s, flags);
		HASH_DELETE(hh, qs->env.seg[np].all, s);	// NOLINT: inside uthash
		free(s);
	}
	qs->env.seg[np] = (struct segments){ 0 };
}

static int
segment_write(struct qspace *qs, const struct segment *s)
{
	uint8_t k[5] = { 'g' }, v[17] = { SEGMENT_VERSION };

	be32(k + 1, s->no);
	be64(v + 1, (uint64_t)s->records);
	be64(v + 9, (uint64_t)s->weight);
	return table_put(qs, T_SPACE, false, k, sizeof k, v, sizeof v);
}

int
segments_write(struct qspace *qs)
{
	int rc = 0;

	for (struct segment *s = qs->batch.segments; s != NULL && rc == 0; s = s->touched_next)
		if (segment_find(qs, false, s->no) == s &&
		    (s->records != s->saved_records || s->weight != s->saved_weight))
			rc = segment_write(qs, s);
	return rc;
}

void
segments_abort(struct qspace *qs)
{
	for (struct segment *s = qs->batch.segments; s != NULL; s = s->touched_next) {
		s->records = s->saved_records;
		s->weight = s->saved_weight;
	}
}

struct segment *
segment_next(struct segment *s)
{
	return s->hh.next;
}

int64_t
segment_records(const struct segment *s)
{
	return s->records;
}

/* --- which one to append to --- */

/*
 * In memory there is room for some times what may be stored (env.c), and no disk behind it: segments are small there, so
 * that those with holes and the one that is filled are not more than that.
 */
static db_pgno_t
last_page(const struct qspace *qs, bool np)
{
	int64_t quarter = qs->params.nonpersistent_bytes / 4 / ENV_PAGE;

	return !np || quarter > LAST_PAGE ? LAST_PAGE : quarter < NP_LAST_PAGE_MIN ? NP_LAST_PAGE_MIN : (db_pgno_t)quarter;
}

static int64_t
mostly_free(const struct qspace *qs, bool np)
{
	return np ? (int64_t)last_page(qs, true) * ENV_PAGE * 3 / 8 : MOSTLY_FREE;
}

static int
np_file_remove(struct qspace *qs, const char *name)
{
	DB *db;
	int rc;

	if ((rc = db_create(&db, qs->env.np_e, 0)) != 0)
		return rc;
	if ((rc = db->set_flags(db, DB_TXN_NOT_DURABLE)) != 0) {
		(void)db->close(db, DB_NOSYNC);
		return rc;
	}
	return db->remove(db, NULL, name, 0);	/* and the handle with it */
}

static int	/* Empty ones in memory go at once: a file of the cache that is removed gives its pages back. */
np_segments_remove(struct qspace *qs)
{
	struct segments *g = &qs->env.seg[1];
	struct segment *s, *next;
	char name[32];
	int rc;

	HASH_ITER(hh, g->all, s, next) {
		/* cppcheck-suppress uninitvar ; HASH_ITER sets it */
		if (s->records != 0)
			continue;
		if ((rc = segment_close(qs, true, s, DB_NOSYNC)) != 0)
			return rc;
		segment_name(name, sizeof name, true, s->no);
		if ((rc = np_file_remove(qs, name)) != 0 && rc != ENOENT)
			return segment_error(qs, true, s, "remove", rc);
		if (s == g->current)
			g->current = NULL;
		HASH_DELETE(hh, g->all, s);
		free(s);
	}
	return 0;
}

/* Between batches: no transaction stands in the way of opening and closing. */
static int
segment_choose(struct qspace *qs, bool np)
{
	struct segments *g = &qs->env.seg[np];
	struct segment *s, *next, *best = NULL;
	int64_t left;
	int rc;

	if (np && (rc = np_segments_remove(qs)) != 0)
		return rc;
	HASH_ITER(hh, g->all, s, next)	// NOLINT: inside uthash
		if (s != g->current && s->weight <= mostly_free(qs, np) && (best == NULL || s->weight < best->weight))
			best = s;
	if (best == NULL && !np && (left = disk_free(qs->dir)) != -1 && left < NEW_NEEDS) {
		if (g->current != NULL)		/* no room for a new one: it has what room_take() lets in */
			return 0;
		HASH_ITER(hh, g->all, s, next)
			if (best == NULL || s->weight < best->weight)
				best = s;
	}
	if (best == NULL && (best = segment_add(qs, np, g->next_no)) == NULL)
		return QMEOS;
	/* Opened anew it looks for room from its first page on. */
	if ((rc = segment_close(qs, np, best, DB_NOSYNC)) != 0 || (rc = segment_open(qs, np, best)) != 0)
		return rc;
	g->current = best;
	g->full = false;
	return 0;
}

/* Give the room of empty segments back, but not all at once, and not the last ones. */
static int
segment_remove_one(struct qspace *qs)
{
	struct segments *g = &qs->env.seg[0];
	struct segment *s, *next, *found = NULL;
	uint8_t k[5] = { 'g' };
	char name[32];
	int n = 0, rc;

	HASH_ITER(hh, g->all, s, next)
		if (s != g->current && s->records == 0 && ++n > EMPTY_KEPT)
			found = s;
	if (found == NULL)
		return 0;
	if ((rc = segment_close(qs, false, found, DB_NOSYNC)) != 0)
		return rc;
	be32(k + 1, found->no);
	if ((rc = table_del(qs, T_SPACE, false, k, sizeof k)) != 0 && rc != DB_NOTFOUND)
		return rc;
	segment_name(name, sizeof name, false, found->no);
	if ((rc = qs->env.e->dbremove(qs->env.e, qs->batch.txn[0], name, NULL, 0)) != 0)
		return segment_error(qs, false, found, "remove", rc);
	HASH_DELETE(hh, g->all, found);
	free(found);
	return 0;
}

static int	/* Each open file is a descriptor: those that were used longest ago are closed. */
segments_rest(struct qspace *qs)
{
	struct segments *g = &qs->env.seg[0];
	struct segment *s, *next;
	int rc = 0;

	for (s = g->open; s != NULL && g->n_open > segments_open_max && rc == 0; s = next) {
		next = s->next;
		if (s != g->current)
			rc = segment_close(qs, false, s, DB_NOSYNC);
	}
	return rc;
}

int
segments_begin(struct qspace *qs)
{
	struct segments *g = qs->env.seg;
	int64_t now;
	int rc;

	if (g[0].n_open > segments_open_max && (rc = segments_rest(qs)) != 0)
		return rc;

	if ((g[0].current == NULL || g[0].full) && (rc = segment_choose(qs, false)) != 0)
		return rc;
	if (qs->env.db[1][T_ORDER] != NULL && (g[1].current == NULL || g[1].full) &&
	    (rc = segment_choose(qs, true)) != 0)
		return rc;
	if (HASH_COUNT(g[0].all) <= EMPTY_KEPT + 1 || (now = clock_mono_us()) - g[0].looked_us < REMOVE_EVERY_US)
		return 0;
	g[0].looked_us = now;
	return segment_remove_one(qs);
}

/* What was deleted in the file is used again without growing it, and the blocks of that are there. */
static bool
has_holes(const struct segment *s, int64_t size, int64_t ahead)
{
	int64_t holes = size - s->weight;

	return holes > size / 3 && holes > 4 * ahead;
}

int
segment_room(struct qspace *qs, int64_t ahead)
{
	struct segments *g = &qs->env.seg[0];
	struct segment *s, *next;
	char name[32], path[4200];
	struct stat st;
	db_pgno_t last = 0;
	int rc;

	segment_name(name, sizeof name, false, g->current->no);
	if ((rc = room_behind(qs, name, g->current->db, ahead, room_chunk(qs), &last,
		 &g->current->reserved)) == 0 ||
	    (has_holes(g->current, (int64_t)last * ENV_PAGE, ahead) &&
		room_behind(qs, name, g->current->db, ahead / 2, 0, &last, &g->current->reserved) == 0))
		return 0;	/* with holes it grows a little all the same, now and then */
	HASH_ITER(hh, g->all, s, next) {
		/* cppcheck-suppress uninitvar ; HASH_ITER sets it */
		segment_name(name, sizeof name, false, s->no);
		snprintf(path, sizeof path, "%s/%s", qs->dir, name);
		if (s == g->current || s->weight > MOSTLY_FREE || stat(path, &st) != 0 ||
		    !has_holes(s, st.st_size, ahead))
			continue;
		g->full = true;		/* this one may have room; it is taken between batches: run these again */
		(void)batch_dead(qs, QMENOSPACE);
		break;
	}
	return rc;
}

/* --- records --- */

int
heap_add(struct qspace *qs, bool np, const void *rec, size_t n, uint32_t bytes, struct rid *rid)
{
	struct segments *g = &qs->env.seg[np];
	struct segment *s = g->current;
	DB_HEAP_RID r = { 0 };
	DBT key = { .data = &r, .size = sizeof r, .ulen = sizeof r, .flags = DB_DBT_USERMEM };
	DBT val = { .data = (void *)(uintptr_t)rec, .size = (uint32_t)n };
	int rc = batch_write(qs, np);

	if (rc != 0)
		return rc;
	segment_touch(qs, s);
	if ((rc = s->db->put(s->db, qs->batch.txn[np], &key, &val, DB_APPEND)) != 0)
		return segment_error(qs, np, s, "append", rc);
	*rid = (struct rid){ .segment = s->no, .page = r.pgno, .slot = r.indx };
	s->records++;
	s->weight += (int64_t)bytes + HEADER_WEIGHT;
	if (r.pgno >= last_page(qs, np))
		g->full = true;
	return 0;
}

int
heap_get(struct qspace *qs, bool np, struct rid rid, void *to, size_t cap, size_t *n)
{
	struct segment *s = segment_find(qs, np, rid.segment);
	DB_HEAP_RID r = { .pgno = rid.page, .indx = rid.slot };
	DBT key = { .data = &r, .size = sizeof r, .ulen = sizeof r, .flags = DB_DBT_USERMEM };
	DBT val = {
		.data = to, .ulen = (uint32_t)cap, .dlen = (uint32_t)cap, .flags = DB_DBT_USERMEM | DB_DBT_PARTIAL
	};
	int rc;

	*n = 0;
	if (s == NULL)
		return DB_NOTFOUND;
	if ((rc = segment_open(qs, np, s)) != 0)
		return rc;
	env_in_heap(!np);
	rc = s->db->get(s->db, qs->batch.txn[np], &key, &val, 0);
	env_in_heap(false);
	*n = val.size;
	return rc == 0 || rc == DB_NOTFOUND ? rc : segment_error(qs, np, s, "get", rc);
}

int
heap_del(struct qspace *qs, bool np, struct rid rid, uint32_t bytes)
{
	struct segment *s = segment_find(qs, np, rid.segment);
	DB_HEAP_RID r = { .pgno = rid.page, .indx = rid.slot };
	DBT key = { .data = &r, .size = sizeof r };
	int rc;

	if (s == NULL)
		return DB_NOTFOUND;
	if ((rc = batch_write(qs, np)) != 0 || (rc = segment_open(qs, np, s)) != 0)
		return rc;
	segment_touch(qs, s);
	env_in_heap(!np);
	rc = s->db->del(s->db, qs->batch.txn[np], &key, 0);
	env_in_heap(false);
	if (rc != 0)
		return rc == DB_NOTFOUND ? rc : segment_error(qs, np, s, "delete", rc);
	s->records--;
	s->weight -= (int64_t)bytes + HEADER_WEIGHT;
	return 0;
}
