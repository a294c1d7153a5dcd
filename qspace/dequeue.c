/*
 * dequeue - the first eligible message, or the first that is selected; removed, held by a branch, or only looked at.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "qspace_impl.h"

enum { PASS_MAX = 32, MANY = 1 };
struct pick { struct okey key; struct oval v; };
static const struct place in_order = { .delayed = false };

static bool
is_expired(const struct oval *v, int64_t now)
{
	return v->expires_us != 0 && v->expires_us <= now;
}

/* An entry of a window.  QMENOMSG: it had expired, and is gone.  QSPACE_AGAIN: it is to go, and that is for another batch. */
static int
pick_entry(struct qspace *qs, struct queue *q, const struct went *e, const uint8_t *corrid, int64_t now, struct pick *p)
{
	int rc;

	p->v = e->v;
	p->key.n = e->n;
	memcpy(p->key.b, e->key, e->n);
	if (!is_expired(&p->v, now))
		return 0;
	if (qs->batch.steps <= 0)
		return QSPACE_AGAIN;
	qs->batch.steps--;
	if ((rc = store_remove(qs, q, &p->key, &p->v, &in_order, corrid)) != 0)
		return rc;
	used_add(qs, &p->v, -1);
	return QMENOMSG;
}

static int
pick_first(struct qspace *qs, struct queue *q, int64_t now, struct pick *p)
{
	const struct went *e;
	int rc;

	while ((e = window_min(qs, q, &rc)) != NULL)
		if ((rc = pick_entry(qs, q, e, NULL, now, p)) != QMENOMSG)
			return rc;
	return rc != 0 ? batch_dead(qs, rc) : QMENOMSG;
}

static int
pick_by_msgid(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	struct msgid_parts id;
	struct place at;
	int rc;

	if (qorder_msgid_parse(sel->msgid, &id) != 0)
		return QMEBADMSGID;
	if (memcmp(sel->msgid + 1, qs->id4, 4) != 0)	/* of another space */
		return QMENOMSG;
	rc = message_locate(qs, q, &id, &p->key, &p->v, &at);
	if (rc == DB_NOTFOUND || (rc == 0 && (is_held(qs, p->v.seq) || is_expired(&p->v, now))))
		return QMENOMSG;
	if (rc == 0 && at.delayed) {
		bool due = at.available_us <= now;
		if (!due && (!(sel->flags & WIRE_QDELAYED) || p->v.retries == 0))
			return QMENOMSG;
		if (due || !(sel->flags & TPQPEEK))
			rc = store_promote_one(qs, q, &p->key, &p->v, at.available_us);
	}
	return rc;
}

/*
 * The first eligible one of this correlation id in one set of tables.  *passed counts those that are there and cannot be
 * had, held or expired; MANY: it became too many.
 */
static int
corrid_first(struct qspace *qs, struct queue *q, bool np, const uint8_t *corrid, int64_t now, struct pick *p,
    int *passed)
{
	uint8_t from[4 + TMCORRIDLEN], val[OVAL_MAX];
	struct walk w;
	size_t n;
	int rc;

	be32(from, q->id);
	memcpy(from + 4, corrid, TMCORRIDLEN);
	for (rc = walk_first(qs, &w, T_CORRID, np, from, sizeof from); rc == 0; rc = walk_next(qs, &w)) {
		if (w.kn <= sizeof from || w.kn - sizeof from > ORDER_KEY_MAX || w.vn != 8 ||
		    memcmp(w.k, from, sizeof from) != 0) {
			rc = DB_NOTFOUND;
			break;
		}
		if (++*passed > PASS_MAX) {
			rc = MANY;
			break;
		}
		if (is_held(qs, get64(w.v)))
			continue;
		p->key.n = (uint8_t)(w.kn - sizeof from);
		memcpy(p->key.b, w.k + sizeof from, p->key.n);
		rc = table_get(qs, T_ORDER, np, p->key.b, p->key.n, val, sizeof val, &n);
		if (rc == DB_NOTFOUND)		/* delayed, stored by version 1 */
			continue;
		if (rc == 0 && oval_decode(val, n, &p->v) != 0)
			rc = batch_dead(qs, env_error(qs, T_ORDER, "an entry is not of this version", EINVAL));
		if (rc != 0 || !is_expired(&p->v, now))
			break;
	}
	walk_end(qs, &w);
	return rc == DB_NOTFOUND ? QMENOMSG : rc;
}

static int
corrid_walk(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	struct pick np;
	int passed = 0, rc = corrid_first(qs, q, false, sel->corrid, now, p, &passed), np_rc;

	if ((rc != 0 && rc != QMENOMSG) || q->n.np_messages == 0)
		return rc;
	passed = 0;
	np_rc = corrid_first(qs, q, true, sel->corrid, now, &np, &passed);
	if (np_rc == 0 && (rc == QMENOMSG || qorder_compare(np.key.b, np.key.n, p->key.b, p->key.n) < 0)) {
		*p = np;
		return 0;
	}
	return np_rc == QMENOMSG ? rc : np_rc;
}

