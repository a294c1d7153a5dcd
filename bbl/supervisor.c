#include "supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "sets.h"
#include "ulog.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define TERM_MOST_S 5	/* between SIGTERM and SIGKILL: a server that is not stuck needs less */
#define STEADY_US INT64_C(1000000)	/* ready for that long: the next death begins without a pause */

void
supervisor_save(struct bbl *b)
{
	char path[512];

	app_file(&b->app, APP_STATE, path, sizeof path);
	if (state_write(&b->reg, b->sets, b->app.tuxconfig, path) != 0)
		ulog("CMDTUX_CAT:1688: WARN: cannot write %s: %s; a new BBL would not know the servers it has to restart",
		    path, strerror(errno));
}

int
supervisor_wait_for(struct server *s, const struct link_peer *who, uint64_t reqid)
{
	struct waiter *w = calloc(1, sizeof *w);

	if (w == NULL)
		return -1;
	w->peer = *who;
	w->reqid = reqid;
	w->next = s->waiters;
	s->waiters = w;
	return 0;
}

/* Tell all who wait for this server how it went. */
static void
waiters_tell(struct bbl *b, struct server *s, int status, const char *text)
{
	struct document d = { 0 };
	struct record *r = document_add(&d);

	if (r != NULL)
		(void)record_setf(r, "pid", "%ld", (long)s->pid);
	while (s->waiters != NULL) {
		struct waiter *w = s->waiters;

		s->waiters = w->next;
		if (status == 0 && w->second)
			bbl_answer(b, &w->peer, w->reqid, TPEMATCH, DUPLICATE_SERVER, &d);
		else
			bbl_answer(b, &w->peer, w->reqid, status, text, &d);
		free(w);
	}
	document_free(&d);
}

static void
descriptors_close(struct bbl *b, struct server *s)
{
	if (s->pidfd >= 0) {
		(void)epoll_ctl(b->epfd, EPOLL_CTL_DEL, s->pidfd, NULL);
		close(s->pidfd);
	}
	if (s->why_fd >= 0)
		close(s->why_fd);
	if (s->go_fd >= 0)
		close(s->go_fd);
	s->pidfd = s->why_fd = s->go_fd = -1;
}

static void
server_gone(struct bbl *b, struct server *s, int status, const char *text)
{
	descriptors_close(b, s);
	waiters_tell(b, s, status, text);
	registry_remove(&b->reg, s);
	supervisor_save(b);
}

static int
pidfd_add(struct bbl *b, struct server *s)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = s->pidfd };

	return epoll_ctl(b->epfd, EPOLL_CTL_ADD, s->pidfd, &e);
}

int
supervisor_watch(struct bbl *b, struct server *s)
{
	char why[1024];

	descriptors_close(b, s);
	if (sets_start(b, s, why, sizeof why) != 0)
		ulog("CMDTUX_CAT:1728: ERROR: the request queue of server %s/%ld cannot be started: %s", s->group, s->srvid, why);
	if ((s->start_time = proc_start_time(s->pid)) == 0 || (s->pidfd = proc_pidfd(s->pid)) < 0)
		return -1;
	return pidfd_add(b, s);
}

/* A process for the row, which enters STARTING.  The row stays whatever comes. */
static int
server_launch(struct bbl *b, struct server *s, char *why, size_t size)
{
	if (s->state == SERVER_DOWN)
		server_enter(s, SERVER_STARTING);
	server_offers_stale(s);
	s->has_peer = s->was_ready = s->wanted_end = s->hung = s->hang_told = s->late_told = false;
	s->doom[0] = '\0';
	s->suspect_us = 0;
	s->current[0] = '\0';
	s->done = s->load = 0;
	s->generation++;
	s->since_us = clock_mono_us();
	s->due_us = s->since_us + START_LIMIT_S * INT64_C(1000000);
	if (sets_start(b, s, why, size) != 0 || server_spawn(b, s, why, size) != 0)
		return -1;
	if (pidfd_add(b, s) != 0) {
		snprintf(why, size, "epoll: %s", strerror(errno));
		return -1;
	}
	supervisor_save(b);
	server_go(s);
	return 0;
}

