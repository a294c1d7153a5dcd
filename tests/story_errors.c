/*
 * story_errors - each way in which tpenqueue and tpdequeue can fail: api 1.4 (diagnostics), 2.2 (call flags), 2.9 (tperrno), and
 * what a failure leaves of the caller's transaction (2.6).
 *
 * One system serves all the tests of this file.  TMQUEUE is stopped (SIGSTOP) where a caller is to find it not answering.
 */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static struct given *g;
static char *data;
static long len;

static void
given_counter(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space = "12000 20 4 50 30 ERRQ n 16", .tmqueue =
		    "RESTART=Y GRACE=0 MAXGEN=20 CLOPT=\"-s QSPACE:TMQUEUE -- -t 1\"",
		    .server_source = "#include <atmi.h>\nvoid QUIET(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n",
		    .server_services = "-s QUIET",
		    .queues = "qcreate Q fifo top,msgid 5 0 100% 0% \"\"\nqcreate PLAIN fifo none 5 0 100% 0% \"\"\n" });
	if (data == NULL)
		data = tpalloc("STRING", NULL, 100);
	strcpy(data, "text");
}

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL((call), -1); \
	if (tperrno != (error)) \
		fprintf(stderr, "\n  %s: tperrno %d, %s\n", #call, tperrno, tpstrerror(tperrno)); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)
#define DIAGNOSED(call, want) do { \
	REFUSED(call, TPEDIAGNOSTIC); \
	if (ctl.diagnostic != (want)) \
		fprintf(stderr, "\n  %s: diagnostic %ld\n", #call, ctl.diagnostic); \
	CU_ASSERT_EQUAL(ctl.diagnostic, want); \
} while (0)

static TPQCTL
control(long flags)
{
	TPQCTL ctl;

	memset(&ctl, 0xA5, sizeof ctl);
	ctl.flags = flags;
	return ctl;
}

static int
enqueue(const char *queue, TPQCTL *ctl)
{
	strcpy(data, "text");
	return tpenqueue("QSPACE", (char *)queue, ctl, data, 0, 0);
}

static int
dequeue(const char *queue, TPQCTL *ctl)
{
	return tpdequeue("QSPACE", (char *)queue, ctl, &data, &len, 0);
}

static int
drain(const char *queue)
{
	char *text;
	int n = 0;

	while ((text = take(queue)) != NULL) {
		free(text);
		n++;
	}
	return n;
}

/* --- api 1.4: diagnostics --- */

/* api 1.4 QMEINVAL */
static void
flags_and_values_that_are_wrong(void)
{
	TPQCTL ctl;

	given_counter();
	ctl = control(TPQTOP);
	DIAGNOSED(enqueue("PLAIN", &ctl), QMEINVAL);		/* the queue takes nothing out of order */
	ctl = control(TPQBEFOREMSGID);
	DIAGNOSED(enqueue("PLAIN", &ctl), QMEINVAL);
	ctl = control(TPQPRIORITY);
	ctl.priority = 101;
	DIAGNOSED(enqueue("Q", &ctl), QMEINVAL);
	ctl.flags = TPQEXPTIME_REL;
	ctl.exp_time = -1;
	DIAGNOSED(enqueue("Q", &ctl), QMEINVAL);
	ctl.flags = TPQREPLYQOS;
	ctl.reply_qos = 8;
	DIAGNOSED(enqueue("Q", &ctl), QMEINVAL);
	CU_ASSERT_EQUAL(depth(g, "Q") + depth(g, "PLAIN"), 0);
}

/* api 1.4 QMEBADMSGID */
static void
an_identifier_that_names_no_message(void)
{
	TPQCTL ctl = control(TPQMSGID), gone;

	given_counter();
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	gone = ctl;
	gone.flags = TPQBEFOREMSGID;
	CU_ASSERT_EQUAL(take_diagnostic("Q"), 0);
	ctl = gone;
	DIAGNOSED(enqueue("Q", &ctl), QMEBADMSGID);
	ctl = gone;
	ctl.flags = TPQGETBYMSGID;				/* a proper one that is not there */
	DIAGNOSED(dequeue("Q", &ctl), QMENOMSG);
	ctl = control(TPQGETBYMSGID);				/* bytes that no space gave out */
	REFUSED(dequeue("Q", &ctl), TPEDIAGNOSTIC);
	CU_ASSERT_TRUE(ctl.diagnostic == QMENOMSG || ctl.diagnostic == QMEBADMSGID);
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
}

/* api 1.4 QMEBADQUEUE: unknown, without a name, deleted; with a wait at once */
static void
a_queue_that_is_not_there(void)
{
	TPQCTL ctl = control(TPNOFLAGS);

	given_counter();
	DIAGNOSED(enqueue("NOPE", &ctl), QMEBADQUEUE);
	DIAGNOSED(dequeue("NOPE", &ctl), QMEBADQUEUE);
	DIAGNOSED(enqueue("", &ctl), QMEBADQUEUE);
	DIAGNOSED(dequeue("", &ctl), QMEBADQUEUE);
	DIAGNOSED(enqueue("q", &ctl), QMEBADQUEUE);		/* api 2.1: letters count in either case */
	free(given_qmadmin(g, "qcreate BRIEF fifo none 0 0 100% 0% \"\"\n"));
	GIVEN_CALL_OK(enqueue("BRIEF", &ctl));
	CU_ASSERT_EQUAL(take_diagnostic("BRIEF"), 0);
	free(given_qmadmin(g, "qdestroy -p -y BRIEF\n"));
	DIAGNOSED(enqueue("BRIEF", &ctl), QMEBADQUEUE);
	ctl = control(TPQWAIT);
	DIAGNOSED(dequeue("BRIEF", &ctl), QMEBADQUEUE);
}

/* api 1.4 QMENOMSG, and not QMEINUSE of old managers: empty, held by another, not yet available */
static void
nothing_there_that_can_be_taken(void)
{
	TPQCTL ctl = control(TPNOFLAGS), held = control(TPQMSGID | TPQCORRID);

	given_counter();
	DIAGNOSED(dequeue("Q", &ctl), QMENOMSG);
	memset(held.corrid, 'h', TMCORRIDLEN);
	GIVEN_CALL_OK(enqueue("Q", &held));
	GIVEN_CALL_OK(tpbegin(60, 0));
	GIVEN_CALL_OK(dequeue("Q", &ctl));
	ctl = control(TPNOFLAGS);
	DIAGNOSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTRAN), QMENOMSG);
	ctl = held;
	ctl.flags = TPQGETBYMSGID;
	DIAGNOSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTRAN), QMENOMSG);
	ctl.flags = TPQGETBYCORRID;
	DIAGNOSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTRAN), QMENOMSG);
	GIVEN_CALL_OK(tpcommit(0));				/* and none of it has harmed the transaction */
	ctl = control(TPQTIME_REL);
	ctl.deq_time = 3600;
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	ctl = control(TPNOFLAGS);
	DIAGNOSED(dequeue("Q", &ctl), QMENOMSG);
	free(given_qmadmin(g, "qset Q\nqdeletemsg -y\n"));
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
}

