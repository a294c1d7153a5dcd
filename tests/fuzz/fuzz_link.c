/*
 * Any bytes from a server to our client of ZeroMQ's protocol, in two pieces: messages or the end of the connection, and
 * the client can be used again.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"

static char endpoint[128];
static int listener;

static void
gone(void)
{
	unlink(endpoint + 6);
}

static void
listen_once(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (listener > 0)
		return;
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	snprintf(endpoint, sizeof endpoint, "ipc:///tmp/fuzz_link.%ld", (long)getpid());
	snprintf(at.sun_path, sizeof at.sun_path, "%s", endpoint + 6);
	unlink(at.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 8) != 0)
		abort();
	atexit(gone);
}

static void
read_all(struct link_client *c)
{
	struct link_msg m;

	/* What is there is read at once; a deadline in the past ends the wait for more. */
	while (link_client_recv(c, &m, clock_mono_us() - 1) == LINK_OK) {
		unsigned sum = 0;

		for (size_t i = 0; i < m.head_len; i++)
			sum += m.head[i];
		for (size_t i = 0; i < m.body_len; i++)
			sum += m.body[i];
		assert(m.has_body || m.body_len == 0);
		assert(sum < UINT32_MAX);
		link_msg_done(&m);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct link_client *c;
	size_t half = n > 0 ? p[0] % n : 0;
	int fd;

	listen_once();
	if (n > 65536 || link_client_open(endpoint, &c) != LINK_OK)
		return 0;
	if (link_client_send(c, "hello", 5, NULL, clock_mono_us() + 1000) == LINK_GONE)
		abort();		/* it waits for our greeting at most */
	if ((fd = accept(listener, NULL, NULL)) < 0)
		abort();
	if (send(fd, p, half, MSG_NOSIGNAL) < 0)
		abort();
	read_all(c);
	if (send(fd, p + half, n - half, MSG_NOSIGNAL) < 0 && half == 0)
		abort();
	read_all(c);
	(void)link_client_send(c, "again", 5, NULL, clock_mono_us() - 1);
	shutdown(fd, SHUT_WR);
	read_all(c);
	close(fd);
	link_client_close(c);
	return 0;
}
