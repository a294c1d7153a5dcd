/*
 * Any bytes as what the engine finds on disk: a stored message, an order value, an identifier.  Refused, or read, and
 * then written and read again without a difference.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"

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

static void	/* what is on disk of transactions */
transactions(const uint8_t *p, size_t n)
{
	struct rd r = { .p = p, .left = n };
	struct wire_groups groups, same;
	struct branch_head h, again;
	struct wr w = { 0 };
	struct op_rec o;

	if (branch_head_decode(&r, &h) == 0) {
		branch_head_encode(&w, &h);
		assert(wr_ok(&w));
		r = (struct rd){ .p = w.p, .left = w.len };
		assert(branch_head_decode(&r, &again) == 0 && rd_clean_end(&r));
		assert(again.state == h.state && again.number == h.number && again.n == h.n && strcmp(again.owner, h.owner) == 0);
	}
	r = (struct rd){ .p = p, .left = n };
	if (op_decode(&r, &o) == 0)
		assert(o.key.n <= ORDER_KEY_MAX && o.rec_len <= n && (o.kind == OP_ENQUEUE || !o.stored));
	if (decision_decode(p, n, &groups) == 0) {
		wr_reset(&w);
		decision_encode(&w, &groups);
		assert(w.len <= DECISION_BYTES && decision_decode(w.p, w.len, &same) == 0 && same.n == groups.n);
	}
	wr_free(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	record(p, n);
	order_value(p, n);
	identifier(p, n);
	entries(p, n);
	transactions(p, n);
	return 0;
}
