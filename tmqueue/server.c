#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bb.h"
#include "clock.h"
#include "command.h"
#include "courier.h"
#include "link.h"
#include "places.h"
#include "quiet.h"
#include "tmqueue.h"

#define LINGER_US 30		/* wait this long for clients that were active in the last two batches */
#define STANDBY_US 100000	/* between two looks at the ownership lock */
#define MISFIT_US 10000000	/* and after a space that did not open though it was free */
#define BOOT_WAIT_US 5000000	/* at boot, for an administrator's command to give the space back */
#define DRAIN_US 200000		/* at the end, for requests that are under way; and for large bodies and votes, more: */
#define DRAIN_LONG_US 2000000
#define DRAIN_LOOK_US 2000
#define BURY_US 500000		/* between two looks at commands that run */
#define RECENT 1024

/* Who was heard in which batch.  Direct-mapped: a collision costs a wait of 30 us, or saves one. */
struct crowd {
	struct { uint64_t hash, batch; } seen[RECENT];
	uint64_t batch;
	size_t here, again;		/* this batch: callers; of them those of the last batch */
	size_t expected, arrived;	/* callers of the last two batches; of them those heard in this one */
	size_t last_here;
};

struct server {
	const struct options *o;
	const struct boot *b;
	struct link_server *link;
	struct bb_agent *agent;
	struct courier *courier;	/* to other queue managers */
	struct qspace *qs;		/* NULL while standing by */
	int place;			/* among the processes of the space; -1: none */
	struct tmq tmq;
	int64_t try_again_us;		/* standing by: when to look at the lock */
	bool stale_tick;		/* requests ran since the space was last asked for its next event */
	bool commands_run;		/* of thresholds */
	int64_t bury_us;		/* when to look next whether they still do */
	unsigned load;
	struct crowd crowd;
	size_t n;
	struct link_msg m[BATCH_MAX];
};

static struct bb_agent *the_agent;	/* for the signal handler alone */
static volatile sig_atomic_t stop_came;	/* before there was anybody to be told */

void
server_stop_soon(void)
{
	stop_came = 1;
	if (the_agent != NULL)
		bb_agent_stop_now(the_agent);
}

static int
send_reply(void *arg, const struct link_peer *to, const void *head, size_t head_len, const struct link_body *body)
{
	return link_server_send(arg, to, head, head_len, body);
}

static bool
has_left(void *arg, const struct link_peer *to)
{
	return link_server_left(arg, to);
}

static bool
on_threshold(void *arg, const char *queue, const char *cmd)
{
	struct server *s = arg;

	s->commands_run = true;
	return command_run(queue, cmd);
}

/* --- becoming somebody --- */

/* What it offers: its names, and ..GROUP for each group that has this space, under whichever it was joined.  NULL at the end. */
static const char *
name_at(const struct server *s, size_t i, char hidden[WIRE_NAME])
{
	if (i < s->o->n_names)
		return s->o->name[i];
	if ((i -= s->o->n_names) >= s->b->groups.n)
		return NULL;
	snprintf(hidden, WIRE_NAME, "..%s", s->b->groups.name[i]);
	return hidden;
}

static int
advertise(struct server *s)
{
	char hidden[WIRE_NAME];
	const char *name;
	int rc;

	for (size_t i = 0; (name = name_at(s, i, hidden)) != NULL; i++) {
		if ((rc = bb_agent_advertise(s->agent, name, TMQUEUE_FUNCTION)) != 0) {
			ulog("QM_CAT:1616: ERROR: TMQUEUE: service %s cannot be advertised (%d)%s", name, rc,
			    rc == TPEMATCH ? ": another function offers it" : rc == TPELIMIT ? ": MAXSERVICES is reached" : "");
			return -1;
		}
	}
	return 0;
}

/* Callers wait for the takeover, instead of hearing that nobody offers the service.  A name too long for this: no more than that. */
static void
advertise_standby(struct server *s)
{
	char name[WIRE_NAME], hidden[WIRE_NAME];
	const char *of;

	for (size_t i = 0; (of = name_at(s, i, hidden)) != NULL; i++)
		if (snprintf(name, sizeof name, BB_STANDBY "%s", of) < (int)sizeof name)
			(void)bb_agent_advertise(s->agent, name, TMQUEUE_FUNCTION);
}

