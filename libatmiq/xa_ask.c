/*
 * xa_ask - one question to the queue manager of an open queue space.
 *
 * The links are the resource manager's own, not those of a context: a transaction manager commits from threads that have none.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xa_impl.h"
#include "bb.h"
#include "clock.h"
#include "ulog.h"

#define NOWAIT_US 500000LL	/* TMNOWAIT: for a server that is there */

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

static struct line *
line_take(struct xa_rm *rm)
{
	struct line *l;

	pthread_mutex_lock(&idle_lock);
	if ((l = rm->idle) != NULL)
		rm->idle = l->next;
	pthread_mutex_unlock(&idle_lock);
	if (l == NULL && (l = calloc(1, sizeof *l)) != NULL)
		conn_open(&l->conn, rm->app->bbl, rm->app->blocktime_us);
	return l;
}

static void
line_give(struct xa_rm *rm, struct line *l)
{
	pthread_mutex_lock(&idle_lock);
	l->next = rm->idle;
	rm->idle = l;
	pthread_mutex_unlock(&idle_lock);
}

void
xa_ask_fork_child(void)
{
	pthread_mutex_init(&idle_lock, NULL);
}

/* What stands in c->out is asked.  0: p->msg is the answer.  *sent: else the outcome is unknown. */
static int
ask_once(struct xa_rm *rm, struct conn *c, const struct patience *how, struct pending *p, bool *sent)
{
	int err = conn_submit(c, rm->service, NULL, NULL, how, p);

	*sent = err == 0;
	return err != 0 ? err : conn_await(c, p, how, -1);
}

static int	/* One TXEND on this link. */
txend(struct xa_rm *rm, struct conn *c, struct wire_txend *m, const struct patience *how, bool *sent, struct xa_answer *out)
{
	struct pending p = { 0 };
	struct wire_txreply reply;
	int err;

	m->reqid = p.reqid = conn_next_reqid(c);
	m->timeout_ms = time_left_ms(how->deadline_us);
	wr_reset(&c->out);
	wire_txend_encode(&c->out, m);
	err = ask_once(rm, c, how, &p, sent);
	if (err == 0 && wire_txreply_decode(p.msg->head, p.msg->head_len, &reply) != 0) {
		ulog("LIBTUX_CAT:5183: ERROR: XA: the queue manager of group %s gave no proper answer", rm->group);
		err = TPESYSTEM;
	}
	if (err == 0) {
		out->error = reply.error;
		out->outcome = reply.outcome;
	}
	conn_forget(c, &p);
	return err;
}

static void
why_of_manager(struct wire_why *why)
{
	snprintf(why->text, sizeof why->text, "rolled back by its transaction manager, process %ld", (long)getpid());
}

static void
ask_until(struct xa_rm *rm, struct conn *c, struct wire_txend *m, bool again, const struct patience *how, struct xa_answer *out)
{
	bool sent;

	for (;;) {
		out->err = txend(rm, c, m, how, &sent, out);
		if (out->err == 0 && out->error != TPENOENT)
			break;
		/* TPENOENT with a branch named is an answer; without, the server stands by for the one that has the space. */
		if (out->err == 0 && out->outcome != WIRE_OUT_NONE)
			break;
		if (out->err == 0) {
			if (conn_ask_again(c, rm->service, true, how) != 0) {
				out->heard = XA_UNSENT;
				out->err = TPETIME;
				return;
			}
			continue;
		}
		if (!sent) {
			out->heard = out->again ? XA_LOST : XA_UNSENT;
			return;
		}
		if (!again || out->err != TPESVCERR) {
			out->heard = XA_LOST;
			return;
		}
		out->again = true;
	}
	out->heard = XA_ANSWERED;
}

void
xa_ask(struct xa_rm *rm, enum wire_txop op, const struct wire_tx *tx, bool again, bool nowait, struct xa_answer *out)
{
	struct patience how = { .deadline_us = deadline_from(nowait ? NOWAIT_US : rm->app->blocktime_us), .restart = true,
		.noblock = nowait };
	struct wire_txend m = { .op = (uint8_t)op, .tx = *tx };
	struct line *l;
	int cancel;

	memset(out, 0, sizeof *out);
	if (op == WIRE_TX_ABORT)
		why_of_manager(&m.why);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if ((l = line_take(rm)) == NULL)
		out->err = TPEOS;
	else {
		ask_until(rm, &l->conn, &m, again, &how, out);
		line_give(rm, l);
	}
	pthread_setcancelstate(cancel, NULL);
	if (out->heard != XA_ANSWERED)
		ulog("LIBTUX_CAT:5184: WARN: XA: the queue manager of group %s %s: %s", rm->group,
		    out->heard == XA_UNSENT ? "cannot be reached" : "was told, and gave no answer", tpstrerror(out->err));
}

int
xa_ask_admin(struct xa_rm *rm, const char *op, const struct record *args, struct wire_adminreply *reply)
{
	struct patience how = { .deadline_us = deadline_from(rm->app->blocktime_us), .restart = true };
	struct wire_admin m = { .doc = { .n = 1, .rec = (struct record *)args } };
	struct line *l = line_take(rm);
	bool sent = false;
	int err;

	if (l == NULL)
		return TPEOS;
	snprintf(m.op, sizeof m.op, "%s", op);
	do {
		struct pending p = { .reqid = conn_next_reqid(&l->conn) };

		m.reqid = p.reqid;
		wr_reset(&l->conn.out);
		wire_admin_encode(&l->conn.out, &m);
		err = ask_once(rm, &l->conn, &how, &p, &sent);
		if (err == 0 && wire_adminreply_decode(p.msg->head, p.msg->head_len, reply) != 0)
			err = TPESYSTEM;
		conn_forget(&l->conn, &p);
	} while (err == TPESVCERR);	/* the server died: a question may be asked again */
	line_give(rm, l);
	return err;
}
