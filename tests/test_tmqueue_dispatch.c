/*
 * A queue manager over a real queue space, without sockets: frames are given to it by hand, and what it would send is
 * looked at.
 */
#include <errno.h>
#include <ftw.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "tmqueue.h"
#include "ulog.h"
#include "unit.h"

extern int (*env_fault)(int fd, size_t n);	/* the engine's door for failed writes */

static struct tmq t;
static struct qspace *qs;
static char dir[] = "/tmp/tmqdispXXXXXX", device[64];
static const char *serving = "QUE1";

/* --- what was sent --- */

struct sent { unsigned to; bool probe, has_body, tx; uint64_t flushes; struct wire_qreply q; struct wire_txreply x; char body[256]; };
static struct sent out[8192];
static size_t n_out;
static unsigned gone;		/* this peer is dead; 0: nobody */
static int gone_how;		/* what a send to it returns */
static int seen_alive;		/* but it was alive when it was looked at so often */
static uint64_t flushes_at_send;

static int
catch(void *arg, const struct link_peer *to, const void *head, size_t head_len, const struct link_body *body)
{
	struct sent *s = &out[n_out];
	struct qspace_counts c;
	enum wire_kind kind;
	uint64_t reqid;

	(void)arg;
	memset(s, 0, sizeof *s);
	memcpy(&s->to, to->id, sizeof s->to);
	qspace_counts(qs, &c);
	s->flushes = flushes_at_send = c.flushes;
	CU_ASSERT_EQUAL_FATAL(wire_peek(head, head_len, &kind, &reqid), 0);
	if (kind == WIRE_QREPLY)
		CU_ASSERT_EQUAL(wire_qreply_decode(head, head_len, &s->q), 0);
	if (kind == WIRE_TXREPLY) {
		s->tx = true;
		CU_ASSERT_EQUAL(wire_txreply_decode(head, head_len, &s->x), 0);
	}
	if (body != NULL) {
		s->has_body = true;
		memcpy(s->body, body->p, body->n < sizeof s->body ? body->n : sizeof s->body - 1);
		body->release((void *)(uintptr_t)body->p, body->hint);
	}
	if (s->to == gone && gone != 0)
		return gone_how;
	if (reqid != 0)
		n_out++;
	return LINK_OK;
}

static bool
is_gone(void *arg, const struct link_peer *peer)
{
	(void)arg;
	return gone != 0 && memcmp(peer->id, &gone, sizeof gone) == 0 && seen_alive-- <= 0;
}

static struct sent *	/* the answer to this request; NULL: none yet */
answer(uint64_t reqid)
{
	for (size_t i = n_out; i-- > 0;)
		if ((out[i].tx ? out[i].x.reqid : out[i].q.reqid) == reqid)
			return &out[i];
	return NULL;
}

#define ERROR_OF(reqid) (answer(reqid) != NULL ? answer(reqid)->q.error : -1)
#define DIAGNOSTIC_OF(reqid) (answer(reqid) != NULL ? answer(reqid)->q.diagnostic : -1)

/* --- what is asked --- */

static struct link_msg asked[BATCH_MAX];
static struct wr frame[BATCH_MAX];
static size_t n_asked;

static struct link_msg *
ask(unsigned from)
{
	struct link_msg *m = &asked[n_asked++];

	memset(m, 0, sizeof *m);
	m->peer.n = sizeof from;
	memcpy(m->peer.id, &from, sizeof from);
	return m;
}

static void
ask_done(struct link_msg *m)
{
	m->head = frame[n_asked - 1].p;
	m->head_len = frame[n_asked - 1].len;
}

static struct wr *
ask_frame(void)
{
	wr_reset(&frame[n_asked - 1]);
	return &frame[n_asked - 1];
}

static void
in_tx(struct wire_tx *tx, const char *name, uint32_t timeout_ms)
{
	if (name == NULL)
		return;
	tx->gtrid_len = 16;
	memcpy(tx->gtrid, name, strlen(name));
	tx->timeout_ms = timeout_ms;
}

static void
ask_enqueue_as(uint64_t reqid, const char *queue, const char *text, const char *tx, const char *corrid)
{
	struct wire_enqueue e = { .reqid = reqid, .flags = TPQMSGID, .has_body = 1, .type = "STRING" };
	struct link_msg *m = ask((unsigned)reqid);

	snprintf(e.queue, sizeof e.queue, "%s", queue);
	in_tx(&e.tx, tx, 60000);
	if (corrid != NULL) {
		e.flags |= TPQCORRID;
		memcpy(e.corrid, corrid, strlen(corrid));
	}
	m->body = (const uint8_t *)text;
	m->body_len = strlen(text) + 1;
	m->has_body = true;
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
}

static void
ask_enqueue(uint64_t reqid, const char *queue, const char *text)
{
	ask_enqueue_as(reqid, queue, text, NULL, NULL);
}

static void
ask_dequeue_as(uint64_t reqid, const char *queue, uint32_t flags, const char *tx, uint32_t tx_ms, const char *corrid)
{
	struct wire_dequeue d = { .reqid = reqid, .flags = flags };
	struct link_msg *m = ask((unsigned)reqid);

	snprintf(d.queue, sizeof d.queue, "%s", queue);
	in_tx(&d.tx, tx, tx_ms);
	if (corrid != NULL) {
		d.flags |= TPQGETBYCORRID;
		memcpy(d.corrid, corrid, strlen(corrid));
	}
	wire_dequeue_encode(ask_frame(), &d);
	ask_done(m);
}

static void
ask_dequeue(uint64_t reqid, const char *queue, uint32_t flags)
{
	ask_dequeue_as(reqid, queue, flags, NULL, 0, NULL);
}

static void
ask_end(uint64_t reqid, enum wire_txop op, const char *tx)
{
	struct wire_txend e = { .reqid = reqid, .op = (uint8_t)op };
	struct link_msg *m = ask((unsigned)reqid);

	in_tx(&e.tx, tx, 0);
	e.groups.n = 1;
	snprintf(e.groups.name[0], sizeof e.groups.name[0], "QUE1");
	wire_txend_encode(ask_frame(), &e);
	ask_done(m);
}

static void
ask_watch(uint64_t reqid, const char *queue, uint32_t timeout_ms)
{
	struct wire_qwait w = { .reqid = reqid, .n = 1, .timeout_ms = timeout_ms };
	struct link_msg *m = ask((unsigned)reqid);

	snprintf(w.queue[0], sizeof w.queue[0], "%s", queue);
	wire_qwait_encode(ask_frame(), &w);
	ask_done(m);
}

