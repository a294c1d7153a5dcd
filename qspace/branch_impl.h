/*
 * branch_impl - what the files of branches know of each other.
 */
#ifndef BRANCH_IMPL_H
#define BRANCH_IMPL_H

#include "qspace_impl.h"

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

/* --- branch_end.c --- */

bool op_is_persistent(const struct op *op);
int branch_doomed(struct qspace *qs, struct branch *b);		/* it is rolled back: QMEABORTED, or what failed */

/* --- branch_disk.c --- */

struct branch_head {		/* of a record; its n operations follow */
	enum branch_state state;
	char coordinator[WIRE_GROUP], owner[64];
	int64_t began_us, deadline_us;
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
};
void branch_head_encode(struct wr *w, const struct branch_head *h);
int branch_head_decode(struct rd *r, struct branch_head *h);	/* 0, or -1: not of a version that is read */
void op_encode(struct wr *w, const struct op *op);
int op_decode(struct rd *r, struct op_rec *o);			/* likewise */
int op_load(struct qspace *qs, struct branch *b, struct rd *r);	/* onto its list.  0 or a QME code */
int branch_write(struct qspace *qs, struct branch *b);		/* its record, in the batch */

/* --- decision.c --- */

void decision_encode(struct wr *w, const struct wire_groups *g);
int decision_decode(const uint8_t *p, size_t n, struct wire_groups *g);

#endif
