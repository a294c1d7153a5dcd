/*
 * link - the client's end: a DEALER of ZeroMQ's protocol on a plain socket.
 *
 *             connect        both greetings, READY           end of file, error, silence
 *     ABSENT ---------> HELLO ------------------> UP ------------------------------------> GONE
 *        ^                |
 *        '----------------'  refused, or it ended: a send tries again until its deadline
 *
 * A server that hangs is noticed by who waits: after half a second without a byte it sends PING, which the
 * server's keeper answers however busy the server is.  Who goes on waiting asks less and less often.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link_impl.h"
#include "ulog.h"
#include "zmtp.h"

enum { BUFFER = 16384, RETRY_US = 20000 };	/* RETRY: while the server is not there yet */
enum state { ABSENT, HELLO, UP, GONE };

struct link_client {
	struct link_stream in;		/* first: obey() finds us by it */
	enum state state;
	int fd;				/* -1 while ABSENT */
	unsigned generation;		/* of the fork that it was made after */
	int64_t heard_us, pinged_us;	/* last byte (or request) seen; PING sent since then, or 0 */
	int64_t trust_us;		/* silence after which the next PING is sent */
	bool asked;			/* just now: nothing was looked for since */
	bool ended;			/* the other end closed, and nothing of it is unread in the kernel */
	size_t from, to;		/* what is unread in buffer */
	char endpoint[256];
	uint8_t buffer[BUFFER];
};

/* --- a child of fork does not keep its parent's connections open: else no server would see the parent die --- */

enum { FDS = 65536 };			/* higher ones a child keeps */
static _Atomic uint64_t connected[FDS / 64];

static void
fd_mark(int fd, bool on)
{
	if (fd < 0 || fd >= FDS)
		return;
	if (on)
		atomic_fetch_or(&connected[fd / 64], UINT64_C(1) << fd % 64);
	else
		atomic_fetch_and(&connected[fd / 64], ~(UINT64_C(1) << fd % 64));
}

static void
in_child(void)
{
	for (int i = 0; i < FDS / 64; i++) {
		uint64_t bits = atomic_exchange(&connected[i], 0);

		for (int b = 0; bits != 0; b++, bits >>= 1)
			if (bits & 1)
				close(i * 64 + b);
	}
}

__attribute__((constructor)) static void
connections_survive_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* --- opening and closing --- */

static int obey(struct link_stream *in, const uint8_t *body, size_t n);

int
link_client_open(const char *endpoint, struct link_client **out)
{
	struct link_client *c;

	*out = NULL;
	if (link_address_check(endpoint) != 0)
		return LINK_FAIL;
	if ((c = malloc(sizeof *c)) == NULL)
		return LINK_FAIL;
	memset(c, 0, offsetof(struct link_client, buffer));
	snprintf(c->endpoint, sizeof c->endpoint, "%s", endpoint);
	c->fd = -1;
	c->trust_us = LINK_HEARTBEAT_MS * 1000;
	link_stream_init(&c->in, obey);
	*out = c;
	return LINK_OK;
}

static void
hang_up(struct link_client *c)
{
	if (c->fd >= 0 && c->generation == link_generation()) {
		fd_mark(c->fd, false);	/* first: the number may be another's the moment it is closed */
		close(c->fd);
	}
	c->fd = -1;
	c->state = ABSENT;
	c->from = c->to = 0;
	c->asked = c->ended = false;
	link_stream_done(&c->in);
	link_stream_init(&c->in, obey);
}

void
link_client_close(struct link_client *c)
{
	if (c == NULL)
		return;
	hang_up(c);
	free(c);
}

/* --- what comes in --- */

static void	/* bytes that need no answer and may be lost with the connection */
send_aside(struct link_client *c, const uint8_t *p, size_t n)
{
	if (send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n && errno != EAGAIN)
		c->heard_us = 0;	/* it shows at the next read */
}

static int	/* a command */
obey(struct link_stream *in, const uint8_t *body, size_t n)
{
	struct link_client *c = (struct link_client *)(void *)in;
	uint8_t answer[32];

	switch (zmtp_command(body, n)) {
	case ZMTP_READY:
		if (c->state == HELLO)
			c->state = UP;
		in->ready = true;
		return 0;
	case ZMTP_PING:
		if ((n = zmtp_pong(answer, body, n)) > 0)
			send_aside(c, answer, n);
		return 0;
	case ZMTP_ERROR:
		return -1;
	default:
		return 0;
	}
}

