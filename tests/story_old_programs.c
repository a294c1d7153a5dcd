/*
 * story_old_programs - what programs written long ago rely on, beyond queue calls: replies in any order, signals, time,
 * priorities, TX, contexts, what tperrno and the user log say; and what monitoring shows right after a call.
 */
#include <signal.h>
#include <sys/time.h>

#include "given.h"
#include "tx.h"
#include "userlog.h"

static struct given *g;

static const char source[] =
    "#include <atmi.h>\n#include <unistd.h>\n"
    "ECHO(m) TPSVCINFO *m; { tpreturn(TPSUCCESS, 7L, m->data, m->len, 0L); }\n"
    "SLOW(m) TPSVCINFO *m; { usleep(400000); tpreturn(TPSUCCESS, tpgprio(), m->data, m->len, 0L); }\n"
    "FAIL(m) TPSVCINFO *m; { tpreturn(TPFAIL, 42L, m->data, 0L, 0L); }\n";

static void
given_old_system(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-s ECHO,FAIL -s SLOW",
		    .server_params = "MIN=2 RQADDR=APPQ REPLYQ=Y",
		    .queues = "qcreate Q fifo top,msgid 5 0 100% 0% \"\"\n" });
}

static char *data;
static long len;

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)

static int
ask(const char *service, long flags)
{
	if (data == NULL)
		data = tpalloc("STRING", NULL, 100);
	strcpy(data, "text");
	return tpacall((char *)service, data, 0, flags);
}

/* --- calls --- */

static void
replies_may_be_fetched_in_any_order(void)
{
	int slow, quick, any = 0;

	given_old_system();
	CU_ASSERT_TRUE((slow = ask("SLOW", 0)) > 0);
	CU_ASSERT_TRUE((quick = ask("ECHO", 0)) > 0);
	CU_ASSERT_NOT_EQUAL(slow, quick);
	REFUSED(tpgetrply(&slow, &data, &len, TPNOBLOCK), TPEBLOCK);
	GIVEN_CALL_OK(tpgetrply(&any, &data, &len, TPGETANY));
	CU_ASSERT_EQUAL(any, quick);
	CU_ASSERT_EQUAL(tpurcode, 7);
	REFUSED(tpgetrply(&quick, &data, &len, 0), TPEBADDESC);
	GIVEN_CALL_OK(tpgetrply(&slow, &data, &len, 0));
	CU_ASSERT_EQUAL(tpurcode, 50);			/* the priority of a request that nobody gave one */
	REFUSED(tpgetrply(&any, &data, &len, TPGETANY), TPEBADDESC);
	CU_ASSERT_TRUE((any = ask("FAIL", 0)) > 0);
	REFUSED(tpgetrply(&any, &data, &len, 0), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, 42);
	CU_ASSERT_STRING_EQUAL(data, "text");
}

static void
a_time_out_leaves_the_descriptor_valid(void)
{
	int cd;

	given_old_system();
	cd = ask("SLOW", 0);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpgetrply(&cd, &data, &len, 0), TPETIME);
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, 0));
}

static void
a_cancelled_call_has_no_reply(void)
{
	int cd, i, cds[50];

	given_old_system();
	cd = ask("ECHO", 0);
	GIVEN_CALL_OK(tpcancel(cd));
	REFUSED(tpcancel(cd), TPEBADDESC);
	REFUSED(tpgetrply(&cd, &data, &len, 0), TPEBADDESC);
	for (i = 0; i < 50; i++)
		CU_ASSERT_TRUE((cds[i] = ask("ECHO", 0)) > 0);
	REFUSED(ask("ECHO", 0), TPELIMIT);
	CU_ASSERT_EQUAL(ask("ECHO", TPNOREPLY), 0);	/* needs no descriptor */
	for (i = 50; i-- > 0;)
		GIVEN_CALL_OK(tpgetrply(&cds[i], &data, &len, 0));
}

static void
in_a_transaction_a_call_has_its_reply_first(void)
{
	int cd;

	given_old_system();
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(ask("ECHO", TPNOREPLY), TPEINVAL);
	CU_ASSERT_EQUAL(ask("ECHO", TPNOREPLY | TPNOTRAN), 0);
	cd = ask("ECHO", 0);
	REFUSED(tpcancel(cd), TPETRAN);
	REFUSED(tpcommit(0), TPEPROTO);
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, 0));
	GIVEN_CALL_OK(tpcommit(0));
}

static void
a_priority_is_for_one_request(void)
{
	int cd;

	given_old_system();
	GIVEN_CALL_OK(tpsprio(70, TPABSOLUTE));
	cd = ask("SLOW", 0);
	CU_ASSERT_EQUAL(tpgprio(), 70);
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, 0));
	CU_ASSERT_EQUAL(tpurcode, 70);
	cd = ask("ECHO", 0);
	CU_ASSERT_EQUAL(tpgprio(), 50);
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, 0));
}

/* --- signals and time --- */

static void
on_alarm(int sig)
{
	(void)sig;
}

