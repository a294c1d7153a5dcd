/*
 * link - the server's end: a ROUTER socket.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "link_impl.h"
#include "ulog.h"

#define LINGER_MS 500		/* for replies under way, at the close */
#define COMPLAIN_EVERY_US 1000000

struct link_server {
	void *ctx, *socket;
	int fd;
	unsigned generation;
	struct link_debts *debts;
	int64_t complained_us;	/* when the last line about nonsense was written */
	unsigned long unsaid;	/* dropped since without a line */
	char endpoint[256];
	const char *path;	/* of the socket file, in endpoint; NULL: none, or not bound yet */
	dev_t dev;		/* and which file it was */
	ino_t ino;
};

/* --- opening and closing --- */

static int
set_options(void *socket)
{
	int64_t max = LINK_MAX_MESSAGE;

	if (link_set_int(socket, ZMQ_ROUTER_MANDATORY, 1) != 0 || link_set_int(socket, ZMQ_SNDHWM, LINK_HWM) != 0 ||
	    link_set_int(socket, ZMQ_RCVHWM, LINK_HWM) != 0 || link_set_int(socket, ZMQ_LINGER, LINGER_MS) != 0 ||
	    link_set_int(socket, ZMQ_BACKLOG, 1024) != 0)
		return -1;
	if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof max) != 0)
		return -1;
	return link_set_heartbeat(socket);
}

static int	/* Only a socket file may be replaced: anything else was not left by us. */
check_leftover(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	return 0;
}

static int
own_file(struct link_server *s, unsigned perm)
{
	struct stat st;

	s->path = s->endpoint + 6;
	if (chmod(s->path, perm & 0777) != 0 || lstat(s->path, &st) != 0)
		return -1;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

static void	/* unless it is another's by now, who took over while we were ending */
remove_file(const struct link_server *s)
{
	struct stat st;

	if (s->path != NULL && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
}

int
link_server_open(const char *endpoint, unsigned perm, struct link_server **out)
{
	struct link_server *s = NULL;
	const char *path = strncmp(endpoint, "ipc://", 6) == 0 && endpoint[6] != '@' ? endpoint + 6 : NULL;
	int saved, rc = LINK_FAIL;

	*out = NULL;
	if (link_check_path(endpoint) != 0 || (path != NULL && check_leftover(path) != 0))
		goto done;
	if ((s = calloc(1, sizeof *s)) == NULL || (s->debts = link_debts_new()) == NULL)
		goto done;
	snprintf(s->endpoint, sizeof s->endpoint, "%s", endpoint);
	s->generation = link_generation();
	if ((s->ctx = link_context_new()) == NULL || (s->socket = zmq_socket(s->ctx, ZMQ_ROUTER)) == NULL)
		goto done;
	if (set_options(s->socket) != 0 || (s->fd = link_socket_fd(s->socket)) < 0)
		goto done;
	if (zmq_bind(s->socket, endpoint) != 0)
		goto done;
	if (path != NULL && own_file(s, perm) != 0)
		goto done;
	*out = s;
	s = NULL;
	rc = LINK_OK;
done:
	saved = errno;
	link_server_close(s);
	errno = saved;
	return rc;
}

void
link_server_close(struct link_server *s)
{
	if (s == NULL)
		return;
	if (s->generation == link_generation()) {
		remove_file(s);
		if (s->socket != NULL)
			zmq_close(s->socket);
		while (s->ctx != NULL && zmq_ctx_term(s->ctx) != 0 && errno == EINTR)
			;	/* waits for LINGER_MS at most */
	}
	link_debts_free(s->debts);
	free(s);
}

/* --- receiving --- */

static void	/* One line a second at most, or a hostile peer fills the disk. */
complain(struct link_server *s, const struct link_msg *m, int parts)
{
	int64_t now = clock_mono_us();
	char who[128];

	if (s->complained_us != 0 && now - s->complained_us < COMPLAIN_EVERY_US) {
		s->unsaid++;
		return;
	}
	link_msg_peer_name(m, who, sizeof who);
	ulog("LIBATMIQ_CAT:101: WARN: Dropped a message of %d frames from %s on %s: a request is a header and at most "
	    "a body (%lu more dropped since the last such line)", parts, who, s->endpoint, s->unsaid);
	s->complained_us = now;
	s->unsaid = 0;
}

static int	/* the peer's name frame */
recv_peer(struct link_server *s, struct link_peer *peer)
{
	int n = zmq_recv(s->socket, peer->id, sizeof peer->id, ZMQ_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? LINK_TIMEOUT : LINK_FAIL;
	peer->n = (uint8_t)n;
	return LINK_OK;
}

static int	/* the next good message, without waiting */
take(struct link_server *s, struct link_msg *m)
{
	int rc, parts;

	for (;;) {
		if ((rc = recv_peer(s, &m->peer)) != LINK_OK)
			return rc;
		if ((rc = link_frames_recv(s->socket, m, &parts)) == LINK_OK && m->peer.n <= sizeof m->peer.id)
			return LINK_OK;
		if (rc == LINK_OK || (rc == LINK_FAIL && errno == EPROTO))
			complain(s, m, parts);
		link_msg_done(m);
	}
}

int
link_server_recv(struct link_server *s, struct link_msg *m, int64_t deadline_us, int wake_fd)
{
	struct pollfd fds[2] = { { .fd = s->fd } };
	int rc;

	link_frames(m)->live = 0;
	do
		rc = take(s, m);
	while (rc == LINK_TIMEOUT && (rc = link_pause(fds, 1, deadline_us, wake_fd)) == LINK_OK);
	if (rc != LINK_OK)
		link_msg_done(m);
	return rc;
}

/* --- answering --- */

static int
send_failed(void)
{
	return errno == EAGAIN || errno == EHOSTUNREACH ? LINK_GONE : LINK_FAIL;
}

int
link_server_send(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body)
{
	zmq_msg_t frame;
	int rc;

	if (body != NULL) {
		if ((rc = link_body_frame(&frame, body, s->debts, to)) != LINK_OK)
			return rc;
	}
	/* Only the first frame can be refused; what follows it goes where it went. */
	if (zmq_send(s->socket, to->id, to->n, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
	    zmq_send(s->socket, head, head_len, (body != NULL ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT) < 0 ||
	    (body != NULL && zmq_msg_send(&frame, s->socket, ZMQ_DONTWAIT) < 0)) {
		rc = send_failed();
		if (body != NULL)
			zmq_msg_close(&frame);
		return rc;
	}
	return LINK_OK;
}

/* --- for link_wait() --- */

int
link_server_fd(const struct link_server *s)
{
	return s->fd;
}

bool
link_server_ready(struct link_server *s)
{
	int events = 0;
	size_t size = sizeof events;

	return zmq_getsockopt(s->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}
