#include "tmqueue.h"

#include <string.h>

#include "clock.h"
#include "gtrid.h"
#include "point.h"
#include "quiet.h"

#define MALFORMED 1	/* of a request; QME codes are negative */
#define DAY_US (INT64_C(86400) * 1000000)
#define LONG_US 1000	/* a caller that waited this long may have left, which is looked at before it gets a message */

static bool
fatal(int rc)
{
	return rc == QMESYSTEM || rc == QMEOS;
}

static void
log_bad_queue(const struct tmq *t, const char *queue, const char *what)
{
	quiet_log("QM_CAT:1351: ERROR: TMQUEUE %s: no queue \"%s\" in queue space %s", what, queue, t->space);
}

static void	/* What is logged of a request belongs to its transaction; dispatch() ends that. */
log_in(const struct wire_tx *tx)
{
	unsigned long words[3];

	if (tx->gtrid_len == 0)
		return;
	gtrid_words(tx->gtrid, tx->gtrid_len, words);
	ulog_gtrid(words);
}

/* The answer to a queue request, as far as errors go. */
static struct wire_qreply
qreply_of(const struct tmq *t, uint64_t reqid, bool has_joined, struct verdict v)
{
	struct wire_qreply r = { .reqid = reqid, .error = v.error, .diagnostic = v.diagnostic };

	if (has_joined)		/* even a refusal may have opened the branch: the caller must end it */
		memcpy(r.group, t->group, sizeof r.group);
	r.doomed = v.doomed && (has_joined || v.stranger);
	return r;
}

/* Is there a branch to end?  Not where the space had no room for one more transaction: the caller may try again. */
static bool
joined(const struct wire_tx *tx, const struct branch *b, const struct verdict *v)
{
	return tx->gtrid_len != 0 && !v->stranger && (b != NULL || v->doomed);
}

static void
answer_queue(struct tmq *t, const struct link_peer *to, uint64_t reqid, bool has_joined, struct verdict v,
    struct qmsg *msg)
{
	struct wire_qreply r = qreply_of(t, reqid, has_joined, v);

	reply_queue(&t->replies, to, &r, msg, false);
}

/* --- requests --- */

static struct qmsg_in
input_of(const struct wire_enqueue *e, const struct link_msg *m)
{
	struct qmsg_in in = {
		.flags = e->flags, .deq_time = e->deq_time, .exp_time = e->exp_time, .priority = e->priority,
		.delivery_qos = e->delivery_qos, .reply_qos = e->reply_qos,
		.replyqueue = e->replyqueue, .failurequeue = e->failurequeue,
		.urcode = e->urcode, .appkey = e->appkey, .type = e->type, .subtype = e->subtype,
		.has_body = m->has_body, .body = m->body, .body_len = m->body_len,
	};

	memcpy(in.msgid, e->msgid, sizeof in.msgid);
	memcpy(in.corrid, e->corrid, sizeof in.corrid);
	memcpy(in.cltid, e->cltid, sizeof in.cltid);
	return in;
}

bool
tmq_is_ending(const struct tmq *t, const struct branch_id *id)
{
	const struct branch *b = qspace_branch_find(t->qs, id);

	return b != NULL && (qspace_branch_state(b) == BR_COMMITTING || qspace_branch_state(b) == BR_ROLLING_BACK);
}

static int
answer_end(struct tmq *t, const struct link_peer *to, uint64_t reqid, const struct branch_id *id, int error, int outcome)
{
	if (tmq_is_ending(t, id))
		return job_ending(&t->jobs, to, reqid, id, error, outcome) != NULL ? 0 : QMEOS;
	reply_tx(&t->replies, to, reqid, error, outcome);
	return 0;
}

