/*
 * One transaction:
 *
 *             all vote yes             on disk            all have answered       record removed
 *  DECIDING --------------> DECIDED -----------> TELLING ------------------> TOLD --------------> gone
 *     |                        |                   '--- nobody is to be told (all others only read): gone
 *     | a no, a vote lost,     | the disk refused it
 *     | asked to roll back     |
 *     '------------------> ROLLING_BACK --------> RECALLING ----------------> gone
 *                                      on disk              all have answered, or are gone: they will ask
 *
 * Until DECIDED is on disk a crash rolls back (D5): no record, and the branch was in memory.
 */
#include "coordinator.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "clock.h"
#include "due.h"
#include "gtrid.h"
#include "point.h"
#include "quiet.h"
#include "ulog.h"

#define VOTE_LEAST_US 5000000		/* however little of the transaction's time is left: a slow flush loses no vote */
#define VOTE_MOST_US 60000000
#define CALLER_LEAST_US 1000000		/* nor however little its caller waits */
#define CALLER_MOST_US 10000000		/* so long a caller waits for the last answer of a transaction that is committed */
#define RECALL_US 2000000		/* and for those of one that is rolled back */
#define RECALL_GIVE_UP_US 30000000	/* who does not answer for so long will ask */
#define CLEAN_US 1000000		/* a record that nobody needs stays no longer, when no batch is written anyway */
#define OURS "the coordinating group"
#define RETRY_US 1000000		/* the disk did not take a rollback */
#define AGAIN_US 100000			/* a group that could not carry out what was decided is told again, later each time, up to: */
#define AGAIN_MOST_US 10000000
enum { CALLERS_MOST = 8, CLEAN_MOST = 256 };

struct caller { struct caller *next; struct link_peer peer; uint64_t reqid; bool logged, recalls; int64_t until_us; };

struct party {			/* one of the others */
	struct letter letter;	/* first: its owner is found by it */
	struct deal *deal;
	enum { PARTY_ASKED, PARTY_PREPARED, PARTY_READ_ONLY, PARTY_TOLD, PARTY_DONE } at;
	int64_t again_us, wait_us;	/* tell it again then; 0: a letter is on its way */
};

enum deal_state { DEAL_DECIDING, DEAL_DECIDED, DEAL_TELLING, DEAL_TOLD, DEAL_ROLLING_BACK, DEAL_RECALLING };
#define TO(s) (1u << (s))
static const struct { const char *name; unsigned next; } states[] = {
	[DEAL_DECIDING]     = { "deciding",     TO(DEAL_DECIDED) | TO(DEAL_ROLLING_BACK) },
	[DEAL_DECIDED]      = { "deciding",     TO(DEAL_TELLING) | TO(DEAL_ROLLING_BACK) },
	[DEAL_TELLING]      = { "decided",      TO(DEAL_TOLD) },
	[DEAL_TOLD]         = { "decided",      0 },
	[DEAL_ROLLING_BACK] = { "rolling back", TO(DEAL_RECALLING) },
	[DEAL_RECALLING]    = { "rolling back", 0 },
};

struct deal {
	struct branch_id id;
	UT_hash_handle hh;
	struct coordinator *co;
	enum deal_state state;
	enum { LIST_NONE, LIST_READY, LIST_DOING, LIST_TOLD } list;
	struct deal *prev, *next;	/* in that list */
	struct caller *callers;
	struct due due;			/* next event */
	int64_t vote_us, told_us;	/* until when all must vote; when the last was told, or it was recalled */
	bool recorded;			/* the decision has a record */
	bool unknown;			/* there was no branch here to begin with */
	bool cleaning;			/* its record is removed by the batch that runs */
	bool mixed, hazard;		/* a group ended otherwise, or may have */
	struct wire_why why;
	unsigned n;
	struct party party[];
};

struct coordinator {
	struct qspace *qs;
	struct txs *txs;
	struct letters *ls;
	struct coordinator_voice voice;
	struct deal *all, *ready, *doing, *told;
	size_t waiting;			/* callers */
	struct due_heap dues;
	int64_t clean_us;		/* no record is removed on its own before: it failed */
};

