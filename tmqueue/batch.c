#include "tmqueue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "clock.h"
#include "point.h"
#include "quiet.h"
#include "ulog.h"

#define RETRY_US 100000
#define LOOK_AGAIN_US 1000000
#define BATCH_DECIDED 256		/* transactions over several groups that end in one batch */
enum { CALLER_LEFT = 1, LOOKS = 4, PEER_BITS = 1024 };

static void
on_eligible(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	struct tmq *t = arg;

	actions_event(t->actions, queue, msgid, corrid);
}

/* --- what coordinator and doubts need --- */

static void	/* An answer that no batch holds back: what it rests on is on disk. */
say(void *arg, const struct branch_id *id, const struct link_peer *to, uint64_t reqid, int error, int outcome)
{
	struct wire_txreply m = { .reqid = reqid, .error = error, .outcome = (uint8_t)outcome };
	struct tmq *t = arg;
	struct wr w = { 0 };
	struct job *j;

	if (tmq_is_ending(t, id) && (j = job_ending(&t->jobs, to, reqid, id, error, outcome)) != NULL) {
		j->fresh = false;	/* what it rests on is on disk */
		return;
	}
	wire_txreply_encode(&w, &m);
	point(POINT_COMMIT_REPLY);
	if (wr_ok(&w) && t->send(t->send_arg, to, w.p, w.len, NULL) != LINK_OK)
		quiet_log("QM_CAT:1607: WARN: TMQUEUE: a caller went away before its answer; what it asked for is done");
	point(POINT_COMMIT_REPLIED);
	wr_free(&w);
}

static bool
is_ours(void *arg, const char *group)
{
	return tmq_serves(arg, group);
}

static int
is_decided(void *arg, const struct branch_id *id)
{
	return coordinator_query(((struct tmq *)arg)->coordinator, id);
}

static bool
has_left(void *arg, const struct link_peer *peer)
{
	struct tmq *t = arg;

	return t->left != NULL && t->left(t->send_arg, peer);
}

void
tmq_alias(struct tmq *t, const char *group)
{
	if (t->ours.n < WIRE_MAX_GROUPS && !tmq_serves(t, group))
		memcpy(t->ours.name[t->ours.n++], group, strnlen(group, WIRE_GROUP - 1));
}

static int	/* 0 or -1 */
transactions_init(struct tmq *t)
{
	struct coordinator_voice voice = { t, say };
	struct doubts_ask ask = { t, is_ours, is_decided, has_left };

	if ((t->txs = txs_new(t->qs, clock_now_us())) == NULL || (t->letters = letters_new(t->group)) == NULL ||
	    (t->coordinator = coordinator_new(t->qs, t->txs, t->letters, &voice)) == NULL ||
	    (t->doubts = doubts_new(t->qs, t->txs, t->letters, &ask)) == NULL || (t->orphans = orphans_new(t->qs)) == NULL)
		return -1;
	return coordinator_load(t->coordinator) == 0 && doubts_load(t->doubts) == 0 ? 0 : -1;
}

int
tmq_init(struct tmq *t, struct qspace *qs, const char *group, long timeout_s, reply_send_fn *send, void *send_arg)
{
	const struct qspace_params *p = qspace_params(qs);

	memset(t, 0, sizeof *t);
	t->qs = qs;
	t->space = p->name;
	memcpy(t->group, group, strnlen(group, sizeof t->group - 1));
	t->timeout_us = (int64_t)timeout_s * 1000000;
	t->send = send;
	t->send_arg = send_arg;
	t->actions = actions_new(ACTION_BASE + (p->actions > 0 ? (size_t)p->actions : 0));
	tmq_alias(t, t->group);
	if (t->actions == NULL || transactions_init(t) != 0 ||
	    replies_init(&t->replies, BATCH_MAX + BATCH_SERVED + JOBS_ACTIVE) != 0) {
		tmq_done(t);
		return -1;
	}
	qspace_on_eligible(qs, on_eligible, t);
	return 0;
}

