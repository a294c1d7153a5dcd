/*
 * tpqueue - tpenqueue, tpdequeue: TPQCTL to a request and back.
 *
 * Members of TPQCTL whose flag is off are never read.  One request, one reply; the body goes from and to the
 * program's buffer.
 */
#include <limits.h>
#include <string.h>

#include "impl.h"
#include "ext/atmiq_ext.h"
#include "clock.h"
#include "point.h"
#include "ulog.h"

#define BODY_MAX (1L << 30)	/* bytes of a message */

#define WITH_COMMIT_MAX 32768	/* bytes of one that commits: a larger one may take the queue manager several batches */

#define GRACE_US 150000LL	/* a waiting dequeue ends in the queue manager; its answer is worth this much more */
#define SIGNAL_US 1000000LL	/* an operation under way when a signal comes: wait this long for what became of it */

#define CALL_FLAGS (TPNOBLOCK | TPSIGRSTRT | TPNOTRAN | TPNOTIME)
#define CONTROL_FLAGS 0xfffff	/* of TPQCTL; what later products put above is not for us */
#define CLEARED \
	(TPQTOP | TPQBEFOREMSGID | TPQTIME_ABS | TPQTIME_REL | TPQEXPTIME_ABS | TPQEXPTIME_REL | TPQEXPTIME_NONE)
#define OUTPUTS (TPQPRIORITY | TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQDELIVERYQOS | TPQREPLYQOS)

static void
name_copy(char *to, const char *from)	/* at most TMQNAMELEN characters, `from` need not end */
{
	size_t n = strnlen(from, TMQNAMELEN);

	memcpy(to, from, n);
	to[n] = '\0';
}

static int32_t
narrow(long v)		/* out of range stays out of range */
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

/* One queue operation on its way.  From operation_go() to operation_end() it does without the lock of its context. */
struct operation {
	struct context *ctx;
	struct conn *conn;		/* its own meanwhile; NULL: not under way */
	char service[WIRE_NAME];
	const struct typed *type;	/* of the buffer; NULL: there is none */
	char *data;			/* of a message to be enqueued, */
	long n;				/* so many bytes */
	struct wire_groups joined;	/* the transaction's groups when it began */
	struct patience how;
	struct pending pending;
	struct wire_qreply reply;
	bool in_tran;
	bool by_xa;			/* its thread works for another transaction manager */
	struct xa_assoc *xa;		/* in this branch */
	bool lost;			/* sent, and no answer */
	bool waits;			/* TPQWAIT */
	bool repeatable;		/* TPQPEEK: may be sent again after the server was lost */
	bool commits;			/* its transaction ends with it, when it succeeds */
	bool ended;			/* and that is what the answer tells: */
	struct wire_txreply end;
	int wake_fd;			/* ends the wait; -1 none */
};

/* The transaction is usable and the time is set; 0 or a TPE code. */
static int
operation_begin(struct operation *op, char *qspace, long flags)
{
	struct context *ctx = op->ctx;

	if (!tran_usable(ctx))
		return TPETIME;
	name_copy(op->service, qspace);
	if (op->in_tran) {		/* those that there are: room for all is a kilobyte */
		op->joined.n = ctx->tran.groups.n;
		memcpy(op->joined.name, ctx->tran.groups.name, op->joined.n * sizeof op->joined.name[0]);
	}
	op->wake_fd = -1;
	call_priority(ctx, 0);
	call_patience(ctx, flags, &op->how);
	return 0;
}

/* Where the thread works in branches of another transaction manager, the one that this queue space has; 0 or a TPE code. */
static int
operation_branch(struct operation *op, const struct service *s, struct wire_tx *tx)
{
	if (!op->by_xa)
		return 0;
	if ((op->xa = xa_of_service(s, tx, &op->joined)) == NULL) {
		ulog("LIBTUX_CAT:5185: ERROR: a queue operation on %s is refused: its thread works in a transaction by XA, and no "
		     "branch of that is in this queue space",
		    op->service);
		return TPETRAN;
	}
	return xa_doomed(op->xa) ? TPETIME : 0;
}

