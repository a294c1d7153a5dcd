/*
 * story_waiting - a dequeue with TPQWAIT: what wakes it, what ends it, and what becomes of a message meanwhile.
 *
 * The waiting is done by threads with contexts of their own, or by a program that can be killed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "given.h"

static void
join_as_one_of_many(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	memset(init, 0, sizeof *init);
	init->flags = TPMULTICONTEXTS;
	GIVEN_CALL_OK(tpinit(init));
	tpfree((char *)init);
}

static struct given *
given_waiting_room(void)
{
	struct given *g = given_system(&(struct given_conf){
	    .tmqueue = "RESTART=Y GRACE=0 MAXGEN=10 CLOPT=\"-s QSPACE:TMQUEUE -- -t 3\"", .space_options = "-A 20", .queues =
	    "qcreate ROOM fifo none 5 0 100% 0% \"\"\nqcreate OTHER fifo none 0 0 100% 0% \"\"\n" });

	join_as_one_of_many();
	return g;
}

struct waiter {
	pthread_t thread;
	char corrid;		/* 0: any */
	char text[64];		/* what came */
	int error;		/* tperrno */
	long diagnostic;
	double took;
	atomic_int asked;
};

static void *
wait_in_a_thread(void *arg)
{
	struct waiter *w = arg;
	TPQCTL ctl = { .flags = TPQWAIT | (w->corrid != 0 ? TPQGETBYCORRID : 0) };
	char *data = tpalloc("STRING", NULL, 64);
	double start = now_s();
	long len;

	join_as_one_of_many();
	memset(ctl.corrid, w->corrid, TMCORRIDLEN);
	w->asked = 1;
	if (tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME) == -1) {
		w->error = tperrno;
		w->diagnostic = ctl.diagnostic;
	} else
		snprintf(w->text, sizeof w->text, "%s", data);
	w->took = now_s() - start;
	tpfree(data);
	tpterm();
	return NULL;
}

static void
start_waiting(struct waiter *w)
{
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_in_a_thread, w), 0);
	for (double end = now_s() + 20; !w->asked && now_s() < end;)
		nap_ms(5);
}

static void
a_message_that_arrives_ends_the_wait(void)
{
	struct given *g = given_waiting_room();
	struct waiter w = { 0 };

	start_waiting(&w);
	put("OTHER", "not this one");
	put("ROOM", "this one");
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "this one");
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	given_done(g);
}

static void
four_who_wait_get_four_messages(void)
{
	static const char *texts[] = { "spades", "hearts", "diamonds", "clubs" };
	struct given *g = given_waiting_room();
	struct waiter w[4] = { 0 };
	int i, k, found = 0;

	for (i = 0; i < 4; i++)
		start_waiting(&w[i]);
	for (i = 0; i < 4; i++)
		put("ROOM", texts[i]);
	for (i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
	for (k = 0; k < 4; k++)
		for (i = 0; i < 4; i++)
			found += strcmp(w[i].text, texts[k]) == 0;
	CU_ASSERT_EQUAL(found, 4);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	given_done(g);
}

static void
a_wait_by_correlation_is_ended_by_its_message_only(void)
{
	struct given *g = given_waiting_room();
	struct waiter a = { .corrid = 'a' }, b = { .corrid = 'b' };
	TPQCTL ctl = { .flags = TPQCORRID };
	char *data = tpalloc("STRING", NULL, 64);

	start_waiting(&a);
	start_waiting(&b);
	put("ROOM", "no correlation");
	memset(ctl.corrid, 'b', TMCORRIDLEN);
	snprintf(data, 64, "for b");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", &ctl, data, 0, 0));
	pthread_join(b.thread, NULL);
	CU_ASSERT_STRING_EQUAL(b.text, "for b");
	pthread_join(a.thread, NULL);			/* its time ended */
	CU_ASSERT_EQUAL(a.error, TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(a.diagnostic, QMENOMSG);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 1);
	tpfree(data);
	given_done(g);
}

static void
outside_a_transaction_the_server_bounds_the_wait(void)
{
	struct given *g = given_waiting_room();
	struct waiter w = { 0 };

	start_waiting(&w);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.error, TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(w.diagnostic, QMENOMSG);
	CU_ASSERT_TRUE(w.took > 2.9);
	CU_ASSERT_TRUE(w.took < 20);
	given_done(g);
}

/* After a wait that ended in vain the context is as good as new, and nobody else's message comes to it late. */
static void
a_wait_in_vain_leaves_nothing_behind(void)
{
	struct given *g = given_waiting_room();
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 64), *text;
	long len;

	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME), -1);
	put("ROOM", "for the next");
	put("OTHER", "other");
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 1);
	text = take("OTHER");
	CU_ASSERT_STRING_EQUAL(text, "other");
	free(text);
	text = take("ROOM");
	CU_ASSERT_STRING_EQUAL(text, "for the next");
	free(text);
	tpfree(data);
	given_done(g);
}