struct coordinator *
coordinator_new(struct qspace *qs, struct txs *txs, struct letters *ls, const struct coordinator_voice *voice)
{
	struct coordinator *co = calloc(1, sizeof *co);

	if (co != NULL) {
		co->qs = qs;
		co->txs = txs;
		co->ls = ls;
		co->voice = *voice;
	}
	return co;
}

static void	/* The only place that moves it on. */
enter(struct deal *d, enum deal_state next)
{
	assert(states[d->state].next & TO(next));
	d->state = next;
}

static struct deal **
list_head(struct coordinator *co, int list)
{
	return list == LIST_READY ? &co->ready : list == LIST_DOING ? &co->doing : &co->told;
}

static void	/* into that list, or none, at its end */
list_put(struct deal *d, int list)
{
	struct deal **head;

	if (d->list != LIST_NONE) {
		head = list_head(d->co, d->list);
		DL_DELETE(*head, d);
	}
	if ((d->list = list) != LIST_NONE) {
		head = list_head(d->co, list);
		DL_APPEND(*head, d);
	}
}

static void
due(struct deal *d, int64_t us)	/* then, or earlier */
{
	if (d->due.at == 0 || us < d->due.us)
		due_set(&d->co->dues, &d->due, us);
}

static void
due_not(struct deal *d)
{
	due_set(&d->co->dues, &d->due, INT64_MAX);
}

static void
caller_free(struct deal *d, struct caller *c)
{
	LL_DELETE(d->callers, c);
	d->co->waiting--;
	free(c);
}

static void
deal_free(struct deal *d)
{
	for (unsigned i = 0; i < d->n; i++)
		letter_cancel(d->co->ls, &d->party[i].letter);
	while (d->callers != NULL)
		caller_free(d, d->callers);
	list_put(d, LIST_NONE);
	due_not(d);
	HASH_DEL(d->co->all, d);	// NOLINT: inside uthash
	free(d);
}

void
coordinator_free(struct coordinator *co)
{
	struct deal *d, *next;

	if (co == NULL)
		return;
	for (d = co->all; d != NULL; d = next) {
		next = d->hh.next;
		deal_free(d);
	}
	due_free(&co->dues);
	free(co);
}

static struct deal *
deal_find(struct coordinator *co, const struct branch_id *id)
{
	struct deal *d;

	HASH_FIND(hh, co->all, id->gtrid, id->len, d);
	return d;
}

bool
coordinator_has(struct coordinator *co, const struct branch_id *id)
{
	return deal_find(co, id) != NULL;
}

static const struct letter_owner deciding;

static struct deal *	/* NULL: no memory */
deal_new(struct coordinator *co, const struct branch_id *id, unsigned n)
{
	struct deal *d;

	if (due_room(&co->dues, HASH_COUNT(co->all) + 1) != 0 || (d = calloc(1, sizeof *d + n * sizeof d->party[0])) == NULL)
		return NULL;
	d->co = co;
	d->id = *id;
	d->n = n;
	for (unsigned i = 0; i < n; i++) {
		d->party[i].deal = d;
		d->party[i].letter.owner = &deciding;
		d->party[i].letter.id = &d->id;
		d->party[i].letter.why = &d->why;
	}
	HASH_ADD_KEYPTR(hh, co->all, d->id.gtrid, d->id.len, d);
	return d;
}

/* --- callers --- */

static void
answer(struct deal *d, struct caller *c, int error, int outcome)
{
	d->co->voice.answer(d->co->voice.arg, &d->id, &c->peer, c->reqid, error, outcome);
	caller_free(d, c);
}

static void	/* It is committed, or not, as far as is known now. */
answer_outcome(struct deal *d, struct caller *c)
{
	bool committed = d->state == DEAL_TELLING || d->state == DEAL_TOLD;

	if (d->mixed)
		answer(d, c, TPEHEURISTIC, WIRE_OUT_HEUR_MIXED);
	else if (d->hazard)
		answer(d, c, TPEHAZARD, WIRE_OUT_HEUR_HAZARD);
	else if (committed)
		answer(d, c, c->recalls ? TPEPROTO : 0, WIRE_OUT_COMMITTED);
	else if (c->recalls)
		answer(d, c, 0, WIRE_OUT_ROLLED_BACK);
	else
		answer(d, c, TPEABORT, d->unknown ? WIRE_OUT_NONE_SUCH : WIRE_OUT_ROLLED_BACK);
}

