/*
 * story_calling - tpcall, tpacall, tpgetrply, tpcancel and what belongs to them: each flag, each error, time, priorities, codes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

static const char source[] =
    "#include <atmi.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n"
    "void CODE(TPSVCINFO *m) { tpreturn(TPSUCCESS, atol(m->data), NULL, 0, 0); }\n"
    "void FAIL(TPSVCINFO *m) { tpreturn(TPFAIL, atol(m->data), m->data, m->len, 0); }\n"
    "void FAILNONE(TPSVCINFO *m) { (void)m; tpreturn(TPFAIL, 9, NULL, 0, 0); }\n"
    "void WRONG(TPSVCINFO *m) { (void)m; }\n"
    "void FLAGS(TPSVCINFO *m) { tpreturn(TPSUCCESS, m->flags, NULL, 0, 0); }\n"
    "void PRIO(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, tpgprio(), NULL, 0, 0); }\n"
    "void BYTES(TPSVCINFO *m) { char *b = tpalloc(\"CARRAY\", NULL, 9000); (void)m; memset(b, 7, 9000);\n"
    "  tpreturn(TPSUCCESS, 5, b, 9000, 0); }\n"
    /* Until the file that the request names is there. */
    "void GATE(TPSVCINFO *m) { int i; for (i = 0; i < 30000 && access(m->data, F_OK) != 0; i++) usleep(1000);\n"
    "  tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n"
    "void MARK(TPSVCINFO *m) { char *b = tpalloc(\"STRING\", NULL, 100); snprintf(b, 100, \"%s %ld\", m->data, m->flags);\n"
    "  tpenqueue(\"QSPACE\", \"Q\", NULL, b, 0, TPNOTRAN); tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "void NONE(TPSVCINFO *m) { tpreturn(TPSUCCESS, m->data == NULL && m->len == 0, NULL, 0, 0); }\n"
    "void DIE(TPSVCINFO *m) { (void)m; _exit(3); }\n";

/* A server for what is served at once, one for what waits. */
static void
given_services(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .server_source = source,
		    .server_services = "-s ECHO,CODE,FAIL,FAILNONE -s WRONG,FLAGS,PRIO,BYTES -s GATE,QUICKGATE:GATE -s MARK,NONE,DIE "
				       "-s HIGH:PRIO -s PICKY,FUSSY:ECHO",
		    .server_params = "RESTART=Y MAXGEN=50 GRACE=0 CLOPT=\"-s ECHO,CODE,FAIL,FAILNONE,WRONG,FLAGS,PRIO,BYTES,NONE,DIE -s "
				     "HIGH:PRIO -s PICKY,FUSSY:ECHO\"\n"
				     "server\tSRVGRP=APP SRVID=2 CLOPT=\"-s GATE,QUICKGATE:GATE -s MARK\"",
		    .services = "HIGH PRIO=60\nQUICKGATE BLOCKTIME=1\nPICKY BUFTYPE=\"STRING;X_OCTET\"\nFUSSY BUFTYPE=\"MINE:one,two;CARRAY\"",
		    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)

static char *buffer;
static long len;

static char *
text(const char *words)
{
	char type[9] = "";

	if (buffer == NULL || tptypes(buffer, type, NULL) == -1 || strcmp(type, "STRING") != 0) {
		tpfree(buffer);
		buffer = tpalloc("STRING", NULL, 512);
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
	snprintf(buffer, 512, "%s", words);
	return buffer;
}

static int
call(const char *service, const char *words, long flags)
{
	text(words);
	return tpcall((char *)service, buffer, 0, &buffer, &len, flags);
}

static int
start(const char *service, const char *words, long flags)
{
	return tpacall((char *)service, text(words), 0, flags);
}

/* --- gates --- */

static char *
gate(int n)		/* a file that is not there yet */
{
	static char path[4][512];

	snprintf(path[n], sizeof path[n], "%s/gate%d", given_dir(g), n);
	unlink(path[n]);
	return path[n];
}

static void
gate_open(const char *path)
{
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

struct later { pthread_t thread; const char *path; int ms; };

static void *
open_then(void *arg)
{
	struct later *l = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);		/* alarms are for who calls */
	nap_ms(l->ms);
	gate_open(l->path);
	return NULL;
}

static void
gate_open_in(struct later *l, const char *path, int ms)
{
	l->path = path;
	l->ms = ms;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&l->thread, NULL, open_then, l), 0);
}

static void
gate_opened(struct later *l)
{
	pthread_join(l->thread, NULL);
}

/* --- arguments --- */

