/*
 * story_tx - X/Open's TX calls, one by one: what each does to messages, in which order they may be called, in chained mode, beside
 * tpbegin() and its relatives, and in services.
 */
#include "given.h"
#include "given_doer.h"
#include "tx.h"

static struct given *g;

static void
given_tx_system(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .server_source = given_doer, .server_services = "-s S,AUTO:DO",
		    .server_params = "RESTART=Y MAXGEN=255 GRACE=0", .services = "AUTO AUTOTRAN=Y TRANTIME=8",
		    .queues = "qcreate Q fifo none 9 0 100% 0% \"\"\n" });
}

/* As a program is at its start: not open, unchained, no time-out. */
static void
given_fresh_program(void)
{
	given_tx_system();
	if (tpgetlev() == 1)
		tpabort(0);
	tx_rollback();
	tpterm();
}

#define IS(call, result) CU_ASSERT_EQUAL(call, result)
#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)

static bool
takes(const char *text)
{
	char *got = take("Q");
	bool same = got != NULL ? text != NULL && strcmp(got, text) == 0 : text == NULL;

	free(got);
	return same;
}

static char said[400];

static int		/* 0 or tperrno; the answer's text in `said` */
ask(const char *service, const char *steps)
{
	char *b = tpalloc("STRING", NULL, 1000);
	long len = 0;
	int rc;

	snprintf(b, 1000, "%s", steps);
	rc = tpcall((char *)service, b, 0, &b, &len, 0) == -1 ? tperrno : 0;
	snprintf(said, sizeof said, "%s", rc == 0 || rc == TPESVCFAIL ? b : "");
	tpfree(b);
	return rc;
}

/* --- call by call --- */

static void
nothing_goes_before_tx_open(void)
{
	TXINFO info;

	given_fresh_program();
	IS(tx_begin(), TX_PROTOCOL_ERROR);
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	IS(tx_rollback(), TX_PROTOCOL_ERROR);
	IS(tx_info(&info), TX_PROTOCOL_ERROR);
	IS(tx_info(NULL), TX_PROTOCOL_ERROR);
	IS(tx_set_commit_return(TX_COMMIT_COMPLETED), TX_PROTOCOL_ERROR);
	IS(tx_set_transaction_control(TX_CHAINED), TX_PROTOCOL_ERROR);
	IS(tx_set_transaction_timeout(5), TX_PROTOCOL_ERROR);
	IS(tx_close(), TX_OK);				/* it is closed: so X/Open's table of states has it */
	IS(tx_open(), TX_OK);
	IS(tx_open(), TX_OK);
	IS(tx_info(&info), 0);
	IS(tx_close(), TX_OK);
	IS(tx_begin(), TX_PROTOCOL_ERROR);
	tperrno = 77;
	IS(tx_open(), TX_OK);
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(tperrno, 77);			/* none of these calls touches it */
}

static void	/* What was compiled long ago has them in it. */
the_values_are_those_of_old(void)
{
	CU_ASSERT_TRUE(TX_NOT_SUPPORTED == 1 && TX_OK == 0 && TX_OUTSIDE == -1 && TX_ROLLBACK == -2 && TX_MIXED == -3 && TX_HAZARD == -4);
	CU_ASSERT_TRUE(TX_PROTOCOL_ERROR == -5 && TX_ERROR == -6 && TX_FAIL == -7 && TX_EINVAL == -8 && TX_COMMITTED == -9);
	CU_ASSERT_TRUE(TX_NO_BEGIN == -100 && TX_ROLLBACK_NO_BEGIN == -102 && TX_MIXED_NO_BEGIN == -103 && TX_HAZARD_NO_BEGIN == -104);
	CU_ASSERT_EQUAL(TX_COMMITTED_NO_BEGIN, -109);
	CU_ASSERT_TRUE(TX_COMMIT_COMPLETED == 0 && TX_COMMIT_DECISION_LOGGED == 1 && TX_UNCHAINED == 0 && TX_CHAINED == 1);
	CU_ASSERT_TRUE(TX_ACTIVE == 0 && TX_TIMEOUT_ROLLBACK_ONLY == 1 && TX_ROLLBACK_ONLY == 2);
}

