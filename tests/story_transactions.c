/*
 * story_transactions - what a transaction means for messages, when it covers two queue spaces: each rule of queue operations in
 * transactions, in both spaces at once.  (How services get into it: story_propagation.  TX: story_tx.)
 */
#include <signal.h>

#include "given.h"
#include "given_doer.h"

static struct given *g;

/* Q: nine retries.  ONCE: none, so that the first rollback sends to ERRQ.  TWICE: one. */
static void
given_two_spaces(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .spaces = 2, .server_source = given_doer, .server_services = "-s S:DO",
		    .space_options = "-n 100B",
		    .queues = "qcreate Q fifo none 9 0 100% 0% \"\"\nqcreate ONCE fifo none 0 0 100% 0% \"\"\n"
			      "qcreate TWICE fifo none 1 0 100% 0% \"\"\n" });
}

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)

/* 0 and *text, or the diagnostic, or 1000 + tperrno. */
static int
dequeue(int space, const char *queue, TPQCTL *c, long flags, char **text)
{
	char *b = tpalloc("STRING", NULL, 200);
	long n = 0;
	int rc = 0;

	if (tpdequeue((char *)given_space(space), (char *)queue, c, &b, &n, flags) == -1)
		rc = tperrno == TPEDIAGNOSTIC ? (int)c->diagnostic : 1000 + tperrno;
	if (text != NULL)
		*text = rc == 0 ? strdup(n > 0 ? b : "") : NULL;
	tpfree(b);
	return rc;
}

static int
enqueue(int space, const char *queue, TPQCTL *c, const char *text, long flags)
{
	char *b = tpalloc("STRING", NULL, 200);
	int rc = 0;

	strcpy(b, text);
	if (tpenqueue((char *)given_space(space), (char *)queue, c, b, 0, flags) == -1)
		rc = tperrno == TPEDIAGNOSTIC ? (int)c->diagnostic : 1000 + tperrno;
	tpfree(b);
	return rc;
}

/* What others see on it: the first message's text, taken away; "" none. */
static bool
others_take(int space, const char *queue, const char *text)
{
	TPQCTL c = { 0 };
	char *got = NULL;
	int rc = dequeue(space, queue, &c, TPNOTRAN, &got);
	bool is = *text == '\0' ? rc == QMENOMSG : rc == 0 && strcmp(got, text) == 0;

	if (!is)
		fprintf(stderr, "\n%s of space %d: %d \"%s\" instead of \"%s\"\n", queue, space, rc, got != NULL ? got : "", text);
	free(got);
	return is;
}

static bool
take_in_transaction(int space, const char *queue, const char *text)
{
	TPQCTL c = { 0 };
	char *got = NULL;
	bool is = dequeue(space, queue, &c, 0, &got) == 0 && strcmp(got, text) == 0;

	free(got);
	return is;
}

static void
both(const char *queue, const char *text)
{
	put_in("QSPACE", queue, text);
	put_in("QSPACE2", queue, text);
}

static bool
both_have(const char *queue, const char *text)
{
	return others_take(1, queue, text) && others_take(2, queue, text);
}

struct restarted { int space; pid_t old; };

static bool
is_restarted(void *arg)
{
	struct restarted *r = arg;
	pid_t pid = given_tmqueue(g, r->space);
	TPQCTL c = { .flags = TPQPEEK };

	return pid > 0 && pid != r->old && dequeue(r->space, "Q", &c, TPNOTRAN, NULL) < 1000;
}

static void
kill_and_wait(int space, bool waits)
{
	struct restarted r = { space, given_tmqueue(g, space) };

	CU_ASSERT_TRUE(r.old > 0);
	kill(r.old, SIGKILL);
	while (given_tmqueue(g, space) == r.old)
		nap_ms(2);
	if (waits)
		CU_ASSERT_TRUE(wait_until(is_restarted, &r, 20));
}

/* --- rules --- */

static void
enqueued_is_seen_after_the_commit_in_both(void)
{
	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(20, 0));
	both("Q", "new");
	CU_ASSERT_TRUE(both_have("Q", ""));
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(both_have("Q", "new"));
	GIVEN_CALL_OK(tpbegin(20, 0));
	both("Q", "undone");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(both_have("Q", ""));
}

