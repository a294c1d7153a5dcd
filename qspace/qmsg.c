/*
 * qmsg - the stored record of a message and its entry in the order table: encode and decode (FORMAT.md lists the
 * bytes).
 */
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

enum { HAS_BODY = 1, HAS_CORRID = 2, HAS_REPLYQ = 4, HAS_FAILUREQ = 8, HAS_ORIGIN = 16, IS_NP = 32, IN_PARTS = 64,
	FROM_FLAGS = HAS_CORRID | HAS_REPLYQ | HAS_FAILUREQ };
#define OVAL_VERSION 1
enum { OVAL_RETRIED = 0x80 };	/* beside the OV flags: times of failure follow */

static uint8_t	/* which optional fields a message with these flags has */
flags_has(uint32_t flags)
{
	return (uint8_t)((flags & TPQCORRID ? HAS_CORRID : 0) | (flags & TPQREPLYQ ? HAS_REPLYQ : 0) |
	    (flags & TPQFAILUREQ ? HAS_FAILUREQ : 0));
}

void
qrecord_encode(struct wr *w, const struct qrecord *r)
{
	const struct qmsg *m = &r->m;
	uint8_t has = (uint8_t)(flags_has(m->flags) | (m->has_body ? HAS_BODY : 0) |
	    (r->origin.queue[0] != '\0' ? HAS_ORIGIN : 0) | (m->persistent ? 0 : IS_NP) |
	    (r->parts != 0 ? IN_PARTS : 0));

	wr_u8(w, RECORD_VERSION);
	wr_u8(w, has);
	wr_u32(w, m->flags);
	wr_u64(w, r->seq);
	wr_u32(w, r->queue);
	wr_bytes(w, m->msgid, TMMSGIDLEN);
	wr_u8(w, (uint8_t)m->priority);
	wr_u8(w, (uint8_t)m->delivery_qos);
	wr_u8(w, (uint8_t)m->reply_qos);
	wr_u64(w, (uint64_t)m->urcode);
	for (int i = 0; i < 4; i++)
		wr_u64(w, (uint64_t)m->cltid[i]);
	wr_u64(w, (uint64_t)m->appkey);
	wr_u64(w, (uint64_t)m->enqueued_us);
	wr_u64(w, (uint64_t)m->available_us);
	wr_u64(w, (uint64_t)m->expires_us);
	wr_str(w, m->type);
	wr_str(w, m->subtype);
	if (has & HAS_CORRID)
		wr_bytes(w, m->corrid, TMCORRIDLEN);
	if (has & HAS_REPLYQ)
		wr_str(w, m->replyqueue);
	if (has & HAS_FAILUREQ)
		wr_str(w, m->failurequeue);
	if (has & HAS_ORIGIN) {
		wr_str(w, r->origin.queue);
		wr_str(w, r->origin.why.text);
		wr_u32(w, r->origin.retries);
		wr_u64(w, (uint64_t)r->origin.first_us);
		wr_u64(w, (uint64_t)r->origin.last_us);
		wr_bytes(w, r->origin.msgid, TMMSGIDLEN);
		wr_u32(w, (uint32_t)r->origin.why.error);
		wr_u64(w, (uint64_t)r->origin.why.urcode);
	}
	wr_u32(w, (uint32_t)m->body_len);
	if (r->parts != 0)
		wr_u64(w, r->parts);
	else
		wr_bytes(w, m->body, m->body_len);
}

static void
origin_decode(struct rd *r, uint8_t version, struct origin *o)
{
	rd_str(r, o->queue, sizeof o->queue);
	rd_str(r, o->why.text, sizeof o->why.text);
	o->retries = rd_u32(r);
	o->first_us = (int64_t)rd_u64(r);
	o->last_us = (int64_t)rd_u64(r);
	if (version < 2)
		return;
	rd_copy(r, o->msgid, TMMSGIDLEN);
	o->why.error = (int32_t)rd_u32(r);
	o->why.urcode = (int64_t)rd_u64(r);
}