/* api 1.4 QMENOSPACE: messages and transactions of the space; what was refused is not stored, and the rest goes on */
static void
a_space_that_is_full(void)
{
	TPQCTL ctl = control(TPNOFLAGS);
	TPTRANID open[4];
	int n;

	given_counter();
	for (n = 0; enqueue("Q", &ctl) != -1 && n < 100; n++)
		;
	CU_ASSERT_EQUAL(n, 30);
	DIAGNOSED(enqueue("Q", &ctl), QMENOSPACE);
	CU_ASSERT_EQUAL(drain("Q"), 30);			/* dequeue works on a full space */
	for (n = 0; n < 4; n++) {
		GIVEN_CALL_OK(tpbegin(60, 0));
		GIVEN_CALL_OK(enqueue("Q", &ctl));
		GIVEN_CALL_OK(tpsuspend(&open[n], 0));
	}
	GIVEN_CALL_OK(tpbegin(60, 0));
	DIAGNOSED(enqueue("Q", &ctl), QMENOSPACE);
	DIAGNOSED(dequeue("Q", &ctl), QMENOSPACE);
	GIVEN_CALL_OK(tpabort(0));
	for (n = 0; n < 4; n++) {
		GIVEN_CALL_OK(tpresume(&open[n], 0));
		GIVEN_CALL_OK(tpabort(0));
	}
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
}

