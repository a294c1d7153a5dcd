#include "action.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define BY_MSGID 1
#define BY_CORRID 2
#define BY_WATCH 4	/* watchers of a queue; they select nothing */

struct waiters {	/* all that wait on one queue for the same thing, in order of arrival */
	struct waiters *next;			/* bucket */
	size_t hot_at;				/* in the heap of the hot ones */
	struct waiters *empty_next;		/* to be freed once the batch is settled */
	bool hot, on_empty;
	uint64_t hash;
	uint8_t by;
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	char queue[WIRE_NAME];
	struct seat *first, *last;
};

struct actions {
	size_t limit, n_dequeues, n_watchers, mask;
	uint64_t seq;
	struct action **by_request;		/* mask + 1 buckets each */
	struct waiters **by_queue;
	struct waiters **hot;			/* a heap, by the arrival of the first in each */
	size_t n_hot, cap_hot, n_sets;
	struct waiters *empty;
	uint64_t looked;
	struct action *served, *added;		/* by the batch that runs */
	struct action **heap;			/* by deadline */
	size_t n_heap, cap_heap;
};

/* --- hashing --- */

static uint64_t
mix(uint64_t h, const void *p, size_t n)
{
	const uint8_t *c = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ c[i]) * 1099511628211u;
	return h;
}

#define SEED 14695981039346656037u

static uint64_t
fold(uint64_t h)
{
	return h ^ h >> 29;
}

static struct action **
request_bucket(const struct actions *as, const struct link_peer *peer, uint64_t reqid)
{
	uint64_t h = mix(mix(SEED, peer->id, peer->n), &reqid, sizeof reqid);

	return &as->by_request[fold(h) & as->mask];
}

static uint64_t
waiters_hash(uint64_t queue, uint8_t by, const uint8_t *msgid, const uint8_t *corrid)
{
	uint64_t h = mix(queue, &by, 1);

	if (by & BY_MSGID)
		h = mix(h, msgid, TMMSGIDLEN);
	if (by & BY_CORRID)
		h = mix(h, corrid, TMCORRIDLEN);
	return fold(h);
}

static struct waiters *
waiters_find(struct actions *as, uint64_t hash, const char *queue, uint8_t by, const uint8_t *msgid,
    const uint8_t *corrid)
{
	struct waiters *w;

	for (w = as->by_queue[hash & as->mask]; w != NULL; w = w->next, as->looked++)
		if (w->hash == hash && w->by == by && strcmp(w->queue, queue) == 0 &&
		    ((by & BY_MSGID) == 0 || memcmp(w->msgid, msgid, TMMSGIDLEN) == 0) &&
		    ((by & BY_CORRID) == 0 || memcmp(w->corrid, corrid, TMCORRIDLEN) == 0))
			break;
	return w;
}

static int	/* Each set may be hot one day: heat() needs no memory. */
hot_room(struct actions *as)
{
	size_t want = as->n_sets + 1;
	struct waiters **hot;

	if (want <= as->cap_hot)
		return 0;
	want = want < 64 ? 64 : want * 2;
	if ((hot = realloc(as->hot, want * sizeof(struct waiters *))) == NULL)
		return -1;
	as->hot = hot;
	as->cap_hot = want;
	return 0;
}

static struct waiters *
waiters_get(struct actions *as, const char *queue, uint8_t by, const uint8_t *msgid, const uint8_t *corrid)
{
	uint64_t hash = waiters_hash(mix(SEED, queue, strlen(queue)), by, msgid, corrid);
	struct waiters *w = waiters_find(as, hash, queue, by, msgid, corrid);

	if (w != NULL || hot_room(as) != 0 || (w = calloc(1, sizeof *w)) == NULL)
		return w;
	as->n_sets++;
	w->hash = hash;
	w->by = by;
	memcpy(w->queue, queue, strlen(queue) + 1);
	if (by & BY_MSGID)
		memcpy(w->msgid, msgid, TMMSGIDLEN);
	if (by & BY_CORRID)
		memcpy(w->corrid, corrid, TMCORRIDLEN);
	w->next = as->by_queue[hash & as->mask];
	as->by_queue[hash & as->mask] = w;
	return w;
}

/* --- hot sets --- */

static uint64_t
arrival(const struct waiters *w)
{
	return w->first->a->seq;
}

