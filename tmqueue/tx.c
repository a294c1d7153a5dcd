#include "tx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "point.h"
#include "quiet.h"

#define BUCKETS 1024
#define KEEP_US (600 * INT64_C(1000000))	/* how long after its deadline a transaction nobody ended is remembered */
#define LONG_AGO_US (30 * INT64_C(86400) * 1000000)
#define SWEEP_US (60 * INT64_C(1000000))

struct known {
	struct known *next;		/* in its bucket */
	struct known *batch_next;	/* in the list of the batch */
	struct branch_id id;
	int64_t deadline_us;		/* clock_mono_us(); without one its initiator ends it, or an administrator did: it is kept */
	bool fresh;			/* opened by the batch that runs */
	bool ended;
};

struct txs {
	struct qspace *qs;
	int64_t started_us;		/* wall clock, as it was then; and the same moment: */
	int64_t started_mono_us;
	int64_t sweep_us;
	struct known *bucket[BUCKETS];
	struct known *opened, *ended;	/* by the batch that runs */
};

struct txs *
txs_new(struct qspace *qs, int64_t started_us)
{
	struct txs *t = calloc(1, sizeof *t);

	if (t != NULL) {
		t->qs = qs;
		t->started_us = started_us;
		t->started_mono_us = clock_mono_us() - (clock_now_us() - started_us);
	}
	return t;
}

void
txs_free(struct txs *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct known *k = t->bucket[i], *next; k != NULL; k = next) {
			next = k->next;
			free(k);
		}
	free(t);
}

struct branch_id
tx_id(const struct wire_tx *tx)
{
	struct branch_id id = { .len = tx->gtrid_len };

	memcpy(id.gtrid, tx->gtrid, tx->gtrid_len);
	return id;
}

static bool	/* It came from another transaction manager, which opens its branches by itself. */
is_xid(const struct branch_id *id)
{
	return id->gtrid[0] == WIRE_GTRID_XID;
}

static struct known **	/* where the transaction's entry is, or would be */
known_at(struct txs *t, const struct branch_id *id)
{
	uint64_t h = 14695981039346656037u;
	struct known **at;

	for (uint8_t i = 0; i < id->len; i++)
		h = (h ^ id->gtrid[i]) * 1099511628211u;
	for (at = &t->bucket[(h ^ h >> 32) % BUCKETS]; *at != NULL; at = &(*at)->next)
		if ((*at)->id.len == id->len && memcmp((*at)->id.gtrid, id->gtrid, id->len) == 0)
			break;
	return at;
}

static void
known_forget(struct txs *t, struct known *k)
{
	struct known **at = known_at(t, &k->id);

	*at = k->next;
	free(k);
}

static void	/* Initiators that died never end their transactions: forget those long past. */
sweep(struct txs *t, int64_t now)
{
	if (now < t->sweep_us)
		return;
	t->sweep_us = now + SWEEP_US;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct known **at = &t->bucket[i], *k; (k = *at) != NULL;) {
			if (!k->ended && now > k->deadline_us + KEEP_US && qspace_branch_find(t->qs, &k->id) == NULL) {
				*at = k->next;
				free(k);
			} else
				at = &k->next;
		}
}

/*
 * Did it begin before this server took the space?  Its id says when, by the wall clock of then; ids from elsewhere, which hold
 * no likely time there, pass.  Where the clock has been set back since, what began after that has an earlier time than the
 * start had; it lies between the start as today's clock has it, and now.
 */
static bool
begun_too_early(const struct txs *t, const struct wire_tx *tx)
{
	struct rd r = { .p = tx->gtrid, .left = tx->gtrid_len };
	int64_t now = clock_now_us(), begun;

	rd_view(&r, WIRE_GTRID_TIME);
	begun = (int64_t)rd_u64(&r);
	if (r.bad || begun >= t->started_us || begun <= t->started_us - LONG_AGO_US)
		return false;
	return begun > now || begun < now - (clock_mono_us() - t->started_mono_us);
}

