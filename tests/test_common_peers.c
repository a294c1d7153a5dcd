/*
 * The server's own ZMTP: peers that are slow, greedy or many, and what goes on while its thread is busy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "unit.h"
#include "zmtp.h"

static char dir[] = "/tmp/test_common_peers.XXXXXX", endpoint[128], ulog_prefix_env[64];
static struct link_server *server;
static struct link_client *client;

static void
given_server(void)
{
	snprintf(endpoint, sizeof endpoint, "ipc://%s/s", dir);
	CU_ASSERT_EQUAL_FATAL(link_server_open(endpoint, 0600, &server), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_client_open(endpoint, &client), LINK_OK);
}

static void
server_done(void)
{
	link_client_close(client);
	link_server_close(server);
}

static int64_t
in_ms(int64_t ms)
{
	return clock_mono_us() + ms * 1000;
}

static int	/* a connection that speaks byte by byte */
stranger(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%.100s", endpoint + 6);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void
say(int fd, const void *bytes, size_t n)
{
	CU_ASSERT_EQUAL(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static size_t	/* greeting and READY of a socket of that type, which has six letters */
hello_of(const char *type, uint8_t *to)
{
	size_t n = zmtp_hello(to);

	memcpy((uint8_t *)memmem(to, n, "DEALER", 6), type, 6);
	return n;
}

static bool	/* Until the server receives that request; what else comes is passed over. */
receives(const char *head, int ms, struct link_peer *from)
{
	int64_t until = in_ms(ms);
	struct link_msg m;
	bool is = false;

	while (!is && link_server_recv(server, &m, until, -1) == LINK_OK) {
		is = m.head_len == strlen(head) && memcmp(m.head, head, m.head_len) == 0;
		if (from != NULL)
			*from = m.peer;
		link_msg_done(&m);
	}
	return is;
}

static void	/* One of ours asks and is answered, whatever the others do. */
ours_is_served(void)
{
	struct link_peer from;
	struct link_msg m;

	CU_ASSERT_EQUAL(link_client_send(client, "ours", 4, NULL, in_ms(10000)), LINK_OK);
	CU_ASSERT_TRUE(receives("ours", 10000, &from));
	CU_ASSERT_EQUAL(link_server_send(server, &from, "yes", 3, NULL), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_client_recv(client, &m, in_ms(10000)), LINK_OK);
	CU_ASSERT_EQUAL(m.head_len, 3);
	link_msg_done(&m);
}

static bool
log_says(const char *what)
{
	char command[256];

	snprintf(command, sizeof command, "grep -q '%s' %s.*", what, ulog_prefix_env);
	return system(command) == 0;
}

/* --- slow, greedy, strange --- */

static void
a_request_may_come_a_byte_at_a_time(void)
{
	static const char request[] = "\4\6\4PING\0" "\1\4slow\0\4body";
	uint8_t hello[ZMTP_HELLO_MAX];
	struct link_msg m;
	size_t n;
	int fd;

	given_server();
	fd = stranger();
	n = hello_of("DEALER", hello);
	for (size_t i = 0; i < n; i++) {
		say(fd, hello + i, 1);
		CU_ASSERT_EQUAL(link_server_recv(server, &m, 0, -1), LINK_TIMEOUT);
	}
	for (size_t i = 0; i + 2 < sizeof request; i++) {
		say(fd, request + i, 1);
		CU_ASSERT_EQUAL(link_server_recv(server, &m, 0, -1), LINK_TIMEOUT);
	}
	ours_is_served();
	say(fd, request + sizeof request - 2, 1);
	CU_ASSERT_EQUAL(link_server_recv(server, &m, in_ms(5000), -1), LINK_OK);
	CU_ASSERT_TRUE(m.has_body && m.body_len == 4 && memcmp(m.body, "body", 4) == 0);
	link_msg_done(&m);
	close(fd);
	server_done();
}

static long
memory_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "VmData: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kb;
}

static void	/* A frame has memory as its bytes come. */
a_promise_of_a_gigabyte_costs_nothing(void)
{
	enum { N = 20 };
	static const char promise[] = "\1\1x\2\0\0\0\0\100\0\0\0only this";
	uint8_t hello[ZMTP_HELLO_MAX];
	int fd[N];
	long before;

	given_server();
	ours_is_served();
	before = memory_kb();
	for (int i = 0; i < N; i++) {
		fd[i] = stranger();
		say(fd[i], hello, hello_of("DEALER", hello));
		say(fd[i], promise, sizeof promise - 1);
	}
	ours_is_served();
	ours_is_served();
	CU_ASSERT_TRUE(memory_kb() - before < N * 16 * 1024);
	for (int i = 0; i < N; i++)
		close(fd[i]);
	ours_is_served();
	server_done();
}

static bool	/* The server ends the connection. */
is_cut_off(int fd)
{
	struct timeval patience = { .tv_sec = 10 };
	char bytes[256];
	struct link_msg m;
	ssize_t n;

	CU_ASSERT_EQUAL(link_server_recv(server, &m, in_ms(50), -1), LINK_TIMEOUT);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
		;
	close(fd);
	return n == 0;
}

static void
who_is_no_client_is_cut_off_and_named(void)
{
	static const char early[] = "\0\4head";
	uint8_t hello[ZMTP_HELLO_MAX];
	char who[64];
	size_t n;
	int fd;

	given_server();
	n = hello_of("STREAM", hello);
	say(fd = stranger(), hello, n);
	CU_ASSERT_TRUE(is_cut_off(fd));
	snprintf(who, sizeof who, "connection of process %ld of user", (long)getpid());
	CU_ASSERT_TRUE(log_says(who));
	say(fd = stranger(), hello, ZMTP_GREETING);	/* a message before READY */
	say(fd, early, sizeof early - 1);
	CU_ASSERT_TRUE(is_cut_off(fd));
	say(fd = stranger(), "GET / HTTP/1.0\r\n\r\n", 18);
	CU_ASSERT_TRUE(is_cut_off(fd));
	ours_is_served();
	server_done();
}

/* --- many --- */

static void	/* Those for whom there is no descriptor wait; they are served once others left. */
more_connections_than_descriptors(void)
{
	enum { N = 60 };
	struct rlimit old, few;
	struct link_client *late = NULL;
	struct link_msg m;
	int fd[N];

	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = 40;	/* 30 of them for connections */
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	given_server();
	ours_is_served();
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);	/* this process has both ends */
	for (int i = 0; i < N; i++)
		fd[i] = stranger();
	CU_ASSERT_EQUAL(link_server_recv(server, &m, in_ms(20), -1), LINK_TIMEOUT);
	CU_ASSERT_TRUE(log_says("No more connections on"));
	ours_is_served();
	for (int i = 0; i < N; i++)
		close(fd[i]);
	CU_ASSERT_EQUAL(link_client_open(endpoint, &late), LINK_OK);
	CU_ASSERT_EQUAL(link_client_send(late, "late", 4, NULL, clock_mono_us() - 1), LINK_TIMEOUT);
	for (int i = 0; i < 500 && link_client_send(late, "late", 4, NULL, in_ms(10)) != LINK_OK; i++)
		CU_ASSERT_EQUAL(link_server_recv(server, &m, in_ms(10), -1), LINK_TIMEOUT);
	CU_ASSERT_TRUE(receives("late", 5000, NULL));
	link_client_close(late);
	server_done();
}

/* --- while the server's thread is busy --- */

static void	/* Nobody receives here until the end. */
requests_of_new_clients_are_kept_while_the_server_is_busy(void)
{
	enum { N = 10, EACH = 20 };
	struct link_client *c[N];
	struct link_msg m;
	int count[N] = { 0 };

	given_server();
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(link_client_open(endpoint, &c[i]), LINK_OK);
		for (int k = 0; k < EACH; k++) {
			char head[2] = { (char)i, (char)k };
			char body[30000] = "";
			struct link_body b = { .p = body, .n = sizeof body };

			CU_ASSERT_EQUAL(link_client_send(c[i], head, 2, &b, in_ms(10000)), LINK_OK);
		}
	}
	for (int i = 0; i < N * EACH; i++) {
		CU_ASSERT_EQUAL_FATAL(link_server_recv(server, &m, in_ms(10000), -1), LINK_OK);
		CU_ASSERT_EQUAL(m.body_len, 30000);
		CU_ASSERT_EQUAL(m.head[1], count[m.head[0]]++);	/* each client's in their order */
		link_msg_done(&m);
	}
	for (int i = 0; i < N; i++)
		link_client_close(c[i]);
	server_done();
}

