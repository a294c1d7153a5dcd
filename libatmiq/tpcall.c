/*
 * tpcall - service requests and their replies: tpacall, tpgetrply, tpcancel, and tpcall that is both.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "impl.h"
#include "ext/atmiq_ext.h"
#include "clock.h"
#include "ulog.h"

#define CALL_FLAGS (TPNOBLOCK | TPSIGRSTRT | TPNOTRAN | TPNOTIME)
#define AGAIN_US 100000LL	/* while the server of a request to be sent again is being started */
#define ASK_US 1000000LL	/* for BBL to say where it is */

int
calls_open(const struct context *ctx, bool only_intran)
{
	int i, n = 0;

	for (i = 0; i < MAX_CALLS; i++)
		n += ctx->calls[i].cd != 0 && (!only_intran || ctx->calls[i].intran);
	return n;
}

static void	/* A reply that nobody will take still tells which groups are to hear of the end. */
call_groups(struct context *ctx, const struct call *call)
{
	struct wire_reply reply;
	int i;

	if (!call->intran || call->pending.state != PENDING_ANSWERED ||
	    wire_reply_decode(call->pending.msg->head, call->pending.msg->head_len, &reply) != 0)
		return;
	for (i = 0; i < reply.groups.n; i++)
		tran_join_group(ctx, reply.groups.name[i]);
}

static void
call_close(struct context *ctx, struct call *call)
{
	conn_forget(conn_of(ctx), &call->pending);
	call->cd = 0;
}

void
calls_forget(struct context *ctx, bool only_intran)
{
	int i;

	if (calls_open(ctx, only_intran) == 0)
		return;
	if (ctx->line != NULL)
		conn_poll(conn_of(ctx));
	for (i = 0; i < MAX_CALLS; i++)
		if (ctx->calls[i].cd != 0 && (!only_intran || ctx->calls[i].intran)) {
			call_groups(ctx, &ctx->calls[i]);
			call_close(ctx, &ctx->calls[i]);
		}
}

/* When the time of the transaction is over, its open calls are dead.  True: some were. */
static bool
calls_expire(struct context *ctx)
{
	if (!ctx->tran.active || clock_mono_us() < ctx->tran.deadline_us || calls_open(ctx, true) == 0)
		return false;
	tran_usable(ctx);
	calls_forget(ctx, true);
	return true;
}

static struct call *
call_free_slot(struct context *ctx)
{
	int i;

	for (i = 0; i < MAX_CALLS; i++)
		if (ctx->calls[i].cd == 0)
			return &ctx->calls[i];
	return NULL;
}

static struct call *
call_find(struct context *ctx, int cd)
{
	int i;

	for (i = 0; cd > 0 && i < MAX_CALLS; i++)
		if (ctx->calls[i].cd == cd)
			return &ctx->calls[i];
	return NULL;
}

/* Failures that leave a transaction rollback-only: whatever the service may have done must not be committed. */
static void
call_failed(struct context *ctx, const char *service, bool intran, int err)
{
	if (intran && (err == TPETIME || err == TPESVCERR || err == TPESVCFAIL || err == TPESYSTEM || err == TPEOS ||
	    err == TPEOTYPE || err == TPGOTSIG))
		tran_doom_because(ctx, err, err == TPESVCFAIL ? tpurcode : 0, "service %s: %s", service, err == TPESVCFAIL ?
		    "failed" : tpstrerror(err));
}

/* A request that was not sent spoils the transaction only when the system is at fault. */
static void
call_unsent(struct context *ctx, const char *service, long flags, int err)
{
	if (err == TPETIME || err == TPESYSTEM || err == TPEOS)
		call_failed(ctx, service, tran_joins(ctx, flags), err);
}

/* How long the answer will be waited for; 0: as long as it takes.  The blocking time of tpacall() is that of sending: tpgetrply() may
 * come later, more than once, and has its own. */
