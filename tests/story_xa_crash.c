/*
 * story_xa_crash - between the steps of another transaction manager somebody dies: the queue manager, the program, the manager
 * itself, the bulletin board.
 */
#include "given_xa.h"

#include <signal.h>
#include <unistd.h>

#define QUEUES "qcreate ORDERS fifo none 5 0 100% 0% \"\"\n"

static struct given *
given_spaces(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 2), 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	return g;
}

static void
spaces_done(struct given *g)
{
	CU_ASSERT_EQUAL(xa_in_doubt(1, NULL, 0), 0);
	CU_ASSERT_EQUAL(xa_in_doubt(2, NULL, 0), 0);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(2, TMNOFLAGS), XA_OK);
	given_done(g);
}

static void
kill_tmqueue(const struct given *g, int space)
{
	pid_t old = given_tmqueue(g, space);

	CU_ASSERT_TRUE_FATAL(old > 0);
	kill(old, SIGKILL);
	while (given_tmqueue(g, space) == old || given_tmqueue(g, space) == 0)
		nap_ms(10);
}

struct place { int space; const char *text; };

static bool
there(void *arg)
{
	struct place *p = arg;
	char got[64];
	TPQCTL ctl = { .flags = TPQPEEK };
	char *data = tpalloc("STRING", NULL, 64);
	long len = 0;
	bool yes = tpdequeue((char *)given_space(p->space), "ORDERS", &ctl, &data, &len, 0) == 0;

	snprintf(got, sizeof got, "%s", yes ? data : "");
	tpfree(data);
	return strcmp(got, p->text) == 0;
}

/* The message is in one of the spaces, and in no other. */
static bool
is_in(const struct given *g, int space)
{
	struct place p = { space, "nails" };

	return wait_until(there, &p, 20) && depth_in(g, space, "ORDERS") == 1 && depth_in(g, 3 - space, "ORDERS") == 0;
}

/* The message is moved from 1 to 2; nothing is prepared yet. */
static int
move(XID *a, XID *b)
{
	char got[64];

	return xa_start(a, 1, TMNOFLAGS) == XA_OK && xa_start(b, 2, TMNOFLAGS) == XA_OK && xa_take(1, "ORDERS", got) == 0 &&
	    xa_put(2, "ORDERS", got) == 0 ? 0 : 1;
}

static int
move_and_end(XID *a, XID *b)
{
	return move(a, b) == 0 && xa_end(a, 1, TMSUCCESS) == XA_OK && xa_end(b, 2, TMSUCCESS) == XA_OK ? 0 : 1;
}

static int
prepare_both(XID *a, XID *b)
{
	return xa_prepare(a, 1, TMNOFLAGS) == XA_OK && xa_prepare(b, 2, TMNOFLAGS) == XA_OK ? 0 : 1;
}

/* ---- the queue manager dies ---- */

static void
prepared_branches_outlive_the_queue_manager(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("kill", "1"), b = xa_id("kill", "2");

	CU_ASSERT_EQUAL(move_and_end(&a, &b), 0);
	CU_ASSERT_EQUAL(prepare_both(&a, &b), 0);
	kill_tmqueue(g, 1);
	kill_tmqueue(g, 2);
	CU_ASSERT_TRUE(xa_comes(xa_commit, &a, 1, TMNOFLAGS, XA_OK));
	CU_ASSERT_TRUE(xa_comes(xa_commit, &b, 2, TMNOFLAGS, XA_OK));
	CU_ASSERT_TRUE(is_in(g, 2));
	spaces_done(g);
}

static void
prepared_branches_are_rolled_back_after_the_queue_manager_died(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("kill", "3"), b = xa_id("kill", "4");

	CU_ASSERT_EQUAL(move_and_end(&a, &b), 0);
	CU_ASSERT_EQUAL(prepare_both(&a, &b), 0);
	kill_tmqueue(g, 1);
	kill_tmqueue(g, 2);
	CU_ASSERT_TRUE(xa_comes(xa_rollback, &a, 1, TMNOFLAGS, XA_OK));
	CU_ASSERT_TRUE(xa_comes(xa_rollback, &b, 2, TMNOFLAGS, XA_OK));
	CU_ASSERT_TRUE(is_in(g, 1));
	spaces_done(g);
}

static void
a_branch_that_the_queue_manager_forgot_is_not_half(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("forgot", "1"), b = xa_id("forgot", "2");

	CU_ASSERT_EQUAL(move(&a, &b), 0);
	kill_tmqueue(g, 2);
	CU_ASSERT_NOT_EQUAL(xa_put(2, "ORDERS", "not half"), 0);	/* nothing opens it anew */
	CU_ASSERT_TRUE(xa_end(&b, 2, TMSUCCESS) >= XA_RBBASE);
	CU_ASSERT_EQUAL(xa_end(&a, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&b, 2, TMNOFLAGS), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_rollback(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(is_in(g, 1));
	spaces_done(g);
}

static void
one_phase_of_a_forgotten_branch_commits_nothing(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("forgot", "3");
	char got[64];

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_take(1, "ORDERS", got), 0);
	kill_tmqueue(g, 1);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);		/* nobody has noticed yet */
	CU_ASSERT_TRUE(xa_comes(xa_commit, &x, 1, TMONEPHASE, XAER_NOTA));
	CU_ASSERT_TRUE(is_in(g, 1));
	spaces_done(g);
}

