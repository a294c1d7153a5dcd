/*
 * Any bytes as what the engine finds on disk: a stored message, an order value, an identifier.  Refused, or read, and
 * then written and read again without a difference.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

static void
record(const uint8_t *p, size_t n)
{
	static struct qrecord r, again;
	struct wr w = { 0 };

	(void)qrecord_decode_head(p, n, &r);
	if (qrecord_decode(p, n, &r) != 0)
		return;
	assert(r.m.body_len <= n || r.parts != 0);
	qrecord_encode(&w, &r);
	assert(wr_ok(&w) && w.len <= n + TMMSGIDLEN + 12);	/* a record of version 1 grows */
	assert(qrecord_decode(w.p, w.len, &again) == 0);
	assert(again.seq == r.seq && again.m.body_len == r.m.body_len && again.m.flags == r.m.flags);
	assert(strcmp(again.m.replyqueue, r.m.replyqueue) == 0 && strcmp(again.m.type, r.m.type) == 0);
	wr_free(&w);
}

static void
order_value(const uint8_t *p, size_t n)
{
	uint8_t b[OVAL_MAX];
	struct oval v, again;

	if (oval_decode(p, n, &v) != 0)
		return;
	assert(oval_decode(b, oval_encode(b, &v), &again) == 0);
	assert(
	    again.seq == v.seq && again.rid.page == v.rid.page && again.bytes == v.bytes && again.retries == v.retries);
}

static void
identifier(const uint8_t *p, size_t n)
{
	struct msgid_parts id;
	uint8_t msgid[TMMSGIDLEN] = { 0 };

	memcpy(msgid, p, n < sizeof msgid ? n : sizeof msgid);
	if (qorder_msgid_parse(msgid, &id) != 0)
		return;
	assert(id.key.n <= ORDER_KEY_MAX);
	if (!id.alias)
		(void)qorder_seq(&id.key, true);
}

static void
entries(const uint8_t *p, size_t n)
{
	struct walk w = { .k = p, .kn = n < 20 ? n : 20, .v = p, .vn = n };
	struct okey k;
	struct oval v;
	struct place at;
	int64_t us;
	uint64_t seq;

	(void)delayed_decode(&w, &us, &k, &v);
	w.kn = n < 16 ? n : 16;
	(void)expiry_decode(&w, &us, &seq, &k, &at);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	record(p, n);
	order_value(p, n);
	identifier(p, n);
	entries(p, n);
	return 0;
}