static int	/* Use what is in the buffer.  1: a message is whole; 0: more is needed; -1: nonsense. */
digest(struct link_client *c)
{
	ssize_t n = link_stream_feed(&c->in, c->buffer + c->from, c->to - c->from);

	if (n < 0)
		return -1;
	c->from += (size_t)n;
	return c->in.complete;
}

static int	/* One read(2).  LINK_OK: something came; LINK_TIMEOUT: nothing there; LINK_GONE. */
drink(struct link_client *c)
{
	uint8_t *to = c->buffer;
	size_t straight = c->from == c->to ? link_stream_room(&c->in, &to) : 0;	/* into the body, without a copy */
	ssize_t n;

	c->from = c->to = 0;	/* all was used */
	n = recv(c->fd, to, straight > 0 ? straight : BUFFER, MSG_DONTWAIT);
	if (n < 0 && errno == ECONNRESET)	/* it ended with our bytes unread; what it sent is behind that */
		n = recv(c->fd, to, straight > 0 ? straight : BUFFER, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return LINK_TIMEOUT;
	c->ended = n == 0;
	if (n <= 0)
		return LINK_GONE;
	c->heard_us = clock_mono_us();
	c->pinged_us = 0;
	c->asked = false;
	if (straight == 0)
		c->to = (size_t)n;
	else if (link_stream_got(&c->in, (size_t)n) != 0)
		return LINK_GONE;
	return LINK_OK;
}

static int	/* LINK_OK: a message is whole; LINK_TIMEOUT: not yet; LINK_GONE: the connection is over. */
advance(struct link_client *c)
{
	int rc;

	if (c->state == ABSENT)
		return LINK_TIMEOUT;
	for (;;) {
		if ((rc = c->state == GONE ? c->in.complete : digest(c)) > 0)
			return LINK_OK;
		if (c->state == GONE)
			return LINK_GONE;
		if (rc < 0) {
			ulog("LIBATMIQ_CAT:102: WARN: The server on %s does not speak our protocol; the connection is closed",
			    c->endpoint);
			c->state = GONE;
		} else if ((rc = drink(c)) == LINK_GONE) {
			c->state = GONE;
		} else if (rc != LINK_OK) {
			return rc;
		}
	}
}

/* --- is it alive? --- */

int link_silence_ms = 9500;	/* a process stopped for a core dump, or a machine out of breath, comes back; its callers are told in vain */

static int64_t
sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool	/* Something came, and we were too busy to read it. */
has_spoken(const struct link_client *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/*
 * Asks when it has been silent for a while, gives it up later.  Returns when to look again.  Each time it asks it will
 * trust the server for twice as long: ten thousand who wait for a message that does not come are not to keep it busy.
 */
static int64_t
feel_pulse(struct link_client *c)
{
	int64_t now;
	uint8_t ping[32];

	if (c->state != UP)
		return LINK_FOREVER;
	now = clock_mono_us();
	if (c->pinged_us == 0 && now - c->heard_us >= c->trust_us) {
		c->pinged_us = now;
		c->trust_us = sooner(2 * c->trust_us, LINK_TRUST_MS * 1000);
		send_aside(c, ping, zmtp_ping(ping));
	}
	if (c->pinged_us == 0)
		return c->heard_us + c->trust_us;
	if (now - c->pinged_us >= link_silence_ms * INT64_C(1000) && !has_spoken(c))
		c->state = GONE;
	return c->pinged_us + link_silence_ms * INT64_C(1000);
}

static int	/* Until something comes, the deadline, or the next look at its pulse: LINK_OK to look again. */
wait_for_more(struct link_client *c, int64_t deadline_us)
{
	int64_t look = feel_pulse(c);
	struct pollfd fds[2] = { { .fd = c->fd } };

	return c->state == GONE ? LINK_OK : link_pause(fds, 1, deadline_us, look, -1);
}

/* --- connecting --- */

/*
 * Many have come at once, and the server's backlog is full: stand in the kernel's queue, where nobody spins.  0, or -1 and
 * errno; EAGAIN: the deadline came.
 */
static int
queue_up(int fd, const struct sockaddr_un *to, int64_t deadline_us)
{
	int64_t left = deadline_us == LINK_FOREVER ? 0 : deadline_us - clock_mono_us();
	struct timeval limit = { left / 1000000, left % 1000000 };
	int flags = fcntl(fd, F_GETFL), rc;

	if (deadline_us != LINK_FOREVER && left <= 0) {
		errno = EAGAIN;
		return -1;
	}
	if (flags < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
	    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
		return -1;
	rc = connect(fd, (const struct sockaddr *)to, sizeof *to);
	if (rc == 0 && fcntl(fd, F_SETFL, flags) != 0)
		rc = -1;
	return rc;
}

static int	/* a connected or connecting descriptor; -1 and errno */
dial_ipc(const char *path, int64_t deadline_us)
{
	int saved;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memcpy(to.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || (errno == EAGAIN && queue_up(fd, &to, deadline_us) == 0))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static int
dial_tcp(const char *where)
{
	struct addrinfo *list = link_address_tcp(where, false);
	int fd = -1, on = 1;

	for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
		if ((fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol)) < 0)
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
		if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
			close(fd);
			fd = -1;
		}
	}
	if (list != NULL)
		freeaddrinfo(list);
	return fd;
}

static bool	/* Our first bytes go at once; a new socket has room for them. */
say_hello(struct link_client *c)
{
	uint8_t hello[ZMTP_HELLO_MAX];
	size_t n = zmtp_hello(hello);
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };

	if (strncmp(c->endpoint, "tcp://", 6) == 0 && poll(&p, 1, 1000) <= 0)
		return false;
	return send(c->fd, hello, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static int	/* LINK_OK once UP; LINK_TIMEOUT, LINK_INTR.  A server that goes away meanwhile is not there yet. */
connect_by(struct link_client *c, int64_t deadline_us)
{
	struct pollfd none;
	int rc = LINK_OK;

	while (c->state != UP && rc == LINK_OK) {
		if (c->state == ABSENT) {
			c->fd = c->endpoint[0] == 'i' ? dial_ipc(c->endpoint + 6, deadline_us) : dial_tcp(c->endpoint + 6);
			c->state = c->fd < 0 ? ABSENT : HELLO;
			if (c->fd < 0 && errno == EINTR)
				return LINK_INTR;
			c->generation = link_generation();
			fd_mark(c->fd, true);
			if (c->fd >= 0 && !say_hello(c))
				hang_up(c);
		}
		if (c->state == HELLO && (rc = advance(c)) == LINK_GONE)
			hang_up(c);
		if (c->state == ABSENT)
			rc = link_pause(&none, 0, deadline_us, clock_mono_us() + RETRY_US, -1);
		else if (rc == LINK_TIMEOUT && c->state != UP)
			rc = wait_for_more(c, deadline_us);
		else
			rc = LINK_OK;
	}
	return rc;
}

int
link_client_connect(struct link_client *c, int64_t deadline_us)
{
	return c->state == UP ? LINK_OK : c->state == GONE ? LINK_GONE : connect_by(c, deadline_us);
}

/* --- sending --- */

static bool	/* Over a network a first send may go to one who left; look whether the end has come. */
has_ended(struct link_client *c)
{
	char one;

	return c->endpoint[0] == 't' && recv(c->fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static int64_t
from_now(int64_t us)
{
	return us == LINK_FOREVER ? us : clock_mono_us() + us;
}

static int	/* All of it, or nothing that counts: half a message is the end of the connection. */
send_all(struct link_client *c, struct iovec *v, int count, const struct link_haste *haste)
{
	struct msghdr m = { .msg_iov = v };
	struct pollfd room = { .fd = c->fd };
	int64_t until = haste->begin_us, rest = haste->rest_us;
	bool begun = false, signalled = false;
	ssize_t n;
	int rc;

	while (count > 0) {
		m.msg_iovlen = (size_t)count;
		if ((n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT)) >= 0) {
			if ((count = link_iov_advance(v, count, (size_t)n)) > 0 && n > 0) {
				begun = true;
				until = sooner(rest, from_now(haste->stall_us));
			}
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return LINK_GONE;	/* what it sent before its end can still be received */
		rc = link_pause_for(&room, 1, POLLOUT, until, LINK_FOREVER, -1);
		if (rc == LINK_INTR && begun && !signalled && haste->signal_us > 0) {
			signalled = true;
			rest = sooner(rest, from_now(haste->signal_us));
			until = sooner(until, rest);
		}
		if (rc == LINK_OK || (rc == LINK_INTR && begun))
			continue;
		if (begun)
			c->state = GONE;
		return rc == LINK_TIMEOUT && signalled ? LINK_INTR : rc;
	}
	return LINK_OK;
}

int
link_client_send_by(struct link_client *c, const void *head, size_t head_len, const struct link_body *body,
    const struct link_haste *haste)
{
	uint8_t h1[ZMTP_HEADER_MAX], h2[ZMTP_HEADER_MAX];
	struct iovec v[4];
	int count = 2, rc;

	if (c->state == GONE)
		rc = LINK_GONE;
	else if (c->state == UP || (rc = connect_by(c, haste->begin_us)) == LINK_OK)
		rc = has_ended(c) ? LINK_GONE : LINK_OK;
	if (rc == LINK_OK) {
		v[0] = (struct iovec){ h1, zmtp_header(h1, body != NULL ? ZMTP_MORE : 0, head_len) };
		v[1] = (struct iovec){ (void *)(uintptr_t)head, head_len };
		if (body != NULL) {
			v[2] = (struct iovec){ h2, zmtp_header(h2, 0, body->n) };
			v[3] = (struct iovec){ (void *)(uintptr_t)body->p, body->n };
			count = body->n > 0 ? 4 : 3;
		}
		rc = send_all(c, v, count, haste);
		c->trust_us = LINK_HEARTBEAT_MS * 1000;
		if (rc == LINK_OK && c->pinged_us == 0)
			c->heard_us = clock_mono_us();	/* its silence counts from here */
		c->asked = rc == LINK_OK;
	}
	link_body_drop(body);
	return rc;
}

int
link_client_send(struct link_client *c, const void *head, size_t head_len, const struct link_body *body,
    int64_t deadline_us)
{
	struct link_haste haste = { deadline_us, deadline_us, LINK_FOREVER, 0 };

	return link_client_send_by(c, head, head_len, body, &haste);
}

/* --- receiving --- */

static int	/* Hand the whole message over.  LINK_TIMEOUT: it was none of ours, and is dropped. */
deliver(struct link_client *c, struct link_msg *m)
{
	int parts;

	if (link_stream_take(&c->in, m, &parts) == LINK_OK)
		return LINK_OK;
	ulog("LIBATMIQ_CAT:102: WARN: Dropped a message of %d frames from the server on %s: a reply is a header and at "
	    "most a body", parts, c->endpoint);
	return LINK_TIMEOUT;
}

static bool	/* to look for a message now: nothing is here, and the request has hardly arrived */
hopeless(const struct link_client *c, int64_t deadline_us)
{
	return c->asked && c->state == UP && (deadline_us == LINK_FOREVER || deadline_us - clock_mono_us() > LINK_SPIN_US) &&
	    c->from == c->to && !c->in.complete && c->in.at == STREAM_HEADER;
}

int
link_client_recv(struct link_client *c, struct link_msg *m, int64_t deadline_us)
{
	int rc;

	link_msg_none(m);
	do {
		rc = LINK_TIMEOUT;
		if (!hopeless(c, deadline_us) && (rc = advance(c)) == LINK_OK && (rc = deliver(c, m)) == LINK_OK)
			return LINK_OK;
		c->asked = false;
		if (rc == LINK_TIMEOUT)
			rc = wait_for_more(c, deadline_us);
	} while (rc == LINK_OK);
	return rc;
}

pid_t
link_client_pid(const struct link_client *c)
{
	struct ucred made;
	socklen_t size = sizeof made;

	if (c->state != UP || c->endpoint[0] != 'i' || getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &made, &size) != 0)
		return 0;
	return made.pid;
}

bool
link_client_ended(const struct link_client *c)
{
	return c->state == GONE && c->ended && !c->in.complete;
}

/* --- for link_wait() --- */

int
link_client_fd(const struct link_client *c)
{
	return c->fd;
}

bool
link_client_ready(struct link_client *c)
{
	if (advance(c) != LINK_TIMEOUT)
		return true;
	feel_pulse(c);
	return c->state == GONE;
}