static uint32_t
answer_wanted_ms(const struct context *ctx, const struct call *call, const struct patience *how)
{
	if (call->at_hand)
		return time_left_ms(how->deadline_us);
	return call->intran ? time_left_ms(ctx->tran.deadline_us) : 0;
}

/* Send a request, n bytes of that type; 0 and the call is under way, or for TPNOREPLY done. */
static int
call_send_typed(struct context *ctx, struct call *call, char *svc, char *data, const struct typed *type, long n, long flags,
    struct patience *how)
{
	struct link_body body = { .p = data };
	const struct service *s;
	struct wire_call m;
	int err;

	memset(&m, 0, sizeof m);
	snprintf(m.service, sizeof m.service, "%.*s", WIRE_NAME - 1, svc);
	if ((err = conn_lookup(conn_of(ctx), m.service, how, &s)) != 0)
		return err;
	if (!conn_accepts_type(s, type->type, type->subtype))
		return TPEITYPE;
	if ((err = route_choose(ctx->app, s, type->type, type->subtype, data, n, call->pending.only)) != 0)
		return err;
	memcpy(call->service, m.service, sizeof call->service);
	call->blocktime_us = s->blocktime_ms * 1000;
	patience_of_service(how, call->blocktime_us);
	call->intran = tran_joins(ctx, flags);
	m.reqid = call->pending.reqid = conn_next_reqid(conn_of(ctx));
	m.flags = (uint32_t)(flags & (TPNOREPLY | TPNOTRAN));
	m.priority = call_priority(ctx, s->prio);
	memcpy(m.cltid, ctx->cltid, sizeof m.cltid);
	m.appkey = ctx->appkey;
	m.timeout_ms = answer_wanted_ms(ctx, call, how);
	if (call->intran) {
		tran_to_wire(ctx, &m.tx);
		m.flags |= (uint32_t)ctx->tran.table << 16;
	}
	if (data != NULL) {
		memcpy(m.type, type->type, sizeof m.type);
		memcpy(m.subtype, type->subtype, sizeof m.subtype);
		m.has_body = 1;
		body.n = (size_t)n;
	}
	wr_reset(&conn_of(ctx)->out);
	wire_call_encode(&conn_of(ctx)->out, &m);
	if ((err = conn_submit(conn_of(ctx), m.service, NULL, m.has_body ? &body : NULL, how, &call->pending)) != 0)
		return err;
	if (flags & TPNOREPLY)
		conn_forget(conn_of(ctx), &call->pending);
	else if (!call->at_hand)
		conn_keep(conn_of(ctx), &call->pending, m.has_body ? &body : NULL);
	return 0;
}

static int
call_send(struct context *ctx, struct call *call, char *svc, char *data, long len, long flags, struct patience *how)
{
	struct typed type;
	long n;
	int err;

	if ((err = buffer_outgoing(data, len, &type, &n)) != 0)
		return err;
	err = call_send_typed(ctx, call, svc, data, &type, n, flags, how);
	buffer_sent(data);
	return err;
}

/* An answered call: its data to the caller.  0 or what the call returns. */
static int
call_take(struct context *ctx, struct call *call, char **data, long *len, long flags)
{
	const struct link_msg *msg = call->pending.msg;
	struct wire_reply reply;
	size_t n;
	int err;

	if (wire_reply_decode(msg->head, msg->head_len, &reply) != 0) {
		ulog("LIBTUX_CAT:5070: ERROR: a service gave no proper answer");
		return TPESVCERR;
	}
	if (reply.leaving)
		conn_server_leaves(&call->pending);
	call->refused = reply.error == TPENOENT;
	call_groups(ctx, call);
	if (call->intran && reply.doomed)
		tran_doom(ctx);
	if (reply.error == 0 || reply.error == TPESVCFAIL)
		tpurcode = (long)reply.urcode;
	else
		return reply.error > 0 && reply.error < TPMAXVAL ? reply.error : TPESVCERR;
	n = reply.has_body && msg->has_body ? msg->body_len : 0;
	if (reply.type[0] != '\0')
		return (err = buffer_incoming(data, reply.type, reply.subtype, msg->body, n, flags & TPNOCHANGE, len)) != 0 ? err : reply.error;
	*len = (long)n;
	return reply.error;
}

