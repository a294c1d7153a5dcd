/*
 * bb - being known: what the server's threads call, and the thread that talks to BBL for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "bb_impl.h"
#include "clock.h"

#define START_US 30000000	/* for BBL to answer the first registration, and to be started again before that */
#define ASK_US 5000000		/* for BBL to answer an order */
#define END_US 1000000

static _Thread_local struct service *serving;	/* what this thread works for, or did last */
static _Thread_local bool working;

/* --- making and freeing --- */

static void *
agent_thread(void *arg)
{
	struct bb_agent *a = arg;

	while (!atomic_load(&a->quit))
		agent_turn(a);
	return NULL;
}

static int	/* with all signals blocked: they are the program's */
start_thread(struct bb_agent *a)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	a->running = true;
	rc = pthread_create(&a->thread, NULL, agent_thread, a);
	if (rc != 0)
		a->running = false;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = rc;
	return rc == 0 ? 0 : LINK_FAIL;
}

static int
copy(char **to, const char *from)
{
	return (*to = strdup(from != NULL ? from : "")) == NULL ? -1 : 0;
}

static void
agent_free(struct bb_agent *a)
{
	struct service *s = atomic_load(&a->services), *next;

	agent_hang_up(a);
	for (; s != NULL; s = next) {
		next = atomic_load(&s->next);
		free(s);
	}
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	if (a->poke_fd >= 0)
		close(a->poke_fd);
	revive_free(&a->revive);
	wr_free(&a->w);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a->bbl_endpoint);
	free(a->endpoint);
	free(a->group);
	free(a->program);
	free(a->clopt);
	free(a->rqaddr);
	free(a);
}

static struct bb_agent *	/* not yet known to anybody; NULL: no memory or descriptors */
agent_new(const struct bb_agent_conf *conf)
{
	struct bb_agent *a = calloc(1, sizeof *a);
	pthread_condattr_t attr;

	if (a == NULL)
		return NULL;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &attr);
	pthread_condattr_destroy(&attr);
	a->pid = getpid();
	a->grpno = conf->grpno;
	a->srvid = conf->srvid;
	a->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	a->poke_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (revive_prepare(&a->revive, conf) != 0 || a->wake_fd < 0 || a->poke_fd < 0 ||
	    copy(&a->bbl_endpoint, conf->bbl_endpoint) != 0 || copy(&a->endpoint, conf->endpoint) != 0 ||
	    copy(&a->group, conf->group) != 0 || copy(&a->program, conf->program) != 0 ||
	    copy(&a->clopt, conf->clopt) != 0 || copy(&a->rqaddr, conf->rqaddr) != 0) {
		agent_free(a);
		return NULL;
	}
	return a;
}

int
bb_agent_start(const struct bb_agent_conf *conf, struct bb_agent **out)
{
	struct bb_agent *a = agent_new(conf);
	int64_t deadline_us = clock_mono_us() + START_US;
	int rc = 0;

	*out = NULL;
	if (a == NULL)
		return LINK_FAIL;
	while (rc == 0 && a->state != AGENT_UP) {
		agent_turn(a);
		if (a->refused != 0)
			rc = a->refused;
		else if (a->state != AGENT_UP && clock_mono_us() > deadline_us)
			rc = LINK_TIMEOUT;
	}
	if (rc == 0)
		rc = start_thread(a);
	if (rc != 0)
		agent_free(a);
	else
		*out = a;
	return rc;
}

/* --- orders to BBL --- */

static void
unlink_ask(struct bb_agent *a, struct ask *q)
{
	for (struct ask **at = &a->asks; *at != NULL; at = &(*at)->next)
		if (*at == q) {
			*at = q->next;
			return;
		}
}

static int	/* Have it told and wait for the answer.  0 also when BBL is away: it is told when it is back. */
order(struct bb_agent *a, struct ask *q, int64_t patience_us)
{
	int64_t deadline_us = clock_mono_us() + patience_us;
	struct timespec until = { .tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000 };
	struct ask **at;
	int rc = 0;

	if (a->pid != getpid())
		return 0;		/* a child: the agent stayed with its parent */
	pthread_mutex_lock(&a->lock);
	if (a->state == AGENT_DOWN)
		a->untold = true;
	else {
		for (at = &a->asks; *at != NULL; at = &(*at)->next)
			;		/* to the end: BBL hears them in the order they were given */
		*at = q;
		agent_poke(a);
		while (!q->done && rc == 0)
			rc = pthread_cond_timedwait(&a->changed, &a->lock, &until);
		if (!q->done)
			unlink_ask(a, q);
	}
	pthread_mutex_unlock(&a->lock);
	return rc != 0 && !q->done ? LINK_TIMEOUT : q->status;
}

