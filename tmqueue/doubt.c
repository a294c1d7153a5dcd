#include "doubt.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "clock.h"
#include "due.h"
#include "gtrid.h"
#include "point.h"
#include "quiet.h"

#define LOOK_US 250000			/* between two looks whether the coordinator is still connected; */
#define SILENCE_US 2000000		/* if it is, it is asked after this */
#define AGAIN_US 100000			/* it has not decided yet: ask again, later each time, up to: */
#define AGAIN_MOST_US 10000000
#define SAY_US 10000000			/* in doubt for so long: an administrator may want to know */
#define RETRY_US 1000000		/* the disk did not take the outcome */

struct doubt {
	struct letter letter;		/* first: its owner is found by it */
	struct doubts *ds;
	struct branch_id id;
	UT_hash_handle hh;
	char coordinator[WIRE_GROUP];
	struct link_peer peer;		/* n 0: it has not spoken to this server */
	int64_t since_us, ask_us, again_us;
	struct due due;			/* while it waits */
	bool old, said;			/* from before the start; was told to the administrator */
	bool denied;			/* ended by hand, and its coordinator knew nothing of it when it was asked */
	enum { DOUBT_WAITS, DOUBT_READY, DOUBT_DONE } at;	/* DONE: by the batch that runs */
	bool commit;			/* what was heard */
	struct doubt *prev, *next;	/* those ready, or done */
};

struct doubts {
	struct qspace *qs;
	struct txs *txs;
	struct letters *ls;
	struct doubts_ask ask;
	struct doubt *all, *ready, *done;
	struct due_heap dues;
};

struct doubts *
doubts_new(struct qspace *qs, struct txs *txs, struct letters *ls, const struct doubts_ask *ask)
{
	struct doubts *ds = calloc(1, sizeof *ds);

	if (ds != NULL) {
		ds->qs = qs;
		ds->txs = txs;
		ds->ls = ls;
		ds->ask = *ask;
	}
	return ds;
}

static void
due(struct doubt *d, int64_t us)
{
	due_set(&d->ds->dues, &d->due, us);
}

static void
doubt_free(struct doubt *d)
{
	letter_cancel(d->ds->ls, &d->letter);
	due(d, INT64_MAX);
	if (d->at == DOUBT_READY)
		DL_DELETE(d->ds->ready, d);
	else if (d->at == DOUBT_DONE)
		DL_DELETE(d->ds->done, d);
	HASH_DEL(d->ds->all, d);	// NOLINT: inside uthash
	free(d);
}

void
doubts_free(struct doubts *ds)
{
	struct doubt *d, *next;

	if (ds == NULL)
		return;
	for (d = ds->all; d != NULL; d = next) {
		next = d->hh.next;
		doubt_free(d);
	}
	due_free(&ds->dues);
	free(ds);
}

size_t
doubts_count(const struct doubts *ds)
{
	return HASH_COUNT(ds->all);
}

static struct doubt *
doubt_find(struct doubts *ds, const struct branch_id *id)
{
	struct doubt *d;

	HASH_FIND(hh, ds->all, id->gtrid, id->len, d);
	return d;
}

/* --- what is heard --- */

static void
ask_later(struct doubt *d)
{
	d->again_us = d->again_us == 0 ? AGAIN_US : d->again_us < AGAIN_MOST_US / 2 ? 2 * d->again_us : AGAIN_MOST_US;
	d->ask_us = clock_mono_us() + d->again_us;
	due(d, d->ask_us);
}

static void
heard(struct doubt *d, int error, int outcome)
{
	if (error != 0 || (outcome != WIRE_OUT_COMMITTED && outcome != WIRE_OUT_ROLLED_BACK)) {
		ask_later(d);
		return;
	}
	d->commit = outcome == WIRE_OUT_COMMITTED;
	d->at = DOUBT_READY;
	due(d, INT64_MAX);
	DL_APPEND(d->ds->ready, d);
}

static void
on_answer(struct letter *l, int error, int outcome)
{
	point(POINT_QUERY_ANSWERED);
	heard((struct doubt *)(void *)l, error, outcome);
}

static void
on_failure(struct letter *l, bool sent)	/* these letters stay */
{
	(void)sent;
	ask_later((struct doubt *)(void *)l);
}

static const struct letter_owner asker = { on_answer, on_failure };

/* --- what is noted --- */

static struct doubt *	/* NULL: no memory */
doubt_new(struct doubts *ds, const struct branch_id *id, const char *coordinator, int64_t now)
{
	struct doubt *d;

	if (due_room(&ds->dues, HASH_COUNT(ds->all) + 1) != 0 || (d = calloc(1, sizeof *d)) == NULL)
		return NULL;
	d->ds = ds;
	d->id = *id;
	d->letter.owner = &asker;
	d->letter.id = &d->id;
	d->since_us = now;
	memcpy(d->coordinator, coordinator, strnlen(coordinator, sizeof d->coordinator - 1));
	HASH_ADD_KEYPTR(hh, ds->all, d->id.gtrid, d->id.len, d);
	return d;
}

