/*
 * impl - what the files of libatmiq share: contexts, the transaction of a context, typed buffers.
 *
 * Every ATMI call enters a context (which locks it), does its work, leaves it, and only then sets tperrno and returns.
 */
#ifndef IMPL_H
#define IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "atmi.h"
#include "tx.h"
#include "userlog.h"
#include "conn.h"
#include "gtt.h"
#include "ubb.h"
#include "wire.h"

#define MAX_CALLS 50		/* open call descriptors of one context */

/* --- the application that a program belongs to: shared by its contexts --- */
struct app {
	int refs;
	char *tuxconfig;
	char bbl[CONN_ENDPOINT];
	struct ubb *ubb;
	int64_t blocktime_us;		/* of RESOURCES */
	atomic_bool gtt_known;		/* it was looked for: */
	struct gtt *gtt;		/* NULL: there is none that can be used */
	atomic_bool slots_known;
	struct slots *slots;
};
int app_get(struct app **out);		/* 0, TPENOENT, TPESYSTEM, TPEOS: logged with the path */
void app_put(struct app *a);
struct gtt *app_gtt(struct app *a);	/* the table of transactions; NULL: there is none, which is logged once */
struct slots *app_slots(struct app *a);	/* that of servers; likewise */

/* --- the transaction of a context --- */
struct tran {
	bool active;
	bool initiator;			/* of ours, not a caller's */
	bool doomed;			/* rollback-only */
	bool autotran;			/* begun by the dispatcher for a service */
	bool by_tx;			/* begun by tx_begin(): ended by tx_ calls */
	uint8_t gtrid_len;
	uint8_t gtrid[WIRE_GTRID_MAX];
	int slot;			/* in the table of transactions, + 1; 0: none, as of a caller's */
	uint16_t table;			/* the mark of the one that its initiator's slot is in; 0: in none */
	int64_t deadline_us;
	struct wire_groups groups;	/* that joined, the first one first */
	struct wire_why why;		/* what doomed it first; all zero: nothing did */
	bool uncounted;			/* it is rolled back without a retry being counted */
};

/* --- contexts --- */
struct call {				/* an open descriptor of tpacall() */
	int cd;				/* 0: free */
	bool intran;
	char service[WIRE_NAME];
	bool refused;			/* the server does not offer the service, or ends: nothing was done */
	bool unbegun;			/* the server died before it began it: likewise */
	bool at_hand;			/* its data is there while it waits: who made the call sends it again */
	int64_t blocktime_us;		/* of the service, 0: none */
	struct pending pending;
};
struct line {				/* links that one thread at a time uses */
	struct conn conn;
	struct line *next;
};
struct context {
	struct context *next;
	int refs;			/* threads that have it as their own, and the list while it is joined */
	long id;			/* TPSINGLECONTEXT, or 1... */
	bool joined;
	bool server;
	pthread_mutex_t lock;
	struct app *app;
	struct line *line;		/* of whoever holds the lock; NULL while a queue operation has taken it away */
	struct line *idle;		/* that further threads needed once */
	int away, away_in_tran;		/* queue operations under way without the lock; those of the transaction */
	pthread_cond_t back;		/* fewer of them */
	struct tran tran;
	struct suspended *of_request;	/* the transaction that a service was called in, which it suspended; NULL: it did not */
	struct call calls[MAX_CALLS];
	int last_cd;
	int64_t cltid[4];
	char who[2 * (MAXTIDENT + 2) + 16];	/* the names given to tpinit(), for people; "": none */
	long appkey;
	int prio_next;			/* tpsprio: 0 none */
	bool prio_absolute;
	int prio_last;			/* tpgprio: 0 none */
	int64_t blk_next_us, blk_all_us;/* tpsblktime: 0 none */
	bool commit_logged;		/* tpscmt */
	/* TX */
	bool tx_open, tx_chained;
	bool abort_found_committed;	/* an administrator had committed all that the last tpabort() or tx_rollback() was to undo */
	long tx_timeout;
};

