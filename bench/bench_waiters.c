/*
 * bench_waiters - so many dequeues that wait, by one connection to the owner of the queue space; for bench_queue.
 *
 *     bench_waiters N        prints a line when all wait, and stays until it is killed
 *
 * It asks the queue manager frame by frame (common/wire.h), for ten thousand threads in tpdequeue() would be a bench of
 * their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "qspace.h"
#include "wire.h"

static void
fail(const char *what, int rc)
{
	fprintf(stderr, "bench_waiters: %s: %d\n", what, rc);
	exit(1);
}

int
main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 10000, pid;
	struct wire_dequeue d = { .flags = TPQWAIT, .queue = "NEVER" };
	struct link_client *c;
	struct wr w = { 0 };
	struct link_msg m;
	char endpoint[256];
	int rc;

	if ((rc = qspace_owner(getenv("QMCONFIG"), "QSPACE", endpoint, sizeof endpoint, &pid)) != 0)
		fail("nobody owns the queue space", rc);
	if ((rc = link_client_open(endpoint, &c)) != LINK_OK)
		fail(endpoint, rc);
	for (d.reqid = 1; d.reqid <= (uint64_t)n; d.reqid++) {
		wr_reset(&w);
		wire_dequeue_encode(&w, &d);
		if ((rc = link_client_send(c, w.p, w.len, NULL, clock_mono_us() + 10000000)) != LINK_OK)
			fail("send", rc);
	}
	/* Requests are taken in turn: when a call that asks for what is not there is answered, all before it wait. */
	snprintf(d.queue, sizeof d.queue, "SIDE");
	d.flags = TPQPEEK;
	wr_reset(&w);
	wire_dequeue_encode(&w, &d);
	if ((rc = link_client_send(c, w.p, w.len, NULL, clock_mono_us() + 10000000)) != LINK_OK)
		fail("send", rc);
	if ((rc = link_client_recv(c, &m, clock_mono_us() + 30000000)) != LINK_OK)
		fail("a wait ended, or the last answer did not come", rc);
	link_msg_done(&m);
	if (write(1, "w", 1) != 1)
		return 1;
	while ((rc = link_client_recv(c, &m, clock_mono_us() + 60000000)) == LINK_OK || rc == LINK_TIMEOUT)
		link_msg_done(&m);
	return 0;
}