static void
a_queue_manager_that_is_shut_down_is_waited_for(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("down", "1"), b = xa_id("down", "2"), c = xa_id("down", "3");

	CU_ASSERT_EQUAL(move_and_end(&a, &b), 0);
	CU_ASSERT_EQUAL(prepare_both(&a, &b), 0);
	free(given_ok(g, NULL, "tmshutdown -y -g QUE1"));
	CU_ASSERT_EQUAL(xa_commit(&b, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XAER_RMFAIL);
	CU_ASSERT_EQUAL(xa_rollback(&a, 1, TMNOFLAGS), XAER_RMFAIL);
	CU_ASSERT_EQUAL(xa_start(&c, 1, TMNOFLAGS), XAER_RMFAIL);
	CU_ASSERT_EQUAL(xa_forget(&a, 1, TMNOFLAGS), XAER_RMFAIL);
	CU_ASSERT_EQUAL(xa_recover(&c, 1, 1, TMSTARTRSCAN), XAER_RMFAIL);
	free(given_ok(g, NULL, "tmboot -y -g QUE1"));
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(is_in(g, 2));
	spaces_done(g);
}

static void
a_queue_manager_that_hangs_is_tried_again(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .not_booted = true });
	XID a = xa_id("hang", "1"), c = xa_id("hang", "2");
	pid_t hung;

	free(given_ok(g, NULL, "sed -i 's/^BLOCKTIME.*/BLOCKTIME 1/' ubb && tmloadcf -y ubb"));
	given_boot(g);
	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	CU_ASSERT_EQUAL(xa_end(&a, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&a, 1, TMNOFLAGS), XA_OK);
	hung = given_tmqueue(g, 1);
	kill(hung, SIGSTOP);
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XA_RETRY);
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOWAIT), XA_RETRY);
	CU_ASSERT_EQUAL(xa_rollback(&c, 1, TMNOFLAGS), XAER_RMFAIL);
	kill(hung, SIGCONT);
	/* The first that was not answered may be done by now; in either case it is committed. */
	CU_ASSERT_TRUE(xa_comes(xa_commit, &a, 1, TMNOFLAGS, XAER_NOTA));
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS"), 1);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	given_done(g);
}

/*
 * The queue manager dies with a word of the transaction manager in its hands: before it is on disk, or when only the answer is
 * missing.  The word is said again, and its successor's answer is right for both.
 */
static void
a_word_whose_answer_was_lost_is_said_again(void)
{
	static const struct { const char *point; int prepare, commit, rollback; bool stays; } rows[] = {	/* -1: not called */
		{ "PREPARE_RECEIVED", XA_RBCOMMFAIL, -1, XAER_NOTA, false }, { "PREPARE_FLUSH", XA_RBCOMMFAIL, -1, XAER_NOTA, false },
		{ "PREPARE_FLUSHED", XA_OK, XA_OK, -1, true }, { "DECIDED_RECEIVED", XA_OK, XA_OK, -1, true },
		{ "DECIDED_FLUSH", XA_OK, XA_OK, -1, true }, { "DECIDED_FLUSHED", XA_OK, XA_OK, -1, true },
		{ "ABORT_RECEIVED", XA_OK, -1, XA_OK, false }, { "ABORT_FLUSH", XA_OK, -1, XA_OK, false },
		{ "ABORT_FLUSHED", XA_OK, -1, XA_OK, false } };
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .points = true });
	char name[20], got[64];
	size_t i;

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 2), 2, TMNOFLAGS), XA_OK);
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		XID x;

		snprintf(name, sizeof name, "%zu", i);
		x = xa_id("lost", name);
		CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_put(1, "ORDERS", name), 0);
		CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
		given_point_set(g, given_group(1), rows[i].point, "kill");
		CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), rows[i].prepare);
		if (rows[i].commit != -1)
			CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), rows[i].commit);
		if (rows[i].rollback != -1)
			CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), rows[i].rollback);
		CU_ASSERT_TRUE(given_point_hit(g, given_group(1), rows[i].point));
		given_point_clear(g, given_group(1));
		if (rows[i].stays)
			CU_ASSERT_EQUAL(xa_take(1, "ORDERS", got), 0);
		CU_ASSERT_EQUAL(xa_take(1, "ORDERS", got), QMENOMSG);
	}
	spaces_done(g);
}