static void
alarm_in_100_ms(void)
{
	struct itimerval it = { .it_value.tv_usec = 100000 };
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

static void
a_signal_ends_a_wait_unless_it_is_to_go_on(void)
{
	TPQCTL ctl = { .flags = TPQWAIT };
	int cd;

	given_old_system();
	alarm_in_100_ms();
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTIME), TPGOTSIG);
	cd = ask("SLOW", 0);
	alarm_in_100_ms();
	REFUSED(tpgetrply(&cd, &data, &len, 0), TPGOTSIG);
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, 0));
	cd = ask("SLOW", 0);
	alarm_in_100_ms();
	GIVEN_CALL_OK(tpgetrply(&cd, &data, &len, TPSIGRSTRT));
	CU_ASSERT_PTR_NULL(take("Q"));
}

static void
a_transaction_of_two_seconds_ends_a_wait_after_two(void)
{
	TPQCTL ctl = { .flags = TPQWAIT };
	double start = now_s();

	given_old_system();
	GIVEN_CALL_OK(tpbegin(2, 0));
	start = now_s();
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTIME), TPETIME);
	CU_ASSERT_TRUE(now_s() - start > 1.9);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, NULL, 0, 0), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
}

/* --- what is said of errors --- */

static void
tperrno_outlives_a_look_at_the_transaction(void)
{
	given_old_system();
	tperrno = TPENOENT;
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(tpcall("NOBODY", NULL, 0, &data, &len, 0), TPENOENT);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	GIVEN_CALL_OK(tpabort(0));
	tpurcode = 9;
	CU_ASSERT_EQUAL(tpurcode, 9);
}

static void
a_flag_that_is_no_flag_of_the_call_is_refused(void)
{
	TPQCTL ctl = { 0 };

	given_old_system();
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, NULL, 0, TPNOCHANGE), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, NULL, 0, TPNOREPLY), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPGETANY), TPEINVAL);
	REFUSED(tpcall("ECHO", data, 0, &data, &len, TPNOREPLY), TPEINVAL);
	CU_ASSERT_PTR_NULL(take("Q"));
}

static void
an_old_diagnostic_is_not_left_in_the_control_structure(void)
{
	TPQCTL ctl;

	given_old_system();
	memset(&ctl, 0xA5, sizeof ctl);
	ctl.flags = TPNOFLAGS;
	ctl.diagnostic = QMENOMSG;
	REFUSED(tpdequeue("NOSPACE", "Q", &ctl, &data, &len, 0), TPENOENT);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	ctl.diagnostic = QMENOMSG;
	REFUSED(tpdequeue(NULL, "Q", &ctl, &data, &len, 0), TPEINVAL);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	ctl.diagnostic = QMENOMSG;
	REFUSED(tpenqueue(NULL, "Q", &ctl, data, 0, 0), TPEINVAL);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
}

static void
lines_of_the_library_carry_the_name_of_the_program(void)
{
	char *raw = tpalloc("CARRAY", NULL, 10);
	TPQCTL ctl = { 0 };

	given_old_system();
	proc_name = "/opt/old/ledger";
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, raw, 11, 0), TPEINVAL);
	CU_ASSERT_TRUE(given_logged(g, "!ledger."));
	CU_ASSERT_FALSE(given_logged(g, "?proc"));
	tpfree(raw);
}

/* --- transactions under other names --- */

