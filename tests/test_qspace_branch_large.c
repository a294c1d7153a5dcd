/*
 * Large branches: written while they grow, decided in one batch, carried out over several; others see nothing of it, and then all.
 */
#include <errno.h>

#include "given_space.h"
#include "branch_impl.h"

enum { N = 350 };		/* messages to come, and as many to go: some chunks */

static struct branch_id
id_of(const char *gtrid)
{
	struct branch_id id = { .len = (uint8_t)strlen(gtrid) };

	memcpy(id.gtrid, gtrid, id.len);
	return id;
}

static long
records(const struct given_space *g)	/* in the files of messages, whether anything leads to them or not */
{
	long n = 0;

	for (struct segment *s = g->qs->env.seg[0].all; s != NULL; s = segment_next(s))
		n += (long)segment_records(s);
	return n;
}

static long
chunks(struct given_space *g)
{
	struct walk w;
	long n = 0;

	for (int rc = walk_first(g->qs, &w, T_OPERATIONS, false, "", 0); rc == 0; rc = walk_next(g->qs, &w))
		n++;
	walk_end(g->qs, &w);
	return n;
}

static void	/* queue "in" has N messages; "a" and "b" are empty */
queues_of(struct given_space *g)
{
	char body[16];

	create_fifo(g, "in", 5, 0);
	create_fifo(g, "a", 5, 0);
	create_fifo(g, "b", 5, 0);
	begin(g);
	for (int i = 0; i < N; i++) {
		uint8_t id[TMMSGIDLEN];
		struct qmsg_in in;
		snprintf(body, sizeof body, "in %d", i);
		in = text(body);
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "in", &in, id), 0);
	}
	commit(g);
}

/* Takes all of "in", and puts N messages on "a" and "b" by turns; some for later, some that expire, some non-persistent. */
static struct branch *
large(struct given_space *g, const char *gtrid, bool memory)
{
	struct branch *b = tx(g, gtrid);
	char body[16];

	for (int i = 0; i < N;) {
		begin(g);
		for (int k = 0; k < 50; k++, i++) {
			uint8_t id[TMMSGIDLEN];
			struct qmsg_in in;
			struct qmsg *m;
			snprintf(body, sizeof body, "out %d", i);
			in = text(body);
			in.flags = TPQCORRID | (memory && i % 5 == 4 ? TPQDELIVERYQOS : 0) | (i % 7 == 3 ? TPQEXPTIME_REL : 0);
			in.delivery_qos = TPQQOSNONPERSISTENT;
			in.exp_time = 3600;
			memset(in.corrid, 'c', sizeof in.corrid);
			CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, i % 2 == 0 ? "a" : "b", &in, id), 0);
			CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "in", NULL, &m), 0);
			qmsg_free(m);
		}
		commit(g);
	}
	return b;
}

static void	/* as if it was not there */
nothing_is_seen(struct given_space *g)
{
	struct qselect look = { .flags = TPQPEEK }, by_corrid = { .flags = TPQPEEK | TPQGETBYCORRID };
	const char *queue[] = { "in", "a", "b" };
	struct qmsg *m;

	memset(by_corrid.corrid, 'c', sizeof by_corrid.corrid);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(take(g, NULL, queue[i], &look, &m), QMENOMSG);
		CU_ASSERT_EQUAL(take(g, NULL, queue[i], &by_corrid, &m), QMENOMSG);
		CU_ASSERT_FALSE(qspace_has_eligible(g->qs, queue[i]));
	}
	CU_ASSERT_EQUAL(stat_of(g, "a").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "a").np_messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "b").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "b").bytes, 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "a", true), QMEINUSE);
	commit(g);
	CU_ASSERT_EQUAL(put(g, "in", "other"), 0);	/* and nobody is in anybody's way */
	CU_ASSERT_STRING_EQUAL(next(g, "in"), "other");
}

