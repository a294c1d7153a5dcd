/*
 * tx - the X/Open TX calls over the transactions of tptran.c, and the resource manager a program was linked with.
 */
#include <string.h>

#include "impl.h"
#include "clock.h"
#include "ulog.h"

static struct xa_switch_t *rm;
static const char *rm_openinfo = "", *rm_closeinfo = "";

static int null_info(char *info, int rmid, long flags) { (void)info, (void)rmid, (void)flags; return XA_OK; }
static int null_xid(XID *xid, int rmid, long flags) { (void)xid, (void)rmid, (void)flags; return XA_OK; }
static int null_prepare(XID *xid, int rmid, long flags) { (void)xid, (void)rmid, (void)flags; return XA_RDONLY; }
static int
null_recover(XID *xid, long n, int rmid, long flags)
{
	(void)xid, (void)n, (void)rmid, (void)flags;
	return 0;
}
static int null_complete(int *handle, int *ret, int rmid, long flags)
{
	(void)handle, (void)ret, (void)rmid, (void)flags;
	return XAER_INVAL;
}

struct xa_switch_t tmnull_switch = { "tmnull_switch", TMNOFLAGS, 0, null_info, null_info, null_xid, null_xid, null_xid,
	null_prepare, null_xid, null_recover, null_xid, null_complete };

int
ax_reg(int rmid, XID *xid, long flags)
{
	(void)rmid, (void)flags;
	if (xid != NULL)
		xid->formatID = -1;	/* its work belongs to no global transaction */
	return TM_OK;
}

int
ax_unreg(int rmid, long flags)
{
	(void)rmid, (void)flags;
	return TM_OK;
}

void
rm_set(struct xa_switch_t *sw, const char *openinfo, const char *closeinfo)
{
	if (sw == NULL || sw == &tmnull_switch || sw == &tmqm_switch)	/* queue spaces need no opening */
		return;
	rm = sw;
	rm_openinfo = openinfo;
	rm_closeinfo = closeinfo;
	ulog("LIBTUX_CAT:5040: WARN: resource manager %.32s is opened and closed, but its work is not part of global "
	     "transactions",
	    sw->name);
}

static int
rm_call(int (*entry)(char *, int, long), const char *what, const char *given)
{
	char info[MAXINFOSIZE];
	int rc;

	if (entry == NULL)
		return 0;
	snprintf(info, sizeof info, "%s", given);
	if ((rc = entry(info, 0, TMNOFLAGS)) == XA_OK)
		return 0;
	ulog("LIBTUX_CAT:5041: ERROR: %s of resource manager %.32s with \"%s\" failed: %d", what, rm->name, info, rc);
	return TPERMERR;
}

int
rm_open(void)
{
	return rm == NULL ? 0 : rm_call(rm->xa_open_entry, "xa_open", rm_openinfo);
}

int
rm_close(void)
{
	return rm == NULL ? 0 : rm_call(rm->xa_close_entry, "xa_close", rm_closeinfo);
}

static void	/* Who opens again is unchained, as at first; the other settings stay. */
tx_forget(struct context *ctx)
{
	ctx->tx_open = ctx->tx_chained = false;
}

int
tpopen(void)
{
	struct context *ctx = context_enter();
	int err;

	if (ctx == NULL)
		return -1;
	if ((err = rm_open()) == 0)
		ctx->tx_open = true;
	return context_leave(ctx, err);
}

int
tpclose(void)
{
	struct context *ctx = context_enter();
	int err;

	if (ctx == NULL)
		return -1;
	if (ctx->tran.active)
		return context_leave(ctx, TPEPROTO);
	if ((err = rm_close()) == 0)
		tx_forget(ctx);
	return context_leave(ctx, err);
}

/* ---- TX: no tperrno ---- */

static struct context *
enter(int *result)
{
	int kept = tperrno;
	struct context *ctx = context_enter();

	if (ctx == NULL)
		*result = tperrno == TPEPROTO ? TX_PROTOCOL_ERROR : TX_ERROR;
	tperrno = kept;
	return ctx;
}

static int
leave(struct context *ctx, int result)
{
	context_leave(ctx, 0);
	return result;
}

int
tx_open(void)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (ctx->tx_open)
		return leave(ctx, TX_OK);
	if (rm_open() != 0)
		return leave(ctx, TX_ERROR);
	ctx->tx_open = true;
	return leave(ctx, TX_OK);
}

