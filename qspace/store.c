/*
 * store - one message into, out of and between the tables.  Each function is a piece of the batch: when it fails with a
 * QME code the batch is dead.  Counters of the queue follow here; what the space has in use is the caller's (used_add).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"
#include "tpe.h"

enum { KEY_VALUE_MAX = 1 + 8 + 1 + ORDER_KEY_MAX };

void
used_add(struct qspace *qs, const struct oval *v, int by)
{
	qs->used.messages += by;
	if (v->flags & OV_NP)
		qs->used.np_bytes += by * (int64_t)v->weight;
	else
		qs->used.pages += by * pages_of(v->bytes);
}

/* --- entries that point to a place: delayed?, when, key.  Used by the expiry and alias tables. --- */

static size_t
place_encode(uint8_t to[KEY_VALUE_MAX], const struct okey *k, const struct place *at)
{
	to[0] = at->delayed;
	be64(to + 1, (uint64_t)at->available_us);
	to[9] = k->n;
	memcpy(to + 10, k->b, k->n);
	return 10u + k->n;
}

static int
place_decode(const uint8_t *b, size_t n, struct okey *k, struct place *at)
{
	if (n < 10 + 4 || b[0] > 1 || b[9] > ORDER_KEY_MAX || n != 10u + b[9])
		return -1;
	at->delayed = b[0];
	at->available_us = (int64_t)get64(b + 1);
	k->n = b[9];
	memcpy(k->b, b + 10, k->n);
	return 0;
}

static void
expiry_key(uint8_t to[16], int64_t us, uint64_t seq)
{
	be64(to, (uint64_t)us);
	be64(to + 8, seq);
}

int
expiry_decode(const struct walk *w, int64_t *us, uint64_t *seq, struct okey *k, struct place *at)
{
	if (w->kn != 16)
		return -1;
	*us = (int64_t)get64(w->k);
	*seq = get64(w->k + 8);
	return place_decode(w->v, w->vn, k, at);
}

void
delayed_key(uint8_t to[DELAYED_KEY], uint32_t queue, int64_t us, uint64_t seq)
{
	be32(to, queue);
	be64(to + 4, (uint64_t)us);
	be64(to + 12, seq);
}

/* Value of a delayed entry: length of the order key, the key, the order value. */
int
delayed_decode(const struct walk *w, int64_t *us, struct okey *k, struct oval *v)
{
	if (w->kn != DELAYED_KEY || w->vn < 1 || w->v[0] < 5 || w->v[0] > ORDER_KEY_MAX || w->vn < 1u + w->v[0])
		return -1;
	*us = (int64_t)get64(w->k + 4);
	k->n = w->v[0];
	memcpy(k->b, w->v + 1, k->n);
	return oval_decode(w->v + 1 + k->n, w->vn - 1 - k->n, v);
}

static size_t	/* corrid entries sort like the queue, within one correlation id */
corrid_key(uint8_t to[4 + TMCORRIDLEN + ORDER_KEY_MAX], const struct okey *k, const uint8_t *corrid)
{
	memcpy(to, k->b, 4);
	memcpy(to + 4, corrid, TMCORRIDLEN);
	memcpy(to + 4 + TMCORRIDLEN, k->b, k->n);
	return 4u + TMCORRIDLEN + k->n;
}

/* --- where a message stands --- */

static int	/* The entries that say where it is: alias when it needs one there, expiry when it has one. */
place_write(struct qspace *qs, const struct okey *k, const struct oval *v, const struct place *at)
{
	uint8_t val[KEY_VALUE_MAX], key[16];
	bool np = v->flags & OV_NP;
	size_t n = place_encode(val, k, at);
	int rc;

	if (v->expires_us != 0) {
		expiry_key(key, v->expires_us, v->seq);
		if (memcmp(key, qs->expired_to[np], sizeof key) <= 0)	/* the clock went back: look at all again */
			memset(qs->expired_to[np], 0, sizeof key);
		if ((rc = table_put(qs, T_EXPIRY, np, key, sizeof key, val, n)) != 0)
			return rc;
		if (v->expires_us < qs->next_expiry)
			qs->next_expiry = v->expires_us;
		tick_at(qs, v->expires_us);
	}
	be64(key, v->seq);
	if ((v->flags & OV_ALIAS) || at->delayed)
		return table_put(qs, T_ALIAS, np, key, 8, val, n);
	return 0;
}

