/*
 * The file is as in mapped.h: "atmqSLT", version 1; at offset 64 how many generations were given so far (8 bytes).
 *
 * A slot, of 280 words of 8 bytes:
 *      word  field
 *         0  bits 0-7 state (0 free, 1 being claimed, 2 live, 3 dead), 32-63 process
 *         1  generation; 0: free or being claimed
 *         2  start time of the process
 *         3  bits 0-31 GRPNO, 32-63 SRVID
 *         4  when its death was noticed
 *       5-7  zero
 *         8  bits 0-31 requests sent and not done, 32-63 the sum of their loads
 *         9  when the last one was sent
 *     10-15  zero
 *     16-19  RQADDR, zero padded
 *        20  when it last ended a request
 *        21  begun requests that have no mark
 *        22  threads that serve, a bit each
 *        23  zero
 *    24-215  a mark for each thread: key, since, limit
 *   216-279  keys of marks that were kept
 *
 * Word 0 is what is fought for, by compare and exchange; 1 says that the rest is one process's.  All accesses are atomic.
 */
#include "slots.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "mapped.h"
#include "proc.h"

#define MAGIC "atmqSLT"
#define VERSION 1
#define STRAY_US INT64_C(100000)	/* what an idle server has not received after so long is not on its way */
#define LOAD_MAX 32767			/* of one request, as LOAD */
#define SERVED_LOAD 1			/* at least so much while a request is served that was not counted, or is just being answered */

enum { W_OWNER, W_GENERATION, W_START, W_ID, W_DIED, W_SUM = 8, W_SENT, W_RQADDR = 16, W_ENDED = 20, W_UNMARKED, W_SERVING,
    W_MARKS = 24, W_KEPT = W_MARKS + 3 * SLOTS_THREADS, WORDS = W_KEPT + SLOTS_KEPT };
_Static_assert(WORDS == 280 && SLOTS_RQADDR == 32, "the layout above");

enum { FREE, CLAIMING, LIVE, DEAD };

struct slot { _Atomic uint64_t word[WORDS]; };

struct slots {
	struct mapped file;
	unsigned n;
	_Atomic uint64_t *generations;	/* given so far */
	struct slot *slot;
};

void
slots_path(const char *rundir, char *buf, size_t size)
{
	snprintf(buf, size, "%s/slots", rundir);
}

/* ---- the file ---- */

static const struct mapped_kind kind = { MAGIC, VERSION, SLOTS_MAX, sizeof(struct slot) };

static int	/* over what was mapped */
table_new(const struct mapped *m, struct slots **out)
{
	struct slots *t = malloc(sizeof *t);

	if (t == NULL) {
		mapped_close(m);
		return -1;
	}
	*t = (struct slots){ .file = *m, .n = m->n, .generations = (_Atomic uint64_t *)(void *)(m->p + MAPPED_HEAD),
		.slot = (struct slot *)(void *)(m->p + MAPPED_SLOTS) };
	*out = t;
	return 0;
}

int
slots_open(const char *path, struct slots **out, char **why)
{
	struct mapped m;

	*out = NULL;
	return mapped_open(&kind, path, 0, &m, why) == 0 ? table_new(&m, out) : -1;
}

int
slots_make(const char *path, unsigned n, mode_t mode, struct slots **out, char **why)
{
	struct mapped m;

	*out = NULL;
	n = n == 0 ? 1 : n > SLOTS_MAX ? SLOTS_MAX : n;
	return mapped_make(&kind, path, n, mode, true, &m, why) == 0 ? table_new(&m, out) : -1;
}

bool
slots_is_at(const struct slots *t, const char *path)
{
	return mapped_is_at(&t->file, path);
}

void
slots_close(struct slots *t)
{
	if (t == NULL)
		return;
	mapped_close(&t->file);
	free(t);
}

unsigned
slots_count(const struct slots *t)
{
	return t->n;
}

