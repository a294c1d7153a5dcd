/*
 * The client's own ZMTP: frames, and servers that break the rules.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "unit.h"
#include "zmtp.h"

/* --- frames --- */

static void
header_is_read_as_written(void)
{
	static const size_t lengths[] = { 0, 1, 255, 256, 65536, (size_t)1 << 30 };
	uint8_t b[ZMTP_HEADER_MAX], flags;
	uint64_t length;

	for (size_t i = 0; i < UNIT_COUNT(lengths); i++) {
		size_t n = zmtp_header(b, ZMTP_MORE, lengths[i]);

		for (size_t k = 0; k < n; k++)
			CU_ASSERT_EQUAL(zmtp_header_read(b, k, &flags, &length), 0);
		CU_ASSERT_EQUAL(zmtp_header_read(b, n, &flags, &length), (int)n);
		CU_ASSERT_EQUAL(length, lengths[i]);
		CU_ASSERT_EQUAL(flags & ~ZMTP_LONG, ZMTP_MORE);
		CU_ASSERT_EQUAL((flags & ZMTP_LONG) != 0, lengths[i] > 255);
	}
}

static void
header_with_unknown_flags_is_refused(void)
{
	uint8_t b[2] = { 0x08, 0 }, flags;
	uint64_t length;

	for (int f = 8; f < 256; f++) {
		b[0] = (uint8_t)f;
		CU_ASSERT_EQUAL(zmtp_header_read(b, 2, &flags, &length), -1);
	}
}

static void
commands_are_known_by_name(void)
{
	uint8_t hello[ZMTP_HELLO_MAX], ping[32], pong[32];
	size_t n = zmtp_hello(hello);

	CU_ASSERT_TRUE(zmtp_greeting_good(hello));
	CU_ASSERT_EQUAL(zmtp_command(hello + ZMTP_GREETING + 2, n - ZMTP_GREETING - 2), ZMTP_READY);
	hello[12] = 'P';	/* PLAIN, say */
	CU_ASSERT_FALSE(zmtp_greeting_good(hello));
	n = zmtp_ping(ping);
	CU_ASSERT_EQUAL(zmtp_command(ping + 2, n - 2), ZMTP_PING);
	CU_ASSERT_TRUE(zmtp_pong(pong, (const uint8_t *)"\004PING\0\0context", 14) > 0);
	CU_ASSERT_EQUAL(memcmp(pong + 2, "\004PONGcontext", 12), 0);
	CU_ASSERT_EQUAL(zmtp_pong(pong, (const uint8_t *)"\004PING", 5), 0);
	CU_ASSERT_EQUAL(zmtp_pong(pong, (const uint8_t *)"\004PING\0\0" "01234567890123456", 24), 0);
	CU_ASSERT_EQUAL(zmtp_command((const uint8_t *)"\004PIN", 4), ZMTP_UNKNOWN);
	CU_ASSERT_EQUAL(zmtp_command(NULL, 0), ZMTP_UNKNOWN);
}

/* --- servers --- */

static char dir[] = "/tmp/test_common_zmtp.XXXXXX", endpoint[128];

struct hostile { int listener; const void *say; size_t n; bool whole; };

/* Takes one connection, hears the client's hello, says what it was told to (a byte at a time unless whole), and ends. */
static void *
hostile_run(void *arg)
{
	struct hostile *h = arg;
	uint8_t heard[ZMTP_HELLO_MAX], mine[ZMTP_HELLO_MAX];
	int fd = accept(h->listener, NULL, NULL);
	size_t want = zmtp_hello(mine), got = 0;
	ssize_t n;

	while (got < want && (n = recv(fd, heard + got, want - got, 0)) > 0)
		got += (size_t)n;
	for (size_t i = 0; i < h->n; i += h->whole ? h->n : 1)
		if (send(fd, (const char *)h->say + i, h->whole ? h->n : 1, MSG_NOSIGNAL) < 0)
			break;
	shutdown(fd, SHUT_WR);
	while (recv(fd, heard, sizeof heard, 0) > 0)
		;
	close(fd);
	return NULL;
}

static int
listener(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s/s", dir);
	unlink(at.sun_path);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 5), 0);
	snprintf(endpoint, sizeof endpoint, "ipc://%s", at.sun_path);
	return fd;
}

