/* tmadmin: transactions, and ending branches of them by hand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "bb.h"
#include "clock.h"
#include "layout.h"
#include "link.h"
#include "txquery.h"

#define ASK_MS 10000
#define QUERY_MS 1500

static void
silent_group(const char *group, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "TMADMIN_CAT:109: WARN: group %s: %s; what it has of transactions is not shown\n", group, why);
}

static int	/* The list as it is now becomes the one that indices mean. */
gather(const struct commands *r, const struct opts *o)
{
	struct admin *a = r->context;

	trans_free(&a->trans);
	a->listed = trans_gather(&a->app, admin_option(a, o, 'm'), silent_group, &a->trans) == 0;
	if (!a->listed)
		commands_error("out of memory");
	return a->listed ? 0 : -1;
}

void
cmd_pt(struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	struct layout_show show = { .lmid = admin_option(a, o, 'm'), .group = admin_option(a, o, 'g'), .verbose = r->con.verbose };

	if (gather(r, o) == 0)
		layout_pt(r->con.out, &a->trans, &show, clock_now_us());
}

/* --- by hand --- */

struct by_hand {
	const char *name, *verb, *op;
	enum wire_outcome against;	/* what the coordinator must not have decided */
	bool active;			/* of a branch that is not prepared too */
};

static const struct trans_part *
chosen(struct commands *r, const struct opts *o, size_t *n)
{
	const struct admin *a = r->context;
	const struct trans_part *p = NULL;
	char *end;
	long index;

	if (o->n_rest != 1) {
		commands_error("%s wants one index, as printtrans shows it", r->running->name);
		return NULL;
	}
	if (!a->listed && gather(r, o) != 0)
		return NULL;
	errno = 0;
	index = strtol(o->rest[0], &end, 10);
	if (errno == 0 && end != o->rest[0] && *end == '\0' && index >= 0)
		p = trans_find(&a->trans, (size_t)index, n);
	if (p == NULL)
		commands_error("there is no transaction of index \"%s\"; printtrans shows them", o->rest[0]);
	return p;
}

/* What is decided is decided: by hand against it only where it cannot be known.  -1: said so. */
static int
decision_allows(const struct admin *a, const struct trans_part *p, size_t n, const struct by_hand *h)
{
	const char *coordinator = trans_coordinator(p, n);
	enum wire_outcome decided = WIRE_OUT_NONE;
	uint8_t id[WIRE_GTRID_MAX], len;
	bool prepared = false;

	for (size_t i = 0; i < n; i++)
		prepared = prepared || strcmp(p[i].state, "prepared") == 0;
	if (prepared && *coordinator != '\0' && gtrid_from_hex(p->gtrid, id, &len) == 0)
		decided = tx_query(a->app.endpoint, coordinator, id, len, QUERY_MS);
	if (decided == WIRE_OUT_NONE && strcmp(trans_status(p, n), "TMGDECIDED") == 0)
		decided = WIRE_OUT_COMMITTED;
	if (decided != h->against)
		return 0;
	commands_error("%s: the coordinator, group %s, decided to %s", h->name, coordinator,
	    decided == WIRE_OUT_COMMITTED ? "commit" : "roll back");
	return -1;
}

static void
end_branch(const struct admin *a, const struct trans_part *p, const struct by_hand *h)
{
	struct document args = { 0 };
	struct record *r = document_add(&args);
	struct wire_adminreply reply;
	char endpoint[300];

	if (r == NULL || record_set(r, "gtrid", p->gtrid) != 0 || (h->active && record_set(r, "active", "y") != 0))
		commands_error("out of memory");
	else if (tx_endpoint(a->app.endpoint, p->group, ASK_MS, endpoint, sizeof endpoint) != 0)
		commands_error("%s: group %s: its queue manager does not run", h->name, p->group);
	else if (bb_request(endpoint, h->op, r, ASK_MS, &reply) != LINK_OK)
		commands_error("%s: group %s: its queue manager does not answer; whether it was done is not known", h->name, p->group);
	else {
		if (reply.status != 0)
			commands_error("%s: group %s: %s", h->name, p->group, reply.text != NULL ? reply.text : "refused");
		bb_reply_free(&reply);
	}
	document_free(&args);
}

static void
by_hand(struct commands *r, const struct opts *o, const struct by_hand *h)
{
	const struct admin *a = r->context;
	const char *group = admin_option(a, o, 'g');
	const struct trans_part *p;
	char question[512];
	size_t n, met = 0;

	if ((p = chosen(r, o, &n)) == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		met += p[i].group[0] != '\0' && strcmp(p[i].state, "decided") != 0 && (group == NULL || strcmp(group, p[i].group) == 0);
	if (met == 0) {
		commands_error("%s: nothing of the transaction is left to be ended %s%s", h->name, group != NULL ? "in group " : "anywhere",
		    group != NULL ? group : "");
		return;
	}
	snprintf(question, sizeof question, "%s transaction %s %s%s (y/n)?", h->verb, o->rest[0],
	    group != NULL ? "in group " : "in all its groups", group != NULL ? group : "");
	if ((o->v['y'] == NULL && !commands_confirm(r, question)) || decision_allows(a, p, n, h) != 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (p[i].group[0] != '\0' && strcmp(p[i].state, "decided") != 0 && (group == NULL || strcmp(group, p[i].group) == 0))
			end_branch(a, &p[i], h);
}

void
cmd_committrans(struct commands *r, const struct opts *o)
{
	static const struct by_hand h = { "committrans", "Commit", "qcommittrans", WIRE_OUT_ROLLED_BACK, false };

	by_hand(r, o, &h);
}

void
cmd_aborttrans(struct commands *r, const struct opts *o)
{
	static const struct by_hand h = { "aborttrans", "Abort", "qaborttrans", WIRE_OUT_COMMITTED, true };

	by_hand(r, o, &h);
}
