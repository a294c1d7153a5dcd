/*
 * story_threads - servers that serve on several threads, and the order in which requests wait for a server; real processes.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

/*
 * `server`: MEET n waits until n requests are in it, so that they only go on if they are served at once.  HOLD waits for a file.
 * NOTE writes down that it was served.
 */
static const char source[] =
    "#include <atmi.h>\n#include <userlog.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <time.h>\n#include <unistd.h>\n"
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\nstatic pthread_cond_t came = PTHREAD_COND_INITIALIZER;\n"
    "static int in, met, now, most, inits, dones;\nstatic __thread int begun;\n"
    "int tpsvrinit(int argc, char **argv) { TPCONTEXT_T c; (void)argc; (void)argv; tpgetctxt(&c, 0);\n"
    "  userlog(\"init in context %d\", (int)c); return 0; }\n"
    "void tpsvrdone(void) { userlog(\"done after %d of %d\", dones, inits); }\n"
    "int tpsvrthrinit(int argc, char **argv) { if (argc > 1 && access(argv[1], F_OK) == 0) return -1;\n"
    "  pthread_mutex_lock(&lock); inits++; pthread_mutex_unlock(&lock); begun++;\n"
    "  tpbegin(60, 0); return 0; } /* what is left open is ended */\n"
    "void tpsvrthrdone(void) { pthread_mutex_lock(&lock); dones++; pthread_mutex_unlock(&lock);\n"
    "  userlog(\"thread done, begun %d times\", begun); }\n"
    "static int meet(int n) { struct timespec until; int generation, rc = 0, all; clock_gettime(CLOCK_REALTIME, &until);\n"
    "  until.tv_sec += n > 1000 ? 1 : 60; n %= 1000; pthread_mutex_lock(&lock); generation = met;\n"
    "  if (++in == n) { in = 0; met++; pthread_cond_broadcast(&came); }\n"
    "  while (generation == met && rc == 0) rc = pthread_cond_timedwait(&came, &lock, &until);\n"
    "  if (generation == met) in--; all = generation != met; pthread_mutex_unlock(&lock); return all; }\n"
    "static void hold(const char *file) { while (access(file, F_OK) != 0) usleep(1000); }\n"
    "static void say(TPSVCINFO *m, const char *text) { char *b = tpalloc(\"STRING\", NULL, 600); (void)m; snprintf(b, 600, \"%s\", text);\n"
    "  tpreturn(TPSUCCESS, 0, b, 0, 0); }\n"
    "void MEET(TPSVCINFO *m) { int all = meet(atoi(m->data)); tpreturn(all ? TPSUCCESS : TPFAIL, 0, NULL, 0, 0); }\n"
    "void CROWD(TPSVCINFO *m) { (void)m; pthread_mutex_lock(&lock); if (++now > most) most = now; pthread_mutex_unlock(&lock);\n"
    "  meet(4); pthread_mutex_lock(&lock); now--; pthread_mutex_unlock(&lock); tpreturn(TPSUCCESS, most, NULL, 0, 0); }\n"
    "void WHO(TPSVCINFO *m) { char t[100]; TPCONTEXT_T c = -7; meet(atoi(m->data)); tpgetctxt(&c, 0); userlog(\"who\");\n"
    "  snprintf(t, sizeof t, \"%d %d %d\", (int)c, begun, tpgetlev()); say(m, t); }\n"
    "void COUNTS(TPSVCINFO *m) { char t[100]; snprintf(t, sizeof t, \"%d %d\", inits, dones); say(m, t); }\n"
    "void HOLD(TPSVCINFO *m) { FILE *f = fopen(\"held\", \"a\"); if (f) fclose(f); hold(m->data); tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void NOTE(TPSVCINFO *m) { FILE *f = fopen(\"notes\", \"a\"); fprintf(f, \"%s(%d) \", m->data, tpgprio()); fclose(f);\n"
    "  tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void EXIT(TPSVCINFO *m) { (void)m; tpreturn(TPEXIT, 1, NULL, 0, 0); }\n"
    "static int calls(int n) { int cd[60], i, got = 0; char *b = tpalloc(\"STRING\", NULL, 10); long l;\n"
    "  for (i = 0; i < n; i++) if ((cd[i] = tpacall(\"ONE\", NULL, 0, 0)) == -1) break;\n"
    "  if (tpacall(\"ONE\", NULL, 0, 0) != -1 || tperrno != TPELIMIT) return -1;\n"
    "  meet(2); while (i-- > 0) got += tpgetrply(&cd[i], &b, &l, 0) == 0; tpfree(b); return got; }\n"
    "void FIFTY(TPSVCINFO *m) { int n; (void)m; n = calls(50); tpreturn(TPSUCCESS, n, NULL, 0, 0); }\n"
    "void ONE(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, 1, NULL, 0, 0); }\n"
    "void AUTOPUT(TPSVCINFO *m) { int good = atoi(m->data) % 2 == 0, rc; meet(4);\n"
    "  rc = tpgetlev() == 1 ? tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, 0, 0) : -1; meet(4);\n"
    "  tpreturn(rc == 0 && good ? TPSUCCESS : TPFAIL, rc, NULL, 0, 0); }\n"
    "void AUTOFORW(TPSVCINFO *m) { if (tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, 0, 0) == -1) tpreturn(TPFAIL, tperrno, NULL, 0, 0);\n"
    "  tpforward(atoi(m->data) % 2 == 0 ? \"MEET4\" : \"FAIL\", m->data, 0, 0); }\n"
    "void MEET4(TPSVCINFO *m) { int all; (void)m; all = meet(4); tpreturn(all ? TPSUCCESS : TPFAIL, 0, NULL, 0, 0); }\n"
    "void FAIL(TPSVCINFO *m) { (void)m; tpreturn(TPFAIL, 5, NULL, 0, 0); }\n"
    "void FORW(TPSVCINFO *m) { tpforward(\"MEET4\", m->data, 0, 0); }\n"
    "struct help { TPCONTEXT_T c; char *data; int rc, lev, outside; };\n"
    "static void *help(void *arg) { struct help *h = arg; TPCONTEXT_T c; h->outside = tpgetctxt(&c, 0) == 0 && c == TPNULLCONTEXT;\n"
    "  if (tpsetctxt(h->c, 0) == -1) { h->rc = tperrno; return NULL; }\n"
    "  h->lev = tpgetlev(); h->rc = tpenqueue(\"QSPACE\", \"Q\", NULL, h->data, 0, 0) == -1 ? tperrno : 0;\n"
    "  tpreturn(TPFAIL, 99, NULL, 0, 0); /* not its to say */ if (tperrno != TPEPROTO) h->rc = 1000; return NULL; }\n"
    "void HELPED(TPSVCINFO *m) { struct help h = { .data = m->data, .rc = -1 }; pthread_t t; tpgetctxt(&h.c, 0);\n"
    "  pthread_create(&t, NULL, help, &h); pthread_join(t, NULL);\n"
    "  tpreturn(h.rc == 0 && h.outside ? TPSUCCESS : TPFAIL, h.lev * 1000 + h.rc, NULL, 0, 0); }\n"
    "void STRAY(TPSVCINFO *m) { (void)m; tpsetctxt(TPNULLCONTEXT, 0); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void OFFER(TPSVCINFO *m) { int rc; meet(4); rc = tpadvertise(m->data, ONE); tpreturn(rc ? TPFAIL : TPSUCCESS, tperrno, NULL, 0, 0); }\n"
    "void TAKE(TPSVCINFO *m) { int rc; meet(4); rc = tpunadvertise(m->data); tpreturn(rc ? TPFAIL : TPSUCCESS, tperrno, NULL, 0, 0); }\n";

