/*
 * bb - the agent's conversation with BBL, one turn at a time.  Run by the agent's thread, and at the start by the
 * caller of bb_agent_start() before there is a thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bb_impl.h"
#include "clock.h"
#include "ulog.h"

#define BEAT_US 1000000		/* at the latest; */
#define NEWS_US 200000		/* sooner when there is something new for psr to show */
#define RETRY_US 150000		/* while BBL is away */
#define REFUSED_US 1000000	/* before asking again after a refusal */
#define JOIN_US 3000000		/* for the answer to a registration */
#define SEND_US 1000000
#define REVIVE_AFTER_US 1000000

/* --- state --- */

static void	/* The only place that assigns a->state. */
agent_enter(struct bb_agent *a, enum agent_state next)
{
	pthread_mutex_lock(&a->lock);
	a->state = next;
	for (struct ask *q = a->asks; q != NULL && next == AGENT_DOWN; q = q->next) {
		q->done = true;		/* remembered; told when we register */
		q->status = 0;
	}
	if (next == AGENT_DOWN)
		a->asks = NULL;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

void
agent_hang_up(struct bb_agent *a)
{
	link_client_close(a->link);
	a->link = NULL;
}

static void
lost(struct bb_agent *a, int64_t retry_in_us)
{
	int64_t now = clock_mono_us();

	agent_hang_up(a);
	if (a->down_since_us == 0)
		a->down_since_us = now;
	a->next_try_us = now + retry_in_us;
	agent_enter(a, AGENT_DOWN);
}

void
agent_poke(struct bb_agent *a)
{
	uint64_t one = 1;

	if (write(a->poke_fd, &one, sizeof one) < 0)
		return;		/* full: it is awake already */
}

/* --- saying --- */

static struct record *	/* the record that every operation has; NULL: no memory */
begin(struct bb_agent *a, struct wire_admin *q, const char *op)
{
	struct record *r;

	*q = (struct wire_admin){ .reqid = ++a->last_reqid };
	snprintf(q->op, sizeof q->op, "%s", op);
	if ((r = document_add(&q->doc)) == NULL)
		return NULL;
	record_set(r, "group", a->group);
	record_setf(r, "srvid", "%ld", a->srvid);
	record_setf(r, "pid", "%ld", (long)a->pid);
	return r;
}

static bool
say(struct bb_agent *a, struct wire_admin *q)
{
	int rc = LINK_FAIL;

	wire_admin_encode(&a->w, q);
	document_free(&q->doc);
	if (wr_ok(&a->w))
		rc = link_client_send(a->link, a->w.p, a->w.len, NULL, clock_mono_us() +
		    (a->state == AGENT_DOWN ? RETRY_US : SEND_US));
	return rc == LINK_OK;
}

static void
put_services(const struct bb_agent *a, struct record *r, bool counters)
{
	char key[32];
	int n = 0;

	for (struct service *s = atomic_load(&a->services); s != NULL; s = atomic_load(&s->next)) {
		if (!atomic_load(&s->offered))
			continue;
		snprintf(key, sizeof key, "service.%d", n);
		record_set(r, key, s->name);
		snprintf(key, sizeof key, counters ? "done.%d" : "function.%d", n++);
		if (counters)
			record_setf(r, key, "%lu", atomic_load(&s->done));
		else
			record_set(r, key, s->function);
	}
}

static void	/* "register", on the connection that is open */
say_register(struct bb_agent *a)
{
	struct wire_admin q;
	struct record *r = begin(a, &q, "register");

	pthread_mutex_lock(&a->lock);
	a->untold = false;
	pthread_mutex_unlock(&a->lock);
	if (r != NULL) {
		record_setf(r, "grpno", "%ld", a->grpno);
		record_set(r, "program", a->program);
		record_set(r, "endpoint", a->endpoint);
		record_set(r, "clopt", a->clopt);
		record_set(r, "rqaddr", a->rqaddr);
		put_services(a, r, false);
	}
	a->join_reqid = a->last_reqid;
	a->join_deadline_us = clock_mono_us() + JOIN_US;
	if (say(a, &q))
		agent_enter(a, AGENT_JOINING);
	else
		lost(a, RETRY_US);
}

static void
say_heartbeat(struct bb_agent *a)
{
	struct service *current = agent_current(a);
	unsigned long done = atomic_load(&a->done);
	struct wire_admin q;
	struct record *r = begin(a, &q, "heartbeat");

	if (r != NULL) {
		record_setf(r, "done", "%lu", done);
		record_setf(r, "load", "%lu", atomic_load(&a->load));
		record_set(r, "current", current != NULL ? current->name : "");
		if (a->report[0] != '\0')
			record_set(r, "report", a->report);
		put_services(a, r, true);
	}
	a->beat_reqid = a->last_reqid;
	a->beat_us = clock_mono_us();
	a->told_done = done;
	a->told_current = current;
	if (!say(a, &q))
		lost(a, 0);
}

static void	/* when the second is over, or when there is news */
beat(struct bb_agent *a, int64_t now)
{
	bool news = atomic_load(&a->done) != a->told_done || agent_current(a) != a->told_current;

	a->next_beat_us = now + NEWS_US;
	if (news || now - a->beat_us >= BEAT_US)
		say_heartbeat(a);
}

static void
say_ready(struct bb_agent *a)
{
	struct wire_admin q;

	begin(a, &q, "ready");
	if (!say(a, &q))
		lost(a, 0);
}

static bool	/* the next order that was not sent yet, as a request */
next_ask(struct bb_agent *a, struct wire_admin *q)
{
	struct ask *k;
	struct record *r;

	pthread_mutex_lock(&a->lock);
	for (k = a->asks; k != NULL && k->reqid != 0; k = k->next)
		;
	if (k != NULL) {
		r = begin(a, q, k->op);
		k->reqid = q->reqid;
		if (r != NULL && k->service != NULL)
			record_set(r, "service", k->service);
		if (r != NULL && k->function != NULL)
			record_set(r, "function", k->function);
		if (r != NULL)
			record_setf(r, "status", "%ld", k->exit_status);
	}
	pthread_mutex_unlock(&a->lock);
	return k != NULL;
}

static void
say_asks(struct bb_agent *a)
{
	struct wire_admin q;

	while (a->state == AGENT_UP && next_ask(a, &q))
		if (!say(a, &q))
			lost(a, 0);
}

/* --- hearing --- */

static void
joined(struct bb_agent *a, const struct wire_adminreply *reply)
{
	bool ready, untold;

	if (reply->status != 0) {
		if (!a->refusal_logged)
			ulog("LIBATMIQ_CAT:113: ERROR: BBL refuses server %s/%ld (%s): %s", a->group, a->srvid,
			    a->program, reply->text);
		a->refusal_logged = true;
		a->refused = reply->status;
		lost(a, REFUSED_US);
		return;
	}
	a->refusal_logged = false;
	a->refused = 0;
	atomic_store(&a->suspended_us, 0);	/* a new BBL knows of no suspension */
	a->down_since_us = 0;
	a->beat_reqid = 0;
	a->report[0] = '\0';
	a->beat_us = 0;
	a->next_beat_us = 0;	/* the counters of before are news to a BBL that was started again */
	revive_over(&a->revive);
	a->revive.pause_us = a->revive.not_before_us = 0;
	pthread_mutex_lock(&a->lock);
	ready = a->ready_told;
	untold = a->untold;
	pthread_mutex_unlock(&a->lock);
	if (untold) {		/* the connection took a while, and services changed meanwhile */
		say_register(a);
		return;
	}
	agent_enter(a, AGENT_UP);
	if (ready)
		say_ready(a);
}

static void	/* an answer to one of the orders */
answer_ask(struct bb_agent *a, const struct wire_adminreply *reply)
{
	pthread_mutex_lock(&a->lock);
	for (struct ask **at = &a->asks, *k; (k = *at) != NULL; at = &k->next) {
		if (k->reqid != reply->reqid)
			continue;
		*at = k->next;
		k->status = reply->status;
		k->done = true;
		pthread_cond_broadcast(&a->changed);
		break;
	}
	pthread_mutex_unlock(&a->lock);
}

static void
hear_reply(struct bb_agent *a, const struct wire_adminreply *reply)
{
	if (a->state == AGENT_JOINING && reply->reqid == a->join_reqid)
		joined(a, reply);
	else if (reply->reqid == a->beat_reqid && reply->status != 0 && a->state == AGENT_UP)
		say_register(a);
	else
		answer_ask(a, reply);
}

static void	/* BBL wants to know the counters now */
report(struct bb_agent *a, const struct wire_admin *order)
{
	const char *number = order->doc.n > 0 ? record_get(&order->doc.rec[0], "number") : NULL;

	snprintf(a->report, sizeof a->report, "%s", number != NULL ? number : "");
	if (a->state == AGENT_UP)
		say_heartbeat(a);
}

static void
hear(struct bb_agent *a, const struct link_msg *m)
{
	struct wire_adminreply reply;
	struct wire_admin order;

	if (wire_adminreply_decode(m->head, m->head_len, &reply) == 0) {
		hear_reply(a, &reply);
		bb_reply_free(&reply);
	} else if (wire_admin_decode(m->head, m->head_len, &order) == 0) {
		if (order.reqid == 0 && strcmp(order.op, "stop") == 0)
			bb_agent_stop_now(a);
		else if (order.reqid == 0 && strcmp(order.op, "suspend") == 0)
			atomic_store(&a->suspended_us, clock_mono_us());
		else if (order.reqid == 0 && strcmp(order.op, "resume") == 0)
			atomic_store(&a->suspended_us, 0);
		else if (order.reqid == 0 && strcmp(order.op, "report") == 0)
			report(a, &order);
		document_free(&order.doc);
	}
}

static void
hear_all(struct bb_agent *a)
{
	struct link_msg m;
	int rc = LINK_TIMEOUT;

	while (a->link != NULL && (rc = link_client_recv(a->link, &m, 0)) == LINK_OK) {
		hear(a, &m);
		link_msg_done(&m);
	}
	if (a->link != NULL && rc != LINK_TIMEOUT && rc != LINK_INTR)
		lost(a, 0);
}

/* --- a turn --- */

static void
do_what_is_due(struct bb_agent *a)
{
	int64_t now = clock_mono_us();

	switch (a->state) {
	case AGENT_DOWN:
		if (now < a->next_try_us)
			return;
		if (link_client_open(a->bbl_endpoint, &a->link) == LINK_OK)
			say_register(a);
		else
			lost(a, RETRY_US);
		if (a->state == AGENT_DOWN && clock_mono_us() - a->down_since_us > REVIVE_AFTER_US)
			revive_try(&a->revive);
		return;
	case AGENT_JOINING:
		if (now >= a->join_deadline_us)
			lost(a, 0);
		return;
	case AGENT_UP:
		say_asks(a);
		if (a->state == AGENT_UP && now >= a->next_beat_us)
			beat(a, now);
		return;
	}
}

static int64_t
next_due(const struct bb_agent *a)
{
	if (a->state == AGENT_DOWN)
		return a->next_try_us;
	return a->state == AGENT_JOINING ? a->join_deadline_us : a->next_beat_us;
}

void
agent_turn(struct bb_agent *a)
{
	struct link_wait w = { .client = a->link };
	uint64_t pokes;

	do_what_is_due(a);
	hear_all(a);
	revive_reap(&a->revive);
	w.client = a->link;
	link_wait(&w, 1, next_due(a), a->poke_fd);
	if (read(a->poke_fd, &pokes, sizeof pokes) < 0)
		return;		/* nobody poked */
}