/* The lock is left to others; the service of the queue space is found, and the branch; 0 or a TPE code. */
static int
operation_go(struct operation *op, struct wire_tx *tx)
{
	const struct service *s;
	int err;

	if ((op->conn = context_away(op->ctx, op->in_tran)) == NULL)
		return TPEOS;
	if ((err = conn_lookup(op->conn, op->service, &op->how, &s)) != 0)
		return err;
	patience_of_service(&op->how, s->blocktime_ms * 1000);
	if (op->data == NULL && op->type != NULL)
		route_dequeue(op->ctx->app, s, op->type->type, op->type->subtype, op->pending.only);
	else if (op->data != NULL && (err = route_choose(op->ctx->app, s, op->type->type, op->type->subtype, op->data, op->n,
	    op->pending.only)) != 0)
		return err;
	return operation_branch(op, s, tx);
}

/* What the end of waiting without an answer means to the caller. */
static int
operation_lost(struct operation *op, int err)
{
	if (op->waits || err != TPESVCERR)
		conn_cancel(op->conn, &op->pending);
	conn_forget(op->conn, &op->pending);
	if (err == TPESVCERR) {
		ulog("LIBTUX_CAT:5060: WARN: the server of %s is gone; what became of a queue operation is unknown",
		    op->service);
		err = TPETIME;
	}
	op->lost = true;
	return err;
}

static void	/* For tests: who works in a caller's transaction. */
point_of_service(const struct operation *op, enum point p)
{
	if (point_dir != NULL && op->in_tran && !op->ctx->tran.initiator)
		point(p);
}

/* Send conn->out, wait, decode.  0: op->reply holds the answer and op->pending.msg its body. */
static int
operation_run(struct operation *op, const struct link_body *body)
{
	struct conn *c = op->conn;
	struct patience waiting;
	bool signalled = false;
	int err;

	point_of_service(op, POINT_SERVICE_CALL);
again:
	waiting = op->how;
	waiting.restart = op->how.restart || !op->waits;
	if ((err = conn_submit(c, op->service, &op->joined, body, &op->how, &op->pending)) == TPETRAN)
		ulog("LIBTUX_CAT:5141: ERROR: a queue operation on %s is refused: %d groups joined its transaction, and "
		     "that is the limit",
		    op->service, WIRE_MAX_GROUPS);
	if (err != 0)
		return err;
	if (op->waits && waiting.deadline_us != LINK_FOREVER)
		waiting.deadline_us += GRACE_US;
	else
		waiting.restart = op->how.restart;
	while ((err = conn_await(c, &op->pending, &waiting, op->wake_fd)) == TPGOTSIG && !op->waits && !signalled) {
		signalled = true;		/* nearly done: better to learn how it ended */
		waiting.restart = true;
		if (deadline_from(SIGNAL_US) < waiting.deadline_us)
			waiting.deadline_us = deadline_from(SIGNAL_US);
	}
	if (err == TPESVCERR && op->repeatable) {
		conn_forget(c, &op->pending);
		goto again;
	}
	if (err != 0)
		return operation_lost(op, signalled && err == TPETIME ? TPGOTSIG : err);
	op->ended = op->commits && wire_txreply_decode(op->pending.msg->head, op->pending.msg->head_len, &op->end) == 0;
	if (!op->ended && wire_qreply_decode(op->pending.msg->head, op->pending.msg->head_len, &op->reply) != 0) {
		ulog(
		    "LIBTUX_CAT:5061: ERROR: the server of %s gave no proper answer to a queue operation", op->service);
		operation_lost(op, TPESYSTEM);
		return TPESYSTEM;
	}
	point_of_service(op, POINT_SERVICE_CALLED);
	return 0;
}

