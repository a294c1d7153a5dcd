/*
 * branch_chunk - the operations of a large branch on disk, while it grows, so that its end has little left to write and
 * its memory does not follow its data.
 *
 * Each CHUNK_OPS operations (or CHUNK_BYTES) are written with the batch that brings the last of them: messages to come as
 * records that nothing leads to, and one entry of table `operations` that names those and the messages to go.  Nobody sees
 * anything of it, and it counts only once the branch's own record says so, which prepare or commit writes.  What has no
 * such record (a crash) is freed by and by.
 *
 * Table `operations`: number, 1.. -> a chunk; number, 0: its branch was committed, and its chunks own no record any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

#define CHUNK_BYTES MIB
enum { CHUNK_VERSION = 1, KEY = 12, SWEEP_AT_ONCE = 1 };

static void
chunk_key(uint8_t k[KEY], uint64_t number, uint32_t no)
{
	be64(k, number);
	be32(k + 8, no);
}

static bool
is_due(const struct branch *b)
{
	return b->n - b->n_stored >= CHUNK_OPS || b->unsaved >= CHUNK_BYTES;
}

static int	/* The record of a message to come, where nothing leads to it yet. */
op_store(struct qspace *qs, struct op *op)
{
	struct newmsg *m = op->m;
	int rc;

	if (op->kind != OP_ENQUEUE || m->stored)
		return 0;
	if ((rc = heap_add(qs, false, m->rec, m->rec_len, store_weight(&m->v), &m->v.rid)) == 0)
		m->stored = true;
	return rc;
}

int
chunk_write(struct qspace *qs, struct branch *b)
{
	struct wr w = { 0 };
	uint8_t k[KEY];
	uint32_t n = 0;
	int rc = 0;

	if (b->n == b->n_stored)
		return 0;
	branch_touch(qs, b);
	if (b->number == 0)
		b->number = space_next_seq(qs);
	for (size_t i = b->n_stored; i < b->n; i++)
		n += op_is_persistent(&b->op[i]);
	wr_u8(&w, CHUNK_VERSION);
	wr_u32(&w, n);
	for (size_t i = b->n_stored; i < b->n && rc == 0; i++) {
		b->op[i].chunk = b->chunks;
		if (!op_is_persistent(&b->op[i]))
			continue;
		if ((rc = op_store(qs, &b->op[i])) == 0)
			op_encode(&w, &b->op[i]);
	}
	chunk_key(k, b->number, b->chunks + 1);
	if (rc == 0)
		rc = wr_ok(&w) ? table_put(qs, T_OPERATIONS, false, k, sizeof k, w.p, w.len) : batch_dead(qs, QMEOS);
	wr_free(&w);
	b->n_stored = b->n;
	b->chunks++;
	b->unsaved = 0;
	return rc;
}

int
chunk_when_due(struct qspace *qs, struct branch *b)
{
	return is_due(b) ? chunk_write(qs, b) : 0;
}

void
chunks_after_commit(struct qspace *qs, struct branch *b)
{
	for (size_t i = b->saved.n_stored; i < b->n_stored; i++) {
		struct newmsg *m = b->op[i].m, *less;
		if (m == NULL || !m->stored || m->rec_len == 0)
			continue;
		b->bytes -= m->rec_len;
		qs->used.branch_bytes -= (int64_t)m->rec_len;
		m->rec = NULL;
		m->rec_len = 0;
		if ((less = realloc(m, sizeof *m)) != NULL)
			b->op[i].m = less;
	}
}

void
chunks_after_abort(struct branch *b)
{
	for (size_t i = b->saved.n_stored; i < b->n_stored && i < b->n; i++)
		if (b->op[i].m != NULL && b->op[i].m->rec_len != 0)
			b->op[i].m->stored = false;
}

int
chunk_remove(struct qspace *qs, const struct branch *b, uint32_t no)
{
	uint8_t k[KEY];
	int rc;

	chunk_key(k, b->number, no + 1);
	rc = table_del(qs, T_OPERATIONS, false, k, sizeof k);
	return rc == DB_NOTFOUND ? 0 : rc;
}

int
chunks_own_nothing(struct qspace *qs, const struct branch *b)
{
	uint8_t k[KEY], v = CHUNK_VERSION;

	chunk_key(k, b->number, 0);
	qs->sweep = true;
	return table_put(qs, T_OPERATIONS, false, k, sizeof k, &v, 1);
}

