/*
 * bench_queue - durable enqueue and dequeue through the public calls, TMQUEUE as a process of its own.
 *
 *     bench_queue rates          1, 8 and 64 calls in flight on an empty queue, beside what the bare disk does
 *     bench_queue scales N       behind 10^2, 10^4 and N messages, behind 10^4 held ones, over 10^3 queues, beside 10^4
 *                                waiting dequeues: rate, latency, memory of TMQUEUE, start after kill -9
 *     bench_queue sizes          bodies of 1 kB to 1 MB, both qualities of service: is there an edge at 30 kB (R03)?
 *
 * What is compared is asked in turn, a slice each, again and again, so that what disturbs one disturbs all.  bench/run makes
 * the system that it runs against.  Figures are printed; nothing is asserted.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "atmi.h"
#include "figures.h"
#include "outside.h"

#define SPACE "QSPACE"
enum { SIZE = 1024, BODY_MAX = 1 << 20, WORKERS = 64, SPREAD = 1000, HELD = 10000, HOLDERS = 4, WAITERS = 10000 };

static void
die(const char *what, const TPQCTL *ctl)
{
	fprintf(stderr, "bench_queue: %s: %s", what, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, ", diagnostic %ld", ctl->diagnostic);
	fprintf(stderr, "\n");
	exit(1);
}

/* --- load: clients that do one job after the other, each in a context of its own --- */

enum what { PUT, TAKE, HOLD, LET_GO };
struct job {
	enum what what;
	const char *queue;	/* of many: the word before the number */
	int spread;		/* over how many queues; 0: that one */
	long size;		/* of a body; 0: SIZE */
	bool nonpersistent;
	long each;		/* calls of each client; 0: until `seconds` are over; TAKE: what it PUT before */
	double seconds;
	long most;		/* calls of each client within `seconds`; 0: any number */
};
struct client { pthread_t thread; int no; struct times times; long put; char *data; };
static struct client clients[WORKERS];
static struct job job;
static int active;
static pthread_barrier_t go, done;

static void
one_call(struct client *c, long i)
{
	char name[TMQNAMELEN + 1];
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long len = job.size > 0 ? job.size : SIZE;

	snprintf(name, sizeof name, job.spread > 0 ? "%s%ld" : "%s", job.queue, (i * active + c->no) % (job.spread > 0 ? job.spread : 1));
	if (job.nonpersistent) {
		ctl.flags = TPQDELIVERYQOS;
		ctl.delivery_qos = TPQQOSNONPERSISTENT;
	}
	if (job.what == PUT) {
		if (tpenqueue(SPACE, name, &ctl, c->data, len, 0) == -1)
			die("tpenqueue", &ctl);
		return;
	}
	ctl.flags = TPNOFLAGS;
	if (tpdequeue(SPACE, name, &ctl, &c->data, &len, 0) == -1)
		die("tpdequeue", &ctl);
}

static void
work_once(struct client *c)
{
	double start = now_s(), before, after = start;
	long n = job.what == TAKE && job.each == 0 ? c->put : job.each;

	if (job.what == LET_GO) {
		tpabort(0);
		return;
	}
	if (job.what == HOLD && tpbegin(3600, 0) == -1)
		die("tpbegin", NULL);
	for (long i = 0; n > 0 || job.what != PUT ? i < n : after - start < job.seconds && (job.most == 0 || i < job.most); i++) {
		before = now_s();
		one_call(c, i);
		after = now_s();
		times_add(&c->times, (after - before) * 1e6);
		c->put += job.what == PUT;
	}
	if (job.what == TAKE)
		c->put = 0;
}

static void *
work(void *arg)
{
	struct client *c = arg;
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	init->flags = TPMULTICONTEXTS;
	c->data = tpalloc("CARRAY", NULL, BODY_MAX);
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	memset(c->data, 'x', BODY_MAX);
	for (;;) {
		pthread_barrier_wait(&go);
		if (active == 0)
			break;
		if (c->no < active)
			work_once(c);
		pthread_barrier_wait(&done);
	}
	tpfree(c->data);
	tpfree((char *)init);
	tpterm();
	return NULL;
}

static void
clients_start(void)
{
	pthread_barrier_init(&go, NULL, WORKERS + 1);
	pthread_barrier_init(&done, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++) {
		clients[i].no = i;
		if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
			die("pthread_create", NULL);
	}
}

static void
clients_end(void)
{
	active = 0;
	pthread_barrier_wait(&go);
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(clients[i].thread, NULL);
		free(clients[i].times.us);
	}
}

/* The first n clients do the job; their times are added to *t, when given. */
static void
run(int n, struct job j, struct times *t)
{
	double start = now_s();

	job = j;
	active = n;
	for (int i = 0; i < WORKERS; i++)
		times_clear(&clients[i].times);
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	if (t == NULL)
		return;
	t->seconds += now_s() - start;
	for (int i = 0; i < WORKERS; i++)
		times_add_all(t, &clients[i].times);
}

