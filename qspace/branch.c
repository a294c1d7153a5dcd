/*
 * branch - the part of a global transaction in this queue space: a list of operations in memory until it ends (D2).
 *
 *             prepare             commit
 *   ACTIVE -------------> PREPARED ------> COMMITTED      one-phase: ACTIVE -> COMMITTED
 *      |                      |
 *      | roll back, timeout   | roll back               PREPARED outlives a crash.
 *      |                      v
 *      '------------------> ABORTED
 *
 * A branch that ends in a batch stays in memory, with its holds, until the batch has committed: then the holds are let
 * go.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

#define BRANCH_BYTES (256 * (int64_t)MIB)	/* of one branch's list; of all together: */
#define BRANCHES_BYTES (512 * (int64_t)MIB)
#define PREPARED_VERSION 1
enum { ERRORQ_WAIT_MAX = 60 };

#define TO(s) (1u << (s))
static const struct { const char *name; unsigned next; } states[] = {
	[BR_ACTIVE]    = { "active",    TO(BR_PREPARED) | TO(BR_COMMITTED) | TO(BR_ABORTED) },
	[BR_PREPARED]  = { "prepared",  TO(BR_COMMITTED) | TO(BR_ABORTED) },
	[BR_COMMITTED] = { "committed", 0 },
	[BR_ABORTED]   = { "aborted",   0 },
};
static const struct wire_why doomed = { .error = TPEABORT, .text = "the transaction could only be rolled back" };
static const struct place in_order = { .delayed = false };

static void	/* The only place that moves b->state on.  The batch's abort puts it back. */
branch_enter(struct branch *b, enum branch_state next)
{
	assert(states[b->state].next & TO(next));
	b->state = next;
	due_set(&b->qs->due_branches, &b->due, NEVER);	/* a deadline binds an active one */
}

/* --- in memory --- */

static void
id_copy(struct branch_id *to, const struct branch_id *from)	/* zero padded, so that equal ones are equal bytes */
{
	memset(to, 0, sizeof *to);
	to->len = from->len > QSPACE_GTRID_MAX ? QSPACE_GTRID_MAX : from->len;
	memcpy(to->gtrid, from->gtrid, to->len);
}

struct branch *
qspace_branch_find(struct qspace *qs, const struct branch_id *id)
{
	struct branch_id key;
	struct branch *b;

	id_copy(&key, id);
	HASH_FIND(hh, qs->branches, &key, sizeof key, b);
	return b;
}

static struct branch *
branch_new(struct qspace *qs, const struct branch_id *id)
{
	struct branch *b = calloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	if (due_room(&qs->due_branches, HASH_COUNT(qs->branches) + 1) != 0) {
		free(b);
		return NULL;
	}
	id_copy(&b->id, id);
	b->qs = qs;
	b->until_us = NEVER;
	HASH_ADD(hh, qs->branches, id, sizeof b->id, b);
	return b;
}

void
branch_touch(struct qspace *qs, struct branch *b)
{
	struct batch *t = &qs->batch;

	assert(t->open);
	if (b->batch == t->no)
		return;
	b->batch = t->no;
	b->saved_n = b->n;
	b->saved_bytes = b->bytes;
	b->saved_state = b->state;
	memcpy(b->saved_coordinator, b->coordinator, sizeof b->coordinator);
	b->touched_next = t->branches;
	t->branches = b;
}

static void
hold_release(struct qspace *qs, struct held *h)
{
	HASH_DELETE(hh, qs->held, h);	// NOLINT: inside uthash
	free(h);
}

static void
op_free(struct qspace *qs, struct op *op)
{
	if (op->pinned)
		parts_unpin(qs, op->m->parts);
	op->pinned = false;
	free(op->m);
	if (op->h != NULL)
		hold_release(qs, op->h);
	op->m = NULL;
	op->h = NULL;
}