/* One look at the disk is enough for nearly everybody; where many are in the way a window is kept. */
static int
pick_by_corrid(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	struct corrid_window *c = corrid_window_find(qs, q, sel->corrid);
	const struct went *e;
	int rc;

	if (c == NULL && (rc = corrid_walk(qs, q, sel, now, p)) != MANY)
		return rc;
	if (c == NULL && (c = corrid_window_new(qs, q, sel->corrid)) == NULL)
		return batch_dead(qs, QMEOS);
	while ((e = corrid_window_min(qs, c, &rc)) != NULL)
		if ((rc = pick_entry(qs, q, e, sel->corrid, now, p)) != QMENOMSG)
			return rc;
	return rc != 0 ? batch_dead(qs, rc) : QMENOMSG;
}

static int	/* What can only be told from the message itself. */
message_suits(const struct qselect *sel, const struct qmsg *m)
{
	if (sel == NULL)
		return 0;
	if ((sel->flags & TPQGETBYMSGID) && (sel->flags & TPQGETBYCORRID) &&
	    (!(m->flags & TPQCORRID) || memcmp(m->corrid, sel->corrid, TMCORRIDLEN) != 0))
		return QMENOMSG;
	if (sel->flags & TPQGETBYMSGID && memcmp(m->msgid, sel->msgid, TMMSGIDLEN) != 0)
		return QMENOMSG;
	if (sel->only_type && m->has_body && (strcmp(m->type, sel->type) != 0 || strcmp(m->subtype, sel->subtype) != 0))
		return QMETYPE;
	return 0;
}

/*
 * Delayed messages that are due take their place first, a bounded number in a batch: more are only asked for when there was
 * nothing among these.  The one that a msgid names is found where it is.
 */
static int
promote_and_pick(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	int moved = 0, rc;

	if (sel != NULL && (sel->flags & TPQGETBYMSGID))
		return pick_by_msgid(qs, q, sel, now, p);
	if (qs->batch.steps > 0 && (moved = store_promote(qs, q, now, qs->batch.steps)) < 0)
		return moved;
	qs->batch.steps -= moved;
	rc = sel != NULL && (sel->flags & TPQGETBYCORRID) ? pick_by_corrid(qs, q, sel, now, p) : pick_first(qs, q, now, p);
	return rc == QMENOMSG && q->n.next_due <= now ? QSPACE_AGAIN : rc;
}

int
qspace_dequeue_begin(struct qspace *qs, struct branch *b, const char *queue, const struct qselect *sel,
    struct qmsg **out, struct fetch **fetch)
{
	struct queue *q = queue_find(qs, queue);
	bool peek = sel != NULL && (sel->flags & TPQPEEK);
	int64_t now = clock_now_us();
	uint64_t parts = 0;
	struct pick p;
	int rc;

	assert(qs->batch.open);
	*out = NULL;
	*fetch = NULL;
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b != NULL && !peek && (rc = branch_check(b)) != 0)
		return rc;
	if (q == NULL)
		return QMEBADQUEUE;
	if ((rc = promote_and_pick(qs, q, sel, now, &p)) != 0 ||
	    (rc = store_read(qs, q, &p.v, out, &parts)) != 0)
		return rc;
	rc = message_suits(sel, *out);
	if (rc == 0 && !peek) {
		if (b != NULL) {
			rc = branch_add_dequeue(qs, b, q, &p.key, &p.v, *out);
		} else if (parts == 0 && (rc = store_remove(qs, q, &p.key, &p.v, &in_order, (*out)->corrid)) == 0) {
			used_add(qs, &p.v, -1);
			qs->batch.dequeues++;
			store_taken(*out, q, &p.key, &p.v);
		}
	}
	if (rc == 0 && parts != 0)
		rc = fetch_new(qs, q, &p.key, &p.v, *out, parts, !peek && b == NULL, fetch);
	if (rc != 0 || *fetch != NULL) {
		qmsg_free(*out);
		*out = NULL;
	}
	return rc;
}

int
qspace_dequeue(struct qspace *qs, struct branch *b, const char *queue, const struct qselect *sel, struct qmsg **out)
{
	struct fetch *f;
	int steps = qs->batch.steps, rc;

	qs->batch.steps = INT_MAX;
	rc = qspace_dequeue_begin(qs, b, queue, sel, out, &f);
	qs->batch.steps = steps;
	if (rc != 0 || f == NULL)
		return rc;
	if ((rc = qspace_fetch_read(f, SIZE_MAX)) == 0)
		rc = qspace_fetch_take(f, out);
	qspace_fetch_drop(f);
	return rc;
}

bool
qspace_has_eligible(struct qspace *qs, const char *queue)
{
	struct queue *q = queue_find(qs, queue);
	int64_t now = clock_now_us();
	int rc;

	if (q == NULL)
		return false;
	if (q->n.next_due <= now)
		return true;
	if (window_min(qs, q, &rc) == NULL)
		return false;
	for (size_t i = 0; i < q->w.n; i++)
		if (!is_expired(&q->w.e[q->w.head + i]->v, now))
			return true;
	return !q->w.whole;	/* beyond the window: a dequeue will tell */
}