static void
answer_all(struct deal *d)
{
	while (d->callers != NULL)
		answer_outcome(d, d->callers);
}

static void	/* those that do not wait for the other groups */
answer_now(struct deal *d)
{
	struct caller *c, *next;

	if (d->state != DEAL_TELLING && d->state != DEAL_TOLD)
		return;
	for (c = d->callers; c != NULL; c = next) {
		next = c->next;
		if (d->state == DEAL_TOLD || c->logged || c->recalls)
			answer_outcome(d, c);
	}
}

static int64_t	/* How long it waits, less what the answer takes. */
patience(uint32_t timeout_ms)
{
	int64_t us = (int64_t)timeout_ms * 1000;

	return timeout_ms == 0 ? INT64_MAX : us - (us / 10 < 500000 ? us / 10 : 500000);
}

static int	/* 0; QMEOS; TPEPROTO: there are enough */
caller_add(struct deal *d, const struct link_peer *from, const struct wire_txend *m, int64_t now)
{
	int64_t wait = patience(m->timeout_ms), most = m->op == WIRE_TX_ABORT ? RECALL_US : CALLER_MOST_US;
	struct caller *c;
	int n = 0;

	for (c = d->callers; c != NULL; c = c->next, n++)
		if (c->reqid == m->reqid && c->peer.n == from->n && memcmp(c->peer.id, from->id, from->n) == 0)
			return 0;	/* the same request, in a batch that is run again */
	if (n >= CALLERS_MOST)
		return TPEPROTO;
	if ((c = calloc(1, sizeof *c)) == NULL)
		return QMEOS;
	c->peer = *from;
	c->reqid = m->reqid;
	c->logged = m->logged;
	c->recalls = m->op == WIRE_TX_ABORT;
	c->until_us = now + (wait < most ? wait : most);
	LL_APPEND(d->callers, c);
	d->co->waiting++;
	return 0;
}

/* --- it ends --- */

static bool
all_done(const struct deal *d)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at != PARTY_DONE)
			return false;
	return true;
}

static void	/* Nobody is left to be told: d may be gone afterwards. */
deal_look(struct deal *d)
{
	if ((d->state != DEAL_TELLING && d->state != DEAL_RECALLING) || !all_done(d))
		return;
	answer_all(d);
	if (d->recorded) {
		enter(d, DEAL_TOLD);
		d->told_us = clock_mono_us();
		list_put(d, LIST_TOLD);
		due_not(d);
	} else
		deal_free(d);
}

static void
party_send(struct party *p, uint8_t op, bool stays)
{
	int rc = letter_post(p->deal->co->ls, &p->letter, letter_group(&p->letter), op, stays);

	assert(rc == 0);	/* it was posted before, to the same group */
	p->again_us = 0;
}

static void	/* It could not do what was decided: again, later. */
party_again(struct party *p)
{
	p->wait_us = p->wait_us == 0 ? AGAIN_US : p->wait_us < AGAIN_MOST_US / 2 ? 2 * p->wait_us : AGAIN_MOST_US;
	p->again_us = clock_mono_us() + p->wait_us;
	due(p->deal, p->again_us);
}

static void
party_done(struct party *p)
{
	letter_cancel(p->deal->co->ls, &p->letter);
	p->again_us = 0;
	p->at = PARTY_DONE;
}

/* --- rolling back --- */

/* From here on it is rolled back, whatever becomes of the batch: nobody else may have committed. */
static void
roll_back(struct deal *d, int error, const char *who, const char *what)
{
	d->why = (struct wire_why){ .error = error };
	(void)snprintf(d->why.text, sizeof d->why.text, "%s %s", who, what);
	enter(d, DEAL_ROLLING_BACK);
	for (unsigned i = 0; i < d->n; i++) {
		struct party *p = &d->party[i];
		if (p->at == PARTY_READ_ONLY)
			p->at = PARTY_DONE;
		if (p->at == PARTY_DONE || p->at == PARTY_TOLD)
			continue;
		p->at = PARTY_TOLD;
		party_send(p, WIRE_TX_ABORT, false);
	}
	if (d->list != LIST_READY)	/* where it is, it stays: the first one is that which failed */
		list_put(d, LIST_READY);
	for (struct caller *c = d->callers; c != NULL; c = c->next)
		if (c->until_us > clock_mono_us() + RECALL_US)
			c->until_us = clock_mono_us() + RECALL_US;
}