static void
branch_free(struct qspace *qs, struct branch *b)
{
	while (b->n > 0)
		op_free(qs, &b->op[--b->n]);
	if (!b->ended)
		HASH_DELETE(hh, qs->branches, b);	// NOLINT: inside uthash
	due_set(&qs->due_branches, &b->due, NEVER);
	free(b->op);
	free(b);
}

void
branch_forget_all(struct qspace *qs)
{
	struct branch *b, *next;

	for (b = qs->branches; b != NULL; b = next) {
		next = b->hh.next;
		branch_free(qs, b);
	}
}

int
branch_check(const struct branch *b)
{
	return b->doomed ? QMEABORTED : b->state != BR_ACTIVE || b->ended ? QMEPROTO : 0;
}

const struct newmsg *
branch_enqueued(const struct branch *b, const struct queue *q, const uint8_t msgid[TMMSGIDLEN])
{
	for (size_t i = b->n; i-- > 0;)		/* most likely one of the last */
		if (b->op[i].kind == OP_ENQUEUE && b->op[i].q == q &&
		    memcmp(b->op[i].m->msgid, msgid, TMMSGIDLEN) == 0)
			return b->op[i].m;
	return NULL;
}

static int
op_room(struct qspace *qs, struct branch *b, size_t bytes)
{
	struct op *op;

	if ((int64_t)(b->bytes + bytes) > BRANCH_BYTES || qs->used.branch_bytes + (int64_t)bytes > BRANCHES_BYTES) {
		space_say_full(qs, FULL_LIST);
		return QMENOSPACE;
	}
	if (b->n == b->cap) {
		size_t cap = b->cap == 0 ? 4 : 2 * b->cap;
		if ((op = realloc(b->op, cap * sizeof *op)) == NULL)
			return QMENOSPACE;
		b->op = op;
		b->cap = cap;
	}
	return 0;
}

static void	/* Counters of the queue and of the space; the caller has touched them. */
op_append(struct qspace *qs, struct branch *b, const struct op *op, size_t bytes)
{
	b->op[b->n++] = *op;
	b->bytes += bytes;
	qs->used.branch_bytes += (int64_t)bytes;
	if (op->kind == OP_DEQUEUE) {
		HASH_ADD(hh, qs->held, seq, sizeof op->h->seq, op->h);
		op->q->n.held++;
	} else {
		op->q->n.pending++;
		used_add(qs, &op->m->v, 1);
	}
}

int
branch_add_enqueue(struct qspace *qs, struct branch *b, struct queue *q, const struct newmsg *m)
{
	size_t bytes = sizeof *m + m->rec_len;
	struct op op = { .kind = OP_ENQUEUE, .q = q };
	uint8_t *rec;
	int rc;

	if ((rc = op_room(qs, b, bytes)) != 0)
		return rc;
	if ((op.m = malloc(bytes)) == NULL)
		return QMENOSPACE;
	if (m->parts != 0) {
		if ((rc = parts_pin(qs, m->parts)) != 0) {
			free(op.m);
			return rc;
		}
		op.pinned = true;
	}
	*op.m = *m;
	rec = (uint8_t *)(op.m + 1);
	memcpy(rec, m->rec, m->rec_len);
	op.m->rec = rec;
	branch_touch(qs, b);
	queue_touch(qs, q);
	op_append(qs, b, &op, bytes);
	return 0;
}

int
branch_add_dequeue(struct qspace *qs, struct branch *b, struct queue *q, const struct okey *k, const struct oval *v,
    const struct qmsg *m)
{
	struct op op = { .kind = OP_DEQUEUE, .q = q };
	int rc;

	if ((rc = op_room(qs, b, sizeof *op.h)) != 0)
		return rc;
	if ((op.h = malloc(sizeof *op.h)) == NULL)
		return QMENOSPACE;
	*op.h = (struct held){ .seq = v->seq, .q = q, .b = b, .key = *k, .v = *v };
	memcpy(op.h->msgid, m->msgid, TMMSGIDLEN);
	memcpy(op.h->corrid, m->corrid, TMCORRIDLEN);
	branch_touch(qs, b);
	queue_touch(qs, q);
	window_remove(q, k, v->flags & OV_CORRID ? m->corrid : NULL);
	op_append(qs, b, &op, sizeof *op.h);
	return 0;
}