/* api 1.4 QMEABORTED (= QMENOTA): the manager has undone the transaction; api 2.6 it is rollback-only then */
static void
a_transaction_that_the_manager_has_lost(void)
{
	TPQCTL ctl = control(TPNOFLAGS);
	pid_t before;

	given_counter();
	CU_ASSERT_EQUAL(QMENOTA, QMEABORTED);
	GIVEN_CALL_OK(tpbegin(60, 0));
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	before = given_pid(g, "TMQUEUE", 0);
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", before, 20));
	DIAGNOSED(enqueue("Q", &ctl), QMEABORTED);
	REFUSED(enqueue("Q", &ctl), TPETIME);			/* api 2.6 any call afterwards */
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	REFUSED(dequeue("Q", &ctl), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
}

/* api 1.4 QMETRAN, QMEINUSE, QMERELEASE, QMEINVHANDLE, QMESHARE, QMEBADRMID, QMENOTOPEN are names that old sources use, and are not
 * sent where old managers sent them: without a transaction, with TPNOTRAN, for what is held, for expiry and quality of service. */
static void
codes_of_old_managers_do_not_come(void)
{
	static const long never[] = { QMETRAN, QMEINUSE, QMERELEASE, QMEINVHANDLE, QMESHARE, QMEBADRMID, QMENOTOPEN };
	static const long flags[] = { TPNOFLAGS, TPQEXPTIME_REL, TPQEXPTIME_NONE, TPQDELIVERYQOS, TPQREPLYQOS };
	TPQCTL ctl;
	size_t i, k;

	given_counter();
	GIVEN_CALL_OK(tpbegin(60, 0));
	for (i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		ctl = control(flags[i]);
		ctl.exp_time = 600;
		ctl.delivery_qos = ctl.reply_qos = TPQQOSPERSISTENT;
		strcpy(data, "text");
		GIVEN_CALL_OK(tpenqueue("QSPACE", "Q", &ctl, data, 0, TPNOTRAN));
		CU_ASSERT_EQUAL(ctl.diagnostic, 0);
		ctl = control(TPNOFLAGS);
		GIVEN_CALL_OK(dequeue("Q", &ctl));		/* held by this transaction from here on */
		ctl = control(TPNOFLAGS);
		REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTRAN | TPNOBLOCK), TPEDIAGNOSTIC);
		for (k = 0; k < sizeof never / sizeof never[0]; k++)
			CU_ASSERT_NOT_EQUAL(ctl.diagnostic, never[k]);
		CU_ASSERT_EQUAL(ctl.diagnostic, QMENOMSG);
	}
	GIVEN_CALL_OK(tpcommit(0));
}

/* --- api 2.6: what a failure leaves of the transaction --- */

/* api 2.6 QMENOMSG, QMEINVAL, QMEBADQUEUE, QMEBADMSGID, TPEINVAL, TPENOENT spare it */
static void
a_refusal_spares_the_transaction(void)
{
	TPQCTL ctl = control(TPNOFLAGS);

	given_counter();
	GIVEN_CALL_OK(tpbegin(60, 0));
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	DIAGNOSED(dequeue("PLAIN", &ctl), QMENOMSG);
	ctl.flags = TPQTOP;
	DIAGNOSED(enqueue("PLAIN", &ctl), QMEINVAL);
	ctl.flags = TPNOFLAGS;
	DIAGNOSED(enqueue("NOPE", &ctl), QMEBADQUEUE);
	ctl.flags = TPQBEFOREMSGID;
	DIAGNOSED(enqueue("Q", &ctl), QMEBADMSGID);
	REFUSED(tpenqueue("QSPACE", "Q", NULL, (char *)"no buffer", 0, 0), TPEINVAL);
	REFUSED(tpenqueue("NOSPACE", "Q", NULL, data, 0, 0), TPENOENT);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(drain("Q"), 1);
}

/* api 2.6 TPEOTYPE: the message stays, and a transaction is rollback-only; api 2.9 TPEOTYPE leaves *data and *len */
static void
a_message_of_another_type_stays(void)
{
	char *bytes = tpalloc("CARRAY", NULL, 10), type[9] = "", *same = bytes;
	TPQCTL ctl = control(TPNOFLAGS);
	long n = 77;

	given_counter();
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	memcpy(bytes, "unchanged", 10);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &bytes, &n, TPNOCHANGE), TPEOTYPE);
	GIVEN_CALL_OK(tpbegin(60, 0));
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &bytes, &n, TPNOCHANGE), TPEOTYPE);
	REFUSED(dequeue("Q", &ctl), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_PTR_EQUAL(bytes, same);
	CU_ASSERT_EQUAL(n, 77);
	CU_ASSERT_STRING_EQUAL(bytes, "unchanged");
	tptypes(bytes, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "CARRAY");
	CU_ASSERT_EQUAL(drain("Q"), 1);
	tpfree(bytes);
}

