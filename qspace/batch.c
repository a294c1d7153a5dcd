/*
 * batch - one Berkeley DB transaction for all that a round of requests changes, and memory that goes back with it.
 *
 * Memory is put back in three ways.  Counters and limits: a copy is taken at the first touch.  Windows of touched
 * queues are dropped: the next look reads the disk.  Branches are cut back to the operations they had; a branch that
 * ended in the batch keeps its holds until the commit, so nothing has to be taken again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qspace_impl.h"

enum { TRIES = 5, TRY_EVERY_MS = 20 };	/* to find out about a batch whose flush failed */
enum { STEPS = 256 };

int
qspace_batch_begin(struct qspace *qs)
{
	struct batch *b = &qs->batch;
	uint64_t no = b->no + 1;
	int rc;

	assert(!b->open);
	if (qs->env.panicked && (rc = space_reopen(qs)) != 0)
		return rc;
	keeper_let_catch_up(qs->env.keeper);
	*b = (struct batch){
		.open = true, .no = no, .steps = STEPS, .used = qs->used, .seq_limit = qs->seq_limit, .next_queue = qs->next_queue, .n_fired = qs->n_fired
	};
	memcpy(b->expired_to, qs->expired_to, sizeof b->expired_to);
	if ((rc = segments_begin(qs)) == 0)
		return 0;
	qspace_batch_abort(qs);
	return rc;
}

int
batch_write(struct qspace *qs, bool np)
{
	struct batch *b = &qs->batch;
	DB_ENV *e = np ? qs->env.np_e : qs->env.e;
	int rc;

	assert(b->open);
	if (b->rc != 0)
		return b->rc;
	if (np && qs->kept_token != 0)
		keep_changed(qs);
	if (b->txn[np] == NULL && (rc = e->txn_begin(e, NULL, &b->txn[np], 0)) != 0) {
		b->txn[np] = NULL;
		return batch_dead(qs, env_error(qs, N_TABLES, "begin", rc));
	}
	return 0;
}

void
batch_event(struct qspace *qs, struct queue *q, const uint8_t *msgid, const uint8_t *corrid)
{
	struct event *e;

	if (qs->eligible == NULL)
		return;
	if (qs->n_events == qs->cap_events) {
		size_t cap = qs->cap_events == 0 ? 64 : 2 * qs->cap_events;
		if ((e = realloc(qs->events, cap * sizeof *e)) == NULL)
			return;		/* whoever waits looks again at the next message */
		qs->events = e;
		qs->cap_events = cap;
	}
	e = &qs->events[qs->n_events++];
	e->q = q;
	memcpy(e->msgid, msgid, TMMSGIDLEN);
	if ((e->has_corrid = corrid != NULL))
		memcpy(e->corrid, corrid, TMCORRIDLEN);
}

static void
events_tell(struct qspace *qs)
{
	for (size_t i = 0; i < qs->n_events; i++) {
		const struct event *e = &qs->events[i];
		qs->eligible(qs->eligible_arg, e->q->p.name, e->msgid, e->has_corrid ? e->corrid : NULL);
	}
	qs->n_events = 0;
}

static bool	/* Is the time of last use to be written anew?  Also when the clock was set back: the next open compares it. */
use_is_old(const struct qspace *qs)
{
	int64_t now = clock_now_us();

	return now < qs->stored_us || now - qs->stored_us > 10 * 1000000;
}

static int	/* What goes with every batch: counters of the queues it touched, the space's record when due. */
batch_write_counters(struct qspace *qs)
{
	struct batch *b = &qs->batch;
	int rc;

	if (b->txn[0] != NULL && (rc = segments_write(qs)) != 0)
		return rc;
	threshold_touch_unwritten(qs);
	for (struct queue *q = b->queues; q != NULL; q = q->touched_next) {
		if (q->dying)
			continue;
		if ((rc = queue_write_counters(qs, q)) != 0)
			return rc;
	}
	return b->space_dirty || (b->txn[0] != NULL && use_is_old(qs)) ? space_write(qs) : 0;
}

static void
batch_done(struct qspace *qs)
{
	struct batch *b = &qs->batch;
	struct queue *q, *q_next;
	struct branch *br, *br_next;

	qs->counts.batches++;
	qs->counts.flushes += b->durable;
	qs->counts.enqueues += b->enqueues;
	qs->counts.dequeues += b->dequeues;
	for (br = b->branches; br != NULL; br = br_next) {
		br_next = br->touched_next;
		branch_after_commit(qs, br);
	}
	branches_release(qs);
	parts_after_commit(qs);
	b->open = false;
	for (q = b->queues; q != NULL && qs->n_unwritten > 0; q = q->touched_next)
		threshold_written(qs, q);
	events_tell(qs);
	threshold_run(qs);
	for (q = b->queues; q != NULL; q = q_next) {
		q_next = q->touched_next;
		free(q->saved_p);
		q->saved_p = NULL;
		q->created = false;
		if (q->dying)
			queue_forget(qs, q);
	}
}