static void
dequeued_is_gone_after_the_commit_in_both(void)
{
	given_two_spaces();
	both("Q", "old");
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "Q", "old") && take_in_transaction(2, "Q", "old"));
	CU_ASSERT_TRUE(both_have("Q", ""));
	GIVEN_CALL_OK(tpabort(0));
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "Q", "old") && take_in_transaction(2, "Q", "old"));
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(both_have("Q", ""));
}

static bool
are_on_the_error_queues(void *arg)
{
	(void)arg;
	return depth(g, "ERRQ") == 1 && depth_in(g, 2, "ERRQ") == 1;
}

static void	/* By tpabort(), and by time: it is back, and a retry is spent, in both spaces. */
each_way_of_rolling_back_counts_one_retry(void)
{
	given_two_spaces();
	both("TWICE", "t");
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "TWICE", "t") && take_in_transaction(2, "TWICE", "t"));
	GIVEN_CALL_OK(tpabort(0));
	GIVEN_CALL_OK(tpbegin(1, 0));			/* the second one, by time: it was the last retry */
	CU_ASSERT_TRUE(take_in_transaction(1, "TWICE", "t") && take_in_transaction(2, "TWICE", "t"));
	CU_ASSERT_TRUE(wait_until(are_on_the_error_queues, NULL, 10));
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(both_have("ERRQ", "t"));
	CU_ASSERT_TRUE(both_have("TWICE", ""));
}

static void
a_queue_manager_that_dies_in_between_undoes_the_others_work(void)
{
	given_two_spaces();
	both("Q", "stays");
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "Q", "stays") && take_in_transaction(2, "Q", "stays"));
	kill_and_wait(2, false);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(wait_until(is_restarted, &(struct restarted){ 2, 0 }, 20));
	CU_ASSERT_TRUE(both_have("Q", "stays"));
}

static void
what_a_transaction_enqueued_it_does_not_dequeue(void)
{
	TPQCTL c = { 0 };

	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(20, 0));
	both("Q", "mine");
	CU_ASSERT_EQUAL(dequeue(1, "Q", &c, 0, NULL), QMENOMSG);
	CU_ASSERT_EQUAL(dequeue(2, "Q", &c, 0, NULL), QMENOMSG);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(both_have("Q", "mine"));
}

static void	/* TPNOTRAN: done when the call returns, whatever becomes of the transaction and of the queue manager. */
outside_it_success_is_sure(void)
{
	TPQCTL c = { 0 };

	given_two_spaces();
	both("Q", "first");
	GIVEN_CALL_OK(tpbegin(20, 0));
	put("Q", "inside");
	CU_ASSERT_EQUAL(enqueue(2, "Q", &c, "outside", TPNOTRAN), 0);
	CU_ASSERT_TRUE(others_take(2, "Q", "first"));
	CU_ASSERT_EQUAL(enqueue(2, "NONE", &c, "x", TPNOTRAN), QMEBADQUEUE);	/* a failure outside does not touch it */
	kill_and_wait(2, true);
	GIVEN_CALL_OK(tpcommit(0));			/* the second space was no part of it */
	CU_ASSERT_TRUE(others_take(2, "Q", "outside") && others_take(2, "Q", ""));
	CU_ASSERT_TRUE(others_take(1, "Q", "first") && others_take(1, "Q", "inside"));
}

static void	/* TPEOTYPE: the message stays, and what was done in the other space is undone. */
a_message_of_another_type_dooms_both(void)
{
	TPQCTL c = { 0 };
	char *b;
	long n;

	given_two_spaces();
	put_in("QSPACE2", "Q", "a string");
	GIVEN_CALL_OK(tpbegin(20, 0));
	put("Q", "undone");
	b = tpalloc("CARRAY", NULL, 100);
	REFUSED(tpdequeue("QSPACE2", "Q", &c, &b, &n, TPNOCHANGE), TPEOTYPE);
	tpfree(b);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(others_take(1, "Q", "") && others_take(2, "Q", "a string"));
}