/* ---- words ---- */

static inline uint64_t
get(const struct slot *s, int w)
{
	return atomic_load_explicit(&s->word[w], memory_order_acquire);
}

static inline void
put(struct slot *s, int w, uint64_t v)
{
	atomic_store_explicit(&s->word[w], v, memory_order_release);
}

static inline bool
swap(struct slot *s, int w, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&s->word[w], &from, to, memory_order_acq_rel, memory_order_relaxed);
}

static inline int
state_of(uint64_t owner)
{
	return owner & 0xff;
}

static inline pid_t
pid_of(uint64_t owner)
{
	return (pid_t)(owner >> 32);
}

static inline uint64_t
id_of(long grpno, long srvid)
{
	return ((uint64_t)(uint32_t)srvid << 32) | (uint32_t)grpno;
}

/* The slot of that process; NULL: it is another's by now, or there is none. */
static inline struct slot *
slot_of(const struct slots *t, struct slots_ref ref)
{
	struct slot *s = ref.generation != 0 && ref.i < t->n ? &t->slot[ref.i] : NULL;

	return s != NULL && get(s, W_GENERATION) == ref.generation ? s : NULL;
}

/* ---- processes ---- */

/* Has it ended?  Waits for that up to wait_ms.  Of one whose start we may not see no more is known than that somebody has the number. */
static bool
is_gone(pid_t pid, uint64_t start, int wait_ms)
{
	struct pollfd p = { .events = POLLIN };
	unsigned long long now;
	int rc = 1;

	if (pid <= 0)
		return true;
	if ((p.fd = proc_pidfd(pid)) < 0)
		return errno == ESRCH;
	now = proc_start_time(pid);
	if (now == 0 || start == 0 || now == start)
		while ((rc = poll(&p, 1, wait_ms)) < 0 && errno == EINTR)
			;
	close(p.fd);
	return rc > 0;
}

static bool
note_death(struct slot *s, uint64_t owner, int64_t now)
{
	put(s, W_DIED, (uint64_t)now);	/* first: DEAD with an old time could be claimed at once */
	return swap(s, W_OWNER, owner, (owner & ~UINT64_C(0xff)) | DEAD);
}

static bool	/* a slot whose process was seen to be dead is noted as such */
slot_sweep(struct slot *s, int64_t now)
{
	uint64_t o = get(s, W_OWNER);

	if (state_of(o) == CLAIMING) {	/* its start time may be that of the process before */
		uint64_t mine = (uint64_t)getpid() << 32 | CLAIMING;

		if (is_gone(pid_of(o), 0, 0) && swap(s, W_OWNER, o, mine)) {
			put(s, W_GENERATION, 0);
			put(s, W_OWNER, FREE);
		}
		return false;
	}
	if (state_of(o) != LIVE || !is_gone(pid_of(o), get(s, W_START), 0))
		return false;
	return note_death(s, o, now);
}

unsigned
slots_sweep(struct slots *t)
{
	int64_t now = clock_mono_us();
	unsigned i, n = 0;

	for (i = 0; i < t->n; i++)
		n += slot_sweep(&t->slot[i], now);
	return n;
}

/* ---- a slot of one's own ---- */

/* A free one; else that of the process that is dead for longest, if that is linger_us.  -1: none. */
static int
slot_choose(const struct slots *t, int64_t linger_us, uint64_t *owner)
{
	int64_t oldest = clock_mono_us() - linger_us;
	unsigned i;
	int best = -1;

	for (i = 0; i < t->n; i++) {
		uint64_t o = get(&t->slot[i], W_OWNER);

		if (state_of(o) == FREE) {
			*owner = o;
			return (int)i;
		}
		if (state_of(o) == DEAD && (int64_t)get(&t->slot[i], W_DIED) <= oldest) {
			oldest = (int64_t)get(&t->slot[i], W_DIED);
			*owner = o;
			best = (int)i;
		}
	}
	return best;
}

