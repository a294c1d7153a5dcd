/*
 * A queue manager as the coordinator, or one of the participants, of transactions over several groups.  The other queue managers
 * are played by hand: what would be sent to them is looked at, and they say what a test wants.
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
extern void keeper_flush_failed(const char *path);	/* and for what its other threads hear from the disk */

static struct tmq t;
static struct qspace *qs;
static char dir[] = "/tmp/tmqcoordXXXXXX", device[64];

/* --- callers --- */

static struct said { uint64_t reqid, flushes; bool tx; struct wire_txreply x; struct wire_qreply q; } said[8192];
static size_t n_said;
static unsigned left_peer;	/* is gone; 0: nobody */

static uint64_t
flushes(void)
{
	struct qspace_counts c;

	qspace_counts(qs, &c);
	return c.flushes;
}

static int
hear(void *arg, const struct link_peer *to, const void *head, size_t n, const struct link_body *body)
{
	struct said *s = &said[n_said++];
	enum wire_kind kind;

	(void)arg, (void)to;
	memset(s, 0, sizeof *s);
	CU_ASSERT_EQUAL_FATAL(wire_peek(head, n, &kind, &s->reqid), 0);
	s->flushes = flushes();
	s->tx = kind == WIRE_TXREPLY;
	CU_ASSERT_EQUAL(s->tx ? wire_txreply_decode(head, n, &s->x) : wire_qreply_decode(head, n, &s->q), 0);
	if (body != NULL && body->release != NULL)
		body->release((void *)(uintptr_t)body->p, body->hint);
	return LINK_OK;
}

static bool
is_gone(void *arg, const struct link_peer *peer)
{
	(void)arg;
	return left_peer != 0 && memcmp(peer->id, &left_peer, sizeof left_peer) == 0;
}

static const struct said *
answer(uint64_t reqid)
{
	for (size_t i = n_said; i-- > 0;)
		if (said[i].reqid == reqid)
			return &said[i];
	return NULL;
}

static bool	/* answered so */
is(uint64_t reqid, int error, int outcome)
{
	const struct said *s = answer(reqid);

	if (s != NULL && s->tx && s->x.error == error && s->x.outcome == outcome)
		return true;
	if (s == NULL)
		printf("request %llu: no answer yet\n", (unsigned long long)reqid);
	else
		printf("request %llu: error %d, outcome %d\n", (unsigned long long)reqid, s->x.error, s->x.outcome);
	return false;
}

/* --- the other queue managers --- */

static struct sent { char group[WIRE_GROUP]; struct wire_txend m; uint64_t flushes; bool answered; } sent[8192];
static size_t n_sent;
static const char *nowhere;	/* this group's name is known to nobody; */
static const char *silent;	/* and this one's queue manager cannot be connected to */
static bool full;		/* links take nothing */
static bool unknown;		/* the way will say so */
static int finds;

static int
way_send(void *arg, const char *group, const void *head, size_t n)
{
	struct sent *s = &sent[n_sent];

	(void)arg;
	if (full)
		return LINK_TIMEOUT;
	memset(s, 0, sizeof *s);
	CU_ASSERT_EQUAL(wire_txend_decode(head, n, &s->m), 0);
	snprintf(s->group, sizeof s->group, "%s", group);
	s->flushes = flushes();
	n_sent++;
	return LINK_OK;
}

static void
way_find(void *arg, const char *group)
{
	(void)arg;
	finds++;
	if (nowhere != NULL && strcmp(group, nowhere) == 0)
		unknown = true;
	else if (silent != NULL && strcmp(group, silent) == 0)
		letters_not_found(t.letters, group, false);
	else
		letters_found(t.letters, group);
}

static void
way_drop(void *arg, const char *group)
{
	(void)arg, (void)group;
}

static const struct letter_way way = { NULL, way_send, way_find, way_drop };

static struct sent *	/* the last that was sent to the group with that op; NULL: none */
letter(const char *group, enum wire_txop op)
{
	for (size_t i = n_sent; i-- > 0;)
		if (sent[i].m.op == op && strcmp(sent[i].group, group) == 0)
			return &sent[i];
	return NULL;
}

static int
count_sent(enum wire_txop op)
{
	int n = 0;

	for (size_t i = 0; i < n_sent; i++)
		n += sent[i].m.op == op;
	return n;
}

static void	/* the group answers what it was asked last */
says(const char *group, enum wire_txop op, int error, int outcome)
{
	struct sent *s = letter(group, op);
	struct wire_txreply m = { .error = error, .outcome = (uint8_t)outcome };

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	m.reqid = s->m.reqid;
	s->answered = true;
	letters_reply(t.letters, group, &m);
}

/* --- requests --- */

static struct link_msg asked[BATCH_MAX];
static struct wr frame[BATCH_MAX];
static size_t n_asked;

static void
run(void)
{
	if (unknown)
		letters_not_found(t.letters, nowhere, true);
	unknown = false;
	batch_run(&t, asked, n_asked);
	for (int i = 0; i < 100 && (n_asked > 0 || batch_more(&t) || batch_next_event(&t) <= clock_mono_us()); i++, n_asked = 0)
		batch_run(&t, NULL, 0);		/* once after requests in any case: what is due next may be another thing */
}

static void
pass(int64_t ms)
{
	clock_pass_us(ms * 1000);
	run();
}

static struct wr *
ask(unsigned from)
{
	struct link_msg *m = &asked[n_asked];

	memset(m, 0, sizeof *m);
	m->peer.n = sizeof from;
	memcpy(m->peer.id, &from, sizeof from);
	wr_reset(&frame[n_asked]);
	return &frame[n_asked];
}

static void
asked_it(void)
{
	asked[n_asked].head = frame[n_asked].p;
	asked[n_asked].head_len = frame[n_asked].len;
	n_asked++;
}

static struct wire_tx
tx_of(const char *name)
{
	struct wire_tx tx = { .gtrid_len = 16, .timeout_ms = 30000 };

	memcpy(tx.gtrid, name, strlen(name));
	if (name[0] == 'X')
		tx.gtrid[0] = WIRE_GTRID_XID;
	return tx;
}

static void
ask_put(uint64_t reqid, const char *tx)
{
	struct wire_enqueue e = { .reqid = reqid, .flags = TPQMSGID, .queue = "A", .type = "CARRAY" };

	if (tx != NULL)
		e.tx = tx_of(tx);
	wire_enqueue_encode(ask((unsigned)reqid), &e);
	asked_it();
}

