/*
 * context - which context a thread works in, how it is locked, what a fork and an exit do to it.
 *
 *   mode NONE    nothing joined
 *   mode SINGLE  one context for all threads
 *   mode MULTI   each thread has its own, or none
 *
 * A server begins in mode SINGLE with a context that serves; one that serves on several threads goes over to MULTI, where each
 * of these threads has a serving context of its own.
 *
 * The list of contexts and the mode are guarded by one lock, held for moments only; a context's own lock is held for
 * the length of a call, except by queue operations, which take links away and work without it.
 *
 * A thread is not cancelled in the middle of a call: it would take the lock with it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "impl.h"
#include "context.h"
#include "bb.h"
#include "clock.h"
#include "ulog.h"

#define LEAVE_US 1000000	/* to have a transaction rolled back that is open at tpterm() */
#define EXIT_US 500000		/* and at exit() */

static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;	/* one thread joins at a time; taken before list_lock */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;	/* all joined ones */
static enum context_mode mode;
static long last_id;
static struct context *single;		/* mode SINGLE: the one */
static bool serving;			/* this process is a server: its contexts are not joined or left by calls */
static unsigned generation;		/* counts forks: what was made before one is not ours in the child */

static __thread struct context *mine;	/* mode MULTI: a reference; may have been left by another thread meanwhile */
static __thread unsigned mine_generation;
static __thread int thread_errno;
static __thread long thread_urcode;
static pthread_key_t thread_end;	/* drops `mine` */
static pthread_once_t once = PTHREAD_ONCE_INIT;

int *
_tmget_tperrno_addr(void)
{
	return &thread_errno;
}

long *
_tmget_tpurcode_addr(void)
{
	return &thread_urcode;
}

static __thread int calls_deep, cancel_state;

static void
cancel_hold(void)
{
	if (calls_deep++ == 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}

static void
cancel_release(void)
{
	if (--calls_deep == 0)
		pthread_setcancelstate(cancel_state, NULL);
}

static struct line *
line_new(const struct app *app)
{
	struct line *l = calloc(1, sizeof *l);

	if (l != NULL)
		conn_open(&l->conn, app->bbl, app->blocktime_us);
	return l;
}

/* Once the application is booted: there is a table of servers then. */
static struct line *
line_balance(struct line *l, struct app *app)
{
	if (l != NULL) {
		conn_balance(&l->conn, app_slots(app), app->ubb->res.ldbal);
		l->conn.self = svr_self;
	}
	return l;
}

static void
lines_close(struct context *ctx)
{
	struct line *l;

	while ((l = ctx->line != NULL ? ctx->line : ctx->idle) != NULL) {
		if (l == ctx->line)
			ctx->line = NULL;
		else
			ctx->idle = l->next;
		conn_close(&l->conn);
		free(l);
	}
}

static struct line *	/* One that nobody uses. */
line_take(struct context *ctx)
{
	struct line *l = ctx->idle;

	if (l == NULL)
		return line_balance(line_new(ctx->app), ctx->app);
	ctx->idle = l->next;
	return l;
}

static bool
line_ensure(struct context *ctx)
{
	return ctx->line != NULL || (ctx->line = line_take(ctx)) != NULL;
}

static void
unref(struct context *ctx)
{
	if (--ctx->refs > 0)
		return;
	pthread_mutex_destroy(&ctx->lock);
	pthread_cond_destroy(&ctx->back);
	free(ctx);
}

static void
thread_ended(void *value)
{
	(void)value;
	pthread_mutex_lock(&list_lock);
	if (mine != NULL && mine_generation == generation)
		unref(mine);
	mine = NULL;
	pthread_mutex_unlock(&list_lock);
}

static void
fork_prepare(void)
{
	pthread_mutex_lock(&list_lock);
	buffer_fork_prepare();
}

static void
fork_parent(void)
{
	buffer_fork_done();
	pthread_mutex_unlock(&list_lock);
}

/* The child forgets the contexts as they stand: their sockets are the parent's, and its threads are not here. */
static void
fork_child(void)
{
	static struct context *forgotten;	/* what leak checkers are to find */
	struct context **end = &forgotten;

	buffer_fork_done();
	while (*end != NULL)
		end = &(*end)->next;
	*end = contexts;
	contexts = NULL;
	single = NULL;
	mode = MODE_NONE;
	serving = false;
	svr_self[0] = '\0';
	mine = NULL;
	generation++;
	pthread_mutex_init(&join_lock, NULL);	/* whoever joined meanwhile is not here */
	app_fork_child();
	tran_fork_child();
	tran_to_log(NULL);
	xa_fork_child();
	pthread_mutex_unlock(&list_lock);
}

static void
start(void)
{
	pthread_key_create(&thread_end, thread_ended);
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atexit(context_exit);
}

static bool	/* The thread has a context, one that others left perhaps. */
has_one(void)
{
	return mine != NULL && mine_generation == generation;
}

/* Give the thread a context (its reference is counted here), or none. */
static void
mine_set(struct context *ctx)
{
	if (ctx != NULL)
		ctx->refs++;
	if (has_one())
		unref(mine);
	mine = ctx;
	mine_generation = generation;
	pthread_setspecific(thread_end, ctx);
	ulog_context(ctx == NULL ? 0 : ctx->id);
}

static struct context *
context_new(struct app *app)
{
	struct context *ctx = calloc(1, sizeof *ctx);

	if (ctx == NULL || (ctx->line = line_new(app)) == NULL) {
		free(ctx);
		return NULL;
	}
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->back, NULL);
	ctx->refs = 1;
	ctx->joined = true;
	ctx->app = app;
	ctx->commit_logged = app->ubb->res.cmtret_logged;
	return ctx;
}

