/*
 * branch_disk - what is on disk of branches: prepared ones with their operations, and what administrators ended by hand
 * (FORMAT.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

/* An operation's byte; 1 and 2 are as in enum op_kind. */
#define ENQUEUE_STORED 3

/* Of a record's second byte.  Do not renumber. */
static const struct { uint8_t byte; enum branch_state state; } kept_states[] = {
	{ 1, BR_PREPARED }, { 2, BR_HEUR_COMMITTED }, { 3, BR_HEUR_ROLLED_BACK }, { 4, BR_COMMITTING }, { 5, BR_ROLLING_BACK },
};

static uint8_t
state_byte(enum branch_state s)
{
	for (size_t i = 0; i < sizeof kept_states / sizeof *kept_states; i++)
		if (kept_states[i].state == s)
			return kept_states[i].byte;
	abort();	/* the others are in memory alone */
}

static int
state_of(uint8_t byte, enum branch_state *s)
{
	for (size_t i = 0; i < sizeof kept_states / sizeof *kept_states; i++)
		if (kept_states[i].byte == byte) {
			*s = kept_states[i].state;
			return 0;
		}
	return -1;
}

/* --- records --- */

void
op_encode(struct wr *w, const struct op *op)
{
	uint8_t v[OVAL_MAX];
	size_t n = oval_encode(v, op->kind == OP_ENQUEUE ? &op->m->v : &op->h->v);
	const struct okey *k = op->kind == OP_ENQUEUE ? &op->m->key : &op->h->key;

	bool stored = op->kind == OP_ENQUEUE && op->m->stored;

	wr_u8(w, stored ? ENQUEUE_STORED : (uint8_t)op->kind);
	wr_u32(w, op->q->id);
	wr_u8(w, k->n);
	wr_bytes(w, k->b, k->n);
	wr_u8(w, (uint8_t)n);
	wr_bytes(w, v, n);
	if (op->kind == OP_ENQUEUE) {
		wr_u64(w, (uint64_t)op->m->available_us);
		wr_bytes(w, op->m->msgid, TMMSGIDLEN);
		wr_bytes(w, op->m->corrid, TMCORRIDLEN);
		if (stored) {
			wr_u64(w, op->m->parts);
			return;
		}
		wr_u32(w, (uint32_t)op->m->rec_len);
		wr_bytes(w, op->m->rec, op->m->rec_len);
	} else {
		wr_bytes(w, op->h->msgid, TMMSGIDLEN);
		wr_bytes(w, op->h->corrid, TMCORRIDLEN);
	}
}

int
op_decode(struct rd *r, struct op_rec *o)
{
	struct qrecord record;
	const uint8_t *v;
	size_t n;

	uint8_t kind = rd_u8(r);

	*o = (struct op_rec){ .kind = kind == ENQUEUE_STORED ? OP_ENQUEUE : kind, .queue = rd_u32(r), .stored = kind == ENQUEUE_STORED };
	if ((o->key.n = rd_u8(r)) > ORDER_KEY_MAX)
		return -1;
	rd_copy(r, o->key.b, o->key.n);
	n = rd_u8(r);
	if ((v = rd_view(r, n)) == NULL || oval_decode(v, n, &o->v) != 0)
		return -1;
	if (o->kind != OP_ENQUEUE && o->kind != OP_DEQUEUE)
		return -1;
	if (o->kind == OP_ENQUEUE)
		o->available_us = (int64_t)rd_u64(r);
	rd_copy(r, o->msgid, TMMSGIDLEN);
	rd_copy(r, o->corrid, TMCORRIDLEN);
	if (o->stored)
		o->parts = rd_u64(r);
	else if (o->kind == OP_ENQUEUE) {
		o->rec_len = rd_u32(r);
		if ((o->rec = rd_view(r, o->rec_len)) == NULL || qrecord_decode_head(o->rec, o->rec_len, &record) != 0)
			return -1;
		o->parts = record.parts;
	}
	return r->bad ? -1 : 0;
}

void
branch_head_encode(struct wr *w, const struct branch_head *h)
{
	wr_u8(w, BRANCH_VERSION);
	wr_u8(w, state_byte(h->state));
	wr_str(w, h->coordinator);
	wr_str(w, h->owner);
	wr_u64(w, (uint64_t)h->began_us);
	wr_u64(w, (uint64_t)h->deadline_us);
	wr_u8(w, h->by_hand);
	wr_u64(w, h->number);
	wr_u32(w, h->chunks);
	wr_u32(w, h->applied);
	wr_u32(w, h->n);
}

