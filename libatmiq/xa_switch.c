/*
 * xa_switch - tmqm_switch: what a transaction manager calls to have our queue space in its transactions.
 *
 *   branch:   none --xa_start--> active --xa_end--> idle --xa_prepare--> prepared --xa_commit, xa_rollback--> none
 *                                  |                 |                      | by hand
 *                                  |                 |                      '--> heuristically ended --xa_forget--> none
 *                                  |                 '--xa_commit(TMONEPHASE), xa_rollback, read-only xa_prepare--> none
 *                                  '--failure, xa_end(TMFAIL)--> rollback-only --xa_prepare (XA_RB*), xa_rollback--> none
 *
 * The branch lives in the queue manager, so any process may end it; who is associated with it is known here (xa_state.c), so
 * that only this process's threads are kept from ending it too early.
 */
#include <stdlib.h>
#include <string.h>

#include "xa_impl.h"
#include "ulog.h"

/* ---- xa_open, xa_close ---- */

static void	/* Those that have this queue space; mostly one. */
groups_of(const struct ubb *u, const char *device, const char *space, struct wire_groups *out)
{
	char d[MAXINFOSIZE + 1], s[MAXINFOSIZE + 1];
	size_t i;

	for (i = 0; i < u->n_groups && out->n < WIRE_MAX_GROUPS - 1; i++)
		if (openinfo_split(u->groups[i].openinfo, d, sizeof d, s, sizeof s) == 0 && strcmp(d, device) == 0 &&
		    strcmp(s, space) == 0)
			snprintf(out->name[out->n++], WIRE_GROUP, "%s", u->groups[i].name);
}

/* The thread's calls will need a context; where the program has several of its own, it is up to the program. */
static int
application_join(void)
{
	int before = tperrno, err;
	struct context *ctx;

	tperrno = 0;
	ctx = context_enter();
	err = tperrno;
	if (ctx != NULL)
		context_leave(ctx, 0);
	tperrno = before;
	if (ctx != NULL || err == TPEPROTO)
		return XA_OK;
	return err == TPENOENT ? XAER_RMFAIL : XAER_RMERR;
}

static int
open_rm(const char *info, const char *device, const char *space, int rmid)
{
	struct xa_rm *rm = calloc(1, sizeof *rm);

	if (rm == NULL || app_get(&rm->app) != 0) {
		free(rm);
		return XAER_RMERR;
	}
	groups_of(rm->app->ubb, device, space, &rm->groups);
	if (rm->groups.n == 0) {
		ulog("LIBTUX_CAT:5181: ERROR: xa_open: no group of TUXCONFIG %s has OPENINFO=\"%s\"", rm->app->tuxconfig, info);
		xa_rm_free(rm);
		return XAER_INVAL;
	}
	rm->rmid = rmid;
	snprintf(rm->group, sizeof rm->group, "%s", rm->groups.name[0]);
	snprintf(rm->service, sizeof rm->service, "..%s", rm->group);
	return xa_rm_open(rm);
}

static int
qm_open(char *info, int rmid, long flags)
{
	char device[MAXINFOSIZE + 1], space[MAXINFOSIZE + 1];
	int rc;

	if (flags & TMASYNC)
		return XAER_ASYNC;
	if (flags != TMNOFLAGS || info == NULL || strnlen(info, MAXINFOSIZE) == MAXINFOSIZE)
		return XAER_INVAL;
	if (openinfo_split(info, device, sizeof device, space, sizeof space) != 0) {
		ulog("LIBTUX_CAT:5180: ERROR: xa_open: \"%s\" is not TUXEDO/QM:<device>:<queue space>", info);
		return XAER_INVAL;
	}
	if ((rc = application_join()) == XA_OK)
		rc = open_rm(info, device, space, rmid);
	return rc;
}

static int
qm_close(char *info, int rmid, long flags)
{
	int rc;

	(void)info;
	if (flags & TMASYNC)
		return XAER_ASYNC;
	if (flags != TMNOFLAGS)
		return XAER_INVAL;
	if ((rc = xa_rm_close(rmid)) == XA_OK)
		xa_scan_drop(rmid);
	return rc;
}

/* ---- what all calls about a branch begin with ---- */