void
tmq_done(struct tmq *t)
{
	struct unsent *u;

	while ((u = t->unsent) != NULL) {
		DL_DELETE(t->unsent, u);
		qmsg_free(u->msg);
		free(u);
	}
	jobs_free(&t->jobs);
	actions_free(t->actions);
	coordinator_free(t->coordinator);
	doubts_free(t->doubts);
	orphans_free(t->orphans);
	letters_free(t->letters);
	txs_free(t->txs);
	replies_free(&t->replies);
	t->actions = NULL;
	t->txs = NULL;
	t->coordinator = NULL;
	t->doubts = NULL;
	t->orphans = NULL;
	t->letters = NULL;
}

static int
begin(struct tmq *t)
{
	int rc = qspace_batch_begin(t->qs);

	t->tries = 0;
	for (; t->n_again > 0; t->n_again--)
		action_try_named(t->actions, &t->again[t->n_again - 1].peer, t->again[t->n_again - 1].reqid);
	t->batch_open = rc == 0;
	return rc;
}

static int
commit(struct tmq *t)
{
	int rc;

	point_batch(POINT_FLUSH);
	if ((rc = qspace_batch_commit(t->qs)) == 0) {
		t->batch_open = false;
		point_batch(POINT_FLUSHED);
	}
	if (rc == QSPACE_UNKNOWN) {
		/* Run again it might happen twice, refused it might have happened.  The next start reads it from the disk. */
		ulog("QM_CAT:1630: ERROR: TMQUEUE: space %s: a flush failed, and so did finding out what is on disk: it ends, lest it "
		    "tells what is not true", t->space);
		_exit(1);
	}
	return rc;
}

/* --- messages whose taker was gone before the first byte of the answer --- */

static void
unsent_lost(const struct tmq *t, const struct unsent *u)
{
	ulog("QM_CAT:1631: ERROR: TMQUEUE: a message of queue %s in space %s, correlation id \"%.32s\", was taken by a caller that "
	    "went away, and could not be put back: it is lost", u->msg->queue, t->space,
	    u->msg->flags & TPQCORRID ? (const char *)u->msg->corrid : "");
}

static int	/* They get their old places back: before anybody else is served, and for whoever is next. */
put_back(struct tmq *t)
{
	struct unsent *u;
	int rc = 0;

	if (t->unsent == NULL || clock_mono_us() < t->unsent_us)
		return 0;
	t->unsent_us = clock_mono_us() + RETRY_US;	/* should this fail */
	for (u = t->unsent; u != NULL; u = u->next) {
		if ((rc = qspace_put_back(t->qs, u->msg)) != 0 && rc != QMEBADQUEUE)
			return rc;
		if (rc == QMEBADQUEUE)
			unsent_lost(t, u);
		else
			actions_event(t->actions, u->msg->queue, u->msg->msgid, u->msg->flags & TPQCORRID ? u->msg->corrid : NULL);
		u->back = true;
	}
	return 0;
}

static void
unsent_commit(struct tmq *t)
{
	struct unsent *u, *next;

	for (u = t->unsent; u != NULL; u = next) {
		next = u->next;
		if (!u->back)
			continue;
		DL_DELETE(t->unsent, u);
		qmsg_free(u->msg);
		free(u);
	}
	if (t->unsent == NULL)
		t->unsent_us = 0;
}

static void
unsent_abort(struct tmq *t)
{
	for (struct unsent *u = t->unsent; u != NULL; u = u->next)
		u->back = false;
}

static void	/* the batch is on disk: what it changed in memory stays, and those who asked may know */
settle(struct tmq *t)
{
	txs_commit(t->txs);
	actions_commit(t->actions);
	jobs_commit(&t->jobs);
	unsent_commit(t);
	replies_send(&t->replies, t->send, t->send_arg, &t->unsent);
	point_batch(POINT_ANSWERED);
	coordinator_commit(t->coordinator);
	doubts_commit(t->doubts);
}