int
alias_get(struct qspace *qs, bool np, uint64_t seq, struct okey *k, struct place *at)
{
	uint8_t key[8], val[KEY_VALUE_MAX];
	size_t n;
	int rc;

	be64(key, seq);
	if ((rc = table_get(qs, T_ALIAS, np, key, sizeof key, val, sizeof val, &n)) != 0)
		return rc;
	if (place_decode(val, n, k, at) != 0)
		return batch_dead(qs, env_error(qs, T_ALIAS, "an entry is not of this version", EINVAL));
	return 0;
}

static int	/* Into `order` and `corrid`; eligible once the batch commits. */
order_put(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const uint8_t *corrid)
{
	uint8_t key[4 + TMCORRIDLEN + ORDER_KEY_MAX], val[OVAL_MAX], seq[8];
	bool np = v->flags & OV_NP;
	int rc = table_put(qs, T_ORDER, np, k->b, k->n, val, oval_encode(val, v));

	if (rc == 0 && (v->flags & OV_CORRID)) {
		be64(seq, v->seq);
		rc = table_put(qs, T_CORRID, np, key, corrid_key(key, k, corrid), seq, sizeof seq);
	}
	if (rc == 0 && !is_held(qs, v->seq))
		window_insert(qs, q, k, v, v->flags & OV_CORRID ? corrid : NULL);
	return rc;
}

static int
delayed_put(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, int64_t until)
{
	uint8_t key[DELAYED_KEY], val[1 + ORDER_KEY_MAX + OVAL_MAX];
	bool np = v->flags & OV_NP;
	int rc;

	delayed_key(key, q->id, until, v->seq);
	val[0] = k->n;
	memcpy(val + 1, k->b, k->n);
	if ((rc = table_put(qs, T_DELAYED, np, key, sizeof key, val, 1u + k->n + oval_encode(val + 1 + k->n, v))) != 0)
		return rc;
	q->n.delayed++;
	q->n.np_delayed += np;
	if (until < q->n.next_due)
		queue_due(qs, q, until);
	return 0;
}

static int	/* An entry that must be there. */
must_del(struct qspace *qs, enum table t, bool np, const void *k, size_t n)
{
	int rc = table_del(qs, t, np, k, n);

	if (rc == DB_NOTFOUND)
		rc = batch_dead(qs, env_error(qs, t, "an entry that should be there is missing", DB_NOTFOUND));
	return rc;
}

static int	/* Out of `order` and `corrid`. */
order_del(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const uint8_t *corrid)
{
	uint8_t key[4 + TMCORRIDLEN + ORDER_KEY_MAX];
	bool np = v->flags & OV_NP;
	int rc = must_del(qs, T_ORDER, np, k->b, k->n);

	if (rc == 0 && (v->flags & OV_CORRID))
		rc = must_del(qs, T_CORRID, np, key, corrid_key(key, k, corrid));
	window_remove(q, k, v->flags & OV_CORRID ? corrid : NULL);
	return rc;
}

static int
delayed_del(struct qspace *qs, struct queue *q, const struct oval *v, int64_t until)
{
	uint8_t key[DELAYED_KEY];
	bool np = v->flags & OV_NP;
	int rc;

	delayed_key(key, q->id, until, v->seq);
	if ((rc = must_del(qs, T_DELAYED, np, key, sizeof key)) != 0)
		return rc;
	q->n.delayed--;
	q->n.np_delayed -= np;
	return until <= q->n.next_due ? queue_find_due(qs, q) : 0;
}

/* --- whole messages --- */

uint32_t
store_weight(const struct oval *v)
{
	return v->flags & OV_PARTS ? 0 : v->bytes;
}

int
store_put(struct qspace *qs, struct queue *q, struct newmsg *m, int64_t now)
{
	struct place at = { .delayed = m->available_us > now, .available_us = m->available_us };
	bool np = m->v.flags & OV_NP;
	int rc;

	queue_count(qs, q, &m->v, 1);
	if ((!m->stored && (rc = heap_add(qs, np, m->rec, m->rec_len, store_weight(&m->v), &m->v.rid)) != 0) ||
	    (rc = place_write(qs, &m->key, &m->v, &at)) != 0)
		return rc;
	qs->batch.enqueues++;
	if (at.delayed)
		return delayed_put(qs, q, &m->key, &m->v, m->available_us);
	if ((rc = order_put(qs, q, &m->key, &m->v, m->corrid)) == 0 && !is_held(qs, m->v.seq))
		batch_event(qs, q, m->msgid, m->v.flags & OV_CORRID ? m->corrid : NULL);
	return rc;
}