static void
slot_fill(struct slots *t, struct slot *s, long grpno, long srvid, const char *rqaddr)
{
	uint64_t name[SLOTS_RQADDR / 8] = { 0 };
	int w;

	put(s, W_GENERATION, 0);
	for (w = W_GENERATION + 1; w < WORDS; w++)
		put(s, w, 0);
	put(s, W_START, proc_start_time(getpid()));
	put(s, W_ID, id_of(grpno, srvid));
	snprintf((char *)name, sizeof name, "%s", rqaddr == NULL ? "" : rqaddr);
	for (w = 0; w < SLOTS_RQADDR / 8; w++)
		put(s, W_RQADDR + w, name[w]);
	put(s, W_GENERATION, atomic_fetch_add(t->generations, 1) + 1);
}

static void	/* Who looks for the server is not to find a dead one. */
predecessors_sweep(struct slots *t, long grpno, long srvid)
{
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (state_of(get(&t->slot[i], W_OWNER)) == LIVE && get(&t->slot[i], W_ID) == id_of(grpno, srvid))
			(void)slot_sweep(&t->slot[i], clock_mono_us());
}

int
slots_claim(struct slots *t, long grpno, long srvid, const char *rqaddr)
{
	uint64_t mine = (uint64_t)getpid() << 32, o = 0;
	int64_t linger_us = SLOTS_LINGER_US;
	int i;

	predecessors_sweep(t, grpno, srvid);
	for (;;) {
		if ((i = slot_choose(t, linger_us, &o)) < 0) {
			if (linger_us == SLOTS_HURRY_US)
				return -1;
			slots_sweep(t);		/* BBL may not have looked yet */
			linger_us = SLOTS_HURRY_US;
			continue;
		}
		if (!swap(&t->slot[i], W_OWNER, o, mine | CLAIMING))
			continue;
		slot_fill(t, &t->slot[i], grpno, srvid, rqaddr);
		put(&t->slot[i], W_OWNER, mine | LIVE);
		return i;
	}
}

bool
slots_find(const struct slots *t, long grpno, long srvid, pid_t pid, struct slots_ref *out)
{
	uint64_t id = id_of(grpno, srvid), g;
	const struct slot *s;
	unsigned i;

	*out = (struct slots_ref){ 0 };
	for (i = 0; i < t->n; i++) {
		s = &t->slot[i];
		if ((g = get(s, W_GENERATION)) > out->generation && get(s, W_ID) == id && get(s, W_GENERATION) == g)
			*out = (struct slots_ref){ i, g };
	}
	if (out->generation == 0 || pid == 0)
		return out->generation != 0;
	s = &t->slot[out->i];
	if (pid_of(get(s, W_OWNER)) == pid && state_of(get(s, W_OWNER)) == LIVE && proc_is(pid, get(s, W_START)) &&
	    get(s, W_GENERATION) == out->generation)
		return true;
	*out = (struct slots_ref){ 0 };
	return false;
}

/* ---- load ---- */

static inline uint64_t
load_bounded(long load)
{
	return load < 0 ? 0 : load > LOAD_MAX ? LOAD_MAX : (uint64_t)load;
}

/* Take one request off, but never below nothing. */
static void
sum_less(struct slot *s, long load)
{
	uint64_t sum = get(s, W_SUM), n, l;

	do {
		n = sum & 0xffffffff;
		l = sum >> 32;
		n -= n > 0;
		l = n == 0 || l < load_bounded(load) ? 0 : l - load_bounded(load);
	} while (!atomic_compare_exchange_weak_explicit(&s->word[W_SUM], &sum, l << 32 | n, memory_order_acq_rel, memory_order_acquire));
}

static bool	/* it waits for work, and what was sent to it has arrived: it goes from one request to the next in much less time */
is_idle(const struct slot *s)
{
	int64_t before = clock_mono_us() - STRAY_US;

	return (int64_t)get(s, W_SENT) < before && (int64_t)get(s, W_ENDED) < before && get(s, W_SERVING) == 0 &&
	    get(s, W_UNMARKED) == 0;
}

