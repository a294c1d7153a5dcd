/*
 * TPQCTL into a request and out of a reply; what a call does when the answer is late, lost, or no.
 */
#include <sys/wait.h>

#include "fake_application.h"

static char *
string_buffer(const char *text)
{
	char *b = tpalloc("STRING", NULL, (long)strlen(text) + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	memcpy(b, text, strlen(text) + 1);
	return b;
}

static bool
all_bytes(const void *p, size_t n, int value)
{
	const unsigned char *b = p;

	while (n-- > 0)
		if (*b++ != value)
			return false;
	return true;
}

static void	/* A member without its flag is garbage to us, urcode is the exception. */
members_without_their_flag_are_not_read(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("hello");
	TPQCTL ctl;

	memset(&ctl, 0xa5, sizeof ctl);
	ctl.flags = TPNOFLAGS;
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, b, 0, 0), 0);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	CU_ASSERT_EQUAL(ctl.flags, 0);
	CU_ASSERT_EQUAL(seen(f)->enqueue.flags, 0);
	CU_ASSERT_TRUE(all_bytes(seen(f)->enqueue.msgid, sizeof seen(f)->enqueue.msgid, 0));
	CU_ASSERT_TRUE(all_bytes(seen(f)->enqueue.corrid, sizeof seen(f)->enqueue.corrid, 0));
	CU_ASSERT_STRING_EQUAL(seen(f)->enqueue.replyqueue, "");
	CU_ASSERT_STRING_EQUAL(seen(f)->enqueue.failurequeue, "");
	CU_ASSERT_EQUAL(seen(f)->enqueue.deq_time | seen(f)->enqueue.exp_time | seen(f)->enqueue.priority, 0);
	CU_ASSERT_EQUAL(seen(f)->enqueue.delivery_qos | seen(f)->enqueue.reply_qos, 0);
	CU_ASSERT_EQUAL(seen(f)->enqueue.urcode, (int64_t)0xa5a5a5a5a5a5a5a5u);
	CU_ASSERT_STRING_EQUAL(seen(f)->enqueue.queue, "Q");
	CU_ASSERT_STRING_EQUAL(seen(f)->enqueue.type, "STRING");
	CU_ASSERT_EQUAL(seen(f)->enqueue.cltid[1], 22);
	CU_ASSERT_EQUAL(seen(f)->body_len, 6);
	CU_ASSERT_EQUAL(seen(f)->enqueue.tx.gtrid_len, 0);
	tpfree(b);
	fake_done(f);
}

static void
members_with_their_flag_arrive(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("hello");
	TPQCTL ctl;

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY | TPQTIME_REL | TPQEXPTIME_ABS | TPQDELIVERYQOS |
		    TPQREPLYQOS | TPQBEFOREMSGID | TPQMSGID;
	memset(ctl.corrid, 'c', sizeof ctl.corrid);
	memset(ctl.msgid, 'm', sizeof ctl.msgid);
	memset(ctl.replyqueue, 'r', sizeof ctl.replyqueue);	/* no end: 127 characters count */
	strcpy(ctl.failurequeue, "FAIL");
	ctl.priority = 70;
	ctl.deq_time = 5;
	ctl.exp_time = 99;
	ctl.delivery_qos = TPQQOSPERSISTENT;
	ctl.reply_qos = TPQQOSNONPERSISTENT;
	FAKE(f, memset(f->qreply.msgid, 'x', sizeof f->qreply.msgid));
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, b, 0, 0), 0);
	CU_ASSERT_TRUE(all_bytes(seen(f)->enqueue.corrid, 32, 'c'));
	CU_ASSERT_TRUE(all_bytes(seen(f)->enqueue.msgid, 32, 'm'));
	CU_ASSERT_EQUAL(strlen(seen(f)->enqueue.replyqueue), 127);
	CU_ASSERT_STRING_EQUAL(seen(f)->enqueue.failurequeue, "FAIL");
	CU_ASSERT_EQUAL(seen(f)->enqueue.priority, 70);
	CU_ASSERT_EQUAL(seen(f)->enqueue.deq_time, 5);
	CU_ASSERT_EQUAL(seen(f)->enqueue.exp_time, 99);
	CU_ASSERT_EQUAL(seen(f)->enqueue.delivery_qos, TPQQOSPERSISTENT);
	CU_ASSERT_EQUAL(seen(f)->enqueue.reply_qos, TPQQOSNONPERSISTENT);
	CU_ASSERT_TRUE(all_bytes(ctl.msgid, 32, 'x'));
	tpfree(b);
	fake_done(f);
}

