/*
 * orphan - branches that another transaction manager opened here by XA, and the programs that work in them.
 *
 * Such a branch may have no deadline, so it is looked at each second whether one of those who started or joined it is still
 * connected.  Where none is, and it was not prepared, it is rolled back: nobody can do that any more.
 */
#ifndef TMQUEUE_ORPHAN_H
#define TMQUEUE_ORPHAN_H

#include "link.h"
#include "qspace.h"
#include "reply.h"

struct orphans;
struct orphans *orphans_new(struct qspace *qs);		/* NULL: no memory */
void orphans_free(struct orphans *os);
int orphan_note(struct orphans *os, const struct branch_id *id, const struct link_peer *peer);	/* works in it.  0, QMEOS */
/* In a batch, at each turn.  0, or the batch is dead. */
int orphans_work(struct orphans *os, reply_left_fn *left, void *left_arg);
void orphans_abort(struct orphans *os);			/* it failed: not at full speed */
int64_t orphans_next_event(const struct orphans *os);	/* clock_mono_us() */

#endif