#define SERVICES "-s MEET,CROWD,WHO,COUNTS,HOLD,NOTE,EXIT,FIFTY,ONE,AUTOPUT,AUTOFORW,MEET4,FAIL,FORW,HELPED,STRAY,OFFER,TAKE"

static void
given_threads(const char *params)
{
	char all[500];

	snprintf(all, sizeof all, "RESTART=Y MAXGEN=20 GRACE=0 CLOPT=\"-A -- no_more\" %s", params);
	g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-t " SERVICES, .server_params = all,
	    .services = "AUTOPUT AUTOTRAN=Y TRANTIME=60\nAUTOFORW AUTOTRAN=Y TRANTIME=60\n",
	    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

static void	/* One thread, and a second server with another queue for what is to happen meanwhile. */
given_one_thread(void)
{
	g = given_system(&(struct given_conf){ .server_source = source, .server_services = SERVICES,
	    .server_params = "RESTART=Y MAXGEN=20 GRACE=0 MAXDISPATCHTHREADS=4 CLOPT=\"-A\"",
	    .services = "NOTE PRIO=30\n", .no_queue_group = true });
}

static char *
text_of(const char *text)
{
	char *b = tpalloc("STRING", NULL, 512);

	snprintf(b, 512, "%s", text);
	return b;
}

static int
send(const char *service, const char *text, long flags)
{
	char *b = text_of(text);
	int cd = tpacall((char *)service, b, 0, flags);

	if (cd == -1)
		printf("tpacall %s: %s\n", service, tpstrerror(tperrno));
	tpfree(b);
	CU_ASSERT_NOT_EQUAL(cd, -1);
	return cd;
}

static int	/* 0 or tperrno; what it says in *text, to be given to tpfree() */
answer(int cd, char **text)
{
	char *b = text_of("");
	long n;
	int rc = tpgetrply(&cd, &b, &n, 0) == -1 ? tperrno : 0;

	if (text != NULL)
		*text = b;
	else
		tpfree(b);
	return rc;
}

static int
call(const char *service, const char *text)
{
	char *b = text_of(text);
	long n;
	int rc = tpcall((char *)service, b, 0, &b, &n, 0) == -1 ? tperrno : 0;

	tpfree(b);
	return rc;
}

static void	/* n at once, all with the same request, and all end well */
all_do(int n, const char *service, const char *text)
{
	int cd[50];

	for (int i = 0; i < n; i++)
		cd[i] = send(service, text, 0);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(answer(cd[i], NULL), 0);
}

static bool
is_there(void *name)
{
	return given_exists(g, name);
}

static void	/* The server is at it. */
wait_for_file(const char *name)
{
	CU_ASSERT_TRUE(wait_until(is_there, (void *)(uintptr_t)name, 20));
}

static void
forget_file(const char *name)
{
	char path[4200];

	snprintf(path, sizeof path, "%s/%s", given_dir(g), name);
	unlink(path);
}

static void
requests_are_served_at_the_same_time(void)
{
	given_threads("MINDISPATCHTHREADS=1 MAXDISPATCHTHREADS=8");
	all_do(8, "MEET", "8");
	all_do(8, "MEET", "8");
	all_do(2, "MEET", "2");
	CU_ASSERT_EQUAL(given_count(g, "server"), 1);
	CU_ASSERT_FALSE(given_logged(g, "LIBTUX_CAT:5093"));
	tpterm();
	given_done(g);
}

static void	/* Twelve requests, four threads: never five at once. */
no_more_are_served_at_once_than_there_may_be_threads(void)
{
	int cd[12];

	given_threads("MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=4");
	for (int i = 0; i < 12; i++)
		cd[i] = send("CROWD", "", 0);
	for (int i = 0; i < 12; i++) {
		CU_ASSERT_EQUAL(answer(cd[i], NULL), 0);
		CU_ASSERT_EQUAL(tpurcode, 4);
	}
	tpterm();
	given_done(g);
}

static void	/* Of four threads at once. */
four_contexts(int seen[4])
{
	int cd[4], begun, lev;
	char *text;

	for (int i = 0; i < 4; i++)
		cd[i] = send("WHO", "4", 0);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(answer(cd[i], &text), 0);
		CU_ASSERT_EQUAL(sscanf(text, "%d %d %d", &seen[i], &begun, &lev), 3);
		CU_ASSERT_TRUE(seen[i] > 1);
		CU_ASSERT_EQUAL(begun, 1);
		CU_ASSERT_EQUAL(lev, 0);
		for (int k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(seen[k], seen[i]);
		tpfree(text);
	}
}

static void
each_thread_has_a_context_of_its_own_and_is_begun_and_ended_once(void)
{
	int cd[1], seen[4] = { 0 };
	char *text, *log;

	given_threads("MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=4");
	cd[0] = send("COUNTS", "", 0);
	CU_ASSERT_EQUAL(answer(cd[0], &text), 0);
	CU_ASSERT_STRING_EQUAL(text, "2 0");
	tpfree(text);
	four_contexts(seen);
	CU_ASSERT_TRUE(given_logged(g, "init in context 1"));
	log = given_log(g);
	for (int i = 0; i < 4; i++) {
		char piece[40];

		snprintf(piece, sizeof piece, ".%d: who", seen[i]);
		CU_ASSERT_TRUE(count_of(log, piece) > 0);
	}
	free(log);
	CU_ASSERT_EQUAL(call("STRAY", ""), 0);		/* one that leaves its context behind gets it back */
	four_contexts(seen);
	tpterm();
	given_shutdown(g);
	log = given_log(g);
	CU_ASSERT_EQUAL(count_of(log, "thread done, begun 1 times"), 4);
	CU_ASSERT_EQUAL(count_of(log, "done after 4 of 4"), 1);
	free(log);
	given_done(g);
}

static void
each_thread_has_fifty_calls(void)
{
	int cd[2];

	given_threads("MAXDISPATCHTHREADS=4");
	for (int i = 0; i < 2; i++)
		cd[i] = send("FIFTY", "", 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(answer(cd[i], NULL), 0);
		CU_ASSERT_EQUAL(tpurcode, 50);
	}
	tpterm();
	given_done(g);
}

static void	/* Also in its caller's transaction; what it makes of tpreturn() is nothing. */
thread_of_a_service_works_in_the_services_context(void)
{
	char *text;

	given_threads("MAXDISPATCHTHREADS=4");
	CU_ASSERT_EQUAL(call("HELPED", "outside"), 0);
	CU_ASSERT_EQUAL(tpurcode, 0);
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "outside");
	free(text);
	CU_ASSERT_EQUAL(tpbegin(60, 0), 0);
	CU_ASSERT_EQUAL(call("HELPED", "inside"), 0);
	CU_ASSERT_EQUAL(tpurcode, 1000);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_PTR_NULL(take("Q"));
	tpterm();
	given_done(g);
}

