#include "due.h"

#include <stdlib.h>

#define NEVER INT64_MAX

static void
set_at(struct due_heap *h, size_t at, struct due *d)
{
	h->d[at] = d;
	d->at = at + 1;
}

static void
sift(struct due_heap *h, size_t at)
{
	struct due *d = h->d[at];

	for (size_t up; at > 0 && h->d[up = (at - 1) / 2]->us > d->us; at = up)
		set_at(h, at, h->d[up]);
	for (size_t down; (down = 2 * at + 1) < h->n; at = down) {
		if (down + 1 < h->n && h->d[down + 1]->us < h->d[down]->us)
			down++;
		if (h->d[down]->us >= d->us)
			break;
		set_at(h, at, h->d[down]);
	}
	set_at(h, at, d);
}

int
due_room(struct due_heap *h, size_t members)
{
	struct due **d;
	size_t cap = h->cap == 0 ? 32 : h->cap;

	while (cap < members)
		cap *= 2;
	if (cap == h->cap)
		return 0;
	if ((d = realloc(h->d, cap * sizeof(struct due *))) == NULL)
		return -1;
	h->d = d;
	h->cap = cap;
	return 0;
}

void
due_set(struct due_heap *h, struct due *d, int64_t us)
{
	size_t at = d->at;

	if (us == NEVER && at == 0)
		return;
	if (at == 0)
		set_at(h, at = h->n++, d);
	else
		at--;
	d->us = us;
	if (us != NEVER) {
		sift(h, at);
		return;
	}
	d->at = 0;
	if (--h->n != at) {
		set_at(h, at, h->d[h->n]);
		sift(h, at);
	}
}

struct due *
due_first(const struct due_heap *h)
{
	return h->n == 0 ? NULL : h->d[0];
}

int64_t
due_next(const struct due_heap *h)
{
	return h->n == 0 ? NEVER : h->d[0]->us;
}

void
due_free(struct due_heap *h)
{
	free(h->d);
	*h = (struct due_heap){ 0 };
}
