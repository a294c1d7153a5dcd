/*
 * bbl - the bulletin board: one process, one thread, one loop.  For this folder only.
 */
#ifndef BBL_H
#define BBL_H

#include <sys/resource.h>

#include "app.h"
#include "foreground.h"
#include "registry.h"
#include "state.h"

struct bbl {
	struct app app;
	struct registry reg;
	struct link_server *link;
	int epfd;			/* holds every pidfd and sigfd; wakes the wait for requests */
	int sigfd;
	int lock_fd, name_fd;		/* place.c's */
	int64_t touched_us;		/* when the files of the place were last touched */
	struct gtt *gtt;		/* transactions that are open; NULL: there is no table */
	int64_t gtt_swept_us;
	bool no_gtt;			/* it cannot be made: was said */
	struct slots *slots;		/* server processes; NULL: there is no table */
	int64_t slots_swept_us;
	bool no_slots;			/* it cannot be made: was said */
	bool no_place;			/* the run directory cannot be made again: was said */
	int64_t started_us;		/* clock_mono_us() */
	uint64_t done;			/* requests answered */
	uint64_t strange;		/* messages that were no requests */
	struct rqset *sets;		/* sets.c's */
	struct look *looks;		/* that wait for reports of servers */
	uint64_t last_report;		/* number of the latest one asked for */
	struct rlimit files;		/* descriptors, before BBL raised its own limit: the servers' */
	struct foreground fore;
	int64_t sane_us;		/* when servers were last looked at for signs of life */
	bool end;			/* leave the loop */
	bool end_application;		/* and leave nothing behind */
};

/* --- place.c: the run directory, and that one BBL alone serves it --- */
enum { PLACE_OURS, PLACE_DUPLICATE, PLACE_REFUSED };
/* Make the directory (resume: it must be there) and take the place.  *why: who has it, or the trouble. */
int place_take(struct bbl *b, bool resume, char **why);
void place_keep(struct bbl *b);		/* now and then: what was taken away from the directory is put back */
void place_leave(struct bbl *b);
void gtt_keep(struct bbl *b);		/* the table of transactions is there, and rid of those of dead processes */
void servers_table_keep(struct bbl *b);	/* b->slots is there, and says which processes have ended */

/* --- requests.c --- */
void bbl_handle(struct bbl *b, const struct link_msg *m);	/* one message: decode, do, answer now or later */
void bbl_answer(struct bbl *b, const struct link_peer *to, uint64_t reqid, int status, const char *text,
    const struct document *doc);

/* --- rows.c: what psr, psc, pclt, pq and bbs show; 0 or -1 --- */
int rows_psr(const struct bbl *b, struct document *out);
int rows_psc(const struct bbl *b, struct document *out);
int rows_pclt(struct bbl *b, struct document *out);
int rows_pq(const struct bbl *b, struct document *out);
int rows_bbs(const struct bbl *b, struct document *out);
void server_queue_name(const struct server *s, char *buf, size_t size);

/* --- look.c: rows with counters of now --- */
/* Ask all servers to report; the answer is sent once they have.  0, or -1: no memory. */
int look_begin(struct bbl *b, const struct link_peer *peer, uint64_t reqid,
    int (*rows)(const struct bbl *, struct document *));
void look_poke(struct bbl *b, struct server *s);	/* does it still answer? */
void look_tick(struct bbl *b);			/* answer what can be answered */
int64_t look_next_due(const struct bbl *b);
void look_free(struct bbl *b);

/* --- suspend.c --- */
/* Nobody is told of its services any more, and it refuses requests that come from now on, while process `by` lives. */
void suspend_server(struct bbl *b, struct server *s, pid_t by);
void suspend_keep(struct bbl *b);		/* now and then: who is suspended by a process that is gone, and not stopped, serves again */

/* --- spawn.c --- */
/* A process for the server, which runs its program after server_go().  0: s->pid, pidfd, why_fd, go_fd are set; -1 with the
 * cause in why. */
int server_spawn(struct bbl *b, struct server *s, char *why, size_t size);
void server_go(struct server *s);
/* The request queue of a set, the same way: it runs its program when something is written to *go_fd, and ends when that is closed. */
int tmrq_spawn(struct bbl *b, long grpno, long id, pid_t *pid, int *pidfd, int *go_fd, char *why, size_t size);
void server_run_rcmd(struct bbl *b, const struct server *s);	/* not waited for */
int tms_check(const struct ubb_group *g, char *why, size_t size);	/* can OPENINFO be opened? */

#endif
