/*
 * Branches: what a transaction takes and puts is its own until it ends; retries, the error queue, what is prepared.
 */
#include "given_space.h"

static void
what_is_put_shows_at_commit_alone(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect look = { .flags = TPQPEEK };
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("one"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("two"), NULL), 0);
	CU_ASSERT_EQUAL(take(g, NULL, "orders", &look, &m), QMENOMSG);
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "");	/* not even to itself */
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("never"), NULL), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void
what_is_taken_is_hidden_and_comes_back_to_its_place(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	put(g, "orders", "two");
	put(g, "orders", "three");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 0);
	reopen(g);			/* the count is durable */
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "one");
	CU_ASSERT_EQUAL(m->retries, 1);
	qmsg_free(m);
	b = tx(g, "t2");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "three");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	given_done(g);
}

static void	/* retries 0, delay 60: one failure, and it is at once on the error queue */
spent_retries_lead_to_the_error_queue_at_once(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("bad");
	uint8_t id[TMMSGIDLEN];
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 60);
	create_fifo(g, "ERRQ", 0, 0);
	in.flags = TPQCORRID;
	memset(in.corrid, 'k', sizeof in.corrid);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, id), 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "bad");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 1);
	reopen(g);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "ERRQ", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "bad");
	CU_ASSERT_NOT_EQUAL(memcmp(m->msgid, id, sizeof id), 0);
	CU_ASSERT_EQUAL(memcmp(m->corrid, in.corrid, sizeof in.corrid), 0);
	qmsg_free(m);
	given_done(g);
}

static void
a_message_of_the_error_queue_stays_there(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "ERRQ", 0, 0);
	put(g, "ERRQ", "bad");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "ERRQ"), "bad");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	b = tx(g, "t2");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "ERRQ"), "bad");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "");	/* whoever fails on it again and again does not spin */
	clock_shift_us(2000000);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "bad");
	clock_shift_us(-2000000);
	given_done(g);
}

static void
without_an_error_queue_it_is_deleted(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 1, 0);
	put(g, "orders", "bad");
	for (int i = 0; i < 2; i++) {
		b = tx(g, "t1");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "bad");
		CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	given_done(g);
}

static void
while_the_retry_delay_runs_it_is_hidden(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect sel = { .flags = TPQGETBYMSGID };
	uint8_t id[TMMSGIDLEN];
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 5, 60);
	put_in(g, NULL, "orders", text("one"), id);
	put(g, "orders", "two");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 1);
	reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 1);
	memcpy(sel.msgid, id, sizeof id);
	CU_ASSERT_EQUAL(take(g, NULL, "orders", &sel, &m), QMENOMSG);
	sel.flags = TPQGETBYMSGID | WIRE_QDELAYED;
	b = tx(g, "t2");
	CU_ASSERT_EQUAL_FATAL(take(g, b, "orders", &sel, &m), 0);	/* who knows it may have it */
	qmsg_free(m);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	clock_shift_us(59000000);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	put(g, "orders", "three");
	clock_shift_us(2000000);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);	/* its old place */
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "one");
	CU_ASSERT_EQUAL(m->retries, 2);
	qmsg_free(m);
	clock_shift_us(-61000000);
	given_done(g);
}

static int
give_back(struct given_space *g, struct branch *b)
{
	int rc;

	begin(g);
	rc = qspace_branch_rollback_uncounted(g->qs, b, NULL);
	commit(g);
	return rc;
}

static void	/* no retry, no delay, not to the error queue; in its old place */
what_is_given_back_was_never_taken(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 60);
	create_fifo(g, "ERRQ", 0, 0);
	put(g, "orders", "one");
	put(g, "orders", "two");
	for (int i = 0; i < 3; i++) {
		b = tx(g, "t1");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("never"), NULL), 0);
		CU_ASSERT_EQUAL(give_back(g, b), 0);
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	}
	CU_ASSERT_EQUAL(stat_of(g, "orders").held + stat_of(g, "orders").delayed + stat_of(g, "ERRQ").messages, 0);
	reopen(g);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "one");
	CU_ASSERT_EQUAL(m->retries, 0);
	qmsg_free(m);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void
given_back_when_its_time_is_over_it_expires(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("one");
	struct branch *b;

	create_fifo(g, "orders", 0, 0);
	in.flags = TPQEXPTIME_REL;
	in.exp_time = 10;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	clock_shift_us(20000000);
	CU_ASSERT_EQUAL(give_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	clock_shift_us(-20000000);
	given_done(g);
}

static void	/* one that is prepared counts all the same; a batch that is undone leaves nothing behind */
given_back_counts_for_active_ones_alone(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_rollback_uncounted(g->qs, b, NULL), 0);
	qspace_batch_abort(g->qs);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	b = tx(g, "t2");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	CU_ASSERT_EQUAL(tx_prepare(g, b, ""), 0);
	CU_ASSERT_EQUAL(give_back(g, b), 0);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_EQUAL(m->retries, 2);
	qmsg_free(m);
	given_done(g);
}

