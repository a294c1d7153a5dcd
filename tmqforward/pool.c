/*
 * pool - the threads of -w: which of them takes from which queue, and who sleeps.
 *
 * A worker that finds a queue to take from takes one message, and carries it through.  Of those who find none one watches: it
 * sleeps in the queue manager until a queue has something.  The others sleep here, and each is woken by one who has found a
 * message and will be busy with it, to watch in its stead: so one message wakes one thread, and there is always one who hears
 * of the next.
 *
 * Queues are served in turn, those with the fewest workers first.  The last free worker is kept for queues that have none, so that
 * a queue whose service hangs stops itself alone.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "atmiq_ext.h"
#include "clock.h"
#include "forward.h"
#include "say.h"

#define NOBODY_MS 250		/* between two questions for a service that is not there */
#define NOQUEUE_MS 250
#define TROUBLE_MS 500
#define NOW_MS 1		/* -e: is there something now? */
#define IDLE_MIN_S 1
#define AROUND_US 20000		/* how often busy threads look at queues that were empty */

static bool
is_over(const struct forwarder *f)
{
	return f->over || atmiq_server_stopping();
}

/* --- waking --- */

static void
kick(struct forwarder *f)	/* Who watches has to look around anew. */
{
	if (f->watching != NULL)
		eventfd_write(f->kick_fd, 1);
}

static void
wake_one(struct forwarder *f)
{
	struct worker *w = f->idle;

	if (w == NULL)
		return;
	f->idle = w->idle_next;
	w->woken = true;
	pthread_cond_signal(&w->cond);
}

static void
sleep_idle(struct worker *w)
{
	struct forwarder *f = w->f;

	w->woken = false;
	w->idle_next = f->idle;
	f->idle = w;
	while (!w->woken)
		pthread_cond_wait(&w->cond, &f->lock);
}

static void
source_is(struct source *s, enum source_state state, long later_ms)
{
	s->state = state;
	if (state == SOURCE_LATER)
		s->look_us = clock_mono_us() + later_ms * 1000;
}

static void	/* Who watches is to watch this one too. */
source_watch(struct forwarder *f, struct source *s)
{
	if (s->state != SOURCE_READY)
		return;
	source_is(s, SOURCE_EMPTY, 0);
	kick(f);
}

/* --- which queue --- */

static bool	/* Is there one that waits for its first worker, or may do so any moment? */
others_have_none(const struct forwarder *f, const struct source *but)
{
	for (size_t i = 0; i < f->o->n_queues; i++)
		if (&f->source[i] != but && f->source[i].busy == 0 && f->source[i].state != SOURCE_LATER)
			return true;
	return false;
}

static bool
may_take(const struct forwarder *f, const struct source *s)
{
	if (s->state != SOURCE_READY || s->shut > 0 || s->broken)
		return false;
	if (f->o->ordered && (s->taking > 0 || (s->alone && s->busy > 0)))
		return false;
	return s->busy == 0 || f->busy + 1 < f->o->workers || !others_have_none(f, s);
}

static struct source *
pick(struct forwarder *f)
{
	struct source *best = NULL;
	int64_t now = clock_mono_us();
	size_t n = f->o->n_queues, at = f->turn;

	if (now < f->hold_us)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		struct source *s = &f->source[(f->turn + i) % n];

		if (s->state == SOURCE_LATER && s->look_us <= now)
			s->state = s->last == TURN_NOQUEUE ? SOURCE_EMPTY : SOURCE_READY;
		if (may_take(f, s) && (best == NULL || s->busy < best->busy)) {
			best = s;
			at = (f->turn + i + 1) % n;
		}
	}
	f->turn = at;
	return best;
}

/* --- the one who watches --- */

struct watch { char *name[ATMIQ_QWAIT_MAX]; struct source *source[ATMIQ_QWAIT_MAX]; int n; };
_Static_assert(ATMIQ_QWAIT_MAX >= FORWARD_MAX_QUEUES, "one wait covers all queues");

static void	/* The queues that are in this state. */
watch_collect(struct forwarder *f, enum source_state state, struct watch *at)
{
	at->n = 0;
	for (size_t i = 0; i < f->o->n_queues; i++) {
		struct source *s = &f->source[(f->turn + i) % f->o->n_queues];

		if (s->state == state) {
			at->name[at->n] = s->queue;
			at->source[at->n++] = s;
		}
	}
}