int
supervisor_start(struct bbl *b, struct server *s, char *why, size_t size)
{
	if (server_launch(b, s, why, size) == 0)
		return 0;
	ulog("CMDTUX_CAT:1685: ERROR: Application initialization failure: server %s/%ld (%s): %s", s->group, s->srvid,
	    s->program, why);
	server_gone(b, s, TPESYSTEM, why);
	return -1;
}

void
supervisor_ready(struct bbl *b, struct server *s)
{
	if (s->state != SERVER_STARTING)
		return;
	server_enter(s, SERVER_READY);
	registry_drop_stale_offers(&b->reg, s);
	if (s->why_fd >= 0)
		close(s->why_fd);
	s->why_fd = -1;
	if (s->generation > 1 && s->waiters == NULL && !s->was_ready)
		ulog("CMDTUX_CAT:1690: INFO: server %s/%ld (%s) runs again: process %ld, generation %ld", s->group, s->srvid,
		    s->program, (long)s->pid, s->generation);
	waiters_tell(b, s, 0, NULL);
	supervisor_save(b);
}

void
supervisor_send_stop(struct bbl *b, struct server *s)
{
	struct wire_admin stop = { .op = "stop" };
	struct wr w = { 0 };
	int rc;

	wire_admin_encode(&w, &stop);
	rc = s->has_peer && wr_ok(&w) ? link_server_send(b->link, &s->peer, w.p, w.len, NULL) : LINK_GONE;
	wr_free(&w);
	if (rc != LINK_OK && s->pid > 0) {	/* it cannot hear us */
		kill(s->pid, SIGTERM);
		s->signal_sent = SIGTERM;
	}
}

void
supervisor_stop(struct bbl *b, struct server *s, long delay_s, int sig)
{
	int64_t due = clock_mono_us() + (delay_s > 0 ? delay_s : STOP_LIMIT_S) * INT64_C(1000000);

	if (server_is_tms(s) || s->state == SERVER_DOWN) {
		server_gone(b, s, 0, NULL);
		return;
	}
	if (s->state != SERVER_STOPPING) {
		server_enter(s, SERVER_STOPPING);
		s->delay_s = 0;
		s->signal_sent = 0;
		supervisor_save(b);
	}
	/* A second order may hurry, and takes nothing back of what the first one said. */
	if (delay_s > 0 && (s->delay_s == 0 || delay_s < s->delay_s))
		s->delay_s = delay_s;
	if (due < s->due_us)
		s->due_us = due;
	if (sig != 0) {
		kill(s->pid, sig);
		s->signal_sent = s->signal_sent == SIGKILL ? SIGKILL : sig;
	} else if (s->signal_sent == 0) {
		supervisor_send_stop(b, s);
	}
}

/* Is one more restart allowed?  Counts it when it is. */
static bool
restart_is_allowed(struct server *s, char *why_not, size_t size)
{
	int64_t now = clock_mono_us();

	if (!s->conf->restart) {
		snprintf(why_not, size, "RESTART=N");
		return false;
	}
	if (s->conf->grace > 0) {	/* 0: no limit */
		if (s->restarts == 0 || now - s->grace_begin_us > s->conf->grace * INT64_C(1000000)) {
			s->grace_begin_us = now;
			s->restarts = 0;
		}
		if (s->restarts >= s->conf->maxgen - 1) {
			snprintf(why_not, size, "MAXGEN=%ld allows %ld restarts within GRACE=%ld seconds", s->conf->maxgen,
			    s->conf->maxgen - 1, s->conf->grace);
			return false;
		}
	}
	s->restarts++;
	return true;
}

/* Dead, unwanted and past its first start: again, or never. */
static void
server_bury_or_restart(struct bbl *b, struct server *s, const char *how)
{
	/* One that an earlier BBL started was ready before that one died: nothing is known against it. */
	bool steady = s->was_ready || (s->state == SERVER_READY && clock_mono_us() - s->since_us >= STEADY_US);
	char why_not[128];

	descriptors_close(b, s);
	if (!restart_is_allowed(s, why_not, sizeof why_not)) {
		ulog("CMDTUX_CAT:1691: ERROR: server %s/%ld (%s), process %ld, generation %ld, %s; not restarted: %s",
		    s->group, s->srvid, s->program, (long)s->pid, s->generation, how, why_not);
		server_gone(b, s, TPESYSTEM, how);
		return;
	}
	s->backoff_ms = steady ? 0 : s->backoff_ms == 0 ? BACKOFF_FIRST_MS : s->backoff_ms * 2;
	if (s->backoff_ms > BACKOFF_MAX_MS)
		s->backoff_ms = BACKOFF_MAX_MS;
	ulog("CMDTUX_CAT:1689: WARN: server %s/%ld (%s), process %ld, generation %ld, %s; restarted in %ld ms", s->group,
	    s->srvid, s->program, (long)s->pid, s->generation, how, s->backoff_ms);
	server_enter(s, SERVER_DOWN);
	s->has_peer = false;
	s->current[0] = '\0';
	s->due_us = clock_mono_us() + s->backoff_ms * INT64_C(1000);
	supervisor_save(b);
}

