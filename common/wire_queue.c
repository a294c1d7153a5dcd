/*
 * wire - the frames of queueing: ENQUEUE, DEQUEUE, QREPLY, QWAIT, CANCEL.
 */
#include "wire_impl.h"

/*
 * ENQUEUE.   offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask; COMMITS is a bit of it, with that of tx alone
 *                14     4  flags, the TPQ bits
 *                18  2+n   queue
 *                          then, each only if its bit is on: tx, timeout_ms (4), deq_time (8), exp_time (8),
 *                          priority (4), delivery_qos and reply_qos (4 + 4), msgid (32), corrid (32),
 *                          replyqueue (2+n), failurequeue (2+n), urcode (8), client (40), type (2+n), subtype (2+n)
 */
#define ENQUEUE_MASK (HAS_BODY | HAS_TX | HAS_TIMEOUT | HAS_DEQTIME | HAS_EXPTIME | HAS_PRIORITY | HAS_QOS | \
    HAS_MSGID | HAS_CORRID | HAS_REPLYQ | HAS_FAILUREQ | HAS_URCODE | HAS_CLIENT | HAS_TYPE | HAS_SUBTYPE | HAS_COMMITS)

void
wire_enqueue_encode(struct wr *w, const struct wire_enqueue *m)
{
	uint32_t has = bit_if(m->has_body, HAS_BODY) | bit_if(m->tx.gtrid_len != 0, HAS_TX) |
	    bit_if(m->timeout_ms != 0, HAS_TIMEOUT) | bit_if(m->deq_time != 0, HAS_DEQTIME) |
	    bit_if(m->exp_time != 0, HAS_EXPTIME) | bit_if(m->priority != 0, HAS_PRIORITY) |
	    bit_if((m->delivery_qos | m->reply_qos) != 0, HAS_QOS) |
	    bit_if(any_byte(m->msgid, sizeof m->msgid), HAS_MSGID) |
	    bit_if(any_byte(m->corrid, sizeof m->corrid), HAS_CORRID) | bit_if(m->replyqueue[0] != '\0', HAS_REPLYQ) |
	    bit_if(m->failurequeue[0] != '\0', HAS_FAILUREQ) | bit_if(m->urcode != 0, HAS_URCODE) |
	    has_client(m->cltid, m->appkey) | has_type(m->type, m->subtype) | bit_if(m->commits, HAS_COMMITS);

	put_start(w, WIRE_ENQUEUE, m->reqid);
	wr_u32(w, has);
	wr_u32(w, m->flags);
	wr_str(w, m->queue);
	put_tx(w, &m->tx);
	if (has & HAS_TIMEOUT)
		wr_u32(w, m->timeout_ms);
	if (has & HAS_DEQTIME)
		wr_u64(w, (uint64_t)m->deq_time);
	if (has & HAS_EXPTIME)
		wr_u64(w, (uint64_t)m->exp_time);
	if (has & HAS_PRIORITY)
		wr_u32(w, (uint32_t)m->priority);
	if (has & HAS_QOS) {
		wr_u32(w, (uint32_t)m->delivery_qos);
		wr_u32(w, (uint32_t)m->reply_qos);
	}
	if (has & HAS_MSGID)
		wr_bytes(w, m->msgid, sizeof m->msgid);
	if (has & HAS_CORRID)
		wr_bytes(w, m->corrid, sizeof m->corrid);
	if (has & HAS_REPLYQ)
		wr_str(w, m->replyqueue);
	if (has & HAS_FAILUREQ)
		wr_str(w, m->failurequeue);
	if (has & HAS_URCODE)
		wr_u64(w, (uint64_t)m->urcode);
	put_client(w, has, m->cltid, m->appkey);
	put_type(w, has, m->type, m->subtype);
}

