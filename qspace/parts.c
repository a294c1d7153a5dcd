/*
 * parts - bodies that are too large for one record, so that none of them holds the others up: heap records of a slice
 * each, written and read over several batches.
 *
 * Table `parts`: 1, body, number -> the record of that slice.  0, body: nobody owns the body.  That mark is written with
 * the first slice, goes when a message or a prepared branch takes the body over, and comes back when its message goes; so
 * whatever is cut short, what has the mark is what is to be freed.  parts_tick() does that, a few slices at a time.
 *
 * In memory a body is pinned by whoever is at it: who writes it, who reads it, the branch that will store its message.
 * A pinned body is not freed, marked or not.  All other marked ones may go, at any time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "qspace_impl.h"

#define PART_VERSION 1
enum { MARK = 0, PART = 1, MARK_KEY = 9, PART_KEY = 13, PART_VALUE = 15, FREE_AT_ONCE = 4 };

struct pin { uint64_t body; unsigned refs; UT_hash_handle hh; };

struct spool {			/* a body on its way in */
	struct qspace *qs;
	uint64_t body;
	struct oval v;		/* as its message will have it: what is reserved */
	size_t written;
	bool used, lost, dropped, inner;	/* taken over; no more on disk; ends with the batch; made by qspace_enqueue() */
	uint64_t batch;		/* the batch that saved these: */
	size_t saved_written;
	bool saved_used;
	struct spool *touched_next, *prev, *next;
};

struct fetch {			/* a message on its way out */
	struct qspace *qs;
	struct queue *q;	/* while it is held here */
	uint64_t body;
	struct qmsg head, *m;	/* m: with the body, once reading began */
	struct held *h;		/* NULL: only looked at, or a branch holds it */
	size_t done;
	bool np, taken, gone, dropped;	/* gone: it is removed on disk; h is left */
	bool begun;		/* in the batch that runs */
	uint64_t batch;
	struct fetch *touched_next, *prev, *next;
};

/* --- records --- */

static size_t
mark_key(uint8_t k[MARK_KEY], uint64_t body)
{
	k[0] = MARK;
	be64(k + 1, body);
	return MARK_KEY;
}

static size_t
part_key(uint8_t k[PART_KEY], uint64_t body, uint32_t no)
{
	k[0] = PART;
	be64(k + 1, body);
	be32(k + 9, no);
	return PART_KEY;
}

static int
part_decode(struct qspace *qs, const uint8_t *v, size_t n, struct rid *rid, uint32_t *bytes)
{
	if (n != PART_VALUE || v[0] != PART_VERSION)
		return batch_dead(qs, env_error(qs, T_PARTS, "an entry is not of this version", EINVAL));
	rid->segment = get32(v + 1);
	rid->page = get32(v + 5);
	rid->slot = (uint16_t)(v[9] << 8 | v[10]);
	*bytes = get32(v + 11);
	return 0;
}

static int
part_write(struct qspace *qs, bool np, uint64_t body, uint32_t no, const uint8_t *p, uint32_t n)
{
	uint8_t k[PART_KEY], v[PART_VALUE] = { PART_VERSION };
	struct rid rid;
	int rc;

	if ((rc = heap_add(qs, np, p, n, n, &rid)) != 0)
		return rc;
	be32(v + 1, rid.segment);
	be32(v + 5, rid.page);
	v[9] = (uint8_t)(rid.slot >> 8);
	v[10] = (uint8_t)rid.slot;
	be32(v + 11, n);
	return table_put(qs, T_PARTS, np, k, part_key(k, body, no), v, sizeof v);
}