/* --- life --- */

int
qspace_branch_begin(struct qspace *qs, const struct branch_id *id, int64_t deadline_us, struct branch **out)
{
	struct branch *b;

	*out = NULL;
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (id->len == 0 || id->len > QSPACE_GTRID_MAX)
		return QMEINVAL;
	if (qspace_branch_find(qs, id) != NULL)
		return QMEPROTO;
	if (qs->params.trans > 0 && HASH_COUNT(qs->branches) >= (unsigned)qs->params.trans) {
		space_say_full(qs, FULL_TRANS);
		return QMENOSPACE;
	}
	if ((b = branch_new(qs, id)) == NULL)
		return QMENOSPACE;
	branch_touch(qs, b);
	b->begun = true;
	b->began_us = clock_now_us();
	b->deadline_us = deadline_us;
	/* So long from now, whatever becomes of the wall clock. */
	b->until_us = deadline_us == 0 ? NEVER : clock_mono_us() + deadline_us - b->began_us;
	due_set(&qs->due_branches, &b->due, b->until_us);
	*out = b;
	return 0;
}

void
qspace_branch_doom(struct branch *b)
{
	if (b->state == BR_ACTIVE)
		b->doomed = true;
}

bool
qspace_branch_doomed(const struct branch *b)
{
	return b->doomed;
}

enum branch_state
qspace_branch_state(const struct branch *b)
{
	return b->state;
}

const char *
qspace_branch_coordinator(const struct branch *b)
{
	return b->coordinator;
}

static int	/* Its operations have been carried out; from here on nobody finds it. */
branch_end(struct qspace *qs, struct branch *b, enum branch_state how)
{
	int rc = 0;

	if (b->state == BR_PREPARED)
		keep_changed(qs);
	if (b->state == BR_PREPARED)
		rc = table_del(qs, T_BRANCHES, false, b->id.gtrid, b->id.len);
	if (rc == DB_NOTFOUND)		/* nothing of it was persistent */
		rc = 0;
	branch_enter(b, how);
	qs->used.branch_bytes -= (int64_t)b->bytes;
	HASH_DELETE(hh, qs->branches, b);
	b->ended = true;
	return rc;
}

static bool
op_is_persistent(const struct op *op)
{
	return !((op->kind == OP_ENQUEUE ? op->m->v.flags : op->h->v.flags) & OV_NP);
}

static bool	/* The prepared record owns its body in parts; until then, and in memory, nobody does. */
op_owns_parts(const struct branch *b, const struct op *op)
{
	return b->state == BR_PREPARED && op_is_persistent(op);
}

static int	/* The message of an enqueue is not to be. */
enqueue_forget(struct qspace *qs, struct branch *b, struct op *op)
{
	used_add(qs, &op->m->v, -1);
	return op->m->parts != 0 && op_owns_parts(b, op) ? parts_disown(qs, false, op->m->parts) : 0;
}

static int
op_commit(struct qspace *qs, struct branch *b, struct op *op, int64_t now)
{
	int rc;

	queue_touch(qs, op->q);
	if (op->kind == OP_DEQUEUE) {
		if ((rc = store_remove(qs, op->q, &op->h->key, &op->h->v, &in_order, op->h->corrid)) != 0)
			return rc;
		used_add(qs, &op->h->v, -1);
		op->fate = FATE_GONE;
		qs->batch.dequeues++;
		return 0;
	}
	op->q->n.pending--;
	if (op->m->v.expires_us != 0 && op->m->v.expires_us <= now)	/* expired while it waited */
		return enqueue_forget(qs, b, op);
	if ((rc = store_put(qs, op->q, op->m, now)) == 0 && op->m->parts != 0 && !op_owns_parts(b, op))
		rc = parts_own(qs, op->m->v.flags & OV_NP, op->m->parts);
	return rc;
}