static void
hot_set(struct actions *as, size_t at, struct waiters *w)
{
	as->hot[at] = w;
	w->hot_at = at;
}

static void	/* Its first one is another now: find its place anew. */
hot_sift(struct actions *as, struct waiters *w)
{
	size_t at = w->hot_at;

	for (size_t up; at > 0 && arrival(as->hot[up = (at - 1) / 2]) > arrival(w); at = up, as->looked++)
		hot_set(as, at, as->hot[up]);
	for (size_t down; (down = 2 * at + 1) < as->n_hot; at = down, as->looked++) {
		if (down + 1 < as->n_hot && arrival(as->hot[down + 1]) < arrival(as->hot[down]))
			down++;
		if (arrival(as->hot[down]) >= arrival(w))
			break;
		hot_set(as, at, as->hot[down]);
	}
	hot_set(as, at, w);
}

static void
heat(struct actions *as, struct waiters *w)
{
	if (w->hot)
		return;
	w->hot = true;
	hot_set(as, as->n_hot++, w);
	hot_sift(as, w);
}

static void
cool(struct actions *as, struct waiters *w)
{
	struct waiters *last;

	if (!w->hot)
		return;
	w->hot = false;
	last = as->hot[--as->n_hot];
	if (last == w)
		return;
	hot_set(as, w->hot_at, last);
	hot_sift(as, last);
}

static void	/* Freed later: until the batch is settled an abort may need the set again. */
note_empty(struct actions *as, struct waiters *w)
{
	if (w->first != NULL)
		return;
	if (!w->on_empty) {
		w->on_empty = true;
		w->empty_next = as->empty;
		as->empty = w;
	}
}

static void
free_empty(struct actions *as)
{
	struct waiters *w;

	while ((w = as->empty) != NULL) {
		as->empty = w->empty_next;
		w->on_empty = false;
		if (w->first != NULL)
			continue;
		for (struct waiters **at = &as->by_queue[w->hash & as->mask]; *at != NULL; at = &(*at)->next)
			if (*at == w) {
				*at = w->next;
				break;
			}
		as->n_sets--;
		free(w);
	}
}

static void	/* In order of arrival: at the end, except when an abort puts it back. */
place_link(struct actions *as, struct seat *p)
{
	struct waiters *w = p->in;
	struct seat *after = w->last;

	if (after != NULL && after->a->seq > p->a->seq) {
		struct seat *before = w->first;

		while (before->a->seq < p->a->seq)
			before = before->next;
		after = before->prev;
	}
	p->prev = after;
	p->next = after != NULL ? after->next : w->first;
	if (p->next != NULL)
		p->next->prev = p;
	else
		w->last = p;
	if (after != NULL)
		after->next = p;
	else {
		w->first = p;
		if (w->hot)
			hot_sift(as, w);
	}
}

static void
place_unlink(struct actions *as, struct seat *p)
{
	struct waiters *w = p->in;

	if (p->next == NULL && p->prev == NULL)
		cool(as, w);		/* while it has a first one, by which it is found */
	if (p->next != NULL)
		p->next->prev = p->prev;
	else
		w->last = p->prev;
	if (p->prev != NULL)
		p->prev->next = p->next;
	else {
		w->first = p->next;
		if (w->hot)
			hot_sift(as, w);
	}
	note_empty(as, w);
}

/* --- deadlines: a binary heap --- */

static void
heap_set(struct actions *as, size_t at, struct action *a)
{
	as->heap[at] = a;
	a->heap_at = at;
}

static void
heap_sift(struct actions *as, size_t at)
{
	struct action *a = as->heap[at];

	for (size_t up; at > 0 && as->heap[up = (at - 1) / 2]->deadline_us > a->deadline_us; at = up)
		heap_set(as, at, as->heap[up]);
	for (size_t down; (down = 2 * at + 1) < as->n_heap; at = down) {
		if (down + 1 < as->n_heap && as->heap[down + 1]->deadline_us < as->heap[down]->deadline_us)
			down++;
		if (as->heap[down]->deadline_us >= a->deadline_us)
			break;
		heap_set(as, at, as->heap[down]);
	}
	heap_set(as, at, a);
}

