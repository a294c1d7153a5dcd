/*
 * registry - who is there: servers with the services they offer, and clients.  Memory only: no sockets, no processes.
 *
 * Ownership  Rows belong to the registry; pointers to a row are good until it is removed.
 * Limits     MAXSERVERS, MAXSERVICES, MAXACCESSERS hold here: TPELIMIT where one is reached.
 * Cost       Rows are searched one by one: a name is asked for once by each client, not once by each message.
 */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "args.h"
#include "link.h"
#include "ubb.h"
#include "wire.h"

#define REG_TMS_FIRST 30001	/* ids of transaction managers, as psr shows them */

/*
 *              spawn              ready                stop ordered
 *   (no row) --------> STARTING --------> READY --------------------> STOPPING
 *                        ^   \              |                            |
 *                        |    \ died        | died, RESTART=Y            | gone
 *        its time came   |     \            v                            v
 *                        '-------'------> DOWN ---- stop ordered ----> (no row)
 *
 * A death that brings no restart removes the row.  DOWN keeps the services known as "being started".
 */
enum server_state { SERVER_STARTING, SERVER_READY, SERVER_STOPPING, SERVER_DOWN };

/* fresh: said by the process that runs now; not fresh: by the one that died, and expected again. */
struct offer { char service[WIRE_NAME], function[WIRE_NAME]; uint64_t done; bool fresh; };

struct waiter { struct link_peer peer; uint64_t reqid; bool second; struct waiter *next; };	/* wants to know how it ends; second: did not begin it */

struct server {
	char group[WIRE_GROUP];
	long grpno, srvid;
	const struct ubb_server *conf;		/* NULL: a TMS that is played by BBL itself */
	enum server_state state;		/* set by server_enter() alone */
	char *program, *clopt, *rqaddr, *endpoint;
	char current[WIRE_NAME];		/* service that runs now; "" for none */
	uint64_t done, load;
	uint64_t reported;			/* number of the latest order to report that it followed */
	size_t n_offers;
	struct offer *offers;

	pid_t pid;
	unsigned long long start_time;		/* names the process together with pid */
	int pidfd, why_fd;			/* -1: none.  why_fd: where a failing start tells its cause */
	int go_fd;				/* what the new process waits at; -1: none */
	struct link_peer peer;			/* of its registration */
	bool has_peer, wanted_end;
	bool was_ready;				/* taken in from an earlier BBL, and past its initialisation then */
	int64_t since_us;			/* clock_mono_us() of the last change of state */
	int64_t due_us;				/* what happens next: restart, time limit; LINK_FOREVER: nothing */

	long generation;			/* how often it was started */
	long restarts;				/* since grace_begin_us */
	int64_t grace_begin_us;
	long backoff_ms;

	int64_t heard_us;			/* its process spoke, clock_mono_us(); */
	int64_t suspect_us;			/* was asked whether it lives; 0: need not be */
	bool hung;				/* and did not answer: not offered */
	bool hang_told, late_told;		/* in the log; hang_told: that it is left alone, being traced */
	char doom[96];				/* why BBL itself killed it; "" */
	pid_t suspender;			/* the tmshutdown that suspended it; 0: it is not suspended */
	unsigned long long suspender_start;
	long delay_s;				/* of the order to stop; 0: none given */
	int signal_sent;
	struct waiter *waiters;
	struct args env;			/* environment that it was booted with */
};

struct client {
	int64_t id[4];				/* id[1] is unique while this BBL lives */
	char usrname[32], cltname[32];
	pid_t pid;
	unsigned long long start_time;
	int64_t since_us;
};

struct registry {
	const struct ubb *ubb;
	long max_accessers;		/* of this machine */
	size_t n_servers, n_clients, n_offers;
	struct server **servers;
	struct client **clients;
	int64_t next_client;
};

void registry_open(struct registry *r, const struct ubb *ubb);
void registry_close(struct registry *r);

struct server *registry_find(const struct registry *r, const char *group, long srvid);
/* A new row in state STARTING.  0; TPELIMIT (MAXSERVERS, MAXACCESSERS); TPENOENT (group, id not configured); TPEOS. */
int registry_add(struct registry *r, const char *group, long srvid, struct server **out, char *why, size_t why_size);
/* The caller has closed its descriptors and answered its waiters. */
void registry_remove(struct registry *r, struct server *s);
void server_enter(struct server *s, enum server_state next);
bool server_is_tms(const struct server *s);			/* a row without a process of its own */

/* 0 (also when offered already with the same function), TPEMATCH, TPELIMIT, TPEOS. */
int registry_advertise(struct registry *r, struct server *s, const char *service, const char *function);
int registry_unadvertise(struct registry *r, struct server *s, const char *service);	/* 0 or TPENOENT */
void registry_forget_offers(struct registry *r, struct server *s);
void server_offers_stale(struct server *s);			/* a new process speaks for this row */
void registry_drop_stale_offers(struct registry *r, struct server *s);	/* it has said all it had to say */

/* A record for each server that offers it, with what SERVICES says.  0; TPENOENT; no records and 0: being started, or a
 * server that stands by will offer it. */
int registry_resolve(const struct registry *r, const char *service, struct document *out);

/* Does a server of that group and RQADDR offer it, or will it when it is started again?  service "": is there one?  0 or TPENOENT. */
int registry_set_offers(const struct registry *r, const char *group, const char *rqaddr, const char *service);

/* 0; TPENOENT: no room. */
int registry_join(struct registry *r, const char *usrname, const char *cltname, pid_t pid, struct client **out);
void registry_leave(struct registry *r, int64_t id1, pid_t pid);
/* Drops those that died; how many are left, administrators not counted. */
size_t registry_sweep_clients(struct registry *r);

#endif