int
qspace_branch_commit(struct qspace *qs, struct branch *b)
{
	int64_t now = clock_now_us();
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b->doomed)
		return (rc = qspace_branch_rollback_because(qs, b, &doomed)) != 0 ? rc : QMEABORTED;
	branch_touch(qs, b);
	threshold_branch(qs, true);
	for (size_t i = 0; i < b->n; i++)
		if ((rc = op_commit(qs, b, &b->op[i], now)) != 0)
			return rc;
	threshold_branch(qs, false);
	return branch_end(qs, b, BR_COMMITTED);
}

/*
 * Retries are spent.  A message of the error queue itself has nowhere to go: it stays there, and comes back after a
 * wait that doubles, so that a forwarder that fails on it cannot spin (the first time at once: somebody may just have
 * looked).
 */
static int
retries_spent(struct qspace *qs, struct op *op, struct oval *v, const struct wire_why *why, int64_t now)
{
	uint32_t over = v->retries - (uint32_t)op->q->p.retries;
	int64_t wait_s;

	if (strcmp(op->q->p.name, qs->params.errorq) != 0)
		return store_to_error_queue(qs, op->h, v, why, now);
	wait_s = over <= 1 ? 0 : over > 7 ? ERRORQ_WAIT_MAX : 1 << (over - 2);
	if (wait_s < op->q->p.retry_delay)
		wait_s = op->q->p.retry_delay;
	if (wait_s > 0)
		return store_delay(qs, op->q, &op->h->key, v, op->h->corrid, now + wait_s * 1000000);
	op->fate = FATE_BACK;
	return store_retry(qs, &op->h->key, v);
}

static int
op_rollback(struct qspace *qs, struct branch *b, struct op *op, const struct wire_why *why, int64_t now)
{
	struct held *h = op->h;
	struct oval v;
	int rc;

	queue_touch(qs, op->q);
	if (op->kind == OP_ENQUEUE) {
		op->q->n.pending--;
		return enqueue_forget(qs, b, op);
	}
	v = h->v;
	v.retries += v.retries < UINT32_MAX;
	if (v.failed_us == 0)
		v.failed_us = now;
	op->fate = FATE_GONE;
	op->after = v;
	if (v.expires_us != 0 && v.expires_us <= now) {
		if ((rc = store_remove(qs, op->q, &h->key, &h->v, &in_order, h->corrid)) == 0)
			used_add(qs, &h->v, -1);
		return rc;
	}
	if (v.retries > (uint64_t)op->q->p.retries)
		return retries_spent(qs, op, &v, why, now);
	if (op->q->p.retry_delay > 0)
		return store_delay(qs, op->q, &h->key, &v, h->corrid, now + op->q->p.retry_delay * 1000000);
	op->fate = FATE_BACK;
	return store_retry(qs, &h->key, &v);
}

int
qspace_branch_rollback_because(struct qspace *qs, struct branch *b, const struct wire_why *because)
{
	struct wire_why why = { .text = "transaction rolled back" };
	int64_t now = clock_now_us();
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (because != NULL) {
		why = *because;
		for (char *c = why.text; *c != '\0'; c++)	/* a peer's words, which end in the log */
			if (!isprint((unsigned char)*c))
				*c = '?';
	}
	branch_touch(qs, b);
	threshold_branch(qs, true);
	for (size_t i = 0; i < b->n; i++)
		if ((rc = op_rollback(qs, b, &b->op[i], &why, now)) != 0)
			return rc;
	threshold_branch(qs, false);
	return branch_end(qs, b, BR_ABORTED);
}

int
qspace_branch_rollback(struct qspace *qs, struct branch *b)
{
	return qspace_branch_rollback_because(qs, b, NULL);
}

