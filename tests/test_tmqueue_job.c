/*
 * Requests that take several batches, given to a queue manager by hand: large bodies, and dequeues with much in their
 * way.  Whose requests stay in order, who goes on meanwhile, and what is left when a job does not come to its end.
 */
#include <errno.h>
#include <ftw.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "link_impl.h"
#include "qspace_impl.h"
#include "tmqueue.h"
#include "ulog.h"
#include "unit.h"

#define BIG (1100u << 10)		/* five batches alone */
enum { ME = 1, OTHER = 2 };

static struct tmq t;
static struct qspace *qs;
static char dir[] = "/tmp/tmqjobXXXXXX", device[64];

/* --- what was sent --- */

struct sent { unsigned to; uint64_t reqid; bool tx; int txerror; struct wire_qreply q; size_t n; uint8_t first; bool whole; };
static struct sent out[512];
static size_t n_out;
static unsigned gone;

static uint8_t
byte_of(uint8_t salt, size_t i)
{
	return (uint8_t)(i * 7 + (i >> 9) + salt);
}

static int
catch(void *arg, const struct link_peer *to, const void *head, size_t head_len, const struct link_body *body)
{
	struct sent *s = &out[n_out];
	struct wire_txreply x;
	enum wire_kind kind;

	(void)arg;
	memset(s, 0, sizeof *s);
	memcpy(&s->to, to->id, sizeof s->to);
	CU_ASSERT_EQUAL_FATAL(wire_peek(head, head_len, &kind, &s->reqid), 0);
	if (kind == WIRE_QREPLY)
		CU_ASSERT_EQUAL(wire_qreply_decode(head, head_len, &s->q), 0);
	if (kind == WIRE_TXREPLY && wire_txreply_decode(head, head_len, &x) == 0) {
		s->tx = true;
		s->txerror = x.error;
	}
	if (body != NULL) {
		const uint8_t *p = body->p;

		s->n = body->n;
		s->first = p[0];
		s->whole = true;
		for (size_t i = 0; i < s->n && s->whole; i++)
			s->whole = p[i] == byte_of(s->first, i);
		body->release((void *)(uintptr_t)body->p, body->hint);
	}
	if (s->to == gone)
		return LINK_GONE;
	n_out++;
	return LINK_OK;
}

static bool
is_gone(void *arg, const struct link_peer *peer)
{
	(void)arg;
	return gone != 0 && memcmp(peer->id, &gone, sizeof gone) == 0;
}

static long	/* where among all answers; -1: none yet */
place_of(uint64_t reqid)
{
	for (size_t i = 0; i < n_out; i++)
		if (out[i].reqid == reqid)
			return (long)i;
	return -1;
}

static struct sent *
answer(uint64_t reqid)
{
	return place_of(reqid) < 0 ? NULL : &out[place_of(reqid)];
}

#define IS_ANSWERED(reqid) (answer(reqid) != NULL)
#define ERROR_OF(reqid) (answer(reqid) != NULL ? answer(reqid)->q.error : -1)
#define DIAGNOSTIC_OF(reqid) (answer(reqid) != NULL ? answer(reqid)->q.diagnostic : -1)

static bool	/* it brought this body, as it was sent */
brought(uint64_t reqid, uint8_t salt, size_t n)
{
	struct sent *s = answer(reqid);

	return s != NULL && s->q.error == 0 && s->n == n && s->first == salt && s->whole;
}

/* --- what is asked --- */

static struct link_msg asked[BATCH_MAX];
static size_t n_asked;