static void
server_restart(struct bbl *b, struct server *s)
{
	char why[1024];

	server_run_rcmd(b, s);
	if (server_launch(b, s, why, sizeof why) != 0)
		server_bury_or_restart(b, s, why);
}

/* How it ended, with what it could tell before it even ran. */
static void
death_tell(struct server *s, char *how, size_t size)
{
	siginfo_t si = { 0 };
	char text[512];
	ssize_t n;

	if (waitid((idtype_t)3 /* P_PIDFD */, (id_t)s->pidfd, &si, WEXITED | WNOHANG) != 0)
		si.si_code = 0;
	if (s->doom[0] != '\0')
		snprintf(how, size, "%s", s->doom);
	else if (s->why_fd >= 0 && (n = read(s->why_fd, text, sizeof text - 1)) > 0)
		snprintf(how, size, "%.*s", (int)n, text);
	else
		proc_tell_end(si.si_code, si.si_status, how, size);
}

static void
server_died(struct bbl *b, struct server *s)
{
	char how[600], text[800];

	death_tell(s, how, sizeof how);
	if (s->state == SERVER_STOPPING) {
		server_gone(b, s, 0, NULL);
	} else if (s->state == SERVER_STARTING && !s->was_ready && (s->generation <= 1 || s->waiters != NULL)) {
		snprintf(text, sizeof text, "process %ld %s%s", (long)s->pid, how, " before it was ready");
		ulog("CMDTUX_CAT:1685: ERROR: Application initialization failure: server %s/%ld (%s): %s", s->group, s->srvid,
		    s->program, text);
		server_gone(b, s, TPESYSTEM, text);
	} else if (s->wanted_end && s->state != SERVER_STARTING) {
		ulog("CMDTUX_CAT:1692: INFO: server %s/%ld (%s), process %ld, has ended as it wanted to", s->group, s->srvid,
		    s->program, (long)s->pid);
		server_gone(b, s, 0, NULL);
	} else {
		server_bury_or_restart(b, s, how);
	}
}

static struct server *
server_by_pidfd(const struct bbl *b, int fd)
{
	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (b->reg.servers[i]->pidfd == fd)
			return b->reg.servers[i];
	return NULL;
}

static struct server *
server_by_pid(const struct bbl *b, pid_t pid)
{
	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (b->reg.servers[i]->pid == pid && b->reg.servers[i]->pidfd >= 0)
			return b->reg.servers[i];
	return NULL;
}

/* Children of ours: servers, and what others left behind where we are the first process of a container. */
static void
children_reap(struct bbl *b)
{
	for (;;) {
		siginfo_t si = { .si_pid = 0 };
		struct server *s;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid == 0)
			return;
		if ((s = server_by_pid(b, si.si_pid)) != NULL) {
			server_died(b, s);
		} else if (!sets_reap_pid(b, si.si_pid)) {
			(void)waitid(P_PID, (id_t)si.si_pid, &si, WEXITED | WNOHANG);
			fore_child_ended(b, si.si_pid, &si);
		}
	}
}

void
supervisor_reap(struct bbl *b)
{
	struct epoll_event events[64];
	int n = epoll_wait(b->epfd, events, 64, 0);

	for (int i = 0; i < n; i++) {
		struct signalfd_siginfo si;
		struct server *s;

		if (events[i].data.fd == b->sigfd) {
			if (read(b->sigfd, &si, sizeof si) != (ssize_t)sizeof si)
				continue;
			if (si.ssi_signo == SIGCHLD)
				children_reap(b);
			else
				fore_stop(b);
		} else if ((s = server_by_pidfd(b, events[i].data.fd)) != NULL) {
			server_died(b, s);
		} else {
			(void)sets_reap(b, events[i].data.fd);
		}
	}
}

