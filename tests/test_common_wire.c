/*
 * wire and wirebuf: one encoding of each struct; nothing else is accepted.
 */
#include "unit.h"
#include "wire.h"

/* --- a table of all kinds, to say things of each --- */

union any {
	struct wire_enqueue enqueue;
	struct wire_dequeue dequeue;
	struct wire_qreply qreply;
	struct wire_qwait qwait;
	struct wire_cancel cancel;
	struct wire_txend txend;
	struct wire_txreply txreply;
	struct wire_call call;
	struct wire_reply reply;
	struct wire_member member;
	struct wire_admin admin;
	struct wire_adminreply adminreply;
};

static unsigned long long seed = 1;

static unsigned	/* pseudo-random, the same in each run */
dice(unsigned sides)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % sides;
}

static void
fill_str(char *to, size_t size, bool may_be_empty)
{
	size_t n = may_be_empty && dice(2) ? 0 : 1 + dice((unsigned)size - 1);

	for (size_t i = 0; i < n; i++)
		to[i] = (char)(1 + dice(255));
	to[n] = '\0';
}

static void
fill_bytes(uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n && dice(4) != 0; i++)
		to[i] = (uint8_t)dice(256);
}

static int64_t
any_number(void)
{
	static const int64_t some[] = { 0, 1, -1, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1796046590000000 };

	return some[dice(sizeof some / sizeof some[0])];
}

static void
fill_tx(struct wire_tx *tx)
{
	tx->gtrid_len = (uint8_t)dice(WIRE_GTRID_MAX + 1);
	fill_bytes(tx->gtrid, tx->gtrid_len);
	if (tx->gtrid_len > 0)
		tx->timeout_ms = (uint32_t)any_number();
}

static void
fill_groups(struct wire_groups *g)
{
	g->n = (uint8_t)dice(WIRE_MAX_GROUPS + 1);
	for (int i = 0; i < g->n; i++)
		fill_str(g->name[i], WIRE_GROUP, true);
}

static void
fill_client(int64_t cltid[4], int64_t *appkey)
{
	for (int i = 0; i < 4; i++)
		cltid[i] = any_number();
	*appkey = any_number();
}

static void
fill_document(struct document *d, unsigned max)
{
	unsigned n = dice(max + 1);
	char key[20], value[200];

	for (unsigned i = 0; i < n; i++) {
		struct record *r = document_add(d);

		for (unsigned k = dice(6); k > 0; k--) {
			fill_str(key, sizeof key, false);
			fill_str(value, sizeof value, true);
			record_set(r, key, value);
		}
	}
}

static void
fill_enqueue(union any *a)
{
	struct wire_enqueue *m = &a->enqueue;

	m->reqid = (uint64_t)any_number();
	fill_tx(&m->tx);
	fill_str(m->queue, sizeof m->queue, true);
	m->flags = (uint32_t)any_number();
	m->deq_time = any_number();
	m->exp_time = any_number();
	m->priority = (int32_t)any_number();
	m->delivery_qos = (int32_t)any_number();
	m->reply_qos = (int32_t)any_number();
	fill_bytes(m->msgid, sizeof m->msgid);
	fill_bytes(m->corrid, sizeof m->corrid);
	fill_str(m->replyqueue, sizeof m->replyqueue, true);
	fill_str(m->failurequeue, sizeof m->failurequeue, true);
	m->urcode = any_number();
	fill_client(m->cltid, &m->appkey);
	fill_str(m->type, sizeof m->type, true);
	fill_str(m->subtype, sizeof m->subtype, true);
	m->timeout_ms = (uint32_t)any_number();
	m->has_body = (uint8_t)dice(2);
	m->commits = m->tx.gtrid_len > 0 && dice(2);
}

static void
fill_dequeue(union any *a)
{
	struct wire_dequeue *m = &a->dequeue;

	m->reqid = (uint64_t)any_number();
	fill_tx(&m->tx);
	fill_str(m->queue, sizeof m->queue, true);
	m->flags = (uint32_t)any_number();
	fill_bytes(m->msgid, sizeof m->msgid);
	fill_bytes(m->corrid, sizeof m->corrid);
	m->timeout_ms = (uint32_t)any_number();
	m->nochange = (uint8_t)dice(2);
	fill_str(m->type, sizeof m->type, true);
	fill_str(m->subtype, sizeof m->subtype, true);
}