static void
a_transaction_bounds_the_wait(void)
{
	struct given *g = given_waiting_room();
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 64);
	double start = now_s(), took;
	long len;

	GIVEN_CALL_OK(tpbegin(2, 0));
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, 0), -1);
	took = now_s() - start;
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(took > 1.9);
	CU_ASSERT_TRUE(took < 10);
	tpabort(0);
	put("ROOM", "afterwards");
	CU_ASSERT_TRUE(peeks("ROOM", "afterwards"));
	tpfree(data);
	given_done(g);
}

static void
a_delayed_message_ends_the_wait_when_its_time_comes(void)
{
	struct given *g = given_waiting_room();
	struct waiter w = { 0 };
	TPQCTL ctl = { .flags = TPQTIME_REL, .deq_time = 1 };
	char *data = tpalloc("STRING", NULL, 64);

	start_waiting(&w);
	snprintf(data, 64, "in a second");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", &ctl, data, 0, 0));
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "in a second");
	tpfree(data);
	given_done(g);
}

static void
a_rollback_ends_the_wait_of_another(void)
{
	struct given *g = given_waiting_room();
	struct waiter w = { 0 };
	char *text;

	put("ROOM", "second hand");
	GIVEN_CALL_OK(tpbegin(30, 0));
	text = take("ROOM");
	CU_ASSERT_PTR_NOT_NULL(text);
	free(text);
	start_waiting(&w);
	GIVEN_CALL_OK(tpabort(0));
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "second hand");
	given_done(g);
}

static const char waiting_program[] =
    "#include <stdio.h>\n#include \"atmi.h\"\n"
    "int main(void)\n{\n"
    "\tTPQCTL ctl = { 0 };\n\tlong len;\n\tchar *data = tpalloc(\"STRING\", 0, 64);\n"
    "\tctl.flags = TPQWAIT;\n"
    "\tif (tpinit(0) == -1)\n\t\treturn 1;\n"
    "\tprintf(\"waiting\\n\");\n\tfflush(stdout);\n"
    "\treturn tpdequeue(\"QSPACE\", \"ROOM\", &ctl, &data, &len, TPNOTIME) == -1;\n}\n";

static bool
says_waiting(void *g)
{
	char *text = given_read(g, "waiter.out");
	bool yes = has(text, "waiting");

	free(text);
	return yes;
}

/* A client that dies while it waits takes no message with it. */
static void
a_dead_waiter_eats_no_message(void)
{
	struct given *g = given_waiting_room();
	char *out, *text;
	int i;

	given_write(g, "waiter.c", "%s", waiting_program);
	free(given_ok(g, NULL, "buildclient -o waiter -f waiter.c"));
	for (i = 0; i < 3; i++) {
		free(given_ok(g, NULL, "rm -f waiter.out"));
		out = given_ok(g, NULL, "./waiter >waiter.out 2>&1 & echo $!");
		CU_ASSERT_TRUE(wait_until(says_waiting, g, 10));
		nap_ms(20 * i);				/* just before, or while, it waits in the queue manager */
		kill((pid_t)atol(out), SIGKILL);
		for (double end = now_s() + 5; !process_gone((pid_t)atol(out)) && now_s() < end;)
			nap_ms(5);
		free(out);
	}
	/* The server sees the broken connections with its next round of input: two questions of somebody else are such. */
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	put("ROOM", "for the living");
	text = take_within("ROOM", 5);
	CU_ASSERT_PTR_NOT_NULL(text);
	free(text);
	given_done(g);
}

/* --- as many as there is room for --- */

#define SHARING 100		/* threads that wait in one context */
struct crowd { struct wait_for { struct crowd *c; int number, error; bool got; pthread_t thread; } *w; TPCONTEXT_T context[100]; atomic_int asked; };

