/*
 * story_serving - what a server's programmer writes: tpsvrinit and tpsvrdone, routines and how they end, forwarding, services that
 * come and go at run time, a server that calls itself.
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

static const char source[] =
    "#include <atmi.h>\n#include <userlog.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n"
    "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
    "static const char *me = \"nobody\";\n"
    "static long did(long rc) { return rc == -1 ? tperrno : 0; }\n"
    "static void mark(const char *file) { int fd = open(file, O_CREAT | O_WRONLY, 0600); if (fd >= 0) close(fd); }\n"
    "static char *text_of(const char *s) { char *b = tpalloc(\"STRING\", NULL, 600); snprintf(b, 600, \"%s\", s); return b; }\n"
    "static long put(const char *queue, const char *s) { char *b = text_of(s); long rc;\n"
    "  rc = did(tpenqueue(\"QSPACE\", (char *)queue, NULL, b, 0, 0)); tpfree(b); return rc; }\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 42, m->data, m->len, 0); }\n"
    "void FAILS(TPSVCINFO *m) { tpreturn(TPFAIL, 13, m->data, m->len, 0); }\n"
    /* --- the beginning and the end --- */
    "static void busy(void) { char *b = text_of(\"hello\"); long n, called = did(tpcall(\"ECHO\", b, 0, &b, &n, 0)), put_, begun, ended;\n"
    "  put_ = put(\"Q\", \"from tpsvrinit\"); begun = did(tpbegin(10, 0)); put(\"Q\", \"in a transaction\"); ended = did(tpcommit(0));\n"
    "  userlog(\"busy: %ld %ld %ld %ld %ld\", called, put_, begun, ended, did(tpadvertise(\"EARLY\", ECHO))); tpfree(b); }\n"
    "int tpsvrinit(int argc, char **argv) { char all[400] = \"\"; int i;\n"
    "  for (i = 0; i < argc; i++) snprintf(all + strlen(all), sizeof all - strlen(all), \"[%s]\", argv[i]);\n"
    "  if (argc > 1) me = argv[1];\n"
    "  userlog(\"%s begins with %d: %s\", me, argc, all);\n"
    "  if (strcmp(me, \"moody\") == 0 && access(\"refuse\", F_OK) == 0) { tpbegin(30, 0); put(\"Q\", \"undone\"); return -1; }\n"
    "  if (strcmp(me, \"busy\") == 0) { busy(); tpreturn(TPSUCCESS, 0, NULL, 0, 0); userlog(\"tpreturn here: %d\", tperrno); }\n"
    "  return 0; }\n"
    "void tpsvrdone(void) { userlog(\"%s is done\", me); }\n"
    "void PID(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void LEAVE(TPSVCINFO *m) { tpreturn(TPEXIT, 3, m->data, 0, 0); }\n"
    "void EXITS(TPSVCINFO *m) { (void)m; put(\"Q\", \"never\"); exit(0); }\n"
    /* --- how a routine ends --- */
    "static void deep(TPSVCINFO *m, int n) { if (n > 0) deep(m, n - 1); else tpreturn(TPSUCCESS, 5, m->data, 0, 0); mark(\"after\"); }\n"
    "void DEEP(TPSVCINFO *m) { deep(m, 20); mark(\"after\"); }\n"
    "void RNONE(TPSVCINFO *m) { put(\"Q\", m->data); }\n"
    "void RBAD(TPSVCINFO *m) { static char s[] = \"no typed buffer\"; put(\"Q\", m->data); tpreturn(TPSUCCESS, 0, s, 0, 0); }\n"
    "void RLEN(TPSVCINFO *m) { char *b = tpalloc(\"CARRAY\", NULL, 10); put(\"Q\", m->data); tpreturn(TPSUCCESS, 0, b, 11, 0); }\n"
    "void RNULL(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, 6, NULL, 5, 0); }\n"
    "void RODD(TPSVCINFO *m) { tpreturn(99, 8, m->data, 0, 0); }\n"
    "void ROPEN(TPSVCINFO *m) { put(\"Q\", m->data); tpacall(\"SECOND\", m->data, 0, 0); tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "static void *from_a_thread(void *code) { tpreturn(TPSUCCESS, 1, NULL, 0, 0); *(long *)code = tperrno; return NULL; }\n"
    "void THREAD(TPSVCINFO *m) { pthread_t t; long code = 0; (void)m; pthread_create(&t, NULL, from_a_thread, &code); pthread_join(t, NULL);\n"
    "  tpreturn(TPSUCCESS, code, NULL, 0, 0); }\n"
    /* --- the request --- */
    "void FREED(TPSVCINFO *m) { tpfree(m->data); tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "void GROWS(TPSVCINFO *m) { m->data = tprealloc(m->data, 100000); memset(m->data + strlen(m->data), 'x', 90000);\n"
    "  m->data[90000] = 0; tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "void OTHER(TPSVCINFO *m) { char *b = text_of(\"another buffer\"); (void)m; tpreturn(TPSUCCESS, 0, b, 0, 0); }\n"
    "void INFO(TPSVCINFO *m) { char *b = tpalloc(\"STRING\", NULL, 200); snprintf(b, 200, \"%s %ld %ld %ld %lx.%lx.%lx.%lx\", m->name, m->len,\n"
    "  m->flags, m->appkey, m->cltid.clientdata[0], m->cltid.clientdata[1], m->cltid.clientdata[2], m->cltid.clientdata[3]);\n"
    "  tpreturn(TPSUCCESS, 0, b, 0, 0); }\n"
    /* --- forwarding --- */
    "void HOP1(TPSVCINFO *m) { char *b = tpalloc(\"STRING\", NULL, 600); snprintf(b, 600, \"%s, one\", m->data); tpforward(\"HOP2\", b, 0, 0);\n"
    "  mark(\"after\"); }\n"
    "void HOP2(TPSVCINFO *m) { snprintf(m->data + strlen(m->data), 20, \", two\"); tpforward(\"LAST\", m->data, 0, 0); mark(\"after\"); }\n"
    "void LAST(TPSVCINFO *m) { long rc = put(\"Q\", m->data); tpreturn(rc == 0 ? TPSUCCESS : TPFAIL, 77, m->data, 0, 0); }\n"
    "void FFAIL(TPSVCINFO *m) { put(\"Q\", \"undone\"); tpforward(\"FAILS\", m->data, 0, 0); }\n"
    "void FNONE(TPSVCINFO *m) { put(\"Q\", \"undone\"); tpforward(\"NOBODY\", m->data, 0, 0); }\n"
    "void FNULL(TPSVCINFO *m) { tpforward(NULL, m->data, 0, 0); }\n"
    "void FBAD(TPSVCINFO *m) { static char s[] = \"no typed buffer\"; (void)m; tpforward(\"ECHO\", s, 0, 0); }\n"
    "void FOPEN(TPSVCINFO *m) { tpacall(\"SECOND\", m->data, 0, 0); tpforward(\"ECHO\", m->data, 0, 0); }\n"
    "void FTYPE(TPSVCINFO *m) { char *b = tpalloc(\"CARRAY\", NULL, 5); (void)m; tpforward(\"PICKY\", b, 5, 0); }\n"
    /* --- services that come and go --- */
    "void OFFER(TPSVCINFO *m) { long e = did(tpadvertise(m->data, ECHO)); tpreturn(TPSUCCESS, e, NULL, 0, 0); }\n"
    "void OFFEROTHER(TPSVCINFO *m) { long e = did(tpadvertise(m->data, FAILS)); tpreturn(TPSUCCESS, e, NULL, 0, 0); }\n"
    "void TAKE(TPSVCINFO *m) { long e = did(tpunadvertise(m->data)); tpreturn(TPSUCCESS, e, NULL, 0, 0); }\n"
    "void NOTHING(TPSVCINFO *m) { long n = 0; (void)m;\n"
    "  n += did(tpadvertise(NULL, ECHO)) == TPEINVAL; n += did(tpadvertise(\"\", ECHO)) == TPEINVAL; n += did(tpadvertise(\"X\", NULL)) == TPEINVAL;\n"
    "  n += did(tpunadvertise(NULL)) == TPEINVAL; n += did(tpunadvertise(\"\")) == TPEINVAL; n += did(tpunadvertise(\".X\")) == TPEINVAL;\n"
    "  tpreturn(TPSUCCESS, n, NULL, 0, 0); }\n"
    "void CALLS(TPSVCINFO *m) { char *b = text_of(\"x\"); long n, e = did(tpcall(m->data, b, 0, &b, &n, 0)); tpfree(b);\n"
    "  tpreturn(TPSUCCESS, e, NULL, 0, 0); }\n"
    "void ONCE(TPSVCINFO *m) { long e = did(tpunadvertise(\"ONCE\")); tpreturn(TPSUCCESS, e, m->data, 0, 0); }\n"
    /* --- a server that calls itself --- */
    "void SELF(TPSVCINFO *m) { char *b; long n, e; int depth = atoi(m->data); if (depth == 0) tpreturn(TPSUCCESS, getpid(), NULL, 0, 0);\n"
    "  b = tpalloc(\"STRING\", NULL, 20); snprintf(b, 20, \"%d\", depth - 1); tpsblktime(700, TPBLK_NEXT | TPBLK_MILLISECOND);\n"
    "  e = did(tpcall(\"SELF\", b, 0, &b, &n, 0)); tpfree(b); if (e != 0) tpreturn(TPFAIL, e, NULL, 0, 0);\n"
    "  tpreturn(tpurcode == getpid() ? TPFAIL : TPSUCCESS, tpurcode, NULL, 0, 0); }\n"
    /* --- AUTOTRAN --- */
    "void MOVE(TPSVCINFO *m) { char *b = text_of(\"\"); long n, e; TPQCTL c; memset(&c, 0, sizeof c);\n"
    "  e = did(tpdequeue(\"QSPACE\", \"Q\", &c, &b, &n, 0)); if (e == 0) e = did(tpenqueue(\"QSPACE\", \"R\", NULL, b, 0, 0)); tpfree(b);\n"
    "  tpreturn(e == 0 && strcmp(m->data, \"fail\") != 0 ? TPSUCCESS : TPFAIL, e, NULL, 0, 0); }\n";

#define ALL "ECHO,FAILS,PID,EXITS,DEEP,RNONE,RBAD,RLEN,RNULL,RODD,ROPEN,THREAD,FREED,GROWS,OTHER,INFO -s HOP1,LAST,FFAIL,FNONE,FNULL,FBAD -s FOPEN,FTYPE,OFFER,OFFEROTHER,TAKE,NOTHING,ONCE,SELF,MOVE -s HEAVY:ECHO"

/* 1 has all; 2 what they call; 3 and more are booted behind TMQUEUE. */
static void
given_servers(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .server_source = source,
		    .server_services = "-s " ALL " -s LEAVE,LEAVE5:LEAVE -s HOP2,SELF,CALLS -s SECOND,PICKY:ECHO -s OFFER2:OFFER -s TAKE2:TAKE "
				       "-s PID3,PID4,PID5,PID6:PID",
		    .server_params = "RESTART=Y GRACE=0 MAXGEN=50 CLOPT=\"-s " ALL " -- first\"\n"
				     "server\tSRVGRP=APP SRVID=2 CLOPT=\"-s HOP2,SELF,CALLS -s SECOND,PICKY:ECHO -s OFFER2:OFFER -s TAKE2:TAKE -- second\"",
		    .servers = "server\tSRVGRP=APP SRVID=3 CLOPT=\"-s PID3:PID -- busy 'two words' -x\"\n"
			       "server\tSRVGRP=APP SRVID=4 CLOPT=\"-s PID4:PID -- moody\"\n"
			       "server\tSRVGRP=APP SRVID=5 RESTART=N CLOPT=\"-s PID5:PID -s LEAVE5:LEAVE -- leaver\"\n"
			       "server\tSRVGRP=APP SRVID=6 RESTART=Y GRACE=0 MAXGEN=50 CLOPT=\"-s PID6:PID -s LEAVE -- returner\"\n",
		    .services = "HEAVY LOAD=70 PRIO=33\nMOVE AUTOTRAN=Y TRANTIME=20\nPICKY BUFTYPE=STRING\n",
		    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\nqcreate R fifo none 5 0 100% 0% \"\"\n" });
}

#define REFUSED(call, error) do { \
	CU_ASSERT_EQUAL(call, -1); \
	CU_ASSERT_EQUAL(tperrno, error); \
} while (0)