static int
record_damaged(struct qspace *qs, const struct queue *q, const struct oval *v)
{
	ulog("QM_CAT:1353: ERROR: queue space %s, queue %s: record of message %llu at page %u slot %u of "
	     "%s/messages.%u.db is "
	     "not the message that belongs there",
	    qs->params.name, q->p.name, (unsigned long long)v->seq, v->rid.page, v->rid.slot, qs->dir, v->rid.segment);
	return batch_dead(qs, QMESYSTEM);
}

static int	/* The record without its body. */
head_read(struct qspace *qs, const struct queue *q, const struct oval *v, struct qrecord *r)
{
	uint8_t head[RECORD_HEAD_MAX];
	size_t n;
	int rc = heap_get(qs, v->flags & OV_NP, v->rid, head, sizeof head, &n);

	if (rc != 0 && rc != DB_NOTFOUND)
		return rc;
	if (rc == DB_NOTFOUND || qrecord_decode_head(head, n, r) != 0 || r->seq != v->seq ||
	    (r->parts != 0) != ((v->flags & OV_PARTS) != 0))
		return record_damaged(qs, q, v);
	return 0;
}

int
store_read(struct qspace *qs, struct queue *q, const struct oval *v, struct qmsg **out, uint64_t *parts)
{
	size_t cap = store_weight(v) + (size_t)RECORD_HEAD_MAX, n;
	struct taken *taken;
	struct qrecord r;
	struct qmsg *m;
	uint8_t *rec;
	int rc;

	*out = NULL;
	if ((m = malloc(sizeof *m + sizeof *taken + cap)) == NULL)
		return batch_dead(qs, QMEOS);
	taken = (struct taken *)(m + 1);
	taken->rec_len = 0;
	rec = taken->rec;
	rc = heap_get(qs, v->flags & OV_NP, v->rid, rec, cap, &n);
	if (rc == DB_NOTFOUND ||
	    (rc == 0 && (qrecord_decode(rec, n, &r) != 0 || r.seq != v->seq || r.m.body_len != v->bytes ||
		(r.parts != 0) != ((v->flags & OV_PARTS) != 0))))
		rc = record_damaged(qs, q, v);
	if (rc != 0) {
		free(m);
		return rc;
	}
	*m = r.m;
	if (m->has_body && m->body == NULL && r.parts == 0)	/* empty, which is not the same as none */
		m->body = rec + n;
	taken->rec_len = n;
	m->retries = (long)v->retries;
	memcpy(m->queue, q->p.name, sizeof m->queue);
	*parts = r.parts;
	*out = m;
	return 0;
}

void
store_taken(struct qmsg *m, const struct queue *q, const struct okey *k, const struct oval *v)
{
	struct taken *t = (struct taken *)(m + 1);

	t->key.n = k->n;
	memcpy(t->key.b, k->b, k->n);
	t->v = *v;
	t->queue = q->id;
	m->taken = t;
}

bool
qspace_can_put_back(const struct qmsg *m)
{
	return m->taken != NULL;
}

int
qspace_put_back(struct qspace *qs, const struct qmsg *m)
{
	const struct taken *t = m->taken;
	struct newmsg back = { .key = t->key, .v = t->v, .rec = t->rec, .rec_len = t->rec_len };
	struct queue *q = queue_by_id(qs, t->queue);
	int rc;

	assert(qs->batch.open);
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (q == NULL || q->dying)
		return QMEBADQUEUE;
	memcpy(back.msgid, m->msgid, TMMSGIDLEN);
	memcpy(back.corrid, m->corrid, TMCORRIDLEN);
	used_add(qs, &back.v, 1);
	if ((rc = store_put(qs, q, &back, clock_now_us())) == 0)
		qs->batch.enqueues--;	/* it is not new */
	return rc;
}