static bool	/* An administrator ended it; the coordinator hears of that when it decides, or has nothing to decide. */
is_heuristic(enum branch_state s)
{
	return s == BR_HEUR_COMMITTED || s == BR_HEUR_ROLLED_BACK;
}

static bool	/* A large one that was ended, by its coordinator or by hand, is what it becomes once that was carried out. */
is_on_its_way(enum branch_state s)
{
	return s == BR_COMMITTING || s == BR_ROLLING_BACK;
}

int
doubts_load(struct doubts *ds)
{
	struct branch_info *b = NULL;
	int64_t now = clock_mono_us();
	size_t n = 0, loaded = 0;
	struct doubt *d;
	int rc = qspace_branch_list(ds->qs, &b, &n);

	for (size_t i = 0; i < n && rc == 0; i++) {
		if ((b[i].state != BR_PREPARED && !is_heuristic(b[i].state) && !is_on_its_way(b[i].state)) || b[i].coordinator[0] == '\0')
			continue;
		if ((d = doubt_new(ds, &b[i].id, b[i].coordinator, now)) == NULL)
			rc = QMEOS;
		else {
			d->old = true;
			due(d, now);
			loaded += b[i].state == BR_PREPARED;
		}
	}
	free(b);
	if (loaded > 0)
		ulog("QM_CAT:1640: INFO: TMQUEUE: %zu transactions are in doubt in queue space %s: their coordinators are asked",
		    loaded, qspace_params(ds->qs)->name);
	return rc;
}

void
doubt_note(struct doubts *ds, const struct branch_id *id, const char *coordinator, const struct link_peer *peer)
{
	int64_t now = clock_mono_us();
	struct doubt *d = doubt_find(ds, id);

	if (d == NULL && (d = doubt_new(ds, id, coordinator, now)) == NULL) {
		quiet_log("QM_CAT:1400: ERROR: TMQUEUE: no memory; a transaction that is prepared waits until its coordinator speaks");
		return;
	}
	d->peer = *peer;
	d->ask_us = now + SILENCE_US;
	if (d->at == DOUBT_WAITS && d->letter.at == LETTER_IDLE)
		due(d, now + LOOK_US);
}

void
doubt_hurry(struct doubts *ds, const struct branch_id *id)
{
	struct doubt *d = doubt_find(ds, id);

	if (d == NULL || d->at != DOUBT_WAITS || d->letter.at != LETTER_IDLE)
		return;
	d->ask_us = clock_mono_us();
	due(d, d->ask_us);
}

/* --- time --- */

static enum branch_state	/* BR_ABORTED: it is no more */
state_of(const struct doubt *d)
{
	struct branch *b = qspace_branch_find(d->ds->qs, &d->id);

	return b != NULL ? qspace_branch_state(b) : BR_ABORTED;
}

static void
say_waiting(struct doubt *d)
{
	char gtrid[GTRID_HEX];

	d->said = true;
	gtrid_to_hex(d->id.gtrid, d->id.len, gtrid);
	ulog("QM_CAT:1641: WARN: TMQUEUE: transaction %s is in doubt in queue space %s: group %s, which knows its outcome, does not "
	    "tell it; it is asked until it does, or until an administrator ends the transaction (qmadmin)", gtrid,
	    qspace_params(d->ds->qs)->name, d->coordinator);
}

static void
ask(struct doubt *d)
{
	struct doubts *ds = d->ds;

	if (ds->ask.ours(ds->ask.arg, d->coordinator))
		heard(d, 0, ds->ask.decided(ds->ask.arg, &d->id));
	else if (letter_post(ds->ls, &d->letter, d->coordinator, WIRE_TX_QUERY, true) != 0)
		ask_later(d);
}

static void
doubt_turn(struct doubt *d, int64_t now)
{
	enum branch_state state = state_of(d);

	if (is_on_its_way(state)) {
		due(d, now + SILENCE_US);
		return;
	}
	if (state != BR_PREPARED && !is_heuristic(state)) {	/* ended, or undone with its batch */
		doubt_free(d);
		return;
	}
	if (!d->said && state == BR_PREPARED && now - d->since_us >= SAY_US)
		say_waiting(d);
	if (d->letter.at != LETTER_IDLE) {	/* on its way: no more than a look whether it is still needed */
		due(d, now + SILENCE_US);
		return;
	}
	if (now >= d->ask_us || (d->peer.n > 0 && d->ds->ask.left(d->ds->ask.arg, &d->peer))) {
		d->peer.n = 0;
		d->ask_us = now;
		due(d, now + SILENCE_US);
		ask(d);
	} else
		due(d, d->peer.n > 0 && now + LOOK_US < d->ask_us ? now + LOOK_US : d->ask_us);
}

