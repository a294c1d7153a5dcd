/*
 * A queue manager over a real queue space (in memory), asked whatever the bytes say: well-formed requests in any order and
 * combination, some frames that are no request, batches, callers that are gone, time that passes.
 *
 * Every well-formed request is answered once, with a frame that decodes; when all transactions have ended nothing is held,
 * and the counters of each queue are what a walk over its messages finds.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "tmqueue.h"

enum { REQUESTS = 512, CALLERS = 8 };

/* Berkeley DB reaches the pages of its cache by offsets, which the leak checker cannot follow. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libdb"; }

static char dir[] = "/dev/shm/fuzz_dispatch.XXXXXX", device[64];
static struct qspace *qs;
static struct tmq t;

/* --- what the bytes say --- */

static const uint8_t *in;
static size_t left;

static uint8_t
byte(void)
{
	return left == 0 ? 0 : (left--, *in++);
}

static uint32_t
word(void)
{
	uint32_t a = byte(), b = byte();

	return a << 8 | b;
}

#define ONE_OF(table) (table)[byte() % (sizeof (table) / sizeof *(table))]
static const char *const queues[] = { "A", "A", "A", "B", "B", "PRIO", "ERRQ", "NOSUCH" };
static const char *const types[] = { "STRING", "CARRAY", "X_OCTET", "" };

static uint32_t	/* mostly few of them */
bits(const uint32_t *of, size_t n)
{
	uint32_t flags = 0;

	for (unsigned few = byte() % 4; few > 0; few--)
		flags |= of[byte() % n];
	return byte() == 255 ? word() << 16 | word() : flags;
}

/* --- who asked, and what was answered --- */

static struct { bool must; int answers; unsigned caller; } asked[REQUESTS];
static uint64_t last_reqid;
static uint8_t known_id[8][TMMSGIDLEN];	/* of messages, so that some requests name one */
static unsigned n_known;
static bool gone[CALLERS];

static void
answered(uint64_t reqid)
{
	assert(reqid > 0 && reqid < REQUESTS && reqid <= last_reqid);
	assert(asked[reqid].answers++ == 0);
}

static void
catch_queue(const void *head, size_t n)
{
	static struct wire_qreply q;
	int rc = wire_qreply_decode(head, n, &q);

	assert(rc == 0);
	answered(q.reqid);
	if (q.error == 0 && (q.flags & TPQMSGID))
		memcpy(known_id[n_known++ % 8], q.msgid, TMMSGIDLEN);
}

static int
catch(void *arg, const struct link_peer *to, const void *head, size_t n, const struct link_body *body)
{
	static struct wire_txreply x;
	static struct wire_reply r;
	struct wire_adminreply a;
	enum wire_kind kind;
	uint64_t reqid;
	unsigned caller;

	(void)arg;
	if (wire_peek(head, n, &kind, &reqid) != 0)
		abort();
	if (body != NULL) {
		unsigned sum = 0;
		for (size_t i = 0; i < body->n; i++)
			sum += ((const uint8_t *)body->p)[i];
		assert(sum <= 255 * body->n);
		if (body->release != NULL)
			body->release((void *)(uintptr_t)body->p, body->hint);
	}
	memcpy(&caller, to->id, sizeof caller);
	if (kind == WIRE_QREPLY && reqid == 0)		/* is the caller still there? */
		return gone[caller % CALLERS] ? LINK_GONE : LINK_OK;
	if (kind == WIRE_QREPLY)
		catch_queue(head, n);
	else if (kind == WIRE_TXREPLY) {
		if (wire_txreply_decode(head, n, &x) != 0)
			abort();
		answered(x.reqid);
	} else if (kind == WIRE_REPLY) {
		if (wire_reply_decode(head, n, &r) != 0)
			abort();
		answered(r.reqid);
	} else {
		if (kind != WIRE_ADMINREPLY || wire_adminreply_decode(head, n, &a) != 0)
			abort();
		answered(a.reqid);
		free(a.text);
		document_free(&a.doc);
	}
	return gone[caller % CALLERS] ? LINK_GONE : LINK_OK;
}

/* --- requests --- */

static struct link_msg batch[BATCH_MAX];
static struct wr frame[BATCH_MAX];
static uint8_t body[8192];
static size_t n_batch;

static void
run(void)
{
	batch_run(&t, batch, n_batch);
	n_batch = 0;
	for (int i = 0; i < 100 && batch_more(&t); i++)
		batch_run(&t, batch, 0);
}