static void
ask(unsigned from, const struct wr *head, uint8_t salt, size_t n_body)
{
	struct link_msg *m = &asked[n_asked++];
	struct link_frames *f = link_frames(m);

	link_msg_none(m);
	m->peer.n = sizeof from;
	memcpy(m->peer.id, &from, sizeof from);
	m->head = f->head = malloc(head->len);
	memcpy(f->head, head->p, m->head_len = head->len);
	if ((m->has_body = n_body != 0)) {
		m->body = f->body = malloc(m->body_len = n_body);
		for (size_t i = 0; i < n_body; i++)
			f->body[i] = byte_of(salt, i);
	}
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
ask_enqueue(unsigned from, uint64_t reqid, const char *queue, size_t n, const char *tx)
{
	struct wire_enqueue e = { .reqid = reqid, .flags = TPQMSGID, .has_body = 1, .type = "CARRAY" };
	struct wr w = { 0 };

	snprintf(e.queue, sizeof e.queue, "%s", queue);
	in_tx(&e.tx, tx, 60000);
	wire_enqueue_encode(&w, &e);
	ask(from, &w, (uint8_t)reqid, n);
	wr_free(&w);
}

static void
ask_dequeue(unsigned from, uint64_t reqid, const char *queue, uint32_t flags, const char *tx)
{
	struct wire_dequeue d = { .reqid = reqid, .flags = flags };
	struct wr w = { 0 };

	snprintf(d.queue, sizeof d.queue, "%s", queue);
	in_tx(&d.tx, tx, 60000);
	if (flags & TPQGETBYCORRID)
		memcpy(d.corrid, "same", 4);
	wire_dequeue_encode(&w, &d);
	ask(from, &w, 0, 0);
	wr_free(&w);
}

static void
ask_for_type(unsigned from, uint64_t reqid, const char *queue, const char *type)
{
	struct wire_dequeue d = { .reqid = reqid, .nochange = 1 };
	struct wr w = { 0 };

	snprintf(d.queue, sizeof d.queue, "%s", queue);
	snprintf(d.type, sizeof d.type, "%s", type);
	wire_dequeue_encode(&w, &d);
	ask(from, &w, 0, 0);
	wr_free(&w);
}

static void
ask_end(unsigned from, uint64_t reqid, enum wire_txop op, const char *tx)
{
	struct wire_txend e = { .reqid = reqid, .op = (uint8_t)op };
	struct wr w = { 0 };

	in_tx(&e.tx, tx, 0);
	e.groups.n = 1;
	snprintf(e.groups.name[0], sizeof e.groups.name[0], "QUE1");
	wire_txend_encode(&w, &e);
	ask(from, &w, 0, 0);
	wr_free(&w);
}

static void
ask_cancel(unsigned from, uint64_t target)
{
	struct wire_cancel c = { .target = target };
	struct wr w = { 0 };

	wire_cancel_encode(&w, &c);
	ask(from, &w, 0, 0);
	wr_free(&w);
}

static void
batch(void)	/* what was asked, as one batch */
{
	batch_run(&t, asked, n_asked);
	for (size_t i = 0; i < n_asked; i++)
		link_msg_done(&asked[i]);
	n_asked = 0;
}

static int	/* and what follows from it; how many batches */
run(void)
{
	int n = 1;

	batch();
	for (; batch_more(&t); n++)
		batch();
	return n;
}

/* --- the space --- */

static void
given_queue(const char *name)
{
	struct queue_params p = { .order = { QC_FIFO }, .retries = 5, .default_expiration = -1 };

	snprintf(p.name, sizeof p.name, "%s", name);
	p.persistent = p.nonpersistent = (struct threshold){ 100, 0, '%', "" };
	CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_create(qs, &p), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_batch_commit(qs), 0);
}

static void
given_space(void)
{
	struct qspace_params p = { .name = "QSPACE", .ipckey = 61000, .pages = 60000, .queues = 8, .trans = 50, .procs = 10,
	    .messages = 4000, .errorq = "ERRQ", .blocking = 16 };
	char *why = NULL;

	unlink(device);
	CU_ASSERT_EQUAL_FATAL(device_add(device, NULL, 0, 70000, NULL, NULL), 0);
	if (qspace_create(device, &p, &why) != 0 || qspace_open(device, "QSPACE", NULL, &qs, &why) != 0)
		printf("%s\n", why != NULL ? why : "?");
	CU_ASSERT_PTR_NOT_NULL_FATAL(qs);
	given_queue("A");
	given_queue("B");
	given_queue("ERRQ");
	n_out = n_asked = 0;
	gone = 0;
	CU_ASSERT_EQUAL_FATAL(tmq_init(&t, qs, "QUE1", 30, catch, NULL), 0);
	t.left = is_gone;
}

static struct queue_stat
stat_of(const char *queue)
{
	struct queue_stat s = { 0 };

	CU_ASSERT_EQUAL(qspace_queue_get(qs, queue, NULL, &s), 0);
	return s;
}

static int64_t	/* in the files, parts of bodies too */
records(void)
{
	int64_t n = 0;

	for (struct segment *s = qs->env.seg[0].all; s != NULL; s = segment_next(s))
		n += segment_records(s);
	return n;
}