void
doubts_turn(struct doubts *ds, int64_t now)
{
	struct due *first;

	while ((first = due_first(&ds->dues)) != NULL && first->us <= now)
		doubt_turn((struct doubt *)(void *)((char *)first - offsetof(struct doubt, due)), now);
}

int64_t
doubts_next_event(const struct doubts *ds)
{
	return due_next(&ds->dues);
}

/* --- in a batch --- */

bool
doubts_ready(const struct doubts *ds)
{
	return ds->ready != NULL;
}

static bool
fatal(int rc)
{
	return rc == QMESYSTEM || rc == QMEOS;
}

/*
 * Ended by hand.  A coordinator that committed keeps its record until it has told us, and then hears.  One that has no record has not
 * committed, and will not ask: what was rolled back by hand is as it should be, and forgotten; a commit stays on the list.
 */
static int
by_hand_end(struct doubt *d, struct branch *b)
{
	int rc;

	if (d->commit || qspace_branch_state(b) == BR_HEUR_COMMITTED)
		return 0;
	rc = qspace_branch_forget(d->ds->qs, b);
	return fatal(rc) ? rc : 0;
}

static int
doubt_end(struct doubt *d)
{
	static const struct wire_why why = { .error = TPEABORT, .text = "rolled back by its coordinator" };
	struct qspace *qs = d->ds->qs;
	struct branch *b = qspace_branch_find(qs, &d->id);
	int rc;

	if (b != NULL && is_heuristic(qspace_branch_state(b)))
		return by_hand_end(d, b);
	if (b == NULL || qspace_branch_state(b) != BR_PREPARED)
		return 0;
	rc = d->commit ? qspace_branch_commit(qs, b) : qspace_branch_rollback_because(qs, b, &why);
	if (rc == 0 || rc == QSPACE_AGAIN)
		txs_ended(d->ds->txs, &d->id);
	return fatal(rc) ? rc : 0;		/* not ended: it is noticed after the commit, and asked about again */
}

int
doubts_work(struct doubts *ds, size_t at_most)
{
	struct doubt *d;
	int rc;

	for (; at_most > 0 && (d = ds->ready) != NULL; at_most--) {
		if ((rc = doubt_end(d)) != 0)
			return rc;
		d->at = DOUBT_DONE;
		DL_DELETE(ds->ready, d);
		DL_APPEND(ds->done, d);
	}
	return 0;
}

static void
say_resolved(const struct doubt *d)
{
	char gtrid[GTRID_HEX];

	gtrid_to_hex(d->id.gtrid, d->id.len, gtrid);
	ulog("QM_CAT:1642: INFO: TMQUEUE: transaction %s, which was in doubt in queue space %s, is %s: group %s says so", gtrid,
	    qspace_params(d->ds->qs)->name, d->commit ? "committed" : "rolled back", d->coordinator);
}

/*
 * Still remembered.  The coordinator committed, and will ask; or it did not, and this is committed here alone.  (One that just heard of it may
 * have forgotten the transaction a moment before it tells us to: it is asked twice.)
 */
static void
still_by_hand(struct doubt *d)
{
	char gtrid[GTRID_HEX];

	if (d->commit || !d->denied) {
		d->denied = !d->commit;
		ask_later(d);
		return;
	}
	gtrid_to_hex(d->id.gtrid, d->id.len, gtrid);
	ulog("QM_CAT:1671: WARN: TMQUEUE: transaction %s was committed by an administrator in queue space %s, and group %s, which "
	    "coordinates it, has not committed it; it is listed until qforgettrans (qmadmin)", gtrid,
	    qspace_params(d->ds->qs)->name, d->coordinator);
	doubt_free(d);
}

static void
doubt_take(struct doubt *d, struct doubt **from)
{
	DL_DELETE(*from, d);
	d->at = DOUBT_WAITS;
}

static void
retry(struct doubt *d)
{
	d->ask_us = clock_mono_us() + RETRY_US;
	due(d, d->ask_us);
}

void
doubts_commit(struct doubts *ds)
{
	enum branch_state state;
	struct doubt *d;

	while ((d = ds->done) != NULL) {
		doubt_take(d, &ds->done);
		if (is_heuristic(state = state_of(d)))
			still_by_hand(d);
		else if (state == BR_PREPARED)
			retry(d);
		else {
			if (d->old || d->said)
				say_resolved(d);
			doubt_free(d);
		}
	}
}

void
doubts_abort(struct doubts *ds)
{
	for (struct doubt *d = ds->done; d != NULL; d = d->next)
		d->at = DOUBT_READY;
	DL_CONCAT(ds->done, ds->ready);
	ds->ready = ds->done;
	ds->done = NULL;
}

void
doubts_failed(struct doubts *ds)
{
	struct doubt *d = ds->ready;

	if (d == NULL)
		return;
	doubt_take(d, &ds->ready);
	retry(d);
}