static void
fill_qreply(union any *a)
{
	struct wire_qreply *m = &a->qreply;

	m->reqid = (uint64_t)any_number();
	m->error = (int32_t)any_number();
	m->diagnostic = (int32_t)any_number();
	m->doomed = (uint8_t)dice(2);
	fill_str(m->group, sizeof m->group, true);
	m->flags = (uint32_t)any_number();
	fill_bytes(m->msgid, sizeof m->msgid);
	fill_bytes(m->corrid, sizeof m->corrid);
	fill_str(m->replyqueue, sizeof m->replyqueue, true);
	fill_str(m->failurequeue, sizeof m->failurequeue, true);
	m->priority = (int32_t)any_number();
	m->delivery_qos = (int32_t)any_number();
	m->reply_qos = (int32_t)any_number();
	m->urcode = any_number();
	fill_client(m->cltid, &m->appkey);
	fill_str(m->type, sizeof m->type, true);
	fill_str(m->subtype, sizeof m->subtype, true);
	m->has_body = (uint8_t)dice(2);
	fill_str(m->queue, sizeof m->queue, true);
	m->retries = (int32_t)any_number();
}

static void
fill_qwait(union any *a)
{
	struct wire_qwait *m = &a->qwait;

	m->reqid = (uint64_t)any_number();
	m->timeout_ms = (uint32_t)any_number();
	m->n = (uint16_t)(1 + dice(WIRE_MAX_QWAIT));
	for (int i = 0; i < m->n; i++)
		fill_str(m->queue[i], sizeof m->queue[i], true);
}

static void
fill_cancel(union any *a)
{
	a->cancel = (struct wire_cancel){ (uint64_t)any_number(), (uint64_t)any_number() };
}

static void
fill_txend(union any *a)
{
	a->txend.reqid = (uint64_t)any_number();
	a->txend.op = (uint8_t)(WIRE_TX_COMMIT + dice(WIRE_TX_LAST));
	fill_tx(&a->txend.tx);
	a->txend.logged = (uint8_t)dice(2);
	a->txend.timeout_ms = (uint32_t)any_number();
	fill_groups(&a->txend.groups);
	a->txend.why.error = (int32_t)any_number();
	a->txend.why.urcode = any_number();
	fill_str(a->txend.why.text, sizeof a->txend.why.text, true);
	a->txend.uncounted = (uint8_t)dice(2);
}

static void
fill_txreply(union any *a)
{
	a->txreply = (struct wire_txreply){ (uint64_t)any_number(), (int32_t)any_number(), (uint8_t)dice(WIRE_OUT_LAST + 1) };
}

static void
fill_call(union any *a)
{
	struct wire_call *m = &a->call;

	m->reqid = (uint64_t)any_number();
	fill_tx(&m->tx);
	fill_str(m->service, sizeof m->service, true);
	m->flags = (uint32_t)any_number();
	m->priority = (int32_t)any_number();
	fill_client(m->cltid, &m->appkey);
	m->timeout_ms = (uint32_t)any_number();
	fill_str(m->type, sizeof m->type, true);
	fill_str(m->subtype, sizeof m->subtype, true);
	m->has_body = (uint8_t)dice(2);
}

static void
fill_reply(union any *a)
{
	struct wire_reply *m = &a->reply;

	m->reqid = (uint64_t)any_number();
	m->error = (int32_t)any_number();
	m->urcode = any_number();
	m->doomed = (uint8_t)dice(2);
	m->leaving = (uint8_t)dice(2);
	m->more = (uint8_t)dice(2);
	fill_groups(&m->groups);
	fill_str(m->type, sizeof m->type, true);
	fill_str(m->subtype, sizeof m->subtype, true);
	m->has_body = (uint8_t)dice(2);
}

static void
fill_member(union any *a)
{
	struct wire_member *m = &a->member;

	m->op = (uint8_t)(1 + dice(WIRE_MEMBER_LAST));
	if (m->op == WIRE_MEMBER_JOIN) {
		m->srvid = (int32_t)any_number();
		m->pid = (int32_t)any_number();
	} else if (m->op == WIRE_MEMBER_READY) {
		m->reqid = (uint64_t)any_number();
		m->more = (uint16_t)any_number();
	} else if (m->op != WIRE_MEMBER_LEAVE) {
		fill_str(m->service, sizeof m->service, false);
	}
}

static void
fill_admin(union any *a)
{
	a->admin.reqid = (uint64_t)any_number();
	fill_str(a->admin.op, sizeof a->admin.op, false);
	fill_document(&a->admin.doc, 1);
}

