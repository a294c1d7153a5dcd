/*
 * What the codecs in wire_*.c share.  For this folder only.
 *
 * Every frame begins:  0 version, 1 kind, 2 request id (8 bytes).  Kinds with optional fields then have a presence mask
 * of 4 bytes; a field is on the wire only when its bit is on, and its bit is on only when the field is not zero.  So
 * there is one encoding of each struct, and decoders refuse any other.
 */
#ifndef WIRE_IMPL_H
#define WIRE_IMPL_H

#include <string.h>

#include "wire.h"

enum {				/* the presence mask, the same bits in every kind */
	HAS_BODY = 0x1,		/* a body frame follows; no field */
	HAS_TX = 0x2,
	HAS_TYPE = 0x4,
	HAS_SUBTYPE = 0x8,
	HAS_CLIENT = 0x10,	/* cltid, appkey */
	HAS_TIMEOUT = 0x20,
	HAS_MSGID = 0x40,
	HAS_CORRID = 0x80,
	HAS_REPLYQ = 0x100,
	HAS_FAILUREQ = 0x200,
	HAS_PRIORITY = 0x400,
	HAS_QOS = 0x800,	/* delivery and reply */
	HAS_URCODE = 0x1000,
	HAS_DEQTIME = 0x2000,
	HAS_EXPTIME = 0x4000,
	HAS_GROUP = 0x8000,
	HAS_QUEUE = 0x10000,
	HAS_DOOMED = 0x20000,	/* no field */
	HAS_NOCHANGE = 0x40000,	/* no field */
	HAS_LOGGED = 0x80000,	/* no field */
	HAS_DIAGNOSTIC = 0x100000,
	HAS_GROUPS = 0x200000,
	HAS_RETRIES = 0x400000,
	HAS_LEAVING = 0x800000,	/* no field */
	HAS_WHY = 0x1000000,	/* error, urcode, text */
	HAS_UNCOUNTED = 0x2000000,	/* no field */
	HAS_MORE = 0x4000000,	/* no field */
	HAS_COMMITS = 0x8000000	/* no field */
};

static inline void
put_start(struct wr *w, enum wire_kind kind, uint64_t reqid)
{
	wr_reset(w);
	wr_u8(w, WIRE_VERSION);
	wr_u8(w, (uint8_t)kind);
	wr_u64(w, reqid);
}

static inline uint64_t	/* the request id; bad when it is not a frame of that kind and version */
get_start(struct rd *r, enum wire_kind kind)
{
	if (rd_u8(r) != WIRE_VERSION || rd_u8(r) != (uint8_t)kind)
		r->bad = true;
	return rd_u64(r);
}

static inline uint32_t	/* the presence mask; bad when it has a bit that this kind does not know */
get_mask(struct rd *r, uint32_t known)
{
	uint32_t has = rd_u32(r);

	if ((has & ~known) != 0)
		r->bad = true;
	return r->bad ? 0 : has;
}

static inline uint32_t
bit_if(bool on, uint32_t bit)
{
	return on ? bit : 0;
}

static inline bool
any_byte(const uint8_t *p, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= p[i];
	return any != 0;
}

static inline void	/* a read that must give something, for its presence bit was on */
insist(struct rd *r, bool something)
{
	if (!something)
		r->bad = true;
}

/* Optional strings, ids and numbers: cleared when their bit is off, refused when on and empty. */
static inline void
get_name(struct rd *r, bool on, char *to, size_t size)
{
	to[0] = '\0';
	if (!on)
		return;
	rd_str(r, to, size);
	insist(r, to[0] != '\0');
}

static inline void
get_id(struct rd *r, bool on, uint8_t *to, size_t size)
{
	if (!on) {
		memset(to, 0, size);
		return;
	}
	rd_copy(r, to, size);
	insist(r, any_byte(to, size));
}

static inline uint32_t
get_u32(struct rd *r, bool on)
{
	uint32_t v = on ? rd_u32(r) : 0;

	insist(r, !on || v != 0);
	return v;
}

static inline uint64_t
get_u64(struct rd *r, bool on)
{
	uint64_t v = on ? rd_u64(r) : 0;

	insist(r, !on || v != 0);
	return v;
}

void put_tx(struct wr *w, const struct wire_tx *tx);
void get_tx(struct rd *r, bool on, struct wire_tx *tx);
uint32_t has_client(const int64_t cltid[4], int64_t appkey);
void put_client(struct wr *w, uint32_t has, const int64_t cltid[4], int64_t appkey);
void get_client(struct rd *r, bool on, int64_t cltid[4], int64_t *appkey);
uint32_t has_type(const char *type, const char *subtype);
void put_type(struct wr *w, uint32_t has, const char *type, const char *subtype);
void get_type(struct rd *r, uint32_t has, char type[9], char subtype[17]);
void put_groups(struct wr *w, const struct wire_groups *g);
void get_groups(struct rd *r, bool on, struct wire_groups *g);

#endif