int
tx_close(void)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (ctx->tran.active)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (ctx->tx_open && rm_close() != 0)
		return leave(ctx, TX_ERROR);
	tx_forget(ctx);
	return leave(ctx, TX_OK);
}

/* Begin under TX; 0 or a TX code. */
static int
begin(struct context *ctx)
{
	return tran_begin(ctx, (unsigned long)ctx->tx_timeout, TRAN_BY_TX) == 0 ? TX_OK : TX_ERROR;
}

int
tx_begin(void)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (xa_working())		/* for another transaction manager */
		return leave(ctx, TX_OUTSIDE);
	if (ctx->tran.active)		/* one of tpbegin() is outside of what these calls know */
		return leave(ctx, tran_is_programs(ctx) && !ctx->tran.by_tx ? TX_OUTSIDE : TX_PROTOCOL_ERROR);
	return leave(ctx, begin(ctx));
}

/* 0 or what tran_commit(), tran_abort() gave, as a TX code. */
static int
outcome(const struct context *ctx, int err)
{
	switch (err) {
	case 0:
		return TX_OK;
	case TPEABORT:
		return TX_ROLLBACK;
	case TPETIME:
	case TPEHAZARD:
		return TX_HAZARD;
	case TPEHEURISTIC:
		return ctx->abort_found_committed ? TX_COMMITTED : TX_MIXED;
	case TPEPROTO:
		return TX_PROTOCOL_ERROR;
	default:
		return TX_FAIL;
	}
}

static int
end(int (*how)(struct context *))
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open || !ctx->tran.active || !ctx->tran.initiator || !ctx->tran.by_tx)
		return leave(ctx, TX_PROTOCOL_ERROR);
	ctx->abort_found_committed = false;
	result = outcome(ctx, how(ctx));
	if (result == TX_PROTOCOL_ERROR || result == TX_FAIL || !ctx->tx_chained || begin(ctx) == TX_OK)
		return leave(ctx, result);
	return leave(ctx, result + TX_NO_BEGIN);
}

int
tx_commit(void)
{
	return end(tran_commit);
}

int
tx_rollback(void)
{
	return end(tran_abort);
}

static TRANSACTION_STATE
state(struct context *ctx)
{
	if (!ctx->tran.active || tran_usable(ctx))
		return TX_ACTIVE;
	return clock_mono_us() >= ctx->tran.deadline_us ? TX_TIMEOUT_ROLLBACK_ONLY : TX_ROLLBACK_ONLY;
}

int
tx_info(TXINFO *info)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (info != NULL) {
		memset(info, 0, sizeof *info);
		info->xid.formatID = -1;
		if (ctx->tran.active) {
			info->xid.formatID = 0;
			info->xid.gtrid_length = ctx->tran.gtrid_len;
			memcpy(info->xid.data, ctx->tran.gtrid, ctx->tran.gtrid_len);
		}
		info->when_return = ctx->commit_logged ? TX_COMMIT_DECISION_LOGGED : TX_COMMIT_COMPLETED;
		info->transaction_control = ctx->tx_chained ? TX_CHAINED : TX_UNCHAINED;
		info->transaction_timeout = ctx->tx_timeout;
		info->transaction_state = state(ctx);
	}
	return leave(ctx, ctx->tran.active ? 1 : 0);
}

int
tx_set_commit_return(COMMIT_RETURN when_return)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (when_return != TX_COMMIT_COMPLETED && when_return != TX_COMMIT_DECISION_LOGGED)
		return leave(ctx, TX_EINVAL);
	ctx->commit_logged = when_return == TX_COMMIT_DECISION_LOGGED;
	return leave(ctx, TX_OK);
}

int
tx_set_transaction_control(TRANSACTION_CONTROL control)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (control != TX_UNCHAINED && control != TX_CHAINED)
		return leave(ctx, TX_EINVAL);
	ctx->tx_chained = control == TX_CHAINED;
	return leave(ctx, TX_OK);
}

int
tx_set_transaction_timeout(TRANSACTION_TIMEOUT timeout)
{
	int result;
	struct context *ctx = enter(&result);

	if (ctx == NULL)
		return result;
	if (!ctx->tx_open)
		return leave(ctx, TX_PROTOCOL_ERROR);
	if (timeout < 0)
		return leave(ctx, TX_EINVAL);
	ctx->tx_timeout = timeout;
	return leave(ctx, TX_OK);
}