static void *
wait_by_number(void *arg)
{
	struct wait_for *me = arg;
	TPQCTL ctl = { .flags = TPQWAIT | TPQGETBYCORRID };
	char *data = tpalloc("STRING", NULL, 64), text[32];
	long len;

	snprintf(ctl.corrid, sizeof ctl.corrid, "waiter %d", me->number);
	snprintf(text, sizeof text, "for %d", me->number);
	if (tpsetctxt(me->c->context[me->number / SHARING], 0) != -1) {
		me->c->asked++;
		if (tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME) == -1)
			me->error = tperrno == TPEDIAGNOSTIC ? (int)ctl.diagnostic : tperrno;
		else
			me->got = strcmp(data, text) == 0;
	}
	tpfree(data);
	return NULL;
}

static void
put_for(int number)
{
	TPQCTL ctl = { .flags = TPQCORRID };
	char *data = tpalloc("STRING", NULL, 64);

	snprintf(ctl.corrid, sizeof ctl.corrid, "waiter %d", number);
	snprintf(data, 64, "for %d", number);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", &ctl, data, 0, 0));
	tpfree(data);
}

static long	/* clock ticks that a process has used */
ticks_of(pid_t pid)
{
	char path[64];
	unsigned long user = 0, system = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if ((f = fopen(path, "r")) != NULL) {
		if (fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
			user = 0;
		fclose(f);
	}
	return (long)(user + system);
}

static long	/* of the queue manager, for other people's messages */
others_go_on(struct given *g, int messages)
{
	long before = ticks_of(given_pid(g, "TMQUEUE", 0));

	for (int i = 0; i < messages; i++) {
		char *text;

		put("OTHER", "of no concern to them");
		CU_ASSERT_PTR_NOT_NULL(text = take("OTHER"));
		free(text);
	}
	return ticks_of(given_pid(g, "TMQUEUE", 0)) - before;
}

static void
so_many_wait(int n)
{
	struct given *g;
	struct crowd c = { .w = calloc((size_t)n, sizeof *c.w) };
	struct rlimit files;
	pthread_attr_t small;
	TPCONTEXT_T own;
	long alone, beside;
	int got = 0, said = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(c.w);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &files), 0);
	/* TMQUEUE is started with few files, and takes as many as it may have. */
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, files.rlim_max }), 0);
	g = given_system(&(struct given_conf){ .tmqueue = "CLOPT=\"-s QSPACE:TMQUEUE -- -t 300\"",
	    .space = "19000 20 50 50 20000 ERRQ n 16", .space_options = "-A 10000",
	    .queues = "qcreate ROOM fifo none 5 0 100% 0% \"\"\nqcreate OTHER fifo none 0 0 100% 0% \"\"\n" });
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ files.rlim_max, files.rlim_max }), 0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 * 1024);
	join_as_one_of_many();
	GIVEN_CALL_OK(tpgetctxt(&own, 0));
	alone = others_go_on(g, 300);
	for (int i = 0; i < n / SHARING; i++) {
		tpsetctxt(TPNULLCONTEXT, 0);
		join_as_one_of_many();
		GIVEN_CALL_OK(tpgetctxt(&c.context[i], 0));
	}
	for (int i = 0; i < n; i++) {
		c.w[i] = (struct wait_for){ .c = &c, .number = i };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&c.w[i].thread, &small, wait_by_number, &c.w[i]), 0);
	}
	for (double end = now_s() + 120; c.asked < n && now_s() < end;)
		nap_ms(5);
	CU_ASSERT_EQUAL(c.asked, n);
	GIVEN_CALL_OK(tpsetctxt(own, 0));
	beside = others_go_on(g, 300);
	for (int i = n - 1; i >= 0; i--)
		put_for(i);
	for (int i = 0; i < n; i++) {
		pthread_join(c.w[i].thread, NULL);
		got += c.w[i].got;
		if (!c.w[i].got && said++ < 5)
			fprintf(stderr, "waiter %d: %d\n", i, c.w[i].error);
	}
	CU_ASSERT_EQUAL(got, n);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	CU_ASSERT_TRUE(beside < 4 * alone + 50);
	printf("(300 messages of others: %ld ticks of TMQUEUE alone, %ld beside %d who wait) ", alone, beside, n);
	free(c.w);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &files), 0);
	GIVEN_CALL_OK(tpterm());
	for (int i = 0; i < n / SHARING; i++) {
		GIVEN_CALL_OK(tpsetctxt(c.context[i], 0));
		GIVEN_CALL_OK(tpterm());
	}
	given_done(g);
}