int
branch_expire(struct qspace *qs, int64_t mono, int max)
{
	static const struct wire_why late = { .error = TPETIME, .text = "transaction timed out" };
	struct due *d;
	int n = 0, rc;

	while (n < max && (d = due_first(&qs->due_branches)) != NULL && d->us <= mono) {
		struct branch *b = (struct branch *)((char *)d - offsetof(struct branch, due));
		if ((rc = qspace_branch_rollback_because(qs, b, &late)) != 0)
			return rc;
		n++;
	}
	return n;
}

/* --- after the batch --- */

void
branch_after_commit(struct qspace *qs, struct branch *b)
{
	b->begun = false;
	if (!b->ended)
		return;
	for (size_t i = 0; i < b->n; i++) {
		struct op *op = &b->op[i];
		struct held *h = op->h;
		if (op->kind != OP_DEQUEUE)
			continue;
		op->q->n.held--;
		if (op->fate != FATE_BACK)
			continue;
		window_insert(qs, op->q, &h->key, &op->after, h->v.flags & OV_CORRID ? h->corrid : NULL);
		batch_event(qs, op->q, h->msgid, h->v.flags & OV_CORRID ? h->corrid : NULL);
	}
	branch_free(qs, b);
}

void
branch_after_abort(struct qspace *qs, struct branch *b)
{
	while (b->n > b->saved_n) {
		struct op *op = &b->op[--b->n];
		if (op->kind == OP_DEQUEUE)
			batch_event(qs, op->q, op->h->msgid, op->h->v.flags & OV_CORRID ? op->h->corrid : NULL);
		op_free(qs, op);
	}
	b->bytes = b->saved_bytes;
	b->state = b->saved_state;
	due_set(&qs->due_branches, &b->due, b->state == BR_ACTIVE ? b->until_us : NEVER);
	memcpy(b->coordinator, b->saved_coordinator, sizeof b->coordinator);
	if (b->ended) {
		b->ended = false;
		HASH_ADD(hh, qs->branches, id, sizeof b->id, b);
	}
	if (b->begun)
		branch_free(qs, b);
}

/* --- prepared --- */

static void
op_encode(struct wr *w, const struct op *op)
{
	uint8_t v[OVAL_MAX];
	size_t n = oval_encode(v, op->kind == OP_ENQUEUE ? &op->m->v : &op->h->v);
	const struct okey *k = op->kind == OP_ENQUEUE ? &op->m->key : &op->h->key;

	wr_u8(w, op->kind);
	wr_u32(w, op->q->id);
	wr_u8(w, k->n);
	wr_bytes(w, k->b, k->n);
	wr_u8(w, (uint8_t)n);
	wr_bytes(w, v, n);
	if (op->kind == OP_ENQUEUE) {
		wr_u64(w, (uint64_t)op->m->available_us);
		wr_bytes(w, op->m->msgid, TMMSGIDLEN);
		wr_bytes(w, op->m->corrid, TMCORRIDLEN);
		wr_u32(w, (uint32_t)op->m->rec_len);
		wr_bytes(w, op->m->rec, op->m->rec_len);
	} else {
		wr_bytes(w, op->h->msgid, TMMSGIDLEN);
		wr_bytes(w, op->h->corrid, TMCORRIDLEN);
	}
}

