#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LOAD 50

void
queue_open(struct queue *q)
{
	memset(q, 0, sizeof *q);
	if (getrandom(&q->last_id, sizeof q->last_id, GRND_NONBLOCK) != (ssize_t)sizeof q->last_id)
		q->last_id = 0;
}

void
queue_close(struct queue *q)
{
	struct request *r, *next;
	struct member *m, *after;

	for (r = q->by_id; r != NULL; r = next) {
		next = r->by_id.next;
		queue_over(q, r);	// NOLINT: the hash has the next one then
	}
	for (m = q->members; m != NULL; m = after) {
		after = m->hh.next;
		queue_part(q, m);	// NOLINT: the hash has the next one then
	}
}

bool
queue_full(const struct queue *q)
{
	return q->n >= QUEUE_REQUESTS || q->bytes >= QUEUE_BYTES;
}

uint64_t
queue_peer_key(const struct link_peer *peer)
{
	uint64_t key = 0;

	memcpy(&key, peer->id, peer->n < sizeof key ? peer->n : sizeof key);
	return key;
}

/* --- services --- */

static struct service *
service_get(struct queue *q, const char *name)
{
	struct service *s;

	HASH_FIND(hh, q->services, name, strlen(name), s);
	if (s != NULL || (s = calloc(1, sizeof *s)) == NULL)
		return s;
	snprintf(s->name, sizeof s->name, "%s", name);
	s->load = LOAD;
	HASH_ADD_KEYPTR(hh, q->services, s->name, strlen(s->name), s);
	return s;
}

static void	/* Nobody offers it, and nothing waits for it. */
service_drop(struct queue *q, struct service *s)
{
	if (s->offering > 0 || s->waiting.n > 0)
		return;
	HASH_DEL(q->services, s);
	free(s);
}

static void
waiting_enter(struct queue *q, struct request *r)
{
	struct service *s = r->service;

	if (s->waiting.n == 0) {
		s->prev = NULL;
		if ((s->next = q->waiting) != NULL)
			s->next->prev = s;
		q->waiting = s;
	}
	rqueue_add(&s->waiting, &r->waits, r->call.priority);
	q->n++;
	q->bytes += r->bytes;
	q->load += s->load;
}

static void
waiting_leave(struct queue *q, struct request *r)
{
	struct service *s = r->service;

	rqueue_remove(&s->waiting, &r->waits);
	q->n--;
	q->bytes -= r->bytes;
	q->load -= s->load;
	if (s->waiting.n > 0)
		return;
	if (s->prev != NULL)
		s->prev->next = s->next;
	else
		q->waiting = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	s->ask_us = 0;
}

/* --- requests --- */

struct request *
queue_add(struct queue *q, struct link_msg *m, const struct wire_call *call, int64_t now_us)
{
	struct request *r;

	if (queue_find_from(q, &m->peer, call->reqid) != NULL || (r = calloc(1, sizeof *r)) == NULL)
		return NULL;
	if ((r->service = service_get(q, call->service)) == NULL) {
		free(r);
		return NULL;
	}
	if (++q->last_id == 0)
		q->last_id = 1;
	r->id = q->last_id;
	r->from = (struct request_from){ queue_peer_key(&m->peer), call->reqid };
	r->caller = m->peer;
	r->call = *call;
	r->bytes = m->head_len + m->body_len;
	r->arrival = ++q->arrivals;
	r->arrived_us = now_us;
	r->deadline_us = LINK_FOREVER;
	atomic_init(&r->holds, 1);
	link_msg_move(&r->msg, m);
	HASH_ADD(by_id, q->by_id, id, sizeof r->id, r);
	HASH_ADD(by_caller, q->by_caller, from, sizeof r->from, r);
	waiting_enter(q, r);
	return r;
}

struct request *
queue_find(const struct queue *q, uint64_t id)
{
	struct request *r;

	HASH_FIND(by_id, q->by_id, &id, sizeof id, r);
	return r;
}

