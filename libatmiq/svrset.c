/*
 * svrset - a server of an MSSQ set: its requests come from the queue of the set (TMRQ), and their answers go back there.
 *
 * It asks for as many requests as it can serve at once and gets no more, so what waits, waits where any member can take it.
 * With an answer goes "one more"; a request that ends without an answer from here (forwarded, wanted none, dropped) is
 * reported.  When the queue is started again the server joins anew; answers to what came before are wanted by nobody then.
 *
 * A request from there has a peer of no length whose id begins with the number of the connection.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define JOIN_US 10000000LL		/* at the start, for the queue to be there */
#define AGAIN_US 50000LL		/* between two tries to reach a queue that is gone */
#define TRY_US 50000LL			/* for one of them */
#define SEND_US 30000000LL		/* for the queue to take an answer */

static struct {
	pthread_mutex_t lock;		/* of all that follows */
	struct link_client *link;	/* NULL: not joined */
	uint64_t epoch;			/* which connection it is; 0: none yet */
	char endpoint[CONN_ENDPOINT];	/* the members' */
	int fd;				/* epoll: readable when something is there, or the order to stop came */
	int wake_fd;
	unsigned room, given;		/* requests that we can have; that we have */
	bool joined, leaving, left;
	int64_t next_try_us;
	struct wr out;
} set = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .wake_fd = -1 };

bool
set_member(void)
{
	return set.fd >= 0;
}

int
set_fd(void)
{
	return set.fd;
}

bool
set_is_from(const struct link_peer *peer)
{
	return peer->n == 0 && set_member();
}

static uint64_t
epoch_of(const struct link_peer *peer)
{
	uint64_t epoch;

	memcpy(&epoch, peer->id, sizeof epoch);
	return epoch;
}

/* ---- talking; with the lock ---- */

static void
hang_up(void)
{
	if (set.link != NULL && link_client_fd(set.link) >= 0)
		(void)epoll_ctl(set.fd, EPOLL_CTL_DEL, link_client_fd(set.link), NULL);
	link_client_close(set.link);
	set.link = NULL;
	set.next_try_us = clock_mono_us() + AGAIN_US;
}

static bool
say_out(const struct link_body *body)
{
	int rc = LINK_FAIL;

	if (set.link == NULL || !wr_ok(&set.out)) {
		if (body != NULL && body->release != NULL)
			body->release((void *)(uintptr_t)body->p, body->hint);
		return false;
	}
	do
		rc = link_client_send(set.link, set.out.p, set.out.len, body, clock_mono_us() + SEND_US);
	while (rc == LINK_INTR && body == NULL);
	return rc == LINK_OK;		/* else it is noticed when we receive */
}

static bool
say(const struct wire_member *m)
{
	wire_member_encode(&set.out, m);
	return say_out(NULL);
}

static void
say_offer(const char *service, bool yes)
{
	struct wire_member m = { .op = yes ? WIRE_MEMBER_OFFER : WIRE_MEMBER_WITHDRAW };

	if (strlen(service) >= sizeof m.service)
		return;
	memcpy(m.service, service, strlen(service));
	say(&m);
}

static void
say_ready(uint64_t reqid, unsigned more)
{
	struct wire_member m = { .op = WIRE_MEMBER_READY, .reqid = reqid, .more = (uint16_t)more };

	if (reqid != 0 || more > 0)
		say(&m);
}

/* ---- joining; with the lock ---- */

static void
introduce(void)
{
	struct wire_member join = { .op = WIRE_MEMBER_JOIN, .srvid = (int32_t)svr.opt.srvid, .pid = (int32_t)getpid() };
	struct wire_member leave = { .op = WIRE_MEMBER_LEAVE };

	set.epoch++;
	say(&join);
	offers_each(say_offer);
	say_ready(0, set.room > set.given ? set.room - set.given : 0);
	if (set.leaving)
		say(&leave);
}

static bool
reach(int64_t patience_us)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (set.link != NULL)
		return true;
	if (clock_mono_us() < set.next_try_us)
		return false;
	if (link_client_open(set.endpoint, &set.link) != LINK_OK ||
	    link_client_connect(set.link, clock_mono_us() + patience_us) != LINK_OK) {
		hang_up();
		return false;
	}
	e.data.fd = link_client_fd(set.link);
	if (epoll_ctl(set.fd, EPOLL_CTL_ADD, e.data.fd, &e) != 0) {
		hang_up();
		return false;
	}
	introduce();
	return true;
}

static int
wake_watch(bool yes)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = set.wake_fd };

	return epoll_ctl(set.fd, yes ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, set.wake_fd, &e);
}

