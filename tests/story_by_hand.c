/*
 * story_by_hand - an administrator ends transactions whose coordinator is silent: what is there afterwards, in which space, and who
 * hears of it.
 *
 * The transactions put one message into QSPACE, whose queue manager coordinates, and one into QSPACE2.  The coordinator is stopped at
 * a point of the protocol (common/point.h) while the administrator works.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

static void
given_two_spaces(void)
{
	g = given_system(&(struct given_conf){ .spaces = 2, .points = true, .queues = "qcreate Q fifo none 9 0 100% 0% \"\"\n" });
}

/* --- a client --- */

static int
enqueue(const char *space)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 16);
	int rc;

	if (data == NULL)
		return -1;
	strcpy(data, "one");
	rc = tpenqueue((char *)(uintptr_t)space, "Q", &ctl, data, 0, 0);
	tpfree(data);
	return rc;
}

/* A process that commits a transaction over both spaces; it ends with 0, or the tperrno of what failed. */
static pid_t
given_commit_under_way(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (tpbegin(120, 0) == 0 && enqueue("QSPACE") == 0 && enqueue("QSPACE2") == 0 && tpcommit(0) == 0)
		_exit(0);
	_exit(tperrno != 0 ? tperrno : 255);
}

static int
heard_by(pid_t client)
{
	int status = 0;

	CU_ASSERT_EQUAL(waitpid(client, &status, 0), client);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- queue managers --- */

struct point { const char *who, *name; };

static bool
is_hit(void *arg)
{
	const struct point *p = arg;

	return given_point_hit(g, p->who, p->name);
}

static void	/* The manager of `who` is stopped there. */
stopped_at(const char *who, const char *name)
{
	struct point p = { who, name };

	CU_ASSERT_TRUE_FATAL(wait_until(is_hit, &p, 30));
}

struct renewed { int space; pid_t old; };
static bool
is_renewed(void *arg)
{
	const struct renewed *r = arg;
	pid_t now = given_tmqueue(g, r->space);

	return now != 0 && now != r->old;
}

static void
restart(int space)
{
	struct renewed r = { space, given_tmqueue(g, space) };

	CU_ASSERT_EQUAL(kill(r.old, SIGKILL), 0);
	CU_ASSERT_TRUE(wait_until(is_renewed, &r, 30));
}

/* --- what the administrator sees --- */

struct wanted { int space; const char *text; bool there; };

static bool
is_listed(void *arg)
{
	const struct wanted *w = arg;
	char *text = given_qmadmin_of(g, w->space, "qprinttrans\n");
	bool is = has(text, w->text) == w->there;

	free(text);
	return is;
}

static void
lists(int space, const char *text)
{
	struct wanted w = { space, text, true };

	CU_ASSERT_TRUE(wait_until(is_listed, &w, 30));
}

static void
lists_nothing(int space)
{
	struct wanted w = { space, "transaction id", false };
	bool nothing = wait_until(is_listed, &w, 30);

	if (!nothing)
		printf("\n%s", given_qmadmin_of(g, space, "qprinttrans\n"));
	CU_ASSERT_TRUE(nothing);
}

/* qmadmin on a space, with these lines; what it printed and complained, in one string. */
static char *
administrator(int space, const char *lines)
{
	struct ran r;
	char *both = NULL, input[512];

	snprintf(input, sizeof input, "qopen %s\n%s", given_space(space), lines);
	r = given_run(g, input, "qmadmin %s", given_device(g, space));
	CU_ASSERT_TRUE(asprintf(&both, "%s%s", r.out, r.err) >= 0);
	ran_free(&r);
	return both;
}

static void
by_hand(int space, const char *lines)
{
	char *said = administrator(space, lines);

	if (has(said, "ERROR"))
		printf("\n%s", said);
	CU_ASSERT_FALSE(has(said, "ERROR"));
	free(said);
}

static void
refused(int space, const char *lines, const char *why)
{
	char *said = administrator(space, lines);

	if (!has(said, why))
		printf("\n%s", said);
	CU_ASSERT_TRUE(has(said, why));
	free(said);
}

static void
stay(long first, long second)
{
	CU_ASSERT_EQUAL(depth_in(g, 1, "Q"), first);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), second);
}