static void	/* every `step`th number of it is in memory, and may be lost */
all_is_there(struct given_space *g, int lost)
{
	char body[16];
	struct qmsg *m;

	CU_ASSERT_EQUAL(stat_of(g, "a").messages + stat_of(g, "b").messages + stat_of(g, "a").np_messages +
	    stat_of(g, "b").np_messages, N - (lost > 0 ? N / lost : 0));
	CU_ASSERT_EQUAL(stat_of(g, "a").held + stat_of(g, "in").held, 0);
	CU_ASSERT_EQUAL(stat_of(g, "in").messages, 0);
	for (int i = 0; i < N; i++) {
		if (lost > 0 && i % lost == lost - 1)
			continue;
		snprintf(body, sizeof body, "out %d", i);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, i % 2 == 0 ? "a" : "b", NULL, &m), 0);
		CU_ASSERT_STRING_EQUAL((const char *)m->body, body);
		qmsg_free(m);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "a"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "b"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "in"), "");
}

static void
all_is_back(struct given_space *g, int retries_min, int retries_max)
{
	char body[16];
	struct qmsg *m;

	CU_ASSERT_EQUAL(stat_of(g, "a").messages + stat_of(g, "b").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "in").messages, N);
	CU_ASSERT_EQUAL(stat_of(g, "in").held, 0);
	for (int i = 0; i < N; i++) {
		snprintf(body, sizeof body, "in %d", i);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "in", NULL, &m), 0);
		CU_ASSERT_STRING_EQUAL((const char *)m->body, body);
		CU_ASSERT_TRUE(m->retries >= retries_min && m->retries <= retries_max);
		qmsg_free(m);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "in"), "");
}

static void	/* nothing is left behind, on disk or in memory */
nothing_is_left(struct given_space *g)
{
	for (int i = 0; i < 100; i++)
		tick(g);
	CU_ASSERT_EQUAL(records(g), 0);
	CU_ASSERT_EQUAL(chunks(g), 0);
	CU_ASSERT_EQUAL(g->qs->used.branch_bytes, 0);
	CU_ASSERT_EQUAL(g->qs->used.messages, 0);
	CU_ASSERT_EQUAL(g->qs->used.pages, 0);
	CU_ASSERT_PTR_NULL(g->qs->held);
	CU_ASSERT_PTR_NULL(g->qs->branches);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "a", false), 0);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "in", false), 0);
	commit(g);
}

static int	/* in the batch */
put_alone(struct given_space *g)
{
	struct qmsg_in in = text("alone");
	uint8_t id[TMMSGIDLEN];

	return qspace_enqueue(g->qs, NULL, "in", &in, id);
}

static int
end_it(struct given_space *g, struct branch *b, bool commits, bool hand)
{
	int rc;

	begin(g);
	rc = hand ? qspace_branch_by_hand(g->qs, b, commits) : commits ? qspace_branch_commit(g->qs, b) : qspace_branch_rollback(g->qs, b);
	commit(g);
	return rc;
}

static void
all_of_it_is_seen_at_once(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	int steps = 0;

	queues_of(g);
	b = large(g, "t1", true);
	nothing_is_seen(g);
	CU_ASSERT_EQUAL(end_it(g, b, true, false), QSPACE_AGAIN);
	CU_ASSERT_EQUAL(qspace_branch_state(b), BR_COMMITTING);
	CU_ASSERT_EQUAL(end_it(g, b, true, false), QSPACE_AGAIN);	/* asked again, it is no other */
	CU_ASSERT_EQUAL(end_it(g, b, false, false), QMEPROTO);
	while (is_ending(g)) {
		nothing_is_seen(g);
		tick(g);
		steps++;
	}
	CU_ASSERT(steps >= 2 * N / 300);
	all_is_there(g, 0);
	nothing_is_left(g);
	given_done(g);
}

static void
what_is_rolled_back_comes_back(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	queues_of(g);
	b = large(g, "t1", true);
	CU_ASSERT_EQUAL(end_it(g, b, false, false), QSPACE_AGAIN);
	CU_ASSERT_EQUAL(end_it(g, b, false, false), QSPACE_AGAIN);
	CU_ASSERT_EQUAL(end_it(g, b, true, false), QMEABORTED);
	CU_ASSERT_EQUAL(tx_ended(g, QSPACE_AGAIN), 0);
	all_is_back(g, 1, 1);
	nothing_is_left(g);
	given_done(g);
}

static void
what_is_given_back_was_never_taken(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	queues_of(g);
	b = large(g, "t1", true);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_rollback_uncounted(g->qs, b, NULL), QSPACE_AGAIN);
	commit(g);
	CU_ASSERT_EQUAL(tx_ended(g, QSPACE_AGAIN), 0);
	all_is_back(g, 0, 0);
	nothing_is_left(g);
	given_done(g);
}