static char *buffer;
static long len;

static int
ask(const char *service, const char *words)
{
	char type[9] = "";

	if (buffer == NULL || tptypes(buffer, type, NULL) == -1 || strcmp(type, "STRING") != 0) {
		tpfree(buffer);
		buffer = tpalloc("STRING", NULL, 512);
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
	snprintf(buffer, 512, "%s", words);
	return tpcall((char *)service, buffer, 0, &buffer, &len, 0);
}

static long	/* what it says in tpurcode */
says(const char *service, const char *words)
{
	return GIVEN_CALL_OK(ask(service, words)) ? tpurcode : -1;
}

static int	/* as seen by another client, which lives as long as we do */
other_sees(const char *service)
{
	return (int)says("CALLS", service);
}

static int	/* 0 or tperrno */
i_see(const char *service)
{
	return ask(service, "x") == -1 ? tperrno : 0;
}

static bool
happened_after_its_end(void)
{
	return given_exists(g, "after");
}

static void
nothing_is_on(const char *queue)
{
	char *text = take(queue);

	CU_ASSERT_PTR_NULL(text);
	free(text);
}

static void
is_on(const char *queue, const char *words)
{
	char *text = take(queue);

	CU_ASSERT_PTR_NOT_NULL(text);
	if (text != NULL)
		CU_ASSERT_STRING_EQUAL(text, words);
	free(text);
}

/* --- the beginning --- */

static void
tpsvrinit_gets_what_stands_behind_the_dashes(void)
{
	given_servers();
	CU_ASSERT_TRUE(given_logged(g, "first begins with 2: [server][first]"));
	CU_ASSERT_TRUE(given_logged(g, "busy begins with 4: [server][busy][two words][-x]"));
}

static void	/* It is a member of the application like any other. */
tpsvrinit_may_call_enqueue_and_offer(void)
{
	given_servers();
	CU_ASSERT_TRUE(given_logged(g, "busy: 0 0 0 0 0"));
	CU_ASSERT_EQUAL(says("EARLY", "x"), 42);
	is_on("Q", "from tpsvrinit");
	is_on("Q", "in a transaction");
	nothing_is_on("Q");
	CU_ASSERT_TRUE(given_logged(g, "tpreturn here: 9"));		/* TPEPROTO, and it goes on */
}

static void
tpsvrinit_that_refuses_is_no_boot(void)
{
	struct ran r;

	given_servers();
	CU_ASSERT_EQUAL(i_see("PID4"), 0);
	free(given_ok(g, NULL, "tmshutdown -y -i 4"));
	given_write(g, "refuse", "\n");
	r = given_run(g, NULL, "tmboot -y -i 4");
	CU_ASSERT_NOT_EQUAL(r.status, 0);
	CU_ASSERT_TRUE(has(r.out, "Failed") || has(r.err, "Failed"));
	ran_free(&r);
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:250: ERROR: tpsvrinit() failed"));
	CU_ASSERT_EQUAL(i_see("PID4"), TPENOENT);
	nothing_is_on("Q");				/* the transaction that it left open is rolled back */
	r = given_run(g, NULL, "rm refuse; tmboot -y -i 4");
	CU_ASSERT_EQUAL(r.status, 0);
	ran_free(&r);
	CU_ASSERT_EQUAL(i_see("PID4"), 0);
}

/* --- the end --- */

static int
times_logged(const char *words)
{
	char *log = given_log(g);
	int n = count_of(log, words);

	free(log);
	return n;
}

static void
tpsvrdone_is_called_at_a_shutdown_and_not_at_a_death(void)
{
	pid_t pid;

	given_servers();
	pid = (pid_t)says("PID6", "");
	kill(pid, SIGKILL);
	CU_ASSERT_NOT_EQUAL(says("PID6", ""), pid);	/* waits for the next one */
	CU_ASSERT_EQUAL(times_logged("returner is done"), 0);
	REFUSED(ask("LEAVE", "x"), TPESVCFAIL);
	says("PID6", "");
	CU_ASSERT_EQUAL(times_logged("returner is done"), 0);
	free(given_ok(g, NULL, "tmshutdown -y -i 6"));
	CU_ASSERT_EQUAL(times_logged("returner is done"), 1);
	free(given_ok(g, NULL, "tmboot -y -i 6"));
}

static void
tpexit_fails_and_ends_the_server(void)
{
	long pid;

	given_servers();
	pid = says("PID6", "");
	REFUSED(ask("LEAVE", "with data"), TPESVCFAIL);
	CU_ASSERT_STRING_EQUAL(buffer, "with data");
	CU_ASSERT_EQUAL(tpurcode, 3);
	CU_ASSERT_NOT_EQUAL(says("PID6", ""), pid);		/* RESTART=Y */
	CU_ASSERT_EQUAL(i_see("PID5"), 0);
	REFUSED(ask("LEAVE5", "x"), TPESVCFAIL);
	CU_ASSERT_EQUAL(i_see("PID5"), TPENOENT);		/* RESTART=N */
	free(given_ok(g, NULL, "tmboot -y -i 5"));
	CU_ASSERT_EQUAL(i_see("PID5"), 0);
}

static void
a_service_that_calls_exit_is_a_service_error(void)
{
	long pid;

	given_servers();
	pid = says("PID", "");
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(ask("EXITS", "x"), TPESVCERR);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_NOT_EQUAL(says("PID", ""), pid);
	nothing_is_on("Q");
}

/* --- routines --- */

static void
tpreturn_does_not_come_back(void)
{
	given_servers();
	GIVEN_CALL_OK(ask("DEEP", "from the depth"));
	CU_ASSERT_STRING_EQUAL(buffer, "from the depth");
	CU_ASSERT_EQUAL(tpurcode, 5);
	CU_ASSERT_FALSE(happened_after_its_end());
	REFUSED(ask("RODD", "any other value fails"), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, 8);
	CU_ASSERT_EQUAL(says("RNULL", "x"), 6);			/* no data: the length does not count */
	CU_ASSERT_EQUAL(len, 0);
}

static void	/* ... is TPESVCERR without data, and the transaction can only be rolled back. */
an_end_that_cannot_be(void)
{
	static const char *const services[] = { "RNONE", "RBAD", "RLEN", "ROPEN", "FNONE", "FNULL", "FBAD", "FOPEN", "FTYPE" };

	given_servers();
	for (size_t i = 0; i < UNIT_COUNT(services); i++) {
		GIVEN_CALL_OK(tpbegin(30, 0));
		REFUSED(ask(services[i], "stays"), TPESVCERR);
		CU_ASSERT_STRING_EQUAL(buffer, "stays");
		REFUSED(ask("ECHO", "x"), TPETIME);
		REFUSED(tpcommit(0), TPEABORT);
		nothing_is_on("Q");
		CU_ASSERT_EQUAL(says("ECHO", "goes on"), 42);
	}
}

static void
tpreturn_outside_a_routine_does_nothing(void)
{
	given_servers();
	CU_ASSERT_EQUAL(says("THREAD", "x"), TPEPROTO);
	tperrno = 0;
	tpreturn(TPSUCCESS, 0, NULL, 0, 0);			/* a client */
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	tperrno = 0;
	tpforward("ECHO", NULL, 0, 0);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
}

static void
the_buffer_of_the_request_is_the_routines(void)
{
	given_servers();
	GIVEN_CALL_OK(ask("FREED", "tpfree() leaves it alone"));
	CU_ASSERT_STRING_EQUAL(buffer, "tpfree() leaves it alone");
	GIVEN_CALL_OK(ask("GROWS", "grown"));
	CU_ASSERT_EQUAL(strlen(buffer), 90000);
	CU_ASSERT_EQUAL(len, 90001);
	GIVEN_CALL_OK(ask("OTHER", "x"));
	CU_ASSERT_STRING_EQUAL(buffer, "another buffer");
}

static void
the_request_says_who_and_how(void)
{
	char first[200];

	given_servers();
	GIVEN_CALL_OK(ask("INFO", "12345"));
	CU_ASSERT_EQUAL(strncmp(buffer, "INFO 6 0 0 ", 11), 0);	/* name, length, no flags, no key */
	snprintf(first, sizeof first, "%s", buffer);
	GIVEN_CALL_OK(ask("INFO", "12345"));
	CU_ASSERT_STRING_EQUAL(buffer, first);				/* the same client */
	tpterm();
	GIVEN_CALL_OK(ask("INFO", "12345"));
	CU_ASSERT_STRING_NOT_EQUAL(buffer, first);			/* another one */
}

static long
load_done(void)
{
	char *out = given_ok(g, NULL, "echo psr | tmadmin -r 2>/dev/null | awk '$1 == \"server\" && $4 == 1 { print $6 }'");
	long n = atol(out);

	free(out);
	return n;
}

static void
load_and_prio_are_those_of_services(void)
{
	long before;

	given_servers();
	before = load_done();
	CU_ASSERT_EQUAL(says("HEAVY", "x"), 42);
	CU_ASSERT_EQUAL(tpgprio(), 33);
	CU_ASSERT_EQUAL(load_done(), before + 70);
	CU_ASSERT_EQUAL(says("ECHO", "x"), 42);
	CU_ASSERT_EQUAL(load_done(), before + 120);
}

/* --- forwarding --- */

static void
three_services_answer_as_one(void)
{
	given_servers();
	GIVEN_CALL_OK(ask("HOP1", "hop"));
	CU_ASSERT_STRING_EQUAL(buffer, "hop, one, two");
	CU_ASSERT_EQUAL(tpurcode, 77);
	is_on("Q", "hop, one, two");
	GIVEN_CALL_OK(tpbegin(30, 0));
	GIVEN_CALL_OK(ask("HOP1", "undone"));
	GIVEN_CALL_OK(tpabort(0));
	nothing_is_on("Q");
	GIVEN_CALL_OK(tpbegin(30, 0));
	GIVEN_CALL_OK(ask("HOP1", "done"));
	nothing_is_on("Q");
	GIVEN_CALL_OK(tpcommit(0));
	is_on("Q", "done, one, two");
	CU_ASSERT_FALSE(happened_after_its_end());
}

static void
the_failure_of_the_last_is_the_callers(void)
{
	given_servers();
	GIVEN_CALL_OK(tpbegin(30, 0));
	REFUSED(ask("FFAIL", "the data of FAILS"), TPESVCFAIL);
	CU_ASSERT_STRING_EQUAL(buffer, "the data of FAILS");
	CU_ASSERT_EQUAL(tpurcode, 13);
	REFUSED(tpcommit(0), TPEABORT);
	nothing_is_on("Q");
}

static void
a_request_without_an_answer_is_forwarded_too(void)
{
	char *text;

	given_servers();
	snprintf(buffer, 512, "quietly");
	CU_ASSERT_EQUAL(tpacall("HOP1", buffer, 0, TPNOREPLY), 0);
	CU_ASSERT_PTR_NOT_NULL(text = take_within("Q", 20));
	if (text != NULL)
		CU_ASSERT_STRING_EQUAL(text, "quietly, one, two");
	free(text);
}

/* --- services come and go --- */

static void	/* ... and who runs already finds them, and finds that they are gone, at either server. */
offered_at_run_time(void)
{
	given_servers();
	CU_ASSERT_EQUAL(i_see("LATER"), TPENOENT);
	CU_ASSERT_EQUAL(other_sees("LATER"), TPENOENT);
	CU_ASSERT_EQUAL(says("OFFER", "LATER"), 0);
	CU_ASSERT_EQUAL(says("OFFER", "LATER"), 0);		/* with the same function: it is offered */
	CU_ASSERT_EQUAL(i_see("LATER"), 0);
	CU_ASSERT_EQUAL(other_sees("LATER"), 0);
	CU_ASSERT_EQUAL(says("TAKE", "LATER"), 0);
	CU_ASSERT_EQUAL(i_see("LATER"), TPENOENT);
	CU_ASSERT_EQUAL(other_sees("LATER"), TPENOENT);
	CU_ASSERT_EQUAL(says("OFFER2", "LATER"), 0);
	CU_ASSERT_EQUAL(i_see("LATER"), 0);
	CU_ASSERT_EQUAL(says("OFFER", "LATER"), 0);		/* by both */
	CU_ASSERT_EQUAL(says("TAKE2", "LATER"), 0);
	CU_ASSERT_EQUAL(i_see("LATER"), 0);
	CU_ASSERT_EQUAL(other_sees("LATER"), 0);
	CU_ASSERT_EQUAL(says("TAKE", "LATER"), 0);
	CU_ASSERT_EQUAL(i_see("LATER"), TPENOENT);
}

static void
what_cannot_be_offered(void)
{
	given_servers();
	CU_ASSERT_EQUAL(says("OFFEROTHER", "ECHO"), TPEMATCH);
	CU_ASSERT_EQUAL(says("ECHO", "as before"), 42);
	CU_ASSERT_EQUAL(says("OFFER", ".HIDDEN"), TPEINVAL);
	CU_ASSERT_EQUAL(says("NOTHING", "x"), 6);
	CU_ASSERT_EQUAL(says("TAKE", "NEVER"), TPENOENT);
	CU_ASSERT_EQUAL(says("TAKE", "SECOND"), TPENOENT);	/* another server's */
	REFUSED(tpadvertise("X", (void (*)(TPSVCINFO *))abort), TPEPROTO);	/* a client */
	REFUSED(tpunadvertise("ECHO"), TPEPROTO);
	REFUSED(tpadvertisex("X", (void (*)(TPSVCINFO *))abort, TPSINGLETON), TPENOSINGLETON);
	REFUSED(tpadvertisex("X", (void (*)(TPSVCINFO *))abort, TPSECONDARYRQ), TPENOSECONDARYRQ);
	REFUSED(tpadvertisex("X", (void (*)(TPSVCINFO *))abort, 0x40), TPEINVAL);
}

static void
a_service_may_take_itself_back(void)
{
	given_servers();
	GIVEN_CALL_OK(ask("ONCE", "and answers"));
	CU_ASSERT_EQUAL(tpurcode, 0);
	CU_ASSERT_STRING_EQUAL(buffer, "and answers");
	CU_ASSERT_EQUAL(i_see("ONCE"), TPENOENT);
}

static void	/* Silently, by everybody in the same place. */
names_are_cut_at_127(void)
{
	char name[201], cut[128];
	char *out;

	given_servers();
	memset(name, 'N', 200);
	name[200] = '\0';
	snprintf(cut, sizeof cut, "%.127s", name);
	CU_ASSERT_EQUAL(says("OFFER", name), 0);
	CU_ASSERT_EQUAL(says(name, "x"), 42);
	CU_ASSERT_EQUAL(says(cut, "x"), 42);
	cut[126] = '\0';
	CU_ASSERT_EQUAL(i_see(cut), TPENOENT);
	out = given_ok(g, NULL, "echo psc | tmadmin -r");
	CU_ASSERT_TRUE(has(out, "NNNN"));
	free(out);
	CU_ASSERT_EQUAL(says("TAKE", name), 0);
	CU_ASSERT_EQUAL(i_see(name), TPENOENT);
}

/* --- servers that call --- */

static void	/* Its own service, served by another server; where there is none, its time ends. */
a_service_calls_itself_in_another_server(void)
{
	given_servers();
	for (int i = 0; i < 4; i++)
		GIVEN_CALL_OK(ask("SELF", "1"));
	REFUSED(ask("SELF", "2"), TPESVCFAIL);
	GIVEN_CALL_OK(ask("SELF", "1"));
}

static void
a_service_with_autotran_moves_a_message(void)
{
	given_servers();
	put("Q", "moved");
	CU_ASSERT_EQUAL(says("MOVE", "x"), 0);
	is_on("R", "moved");
	put("Q", "stays");
	REFUSED(ask("MOVE", "fail"), TPESVCFAIL);
	nothing_is_on("R");
	is_on("Q", "stays");
	REFUSED(ask("MOVE", "nothing there"), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, TPEDIAGNOSTIC);
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	CU_ASSERT_FALSE(happened_after_its_end());
	tpterm();
	given_done(g);
	g = NULL;
}

/* --- a limit --- */

static void
maxservices_holds_and_frees(void)
{
	char name[16], first[16] = "";
	int n = 0;

	g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-s OFFER,TAKE,ECHO -s " ALL,
	    .server_params = "CLOPT=\"-s OFFER,TAKE,ECHO\"", .resources = "MAXSERVICES 20\n", .no_queue_group = true });
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "SERVICE%d", i);
		if (says("OFFER", name) == TPELIMIT)
			break;
		snprintf(first, sizeof first, "%s", name);
		n++;
	}
	CU_ASSERT_TRUE(n > 0 && n <= 17);
	CU_ASSERT_EQUAL(i_see(name), TPENOENT);
	CU_ASSERT_EQUAL(i_see(first), 0);
	CU_ASSERT_EQUAL(says("TAKE", first), 0);
	CU_ASSERT_EQUAL(says("OFFER", name), 0);
	CU_ASSERT_EQUAL(i_see(name), 0);
	the_system_ends_cleanly();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(tpsvrinit_gets_what_stands_behind_the_dashes),
		UNIT(tpsvrinit_may_call_enqueue_and_offer),
		UNIT(tpsvrinit_that_refuses_is_no_boot),
		UNIT(tpsvrdone_is_called_at_a_shutdown_and_not_at_a_death),
		UNIT(tpexit_fails_and_ends_the_server),
		UNIT(a_service_that_calls_exit_is_a_service_error),
		UNIT(tpreturn_does_not_come_back),
		UNIT(an_end_that_cannot_be),
		UNIT(tpreturn_outside_a_routine_does_nothing),
		UNIT(the_buffer_of_the_request_is_the_routines),
		UNIT(the_request_says_who_and_how),
		UNIT(load_and_prio_are_those_of_services),
		UNIT(three_services_answer_as_one),
		UNIT(the_failure_of_the_last_is_the_callers),
		UNIT(a_request_without_an_answer_is_forwarded_too),
		UNIT(offered_at_run_time),
		UNIT(what_cannot_be_offered),
		UNIT(a_service_may_take_itself_back),
		UNIT(names_are_cut_at_127),
		UNIT(a_service_calls_itself_in_another_server),
		UNIT(a_service_with_autotran_moves_a_message),
		UNIT(the_system_ends_cleanly),
		UNIT(maxservices_holds_and_frees),
	};

	return unit_run("story: serving", tests, UNIT_COUNT(tests));
}