static void
stop_is_late(struct bbl *b, struct server *s)
{
	char text[160];
	int64_t second = INT64_C(1000000);

	if (s->delay_s > 0 && s->signal_sent != SIGKILL) {
		s->signal_sent = s->signal_sent == SIGTERM ? SIGKILL : SIGTERM;
		kill(s->pid, s->signal_sent);
		s->due_us = clock_mono_us() + (s->signal_sent == SIGKILL ? STOP_LIMIT_S : s->delay_s < TERM_MOST_S ? s->delay_s :
		    TERM_MOST_S) * second;
		return;
	}
	s->due_us = LINK_FOREVER;
	snprintf(text, sizeof text, "process %ld still runs %ld s after the order to stop", (long)s->pid,
	    (long)((clock_mono_us() - s->since_us) / second));
	waiters_tell(b, s, TPETIME, text);
}

static void
start_is_late(struct bbl *b, struct server *s)
{
	char text[160];

	s->due_us = LINK_FOREVER;
	snprintf(text, sizeof text, "process %ld is still initialising after %d s", (long)s->pid, START_LIMIT_S);
	ulog("CMDTUX_CAT:1693: WARN: server %s/%ld (%s): %s", s->group, s->srvid, s->program, text);
	waiters_tell(b, s, TPETIME, text);
}

void
supervisor_tick(struct bbl *b)
{
	int64_t now = clock_mono_us();

	for (size_t i = b->reg.n_servers; i-- > 0;) {	/* backwards: a row may go away */
		struct server *s = i < b->reg.n_servers ? b->reg.servers[i] : NULL;

		if (s == NULL || s->due_us > now)
			continue;
		if (s->state == SERVER_DOWN)
			server_restart(b, s);
		else if (s->state == SERVER_STOPPING)
			stop_is_late(b, s);
		else if (s->state == SERVER_STARTING)
			start_is_late(b, s);
	}
	sets_tick(b);
}

int64_t
supervisor_next_due(const struct bbl *b)
{
	int64_t due = sets_next_due(b);

	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (b->reg.servers[i]->due_us < due)
			due = b->reg.servers[i]->due_us;
	return due;
}

static void
server_take_in(struct bbl *b, const struct state_server *old)
{
	struct server *s;
	char why[256];

	if (registry_add(&b->reg, old->group, old->srvid, &s, why, sizeof why) != 0) {
		ulog("CMDTUX_CAT:1694: WARN: process %ld of an earlier BBL is not taken in: %s", (long)old->pid, why);
		return;
	}
	s->generation = old->generation;
	s->restarts = old->restarts;
	s->grace_begin_us = old->grace_begin_us;
	s->backoff_ms = old->backoff_ms;
	for (size_t i = 0; i < old->n_offers; i++)
		(void)registry_advertise(&b->reg, s, old->offers[i].service, old->offers[i].function);
	server_offers_stale(s);
	s->pid = old->tms ? getpid() : old->pid;
	s->was_ready = old->was_ready;
	if (old->tms) {
		server_enter(s, SERVER_READY);
	} else if (proc_is(old->pid, old->start_time) && supervisor_watch(b, s) == 0) {
		if (old->stopping)
			server_enter(s, SERVER_STOPPING);	/* told again when it registers */
	} else if (old->stopping) {
		server_gone(b, s, 0, NULL);
	} else if (!old->was_ready && old->generation <= 1) {
		ulog("CMDTUX_CAT:1685: ERROR: Application initialization failure: server %s/%ld (%s): process %ld ended while no BBL "
		    "ran, before it was ready", s->group, s->srvid, s->program, (long)s->pid);
		server_gone(b, s, TPESYSTEM, NULL);
	} else {
		server_bury_or_restart(b, s, "ended while no BBL ran");
	}
}

void
supervisor_resume(struct bbl *b)
{
	struct state old;
	char path[512];

	app_file(&b->app, APP_STATE, path, sizeof path);
	if (state_read(path, &old) != 0)
		return;
	sets_take_in(b, &old);
	for (size_t i = 0; i < old.n; i++)
		server_take_in(b, &old.servers[i]);
	if (old.n > 0)
		ulog("CMDTUX_CAT:1695: INFO: taken over from an earlier BBL: %zu of %zu servers", b->reg.n_servers, old.n);
	state_free(&old);
}
