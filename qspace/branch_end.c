/*
 * branch_end - commit, rollback, by hand: the operations of a branch are carried out in the batch; what it held is let
 * go once the batch has committed.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

enum { ERRORQ_WAIT_MAX = 60 };

static const struct wire_why doomed = { .error = TPEABORT, .text = "the transaction could only be rolled back" };
static const struct place in_order = { .delayed = false };

int
branch_gone(struct qspace *qs, struct branch *b)
{
	int rc = 0;

	if (b->recorded) {
		keep_changed(qs);
		rc = table_del(qs, T_BRANCHES, false, b->id.gtrid, b->id.len);
	}
	branch_unhash(qs, b);
	return rc == DB_NOTFOUND ? 0 : rc;	/* nothing of it was persistent, in a space of an earlier version */
}

static int	/* Its operations have been carried out. */
branch_end(struct qspace *qs, struct branch *b, enum branch_state how)
{
	int rc;

	qs->used.branch_bytes -= (int64_t)b->bytes;
	rc = branch_gone(qs, b);
	branch_enter(b, how);
	return rc;
}

bool
op_is_persistent(const struct op *op)
{
	return !((op->kind == OP_ENQUEUE ? op->m->v.flags : op->h->v.flags) & OV_NP);
}

static bool	/* The prepared record owns its body in parts; until then, and in memory, nobody does. */
op_owns_parts(const struct branch *b, const struct op *op)
{
	return b->owned && op_is_persistent(op);
}

static int	/* The message of an enqueue is not to be. */
enqueue_forget(struct qspace *qs, struct branch *b, struct op *op)
{
	int rc;

	used_add(qs, &op->m->v, -1);
	if (op->m->stored && (rc = heap_del(qs, false, op->m->v.rid, store_weight(&op->m->v))) != 0 && rc != DB_NOTFOUND)
		return rc;
	return op->m->parts != 0 && op_owns_parts(b, op) ? parts_disown(qs, false, op->m->parts) : 0;
}

int
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
	if (op->m->v.expires_us != 0 && op->m->v.expires_us <= now) {	/* expired while it waited */
		op->q->n.pending--;
		return enqueue_forget(qs, b, op);
	}
	if (!branch_is_ending(b))
		op->q->n.pending--;
	else if ((rc = op_hide(qs, b, op)) != 0)
		return batch_dead(qs, rc);
	if ((rc = store_put(qs, op->q, op->m, now)) == 0 && op->m->parts != 0 && !op_owns_parts(b, op))
		rc = parts_own(qs, op->m->v.flags & OV_NP, op->m->parts);
	return rc;
}

static int
ops_commit(struct qspace *qs, struct branch *b)
{
	int64_t now = clock_now_us();
	int rc;

	branch_touch(qs, b);
	threshold_branch(qs, true);
	for (size_t i = 0; i < b->n; i++)
		if ((rc = op_commit(qs, b, &b->op[i], now)) != 0)
			return rc;
	threshold_branch(qs, false);
	return 0;
}

int
branch_doomed(struct qspace *qs, struct branch *b)
{
	int rc = qspace_branch_rollback_because(qs, b, &doomed);

	return rc != 0 && rc != QSPACE_AGAIN ? rc : QMEABORTED;
}

/* --- a large one: it is decided here, and carried out by branch_step.c --- */

static int
large_end(struct qspace *qs, struct branch *b, enum branch_state how)
{
	int rc;

	branch_touch(qs, b);
	keep_changed(qs);
	if (how == BR_COMMITTING && ((rc = chunk_write(qs, b)) != 0 || (rc = branch_own_parts(qs, b)) != 0))
		return rc;
	branch_enter(b, how);
	branch_begins_to_end(qs, b);
	b->recorded |= how == BR_COMMITTING;
	if (b->recorded && (rc = branch_write(qs, b)) != 0)
		return rc;
	return QSPACE_AGAIN;
}

bool
qspace_branch_is_by_hand(const struct branch *b)
{
	return branch_is_heuristic(b) || (branch_is_ending(b) && b->by_hand);
}

