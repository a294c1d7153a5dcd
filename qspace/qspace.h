/*
 * qspace - durable queues kept in one Berkeley DB environment (DESIGN section 6).  No networking; usable in process.
 *
 * Errors     0, or one of the negative QME codes of atmi.h; the cause is logged where it is found.
 * Ownership  What arrives through an `out` pointer is yours to free with the function named there.  Strings passed in are copied.
 * Time       int64_t microseconds since the epoch; from clock_now_us().
 * Threads    A struct qspace belongs to one thread, the writer.  Checkpoints and spare log files are made by threads of its own.
 *
 * Batches    All that changes the disk happens between qspace_batch_begin() and qspace_batch_commit(): one Berkeley DB
 *            transaction, one flush.  Nothing may be acknowledged before commit returned 0 (D1).  When an operation or
 *            the commit fails with QMESYSTEM or QMEOS the batch is dead: qspace_batch_abort() puts memory and disk back to
 *            where they were, and the caller runs its requests again, one batch each.  An operation that fails with any
 *            other code has changed nothing and leaves the batch usable.
 */
#ifndef QSPACE_H
#define QSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atmi.h"
#include "wire.h"	/* struct document, record: the vocabulary of administration; struct wire_why */

#define QSPACE_NAME_MAX 15
#define QSPACE_GTRID_MAX WIRE_GTRID_MAX

#define QSPACE_BODY_MAX ((size_t)1 << 30)	/* bytes of a message */

struct qspace;
struct branch;			/* the part of a global transaction in this queue space */

/* --- a queue space as a whole --- */

struct qspace_params {
	char name[QSPACE_NAME_MAX + 1];
	long ipckey, pages, queues, trans, procs, messages;	/* limits that hold: QMENOSPACE */
	char errorq[TMQNAMELEN + 1];
	bool init;
	long blocking;
	long actions, handles, cursors, owners, tmpqueues, filter_memory, overflow_memory;	/* -A -H -C -O -Q -f -o */
	int64_t nonpersistent_bytes;				/* -n, rounded up to DEVICE_PAGE */
};
/* Reserve pages on the device, make the directory and the tables.  *why: one malloc'ed line.  0, or a DEVE code of device.h. */
int qspace_create(const char *device, const struct qspace_params *p, char **why);
int qspace_destroy(const char *device, const char *name, bool force, char **why);	/* needs the ownership lock itself */

enum { QSPACE_OWNED = -100 };	/* another process owns the space */
/* Of a commit: the disk failed so that nobody can tell whether the batch happened.  Answer QMESYSTEM, do not run it again. */
enum { QSPACE_UNKNOWN = -102 };
/*
 * Take the ownership lock, recover, load what is in doubt.  `endpoint`, when not NULL, is written beside the lock so
 * that others can find the owner.  QSPACE_OWNED: somebody else has it; *why names the pid.  QMESYSTEM, QMEOS, QMERELEASE
 * (disk version; nothing was written), QMEBADRMID (no such device or space): *why has the line.
 */
int qspace_open(const char *device, const char *name, const char *endpoint, struct qspace **out, char **why);
void qspace_close(struct qspace *qs);	/* checkpoint, close, give the lock back; open branches are rolled back; NULL is fine */
/* Nobody owns the space, and it has non-persistent messages from its last close.  Nothing is opened. */
bool qspace_has_kept(const char *device, const char *name);
/* Where the owner listens; -1 when nobody owns the space (or nothing is written there). */
int qspace_owner(const char *device, const char *name, char *endpoint, size_t size, long *pid);
const struct qspace_params *qspace_params(const struct qspace *qs);

/* --- queues --- */

enum qcriterion { QC_NONE = 0, QC_PRIORITY, QC_TIME, QC_EXPIRATION, QC_FIFO, QC_LIFO };
struct queue_params {
	char name[TMQNAMELEN + 1];
	uint8_t order[4];		/* enum qcriterion, most significant first; always ends in QC_FIFO or QC_LIFO */
	bool top, msgid;		/* out-of-order enqueuing allowed */
	long retries, retry_delay;	/* times; seconds */
	struct threshold { long high, low; char unit; char cmd[128]; } persistent, nonpersistent;	/* unit: b B m % */
	bool default_nonpersistent;	/* delivery policy */
	int64_t default_expiration;	/* seconds after arrival; -1 none */
};
struct queue_stat { int64_t messages, bytes, blocks, np_messages, np_bytes, held, delayed; };