static int
part_read(struct qspace *qs, bool np, uint64_t body, uint32_t no, uint8_t *to, size_t cap, size_t *n)
{
	uint8_t k[PART_KEY], v[PART_VALUE];
	uint32_t bytes = 0;
	struct rid rid;
	size_t vn;
	int rc = table_get(qs, T_PARTS, np, k, part_key(k, body, no), v, sizeof v, &vn);

	*n = 0;
	if (rc == 0 && (rc = part_decode(qs, v, vn, &rid, &bytes)) == 0)
		rc = bytes == 0 || bytes > cap ? DB_NOTFOUND : heap_get(qs, np, rid, to, bytes, n);
	return rc == 0 && *n != bytes ? DB_NOTFOUND : rc;
}

static int
mark_put(struct qspace *qs, bool np, uint64_t body)
{
	uint8_t k[MARK_KEY], v = PART_VERSION;

	return table_put(qs, T_PARTS, np, k, mark_key(k, body), &v, 1);
}

int
parts_own(struct qspace *qs, bool np, uint64_t body)
{
	uint8_t k[MARK_KEY];
	int rc = table_del(qs, T_PARTS, np, k, mark_key(k, body));

	return rc == DB_NOTFOUND ? batch_dead(qs, env_error(qs, T_PARTS, "a body has another owner", rc)) : rc;
}

int
parts_disown(struct qspace *qs, bool np, uint64_t body)
{
	qs->parts.to_free = true;
	return mark_put(qs, np, body);
}

/* --- who is at a body --- */

static struct pin *
pin_of(const struct qspace *qs, uint64_t body)
{
	struct pin *p;

	HASH_FIND(hh, qs->parts.pins, &body, sizeof body, p);
	return p;
}

int
parts_pin(struct qspace *qs, uint64_t body)
{
	struct pin *p = pin_of(qs, body);

	if (p == NULL) {
		if ((p = calloc(1, sizeof *p)) == NULL)
			return QMENOSPACE;
		p->body = body;
		HASH_ADD(hh, qs->parts.pins, body, sizeof p->body, p);
	}
	p->refs++;
	return 0;
}

void
parts_unpin(struct qspace *qs, uint64_t body)
{
	struct pin *p = pin_of(qs, body);

	assert(p != NULL);
	if (--p->refs > 0)
		return;
	HASH_DELETE(hh, qs->parts.pins, p);	// NOLINT: inside uthash
	free(p);
	qs->parts.to_free = true;
}

/* --- freeing --- */

static int	/* the first marked body that nobody is at; DB_NOTFOUND: none */
find_free(struct qspace *qs, bool np, uint64_t *body)
{
	static const uint8_t from[1] = { MARK };
	struct walk w;
	int rc;

	for (rc = walk_first(qs, &w, T_PARTS, np, from, sizeof from); rc == 0; rc = walk_next(qs, &w)) {
		if (w.kn != MARK_KEY || w.k[0] != MARK) {
			rc = DB_NOTFOUND;
			break;
		}
		*body = get64(w.k + 1);
		if (pin_of(qs, *body) == NULL)
			break;
	}
	walk_end(qs, &w);
	return rc;
}

static int	/* one slice of it, or, when there are none, its mark */
free_one(struct qspace *qs, bool np, uint64_t body)
{
	uint8_t k[PART_KEY];
	uint32_t bytes = 0;
	struct rid rid;
	struct walk w;
	int rc = walk_first(qs, &w, T_PARTS, np, k, part_key(k, body, 0));

	if (rc == 0 && (w.kn != PART_KEY || memcmp(w.k, k, MARK_KEY) != 0))
		rc = DB_NOTFOUND;
	if (rc == 0) {
		memcpy(k, w.k, PART_KEY);
		rc = part_decode(qs, w.v, w.vn, &rid, &bytes);
	}
	walk_end(qs, &w);
	if (rc == DB_NOTFOUND)
		return parts_own(qs, np, body);
	if (rc == 0 && (rc = heap_del(qs, np, rid, bytes)) == DB_NOTFOUND)
		rc = batch_dead(qs, env_error(qs, T_PARTS, "a part is missing", DB_NOTFOUND));
	return rc == 0 ? table_del(qs, T_PARTS, np, k, PART_KEY) : rc;
}