static void
arguments_that_cannot_be(void)
{
	char *raw = tpalloc("CARRAY", NULL, 10), *none = NULL, here[] = "no typed buffer", *foreign = here;
	int cd = 1;

	given_services();
	text("x");
	REFUSED(tpcall(NULL, buffer, 0, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpcall("", buffer, 0, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", foreign, 0, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, NULL, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, &none, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, &foreign, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, &buffer, NULL, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", raw, 11, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", raw, -1, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, &buffer, &len, TPNOREPLY), TPEINVAL);
	REFUSED(tpcall("ECHO", buffer, 0, &buffer, &len, TPGETANY), TPEINVAL);
	REFUSED(tpacall(NULL, buffer, 0, 0), TPEINVAL);
	REFUSED(tpacall("ECHO", foreign, 0, 0), TPEINVAL);
	REFUSED(tpacall("ECHO", raw, 11, 0), TPEINVAL);
	REFUSED(tpacall("ECHO", buffer, 0, TPNOCHANGE), TPEINVAL);
	REFUSED(tpgetrply(NULL, &buffer, &len, 0), TPEINVAL);
	REFUSED(tpgetrply(&cd, NULL, &len, 0), TPEINVAL);
	REFUSED(tpgetrply(&cd, &foreign, &len, 0), TPEINVAL);
	REFUSED(tpgetrply(&cd, &buffer, NULL, 0), TPEINVAL);
	REFUSED(tpgetrply(&cd, &buffer, &len, TPNOTRAN), TPEINVAL);
	GIVEN_CALL_OK(call("ECHO", "all the same it works", 0));
	tpfree(raw);
}

static void
lengths_count_where_the_type_does_not_tell(void)
{
	char *raw = tpalloc("CARRAY", NULL, 100), *out = tpalloc("CARRAY", NULL, 1);

	given_services();
	memset(raw, 1, 100);
	GIVEN_CALL_OK(tpcall("ECHO", raw, 7, &out, &len, 0));
	CU_ASSERT_EQUAL(len, 7);
	GIVEN_CALL_OK(tpcall("ECHO", raw, 0, &out, &len, 0));
	CU_ASSERT_EQUAL(len, 0);
	text("12345");
	GIVEN_CALL_OK(tpcall("ECHO", buffer, 2, &buffer, &len, 0));	/* a STRING has its own */
	CU_ASSERT_EQUAL(len, 6);
	tpfree(raw);
	tpfree(out);
}

static void
a_request_and_an_answer_may_have_no_data(void)
{
	given_services();
	text("stays");
	len = 77;
	GIVEN_CALL_OK(tpcall("NONE", NULL, 0, &buffer, &len, 0));
	CU_ASSERT_EQUAL(tpurcode, 1);
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_STRING_EQUAL(buffer, "stays");
}

static void
a_service_that_nobody_offers(void)
{
	given_services();
	REFUSED(call("NOBODY", "x", 0), TPENOENT);
	REFUSED(start("NOBODY", "x", 0), TPENOENT);
	REFUSED(start("NOBODY", "x", TPNOREPLY), TPENOENT);
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(call("NOBODY", "x", 0), TPENOENT);
	GIVEN_CALL_OK(call("ECHO", "nothing was done", 0));
	GIVEN_CALL_OK(tpcommit(0));
}

/* --- types --- */

static const char *
type_of(char *b)
{
	static char type[9];

	memset(type, 0, sizeof type);
	tptypes(b, type, NULL);
	return type;
}

static void
tpnochange_keeps_the_type_of_the_buffer(void)
{
	int cd;

	given_services();
	GIVEN_CALL_OK(call("ECHO", "same", TPNOCHANGE));
	REFUSED(call("BYTES", "kept", TPNOCHANGE), TPEOTYPE);
	CU_ASSERT_STRING_EQUAL(type_of(buffer), "STRING");
	CU_ASSERT_STRING_EQUAL(buffer, "kept");
	CU_ASSERT_TRUE((cd = start("BYTES", "kept", 0)) > 0);
	REFUSED(tpgetrply(&cd, &buffer, &len, TPNOCHANGE), TPEOTYPE);
	REFUSED(tpgetrply(&cd, &buffer, &len, 0), TPEBADDESC);		/* it was taken */
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(call("BYTES", "x", TPNOCHANGE), TPEOTYPE);
	REFUSED(tpcommit(0), TPEABORT);
	GIVEN_CALL_OK(call("BYTES", "x", 0));
	CU_ASSERT_STRING_EQUAL(type_of(buffer), "CARRAY");
	CU_ASSERT_EQUAL(len, 9000);
	CU_ASSERT_TRUE(tptypes(buffer, NULL, NULL) >= 9000);
}

static void	/* BUFTYPE: nothing is sent, and no descriptor used. */
types_that_the_service_does_not_take(void)
{
	char *raw = tpalloc("CARRAY", NULL, 10), *octet = tpalloc("X_OCTET", NULL, 10);

	given_services();
	GIVEN_CALL_OK(call("PICKY", "a string", 0));
	GIVEN_CALL_OK(tpcall("PICKY", octet, 1, &buffer, &len, 0));
	GIVEN_CALL_OK(tpcall("PICKY", NULL, 0, &buffer, &len, 0));
	REFUSED(tpcall("PICKY", raw, 1, &buffer, &len, 0), TPEITYPE);
	REFUSED(tpacall("PICKY", raw, 1, 0), TPEITYPE);
	REFUSED(tpacall("PICKY", raw, 1, TPNOREPLY), TPEITYPE);
	REFUSED(call("FUSSY", "a string", 0), TPEITYPE);
	GIVEN_CALL_OK(tpcall("FUSSY", raw, 1, &buffer, &len, 0));
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(tpcall("PICKY", raw, 1, &buffer, &len, 0), TPEITYPE);
	GIVEN_CALL_OK(tpcommit(0));
	tpfree(raw);
	tpfree(octet);
}

/* --- outcomes --- */

static void
what_the_service_says_comes_back(void)
{
	int cd;

	given_services();
	GIVEN_CALL_OK(call("CODE", "4294967298", 0));		/* a long */
	CU_ASSERT_EQUAL(tpurcode, 4294967298L);
	REFUSED(call("FAIL", "-7", 0), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, -7);
	CU_ASSERT_STRING_EQUAL(buffer, "-7");
	CU_ASSERT_EQUAL(len, 3);
	REFUSED(call("FAILNONE", "stays", 0), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, 9);
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_STRING_EQUAL(buffer, "stays");
	REFUSED(call("WRONG", "stays", 0), TPESVCERR);
	CU_ASSERT_STRING_EQUAL(buffer, "stays");
	CU_ASSERT_EQUAL(tpurcode, 9);				/* of the last service that answered */
	REFUSED(call("NOBODY", "x", 0), TPENOENT);
	CU_ASSERT_EQUAL(tpurcode, 9);
	CU_ASSERT_TRUE((cd = start("FAIL", "3", 0)) > 0);
	CU_ASSERT_EQUAL(tpurcode, 9);
	REFUSED(tpgetrply(&cd, &buffer, &len, 0), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, 3);
	REFUSED(call("DIE", "x", 0), TPESVCERR);
	GIVEN_CALL_OK(call("ECHO", "runs again", 0));
}

static void *
has_a_code_of_its_own(void *arg)
{
	(void)arg;
	return tpurcode == 0 && call("CODE", "6", 0) == 0 && tpurcode == 6 ? arg : NULL;
}

static void
each_thread_has_its_code(void)
{
	pthread_t t;
	void *good = NULL;

	given_services();
	GIVEN_CALL_OK(call("CODE", "5", 0));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, has_a_code_of_its_own, g), 0);
	pthread_join(t, &good);
	CU_ASSERT_PTR_NOT_NULL(good);
	CU_ASSERT_EQUAL(tpurcode, 5);
}

/* --- descriptors --- */

static void
tpgetany_takes_what_is_there_and_names_it(void)
{
	const char *shut;
	int slow, quick, bad, any = -5;

	given_services();
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY), TPEBADDESC);
	shut = gate(0);
	CU_ASSERT_TRUE((slow = start("GATE", shut, 0)) > 0);
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY | TPNOBLOCK), TPEBLOCK);
	CU_ASSERT_TRUE((quick = start("ECHO", "quick", 0)) > 0);
	GIVEN_CALL_OK(tpgetrply(&any, &buffer, &len, TPGETANY));
	CU_ASSERT_EQUAL(any, quick);
	CU_ASSERT_STRING_EQUAL(buffer, "quick");
	CU_ASSERT_TRUE((bad = start("FAIL", "1", 0)) > 0);
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY), TPESVCFAIL);
	CU_ASSERT_EQUAL(any, bad);				/* whose failure it is */
	GIVEN_CALL_OK(tpsblktime(50, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY), TPETIME);
	gate_open(shut);
	GIVEN_CALL_OK(tpgetrply(&any, &buffer, &len, TPGETANY));
	CU_ASSERT_EQUAL(any, slow);
	REFUSED(tpgetrply(&slow, &buffer, &len, 0), TPEBADDESC);
	any = 0;
	REFUSED(tpgetrply(&any, &buffer, &len, 0), TPEBADDESC);
	any = -1;
	REFUSED(tpgetrply(&any, &buffer, &len, 0), TPEBADDESC);
}

