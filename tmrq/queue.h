/*
 * queue - the requests of one MSSQ set, and its members: what waits, who is idle, who has what.  Memory only: no sockets, no clock.
 *
 *	queue_add -----> waits ----- queue_give -----> a member has it ------ queue_over -----> (gone)
 *	                   '------------------------- queue_over -----------------------------> (gone)
 *
 * A request goes only to a member that offers its service; among those to the one that has been idle the longest.  Of the requests
 * that a member can be given, that with the highest priority, in order of arrival among equals; each tenth that is given is the oldest.
 *
 * Ownership  Requests and members belong to the queue.  A request's memory stays while its body is on its way: request_release().
 * Threads    One, but for request_release().
 */
#ifndef TMRQ_QUEUE_H
#define TMRQ_QUEUE_H

#include <stdatomic.h>
#include <uthash.h>

#include "link.h"
#include "rqueue.h"
#include "wire.h"

#define QUEUE_REQUESTS 10000		/* that wait; when there are so many, or */
#define QUEUE_BYTES (256u << 20)	/* of so many bytes, no more are taken from their senders */
#define QUEUE_OFFERS 65536		/* of one member */
#define QUEUE_MORE 4096			/* that one member may ask for at once */

struct service {
	UT_hash_handle hh;
	char name[WIRE_NAME];
	struct rqueue waiting;
	struct service *prev, *next;	/* those for which something waits */
	unsigned offering;		/* how many members offer it */
	unsigned load;
	int64_t ask_us;			/* nobody offers it, and something waits: when BBL is asked about it (again) */
};

struct request {
	struct rqueue_entry waits;	/* first: a service's rqueue leads here */
	UT_hash_handle by_id, by_caller;
	uint64_t id;			/* what its member knows it by */
	struct request_from { uint64_t peer, reqid; } from;	/* its caller's name for it */
	struct link_peer caller;
	struct wire_call call;
	struct link_msg msg;		/* holds the body, until it is sent */
	size_t bytes;
	uint64_t arrival;
	int64_t arrived_us, deadline_us;	/* LINK_FOREVER: it waits as long as it takes */
	struct service *service;
	struct member *member;		/* who has it; NULL: it waits */
	bool forwarded;			/* its member is done with it, and will pass on the answer of another server */
	struct request *prev, *next;	/* of the same member */
	atomic_uint holds;
};

struct member {
	UT_hash_handle hh;
	uint64_t peer_key;
	struct link_peer peer;
	long srvid, pid;
	int pidfd;			/* -1: none */
	size_t n_offers;
	struct service **offers;
	unsigned more;			/* how many requests it waits for */
	bool idle, leaving, left;	/* idle: in the list of those that can be given something */
	size_t drain;			/* leaving, and the last: so many that wait are still its own */
	struct member *prev, *next;	/* idle, the longest first */
	struct request *has;
};

struct queue {				/* zero-initialise; queue_open() */
	struct service *services, *waiting;
	struct request *by_id, *by_caller;
	struct member *members, *idle_first, *idle_last;
	uint64_t last_id, arrivals;
	size_t n, bytes;		/* that wait */
	uint64_t load;			/* of what waits */
	size_t given;			/* to members, and not over */
	unsigned taken;			/* since the oldest was given for its age */
	unsigned leaving;		/* members that are to be told when they may go */
};

void queue_open(struct queue *q);	/* ids begin somewhere: those of an earlier TMRQ are others */
void queue_close(struct queue *q);
bool queue_full(const struct queue *q);
uint64_t queue_peer_key(const struct link_peer *peer);

/* A request that has been decoded: takes the message over.  NULL: out of memory, or its caller has one of this name; nothing is taken. */
struct request *queue_add(struct queue *q, struct link_msg *m, const struct wire_call *call, int64_t now_us);
struct request *queue_find(const struct queue *q, uint64_t id);
struct request *queue_find_from(const struct queue *q, const struct link_peer *caller, uint64_t reqid);
void queue_over(struct queue *q, struct request *r);
void request_release(void *p, void *request);	/* of a struct link_body; from any thread */
void request_hold(struct request *r);		/* before its body is sent */

/* Members.  queue_part(): the caller has answered for what it has, and closed pidfd. */
struct member *queue_join(struct queue *q, const struct link_peer *peer, long srvid, long pid);	/* NULL: out of memory */
struct member *queue_member(const struct queue *q, const struct link_peer *peer);
int queue_offer(struct queue *q, struct member *m, const char *service);	/* 0, or -1: out of memory, or too many */
void queue_withdraw(struct queue *q, struct member *m, const char *service);
void queue_ready(struct queue *q, struct member *m, unsigned more);
void queue_leave(struct queue *q, struct member *m);
void queue_part(struct queue *q, struct member *m);

/* What is to be given to whom next; NULL: nothing now.  Then either it is given, or the member takes nothing until it asks again. */
struct request *queue_next(struct queue *q, struct member **to);
void queue_give(struct queue *q, struct request *r, struct member *to);
void queue_unable(struct queue *q, struct member *m);
struct member *queue_leaver(struct queue *q);	/* one that may go now, and is to be told so; NULL: none */

struct service *queue_orphan(const struct queue *q, int64_t now_us);	/* that BBL is to be asked about */

#endif