static void
ask_end_as(uint64_t reqid, const struct wire_txend *m, unsigned from)
{
	wire_txend_encode(ask(from), m);
	(void)reqid;
	asked_it();
}

static struct wire_groups
groups_of(const char *names)
{
	struct wire_groups g = { 0 };
	char copy[512], *rest = copy, *name;

	snprintf(copy, sizeof copy, "%s", names);
	while ((name = strsep(&rest, " ")) != NULL)
		if (*name != '\0')
			snprintf(g.name[g.n++], WIRE_GROUP, "%s", name);
	return g;
}

static void
ask_end(uint64_t reqid, enum wire_txop op, const char *tx, const char *groups)
{
	struct wire_txend m = { .reqid = reqid, .op = (uint8_t)op, .tx = tx_of(tx), .groups = groups_of(groups) };

	ask_end_as(reqid, &m, (unsigned)reqid);
}

static void
ask_logged(uint64_t reqid, const char *tx, const char *groups)
{
	struct wire_txend m = { .reqid = reqid, .op = WIRE_TX_COMMIT, .tx = tx_of(tx), .groups = groups_of(groups), .logged = 1 };

	ask_end_as(reqid, &m, (unsigned)reqid);
}

static void
end(uint64_t reqid, enum wire_txop op, const char *tx, const char *groups)
{
	ask_end(reqid, op, tx, groups);
	run();
}

static long	/* committed messages on A */
depth(void)
{
	struct queue_stat st;

	CU_ASSERT_EQUAL_FATAL(qspace_queue_get(qs, "A", NULL, &st), 0);
	return (long)st.messages;
}

static bool
has_record(const char *tx)
{
	struct wire_tx x = tx_of(tx);
	struct branch_id id = tx_id(&x);
	struct wire_groups g;

	return qspace_decision_get(qs, &id, &g) == 0;
}

static int	/* the branch's state; -1: none */
state_of(const char *tx)
{
	struct wire_tx x = tx_of(tx);
	struct branch_id id = tx_id(&x);
	struct branch *b = qspace_branch_find(qs, &id);

	return b == NULL ? -1 : (int)qspace_branch_state(b);
}

static void
by_hand(const char *tx, bool commit)
{
	struct wire_tx x = tx_of(tx);
	struct branch_id id = tx_id(&x);

	int rc;

	CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(qs), 0);
	rc = qspace_branch_by_hand(qs, qspace_branch_find(qs, &id), commit);
	CU_ASSERT_TRUE(rc == 0 || rc == QSPACE_AGAIN);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
}

/* --- the space --- */

static void
manager(void)
{
	n_said = n_sent = n_asked = 0;
	left_peer = 0;
	CU_ASSERT_EQUAL_FATAL(tmq_init(&t, qs, "QUE1", 30, hear, NULL), 0);
	t.left = is_gone;
	letters_way(t.letters, &way);
}

static void	/* A test that failed left it. */
space_left(void)
{
	if (qs == NULL)
		return;
	qspace_close(qs);
	tmq_done(&t);
	qs = NULL;
}

static void
given_space(void)
{
	struct qspace_params p = { .name = "QSPACE", .ipckey = 61000, .pages = 8000, .queues = 8, .trans = 2000, .procs = 10,
	    .messages = 8000, .errorq = "ERRQ", .blocking = 16 };
	struct queue_params q = { .name = "A", .order = { QC_FIFO }, .retries = 5, .default_expiration = -1,
	    .persistent = { 100, 0, '%', "" }, .nonpersistent = { 100, 0, '%', "" } };
	char *why = NULL;

	nowhere = silent = NULL;
	full = unknown = false;
	finds = 0;
	space_left();
	unlink(device);
	CU_ASSERT_EQUAL_FATAL(device_add(device, NULL, 0, 10000, NULL, NULL), 0);
	if (qspace_create(device, &p, &why) != 0 || qspace_open(device, "QSPACE", NULL, &qs, &why) != 0)
		printf("%s\n", why != NULL ? why : "?");
	CU_ASSERT_PTR_NOT_NULL_FATAL(qs);
	CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_create(qs, &q), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_batch_commit(qs), 0);
	manager();
}

static void
space_done(void)
{
	tmq_dismiss(&t);
	qspace_close(qs);
	qs = NULL;
	tmq_done(&t);
}

static void	/* It ends without a word, as in a crash; what it had not written is gone (what it had is on disk). */
crash_and_start(void)
{
	char *why = NULL;

	qspace_close(qs);
	tmq_done(&t);
	CU_ASSERT_EQUAL_FATAL(qspace_open(device, "QSPACE", NULL, &qs, &why), 0);
	manager();
	run();
}

/* One message here, and QUE2 and QUE3 joined; asked to commit as request 2. */
static void
given_asked(void)
{
	given_space();
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");
}

static void
given_decided(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	run();
}

/* --- deciding --- */

static void	/* Votes in parallel, before any flush; nothing is told before the decision is on disk (D1); two flushes here. */
all_say_yes_and_it_is_committed_everywhere(void)
{
	uint64_t before;

	given_space();
	ask_put(1, "T1");
	run();
	before = flushes();
	ask_put(9, NULL);	/* somebody else's, in the same batch */
	ask_end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 2);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 2);
	CU_ASSERT_STRING_EQUAL(letter("QUE2", WIRE_TX_PREPARE)->m.groups.name[0], "QUE1");
	CU_ASSERT_EQUAL(depth(), 1);
	before = flushes();
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 0);
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 0);
	run();
	CU_ASSERT_EQUAL(flushes(), before + 1);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 2);
	CU_ASSERT_EQUAL(letter("QUE2", WIRE_TX_DECIDED)->flushes, before + 1);
	CU_ASSERT_EQUAL(depth(), 2);
	CU_ASSERT_TRUE(has_record("T1"));
	CU_ASSERT_PTR_NULL(answer(2));
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_PTR_NULL(answer(2));
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_NONE_SUCH);	/* it heard of it before */
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	run();
	CU_ASSERT_EQUAL(flushes(), before + 1);			/* the record goes with somebody's flush, */
	CU_ASSERT_TRUE(has_record("T1"));
	ask_put(3, NULL);
	run();
	CU_ASSERT_EQUAL(flushes(), before + 2);
	CU_ASSERT_FALSE(has_record("T1"));
	CU_ASSERT_EQUAL(n_sent, 4);
	space_done();
}