static bool	/* no part of a body, no pin, no reservation, no job: only `messages` small ones */
only_messages_are_left(int64_t messages)
{
	do
		batch();
	while (batch_more(&t) || qs->parts.to_free);
	return records() == messages && qs->used.messages == messages && qs->parts.pins == NULL && qs->held == NULL &&
	    qs->parts.reserved.messages == 0 && qs->parts.reserved.pages == 0 && t.jobs.all == NULL && t.jobs.ready == NULL;
}

static void
space_done(void)
{
	tmq_dismiss(&t);
	qspace_close(qs);
	qs = NULL;
	tmq_done(&t);
}

/* --- stories: large bodies --- */

static void
what_a_client_sends_meanwhile_stays_behind(void)
{
	given_space();
	ask_enqueue(ME, 1, "A", BIG, NULL);
	ask_enqueue(ME, 2, "A", 10, NULL);
	ask_enqueue(OTHER, 3, "B", 10, NULL);
	batch();
	CU_ASSERT_TRUE(IS_ANSWERED(3));			/* others go on */
	CU_ASSERT_FALSE(IS_ANSWERED(2));
	for (uint64_t id = 4; !IS_ANSWERED(1); id++) {	/* one more in each batch, in that which ends the job too */
		ask_enqueue(ME, id, "A", 10, NULL);
		ask_enqueue(OTHER, 100 + id, "B", 10, NULL);
		batch();
		CU_ASSERT_TRUE(IS_ANSWERED(100 + id));
		CU_ASSERT_TRUE_FATAL(id < 50);
	}
	run();
	CU_ASSERT_TRUE(place_of(1) < place_of(2) && place_of(2) < place_of(4));
	for (uint64_t id = 4; IS_ANSWERED(id + 1); id++)
		CU_ASSERT_TRUE(place_of(id) < place_of(id + 1));
	n_out = 0;
	ask_dequeue(OTHER, 200, "A", 0, NULL);
	ask_dequeue(OTHER, 201, "A", 0, NULL);
	ask_dequeue(OTHER, 202, "A", 0, NULL);
	run();
	CU_ASSERT_TRUE(brought(200, 1, BIG));
	CU_ASSERT_TRUE(brought(201, 2, 10));
	CU_ASSERT_TRUE(brought(202, 4, 10));
	space_done();
}

static void
several_go_on_at_once_and_none_is_left_behind(void)
{
	given_space();
	for (unsigned i = 1; i <= 3 * JOBS_ACTIVE; i++)
		ask_enqueue(i, i, "A", BIG, NULL);
	CU_ASSERT_TRUE(run() > 12);
	for (unsigned i = 1; i <= 3 * JOBS_ACTIVE; i++) {
		CU_ASSERT_EQUAL(ERROR_OF(i), 0);
		/* The first to come are the first to go, but for those that go together. */
		CU_ASSERT_TRUE(place_of(i) / JOBS_ACTIVE <= (long)(i - 1) / JOBS_ACTIVE);
	}
	n_out = 0;
	for (unsigned i = 1; i <= 3 * JOBS_ACTIVE; i++)
		ask_dequeue(i, 100 + i, "A", 0, NULL);
	batch();
	CU_ASSERT_EQUAL(n_out, 0);
	run();
	for (unsigned i = 1; i <= 3 * JOBS_ACTIVE; i++)
		CU_ASSERT_TRUE(answer(100 + i) != NULL && answer(100 + i)->n == BIG && answer(100 + i)->whole);
	CU_ASSERT_TRUE(only_messages_are_left(0));
	space_done();
}

static void
one_batch_does_a_bounded_share(void)
{
	given_space();
	for (unsigned i = 1; i <= JOBS_ACTIVE + 2; i++)
		ask_enqueue(i, i, "A", BIG, NULL);
	batch();
	while (t.jobs.all != NULL) {
		int64_t was = records();

		batch();
		CU_ASSERT_TRUE(records() - was <= JOB_BYTES / PART_BYTES + JOBS_ACTIVE);	/* and the message of each */
	}
	CU_ASSERT_EQUAL(stat_of("A").messages, JOBS_ACTIVE + 2);
	space_done();
}