static void
past_its_deadline_a_large_one_is_rolled_back(void)
{
	struct given_space *g = given_space(NULL);
	struct branch_id id = id_of("t1");
	struct qmsg_in in = text("x");
	uint8_t msgid[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "in", 5, 0);
	create_fifo(g, "a", 5, 0);
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, clock_now_us() + 1000000, &b), 0);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "a", &in, msgid), 0);
	commit(g);
	CU_ASSERT_TRUE(records(g) > 0);
	clock_pass_us(2000000);
	tick(g);
	CU_ASSERT_EQUAL(tx_ended(g, QSPACE_AGAIN), 0);
	clock_pass_us(-2000000);
	nothing_is_left(g);
	given_done(g);
}

static void
an_active_one_ends_with_a_crash(void)
{
	struct given_space *g = given_space(NULL);

	queues_of(g);
	large(g, "t1", false);
	CU_ASSERT_TRUE(records(g) > N);
	CU_ASSERT_TRUE(chunks(g) > 0);
	given_killed(g);
	CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	all_is_back(g, 0, 0);
	nothing_is_left(g);
	given_done(g);
}

/* Killed after each of its batches, and killed again: the next owner goes on. */
static void
crashes_on_the_way(bool prepared, bool commits, bool hand)
{
	for (int after = 0;; after++) {
		struct given_space *g = given_space(NULL);
		struct branch *b;
		bool over;

		queues_of(g);
		b = large(g, "t1", false);
		if (prepared) {
			CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
			given_killed(g);
			CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "t1"));
			CU_ASSERT_EQUAL(qspace_branch_state(b), BR_PREPARED);
			nothing_is_seen(g);
		}
		CU_ASSERT_EQUAL(end_it(g, b, commits, hand), QSPACE_AGAIN);
		for (int i = 0; i < after; i++)
			tick(g);
		over = !is_ending(g);
		given_killed(g);
		if (!over && prepared)
			CU_ASSERT_TRUE(is_ending(g));
		for (int again = 0; is_ending(g); again++) {
			if (commits)
				nothing_is_seen(g);
			tick(g);
			if (again == 1)
				reopen(g);
		}
		if (hand) {
			CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "t1"));
			CU_ASSERT_EQUAL(qspace_branch_state(b), commits ? BR_HEUR_COMMITTED : BR_HEUR_ROLLED_BACK);
			begin(g);
			CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, b), 0);
			commit(g);
		}
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
		if (commits)
			all_is_there(g, 0);
		else
			all_is_back(g, prepared, 1);	/* a crash counts no retry */
		nothing_is_left(g);
		given_done(g);
		if (over)
			break;
	}
}

static void
a_commit_goes_on_after_a_crash(void)
{
	crashes_on_the_way(false, true, false);
}

static void
a_rollback_goes_on_after_a_crash(void)
{
	crashes_on_the_way(false, false, false);
}

static void
a_prepared_one_commits_over_crashes(void)
{
	crashes_on_the_way(true, true, false);
}

static void
a_prepared_one_rolls_back_over_crashes(void)
{
	crashes_on_the_way(true, false, false);
}

static void
by_hand_goes_on_after_a_crash(void)
{
	crashes_on_the_way(true, true, true);
	crashes_on_the_way(true, false, true);
}