static void
first_letters_of_a_link_that_is_there_leave_before_the_flush(void)
{
	uint64_t before;

	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	ask_put(3, "T2");
	run();
	before = flushes();
	ask_put(4, NULL);
	ask_end(5, WIRE_TX_COMMIT, "T2", "QUE1 QUE2");
	run();
	CU_ASSERT_EQUAL(flushes(), before + 1);
	CU_ASSERT_EQUAL(letter("QUE2", WIRE_TX_PREPARE)->flushes, before);
	space_done();
}

static void	/* Nobody comes for a second: the record goes by itself. */
record_is_removed_within_a_second(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	run();
	CU_ASSERT_TRUE(has_record("T1"));
	CU_ASSERT_TRUE(batch_next_event(&t) <= clock_mono_us() + 1000000);
	pass(1100);
	CU_ASSERT_FALSE(has_record("T1"));
	run();
	CU_ASSERT_TRUE(batch_next_event(&t) > clock_mono_us());
	space_done();
}

static void
logged_is_answered_after_the_decision(void)
{
	given_space();
	ask_put(1, "T1");
	run();
	ask_logged(2, "T1", "QUE1 QUE2");
	run();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	CU_ASSERT_PTR_NULL(answer(2));
	run();
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(answer(2)->flushes, flushes());
	CU_ASSERT_PTR_NOT_NULL(letter("QUE2", WIRE_TX_DECIDED));
	space_done();
}

static void	/* A commit like any other, without a record. */
all_others_only_read(void)
{
	uint64_t before;

	given_asked();
	before = flushes();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_READ_ONLY);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_READ_ONLY);
	run();
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(flushes(), before + 1);
	CU_ASSERT_EQUAL(depth(), 1);
	CU_ASSERT_FALSE(has_record("T1"));
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 0);
	space_done();
}

static void
only_those_that_are_prepared_are_told(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_READ_ONLY);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 1);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	space_done();
}

static void	/* The one that rolled back is not told; the caller hears when the other has its messages back too. */
one_says_no(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, TPEABORT, WIRE_OUT_ROLLED_BACK);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_ABORT), 1);		/* at once, and in parallel with our own flush */
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE3", WIRE_TX_ABORT));
	CU_ASSERT_STRING_EQUAL(letter("QUE3", WIRE_TX_ABORT)->m.groups.name[0], "QUE1");
	CU_ASSERT_TRUE(strstr(letter("QUE3", WIRE_TX_ABORT)->m.why.text, "QUE2") != NULL);
	run();
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	CU_ASSERT_PTR_NULL(answer(2));
	says("QUE3", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	end(3, WIRE_TX_QUERY, "T1", "");
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_ROLLED_BACK));
	space_done();
}

static void	/* A late yes of who was asked before changes nothing. */
late_vote_is_dropped(void)
{
	struct wire_txreply late = { .outcome = WIRE_OUT_PREPARED };

	given_asked();
	late.reqid = letter("QUE3", WIRE_TX_PREPARE)->m.reqid;
	says("QUE2", WIRE_TX_PREPARE, TPEABORT, WIRE_OUT_NONE_SUCH);
	letters_reply(t.letters, "QUE3", &late);
	run();
	CU_ASSERT_PTR_NULL(answer(2));
	CU_ASSERT_EQUAL(depth(), 0);
	pass(2100);		/* QUE3 does not answer: the caller waits no longer than that */
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	space_done();
}

static void
lost_vote_is_a_no(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	letters_broke(t.letters, "QUE3");
	CU_ASSERT_PTR_NOT_NULL(letter("QUE2", WIRE_TX_ABORT));
	run();
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	run();
	says("QUE3", WIRE_TX_ABORT, 0, WIRE_OUT_NONE_SUCH);	/* it is back, and hears of it */
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	space_done();
}

static void
group_that_is_nowhere_is_a_no(void)
{
	given_space();
	nowhere = "QUE3";
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");
	run();
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_NONE_SUCH);
	run();
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	space_done();
}

static void	/* A participant is being started, or its flush takes long: there is time, but not for ever. */
votes_have_the_transactions_time(void)
{
	given_space();
	silent = "QUE2";
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	for (int i = 0; i < 29; i++)
		pass(1000);
	CU_ASSERT_TRUE(finds > 29);
	CU_ASSERT_EQUAL(state_of("T1"), BR_ACTIVE);	/* its deadline does not roll it back while it is decided */
	silent = NULL;
	pass(500);
	CU_ASSERT_PTR_NOT_NULL(letter("QUE2", WIRE_TX_PREPARE));
	pass(1000);
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE2", WIRE_TX_ABORT));
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	run();
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	space_done();
}

static void
own_branch_is_gone(void)
{
	given_space();
	end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE2", WIRE_TX_ABORT));
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	run();
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_NONE_SUCH));
	space_done();
}

static int faults;

static int
log_write_fails(int fd, size_t n)
{
	char link[32], path[512];
	ssize_t len;

	(void)n;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((len = readlink(link, path, sizeof path - 1)) < 0)
		return 0;
	path[len] = '\0';
	if (strstr(path, "/log.") == NULL || faults == 0)
		return 0;
	if (faults > 0)
		faults--;
	return ENOSPC;
}

static void	/* The batch with the decision fails, with others', and alone: nobody has committed. */
disk_refuses_the_decision(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	faults = -1;
	env_fault = log_write_fails;
	batch_run(&t, NULL, 0);
	env_fault = NULL;
	CU_ASSERT_FALSE(batch_more(&t));	/* the rollback could not be written either, and is not tried at full speed */
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 0);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_ABORT), 2);
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	says("QUE3", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	pass(1100);
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	CU_ASSERT_FALSE(has_record("T1"));
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	space_done();
}

static void	/* It fails with others', and not alone. */
decision_is_run_again_alone(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	faults = 1;
	env_fault = log_write_fails;
	batch_run(&t, NULL, 0);
	env_fault = NULL;
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 2);
	CU_ASSERT_EQUAL(depth(), 1);
	CU_ASSERT_TRUE(has_record("T1"));
	space_done();
}

static void	/* The batch that opened a branch and began to decide is run again: nothing may be done in the branch still. */
closed_though_its_batch_is_run_again(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	ask_put(3, "T2");
	ask_end(4, WIRE_TX_COMMIT, "T2", "QUE1 QUE2");
	faults = 1;
	env_fault = log_write_fails;
	batch_run(&t, asked, n_asked);
	env_fault = NULL;
	n_asked = 0;
	CU_ASSERT_EQUAL(faults, 0);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 3);
	ask_put(5, "T2");
	run();
	CU_ASSERT_EQUAL(answer(5)->q.diagnostic, QMEPROTO);
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_READ_ONLY);
	run();
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(depth(), 2);
	space_done();
}

