/*
 * ask - one question at a time to BBL: is there a server of this set, or will there be, that offers this service?
 * Nothing here waits for the answer.
 */
#ifndef TMRQ_ASK_H
#define TMRQ_ASK_H

#include "link.h"
#include "ubb.h"
#include "wire.h"

struct ask {				/* zero-initialise */
	const char *endpoint;		/* of BBL */
	const struct ubb_set *set;
	struct link_client *bbl;
	uint64_t reqid;
	char service[WIRE_NAME];	/* "": is there any server of the set? */
	int64_t until_us;		/* 0: nothing is asked */
};
enum ask_answer { ASK_NOTHING, ASK_YES, ASK_NO, ASK_SILENCE };	/* silence: no BBL */

bool ask_busy(const struct ask *a);
void ask_begin(struct ask *a, const char *service);
enum ask_answer ask_take(struct ask *a);	/* then a->service says what it is about */
void ask_close(struct ask *a);

#endif
