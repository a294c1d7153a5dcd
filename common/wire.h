/*
 * wire - every request and reply that goes over a socket, as C structs, with an encoder and a decoder each.
 *
 * A message is one header frame (encoded here) and, where it has a data part, one body frame with the bytes of
 * the typed buffer as they are.  INTERFACES.md lists the frames byte by byte.  Integers are big-endian; a version
 * byte and a kind byte come first; then the request id, which the reply repeats.
 *
 * Decoders accept exactly one well-formed header of their kind and nothing else; -1 otherwise, and then the struct's
 * content is not to be used.  Fixed-size fields are copied; strings are checked against the array they go into.
 * Structs hold no pointers into the frame except where said.
 */
#ifndef WIRE_H
#define WIRE_H

#include "atmi.h"
#include "version.h"
#include "wirebuf.h"

enum wire_kind {
	WIRE_ENQUEUE = 1,	/* -> WIRE_QREPLY, or one that commits WIRE_TXREPLY; body: the message's data */
	WIRE_DEQUEUE,		/* -> WIRE_QREPLY, with body */
	WIRE_QREPLY,
	WIRE_QWAIT,		/* -> WIRE_QREPLY, once one of the queues has an eligible message, or at the time-out */
	WIRE_CANCEL,		/* no reply: the sender no longer waits for request `target`; forget its action */
	WIRE_TXEND,		/* -> WIRE_TXREPLY: commit or abort a branch */
	WIRE_TXREPLY,
	WIRE_CALL,		/* -> WIRE_REPLY: a service request; body: its data */
	WIRE_REPLY,
	WIRE_ADMIN,		/* -> WIRE_ADMINREPLY: everything rare: names, life and death, qmadmin, tmadmin */
	WIRE_ADMINREPLY,
	WIRE_MEMBER,		/* a server and the queue it shares with others; each way, no reply */
	WIRE_LAST = WIRE_MEMBER
};

/*
 * Bytes of a transaction's id.  One of tpbegin(): the 8 bytes at WIRE_GTRID_TIME are the time of it, clock_now_us(), big-endian (a
 * TMQUEUE opens no branch for a transaction older than itself, for it may have forgotten what that transaction did here); the 4 at
 * WIRE_GTRID_PID are the process.  One that came by XA begins with WIRE_GTRID_XID; then the XID: formatID (8, signed), length of its
 * gtrid (1), gtrid, bqual.  Its branch is opened by WIRE_TX_START and by nothing else, so what a restart forgot stays forgotten.
 */
#define WIRE_GTRID_TIME 0
#define WIRE_GTRID_PID 8
#define WIRE_GTRID_XID 0xff
#define WIRE_GTRID_MAX 138
#define WIRE_NAME 128		/* service, queue and space names, NUL included */
#define WIRE_GROUP 32		/* group names, NUL included */
#define WIRE_MAX_GROUPS 32	/* groups that one transaction may join */

/* The transaction a request belongs to.  gtrid_len 0: none. */
struct wire_tx {
	uint8_t gtrid_len;
	uint8_t gtrid[WIRE_GTRID_MAX];
	uint32_t timeout_ms;	/* time the transaction has left; opens the branch with that deadline */
};

/* A list of groups. */
struct wire_groups { uint8_t n; char name[WIRE_MAX_GROUPS][WIRE_GROUP]; };

struct wire_enqueue {
	uint64_t reqid;
	struct wire_tx tx;
	char queue[WIRE_NAME];
	uint32_t flags;			/* TPQ bits as the caller gave them */
	int64_t deq_time;		/* these only where their flag is on; zero otherwise */
	int64_t exp_time;
	int32_t priority;
	int32_t delivery_qos, reply_qos;
	uint8_t msgid[TMMSGIDLEN];	/* TPQBEFOREMSGID */
	uint8_t corrid[TMCORRIDLEN];
	char replyqueue[WIRE_NAME], failurequeue[WIRE_NAME];
	int64_t urcode;			/* always */
	int64_t cltid[4], appkey;	/* who sends */
	char type[9], subtype[17];	/* of the typed buffer; "" without a data part */
	uint32_t timeout_ms;		/* how long the caller will wait; 0: for ever */
	uint8_t has_body;
	/* With tx: when it is stored, or its queue is not there, the branch is committed, as the only one of its transaction: the answer is
	 * a TXREPLY then.  When it is refused for another reason, which a QREPLY says, the branch stays. */
	uint8_t commits;
};