int
qspace_branch_commit(struct qspace *qs, struct branch *b)
{
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (qspace_branch_is_by_hand(b))
		return QMEPROTO;
	if (b->state == BR_COMMITTING)
		return QSPACE_AGAIN;
	if (b->doomed || b->state == BR_ROLLING_BACK)
		return branch_doomed(qs, b);
	if (branch_is_large(b))
		return large_end(qs, b, BR_COMMITTING);
	return (rc = ops_commit(qs, b)) != 0 ? rc : branch_end(qs, b, BR_COMMITTED);
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

static bool
is_expired(const struct oval *v, int64_t now)
{
	return v->expires_us != 0 && v->expires_us <= now;
}

static int	/* It expired while it was held. */
op_expire(struct qspace *qs, struct op *op)
{
	const struct held *h = op->h;
	int rc = store_remove(qs, op->q, &h->key, &h->v, &in_order, h->corrid);

	if (rc == 0)
		used_add(qs, &h->v, -1);
	return rc;
}

int
op_rollback(struct qspace *qs, struct branch *b, struct op *op, const struct wire_why *why, int64_t now)
{
	struct held *h = op->h;
	struct oval v;

	queue_touch(qs, op->q);
	if (op->kind == OP_ENQUEUE) {
		op->q->n.pending--;
		return enqueue_forget(qs, b, op);
	}
	v = h->v;
	op->fate = FATE_GONE;
	op->after = v;
	if (is_expired(&v, now))
		return op_expire(qs, op);
	if (b->uncounted) {		/* it never left its place */
		op->fate = FATE_BACK;
		return 0;
	}
	v.retries += v.retries < UINT32_MAX;
	if (v.failed_us == 0)
		v.failed_us = now;
	op->after = v;
	if (v.retries > (uint64_t)op->q->p.retries)
		return retries_spent(qs, op, &v, why, now);
	if (op->q->p.retry_delay > 0)
		return store_delay(qs, op->q, &h->key, &v, h->corrid, now + op->q->p.retry_delay * 1000000);
	op->fate = FATE_BACK;
	return store_retry(qs, &h->key, &v);
}

static void
why_set_for(struct branch *b, const struct wire_why *because)
{
	b->why = (struct wire_why){ .text = "transaction rolled back" };
	if (because == NULL)
		return;
	b->why = *because;
	for (char *c = b->why.text; *c != '\0'; c++)	/* a peer's words, which end in the log */
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static int
ops_rollback(struct qspace *qs, struct branch *b)
{
	int64_t now = clock_now_us();
	int rc;

	branch_touch(qs, b);
	threshold_branch(qs, true);
	for (size_t i = 0; i < b->n; i++)
		if ((rc = op_rollback(qs, b, &b->op[i], &b->why, now)) != 0)
			return rc;
	threshold_branch(qs, false);
	return 0;
}

int
qspace_branch_rollback_because(struct qspace *qs, struct branch *b, const struct wire_why *because)
{
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (qspace_branch_is_by_hand(b) || b->state == BR_COMMITTING)
		return QMEPROTO;
	if (b->state == BR_ROLLING_BACK)
		return QSPACE_AGAIN;
	why_set_for(b, because);
	if (branch_is_large(b))
		return large_end(qs, b, BR_ROLLING_BACK);
	return (rc = ops_rollback(qs, b)) != 0 ? rc : branch_end(qs, b, BR_ABORTED);
}

int
qspace_branch_rollback_uncounted(struct qspace *qs, struct branch *b, const struct wire_why *because)
{
	if (qs->batch.rc == 0 && b->state == BR_ACTIVE) {
		branch_touch(qs, b);
		b->uncounted = true;
	}
	return qspace_branch_rollback_because(qs, b, because);
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
		if ((rc = qspace_branch_rollback_because(qs, b, &late)) != 0 && rc != QSPACE_AGAIN)
			return rc;
		n++;
	}
	return n;
}

/* --- by hand --- */

static const struct wire_why administrator = { .error = TPEABORT, .text = "rolled back by an administrator" };

/* The record of the outcome takes the place of the prepared one, on disk too; of those there are no more than the space has
 * transactions. */
int
qspace_branch_by_hand(struct qspace *qs, struct branch *b, bool commit)
{
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b->state != BR_PREPARED || b->ended)
		return QMEPROTO;
	if (qs->params.trans > 0 && qs->used.heuristics >= qs->params.trans) {
		space_say_full(qs, FULL_TRANS);
		return QMENOSPACE;
	}
	why_set_for(b, &administrator);
	branch_touch(qs, b);
	b->by_hand = true;
	qs->used.heuristics++;
	if (branch_is_large(b))
		return large_end(qs, b, commit ? BR_COMMITTING : BR_ROLLING_BACK);
	if ((rc = commit ? ops_commit(qs, b) : ops_rollback(qs, b)) != 0)
		return rc;
	keep_changed(qs);
	branch_enter(b, commit ? BR_HEUR_COMMITTED : BR_HEUR_ROLLED_BACK);
	b->emptied = true;
	qs->used.branch_bytes -= (int64_t)b->bytes;
	return branch_write(qs, b);
}