/* api 2.6, 2.9 TPETIME: a transaction whose time is over */
static void
a_transaction_whose_time_is_over(void)
{
	TPQCTL ctl = control(TPNOFLAGS);
	double end = now_s() + 20;

	given_counter();
	GIVEN_CALL_OK(tpbegin(1, 0));
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	while ((enqueue("Q", &ctl) != -1 || tperrno == TPEDIAGNOSTIC) && now_s() < end)
		nap_ms(20);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, data, 0, TPNOTIME), TPETIME);	/* api 2.2 TPNOTIME: that of the transaction applies */
	REFUSED(tpcall("QUIET", data, 0, &data, &len, 0), TPETIME);
	REFUSED(tpacall("QUIET", data, 0, TPNOREPLY | TPNOTRAN), TPETIME);
	CU_ASSERT_EQUAL(tpacall("QUIET", data, 0, TPNOREPLY | TPNOTRAN | TPNOBLOCK), 0);	/* the only one that may */
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
}

/* --- api 2.9 --- */

/* api 2.9 TPEINVAL, TPENOENT, TPEITYPE */
static void
calls_that_cannot_be_right(void)
{
	char *nothing = NULL, foreign[8] = "foreign", *at = foreign, *init = tpalloc("TPINIT", NULL, TPINITNEED(0));
	char *bytes = tpalloc("CARRAY", NULL, 10);
	TPQCTL ctl = control(TPNOFLAGS);

	given_counter();
	REFUSED(tpenqueue(NULL, "Q", &ctl, data, 0, 0), TPEINVAL);
	REFUSED(tpenqueue("", "Q", &ctl, data, 0, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", NULL, &ctl, data, 0, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, foreign, 0, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, bytes, 11, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, bytes, -1, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, init, 0, 0), TPEINVAL);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, data, 0, TPNOCHANGE), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, NULL, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &nothing, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &at, &len, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, NULL, 0), TPEINVAL);
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPGETANY), TPEINVAL);
	REFUSED(tpenqueue("NOSPACE", "Q", &ctl, data, 0, 0), TPENOENT);
	REFUSED(tpdequeue("NOSPACE", "Q", &ctl, &data, &len, 0), TPENOENT);
	tpfree(init);
	tpfree(bytes);
}

/* api 2.1 ctl NULL: the failure is told, its diagnostic cannot be; api 2.9 TPEDIAGNOSTIC */
static void
without_a_control_structure_no_diagnostic(void)
{
	given_counter();
	REFUSED(tpdequeue("QSPACE", "Q", NULL, &data, &len, 0), TPEDIAGNOSTIC);
	REFUSED(tpenqueue("QSPACE", "NOPE", NULL, data, 0, 0), TPEDIAGNOSTIC);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "Q", NULL, data, 0, 0));
	GIVEN_CALL_OK(tpdequeue("QSPACE", "Q", NULL, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "text");
}

/* api 2.1, 5: a service that is no queue manager gives an error, and the server lives */
static void
a_service_that_is_no_queue_manager(void)
{
	TPQCTL ctl = control(TPNOFLAGS);
	pid_t server;

	given_counter();
	server = given_pid(g, "server", 0);
	GIVEN_CALL_OK(tpsblktime(1, TPBLK_NEXT));
	CU_ASSERT_EQUAL(tpenqueue("QUIET", "Q", &ctl, data, 0, 0), -1);
	CU_ASSERT_TRUE(tperrno == TPENOENT || tperrno == TPESYSTEM || tperrno == TPETIME);
	CU_ASSERT_EQUAL(given_pid(g, "server", 0), server);
	GIVEN_CALL_OK(tpcall("QUIET", data, 0, &data, &len, 0));
}

/* --- api 2.2: call flags, with a queue manager that does not answer --- */

static void
manager(int signal)
{
	CU_ASSERT_EQUAL(kill(given_pid(g, "TMQUEUE", 0), signal), 0);
}

static volatile sig_atomic_t alarms;

static void
on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void
alarm_in_ms(int ms, int again_ms)
{
	struct itimerval it = { .it_value = { ms / 1000, ms % 1000 * 1000 }, .it_interval.tv_usec = again_ms * 1000 };
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	alarms = 0;
	setitimer(ITIMER_REAL, &it, NULL);
}

/* The stored ones among those whose outcome is unknown are taken away; a connection that was lost is found again. */
static void
as_good_as_new(void)
{
	manager(SIGCONT);
	put("Q", "a sign of life");
	CU_ASSERT_TRUE(drain("Q") >= 1);
}