/* --- rates --- */

static void
measure(const char *what, int n, struct job j, const struct times *probe)
{
	pid_t pid = tmqueue_pid();
	long wrote, flushed = flushes(SPACE);
	struct times t = { 0 };
	long long disk;

	wrote = proc_value(pid, "io", "\nwchar: ");
	disk = disk_bytes();
	run(n, j, &t);
	wrote = proc_value(pid, "io", "\nwchar: ") - wrote;
	disk = disk_bytes() - disk;
	flushed = flushes(SPACE) - flushed;
	printf("%-8s %3d in flight: %8.0f messages/s   p50 %6.0f us   p99 %6.0f us   %5.0f bytes written/message, %5.0f on the disk   "
	       "%.3f flushes/message, %3.0f %% of what the disk allows\n", what, n, times_rate(&t), times_percentile(&t, 50),
	    times_percentile(&t, 99), (double)wrote / (double)t.n, (double)disk / (double)t.n, (double)flushed / (double)t.n,
	    100 * ((double)flushed / t.seconds) / times_rate(probe));
	fflush(stdout);
	free(t.us);
}

static void
rates(void)
{
	static const int in_flight[] = { 1, 8, 64 };
	struct times probe = { 0 };

	for (size_t i = 0; i < sizeof in_flight / sizeof *in_flight; i++) {
		int n = in_flight[i];

		disk_probe(getenv("APPDIR"), (size_t)n * 1100, 0.3, &probe);
		printf("bare disk: %.0f writes and flushes/s of %d messages, p50 %.0f us\n", times_rate(&probe), n,
		    times_percentile(&probe, 50));
		measure("enqueue", n, (struct job){ .what = PUT, .queue = "SHORT", .seconds = bench_seconds(1) }, &probe);
		measure("dequeue", n, (struct job){ .what = TAKE, .queue = "SHORT" }, &probe);
	}
	free(probe.us);
}

/* --- scales --- */

static long
resident_mb(void)
{
	return proc_value(tmqueue_pid(), "status", "\nVmRSS:") / 1024;
}

static void
fill(const char *queue, int spread, long n)
{
	struct times t = { 0 };
	int with = n < 6400 ? 1 : WORKERS;

	if (n <= 0)
		return;
	run(with, (struct job){ .what = PUT, .queue = queue, .spread = spread, .each = n / with }, &t);
	for (int i = 0; i < WORKERS; i++)
		clients[i].put = 0;
	printf("%8ld messages put on %s at %.0f/s: TMQUEUE has %ld MB resident\n", n, queue, times_rate(&t), resident_mb());
	fflush(stdout);
	free(t.us);
}

