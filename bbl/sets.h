/*
 * sets - the request queues (TMRQ) of MSSQ sets: started before the first server of a set, watched, started again when one dies,
 * ended after the last server.  They are no servers: not counted in MAXSERVERS, not shown by psr.
 */
#ifndef SETS_H
#define SETS_H

#include "bbl.h"

struct rqset {
	struct rqset *next;
	char group[WIRE_GROUP];
	long grpno, id;			/* as struct ubb_set */
	char rqaddr[32];
	pid_t pid;			/* 0: none runs */
	unsigned long long start_time;
	int pidfd;
	bool ending;			/* it was told to */
	int64_t since_us, due_us;	/* when it was started; when something is due: a start, or force; LINK_FOREVER: nothing */
	long backoff_ms;
};

/* The queue of the server's set runs, if the server is in one.  -1: it cannot, and why. */
int sets_start(struct bbl *b, const struct server *s, char *why, size_t size);
void sets_take_in(struct bbl *b, const struct state *old);	/* what an earlier BBL left */
bool sets_reap(struct bbl *b, int fd);		/* a death: true, it was one of ours */
bool sets_reap_pid(struct bbl *b, pid_t pid);	/* the same for a child that has ended */
void sets_tick(struct bbl *b);
int64_t sets_next_due(const struct bbl *b);
bool sets_any(const struct bbl *b);		/* a process is left */
void sets_close(struct bbl *b);			/* forgotten; the processes go on */

#endif