static void	/* Its program is told no more than that it was rolled back; the log has the reason. */
roll_back_for(struct party *p, const char *what)
{
	char gtrid[GTRID_HEX];

	gtrid_to_hex(p->deal->id.gtrid, p->deal->id.len, gtrid);
	quiet_log("QM_CAT:1645: WARN: TMQUEUE: transaction %s is rolled back: group %s %s", gtrid, letter_group(&p->letter), what);
	roll_back(p->deal, TPEABORT, letter_group(&p->letter), what);
}

/* --- what the others say --- */

static void
on_vote(struct party *p, int error, int outcome)
{
	struct deal *d = p->deal;

	point(POINT_VOTE_READ);
	if (error != 0 || (outcome != WIRE_OUT_PREPARED && outcome != WIRE_OUT_READ_ONLY)) {
		/* Who says that it rolled back is not to be told; one that was ended by hand is, for it has to forget that. */
		if (outcome == WIRE_OUT_ROLLED_BACK || outcome == WIRE_OUT_NONE_SUCH)
			p->at = PARTY_DONE;
		roll_back_for(p, outcome == WIRE_OUT_NONE_SUCH ? "had lost its part" : "could not commit");
		return;
	}
	p->at = outcome == WIRE_OUT_PREPARED ? PARTY_PREPARED : PARTY_READ_ONLY;
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at == PARTY_ASKED)
			return;
	enter(d, DEAL_DECIDED);
	list_put(d, LIST_READY);
}

static void
say_otherwise(struct party *p, const char *decided, const char *how)
{
	char gtrid[GTRID_HEX];

	gtrid_to_hex(p->deal->id.gtrid, p->deal->id.len, gtrid);
	ulog("QM_CAT:1643: ERROR: TMQUEUE: transaction %s was %s, but group %s %s: its queues do not agree with those of the other groups",
	    gtrid, decided, letter_group(&p->letter), how);
}

static void	/* the answer to DECIDED */
on_told(struct party *p, int error, int outcome)
{
	point(POINT_DECIDED_ANSWERED);
	if (error == TPEHEURISTIC) {
		p->deal->mixed = true;
		say_otherwise(p, "committed", "was rolled back by an administrator");
		party_send(p, WIRE_TX_FORGET, true);
	} else if (error == 0 && outcome == WIRE_OUT_HEUR_COMMITTED) {
		party_send(p, WIRE_TX_FORGET, true);
	} else if (error == 0) {
		party_done(p);
	} else if (error == TPEPROTO) {
		p->deal->hazard = true;
		say_otherwise(p, "committed", "is not prepared to");
		party_done(p);
	} else
		party_again(p);
}

static void	/* the answer to ABORT */
on_recalled(struct party *p, int error, int outcome)
{
	if (error == TPEHEURISTIC) {
		p->deal->mixed = true;
		say_otherwise(p, "rolled back", "was committed by an administrator");
	}
	if (error == TPEHEURISTIC || outcome == WIRE_OUT_HEUR_ROLLED_BACK)
		party_send(p, WIRE_TX_FORGET, false);
	else
		party_done(p);
}

static void
on_answer(struct letter *l, int error, int outcome)
{
	struct party *p = (struct party *)(void *)l;

	if (l->op == WIRE_TX_PREPARE)
		on_vote(p, error, outcome);
	else if (l->op == WIRE_TX_DECIDED)
		on_told(p, error, outcome);
	else if (l->op == WIRE_TX_ABORT)
		on_recalled(p, error, outcome);
	else if (error == 0 || error == TPEPROTO || p->deal->state != DEAL_TELLING)	/* FORGET */
		party_done(p);
	else
		party_again(p);
	deal_look(p->deal);
}

static void
on_failure(struct letter *l, bool sent)
{
	struct party *p = (struct party *)(void *)l;

	if (l->op == WIRE_TX_PREPARE && !sent)
		p->at = PARTY_DONE;	/* it heard nothing, and would not hear more */
	if (l->op == WIRE_TX_PREPARE)
		roll_back_for(p, sent ? "was lost before it voted" : "cannot be reached to commit");
	else
		party_done(p);	/* it will ask, and hear that it is rolled back (D5) */
	deal_look(p->deal);
}

