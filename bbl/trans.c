#include "trans.h"

#include <stdlib.h>
#include <string.h>

#include "bb.h"
#include "clock.h"
#include "gtt.h"
#include "link.h"
#include "txquery.h"

#define ASK_MS 5000

struct trans_part *
trans_add(struct trans *t)
{
	struct trans_part *p;

	if (t->n == t->room) {
		size_t room = t->room == 0 ? 16 : 2 * t->room;
		if ((p = realloc(t->part, room * sizeof *p)) == NULL)
			return NULL;
		t->part = p;
		t->room = room;
	}
	p = &t->part[t->n++];
	memset(p, 0, sizeof *p);
	return p;
}

static int
by_id(const void *a, const void *b)
{
	const struct trans_part *x = a, *y = b;
	int c = strcmp(x->gtrid, y->gtrid);

	return c != 0 ? c : strcmp(x->group, y->group);
}

void
trans_sort(struct trans *t)
{
	if (t->n > 1)
		qsort(t->part, t->n, sizeof *t->part, by_id);
}

void
trans_free(struct trans *t)
{
	free(t->part);
	*t = (struct trans){ 0 };
}

size_t
trans_run(const struct trans *t, size_t from)
{
	size_t to = from;

	while (to < t->n && strcmp(t->part[to].gtrid, t->part[from].gtrid) == 0)
		to++;
	return to - from;
}

size_t
trans_count(const struct trans *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i += trans_run(t, i))
		n++;
	return n;
}

const struct trans_part *
trans_find(const struct trans *t, size_t index, size_t *n)
{
	for (size_t i = 0; i < t->n; i += *n) {
		*n = trans_run(t, i);
		if (index-- == 0)
			return &t->part[i];
	}
	return NULL;
}

/* --- states, by the names that scripts know --- */

/* The most decisive last: what is said of a transaction is what is said of the part that is furthest. */
static const struct { const char *state, *status; } known[] = {
	{ "heuristically committed", "TMGHCOMMIT" }, { "heuristically rolled back", "TMGHABORT" }, { "active", "TMGACTIVE" },
	{ "suspended", "TMGSUSPENDED" }, { "rollback-only", "TMGABORTONLY" }, { "deciding", "TMGCOMCALLED" }, { "prepared", "TMGREADY" }, { "aborting", "TMGABORTED" },
	{ "rolling back", "TMGABORTED" }, { "committing", "TMGDECIDED" }, { "decided", "TMGDECIDED" },
};

static size_t
rank(const struct trans_part *p)
{
	const char *state = p->doomed && (strcmp(p->state, "active") == 0 || strcmp(p->state, "suspended") == 0) ? "rollback-only" : p->state;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].state, state) == 0)
			return i;
	return 2;
}

const char *
trans_part_status(const struct trans_part *p)
{
	return known[rank(p)].status;
}

const char *
trans_status(const struct trans_part *p, size_t n)
{
	size_t best = 0;

	for (size_t i = 0; i < n; i++)
		if (rank(&p[i]) > best)
			best = rank(&p[i]);
	return known[best].status;
}

const char *
trans_coordinator(const struct trans_part *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].group[0] != '\0' && (strcmp(p[i].state, "decided") == 0 || strcmp(p[i].state, "deciding") == 0))
			return p[i].group;
	for (size_t i = 0; i < n; i++)
		if (p[i].coordinator[0] != '\0')
			return p[i].coordinator;
	return "";
}

/* --- asking --- */

static void
copy(char *to, size_t size, const struct record *r, const char *key)
{
	const char *v = record_get(r, key);

	snprintf(to, size, "%s", v != NULL ? v : "");
}

static int
take_page(const struct ubb_group *g, const struct document *page, struct trans *t)
{
	for (size_t i = 1; i < page->n; i++) {		/* the first one is the page's head */
		const struct record *r = &page->rec[i];
		struct trans_part *p = trans_add(t);
		if (p == NULL)
			return -1;
		snprintf(p->group, sizeof p->group, "%s", g->name);
		snprintf(p->lmid, sizeof p->lmid, "%s", g->lmid[0] != NULL ? g->lmid[0] : "");
		copy(p->gtrid, sizeof p->gtrid, r, "gtrid");
		copy(p->state, sizeof p->state, r, "state");
		copy(p->coordinator, sizeof p->coordinator, r, "coordinator");
		copy(p->client, sizeof p->client, r, "owner");
		copy(p->told, sizeof p->told, r, record_get(r, "waiting") != NULL ? "waiting" : "groups");
		p->doomed = record_get(r, "doomed") != NULL;
		p->began_us = record_long(r, "began", 0);
		p->deadline_us = record_long(r, "deadline", 0);
	}
	return 0;
}