/* Only these flags; the id is one; the resource manager is open: *rm, to be given back.  An XA code. */
static int
begin(const XID *xid, int rmid, long flags, long allowed, struct xa_rm **rm, struct wire_tx *tx)
{
	if (flags & TMASYNC)
		return XAER_ASYNC;
	if ((flags & ~allowed) != 0 || xid == NULL || xid->formatID == -1 || xid->gtrid_length < 1 ||
	    xid->gtrid_length > MAXGTRIDSIZE || xid->bqual_length < 0 || xid->bqual_length > MAXBQUALSIZE)
		return XAER_INVAL;
	if ((*rm = xa_rm_find(rmid)) == NULL)
		return XAER_PROTO;
	xid_to_wire(xid, tx);
	return XA_OK;
}

static int	/* No answer. */
unheard(const struct xa_answer *a)
{
	if (a->heard == XA_UNSENT && a->err == TPEBLOCK)
		return XA_RETRY;		/* TMNOWAIT */
	return a->err == TPEOS ? XAER_RMERR : XAER_RMFAIL;
}

/* ---- xa_start, xa_end ---- */

static bool	/* Is the thread in a transaction that tpbegin(), or its caller, began? */
outside(void)
{
	int before = tperrno;
	struct context *ctx = context_enter_joined();
	bool yes = ctx != NULL && ctx->tran.active;

	if (ctx != NULL)
		context_leave(ctx, 0);
	tperrno = before;
	return yes;
}

static int
start_new(struct xa_rm *rm, const struct wire_tx *tx, long flags)
{
	struct xa_answer a;

	xa_ask(rm, WIRE_TX_START, tx, false, flags & TMNOWAIT, &a);
	if (a.heard != XA_ANSWERED)
		return unheard(&a);
	if (a.error == TPEMATCH)
		return XAER_DUPID;
	if (a.error == TPELIMIT)
		ulog("LIBTUX_CAT:5187: ERROR: xa_start: the queue space of group %s has no room for one more transaction", rm->group);
	return a.error == 0 ? xa_tie(rm, tx) : XAER_RMERR;
}

static int
start_join(struct xa_rm *rm, const struct wire_tx *tx, long flags)
{
	struct xa_answer a;

	xa_ask(rm, WIRE_TX_JOIN, tx, true, flags & TMNOWAIT, &a);
	if (a.heard != XA_ANSWERED)
		return unheard(&a);
	switch (a.error) {
	case 0:
		return xa_tie(rm, tx);
	case TPENOENT:
		return XAER_NOTA;
	case TPEABORT:
		return XA_RBROLLBACK;
	case TPEPROTO:				/* it is prepared */
		return XAER_PROTO;
	default:
		return XAER_RMERR;
	}
}

/* The association ends; what failed in it is told, so that whoever ends the branch finds it rollback-only.  An XA code. */
static int
drop(struct xa_assoc *as)
{
	struct xa_answer a = { .heard = XA_ANSWERED };
	int doomed = as->doomed;

	if (doomed != 0)
		xa_ask(as->rm, WIRE_TX_DOOM, &as->tx, true, false, &a);
	xa_untie(as);
	return a.heard != XA_ANSWERED ? unheard(&a) : doomed;
}

static int
start_resume(struct xa_rm *rm, const struct wire_tx *tx)
{
	struct xa_assoc *as = xa_mine(rm, tx);

	if (as == NULL)
		return xa_tied(rm, tx) == XA_NOT_TIED ? XAER_NOTA : XAER_PROTO;
	if (!as->suspended)
		return XAER_PROTO;
	xa_suspend(as, false);
	return XA_OK;
}

static int
qm_start(XID *xid, int rmid, long flags)
{
	struct xa_rm *rm = NULL;
	struct wire_tx tx;
	int rc;

	if ((flags & (TMJOIN | TMRESUME)) == (TMJOIN | TMRESUME))
		return XAER_INVAL;
	if ((rc = begin(xid, rmid, flags, TMJOIN | TMRESUME | TMNOWAIT, &rm, &tx)) != XA_OK)
		return rc;
	if (outside())
		rc = XAER_OUTSIDE;
	else if (xa_mine(rm, NULL) != NULL)
		rc = XAER_PROTO;		/* it works in a branch here already */
	else if (flags & TMRESUME)
		rc = start_resume(rm, &tx);
	else if (xa_mine(rm, &tx) != NULL)
		rc = XAER_PROTO;		/* suspended: TMRESUME */
	else
		rc = flags & TMJOIN ? start_join(rm, &tx, flags) : start_new(rm, &tx, flags);
	xa_rm_put(rm);
	return rc;
}