/* Send a request again that was kept.  noblock: not while its server is being started, TPEBLOCK.  0, or what the call comes to. */
static int
call_again(struct context *ctx, struct call *call, const struct patience *how, bool noblock)
{
	struct patience now = *how;
	int64_t until = how->deadline_us;
	int err;

	if (how->noblock)		/* tpgetrply() does not wait, but its caller will come again */
		until = call->intran ? ctx->tran.deadline_us : deadline_from(blocking_us(ctx));
	if (noblock) {
		now.noblock = true;
		now.deadline_us = clock_mono_us() + ASK_US;
	}
	err = conn_again(conn_of(ctx), &call->pending, &now, until);
	if (noblock && (err == TPETIME || err == TPGOTSIG))
		return TPEBLOCK;
	if (err == TPENOENT && call->pending.refusals > 0)
		return err;		/* as it was told before, and nobody else is there */
	return err == TPENOENT || err == TPETRAN ? TPESVCERR : err;
}

/* Wait for one call's reply; a request that was kept is sent again when its server died before it began it.  As conn_await(). */
static int
call_await(struct context *ctx, struct call *call, const struct patience *how)
{
	int err;

	while ((err = conn_await(conn_of(ctx), &call->pending, how, -1)) == TPESVCERR && conn_can_again(&call->pending))
		if ((err = call_again(ctx, call, how, how->noblock)) != 0)
			return err;
	return err == TPESVCERR && call->refused ? TPENOENT : err;
}

/* Wait for one call's reply and take it.  The descriptor stays open only after a signal, or a time-out that is not its
 * transaction's. */
static int
call_finish(struct context *ctx, struct call *call, char **data, long *len, long flags, const struct patience *how)
{
	int err = call_await(ctx, call, how);
	bool intran = call->intran;
	char service[WIRE_NAME];

	memcpy(service, call->service, sizeof service);
	if (err == 0)
		err = call_take(ctx, call, data, len, flags);
	else if (err == TPGOTSIG || ((err == TPETIME || err == TPEBLOCK) && !intran))
		return err;
	call->unbegun = err == TPESVCERR && call->at_hand && call->pending.unbegun;
	call_close(ctx, call);
	if (!call->unbegun)
		call_failed(ctx, service, intran, err);
	return err;
}

static int
call_arguments(const char *svc, long flags, long allowed)
{
	return svc == NULL || *svc == '\0' || (flags & ~allowed) != 0 ? TPEINVAL : 0;
}

/* What only our own servers ask of a call (ext/atmiq_ext.h). */
struct call_more { int64_t deadline_us; void (*sent)(void *arg); void *arg; };

/* A call that was refused is sent again, to the server that BBL names now; and so is one whose server died before it began it, as
 * long as its time lasts. */