static void
tx_begin_commit_and_rollback(void)
{
	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	IS(tx_rollback(), TX_PROTOCOL_ERROR);
	IS(tx_begin(), TX_OK);
	IS(tx_begin(), TX_PROTOCOL_ERROR);
	IS(tx_close(), TX_PROTOCOL_ERROR);
	IS(tx_open(), TX_OK);				/* without effect */
	put("Q", "kept");
	IS(tx_commit(), TX_OK);
	IS(tx_info(NULL), 0);
	IS(tx_begin(), TX_OK);
	CU_ASSERT_TRUE(takes("kept"));
	put("Q", "dropped");
	IS(tx_rollback(), TX_OK);
	IS(tx_info(NULL), 0);
	CU_ASSERT_TRUE(takes("kept"));
	CU_ASSERT_TRUE(takes(NULL));
	IS(tx_begin(), TX_OK);				/* without work */
	IS(tx_commit(), TX_OK);
	IS(tx_begin(), TX_OK);
	IS(tx_rollback(), TX_OK);
	IS(tx_close(), TX_OK);
}

static void
tx_info_tells(void)
{
	TXINFO info, other;

	given_fresh_program();
	IS(tx_open(), TX_OK);
	memset(&info, 0x5a, sizeof info);
	IS(tx_info(&info), 0);
	CU_ASSERT_EQUAL(info.xid.formatID, -1);
	CU_ASSERT_EQUAL(info.when_return, TX_COMMIT_COMPLETED);
	CU_ASSERT_EQUAL(info.transaction_control, TX_UNCHAINED);
	CU_ASSERT_EQUAL(info.transaction_timeout, 0);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ACTIVE);
	IS(tx_set_transaction_timeout(12), TX_OK);
	IS(tx_begin(), TX_OK);
	memset(&info, 0x5a, sizeof info);
	IS(tx_info(&info), 1);
	IS(tx_info(NULL), 1);
	CU_ASSERT_NOT_EQUAL(info.xid.formatID, -1);
	CU_ASSERT_TRUE(info.xid.gtrid_length > 0 && info.xid.gtrid_length <= MAXGTRIDSIZE);
	CU_ASSERT_TRUE(info.xid.bqual_length >= 0 && info.xid.bqual_length <= MAXBQUALSIZE);
	CU_ASSERT_EQUAL(info.transaction_timeout, 12);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ACTIVE);
	IS(tx_info(&other), 1);
	CU_ASSERT_EQUAL(memcmp(&info.xid, &other.xid, sizeof info.xid), 0);
	IS(tx_rollback(), TX_OK);
	IS(tx_begin(), TX_OK);
	IS(tx_info(&other), 1);
	CU_ASSERT_NOT_EQUAL(memcmp(&info.xid, &other.xid, sizeof info.xid), 0);
	IS(tx_rollback(), TX_OK);
}

static void	/* Rolled back only: by a failure, or by time. */
tx_info_tells_why_it_can_only_be_rolled_back(void)
{
	TXINFO info;

	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_begin(), TX_OK);
	CU_ASSERT_EQUAL(ask("S", "fail"), TPESVCFAIL);
	IS(tx_info(&info), 1);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ROLLBACK_ONLY);
	IS(tx_commit(), TX_ROLLBACK);
	IS(tx_info(NULL), 0);
	IS(tx_set_transaction_timeout(1), TX_OK);
	IS(tx_begin(), TX_OK);
	put("Q", "too late");
	do {
		nap_ms(20);
		IS(tx_info(&info), 1);
	} while (info.transaction_state == TX_ACTIVE);
	CU_ASSERT_EQUAL(info.transaction_state, TX_TIMEOUT_ROLLBACK_ONLY);
	CU_ASSERT_EQUAL(ask("S", "lev"), TPETIME);
	IS(tx_commit(), TX_ROLLBACK);
	CU_ASSERT_TRUE(takes(NULL));
}

static void
settings_take_their_values_and_no_others(void)
{
	TXINFO info;

	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_set_commit_return(TX_COMMIT_DECISION_LOGGED), TX_OK);
	IS(tx_set_commit_return(2), TX_EINVAL);
	IS(tx_set_commit_return(-1), TX_EINVAL);
	IS(tx_set_transaction_control(2), TX_EINVAL);
	IS(tx_set_transaction_control(-1), TX_EINVAL);
	IS(tx_set_transaction_timeout(-1), TX_EINVAL);
	IS(tx_set_transaction_timeout(0x7fffffffffffffffL), TX_OK);
	IS(tx_begin(), TX_OK);
	IS(tx_info(&info), 1);
	CU_ASSERT_EQUAL(info.when_return, TX_COMMIT_DECISION_LOGGED);
	CU_ASSERT_EQUAL(info.transaction_timeout, 0x7fffffffffffffffL);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ACTIVE);
	CU_ASSERT_EQUAL(tpscmt(TP_CMT_LOGGED), TP_CMT_LOGGED);	/* the same setting */
	IS(tx_set_transaction_timeout(1), TX_OK);		/* for those that begin later */
	put("Q", "logged");
	IS(tx_commit(), TX_OK);
	CU_ASSERT_TRUE(takes("logged"));
	IS(tx_set_commit_return(TX_COMMIT_COMPLETED), TX_OK);
	IS(tx_set_transaction_timeout(7), TX_OK);
	IS(tx_set_transaction_control(TX_CHAINED), TX_OK);
	IS(tx_close(), TX_OK);
	IS(tx_open(), TX_OK);
	IS(tx_info(&info), 0);
	CU_ASSERT_EQUAL(info.transaction_control, TX_UNCHAINED);	/* as after the first tx_open() */
	CU_ASSERT_EQUAL(info.transaction_timeout, 7);			/* stays until it is changed */
	IS(tx_set_transaction_timeout(0), TX_OK);
}