static int
end(struct xa_assoc *as, long flags)
{
	int rc;

	if (flags & TMSUSPEND) {
		if (as->suspended)
			return XAER_PROTO;
		if (as->doomed != 0)
			return drop(as);
		xa_suspend(as, true);
		return XA_OK;
	}
	if (flags & TMFAIL)
		xa_doom(as, XA_RBROLLBACK);
	rc = drop(as);
	return (flags & TMFAIL) && rc > 0 ? XA_OK : rc;
}

static int
qm_end(XID *xid, int rmid, long flags)
{
	struct xa_assoc *as;
	struct xa_rm *rm = NULL;
	struct wire_tx tx;
	long how = flags & (TMSUCCESS | TMFAIL | TMSUSPEND);
	int rc;

	if ((rc = begin(xid, rmid, flags, TMSUCCESS | TMFAIL | TMSUSPEND, &rm, &tx)) != XA_OK)
		return rc;
	if (how != TMSUCCESS && how != TMFAIL && how != TMSUSPEND)
		rc = XAER_INVAL;
	else if ((as = xa_mine(rm, &tx)) != NULL)
		rc = end(as, flags);
	else	/* another's branch, or no branch at all; or not the one that this thread works in */
		rc = xa_mine(rm, NULL) != NULL && xa_tied(rm, &tx) == XA_NOT_TIED ? XAER_NOTA : XAER_PROTO;
	xa_rm_put(rm);
	return rc;
}

/* ---- the end of a branch ---- */

/* Nobody here works in it any more.  What a thread left that ended is not committed.  An XA code. */
static int
settled(struct xa_rm *rm, const struct wire_tx *tx)
{
	struct xa_answer a;

	switch (xa_tied(rm, tx)) {
	case XA_TIED:
		return XAER_PROTO;
	case XA_TIED_TO_DEAD:
		xa_ask(rm, WIRE_TX_DOOM, tx, true, false, &a);
		if (a.heard != XA_ANSWERED)
			return unheard(&a);
		xa_bury(rm, tx);
		return XA_OK;
	default:
		return XA_OK;
	}
}

static int
end_begin(const XID *xid, int rmid, long flags, long allowed, struct xa_rm **rm, struct wire_tx *tx)
{
	int rc;

	*rm = NULL;
	if ((rc = begin(xid, rmid, flags, allowed, rm, tx)) == XA_OK)
		rc = settled(*rm, tx);
	return rc;
}

static int	/* Refused for another reason than the branch. */
refused(const struct xa_answer *a)
{
	return a->error == TPEPROTO ? XAER_PROTO : XAER_RMERR;
}

static int
prepare_result(const struct xa_answer *a)
{
	if (a->heard != XA_ANSWERED)
		return unheard(a);
	switch (a->outcome) {
	case WIRE_OUT_PREPARED:
		return XA_OK;
	case WIRE_OUT_READ_ONLY:
		return XA_RDONLY;
	case WIRE_OUT_ROLLED_BACK:
	case WIRE_OUT_HEUR_ROLLED_BACK:
		return XA_RBROLLBACK;
	case WIRE_OUT_NONE_SUCH:	/* after a lost answer: gone with the server that gave it, or it was read-only */
		return a->again ? XA_RBCOMMFAIL : XAER_NOTA;
	default:
		return refused(a);
	}
}

static int
qm_prepare(XID *xid, int rmid, long flags)
{
	struct xa_answer a;
	struct xa_rm *rm;
	struct wire_tx tx;
	int rc;

	if ((rc = end_begin(xid, rmid, flags, TMNOFLAGS, &rm, &tx)) == XA_OK) {
		xa_ask(rm, WIRE_TX_PREPARE, &tx, true, false, &a);
		rc = prepare_result(&a);
	}
	xa_rm_put(rm);
	return rc;
}

static int
one_phase_result(const struct xa_answer *a)
{
	if (a->heard != XA_ANSWERED)
		return unheard(a);
	switch (a->outcome) {
	case WIRE_OUT_COMMITTED:
		return XA_OK;
	case WIRE_OUT_ROLLED_BACK:
		return XA_RBROLLBACK;
	case WIRE_OUT_NONE_SUCH:
		return XAER_NOTA;
	case WIRE_OUT_HEUR_COMMITTED:
		return XA_HEURCOM;
	case WIRE_OUT_HEUR_ROLLED_BACK:
		return XA_HEURRB;
	default:
		return refused(a);
	}
}