static void
fifty_calls_may_be_outstanding(void)
{
	int cd[51], more;
	char words[16];

	given_services();
	for (int i = 0; i < 50; i++) {
		snprintf(words, sizeof words, "call %d", i);
		CU_ASSERT_TRUE((cd[i] = start("ECHO", words, 0)) > 0);
	}
	REFUSED(start("ECHO", "one more", 0), TPELIMIT);
	GIVEN_CALL_OK(call("ECHO", "tpcall() needs none", 0));
	CU_ASSERT_EQUAL(start("ECHO", "nor does this", TPNOREPLY), 0);
	REFUSED(start("NOBODY", "x", 0), TPELIMIT);
	GIVEN_CALL_OK(tpgetrply(&cd[17], &buffer, &len, 0));
	CU_ASSERT_STRING_EQUAL(buffer, "call 17");
	CU_ASSERT_TRUE((more = start("ECHO", "call 17 again", 0)) > 0);
	REFUSED(start("ECHO", "one more", 0), TPELIMIT);
	GIVEN_CALL_OK(tpcancel(cd[18]));
	CU_ASSERT_TRUE((cd[18] = start("ECHO", "call 18", 0)) > 0);
	REFUSED(start("ECHO", "one more", 0), TPELIMIT);
	GIVEN_CALL_OK(tpgetrply(&more, &buffer, &len, 0));
	CU_ASSERT_STRING_EQUAL(buffer, "call 17 again");
	for (int i = 49; i >= 0; i--) {
		if (i == 17)
			continue;
		GIVEN_CALL_OK(tpgetrply(&cd[i], &buffer, &len, 0));
		snprintf(words, sizeof words, "call %d", i);
		CU_ASSERT_STRING_EQUAL(buffer, words);
	}
	REFUSED(tpgetrply(&more, &buffer, &len, TPGETANY), TPEBADDESC);
}

