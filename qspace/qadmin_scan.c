/*
 * Walking over messages, for administration: two tables on disk and two in memory look like one list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qadmin_impl.h"

void
scan_pos_format(const struct scan_pos *p, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "%c", p->delayed ? 'd' : 'o');

	for (int i = 0; i < p->key.n && n + 2 < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%02x", p->key.b[i]);
}

int
scan_pos_parse(const char *s, struct scan_pos *p)
{
	size_t n;
	unsigned byte;

	memset(p, 0, sizeof *p);
	if (*s != 'o' && *s != 'd')
		return -1;
	p->delayed = *s == 'd';
	n = strlen(s + 1);
	if (n % 2 != 0 || n / 2 > ORDER_KEY_MAX || strspn(s + 1, "0123456789abcdef") != n)
		return -1;
	for (size_t i = 0; i < n / 2; i++) {
		sscanf(s + 1 + 2 * i, "%2x", &byte);
		p->key.b[i] = (uint8_t)byte;
	}
	p->key.n = (uint8_t)(n / 2);
	p->started = n > 0;
	return 0;
}

struct source { struct walk w; bool np, open, more; };

static int	/* Does the walk stand on an entry of this queue? */
source_settle(struct source *s, const struct queue *q, int rc)
{
	s->more = rc == 0 && s->w.kn > 4 && s->w.kn <= ORDER_KEY_MAX && get32(s->w.k) == q->id;
	return rc == DB_NOTFOUND ? 0 : rc;
}

static int
source_open(struct qspace *qs, const struct queue *q, struct source *s, enum table t, bool np, const struct okey *after)
{
	uint8_t first[4];
	int rc;

	be32(first, q->id);
	s->np = np;
	s->open = true;
	rc = after != NULL ? walk_first(qs, &s->w, t, np, after->b, after->n) : walk_first(qs, &s->w, t, np, first,
	    sizeof first);
	if (rc == 0 && after != NULL && s->w.kn == after->n && memcmp(s->w.k, after->b, after->n) == 0)
		rc = walk_next(qs, &s->w);
	return source_settle(s, q, rc);
}

static struct source *
source_least(struct source src[2])
{
	if (!src[0].more || !src[1].more)
		return src[0].more ? &src[0] : src[1].more ? &src[1] : NULL;
	return qorder_compare(src[0].w.k, src[0].w.kn, src[1].w.k, src[1].w.kn) < 0 ? &src[0] : &src[1];
}

static int
entry_decode(struct qspace *qs, const struct source *s, enum table t, struct okey *k, struct oval *v, struct place *at)
{
	int rc;

	*at = (struct place){ .delayed = t == T_DELAYED };
	if (at->delayed)
		rc = delayed_decode(&s->w, &at->available_us, k, v);
	else {
		k->n = (uint8_t)s->w.kn;
		memcpy(k->b, s->w.k, s->w.kn);
		rc = oval_decode(s->w.v, s->w.vn, v);
	}
	return rc == 0 ? 0 : batch_dead(qs, env_error(qs, t, "an entry is not of this version", EINVAL));
}

static int
head_of(struct qspace *qs, const struct queue *q, bool np, const struct oval *v, struct qrecord *r)
{
	uint8_t head[RECORD_HEAD_MAX];
	size_t n;
	int rc = heap_get(qs, np, v->rid, head, sizeof head, &n);

	if (rc == DB_NOTFOUND || (rc == 0 && (qrecord_decode_head(head, n, r) != 0 || r->seq != v->seq)))
		return batch_dead(qs, env_error(qs, T_MESSAGES, "a record is not the message that belongs there",
		    EINVAL));
	if (rc != 0)
		return rc;
	r->m.body = NULL;
	r->m.body_len = v->bytes;
	r->m.retries = (long)v->retries;
	snprintf(r->m.queue, sizeof r->m.queue, "%s", q->p.name);
	return 0;
}

static int
scan_one(struct qspace *qs, struct queue *q, const struct source *s, enum table t,
    int (*fn)(void *, const struct scanned_msg *), void *arg, int *stop)
{
	const struct held *held;
	struct qrecord r;
	struct okey key;
	struct oval v;
	struct scanned_msg item = { .key = &key, .v = &v, .m = &r.m, .origin = &r.origin };
	int rc;

	if ((rc = entry_decode(qs, s, t, &key, &v, &item.at)) != 0 || (rc = head_of(qs, q, s->np, &v, &r)) != 0)
		return rc;
	if (item.at.delayed)
		r.m.available_us = item.at.available_us;
	if ((held = held_find(qs, v.seq)) != NULL && held->hides)
		return 0;
	item.held = held != NULL;
	item.holder = held != NULL && held->b != NULL ? &held->b->id : NULL;
	*stop = fn(arg, &item);
	return 0;
}

static int
scan_table(struct qspace *qs, struct queue *q, enum table t, struct scan_pos *pos,
    int (*fn)(void *, const struct scanned_msg *), void *arg)
{
	struct okey after = pos->key;
	struct source src[2] = { 0 }, *s;
	int rc = 0, stop = 0;

	for (int np = 0; np < 2 && rc == 0; np++)
		rc = source_open(qs, q, &src[np], t, np, pos->started ? &after : NULL);
	while (rc == 0 && stop == 0 && (s = source_least(src)) != NULL) {
		if ((rc = scan_one(qs, q, s, t, fn, arg, &stop)) != 0)
			break;
		pos->started = true;
		pos->key.n = (uint8_t)s->w.kn;
		memcpy(pos->key.b, s->w.k, s->w.kn);
		if (stop == 0)
			rc = source_settle(s, q, walk_next(qs, &s->w));
	}
	for (int np = 0; np < 2; np++)
		if (src[np].open)
			walk_end(qs, &src[np].w);
	return rc != 0 ? rc : stop != 0 ? SCAN_STOPPED : SCAN_END;
}

int
qadmin_scan(struct qspace *qs, struct queue *q, struct scan_pos *pos,
    int (*fn)(void *arg, const struct scanned_msg *s), void *arg)
{
	int rc;

	if (!pos->delayed) {
		if ((rc = scan_table(qs, q, T_ORDER, pos, fn, arg)) != SCAN_END)
			return rc;
		*pos = (struct scan_pos){ .delayed = true };
	}
	return scan_table(qs, q, T_DELAYED, pos, fn, arg);
}