static void	/* After a dequeue the flags tell which members are valid. */
flags_of_what_the_sender_did_not_supply_are_cleared(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("CARRAY", NULL, 10);
	long len = -1;
	TPQCTL ctl;

	memset(&ctl, 0xa5, sizeof ctl);
	ctl.flags = TPQMSGID | TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQTOP | TPQTIME_ABS |
		    TPQEXPTIME_NONE | TPQWAIT;
	FAKE(f, f->answer = "a letter"; f->answer_len = 9; strcpy(f->qreply.type, "STRING");
	     f->qreply.flags = TPQREPLYQ | TPQDELIVERYQOS; strcpy(f->qreply.replyqueue, "BACK");
	     memset(f->qreply.msgid, 7, 32); f->qreply.urcode = 17; f->qreply.appkey = 3; f->qreply.cltid[0] = 5);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", &ctl, &b, &len, 0), 0);
	CU_ASSERT_EQUAL(ctl.flags, TPQMSGID | TPQREPLYQ | TPQWAIT);
	CU_ASSERT_TRUE(all_bytes(ctl.msgid, 32, 7));
	CU_ASSERT_STRING_EQUAL(ctl.replyqueue, "BACK");
	CU_ASSERT_TRUE(all_bytes(ctl.corrid, 32, 0xa5));
	CU_ASSERT_TRUE(all_bytes(&ctl.priority, sizeof ctl.priority, 0xa5));
	CU_ASSERT_TRUE(all_bytes(&ctl.delivery_qos, sizeof ctl.delivery_qos, 0xa5)); /* supplied, but not asked for */
	CU_ASSERT_EQUAL(ctl.urcode, 17);
	CU_ASSERT_EQUAL(ctl.appkey, 3);
	CU_ASSERT_EQUAL(ctl.cltid.clientdata[0], 5);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	CU_ASSERT_EQUAL(len, 9);
	CU_ASSERT_STRING_EQUAL(b, "a letter");
	tpfree(b);
	fake_done(f);
}

static void	/* The buffer takes the type of what came, and grows. */
buffer_is_retyped_and_grown(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("CARRAY", NULL, 4), type[9] = "", subtype[17] = "";
	char big[5000];
	long len;

	memset(big, 'z', sizeof big);
	big[sizeof big - 1] = '\0';
	FAKE(f, f->answer = big; f->answer_len = sizeof big; strcpy(f->qreply.type, "STRING"));
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", NULL, &b, &len, 0), 0);
	CU_ASSERT_EQUAL(len, 5000);
	CU_ASSERT_TRUE(tptypes(b, type, subtype) >= 5000);
	CU_ASSERT_STRING_EQUAL(type, "STRING");
	CU_ASSERT_STRING_EQUAL(b, big);
	tpfree(b);
	fake_done(f);
}

static void
message_without_data_leaves_the_buffer_alone(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("as it was"), *same = b;
	long len = 99;

	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, NULL, 12345, 0), 0);
	CU_ASSERT_EQUAL(seen(f)->enqueue.has_body, 0);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", NULL, &b, &len, 0), 0);
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_PTR_EQUAL(b, same);
	CU_ASSERT_STRING_EQUAL(b, "as it was");
	tpfree(b);
	fake_done(f);
}

static void
diagnostic_comes_back_and_flags_stay_on_failure(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("STRING", NULL, 0);
	long len = 7;
	TPQCTL ctl;

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQCORRID | TPQMSGID;
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMENOMSG);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", &ctl, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMENOMSG);
	CU_ASSERT_EQUAL(ctl.flags, TPQCORRID | TPQMSGID);
	CU_ASSERT_EQUAL(len, 7);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", NULL, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC);
	tpfree(b);
	fake_done(f);
}

