/*
 * forward - from queue to service, and the answer to the reply queue, as one transaction for each message.
 */
#ifndef TMQFORWARD_FORWARD_H
#define TMQFORWARD_FORWARD_H

#include "atmi.h"
#include "options.h"

/* How one look at one queue ended. */
enum turn {
	TURN_EMPTY,	/* nothing eligible */
	TURN_DONE,	/* one message is through */
	TURN_FAILED,	/* its service failed; the message is back, or where retries or -d sent it */
	TURN_NOBODY,	/* nobody offers the service: nothing was taken */
	TURN_TROUBLE	/* the queue manager, or ATMI itself, cannot serve now */
};

struct source { enum turn last; int error; };	/* of a queue: what is logged once and not at every turn */

struct forwarder {
	struct options *o;
	char space[XATMI_SERVICE_NAME_LENGTH];	/* the service name of the group's own queue manager */
	char *data, *reply;			/* typed buffers, kept from message to message */
	struct source source[FORWARD_MAX_QUEUES];
};

/* A request as it was taken. */
struct request {
	char *queue;		/* and the service */
	TPQCTL ctl;		/* flags: what its sender supplied */
	long len;		/* 0: it has no data part */
};

int forward_init(struct forwarder *f, struct options *o, const char *group);	/* 0 or -1: no memory, or no BBL */
void forward_run(struct forwarder *f);	/* until told to stop, or -e and nothing is left */
void forward_done(struct forwarder *f);

/* --- outcome.c --- */

/* Put the service's answer on the reply queue, in the transaction of the request.  0: done, or dropped for want of a queue. */
int outcome_reply(struct forwarder *f, const struct request *r, long reply_len, long urcode);
/* -d: delete the request that failed, and put the answer on its failure queue, in a transaction of its own. */
void outcome_failed(struct forwarder *f, const struct request *r, long reply_len, long urcode);
/* tperrno, or the diagnostic when there is one. */
int outcome_error(const TPQCTL *ctl);

#endif
