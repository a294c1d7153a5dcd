/*
 * link - the client's end: a DEALER socket, and a monitor that tells when its server came and went.
 *
 * The monitor is looked at before a send and when a receive found nothing, never while replies flow.  News of the death
 * stands behind the replies that came before it: the receive that reads it looks for replies once more.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_impl.h"
#include "ulog.h"

#define RECONNECT_MS 20		/* while the server is not there yet */
#define RECONNECT_MAX_MS 100

struct link_client {
	void *socket, *monitor;
	int fd, monitor_fd;
	unsigned generation;
	bool up, gone;		/* was connected; and no longer is */
	char endpoint[256];
};

/* --- opening and closing --- */

static int
set_options(void *socket)
{
	int64_t max = LINK_MAX_MESSAGE;

	/* Not ZMQ_IMMEDIATE: at a disconnect it drops the replies that came just before; sends wait for the handshake
	 * instead. Unlimited receiving: replies are what we asked for, and a socket that stopped reading would not
	 * answer its server's heartbeats. */
	if (link_set_int(socket, ZMQ_SNDHWM, LINK_HWM) != 0 || link_set_int(socket, ZMQ_RCVHWM, 0) != 0 ||
	    link_set_int(socket, ZMQ_LINGER, 0) != 0 ||
	    link_set_int(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) != 0 ||
	    link_set_int(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) != 0)
		return -1;
	if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof max) != 0)
		return -1;
	return link_set_heartbeat(socket);
}

static int
open_monitor(struct link_client *c, void *ctx)
{
	static _Atomic unsigned long number;
	char name[64];

	snprintf(name, sizeof name, "inproc://link-monitor-%lu", atomic_fetch_add(&number, 1));
	if (zmq_socket_monitor(c->socket, name, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) != 0)
		return -1;
	if ((c->monitor = zmq_socket(ctx, ZMQ_PAIR)) == NULL)
		return -1;
	/* Unlimited: ZeroMQ's own thread would wait for room, and all clients with it. */
	if (link_set_int(c->monitor, ZMQ_RCVHWM, 0) != 0 || link_set_int(c->monitor, ZMQ_LINGER, 0) != 0)
		return -1;
	if ((c->monitor_fd = link_socket_fd(c->monitor)) < 0)
		return -1;
	return zmq_connect(c->monitor, name);
}

int
link_client_open(const char *endpoint, struct link_client **out)
{
	struct link_client *c = NULL;
	void *ctx;
	int saved, rc = LINK_FAIL;

	*out = NULL;
	if (link_check_path(endpoint) != 0 || (ctx = link_context_shared()) == NULL)
		goto done;
	if ((c = calloc(1, sizeof *c)) == NULL)
		goto done;
	snprintf(c->endpoint, sizeof c->endpoint, "%s", endpoint);
	c->generation = link_generation();
	if ((c->socket = zmq_socket(ctx, ZMQ_DEALER)) == NULL || set_options(c->socket) != 0)
		goto done;
	if ((c->fd = link_socket_fd(c->socket)) < 0 || open_monitor(c, ctx) != 0)
		goto done;
	if (zmq_connect(c->socket, endpoint) != 0)
		goto done;
	*out = c;
	c = NULL;
	rc = LINK_OK;
done:
	saved = errno;
	link_client_close(c);
	errno = saved;
	return rc;
}

void
link_client_close(struct link_client *c)
{
	if (c == NULL)
		return;
	if (c->generation == link_generation()) {
		if (c->socket != NULL) {
			zmq_socket_monitor(c->socket, NULL, 0);
			zmq_close(c->socket);
		}
		if (c->monitor != NULL)
			zmq_close(c->monitor);
	}
	free(c);
}

/* --- what became of the server --- */

static bool	/* the next event; 0 when there is none */
next_event(struct link_client *c, uint16_t *event)
{
	uint8_t what[6];
	char where[256];

	if (zmq_recv(c->monitor, what, sizeof what, ZMQ_DONTWAIT) != (int)sizeof what)
		return false;
	zmq_recv(c->monitor, where, sizeof where, ZMQ_DONTWAIT);
	memcpy(event, what, sizeof *event);
	return true;
}