/* What is counted, less what is surely not there. */
static uint64_t
sum_now(struct slot *s)
{
	uint64_t sum = get(s, W_SUM);

	return sum != 0 && is_idle(s) && swap(s, W_SUM, sum, 0) ? 0 : sum;
}

static unsigned
serving(const struct slot *s)
{
	return (unsigned)__builtin_popcountll(get(s, W_SERVING));
}

static long
load_now(struct slot *s, uint64_t *sum)
{
	*sum = sum_now(s);
	return *sum != 0 ? (long)(*sum >> 32) : (long)serving(s) * SERVED_LOAD;
}

long
slots_load(struct slots *t, struct slots_ref ref)
{
	struct slot *s = slot_of(t, ref);
	uint64_t sum;

	return s == NULL || state_of(get(s, W_OWNER)) != LIVE ? -1 : load_now(s, &sum);
}

bool
slots_sent(struct slots *t, struct slots_ref ref, long load)
{
	struct slot *s = slot_of(t, ref);

	if (s == NULL || state_of(get(s, W_OWNER)) != LIVE)
		return false;
	put(s, W_SENT, (uint64_t)clock_mono_us());	/* first: what is counted is not taken for old */
	atomic_fetch_add_explicit(&s->word[W_SUM], load_bounded(load) << 32 | 1, memory_order_acq_rel);
	return true;
}

void
slots_unsent(struct slots *t, struct slots_ref ref, long load)
{
	struct slot *s = slot_of(t, ref);

	if (s != NULL)
		sum_less(s, load);
}

void
slots_done(struct slots *t, unsigned i, long load)
{
	if (i < t->n)
		sum_less(&t->slot[i], load);
}

void
slots_leave(struct slots *t, unsigned i)
{
	uint64_t o = i < t->n ? get(&t->slot[i], W_OWNER) : 0;

	if (state_of(o) == LIVE && pid_of(o) == getpid())
		(void)note_death(&t->slot[i], o, clock_mono_us());
}

/* ---- marks ---- */

static inline int
mark_of(unsigned thread)
{
	return W_MARKS + 3 * (int)thread;
}

void
slots_begin(struct slots *t, unsigned i, unsigned thread, uint64_t key, int64_t limit_us)
{
	struct slot *s = i < t->n ? &t->slot[i] : NULL;

	if (s == NULL)
		return;
	if (thread >= SLOTS_THREADS || key == 0) {
		atomic_fetch_add(&s->word[W_UNMARKED], 1);
		return;
	}
	put(s, mark_of(thread) + 1, (uint64_t)clock_mono_us());
	put(s, mark_of(thread) + 2, (uint64_t)limit_us);
	put(s, mark_of(thread), key);
	atomic_fetch_or(&s->word[W_SERVING], UINT64_C(1) << thread);
}

static void
unmarked_less(struct slot *s)
{
	uint64_t n = get(s, W_UNMARKED);

	while (n > 0 && !atomic_compare_exchange_weak(&s->word[W_UNMARKED], &n, n - 1))
		;
}

void
slots_end(struct slots *t, unsigned i, unsigned thread)
{
	struct slot *s = i < t->n ? &t->slot[i] : NULL;

	if (s == NULL)
		return;
	put(s, W_ENDED, (uint64_t)clock_mono_us());
	if (thread >= SLOTS_THREADS || get(s, mark_of(thread)) == 0) {
		unmarked_less(s);
		return;
	}
	put(s, mark_of(thread), 0);
	atomic_fetch_and(&s->word[W_SERVING], ~(UINT64_C(1) << thread));
}

