/*
 * given_model - what must be true of a queue that one client alone uses, from what that client was told.
 *
 * The client tells the model each call and its outcome; the model answers with what cannot be: a message that is lost,
 * doubled, out of order, early, late, expired, or delivered more often than its queue allows.  Where an outcome is not
 * known the model knows less, and says less.  It reads no internals of a queue space.
 *
 * Time       int64_t microseconds since the epoch, the machine's clock, which is the queue manager's.
 * Calls      have a beginning and an end (t0, t1); what happened in them happened in between.
 */
#ifndef GIVEN_MODEL_H
#define GIVEN_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "atmi.h"

#define MODEL_MAX 400		/* messages that may be on the queue, at most */

enum model_place { PLACE_USUAL, PLACE_TOP, PLACE_BEFORE };
struct model_msg {
	int seq;
	bool used;
	bool sure;			/* it is there; else it may be */
	bool placed;			/* and its place in the order is known */
	bool volatile_;			/* non-persistent: gone when its owner was killed */
	int priority;
	int64_t come_lo, come_hi;	/* when it became, or becomes, available; its place by time */
	int64_t back_lo, back_hi;	/* after a rollback: likewise, but it keeps its place */
	int64_t end_lo, end_hi;		/* when it expires; 0: never */
	double rank;			/* by arrival */
	int rolled_lo, rolled_hi;	/* deliveries that were rolled back */
	int delivered;
	bool has_msgid, has_corrid;
	char msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
};
struct model {
	const char *queue, *order;	/* as qcreate has it: "priority,time,lifo" */
	int retries, delay_s;
	struct model_msg m[MODEL_MAX];
	double first, last, top;	/* ranks given so far */
	int64_t fog_until;		/* a call whose outcome is unknown may hold any one of them until then */
	FILE *out;			/* violations, a line each, beginning with ! */
	long violations;
	int lost, doubled, disordered, early, late, expired, phantom, often;
};

int64_t model_now(void);
struct model_msg *model_add(struct model *q, int seq);	/* NULL: full */
struct model_msg *model_find(struct model *q, int seq);
void model_gone(struct model_msg *m);
void model_rank(struct model *q, struct model_msg *m, enum model_place place, const struct model_msg *before);
/* A message came, by a dequeue or a peek; first: it was the first one that was asked for.  NULL: it must not have come. */
struct model_msg *model_came(struct model *q, int seq, int64_t t0, int64_t t1, bool first);
/* Nothing came: no message may have been there.  only: this one was asked for (NULL: any). */
void model_nothing(struct model *q, const struct model_msg *only, int64_t t0, int64_t t1);
/* A delivery was undone.  counted: surely, and that counted. */
void model_rolled(struct model *q, struct model_msg *m, int64_t t0, int64_t t1, bool counted, int64_t longest_us);
/* A dequeue whose outcome is unknown. */
void model_fog(struct model *q, int64_t until);
void model_owner_died(struct model *q);
bool model_is_there(const struct model *q, const struct model_msg *m, int64_t t0, int64_t t1);	/* surely, and eligible all the time */
size_t model_count(const struct model *q);
void model_forget_expired(struct model *q, int64_t t);	/* those that surely are gone */

#endif