int
wire_enqueue_decode(const uint8_t *p, size_t n, struct wire_enqueue *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_ENQUEUE);
	has = get_mask(&r, ENQUEUE_MASK);
	m->has_body = (has & HAS_BODY) != 0;
	m->flags = rd_u32(&r);
	rd_str(&r, m->queue, sizeof m->queue);
	get_tx(&r, has & HAS_TX, &m->tx);
	m->timeout_ms = get_u32(&r, has & HAS_TIMEOUT);
	m->deq_time = (int64_t)get_u64(&r, has & HAS_DEQTIME);
	m->exp_time = (int64_t)get_u64(&r, has & HAS_EXPTIME);
	m->priority = (int32_t)get_u32(&r, has & HAS_PRIORITY);
	m->delivery_qos = has & HAS_QOS ? (int32_t)rd_u32(&r) : 0;
	m->reply_qos = has & HAS_QOS ? (int32_t)rd_u32(&r) : 0;
	insist(&r, (has & HAS_QOS) == 0 || (m->delivery_qos | m->reply_qos) != 0);
	get_id(&r, has & HAS_MSGID, m->msgid, sizeof m->msgid);
	get_id(&r, has & HAS_CORRID, m->corrid, sizeof m->corrid);
	get_name(&r, has & HAS_REPLYQ, m->replyqueue, sizeof m->replyqueue);
	get_name(&r, has & HAS_FAILUREQ, m->failurequeue, sizeof m->failurequeue);
	m->urcode = (int64_t)get_u64(&r, has & HAS_URCODE);
	get_client(&r, has & HAS_CLIENT, m->cltid, &m->appkey);
	get_type(&r, has, m->type, m->subtype);
	m->commits = (has & HAS_COMMITS) != 0;
	insist(&r, !m->commits || (has & HAS_TX) != 0);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * DEQUEUE.   offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask; NOCHANGE is a bit of it
 *                14     4  flags, the TPQ bits
 *                18  2+n   queue
 *                          then, each only if its bit is on: tx, timeout_ms (4), msgid (32), corrid (32), type, subtype
 */
#define DEQUEUE_MASK (HAS_TX | HAS_TIMEOUT | HAS_MSGID | HAS_CORRID | HAS_NOCHANGE | HAS_TYPE | HAS_SUBTYPE)

void
wire_dequeue_encode(struct wr *w, const struct wire_dequeue *m)
{
	uint32_t has = bit_if(m->tx.gtrid_len != 0, HAS_TX) | bit_if(m->timeout_ms != 0, HAS_TIMEOUT) |
	    bit_if(any_byte(m->msgid, sizeof m->msgid), HAS_MSGID) |
	    bit_if(any_byte(m->corrid, sizeof m->corrid), HAS_CORRID) | bit_if(m->nochange, HAS_NOCHANGE) |
	    has_type(m->type, m->subtype);

	put_start(w, WIRE_DEQUEUE, m->reqid);
	wr_u32(w, has);
	wr_u32(w, m->flags);
	wr_str(w, m->queue);
	put_tx(w, &m->tx);
	if (has & HAS_TIMEOUT)
		wr_u32(w, m->timeout_ms);
	if (has & HAS_MSGID)
		wr_bytes(w, m->msgid, sizeof m->msgid);
	if (has & HAS_CORRID)
		wr_bytes(w, m->corrid, sizeof m->corrid);
	put_type(w, has, m->type, m->subtype);
}

int
wire_dequeue_decode(const uint8_t *p, size_t n, struct wire_dequeue *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_DEQUEUE);
	has = get_mask(&r, DEQUEUE_MASK);
	m->nochange = (has & HAS_NOCHANGE) != 0;
	m->flags = rd_u32(&r);
	rd_str(&r, m->queue, sizeof m->queue);
	get_tx(&r, has & HAS_TX, &m->tx);
	m->timeout_ms = get_u32(&r, has & HAS_TIMEOUT);
	get_id(&r, has & HAS_MSGID, m->msgid, sizeof m->msgid);
	get_id(&r, has & HAS_CORRID, m->corrid, sizeof m->corrid);
	get_type(&r, has, m->type, m->subtype);
	return rd_clean_end(&r) ? 0 : -1;
}

