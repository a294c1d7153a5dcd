/*
 * link - the connections of a server: taken, written to, given up.
 *
 * Who does not read has its replies kept, up to a limit that only itself feels.  Who does not greet in time, and who
 * comes when there are no descriptors left, costs the others nothing.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "link_server_impl.h"
#include "ulog.h"

#define GREET_WITHIN_US 30000000
#define ACCEPT_AGAIN_US 100000		/* after there was no descriptor for a connection */
enum { AT_ONCE = 64, RESERVE = 128, IOVS = 32, NO_SLOT = UINT32_MAX };
enum { SEND_MAX = 512 << 10 };		/* to one peer, before others have their turn: who reads fast could take it all in one call */

/* --- who is there --- */

struct peer *
link_peer_at(struct link_server *s, uint32_t slot, uint32_t generation)
{
	return slot < s->n_slots && s->slot[slot].generation == generation ? s->slot[slot].p : NULL;
}

static int
slots_grow(struct link_server *s)
{
	uint32_t n = s->n_slots == 0 ? 64 : 2 * s->n_slots;
	struct slot *v = realloc(s->slot, n * sizeof *v);

	if (v == NULL)
		return -1;
	s->slot = v;
	for (uint32_t i = n; i-- > s->n_slots; s->first_free = i)
		v[i] = (struct slot){ .next_free = s->n_slots == 0 && i == n - 1 ? NO_SLOT : s->first_free };
	s->n_slots = n;
	return 0;
}

static int
slot_take(struct link_server *s, struct peer *p)
{
	if ((s->n_slots == 0 || s->first_free == NO_SLOT) && slots_grow(s) != 0)
		return -1;
	p->slot = s->first_free;
	s->first_free = s->slot[p->slot].next_free;
	s->slot[p->slot].p = p;
	p->generation = s->slot[p->slot].generation;
	s->n_peers++;
	return 0;
}

static void
slot_give_back(struct link_server *s, const struct peer *p)
{
	struct slot *v = &s->slot[p->slot];

	v->p = NULL;
	v->generation++;
	v->next_free = s->first_free;
	s->first_free = p->slot;
	s->n_peers--;
}

static void
greeting_enter(struct peer *p)
{
	struct link_server *s = p->s;

	p->prev = s->greeting_last;
	p->next = NULL;
	*(p->prev != NULL ? &p->prev->next : &s->greeting) = p;
	s->greeting_last = p;
}

static void
greeting_leave(struct peer *p)
{
	struct link_server *s = p->s;

	*(p->prev != NULL ? &p->prev->next : &s->greeting) = p->next;
	*(p->next != NULL ? &p->next->prev : &s->greeting_last) = p->prev;
}

static uint64_t
epoll_name(const struct peer *p)
{
	return (uint64_t)p->generation << 32 | p->slot;
}

void
link_peer_watch(struct peer *p)
{
	struct epoll_event e = { .events = (p->in_unwatched ? 0 : EPOLLIN) | (p->out_watched ? EPOLLOUT : 0),
		.data.u64 = epoll_name(p) };

	(void)epoll_ctl(p->s->ep, EPOLL_CTL_MOD, p->fd, &e);
}

/* --- what goes out --- */

static void
release_copy(void *p, void *hint)
{
	(void)hint;
	free(p);
}

static void
out_done(struct peer *p)
{
	struct out *o = p->out;

	p->out = o->next;
	if (p->out == NULL)
		p->out_end = &p->out;
	p->owed--;
	p->owed_bytes -= o->n + o->body.n;
	link_body_drop(&o->body);
	free(o);
}

static int
deafen(struct peer *p)
{
	p->deaf = true;
	while (p->out != NULL)
		out_done(p);
	if (p->out_watched) {
		p->out_watched = false;
		link_peer_watch(p);
	}
	return -1;
}

static int	/* the next bytes that go out */
out_gather(const struct peer *p, struct iovec v[IOVS])
{
	int count = 0;

	for (const struct out *o = p->out; o != NULL && count + 2 <= IOVS; o = o->next) {
		size_t of_body = o->sent > o->n ? o->sent - o->n : 0;

		if (o->sent < o->n)
			v[count++] = (struct iovec){ (void *)(uintptr_t)(o->bytes + o->sent), o->n - o->sent };
		if (o->body.n > of_body)
			v[count++] = (struct iovec){ (uint8_t *)(uintptr_t)o->body.p + of_body, o->body.n - of_body };
	}
	return count;
}

static ssize_t	/* how much went out; 0: it takes nothing now; -1: nothing ever again */
push(const struct peer *p, const struct iovec *v, int count)
{
	struct iovec some[IOVS];
	struct msghdr m = { .msg_iov = some };
	size_t room = SEND_MAX;
	ssize_t n;

	for (int i = 0; i < count && room > 0; i++) {
		size_t k = v[i].iov_len < room ? v[i].iov_len : room;

		some[m.msg_iovlen++] = (struct iovec){ v[i].iov_base, k };
		room -= k;
	}
	do
		n = sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) ? 0 : n;
}

