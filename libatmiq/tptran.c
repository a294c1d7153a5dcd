/*
 * tptran - the transaction of a context: its beginning, who joined it, when it is doomed.
 *
 *    none --tpbegin--> ACTIVE --tpcommit--> none (committed, or TPEABORT)
 *                        |  '----tpabort---> none
 *                        '--failure, time--> DOOMED: every call answers TPETIME until it is ended
 *
 * Nothing is sent to begin: a slot of the table of transactions is taken, and given back at the end.  Replies tell which
 * group's queue manager opened a branch; the end is sent to those.
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
#include "gtrid.h"
#include "ulog.h"

#define LONGEST_MS 0xffffffffu	/* tpbegin(0) */
#define FULL_SWEEP_US 1000000LL	/* how often a full table is looked through for what dead processes left */
#define FULL_LOG_US 60000000LL

/* A global transaction id: when it began, by which process, and what cannot be guessed. */
struct gtrid { uint8_t us[8]; uint8_t pid[4]; uint8_t count[4]; uint8_t random[12]; };
_Static_assert(offsetof(struct gtrid, us) == WIRE_GTRID_TIME, "queue managers read the time there");
_Static_assert(offsetof(struct gtrid, pid) == WIRE_GTRID_PID, "administrators read the process there");
_Static_assert(sizeof(struct gtrid) <= GTT_GTRID, "a slot holds it");

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

void
tran_to_log(const struct context *ctx)
{
	static __thread struct { uint8_t len, gtrid[WIRE_GTRID_MAX]; } shown;
	const struct tran *t = ctx == NULL || !ctx->tran.active ? NULL : &ctx->tran;
	uint8_t len = t == NULL ? 0 : t->gtrid_len;
	unsigned long xid[3];

	if (len == shown.len && (len == 0 || memcmp(shown.gtrid, t->gtrid, len) == 0))
		return;
	shown.len = len;
	if (t == NULL) {
		ulog_gtrid(NULL);
		return;
	}
	memcpy(shown.gtrid, t->gtrid, len);
	gtrid_words(t->gtrid, len, xid);
	ulog_gtrid(xid);
}

void
tran_enter(struct context *ctx)
{
	ctx->tran.active = true;
	tran_to_log(ctx);
}

void
tran_leave(struct context *ctx)
{
	memset(&ctx->tran, 0, sizeof ctx->tran);
	tran_to_log(ctx);
}

/* What the table is told of a transaction that has a slot. */
static void
slot_enter(struct context *ctx, enum gtt_state state)
{
	if (ctx->tran.slot > 0)
		gtt_enter(app_gtt(ctx->app), (unsigned)ctx->tran.slot - 1, state);
}

void
tran_forget(struct context *ctx)
{
	slot_enter(ctx, GTT_FREE);
	tran_leave(ctx);
}

void
tran_doom(struct context *ctx)
{
	if (!ctx->tran.active || ctx->tran.doomed)
		return;
	ctx->tran.doomed = true;
	if (ctx->tran.slot > 0)
		gtt_doomed(app_gtt(ctx->app), (unsigned)ctx->tran.slot - 1);
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

static uint16_t
group_number(const struct context *ctx, const char *name)
{
	const struct ubb_group *g = ubb_group_by_name(ctx->app->ubb, name);

	return g == NULL ? 0 : (uint16_t)g->grpno;
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
		if (ctx->tran.slot > 0)
			gtt_joined(app_gtt(ctx->app), (unsigned)ctx->tran.slot - 1, group_number(ctx, group));
		return true;
	}
	ulog("LIBTUX_CAT:5030: ERROR: transaction can only be rolled back: group %s joined it after %d others, which are "
	     "the limit",
	    group, g->n);
	tran_doom_because(ctx, TPETRAN, 0, "more than %d groups joined", WIRE_MAX_GROUPS);
	return false;
}