static void
doomed_branches_roll_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg *m;
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	qspace_branch_doom(b);
	CU_ASSERT_TRUE(qspace_branch_doomed(b));
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("x"), NULL), QMEABORTED);
	CU_ASSERT_EQUAL(take(g, b, "orders", NULL, &m), QMEABORTED);
	CU_ASSERT_EQUAL(tx_commit(g, b), QMEABORTED);
	CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	given_done(g);
}

static void
past_its_deadline_a_branch_is_rolled_back(void)
{
	struct given_space *g = given_space(NULL);
	struct branch_id id = { 2, "t1" };
	int64_t now = clock_now_us();
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, now + 5000000, &b), 0);
	commit(g);
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	begin(g);
	CU_ASSERT(qspace_tick(g->qs, clock_now_us()) <= now + 5001000);
	commit(g);
	CU_ASSERT_PTR_NOT_NULL(qspace_branch_find(g->qs, &id));
	clock_shift_us(INT64_C(-7200) * 1000000);	/* who sets the clock rolls nothing back */
	tick(g);
	clock_shift_us(INT64_C(2 * 7200) * 1000000);
	tick(g);
	CU_ASSERT_PTR_NOT_NULL(qspace_branch_find(g->qs, &id));
	clock_shift_us(INT64_C(-2 * 7200) * 1000000);	/* and keeps nothing */
	clock_pass_us(5000000);
	begin(g);
	CU_ASSERT_EQUAL(qspace_tick(g->qs, clock_now_us()), INT64_MAX);
	commit(g);
	CU_ASSERT_PTR_NULL(qspace_branch_find(g->qs, &id));
	clock_pass_us(-5000000);
	clock_shift_us(INT64_C(7200) * 1000000);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	given_done(g);
}

static void	/* Prepared, killed, and committed by its coordinator: the order they were put in, once each. */
in_doubt_waits_for_its_outcome(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect look = { .flags = TPQPEEK };
	struct branch_info *list;
	struct branch *b;
	struct qmsg *m;
	size_t n;

	create_fifo(g, "orders", 5, 0);
	create_fifo(g, "out", 5, 0);
	put(g, "orders", "in");
	put(g, "orders", "next");
	b = tx(g, "gid-1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "in");
	CU_ASSERT_EQUAL(put_in(g, b, "out", text("A"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, b, "out", text("B"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, b, "out", text("C"), NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GRP1"), 0);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GRP1"), 0);
	commit(g);
	CU_ASSERT_EQUAL(put_in(g, b, "out", text("late"), NULL), QMEPROTO);
	reopen(g);
	CU_ASSERT_EQUAL(qspace_branch_list(g->qs, &list, &n), 0);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_STRING_EQUAL(list[0].state_name, "prepared");
	CU_ASSERT_STRING_EQUAL(list[0].coordinator, "GRP1");
	CU_ASSERT_EQUAL(list[0].enqueues, 3);
	CU_ASSERT_EQUAL(list[0].dequeues, 1);
	free(list);
	CU_ASSERT_EQUAL(take(g, NULL, "out", &look, &m), QMENOMSG);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", &look, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "next");
	qmsg_free(m);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), QMEINUSE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "out", true), QMEINUSE);
	commit(g);
	CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "gid-1")), 0);
	reopen(g);
	CU_ASSERT_PTR_NULL(find_tx(g, "gid-1"));
	CU_ASSERT_STRING_EQUAL(next(g, "out"), "A");
	CU_ASSERT_STRING_EQUAL(next(g, "out"), "B");
	CU_ASSERT_STRING_EQUAL(next(g, "out"), "C");
	CU_ASSERT_STRING_EQUAL(next(g, "out"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "next");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void
in_doubt_may_roll_back_after_a_restart(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "in");
	b = tx(g, "gid-1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "in");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("out"), NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GRP1"), 0);
	commit(g);
	reopen(g);
	CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "gid-1")), 0);
	reopen(g);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "in");
	CU_ASSERT_EQUAL(m->retries, 1);
	qmsg_free(m);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Whatever a branch did in the batch, it has not done. */
