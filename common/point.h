/*
 * point - named places in the protocol of a transaction at which a test may stop or kill the process.  For tests alone.
 *
 *     point(POINT_DECISION_FLUSH);
 *
 * Does nothing unless the process was started with ATMIQ_TEST_POINT in its environment, which names a directory.  A process that
 * reaches the point and finds the file NAME.kill there renames it to hit.NAME and kills itself (SIGKILL); with NAME.stop it
 * stops (SIGSTOP) until somebody continues or kills it.  So each file acts once, and a process that is started again goes on.
 * NAME.kill.1 becomes NAME.kill, and NAME.stop.1 NAME.stop, when the point is reached: it acts at the next time.
 *
 * Nothing happens by accident: it takes the variable, the directory, and a file of that name in it.  A program that runs with
 * another user's rights (set-user-ID) does not look.
 */
#ifndef POINT_H
#define POINT_H

#include <stddef.h>

/* Name, and the process that gets there: the tests enumerate these. */
#define POINTS(X) \
	X(COMMIT_SEND,		INITIATOR)	/* COMMIT is about to be sent */ \
	X(COMMIT_SENT,		INITIATOR)	/* ... and was */ \
	X(COMMIT_ANSWERED,	INITIATOR)	/* its answer was read; tpcommit() has not returned */ \
	X(ABORT_SEND,		INITIATOR) \
	X(ABORT_SENT,		INITIATOR) \
	X(ABORT_ANSWERED,	INITIATOR) \
	X(SERVICE_CALL,		SERVICE)	/* in the caller's transaction: a queue operation is about to be sent */ \
	X(SERVICE_CALLED,	SERVICE)	/* ... and its answer was read */ \
	X(SERVICE_REPLY,	SERVICE)	/* tpreturn() is about to send the reply */ \
	X(SERVICE_REPLIED,	SERVICE) \
	X(COMMIT_RECEIVED,	COORDINATOR)	/* COMMIT over several groups; nothing is sent yet */ \
	X(PREPARE_SEND,		COORDINATOR)	/* for each participant */ \
	X(PREPARE_SENT,		COORDINATOR) \
	X(VOTE_READ,		COORDINATOR)	/* for each vote */ \
	X(DECISION_WRITE,	COORDINATOR)	/* all said yes; nothing is in the batch yet */ \
	X(DECISION_FLUSH,	COORDINATOR)	/* the decision is in the batch, which is not committed */ \
	X(DECISION_FLUSHED,	COORDINATOR) \
	X(COMMIT_REPLY,		COORDINATOR)	/* the initiator is about to be answered */ \
	X(COMMIT_REPLIED,	COORDINATOR) \
	X(DECIDED_SEND,		COORDINATOR)	/* for each participant */ \
	X(DECIDED_SENT,		COORDINATOR) \
	X(DECIDED_ANSWERED,	COORDINATOR)	/* for each answer */ \
	X(RECORD_REMOVE,	COORDINATOR)	/* the record's removal is in the batch, which is not committed */ \
	X(RECORD_REMOVED,	COORDINATOR) \
	X(UNDO_SEND,		COORDINATOR)	/* a no or a lost vote: ABORT is about to be sent, for each participant */ \
	X(UNDO_SENT,		COORDINATOR) \
	X(QUERY_RECEIVED,	COORDINATOR) \
	X(PREPARE_RECEIVED,	PARTICIPANT) \
	X(PREPARE_FLUSH,	PARTICIPANT)	/* the prepared branch is in the batch, which is not committed */ \
	X(PREPARE_FLUSHED,	PARTICIPANT)	/* the vote has not been sent */ \
	X(VOTE_SENT,		PARTICIPANT) \
	X(DECIDED_RECEIVED,	PARTICIPANT) \
	X(DECIDED_FLUSH,	PARTICIPANT)	/* the branch's commit is in the batch, which is not committed */ \
	X(DECIDED_FLUSHED,	PARTICIPANT)	/* the answer has not been sent */ \
	X(DECIDED_REPLIED,	PARTICIPANT) \
	X(ABORT_RECEIVED,	PARTICIPANT)	/* from the initiator or the coordinator */ \
	X(ABORT_FLUSH,		PARTICIPANT) \
	X(ABORT_FLUSHED,	PARTICIPANT) \
	X(ABORT_REPLIED,	PARTICIPANT) \
	X(QUERY_SEND,		PARTICIPANT) \
	X(QUERY_SENT,		PARTICIPANT) \
	X(QUERY_ANSWERED,	PARTICIPANT) \
	X(MARK_BEGIN,		ANY)		/* a server is about to note that it begins a request (common/slots.h) */ \
	X(MARK_BEGUN,		ANY)		/* ... and has; its routine is not called yet */ \
	X(MARK_END,		ANY)		/* the answer is sent; the note is still there */ \
	X(MARK_ENDED,		ANY) \
	X(START,		ANY)		/* a server's main: nothing is opened yet.  Tests hold a restart back here */

enum point_role { POINT_ROLE_INITIATOR, POINT_ROLE_SERVICE, POINT_ROLE_COORDINATOR, POINT_ROLE_PARTICIPANT, POINT_ROLE_ANY };
#define POINT_ENUM(name, role) POINT_##name,
enum point { POINTS(POINT_ENUM) POINT_COUNT };

extern const char *point_dir;	/* set before main(); NULL: no test */
void point_reached(enum point p);

static inline void
point(enum point p)
{
	if (__builtin_expect(point_dir != NULL, 0))
		point_reached(p);
}

/*
 * A batch that is committed for many: whoever puts a prepared branch, a decision and so on in it notes the point X_FLUSH, and
 * whoever commits it says how far it is.  The step of a point is by how much it comes after that in the list.
 */
enum point_step { POINT_FLUSH, POINT_FLUSHED, POINT_ANSWERED };
void point_note(enum point flush);
void point_batch(enum point_step step);	/* of one thread; POINT_ANSWERED ends it */
void point_batch_undone(void);

#endif
