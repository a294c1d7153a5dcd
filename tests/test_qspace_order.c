/*
 * Keys sort as the queue delivers; identifiers lead back to them; stored records come back as they went in.
 */
#include "given_space.h"
#include "qspace_impl.h"

static const uint8_t fifo[4] = { QC_FIFO }, lifo[4] = { QC_LIFO };
static const uint8_t all[4] = { QC_PRIORITY, QC_TIME, QC_EXPIRATION, QC_FIFO };

static struct okey
key(const uint8_t order[4], int32_t priority, int64_t available_us, int64_t expires_us, bool top, uint64_t seq)
{
	struct qorder_values v = { priority, available_us, expires_us };
	struct okey k;

	qorder_key(&k, 7, order, &v, top, seq);
	return k;
}

static bool
sorts_before(struct okey a, struct okey b)
{
	return qorder_compare(a.b, a.n, b.b, b.n) < 0 && qorder_compare(b.b, b.n, a.b, a.n) > 0;
}

static void
first_come_first_served_or_the_other_way_round(void)
{
	CU_ASSERT_TRUE(sorts_before(key(fifo, 50, 1, 0, false, 1), key(fifo, 50, 1, 0, false, 2)));
	CU_ASSERT_TRUE(sorts_before(key(fifo, 50, 1, 0, false, 255), key(fifo, 50, 1, 0, false, 256)));
	CU_ASSERT_TRUE(sorts_before(key(lifo, 50, 1, 0, false, 2), key(lifo, 50, 1, 0, false, 1)));
}

static void
criteria_count_in_their_order(void)
{
	CU_ASSERT_TRUE(sorts_before(key(all, 90, 9000, 9000, false, 9), key(all, 10, 1000, 1000, false, 1)));
	CU_ASSERT_TRUE(sorts_before(key(all, 50, 1000, 9000, false, 9), key(all, 50, 9000, 1000, false, 1)));
	CU_ASSERT_TRUE(sorts_before(key(all, 50, 1000, 1000, false, 9), key(all, 50, 1000, 9000, false, 1)));
	CU_ASSERT_TRUE(sorts_before(key(all, 50, 1000, 9000, false, 9), key(all, 50, 1000, 0, false, 1)));
	CU_ASSERT_TRUE(sorts_before(key(all, 50, 1000, 9000, false, 1), key(all, 50, 1000, 9000, false, 9)));
}

static void
top_goes_ahead_of_all_and_the_last_one_first(void)
{
	CU_ASSERT_TRUE(sorts_before(key(all, 1, 9000, 0, true, 5), key(all, 100, 0, 1, false, 1)));
	CU_ASSERT_TRUE(sorts_before(key(all, 1, 9000, 0, true, 6), key(all, 100, 0, 1, true, 5)));
}

static const struct okey nothing;

static void
before_is_directly_ahead_and_nests(void)
{
	struct okey a = key(fifo, 50, 0, 0, false, 10), b = key(fifo, 50, 0, 0, false, 11), b1, b2, b11;

	CU_ASSERT_EQUAL_FATAL(qorder_before(&b1, &b, &a, 12), 0);
	CU_ASSERT_EQUAL_FATAL(qorder_before(&b2, &b, &b1, 13), 0);
	CU_ASSERT_EQUAL_FATAL(qorder_before(&b11, &b1, &a, 14), 0);
	CU_ASSERT_TRUE(sorts_before(a, b11));
	CU_ASSERT_TRUE(sorts_before(b11, b1));
	CU_ASSERT_TRUE(sorts_before(b1, b2));
	CU_ASSERT_TRUE(sorts_before(b2, b));
}

static void	/* Each ahead of the last one, a hundred thousand times; the same for one message ahead of which all go. */
a_chain_of_before_does_not_end(void)
{
	struct okey a = key(all, 50, 1, 1, false, 10), b = key(all, 50, 1, 1, false, 11), last = b, k, prev = a;

	for (int i = 0; i < 100000; i++, last = k) {
		CU_ASSERT_EQUAL_FATAL(qorder_before(&k, &last, &a, (uint64_t)(12 + i)), 0);
		CU_ASSERT_TRUE_FATAL(sorts_before(k, last) && sorts_before(a, k));
	}
	for (int i = 0; i < 100000; i++, prev = k) {	/* ahead of the one at the end of that chain */
		CU_ASSERT_EQUAL_FATAL(qorder_before(&k, &last, &prev, (uint64_t)(200000 + i)), 0);
		CU_ASSERT_TRUE_FATAL(sorts_before(k, last) && sorts_before(prev, k));
	}
}