/* --- read again --- */

static int
chunk_begin(struct qspace *qs, struct rd *r, uint32_t *n)
{
	if (rd_u8(r) != CHUNK_VERSION)
		r->bad = true;
	*n = rd_u32(r);
	return r->bad ? env_error(qs, T_OPERATIONS, "a part of a transaction cannot be read", EINVAL) : 0;
}

int
chunk_load(struct qspace *qs, struct branch *b, uint32_t no, int (*load)(struct qspace *, struct branch *, struct rd *))
{
	uint8_t k[KEY], *v;
	uint32_t n;
	struct rd r;
	size_t len;
	int rc;

	chunk_key(k, b->number, no + 1);
	if ((rc = table_get_alloc(qs, T_OPERATIONS, false, k, sizeof k, &v, &len)) != 0)
		return rc;
	r = (struct rd){ .p = v, .left = len };
	if ((rc = chunk_begin(qs, &r, &n)) == 0)
		for (; n > 0 && rc == 0; n--)
			rc = load(qs, b, &r);
	if (rc == 0 && !rd_clean_end(&r))
		rc = QMESYSTEM;
	free(v);
	return rc;
}

/* --- what no branch has any more --- */

static bool
is_alive(const struct qspace *qs, uint64_t number)
{
	for (const struct branch *b = qs->branches; b != NULL; b = b->hh.next)
		if (b->number == number)
			return true;
	return false;
}

static int	/* The records that a chunk names go with it, unless messages have them. */
chunk_free(struct qspace *qs, const uint8_t *p, size_t len)
{
	struct rd r = { .p = p, .left = len };
	struct op_rec o;
	uint32_t n;
	int rc;

	if ((rc = chunk_begin(qs, &r, &n)) != 0)
		return batch_dead(qs, rc);
	for (; n > 0 && rc == 0; n--) {
		if (op_decode(&r, &o) != 0)
			return batch_dead(qs, env_error(qs, T_OPERATIONS, "a part of a transaction cannot be read", EINVAL));
		if (o.stored && (rc = heap_del(qs, false, o.v.rid, store_weight(&o.v))) == DB_NOTFOUND)
			rc = 0;
	}
	return rc;
}

/* The first chunk at or behind `number` that is nobody's; false: there is none. */
static int
sweep_find(struct qspace *qs, struct walk *w)
{
	uint8_t from[KEY];
	int rc = walk_first(qs, w, T_OPERATIONS, false, "", 0);

	while (rc == 0 && w->kn == KEY && is_alive(qs, get64(w->k))) {
		uint64_t number = get64(w->k);
		walk_end(qs, w);
		chunk_key(from, number + 1, 0);
		rc = walk_first(qs, w, T_OPERATIONS, false, from, sizeof from);
	}
	return rc;
}

int
chunks_sweep(struct qspace *qs)
{
	uint8_t k[KEY], *v = NULL;
	bool owns = true;
	struct walk w;
	size_t n = 0;
	int rc;

	if (!qs->sweep)
		return 0;
	rc = sweep_find(qs, &w);
	if (rc == 0 && w.kn != KEY)
		rc = env_error(qs, T_OPERATIONS, "a part of a transaction cannot be read", EINVAL);
	if (rc == 0 && get32(w.k + 8) == 0) {	/* the mark goes last */
		memcpy(k, w.k, sizeof k);
		owns = false;
		rc = walk_next(qs, &w);
		if (rc == 0 && memcmp(w.k, k, 8) != 0)
			rc = DB_NOTFOUND;
		if (rc == DB_NOTFOUND) {
			walk_end(qs, &w);
			rc = table_del(qs, T_OPERATIONS, false, k, sizeof k);
			return rc != 0 ? rc : 1;
		}
	}
	if (rc == 0) {
		memcpy(k, w.k, sizeof k);
		n = w.vn;
		if (owns && (v = malloc(n + 1)) == NULL)
			rc = QMEOS;
		if (rc == 0 && owns)
			memcpy(v, w.v, n);
	}
	walk_end(qs, &w);
	if (rc == 0 && owns)
		rc = chunk_free(qs, v, n);
	free(v);
	if (rc == 0)
		rc = table_del(qs, T_OPERATIONS, false, k, sizeof k);
	if (rc == DB_NOTFOUND) {
		qs->sweep = false;
		return 0;
	}
	return rc != 0 ? batch_dead(qs, rc) : 1;
}