static void
a_cancelled_one_leaves_nothing_and_holds_nobody_up(void)
{
	given_space();
	ask_enqueue(ME, 1, "A", BIG, NULL);
	ask_enqueue(ME, 2, "A", 10, NULL);
	batch();
	batch();
	ask_cancel(ME, 1);
	run();
	CU_ASSERT_FALSE(IS_ANSWERED(1));		/* nobody waits for it */
	CU_ASSERT_EQUAL(ERROR_OF(2), 0);
	CU_ASSERT_TRUE(only_messages_are_left(1));
	ask_enqueue(ME, 3, "B", BIG, NULL);
	run();
	ask_dequeue(ME, 4, "B", 0, NULL);
	batch();
	batch();
	ask_cancel(OTHER, 4);				/* another's number */
	batch();
	CU_ASSERT_EQUAL(stat_of("B").held, 1);
	ask_cancel(ME, 4);
	run();
	CU_ASSERT_FALSE(IS_ANSWERED(4));
	CU_ASSERT_EQUAL(stat_of("B").held, 0);		/* and it is there again */
	ask_dequeue(OTHER, 5, "B", 0, NULL);
	run();
	CU_ASSERT_TRUE(brought(5, 3, BIG));
	CU_ASSERT_TRUE(only_messages_are_left(1));
	space_done();
}

static int faults;		/* so many more writes fail; -1: all */

static int
disk_fails(int fd, size_t n)
{
	(void)fd, (void)n;
	if (faults == 0)
		return 0;
	faults -= faults > 0;
	return ENOSPC;
}

static int	/* only the log: what Berkeley DB writes to its tables waits for a checkpoint */
log_write_fails(int fd, size_t n)
{
	char link[64], path[4096];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((len = readlink(link, path, sizeof path - 1)) < 0)
		return 0;
	path[len] = '\0';
	return strstr(path, "/log.") == NULL ? 0 : disk_fails(fd, n);
}

static void	/* whichever of its batches fails, it goes on from where the disk is */
a_failed_batch_does_not_end_it(void)
{
	for (int at = 0; at < 7; at++) {
		given_space();
		ask_enqueue(ME, 1, "A", BIG, NULL);
		for (int i = 0; i <= at; i++) {
			env_fault = i == at ? log_write_fails : NULL;
			faults = i == at;
			ask_enqueue(OTHER, 10 + (unsigned)i, "B", 10, NULL);
			ask_enqueue(ME, 20 + (unsigned)i, "A", 10, NULL);
			batch();
		}
		env_fault = NULL;
		run();
		CU_ASSERT_EQUAL(ERROR_OF(1), 0);
		for (int i = 0; i <= at; i++) {
			CU_ASSERT_EQUAL(ERROR_OF(10 + (unsigned)i), 0);
			CU_ASSERT_EQUAL(ERROR_OF(20 + (unsigned)i), 0);
			CU_ASSERT_TRUE(place_of(20 + (unsigned)i) > place_of(i == 0 ? 1 : 19 + (unsigned)i));
		}
		CU_ASSERT_EQUAL(n_out, 1 + 2 * ((size_t)at + 1));	/* each once */
		n_out = 0;
		ask_dequeue(ME, 50, "A", 0, NULL);
		for (int i = 0; i <= at; i++) {
			env_fault = i == at ? log_write_fails : NULL;
			faults = i == at;
			ask_enqueue(OTHER, 60 + (unsigned)i, "B", 10, NULL);
			batch();
		}
		env_fault = NULL;
		run();
		CU_ASSERT_TRUE(brought(50, 1, BIG));
		CU_ASSERT_EQUAL(stat_of("A").messages, at + 1);
		CU_ASSERT_TRUE(only_messages_are_left(3 * (at + 1)));
		space_done();
	}
}

static void
a_full_disk_is_its_answer(void)
{
	given_space();
	ask_enqueue(OTHER, 9, "B", 10, NULL);
	ask_enqueue(ME, 1, "A", BIG, NULL);
	ask_enqueue(ME, 2, "A", 10, NULL);
	batch();
	batch();
	faults = -1;
	env_fault = disk_fails;
	run();
	env_fault = NULL;
	CU_ASSERT_EQUAL(ERROR_OF(1), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ERROR_OF(2), TPEDIAGNOSTIC);
	ask_enqueue(ME, 3, "A", BIG, NULL);
	run();
	CU_ASSERT_EQUAL(ERROR_OF(3), 0);
	ask_dequeue(ME, 4, "A", 0, NULL);
	ask_dequeue(ME, 5, "A", 0, NULL);
	run();
	CU_ASSERT_TRUE(brought(4, 3, BIG));
	CU_ASSERT_EQUAL(DIAGNOSTIC_OF(5), QMENOMSG);
	CU_ASSERT_TRUE(only_messages_are_left(1));
	space_done();
}