static int	/* how many of 0..3 ended well */
even_ones(const char *service)
{
	int cd[4], good = 0;
	char text[8];

	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof text, "%d", i);
		cd[i] = send(service, text, 0);
	}
	for (int i = 0; i < 4; i++) {
		int rc = answer(cd[i], NULL);

		CU_ASSERT_EQUAL(rc, i % 2 == 0 ? 0 : TPESVCFAIL);
		good += rc == 0;
	}
	return good;
}

static void	/* Two are committed and two rolled back, all at once. */
transactions_of_requests_are_their_own(void)
{
	given_threads("MAXDISPATCHTHREADS=4");
	CU_ASSERT_EQUAL(even_ones("AUTOPUT"), 2);
	CU_ASSERT_EQUAL(depth(g, "Q"), 2);
	CU_ASSERT_EQUAL(even_ones("AUTOPUT"), 2);
	CU_ASSERT_EQUAL(depth(g, "Q"), 4);
	tpterm();
	given_done(g);
}

static void	/* Forwarded to threads that wait for each other, with the transaction of the one that forwards. */
requests_are_forwarded_at_the_same_time(void)
{
	int cd[6];
	char text[8];

	given_threads("MAXDISPATCHTHREADS=8");
	all_do(4, "FORW", "x");
	for (int i = 0; i < 6; i++) {		/* 0 2 4 and 5, of which 5 fails */
		snprintf(text, sizeof text, "%d", i);
		cd[i] = send("AUTOFORW", text, 0);
	}
	CU_ASSERT_EQUAL(call("MEET4", ""), 0);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(answer(cd[i], NULL), i % 2 == 0 ? 0 : TPESVCFAIL);
	CU_ASSERT_EQUAL(depth(g, "Q"), 3);
	tpterm();
	given_done(g);
}

