/*
 * conn - links to servers, the cache of names, requests under way.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conn_impl.h"
#include "bb.h"
#include "clock.h"
#include "ulog.h"

#define MS 1000LL
#define ASK_AGAIN_US (100 * MS)		/* while a server is being started */
#define TRY_US (500 * MS)		/* for a server that may be gone, before BBL is asked again */
#define CONNECT_US (1000 * MS)		/* TPNOBLOCK: a connection may take its time, a full one may not */
#define ABSENT 20		/* questions to BBL, while others offer a service and the group that is wanted does not: 2 s */
#define MOST_US (8000 * MS)		/* each try that found a server too busy is followed by a longer one, up to this */
#define STALL_US (10000 * MS)		/* a server that takes nothing of a message under way for so long is gone */
#define SIGNAL_US (1000 * MS)		/* what a signal leaves to a message under way */

void
conn_open(struct conn *c, const char *bbl_endpoint, int64_t bbl_patience_us)
{
	memset(c, 0, sizeof *c);
	snprintf(c->bbl, sizeof c->bbl, "%s", bbl_endpoint);
	c->bbl_patience_us = bbl_patience_us;
	if (getrandom(&c->last_reqid, sizeof c->last_reqid, GRND_NONBLOCK) != sizeof c->last_reqid)
		c->last_reqid = (uint64_t)clock_now_us() << 20 ^ (uint64_t)getpid() << 44 ^ (uint64_t)(uintptr_t)c;
}

static void
msg_free(struct conn *c, struct link_msg *m)
{
	if (m == NULL)
		return;
	link_msg_done(m);
	if (c->spare == NULL)
		c->spare = m;
	else
		free(m);
}

/* ---- peers ---- */

struct peer *
peer_find(struct conn *c, const char *endpoint)
{
	struct peer *p;

	for (p = c->peers; p != NULL; p = p->next)
		if (strcmp(p->endpoint, endpoint) == 0)
			return p;
	return NULL;
}

static struct peer *
peer_open(struct conn *c, const char *endpoint)
{
	struct peer *p = peer_find(c, endpoint);

	if (p != NULL)
		return p;
	if ((p = calloc(1, sizeof *p)) == NULL)
		return NULL;
	snprintf(p->endpoint, sizeof p->endpoint, "%s", endpoint);
	if (link_client_open(endpoint, &p->link) != LINK_OK) {
		ulog("LIBTUX_CAT:5001: ERROR: cannot make a link to %s: %s", endpoint, strerror(errno));
		free(p);
		return NULL;
	}
	p->next = c->peers;
	c->peers = p;
	return p;
}

static void
service_free(struct service *s)
{
	free(s->buftype);
	free(s);
}