int
branch_head_decode(struct rd *r, struct branch_head *h)
{
	uint8_t version = rd_u8(r);

	*h = (struct branch_head){ .state = BR_PREPARED };
	if (version < BRANCH_VERSION_OLDEST || version > BRANCH_VERSION)
		return -1;
	if (version > 1 && state_of(rd_u8(r), &h->state) != 0)
		return -1;
	rd_str(r, h->coordinator, sizeof h->coordinator);
	if (version > 1)
		rd_str(r, h->owner, sizeof h->owner);
	h->began_us = (int64_t)rd_u64(r);
	h->deadline_us = (int64_t)rd_u64(r);
	if (version > 1) {
		h->by_hand = rd_u8(r);
		h->number = rd_u64(r);
		h->chunks = rd_u32(r);
		h->applied = rd_u32(r);
	}
	h->n = rd_u32(r);
	return r->bad ? -1 : 0;
}

int
branch_write(struct qspace *qs, struct branch *b)
{
	struct branch_head h = { .state = b->state, .began_us = b->began_us, .deadline_us = b->deadline_us };
	bool with_ops = !branch_is_heuristic(b) && !branch_is_large(b);
	struct wr w = { 0 };
	int rc;

	memcpy(h.coordinator, b->coordinator, sizeof h.coordinator);
	memcpy(h.owner, b->owner, sizeof h.owner);
	h.by_hand = b->by_hand;
	if (!branch_is_heuristic(b)) {
		h.number = b->number;
		h.chunks = b->chunks;
		h.applied = b->applied;
	}
	for (size_t i = 0; i < b->n && with_ops; i++)
		h.n += op_is_persistent(&b->op[i]);
	branch_head_encode(&w, &h);
	for (size_t i = 0; i < b->n && with_ops; i++)
		if (op_is_persistent(&b->op[i]))
			op_encode(&w, &b->op[i]);
	rc = wr_ok(&w) ? table_put(qs, T_BRANCHES, false, b->id.gtrid, b->id.len, w.p, w.len) : batch_dead(qs, QMEOS);
	wr_free(&w);
	return rc;
}

int
branch_own_parts(struct qspace *qs, struct branch *b)
{
	int rc = 0;

	for (size_t i = 0; i < b->n && rc == 0 && !b->owned; i++)
		if (b->op[i].kind == OP_ENQUEUE && b->op[i].m->parts != 0 && op_is_persistent(&b->op[i]))
			rc = parts_own(qs, false, b->op[i].m->parts);
	b->owned = true;
	return rc;
}

int
qspace_branch_prepare(struct qspace *qs, struct branch *b, const char *coordinator)
{
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b->doomed)
		return branch_doomed(qs, b);
	if (b->state == BR_PREPARED && !b->ended)
		return 0;
	if (b->state != BR_ACTIVE || b->ended)
		return QMEPROTO;
	if (b->n == 0)
		return (rc = qspace_branch_commit(qs, b)) != 0 ? rc : QSPACE_READ_ONLY;
	branch_touch(qs, b);
	keep_changed(qs);
	snprintf(b->coordinator, sizeof b->coordinator, "%s", coordinator);
	if (branch_is_large(b) && (rc = chunk_write(qs, b)) != 0)
		return rc;
	branch_enter(b, BR_PREPARED);
	b->recorded = true;
	return (rc = branch_own_parts(qs, b)) != 0 ? rc : branch_write(qs, b);
}

/* --- read again --- */

/* What stands in `order` for a held message now; its retry count is there. */
static int
held_load(struct qspace *qs, struct branch *b, struct op *op, const struct op_rec *o)
{
	uint8_t val[OVAL_MAX];
	struct held *h = calloc(1, sizeof *h);
	size_t n;

	if (h == NULL)
		return QMEOS;
	op->h = h;
	memcpy(h->msgid, o->msgid, TMMSGIDLEN);
	memcpy(h->corrid, o->corrid, TMCORRIDLEN);
	h->q = op->q;
	h->b = b;
	h->key = o->key;
	if (table_get(qs, T_ORDER, o->v.flags & OV_NP, o->key.b, o->key.n, val, sizeof val, &n) != 0 ||
	    oval_decode(val, n, &h->v) != 0)
		return QMESYSTEM;
	h->seq = h->v.seq;
	return 0;
}

static int
enqueue_load(struct op *op, const struct op_rec *o)
{
	struct newmsg *m = malloc(sizeof *m + o->rec_len);

	if (m == NULL)
		return QMEOS;
	*m = (struct newmsg){ .key = o->key, .v = o->v, .available_us = o->available_us, .rec_len = o->rec_len, .parts = o->parts,
		.stored = o->stored };
	memcpy(m->msgid, o->msgid, TMMSGIDLEN);
	memcpy(m->corrid, o->corrid, TMCORRIDLEN);
	if (o->rec_len > 0)
		m->rec = memcpy(m + 1, o->rec, o->rec_len);
	op->m = m;
	return 0;
}

