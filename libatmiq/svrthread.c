/*
 * svrthread - the threads that serve, where a server was built for several (buildserver -t).
 *
 *           tpsvrthrinit()                requests_await() says: enough
 *   BEGINS ----------------> SERVES -----------------------------------> OVER    tpsvrthrdone() was called
 *      |                                                                   ^
 *      '-------------------------------------------------------------------'
 *                            it failed
 *
 * The main thread receives, starts them, and takes leave of those that are over.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define AGAIN_US 1000000		/* after a thread could not begin */

enum state { BEGINS, SERVES, OVER };
struct thread {
	struct work work;
	struct thread *next;
	pthread_t id;
	enum state state;		/* under the lock */
	bool failed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct thread *threads;		/* the main thread's */
static int64_t not_before_us;		/* atomic by lock */

static void
enter(struct thread *t, enum state state, bool failed)
{
	pthread_mutex_lock(&lock);
	t->state = state;
	t->failed = failed;
	if (failed)
		not_before_us = clock_mono_us() + AGAIN_US;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int
begin(struct work *w)
{
	int err = context_serve_thread(svr.ctx->cltid, &w->ctx);

	if (err != 0) {
		ulog("LIBTUX_CAT:5202: ERROR: a thread that is to serve cannot join the application: %s", tpstrerror(err));
		return -1;
	}
	if (svr.threads->init(svr.opt.argc, svr.opt.argv) == -1) {
		ulog("LIBTUX_CAT:5203: ERROR: tpsvrthrinit() failed");
		context_serve_end(w->ctx);
		return -1;
	}
	context_serve_again(w->ctx);
	work_clean(w->ctx);		/* calls and a transaction that it left open */
	return 0;
}

static void *
run(void *arg)
{
	struct thread *t = arg;
	struct request *r;

	if (begin(&t->work) != 0) {
		requests_thread_less();
		enter(t, OVER, true);
		return NULL;
	}
	work_here = &t->work;
	enter(t, SERVES, false);
	while ((r = requests_await(&t->work)) != NULL)
		work_run(&t->work, r);
	svr.threads->done();
	context_serve_end(t->work.ctx);
	svr_reply_over();
	mark_thread_over(&t->work);
	enter(t, OVER, false);
	return NULL;
}

/* ---- the main thread ---- */

static unsigned
least(void)
{
	return svr.conf->mindispatchthreads > 1 ? (unsigned)svr.conf->mindispatchthreads : 1;
}

static void
thread_free(struct thread *t)
{
	pthread_cond_destroy(&t->work.wake);
	free(t);
}

static struct thread *
thread_new(void)
{
	struct thread *t = calloc(1, sizeof *t);
	pthread_condattr_t attr;

	if (t == NULL)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->work.wake, &attr);
	pthread_condattr_destroy(&attr);
	return t;
}

static void
stack_set(pthread_attr_t *attr)
{
	size_t size = (size_t)svr.conf->threadstacksize, page = 4096;
	static bool said;

	if (size == 0)
		return;
	if (size < (size_t)PTHREAD_STACK_MIN)
		size = (size_t)PTHREAD_STACK_MIN;
	size = (size + page - 1) / page * page;
	if (pthread_attr_setstacksize(attr, size) != 0 && !said) {
		ulog("LIBTUX_CAT:5204: WARN: THREADSTACKSIZE=%ld cannot be had: the system's default is used",
		    svr.conf->threadstacksize);
		said = true;
	}
}

static int
thread_start(void)
{
	struct thread *t = thread_new();
	pthread_attr_t attr;
	int rc = ENOMEM;

	if (t != NULL) {
		pthread_attr_init(&attr);
		stack_set(&attr);
		requests_thread_more(least());
		if ((rc = pthread_create(&t->id, &attr, run, t)) != 0)
			requests_thread_less();
		pthread_attr_destroy(&attr);
	}
	if (rc == 0) {
		t->next = threads;
		threads = t;
		return 0;
	}
	ulog("LIBTUX_CAT:5205: ERROR: cannot start a thread that serves: %s", strerror(rc));
	if (t != NULL)
		thread_free(t);
	return -1;
}

static void	/* Join those that are over. */
reap(void)
{
	struct thread **at = &threads, *t;
	bool over;

	while ((t = *at) != NULL) {
		pthread_mutex_lock(&lock);
		over = t->state == OVER;
		pthread_mutex_unlock(&lock);
		if (!over) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		pthread_join(t->id, NULL);
		thread_free(t);
	}
}

void
threads_more(void)
{
	int64_t not_before;

	if (requests_threads() >= (unsigned)svr.conf->maxdispatchthreads)
		return;
	pthread_mutex_lock(&lock);
	not_before = not_before_us;
	pthread_mutex_unlock(&lock);
	if (clock_mono_us() < not_before)
		return;
	reap();
	if (thread_start() != 0) {
		pthread_mutex_lock(&lock);
		not_before_us = clock_mono_us() + AGAIN_US;
		pthread_mutex_unlock(&lock);
	}
}

static bool	/* Every one has begun, or could not: true when all serve. */
all_serve(void)
{
	struct thread *t;
	bool good = true;

	pthread_mutex_lock(&lock);
	for (t = threads; t != NULL; t = t->next) {
		while (t->state == BEGINS)
			pthread_cond_wait(&changed, &lock);
		good = good && !t->failed;
	}
	pthread_mutex_unlock(&lock);
	return good;
}

int
threads_start(void)
{
	unsigned n;
	int rc = 0;

	for (n = least(); n > 0 && rc == 0; n--)
		rc = thread_start();
	if (all_serve() && rc == 0)
		return 0;
	threads_end();
	return -1;
}

void
threads_end(void)
{
	struct thread *t;

	requests_close();
	while ((t = threads) != NULL) {
		threads = t->next;
		pthread_join(t->id, NULL);
		thread_free(t);
	}
}
