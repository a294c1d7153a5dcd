#include "sets.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "supervisor.h"
#include "ulog.h"

#define STEADY_US INT64_C(1000000)	/* who ran that long is started again at once */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define FORCE_US INT64_C(5000000)	/* after the order to end */

static struct rqset *
set_find(const struct bbl *b, const char *group, long id)
{
	struct rqset *q;

	for (q = b->sets; q != NULL && (q->id != id || strcmp(q->group, group) != 0); q = q->next)
		;
	return q;
}

static struct rqset *
set_get(struct bbl *b, const struct ubb_set *set)
{
	struct rqset *q = set_find(b, set->group->name, set->id);

	if (q != NULL || (q = calloc(1, sizeof *q)) == NULL)
		return q;
	snprintf(q->group, sizeof q->group, "%s", set->group->name);
	snprintf(q->rqaddr, sizeof q->rqaddr, "%s", set->rqaddr);
	q->grpno = set->group->grpno;
	q->id = set->id;
	q->pidfd = -1;
	q->due_us = LINK_FOREVER;
	q->next = b->sets;
	b->sets = q;
	return q;
}

static bool	/* A server of it is there, whatever it is doing. */
is_wanted(const struct bbl *b, const struct rqset *q)
{
	for (size_t i = 0; i < b->reg.n_servers; i++) {
		const struct server *s = b->reg.servers[i];

		if (s->conf != NULL && s->grpno == q->grpno && strcmp(s->conf->rqaddr, q->rqaddr) == 0)
			return true;
	}
	return false;
}

static int
set_watch(struct bbl *b, struct rqset *q)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = q->pidfd };

	return epoll_ctl(b->epfd, EPOLL_CTL_ADD, q->pidfd, &e);
}

static int
set_launch(struct bbl *b, struct rqset *q, char *why, size_t size)
{
	int go_fd;

	q->since_us = clock_mono_us();
	q->due_us = LINK_FOREVER;
	q->ending = false;
	if (tmrq_spawn(b, q->grpno, q->id, &q->pid, &q->pidfd, &go_fd, why, size) != 0) {
		q->pid = 0;
		return -1;
	}
	q->start_time = proc_start_time(q->pid);
	if (set_watch(b, q) != 0)
		ulog_debug("the queue of %s cannot be watched: %m", q->rqaddr);
	supervisor_save(b);		/* first: a BBL that follows has to know it */
	if (write(go_fd, "", 1) != 1)
		ulog_debug("the queue of %s does not begin: %m", q->rqaddr);
	close(go_fd);
	return 0;
}

int
sets_start(struct bbl *b, const struct server *s, char *why, size_t size)
{
	struct ubb_set set;
	struct rqset *q;

	if (s->conf == NULL || !ubb_set_of(b->app.ubb, s->conf, &set))
		return 0;
	if ((q = set_get(b, &set)) == NULL) {
		snprintf(why, size, "out of memory");
		return -1;
	}
	return q->pid != 0 ? 0 : set_launch(b, q, why, size);
}

static void
pidfd_close(struct bbl *b, struct rqset *q)
{
	if (q->pidfd < 0)
		return;
	(void)epoll_ctl(b->epfd, EPOLL_CTL_DEL, q->pidfd, NULL);
	close(q->pidfd);
	q->pidfd = -1;
}

static void
backoff(struct rqset *q)
{
	bool steady = clock_mono_us() - q->since_us >= STEADY_US;

	q->backoff_ms = steady ? 0 : q->backoff_ms == 0 ? BACKOFF_FIRST_MS : q->backoff_ms * 2;
	if (q->backoff_ms > BACKOFF_MAX_MS)
		q->backoff_ms = BACKOFF_MAX_MS;
	q->due_us = clock_mono_us() + q->backoff_ms * 1000;
}