static int
all_fails(int fd, size_t n)
{
	(void)fd, (void)n;
	return EIO;
}

static void	/* No batch can be begun: what waits to be cleaned and looked at is not tried at full speed. */
disk_that_is_gone_is_not_asked_without_a_pause(void)
{
	char file[128];

	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	end(3, WIRE_TX_START, "X1", "");
	snprintf(file, sizeof file, "%s.d/QSPACE/order", device);
	env_fault = all_fails;
	keeper_flush_failed(file);
	CU_ASSERT_NOT_EQUAL(qspace_batch_begin(qs), 0);
	clock_pass_us(1100000);
	batch_run(&t, NULL, 0);
	CU_ASSERT_TRUE(batch_next_event(&t) > clock_mono_us());
	env_fault = NULL;
	for (int i = 0; i < 5; i++)
		pass(500);
	CU_ASSERT_FALSE(has_record("T1"));
	CU_ASSERT_EQUAL(depth(), 1);
	space_done();
}

/* --- telling --- */

static void	/* The caller is told the truth in its time; the group when it can be reached, for ever. */
who_does_not_answer_is_told_later(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	letters_broke(t.letters, "QUE3");
	silent = "QUE3";
	pass(9000);
	CU_ASSERT_PTR_NULL(answer(2));
	pass(1100);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	for (int i = 0; i < 300; i++)
		pass(100);
	finds = 0;
	for (int i = 0; i < 600; i++)
		pass(100);
	CU_ASSERT_TRUE(finds >= 5 && finds <= 7);	/* each 10 s by now */
	CU_ASSERT_TRUE(has_record("T1"));
	silent = NULL;
	end(3, WIRE_TX_QUERY, "T1", "");		/* it is back: heard at once, without waiting for the interval */
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_COMMITTED));
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 3);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	pass(1100);
	CU_ASSERT_FALSE(has_record("T1"));
	space_done();
}

static void	/* Its disk is full: it is told again. */
who_cannot_commit_is_told_again(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, TPESYSTEM, WIRE_OUT_NONE);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 2);
	pass(110);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 3);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	space_done();
}

static void
who_stands_by_is_left_for_who_serves(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, TPENOENT, WIRE_OUT_NONE);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 3);
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	space_done();
}

static void
link_that_takes_nothing_is_filled_later(void)
{
	given_space();
	full = true;
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	run();
	CU_ASSERT_EQUAL(n_sent, 0);
	full = false;
	letters_room(t.letters, "QUE2");
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 1);
	space_done();
}

/* --- heuristic outcomes --- */

static void
one_was_rolled_back_by_hand(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, TPEHEURISTIC, WIRE_OUT_HEUR_ROLLED_BACK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE3", WIRE_TX_FORGET));
	pass(1100);
	CU_ASSERT_TRUE(has_record("T1"));	/* until it has forgotten */
	says("QUE3", WIRE_TX_FORGET, 0, WIRE_OUT_NONE_SUCH);
	CU_ASSERT_TRUE(is(2, TPEHEURISTIC, WIRE_OUT_HEUR_MIXED));
	pass(1100);
	CU_ASSERT_FALSE(has_record("T1"));
	space_done();
}

static void
one_was_committed_by_hand_as_decided(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_HEUR_COMMITTED);
	says("QUE3", WIRE_TX_FORGET, 0, WIRE_OUT_NONE_SUCH);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	space_done();
}

static void
one_is_not_prepared_though_it_said_so(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, TPEPROTO, WIRE_OUT_NONE);
	CU_ASSERT_TRUE(is(2, TPEHAZARD, WIRE_OUT_HEUR_HAZARD));
	space_done();
}

static void
one_was_committed_by_hand_and_is_rolled_back(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, TPEABORT, WIRE_OUT_ROLLED_BACK);
	says("QUE2", WIRE_TX_ABORT, TPEHEURISTIC, WIRE_OUT_HEUR_COMMITTED);
	says("QUE2", WIRE_TX_FORGET, 0, WIRE_OUT_NONE_SUCH);
	run();
	CU_ASSERT_TRUE(is(2, TPEHEURISTIC, WIRE_OUT_HEUR_MIXED));
	space_done();
}

/* --- crashes --- */

static void
crash_before_the_decision_rolls_back(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	end(3, WIRE_TX_QUERY, "T2", "");	/* (in the batch that decides nothing is told yet of it) */
	crash_and_start();
	CU_ASSERT_EQUAL(depth(), 1);		/* the batch of the query was the decision's */
	space_done();

	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	crash_and_start();
	CU_ASSERT_EQUAL(depth(), 0);
	CU_ASSERT_EQUAL(n_sent, 0);
	end(3, WIRE_TX_QUERY, "T1", "");
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_ROLLED_BACK));
	end(4, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	CU_ASSERT_TRUE(is(4, TPEABORT, WIRE_OUT_NONE_SUCH));
	space_done();
}

static void
crash_after_the_decision_goes_on_telling(void)
{
	given_decided();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	crash_and_start();
	CU_ASSERT_EQUAL(depth(), 1);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 2);	/* at once, and to both: who answered is not written down */
	end(3, WIRE_TX_QUERY, "T1", "");
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_COMMITTED));
	ask_logged(4, "T1", "QUE1 QUE2 QUE3");			/* its initiator asks again */
	ask_end(5, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");
	run();
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_COMMITTED));
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_NONE_SUCH);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(is(5, 0, WIRE_OUT_COMMITTED));
	pass(1100);
	CU_ASSERT_FALSE(has_record("T1"));
	crash_and_start();
	CU_ASSERT_EQUAL(n_sent, 0);
	space_done();
}

static void	/* What is being decided is rolled back, what is decided stays so; nothing is left for others to wait for. */
shutdown_in_the_midst(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	tmq_dismiss(&t);
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_ABORT), 2);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	crash_and_start();
	CU_ASSERT_EQUAL(depth(), 0);
	space_done();

	given_decided();
	tmq_dismiss(&t);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	crash_and_start();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 2);
	space_done();
}

/* --- strange and late ones --- */