static void
run(void)	/* what was asked, as one batch, and what follows from it */
{
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	while (batch_more(&t))
		batch_run(&t, NULL, 0);
}

/* --- the space --- */

static void
given_queue(const char *name, long retries)
{
	struct queue_params p = { .order = { QC_FIFO }, .retries = retries, .default_expiration = -1 };

	snprintf(p.name, sizeof p.name, "%s", name);
	p.persistent = p.nonpersistent = (struct threshold){ 100, 0, '%', "" };
	CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_create(qs, &p), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_batch_commit(qs), 0);
}

static void
given_space(long actions)
{
	struct qspace_params p = { .name = "QSPACE", .ipckey = 61000, .pages = 8000, .queues = 8, .trans = 50, .procs = 10,
	    .messages = 4000, .errorq = "ERRQ", .blocking = 16, .actions = actions };
	char *why = NULL;

	unlink(device);
	CU_ASSERT_EQUAL_FATAL(device_add(device, NULL, 0, 10000, NULL, NULL), 0);
	if (qspace_create(device, &p, &why) != 0 || qspace_open(device, "QSPACE", NULL, &qs, &why) != 0)
		printf("%s\n", why != NULL ? why : "?");
	CU_ASSERT_PTR_NOT_NULL_FATAL(qs);
	given_queue("A", 5);
	given_queue("B", 0);
	given_queue("ERRQ", 0);
	n_out = n_asked = 0;
	gone = 0;
	gone_how = LINK_GONE;
	seen_alive = 0;
	CU_ASSERT_EQUAL_FATAL(tmq_init(&t, qs, serving, 30, catch, NULL), 0);
	t.left = is_gone;
}

static void
space_done(void)
{
	tmq_dismiss(&t);
	qspace_close(qs);
	qs = NULL;
	tmq_done(&t);
}

/* --- stories --- */

static void
message_comes_out_as_it_went_in(void)
{
	given_space(0);
	ask_enqueue_as(1, "A", "two boxes of nails", NULL, "order 7");
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	CU_ASSERT_STRING_EQUAL(answer(1)->q.group, "");
	ask_dequeue(2, "A", 0);
	ask_dequeue(3, "A", 0);
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "two boxes of nails");
	CU_ASSERT_STRING_EQUAL(answer(2)->q.type, "STRING");
	CU_ASSERT_STRING_EQUAL((char *)answer(2)->q.corrid, "order 7");
	CU_ASSERT_EQUAL(memcmp(answer(1)->q.msgid, answer(2)->q.msgid, TMMSGIDLEN), 0);
	CU_ASSERT_EQUAL(ERROR_OF(3), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(3), QMENOMSG);
	space_done();
}

static void
batch_is_flushed_once_and_before_any_answer(void)
{
	struct qspace_counts before, after;

	given_space(0);
	qspace_counts(qs, &before);
	for (unsigned i = 1; i <= 100; i++)
		ask_enqueue(i, "A", "x");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	qspace_counts(qs, &after);
	CU_ASSERT_EQUAL(after.flushes, before.flushes + 1);
	CU_ASSERT_EQUAL(n_out, 100);
	CU_ASSERT_EQUAL(flushes_at_send, after.flushes);
	space_done();
}

static void
unknown_queue_is_told_at_once(void)
{
	given_space(0);
	ask_dequeue(1, "NOPE", TPQWAIT);
	ask_enqueue(2, "NOPE", "x");
	ask_watch(3, "NOPE", 60000);
	run();
	for (unsigned i = 1; i <= 3; i++)
		CU_ASSERT_EQUAL(DIAGNOSTIC_OF(i), QMEBADQUEUE);
	space_done();
}

static void
waiting_dequeue_gets_what_comes_in_the_same_flush(void)
{
	struct qspace_counts before, after;

	given_space(0);
	for (unsigned i = 1; i <= 4; i++)
		ask_dequeue(i, "A", TPQWAIT);
	run();
	CU_ASSERT_EQUAL(n_out, 0);
	qspace_counts(qs, &before);
	ask_enqueue(11, "A", "first");
	ask_enqueue(12, "A", "second");
	ask_dequeue(13, "A", 0);	/* a newcomer does not come before those who wait */
	run();
	qspace_counts(qs, &after);
	CU_ASSERT_EQUAL(after.flushes, before.flushes + 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(1));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(1)->body, "first");
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "second");
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(13), QMENOMSG);
	CU_ASSERT_PTR_NULL(answer(3));
	space_done();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(3), QMENOMSG);	/* the end of the server answers them, and eats nothing */
}

static void
waits_select_and_peek(void)
{
	given_space(0);
	ask_dequeue_as(1, "A", TPQWAIT, NULL, 0, "blue");
	ask_dequeue(2, "A", TPQWAIT | TPQPEEK);
	run();
	ask_enqueue_as(3, "A", "red one", NULL, "red");
	run();
	CU_ASSERT_PTR_NULL(answer(1));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "red one");
	ask_enqueue_as(4, "A", "blue one", NULL, "blue");
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(1));
	CU_ASSERT_STRING_EQUAL(answer(1)->body, "blue one");
	ask_dequeue(5, "A", 0);
	run();
	CU_ASSERT_STRING_EQUAL(answer(5)->body, "red one");	/* peeking took nothing */
	space_done();
}

static void
ask_wait_for(uint64_t reqid, uint32_t flags, const uint8_t *msgid, const char *corrid, const char *tx)
{
	struct wire_dequeue d = { .reqid = reqid, .flags = TPQWAIT | flags, .queue = "A" };
	struct link_msg *m = ask((unsigned)reqid);

	in_tx(&d.tx, tx, 60000);
	if (msgid != NULL) {
		d.flags |= TPQGETBYMSGID;
		memcpy(d.msgid, msgid, TMMSGIDLEN);
	}
	if (corrid != NULL) {
		d.flags |= TPQGETBYCORRID;
		memcpy(d.corrid, corrid, strlen(corrid));
	}
	wire_dequeue_encode(ask_frame(), &d);
	ask_done(m);
}

/* A delayed message, which anything, its msgid, its corrid or both may wait for: all who peek see it when it is due, a peek in a
 * transaction too, and it is there for who takes it, and not before that one. */