static void
set_died(struct bbl *b, struct rqset *q)
{
	siginfo_t si = { 0 };
	char how[128];

	if (waitid((idtype_t)3 /* P_PIDFD */, (id_t)q->pidfd, &si, WEXITED | WNOHANG) != 0)
		si.si_code = 0;
	proc_tell_end(si.si_code, si.si_status, how, sizeof how);
	pidfd_close(b, q);
	if (q->ending) {
		q->due_us = 0;		/* looked at by the next tick: forgotten, or started for servers that came meanwhile */
	} else {
		backoff(q);
		ulog("CMDTUX_CAT:1727: WARN: the request queue %s of group %s (TMRQ), process %ld, %s; restarted in %ld ms; what waited "
		     "there is lost", q->rqaddr, q->group, (long)q->pid, how, q->backoff_ms);
	}
	q->pid = 0;
	supervisor_save(b);
}

bool
sets_reap(struct bbl *b, int fd)
{
	struct rqset *q;

	for (q = b->sets; q != NULL && q->pidfd != fd; q = q->next)
		;
	if (q == NULL)
		return false;
	set_died(b, q);
	return true;
}

bool
sets_reap_pid(struct bbl *b, pid_t pid)
{
	struct rqset *q;

	for (q = b->sets; q != NULL && (q->pid != pid || q->pidfd < 0); q = q->next)
		;
	if (q == NULL)
		return false;
	set_died(b, q);
	return true;
}

/* What is to become of it now.  False: it is to be forgotten. */
static bool
set_turn(struct bbl *b, struct rqset *q, int64_t now)
{
	bool wanted = is_wanted(b, q);
	char why[1024];

	if (q->pid == 0 && !wanted)
		return false;
	if (q->pid == 0 && now >= q->due_us) {
		if (set_launch(b, q, why, sizeof why) != 0) {
			backoff(q);
			ulog("CMDTUX_CAT:1728: ERROR: the request queue %s of group %s cannot be started: %s", q->rqaddr, q->group, why);
		}
		supervisor_save(b);
	} else if (q->pid != 0 && !q->ending && !wanted) {
		kill(q->pid, SIGTERM);
		q->ending = true;
		q->due_us = now + FORCE_US;
	} else if (q->pid != 0 && q->ending && now >= q->due_us) {
		kill(q->pid, SIGKILL);
		q->due_us = LINK_FOREVER;
	}
	return true;
}

void
sets_tick(struct bbl *b)
{
	int64_t now = clock_mono_us();
	struct rqset **at, *q;

	for (at = &b->sets; (q = *at) != NULL;) {
		if (set_turn(b, q, now)) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		free(q);
	}
}

int64_t
sets_next_due(const struct bbl *b)
{
	int64_t due = LINK_FOREVER;

	for (const struct rqset *q = b->sets; q != NULL; q = q->next)
		if (q->due_us < due)
			due = q->due_us;
	return due;
}

bool
sets_any(const struct bbl *b)
{
	const struct rqset *q;

	for (q = b->sets; q != NULL && q->pid == 0; q = q->next)
		;
	return q != NULL;
}

void
sets_take_in(struct bbl *b, const struct state *old)
{
	for (size_t i = 0; i < old->n_sets; i++) {
		const struct state_set *o = &old->sets[i];
		const struct ubb_group *g = ubb_group_by_name(b->app.ubb, o->group);
		struct ubb_set set;
		struct rqset *q;

		if (!proc_is(o->pid, o->start_time))
			continue;
		if (g == NULL || !ubb_set_find(b->app.ubb, g->grpno, o->id, &set) || (q = set_get(b, &set)) == NULL || q->pid != 0) {
			kill(o->pid, SIGTERM);	/* TUXCONFIG has no such set any more */
			continue;
		}
		q->since_us = clock_mono_us();
		q->start_time = o->start_time;
		if ((q->pidfd = proc_pidfd(o->pid)) >= 0 && set_watch(b, q) == 0)
			q->pid = o->pid;
	}
}

void
sets_close(struct bbl *b)
{
	struct rqset *q;

	while ((q = b->sets) != NULL) {
		b->sets = q->next;
		if (q->pidfd >= 0)
			close(q->pidfd);
		free(q);
	}
}
