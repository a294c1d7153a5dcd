/*
 * atmiq_ext - what our own servers (TMQFORWARD, TMQAMQP) need from libatmiq and atmi.h cannot say.  Exported like the
 * rest.
 *
 * Errors     -1 with tperrno, as ATMI.  Threads: like ATMI calls, in the calling thread's context.
 */
#ifndef ATMIQ_EXT_H
#define ATMIQ_EXT_H

#include "atmi.h"

#pragma GCC visibility push(default)

/* What a server that brings its own loop learns at start. */
struct atmiq_server {
	char group[32]; long grpno, srvid;
	char openinfo[257], tmsname[257];
	char rqaddr[32]; int replyq;		/* REPLYQ=Y */
	int services_given;			/* CLOPT had -s or -A */
	int argc; char **argv;			/* the arguments after --, argv[0] is the program */
};
/*
 * Become a server of the application: parse servopts, read TUXCONFIG, log, register with BBL, open -o/-e files, install
 * the stop signal.  Calls no user function.  The process is "starting" until atmiq_server_ready().
 */
int atmiq_server_attach(int argc, char **argv, struct atmiq_server *out);
void atmiq_server_ready(void);
int atmiq_server_stopping(void);		/* 1 once BBL or SIGTERM asked to stop */
void atmiq_server_detach(int status);		/* a wanted end: status 0; BBL does not restart it */
void atmiq_server_count(const char *current_service);	/* psr: NULL idle (one request done), else busy with it */

int atmiq_server_wake_fd(void);			/* readable once a stop is asked for, and from then on; for poll(2) alone */

/*
 * A server that works on several threads.  The thread that attached calls atmiq_thread_begin() first and keeps its own context;
 * then each thread that makes ATMI calls begins, which gives it a context that serves as that one does, and ends.
 */
int atmiq_thread_begin(void);
void atmiq_thread_end(void);			/* not of the thread that attached: that detaches.  A transaction still open is rolled back */

/*
 * The service name under which the queue manager of `group` answers (tpenqueue's first argument), for servers that
 * serve their own group's queue space whatever its alias is: "..GROUP".  Written into name (128 bytes).
 */
void atmiq_group_service(const char *group, char *name);

/*
 * Wait until one of the queues has an eligible message, at most timeout_ms, or until wake_fd is readable (-1: until a stop is asked
 * for).  Holds nothing.  At most ATMIQ_QWAIT_MAX queues.
 * Returns the index of such a queue; -1 with TPETIME at the end of the time (*diagnostic is QMENOMSG when the queue manager says that
 * there was nothing, 0 when it did not answer), TPGOTSIG when woken, or as tpdequeue: with *diagnostic
 * (NULL: not wanted), and with *wrong, for QMEBADQUEUE, the index of the queue that does not exist.
 */
#define ATMIQ_QWAIT_MAX 256
int atmiq_qwait(char *qspace, char **queues, int n, long timeout_ms, int wake_fd, long *diagnostic, int *wrong);

/* Dequeue as TMQFORWARD needs it: as tpdequeue, and tells how often the message was rolled back so far. */
int atmiq_dequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags, long *retries);
/* ctl->flags of atmiq_dequeue(), with TPQGETBYMSGID: take the message even while its retry delay runs.  Goes to
 * TMQUEUE as it is. */
#define ATMIQ_QDELAYED 0x10000000

/*
 * tpenqueue() as the last act of the transaction, and tpcommit(): in one request where the queue space is the only one that the
 * transaction touched, else one after the other.  A queue that does not exist is no error here: the message is dropped, the
 * commit goes on.  -1: as tpcommit(), and the transaction is over (tpgetlev() 0); or as tpenqueue(), ctl->diagnostic too, and it is
 * still there.  ctl is not NULL; no msgid is given back.
 */
int atmiq_enqueue_commit(char *qspace, char *qname, TPQCTL *ctl, char *data, long len, long flags);

/*
 * As tpabort(), and tells why: a tperrno, the tpurcode that came with it, a few words (at most 127 bytes, copied).  It goes
 * with the messages of the transaction to the error queue.  Leaves tperrno and tpurcode as they were when it succeeds.
 */
int atmiq_abort(int error, long urcode, const char *why);
/* As tpabort(), and its messages come back as if they had not been taken: no retry is counted, no retry delay begins.  Not when its
 * time is over already.  `why` is for the log alone. */
int atmiq_abort_uncounted(const char *why);

/*
 * As tpcall(), and: limit_ms (0: none) bounds it even in a transaction, whose time may be longer; sent (NULL: none) is called, with
 * the context locked, when the request has first been handed to the transport.
 */
struct atmiq_call {
	char *service, *data; long len;
	char **reply; long *reply_len;
	long flags, limit_ms;
	void (*sent)(void *arg); void *arg;
};
int atmiq_call(const struct atmiq_call *c);

/*
 * 1: somebody offers this service, as far as the name cache or BBL knows.  0: nobody does, or not yet: it is being
 * started.  -1: BBL cannot be asked.  TMQFORWARD takes no message for a service that is not there.
 */
int atmiq_service_known(char *svc);

#pragma GCC visibility pop
#endif
