/*
 * Branches that an administrator ends by hand, and decisions of a coordinator: remembered until they are not needed.
 */
#include "given_space.h"

static struct branch_info
info_of(struct given_space *g, const char *gtrid)
{
	struct branch_info *all = NULL, found = { .state_name = "" };
	size_t n = 0;

	CU_ASSERT_EQUAL_FATAL(qspace_branch_list(g->qs, &all, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (all[i].id.len == strlen(gtrid) && memcmp(all[i].id.gtrid, gtrid, all[i].id.len) == 0)
			found = all[i];
	free(all);
	return found;
}

static void	/* It takes the first message of "orders" and puts "new" there. */
prepared(struct given_space *g, const char *gtrid)
{
	struct branch *b = tx(g, gtrid);

	qspace_branch_set_owner(b, "process 123 of user 1000");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("new"), NULL), 0);
	(void)next_in(g, b, "orders");
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
}

static void
by_hand_is_remembered_until_it_is_forgotten(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 5, 0);
	for (int commits = 0; commits < 2; commits++) {
		put(g, "orders", "old");
		prepared(g, "t1");
		given_killed(g);
		CU_ASSERT_STRING_EQUAL(info_of(g, "t1").owner, "process 123 of user 1000");
		CU_ASSERT_EQUAL(by_hand(g, find_tx(g, "t1"), commits), 0);
		CU_ASSERT_EQUAL(stat_of(g, "orders").held, 0);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), commits ? "new" : "old");
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		for (int how = 0; how < 3; how++) {
			struct branch_info i = info_of(g, "t1");
			struct branch *b = find_tx(g, "t1");

			CU_ASSERT_PTR_NOT_NULL_FATAL(b);
			CU_ASSERT_EQUAL(i.state, commits ? BR_HEUR_COMMITTED : BR_HEUR_ROLLED_BACK);
			CU_ASSERT_STRING_EQUAL(i.state_name, commits ? "heuristically committed" : "heuristically rolled back");
			CU_ASSERT_STRING_EQUAL(i.owner, "process 123 of user 1000");
			CU_ASSERT_STRING_EQUAL(i.coordinator, "GROUP1");
			CU_ASSERT_EQUAL(i.enqueues + i.dequeues + i.bytes, 0);
			CU_ASSERT_EQUAL(put_in(g, b, "orders", text("late"), NULL), QMEPROTO);
			CU_ASSERT_EQUAL(tx_commit(g, b), QMEPROTO);
			CU_ASSERT_EQUAL(tx_roll_back(g, b), QMEPROTO);
			CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), QMEPROTO);
			CU_ASSERT_EQUAL(by_hand(g, b, true), QMEPROTO);
			if (how == 0)
				given_killed(g);
			else
				reopen(g);
		}
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, find_tx(g, "t1")), 0);
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
		qspace_batch_abort(g->qs);
		CU_ASSERT_PTR_NOT_NULL_FATAL(find_tx(g, "t1"));
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, find_tx(g, "t1")), 0);
		commit(g);
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
		given_killed(g);
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	}
	given_done(g);
}

static void
only_what_is_prepared_is_ended_by_hand(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("one"), NULL), 0);
	CU_ASSERT_EQUAL(by_hand(g, b, true), QMEPROTO);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, b), QMEPROTO);
	commit(g);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	given_done(g);
}

static void	/* an abort of the batch leaves it in doubt, with what it holds */
by_hand_in_a_batch_that_fails_has_not_happened(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "old");
	prepared(g, "t1");
	for (int commits = 0; commits < 2; commits++) {
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_by_hand(g->qs, find_tx(g, "t1"), commits), 0);
		qspace_batch_abort(g->qs);
		CU_ASSERT_EQUAL(qspace_branch_state(find_tx(g, "t1")), BR_PREPARED);
		CU_ASSERT_EQUAL(info_of(g, "t1").enqueues, 1);
		CU_ASSERT_EQUAL(info_of(g, "t1").dequeues, 1);
		CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	}
	CU_ASSERT_EQUAL(by_hand(g, find_tx(g, "t1"), true), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "new");
	given_done(g);
}

/* A space full of transactions can still record outcomes: each takes the place of one, and has no share in their limit;
 * of outcomes that nobody fetches there are as many as the space has transactions. */
static void
outcomes_have_room_when_transactions_have_none(void)
{
	struct qspace_params p = given_params("QS");
	struct branch_id id = { .len = 3, .gtrid = "t-9" };
	struct given_space *g;
	struct branch *b;
	char name[8];

	p.trans = 3;
	g = given_space(&p);
	create_fifo(g, "orders", 5, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			snprintf(name, sizeof name, "%c-%d", 'a' + round, i);
			put(g, "orders", "old");
			prepared(g, name);
		}
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, 0, &b), QMENOSPACE);
		commit(g);
		for (int i = 0; i < 3; i++) {
			snprintf(name, sizeof name, "%c-%d", 'a' + round, i);
			CU_ASSERT_EQUAL(by_hand(g, find_tx(g, name), true), round == 0 ? 0 : QMENOSPACE);
		}
		given_killed(g);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "a-%d", i);
		CU_ASSERT_EQUAL(qspace_branch_state(find_tx(g, name)), BR_HEUR_COMMITTED);
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, find_tx(g, name)), 0);
		commit(g);
		snprintf(name, sizeof name, "b-%d", i);
		CU_ASSERT_EQUAL(by_hand(g, find_tx(g, name), true), 0);
	}
	CU_ASSERT_PTR_NOT_NULL(tx(g, "t-9"));
	given_done(g);
}