#define fail(code) (tperrno = (code), -1)

static inline struct conn *
conn_of(struct context *ctx)
{
	return &ctx->line->conn;
}

/*
 * The context of this thread, locked; joins implicitly where that is allowed.  NULL with tperrno set otherwise.
 * context_leave() unlocks and sets tperrno when err is not 0; returns 0 or -1.
 */
struct context *context_enter(void);
struct context *context_enter_joined(void);	/* the same, but NULL without an error when nothing was joined */
int context_leave(struct context *ctx, int err);
/*
 * A queue operation gives the lock away while it is under way, on links of its own, so that other threads of the context
 * can work: context_away() unlocks (NULL: no memory, still locked); context_again() locks; context_back() gives the links back.
 * Until then the context is not left and its transaction is not ended.
 */
struct conn *context_away(struct context *ctx, bool in_tran);
void context_again(struct context *ctx);
void context_back(struct context *ctx, struct conn *conn, bool in_tran);
bool context_settle(struct context *ctx);	/* wait for those of the transaction; false: the context was left meanwhile */
/* A server's context: single, not joined at BBL.  Taken once, at start. */
int context_serve(struct app *app, const int64_t cltid[4], struct context **out);
void context_serve_end(struct context *ctx);
/* The server goes over to several threads: the context of context_serve() becomes the calling thread's own.  Harmless twice. */
void context_serve_multi(void);
/* After that: a serving context of the calling thread's own, to be ended there by context_serve_end().  0 or a TPE code. */
int context_serve_thread(const int64_t cltid[4], struct context **out);
void context_serve_again(struct context *ctx);	/* whatever the thread works in by now, it is ctx again */
bool context_is_server(void);
void context_to_log(void);	/* tran_to_log() of the context of this thread, where that can be looked at without waiting */

/* --- time --- */
int64_t deadline_from(int64_t us);	/* now + us, LINK_FOREVER for 0 */
uint32_t time_left_ms(int64_t deadline_us);	/* at least 1; 0 for ever */
/* How a call with `flags` may wait; consumes TPBLK_NEXT. */
void call_patience(struct context *ctx, long flags, struct patience *out);
void patience_of_service(struct patience *how, int64_t blocktime_us);	/* once the service is known; 0: it has none */
int64_t blocking_us(const struct context *ctx);
int64_t blocking_of_end_us(const struct context *ctx);	/* of tpcommit() and tpabort() */
int call_priority(struct context *ctx, long service_prio);	/* of the next request; consumes tpsprio */

