/*
 * conn - requests that are sent again: those whose server died before it began them.
 *
 * What is needed for that is a copy of the header and of the body; tpcall(), which has its data at hand while it waits, does without.
 */
#include <stdlib.h>
#include <string.h>

#include "conn_impl.h"
#include "clock.h"

struct kept {
	size_t head_len, body_len;
	bool has_body;
	uint8_t bytes[];		/* head, body */
};

void
kept_free(struct pending *p)
{
	free(p->kept);
	p->kept = NULL;
}

void
conn_keep(struct conn *c, struct pending *p, const struct link_body *body)
{
	size_t n = body == NULL ? 0 : body->n;
	struct kept *k;

	if (p->state != PENDING_WAITING || p->peer == NULL || p->peer->ref.generation == 0 || n > CONN_KEEP_MAX)
		return;
	if ((k = malloc(sizeof *k + c->out.len + n)) == NULL)
		return;
	*k = (struct kept){ .head_len = c->out.len, .body_len = n, .has_body = body != NULL };
	memcpy(k->bytes, c->out.p, c->out.len);
	if (n > 0)
		memcpy(k->bytes + k->head_len, body->p, n);
	p->kept = k;
	p->again = true;
}

bool
conn_can_again(const struct pending *p)
{
	return p->state == PENDING_GONE && p->unbegun && p->kept != NULL;
}

/* A server that ends, or does not offer the service any more, has not taken it.  True: it is left to who sends it again. */
bool
pending_refused(struct conn *c, struct pending *p, const struct link_msg *answer)
{
	struct wire_reply m;

	if (!p->again || p->refusals >= CONN_REFUSALS || wire_reply_decode(answer->head, answer->head_len, &m) != 0 ||
	    m.error != TPENOENT || m.doomed)
		return false;
	p->refusals++;
	p->peer->leaving = p->peer->leaving || m.leaving;
	p->peer->outstanding--;
	p->peer = NULL;
	p->state = PENDING_GONE;
	p->unbegun = true;
	c->lost++;
	return true;
}

/* The same request under another id: a late answer to the first, of which there is none, would not be taken for its answer. */
static int
send_again(struct conn *c, struct pending *p, const struct patience *how, int64_t deadline_us)
{
	const struct kept *k = p->kept;
	struct link_body body = { .p = k->bytes + k->head_len, .n = k->body_len };
	struct wire_call m;
	int64_t left;
	int err;

	if (wire_call_decode(k->bytes, k->head_len, &m) != 0)
		return TPESVCERR;
	if (p->refusals > 0 && (err = conn_ask_again(c, m.service, p->refusals > 1, how)) != 0)
		return err;
	m.reqid = p->reqid = conn_next_reqid(c);
	left = deadline_us == LINK_FOREVER ? 0 : (deadline_us - clock_mono_us()) / 1000;
	m.timeout_ms = deadline_us == LINK_FOREVER ? 0 : left < 1 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
	wr_reset(&c->out);
	wire_call_encode(&c->out, &m);
	return conn_submit(c, m.service, NULL, k->has_body ? &body : NULL, how, p);
}

int
conn_again(struct conn *c, struct pending *p, const struct patience *how, int64_t deadline_us)
{
	struct kept *k = p->kept;
	int err;

	p->kept = NULL;			/* not to be freed with what is forgotten */
	conn_forget(c, p);
	p->kept = k;
	if ((err = send_again(c, p, how, deadline_us)) == 0)
		return 0;
	p->state = PENDING_GONE;	/* as before: it may be tried once more */
	p->next = c->pendings;
	c->pendings = p;
	return err;
}