/* Every batch is taken back once before it is done: while it grows, in prepare, in the end's. */
static void
batches_that_fail_change_nothing(void)
{
	for (int how = 0; how < 4; how++) {
		struct given_space *g = given_space(NULL);
		bool commits = how % 2 == 0, hand = how >= 2;
		struct branch *b;

		queues_of(g);
		b = tx(g, "t1");
		for (int i = 0, batches = 0; i < 2 * N; batches++) {
			struct qmsg_in in;
			struct qmsg *m;
			char body[16];
			uint8_t id[TMMSGIDLEN];
			bool fails = batches % 2 == 0;
			begin(g);
			for (int k = 0; k < 100; k++, i++) {
				snprintf(body, sizeof body, "out %d", i / 2);
				in = text(body);
				if (i % 2 == 0) {
					CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, i / 2 % 2 == 0 ? "a" : "b", &in, id), 0);
				} else {
					CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "in", NULL, &m), 0);
					qmsg_free(m);
				}
			}
			if (fails) {
				qspace_batch_abort(g->qs);
				i -= 100;
				continue;
			}
			commit(g);
		}
		for (int fails = 1; fails >= 0; fails--) {
			begin(g);
			CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GROUP1"), 0);
			if (fails)
				qspace_batch_abort(g->qs);
			else
				commit(g);
			CU_ASSERT_EQUAL(qspace_branch_state(b), fails ? BR_ACTIVE : BR_PREPARED);
		}
		for (int fails = 1; fails >= 0; fails--) {
			begin(g);
			CU_ASSERT_EQUAL(hand ? qspace_branch_by_hand(g->qs, b, commits) : commits ? qspace_branch_commit(g->qs, b) :
			    qspace_branch_rollback(g->qs, b), QSPACE_AGAIN);
			if (fails)
				qspace_batch_abort(g->qs);
			else
				commit(g);
			CU_ASSERT_EQUAL(is_ending(g), !fails);
		}
		while (is_ending(g)) {
			begin(g);
			qspace_tick(g->qs, clock_now_us());
			qspace_batch_abort(g->qs);
			if (commits)
				nothing_is_seen(g);
			tick(g);
		}
		if (hand) {
			begin(g);
			CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, find_tx(g, "t1")), 0);
			commit(g);
		}
		if (commits)
			all_is_there(g, 0);
		else
			all_is_back(g, 1, 1);
		nothing_is_left(g);
		given_done(g);
	}
}

static int fail_in;		/* writes and flushes until one fails; 0: none does */
static int failed;

static int
failing(int fd, size_t n)
{
	(void)fd;
	(void)n;
	if (fail_in == 0 || --fail_in > 0)
		return 0;
	failed++;
	return EIO;
}

/*
 * The disk fails once, in the n-th write of a batch on the way: the space is recovered in place, the batch has happened or not, and in
 * the end all of the branch has.
 */
static void
a_disk_that_fails_on_the_way_stops_nothing(void)
{
	for (int how = 0; how < 4; how++)
		for (int at = 1; at <= 3; at++) {
			struct given_space *g = given_space(NULL);
			bool commits = how % 2 == 0, prepared = how >= 2;
			int steps = 0, rc;

			queues_of(g);
			large(g, "t1", false);
			env_fault = failing;
			fail_in = at;
			begin(g);
			rc = put_alone(g);
			if (rc != 0 || qspace_batch_commit(g->qs) != 0)
				qspace_batch_abort(g->qs);
			fail_in = 0;
			begin(g);		/* recovered, with a large active one */
			commit(g);
			while (next(g, "in")[0] != '\0')
				;
			CU_ASSERT_PTR_NOT_NULL_FATAL(find_tx(g, "t1"));
			if (prepared) {
				CU_ASSERT_EQUAL(tx_prepare(g, find_tx(g, "t1"), "GROUP1"), 0);
				fail_in = at;
				begin(g);
				rc = put_alone(g);
				if (rc != 0 || qspace_batch_commit(g->qs) != 0)
					qspace_batch_abort(g->qs);
				fail_in = 0;
				begin(g);	/* and with a prepared one */
				commit(g);
				CU_ASSERT_EQUAL(qspace_branch_state(find_tx(g, "t1")), BR_PREPARED);
				while (next(g, "in")[0] != '\0')
					;
			}
			CU_ASSERT_EQUAL(end_it(g, find_tx(g, "t1"), commits, false), QSPACE_AGAIN);
			while (is_ending(g) && steps++ < 1000) {
				if (steps == 2 && (prepared || commits))
					fail_in = at;
				if (qspace_batch_begin(g->qs) != 0)
					continue;
				g->qs->step_after_us = 0;
				qspace_tick(g->qs, clock_now_us());
				if (qspace_batch_commit(g->qs) != 0)
					qspace_batch_abort(g->qs);
				if (commits && fail_in == 0 && qspace_batch_begin(g->qs) == 0) {
					commit(g);
					if (is_ending(g))
						nothing_is_seen(g);
				}
			}
			fail_in = 0;
			env_fault = NULL;
			begin(g);
			commit(g);
			if (commits)
				all_is_there(g, 0);
			else
				all_is_back(g, 1, 1);
			nothing_is_left(g);
			given_killed(g);
			CU_ASSERT_EQUAL(records(g), 0);
			CU_ASSERT_PTR_NULL(g->qs->branches);
			given_done(g);
		}
	CU_ASSERT_TRUE(failed > 12);
}