static void	/* The service works all the same; its answer is nobody's. */
the_answer_of_a_cancelled_call_is_given_to_nobody(void)
{
	const char *shut;
	int gone, next, any = 0;

	given_services();
	shut = gate(0);
	CU_ASSERT_TRUE((gone = start("GATE", shut, 0)) > 0);
	GIVEN_CALL_OK(tpcancel(gone));
	REFUSED(tpcancel(gone), TPEBADDESC);
	REFUSED(tpcancel(0), TPEBADDESC);
	REFUSED(tpcancel(-1), TPEBADDESC);
	REFUSED(tpgetrply(&gone, &buffer, &len, 0), TPEBADDESC);
	CU_ASSERT_TRUE((next = start("MARK", "behind it", 0)) > 0);	/* at the same server */
	CU_ASSERT_NOT_EQUAL(next, gone);
	gate_open(shut);
	GIVEN_CALL_OK(tpgetrply(&any, &buffer, &len, TPGETANY));
	CU_ASSERT_EQUAL(any, next);
	CU_ASSERT_STRING_EQUAL(buffer, "behind it");
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY), TPEBADDESC);
	free(take("Q"));
}

static void
in_a_transaction_a_call_is_not_cancelled(void)
{
	int in, out;

	given_services();
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_TRUE((in = start("ECHO", "in", 0)) > 0);
	CU_ASSERT_TRUE((out = start("ECHO", "out", TPNOTRAN)) > 0);
	REFUSED(tpcancel(in), TPETRAN);
	GIVEN_CALL_OK(tpcancel(out));
	GIVEN_CALL_OK(tpgetrply(&in, &buffer, &len, 0));
	CU_ASSERT_STRING_EQUAL(buffer, "in");
	GIVEN_CALL_OK(tpcommit(0));
}

