/*
 * The file is as in mapped.h: "atmqGTT", version 1.
 *
 * A slot, of 24 words of 8 bytes:
 *      word  field
 *         0  bits 0-6 state, 7 being written, 8-31 sequence, 32-63 process
 *         1  start time of the process
 *       2-5  gtrid, zero padded
 *         6  bits 0-7 length of the gtrid, 8-15 groups that joined, 16 doomed, 17 AUTOTRAN, 18 by TX, 19 tied
 *         7  begun, us since the epoch
 *         8  deadline, us of the monotonic clock
 *      9-16  numbers of the groups, 2 bytes each
 *     17-23  zero
 *
 * Word 0 is what is fought for, by compare and exchange; the others are written between two changes of it.  All accesses are
 * atomic, and ordered by acquire and release alone: a reader that finds word 0 as it was has read what belongs together.
 */
#include "gtt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "mapped.h"
#include "proc.h"

#define MAGIC "atmqGTT"
#define VERSION 1
#define LINGER_US INT64_C(60000000)	/* a suspended transaction after its deadline: who resumes it still hears why */
#define TRIES 1000			/* a writer is done in a moment, or dead */

enum { W_OWNER, W_START, W_GTRID, W_BITS = W_GTRID + GTT_GTRID / 8, W_BEGUN, W_DEADLINE, W_GROUPS,
    W_USED = W_GROUPS + GTT_GROUPS / 4, WORDS = 24 };
_Static_assert(W_USED == 17, "the layout above");

#define WRITING UINT64_C(0x80)
#define SEQUENCE UINT64_C(0x100)
#define BIT_DOOMED (UINT64_C(1) << 16)
#define BIT_AUTOTRAN (UINT64_C(1) << 17)
#define BIT_TX (UINT64_C(1) << 18)
#define BIT_TIED (UINT64_C(1) << 19)

struct slot { _Atomic uint64_t word[WORDS]; };
_Static_assert(sizeof(struct slot) == WORDS * 8, "a slot is its words");

struct gtt {
	struct mapped file;
	unsigned n;
	struct slot *slot;
	uint64_t owner;			/* our pid, where word 0 has it */
	uint64_t start;			/* and our start time */
};

void
gtt_path(const char *rundir, char *buf, size_t size)
{
	snprintf(buf, size, "%s/gtt", rundir);
}

/* ---- the file ---- */

static const struct mapped_kind kind = { MAGIC, VERSION, GTT_MAX, sizeof(struct slot) };

static int	/* over what was mapped */
table_new(const struct mapped *m, struct gtt **out)
{
	struct gtt *g = malloc(sizeof *g);

	if (g == NULL) {
		mapped_close(m);
		return -1;
	}
	*g = (struct gtt){ .file = *m, .n = m->n, .slot = (struct slot *)(void *)(m->p + MAPPED_SLOTS), .owner = (uint64_t)getpid() << 32,
		.start = proc_start_time(getpid()) };
	*out = g;
	return 0;
}

int
gtt_open(const char *path, unsigned n, struct gtt **out, char **why)
{
	struct mapped m;

	*out = NULL;
	return mapped_open(&kind, path, n, &m, why) == 0 ? table_new(&m, out) : -1;
}

int
gtt_make(const char *path, unsigned n, mode_t mode, struct gtt **out, char **why)
{
	struct mapped m;

	*out = NULL;
	return mapped_make(&kind, path, n, mode, false, &m, why) == 0 ? table_new(&m, out) : -1;
}

bool
gtt_is_at(const struct gtt *g, const char *path)
{
	return mapped_is_at(&g->file, path);
}

void
gtt_close(struct gtt *g)
{
	if (g == NULL)
		return;
	mapped_close(&g->file);
	free(g);
}