void
tran_enter_callers(struct context *ctx, const struct wire_call *call)
{
	const struct wire_tx *tx = &call->tx;
	struct tran *t = &ctx->tran;

	memset(t, 0, sizeof *t);
	if (tx->gtrid_len == 0)
		return;
	t->gtrid_len = tx->gtrid_len;
	memcpy(t->gtrid, tx->gtrid, sizeof t->gtrid);
	t->table = (uint16_t)(call->flags >> 16);
	t->deadline_us = clock_mono_us() + (int64_t)(tx->timeout_ms == 0 ? LONGEST_MS : tx->timeout_ms) * 1000;
	tran_enter(ctx);
}

bool
tran_is_over(const struct context *ctx)
{
	const struct tran *t = &ctx->tran;
	const struct gtt *table = t->active && t->table != 0 ? app_gtt(ctx->app) : NULL;

	return table != NULL && gtt_mark(table) == t->table && !gtt_is_open(table, t->gtrid, t->gtrid_len);
}

/* A slot of the table for a transaction that begins: 0, or TPETRAN when MAXGTT are open already. */
static int
slot_claim(struct context *ctx)
{
	static _Atomic int64_t swept, logged;
	const struct tran *t = &ctx->tran;
	struct gtt *table = app_gtt(ctx->app);
	struct gtt_entry e;
	int64_t now;

	if (table == NULL)
		return 0;
	e.gtrid_len = t->gtrid_len;
	memcpy(e.gtrid, t->gtrid, t->gtrid_len);
	e.begun_us = clock_now_us();
	e.deadline_us = t->deadline_us;
	e.doomed = false;
	e.autotran = t->autotran;
	e.by_tx = t->by_tx;
	e.n_groups = 0;
	if ((ctx->tran.slot = gtt_claim(table, &e) + 1) > 0)
		return 0;
	now = clock_mono_us();
	if (now - atomic_load(&swept) >= FULL_SWEEP_US || atomic_load(&swept) == 0) {
		atomic_store(&swept, now);
		if (gtt_sweep(table) > 0 && (ctx->tran.slot = gtt_claim(table, &e) + 1) > 0)
			return 0;
	}
	if (now - atomic_load(&logged) >= FULL_LOG_US || atomic_load(&logged) == 0) {
		atomic_store(&logged, now);
		ulog("LIBTUX_CAT:5140: ERROR: no transaction can be begun: %u are open in the application, as many as MAXGTT "
		     "allows",
		    gtt_slots(table));
	}
	return TPETRAN;
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
	tran_to_log(ctx);
}

int
tran_begin(struct context *ctx, unsigned long timeout_s, enum tran_by by)
{
	struct tran *t = &ctx->tran;
	uint64_t ms = timeout_s == 0 || timeout_s > LONGEST_MS / 1000 ? LONGEST_MS : timeout_s * 1000;
	int err;

	if (t->active || xa_working())
		return TPEPROTO;
	memset(t, 0, sizeof *t);
	gtrid_make(t);
	t->deadline_us = clock_mono_us() + (int64_t)ms * 1000;
	t->initiator = true;
	t->by_tx = by == TRAN_BY_TX;
	t->autotran = by == TRAN_BY_AUTOTRAN;
	if ((err = slot_claim(ctx)) == 0) {
		t->table = t->slot > 0 ? gtt_mark(app_gtt(ctx->app)) : 0;
		tran_enter(ctx);
	} else
		memset(t, 0, sizeof *t);
	return err;
}

int
tran_commit(struct context *ctx)
{
	int err = 0;

	if (!context_settle(ctx) || !ctx->tran.active || !ctx->tran.initiator || calls_open(ctx, true) > 0)
		return TPEPROTO;
	if (!tran_usable(ctx)) {
		slot_enter(ctx, GTT_ABORTING);
		groups_abort(ctx);
		err = TPEABORT;
	} else if (ctx->tran.groups.n > 0) {
		slot_enter(ctx, GTT_COMMITTING);
		err = groups_commit(ctx);
	}
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
	slot_enter(ctx, GTT_ABORTING);
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
	return context_leave(ctx, tran_begin(ctx, timeout, TRAN_BY_PROGRAM));
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