static void
fill_adminreply(union any *a)
{
	char text[100];

	a->adminreply.reqid = (uint64_t)any_number();
	a->adminreply.status = (int32_t)any_number();
	fill_str(text, sizeof text, true);
	a->adminreply.text = strdup(text);
	fill_document(&a->adminreply.doc, 9);
}

#define CODEC(k) \
	static void encode_##k(struct wr *w, const union any *a) { wire_##k##_encode(w, &a->k); } \
	static int decode_##k(const uint8_t *p, size_t n, union any *a) { return wire_##k##_decode(p, n, &a->k); }
CODEC(enqueue)
CODEC(dequeue)
CODEC(qreply)
CODEC(qwait)
CODEC(cancel)
CODEC(txend)
CODEC(txreply)
CODEC(call)
CODEC(reply)
CODEC(member)
CODEC(admin)
CODEC(adminreply)

#define KIND(n, k, owns) { n, #k, fill_##k, encode_##k, decode_##k, sizeof(struct wire_##k), owns }
static const struct kind {
	enum wire_kind kind;
	const char *name;
	void (*fill)(union any *);
	void (*encode)(struct wr *, const union any *);
	int (*decode)(const uint8_t *, size_t, union any *);
	size_t size;
	bool owns;		/* memory: not to be compared byte by byte */
} kinds[] = {
	KIND(WIRE_ENQUEUE, enqueue, false), KIND(WIRE_DEQUEUE, dequeue, false), KIND(WIRE_QREPLY, qreply, false),
	KIND(WIRE_QWAIT, qwait, false), KIND(WIRE_CANCEL, cancel, false), KIND(WIRE_TXEND, txend, false),
	KIND(WIRE_TXREPLY, txreply, false), KIND(WIRE_CALL, call, false), KIND(WIRE_REPLY, reply, false),
	KIND(WIRE_ADMIN, admin, true), KIND(WIRE_ADMINREPLY, adminreply, true),
	KIND(WIRE_MEMBER, member, false),
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void
any_free(const struct kind *k, union any *a)
{
	if (k->kind == WIRE_ADMIN)
		document_free(&a->admin.doc);
	if (k->kind == WIRE_ADMINREPLY) {
		document_free(&a->adminreply.doc);
		free(a->adminreply.text);
	}
}

static uint8_t *	/* bytes as they are, at the end of an allocation, so that a read past them is seen */
exact(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n > 0 ? n : 1);

	if (n > 0)
		memcpy(copy, p, n);
	return copy;
}

/* --- the tests --- */

static void
every_struct_comes_back_as_it_went(void)
{
	static union any went, came;
	struct wr w = { 0 }, again = { 0 };

	for (size_t i = 0; i < N_KINDS; i++)
		for (int round = 0; round < 300; round++) {
			const struct kind *k = &kinds[i];
			enum wire_kind seen;
			uint64_t reqid;

			memset(&went, 0, sizeof went);
			memset(&came, 0, sizeof came);
			k->fill(&went);
			k->encode(&w, &went);
			CU_ASSERT_TRUE_FATAL(wr_ok(&w));
			CU_ASSERT_EQUAL_FATAL(k->decode(w.p, w.len, &came), 0);
			CU_ASSERT_TRUE(k->owns || memcmp(&went, &came, k->size) == 0);
			k->encode(&again, &came);
			CU_ASSERT_TRUE(again.len == w.len && memcmp(again.p, w.p, w.len) == 0);
			CU_ASSERT_EQUAL(wire_peek(w.p, w.len, &seen, &reqid), 0);
			CU_ASSERT_TRUE(seen == k->kind && reqid == went.cancel.reqid);
			any_free(k, &went);
			any_free(k, &came);
		}
	wr_free(&w);
	wr_free(&again);
}

static void
every_truncation_is_refused_and_so_is_a_byte_too_many(void)
{
	static union any went, came;
	struct wr w = { 0 };

	for (size_t i = 0; i < N_KINDS; i++)
		for (int round = 0; round < 10; round++) {
			const struct kind *k = &kinds[i];

			memset(&went, 0, sizeof went);
			k->fill(&went);
			k->encode(&w, &went);
			for (size_t n = 0; n < w.len; n++) {
				uint8_t *p = exact(w.p, n);

				CU_ASSERT_EQUAL(k->decode(p, n, &came), -1);
				free(p);
			}
			wr_u8(&w, 0);
			CU_ASSERT_EQUAL(k->decode(w.p, w.len, &came), -1);
			any_free(k, &went);
		}
	wr_free(&w);
}