/* Which failures leave the transaction rollback-only. */
static bool
dooms(int err, long diagnostic)
{
	switch (err) {
	case TPEDIAGNOSTIC:
		return diagnostic == QMEABORTED || diagnostic == QMESYSTEM || diagnostic == QMEOS;
	case TPETIME:
	case TPESYSTEM:
	case TPEOS:
	case TPEOTYPE:
		return true;
	default:
		return false;
	}
}

/* The end of an operation, with the lock: the transaction hears of it, the diagnostic is set.  Returns what the call
 * returns. */
static int
operation_end(struct operation *op, TPQCTL *ctl, int err)
{
	long diagnostic = err == TPEDIAGNOSTIC ? op->reply.diagnostic : 0;

	if (op->conn != NULL)
		conn_forget(op->conn, &op->pending);
	if (op->ended || (op->commits && op->lost))
		;	/* it has no transaction any more */
	else if (op->in_tran && op->lost)
		tran_doom_because(op->ctx, err, 0, "queue operation on %s: no answer", op->service);
	else if (op->in_tran && (op->reply.doomed || dooms(err, diagnostic)))
		tran_doom_because(op->ctx, err, 0, "queue operation on %s: %s", op->service,
		    diagnostic == QMEABORTED ? "QMEABORTED" : tpstrerror(err));
	if (op->xa != NULL && op->lost)
		xa_doom(op->xa, XA_RBCOMMFAIL);
	else if (op->xa != NULL && (op->reply.doomed || (dooms(err, diagnostic) && err != TPETIME)))
		xa_doom(op->xa, XA_RBROLLBACK);		/* TPETIME: the caller's time is over, not the branch's */
	if (op->conn != NULL)
		context_back(op->ctx, op->conn, op->in_tran);
	if (op->ended || (op->commits && op->lost))
		tran_forget(op->ctx);
	if (ctl != NULL)
		ctl->diagnostic = diagnostic;
	return context_leave(op->ctx, err);
}

/* Under way no more, the lock is ours again: an answer's error, after the group that joined is known, or why there is none. */
static int
operation_answered(struct operation *op, int err)
{
	if (op->conn != NULL)
		context_again(op->ctx);
	if (op->commits && op->lost)
		return group_committed(op->ctx, NULL, err);
	if (err != 0)
		return err;
	if (op->ended)
		return group_committed(op->ctx, &op->end, 0);
	if (op->in_tran && !tran_join_group(op->ctx, op->reply.group))
		return TPETRAN;
	if (op->reply.error < 0 || op->reply.error >= TPMAXVAL)
		return TPESYSTEM;
	return op->reply.error;
}

static int
arguments_wrong(const char *qspace, const char *qname, long flags, long allowed)
{
	return qspace == NULL || *qspace == '\0' || qname == NULL || (flags & ~allowed) != 0;
}

/* ---- tpenqueue ---- */

static void
enqueue_fill(struct wire_enqueue *m, const struct context *ctx, const TPQCTL *ctl)
{
	memcpy(m->cltid, ctx->cltid, sizeof m->cltid);
	m->appkey = ctx->appkey;
	if (ctl == NULL)
		return;
	m->flags = (uint32_t)(ctl->flags & CONTROL_FLAGS);
	m->urcode = ctl->urcode;
	if (m->flags & (TPQTIME_ABS | TPQTIME_REL))
		m->deq_time = ctl->deq_time;
	if (m->flags & (TPQEXPTIME_ABS | TPQEXPTIME_REL))
		m->exp_time = ctl->exp_time;
	if (m->flags & TPQPRIORITY)
		m->priority = narrow(ctl->priority);
	if (m->flags & TPQDELIVERYQOS)
		m->delivery_qos = narrow(ctl->delivery_qos);
	if (m->flags & TPQREPLYQOS)
		m->reply_qos = narrow(ctl->reply_qos);
	if (m->flags & TPQBEFOREMSGID)
		memcpy(m->msgid, ctl->msgid, sizeof m->msgid);
	if (m->flags & TPQCORRID)
		memcpy(m->corrid, ctl->corrid, sizeof m->corrid);
	if (m->flags & TPQREPLYQ)
		name_copy(m->replyqueue, ctl->replyqueue);
	if (m->flags & TPQFAILUREQ)
		name_copy(m->failurequeue, ctl->failurequeue);
}