static void
nothing_to_commit_is_read_only(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "");
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), QSPACE_READ_ONLY);
	CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("one"), NULL), 0);
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
	CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP2"), 0);		/* again: it is so already */
	CU_ASSERT_STRING_EQUAL(qspace_branch_coordinator(b), "GROUP1");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	given_done(g);
}

static void	/* Nobody adds to it, and no deadline ends it, while its coordinator decides. */
a_closed_branch_is_left_alone(void)
{
	struct given_space *g = given_space(NULL);
	struct branch_id id = { .len = 2, .gtrid = "t1" };
	struct qmsg *m;
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, clock_now_us() + 1000000, &b), 0);
	commit(g);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("two"), NULL), 0);
	begin(g);
	qspace_branch_close(b);
	qspace_batch_abort(g->qs);
	CU_ASSERT_TRUE(info_of(g, "t1").closed);
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("three"), NULL), QMEPROTO);
	CU_ASSERT_EQUAL(take(g, b, "orders", NULL, &m), QMEPROTO);
	clock_pass_us(2000000);
	tick(g);
	clock_pass_us(-2000000);
	CU_ASSERT_PTR_EQUAL(find_tx(g, "t1"), b);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	given_done(g);
}

static void
decisions_stay_until_they_are_removed(void)
{
	struct given_space *g = given_space(NULL);
	struct wire_groups groups = { .n = 2, .name = { "GROUP1", "GROUP2" } }, found;
	struct branch_id id[3] = { { .len = 1, .gtrid = "a" }, { .len = QSPACE_GTRID_MAX }, { .len = 2, .gtrid = "zz" } }, next;
	struct branch *b;
	int n = 0;

	memset(id[1].gtrid, 'b', sizeof id[1].gtrid);
	create_fifo(g, "orders", 5, 0);
	CU_ASSERT_EQUAL(qspace_decision_next(g->qs, NULL, &next, &found), QMENOMSG);
	for (int how = 0; how < 2; how++) {		/* with the branch, or not at all */
		b = tx(g, "zz");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("one"), NULL), 0);
		begin(g);
		for (int i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(qspace_decision_put(g->qs, &id[i], &groups), 0);
		CU_ASSERT_EQUAL(qspace_branch_commit(g->qs, b), 0);
		if (how == 0)
			qspace_batch_abort(g->qs);
		else
			commit(g);
		given_killed(g);
		CU_ASSERT_STRING_EQUAL(next_in(g, NULL, "orders"), how == 0 ? "" : "one");
		for (int i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(qspace_decision_get(g->qs, &id[i], &found), how == 0 ? QMENOMSG : 0);
	}
	CU_ASSERT_EQUAL(found.n, 2);
	CU_ASSERT_STRING_EQUAL(found.name[1], "GROUP2");
	for (struct branch_id *after = NULL; qspace_decision_next(g->qs, after, &next, &found) == 0; after = &next, n++) {
		CU_ASSERT_EQUAL(next.len, id[n].len);
		CU_ASSERT_EQUAL(memcmp(next.gtrid, id[n].gtrid, next.len), 0);
		CU_ASSERT_STRING_EQUAL(found.name[0], "GROUP1");
	}
	CU_ASSERT_EQUAL(n, 3);
	begin(g);
	CU_ASSERT_EQUAL(qspace_decision_remove(g->qs, &id[1]), 0);
	CU_ASSERT_EQUAL(qspace_decision_remove(g->qs, &id[1]), 0);
	commit(g);
	given_killed(g);
	CU_ASSERT_EQUAL(qspace_decision_get(g->qs, &id[1], &found), QMENOMSG);
	CU_ASSERT_EQUAL(qspace_decision_get(g->qs, &id[0], &found), 0);
	CU_ASSERT_EQUAL(qspace_decision_next(g->qs, &id[1], &next, &found), 0);	/* also after one that is gone */
	CU_ASSERT_EQUAL(memcmp(next.gtrid, "zz", 2), 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(by_hand_is_remembered_until_it_is_forgotten),
		UNIT(only_what_is_prepared_is_ended_by_hand),
		UNIT(by_hand_in_a_batch_that_fails_has_not_happened),
		UNIT(outcomes_have_room_when_transactions_have_none),
		UNIT(nothing_to_commit_is_read_only),
		UNIT(a_closed_branch_is_left_alone),
		UNIT(decisions_stay_until_they_are_removed),
	};

	return unit_run("qspace branches by hand", tests, UNIT_COUNT(tests));
}