static void
any_thread_offers_and_takes_back_services(void)
{
	int cd[4];
	char name[8];

	given_threads("MAXDISPATCHTHREADS=4");
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "NEW%d", i % 2);
		cd[i] = send("OFFER", name, 0);
	}
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(answer(cd[i], NULL), 0);
	CU_ASSERT_EQUAL(call("NEW0", ""), 0);
	CU_ASSERT_EQUAL(call("NEW1", ""), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "NEW%d", i % 2);
		cd[i] = send("TAKE", name, 0);
	}
	for (int i = 0, gone = 0; i < 4; i++) {
		gone += answer(cd[i], NULL) == 0;
		CU_ASSERT_TRUE(i < 3 || gone == 2);
	}
	CU_ASSERT_EQUAL(call("NEW0", ""), TPENOENT);
	tpterm();
	given_done(g);
}

static bool
has_new_server(void *old)
{
	pid_t pid = given_pid(g, "server", 0);

	return pid > 0 && pid != *(pid_t *)old;
}

static void	/* What was queued is refused, what another thread is at gets its answer; then a new one serves. */
tpexit_lets_the_other_threads_finish(void)
{
	pid_t old;
	int held, exits;

	given_threads("MAXDISPATCHTHREADS=4");
	old = given_pid(g, "server", 0);
	held = send("HOLD", "go", 0);
	wait_for_file("held");
	exits = send("EXIT", "", 0);
	CU_ASSERT_EQUAL(answer(exits, NULL), TPESVCFAIL);
	CU_ASSERT_EQUAL(tpurcode, 1);
	CU_ASSERT_EQUAL(given_pid(g, "server", 0), old);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(answer(held, NULL), 0);
	CU_ASSERT_EQUAL(tpurcode, old);
	CU_ASSERT_TRUE(wait_until(has_new_server, &old, 20));
	CU_ASSERT_EQUAL(call("ONE", ""), 0);
	tpterm();
	given_done(g);
}

