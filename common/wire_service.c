/*
 * wire - the frames of transactions and services: TXEND, TXREPLY, CALL, REPLY, MEMBER.
 */
#include "wire_impl.h"

/*
 * TXEND.     offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask; LOGGED and UNCOUNTED are bits of it
 *                14     1  op, enum wire_txop
 *                          then, each only if its bit is on: tx, timeout_ms (4), groups (1, then 2+n each), why (4 + 8,
 *                          then 2+n)
 */
#define TXEND_MASK (HAS_TX | HAS_LOGGED | HAS_TIMEOUT | HAS_GROUPS | HAS_WHY | HAS_UNCOUNTED)

static bool
has_why(const struct wire_why *why)
{
	return why->error != 0 || why->urcode != 0 || why->text[0] != '\0';
}

static void
get_why(struct rd *r, bool on, struct wire_why *why)
{
	*why = (struct wire_why){ 0 };
	if (!on)
		return;
	why->error = (int32_t)rd_u32(r);
	why->urcode = (int64_t)rd_u64(r);
	rd_str(r, why->text, sizeof why->text);
	insist(r, has_why(why));
}

void
wire_txend_encode(struct wr *w, const struct wire_txend *m)
{
	put_start(w, WIRE_TXEND, m->reqid);
	wr_u32(w, bit_if(m->tx.gtrid_len != 0, HAS_TX) | bit_if(m->logged, HAS_LOGGED) | bit_if(m->timeout_ms != 0, HAS_TIMEOUT) |
	    bit_if(m->groups.n != 0, HAS_GROUPS) | bit_if(has_why(&m->why), HAS_WHY) | bit_if(m->uncounted, HAS_UNCOUNTED));
	wr_u8(w, m->op);
	put_tx(w, &m->tx);
	if (m->timeout_ms != 0)
		wr_u32(w, m->timeout_ms);
	put_groups(w, &m->groups);
	if (has_why(&m->why)) {
		wr_u32(w, (uint32_t)m->why.error);
		wr_u64(w, (uint64_t)m->why.urcode);
		wr_str(w, m->why.text);
	}
}

int
wire_txend_decode(const uint8_t *p, size_t n, struct wire_txend *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_TXEND);
	has = get_mask(&r, TXEND_MASK);
	m->logged = (has & HAS_LOGGED) != 0;
	m->uncounted = (has & HAS_UNCOUNTED) != 0;
	m->op = rd_u8(&r);
	insist(&r, m->op >= WIRE_TX_COMMIT && m->op <= WIRE_TX_LAST);
	get_tx(&r, has & HAS_TX, &m->tx);
	m->timeout_ms = get_u32(&r, has & HAS_TIMEOUT);
	get_groups(&r, has & HAS_GROUPS, &m->groups);
	get_why(&r, has & HAS_WHY, &m->why);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * TXREPLY.   offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  error
 *                14     1  outcome, enum wire_outcome
 */
void
wire_txreply_encode(struct wr *w, const struct wire_txreply *m)
{
	put_start(w, WIRE_TXREPLY, m->reqid);
	wr_u32(w, (uint32_t)m->error);
	wr_u8(w, m->outcome);
}

