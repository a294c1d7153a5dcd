/*
 * job - requests that take several batches: a large body is written, or read, some of it in each; or many messages that
 * have expired, or are due, are moved out of the way of a dequeue; or the end of a large transaction is answered once others see it.
 *
 * What else the same client sends meanwhile is kept behind its job, so that its requests stay in their order; other
 * clients' go on.
 *
 * Batches    As in action.h: what is added or done counts at jobs_commit(); jobs_abort() takes it back.
 */
#ifndef TMQUEUE_JOB_H
#define TMQUEUE_JOB_H

#include "link.h"
#include "qspace.h"
#include "wire.h"

#define JOBS_ACTIVE 4			/* at a time; the others wait, so that bodies that are read are bounded in memory */
#define JOB_BYTES (256u << 10)		/* all of them together, in one batch */

struct job {
	struct link_peer peer;
	uint64_t reqid;
	int64_t since_us;
	bool in_tx;
	struct wire_tx tx;
	struct link_msg m;		/* what was asked: an enqueue with its body, or a dequeue that is tried again */
	struct wire_enqueue e;		/* spool not NULL: an enqueue */
	struct spool *spool;
	bool stored;			/* by the batch that runs */
	char queue[WIRE_NAME];		/* fetch not NULL: a dequeue */
	struct fetch *fetch;
	bool ending;			/* the transaction's end is decided, and is carried out by the engine: */
	struct branch_id branch;
	int error, outcome;		/* what its caller hears then; what else comes from there does not wait for it */
	/* job.c's own */
	struct link_msg *src;		/* not NULL: added by the batch that runs, its frames are there */
	bool fresh, done;
	struct behind *behind;
	struct job *prev, *next;
};

struct jobs { struct job *all; struct behind *ready; };

struct job *job_enqueue(struct jobs *js, struct link_msg *m, const struct wire_enqueue *e, struct spool *sp);	/* NULL: no memory */
struct job *job_dequeue(struct jobs *js, const struct link_peer *peer, const struct wire_dequeue *d, struct fetch *f);
struct job *job_again(struct jobs *js, struct link_msg *m, uint64_t reqid, const struct wire_tx *tx);
struct job *job_ending(struct jobs *js, const struct link_peer *peer, uint64_t reqid, const struct branch_id *id, int error, int outcome);
bool job_has_body(const struct job *j);
bool jobs_more(const struct jobs *js);	/* one may go on now; those that wait for the engine to end a transaction do not count */
struct job *job_of(const struct jobs *js, const struct link_peer *peer);	/* behind which its next request is to wait; NULL: none */
int job_put_behind(struct job *j, struct link_msg *m);	/* to be asked again when j is done; -1: no memory */
void job_cancel(struct jobs *js, const struct link_peer *peer, uint64_t reqid);	/* nothing when it is not there */
void job_done(struct job *j);		/* answered, or given up */
void jobs_commit(struct jobs *js);
void jobs_abort(struct jobs *js);
bool jobs_next_ready(struct jobs *js, struct link_msg *m);	/* one that was kept behind may go: it is the caller's */
void jobs_free(struct jobs *js);	/* dropped without an answer; no batch is open */

#endif