int
qspace_branch_prepare(struct qspace *qs, struct branch *b, const char *coordinator)
{
	struct wr w = { 0 };
	uint32_t n = 0;
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b->doomed)
		return (rc = qspace_branch_rollback_because(qs, b, &doomed)) != 0 ? rc : QMEABORTED;
	if ((rc = branch_check(b)) != 0)
		return rc;
	branch_touch(qs, b);
	keep_changed(qs);
	snprintf(b->coordinator, sizeof b->coordinator, "%s", coordinator);
	for (size_t i = 0; i < b->n; i++)
		n += op_is_persistent(&b->op[i]);
	wr_u8(&w, PREPARED_VERSION);
	wr_str(&w, b->coordinator);
	wr_u64(&w, (uint64_t)b->began_us);
	wr_u64(&w, (uint64_t)b->deadline_us);
	wr_u32(&w, n);
	for (size_t i = 0; i < b->n; i++)
		if (op_is_persistent(&b->op[i]))
			op_encode(&w, &b->op[i]);
	rc = wr_ok(&w) ? table_put(qs, T_BRANCHES, false, b->id.gtrid, b->id.len, w.p, w.len) : batch_dead(qs, QMEOS);
	wr_free(&w);
	for (size_t i = 0; i < b->n && rc == 0; i++)
		if (b->op[i].kind == OP_ENQUEUE && b->op[i].m->parts != 0 && op_is_persistent(&b->op[i]))
			rc = parts_own(qs, false, b->op[i].m->parts);
	if (rc == 0)
		branch_enter(b, BR_PREPARED);
	return rc;
}

/* What stands in `order` for a held message now; its retry count is there. */
static int
held_load(struct qspace *qs, struct branch *b, struct op *op, const struct okey *k, bool np, struct rd *r)
{
	uint8_t val[OVAL_MAX];
	struct held *h = calloc(1, sizeof *h);
	size_t n;

	if (h == NULL)
		return QMEOS;
	op->h = h;
	rd_copy(r, h->msgid, TMMSGIDLEN);
	rd_copy(r, h->corrid, TMCORRIDLEN);
	h->q = op->q;
	h->b = b;
	h->key = *k;
	if (r->bad || table_get(qs, T_ORDER, np, k->b, k->n, val, sizeof val, &n) != 0 ||
	    oval_decode(val, n, &h->v) != 0)
		return QMESYSTEM;
	h->seq = h->v.seq;
	return 0;
}

static int
enqueue_load(struct op *op, const struct okey *k, const struct oval *v, struct rd *r)
{
	struct newmsg head = { .key = *k, .v = *v };
	struct qrecord record;
	const uint8_t *rec;
	uint8_t *own;

	head.available_us = (int64_t)rd_u64(r);
	rd_copy(r, head.msgid, TMMSGIDLEN);
	rd_copy(r, head.corrid, TMCORRIDLEN);
	head.rec_len = rd_u32(r);
	rec = rd_view(r, head.rec_len);
	if (rec == NULL || qrecord_decode_head(rec, head.rec_len, &record) != 0)
		return QMESYSTEM;
	head.parts = record.parts;
	if ((op->m = malloc(sizeof head + head.rec_len)) == NULL)
		return QMEOS;
	*op->m = head;
	own = (uint8_t *)(op->m + 1);
	memcpy(own, rec, head.rec_len);
	op->m->rec = own;
	return 0;
}

static int
op_load(struct qspace *qs, struct branch *b, struct rd *r)
{
	uint8_t val[OVAL_MAX] = { 0 };
	struct op op = { 0 };
	struct oval v;
	struct okey k;
	size_t n;
	int rc;

	op.kind = rd_u8(r);
	op.q = queue_by_id(qs, rd_u32(r));
	k.n = rd_u8(r);
	if (k.n > ORDER_KEY_MAX || op.q == NULL)
		return QMESYSTEM;
	rd_copy(r, k.b, k.n);
	n = rd_u8(r);
	if (n > sizeof val)
		return QMESYSTEM;
	rd_copy(r, val, n);
	if (r->bad || oval_decode(val, n, &v) != 0 || op_room(qs, b, sizeof *op.h) != 0)
		return QMESYSTEM;
	rc = op.kind == OP_ENQUEUE   ? enqueue_load(&op, &k, &v, r)
	     : op.kind == OP_DEQUEUE ? held_load(qs, b, &op, &k, v.flags & OV_NP, r)
				     : QMESYSTEM;
	if (rc == 0) {
		op_append(qs, b, &op, op.kind == OP_ENQUEUE ? sizeof *op.m + op.m->rec_len : sizeof *op.h);
		return 0;
	}
	free(op.m);
	free(op.h);
	return rc;
}