static void
bad_arguments_are_refused_before_anything_is_sent(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("CARRAY", NULL, 10), other[10] = "";
	char *none = NULL, *foreign = other;
	long len;

#define REFUSED(call, code) do { CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, code); } while (0)
	REFUSED(tpenqueue(NULL, "Q", NULL, b, 1, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", NULL, NULL, b, 1, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, other, 1, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, b, 11, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, b, -1, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, b, 1, TPGETANY), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", NULL, NULL, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", NULL, &none, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", NULL, &foreign, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", NULL, &b, NULL, 0), TPEINVAL);
	REFUSED(tpenqueue("NOSUCH", "Q", NULL, b, 1, 0), TPENOENT);
	CU_ASSERT_EQUAL(seen(f)->n_enqueue + seen(f)->n_dequeue, 0);
	tpfree(b);
	fake_done(f);
}

static void	/* A waiting dequeue that timed out, then another call: each gets its own answer. */
late_reply_is_not_given_to_the_next_call(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("STRING", NULL, 0);
	long len = 0;
	TPQCTL ctl;
	struct link_peer peer;
	uint64_t reqid;

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQWAIT;
	FAKE(f, f->silent = true);
	tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", &ctl, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(fake_wait(f, &f->n_cancel, 1));
	FAKE(f, f->silent = false; peer = f->kept_peer; reqid = f->kept_reqid; f->answer = "late"; f->answer_len = 5;
	     strcpy(f->qreply.type, "STRING"); fake_answer(f, &peer, WIRE_DEQUEUE, reqid); f->answer = "right";
	     f->answer_len = 6);
	strcpy(b, "ask");
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", NULL, &b, &len, 0), 0);
	CU_ASSERT_STRING_EQUAL(b, "right");
	tpfree(b);
	fake_done(f);
}

static void	/* Without a transaction nobody can know; with one, it is rollback-only. */
server_lost_after_the_request_is_a_timeout(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");

	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);	/* back again, found again */
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	tpfree(b);
	fake_done(f);
}

static void
peek_is_sent_again_when_the_server_was_lost(void)
{
	struct fake *f = fake_application();
	char *b = tpalloc("STRING", NULL, 0);
	long len;
	TPQCTL ctl;

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQPEEK;
	FAKE(f, f->die_after_request = true; f->answer = "seen"; f->answer_len = 5; strcpy(f->qreply.type, "STRING"));
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "Q", &ctl, &b, &len, 0), 0);
	CU_ASSERT_STRING_EQUAL(b, "seen");
	CU_ASSERT_EQUAL(seen(f)->n_dequeue, 2);
	tpfree(b);
	fake_done(f);
}

static void
service_being_started_is_waited_for_until_the_blocking_time(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");

	tpsblktime(250, TPBLK_NEXT | TPBLK_MILLISECOND);
	CU_ASSERT_EQUAL(tpenqueue("BOOTING", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(seen(f)->n_resolve >= 2);
	tpfree(b);
	fake_done(f);
}

static void
commit_goes_to_the_group_that_joined(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");

	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(tpbegin(30, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	FAKE(f, strcpy(f->qreply.group, "QUE1"));
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_TRUE(seen(f)->enqueue.tx.gtrid_len > 0);
	FAKE(f, CU_ASSERT_TRUE(f->enqueue.tx.timeout_ms > 20000 && f->enqueue.tx.timeout_ms <= 30000));
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, TPNOTRAN), 0);
	CU_ASSERT_EQUAL(seen(f)->enqueue.tx.gtrid_len, 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 1);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_COMMIT);
	CU_ASSERT_STRING_EQUAL(seen(f)->txend.groups.name[0], "QUE1");
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);		/* nobody joined: nothing is sent */
	CU_ASSERT_EQUAL(seen(f)->n_txend, 1);
	tpfree(b);
	fake_done(f);
}

static void
doomed_transaction_is_rolled_back_by_commit(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");
	TPQCTL ctl;
	static const long spares[] = { QMENOMSG, QMEINVAL, QMEBADQUEUE, QMEBADMSGID, QMENOSPACE };
	size_t i;

	memset(&ctl, 0, sizeof ctl);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	FAKE(f, strcpy(f->qreply.group, "QUE1"); f->qreply.error = TPEDIAGNOSTIC);
	for (i = 0; i < sizeof spares / sizeof spares[0]; i++) {
		FAKE(f, f->qreply.diagnostic = (int32_t)spares[i]);
		CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, b, 0, 0), -1);
		CU_ASSERT_EQUAL(ctl.diagnostic, spares[i]);
	}
	FAKE(f, f->qreply.diagnostic = QMEABORTED);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);
	tpfree(b);
	fake_done(f);
}

static void	/* Daemons down, an enqueue, tpterm: an error in bounded time and no hanging. */
leaving_does_not_hang_when_the_servers_are_gone(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");
	int64_t began;

	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	fake_kill(f);
	tpsblktime(500, TPBLK_ALL | TPBLK_MILLISECOND);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_TRUE(tperrno == TPETIME || tperrno == TPESYSTEM);
	began = clock_mono_us();
	CU_ASSERT_EQUAL(tpterm(), 0);
	CU_ASSERT_TRUE(clock_mono_us() - began < 3000000);
	CU_ASSERT_EQUAL(tpterm(), 0);
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	tpfree(b);
	fake_done(f);
}

