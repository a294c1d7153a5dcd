/*
 * svrreturn - one request from its arrival to its reply: the routine is called, and tpreturn() or tpforward() comes
 * back here.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "svr.h"
#include "clock.h"
#include "point.h"
#include "ulog.h"

#define LATE_US 50000LL		/* a request that may have waited so long is looked at twice */

struct work work;

void
svr_reply(const struct link_peer *to, const struct wire_reply *m, const struct link_body *body)
{
	static struct wr w;		/* one thread serves */

	wr_reset(&w);
	wire_reply_encode(&w, m);
	if (!wr_ok(&w) || link_server_send(svr.link, to, w.p, w.len, body) != LINK_OK)
		ulog_debug("a reply found no reader");
}

static void
reply_error(int error)
{
	struct wire_reply m = { .reqid = work.call.reqid, .error = error, .leaving = work.leave };

	if (work.call.flags & TPNOREPLY)
		return;
	if (svr.ctx->tran.active && !svr.ctx->tran.initiator) {
		m.groups = svr.ctx->tran.groups;
		m.doomed = 1;
	}
	svr_reply(&work.peer, &m, NULL);
}

/* A transaction that began here, by AUTOTRAN or by the routine, is rolled back before the caller hears that it failed. */
static void
own_tran_roll_back(void)
{
	if (svr.ctx->tran.active && svr.ctx->tran.initiator)
		tran_abort(svr.ctx);
}

/* Forget the request and what the routine left behind. */
static void
work_end(void)
{
	char *inbound = buffer_inbound_now();
	struct context *ctx = svr.ctx;

	buffer_inbound(NULL);
	buffer_free(inbound);
	pthread_mutex_lock(&ctx->lock);
	calls_forget(ctx, false);
	own_tran_roll_back();
	tran_forget(ctx);
	pthread_mutex_unlock(&ctx->lock);
	work.active = false;
	bb_agent_idle(svr.agent, work.offer->load);
}

static int
work_begin(struct link_msg *m, TPSVCINFO *info)
{
	struct wire_call *call = &work.call;
	size_t n = m->has_body ? m->body_len : 0;
	char *data = NULL;
	int i;

	if (call->type[0] != '\0') {
		if ((data = buffer_new(call->type, call->subtype, (long)(n < 512 ? 512 : n))) == NULL)
			return TPEOS;
		memcpy(data, m->body, n);
		data[n] = '\0';
	}
	buffer_inbound(data);
	memset(info, 0, sizeof *info);
	memcpy(info->name, work.offer->name, sizeof work.offer->name);
	info->flags = (call->flags & TPNOREPLY) | (call->tx.gtrid_len > 0 ? TPTRAN : 0);
	info->data = data;
	info->len = (long)n;
	info->appkey = (long)call->appkey;
	for (i = 0; i < 4; i++)
		info->cltid.clientdata[i] = (long)call->cltid[i];
	svr.ctx->prio_last = call->priority;
	work.deadline_us = deadline_from((int64_t)call->timeout_ms * 1000);
	tran_enter_callers(svr.ctx, call);
	if (clock_mono_us() - svr.busy_since_us > LATE_US && tran_is_over(svr.ctx)) {
		ulog("LIBTUX_CAT:5163: WARN: a request of service %s is not carried out: its transaction was over before its turn came",
		    call->service);
		return TPETIME;
	}
	if (call->tx.gtrid_len == 0 && work.offer->autotran) {
		if ((i = tran_begin(svr.ctx, (unsigned long)work.offer->trantime, TRAN_BY_AUTOTRAN)) != 0)
			return i;
		info->flags |= TPTRAN;
	}
	link_msg_done(m);		/* its memory is not needed while the routine runs */
	return 0;
}

static void
work_report(int64_t began)
{
	int64_t ended = clock_now_us();

	fprintf(stderr, "@%s\t%ld\t%lld.%06lld\t%lld.%06lld\n", work.offer->name, (long)getpid(),
	    (long long)began / 1000000, (long long)began % 1000000, (long long)ended / 1000000,
	    (long long)ended % 1000000);
}

static void
work_call(TPSVCINFO *info)
{
	work.ended = false;
	if (_setjmp(work.back) == 0) {
		work.active = true;
		work.offer->call(info);
		work.active = false;
	}
	if (work.ended)
		return;
	ulog("LIBTUX_CAT:5110: ERROR: service %s returned without tpreturn() or tpforward()", work.offer->name);
	pthread_mutex_lock(&svr.ctx->lock);
	tran_request_back(svr.ctx);
	tran_doom_because(svr.ctx, TPESVCERR, 0, "service %s returned without tpreturn()", work.offer->name);
	own_tran_roll_back();
	reply_error(TPESVCERR);
	pthread_mutex_unlock(&svr.ctx->lock);
}

void
work_run(struct link_msg *m)
{
	static TPSVCINFO info;
	int64_t began = svr.opt.report ? clock_now_us() : 0;
	int err;

	if (wire_call_decode(m->head, m->head_len, &work.call) != 0) {
		ulog("LIBTUX_CAT:5111: WARN: dropped a service request that cannot be read (%zu bytes)", m->head_len);
		return;
	}
	work.peer = m->peer;
	if (work.leave || (work.offer = offer_find(work.call.service)) == NULL) {
		if (work.call.flags & TPNOREPLY)
			ulog("LIBTUX_CAT:5117: WARN: a request of service %s that wanted no reply is lost: %s",
			    work.call.service, work.leave ? "this server ends" : "it is not offered here any more");
		reply_error(TPENOENT);
		return;
	}
	bb_agent_busy(svr.agent, work.offer->name);
	if ((err = work_begin(m, &info)) != 0)
		reply_error(err == TPETRAN ? TPETRAN : TPESVCERR);
	else
		work_call(&info);
	if (svr.opt.report)
		work_report(began);
	work_end();
}

