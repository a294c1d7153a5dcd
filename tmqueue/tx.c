#include "tx.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "quiet.h"

#define BUCKETS 1024
#define KEEP_US (600 * INT64_C(1000000))	/* how long after its deadline a transaction nobody ended is remembered */
#define LONG_AGO_US (30 * INT64_C(86400) * 1000000)
#define SWEEP_US (60 * INT64_C(1000000))

struct known {
	struct known *next;		/* in its bucket */
	struct known *batch_next;	/* in the list of the batch */
	struct branch_id id;
	int64_t deadline_us;		/* clock_mono_us(); 0: none */
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

static struct branch_id
id_of(const struct wire_tx *tx)
{
	struct branch_id id = { .len = tx->gtrid_len };

	memcpy(id.gtrid, tx->gtrid, tx->gtrid_len);
	return id;
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
	struct branch_id id = id_of(tx);

	return qspace_branch_find(t->qs, &id);
}

struct branch *
txs_join(struct txs *t, const struct wire_tx *tx, struct verdict *v)
{
	struct branch_id id = id_of(tx);
	struct branch *b = qspace_branch_find(t->qs, &id);
	struct known **at, *k;
	int64_t now;
	int rc;

	*v = (struct verdict){ 0, 0, false };
	if (b != NULL)
		return b;
	at = known_at(t, &id);
	if (*at != NULL) {	/* it was here, and was rolled back: out of time, or by an administrator */
		*v = (struct verdict){ TPETIME, 0, true };
		return NULL;
	}
	if (begun_too_early(t, tx)) {
		quiet_log("QM_CAT:1608: WARN: TMQUEUE: a transaction that began before this server started is refused: "
		    "what it did here before is rolled back");
		*v = (struct verdict){ TPEDIAGNOSTIC, QMEABORTED, true };
		return NULL;
	}
	now = clock_mono_us();
	if ((k = calloc(1, sizeof *k)) == NULL) {
		*v = (struct verdict){ TPEDIAGNOSTIC, QMEOS, true };
		return NULL;
	}
	k->id = id;
	k->deadline_us = tx->timeout_ms == 0 ? 0 : now + (int64_t)tx->timeout_ms * 1000;
	if ((rc = qspace_branch_begin(t->qs, &id, tx->timeout_ms == 0 ? 0 : clock_now_us() + (int64_t)tx->timeout_ms * 1000,
	    &b)) != 0) {
		free(k);
		*v = verdict_of(rc, NULL);
		return NULL;
	}
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
	struct verdict v = { rc == 0 ? 0 : TPEDIAGNOSTIC, rc, false };

	if (rc == QMETYPE)	/* the message stays; in a transaction this dooms, as documented */
		v = (struct verdict){ TPEOTYPE, 0, true };
	else if (rc == QMEABORTED || rc == QMESYSTEM || rc == QMEOS)
		v.doomed = true;
	if (v.doomed && b != NULL)
		qspace_branch_doom(b);
	return v;
}

static void
known_ended(struct txs *t, const struct branch_id *id)
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

static int
commit(struct txs *t, const struct wire_txend *m, struct branch *b, int *error)
{
	static const struct wire_why no_room = { .error = TPEABORT, .text = "no room to commit" };
	int rc;

	if (m->groups.n > 1) {
		ulog("QM_CAT:1609: ERROR: TMQUEUE: a transaction over %u groups (%s, %s, ...) is rolled back: "
		    "this release commits in one group", m->groups.n, m->groups.name[0], m->groups.name[1]);
		qspace_branch_doom(b);
	}
	rc = qspace_branch_commit(t->qs, b);
	if (fatal(rc))
		return rc;
	*error = 0;
	if (rc != 0) {
		*error = TPEABORT;
		/* Doomed ones were rolled back by the attempt; one that found no room is still there. */
		if (rc != QMEABORTED && fatal(rc = qspace_branch_rollback_because(t->qs, b, &no_room)))
			return rc;
	}
	return 0;
}

int
txs_end(struct txs *t, const struct wire_txend *m, int *error)
{
	struct branch_id id = id_of(&m->tx);
	struct branch *b = qspace_branch_find(t->qs, &id);
	int rc = 0;

	switch (m->op) {
	case WIRE_TX_COMMIT:
		*error = TPEABORT;	/* presumed (D5): what is not here was rolled back */
		if (b != NULL)
			rc = commit(t, m, b, error);
		break;
	case WIRE_TX_ABORT:
		*error = 0;
		if (b != NULL)
			rc = qspace_branch_rollback_because(t->qs, b, told(m) ? &m->why : NULL);
		if (rc != 0 && !fatal(rc)) {
			*error = TPESYSTEM;
			rc = 0;
		}
		break;
	case WIRE_TX_PREPARE:
		*error = TPEABORT;
		if (b == NULL)
			break;
		rc = qspace_branch_prepare(t->qs, b, m->groups.n > 0 ? m->groups.name[0] : "");
		if (fatal(rc))
			return rc;
		*error = rc == 0 ? 0 : TPEABORT;
		return 0;	/* not over yet */
	default:
		quiet_log("QM_CAT:1610: WARN: TMQUEUE: transaction operation %u is not served by this release", m->op);
		*error = TPEPROTO;
		return 0;
	}
	if (rc == 0)
		known_ended(t, &id);
	return rc;
}

int
txs_end_failed(struct txs *t, const struct wire_txend *m)
{
	struct branch *b = txs_find(t, &m->tx);

	if (b == NULL)
		return TPEABORT;
	qspace_branch_doom(b);	/* whatever comes: it does not commit any more */
	if (qspace_batch_begin(t->qs) == 0) {
		if (qspace_branch_rollback_because(t->qs, b, told(m) ? &m->why : NULL) == 0 && qspace_batch_commit(t->qs) == 0)
			return m->op == WIRE_TX_ABORT ? 0 : TPEABORT;
		qspace_batch_abort(t->qs);
	}
	ulog("QM_CAT:1611: ERROR: TMQUEUE: a rollback could not be written; the branch is tried again at its deadline");
	return m->op == WIRE_TX_ABORT ? TPESYSTEM : TPEABORT;
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
