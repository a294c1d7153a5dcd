/*
 * story_limits - each limit of a queue space as a program meets it: QMENOSPACE and nothing worse, the rest goes on, the log says which
 * limit it is and what helps, qmadmin shows it; and when there is room again the next call works.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "given.h"

#define QUEUES "qcreate ORDERS fifo none 3 0 100% 0% \"\"\nqcreate OTHER fifo none 3 0 100% 0% \"\"\n"
#define CLOPT "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 120\""

static struct given *
given_limits(const char *space, const char *options)
{
	return given_system(&(struct given_conf){ .queues = QUEUES, .space = space, .space_options = options, .tmqueue = CLOPT });
}

/* 0, or the diagnostic; 1000 + tperrno for any other error. */
static int
put_sized(const char *queue, long n, long qos)
{
	TPQCTL ctl = { .flags = qos != 0 ? TPQDELIVERYQOS : TPNOFLAGS, .delivery_qos = qos };
	char *data = tpalloc("CARRAY", NULL, n > 0 ? n : 1);
	int rc = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	memset(data, 'x', (size_t)n);
	if (tpenqueue("QSPACE", (char *)queue, &ctl, data, n, 0) == -1)
		rc = tperrno == TPEDIAGNOSTIC ? (int)ctl.diagnostic : 1000 + tperrno;
	tpfree(data);
	return rc;
}

static int	/* how many it takes; it must be for want of space that it takes no more */
fill(const char *queue, long size, long qos)
{
	int n = 0, rc;

	while ((rc = put_sized(queue, size, qos)) == 0 && n < 5000)
		n++;
	CU_ASSERT_EQUAL(rc, QMENOSPACE);
	return n;
}

static int
drain(const char *queue)
{
	int n = 0;

	while (take_diagnostic(queue) == 0)
		n++;
	return n;
}

static void
took_one_of(const char *queue)
{
	char *text = take_within(queue, 20);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	free(text);
}

static bool
shows(const struct given *g, const char *line)
{
	char *out = given_qmadmin(g, "qspacelist\n");
	bool found = has(out, line);

	if (!found)
		fprintf(stderr, "\nno \"%s\" in\n%s\n", line, out);
	free(out);
	return found;
}

static void	/* one line, however often it is met */
logged_once(const struct given *g, const char *text)
{
	char *log = given_log(g);

	CU_ASSERT_EQUAL(count_of(log, text), 1);
	if (count_of(log, text) != 1)
		fprintf(stderr, "\nnot once: %s\n", text);
	free(log);
}