static long
watch_ms(const struct forwarder *f)
{
	long s = f->o->idle_s < IDLE_MIN_S ? IDLE_MIN_S : f->o->idle_s;
	int64_t now = clock_mono_us(), until = now + (int64_t)(s > 86400 ? 86400 : s) * 1000000;

	for (size_t i = 0; i < f->o->n_queues; i++)
		if (f->source[i].state == SOURCE_LATER && f->source[i].look_us < until)
			until = f->source[i].look_us;
	return until <= now ? 0 : (long)((until - now + 999) / 1000);
}

static void	/* without the lock */
pause_ms(struct forwarder *f, long ms)
{
	struct pollfd p = { .fd = f->wait_fd, .events = POLLIN };

	poll(&p, 1, (int)ms);
}

/* Wait; with the lock, which is given away meanwhile.  MISSING: one of them is not there,
 * and is looked for later; NOTHING: the queue manager says so; UNCLEAR: woken, or no answer. */
enum found { FOUND, NOTHING, MISSING, UNCLEAR };
static enum found
watch_for(struct forwarder *f, struct watch *at, long ms)
{
	int found, wrong, error;
	long diagnostic;
	bool nothing;		/* by the word of the queue manager */

	pthread_mutex_unlock(&f->lock);
	found = atmiq_qwait(f->space, at->name, at->n, ms, f->wait_fd, &diagnostic, &wrong);
	error = tperrno;
	if (found == -1 && error != TPETIME && error != TPGOTSIG && wrong == -1)
		pause_ms(f, TROUBLE_MS);
	pthread_mutex_lock(&f->lock);
	nothing = error == TPETIME && diagnostic == QMENOMSG;
	if (found >= 0 || error != TPGOTSIG)
		note_manager(f, found >= 0 || nothing || error == TPEDIAGNOSTIC ? 0 : error);
	if (found >= 0 && at->source[found]->state == SOURCE_EMPTY)
		source_is(at->source[found], SOURCE_READY, 0);
	if (found == -1 && error == TPEDIAGNOSTIC && wrong >= 0) {
		source_is(at->source[wrong], SOURCE_LATER, NOQUEUE_MS);
		note(at->source[wrong], TURN_NOQUEUE, QMEBADQUEUE);
	}
	return found >= 0 ? FOUND : nothing ? NOTHING : wrong >= 0 ? MISSING : UNCLEAR;
}

/* -e: a queue whose service is missing is not finished while it has messages; one that is not there is. */
static enum found
what_is_left(struct forwarder *f)
{
	enum found found;
	struct watch at;
	int n = 0;

	do {
		watch_collect(f, SOURCE_EMPTY, &at);
		found = at.n == 0 ? NOTHING : watch_for(f, &at, NOW_MS);
	} while (found == MISSING);
	if (found != NOTHING)
		return found;
	watch_collect(f, SOURCE_LATER, &at);
	for (int i = 0; i < at.n; i++)
		if (at.source[i]->last != TURN_NOQUEUE) {
			at.name[n] = at.name[i];
			at.source[n++] = at.source[i];
		}
	at.n = n;
	return n == 0 ? NOTHING : watch_for(f, &at, NOW_MS);
}

static void
watch_out(struct forwarder *f)
{
	struct watch at = { .n = 0 };
	int64_t hold_us = f->hold_us - clock_mono_us();
	long ms = hold_us > 0 ? (long)((hold_us + 999) / 1000) : watch_ms(f);

	if (hold_us <= 0 && f->o->exit_when_empty && f->busy == 0) {
		enum found left = what_is_left(f);

		f->over |= left == NOTHING;
		watch_collect(f, SOURCE_READY, &at);
		if (left == NOTHING || left == UNCLEAR || at.n > 0)	/* else what is left has no service */
			return;
	}
	if (hold_us <= 0)
		watch_collect(f, SOURCE_EMPTY, &at);
	if (at.n > 0 && ms > 0) {
		watch_for(f, &at, ms);
		return;
	}
	pthread_mutex_unlock(&f->lock);
	pause_ms(f, ms);
	pthread_mutex_lock(&f->lock);
}

static void
watch(struct worker *w)
{
	struct forwarder *f = w->f;
	eventfd_t kicks;

	f->watching = w;
	eventfd_read(f->kick_fd, &kicks);
	watch_out(f);
	f->watching = NULL;
}