static void
two_thousand_wait_and_others_go_on(void)
{
	so_many_wait(2000);
}

static void
ten_thousand_wait_and_others_go_on(void)
{
	so_many_wait(10000);
}

/* --- what else ends a wait --- */

static void
the_blocking_time_of_the_call_ends_the_wait(void)
{
	struct given *g = given_waiting_room();
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 64);
	double start = now_s();
	long len;

	GIVEN_CALL_OK(tpsblktime(1, TPBLK_NEXT));
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(now_s() - start > 0.9);
	put("ROOM", "not eaten");
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 1);
	tpfree(data);
	given_done(g);
}

static void
who_waits_to_look_takes_nothing(void)
{
	struct given *g = given_waiting_room();
	struct waiter taker = { 0 };
	TPQCTL ctl = { .flags = TPQWAIT | TPQPEEK };
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	pid_t sender = fork();

	if (sender == 0) {
		nap_ms(200);
		put("ROOM", "looked at");
		tpterm();
		_exit(0);
	}
	GIVEN_CALL_OK(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME));
	CU_ASSERT_STRING_EQUAL(data, "looked at");
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 1);
	start_waiting(&taker);
	pthread_join(taker.thread, NULL);
	CU_ASSERT_STRING_EQUAL(taker.text, "looked at");
	tpfree(data);
	given_done(g);
}

/* Messages come while those who wait time out and their queue manager is shut down: each is got once, or still there. */
static void
a_shutdown_in_the_very_instant_eats_no_message(void)
{
	enum { ROUNDS = 6, WAITERS = 4 };
	struct given *g = given_waiting_room();
	int sent = 0, got = 0, left = 0;
	char *text;

	for (int round = 0; round < ROUNDS; round++) {
		struct waiter w[WAITERS] = { 0 };
		char *data = tpalloc("STRING", NULL, 64), *out;

		for (int i = 0; i < WAITERS; i++)
			start_waiting(&w[i]);
		out = given_ok(g, NULL, "tmshutdown -y -s TMQUEUE >shut.out 2>&1 & echo $!");
		for (double end = now_s() + 20; !process_gone((pid_t)atol(out)) && now_s() < end;) {
			TPQCTL c = { 0 };

			snprintf(data, 64, "number %d", sent);
			sent += tpenqueue("QSPACE", "ROOM", &c, data, 0, 0) != -1;
			nap_ms(3);
		}
		free(out);
		tpfree(data);
		free(given_ok(g, NULL, "tmboot -y -s TMQUEUE"));
		for (int i = 0; i < WAITERS; i++) {
			pthread_join(w[i].thread, NULL);
			got += w[i].text[0] != '\0';
			CU_ASSERT_TRUE(w[i].text[0] != '\0' || w[i].error == TPEDIAGNOSTIC || w[i].error == TPETIME || w[i].error == TPENOENT);
		}
	}
	while ((text = take("ROOM")) != NULL) {
		left++;
		free(text);
	}
	CU_ASSERT_EQUAL(got + left, sent);
	printf("(%d sent, %d got by those who waited, %d left) ", sent, got, left);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_message_that_arrives_ends_the_wait),
		UNIT(four_who_wait_get_four_messages),
		UNIT(a_wait_by_correlation_is_ended_by_its_message_only),
		UNIT(outside_a_transaction_the_server_bounds_the_wait),
		UNIT(a_wait_in_vain_leaves_nothing_behind),
		UNIT(a_transaction_bounds_the_wait),
		UNIT(a_delayed_message_ends_the_wait_when_its_time_comes),
		UNIT(a_rollback_ends_the_wait_of_another),
		UNIT(a_dead_waiter_eats_no_message),
		UNIT(the_blocking_time_of_the_call_ends_the_wait),
		UNIT(who_waits_to_look_takes_nothing),
		UNIT(a_shutdown_in_the_very_instant_eats_no_message),
		UNIT(two_thousand_wait_and_others_go_on),
		UNIT_LONG(ten_thousand_wait_and_others_go_on),
	};

	return unit_run("waiting", tests, UNIT_COUNT(tests));
}