int
parts_tick_some(struct qspace *qs, int at_most)
{
	uint64_t body;
	int rc = 0, done = 0;

	if (!qs->parts.to_free)
		return 0;
	for (int np = 0; np < 2; np++) {
		for (; done < at_most && (rc = find_free(qs, np, &body)) == 0; done++)
			if ((rc = free_one(qs, np, body)) != 0)
				return rc;
		if (rc != 0 && rc != DB_NOTFOUND)
			return rc;
	}
	qs->parts.to_free = done == at_most;
	return qs->parts.to_free;
}

int
parts_tick(struct qspace *qs)
{
	return parts_tick_some(qs, FREE_AT_ONCE);
}

/* --- in --- */

static void	/* what the message will take of the space's limits */
reserve(struct qspace *qs, const struct oval *v, int by)
{
	qs->parts.reserved.messages += by;
	if (v->flags & OV_NP)
		qs->parts.reserved.np_bytes += by * (int64_t)v->weight;
	else
		qs->parts.reserved.pages += by * pages_of(v->bytes);
}

static void
spool_touch(struct spool *sp)
{
	struct batch *b = &sp->qs->batch;

	assert(b->open);
	if (sp->batch == b->no)
		return;
	sp->batch = b->no;
	sp->saved_written = sp->written;
	sp->saved_used = sp->used;
	sp->touched_next = b->spools;
	b->spools = sp;
}

static void
spool_free(struct spool *sp)
{
	struct qspace *qs = sp->qs;

	if (!sp->used)
		reserve(qs, &sp->v, -1);
	DL_DELETE(qs->parts.spools, sp);
	parts_unpin(qs, sp->body);
	free(sp);
}

int
spool_new(struct qspace *qs, const struct oval *v, bool inner, struct spool **out)
{
	struct spool *sp = calloc(1, sizeof *sp);

	*out = NULL;
	if (sp == NULL)
		return QMENOSPACE;
	*sp = (struct spool){ .qs = qs, .body = space_next_seq(qs), .v = *v, .inner = inner };
	sp->v.flags |= OV_PARTS;
	if (parts_pin(qs, sp->body) != 0) {
		free(sp);
		return QMENOSPACE;
	}
	reserve(qs, &sp->v, 1);
	DL_APPEND(qs->parts.spools, sp);
	if (inner)
		spool_touch(sp);
	*out = sp;
	return 0;
}

int
qspace_spool_write(struct spool *sp, const void *body, size_t at_most)
{
	struct qspace *qs = sp->qs;
	bool np = sp->v.flags & OV_NP;
	int rc = qs->batch.rc;

	if (rc == 0 && sp->lost)
		rc = batch_dead(qs, QMESYSTEM);
	while (rc == 0 && sp->written < sp->v.bytes && at_most > 0) {
		size_t left = sp->v.bytes - sp->written, n = left < PART_BYTES ? left : PART_BYTES;

		if (!np && (rc = room_take(qs, n + RECORD_HEAD_MAX, 0)) != 0)
			break;
		spool_touch(sp);
		if (sp->written == 0 && (rc = mark_put(qs, np, sp->body)) != 0)
			break;
		if ((rc = part_write(qs, np, sp->body, (uint32_t)(sp->written / PART_BYTES),
			 (const uint8_t *)body + sp->written, (uint32_t)n)) != 0)
			break;
		sp->written += n;
		at_most -= at_most < n ? at_most : n;
	}
	return rc;
}

bool
qspace_spool_full(const struct spool *sp)
{
	return sp->written == sp->v.bytes;
}

uint64_t
spool_body(const struct spool *sp)
{
	return sp->lost || sp->used || sp->written != sp->v.bytes ? 0 : sp->body;
}

bool
spool_is_np(const struct spool *sp)
{
	return sp->v.flags & OV_NP;
}

void
spool_use(struct spool *sp)
{
	spool_touch(sp);
	sp->used = true;
	reserve(sp->qs, &sp->v, -1);
}

