/*
 * bench_link - what the sockets alone cost: a server process that answers at once, clients that ask again at once.
 *
 *     bench_link [seconds]
 *
 * Rows: n clients with one request in flight each, and one client with n in flight.  Requests of 1 KiB in a body frame,
 * replies of a header.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"

#define MAX_N 64
#define MAX_SAMPLES 4000000

static char endpoint[128];
static uint32_t *sample;
static size_t samples;

static void	/* the server process: answers until it is killed; takes all that is ready before it answers */
serve(void)
{
	static struct link_peer to[256];
	static uint8_t head[256][16];
	struct link_server *s;
	struct link_msg m;
	int n, rc;

	if (link_server_open(endpoint, 0600, &s) != LINK_OK)
		_exit(1);
	for (;;) {
		for (n = 0; n < 256; n++) {
			rc = link_server_recv(s, &m, n == 0 ? LINK_FOREVER : 0, -1);
			if (rc != LINK_OK)
				break;
			to[n] = m.peer;
			memcpy(head[n], m.head, m.head_len < 16 ? m.head_len : 16);
			link_msg_done(&m);
		}
		for (int i = 0; i < n; i++)
			link_server_send(s, &to[i], head[i], 16, NULL);
	}
}

static void
fail(const char *what, int rc)
{
	fprintf(stderr, "bench_link: %s: code %d\n", what, rc);
	exit(1);
}

static void
ask(struct link_client *c, unsigned slot)
{
	static uint8_t body[1024];
	int64_t head[2] = { clock_mono_us(), slot };
	struct link_body b = { .p = body, .n = sizeof body };
	int rc = link_client_send(c, head, sizeof head, &b, clock_mono_us() + 5000000);

	if (rc != LINK_OK)
		fail("send", rc);
}

static void	/* take one reply, note its time, ask again */
answered(struct link_client *c, const struct link_msg *m)
{
	int64_t head[2];

	memcpy(head, m->head, sizeof head);
	if (samples < MAX_SAMPLES)
		sample[samples++] = (uint32_t)(clock_mono_us() - head[0]);
	ask(c, (unsigned)head[1]);
}

static void
run_clients(struct link_client **c, int n, int64_t until)
{
	struct link_wait w[MAX_N] = { { 0 } };
	struct link_msg m;
	int rc;

	for (int i = 0; i < n; i++) {
		w[i].client = c[i];
		ask(c[i], 0);
	}
	while (clock_mono_us() < until) {
		if (n > 1 && (rc = link_wait(w, (size_t)n, until, -1)) < 0)
			fail("wait", rc);
		for (int i = 0; i < n; i++) {
			if (n > 1 && !w[i].ready)
				continue;
			if ((rc = link_client_recv(c[i], &m, until + 1000000)) != LINK_OK)
				fail("receive", rc);
			answered(c[i], &m);
			link_msg_done(&m);
		}
	}
}

static void
run_one(struct link_client *c, int n, int64_t until)
{
	struct link_msg m;
	int rc;

	for (int i = 0; i < n; i++)
		ask(c, (unsigned)i);
	while (clock_mono_us() < until) {
		if ((rc = link_client_recv(c, &m, until + 1000000)) != LINK_OK)
			fail("receive", rc);
		answered(c, &m);
		link_msg_done(&m);
	}
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double
cpu_us(const struct rusage *r)
{
	return (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1e6 + (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec);
}

static void
measure(const char *what, int n, bool many, double seconds)
{
	struct link_client *c[MAX_N];
	struct rusage before, after;
	int64_t start, took;
	pid_t server = fork();

	if (server == 0)
		serve();
	for (int i = 0; i < (many ? n : 1); i++)
		if (link_client_open(endpoint, &c[i]) != LINK_OK)
			fail("open", LINK_FAIL);
	samples = 0;
	getrusage(RUSAGE_SELF, &before);
	start = clock_mono_us();
	if (many)
		run_clients(c, n, start + (int64_t)(seconds * 1e6));
	else
		run_one(c[0], n, start + (int64_t)(seconds * 1e6));
	took = clock_mono_us() - start;
	getrusage(RUSAGE_SELF, &after);
	qsort(sample, samples, sizeof *sample, by_value);
	printf("%-12s %4d  %9.0f/s   p50 %5u us   p99 %5u us   client %4.1f us CPU each\n", what, n,
	    (double)samples * 1e6 / (double)took, sample[samples / 2], sample[samples * 99 / 100],
	    (cpu_us(&after) - cpu_us(&before)) / (double)samples);
	for (int i = 0; i < (many ? n : 1); i++)
		link_client_close(c[i]);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

int
main(int argc, char **argv)
{
	static const int n[] = { 1, 4, 8, 16, 64 };
	double seconds = argc > 1 ? atof(argv[1]) : 1.0;
	char dir[] = "/tmp/bench_link.XXXXXX";

	if (mkdtemp(dir) == NULL || (sample = calloc(MAX_SAMPLES, sizeof *sample)) == NULL)
		return 1;
	snprintf(endpoint, sizeof endpoint, "ipc://%s/s", dir);
	for (size_t i = 0; i < sizeof n / sizeof n[0]; i++)
		measure("clients", n[i], true, seconds);
	for (size_t i = 1; i < sizeof n / sizeof n[0]; i++)
		measure("in flight", n[i], false, seconds);
	unlink(endpoint + 6);
	rmdir(dir);
	return 0;
}