static const struct letter_owner deciding = { on_answer, on_failure };

/* --- what is asked of us --- */

static int64_t	/* Until when all must have voted: in the transaction's time, and so that whoever asked hears of it. */
vote_until(const struct wire_txend *m, int64_t now)
{
	int64_t us = m->tx.timeout_ms == 0 ? VOTE_MOST_US : (int64_t)m->tx.timeout_ms * 1000, wait = patience(m->timeout_ms);

	if (us < VOTE_LEAST_US)
		us = VOTE_LEAST_US;
	if (us > wait)
		us = wait < CALLER_LEAST_US ? CALLER_LEAST_US : wait;
	return now + us;
}

static int	/* Each gets a box for its letters.  0, or QMEOS. */
parties_post(struct deal *d, const struct wire_groups *others, uint8_t op)
{
	for (unsigned i = 0; i < d->n; i++) {
		if (letter_post(d->co->ls, &d->party[i].letter, others->name[i], op, false) != 0)
			return QMEOS;
		d->party[i].at = op == WIRE_TX_ABORT ? PARTY_TOLD : PARTY_ASKED;
	}
	return 0;
}

static int
begin_anew(struct coordinator *co, const struct branch_id *id, const struct link_peer *from, const struct wire_txend *m,
    const struct wire_groups *others)
{
	struct branch *b = qspace_branch_find(co->qs, id);
	bool lost = b == NULL || qspace_branch_doomed(b) || qspace_branch_state(b) == BR_ROLLING_BACK;	/* the others do not know that yet */
	int64_t now = clock_mono_us();
	struct deal *d;

	if (b != NULL && (qspace_branch_is_by_hand(b) || (!lost && qspace_branch_state(b) != BR_ACTIVE)))
		return TPEPROTO;	/* another one coordinates it */
	if ((d = deal_new(co, id, others->n)) == NULL)
		return QMEOS;
	if (caller_add(d, from, m, now) != 0 || parties_post(d, others, lost ? WIRE_TX_ABORT : WIRE_TX_PREPARE) != 0) {
		deal_free(d);
		return QMEOS;
	}
	d->unknown = b == NULL;
	if (lost) {
		roll_back(d, TPEABORT, OURS, "had rolled it back");
		return 0;
	}
	qspace_branch_close(b);
	d->vote_us = vote_until(m, now);
	due(d, d->vote_us);
	return 0;
}

int
coordinator_begin(struct coordinator *co, const struct link_peer *from, const struct wire_txend *m, const struct wire_groups *others)
{
	struct branch_id id = tx_id(&m->tx);
	struct deal *d = deal_find(co, &id);
	struct branch *b;
	int rc;

	if (d == NULL)
		return begin_anew(co, &id, from, m, others);
	if (d->state == DEAL_DECIDING && (b = qspace_branch_find(co->qs, &id)) != NULL)
		qspace_branch_close(b);	/* the batch that opened it is run again */
	if ((rc = caller_add(d, from, m, clock_mono_us())) != 0)
		return rc;
	answer_now(d);
	due(d, clock_mono_us());	/* the patience of who is left counts too */
	return 0;
}

bool
coordinator_recall(struct coordinator *co, const struct link_peer *from, const struct wire_txend *m)
{
	struct branch_id id = tx_id(&m->tx);
	struct deal *d = deal_find(co, &id);

	if (d == NULL)
		return false;
	if (caller_add(d, from, m, clock_mono_us()) != 0)
		return true;	/* it hears nothing, and gives up */
	if (d->state == DEAL_DECIDING || (d->state == DEAL_DECIDED && d->list == LIST_READY)) {
		roll_back(d, TPEABORT, "its program", "rolled it back while it was being committed");
		if (m->why.text[0] != '\0')
			d->why = m->why;
	}
	answer_now(d);
	due(d, clock_mono_us());
	return true;
}