/* A child that joined, learned that its servers are gone, and ends in the given way. */
static void
child_leaves(int told_fd, int may_go_fd, bool in_thread_end)
{
	char *b = string_buffer("x"), c = 'j';

	if (tpbegin(30, 0) != 0 || tpenqueue("QSPACE", "Q", NULL, b, 0, 0) != 0)
		_exit(2);
	if (write(told_fd, &c, 1) != 1 || read(may_go_fd, &c, 1) != 1)
		_exit(3);
	alarm(20);
	if (in_thread_end)
		tpterm();
#ifdef TEST_SANFLAGS		/* their own work at exit does not expect a child of threads */
	tpterm();
	_exit(0);
#endif
	exit(0);		/* with a transaction open that nobody can be told of */
}

static void	/* Neither does a program that just exits. */
exit_does_not_hang_when_the_servers_are_gone(void)
{
	int told[2], may_go[2], status = -1;
	bool tpterm_first;
	struct fake *f;
	int64_t began;
	char c = 'g';
	pid_t pid;

	for (tpterm_first = false;; tpterm_first = true) {
		CU_ASSERT_EQUAL_FATAL(pipe(told) + pipe(may_go), 0);
		f = fake_application();
		FAKE(f, strcpy(f->qreply.group, "QUE1"));
		fflush(stdout);
		if ((pid = fork()) == 0)
			child_leaves(told[1], may_go[0], tpterm_first);
		CU_ASSERT_EQUAL(read(told[0], &c, 1), 1);
		fake_kill(f);
		CU_ASSERT_EQUAL(write(may_go[1], &c, 1), 1);
		began = clock_mono_us();
		(void)began;
		waitpid(pid, &status, 0);
#ifndef TEST_SANFLAGS		/* which have an end of their own */
		CU_ASSERT_EQUAL(status, 0);
		CU_ASSERT_TRUE(clock_mono_us() - began < 3000000);
#endif
		fake_done(f);
		close(told[0]);
		close(told[1]);
		close(may_go[0]);
		close(may_go[1]);
		if (tpterm_first)
			return;
	}
}

static void
configuration_that_cannot_be_read_is_a_system_error(void)
{
	char *b = string_buffer("x");

	setenv("TUXCONFIG", "/nonexistent/tuxconfig", 1);
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	unsetenv("TUXCONFIG");
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	tpfree(b);
}