static void	/* Nobody needs to ask for anything meanwhile. */
a_step_that_failed_is_tried_again_by_itself(void)
{
	struct given_space *g = given_space(NULL);
	int64_t next;

	queues_of(g);
	CU_ASSERT_EQUAL(end_it(g, large(g, "t1", false), true, false), QSPACE_AGAIN);
	g->qs->step_after_us = clock_mono_us() + 1000000;
	begin(g);
	next = qspace_tick(g->qs, clock_now_us());
	commit(g);
	CU_ASSERT_TRUE(next > clock_now_us() && next <= clock_now_us() + 1000000);
	clock_pass_us(1000000);
	CU_ASSERT_EQUAL(tx_ended(g, QSPACE_AGAIN), 0);
	clock_pass_us(-1000000);
	all_is_there(g, 0);
	given_done(g);
}

static void	/* Its chunks go once it is only remembered, however long its holds take. */
nothing_is_left_of_one_that_is_remembered(void)
{
	enum { MANY = 3000 };
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("x");
	uint8_t id[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "a", 5, 0);
	b = tx(g, "t1");
	for (int i = 0; i < MANY; i++) {
		if (i % 100 == 0)
			begin(g);
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "a", &in, id), 0);
		if (i % 100 == 99)
			commit(g);
	}
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
	CU_ASSERT_EQUAL(end_it(g, b, true, true), QSPACE_AGAIN);
	for (int i = 0; is_ending(g) && i < 1000; i++)
		tick(g);
	for (int i = 0; i < 100; i++)
		tick(g);
	CU_ASSERT_EQUAL(chunks(g), 0);
	CU_ASSERT_EQUAL(stat_of(g, "a").messages, MANY);
	given_done(g);
}

static void	/* Part of what it has in memory has its place already: nobody sees it ahead of the rest. */
closed_while_one_is_committed(void)
{
	for (int steps = 0; steps < 4; steps++) {
		struct given_space *g = given_space(NULL);

		queues_of(g);
		CU_ASSERT_EQUAL(end_it(g, large(g, "t1", true), true, false), QSPACE_AGAIN);
		for (int i = 0; i < steps && is_ending(g); i++)
			tick(g);
		reopen(g);
		while (is_ending(g)) {
			nothing_is_seen(g);
			tick(g);
		}
		all_is_there(g, 0);
		nothing_is_left(g);
		given_done(g);
	}
}

/* What was in memory is gone, and a large transaction that had taken some of it goes on with the rest. */
static void
memory_is_lost_under_a_large_one(void)
{
	enum { HALF = CHUNK_OPS / 2 };
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("x");
	uint8_t id[TMMSGIDLEN];
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "in", 5, 0);
	create_fifo(g, "a", 5, 0);
	begin(g);
	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	for (int i = 0; i < HALF; i++)
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "in", &in, id), 0);
	commit(g);
	in.flags = 0;
	b = tx(g, "t1");
	begin(g);
	for (int i = 0; i < HALF; i++) {
		CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "a", &in, id), 0);
		CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "in", NULL, &m), 0);
		qmsg_free(m);
	}
	commit(g);
	CU_ASSERT_EQUAL(b->n_stored, b->n);
	g->qs->env.np_broken = g->qs->env.panicked = true;
	begin(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "t1"));
	CU_ASSERT_EQUAL(b->n, HALF);
	CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, b, "a", &in, id), 0);
	commit(g);
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
	given_killed(g);
	CU_ASSERT_EQUAL(end_it(g, find_tx(g, "t1"), true, false), QSPACE_AGAIN);
	for (int i = 0; is_ending(g) && i < 100; i++)
		tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "a").messages, HALF + 1);
	given_done(g);
}

static int told;
static bool by_corrid;

static void
count_events(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	(void)arg;
	(void)msgid;
	if (strcmp(queue, "a") == 0)
		told++;
	by_corrid |= corrid != NULL && corrid[0] == 'c';
}