/* --- stories --- */

/* The client dies, its coordinator hangs: what is held is seen, and freed by hand. */
static void
prepared_transaction_of_a_dead_client_is_listed_committed_and_counted(void)
{
	pid_t client;
	char *text;

	given_two_spaces();
	put_in("QSPACE2", "Q", "other");
	given_point_set(g, "QUE1", "DECISION_WRITE", "stop");
	client = given_commit_under_way();
	stopped_at("QUE1", "DECISION_WRITE");
	kill(client, SIGKILL);
	CU_ASSERT_EQUAL(heard_by(client), -SIGKILL);
	text = given_qmadmin_of(g, 2, "v\nqprinttrans\nqset Q\nqlist\nqinfo Q\n");
	CU_ASSERT_TRUE(has(text, "transaction index: 0\n") && has(text, "  status: prepared\n") && has(text, "  coordinator: QUE1\n"));
	CU_ASSERT_TRUE(has(text, "  client: process ") && has(text, "  gtrid: x"));
	CU_ASSERT_TRUE(has(text, "  messages enqueued: 1\n") && has(text, "  queue Q: 1 to come, 0 to go\n") && has(text, "  age in seconds: "));
	free(text);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	refused(2, "qcommittrans -y 0 1\n", "no transaction of index \"1\"");
	lists(2, "status: prepared");			/* nothing was done */
	by_hand(2, "qprinttrans\nqcommittrans 0\ny\n");
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 2);
	lists(2, "heuristically committed");
	kill(given_tmqueue(g, 1), SIGCONT);
	lists_nothing(1);
	lists_nothing(2);
	stay(1, 2);
	given_done(g);
}

/* Before the decision, with the queue manager killed in between or not. */
static void
coordinator_and_client_hear_what_was_done_before_the_decision(void)
{
	long first = 0, second = 0;

	given_two_spaces();
	for (int i = 0; i < 4; i++) {
		bool commit = i % 2 == 0, restarts = i / 2 == 1;
		pid_t client;

		given_point_set(g, "QUE1", "DECISION_WRITE", "stop");
		client = given_commit_under_way();
		stopped_at("QUE1", "DECISION_WRITE");
		by_hand(2, commit ? "qcommit -y 0\n" : "qabort -y 0\n");
		if (restarts)
			restart(2);
		lists(2, commit ? "heuristically committed" : "heuristically rolled back");
		refused(2, "qabort -y 0\n", commit ? "heuristically committed already" : "heuristically rolled back already");
		kill(given_tmqueue(g, 1), SIGCONT);
		CU_ASSERT_EQUAL(heard_by(client), commit ? 0 : TPEHEURISTIC);
		lists_nothing(1);
		lists_nothing(2);
		stay(++first, second += commit);
	}
	given_done(g);
}

/* The decision is on disk, and the other group has not heard of it. */
static void
coordinator_and_client_hear_what_was_done_after_the_decision(void)
{
	long first = 0, second = 0;

	given_two_spaces();
	for (int i = 0; i < 4; i++) {
		bool commit = i % 2 == 0, restarts = i / 2 == 1;
		pid_t client;

		given_point_set(g, "QUE1", "DECIDED_SEND", "stop");
		client = given_commit_under_way();
		stopped_at("QUE1", "DECIDED_SEND");
		by_hand(2, commit ? "qcommit -y 0\n" : "qabort -y 0\n");
		if (restarts)
			restart(2);
		kill(given_tmqueue(g, 1), SIGCONT);
		CU_ASSERT_EQUAL(heard_by(client), commit ? 0 : TPEHEURISTIC);
		lists_nothing(1);
		lists_nothing(2);
		stay(++first, second += commit);
	}
	given_done(g);
}

static bool
is_logged(void *text)
{
	return given_logged(g, text);
}