int qspace_queue_create(struct qspace *qs, const struct queue_params *p);	/* QMEBADQUEUE exists, QMENOSPACE too many, QMEINVAL.  In a batch */
int qspace_queue_change(struct qspace *qs, const struct queue_params *p);	/* everything but the order.  In a batch */
/* QMEBADQUEUE none such; QMEINUSE has messages (purge false) or messages held by a branch.  In a batch */
int qspace_queue_destroy(struct qspace *qs, const char *name, bool purge);
int qspace_queue_get(struct qspace *qs, const char *name, struct queue_params *p, struct queue_stat *st);
/* Names in the order of creation; *after NULL: the first; NULL at the end.  Valid until queues change. */
const char *qspace_queue_next(struct qspace *qs, const char *after);

/* --- batches --- */

int qspace_batch_begin(struct qspace *qs);
int qspace_batch_commit(struct qspace *qs);	/* one flush when anything was written, none otherwise */
void qspace_batch_abort(struct qspace *qs);
bool qspace_batch_writes(const struct qspace *qs);	/* its commit will flush, by what was done so far */
struct qspace_counts { uint64_t flushes, log_bytes, batches, enqueues, dequeues, checkpoints, steps; };	/* steps: of walks */
void qspace_counts(const struct qspace *qs, struct qspace_counts *out);

/* --- messages --- */

/* What the enqueuer gave.  Members count when their bit in `flags` is on; urcode, cltid, appkey, type always do. */
struct qmsg_in {
	uint32_t flags;			/* TPQ bits */
	int64_t deq_time, exp_time;	/* seconds, as TPQTIME_ABS/REL, TPQEXPTIME_ABS/REL say */
	int32_t priority, delivery_qos, reply_qos;
	uint8_t msgid[TMMSGIDLEN];	/* TPQBEFOREMSGID */
	uint8_t corrid[TMCORRIDLEN];
	const char *replyqueue, *failurequeue;
	int64_t urcode, cltid[4], appkey;
	const char *type, *subtype;
	bool has_body; const void *body; size_t body_len;
	struct spool *spool;		/* not NULL: the body is in there (all of it), and `body` is not looked at */
};
/*
 * Store a message.  b NULL: in the batch, visible once it commits.  Otherwise on the branch's list (body copied), visible when
 * the branch commits.  msgid gets the new identifier.
 *   QMEINVAL bad combination or value   QMEBADQUEUE no such queue   QMEBADMSGID TPQBEFOREMSGID names none
 *   QMENOSPACE pages, messages, non-persistent memory or branch list full   QMEPROTO branch not active
 */
int qspace_enqueue(struct qspace *qs, struct branch *b, const char *queue, const struct qmsg_in *in, uint8_t msgid[TMMSGIDLEN]);

struct qselect {
	uint32_t flags;			/* TPQGETBYMSGID, TPQGETBYCORRID (old bits too), TPQPEEK; WIRE_QDELAYED with TPQGETBYMSGID */
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	bool only_type; const char *type, *subtype;	/* TPNOCHANGE */
};
struct qmsg {				/* one block; qmsg_free() */
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	uint32_t flags;			/* what the sender supplied: TPQCORRID TPQREPLYQ TPQFAILUREQ TPQPRIORITY TPQDELIVERYQOS TPQREPLYQOS; TPQMSGID always */
	char queue[TMQNAMELEN + 1];
	char replyqueue[TMQNAMELEN + 1], failurequeue[TMQNAMELEN + 1];
	int32_t priority, delivery_qos, reply_qos;
	int64_t urcode, cltid[4], appkey;
	char type[9], subtype[17];
	long retries;
	bool persistent;
	int64_t enqueued_us, available_us, expires_us;	/* available 0: was never delayed; expires 0: never */
	bool has_body; const uint8_t *body; size_t body_len;	/* inside this block */
	const struct taken *taken;	/* the engine's: see qspace_put_back() */
	unsigned keepers;		/* who must call qmsg_free(), beside one */
};
void qmsg_free(struct qmsg *m);	/* NULL is fine */
void qmsg_keep(struct qmsg *m);	/* it takes one qmsg_free() more, from any thread */
/*
 * Take the first eligible message, or the first that `sel` selects (NULL: any).
 * b NULL: removed in the batch.  b: held by the branch until it ends.  TPQPEEK: only looked at (b is ignored).
 *   QMENOMSG nothing eligible: an answer, not a fault, not logged     QMEBADQUEUE   QMEBADMSGID (impossible id)   QMEPROTO
 *   QMETYPE  only_type and the message is of another type: nothing taken
 */
enum { QMETYPE = -101 };
int qspace_dequeue(struct qspace *qs, struct branch *b, const char *queue, const struct qselect *sel, struct qmsg **out);
/*
 * A message that an earlier batch removed, and that surely reached nobody, gets its old place back as if it had never been
 * taken: identifier, times and retry count stay, and its room is not asked for.  In a batch.  Only once, and only what
 * qspace_can_put_back() says: not what was looked at or held, nor a body that was read in parts.
 *   QMEBADQUEUE its queue was destroyed meanwhile
 */