int
qspace_branch_forget(struct qspace *qs, struct branch *b)
{
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (!branch_is_heuristic(b) || b->ended)
		return QMEPROTO;
	branch_touch(qs, b);
	qs->used.heuristics--;
	return branch_gone(qs, b);
}

/* --- after the batch --- */

void	/* and it is offered where it came back */
op_let_go(struct qspace *qs, struct op *op)
{
	const struct held *h = op->h;

	op->q->n.held--;
	if (op->fate != FATE_BACK)
		return;
	window_insert(qs, op->q, &h->key, &op->after, h->v.flags & OV_CORRID ? h->corrid : NULL);
	batch_event(qs, op->q, h->msgid, h->v.flags & OV_CORRID ? h->corrid : NULL);
}

void
branch_after_commit(struct qspace *qs, struct branch *b)
{
	b->begun = false;
	if (branch_is_large(b)) {
		chunks_after_commit(qs, b);
		if (b->listed)
			steps_after_commit(qs, b);
		b->emptied = false;
		return;
	}
	if (!b->ended && !b->emptied)
		return;
	for (size_t i = 0; i < b->n; i++)
		if (b->op[i].kind == OP_DEQUEUE)
			op_let_go(qs, &b->op[i]);
	if (b->ended) {
		branch_free(qs, b);
		return;
	}
	b->emptied = false;
	branch_drop_ops(qs, b);
}

void
branch_after_abort(struct qspace *qs, struct branch *b)
{
	while (b->n > b->saved.n) {
		struct op *op = &b->op[--b->n];
		if (op->kind == OP_DEQUEUE)
			batch_event(qs, op->q, op->h->msgid, op->h->v.flags & OV_CORRID ? op->h->corrid : NULL);
		op_free(qs, op);
	}
	chunks_after_abort(b);
	steps_after_abort(qs, b);
	b->bytes = b->saved.bytes;
	b->cost = b->saved.cost;
	b->n_stored = b->saved.n_stored;
	b->unsaved = b->saved.unsaved;
	b->done = b->saved.done;
	b->state = b->saved.state;
	b->recorded = b->saved.recorded;
	b->owned = b->saved.owned;
	b->by_hand = b->saved.by_hand;
	b->uncounted = b->saved.uncounted;
	b->number = b->saved.number;
	b->chunks = b->saved.chunks;
	b->applied = b->saved.applied;
	if (!branch_is_ending(b))
		branch_leaves_ending(qs, b);
	due_set(&qs->due_branches, &b->due, b->state == BR_ACTIVE && !b->closed ? b->until_us : NEVER);
	memcpy(b->coordinator, b->saved.coordinator, sizeof b->coordinator);
	b->emptied = false;
	if (b->ended) {
		b->ended = false;
		branch_hash(qs, b);
	}
	if (b->begun)
		branch_free(qs, b);
}
