/*
 * zmtp - frames of ZeroMQ's protocol.
 */
#include "zmtp.h"

#include <string.h>
#include <strings.h>

#include "wirebuf.h"

static const uint8_t mechanism[20] = "NULL";

static size_t	/* name: its length in front */
command_frame(uint8_t *to, const char *name, const void *rest, size_t n)
{
	size_t len = 1 + (size_t)name[0];

	to[0] = ZMTP_COMMAND;
	to[1] = (uint8_t)(len + n);
	memcpy(to + 2, name, len);
	if (n > 0)
		memcpy(to + 2 + len, rest, n);
	return 2 + len + n;
}

static size_t	/* metadata: of n bytes */
hello(uint8_t *to, const void *metadata, size_t n)
{
	static const uint8_t signature[12] = { 0xff, [8] = 1, [9] = 0x7f, [10] = 3, [11] = 1 };

	memset(to, 0, ZMTP_GREETING);
	memcpy(to, signature, sizeof signature);
	memcpy(to + sizeof signature, mechanism, sizeof mechanism);
	return ZMTP_GREETING + command_frame(to + ZMTP_GREETING, "\005READY", metadata, n);
}

/* Behind the last name: the NUL that C adds is the last byte of its length, 0. */
size_t
zmtp_hello(uint8_t *to)
{
	static const uint8_t metadata[] = "\013Socket-Type\0\0\0\006DEALER\010Identity\0\0\0";

	return hello(to, metadata, sizeof metadata);
}

size_t
zmtp_hello_server(uint8_t *to)
{
	static const uint8_t metadata[] = "\013Socket-Type\0\0\0\006ROUTER\010Identity\0\0\0";

	return hello(to, metadata, sizeof metadata);
}

bool
zmtp_is_asker(const uint8_t *ready, size_t n)
{
	static const char *const askers[] = { "DEALER", "REQ", "ROUTER" };
	struct rd r = { .p = ready, .left = n };

	rd_view(&r, rd_u8(&r));		/* READY */
	while (!r.bad && r.left > 0) {
		uint8_t name_len = rd_u8(&r);
		const uint8_t *name = rd_view(&r, name_len);
		uint32_t len = rd_u32(&r);
		const uint8_t *value = rd_view(&r, len);

		if (r.bad || name_len != 11 || strncasecmp((const char *)name, "Socket-Type", 11) != 0)
			continue;
		for (size_t i = 0; i < sizeof askers / sizeof askers[0]; i++)
			if (len == strlen(askers[i]) && memcmp(value, askers[i], len) == 0)
				return true;
		return false;
	}
	return false;
}

bool
zmtp_greeting_good(const uint8_t g[ZMTP_GREETING])
{
	return g[0] == 0xff && (g[9] & 1) != 0 && g[10] >= 3 && memcmp(g + 12, mechanism, sizeof mechanism) == 0;
}

size_t
zmtp_header(uint8_t to[ZMTP_HEADER_MAX], uint8_t flags, size_t length)
{
	uint64_t n = length;

	if (length <= UINT8_MAX) {
		to[0] = flags;
		to[1] = (uint8_t)length;
		return 2;
	}
	to[0] = flags | ZMTP_LONG;
	for (int i = 8; i > 0; i--, n >>= 8)
		to[i] = (uint8_t)n;
	return 9;
}

int
zmtp_header_read(const uint8_t *p, size_t n, uint8_t *flags, uint64_t *length)
{
	struct rd r = { .p = p, .left = n };

	if (n < 1)
		return 0;
	*flags = rd_u8(&r);
	if ((*flags & ~(ZMTP_MORE | ZMTP_LONG | ZMTP_COMMAND)) != 0)
		return -1;
	*length = *flags & ZMTP_LONG ? rd_u64(&r) : rd_u8(&r);
	return r.bad ? 0 : (int)(n - r.left);
}

enum zmtp_command
zmtp_command(const uint8_t *body, size_t n)
{
	static const struct { const char *name; enum zmtp_command is; } known[] = {
		{ "\005READY", ZMTP_READY }, { "\005ERROR", ZMTP_ERROR }, { "\004PING", ZMTP_PING }, { "\004PONG", ZMTP_PONG }
	};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		size_t len = strlen(known[i].name);

		if (n >= len && memcmp(body, known[i].name, len) == 0)
			return known[i].is;
	}
	return ZMTP_UNKNOWN;
}

size_t
zmtp_ping(uint8_t to[32])
{
	return command_frame(to, "\004PING", "\0\0", 2);	/* no time to live: it is we who watch */
}

size_t
zmtp_pong(uint8_t to[32], const uint8_t *ping, size_t n)
{
	enum { BEFORE_CONTEXT = 7, CONTEXT_MAX = 16 };

	if (n < BEFORE_CONTEXT || n > BEFORE_CONTEXT + CONTEXT_MAX)
		return 0;
	return command_frame(to, "\004PONG", ping + BEFORE_CONTEXT, n - BEFORE_CONTEXT);
}