static void
peeks_with_every_selector_wait_for_it(void)
{
	struct wire_enqueue e = { .reqid = 1, .flags = TPQTIME_REL | TPQCORRID, .deq_time = 100, .type = "CARRAY", .queue = "A" };
	struct link_msg *m;
	uint8_t id[TMMSGIDLEN];

	given_space(0);
	memcpy(e.corrid, "blue", 4);
	m = ask(1);
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
	run();
	memcpy(id, answer(1)->q.msgid, sizeof id);
	ask_wait_for(2, TPQPEEK, NULL, NULL, NULL);
	ask_wait_for(3, TPQPEEK, id, NULL, NULL);
	ask_wait_for(4, TPQPEEK, NULL, "blue", NULL);
	ask_wait_for(5, TPQPEEK, id, "blue", NULL);
	ask_wait_for(6, TPQPEEK, id, NULL, "T1");
	ask_wait_for(7, TPQPEEK, NULL, "red", NULL);
	ask_wait_for(8, 0, id, "blue", NULL);
	ask_wait_for(9, 0, NULL, NULL, NULL);
	run();
	batch_run(&t, NULL, 0);
	for (unsigned i = 2; i <= 9; i++)
		CU_ASSERT_PTR_NULL(answer(i));
	clock_shift_us(101 * 1000000);
	for (int i = 0; i < 4; i++)
		batch_run(&t, NULL, 0);
	for (unsigned i = 2; i <= 6; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(answer(i));
		CU_ASSERT_EQUAL(answer(i)->q.error, 0);
		CU_ASSERT_EQUAL(memcmp(answer(i)->q.msgid, id, sizeof id), 0);
	}
	CU_ASSERT_PTR_NULL(answer(7) != NULL && answer(7)->q.error == 0 ? answer(7) : NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(8));
	CU_ASSERT_EQUAL(answer(8)->q.error, 0);		/* it waited first */
	CU_ASSERT_PTR_NULL(answer(9) != NULL && answer(9)->q.error == 0 ? answer(9) : NULL);
	clock_shift_us(-101 * 1000000);
	space_done();
}

/* One who waits by correlation id and one who takes anything: the earliest that the message fits gets it. */
static void
the_earliest_that_fits_gets_it(void)
{
	given_space(0);
	ask_dequeue_as(1, "A", TPQWAIT, NULL, 0, "blue");
	ask_dequeue(2, "A", TPQWAIT);
	ask_dequeue_as(3, "A", TPQWAIT, NULL, 0, "blue");
	run();
	ask_enqueue_as(11, "A", "first blue", NULL, "blue");
	ask_enqueue_as(12, "A", "second blue", NULL, "blue");
	ask_enqueue_as(13, "A", "third blue", NULL, "blue");
	run();
	CU_ASSERT_STRING_EQUAL(answer(1)->body, "first blue");
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "second blue");
	CU_ASSERT_STRING_EQUAL(answer(3)->body, "third blue");
	ask_dequeue(4, "A", TPQWAIT);
	ask_dequeue_as(5, "A", TPQWAIT, NULL, 0, "red");
	run();
	ask_enqueue_as(14, "A", "red", NULL, "red");
	run();
	CU_ASSERT_STRING_EQUAL(answer(4)->body, "red");
	CU_ASSERT_PTR_NULL(answer(5));
	space_done();
}

/* A batch serves so many who wait and no more; one who comes meanwhile and would wait too does not go ahead of the rest. */
static void
a_newcomer_stands_behind_those_that_a_batch_had_no_room_for(void)
{
	enum { MANY = 2 * BATCH_SERVED + 100 };

	given_space(0);
	for (unsigned i = 1; i <= MANY; i++) {
		ask_dequeue(i, "A", TPQWAIT);
		if (n_asked == BATCH_MAX)
			run();
	}
	run();
	for (unsigned i = 0; i < MANY; i++) {
		ask_enqueue_as(1000 + i, "A", "x", "TX", NULL);
		if (n_asked == BATCH_MAX)
			run();
	}
	run();
	ask_end(2000, WIRE_TX_COMMIT, "TX");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	for (int i = 0; i < 100 && !batch_more(&t); i++)	/* it is a large one */
		batch_run(&t, NULL, 0);
	CU_ASSERT_TRUE(batch_more(&t));
	ask_dequeue(3000, "A", TPQWAIT);
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	while (batch_more(&t))
		batch_run(&t, NULL, 0);
	for (unsigned i = 1; i <= MANY; i++)
		if (answer(i) == NULL || answer(i)->q.error != 0)
			CU_FAIL("somebody who waited got nothing");
	CU_ASSERT_PTR_NULL(answer(3000));
	ask_enqueue(3001, "A", "its own");
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(3000));
	CU_ASSERT_STRING_EQUAL(answer(3000)->body, "its own");
	space_done();
}

/* Its transaction was rolled back while it waited: it takes nothing, and hears TPETIME. */
static void
one_whose_transaction_is_over_takes_nothing(void)
{
	given_space(0);
	ask_dequeue_as(9, "A", 0, "T1", 1000, NULL);
	ask_dequeue_as(1, "A", TPQWAIT, "T1", 60000, NULL);
	run();
	clock_pass_us(1100 * 1000);
	batch_run(&t, NULL, 0);		/* its branch ends */
	ask_enqueue(2, "A", "for the living");
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), TPETIME);
	CU_ASSERT_EQUAL(answer(1)->q.doomed, 1);
	ask_dequeue(3, "A", 0);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(3), 0);
	space_done();
}

static void
the_callers_blocking_time_ends_a_wait(void)
{
	struct wire_dequeue d = { .reqid = 1, .flags = TPQWAIT, .queue = "A", .timeout_ms = 1 };
	struct link_msg *m;

	given_space(0);
	m = ask(1);
	wire_dequeue_encode(ask_frame(), &d);
	ask_done(m);
	m = ask(2);
	d.reqid = 2;
	in_tx(&d.tx, "T1", 60000);
	wire_dequeue_encode(ask_frame(), &d);
	ask_done(m);
	run();
	while (actions_next_deadline(t.actions) != INT64_MAX)
		batch_run(&t, NULL, 0);
	CU_ASSERT_EQUAL(ERROR_OF(1), TPETIME);
	CU_ASSERT_EQUAL(ERROR_OF(2), TPETIME);
	space_done();
}