static void
messages(void)
{
	struct given *g = given_limits("4000 20 50 50 25 ERRQ n 16", "-n 100B");

	put("OTHER", "was there before");
	CU_ASSERT_EQUAL(fill("ORDERS", 10, 0), 24);
	CU_ASSERT_EQUAL(put_sized("OTHER", 0, 0), QMENOSPACE);
	CU_ASSERT_EQUAL(put_sized("OTHER", 1, TPQQOSNONPERSISTENT), QMENOSPACE);
	CU_ASSERT_TRUE(shows(g, "  messages in use: 25\n"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 24);
	CU_ASSERT_TRUE(peeks("OTHER", "was there before"));
	CU_ASSERT_EQUAL(take_diagnostic("ERRQ"), QMENOMSG);
	CU_ASSERT_EQUAL(take_diagnostic("OTHER"), 0);
	CU_ASSERT_EQUAL(put_sized("ORDERS", 10, 0), 0);
	CU_ASSERT_EQUAL(put_sized("ORDERS", 10, 0), QMENOSPACE);
	logged_once(g, "queue space QSPACE in ");
	logged_once(g, "the limit of 25 messages is reached (messages that are taken make room, qspacechange allows more)");
	free(given_ok(g, "qspch QSPACE 61000 50 50 26 ERRQ n 16\n", "qmadmin"));		/* while it is full, and served */
	CU_ASSERT_EQUAL(fill("ORDERS", 10, 0), 1);
	given_kill(g, "TMQUEUE", SIGKILL);
	tpterm();
	took_one_of("ORDERS");
	CU_ASSERT_EQUAL(fill("OTHER", 10, 0), 1);
	CU_ASSERT_EQUAL(drain("ORDERS") + drain("OTHER"), 26);
	CU_ASSERT_TRUE(shows(g, "  messages in use: 0\n"));
	given_done(g);
}

static void	/* In a transaction: refused, and it goes on; what it enqueued counts until it ends. */
messages_of_a_transaction(void)
{
	struct given *g = given_limits("4000 20 50 50 5 ERRQ n 16", "");

	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_EQUAL(fill("ORDERS", 10, 0), 5);
	CU_ASSERT_TRUE(shows(g, "  messages in use: 5\n"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	GIVEN_CALL_OK(tpcommit(0));			/* has the room it needs */
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 5);
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_EQUAL(drain("ORDERS"), 5);
	CU_ASSERT_EQUAL(put_sized("OTHER", 10, 0), QMENOSPACE);	/* they may come back */
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 5);
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_EQUAL(drain("ORDERS"), 5);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(fill("OTHER", 10, 0), 5);
	given_done(g);
}

static void
pages(void)
{
	struct given *g = given_limits("40 10 50 50 2000 ERRQ n 16", "-n 100B");

	CU_ASSERT_EQUAL(fill("ORDERS", 1500, 0), 13);		/* 3 pages each, and one is left */
	CU_ASSERT_EQUAL(put_sized("OTHER", 513, 0), QMENOSPACE);
	CU_ASSERT_EQUAL(put_sized("OTHER", 512, 0), 0);
	CU_ASSERT_EQUAL(put_sized("OTHER", 0, 0), QMENOSPACE);
	CU_ASSERT_EQUAL(put_sized("OTHER", 513, TPQQOSNONPERSISTENT), 0);	/* memory is another area */
	CU_ASSERT_TRUE(shows(g, "  pages: 40\n"));
	CU_ASSERT_TRUE(shows(g, "  pages in use: 40\n"));
	logged_once(g, "the limit of 40 pages is reached (messages that are taken make room, qaddext adds pages)");
	free(given_ok(g, "qaddext QSPACE 8\n", "qmadmin"));
	CU_ASSERT_EQUAL(fill("OTHER", 1500, 0), 2);
	CU_ASSERT_EQUAL(drain("ORDERS"), 13);
	CU_ASSERT_EQUAL(fill("ORDERS", 300000, 0), 0);		/* larger than the space */
	CU_ASSERT_EQUAL(fill("ORDERS", 10, 0), 41);
	given_done(g);
}

static void
memory(void)
{
	struct given *g = given_limits("4000 20 50 50 2000 ERRQ n 16", "-n 4096b");

	CU_ASSERT_EQUAL(fill("ORDERS", 512 - 160, TPQQOSNONPERSISTENT), 8);
	CU_ASSERT_EQUAL(put_sized("OTHER", 0, TPQQOSNONPERSISTENT), QMENOSPACE);
	CU_ASSERT_EQUAL(put_sized("OTHER", 10, 0), 0);		/* and this one is on disk */
	CU_ASSERT_TRUE(shows(g, "  non-persistent memory in use in bytes: 4096\n"));
	logged_once(g, "the limit of 4096 bytes of non-persistent memory is reached (messages that are taken make room, qspacechange -n");
	CU_ASSERT_EQUAL(drain("ORDERS"), 8);
	CU_ASSERT_EQUAL(fill("ORDERS", 512 - 160, TPQQOSNONPERSISTENT), 8);
	given_kill(g, "TMQUEUE", SIGKILL);			/* they are lost, their room is not */
	tpterm();
	took_one_of("OTHER");
	CU_ASSERT_EQUAL(fill("ORDERS", 512 - 160, TPQQOSNONPERSISTENT), 8);
	given_done(g);
}

static void	/* R35: five, as in every script, and a sixth one: a clean answer, and when one has ended it may try again */
r35_the_sixth_of_five_transactions(void)
{
	struct given *g = given_limits("4000 20 5 50 2000 ERRQ n 16", "");
	TPTRANID open[5], sixth;

	for (int i = 0; i < 5; i++) {
		GIVEN_CALL_OK(tpbegin(60, 0));
		CU_ASSERT_EQUAL(put_sized("ORDERS", 10, 0), 0);
		GIVEN_CALL_OK(tpsuspend(&open[i], 0));
	}
	CU_ASSERT_TRUE(shows(g, "  transactions in use: 5\n"));
	put("OTHER", "in none");				/* the rest goes on */
	CU_ASSERT_TRUE(peeks("OTHER", "in none"));
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_EQUAL(put_sized("ORDERS", 10, 0), QMENOSPACE);
	CU_ASSERT_EQUAL(take_diagnostic("OTHER"), QMENOSPACE);
	GIVEN_CALL_OK(tpsuspend(&sixth, 0));
	GIVEN_CALL_OK(tpresume(&open[0], 0));
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpresume(&sixth, 0));
	CU_ASSERT_EQUAL(put_sized("ORDERS", 10, 0), 0);
	GIVEN_CALL_OK(tpcommit(0));
	logged_once(g, "the limit of 5 concurrent transactions is reached (qprinttrans shows them, qspacechange allows more)");
	for (int i = 1; i < 5; i++) {
		GIVEN_CALL_OK(tpresume(&open[i], 0));
		GIVEN_CALL_OK(i % 2 ? tpcommit(0) : tpabort(0));
	}
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 4);
	CU_ASSERT_TRUE(shows(g, "  transactions in use: 0\n"));
	given_done(g);
}

