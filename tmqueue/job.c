#include "job.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "clock.h"

struct behind { struct link_msg m, *src; struct behind *next; };	/* src not NULL: as in struct job */

static bool
same_peer(const struct link_peer *a, const struct link_peer *b)
{
	return a->n == b->n && memcmp(a->id, b->id, a->n) == 0;
}

static struct job *
job_new(struct jobs *js, const struct link_peer *peer, uint64_t reqid, const struct wire_tx *tx)
{
	struct job *j = calloc(1, sizeof *j);

	if (j == NULL)
		return NULL;
	j->peer = *peer;
	j->reqid = reqid;
	j->tx = *tx;
	j->in_tx = tx->gtrid_len != 0;
	j->since_us = clock_mono_us();
	j->fresh = true;
	DL_APPEND(js->all, j);
	return j;
}

struct job *
job_enqueue(struct jobs *js, struct link_msg *m, const struct wire_enqueue *e, struct spool *sp)
{
	struct job *j = job_new(js, &m->peer, e->reqid, &e->tx);

	if (j == NULL)
		return NULL;
	j->e = *e;
	j->src = m;
	j->spool = sp;
	return j;
}

struct job *
job_dequeue(struct jobs *js, const struct link_peer *peer, const struct wire_dequeue *d, struct fetch *f)
{
	struct job *j = job_new(js, peer, d->reqid, &d->tx);

	if (j == NULL)
		return NULL;
	memcpy(j->queue, d->queue, sizeof j->queue);
	j->fetch = f;
	return j;
}

struct job *
job_again(struct jobs *js, struct link_msg *m, uint64_t reqid, const struct wire_tx *tx)
{
	struct job *j = job_new(js, &m->peer, reqid, tx);

	if (j != NULL)
		j->src = m;
	return j;
}

struct job *
job_ending(struct jobs *js, const struct link_peer *peer, uint64_t reqid, const struct branch_id *id, int error, int outcome)
{
	static const struct wire_tx none;
	struct job *j = job_new(js, peer, reqid, &none);

	if (j != NULL) {
		j->ending = true;
		j->branch = *id;
		j->error = error;
		j->outcome = outcome;
	}
	return j;
}

bool
job_has_body(const struct job *j)
{
	return j->spool != NULL || j->fetch != NULL;
}

bool
jobs_more(const struct jobs *js)
{
	const struct job *j = js->all;

	while (j != NULL && j->ending)
		j = j->next;
	return j != NULL;
}

struct job *
job_of(const struct jobs *js, const struct link_peer *peer)
{
	for (struct job *j = js->all; j != NULL; j = j->next)
		if (!j->ending && (!j->done || j->behind != NULL) && same_peer(&j->peer, peer))	/* done: the others go first */
			return j;
	return NULL;
}

int
job_put_behind(struct job *j, struct link_msg *m)
{
	struct behind *b = calloc(1, sizeof *b);

	if (b == NULL)
		return -1;
	b->src = m;
	LL_APPEND(j->behind, b);
	return 0;
}

void
job_cancel(struct jobs *js, const struct link_peer *peer, uint64_t reqid)
{
	for (struct job *j = js->all; j != NULL; j = j->next)
		if (!j->done && j->reqid == reqid && same_peer(&j->peer, peer))
			j->done = true;
}

void
job_done(struct job *j)
{
	j->done = true;
}

static void
behind_free(struct behind *b)
{
	link_msg_done(&b->m);
	free(b);
}

static void
job_free(struct jobs *js, struct job *j)
{
	struct behind *b, *next;

	DL_DELETE(js->all, j);
	for (b = j->behind; b != NULL; b = next) {
		next = b->next;
		behind_free(b);
	}
	if (!j->stored)
		qspace_spool_drop(j->spool);
	qspace_fetch_drop(j->fetch);
	link_msg_done(&j->m);
	free(j);
}

void
jobs_commit(struct jobs *js)
{
	struct job *j, *next;

	for (j = js->all; j != NULL; j = next) {
		next = j->next;
		if (j->src != NULL)
			link_msg_move(&j->m, j->src);
		j->src = NULL;
		j->fresh = false;
		for (struct behind *b = j->behind; b != NULL; b = b->next) {
			if (b->src != NULL)
				link_msg_move(&b->m, b->src);
			b->src = NULL;
		}
		if (!j->done)
			continue;
		LL_CONCAT(js->ready, j->behind);
		j->behind = NULL;
		job_free(js, j);
	}
}

void
jobs_abort(struct jobs *js)
{
	struct job *j, *next;

	for (j = js->all; j != NULL; j = next) {
		struct behind **at = &j->behind, *b;

		next = j->next;
		while ((b = *at) != NULL)	/* their requests are run again */
			if (b->src != NULL) {
				*at = b->next;
				free(b);
			} else
				at = &b->next;
		j->done = j->stored = false;
		if (j->fresh)
			job_free(js, j);
	}
}

bool
jobs_next_ready(struct jobs *js, struct link_msg *m)
{
	struct behind *b = js->ready;

	if (b == NULL)
		return false;
	js->ready = b->next;
	link_msg_move(m, &b->m);
	free(b);
	return true;
}

void
jobs_free(struct jobs *js)
{
	struct link_msg m;

	while (js->all != NULL)
		job_free(js, js->all);
	while (jobs_next_ready(js, &m))
		link_msg_done(&m);
}