int
link_peer_flush(struct peer *p)
{
	struct iovec v[IOVS];
	size_t all = 0;
	ssize_t n;

	while (p->out != NULL && all < SEND_MAX) {
		if ((n = push(p, v, out_gather(p, v))) < 0)
			return deafen(p);
		if (n == 0)
			return 0;
		all += (size_t)n;
		while (n > 0) {
			struct out *o = p->out;
			size_t left = o->n + o->body.n - o->sent;
			size_t k = (size_t)n < left ? (size_t)n : left;

			o->sent += k;
			n -= (ssize_t)k;
			if (k == left)
				out_done(p);
		}
	}
	if (p->out == NULL && p->out_watched) {
		p->out_watched = false;
		link_peer_watch(p);
	}
	return 0;
}

static int	/* what was not sent of the bytes and the body stays here until it is; takes the body over */
out_add(struct peer *p, const struct iovec *v, int count, const struct link_body *body, size_t sent)
{
	struct link_body kept = body != NULL ? *body : (struct link_body){ 0 };
	size_t n = 0;
	struct out *o;

	for (int i = 0; i < count; i++)
		n += v[i].iov_len;
	o = malloc(sizeof *o + n);
	if (o != NULL && kept.n > 0 && kept.release == NULL) {
		if ((kept.p = malloc(kept.n)) != NULL)
			memcpy((void *)(uintptr_t)kept.p, body->p, kept.n);
		kept.release = release_copy;
	}
	if (o == NULL || (kept.n > 0 && kept.p == NULL)) {
		free(o);
		link_body_drop(body);
		errno = ENOMEM;
		return -1;
	}
	*o = (struct out){ .body = kept, .sent = sent, .n = n };
	n = 0;
	for (int i = 0; i < count; i++) {
		memcpy(o->bytes + n, v[i].iov_base, v[i].iov_len);
		n += v[i].iov_len;
	}
	*p->out_end = o;
	p->out_end = &o->next;
	p->owed++;
	p->owed_bytes += o->n + o->body.n;
	if (!p->out_watched) {
		p->out_watched = true;
		link_peer_watch(p);
	}
	return 0;
}

static int	/* v has room for one more */
put(struct peer *p, struct iovec *v, int count, const struct link_body *body)
{
	size_t n_body = body != NULL ? body->n : 0, all = n_body;
	ssize_t n = 0;

	for (int i = 0; i < count; i++)
		all += v[i].iov_len;
	if (p->deaf || p->owed >= LINK_PEER_MESSAGES || (p->owed_bytes > 0 && p->owed_bytes + n_body > LINK_PEER_BYTES)) {
		link_body_drop(body);
		return LINK_GONE;
	}
	if (p->out == NULL) {
		if (n_body > 0)
			v[count] = (struct iovec){ (void *)(uintptr_t)body->p, n_body };
		if ((n = push(p, v, count + (n_body > 0))) < 0) {
			deafen(p);
			link_body_drop(body);
			return LINK_GONE;
		}
		if ((size_t)n == all) {
			link_body_drop(body);
			return LINK_OK;
		}
	}
	if (out_add(p, v, count, body, (size_t)n) == 0)
		return LINK_OK;
	if (n > 0) {	/* half a message is the end of the connection */
		deafen(p);
		shutdown(p->fd, SHUT_RDWR);
		errno = ENOMEM;
	}
	return LINK_FAIL;
}

int
link_peer_send(struct peer *p, const void *head, size_t head_len, const struct link_body *body)
{
	uint8_t h1[ZMTP_HEADER_MAX], h2[ZMTP_HEADER_MAX];
	struct iovec v[4];
	int count = 2;

	v[0] = (struct iovec){ h1, zmtp_header(h1, body != NULL ? ZMTP_MORE : 0, head_len) };
	v[1] = (struct iovec){ (void *)(uintptr_t)head, head_len };
	if (body != NULL)
		v[count++] = (struct iovec){ h2, zmtp_header(h2, 0, body->n) };
	return put(p, v, count, body);
}

static void
put_bytes(struct peer *p, const uint8_t *bytes, size_t n)
{
	struct iovec v[2] = { { (void *)(uintptr_t)bytes, n } };

	(void)put(p, v, 1, NULL);
}

/* --- coming and going --- */