static void	/* Another group has the same space and serves it when the first is shut down. */
whichever_group_serves_the_space_it_is_the_same_manager(void)
{
	struct given *g = given_directory();
	XID x = xa_id("groups", "1");
	char *groups = NULL;

	CU_ASSERT_TRUE_FATAL(asprintf(&groups, "QUE1B LMID=SITE1 GRPNO=60 TMSNAME=TMS_QM OPENINFO=\"%s\"\n", xa_info(given_dir(g), 1)) > 0);
	given_system_in(g, &(struct given_conf){ .queues = QUEUES, .groups = groups,
	    .servers = "TMQUEUE SRVGRP=QUE1B SRVID=1 CLOPT=\"-s QSPACE:TMQUEUE\"\n" });
	free(groups);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
	free(given_ok(g, NULL, "tmshutdown -y -g QUE1"));
	CU_ASSERT_TRUE(xa_comes(xa_commit, &x, 1, TMNOFLAGS, XA_OK));
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "screws"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_OK);
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS"), 2);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	given_done(g);
}

/* ---- the program dies ---- */

static int
driver(const char *what, const char *dir)
{
	XID a = xa_id("driver", "1"), b = xa_id("driver", "2");

	if (xa_open(xa_info(dir, 1), 1, TMNOFLAGS) != XA_OK || xa_open(xa_info(dir, 2), 2, TMNOFLAGS) != XA_OK)
		return 2;
	if (strcmp(what, "works") == 0 ? move(&a, &b) != 0 : move_and_end(&a, &b) != 0)
		return 3;
	if (strcmp(what, "prepares") == 0 && prepare_both(&a, &b) != 0)
		return 4;
	xa_driver_says("there");
	for (;;)
		pause();
}

static struct given *	/* The driver got so far, and was killed. */
given_dead_driver(const char *what)
{
	struct given *g = given_spaces();
	struct xa_driver d = xa_driver_start(what, given_dir(g));

	CU_ASSERT_TRUE(xa_driver_said(&d, "there"));
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS") + depth_in(g, 2, "ORDERS"), 1);
	xa_driver_kill(&d);
	return g;
}

static void
who_dies_in_a_branch_leaves_nothing(void)
{
	struct given *g = given_dead_driver("works");
	XID a = xa_id("driver", "1");

	CU_ASSERT_TRUE(is_in(g, 1));
	CU_ASSERT_TRUE(xa_comes(xa_prepare, &a, 1, TMNOFLAGS, XAER_NOTA));
	spaces_done(g);
}

static void
who_dies_before_it_prepares_leaves_nothing(void)
{
	struct given *g = given_dead_driver("ends");

	CU_ASSERT_TRUE(is_in(g, 1));
	spaces_done(g);
}

static void
who_dies_after_it_prepared_is_recovered(void)
{
	int commit;

	for (commit = 0; commit < 2; commit++) {
		struct given *g = given_dead_driver("prepares");
		XID x;
		int rmid;

		if (commit)
			kill_tmqueue(g, 2);
		for (rmid = 1; rmid <= 2; rmid++) {
			CU_ASSERT_EQUAL(xa_in_doubt(rmid, &x, 1), 1);
			CU_ASSERT_EQUAL(x.bqual_length, 1);
			CU_ASSERT_EQUAL(x.data[x.gtrid_length], '0' + rmid);
			CU_ASSERT_TRUE(xa_comes(commit ? xa_commit : xa_rollback, &x, rmid, TMNOFLAGS, XA_OK));
		}
		CU_ASSERT_TRUE(is_in(g, commit ? 2 : 1));
		spaces_done(g);
	}
}

/* ---- the bulletin board dies ---- */

static void
without_a_bulletin_board_transactions_go_on(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("board", "1"), b = xa_id("board", "2");

	CU_ASSERT_EQUAL(move_and_end(&a, &b), 0);
	given_kill(g, "BBL", SIGKILL);
	CU_ASSERT_EQUAL(prepare_both(&a, &b), 0);
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&b, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(is_in(g, 2));
	spaces_done(g);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(prepared_branches_outlive_the_queue_manager),
		UNIT(prepared_branches_are_rolled_back_after_the_queue_manager_died),
		UNIT(a_branch_that_the_queue_manager_forgot_is_not_half),
		UNIT(one_phase_of_a_forgotten_branch_commits_nothing),
		UNIT(a_queue_manager_that_is_shut_down_is_waited_for),
		UNIT(a_queue_manager_that_hangs_is_tried_again),
		UNIT(a_word_whose_answer_was_lost_is_said_again),
		UNIT(whichever_group_serves_the_space_it_is_the_same_manager),
		UNIT(who_dies_in_a_branch_leaves_nothing),
		UNIT(who_dies_before_it_prepares_leaves_nothing),
		UNIT(who_dies_after_it_prepared_is_recovered),
		UNIT(without_a_bulletin_board_transactions_go_on),
	};

	if (argc == 3 && strcmp(argv[0], "driver") == 0)
		return driver(argv[1], argv[2]);
	return unit_run("story: XA, and somebody dies", tests, UNIT_COUNT(tests));
}