/* The worst there is: always between the last two.  It ends with an error, never with a key that is cut off. */
static void
between_the_last_two_ends_with_an_error(void)
{
	struct okey low = key(fifo, 50, 0, 0, false, 10), high = key(fifo, 50, 0, 0, false, 11), k;
	int n, stop = 0;

	for (n = 0; n < 100000; n++) {
		if ((stop = qorder_before(&k, &high, n == 0 ? &nothing : &low, (uint64_t)(12 + n))) != 0)
			break;
		CU_ASSERT_TRUE_FATAL(sorts_before(low, k) && sorts_before(k, high));
		if (n % 2)
			low = k;
		else
			high = k;
	}
	CU_ASSERT_EQUAL(stop, -1);
	CU_ASSERT_TRUE(n >= 64);
	if (getenv("TEST_LONG") != NULL)
		printf("between the last two: %d\n", n);
}

static void
an_identifier_leads_to_its_key(void)
{
	const uint8_t space[4] = { 1, 2, 3, 4 };
	const uint8_t *orders[] = { fifo, lifo, all };
	uint8_t id[TMMSGIDLEN], zero[TMMSGIDLEN] = { 0 };
	struct msgid_parts p;

	for (int i = 0; i < 3; i++)
		for (int top = 0; top < 2; top++) {
			struct okey k = key(orders[i], 50, INT64_C(1700000000000000), 0, top, 0x1122334455667788);
			qorder_msgid(id, space, i == 1, &k, 0x1122334455667788, false);
			CU_ASSERT_EQUAL(qorder_msgid_parse(id, &p), 0);
			CU_ASSERT_EQUAL(p.np, i == 1);
			CU_ASSERT_EQUAL(p.queue, 7);
			CU_ASSERT_EQUAL(p.key.n, k.n);
			CU_ASSERT_EQUAL(memcmp(p.key.b, k.b, k.n), 0);
			CU_ASSERT_EQUAL(qorder_seq(&p.key, i == 1), 0x1122334455667788);
		}
	CU_ASSERT_NOT_EQUAL(qorder_msgid_parse(zero, &p), 0);
	memset(id, 0xff, sizeof id);
	CU_ASSERT_NOT_EQUAL(qorder_msgid_parse(id, &p), 0);
	memset(id, 0xff, sizeof id);
	id[0] = 0x51;
	CU_ASSERT_NOT_EQUAL(qorder_msgid_parse(id, &p), 0);
}

static void	/* Every truncation is refused, and so is one byte too many. */
records_come_back_and_damaged_ones_do_not(void)
{
	struct qrecord r = { .seq = 77, .queue = 3 }, back;
	struct wr w = { 0 };
	uint8_t *copy;

	r.m = (struct qmsg){ .flags = TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY,
		.priority = 99,
		.urcode = -5,
		.appkey = 9,
		.cltid = { 1, -2, 3, 4 },
		.persistent = true,
		.enqueued_us = 11,
		.available_us = 12,
		.expires_us = 13,
		.has_body = true,
		.body = (const uint8_t *)"hello",
		.body_len = 5,
		.reply_qos = 4 };
	memset(r.m.corrid, 0xc0, sizeof r.m.corrid);
	memset(r.m.msgid, 0x51, sizeof r.m.msgid);
	snprintf(r.m.replyqueue, sizeof r.m.replyqueue, "%s", "REPLIES");
	snprintf(r.m.failurequeue, sizeof r.m.failurequeue, "%s", "FAILURES");
	snprintf(r.m.type, sizeof r.m.type, "%s", "X_OCTET");
	snprintf(r.m.subtype, sizeof r.m.subtype, "%s", "subtype");
	snprintf(r.origin.queue, sizeof r.origin.queue, "%s", "orders");
	snprintf(r.origin.why.text, sizeof r.origin.why.text, "%s", "because");
	r.origin.why.error = TPESVCFAIL;
	r.origin.why.urcode = -7;
	memset(r.origin.msgid, 0x53, sizeof r.origin.msgid);
	r.origin.retries = 4;
	qrecord_encode(&w, &r);
	CU_ASSERT_TRUE_FATAL(wr_ok(&w));
	CU_ASSERT_EQUAL(qrecord_decode(w.p, w.len, &back), 0);
	CU_ASSERT_EQUAL(back.seq, 77);
	CU_ASSERT_EQUAL(back.m.urcode, -5);
	CU_ASSERT_EQUAL(back.m.cltid[1], -2);
	CU_ASSERT_STRING_EQUAL(back.m.replyqueue, "REPLIES");
	CU_ASSERT_STRING_EQUAL(back.m.failurequeue, "FAILURES");
	CU_ASSERT_STRING_EQUAL(back.origin.why.text, "because");
	CU_ASSERT_EQUAL(back.origin.why.error, TPESVCFAIL);
	CU_ASSERT_EQUAL(back.origin.why.urcode, -7);
	CU_ASSERT_EQUAL(memcmp(back.origin.msgid, r.origin.msgid, TMMSGIDLEN), 0);
	CU_ASSERT_EQUAL(back.m.body_len, 5);
	CU_ASSERT_EQUAL(memcmp(back.m.body, "hello", 5), 0);
	CU_ASSERT_EQUAL(back.m.persistent, true);
	for (size_t n = 0; n < w.len; n++) {
		copy = malloc(n + 1);
		memcpy(copy, w.p, n);
		CU_ASSERT_NOT_EQUAL(qrecord_decode(copy, n, &back), 0);
		free(copy);
	}
	wr_u8(&w, 0);
	CU_ASSERT_NOT_EQUAL(qrecord_decode(w.p, w.len, &back), 0);
	wr_free(&w);
}