static void
chained_each_end_begins_the_next(void)
{
	TXINFO first, second;

	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_set_transaction_control(TX_CHAINED), TX_OK);
	IS(tx_info(NULL), 0);				/* it does not begin the first one */
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	IS(tx_begin(), TX_OK);
	IS(tx_info(&first), 1);
	put("Q", "one");
	IS(tx_commit(), TX_OK);
	IS(tx_info(&second), 1);
	CU_ASSERT_NOT_EQUAL(memcmp(&first.xid, &second.xid, sizeof first.xid), 0);
	IS(tx_begin(), TX_PROTOCOL_ERROR);
	IS(tx_close(), TX_PROTOCOL_ERROR);
	CU_ASSERT_TRUE(takes("one"));
	IS(tx_rollback(), TX_OK);
	IS(tx_info(NULL), 1);
	CU_ASSERT_EQUAL(ask("S", "fail"), TPESVCFAIL);
	IS(tx_commit(), TX_ROLLBACK);
	IS(tx_info(&second), 1);
	CU_ASSERT_EQUAL(second.transaction_state, TX_ACTIVE);
	CU_ASSERT_TRUE(takes("one"));
	IS(tx_set_transaction_control(TX_UNCHAINED), TX_OK);
	IS(tx_commit(), TX_OK);
	IS(tx_info(NULL), 0);
	CU_ASSERT_TRUE(takes(NULL));
	IS(tx_close(), TX_OK);
}

static void	/* Replies that are outstanding: not now, and it stays as it is. */
outstanding_replies_are_a_protocol_error(void)
{
	char *b = tpalloc("STRING", NULL, 100);
	long len;
	int cd;

	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_begin(), TX_OK);
	strcpy(b, "lev");
	CU_ASSERT_TRUE((cd = tpacall("S", b, 0, 0)) > 0);
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	IS(tx_info(NULL), 1);
	GIVEN_CALL_OK(tpgetrply(&cd, &b, &len, 0));
	IS(tx_commit(), TX_OK);
	IS(tx_begin(), TX_OK);
	strcpy(b, "lev");
	CU_ASSERT_TRUE((cd = tpacall("S", b, 0, 0)) > 0);
	IS(tx_rollback(), TX_OK);
	REFUSED(tpgetrply(&cd, &b, &len, 0), TPEBADDESC);
	tpfree(b);
}

/* --- beside tpbegin() and its relatives --- */

static void
what_one_began_the_other_does_not_end(void)
{
	given_fresh_program();
	IS(tx_open(), TX_OK);
	GIVEN_CALL_OK(tpbegin(8, 0));
	IS(tx_begin(), TX_OUTSIDE);
	IS(tx_info(NULL), 1);
	IS(tx_commit(), TX_PROTOCOL_ERROR);
	IS(tx_rollback(), TX_PROTOCOL_ERROR);
	IS(tx_close(), TX_PROTOCOL_ERROR);
	put("Q", "tp");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("tp"));
	IS(tx_begin(), TX_OK);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	REFUSED(tpbegin(8, 0), TPEPROTO);
	REFUSED(tpcommit(0), TPEPROTO);
	REFUSED(tpabort(0), TPEPROTO);
	REFUSED(tpclose(), TPEPROTO);
	put("Q", "tx");
	IS(tx_commit(), TX_OK);
	CU_ASSERT_TRUE(takes("tx"));
}