static int	/* Out of the tables.  A body in parts stays: *parts. */
unlink_message(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const struct place *at,
    const uint8_t *corrid, uint64_t *parts)
{
	uint8_t key[4 + TMCORRIDLEN + ORDER_KEY_MAX];
	bool np = v->flags & OV_NP;
	struct qrecord r;
	int rc;

	*parts = 0;
	queue_count(qs, q, v, -1);
	if (((v->flags & OV_CORRID) && corrid == NULL) || (v->flags & OV_PARTS)) {
		if ((rc = head_read(qs, q, v, &r)) != 0)
			return rc;
		corrid = r.m.corrid;
		*parts = r.parts;
	}
	assert(corrid != NULL || !(v->flags & OV_CORRID));
	if (!at->delayed) {
		if ((rc = order_del(qs, q, k, v, corrid)) != 0)
			return rc;
	} else {
		if ((rc = delayed_del(qs, q, v, at->available_us)) != 0)
			return rc;
		if ((v->flags & OV_CORRID) &&	/* only one that version 1 stored has an entry */
		    (rc = table_del(qs, T_CORRID, np, key, corrid_key(key, k, corrid))) != 0 && rc != DB_NOTFOUND)
			return rc;
	}
	if ((rc = heap_del(qs, np, v->rid, store_weight(v))) != 0)
		return rc == DB_NOTFOUND ? record_damaged(qs, q, v) : rc;
	if (v->expires_us != 0) {
		expiry_key(key, v->expires_us, v->seq);
		if ((rc = must_del(qs, T_EXPIRY, np, key, 16)) != 0)
			return rc;
	}
	if ((v->flags & OV_ALIAS) || at->delayed) {
		be64(key, v->seq);
		return must_del(qs, T_ALIAS, np, key, 8);
	}
	return 0;
}

int
store_remove(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const struct place *at,
    const uint8_t *corrid)
{
	uint64_t parts;
	int rc = unlink_message(qs, q, k, v, at, corrid, &parts);

	return rc == 0 && parts != 0 ? parts_disown(qs, v->flags & OV_NP, parts) : rc;
}

int
store_retry(struct qspace *qs, const struct okey *k, const struct oval *v)
{
	uint8_t val[OVAL_MAX];

	return table_put(qs, T_ORDER, v->flags & OV_NP, k->b, k->n, val, oval_encode(val, v));
}

int
store_delay(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const uint8_t *corrid,
    int64_t until)
{
	struct place at = { .delayed = true, .available_us = until };
	int rc;

	queue_touch(qs, q);
	if ((rc = order_del(qs, q, k, v, corrid)) != 0 || (rc = place_write(qs, k, v, &at)) != 0)
		return rc;
	return delayed_put(qs, q, k, v, until);
}

int
store_promote_one(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, int64_t available_us)
{
	struct place at = { .delayed = false };
	struct qrecord r = { 0 };
	uint8_t seq[8];
	int rc;

	queue_touch(qs, q);
	be64(seq, v->seq);
	if ((rc = delayed_del(qs, q, v, available_us)) != 0)
		return rc;
	if (!(v->flags & OV_ALIAS) && (rc = must_del(qs, T_ALIAS, v->flags & OV_NP, seq, sizeof seq)) != 0)
		return rc;
	if ((qs->eligible != NULL || (v->flags & OV_CORRID)) && (rc = head_read(qs, q, v, &r)) != 0)
		return rc;
	if ((rc = place_write(qs, k, v, &at)) != 0 || (rc = order_put(qs, q, k, v, r.m.corrid)) != 0)
		return rc;
	if (qs->eligible != NULL)
		batch_event(qs, q, r.m.msgid, v->flags & OV_CORRID ? r.m.corrid : NULL);
	return 0;
}

struct ripe { int64_t us; struct okey k; struct oval v; };

static int	/* Up to `max` due entries of one table; their number. */
due_collect(struct qspace *qs, struct queue *q, bool np, int64_t now, struct ripe *d, int max)
{
	uint8_t from[4];
	struct walk w;
	int n = 0, rc;

	be32(from, q->id);
	for (rc = walk_first(qs, &w, T_DELAYED, np, from, sizeof from); rc == 0 && n < max; rc = walk_next(qs, &w)) {
		if (w.kn != DELAYED_KEY || get32(w.k) != q->id || (int64_t)get64(w.k + 4) > now)
			break;
		if (delayed_decode(&w, &d[n].us, &d[n].k, &d[n].v) != 0) {
			rc = batch_dead(qs, env_error(qs, T_DELAYED, "an entry is not of this version", EINVAL));
			break;
		}
		n++;
	}
	walk_end(qs, &w);
	return rc != 0 && rc != DB_NOTFOUND ? rc : n;
}

int
store_promote(struct qspace *qs, struct queue *q, int64_t now, int max)
{
	enum { AT_ONCE = 64 };
	struct ripe *d;
	int moved = 0, n, rc = 0;

	if (q->n.next_due > now)
		return 0;
	if ((d = calloc(AT_ONCE, sizeof *d)) == NULL)
		return batch_dead(qs, QMEOS);
	queue_touch(qs, q);
	for (int np = 0; np < 2 && rc == 0; np++)
		while (rc == 0 && moved < max && (n = due_collect(qs, q, np, now, d, AT_ONCE)) != 0) {
			rc = n < 0 ? n : 0;
			/* Backwards, so that `the first one is gone: find the next` happens once and not for each. */
			for (int i = n - 1; i >= 0 && rc == 0; i--, moved++)
				rc = store_promote_one(qs, q, &d[i].k, &d[i].v, d[i].us);
		}
	free(d);
	if (rc == 0)
		rc = queue_find_due(qs, q);
	return rc != 0 ? rc : moved;
}