bool
coordinator_refuse(struct coordinator *co, const struct wire_txend *m, const struct wire_groups *others)
{
	struct branch_id id = tx_id(&m->tx);
	struct deal *d = deal_find(co, &id);

	if (d != NULL)
		return true;
	if ((d = deal_new(co, &id, others->n)) == NULL)
		return false;		/* they end at their deadline */
	if (parties_post(d, others, WIRE_TX_ABORT) == 0)
		roll_back(d, TPESYSTEM, OURS, "could not commit");
	else
		deal_free(d);
	return false;
}

static void
hurry(struct deal *d)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at != PARTY_DONE)
			letters_hurry(d->co->ls, letter_group(&d->party[i].letter));
}

int
coordinator_query(struct coordinator *co, const struct branch_id *id)
{
	struct deal *d = deal_find(co, id);

	if (d == NULL)
		return WIRE_OUT_ROLLED_BACK;	/* all that is decided is in memory too */
	switch (d->state) {
	case DEAL_TELLING:
		hurry(d);		/* whoever asks is back */
		return WIRE_OUT_COMMITTED;
	case DEAL_TOLD:
		return WIRE_OUT_COMMITTED;
	case DEAL_DECIDING:
	case DEAL_DECIDED:
		return WIRE_OUT_UNDECIDED;
	default:
		return WIRE_OUT_ROLLED_BACK;
	}
}

/* --- work in a batch --- */

static bool
fatal(int rc)
{
	return rc == QMESYSTEM || rc == QMEOS;
}

static unsigned
prepared(const struct deal *d, struct wire_groups *g)
{
	*g = (struct wire_groups){ 0 };
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at == PARTY_PREPARED)
			memcpy(g->name[g->n++], letter_group(&d->party[i].letter), WIRE_GROUP);
	return g->n;
}

static int
work_rollback(struct deal *d)
{
	struct branch *b = qspace_branch_find(d->co->qs, &d->id);
	int rc = 0;

	if (b != NULL && qspace_branch_state(b) == BR_ACTIVE)
		rc = qspace_branch_rollback_because(d->co->qs, b, &d->why);
	txs_ended(d->co->txs, &d->id);
	return fatal(rc) ? rc : 0;
}

/* The record first: a branch that finds no room can still be rolled back then, and the record removed. */
static int
work_commit(struct deal *d)
{
	struct coordinator *co = d->co;
	struct branch *b = qspace_branch_find(co->qs, &d->id);
	struct wire_groups told;
	int rc = QMEABORTED;

	d->recorded = false;
	if (b != NULL && prepared(d, &told) > 0) {
		point(POINT_DECISION_WRITE);
		if ((rc = qspace_decision_put(co->qs, &d->id, &told)) != 0)
			return fatal(rc) ? rc : QMESYSTEM;
		point_note(POINT_DECISION_FLUSH);
		d->recorded = true;
	}
	if (b != NULL && fatal(rc = qspace_branch_commit(co->qs, b)))
		return rc;
	if (rc == 0 || rc == QSPACE_AGAIN) {	/* again: a large one, which is decided by this batch */
		txs_ended(co->txs, &d->id);
		return 0;
	}
	if (d->recorded && (rc = qspace_decision_remove(co->qs, &d->id)) != 0)
		return rc;
	d->recorded = false;
	roll_back(d, TPEABORT, OURS, "could not commit");
	return work_rollback(d);
}

int
coordinator_work(struct coordinator *co, size_t at_most)
{
	struct deal *d;
	int rc;

	for (; at_most > 0 && (d = co->ready) != NULL; at_most--) {
		if ((rc = d->state == DEAL_DECIDED ? work_commit(d) : work_rollback(d)) != 0)
			return rc;
		list_put(d, LIST_DOING);
	}
	return 0;
}

static int64_t	/* when a record has waited for long enough */
clean_at(const struct coordinator *co)
{
	int64_t us = co->told != NULL ? co->told->told_us + CLEAN_US : INT64_MAX;

	return us < co->clean_us ? co->clean_us : us;
}

int
coordinator_clean(struct coordinator *co)
{
	struct deal *d = co->told;
	int n = 0, rc;

	if (d == NULL || (!qspace_batch_writes(co->qs) && clock_mono_us() < clean_at(co)))
		return 0;
	for (; d != NULL && n < CLEAN_MOST; d = d->next, n++) {
		if ((rc = qspace_decision_remove(co->qs, &d->id)) != 0)
			return rc;
		point_note(POINT_RECORD_REMOVE);
		d->cleaning = true;
	}
	return 0;
}

