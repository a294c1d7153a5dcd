/*
 * bench_store - what the engine alone does, in process.
 *
 *     bench_store                       rates by the batch; what they are behind 10^2, 10^4, ... messages; the start
 *     bench_store operations K E D      nothing but E enqueues and D dequeues, K a batch: for callgrind
 *
 * BENCH_SECONDS (0.5) for each figure, BENCH_LONG (10^6) messages on the longest queue.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "clock.h"
#include "device.h"
#include "figures.h"
#include "qspace.h"

enum { LENGTHS = 3, ROUNDS = 6 };
static const char *const long_queue[LENGTHS] = { "Q2", "Q4", "QLONG" };

static char dir[256], device[300];
static char body[1024];

static void
must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_store: %s: %d\n", what, rc);
	exit(1);
}

static void
enqueue_batch(struct qspace *qs, const char *queue, int k)
{
	struct qmsg_in in = {
		.type = "CARRAY", .subtype = "", .has_body = true, .body = body, .body_len = sizeof body
	};
	uint8_t msgid[TMMSGIDLEN];

	must(qspace_batch_begin(qs), "begin");
	for (int i = 0; i < k; i++)
		must(qspace_enqueue(qs, NULL, queue, &in, msgid), "enqueue");
	must(qspace_batch_commit(qs), "commit");
}

static void
dequeue_batch(struct qspace *qs, const char *queue, int k)
{
	struct qmsg *m;

	must(qspace_batch_begin(qs), "begin");
	for (int i = 0; i < k; i++) {
		must(qspace_dequeue(qs, NULL, queue, NULL, &m), "dequeue");
		qmsg_free(m);
	}
	must(qspace_batch_commit(qs), "commit");
}

static double	/* seconds on a processor, which other load does not stretch */
cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static long
rss_mb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kb / 1024;
}

/* --- one operation, by the batch --- */

typedef void operation(struct qspace *qs, const char *queue, int k);

/* `batches` of them, or as many as `seconds` allow; their times are added to *t.  How many batches. */
static long
run(struct qspace *qs, const char *queue, operation *op, int k, long batches, double seconds, struct times *t)
{
	double start = now_s(), before, after = start;
	long n = 0;

	while (batches > 0 ? n < batches : after - start < seconds) {
		before = now_s();
		op(qs, queue, k);
		after = now_s();
		times_add(t, (after - before) * 1e6);
		n++;
	}
	t->seconds += after - start;
	return n;
}

static void
print_row(const char *what, int k, struct times *t, const struct qspace_counts *a, const struct qspace_counts *b,
    double cpu, const struct times *disk)
{
	double n = (double)t->n * k, flushes = (double)(b->flushes - a->flushes);

	printf("  %-8s %3d a batch: %8.0f/s   batch p50 %6.0f us, p99 %6.0f us   %5.2f us of processor and %5.0f bytes of log each   "
	       "%.3f flushes each, %3.0f %% of what the disk allows\n", what, k, n / t->seconds, times_percentile(t, 50),
	    times_percentile(t, 99), cpu * 1e6 / n, (double)(b->log_bytes - a->log_bytes) / n, flushes / n,
	    100 * (flushes / t->seconds) / times_rate(disk));
	fflush(stdout);
}

/* As many as `seconds` allow, then the same number out again, so that each row begins like the last. */
static void
rates(struct qspace *qs, int k, double seconds)
{
	struct times in = { 0 }, out = { 0 }, disk = { 0 };
	struct qspace_counts a, b, c;
	double cpu[3];
	long n;

	disk_probe(dir, (size_t)k * 1100, 0.2, &disk);
	printf("  bare disk: %.0f writes and flushes/s of %d messages, p50 %.0f us\n", times_rate(&disk), k,
	    times_percentile(&disk, 50));
	qspace_counts(qs, &a);
	cpu[0] = cpu_s();
	n = run(qs, "Q", enqueue_batch, k, 0, seconds, &in);
	qspace_counts(qs, &b);
	cpu[1] = cpu_s();
	run(qs, "Q", dequeue_batch, k, n, 0, &out);
	qspace_counts(qs, &c);
	cpu[2] = cpu_s();
	print_row("enqueue", k, &in, &a, &b, cpu[1] - cpu[0], &disk);
	print_row("dequeue", k, &out, &b, &c, cpu[2] - cpu[1], &disk);
	free(in.us);
	free(out.us);
	free(disk.us);
}

/* --- long queues: slices of each in turn, so that what disturbs one disturbs all --- */