static int
call_until_taken(struct context *ctx, char *svc, char *idata, long ilen, char **odata, long *olen, long flags,
    const struct call_more *more)
{
	struct call once;
	struct patience how;
	bool noblock, absolute = ctx->prio_absolute;
	int err, n, prio = ctx->prio_next;

	call_patience(ctx, flags, &how);
	if (more != NULL && more->deadline_us < how.deadline_us) {
		how.deadline_us = more->deadline_us;
		how.by_service = false;
	}
	noblock = how.noblock;
	for (n = 0;; n++) {
		memset(&once, 0, sizeof once);
		once.at_hand = true;
		ctx->prio_next = prio;		/* of this call, however often it is sent */
		ctx->prio_absolute = absolute;
		how.noblock = noblock;
		if ((err = call_send(ctx, &once, svc, idata, ilen, flags, &how)) != 0) {
			call_unsent(ctx, svc, flags, err);
			return err;
		}
		if (more != NULL && more->sent != NULL && n == 0)
			more->sent(more->arg);
		how.noblock = false;
		if ((err = call_finish(ctx, &once, odata, olen, flags, &how)) == TPGOTSIG)
			call_failed(ctx, svc, tran_joins(ctx, flags), err);	/* its answer will never be known */
		call_close(ctx, &once);
		if (once.unbegun)
			continue;
		if (!once.refused || n == CONN_REFUSALS)
			return err;
		if ((err = conn_ask_again(conn_of(ctx), svc, n > 0, &how)) != 0) {
			call_unsent(ctx, svc, flags, err);
			return err;
		}
	}
}

int
tpcall(char *svc, char *idata, long ilen, char **odata, long *olen, long flags)
{
	struct context *ctx;
	struct typed type;

	if (call_arguments(svc, flags, CALL_FLAGS | TPNOCHANGE) != 0 || odata == NULL || olen == NULL ||
	    buffer_look(*odata, &type) != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!tran_usable(ctx))
		return context_leave(ctx, TPETIME);
	return context_leave(ctx, call_until_taken(ctx, svc, idata, ilen, odata, olen, flags, NULL));
}

int
atmiq_call(const struct atmiq_call *c)
{
	struct call_more more = { deadline_from(c->limit_ms * 1000), c->sent, c->arg };
	struct context *ctx;
	struct typed type;

	if (call_arguments(c->service, c->flags, CALL_FLAGS | TPNOCHANGE) != 0 || c->reply == NULL || c->reply_len == NULL ||
	    buffer_look(*c->reply, &type) != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!tran_usable(ctx))
		return context_leave(ctx, TPETIME);
	return context_leave(ctx, call_until_taken(ctx, c->service, c->data, c->len, c->reply, c->reply_len, c->flags, &more));
}

