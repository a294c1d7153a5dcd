/*
 * conn - the servers that a context talks to: their names, the links to them, and the requests under way.
 *
 * Names are asked of BBL once and kept; they are asked again when the server behind them is gone.  A request that was
 * surely not sent goes to another server, or waits for one to come back, until its deadline.  A reply that nobody waits
 * for any longer is dropped by its request id.
 *
 * Errors     0 or a TPE code of atmi.h; the cause is logged where it is found.
 * Threads    One thread at a time may use a struct conn.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link.h"
#include "slots.h"
#include "wire.h"

#define CONN_ENDPOINT 256
#define CONN_REFUSALS 20		/* until BBL knows what the server knows: two seconds */
#define CONN_KEEP_MAX 32768		/* a request with a longer body is not kept to be sent again */

struct peer {				/* one server we are linked to */
	struct peer *next;
	struct link_client *link;
	unsigned outstanding;		/* requests sent and not answered */
	bool used;			/* something was sent: the connection stands */
	bool leaving;			/* it said that it ends: no request more for it, nor for its endpoint until it is gone */
	bool recognised;		/* we know which process it is, or that we cannot: */
	struct slots_ref ref;
	char endpoint[CONN_ENDPOINT];
};

struct target {				/* one server that offers a service */
	struct peer *peer;		/* NULL until it is first called */
	char endpoint[CONN_ENDPOINT];
	char group[WIRE_GROUP];
	long grpno, srvid, load;
	struct slots_ref ref;		/* of the process that serves there, as far as we know */
	int64_t looked_us;		/* when it was last looked for */
};

struct service {			/* what BBL said about a name */
	struct service *next;
	char name[WIRE_NAME];
	long prio, trantime, blocktime_ms;
	bool autotran;
	char *buftype;			/* "" or ALL: any */
	char routing[WIRE_GROUP];	/* criterion; "": none */
	unsigned turn;			/* round robin among the equally busy */
	size_t n;
	struct target target[];
};

enum pending_state { PENDING_NONE, PENDING_WAITING, PENDING_ANSWERED, PENDING_GONE };
struct pending {			/* a request under way; the caller's memory, zero-initialised */
	struct pending *next;
	enum pending_state state;
	uint64_t reqid;
	struct peer *peer;
	struct link_msg *msg;		/* ANSWERED */
	bool unbegun;			/* GONE: its server died before it began it, which is as surely not sent */
	char only[WIRE_GROUP];		/* set before it is submitted: no other group may have it; "": any */
	struct kept *kept;		/* what conn_again() needs; NULL: nothing */
	bool again;			/* who submitted it sends it again if it was not begun: a refusal is GONE and unbegun, not ANSWERED */
	unsigned refusals;		/* so many of those so far; after CONN_REFUSALS one is an answer */
	char group[WIRE_GROUP];		/* of the server that has it */
};

struct conn {
	char bbl[CONN_ENDPOINT];
	int64_t bbl_patience_us;	/* how long a name may wait for a BBL that does not answer, TPNOTIME or not */
	uint64_t last_reqid;		/* begins anywhere: among all connections of all processes it names the request */
	struct slots *slots;		/* NULL: there is no table */
	bool ldbal;
	const char *self;		/* the endpoint of this server, which is busy while it waits for an answer; "" or NULL: none is */
	struct peer *peers;
	struct service *services;
	struct pending *pendings;
	unsigned lost;			/* requests whose server went, so far */
	struct link_msg *spare;		/* received into; handed over to the request it answers */
	struct wr out;			/* header frame under construction; memory is kept between calls */
};

struct patience {			/* how a caller is willing to wait */
	int64_t began_us, deadline_us;
	bool by_service;		/* the service's own blocking time may replace the general one */
	bool noblock;			/* TPNOBLOCK: not for sending */
	bool restart;			/* TPSIGRSTRT: through signals */
};

void conn_open(struct conn *c, const char *bbl_endpoint, int64_t bbl_patience_us);
void conn_balance(struct conn *c, struct slots *slots, bool ldbal);	/* slots: NULL, or lives longer than c */
void conn_close(struct conn *c);	/* never waits; requests under way are forgotten */

/*
 * What is known about a service.  *out lives until the next call on `c`.
 *   TPENOENT  nobody offers it       TPETIME  being started, and not ready by the deadline
 *   TPESYSTEM BBL does not answer    TPGOTSIG
 */
int conn_lookup(struct conn *c, const char *name, const struct patience *how, const struct service **out);
bool conn_accepts_type(const struct service *s, const char *type, const char *subtype);

uint64_t conn_next_reqid(struct conn *c);
/*
 * Send the header that stands in c->out, with request id p->reqid, to one of the servers of `service`, and put p among
 * the requests under way.  `joined` (NULL: none): groups to prefer; when they are as many as may join one transaction, only
 * these.  A code other than 0 means surely not sent: those of conn_lookup(), TPETIME, TPEBLOCK, TPEOS, and TPETRAN when
 * the service is offered by a group too many.  TPENOENT also when p->only does not offer it.
 */
int conn_submit(struct conn *c, const char *service, const struct wire_groups *joined, const struct link_body *body,
    const struct patience *how, struct pending *p);
/*
 * Wait until p is answered (0; look at p->msg) or lost.  wake_fd, -1 for none, ends the wait with TPGOTSIG when
 * readable.
 *   TPETIME   not by the deadline    TPGOTSIG     TPESVCERR  the server is gone: the outcome is unknown
 */
int conn_await(struct conn *c, struct pending *p, const struct patience *how, int wake_fd);
/* Wait until one of the requests under way leaves WAITING; those that can be sent again do not count,
 * but that one becomes so ends the wait.  TPEBADDESC: none waits. */
int conn_await_any(struct conn *c, const struct patience *how, int wake_fd);
/*
 * A request that was just submitted, from c->out and with that body, is kept so that it can be sent again; harmless where that
 * is not possible.  It can, once it is GONE and was not begun.  conn_again(): as conn_submit(), for a caller who will wait for the
 * answer until deadline_us; when it fails p is as it was.
 */
void conn_keep(struct conn *c, struct pending *p, const struct link_body *body);
bool conn_can_again(const struct pending *p);
int conn_again(struct conn *c, struct pending *p, const struct patience *how, int64_t deadline_us);
/* The reply to p says that its server ends now. */
void conn_server_leaves(struct pending *p);
/* The server that was asked does not offer the service: BBL is asked again before the next request, at once or after
 * a pause.  0, TPETIME or TPGOTSIG. */
int conn_ask_again(struct conn *c, const char *service, bool pause, const struct patience *how);
void conn_forget(struct conn *c, struct pending *p);	/* done with it, answered or not; harmless twice */
void conn_cancel(struct conn *c, struct pending *p);	/* as forget, and tells the server that nobody waits */
/* For a loop of one's own: what to wait for, and taking all that has come without waiting. */
size_t conn_waitables(const struct conn *c, struct link_wait *w, size_t max);
void conn_poll(struct conn *c);

#endif