static int	/* 0: the space is ours; QSPACE_OWNED: somebody has it; -1: it does not open, logged */
own(struct server *s)
{
	char *why = NULL;
	int rc = qspace_open(s->b->device, s->b->space, s->b->endpoint, &s->qs, &why);

	if (rc == 0 && tmq_init(&s->tmq, s->qs, s->b->group->name, s->o->timeout_s, send_reply, s->link) != 0) {
		qspace_close(s->qs);
		s->qs = NULL;
		rc = QMEOS;
	}
	if (rc == 0) {
		s->tmq.left = has_left;
		for (int i = 0; i < s->b->groups.n; i++)
			tmq_alias(&s->tmq, s->b->groups.name[i]);
		courier_serve(s->courier, s->tmq.letters);
		qspace_on_threshold(s->qs, on_threshold, s);
		s->stale_tick = true;
	} else if (rc != QSPACE_OWNED) {
		ulog("QM_CAT:1350: ERROR: xa_open: TMQUEUE of group %s cannot open queue space %s on device %s: %s",
		    s->b->group->name, s->b->space, s->b->device, why != NULL ? why : "no memory");
		rc = -1;
	}
	free(why);
	return rc;
}

static bool	/* An administrator's command holds the space: it listens nowhere, and will be done soon. */
owner_is_brief(struct server *s)
{
	char endpoint[256];
	long pid;

	return qspace_owner(s->b->device, s->b->space, endpoint, sizeof endpoint, &pid) != 0 || endpoint[0] == '\0';
}

static int
own_or_stand_by(struct server *s)
{
	int64_t until = clock_mono_us() + BOOT_WAIT_US;
	int rc;

	while ((rc = own(s)) == QSPACE_OWNED && owner_is_brief(s) && clock_mono_us() < until && !bb_agent_stopping(s->agent)) {
		struct timespec pause = { 0, STANDBY_US * 1000 };

		nanosleep(&pause, NULL);
	}
	if (rc == QSPACE_OWNED)
		ulog("QM_CAT:1617: INFO: TMQUEUE of group %s stands by: another process owns queue space %s", s->b->group->name,
		    s->b->space);
	return rc == -1 ? -1 : 0;
}

int
server_open(const struct options *o, const struct boot *b, struct server **out)
{
	const struct ubb_service *svc = ubb_service_find(b->ubb, o->name[0], b->group->name);
	struct bb_agent_conf conf = {
		.bbl_endpoint = b->bbl_endpoint, .endpoint = b->endpoint, .group = b->group->name, .program = b->server != NULL ? b->server->aout : "TMQUEUE",
		.clopt = b->server != NULL ? b->server->clopt : "", .grpno = o->grpno, .srvid = o->srvid,
		.rqaddr = b->server != NULL ? b->server->rqaddr : "",
		.tuxconfig = b->tuxconfig, .bbl_program = b->bbl_program,
	};
	struct server *s = calloc(1, sizeof *s);
	char *why = NULL;
	int rc;

	*out = NULL;
	if (s == NULL) {
		ulog("QM_CAT:1400: ERROR: TMQUEUE: no memory");
		return -1;
	}
	s->place = -1;
	s->o = o;
	s->b = b;
	s->load = svc != NULL ? (unsigned)svc->load : 50;
	if (places_take(b->device, b->space, PLACES_SERVER, &s->place, &why) != 0) {
		ulog("QM_CAT:1350: ERROR: TMQUEUE of group %s cannot boot: %s", b->group->name, why != NULL ? why : "no memory");
		free(why);
		goto fail;
	}
	if (link_server_open(b->endpoint, b->perm, &s->link) != LINK_OK) {
		ulog("QM_CAT:1618: ERROR: TMQUEUE: cannot listen at %s: %s", b->endpoint, strerror(errno));
		goto fail;
	}
	if ((rc = bb_agent_start(&conf, &s->agent)) != 0) {
		ulog("QM_CAT:2019: ERROR: TMQUEUE could not register with the BBL at %s: %s", b->bbl_endpoint,
		    rc > 0 ? "refused" : "it does not answer");
		goto fail;
	}
	the_agent = s->agent;
	if (stop_came)
		bb_agent_stop_now(the_agent);
	if ((s->courier = courier_new(b->bbl_endpoint, bb_agent_wake_fd(s->agent))) == NULL) {
		ulog("QM_CAT:1400: ERROR: TMQUEUE: %s", strerror(errno));
		goto fail;
	}
	if (own_or_stand_by(s) != 0 || (s->qs != NULL && advertise(s) != 0))
		goto fail;
	if (s->qs == NULL)
		advertise_standby(s);
	bb_agent_ready(s->agent);
	*out = s;
	return 0;
fail:
	server_close(s, 1);
	return -1;
}

