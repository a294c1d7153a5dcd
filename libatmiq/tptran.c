/*
 * tptran - the transaction of a context: who joined it, when it is doomed, how it ends.
 *
 *    none --tpbegin--> ACTIVE --tpcommit--> none (committed, or TPEABORT)
 *                        |  '----tpabort---> none
 *                        '--failure, time--> DOOMED: every call answers TPETIME until it is ended
 *
 * Nothing is sent to begin.  Replies tell which group's queue manager opened a branch; the end is sent to those.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "impl.h"
#include "clock.h"
#include "ulog.h"

#define LONGEST_MS 0xffffffffu	/* tpbegin(0) */

/* A global transaction id: when it began, by which process, and what cannot be guessed. */
struct gtrid { uint8_t us[8]; uint8_t pid[4]; uint8_t count[4]; uint8_t random[12]; };
_Static_assert(offsetof(struct gtrid, us) == WIRE_GTRID_TIME, "queue managers read the time there");
_Static_assert(offsetof(struct gtrid, pid) == WIRE_GTRID_PID, "administrators read the process there");
_Static_assert(sizeof(struct gtrid) <= offsetof(TPTRANID, info[5]), "a suspended transaction's id holds it");

static void
put_be(uint8_t *to, size_t n, uint64_t v)
{
	while (n-- > 0) {
		to[n] = (uint8_t)v;
		v >>= 8;
	}
}

static void
gtrid_make(struct tran *t)
{
	static unsigned count;
	struct gtrid g;
	int64_t now = clock_now_us();

	if (getrandom(g.random, sizeof g.random, GRND_NONBLOCK) != (ssize_t)sizeof g.random)
		put_be(g.random, sizeof g.random, (uint64_t)clock_mono_us() ^ (uint64_t)(uintptr_t)t);
	put_be(g.pid, sizeof g.pid, (uint64_t)getpid());
	put_be(g.us, sizeof g.us, (uint64_t)now);
	put_be(g.count, sizeof g.count, __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	memcpy(t->gtrid, &g, sizeof g);
	t->gtrid_len = sizeof g;
}

static unsigned long
word_of(const uint8_t *p)
{
	return (unsigned long)p[0] << 24 | (unsigned long)p[1] << 16 | (unsigned long)p[2] << 8 | p[3];
}

/* The three numbers of log lines: low half of the time, process, count.  Together they are as good as unique. */
static void
gtrid_to_log(const struct tran *t)
{
	unsigned long xid[3];

	xid[0] = word_of(t->gtrid + 4);
	xid[1] = word_of(t->gtrid + 8);
	xid[2] = word_of(t->gtrid + 12);
	ulog_gtrid(xid);
}

/* Enter a transaction whose gtrid and deadline are set. */
static void
tran_enter(struct tran *t, bool initiator)
{
	t->active = true;
	t->initiator = initiator;
	gtrid_to_log(t);
}

void
tran_forget(struct context *ctx)
{
	if (ctx->tran.active)
		ulog_gtrid(NULL);
	memset(&ctx->tran, 0, sizeof ctx->tran);
}

void
tran_doom(struct context *ctx)
{
	if (ctx->tran.active)
		ctx->tran.doomed = true;
}

void
tran_doom_because(struct context *ctx, int error, long urcode, const char *fmt, ...)
{
	struct wire_why *why = &ctx->tran.why;
	va_list ap;

	tran_doom(ctx);
	if (!ctx->tran.active || why->text[0] != '\0')
		return;
	why->error = error;
	why->urcode = urcode;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof why->text, fmt, ap);
	va_end(ap);
}

bool
tran_usable(struct context *ctx)
{
	if (!ctx->tran.active)
		return true;
	if (clock_mono_us() >= ctx->tran.deadline_us)
		tran_doom_because(ctx, TPETIME, 0, "transaction timed out");
	return !ctx->tran.doomed;
}

bool
tran_joins(const struct context *ctx, long flags)
{
	return ctx->tran.active && (flags & TPNOTRAN) == 0;
}

void
tran_to_wire(const struct context *ctx, struct wire_tx *tx)
{
	tx->gtrid_len = ctx->tran.gtrid_len;
	memcpy(tx->gtrid, ctx->tran.gtrid, ctx->tran.gtrid_len);
	tx->timeout_ms = time_left_ms(ctx->tran.deadline_us);
}

bool
tran_join_group(struct context *ctx, const char *group)
{
	struct wire_groups *g = &ctx->tran.groups;
	int i;

	if (!ctx->tran.active || *group == '\0')
		return true;
	for (i = 0; i < g->n; i++)
		if (strcmp(g->name[i], group) == 0)
			return true;
	if (g->n < WIRE_MAX_GROUPS) {
		snprintf(g->name[g->n++], WIRE_GROUP, "%s", group);
		return true;
	}
	ulog("LIBTUX_CAT:5030: ERROR: transaction can only be rolled back: group %s joined it after %d others, which are "
	     "the limit",
	    group, g->n);
	tran_doom_because(ctx, TPETRAN, 0, "more than %d groups joined", WIRE_MAX_GROUPS);
	return false;
}

void
tran_enter_callers(struct context *ctx, const struct wire_tx *tx)
{
	struct tran *t = &ctx->tran;

	memset(t, 0, sizeof *t);
	if (tx->gtrid_len == 0)
		return;
	t->gtrid_len = tx->gtrid_len;
	memcpy(t->gtrid, tx->gtrid, sizeof t->gtrid);
	t->deadline_us = clock_mono_us() + (int64_t)(tx->timeout_ms == 0 ? LONGEST_MS : tx->timeout_ms) * 1000;
	tran_enter(t, false);
}