bool qspace_can_put_back(const struct qmsg *m);
int qspace_put_back(struct qspace *qs, const struct qmsg *m);

/*
 * Large bodies take their time, and a caller who serves others does not spend it in one batch: the body is written before
 * the message is enqueued, and read while the message is held, some of it in each batch.  (The calls above do as much with
 * any body, in one batch.)  Nobody sees what is written until the message is there; what is dropped, or left by a crash,
 * is freed by qspace_tick().  A batch that is aborted leaves both where they were before it.
 * When the space is closed they can still be dropped, and must be.
 *
 * In:   begin, write until it is full, qspace_enqueue() with it.  After that batch is committed it is gone.
 */
struct spool;
bool qspace_needs_spool(const struct qmsg_in *in);	/* is it large? */
/* The errors of qspace_enqueue().  What the message takes of the space's limits is reserved.  In a batch. */
int qspace_spool_begin(struct qspace *qs, const char *queue, const struct qmsg_in *in, struct spool **out);
/* Some more of `body`, which is always the whole: `at_most` bytes, rounded up.  QMENOSPACE: the disk is full.  In a batch */
int qspace_spool_write(struct spool *sp, const void *body, size_t at_most);
bool qspace_spool_full(const struct spool *sp);		/* all of it is written */
void qspace_spool_drop(struct spool *sp);		/* instead of enqueuing it.  NULL is fine */
/*
 * Out:  qspace_dequeue_begin() does what qspace_dequeue() does, but a message with a large body is not read: *fetch is set
 *       instead of *out.  Read until it is whole, then take, which removes it (unless it was looked at, or is the branch's).
 *       It is held so long.  Drop it afterwards in any case: one that was not taken, or whose batch was aborted, comes back.
 *       QSPACE_AGAIN: so many expired or delayed messages are in the way that it is for the next batch to go on; others may
 *       be served meanwhile.
 */
enum { QSPACE_AGAIN = -103 };
struct fetch;
int qspace_dequeue_begin(struct qspace *qs, struct branch *b, const char *queue, const struct qselect *sel,
    struct qmsg **out, struct fetch **fetch);
int qspace_fetch_read(struct fetch *f, size_t at_most);		/* in a batch; bytes, rounded up */
bool qspace_fetch_whole(const struct fetch *f);
int qspace_fetch_take(struct fetch *f, struct qmsg **out);	/* in a batch */
void qspace_fetch_drop(struct fetch *f);			/* NULL is fine */

/* --- branches ---
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
 */
enum branch_state { BR_ACTIVE, BR_PREPARED, BR_COMMITTING, BR_ROLLING_BACK, BR_COMMITTED, BR_ABORTED, BR_HEUR_COMMITTED,
	BR_HEUR_ROLLED_BACK };
struct branch_id { uint8_t len; uint8_t gtrid[QSPACE_GTRID_MAX]; };
struct branch *qspace_branch_find(struct qspace *qs, const struct branch_id *id);	/* NULL: none */
/* QMENOSPACE: the space's transaction limit.  deadline_us: wall clock; 0 none.  What counts is how far away that is now: setting the
 * clock changes nothing. */
int qspace_branch_begin(struct qspace *qs, const struct branch_id *id, int64_t deadline_us, struct branch **out);
enum branch_state qspace_branch_state(const struct branch *b);
void qspace_branch_doom(struct branch *b);	/* rollback-only from now on; operations answer QMEABORTED */
bool qspace_branch_doomed(const struct branch *b);
/* Who began it, in words for people ("process 123 of user 1000"); shown by lists.  Copied. */
void qspace_branch_set_owner(struct branch *b, const char *who);
/*
 * Its coordinator is deciding, here: from now on operations answer QMEPROTO and its deadline does not count.  Memory only: a crash
 * rolls it back.  Only of an active one; a batch's abort does not take it back.
 */
void qspace_branch_close(struct branch *b);
/*
 * Applies all operations in the batch; the branch is gone once the batch committed.  QMEABORTED: it was doomed, and is rolled back.
 * QSPACE_AGAIN: a large branch (some hundred operations).  Its outcome is decided by this batch, as durably, and its state is
 * BR_COMMITTING (a decision record belongs into this batch too); but others see it only when a number of later batches have carried
 * it out.  qspace_tick() does that, and the next owner after a crash.  It is done once qspace_branch_find() finds it no more, which it
 * does not from within the last batch on.  Rollback and by hand answer QSPACE_AGAIN likewise (BR_ROLLING_BACK; what is found at the
 * end of by hand is the heuristic branch).  Prepare is always done in its batch.
 */
