/*
 * svrloop - what a server does all day: it takes in what has arrived, and serves it or has it served by threads.
 */
#include <string.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define DRAIN_US 30000000LL		/* at the end: for requests of those who know us still; each hears with his answer that we end */
#define RELAYS_US 10000000LL		/* and for replies that pass through us */
#define MAX_WAIT 64
#define TURN 1000			/* so many messages are taken in before one is served */
#define IDLE_US 1000LL			/* a request that took longer to come was not there before */

static void
admin_answer(const struct link_msg *m)
{
	struct wire_admin ask = { 0 };
	struct wire_adminreply reply = { 0 };
	struct wr w = { 0 };
	char text[] = "a server answers ping alone";

	if (wire_admin_decode(m->head, m->head_len, &ask) != 0)
		return;
	reply.reqid = ask.reqid;
	if (strcmp(ask.op, "ping") != 0) {
		reply.status = TPENOENT;
		reply.text = text;
	}
	wire_adminreply_encode(&w, &reply);
	if (wr_ok(&w))
		link_server_send(svr.link, &m->peer, w.p, w.len, NULL);
	wr_free(&w);
	document_free(&ask.doc);
}

/* A queue operation sent to a service that is no queue manager. */
static void
queue_refuse(const struct link_msg *m, uint64_t reqid)
{
	struct wire_qreply reply = { .reqid = reqid, .error = TPENOENT };
	struct wr w = { 0 };

	wire_qreply_encode(&w, &reply);
	if (wr_ok(&w))
		link_server_send(svr.link, &m->peer, w.p, w.len, NULL);
	wr_free(&w);
}

static void
strange(const struct link_msg *m)
{
	if (++svr.strange <= 10 || svr.strange % 1000 == 0)
		ulog("LIBTUX_CAT:5100: WARN: dropped %zu bytes that are no request (%llu so far)", m->head_len,
		    (unsigned long long)svr.strange);
}

static void
cancelled(const struct link_msg *m)
{
	struct wire_cancel cancel;

	if (wire_cancel_decode(m->head, m->head_len, &cancel) == 0)
		requests_cancel(&m->peer, cancel.target);
}

/* Suspended, and there was a moment since when nothing waited: it came afterwards. */
static bool
came_too_late(void)
{
	int64_t since = bb_agent_suspended_us(svr.agent);

	return since != 0 && svr.busy_since_us > since;
}

/* It waits for its turn.  False: it is none, or is refused. */
static bool
call_arrived(struct request *r)
{
	int64_t came = r->m.came_us != 0 ? r->m.came_us : clock_mono_us();

	if (wire_call_decode(r->m.head, r->m.head_len, &r->call) != 0) {
		ulog("LIBTUX_CAT:5111: WARN: dropped a service request that cannot be read (%zu bytes)", r->m.head_len);
		return false;
	}
	r->counted = !r->shared;	/* a shared queue has no slot to count in */
	r->load = 50;			/* until we know its service */
	if (!r->shared && came_too_late()) {	/* what waits in a shared queue is for whoever is there */
		work_refuse(r, "this server is suspended");
		mark_done(r);
		return false;
	}
	r->deadline_us = r->call.timeout_ms == 0 ? LINK_FOREVER : came + (int64_t)r->call.timeout_ms * 1000;
	r->since_us = r->shared ? 0 : came < svr.busy_since_us ? came : svr.busy_since_us;
	if (!requests_add(r) && svr.threads != NULL)
		threads_more();
	return true;
}

static bool	/* True: it waits for its turn, and is not ours any more. */
handle(struct request *r)
{
	struct link_msg *m = &r->m;
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0) {
		strange(m);
		return false;
	}
	switch (kind) {
	case WIRE_CALL:
		return call_arrived(r);
	case WIRE_ADMIN:
		admin_answer(m);
		break;
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
	case WIRE_QWAIT:
		queue_refuse(m, reqid);
		break;
	case WIRE_CANCEL:
		cancelled(m);
		break;
	default:
		strange(m);
	}
	return false;
}

/* Wait for a request, a reply to pass on, or the order to stop.  True when a request is there to be received. */
static bool
wait_for_work(int64_t deadline, int wake_fd)
{
	struct link_wait w[MAX_WAIT] = { { .server = svr.link } };
	size_t n = 1 + relay_waitables(w + 1, MAX_WAIT - 1);
	int64_t next = relay_next_us();
	int ready = link_wait(w, n, deadline < next ? deadline : next, wake_fd);

	relay_poll();
	return ready > 0 && w[0].ready;
}

