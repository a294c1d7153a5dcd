/*
 * convert - identifiers as text; typed buffers as bytes that can be kept or sent elsewhere.
 *
 * An exported buffer, version 1, integers big-endian; as a string the same bytes in base 64:
 *    offset  size  field
 *         0     4  "atmq"
 *         4     1  version
 *         5     8  type, zero padded
 *        13    16  subtype, zero padded
 *        29     8  n, length of the data
 *        37     n  data
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "typesw.h"
#include "wirebuf.h"

#define EXPORT_HEAD 37
#define EXPORT_VERSION 1

/* ---- tpconvert: numbers in hexadecimal, separated by blanks ---- */

static size_t
words_of(long flags)
{
	if (flags & TPCONVCLTID)
		return sizeof(CLIENTID) / sizeof(long);
	return flags & TPCONVTRANID ? sizeof(TPTRANID) / sizeof(long) : sizeof(XID) / sizeof(long);
}

/* Longs of an identifier; of an XID the three in front and as much data as they tell. */
static size_t
words_used(const long *v, size_t n, long flags)
{
	size_t bytes;

	if ((flags & TPCONVXID) == 0)
		return n;
	if (v[0] == -1)
		return 1;
	bytes = (size_t)(v[1] + v[2]);
	return v[1] < 0 || v[2] < 0 || bytes > XIDDATASIZE ? 0 : 3 + (bytes + sizeof(long) - 1) / sizeof(long);
}

static int
to_string(char *str, const char *bin, long flags)
{
	long v[sizeof(XID) / sizeof(long)];
	size_t n = words_of(flags), used, i, at = 0;

	memcpy(v, bin, n * sizeof(long));
	used = words_used(v, n, flags);
	if (used == 0 || used * 17 > TPCONVMAXSTR)
		return TPEINVAL;
	for (i = 0; i < used; i++)
		at += (size_t)snprintf(str + at, TPCONVMAXSTR - at, "%s%lx", i > 0 ? " " : "", (unsigned long)v[i]);
	return 0;
}

static int
to_binary(const char *str, char *bin, long flags)
{
	long v[sizeof(XID) / sizeof(long)] = { 0 };
	size_t n = words_of(flags), i;
	char *end;

	for (i = 0; i < n && *str != '\0'; i++) {
		v[i] = (long)strtoul(str, &end, 16);
		if (end == str)
			return TPEINVAL;
		str = end;
		while (*str == ' ')
			str++;
	}
	if (*str != '\0' || i == 0 || words_used(v, n, flags) != i)
		return TPEINVAL;
	memcpy(bin, v, n * sizeof(long));
	return 0;
}

int
tpconvert(char *str, char *bin, long flags)
{
	long kind = flags & (TPCONVCLTID | TPCONVTRANID | TPCONVXID);
	int err;

	if (str == NULL || bin == NULL || (flags & ~(long)(TPTOSTRING | kind)) != 0 || kind == 0 ||
	    (kind & (kind - 1)) != 0)
		return fail(TPEINVAL);
	err = flags & TPTOSTRING ? to_string(str, bin, flags) : to_binary(str, bin, flags);
	return err == 0 ? 0 : fail(err);
}

/* ---- tpexport, tpimport ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void
base64(const uint8_t *from, size_t n, char *to)
{
	for (; n > 0; from += 3, n = n > 3 ? n - 3 : 0) {
		uint32_t v = (uint32_t)from[0] << 16 | (n > 1 ? (uint32_t)from[1] << 8 : 0) | (n > 2 ? from[2] : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = n > 1 ? digits[v >> 6 & 63] : '=';
		*to++ = n > 2 ? digits[v & 63] : '=';
	}
	*to = '\0';
}

/* Returns the number of bytes, or -1 when a character is none of ours. */
static long
base64_back(const char *from, size_t n, uint8_t *to)
{
	uint32_t v = 0;
	size_t i;
	int bits = 0;
	long out = 0;

	for (i = 0; i < n && from[i] != '\0' && from[i] != '='; i++) {
		const char *at = strchr(digits, from[i]);

		if (at == NULL)
			return -1;
		v = v << 6 | (uint32_t)(at - digits);
		if ((bits += 6) >= 8)
			to[out++] = (uint8_t)(v >> (bits -= 8));
	}
	return out;
}

int
tpexport(char *ibuf, long ilen, char *ostr, long *olen, long flags)
{
	struct typed t;
	struct wr w = { 0 };
	long n;
	size_t need;
	int err = 0;

	if (ibuf == NULL || ostr == NULL || olen == NULL || (flags & ~(long)TPEX_STRING) != 0)
		return fail(TPEINVAL);
	if ((err = buffer_outgoing(ibuf, ilen, &t, &n)) != 0)
		return fail(err);
	wr_bytes(&w, "atmq", 4);
	wr_u8(&w, EXPORT_VERSION);
	wr_bytes(&w, t.type, 8);
	wr_bytes(&w, t.subtype, 16);
	wr_u64(&w, (uint64_t)n);
	wr_bytes(&w, ibuf, (size_t)n);
	buffer_sent(ibuf);
	need = flags & TPEX_STRING ? (w.len + 2) / 3 * 4 + 1 : w.len;
	if (!wr_ok(&w))
		err = TPEOS;
	else if (*olen < 0 || (size_t)*olen < need)
		err = TPELIMIT;		/* *olen then says how much it takes */
	else if (flags & TPEX_STRING)
		base64(w.p, w.len, ostr);
	else
		memcpy(ostr, w.p, w.len);
	*olen = (long)need;
	wr_free(&w);
	return err == 0 ? 0 : fail(err);
}

static int
import(const uint8_t *p, size_t n, char **obuf, long *olen)
{
	struct rd r = { .p = p, .left = n };
	char mark[4], type[9] = "", subtype[17] = "";
	const uint8_t *data;
	uint64_t size;
	long len;
	int err;

	rd_copy(&r, mark, sizeof mark);
	if (memcmp(mark, "atmq", 4) != 0 || rd_u8(&r) != EXPORT_VERSION)
		return TPEINVAL;
	rd_copy(&r, type, 8);
	rd_copy(&r, subtype, 16);
	size = rd_u64(&r);
	if (size > r.left)
		return TPEINVAL;
	data = rd_view(&r, (size_t)size);
	if (r.bad || typesw_find(type, subtype) == NULL)
		return TPEINVAL;
	if ((err = buffer_incoming(obuf, type, subtype, data, (size_t)size, false, &len)) != 0)
		return err;
	if (olen != NULL)
		*olen = len;
	return 0;
}

int
tpimport(char *istr, long ilen, char **obuf, long *olen, long flags)
{
	struct typed t;
	uint8_t *bytes;
	long n;
	int err;

	if (istr == NULL || obuf == NULL || (flags & ~(long)TPEX_STRING) != 0 || buffer_look(*obuf, &t) != 0)
		return fail(TPEINVAL);
	if ((flags & TPEX_STRING) == 0)
		return (err = ilen < EXPORT_HEAD ? TPEINVAL : import((uint8_t *)istr, (size_t)ilen, obuf, olen)) == 0
			   ? 0
			   : fail(err);
	ilen = (long)strlen(istr);
	if ((bytes = malloc((size_t)ilen / 4 * 3 + 3)) == NULL)
		return fail(TPEOS);
	n = base64_back(istr, (size_t)ilen, bytes);
	err = n < EXPORT_HEAD ? TPEINVAL : import(bytes, (size_t)n, obuf, olen);
	free(bytes);
	return err == 0 ? 0 : fail(err);
}