/* The mark is in its new place before it leaves the old one. */
int
slots_keep(struct slots *t, unsigned i, unsigned thread)
{
	struct slot *s = i < t->n ? &t->slot[i] : NULL;
	uint64_t key;
	int k;

	if (s == NULL || thread >= SLOTS_THREADS || (key = get(s, mark_of(thread))) == 0)
		return SLOTS_KEPT;	/* it is counted already */
	for (k = 0; k < SLOTS_KEPT && (get(s, W_KEPT + k) != 0 || !swap(s, W_KEPT + k, 0, key)); k++)
		;
	if (k == SLOTS_KEPT)
		atomic_fetch_add(&s->word[W_UNMARKED], 1);
	slots_end(t, i, thread);
	return k;
}

void
slots_drop(struct slots *t, unsigned i, int kept)
{
	if (i >= t->n || kept < 0 || kept > SLOTS_KEPT)
		return;
	if (kept == SLOTS_KEPT)
		unmarked_less(&t->slot[i]);
	else
		put(&t->slot[i], W_KEPT + kept, 0);
}

static enum slots_fate
marks_say(const struct slot *s, uint64_t key)
{
	int k;

	for (k = 0; k < SLOTS_THREADS; k++)
		if (get(s, W_MARKS + 3 * k) == key)
			return SLOTS_BEGUN;
	for (k = 0; k < SLOTS_KEPT; k++)
		if (get(s, W_KEPT + k) == key)
			return SLOTS_BEGUN;
	return get(s, W_UNMARKED) == 0 ? SLOTS_NOT_BEGUN : SLOTS_UNKNOWN;
}

enum slots_fate
slots_fate(const struct slots *t, struct slots_ref ref, uint64_t key, int wait_ms)
{
	const struct slot *s = slot_of(t, ref);
	enum slots_fate fate;
	uint64_t o;

	if (s == NULL || key == 0)
		return SLOTS_UNKNOWN;
	o = get(s, W_OWNER);
	if (state_of(o) != DEAD && (state_of(o) != LIVE || !is_gone(pid_of(o), get(s, W_START), wait_ms)))
		return SLOTS_UNKNOWN;
	fate = marks_say(s, key);
	return get(s, W_GENERATION) == ref.generation ? fate : SLOTS_UNKNOWN;
}

/* ---- looking ---- */

bool
slots_read(const struct slots *t, unsigned i, struct slots_entry *out)
{
	struct slot *s = i < t->n ? &t->slot[i] : NULL;
	uint64_t g, o, sum, name[SLOTS_RQADDR / 8];
	int k;

	if (s == NULL || (g = get(s, W_GENERATION)) == 0)
		return false;
	memset(out, 0, sizeof *out);
	o = get(s, W_OWNER);
	out->ref = (struct slots_ref){ i, g };
	out->pid = pid_of(o);
	out->process_start = get(s, W_START);
	out->dead = state_of(o) == DEAD;
	out->grpno = (long)(get(s, W_ID) & 0xffffffff);
	out->srvid = (long)(get(s, W_ID) >> 32);
	for (k = 0; k < SLOTS_RQADDR / 8; k++)
		name[k] = get(s, W_RQADDR + k);
	memcpy(out->rqaddr, name, sizeof out->rqaddr);
	out->rqaddr[SLOTS_RQADDR - 1] = '\0';
	out->load = load_now(s, &sum);
	out->sent = sum & 0xffffffff;
	for (k = 0; k < SLOTS_THREADS; k++) {
		struct slots_mark *m = &out->mark[k];

		*m = (struct slots_mark){ get(s, mark_of((unsigned)k)), (int64_t)get(s, mark_of((unsigned)k) + 1),
			(int64_t)get(s, mark_of((unsigned)k) + 2) };
		if (m->key != get(s, mark_of((unsigned)k)))
			m->key = 0;	/* ended, or another began: look later */
		out->serving += m->key != 0;
	}
	return (state_of(o) == LIVE || state_of(o) == DEAD) && get(s, W_GENERATION) == g;
}
