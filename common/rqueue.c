#include "rqueue.h"

static void
used_set(struct rqueue *q, int prio)
{
	uint64_t bit = UINT64_C(1) << (prio & 63);

	if (q->first[prio] != NULL)
		q->used[prio >> 6] |= bit;
	else
		q->used[prio >> 6] &= ~bit;
}

static int	/* of a queue that is not empty */
highest(const struct rqueue *q)
{
	return q->used[1] != 0 ? 127 - __builtin_clzll(q->used[1]) : 63 - __builtin_clzll(q->used[0]);
}

void
rqueue_add(struct rqueue *q, struct rqueue_entry *e, int prio)
{
	if (prio < 1 || prio > RQUEUE_PRIO_MAX)
		prio = RQUEUE_PRIO_DEFAULT;
	*e = (struct rqueue_entry){ .prio = prio, .prev = q->last[prio], .older = q->youngest };
	if (e->prev != NULL)
		e->prev->next = e;
	else
		q->first[prio] = e;
	if (e->older != NULL)
		e->older->younger = e;
	else
		q->oldest = e;
	q->last[prio] = q->youngest = e;
	used_set(q, prio);
	q->n++;
}

void
rqueue_remove(struct rqueue *q, struct rqueue_entry *e)
{
	if (e->prio == 0)
		return;
	if (e->prev != NULL)
		e->prev->next = e->next;
	else
		q->first[e->prio] = e->next;
	if (e->next != NULL)
		e->next->prev = e->prev;
	else
		q->last[e->prio] = e->prev;
	if (e->older != NULL)
		e->older->younger = e->younger;
	else
		q->oldest = e->younger;
	if (e->younger != NULL)
		e->younger->older = e->older;
	else
		q->youngest = e->older;
	used_set(q, e->prio);
	q->n--;
	*e = (struct rqueue_entry){ 0 };
}

struct rqueue_entry *
rqueue_take(struct rqueue *q)
{
	struct rqueue_entry *e;

	if (q->n == 0)
		return NULL;
	if (++q->taken >= RQUEUE_OLDEST_EVERY) {
		q->taken = 0;
		e = q->oldest;
	} else
		e = q->first[highest(q)];
	rqueue_remove(q, e);
	return e;
}

struct rqueue_entry *
rqueue_highest(const struct rqueue *q)
{
	return q->n == 0 ? NULL : q->first[highest(q)];
}

struct rqueue_entry *
rqueue_oldest(const struct rqueue *q)
{
	return q->oldest;
}
