#include "gtrid.h"

#include <stdio.h>
#include <string.h>

enum { XID_GTRID = 1 + 8 + 1 };	/* where the global part of an id by XA begins: WIRE_GTRID_XID, formatID, length */

static unsigned long
word_of(const uint8_t *p, size_t len, size_t at)
{
	unsigned long v = 0;

	for (size_t i = at; i < at + 4; i++)
		v = v << 8 | (i < len ? p[i] : 0);
	return v;
}

/* Low half of the time, process, count: together as good as unique. */
void
gtrid_words(const uint8_t *gtrid, size_t len, unsigned long words[3])
{
	size_t from = len > XID_GTRID && gtrid[0] == WIRE_GTRID_XID ? XID_GTRID : WIRE_GTRID_TIME + 4;

	for (size_t i = 0; i < 3; i++)
		words[i] = word_of(gtrid, len, from + 4 * i);
}

void
gtrid_to_hex(const uint8_t *gtrid, size_t len, char out[GTRID_HEX])
{
	out[0] = '\0';
	for (size_t i = 0; i < len && i < WIRE_GTRID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", gtrid[i]);
}

int
gtrid_from_hex(const char *s, uint8_t gtrid[WIRE_GTRID_MAX], uint8_t *len)
{
	size_t n = strlen(s);
	unsigned byte;

	if (n == 0 || n % 2 != 0 || n / 2 > WIRE_GTRID_MAX || strspn(s, "0123456789abcdef") != n)
		return -1;
	for (size_t i = 0; i < n / 2; i++) {
		sscanf(s + 2 * i, "%2x", &byte);
		gtrid[i] = (uint8_t)byte;
	}
	*len = (uint8_t)(n / 2);
	return 0;
}