/*
 * The commit failed.  Berkeley DB has taken it back, unless the flush itself failed: then nobody knows what is on disk
 * until it is written again and the log is read.  The answer is what the log says: a batch that is run again though it
 * happened would store its messages twice, and lose those that it took.
 */
static int
commit_find_out(struct qspace *qs, int failed)
{
	struct batch *b = &qs->batch;
	struct lsn mark = qs->env.marked;
	struct log_end end;

	b->segments = NULL;		/* they are opened anew */
	for (int i = 0; space_recover(qs, &end) != 0; i++) {
		if (i == TRIES) {
			qs->undecided = true;
			return batch_dead(qs, QSPACE_UNKNOWN);
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = TRY_EVERY_MS * 1000000 }, NULL);
	}
	return end.committed && end.mark.file == mark.file && end.mark.offset == mark.offset ? 0 : batch_dead(qs, failed);
}

static int
commit_on_disk(struct qspace *qs)
{
	unsigned failures = keeper_log_failures(qs->env.keeper);
	struct batch *b = &qs->batch;
	int rc;

	if ((rc = log_mark(qs)) != 0)
		return rc;
	b->durable = true;
	rc = b->txn[0]->commit(b->txn[0], DB_TXN_SYNC);
	b->txn[0] = NULL;		/* gone, whatever it answered */
	if (rc == 0 && keeper_log_failures(qs->env.keeper) != failures && (rc = qs->env.e->log_flush(qs->env.e, NULL)) != 0)
		qs->env.panicked = true;	/* flush.c: it is committed in memory, and not on disk */
	if (rc == 0) {
		qs->env.flushed = qs->env.marked;
		return 0;
	}
	rc = env_error(qs, N_TABLES, "commit", rc);
	return qs->env.panicked ? commit_find_out(qs, rc) : batch_dead(qs, rc);
}

int
qspace_batch_commit(struct qspace *qs)
{
	struct batch *b = &qs->batch;
	int rc;

	assert(b->open);
	if (b->rc != 0 || batch_write_counters(qs) != 0)
		return b->rc;
	if (b->txn[0] != NULL && (rc = commit_on_disk(qs)) != 0)
		return rc;
	if (b->txn[1] != NULL) {	/* memory alone changes: nothing to wait for, and nothing that a disk could refuse */
		rc = b->txn[1]->commit(b->txn[1], DB_TXN_NOSYNC);
		b->txn[1] = NULL;
		if (rc != 0)
			env_np_failed(qs, rc);
	}
	batch_done(qs);
	return 0;
}

bool
qspace_batch_writes(const struct qspace *qs)
{
	return qs->batch.open && qs->batch.txn[0] != NULL;
}

void
qspace_batch_abort(struct qspace *qs)
{
	struct batch *b = &qs->batch;
	struct queue *q, *q_next;
	struct branch *br, *br_next;
	int rc;

	assert(b->open);
	for (int np = 0; np < 2; np++) {
		if (b->txn[np] != NULL && (rc = b->txn[np]->abort(b->txn[np])) != 0)
			env_error(qs, N_TABLES, "abort", rc);
		b->txn[np] = NULL;
	}
	qs->n_events = 0;
	segments_abort(qs);
	threshold_forget(qs);
	qs->seq_limit = b->seq_limit;
	qs->next_queue = b->next_queue;
	memcpy(qs->expired_to, b->expired_to, sizeof qs->expired_to);
	parts_let_go(qs);
	for (br = b->branches; br != NULL; br = br_next) {
		br_next = br->touched_next;
		branch_after_abort(qs, br);	/* its holds tell the queues, so before them */
	}
	qs->used = b->used;
	for (q = b->queues; q != NULL; q = q_next) {
		q_next = q->touched_next;
		q->n = q->saved;
		if (q->saved_p != NULL)
			q->p = *q->saved_p;
		free(q->saved_p);
		q->saved_p = NULL;
		q->dying = false;
		queue_due(qs, q, q->n.next_due);
		window_drop(qs, q);
		if (q->created)
			queue_forget(qs, q);
	}
	parts_after_abort(qs);
	b->open = false;
	qs->next_event = qs->next_expiry = 0;	/* the next tick looks again */
	events_tell(qs);
}

void
qspace_on_eligible(struct qspace *qs, void (*fn)(void *, const char *, const uint8_t *, const uint8_t *), void *arg)
{
	qs->eligible = fn;
	qs->eligible_arg = arg;
}

void
qspace_counts(const struct qspace *qs, struct qspace_counts *out)
{
	DB_LOG_STAT *st;

	*out = qs->counts;
	out->checkpoints = qs->env.keeper == NULL ? 0 : keeper_checkpoint_count(qs->env.keeper);
	if (qs->env.e != NULL && qs->env.e->log_stat(qs->env.e, &st, 0) == 0) {
		out->log_bytes = (uint64_t)st->st_w_mbytes * MIB + st->st_w_bytes;
		free(st);
	}
}
