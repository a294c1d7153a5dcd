/*
 * link - the server's end: ZeroMQ's ROUTER, as far as our clients need one.
 *
 * One thread, the server's own, reads and writes: it looks which connections have something (epoll), reads one, and
 * hands out its messages one by one.  The keeper (link_keeper.c) stands in while that thread is busy elsewhere.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "link_server_impl.h"
#include "ulog.h"

#define LINGER_US 500000		/* for replies under way, at the close */
#define COMPLAIN_EVERY_US 1000000
enum { STRAIGHT_MAX = 262144 };		/* of one body, before others have their turn */

static void
enter(struct link_server *s)
{
	atomic_fetch_add_explicit(&s->visits, 1, memory_order_relaxed);
	pthread_mutex_lock(&s->lock);
}

static void
leave(struct link_server *s)
{
	pthread_mutex_unlock(&s->lock);
}

/* --- opening and closing --- */

int
link_server_open(const char *endpoint, unsigned perm, struct link_server **out)
{
	struct link_server *s;
	int saved;

	*out = NULL;
	if (link_address_check(endpoint) != 0)
		return LINK_FAIL;
	if ((s = malloc(sizeof *s)) == NULL)
		return LINK_FAIL;
	memset(s, 0, offsetof(struct link_server, input));
	snprintf(s->endpoint, sizeof s->endpoint, "%s", endpoint);
	pthread_mutex_init(&s->lock, NULL);
	s->generation = link_generation();
	s->perm = perm;
	s->look_us = LINK_FOREVER;
	s->listener = s->keeper_stop = -1;
	s->backlog_end = &s->backlog;
	if ((s->ep = epoll_create1(EPOLL_CLOEXEC)) >= 0 && link_listen_open(s) == 0 && link_keeper_start(s) == 0) {
		*out = s;
		return LINK_OK;
	}
	saved = errno;
	link_server_close(s);
	errno = saved;
	return LINK_FAIL;
}

static bool	/* Somebody has not read all that was sent to it. */
is_owed(const struct link_server *s)
{
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].p != NULL && s->slot[i].p->out != NULL)
			return true;
	return false;
}

static void	/* Replies under way get a moment.  What still comes in is thrown away: unread it would take them along. */
farewell(struct link_server *s)
{
	int64_t until = clock_mono_us() + LINGER_US, now;
	struct peer *p;

	while (is_owed(s) && (now = clock_mono_us()) < until) {
		int n = epoll_wait(s->ep, s->events, EVENTS, (int)((until - now) / 1000) + 1);

		for (int i = 0; i < n; i++) {
			uint64_t name = s->events[i].data.u64;

			if ((p = link_peer_at(s, (uint32_t)name, (uint32_t)(name >> 32))) == NULL)
				continue;
			(void)link_peer_flush(p);
			if (recv(p->fd, s->input, INPUT, MSG_DONTWAIT) == 0 || p->deaf)
				link_peer_close(p);
		}
	}
	for (uint32_t i = 0; i < s->n_slots; i++)
		if ((p = s->slot[i].p) != NULL)
			while (recv(p->fd, s->input, INPUT, MSG_DONTWAIT) > 0 && clock_mono_us() < until)
				;
}

void
link_server_no_more(struct link_server *s)
{
	enter(s);
	link_peers_accept(s);	/* who came before */
	link_listen_close(s);
	s->look_us = LINK_FOREVER;
	s->no_more = true;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].p != NULL)
			shutdown(s->slot[i].p->fd, SHUT_RD);
	leave(s);
}

static void	/* In a child: its copies of the descriptors, and its copy of the memory; nobody else notices. */
forget(struct link_server *s)
{
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].p != NULL)
			close(s->slot[i].p->fd);
	if (s->listener >= 0)
		close(s->listener);
}

