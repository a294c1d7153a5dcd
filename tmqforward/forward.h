/*
 * forward - from queue to service, and the answer to the reply queue, as one transaction for each message.
 *
 * Threads    A worker is one thread with one message; what workers share is under the forwarder's lock, which nobody holds
 *            while he makes an ATMI call.
 */
#ifndef TMQFORWARD_FORWARD_H
#define TMQFORWARD_FORWARD_H

#include <pthread.h>
#include <stdint.h>

#include "atmi.h"
#include "options.h"

/* How one look at one queue ended. */
enum turn {
	TURN_EMPTY,	/* nothing eligible */
	TURN_DONE,	/* one message is through */
	TURN_FAILED,	/* its service failed; the message is back, or where retries or -d sent it */
	TURN_BACK,	/* -o: a message ahead of it failed; it is back as if it had not been taken */
	TURN_NOBODY,	/* nobody offers the service: nothing was taken, or it is back as if it had not been */
	TURN_NOQUEUE,	/* there is no such queue */
	TURN_TROUBLE	/* the queue manager, or ATMI itself, cannot serve now */
};

/*
 * What is known of a queue:
 *
 *	          taken, and another worker is free to look; nothing there
 *	  READY -----------------------------------------------------------> EMPTY
 *	   ^ ^  <-------------------------------------------------------------'
 *	   | |      the one who watches hears of a message
 *	   | '--- LATER   nobody serves it, it is not there, or there is trouble: not before look_us
 */
enum source_state { SOURCE_EMPTY, SOURCE_READY, SOURCE_LATER };

struct worker;
struct source {
	char *queue;			/* and the service */
	enum source_state state;
	int64_t look_us;
	unsigned busy;			/* workers at it */
	unsigned taking;		/* of these: may be about to take a message */
	unsigned shut;			/* who wants nobody to take one now */
	/* -o */
	struct worker *line;		/* whose messages are under way, the first one first */
	bool broken;			/* one of these failed: the others go back, and nobody takes until all have */
	bool alone;			/* ... and then it goes alone, until it is through or not there any more: */
	char failing[TMMSGIDLEN];
	/* what is logged once and not at every turn */
	enum turn last;
	int error;
};

/* A request as it was taken. */
struct request {
	TPQCTL ctl;			/* flags: what its sender supplied */
	long len;			/* 0: it has no data part */
	int64_t began_us;
};

struct forwarder;
struct worker {
	struct forwarder *f;
	struct source *s;
	struct request r;
	char *data, *reply;		/* typed buffers, kept from message to message */
	pthread_t thread;
	pthread_cond_t cond;
	bool taking;			/* counted in s->taking */
	bool woken;
	struct worker *idle_next;
	struct worker *prev, *next;	/* in the line of s */
};

struct forwarder {
	struct options *o;
	char space[XATMI_SERVICE_NAME_LENGTH];	/* the service name of the group's own queue manager */
	struct worker *worker;			/* o->workers of them; the first one is the main thread */
	size_t n_started;
	int kick_fd, wait_fd;			/* wakes who watches; readable for that, and for the order to stop */
	pthread_mutex_t lock;			/* of all that follows, and of the sources */
	pthread_cond_t quiet;			/* a source that is shut has nobody who is taking */
	struct source source[FORWARD_MAX_QUEUES];
	size_t turn;				/* whose it is among equals */
	size_t busy;				/* workers with a source */
	struct worker *watching;		/* the one who waits for messages; NULL */
	struct worker *idle;			/* who sleep; the last one to come is woken first */
	bool over;
	int64_t around_us;			/* who is busy looks around not before */
	int64_t hold_us;			/* -f: nothing is taken before */
	int64_t lost_us;			/* since when the queue manager cannot be asked; 0: it can */
	bool lost_told;
};

/* --- workers.c --- */

int forward_init(struct forwarder *f, struct options *o, const char *group);	/* 0 or -1: no memory, or no BBL */
int forward_start(struct forwarder *f);	/* the other threads; 0 or -1 */
void forward_run(struct forwarder *f);	/* until told to stop, or -e and nothing is left */
void forward_stop(struct forwarder *f);	/* and until each has ended the message that it is at */
void forward_done(struct forwarder *f);

/* --- forward.c: a message --- */

enum turn forward_one(struct worker *w);
enum { CALL_FLAGS = TPNOTIME | TPSIGRSTRT };	/* the transaction's time is the limit */

/* --- pool.c: who takes from which queue when --- */

void pool_run(struct worker *w);
void pool_stop(struct forwarder *f);	/* all of them are to end */
void pool_taken(struct worker *w);	/* it has a message: others may look for the next one */
void pool_sent(struct worker *w);	/* and that is on its way to its service, or will never be; harmless twice */
void pool_shut(struct worker *w);	/* nobody takes from its queue until pool_open() */
void pool_open(struct worker *w);

/* --- line.c: -o; without it everybody is the first, and nothing breaks --- */

void line_enter(struct worker *w);	/* with the lock */
void line_leave(struct worker *w);	/* with the lock; nothing when it is in none */
bool line_intact(struct worker *w);	/* none ahead of it has failed so far */
bool line_await(struct worker *w);	/* true: it is the first; false: one ahead of it failed */
void line_break(struct worker *w);	/* it fails: nobody takes from here on, and those behind it hear of it */
void line_alone(struct worker *w);	/* ... and it counts: next time it goes alone */

/* --- note.c --- */

/* The state of a source, and why (a tperrno, or a negative QME code); with the lock.  Logged when it differs from the last one. */
void note(struct source *s, enum turn turn, int error);
/* The queue manager has answered (0), or cannot be asked (a tperrno); with the lock.  Logged once that lasts, and when it is over. */
void note_manager(struct forwarder *f, int error);

/* --- outcome.c --- */

/* Put the service's answer on the reply queue, where one is wanted, and commit.  Where there is no such queue it is dropped. */
enum outcome {
	OUTCOME_COMMITTED,
	OUTCOME_UNCOMMITTED,	/* the transaction is over, and perhaps rolled back: tperrno as of tpcommit() */
	OUTCOME_NO_WAY		/* the answer cannot be put there; the transaction is as it was */
};
enum outcome outcome_commit(struct worker *w, long reply_len, long urcode);
/* -d: delete the request that failed, and put the answer on its failure queue, in a transaction of its own. */
void outcome_failed(struct worker *w, long reply_len, long urcode);
/* tperrno, or the diagnostic when there is one. */
int outcome_error(const TPQCTL *ctl);

#endif