/* An enqueue that commits was stored, or has no queue to go to: that is the transaction's end, and what its caller hears of. */
static int
commit_with(struct tmq *t, const struct link_peer *to, const struct wire_enqueue *e)
{
	struct wire_txend end = { .reqid = e->reqid, .op = WIRE_TX_COMMIT, .tx = e->tx };
	struct branch_id id = tx_id(&e->tx);
	struct tx_answer a = { TPEPROTO, WIRE_OUT_NONE };
	int rc;

	if (!coordinator_has(t->coordinator, &id) && (rc = txs_end(t->txs, &end, NULL, &a)) != 0)
		return rc;
	return answer_end(t, to, e->reqid, &id, a.error, a.outcome);
}

/* Store it, unless *v says already why not, and answer. */
static int
enqueue_now(struct tmq *t, const struct link_peer *to, const struct wire_enqueue *e, const struct qmsg_in *in,
    struct branch *b, struct verdict v, bool *stored)
{
	struct wire_qreply r;
	uint8_t msgid[TMMSGIDLEN] = { 0 };
	int rc;

	*stored = false;
	if (v.error == 0) {
		if (fatal(rc = qspace_enqueue(t->qs, b, e->queue, in, msgid)))
			return rc;
		if (rc == QMEBADQUEUE)
			log_bad_queue(t, e->queue, "enqueue");
		if (rc == 0 && b == NULL)
			actions_event(t->actions, e->queue, msgid, e->flags & TPQCORRID ? e->corrid : NULL);
		*stored = rc == 0;
		v = verdict_of(rc, b);
	}
	if (fatal(v.diagnostic))
		return v.diagnostic;
	if (e->commits && !v.doomed && (v.error == 0 || v.diagnostic == QMEBADQUEUE))
		return commit_with(t, to, e);
	r = qreply_of(t, e->reqid, joined(&e->tx, b, &v), v);
	if (v.error == 0) {
		r.flags = TPQMSGID;
		memcpy(r.msgid, msgid, sizeof r.msgid);
	}
	reply_queue(&t->replies, to, &r, NULL, false);
	return 0;
}

static int
enqueue(struct tmq *t, struct link_msg *m)
{
	struct wire_enqueue e;
	struct branch *b = NULL;
	struct verdict v = { 0 };
	struct spool *sp = NULL;
	struct qmsg_in in;
	bool stored;
	int rc;

	if (wire_enqueue_decode(m->head, m->head_len, &e) != 0 || (e.has_body != 0) != m->has_body)
		return MALFORMED;
	log_in(&e.tx);
	if (e.tx.gtrid_len != 0)
		b = txs_join(t->txs, &e.tx, m, &v);
	in = input_of(&e, m);
	if (v.error == 0 && qspace_needs_spool(&in)) {
		if ((rc = qspace_spool_begin(t->qs, e.queue, &in, &sp)) == 0 && job_enqueue(&t->jobs, m, &e, sp) != NULL)
			return 0;
		if (rc == 0) {
			qspace_spool_drop(sp);
			rc = QMEOS;
		}
		if (fatal(rc))
			return rc;
		if (rc == QMEBADQUEUE)
			log_bad_queue(t, e.queue, "enqueue");
		v = verdict_of(rc, b);
		if (fatal(v.diagnostic))
			return v.diagnostic;
	}
	return enqueue_now(t, &m->peer, &e, &in, b, v, &stored);
}

static int	/* *f: it is large, and its body is still to be read */
take(struct tmq *t, struct branch *b, const struct wire_dequeue *d, struct qmsg **msg, struct fetch **f)
{
	struct qselect sel = {
		.flags = d->flags & (TPQGETBYMSGID | TPQGETBYCORRID | TPQPEEK | WIRE_QDELAYED),
		.only_type = d->nochange != 0, .type = d->type, .subtype = d->subtype,
	};

	memcpy(sel.msgid, d->msgid, sizeof sel.msgid);
	memcpy(sel.corrid, d->corrid, sizeof sel.corrid);
	return qspace_dequeue_begin(t->qs, b, d->queue, &sel, msg, f);
}

static int
read_later(struct tmq *t, const struct link_peer *to, const struct wire_dequeue *d, struct fetch *f)
{
	if (job_dequeue(&t->jobs, to, d, f) != NULL)
		return 0;
	qspace_fetch_drop(f);
	return QMEOS;
}