static bool	/* Read the news.  Returns whether the server is lost. */
hear(struct link_client *c)
{
	uint16_t event;

	while (!c->gone && next_event(c, &event)) {
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			c->up = true;
		else if (c->up)
			c->gone = true;
	}
	return c->gone;
}

/* --- sending --- */

static int	/* one try: LINK_TIMEOUT when there is no connection or no room; *made: the body is in frame */
try_send(struct link_client *c, const void *head, size_t head_len, const struct link_body *body, zmq_msg_t *frame,
    bool *made)
{
	if (zmq_send(c->socket, head, head_len, (body != NULL ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT) < 0)
		return errno == EAGAIN || errno == EINTR ? LINK_TIMEOUT : LINK_FAIL;
	if (body == NULL)
		return LINK_OK;
	if (!*made && link_body_frame(frame, body, NULL, NULL) != LINK_OK)
		return LINK_FAIL;
	*made = true;
	/* Refused here: the connection broke between the two, and ZeroMQ took the first one back. */
	if (zmq_msg_send(frame, c->socket, ZMQ_DONTWAIT) < 0)
		return errno == EAGAIN || errno == EINTR ? LINK_TIMEOUT : LINK_FAIL;
	return LINK_OK;
}

int
link_client_send(struct link_client *c, const void *head, size_t head_len, const struct link_body *body,
    int64_t deadline_us)
{
	struct pollfd fds[3] = { { .fd = c->fd }, { .fd = c->monitor_fd } };
	zmq_msg_t frame;
	bool made = false;
	int rc = LINK_OK;

	while (rc == LINK_OK) {
		if (hear(c))
			rc = LINK_GONE;
		else if (c->up && (rc = try_send(c, head, head_len, body, &frame, &made)) != LINK_TIMEOUT)
			break;
		else if (c->up)
			rc = link_pause(fds, 2, deadline_us, LINK_FOREVER, -1);
		else	/* the monitor alone tells of the handshake */
			rc = link_pause(fds + 1, 1, deadline_us, LINK_FOREVER, -1);
	}
	if (rc != LINK_OK && made)
		zmq_msg_close(&frame);
	else if (rc != LINK_OK)
		link_body_drop(body);
	return rc;
}

/* --- receiving --- */

static int	/* the next good message, without waiting */
take(struct link_client *c, struct link_msg *m)
{
	int rc, parts;

	while ((rc = link_frames_recv(c->socket, m, &parts)) == LINK_FAIL && errno == EPROTO) {
		ulog("LIBATMIQ_CAT:102: WARN: Dropped a message of %d frames from the server on %s: a reply is a header "
		    "and at most a body", parts, c->endpoint);
		link_msg_done(m);
	}
	return rc;
}

int
link_client_recv(struct link_client *c, struct link_msg *m, int64_t deadline_us)
{
	struct pollfd fds[3] = { { .fd = c->fd }, { .fd = c->monitor_fd } };
	bool lost;
	int rc;

	link_frames(m)->live = 0;
	m->peer.n = 0;
	do {
		lost = c->gone;
		if ((rc = take(c, m)) != LINK_TIMEOUT)
			break;
		if (lost)
			rc = LINK_GONE;
		else
			rc = hear(c) ? LINK_OK : link_pause(fds, 2, deadline_us, LINK_FOREVER, -1);
	} while (rc == LINK_OK);
	if (rc != LINK_OK)
		link_msg_done(m);
	return rc;
}

/* --- for link_wait() --- */

void
link_client_fds(const struct link_client *c, int fds[2])
{
	fds[0] = c->fd;
	fds[1] = c->monitor_fd;
}

bool
link_client_ready(struct link_client *c)
{
	int events = 0;
	size_t size = sizeof events;

	if (zmq_getsockopt(c->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0)
		return true;
	return hear(c);
}
