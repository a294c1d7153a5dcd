/*
 * branch_step - the end of a large branch, a chunk of its operations in each batch, so that nobody waits for all of them.
 *
 * Commit:    the decision is on disk first (COMMITTING).  Messages to come get their places one after the other, and are held,
 *            which hides them; those to go are removed.  The last batch takes the record of the branch away, and all of them are
 *            there at once: a hold of a branch that is over holds nothing.  The holds themselves are freed later.
 * Rollback:  chunk by chunk what was held comes back, and records that were written for nothing are deleted.
 *
 * A crash in between: the record says how far it came, and the next owner goes on.  A branch that was not prepared and is
 * being rolled back has no record; what is left of it ends with the crash, as any active one does.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "branch_impl.h"

enum { RELEASE_AT_ONCE = 2048 };
#define AGAIN_US 1000000	/* after a step that failed */

bool
branch_is_large(const struct branch *b)
{
	return b->number != 0;
}

bool
branch_is_ending(const struct branch *b)
{
	return b->state == BR_COMMITTING || b->state == BR_ROLLING_BACK;
}

/* --- what is applied and hidden still --- */

static struct hidden_sum *
hidden_of(struct branch *b, struct queue *q)
{
	struct hidden_sum *h;

	for (size_t i = b->n_hidden; i-- > 0;)
		if (b->hidden[i].q == q)
			return &b->hidden[i];
	if ((h = realloc(b->hidden, (b->n_hidden + 1) * sizeof *h)) == NULL)
		return NULL;
	b->hidden = h;
	h[b->n_hidden] = (struct hidden_sum){ .q = q };
	return &h[b->n_hidden++];
}

static void
hidden_add(struct hidden *to, const struct oval *v, int64_t by)
{
	if (v->flags & OV_NP) {
		to->np_messages += by;
		to->np_bytes += by * (int64_t)v->weight;
	} else {
		to->messages += by;
		to->bytes += by * (int64_t)v->bytes;
		to->pages += by * pages_of(v->bytes);
	}
}

int
op_hide(struct qspace *qs, struct branch *b, struct op *op)
{
	struct hidden_sum *sum = hidden_of(b, op->q);
	struct held *h = calloc(1, sizeof *h);

	if (sum == NULL || h == NULL) {
		free(h);
		return QMEOS;
	}
	h->seq = op->m->v.seq;
	h->q = op->q;
	h->b = b;
	h->v = op->m->v;
	h->hides = true;
	memcpy(h->msgid, op->m->msgid, TMMSGIDLEN);
	memcpy(h->corrid, op->m->corrid, TMCORRIDLEN);
	held_add(qs, h);
	op->h = h;
	hidden_add(&sum->n, &h->v, 1);
	hidden_add(&op->q->n.hidden, &h->v, 1);
	return 0;
}

static void	/* All of it is there. */
show_all(struct qspace *qs, struct branch *b)
{
	for (size_t i = 0; i < b->n_hidden; i++) {
		struct queue *q = b->hidden[i].q;
		struct hidden *n = &q->n.hidden;
		const struct hidden *less = &b->hidden[i].n;

		queue_touch(qs, q);
		n->messages -= less->messages;
		n->bytes -= less->bytes;
		n->pages -= less->pages;
		n->np_messages -= less->np_messages;
		n->np_bytes -= less->np_bytes;
		for (int np = 0; np < 2; np++)
			if ((np ? q->p.nonpersistent.cmd : q->p.persistent.cmd)[0] != '\0')
				threshold_look(qs, q, np);
	}
}

/* --- one step --- */

static int	/* The operations of the next chunk, or, of those that are in none, the rest. */
step_ops(struct qspace *qs, struct branch *b)
{
	int64_t now = clock_now_us();
	size_t end = b->done;
	int rc = 0;

	while (end < b->n && (b->applied < b->chunks ? b->op[end].chunk == b->applied : end < b->done + CHUNK_OPS))
		end++;
	threshold_branch(qs, true);
	for (; b->done < end && rc == 0; b->done++)
		rc = b->state == BR_COMMITTING ? op_commit(qs, b, &b->op[b->done], now) :
		    op_rollback(qs, b, &b->op[b->done], &b->why, now);
	threshold_branch(qs, false);
	return rc;
}

static int	/* Its record goes, or becomes that of an outcome by hand. */
last_step(struct qspace *qs, struct branch *b)
{
	bool commit = b->state == BR_COMMITTING;
	int rc = 0;

	if (commit) {
		show_all(qs, b);
		if ((rc = chunks_own_nothing(qs, b)) != 0)
			return rc;
	}
	if (!b->by_hand) {
		if (commit || b->recorded)
			rc = branch_gone(qs, b);
		else
			branch_unhash(qs, b);
		branch_enter(b, commit ? BR_COMMITTED : BR_ABORTED);
		return rc;
	}
	branch_enter(b, commit ? BR_HEUR_COMMITTED : BR_HEUR_ROLLED_BACK);
	b->emptied = true;
	return branch_write(qs, b);
}