static struct service *
find_service(struct bb_agent *a, const char *name)
{
	struct service *s = atomic_load_explicit(&a->services, memory_order_acquire);

	while (s != NULL && strcmp(s->name, name) != 0)
		s = atomic_load_explicit(&s->next, memory_order_acquire);
	return s;
}

static struct service *	/* NULL: no memory, or the name is too long */
new_service(struct bb_agent *a, const char *name, const char *function)
{
	struct service *s;
	_Atomic(struct service *) *at;

	if (strlen(name) >= sizeof s->name || strlen(function) >= sizeof s->function)
		return NULL;
	if ((s = calloc(1, sizeof *s)) == NULL)
		return NULL;
	s->agent = a;
	memcpy(s->name, name, strlen(name));
	memcpy(s->function, function, strlen(function));
	for (at = &a->services; atomic_load(at) != NULL; at = &atomic_load(at)->next)
		;
	atomic_store(at, s);
	return s;
}

int
bb_agent_advertise(struct bb_agent *a, const char *service, const char *function)
{
	struct ask q = { .op = "advertise", .service = service, .function = function };
	struct service *s;
	bool was;
	int rc;

	pthread_mutex_lock(&a->lock);
	if ((s = find_service(a, service)) == NULL)
		s = new_service(a, service, function);
	pthread_mutex_unlock(&a->lock);
	if (s == NULL)
		return LINK_FAIL;
	if (atomic_load(&s->offered) && strcmp(s->function, function) == 0)
		return 0;
	was = atomic_exchange(&s->offered, true);	/* first, so that a registration meanwhile tells it too */
	if ((rc = order(a, &q, ASK_US)) != 0)
		atomic_store(&s->offered, was);
	return rc;
}

int
bb_agent_unadvertise(struct bb_agent *a, const char *service)
{
	struct ask q = { .op = "unadvertise", .service = service };
	struct service *s = find_service(a, service);

	if (s != NULL)
		atomic_store(&s->offered, false);
	return order(a, &q, ASK_US);
}

void
bb_agent_ready(struct bb_agent *a)
{
	struct ask q = { .op = "ready" };

	pthread_mutex_lock(&a->lock);
	a->ready_told = true;
	pthread_mutex_unlock(&a->lock);
	order(a, &q, ASK_US);
}

void
bb_agent_end(struct bb_agent *a, int status)
{
	struct ask q = { .op = "end", .exit_status = status };

	if (a == NULL)
		return;
	if (a->pid == getpid() && a->running) {
		order(a, &q, END_US);
		atomic_store(&a->quit, true);
		agent_poke(a);
		pthread_join(a->thread, NULL);
	}
	agent_free(a);
}

/* --- what psr and psc show --- */

static void
stop_serving(const struct bb_agent *a)
{
	if (working && serving != NULL && serving->agent == a)
		atomic_fetch_sub_explicit(&serving->running, 1, memory_order_relaxed);
	working = false;
}

/* Of several threads the one that began last, while it works; then any other. */
struct service *
agent_current(struct bb_agent *a)
{
	struct service *s = atomic_load_explicit(&a->current, memory_order_acquire);

	if (s == NULL || atomic_load(&s->running) > 0)
		return s;
	for (s = atomic_load(&a->services); s != NULL && atomic_load(&s->running) == 0; s = atomic_load(&s->next))
		;
	return s;
}

void
bb_agent_busy(struct bb_agent *a, const char *service)
{
	struct service *s = service == NULL ? NULL : serving != NULL && serving->agent == a &&
	    strcmp(serving->name, service) == 0 ? serving : find_service(a, service);

	stop_serving(a);
	serving = s;
	if ((working = s != NULL))
		atomic_fetch_add_explicit(&s->running, 1, memory_order_relaxed);
	atomic_store_explicit(&a->current, s, memory_order_release);
}

void
bb_agent_idle(struct bb_agent *a, unsigned load)
{
	if (serving != NULL && serving->agent == a)
		atomic_fetch_add_explicit(&serving->done, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&a->done, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&a->load, load, memory_order_relaxed);
	stop_serving(a);
}

/* --- the order to stop --- */

int
bb_agent_wake_fd(const struct bb_agent *a)
{
	return a->wake_fd;
}

bool
bb_agent_stopping(const struct bb_agent *a)
{
	return atomic_load_explicit(&a->stopping, memory_order_acquire);
}

int64_t
bb_agent_suspended_us(const struct bb_agent *a)
{
	return atomic_load_explicit(&a->suspended_us, memory_order_relaxed);
}

void
bb_agent_stop_now(struct bb_agent *a)
{
	uint64_t one = 1;
	int saved = errno;

	atomic_store(&a->stopping, true);
	if (write(a->wake_fd, &one, sizeof one) < 0)
		errno = saved;		/* full: readable already */
	errno = saved;
}