static void	/* What a program can have wrong spares the transaction; it commits what was right. */
refusals_spare_it(void)
{
	TPQCTL c = { 0 };

	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(20, 0));
	both("Q", "right");
	for (int n = 1; n <= 2; n++) {
		CU_ASSERT_EQUAL(enqueue(n, "NONE", &c, "x", 0), QMEBADQUEUE);
		CU_ASSERT_EQUAL(dequeue(n, "NONE", &c, 0, NULL), QMEBADQUEUE);
		CU_ASSERT_EQUAL(dequeue(n, "ERRQ", &c, 0, NULL), QMENOMSG);
		c.flags = TPQPRIORITY;
		c.priority = 1000;
		CU_ASSERT_EQUAL(enqueue(n, "Q", &c, "x", 0), QMEINVAL);
		c.flags = TPQBEFOREMSGID;
		memset(c.msgid, 'x', sizeof c.msgid);
		CU_ASSERT_TRUE(enqueue(n, "Q", &c, "x", 0) < 0);
		c.flags = 0;
		CU_ASSERT_EQUAL(enqueue(n, "Q", &c, "x", 0x40000000), 1000 + TPEINVAL);
	}
	REFUSED(tpenqueue("NOSPACE", "Q", NULL, NULL, 0, 0), TPENOENT);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(both_have("Q", "right"));
}

static void	/* The queue manager gave the transaction up: QMEABORTED, and nothing of it stays anywhere. */
qmeaborted_dooms_it(void)
{
	TPQCTL c = { 0 };

	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(30, 0));
	both("Q", "half");
	{
		struct restarted r = { 2, given_tmqueue(g, 2) };
		pid_t now;

		kill(r.old, SIGKILL);
		while ((now = given_tmqueue(g, 2)) == 0 || now == r.old)
			nap_ms(5);
	}
	CU_ASSERT_EQUAL(enqueue(2, "Q", &c, "other half", TPSIGRSTRT), QMEABORTED);
	CU_ASSERT_EQUAL(enqueue(1, "Q", &c, "more", 0), 1000 + TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(both_have("Q", ""));
}

static void
memory_obeys_it_and_does_not_survive(void)
{
	TPQCTL c = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT };

	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_EQUAL(enqueue(1, "Q", &c, "light", 0), 0);
	c.flags = TPQDELIVERYQOS;
	CU_ASSERT_EQUAL(enqueue(2, "Q", &c, "light", 0), 0);
	CU_ASSERT_TRUE(both_have("Q", ""));
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "Q", "light") && take_in_transaction(2, "Q", "light"));
	GIVEN_CALL_OK(tpabort(0));
	kill_and_wait(2, true);
	CU_ASSERT_TRUE(others_take(1, "Q", "light") && others_take(2, "Q", ""));
}

