/*
 * bench_store - what the engine alone does, in process: enqueues and dequeues by the batch, on an empty queue and
 * behind a long one; then the time to open the long one after a kill -9, and the memory it takes.
 *
 *     bench_store [seconds per figure [messages of the long queue]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "qspace.h"

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
enqueue_batch(struct qspace *qs, int k)
{
	struct qmsg_in in = {
		.type = "CARRAY", .subtype = "", .has_body = true, .body = body, .body_len = sizeof body
	};
	uint8_t msgid[TMMSGIDLEN];

	must(qspace_batch_begin(qs), "begin");
	for (int i = 0; i < k; i++)
		must(qspace_enqueue(qs, NULL, "Q", &in, msgid), "enqueue");
	must(qspace_batch_commit(qs), "commit");
}

static void
dequeue_batch(struct qspace *qs, int k)
{
	struct qmsg *m;

	must(qspace_batch_begin(qs), "begin");
	for (int i = 0; i < k; i++) {
		must(qspace_dequeue(qs, NULL, "Q", NULL, &m), "dequeue");
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

/* As many as `seconds` allow, then the same number out again, so that each row begins like the last. */
static void
rates(struct qspace *qs, int k, double seconds)
{
	struct qspace_counts a, b;
	int64_t from = clock_mono_us(), in_us, out_us;
	double cpu = cpu_s();
	long n = 0;

	qspace_counts(qs, &a);
	while (clock_mono_us() - from < (int64_t)(seconds * 1e6)) {
		enqueue_batch(qs, k);
		n += k;
	}
	in_us = clock_mono_us() - from;
	qspace_counts(qs, &b);
	from = clock_mono_us();
	for (long i = 0; i < n; i += k)
		dequeue_batch(qs, k);
	out_us = clock_mono_us() - from;
	printf("  %3d a batch: %8.0f enqueues/s  %8.0f dequeues/s  %5.2f us of processor each  "
	    "%5.0f bytes of log an enqueue, %llu flushes\n", k,
	    (double)n * 1e6 / (double)in_us, (double)n * 1e6 / (double)out_us,
	    (cpu_s() - cpu) * 1e6 / (double)(2 * n), (double)(b.log_bytes - a.log_bytes) / (double)n,
	    (unsigned long long)(b.flushes - a.flushes));
	fflush(stdout);
}

static long
rss_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kb;
}

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
space_make(long messages)
{
	struct qspace_params p = { .name = "QS",
		.pages = messages * 4 + 4000000,
		.queues = 10,
		.trans = 10,
		.procs = 10,
		.messages = messages + 4000000,
		.nonpersistent_bytes = 0 };
	struct queue_params q = { .name = "Q", .order = { QC_FIFO }, .default_expiration = -1 };
	struct qspace *qs;
	char *why = NULL;

	snprintf(device, sizeof device, "%s/QUE", dir);
	must(device_add(device, NULL, 0, p.pages + 1000, &why, NULL), "crdl");
	must(qspace_create(device, &p, &why), "qspacecreate");
	qs = space_open();
	must(qspace_batch_begin(qs), "begin");
	must(qspace_queue_create(qs, &q), "qcreate");
	must(qspace_batch_commit(qs), "commit");
	qspace_close(qs);
}

static void	/* A process that is cut off while it writes. */
fill_and_die(long messages)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct qspace *qs = space_open();
		for (long i = 0; i < messages; i += 128)
			enqueue_batch(qs, 128);
		kill(getpid(), SIGKILL);
	}
	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		exit(1);
}

int
main(int argc, char **argv)
{
	static const int ks[] = { 1, 8, 64, 128 };
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	long messages = argc > 2 ? atol(argv[2]) : 1000000;
	struct qspace *qs;
	const char *tmp = getenv("TMPDIR");
	char cmd[300];
	int64_t from;
	double cpu;

	snprintf(dir, sizeof dir, "%s/bench_store.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL)
		return 1;
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	memset(body, 'x', sizeof body);
	space_make(messages);
	qs = space_open();
	printf("engine alone, messages of %zu bytes, an empty queue\n", sizeof body);
	for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
		rates(qs, ks[i], seconds);
	qspace_close(qs);
	if (messages > 0) {
		fill_and_die(messages);
		from = clock_mono_us();
		cpu = cpu_s();
		qs = space_open();
		dequeue_batch(qs, 1);
		printf("%ld messages: open and first message after kill -9 in %.2f s (%.2f s of processor), %ld MB "
		       "resident\n",
		    messages, (double)(clock_mono_us() - from) / 1e6, cpu_s() - cpu, rss_kb() / 1024);
		for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
			rates(qs, ks[i], seconds);
		printf("%ld MB resident\n", rss_kb() / 1024);
		qspace_close(qs);
	}
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd) != 0;
}
