/*
 * action - operations set aside until a message becomes eligible: dequeues with TPQWAIT, and watchers (QWAIT).
 *
 * Kept by queue and selector, so that an event costs a few look-ups however many wait, and in order of arrival. A set
 * of waiters that an event may satisfy is *hot*: its first action is to be tried, until one finds nothing (it cools).
 *
 * Batches    What was added or served counts once actions_commit() was called; actions_abort() restores the rest.
 * Time       clock_mono_us().
 */
#ifndef TMQUEUE_ACTION_H
#define TMQUEUE_ACTION_H

#include "link.h"
#include "wire.h"

#define ACTION_BASE 1024	/* waiting dequeues of a space made without -A; -A adds to them */
#define ACTION_WATCHERS 4096	/* watchers take no action of the space, but they are bounded too */

enum action_end {		/* what happens when its time is up */
	ACTION_END_SERVER,	/* TMQUEUE -t: QMENOMSG */
	ACTION_END_CALLER,	/* the caller stops waiting: TPETIME */
	ACTION_END_TX		/* the transaction's time is up: TPETIME, rollback-only */
};

struct action {
	struct link_peer peer;
	uint64_t reqid;
	int64_t since_us, deadline_us;
	enum action_end end;
	bool watch;
	struct wire_dequeue req;	/* watch: only reqid counts */
	/* action.c's own */
	uint64_t seq;
	struct action *next;		/* bucket of peer and reqid */
	struct action *batch_next;	/* served, or added, by the batch that runs */
	bool added, served;
	size_t heap_at;
	size_t n_places;
	struct seat { struct action *a; struct waiters *in; struct seat *prev, *next; } place[];
};

struct actions;
struct actions *actions_new(size_t limit);	/* NULL: no memory */
void actions_limit(struct actions *as, size_t limit);	/* from now on; those who wait stay */
void actions_free(struct actions *as);

/* NULL: no action is free (or no memory). */
struct action *action_wait(struct actions *as, const struct link_peer *peer, const struct wire_dequeue *req,
    int64_t deadline_us, enum action_end end);
struct action *action_watch(struct actions *as, const struct link_peer *peer, const struct wire_qwait *req,
    int64_t deadline_us);
void action_cancel(struct actions *as, const struct link_peer *peer, uint64_t reqid);	/* nothing when it is not there */

/* A message of the queue became eligible; msgid and corrid may be NULL. */
void actions_event(struct actions *as, const char *queue, const uint8_t *msgid, const uint8_t *corrid);
/* The action to try next, with the queue that has something; NULL: nobody is hot. */
struct action *actions_hot(struct actions *as, const char **queue);
void action_try(struct actions *as, struct action *a);		/* it is hot: something may be there for it */
void action_try_named(struct actions *as, const struct link_peer *peer, uint64_t reqid);	/* nothing when it is not there */
void actions_cool(struct actions *as, struct action *a);	/* it found nothing, and so will all like it */
void action_served(struct actions *as, struct action *a);	/* answered; freed at actions_commit() */

int64_t actions_next_deadline(const struct actions *as);	/* INT64_MAX: none */
/* An action whose time is up at `now`; it is to be answered and given back with action_served().  NULL: none. */
struct action *actions_due(struct actions *as, int64_t now);
struct action *actions_any(struct actions *as);			/* at the end; NULL: none left */
size_t actions_count(const struct actions *as);			/* waiting dequeues */
uint64_t actions_looked(const struct actions *as);		/* at how many sets, for events and to find who is next, so far */

void actions_commit(struct actions *as);
void actions_abort(struct actions *as);

#endif