/* --- actions --- */

struct waiter { pthread_t thread; TPCONTEXT_T context; int rc; };

static void *
wait_for_one(void *arg)
{
	struct waiter *w = arg;
	TPQCTL ctl = { .flags = TPQWAIT };
	long len;
	char *data;

	if (tpsetctxt(w->context, 0) == -1)
		return NULL;
	data = tpalloc("STRING", NULL, 64);
	w->rc = tpdequeue("QSPACE", "ORDERS", &ctl, &data, &len, TPNOTIME) == 0 ? 0 :
	    tperrno == TPEDIAGNOSTIC ? (int)ctl.diagnostic : 1000 + tperrno;
	tpfree(data);
	tpsetctxt(TPNULLCONTEXT, 0);
	return NULL;
}

static long
actions_in_use(const struct given *g)
{
	char *out = given_qmadmin(g, "qspacelist\n"), *at = strstr(out, "  actions in use: ");
	long n = at != NULL ? atol(at + strlen("  actions in use: ")) : -1;

	free(out);
	return n;
}

struct in_use { const struct given *g; long n; };

static bool
are_in_use(void *arg)
{
	struct in_use *u = arg;

	return actions_in_use(u->g) == u->n;
}

static void	/* 1024 without -A, and so many more with it */
actions(void)
{
	enum { BASE = 1024, MORE = 3, ALL = BASE + MORE, SHARING = 128 };
	struct given *g = given_limits("4000 20 50 50 3000 ERRQ n 16", "-A 3");
	struct waiter *w = calloc(ALL, sizeof *w);
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(16));
	TPQCTL ctl = { .flags = TPQWAIT };
	pthread_attr_t small;
	TPCONTEXT_T own, shared = 0;
	char *data;
	long len;
	int got = 0;

	memset(init, 0, sizeof *init);
	init->flags = TPMULTICONTEXTS;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 * 1024);
	GIVEN_CALL_OK(tpinit(init));
	GIVEN_CALL_OK(tpgetctxt(&own, 0));
	for (int i = 0; i < ALL; i++) {
		if (i % SHARING == 0) {
			tpsetctxt(TPNULLCONTEXT, 0);
			GIVEN_CALL_OK(tpinit(init));
			GIVEN_CALL_OK(tpgetctxt(&shared, 0));
		}
		w[i].context = shared;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&w[i].thread, &small, wait_for_one, &w[i]), 0);
	}
	GIVEN_CALL_OK(tpsetctxt(own, 0));
	CU_ASSERT_TRUE(wait_until(are_in_use, &(struct in_use){ g, ALL }, 60));
	data = tpalloc("STRING", NULL, 64);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(tpdequeue("QSPACE", "ORDERS", &ctl, &data, &len, 0), -1);
		CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC);
		CU_ASSERT_EQUAL(ctl.diagnostic, QMENOSPACE);
	}
	CU_ASSERT_EQUAL(take_diagnostic("ORDERS"), QMENOMSG);	/* who does not wait needs none */
	put("OTHER", "others go on");
	CU_ASSERT_TRUE(peeks("OTHER", "others go on"));
	ctl.flags = TPQWAIT;
	GIVEN_CALL_OK(tpdequeue("QSPACE", "OTHER", &ctl, &data, &len, 0));	/* nor who finds something */
	logged_once(g, "1027 of 1027 actions are in use: a dequeue that waits on queue ORDERS is refused (qspacechange -A adds actions)");
	for (int i = 0; i < ALL; i++)
		put("ORDERS", "for one of them");
	for (int i = 0; i < ALL; i++) {
		pthread_join(w[i].thread, NULL);
		got += w[i].rc == 0;
	}
	CU_ASSERT_EQUAL(got, ALL);
	CU_ASSERT_EQUAL(actions_in_use(g), 0);
	tpfree(data);
	tpterm();
	for (int i = 0; i < ALL; i += SHARING) {
		GIVEN_CALL_OK(tpsetctxt(w[i].context, 0));
		GIVEN_CALL_OK(tpterm());
	}
	free(w);
	tpfree((char *)init);
	given_done(g);
}