static void
tx_is_another_face_of_the_same_transactions(void)
{
	TXINFO info;
	char *text;

	given_old_system();
	CU_ASSERT_EQUAL(tx_begin(), TX_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(tx_open(), TX_OK);
	CU_ASSERT_EQUAL(tx_info(&info), 0);
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	CU_ASSERT_EQUAL(tx_info(&info), 1);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	put("Q", "by tx");
	CU_ASSERT_EQUAL(tx_close(), TX_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(tx_commit(), TX_OK);
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "by tx");
	free(text);
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_CHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	put("Q", "undone");
	CU_ASSERT_EQUAL(tx_rollback(), TX_OK);
	CU_ASSERT_EQUAL(tpgetlev(), 1);			/* chained: in the next one already */
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_UNCHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_commit(), TX_OK);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(tx_rollback(), TX_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(tx_close(), TX_OK);
	CU_ASSERT_PTR_NULL(take("Q"));
}

static void
a_transaction_can_be_put_aside(void)
{
	TPTRANID id;
	char *text;

	given_old_system();
	GIVEN_CALL_OK(tpbegin(30, 0));
	put("Q", "inside");
	GIVEN_CALL_OK(tpsuspend(&id, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	put("Q", "outside");
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "outside");
	free(text);
	GIVEN_CALL_OK(tpresume(&id, 0));
	CU_ASSERT_EQUAL(tpresume(&id, 0), -1);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "inside");
	free(text);
	CU_ASSERT_EQUAL(tpscmt(TP_CMT_LOGGED), TP_CMT_COMPLETE);
	CU_ASSERT_EQUAL(tpscmt(TP_CMT_COMPLETE), TP_CMT_LOGGED);
	REFUSED(tpscmt(9), TPEINVAL);
}

/* --- several contexts --- */

static void
contexts_have_transactions_of_their_own(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	TPCONTEXT_T first, second;
	char *out;

	given_old_system();
	memset(init, 0, sizeof *init);
	strcpy(init->usrname, "clerk");
	strcpy(init->cltname, "ledger");
	GIVEN_CALL_OK(tpinit(NULL));
	init->flags = TPMULTICONTEXTS;
	REFUSED(tpinit(init), TPEPROTO);
	GIVEN_CALL_OK(tpterm());
	GIVEN_CALL_OK(tpinit(init));
	GIVEN_CALL_OK(tpgetctxt(&first, 0));
	GIVEN_CALL_OK(tpinit(init));
	GIVEN_CALL_OK(tpgetctxt(&second, 0));
	CU_ASSERT_NOT_EQUAL(first, second);
	out = given_ok(g, NULL, "echo pclt | tmadmin -r");
	CU_ASSERT_EQUAL(count_of(out, "\nSITE1           clerk           ledger           0:00:0"), 2);
	free(out);
	GIVEN_CALL_OK(tpbegin(30, 0));
	GIVEN_CALL_OK(tpsetctxt(first, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	GIVEN_CALL_OK(tpsetctxt(TPNULLCONTEXT, 0));
	REFUSED(tpcall("ECHO", NULL, 0, &data, &len, 0), TPEPROTO);
	CU_ASSERT_EQUAL(tpsetctxt(TPINVALIDCONTEXT, 0), -1);
	GIVEN_CALL_OK(tpsetctxt(second, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(tpterm());			/* and what it began is rolled back */
	GIVEN_CALL_OK(tpsetctxt(first, 0));
	GIVEN_CALL_OK(tpterm());
	GIVEN_CALL_OK(tpinit(NULL));
	GIVEN_CALL_OK(tpterm());
	GIVEN_CALL_OK(tpterm());			/* nothing joined: no error */
	tpfree((char *)init);
}

/* --- monitoring --- */

/* The sum of a column of tmadmin's table, over rows that begin with `program`; columns are counted in words. */
static long
column_sum(const char *command, const char *program, int column)
{
	char *out = given_ok(g, NULL, "echo %s | tmadmin -r 2>/dev/null | awk '$1 == \"%s\" { n += $%d } END { print n + 0 }'",
	    command, program, column);
	long n = atol(out);

	free(out);
	return n;
}

static void
counters_are_those_of_now(void)
{
	long before, queue_before, i;
	int slow;

	given_old_system();
	before = column_sum("psr", "server", 5);
	queue_before = column_sum("psr", "TMQUEUE", 5);
	for (i = 1; i <= 3; i++) {
		slow = ask("ECHO", 0);
		GIVEN_CALL_OK(tpgetrply(&slow, &data, &len, 0));
		put("Q", "counted");
		free(take("Q"));
		CU_ASSERT_EQUAL(column_sum("psr", "server", 5), before + i);
		CU_ASSERT_EQUAL(column_sum("psr", "TMQUEUE", 5), queue_before + 2 * i);
	}
	CU_ASSERT_TRUE((slow = ask("SLOW", 0)) > 0);
	before = column_sum("psc", "ECHO", 7);		/* a server at work tells its counters as well */
	GIVEN_CALL_OK(tpgetrply(&slow, &data, &len, 0));
	CU_ASSERT_EQUAL(column_sum("psc", "ECHO", 7), before);
	CU_ASSERT_TRUE(before >= 3);
}

static void
a_queue_address_selects_servers_and_their_services(void)
{
	char *out;

	given_old_system();
	CU_ASSERT_EQUAL(count_of(out = given_ok(g, NULL, "echo psr -q APPQ | tmadmin -r"), "\nserver "), 2);
	free(out);
	CU_ASSERT_EQUAL(count_of(out = given_ok(g, NULL, "echo psc -q APPQ | tmadmin -r"), " server "), 6);
	CU_ASSERT_FALSE(has(out, "TMQUEUE"));
	free(out);
	out = given_ok(g, NULL, "echo pq APPQ | tmadmin -r");
	CU_ASSERT_EQUAL(count_of(out, "\nserver         APPQ              2"), 1);
	free(out);
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	tpterm();
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(replies_may_be_fetched_in_any_order), UNIT(a_time_out_leaves_the_descriptor_valid),
		UNIT(a_cancelled_call_has_no_reply), UNIT(in_a_transaction_a_call_has_its_reply_first),
		UNIT(a_priority_is_for_one_request), UNIT(a_signal_ends_a_wait_unless_it_is_to_go_on),
		UNIT(a_transaction_of_two_seconds_ends_a_wait_after_two), UNIT(tperrno_outlives_a_look_at_the_transaction),
		UNIT(a_flag_that_is_no_flag_of_the_call_is_refused),
		UNIT(an_old_diagnostic_is_not_left_in_the_control_structure),
		UNIT(lines_of_the_library_carry_the_name_of_the_program),
		UNIT(tx_is_another_face_of_the_same_transactions), UNIT(a_transaction_can_be_put_aside),
		UNIT(contexts_have_transactions_of_their_own), UNIT(counters_are_those_of_now),
		UNIT(a_queue_address_selects_servers_and_their_services), UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: what old programs rely on", tests, UNIT_COUNT(tests));
}