bool
wire_is_tentative(const uint8_t *p, size_t n)
{
	struct rd r = { .p = p, .left = n };
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(p, n, &kind, &reqid) != 0 || (kind != WIRE_ENQUEUE && kind != WIRE_DEQUEUE))
		return false;
	(void)get_start(&r, kind);
	return (rd_u32(&r) & (HAS_TX | HAS_COMMITS)) == HAS_TX;	/* nothing, when it is too short */
}

/*
 * QREPLY.    offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  presence mask; DOOMED is a bit of it
 *                14     4  error
 *                18     4  flags
 *                          then, each only if its bit is on: diagnostic (4), group (2+n), msgid (32), corrid (32),
 *                          replyqueue (2+n), failurequeue (2+n), priority (4), delivery_qos and reply_qos (4 + 4),
 *                          urcode (8), client (40), type (2+n), subtype (2+n), queue (2+n), retries (4)
 */
#define QREPLY_MASK (HAS_BODY | HAS_DOOMED | HAS_DIAGNOSTIC | HAS_GROUP | HAS_MSGID | HAS_CORRID | HAS_REPLYQ | \
    HAS_FAILUREQ | HAS_PRIORITY | HAS_QOS | HAS_URCODE | HAS_CLIENT | HAS_TYPE | HAS_SUBTYPE | HAS_QUEUE | HAS_RETRIES)

void
wire_qreply_encode(struct wr *w, const struct wire_qreply *m)
{
	uint32_t has = bit_if(m->has_body, HAS_BODY) | bit_if(m->doomed, HAS_DOOMED) |
	    bit_if(m->diagnostic != 0, HAS_DIAGNOSTIC) | bit_if(m->group[0] != '\0', HAS_GROUP) |
	    bit_if(any_byte(m->msgid, sizeof m->msgid), HAS_MSGID) |
	    bit_if(any_byte(m->corrid, sizeof m->corrid), HAS_CORRID) | bit_if(m->replyqueue[0] != '\0', HAS_REPLYQ) |
	    bit_if(m->failurequeue[0] != '\0', HAS_FAILUREQ) | bit_if(m->priority != 0, HAS_PRIORITY) |
	    bit_if((m->delivery_qos | m->reply_qos) != 0, HAS_QOS) | bit_if(m->urcode != 0, HAS_URCODE) |
	    has_client(m->cltid, m->appkey) | has_type(m->type, m->subtype) | bit_if(m->queue[0] != '\0', HAS_QUEUE) |
	    bit_if(m->retries != 0, HAS_RETRIES);

	put_start(w, WIRE_QREPLY, m->reqid);
	wr_u32(w, has);
	wr_u32(w, (uint32_t)m->error);
	wr_u32(w, m->flags);
	if (has & HAS_DIAGNOSTIC)
		wr_u32(w, (uint32_t)m->diagnostic);
	if (has & HAS_GROUP)
		wr_str(w, m->group);
	if (has & HAS_MSGID)
		wr_bytes(w, m->msgid, sizeof m->msgid);
	if (has & HAS_CORRID)
		wr_bytes(w, m->corrid, sizeof m->corrid);
	if (has & HAS_REPLYQ)
		wr_str(w, m->replyqueue);
	if (has & HAS_FAILUREQ)
		wr_str(w, m->failurequeue);
	if (has & HAS_PRIORITY)
		wr_u32(w, (uint32_t)m->priority);
	if (has & HAS_QOS) {
		wr_u32(w, (uint32_t)m->delivery_qos);
		wr_u32(w, (uint32_t)m->reply_qos);
	}
	if (has & HAS_URCODE)
		wr_u64(w, (uint64_t)m->urcode);
	put_client(w, has, m->cltid, m->appkey);
	put_type(w, has, m->type, m->subtype);
	if (has & HAS_QUEUE)
		wr_str(w, m->queue);
	if (has & HAS_RETRIES)
		wr_u32(w, (uint32_t)m->retries);
}