static void	/* Every call that could go on with it says TPETIME, but for one. */
calls_in_a_doomed_one_say_tpetime(void)
{
	TPQCTL c = { 0 };
	TPTRANID id;
	char *b = tpalloc("STRING", NULL, 200);
	long n;

	given_two_spaces();
	GIVEN_CALL_OK(tpbegin(20, 0));
	both("Q", "undone");
	strcpy(b, "fail");
	REFUSED(tpcall("S", b, 0, &b, &n, 0), TPESVCFAIL);
	CU_ASSERT_EQUAL(enqueue(1, "Q", &c, "x", 0), 1000 + TPETIME);
	CU_ASSERT_EQUAL(enqueue(2, "Q", &c, "x", TPNOTRAN), 1000 + TPETIME);
	CU_ASSERT_EQUAL(dequeue(1, "Q", &c, 0, NULL), 1000 + TPETIME);
	strcpy(b, "lev");
	REFUSED(tpcall("S", b, 0, &b, &n, 0), TPETIME);
	REFUSED(tpcall("S", b, 0, &b, &n, TPNOTRAN), TPETIME);
	REFUSED(tpacall("S", b, 0, 0), TPETIME);
	REFUSED(tpacall("S", b, 0, TPNOREPLY | TPNOTRAN), TPETIME);
	GIVEN_CALL_OK(tpacall("S", b, 0, TPNOREPLY | TPNOTRAN | TPNOBLOCK));
	REFUSED(tpbegin(10, 0), TPEPROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	REFUSED(tpcommit(0), TPEABORT);
	REFUSED(tpsuspend(&id, 0), TPEPROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_TRUE(both_have("Q", ""));
	tpfree(b);
}

static void	/* No retries: the first rollback sends each to the error queue of its own space, under a new msgid and its old corrid. */
spent_retries_lead_to_the_error_queue_of_each_space(void)
{
	char msgid[3][TMMSGIDLEN];

	given_two_spaces();
	for (int n = 1; n <= 2; n++) {
		TPQCTL c = { .flags = TPQMSGID | TPQCORRID };

		memset(c.corrid, 'a' + n, sizeof c.corrid);
		CU_ASSERT_EQUAL(enqueue(n, "ONCE", &c, "spent", 0), 0);
		memcpy(msgid[n], c.msgid, sizeof msgid[n]);
	}
	GIVEN_CALL_OK(tpbegin(20, 0));
	CU_ASSERT_TRUE(take_in_transaction(1, "ONCE", "spent") && take_in_transaction(2, "ONCE", "spent"));
	GIVEN_CALL_OK(tpabort(0));
	for (int n = 1; n <= 2; n++) {
		TPQCTL c = { .flags = TPQMSGID | TPQCORRID | TPQGETBYCORRID };
		char *text;

		memset(c.corrid, 'a' + n, sizeof c.corrid);
		CU_ASSERT_TRUE(others_take(n, "ONCE", ""));
		CU_ASSERT_EQUAL(dequeue(n, "ERRQ", &c, 0, &text), 0);
		CU_ASSERT_TRUE(text != NULL && strcmp(text, "spent") == 0);
		free(text);
		CU_ASSERT_NOT_EQUAL(memcmp(c.msgid, msgid[n], TMMSGIDLEN), 0);
		CU_ASSERT_TRUE((c.flags & TPQCORRID) != 0 && c.corrid[31] == 'a' + n);
	}
}

static void	/* One space alone after two: nothing is left over from the one before. */
transactions_follow_each_other(void)
{
	given_two_spaces();
	for (int i = 0; i < 20; i++) {
		GIVEN_CALL_OK(tpbegin(20, 0));
		if (i % 3 != 0)
			put("Q", "x");
		if (i % 3 != 1)
			put_in("QSPACE2", "Q", "x");
		if (i % 2 == 0)
			GIVEN_CALL_OK(tpcommit(0));
		else
			GIVEN_CALL_OK(tpabort(0));
	}
	CU_ASSERT_EQUAL(depth(g, "Q"), 6);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 7);
	for (char *text; (text = take("Q")) != NULL; free(text))
		;
	for (char *text; (text = take_from("QSPACE2", "Q")) != NULL; free(text))
		;
}

static bool
is_quiet(void *arg)
{
	bool quiet = true;

	(void)arg;
	for (int n = 1; n <= 2; n++) {
		char *out = given_qmadmin_of(g, n, "qprinttrans");

		quiet = quiet && !has(out, "transaction index:");
		free(out);
	}
	return quiet;
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	CU_ASSERT_TRUE(wait_until(is_quiet, NULL, 35));
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(enqueued_is_seen_after_the_commit_in_both),
		UNIT(dequeued_is_gone_after_the_commit_in_both),
		UNIT(each_way_of_rolling_back_counts_one_retry),
		UNIT(a_queue_manager_that_dies_in_between_undoes_the_others_work),
		UNIT(what_a_transaction_enqueued_it_does_not_dequeue),
		UNIT(outside_it_success_is_sure),
		UNIT(a_message_of_another_type_dooms_both),
		UNIT(refusals_spare_it),
		UNIT(qmeaborted_dooms_it),
		UNIT(memory_obeys_it_and_does_not_survive),
		UNIT(calls_in_a_doomed_one_say_tpetime),
		UNIT(spent_retries_lead_to_the_error_queue_of_each_space),
		UNIT(transactions_follow_each_other),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: transactions over two spaces", tests, UNIT_COUNT(tests));
}