/* A program that waits with so many dequeues; it is ready when it has said so. */
static pid_t
waiters_start(void)
{
	const char *program = getenv("BENCH_WAITERS");
	int fds[2];
	char word;
	pid_t pid;

	if (program == NULL || pipe(fds) != 0 || (pid = fork()) == -1)
		return 0;
	if (pid == 0) {
		char n[16];
		snprintf(n, sizeof n, "%d", WAITERS);
		dup2(fds[1], 1);
		close(fds[0]);
		execl(program, program, n, (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &word, 1) != 1)
		die("bench_waiters did not start", NULL);
	close(fds[0]);
	return pid;
}

static void
waiters_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct scale { const char *name, *queue; int spread; bool waiters; struct times in, out; };

static void
slice(struct scale *s, int n, double seconds)
{
	pid_t waiters = s->waiters ? waiters_start() : 0;

	run(n, (struct job){ .what = PUT, .queue = s->queue, .spread = s->spread, .seconds = seconds }, &s->in);
	run(n, (struct job){ .what = TAKE, .queue = s->queue, .spread = s->spread }, &s->out);
	waiters_end(waiters);
}

static void
compare(struct scale *s, size_t n_scales, int n, double seconds)
{
	enum { ROUNDS = 5 };

	for (size_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n_scales; i++)
			slice(&s[(i + round) % n_scales], n, seconds / ROUNDS);
	for (size_t i = 0; i < n_scales; i++) {
		printf("%-34s %2d in flight: enqueue %8.0f/s p50 %6.0f p99 %6.0f us   dequeue %8.0f/s p50 %6.0f p99 %6.0f us   "
		       "against the first: %.2f %.2f\n", s[i].name, n, times_rate(&s[i].in), times_percentile(&s[i].in, 50),
		    times_percentile(&s[i].in, 99), times_rate(&s[i].out), times_percentile(&s[i].out, 50),
		    times_percentile(&s[i].out, 99), times_rate(&s[i].in) / times_rate(&s[0].in),
		    times_rate(&s[i].out) / times_rate(&s[0].out));
	}
	for (size_t i = 0; i < n_scales; i++) {
		times_clear(&s[i].in);
		times_clear(&s[i].out);
	}
	fflush(stdout);
}

/* Kill TMQUEUE and call until the next one answers: seconds. */
static double
start_after_kill(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	pid_t pid = tmqueue_pid();
	TPQCTL ctl;
	double start;

	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	kill(pid, SIGKILL);
	start = now_s();
	do {
		memset(&ctl, 0, sizeof ctl);
		if (now_s() - start > 120)
			die("no answer after the kill", &ctl);
	} while (tpenqueue(SPACE, "SIDE", &ctl, NULL, 0, 0) == -1);
	start = now_s() - start;
	tpterm();
	tpfree((char *)init);
	return start;
}

static void
scales(long n)
{
	struct scale all[] = {
		{ .name = "behind 10^2 messages", .queue = "LONG2" },
		{ .name = "behind 10^4 messages", .queue = "LONG4" },
		{ .name = "behind the long queue", .queue = "LONG" },
		{ .name = "behind 10^4 held messages", .queue = "HELD" },
		{ .name = "over 10^3 queues", .queue = "SPREAD", .spread = SPREAD },
		{ .name = "beside 10^4 waiting dequeues", .queue = "SHORT", .waiters = true },
	};
	size_t n_all = sizeof all / sizeof *all - (getenv("BENCH_WAITERS") == NULL);
	double seconds = bench_seconds(1);

	printf("TMQUEUE has %ld MB resident\n", resident_mb());
	fill("LONG2", 0, 100);
	fill("LONG4", 0, 10000 / WORKERS * WORKERS);
	fill("SPREAD", SPREAD, SPREAD);
	fill("LONG", 0, n / WORKERS * WORKERS);
	printf("start after kill -9 with all these: %.2f s until a call is answered, %ld MB resident\n", start_after_kill(),
	    resident_mb());
	fill("HELD", 0, HELD / WORKERS * WORKERS);
	run(HOLDERS, (struct job){ .what = HOLD, .queue = "HELD", .each = HELD / WORKERS * WORKERS / HOLDERS }, NULL);
	/* The holders are in their transactions, and the rest of the clients work. */
	for (int i = 0; i < HOLDERS; i++)
		clients[i].no = WORKERS + i;
	for (int i = HOLDERS; i < WORKERS; i++)
		clients[i].no = i - HOLDERS;
	compare(all, n_all, 1, seconds);
	compare(all, n_all, 8, seconds);
	compare(all, n_all, WORKERS - HOLDERS, seconds);
	printf("memory of TMQUEUE after that: %ld MB resident, %ld MB at most\n", resident_mb(),
	    proc_value(tmqueue_pid(), "status", "\nVmHWM:") / 1024);
	for (int i = 0; i < WORKERS; i++)
		clients[i].no = i;
	run(HOLDERS, (struct job){ .what = LET_GO }, NULL);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		free(all[i].in.us);
		free(all[i].out.us);
	}
}

/* --- sizes --- */

static void
sizes(void)
{
	static const long kb[] = { 1, 10, 29, 31, 64, 1000 };
	enum { N = sizeof kb / sizeof *kb, ROUNDS = 5 };
	static struct times in[2][N], out[2][N];
	double seconds = bench_seconds(1) / 2;

	for (int round = 0; round < ROUNDS; round++)
		for (int np = 0; np < 2; np++)
			for (int i = 0; i < N; i++) {
				struct job j = { .what = PUT, .queue = "SHORT", .size = kb[i] * 1000, .nonpersistent = np, .seconds = seconds / ROUNDS,
				    .most = 10000 / kb[i] };	/* within the memory for non-persistent messages */
				run(1, j, &in[np][i]);
				j.what = TAKE;
				run(1, j, &out[np][i]);
			}
	for (int np = 0; np < 2; np++)
		for (int i = 0; i < N; i++) {
			double a = times_percentile(&in[np][i], 50), b = times_percentile(&out[np][i], 50);

			printf("%-14s %4ld kB: enqueue p50 %6.0f p99 %6.0f us, dequeue p50 %6.0f p99 %6.0f us", np ? "non-persistent" : "persistent",
			    kb[i], a, times_percentile(&in[np][i], 99), b, times_percentile(&out[np][i], 99));
			if (i > 0)
				printf("   per byte against %ld kB: %.2f %.2f", kb[i - 1],
				    a / (double)kb[i] / (times_percentile(&in[np][i - 1], 50) / (double)kb[i - 1]),
				    b / (double)kb[i] / (times_percentile(&out[np][i - 1], 50) / (double)kb[i - 1]));
			printf("\n");
		}
	fflush(stdout);
	for (int np = 0; np < 2; np++)
		for (int i = 0; i < N; i++) {
			free(in[np][i].us);
			free(out[np][i].us);
		}
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "rates";

	clients_start();
	if (strcmp(what, "scales") == 0)
		scales(argc > 2 ? atol(argv[2]) : 1000000);
	else if (strcmp(what, "sizes") == 0)
		sizes();
	else
		rates();
	clients_end();
	return 0;
}