static void	/* nothing of the batch happened */
undo(struct tmq *t)
{
	point_batch_undone();
	replies_drop(&t->replies);
	if (t->batch_open)
		qspace_batch_abort(t->qs);
	t->batch_open = false;
	unsent_abort(t);
	txs_abort(t->txs);
	actions_abort(t->actions);
	jobs_abort(&t->jobs);
	coordinator_abort(t->coordinator);
	doubts_abort(t->doubts);
	orphans_abort(t->orphans);
}

int
batch_serve_waiting(struct tmq *t)
{
	const char *queue;
	struct action *a;
	int rc;

	if (t->alone)
		return 0;
	for (; t->tries < BATCH_SERVED && (a = actions_hot(t->actions, &queue)) != NULL; t->tries++)
		if ((rc = dispatch_action(t, a, queue)) != 0)
			return rc;
	return 0;
}

static void
end_waits(struct tmq *t)
{
	int64_t now = clock_mono_us();
	struct action *a;

	for (; t->tries < BATCH_SERVED && (a = actions_due(t->actions, now)) != NULL; t->tries++)
		dispatch_action_end(t, a);
}

static int
some_jobs(struct tmq *t)
{
	struct job *j;
	size_t bodies = 0, n = 0;
	int rc = 0;

	for (j = t->jobs.all; j != NULL && bodies < JOBS_ACTIVE; j = j->next)
		bodies += job_has_body(j);
	for (j = t->jobs.all; j != NULL && rc == 0; j = j->next)
		if (job_has_body(j) ? n++ < bodies : t->tries++ < BATCH_SERVED)
			rc = dispatch_job(t, j, JOB_BYTES / (bodies > 0 ? bodies : 1));
	return rc;
}

static int	/* transactions over several groups: what was decided, here or elsewhere */
some_decisions(struct tmq *t)
{
	int rc;

	if ((rc = coordinator_work(t->coordinator, BATCH_DECIDED)) != 0 || (rc = doubts_work(t->doubts, BATCH_DECIDED)) != 0)
		return rc;
	return orphans_work(t->orphans, t->left, t->send_arg);
}

static int	/* look: whether those who waited are there still; CALLER_LEFT: one is not, and nothing is committed */
together(struct tmq *t, struct link_msg **m, size_t n, bool look)
{
	int rc;

	if ((rc = begin(t)) != 0)
		return rc;
	t->next_tick_us = qspace_tick(t->qs, clock_now_us());
	if ((rc = put_back(t)) != 0)
		return rc;
	if ((rc = batch_serve_waiting(t)) != 0)
		return rc;
	if ((rc = some_jobs(t)) != 0)
		return rc;
	end_waits(t);	/* after a last try: one whose message came in time gets it */
	for (size_t i = 0; i < n; i++)
		if (!dispatch_is_admin(m[i]) && (rc = dispatch(t, m[i])) != 0)
			return rc;
	if ((rc = some_decisions(t)) != 0)
		return rc;
	/* What this batch brings goes to those who wait in the same flush. */
	if ((rc = batch_serve_waiting(t)) != 0)
		return rc;
	if (look && t->left != NULL && replies_any_left(&t->replies, t->left, t->send_arg))
		return CALLER_LEFT;
	if ((rc = coordinator_clean(t->coordinator)) != 0)
		return rc;
	return commit(t);
}

static void
one_request(struct tmq *t, struct link_msg *m)
{
	int rc;

	if ((rc = begin(t)) != 0 || (rc = dispatch(t, m)) != 0 || (rc = commit(t)) != 0) {
		undo(t);
		dispatch_failed(t, m, rc);
	}
	settle(t);
}

static void
one_waiting(struct tmq *t, struct action *a, const char *queue)
{
	int rc;

	if ((rc = begin(t)) != 0 || (rc = dispatch_action(t, a, queue)) != 0 ||
	    (rc = commit(t)) != 0) {
		undo(t);	/* a is among those that wait again */
		dispatch_action_failed(t, a, rc);
	}
	settle(t);
}