static void
wait_ends_with_a_message_that_becomes_due(void)
{
	struct wire_enqueue e = { .reqid = 2, .flags = TPQTIME_REL, .deq_time = 100, .type = "CARRAY" };
	struct link_msg *m;

	given_space(0);
	ask_dequeue(1, "A", TPQWAIT);
	m = ask(2);
	snprintf(e.queue, sizeof e.queue, "A");
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	CU_ASSERT_PTR_NULL(answer(1));
	batch_run(&t, NULL, 0);
	CU_ASSERT(batch_next_event(&t) <= clock_mono_us() + 100 * 1000000);
	clock_shift_us(101 * 1000000);
	run();
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	CU_ASSERT_PTR_NOT_NULL(answer(1));
	space_done();
}

static void
wait_ends_when_its_time_is_up(void)
{
	given_space(0);
	t.timeout_us = 1;	/* TMQUEUE -t */
	ask_dequeue(1, "A", TPQWAIT);
	ask_dequeue_as(2, "A", TPQWAIT, "T1", 1, NULL);
	ask_watch(3, "A", 1);
	run();
	while (actions_next_deadline(t.actions) != INT64_MAX)	/* a millisecond */
		batch_run(&t, NULL, 0);
	CU_ASSERT_EQUAL(ERROR_OF(1), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(1), QMENOMSG);
	CU_ASSERT_EQUAL(ERROR_OF(2), TPETIME);
	CU_ASSERT_EQUAL(answer(2)->q.doomed, 1);
	CU_ASSERT_EQUAL(ERROR_OF(3), TPETIME);
	space_done();
}

static void
no_free_action_is_an_answer(void)
{
	given_space(0);
	for (unsigned i = 1; i <= ACTION_BASE; i++) {
		ask_dequeue(i, "A", TPQWAIT);
		if (n_asked == BATCH_MAX)
			run();
	}
	run();
	CU_ASSERT_EQUAL(n_out, 0);
	ask_dequeue(5000, "A", TPQWAIT);
	ask_watch(5001, "A", 60000);
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(5000), QMENOSPACE);
	CU_ASSERT_PTR_NULL(answer(5001));
	ask_enqueue(5002, "A", "for the first who waits");
	run();
	CU_ASSERT_STRING_EQUAL(answer(1)->body, "for the first who waits");
	ask_dequeue(5003, "A", TPQWAIT);
	ask_dequeue(5004, "A", TPQWAIT);
	run();
	CU_ASSERT_PTR_NULL(answer(5003));	/* the action that came free */
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(5004), QMENOSPACE);
	space_done();
}

static void	/* as qspacechange does it */
change_actions(const char *n)
{
	struct document args = { 0 }, answered = { 0 };
	struct record *r = document_add(&args);
	char *why = NULL;

	CU_ASSERT_EQUAL_FATAL(record_set(r, "actions", n), 0);
	CU_ASSERT_EQUAL(qadmin_run(qs, "qspacechange", r, &answered, &why), 0);
	free(why);
	document_free(&args);
	document_free(&answered);
}

static void	/* Those who wait stay when there are fewer. */
changed_number_of_actions_holds_at_once(void)
{
	unsigned n = 0;

	given_space(0);
	for (int i = 0; i < ACTION_BASE + 1; i++) {
		ask_dequeue(++n, "A", TPQWAIT);
		if (n_asked == BATCH_MAX)
			run();
	}
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(n), QMENOSPACE);
	change_actions("2");
	for (int i = 0; i < 3; i++)
		ask_dequeue(++n, "A", TPQWAIT);
	run();
	CU_ASSERT_PTR_NULL(answer(n - 1));
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(n), QMENOSPACE);
	change_actions("0");
	for (unsigned i = 0; i < 3; i++)	/* who comes finds no action free until three are done */
		ask_enqueue(5001 + i, "A", "x");
	run();
	CU_ASSERT_STRING_EQUAL(answer(3)->body, "x");
	ask_dequeue(++n, "A", TPQWAIT);
	ask_dequeue(++n, "A", TPQWAIT);
	run();
	CU_ASSERT_PTR_NULL(answer(n - 1));
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(n), QMENOSPACE);
	space_done();
}

static void	/* 1 and 2 wait, and did for long enough to be looked at; 1 is dead */
given_one_dead_who_waits(int looked_alive)
{
	given_space(0);
	ask_dequeue(1, "A", TPQWAIT);
	run();
	ask_dequeue(2, "A", TPQWAIT);
	run();
	gone = 1;
	seen_alive = looked_alive;
	for (int64_t since = clock_mono_us(); clock_mono_us() < since + 6000;)
		;
}

static void	/* Between the look at it and the flush: nothing is committed that it would have taken along. */
caller_killed_before_the_flush_gets_no_message(void)
{
	struct qspace_counts before, after;

	given_one_dead_who_waits(1);
	qspace_counts(qs, &before);
	ask_enqueue(3, "A", "for the living");
	run();
	qspace_counts(qs, &after);
	CU_ASSERT_EQUAL(after.flushes, before.flushes + 1);
	CU_ASSERT_EQUAL(seen_alive, -2);	/* it was there, it was not, and then it was passed over */
	CU_ASSERT_PTR_NULL(answer(1));
	CU_ASSERT_EQUAL(ERROR_OF(3), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "for the living");
	CU_ASSERT_EQUAL(n_out, 2);
	space_done();
}

static void	/* During the flush: its message goes back to where it was, with all that it had. */
caller_killed_in_the_flush_gives_its_message_back(void)
{
	static const char *const text[] = { "first", "second", "third" };
	uint8_t first[TMMSGIDLEN];
	char *why = NULL;

	given_one_dead_who_waits(100);
	gone = 2;
	ask_enqueue_as(3, "A", "for 1", NULL, NULL);
	ask_enqueue_as(4, "A", "first", NULL, "order 7");
	ask_enqueue_as(5, "A", "second", NULL, NULL);
	ask_enqueue_as(6, "A", "third", NULL, "order 7");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(2));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(4));
	memcpy(first, answer(4)->q.msgid, TMMSGIDLEN);
	CU_ASSERT_TRUE(batch_next_event(&t) <= clock_mono_us());	/* nobody needs to ask */
	run();
	CU_ASSERT_TRUE(batch_next_event(&t) > clock_mono_us());
	tmq_dismiss(&t);
	tmq_done(&t);
	qspace_close(qs);
	qs = NULL;
	CU_ASSERT_EQUAL_FATAL(qspace_open(device, "QSPACE", NULL, &qs, &why), 0);
	CU_ASSERT_EQUAL_FATAL(tmq_init(&t, qs, serving, 30, catch, NULL), 0);
	ask_dequeue_as(10, "A", TPQPEEK, NULL, 0, "order 7");
	for (unsigned i = 0; i < 4; i++)
		ask_dequeue(11 + i, "A", 0);
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(10));
	CU_ASSERT_STRING_EQUAL(answer(10)->body, "first");
	CU_ASSERT_EQUAL(memcmp(answer(10)->q.msgid, first, sizeof first), 0);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(answer(11 + i));
		CU_ASSERT_STRING_EQUAL(answer(11 + i)->body, text[i]);
		CU_ASSERT_EQUAL(answer(11 + i)->q.retries, 0);
	}
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(14), QMENOMSG);
	space_done();
}

