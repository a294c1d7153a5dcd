/*
 * threshold - capacity warnings: the command of a queue runs once when use reaches the high mark, and may run again
 * after use has fallen to the low mark.
 *
 *            reaches high               was run
 *   ARMED ---------------> DUE (durable) -------> OFF        a DUE queue is run again after a crash: a forwarder
 *     ^                                            |         that is not started would be worse than one started
 *     '--------------------------------------------'         twice
 *                     falls to low
 *
 * Use is looked at after each operation that others can see: a message stored or removed outside a transaction, a
 * branch as a whole, not what is inside it, and not the batch, which is nobody's.  A queue without a command costs a
 * comparison.
 */
#include <stdlib.h>

#include "qspace_impl.h"

enum { AGAIN_US = 1000000 };	/* until what could not be run is tried again */

static bool	/* use, as others see it, reaches the mark, or is above it */
is_at_least(const struct queue *q, bool np, const struct threshold *t, long mark, const struct qspace *qs, bool or_equal)
{
	const struct counters *n = &q->n;
	const struct hidden *less = &n->hidden;
	int64_t use, limit = mark;

	switch (t->unit) {
	case 'b':
		use = np ? n->np_bytes - less->np_bytes : n->bytes - less->bytes;
		break;
	case 'B':
		use = np ? (n->np_bytes - less->np_bytes + PAGE_BYTES - 1) / PAGE_BYTES : n->pages - less->pages;
		break;
	case 'm':
		use = np ? n->np_messages - less->np_messages : n->messages - less->messages;
		break;
	default:		/* of the whole space, or of the memory: exact, for 0 % means empty */
		use = 100 * (np ? n->np_bytes - less->np_bytes : n->pages - less->pages);
		limit = mark * (np ? np_limit(qs) : qs->params.pages);
		if (limit == 0 && mark > 0)
			return false;
	}
	return or_equal ? use >= limit : use > limit;
}

static void
fire(struct qspace *qs, struct queue *q, bool np)
{
	struct fired *f;

	if (qs->threshold == NULL)	/* whoever can run it finds it due */
		return;
	if (qs->n_fired == qs->cap_fired) {
		size_t cap = qs->cap_fired == 0 ? 8 : 2 * qs->cap_fired;
		if ((f = realloc(qs->fired, cap * sizeof *f)) == NULL) {
			ulog("QM_CAT:1355: WARN: queue space %s, queue %s: no memory to run the capacity command",
			    qs->params.name, q->p.name);
			return;
		}
		qs->fired = f;
		qs->cap_fired = cap;
	}
	qs->fired[qs->n_fired++] = (struct fired){ .q = q, .np = np };
}

static const struct threshold *
marks(const struct queue *q, bool np)
{
	return np ? &q->p.nonpersistent : &q->p.persistent;
}

static uint8_t *
state(struct queue *q, bool np)
{
	return np ? &q->n.np_armed : &q->n.armed;
}

static void
look(struct qspace *qs, struct queue *q, bool np)
{
	const struct threshold *t = marks(q, np);
	uint8_t *s = state(q, np);

	if (*s == TH_ARMED) {
		if (t->high > 0 && is_at_least(q, np, t, t->high, qs, true)) {
			*s = TH_DUE;
			fire(qs, q, np);
		}
	} else if (*s == TH_OFF && !is_at_least(q, np, t, t->low, qs, false)) {
		*s = TH_ARMED;
	}
}

void
threshold_look(struct qspace *qs, struct queue *q, bool np)
{
	if (qs->keeping)		/* they were there before */
		return;
	if (!qs->batch.in_branch) {
		look(qs, q, np);
		return;
	}
	if (q->look_later == 0) {
		q->look_next = qs->batch.look_later;
		qs->batch.look_later = q;
	}
	q->look_later |= (uint8_t)(1 << np);
}

void
threshold_branch(struct qspace *qs, bool inside)
{
	struct queue *q, *next;

	qs->batch.in_branch = inside;
	if (inside)
		return;
	for (q = qs->batch.look_later; q != NULL; q = next) {
		next = q->look_next;
		for (int np = 0; np < 2; np++)
			if (q->look_later >> np & 1)
				look(qs, q, np);
		q->look_later = 0;
	}
	qs->batch.look_later = NULL;
}

void
threshold_changed(struct qspace *qs, struct queue *q, const struct queue_params *was)
{
	for (int np = 0; np < 2; np++) {
		const struct threshold *t = marks(q, np), *old = np ? &was->nonpersistent : &was->persistent;
		/* New marks are looked at anew; a new command alone is for the next time. */
		if (t->high != old->high || t->low != old->low || t->unit != old->unit || old->cmd[0] == '\0')
			*state(q, np) = TH_ARMED;
		if (t->cmd[0] != '\0')
			look(qs, q, np);
		else
			*state(q, np) = TH_ARMED;
	}
}

/* --- after the batch --- */

void
threshold_run(struct qspace *qs)
{
	size_t left = 0;

	for (size_t i = 0; i < qs->n_fired; i++) {
		struct fired f = qs->fired[i];
		const struct threshold *t = marks(f.q, f.np);
		uint8_t *s = state(f.q, f.np);

		if (f.q->dying || *s != TH_DUE)
			continue;
		if (t->cmd[0] != '\0' && !qs->threshold(qs->threshold_arg, f.q->p.name, t->cmd)) {
			qs->fired[left++] = f;
			continue;
		}
		*s = is_at_least(f.q, f.np, t, t->low, qs, false) ? TH_OFF : TH_ARMED;
		if (!f.np && !f.q->armed_unwritten) {
			f.q->armed_unwritten = true;
			qs->n_unwritten++;
		}
	}
	qs->n_fired = left;
}

int64_t
threshold_next(const struct qspace *qs, int64_t now, int64_t next)
{
	if (qs->n_fired == 0 && qs->n_unwritten == 0)
		return next;
	return next < now + AGAIN_US ? next : now + AGAIN_US;
}

void
threshold_touch_unwritten(struct qspace *qs)
{
	for (struct queue *q = qs->n_unwritten > 0 ? qs->queues : NULL; q != NULL; q = q->next)
		if (q->armed_unwritten && !q->dying)
			queue_touch(qs, q);
}

void
threshold_written(struct qspace *qs, struct queue *q)
{
	if (q->armed_unwritten) {
		q->armed_unwritten = false;
		qs->n_unwritten--;
	}
}

void
threshold_forget(struct qspace *qs)
{
	for (struct queue *q = qs->batch.look_later; q != NULL; q = q->look_next)
		q->look_later = 0;
	qs->batch.look_later = NULL;
	qs->n_fired = qs->batch.n_fired;
}

void
threshold_drop(struct qspace *qs, struct queue *q)
{
	size_t n = 0;

	for (size_t i = 0; i < qs->n_fired; i++)
		if (qs->fired[i].q != q)
			qs->fired[n++] = qs->fired[i];
	qs->n_fired = n;
	threshold_written(qs, q);
}

void
threshold_find_due(struct qspace *qs)
{
	qs->n_fired = 0;
	for (struct queue *q = qs->queues; q != NULL; q = q->next)
		for (int np = 0; np < 2; np++)
			if (*state(q, np) == TH_DUE)
				fire(qs, q, np);
}

void
qspace_on_threshold(struct qspace *qs, bool (*fn)(void *, const char *, const char *), void *arg)
{
	qs->threshold = fn;
	qs->threshold_arg = arg;
	threshold_find_due(qs);
}