/* How long a dequeue may wait, and what its caller hears then. */
static int64_t
wait_until(const struct tmq *t, const struct wire_dequeue *d, bool in_tx, enum action_end *end)
{
	int64_t limit = t->timeout_us, caller = (int64_t)d->timeout_ms * 1000;

	*end = ACTION_END_SERVER;
	if (in_tx) {
		*end = ACTION_END_TX;
		limit = d->tx.timeout_ms != 0 ? (int64_t)d->tx.timeout_ms * 1000 : DAY_US;
	}
	if (caller != 0 && caller < limit) {
		*end = ACTION_END_CALLER;
		limit = caller;
	}
	return clock_mono_us() + limit;
}

static size_t	/* as many dequeues may wait */
actions_of(const struct tmq *t)
{
	long more = qspace_params(t->qs)->actions;

	return ACTION_BASE + (more > 0 ? (size_t)more : 0);
}

static bool
is_long_ago(int64_t since_us)
{
	return clock_mono_us() - since_us >= LONG_US;
}

static bool	/* A caller killed in its wait must not get, and thereby lose, a message. */
caller_is_gone(const struct tmq *t, const struct link_peer *peer)
{
	return t->left != NULL && t->left(t->send_arg, peer);
}

static int	/* *again: it has no answer yet, and is to be asked in the next batch */
dequeue(struct tmq *t, const struct link_msg *m, struct wire_dequeue *d, bool *again)
{
	struct branch *b = NULL;
	struct verdict v = { 0 };
	struct qmsg *msg = NULL;
	struct fetch *f = NULL;
	enum action_end end;
	int64_t until;
	int rc;

	*again = false;
	if (wire_dequeue_decode(m->head, m->head_len, d) != 0)
		return MALFORMED;
	if ((rc = batch_serve_waiting(t)) != 0)
		return rc;
	if (d->flags & TPQPEEK)
		d->tx.gtrid_len = 0;	/* peeking is never part of a transaction */
	log_in(&d->tx);
	if (d->tx.gtrid_len != 0)
		b = txs_join(t->txs, &d->tx, m, &v);
	if (v.error == 0) {
		/* When this batch has no room to serve all who wait, one more does not go ahead of them. */
		const char *hot;
		bool behind = (d->flags & TPQWAIT) && actions_hot(t->actions, &hot) != NULL;

		rc = behind ? QMENOMSG : take(t, b, d, &msg, &f);
		if (rc == QMENOMSG && (d->flags & TPQWAIT)) {
			struct action *a;

			until = wait_until(t, d, d->tx.gtrid_len != 0, &end);
			actions_limit(t->actions, actions_of(t));
			if ((a = action_wait(t->actions, &m->peer, d, until, end)) != NULL) {
				if (behind)
					action_try(t->actions, a);
				return 0;
			}
			quiet_log_each_minute("QM_CAT:1612: ERROR: TMQUEUE: queue space %s: no more room: %zu of %zu actions are in "
			    "use: a dequeue that waits on queue %s is refused (qspacechange -A adds actions)", t->space,
			    actions_count(t->actions), actions_of(t), d->queue);
			rc = QMENOSPACE;
		}
		if (fatal(rc))
			return rc;
		if (rc == QSPACE_AGAIN) {
			*again = true;
			return 0;
		}
		if (rc == QMEBADQUEUE)
			log_bad_queue(t, d->queue, "dequeue");
		if (f != NULL)
			return read_later(t, &m->peer, d, f);
		v = verdict_of(rc, b);
	}
	if (fatal(v.diagnostic))
		return v.diagnostic;
	answer_queue(t, &m->peer, d->reqid, joined(&d->tx, b, &v), v, msg);
	return 0;
}

static int
dequeue_first(struct tmq *t, struct link_msg *m)
{
	struct wire_dequeue d;
	bool again;
	int rc = dequeue(t, m, &d, &again);

	return rc == 0 && again && job_again(&t->jobs, m, d.reqid, &d.tx) == NULL ? QMEOS : rc;
}