static void	/* Programs of queues alone have no resource manager: nothing to do, nothing to fail. */
tpopen_and_tpclose_need_no_resource_manager(void)
{
	given_fresh_program();
	GIVEN_CALL_OK(tpopen());			/* joins the application, like most calls */
	GIVEN_CALL_OK(tpopen());
	GIVEN_CALL_OK(tpbegin(8, 0));
	GIVEN_CALL_OK(tpopen());
	REFUSED(tpclose(), TPEPROTO);
	put("Q", "a");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("a"));
	IS(tx_begin(), TX_OK);				/* tpopen() opens for TX too */
	REFUSED(tpclose(), TPEPROTO);
	IS(tx_rollback(), TX_OK);
	GIVEN_CALL_OK(tpclose());
	GIVEN_CALL_OK(tpclose());
	IS(tx_begin(), TX_PROTOCOL_ERROR);
	GIVEN_CALL_OK(tpbegin(8, 0));			/* needs no tpopen() */
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpclose());
}

static void
leaving_rolls_back(void)
{
	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_begin(), TX_OK);
	put("Q", "left");
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_TRUE(takes(NULL));
	IS(tx_begin(), TX_PROTOCOL_ERROR);		/* it has joined anew, and is not open */
}

/* --- in services --- */

static void
a_service_has_tx_too(void)
{
	given_fresh_program();
	/* its own: the library's tpsvrinit() has opened */
	CU_ASSERT_EQUAL(ask("S", "txinfo; txbegin; put QSPACE Q own; txinfo; txcommit; txbegin; put QSPACE Q no; txrollback; txinfo"), 0);
	CU_ASSERT_STRING_EQUAL(said, "0 0 0 1 0 0 0 0 0");
	CU_ASSERT_TRUE(takes("own"));
	CU_ASSERT_TRUE(takes(NULL));
	CU_ASSERT_EQUAL(ask("S", "txbegin; put QSPACE Q open"), TPESVCERR);
	CU_ASSERT_TRUE(takes(NULL));
	/* its caller's: not the service's to begin or end */
	IS(tx_open(), TX_OK);
	IS(tx_begin(), TX_OK);
	CU_ASSERT_EQUAL(ask("S", "tran; txinfo; txbegin; txcommit; txrollback; commit; txclose; put QSPACE Q mine"), 0);
	CU_ASSERT_STRING_EQUAL(said, "1 1 -5 -5 -5 9 -5 0");
	IS(tx_commit(), TX_OK);
	CU_ASSERT_TRUE(takes("mine"));
	GIVEN_CALL_OK(tpbegin(8, 0));
	CU_ASSERT_EQUAL(ask("S", "txinfo; txbegin; txcommit"), 0);
	CU_ASSERT_STRING_EQUAL(said, "1 -5 -5");
	GIVEN_CALL_OK(tpcommit(0));
	/* AUTOTRAN's */
	CU_ASSERT_EQUAL(ask("AUTO", "txinfo; txbegin; txcommit; txrollback; put QSPACE Q auto"), 0);
	CU_ASSERT_STRING_EQUAL(said, "1 -5 -5 -5 0");
	CU_ASSERT_TRUE(takes("auto"));
}

static void	/* A service that fails in a transaction of TX: rolled back, also when that is said by the program. */
a_service_that_fails_is_a_rollback(void)
{
	given_fresh_program();
	IS(tx_open(), TX_OK);
	IS(tx_begin(), TX_OK);
	put("Q", "a");
	CU_ASSERT_EQUAL(ask("S", "die"), TPESVCERR);
	IS(tx_commit(), TX_ROLLBACK);
	IS(tx_begin(), TX_OK);
	put("Q", "a");
	CU_ASSERT_EQUAL(ask("S", "fail"), TPESVCFAIL);
	IS(tx_rollback(), TX_OK);
	CU_ASSERT_TRUE(takes(NULL));
}

static void
without_an_application_nothing_opens(void)
{
	given_fresh_program();
	given_shutdown(g);
	IS(tx_open(), TX_ERROR);
	given_boot(g);
	IS(tx_open(), TX_OK);
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
		UNIT(nothing_goes_before_tx_open),
		UNIT(the_values_are_those_of_old),
		UNIT(tx_begin_commit_and_rollback),
		UNIT(tx_info_tells),
		UNIT(tx_info_tells_why_it_can_only_be_rolled_back),
		UNIT(settings_take_their_values_and_no_others),
		UNIT(chained_each_end_begins_the_next),
		UNIT(outstanding_replies_are_a_protocol_error),
		UNIT(what_one_began_the_other_does_not_end),
		UNIT(tpopen_and_tpclose_need_no_resource_manager),
		UNIT(leaving_rolls_back),
		UNIT(a_service_has_tx_too),
		UNIT(a_service_that_fails_is_a_rollback),
		UNIT(without_an_application_nothing_opens),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: TX", tests, UNIT_COUNT(tests));
}
