/*
 * conn - which of several servers gets a request, and what became of one whose server died: both are read in the table of
 * servers (common/slots.h), where there is one.
 */
#include <limits.h>
#include <string.h>

#include "conn_impl.h"
#include "clock.h"

#define LOOK_US 100000		/* a server that is not in the table is looked for again after so long */
#define END_MS 500		/* a process that closes its connections because it dies is dead by then */
#define ONE_LOAD 50		/* of a request, where we count our own alone */

void
conn_balance(struct conn *c, struct slots *slots, bool ldbal)
{
	c->slots = slots;
	c->ldbal = ldbal && slots != NULL;
}

/* ---- load ---- */

static bool
has_group(const struct wire_groups *g, const char *group)
{
	int i;

	for (i = 0; g != NULL && i < g->n; i++)
		if (strcmp(g->name[i], group) == 0)
			return true;
	return false;
}

/* The load of the process that serves there now; -1: it is not in the table. */
static long
target_load(struct conn *c, struct target *t)
{
	int64_t now;
	long load;

	if (c->slots == NULL)
		return -1;
	if (t->ref.generation != 0 && (load = slots_load(c->slots, t->ref)) >= 0)
		return load;
	if ((now = clock_mono_us()) - t->looked_us < LOOK_US && t->looked_us != 0)
		return -1;
	t->looked_us = now;
	return slots_find(c->slots, t->grpno, t->srvid, 0, &t->ref) ? slots_load(c->slots, t->ref) : -1;
}

static long	/* what counts when servers are compared: what all have sent, or with LDBAL=N what we have */
target_busy(struct conn *c, struct target *t)
{
	long load = c->ldbal ? target_load(c, t) : -1;

	if (t->peer != NULL && t->peer->leaving)
		return LONG_MAX;
	if (c->self != NULL && strcmp(t->endpoint, c->self) == 0)
		return LONG_MAX - 1;	/* it would wait for itself */
	if (load >= 0)
		return load;
	return t->peer == NULL ? 0 : (long)t->peer->outstanding * ONE_LOAD;
}

struct target *
target_choose(struct conn *c, struct service *s, const struct wire_groups *joined, const char *only)
{
	struct target *best = NULL, *t;
	bool full = joined != NULL && joined->n == WIRE_MAX_GROUPS, best_in = false, in;
	long best_busy = 0, busy;
	size_t i;

	for (i = 0; i < s->n; i++) {
		t = &s->target[(s->turn + i) % s->n];
		in = has_group(joined, t->group);
		if ((!in && (full || best_in)) || (*only != '\0' && strcmp(t->group, only) != 0))
			continue;
		if (t->peer == NULL)
			t->peer = peer_find(c, t->endpoint);
		busy = s->n > 1 ? target_busy(c, t) : 0;
		if (best == NULL || in != best_in || busy < best_busy) {
			best = t;
			best_busy = busy;
			best_in = in;
		}
	}
	s->turn++;
	return best;
}

struct slots_ref
target_count(struct conn *c, struct target *t)
{
	struct slots_ref none = { 0 };

	if (c->slots == NULL)
		return none;
	if (slots_sent(c->slots, t->ref, t->load))
		return t->ref;
	return target_load(c, t) >= 0 && slots_sent(c->slots, t->ref, t->load) ? t->ref : none;	/* found anew */
}

void
target_uncount(struct conn *c, const struct target *t, struct slots_ref counted)
{
	if (counted.generation != 0)
		slots_unsent(c->slots, counted, t->load);
}

/* ---- the process at the other end ---- */

/* Once for a connection.  The one that listens there, and lives now that we are connected, is the one that will answer. */
void
peer_recognise(struct conn *c, struct peer *p, const struct target *t)
{
	pid_t pid;

	if (p->recognised || c->slots == NULL)
		return;
	p->recognised = true;
	if ((pid = link_client_pid(p->link)) > 0)
		(void)slots_find(c->slots, t->grpno, t->srvid, pid, &p->ref);
}

/* Its answer is not among what came until the end of the connection.  If it is surely not begun either, it may be sent again. */
void
pendings_lost(struct conn *c, struct peer *gone)
{
	bool ended = c->slots != NULL && gone->ref.generation != 0 && link_client_ended(gone->link);
	int wait_ms = END_MS;
	struct pending *p;

	for (p = c->pendings; p != NULL; p = p->next) {
		if (p->peer != gone)
			continue;
		p->peer = NULL;
		if (p->state != PENDING_WAITING)
			continue;
		p->state = PENDING_GONE;
		c->lost++;
		p->unbegun = ended && slots_fate(c->slots, gone->ref, p->reqid, wait_ms) == SLOTS_NOT_BEGUN;
		wait_ms = 0;		/* for the first of them it had its time */
	}
}