void
qspace_spool_drop(struct spool *sp)
{
	if (sp == NULL)
		return;
	if (sp->qs == NULL)		/* the space was closed */
		free(sp);
	else if (sp->qs->batch.open && sp->batch == sp->qs->batch.no)
		sp->dropped = true;
	else
		spool_free(sp);
}

/* --- out --- */

static void
fetch_touch(struct fetch *f)
{
	struct batch *b = &f->qs->batch;

	assert(b->open);
	if (f->batch == b->no)
		return;
	f->batch = b->no;
	f->begun = false;
	f->touched_next = b->fetches;
	b->fetches = f;
}

static void	/* nobody holds it any more; it may be there still */
hold_end(struct qspace *qs, struct fetch *f)
{
	hold_release(qs, f->h);
	f->h = NULL;
}

static void
give_back(struct qspace *qs, struct fetch *f)
{
	struct held *h = f->h;
	uint8_t flags = h->v.flags;

	h->q->n.held--;
	if (f->gone) {
		hold_end(qs, f);
		return;
	}
	window_insert(qs, h->q, &h->key, &h->v, flags & OV_CORRID ? h->corrid : NULL);
	batch_event(qs, h->q, h->msgid, flags & OV_CORRID ? h->corrid : NULL);
	if (h->v.expires_us != 0) {		/* it was passed over */
		memset(qs->expired_to, 0, sizeof qs->expired_to);
		if (h->v.expires_us < qs->next_expiry)
			qs->next_expiry = h->v.expires_us;
		tick_at(qs, h->v.expires_us);
	}
	hold_end(qs, f);
}

static void
fetch_free(struct fetch *f)
{
	struct qspace *qs = f->qs;

	if (f->h != NULL)
		give_back(qs, f);
	DL_DELETE(qs->parts.fetches, f);
	parts_unpin(qs, f->body);
	qmsg_free(f->m);
	free(f);
}

static int
fetch_hold(struct fetch *f, struct queue *q, const struct okey *k, const struct oval *v)
{
	struct qspace *qs = f->qs;
	struct held *h = calloc(1, sizeof *h);

	if (h == NULL)
		return QMENOSPACE;
	*h = (struct held){ .seq = v->seq, .q = q, .key = *k, .v = *v };
	memcpy(h->msgid, f->head.msgid, TMMSGIDLEN);
	memcpy(h->corrid, f->head.corrid, TMCORRIDLEN);
	queue_touch(qs, q);
	window_remove(q, k, v->flags & OV_CORRID ? h->corrid : NULL);
	held_add(qs, h);
	q->n.held++;
	f->h = h;
	return 0;
}

int
fetch_new(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const struct qmsg *head,
    uint64_t body, bool hold, struct fetch **out)
{
	struct fetch *f = calloc(1, sizeof *f);

	*out = NULL;
	if (f == NULL || parts_pin(qs, body) != 0) {
		free(f);
		return batch_dead(qs, QMEOS);
	}
	*f = (struct fetch){ .qs = qs, .q = q, .body = body, .head = *head, .np = v->flags & OV_NP };
	f->head.body = NULL;
	if (hold && fetch_hold(f, q, k, v) != 0) {
		parts_unpin(qs, body);
		free(f);
		return batch_dead(qs, QMEOS);
	}
	DL_APPEND(qs->parts.fetches, f);
	fetch_touch(f);
	f->begun = true;
	*out = f;
	return 0;
}

static int
part_damaged(const struct fetch *f)
{
	struct qspace *qs = f->qs;

	ulog("QM_CAT:1363: ERROR: queue space %s, queue %s: byte %zu of %zu of a message cannot be read: its part is missing "
	     "in %s", qs->params.name, f->head.queue, f->done, f->head.body_len, qs->dir);
	return batch_dead(qs, QMESYSTEM);
}