static void
tpnoreply_asks_for_no_answer(void)
{
	char *said;
	int any = 0;

	given_services();
	CU_ASSERT_EQUAL(start("MARK", "no answer,", TPNOREPLY), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(said = take_within("Q", 20));
	CU_ASSERT_STRING_EQUAL(said, "no answer, 4");		/* the service is told: TPNOREPLY */
	free(said);
	REFUSED(tpgetrply(&any, &buffer, &len, TPGETANY), TPEBADDESC);
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(start("MARK", "x", TPNOREPLY), TPEINVAL);
	CU_ASSERT_EQUAL(start("MARK", "outside,", TPNOREPLY | TPNOTRAN), 0);
	GIVEN_CALL_OK(tpcommit(0));				/* the refusal spoilt nothing */
	CU_ASSERT_PTR_NOT_NULL_FATAL(said = take_within("Q", 20));
	CU_ASSERT_STRING_EQUAL(said, "outside, 4");
	free(said);
	CU_ASSERT_PTR_NULL(take("Q"));
}

static void
tpnotran_calls_outside_the_transaction(void)
{
	given_services();
	GIVEN_CALL_OK(tpbegin(30, 0));
	GIVEN_CALL_OK(call("FLAGS", "", 0));
	CU_ASSERT_EQUAL(tpurcode, TPTRAN);
	GIVEN_CALL_OK(call("FLAGS", "", TPNOTRAN));
	CU_ASSERT_EQUAL(tpurcode, 0);
	REFUSED(call("FAIL", "1", TPNOTRAN), TPESVCFAIL);
	REFUSED(call("WRONG", "1", TPNOTRAN), TPESVCERR);
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(call("FAIL", "1", 0), TPESVCFAIL);
	REFUSED(call("ECHO", "1", 0), TPETIME);			/* rollback-only */
	REFUSED(tpcommit(0), TPEABORT);
}

/* --- not waiting, and how long --- */

static void	/* TPNOBLOCK is about the sending: a server that takes nothing more is not waited for. */
tpnoblock_does_not_wait_until_it_can_be_sent(void)
{
	char *large = tpalloc("CARRAY", NULL, 100000), *out = tpalloc("CARRAY", NULL, 10);
	pid_t pid;
	int sent = 0;

	given_services();
	memset(large, 0, 100000);
	GIVEN_CALL_OK(tpcall("ECHO", large, 100000, &out, &len, TPNOBLOCK));	/* it can: and the answer is waited for */
	CU_ASSERT_TRUE_FATAL((pid = given_pid_as(g, 1, 1)) > 0);
	kill(pid, SIGSTOP);
	while (sent < 1000 && tpacall("NONE", large, 100000, TPNOREPLY | TPNOBLOCK) == 0)
		sent++;
	CU_ASSERT_EQUAL(tperrno, TPEBLOCK);
	REFUSED(tpcall("NONE", large, 100000, &out, &len, TPNOBLOCK), TPEBLOCK);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpacall("NONE", large, 100000, TPNOREPLY), TPETIME);		/* without it: the blocking time */
	kill(pid, SIGCONT);
	GIVEN_CALL_OK(tpcall("NONE", large, 100000, &out, &len, 0));
	tpfree(large);
	tpfree(out);
}

/* How long a call that nobody answers takes, in seconds; it must be a TPETIME. */
static double
waits(const char *service, long flags)
{
	const char *shut = gate(1);
	double start_s = now_s();

	REFUSED(call(service, shut, flags), TPETIME);
	gate_open(shut);
	return now_s() - start_s;
}

static void	/* TPBLK_NEXT, TPBLK_ALL, SERVICES, RESOURCES. */
the_blocking_time_that_counts(void)
{
	struct later l;
	double t;

	given_services();
	CU_ASSERT_EQUAL(tpgblktime(0), 30);			/* BLOCKTIME times SCANUNIT */
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_ALL), 0);
	t = waits("QUICKGATE", 0);
	CU_ASSERT_TRUE(t > 0.9 && t < 14);
	GIVEN_CALL_OK(tpsblktime(200, TPBLK_ALL | TPBLK_MILLISECOND));
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_ALL | TPBLK_MILLISECOND), 200);
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_ALL), 1);		/* seconds, rounded up */
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_MILLISECOND), 200);
	t = waits("QUICKGATE", 0);
	CU_ASSERT_TRUE(t > 0.19 && t < 14);
	GIVEN_CALL_OK(tpsblktime(500, TPBLK_NEXT | TPBLK_MILLISECOND));
	CU_ASSERT_TRUE(waits("QUICKGATE", 0) > 0.49);
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_NEXT), 0);		/* for that one call */
	t = waits("GATE", 0);
	CU_ASSERT_TRUE(t > 0.19 && t < 14);
	gate_open_in(&l, gate(0), 600);
	GIVEN_CALL_OK(call("GATE", l.path, TPNOTIME));
	gate_opened(&l);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_ALL), 0);
	gate_open_in(&l, gate(0), 1300);
	GIVEN_CALL_OK(call("QUICKGATE", l.path, TPNOTIME));
	gate_opened(&l);
}

static void
times_that_cannot_be(void)
{
	given_services();
	REFUSED(tpsblktime(-1, TPBLK_NEXT), TPEINVAL);
	REFUSED(tpsblktime(32768, TPBLK_NEXT), TPEINVAL);
	REFUSED(tpsblktime(1, 0), TPEINVAL);
	REFUSED(tpsblktime(1, TPBLK_NEXT | TPBLK_ALL), TPEINVAL);
	REFUSED(tpsblktime(1, TPBLK_NEXT | 0x10), TPEINVAL);
	GIVEN_CALL_OK(tpsblktime(32767, TPBLK_NEXT));
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_NEXT), 32767);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_NEXT));
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_NEXT), 0);
	REFUSED(tpgblktime(TPBLK_NEXT | TPBLK_ALL), TPEINVAL);
	REFUSED(tpgblktime(0x10), TPEINVAL);
}