static int
obey(struct link_stream *in, const uint8_t *command, size_t n)
{
	struct peer *p = (struct peer *)(void *)in;
	uint8_t pong[32];

	switch (zmtp_command(command, n)) {
	case ZMTP_READY:
		if (in->ready)
			return 0;
		if (!zmtp_is_asker(command, n))
			return -1;
		in->ready = true;
		greeting_leave(p);
		return 0;
	case ZMTP_PING:
		if ((n = zmtp_pong(pong, command, n)) > 0)
			put_bytes(p, pong, n);
		return 0;
	case ZMTP_ERROR:
		return -1;
	default:
		return 0;
	}
}

static void
who_is(int fd, struct link_who *who)
{
	socklen_t size = sizeof who->address;
	struct ucred made;
	int on = 1;

	*who = (struct link_who){ 0 };
	if (getpeername(fd, (struct sockaddr *)&who->address, &size) != 0)
		who->address.sin6_family = AF_UNSPEC;
	size = sizeof made;
	if (who->address.sin6_family == AF_INET || who->address.sin6_family == AF_INET6) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &made, &size) == 0) {
		who->pid = made.pid;
		who->uid = made.uid;
	}
}

static void
peer_new(struct link_server *s, int fd)
{
	struct peer *p = malloc(sizeof *p);
	uint8_t hello[ZMTP_HELLO_MAX];
	struct epoll_event e = { .events = EPOLLIN };

	if (p == NULL)
		goto fail;
	memset(p, 0, sizeof *p);
	link_stream_init(&p->in, obey);
	p->s = s;
	p->fd = fd;
	p->out_end = &p->out;
	if (slot_take(s, p) != 0)
		goto fail;
	e.data.u64 = epoll_name(p);
	if (epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &e) != 0) {
		slot_give_back(s, p);
		goto fail;
	}
	p->since_us = clock_mono_us();
	who_is(fd, &p->who);
	greeting_enter(p);
	put_bytes(p, hello, zmtp_hello_server(hello));
	return;
fail:
	free(p);
	close(fd);
}

void
link_peer_close(struct peer *p)
{
	struct link_server *s = p->s;

	if (s->reading == p)
		s->reading = NULL;
	if (!p->in.ready)
		greeting_leave(p);
	deafen(p);
	link_stream_done(&p->in);
	(void)epoll_ctl(s->ep, EPOLL_CTL_DEL, p->fd, NULL);	/* a child may have the descriptor open still */
	close(p->fd);
	slot_give_back(s, p);
	free(p);
}

static void
listener_watch(struct link_server *s, bool yes)
{
	struct epoll_event e = { .events = yes ? EPOLLIN : 0, .data.u64 = UINT64_MAX };

	if (s->listener >= 0)
		(void)epoll_ctl(s->ep, EPOLL_CTL_MOD, s->listener, &e);
	s->accept_us = yes ? 0 : clock_mono_us() + ACCEPT_AGAIN_US;
}

static uint32_t	/* some descriptors stay for the files of the process */
most_peers(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur > 1u << 20)
		return 1u << 20;
	return (uint32_t)(files.rlim_cur - (files.rlim_cur / 4 < RESERVE ? files.rlim_cur / 4 : RESERVE));
}

void
link_peers_accept(struct link_server *s)
{
	static _Atomic int64_t said_us;
	int64_t now;
	int fd;

	if (s->max_peers == 0)
		s->max_peers = most_peers();
	for (int i = 0; i < AT_ONCE; i++) {
		if (s->n_peers >= s->max_peers) {
			errno = EMFILE;
		} else if ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
			peer_new(s, fd);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		listener_watch(s, false);	/* who comes waits in the kernel meanwhile */
		if ((now = clock_mono_us()) - said_us > 60000000 || said_us == 0) {
			said_us = now;
			ulog("LIBATMIQ_CAT:106: WARN: No more connections on %s than the %u that are there: %s", s->endpoint,
			    s->n_peers, strerror(errno));
		}
		return;
	}
}

/* --- time --- */

int64_t
link_peers_due(const struct link_server *s)
{
	int64_t due = s->greeting != NULL ? s->greeting->since_us + GREET_WITHIN_US : LINK_FOREVER;

	return s->accept_us != 0 && s->accept_us < due ? s->accept_us : due;
}

void
link_peers_house(struct link_server *s)
{
	struct peer *p, *next;
	int64_t now;

	if (s->greeting == NULL && s->accept_us == 0)
		return;
	now = clock_mono_us();
	for (p = s->greeting; p != NULL && p->since_us + GREET_WITHIN_US <= now; p = next) {
		next = p->next;
		link_peer_close(p);
	}
	if (s->accept_us != 0 && s->accept_us <= now)
		listener_watch(s, true);
}

void
link_peers_close(struct link_server *s)
{
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].p != NULL)
			link_peer_close(s->slot[i].p);
	free(s->slot);
	s->slot = NULL;
	s->n_slots = 0;
}