static int released;

static void
release(void *p, void *hint)
{
	(void)hint;
	free(p);
	released++;
}

static void	/* The rest of a large reply goes out though the server's thread does something else. */
a_large_reply_goes_out_while_the_server_is_busy(void)
{
	enum { N = 8 << 20 };
	struct link_body b = { .p = calloc(1, N), .n = N, .release = release };
	struct link_peer from;
	struct link_msg m;

	given_server();
	released = 0;
	CU_ASSERT_EQUAL(link_client_send(client, "ask", 3, NULL, in_ms(5000)), LINK_OK);
	CU_ASSERT_TRUE(receives("ask", 5000, &from));
	CU_ASSERT_EQUAL(link_server_send(server, &from, "x", 1, &b), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_client_recv(client, &m, in_ms(20000)), LINK_OK);
	CU_ASSERT_EQUAL(m.body_len, N);
	link_msg_done(&m);
	server_done();
	CU_ASSERT_EQUAL(released, 1);
}

static void	/* What was said before the end is heard, though the server did not read all that it was sent. */
the_last_reply_arrives_though_requests_were_left(void)
{
	struct link_peer from;
	struct link_msg m;

	given_server();
	CU_ASSERT_EQUAL(link_client_send(client, "one", 3, NULL, in_ms(5000)), LINK_OK);
	CU_ASSERT_TRUE(receives("one", 5000, &from));
	CU_ASSERT_EQUAL(link_server_send(server, &from, "first", 5, NULL), LINK_OK);
	CU_ASSERT_EQUAL(link_client_send(client, "two", 3, NULL, in_ms(5000)), LINK_OK);
	link_server_close(server);
	CU_ASSERT_EQUAL_FATAL(link_client_recv(client, &m, in_ms(5000)), LINK_OK);
	CU_ASSERT_EQUAL(m.head_len, 5);
	link_msg_done(&m);
	CU_ASSERT_EQUAL(link_client_recv(client, &m, in_ms(5000)), LINK_GONE);
	link_client_close(client);
}