static void
server_whose_threads_cannot_begin_is_not_booted(void)
{
	struct ran r;

	g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-t " SERVICES, .not_booted = true,
	    .server_params = "MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=4 CLOPT=\"-A -- no_more\"", .no_queue_group = true });
	given_write(g, "no_more", "x");
	r = given_run(g, NULL, "tmboot -y");
	CU_ASSERT_NOT_EQUAL(r.status, 0);
	ran_free(&r);
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5203: ERROR: tpsvrthrinit() failed"));
	given_done(g);
}

static bool
is_logged(void *text)
{
	return given_logged(g, text);
}

static void	/* Both threads are held; a third cannot begin, and what waits for it is served when one is free. */
thread_that_cannot_begin_later_is_not_added(void)
{
	char failed[] = "LIBTUX_CAT:5203: ERROR: tpsvrthrinit() failed";
	int held[2], waits;

	given_threads("MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=4");
	given_write(g, "no_more", "x");
	for (int i = 0; i < 2; i++)
		held[i] = send("HOLD", "go", 0);
	waits = send("ONE", "", 0);
	CU_ASSERT_TRUE(wait_until(is_logged, failed, 20));
	given_write(g, "go", "x");
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(answer(held[i], NULL), 0);
	CU_ASSERT_EQUAL(answer(waits, NULL), 0);
	tpterm();
	given_done(g);
}

/* ---- one thread, and the order in which requests wait ---- */

static void
without_t_one_thread_serves(void)
{
	int cd[2];

	given_one_thread();
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5093: WARN: MAXDISPATCHTHREADS=4"));
	for (int i = 0; i < 2; i++)
		cd[i] = send("MEET", "1002", 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(answer(cd[i], NULL), TPESVCFAIL);
	tpterm();
	given_done(g);
}

static int
hold(void)
{
	int cd;

	forget_file("go");
	forget_file("held");
	forget_file("notes");
	cd = send("HOLD", "go", 0);
	wait_for_file("held");
	return cd;
}

static void
note_with(int prio, const char *text, int *cd)
{
	if (prio != 0)
		CU_ASSERT_EQUAL(tpsprio(prio, TPABSOLUTE), 0);
	*cd = send("NOTE", text, 0);
}

static void	/* HOLD was the first; of those that wait the ninth is the oldest, as the tenth that was taken. */
requests_wait_in_the_order_of_their_priorities(void)
{
	static const struct { int prio; const char *text; } sent[] = { { 1, "a" }, { 50, "b" }, { 0, "c" }, { 100, "d" }, { 50, "e" },
		{ 99, "f" }, { 2, "g" }, { 30, "h" }, { 60, "i" }, { 3, "j" }, { 4, "k" } };
	int held, cd[11];
	char *text;

	given_one_thread();
	held = hold();
	for (int i = 0; i < 11; i++)
		note_with(sent[i].prio, sent[i].text, &cd[i]);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(answer(held, NULL), 0);
	for (int i = 0; i < 11; i++)
		CU_ASSERT_EQUAL(answer(cd[i], NULL), 0);
	CU_ASSERT_STRING_EQUAL(text = given_read(g, "notes"),
	    "d(100) f(99) i(60) b(50) e(50) c(30) h(30) k(4) a(1) j(3) g(2) ");
	free(text);
	tpterm();
	given_done(g);
}

static void	/* In a child: it asks and is gone. */
ask_and_die(const char *text, bool in_tran)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		char *b = text_of(text);

		_exit((in_tran && tpbegin(60, 0) == -1) || tpacall((char *)"NOTE", b, 0, 0) == -1);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
}