static void	/* who waits for any hears at once, who waits for one soon */
those_who_wait_are_told(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	queues_of(g);
	b = large(g, "t1", false);
	qspace_on_eligible(g->qs, count_events, NULL);
	told = 0;
	by_corrid = false;
	CU_ASSERT_EQUAL(end_it(g, b, true, false), QSPACE_AGAIN);
	while (is_ending(g)) {
		CU_ASSERT_EQUAL(told, 0);
		tick(g);
	}
	CU_ASSERT_TRUE(told > 0);
	tick(g);
	CU_ASSERT_TRUE(by_corrid);
	CU_ASSERT_TRUE(told >= N / 2);
	all_is_there(g, 0);
	nothing_is_left(g);
	given_done(g);
}

/* What becomes visible may be taken, and held again, at once, while the old holds are still being freed. */
static void
what_came_can_be_taken_in_the_next_transaction(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b, *second;
	struct qmsg *m;

	queues_of(g);
	b = large(g, "t1", false);
	second = tx(g, "t2");
	CU_ASSERT_EQUAL(end_it(g, b, true, false), QSPACE_AGAIN);
	for (bool over = false; !over;) {
		begin(g);
		qspace_tick(g->qs, clock_now_us());
		commit(g);
		over = !is_ending(g);
	}
	CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL_FATAL(take(g, second, "a", NULL, &m), 0);
		qmsg_free(m);
	}
	CU_ASSERT_EQUAL(stat_of(g, "a").held, 100);
	for (int i = 0; i < 10; i++)
		tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "a").held, 100);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "a", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "out 200");
	qmsg_free(m);
	CU_ASSERT_EQUAL(tx_roll_back(g, second), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "a"), "out 0");
	given_done(g);
}

/* Memory is the limit of a branch's list: refused at the same operation each time, and what was accepted can still be ended. */
static void
the_limit_is_the_same_each_time(void)
{
	long at[2];

	for (int round = 0; round < 2; round++) {
		struct qspace_params p = given_params("QS");
		struct qmsg_in in = text("x");
		struct given_space *g;
		uint8_t id[TMMSGIDLEN];
		struct branch *b;
		int rc = 0;
		long n = 0;

		p.messages = 2000000;
		p.pages = 2100000;
		g = given_space(&p);
		branch_bytes_max = 4 << 20;
		create_fifo(g, "a", 0, 0);
		create_fifo(g, "in", 0, 0);
		b = tx(g, "t1");
		while (rc == 0) {
			begin(g);
			for (int i = 0; i < (round == 0 ? 17 : 200) && rc == 0; i++)
				if ((rc = qspace_enqueue(g->qs, b, "a", &in, id)) == 0)
					n++;
			commit(g);
		}
		CU_ASSERT_EQUAL(rc, QMENOSPACE);
		CU_ASSERT_EQUAL(put(g, "a", "other"), 0);
		CU_ASSERT_STRING_EQUAL(next(g, "a"), "other");
		at[round] = n;
		if (round == 0)
			CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
		if (round == 1) {
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
			CU_ASSERT_EQUAL(stat_of(g, "a").messages, n);
			begin(g);
			CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "a", true), n > 0 && g->qs->releasing != NULL ? QMEINUSE : 0);
			commit(g);
		} else
			nothing_is_left(g);
		branch_bytes_max = 0;
		given_done(g);
	}
	CU_ASSERT_EQUAL(at[0], at[1]);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(all_of_it_is_seen_at_once),
		UNIT(what_is_rolled_back_comes_back), UNIT(what_is_given_back_was_never_taken),
		UNIT(past_its_deadline_a_large_one_is_rolled_back),
		UNIT(an_active_one_ends_with_a_crash),
		UNIT(a_commit_goes_on_after_a_crash),
		UNIT(a_rollback_goes_on_after_a_crash),
		UNIT(a_prepared_one_commits_over_crashes),
		UNIT(a_prepared_one_rolls_back_over_crashes),
		UNIT(by_hand_goes_on_after_a_crash),
		UNIT(batches_that_fail_change_nothing),
		UNIT(a_disk_that_fails_on_the_way_stops_nothing),
		UNIT(a_step_that_failed_is_tried_again_by_itself), UNIT(nothing_is_left_of_one_that_is_remembered),
		UNIT(closed_while_one_is_committed), UNIT(memory_is_lost_under_a_large_one), UNIT(those_who_wait_are_told),
		UNIT(what_came_can_be_taken_in_the_next_transaction),
		UNIT(the_limit_is_the_same_each_time),
	};

	return unit_run("qspace large branches", tests, UNIT_COUNT(tests));
}