static struct link_msg *
ask(bool must)
{
	struct link_msg *m;
	unsigned caller = byte() % CALLERS;

	if (n_batch == 64)
		run();
	m = &batch[n_batch];
	memset(m, 0, sizeof *m);
	m->peer.n = sizeof caller;
	memcpy(m->peer.id, &caller, sizeof caller);
	wr_reset(&frame[n_batch]);
	last_reqid++;
	asked[last_reqid].must = must;
	asked[last_reqid].caller = caller;
	return m;
}

static void
asked_for(struct link_msg *m)
{
	m->head = frame[n_batch].p;
	m->head_len = frame[n_batch].len;
	n_batch++;
}

static void
tx(struct wire_tx *x)
{
	unsigned which = byte() % 12;

	if (which < 6)
		return;
	x->gtrid_len = 16;
	memcpy(x->gtrid, "transaction of it", 16);
	x->gtrid[15] = (uint8_t)which;
	x->timeout_ms = byte() < 128 ? 30000 : word();
}

static void
name_id(uint8_t *id)
{
	unsigned which = byte();

	memset(id, 0, TMMSGIDLEN);
	if (which < 200)
		memcpy(id, known_id[which % 8], TMMSGIDLEN);
	else
		for (unsigned n = which % 33; n > 0; n--)
			id[n - 1] = byte();
}

static void
enqueue(void)
{
	static const uint32_t some[] = { TPQMSGID, TPQCORRID, TPQREPLYQ, TPQFAILUREQ, TPQPRIORITY, TPQDELIVERYQOS, TPQREPLYQOS,
	    TPQTIME_ABS, TPQTIME_REL, TPQEXPTIME_ABS, TPQEXPTIME_REL, TPQEXPTIME_NONE, TPQTOP, TPQBEFOREMSGID };
	static struct wire_enqueue e;
	struct link_msg *m = ask(true);

	memset(&e, 0, sizeof e);
	e.reqid = last_reqid;
	tx(&e.tx);
	strcpy(e.queue, ONE_OF(queues));
	e.flags = bits(some, sizeof some / sizeof *some) | TPQMSGID;
	if (e.flags & TPQTIME_REL)
		e.deq_time = byte() % 8;
	if (e.flags & TPQTIME_ABS)
		e.deq_time = clock_now_us() / 1000000 + byte() % 16 - 4;
	if (e.flags & TPQEXPTIME_REL)
		e.exp_time = byte() % 8;
	if (e.flags & TPQEXPTIME_ABS)
		e.exp_time = clock_now_us() / 1000000 + byte() % 16 - 4;
	if (e.flags & TPQPRIORITY)
		e.priority = byte();
	if (e.flags & TPQDELIVERYQOS)
		e.delivery_qos = byte() % 4;
	if (e.flags & TPQREPLYQOS)
		e.reply_qos = byte() % 4;
	if (e.flags & TPQBEFOREMSGID)
		name_id(e.msgid);
	if (e.flags & TPQCORRID)
		e.corrid[0] = byte() % 4;
	if (e.flags & TPQREPLYQ)
		strcpy(e.replyqueue, ONE_OF(queues));
	if (e.flags & TPQFAILUREQ)
		strcpy(e.failurequeue, ONE_OF(queues));
	strcpy(e.type, ONE_OF(types));
	e.has_body = e.type[0] != '\0' && byte() % 8 != 0;
	wire_enqueue_encode(&frame[n_batch], &e);
	m->has_body = e.has_body;
	m->body = body;
	m->body_len = !e.has_body ? 0 : byte() < 240 ? byte() : word() % sizeof body;
	asked_for(m);
}

static void
dequeue(void)
{
	static const uint32_t some[] = { TPQWAIT, TPQPEEK, TPQGETBYMSGID, TPQGETBYCORRID, TPQGETBYMSGIDOLD, TPQGETBYCORRIDOLD,
	    WIRE_QDELAYED | TPQGETBYMSGID, TPQMSGID };
	static struct wire_dequeue d;
	struct link_msg *m = ask(true);

	memset(&d, 0, sizeof d);
	d.reqid = last_reqid;
	tx(&d.tx);
	strcpy(d.queue, ONE_OF(queues));
	d.flags = bits(some, sizeof some / sizeof *some);
	name_id(d.msgid);
	d.corrid[0] = byte() % 4;
	d.timeout_ms = word();
	if ((d.nochange = byte() % 8 == 0) != 0)
		strcpy(d.type, ONE_OF(types));
	wire_dequeue_encode(&frame[n_batch], &d);
	asked_for(m);
}