static bool	/* everything up to the body */
head_decode(struct rd *r, struct qrecord *out)
{
	struct qmsg *m = &out->m;
	uint8_t version, has;

	memset(out, 0, sizeof *out);
	version = rd_u8(r);
	has = rd_u8(r);
	if (version < RECORD_VERSION_OLDEST || version > RECORD_VERSION ||
	    (has & ~(HAS_BODY | HAS_CORRID | HAS_REPLYQ | HAS_FAILUREQ | HAS_ORIGIN | IS_NP | (version >= 2 ? IN_PARTS : 0))))
		return false;
	m->flags = rd_u32(r);
	out->seq = rd_u64(r);
	out->queue = rd_u32(r);
	rd_copy(r, m->msgid, TMMSGIDLEN);
	m->priority = rd_u8(r);
	m->delivery_qos = rd_u8(r);
	m->reply_qos = rd_u8(r);
	m->urcode = (int64_t)rd_u64(r);
	for (int i = 0; i < 4; i++)
		m->cltid[i] = (int64_t)rd_u64(r);
	m->appkey = (int64_t)rd_u64(r);
	m->enqueued_us = (int64_t)rd_u64(r);
	m->available_us = (int64_t)rd_u64(r);
	m->expires_us = (int64_t)rd_u64(r);
	rd_str(r, m->type, sizeof m->type);
	rd_str(r, m->subtype, sizeof m->subtype);
	if (has & HAS_CORRID)
		rd_copy(r, m->corrid, TMCORRIDLEN);
	if (has & HAS_REPLYQ)
		rd_str(r, m->replyqueue, sizeof m->replyqueue);
	if (has & HAS_FAILUREQ)
		rd_str(r, m->failurequeue, sizeof m->failurequeue);
	if (has & HAS_ORIGIN)
		origin_decode(r, version, &out->origin);
	m->persistent = !(has & IS_NP);
	m->has_body = has & HAS_BODY;
	m->body_len = rd_u32(r);
	if (has & IN_PARTS && ((out->parts = rd_u64(r)) == 0 || !m->has_body))
		return false;
	return !r->bad && flags_has(m->flags) == (has & FROM_FLAGS) && (m->has_body || m->body_len == 0);
}

int
qrecord_decode_head(const uint8_t *p, size_t n, struct qrecord *out)
{
	struct rd r = { .p = p, .left = n };

	return head_decode(&r, out) ? 0 : -1;
}

int
qrecord_decode(const uint8_t *p, size_t n, struct qrecord *out)
{
	struct rd r = { .p = p, .left = n };

	if (!head_decode(&r, out))
		return -1;
	if (out->parts == 0)
		out->m.body = rd_view(&r, out->m.body_len);
	return rd_clean_end(&r) ? 0 : -1;
}

size_t
oval_encode(uint8_t to[OVAL_MAX], const struct oval *v)
{
	uint8_t *p = to;

	*p++ = OVAL_VERSION;
	*p++ = (uint8_t)(v->flags | (v->retries > 0 ? OVAL_RETRIED : 0));
	be32(p, v->rid.segment);
	be32(p + 4, v->rid.page);
	p[8] = (uint8_t)(v->rid.slot >> 8);
	p[9] = (uint8_t)v->rid.slot;
	be64(p + 10, v->seq);
	be32(p + 18, v->bytes);
	be64(p + 22, (uint64_t)v->expires_us);
	p += 30;
	if (v->retries > 0) {
		be32(p, v->retries);
		be64(p + 4, (uint64_t)v->failed_us);
		p += 12;
	}
	if (v->flags & OV_NP) {
		be32(p, v->weight);
		p += 4;
	}
	return (size_t)(p - to);
}

int
oval_decode(const uint8_t *p, size_t n, struct oval *v)
{
	memset(v, 0, sizeof *v);
	if (n < 32 || p[0] != OVAL_VERSION || n != (p[1] & OVAL_RETRIED ? 44u : 32u) + (p[1] & OV_NP ? 4u : 0u))
		return -1;
	v->flags = p[1] & (uint8_t)~OVAL_RETRIED;
	v->rid.segment = get32(p + 2);
	v->rid.page = get32(p + 6);
	v->rid.slot = (uint16_t)(p[10] << 8 | p[11]);
	v->seq = get64(p + 12);
	v->bytes = get32(p + 20);
	v->expires_us = (int64_t)get64(p + 24);
	if (p[1] & OVAL_RETRIED) {
		v->retries = get32(p + 32);
		v->failed_us = (int64_t)get64(p + 36);
	}
	if (v->flags & OV_NP)
		v->weight = get32(p + n - 4);
	return 0;
}

int64_t
pages_of(int64_t bytes)
{
	return bytes <= PAGE_BYTES ? 1 : (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

void
qmsg_keep(struct qmsg *m)
{
	(void)__atomic_fetch_add(&m->keepers, 1, __ATOMIC_RELAXED);
}

void
qmsg_free(struct qmsg *m)
{
	if (m != NULL && __atomic_fetch_sub(&m->keepers, 1, __ATOMIC_ACQ_REL) == 0)
		free(m);
}