static void	/* What a decoder accepts is what its encoder writes, whatever the bytes. */
damaged_bytes_are_refused_or_are_another_struct(void)
{
	static union any went, came;
	struct wr w = { 0 }, again = { 0 };

	for (size_t i = 0; i < N_KINDS; i++)
		for (int round = 0; round < 3000; round++) {
			const struct kind *k = &kinds[i];
			uint8_t *p;

			if (round % 50 == 0) {
				memset(&went, 0, sizeof went);
				k->fill(&went);
				k->encode(&w, &went);
				any_free(k, &went);
			}
			p = exact(w.p, w.len);
			for (unsigned hits = 1 + dice(3); hits > 0; hits--) {	/* half of them near the presence mask */
				size_t at = dice(2) ? dice((unsigned)w.len) : 10 + dice(6) % (w.len - 10);

				p[at] ^= (uint8_t)(1u << dice(8));
			}
			if (k->decode(p, w.len, &came) == 0) {
				k->encode(&again, &came);
				CU_ASSERT_TRUE(again.len == w.len && memcmp(again.p, p, w.len) == 0);
				any_free(k, &came);
			}
			free(p);
		}
	wr_free(&w);
	wr_free(&again);
}

static void
random_bytes_are_refused_by_all(void)
{
	static union any came;
	uint8_t bytes[200];

	for (int round = 0; round < 20000; round++) {
		size_t n = dice(sizeof bytes);
		const struct kind *k = &kinds[dice(N_KINDS)];
		uint8_t *p;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)dice(256);
		if (n > 1 && dice(2)) {
			bytes[0] = WIRE_VERSION;
			bytes[1] = (uint8_t)k->kind;
		}
		p = exact(bytes, n);
		if (k->decode(p, n, &came) == 0)
			any_free(k, &came);
		free(p);
	}
	CU_PASS("no read out of bounds");
}

static void
other_versions_and_kinds_are_refused(void)
{
	static union any went, came;
	struct wr w = { 0 };
	enum wire_kind kind;
	uint64_t reqid;

	for (size_t i = 0; i < N_KINDS; i++) {
		memset(&went, 0, sizeof went);
		kinds[i].fill(&went);
		kinds[i].encode(&w, &went);
		w.p[0] = WIRE_VERSION + 1;
		CU_ASSERT_EQUAL(kinds[i].decode(w.p, w.len, &came), -1);
		CU_ASSERT_EQUAL(wire_peek(w.p, w.len, &kind, &reqid), -1);
		w.p[0] = WIRE_VERSION;
		w.p[1] = (uint8_t)(kinds[i].kind + 1);
		CU_ASSERT_EQUAL(kinds[i].decode(w.p, w.len, &came), -1);
		any_free(&kinds[i], &went);
	}
	w.p[1] = 0;
	CU_ASSERT_EQUAL(wire_peek(w.p, w.len, &kind, &reqid), -1);
	w.p[1] = WIRE_LAST + 1;
	CU_ASSERT_EQUAL(wire_peek(w.p, w.len, &kind, &reqid), -1);
	w.p[1] = WIRE_ENQUEUE;
	CU_ASSERT_EQUAL(wire_peek(w.p, 9, &kind, &reqid), -1);
	wr_free(&w);
}

static void
work_in_a_transaction_is_told_by_the_first_bytes(void)
{
	struct wire_dequeue d = { .reqid = 1, .queue = "A" };
	struct wire_enqueue e = { .reqid = 2, .queue = "A" };
	struct wire_txend x = { .reqid = 3, .op = WIRE_TX_COMMIT, .tx.gtrid_len = 4 };
	struct wr w = { 0 };

	wire_dequeue_encode(&w, &d);
	CU_ASSERT_FALSE(wire_is_tentative(w.p, w.len));
	wire_enqueue_encode(&w, &e);
	CU_ASSERT_FALSE(wire_is_tentative(w.p, w.len));
	wire_txend_encode(&w, &x);
	CU_ASSERT_FALSE(wire_is_tentative(w.p, w.len));
	d.tx.gtrid_len = e.tx.gtrid_len = 4;
	wire_dequeue_encode(&w, &d);
	CU_ASSERT_TRUE(wire_is_tentative(w.p, w.len));
	wire_enqueue_encode(&w, &e);
	CU_ASSERT_TRUE(wire_is_tentative(w.p, w.len));
	CU_ASSERT_TRUE(wire_is_tentative(w.p, 14));
	CU_ASSERT_FALSE(wire_is_tentative(w.p, 13));	/* its end is missing, which is for who decodes it */
	e.commits = 1;
	wr_reset(&w);
	wire_enqueue_encode(&w, &e);
	CU_ASSERT_FALSE(wire_is_tentative(w.p, w.len));	/* it writes */
	CU_ASSERT_EQUAL(wire_enqueue_decode(w.p, w.len, &e), 0);
	e.tx.gtrid_len = 0;
	wr_reset(&w);
	wire_enqueue_encode(&w, &e);
	CU_ASSERT_EQUAL(wire_enqueue_decode(w.p, w.len, &e), -1);	/* there is nothing to commit */
	wr_reset(&w);
	wire_dequeue_encode(&w, &d);
	w.p[0]++;
	CU_ASSERT_FALSE(wire_is_tentative(w.p, w.len));
	wr_free(&w);
}

