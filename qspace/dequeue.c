/*
 * dequeue - the first eligible message, or the first that is selected; removed, held by a branch, or only looked at.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "qspace_impl.h"

enum { PROMOTE_AT_ONCE = 2048 };
struct pick { struct okey key; struct oval v; };
static const struct place in_order = { .delayed = false };

static bool
is_expired(const struct oval *v, int64_t now)
{
	return v->expires_us != 0 && v->expires_us <= now;
}

static int
pick_first(struct qspace *qs, struct queue *q, int64_t now, struct pick *p)
{
	const struct went *e;
	int rc;

	while ((e = window_min(qs, q, &rc)) != NULL) {
		p->v = e->v;
		p->key.n = e->n;
		memcpy(p->key.b, e->key, e->n);
		if (!is_expired(&p->v, now))
			return 0;
		if ((rc = store_remove(qs, q, &p->key, &p->v, &in_order, NULL)) != 0)
			return rc;
		used_add(qs, &p->v, -1);
	}
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
		if (!(sel->flags & WIRE_QDELAYED) || p->v.retries == 0)
			return QMENOMSG;
		if (!(sel->flags & TPQPEEK))
			rc = store_promote_one(qs, q, &p->key, &p->v, at.available_us);
	}
	return rc;
}

/* The first eligible one of this correlation id in one set of tables. */
static int
corrid_first(struct qspace *qs, struct queue *q, bool np, const uint8_t *corrid, int64_t now, struct pick *p)
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
		if (is_held(qs, get64(w.v)))
			continue;
		p->key.n = (uint8_t)(w.kn - sizeof from);
		memcpy(p->key.b, w.k + sizeof from, p->key.n);
		rc = table_get(qs, T_ORDER, np, p->key.b, p->key.n, val, sizeof val, &n);
		if (rc == DB_NOTFOUND)		/* delayed */
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
pick_by_corrid(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	struct pick np;
	int rc = corrid_first(qs, q, false, sel->corrid, now, p), np_rc;

	if ((rc != 0 && rc != QMENOMSG) || q->n.np_messages == 0)
		return rc;
	np_rc = corrid_first(qs, q, true, sel->corrid, now, &np);
	if (np_rc == 0 && (rc == QMENOMSG || qorder_compare(np.key.b, np.key.n, p->key.b, p->key.n) < 0)) {
		*p = np;
		return 0;
	}
	return np_rc == QMENOMSG ? rc : np_rc;
}

static int
pick(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now, struct pick *p)
{
	if (sel != NULL && (sel->flags & TPQGETBYMSGID))
		return pick_by_msgid(qs, q, sel, now, p);
	if (sel != NULL && (sel->flags & TPQGETBYCORRID))
		return pick_by_corrid(qs, q, sel, now, p);
	return pick_first(qs, q, now, p);
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
	if (sel->only_type && (strcmp(m->type, sel->type) != 0 || strcmp(m->subtype, sel->subtype) != 0))
		return QMETYPE;
	return 0;
}

/* Delayed messages that are due take their place first.  By identifier all of them, lest the one that is meant is
 * missed. */
static int
promote(struct qspace *qs, struct queue *q, const struct qselect *sel, int64_t now)
{
	bool all = sel != NULL && (sel->flags & (TPQGETBYMSGID | TPQGETBYCORRID));
	int n;

	do
		n = store_promote(qs, q, now, PROMOTE_AT_ONCE);
	while (n > 0 && all);
	return n < 0 ? n : 0;
}

int
qspace_dequeue(struct qspace *qs, struct branch *b, const char *queue, const struct qselect *sel, struct qmsg **out)
{
	struct queue *q = queue_find(qs, queue);
	bool peek = sel != NULL && (sel->flags & TPQPEEK);
	int64_t now = clock_now_us();
	struct pick p;
	int rc;

	assert(qs->batch.open);
	*out = NULL;
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (b != NULL && !peek && (rc = branch_check(b)) != 0)
		return rc;
	if (q == NULL)
		return QMEBADQUEUE;
	if ((rc = promote(qs, q, sel, now)) != 0 || (rc = pick(qs, q, sel, now, &p)) != 0 ||
	    (rc = store_read(qs, q, &p.v, out, NULL)) != 0)
		return rc;
	rc = message_suits(sel, *out);
	if (rc == 0 && !peek) {
		if (b != NULL) {
			rc = branch_add_dequeue(qs, b, q, &p.key, &p.v, *out);
		} else if ((rc = store_remove(qs, q, &p.key, &p.v, &in_order, (*out)->corrid)) == 0) {
			used_add(qs, &p.v, -1);
			qs->batch.dequeues++;
		}
	}
	if (rc != 0) {
		qmsg_free(*out);
		*out = NULL;
	}
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
