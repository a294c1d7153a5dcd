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

__thread struct work *work_here;
static __thread struct wr reply_out;	/* kept between replies */

enum svr_sent
svr_reply(const struct link_peer *to, const struct wire_reply *m, const struct link_body *body)
{
	struct request *r = work_here == NULL ? NULL : work_here->request;
	bool owed = false;

	if (set_is_from(to)) {
		if (r != NULL && (!r->shared || r->asked || r->call.reqid != m->reqid))
			r = NULL;	/* the answer to one that was forwarded earlier */
		if (set_reply(to, m, r != NULL && !svr.leaving, body) && r != NULL)
			r->asked = !svr.leaving;
		return SVR_SURE;	/* the queue knows what it has, and answers for what was lost */
	}
	wr_reset(&reply_out);
	wire_reply_encode(&reply_out, m);
	if (!wr_ok(&reply_out) || link_server_send_told(svr.link, to, reply_out.p, reply_out.len, body, &owed) != LINK_OK) {
		ulog_debug("a reply found no reader");
		return link_server_left(svr.link, to) ? SVR_SURE : SVR_LOST;
	}
	return owed ? SVR_OWED : SVR_SURE;
}

void
svr_reply_over(void)
{
	wr_free(&reply_out);
}

static void
reply_error(struct work *w, int error)
{
	struct wire_reply m = { .reqid = w->request->call.reqid, .error = error, .leaving = svr_turns_away() };

	if (w->request->call.flags & TPNOREPLY)
		return;
	if (w->ctx->tran.active && !w->ctx->tran.initiator) {
		m.groups = w->ctx->tran.groups;
		m.doomed = 1;
	}
	mark_done(w->request);
	w->sent = svr_reply(&w->request->m.peer, &m, NULL);
}

/* A transaction that began here, by AUTOTRAN or by the routine, is rolled back before the caller hears that it failed. */
static void
own_tran_roll_back(struct context *ctx)
{
	if (ctx->tran.active && ctx->tran.initiator)
		tran_abort(ctx);
}

void
work_clean(struct context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	calls_forget(ctx, false);
	own_tran_roll_back(ctx);
	tran_forget(ctx);
	pthread_mutex_unlock(&ctx->lock);
}

/* Forget the request and what the routine left behind. */
static void
work_end(struct work *w)
{
	char *inbound = buffer_inbound_now();

	buffer_inbound(NULL);
	buffer_free(inbound);
	context_serve_again(w->ctx);
	work_clean(w->ctx);
	w->active = false;
	mark_end(w);
	bb_agent_idle(svr.agent, w->offer->load);
}

static int
work_begin(struct work *w)
{
	struct link_msg *m = &w->request->m;
	struct wire_call *call = &w->request->call;
	TPSVCINFO *info = &w->info;
	size_t n = m->has_body ? m->body_len : 0;
	char *data = NULL;
	long len = (long)n;
	int i = 0;

	if (call->type[0] != '\0')
		i = buffer_received(&data, call->type, call->subtype, m->body, n, &len);
	buffer_inbound(data);
	if (i != 0)
		return i;
	memset(info, 0, sizeof *info);
	memcpy(info->name, w->offer->name, sizeof w->offer->name);
	info->flags = (call->flags & TPNOREPLY) | (call->tx.gtrid_len > 0 ? TPTRAN : 0);
	info->data = data;
	info->len = len;
	info->appkey = (long)call->appkey;
	for (i = 0; i < 4; i++)
		info->cltid.clientdata[i] = (long)call->cltid[i];
	w->ctx->prio_last = call->priority;
	tran_enter_callers(w->ctx, call);
	if (clock_mono_us() - w->request->since_us > LATE_US && tran_is_over(w->ctx)) {
		ulog("LIBTUX_CAT:5163: WARN: a request of service %s is not carried out: its transaction was over before its turn came",
		    call->service);
		return TPETIME;
	}
	if (call->tx.gtrid_len == 0 && w->offer->autotran) {
		if ((i = tran_begin(w->ctx, (unsigned long)w->offer->trantime, TRAN_BY_AUTOTRAN)) != 0)
			return i;
		info->flags |= TPTRAN;
	}
	link_msg_done(m);		/* its memory is not needed while the routine runs */
	return 0;
}

