/*
 * qindex - in memory, bounded: the window of the next keys of a queue, and which messages are held by which branch.
 *
 * The window holds exactly the not-held keys of the queue up to `hi` (all of them when `whole`), so a dequeue takes its
 * first one, and messages that are held at the head cost nothing.  It is a sorted array: what comes and goes is nearly
 * always an end, and moving a thousand pointers costs less than balancing a tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

enum { WINDOW_MAX = 1024, WINDOW_FILL = 512, SLOT = sizeof(void *) };

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

	while (w->n > WINDOW_FILL)
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
		if ((e = malloc((2 * WINDOW_MAX + 2) * SLOT)) == NULL)
			return -1;
		w->e = e;
		w->cap = 2 * WINDOW_MAX + 2;
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

int
window_insert(struct queue *q, const struct okey *k, const struct oval *v)
{
	struct window *w = &q->w;
	bool found;
	size_t at;

	if (!w->whole && qorder_compare(k->b, k->n, w->hi.b, w->hi.n) > 0)
		return 0;
	at = window_search(w, k->b, k->n, &found);
	if (found)
		w->e[w->head + at]->v = *v;
	else if (window_insert_at(w, at, k->b, k->n, v) != 0)
		return -1;
	if (w->n > WINDOW_MAX)
		window_trim(w);
	return 0;
}

void
window_remove(struct queue *q, const uint8_t *key, size_t n)
{
	struct window *w = &q->w;
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

void
window_drop(struct queue *q)
{
	struct window *w = &q->w;

	while (w->n > 0)
		free(w->e[w->head + --w->n]);
	w->whole = false;
	w->hi.n = 4;		/* no key of the queue is as short: everything lies beyond */
	be32(w->hi.b, q->id);
}

/* One of the two tables that a queue's keys come from. */
struct source { struct walk w; bool open, more; };

static int	/* `more` is false behind the queue's last key. */
source_settle(struct source *s, struct queue *q, int rc)
{
	s->more = rc == 0 && s->w.kn > 4 && s->w.kn <= ORDER_KEY_MAX && get32(s->w.k) == q->id;
	return rc == DB_NOTFOUND ? 0 : rc;
}

static int
source_open(struct qspace *qs, struct queue *q, struct source *s, bool np)
{
	int rc;

	if ((np ? q->n.np_messages : q->n.messages) == 0)
		return 0;
	s->open = true;
	rc = source_settle(s, q, walk_first(qs, &s->w, T_ORDER, np, q->w.hi.b, q->w.hi.n));
	if (rc == 0 && s->more && s->w.kn == q->w.hi.n && memcmp(s->w.k, q->w.hi.b, s->w.kn) == 0)
		rc = source_settle(s, q, walk_next(qs, &s->w));
	return rc;
}

static int
window_refill(struct qspace *qs, struct queue *q)
{
	struct source src[2] = { 0 };
	struct window *w = &q->w;
	int rc = 0;

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = source_open(qs, q, &src[i], i == 1);
	while (rc == 0 && w->n < WINDOW_FILL && (src[0].more || src[1].more)) {
		struct source *s = &src[0];
		struct oval v;

		if (!src[0].more ||
		    (src[1].more && qorder_compare(src[1].w.k, src[1].w.kn, src[0].w.k, src[0].w.kn) < 0))
			s = &src[1];
		if (oval_decode(s->w.v, s->w.vn, &v) != 0) {
			rc = env_error(qs, T_ORDER, "an entry is not of this version", EINVAL);
			break;
		}
		if (!is_held(qs, v.seq) && window_insert_at(w, w->n, s->w.k, s->w.kn, &v) != 0) {
			rc = QMEOS;
			break;
		}
		w->hi.n = (uint8_t)s->w.kn;
		memcpy(w->hi.b, s->w.k, s->w.kn);
		rc = source_settle(s, q, walk_next(qs, &s->w));
	}
	w->whole = rc == 0 && !src[0].more && !src[1].more;
	for (int i = 0; i < 2; i++)
		if (src[i].open)
			walk_end(qs, &src[i].w);
	return rc;
}

const struct went *
window_min(struct qspace *qs, struct queue *q, int *rc)
{
	struct window *w = &q->w;

	*rc = 0;
	while (w->n == 0 && !w->whole && *rc == 0)
		*rc = window_refill(qs, q);
	return w->n > 0 && *rc == 0 ? w->e[w->head] : NULL;
}

bool
is_held(const struct qspace *qs, uint64_t seq)
{
	struct held *h;

	if (qs->held == NULL)
		return false;
	HASH_FIND(hh, qs->held, &seq, sizeof seq, h);
	return h != NULL;
}