unsigned
gtt_slots(const struct gtt *g)
{
	return g->n;
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

static inline enum gtt_state
state_of(uint64_t owner)
{
	return owner & 0x7f;
}

/* Word 0 with another state, the next sequence, the given process. */
static inline uint64_t
owned(uint64_t before, enum gtt_state state, uint64_t process)
{
	return (((before & 0xffffff00) + SEQUENCE) & 0xffffff00) | state | process;
}

static inline bool
swap(struct slot *s, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&s->word[W_OWNER], &from, to, memory_order_acq_rel, memory_order_relaxed);
}

/* Slot i if it is in our hands, where nobody else changes it while we live; NULL: it is not, or there is no such slot. */
static struct slot *
slot_ours(struct gtt *g, unsigned i)
{
	struct slot *s = i < g->n ? &g->slot[i] : NULL;
	uint64_t o;

	if (s == NULL)
		return NULL;
	o = get(s, W_OWNER);
	if ((o & ~UINT64_C(0xffffffff)) != g->owner || (o & WRITING) || state_of(o) == GTT_FREE || state_of(o) == GTT_SUSPENDED)
		return NULL;
	return s;
}

static struct slot *
write_begin(struct gtt *g, unsigned i)
{
	struct slot *s = slot_ours(g, i);

	if (s != NULL) {
		uint64_t o = get(s, W_OWNER);

		put(s, W_OWNER, owned(o, state_of(o), g->owner) | WRITING);
	}
	return s;
}

static void
write_end(struct gtt *g, struct slot *s, enum gtt_state state)
{
	put(s, W_OWNER, owned(get(s, W_OWNER), state, state == GTT_FREE ? 0 : g->owner));
}

/* ---- reading ---- */

static void
entry_from(const uint64_t *w, struct gtt_entry *e)
{
	*e = (struct gtt_entry){ .state = state_of(w[W_OWNER]), .pid = (pid_t)(w[W_OWNER] >> 32), .process_start = w[W_START],
		.gtrid_len = (uint8_t)w[W_BITS], .begun_us = (int64_t)w[W_BEGUN], .deadline_us = (int64_t)w[W_DEADLINE],
		.doomed = w[W_BITS] & BIT_DOOMED, .autotran = w[W_BITS] & BIT_AUTOTRAN, .by_tx = w[W_BITS] & BIT_TX,
		.tied = w[W_BITS] & BIT_TIED, .n_groups = (uint8_t)(w[W_BITS] >> 8) };
	memcpy(e->gtrid, &w[W_GTRID], sizeof e->gtrid);
	memcpy(e->grpno, &w[W_GROUPS], sizeof e->grpno);
}

static bool
slot_read(const struct slot *s, struct gtt_entry *out, uint64_t *owner)
{
	uint64_t w[W_USED];
	int i, tries;

	for (tries = 0; tries < TRIES; tries++) {
		w[W_OWNER] = get(s, W_OWNER);
		if (state_of(w[W_OWNER]) == GTT_FREE)
			return false;
		if (w[W_OWNER] & WRITING)
			continue;
		for (i = 1; i < W_USED; i++)
			w[i] = get(s, i);
		if (atomic_load_explicit(&s->word[W_OWNER], memory_order_relaxed) != w[W_OWNER])
			continue;
		entry_from(w, out);
		*owner = w[W_OWNER];
		return out->state < GTT_STATES && out->gtrid_len > 0 && out->gtrid_len <= GTT_GTRID && out->n_groups <= GTT_GROUPS;
	}
	return false;
}

bool
gtt_read(const struct gtt *g, unsigned i, struct gtt_entry *out)
{
	uint64_t owner;

	return i < g->n && slot_read(&g->slot[i], out, &owner);
}