/* --- standing by --- */

static void
stand_by(struct server *s)
{
	struct link_msg m;

	int rc;

	if (link_server_recv(s->link, &m, s->try_again_us, bb_agent_wake_fd(s->agent)) == LINK_OK) {
		standby_answer(&m, send_reply, s->link);	/* from one who knew an owner that is gone */
		link_msg_done(&m);
		return;
	}
	if (bb_agent_stopping(s->agent) || clock_mono_us() < s->try_again_us)
		return;
	rc = own(s);
	s->try_again_us = clock_mono_us() + (rc == QSPACE_OWNED ? STANDBY_US : MISFIT_US);
	if (rc != 0)
		return;
	ulog("QM_CAT:1619: INFO: TMQUEUE of group %s takes queue space %s over", s->b->group->name, s->b->space);
	advertise(s);
}

/* --- batches --- */

static void
crowd_begin(struct crowd *c)
{
	if (c->here == 0)
		return;		/* nobody called: not a batch to learn from */
	c->expected = c->here + c->last_here - c->again;
	c->last_here = c->here;
	c->here = c->again = c->arrived = 0;
	c->batch++;
}

static void
crowd_hear(struct crowd *c, const struct link_peer *p)
{
	uint64_t h = 14695981039346656037u, last;
	size_t at;

	for (uint8_t i = 0; i < p->n; i++)
		h = (h ^ p->id[i]) * 1099511628211u;
	at = (h ^ h >> 32) % RECENT;
	last = c->seen[at].hash == h ? c->seen[at].batch : 0;
	if (last == c->batch)
		return;
	c->here++;
	if (last != 0 && last + 1 == c->batch)
		c->again++;
	if (last != 0 && last + 2 >= c->batch)
		c->arrived++;
	c->seen[at].hash = h;
	c->seen[at].batch = c->batch;
}

static int	/* One more request by then: 1, none: 0, the socket failed: -1. */
receive(struct server *s, int64_t deadline_us, int wake_fd, size_t *bytes)
{
	struct link_msg *m = &s->m[s->n];
	int rc = link_server_recv(s->link, m, deadline_us, wake_fd);

	if (rc == LINK_FAIL)
		return -1;
	if (rc != LINK_OK)
		return 0;
	crowd_hear(&s->crowd, &m->peer);
	*bytes += m->body_len;
	s->n++;
	return 1;
}

static bool	/* Commands that ended; now and then, for each look is a system call.  true: some run still. */
bury(struct server *s)
{
	int64_t now = clock_mono_us();

	if (now < s->bury_us)
		return s->commands_run;
	s->bury_us = now + BURY_US;
	return s->commands_run = command_reap();
}

static int64_t	/* until when nothing needs to be done unless somebody asks */
idle_until(struct server *s)
{
	int64_t until;

	if (batch_more(&s->tmq))
		return 0;
	until = batch_next_event(&s->tmq);
	if (courier_next_event(s->courier) < until)
		until = courier_next_event(s->courier);
	if (bury(s) && until > s->bury_us)
		until = s->bury_us;
	return until;
}