void
link_server_close(struct link_server *s)
{
	struct backlog *b;

	if (s == NULL)
		return;
	if (s->generation == link_generation()) {
		link_keeper_stop(s);
		link_listen_close(s);
		farewell(s);
		link_peers_close(s);
	} else {
		forget(s);
	}
	while ((b = s->backlog) != NULL) {
		s->backlog = b->next;
		link_msg_done(&b->m);
		free(b);
	}
	if (s->keeper_stop >= 0)
		close(s->keeper_stop);
	if (s->ep >= 0)
		close(s->ep);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* --- receiving --- */

static void	/* One line a second at most, or a hostile peer fills the disk. */
complain(struct link_server *s, const struct peer *p, int parts)
{
	int64_t now = clock_mono_us();
	char who[128];

	if (s->complained_us != 0 && now - s->complained_us < COMPLAIN_EVERY_US) {
		s->unsaid++;
		return;
	}
	link_who_name(&p->who, who, sizeof who);
	if (parts > 0)
		ulog("LIBATMIQ_CAT:101: WARN: Dropped a message of %d frames from %s on %s: a request is a header and at "
		    "most a body (%lu more dropped since the last such line)", parts, who, s->endpoint, s->unsaid);
	else
		ulog("LIBATMIQ_CAT:107: WARN: Closed the connection of %s on %s: what it sent is not our protocol (%lu more "
		    "dropped since the last such line)", who, s->endpoint, s->unsaid);
	s->complained_us = now;
	s->unsaid = 0;
}

static void
peer_name(struct link_peer *to, const struct peer *p)
{
	to->n = sizeof p->slot + sizeof p->generation;
	memcpy(to->id, &p->slot, sizeof p->slot);
	memcpy(to->id + sizeof p->slot, &p->generation, sizeof p->generation);
}

static struct peer *
peer_named(struct link_server *s, const struct link_peer *name)
{
	uint32_t slot, generation;

	memcpy(&slot, name->id, sizeof slot);
	memcpy(&generation, name->id + sizeof slot, sizeof generation);
	return name->n == sizeof slot + sizeof generation ? link_peer_at(s, slot, generation) : NULL;
}

static bool	/* A good message of who is being read.  False: what was read of it is used up, or it is closed. */
digest(struct link_server *s, struct link_msg *m)
{
	struct peer *p = s->reading;
	ssize_t n;
	int parts;

	for (;;) {
		n = link_stream_feed(&p->in, s->input + s->from, s->to - s->from);
		if (n < 0) {
			complain(s, p, 0);
			link_peer_close(p);
			return false;
		}
		s->from += (size_t)n;
		if (!p->in.complete) {
			s->reading = NULL;
			return false;
		}
		if (link_stream_take(&p->in, m, &parts) != LINK_OK) {
			complain(s, p, parts);
			continue;
		}
		peer_name(&m->peer, p);
		link_frames(m)->who = p->who;
		return true;
	}
}

static void	/* All that it sent before we listened to it no more is read; it may be owed answers. */
ignore(struct peer *p)
{
	p->in_unwatched = true;
	link_peer_watch(p);
}

static void	/* One read(2).  hung_up: nobody is at the other end. */
drink(struct link_server *s, struct peer *p, bool hung_up)
{
	uint8_t *to = s->input;
	size_t straight = link_stream_room(&p->in, &to);	/* into the body, without a copy */
	size_t room = straight == 0 ? INPUT : straight < STRAIGHT_MAX ? straight : STRAIGHT_MAX;
	ssize_t n = recv(p->fd, to, room, MSG_DONTWAIT);

	if (n < 0 && errno == ECONNRESET)	/* it ended with our bytes unread; what it sent may be behind that */
		n = recv(p->fd, to, room, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n == 0 && s->no_more && !hung_up) {
		ignore(p);
		return;
	}
	if (n <= 0 || (straight > 0 && link_stream_got(&p->in, (size_t)n) != 0)) {
		link_peer_close(p);
		return;
	}
	s->reading = p;
	s->from = 0;
	s->to = straight > 0 ? 0 : (size_t)n;
}

static bool	/* It has sent enough that nobody took. */
is_full(const struct peer *p)
{
	return p->untaken >= LINK_PEER_MESSAGES || p->untaken_bytes >= LINK_PEER_BYTES;
}

static void
attend(struct link_server *s, const struct epoll_event *e)
{
	struct peer *p;

	if (e->data.u64 == UINT64_MAX) {
		link_peers_accept(s);
		return;
	}
	p = link_peer_at(s, (uint32_t)e->data.u64, (uint32_t)(e->data.u64 >> 32));
	if (p == NULL)
		return;
	if (e->events & EPOLLOUT)
		(void)link_peer_flush(p);
	if ((e->events & ~(uint32_t)EPOLLOUT) == 0)
		return;
	if (!is_full(p)) {
		drink(s, p, (e->events & (EPOLLHUP | EPOLLERR)) != 0);
	} else if (!p->in_unwatched) {
		p->in_unwatched = true;
		link_peer_watch(p);
	}
}

static int	/* the next message; look: what is not known of yet is looked for, once */
take(struct link_server *s, struct link_msg *m, bool look)
{
	for (;;) {
		if (s->reading != NULL && digest(s, m))
			return LINK_OK;
		if (s->event == s->n_events) {
			if (!look)
				return LINK_TIMEOUT;
			look = false;
			s->event = 0;
			if ((s->n_events = epoll_wait(s->ep, s->events, EVENTS, 0)) <= 0) {
				s->n_events = 0;
				return LINK_TIMEOUT;
			}
		}
		attend(s, &s->events[s->event++]);
	}
}

int
link_server_take(struct link_server *s, struct link_msg *m)
{
	return take(s, m, true);
}

static void	/* A message more of p's that nobody has taken; p NULL: it left. */
untaken_more(struct peer *p, const struct link_msg *m)
{
	if (p == NULL)
		return;
	p->untaken++;
	p->untaken_bytes += m->head_len + m->body_len;
}

static void
untaken_less(struct peer *p, const struct link_msg *m)
{
	if (p == NULL)
		return;
	p->untaken--;
	p->untaken_bytes -= m->head_len + m->body_len;
	if (p->in_unwatched && !is_full(p)) {
		p->in_unwatched = false;
		link_peer_watch(p);
	}
}

int
link_server_keep(struct link_server *s, struct link_msg *m)
{
	struct backlog *b = malloc(sizeof *b);

	if (b == NULL) {	/* its sender hears nothing, and gives up in time */
		link_msg_done(m);
		return -1;
	}
	b->next = NULL;
	link_msg_move(&b->m, m);
	b->m.came_us = clock_mono_us();
	*s->backlog_end = b;
	s->backlog_end = &b->next;
	untaken_more(peer_named(s, &b->m.peer), &b->m);
	return 0;
}

static void
backlog_take(struct link_server *s, struct link_msg *m)
{
	struct backlog *b = s->backlog;

	if ((s->backlog = b->next) == NULL)
		s->backlog_end = &s->backlog;
	untaken_less(peer_named(s, &b->m.peer), &b->m);
	link_msg_move(m, &b->m);
	free(b);
}

static int	/* the next message, without waiting */
next(struct link_server *s, struct link_msg *m)
{
	int rc = LINK_OK;

	enter(s);
	if (s->look_us != LINK_FOREVER)
		link_listen_look(s, false);
	link_peers_house(s);
	if ((s->fresh = s->backlog == NULL))
		rc = link_server_take(s, m);
	else
		backlog_take(s, m);
	leave(s);
	return rc;
}

int
link_server_recv(struct link_server *s, struct link_msg *m, int64_t deadline_us, int wake_fd)
{
	struct pollfd fds[2] = { { .fd = s->ep } };
	int rc;

	link_msg_none(m);
	while ((rc = next(s, m)) == LINK_TIMEOUT) {
		link_server_asleep(s, true);
		rc = link_pause(fds, 1, deadline_us, link_server_next_look(s), wake_fd);
		link_server_asleep(s, false);
		if (rc != LINK_OK)
			break;
	}
	return rc;
}

int
link_server_recv_rest(struct link_server *s, struct link_msg *m)
{
	int rc = LINK_OK;

	link_msg_none(m);
	enter(s);
	if (s->backlog != NULL)
		backlog_take(s, m);
	else
		rc = take(s, m, !s->fresh);
	leave(s);
	return rc;
}

void
link_server_hold(struct link_server *s, const struct link_msg *m)
{
	pthread_mutex_lock(&s->lock);
	untaken_more(peer_named(s, &m->peer), m);
	pthread_mutex_unlock(&s->lock);
}

void
link_server_release(struct link_server *s, const struct link_msg *m)
{
	pthread_mutex_lock(&s->lock);
	untaken_less(peer_named(s, &m->peer), m);
	pthread_mutex_unlock(&s->lock);
}

/* --- answering --- */

int
link_server_send_told(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body, bool *owed)
{
	struct peer *p;
	int rc = LINK_GONE;

	*owed = false;
	enter(s);
	if ((p = peer_named(s, to)) != NULL) {
		rc = link_peer_send(p, head, head_len, body);
		*owed = p->out != NULL;
	} else
		link_body_drop(body);
	leave(s);
	return rc;
}

int
link_server_send(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body)
{
	bool owed;

	return link_server_send_told(s, to, head, head_len, body, &owed);
}

bool
link_server_left(struct link_server *s, const struct link_peer *name)
{
	struct pollfd f = { .events = POLLRDHUP };
	struct peer *p;
	bool left = true;

	enter(s);
	if ((p = peer_named(s, name)) != NULL) {
		f.fd = p->fd;
		if (s->no_more)
			f.events = 0;	/* we made that ourselves; POLLHUP comes unasked */
		left = p->deaf || poll(&f, 1, 0) > 0;
	}
	leave(s);
	return left;
}

bool
link_server_owes(struct link_server *s, const struct link_peer *name)
{
	struct peer *p;
	bool owes;

	enter(s);
	owes = (p = peer_named(s, name)) != NULL && p->out != NULL;
	leave(s);
	return owes;
}

/* --- the socket file; for link_wait() --- */

void
link_server_look(struct link_server *s, bool at_once)
{
	if (s->generation != link_generation())
		return;
	enter(s);
	link_listen_look(s, at_once);
	link_peers_house(s);
	leave(s);
}

int64_t
link_server_next_look(struct link_server *s)
{
	int64_t due;

	pthread_mutex_lock(&s->lock);
	due = link_peers_due(s);
	due = s->look_us < due ? s->look_us : due;
	pthread_mutex_unlock(&s->lock);
	return due;
}

void
link_server_asleep(struct link_server *s, bool yes)
{
	if (!yes)
		atomic_fetch_add_explicit(&s->visits, 1, memory_order_relaxed);
	atomic_store(&s->asleep, yes);
}

int
link_server_fd(const struct link_server *s)
{
	return s->ep;
}

bool
link_server_ready(struct link_server *s)
{
	struct link_msg m;
	bool ready;

	enter(s);
	ready = s->backlog != NULL || (link_server_take(s, &m) == LINK_OK && link_server_keep(s, &m) == 0);
	leave(s);
	return ready;
}
