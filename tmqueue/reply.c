#include "reply.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "quiet.h"

int
replies_init(struct replies *r, size_t cap)
{
	r->n = 0;
	r->cap = cap;
	r->v = calloc(cap, sizeof *r->v);
	return r->v == NULL ? -1 : 0;
}

void
replies_free(struct replies *r)
{
	if (r->v == NULL)
		return;
	replies_drop(r);
	for (size_t i = 0; i < r->cap; i++)
		wr_free(&r->v[i].head);
	free(r->v);
	r->v = NULL;
}

static struct reply *
reply_add(struct replies *r, const struct link_peer *to)
{
	struct reply *p = &r->v[r->n++];

	p->to = *to;
	p->msg = NULL;
	p->waited = false;
	wr_reset(&p->head);	/* keeps its memory from batch to batch */
	return p;
}

static void
attributes_of(const struct qmsg *q, struct wire_qreply *m)
{
	m->flags = q->flags;
	memcpy(m->msgid, q->msgid, sizeof m->msgid);
	memcpy(m->corrid, q->corrid, sizeof m->corrid);
	memcpy(m->replyqueue, q->replyqueue, sizeof q->replyqueue);
	memcpy(m->failurequeue, q->failurequeue, sizeof q->failurequeue);
	m->priority = q->priority;
	m->delivery_qos = q->delivery_qos;
	m->reply_qos = q->reply_qos;
	m->urcode = q->urcode;
	memcpy(m->cltid, q->cltid, sizeof m->cltid);
	m->appkey = q->appkey;
	memcpy(m->type, q->type, sizeof m->type);
	memcpy(m->subtype, q->subtype, sizeof m->subtype);
	m->has_body = q->has_body;
	m->retries = (int32_t)q->retries;
}

void
reply_queue(struct replies *r, const struct link_peer *to, struct wire_qreply *m, struct qmsg *msg, bool waited)
{
	struct reply *p = reply_add(r, to);

	if (msg != NULL)
		attributes_of(msg, m);
	p->msg = msg;
	p->waited = waited;
	wire_qreply_encode(&p->head, m);
}

void
reply_tx(struct replies *r, const struct link_peer *to, uint64_t reqid, int error, int outcome)
{
	struct wire_txreply m = { .reqid = reqid, .error = error, .outcome = (uint8_t)outcome };

	wire_txreply_encode(&reply_add(r, to)->head, &m);
}

void
reply_service(struct replies *r, const struct link_peer *to, uint64_t reqid, int error)
{
	struct wire_reply m = { .reqid = reqid, .error = error };

	wire_reply_encode(&reply_add(r, to)->head, &m);
}

static void
body_release(void *p, void *hint)
{
	(void)p;
	qmsg_free(hint);
}

bool
replies_any_left(const struct replies *r, reply_left_fn *left, void *arg)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].waited && r->v[i].msg != NULL && qspace_can_put_back(r->v[i].msg) && left(arg, &r->v[i].to))
			return true;
	return false;
}

static bool	/* Nobody has seen all of it, and nobody ever will. */
give_back(struct reply *p, struct unsent **unsent)
{
	struct unsent *u = p->msg != NULL && qspace_can_put_back(p->msg) ? calloc(1, sizeof *u) : NULL;

	if (u == NULL)
		return false;
	u->msg = p->msg;
	p->msg = NULL;
	DL_APPEND(*unsent, u);
	return true;
}

void
replies_send(struct replies *r, reply_send_fn *send, void *arg, struct unsent **unsent)
{
	for (size_t i = 0; i < r->n; i++) {
		struct reply *p = &r->v[i];
		struct link_body body, *with = NULL;
		bool is_back;

		if (!wr_ok(&p->head)) {
			quiet_log("QM_CAT:1400: ERROR: TMQUEUE: no memory for an answer; its caller will time out");
			(void)give_back(p, unsent);
			goto next;
		}
		if (p->msg != NULL && p->msg->has_body) {
			body = (struct link_body){ p->msg->body, p->msg->body_len, body_release, p->msg };
			qmsg_keep(p->msg);	/* link frees it too, sent or not */
			with = &body;
		}
		if (send(arg, &p->to, p->head.p, p->head.len, with) != LINK_OK) {
			is_back = give_back(p, unsent);
			quiet_log("QM_CAT:1607: WARN: TMQUEUE: a caller went away before its answer; %s",
			    is_back ? "its message goes back to its place on the queue" : "what it asked for is done");
		}
	next:
		qmsg_free(p->msg);
		p->msg = NULL;
	}
	r->n = 0;
}

void
replies_drop(struct replies *r)
{
	for (size_t i = 0; i < r->n; i++) {
		qmsg_free(r->v[i].msg);
		r->v[i].msg = NULL;
	}
	r->n = 0;
}