static void
query_while_it_is_decided(void)
{
	given_asked();
	end(3, WIRE_TX_QUERY, "T1", "");
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_UNDECIDED));
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	end(4, WIRE_TX_QUERY, "T1", "");	/* in the batch that decides: it is not on disk yet (D1) */
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_UNDECIDED));
	end(5, WIRE_TX_QUERY, "T1", "");
	CU_ASSERT_TRUE(is(5, 0, WIRE_OUT_COMMITTED));
	end(6, WIRE_TX_QUERY, "NEVER", "");
	CU_ASSERT_TRUE(is(6, 0, WIRE_OUT_ROLLED_BACK));
	space_done();
}

static void
commit_twice_is_one_commit_and_two_answers(void)
{
	given_asked();
	end(3, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");
	pass(100);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 2);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_ABORT), 0);
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	says("QUE3", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	run();
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	says("QUE3", WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(depth(), 1);
	end(4, WIRE_TX_COMMIT, "T1", "QUE1 QUE2 QUE3");	/* its record is still there */
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_COMMITTED));
	end(5, WIRE_TX_COMMIT, "T1", "");		/* as if it were alone */
	space_done();
}

static void
abort_while_it_is_decided(void)
{
	given_asked();
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	end(3, WIRE_TX_ABORT, "T1", "");
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	says("QUE3", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	space_done();

	given_decided();
	end(3, WIRE_TX_ABORT, "T1", "");
	CU_ASSERT_TRUE(is(3, TPEPROTO, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_ABORT), 0);
	CU_ASSERT_EQUAL(depth(), 1);
	space_done();
}

static void	/* Nothing may be done in it any more, and by nobody. */
branch_is_closed_while_it_is_decided(void)
{
	static const enum wire_txop ops[] = { WIRE_TX_COMMIT, WIRE_TX_PREPARE, WIRE_TX_DECIDED, WIRE_TX_FORGET, WIRE_TX_START, WIRE_TX_JOIN,
	    WIRE_TX_DOOM };

	given_asked();
	ask_put(3, "T1");
	run();
	CU_ASSERT_EQUAL(answer(3)->q.diagnostic, QMEPROTO);
	for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
		end(10 + i, ops[i], "T1", i == 1 ? "QUE2" : "");
		CU_ASSERT_TRUE(is(10 + i, TPEPROTO, WIRE_OUT_NONE));
	}
	CU_ASSERT_EQUAL(state_of("T1"), BR_ACTIVE);
	space_done();
}

static void
groups_are_looked_at(void)
{
	given_space();
	tmq_alias(&t, "OLDNAME");
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_COMMIT, "T1", "QUE2 QUE1");	/* another one coordinates it */
	CU_ASSERT_TRUE(is(2, TPEPROTO, WIRE_OUT_NONE));
	CU_ASSERT_EQUAL(n_sent, 0);
	end(3, WIRE_TX_COMMIT, "T1", "OLDNAME QUE2 QUE1 QUE2 OLDNAME");
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 1);
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_READ_ONLY);
	run();
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_COMMITTED));
	ask_put(4, "T2");
	run();
	end(5, WIRE_TX_COMMIT, "T2", "QUE1 QUE1 OLDNAME");	/* alone, by all its names */
	CU_ASSERT_TRUE(is(5, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(n_sent, 1);
	CU_ASSERT_EQUAL(depth(), 2);
	space_done();
}

/* --- participants --- */

static void
prepared(const char *coordinator)
{
	given_space();
	ask_put(1, "T1");
	run();
	end(2, WIRE_TX_PREPARE, "T1", coordinator);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_PREPARED));
	CU_ASSERT_EQUAL(answer(2)->flushes, flushes());
	CU_ASSERT_EQUAL(state_of("T1"), BR_PREPARED);
}

static void
participant_does_as_it_is_told(void)
{
	prepared("QUE2");
	end(3, WIRE_TX_PREPARE, "T1", "QUE2");		/* twice */
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_PREPARED));
	end(4, WIRE_TX_COMMIT, "T1", "QUE1");		/* its initiator does not decide */
	CU_ASSERT_TRUE(is(4, TPEPROTO, WIRE_OUT_PREPARED));
	end(5, WIRE_TX_DECIDED, "T1", "");
	CU_ASSERT_TRUE(is(5, 0, WIRE_OUT_COMMITTED));
	end(6, WIRE_TX_DECIDED, "T1", "");
	CU_ASSERT_TRUE(is(6, 0, WIRE_OUT_NONE_SUCH));
	CU_ASSERT_EQUAL(depth(), 1);
	pass(3000);
	CU_ASSERT_EQUAL(n_sent, 0);			/* there is nothing to ask */
	CU_ASSERT_EQUAL(doubts_count(t.doubts), 0);
	space_done();
}

static void
participant_without_work_leaves(void)
{
	given_space();
	ask_put(1, "T1");
	run();
	ask_end(2, WIRE_TX_ABORT, "T1", "");
	ask_end(3, WIRE_TX_PREPARE, "T1", "QUE2");	/* after the abort */
	run();
	CU_ASSERT_TRUE(is(3, TPEABORT, WIRE_OUT_NONE_SUCH));
	ask_put(4, "T2");
	run();
	end(5, WIRE_TX_DECIDED, "T2", "");		/* nobody asked it */
	CU_ASSERT_TRUE(is(5, TPEPROTO, WIRE_OUT_NONE));
	CU_ASSERT_EQUAL(state_of("T2"), BR_ACTIVE);
	space_done();
}

static void	/* Only who decides rolls back what is prepared; who else wants to makes us ask. */
prepared_is_rolled_back_by_its_coordinator_alone(void)
{
	prepared("QUE2");
	end(3, WIRE_TX_ABORT, "T1", "");
	CU_ASSERT_TRUE(is(3, TPEPROTO, WIRE_OUT_PREPARED));
	run();
	run();
	CU_ASSERT_PTR_NOT_NULL(letter("QUE2", WIRE_TX_QUERY));
	end(4, WIRE_TX_ABORT, "T1", "QUE2");
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	end(5, WIRE_TX_ABORT, "T1", "QUE2");
	CU_ASSERT_TRUE(is(5, 0, WIRE_OUT_NONE_SUCH));
	space_done();
}

static void
silent_coordinator_is_asked(void)
{
	prepared("QUE2");
	pass(1900);
	CU_ASSERT_EQUAL(n_sent, 0);
	pass(200);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 1);
	says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_UNDECIDED);
	pass(110);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 2);	/* again, at growing intervals */
	for (int i = 2; i < 10; i++) {
		says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_UNDECIDED);
		pass(60);
		CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), i);
		pass(10100);
		CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), i + 1);
	}
	says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_COMMITTED);
	run();
	CU_ASSERT_EQUAL(depth(), 1);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	CU_ASSERT_EQUAL(doubts_count(t.doubts), 0);
	space_done();
}