bool
tran_is_programs(const struct context *ctx)
{
	return ctx->tran.active && ctx->tran.initiator && !ctx->tran.autotran;
}

void
tran_resume(struct context *ctx, const struct tran *t)
{
	ctx->tran = *t;
	gtrid_to_log(&ctx->tran);
}

int
tran_begin(struct context *ctx, unsigned long timeout_s)
{
	struct tran *t = &ctx->tran;
	uint64_t ms = timeout_s == 0 || timeout_s > LONGEST_MS / 1000 ? LONGEST_MS : timeout_s * 1000;

	if (t->active || xa_working())
		return TPEPROTO;
	memset(t, 0, sizeof *t);
	gtrid_make(t);
	t->deadline_us = clock_mono_us() + (int64_t)ms * 1000;
	tran_enter(t, true);
	return 0;
}

int
tran_commit(struct context *ctx)
{
	int err = 0;

	if (!context_settle(ctx) || !ctx->tran.active || !ctx->tran.initiator || calls_open(ctx, true) > 0)
		return TPEPROTO;
	if (!tran_usable(ctx)) {
		groups_abort(ctx);
		err = TPEABORT;
	} else if (ctx->tran.groups.n > 0)
		err = groups_commit(ctx);
	tran_forget(ctx);
	return err;
}

int
tran_abort(struct context *ctx)
{
	int err;

	if (!context_settle(ctx) || !ctx->tran.active || !ctx->tran.initiator)
		return TPEPROTO;
	calls_forget(ctx, true);
	err = groups_abort(ctx);
	tran_forget(ctx);
	return err;
}

int
tpbegin(unsigned long timeout, long flags)
{
	struct context *ctx;

	if (flags != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	return context_leave(ctx, tran_begin(ctx, timeout));
}

int
tpcommit(long flags)
{
	struct context *ctx;

	if (flags != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!tran_is_programs(ctx) || ctx->tran.by_tx)
		return context_leave(ctx, TPEPROTO);
	return context_leave(ctx, tran_commit(ctx));
}

int
tpabort(long flags)
{
	struct context *ctx;

	if (flags != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!tran_is_programs(ctx) || ctx->tran.by_tx)
		return context_leave(ctx, TPEPROTO);
	return context_leave(ctx, tran_abort(ctx));
}

int
tpgetlev(void)
{
	struct context *ctx;
	int before = tperrno, level = 0;

	tperrno = 0;
	if ((ctx = context_enter_joined()) != NULL) {
		level = ctx->tran.active || xa_working();
		context_leave(ctx, 0);
	} else if (tperrno != 0) {
		return -1;
	}
	tperrno = before;	/* it is asked between a failure and a look at its code */
	return level;
}

int
tpscmt(long flags)
{
	struct context *ctx;
	int before;

	if (flags != TP_CMT_LOGGED && flags != TP_CMT_COMPLETE)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	before = ctx->commit_logged ? TP_CMT_LOGGED : TP_CMT_COMPLETE;
	ctx->commit_logged = flags == TP_CMT_LOGGED;
	context_leave(ctx, 0);
	return before;
}

/* --- suspended transactions: of the process, whichever context took them off --- */

struct suspended { struct suspended *next; struct tran tran; };
static struct suspended *suspended;
static pthread_mutex_t suspended_lock = PTHREAD_MUTEX_INITIALIZER;

void
tran_fork_child(void)
{
	pthread_mutex_init(&suspended_lock, NULL);
	suspended = NULL;
}

int
tpsuspend(TPTRANID *tranid, long flags)
{
	struct suspended *s;
	struct context *ctx;
	int err = 0;

	if (tranid == NULL || flags != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!context_settle(ctx) || !tran_is_programs(ctx) || calls_open(ctx, true) > 0)
		err = TPEPROTO;
	else if (!tran_usable(ctx)) {
		tran_abort(ctx);
		err = TPEABORT;
	} else if ((s = malloc(sizeof *s)) == NULL)
		err = TPEOS;
	else {
		s->tran = ctx->tran;
		memset(tranid, 0, sizeof *tranid);
		memcpy(tranid->info, s->tran.gtrid, s->tran.gtrid_len);
		tranid->info[5] = s->tran.gtrid_len;
		pthread_mutex_lock(&suspended_lock);
		s->next = suspended;
		suspended = s;
		pthread_mutex_unlock(&suspended_lock);
		tran_forget(ctx);
	}
	return context_leave(ctx, err);
}

int
tpresume(TPTRANID *tranid, long flags)
{
	struct suspended **at, *s;
	struct context *ctx;
	int err = 0;

	if (tranid == NULL || flags != 0 || tranid->info[5] <= 0 || tranid->info[5] > (long)sizeof(struct gtrid))
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (ctx->tran.active)
		return context_leave(ctx, TPEPROTO);
	pthread_mutex_lock(&suspended_lock);
	for (at = &suspended; (s = *at) != NULL; at = &s->next)
		if (s->tran.gtrid_len == tranid->info[5] && memcmp(s->tran.gtrid, tranid->info, s->tran.gtrid_len) == 0)
			break;
	if (s == NULL)
		err = TPEMATCH;		/* resumed already, or of another process */
	else {
		*at = s->next;
		tran_resume(ctx, &s->tran);
		free(s);
	}
	pthread_mutex_unlock(&suspended_lock);
	return context_leave(ctx, err);
}
