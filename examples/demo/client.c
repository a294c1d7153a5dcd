/*
 * client - the demo's customer.
 *
 *     client hundred [halfway-command]   a hundred orders with a reply queue each; replies fetched by correlation id
 *     client bad                         one order that the service will always refuse, followed to the error queue
 *     client rate                        how fast, and how long one message takes
 *
 * Plain ATMI: nothing here knows that it talks to atmiq.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atmi.h"

#define SPACE "QSPACE"
#define ORDERS 100

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void
pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void
die(const char *what, const TPQCTL *ctl)
{
	fprintf(stderr, "%s: %s", what, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, ", diagnostic %ld", ctl->diagnostic);
	fprintf(stderr, "\n");
	exit(1);
}

static void
corrid_of(char *corrid, int n)
{
	memset(corrid, 0, TMCORRIDLEN);
	snprintf(corrid, TMCORRIDLEN, "order-%03d", n);
}

static void
order(int n, const char *text)
{
	TPQCTL ctl;
	char *data = tpalloc("STRING", NULL, 200);

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQCORRID | TPQREPLYQ;
	corrid_of(ctl.corrid, n);
	snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "REPLIES");
	snprintf(data, 200, "%s", text);
	if (tpenqueue(SPACE, "ORDERS", &ctl, data, 0, 0) == -1)
		die("tpenqueue", &ctl);
	tpfree(data);
}

/*
 * The reply to order n, taken in a transaction: 1 when it is ours for good, 0 to try again.  When the queue manager dies
 * while we commit we do not know whether the reply is gone from the queue; looking again tells.
 */
static int
fetch(int n, char **data, int *unsure)
{
	TPQCTL ctl;
	long len;

	if (tpbegin(10, 0) == -1)
		die("tpbegin", NULL);
	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQGETBYCORRID | TPQWAIT;
	corrid_of(ctl.corrid, n);
	if (tpdequeue(SPACE, "REPLIES", &ctl, data, &len, TPNOTIME) == -1) {
		int nothing = tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG;
		tpabort(0);
		if (nothing && *unsure)
			return 1;		/* the commit that we did not hear of had been done */
		if (!nothing)
			pause_ms(50);
		return 0;
	}
	if (tpcommit(0) == -1) {
		*unsure = tperrno != TPEABORT;
		return 0;
	}
	return 1;
}

static int
hundred(const char *halfway)
{
	char *data = tpalloc("STRING", NULL, 200), text[80];
	double start = now(), sent, end, slowest = 0, waited;
	int n, got = 0, tries, again = 0;

	for (n = 0; n < ORDERS; n++) {
		snprintf(text, sizeof text, "order %d: %d boxes of nails", n, n % 7 + 1);
		order(n, text);
	}
	sent = now();
	printf("    %d orders enqueued and on disk in %.0f ms\n", ORDERS, (sent - start) * 1e3);
	for (n = 0; n < ORDERS; n++) {
		int unsure = 0;
		if (halfway != NULL && n == ORDERS / 2) {
			printf("    after %d replies: %s\n", n, halfway);
			fflush(stdout);
			if (system(halfway) != 0)
				return 1;
		}
		waited = now();
		for (tries = 1; !fetch(n, &data, &unsure); tries++)
			if (tries > 200)
				die("no reply", NULL);
		again += tries > 1;
		waited = now() - waited;
		if (waited > slowest)
			slowest = waited;
		snprintf(text, sizeof text, "order %d:", n);
		got += strncasecmp(data, text, strlen(text)) == 0;
		if (halfway == NULL && (n < 2 || n == ORDERS - 1))
			printf("    order-%03d -> \"%s\"\n%s", n, data, n == 1 ? "    ...\n" : "");
	}
	end = now();
	printf("    %d of %d replies came, each under its own correlation id; all within %.0f ms", got, ORDERS, (end - start) * 1e3);
	if (halfway != NULL)
		printf("; the longest wait was %.0f ms, %d tried again", slowest * 1e3, again);
	printf("\n");
	tpfree(data);
	return got == ORDERS ? 0 : 1;
}

static int
bad(void)
{
	TPQCTL ctl;
	char *data = tpalloc("STRING", NULL, 200);
	double start = now();
	long len;

	order(999, "bad order: minus three boxes");
	for (;;) {
		memset(&ctl, 0, sizeof ctl);
		ctl.flags = TPQCORRID;
		if (tpdequeue(SPACE, "ERRQ", &ctl, &data, &len, 0) != -1)
			break;
		if (tperrno != TPEDIAGNOSTIC || ctl.diagnostic != QMENOMSG || now() - start > 20)
			die("tpdequeue", &ctl);
		pause_ms(20);
	}
	printf("    %.1f s later it is on ERRQ: \"%s\" (correlation id %.*s)\n", now() - start, data, TMCORRIDLEN, ctl.corrid);
	tpfree(data);
	return 0;
}

/* --- rate --- */

#define THREADS 16
#define EACH 250
static double took[THREADS][EACH];

static void *
producer(void *arg)
{
	double *mine = arg;
	char *data;
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	int i;

	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	data = tpalloc("CARRAY", NULL, 1024);
	memset(data, 'x', 1024);
	for (i = 0; i < EACH; i++) {
		TPQCTL ctl;
		double t = now();
		memset(&ctl, 0, sizeof ctl);
		if (tpenqueue(SPACE, "PLAIN", &ctl, data, 1024, 0) == -1)
			die("tpenqueue", &ctl);
		mine[i] = now() - t;
	}
	tpfree(data);
	tpterm();
	return NULL;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
measure(int threads)
{
	pthread_t t[THREADS];
	double start = now(), all;
	int i, n = threads * EACH;

	for (i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, producer, took[i]);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	all = now() - start;
	qsort(took, n, sizeof took[0][0], by_size);
	printf("    %2d at a time: %6.0f messages/s, half of them in under %.2f ms, 99 of 100 in under %.2f ms\n", threads, n / all,
	    ((double *)took)[n / 2] * 1e3, ((double *)took)[n - 1 - n / 100] * 1e3);
}

int
main(int argc, char **argv)
{
	int rc = 1;

	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(argv[1], "rate") == 0) {
		measure(1);
		measure(THREADS);
		return 0;
	}
	if (tpinit(NULL) == -1)
		die("tpinit", NULL);
	if (strcmp(argv[1], "hundred") == 0)
		rc = hundred(argc > 2 ? argv[2] : NULL);
	else if (strcmp(argv[1], "bad") == 0)
		rc = bad();
	tpterm();
	return rc;
}