/* The message gets a new identity on the error queue, eligible at once; where it came from and why goes with it. */
static int
error_queue_put(struct qspace *qs, struct queue *errq, struct held *h, const struct oval *v, const struct qmsg *m,
    uint64_t parts, const struct wire_why *why, int64_t now)
{
	struct qrecord r = { .seq = space_next_seq(qs), .queue = errq->id, .m = *m, .parts = parts };
	struct newmsg n = { .v = *v, .available_us = now };
	struct qorder_values values = { .priority = m->priority, .available_us = now, .expires_us = m->expires_us };

	qorder_key(&n.key, errq->id, errq->p.order, &values, false, r.seq);
	qorder_msgid(n.msgid, qs->id4, v->flags & OV_NP, &n.key, r.seq, false);
	memcpy(n.corrid, m->corrid, sizeof n.corrid);
	memcpy(r.m.msgid, n.msgid, sizeof n.msgid);
	snprintf(r.origin.queue, sizeof r.origin.queue, "%s", h->q->p.name);
	memcpy(r.origin.msgid, m->msgid, sizeof r.origin.msgid);
	r.origin.why = *why;
	r.origin.retries = v->retries;
	r.origin.first_us = v->failed_us;
	r.origin.last_us = now;
	r.m.available_us = 0;
	n.v.seq = r.seq;
	n.v.retries = 0;
	n.v.failed_us = 0;
	n.v.flags &= (uint8_t)~OV_ALIAS;
	n.v.weight += n.v.flags & OV_NP ? NP_ORIGIN : 0;
	wr_reset(&qs->rec);
	qrecord_encode(&qs->rec, &r);
	if (!wr_ok(&qs->rec))
		return batch_dead(qs, QMEOS);
	n.rec = qs->rec.p;
	n.rec_len = qs->rec.len;
	used_add(qs, &n.v, 1);
	return store_put(qs, errq, &n, now);
}

static void
say_deleted(struct qspace *qs, const struct held *h, const struct qmsg *m, const struct wire_why *why)
{
	char msgid[2 * TMMSGIDLEN + 1], corrid[2 * TMCORRIDLEN + 1];

	for (int i = 0; i < TMMSGIDLEN; i++)
		snprintf(msgid + 2 * i, 3, "%02x", m->msgid[i]);
	for (int i = 0; i < TMCORRIDLEN; i++)
		snprintf(corrid + 2 * i, 3, "%02x", m->corrid[i]);
	ulog("QM_CAT:1354: WARN: queue space %s, queue %s: message %s, correlation id %s, deleted after %lu failed "
	     "deliveries (tperrno %s, tpurcode %lld: %s): "
	     "the queue space has no error queue%s%s",
	    qs->params.name, h->q->p.name, msgid, m->flags & TPQCORRID ? corrid : "none", m->retries + 1,
	    tpe_name(why->error), (long long)why->urcode, why->text, qs->params.errorq[0] != '\0' ? " " : "",
	    qs->params.errorq);
}

int
store_to_error_queue(struct qspace *qs, struct held *h, const struct oval *v, const struct wire_why *why,
    int64_t now)
{
	struct queue *errq = qs->params.errorq[0] == '\0' ? NULL : queue_find(qs, qs->params.errorq);
	const struct place here = { .delayed = false };
	struct qmsg *m;
	uint64_t parts;
	int rc;

	if ((rc = store_read(qs, h->q, &h->v, &m, &parts)) != 0)
		return rc;
	assert(m != NULL);
	if ((rc = unlink_message(qs, h->q, &h->key, &h->v, &here, m->corrid, &parts)) == 0) {
		used_add(qs, &h->v, -1);
		if (errq == NULL) {
			say_deleted(qs, h, m, why);
			if (parts != 0)
				rc = parts_disown(qs, v->flags & OV_NP, parts);
		} else if ((rc = error_queue_put(qs, errq, h, v, m, parts, why, now)) == 0)
			qs->batch.enqueues--;	/* moved, not new */
	}
	qmsg_free(m);
	return rc;
}
