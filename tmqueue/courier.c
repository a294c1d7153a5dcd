#include "courier.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "bb.h"
#include "clock.h"
#include "link.h"
#include "quiet.h"

#define ASK_MS 1000			/* BBL */
#define CONNECT_US 1000000
#define PULSE_US 250000			/* between two looks whether those who owe an answer are alive */
enum { EVENTS = 64 };

struct route {				/* to a group's queue manager */
	char group[WIRE_GROUP];
	UT_hash_handle hh;
	struct link_client *link;	/* NULL: there is none */
	bool broken;			/* noticed while it was used; told at the next turn */
	bool wants_room;		/* it took nothing: epoll says when it does */
};

struct search {				/* an order to the finder, and what it found */
	struct search *next;
	char group[WIRE_GROUP];
	unsigned tries;			/* so far, so that one of several servers is as good as another */
	struct link_client *link;
	bool nobody;
};

struct courier {
	int ep, found_fd, stop_fd;
	struct letters *ls;
	struct route *routes;
	unsigned searches, pending;	/* so far; of them not ended yet */
	int64_t pulse_us;
	bool any_broken;
	char bbl_endpoint[256];
	/* between the two threads: */
	pthread_t finder;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool has_finder, ends;
	struct search *orders, *results;
};

/* --- the finder's thread --- */

static void
ask_bbl(struct courier *c, struct search *s, char *endpoint, size_t size)
{
	struct wire_adminreply reply = { 0 };
	struct document args = { 0 };
	struct record *r = document_add(&args);
	char service[WIRE_NAME];
	const char *at;

	endpoint[0] = '\0';
	snprintf(service, sizeof service, "..%s", s->group);
	if (r != NULL && record_set(r, "service", service) == 0 &&
	    bb_request(c->bbl_endpoint, "resolve", r, ASK_MS, &reply) == LINK_OK) {
		s->nobody = reply.status == TPENOENT;
		if (reply.status == 0 && reply.doc.n > 0 &&
		    (at = record_get(&reply.doc.rec[s->tries % reply.doc.n], "endpoint")) != NULL)
			snprintf(endpoint, size, "%s", at);
		bb_reply_free(&reply);
	}
	document_free(&args);
}

static void
search(struct courier *c, struct search *s)
{
	char endpoint[256];

	ask_bbl(c, s, endpoint, sizeof endpoint);
	if (endpoint[0] == '\0' || link_client_open(endpoint, &s->link) != LINK_OK)
		return;
	if (link_client_connect(s->link, clock_mono_us() + CONNECT_US) != LINK_OK) {
		link_client_close(s->link);
		s->link = NULL;
	}
}

