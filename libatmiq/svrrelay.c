/*
 * svrrelay - forwarded requests.  The next server answers us, and we pass the answer on to the caller: so a caller
 * needs a link to the server it called and to no other, and its reply comes from there.  The loop of the server goes
 * on meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define SEND_US 2000000LL	/* to find and reach the next server: the loop stands still for that time */

struct relay {
	struct relay *next;
	struct pending pending;
	struct link_peer caller;
	uint64_t reqid;			/* of the caller */
	int64_t deadline_us;
	struct wire_groups groups;	/* joined before it was forwarded */
	bool intran, noreply;
};

static struct conn conn;		/* its own: nothing of a routine's calls gets in between */
static struct relay *relays;

void
relay_open(const char *bbl)
{
	conn_open(&conn, bbl, SEND_US);
}

void
relay_close(void)
{
	struct relay *r;

	while ((r = relays) != NULL) {
		relays = r->next;
		conn_forget(&conn, &r->pending);
		free(r);
	}
	conn_close(&conn);
}

bool
relay_busy(void)
{
	return relays != NULL;
}

int64_t
relay_next_us(void)
{
	int64_t first = LINK_FOREVER;
	const struct relay *r;

	for (r = relays; r != NULL; r = r->next)
		if (r->deadline_us < first)
			first = r->deadline_us;
	return first;
}

size_t
relay_waitables(struct link_wait *w, size_t max)
{
	return conn_waitables(&conn, w, max);
}

int
relay_start(const struct work *w, const struct tran *t, const char *name, const char *type, const char *subtype,
    const struct link_body *body)
{
	struct patience how = { .deadline_us = clock_mono_us() + SEND_US, .restart = true };
	const struct service *s;
	struct wire_call m = w->call;
	struct relay *r;
	int err;

	if ((err = conn_lookup(&conn, name, &how, &s)) != 0)
		return err;
	if (!conn_accepts_type(s, type, subtype))
		return TPEITYPE;
	if ((r = calloc(1, sizeof *r)) == NULL)
		return TPEOS;
	r->caller = w->peer;
	r->reqid = w->call.reqid;
	r->deadline_us = w->deadline_us;
	r->noreply = (w->call.flags & TPNOREPLY) != 0;
	r->intran = t->active && !t->initiator;
	if (r->intran)
		r->groups = t->groups;
	m.reqid = r->pending.reqid = conn_next_reqid(&conn);
	snprintf(m.service, sizeof m.service, "%s", name);
	if (m.tx.gtrid_len > 0)
		m.tx.timeout_ms = time_left_ms(t->deadline_us);
	m.timeout_ms = time_left_ms(w->deadline_us);
	m.has_body = body != NULL;
	memset(m.type, 0, sizeof m.type);
	memset(m.subtype, 0, sizeof m.subtype);
	if (body != NULL) {
		snprintf(m.type, sizeof m.type, "%s", type);
		snprintf(m.subtype, sizeof m.subtype, "%s", subtype);
	}
	wr_reset(&conn.out);
	wire_call_encode(&conn.out, &m);
	if ((err = conn_submit(&conn, name, NULL, body, &how, &r->pending)) != 0 || r->noreply) {
		conn_forget(&conn, &r->pending);
		free(r);
		return err;
	}
	r->next = relays;
	relays = r;
	return 0;
}

static void
groups_merge(struct wire_groups *into, const struct wire_groups *more)
{
	int i, j;

	for (i = 0; i < more->n; i++) {
		for (j = 0; j < into->n && strcmp(into->name[j], more->name[i]) != 0; j++)
			;
		if (j == into->n && into->n < WIRE_MAX_GROUPS)
			memcpy(into->name[into->n++], more->name[i], WIRE_GROUP);
	}
}

/* The answer, or the loss of who should have answered, to the caller. */
static void
relay_pass(struct relay *r)
{
	struct wire_reply m;
	struct link_body body = { 0 };
	bool good = r->pending.state == PENDING_ANSWERED &&
	    wire_reply_decode(r->pending.msg->head, r->pending.msg->head_len, &m) == 0;

	if (!good) {
		memset(&m, 0, sizeof m);
		m.error = TPESVCERR;
		m.doomed = r->intran;
	}
	if (m.leaving)
		conn_server_leaves(&r->pending);
	m.leaving = 0;			/* we do not */
	if (m.error == TPENOENT)
		m.error = TPESVCERR;	/* the caller's service was there: it is the routine that went wrong */
	m.reqid = r->reqid;
	groups_merge(&m.groups, &r->groups);
	if (good && m.has_body) {
		body.p = r->pending.msg->body;
		body.n = r->pending.msg->body_len;
	}
	svr_reply(&r->caller, &m, m.has_body ? &body : NULL);
}

void
relay_poll(void)
{
	struct relay **at, *r;
	int64_t now;

	if (relays == NULL)
		return;
	conn_poll(&conn);
	now = clock_mono_us();
	for (at = &relays; (r = *at) != NULL;) {
		if (r->pending.state != PENDING_WAITING)
			relay_pass(r);
		else if (now < r->deadline_us) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		conn_forget(&conn, &r->pending);
		free(r);
	}
}