static void	/* The blocking time of tpacall() is that of sending.  The request waits for its server as long as it takes. */
an_answer_may_be_asked_for_long_after_the_call(void)
{
	const char *shut;
	int first, second;

	given_services();
	shut = gate(0);
	CU_ASSERT_TRUE((first = start("GATE", shut, 0)) > 0);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND));
	CU_ASSERT_TRUE((second = start("MARK", "it waits,", 0)) > 0);
	GIVEN_CALL_OK(tpsblktime(300, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpgetrply(&second, &buffer, &len, 0), TPETIME);
	gate_open(shut);
	GIVEN_CALL_OK(tpgetrply(&second, &buffer, &len, 0));
	CU_ASSERT_STRING_EQUAL(buffer, "it waits,");
	GIVEN_CALL_OK(tpgetrply(&first, &buffer, &len, 0));
	free(take("Q"));
}

static void	/* The answer of a call that was given up is not that of the next one. */
a_late_answer_is_given_to_nobody(void)
{
	const char *shut;
	int cd;

	given_services();
	shut = gate(2);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(call("GATE", shut, 0), TPETIME);
	CU_ASSERT_TRUE((cd = start("MARK", "the next", 0)) > 0);
	gate_open(shut);
	GIVEN_CALL_OK(tpgetrply(&cd, &buffer, &len, 0));
	CU_ASSERT_STRING_EQUAL(buffer, "the next");
	free(take("Q"));
}

static void	/* In a transaction its time alone counts, and ends the descriptor with it. */
time_of_a_call_in_a_transaction(void)
{
	const char *shut;
	double start_s;
	int cd, out;

	given_services();
	GIVEN_CALL_OK(tpbegin(2, 0));
	start_s = now_s();
	shut = gate(1);
	GIVEN_CALL_OK(tpsblktime(100, TPBLK_ALL | TPBLK_MILLISECOND));
	CU_ASSERT_TRUE((cd = start("GATE", shut, 0)) > 0);
	CU_ASSERT_TRUE((out = start("GATE", shut, TPNOTRAN)) > 0);
	REFUSED(tpgetrply(&cd, &buffer, &len, TPNOTIME), TPETIME);
	CU_ASSERT_TRUE(now_s() - start_s > 1.9);
	REFUSED(tpgetrply(&cd, &buffer, &len, 0), TPEBADDESC);
	REFUSED(call("ECHO", "x", 0), TPETIME);
	REFUSED(tpcommit(0), TPEABORT);
	gate_open(shut);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	GIVEN_CALL_OK(tpgetrply(&out, &buffer, &len, 0));
}

/* --- signals --- */

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
signals_and_calls(void)
{
	char *large = tpalloc("CARRAY", NULL, 100000);
	const char *shut;
	struct later l;
	pid_t pid;
	int cd;

	given_services();
	alarm_in_100_ms();
	shut = gate(0);
	REFUSED(call("GATE", shut, 0), TPGOTSIG);
	gate_open(shut);
	gate_open_in(&l, gate(1), 400);
	alarm_in_100_ms();
	GIVEN_CALL_OK(call("GATE", l.path, TPSIGRSTRT));
	gate_opened(&l);
	shut = gate(2);
	CU_ASSERT_TRUE((cd = start("GATE", shut, 0)) > 0);
	alarm_in_100_ms();
	REFUSED(tpgetrply(&cd, &buffer, &len, 0), TPGOTSIG);
	alarm_in_100_ms();
	REFUSED(tpgetrply(&cd, &buffer, &len, TPGETANY), TPGOTSIG);
	gate_open_in(&l, shut, 400);
	alarm_in_100_ms();
	GIVEN_CALL_OK(tpgetrply(&cd, &buffer, &len, TPSIGRSTRT));	/* the descriptor is as good as before */
	gate_opened(&l);

	memset(large, 0, 100000);
	CU_ASSERT_TRUE_FATAL((pid = given_pid_as(g, 1, 1)) > 0);
	kill(pid, SIGSTOP);
	for (int i = 0; i < 1000 && tpacall("NONE", large, 100000, TPNOREPLY | TPNOBLOCK) == 0; i++)
		;
	alarm_in_100_ms();
	REFUSED(tpacall("NONE", large, 100000, TPNOREPLY), TPGOTSIG);
	alarm_in_100_ms();
	GIVEN_CALL_OK(tpsblktime(400, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpacall("NONE", large, 100000, TPNOREPLY | TPSIGRSTRT), TPETIME);
	kill(pid, SIGCONT);
	tpfree(large);
}

/* --- priorities --- */

static long
arrives_with(const char *service, int prio, long flags)
{
	if (flags != -1)
		GIVEN_CALL_OK(tpsprio(prio, flags));
	GIVEN_CALL_OK(call(service, "", 0));
	CU_ASSERT_EQUAL(tpgprio(), tpurcode);		/* sender and receiver say the same */
	return tpurcode;
}

static void
a_priority_is_that_of_the_service_unless_it_is_set(void)
{
	given_services();
	CU_ASSERT_EQUAL(arrives_with("PRIO", 0, -1), 50);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 0, -1), 60);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 10, 0), 70);
	CU_ASSERT_EQUAL(arrives_with("HIGH", -10, 0), 50);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 0, -1), 60);		/* for one request */
	CU_ASSERT_EQUAL(arrives_with("HIGH", 70, 0), 100);
	CU_ASSERT_EQUAL(arrives_with("HIGH", -100, 0), 1);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 1, TPABSOLUTE), 1);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 100, TPABSOLUTE), 100);
	CU_ASSERT_EQUAL(arrives_with("HIGH", 0, TPABSOLUTE), 50);	/* out of range: the default */
	CU_ASSERT_EQUAL(arrives_with("HIGH", 101, TPABSOLUTE), 50);
	GIVEN_CALL_OK(tpsprio(5, 0));
	GIVEN_CALL_OK(tpsprio(33, TPABSOLUTE));				/* the last one counts */
	CU_ASSERT_EQUAL(arrives_with("HIGH", 0, -1), 33);
	REFUSED(tpsprio(5, TPNOTIME), TPEINVAL);
}