/* Can the transaction end with one request to this service?  It is begun here, nothing of it is under way, and its only group is
 * the one that the service is named for. */
static bool
ends_there(const struct operation *op, const char *qspace)
{
	const struct context *ctx = op->ctx;

	return op->in_tran && tran_is_programs(ctx) && ctx->away_in_tran == 0 && calls_open(ctx, true) == 0 &&
	    ctx->tran.groups.n == 1 && strncmp(qspace, "..", 2) == 0 && strcmp(qspace + 2, ctx->tran.groups.name[0]) == 0;
}

enum { ENQUEUE_AGAIN = 1 };	/* it cannot commit with the same request: nothing was done */

static int	/* n bytes of that type */
enqueue(char *qspace, char *qname, TPQCTL *ctl, char *data, const struct typed *type, long n, long flags, bool commits)
{
	struct wire_enqueue m;
	struct operation op;
	struct link_body body = { .p = data };
	int err;

	memset(&op, 0, sizeof op);
	if ((op.ctx = context_enter()) == NULL)
		return -1;
	op.by_xa = xa_working() && (flags & TPNOTRAN) == 0;
	op.in_tran = tran_joins(op.ctx, flags) && !op.by_xa;
	if (commits && !ends_there(&op, qspace)) {
		context_leave(op.ctx, 0);
		return ENQUEUE_AGAIN;
	}
	op.commits = commits;
	if ((err = operation_begin(&op, qspace, flags)) != 0)
		return operation_end(&op, ctl, err);
	if (*qname == '\0') {
		op.reply.diagnostic = QMEBADQUEUE;
		return operation_end(&op, ctl, TPEDIAGNOSTIC);
	}
	memset(&m, 0, sizeof m);
	m.commits = commits;
	name_copy(m.queue, qname);
	enqueue_fill(&m, op.ctx, ctl);
	if (n > 0) {
		m.has_body = 1;
		memcpy(m.type, type->type, sizeof m.type);
		memcpy(m.subtype, type->subtype, sizeof m.subtype);
		body.n = (size_t)n;
		op.type = type;
		op.data = data;
		op.n = n;
	}
	if (op.in_tran)
		tran_to_wire(op.ctx, &m.tx);
	if ((err = operation_go(&op, &m.tx)) == 0) {
		m.reqid = op.pending.reqid = conn_next_reqid(op.conn);
		m.timeout_ms = time_left_ms(op.how.deadline_us);
		wr_reset(&op.conn->out);
		wire_enqueue_encode(&op.conn->out, &m);
		err = operation_run(&op, m.has_body ? &body : NULL);
	}
	err = operation_answered(&op, err);
	if (err == 0 && !op.ended && ctl != NULL && (ctl->flags & TPQMSGID))
		memcpy(ctl->msgid, op.reply.msgid, sizeof ctl->msgid);
	return operation_end(&op, ctl, err);
}

int
tpenqueue(char *qspace, char *qname, TPQCTL *ctl, char *data, long len, long flags)
{
	struct typed type;
	long n;
	int rc, err;

	if (ctl != NULL)
		ctl->diagnostic = 0;	/* what was left in it is not taken for an answer */
	if (arguments_wrong(qspace, qname, flags, CALL_FLAGS))
		return fail(TPEINVAL);
	if ((err = buffer_outgoing(data, len, &type, &n)) != 0)
		return fail(err);
	rc = n <= BODY_MAX ? enqueue(qspace, qname, ctl, data, &type, n, flags, false) : fail(TPEINVAL);
	err = tperrno;
	buffer_sent(data);
	tperrno = err;
	return rc;
}

