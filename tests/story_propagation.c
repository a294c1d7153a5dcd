/*
 * story_propagation - a transaction goes through services: who joins it, who learns of it, what dooms it; AUTOTRAN; and what
 * TMQFORWARD makes of it.  Two queue spaces, several servers.
 */
#include <signal.h>
#include <sys/time.h>

#include "given.h"
#include "given_doer.h"

static struct given *g;

/* A B C D: four servers of one process each.  AUTO: in A's server, with AUTOTRAN; AUTO1: the same, of one second. */
static void
given_servers(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .spaces = 2, .resources = "MAXGTT 8\n", .server_source = given_doer,
		    .server_services = "-s A,B,C,D,AUTO,AUTO1,WORK,WORKF:DO",
		    .server_params = "RESTART=Y MAXGEN=255 GRACE=0 CLOPT=\"-s A,AUTO,AUTO1:DO\"\n"
				     "server\tSRVGRP=APP SRVID=2 RESTART=Y MAXGEN=255 GRACE=0 CLOPT=\"-s B:DO\"\n"
				     "server\tSRVGRP=APP SRVID=3 RESTART=Y MAXGEN=255 GRACE=0 CLOPT=\"-s C,WORK,WORKF:DO\"\n"
				     "server\tSRVGRP=APP SRVID=4 RESTART=Y MAXGEN=255 GRACE=0 CLOPT=\"-s D:DO\"",
		    .services = "AUTO AUTOTRAN=Y TRANTIME=8\nAUTO1 AUTOTRAN=Y TRANTIME=1\nB BLOCKTIME=20",
		    .queues = "qcreate Q fifo none 9 0 100% 0% \"\"\nqcreate R fifo none 9 0 100% 0% \"\"\n"
			      "qcreate WORK fifo none 0 0 100% 0% \"\"\nqcreate WORKF fifo none 0 0 100% 0% \"\"\n" });
}

static char *said;		/* what the last answer said */
static long len;

static char *
request(const char *steps)
{
	if (said == NULL)
		said = tpalloc("STRING", NULL, 4000);
	CU_ASSERT_PTR_NOT_NULL_FATAL(said);
	snprintf(said, 4000, "%s", steps);
	return said;
}

static int		/* 0 or tperrno */
ask_with(const char *service, const char *steps, long flags)
{
	request(steps);
	if (tpcall((char *)service, said, 0, &said, &len, flags) != -1)
		return 0;
	if (tperrno != TPESVCFAIL)
		strcpy(said, "");
	return tperrno;
}

static int
ask(const char *service, const char *steps)
{
	return ask_with(service, steps, 0);
}

static int
start(const char *service, const char *steps)
{
	return tpacall((char *)service, request(steps), 0, 0);
}

static int
finish(int cd)
{
	return tpgetrply(&cd, &said, &len, 0) == -1 ? tperrno : 0;
}

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)
#define SAYS(text) do { \
	CU_ASSERT_STRING_EQUAL(said, text); \
	if (strcmp(said, text) != 0) fprintf(stderr, "\n%s:%d: it said \"%s\"\n", __FILE__, __LINE__, said); \
} while (0)

static bool	/* That message, and no other one, is on queue Q of this space; it is taken. */
only(int space, const char *text)
{
	char *first = take_from(given_space(space), "Q"), *second = first != NULL ? take_from(given_space(space), "Q") : NULL;
	bool is = first != NULL && second == NULL && strcmp(first, text) == 0;

	if (!is)
		fprintf(stderr, "\nspace %d: \"%s\", then \"%s\" instead of \"%s\"\n", space, first ? first : "", second ? second : "", text);
	free(first);
	free(second);
	return is;
}

static bool
nothing(int space)
{
	char *text = take_from(given_space(space), "Q");

	if (text != NULL)
		fprintf(stderr, "\nspace %d has \"%s\"\n", space, text);
	free(text);
	return text == NULL;
}

static bool	/* No transaction is left in either space. */
is_quiet(void *arg)
{
	char *out[2];
	bool quiet = true;
	int i;

	(void)arg;
	for (i = 0; i < 2; i++) {
		out[i] = given_qmadmin_of(g, i + 1, "qprinttrans");
		quiet = quiet && !has(out[i], "transaction index:");
		free(out[i]);
	}
	return quiet;
}