int
wire_txreply_decode(const uint8_t *p, size_t n, struct wire_txreply *m)
{
	struct rd r = { .p = p, .left = n };

	m->reqid = get_start(&r, WIRE_TXREPLY);
	m->error = (int32_t)rd_u32(&r);
	m->outcome = rd_u8(&r);
	insist(&r, m->outcome <= WIRE_OUT_LAST);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * CALL.      offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask
 *                14     4  flags
 *                18  2+n   service
 *                          then, each only if its bit is on: tx, timeout_ms (4), priority (4), client (40), type,
 *                          subtype
 */
#define CALL_MASK (HAS_BODY | HAS_TX | HAS_TIMEOUT | HAS_PRIORITY | HAS_CLIENT | HAS_TYPE | HAS_SUBTYPE)

void
wire_call_encode(struct wr *w, const struct wire_call *m)
{
	uint32_t has = bit_if(m->has_body, HAS_BODY) | bit_if(m->tx.gtrid_len != 0, HAS_TX) |
	    bit_if(m->timeout_ms != 0, HAS_TIMEOUT) | bit_if(m->priority != 0, HAS_PRIORITY) |
	    has_client(m->cltid, m->appkey) | has_type(m->type, m->subtype);

	put_start(w, WIRE_CALL, m->reqid);
	wr_u32(w, has);
	wr_u32(w, m->flags);
	wr_str(w, m->service);
	put_tx(w, &m->tx);
	if (has & HAS_TIMEOUT)
		wr_u32(w, m->timeout_ms);
	if (has & HAS_PRIORITY)
		wr_u32(w, (uint32_t)m->priority);
	put_client(w, has, m->cltid, m->appkey);
	put_type(w, has, m->type, m->subtype);
}

int
wire_call_decode(const uint8_t *p, size_t n, struct wire_call *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_CALL);
	has = get_mask(&r, CALL_MASK);
	m->has_body = (has & HAS_BODY) != 0;
	m->flags = rd_u32(&r);
	rd_str(&r, m->service, sizeof m->service);
	get_tx(&r, has & HAS_TX, &m->tx);
	m->timeout_ms = get_u32(&r, has & HAS_TIMEOUT);
	m->priority = (int32_t)get_u32(&r, has & HAS_PRIORITY);
	get_client(&r, has & HAS_CLIENT, m->cltid, &m->appkey);
	get_type(&r, has, m->type, m->subtype);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * REPLY.     offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask; DOOMED, LEAVING and MORE are bits of it
 *                14     4  error
 *                          then, each only if its bit is on: urcode (8), groups (1, then 2+n each), type, subtype
 */
#define REPLY_MASK (HAS_BODY | HAS_DOOMED | HAS_LEAVING | HAS_MORE | HAS_URCODE | HAS_GROUPS | HAS_TYPE | HAS_SUBTYPE)

void
wire_reply_encode(struct wr *w, const struct wire_reply *m)
{
	uint32_t has = bit_if(m->has_body, HAS_BODY) | bit_if(m->doomed, HAS_DOOMED) |
	    bit_if(m->leaving, HAS_LEAVING) | bit_if(m->more, HAS_MORE) | bit_if(m->urcode != 0, HAS_URCODE) |
	    bit_if(m->groups.n != 0, HAS_GROUPS) | has_type(m->type, m->subtype);

	put_start(w, WIRE_REPLY, m->reqid);
	wr_u32(w, has);
	wr_u32(w, (uint32_t)m->error);
	if (has & HAS_URCODE)
		wr_u64(w, (uint64_t)m->urcode);
	put_groups(w, &m->groups);
	put_type(w, has, m->type, m->subtype);
}

int
wire_reply_decode(const uint8_t *p, size_t n, struct wire_reply *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_REPLY);
	has = get_mask(&r, REPLY_MASK);
	m->has_body = (has & HAS_BODY) != 0;
	m->doomed = (has & HAS_DOOMED) != 0;
	m->leaving = (has & HAS_LEAVING) != 0;
	m->more = (has & HAS_MORE) != 0;
	m->error = (int32_t)rd_u32(&r);
	m->urcode = (int64_t)get_u64(&r, has & HAS_URCODE);
	get_groups(&r, has & HAS_GROUPS, &m->groups);
	get_type(&r, has, m->type, m->subtype);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * MEMBER.    offset  size  field
 *                 0    10  version, kind, reqid: of READY; of the others 0
 *                10     1  op, enum wire_memberop
 *                          then JOIN: srvid (4), pid (4); OFFER, WITHDRAW: service (2+n); READY: more (2)
 */
void
wire_member_encode(struct wr *w, const struct wire_member *m)
{
	put_start(w, WIRE_MEMBER, m->reqid);
	wr_u8(w, m->op);
	if (m->op == WIRE_MEMBER_JOIN) {
		wr_u32(w, (uint32_t)m->srvid);
		wr_u32(w, (uint32_t)m->pid);
	} else if (m->op == WIRE_MEMBER_OFFER || m->op == WIRE_MEMBER_WITHDRAW) {
		wr_str(w, m->service);
	} else if (m->op == WIRE_MEMBER_READY) {
		wr_u16(w, m->more);
	}
}

int
wire_member_decode(const uint8_t *p, size_t n, struct wire_member *m)
{
	struct rd r = { .p = p, .left = n };
	bool names;

	m->reqid = get_start(&r, WIRE_MEMBER);
	m->op = rd_u8(&r);
	insist(&r, m->op >= WIRE_MEMBER_JOIN && m->op <= WIRE_MEMBER_LAST && (m->reqid == 0 || m->op == WIRE_MEMBER_READY));
	names = m->op == WIRE_MEMBER_OFFER || m->op == WIRE_MEMBER_WITHDRAW;
	m->srvid = m->op == WIRE_MEMBER_JOIN ? (int32_t)rd_u32(&r) : 0;
	m->pid = m->op == WIRE_MEMBER_JOIN ? (int32_t)rd_u32(&r) : 0;
	m->more = m->op == WIRE_MEMBER_READY ? rd_u16(&r) : 0;
	get_name(&r, names, m->service, sizeof m->service);
	return rd_clean_end(&r) ? 0 : -1;
}