static int
dequeue_again(struct tmq *t, struct job *j)
{
	struct wire_dequeue d;
	bool again = false;
	int rc = 0;

	if (!caller_is_gone(t, &j->peer))
		rc = dequeue(t, &j->m, &d, &again);
	ulog_gtrid(NULL);
	if (rc == 0 && !again)
		job_done(j);
	return rc;
}

static int
qwait(struct tmq *t, const struct link_msg *m)
{
	static struct wire_qwait w;	/* large; one thread */
	struct wire_qreply r = { 0 };
	int64_t limit;

	if (wire_qwait_decode(m->head, m->head_len, &w) != 0)
		return MALFORMED;
	r.reqid = w.reqid;
	for (size_t i = 0; i < w.n; i++) {
		bool has = qspace_has_eligible(t->qs, w.queue[i]);

		if (!has && qspace_queue_get(t->qs, w.queue[i], NULL, NULL) != 0) {
			r.error = TPEDIAGNOSTIC;	/* not logged: who watches asks again and again, and tells it once */
			r.diagnostic = QMEBADQUEUE;
		} else if (!has)
			continue;
		memcpy(r.queue, w.queue[i], sizeof r.queue);
		reply_queue(&t->replies, &m->peer, &r, NULL, false);
		return 0;
	}
	limit = w.timeout_ms != 0 ? (int64_t)w.timeout_ms * 1000 : DAY_US;
	if (action_watch(t->actions, &m->peer, &w, clock_mono_us() + limit) != NULL)
		return 0;
	r.error = TPEDIAGNOSTIC;
	r.diagnostic = QMENOSPACE;
	quiet_log("QM_CAT:1612: ERROR: TMQUEUE: no room for one more watcher of queues in space %s", t->space);
	reply_queue(&t->replies, &m->peer, &r, NULL, false);
	return 0;
}

static int
cancel(struct tmq *t, const struct link_msg *m)
{
	struct wire_cancel c;

	if (wire_cancel_decode(m->head, m->head_len, &c) != 0)
		return MALFORMED;
	action_cancel(t->actions, &m->peer, c.target);
	job_cancel(&t->jobs, &m->peer, c.target);
	return 0;
}

/* --- the end of a transaction --- */

bool
tmq_serves(const struct tmq *t, const char *group)
{
	for (int i = 0; i < t->ours.n; i++)
		if (strcmp(t->ours.name[i], group) == 0)
			return true;
	return false;
}

static void	/* All that joined, but for this server, and each once. */
others_of(const struct tmq *t, const struct wire_groups *all, struct wire_groups *others)
{
	int k;

	*others = (struct wire_groups){ 0 };
	for (int i = 0; i < all->n; i++) {
		for (k = 0; k < others->n && strcmp(others->name[k], all->name[i]) != 0; k++)
			;
		if (k == others->n && !tmq_serves(t, all->name[i]))
			memcpy(others->name[others->n++], all->name[i], WIRE_GROUP);
	}
}

/* What only the coordinator knows, or may be asked while it decides.  *later: the answer comes when there is one. */
static int
coordinate(struct tmq *t, const struct link_msg *m, const struct wire_txend *e, struct tx_answer *a, bool *later)
{
	struct branch_id id = tx_id(&e->tx);
	struct wire_groups others;
	int rc;

	*later = false;
	if (e->op == WIRE_TX_QUERY) {
		point(POINT_QUERY_RECEIVED);
		*a = (struct tx_answer){ 0, coordinator_query(t->coordinator, &id) };
		return 0;
	}
	if (e->op == WIRE_TX_ABORT && (*later = coordinator_recall(t->coordinator, &m->peer, e)))
		return 0;
	if (e->op == WIRE_TX_COMMIT && e->groups.n > 1) {
		others_of(t, &e->groups, &others);
		*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
		if (!tmq_serves(t, e->groups.name[0]))
			return 0;
		if (others.n > 0) {
			point(POINT_COMMIT_RECEIVED);
			rc = coordinator_begin(t->coordinator, &m->peer, e, &others);
			*later = rc == 0;
			return rc == TPEPROTO ? 0 : rc;
		}
	}
	if (coordinator_has(t->coordinator, &id)) {
		*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
		return 0;
	}
	return txs_end(t->txs, e, m, a);
}