struct request *
queue_find_from(const struct queue *q, const struct link_peer *caller, uint64_t reqid)
{
	struct request_from from;
	struct request *r;

	memset(&from, 0, sizeof from);
	from.peer = queue_peer_key(caller);
	from.reqid = reqid;
	HASH_FIND(by_caller, q->by_caller, &from, sizeof from, r);
	return r;
}

void
request_hold(struct request *r)
{
	atomic_fetch_add(&r->holds, 1);
}

void
request_release(void *p, void *request)
{
	struct request *r = request;

	(void)p;
	if (atomic_fetch_sub(&r->holds, 1) > 1)
		return;
	link_msg_done(&r->msg);
	free(r);
}

static void
member_let_go(struct queue *q, struct request *r)
{
	if (r->prev != NULL)
		r->prev->next = r->next;
	else
		r->member->has = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	q->given--;
}

void
queue_over(struct queue *q, struct request *r)
{
	if (r->member != NULL) {
		member_let_go(q, r);
	} else {
		waiting_leave(q, r);
		service_drop(q, r->service);
	}
	HASH_DELETE(by_id, q->by_id, r);	// NOLINT: inside uthash
	HASH_DELETE(by_caller, q->by_caller, r);	// NOLINT: inside uthash
	request_release(NULL, r);
}

/* --- members --- */

static void
idle_enter(struct queue *q, struct member *m)
{
	if (m->idle || m->more == 0 || m->left)
		return;
	m->idle = true;
	m->next = NULL;
	if ((m->prev = q->idle_last) != NULL)
		m->prev->next = m;
	else
		q->idle_first = m;
	q->idle_last = m;
}

static void
idle_leave(struct queue *q, struct member *m)
{
	if (!m->idle)
		return;
	m->idle = false;
	if (m->prev != NULL)
		m->prev->next = m->next;
	else
		q->idle_first = m->next;
	if (m->next != NULL)
		m->next->prev = m->prev;
	else
		q->idle_last = m->prev;
}

struct member *
queue_join(struct queue *q, const struct link_peer *peer, long srvid, long pid)
{
	struct member *m = calloc(1, sizeof *m);

	if (m == NULL)
		return NULL;
	m->peer_key = queue_peer_key(peer);
	m->peer = *peer;
	m->srvid = srvid;
	m->pid = pid;
	m->pidfd = -1;
	HASH_ADD(hh, q->members, peer_key, sizeof m->peer_key, m);
	return m;
}

struct member *
queue_member(const struct queue *q, const struct link_peer *peer)
{
	uint64_t key = queue_peer_key(peer);
	struct member *m;

	HASH_FIND(hh, q->members, &key, sizeof key, m);
	return m;
}

static size_t	/* n_offers: it does not */
offer_at(const struct member *m, const struct service *s)
{
	size_t i;

	for (i = 0; i < m->n_offers && m->offers[i] != s; i++)
		;
	return i;
}

static bool
offers(const struct member *m, const struct service *s)
{
	return offer_at(m, s) < m->n_offers;
}

int
queue_offer(struct queue *q, struct member *m, const char *name)
{
	struct service *s = service_get(q, name), **grown;

	if (s == NULL)
		return -1;
	if (offers(m, s))
		return 0;
	if (m->n_offers >= QUEUE_OFFERS || (grown = realloc(m->offers, (m->n_offers + 1) * sizeof(void *))) == NULL) {
		service_drop(q, s);
		return -1;
	}
	m->offers = grown;
	m->offers[m->n_offers++] = s;
	s->offering++;
	return 0;
}

static void
offer_end(struct queue *q, struct member *m, size_t i)
{
	struct service *s = m->offers[i];

	m->offers[i] = m->offers[--m->n_offers];
	s->offering--;
	service_drop(q, s);
}