static void
request_that_nobody_waits_for_any_more_is_not_carried_out(void)
{
	char *text;
	int held, late;

	given_one_thread();
	held = hold();
#ifndef __SANITIZE_THREAD__
	ask_and_die("dead", true);
	ask_and_die("unasked", false);	/* it is done all the same, as with Tuxedo */
#endif
	CU_ASSERT_EQUAL(tpsblktime(1, TPBLK_NEXT), 0);
	CU_ASSERT_EQUAL(call("NOTE", "late"), TPETIME);
	CU_ASSERT_EQUAL(tpsblktime(100, TPBLK_NEXT | TPBLK_MILLISECOND), 0);
	CU_ASSERT_EQUAL(call("ONE", ""), TPETIME);	/* so much later even the server's clock says so */
	CU_ASSERT_EQUAL(send("NOTE", "noreply", TPNOREPLY), 0);
	late = send("NOTE", "waits", 0);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(answer(held, NULL), 0);
	CU_ASSERT_EQUAL(answer(late, NULL), 0);
	text = given_read(g, "notes");
	CU_ASSERT_TRUE(has(text, "noreply(30) waits(30) "));
#ifndef __SANITIZE_THREAD__
	CU_ASSERT_TRUE(has(text, "unasked(30) noreply"));
#endif
	CU_ASSERT_FALSE(has(text, "dead") || has(text, "late"));
	free(text);
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5200: WARN: a request of service NOTE is not carried out: its caller's time was over"));
#ifndef __SANITIZE_THREAD__
	CU_ASSERT_TRUE(given_logged(g, "its caller had left before its turn came"));
#endif
	tpterm();
	given_done(g);
}

/* ---- the end ---- */

enum { CALLERS = 4 };

static void	/* In a child: calls until nobody offers the service.  Any other failure is one. */
call_until_gone(void)
{
	int rc, n = 0;

	while ((rc = call("ONE", "")) == 0)
		if (n++ == 50)
			given_write(g, "loaded", "x");
	_exit(rc == TPENOENT ? 0 : rc);
}

static void
server_that_is_stopped_under_load_answers_what_it_has(void)
{
	pid_t pid[CALLERS];
	char *log;

	given_threads("MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=4");
	for (int i = 0; i < CALLERS; i++)
		if ((pid[i] = fork()) == 0)
			call_until_gone();
	wait_for_file("loaded");
	free(given_ok(g, NULL, "tmshutdown -y -i 1 -g APP"));
	for (int i = 0; i < CALLERS; i++) {
		int status = -1;

		waitpid(pid[i], &status, 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	log = given_log(g);
	CU_ASSERT_EQUAL(count_of(log, "thread done, begun 1 times"), count_of(log, "thread done"));
	CU_ASSERT_EQUAL(count_of(log, "done after"), 1);
	free(log);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(requests_are_served_at_the_same_time),
		UNIT(no_more_are_served_at_once_than_there_may_be_threads),
		UNIT(each_thread_has_a_context_of_its_own_and_is_begun_and_ended_once),
		UNIT(each_thread_has_fifty_calls),
		UNIT(thread_of_a_service_works_in_the_services_context),
		UNIT(transactions_of_requests_are_their_own),
		UNIT(requests_are_forwarded_at_the_same_time),
		UNIT(any_thread_offers_and_takes_back_services),
		UNIT(tpexit_lets_the_other_threads_finish),
		UNIT(server_whose_threads_cannot_begin_is_not_booted),
		UNIT(thread_that_cannot_begin_later_is_not_added),
		UNIT(without_t_one_thread_serves),
		UNIT(requests_wait_in_the_order_of_their_priorities),
		UNIT(request_that_nobody_waits_for_any_more_is_not_carried_out),
		UNIT(server_that_is_stopped_under_load_answers_what_it_has),
	};

	return unit_run("story: threads", tests, UNIT_COUNT(tests));
}
