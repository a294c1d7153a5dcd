/*
 * wire - what all kinds share: peeking, transactions, clients, types, groups.  wire_impl.h explains the presence mask.
 */
#include "wire_impl.h"

int
wire_peek(const uint8_t *p, size_t n, enum wire_kind *kind, uint64_t *reqid)
{
	struct rd r = { .p = p, .left = n };
	uint8_t version = rd_u8(&r), k = rd_u8(&r);

	*kind = (enum wire_kind)k;
	*reqid = rd_u64(&r);
	return r.bad || version != WIRE_VERSION || k < WIRE_ENQUEUE || k > WIRE_LAST ? -1 : 0;
}

/* tx: length of gtrid (1), gtrid, timeout_ms (4) */
void
put_tx(struct wr *w, const struct wire_tx *tx)
{
	if (tx->gtrid_len == 0)
		return;
	if (tx->gtrid_len > WIRE_GTRID_MAX) {
		w->bad = true;
		return;
	}
	wr_u8(w, tx->gtrid_len);
	wr_bytes(w, tx->gtrid, tx->gtrid_len);
	wr_u32(w, tx->timeout_ms);
}

void
get_tx(struct rd *r, bool on, struct wire_tx *tx)
{
	*tx = (struct wire_tx){ 0 };
	if (!on)
		return;
	tx->gtrid_len = rd_u8(r);
	if (tx->gtrid_len == 0 || tx->gtrid_len > WIRE_GTRID_MAX) {
		r->bad = true;
		tx->gtrid_len = 0;
		return;
	}
	rd_copy(r, tx->gtrid, tx->gtrid_len);
	tx->timeout_ms = rd_u32(r);
}

/* client: cltid (4 times 8), appkey (8) */
uint32_t
has_client(const int64_t cltid[4], int64_t appkey)
{
	return bit_if((cltid[0] | cltid[1] | cltid[2] | cltid[3] | appkey) != 0, HAS_CLIENT);
}

void
put_client(struct wr *w, uint32_t has, const int64_t cltid[4], int64_t appkey)
{
	if ((has & HAS_CLIENT) == 0)
		return;
	for (int i = 0; i < 4; i++)
		wr_u64(w, (uint64_t)cltid[i]);
	wr_u64(w, (uint64_t)appkey);
}

void
get_client(struct rd *r, bool on, int64_t cltid[4], int64_t *appkey)
{
	for (int i = 0; i < 4; i++)
		cltid[i] = on ? (int64_t)rd_u64(r) : 0;
	*appkey = on ? (int64_t)rd_u64(r) : 0;
	insist(r, !on || has_client(cltid, *appkey) != 0);
}

/* type: string; subtype: string; each with its own bit */
uint32_t
has_type(const char *type, const char *subtype)
{
	return bit_if(type[0] != '\0', HAS_TYPE) | bit_if(subtype[0] != '\0', HAS_SUBTYPE);
}

void
put_type(struct wr *w, uint32_t has, const char *type, const char *subtype)
{
	if (has & HAS_TYPE)
		wr_str(w, type);
	if (has & HAS_SUBTYPE)
		wr_str(w, subtype);
}

void
get_type(struct rd *r, uint32_t has, char type[9], char subtype[17])
{
	get_name(r, has & HAS_TYPE, type, 9);
	get_name(r, has & HAS_SUBTYPE, subtype, 17);
}

/* groups: how many (1), a string each */
void
put_groups(struct wr *w, const struct wire_groups *g)
{
	if (g->n == 0)
		return;
	if (g->n > WIRE_MAX_GROUPS) {
		w->bad = true;
		return;
	}
	wr_u8(w, g->n);
	for (int i = 0; i < g->n; i++)
		wr_str(w, g->name[i]);
}

void
get_groups(struct rd *r, bool on, struct wire_groups *g)
{
	g->n = 0;
	if (!on)
		return;
	g->n = rd_u8(r);
	if (g->n == 0 || g->n > WIRE_MAX_GROUPS) {
		r->bad = true;
		g->n = 0;
	}
	for (int i = 0; i < g->n; i++)
		rd_str(r, g->name[i], WIRE_GROUP);
}
