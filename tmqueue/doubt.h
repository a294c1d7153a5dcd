/*
 * doubt - transactions that are prepared here and wait for their coordinator, which is asked when it is silent.
 *
 * What is noted here is looked at against the space each time, so a batch that is undone needs no undoing here, but for the
 * outcomes that it carried out: doubts_commit(), doubts_abort().
 */
#ifndef TMQUEUE_DOUBT_H
#define TMQUEUE_DOUBT_H

#include "letters.h"
#include "link.h"
#include "qspace.h"
#include "reply.h"
#include "tx.h"

struct doubts;

struct doubts_ask {			/* what doubts need of others */
	void *arg;
	bool (*ours)(void *arg, const char *group);		/* the coordinator is this server */
	int (*decided)(void *arg, const struct branch_id *id);	/* and what it knows: an enum wire_outcome */
	bool (*left)(void *arg, const struct link_peer *peer);
};

struct doubts *doubts_new(struct qspace *qs, struct txs *txs, struct letters *ls, const struct doubts_ask *ask);	/* NULL: no memory */
void doubts_free(struct doubts *ds);
int doubts_load(struct doubts *ds);	/* what the space has from before: asked about at once.  0, or QMEOS */

/* It is prepared, if the batch that runs comes to its end, and `peer` coordinates it. */
void doubt_note(struct doubts *ds, const struct branch_id *id, const char *coordinator, const struct link_peer *peer);
void doubt_hurry(struct doubts *ds, const struct branch_id *id);	/* ask now */

/* In a batch: carry out what was heard, at most so many.  0, or the batch is dead. */
int doubts_work(struct doubts *ds, size_t at_most);
bool doubts_ready(const struct doubts *ds);
void doubts_commit(struct doubts *ds);
void doubts_abort(struct doubts *ds);
void doubts_failed(struct doubts *ds);	/* the first of those that are ready failed in a batch of its own: it is asked about later */

void doubts_turn(struct doubts *ds, int64_t now);	/* clock_mono_us() */
int64_t doubts_next_event(const struct doubts *ds);
size_t doubts_count(const struct doubts *ds);

#endif