static int
two_phase_result(const struct xa_answer *a)
{
	if (a->heard != XA_ANSWERED)	/* it stays prepared until it is told */
		return a->heard == XA_UNSENT && a->err == TPENOENT ? XAER_RMFAIL : XA_RETRY;
	switch (a->outcome) {
	case WIRE_OUT_COMMITTED:
		return XA_OK;
	case WIRE_OUT_NONE_SUCH:	/* after a lost answer: that one said so */
		return a->again ? XA_OK : XAER_NOTA;
	case WIRE_OUT_HEUR_COMMITTED:
		return XA_HEURCOM;
	case WIRE_OUT_HEUR_ROLLED_BACK:
		return XA_HEURRB;
	default:
		return a->error == TPEPROTO ? XAER_PROTO : XA_RETRY;	/* it cannot write now */
	}
}

static int
qm_commit(XID *xid, int rmid, long flags)
{
	bool one = (flags & TMONEPHASE) != 0;
	struct xa_answer a;
	struct xa_rm *rm;
	struct wire_tx tx;
	int rc;

	if ((rc = end_begin(xid, rmid, flags, TMONEPHASE | TMNOWAIT, &rm, &tx)) == XA_OK) {
		/* In one phase an answer that is lost is lost: that there is no such branch any more would not say how it ended. */
		xa_ask(rm, one ? WIRE_TX_COMMIT : WIRE_TX_DECIDED, &tx, !one, !one && (flags & TMNOWAIT), &a);
		rc = one ? one_phase_result(&a) : two_phase_result(&a);
	}
	xa_rm_put(rm);
	return rc;
}

static int
rollback_result(const struct xa_answer *a)
{
	if (a->heard != XA_ANSWERED)
		return unheard(a);
	switch (a->outcome) {
	case WIRE_OUT_ROLLED_BACK:
		return XA_OK;
	case WIRE_OUT_NONE_SUCH:
		return a->again ? XA_OK : XAER_NOTA;
	case WIRE_OUT_HEUR_COMMITTED:
		return XA_HEURCOM;
	case WIRE_OUT_HEUR_ROLLED_BACK:
		return XA_HEURRB;
	default:
		return refused(a);
	}
}

static int
qm_rollback(XID *xid, int rmid, long flags)
{
	struct xa_answer a;
	struct xa_rm *rm;
	struct wire_tx tx;
	int rc;

	if ((rc = end_begin(xid, rmid, flags, TMNOFLAGS, &rm, &tx)) == XA_OK) {
		xa_ask(rm, WIRE_TX_ABORT, &tx, true, false, &a);
		rc = rollback_result(&a);
	}
	xa_rm_put(rm);
	return rc;
}

/* ---- what an administrator did ---- */

static int
qm_forget(XID *xid, int rmid, long flags)
{
	enum xa_stage stage;
	struct xa_answer a;
	struct xa_rm *rm;
	struct wire_tx tx;
	int rc;

	if ((rc = end_begin(xid, rmid, flags, TMNOFLAGS, &rm, &tx)) != XA_OK || (rc = xa_stage(rm, &tx, &stage)) != XA_OK)
		goto out;
	if (stage != XA_STAGE_HEURISTIC)
		rc = stage == XA_STAGE_NONE ? XAER_NOTA : XAER_PROTO;
	else {
		xa_ask(rm, WIRE_TX_FORGET, &tx, true, false, &a);
		rc = a.heard != XA_ANSWERED ? unheard(&a) : a.error == 0 ? XA_OK : refused(&a);
	}
out:
	xa_rm_put(rm);
	return rc;
}

static int
qm_recover(XID *xids, long count, int rmid, long flags)
{
	struct xa_rm *rm;
	int rc;

	if (flags & TMASYNC)
		return XAER_ASYNC;
	if ((flags & ~(TMSTARTRSCAN | TMENDRSCAN)) != 0 || count < 0 || (xids == NULL && count > 0))
		return XAER_INVAL;
	if ((rm = xa_rm_find(rmid)) == NULL)
		return XAER_PROTO;
	rc = xa_scan(rm, xids, count, flags);
	xa_rm_put(rm);
	return rc;
}

static int	/* Nothing is done behind the caller's back, so there is nothing to wait for. */
qm_complete(int *handle, int *retval, int rmid, long flags)
{
	struct xa_rm *rm;

	(void)handle, (void)retval;
	if (flags & TMASYNC)
		return XAER_ASYNC;
	if ((rm = xa_rm_find(rmid)) == NULL)
		return XAER_PROTO;
	xa_rm_put(rm);
	return XAER_INVAL;
}

struct xa_switch_t tmqm_switch = { "TUXEDO/QM", TMNOMIGRATE, 0, qm_open, qm_close, qm_start, qm_end, qm_rollback, qm_prepare,
	qm_commit, qm_recover, qm_forget, qm_complete };