int
op_load(struct qspace *qs, struct branch *b, struct rd *r)
{
	struct op op = { 0 };
	struct op_rec o;
	int rc;

	if (op_decode(r, &o) != 0 || (op.q = queue_by_id(qs, o.queue)) == NULL || op_room(qs, b, sizeof *op.h) != 0)
		return QMESYSTEM;
	op.kind = o.kind;
	op.chunk = b->chunks;
	if ((rc = op.kind == OP_ENQUEUE ? enqueue_load(&op, &o) : held_load(qs, b, &op, &o)) == 0) {
		op_append(qs, b, &op, op.kind == OP_ENQUEUE ? sizeof *op.m + op.m->rec_len : sizeof *op.h);
		return 0;
	}
	free(op.m);
	free(op.h);
	return rc;
}

static int	/* One that a commit has given its place already: it is hidden.  What was to go is gone. */
applied_load(struct qspace *qs, struct branch *b, struct rd *r)
{
	struct op op = { .kind = OP_ENQUEUE, .chunk = b->chunks };
	uint8_t val[OVAL_MAX];
	struct place at;
	struct op_rec o;
	struct okey k;
	size_t n;
	int rc;

	if (op_decode(r, &o) != 0 || (op.q = queue_by_id(qs, o.queue)) == NULL)
		return QMESYSTEM;
	if (o.kind != OP_ENQUEUE)
		return 0;
	rc = table_get(qs, T_ORDER, false, o.key.b, o.key.n, val, sizeof val, &n);
	if (rc == DB_NOTFOUND)
		rc = alias_get(qs, false, o.v.seq, &k, &at);
	if (rc != 0)
		return rc == DB_NOTFOUND ? 0 : rc;	/* it had expired */
	if (op_room(qs, b, sizeof *op.h) != 0)
		return QMESYSTEM;
	if ((rc = enqueue_load(&op, &o)) == 0 && (rc = op_hide(qs, b, &op)) == 0) {
		op.q->n.pending++;
		b->op[b->n++] = op;
		b->bytes += sizeof *op.h;
		qs->used.branch_bytes += (int64_t)sizeof *op.h;
		b->op[b->n - 1].m = NULL;
	}
	free(op.m);
	return rc;
}

static int
large_load(struct qspace *qs, struct branch *b, const struct branch_head *h)
{
	int rc = 0;

	b->number = h->number;
	while (b->chunks < h->chunks && rc == 0) {
		bool applied = b->chunks < h->applied;
		if (!applied || b->state == BR_COMMITTING)
			rc = chunk_load(qs, b, b->chunks, applied ? applied_load : op_load);
		b->chunks++;
		if (applied)
			b->done = b->n;
	}
	b->applied = h->applied;
	b->n_stored = b->n;
	b->unsaved = 0;
	if (branch_is_ending(b))
		branch_begins_to_end(qs, b);
	return rc == DB_NOTFOUND ? QMESYSTEM : rc;
}

static int
branch_load(struct qspace *qs, const struct branch_id *id, const uint8_t *p, size_t len)
{
	struct rd r = { .p = p, .left = len };
	struct branch *b = branch_new(qs, id);
	struct branch_head h;
	int rc = 0;

	if (b == NULL)
		return QMEOS;
	if (branch_head_decode(&r, &h) != 0)
		return QMESYSTEM;
	memcpy(b->coordinator, h.coordinator, sizeof b->coordinator);
	memcpy(b->owner, h.owner, sizeof b->owner);
	b->began_us = h.began_us;
	b->deadline_us = h.deadline_us;
	b->state = h.state;
	b->by_hand = h.by_hand;
	b->recorded = b->owned = true;
	qs->used.heuristics += branch_is_heuristic(b) || b->by_hand;
	for (uint32_t n = h.n; n > 0 && rc == 0; n--)
		rc = op_load(qs, b, &r);
	if (rc == 0 && h.number != 0)
		rc = large_load(qs, b, &h);
	return rc != 0 ? rc : rd_clean_end(&r) ? 0 : QMESYSTEM;
}

int
branch_load_all(struct qspace *qs)
{
	struct branch_id id;
	struct walk w;
	int rc;

	for (rc = walk_first(qs, &w, T_BRANCHES, false, "", 0); rc == 0; rc = walk_next(qs, &w)) {
		if (w.kn == 0 || w.kn > QSPACE_GTRID_MAX) {
			rc = QMESYSTEM;
			break;
		}
		id.len = (uint8_t)w.kn;
		memcpy(id.gtrid, w.k, w.kn);
		if (qspace_branch_find(qs, &id) == NULL && (rc = branch_load(qs, &id, w.v, w.vn)) != 0)
			break;
	}
	walk_end(qs, &w);
	if (rc == DB_NOTFOUND)
		return 0;
	return rc == QMESYSTEM ? env_error(qs, T_BRANCHES, "a prepared transaction cannot be read", EINVAL) : rc;
}
