#include "tmqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gtrid.h"
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

/* --- what the space does not know of its transactions --- */

static bool
id_of(const struct record *r, struct branch_id *id)
{
	const char *gtrid = record_get(r, "gtrid");

	*id = (struct branch_id){ 0 };
	return gtrid != NULL && gtrid_from_hex(gtrid, id->gtrid, &id->len) == 0;
}

static void	/* The groups that a transaction which this server coordinates waits for. */
show_waiting(struct tmq *t, struct record *r)
{
	char names[WIRE_MAX_GROUPS * (WIRE_GROUP + 1)] = "";
	struct wire_groups g;
	struct branch_id id;
	size_t n = 0;

	if (!id_of(r, &id) || !coordinator_waiting(t->coordinator, &id, &g))
		return;
	for (int i = 0; i < g.n; i++)
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? " " : "", g.name[i]);
	(void)record_set(r, "waiting", names);
}

static void	/* The operation went well. */
add_own(struct tmq *t, const char *op, const struct record *args, struct document *out)
{
	struct branch_id id;

	if (strcmp(op, "qspacelist") == 0 && out->n > 0)
		(void)record_setf(&out->rec[0], "used_actions", "%zu", actions_count(t->actions));
	if (strcmp(op, "qprinttrans") == 0)
		for (size_t i = 1; i < out->n; i++)
			show_waiting(t, &out->rec[i]);
	if (strcmp(op, "qforgettrans") == 0 && id_of(args, &id))
		coordinator_give_up(t->coordinator, &id);
}

void
admin_answer(struct tmq *t, const struct link_msg *m, reply_send_fn *send, void *send_arg)
{
	static const struct record none;
	const struct record *args;
	struct wire_admin q;
	struct wire_adminreply r = { .status = 0 };

	if (wire_admin_decode(m->head, m->head_len, &q) != 0) {
		char who[128];

		link_msg_peer_name(m, who, sizeof who);
		quiet_log("QM_CAT:1613: WARN: TMQUEUE: %s sent a malformed ADMIN request; dropped", who);
		return;
	}
	r.reqid = q.reqid;
	args = q.doc.n > 0 ? &q.doc.rec[0] : &none;
	if (strcmp(q.op, "ping") != 0) {
		if (t == NULL) {
			r.status = TPENOENT;
			r.text = strdup("this TMQUEUE stands by: another process owns the queue space");
		} else
			r.status = qadmin_run(t->qs, q.op, args, &r.doc, &r.text);
		if (t != NULL && r.status == 0)
			add_own(t, q.op, args, &r.doc);
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
