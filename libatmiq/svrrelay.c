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
#include <sys/eventfd.h>
#include <unistd.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define MAX_WAIT 64
#define AGAIN_US 100000LL	/* while the next server is being started again */
#define SEND_US 2000000LL	/* to find and reach the next server: the loop stands still for that time */

struct relay {
	struct relay *next;
	struct pending pending;
	struct link_peer caller;
	uint64_t reqid;			/* of the caller */
	int64_t deadline_us;
	struct tran tran;		/* that the request is in, with the groups that joined before it was forwarded */
	bool noreply;
	bool unsent;			/* the next service could not be asked */
	struct wire_call call;		/* to it */
	char *data;			/* kept until it is answered: it may have to be sent again */
	size_t n;
	int kept;			/* the mark of the caller's request (svrmark.c) */
	enum svr_sent sent;		/* the answer to it */
	int64_t again_us;		/* when it is sent again; 0: it is under way */
	char from[WIRE_NAME];		/* the service that forwarded it */
};

static struct conn conn;		/* its own: nothing of a routine's calls gets in between */
static struct relay *relays;		/* sent, and not answered */
static struct context *ctx;		/* for the ends of transactions */

/* The thread of its own, where services run on several. */
static struct {
	int runs;			/* 0: there is none; -1: it could not begin */
	pthread_t id;
	int wake_fd;
	pthread_mutex_t lock;
	pthread_cond_t begun;
	struct relay *handed, **end;	/* to be sent */
	bool closing;
	int64_t until_us;
} own = { .wake_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .begun = PTHREAD_COND_INITIALIZER,
	.end = &own.handed };

static bool	/* the transaction began in this server */
relay_owns_tran(const struct relay *r)
{
	return r->tran.active && r->tran.initiator;
}

static void
relay_end(struct relay *r)
{
	mark_passed(r->kept, r->noreply ? SVR_SURE : r->sent, &r->caller);
	conn_forget(&conn, &r->pending);
	buffer_free(r->data);
	free(r);
}

int64_t
relay_next_us(void)
{
	int64_t first = LINK_FOREVER;
	const struct relay *r;

	for (r = relays; r != NULL; r = r->next) {
		if (r->deadline_us < first)
			first = r->deadline_us;
		if (r->again_us != 0 && r->again_us < first)
			first = r->again_us;
	}
	return first;
}

size_t
relay_waitables(struct link_wait *w, size_t max)
{
	return conn_waitables(&conn, w, max);
}

struct relay *
relay_new(struct work *w, const char *name, const struct typed *type, char *data, long n)
{
	struct relay *r = calloc(1, sizeof *r);
	const struct wire_call *call = &w->request->call;

	if (r == NULL)
		return NULL;
	r->caller = w->request->m.peer;
	r->reqid = call->reqid;
	r->noreply = (call->flags & TPNOREPLY) != 0;
	r->tran = w->ctx->tran;
	r->deadline_us = relay_owns_tran(r) ? r->tran.deadline_us : w->request->deadline_us;
	memcpy(r->from, w->offer->name, sizeof r->from);
	r->call = *call;
	snprintf(r->call.service, sizeof r->call.service, "%s", name);
	if (r->tran.active)
		tran_to_wire(w->ctx, &r->call.tx);
	r->call.flags = (call->flags & 0xffff) | (uint32_t)r->tran.table << 16;
	r->call.has_body = data != NULL;
	memcpy(r->call.type, type->type, sizeof r->call.type);
	memcpy(r->call.subtype, type->subtype, sizeof r->call.subtype);
	r->data = data;
	r->n = (size_t)n;
	r->sent = SVR_LOST;
	r->pending.again = true;
	r->kept = mark_pass_on(w);
	if (relay_owns_tran(r)) {
		r->call.flags &= ~(uint32_t)TPNOREPLY;	/* how the next one ends decides how the transaction does */
		tran_leave(w->ctx);		/* it is the relay's now */
	}
	return r;
}