static int
heap_room(struct actions *as)
{
	/* Those that the batch served may come back: they keep their room. */
	size_t want = as->n_dequeues + as->n_watchers + 1;
	struct action **heap;

	if (want <= as->cap_heap)
		return 0;
	want = want < 64 ? 64 : want * 2;
	if ((heap = realloc(as->heap, want * sizeof *heap)) == NULL)
		return -1;
	as->heap = heap;
	as->cap_heap = want;
	return 0;
}

static void
heap_push(struct actions *as, struct action *a)
{
	heap_set(as, as->n_heap++, a);
	heap_sift(as, a->heap_at);
}

static void
heap_remove(struct actions *as, struct action *a)
{
	size_t at = a->heap_at;

	assert(as->heap[at] == a);
	if (--as->n_heap == at)
		return;
	heap_set(as, at, as->heap[as->n_heap]);
	heap_sift(as, at);
}

/* --- actions --- */

struct actions *
actions_new(size_t limit)
{
	struct actions *as = calloc(1, sizeof *as);
	size_t buckets = 1024;

	if (as == NULL)
		return NULL;
	while (buckets < limit && buckets < 65536)
		buckets *= 2;
	as->limit = limit;
	as->mask = buckets - 1;
	as->by_request = calloc(buckets, sizeof *as->by_request);
	as->by_queue = calloc(buckets, sizeof *as->by_queue);
	if (as->by_request == NULL || as->by_queue == NULL) {
		actions_free(as);
		return NULL;
	}
	return as;
}

void
actions_limit(struct actions *as, size_t limit)
{
	as->limit = limit;
}

static void
action_link(struct actions *as, struct action *a)
{
	struct action **bucket = request_bucket(as, &a->peer, a->reqid);

	a->next = *bucket;
	*bucket = a;
	for (size_t i = 0; i < a->n_places; i++)
		place_link(as, &a->place[i]);
	heap_push(as, a);
}