static void
calls_come_back_by_descriptor_or_as_they_are_answered(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");
	long len;
	int first, second, any = 0;

	FAKE(f, f->answer = "DONE"; f->answer_len = 5; strcpy(f->reply.type, "STRING"); f->reply.urcode = 42);
	CU_ASSERT_EQUAL(tpcall("TOUPPER", b, 0, &b, &len, 0), 0);
	CU_ASSERT_STRING_EQUAL(b, "DONE");
	CU_ASSERT_EQUAL(tpurcode, 42);
	first = tpacall("TOUPPER", b, 0, 0);
	second = tpacall("TOUPPER", b, 0, 0);
	CU_ASSERT_TRUE(first > 0 && second > 0 && first != second);
	CU_ASSERT_EQUAL(tpgetrply(&second, &b, &len, 0), 0);
	CU_ASSERT_EQUAL(tpgetrply(&any, &b, &len, TPGETANY), 0);
	CU_ASSERT_EQUAL(any, first);
	CU_ASSERT_EQUAL(tpgetrply(&any, &b, &len, TPGETANY), -1);
	CU_ASSERT_EQUAL(tperrno, TPEBADDESC);
	FAKE(f, f->silent = true);
	first = tpacall("TOUPPER", b, 0, 0);
	CU_ASSERT_EQUAL(tpgetrply(&first, &b, &len, TPNOBLOCK), -1);
	CU_ASSERT_EQUAL(tperrno, TPEBLOCK);
	CU_ASSERT_EQUAL(tpcancel(first), 0);
	CU_ASSERT_EQUAL(tpcancel(first), -1);
	CU_ASSERT_EQUAL(tperrno, TPEBADDESC);
	CU_ASSERT_EQUAL(tpacall("TOUPPER", b, 0, TPNOREPLY), 0);
	FAKE(f, f->silent = false; f->reply.error = TPESVCFAIL);
	CU_ASSERT_EQUAL(tpcall("TOUPPER", b, 0, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCFAIL);
	CU_ASSERT_EQUAL(len, 5);
	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(tpcall("TOUPPER", b, 0, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	tpfree(b);
	fake_done(f);
}

static void
fifty_calls_may_be_open(void)
{
	struct fake *f = fake_application();
	char *b = string_buffer("x");
	int i;

	FAKE(f, f->silent = true);
	for (i = 0; i < 50; i++)
		CU_ASSERT_TRUE(tpacall("TOUPPER", b, 0, 0) > 0);
	CU_ASSERT_EQUAL(tpacall("TOUPPER", b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPELIMIT);
	tpfree(b);
	fake_done(f);
}

struct waiter { pthread_t thread; TPCONTEXT_T context; int rc, err; };

static void *
wait_in_a_context(void *arg)
{
	struct waiter *w = arg;
	char *b = tpalloc("STRING", NULL, 0);
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, 0);
	TPQCTL ctl;
	long len;

	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == 0) {
		tpgetctxt(&w->context, 0);
		memset(&ctl, 0, sizeof ctl);
		ctl.flags = TPQWAIT;
		w->rc = tpdequeue("QSPACE", "Q", &ctl, &b, &len, TPNOTIME);
		w->err = tperrno;
		tpterm();
	}
	tpfree((char *)init);
	tpfree(b);
	return NULL;
}

static void	/* One thread waits; another one, in a context of its own, goes on. */
contexts_do_not_hold_each_other_up(void)
{
	struct fake *f = fake_application();
	struct waiter w = { .rc = -2 };
	char *b = string_buffer("x");
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, 0);
	TPCONTEXT_T mine = 0;

	CU_ASSERT_EQUAL(tpgetctxt(&mine, 0), 0);
	CU_ASSERT_EQUAL(mine, TPNULLCONTEXT);
	init->flags = TPMULTICONTEXTS;
	CU_ASSERT_EQUAL(tpinit(init), 0);
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	FAKE(f, f->silent = true);
	pthread_create(&w.thread, NULL, wait_in_a_context, &w);
	CU_ASSERT_TRUE(fake_wait(f, &f->n_dequeue, 1));
	FAKE(f, f->silent = false);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	FAKE(f, fake_answer(f, &f->kept_peer, WIRE_DEQUEUE, f->kept_reqid));
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.rc, 0);
	CU_ASSERT_EQUAL(tpgetctxt(&mine, 0), 0);
	CU_ASSERT_TRUE(mine > 0 && w.context > 0 && mine != w.context);
	CU_ASSERT_EQUAL(tpsetctxt(TPNULLCONTEXT, 0), 0);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	CU_ASSERT_EQUAL(tpsetctxt(w.context, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_EQUAL(tpsetctxt(mine, 0), 0);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_join, 2);
	tpfree((char *)init);
	tpfree(b);
	fake_done(f);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(members_without_their_flag_are_not_read),
		UNIT(members_with_their_flag_arrive),
		UNIT(flags_of_what_the_sender_did_not_supply_are_cleared),
		UNIT(buffer_is_retyped_and_grown),
		UNIT(message_without_data_leaves_the_buffer_alone),
		UNIT(diagnostic_comes_back_and_flags_stay_on_failure),
		UNIT(bad_arguments_are_refused_before_anything_is_sent),
		UNIT(late_reply_is_not_given_to_the_next_call),
		UNIT(server_lost_after_the_request_is_a_timeout),
		UNIT(peek_is_sent_again_when_the_server_was_lost),
		UNIT(service_being_started_is_waited_for_until_the_blocking_time),
		UNIT(commit_goes_to_the_group_that_joined),
		UNIT(doomed_transaction_is_rolled_back_by_commit),
		UNIT(leaving_does_not_hang_when_the_servers_are_gone),
		UNIT(exit_does_not_hang_when_the_servers_are_gone),
		UNIT(configuration_that_cannot_be_read_is_a_system_error),
		UNIT(calls_come_back_by_descriptor_or_as_they_are_answered),
		UNIT(fifty_calls_may_be_open),
		UNIT(contexts_do_not_hold_each_other_up),
	};

	setenv("ULOGPFX", "/dev/null/none", 1);	/* what is logged here is meant to fail */
	return unit_run("libatmiq: requests and replies", tests, UNIT_COUNT(tests));
}