/* --- queues --- */

static void
queues(void)
{
	struct given *g = given_limits("4000 4 50 50 2000 ERRQ n 16", "");	/* ERRQ, which counts, ORDERS and OTHER are there */
	struct ran r = given_run(g, "qopen QSPACE\nqcreate Q4 fifo none 0 0 100% 0% \"\"\nqcreate Q5 fifo none 0 0 100% 0% \"\"\nq\n", "qmadmin");

	CU_ASSERT_TRUE(has(r.err, "Q5") || has(r.out, "Q5"));
	CU_ASSERT_TRUE(has(r.err, "queue space QSPACE has its 4 queues already") || has(r.out, "queue space QSPACE has its 4 queues already"));
	ran_free(&r);
	CU_ASSERT_TRUE(shows(g, "  queues in use: 4\n"));
	CU_ASSERT_EQUAL(depth(g, "Q4"), 0);
	CU_ASSERT_EQUAL(put_sized("Q5", 10, 0), QMEBADQUEUE);
	CU_ASSERT_EQUAL(put_sized("Q4", 10, 0), 0);
	free(given_ok(g, "qopen QSPACE\nqdestroy -p -y Q4\nqcreate Q5 fifo none 0 0 100% 0% \"\"\n", "qmadmin"));
	CU_ASSERT_EQUAL(put_sized("Q5", 10, 0), 0);
	CU_ASSERT_EQUAL(put_sized("Q4", 10, 0), QMEBADQUEUE);
	given_done(g);
}

/* --- processes --- */

static bool
qmadmin_says(const struct given *g, const char *text)
{
	struct ran r = given_run(g, "qopen QSPACE\nqinfo ORDERS\nq\n", "qmadmin");
	bool said = has(r.out, text) || has(r.err, text);

	ran_free(&r);
	return said;
}

static bool
is_served(void *g)
{
	(void)g;
	return take_diagnostic("ORDERS") == QMENOMSG;
}

