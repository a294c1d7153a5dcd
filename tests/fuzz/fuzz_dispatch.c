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
	if (which == 11)		/* of another transaction manager */
		x->gtrid[0] = WIRE_GTRID_XID;
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
	snprintf(e.queue, sizeof e.queue, "%s", ONE_OF(queues));
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
		snprintf(e.replyqueue, sizeof e.replyqueue, "%s", ONE_OF(queues));
	if (e.flags & TPQFAILUREQ)
		snprintf(e.failurequeue, sizeof e.failurequeue, "%s", ONE_OF(queues));
	snprintf(e.type, sizeof e.type, "%s", ONE_OF(types));
	e.commits = e.tx.gtrid_len > 0 && byte() % 4 == 0;
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
	snprintf(d.queue, sizeof d.queue, "%s", ONE_OF(queues));
	d.flags = bits(some, sizeof some / sizeof *some);
	name_id(d.msgid);
	d.corrid[0] = byte() % 4;
	d.timeout_ms = word();
	if ((d.nochange = byte() % 8 == 0) != 0)
		snprintf(d.type, sizeof d.type, "%s", ONE_OF(types));
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
		snprintf(q.queue[i], sizeof q.queue[i], "%s", ONE_OF(queues));
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

static const char *const groups[] = { "QUE1", "QUE1", "OTHER", "THIRD", "ALIAS" };

static void
end(void)
{
	static const uint8_t ops[] = { WIRE_TX_COMMIT, WIRE_TX_COMMIT, WIRE_TX_COMMIT, WIRE_TX_ABORT, WIRE_TX_PREPARE, WIRE_TX_PREPARE, WIRE_TX_QUERY,
	    WIRE_TX_FORGET, WIRE_TX_DECIDED, WIRE_TX_START, WIRE_TX_JOIN, WIRE_TX_DOOM };
	static struct wire_txend e;
	struct link_msg *m = ask(true);

	memset(&e, 0, sizeof e);
	e.reqid = last_reqid;
	e.op = ONE_OF(ops);
	tx(&e.tx);
	e.logged = byte() % 2;
	e.timeout_ms = byte() % 2 ? word() : 0;
	e.groups.n = byte() % 5;
	for (int i = 0; i < e.groups.n; i++)
		snprintf(e.groups.name[i], WIRE_GROUP, "%s", i == 0 && byte() % 2 ? "QUE1" : ONE_OF(groups));
	if (byte() % 4 == 0)
		snprintf(e.why.text, sizeof e.why.text, "so it is");
	asked[last_reqid].must = e.op != WIRE_TX_ABORT;		/* the ninth who asks is not heard */
	wire_txend_encode(&frame[n_batch], &e);
	asked_for(m);
}

/* --- the other queue managers --- */

static struct { uint64_t reqid; char group[WIRE_GROUP]; } letter[64];
static unsigned n_letters;
static char sought[2][WIRE_GROUP];	/* and not found yet */

static int
way_send(void *arg, const char *group, const void *head, size_t n)
{
	static struct wire_txend e;

	(void)arg;
	if (wire_txend_decode(head, n, &e) != 0 || strcmp(group, "QUE1") == 0 || strcmp(group, "ALIAS") == 0)
		abort();
	letter[n_letters % 64].reqid = e.reqid;
	snprintf(letter[n_letters++ % 64].group, WIRE_GROUP, "%s", group);
	return n_letters % 7 == 0 ? LINK_TIMEOUT : n_letters % 50 == 0 ? LINK_GONE : LINK_OK;
}

static void
way_find(void *arg, const char *group)
{
	(void)arg;
	snprintf(sought[group[0] == 'T'], WIRE_GROUP, "%s", group);
}

static void
way_drop(void *arg, const char *group)
{
	(void)arg, (void)group;
}

