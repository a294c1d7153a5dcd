#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "ulog.h"

#define TICK_US 1000000
#define AGAIN_US 250000		/* between two questions about a service that is to come */
#define ALONE_US 60000000	/* without a member, before BBL is asked whether we are of use */
enum { AT_ONCE = 256, AT_A_DEATH = 100000, REAP_EVERY = 16 };

/* --- opening and closing --- */

static int
signals_open(struct serve *s)
{
	struct epoll_event e = { .events = EPOLLIN };
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || (s->epfd = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
	    (s->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return -1;
	e.data.fd = s->sigfd;
	return epoll_ctl(s->epfd, EPOLL_CTL_ADD, s->sigfd, &e);
}

static int
listen_at(const char *endpoint, unsigned perm, struct link_server **out)
{
	if (link_server_open(endpoint, perm, out) == LINK_OK)
		return 0;
	ulog("CMDTUX_CAT:1725: ERROR: TMRQ cannot listen at %s: %s", endpoint, strerror(errno));
	return -1;
}

int
serve_open(struct serve *s, const struct ubb *u, const struct ubb_set *set, const char *bbl)
{
	const struct ubb_machine *m = ubb_machine_here(u);
	unsigned perm = (unsigned)(m != NULL ? m->perm : u->res.perm);
	char callers[300], members[300];

	memset(s, 0, sizeof *s);
	s->ubb = u;
	s->set = *set;
	s->epfd = s->sigfd = -1;
	s->ask = (struct ask){ .endpoint = bbl, .set = &s->set };
	queue_open(&s->queue);
	if (set->rqperm > 0)
		perm &= (unsigned)set->rqperm;
	if (ubb_set_endpoint(u, set, callers, sizeof callers) != 0 || ubb_set_members(u, set, members, sizeof members) != 0) {
		ulog("CMDTUX_CAT:1725: ERROR: TMRQ cannot listen: the run directory %s is too long for a socket", u->rundir);
		return -1;
	}
	if (signals_open(s) != 0) {
		ulog("CMDTUX_CAT:1725: ERROR: TMRQ cannot listen: %s", strerror(errno));
		return -1;
	}
	/* Who may call is what RQPERM says; members are processes of our own user. */
	return listen_at(members, 0600, &s->members) != 0 || listen_at(callers, perm, &s->callers) != 0 ? -1 : 0;
}

static void
refuse_all(struct serve *s)
{
	struct request *r, *next;

	for (r = s->queue.by_id; r != NULL; r = next) {
		next = r->by_id.next;
		caller_answer(s, r, r->member == NULL ? TPENOENT : TPESVCERR);
		queue_over(&s->queue, r);	// NOLINT: the hash has the next one then
	}
}

void
serve_close(struct serve *s)
{
	const struct member *m;

	refuse_all(s);
	for (m = s->queue.members; m != NULL; m = m->hh.next)
		if (m->pidfd >= 0)
			close(m->pidfd);
	link_server_close(s->callers);
	link_server_close(s->members);
	queue_close(&s->queue);
	ask_close(&s->ask);
	wr_free(&s->out);
	if (s->epfd >= 0)
		close(s->epfd);
	if (s->sigfd >= 0)
		close(s->sigfd);
}

/* --- hearing --- */

static void
hear_members(struct serve *s)
{
	struct link_msg m;
	int rc = link_server_recv(s->members, &m, 0, -1);

	for (int n = 0; rc == LINK_OK; rc = link_server_recv_rest(s->members, &m)) {
		member_hear(s, &m);
		link_msg_done(&m);
		if (++n == AT_ONCE)
			break;
	}
}

static void
hear_callers(struct serve *s)
{
	struct link_msg m;
	int rc = link_server_recv(s->callers, &m, 0, -1);

	for (int n = 0; rc == LINK_OK; rc = link_server_recv_rest(s->callers, &m)) {
		caller_hear(s, &m);
		link_msg_done(&m);
		if (++n == AT_ONCE || queue_full(&s->queue))
			break;
	}
}

/* All that they said so far. */
static void
hear_members_out(struct serve *s)
{
	struct link_msg m;

	for (int n = 0; n < AT_A_DEATH && link_server_recv(s->members, &m, 0, -1) == LINK_OK; n++) {
		member_hear(s, &m);
		link_msg_done(&m);
	}
}

/* --- deaths --- */

static struct member *
member_by_pidfd(const struct serve *s, int fd)
{
	struct member *m;

	for (m = s->queue.members; m != NULL && m->pidfd != fd; m = m->hh.next)
		;
	return m;
}

static void
reap(struct serve *s)
{
	struct epoll_event events[64];
	struct signalfd_siginfo si;
	struct member *m;
	int n = epoll_wait(s->epfd, events, 64, 0);

	if (n > 0)
		hear_members_out(s);	/* what it said before it died counts */
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == s->sigfd) {
			if (read(s->sigfd, &si, sizeof si) == (ssize_t)sizeof si)
				s->end = true;
		} else if ((m = member_by_pidfd(s, events[i].data.fd)) != NULL)
			member_lost(s, m);
	}
}