static void
begin(void)
{
	GIVEN_CALL_OK(tpbegin(8, 0));		/* what nobody ends is gone when the story ends */
}

static void
commit(void)
{
	GIVEN_CALL_OK(tpcommit(0));
}

static void	/* The transaction is rollback-only: the next call says so, and the commit. */
is_doomed(void)
{
	CU_ASSERT_EQUAL(ask("D", "lev"), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_TRUE(nothing(2));
}

/* --- who joins --- */

static void
the_callee_is_told_and_joins(void)
{
	given_servers();
	CU_ASSERT_EQUAL(ask("A", "tran; lev"), 0);
	SAYS("0 0");
	begin();
	CU_ASSERT_EQUAL(ask("A", "tran; lev; put QSPACE Q a; put QSPACE2 Q b"), 0);
	SAYS("1 1 0 0");
	commit();
	CU_ASSERT_TRUE(only(1, "a"));
	CU_ASSERT_TRUE(only(2, "b"));
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; put QSPACE2 Q b"), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_TRUE(nothing(2));
}

static void	/* The program itself uses no queue: it learns of both spaces through chains, forwards, and several answers. */
every_group_is_learnt(void)
{
	int cd[3];

	given_servers();
	begin();
	CU_ASSERT_EQUAL(ask("A", "call B (call C (put QSPACE2 Q deep)); put QSPACE Q near"), 0);
	SAYS("0 0");
	commit();
	CU_ASSERT_TRUE(only(1, "near"));
	CU_ASSERT_TRUE(only(2, "deep"));

	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q before; forward B (tran; forward C (tran; put QSPACE2 Q after))"), 0);
	SAYS("1 0");
	commit();
	CU_ASSERT_TRUE(only(1, "before"));
	CU_ASSERT_TRUE(only(2, "after"));

	begin();
	cd[0] = start("A", "pause 50; put QSPACE Q one");
	cd[1] = start("B", "put QSPACE2 Q two");
	cd[2] = start("C", "lev");
	CU_ASSERT_EQUAL(finish(cd[2]), 0);
	CU_ASSERT_EQUAL(finish(cd[1]), 0);
	CU_ASSERT_EQUAL(finish(cd[0]), 0);
	commit();
	CU_ASSERT_TRUE(only(1, "one"));
	CU_ASSERT_TRUE(only(2, "two"));
}

static void	/* So that the rollback reaches a group that only the failing service used: its messages are back at once. */
every_group_is_learnt_from_a_failure(void)
{
	given_servers();
	put_in("QSPACE2", "Q", "wanted");
	begin();
	CU_ASSERT_EQUAL(ask("A", "take QSPACE2 Q; fail"), TPESVCFAIL);
	SAYS("wanted");
	CU_ASSERT_EQUAL(tpurcode, 7);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(only(2, "wanted"));

	put_in("QSPACE2", "Q", "wanted");
	begin();
	CU_ASSERT_EQUAL(ask("A", "forward B (take QSPACE2 Q; forward C (fail))"), TPESVCFAIL);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(only(2, "wanted"));
}

static void	/* Answers that nobody took before tpabort(): their groups hear of it as well. */
a_rollback_reaches_what_answers_tell_that_nobody_took(void)
{
	int cd, other;

	given_servers();
	put_in("QSPACE2", "Q", "wanted");
	begin();
	cd = start("A", "take QSPACE2 Q");
	other = start("A", "lev");		/* the same server, so the first one is done when it answers */
	CU_ASSERT_EQUAL(finish(other), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(finish(cd), TPEBADDESC);
	CU_ASSERT_TRUE(only(2, "wanted"));

	put_in("QSPACE2", "Q", "wanted");
	begin();
	CU_ASSERT_EQUAL(ask("A", "acall B (take QSPACE2 Q); call B (lev)"), TPESVCERR);	/* a service did not take it */
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(only(2, "wanted"));
}

/* --- TPNOTRAN --- */

static void
tpnotran_stays_out(void)
{
	given_servers();
	begin();
	CU_ASSERT_EQUAL(ask_with("A", "tran; lev; put QSPACE Q outside", TPNOTRAN), 0);
	SAYS("0 0 0");
	CU_ASSERT_EQUAL(ask_with("A", "begin 10; put QSPACE2 Q own; commit", TPNOTRAN), 0);
	SAYS("0 0 0");
	CU_ASSERT_EQUAL(ask_with("A", "fail", TPNOTRAN), TPESVCFAIL);
	CU_ASSERT_EQUAL(ask_with("A", "none", TPNOTRAN), TPESVCERR);
	put("Q", "inside");
	CU_ASSERT_EQUAL(ask("B", "callout A (put QSPACE Q further; fail)"), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(only(2, "own"));
	free(take("Q"));
	CU_ASSERT_TRUE(only(1, "further"));
}

static void
a_call_without_a_reply_needs_tpnotran(void)
{
	given_servers();
	begin();
	REFUSED(tpacall("A", request("lev"), 0, TPNOREPLY), TPEINVAL);
	CU_ASSERT_EQUAL(tpacall("A", request("put QSPACE Q outside; touch done"), 0, TPNOREPLY | TPNOTRAN), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(ask("A", "lev"), 0);
	CU_ASSERT_TRUE(only(1, "outside"));
}

/* --- only the initiator ends it --- */

static void
a_participant_cannot_end_it(void)
{
	given_servers();
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; commit; abort; begin 5; lev"), 0);
	SAYS("0 9 9 9 1");
	commit();
	CU_ASSERT_TRUE(only(1, "a"));
}

/* --- what dooms --- */

static void
a_service_that_fails_dooms(void)
{
	static const struct { const char *steps; int error; } ways[] = {
		{ "put QSPACE Q a; fail", TPESVCFAIL },
		{ "put QSPACE Q a; exit", TPESVCFAIL },
		{ "put QSPACE Q a; none", TPESVCERR },
		{ "put QSPACE Q a; bad", TPESVCERR },
		{ "put QSPACE Q a; die", TPESVCERR },
		{ "put QSPACE Q a; acall B (pause 20)", TPESVCERR },
		{ "put QSPACE Q a; acall B (pause 20); fail", TPESVCERR },
		{ "put QSPACE Q a; acall B (pause 20); forward C (lev)", TPESVCERR },
		{ "put QSPACE Q a; forward NOBODY (lev)", TPESVCERR },
		{ "put QSPACE Q a; forward C (die)", TPESVCERR },
		{ "put QSPACE Q a; forward C (fail)", TPESVCFAIL },
	};

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int error;

		given_servers();
		begin();
		put_in("QSPACE2", "Q", "mine");
		error = ask("A", ways[i].steps);
		CU_ASSERT_EQUAL(error, ways[i].error);
		if (error != ways[i].error)
			fprintf(stderr, "\n%s: %d\n", ways[i].steps, error);
		is_doomed();
	}
}

static void	/* Success is not believed of a service that knows that its work cannot be committed. */
a_service_that_doomed_it_itself_has_not_succeeded(void)
{
	given_servers();
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; call B (fail); ok"), TPESVCERR);
	is_doomed();
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; call B (fail); forward C (lev)"), TPESVCERR);
	is_doomed();
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; callout B (fail); take QSPACE Q; put QSPACE NONE x; call NOBODY (lev)"), 0);
	SAYS("0 11 -11 -10 6");		/* none of these dooms */
	commit();
	CU_ASSERT_TRUE(only(1, "a"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5160"));
}

static bool
may_go_on(void *arg)
{
	return given_exists(g, arg);
}

static void	/* A server that is killed while it works: at once, not at the time-out. */
a_service_that_is_killed_dooms(void)
{
	int cd;
	pid_t pid;

	given_servers();
	begin();
	cd = start("B", "put QSPACE Q a; touch killme; wait never");
	CU_ASSERT_TRUE(wait_until(may_go_on, "killme", 10));
	CU_ASSERT_TRUE((pid = given_pid_as(g, 1, 2)) > 0);
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(finish(cd), TPESVCERR);
	CU_ASSERT_EQUAL(ask("D", "lev"), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	free(given_ok(g, NULL, "rm killme"));
}

/* --- a service's own transaction --- */

static void
a_transaction_that_a_service_leaves_open_is_rolled_back(void)
{
	given_servers();
	CU_ASSERT_EQUAL(ask("A", "begin 20; put QSPACE Q a; put QSPACE2 Q b"), TPESVCERR);
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_EQUAL(ask("A", "begin 20; put QSPACE Q a; forward B (lev)"), TPESVCERR);
	CU_ASSERT_EQUAL(ask("A", "begin 20; put QSPACE Q a; none"), TPESVCERR);
	CU_ASSERT_EQUAL(ask("A", "begin 20; put QSPACE Q a; fail"), TPESVCERR);
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_TRUE(nothing(2));
	CU_ASSERT_EQUAL(ask("A", "lev; begin 20; put QSPACE Q a; put QSPACE2 Q b; commit; begin 20; put QSPACE Q c; abort; lev"), 0);
	SAYS("0 0 0 0 0 0 0 0 0");
	CU_ASSERT_TRUE(only(1, "a"));
	CU_ASSERT_TRUE(only(2, "b"));
}

/* --- AUTOTRAN --- */

static void
autotran_begins_where_there_is_none(void)
{
	given_servers();
	CU_ASSERT_EQUAL(ask("AUTO", "tran; lev; put QSPACE Q a; call B (tran; put QSPACE2 Q b)"), 0);
	SAYS("1 1 0 0");
	CU_ASSERT_TRUE(only(1, "a"));
	CU_ASSERT_TRUE(only(2, "b"));
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; commit; abort; begin 5; fail"), TPESVCFAIL);
	SAYS("0 9 9 9");			/* it is not the routine's to end */
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; call B (fail)"), TPESVCERR);
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; none"), TPESVCERR);
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; acall B (pause 5)"), TPESVCERR);
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; exit"), TPESVCFAIL);
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_EQUAL(tpacall("AUTO", request("put QSPACE Q noreply"), 0, TPNOREPLY), 0);
	CU_ASSERT_EQUAL(ask("AUTO", "lev"), 0);
	CU_ASSERT_TRUE(only(1, "noreply"));
}

static void
autotran_is_the_callers_where_there_is_one(void)
{
	given_servers();
	begin();
	CU_ASSERT_EQUAL(ask("AUTO", "tran; put QSPACE Q a"), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(nothing(1));
	begin();
	CU_ASSERT_EQUAL(ask_with("AUTO", "tran; put QSPACE Q own", TPNOTRAN), 0);
	SAYS("1 0");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(only(1, "own"));
	CU_ASSERT_EQUAL(ask("D", "call AUTO (tran; put QSPACE Q a)"), 0);
	CU_ASSERT_TRUE(only(1, "a"));
}

static void	/* TRANTIME is over before the routine ends: its caller gets an error, and nothing has happened. */
autotran_has_its_time(void)
{
	given_servers();
	CU_ASSERT_EQUAL(ask("AUTO1", "put QSPACE Q a; pause 1200"), TPESVCERR);
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a; pause 1200"), 0);
	CU_ASSERT_TRUE(only(1, "a"));
}

static void	/* As many transactions as MAXGTT are open: the service is not called without one. */
autotran_needs_room(void)
{
	TPTRANID id[8];
	int n, i;

	given_servers();
	for (n = 0; n < 8 && tpbegin(30, 0) == 0; n++)
		GIVEN_CALL_OK(tpsuspend(&id[n], 0));
	CU_ASSERT_EQUAL(n, 8);
	REFUSED(tpbegin(8, 0), TPETRAN);
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a"), TPETRAN);
	CU_ASSERT_EQUAL(ask("A", "begin 8; put QSPACE Q without"), 0);
	SAYS("14 0");
	for (i = 0; i < n; i++) {
		GIVEN_CALL_OK(tpresume(&id[i], 0));
		GIVEN_CALL_OK(tpabort(0));
	}
	CU_ASSERT_TRUE(only(1, "without"));
	CU_ASSERT_EQUAL(ask("AUTO", "put QSPACE Q a"), 0);
	CU_ASSERT_TRUE(only(1, "a"));
}

static void	/* The transaction ends where it began, as the last service of the way did. */
autotran_goes_along_with_a_forward(void)
{
	given_servers();
	put("R", "order");
	CU_ASSERT_EQUAL(ask("AUTO", "take QSPACE R; forward B (tran; commit; put QSPACE Q b; forward C (tran; put QSPACE2 Q c))"), 0);
	SAYS("1 0");
	CU_ASSERT_TRUE(only(1, "b"));
	CU_ASSERT_TRUE(only(2, "c"));
	CU_ASSERT_EQUAL(take_diagnostic("R"), QMENOMSG);

	put("R", "order");
	CU_ASSERT_EQUAL(ask("AUTO", "take QSPACE R; forward B (put QSPACE Q b; forward C (put QSPACE2 Q c; fail))"), TPESVCFAIL);
	SAYS("0");
	CU_ASSERT_EQUAL(tpurcode, 7);
	CU_ASSERT_TRUE(peeks("R", "order"));
	CU_ASSERT_EQUAL(ask("AUTO", "take QSPACE R; forward B (put QSPACE Q b; die)"), TPESVCERR);
	CU_ASSERT_TRUE(peeks("R", "order"));
	CU_ASSERT_EQUAL(ask("AUTO", "take QSPACE R; forward NOBODY (lev)"), TPESVCERR);
	CU_ASSERT_TRUE(peeks("R", "order"));
	CU_ASSERT_EQUAL(ask("AUTO1", "take QSPACE R; forward B (put QSPACE Q b; pause 1200)"), TPESVCERR);
	CU_ASSERT_TRUE(peeks("R", "order"));
	CU_ASSERT_TRUE(nothing(1));
	CU_ASSERT_TRUE(nothing(2));

	/* who wants no reply has a transaction all the same */
	CU_ASSERT_EQUAL(tpacall("AUTO", request("take QSPACE R; forward B (put QSPACE2 Q done)"), 0, TPNOREPLY), 0);
	free(take_within("R", 0.01));
	CU_ASSERT_EQUAL(ask("AUTO", "lev"), 0);
	CU_ASSERT_EQUAL(ask("B", "lev"), 0);
	{
		char *text = NULL;
		for (int i = 0; i < 500 && (text = take_from("QSPACE2", "Q")) == NULL; i++)
			nap_ms(10);
		CU_ASSERT_TRUE(text != NULL && strcmp(text, "done") == 0);
		free(text);
	}
	/* in a transaction of the caller's it is not ended by the forward */
	put("R", "order");
	begin();
	CU_ASSERT_EQUAL(ask("AUTO", "take QSPACE R; forward B (put QSPACE2 Q b)"), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(nothing(2));
	CU_ASSERT_TRUE(peeks("R", "order"));
	free(take("R"));
}

static void	/* The server in which it began ends while the request is further on: nothing of it happens. */
autotran_is_rolled_back_when_its_server_ends(void)
{
	int cd;

	given_servers();
	put("R", "order");
	cd = start("AUTO", "take QSPACE R; forward B (put QSPACE2 Q b; touch further; wait goon)");
	CU_ASSERT_TRUE(wait_until(may_go_on, "further", 10));
	CU_ASSERT_EQUAL(ask("A", "exit"), TPESVCFAIL);
	given_write(g, "goon", "x");
	CU_ASSERT_EQUAL(finish(cd), TPESVCERR);
	CU_ASSERT_EQUAL(ask("B", "lev"), 0);
	CU_ASSERT_TRUE(peeks("R", "order"));
	free(take("R"));
	CU_ASSERT_TRUE(nothing(2));
	free(given_ok(g, NULL, "rm further goon"));
}

/* --- outstanding calls --- */

static void
outstanding_calls_at_the_end(void)
{
	int cd, out;

	given_servers();
	begin();
	cd = start("A", "pause 50; put QSPACE Q late");
	out = tpacall("B", request("lev"), 0, TPNOTRAN);
	REFUSED(tpcancel(cd), TPETRAN);
	REFUSED(tpcommit(0), TPEPROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(finish(cd), TPEBADDESC);
	REFUSED(tpcancel(cd), TPEBADDESC);
	CU_ASSERT_EQUAL(finish(out), 0);		/* not of the transaction */
	SAYS("0");
	CU_ASSERT_EQUAL(ask("A", "lev; lev"), 0);	/* the late answer is not taken for this one */
	SAYS("0 0");
	CU_ASSERT_TRUE(nothing(1));
	begin();
	out = tpacall("B", request("lev"), 0, TPNOTRAN);
	commit();
	CU_ASSERT_EQUAL(finish(out), 0);
	begin();
	out = tpacall("B", request("lev"), 0, TPNOTRAN);
	GIVEN_CALL_OK(tpcancel(out));
	commit();
}

static void
the_time_of_the_transaction_ends_its_calls(void)
{
	int cd, out, any = 0;

	given_servers();
	GIVEN_CALL_OK(tpbegin(1, 0));
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q a; pause 1200"), TPETIME);
	CU_ASSERT_EQUAL(tpacall("B", request("lev"), 0, TPNOREPLY | TPNOTRAN | TPNOBLOCK), 0);
	REFUSED(tpacall("B", request("lev"), 0, TPNOTRAN), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(ask("A", "lev"), 0);
	CU_ASSERT_TRUE(nothing(1));

	GIVEN_CALL_OK(tpbegin(1, 0));
	out = tpacall("B", request("lev"), 0, TPNOTRAN);
	cd = start("A", "pause 1200");
	CU_ASSERT_EQUAL(finish(cd), TPETIME);
	CU_ASSERT_EQUAL(finish(cd), TPEBADDESC);
	CU_ASSERT_EQUAL(finish(out), 0);
	GIVEN_CALL_OK(tpabort(0));

	GIVEN_CALL_OK(tpbegin(1, 0));
	start("A", "pause 1200");
	REFUSED(tpgetrply(&any, &said, &len, TPGETANY), TPETIME);
	REFUSED(tpgetrply(&any, &said, &len, TPGETANY), TPEBADDESC);
	GIVEN_CALL_OK(tpabort(0));

	GIVEN_CALL_OK(tpbegin(1, 0));			/* an answer that is there, and looked for too late */
	cd = start("C", "touch answered");
	CU_ASSERT_TRUE(wait_until(may_go_on, "answered", 10));
	CU_ASSERT_EQUAL(ask_with("A", "pause 1200", TPNOTRAN), TPETIME);
	CU_ASSERT_EQUAL(finish(cd), TPETIME);
	CU_ASSERT_EQUAL(finish(cd), TPEBADDESC);
	GIVEN_CALL_OK(tpabort(0));
	free(given_ok(g, NULL, "rm answered"));
}

/* Its server is busy until the transaction is over.  What the service took then would be held from everybody until a second
 * time-out, and lose the only try that its queue allows. */
static void
a_request_that_waited_too_long_is_not_carried_out(void)
{
	int out;

	given_servers();
	put("WORK", "once");
	for (int ends = 0; ends < 2; ends++) {		/* by its time; by its program, before that */
		out = tpacall("A", request("pause 1500"), 0, TPNOTRAN);
		GIVEN_CALL_OK(tpbegin(ends == 0 ? 1 : 60, 0));
		if (ends == 0) {
			CU_ASSERT_EQUAL(ask("A", "take QSPACE WORK; touch served"), TPETIME);
		} else {
			CU_ASSERT_TRUE(start("A", "take QSPACE WORK; touch served") > 0);
		}
		GIVEN_CALL_OK(tpabort(0));
		CU_ASSERT_EQUAL(finish(out), 0);
		CU_ASSERT_EQUAL(ask_with("A", "lev", 0), 0);	/* the turn of the late one is over */
		CU_ASSERT_FALSE(given_exists(g, "served"));
		CU_ASSERT_EQUAL(depth(g, "WORK"), 1);
		CU_ASSERT_TRUE(peeks("WORK", "once"));
	}
	CU_ASSERT_EQUAL(take_diagnostic("WORK"), 0);
	out = tpacall("A", request("pause 200"), 0, TPNOTRAN);	/* one that waited, and is in time */
	begin();
	CU_ASSERT_EQUAL(ask("A", "put QSPACE Q in_time"), 0);
	CU_ASSERT_EQUAL(finish(out), 0);
	commit();
	CU_ASSERT_EQUAL(take_diagnostic("Q"), 0);
	CU_ASSERT_TRUE(nothing(1));
}

static void	/* A group that joined for a service whose answer was lost hears nothing: its own deadline ends the branch. */
a_group_that_nobody_learnt_of_ends_at_its_deadline(void)
{
	given_servers();
	put_in("QSPACE2", "Q", "held");
	GIVEN_CALL_OK(tpbegin(1, 0));
	CU_ASSERT_EQUAL(ask("B", "take QSPACE2 Q; die"), TPESVCERR);
	GIVEN_CALL_OK(tpabort(0));
	{
		char *text = NULL;
		for (int i = 0; i < 1000 && (text = take_from("QSPACE2", "Q")) == NULL; i++)
			nap_ms(10);
		CU_ASSERT_TRUE(text != NULL && strcmp(text, "held") == 0);
		free(text);
	}
}

static void
on_alarm(int sig)
{
	(void)sig;
}

static void	/* A signal ends the wait for an answer; the call goes on and its answer can be fetched.  With tpcall() it cannot. */
a_signal_and_a_call_in_a_transaction(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval soon = { { 0, 0 }, { 0, 100000 } };
	int cd;

	given_servers();
	sigaction(SIGALRM, &sa, NULL);
	begin();
	cd = start("A", "pause 400; put QSPACE Q a");
	setitimer(ITIMER_REAL, &soon, NULL);
	CU_ASSERT_EQUAL(finish(cd), TPGOTSIG);
	CU_ASSERT_EQUAL(finish(cd), 0);
	commit();
	CU_ASSERT_TRUE(only(1, "a"));
	begin();
	setitimer(ITIMER_REAL, &soon, NULL);
	CU_ASSERT_EQUAL(ask("A", "pause 400"), TPGOTSIG);
	CU_ASSERT_EQUAL(ask("A", "lev"), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
}

static void	/* Answers of calls that were made before it was doomed can be fetched; new calls cannot be made. */
a_doomed_transaction_still_hears_its_answers(void)
{
	int good, bad;

	given_servers();
	begin();
	good = start("A", "put QSPACE Q a");
	bad = start("B", "fail");
	CU_ASSERT_EQUAL(finish(bad), TPESVCFAIL);
	REFUSED(tpacall("C", request("lev"), 0, 0), TPETIME);
	CU_ASSERT_EQUAL(finish(good), 0);
	SAYS("0");
	is_doomed();
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	CU_ASSERT_TRUE(wait_until(is_quiet, NULL, 35));	/* no transaction is left */
	tpfree(said);
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_callee_is_told_and_joins),
		UNIT(every_group_is_learnt),
		UNIT(every_group_is_learnt_from_a_failure),
		UNIT(a_rollback_reaches_what_answers_tell_that_nobody_took),
		UNIT(tpnotran_stays_out),
		UNIT(a_call_without_a_reply_needs_tpnotran),
		UNIT(a_participant_cannot_end_it),
		UNIT(a_service_that_fails_dooms),
		UNIT(a_service_that_doomed_it_itself_has_not_succeeded),
		UNIT(a_service_that_is_killed_dooms),
		UNIT(a_transaction_that_a_service_leaves_open_is_rolled_back),
		UNIT(autotran_begins_where_there_is_none),
		UNIT(autotran_is_the_callers_where_there_is_one),
		UNIT(autotran_has_its_time),
		UNIT(autotran_needs_room),
		UNIT(autotran_goes_along_with_a_forward),
		UNIT(autotran_is_rolled_back_when_its_server_ends),
		UNIT(outstanding_calls_at_the_end),
		UNIT(the_time_of_the_transaction_ends_its_calls),
		UNIT(a_request_that_waited_too_long_is_not_carried_out),
		UNIT(a_group_that_nobody_learnt_of_ends_at_its_deadline),
		UNIT(a_signal_and_a_call_in_a_transaction),
		UNIT(a_doomed_transaction_still_hears_its_answers),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: propagation", tests, UNIT_COUNT(tests));
}