static void
what_is_not_said_costs_no_bytes(void)
{
	struct wire_enqueue e = { .reqid = 7, .queue = "Q", .type = "STRING", .has_body = 1 };
	struct wire_dequeue d = { .reqid = 7, .queue = "Q" };
	struct wire_qreply r = { .reqid = 7 };
	struct wr w = { 0 };

	wire_enqueue_encode(&w, &e);
	CU_ASSERT_EQUAL(w.len, 10 + 4 + 4 + 3 + 8);
	wire_dequeue_encode(&w, &d);
	CU_ASSERT_EQUAL(w.len, 10 + 4 + 4 + 3);
	wire_qreply_encode(&w, &r);
	CU_ASSERT_EQUAL(w.len, 10 + 4 + 4 + 4);
	CU_ASSERT_EQUAL(w.cap, 256);
	wr_free(&w);
}

static void
a_field_that_says_nothing_is_refused(void)
{
	struct wire_qreply r = { .reqid = 7, .diagnostic = -11 }, came;
	struct wr w = { 0 };

	wire_qreply_encode(&w, &r);
	memset(w.p + w.len - 4, 0, 4);	/* the diagnostic: its presence bit stays on */
	CU_ASSERT_EQUAL(wire_qreply_decode(w.p, w.len, &came), -1);
	wr_free(&w);
}

static void
strings_that_do_not_fit_are_refused(void)
{
	struct wire_cancel start = { .reqid = 1 };
	struct wire_call came;
	char name[WIRE_NAME + 1];
	struct wr w = { 0 };

	memset(name, 'x', sizeof name);
	name[WIRE_NAME] = '\0';
	wire_cancel_encode(&w, &start);
	w.p[1] = WIRE_CALL;
	memset(w.p + 10, 0, 8);		/* no presence bits, no flags */
	wr_str(&w, name);
	CU_ASSERT_EQUAL(wire_call_decode(w.p, w.len, &came), -1);
	w.len = 18;
	name[WIRE_NAME - 1] = '\0';
	wr_str(&w, name);
	CU_ASSERT_EQUAL(wire_call_decode(w.p, w.len, &came), 0);
	w.p[30] = '\0';			/* inside the name */
	CU_ASSERT_EQUAL(wire_call_decode(w.p, w.len, &came), -1);
	wr_free(&w);
}

static void
counts_out_of_bounds_are_not_encoded(void)
{
	static struct wire_qwait q = { .n = WIRE_MAX_QWAIT + 1 };
	static struct wire_reply r = { .groups = { .n = WIRE_MAX_GROUPS + 1 } };
	struct wire_dequeue d = { .tx = { .gtrid_len = WIRE_GTRID_MAX + 1 } };
	struct wr w = { 0 };

	wire_qwait_encode(&w, &q);
	CU_ASSERT_FALSE(wr_ok(&w));
	wire_reply_encode(&w, &r);
	CU_ASSERT_FALSE(wr_ok(&w));
	wire_dequeue_encode(&w, &d);
	CU_ASSERT_FALSE(wr_ok(&w));
	wr_free(&w);
}

