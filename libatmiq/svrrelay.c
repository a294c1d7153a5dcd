/*
 * svrrelay - forwarded requests.  The next server answers us, and we pass the answer on to the caller: so a caller
 * needs a link to the server it called and to no other, and its reply comes from there.  The loop of the server goes
 * on meanwhile.
 *
 * A transaction that AUTOTRAN began here goes along, and is committed or rolled back when the answer is back, before it
 * is passed on.
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
	struct tran tran;		/* that the request is in, with the groups that joined before it was forwarded */
	bool noreply;
	char from[WIRE_NAME];		/* the service that forwarded it */
};

static struct conn conn;		/* its own: nothing of a routine's calls gets in between */
static struct relay *relays;

void
relay_open(const char *bbl)
{
	conn_open(&conn, bbl, SEND_US);
}

static bool	/* the transaction began in this server */
relay_owns_tran(const struct relay *r)
{
	return r->tran.active && r->tran.initiator;
}

static void
relay_end(struct relay *r)
{
	conn_forget(&conn, &r->pending);
	free(r);
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

static struct relay *
relay_new(const struct work *w, const struct tran *t)
{
	struct relay *r = calloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->caller = w->request->m.peer;
	r->reqid = w->request->call.reqid;
	r->noreply = (w->request->call.flags & TPNOREPLY) != 0;
	r->tran = *t;
	r->deadline_us = relay_owns_tran(r) ? t->deadline_us : w->request->deadline_us;
	memcpy(r->from, w->offer->name, sizeof r->from);
	return r;
}

int
relay_start(const struct work *w, const char *name, const char *type, const char *subtype,
    const struct link_body *body)
{
	struct patience how = { .deadline_us = clock_mono_us() + SEND_US, .restart = true };
	struct context *ctx = w->ctx;
	const struct service *s;
	struct wire_call m = w->request->call;
	struct relay *r;
	int err;

	if ((err = conn_lookup(&conn, name, &how, &s)) != 0)
		return err;
	if (!conn_accepts_type(s, type, subtype))
		return TPEITYPE;
	if ((r = relay_new(w, &ctx->tran)) == NULL)
		return TPEOS;
	m.reqid = r->pending.reqid = conn_next_reqid(&conn);
	snprintf(m.service, sizeof m.service, "%s", name);
	if (r->tran.active)
		tran_to_wire(ctx, &m.tx);
	m.flags = (m.flags & 0xffff) | (uint32_t)r->tran.table << 16;
	if (relay_owns_tran(r))
		m.flags &= ~(uint32_t)TPNOREPLY;	/* how the next one ends decides how the transaction does */
	m.timeout_ms = time_left_ms(r->deadline_us);
	m.has_body = body != NULL;
	memset(m.type, 0, sizeof m.type);
	memset(m.subtype, 0, sizeof m.subtype);
	if (body != NULL) {
		snprintf(m.type, sizeof m.type, "%s", type);
		snprintf(m.subtype, sizeof m.subtype, "%s", subtype);
	}
	wr_reset(&conn.out);
	wire_call_encode(&conn.out, &m);
	if ((err = conn_submit(&conn, name, NULL, body, &how, &r->pending)) != 0 || (m.flags & TPNOREPLY)) {
		relay_end(r);
		return err;
	}
	if (relay_owns_tran(r))
		tran_leave(ctx);		/* it is the relay's now */
	r->next = relays;
	relays = r;
	return 0;
}

/* Those that joined before, then those that the answer tells of.  One that finds no room would miss the end: doomed. */
static void
groups_of_both(const struct tran *t, struct wire_reply *m)
{
	struct wire_groups all = t->groups;
	int i, j;

	for (i = 0; i < m->groups.n; i++) {
		for (j = 0; j < all.n && strcmp(all.name[j], m->groups.name[i]) != 0; j++)
			;
		if (j == WIRE_MAX_GROUPS)
			m->doomed = 1;
		else if (j == all.n)
			memcpy(all.name[all.n++], m->groups.name[i], WIRE_GROUP);
	}
	m->groups = all;
}

/* The transaction that began here ends as the service at the end of the way did.  The server is between two requests. */
static void
relay_tran_end(struct relay *r, struct wire_reply *m)
{
	struct context *ctx = svr.ctx;
	int err;

	pthread_mutex_lock(&ctx->lock);
	r->tran.groups = m->groups;
	tran_resume(ctx, &r->tran);
	if (m->error != 0 || m->doomed) {
		tran_doom_because(ctx, m->error == 0 ? TPESVCERR : m->error, m->urcode, "service %s forwarded, and that failed",
		    r->from);
		tran_abort(ctx);
		err = m->error == 0 ? TPESVCERR : m->error;
	} else if ((err = tran_commit(ctx)) != 0) {
		ulog("LIBTUX_CAT:5162: ERROR: the transaction that service %s had by AUTOTRAN, and forwarded, was not "
		     "committed: %s",
		    r->from, tpstrerror(err));
		err = TPESVCERR;
	}
	tran_forget(ctx);
	pthread_mutex_unlock(&ctx->lock);
	m->error = err;
	if (err != 0 && err != TPESVCFAIL)
		m->has_body = m->type[0] = m->subtype[0] = 0;
	m->doomed = m->groups.n = 0;	/* the caller is in none */
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
		m.doomed = r->tran.active;
	}
	if (m.leaving)
		conn_server_leaves(&r->pending);
	m.leaving = 0;			/* we do not */
	if (m.error == TPENOENT)
		m.error = TPESVCERR;	/* the caller's service was there: it is the routine that went wrong */
	groups_of_both(&r->tran, &m);
	if (relay_owns_tran(r))
		relay_tran_end(r, &m);
	if (r->noreply)
		return;
	m.reqid = r->reqid;
	if (m.has_body) {
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
		if (r->pending.state == PENDING_WAITING && now < r->deadline_us) {
			at = &r->next;
			continue;
		}
		if (r->pending.state != PENDING_WAITING || relay_owns_tran(r))
			relay_pass(r);
		*at = r->next;
		relay_end(r);
	}
}

void
relay_close(void)
{
	struct relay *r;

	while ((r = relays) != NULL) {
		if (relay_owns_tran(r))
			relay_pass(r);		/* it is rolled back, unless the answer has just come */
		relays = r->next;
		relay_end(r);
	}
	conn_close(&conn);
}