/* Whoever writes to a slot meanwhile leaves the gtrid alone: it stands there from the claim on. */
bool
gtt_is_open(const struct gtt *g, const uint8_t *gtrid, size_t len)
{
	uint64_t want[GTT_GTRID / 8] = { 0 };
	unsigned i;
	int w;

	if (len == 0 || len > GTT_GTRID)
		return false;
	memcpy(want, gtrid, len);
	for (i = 0; i < g->n; i++) {
		const struct slot *s = &g->slot[i];
		enum gtt_state state = state_of(get(s, W_OWNER));

		if (state == GTT_FREE)
			continue;
		for (w = 0; w < GTT_GTRID / 8 && get(s, W_GTRID + w) == want[w]; w++)
			;
		if (w == GTT_GTRID / 8)
			return (state == GTT_ACTIVE || state == GTT_SUSPENDED) && (int64_t)get(s, W_DEADLINE) > clock_mono_us();
	}
	return false;
}

uint16_t
gtt_mark(const struct gtt *g)
{
	uint64_t n = (uint64_t)g->file.ino ^ (uint64_t)g->file.dev << 7;
	uint16_t mark = (uint16_t)(n ^ n >> 16 ^ n >> 32 ^ n >> 48);

	return mark == 0 ? 1 : mark;
}

/* ---- slots of processes that are gone ---- */

struct seen { pid_t pid; uint64_t start; bool lives; };		/* the last process that was looked at: one has many slots */

static bool
process_lives(struct seen *seen, pid_t pid, uint64_t start)
{
	if (seen->pid != pid || seen->start != start) {
		unsigned long long now = proc_start_time(pid);
		bool lives = now != 0 ? start == 0 || now == start : kill(pid, 0) != 0 && errno == EPERM;

		*seen = (struct seen){ pid, start, lives };	/* of another user's process we may see no more than that */
	}
	return seen->lives;
}

/* May the slot, whose word 0 was *owner, be freed? */
static bool
is_left_over(const struct slot *s, uint64_t owner, int64_t now, struct seen *seen)
{
	pid_t pid = (pid_t)(owner >> 32);

	if (owner & WRITING)		/* its start time may be that of the owner before */
		return !process_lives(seen, pid, 0);
	if (state_of(owner) == GTT_SUSPENDED && (int64_t)get(s, W_DEADLINE) < now - LINGER_US)
		return true;
	if (state_of(owner) == GTT_SUSPENDED && (get(s, W_BITS) & BIT_TIED) == 0)
		return false;
	return !process_lives(seen, pid, get(s, W_START));
}

unsigned
gtt_sweep(struct gtt *g)
{
	struct seen seen = { 0 };
	int64_t now = clock_mono_us();
	unsigned i, n = 0;

	for (i = 0; i < g->n; i++) {
		struct slot *s = &g->slot[i];
		uint64_t o = get(s, W_OWNER);

		if (state_of(o) != GTT_FREE && is_left_over(s, o, now, &seen))
			n += swap(s, o, owned(o, GTT_FREE, 0));
	}
	return n;
}

/* ---- owners ---- */

/* Where to look first: a thread goes on where it was last, each from a place of its own, so they do not meet. */
static __thread unsigned hint;
static __thread bool hinted;

static unsigned
first_look(const struct gtt *g)
{
	if (!hinted) {
		hint = ((unsigned)(g->owner >> 32) * 2654435761u) ^ (unsigned)((uintptr_t)&hint >> 12) * 40503u;
		hinted = true;
	}
	return hint % g->n;
}

static void
slot_fill(struct slot *s, uint64_t start, const struct gtt_entry *e)
{
	uint64_t w[W_USED] = { 0 };
	int i, last = W_GROUPS + (e->n_groups + 3) / 4;

	w[W_START] = start;
	memcpy(&w[W_GTRID], e->gtrid, e->gtrid_len);
	memcpy(&w[W_GROUPS], e->grpno, e->n_groups * sizeof e->grpno[0]);
	w[W_BITS] = e->gtrid_len | (uint64_t)e->n_groups << 8 | (e->doomed ? BIT_DOOMED : 0) | (e->autotran ? BIT_AUTOTRAN : 0) |
	    (e->by_tx ? BIT_TX : 0);
	w[W_BEGUN] = (uint64_t)e->begun_us;
	w[W_DEADLINE] = (uint64_t)e->deadline_us;
	for (i = 1; i < last; i++)
		put(s, i, w[i]);
}

