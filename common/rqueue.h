/*
 * rqueue - requests of a service that wait for a server: the one with the highest priority first, in order of arrival among
 * equals, except that each tenth one taken is the oldest of all, so that low priorities are not passed over for ever.
 *
 * A member is part of what it is about.  Adding, taking and removing cost the same however many wait.
 * Threads    None of its own, no lock: the user's.
 */
#ifndef RQUEUE_H
#define RQUEUE_H

#include <stddef.h>
#include <stdint.h>

#define RQUEUE_PRIO_MAX 100		/* priorities are 1..100; one outside counts as 50 */
#define RQUEUE_PRIO_DEFAULT 50
#define RQUEUE_OLDEST_EVERY 10

struct rqueue_entry {			/* zero-initialise; it is in two lists: of its priority, and of all by age */
	struct rqueue_entry *prev, *next, *older, *younger;
	int prio;			/* 0: not in a queue */
};
struct rqueue {				/* zero-initialise */
	struct rqueue_entry *first[RQUEUE_PRIO_MAX + 1], *last[RQUEUE_PRIO_MAX + 1], *oldest, *youngest;
	uint64_t used[2];		/* which priorities have members */
	size_t n;
	unsigned taken;			/* since the oldest was last taken for its age */
};

void rqueue_add(struct rqueue *q, struct rqueue_entry *e, int prio);
struct rqueue_entry *rqueue_take(struct rqueue *q);	/* NULL: empty */
void rqueue_remove(struct rqueue *q, struct rqueue_entry *e);	/* one that is not in a queue: nothing */
struct rqueue_entry *rqueue_highest(const struct rqueue *q);	/* first of the highest priority, left where it is; NULL: empty */
/* The oldest, to walk over all by `younger`; NULL: empty. */
struct rqueue_entry *rqueue_oldest(const struct rqueue *q);

#endif