static void
action_unlink(struct actions *as, struct action *a)
{
	for (struct action **at = request_bucket(as, &a->peer, a->reqid); *at != NULL; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	for (size_t i = 0; i < a->n_places; i++)
		place_unlink(as, &a->place[i]);
	heap_remove(as, a);
}

static void
action_free(struct actions *as, struct action *a)
{
	if (a->watch)
		as->n_watchers--;
	else
		as->n_dequeues--;
	free(a);
}

void
actions_free(struct actions *as)
{
	struct action *a;

	if (as == NULL)
		return;
	if (as->by_request != NULL && as->by_queue != NULL) {
		while ((a = actions_any(as)) != NULL)
			action_served(as, a);
		actions_commit(as);
	}
	free(as->by_request);
	free(as->by_queue);
	free(as->heap);
	free(as->hot);
	free(as);
}

static struct action *
action_new(struct actions *as, const struct link_peer *peer, uint64_t reqid, size_t places, int64_t deadline_us)
{
	struct action *a;

	if (heap_room(as) != 0 || (a = calloc(1, sizeof *a + places * sizeof a->place[0])) == NULL)
		return NULL;
	a->peer = *peer;
	a->reqid = reqid;
	a->since_us = clock_mono_us();
	a->deadline_us = deadline_us;
	a->seq = ++as->seq;
	a->n_places = places;
	for (size_t i = 0; i < places; i++)
		a->place[i].a = a;
	return a;
}

static void	/* Everything it needs is there: let it count. */
action_enter(struct actions *as, struct action *a)
{
	if (a->watch)
		as->n_watchers++;
	else
		as->n_dequeues++;
	action_link(as, a);
	a->added = true;
	a->batch_next = as->added;
	as->added = a;
}

struct action *
action_wait(struct actions *as, const struct link_peer *peer, const struct wire_dequeue *req, int64_t deadline_us,
    enum action_end end)
{
	struct action *a;
	uint8_t by = 0;

	if (as->n_dequeues >= as->limit || (a = action_new(as, peer, req->reqid, 1, deadline_us)) == NULL)
		return NULL;
	if (req->flags & TPQGETBYMSGID)
		by |= BY_MSGID;
	if (req->flags & TPQGETBYCORRID)
		by |= BY_CORRID;
	a->req = *req;
	a->end = end;
	if ((a->place[0].in = waiters_get(as, req->queue, by, req->msgid, req->corrid)) == NULL) {
		free(a);
		return NULL;
	}
	action_enter(as, a);
	return a;
}

struct action *
action_watch(struct actions *as, const struct link_peer *peer, const struct wire_qwait *req, int64_t deadline_us)
{
	struct action *a;

	if (as->n_watchers >= ACTION_WATCHERS || (a = action_new(as, peer, req->reqid, req->n, deadline_us)) == NULL)
		return NULL;
	a->watch = true;
	a->end = ACTION_END_CALLER;
	for (size_t i = 0; i < req->n; i++)
		if ((a->place[i].in = waiters_get(as, req->queue[i], BY_WATCH, NULL, NULL)) == NULL) {
			while (i-- > 0)		/* sets made for it alone */
				note_empty(as, a->place[i].in);
			free(a);
			return NULL;
		}
	action_enter(as, a);
	return a;
}

static struct action *
action_named(struct actions *as, const struct link_peer *peer, uint64_t reqid)
{
	struct action *a;

	for (a = *request_bucket(as, peer, reqid); a != NULL; a = a->next)
		if (a->reqid == reqid && a->peer.n == peer->n && memcmp(a->peer.id, peer->id, peer->n) == 0)
			break;
	return a;
}

void
action_cancel(struct actions *as, const struct link_peer *peer, uint64_t reqid)
{
	struct action *a = action_named(as, peer, reqid);

	if (a != NULL)
		action_served(as, a);
}

void
actions_event(struct actions *as, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	uint64_t q;

	if (as->n_heap == 0)
		return;		/* nobody waits, for anything */
	q = mix(SEED, queue, strlen(queue));
	for (uint8_t by = 0; by <= BY_WATCH; by++) {
		struct waiters *w;

		if (((by & BY_MSGID) && msgid == NULL) || ((by & BY_CORRID) && corrid == NULL))
			continue;
		w = waiters_find(as, waiters_hash(q, by, msgid, corrid), queue, by, msgid, corrid);
		if (w != NULL && w->first != NULL)
			heat(as, w);
	}
}

struct action *
actions_hot(struct actions *as, const char **queue)
{
	if (as->n_hot == 0)
		return NULL;
	*queue = as->hot[0]->queue;
	return as->hot[0]->first->a;
}

void
actions_cool(struct actions *as, struct action *a)
{
	for (size_t i = 0; i < a->n_places; i++)
		cool(as, a->place[i].in);
}

void
action_try(struct actions *as, struct action *a)
{
	for (size_t i = 0; i < a->n_places; i++)
		heat(as, a->place[i].in);
}

void
action_try_named(struct actions *as, const struct link_peer *peer, uint64_t reqid)
{
	struct action *a = action_named(as, peer, reqid);

	if (a != NULL)
		action_try(as, a);
}

void
action_served(struct actions *as, struct action *a)
{
	action_unlink(as, a);
	a->served = true;
	if (a->added)
		return;		/* on a list of this batch already */
	a->batch_next = as->served;
	as->served = a;
}

int64_t
actions_next_deadline(const struct actions *as)
{
	return as->n_heap == 0 ? INT64_MAX : as->heap[0]->deadline_us;
}

struct action *
actions_due(struct actions *as, int64_t now)
{
	return as->n_heap != 0 && as->heap[0]->deadline_us <= now ? as->heap[0] : NULL;
}

struct action *
actions_any(struct actions *as)
{
	return as->n_heap == 0 ? NULL : as->heap[0];
}

uint64_t
actions_looked(const struct actions *as)
{
	return as->looked;
}

size_t
actions_count(const struct actions *as)
{
	return as->n_dequeues;
}

void
actions_commit(struct actions *as)
{
	struct action *a;

	while ((a = as->added) != NULL) {
		as->added = a->batch_next;
		a->added = false;
		if (a->served)
			action_free(as, a);
	}
	while ((a = as->served) != NULL) {
		as->served = a->batch_next;
		action_free(as, a);
	}
	free_empty(as);
}

void
actions_abort(struct actions *as)
{
	struct action *a;

	while ((a = as->added) != NULL) {	/* its request is run again */
		as->added = a->batch_next;
		if (!a->served)
			action_unlink(as, a);
		action_free(as, a);
	}
	while ((a = as->served) != NULL) {
		as->served = a->batch_next;
		a->served = false;
		action_link(as, a);
		action_try(as, a);
	}
	free_empty(as);
}