static void
its_transaction_may_end_meanwhile(void)
{
	static const char *const how[] = { "rolled back", "timed out" };

	for (size_t k = 0; k < 2; k++) {
		char put[8], take[8];

		snprintf(put, sizeof put, "PUT%zu", k);
		snprintf(take, sizeof take, "TAKE%zu", k);
		given_space();
		ask_enqueue(OTHER, 9, "B", BIG, NULL);
		run();
		ask_enqueue(ME, 1, "A", BIG, put);
		ask_dequeue(OTHER, 2, "B", 0, take);
		batch();
		batch();
		if (k == 0) {			/* by somebody else: the same client's end would stay behind */
			ask_end(3, 3, WIRE_TX_ABORT, put);
			ask_end(3, 4, WIRE_TX_ABORT, take);
		} else {
			clock_pass_us(INT64_C(61000000));
		}
		run();
		if (ERROR_OF(1) != TPETIME || ERROR_OF(2) != TPETIME)
			printf(" (%s)", how[k]);
		CU_ASSERT_EQUAL(ERROR_OF(1), TPETIME);
		CU_ASSERT_EQUAL(ERROR_OF(2), TPETIME);
		CU_ASSERT_EQUAL(stat_of("A").messages, 0);
		CU_ASSERT_EQUAL(stat_of("B").messages, 1);
		CU_ASSERT_EQUAL(stat_of("B").held, 0);
		ask_dequeue(3, 5, "B", 0, NULL);
		run();
		CU_ASSERT_TRUE(brought(5, 9, BIG));
		CU_ASSERT_TRUE(only_messages_are_left(0));
		space_done();
	}
}

static void
the_end_of_its_transaction_stays_behind_it(void)
{
	given_space();
	ask_enqueue(ME, 1, "A", BIG, "T");
	ask_end(ME, 2, WIRE_TX_COMMIT, "T");
	run();
	CU_ASSERT_EQUAL(ERROR_OF(1), 0);
	CU_ASSERT_TRUE(IS_ANSWERED(2) && answer(2)->tx && answer(2)->txerror == 0);
	ask_dequeue(ME, 3, "A", 0, "U");
	ask_end(ME, 4, WIRE_TX_COMMIT, "U");
	run();
	CU_ASSERT_TRUE(brought(3, 1, BIG));
	CU_ASSERT_TRUE(IS_ANSWERED(4) && answer(4)->txerror == 0);
	CU_ASSERT_TRUE(only_messages_are_left(0));
	space_done();
}

static void
one_who_is_gone_takes_nothing(void)
{
	given_space();
	ask_enqueue(OTHER, 1, "A", BIG, NULL);
	run();
	ask_dequeue(ME, 2, "A", 0, NULL);
	batch();
	gone = ME;
	clock_pass_us(5000);
	run();
	CU_ASSERT_FALSE(IS_ANSWERED(2));
	CU_ASSERT_EQUAL(stat_of("A").messages, 1);
	CU_ASSERT_EQUAL(stat_of("A").held, 0);
	ask_dequeue(OTHER, 3, "A", 0, NULL);
	run();
	CU_ASSERT_TRUE(brought(3, 1, BIG));
	CU_ASSERT_TRUE(only_messages_are_left(0));
	space_done();
}