static void	/* Who has half of it has nothing: link closes the connection. */
what_found_no_memory_on_its_way_out_comes_back(void)
{
	given_one_dead_who_waits(100);
	gone_how = LINK_FAIL;
	ask_enqueue(3, "A", "for 1");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(1));
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "for 1");
	space_done();
}

static void	/* Even when that batch is begun anew, because somebody else has died. */
what_comes_back_is_the_first_that_is_served(void)
{
	given_one_dead_who_waits(100);
	ask_enqueue(3, "A", "first");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(1));
	gone = 2;
	seen_alive = 1;
	ask_enqueue(4, "A", "second");
	ask_dequeue(5, "A", 0);
	ask_dequeue(6, "A", 0);
	run();
	CU_ASSERT_EQUAL(seen_alive, -2);
	CU_ASSERT_PTR_NULL(answer(2));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(5));
	CU_ASSERT_STRING_EQUAL(answer(5)->body, "first");
	CU_ASSERT_STRING_EQUAL(answer(6)->body, "second");
	space_done();
}

static void
caller_killed_in_its_wait_gets_no_message(void)
{
	given_one_dead_who_waits(0);
	ask_enqueue(3, "A", "for the living");
	run();
	CU_ASSERT_PTR_NULL(answer(1));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "for the living");
	space_done();
}

static void
cancelled_wait_takes_nothing(void)
{
	struct wire_cancel c = { .reqid = 2, .target = 1 };
	struct link_msg *m;

	given_space(0);
	ask_dequeue(1, "A", TPQWAIT);
	run();
	m = ask(1);
	wire_cancel_encode(ask_frame(), &c);
	ask_done(m);
	ask_enqueue(3, "A", "stays");
	run();
	CU_ASSERT_PTR_NULL(answer(1));
	ask_dequeue(4, "A", 0);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(4), 0);
	space_done();
}

static void
watchers_are_all_woken_and_take_nothing(void)
{
	given_space(0);
	ask_watch(1, "A", 60000);
	ask_watch(2, "A", 60000);
	run();
	CU_ASSERT_EQUAL(n_out, 0);
	ask_enqueue(3, "A", "x");
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(1));
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	CU_ASSERT_STRING_EQUAL(answer(2)->q.queue, "A");
	ask_watch(4, "A", 60000);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(4), 0);	/* still there: at once */
	space_done();
}

static void
transaction_is_seen_when_it_commits(void)
{
	given_space(0);
	ask_enqueue_as(1, "A", "in T1", "T1", NULL);
	ask_dequeue(2, "A", 0);
	ask_dequeue(3, "A", TPQWAIT);
	run();
	CU_ASSERT_STRING_EQUAL(answer(1)->q.group, "QUE1");
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(2), QMENOMSG);
	ask_end(4, WIRE_TX_COMMIT, "T1");
	run();
	CU_ASSERT_EQUAL(answer(4)->x.error, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(3));
	CU_ASSERT_STRING_EQUAL(answer(3)->body, "in T1");
	space_done();
}

static void	/* It writes nothing, so it does not wait for the disk. */
work_in_a_transaction_is_answered_before_others_are_flushed(void)
{
	struct qspace_counts before;

	given_space(0);
	ask_enqueue(1, "A", "was here");
	run();
	qspace_counts(qs, &before);
	ask_enqueue(2, "B", "durable");
	ask_dequeue_as(3, "A", 0, "T1", 60000, NULL);
	ask_enqueue_as(4, "B", "later", "T1", NULL);
	ask_dequeue(5, "B", 0);
	run();
	CU_ASSERT_EQUAL(n_out, 5);
	CU_ASSERT_STRING_EQUAL(answer(3)->body, "was here");
	CU_ASSERT_EQUAL(answer(3)->flushes, before.flushes);
	CU_ASSERT_EQUAL(answer(4)->flushes, before.flushes);
	CU_ASSERT_EQUAL(answer(2)->flushes, before.flushes + 1);
	CU_ASSERT_STRING_EQUAL(answer(5)->body, "durable");	/* the others share their flush as ever */
	CU_ASSERT_EQUAL(answer(5)->flushes, before.flushes + 1);
	space_done();
}

static void	/* Nobody hears of what is not on disk yet (D1), and nobody overtakes itself. */
work_in_a_transaction_rests_on_what_is_on_disk(void)
{
	given_space(0);
	ask_enqueue_as(1, "A", "of T1", "T1", NULL);
	run();
	ask_end(2, WIRE_TX_COMMIT, "T1");
	ask_dequeue_as(3, "A", 0, "T2", 60000, NULL);
	run();
	CU_ASSERT_EQUAL(answer(2)->x.error, 0);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(3), QMENOMSG);
	ask_dequeue_as(4, "A", 0, "T3", 60000, NULL);
	run();
	CU_ASSERT_STRING_EQUAL(answer(4)->body, "of T1");
	ask_enqueue(5, "B", "mine");
	ask_dequeue_as(6, "B", 0, "T4", 60000, NULL);
	asked[1].peer = asked[0].peer;
	run();
	CU_ASSERT_STRING_EQUAL(answer(6)->body, "mine");
	CU_ASSERT_EQUAL(answer(6)->flushes, answer(5)->flushes);
	space_done();
}