static FILE *	/* with the space open, until it is closed */
open_qmadmin(void)
{
	FILE *f = popen("qmadmin >/dev/null 2>&1", "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("qopen QSPACE\n", f);
	fflush(f);
	return f;
}

struct counted { const struct given *g; const char *line; };

static bool
counts(void *arg)
{
	struct counted *c = arg;
	struct ran r = given_run(c->g, "qspacelist QSPACE\nq\n", "qmadmin");
	bool so = has(r.out, c->line);

	ran_free(&r);
	return so;
}

static bool
come_to(const struct given *g, const char *line)
{
	return wait_until(counts, &(struct counted){ g, line }, 20);
}

/*
 * Servers and open qmadmin count; the two TMS that the BBL plays and ordinary clients do not.  qmadmin gives way: it never keeps a
 * server from coming back.
 */
static void
processes(void)
{
	static const char full[] = "the limit of 3 concurrent processes is reached";
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .space = "4000 20 50 3 2000 ERRQ n 16", .tmqueue = CLOPT,
	    .servers = "TMQUEUE SRVGRP=QUE1 SRVID=2 CLOPT=\"-s QSPACE:TMQUEUE -- -t 120\"\n" });
	FILE *looking = open_qmadmin();
	pid_t old;

	put("OTHER", "a client counts not");
	CU_ASSERT_TRUE(come_to(g, "  processes in use: 3\n"));		/* owner, standing by, qmadmin */
	CU_ASSERT_TRUE(qmadmin_says(g, full));
	CU_ASSERT_TRUE(qmadmin_says(g, "2 servers and 1 qmadmin have it open (qspacechange allows more)"));
	old = given_pid(g, "TMQUEUE", 0);
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(wait_until(is_served, g, 20));
	CU_ASSERT_TRUE(process_gone(old));
	CU_ASSERT_TRUE(come_to(g, "  processes in use: 3\n"));		/* it came back */
	pclose(looking);
	CU_ASSERT_TRUE(come_to(g, "  processes in use: 2\n"));
	CU_ASSERT_TRUE(qmadmin_says(g, "queue: ORDERS\n"));
	free(given_ok(g, "qspch QSPACE 61000 50 2 2000 ERRQ n 16\n", "qmadmin"));
	CU_ASSERT_TRUE(qmadmin_says(g, "the limit of 2 concurrent processes is reached"));
	free(given_ok(g, "qspch QSPACE 61000 50 3 2000 ERRQ n 16\n", "qmadmin"));
	CU_ASSERT_TRUE(qmadmin_says(g, "queue: ORDERS\n"));
	given_done(g);
}

static void	/* One that the limit has no place for does not boot, and says why. */
a_server_too_many(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .space = "4000 20 50 1 2000 ERRQ n 16", .tmqueue = CLOPT,
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=9 REPLYQ=N CLOPT=\"-- -q ORDERS\"\n", .not_booted = true });
	struct ran r = given_run(g, NULL, "tmboot -y");

	CU_ASSERT_NOT_EQUAL(r.status, 0);
	CU_ASSERT_TRUE(given_logged(g, "TMQFORWARD cannot boot: group QUE1: queue space QSPACE in "));
	CU_ASSERT_TRUE(given_logged(g, "the limit of 1 concurrent processes is reached: 1 servers and 0 qmadmin have it open"));
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
	ran_free(&r);
	put("ORDERS", "served all the same");
	tpterm();
	free(given_ok(g, "qspch QSPACE 61000 50 2 2000 ERRQ n 16\n", "qmadmin"));
	free(given_ok(g, NULL, "tmboot -y"));
	CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 1);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(messages),
		UNIT(messages_of_a_transaction),
		UNIT(pages),
		UNIT(memory),
		UNIT(r35_the_sixth_of_five_transactions),
		UNIT(actions),
		UNIT(queues),
		UNIT(processes),
		UNIT(a_server_too_many),
	};

	return unit_run("limits of a queue space", tests, UNIT_COUNT(tests));
}