bool
coordinator_ready(const struct coordinator *co)
{
	return co->ready != NULL;
}

static void	/* It is on disk (D1). */
tell(struct deal *d)
{
	enter(d, DEAL_TELLING);
	for (unsigned i = 0; i < d->n; i++) {
		struct party *p = &d->party[i];
		if (p->at != PARTY_PREPARED) {
			p->at = PARTY_DONE;
			continue;
		}
		p->at = PARTY_TOLD;
		party_send(p, WIRE_TX_DECIDED, true);
	}
	answer_now(d);
	for (struct caller *c = d->callers; c != NULL; c = c->next)
		due(d, c->until_us);
	deal_look(d);
}

static void
recalled(struct deal *d)
{
	enter(d, DEAL_RECALLING);
	for (struct caller *c = d->callers; c != NULL; c = c->next)
		due(d, c->until_us);
	due(d, clock_mono_us() + RECALL_GIVE_UP_US);
	d->told_us = clock_mono_us();
	deal_look(d);
}

void
coordinator_commit(struct coordinator *co)
{
	struct deal *d, *next;

	while ((d = co->doing) != NULL) {
		list_put(d, LIST_NONE);
		due_not(d);
		if (d->state == DEAL_DECIDED)
			tell(d);
		else
			recalled(d);
	}
	for (d = co->told; d != NULL && d->cleaning; d = next) {
		next = d->next;
		deal_free(d);
	}
}

void
coordinator_abort(struct coordinator *co)
{
	for (struct deal *d = co->doing; d != NULL; d = d->next)
		d->list = LIST_READY;
	DL_CONCAT(co->doing, co->ready);
	co->ready = co->doing;
	co->doing = NULL;
	for (struct deal *d = co->told; d != NULL && d->cleaning; d = d->next)
		d->cleaning = false;
	co->clean_us = clock_mono_us() + CLEAN_US;	/* not at full speed */
}

void
coordinator_failed(struct coordinator *co)
{
	struct deal *d = co->ready;

	if (d == NULL)
		return;
	if (d->state == DEAL_DECIDED) {
		d->recorded = false;
		roll_back(d, TPESYSTEM, OURS, "could not commit");
		return;
	}
	ulog("QM_CAT:1611: ERROR: TMQUEUE: a rollback could not be written; it is tried again");
	list_put(d, LIST_NONE);
	due_not(d);
	due(d, clock_mono_us() + RETRY_US);
}

/* --- time --- */

static void	/* The caller hears that it is committed, for it is; who is told later is for the log. */
say_later(const struct deal *d)
{
	char gtrid[GTRID_HEX];

	gtrid_to_hex(d->id.gtrid, d->id.len, gtrid);
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at != PARTY_DONE)
			ulog("QM_CAT:1644: WARN: TMQUEUE: transaction %s is committed; group %s has not answered yet, and is told when it can be "
			    "reached", gtrid, letter_group(&d->party[i].letter));
}

static void
say_votes(const struct deal *d)
{
	char gtrid[GTRID_HEX];

	gtrid_to_hex(d->id.gtrid, d->id.len, gtrid);
	for (unsigned i = 0; i < d->n; i++)
		if (d->party[i].at == PARTY_ASKED)
			ulog("QM_CAT:1645: WARN: TMQUEUE: transaction %s is rolled back: group %s has not voted in time", gtrid,
			    letter_group(&d->party[i].letter));
}

static void	/* Callers whose patience ends are answered; who is left says when next. */
callers_turn(struct deal *d, int64_t now)
{
	struct caller *c, *next;
	bool any = false;

	for (c = d->callers; c != NULL; c = next) {
		next = c->next;
		if (c->until_us <= now) {
			any = true;
			answer_outcome(d, c);
		} else
			due(d, c->until_us);
	}
	if (any && d->state == DEAL_TELLING)
		say_later(d);
}

static void
parties_turn(struct deal *d, int64_t now)
{
	for (unsigned i = 0; i < d->n; i++) {
		struct party *p = &d->party[i];
		if (p->again_us == 0)
			continue;
		if (p->again_us <= now)
			party_send(p, p->letter.op, true);
		else
			due(d, p->again_us);
	}
}