/* --- what time brings --- */

static void	/* Those whose time is over, or whose caller is gone, take no place. */
sweep(struct serve *s, int64_t now)
{
	struct request *r, *next;

	for (r = s->queue.by_id; r != NULL; r = next) {
		next = r->by_id.next;
		if ((r->member == NULL || r->forwarded) && (now >= r->deadline_us ||
		    (r->call.tx.gtrid_len > 0 && link_server_left(s->callers, &r->caller))))
			queue_over(&s->queue, r);	// NOLINT: the hash has the next one then
	}
}

static void	/* Who hung up without dying; a death is told by its pidfd. */
members_look(struct serve *s)
{
	struct member *m, *next;

	hear_members_out(s);
	for (m = s->queue.members; m != NULL; m = next) {
		next = m->hh.next;
		if (link_server_left(s->members, &m->peer))
			member_lost(s, m);	// NOLINT: the hash has the next one then
	}
}

static void
refuse_service(struct serve *s, const char *name)
{
	struct rqueue_entry *e, *younger;
	struct service *v;

	HASH_FIND(hh, s->queue.services, name, strlen(name), v);
	if (v == NULL || v->offering > 0)
		return;
	for (e = rqueue_oldest(&v->waiting); e != NULL; e = younger) {
		struct request *r = (struct request *)(void *)e;

		younger = e->younger;
		caller_answer(s, r, TPENOENT);
		queue_over(&s->queue, r);
	}
}

static void	/* BBL's word on a service that no member offers */
judge(struct serve *s, enum ask_answer answer)
{
	struct service *v;

	if (answer == ASK_NO && s->ask.service[0] != '\0') {
		refuse_service(s, s->ask.service);
		return;
	}
	if (s->ask.service[0] == '\0') {
		s->end = s->end || (answer != ASK_YES && s->queue.members == NULL);
		s->alone_us = clock_mono_us();
		return;
	}
	HASH_FIND(hh, s->queue.services, s->ask.service, strlen(s->ask.service), v);
	if (v != NULL)
		v->ask_us = clock_mono_us() + (answer == ASK_YES ? AGAIN_US : TICK_US);
}

static void
ask_turn(struct serve *s, int64_t now)
{
	enum ask_answer answer = ask_take(&s->ask);
	struct service *v;

	if (answer != ASK_NOTHING)
		judge(s, answer);
	if (ask_busy(&s->ask))
		return;
	if ((v = queue_orphan(&s->queue, now)) != NULL)
		ask_begin(&s->ask, v->name);
	else if (s->alone_us != 0 && now - s->alone_us > ALONE_US)
		ask_begin(&s->ask, "");
}

static void
tick(struct serve *s, int64_t now)
{
	s->tick_us = now + TICK_US;
	sweep(s, now);
	members_look(s);
	if (s->queue.members == NULL && s->alone_us == 0)
		s->alone_us = now;
}

/* --- the loop --- */

static int64_t
next_due(const struct serve *s)
{
	const struct service *v;
	int64_t due = s->tick_us;

	for (v = s->queue.waiting; v != NULL && !ask_busy(&s->ask); v = v->next)
		if (v->offering == 0 && v->ask_us < due)
			due = v->ask_us;
	return due;
}

void
serve_turn(struct serve *s, int64_t deadline_us)
{
	struct link_wait w[3] = { { .server = s->members } };
	size_t n = 1;
	int64_t due = next_due(s), now;
	int ready;

	if (!queue_full(&s->queue))
		w[n++].server = s->callers;
	if (ask_busy(&s->ask) && s->ask.bbl != NULL)
		w[n++].client = s->ask.bbl;
	ready = link_wait(w, n, due < deadline_us ? due : deadline_us, s->epfd);
	if (w[0].ready)
		hear_members(s);
	if (ready <= 0 || ++s->turns % REAP_EVERY == 0)
		reap(s);
	hand_out(s);
	if (w[1].ready && w[1].server != NULL) {
		hear_callers(s);
		hand_out(s);
	}
	now = clock_mono_us();
	if (now >= s->tick_us)
		tick(s, now);
	ask_turn(s, now);
}