static void
coordinator_that_left_is_asked_at_once(void)
{
	prepared("QUE2");
	left_peer = 2;
	pass(300);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 1);
	letters_broke(t.letters, "QUE2");	/* the letter stays until somebody answers */
	silent = "QUE2";
	for (int i = 0; i < 60; i++)
		pass(1000);
	silent = NULL;
	pass(10100);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 2);
	says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_ROLLED_BACK);
	run();
	CU_ASSERT_EQUAL(depth(), 0);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	space_done();
}

static void
restarted_participant_asks_at_once(void)
{
	prepared("QUE2");
	crash_and_start();
	CU_ASSERT_EQUAL(state_of("T1"), BR_PREPARED);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 1);
	says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_COMMITTED);
	end(3, WIRE_TX_DECIDED, "T1", "");	/* both in one batch */
	CU_ASSERT_EQUAL(depth(), 1);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	space_done();
}

static void	/* The space was moved: what it coordinated under another name is known here. */
coordinator_is_ourselves(void)
{
	prepared("OLDNAME");
	crash_and_start();
	says("OLDNAME", WIRE_TX_QUERY, TPESYSTEM, WIRE_OUT_NONE);
	tmq_alias(&t, "OLDNAME");
	pass(200);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_QUERY), 1);
	CU_ASSERT_EQUAL(state_of("T1"), -1);	/* no record of it (D5) */
	CU_ASSERT_EQUAL(depth(), 0);
	space_done();
}

static void
another_transaction_manager_is_never_asked(void)
{
	prepared("");
	crash_and_start();
	pass(60000);
	CU_ASSERT_EQUAL(n_sent, 0);
	CU_ASSERT_EQUAL(state_of("T1"), BR_PREPARED);
	end(3, WIRE_TX_DECIDED, "T1", "");
	CU_ASSERT_TRUE(is(3, 0, WIRE_OUT_COMMITTED));
	space_done();
}

static void	/* What was ended by hand while its coordinator was away: told to who asks, and forgotten when it says so. */
participant_ended_by_hand(void)
{
	for (int commit = 0; commit < 2; commit++) {
		int how = commit ? WIRE_OUT_HEUR_COMMITTED : WIRE_OUT_HEUR_ROLLED_BACK;
		prepared("QUE2");
		end(3, WIRE_TX_FORGET, "T1", "");
		CU_ASSERT_TRUE(is(3, TPEPROTO, WIRE_OUT_NONE));
		by_hand("T1", commit);
		CU_ASSERT_EQUAL(depth(), commit);
		end(4, WIRE_TX_COMMIT, "T1", "");
		CU_ASSERT_TRUE(is(4, commit ? 0 : TPEABORT, how));
		end(5, WIRE_TX_ABORT, "T1", "QUE2");
		CU_ASSERT_TRUE(is(5, commit ? TPEHEURISTIC : 0, how));
		end(6, WIRE_TX_DECIDED, "T1", "");
		CU_ASSERT_TRUE(is(6, commit ? 0 : TPEHEURISTIC, how));
		end(7, WIRE_TX_PREPARE, "T1", "QUE2");
		CU_ASSERT_TRUE(commit ? is(7, 0, WIRE_OUT_PREPARED) : is(7, TPEABORT, how));
		crash_and_start();
		end(8, WIRE_TX_FORGET, "T1", "");
		CU_ASSERT_TRUE(is(8, 0, WIRE_OUT_NONE_SUCH));
		end(9, WIRE_TX_FORGET, "T1", "");
		CU_ASSERT_TRUE(is(9, 0, WIRE_OUT_NONE_SUCH));
		CU_ASSERT_EQUAL(state_of("T1"), -1);
		space_done();
	}
}

/* --- large ones, which end over several batches --- */

static void	/* as many messages as make a transaction a large one */
put_many(const char *tx)
{
	for (unsigned i = 0; i < 600; i++) {
		ask_put(1000 + i, tx);
		if (n_asked == 200)
			run();
	}
	run();
}

static void
prepared_large(void)
{
	given_space();
	put_many("T1");
	end(2, WIRE_TX_PREPARE, "T1", "QUE2");
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_PREPARED));
}

static void	/* by an administrator, otherwise than its coordinator then says: who hears of it once it is done, and can have it forgotten */
large_one_on_its_way_by_hand(void)
{
	prepared_large();
	by_hand("T1", false);
	CU_ASSERT_EQUAL(state_of("T1"), BR_ROLLING_BACK);
	ask_end(3, WIRE_TX_DECIDED, "T1", "");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(3));
	run();
	CU_ASSERT_TRUE(is(3, TPEHEURISTIC, WIRE_OUT_HEUR_ROLLED_BACK));
	CU_ASSERT_EQUAL(state_of("T1"), BR_HEUR_ROLLED_BACK);
	end(4, WIRE_TX_FORGET, "T1", "");
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_NONE_SUCH));
	CU_ASSERT_EQUAL(depth(), 0);
	space_done();

	prepared_large();
	by_hand("T1", true);
	CU_ASSERT_EQUAL(state_of("T1"), BR_COMMITTING);
	ask_end(3, WIRE_TX_ABORT, "T1", "QUE2");
	ask_end(4, WIRE_TX_DECIDED, "T1", "");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_PTR_NULL(answer(3));
	run();
	CU_ASSERT_TRUE(is(3, TPEHEURISTIC, WIRE_OUT_HEUR_COMMITTED));
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_HEUR_COMMITTED));
	CU_ASSERT_EQUAL(depth(), 600);
	space_done();
}

