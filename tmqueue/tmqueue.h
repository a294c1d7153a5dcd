/*
 * tmqueue - a queue manager that serves one queue space, whatever brings the requests: server.c brings them from a
 * socket, a test by hand.
 */
#ifndef TMQUEUE_H
#define TMQUEUE_H

#include "action.h"
#include "coordinator.h"
#include "doubt.h"
#include "job.h"
#include "letters.h"
#include "link.h"
#include "orphan.h"
#include "qspace.h"
#include "reply.h"
#include "tx.h"

#define BATCH_MAX 256			/* requests of one batch */
#define BATCH_BYTES (8u << 20)		/* and their data, beyond which no more are taken in */
#define BATCH_SERVED 256		/* waiting operations that one batch may satisfy */

struct tmq {
	struct qspace *qs;
	char group[WIRE_GROUP];		/* told to whoever joins with a transaction */
	struct wire_groups ours;	/* this one, and others that have the same space */
	const char *space;		/* its name, for log lines */
	int64_t timeout_us;		/* -t */
	struct actions *actions;
	struct jobs jobs;
	struct txs *txs;
	struct letters *letters;	/* to other queue managers */
	struct coordinator *coordinator;
	struct doubts *doubts;
	struct orphans *orphans;
	struct replies replies;
	reply_send_fn *send;
	reply_left_fn *left;		/* set by who knows; NULL: nobody does */
	void *send_arg;			/* of both */
	struct unsent *unsent;		/* messages that the next batch puts back */
	int64_t unsent_us;		/* not before: it failed */
	bool batch_open;
	bool alone;			/* each request has a batch to itself, so that none fails for another's sake */
	size_t tries;			/* waiting operations that this batch tried or ended; at most BATCH_SERVED */
	struct named { struct link_peer peer; uint64_t reqid; } again[BATCH_SERVED];	/* actions to try in the next batch: what */
	size_t n_again;			/* is in their way is moved, some of it in each */
	int64_t next_tick_us;		/* clock_now_us() of the space's next event */
};

/* Put a manager over an open space.  0 or -1 (no memory); qs stays the caller's. */
int tmq_init(struct tmq *t, struct qspace *qs, const char *group, long timeout_s, reply_send_fn *send,
    void *send_arg);
void tmq_alias(struct tmq *t, const char *group);	/* its transactions are this space's too */
void tmq_done(struct tmq *t);		/* callers that still wait are dropped without an answer: tmq_dismiss() first */

/*
 * Run n <= BATCH_MAX requests and the waiting operations that may go on, as one batch with one flush, and answer those
 * that are to be answered.  Nothing leaves before the batch is on disk (D1).  When it fails each one runs in a batch of
 * its own.
 */
void batch_run(struct tmq *t, struct link_msg *m, size_t n);	/* a request that becomes a job keeps its frames: they are moved */
/* Before a batch, and when something came from other queue managers: what time brings.  No batch is open. */
void batch_turn(struct tmq *t);
bool batch_more(const struct tmq *t);	/* waiting operations, or jobs, may go on now: do not sleep */
/* When something is due without any request: clock_mono_us(). */
int64_t batch_next_event(struct tmq *t);
void tmq_dismiss(struct tmq *t);	/* the end: answer all who wait; nothing is taken */

/* --- between batch.c, dispatch.c and admin.c --- */

/*
 * One request, inside a batch.  Its answer, if it is due now, is added to t->replies.  0; QMESYSTEM, QMEOS: the batch is
 * dead, nothing was added.
 */
int dispatch(struct tmq *t, struct link_msg *m);
void dispatch_failed(struct tmq *t, const struct link_msg *m, int rc);	/* it failed in a batch of its own too: say so; no batch is open */
bool tmq_is_ending(const struct tmq *t, const struct branch_id *id);	/* decided, and others do not see all of it yet (QSPACE_AGAIN) */
bool tmq_serves(const struct tmq *t, const char *group);	/* this server serves the group's transactions */
bool dispatch_is_admin(const struct link_msg *m);
/* Try the waiting operation again.  0: answered, or it found nothing and cooled.  Else the batch is dead. */
int dispatch_action(struct tmq *t, struct action *a, const char *queue);
/* Some more of a large body, or of what is in the way; and the answer when that was all.  0, or the batch is dead. */
int dispatch_job(struct tmq *t, struct job *j, size_t bytes);
void dispatch_job_failed(struct tmq *t, struct job *j, int rc);
/* All that may go on now; a newcomer must not take what somebody waits for.  As dispatch_action(). */
int batch_serve_waiting(struct tmq *t);
void dispatch_action_failed(struct tmq *t, struct action *a, int rc);
void dispatch_action_end(struct tmq *t, struct action *a);	/* its time is up */

/* An ADMIN request, outside any batch: answered at once.  t NULL: this server stands by. */
void admin_answer(struct tmq *t, const struct link_msg *m, reply_send_fn *send, void *send_arg);
/* A server that stands by was asked something. */
void standby_answer(const struct link_msg *m, reply_send_fn *send, void *send_arg);

#endif