static int
step(struct qspace *qs, struct branch *b)
{
	int rc;

	branch_touch(qs, b);
	if ((rc = step_ops(qs, b)) != 0)
		return rc;
	if (b->state == BR_ROLLING_BACK && b->applied < b->chunks && (rc = chunk_remove(qs, b, b->applied)) != 0)
		return rc;
	if (b->applied < b->chunks)
		b->applied++;
	if (b->done == b->n && b->applied == b->chunks)
		return last_step(qs, b);
	return b->recorded ? branch_write(qs, b) : 0;
}

int
branches_step(struct qspace *qs, int64_t mono)
{
	struct branch *b = qs->ending;
	int rc;

	if (b == NULL || mono < qs->step_after_us)
		return 0;
	DL_DELETE2(qs->ending, b, end_prev, end_next);	/* they take turns */
	DL_APPEND2(qs->ending, b, end_prev, end_next);
	if (!branch_is_ending(b))	/* its last step is in this batch */
		return 1;
	if ((rc = step(qs, b)) == 0)
		return 1;
	qs->step_after_us = mono + AGAIN_US;
	return batch_dead(qs, rc);
}

bool
branches_hide_memory(const struct qspace *qs)
{
	for (const struct branch *b = qs->ending; b != NULL; b = b->end_next)
		for (size_t i = 0; i < b->n_hidden; i++)
			if (b->hidden[i].n.np_messages > 0)
				return true;
	return false;
}

void
branch_begins_to_end(struct qspace *qs, struct branch *b)
{
	if (!b->listed)
		DL_APPEND2(qs->ending, b, end_prev, end_next);
	b->listed = true;
}

void
branch_leaves_ending(struct qspace *qs, struct branch *b)
{
	if (b->listed)
		DL_DELETE2(qs->ending, b, end_prev, end_next);
	b->listed = false;
}

/* --- after the batch --- */

static void
op_done(struct qspace *qs, struct branch *b, struct op *op)
{
	size_t bytes = 0;

	if (op->kind == OP_DEQUEUE) {
		op_let_go(qs, op);
		bytes = sizeof *op->h;
		op_free(qs, op);
	} else if (op->h == NULL) {	/* not to be */
		bytes = sizeof *op->m + op->m->rec_len;
		op_free(qs, op);
	} else {
		bytes = sizeof *op->m + op->m->rec_len - sizeof *op->h;
		if (op->pinned)
			parts_unpin(qs, op->m->parts);
		op->pinned = false;
		free(op->m);
		op->m = NULL;
	}
	b->bytes -= bytes;
	qs->used.branch_bytes -= (int64_t)bytes;
}

void
steps_after_commit(struct qspace *qs, struct branch *b)
{
	for (size_t i = b->saved.done; i < b->done; i++)
		op_done(qs, b, &b->op[i]);
	if (branch_is_ending(b))
		return;
	branch_leaves_ending(qs, b);
	b->over = true;		/* from now on its holds hold nothing */
	for (size_t i = 0; i < b->n_hidden; i++) {
		static const uint8_t none[TMMSGIDLEN];
		window_drop(qs, b->hidden[i].q);
		batch_event(qs, b->hidden[i].q, none, NULL);	/* for who takes any; the others hear when the hold is freed */
	}
	free(b->hidden);
	b->hidden = NULL;
	b->n_hidden = 0;
	memset(qs->expired_to, 0, sizeof qs->expired_to);	/* they were passed over */
	qs->next_event = qs->next_expiry = 0;
	b->releasing = true;
	DL_APPEND2(qs->releasing, b, end_prev, end_next);
}

void
steps_after_abort(struct qspace *qs, struct branch *b)
{
	for (size_t i = b->saved.done; i < b->done && i < b->n; i++) {
		struct op *op = &b->op[i];
		op->fate = FATE_HELD;
		if (op->kind == OP_ENQUEUE && op->h != NULL) {
			hidden_add(&hidden_of(b, op->q)->n, &op->h->v, -1);	/* it is there */
			hold_release(qs, op->h);
			op->h = NULL;
		}
	}
}

void
branches_release(struct qspace *qs)
{
	struct branch *b;

	for (int i = 0; i < RELEASE_AT_ONCE && (b = qs->releasing) != NULL; i++) {
		struct op *op = b->n > 0 ? &b->op[b->n - 1] : NULL;
		if (op == NULL) {
			DL_DELETE2(qs->releasing, b, end_prev, end_next);
			b->releasing = b->over = false;
			b->done = b->n_stored = 0;
			b->number = 0;
			qs->sweep = true;	/* the chunks of one that is remembered are nobody's only now */
			if (b->ended)
				branch_free(qs, b);
			else
				branch_drop_ops(qs, b);
			continue;
		}
		if (op->h != NULL) {
			batch_event(qs, op->q, op->h->msgid, op->h->v.flags & OV_CORRID ? op->h->corrid : NULL);
			b->bytes -= sizeof *op->h;
			qs->used.branch_bytes -= (int64_t)sizeof *op->h;
		}
		if (op->h != NULL)
			op->q->n.pending--;
		op_free(qs, op);
		b->n--;
	}
}
