/*
 * bench_queue - durable enqueue and dequeue of 1 KiB through the public calls: rate, latency, flushes, bytes written.
 *
 *     bench_queue rates             1, 8 and 64 calls in flight on an empty queue
 *     bench_queue million [N]       N messages on a queue (10^6): start after kill -9, memory of TMQUEUE, rates compared
 *
 * bench/run makes the system that it runs against.  Figures are printed; nothing is asserted.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "atmi.h"

#define SPACE "QSPACE"
#define SIZE 1024
#define MAX_THREADS 64

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
	fprintf(stderr, "bench_queue: %s: %s", what, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, ", diagnostic %ld", ctl->diagnostic);
	fprintf(stderr, "\n");
	exit(1);
}

/* --- TMQUEUE, seen from outside --- */

static int
read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (f == NULL)
		return -1;
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	fclose(f);
	return (int)n;
}

static pid_t
tmqueue_pid(void)
{
	static char env[131072];
	char path[300], comm[32], want[4200];
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t pid = 0;
	int n;

	snprintf(want, sizeof want, "TUXCONFIG=%s", getenv("TUXCONFIG"));
	while (pid == 0 && d != NULL && (e = readdir(d)) != NULL) {
		if (atol(e->d_name) <= 0)
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		if (read_file(path, comm, sizeof comm) < 0 || strcmp(comm, "TMQUEUE\n") != 0)
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		if ((n = read_file(path, env, sizeof env)) > 0 && memmem(env, (size_t)n, want, strlen(want) + 1) != NULL)
			pid = (pid_t)atol(e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return pid;
}

static long
proc_value(pid_t pid, const char *file, const char *label)
{
	char path[64], text[8192], *at;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
	if (read_file(path, text, sizeof text) < 0 || (at = strstr(text, label)) == NULL)
		return -1;
	return atol(at + strlen(label));
}

/*
 * Bytes that reached the disk which holds the queue space, by anybody.  What /proc counts for the process itself is of no
 * use for this: the kernel charges a whole large page for each small overwrite.
 */
static long long
disk_bytes(void)
{
	char path[64], text[512];
	struct stat st;
	long long sectors;

	if (stat(getenv("APPDIR"), &st) != 0)
		return -1;
	snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", major(st.st_dev), minor(st.st_dev));
	if (read_file(path, text, sizeof text) < 0 || sscanf(text, "%*s %*s %*s %*s %*s %*s %lld", &sectors) != 1)
		return -1;
	return sectors * 512;
}

/* Flushes so far, which the queue manager counts and qmadmin shows; -1 when it does not. */
static long
flushes(void)
{
	FILE *p = popen("printf 'qopen " SPACE "\\nverbose on\\nqspacelist\\nq\\n' | qmadmin 2>/dev/null", "r");
	char line[256], *at;
	long n = -1;

	while (p != NULL && fgets(line, sizeof line, p) != NULL)
		if ((at = strstr(line, " flushes: ")) != NULL)
			n = atol(at + 10);
	if (p != NULL)
		pclose(p);
	return n;
}

/* --- load --- */

struct load { const char *queue; int dequeue; long each; double *took; pthread_barrier_t *go; };

static void *
work(void *arg)
{
	struct load *l = arg;
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	char *data = tpalloc("CARRAY", NULL, SIZE);
	TPQCTL ctl;
	long i, len;

	memset(init, 0, sizeof *init);
	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	memset(data, 'x', SIZE);
	pthread_barrier_wait(l->go);
	for (i = 0; i < l->each; i++) {
		double t = now();
		memset(&ctl, 0, sizeof ctl);
		if (l->dequeue) {
			if (tpdequeue(SPACE, (char *)l->queue, &ctl, &data, &len, 0) == -1)
				die("tpdequeue", &ctl);
		} else if (tpenqueue(SPACE, (char *)l->queue, &ctl, data, SIZE, 0) == -1)
			die("tpenqueue", &ctl);
		l->took[i] = now() - t;
	}
	tpfree(data);
	tpfree((char *)init);
	tpterm();
	return NULL;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Runs n calls by `threads` threads and prints a line; returns the rate. */
static double
measure(const char *what, const char *queue, int dequeue, int threads, long n)
{
	pthread_t t[MAX_THREADS];
	struct load l[MAX_THREADS];
	pthread_barrier_t go;
	pid_t pid = tmqueue_pid();
	long each = n / threads, wrote, flushed;
	long long disk;
	double *took = calloc((size_t)(each * threads), sizeof *took), start, rate;
	int i;

	n = each * threads;
	pthread_barrier_init(&go, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++) {
		l[i] = (struct load){ queue, dequeue, each, took + i * each, &go };
		if (pthread_create(&t[i], NULL, work, &l[i]) != 0)
			die("pthread_create", NULL);
	}
	flushed = flushes();
	wrote = proc_value(pid, "io", "\nwchar: ");
	disk = disk_bytes();
	pthread_barrier_wait(&go);
	start = now();
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	rate = (double)n / (now() - start);
	wrote = proc_value(pid, "io", "\nwchar: ") - wrote;
	disk = disk_bytes() - disk;
	flushed = flushes() - flushed;
	qsort(took, (size_t)n, sizeof *took, ascending);
	printf("%-22s %3d in flight: %8.0f messages/s   p50 %7.0f us   p99 %7.0f us   %5.0f bytes written/message, %5.0f on the disk", what,
	    threads, rate, took[n / 2] * 1e6, took[n - 1 - n / 100] * 1e6, (double)wrote / (double)n, (double)disk / (double)n);
	if (flushed > 0)
		printf("   %.3f flushes/message (%ld)", (double)flushed / (double)n, flushed);
	printf("\n");
	fflush(stdout);
	pthread_barrier_destroy(&go);
	free(took);
	return rate;
}

static const struct { int threads; long n; } steps[] = { { 1, 6000 }, { 8, 40000 }, { 64, 128000 } };
#define STEPS (sizeof steps / sizeof steps[0])

static void
rates(const char *note, const char *queue, double in[STEPS], double out[STEPS])
{
	char what[40];
	size_t i;

	for (i = 0; i < STEPS; i++) {
		snprintf(what, sizeof what, "enqueue%s", note);
		in[i] = measure(what, queue, 0, steps[i].threads, steps[i].n);
		snprintf(what, sizeof what, "dequeue%s", note);
		out[i] = measure(what, queue, 1, steps[i].threads, steps[i].n);
	}
}

/* --- a long queue --- */

/* Kill TMQUEUE and call until the next one answers: seconds. */
static double
start_after_kill(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	pid_t pid = tmqueue_pid();
	TPQCTL ctl;
	double start;

	memset(init, 0, sizeof *init);
	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	kill(pid, SIGKILL);
	start = now();
	do {
		memset(&ctl, 0, sizeof ctl);
		if (now() - start > 120)
			die("no answer after the kill", &ctl);
	} while (tpenqueue(SPACE, "SIDE", &ctl, NULL, 0, 0) == -1);
	start = now() - start;
	tpterm();
	tpfree((char *)init);
	return start;
}

static void
million(long n)
{
	double in[STEPS], out[STEPS], in_long[STEPS], out_long[STEPS];
	size_t i;

	rates(", empty queue", "SHORT", in, out);
	measure("filling", "LONG", 0, 64, n);
	printf("memory of TMQUEUE with %ld messages: %ld MB resident, %ld MB at most\n", n,
	    proc_value(tmqueue_pid(), "status", "\nVmRSS:") / 1024, proc_value(tmqueue_pid(), "status", "\nVmHWM:") / 1024);
	printf("start after kill -9 with %ld messages: %.2f s until a call is answered\n", n, start_after_kill());
	rates(", long queue", "LONG", in_long, out_long);
	printf("memory of TMQUEUE after that: %ld MB resident\n", proc_value(tmqueue_pid(), "status", "\nVmRSS:") / 1024);
	for (i = 0; i < STEPS; i++)
		printf("long queue against empty queue, %2d in flight: enqueue %.2f, dequeue %.2f\n", steps[i].threads,
		    in_long[i] / in[i], out_long[i] / out[i]);
}

int
main(int argc, char **argv)
{
	double in[STEPS], out[STEPS];

	if (argc > 1 && strcmp(argv[1], "million") == 0)
		million(argc > 2 ? atol(argv[2]) : 1000000);
	else
		rates("", "SHORT", in, out);
	return 0;
}