static void
a_shutdown_answers_it_and_nothing_has_happened(void)
{
	given_space();
	ask_enqueue(OTHER, 1, "B", BIG, NULL);
	run();
	ask_enqueue(ME, 2, "A", BIG, NULL);
	ask_dequeue(OTHER, 3, "B", 0, NULL);
	ask_enqueue(ME, 4, "A", 10, NULL);
	batch();
	batch();
	tmq_dismiss(&t);
	CU_ASSERT_EQUAL(ERROR_OF(2), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ERROR_OF(3), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(stat_of("A").messages, 0);
	CU_ASSERT_EQUAL(stat_of("B").messages, 1);
	CU_ASSERT_EQUAL(stat_of("B").held, 0);
	space_done();
}

static void
who_waits_gets_it_when_it_is_whole(void)
{
	given_space();
	ask_dequeue(OTHER, 1, "A", TPQWAIT, NULL);
	ask_dequeue(3, 2, "A", TPQWAIT | TPQPEEK, NULL);
	ask_dequeue(4, 3, "A", TPQWAIT, NULL);
	run();
	ask_enqueue(ME, 4, "A", BIG, NULL);
	run();
	CU_ASSERT_TRUE(brought(1, 4, BIG));
	CU_ASSERT_FALSE(IS_ANSWERED(2));		/* came later, and it is gone */
	CU_ASSERT_FALSE(IS_ANSWERED(3));
	ask_enqueue(ME, 5, "A", BIG, NULL);
	run();
	CU_ASSERT_TRUE(brought(2, 5, BIG));
	CU_ASSERT_TRUE(brought(3, 5, BIG));
	CU_ASSERT_TRUE(only_messages_are_left(0));
	space_done();
}

static void
what_is_looked_at_may_be_taken_meanwhile(void)
{
	given_space();
	ask_enqueue(ME, 1, "A", BIG, NULL);
	run();
	ask_dequeue(ME, 2, "A", TPQPEEK, NULL);
	batch();
	batch();
	ask_dequeue(OTHER, 3, "A", 0, NULL);
	run();
	CU_ASSERT_TRUE(brought(2, 1, BIG));
	CU_ASSERT_TRUE(brought(3, 1, BIG));
	CU_ASSERT_TRUE(only_messages_are_left(0));
	space_done();
}

static void
another_type_is_refused_before_it_is_read(void)
{
	given_space();
	ask_enqueue(ME, 1, "A", BIG, NULL);
	run();
	ask_for_type(ME, 2, "A", "STRING");
	batch();
	CU_ASSERT_EQUAL(ERROR_OF(2), TPEOTYPE);
	CU_ASSERT_PTR_NULL(t.jobs.all);
	CU_ASSERT_EQUAL(stat_of("A").messages, 1);
	ask_for_type(ME, 3, "A", "CARRAY");
	run();
	CU_ASSERT_TRUE(brought(3, 1, BIG));
	space_done();
}

/* --- stories: much in the way --- */

enum { MANY_IN_WAY = 1500 };

static void	/* many that expire, or become due, in the same instant, with one correlation id; and a good one behind them */
given_many(bool delayed)
{
	uint8_t msgid[TMMSGIDLEN];
	struct qmsg_in in = { .type = "STRING", .subtype = "", .has_body = true, .body = (const uint8_t *)"x", .body_len = 2,
		.flags = TPQCORRID | (delayed ? TPQTIME_REL : TPQEXPTIME_REL), .deq_time = 10, .exp_time = 10 };

	memcpy(in.corrid, "same", 4);
	for (int i = 0; i <= MANY_IN_WAY; i++) {
		uint8_t last = byte_of(77, 0);

		if (i % 256 == 0)
			CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(qs), 0);
		if (i == MANY_IN_WAY) {
			in.flags = TPQCORRID;
			in.body = &last;
			in.body_len = 1;
		}
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(qs, NULL, "A", &in, msgid), 0);
		if (i % 256 == 255 || i == MANY_IN_WAY)
			CU_ASSERT_EQUAL_FATAL(qspace_batch_commit(qs), 0);
	}
}

static int64_t	/* how many went in the worst of the batches that it takes */
most_in_a_batch(uint64_t reqid)
{
	int64_t most = 0, was, is = stat_of("A").messages;
	int n = 0;

	do {
		was = is;
		batch();
		is = stat_of("A").messages;
		most = was - is > most ? was - is : most;
	} while (!IS_ANSWERED(reqid) && batch_more(&t) && ++n < 1000);
	return most;
}

static void
expired_ones_go_a_bounded_number_at_a_time(void)
{
	static const uint32_t how[] = { 0, TPQGETBYCORRID, TPQWAIT, TPQPEEK, TPQWAIT | TPQGETBYCORRID };

	for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
		given_space();
		given_many(false);
		clock_pass_us(INT64_C(11000000));
		ask_dequeue(ME, 1, "A", how[k], NULL);
		ask_enqueue(ME, 2, "B", 10, NULL);
		ask_enqueue(OTHER, 3, "B", 10, NULL);
		batch();
		CU_ASSERT_FALSE(IS_ANSWERED(1));
		CU_ASSERT_FALSE(IS_ANSWERED(2));		/* a client's requests stay in order */
		CU_ASSERT_EQUAL(ERROR_OF(3), 0);		/* others do not wait for it */
		CU_ASSERT_TRUE(most_in_a_batch(1) <= 600);
		CU_ASSERT_TRUE(brought(1, 77, 1));
		run();
		CU_ASSERT_TRUE(place_of(2) > place_of(1));
		space_done();
	}
}

