/*
 * qindex - in memory, bounded: the window of the next keys of a queue, and which messages are held by which branch.
 *
 * The window holds exactly the not-held keys of the queue up to `hi` (all of them when `whole`), so a dequeue takes its
 * first one, and messages that are held at the head cost nothing.  It is a sorted array: what comes and goes is nearly
 * always an end, and moving a thousand pointers costs less than balancing a tree.
 *
 * A correlation id gets a window of its own, a smaller one, once a dequeue had to pass over many messages that it could
 * not have.  Most never do: a reply has an id of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "qspace_impl.h"

/* A window grows to its `max` keys, and is then cut back to half of that; as many are read at once. */
enum { WINDOW_MAX = 1024, CORRID_WINDOW_MAX = 256, CORRID_WINDOWS = 256, SLOT = sizeof(void *) };

struct corrid_window {
	uint8_t corrid[TMCORRIDLEN];
	struct queue *q;
	struct window w;
	struct corrid_window *prev, *next;	/* of all queues, the one that was wanted last first */
	UT_hash_handle hh;
};

static size_t	/* where the key is, or would be; *found */
window_search(const struct window *w, const uint8_t *key, size_t n, bool *found)
{
	size_t lo = 0, hi = w->n;

	*found = false;
	if (w->n > 0) {		/* the usual cases: the end, the beginning */
		const struct went *e = w->e[w->head + w->n - 1];
		if (qorder_compare(e->key, e->n, key, n) < 0)
			return w->n;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct went *e = w->e[w->head + mid];
		int c = qorder_compare(e->key, e->n, key, n);
		if (c == 0) {
			*found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void	/* Forget the far half: the disk has it. */
window_trim(struct window *w)
{
	const struct went *last;

	while (w->n > w->max / 2)
		free(w->e[w->head + --w->n]);
	last = w->e[w->head + w->n - 1];
	w->hi.n = last->n;
	memcpy(w->hi.b, last->key, last->n);
	w->whole = false;
}

static int	/* One more slot before or behind. */
window_room(struct window *w)
{
	struct went **e;

	if (w->e == NULL) {
		if ((e = malloc((2 * w->max + 2) * SLOT)) == NULL)
			return -1;
		w->e = e;
		w->cap = 2 * w->max + 2;
		w->head = w->cap / 4;
	}
	if (w->head + w->n == w->cap || w->head == 0) {
		memmove(w->e + w->cap / 4, w->e + w->head, w->n * SLOT);
		w->head = w->cap / 4;
	}
	return 0;
}

static int
window_insert_at(struct window *w, size_t at, const uint8_t *key, size_t n, const struct oval *v)
{
	struct went *e;

	if (window_room(w) != 0 || (e = malloc(sizeof *e + n)) == NULL)
		return -1;
	e->v = *v;
	e->n = (uint8_t)n;
	memcpy(e->key, key, n);
	if (at < w->n / 2) {
		w->head--;
		memmove(w->e + w->head, w->e + w->head + 1, at * SLOT);
	} else {
		memmove(w->e + w->head + at + 1, w->e + w->head + at, (w->n - at) * SLOT);
	}
	w->e[w->head + at] = e;
	w->n++;
	return 0;
}

static int	/* When it belongs there. */
window_add(struct window *w, const struct okey *k, const struct oval *v)
{
	bool found;
	size_t at;

	if (!w->whole && qorder_compare(k->b, k->n, w->hi.b, w->hi.n) > 0)
		return 0;
	at = window_search(w, k->b, k->n, &found);
	if (found)
		w->e[w->head + at]->v = *v;
	else if (window_insert_at(w, at, k->b, k->n, v) != 0)
		return -1;
	if (w->n > w->max)
		window_trim(w);
	return 0;
}

static void
window_take(struct window *w, const uint8_t *key, size_t n)
{
	bool found;
	size_t at = window_search(w, key, n, &found);

	if (!found)
		return;
	free(w->e[w->head + at]);
	if (at < w->n / 2) {
		memmove(w->e + w->head + 1, w->e + w->head, at * SLOT);
		w->head++;
	} else {
		memmove(w->e + w->head + at, w->e + w->head + at + 1, (w->n - at - 1) * SLOT);
	}
	w->n--;
}

static void
window_clear(struct window *w, uint32_t queue, size_t max)
{
	while (w->n > 0)
		free(w->e[w->head + --w->n]);
	w->max = max;
	w->whole = false;
	w->hi.n = 4;		/* no key of the queue is as short: everything lies beyond */
	be32(w->hi.b, queue);
}

/* --- the windows of correlation ids --- */

struct corrid_window *
corrid_window_find(struct qspace *qs, struct queue *q, const uint8_t *corrid)
{
	struct corrid_window *c;

	if (q->corrids == NULL)
		return NULL;
	HASH_FIND(hh, q->corrids, corrid, TMCORRIDLEN, c);
	if (c != NULL && c != qs->corrid_windows) {
		DL_DELETE(qs->corrid_windows, c);
		DL_PREPEND(qs->corrid_windows, c);
	}
	return c;
}

static void
corrid_window_drop(struct qspace *qs, struct queue *q, struct corrid_window *c)
{
	window_clear(&c->w, 0, 0);
	free(c->w.e);
	HASH_DELETE(hh, q->corrids, c);	// NOLINT: inside uthash
	DL_DELETE(qs->corrid_windows, c);
	qs->n_corrid_windows--;
	free(c);
}

struct corrid_window *
corrid_window_new(struct qspace *qs, struct queue *q, const uint8_t *corrid)
{
	struct corrid_window *c = calloc(1, sizeof *c);

	if (c == NULL)
		return NULL;
	if (qs->n_corrid_windows >= CORRID_WINDOWS)
		corrid_window_drop(qs, qs->corrid_windows->prev->q, qs->corrid_windows->prev);
	memcpy(c->corrid, corrid, TMCORRIDLEN);
	c->q = q;
	window_clear(&c->w, q->id, CORRID_WINDOW_MAX);
	HASH_ADD(hh, q->corrids, corrid, TMCORRIDLEN, c);
	DL_PREPEND(qs->corrid_windows, c);
	qs->n_corrid_windows++;
	return c;
}

static struct corrid_window *	/* quickly: nearly always there is none */
corrid_window_of(struct queue *q, const uint8_t *corrid)
{
	struct corrid_window *c = NULL;

	if (q->corrids != NULL && corrid != NULL)
		HASH_FIND(hh, q->corrids, corrid, TMCORRIDLEN, c);
	return c;
}

/* --- both --- */

void
window_insert(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const uint8_t *corrid)
{
	struct corrid_window *c = corrid_window_of(q, corrid);

	/* No memory: what was forgotten is found on disk. */
	if (c != NULL && window_add(&c->w, k, v) != 0)
		corrid_window_drop(qs, q, c);
	if (window_add(&q->w, k, v) != 0)
		window_drop(qs, q);
}

void
window_remove(struct queue *q, const struct okey *k, const uint8_t *corrid)
{
	struct corrid_window *c = corrid_window_of(q, corrid);

	window_take(&q->w, k->b, k->n);
	if (c != NULL)
		window_take(&c->w, k->b, k->n);
}

void
window_drop(struct qspace *qs, struct queue *q)
{
	window_clear(&q->w, q->id, WINDOW_MAX);
	while (q->corrids != NULL)
		corrid_window_drop(qs, q, q->corrids);	// NOLINT: the hash has the next one then
}

/* --- filling --- */

enum { PREFIX_MAX = 4 + TMCORRIDLEN, AHEAD = (16 << 10) / sizeof(uint32_t) };
/* One of the two tables that keys come from.  What follows the prefix, or all in `order`, is the order key. */
struct source {
	struct walk w;
	bool np, open, more;
	uint8_t prefix[PREFIX_MAX], n_prefix, skip;
};

static int	/* `more` is false behind the last key. */
source_settle(struct source *s, int rc)
{
	s->more = rc == 0 && s->w.kn > s->n_prefix && s->w.kn > s->skip + 4u && s->w.kn <= s->skip + (size_t)ORDER_KEY_MAX &&
		  memcmp(s->w.k, s->prefix, s->n_prefix) == 0;
	return rc == DB_NOTFOUND ? 0 : rc;
}

static int	/* The first one behind w->hi.  What comes after it is read into `ahead`. */
source_open(struct qspace *qs, struct queue *q, const struct window *w, const uint8_t *corrid, struct source *s, bool np,
    uint32_t ahead[AHEAD])
{
	uint8_t from[PREFIX_MAX + ORDER_KEY_MAX];
	int rc;

	if ((np ? q->n.np_messages : q->n.messages) == 0)
		return 0;
	s->np = np;
	s->open = true;
	be32(s->prefix, q->id);
	s->n_prefix = 4;
	if (corrid != NULL) {
		memcpy(s->prefix + 4, corrid, TMCORRIDLEN);
		s->n_prefix = s->skip = PREFIX_MAX;
	}
	memcpy(from, s->prefix, s->skip);
	memcpy(from + s->skip, w->hi.b, w->hi.n);
	rc = source_settle(s, walk_first(qs, &s->w, corrid != NULL ? T_CORRID : T_ORDER, np, from, s->skip + w->hi.n));
	walk_ahead(&s->w, ahead, AHEAD * sizeof *ahead);
	if (rc == 0 && s->more && s->w.kn == s->skip + w->hi.n && memcmp(s->w.k, from, s->w.kn) == 0)
		rc = source_settle(s, walk_next(qs, &s->w));
	return rc;
}

static struct source *
source_least(struct source src[2])
{
	const struct walk *a = &src[0].w, *b = &src[1].w;

	if (!src[0].more || !src[1].more)
		return src[0].more ? &src[0] : &src[1];
	return qorder_compare(a->k + src[0].skip, a->kn - src[0].skip, b->k + src[1].skip, b->kn - src[1].skip) < 0 ?
	    &src[0] : &src[1];
}

/* DB_NOTFOUND: of no use now. */
static int
source_value(struct qspace *qs, const struct source *s, struct oval *v)
{
	uint8_t val[OVAL_MAX];
	const uint8_t *b = s->w.v;
	size_t n = s->w.vn;
	int rc;

	if (s->w.t == T_CORRID) {	/* has the sequence; in a space of version 1 the message may be delayed */
		if (n == 8 && is_held(qs, get64(b)))
			return DB_NOTFOUND;
		if ((rc = table_get(qs, T_ORDER, s->np, s->w.k + s->skip, s->w.kn - s->skip, val, sizeof val, &n)) != 0)
			return rc;
		b = val;
	}
	if (oval_decode(b, n, v) != 0)
		return env_error(qs, T_ORDER, "an entry is not of this version", EINVAL);
	return is_held(qs, v->seq) ? DB_NOTFOUND : 0;
}

static int
window_refill(struct qspace *qs, struct queue *q, struct window *w, const uint8_t *corrid)
{
	struct source src[2] = { 0 };
	uint32_t ahead[2][AHEAD];
	bool all = corrid == NULL && w->hi.n == 4;	/* from the first one on */
	int64_t seen = 0;
	int rc = 0;

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = source_open(qs, q, w, corrid, &src[i], i == 1, ahead[i]);
	while (rc == 0 && w->n < w->max / 2 && (src[0].more || src[1].more)) {
		struct source *s = source_least(src);
		const uint8_t *k = s->w.k + s->skip;
		size_t n = s->w.kn - s->skip;
		struct oval v;

		rc = source_value(qs, s, &v);
		if (rc == 0 && window_insert_at(w, w->n, k, n, &v) != 0)
			rc = QMEOS;
		if (rc != 0 && rc != DB_NOTFOUND)
			break;
		seen += s == &src[0];
		w->hi.n = (uint8_t)n;
		memcpy(w->hi.b, k, n);
		rc = source_settle(s, walk_next(qs, &s->w));
	}
	w->whole = rc == 0 && !src[0].more && !src[1].more;
	/* A root page of zeroes reads as an empty one, and is no error to Berkeley DB.  The counters know better. */
	if (all && w->whole && seen == 0 && q->n.messages > q->n.delayed - q->n.np_delayed) {
		rc = env_error(qs, T_ORDER, "page 1: the entries of a queue are missing", DB_NOTFOUND);
		w->whole = false;
	}
	for (int i = 0; i < 2; i++)
		if (src[i].open)
			walk_end(qs, &src[i].w);
	return rc;
}

static const struct went *
least_of(struct qspace *qs, struct queue *q, struct window *w, const uint8_t *corrid, int *rc)
{
	*rc = 0;
	while (w->n == 0 && !w->whole && *rc == 0)
		*rc = window_refill(qs, q, w, corrid);
	return w->n > 0 && *rc == 0 ? w->e[w->head] : NULL;
}

const struct went *
window_min(struct qspace *qs, struct queue *q, int *rc)
{
	return least_of(qs, q, &q->w, NULL, rc);
}

const struct went *
corrid_window_min(struct qspace *qs, struct corrid_window *c, int *rc)
{
	return least_of(qs, c->q, &c->w, c->corrid, rc);
}

const struct held *
held_find(const struct qspace *qs, uint64_t seq)
{
	struct held *h;

	if (qs->held == NULL)
		return NULL;
	HASH_FIND(hh, qs->held, &seq, sizeof seq, h);
	return h == NULL || (h->b != NULL && h->b->over) ? NULL : h;
}

bool
is_held(const struct qspace *qs, uint64_t seq)
{
	return held_find(qs, seq) != NULL;
}

void
held_add(struct qspace *qs, struct held *h)
{
	struct held *old = NULL;

	if (qs->releasing != NULL)
		HASH_FIND(hh, qs->held, &h->seq, sizeof h->seq, old);
	if (old != NULL) {
		HASH_DELETE(hh, qs->held, old);	// NOLINT: inside uthash
		old->unlisted = true;
	}
	HASH_ADD(hh, qs->held, seq, sizeof h->seq, h);
}

void
hold_release(struct qspace *qs, struct held *h)
{
	if (!h->unlisted)
		HASH_DELETE(hh, qs->held, h);	// NOLINT: inside uthash
	free(h);
}