struct branch *
txs_find(struct txs *t, const struct wire_tx *tx)
{
	struct branch_id id = tx_id(tx);

	return qspace_branch_find(t->qs, &id);
}

/* Who it belongs to, for people: the peer, and of an id that says so the process that began it, which may be another. */
static void
owner_set(struct branch *b, const struct branch_id *id, const struct link_msg *m)
{
	struct rd r = { .p = id->gtrid, .left = id->len };
	char peer[128], who[192], process[32];

	link_msg_peer_name(m, peer, sizeof peer);
	rd_view(&r, WIRE_GTRID_PID);
	snprintf(process, sizeof process, "process %u ", (unsigned)rd_u32(&r));
	if (is_xid(id) || r.bad || strncmp(peer, process, strlen(process)) == 0)
		snprintf(who, sizeof who, "%s", peer);
	else
		snprintf(who, sizeof who, "%sby %s", process, peer);
	qspace_branch_set_owner(b, who);
}

struct branch *
txs_join(struct txs *t, const struct wire_tx *tx, const struct link_msg *m, struct verdict *v)
{
	struct branch_id id = tx_id(tx);
	struct branch *b = qspace_branch_find(t->qs, &id);
	struct known **at, *k;
	int64_t now;
	int rc;

	*v = (struct verdict){ 0 };
	if (b != NULL)
		return b;
	if (is_xid(&id)) {
		*v = (struct verdict){ .error = TPEDIAGNOSTIC, .diagnostic = QMEABORTED, .doomed = true, .stranger = true };
		return NULL;
	}
	at = known_at(t, &id);
	if (*at != NULL) {	/* it was here, and was rolled back: out of time, or by an administrator */
		*v = (struct verdict){ .error = TPETIME, .doomed = true };
		return NULL;
	}
	if (begun_too_early(t, tx)) {
		quiet_log("QM_CAT:1608: WARN: TMQUEUE: a transaction that began before this server started is refused: "
		    "what it did here before is rolled back");
		*v = (struct verdict){ .error = TPEDIAGNOSTIC, .diagnostic = QMEABORTED, .doomed = true };
		return NULL;
	}
	now = clock_mono_us();
	if ((k = calloc(1, sizeof *k)) == NULL) {
		*v = (struct verdict){ .error = TPEDIAGNOSTIC, .diagnostic = QMEOS, .doomed = true };
		return NULL;
	}
	k->id = id;
	k->deadline_us = tx->timeout_ms == 0 ? INT64_MAX - KEEP_US : now + (int64_t)tx->timeout_ms * 1000;
	if ((rc = qspace_branch_begin(t->qs, &id, tx->timeout_ms == 0 ? 0 : clock_now_us() + (int64_t)tx->timeout_ms * 1000,
	    &b)) != 0) {
		free(k);
		*v = verdict_of(rc, NULL);
		return NULL;
	}
	owner_set(b, &id, m);
	*at = k;
	k->fresh = true;
	k->batch_next = t->opened;
	t->opened = k;
	sweep(t, now);
	return b;
}

struct verdict
verdict_of(int rc, struct branch *b)
{
	struct verdict v = { .error = rc == 0 ? 0 : TPEDIAGNOSTIC, .diagnostic = rc };

	if (rc == QMETYPE)	/* the message stays; in a transaction this dooms, as documented */
		v = (struct verdict){ .error = TPEOTYPE, .doomed = true };
	else if (rc == QMEABORTED || rc == QMESYSTEM || rc == QMEOS)
		v.doomed = true;
	if (v.doomed && b != NULL)
		qspace_branch_doom(b);
	return v;
}

void
txs_ended(struct txs *t, const struct branch_id *id)
{
	struct known *k = *known_at(t, id);

	if (k == NULL || k->ended)
		return;
	k->ended = true;
	if (k->fresh)
		return;		/* on the list of the opened already, and leaves with that */
	k->batch_next = t->ended;
	t->ended = k;
}

static bool
fatal(int rc)
{
	return rc == QMESYSTEM || rc == QMEOS;
}

static bool	/* does its sender say why? */
told(const struct wire_txend *m)
{
	return m->why.error != 0 || m->why.urcode != 0 || m->why.text[0] != '\0';
}