static void
work_report(const struct work *w, int64_t began)
{
	int64_t ended = clock_now_us();

	fprintf(stderr, "@%s\t%ld\t%lld.%06lld\t%lld.%06lld\n", w->offer->name, (long)getpid(),
	    (long long)began / 1000000, (long long)began % 1000000, (long long)ended / 1000000,
	    (long long)ended % 1000000);
}

static void
work_call(struct work *w)
{
	w->ended = false;
	if (_setjmp(w->back) == 0) {
		w->active = true;
		w->call(&w->info);
		w->active = false;
	}
	if (w->ended)
		return;
	ulog("LIBTUX_CAT:5110: ERROR: service %s returned without tpreturn() or tpforward()", w->offer->name);
	pthread_mutex_lock(&w->ctx->lock);
	tran_request_back(w->ctx);
	tran_doom_because(w->ctx, TPESVCERR, 0, "service %s returned without tpreturn()", w->offer->name);
	own_tran_roll_back(w->ctx);
	reply_error(w, TPESVCERR);
	pthread_mutex_unlock(&w->ctx->lock);
}

void
work_refuse(const struct request *r, const char *why)
{
	struct wire_reply m = { .reqid = r->call.reqid, .error = TPENOENT, .leaving = svr.leaving };

	if (r->call.flags & TPNOREPLY)
		ulog("LIBTUX_CAT:5117: WARN: a request of service %s that wanted no reply is lost: %s", r->call.service, why);
	else
		svr_reply(&r->m.peer, &m, NULL);
}

static void
work_do(struct work *w)
{
	int64_t began = svr.opt.report ? clock_now_us() : 0;
	int err;

	bb_agent_busy(svr.agent, w->offer->name);
	w->request->load = w->offer->load;
	mark_begin(w);
	if ((err = work_begin(w)) != 0)
		reply_error(w, err == TPETRAN ? TPETRAN : TPESVCERR);
	else
		work_call(w);
	if (svr.opt.report)
		work_report(w, began);
	work_end(w);
}

void
work_run(struct work *w, struct request *r)
{
	w->request = r;
	if (svr.leaving || (w->offer = offer_find(r->call.service, &w->call)) == NULL)
		work_refuse(r, svr.leaving ? "this server ends" : "it is not offered here any more");
	else
		work_do(w);
	w->request = NULL;
	request_put(r);
}

/* ---- tpreturn, tpforward ---- */

static struct work *	/* that the calling thread is at; NULL: it is at none, and knows it now */
in_service(const char *call)
{
	if (work_here != NULL && work_here->active)
		return work_here;
	ulog("LIBTUX_CAT:5112: ERROR: %s called outside a service routine", call);
	tperrno = TPEPROTO;
	return NULL;
}

/* May the routine end so?  false: replies or a transaction are open, or the data is no typed buffer. */
static bool
ends_properly(const struct work *w, char *data, long len, struct typed *type, long *n)
{
	struct context *ctx = w->ctx;

	if (tran_request_back(ctx))
		ulog("LIBTUX_CAT:5118: ERROR: service %s ended with its transaction suspended", w->offer->name);
	else if (calls_open(ctx, false) > 0) {
		ulog("LIBTUX_CAT:5113: ERROR: service %s ended with replies outstanding", w->offer->name);
		calls_forget(ctx, false);	/* here, so that the caller learns which groups joined */
	} else if (tran_is_programs(ctx))
		ulog("LIBTUX_CAT:5114: ERROR: service %s ended with a transaction of its own open", w->offer->name);
	else if (buffer_outgoing(data, len, type, n) != 0)
		ulog("LIBTUX_CAT:5115: ERROR: service %s returned data that is no typed buffer, or with a wrong length",
		    w->offer->name);
	else
		return true;
	return false;
}

