/*
 * supervisor - life and death of servers: started, watched, restarted as RESTART, MAXGEN, GRACE and RCMD say, stopped.
 * Nothing here waits: what takes time is picked up by supervisor_reap() and supervisor_tick().
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include "bbl.h"

#define START_LIMIT_S 60	/* after that whoever waits for a start or a stop is told */
#define STOP_LIMIT_S 60
#define DUPLICATE_SERVER "CMDTUX_CAT:821: INFO: Duplicate server."

/* Start a row in state STARTING or DOWN; those who wait are answered at `ready`, at its death, or at the limit.
 * A refusal (program missing) removes the row: -1, why. */
int supervisor_start(struct bbl *b, struct server *s, char *why, size_t size);
void supervisor_ready(struct bbl *b, struct server *s);
/* Stop: by request; delay_s > 0: then SIGTERM, then SIGKILL, that far apart; signal > 0: at once by signal. */
void supervisor_stop(struct bbl *b, struct server *s, long delay_s, int signal);
void supervisor_send_stop(struct bbl *b, struct server *s);
int supervisor_watch(struct bbl *b, struct server *s);	/* s->pid from now on; -1: it is gone */
int supervisor_wait_for(struct server *s, const struct link_peer *who, uint64_t reqid);	/* be told; -1: out of memory */

void supervisor_resume(struct bbl *b);	/* what an earlier BBL left: take in the living, restart the dead */
void supervisor_reap(struct bbl *b);	/* deaths and signals that epfd reports */
void supervisor_tick(struct bbl *b);	/* what is due */
int64_t supervisor_next_due(const struct bbl *b);
void supervisor_save(struct bbl *b);	/* the state file */

#endif