int
wire_qreply_decode(const uint8_t *p, size_t n, struct wire_qreply *m)
{
	struct rd r = { .p = p, .left = n };
	uint32_t has;

	m->reqid = get_start(&r, WIRE_QREPLY);
	has = get_mask(&r, QREPLY_MASK);
	m->has_body = (has & HAS_BODY) != 0;
	m->doomed = (has & HAS_DOOMED) != 0;
	m->error = (int32_t)rd_u32(&r);
	m->flags = rd_u32(&r);
	m->diagnostic = (int32_t)get_u32(&r, has & HAS_DIAGNOSTIC);
	get_name(&r, has & HAS_GROUP, m->group, sizeof m->group);
	get_id(&r, has & HAS_MSGID, m->msgid, sizeof m->msgid);
	get_id(&r, has & HAS_CORRID, m->corrid, sizeof m->corrid);
	get_name(&r, has & HAS_REPLYQ, m->replyqueue, sizeof m->replyqueue);
	get_name(&r, has & HAS_FAILUREQ, m->failurequeue, sizeof m->failurequeue);
	m->priority = (int32_t)get_u32(&r, has & HAS_PRIORITY);
	m->delivery_qos = has & HAS_QOS ? (int32_t)rd_u32(&r) : 0;
	m->reply_qos = has & HAS_QOS ? (int32_t)rd_u32(&r) : 0;
	insist(&r, (has & HAS_QOS) == 0 || (m->delivery_qos | m->reply_qos) != 0);
	m->urcode = (int64_t)get_u64(&r, has & HAS_URCODE);
	get_client(&r, has & HAS_CLIENT, m->cltid, &m->appkey);
	get_type(&r, has, m->type, m->subtype);
	get_name(&r, has & HAS_QUEUE, m->queue, sizeof m->queue);
	m->retries = (int32_t)get_u32(&r, has & HAS_RETRIES);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * QWAIT.     offset  size  field
 *                 0    10  version, kind, reqid
 *                10     4  timeout_ms
 *                14     2  n, 1 to WIRE_MAX_QWAIT
 *                16  2+n   queue, n times
 */
void
wire_qwait_encode(struct wr *w, const struct wire_qwait *m)
{
	put_start(w, WIRE_QWAIT, m->reqid);
	wr_u32(w, m->timeout_ms);
	wr_u16(w, m->n);
	if (m->n == 0 || m->n > WIRE_MAX_QWAIT) {
		w->bad = true;
		return;
	}
	for (int i = 0; i < m->n; i++)
		wr_str(w, m->queue[i]);
}

int
wire_qwait_decode(const uint8_t *p, size_t n, struct wire_qwait *m)
{
	struct rd r = { .p = p, .left = n };

	m->reqid = get_start(&r, WIRE_QWAIT);
	m->timeout_ms = rd_u32(&r);
	m->n = rd_u16(&r);
	if (m->n == 0 || m->n > WIRE_MAX_QWAIT) {
		m->n = 0;
		return -1;
	}
	for (int i = 0; i < m->n; i++)
		rd_str(&r, m->queue[i], sizeof m->queue[i]);
	return rd_clean_end(&r) ? 0 : -1;
}

/*
 * CANCEL.    offset  size  field
 *                 0    10  version, kind, reqid
 *                10     8  target, the request that is no longer waited for
 */
void
wire_cancel_encode(struct wr *w, const struct wire_cancel *m)
{
	put_start(w, WIRE_CANCEL, m->reqid);
	wr_u64(w, m->target);
}

int
wire_cancel_decode(const uint8_t *p, size_t n, struct wire_cancel *m)
{
	struct rd r = { .p = p, .left = n };

	m->reqid = get_start(&r, WIRE_CANCEL);
	m->target = rd_u64(&r);
	return rd_clean_end(&r) ? 0 : -1;
}