static int	/* What follows from an answer: who is to be watched, or asked. */
follow(struct tmq *t, const struct link_msg *m, const struct wire_txend *e, const struct tx_answer *a)
{
	struct branch *b = txs_find(t->txs, &e->tx);
	struct branch_id id = tx_id(&e->tx);

	if (b == NULL)
		return 0;
	if (e->op == WIRE_TX_PREPARE && a->outcome == WIRE_OUT_PREPARED && qspace_branch_coordinator(b)[0] != '\0')
		doubt_note(t->doubts, &id, qspace_branch_coordinator(b), &m->peer);
	else if (e->op == WIRE_TX_ABORT && a->error == TPEPROTO)
		doubt_hurry(t->doubts, &id);	/* its initiator is in trouble, so perhaps the coordinator is */
	else if ((e->op == WIRE_TX_START || e->op == WIRE_TX_JOIN) && a->error == 0 && id.gtrid[0] == WIRE_GTRID_XID)
		return orphan_note(t->orphans, &id, &m->peer);
	return 0;
}

static int
txend(struct tmq *t, const struct link_msg *m)
{
	struct branch_id id;
	struct tx_answer a;
	struct wire_txend e;
	bool later;
	int rc;

	if (wire_txend_decode(m->head, m->head_len, &e) != 0 || e.tx.gtrid_len == 0)
		return MALFORMED;
	log_in(&e.tx);
	if ((rc = coordinate(t, m, &e, &a, &later)) != 0 || later)
		return rc;
	if ((rc = follow(t, m, &e, &a)) != 0)
		return rc;
	id = tx_id(&e.tx);
	return answer_end(t, &m->peer, e.reqid, &id, a.error, a.outcome);
}

static void
txend_failed(struct tmq *t, const struct link_msg *m, const struct wire_txend *e)
{
	struct wire_groups others;
	struct tx_answer a;

	others_of(t, &e->groups, &others);
	if (e->op == WIRE_TX_COMMIT && others.n > 0 && coordinator_refuse(t->coordinator, e, &others))
		return;
	a = e->op == WIRE_TX_QUERY ? (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE } : txs_end_failed(t->txs, e);
	reply_tx(&t->replies, &m->peer, e->reqid, a.error, a.outcome);
}

/* A request that cannot be served whatever the space holds: an answer in the words of its kind. */
static void
refuse(struct tmq *t, const struct link_msg *m, enum wire_kind kind, uint64_t reqid)
{
	const struct link_peer *to = &m->peer;
	char who[128];

	link_msg_peer_name(m, who, sizeof who);
	quiet_log("QM_CAT:1613: WARN: TMQUEUE: %s sent a request of kind %d that is malformed or not for a queue manager",
	    who, (int)kind);
	switch (kind) {
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
	case WIRE_QWAIT:
		answer_queue(t, to, reqid, false, (struct verdict){ .error = TPEPROTO }, NULL);
		break;
	case WIRE_TXEND:
		reply_tx(&t->replies, to, reqid, TPEPROTO, WIRE_OUT_NONE);
		break;
	case WIRE_CALL:
		reply_service(&t->replies, to, reqid, TPESVCERR);
		break;
	default:
		break;	/* replies, and what has no reply */
	}
}

bool
dispatch_is_admin(const struct link_msg *m)
{
	enum wire_kind kind;
	uint64_t reqid;

	return wire_peek(m->head, m->head_len, &kind, &reqid) == 0 && kind == WIRE_ADMIN;
}