static void
lengths(struct qspace *qs, const long *messages, int k, double seconds)
{
	struct times in[LENGTHS] = { 0 }, out[LENGTHS] = { 0 };

	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < LENGTHS; i++) {
			int q = (i + round) % LENGTHS;
			long n = run(qs, long_queue[q], enqueue_batch, k, 0, seconds / ROUNDS, &in[q]);
			run(qs, long_queue[q], dequeue_batch, k, n, 0, &out[q]);
		}
	for (int q = 0; q < LENGTHS; q++) {
		printf("  behind %8ld messages, %2d a batch: enqueue %8.0f/s, p99 %6.0f us, dequeue %8.0f/s, p99 %6.0f us   "
		       "against %ld: %.2f, %.2f\n", messages[q], k, k * times_rate(&in[q]), times_percentile(&in[q], 99),
		    k * times_rate(&out[q]), times_percentile(&out[q], 99), messages[0], times_rate(&in[q]) / times_rate(&in[0]),
		    times_rate(&out[q]) / times_rate(&out[0]));
	}
	fflush(stdout);
	for (int q = 0; q < LENGTHS; q++) {
		free(in[q].us);
		free(out[q].us);
	}
}

/* --- the space --- */

static struct qspace *
space_open(void)
{
	struct qspace *qs;
	char *why = NULL;

	if (qspace_open(device, "QS", NULL, &qs, &why) == 0)
		return qs;
	fprintf(stderr, "bench_store: %s\n", why);
	exit(1);
}

static void
queue_make(struct qspace *qs, const char *name)
{
	struct queue_params q = { .order = { QC_FIFO }, .default_expiration = -1 };

	snprintf(q.name, sizeof q.name, "%s", name);
	must(qspace_batch_begin(qs), "begin");
	must(qspace_queue_create(qs, &q), "qcreate");
	must(qspace_batch_commit(qs), "commit");
}

static void
space_make(long messages)
{
	struct qspace_params p = { .name = "QS",
		.pages = messages * 4 + 8000000,
		.queues = 10,
		.trans = 10,
		.procs = 10,
		.messages = messages + 4000000,
		.nonpersistent_bytes = 0 };
	const char *tmp = getenv("APPDIR") != NULL ? getenv("APPDIR") : getenv("TMPDIR");
	struct qspace *qs;
	char *why = NULL;

	snprintf(dir, sizeof dir, "%s/bench_store.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL) {
		perror(dir);
		exit(1);
	}
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	memset(body, 'x', sizeof body);
	snprintf(device, sizeof device, "%s/QUE", dir);
	must(device_add(device, NULL, 0, p.pages + 1000, &why, NULL), "crdl");
	must(qspace_create(device, &p, &why), "qspacecreate");
	qs = space_open();
	queue_make(qs, "Q");
	for (int i = 0; i < LENGTHS; i++)
		queue_make(qs, long_queue[i]);
	qspace_close(qs);
}

static int
space_remove(void)
{
	char cmd[300];

	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd) != 0;
}

static void	/* A process that is cut off while it writes. */
fill_and_die(long messages)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct qspace *qs = space_open();
		for (long i = 0; i < messages; i += 128)
			enqueue_batch(qs, long_queue[LENGTHS - 1], 128);
		kill(getpid(), SIGKILL);
	}
	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		exit(1);
}

static int
operations(int k, long enqueues, long dequeues)
{
	struct qspace *qs;

	space_make(100000);
	qs = space_open();
	for (long i = 0; i < enqueues; i += k)
		enqueue_batch(qs, "Q", k);
	for (long i = 0; i < dequeues; i += k)
		dequeue_batch(qs, "Q", k);
	qspace_close(qs);
	return space_remove();
}

int
main(int argc, char **argv)
{
	static const int ks[] = { 1, 8, 32, 64, 128 };
	const char *most = getenv("BENCH_LONG");
	long messages[LENGTHS] = { 100, 10000, most != NULL ? atol(most) : 1000000 };
	double seconds = bench_seconds(0.5), start, cpu;
	struct qspace *qs;

	if (argc == 5 && strcmp(argv[1], "operations") == 0)
		return operations(atoi(argv[2]), atol(argv[3]), atol(argv[4]));
	space_make(messages[LENGTHS - 1]);
	qs = space_open();
	printf("engine alone, messages of %zu bytes, an empty queue\n", sizeof body);
	for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
		rates(qs, ks[i], seconds);
	for (int i = 0; i + 1 < LENGTHS; i++) {
		for (long n = 0; n < messages[i]; n += 100)
			enqueue_batch(qs, long_queue[i], 100);
		printf("%ld messages more: %ld MB resident\n", messages[i], rss_mb());
	}
	qspace_close(qs);
	if (messages[LENGTHS - 1] > 0) {
		fill_and_die(messages[LENGTHS - 1]);
		start = now_s();
		cpu = cpu_s();
		qs = space_open();
		dequeue_batch(qs, long_queue[LENGTHS - 1], 1);
		printf("%ld messages: open and first message after kill -9 in %.2f s (%.2f s of processor), %ld MB resident\n",
		    messages[LENGTHS - 1], now_s() - start, cpu_s() - cpu, rss_mb());
		lengths(qs, messages, 1, seconds);
		lengths(qs, messages, 8, seconds);
		lengths(qs, messages, 64, seconds);
		printf("%ld MB resident\n", rss_mb());
		qspace_close(qs);
	}
	return space_remove();
}