#define BIG (4L * 1024 * 1024)

/* api 2.2 TPNOBLOCK: a body larger than any buffer passes; full buffers give TPEBLOCK, and nothing is stored of it (2.9 TPEBLOCK) */
static void
full_buffers_are_not_waited_for(void)
{
	char *big = tpalloc("CARRAY", NULL, BIG), *back = tpalloc("CARRAY", NULL, 1);
	TPQCTL ctl = control(TPNOFLAGS);
	int n;

	given_counter();
	memset(big, 'b', (size_t)BIG);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "PLAIN", &ctl, big, BIG, TPNOBLOCK));
	GIVEN_CALL_OK(tpdequeue("QSPACE", "PLAIN", &ctl, &back, &len, TPNOBLOCK));
	CU_ASSERT_TRUE(len == BIG && memcmp(big, back, (size_t)BIG) == 0);

	manager(SIGSTOP);
	GIVEN_CALL_OK(tpsblktime(20, TPBLK_ALL | TPBLK_MILLISECOND));
	for (n = 0; n < 60 && tpenqueue("QSPACE", "Q", &ctl, big, 50000, TPNOBLOCK) == -1 && tperrno == TPETIME; n++)
		;
	CU_ASSERT_EQUAL(tperrno, TPEBLOCK);
	CU_ASSERT_TRUE(n > 0);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, big, 50000, 0), TPETIME);	/* without it the blocking time counts */
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	as_good_as_new();
	tpfree(big);
	tpfree(back);
}

/* api 2.2 blocking time, tpsblktime (TPBLK_NEXT for one call, TPBLK_ALL for all), TPNOTIME; api 2.9 TPETIME */
static void
the_blocking_time_ends_a_call(void)
{
	TPQCTL ctl = control(TPNOFLAGS);
	double start;

	given_counter();
	CU_ASSERT_EQUAL(tpgblktime(0), 15 * 2);			/* BLOCKTIME x SCANUNIT of the configuration */
	manager(SIGSTOP);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_ALL | TPBLK_MILLISECOND));
	GIVEN_CALL_OK(tpsblktime(600, TPBLK_NEXT | TPBLK_MILLISECOND));
	start = now_s();
	REFUSED(enqueue("Q", &ctl), TPETIME);
	CU_ASSERT_TRUE(now_s() - start >= 0.6);
	start = now_s();
	REFUSED(dequeue("Q", &ctl), TPETIME);
	CU_ASSERT_TRUE(now_s() - start >= 0.1);
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	manager(SIGCONT);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	as_good_as_new();
	manager(SIGSTOP);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_ALL | TPBLK_MILLISECOND));
	alarm_in_ms(200, 0);					/* TPNOTIME: it is the signal that ends it */
	REFUSED(tpdequeue("QSPACE", "Q", &ctl, &data, &len, TPNOTIME), TPGOTSIG);
	CU_ASSERT_EQUAL(alarms, 1);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	as_good_as_new();
}

/* api 2.2 TPSIGRSTRT, 2.9 TPGOTSIG: before anything could be sent, in the middle of a body, and while the answer is awaited */
static void
a_signal_in_each_phase(void)
{
	char *big = tpalloc("CARRAY", NULL, BIG);
	TPQCTL ctl = control(TPNOFLAGS);

	given_counter();
	memset(big, 's', (size_t)BIG);
	put("Q", "connected");
	CU_ASSERT_EQUAL(drain("Q"), 1);
	manager(SIGSTOP);
	GIVEN_CALL_OK(tpsblktime(20, TPBLK_ALL | TPBLK_MILLISECOND));
	while (tpenqueue("QSPACE", "Q", &ctl, big, 50000, TPNOBLOCK) == -1 && tperrno == TPETIME)
		;
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	alarm_in_ms(50, 0);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, big, 50000, 0), TPGOTSIG);	/* not sent */
	as_good_as_new();

	manager(SIGSTOP);
	alarm_in_ms(50, 0);
	REFUSED(tpenqueue("QSPACE", "PLAIN", &ctl, big, BIG, 0), TPGOTSIG);	/* a part is sent: nothing is stored */
	as_good_as_new();
	CU_ASSERT_EQUAL(depth(g, "PLAIN"), 0);

	manager(SIGSTOP);
	alarm_in_ms(50, 0);
	GIVEN_CALL_OK(tpsblktime(300, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpenqueue("QSPACE", "PLAIN", &ctl, big, BIG, TPSIGRSTRT), TPETIME);
	CU_ASSERT_EQUAL(alarms, 1);
	as_good_as_new();
	CU_ASSERT_EQUAL(depth(g, "PLAIN"), 0);

	manager(SIGSTOP);
	alarm_in_ms(50, 0);
	REFUSED(dequeue("Q", &ctl), TPGOTSIG);			/* sent; the second more does not help */
	manager(SIGCONT);
	put("Q", "and so on");
	CU_ASSERT_EQUAL(drain("Q"), 1);
	tpfree(big);
}

