/*
 * Any bytes as frames of ZeroMQ's protocol: header by header to the end, and each command looked at.  A header that is
 * read says the same when it is written again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "zmtp.h"

static void
command(const uint8_t *body, size_t n)
{
	uint8_t answer[32], flags;
	uint64_t length;
	size_t made;

	if (zmtp_command(body, n) != ZMTP_PING || (made = zmtp_pong(answer, body, n)) == 0)
		return;
	assert(made <= sizeof answer && zmtp_header_read(answer, made, &flags, &length) == 2);
	assert(flags == ZMTP_COMMAND && length == made - 2 && zmtp_command(answer + 2, length) == ZMTP_PONG);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t header[ZMTP_HEADER_MAX], flags, again;
	uint64_t length, length_again;
	int size;

	if (n >= ZMTP_GREETING && zmtp_greeting_good(p)) {
		p += ZMTP_GREETING;
		n -= ZMTP_GREETING;
	}
	while ((size = zmtp_header_read(p, n, &flags, &length)) > 0) {
		size_t made = zmtp_header(header, flags & ~ZMTP_LONG, length);

		assert((size_t)size <= n);
		assert(zmtp_header_read(header, made, &again, &length_again) == (int)made && length_again == length);
		assert((again & ~ZMTP_LONG) == (flags & ~ZMTP_LONG));
		p += size;
		n -= (size_t)size;
		if (length > n)
			break;
		if (flags & ZMTP_COMMAND)
			command(p, length);
		p += length;
		n -= length;
	}
	return 0;
}