static void	/* Its coordinator is asked all the same, and what it need not know is forgotten. */
restarted_while_one_is_on_its_way_by_hand(void)
{
	prepared_large();
	by_hand("T1", false);
	crash_and_start();
	for (int i = 0; i < 30; i++)
		pass(100);
	CU_ASSERT_EQUAL(state_of("T1"), BR_HEUR_ROLLED_BACK);
	CU_ASSERT_EQUAL(doubts_count(t.doubts), 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE2", WIRE_TX_QUERY));
	says("QUE2", WIRE_TX_QUERY, 0, WIRE_OUT_ROLLED_BACK);
	run();
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	CU_ASSERT_EQUAL(doubts_count(t.doubts), 0);
	space_done();
}

static void	/* It is being rolled back for its time is up: the others are told, and so is who wants it committed. */
large_one_is_too_late_to_commit(void)
{
	given_space();
	put_many("T1");
	clock_pass_us(31000000);
	ask_end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(letter("QUE2", WIRE_TX_ABORT));
	says("QUE2", WIRE_TX_ABORT, 0, WIRE_OUT_ROLLED_BACK);
	run();
	CU_ASSERT_TRUE(is(2, TPEABORT, WIRE_OUT_ROLLED_BACK));
	CU_ASSERT_EQUAL(depth(), 0);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	space_done();
}

static void	/* No entry of it stays: what comes under its name afterwards is as new as after a small one. */
large_one_that_was_ended_is_forgotten(void)
{
	given_space();
	put_many("T1");
	end(2, WIRE_TX_COMMIT, "T1", "");
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	ask_put(3, "T1");
	run();
	CU_ASSERT_EQUAL(answer(3)->q.error, 0);
	put_many("T2");
	end(4, WIRE_TX_ABORT, "T2", "");
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_ROLLED_BACK));
	ask_put(5, "T2");
	run();
	CU_ASSERT_EQUAL(answer(5)->q.error, 0);
	space_done();
}

static void	/* What is decided waits for its disk in peace, and so does who asked for it. */
large_one_whose_steps_fail(void)
{
	given_space();
	put_many("T1");
	ask_end(2, WIRE_TX_COMMIT, "T1", "");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	CU_ASSERT_EQUAL(state_of("T1"), BR_COMMITTING);
	faults = -1;
	env_fault = log_write_fails;
	batch_run(&t, NULL, 0);
	env_fault = NULL;
	CU_ASSERT_EQUAL(state_of("T1"), BR_COMMITTING);
	CU_ASSERT_FALSE(batch_more(&t));
	CU_ASSERT_TRUE(batch_next_event(&t) > clock_mono_us());
	CU_ASSERT_PTR_NULL(answer(2));
	pass(1100);
	CU_ASSERT_TRUE(is(2, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(depth(), 600);
	space_done();
}

static void	/* The decision and our own commit are one; what is left of it goes on, and so does the telling. */
coordinator_of_a_large_one_dies(void)
{
	given_space();
	put_many("T1");
	ask_end(2, WIRE_TX_COMMIT, "T1", "QUE1 QUE2");
	batch_run(&t, asked, n_asked);
	n_asked = 0;
	says("QUE2", WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	batch_run(&t, NULL, 0);
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 1);
	CU_ASSERT_EQUAL(state_of("T1"), BR_COMMITTING);
	CU_ASSERT_EQUAL(depth(), 0);
	CU_ASSERT_TRUE(has_record("T1"));
	crash_and_start();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), 1);
	says("QUE2", WIRE_TX_DECIDED, 0, WIRE_OUT_NONE_SUCH);
	for (int i = 0; i < 3; i++)
		pass(600);
	CU_ASSERT_EQUAL(depth(), 600);
	CU_ASSERT_EQUAL(state_of("T1"), -1);
	CU_ASSERT_FALSE(has_record("T1"));
	space_done();
}

/* --- many groups --- */

static void	/* As many as a transaction may have. */
all_the_groups_there_may_be(void)
{
	struct wire_txend m = { .reqid = 2, .op = WIRE_TX_COMMIT, .tx = tx_of("T1") };

	given_space();
	ask_put(1, "T1");
	run();
	for (m.groups.n = 0; m.groups.n < WIRE_MAX_GROUPS; m.groups.n++)
		snprintf(m.groups.name[m.groups.n], WIRE_GROUP, "QUE%d", m.groups.n + 1);
	ask_end_as(2, &m, 2);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_PREPARE), WIRE_MAX_GROUPS - 1);
	for (int i = 1; i < WIRE_MAX_GROUPS; i++)
		says(m.groups.name[i], WIRE_TX_PREPARE, 0, WIRE_OUT_PREPARED);
	run();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), WIRE_MAX_GROUPS - 1);
	crash_and_start();
	CU_ASSERT_EQUAL(count_sent(WIRE_TX_DECIDED), WIRE_MAX_GROUPS - 1);
	for (int i = 1; i < WIRE_MAX_GROUPS; i++)
		says(m.groups.name[i], WIRE_TX_DECIDED, 0, WIRE_OUT_COMMITTED);
	pass(1100);
	CU_ASSERT_FALSE(has_record("T1"));
	CU_ASSERT_EQUAL(depth(), 1);
	space_done();
}

/* --- other transaction managers --- */

