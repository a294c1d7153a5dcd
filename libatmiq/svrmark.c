/*
 * svrmark - what this server tells in the table of servers (common/slots.h): how much waits for it, and which requests it has begun.
 *
 * A mark stays until the answer is surely in the kernel.  Of a caller that does not read, link keeps what it was sent in memory; the
 * marks of such answers are looked through, now and then, until they are read or the caller is gone.  A request that was forwarded
 * keeps its mark until the answer has passed through here.
 */
#include <stdlib.h>

#include "svr.h"
#include "clock.h"
#include "point.h"
#include "ulog.h"

#define LOOK_US 10000

struct owed {
	struct owed *next;
	int kept;
	enum svr_sent how;
	struct link_peer peer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct owed *owed;
static int64_t looked_us;
static atomic_uint n_owed;
static _Atomic uint64_t numbers;	/* threads that have one, a bit each */

void
mark_open(void)
{
	svr.slots = app_slots(svr.app);
	if (svr.slots == NULL)
		return;
	svr.slot = slots_claim(svr.slots, svr.opt.grpno, svr.opt.srvid, svr.conf == NULL ? NULL : svr.conf->rqaddr);
	if (svr.slot >= 0)
		return;
	ulog("LIBTUX_CAT:5232: WARN: The table of servers is full: the load of this server is not known to others");
	svr.slots = NULL;
}

void
mark_close(void)
{
	if (svr.slots != NULL)
		slots_leave(svr.slots, (unsigned)svr.slot);
}

/* The lowest free number; beyond those with marks they need not differ. */
static unsigned
number_take(void)
{
	uint64_t used = atomic_load(&numbers);
	int n;

	do
		if ((n = ~used == 0 ? SLOTS_THREADS : __builtin_ctzll(~used)) == SLOTS_THREADS)
			return SLOTS_THREADS;
	while (!atomic_compare_exchange_weak(&numbers, &used, used | UINT64_C(1) << n));
	return (unsigned)n;
}

void
mark_thread_over(struct work *w)
{
	if (w->numbered && w->number < SLOTS_THREADS)
		atomic_fetch_and(&numbers, ~(UINT64_C(1) << w->number));
	w->numbered = false;
}

static int64_t	/* when BBL ends us for it (SVCTIMEOUT); 0: never */
limit_us(const struct offer *o)
{
	return o->svctimeout > 0 ? clock_mono_us() + o->svctimeout * 1000000LL : 0;
}

void
mark_begin(struct work *w)
{
	w->sent = SVR_SURE;
	w->marked = svr.slots != NULL;
	if (!w->marked)
		return;
	if (!w->numbered) {
		w->number = number_take();
		w->numbered = true;
	}
	point(POINT_MARK_BEGIN);
	slots_begin(svr.slots, (unsigned)svr.slot, w->number, w->request->call.reqid, limit_us(w->offer));
	point(POINT_MARK_BEGUN);
}

/* ---- answers that are not in the kernel yet ---- */

static void
owed_add(int kept, enum svr_sent how, const struct link_peer *peer)
{
	struct owed *o = malloc(sizeof *o);

	if (o == NULL)
		return;			/* the mark stays: at worst an outcome is called unknown */
	*o = (struct owed){ .kept = kept, .how = how, .peer = *peer };
	pthread_mutex_lock(&lock);
	o->next = owed;
	owed = o;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&n_owed, 1);
}

static bool
is_over(const struct owed *o)
{
	return (o->how == SVR_OWED && !link_server_owes(svr.link, &o->peer)) || link_server_left(svr.link, &o->peer);
}

static void
owed_look(void)
{
	struct owed **at, *o;
	int64_t now = clock_mono_us();

	pthread_mutex_lock(&lock);
	if (now - looked_us >= LOOK_US) {
		looked_us = now;
		for (at = &owed; (o = *at) != NULL;) {
			if (!is_over(o)) {
				at = &o->next;
				continue;
			}
			*at = o->next;
			slots_drop(svr.slots, (unsigned)svr.slot, o->kept);
			free(o);
			atomic_fetch_sub(&n_owed, 1);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---- the end of a request ---- */

void
mark_end(struct work *w)
{
	if (!w->marked)
		return;
	w->marked = false;
	point(POINT_MARK_END);
	if (w->sent == SVR_SURE)
		slots_end(svr.slots, (unsigned)svr.slot, w->number);
	else
		owed_add(slots_keep(svr.slots, (unsigned)svr.slot, w->number), w->sent, &w->request->m.peer);
	point(POINT_MARK_ENDED);
	if (atomic_load(&n_owed) > 0)
		owed_look();
}

int
mark_pass_on(struct work *w)
{
	if (!w->marked)
		return -1;
	w->marked = false;
	return slots_keep(svr.slots, (unsigned)svr.slot, w->number);
}

void
mark_passed(int kept, enum svr_sent sent, const struct link_peer *caller)
{
	if (kept < 0)
		return;
	if (sent == SVR_SURE)
		slots_drop(svr.slots, (unsigned)svr.slot, kept);
	else
		owed_add(kept, sent, caller);
}

void
mark_done(struct request *r)
{
	if (r->counted && svr.slots != NULL)
		slots_done(svr.slots, (unsigned)svr.slot, (long)r->load);
	r->counted = false;
}
