/*
 * Any bytes from a peer to our server of ZeroMQ's protocol, in two pieces: messages, or the end of that connection; and a
 * client of ours is served as before.
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
static struct link_server *server;
static struct link_client *good;

static void
gone(void)
{
	link_client_close(good);
	link_server_close(server);
}

static void
open_once(void)
{
	if (server != NULL)
		return;
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	snprintf(endpoint, sizeof endpoint, "ipc:///tmp/fuzz_server.%ld", (long)getpid());
	if (link_server_open(endpoint, 0600, &server) != LINK_OK || link_client_open(endpoint, &good) != LINK_OK)
		abort();
	atexit(gone);
}

static bool	/* All that is there is answered.  Whether our own client was among it. */
serve(void)
{
	struct link_body reply = { 0 };
	struct link_msg m;
	bool ours = false;

	while (link_server_recv(server, &m, 0, -1) == LINK_OK) {
		unsigned sum = 0;

		for (size_t i = 0; i < m.head_len; i++)
			sum += m.head[i];
		for (size_t i = 0; i < m.body_len; i++)
			sum += m.body[i];
		assert(m.head_len > 0 && (m.has_body || m.body_len == 0) && sum < UINT32_MAX);
		ours = ours || (m.head_len == 4 && memcmp(m.head, "ours", 4) == 0);
		reply.p = m.body;
		reply.n = m.body_len;
		(void)link_server_send(server, &m.peer, m.head, m.head_len, m.has_body ? &reply : NULL);
		link_msg_done(&m);
	}
	return ours;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t half = n > 0 ? p[0] % n : 0;
	struct link_msg m;
	int fd;

	open_once();
	if (n > 65536)
		return 0;
	snprintf(at.sun_path, sizeof at.sun_path, "%.100s", endpoint + 6);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
		abort();
	serve();
	(void)send(fd, p, half, MSG_NOSIGNAL | MSG_DONTWAIT);
	serve();
	(void)send(fd, p + half, n - half, MSG_NOSIGNAL | MSG_DONTWAIT);	/* it may have ended the connection */
	serve();
	if (link_client_send(good, "ours", 4, NULL, clock_mono_us() + 5000000) != LINK_OK)
		abort();
	while (!serve())
		;
	if (link_client_recv(good, &m, clock_mono_us() + 5000000) != LINK_OK)
		abort();
	link_msg_done(&m);
	shutdown(fd, SHUT_WR);
	serve();
	close(fd);
	return 0;
}
