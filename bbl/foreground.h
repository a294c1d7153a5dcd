/*
 * foreground - BBL as the one process that a container or a service manager looks after (BBL -f, -b, -e).
 *
 *            tmboot ended well            signal, or tmboot failed           tmshutdown ended, or the time is over
 *   BOOTING -------------------> UP ------------------------------> STOPPING ------------------------------------> BBL ends
 *      '-------------------------------------------------------------^
 *
 * tmboot and tmshutdown are children of BBL and ask it like anybody else; nothing here waits.  Without -b all stays OFF, and
 * only the service manager is told.
 */
#ifndef FOREGROUND_H
#define FOREGROUND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "notify.h"

#define FORE_LIMIT_S 60

struct bbl;
struct foreground {
	bool on, boot, echo;		/* -f, -b, -e */
	long limit_s;			/* -t: for an orderly end */
	enum { FORE_OFF, FORE_BOOTING, FORE_UP, FORE_STOPPING } state;
	pid_t tool;			/* tmboot or tmshutdown while it runs; 0 */
	int64_t force_us;		/* STOPPING: when what still runs is ended by force; */
	bool forced;			/* it was */
	int status;			/* of BBL, in the end */
	struct notify notify;
};

void fore_open(struct bbl *b);			/* before anything is started */
void fore_begin(struct bbl *b);			/* BBL serves */
void fore_stop(struct bbl *b);			/* SIGTERM, SIGINT: a second one is in a hurry */
void fore_child_ended(struct bbl *b, pid_t pid, const siginfo_t *how);	/* a child that is no server */
void fore_tick(struct bbl *b);
int64_t fore_next_due(const struct bbl *b);
void fore_close(struct bbl *b);
void fore_child(const struct bbl *b);		/* in a child of BBL, before it runs its program: no terminal of BBL's */

#endif