static void
replies_by_tcp_are_for_who_asked(void)
{
	struct link_peer from;
	struct link_msg m;
	char who[128];
	int rc = LINK_FAIL;

	for (int port = 20000 + (int)getpid() % 20000, i = 0; rc != LINK_OK && i < 50; i++) {
		snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", port + i);
		rc = link_server_open(endpoint, 0600, &server);
	}
	CU_ASSERT_EQUAL_FATAL(rc, LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_client_open(endpoint, &client), LINK_OK);
	for (int i = 0; i < 3; i++) {
		if (i == 0) {	/* the keeper greets, and this thread receives */
			CU_ASSERT_EQUAL(link_client_send(client, "first", 5, NULL, in_ms(10000)), LINK_OK);
			CU_ASSERT_EQUAL_FATAL(link_server_recv(server, &m, in_ms(10000), -1), LINK_OK);
			link_msg_peer_name(&m, who, sizeof who);
			CU_ASSERT_EQUAL(strncmp(who, "127.0.0.1:", 10), 0);
			from = m.peer;
			link_msg_done(&m);
			CU_ASSERT_EQUAL(link_server_send(server, &from, "yes", 3, NULL), LINK_OK);
			CU_ASSERT_EQUAL(link_client_recv(client, &m, in_ms(10000)), LINK_OK);
			link_msg_done(&m);
		} else {
			ours_is_served();
		}
	}
	server_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_request_may_come_a_byte_at_a_time),
		UNIT(a_promise_of_a_gigabyte_costs_nothing),
		UNIT(who_is_no_client_is_cut_off_and_named),
		UNIT(more_connections_than_descriptors),
		UNIT(requests_of_new_clients_are_kept_while_the_server_is_busy),
		UNIT(a_large_reply_goes_out_while_the_server_is_busy),
		UNIT(the_last_reply_arrives_though_requests_were_left),
		UNIT(replies_by_tcp_are_for_who_asked),
	};
	char command[64];
	int rc;

	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(ulog_prefix_env, sizeof ulog_prefix_env, "%s/ULOG", dir);
	setenv("ULOGPFX", ulog_prefix_env, 1);
	rc = unit_run("peers", tests, UNIT_COUNT(tests));
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) != 0 || rc != 0;
}