/* Can what the routine did be committed, as far as is known here?  Else its caller must not take it for done. */
static bool
can_be_committed(const struct work *w)
{
	if (tran_usable(w->ctx))
		return true;
	ulog("LIBTUX_CAT:5160: ERROR: service %s ended well in a transaction that can only be rolled back (%s): its caller "
	     "is told that it failed",
	    w->offer->name, w->ctx->tran.why.text);
	return false;
}

/* The end of a transaction that began here.  *error: how the service ended, or TPESVCERR when it could not be committed. */
static void
own_tran_end(const struct work *w, int *error)
{
	int err;

	if (*error != 0)
		own_tran_roll_back(w->ctx);
	else if (w->ctx->tran.active && w->ctx->tran.autotran && (err = tran_commit(w->ctx)) != 0) {
		ulog("LIBTUX_CAT:5161: ERROR: the transaction that service %s had by AUTOTRAN was not committed: %s",
		    w->offer->name, tpstrerror(err));
		*error = TPESVCERR;
	}
}

static void
reply_with(struct work *w, int error, long rcode, char *data, const struct typed *type, long n)
{
	struct wire_reply m = { .reqid = w->request->call.reqid, .error = error, .urcode = rcode, .leaving = svr_turns_away() };
	struct link_body body = { data, (size_t)n, buffer_release, NULL };
	const struct tran *t = &w->ctx->tran;
	bool in_tran = t->active && !t->initiator;

	if (in_tran) {
		point(POINT_SERVICE_REPLY);
		m.groups = t->groups;
		m.doomed = t->doomed;
	}
	mark_done(w->request);		/* first: who has his answer, and asks again, finds us idle */
	if (data != NULL && error != TPESVCERR) {
		m.has_body = 1;
		memcpy(m.type, type->type, sizeof m.type);
		memcpy(m.subtype, type->subtype, sizeof m.subtype);
		if (data == buffer_inbound_now())
			buffer_inbound(NULL);	/* it goes with the reply */
		w->sent = svr_reply(&w->request->m.peer, &m, &body);
	} else {
		w->sent = svr_reply(&w->request->m.peer, &m, NULL);
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
	struct work *w;

	(void)flags;
	if ((w = in_service("tpreturn")) == NULL)
		return;
	pthread_mutex_lock(&w->ctx->lock);
	if (!ends_properly(w, data, len, &type, &n) || (error == 0 && !can_be_committed(w)))
		error = TPESVCERR;
	if (error != 0)
		tran_doom_because(w->ctx, error, rcode, "service %s failed", w->offer->name);
	own_tran_end(w, &error);
	if (rval == TPEXIT) {
		svr.leaving = true;
		bb_agent_stop_now(svr.agent);	/* whoever receives looks up */
	}
	if (w->request->call.flags & TPNOREPLY)
		tpfree(data);
	else
		reply_with(w, error, rcode, data, &type, n);
	pthread_mutex_unlock(&w->ctx->lock);
	w->ended = true;
	_longjmp(w->back, 1);
}

static void
forward_fails(struct work *w)
{
	tran_doom_because(w->ctx, TPESVCERR, 0, "service %s could not forward", w->offer->name);
	own_tran_roll_back(w->ctx);
	reply_error(w, TPESVCERR);
}

void
tpforward(char *svc, char *data, long len, long flags)
{
	struct relay *r = NULL;
	char name[WIRE_NAME];
	struct typed type;
	struct work *w;
	long n;

	(void)flags;
	if ((w = in_service("tpforward")) == NULL)
		return;
	pthread_mutex_lock(&w->ctx->lock);
	if (svc == NULL || *svc == '\0' || !ends_properly(w, data, len, &type, &n) || !can_be_committed(w))
		forward_fails(w);
	else {
		snprintf(name, sizeof name, "%s", svc);
		if ((r = relay_new(w, name, &type, data, n)) == NULL)
			forward_fails(w);
		else if (data != NULL && data == buffer_inbound_now())
			buffer_inbound(NULL);	/* it goes along */
	}
	pthread_mutex_unlock(&w->ctx->lock);
	if (r != NULL)
		relay_go(r);
	else
		tpfree(data);
	w->ended = true;
	_longjmp(w->back, 1);
}
