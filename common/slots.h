/*
 * slots - the table of server processes: a file in the run directory that every process maps, with a slot for each server
 * PROCESS (one that is started again takes another slot), so that
 *    - who sends a request sees what waits for each server, whoever sent it (LDBAL);
 *    - who loses a server learns whether his request was begun: one that only waited is surely not carried out, and is sent again;
 *    - BBL sees how long a request has been served (SVCTIMEOUT), and pq what waits.
 *
 *             claim               its process ends (slots_sweep), or says so (slots_leave)
 *      FREE ----------> LIVE -------------------------------------------> DEAD      readable for a minute, or a second where
 *        ^                                                                 |       there is no room, then claimed anew, the oldest first
 *        '-----------------------------------------------------------------'
 *
 * Nothing rests on it: where there is no table, or no slot, a server is served and called as well, its load is what the caller
 * itself sent, and a request that it died with has an unknown outcome.
 *
 * THE INVARIANT.  A request whose routine may have been called has, in the slot of the process, a mark with its key from before
 * the call until its answer is surely in the kernel, whence the caller reads it though the server dies (or until it is known
 * that the caller is gone).  An answer of which link keeps a part in memory is not: slots_keep().  So SLOTS_NOT_BEGUN, together with
 * "all that the connection had was read and the answer was not among it", means that sending it again cannot make it run twice.
 *
 * No system call on the way of a request, no lock; a slot's marks are written by its server alone, one thread for each number.
 * What is in the file was written by others: everything is bounded and checked before it is used.
 *
 * Errors     0, or -1 with one line in *why (malloc'ed; NULL: out of memory).
 * Time       clock_mono_us(), which all processes of a machine share.
 * Threads    Any.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS_MAX 65536
#define SLOTS_SPARE 16			/* beyond two for each of MAXSERVERS */
#define SLOTS_THREADS 64		/* of a server, that have a mark; requests of further ones are counted */
#define SLOTS_KEPT 64			/* marks that outlast their thread's request; further ones are counted */
#define SLOTS_RQADDR 32
#define SLOTS_LINGER_US INT64_C(60000000)
#define SLOTS_HURRY_US INT64_C(1000000)	/* instead, when so many die that there is no room else: who asks later gets UNKNOWN */

struct slots;
struct slots_ref { unsigned i; uint64_t generation; };	/* a process: its slot, and that it is still its; generation 0: none */

void slots_path(const char *rundir, char *buf, size_t size);

/* --- BBL --- */
/* A table of n slots with this mode.  One that is there already, of this boot of the machine and large enough, is kept. */
int slots_make(const char *path, unsigned n, mode_t mode, struct slots **out, char **why);
bool slots_is_at(const struct slots *t, const char *path);	/* the file is the one that is mapped */
/* Note which processes have ended.  How many.  Reads /proc: a few times a minute. */
unsigned slots_sweep(struct slots *t);

/* --- everybody --- */
int slots_open(const char *path, struct slots **out, char **why);	/* not there, damaged, of another version or boot: -1 */
void slots_close(struct slots *t);	/* NULL is fine */
unsigned slots_count(const struct slots *t);

/* A copy for lookers. */
struct slots_mark { uint64_t key; int64_t since_us, limit_us; };	/* key 0: the thread serves none; limit 0: none */
struct slots_entry {
	struct slots_ref ref;
	pid_t pid;
	uint64_t process_start;		/* as proc_start_time(): pid and this name a process */
	long grpno, srvid;
	char rqaddr[SLOTS_RQADDR];	/* "": a queue of its own */
	bool dead;			/* its end was noticed */
	long load;			/* as slots_load() */
	unsigned long sent;		/* requests that were sent and are not done: they wait, are served, or are on the way */
	unsigned serving;		/* of those: begun, by threads that have a mark */
	struct slots_mark mark[SLOTS_THREADS];
};
/* False: slot i is free, or just changes. */
bool slots_read(const struct slots *t, unsigned i, struct slots_entry *out);

/* The process that was the last to claim a slot for this server, dead or alive.  pid, if not 0: and it is that one, and lives.
 * False: there is none.  Looks at all slots. */
bool slots_find(const struct slots *t, long grpno, long srvid, pid_t pid, struct slots_ref *out);

/* --- who sends requests --- */
/* The sum of the LOADs of what waits for it and is served.  What is still counted when it has served nothing for a while, and
 * was sent nothing, was never sent (its sender died), and is forgotten.  -1: it is dead, or the slot is another's by now. */
long slots_load(struct slots *t, struct slots_ref ref);
bool slots_sent(struct slots *t, struct slots_ref ref, long load);	/* just before the request is sent; false: it is dead, as above */
void slots_unsent(struct slots *t, struct slots_ref ref, long load);	/* and this when it was not */
/* What became of the request `key` with a process whose connection is lost.  Waits up to wait_ms for the end of the process.
 * UNKNOWN: it lives (and did not leave), or its slot was claimed anew, or it had begun requests without a mark. */
enum slots_fate { SLOTS_UNKNOWN, SLOTS_BEGUN, SLOTS_NOT_BEGUN };
enum slots_fate slots_fate(const struct slots *t, struct slots_ref ref, uint64_t key, int wait_ms);

/* --- servers --- */
/* A slot for the calling process.  Before it listens, so that who reaches it finds its slot.  rqaddr NULL or "": none.  Its
 * number, or -1: none is free.  Those that had the server's number before are noted as dead, if they are. */
int slots_claim(struct slots *t, long grpno, long srvid, const char *rqaddr);
/* The request `key` is about to be served by thread 0, 1...; it has until limit_us, 0: as long as it takes. */
void slots_begin(struct slots *t, unsigned i, unsigned thread, uint64_t key, int64_t limit_us);
/* Its answer is surely in the kernel, or wanted by nobody. */
void slots_end(struct slots *t, unsigned i, unsigned thread);
/* The thread is free for the next request, but the mark of this one has to stay (it was forwarded, or its answer is partly in
 * memory).  Instead of slots_end(); returns a number to give to slots_drop() once that is over. */
int slots_keep(struct slots *t, unsigned i, unsigned thread);
void slots_drop(struct slots *t, unsigned i, int kept);
/* A request that slots_sent() counted is done: served, refused or dropped. */
void slots_done(struct slots *t, unsigned i, long load);
/* It begins no request any more, though it lives: what has no mark has not been begun. */
void slots_leave(struct slots *t, unsigned i);

#endif
