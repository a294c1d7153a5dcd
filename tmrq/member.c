/*
 * The members' side: the servers of the set.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "serve.h"
#include "ulog.h"

#define LARGE 65536		/* a body is handed over, not copied, from here on */
#define WAITED_US 1000		/* a request that waited so long is looked at twice */

/* --- coming and going --- */

void
member_lost(struct serve *s, struct member *m)
{
	struct request *r;
	size_t n = 0;

	for (r = m->has; r != NULL; r = r->next, n++)
		caller_answer(s, r, TPESVCERR);
	if (!m->left || n > 0)
		ulog("CMDTUX_CAT:1720: WARN: queue %s: server %ld, process %ld, is gone; %zu requests were with it, %zu wait", s->set.rqaddr,
		    m->srvid, m->pid, n, s->queue.n);
	if (m->pidfd >= 0) {
		(void)epoll_ctl(s->epfd, EPOLL_CTL_DEL, m->pidfd, NULL);
		close(m->pidfd);
	}
	queue_part(&s->queue, m);
}

/* The same process on another connection: what it had on the old one it will not answer. */
static void
earlier_self_lost(struct serve *s, long pid)
{
	struct member *m, *next;

	for (m = s->queue.members; m != NULL; m = next) {
		next = m->hh.next;
		if (m->pid == pid)
			member_lost(s, m);	// NOLINT: the hash has the next one then
	}
}

static void
join(struct serve *s, const struct link_msg *msg, const struct wire_member *w)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct member *m;

	if (w->pid <= 0 || queue_member(&s->queue, &msg->peer) != NULL) {
		strange(s, msg);
		return;
	}
	earlier_self_lost(s, w->pid);
	if ((m = queue_join(&s->queue, &msg->peer, w->srvid, w->pid)) == NULL) {
		ulog("CMDTUX_CAT:1723: ERROR: queue %s: server %d, process %d, finds no place: out of memory", s->set.rqaddr, w->srvid, w->pid);
		return;
	}
	if ((m->pidfd = e.data.fd = proc_pidfd(w->pid)) >= 0)
		(void)epoll_ctl(s->epfd, EPOLL_CTL_ADD, m->pidfd, &e);
	s->alone_us = 0;
}

/* --- what it has done --- */

static void
ready(struct serve *s, struct member *m, const struct wire_member *w)
{
	struct request *r = w->reqid != 0 ? queue_find(&s->queue, w->reqid) : NULL;

	/* One that wants an answer, and has none, was forwarded: the answer comes through this member. */
	if (r != NULL && r->member == m && (r->call.flags & TPNOREPLY))
		queue_over(&s->queue, r);
	else if (r != NULL && r->member == m)
		r->forwarded = true;
	queue_ready(&s->queue, m, w->more);
}

static void
release_msg(void *p, void *msg)
{
	(void)p;
	link_msg_done(msg);
	free(msg);
}

static void	/* to the caller, under his name for it */
pass_on(struct serve *s, const struct request *r, struct wire_reply *reply, struct link_msg *m)
{
	struct link_body body = { .p = m->body, .n = m->body_len };
	struct link_msg *kept = NULL;

	reply->reqid = r->from.reqid;
	reply->leaving = reply->more = 0;	/* the queue stays */
	wire_reply_encode(&s->out, reply);
	if (!wr_ok(&s->out))
		return;
	if (reply->has_body && m->body_len >= LARGE && (kept = calloc(1, sizeof *kept)) != NULL) {
		link_msg_move(kept, m);
		body = (struct link_body){ kept->body, kept->body_len, release_msg, kept };
	}
	(void)link_server_send(s->callers, &r->caller, s->out.p, s->out.len, reply->has_body ? &body : NULL);
}

static void
reply_hear(struct serve *s, struct member *m, struct link_msg *msg)
{
	struct wire_reply reply;
	struct request *r;

	if (wire_reply_decode(msg->head, msg->head_len, &reply) != 0) {
		strange(s, msg);
		return;
	}
	if (reply.more)
		queue_ready(&s->queue, m, 1);
	if ((r = queue_find(&s->queue, reply.reqid)) == NULL || r->member != m)
		return;
	if ((r->call.flags & TPNOREPLY) == 0)
		pass_on(s, r, &reply, msg);
	queue_over(&s->queue, r);
}