static void	/* d may be gone afterwards */
deal_turn(struct deal *d, int64_t now)
{
	const char *late = "some group";

	switch (d->state) {
	case DEAL_DECIDING:
		if (now < d->vote_us) {
			due(d, d->vote_us);
			return;
		}
		say_votes(d);
		for (unsigned i = 0; i < d->n; i++)
			if (d->party[i].at == PARTY_ASKED)
				late = letter_group(&d->party[i].letter);
		roll_back(d, TPETIME, late, "has not voted in time");
		return;
	case DEAL_TELLING:
		callers_turn(d, now);
		parties_turn(d, now);
		return;
	case DEAL_ROLLING_BACK:		/* its rollback failed, and is tried again */
		if (d->list == LIST_NONE)
			list_put(d, LIST_READY);
		callers_turn(d, now);
		return;
	case DEAL_RECALLING:
		callers_turn(d, now);
		if (now - d->told_us >= RECALL_GIVE_UP_US)
			deal_free(d);
		else
			due(d, d->told_us + RECALL_GIVE_UP_US);
		return;
	default:
		return;
	}
}

void
coordinator_turn(struct coordinator *co, int64_t now)
{
	struct due *first;

	while ((first = due_first(&co->dues)) != NULL && first->us <= now) {
		struct deal *d = (struct deal *)(void *)((char *)first - offsetof(struct deal, due));
		due_not(d);
		deal_turn(d, now);
	}
}

int64_t
coordinator_next_event(const struct coordinator *co)
{
	int64_t next = due_next(&co->dues), clean = clean_at(co);

	return clean < next ? clean : next;
}

bool
coordinator_busy(const struct coordinator *co)
{
	return co->waiting > 0;
}

void
coordinator_dismiss(struct coordinator *co)
{
	struct deal *d, *next;

	for (d = co->all; d != NULL; d = next) {
		next = d->hh.next;
		if (d->state == DEAL_DECIDING || d->state == DEAL_DECIDED)
			roll_back(d, TPEABORT, OURS, "was shut down");
		answer_all(d);
	}
}

/* --- decisions of before --- */

static int
load_one(struct coordinator *co, const struct branch_id *id, const struct wire_groups *g)
{
	struct deal *d = deal_new(co, id, g->n);

	if (d == NULL)
		return QMEOS;
	d->state = DEAL_TELLING;
	d->recorded = true;
	for (unsigned i = 0; i < d->n; i++) {
		d->party[i].at = PARTY_TOLD;
		if (letter_post(co->ls, &d->party[i].letter, g->name[i], WIRE_TX_DECIDED, true) != 0)
			return QMEOS;
	}
	deal_look(d);
	return 0;
}

int
coordinator_load(struct coordinator *co)
{
	struct branch_id id, last;
	struct wire_groups g;
	size_t n = 0;
	int rc = qspace_decision_next(co->qs, NULL, &id, &g);

	while (rc == 0) {
		if ((rc = load_one(co, &id, &g)) != 0)
			return rc;
		n++;
		last = id;
		rc = qspace_decision_next(co->qs, &last, &id, &g);
	}
	if (n > 0)
		ulog("QM_CAT:1646: INFO: TMQUEUE: %zu transactions over several groups were committed in queue space %s and some group may not "
		    "know yet: all are told", n, qspace_params(co->qs)->name);
	return rc == QMENOMSG ? 0 : rc;
}

/* --- for administrators --- */

bool
coordinator_waiting(struct coordinator *co, const struct branch_id *id, struct wire_groups *waiting)
{
	struct deal *d = deal_find(co, id);

	*waiting = (struct wire_groups){ 0 };
	for (unsigned i = 0; d != NULL && i < d->n; i++)
		if (d->party[i].at == PARTY_ASKED || d->party[i].at == PARTY_TOLD)
			memcpy(waiting->name[waiting->n++], letter_group(&d->party[i].letter), WIRE_GROUP);
	return d != NULL;
}

void
coordinator_give_up(struct coordinator *co, const struct branch_id *id)
{
	struct deal *d = deal_find(co, id);

	if (d == NULL || (d->state != DEAL_TELLING && d->state != DEAL_TOLD))
		return;
	answer_all(d);
	deal_free(d);
}