static struct tx_answer	/* of a branch that an administrator ended, to who wants `op`; of a large one it leaves once that is carried out */
by_hand(enum branch_state state, uint8_t op)
{
	bool committed = state == BR_HEUR_COMMITTED || state == BR_COMMITTING, wanted = op == WIRE_TX_COMMIT || op == WIRE_TX_DECIDED;
	int how = committed ? WIRE_OUT_HEUR_COMMITTED : WIRE_OUT_HEUR_ROLLED_BACK;

	switch (op) {
	case WIRE_TX_COMMIT:
		return (struct tx_answer){ committed ? 0 : TPEABORT, how };
	case WIRE_TX_PREPARE:		/* its vote stands; what became of it is told to who decides */
		return committed ? (struct tx_answer){ 0, WIRE_OUT_PREPARED } : (struct tx_answer){ TPEABORT, how };
	default:
		return (struct tx_answer){ committed == wanted ? 0 : TPEHEURISTIC, how };
	}
}

static int
commit(struct txs *t, struct branch *b, struct tx_answer *a)
{
	static const struct wire_why no_room = { .error = TPEABORT, .text = "no room to commit" };
	int rc;

	if (qspace_branch_state(b) == BR_PREPARED) {	/* who had it prepared ends it with DECIDED */
		*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_PREPARED };
		return 0;
	}
	*a = (struct tx_answer){ 0, WIRE_OUT_COMMITTED };
	if (fatal(rc = qspace_branch_commit(t->qs, b)))
		return rc;
	if (rc != 0 && rc != QSPACE_AGAIN) {	/* again: a large one, which is decided */
		*a = (struct tx_answer){ TPEABORT, WIRE_OUT_ROLLED_BACK };
		/* Doomed ones were rolled back by the attempt; one that found no room is still there. */
		if (rc != QMEABORTED && fatal(rc = qspace_branch_rollback_because(t->qs, b, &no_room)))
			return rc;
	}
	return 0;
}

static bool	/* One that is prepared is rolled back by who decides, and by nobody else. */
may_abort(const struct branch *b, const struct wire_txend *m)
{
	const char *coordinator = qspace_branch_coordinator(b);

	return qspace_branch_state(b) == BR_ACTIVE || coordinator[0] == '\0' ||
	    (m->groups.n > 0 && strcmp(m->groups.name[0], coordinator) == 0);
}

static int	/* as its sender wants it */
undo(struct txs *t, const struct wire_txend *m, struct branch *b)
{
	const struct wire_why *why = told(m) ? &m->why : NULL;

	return m->op == WIRE_TX_ABORT && m->uncounted ? qspace_branch_rollback_uncounted(t->qs, b, why) :
	    qspace_branch_rollback_because(t->qs, b, why);
}

static int
roll_back(struct txs *t, const struct wire_txend *m, struct branch *b, struct tx_answer *a)
{
	int rc;

	if (!may_abort(b, m)) {
		*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_PREPARED };
		return 0;
	}
	rc = undo(t, m, b);
	*a = rc == 0 || rc == QSPACE_AGAIN ? (struct tx_answer){ 0, WIRE_OUT_ROLLED_BACK } : (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE };
	return fatal(rc) ? rc : 0;
}

static int
prepare(struct txs *t, const struct wire_txend *m, struct branch *b, struct tx_answer *a)
{
	static const struct wire_why no_room = { .error = TPEABORT, .text = "no room to prepare" };
	int rc = qspace_branch_prepare(t->qs, b, m->groups.n > 0 ? m->groups.name[0] : "");

	if (fatal(rc))
		return rc;
	*a = rc == 0 ? (struct tx_answer){ 0, WIRE_OUT_PREPARED } : rc == QSPACE_READ_ONLY ? (struct tx_answer){ 0, WIRE_OUT_READ_ONLY } :
	    (struct tx_answer){ TPEABORT, WIRE_OUT_ROLLED_BACK };
	if (rc != 0 && rc != QSPACE_READ_ONLY && rc != QMEABORTED)
		rc = qspace_branch_rollback_because(t->qs, b, &no_room);
	return fatal(rc) ? rc : 0;
}