an_aborted_batch_puts_branches_back(void)
{
	struct given_space *g = given_space(NULL);
	struct branch_id id = { 3, "new" };
	struct branch *old, *ended, *fresh;
	struct qmsg_in in = text("x");
	uint8_t msgid[TMMSGIDLEN];
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	put(g, "orders", "two");
	put(g, "orders", "three");
	old = tx(g, "old");
	ended = tx(g, "ended");
	CU_ASSERT_STRING_EQUAL(next_in(g, ended, "orders"), "one");
	CU_ASSERT_EQUAL(put_in(g, ended, "orders", text("four"), NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_dequeue(g->qs, old, "orders", NULL, &m), 0);
	qmsg_free(m);
	CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, 0, &fresh), 0);
	CU_ASSERT_EQUAL(qspace_dequeue(g->qs, fresh, "orders", NULL, &m), 0);
	qmsg_free(m);
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, fresh, "orders", &in, msgid), 0);
	CU_ASSERT_EQUAL(qspace_branch_commit(g->qs, ended), 0);
	CU_ASSERT_PTR_NULL(find_tx(g, "ended"));
	qspace_batch_abort(g->qs);
	CU_ASSERT_PTR_NULL(find_tx(g, "new"));
	CU_ASSERT_PTR_EQUAL(find_tx(g, "ended"), ended);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 3);
	CU_ASSERT_STRING_EQUAL(next_in(g, old, "orders"), "two");
	CU_ASSERT_EQUAL(tx_commit(g, ended), 0);
	CU_ASSERT_EQUAL(tx_commit(g, old), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "three");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "four");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void /* More held messages than a window holds: a dequeue finds what is behind them, and all of them come back.
	     */
	    thousands_are_held_at_the_head(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	char body[32];
	struct qmsg *m;

	create_fifo(g, "orders", 5, 0);
	begin(g);
	for (int i = 0; i < 5000; i++) {
		struct qmsg_in in;
		uint8_t id[TMMSGIDLEN];
		snprintf(body, sizeof body, "%d", i);
		in = text(body);
		CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	}
	commit(g);
	b = tx(g, "t1");
	begin(g);
	for (int i = 0; i < 4000; i++) {
		CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, b, "orders", NULL, &m), 0);
		qmsg_free(m);
	}
	commit(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "4000");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	for (int i = 0; i < 5000; i++) {
		if (i == 4000)
			continue;
		snprintf(body, sizeof body, "%d", i);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Takes at random, by four transactions that commit or roll back: nothing lost, nothing twice. */
crossing_transactions_keep_the_sum(void)
{
	enum { MESSAGES = 200, ROUNDS = 3000 };
	struct given_space *g = given_space(NULL);
	struct branch *b[4] = { 0 };
	bool seen[MESSAGES] = { false };
	char body[32], name[8];
	struct qmsg *m;
	unsigned r = 7;
	int n = 0;

	create_fifo(g, "A", 1000000, 0);
	create_fifo(g, "B", 1000000, 0);
	for (int i = 0; i < MESSAGES; i++) {
		snprintf(body, sizeof body, "%d", i);
		put(g, i % 2 ? "A" : "B", body);
	}
	for (int i = 0; i < ROUNDS; i++) {
		int t = (int)((r = r * 1103515245 + 12345) >> 16) % 4, what = (int)(r >> 20) % 8;
		const char *from = r >> 24 & 1 ? "A" : "B", *to = r >> 24 & 1 ? "B" : "A";
		snprintf(name, sizeof name, "t%d", t);
		if (b[t] == NULL)
			b[t] = tx(g, name);
		if (what < 6) {
			if (take(g, b[t], from, NULL, &m) == 0) {
				CU_ASSERT_EQUAL(put_in(g, b[t], to, text((const char *)m->body), NULL), 0);
				qmsg_free(m);
			}
		} else {
			CU_ASSERT_EQUAL(what == 6 ? tx_commit(g, b[t]) : tx_roll_back(g, b[t]), 0);
			b[t] = NULL;
		}
	}
	for (int t = 0; t < 4; t++)
		if (b[t] != NULL)
			CU_ASSERT_EQUAL(tx_roll_back(g, b[t]), 0);
	CU_ASSERT_EQUAL(stat_of(g, "A").messages + stat_of(g, "B").messages, MESSAGES);
	while (take(g, NULL, n < MESSAGES && stat_of(g, "A").messages > 0 ? "A" : "B", NULL, &m) == 0) {
		int i = atoi((const char *)m->body);
		CU_ASSERT_FALSE(seen[i]);
		seen[i] = true;
		n++;
		qmsg_free(m);
	}
	CU_ASSERT_EQUAL(n, MESSAGES);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_is_put_shows_at_commit_alone),
		UNIT(what_is_taken_is_hidden_and_comes_back_to_its_place),
		UNIT(spent_retries_lead_to_the_error_queue_at_once),
		UNIT(a_message_of_the_error_queue_stays_there),
		UNIT(without_an_error_queue_it_is_deleted),
		UNIT(while_the_retry_delay_runs_it_is_hidden),
		UNIT(what_is_given_back_was_never_taken), UNIT(given_back_when_its_time_is_over_it_expires),
		UNIT(given_back_counts_for_active_ones_alone),
		UNIT(doomed_branches_roll_back),
		UNIT(past_its_deadline_a_branch_is_rolled_back),
		UNIT(in_doubt_waits_for_its_outcome),
		UNIT(in_doubt_may_roll_back_after_a_restart),
		UNIT(an_aborted_batch_puts_branches_back),
		UNIT(thousands_are_held_at_the_head),
		UNIT(crossing_transactions_keep_the_sum),
	};
	return unit_run("qspace branch", tests, UNIT_COUNT(tests));
}