/* ---- tpreturn, tpforward ---- */

static bool
in_service(const char *call)
{
	if (work.active && pthread_equal(pthread_self(), svr.thread))
		return true;
	ulog("LIBTUX_CAT:5112: ERROR: %s called outside a service routine", call);
	tperrno = TPEPROTO;
	return false;
}

/* May the routine end so?  false: replies or a transaction are open, or the data is no typed buffer. */
static bool
ends_properly(char *data, long len, struct typed *type, long *n)
{
	struct context *ctx = svr.ctx;

	if (tran_request_back(ctx))
		ulog("LIBTUX_CAT:5118: ERROR: service %s ended with its transaction suspended", work.offer->name);
	else if (calls_open(ctx, false) > 0) {
		ulog("LIBTUX_CAT:5113: ERROR: service %s ended with replies outstanding", work.offer->name);
		calls_forget(ctx, false);	/* here, so that the caller learns which groups joined */
	} else if (tran_is_programs(ctx))
		ulog("LIBTUX_CAT:5114: ERROR: service %s ended with a transaction of its own open", work.offer->name);
	else if (buffer_outgoing(data, len, type, n) != 0)
		ulog("LIBTUX_CAT:5115: ERROR: service %s returned data that is no typed buffer, or with a wrong length",
		    work.offer->name);
	else
		return true;
	return false;
}

/* Can what the routine did be committed, as far as is known here?  Else its caller must not take it for done. */
static bool
can_be_committed(void)
{
	if (tran_usable(svr.ctx))
		return true;
	ulog("LIBTUX_CAT:5160: ERROR: service %s ended well in a transaction that can only be rolled back (%s): its caller "
	     "is told that it failed",
	    work.offer->name, svr.ctx->tran.why.text);
	return false;
}

/* The end of a transaction that began here.  *error: how the service ended, or TPESVCERR when it could not be committed. */
static void
own_tran_end(int *error)
{
	int err;

	if (*error != 0)
		own_tran_roll_back();
	else if (svr.ctx->tran.active && svr.ctx->tran.autotran && (err = tran_commit(svr.ctx)) != 0) {
		ulog("LIBTUX_CAT:5161: ERROR: the transaction that service %s had by AUTOTRAN was not committed: %s",
		    work.offer->name, tpstrerror(err));
		*error = TPESVCERR;
	}
}

static void
reply_with(int error, long rcode, char *data, const struct typed *type, long n)
{
	struct wire_reply m = { .reqid = work.call.reqid, .error = error, .urcode = rcode, .leaving = work.leave };
	struct link_body body = { data, (size_t)n, buffer_release, NULL };
	const struct tran *t = &svr.ctx->tran;
	bool in_tran = t->active && !t->initiator;

	if (in_tran) {
		point(POINT_SERVICE_REPLY);
		m.groups = t->groups;
		m.doomed = t->doomed;
	}
	if (data != NULL && error != TPESVCERR) {
		m.has_body = 1;
		memcpy(m.type, type->type, sizeof m.type);
		memcpy(m.subtype, type->subtype, sizeof m.subtype);
		if (data == buffer_inbound_now())
			buffer_inbound(NULL);	/* it goes with the reply */
		svr_reply(&work.peer, &m, &body);
	} else {
		svr_reply(&work.peer, &m, NULL);
		tpfree(data);
	}
	if (in_tran)
		point(POINT_SERVICE_REPLIED);
}

void
tpreturn(int rval, long rcode, char *data, long len, long flags)
{
	struct typed type;
	long n = 0;
	int error = rval == TPSUCCESS ? 0 : TPESVCFAIL;

	(void)flags;
	if (!in_service("tpreturn"))
		return;
	pthread_mutex_lock(&svr.ctx->lock);
	if (!ends_properly(data, len, &type, &n) || (error == 0 && !can_be_committed()))
		error = TPESVCERR;
	if (error != 0)
		tran_doom_because(svr.ctx, error, rcode, "service %s failed", work.offer->name);
	own_tran_end(&error);
	work.leave = rval == TPEXIT;
	if (work.call.flags & TPNOREPLY)
		tpfree(data);
	else
		reply_with(error, rcode, data, &type, n);
	pthread_mutex_unlock(&svr.ctx->lock);
	work.ended = true;
	_longjmp(work.back, 1);
}

void
tpforward(char *svc, char *data, long len, long flags)
{
	struct link_body body = { .p = data };
	char name[WIRE_NAME];
	struct typed type;
	long n;
	int error = 0;

	(void)flags;
	if (!in_service("tpforward"))
		return;
	pthread_mutex_lock(&svr.ctx->lock);
	if (svc == NULL || *svc == '\0' || !ends_properly(data, len, &type, &n) || !can_be_committed())
		error = TPESVCERR;
	if (error == 0) {
		snprintf(name, sizeof name, "%s", svc);
		body.n = (size_t)n;
		if ((error = relay_start(&work, svr.ctx, name, type.type, type.subtype, data == NULL ? NULL : &body)) != 0)
			ulog("LIBTUX_CAT:5116: ERROR: service %s cannot forward to %s: %s", work.offer->name, name,
			    tpstrerror(error));
	}
	if (error != 0) {
		tran_doom_because(svr.ctx, TPESVCERR, 0, "service %s could not forward", work.offer->name);
		own_tran_roll_back();
		reply_error(TPESVCERR);
	}
	tpfree(data);
	pthread_mutex_unlock(&svr.ctx->lock);
	work.ended = true;
	_longjmp(work.back, 1);
}