int
qspace_fetch_read(struct fetch *f, size_t at_most)
{
	struct qspace *qs = f->qs;
	uint8_t *to;
	size_t n;
	int rc = qs->batch.rc;

	if (rc != 0)
		return rc;
	if (f->m == NULL) {
		if ((f->m = malloc(sizeof *f->m + f->head.body_len)) == NULL)
			return batch_dead(qs, QMEOS);
		*f->m = f->head;
		f->m->body = (const uint8_t *)(f->m + 1);
		f->done = 0;
	}
	to = (uint8_t *)(f->m + 1);
	while (f->done < f->head.body_len && at_most > 0) {
		rc = part_read(qs, f->np, f->body, (uint32_t)(f->done / PART_BYTES), to + f->done, f->head.body_len - f->done, &n);
		if (rc == DB_NOTFOUND)
			return part_damaged(f);
		if (rc != 0)
			return rc;
		f->done += n;
		at_most -= at_most < n ? at_most : n;
		if (f->done < f->head.body_len && n != PART_BYTES)
			return part_damaged(f);
	}
	return 0;
}

bool
qspace_fetch_whole(const struct fetch *f)
{
	return f->m != NULL && f->done == f->head.body_len;
}

int
qspace_fetch_take(struct fetch *f, struct qmsg **out)
{
	static const struct place in_order = { .delayed = false };
	struct qspace *qs = f->qs;
	int rc;

	*out = NULL;
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	assert(qspace_fetch_whole(f));
	fetch_touch(f);
	if (f->h != NULL && !f->gone) {
		if ((rc = store_remove(qs, f->h->q, &f->h->key, &f->h->v, &in_order, f->h->corrid)) != 0)
			return rc;
		used_add(qs, &f->h->v, -1);
		qs->batch.dequeues++;
		f->taken = true;
	}
	*out = f->m;
	f->m = NULL;
	return 0;
}

void
qspace_fetch_drop(struct fetch *f)
{
	if (f == NULL)
		return;
	if (f->qs == NULL) {		/* the space was closed */
		qmsg_free(f->m);
		free(f);
	} else if (f->qs->batch.open) {
		fetch_touch(f);
		f->dropped = true;
	} else {
		fetch_free(f);
	}
}

int
parts_gather(struct qspace *qs, const uint8_t *rec, size_t len, struct wr *out)
{
	struct qrecord r;
	uint8_t *body;
	size_t n;
	int rc = 0;

	if (qrecord_decode(rec, len, &r) != 0 || r.parts == 0 || (body = malloc(r.m.body_len)) == NULL)
		return QMEOS;
	for (size_t at = 0; at < r.m.body_len && rc == 0; at += n)
		rc = part_read(qs, !r.m.persistent, r.parts, (uint32_t)(at / PART_BYTES), body + at, r.m.body_len - at, &n);
	r.parts = 0;
	r.m.body = body;
	if (rc == 0)
		qrecord_encode(out, &r);
	free(body);
	return rc == 0 && wr_ok(out) ? 0 : QMEOS;
}

/* --- with the batch --- */

void
parts_after_commit(struct qspace *qs)
{
	struct spool *sp;
	struct fetch *f;

	while ((sp = qs->batch.spools) != NULL) {
		qs->batch.spools = sp->touched_next;
		sp->batch = 0;
		if (sp->used || sp->dropped || sp->inner)
			spool_free(sp);
	}
	while ((f = qs->batch.fetches) != NULL) {
		qs->batch.fetches = f->touched_next;
		f->batch = 0;
		f->begun = false;
		f->gone |= f->taken;
		f->taken = false;
		if (f->gone && f->h != NULL)
			give_back(qs, f);
		if (f->dropped)
			fetch_free(f);
	}
}

void
parts_let_go(struct qspace *qs)
{
	for (struct fetch *f = qs->batch.fetches; f != NULL; f = f->touched_next) {
		f->taken = false;
		if (f->begun && f->h != NULL) {		/* the queue's counters go back as a whole */
			batch_event(qs, f->h->q, f->h->msgid, f->h->v.flags & OV_CORRID ? f->h->corrid : NULL);
			hold_end(qs, f);
		}
		f->begun = false;
	}
}

