/*
 * svrqueue - requests that have arrived: they wait in the order of their priorities for a thread that serves.
 *
 * A server of one thread adds and takes in turn.  One of several threads adds in the thread that receives; the others wait here,
 * and the one that began to wait last is woken first: it is warm, and the rest get old enough to end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define SPARE 64			/* requests whose memory is kept */

int64_t requests_idle_us = 60000000;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t quiet;		/* nothing waits and nobody works; or fewer threads */
	struct rqueue q;
	struct request *spare;
	unsigned n_spare;
	struct work *idle;		/* threads that wait for a request, the last one first */
	unsigned threads;		/* in requests_await(), or at what they got there */
	unsigned busy;			/* of them */
	unsigned least;			/* threads that wait for ever */
	bool closed;
} here = { .lock = PTHREAD_MUTEX_INITIALIZER, .quiet = PTHREAD_COND_INITIALIZER };

struct request *
request_get(void)
{
	struct request *r;

	pthread_mutex_lock(&here.lock);
	if ((r = here.spare) != NULL) {
		here.spare = r->next;
		here.n_spare--;
	}
	pthread_mutex_unlock(&here.lock);
	return r != NULL ? r : calloc(1, sizeof *r);
}

void
request_put(struct request *r)
{
	mark_done(r);
	if (r->shared)
		set_over(&r->m.peer, r->call.reqid, r->asked);
	r->shared = r->asked = false;
	link_msg_done(&r->m);
	pthread_mutex_lock(&here.lock);
	if (here.n_spare < SPARE) {
		r->next = here.spare;
		here.spare = r;
		here.n_spare++;
		r = NULL;
	}
	pthread_mutex_unlock(&here.lock);
	free(r);
}

/* Its sender's share of what may wait is only needed by those that do wait: the one that finds nobody before it is served next. */
static void
hold(struct request *r, bool yes)
{
	if (r->shared)
		return;
	if (yes)
		link_server_hold(svr.link, &r->m);
	else if (r->held)
		link_server_release(svr.link, &r->m);
	r->held = yes;
}

bool
requests_add(struct request *r)
{
	struct work *w;

	pthread_mutex_lock(&here.lock);
	if (here.q.n > 0)
		hold(r, true);		/* before anybody can take it */
	rqueue_add(&here.q, &r->entry, r->call.priority);
	if ((w = here.idle) != NULL) {
		here.idle = w->next_idle;
		here.busy++;
		w->waits = false;
	}
	pthread_mutex_unlock(&here.lock);
	if (w != NULL)
		pthread_cond_signal(&w->wake);
	return w != NULL;
}

bool
requests_wait(void)
{
	bool yes;

	pthread_mutex_lock(&here.lock);
	yes = here.q.n > 0;
	pthread_mutex_unlock(&here.lock);
	return yes;
}

static struct request *
taken(struct rqueue_entry *e)
{
	return (struct request *)(void *)e;	/* its first member; NULL stays NULL */
}
_Static_assert(offsetof(struct request, entry) == 0, "see taken()");

/* ---- what is not served ---- */

static void
request_drop(struct request *r, const char *why)
{
	static _Atomic unsigned long dropped;
	unsigned long n = ++dropped;

	if (n <= 10 || n % 1000 == 0)
		ulog("LIBTUX_CAT:5200: WARN: a request of service %s is not carried out: %s before its turn came (%lu so far)",
		    r->call.service, why, n);
	hold(r, false);
	request_put(r);
}

/* Is it in vain?  A caller that has left may have wanted no more than to have it done, except in its transaction, which nobody will
 * commit.  Looks at the connection only when it waited long enough for that to be likely. */
static const char *
request_is_stale(const struct request *r)
{
	int64_t now;

	if (r->call.flags & TPNOREPLY)
		return NULL;
	now = clock_mono_us();
	if (now >= r->deadline_us)
		return "its caller's time was over";
	if (r->call.tx.gtrid_len > 0 && now - r->since_us > LATE_US && r->m.peer.n > 0 && link_server_left(svr.link, &r->m.peer))
		return "its caller had left";
	return NULL;
}