static void
ask_enqueue_and_commit(uint64_t reqid, const char *queue, const char *text, const char *tx, long priority)
{
	struct wire_enqueue e = { .reqid = reqid, .has_body = 1, .type = "STRING", .commits = 1 };
	struct link_msg *m = ask((unsigned)reqid);

	snprintf(e.queue, sizeof e.queue, "%s", queue);
	in_tx(&e.tx, tx, 60000);
	if (priority != 0) {
		e.flags |= TPQPRIORITY;
		e.priority = (int32_t)priority;
	}
	m->body = (const uint8_t *)text;
	m->body_len = strlen(text) + 1;
	m->has_body = true;
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
}

static void	/* One request, one answer, after one flush. */
an_enqueue_may_commit_its_transaction(void)
{
	struct qspace_counts before;

	given_space(0);
	ask_enqueue(1, "A", "question");
	run();
	ask_dequeue_as(2, "A", 0, "T1", 60000, NULL);
	run();
	qspace_counts(qs, &before);
	ask_enqueue_and_commit(3, "B", "answer", "T1", 0);
	run();
	CU_ASSERT_TRUE_FATAL(answer(3) != NULL && answer(3)->tx);
	CU_ASSERT_TRUE(answer(3)->x.error == 0 && answer(3)->x.outcome == WIRE_OUT_COMMITTED);
	CU_ASSERT_EQUAL(answer(3)->flushes, before.flushes + 1);	/* D1 */
	ask_end(4, WIRE_TX_ABORT, "T1");
	ask_dequeue(5, "A", 0);
	ask_dequeue(6, "B", 0);
	run();
	CU_ASSERT_EQUAL(answer(4)->x.outcome, WIRE_OUT_NONE_SUCH);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(5), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(answer(6)->body, "answer");
	space_done();
}

static void	/* As TMQFORWARD wants it. */
one_that_commits_does_so_without_its_queue_and_not_when_it_is_refused(void)
{
	given_space(0);
	ask_enqueue(1, "A", "first");
	ask_enqueue(2, "A", "second");
	run();
	ask_dequeue_as(3, "A", 0, "T1", 60000, NULL);
	ask_dequeue_as(4, "A", 0, "T2", 60000, NULL);
	run();
	ask_enqueue_and_commit(5, "NOPE", "answer", "T1", 0);
	ask_enqueue_and_commit(6, "B", "answer", "T2", 1000);
	run();
	CU_ASSERT_TRUE(answer(5)->tx && answer(5)->x.outcome == WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(!answer(6)->tx && answer(6)->q.error == TPEDIAGNOSTIC && answer(6)->q.diagnostic == QMEINVAL);
	ask_end(7, WIRE_TX_COMMIT, "T2");
	run();
	CU_ASSERT_EQUAL(answer(7)->x.error, 0);		/* it was still there */
	ask_enqueue_and_commit(8, "B", "answer", "T2", 0);
	run();
	CU_ASSERT_TRUE(!answer(8)->tx || answer(8)->x.error == 0);	/* a new one of that name */
	space_done();
}

static void	/* The caller may try again in the same transaction. */
transaction_that_found_no_room_has_not_joined(void)
{
	char name[16];
	int i;

	given_space(0);
	for (i = 0; i < 50; i++) {	/* as many as the space allows */
		snprintf(name, sizeof name, "T%d", i);
		ask_enqueue_as((uint64_t)i + 1, "A", "held", name, NULL);
		run();
		CU_ASSERT_EQUAL(ERROR_OF((uint64_t)i + 1), 0);
	}
	ask_enqueue_as(100, "A", "too many", "LATE", NULL);
	ask_dequeue_as(101, "A", 0, "LATE", 60000, NULL);
	run();
	for (i = 100; i <= 101; i++) {
		CU_ASSERT_EQUAL(DIAGNOSTIC_OF((uint64_t)i), QMENOSPACE);
		CU_ASSERT_STRING_EQUAL(answer((uint64_t)i)->q.group, "");
		CU_ASSERT_EQUAL(answer((uint64_t)i)->q.doomed, 0);
	}
	ask_end(102, WIRE_TX_ABORT, "T0");
	run();
	ask_enqueue_as(103, "A", "now", "LATE", NULL);
	ask_end(104, WIRE_TX_COMMIT, "LATE");
	run();
	CU_ASSERT_STRING_EQUAL(answer(103)->q.group, "QUE1");
	CU_ASSERT_EQUAL(answer(104)->x.error, 0);
	space_done();
}

static void
rolled_back_dequeue_returns_and_is_counted(void)
{
	given_space(0);
	ask_enqueue(1, "A", "again");
	run();
	ask_dequeue_as(2, "A", 0, "T1", 60000, NULL);
	run();
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "again");
	ask_dequeue(3, "A", 0);
	ask_end(4, WIRE_TX_ABORT, "T1");
	ask_end(5, WIRE_TX_ABORT, "T1");	/* twice is fine */
	ask_end(6, WIRE_TX_COMMIT, "T1");	/* and presumed aborted */
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(3), QMENOMSG);
	CU_ASSERT_EQUAL(answer(4)->x.error, 0);
	CU_ASSERT_EQUAL(answer(5)->x.error, 0);
	CU_ASSERT_EQUAL(answer(6)->x.error, TPEABORT);
	ask_dequeue(7, "A", 0);
	run();
	CU_ASSERT_STRING_EQUAL(answer(7)->body, "again");
	CU_ASSERT_EQUAL(answer(7)->q.retries, 1);
	space_done();
}

static void
timed_out_transaction_is_not_opened_again(void)
{
	given_space(0);
	ask_enqueue(1, "A", "held for a second");
	run();
	ask_dequeue_as(2, "A", 0, "T1", 1000, NULL);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	clock_pass_us(1100 * 1000);
	batch_run(&t, NULL, 0);
	ask_enqueue_as(3, "B", "late", "T1", NULL);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(3), TPETIME);
	CU_ASSERT_EQUAL(answer(3)->q.doomed, 1);
	ask_end(4, WIRE_TX_COMMIT, "T1");
	ask_dequeue(5, "B", 0);
	ask_dequeue(6, "A", 0);
	run();
	CU_ASSERT_EQUAL(answer(4)->x.error, TPEABORT);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(5), QMENOMSG);
	CU_ASSERT_EQUAL(ERROR_OF(6), 0);
	space_done();
}

