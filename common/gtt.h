/*
 * gtt - the global transaction table: a file in the run directory that every process maps, with a slot for each
 * transaction between its tpbegin() and its end.
 *
 * It makes MAXGTT hold over all processes, shows tmadmin what is open, carries a suspended transaction from one process to
 * another, and tells a server that comes late to a request whether the transaction is over.  Nothing of a commit rests on it: libatmiq goes on without it.
 *
 *              claim                 suspend
 *      FREE ----------> ACTIVE <----------------> SUSPENDED      resume: by any process, one wins
 *        ^               |   |
 *        |        commit |   | abort             COMMITTING and ABORTING go back to FREE; so does every slot whose
 *        '------- COMMITTING ABORTING            process is gone (gtt_sweep), except a suspended one in its time
 *
 * A slot is claimed and changed without a system call.  It has a sequence number that changes with it, so a copy is whole or is
 * not taken.  What is in the file was written by others: counts are bounded, slots checked, before they are used.
 *
 * Errors     0, or -1 with one line in *why (malloc'ed; NULL: out of memory).
 * Time       begun_us: wall clock; deadline_us: clock_mono_us(), which all processes of a machine share.
 * Threads    Any.  A slot that is ACTIVE, COMMITTING or ABORTING is changed by the owner of the transaction alone.
 */
#ifndef GTT_H
#define GTT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GTT_MAX 32767		/* slots, as MAXGTT */
#define GTT_GTRID 32		/* bytes of an id; longer ones, of XA, are not in the table */
#define GTT_GROUPS 32		/* that joined */
#define GTT_NEVER INT64_MAX	/* a deadline */

struct gtt;
enum gtt_state { GTT_FREE, GTT_ACTIVE, GTT_SUSPENDED, GTT_COMMITTING, GTT_ABORTING, GTT_STATES };

struct gtt_entry {			/* a copy of a slot */
	enum gtt_state state;
	pid_t pid;			/* whose it is; SUSPENDED: who suspended it */
	uint64_t process_start;		/* as proc_start_time(): pid and this name a process; 0: not known */
	uint8_t gtrid_len, gtrid[GTT_GTRID];
	int64_t begun_us, deadline_us;
	bool doomed;			/* rollback-only */
	bool autotran;			/* begun for a service by AUTOTRAN */
	bool by_tx;			/* begun by tx_begin() */
	bool tied;			/* SUSPENDED: only the process that did it may resume it */
	uint8_t n_groups;		/* that joined, the first one (which coordinates) first */
	uint16_t grpno[GTT_GROUPS];	/* GRPNO of GROUPS; 0: none of TUXCONFIG's */
};

void gtt_path(const char *rundir, char *buf, size_t size);

/* --- BBL --- */
/* A table of n slots with this mode.  One that is there already, of this boot of the machine and as large, is kept. */
int gtt_make(const char *path, unsigned n, mode_t mode, struct gtt **out, char **why);
bool gtt_is_at(const struct gtt *g, const char *path);	/* the file is the one that is mapped */

/* --- everybody --- */
/* n: how many slots it must have; 0: any number.  Not there, damaged, of another version: -1. */
int gtt_open(const char *path, unsigned n, struct gtt **out, char **why);
void gtt_close(struct gtt *g);		/* NULL is fine */
unsigned gtt_slots(const struct gtt *g);
/* A whole copy of slot i.  False: it is free, or changes all the time, or holds nonsense. */
bool gtt_read(const struct gtt *g, unsigned i, struct gtt_entry *out);
/* Is the transaction still open: in the table, not at its end, in its time?  One that is in no slot is not; of another table
 * (gtt_mark) nothing is known.  Looks at all slots. */
bool gtt_is_open(const struct gtt *g, const uint8_t *gtrid, size_t len);
uint16_t gtt_mark(const struct gtt *g);	/* tells the table from others that are or were at its place, most likely; not 0 */
/* Free what processes that are gone have left, and suspended ones a minute after their time.  How many. */
unsigned gtt_sweep(struct gtt *g);

/* --- owners --- */
/* A free slot becomes ACTIVE with what *e says (state, pid, process_start are set here).  Its number, or -1: none is free. */
int gtt_claim(struct gtt *g, const struct gtt_entry *e);
void gtt_joined(struct gtt *g, unsigned i, uint16_t grpno);
void gtt_doomed(struct gtt *g, unsigned i);
void gtt_enter(struct gtt *g, unsigned i, enum gtt_state state);	/* COMMITTING, ABORTING, FREE */
void gtt_suspend(struct gtt *g, unsigned i, bool tied);
/* GTT_RESUMED: it is ACTIVE and ours, *out a copy.  GTT_TAKEN: it is in use, somebody resumed it before.  GTT_NONE: it is not
 * there (any more), or tied to another process. */
enum gtt_resumed { GTT_RESUMED, GTT_TAKEN, GTT_NONE };
enum gtt_resumed gtt_resume(struct gtt *g, unsigned i, const uint8_t *gtrid, size_t len, struct gtt_entry *out);

#endif
