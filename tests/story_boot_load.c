/*
 * story_boot_load - parts of an application are stopped and booted while clients call, enqueue and dequeue all the time: their calls
 * fail only as documented, and work again without anything of the client being done anew.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static const char source[] =
    "#include <atmi.h>\n#include <string.h>\n#include <unistd.h>\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n";

#define SERVER2 "server SRVGRP=APP SRVID=2 CLOPT=\"-A\"\n"
#define CALLERS 3
#define ERRORS 30

/* What the clients count, where the story sees it. */
struct counts {
	volatile bool stop;
	volatile long calls, enqueued, taken;		/* that went well */
	volatile long failed[ERRORS];			/* calls, by tperrno */
	volatile long wrong;				/* an answer that is not to the request, a message out of order */
};
static struct counts *counts;
static pid_t clients[CALLERS + 2];
static int n_clients;

static void
failed(void)
{
	__atomic_add_fetch(&counts->failed[tperrno > 0 && tperrno < ERRORS ? tperrno : 0], 1, __ATOMIC_SEQ_CST);
	nap_ms(2);
}

static void
count(volatile long *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST);
}

static void
caller(void)
{
	char *data = tpalloc("STRING", NULL, 64), want[64];
	long len, n;

	for (n = 0; !counts->stop; n++) {
		snprintf(want, sizeof want, "%ld.%ld", (long)getpid(), n);
		snprintf(data, 64, "%s", want);
		if (tpcall("ECHO", data, 0, &data, &len, 0) == -1)
			failed();
		else {
			count(strcmp(data, want) == 0 ? &counts->calls : &counts->wrong);
		}
	}
}

/* Numbers in order; one whose outcome is not known is not sent again: it may be there. */
static void
producer(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long n;

	for (n = 0; !counts->stop; n++) {
		TPQCTL ctl = { .flags = TPNOFLAGS };

		snprintf(data, 64, "%ld", n);
		if (tpenqueue("QSPACE", "Q", &ctl, data, 0, 0) == -1)
			failed();
		else
			count(&counts->enqueued);
	}
}

static void
consumer(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len, last = -1;

	while (!counts->stop) {
		TPQCTL ctl = { .flags = TPNOFLAGS };

		if (tpbegin(20, 0) == -1) {
			failed();
			continue;
		}
		if (tpdequeue("QSPACE", "Q", &ctl, &data, &len, 0) == -1) {
			if (tperrno != TPEDIAGNOSTIC)
				failed();
			tpabort(0);
		} else {
			long n = atol(data);

			if (n <= last)		/* what was not surely taken may come again, and nothing older */
				count(&counts->wrong);
			if (tpcommit(0) == -1)
				failed();
			else {
				last = n;
				count(&counts->taken);
			}
		}
	}
}

static void
client(void (*run)(void))
{
	if ((clients[n_clients++] = fork()) == 0) {
		if (tpinit(NULL) == -1)
			_exit(1);
		run();
		tpterm();
		_exit(0);
	}
}

static struct given *
application_under_load(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-s ECHO",
	    .servers = SERVER2, .queues = "qcreate Q fifo none 100000 0 100% 0% \"\"\n", .space = "40000 20 50 50 40000 ERRQ n 16",
	    .device_pages = 60000 });
	int i;

	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	n_clients = 0;
	for (i = 0; i < CALLERS; i++)
		client(caller);
	client(producer);
	client(consumer);
	return g;
}

struct mark { long calls, enqueued, taken; };

static bool
all_get_on(void *arg)
{
	struct mark *m = arg;

	return counts->calls > m->calls + 20 && counts->enqueued > m->enqueued + 5 && counts->taken > m->taken + 5;
}

static void
load(void)
{
	struct mark m = { counts->calls, counts->enqueued, counts->taken };

	CU_ASSERT_TRUE(wait_until(all_get_on, &m, 30));
}

