/*
 * look - psr and psc show the counters of now: every server is asked to report first.  A server's heartbeat comes from
 * a thread of its own, so one that is at work answers as well; one that does not is shown as it was last heard of.
 */
#include <stdlib.h>

#include "bbl.h"
#include "clock.h"

#define LOOK_US INT64_C(250000)		/* the longest that a look waits for reports */

struct look {
	struct look *next;
	struct link_peer peer;		/* who asked */
	uint64_t reqid;
	uint64_t number;		/* reports of this number or a later one are new enough */
	int64_t deadline_us;
	int (*rows)(const struct bbl *, struct document *);
};

static bool
can_report(const struct server *s)
{
	return s->state == SERVER_READY && s->has_peer && !s->hung;
}

/* The order to report, to one server, or to all that can (NULL). */
static void
ask(struct bbl *b, const struct server *one, uint64_t number)
{
	struct wire_admin order = { .op = "report" };
	struct record *r = document_add(&order.doc);
	struct wr w = { 0 };

	if (r == NULL || record_setf(r, "number", "%llu", (unsigned long long)number) != 0)
		number = 0;
	wire_admin_encode(&w, &order);
	for (size_t i = 0; i < b->reg.n_servers && number != 0 && wr_ok(&w); i++)
		if (can_report(b->reg.servers[i]) && (one == NULL || one == b->reg.servers[i]))
			(void)link_server_send(b->link, &b->reg.servers[i]->peer, w.p, w.len, NULL);
	wr_free(&w);
	document_free(&order.doc);
}

void
look_poke(struct bbl *b, struct server *s)
{
	ask(b, s, ++b->last_report);
}

int
look_begin(struct bbl *b, const struct link_peer *peer, uint64_t reqid,
    int (*rows)(const struct bbl *, struct document *))
{
	struct look *k = calloc(1, sizeof *k);

	if (k == NULL)
		return -1;
	*k = (struct look){ .next = b->looks, .peer = *peer, .reqid = reqid, .rows = rows, .number = ++b->last_report,
		.deadline_us = clock_mono_us() + LOOK_US };
	b->looks = k;
	ask(b, NULL, k->number);
	return 0;
}

static bool
all_reported(const struct bbl *b, uint64_t number)
{
	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (can_report(b->reg.servers[i]) && b->reg.servers[i]->reported < number)
			return false;
	return true;
}

static void
look_answer(struct bbl *b, const struct look *k)
{
	struct document doc = { 0 };

	if (k->rows(b, &doc) == 0)
		bbl_answer(b, &k->peer, k->reqid, 0, NULL, &doc);
	else
		bbl_answer(b, &k->peer, k->reqid, TPEOS, "BBL is out of memory", NULL);
	document_free(&doc);
}

void
look_tick(struct bbl *b)
{
	for (struct look **at = &b->looks, *k; (k = *at) != NULL; ) {
		if (clock_mono_us() < k->deadline_us && !all_reported(b, k->number)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		look_answer(b, k);
		free(k);
	}
}

int64_t
look_next_due(const struct bbl *b)
{
	int64_t due = LINK_FOREVER;

	for (const struct look *k = b->looks; k != NULL; k = k->next)
		if (k->deadline_us < due)
			due = k->deadline_us;
	return due;
}

void
look_free(struct bbl *b)
{
	struct look *k;

	while ((k = b->looks) != NULL) {
		b->looks = k->next;
		free(k);
	}
}
