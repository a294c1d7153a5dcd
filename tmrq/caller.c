/*
 * The callers' side: what a client of a server would say to it.
 */
#include <string.h>

#include "clock.h"
#include "serve.h"
#include "ulog.h"

void
strange(struct serve *s, const struct link_msg *m)
{
	char who[128];

	if (++s->strange > 10 && s->strange % 1000 != 0)
		return;
	link_msg_peer_name(m, who, sizeof who);
	ulog("CMDTUX_CAT:1721: WARN: queue %s: dropped %zu bytes from %s that are no request (%llu so far)", s->set.rqaddr,
	    m->head_len, who, (unsigned long long)s->strange);
}

static void
answer(struct serve *s, const struct link_peer *to)
{
	if (wr_ok(&s->out))
		(void)link_server_send(s->callers, to, s->out.p, s->out.len, NULL);
}

/* It was not done, or nobody knows: its transaction cannot be committed then. */
static void
refuse(struct serve *s, const struct link_peer *to, const struct wire_call *call, int error)
{
	struct wire_reply m = { .reqid = call->reqid, .error = error, .doomed = call->tx.gtrid_len > 0 && error != TPENOENT };

	if (call->flags & TPNOREPLY)
		return;
	wire_reply_encode(&s->out, &m);
	answer(s, to);
}

void
caller_answer(struct serve *s, const struct request *r, int error)
{
	refuse(s, &r->caller, &r->call, error);
}

static int64_t
deadline_of(const struct wire_call *call, int64_t now)
{
	int64_t ms = call->timeout_ms;

	if (call->flags & TPNOREPLY)
		return LINK_FOREVER;	/* nobody waits for it */
	if (call->tx.gtrid_len > 0 && call->tx.timeout_ms > 0 && (ms == 0 || call->tx.timeout_ms < ms))
		ms = call->tx.timeout_ms;
	return ms == 0 ? LINK_FOREVER : now + ms * 1000;
}

static void
call_hear(struct serve *s, struct link_msg *m)
{
	const struct ubb_service *conf;
	struct link_peer caller = m->peer;
	int64_t now = clock_mono_us();
	struct wire_call call;
	struct request *r;

	if (wire_call_decode(m->head, m->head_len, &call) != 0) {
		strange(s, m);
		return;
	}
	if ((r = queue_add(&s->queue, m, &call, now)) == NULL) {
		ulog("CMDTUX_CAT:1722: ERROR: queue %s: a request of service %s is refused: out of memory, or its name is taken",
		    s->set.rqaddr, call.service);
		refuse(s, &caller, &call, TPESYSTEM);
		return;
	}
	r->deadline_us = deadline_of(&call, now);
	if (r->service->waiting.n == 1 && s->ubb != NULL && (conf = ubb_service_find(s->ubb, call.service, s->set.group->name)) != NULL &&
	    conf->load > 0 && (unsigned)conf->load != r->service->load) {
		s->queue.load += (uint64_t)conf->load - r->service->load;
		r->service->load = (unsigned)conf->load;
	}
}

static void
cancel_hear(struct serve *s, const struct link_msg *m)
{
	struct wire_cancel cancel;
	struct request *r;

	if (wire_cancel_decode(m->head, m->head_len, &cancel) != 0)
		strange(s, m);
	else if ((r = queue_find_from(&s->queue, &m->peer, cancel.target)) != NULL && r->member == NULL)
		queue_over(&s->queue, r);
}

/* ping; queue: what waits, for pq. */
static void
admin_hear(struct serve *s, const struct link_msg *m)
{
	char text[] = "a request queue answers ping and queue alone";
	struct wire_adminreply reply = { 0 };
	struct wire_admin ask = { 0 };
	struct record *r;

	if (wire_admin_decode(m->head, m->head_len, &ask) != 0) {
		strange(s, m);
		return;
	}
	reply.reqid = ask.reqid;
	if (strcmp(ask.op, "queue") == 0) {
		r = document_add(&reply.doc);
		if (r == NULL || record_setf(r, "queued", "%zu", s->queue.n) != 0 || record_setf(r, "bytes", "%zu", s->queue.bytes) != 0 ||
		    record_setf(r, "wkqueued", "%llu", (unsigned long long)s->queue.load) != 0 ||
		    record_setf(r, "given", "%zu", s->queue.given) != 0 || record_setf(r, "members", "%u", HASH_COUNT(s->queue.members)) != 0)
			reply.status = TPEOS;
	} else if (strcmp(ask.op, "ping") != 0) {
		reply.status = TPENOENT;
		reply.text = text;
	}
	wire_adminreply_encode(&s->out, &reply);
	answer(s, &m->peer);
	document_free(&ask.doc);
	document_free(&reply.doc);
}

static void	/* A queue operation sent to a service that is no queue manager. */
queue_refuse(struct serve *s, const struct link_msg *m, uint64_t reqid)
{
	struct wire_qreply reply = { .reqid = reqid, .error = TPENOENT };

	wire_qreply_encode(&s->out, &reply);
	answer(s, &m->peer);
}

void
caller_hear(struct serve *s, struct link_msg *m)
{
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0) {
		strange(s, m);
		return;
	}
	switch (kind) {
	case WIRE_CALL:
		call_hear(s, m);
		break;
	case WIRE_CANCEL:
		cancel_hear(s, m);
		break;
	case WIRE_ADMIN:
		admin_hear(s, m);
		break;
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
	case WIRE_QWAIT:
		queue_refuse(s, m, reqid);
		break;
	default:
		strange(s, m);
	}
}