/* The coordinator dies undecided: rolled back, wherever nobody did otherwise. */
static void
commit_by_hand_stays_listed_when_its_coordinator_rolled_back(void)
{
	pid_t client;

	given_two_spaces();
	for (int i = 0; i < 2; i++) {
		bool commit = i == 1;

		given_point_set(g, "QUE1", "DECISION_WRITE", "stop");
		client = given_commit_under_way();
		stopped_at("QUE1", "DECISION_WRITE");
		by_hand(2, commit ? "qcommit -y 0\n" : "qabort -y 0\n");
		restart(1);
		CU_ASSERT_EQUAL(heard_by(client), TPETIME);	/* for its coordinator may have come to an end, and forgotten */
		lists_nothing(1);
		stay(0, commit);
		if (commit) {
			CU_ASSERT_TRUE(wait_until(is_logged, "QM_CAT:1671: WARN", 30));
			lists(2, "heuristically committed");
			by_hand(2, "qforgettrans 0\nn\n");
			lists(2, "heuristically committed");
			by_hand(2, "qforget -y 0\n");
		}
		lists_nothing(2);
	}
	given_done(g);
}

/* The coordinator can be asked: nothing is done against its decision, on a space that is not served either. */
static void
what_is_known_to_be_decided_is_not_undone(void)
{
	pid_t client, manager;

	given_two_spaces();
	given_point_set(g, "QUE2", "VOTE_SENT", "stop");
	client = given_commit_under_way();
	stopped_at("QUE2", "VOTE_SENT");
	lists(1, "status: decided");
	lists(1, "groups to be told: QUE2");
	refused(1, "qabort -y 0\n", "was decided here: it is committed");
	given_point_set(g, "QUE2", "START", "stop");
	manager = given_tmqueue(g, 2);
	kill(manager, SIGKILL);
	stopped_at("QUE2", "START");
	lists(2, "status: prepared");
	refused(2, "qabort -y 0\n", "its coordinator QUE1 decided to commit it");
	lists(2, "status: prepared");
	by_hand(2, "qcommit -y 0\n");
	kill(given_tmqueue(g, 2), SIGCONT);
	CU_ASSERT_EQUAL(heard_by(client), 0);
	lists_nothing(1);
	lists_nothing(2);
	stay(1, 1);
	given_done(g);
}

/* --- tmadmin --- */

static char *
tmadmin(const char *lines)
{
	struct ran r = given_run(g, lines, "tmadmin");
	char *both = NULL;

	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_TRUE(asprintf(&both, "%s%s", r.out, r.err) >= 0);
	ran_free(&r);
	return both;
}

static void
tmadmin_says(const char *lines, const char *text)
{
	char *said = tmadmin(lines);

	if (!has(said, text))
		printf("\n%s", said);
	CU_ASSERT_TRUE(has(said, text));
	free(said);
}

/* Killed where it stands, and held back before it opens anything. */
static void
killed_and_held_back(int space)
{
	const char *who = given_group(space);

	given_point_set(g, who, "START", "stop");
	kill(given_tmqueue(g, space), SIGKILL);
	stopped_at(who, "START");
}

static void
tmadmin_shows_whose_decision_is_awaited(void)
{
	pid_t client;
	char *said;

	given_two_spaces();
	given_point_set(g, "QUE2", "VOTE_SENT", "stop");
	client = given_commit_under_way();
	stopped_at("QUE2", "VOTE_SENT");
	lists(1, "status: decided");
	killed_and_held_back(2);
	said = tmadmin("pt\nv on\npt\nabort -yes 0\n");
	CU_ASSERT_TRUE(has(said, "> >> gtrid=x") && has(said, ": Index: 0, Machine id: SITE1, Transaction status: TMGDECIDED, Group count: 1\n"));
	CU_ASSERT_TRUE(has(said, "\tgroup: QUE1, status: TMGDECIDED, coordinator\n\twaits for: QUE2\n\tclient: process "));
	CU_ASSERT_TRUE(has(said, "group QUE2: its queue manager does not run; what it has of transactions is not shown"));
	CU_ASSERT_TRUE(has(said, "aborttrans: nothing of the transaction is left to be ended anywhere"));
	free(said);
	free(tmadmin("dumptlog -z TLOG -n TLOG decisions\ndl -n again\n"));
	for (int i = 0; i < 2; i++) {
		said = given_read(g, i == 0 ? "decisions" : "again");
		CU_ASSERT_TRUE(has(said, "\ngtrid=") && has(said, " decision=commit coordinator=QUE1 groups=QUE2\n"));
		CU_ASSERT_TRUE(has(said, "# group QUE2: its queue manager does not run; its decisions are in its queue space\n"));
		free(said);
	}
	tmadmin_says("dumptlog -z nowhere decisions\n", "there is no transaction log TLOG on nowhere");
	kill(given_tmqueue(g, 2), SIGCONT);
	CU_ASSERT_EQUAL(heard_by(client), 0);
	lists_nothing(1);
	lists_nothing(2);
	stay(1, 1);
	given_shutdown(g);
	tmadmin_says("dl unmade\nq\n", "dumptlog: the application does not run; what its coordinators have decided is in their queue spaces");
	CU_ASSERT_FALSE(given_exists(g, "unmade"));
	given_done(g);
}