int
gtt_claim(struct gtt *g, const struct gtt_entry *e)
{
	unsigned k, at, i;

	if (g->n == 0 || e->gtrid_len == 0 || e->gtrid_len > GTT_GTRID || e->n_groups > GTT_GROUPS)
		return -1;
	for (k = 0, at = first_look(g); k < g->n; k++) {
		struct slot *s;
		uint64_t o;

		i = at + k < g->n ? at + k : at + k - g->n;
		s = &g->slot[i];
		o = get(s, W_OWNER);
		if (state_of(o) != GTT_FREE || !swap(s, o, owned(o, GTT_ACTIVE, g->owner) | WRITING))
			continue;
		slot_fill(s, g->start, e);
		write_end(g, s, GTT_ACTIVE);
		hint = i + 1;
		return (int)i;
	}
	return -1;
}

void
gtt_joined(struct gtt *g, unsigned i, uint16_t grpno)
{
	struct slot *s = write_begin(g, i);
	uint64_t bits, word;
	unsigned n;

	if (s == NULL)
		return;
	bits = get(s, W_BITS);
	n = (unsigned)(bits >> 8 & 0xff);
	if (n < GTT_GROUPS) {
		uint16_t four[4];

		word = n % 4 == 0 ? 0 : get(s, W_GROUPS + (int)n / 4);
		memcpy(four, &word, sizeof four);
		four[n % 4] = grpno;
		memcpy(&word, four, sizeof word);
		put(s, W_GROUPS + (int)n / 4, word);
		put(s, W_BITS, bits + 0x100);
	}
	write_end(g, s, state_of(get(s, W_OWNER)));
}

void
gtt_doomed(struct gtt *g, unsigned i)
{
	struct slot *s = write_begin(g, i);

	if (s == NULL)
		return;
	put(s, W_BITS, get(s, W_BITS) | BIT_DOOMED);
	write_end(g, s, state_of(get(s, W_OWNER)));
}

void
gtt_enter(struct gtt *g, unsigned i, enum gtt_state state)
{
	struct slot *s = slot_ours(g, i);

	if (s == NULL)
		return;
	write_end(g, s, state);		/* word 0 alone */
	if (state == GTT_FREE)
		hint = i;
}

void
gtt_suspend(struct gtt *g, unsigned i, bool tied)
{
	struct slot *s = write_begin(g, i);

	if (s == NULL)
		return;
	put(s, W_BITS, (get(s, W_BITS) & ~BIT_TIED) | (tied ? BIT_TIED : 0));
	write_end(g, s, GTT_SUSPENDED);
}

enum gtt_resumed
gtt_resume(struct gtt *g, unsigned i, const uint8_t *gtrid, size_t len, struct gtt_entry *out)
{
	uint64_t owner, mine;
	struct slot *s;

	if (i >= g->n)
		return GTT_NONE;
	s = &g->slot[i];
	if (!slot_read(s, out, &owner) || out->gtrid_len != len || memcmp(out->gtrid, gtrid, len) != 0)
		return GTT_NONE;
	if (out->state != GTT_SUSPENDED)
		return GTT_TAKEN;
	if (out->tied && (out->pid != (pid_t)(g->owner >> 32) || out->process_start != g->start))
		return GTT_NONE;
	mine = owned(owner, GTT_ACTIVE, g->owner) | WRITING;
	if (!swap(s, owner, mine))
		return GTT_TAKEN;
	put(s, W_START, g->start);
	write_end(g, s, GTT_ACTIVE);
	out->state = GTT_ACTIVE;
	out->pid = (pid_t)(g->owner >> 32);
	out->process_start = g->start;
	return GTT_RESUMED;
}
