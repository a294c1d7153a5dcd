/*
 * What the bb_*.c files share.  For this folder only.
 *
 *	         register sent            status 0
 *	  DOWN ---------------> JOINING ----------> UP
 *	   ^                     |   ^              |
 *	   |  gone, no answer,   |   '--------------'
 *	   |  refused            |     BBL does not know us
 *	   '---------------------'------------------'  gone
 *
 * UP and JOINING have a connection.  While DOWN, orders to BBL are remembered and told when we register again.
 */
#ifndef BB_IMPL_H
#define BB_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "bb.h"
#include "link.h"

enum agent_state { AGENT_DOWN, AGENT_JOINING, AGENT_UP };

struct service {			/* in a list that only grows, so that it is read without a lock */
	_Atomic(struct service *) next;
	_Atomic bool offered;
	_Atomic unsigned long done;
	_Atomic unsigned running;	/* threads that work for it */
	struct bb_agent *agent;
	char name[WIRE_NAME], function[WIRE_NAME];
};

struct ask {				/* an order that its caller waits for, on the caller's stack */
	struct ask *next;
	const char *op, *service, *function;
	long exit_status;		/* of "end" */
	uint64_t reqid;			/* 0: not sent yet */
	int status;
	bool done;
};

struct revive {				/* starting BBL again */
	char *program, **envp, *rundir;	/* program NULL: not our business */
	int lock_fd;			/* on bbl.start: we are the one to do it; -1 */
	pid_t pid;			/* the one we started, until it is reaped; 0 */
	int64_t since_us;		/* when we started it, until it answers or ends; 0 */
	int64_t not_before_us, pause_us;	/* the next try, when one has ended */
	int64_t vanished_us;		/* since when the run directory is not there; 0: it is */
};

struct bb_agent {
	/* fixed at the start */
	char *bbl_endpoint, *endpoint, *group, *program, *clopt, *rqaddr;
	long grpno, srvid;
	pid_t pid;
	int wake_fd, poke_fd;		/* read by the server; by the thread */
	bool running;			/* the thread was started */
	pthread_t thread;

	/* read and written by anybody */
	_Atomic(struct service *) services;
	_Atomic(struct service *) current;	/* the last one begun; see agent_current() */
	_Atomic unsigned long done, load;
	atomic_bool stopping, quit;
	_Atomic int64_t suspended_us;

	/* under lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum agent_state state;		/* changed by agent_enter() alone */
	struct ask *asks;
	bool ready_told;
	bool untold;			/* an order came while DOWN, perhaps after the registration was composed */

	/* the thread's */
	struct link_client *link;
	struct wr w;
	uint64_t last_reqid, join_reqid, beat_reqid;
	int64_t next_try_us, join_deadline_us, next_beat_us, beat_us, down_since_us;
	unsigned long told_done;	/* in the last heartbeat */
	char report[24];		/* number of BBL's last order to report; "": none since we registered */
	struct service *told_current;
	int refused;			/* status of the last refusal; 0: none */
	bool refusal_logged;
	struct revive revive;
};

/* bb_talk.c: one turn of the conversation with BBL: send what is due, take what came, sleep until something is due. */
void agent_turn(struct bb_agent *a);
struct service *agent_current(struct bb_agent *a);	/* one that a thread works for; NULL: none does */
void agent_hang_up(struct bb_agent *a);
void agent_poke(struct bb_agent *a);

/* bb_revive.c */
int revive_prepare(struct revive *r, const struct bb_agent_conf *conf);	/* 0, or -1: no memory */
void revive_free(struct revive *r);
void revive_try(struct revive *r);	/* BBL stays away; called after each vain attempt to reach it */
void revive_over(struct revive *r);	/* BBL is there */
void revive_reap(struct revive *r);

#endif