static int	/* 0, or a TPE code: surely not sent.  noblock: nor is a server that is being started waited for, TPEBLOCK */
relay_send(struct relay *r, bool noblock)
{
	struct patience how = { .deadline_us = clock_mono_us() + SEND_US, .restart = true, .noblock = noblock };
	struct link_body body = { .p = r->data, .n = r->n };
	const struct service *s;
	int err;

	if ((err = conn_lookup(&conn, r->call.service, &how, &s)) != 0)
		return err;
	if (!conn_accepts_type(s, r->call.type, r->call.subtype))
		return TPEITYPE;
	if ((err = route_choose(svr.app, s, r->call.type, r->call.subtype, r->data, (long)r->n, r->pending.only)) != 0)
		return err;
	r->call.reqid = r->pending.reqid = conn_next_reqid(&conn);
	r->call.timeout_ms = time_left_ms(r->deadline_us);
	wr_reset(&conn.out);
	wire_call_encode(&conn.out, &r->call);
	return conn_submit(&conn, r->call.service, NULL, r->data == NULL ? NULL : &body, &how, &r->pending);
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

/* The transaction that began here ends as the service at the end of the way did.  The context is in none. */
static void
relay_tran_end(struct relay *r, struct wire_reply *m)
{
	int err;

	pthread_mutex_lock(&ctx->lock);
	r->tran.groups = m->groups;
	tran_resume(ctx, &r->tran);
	if (m->error != 0 || m->doomed) {
		tran_doom_because(ctx, m->error == 0 ? TPESVCERR : m->error, m->urcode, r->unsent ?
		    "service %s could not forward" : "service %s forwarded, and that failed", r->from);
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
	r->sent = svr_reply(&r->caller, &m, m.has_body ? &body : NULL);
}

/* The next server died before it began the request, or refused it: it is sent again, to another or once that one is back.  True: it is under
 * way, or will be tried; false: it cannot be. */
static bool
relay_again(struct relay *r, int64_t now)
{
	const struct patience at_once = { .deadline_us = now };
	int err;

	if (r->pending.state == PENDING_GONE && r->pending.unbegun) {
		if (r->pending.refusals > 0)
			(void)conn_ask_again(&conn, r->call.service, false, &at_once);
		conn_forget(&conn, &r->pending);
		r->again_us = now + (r->pending.refusals > 0 ? AGAIN_US : 0);
	}
	if (r->again_us == 0 || now >= r->deadline_us)
		return false;
	if (now < r->again_us)
		return true;
	r->again_us = now + AGAIN_US;
	if ((err = relay_send(r, true)) == 0)
		r->again_us = 0;
	return err == 0 || err == TPEBLOCK || err == TPETIME;
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
		if ((r->pending.state == PENDING_WAITING && now < r->deadline_us) || relay_again(r, now)) {
			at = &r->next;
			continue;
		}
		if (r->pending.state != PENDING_WAITING || relay_owns_tran(r))
			relay_pass(r);
		*at = r->next;
		relay_end(r);
	}
}

/* It goes out, or its caller hears that it cannot. */
static void
relay_begin(struct relay *r)
{
	int err = relay_send(r, false);

	if (err == 0 && (r->call.flags & TPNOREPLY) == 0) {
		r->next = relays;
		relays = r;
		return;
	}
	if (err != 0) {
		ulog("LIBTUX_CAT:5116: ERROR: service %s cannot forward to %s: %s", r->from, r->call.service, tpstrerror(err));
		r->unsent = true;
		relay_pass(r);
	}
	relay_end(r);
}

static void
relays_end(void)
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

/* ---- the thread ---- */

static void
wake(void)
{
	uint64_t one = 1;

	if (write(own.wake_fd, &one, sizeof one) < 0)
		return;			/* full: it is awake */
}

static bool	/* Send what was handed over.  False: all is done, or its time is over. */
take_handed(void)
{
	struct relay *r, *next;
	bool closing;

	pthread_mutex_lock(&own.lock);
	r = own.handed;
	own.handed = NULL;
	own.end = &own.handed;
	closing = own.closing;
	pthread_mutex_unlock(&own.lock);
	for (; r != NULL; r = next) {
		next = r->next;
		relay_begin(r);
	}
	return !closing || (relays != NULL && clock_mono_us() < own.until_us);
}

static void
turn(void)
{
	struct link_wait w[MAX_WAIT];
	size_t n = conn_waitables(&conn, w, MAX_WAIT);
	int64_t next = relay_next_us();
	uint64_t count;

	pthread_mutex_lock(&own.lock);
	if (own.closing && own.until_us < next)
		next = own.until_us;
	pthread_mutex_unlock(&own.lock);
	link_wait(w, n, next, own.wake_fd);
	while (read(own.wake_fd, &count, sizeof count) > 0)
		;
	relay_poll();
}

static void *
run(void *arg)
{
	int err = context_serve_thread(svr.ctx->cltid, &ctx);

	(void)arg;
	pthread_mutex_lock(&own.lock);
	own.runs = err == 0 ? 1 : -1;
	pthread_cond_signal(&own.begun);
	pthread_mutex_unlock(&own.lock);
	if (err != 0)
		return NULL;
	while (take_handed())
		turn();
	relays_end();
	context_serve_end(ctx);
	svr_reply_over();
	return NULL;
}

static int
own_start(void)
{
	if ((own.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 || pthread_create(&own.id, NULL, run, NULL) != 0)
		return -1;
	pthread_mutex_lock(&own.lock);
	while (own.runs == 0)
		pthread_cond_wait(&own.begun, &own.lock);
	pthread_mutex_unlock(&own.lock);
	if (own.runs > 0)
		return 0;
	own.runs = 0;
	pthread_join(own.id, NULL);
	return -1;
}

int
relay_open(struct app *app, bool threads)
{
	conn_open(&conn, app->bbl, SEND_US);
	conn_balance(&conn, app_slots(app), app->ubb->res.ldbal);
	ctx = svr.ctx;
	if (!threads || own_start() == 0)
		return 0;
	ulog("LIBTUX_CAT:5201: ERROR: cannot start the thread that forwards requests: %m");
	return -1;
}

bool
relay_busy(void)
{
	return own.runs == 0 && relays != NULL;
}

void
relay_go(struct relay *r)
{
	if (!own.runs) {
		relay_begin(r);
		return;
	}
	r->next = NULL;
	pthread_mutex_lock(&own.lock);
	*own.end = r;
	own.end = &r->next;
	pthread_mutex_unlock(&own.lock);
	wake();
}

void
relay_close(int64_t until_us)
{
	if (!own.runs) {
		relays_end();
		return;
	}
	pthread_mutex_lock(&own.lock);
	own.closing = true;
	own.until_us = until_us;
	pthread_mutex_unlock(&own.lock);
	wake();
	pthread_join(own.id, NULL);
	own.runs = 0;
	close(own.wake_fd);
}