/* Page by page.  0; -1: out of memory; 1: no answer. */
static int
ask_group(const char *endpoint, const struct ubb_group *g, struct trans *t)
{
	struct document args = { 0 };
	struct record *r = document_add(&args);
	struct wire_adminreply reply;
	bool more = r != NULL;
	int rc = r != NULL ? 0 : -1;

	while (more && rc == 0) {
		if (bb_request(endpoint, "qprinttrans", r, ASK_MS, &reply) != LINK_OK) {
			rc = 1;
			break;
		}
		more = reply.status == 0 && reply.doc.n > 0 && record_get(&reply.doc.rec[0], "cursor") != NULL;
		if (reply.status != 0)
			rc = 1;
		else if (take_page(g, &reply.doc, t) != 0 ||
		    (more && record_set(r, "cursor", record_get(&reply.doc.rec[0], "cursor")) != 0))
			rc = -1;
		bb_reply_free(&reply);
	}
	document_free(&args);
	return rc;
}

/* What initiators say: transactions that have not come to any group yet are there too. */
static int
take_initiators(const struct app *a, struct trans *t)
{
	static const char *const states[] = { [GTT_ACTIVE] = "active", [GTT_SUSPENDED] = "suspended", [GTT_COMMITTING] = "deciding",
		[GTT_ABORTING] = "aborting" };
	struct gtt_entry e;
	struct gtt *g;
	char path[512], *why = NULL;
	int rc = 0;

	gtt_path(a->rundir, path, sizeof path);
	if (gtt_open(path, 0, &g, &why) != 0) {	/* no table: what the groups say is all there is */
		free(why);
		return 0;
	}
	for (unsigned i = 0; i < gtt_slots(g) && rc == 0; i++) {
		struct trans_part *p;
		if (!gtt_read(g, i, &e) || e.state <= GTT_FREE || e.state >= GTT_STATES)
			continue;
		if ((p = trans_add(t)) == NULL) {
			rc = -1;
			break;
		}
		gtrid_to_hex(e.gtrid, e.gtrid_len, p->gtrid);
		snprintf(p->lmid, sizeof p->lmid, "%s", a->machine->lmid);
		snprintf(p->state, sizeof p->state, "%s", states[e.state]);
		snprintf(p->client, sizeof p->client, "process %ld", (long)e.pid);
		p->doomed = e.doomed || (e.deadline_us != GTT_NEVER && clock_mono_us() >= e.deadline_us);
		p->began_us = e.begun_us;
		p->deadline_us = e.deadline_us == GTT_NEVER ? 0 : clock_now_us() + e.deadline_us - clock_mono_us();
	}
	gtt_close(g);
	return rc;
}

int
trans_gather(const struct app *a, const char *lmid, void (*silent)(const char *group, const char *why), struct trans *t)
{
	char device[4096], space[64], endpoint[300];
	int rc = 0;

	for (size_t i = 0; i < a->ubb->n_groups && rc >= 0; i++) {
		const struct ubb_group *g = &a->ubb->groups[i];
		if (g->openinfo == NULL || openinfo_split(g->openinfo, device, sizeof device, space, sizeof space) != 0 ||
		    (lmid != NULL && (g->lmid[0] == NULL || strcmp(g->lmid[0], lmid) != 0)))
			continue;
		if (tx_endpoint(a->endpoint, g->name, ASK_MS, endpoint, sizeof endpoint) != 0)
			silent(g->name, "its queue manager does not run");
		else if ((rc = ask_group(endpoint, g, t)) > 0)
			silent(g->name, "its queue manager does not answer");
	}
	if (rc >= 0)
		rc = take_initiators(a, t);
	trans_sort(t);
	return rc < 0 ? -1 : 0;
}