static void	/* with the time of its tpbegin() in its id */
ask_enqueue_begun(uint64_t reqid, int64_t begun)
{
	struct wire_enqueue e = { .reqid = reqid, .type = "CARRAY" };
	struct wr w = { 0 };
	struct link_msg *m;

	wr_u64(&w, (uint64_t)begun);		/* WIRE_GTRID_TIME */
	for (int i = 0; i < 16; i++)
		wr_u8(&w, (uint8_t)(i + reqid));
	e.tx.gtrid_len = (uint8_t)w.len;
	memcpy(e.tx.gtrid, w.p, w.len);
	e.tx.timeout_ms = 60000;
	wr_free(&w);
	snprintf(e.queue, sizeof e.queue, "A");
	m = ask(reqid);
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
}

static void
transaction_older_than_the_server_is_refused(void)
{
	int64_t begun = clock_now_us() - 1000;

	given_space(0);
	ask_enqueue_begun(1, begun);
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(1), QMEABORTED);
	CU_ASSERT_EQUAL(answer(1)->q.doomed, 1);
	space_done();
}

static void	/* Set back by an hour: what begins from then on is served, what is older than the server still is not. */
clock_set_back_refuses_no_new_transaction(void)
{
	const int64_t hour = INT64_C(3600) * 1000000;
	int64_t begun = clock_now_us() - 1000;

	given_space(0);
	clock_shift_us(-hour);
	ask_enqueue_begun(1, clock_now_us());
	ask_enqueue_begun(2, begun);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(2), QMEABORTED);
	clock_shift_us(2 * hour);		/* and the one that is under way goes on */
	ask_enqueue_begun(3, clock_now_us());
	run();
	CU_ASSERT_EQUAL(ERROR_OF(3), 0);
	clock_shift_us(-hour);
	space_done();
}

static void	/* Whoever waits for a message of tomorrow does not sleep until tomorrow: the clock may be set. */
sleeps_are_short_enough_to_see_the_clock_set(void)
{
	struct wire_enqueue e = { .reqid = 1, .flags = TPQTIME_REL, .deq_time = 86400, .type = "CARRAY" };
	struct link_msg *m;

	given_space(0);
	m = ask(1);
	snprintf(e.queue, sizeof e.queue, "A");
	wire_enqueue_encode(ask_frame(), &e);
	ask_done(m);
	run();
	batch_run(&t, NULL, 0);
	CU_ASSERT(batch_next_event(&t) <= clock_mono_us() + 1000000);
	clock_shift_us(INT64_C(86401) * 1000000);
	batch_run(&t, NULL, 0);
	ask_dequeue(2, "A", 0);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	clock_shift_us(INT64_C(-86401) * 1000000);
	space_done();
}

static void
several_groups_are_rolled_back_when_one_is_nowhere(void)
{
	struct wire_txend e = { .reqid = 2, .op = WIRE_TX_COMMIT, .groups = { 2, { "QUE1", "QUE2" } } };
	struct link_msg *m;

	given_space(0);
	ask_enqueue_as(1, "A", "half", "T1", NULL);
	m = ask(2);
	in_tx(&e.tx, "T1", 0);
	wire_txend_encode(ask_frame(), &e);
	ask_done(m);
	ask_dequeue(3, "A", 0);
	run();
	CU_ASSERT_PTR_NULL(answer(2));		/* QUE2 is looked for, and the others do not wait for that */
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(3), QMENOMSG);
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_EQUAL(answer(2)->x.error, TPEABORT);
	CU_ASSERT_EQUAL(answer(2)->x.outcome, WIRE_OUT_ROLLED_BACK);
	ask_dequeue(4, "A", 0);
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(4), QMENOMSG);
	space_done();
}

static void
random_bytes_are_dropped_or_refused(void)
{
	static uint8_t bytes[BATCH_MAX][300];
	unsigned seed = 7;

	given_space(0);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < BATCH_MAX - 1; i++) {
			size_t n = (size_t)rand_r(&seed) % sizeof bytes[0];
			struct link_msg *m = ask(1);

			for (size_t k = 0; k < n; k++)
				bytes[i][k] = (uint8_t)rand_r(&seed);
			if (n > 2 && i % 2) {	/* the way in is right, the rest is not */
				bytes[i][0] = WIRE_VERSION;
				bytes[i][1] = (uint8_t)(i / 2 % 12);
			}
			m->head = bytes[i];
			m->head_len = n;
		}
		n_out = 0;
		run();
	}
	ask_enqueue(1, "A", "still here");
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	space_done();
}

static int faults;	/* so many writes fail; -1: all of them */

static int
disk_fails(int fd, size_t n)
{
	(void)fd, (void)n;
	if (faults == 0)
		return 0;
	if (faults > 0)
		faults--;
	return ENOSPC;
}

static int	/* A write of the log, so that a commit fails; room for messages is there. */
log_write_fails(int fd, size_t n)
{
	char link[32], path[512];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((len = readlink(link, path, sizeof path - 1)) < 0)
		return 0;
	path[len] = '\0';
	return strstr(path, "/log.") == NULL ? 0 : disk_fails(fd, n);
}

static void	/* The engine had accepted all of them when Berkeley DB failed. */
failed_batch_is_run_again_one_by_one(void)
{

	given_space(0);
	ask_dequeue(1, "A", TPQWAIT);
	run();
	faults = 1;
	env_fault = log_write_fails;
	ask_enqueue(2, "B", "to B");
	ask_enqueue(3, "A", "to A");
	ask_dequeue_as(4, "B", 0, "T1", 60000, NULL);
	asked[2].peer = asked[0].peer;	/* who waits for no answer has its requests carried out in their order */
	run();
	env_fault = NULL;
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	CU_ASSERT_EQUAL(ERROR_OF(3), 0);
	CU_ASSERT_EQUAL(ERROR_OF(4), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(1));
	CU_ASSERT_STRING_EQUAL(answer(1)->body, "to A");
	CU_ASSERT_EQUAL(n_out, 4);	/* each once */
	space_done();
}

static void
one_that_commits_and_cannot_be_written_is_rolled_back(void)
{
	given_space(0);
	ask_enqueue(1, "A", "question");
	run();
	ask_dequeue_as(2, "A", 0, "T1", 60000, NULL);
	run();
	faults = -1;		/* in the batch, and in one of its own */
	env_fault = log_write_fails;
	ask_enqueue_and_commit(3, "B", "answer", "T1", 0);
	run();
	env_fault = NULL;
	CU_ASSERT_TRUE_FATAL(answer(3) != NULL && answer(3)->tx);
	CU_ASSERT_EQUAL(answer(3)->x.error, TPEABORT);
	ask_dequeue(4, "B", 0);
	run();
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(4), QMENOMSG);
	space_done();
}

