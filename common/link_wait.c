/*
 * link - waiting.
 *
 * Every wait looks first and sleeps only when there was nothing: what was read already is not told by a descriptor.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "clock.h"
#include "link_impl.h"

#define PULSE_US (LINK_HEARTBEAT_MS * 1000 / 4)	/* how often a wait looks whether servers are alive */

int
link_pause_for(struct pollfd *fds, int n, short events, int64_t deadline_us, int64_t look_us, int wake_fd)
{
	int64_t left = INT64_MAX, now;
	struct timespec ts;
	int rc, nfds = n;

	if (deadline_us <= 0)
		return LINK_TIMEOUT;
	if (deadline_us != LINK_FOREVER || look_us != LINK_FOREVER) {
		now = clock_mono_us();
		if (deadline_us <= now)
			return LINK_TIMEOUT;
		left = (look_us < deadline_us ? look_us : deadline_us) - now;
		if (left <= 0)
			return LINK_OK;
	}
	if (left < LINK_SPIN_US)
		return LINK_OK;		/* a sleep would overshoot by more than that */
	for (int i = 0; i < n; i++)
		fds[i].events = events;
	if (wake_fd >= 0)
		fds[nfds++] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	ts.tv_sec = left / 1000000;
	ts.tv_nsec = left % 1000000 * 1000;
	rc = ppoll(fds, (nfds_t)nfds, left == INT64_MAX ? NULL : &ts, NULL);
	if (rc < 0)
		return errno == EINTR ? LINK_INTR : LINK_FAIL;
	if (rc == 1 && wake_fd >= 0 && fds[n].revents != 0)
		return LINK_TIMEOUT;
	return LINK_OK;
}

int
link_pause(struct pollfd *fds, int n, int64_t deadline_us, int64_t look_us, int wake_fd)
{
	return link_pause_for(fds, n, POLLIN, deadline_us, look_us, wake_fd);
}

int
link_iov_advance(struct iovec *v, int count, size_t n)
{
	int first = 0;

	while (first < count && n >= v[first].iov_len)
		n -= v[first++].iov_len;
	if (first < count) {
		v[first].iov_base = (uint8_t *)v[first].iov_base + n;
		v[first].iov_len -= n;
	}
	memmove(v, v + first, (size_t)(count - first) * sizeof *v);
	return count - first;
}

static size_t
mark_ready(struct link_wait *w, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		w[i].ready = w[i].server != NULL ? link_server_ready(w[i].server) :
		    w[i].client != NULL && link_client_ready(w[i].client);
		count += w[i].ready;
	}
	return count;
}

static int64_t	/* Servers see to their socket files, clients feel their server's pulse; when the next one wants to. */
look(struct link_wait *w, size_t n)
{
	int64_t due = clock_mono_us() + PULSE_US;

	for (size_t i = 0; i < n; i++) {
		if (w[i].server == NULL)
			continue;
		link_server_look(w[i].server, false);
		if (link_server_next_look(w[i].server) < due)
			due = link_server_next_look(w[i].server);
	}
	return due;
}

static int
sleep_for_all(struct link_wait *w, size_t n, struct pollfd *fds, int nfds, int64_t deadline_us, int64_t due, int wake_fd)
{
	int rc;

	for (size_t i = 0; i < n; i++)
		if (w[i].server != NULL)
			link_server_asleep(w[i].server, true);
	rc = link_pause(fds, nfds, deadline_us, due, wake_fd);
	for (size_t i = 0; i < n; i++)
		if (w[i].server != NULL)
			link_server_asleep(w[i].server, false);
	return rc;
}

int
link_wait(struct link_wait *w, size_t n, int64_t deadline_us, int wake_fd)
{
	struct pollfd few[16], *fds = few;
	size_t ready;
	int nfds = 0, rc = LINK_OK;
	int64_t due;

	if (n + 1 > sizeof few / sizeof few[0] && (fds = calloc(n + 1, sizeof *fds)) == NULL)
		return LINK_FAIL;
	for (size_t i = 0; i < n; i++) {
		if (w[i].server != NULL)
			fds[nfds++].fd = link_server_fd(w[i].server);
		else if (w[i].client != NULL)
			fds[nfds++].fd = link_client_fd(w[i].client);
	}
	do
		due = look(w, n);
	while ((ready = mark_ready(w, n)) == 0 && (rc = sleep_for_all(w, n, fds, nfds, deadline_us, due, wake_fd)) == LINK_OK);
	if (fds != few)
		free(fds);
	return ready > 0 ? (int)ready : rc == LINK_TIMEOUT ? 0 : rc;
}