static void
documents_hold_records_of_named_values(void)
{
	struct document d = { 0 };
	struct record *r;
	char key[16];

	for (int i = 0; i < 100; i++) {
		r = document_add(&d);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		for (int k = 0; k < 20; k++) {
			snprintf(key, sizeof key, "key%d", k);
			CU_ASSERT_EQUAL(record_setf(r, key, "%d", i * k), 0);
		}
	}
	r = &d.rec[99];
	CU_ASSERT_EQUAL(record_long(r, "key19", -1), 99 * 19);
	CU_ASSERT_EQUAL(record_set(r, "key19", "other"), 0);
	CU_ASSERT_STRING_EQUAL(record_get(r, "key19"), "other");
	CU_ASSERT_EQUAL(r->n, 20);
	CU_ASSERT_EQUAL(record_long(r, "key19", -1), -1);
	CU_ASSERT_EQUAL(record_long(r, "absent", 5), 5);
	CU_ASSERT_PTR_NULL(record_get(r, "absent"));
	document_free(&d);
	document_free(&d);
	CU_ASSERT_EQUAL(d.n, 0);
}

static void	/* A frame of a few bytes that speaks of 2^32 records. */
lies_about_counts_cost_no_memory(void)
{
	struct wire_adminreply r = { .reqid = 1 }, came;
	struct wr w = { 0 };

	wire_adminreply_encode(&w, &r);
	memset(w.p + w.len - 4, 0xff, 4);
	CU_ASSERT_EQUAL(wire_adminreply_decode(w.p, w.len, &came), -1);
	CU_ASSERT_PTR_NULL(came.text);
	CU_ASSERT_EQUAL(came.doc.n, 0);
	wr_free(&w);
}

static void	/* ADMIN's document is the arguments: one record. */
an_admin_request_with_two_records_is_refused(void)
{
	struct wire_admin q = { .reqid = 1, .op = "psr" }, came;
	struct wr w = { 0 };

	document_add(&q.doc);
	document_add(&q.doc);
	wire_admin_encode(&w, &q);
	CU_ASSERT_EQUAL(wire_admin_decode(w.p, w.len, &came), -1);
	document_free(&q.doc);
	wr_free(&w);
}

static void
a_read_past_the_end_gives_zero_and_stays_bad(void)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	struct rd r = { .p = bytes, .left = sizeof bytes };
	char s[4] = "abc";

	CU_ASSERT_EQUAL(rd_u32(&r), 0x01020304);
	CU_ASSERT_FALSE(rd_clean_end(&r));
	CU_ASSERT_EQUAL(rd_u16(&r), 0);
	CU_ASSERT_TRUE(r.bad);
	CU_ASSERT_EQUAL(rd_u8(&r), 0);
	CU_ASSERT_PTR_NULL(rd_view(&r, 1));
	rd_copy(&r, s, sizeof s);
	CU_ASSERT_EQUAL(s[0], 0);
	rd_str(&r, s, sizeof s);
	CU_ASSERT_STRING_EQUAL(s, "");
	CU_ASSERT_PTR_NULL(rd_strdup(&r));
	CU_ASSERT_FALSE(rd_clean_end(&r));
}

static void
integers_are_big_endian(void)
{
	struct wr w = { 0 };
	struct rd r;

	wr_u16(&w, 0x0102);
	wr_u64(&w, 0x0304050607080900);
	for (int i = 0; i < 9; i++)
		CU_ASSERT_EQUAL(w.p[i], i + 1);
	r = (struct rd){ .p = w.p, .left = w.len };
	CU_ASSERT_EQUAL(rd_u16(&r), 0x0102);
	CU_ASSERT_EQUAL(rd_u64(&r), 0x0304050607080900);
	CU_ASSERT_TRUE(rd_clean_end(&r));
	wr_free(&w);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(every_struct_comes_back_as_it_went),
		UNIT(every_truncation_is_refused_and_so_is_a_byte_too_many),
		UNIT(damaged_bytes_are_refused_or_are_another_struct),
		UNIT(random_bytes_are_refused_by_all),
		UNIT(other_versions_and_kinds_are_refused),
		UNIT(work_in_a_transaction_is_told_by_the_first_bytes), UNIT(what_is_not_said_costs_no_bytes),
		UNIT(a_field_that_says_nothing_is_refused),
		UNIT(strings_that_do_not_fit_are_refused),
		UNIT(counts_out_of_bounds_are_not_encoded),
		UNIT(documents_hold_records_of_named_values),
		UNIT(lies_about_counts_cost_no_memory),
		UNIT(an_admin_request_with_two_records_is_refused),
		UNIT(a_read_past_the_end_gives_zero_and_stays_bad),
		UNIT(integers_are_big_endian),
	};

	return unit_run("wire", tests, UNIT_COUNT(tests));
}