static void *
finder(void *arg)
{
	struct courier *c = arg;
	struct search *s;
	uint64_t one = 1;

	pthread_mutex_lock(&c->lock);
	while (!c->ends) {
		if ((s = c->orders) == NULL) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		LL_DELETE(c->orders, s);
		pthread_mutex_unlock(&c->lock);
		search(c, s);
		pthread_mutex_lock(&c->lock);
		LL_APPEND(c->results, s);
		if (write(c->found_fd, &one, sizeof one) < 0)
			continue;	/* full: it is readable already */
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* --- connections --- */

static struct route *
route_find(struct courier *c, const char *group)
{
	struct route *r;

	HASH_FIND_STR(c->routes, group, r);
	return r;
}

static void
route_watch(struct courier *c, struct route *r, int op)
{
	struct epoll_event e = { .events = EPOLLIN | (r->wants_room ? EPOLLOUT : 0), .data.ptr = r };

	if (epoll_ctl(c->ep, op, link_client_fd(r->link), &e) != 0)
		r->broken = c->any_broken = true;
}

static void
route_close(struct route *r)
{
	link_client_close(r->link);	/* epoll forgets it */
	r->link = NULL;
	r->broken = r->wants_room = false;
}

static void
route_break(struct courier *c, struct route *r)
{
	route_close(r);
	letters_broke(c->ls, r->group);
}

static int
way_send(void *arg, const char *group, const void *head, size_t n)
{
	struct courier *c = arg;
	struct route *r = route_find(c, group);
	int rc;

	if (r == NULL || r->link == NULL || r->broken)
		return LINK_GONE;
	rc = link_client_send(r->link, head, n, NULL, 0);
	if (rc == LINK_TIMEOUT || rc == LINK_INTR) {
		if (!r->wants_room) {
			r->wants_room = true;
			route_watch(c, r, EPOLL_CTL_MOD);
		}
		return LINK_TIMEOUT;
	}
	if (rc != LINK_OK)	/* what it sent before its end is read first; letters.c is in the midst of it besides */
		r->broken = c->any_broken = true;
	return rc;
}

static void
way_drop(void *arg, const char *group)
{
	struct courier *c = arg;
	struct route *r = route_find(c, group);

	if (r != NULL && r->link != NULL)
		route_close(r);
}

static void	/* Without memory, or a thread, it is as if the group were just being started. */
way_find(void *arg, const char *group)
{
	struct courier *c = arg;
	struct search *s = calloc(1, sizeof *s);
	bool ordered;

	if (s == NULL) {
		letters_not_found(c->ls, group, false);
		return;
	}
	memcpy(s->group, group, strnlen(group, sizeof s->group - 1));
	s->tries = c->searches++;
	c->pending++;
	pthread_mutex_lock(&c->lock);
	if (!c->has_finder)
		c->has_finder = pthread_create(&c->finder, NULL, finder, c) == 0;
	if ((ordered = c->has_finder)) {
		LL_APPEND(c->orders, s);
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	if (ordered)
		return;
	c->pending--;
	free(s);
	letters_not_found(c->ls, group, false);
}

/* --- opening and closing --- */

static int
watch(struct courier *c, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	return epoll_ctl(c->ep, EPOLL_CTL_ADD, fd, &e);
}

struct courier *
courier_new(const char *bbl_endpoint, int stop_fd)
{
	struct courier *c = calloc(1, sizeof *c);
	int saved;

	if (c == NULL)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	snprintf(c->bbl_endpoint, sizeof c->bbl_endpoint, "%s", bbl_endpoint);
	c->stop_fd = stop_fd;
	c->found_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->ep = epoll_create1(EPOLL_CLOEXEC);
	if (c->found_fd >= 0 && c->ep >= 0 && watch(c, c->found_fd) == 0 && (stop_fd < 0 || watch(c, stop_fd) == 0))
		return c;
	saved = errno;
	courier_free(c);
	errno = saved;
	return NULL;
}

static void
searches_free(struct search **list)
{
	struct search *s;

	while ((s = *list) != NULL) {
		LL_DELETE(*list, s);
		link_client_close(s->link);
		free(s);
	}
}

void
courier_free(struct courier *c)
{
	struct route *r, *next;

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	c->ends = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->has_finder)
		pthread_join(c->finder, NULL);
	searches_free(&c->orders);
	searches_free(&c->results);
	for (r = c->routes; r != NULL; r = next) {
		next = r->hh.next;
		HASH_DEL(c->routes, r);	// NOLINT: inside uthash
		route_close(r);
		free(r);
	}
	if (c->ep >= 0)
		close(c->ep);
	if (c->found_fd >= 0)
		close(c->found_fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void
courier_serve(struct courier *c, struct letters *ls)
{
	struct letter_way way = { c, way_send, way_find, way_drop };

	c->ls = ls;
	if (ls != NULL)
		letters_way(ls, &way);
}

int
courier_fd(const struct courier *c)
{
	return c->ep;
}

/* --- what comes --- */

static void
on_found(struct courier *c, struct search *s)
{
	struct route *r = route_find(c, s->group);

	if (r == NULL && s->link != NULL && (r = calloc(1, sizeof *r)) != NULL) {
		memcpy(r->group, s->group, sizeof r->group);
		HASH_ADD_STR(c->routes, group, r);
	}
	if (r == NULL || s->link == NULL) {
		letters_not_found(c->ls, s->group, s->nobody);
		return;
	}
	if (r->link != NULL)
		route_close(r);
	r->link = s->link;
	s->link = NULL;
	route_watch(c, r, EPOLL_CTL_ADD);
	letters_found(c->ls, r->group);
}

static void
take_results(struct courier *c)
{
	struct search *list, *s;
	uint64_t n;

	if (read(c->found_fd, &n, sizeof n) < 0)
		return;
	pthread_mutex_lock(&c->lock);
	list = c->results;
	c->results = NULL;
	pthread_mutex_unlock(&c->lock);
	for (s = list; s != NULL; s = s->next) {
		c->pending--;
		on_found(c, s);
	}
	searches_free(&list);
}

static void	/* All that came of it. */
route_read(struct courier *c, struct route *r)
{
	struct wire_txreply m;
	struct link_msg msg;
	int rc = LINK_GONE;

	while (r->link != NULL && (rc = link_client_recv(r->link, &msg, 0)) == LINK_OK) {
		if (wire_txreply_decode(msg.head, msg.head_len, &m) == 0)
			letters_reply(c->ls, r->group, &m);
		else
			quiet_log("QM_CAT:1647: WARN: TMQUEUE: group %s answered with %zu bytes that are no answer; dropped", r->group,
			    msg.head_len);
		link_msg_done(&msg);
	}
	if (r->link != NULL && (rc == LINK_GONE || rc == LINK_FAIL || r->broken))
		route_break(c, r);
}

static void
on_event(struct courier *c, struct route *r, uint32_t events)
{
	if (r->link == NULL)
		return;
	if (events & EPOLLOUT) {
		r->wants_room = false;
		route_watch(c, r, EPOLL_CTL_MOD);
		letters_room(c->ls, r->group);
	}
	route_read(c, r);
}

static void
read_all(struct courier *c)
{
	c->any_broken = false;
	for (struct route *r = c->routes; r != NULL; r = r->hh.next)
		if (r->link != NULL)
			route_read(c, r);
}

void
courier_turn(struct courier *c)
{
	struct epoll_event e[EVENTS];
	int64_t now;
	int n;

	if (c->ls == NULL || (c->routes == NULL && c->pending == 0))
		return;		/* a server of one group pays nothing for this */
	if (c->any_broken)
		read_all(c);
	n = epoll_wait(c->ep, e, EVENTS, 0);
	for (int i = 0; i < n; i++)
		if (e[i].data.ptr == c)
			take_results(c);
		else
			on_event(c, e[i].data.ptr, e[i].events);
	if ((now = clock_mono_us()) >= c->pulse_us) {
		c->pulse_us = now + PULSE_US;
		if (letters_await(c->ls))
			read_all(c);
	}
}

int64_t
courier_next_event(const struct courier *c)
{
	return c->any_broken ? 0 : c->ls != NULL && letters_await(c->ls) ? c->pulse_us : INT64_MAX;
}