int
set_open(const struct ubb_set *of, char *endpoint, size_t size)
{
	if (ubb_set_endpoint(svr.app->ubb, of, endpoint, size) != 0 ||
	    ubb_set_members(svr.app->ubb, of, set.endpoint, sizeof set.endpoint) != 0) {
		ulog("LIBTUX_CAT:5095: ERROR: the run directory of TUXCONFIG %s is too long for a socket", svr.app->tuxconfig);
		return -1;
	}
	if ((set.fd = epoll_create1(EPOLL_CLOEXEC)) >= 0)
		return 0;
	ulog("LIBTUX_CAT:5220: ERROR: cannot join the request queue %s: %m", of->rqaddr);
	return -1;
}

int
set_join(unsigned room, int wake_fd)
{
	int64_t until = clock_mono_us() + JOIN_US;
	bool there = false;

	pthread_mutex_lock(&set.lock);
	set.room = room;
	set.wake_fd = wake_fd;
	if (wake_watch(true) == 0)
		while (!(there = reach(JOIN_US)) && clock_mono_us() < until && !svr_stopping()) {
			set.next_try_us = 0;
			pthread_mutex_unlock(&set.lock);
			usleep(AGAIN_US);
			pthread_mutex_lock(&set.lock);
		}
	set.joined = there;
	pthread_mutex_unlock(&set.lock);
	if (there)
		return 0;
	ulog("LIBTUX_CAT:5220: ERROR: cannot join the request queue at %s: it does not answer", set.endpoint);
	return -1;
}

void
set_close(void)
{
	if (!set_member())
		return;
	pthread_mutex_lock(&set.lock);
	hang_up();
	set.joined = false;
	close(set.fd);
	set.fd = -1;
	wr_free(&set.out);
	pthread_mutex_unlock(&set.lock);
}

/* ---- what others of the server have to say ---- */

void
set_offer(const char *service, bool yes)
{
	if (!set_member())
		return;
	pthread_mutex_lock(&set.lock);
	if (set.joined)
		say_offer(service, yes);
	pthread_mutex_unlock(&set.lock);
}

bool
set_reply(const struct link_peer *to, const struct wire_reply *reply, bool more, const struct link_body *body)
{
	struct wire_reply m = *reply;
	bool sent = false;

	pthread_mutex_lock(&set.lock);
	m.leaving = 0;
	m.more = more;
	wire_reply_encode(&set.out, &m);
	if (epoch_of(to) == set.epoch)
		sent = say_out(body);
	else if (body != NULL && body->release != NULL)
		body->release((void *)(uintptr_t)body->p, body->hint);
	pthread_mutex_unlock(&set.lock);
	return sent;
}

void
set_over(const struct link_peer *peer, uint64_t reqid, bool asked)
{
	bool same;

	pthread_mutex_lock(&set.lock);
	same = epoch_of(peer) == set.epoch;
	set.given--;
	if (!asked || !same)
		say_ready(same ? reqid : 0, svr.leaving ? 0 : 1);
	pthread_mutex_unlock(&set.lock);
}

void
set_leave(void)
{
	struct wire_member m = { .op = WIRE_MEMBER_LEAVE };

	pthread_mutex_lock(&set.lock);
	set.leaving = true;
	(void)wake_watch(false);	/* it says nothing new from now on */
	if (set.link != NULL)
		say(&m);
	pthread_mutex_unlock(&set.lock);
}

bool
set_left(void)
{
	bool yes;

	pthread_mutex_lock(&set.lock);
	yes = set.left || (set.leaving && set.link == NULL);	/* a queue that is gone gives nothing */
	pthread_mutex_unlock(&set.lock);
	return yes;
}

/* ---- receiving ---- */

static bool	/* True: a request. */
is_call(const struct link_msg *m)
{
	struct wire_member word;
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) == 0 && kind == WIRE_CALL)
		return true;
	if (wire_member_decode(m->head, m->head_len, &word) == 0 && word.op == WIRE_MEMBER_LEAVE)
		set.left = true;
	return false;
}

bool
set_take(struct link_msg *m)
{
	bool got = false;
	int rc;

	pthread_mutex_lock(&set.lock);
	while (!got && reach(TRY_US)) {
		if ((rc = link_client_recv(set.link, m, 0)) == LINK_GONE || rc == LINK_FAIL) {
			ulog("LIBTUX_CAT:5221: WARN: the request queue at %s is gone; it is joined again once it is back", set.endpoint);
			hang_up();
			set.next_try_us = 0;
			break;
		}
		if (rc != LINK_OK)
			break;
		if ((got = is_call(m))) {
			memset(&m->peer, 0, sizeof m->peer);
			memcpy(m->peer.id, &set.epoch, sizeof set.epoch);
			set.given++;
		} else
			link_msg_done(m);
	}
	pthread_mutex_unlock(&set.lock);
	return got;
}

int64_t
set_next_us(void)
{
	int64_t next;

	pthread_mutex_lock(&set.lock);
	next = set.link != NULL ? LINK_FOREVER : set.next_try_us > 0 ? set.next_try_us : 1;
	pthread_mutex_unlock(&set.lock);
	return next;
}
