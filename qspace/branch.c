/*
 * branch - the part of a global transaction in this queue space: a list of operations in memory until it ends (D2).
 *
 *             prepare              decided: commit
 *   ACTIVE -------------> PREPARED ----------------> COMMITTED      one-phase: ACTIVE -> COMMITTED
 *      |                   |  |                                     nothing to commit: prepare ends it (read-only)
 *      | roll back,        |  | by hand
 *      | timeout, crash    |  '-----> HEUR_COMMITTED, HEUR_ROLLED_BACK: remembered until forgotten
 *      v                   | decided: roll back
 *   ABORTED <--------------'
 *
 * A branch of many operations is COMMITTING or ROLLING_BACK on its way to each of the four ends: decided, and carried out over several
 * batches.  PREPARED outlives a crash: in doubt until its coordinator, or an administrator, ends it.  So do the heuristic ones, and one
 * that is on its way (not an active one that was being rolled back: that is ABORTED by the crash).
 *
 * A branch that ends in a batch stays in memory, with its holds, until the batch has committed: then the holds are let
 * go.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

#define BRANCH_BYTES (256 * (int64_t)MIB)	/* of one branch's list; of all together: */
#define BRANCHES_BYTES (512 * (int64_t)MIB)

int64_t branch_bytes_max;

#define TO(s) (1u << (s))
static const struct { const char *name; unsigned next; } states[] = {
	[BR_ACTIVE]           = { "active", TO(BR_PREPARED) | TO(BR_COMMITTING) | TO(BR_COMMITTED) | TO(BR_ROLLING_BACK) |
				  TO(BR_ABORTED) },
	[BR_PREPARED]         = { "prepared", TO(BR_COMMITTING) | TO(BR_COMMITTED) | TO(BR_ROLLING_BACK) | TO(BR_ABORTED) |
				  TO(BR_HEUR_COMMITTED) | TO(BR_HEUR_ROLLED_BACK) },
	[BR_COMMITTING]       = { "committing", TO(BR_COMMITTED) | TO(BR_HEUR_COMMITTED) },
	[BR_ROLLING_BACK]     = { "rolling back", TO(BR_ABORTED) | TO(BR_HEUR_ROLLED_BACK) },
	[BR_COMMITTED]        = { "committed", 0 },
	[BR_ABORTED]          = { "aborted", 0 },
	[BR_HEUR_COMMITTED]   = { "heuristically committed", 0 },
	[BR_HEUR_ROLLED_BACK] = { "heuristically rolled back", 0 },
};

void
branch_enter(struct branch *b, enum branch_state next)
{
	assert(states[b->state].next & TO(next));
	b->state = next;
	due_set(&b->qs->due_branches, &b->due, NEVER);	/* a deadline binds an active one */
}

const char *
branch_state_name(enum branch_state s)
{
	return states[s].name;
}

bool
branch_is_heuristic(const struct branch *b)
{
	return b->state == BR_HEUR_COMMITTED || b->state == BR_HEUR_ROLLED_BACK;
}

/* --- in memory --- */

struct branch *
qspace_branch_find(struct qspace *qs, const struct branch_id *id)
{
	struct branch *b = NULL;

	if (id->len <= QSPACE_GTRID_MAX)
		HASH_FIND(hh, qs->branches, id->gtrid, id->len, b);
	return b;
}

void
branch_unhash(struct qspace *qs, struct branch *b)
{
	HASH_DELETE(hh, qs->branches, b);	// NOLINT: inside uthash
	b->ended = true;
}

void
branch_hash(struct qspace *qs, struct branch *b)	/* by the id's own length: most have a quarter of what an id may have */
{
	HASH_ADD_KEYPTR(hh, qs->branches, b->id.gtrid, b->id.len, b);
}

struct branch *
branch_new(struct qspace *qs, const struct branch_id *id)
{
	struct branch *b = calloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	if (due_room(&qs->due_branches, HASH_COUNT(qs->branches) + 1) != 0) {
		free(b);
		return NULL;
	}
	b->id.len = id->len;
	memcpy(b->id.gtrid, id->gtrid, id->len);
	b->qs = qs;
	b->until_us = NEVER;
	branch_hash(qs, b);
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
	b->saved.n = b->n;
	b->saved.bytes = b->bytes;
	b->saved.cost = b->cost;
	b->saved.n_stored = b->n_stored;
	b->saved.unsaved = b->unsaved;
	b->saved.done = b->done;
	b->saved.state = b->state;
	memcpy(b->saved.coordinator, b->coordinator, sizeof b->coordinator);
	b->saved.recorded = b->recorded;
	b->saved.owned = b->owned;
	b->saved.by_hand = b->by_hand;
	b->saved.uncounted = b->uncounted;
	b->saved.number = b->number;
	b->saved.chunks = b->chunks;
	b->saved.applied = b->applied;
	b->touched_next = t->branches;
	t->branches = b;
}