/* One request to a server that says so; how the send went, then how each receive did, as text. */
static const char *
meeting(const void *say, size_t n, bool whole)
{
	static char out[256];
	struct hostile h = { .listener = listener(), .say = say, .n = n, .whole = whole };
	struct link_client *c = NULL;
	struct link_msg m;
	pthread_t t;
	int rc;

	pthread_create(&t, NULL, hostile_run, &h);
	CU_ASSERT_EQUAL_FATAL(link_client_open(endpoint, &c), LINK_OK);
	rc = link_client_send(c, "ask", 3, NULL, clock_mono_us() + 300000);
	snprintf(out, sizeof out, "%d", rc);
	while (rc == LINK_OK) {
		size_t at = strlen(out);

		if ((rc = link_client_recv(c, &m, clock_mono_us() + 3000000)) == LINK_OK)
			snprintf(out + at, sizeof out - at, " %.*s/%.*s", (int)m.head_len, (const char *)m.head,
			    m.has_body ? (int)m.body_len : 1, m.has_body ? (const char *)m.body : "-");
		else
			snprintf(out + at, sizeof out - at, " %d", rc);
		link_msg_done(&m);
	}
	link_client_close(c);
	pthread_join(t, NULL);
	close(h.listener);
	return out;
}

static size_t	/* hello, then these bytes */
greeted(uint8_t *to, const char *bytes, size_t n)
{
	size_t at = zmtp_hello(to);

	memcpy(to + at, bytes, n);
	return at + n;
}

static void
bytes_may_come_one_at_a_time(void)
{
	static const char frames[] = "\1\2hi\0\3you" "\0\4more" "\4\6\4PING\0" "\1\1x\2\0\0\0\0\0\0\0\5bytes";
	uint8_t b[512];
	size_t n = greeted(b, frames, sizeof frames - 1);

	CU_ASSERT_STRING_EQUAL(meeting(b, n, false), "0 hi/you more/- x/bytes -2");
	CU_ASSERT_STRING_EQUAL(meeting(b, n, true), "0 hi/you more/- x/bytes -2");
}

static void
message_of_other_shape_is_dropped(void)
{
	static const char frames[] = "\1\1a\1\1b\1\1c\0\1d" "\0\0" "\0\4good";
	uint8_t b[512];

	CU_ASSERT_STRING_EQUAL(meeting(b, greeted(b, frames, sizeof frames - 1), true), "0 good/- -2");
}

static void
half_a_message_is_none(void)
{
	static const char frames[] = "\0\4good\1\4head\0\144only a part";
	uint8_t b[512];

	CU_ASSERT_STRING_EQUAL(meeting(b, greeted(b, frames, sizeof frames - 1), true), "0 good/- -2");
}

static void
nonsense_ends_the_connection(void)
{
	static const struct { const char *p; size_t n; } after_hello[] = {
		{ "\377\377\377\377", 4 },				/* unknown flags */
		{ "\2\177\377\377\377\377\377\377\377", 9 },		/* a frame of 2^63 bytes */
		{ "\6\0\0\0\0\0\1\0\0", 9 },				/* a command of 65536 */
		{ "\5\4READ", 6 },					/* a command with MORE */
		{ "\4\7\5ERROR\0", 9 },
	};
	uint8_t b[512];
	char junk[512];

	for (size_t i = 0; i < UNIT_COUNT(after_hello); i++) {
		const char *how = meeting(b, greeted(b, after_hello[i].p, after_hello[i].n), true);

		/* Read with the hello: nobody to send to.  Later: sent, and then the server was gone. */
		CU_ASSERT_TRUE(strcmp(how, "-1") == 0 || strcmp(how, "0 -2") == 0 || strcmp(how, "-2") == 0);
	}
	srand(1);
	for (size_t i = 0; i < sizeof junk; i++)
		junk[i] = (char)rand();
	CU_ASSERT_STRING_EQUAL(meeting(junk, sizeof junk, true), "-1");	/* surely not sent */
	CU_ASSERT_STRING_EQUAL(meeting("", 0, true), "-1");
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(header_is_read_as_written),
		UNIT(header_with_unknown_flags_is_refused),
		UNIT(commands_are_known_by_name),
		UNIT(bytes_may_come_one_at_a_time),
		UNIT(message_of_other_shape_is_dropped),
		UNIT(half_a_message_is_none),
		UNIT(nonsense_ends_the_connection),
	};
	char log[64];
	int rc;

	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(log, sizeof log, "%s/ULOG", dir);
	setenv("ULOGPFX", log, 1);
	rc = unit_run("zmtp", tests, UNIT_COUNT(tests));
	snprintf(log, sizeof log, "rm -rf %s", dir);
	return system(log) != 0 || rc != 0;
}