static void
list_add(struct context *ctx)
{
	ctx->next = contexts;
	contexts = ctx;
}

static void
list_remove(struct context *ctx)
{
	struct context **at;

	for (at = &contexts; *at != NULL && *at != ctx; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = ctx->next;
}

/* May this kind of join begin?  *done: there is nothing to do. */
static int
join_check(bool multi, bool *done)
{
	int err = 0;

	pthread_mutex_lock(&list_lock);
	*done = mode == MODE_SINGLE;
	if (serving || (mode == MODE_SINGLE && multi) || (mode == MODE_MULTI && !multi))
		err = TPEPROTO;
	pthread_mutex_unlock(&list_lock);
	return err;
}

static void
context_publish(struct context *ctx, bool multi)
{
	pthread_mutex_lock(&list_lock);
	ctx->id = multi ? ++last_id : TPSINGLECONTEXT;
	mode = multi ? MODE_MULTI : MODE_SINGLE;
	list_add(ctx);
	if (multi)
		mine_set(ctx);
	else
		single = ctx;
	pthread_mutex_unlock(&list_lock);
}

int
context_join(const char *usrname, const char *cltname, bool multi)
{
	struct context *ctx = NULL;
	struct app *app = NULL;
	bool done;
	int err;

	pthread_once(&once, start);
	cancel_hold();
	pthread_mutex_lock(&join_lock);
	if ((err = join_check(multi, &done)) != 0 || done)
		goto out;
	if ((err = app_get(&app)) != 0)
		goto out;
	if ((ctx = context_new(app)) == NULL) {
		err = TPEOS;
		goto out;
	}
	app = NULL;			/* the context's from here on */
	if ((err = app_join(ctx, usrname, cltname)) != 0)
		goto out;
	line_balance(ctx->line, ctx->app);
	context_publish(ctx, multi);
	ctx = NULL;
out:
	if (ctx != NULL) {
		lines_close(ctx);
		app = ctx->app;
		unref(ctx);
	}
	if (app != NULL)
		app_put(app);
	pthread_mutex_unlock(&join_lock);
	cancel_release();
	return err;
}

/*
 * The thread's context with a reference of the caller's, or NULL and *err (0: nothing joined).  What the list or `mine` has
 * is referred to by them, which the analyser does not see.
 */
static struct context *
context_ref(int *err)
{
	struct context *ctx = NULL;

	*err = 0;
	pthread_mutex_lock(&list_lock);
	if (mode == MODE_SINGLE)
		ctx = single;
	else if (mode == MODE_MULTI || has_one()) {	/* one that was left stays until the thread does something about it */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (!has_one() || !mine->joined)
			*err = TPEPROTO;
		else
			ctx = mine;
	}
	if (ctx != NULL)
		ctx->refs++;	/* NOLINT(clang-analyzer-unix.Malloc) */
	pthread_mutex_unlock(&list_lock);
	return ctx;
}

static void
context_unref(struct context *ctx)
{
	pthread_mutex_lock(&list_lock);
	unref(ctx);
	pthread_mutex_unlock(&list_lock);
}

/* Lock what context_ref() found: 0; or, and the reference is gone, TPEOS, or LEFT when it was left meanwhile. */
enum { LEFT = -1 };
static int
context_lock(struct context *ctx)
{
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (!ctx->joined)
		err = LEFT;
	else if (!line_ensure(ctx))
		err = TPEOS;
	if (err != 0) {
		pthread_mutex_unlock(&ctx->lock);
		context_unref(ctx);
	} else
		tran_to_log(ctx);	/* another thread may have begun or ended it */
	return err;
}

static struct context *
enter(bool join)
{
	struct context *ctx;
	int err;

	cancel_hold();
	for (;;) {
		if ((ctx = context_ref(&err)) != NULL) {
			if ((err = context_lock(ctx)) == 0)
				return ctx;
			if (err == LEFT)
				continue;
		} else if (err == 0 && join && (err = context_join("", "", false)) == 0)
			continue;
		cancel_release();
		if (err != 0)
			tperrno = err;
		return NULL;
	}
}

struct context *
context_enter_joined(void)
{
	return enter(false);
}

struct context *
context_enter(void)
{
	return enter(true);
}

int
context_leave(struct context *ctx, int err)
{
	tran_to_log(ctx);	/* and again, while a queue operation was under way */
	pthread_mutex_unlock(&ctx->lock);
	context_unref(ctx);
	cancel_release();
	if (err == 0)
		return 0;
	tperrno = err;
	return -1;
}

/* --- queue operations, which do not hold the lock while they wait --- */

struct conn *
context_away(struct context *ctx, bool in_tran)
{
	struct line *l = ctx->line;

	if (l != NULL && l->conn.pendings == NULL)
		ctx->line = NULL;
	else if ((l = line_take(ctx)) == NULL)	/* replies to open calls are for who holds the lock */
		return NULL;
	ctx->away++;
	ctx->away_in_tran += in_tran;
	pthread_mutex_unlock(&ctx->lock);
	return &l->conn;
}

void
context_again(struct context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
}

void
context_back(struct context *ctx, struct conn *conn, bool in_tran)
{
	struct line *l = (struct line *)(void *)((char *)conn - offsetof(struct line, conn));

	if (ctx->line == NULL)
		ctx->line = l;
	else {
		l->next = ctx->idle;
		ctx->idle = l;
	}
	ctx->away--;
	ctx->away_in_tran -= in_tran;
	pthread_cond_broadcast(&ctx->back);
}

bool
context_settle(struct context *ctx)
{
	while (ctx->joined && ctx->away_in_tran > 0)
		pthread_cond_wait(&ctx->back, &ctx->lock);
	return ctx->joined && line_ensure(ctx);
}

/* With ctx->lock held: end what it has under way and say good-bye. */
static void
context_end(struct context *ctx, bool hurry)
{
	if (ctx->tran.active && ctx->tran.initiator) {
		ctx->blk_all_us = hurry ? EXIT_US : LEAVE_US;	/* else its deadline will do */
		tran_abort(ctx);
	}
	tran_forget(ctx);
	calls_forget(ctx, false);
	app_leave(ctx);
	lines_close(ctx);
	ctx->joined = false;
	pthread_cond_broadcast(&ctx->back);
	app_put(ctx->app);
	ctx->app = NULL;
}

static void
mode_after_leave(void)
{
	if (contexts == NULL) {
		mode = MODE_NONE;
		serving = false;
	}
}

static void	/* What the thread had was left by another: now it knows. */
none_again(void)
{
	pthread_mutex_lock(&list_lock);
	if (mode != MODE_SINGLE && has_one() && !mine->joined)
		mine_set(NULL);
	pthread_mutex_unlock(&list_lock);
}

static int
part(void)
{
	struct context *ctx;
	struct timespec until;
	int err, rc = 0;

	if ((ctx = context_ref(&err)) == NULL) {
		none_again();
		return 0;
	}
	if (ctx->server) {
		context_unref(ctx);
		return TPEPROTO;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;		/* another thread waits in it: it cannot be ended now */
	if (pthread_mutex_timedlock(&ctx->lock, &until) != 0) {
		context_unref(ctx);
		return TPEPROTO;
	}
	while (ctx->joined && ctx->away > 0 && rc == 0)
		rc = pthread_cond_timedwait(&ctx->back, &ctx->lock, &until);
	if (ctx->joined && (ctx->away > 0 || !line_ensure(ctx))) {
		pthread_mutex_unlock(&ctx->lock);
		context_unref(ctx);
		return TPEPROTO;
	}
	if (!ctx->joined) {
		pthread_mutex_unlock(&ctx->lock);
		context_unref(ctx);
		return 0;
	}
	context_end(ctx, false);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_lock(&list_lock);
	list_remove(ctx);
	if (single == ctx)
		single = NULL;
	unref(ctx);			/* the list's */
	if (mine == ctx)
		mine_set(NULL);
	unref(ctx);			/* ours */	/* NOLINT(clang-analyzer-unix.Malloc) */
	mode_after_leave();
	pthread_mutex_unlock(&list_lock);
	return 0;
}

int
context_part(void)
{
	int err;

	cancel_hold();
	err = part();
	cancel_release();
	return err;
}

/* At exit: what no other thread is using is left in order; for the rest the closed sockets say enough. */
void
context_exit(void)
{
	struct context *ctx, *next;

	if (pthread_mutex_trylock(&list_lock) != 0)
		return;
	ctx = contexts;
	contexts = NULL;
	single = NULL;
	mode = MODE_NONE;
	for (; ctx != NULL; ctx = next) {
		next = ctx->next;
		if (ctx->server || pthread_mutex_trylock(&ctx->lock) != 0)
			continue;
		if (ctx->joined && ctx->away == 0 && line_ensure(ctx)) {
			context_end(ctx, true);
			pthread_mutex_unlock(&ctx->lock);
			unref(ctx);
		} else
			pthread_mutex_unlock(&ctx->lock);
	}
	pthread_mutex_unlock(&list_lock);
}

int
context_serve(struct app *app, const int64_t cltid[4], struct context **out)
{
	struct context *ctx;

	pthread_once(&once, start);
	if ((ctx = context_new(app)) == NULL)
		return TPEOS;
	ctx->server = true;
	line_balance(ctx->line, app);
	memcpy(ctx->cltid, cltid, sizeof ctx->cltid);
	pthread_mutex_lock(&list_lock);
	list_add(ctx);
	single = ctx;
	mode = MODE_SINGLE;
	serving = true;
	pthread_mutex_unlock(&list_lock);
	*out = ctx;
	return 0;
}

void
context_serve_multi(void)
{
	pthread_mutex_lock(&list_lock);
	if (mode == MODE_SINGLE && serving) {
		single->id = ++last_id;
		mode = MODE_MULTI;
		mine_set(single);
		single = NULL;
	}
	pthread_mutex_unlock(&list_lock);
}

int
context_serve_thread(const int64_t cltid[4], struct context **out)
{
	struct context *ctx;
	struct app *app;
	int err;

	if ((err = app_get(&app)) != 0)
		return err;
	if ((ctx = context_new(app)) == NULL) {
		app_put(app);
		return TPEOS;
	}
	ctx->server = true;
	line_balance(ctx->line, app);
	memcpy(ctx->cltid, cltid, sizeof ctx->cltid);
	pthread_mutex_lock(&list_lock);
	ctx->id = ++last_id;
	list_add(ctx);
	mine_set(ctx);
	pthread_mutex_unlock(&list_lock);
	*out = ctx;
	return 0;
}

void
context_serve_again(struct context *ctx)
{
	if (mine == ctx)
		return;
	pthread_mutex_lock(&list_lock);
	if (mode == MODE_MULTI)
		mine_set(ctx);
	pthread_mutex_unlock(&list_lock);
}

void
context_serve_end(struct context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	context_end(ctx, false);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_lock(&list_lock);
	list_remove(ctx);
	if (single == ctx)
		single = NULL;
	if (mine == ctx)
		mine_set(NULL);
	unref(ctx);
	mode_after_leave();
	pthread_mutex_unlock(&list_lock);
}

bool
context_is_server(void)
{
	bool yes;

	pthread_mutex_lock(&list_lock);
	yes = serving;
	pthread_mutex_unlock(&list_lock);
	return yes;
}

/* Neither lock is waited for: it is called for lines of signal handlers too, and while another thread has the context for long. */
void
context_to_log(void)
{
	struct context *ctx;

	if (pthread_mutex_trylock(&list_lock) != 0)
		return;
	ctx = mode == MODE_SINGLE ? single : has_one() && mine->joined ? mine : NULL;
	if (ctx == NULL)
		tran_to_log(NULL);
	else if (pthread_mutex_trylock(&ctx->lock) == 0) {
		tran_to_log(ctx);
		pthread_mutex_unlock(&ctx->lock);
	}
	pthread_mutex_unlock(&list_lock);
}

int
tpgetctxt(TPCONTEXT_T *context, long flags)
{
	if (context == NULL || flags != 0)
		return fail(TPEINVAL);
	pthread_mutex_lock(&list_lock);
	if (mode == MODE_SINGLE)
		*context = TPSINGLECONTEXT;
	else if (!has_one())
		*context = TPNULLCONTEXT;
	else
		*context = mine->joined ? mine->id : TPINVALIDCONTEXT;
	pthread_mutex_unlock(&list_lock);
	return 0;
}

int
tpsetctxt(TPCONTEXT_T context, long flags)
{
	struct context *ctx = NULL;
	int err = 0;

	if (flags != 0 || context == TPINVALIDCONTEXT || context < TPNULLCONTEXT)
		return fail(TPEINVAL);
	pthread_once(&once, start);
	pthread_mutex_lock(&list_lock);
	if (mode == MODE_SINGLE)
		err = context == TPSINGLECONTEXT ? 0 : TPEPROTO;
	else if (context == TPNULLCONTEXT)
		mine_set(NULL);
	else if (mode == MODE_NONE)
		err = TPENOENT;
	else if (context == TPSINGLECONTEXT)
		err = TPEPROTO;
	else {
		for (ctx = contexts; ctx != NULL && ctx->id != context; ctx = ctx->next)
			;
		if (ctx == NULL)
			err = TPENOENT;
		else
			mine_set(ctx);
	}
	pthread_mutex_unlock(&list_lock);
	if (err != 0)
		return fail(err);
	context_to_log();
	return 0;
}