static void
watch(void)
{
	static struct wire_qwait q;
	struct link_msg *m = ask(true);

	memset(&q, 0, sizeof q);
	q.reqid = last_reqid;
	q.timeout_ms = word();
	q.n = byte() % 4;
	for (int i = 0; i < q.n; i++)
		strcpy(q.queue[i], ONE_OF(queues));
	asked[last_reqid].must = q.n > 0;
	wire_qwait_encode(&frame[n_batch], &q);
	asked_for(m);
}

static void
cancel(void)
{
	struct wire_cancel c = { .target = last_reqid - byte() % 8 };
	struct link_msg *m = ask(false);

	c.reqid = last_reqid;
	if (c.target > 0 && c.target < last_reqid)
		asked[c.target].must = false;
	wire_cancel_encode(&frame[n_batch], &c);
	asked_for(m);
}

static void
end(void)
{
	static const uint8_t ops[] = { WIRE_TX_COMMIT, WIRE_TX_COMMIT, WIRE_TX_ABORT, WIRE_TX_PREPARE, WIRE_TX_QUERY, WIRE_TX_FORGET };
	static struct wire_txend e;
	struct link_msg *m = ask(false);

	memset(&e, 0, sizeof e);
	e.reqid = last_reqid;
	e.op = ONE_OF(ops);
	tx(&e.tx);
	e.logged = byte() % 2;
	e.groups.n = byte() % 4 == 0 ? 2 : 1;
	strcpy(e.groups.name[0], byte() % 8 == 0 ? "OTHER" : "QUE1");
	strcpy(e.groups.name[1], "THIRD");
	wire_txend_encode(&frame[n_batch], &e);
	asked_for(m);
}

static void
admin(void)
{
	static const char *const ops[] = { "qlist", "qinfo", "qdeletemsg", "qprinttrans", "qcommittrans", "qaborttrans", "qchange",
	    "qspacelist", "qopen", "ping", "qset", "nothing" };
	static const char *const keys[] = { "queue", "name", "msgid", "corrid", "time", "priority", "delivery", "cursor", "index",
	    "retries", "delay", "policy", "expiration", "high", "gtrid", "outoforder" };
	static const char *const values[] = { "A", "B", "PRIO", "1", "0", "10-20", "persist", "nonpersist", "+3", "none", "80%", "o", "1:o",
	    "top", "y", "" };
	struct wire_admin a = { 0 };
	struct link_msg *m = ask(true);
	struct record *r = document_add(&a.doc);

	a.reqid = last_reqid;
	strcpy(a.op, ONE_OF(ops));
	for (int n = byte() % 4; n > 0; n--) {
		const char *key = ONE_OF(keys);
		if (r == NULL || record_set(r, key, ONE_OF(values)) != 0)
			abort();
	}
	wire_admin_encode(&frame[n_batch], &a);
	document_free(&a.doc);
	asked_for(m);
}

static void	/* bytes that may be a frame of some kind; a request that they make is not one of ours */
raw(void)
{
	struct link_msg *m = ask(false);
	uint8_t bytes[300];
	size_t n = byte();

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte();
	if (n >= 10) {
		bytes[0] = WIRE_VERSION;
		bytes[1] = (uint8_t)(bytes[1] % 16);
		memset(bytes + 2, 0, 8);
		bytes[8] = (uint8_t)(last_reqid >> 8);
		bytes[9] = (uint8_t)last_reqid;
	}
	for (size_t i = 0; i < n; i++)
		wr_u8(&frame[n_batch], bytes[i]);
	m->has_body = n % 2;
	m->body = body;
	m->body_len = n % 2 ? n : 0;
	asked_for(m);
}

static void
pass_time(void)
{
	run();
	clock_shift_us((int64_t)byte() * 100000);
}

/* --- around it --- */

static void
dir_gone(void)
{
	char cmd[64];

	qspace_close(qs);
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	(void)!system(cmd);
}

static struct document
admin_run(const char *op, const char *k1, const char *v1, const char *k2, const char *v2)
{
	struct document args = { 0 }, out;
	struct record *r = document_add(&args);
	char *why = NULL;

	if (r == NULL || record_set(r, k1, v1) != 0 || (v2 != NULL && record_set(r, k2, v2) != 0))
		abort();
	if (qadmin_run(qs, op, r, &out, &why) != 0) {
		fprintf(stderr, "%s %s: %s\n", op, v1, why);
		abort();
	}
	document_free(&args);
	return out;
}

