/*
 * svr - a server of the application: what its files share.
 */
#ifndef SVR_H
#define SVR_H

#include <setjmp.h>
#include <stdatomic.h>

#include "impl.h"
#include "bb.h"
#include "rqueue.h"

/* What the command line says (servopts(5)). */
struct svropts {
	long grpno, srvid;
	const char *node, *ulogpfx;
	bool all;			/* -A */
	size_t n_services;		/* -s name[:function]: function "" for the one of the same name */
	struct { char name[WIRE_NAME], function[WIRE_NAME]; } *services;
	const char *outfile, *errfile;
	bool report;			/* -r: a line on stderr for each request done */
	bool lock, hangup;		/* -l t, d or p; -h */
	bool list;			/* -v: print what was built in, and end */
	int nice;
	int argc;			/* the server's own: program name, and what follows -- */
	char **argv;
};
int svropts_parse(int argc, char **argv, struct svropts *o);	/* 0, or -1: logged */

/* A service on offer. */
struct offer {
	struct offer *next;
	char name[WIRE_NAME];
	void (*call)(TPSVCINFO *);
	bool offered;			/* false once unadvertised: kept, for psr may still show its name */
	unsigned load;
	bool autotran;
	long trantime, svctimeout;	/* seconds; svctimeout 0: none */
};

struct svr {
	struct svropts opt;
	char program[WIRE_NAME];
	struct app *app;
	const struct ubb_group *group;
	const struct ubb_server *conf;
	struct context *ctx;
	struct bb_agent *agent;
	struct link_server *link;
	struct offer *offers;
	struct tmserver *built;
	uint64_t strange;		/* messages that were dropped as nonsense */
	int64_t busy_since_us;		/* no request has waited since before that */
	atomic_bool leaving;		/* TPEXIT */
	struct slots *slots;		/* where our slot is; NULL: we have none */
	int slot;
	struct tmthreads *threads;	/* it serves on several; NULL: on one, which receives too */
};
extern struct svr svr;			/* a process is at most one server */

/* Become a server: options, configuration, log, files, signals, registration.  calls: it has services to be called. */
int svr_attach(int argc, char **argv, bool calls);	/* 0, or -1: logged */
void svr_detach(int status);
bool svr_stopping(void);
bool svr_turns_away(void);		/* who has his answer is to send his next request elsewhere */

void serve(void);			/* until it is to end, and nothing waits any more: svrloop.c */

/* Services. */
int offer_add(const char *name, void (*call)(TPSVCINFO *));	/* 0 or a TPE code */
int offer_remove(const char *name);
void offers_withdraw(void);
void offers_each(void (*tell)(const char *service, bool yes));	/* all that are offered; with true */
struct offer *offer_find(const char *name, void (**call)(TPSVCINFO *));	/* NULL: not on offer; it lives for ever */

/* A request that has arrived. */
struct request {
	struct rqueue_entry entry;	/* first: see svrqueue.c */
	struct request *next;
	struct link_msg m;
	struct wire_call call;		/* decoded from it */
	int64_t deadline_us;		/* of its caller */
	int64_t since_us;		/* it cannot have waited for longer than since then */
	bool counted;			/* its sender counted it in our slot, with this load */
	unsigned load;
	bool held;			/* it counts against its sender (link_server_hold) */
	bool shared;			/* it came from the queue of a set, which is to be told when it is over */
	bool asked;			/* and one more was asked for with its answer */
};
#define LATE_US 50000LL			/* a request that may have waited so long is looked at twice */

/* An answer: in the kernel, or wanted by nobody; partly in our memory; not sent, to a caller who may still be there. */
enum svr_sent { SVR_SURE, SVR_OWED, SVR_LOST };

/* A thread that serves, and the request it is at. */
struct work {
	struct context *ctx;		/* of the thread */
	struct request *request;
	struct offer *offer;
	void (*call)(TPSVCINFO *);	/* what was offered when the request's turn came */
	bool active;
	bool ended;			/* tpreturn() or tpforward() was called */
	jmp_buf back;
	TPSVCINFO info;
	enum svr_sent sent;		/* what became of its answer */
	bool marked, numbered;		/* svrmark.c's */
	unsigned number;
	/* svrqueue.c, under its lock */
	bool waits;
	struct work *next_idle;
	pthread_cond_t wake;		/* by CLOCK_MONOTONIC */
};
extern __thread struct work *work_here;	/* of the thread that this is; NULL: it serves nothing */