static void
one_return(struct tmq *t)
{
	if (t->unsent == NULL)
		return;
	t->unsent_us = 0;
	if (begin(t) != 0 || put_back(t) != 0 || commit(t) != 0)
		undo(t);	/* it is tried again later */
	settle(t);
}

static void
one_job(struct tmq *t, struct job *j)
{
	int rc;

	if ((rc = begin(t)) != 0 || (rc = dispatch_job(t, j, JOB_BYTES / JOBS_ACTIVE)) != 0 || (rc = commit(t)) != 0) {
		undo(t);
		dispatch_job_failed(t, j, rc);
	}
	settle(t);
}

static void
one_decision(struct tmq *t)
{
	if (begin(t) != 0 || coordinator_work(t->coordinator, 1) != 0 || commit(t) != 0) {
		undo(t);
		coordinator_failed(t->coordinator);
	}
	settle(t);
}

static void
one_outcome(struct tmq *t)
{
	if (begin(t) != 0 || doubts_work(t->doubts, 1) != 0 || commit(t) != 0) {
		undo(t);
		doubts_failed(t->doubts);
	}
	settle(t);
}

static void
one_by_one(struct tmq *t, struct link_msg **m, size_t n)
{
	const char *queue;
	struct action *a;
	struct job *j, *next;
	size_t bodies = 0, others = 0;

	t->alone = true;
	one_return(t);
	for (size_t tries = 0; tries < BATCH_SERVED && (a = actions_hot(t->actions, &queue)) != NULL; tries++)
		one_waiting(t, a, queue);
	for (j = t->jobs.all; j != NULL; j = next) {
		next = j->next;
		if (job_has_body(j) ? bodies++ < JOBS_ACTIVE : others++ < BATCH_SERVED)
			one_job(t, j);
	}
	for (size_t i = 0; i < n; i++)
		if (!dispatch_is_admin(m[i]))
			one_request(t, m[i]);
	for (size_t tries = 0; tries < BATCH_DECIDED && coordinator_ready(t->coordinator); tries++)
		one_decision(t);
	for (size_t tries = 0; tries < BATCH_DECIDED && doubts_ready(t->doubts); tries++)
		one_outcome(t);
	t->alone = false;
	t->tries = 0;
	end_waits(t);	/* needs no batch */
	settle(t);
}

static void
run(struct tmq *t, struct link_msg **m, size_t n)
{
	int rc, looks = LOOKS;

	while ((rc = together(t, m, n, looks-- > 0)) == CALLER_LEFT) {
		undo(t);	/* the same again, in which it is passed over */
		t->unsent_us = 0;
	}
	if (rc == 0)
		settle(t);
	else {
		undo(t);
		quiet_log("QM_CAT:1614: WARN: TMQUEUE: a batch of %zu requests on space %s failed (%d) and is run one by one",
		    n, t->space, rc);
		one_by_one(t, m, n);
		t->next_tick_us = clock_now_us() + RETRY_US;	/* what was due is due still, but not at full speed */
	}
	for (size_t i = 0; i < n; i++)	/* these open batches of their own */
		if (dispatch_is_admin(m[i]))
			admin_answer(t, m[i], t->send, t->send_arg);
}

/* --- two batches out of one: what writes nothing does not wait for the flush of the rest --- */

static size_t	/* the bit of a peer; two may share it, and then stay in their order without need */
peer_bit(const struct link_peer *p)
{
	uint32_t h = 2166136261u;

	for (uint8_t i = 0; i < p->n; i++)
		h = (h ^ p->id[i]) * 16777619u;
	return (h ^ h >> 16) % PEER_BITS;
}

/*
 * Those that write nothing first, the order among these and among the others kept; their number.  Who has sent one that
 * writes gets what it sent later in its order.  None are first where something else waits to be served.
 */