static int	/* the second phase */
decided(struct txs *t, struct branch *b, struct tx_answer *a)
{
	int rc = 0;

	*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
	if (qspace_branch_state(b) != BR_PREPARED && qspace_branch_state(b) != BR_COMMITTING)
		return 0;
	rc = qspace_branch_commit(t->qs, b);
	*a = rc == 0 || rc == QSPACE_AGAIN ? (struct tx_answer){ 0, WIRE_OUT_COMMITTED } : (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE };
	return fatal(rc) ? rc : 0;
}

static int	/* a branch of another transaction manager */
start(struct txs *t, const struct wire_txend *m, const struct branch_id *id, const struct link_msg *from, struct tx_answer *a)
{
	int64_t deadline = m->tx.timeout_ms == 0 ? 0 : clock_now_us() + (int64_t)m->tx.timeout_ms * 1000;
	struct branch *b;
	int rc;

	*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
	if (!is_xid(id))
		return 0;
	if (fatal(rc = qspace_branch_begin(t->qs, id, deadline, &b)))
		return rc;
	a->error = rc == 0 ? 0 : TPELIMIT;
	if (rc == 0)
		owner_set(b, id, from);
	return 0;
}

static struct tx_answer	/* there is none */
unknown(uint8_t op)
{
	switch (op) {
	case WIRE_TX_COMMIT:		/* presumed (D5): what is not here was rolled back */
	case WIRE_TX_PREPARE:
		return (struct tx_answer){ TPEABORT, WIRE_OUT_NONE_SUCH };
	case WIRE_TX_JOIN:
	case WIRE_TX_DOOM:
		return (struct tx_answer){ TPENOENT, WIRE_OUT_NONE_SUCH };
	default:			/* ABORT, FORGET; DECIDED: it was committed before */
		return (struct tx_answer){ 0, WIRE_OUT_NONE_SUCH };
	}
}

static void	/* For tests: it was received, and is in the batch then. */
point_of(uint8_t op)
{
	enum point received = op == WIRE_TX_PREPARE ? POINT_PREPARE_RECEIVED : op == WIRE_TX_DECIDED ? POINT_DECIDED_RECEIVED :
	    op == WIRE_TX_ABORT ? POINT_ABORT_RECEIVED : POINT_COUNT;

	if (received == POINT_COUNT)
		return;
	point(received);
	point_note((enum point)(received + 1));
}