enum svr_sent svr_reply(const struct link_peer *to, const struct wire_reply *m, const struct link_body *body);
void svr_reply_over(void);		/* the thread sends none any more: its memory for them is given back */
void work_run(struct work *w, struct request *r);	/* one CALL, from request to reply; r is put back */
void work_refuse(const struct request *r, const char *why);	/* it is for another server, if there is one */
void work_clean(struct context *ctx);	/* calls and a transaction left open are over */

/* --- our slot in the table of servers: svrmark.c --- */
void mark_open(void);
void mark_close(void);			/* no request is begun any more */
void mark_begin(struct work *w);	/* before anything is done for its request; */
void mark_end(struct work *w);		/* once it is answered, w->sent says how */
int mark_pass_on(struct work *w);	/* the request goes on after the thread's work; for: */
void mark_passed(int kept, enum svr_sent sent, const struct link_peer *caller);
void mark_done(struct request *r);	/* served, refused or dropped: it waits no more; before its caller hears of it.  Harmless twice */
void mark_thread_over(struct work *w);	/* the thread ends */

/* --- requests that wait: svrqueue.c --- */
struct request *request_get(void);	/* NULL: no memory */
void request_put(struct request *r);	/* done with */
bool requests_add(struct request *r);	/* false: no thread waited for one */
bool requests_wait(void);
void requests_cancel(const struct link_peer *peer, uint64_t reqid);
/* The one whose turn it is; those that nobody waits for any more are dropped.  NULL: none is there. */
struct request *requests_take(void);
/* The same for one of several threads, which waits.  NULL: it is to end. */
struct request *requests_await(struct work *w);
extern int64_t requests_idle_us;	/* a thread above `least` that waited for so long ends */
void requests_thread_more(unsigned least);	/* a thread will come to requests_await() soon; it counts as busy */
void requests_thread_less(void);	/* it will not */
unsigned requests_threads(void);
void requests_settle(void);		/* until none waits and all threads do */
void requests_close(void);		/* the threads end when none is left */

/* --- threads that serve: svrthread.c; called by the one that receives --- */
int threads_start(void);		/* those that serve from the start.  0, or -1: one cannot; logged, and none runs */
void threads_more(void);		/* requests wait and nobody is idle: one more, if it may be */
void threads_end(void);			/* those requests are served, the threads are gone */

/* --- a server of an MSSQ set, whose requests come from a queue that it shares: svrset.c --- */
int set_open(const struct ubb_set *of, char *endpoint, size_t size);	/* we are one; where callers find the set.  0, or -1: logged */
int set_join(unsigned room, int wake_fd);	/* ready for so many requests at once.  0, or -1: logged */
bool set_member(void);
bool set_is_from(const struct link_peer *peer);
bool set_take(struct link_msg *m);	/* a request that is there; false: none */
int set_fd(void);			/* readable when there may be one, or wake_fd is */
int64_t set_next_us(void);		/* when set_take() wants to be called although nothing came */
void set_offer(const char *service, bool yes);
/* An answer; more: and send one more.  False: it was not sent, and nothing was asked for. */
bool set_reply(const struct link_peer *to, const struct wire_reply *m, bool more, const struct link_body *body);
void set_over(const struct link_peer *peer, uint64_t reqid, bool asked);	/* of each that set_take() gave */
void set_leave(void);			/* we end: what comes until set_left() is ours still */
bool set_left(void);
void set_close(void);

/*
 * Requests forwarded, whose replies pass through here on their way to the caller.  A transaction that began here goes along,
 * out of the context, and ends when the reply is back.
 *
 * In a server of one thread that one calls all of these; where services run on several, these call relay_new() and relay_go()
 * alone, and a thread of relay's own does the rest.
 */
struct relay;
int relay_open(struct app *app, bool threads);	/* 0, or -1: logged */
/* To service `name`, with n bytes of data (NULL: none), which are relay's from here on.  NULL: no memory, and nothing changed. */
struct relay *relay_new(struct work *w, const char *name, const struct typed *type, char *data, long n);
void relay_go(struct relay *r);		/* its caller is answered whatever happens.  No context is locked meanwhile */
size_t relay_waitables(struct link_wait *w, size_t max);
void relay_poll(void);			/* pass on what has come; drop what is out of time */
bool relay_busy(void);			/* this thread has to wait for some */
int64_t relay_next_us(void);		/* when the first of them is out of time */
void relay_close(int64_t until_us);	/* those still under way then are given up; nobody calls relay_go() any more */

/*
 * TMQUEUE and TMQFORWARD, built anew by buildserver (svrown.c): which one this process is to be; NULL: none.  own_run() is it, to
 * its end.
 */
extern const char _tmserverprogram[] __attribute__((weak, visibility("default")));
const char *own_program(void);
int own_run(int argc, char **argv, const struct tmserver *built);

#endif