int
dispatch(struct tmq *t, struct link_msg *m)
{
	enum wire_kind kind;
	uint64_t reqid;
	struct job *j;
	char who[128];
	int rc = MALFORMED;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0) {
		link_msg_peer_name(m, who, sizeof who);
		quiet_log("QM_CAT:1613: WARN: TMQUEUE: %s sent %zu bytes that are no request of wire version %d; dropped", who,
		    m->head_len, WIRE_VERSION);
		return 0;
	}
	if (kind != WIRE_CANCEL && t->jobs.all != NULL && (j = job_of(&t->jobs, &m->peer)) != NULL)
		return job_put_behind(j, m) == 0 ? 0 : QMEOS;
	switch (kind) {
	case WIRE_ENQUEUE: rc = enqueue(t, m); break;
	case WIRE_DEQUEUE: rc = dequeue_first(t, m); break;
	case WIRE_QWAIT: rc = qwait(t, m); break;
	case WIRE_CANCEL: rc = cancel(t, m); break;
	case WIRE_TXEND: rc = txend(t, m); break;
	default: break;
	}
	if (rc == MALFORMED) {
		refuse(t, m, kind, reqid);
		rc = 0;
	}
	ulog_gtrid(NULL);
	return rc;
}

void
dispatch_failed(struct tmq *t, const struct link_msg *m, int rc)
{
	struct wire_enqueue e;
	struct wire_dequeue d;
	static struct wire_qwait w;
	struct wire_txend x;
	struct branch *b = NULL;
	bool in_tx;

	if (wire_enqueue_decode(m->head, m->head_len, &e) == 0 && e.commits) {
		x = (struct wire_txend){ .reqid = e.reqid, .op = WIRE_TX_COMMIT, .tx = e.tx };
		txend_failed(t, m, &x);
	} else if (wire_enqueue_decode(m->head, m->head_len, &e) == 0) {
		in_tx = e.tx.gtrid_len != 0;
		if (in_tx)
			b = txs_find(t->txs, &e.tx);
		answer_queue(t, &m->peer, e.reqid, in_tx, verdict_of(rc, b), NULL);
	} else if (wire_dequeue_decode(m->head, m->head_len, &d) == 0) {
		in_tx = d.tx.gtrid_len != 0 && (d.flags & TPQPEEK) == 0;
		if (in_tx)
			b = txs_find(t->txs, &d.tx);
		answer_queue(t, &m->peer, d.reqid, in_tx, verdict_of(rc, b), NULL);
	} else if (wire_txend_decode(m->head, m->head_len, &x) == 0)
		txend_failed(t, m, &x);
	else if (wire_qwait_decode(m->head, m->head_len, &w) == 0)
		answer_queue(t, &m->peer, w.reqid, false, verdict_of(rc, NULL), NULL);
}

/* --- waiting operations --- */

int
dispatch_action(struct tmq *t, struct action *a, const char *queue)
{
	bool in_tx = !a->watch && a->req.tx.gtrid_len != 0, waited = is_long_ago(a->since_us);
	struct verdict v = { 0 };
	struct wire_qreply answer;
	struct branch *b = NULL;
	struct qmsg *msg = NULL;
	struct fetch *f = NULL;
	int rc;

	if (a->watch) {
		struct wire_qreply r = { .reqid = a->reqid };

		memcpy(r.queue, queue, strlen(queue) + 1);
		reply_queue(&t->replies, &a->peer, &r, NULL, false);
		action_served(t->actions, a);
		return 0;
	}
	if (waited && caller_is_gone(t, &a->peer)) {
		action_served(t->actions, a);
		return 0;
	}
	if (in_tx && (b = txs_find(t->txs, &a->req.tx)) == NULL)
		v = (struct verdict){ .error = TPETIME, .doomed = true };	/* rolled back while it waited */
	else {
		rc = take(t, b, &a->req, &msg, &f);
		if (rc == QMENOMSG) {
			actions_cool(t->actions, a);
			return 0;
		}
		if (rc == QSPACE_AGAIN) {	/* others are not to wait for that */
			actions_cool(t->actions, a);
			t->again[t->n_again++] = (struct named){ a->peer, a->reqid };
			return 0;
		}
		if (fatal(rc))
			return rc;
		if (f != NULL) {
			if ((rc = read_later(t, &a->peer, &a->req, f)) == 0)
				action_served(t->actions, a);
			return rc;
		}
		v = verdict_of(rc, b);
	}
	answer = qreply_of(t, a->reqid, in_tx, v);
	reply_queue(&t->replies, &a->peer, &answer, msg, waited);
	action_served(t->actions, a);
	return 0;
}