static void	/* one of them does something */
other(void)
{
	static const int errors[] = { 0, 0, 0, 0, TPEABORT, TPEPROTO, TPEHEURISTIC, TPESYSTEM, TPENOENT };
	struct wire_txreply r = { 0 };
	unsigned what = byte() % 8, which = byte();
	const char *group = which % 2 ? "THIRD" : "OTHER";

	if (what < 2 && sought[which % 2][0] != '\0') {
		if (what == 0)
			letters_found(t.letters, sought[which % 2]);
		else
			letters_not_found(t.letters, sought[which % 2], byte() % 2);
		sought[which % 2][0] = '\0';
	} else if (what == 2) {
		letters_broke(t.letters, group);
	} else if (what == 3) {
		letters_room(t.letters, group);
	} else if (n_letters > 0) {
		r.reqid = letter[which % 64].reqid;
		r.error = ONE_OF(errors);
		r.outcome = byte() % (WIRE_OUT_LAST + 1);
		letters_reply(t.letters, letter[which % 64].group, &r);
	}
}

#define IN_HEX(which) "7472616e73616374696f6e206f6620" which	/* the transaction, as administrators write it */

static void
admin(void)
{
	static const char *const ops[] = { "qlist", "qinfo", "qdeletemsg", "qprinttrans", "qcommittrans", "qaborttrans", "qforgettrans", "qchange",
	    "qspacelist", "qopen", "ping", "qset", "nothing" };
	static const char *const keys[] = { "queue", "name", "msgid", "corrid", "time", "priority", "delivery", "cursor", "index",
	    "retries", "delay", "policy", "expiration", "high", "gtrid", "outoforder" };
	static const char *const values[] = { "A", "B", "PRIO", "1", "0", "10-20", "persist", "nonpersist", "+3", "none", "80%", "o", "1:o",
	    "top", "y", "" };
	struct wire_admin a = { 0 };
	struct link_msg *m = ask(true);
	struct record *r = document_add(&a.doc);

	a.reqid = last_reqid;
	snprintf(a.op, sizeof a.op, "%s", ONE_OF(ops));
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
	clock_pass_us((int64_t)byte() * 100000);
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

	snprintf(q.name, sizeof q.name, "%s", name);
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
	struct branch_id id;
	struct wire_groups g;
	size_t n = 0;

	if (qspace_batch_begin(qs) != 0 || qspace_branch_list(qs, &list, &n) != 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		struct branch *b = qspace_branch_find(qs, &list[i].id);
		bool by_hand = list[i].state == BR_HEUR_COMMITTED || list[i].state == BR_HEUR_ROLLED_BACK;
		int rc = b == NULL ? -1 : by_hand ? qspace_branch_forget(qs, b) : qspace_branch_rollback(qs, b);
		if (rc != 0 && rc != QSPACE_AGAIN)	/* again: a large one */
			abort();
	}
	free(list);
	while (qspace_decision_next(qs, NULL, &id, &g) == 0)
		if (qspace_decision_remove(qs, &id) != 0)
			abort();
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

static const struct letter_way way = { NULL, way_send, way_find, way_drop };

static bool
has_left(void *arg, const struct link_peer *peer)
{
	unsigned caller;

	(void)arg;
	memcpy(&caller, peer->id, sizeof caller);
	return gone[caller % CALLERS];
}

static void
begin_anew(void)
{
	memset(asked, 0, sizeof asked);
	memset(gone, 0, sizeof gone);
	memset(known_id, 0, sizeof known_id);
	last_reqid = n_known = 0;
	n_batch = 0;
	n_letters = 0;
	memset(sought, 0, sizeof sought);
	if (tmq_init(&t, qs, "QUE1", 30, catch, NULL) != 0)
		abort();
	t.left = has_left;
	tmq_alias(&t, "ALIAS");
	letters_way(t.letters, &way);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static void (*const does[])(void) = { enqueue, enqueue, enqueue, enqueue, dequeue, dequeue, dequeue, watch, cancel, end, end, end,
	    end, other, other, other, raw, admin, pass_time, run };

	if (qs == NULL)
		space_make();
	begin_anew();
	in = p;
	left = n;
	while (left > 0 && last_reqid < REQUESTS - 1) {
		unsigned what = byte() % 21;

		if (what == 20)
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