static void
due_ones_take_their_place_a_bounded_number_at_a_time(void)
{
	given_space();
	given_many(true);
	clock_pass_us(INT64_C(11000000));
	for (uint64_t id = 1; id <= 200; id++)
		ask_dequeue(ME, id, "A", 0, NULL);
	for (int64_t was = MANY_IN_WAY; was > 0; was = stat_of("A").delayed) {
		batch();
		CU_ASSERT_TRUE(was - stat_of("A").delayed <= 600);
	}
	run();
	for (uint64_t id = 1; id <= 200; id++)
		CU_ASSERT_EQUAL(ERROR_OF(id), 0);
	CU_ASSERT_EQUAL(stat_of("A").messages, MANY_IN_WAY + 1 - 200);
	space_done();
}

static void
one_who_waits_and_has_many_in_the_way_holds_nobody_up(void)
{
	given_space();
	ask_dequeue(ME, 1, "A", TPQWAIT | TPQGETBYCORRID, NULL);
	ask_dequeue(OTHER, 2, "B", TPQWAIT, NULL);
	run();
	CU_ASSERT_EQUAL(n_out, 0);
	given_many(false);
	clock_pass_us(INT64_C(11000000));
	ask_enqueue(3, 3, "A", 10, NULL);		/* makes the first one look */
	ask_enqueue(4, 4, "B", 10, NULL);
	batch();
	CU_ASSERT_TRUE(brought(2, 4, 10));
	CU_ASSERT_FALSE(IS_ANSWERED(1));
	run();
	CU_ASSERT_TRUE(brought(1, 77, 1));
	space_done();
}

static void
one_who_asks_again_may_be_cancelled_or_gone(void)
{
	given_space();
	given_many(false);
	clock_pass_us(INT64_C(11000000));
	ask_dequeue(ME, 1, "A", 0, NULL);
	ask_dequeue(OTHER, 2, "A", 0, NULL);
	ask_dequeue(3, 3, "A", 0, NULL);
	batch();
	ask_cancel(ME, 1);
	gone = OTHER;
	clock_pass_us(5000);
	run();
	CU_ASSERT_FALSE(IS_ANSWERED(1));
	CU_ASSERT_FALSE(IS_ANSWERED(2));
	CU_ASSERT_TRUE(brought(3, 77, 1));
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
		UNIT(what_a_client_sends_meanwhile_stays_behind), UNIT(several_go_on_at_once_and_none_is_left_behind),
		UNIT(one_batch_does_a_bounded_share), UNIT(a_cancelled_one_leaves_nothing_and_holds_nobody_up),
		UNIT(a_failed_batch_does_not_end_it), UNIT(a_full_disk_is_its_answer), UNIT(its_transaction_may_end_meanwhile),
		UNIT(the_end_of_its_transaction_stays_behind_it), UNIT(one_who_is_gone_takes_nothing),
		UNIT(a_shutdown_answers_it_and_nothing_has_happened), UNIT(who_waits_gets_it_when_it_is_whole),
		UNIT(what_is_looked_at_may_be_taken_meanwhile), UNIT(another_type_is_refused_before_it_is_read),
		UNIT(expired_ones_go_a_bounded_number_at_a_time), UNIT(due_ones_take_their_place_a_bounded_number_at_a_time),
		UNIT(one_who_waits_and_has_many_in_the_way_holds_nobody_up), UNIT(one_who_asks_again_may_be_cancelled_or_gone),
	};
	char log[64];
	int rc;

	if (mkdtemp(dir) == NULL)
		return 2;
	snprintf(device, sizeof device, "%s/QUE", dir);
	snprintf(log, sizeof log, "%s/ULOG", dir);
	ulog_prefix(log);
	rc = unit_run("TMQUEUE jobs", tests, UNIT_COUNT(tests));
	if (getenv("TEST_KEEP") == NULL)
		nftw(dir, rm, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