static int
end_branch(struct txs *t, const struct wire_txend *m, struct branch *b, struct tx_answer *a)
{
	enum branch_state state = qspace_branch_state(b);
	int rc = 0;

	if (m->op == WIRE_TX_FORGET) {
		rc = qspace_branch_forget(t->qs, b);
		*a = rc == 0 ? (struct tx_answer){ 0, WIRE_OUT_NONE_SUCH } : (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
		return fatal(rc) ? rc : 0;
	}
	if (qspace_branch_is_by_hand(b)) {
		*a = by_hand(state, m->op);
		return 0;
	}
	if (state == BR_COMMITTING && (m->op == WIRE_TX_ABORT || m->op == WIRE_TX_PREPARE)) {	/* a large one: it is decided */
		*a = m->op == WIRE_TX_ABORT ? (struct tx_answer){ TPEPROTO, WIRE_OUT_COMMITTED } : (struct tx_answer){ 0, WIRE_OUT_PREPARED };
		return 0;
	}
	point_of(m->op);
	switch (m->op) {
	case WIRE_TX_COMMIT: return commit(t, b, a);
	case WIRE_TX_ABORT: return roll_back(t, m, b, a);
	case WIRE_TX_PREPARE: return prepare(t, m, b, a);
	default: return decided(t, b, a);
	}
}

static struct tx_answer
join(struct branch *b, uint8_t op)
{
	bool active = qspace_branch_state(b) == BR_ACTIVE;

	if (op == WIRE_TX_START)
		return (struct tx_answer){ TPEMATCH, WIRE_OUT_NONE };
	if (!active)
		return (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
	if (op == WIRE_TX_DOOM)
		qspace_branch_doom(b);
	return (struct tx_answer){ op == WIRE_TX_JOIN && qspace_branch_doomed(b) ? TPEABORT : 0, WIRE_OUT_NONE };
}

static bool	/* A large one that was ended: no request opens it again. */
is_on_its_way(const struct branch *b)
{
	return qspace_branch_state(b) == BR_COMMITTING || qspace_branch_state(b) == BR_ROLLING_BACK;
}

int
txs_end(struct txs *t, const struct wire_txend *m, const struct link_msg *from, struct tx_answer *a)
{
	struct branch_id id = tx_id(&m->tx);
	struct branch *b = qspace_branch_find(t->qs, &id);
	int rc = 0;

	switch (m->op) {
	case WIRE_TX_START:
		if (b == NULL)
			return start(t, m, &id, from, a);	/* fall through */
	case WIRE_TX_JOIN:
	case WIRE_TX_DOOM:
		*a = b == NULL ? unknown(m->op) : join(b, m->op);
		return 0;
	case WIRE_TX_COMMIT:
	case WIRE_TX_ABORT:
	case WIRE_TX_PREPARE:
	case WIRE_TX_DECIDED:
	case WIRE_TX_FORGET:
		if (b == NULL)
			*a = unknown(m->op);
		else if ((rc = end_branch(t, m, b, a)) != 0)
			return rc;
		b = qspace_branch_find(t->qs, &id);
		if (b == NULL || is_on_its_way(b))
			txs_ended(t, &id);
		return 0;
	default:
		*a = (struct tx_answer){ TPEPROTO, WIRE_OUT_NONE };
		return 0;
	}
}

static bool	/* The branch's own batch could not be written: what was not decided elsewhere is not committed any more. */
roll_back_alone(struct txs *t, const struct wire_txend *m, struct branch *b)
{
	qspace_branch_doom(b);
	if (qspace_batch_begin(t->qs) == 0) {
		int rc = undo(t, m, b);
		if ((rc == 0 || rc == QSPACE_AGAIN) && qspace_batch_commit(t->qs) == 0)
			return true;
		qspace_batch_abort(t->qs);
	}
	ulog("QM_CAT:1611: ERROR: TMQUEUE: a rollback could not be written; the branch is tried again at its deadline");
	return false;
}

struct tx_answer
txs_end_failed(struct txs *t, const struct wire_txend *m)
{
	struct branch *b = txs_find(t, &m->tx);
	bool back;

	if (b == NULL && m->op != WIRE_TX_START)
		return unknown(m->op);
	if (b == NULL || qspace_branch_state(b) != BR_ACTIVE)
		return (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE };	/* prepared ones stay so; it is asked for again */
	switch (m->op) {
	case WIRE_TX_COMMIT:
	case WIRE_TX_PREPARE:
		back = roll_back_alone(t, m, b);
		return (struct tx_answer){ TPEABORT, back ? WIRE_OUT_ROLLED_BACK : WIRE_OUT_NONE };
	case WIRE_TX_ABORT:
		return roll_back_alone(t, m, b) ? (struct tx_answer){ 0, WIRE_OUT_ROLLED_BACK } : (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE };
	default:
		return (struct tx_answer){ TPESYSTEM, WIRE_OUT_NONE };
	}
}

void
txs_commit(struct txs *t)
{
	struct known *k;

	while ((k = t->opened) != NULL) {
		t->opened = k->batch_next;
		k->fresh = false;
		if (k->ended)
			known_forget(t, k);
	}
	while ((k = t->ended) != NULL) {
		t->ended = k->batch_next;
		known_forget(t, k);
	}
}

void
txs_abort(struct txs *t)
{
	struct known *k;

	while ((k = t->opened) != NULL) {
		t->opened = k->batch_next;
		known_forget(t, k);
	}
	while ((k = t->ended) != NULL) {
		t->ended = k->batch_next;
		k->ended = false;
	}
}