static void
tmadmin_ends_a_prepared_part_by_hand(void)
{
	pid_t client;
	char *said;

	given_two_spaces();
	given_point_set(g, "QUE1", "DECISION_WRITE", "stop");
	client = given_commit_under_way();
	stopped_at("QUE1", "DECISION_WRITE");
	killed_and_held_back(1);
	said = tmadmin("v on\npt -g QUE2\ncommit -g QUE1 0\ncommit -g QUE2 0\ny\npt\nabort -yes 0\n");
	CU_ASSERT_TRUE(has(said, "group: QUE2, status: TMGREADY\n") && has(said, "Transaction status: TMGREADY\n"));
	CU_ASSERT_TRUE(has(said, "committrans: nothing of the transaction is left to be ended in group QUE1"));
	CU_ASSERT_TRUE(has(said, "Commit transaction 0 in group QUE2 (y/n)? "));
	CU_ASSERT_TRUE(has(said, "group: QUE2, status: TMGHCOMMIT\n"));
	CU_ASSERT_TRUE(has(said, "aborttrans: group QUE2: ") && has(said, "is heuristically committed already"));
	free(said);
	kill(given_tmqueue(g, 1), SIGCONT);
	CU_ASSERT_EQUAL(heard_by(client), TPETIME);
	stay(0, 1);
	given_done(g);
}

/* What is under way is rolled back where it is, and its program hears of it whatever it does next. */
static void
tmadmin_rolls_back_what_is_active(void)
{
	given_two_spaces();
	CU_ASSERT_EQUAL(tpbegin(60, 0), 0);
	CU_ASSERT_EQUAL(enqueue("QSPACE"), 0);
	CU_ASSERT_EQUAL(enqueue("QSPACE2"), 0);
	tmadmin_says("pt\ncommit -yes 0\n", "is not in doubt: it is not prepared");
	tmadmin_says("pt\n", "Transaction status: TMGACTIVE, Group count: 2");
	tmadmin_says("pt\nabort -yes -g QUE2 0\npt\n", "Group count: 1");
	CU_ASSERT_EQUAL(enqueue("QSPACE2"), -1);
	CU_ASSERT_TRUE(tperrno == TPETIME || tperrno == TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	stay(0, 0);
	CU_ASSERT_EQUAL(tpbegin(60, 0), 0);
	CU_ASSERT_EQUAL(enqueue("QSPACE"), 0);
	CU_ASSERT_EQUAL(enqueue("QSPACE2"), 0);
	tmadmin_says("pt\nabort 0\ny\n", "Abort transaction 0 in all its groups (y/n)? ");
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	stay(0, 0);
	lists_nothing(1);
	lists_nothing(2);
	tpterm();
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(prepared_transaction_of_a_dead_client_is_listed_committed_and_counted),
		UNIT(coordinator_and_client_hear_what_was_done_before_the_decision),
		UNIT(coordinator_and_client_hear_what_was_done_after_the_decision),
		UNIT(commit_by_hand_stays_listed_when_its_coordinator_rolled_back),
		UNIT(what_is_known_to_be_decided_is_not_undone),
		UNIT(tmadmin_shows_whose_decision_is_awaited),
		UNIT(tmadmin_ends_a_prepared_part_by_hand),
		UNIT(tmadmin_rolls_back_what_is_active),
	};

	return unit_run("story: by hand", tests, UNIT_COUNT(tests));
}