/* The first message of a turn.  Without one nothing is received. */
static bool
receive_first(struct link_msg *m, int64_t deadline, int wake_fd)
{
	int64_t before = clock_mono_us(), now;

	if (relay_busy()) {
		if (!wait_for_work(deadline, wake_fd))
			return false;
		deadline = 0;
	}
	if (link_server_recv(svr.link, m, deadline, wake_fd) != LINK_OK)
		return false;
	if ((now = clock_mono_us()) - before > IDLE_US)
		svr.busy_since_us = now;
	return true;
}

/* The same for a server of a set: as many as it asked for come, and no more. */
static bool
receive_shared(int64_t deadline)
{
	static struct request *r;
	struct link_wait w[MAX_WAIT];
	bool got = false;
	int64_t next;

	for (int turn = 0; turn < 2 && !got; turn++) {
		while ((r != NULL || (r = request_get()) != NULL) && set_take(&r->m)) {
			got = r->shared = true;
			if (!handle(r))
				request_put(r);
			r = NULL;
		}
		if (got || turn > 0 || deadline == 0 || r == NULL || set_left())
			break;
		next = set_next_us();
		if (relay_busy() && relay_next_us() < next)
			next = relay_next_us();
		(void)link_wait(w, relay_busy() ? relay_waitables(w, MAX_WAIT) : 0, deadline < next ? deadline : next, set_fd());
		if (relay_busy())
			relay_poll();
	}
	return got;
}

/* Take in what is there, so that the most urgent of all is served next; wait for the first.  False: there was none. */
static bool
receive(int64_t deadline, int wake_fd)
{
	static struct request *r;	/* the next one to be received; kept from turn to turn */
	int n = 1;

	if (set_member())
		return receive_shared(deadline);
	if ((r == NULL && (r = request_get()) == NULL) || !receive_first(&r->m, deadline, wake_fd))
		return false;
	do {
		if (handle(r))
			r = request_get();
		else
			link_msg_done(&r->m);
	} while (r != NULL && n++ < TURN && link_server_recv_rest(svr.link, &r->m) == LINK_OK);
	return true;
}

static bool	/* False: there was none. */
serve_one(int64_t deadline, int wake_fd)
{
	struct request *r;

	receive(requests_wait() ? 0 : deadline, wake_fd);
	if ((r = requests_take()) == NULL)
		return false;
	work_run(work_here, r);
	return true;
}

/* Callers find us no more; what was sent before is served.  Of a set's queue that is what it gives us until it lets us go. */
static void
turn_away(void)
{
	if (!svr.leaving)
		offers_withdraw();
	if (!set_member())
		link_server_no_more(svr.link);
	else if (!svr.leaving)
		set_leave();
}

static bool	/* The queue of our set has not let us go. */
is_kept(void)
{
	return set_member() && !svr.leaving && !set_left();
}

static void
serve_alone(void)
{
	int wake_fd = bb_agent_wake_fd(svr.agent);
	int64_t until;

	while (!bb_agent_stopping(svr.agent) && !svr.leaving)
		serve_one(LINK_FOREVER, wake_fd);
	turn_away();
	until = clock_mono_us() + DRAIN_US;
	while (is_kept() && clock_mono_us() < until)
		serve_one(until, -1);
	while (serve_one(0, -1) && clock_mono_us() < until)
		;			/* what was queued until then; after TPEXIT it is refused */
	if (svr.leaving)
		return;
	until = clock_mono_us() + RELAYS_US;
	while (relay_busy() && clock_mono_us() < until)
		wait_for_work(LINK_FOREVER, -1);
}

/* The same where services run on several threads: this one receives. */
static void
serve_threads(void)
{
	int wake_fd = bb_agent_wake_fd(svr.agent);
	int64_t until;

	while (!bb_agent_stopping(svr.agent) && !svr.leaving)
		receive(LINK_FOREVER, wake_fd);
	turn_away();
	until = clock_mono_us() + DRAIN_US;
	while (is_kept() && clock_mono_us() < until)
		receive(until, -1);
	do
		requests_settle();
	while (receive(0, -1) && clock_mono_us() < until);
	requests_settle();
}

void
serve(void)
{
	if (svr.threads != NULL)
		serve_threads();
	else
		serve_alone();
}
