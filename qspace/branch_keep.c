/*
 * branch_keep - branches in memory over a close in good order, and over a recovery of Berkeley DB while running.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

/* --- what a prepared branch did to messages in memory, over a close in good order --- */

static bool
is_memory_op(const struct branch *b, size_t i)
{
	return (b->state == BR_PREPARED || b->state == BR_COMMITTING) && i >= b->done && !op_is_persistent(&b->op[i]);
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
	if (r.bad || (b = qspace_branch_find(qs, &id)) == NULL || (b->state != BR_PREPARED && b->state != BR_COMMITTING))
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
	size_t n = b->n, n_stored = b->n_stored;

	b->n = b->bytes = b->cost = b->unsaved = 0;
	for (size_t i = 0; i < n; i++) {
		struct op o = op[i];
		if (i == n_stored)
			b->n_stored = b->n;
		if (o.kind == OP_DEQUEUE) {
			HASH_DELETE(hh, qs->held, o.h);	// NOLINT: inside uthash; it is added again
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
	if (n_stored >= n)
		b->n_stored = b->n;
}

static int	/* What the disk says that it is: prepared, ended by hand; BR_ACTIVE: it has nothing of it. */
state_on_disk(struct qspace *qs, struct branch *b, enum branch_state *s)
{
	struct branch_head h;
	struct rd r;
	uint8_t *v;
	size_t n;
	int rc = table_get_alloc(qs, T_BRANCHES, false, b->id.gtrid, b->id.len, &v, &n);

	*s = BR_ACTIVE;
	if (rc != 0)
		return rc == DB_NOTFOUND ? 0 : rc;
	r = (struct rd){ .p = v, .left = n };
	if (branch_head_decode(&r, &h) != 0)
		rc = env_error(qs, T_BRANCHES, "a prepared transaction cannot be read", EINVAL);
	else {
		*s = h.state;
		b->recorded = b->owned = true;
		memcpy(b->coordinator, h.coordinator, sizeof b->coordinator);
	}
	free(v);
	return rc;
}

static int	/* 1: it is over, or what it is now is read from the disk; 0: it goes on, with what it has in memory */
is_over(struct qspace *qs, struct branch *b)
{
	enum branch_state s;
	int rc = state_on_disk(qs, b, &s);

	if (rc != 0)
		return rc;
	if (s == BR_ACTIVE)
		return b->state != BR_ACTIVE ? 1 : branch_is_large(b) ? 0 : was_committed(qs, b);
	if (b->state == BR_ACTIVE && s == BR_PREPARED)
		branch_enter(b, BR_PREPARED);
	return b->state != s || s != BR_PREPARED;	/* what ends by and by goes on where the disk is */
}

int
branch_reload_all(struct qspace *qs, bool np_gone)
{
	struct branch *b, *next;
	int over;

	qs->sweep = true;
	for (b = qs->branches; b != NULL; b = next) {
		next = b->hh.next;
		if ((over = is_over(qs, b)) < 0)
			return over;
		if (over)
			branch_free(qs, b);
		else
			branch_recount(qs, b, np_gone);
	}
	return branch_load_all(qs);
}