static int
branch_load(struct qspace *qs, const struct branch_id *id, const uint8_t *p, size_t len)
{
	struct rd r = { .p = p, .left = len };
	struct branch *b = branch_new(qs, id);
	uint32_t n;
	int rc = 0;

	if (b == NULL)
		return QMEOS;
	if (rd_u8(&r) != PREPARED_VERSION)
		return QMESYSTEM;
	rd_str(&r, b->coordinator, sizeof b->coordinator);
	b->began_us = (int64_t)rd_u64(&r);
	b->deadline_us = (int64_t)rd_u64(&r);
	b->state = BR_PREPARED;
	for (n = rd_u32(&r); n > 0 && rc == 0 && !r.bad; n--)
		rc = op_load(qs, b, &r);
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

/* --- what a prepared branch did to messages in memory, over a close in good order --- */

static bool
is_memory_op(const struct branch *b, size_t i)
{
	return b->state == BR_PREPARED && !op_is_persistent(&b->op[i]);
}

bool
branch_has_memory_ops(const struct qspace *qs)
{
	for (const struct branch *b = qs->branches; b != NULL; b = b->hh.next)
		for (size_t i = 0; i < b->n; i++)
			if (is_memory_op(b, i))
				return true;
	return false;
}

int
branch_each_memory_op(struct qspace *qs, int (*fn)(void *arg, const uint8_t *p, size_t n), void *arg)
{
	struct wr w = { 0 }, rec = { 0 };
	int rc = 0;

	for (const struct branch *b = qs->branches; b != NULL && rc == 0; b = b->hh.next)
		for (size_t i = 0; i < b->n && rc == 0; i++) {
			struct op op = b->op[i];
			struct newmsg whole;
			if (!is_memory_op(b, i))
				continue;
			if (op.kind == OP_ENQUEUE && op.m->parts != 0) {	/* the parts are not kept */
				wr_reset(&rec);
				if (parts_gather(qs, op.m->rec, op.m->rec_len, &rec) != 0) {
					rc = EIO;
					break;
				}
				whole = *op.m;
				whole.v.flags &= (uint8_t)~OV_PARTS;
				whole.rec = rec.p;
				whole.rec_len = rec.len;
				op.m = &whole;
			}
			wr_reset(&w);
			wr_u8(&w, b->id.len);
			wr_bytes(&w, b->id.gtrid, b->id.len);
			op_encode(&w, &op);
			rc = wr_ok(&w) ? fn(arg, w.p, w.len) : ENOMEM;
		}
	wr_free(&w);
	wr_free(&rec);
	return rc;
}

int
branch_restore_memory_op(struct qspace *qs, const uint8_t *p, size_t n)
{
	struct rd r = { .p = p, .left = n };
	struct branch_id id = { .len = rd_u8(&r) };
	struct branch *b;
	int rc;

	if (id.len > QSPACE_GTRID_MAX)
		return QMESYSTEM;
	rd_copy(&r, id.gtrid, id.len);
	if (r.bad || (b = qspace_branch_find(qs, &id)) == NULL || b->state != BR_PREPARED)
		return QMESYSTEM;
	branch_touch(qs, b);
	if ((rc = op_load(qs, b, &r)) != 0)
		return rc;
	return rd_clean_end(&r) ? 0 : QMESYSTEM;
}

/* --- after Berkeley DB was recovered while running --- */

/*
 * The batch that failed may have reached the disk all the same.  Only this branch could remove what it held, or store
 * what it enqueued, so its first persistent operation tells.
 */
static int	/* 1: it was committed, 0: it was not */
was_committed(struct qspace *qs, const struct branch *b)
{
	uint8_t val[OVAL_MAX];
	struct place at;
	struct okey k;
	size_t n, i;
	int rc;

	for (i = 0; i < b->n && !op_is_persistent(&b->op[i]); i++)
		;
	if (i == b->n)
		return 0;
	if (b->op[i].kind == OP_DEQUEUE) {
		k = b->op[i].h->key;
		rc = table_get(qs, T_ORDER, false, k.b, k.n, val, sizeof val, &n);
		return rc == DB_NOTFOUND ? 1 : rc;
	}
	k = b->op[i].m->key;
	rc = table_get(qs, T_ORDER, false, k.b, k.n, val, sizeof val, &n);
	if (rc == DB_NOTFOUND)
		rc = alias_get(qs, false, b->op[i].m->v.seq, &k, &at);
	return rc == 0 ? 1 : rc == DB_NOTFOUND ? 0 : rc;
}

static void	/* Count again what it holds; non-persistent messages that it held may be no more. */
branch_recount(struct qspace *qs, struct branch *b, bool np_gone)
{
	struct op *op = b->op;
	size_t n = b->n;

	b->n = b->bytes = 0;
	for (size_t i = 0; i < n; i++) {
		struct op o = op[i];
		if (o.kind == OP_DEQUEUE) {
			HASH_DELETE(hh, qs->held, o.h);	// NOLINT: inside uthash
			if (np_gone && !op_is_persistent(&o)) {
				free(o.h);
				continue;
			}
		} else if (np_gone && o.m->parts != 0 && !op_is_persistent(&o)) {
			op_free(qs, &o);
			continue;
		}
		op_append(qs, b, &o, o.kind == OP_ENQUEUE ? sizeof *o.m + o.m->rec_len : sizeof *o.h);
	}
}

static int	/* 1: the disk says that it is prepared, 0: it does not */
was_prepared(struct qspace *qs, struct branch *b)
{
	struct rd r;
	uint8_t *v;
	size_t n;
	int rc = table_get_alloc(qs, T_BRANCHES, false, b->id.gtrid, b->id.len, &v, &n);

	if (rc != 0)
		return rc == DB_NOTFOUND ? 0 : rc;
	r = (struct rd){ .p = v, .left = n };
	if (rd_u8(&r) != PREPARED_VERSION)
		rc = env_error(qs, T_BRANCHES, "a prepared transaction cannot be read", EINVAL);
	rd_str(&r, b->coordinator, sizeof b->coordinator);
	if (rc == 0 && b->state != BR_PREPARED)
		branch_enter(b, BR_PREPARED);
	free(v);
	return rc == 0 ? 1 : rc;
}

int
branch_reload_all(struct qspace *qs, bool np_gone)
{
	struct branch *b, *next;
	int prepared, ended;

	for (b = qs->branches; b != NULL; b = next) {
		next = b->hh.next;
		if ((prepared = was_prepared(qs, b)) < 0)
			return prepared;
		ended = prepared ? 0 : b->state == BR_PREPARED ? 1 : was_committed(qs, b);
		if (ended < 0)
			return ended;
		if (ended)
			branch_free(qs, b);
		else
			branch_recount(qs, b, np_gone);
	}
	return branch_load_all(qs);
}

int
qspace_branch_list(struct qspace *qs, struct branch_info **out, size_t *n)
{
	struct branch *b, *next;
	struct branch_info *i;

	*n = 0;
	if ((*out = i = calloc(HASH_COUNT(qs->branches) + 1, sizeof *i)) == NULL)
		return QMEOS;
	for (b = qs->branches; b != NULL; b = next) {
		next = b->hh.next;
		i->id = b->id;
		i->state = b->state;
		i->state_name = states[b->state].name;
		memcpy(i->coordinator, b->coordinator, sizeof i->coordinator);
		i->began_us = b->began_us;
		i->deadline_us = b->deadline_us;
		i->doomed = b->doomed;
		i->bytes = (int64_t)b->bytes;
		for (size_t k = 0; k < b->n; k++)
			*(b->op[k].kind == OP_ENQUEUE ? &i->enqueues : &i->dequeues) += 1;
		i++;
		(*n)++;
	}
	return 0;
}