static void
queue_make(const char *name, uint8_t first, long retries, long delay, int64_t expiration)
{
	struct queue_params q = { .order = { first, first == QC_PRIORITY ? QC_FIFO : QC_NONE }, .top = true, .msgid = true,
	    .retries = retries, .retry_delay = delay, .default_expiration = expiration,
	    .persistent = { 100, 0, '%', "" }, .nonpersistent = { 100, 0, '%', "" } };

	strcpy(q.name, name);
	if (qspace_batch_begin(qs) != 0 || qspace_queue_create(qs, &q) != 0 || qspace_batch_commit(qs) != 0)
		abort();
}

static void
queues_make(void)
{
	queue_make("A", QC_FIFO, 2, 0, -1);
	queue_make("B", QC_LIFO, 3, 1, -1);
	queue_make("PRIO", QC_PRIORITY, 0, 0, 20);
	queue_make("ERRQ", QC_FIFO, 0, 0, -1);
}

static void
space_make(void)
{
	struct qspace_params p = { .name = "QSPACE", .ipckey = 61000, .pages = 4000, .queues = 10, .trans = 4, .procs = 10,
	    .messages = 60, .errorq = "ERRQ", .nonpersistent_bytes = 20000, .actions = 10 };
	char *why = NULL;

	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	if (mkdtemp(dir) == NULL)
		abort();
	snprintf(device, sizeof device, "%s/QUE", dir);
	if (device_add(device, NULL, 0, 10000, NULL, NULL) != 0 || qspace_create(device, &p, &why) != 0 ||
	    qspace_open(device, "QSPACE", NULL, &qs, &why) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	atexit(dir_gone);
	queues_make();
}

static void
transactions_end(void)
{
	struct branch_info *list = NULL;
	size_t n = 0;

	if (qspace_batch_begin(qs) != 0 || qspace_branch_list(qs, &list, &n) != 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		struct branch *b = qspace_branch_find(qs, &list[i].id);
		if (b == NULL || qspace_branch_rollback(qs, b) != 0)
			abort();
	}
	free(list);
	if (qspace_batch_commit(qs) != 0)
		abort();
}

static void	/* counters against a walk; then everything goes */
queue_check(const char *name)
{
	char cursor[400] = "";
	struct queue_stat st;
	long n = 0;
	bool more;

	if (qspace_queue_get(qs, name, NULL, &st) != 0)
		abort();
	do {
		struct document d = admin_run("qlist", "queue", name, "cursor", *cursor != '\0' ? cursor : NULL);
		const char *next = record_get(&d.rec[0], "cursor");

		n += (long)d.n - 1;
		more = next != NULL;
		snprintf(cursor, sizeof cursor, "%s", more ? next : "");
		document_free(&d);
	} while (more);
	if (st.held != 0 || n != st.messages + st.np_messages) {
		fprintf(stderr, "%s: %ld messages on a walk, counted %lld and %lld, held %lld\n", name, n, (long long)st.messages,
		    (long long)st.np_messages, (long long)st.held);
		abort();
	}
	for (more = true; more;) {
		struct document d = admin_run("qdestroy", "name", name, "purge", "y");

		more = record_get(&d.rec[0], "cursor") != NULL;
		document_free(&d);
	}
}

static void
begin_anew(void)
{
	memset(asked, 0, sizeof asked);
	memset(gone, 0, sizeof gone);
	memset(known_id, 0, sizeof known_id);
	last_reqid = n_known = 0;
	n_batch = 0;
	if (tmq_init(&t, qs, "QUE1", 30, catch, NULL) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static void (*const does[])(void) = { enqueue, enqueue, enqueue, enqueue, dequeue, dequeue, dequeue, watch, cancel, end, end, end,
	    raw, admin, pass_time, run };

	if (qs == NULL)
		space_make();
	begin_anew();
	in = p;
	left = n;
	while (left > 0 && last_reqid < REQUESTS - 1) {
		unsigned what = byte() % 17;

		if (what == 16)
			gone[byte() % CALLERS] = true;
		else
			does[what]();
	}
	run();
	tmq_dismiss(&t);
	qspace_on_eligible(qs, NULL, NULL);
	tmq_done(&t);
	for (uint64_t i = 1; i <= last_reqid; i++)
		if (asked[i].must && !gone[asked[i].caller] && asked[i].answers != 1) {
			fprintf(stderr, "request %llu of %llu got no answer\n", (unsigned long long)i, (unsigned long long)last_reqid);
			abort();
		}
	transactions_end();
	for (size_t i = 0; i < 4; i++)
		queue_check(((const char *[]){ "A", "B", "PRIO", "ERRQ" })[i]);
	queues_make();
	return 0;
}