void
parts_after_abort(struct qspace *qs)
{
	struct spool *sp;
	struct fetch *f;

	while ((sp = qs->batch.spools) != NULL) {
		qs->batch.spools = sp->touched_next;
		sp->batch = 0;
		sp->written = sp->saved_written;
		if (sp->used && !sp->saved_used)
			reserve(qs, &sp->v, 1);
		sp->used = sp->saved_used;
		if (sp->dropped || sp->inner)
			spool_free(sp);
	}
	while ((f = qs->batch.fetches) != NULL) {
		qs->batch.fetches = f->touched_next;
		f->batch = 0;
		if (f->dropped)
			fetch_free(f);
	}
	qs->parts.to_free = true;
}

/* --- after Berkeley DB was recovered while running --- */

static int	/* how much of it is on disk; whether it is nobody's still */
spool_reload(struct spool *sp, bool np_gone)
{
	struct qspace *qs = sp->qs;
	bool np = sp->v.flags & OV_NP;
	uint8_t k[PART_KEY], v[PART_VALUE];
	size_t n;
	int rc;

	if (np) {
		sp->lost = np_gone;
		return 0;
	}
	for (sp->written = 0; sp->written < sp->v.bytes; sp->written += n) {
		uint32_t bytes = 0;
		struct rid rid;

		rc = table_get(qs, T_PARTS, np, k, part_key(k, sp->body, (uint32_t)(sp->written / PART_BYTES)), v, sizeof v, &n);
		if (rc == DB_NOTFOUND)
			break;
		if (rc != 0 || (rc = part_decode(qs, v, n, &rid, &bytes)) != 0)
			return rc;
		n = bytes;
	}
	if (sp->written > 0) {
		rc = table_get(qs, T_PARTS, np, k, mark_key(k, sp->body), v, sizeof v, &n);
		if (rc != 0 && rc != DB_NOTFOUND)
			return rc;
		sp->lost = rc == DB_NOTFOUND;	/* the batch that failed reached the disk: a message has it */
	}
	return 0;
}

static int
fetch_reload(struct fetch *f, bool np_gone)
{
	uint8_t val[OVAL_MAX];
	size_t n;
	int rc;

	if (f->h == NULL)
		return 0;
	if (f->np && np_gone) {		/* lost, with all of its kind */
		hold_end(f->qs, f);
		return 0;
	}
	f->h->q->n.held++;
	if (f->np)
		return 0;
	rc = table_get(f->qs, T_ORDER, false, f->h->key.b, f->h->key.n, val, sizeof val, &n);
	f->gone = rc == DB_NOTFOUND;	/* the batch that failed reached the disk: it is this caller's */
	return rc == DB_NOTFOUND ? 0 : rc;
}

int
parts_reload(struct qspace *qs, bool np_gone)
{
	struct spool *sp;
	struct fetch *f;
	int rc;

	DL_FOREACH(qs->parts.spools, sp)
		if ((rc = spool_reload(sp, np_gone)) != 0)
			return rc;
	DL_FOREACH(qs->parts.fetches, f)
		if ((rc = fetch_reload(f, np_gone)) != 0)
			return rc;
	qs->parts.to_free = true;
	return 0;
}

void
parts_forget_all(struct qspace *qs)
{
	struct spool *sp;
	struct fetch *f;

	while ((f = qs->parts.fetches) != NULL) {
		if (f->h != NULL)
			hold_end(qs, f);
		DL_DELETE(qs->parts.fetches, f);
		parts_unpin(qs, f->body);
		f->qs = NULL;
	}
	while ((sp = qs->parts.spools) != NULL) {
		DL_DELETE(qs->parts.spools, sp);
		parts_unpin(qs, sp->body);
		sp->qs = NULL;
	}
}
