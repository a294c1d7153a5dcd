/*
 * time - how long a call may wait, and with which priority it goes.
 */
#include "impl.h"
#include "clock.h"

int64_t
deadline_from(int64_t us)
{
	int64_t now = clock_mono_us();

	return us <= 0 || us > INT64_MAX - now ? LINK_FOREVER : now + us;
}

uint32_t
time_left_ms(int64_t deadline_us)
{
	int64_t left;

	if (deadline_us == LINK_FOREVER)
		return 0;
	left = (deadline_us - clock_mono_us() + 999) / 1000;
	if (left < 1)
		return 1;
	return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

/* TPBLK_NEXT before TPBLK_ALL before SERVICES, which patience_of_service() brings in, before RESOURCES. */
int64_t
blocking_us(const struct context *ctx)
{
	if (ctx->blk_next_us > 0)
		return ctx->blk_next_us;
	if (ctx->blk_all_us > 0)
		return ctx->blk_all_us;
	return ctx->app->blocktime_us;
}

/* The end of a transaction is not the next call that TPBLK_NEXT means: one that cannot be told not to block. */
int64_t
blocking_of_end_us(const struct context *ctx)
{
	return ctx->blk_all_us > 0 ? ctx->blk_all_us : ctx->app->blocktime_us;
}

/* In a transaction its own deadline bounds every call, TPNOTRAN or not, and the blocking time does not count. */
void
call_patience(struct context *ctx, long flags, struct patience *out)
{
	out->began_us = clock_mono_us();
	if (ctx->tran.active)
		out->deadline_us = ctx->tran.deadline_us;
	else if (flags & TPNOTIME)
		out->deadline_us = LINK_FOREVER;
	else
		out->deadline_us = out->began_us + blocking_us(ctx);
	out->by_service = !ctx->tran.active && (flags & TPNOTIME) == 0 && ctx->blk_next_us == 0 && ctx->blk_all_us == 0;
	out->noblock = (flags & TPNOBLOCK) != 0;
	out->restart = (flags & TPSIGRSTRT) != 0;
	ctx->blk_next_us = 0;
}

void
patience_of_service(struct patience *how, int64_t blocktime_us)
{
	if (how->by_service && blocktime_us > 0)
		how->deadline_us = how->began_us + blocktime_us;
}

int
call_priority(struct context *ctx, long service_prio)
{
	long prio = service_prio > 0 ? service_prio : 50;

	if (ctx->prio_next != 0)
		prio = ctx->prio_absolute ? ctx->prio_next : prio + ctx->prio_next;
	ctx->prio_next = 0;
	ctx->prio_absolute = false;
	if (prio < 1)
		prio = 1;
	if (prio > 100)
		prio = 100;
	return ctx->prio_last = (int)prio;
}

int
tpsprio(int prio, long flags)
{
	struct context *ctx;

	if (flags & ~(long)TPABSOLUTE)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (flags & TPABSOLUTE) {
		ctx->prio_next = prio >= 1 && prio <= 100 ? prio : 50;
		ctx->prio_absolute = true;
	} else {
		ctx->prio_next = prio;
		ctx->prio_absolute = false;
	}
	return context_leave(ctx, 0);
}

int
tpgprio(void)
{
	struct context *ctx = context_enter();
	int prio;

	if (ctx == NULL)
		return -1;
	prio = ctx->prio_last;
	return context_leave(ctx, prio == 0 ? TPENOENT : 0) == 0 ? prio : -1;
}

int
tpsblktime(int blktime, long flags)
{
	long which = flags & (TPBLK_NEXT | TPBLK_ALL);
	int64_t us = (int64_t)blktime * (flags & TPBLK_MILLISECOND ? 1000 : 1000000);
	struct context *ctx;

	if ((flags & ~(long)(TPBLK_NEXT | TPBLK_ALL | TPBLK_MILLISECOND)) != 0 ||
	    (which != TPBLK_NEXT && which != TPBLK_ALL) || blktime < 0 || us > 32767 * 1000000LL)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (which == TPBLK_NEXT)
		ctx->blk_next_us = us;
	else
		ctx->blk_all_us = us;
	return context_leave(ctx, 0);
}

int
tpgblktime(long flags)
{
	long which = flags & (TPBLK_NEXT | TPBLK_ALL);
	struct context *ctx;
	int64_t us;

	if ((flags & ~(long)(TPBLK_NEXT | TPBLK_ALL | TPBLK_MILLISECOND)) != 0 || which == (TPBLK_NEXT | TPBLK_ALL))
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	us = which == TPBLK_NEXT ? ctx->blk_next_us : which == TPBLK_ALL ? ctx->blk_all_us : blocking_us(ctx);
	context_leave(ctx, 0);
	return (int)(flags & TPBLK_MILLISECOND ? us / 1000 : (us + 999999) / 1000000);
}