void
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

void
branch_drop_ops(struct qspace *qs, struct branch *b)
{
	while (b->n > 0)
		op_free(qs, &b->op[--b->n]);
	free(b->op);
	b->op = NULL;
	b->cap = b->bytes = b->cost = 0;
}

void
branch_free(struct qspace *qs, struct branch *b)
{
	branch_drop_ops(qs, b);
	branch_leaves_ending(qs, b);
	if (!b->ended)
		HASH_DELETE(hh, qs->branches, b);	// NOLINT: inside uthash
	free(b->hidden);
	due_set(&qs->due_branches, &b->due, NEVER);
	free(b);
}

void
branch_forget_all(struct qspace *qs)
{
	struct branch *b, *next;

	while (qs->releasing != NULL)
		branches_release(qs);
	for (b = qs->branches; b != NULL; b = next) {
		next = b->hh.next;
		branch_free(qs, b);
	}
}

int
branch_check(const struct branch *b)
{
	return b->doomed ? QMEABORTED : b->state != BR_ACTIVE || b->closed || b->ended ? QMEPROTO : 0;
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

int
op_room(struct qspace *qs, struct branch *b, size_t bytes)
{
	struct op *op;

	if ((int64_t)(b->cost + bytes) > (branch_bytes_max != 0 ? branch_bytes_max : BRANCH_BYTES) || qs->used.branch_bytes + (int64_t)bytes > BRANCHES_BYTES) {
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

void	/* Counters of the queue and of the space; the caller has touched them. */
op_append(struct qspace *qs, struct branch *b, const struct op *op, size_t bytes)
{
	b->op[b->n++] = *op;
	b->bytes += bytes;
	qs->used.branch_bytes += (int64_t)bytes;
	if (op->kind == OP_DEQUEUE) {
		held_add(qs, op->h);
		op->q->n.held++;
		b->cost += bytes;
	} else {
		/* What a record takes in memory is there until it is in a chunk. */
		b->cost += op_is_persistent(op) ? sizeof *op->m : bytes;
		b->unsaved += op_is_persistent(op) ? op->m->rec_len : 0;
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
	return chunk_when_due(qs, b);
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
	return chunk_when_due(qs, b);
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
	if (qs->params.trans > 0 && (int64_t)HASH_COUNT(qs->branches) - qs->used.heuristics >= qs->params.trans) {
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

void
qspace_branch_set_owner(struct branch *b, const char *who)
{
	snprintf(b->owner, sizeof b->owner, "%s", who);
}

void
qspace_branch_close(struct branch *b)
{
	if (b->state != BR_ACTIVE)
		return;
	b->closed = true;
	due_set(&b->qs->due_branches, &b->due, NEVER);
}

int
qspace_branch_list(struct qspace *qs, struct branch_info **out, size_t *n)
{
	struct branch *b, *next;
	struct branch_info *i;

	*n = 0;
	if ((*out = i = calloc(HASH_COUNT(qs->branches) + 1, sizeof *i)) == NULL)
		return QMEOS;
	for (b = qs->branches; b != NULL; b = next, i++) {
		next = b->hh.next;
		i->id = b->id;
		i->state = b->state;
		i->state_name = branch_state_name(b->state);
		memcpy(i->coordinator, b->coordinator, sizeof i->coordinator);
		memcpy(i->owner, b->owner, sizeof i->owner);
		i->began_us = b->began_us;
		i->deadline_us = b->deadline_us;
		i->doomed = b->doomed;
		i->closed = b->closed;
		i->bytes = (int64_t)b->bytes;
		for (size_t k = 0; k < b->n; k++)
			*(b->op[k].kind == OP_ENQUEUE ? &i->enqueues : &i->dequeues) += 1;
		(*n)++;
	}
	return 0;
}