#define WIRE_QDELAYED 0x10000000u	/* with TPQGETBYMSGID: also a message whose retry delay still runs */
struct wire_dequeue {
	uint64_t reqid;
	struct wire_tx tx;
	char queue[WIRE_NAME];
	uint32_t flags;			/* TPQ bits; TPQWAIT makes an action */
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	uint32_t timeout_ms;		/* how long the caller will wait; 0: for ever */
	uint8_t nochange;		/* TPNOCHANGE: only a message of `type`, `subtype` is taken, else TPEOTYPE */
	char type[9], subtype[17];
};

struct wire_qreply {
	uint64_t reqid;
	int32_t error;			/* 0, or a TPE code; TPEDIAGNOSTIC: see diagnostic */
	int32_t diagnostic;		/* a QME code, or 0 */
	uint8_t doomed;			/* 1: the branch is now rollback-only */
	char group[WIRE_GROUP];		/* group whose branch was joined; "" outside a transaction */
	uint32_t flags;			/* which of the following the sender of the message supplied (TPQ bits) */
	uint8_t msgid[TMMSGIDLEN];
	uint8_t corrid[TMCORRIDLEN];
	char replyqueue[WIRE_NAME], failurequeue[WIRE_NAME];
	int32_t priority, delivery_qos, reply_qos;
	int64_t urcode, cltid[4], appkey;
	char type[9], subtype[17];
	uint8_t has_body;
	char queue[WIRE_NAME];		/* QWAIT: the queue that has something */
	int32_t retries;		/* dequeue: how often the message was rolled back so far */
};

#define WIRE_MAX_QWAIT 256
struct wire_qwait {
	uint64_t reqid;
	uint32_t timeout_ms;
	uint16_t n;
	char queue[WIRE_MAX_QWAIT][WIRE_NAME];
};

struct wire_cancel { uint64_t reqid; uint64_t target; };

/*
 * Why a transaction is rolled back, as the one who does it knows: a tperrno (0: because its program wanted it), the
 * tpurcode that came with it, and a few words.  It goes with its messages to the error queue.
 */
#define WIRE_WHY 128
struct wire_why { int32_t error; int64_t urcode; char text[WIRE_WHY]; };

enum wire_txop {
	WIRE_TX_COMMIT = 1,	/* the initiator: commit; with several groups the one that is asked coordinates */
	WIRE_TX_ABORT,		/* roll back, prepared or not */
	WIRE_TX_PREPARE,	/* the coordinator (groups, it comes first; none: a transaction manager that will not be asked): vote */
	WIRE_TX_QUERY,		/* a prepared participant to the coordinator: what became of it? */
	WIRE_TX_FORGET,		/* the heuristic outcome is known: remember it no longer */
	WIRE_TX_DECIDED,	/* the coordinator: commit what was prepared */
	WIRE_TX_START,		/* XA: open the branch */
	WIRE_TX_JOIN,		/* XA: is the branch there, and active? */
	WIRE_TX_DOOM,		/* XA: its work failed; rollback-only from now on */
	WIRE_TX_LAST = WIRE_TX_DOOM
};
enum wire_outcome {
	WIRE_OUT_NONE,		/* nothing to tell: see error */
	WIRE_OUT_PREPARED,	/* the vote is yes, on disk */
	WIRE_OUT_READ_ONLY,	/* the vote is yes; there was nothing to commit, and the branch is gone */
	WIRE_OUT_COMMITTED,
	WIRE_OUT_ROLLED_BACK,
	WIRE_OUT_UNDECIDED,	/* being decided: ask again */
	WIRE_OUT_NONE_SUCH,	/* no such branch (any more) */
	WIRE_OUT_HEUR_COMMITTED,/* an administrator did, against or before the decision; remembered until FORGET */
	WIRE_OUT_HEUR_ROLLED_BACK,
	WIRE_OUT_HEUR_MIXED,	/* of the coordinator: some groups so, some so */
	WIRE_OUT_HEUR_HAZARD,	/* of the coordinator: some group may have ended otherwise */
	WIRE_OUT_LAST = WIRE_OUT_HEUR_HAZARD
};
struct wire_txend {
	uint64_t reqid;
	uint8_t op;			/* enum wire_txop */
	struct wire_tx tx;
	uint8_t logged;			/* TP_CMT_LOGGED: answer after the decision */
	uint32_t timeout_ms;		/* how long the caller will wait; 0: for ever */
	struct wire_groups groups;	/* all that joined; the first one coordinates */
	struct wire_why why;		/* of an abort; all zero: not told */
	uint8_t uncounted;		/* of an abort: what was taken comes back as if it had not been */
};
/* error: 0, or TPEABORT (rolled back), TPETIME, TPESYSTEM, TPEHEURISTIC, TPEHAZARD, TPEPROTO, TPEMATCH (START: it is there already),
 * TPENOENT (this server stands by), TPELIMIT.  Which outcomes go with which op: INTERFACES.md. */
