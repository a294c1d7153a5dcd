/*
 * bb - a process's relation to the bulletin board (BBL).
 *
 * Two halves.  Asking: bb_request(), for clients, tools and servers.  Being known: an agent, a thread that registers
 * this server, repeats its services and counters as heartbeats, registers again when BBL was restarted, starts BBL
 * again when it is gone without having been shut down, and hears the order to stop.
 *
 * Operations and their arguments are listed in INTERFACES.md under "Bulletin board".
 */
#ifndef BB_H
#define BB_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* One question to whoever serves ADMIN requests at `endpoint` (BBL, a server, an owner of a queue space).
 * 0: an answer came, in *reply (free with bb_reply_free(); look at reply->status).  LINK codes otherwise. */
int bb_request(const char *endpoint, const char *op, const struct record *args, int64_t timeout_ms,
    struct wire_adminreply *reply);
/* The same with less patience for somebody to be there than for the answer, which may be long in coming. */
int bb_request_by(const char *endpoint, const char *op, const struct record *args, int64_t reach_ms, int64_t timeout_ms,
    struct wire_adminreply *reply);
void bb_reply_free(struct wire_adminreply *reply);

struct bb_agent;
struct bb_agent_conf {
	const char *bbl_endpoint;	/* all strings are copied */
	const char *endpoint;		/* where this server is called; "" when it takes no calls */
	const char *group, *program, *clopt;
	long grpno, srvid;
	const char *rqaddr;		/* queue name shown by psr; "" for GRPNO.SRVID */
	const char *tuxconfig, *bbl_program;	/* to start BBL again: path of BBL; "" : do not */
};
/* Register and start the thread.  0 once BBL knows us; LINK codes, or the status of a refusal (> 0, text logged). */
int bb_agent_start(const struct bb_agent_conf *conf, struct bb_agent **out);
/* Offer a service; 0 once BBL knows, >0 TPE code when refused (TPELIMIT, TPEMATCH).  Names beginning with ".." are
 * not shown by psc. */
int bb_agent_advertise(struct bb_agent *a, const char *service, const char *function);
int bb_agent_unadvertise(struct bb_agent *a, const char *service);

/* Before the name of a service, and offered like one: who offers this would offer the service if nobody else did. */
#define BB_STANDBY "..+"
void bb_agent_ready(struct bb_agent *a);	/* initialisation is over: BBL may tell tmboot "Started" */
/* What psr and psc show.  Lock-free, callable on every request.  service NULL: none running now. */
void bb_agent_busy(struct bb_agent *a, const char *service);
void bb_agent_idle(struct bb_agent *a, unsigned load);	/* counts one request done */
int bb_agent_wake_fd(const struct bb_agent *a);	/* readable once the order to stop came */
bool bb_agent_stopping(const struct bb_agent *a);
int64_t bb_agent_suspended_us(const struct bb_agent *a);	/* since when requests are to be refused, clock_mono_us(); 0: they are not */
void bb_agent_stop_now(struct bb_agent *a);		/* async-signal-safe: as if the order had come (SIGTERM) */
void bb_agent_end(struct bb_agent *a, int status);	/* a wanted end, BBL is told; NULL is fine */

#endif
