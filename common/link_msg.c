/*
 * link - messages in and bodies out.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "link_impl.h"

/* --- in --- */

void
link_msg_done(struct link_msg *m)
{
	struct link_frames *f = link_frames(m);

	if (f->live) {
		zmq_msg_close(&f->head);
		zmq_msg_close(&f->body);
	}
	f->live = 0;
	m->head = m->body = NULL;
	m->head_len = m->body_len = 0;
	m->has_body = false;
}

static int	/* reads what is left of a message; returns how many frames that were */
drain(void *socket, bool more)
{
	zmq_msg_t rest;
	int n = 0;

	while (more) {
		zmq_msg_init(&rest);
		more = zmq_msg_recv(&rest, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&rest);
		zmq_msg_close(&rest);
		n++;
	}
	return n;
}

int
link_frames_recv(void *socket, struct link_msg *m, int *parts)
{
	struct link_frames *f = link_frames(m);

	f->live = 0;
	m->has_body = false;
	zmq_msg_init(&f->head);
	zmq_msg_init(&f->body);
	if (zmq_msg_recv(&f->head, socket, ZMQ_DONTWAIT) < 0)
		return errno == EAGAIN || errno == EINTR ? LINK_TIMEOUT : LINK_FAIL;
	*parts = 1;
	if (zmq_msg_more(&f->head)) {
		m->has_body = zmq_msg_recv(&f->body, socket, ZMQ_DONTWAIT) >= 0;
		*parts += 1 + drain(socket, zmq_msg_more(&f->body));
	}
	f->live = 1;
	m->head = zmq_msg_data(&f->head);
	m->head_len = zmq_msg_size(&f->head);
	m->body = m->has_body ? zmq_msg_data(&f->body) : NULL;
	m->body_len = m->has_body ? zmq_msg_size(&f->body) : 0;
	if (*parts > 2 || m->head_len == 0) {
		errno = EPROTO;		/* the frames stay, for the line that names the peer */
		return LINK_FAIL;
	}
	return LINK_OK;
}

void
link_msg_peer_name(const struct link_msg *m, char *out, size_t size)
{
	struct link_frames *f = link_frames((struct link_msg *)(uintptr_t)m);
	struct ucred who;
	socklen_t len = sizeof who;
	const char *address;

	snprintf(out, size, "an unknown peer");
	if (!f->live)
		return;
	/* The descriptor may be another one's by now, if the peer left meanwhile; a log line can live with that. */
	if (getsockopt(zmq_msg_get(&f->head, ZMQ_SRCFD), SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid > 0)
		snprintf(out, size, "process %ld of user %ld", (long)who.pid, (long)who.uid);
	else if ((address = zmq_msg_gets(&f->head, "Peer-Address")) != NULL && *address != '\0')
		snprintf(out, size, "%s", address);
}

/* --- out: what each peer owes us a read for --- */

#define BUCKETS 256

struct debt {
	struct debt *next;
	struct link_peer peer;
	atomic_size_t bytes;
	atomic_uint refs;	/* the table's, and one for each body under way */
};
struct link_debts { struct debt *bucket[BUCKETS]; };

struct link_debts *
link_debts_new(void)
{
	return calloc(1, sizeof(struct link_debts));
}

static void
debt_unref(struct debt *d)
{
	if (d != NULL && atomic_fetch_sub(&d->refs, 1) == 1)
		free(d);
}

void
link_debts_free(struct link_debts *d)
{
	struct debt *e, *next;

	if (d == NULL)
		return;
	for (int i = 0; i < BUCKETS; i++)
		for (e = d->bucket[i]; e != NULL; e = next) {
			next = e->next;
			debt_unref(e);
		}
	free(d);
}

static struct debt *	/* of that peer, made when new; those paid off are swept on the way.  NULL: no memory */
debt_of(struct link_debts *d, const struct link_peer *to)
{
	unsigned h = 0;
	struct debt **at, *e, *found = NULL;

	for (int i = 0; i < to->n; i++)
		h = h * 31 + to->id[i];
	for (at = &d->bucket[h % BUCKETS]; (e = *at) != NULL; ) {
		if (e->peer.n == to->n && memcmp(e->peer.id, to->id, to->n) == 0)
			found = e;
		else if (atomic_load(&e->bytes) == 0) {
			*at = e->next;
			debt_unref(e);
			continue;
		}
		at = &e->next;
	}
	if (found == NULL && (found = calloc(1, sizeof *found)) != NULL) {
		found->peer = *to;
		atomic_init(&found->refs, 1);
		*at = found;
	}
	return found;
}

/* --- out: bodies --- */

struct loan {			/* a body that ZeroMQ reads from where it is */
	struct link_body body;
	struct debt *debt;
	atomic_int handed;	/* orders what we wrote here before what the other thread reads */
};

static void	/* from ZeroMQ's thread, or from ours */
loan_end(void *p, void *hint)
{
	struct loan *l = hint;

	(void)p;
	(void)atomic_load_explicit(&l->handed, memory_order_acquire);
	l->body.release((void *)(uintptr_t)l->body.p, l->body.hint);
	if (l->debt != NULL) {
		atomic_fetch_sub(&l->debt->bytes, l->body.n);
		debt_unref(l->debt);
	}
	free(l);
}

void
link_body_drop(const struct link_body *body)
{
	if (body != NULL && body->release != NULL)
		body->release((void *)(uintptr_t)body->p, body->hint);
}

static int
copied_frame(zmq_msg_t *frame, const struct link_body *body)
{
	int rc = zmq_msg_init_size(frame, body->n);

	if (rc == 0 && body->n > 0)
		memcpy(zmq_msg_data(frame), body->p, body->n);
	link_body_drop(body);
	if (rc != 0)
		errno = ENOMEM;
	return rc == 0 ? LINK_OK : LINK_FAIL;
}

int
link_body_frame(zmq_msg_t *frame, const struct link_body *body, struct link_debts *d, const struct link_peer *to)
{
	struct debt *debt = NULL;
	struct loan *l;
	size_t owed;

	if (body->n <= LINK_COPY_MAX || body->release == NULL)
		return copied_frame(frame, body);
	if (d != NULL && to != NULL && (debt = debt_of(d, to)) != NULL) {
		owed = atomic_load(&debt->bytes);
		if (owed > 0 && owed + body->n > LINK_PEER_BYTES) {
			link_body_drop(body);
			return LINK_GONE;
		}
	}
	if ((d != NULL && debt == NULL) || (l = malloc(sizeof *l)) == NULL) {
		link_body_drop(body);
		errno = ENOMEM;
		return LINK_FAIL;
	}
	*l = (struct loan){ .body = *body, .debt = debt };
	if (debt != NULL) {
		atomic_fetch_add(&debt->bytes, body->n);
		atomic_fetch_add(&debt->refs, 1);
	}
	atomic_store_explicit(&l->handed, 1, memory_order_release);
	if (zmq_msg_init_data(frame, (void *)(uintptr_t)body->p, body->n, loan_end, l) != 0) {
		loan_end(NULL, l);
		errno = ENOMEM;
		return LINK_FAIL;
	}
	return LINK_OK;
}