void
dispatch_action_failed(struct tmq *t, struct action *a, int rc)
{
	bool in_tx = a->req.tx.gtrid_len != 0;

	answer_queue(t, &a->peer, a->reqid, in_tx, verdict_of(rc, in_tx ? txs_find(t->txs, &a->req.tx) : NULL), NULL);
	action_served(t->actions, a);
}

void
dispatch_action_end(struct tmq *t, struct action *a)
{
	bool in_tx = !a->watch && a->req.tx.gtrid_len != 0;
	struct verdict v = { .error = TPETIME, .doomed = a->end == ACTION_END_TX };

	if (a->end == ACTION_END_SERVER)
		v = (struct verdict){ .error = TPEDIAGNOSTIC, .diagnostic = QMENOMSG };
	answer_queue(t, &a->peer, a->reqid, in_tx, v, NULL);
	action_served(t->actions, a);
}

/* --- jobs --- */

static struct verdict	/* Its transaction may have ended meanwhile. */
job_branch(struct tmq *t, const struct job *j, struct branch **b)
{
	*b = j->in_tx ? txs_find(t->txs, &j->tx) : NULL;
	return j->in_tx && *b == NULL ? (struct verdict){ .error = TPETIME, .doomed = true } : (struct verdict){ 0 };
}

static int
job_write(struct tmq *t, struct job *j, size_t bytes)
{
	struct qmsg_in in = input_of(&j->e, &j->m);
	struct verdict v;
	struct branch *b;
	int rc;

	rc = qspace_spool_write(j->spool, j->m.body, bytes);
	if (fatal(rc))
		return rc;
	if (rc == 0 && !qspace_spool_full(j->spool))
		return 0;
	v = job_branch(t, j, &b);
	if (rc != 0 && v.error == 0)
		v = verdict_of(rc, b);
	in.spool = j->spool;
	if ((rc = enqueue_now(t, &j->peer, &j->e, &in, b, v, &j->stored)) == 0)
		job_done(j);
	return rc;
}

static int
job_read(struct tmq *t, struct job *j, size_t bytes)
{
	struct qmsg *msg = NULL;
	struct verdict v;
	struct branch *b;
	int rc;

	if ((rc = qspace_fetch_read(j->fetch, bytes)) != 0)
		return rc;
	if (!qspace_fetch_whole(j->fetch))
		return 0;
	if (!caller_is_gone(t, &j->peer)) {
		v = job_branch(t, j, &b);
		if (v.error == 0 && (rc = qspace_fetch_take(j->fetch, &msg)) != 0)
			return rc;
		answer_queue(t, &j->peer, j->reqid, j->in_tx, v, msg);
	}
	job_done(j);
	return 0;
}

int
dispatch_job(struct tmq *t, struct job *j, size_t bytes)
{
	if (j->done || (j->ending && tmq_is_ending(t, &j->branch)))
		return 0;
	if (j->ending) {
		reply_tx(&t->replies, &j->peer, j->reqid, j->error, j->outcome);
		job_done(j);
		return 0;
	}
	if (j->spool != NULL)
		return job_write(t, j, bytes);
	return j->fetch != NULL ? job_read(t, j, bytes) : dequeue_again(t, j);
}

void
dispatch_job_failed(struct tmq *t, struct job *j, int rc)
{
	struct branch *b;
	struct verdict v = job_branch(t, j, &b);

	if (j->ending)			/* it is decided all the same */
		reply_tx(&t->replies, &j->peer, j->reqid, j->error, j->outcome);
	else
		answer_queue(t, &j->peer, j->reqid, j->in_tx, v.error == 0 ? verdict_of(rc, b) : v, NULL);
	job_done(j);
}