static int	/* Requests into s->m; none when something else is due.  -1: the socket failed. */
gather(struct server *s)
{
	size_t bytes = 0;
	int64_t until = 0;
	int rc;

	s->n = 0;
	crowd_begin(&s->crowd);
	if ((rc = receive(s, 0, -1, &bytes)) == 0) {
		if (s->stale_tick) {	/* the last requests may have made something due earlier */
			s->stale_tick = false;
			return 0;
		}
		rc = receive(s, idle_until(s), courier_fd(s->courier), &bytes);
	}
	while (rc >= 0 && s->n > 0 && s->n < BATCH_MAX && bytes < BATCH_BYTES) {
		if ((rc = receive(s, 0, -1, &bytes)) != 0)
			continue;
		if (s->crowd.arrived >= s->crowd.expected)
			break;
		if (until == 0)
			until = clock_mono_us() + LINGER_US;
		else if (clock_mono_us() >= until)
			break;
	}
	return rc < 0 ? -1 : 0;
}

static void
serve(struct server *s)
{
	if (s->n > 0) {
		s->stale_tick = true;
		bb_agent_busy(s->agent, s->o->name[0]);
	}
	courier_turn(s->courier);
	batch_run(&s->tmq, s->m, s->n);
	if (s->commands_run)		/* not only when idle: there may be no such time */
		(void)bury(s);
	for (size_t i = 0; i < s->n; i++) {
		bb_agent_idle(s->agent, s->load);
		link_msg_done(&s->m[i]);
	}
	s->n = 0;
}

int
server_run(struct server *s)
{
	while (!bb_agent_stopping(s->agent)) {
		if (s->qs == NULL) {
			stand_by(s);
			continue;
		}
		if (gather(s) != 0) {
			ulog("QM_CAT:1618: ERROR: TMQUEUE: the socket %s failed: %s", s->b->endpoint, strerror(errno));
			return -1;
		}
		serve(s);
	}
	return 0;
}

static int64_t	/* How long what is under way may take. */
drain_until(struct server *s, int64_t began)
{
	return began + (s->tmq.jobs.all != NULL || coordinator_busy(s->tmq.coordinator) ? DRAIN_LONG_US : DRAIN_US);
}

static int64_t	/* Until when to listen; the engine may have something to do at once. */
drain_pause(struct server *s)
{
	int64_t pause = clock_mono_us() + DRAIN_LOOK_US, until = idle_until(s);

	return until < pause ? until : pause;
}

static void	/* No new callers; those under way are served; those who wait are answered and take nothing. */
wind_down(struct server *s)
{
	int64_t began = clock_mono_us();
	char hidden[WIRE_NAME];
	const char *name;
	size_t bytes = 0;
	bool last = false;

	for (size_t i = 0; (name = name_at(s, i, hidden)) != NULL; i++)
		bb_agent_unadvertise(s->agent, name);
	do {
		s->n = 0;
		while (s->n < BATCH_MAX && receive(s, 0, -1, &bytes) == 1)
			;
		if (s->n == 0 && !batch_more(&s->tmq)) {
			if (!coordinator_busy(s->tmq.coordinator) && s->tmq.jobs.all == NULL && last)
				break;
			if (!coordinator_busy(s->tmq.coordinator) && s->tmq.jobs.all == NULL) {
				link_server_no_more(s->link);	/* callers know of all that is sent from now on that it was not */
				last = true;
				continue;
			}
			(void)receive(s, drain_pause(s), -1, &bytes);	/* while votes come */
		}
		serve(s);
	} while (clock_mono_us() < drain_until(s, began));
	tmq_dismiss(&s->tmq);
}

void
server_close(struct server *s, int status)
{
	if (s == NULL)
		return;
	if (s->qs != NULL && s->agent != NULL)
		wind_down(s);
	if (s->link != NULL)
		link_server_close(s->link);
	if (s->qs != NULL) {
		qspace_close(s->qs);	/* before tmq_done: what it rolls back may still make events */
		courier_serve(s->courier, NULL);
		tmq_done(&s->tmq);
	}
	courier_free(s->courier);
	the_agent = NULL;
	if (s->place != -1)
		close(s->place);
	bb_agent_end(s->agent, status);
	free(s);
}