/* The bytes that release 0.1.0 wrote for a message on its error queue. */
static void
a_record_of_version_1_is_read(void)
{
	struct qrecord r;
	struct wr w = { 0 };

	wr_u8(&w, 1);
	wr_u8(&w, 1 | 16);	/* body, origin */
	wr_u32(&w, TPQMSGID);
	wr_u64(&w, 77);
	wr_u32(&w, 9);
	for (int i = 0; i < TMMSGIDLEN; i++)
		wr_u8(&w, 0x51);
	wr_u8(&w, 50);
	wr_u8(&w, 0);
	wr_u8(&w, 0);
	wr_u64(&w, 3);		/* urcode */
	for (int i = 0; i < 5; i++)
		wr_u64(&w, 0);
	wr_u64(&w, 11);
	wr_u64(&w, 0);
	wr_u64(&w, 0);
	wr_str(&w, "STRING");
	wr_str(&w, "");
	wr_str(&w, "ORDERS");
	wr_str(&w, "transaction rolled back");
	wr_u32(&w, 4);
	wr_u64(&w, 5);
	wr_u64(&w, 6);
	wr_u32(&w, 5);
	wr_bytes(&w, "hello", 5);
	CU_ASSERT_EQUAL_FATAL(qrecord_decode(w.p, w.len, &r), 0);
	CU_ASSERT_STRING_EQUAL(r.origin.queue, "ORDERS");
	CU_ASSERT_STRING_EQUAL(r.origin.why.text, "transaction rolled back");
	CU_ASSERT_EQUAL(r.origin.why.error, 0);
	CU_ASSERT_EQUAL(r.origin.retries, 4);
	CU_ASSERT_EQUAL(r.origin.last_us, 6);
	CU_ASSERT_EQUAL(r.m.body_len, 5);
	CU_ASSERT_EQUAL(memcmp(r.m.body, "hello", 5), 0);
	wr_free(&w);
}

static void
order_values_come_back(void)
{
	struct oval v = { .rid = { 3, 70000, 300 }, .seq = 5, .bytes = 1 << 20, .flags = OV_CORRID, .expires_us = 99 },
		    back;
	uint8_t b[OVAL_MAX];
	size_t n;

	for (uint32_t retries = 0; retries < 2; retries++) {
		v.retries = retries;
		v.failed_us = retries ? 1234 : 0;
		n = oval_encode(b, &v);
		CU_ASSERT_EQUAL(oval_decode(b, n, &back), 0);
		CU_ASSERT_EQUAL(back.rid.segment, 3);
		CU_ASSERT_EQUAL(back.rid.page, 70000);
		CU_ASSERT_EQUAL(back.rid.slot, 300);
		CU_ASSERT_EQUAL(back.retries, retries);
		CU_ASSERT_EQUAL(back.failed_us, v.failed_us);
		CU_ASSERT_EQUAL(back.flags, OV_CORRID);
		for (size_t i = 0; i < n; i++)
			CU_ASSERT_NOT_EQUAL(oval_decode(b, i, &back), 0);
	}
}

static void	/* whatever the length, wherever it begins */
the_fast_checksum_is_berkeley_dbs(void)
{
	uint8_t b[5000];
	unsigned r = 1;

	for (size_t i = 0; i < sizeof b; i++)
		b[i] = (uint8_t)((r = r * 1103515245 + 12345) >> 16);
	for (size_t n = 0; n < sizeof b; n += n < 300 ? 1 : 37) {
		const uint8_t *p = b + n % 7;
		size_t len = n < n % 7 ? 0 : n - n % 7;
		uint32_t h = 0;
		for (size_t i = 0; i < len; i++)
			h = h * 33 + p[i];
		CU_ASSERT_EQUAL(checksum_of(p, len), h);
	}
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(first_come_first_served_or_the_other_way_round),
		UNIT(criteria_count_in_their_order),
		UNIT(top_goes_ahead_of_all_and_the_last_one_first),
		UNIT(before_is_directly_ahead_and_nests),
		UNIT(a_chain_of_before_does_not_end),
		UNIT(between_the_last_two_ends_with_an_error),
		UNIT(an_identifier_leads_to_its_key),
		UNIT(records_come_back_and_damaged_ones_do_not),
		UNIT(a_record_of_version_1_is_read), UNIT(order_values_come_back),
		UNIT(the_fast_checksum_is_berkeley_dbs),
	};
	return unit_run("qspace order", tests, UNIT_COUNT(tests));
}