static void
xa_branches_are_opened_by_start_alone(void)
{
	given_space();
	ask_put(1, "X1");
	end(2, WIRE_TX_JOIN, "X1", "");
	CU_ASSERT_EQUAL(answer(1)->q.diagnostic, QMEABORTED);
	CU_ASSERT_EQUAL(answer(1)->q.doomed, 1);
	CU_ASSERT_STRING_EQUAL(answer(1)->q.group, "");
	CU_ASSERT_TRUE(is(2, TPENOENT, WIRE_OUT_NONE_SUCH));
	end(3, WIRE_TX_START, "T1", "");
	CU_ASSERT_TRUE(is(3, TPEPROTO, WIRE_OUT_NONE));
	end(4, WIRE_TX_START, "X1", "");
	CU_ASSERT_TRUE(is(4, 0, WIRE_OUT_NONE));
	end(5, WIRE_TX_START, "X1", "");
	CU_ASSERT_TRUE(is(5, TPEMATCH, WIRE_OUT_NONE));
	end(6, WIRE_TX_JOIN, "X1", "");
	CU_ASSERT_TRUE(is(6, 0, WIRE_OUT_NONE));
	ask_put(7, "X1");
	run();
	CU_ASSERT_EQUAL(answer(7)->q.error, 0);
	end(8, WIRE_TX_PREPARE, "X1", "");
	CU_ASSERT_TRUE(is(8, 0, WIRE_OUT_PREPARED));
	end(9, WIRE_TX_DECIDED, "X1", "");
	CU_ASSERT_TRUE(is(9, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(depth(), 1);
	end(10, WIRE_TX_START, "X2", "");
	end(11, WIRE_TX_DOOM, "X2", "");
	CU_ASSERT_TRUE(is(11, 0, WIRE_OUT_NONE));
	end(12, WIRE_TX_JOIN, "X2", "");
	CU_ASSERT_TRUE(is(12, TPEABORT, WIRE_OUT_NONE));
	end(13, WIRE_TX_COMMIT, "X2", "");
	CU_ASSERT_TRUE(is(13, TPEABORT, WIRE_OUT_ROLLED_BACK));
	end(14, WIRE_TX_DOOM, "X2", "");
	CU_ASSERT_TRUE(is(14, TPENOENT, WIRE_OUT_NONE_SUCH));
	end(15, WIRE_TX_START, "X3", "");
	end(16, WIRE_TX_PREPARE, "X3", "");
	CU_ASSERT_TRUE(is(16, 0, WIRE_OUT_READ_ONLY));
	space_done();
}

static void	/* All who worked in it are gone: it is rolled back within a second, unless it is prepared. */
xa_branch_whose_program_died(void)
{
	given_space();
	end(4, WIRE_TX_START, "X1", "");
	end(5, WIRE_TX_JOIN, "X1", "");
	end(6, WIRE_TX_START, "X2", "");
	ask_put(7, "X2");
	end(8, WIRE_TX_PREPARE, "X2", "");
	left_peer = 4;
	pass(1100);
	CU_ASSERT_EQUAL(state_of("X1"), BR_ACTIVE);	/* who joined it is there */
	left_peer = 5;
	pass(1100);
	CU_ASSERT_EQUAL(state_of("X1"), BR_ACTIVE);
	left_peer = 6;
	pass(1100);
	CU_ASSERT_EQUAL(state_of("X2"), BR_PREPARED);
	end(9, WIRE_TX_START, "X3", "");
	left_peer = 9;
	pass(1100);
	CU_ASSERT_EQUAL(state_of("X3"), -1);
	space_done();
}

/* --- many --- */

static void
a_thousand_at_once(void)
{
	enum { MANY = 1000 };
	char name[16];
	size_t asked_so_far;

	given_space();
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "T%u", i);
		ask_put(1 + i, name);
		if (n_asked == 200)
			run();
	}
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "T%u", i);
		ask_end(2001 + i, WIRE_TX_COMMIT, name, "QUE1 QUE2");
		if (n_asked == 200)
			run();
	}
	run();
	CU_ASSERT_EQUAL_FATAL(count_sent(WIRE_TX_PREPARE), MANY);
	asked_so_far = n_sent;
	for (size_t i = 0; i < asked_so_far; i++) {
		struct wire_txreply yes = { .reqid = sent[i].m.reqid, .outcome = WIRE_OUT_PREPARED };
		letters_reply(t.letters, "QUE2", &yes);
	}
	run();
	CU_ASSERT_EQUAL_FATAL(count_sent(WIRE_TX_DECIDED), MANY);
	for (size_t i = asked_so_far; i < n_sent; i++) {
		struct wire_txreply done = { .reqid = sent[i].m.reqid, .outcome = WIRE_OUT_COMMITTED };
		letters_reply(t.letters, "QUE2", &done);
	}
	for (unsigned i = 0; i < MANY; i++)
		CU_ASSERT_TRUE(is(2001 + i, 0, WIRE_OUT_COMMITTED));
	CU_ASSERT_EQUAL(depth(), MANY);
	for (int i = 0; i < 8; i++)
		pass(1100);
	CU_ASSERT_FALSE(has_record("T7"));
	CU_ASSERT_FALSE(coordinator_busy(t.coordinator));
	space_done();
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(all_say_yes_and_it_is_committed_everywhere), UNIT(first_letters_of_a_link_that_is_there_leave_before_the_flush),
		UNIT(record_is_removed_within_a_second), UNIT(logged_is_answered_after_the_decision), UNIT(all_others_only_read),
		UNIT(only_those_that_are_prepared_are_told), UNIT(one_says_no), UNIT(late_vote_is_dropped), UNIT(lost_vote_is_a_no),
		UNIT(group_that_is_nowhere_is_a_no), UNIT(votes_have_the_transactions_time), UNIT(own_branch_is_gone),
		UNIT(disk_refuses_the_decision), UNIT(decision_is_run_again_alone), UNIT(closed_though_its_batch_is_run_again),
		UNIT(disk_that_is_gone_is_not_asked_without_a_pause), UNIT(large_one_on_its_way_by_hand),
		UNIT(restarted_while_one_is_on_its_way_by_hand), UNIT(large_one_is_too_late_to_commit), UNIT(large_one_whose_steps_fail),
		UNIT(coordinator_of_a_large_one_dies), UNIT(all_the_groups_there_may_be), UNIT(large_one_that_was_ended_is_forgotten), UNIT(who_does_not_answer_is_told_later),
		UNIT(who_cannot_commit_is_told_again), UNIT(who_stands_by_is_left_for_who_serves),
		UNIT(link_that_takes_nothing_is_filled_later), UNIT(one_was_rolled_back_by_hand), UNIT(one_was_committed_by_hand_as_decided),
		UNIT(one_is_not_prepared_though_it_said_so), UNIT(one_was_committed_by_hand_and_is_rolled_back),
		UNIT(crash_before_the_decision_rolls_back), UNIT(crash_after_the_decision_goes_on_telling), UNIT(shutdown_in_the_midst),
		UNIT(query_while_it_is_decided), UNIT(commit_twice_is_one_commit_and_two_answers), UNIT(abort_while_it_is_decided),
		UNIT(branch_is_closed_while_it_is_decided), UNIT(groups_are_looked_at), UNIT(participant_does_as_it_is_told),
		UNIT(participant_without_work_leaves), UNIT(prepared_is_rolled_back_by_its_coordinator_alone),
		UNIT(silent_coordinator_is_asked), UNIT(coordinator_that_left_is_asked_at_once), UNIT(restarted_participant_asks_at_once),
		UNIT(coordinator_is_ourselves), UNIT(another_transaction_manager_is_never_asked), UNIT(participant_ended_by_hand),
		UNIT(xa_branches_are_opened_by_start_alone), UNIT(xa_branch_whose_program_died), UNIT(a_thousand_at_once),
	};
	int status;

	if (mkdtemp(dir) == NULL)
		return 2;
	snprintf(device, sizeof device, "%s/QUE", dir);
	setenv("ULOGPFX", device, 1);
	status = unit_run("tmqueue: coordinator and participant", tests, UNIT_COUNT(tests));
	for (size_t i = 0; i < BATCH_MAX; i++)
		wr_free(&frame[i]);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}
