/*
 * story_tx_by_hand - tx_commit() of a transaction over two queue spaces, of which an administrator ends one part in the middle, or
 * whose coordinator dies: the program hears of it in TX's words.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"
#include "tx.h"

static struct given *g;

static void
given_two_spaces(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .spaces = 2, .points = true, .queues = "qcreate Q fifo none 9 0 100% 0% \"\"\n" });
}

static int
enqueue(const char *space)
{
	TPQCTL c = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 16);
	int rc;

	strcpy(data, "message");
	rc = tpenqueue((char *)space, "Q", &c, data, 0, 0);
	tpfree(data);
	return rc;
}

/* In a process of its own: one message into each space, and tx_commit(); its end is what that said, 90 and more: it never came
 * there.  chained: and 50 more when it is in the next one afterwards. */
static pid_t
given_commit_under_way(bool chained)
{
	pid_t pid = fork();
	int result;

	if (pid != 0)
		return pid;
	if (tx_open() != TX_OK || tx_set_transaction_timeout(8) != TX_OK || (chained && tx_set_transaction_control(TX_CHAINED) != TX_OK) || tx_begin() != TX_OK)
		_exit(90);
	if (enqueue("QSPACE") == -1 || enqueue("QSPACE2") == -1)
		_exit(91);
	result = -tx_commit();
	if (tx_info(NULL) == 1) {
		result += 50;
		tx_rollback();
	}
	tpterm();
	_exit(result);
}

static int
heard_by(pid_t client)
{
	int status = 0;

	return waitpid(client, &status, 0) == client && WIFEXITED(status) ? -WEXITSTATUS(status) : -99;
}

static bool
is_hit(void *arg)
{
	return given_point_hit(g, "QUE1", arg);
}

static void
empty(int space)
{
	char *text;

	while ((text = take_from(given_space(space), "Q")) != NULL)
		free(text);
}

/* The second part was rolled back by hand when all had voted yes, or when the decision was on disk. */
static void
a_part_that_was_ended_by_hand_is_told(void)
{
	static char *points[] = { "DECISION_WRITE", "DECIDED_SEND" };

	given_two_spaces();
	for (int i = 0; i < 4; i++) {
		char *point = points[i % 2];
		bool chained = i >= 2;
		pid_t client;

		given_point_set(g, "QUE1", point, "stop");
		client = given_commit_under_way(chained);
		CU_ASSERT_TRUE(wait_until(is_hit, point, 20));
		free(given_qmadmin_of(g, 2, "qabort -y 0\n"));
		kill(given_tmqueue(g, 1), SIGCONT);
		CU_ASSERT_EQUAL(heard_by(client), TX_MIXED - (chained ? 50 : 0));
		CU_ASSERT_EQUAL(depth_in(g, 1, "Q"), 1);
		CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 0);
		empty(1);
		given_point_clear(g, "QUE1");
	}
}

static void	/* The same, committed by hand as it was decided: nobody needs to know. */
a_part_that_was_ended_as_decided_is_not(void)
{
	pid_t client;

	given_two_spaces();
	given_point_set(g, "QUE1", "DECISION_WRITE", "stop");
	client = given_commit_under_way(false);
	CU_ASSERT_TRUE(wait_until(is_hit, "DECISION_WRITE", 20));
	free(given_qmadmin_of(g, 2, "qcommit -y 0\n"));
	kill(given_tmqueue(g, 1), SIGCONT);
	CU_ASSERT_EQUAL(heard_by(client), TX_OK);
	CU_ASSERT_EQUAL(depth_in(g, 1, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	empty(1);
	empty(2);
	given_point_clear(g, "QUE1");
}

static bool
agree(void *arg)
{
	long first = depth_in(g, 1, "Q"), second = depth_in(g, 2, "Q");
	char *text = given_qmadmin_of(g, 2, "qprinttrans\n");
	bool settled = !has(text, "transaction index:");

	(void)arg;
	free(text);
	return settled && first >= 0 && first == second;
}

/* The coordinator dies around its decision: TX_OK only when it is so, TX_ROLLBACK only when that is so, else TX_HAZARD. */
static void
what_a_dead_coordinator_leaves_is_not_promised(void)
{
	static char *points[] = { "COMMIT_RECEIVED", "DECISION_FLUSH", "DECISION_FLUSHED" };

	given_two_spaces();
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		int heard;
		long there;

		given_point_set(g, "QUE1", points[i], "kill");
		heard = heard_by(given_commit_under_way(false));
		CU_ASSERT_TRUE(wait_until(agree, NULL, 60));
		there = depth_in(g, 1, "Q");
		CU_ASSERT_TRUE(heard == TX_OK || heard == TX_ROLLBACK || heard == TX_HAZARD);
		CU_ASSERT_TRUE(heard != TX_OK || there == 1);
		CU_ASSERT_TRUE(heard != TX_ROLLBACK || there == 0);
		CU_ASSERT_EQUAL(there, i == 2);			/* decided is what is flushed */
		empty(1);
		empty(2);
		given_point_clear(g, "QUE1");
	}
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_part_that_was_ended_by_hand_is_told),
		UNIT(a_part_that_was_ended_as_decided_is_not),
		UNIT(what_a_dead_coordinator_leaves_is_not_promised),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: TX and administrators", tests, UNIT_COUNT(tests));
}