int qspace_branch_commit(struct qspace *qs, struct branch *b);
/*
 * Messages return to their place (retry count, delay, error queue: durable, in the batch).  `why` goes with those whose
 * retries are spent to the error queue, or into the log; NULL: not told.
 */
int qspace_branch_rollback(struct qspace *qs, struct branch *b);
int qspace_branch_rollback_because(struct qspace *qs, struct branch *b, const struct wire_why *why);
/* The same, but its messages come back as if they had not been taken: no retry is counted, no delay begins.  Of one that is prepared
 * they are counted: what is rolled back of it over several batches is not remembered to be another way. */
int qspace_branch_rollback_uncounted(struct qspace *qs, struct branch *b, const struct wire_why *why);
/*
 * Durable in the batch: operations and coordinator ("": a transaction manager that will not be asked).  In doubt from then on.
 * 0 also when it is prepared already.  QSPACE_READ_ONLY: there was nothing to commit; the branch is gone with the batch.
 */
enum { QSPACE_READ_ONLY = -104 };
int qspace_branch_prepare(struct qspace *qs, struct branch *b, const char *coordinator);
const char *qspace_branch_coordinator(const struct branch *b);
/*
 * An administrator ends a prepared one: committed or rolled back, and remembered as such, in the batch (or QSPACE_AGAIN).  The record
 * takes no place among the space's transactions; of such records there are no more than that limit.  QMENOSPACE: there are.
 */
int qspace_branch_by_hand(struct qspace *qs, struct branch *b, bool commit);
bool qspace_branch_is_by_hand(const struct branch *b);	/* an administrator ended it, or it is on its way to that */
int qspace_branch_forget(struct qspace *qs, struct branch *b);	/* a heuristic one, in the batch.  QMEPROTO: it is none */
struct branch_info {
	struct branch_id id; enum branch_state state;
	const char *state_name;		/* static: "active", "prepared", "heuristically committed"... */
	char coordinator[WIRE_GROUP], owner[64];
	int64_t began_us, deadline_us;	/* wall clock; deadline 0: none */
	int64_t enqueues, dequeues, bytes;	/* what it holds: messages to come, messages to go, memory */
	bool doomed, closed;
};
int qspace_branch_list(struct qspace *qs, struct branch_info **out, size_t *n);	/* free(*out) */

/* --- decisions: the transactions that this space coordinated, and that were committed (D4, D5) --- */

/* In the batch that commits the coordinator's own branch: the groups that are to be told. */
int qspace_decision_put(struct qspace *qs, const struct branch_id *id, const struct wire_groups *groups);
int qspace_decision_get(struct qspace *qs, const struct branch_id *id, struct wire_groups *groups);	/* 0, QMENOMSG: none */
int qspace_decision_remove(struct qspace *qs, const struct branch_id *id);	/* all have answered.  In a batch; 0 when there is none */
/* One after the other: *after NULL: the first.  0, QMENOMSG at the end. */
int qspace_decision_next(struct qspace *qs, const struct branch_id *after, struct branch_id *id, struct wire_groups *groups);

/* --- time, and what became eligible --- */

/*
 * Move what is due: delayed messages, expired ones, branches past their deadline (rolled back).  A bounded piece of work
 * in the batch.  Returns the time of the next event, or INT64_MAX; a time in the past means: more to do now.
 */
int64_t qspace_tick(struct qspace *qs, int64_t now_us);
/*
 * After each committed batch (and after qspace_batch_abort), the events that may let a waiting dequeue go on.  The
 * callback must not call back into qs.  msg_corrid is NULL when the message has none.
 */
void qspace_on_eligible(struct qspace *qs, void (*fn)(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *msg_corrid), void *arg);
/*
 * Threshold commands to be run: called after a commit.  false: it cannot be run now and is offered again, about each
 * second, over a restart too.
 */
void qspace_on_threshold(struct qspace *qs, bool (*fn)(void *arg, const char *queue, const char *cmd), void *arg);
bool qspace_has_eligible(struct qspace *qs, const char *queue);	/* no selection; cheap */

/* --- administration (qadmin.c): the commands of qmadmin, run by whoever owns the space ---
 *
 * Operation names are qmadmin's long command names; arguments and answers are in INTERFACES.md, "Queue administration".
 * Opens and commits its own batches.  0, or a positive message number of the Q catalogue (or 1: other) with *text malloc'ed.
 */
int qadmin_run(struct qspace *qs, const char *op, const struct record *args, struct document *out, char **text);

#endif