void
requests_cancel(const struct link_peer *peer, uint64_t reqid)
{
	struct rqueue_entry *e;
	struct request *r = NULL;

	pthread_mutex_lock(&here.lock);
	for (e = rqueue_oldest(&here.q); e != NULL; e = e->younger) {
		r = taken(e);
		if (r->call.reqid == reqid && r->m.peer.n == peer->n && memcmp(r->m.peer.id, peer->id, peer->n) == 0)
			break;
	}
	if (e != NULL)
		rqueue_remove(&here.q, e);
	pthread_mutex_unlock(&here.lock);
	if (e != NULL)
		request_drop(r, "it was cancelled");
}

/* A request just taken: NULL, it was not to be served. */
static struct request *
request_fit(struct request *r)
{
	const char *why = request_is_stale(r);

	if (why != NULL) {
		request_drop(r, why);
		return NULL;
	}
	hold(r, false);
	return r;
}

struct request *
requests_take(void)
{
	struct request *r;

	do {
		pthread_mutex_lock(&here.lock);
		r = taken(rqueue_take(&here.q));
		pthread_mutex_unlock(&here.lock);
	} while (r != NULL && (r = request_fit(r)) == NULL);
	return r;
}

/* ---- threads that wait ---- */

/* With the lock: until somebody has a request for w, or all is over.  False: it waited for long, and is not needed. */
static bool
wait_for_one(struct work *w)
{
	int64_t until_us = clock_mono_us() + requests_idle_us;
	struct timespec until = { .tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000 };
	struct work **at;
	bool needed = true;

	w->waits = true;
	w->next_idle = here.idle;
	here.idle = w;
	if (--here.busy == 0)
		pthread_cond_broadcast(&here.quiet);
	while (needed && w->waits && !here.closed)
		if (pthread_cond_timedwait(&w->wake, &here.lock, &until) == ETIMEDOUT && w->waits) {
			needed = here.threads <= here.least;
			until.tv_sec += 1 + requests_idle_us / 1000000;
		}
	if (!w->waits)
		return true;		/* who woke it has counted it */
	for (at = &here.idle; *at != w; at = &(*at)->next_idle)
		;
	*at = w->next_idle;
	w->waits = false;
	here.busy++;
	return needed;
}

struct request *
requests_await(struct work *w)
{
	struct request *r;
	bool stay = true;

	pthread_mutex_lock(&here.lock);
	for (;;) {
		if ((r = taken(rqueue_take(&here.q))) != NULL) {
			pthread_mutex_unlock(&here.lock);
			if ((r = request_fit(r)) != NULL)
				return r;
			pthread_mutex_lock(&here.lock);
		} else if (here.closed || !stay)
			break;
		else
			stay = wait_for_one(w);
	}
	here.threads--;			/* under the same lock: nobody counts on it any more */
	if (--here.busy == 0 || here.closed)
		pthread_cond_broadcast(&here.quiet);
	pthread_mutex_unlock(&here.lock);
	return NULL;
}

void
requests_thread_more(unsigned least)
{
	pthread_mutex_lock(&here.lock);
	here.least = least;
	here.threads++;
	here.busy++;
	pthread_mutex_unlock(&here.lock);
}

void
requests_thread_less(void)
{
	pthread_mutex_lock(&here.lock);
	here.threads--;
	if (--here.busy == 0)
		pthread_cond_broadcast(&here.quiet);
	pthread_mutex_unlock(&here.lock);
}

unsigned
requests_threads(void)
{
	unsigned n;

	pthread_mutex_lock(&here.lock);
	n = here.threads;
	pthread_mutex_unlock(&here.lock);
	return n;
}

void
requests_settle(void)
{
	pthread_mutex_lock(&here.lock);
	while (here.threads > 0 && (here.busy > 0 || here.q.n > 0))
		pthread_cond_wait(&here.quiet, &here.lock);
	pthread_mutex_unlock(&here.lock);
}

void
requests_close(void)
{
	struct work *w;

	pthread_mutex_lock(&here.lock);
	here.closed = true;
	for (w = here.idle; w != NULL; w = w->next_idle)
		pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&here.lock);
}
