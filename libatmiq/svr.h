/*
 * svr - a server of the application: what its files share.
 */
#ifndef SVR_H
#define SVR_H

#include <setjmp.h>
#include <stdatomic.h>

#include "impl.h"
#include "bb.h"

/* What the command line says (servopts(5)). */
struct svropts {
	long grpno, srvid;
	const char *node, *ulogpfx;
	bool all;			/* -A */
	size_t n_services;		/* -s name[:function]: function "" for the one of the same name */
	struct { char name[WIRE_NAME], function[WIRE_NAME]; } *services;
	const char *outfile, *errfile;
	bool report;			/* -r: a line on stderr for each request done */
	bool lock, hangup;		/* -l t; -h */
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
	long trantime;
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
};
extern struct svr svr;			/* a process is at most one server */

/* Become a server: options, configuration, log, files, signals, registration.  calls: it has services to be called. */
int svr_attach(int argc, char **argv, bool calls);	/* 0, or -1: logged */
void svr_detach(int status);
bool svr_stopping(void);
bool svr_turns_away(void);		/* who has his answer is to send his next request elsewhere */

/* Services. */
int offer_add(const char *name, void (*call)(TPSVCINFO *));	/* 0 or a TPE code */
int offer_remove(const char *name);
void offers_withdraw(void);
struct offer *offer_find(const char *name);

/* A thread that serves, and the request it is at. */
struct work {
	struct context *ctx;		/* of the thread */
	bool active;
	bool ended;			/* tpreturn() or tpforward() was called */
	jmp_buf back;
	struct link_peer peer;
	struct wire_call call;
	int64_t deadline_us;
	struct offer *offer;
	TPSVCINFO info;
};
extern __thread struct work *work_here;	/* of the thread that this is; NULL: it serves nothing */

void svr_reply(const struct link_peer *to, const struct wire_reply *m, const struct link_body *body);
void svr_reply_over(void);		/* the thread sends none any more: its memory for them is given back */
void work_run(struct work *w, struct link_msg *m);	/* one CALL, from request to reply */
void work_refuse(const struct link_msg *m, const char *why);	/* it is for another server, if there is one */

/*
 * Requests forwarded, whose replies pass through here on their way to the caller.  relay_start(): 0, or a TPE code: not sent.
 * A transaction that began here goes along, out of the context, and ends when the reply is back.
 */
void relay_open(const char *bbl);
int relay_start(const struct work *w, const char *service, const char *type, const char *subtype,
    const struct link_body *body);
size_t relay_waitables(struct link_wait *w, size_t max);
void relay_poll(void);			/* pass on what has come; drop what is out of time */
bool relay_busy(void);
int64_t relay_next_us(void);		/* when the first of them is out of time */
void relay_close(void);

#endif
