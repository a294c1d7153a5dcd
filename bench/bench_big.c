/*
 * bench_big - what small messages notice of large ones: 64 clients that enqueue and dequeue 1 KiB, alone and beside one
 * that enqueues, or dequeues, 64 MiB again and again.  The two are measured in turn, for the machine has its moods.
 *
 *     bench_big [ROUNDS [SECONDS]]      5 rounds of 2 seconds each way
 *
 * bench/run makes the system that it runs against.  Figures are printed; nothing is asserted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "atmi.h"

#define SPACE "QSPACE"
#define CLIENTS 64
#define SMALL 1024
#define LARGE (64L << 20)
#define SAMPLES 400000

enum way { ALONE, BESIDE_ENQUEUES, BESIDE_DEQUEUES, N_WAYS };
static const char *const names[N_WAYS] = { "alone", "beside 64 MiB enqueues", "beside 64 MiB dequeues" };

struct client { pthread_t thread; size_t n; float us[SAMPLES / CLIENTS]; };
static struct client clients[CLIENTS];
static atomic_bool stop;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
die(const char *what, const TPQCTL *ctl)
{
	fprintf(stderr, "bench_big: %s: %s, diagnostic %ld\n", what, tpstrerror(tperrno), ctl->diagnostic);
	exit(1);
}

static void
join(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1) {
		fprintf(stderr, "bench_big: tpinit: %s\n", tpstrerror(tperrno));
		exit(1);
	}
	tpfree((char *)init);
}

static void
put(const char *queue, char *data, long n)
{
	TPQCTL ctl = { 0 };

	if (tpenqueue(SPACE, (char *)queue, &ctl, data, n, TPNOTRAN | TPNOTIME) == -1)
		die("tpenqueue", &ctl);
}

static int
take(const char *queue, char **data)
{
	TPQCTL ctl = { 0 };
	long n = 0;

	if (tpdequeue(SPACE, (char *)queue, &ctl, data, &n, TPNOTRAN | TPNOTIME) == 0)
		return 0;
	if (tperrno != TPEDIAGNOSTIC || ctl.diagnostic != QMENOMSG)
		die("tpdequeue", &ctl);
	return -1;
}

static void *
small(void *arg)
{
	struct client *c = arg;
	char *data;
	double t;

	join();
	data = tpalloc("CARRAY", NULL, SMALL);
	memset(data, 's', SMALL);
	while (!stop) {
		t = now();
		put("SHORT", data, SMALL);
		if (c->n < SAMPLES / CLIENTS)
			c->us[c->n++] = (float)((now() - t) * 1e6);
		take("SHORT", &data);
	}
	tpfree(data);
	tpterm();
	return NULL;
}

static int
by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

struct figures { double p50, p99, max, rate; int large; };

static struct figures
measure(enum way how, double seconds, char **large)
{
	static float all[SAMPLES];
	struct figures f = { 0 };
	double end, began;
	size_t n = 0;

	stop = false;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i].n = 0;
		if (pthread_create(&clients[i].thread, NULL, small, &clients[i]) != 0)
			exit(1);
	}
	began = now();
	end = began + seconds;
	while (now() < end) {
		struct timespec pause = { 0, 1000000 };

		if (how == BESIDE_ENQUEUES)
			put("LONG", *large, LARGE);
		else if (how == BESIDE_DEQUEUES && take("LONG", large) != 0)
			break;
		else if (how == ALONE)
			nanosleep(&pause, NULL);
		f.large += how != ALONE;
	}
	stop = true;
	seconds = now() - began;
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(clients[i].thread, NULL);
		memcpy(all + n, clients[i].us, clients[i].n * sizeof *all);
		n += clients[i].n;
	}
	if (n == 0)
		return f;
	qsort(all, n, sizeof *all, by_value);
	f.p50 = all[n / 2];
	f.p99 = all[n - 1 - n / 100];
	f.max = all[n - 1];
	f.rate = (double)n / seconds;
	return f;
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	double seconds = argc > 2 ? atof(argv[2]) : 2, p99[N_WAYS] = { 0 };
	char *large;

	setvbuf(stdout, NULL, _IOLBF, 0);
	join();
	if ((large = tpalloc("CARRAY", NULL, LARGE)) == NULL)
		return 1;
	memset(large, 'L', LARGE);
	printf("  enqueue of 1 KiB by %d clients         p50 us    p99 us    max us        /s   64 MiB\n", CLIENTS);
	for (int r = 0; r < rounds; r++)
		for (int how = 0; how < N_WAYS; how++) {
			struct figures f = measure(how, seconds, &large);

			printf("  round %d, %-24s %10.0f%10.0f%10.0f%10.0f %8d\n", r + 1, names[how], f.p50, f.p99, f.max, f.rate, f.large);
			p99[how] += f.p99 / rounds;
			while (how == BESIDE_DEQUEUES && take("LONG", &large) == 0)
				;
		}
	for (int how = BESIDE_ENQUEUES; how < N_WAYS; how++)
		printf("  p99 %s: %.1f times that alone (means of %d rounds)\n", names[how], p99[how] / p99[ALONE], rounds);
	tpfree(large);
	tpterm();
	return 0;
}