void
queue_withdraw(struct queue *q, struct member *m, const char *name)
{
	struct service *s;
	size_t i;

	HASH_FIND(hh, q->services, name, strlen(name), s);
	if (s != NULL && (i = offer_at(m, s)) < m->n_offers)
		offer_end(q, m, i);
}

void
queue_ready(struct queue *q, struct member *m, unsigned more)
{
	m->more = more > QUEUE_MORE - m->more ? QUEUE_MORE : m->more + more;
	idle_enter(q, m);
}

/* The last one that serves has to see to what waits, or it would be refused although it was there before the order to stop. */
void
queue_leave(struct queue *q, struct member *m)
{
	const struct member *other;

	if (m->leaving)
		return;
	m->leaving = true;
	q->leaving++;
	m->drain = q->n;
	for (other = q->members; other != NULL; other = other->hh.next)
		if (!other->leaving)
			m->drain = 0;
}

void
queue_part(struct queue *q, struct member *m)
{
	struct request *r, *next;

	for (r = m->has; r != NULL; r = next) {
		next = r->next;
		queue_over(q, r);
	}
	while (m->n_offers > 0)
		offer_end(q, m, m->n_offers - 1);
	idle_leave(q, m);
	q->leaving -= m->leaving && !m->left;
	HASH_DEL(q->members, m);	// NOLINT: inside uthash
	free(m->offers);
	free(m);
}

/* --- what goes to whom --- */

static bool
goes_before(const struct request *a, const struct request *b, bool by_age)
{
	if (!by_age && a->waits.prio != b->waits.prio)
		return a->waits.prio > b->waits.prio;
	return a->arrival < b->arrival;
}

static struct request *
choose(const struct queue *q, const struct member *m)
{
	bool by_age = q->taken + 1 >= RQUEUE_OLDEST_EVERY;
	struct request *best = NULL, *r;
	struct service *s;

	if (m->leaving && m->drain == 0)
		return NULL;
	for (s = q->waiting; s != NULL; s = s->next) {
		if (!offers(m, s))
			continue;
		r = (struct request *)(void *)(by_age ? rqueue_oldest(&s->waiting) : rqueue_highest(&s->waiting));
		if (best == NULL || goes_before(r, best, by_age))
			best = r;
	}
	return best;
}

struct request *
queue_next(struct queue *q, struct member **to)
{
	struct request *r;
	struct member *m;

	if (q->n == 0)
		return NULL;
	for (m = q->idle_first; m != NULL; m = m->next)
		if ((r = choose(q, m)) != NULL) {
			*to = m;
			return r;
		}
	return NULL;
}

void
queue_give(struct queue *q, struct request *r, struct member *m)
{
	waiting_leave(q, r);
	r->service = NULL;
	q->taken = q->taken + 1 >= RQUEUE_OLDEST_EVERY ? 0 : q->taken + 1;
	r->member = m;
	r->prev = NULL;
	if ((r->next = m->has) != NULL)
		r->next->prev = r;
	m->has = r;
	q->given++;
	m->more--;
	m->drain -= m->drain > 0;
	idle_leave(q, m);
	idle_enter(q, m);		/* behind the others, when it takes yet another */
}

void
queue_unable(struct queue *q, struct member *m)
{
	idle_leave(q, m);
}

struct member *
queue_leaver(struct queue *q)
{
	struct member *m;

	if (q->leaving == 0)
		return NULL;
	for (m = q->members; m != NULL; m = m->hh.next)
		if (m->leaving && !m->left && choose(q, m) == NULL) {
			idle_leave(q, m);
			m->left = true;
			q->leaving--;
			return m;
		}
	return NULL;
}

struct service *
queue_orphan(const struct queue *q, int64_t now_us)
{
	struct service *s;

	for (s = q->waiting; s != NULL; s = s->next)
		if (s->offering == 0 && s->ask_us <= now_us)
			return s;
	return NULL;
}
