/*
 * coordinator - transactions over several groups whose first group is this one: two-phase commit (DESIGN section 7).
 *
 * Votes are asked for as soon as the request to commit is read, and come in between batches.  What is decided is carried out in
 * a batch, with everybody's requests: the commit here and the record of the decision at once (D4).  The others are told once
 * that batch is on disk (D1).  Nothing here waits.
 *
 * Batches    What a batch carried out counts at coordinator_commit(); coordinator_abort() takes it back.  That somebody asked for
 *            a commit, and that a transaction is to be rolled back, rests on no disk, and stays.
 */
#ifndef TMQUEUE_COORDINATOR_H
#define TMQUEUE_COORDINATOR_H

#include "letters.h"
#include "link.h"
#include "qspace.h"
#include "tx.h"

struct coordinator;

/* How a caller is answered; what it rests on is on disk. */
struct coordinator_voice {
	void *arg;
	void (*answer)(void *arg, const struct branch_id *id, const struct link_peer *to, uint64_t reqid, int error, int outcome);
};

struct coordinator *coordinator_new(struct qspace *qs, struct txs *txs, struct letters *ls, const struct coordinator_voice *voice);
void coordinator_free(struct coordinator *co);		/* NULL is fine; callers hear nothing */
int coordinator_load(struct coordinator *co);		/* the decisions of before: go on telling.  0, or QMEOS, QMESYSTEM */

/* --- requests, in a batch --- */

/*
 * Commit, with what joined in `others` (this group is not among them, and none is twice).  The answer comes later.  Asked a
 * second time it answers both.  0; QMEOS; TPEPROTO: not a transaction that could be committed so.
 */
int coordinator_begin(struct coordinator *co, const struct link_peer *from, const struct wire_txend *m, const struct wire_groups *others);
/* Roll back, while it is being decided: true, and the answer comes later.  False: it is none of these. */
bool coordinator_recall(struct coordinator *co, const struct link_peer *from, const struct wire_txend *m);
/* No batch can be made for this request to commit: tell the others to roll back.  True: it was begun before, and its answer comes later. */
bool coordinator_refuse(struct coordinator *co, const struct wire_txend *m, const struct wire_groups *others);
bool coordinator_has(struct coordinator *co, const struct branch_id *id);
/* What is known of it, for who asks: an enum wire_outcome: UNDECIDED, COMMITTED, or ROLLED_BACK when it is not known (D5). */
int coordinator_query(struct coordinator *co, const struct branch_id *id);

/* --- work, in a batch --- */

int coordinator_work(struct coordinator *co, size_t at_most);	/* 0, or the batch is dead */
int coordinator_clean(struct coordinator *co);	/* last in a batch: remove records, if the batch is written anyway, or they wait for long */
bool coordinator_ready(const struct coordinator *co);
void coordinator_commit(struct coordinator *co);
void coordinator_abort(struct coordinator *co);
void coordinator_failed(struct coordinator *co);	/* the first that is ready failed in a batch of its own */

/* --- time: clock_mono_us() --- */
void coordinator_turn(struct coordinator *co, int64_t now);
int64_t coordinator_next_event(const struct coordinator *co);
bool coordinator_busy(const struct coordinator *co);	/* somebody waits for an outcome */
/* The end: what is not decided is rolled back (coordinator_work() does it), and callers hear what is so. */
void coordinator_dismiss(struct coordinator *co);

/* --- for administrators --- */
/* The groups whose vote, or answer to what was decided, is still to come.  False: it is none of these transactions. */
bool coordinator_waiting(struct coordinator *co, const struct branch_id *id, struct wire_groups *waiting);
/* Its record was removed by hand: what is committed is told to nobody any more. */
void coordinator_give_up(struct coordinator *co, const struct branch_id *id);

#endif