/* Signals by the hundred: each call is done once or not at all, and its result says which. */
static void
a_storm_of_signals_loses_and_doubles_nothing(void)
{
	char *mid = tpalloc("CARRAY", NULL, 300000), *back = tpalloc("CARRAY", NULL, 300000);
	int i, n, put_in, taken, unknown;
	TPQCTL ctl;

	given_counter();
	for (n = 0; n < 8; n++) {
		put_in = taken = unknown = 0;
		alarm_in_ms(1, 1);
		for (i = 0; i < 20; i++) {
			ctl = control(TPNOFLAGS);
			if (tpenqueue("QSPACE", "Q", &ctl, mid, i % 3 == 0 ? 300000 : 100, i % 2 ? TPSIGRSTRT : 0) != -1)
				put_in++;
			else if (tperrno != TPGOTSIG || i % 2)
				unknown++;
		}
		for (i = 0; i < 10; i++)
			taken += tpdequeue("QSPACE", "Q", &ctl, &back, &len, TPSIGRSTRT) != -1;
		alarm_in_ms(0, 0);
		CU_ASSERT_EQUAL(unknown, 0);
		CU_ASSERT_TRUE(put_in >= 10);
		CU_ASSERT_EQUAL(taken, 10);
		CU_ASSERT_EQUAL(depth(g, "Q"), put_in - taken);
		CU_ASSERT_EQUAL(drain("Q"), put_in - taken);
	}
	tpfree(mid);
	tpfree(back);
}

/* api 2.2 TPNOBLOCK does not shorten TPQWAIT, whose end is told by -t (1 s here) */
static void
a_wait_is_no_blocking(void)
{
	TPQCTL ctl = control(TPQWAIT);
	double start = now_s();

	given_counter();
	DIAGNOSED(tpdequeue("QSPACE", "PLAIN", &ctl, &data, &len, TPNOBLOCK | TPNOTIME), QMENOMSG);
	CU_ASSERT_TRUE(now_s() - start >= 0.99);
}

/* api 2.2 tpsprio is for the request, not for the message: the next one only */
static void
the_priority_of_a_request_is_not_the_messages(void)
{
	TPQCTL ctl = control(TPNOFLAGS);

	given_counter();
	GIVEN_CALL_OK(tpsprio(90, TPABSOLUTE));
	GIVEN_CALL_OK(enqueue("Q", &ctl));
	CU_ASSERT_EQUAL(tpgprio(), 90);
	ctl = control(TPQPRIORITY);
	GIVEN_CALL_OK(dequeue("Q", &ctl));
	CU_ASSERT_EQUAL(tpgprio(), 50);
	CU_ASSERT_EQUAL(ctl.flags & TPQPRIORITY, 0);
}

static void
the_system_ends_cleanly(void)
{
	given_counter();
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	tpfree(data);
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(flags_and_values_that_are_wrong),
		UNIT(an_identifier_that_names_no_message),
		UNIT(a_queue_that_is_not_there),
		UNIT(nothing_there_that_can_be_taken),
		UNIT(a_space_that_is_full),
		UNIT(a_transaction_that_the_manager_has_lost),
		UNIT(codes_of_old_managers_do_not_come),
		UNIT(a_refusal_spares_the_transaction),
		UNIT(a_message_of_another_type_stays),
		UNIT(a_transaction_whose_time_is_over),
		UNIT(calls_that_cannot_be_right),
		UNIT(without_a_control_structure_no_diagnostic),
		UNIT(a_service_that_is_no_queue_manager),
		UNIT(full_buffers_are_not_waited_for),
		UNIT(the_blocking_time_ends_a_call),
		UNIT(a_signal_in_each_phase),
		UNIT(a_storm_of_signals_loses_and_doubles_nothing),
		UNIT(a_wait_is_no_blocking),
		UNIT(the_priority_of_a_request_is_not_the_messages),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("how queue calls fail", tests, UNIT_COUNT(tests));
}