int
atmiq_enqueue_commit(char *qspace, char *qname, TPQCTL *ctl, char *data, long len, long flags)
{
	int rc = ENQUEUE_AGAIN, err;
	struct typed type;
	long n;

	ctl->diagnostic = 0;
	if (arguments_wrong(qspace, qname, flags, CALL_FLAGS))
		return fail(TPEINVAL);
	if (*qname != '\0' && len <= WITH_COMMIT_MAX && buffer_outgoing(data, len, &type, &n) == 0) {
		rc = n <= WITH_COMMIT_MAX ? enqueue(qspace, qname, ctl, data, &type, n, flags, true) : ENQUEUE_AGAIN;
		err = tperrno;
		buffer_sent(data);
		tperrno = err;
	}
	if (rc != ENQUEUE_AGAIN)
		return rc;
	if (tpenqueue(qspace, qname, ctl, data, len, flags) == -1 && !(tperrno == TPEDIAGNOSTIC && ctl->diagnostic == QMEBADQUEUE))
		return -1;
	return tpcommit(0);
}

/* ---- tpdequeue ---- */

/* Fill what was asked for and supplied; the flags say which that is. */
static void
control_fill(TPQCTL *ctl, const struct wire_qreply *r)
{
	long got = ctl->flags & r->flags & OUTPUTS;
	int i;

	if (ctl->flags & TPQMSGID)
		memcpy(ctl->msgid, r->msgid, sizeof ctl->msgid);
	if (got & TPQPRIORITY)
		ctl->priority = r->priority;
	if (got & TPQCORRID)
		memcpy(ctl->corrid, r->corrid, sizeof ctl->corrid);
	if (got & TPQREPLYQ)
		memcpy(ctl->replyqueue, r->replyqueue, strlen(r->replyqueue) + 1);
	if (got & TPQFAILUREQ)
		memcpy(ctl->failurequeue, r->failurequeue, strlen(r->failurequeue) + 1);
	if (got & TPQDELIVERYQOS)
		ctl->delivery_qos = r->delivery_qos;
	if (got & TPQREPLYQOS)
		ctl->reply_qos = r->reply_qos;
	ctl->flags = (ctl->flags & ~(long)(OUTPUTS | CLEARED)) | got;
	ctl->urcode = r->urcode;
	ctl->appkey = r->appkey;
	for (i = 0; i < 4; i++)
		ctl->cltid.clientdata[i] = r->cltid[i];
}

/* The message is ours: into the caller's buffer and control structure. */
static int
dequeue_take(struct operation *op, TPQCTL *ctl, char **data, long *len, long flags)
{
	const struct link_msg *msg = op->pending.msg;
	size_t n = op->reply.has_body && msg->has_body ? msg->body_len : 0;
	int err;

	*len = 0;
	if (n > 0 &&
	    (err = buffer_incoming(data, op->reply.type, op->reply.subtype, msg->body, n, flags & TPNOCHANGE, len)) != 0)
		return err;
	if (ctl != NULL)
		control_fill(ctl, &op->reply);
	return 0;
}

