/*
 * threshold - capacity warnings: the command of a queue runs once when use reaches the high mark, and may run again
 * after use has fallen to the low mark.
 */
#include <stdlib.h>

#include "qspace_impl.h"

static int64_t	/* What is used, in the unit of the mark; % is of the whole space, rounded down. */
level(char unit, int64_t messages, int64_t bytes, int64_t pages, int64_t whole, int64_t part)
{
	switch (unit) {
	case 'b':
		return bytes;
	case 'B':
		return pages;
	case 'm':
		return messages;
	case '%':
		return whole > 0 ? part * 100 / whole : 0;
	default:
		return -1;
	}
}

static void
fire(struct qspace *qs, struct queue *q, bool np)
{
	struct fired *f;

	if (qs->threshold == NULL || (np ? q->p.nonpersistent.cmd : q->p.persistent.cmd)[0] == '\0')
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

static bool	/* armed from now on? */
cross(struct qspace *qs, struct queue *q, bool np, const struct threshold *t, int64_t now, bool armed)
{
	if (now < 0 || t->high <= 0)
		return armed;
	if (armed && now >= t->high) {
		fire(qs, q, np);
		return false;
	}
	return armed || now <= t->low;
}

void
threshold_check(struct qspace *qs, struct queue *q)
{
	const struct counters *n = &q->n;
	const struct threshold *t = &q->p.persistent, *nt = &q->p.nonpersistent;

	q->n.armed = cross(qs, q, false, t, level(t->unit, n->messages, n->bytes, n->pages, qs->params.pages, n->pages),
	    n->armed);
	q->n.np_armed = cross(qs, q, true, nt, level(nt->unit, n->np_messages, n->np_bytes,
	    (n->np_bytes + PAGE_BYTES - 1) / PAGE_BYTES, qs->params.nonpersistent_bytes, n->np_bytes), n->np_armed);
}

void
threshold_run(struct qspace *qs)
{
	for (size_t i = 0; i < qs->n_fired; i++) {
		const struct queue *q = qs->fired[i].q;
		qs->threshold(
		    qs->threshold_arg, q->p.name, qs->fired[i].np ? q->p.nonpersistent.cmd : q->p.persistent.cmd);
	}
	qs->n_fired = 0;
}

void
threshold_forget(struct qspace *qs)
{
	qs->n_fired = 0;
}

void
qspace_on_threshold(struct qspace *qs, void (*fn)(void *, const char *, const char *), void *arg)
{
	qs->threshold = fn;
	qs->threshold_arg = arg;
}