/* --- transactions --- */
bool tran_usable(struct context *ctx);	/* false: rollback-only, or its time is over, which dooms it */
bool tran_joins(const struct context *ctx, long flags);
void tran_doom(struct context *ctx);
/* The same, and what did it: told to the queue managers with the rollback.  The first one counts. */
void tran_doom_because(struct context *ctx, int error, long urcode, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void tran_to_wire(const struct context *ctx, struct wire_tx *tx);
bool tran_join_group(struct context *ctx, const char *group);	/* false: one too many; the transaction is doomed */
enum tran_by { TRAN_BY_PROGRAM, TRAN_BY_TX, TRAN_BY_AUTOTRAN };
int tran_begin(struct context *ctx, unsigned long timeout_s, enum tran_by by);	/* these: 0 or a TPE code */
int tran_commit(struct context *ctx);
int tran_abort(struct context *ctx);
bool tran_is_programs(const struct context *ctx);	/* its program began it, by tpbegin() or tx_begin(), and may end it */
void tran_resume(struct context *ctx, const struct tran *t);	/* go on with one that was put aside */
int groups_commit(struct context *ctx);		/* tell those that joined; the transaction itself is the caller's to forget */
int groups_abort(struct context *ctx);
/* A commit that went to the only group with another request: what its answer says, or (reply NULL) that it has none.  0 or a TPE code. */
int group_committed(struct context *ctx, const struct wire_txreply *reply, int err);
/* A service works in its caller's transaction. */
void tran_enter_callers(struct context *ctx, const struct wire_call *call);
bool tran_is_over(const struct context *ctx);	/* its initiator has ended it, or its time is up; false also where that is not known */
void tran_enter(struct context *ctx);	/* ctx->tran is filled in */
void tran_leave(struct context *ctx);	/* it goes on elsewhere: suspended */
void tran_forget(struct context *ctx);	/* it is over, or never was */
void tran_fork_child(void);
/* Lines that this thread logs bear the id of the context's transaction; of none when ctx is NULL or in none. */
void tran_to_log(const struct context *ctx);
/* A service ends.  True: the transaction that it was called in is suspended; it is taken back, and doomed, for it must not
 * be committed without the caller knowing what joined. */
bool tran_request_back(struct context *ctx);
int rm_open(void);			/* the linked resource manager: 0 or TPERMERR */
int rm_close(void);
void rm_set(struct xa_switch_t *rm, const char *openinfo, const char *closeinfo);

/* --- branches of another transaction manager, by XA (xa_state.c) --- */
struct xa_assoc;
bool xa_working(void);			/* this thread is associated with one */
/* That of this thread at one of the service's groups; *tx is its id, *only lets no other group be asked.  NULL: none. */
struct xa_assoc *xa_of_service(const struct service *s, struct wire_tx *tx, struct wire_groups *only);
void xa_doom(struct xa_assoc *a, int code);	/* an XA_RB code; the first one counts */
bool xa_doomed(const struct xa_assoc *a);
void xa_fork_child(void);

/* --- typed buffers --- */
struct typed { char type[9], subtype[17]; long size; };
int buffer_look(const char *data, struct typed *out);	/* 0, or -1: not from tpalloc */
/*
 * What of `data` goes into a message: *n bytes.  data NULL: nothing.  0, TPEINVAL, or TPESYSTEM: a function of its type failed.
 * After 0 the caller says buffer_sent(), whatever became of the message; freeing the buffer says so too.
 */
int buffer_outgoing(const char *data, long len, struct typed *t, long *n);
void buffer_sent(const char *data);	/* NULL is fine */
/*
 * Put received bytes into *data, which is retyped and grown; *len: what the program is told of, usually n.  TPEOTYPE: nochange
 * and the types differ; TPEOS; TPESYSTEM: a function of its type failed.
 */
int buffer_incoming(char **data, const char *type, const char *subtype, const void *p, size_t n, bool nochange, long *len);
/* The same into a new buffer.  On error *data may be one, to be freed. */
int buffer_received(char **data, const char *type, const char *subtype, const void *p, size_t n, long *len);
char *buffer_new(const char *type, const char *subtype, long size);	/* of any type name; NULL: out of memory, or its type refuses */
void buffer_free(char *data);			/* inbound or not */
void buffer_release(void *data, void *hint);	/* for struct link_body */
void buffer_inbound(char *data);	/* of this thread: tpfree() leaves it alone; NULL for none */
char *buffer_inbound_now(void);		/* where it is after what the service did with it */
void buffer_fork_prepare(void);
void buffer_fork_done(void);

/* --- calls --- */
/* only_intran: those of the transaction.  Which groups joined it is learnt from the answers that are there. */
void calls_forget(struct context *ctx, bool only_intran);
int calls_open(const struct context *ctx, bool only_intran);

/* --- routing by data: route.c --- */
/* The group that a request with these data goes to, "" any, into pending.only.  0, or TPESYSTEM: it cannot be told; logged. */
int route_choose(const struct app *app, const struct service *s, const char *type, const char *subtype, char *data, long len,
    char group[WIRE_GROUP]);
void route_dequeue(const struct app *app, const struct service *s, const char *type, const char *subtype, char group[WIRE_GROUP]);

/* --- serving --- */
extern char svr_self[CONN_ENDPOINT];	/* where this process, on one thread, serves; "": it does not */
int svr_wake_fd(void);		/* readable once a stop is asked for; -1 in a client */

#endif