static void
word_hear(struct serve *s, const struct link_msg *msg)
{
	struct member *m = queue_member(&s->queue, &msg->peer);
	struct wire_member w;

	if (wire_member_decode(msg->head, msg->head_len, &w) != 0 || (m == NULL) != (w.op == WIRE_MEMBER_JOIN)) {
		strange(s, msg);
		return;
	}
	switch (w.op) {
	case WIRE_MEMBER_JOIN:
		join(s, msg, &w);
		break;
	case WIRE_MEMBER_OFFER:
		if (queue_offer(&s->queue, m, w.service) != 0)
			ulog("CMDTUX_CAT:1724: ERROR: queue %s: service %s of server %ld finds no place", s->set.rqaddr, w.service, m->srvid);
		break;
	case WIRE_MEMBER_WITHDRAW:
		queue_withdraw(&s->queue, m, w.service);
		break;
	case WIRE_MEMBER_READY:
		ready(s, m, &w);
		break;
	default:
		queue_leave(&s->queue, m);
	}
}

void
member_hear(struct serve *s, struct link_msg *msg)
{
	struct member *m;
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(msg->head, msg->head_len, &kind, &reqid) != 0)
		strange(s, msg);
	else if (kind == WIRE_MEMBER)
		word_hear(s, msg);
	else if (kind == WIRE_REPLY && (m = queue_member(&s->queue, &msg->peer)) != NULL)
		reply_hear(s, m, msg);
	else
		strange(s, msg);
}

/* --- giving --- */

/* Its caller's time is over, or its transaction's: who has left will not commit it. */
static bool
is_vain(struct serve *s, const struct request *r, int64_t now)
{
	return now >= r->deadline_us || (r->call.tx.gtrid_len > 0 && now - r->arrived_us > WAITED_US &&
	    link_server_left(s->callers, &r->caller));
}

static uint32_t
less(uint32_t timeout_ms, int64_t waited_ms)
{
	return timeout_ms == 0 ? 0 : timeout_ms > waited_ms ? (uint32_t)(timeout_ms - waited_ms) : 1;
}

static int	/* LINK codes */
send_to(struct serve *s, struct request *r, const struct member *m, int64_t now)
{
	struct link_body body = { .p = r->msg.body, .n = r->msg.body_len };
	int64_t waited_ms = (now - r->arrived_us) / 1000;
	struct wire_call call = r->call;

	call.reqid = r->id;
	call.timeout_ms = less(call.timeout_ms, waited_ms);
	call.tx.timeout_ms = less(call.tx.timeout_ms, waited_ms);
	wire_call_encode(&s->out, &call);
	if (!wr_ok(&s->out))
		return LINK_FAIL;
	if (call.has_body && body.n >= LARGE) {
		body.release = request_release;
		body.hint = r;
		request_hold(r);
	}
	return link_server_send(s->members, &m->peer, s->out.p, s->out.len, call.has_body ? &body : NULL);
}

static void	/* Nothing more comes to it, of this it may be sure. */
let_go(struct serve *s, const struct member *m)
{
	struct wire_member w = { .op = WIRE_MEMBER_LEAVE };

	wire_member_encode(&s->out, &w);
	if (wr_ok(&s->out))
		(void)link_server_send(s->members, &m->peer, s->out.p, s->out.len, NULL);
}

void
hand_out(struct serve *s)
{
	struct request *r;
	struct member *m;
	int64_t now;

	while ((r = queue_next(&s->queue, &m)) != NULL) {
		now = clock_mono_us();
		if (is_vain(s, r, now))
			queue_over(&s->queue, r);
		else if (send_to(s, r, m, now) == LINK_OK) {
			queue_give(&s->queue, r, m);
			if (r->msg.body_len < LARGE)
				link_msg_done(&r->msg);
		} else
			queue_unable(&s->queue, m);	/* gone, or it has not read what it was sent before */
	}
	while ((m = queue_leaver(&s->queue)) != NULL)
		let_go(s, m);
}