int
tpacall(char *svc, char *data, long len, long flags)
{
	struct call *call, none;
	struct context *ctx;
	struct patience how;
	int err, cd;

	if (call_arguments(svc, flags, CALL_FLAGS | TPNOREPLY) != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	if (!tran_usable(ctx) && (flags & (TPNOREPLY | TPNOTRAN | TPNOBLOCK)) != (TPNOREPLY | TPNOTRAN | TPNOBLOCK))
		return context_leave(ctx, TPETIME);
	if ((flags & TPNOREPLY) && tran_joins(ctx, flags))
		return context_leave(ctx, TPEINVAL);
	call_patience(ctx, flags, &how);
	if (!tran_usable(ctx))		/* its time, which may be over, is not that of this call */
		how.deadline_us = how.began_us + ctx->app->blocktime_us;
	if (flags & TPNOREPLY) {
		memset(&none, 0, sizeof none);
		return context_leave(ctx, call_send(ctx, &none, svc, data, len, flags, &how));
	}
	if ((call = call_free_slot(ctx)) == NULL)
		return context_leave(ctx, TPELIMIT);
	memset(call, 0, sizeof *call);
	if ((err = call_send(ctx, call, svc, data, len, flags, &how)) != 0) {
		call_unsent(ctx, svc, flags, err);
		return context_leave(ctx, err);
	}
	if (++ctx->last_cd <= 0)
		ctx->last_cd = 1;
	cd = call->cd = ctx->last_cd;
	context_leave(ctx, 0);
	return cd;
}

/* The first call that has its answer, or lost its server. */
static struct call *
call_ready(struct context *ctx)
{
	struct call *call;
	int i;

	for (i = 0; i < MAX_CALLS; i++) {
		call = &ctx->calls[i];
		if (call->cd != 0 && call->pending.state != PENDING_WAITING && !conn_can_again(&call->pending))
			return call;
	}
	return NULL;
}

/* Send again what can be, without waiting for servers that are being started.  True: something is left for later. */
static bool
calls_again(struct context *ctx, const struct patience *how)
{
	struct call *call;
	bool left = false;
	int i, err;

	for (i = 0; i < MAX_CALLS; i++) {
		call = &ctx->calls[i];
		if (call->cd == 0 || !conn_can_again(&call->pending))
			continue;
		if ((err = call_again(ctx, call, how, true)) == TPEBLOCK)
			left = true;
		else if (err != 0) {
			call->refused = err == TPENOENT;
			call->pending.unbegun = false;	/* nobody is there to send it to: its caller hears that it is lost */
		}
	}
	return left;
}

/* Wait for any call: 0 and *out, or an error. */
static int
call_await_any(struct context *ctx, const struct patience *how, struct call **out)
{
	struct patience slice = *how;
	bool left;
	int err = 0;

	while (err == 0) {
		left = calls_again(ctx, how);
		if ((*out = call_ready(ctx)) != NULL)
			return 0;
		slice.deadline_us = how->deadline_us;
		if (left && clock_mono_us() + AGAIN_US < how->deadline_us)
			slice.deadline_us = clock_mono_us() + AGAIN_US;
		err = conn_await_any(conn_of(ctx), &slice, -1);
		if (err == TPEBADDESC)		/* all are to be sent again */
			err = how->deadline_us > clock_mono_us() && poll(NULL, 0, AGAIN_US / 1000) < 0 && errno == EINTR &&
			    !how->restart ? TPGOTSIG : TPETIME;
		if (err == TPETIME && clock_mono_us() < how->deadline_us)
			err = 0;
	}
	return err;
}

int
tpgetrply(int *cd, char **data, long *len, long flags)
{
	struct call *call;
	struct context *ctx;
	struct patience how;
	struct typed type;
	int err = 0;

	if (cd == NULL || data == NULL || len == NULL || buffer_look(*data, &type) != 0 ||
	    (flags & ~(long)(TPGETANY | TPNOCHANGE | TPNOBLOCK | TPNOTIME | TPSIGRSTRT)) != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	call_patience(ctx, flags, &how);
	if (how.noblock)
		how.deadline_us = clock_mono_us();
	if (flags & TPGETANY) {
		if (calls_open(ctx, false) == 0)
			return context_leave(ctx, TPEBADDESC);
		if (calls_expire(ctx))
			return context_leave(ctx, TPETIME);
		call = NULL;
		err = call_await_any(ctx, &how, &call);
	} else if ((call = call_find(ctx, *cd)) == NULL)
		err = TPEBADDESC;
	else if (call->intran && calls_expire(ctx))
		return context_leave(ctx, TPETIME);
	if (call != NULL) {
		int is = call->cd;

		if (!how.noblock)
			patience_of_service(&how, call->blocktime_us);
		if (how.noblock && (call->pending.state == PENDING_WAITING || conn_can_again(&call->pending))) {
			if ((err = call_await(ctx, call, &how)) != 0 && err != TPESVCERR)
				return context_leave(ctx, TPEBLOCK);
		}
		err = call_finish(ctx, call, data, len, flags, &how);
		if (flags & TPGETANY)
			*cd = is;
	} else if (err == TPETIME && how.noblock)
		err = TPEBLOCK;
	else if (err == TPETIME)
		calls_expire(ctx);
	return context_leave(ctx, err);
}

int
tpcancel(int cd)
{
	struct call *call;
	struct context *ctx;
	int err = 0;

	if ((ctx = context_enter()) == NULL)
		return -1;
	if ((call = call_find(ctx, cd)) == NULL)
		err = TPEBADDESC;
	else if (call->intran)
		err = TPETRAN;
	else
		call_close(ctx, call);		/* the request is served all the same: some want no more than that */
	return context_leave(ctx, err);
}