static int
dequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags, long *retries)
{
	struct wire_dequeue m;
	struct operation op;
	struct typed type;
	int err;

	if (ctl != NULL)
		ctl->diagnostic = 0;
	if (arguments_wrong(qspace, qname, flags, CALL_FLAGS | TPNOCHANGE) || data == NULL || len == NULL ||
	    buffer_look(*data, &type) != 0)
		return fail(TPEINVAL);
	memset(&m, 0, sizeof m);
	if (ctl != NULL)
		m.flags = (uint32_t)(ctl->flags & (retries != NULL ? CONTROL_FLAGS | ATMIQ_QDELAYED : CONTROL_FLAGS));
	memset(&op, 0, sizeof op);
	op.type = &type;
	if ((op.ctx = context_enter()) == NULL)
		return -1;
	op.repeatable = (m.flags & TPQPEEK) != 0;
	op.waits = (m.flags & TPQWAIT) != 0;
	op.by_xa = xa_working() && (flags & TPNOTRAN) == 0 && !op.repeatable;
	op.in_tran = tran_joins(op.ctx, flags) && !op.repeatable && !op.by_xa;
	if ((err = operation_begin(&op, qspace, flags)) != 0)
		return operation_end(&op, ctl, err);
	if (*qname == '\0') {
		op.reply.diagnostic = QMEBADQUEUE;
		return operation_end(&op, ctl, TPEDIAGNOSTIC);
	}
	name_copy(m.queue, qname);
	if (m.flags & TPQGETBYMSGID)
		memcpy(m.msgid, ctl->msgid, sizeof m.msgid);
	if (m.flags & TPQGETBYCORRID)
		memcpy(m.corrid, ctl->corrid, sizeof m.corrid);
	if (flags & TPNOCHANGE) {
		m.nochange = 1;
		memcpy(m.type, type.type, sizeof m.type);
		memcpy(m.subtype, type.subtype, sizeof m.subtype);
	}
	if (op.in_tran)
		tran_to_wire(op.ctx, &m.tx);
	if ((err = operation_go(&op, &m.tx)) == 0) {
		m.reqid = op.pending.reqid = conn_next_reqid(op.conn);
		m.timeout_ms = time_left_ms(op.how.deadline_us);
		wr_reset(&op.conn->out);
		wire_dequeue_encode(&op.conn->out, &m);
		err = operation_run(&op, NULL);
	}
	if ((err = operation_answered(&op, err)) == 0)
		err = dequeue_take(&op, ctl, data, len, flags);
	if (err == 0 && retries != NULL)
		*retries = op.reply.retries;
	return operation_end(&op, ctl, err);
}

int
tpdequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags)
{
	return dequeue(qspace, qname, ctl, data, len, flags, NULL);
}

int
atmiq_dequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags, long *retries)
{
	return dequeue(qspace, qname, ctl, data, len, flags, retries);
}

/* ---- waiting for several queues ---- */

static int	/* which of them the answer names; -1: none */
named(const struct wire_qwait *m, const struct wire_qreply *reply)
{
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->queue[i], reply->queue) == 0)
			return i;
	return -1;
}

int
atmiq_qwait(char *qspace, char **queues, int n, long timeout_ms, int wake_fd, long *diagnostic, int *wrong)
{
	struct wire_qwait m;
	struct operation op;
	int err, found = -1;

	if (diagnostic != NULL)
		*diagnostic = 0;
	if (wrong != NULL)
		*wrong = -1;
	if (qspace == NULL || queues == NULL || n < 1 || n > WIRE_MAX_QWAIT)
		return fail(TPEINVAL);
	memset(&op, 0, sizeof op);
	if ((op.ctx = context_enter()) == NULL)
		return -1;
	op.waits = op.repeatable = true;
	if ((err = operation_begin(&op, qspace, TPNOTIME)) != 0)
		return operation_end(&op, NULL, err);
	op.wake_fd = wake_fd != -1 ? wake_fd : svr_wake_fd();
	memset(&m, 0, sizeof m);
	m.n = (uint16_t)n;
	for (int i = 0; i < n; i++)
		name_copy(m.queue[i], queues[i]);
	if ((err = operation_go(&op, NULL)) == 0) {
		op.how.deadline_us = clock_mono_us() + timeout_ms * 1000;
		m.reqid = op.pending.reqid = conn_next_reqid(op.conn);
		m.timeout_ms = time_left_ms(op.how.deadline_us);
		wr_reset(&op.conn->out);
		wire_qwait_encode(&op.conn->out, &m);
		err = operation_run(&op, NULL);
	}
	err = operation_answered(&op, err);
	if (err == 0 && (found = named(&m, &op.reply)) == -1)
		err = TPETIME;
	if (err == TPEDIAGNOSTIC && diagnostic != NULL)
		*diagnostic = op.reply.diagnostic;
	else if (err == TPETIME && op.reply.error == TPETIME && diagnostic != NULL)
		*diagnostic = QMENOMSG;
	if (wrong != NULL && err == TPEDIAGNOSTIC)
		*wrong = named(&m, &op.reply);
	return operation_end(&op, NULL, err) == 0 ? found : -1;
}