static size_t
sort(struct tmq *t, struct link_msg *m, size_t n, struct link_msg **v)
{
	uint64_t writes[PEER_BITS / 64] = { 0 };
	struct link_msg *rest[BATCH_MAX];
	bool split = n > 1 && t->unsent == NULL && !batch_more(t);
	size_t first = 0, n_rest = 0;

	for (size_t i = 0; i < n; i++) {
		size_t bit = split ? peer_bit(&m[i].peer) : 0;

		if (split && !(writes[bit / 64] >> bit % 64 & 1) && wire_is_tentative(m[i].head, m[i].head_len)) {
			v[first++] = &m[i];
			continue;
		}
		writes[bit / 64] |= UINT64_C(1) << bit % 64;
		rest[n_rest++] = &m[i];
	}
	for (size_t i = 0; i < n_rest; i++)
		v[first + i] = rest[i];
	return first;
}

void
batch_turn(struct tmq *t)
{
	int64_t now = clock_mono_us();

	coordinator_turn(t->coordinator, now);
	doubts_turn(t->doubts, now);
	letters_turn(t->letters, now);
}

void
batch_run(struct tmq *t, struct link_msg *m, size_t n)
{
	struct link_msg *v[BATCH_MAX], next, *one = &next;
	bool jobs = jobs_more(&t->jobs);
	size_t first;

	batch_turn(t);
	first = sort(t, m, n, v);
	if (first > 0)
		run(t, v, first);
	if (first < n || n == 0)
		run(t, v + first, n - first);
	while (jobs_next_ready(&t->jobs, &next)) {	/* whose client had a job that is done */
		run(t, &one, 1);
		link_msg_done(&next);
	}
	if (jobs)
		t->next_tick_us = 0;	/* what they let go of may be freed */
}

bool
batch_more(const struct tmq *t)
{
	const char *queue;

	return jobs_more(&t->jobs) || t->n_again > 0 || actions_hot(t->actions, &queue) != NULL ||
	    coordinator_ready(t->coordinator) || doubts_ready(t->doubts);
}

static int64_t
sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t
batch_next_event(struct tmq *t)
{
	int64_t wait = actions_next_deadline(t->actions), tick = t->next_tick_us;

	if (t->unsent != NULL && t->unsent_us < wait)
		wait = t->unsent_us;
	wait = sooner(wait, coordinator_next_event(t->coordinator));
	wait = sooner(wait, doubts_next_event(t->doubts));
	wait = sooner(wait, orphans_next_event(t->orphans));
	wait = sooner(wait, letters_next_event(t->letters));
	if (tick != INT64_MAX) {
		int64_t mono = clock_mono_us();
		tick += mono - clock_now_us();
		if (tick > mono + LOOK_AGAIN_US)	/* somebody may set the clock meanwhile */
			tick = mono + LOOK_AGAIN_US;
		if (tick < wait)
			wait = tick;
	}
	return wait;
}

static void	/* Nothing of them has happened; of a large transaction's end all that counts. */
jobs_dismiss(struct tmq *t)
{
	struct job *j;

	while ((j = t->jobs.all) != NULL) {
		dispatch_job_failed(t, j, QMESYSTEM);
		settle(t);
	}
}

void
tmq_dismiss(struct tmq *t)
{
	struct action *a;
	struct unsent *u;

	jobs_dismiss(t);
	while ((a = actions_any(t->actions)) != NULL) {
		if (a->end == ACTION_END_TX || (!a->watch && a->req.tx.gtrid_len != 0))
			dispatch_action_failed(t, a, QMEABORTED);	/* its branch ends with this server */
		else
			dispatch_action_end(t, a);
		if (t->replies.n == t->replies.cap)
			settle(t);
	}
	settle(t);
	coordinator_dismiss(t->coordinator);
	if (batch_more(t))
		run(t, NULL, 0);	/* what they wanted is rolled back, and comes to its place again */
	jobs_dismiss(t);
	one_return(t);
	for (u = t->unsent; u != NULL; u = u->next)
		unsent_lost(t, u);
}
