/*
 * xa_impl - our queue space as a resource manager of somebody else's transaction manager: what its files share.
 *
 * xa_switch.c is what the transaction manager calls; xa_state.c is what this process knows: which resource managers are open, which
 * thread works in which branch; xa_ask.c talks to the queue manager; xa_recover.c lists what is in doubt.
 */
#ifndef XA_IMPL_H
#define XA_IMPL_H

#include "impl.h"

/* One open queue space: an rmid of this process. */
struct xa_rm {
	struct xa_rm *next;
	int rmid;
	int refs;
	struct xa_opener *openers;	/* threads that opened it and have not closed it */
	struct app *app;
	char group[WIRE_GROUP];
	struct wire_groups groups;	/* that have this space, `group` first; whoever serves it does so for all */
	char service[WIRE_NAME];	/* ..GROUP, where the group's transactions are ended */
	struct line *idle;		/* links that nobody uses now */
};

/* A thread and a branch.  Only the thread itself takes it away, so the pointer is good for the length of a call. */
struct xa_assoc {
	struct xa_assoc *next;
	uint64_t thread;		/* 0: it ended, and left the branch as it was */
	struct xa_rm *rm;
	struct wire_tx tx;
	bool suspended;
	int doomed;			/* the XA_RB code of what failed; 0: nothing did */
};

/* ---- xa_state.c ---- */

struct xa_rm *xa_rm_find(int rmid);		/* with a reference: xa_rm_put().  NULL: not open */
void xa_rm_put(struct xa_rm *rm);		/* NULL is fine */
/* Open in the name of this thread.  *rm is new: it becomes the state's, or is freed when that rmid is there already. */
int xa_rm_open(struct xa_rm *rm);		/* an XA code */
int xa_rm_close(int rmid);
void xa_rm_free(struct xa_rm *rm);

uint64_t xa_thread(void);			/* this thread's number, never 0 */
enum xa_tie { XA_NOT_TIED, XA_TIED, XA_TIED_TO_DEAD };	/* to a living thread; to dead ones only */
enum xa_tie xa_tied(const struct xa_rm *rm, const struct wire_tx *tx);	/* any thread of this process */
void xa_bury(const struct xa_rm *rm, const struct wire_tx *tx);		/* forget the associations of dead threads */
/* This thread's association with a branch; tx NULL: the active one with any branch of rm. */
struct xa_assoc *xa_mine(const struct xa_rm *rm, const struct wire_tx *tx);
int xa_tie(struct xa_rm *rm, const struct wire_tx *tx);		/* an XA code */
void xa_suspend(struct xa_assoc *a, bool yes);
void xa_untie(struct xa_assoc *a);

/* ---- xa_ask.c ---- */

enum xa_heard { XA_UNSENT, XA_LOST, XA_ANSWERED };
struct xa_answer {
	enum xa_heard heard;
	int err;		/* UNSENT, LOST: a TPE code */
	bool again;		/* asked more than once: an earlier answer was lost */
	int error, outcome;	/* ANSWERED: of TXREPLY */
};
/* `again`: a lost answer is asked for again, which is right for what may be done twice.  `nowait`: the server must be there. */
void xa_ask(struct xa_rm *rm, enum wire_txop op, const struct wire_tx *tx, bool again, bool nowait, struct xa_answer *out);
/* An ADMIN operation of the queue space: 0 with *reply to be freed with bb_reply_free(), or a TPE code. */
int xa_ask_admin(struct xa_rm *rm, const char *op, const struct record *args, struct wire_adminreply *reply);
void xa_ask_fork_child(void);

/* ---- xa_recover.c ---- */

void xid_to_wire(const XID *xid, struct wire_tx *tx);
bool xid_from_wire(const uint8_t *id, size_t n, XID *xid);	/* false: not one that came by XA */
int xa_scan(struct xa_rm *rm, XID *xids, long count, long flags);	/* xa_recover() */
void xa_scan_drop(int rmid);			/* this thread's */
void xa_scan_fork_child(void);
enum xa_stage { XA_STAGE_NONE, XA_STAGE_ACTIVE, XA_STAGE_PREPARED, XA_STAGE_HEURISTIC };
int xa_stage(struct xa_rm *rm, const struct wire_tx *tx, enum xa_stage *out);	/* an XA code */

#endif