static void	/* What the failed batch had done of it is undone: it is stored once. */
one_that_commits_is_run_again_when_its_batch_failed(void)
{
	given_space(0);
	ask_enqueue(1, "A", "question");
	run();
	ask_dequeue_as(2, "A", 0, "T1", 60000, NULL);
	run();
	faults = 1;
	env_fault = log_write_fails;
	ask_enqueue_and_commit(3, "B", "answer", "T1", 0);
	ask_enqueue(4, "A", "beside it");
	run();
	env_fault = NULL;
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_TRUE_FATAL(answer(3) != NULL && answer(3)->tx);
	CU_ASSERT_TRUE(answer(3)->x.error == 0 && answer(3)->x.outcome == WIRE_OUT_COMMITTED);
	CU_ASSERT_EQUAL(ERROR_OF(4), 0);
	ask_dequeue(5, "B", 0);
	ask_dequeue(6, "B", 0);
	ask_dequeue(7, "A", 0);
	ask_dequeue(8, "A", 0);
	run();
	CU_ASSERT_STRING_EQUAL(answer(5)->body, "answer");
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(6), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(answer(7)->body, "beside it");
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(8), QMENOMSG);
	space_done();
}

static void	/* Who waits behind it gets it at once; one that cannot be written goes back when it can. */
what_comes_back_goes_to_the_next_who_waits(void)
{
	given_one_dead_who_waits(100);
	ask_enqueue(3, "A", "for 1");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(1));
	faults = -1;
	env_fault = disk_fails;
	run();
	CU_ASSERT_PTR_NULL(answer(2));
	env_fault = NULL;
	run();
	CU_ASSERT_PTR_NULL(answer(2));		/* not at full speed */
	while (batch_next_event(&t) > clock_mono_us())
		;
	run();
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "for 1");
	run();
	CU_ASSERT_EQUAL(n_out, 2);
	space_done();
}

static void
full_disk_is_an_answer_and_passes(void)
{
	given_space(0);
	ask_enqueue(1, "B", "safe");
	run();
	ask_dequeue(2, "A", TPQWAIT);
	run();
	faults = -1;
	env_fault = disk_fails;
	ask_enqueue(3, "A", "no room");
	ask_enqueue(4, "B", "no room");
	ask_dequeue(5, "A", 0);
	run();
	env_fault = NULL;
	CU_ASSERT_EQUAL(ERROR_OF(3), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ERROR_OF(4), TPEDIAGNOSTIC);
	CU_ASSERT_PTR_NULL(answer(2));
	ask_enqueue(6, "A", "room again");
	ask_dequeue(7, "B", 0);
	ask_dequeue(8, "B", 0);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(6), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answer(2));
	CU_ASSERT_STRING_EQUAL(answer(2)->body, "room again");
	CU_ASSERT_STRING_EQUAL(answer(7)->body, "safe");
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(8), QMENOMSG);
	space_done();
}

static void
server_that_stands_by_says_so(void)
{
	n_out = n_asked = 0;
	given_space(0);
	ask_enqueue(1, "A", "x");
	standby_answer(&asked[0], catch, NULL);
	n_asked = 0;
	CU_ASSERT_EQUAL(ERROR_OF(1), TPENOENT);
	space_done();
}

static int
rm(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(message_comes_out_as_it_went_in), UNIT(batch_is_flushed_once_and_before_any_answer),
		UNIT(unknown_queue_is_told_at_once), UNIT(waiting_dequeue_gets_what_comes_in_the_same_flush),
		UNIT(waits_select_and_peek), UNIT(peeks_with_every_selector_wait_for_it), UNIT(the_earliest_that_fits_gets_it),
		UNIT(a_newcomer_stands_behind_those_that_a_batch_had_no_room_for),
		UNIT(one_whose_transaction_is_over_takes_nothing), UNIT(the_callers_blocking_time_ends_a_wait),
		UNIT(wait_ends_with_a_message_that_becomes_due), UNIT(wait_ends_when_its_time_is_up),
		UNIT(no_free_action_is_an_answer), UNIT(changed_number_of_actions_holds_at_once),
		UNIT(caller_killed_in_its_wait_gets_no_message),
		UNIT(caller_killed_before_the_flush_gets_no_message), UNIT(caller_killed_in_the_flush_gives_its_message_back),
		UNIT(what_comes_back_goes_to_the_next_who_waits), UNIT(what_comes_back_is_the_first_that_is_served),
		UNIT(what_found_no_memory_on_its_way_out_comes_back), UNIT(cancelled_wait_takes_nothing),
		UNIT(watchers_are_all_woken_and_take_nothing), UNIT(transaction_is_seen_when_it_commits),
		UNIT(work_in_a_transaction_is_answered_before_others_are_flushed),
		UNIT(work_in_a_transaction_rests_on_what_is_on_disk), UNIT(transaction_that_found_no_room_has_not_joined),
		UNIT(rolled_back_dequeue_returns_and_is_counted), UNIT(timed_out_transaction_is_not_opened_again),
		UNIT(transaction_older_than_the_server_is_refused), UNIT(clock_set_back_refuses_no_new_transaction),
		UNIT(sleeps_are_short_enough_to_see_the_clock_set), UNIT(several_groups_are_rolled_back_when_one_is_nowhere),
		UNIT(random_bytes_are_dropped_or_refused),
		UNIT(an_enqueue_may_commit_its_transaction),
		UNIT(one_that_commits_does_so_without_its_queue_and_not_when_it_is_refused),
		UNIT(one_that_commits_and_cannot_be_written_is_rolled_back), UNIT(one_that_commits_is_run_again_when_its_batch_failed),
		UNIT(failed_batch_is_run_again_one_by_one), UNIT(full_disk_is_an_answer_and_passes),
		UNIT(server_that_stands_by_says_so),
	};
	char log[64];
	int rc;

	if (mkdtemp(dir) == NULL)
		return 2;
	snprintf(device, sizeof device, "%s/QUE", dir);
	snprintf(log, sizeof log, "%s/ULOG", dir);
	ulog_prefix(log);
	rc = unit_run("TMQUEUE dispatch", tests, UNIT_COUNT(tests));
	if (getenv("TEST_KEEP") == NULL)
		nftw(dir, rm, 16, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; i < BATCH_MAX; i++)
		wr_free(&frame[i]);
	return rc;
}