static void
a_queue_operation_is_a_request_too(void)
{
	given_services();
	GIVEN_CALL_OK(tpsprio(77, TPABSOLUTE));
	put("Q", "x");
	CU_ASSERT_EQUAL(tpgprio(), 77);
	CU_ASSERT_EQUAL(arrives_with("PRIO", 0, -1), 50);
	GIVEN_CALL_OK(tpsprio(66, TPABSOLUTE));
	free(take("Q"));
	CU_ASSERT_EQUAL(tpgprio(), 66);
}

static void
without_a_request_there_is_no_priority(void)
{
	given_services();
	GIVEN_CALL_OK(tpterm());
	REFUSED(tpgprio(), TPENOENT);
	GIVEN_CALL_OK(call("ECHO", "x", 0));
	CU_ASSERT_EQUAL(tpgprio(), 50);
}

/* --- what is said of errors --- */

static void
each_code_has_its_text(void)
{
	static const char *const names[] = { "", "TPEABORT", "TPEBADDESC", "TPEBLOCK", "TPEINVAL", "TPELIMIT", "TPENOENT", "TPEOS", "TPEPERM",
		"TPEPROTO", "TPESVCERR", "TPESVCFAIL", "TPESYSTEM", "TPETIME", "TPETRAN", "TPGOTSIG", "TPERMERR", "TPEITYPE", "TPEOTYPE",
		"TPERELEASE", "TPEHAZARD", "TPEHEURISTIC", "TPEEVENT", "TPEMATCH", "TPEDIAGNOSTIC", "TPEMIB", "TPENOSINGLETON",
		"TPENOSECONDARYRQ" };
	char begins[40];

	tperrno = TPEMATCH;
	for (int i = 1; i < (int)UNIT_COUNT(names); i++) {
		snprintf(begins, sizeof begins, "%s - ", names[i]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(tpstrerror(i));
		CU_ASSERT_EQUAL(strncmp(tpstrerror(i), begins, strlen(begins)), 0);
		CU_ASSERT_TRUE(strlen(tpstrerror(i)) > strlen(begins));
	}
	CU_ASSERT_PTR_NULL(tpstrerror(-1));
	CU_ASSERT_PTR_NULL(tpstrerror(TPMAXVAL));
	CU_ASSERT_PTR_NULL(tpstrerror(100000));
	CU_ASSERT_EQUAL(tperrno, TPEMATCH);
}

static void
details_of_an_error(void)
{
	given_services();
	REFUSED(call("NOBODY", "x", 0), TPENOENT);
	CU_ASSERT_EQUAL(tperrordetail(0), 0);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	for (int i = TPED_SVCTIMEOUT; i <= TPED_INVALID_XA_TRANSACTION; i++)
		CU_ASSERT_PTR_NOT_NULL(tpstrerrordetail(i, 0));
	CU_ASSERT_PTR_NULL(tpstrerrordetail(1000, 0));
	CU_ASSERT_PTR_NULL(tpstrerrordetail(-1, 0));
	CU_ASSERT_EQUAL(tperrno, TPENOENT);			/* untouched */
	REFUSED(tperrordetail(1), TPEINVAL);
}

/* --- R20 --- */

static void
r20_a_wait_in_a_transaction_of_two_seconds_takes_two(void)
{
	double limit = 2.5, took, most = 0;

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	limit = 6;
#endif
	given_services();
	for (int i = 0; i < 3; i++) {
		TPQCTL ctl = { .flags = TPQWAIT };
		double start_s;

		text("");
		GIVEN_CALL_OK(tpbegin(2, 0));
		start_s = now_s();
		REFUSED(tpdequeue("QSPACE", "Q", &ctl, &buffer, &len, 0), TPETIME);
		took = now_s() - start_s;
		CU_ASSERT_TRUE(took > 1.99);
		most = took > most ? took : most;
		REFUSED(tpcommit(0), TPEABORT);
		if (most <= limit)
			break;			/* a machine that is busy may be late once or twice, a step of SCANUNIT is late each time */
		most = 0;
	}
	CU_ASSERT_TRUE(most > 0);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define BURST 500

/* The times of a burst, sorted; how many took a second longer than the middle one. */
static int
steps(double *took, const char *what)
{
	int n = 0;

	qsort(took, BURST, sizeof *took, compare);
	for (int i = 0; i < BURST; i++)
		n += took[i] > took[BURST / 2] + 0.95;
	printf("%s: p50 %.0f us, p99 %.0f us, longest %.0f us ... ", what, took[BURST / 2] * 1e6, took[BURST * 99 / 100] * 1e6,
	    took[BURST - 1] * 1e6);
	return n;
}

/* A server that is busy gets five hundred requests; nobody who sends one sleeps in steps of a second.  The machine may. */
static void
r20_a_burst_has_no_steps_of_a_second(void)
{
	static double took[BURST];
	int cd, late = BURST;
	const char *shut;
	char *said;

	given_services();
	for (int round = 0; round < 3 && late > 2; round++) {
		shut = gate(3);
		CU_ASSERT_TRUE_FATAL((cd = start("GATE", shut, 0)) > 0);
		for (int i = 0; i < BURST; i++) {
			double start_s = now_s();

			CU_ASSERT_EQUAL(start("MARK", "burst", TPNOREPLY), 0);	/* the same server, which does not read them */
			took[i] = now_s() - start_s;
		}
		late = steps(took, "tpacall");
		gate_open(shut);
		GIVEN_CALL_OK(tpgetrply(&cd, &buffer, &len, 0));
		for (int i = 0; i < BURST; i++) {
			CU_ASSERT_PTR_NOT_NULL_FATAL(said = take_within("Q", 30));
			free(said);
		}
	}
	CU_ASSERT_TRUE(late <= 2);
	late = BURST;
	for (int round = 0; round < 3 && late > 2; round++) {
		for (int i = 0; i < BURST; i++) {
			double start_s = now_s();

			put("Q", "burst");
			took[i] = now_s() - start_s;
		}
		late = steps(took, "tpenqueue");
		for (int i = 0; i < BURST; i++)
			free(take("Q"));
	}
	CU_ASSERT_TRUE(late <= 2);
	CU_ASSERT_PTR_NULL(take("Q"));
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
		UNIT(arguments_that_cannot_be),
		UNIT(lengths_count_where_the_type_does_not_tell),
		UNIT(a_request_and_an_answer_may_have_no_data),
		UNIT(a_service_that_nobody_offers),
		UNIT(tpnochange_keeps_the_type_of_the_buffer),
		UNIT(types_that_the_service_does_not_take),
		UNIT(what_the_service_says_comes_back),
		UNIT(each_thread_has_its_code),
		UNIT(tpgetany_takes_what_is_there_and_names_it),
		UNIT(fifty_calls_may_be_outstanding),
		UNIT(the_answer_of_a_cancelled_call_is_given_to_nobody),
		UNIT(in_a_transaction_a_call_is_not_cancelled),
		UNIT(tpnoreply_asks_for_no_answer),
		UNIT(tpnotran_calls_outside_the_transaction),
		UNIT(tpnoblock_does_not_wait_until_it_can_be_sent),
		UNIT(the_blocking_time_that_counts),
		UNIT(times_that_cannot_be),
		UNIT(an_answer_may_be_asked_for_long_after_the_call),
		UNIT(a_late_answer_is_given_to_nobody),
		UNIT(time_of_a_call_in_a_transaction),
		UNIT(signals_and_calls),
		UNIT(a_priority_is_that_of_the_service_unless_it_is_set),
		UNIT(a_queue_operation_is_a_request_too),
		UNIT(without_a_request_there_is_no_priority),
		UNIT(each_code_has_its_text),
		UNIT(details_of_an_error),
		UNIT(r20_a_wait_in_a_transaction_of_two_seconds_takes_two),
		UNIT(r20_a_burst_has_no_steps_of_a_second),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: calling", tests, UNIT_COUNT(tests));
}