/* The server is gone: what it had is lost, and every name that led to it is asked again. */
static void
peer_lost(struct conn *c, struct peer *gone)
{
	struct peer **at;
	struct service **sat, *s;
	size_t i;

	pendings_lost(c, gone);
	for (sat = &c->services; (s = *sat) != NULL;) {
		for (i = 0; i < s->n && strcmp(s->target[i].endpoint, gone->endpoint) != 0; i++)
			;
		if (i < s->n) {
			*sat = s->next;
			service_free(s);
		} else
			sat = &s->next;
	}
	for (at = &c->peers; *at != NULL && *at != gone; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = gone->next;
	link_client_close(gone->link);
	free(gone);
}

void
conn_close(struct conn *c)
{
	struct peer *p;
	struct service *s;
	struct pending *d;

	while ((d = c->pendings) != NULL) {
		d->peer = NULL;
		conn_forget(c, d);
	}
	while ((p = c->peers) != NULL) {
		c->peers = p->next;
		link_client_close(p->link);
		free(p);
	}
	while ((s = c->services) != NULL) {
		c->services = s->next;
		service_free(s);
	}
	free(c->spare);
	wr_free(&c->out);
	memset(c, 0, sizeof *c);
}

/* ---- names ---- */

static unsigned	/* Where to begin among the equally busy: threads, and processes, that ask at once begin at different ones. */
turn_first(void)
{
	static atomic_uint n;

	return atomic_fetch_add(&n, 1) + (unsigned)getpid();
}

static struct service *
service_from_reply(const char *name, const struct document *doc)
{
	struct service *s = calloc(1, sizeof *s + doc->n * sizeof s->target[0]);
	const char *v;
	size_t i;

	if (s == NULL)
		return NULL;
	snprintf(s->name, sizeof s->name, "%s", name);
	for (i = 0; i < doc->n; i++) {
		const struct record *r = &doc->rec[i];

		if ((v = record_get(r, "endpoint")) == NULL || *v == '\0')
			continue;
		snprintf(s->target[s->n].endpoint, CONN_ENDPOINT, "%s", v);
		if ((v = record_get(r, "group")) != NULL)
			snprintf(s->target[s->n].group, WIRE_GROUP, "%s", v);
		s->target[s->n].grpno = record_long(r, "grpno", 0);
		s->target[s->n].srvid = record_long(r, "srvid", 0);
		s->target[s->n].load = record_long(r, "load", 50);
		if (s->n++ > 0)
			continue;
		s->prio = record_long(r, "prio", 50);
		s->trantime = record_long(r, "trantime", 30);
		s->blocktime_ms = record_long(r, "blocktime", 0) * 1000;
		v = record_get(r, "autotran");
		s->autotran = v != NULL && (*v == 'Y' || *v == 'y' || *v == '1');
		v = record_get(r, "buftype");
		s->buftype = strdup(v == NULL ? "" : v);
		if ((v = record_get(r, "routing")) != NULL)
			snprintf(s->routing, sizeof s->routing, "%s", v);
	}
	if (s->n > 1)
		s->turn = turn_first();
	if (s->buftype == NULL && (s->buftype = strdup("")) == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

/* Sleep, but not past the deadline.  TPGOTSIG when a signal ends it and the caller wants to know. */
static int
pause_us(int64_t us, const struct patience *how)
{
	int64_t left = how->deadline_us == LINK_FOREVER ? us : how->deadline_us - clock_mono_us();

	if (left < us)
		us = left;
	if (us <= 0)
		return 0;
	if (poll(NULL, 0, (int)((us + 999) / 1000)) == -1 && errno == EINTR && !how->restart)
		return TPGOTSIG;
	return 0;
}

static bool
over(const struct patience *how)
{
	return how->deadline_us != LINK_FOREVER && clock_mono_us() >= how->deadline_us;
}

/* One question to BBL.  0 with *out, which has no targets while the server is being started; -1: BBL does not
 * answer. */
static int
service_ask(struct conn *c, const char *name, int64_t timeout_us, const struct patience *how, struct service **out)
{
	struct wire_adminreply reply = { 0 };
	struct document args = { 0 };
	struct record *r;
	int rc, err = TPEOS;

	*out = NULL;
	if ((r = document_add(&args)) == NULL || record_set(r, "service", name) != 0)
		goto done;
	do
		rc = bb_request(c->bbl, "resolve", r, timeout_us / 1000 > 0 ? timeout_us / 1000 : 1, &reply);
	while (rc == LINK_INTR && how->restart);
	if (rc != LINK_OK) {
		err = rc == LINK_INTR ? TPGOTSIG : -1;
		goto done;
	}
	if (reply.status == 0)
		err = (*out = service_from_reply(name, &reply.doc)) == NULL ? TPEOS : 0;
	else {
		err = reply.status == TPENOENT ? TPENOENT : TPESYSTEM;
		if (err != TPENOENT)
			ulog("LIBTUX_CAT:5002: ERROR: BBL refused to look up service %s: %s", name,
			    reply.text == NULL ? "no reason given" : reply.text);
	}
	bb_reply_free(&reply);
done:
	document_free(&args);
	return err;
}

int
conn_lookup(struct conn *c, const char *name, const struct patience *how, const struct service **out)
{
	struct service **at, *s;
	int64_t began, left, ask_us = CONNECT_US;
	bool starting = false;
	int err;

	for (at = &c->services; (s = *at) != NULL; at = &s->next)
		if (strcmp(s->name, name) == 0) {
			*at = s->next;		/* last used first */
			s->next = c->services;
			c->services = s;
			*out = s;
			return 0;
		}
	began = clock_mono_us();
	for (;;) {
		left = how->deadline_us == LINK_FOREVER ? ask_us : how->deadline_us - clock_mono_us();
		err = service_ask(c, name, left < ask_us ? left : ask_us, how, &s);
		if (err == -1 && clock_mono_us() - began >= ask_us && ask_us < MOST_US)
			ask_us *= 2;
		if (err == 0 && s->n > 0)
			break;
		if (err == 0) {
			service_free(s);
			starting = true;
			if (how->noblock)
				return TPEBLOCK;
		} else if (err != -1)
			return err;
		if (starting && over(how))
			return TPETIME;
		if (err == -1 && (over(how) || clock_mono_us() - began > c->bbl_patience_us)) {
			ulog("LIBTUX_CAT:5003: ERROR: cannot look up service %s: BBL does not answer at %s", name,
			    c->bbl);
			return TPESYSTEM;
		}
		if ((err = pause_us(ASK_AGAIN_US, how)) != 0)
			return err;
	}
	s->next = c->services;
	c->services = s;
	*out = s;
	return 0;
}

static bool
word_equal(const char *from, size_t n, const char *word)
{
	return strncmp(from, word, n) == 0 && word[n] == '\0';
}

/* BUFTYPE is  type[:subtype[,subtype]][;type...]  where * as a subtype, or none, means any. */
bool
conn_accepts_type(const struct service *s, const char *type, const char *subtype)
{
	const char *p = s->buftype;

	if (*p == '\0' || strcmp(p, "ALL") == 0 || *type == '\0')
		return true;
	while (*p != '\0') {
		size_t n = strcspn(p, ":;");
		bool this = word_equal(p, n, type);

		p += n;
		if (this && *p != ':')
			return true;
		while (*p == ':' || *p == ',') {
			p++;
			n = strcspn(p, ",;");
			if (this && (word_equal(p, n, subtype) || word_equal(p, n, "*")))
				return true;
			p += n;
		}
		if (*p == ';')
			p++;
	}
	return false;
}

/* ---- requests ---- */

uint64_t
conn_next_reqid(struct conn *c)
{
	return ++c->last_reqid != 0 ? c->last_reqid : ++c->last_reqid;
}

static int
peer_send(struct conn *c, struct peer *peer, const struct link_body *body, const struct patience *how, int64_t try_us)
{
	struct link_haste haste = { .rest_us = how->deadline_us, .stall_us = how->noblock ? TRY_US : STALL_US,
		.signal_us = how->restart ? 0 : SIGNAL_US };
	int64_t now;
	int rc;

	if (!wr_ok(&c->out))
		return LINK_FAIL;
	now = clock_mono_us();
	haste.begin_us = how->noblock ? (peer->used ? now : now + CONNECT_US) : now + try_us;
	if (how->deadline_us < haste.begin_us)
		haste.begin_us = how->deadline_us;
	do
		rc = link_client_send_by(peer->link, c->out.p, c->out.len, body, &haste);
	while (rc == LINK_INTR && how->restart);
	if (rc == LINK_OK)
		peer->used = true;
	return rc;
}

static void
pending_enter(struct conn *c, struct pending *p, struct peer *peer)
{
	p->peer = peer;
	p->state = PENDING_WAITING;
	p->msg = NULL;
	p->unbegun = false;
	p->next = c->pendings;
	c->pendings = p;
	peer->outstanding++;
}

static void
deliver(struct conn *c, struct peer *from)
{
	struct pending *p;
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(c->spare->head, c->spare->head_len, &kind, &reqid) != 0) {
		ulog("LIBTUX_CAT:5005: WARN: dropped %zu bytes that are no message, from %s", c->spare->head_len,
		    from->endpoint);
		link_msg_done(c->spare);
		return;
	}
	for (p = c->pendings; p != NULL; p = p->next)
		if (p->reqid == reqid && p->peer == from && p->state == PENDING_WAITING) {
			if (pending_refused(c, p, c->spare))
				break;
			p->msg = c->spare;
			p->state = PENDING_ANSWERED;
			from->outstanding--;
			c->spare = NULL;
			return;
		}
	link_msg_done(c->spare);	/* a refusal, or the answer to a request that was given up */
}

/* Take one message from a peer.  LINK codes; a peer that is gone is dropped here. */
static int
peer_receive(struct conn *c, struct peer *peer, int64_t deadline)
{
	int rc;

	if (c->spare == NULL && (c->spare = calloc(1, sizeof *c->spare)) == NULL)
		return LINK_FAIL;
	rc = link_client_recv(peer->link, c->spare, deadline);
	if (rc == LINK_OK)
		deliver(c, peer);
	else if (rc == LINK_GONE || rc == LINK_FAIL)
		peer_lost(c, peer);
	return rc;
}

/* It cannot be sent to: what it has answered is taken before it is given up. */
static void
peer_over(struct conn *c, struct peer *peer)
{
	int rc;

	while ((rc = peer_receive(c, peer, 0)) == LINK_OK)
		;
	if (rc != LINK_GONE && rc != LINK_FAIL)
		peer_lost(c, peer);
}

/* A server that said it ends takes its socket away before its connections: who is at its endpoint afterwards is
 * another.  Answers that it still owes are taken meanwhile.  0: it is gone, or was given up. */
static int
peer_await_end(struct conn *c, struct peer *peer, const struct patience *how)
{
	int64_t until = clock_mono_us() + CONNECT_US;
	int rc;

	if (how->deadline_us < until)
		until = how->deadline_us;
	do
		rc = peer_receive(c, peer, until);
	while (rc == LINK_OK || (rc == LINK_INTR && how->restart));
	if (rc == LINK_INTR)
		return TPGOTSIG;
	if (rc == LINK_TIMEOUT && over(how))
		return TPETIME;
	if (rc == LINK_TIMEOUT)
		peer_lost(c, peer);
	return 0;
}

void
conn_server_leaves(struct pending *p)
{
	if (p->peer != NULL)
		p->peer->leaving = true;
}

int
conn_ask_again(struct conn *c, const char *name, bool pause, const struct patience *how)
{
	struct service **at, *s;

	for (at = &c->services; (s = *at) != NULL && strncmp(s->name, name, sizeof s->name - 1) != 0; at = &s->next)
		;
	if (s != NULL) {
		*at = s->next;
		service_free(s);
	}
	if (over(how))
		return TPETIME;
	return pause ? pause_us(ASK_AGAIN_US, how) : 0;
}

static bool
offers(const struct service *s, const char *group)
{
	size_t i;

	for (i = 0; i < s->n && strcmp(s->target[i].group, group) != 0; i++)
		;
	return i < s->n;
}

int
conn_submit(struct conn *c, const char *name, const struct wire_groups *joined, const struct link_body *body,
    const struct patience *how, struct pending *p)
{
	const struct service *known;
	struct service *s;
	struct target *t;
	struct slots_ref counted;
	int64_t try_us = TRY_US;
	int rc, err, absent = 0;
	bool first = true;

	for (;; first = false) {
		if ((err = conn_lookup(c, name, how, &known)) != 0)
			return err;
		s = c->services;	/* conn_lookup() puts it first */
		if ((t = target_choose(c, s, joined, p->only)) == NULL) {
			if (p->only[0] == '\0' || offers(s, p->only))
				return TPETRAN;
			if (how->noblock || ++absent > ABSENT)
				return TPENOENT;
			if ((err = conn_ask_again(c, name, absent > 1, how)) != 0)	/* it may be being started */
				return err;
			continue;
		}
		if (t->peer == NULL && (t->peer = peer_open(c, t->endpoint)) == NULL)
			return TPEOS;
		if (t->peer->leaving) {
			if ((err = peer_await_end(c, t->peer, how)) != 0)
				return err;
			continue;
		}
		counted = target_count(c, t);
		rc = peer_send(c, t->peer, body, how, try_us);
		if (rc == LINK_OK) {
			peer_recognise(c, t->peer, t);
			snprintf(p->group, sizeof p->group, "%s", t->group);
			pending_enter(c, p, t->peer);
			return 0;
		}
		target_uncount(c, t, counted);
		if (rc == LINK_INTR)
			return TPGOTSIG;
		if (rc == LINK_FAIL) {
			ulog("LIBTUX_CAT:5004: ERROR: cannot send to service %s at %s: %s", name, t->endpoint,
			    strerror(errno));
			return TPEOS;
		}
		if (rc == LINK_TIMEOUT && how->noblock)
			return TPEBLOCK;
		if (rc == LINK_TIMEOUT && try_us < MOST_US)
			try_us *= 2;		/* many come at once: who gives up soon only makes it worse */
		if (rc == LINK_GONE && t->peer->outstanding > 0) {	/* it ends, and may answer what it has */
			t->peer->leaving = true;
			continue;
		}
		if (rc == LINK_GONE || !t->peer->used)
			peer_over(c, t->peer);		/* not there: ask where it is now */
		if (over(how))
			return TPETIME;
		if (rc == LINK_GONE && !first && (err = pause_us(ASK_AGAIN_US, how)) != 0)
			return err;
	}
}

int
conn_await(struct conn *c, struct pending *p, const struct patience *how, int wake_fd)
{
	int rc;

	while (p->state == PENDING_WAITING) {
		if (wake_fd != -1) {
			struct link_wait w = { .client = p->peer->link };

			rc = link_wait(&w, 1, how->deadline_us, wake_fd);
			if (rc > 0)
				rc = peer_receive(c, p->peer, 0) == LINK_INTR ? LINK_INTR : LINK_OK;
			else if (rc == 0)
				return over(how) ? TPETIME : TPGOTSIG;
			else if (rc != LINK_INTR)
				return TPEOS;
		} else
			rc = peer_receive(c, p->peer, how->deadline_us);
		if (rc == LINK_TIMEOUT)
			return TPETIME;
		if (rc == LINK_INTR && !how->restart)
			return TPGOTSIG;
	}
	return p->state == PENDING_ANSWERED ? 0 : TPESVCERR;
}

int
conn_await_any(struct conn *c, const struct patience *how, int wake_fd)
{
	struct link_wait few[16], *w = few;
	struct peer *peer, *busy[64];
	struct pending *p;
	unsigned lost = c->lost;
	size_t n, i;
	int rc;

	for (;;) {
		if (c->lost != lost)
			return 0;
		for (p = c->pendings; p != NULL; p = p->next)
			if (p->state != PENDING_WAITING && !conn_can_again(p))
				return 0;
		for (n = 0, peer = c->peers; peer != NULL && n < 64; peer = peer->next)
			if (peer->outstanding > 0)
				busy[n++] = peer;
		if (n == 0)
			return TPEBADDESC;
		if (n > 16 && (w = calloc(n, sizeof *w)) == NULL)
			return TPEOS;
		for (i = 0; i < n; i++)
			w[i] = (struct link_wait){ .client = busy[i]->link };
		rc = link_wait(w, n, how->deadline_us, wake_fd);
		for (i = 0; rc > 0 && i < n; i++)
			if (w[i].ready)
				peer_receive(c, busy[i], 0);
		if (w != few) {
			free(w);
			w = few;
		}
		if (rc == 0)
			return over(how) ? TPETIME : TPGOTSIG;
		if (rc == LINK_INTR && !how->restart)
			return TPGOTSIG;
		if (rc < 0 && rc != LINK_INTR)
			return TPEOS;
	}
}

size_t
conn_waitables(const struct conn *c, struct link_wait *w, size_t max)
{
	const struct peer *p;
	size_t n = 0;

	for (p = c->peers; p != NULL && n < max; p = p->next)
		if (p->outstanding > 0)
			w[n++] = (struct link_wait){ .client = p->link };
	return n;
}

void
conn_poll(struct conn *c)
{
	struct peer *p, *next;

	for (p = c->peers; p != NULL; p = next) {
		next = p->next;
		while (p->outstanding > 0) {
			int rc = peer_receive(c, p, 0);

			if (rc == LINK_GONE || rc == LINK_FAIL || rc == LINK_TIMEOUT)
				break;		/* after GONE p is no more */
		}
	}
}

void
conn_forget(struct conn *c, struct pending *p)
{
	struct pending **at;

	if (p->state == PENDING_NONE)
		return;
	if (p->state == PENDING_WAITING && p->peer != NULL)
		p->peer->outstanding--;
	for (at = &c->pendings; *at != NULL && *at != p; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = p->next;
	msg_free(c, p->msg);
	kept_free(p);
	p->msg = NULL;
	p->state = PENDING_NONE;
}

void
conn_cancel(struct conn *c, struct pending *p)
{
	struct wire_cancel m = { .target = p->reqid };

	if (p->state == PENDING_WAITING && p->peer != NULL) {
		m.reqid = conn_next_reqid(c);
		wr_reset(&c->out);
		wire_cancel_encode(&c->out, &m);
		if (wr_ok(&c->out))
			link_client_send(p->peer->link, c->out.p, c->out.len, NULL, 0);
	}
	conn_forget(c, p);
}