struct wire_txreply { uint64_t reqid; int32_t error; uint8_t outcome; };

struct wire_call {
	uint64_t reqid;
	struct wire_tx tx;
	char service[WIRE_NAME];
	uint32_t flags;			/* TPNOREPLY; TPNOTRAN; bits 16-31: the mark of the table that has the transaction, 0: none */
	int32_t priority;		/* 1..100 */
	int64_t cltid[4], appkey;
	uint32_t timeout_ms;		/* of the caller; 0: none */
	char type[9], subtype[17];
	uint8_t has_body;
};
struct wire_reply {
	uint64_t reqid;
	int32_t error;			/* 0, TPESVCFAIL, TPESVCERR, TPENOENT, TPEITYPE, ... */
	int64_t urcode;
	uint8_t doomed;
	uint8_t leaving;		/* the server ends now and takes no request more */
	uint8_t more;			/* to a shared request queue: this request is over, and the server takes one more */
	struct wire_groups groups;	/* joined in the caller's transaction */
	char type[9], subtype[17];
	uint8_t has_body;
};

/*
 * MEMBER: between a server and TMRQ, the queue of requests that it shares.  It joins, says what it offers, and asks for
 * requests: as many come as it asked for.  reqid: of READY, the request that is over; 0: none.
 */
enum wire_memberop {
	WIRE_MEMBER_JOIN = 1,	/* srvid, pid */
	WIRE_MEMBER_OFFER,	/* service */
	WIRE_MEMBER_WITHDRAW,	/* service */
	WIRE_MEMBER_READY,	/* request reqid is over (its answer, if it has one, may come later); send `more` more */
	WIRE_MEMBER_LEAVE,	/* send no more than what waits for this server alone; TMRQ says the same when that is over */
	WIRE_MEMBER_LAST = WIRE_MEMBER_LEAVE
};
struct wire_member {		/* what the operation does not have is zero */
	uint64_t reqid;
	uint8_t op;			/* enum wire_memberop */
	int32_t srvid, pid;
	uint16_t more;
	char service[WIRE_NAME];
};

/*
 * ADMIN: an operation's name and named values; the answer is a status and a list of records of named values.  All
 * strings.  Which operations exist, and what they take and give, is listed in INTERFACES.md.
 */
struct kv { char *key, *value; };
struct record { size_t n; struct kv *kv; };
struct document { size_t n; struct record *rec; };	/* zero-initialise; owned strings; free with document_free() */

struct wire_admin {
	uint64_t reqid;
	char op[32];
	struct document doc;		/* one record, the arguments; may be empty */
};
struct wire_adminreply {
	uint64_t reqid;
	int32_t status;			/* 0: well */
	char *text;			/* why not; malloc'ed */
	struct document doc;
};

/* A new empty record; NULL when out of memory; valid until the next add. */
struct record *document_add(struct document *d);
int record_set(struct record *r, const char *key, const char *value);	/* copies; 0 or -1 */
int record_setf(struct record *r, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *record_get(const struct record *r, const char *key);	/* NULL when absent */
long record_long(const struct record *r, const char *key, long otherwise);
void document_free(struct document *d);

/* Peeking: what a frame is before it is decoded.  0, or -1 when the version or the length is wrong. */
int wire_peek(const uint8_t *p, size_t n, enum wire_kind *kind, uint64_t *reqid);
bool wire_is_tentative(const uint8_t *p, size_t n);	/* ENQUEUE, DEQUEUE in a transaction: what it does is not on disk yet */

#define WIRE_CODEC(kind) \
	void wire_##kind##_encode(struct wr *w, const struct wire_##kind *m); \
	int wire_##kind##_decode(const uint8_t *p, size_t n, struct wire_##kind *m)

WIRE_CODEC(enqueue);
WIRE_CODEC(dequeue);
WIRE_CODEC(qreply);
WIRE_CODEC(qwait);
WIRE_CODEC(cancel);
WIRE_CODEC(txend);
WIRE_CODEC(txreply);
WIRE_CODEC(call);
WIRE_CODEC(reply);
WIRE_CODEC(member);
WIRE_CODEC(admin);		/* decode allocates doc; document_free(&m->doc), also after -1 it is empty */
WIRE_CODEC(adminreply);		/* decode allocates text and doc */

#endif
