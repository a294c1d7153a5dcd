#include "tmqueue.h"

#include <stdlib.h>
#include <string.h>

#include "quiet.h"

static void
answer(const struct link_peer *to, const struct wire_adminreply *r, reply_send_fn *send, void *arg)
{
	struct wr head = { 0 };

	wire_adminreply_encode(&head, r);
	if (wr_ok(&head))
		send(arg, to, head.p, head.len, NULL);
	wr_free(&head);
}

void
admin_answer(struct tmq *t, const struct link_msg *m, reply_send_fn *send, void *send_arg)
{
	static const struct record none;
	struct wire_admin q;
	struct wire_adminreply r = { .status = 0 };

	if (wire_admin_decode(m->head, m->head_len, &q) != 0) {
		char who[128];

		link_msg_peer_name(m, who, sizeof who);
		quiet_log("QM_CAT:1613: WARN: TMQUEUE: %s sent a malformed ADMIN request; dropped", who);
		return;
	}
	r.reqid = q.reqid;
	if (strcmp(q.op, "ping") != 0) {
		if (t == NULL) {
			r.status = TPENOENT;
			r.text = strdup("this TMQUEUE stands by: another process owns the queue space");
		} else
			r.status = qadmin_run(t->qs, q.op, q.doc.n > 0 ? &q.doc.rec[0] : &none, &r.doc, &r.text);
		if (t != NULL && r.status == 0 && r.doc.n > 0 && strcmp(q.op, "qspacelist") == 0)
			(void)record_setf(&r.doc.rec[0], "used_actions", "%zu", actions_count(t->actions));
	}
	if (r.reqid != 0)	/* nobody waits for an answer to id 0 */
		answer(&m->peer, &r, send, send_arg);
	free(r.text);
	document_free(&r.doc);
	document_free(&q.doc);
}

void
standby_answer(const struct link_msg *m, reply_send_fn *send, void *send_arg)
{
	struct unsent *none = NULL;	/* no message goes with these */
	struct replies one;
	enum wire_kind kind;
	uint64_t reqid;
	struct wire_qreply q = { .error = TPENOENT };

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0 || replies_init(&one, 1) != 0)
		return;
	q.reqid = reqid;
	switch (kind) {
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
	case WIRE_QWAIT:
		reply_queue(&one, &m->peer, &q, NULL, false);
		break;
	case WIRE_TXEND:
		reply_tx(&one, &m->peer, reqid, TPENOENT, WIRE_OUT_NONE);
		break;
	case WIRE_CALL:
		reply_service(&one, &m->peer, reqid, TPENOENT);
		break;
	case WIRE_ADMIN:
		admin_answer(NULL, m, send, send_arg);
		break;
	default:
		break;
	}
	replies_send(&one, send, send_arg, &none);
	replies_free(&one);
}