static bool
all_ended(void *arg)
{
	int i, st;

	(void)arg;
	for (i = 0; i < n_clients; i++)
		if (clients[i] > 0 && waitpid(clients[i], &st, WNOHANG) == clients[i]) {
			CU_ASSERT_EQUAL(st, 0);
			clients[i] = 0;
		}
	for (i = 0; i < n_clients && clients[i] == 0; i++)
		;
	return i == n_clients;
}

static long
all_failed(void)
{
	long n = 0;

	for (int i = 0; i < ERRORS; i++)
		n += counts->failed[i];
	return n;
}

/* Only these; then what is left is taken, and the sums agree. */
static void
load_ends(struct given *g, const int *documented, size_t n)
{
	long others = all_failed(), left = 0;
	char *text;

	counts->stop = true;
	CU_ASSERT_TRUE(wait_until(all_ended, NULL, 60));
	for (int i = 0; i < n_clients; i++)
		if (clients[i] > 0) {
			kill(clients[i], SIGKILL);
			waitpid(clients[i], NULL, 0);
		}
	others = all_failed();
	for (size_t i = 0; i < n; i++)
		others -= counts->failed[documented[i]];
	CU_ASSERT_EQUAL(others, 0);
	CU_ASSERT_EQUAL(counts->wrong, 0);
	for (int i = 0; i < ERRORS && others != 0; i++)
		if (counts->failed[i] > 0)
			fprintf(stderr, "\ntperrno %d: %ld times\n", i, counts->failed[i]);
	while ((text = take("Q")) != NULL) {
		left++;
		free(text);
	}
	/* Enqueues with an unknown outcome may be there as well, and commits with one may have been done. */
	CU_ASSERT_TRUE(counts->taken + left >= counts->enqueued - counts->failed[TPESVCERR] - counts->failed[TPESYSTEM] - counts->failed[TPETIME]);
	CU_ASSERT_TRUE(counts->taken + left <= counts->enqueued + counts->failed[TPESVCERR] + counts->failed[TPESYSTEM] + counts->failed[TPETIME]);
	munmap(counts, sizeof *counts);
	given_done(g);
}

static void
one_server_of_two_comes_and_goes_and_no_call_fails(void)
{
	struct given *g = application_under_load();
	int i;

	for (i = 0; i < 10; i++) {
		load();
		free(given_ok(g, NULL, "tmshutdown -i 2"));
		load();
		free(given_ok(g, NULL, "tmboot -i 2 && tmshutdown -i 1 -g APP -w 5"));
		load();
		free(given_ok(g, NULL, "tmboot -s server"));
	}
	load_ends(g, NULL, 0);
}

static const int when_nobody_is_there[] = { TPENOENT, TPETIME, TPESVCERR, TPESYSTEM, TPEDIAGNOSTIC, TPEABORT };

static void
all_servers_of_a_service_come_and_go(void)
{
	struct given *g = application_under_load();
	int i;

	for (i = 0; i < 10; i++) {
		load();
		free(given_ok(g, NULL, i % 2 == 0 ? "tmshutdown -s server" : "tmshutdown -s server -k KILL"));
		free(given_ok(g, NULL, "tmboot -s server"));
	}
	load();
	load_ends(g, when_nobody_is_there, UNIT_COUNT(when_nobody_is_there));
}

static void
the_queue_manager_comes_and_goes(void)
{
	struct given *g = application_under_load();
	int i;

	for (i = 0; i < 10; i++) {
		load();
		free(given_ok(g, NULL, i % 3 == 0 ? "tmshutdown -g QUE1" : i % 3 == 1 ? "tmshutdown -s TMQUEUE -w 5" : "tmshutdown -s TMQUEUE -k KILL"));
		free(given_ok(g, NULL, "tmboot -g QUE1"));
	}
	load();
	load_ends(g, when_nobody_is_there, UNIT_COUNT(when_nobody_is_there));
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(one_server_of_two_comes_and_goes_and_no_call_fails),
		UNIT(all_servers_of_a_service_come_and_go),
		UNIT(the_queue_manager_comes_and_goes),
	};

	return unit_run("boot load", tests, UNIT_COUNT(tests));
}
