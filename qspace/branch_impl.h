/*
 * branch_impl - what the files of branches know of each other.
 */
#ifndef BRANCH_IMPL_H
#define BRANCH_IMPL_H

#include "qspace_impl.h"

#define CHUNK_OPS 256			/* operations of a chunk; a branch with fewer ends in one batch */
#define BRANCH_VERSION 2
#define BRANCH_VERSION_OLDEST 1		/* still read */
#define DECISION_VERSION 1
#define DECISION_BYTES (2 + WIRE_MAX_GROUPS * (2 + WIRE_GROUP))

/* --- branch.c --- */

void branch_enter(struct branch *b, enum branch_state next);	/* The only place that moves b->state on.  The batch's abort puts it back. */
const char *branch_state_name(enum branch_state s);	/* for people */
bool branch_is_heuristic(const struct branch *b);
struct branch *branch_new(struct qspace *qs, const struct branch_id *id);	/* NULL: no memory */
void branch_hash(struct qspace *qs, struct branch *b);		/* it can be found */
void branch_drop_ops(struct qspace *qs, struct branch *b);	/* memory only, with its holds */
void branch_free(struct qspace *qs, struct branch *b);
int op_room(struct qspace *qs, struct branch *b, size_t bytes);	/* for one more: 0 or QMENOSPACE */
void op_append(struct qspace *qs, struct branch *b, const struct op *op, size_t bytes);
void op_free(struct qspace *qs, struct op *op);
void branch_unhash(struct qspace *qs, struct branch *b);	/* from here on nobody finds it */

/* --- branch_end.c --- */

bool op_is_persistent(const struct op *op);
int op_commit(struct qspace *qs, struct branch *b, struct op *op, int64_t now);
int op_rollback(struct qspace *qs, struct branch *b, struct op *op, const struct wire_why *why, int64_t now);
void op_let_go(struct qspace *qs, struct op *op);		/* of a dequeue, once the batch has committed */
int branch_gone(struct qspace *qs, struct branch *b);		/* its record too */
int branch_doomed(struct qspace *qs, struct branch *b);		/* it is rolled back: QMEABORTED, or what failed */

/* --- branch_disk.c --- */

struct branch_head {		/* of a record; its n operations follow */
	enum branch_state state;
	char coordinator[WIRE_GROUP], owner[64];
	int64_t began_us, deadline_us;
	bool by_hand;
	uint64_t number;	/* of a large one; 0 */
	uint32_t chunks, applied;
	uint32_t n;
};
struct op_rec {			/* rec points into what was read */
	enum op_kind kind;
	uint32_t queue;
	struct okey key;
	struct oval v;
	int64_t available_us;
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	const uint8_t *rec;
	size_t rec_len;
	uint64_t parts;
	bool stored;
};
void branch_head_encode(struct wr *w, const struct branch_head *h);
int branch_head_decode(struct rd *r, struct branch_head *h);	/* 0, or -1: not of a version that is read */
void op_encode(struct wr *w, const struct op *op);
int op_decode(struct rd *r, struct op_rec *o);			/* likewise */
int op_load(struct qspace *qs, struct branch *b, struct rd *r);	/* onto its list.  0 or a QME code */
int branch_write(struct qspace *qs, struct branch *b);		/* its record, in the batch */
int branch_own_parts(struct qspace *qs, struct branch *b);	/* bodies of its messages to come have an owner now */

/* --- branch_chunk.c --- */

int chunk_when_due(struct qspace *qs, struct branch *b);	/* after each operation */
int chunk_write(struct qspace *qs, struct branch *b);		/* what is in none yet */
int chunk_remove(struct qspace *qs, const struct branch *b, uint32_t no);
int chunks_own_nothing(struct qspace *qs, const struct branch *b);	/* they have become messages */
void chunks_after_commit(struct qspace *qs, struct branch *b);
void chunks_after_abort(struct branch *b);
/* Its operations, one after the other.  DB_NOTFOUND: there is no such chunk. */
int chunk_load(struct qspace *qs, struct branch *b, uint32_t no, int (*load)(struct qspace *, struct branch *, struct rd *));

/* --- branch_step.c --- */

bool branch_is_large(const struct branch *b);
bool branch_is_ending(const struct branch *b);
int op_hide(struct qspace *qs, struct branch *b, struct op *op);	/* a message that is stored now.  0 or QMEOS */
void branch_begins_to_end(struct qspace *qs, struct branch *b);
void branch_leaves_ending(struct qspace *qs, struct branch *b);
void steps_after_commit(struct qspace *qs, struct branch *b);
void steps_after_abort(struct qspace *qs, struct branch *b);

/* --- decision.c --- */

void decision_encode(struct wr *w, const struct wire_groups *g);
int decision_decode(const uint8_t *p, size_t n, struct wire_groups *g);

#endif