static void	/* While nobody watches, for all are busy: what has come to the other queues meanwhile? */
look_around(struct worker *w)
{
	struct forwarder *f = w->f;
	struct watch at;

	if (f->watching != NULL || f->o->n_queues == 1 || clock_mono_us() < f->around_us)
		return;
	watch_collect(f, SOURCE_READY, &at);
	if (at.n == 0)
		return;			/* it will watch */
	watch_collect(f, SOURCE_EMPTY, &at);
	f->watching = w;
	while (at.n > 0 && watch_for(f, &at, NOW_MS) == FOUND)
		watch_collect(f, SOURCE_EMPTY, &at);	/* it is told of one at a time */
	f->watching = NULL;
	f->around_us = clock_mono_us() + AROUND_US;
}

/* --- a worker --- */

static void	/* with the lock */
release_taking(struct worker *w)
{
	if (!w->taking)
		return;
	w->taking = false;
	if (--w->s->taking == 0 && (w->s->shut > 0 || w->s->broken))
		pthread_cond_broadcast(&w->f->quiet);
}

static void	/* -f s */
hold(struct forwarder *f)
{
	if (f->o->noreply && f->o->pause_s > 0)
		f->hold_us = clock_mono_us() + (int64_t)f->o->pause_s * 1000000;
}

static bool	/* somebody has nothing to do */
is_free(const struct forwarder *f)
{
	return f->idle != NULL || f->watching != NULL;
}

void
pool_taken(struct worker *w)
{
	struct forwarder *f = w->f;

	pthread_mutex_lock(&f->lock);
	line_enter(w);
	if (!f->o->ordered)
		release_taking(w);
	hold(f);
	if (is_free(f))
		source_watch(f, w->s);
	if (f->watching == NULL)
		wake_one(f);
	pthread_mutex_unlock(&f->lock);
}

void
pool_sent(struct worker *w)
{
	struct forwarder *f = w->f;

	if (!w->taking)
		return;
	pthread_mutex_lock(&f->lock);
	release_taking(w);
	if (is_free(f))
		source_watch(f, w->s);
	pthread_mutex_unlock(&f->lock);
}

void
pool_shut(struct worker *w)
{
	pthread_mutex_lock(&w->f->lock);
	w->s->shut++;
	while (w->s->taking > 0)
		pthread_cond_wait(&w->f->quiet, &w->f->lock);
	pthread_mutex_unlock(&w->f->lock);
}

void
pool_open(struct worker *w)
{
	pthread_mutex_lock(&w->f->lock);
	w->s->shut--;
	pthread_mutex_unlock(&w->f->lock);
}

static void
enter(struct worker *w, struct source *s)
{
	w->s = s;
	w->taking = true;
	s->taking++;
	w->f->busy++;
	if (s->busy++ == 0 && w->f->o->n_queues > 1)
		kick(w->f);		/* a free worker need not be kept for this one any more */
}

static void
leave(struct worker *w, enum turn turn)
{
	struct forwarder *f = w->f;
	struct source *s = w->s;

	release_taking(w);
	line_leave(w);
	s->busy--;
	f->busy--;
	switch (turn) {
	case TURN_DONE:
		s->alone = false;
		hold(f);
		break;
	case TURN_EMPTY: source_watch(f, s); break;
	case TURN_NOBODY: source_is(s, SOURCE_LATER, NOBODY_MS); break;
	case TURN_NOQUEUE: source_is(s, SOURCE_LATER, NOQUEUE_MS); break;
	case TURN_TROUBLE: source_is(s, SOURCE_LATER, TROUBLE_MS); break;
	default: break;
	}
	if (s->state == SOURCE_LATER || (f->o->exit_when_empty && f->busy == 0))
		kick(f);
	if (turn == TURN_DONE || turn == TURN_FAILED)
		atmiq_server_count(NULL);
}

static void	/* with the lock */
end_all(struct forwarder *f)
{
	f->over = true;
	kick(f);
	while (f->idle != NULL)
		wake_one(f);
}

void
pool_run(struct worker *w)
{
	struct forwarder *f = w->f;
	struct source *s;
	enum turn turn;

	pthread_mutex_lock(&f->lock);
	while (!is_over(f)) {
		look_around(w);
		if ((s = pick(f)) != NULL) {
			enter(w, s);
			pthread_mutex_unlock(&f->lock);
			turn = forward_one(w);
			pthread_mutex_lock(&f->lock);
			leave(w, turn);
		} else if (f->watching == NULL)
			watch(w);
		else
			sleep_idle(w);
	}
	end_all(f);
	pthread_mutex_unlock(&f->lock);
}

void
pool_stop(struct forwarder *f)
{
	pthread_mutex_lock(&f->lock);
	end_all(f);
	pthread_mutex_unlock(&f->lock);
}
