/*
 * qprinttrans, qcommittrans, qaborttrans, qforgettrans: transactions; ending by hand those that are in doubt, and forgetting how.
 */
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "qparse.h"
#include "session.h"

/* --- the list --- */

static const struct label trans_labels[] = { { "index", "transaction index", false, AS_TEXT },
	{ "gtrid", "transaction id", false, AS_TEXT }, { "log", "gtrid", false, AS_TEXT },
	{ "state", "status", false, AS_TEXT }, { "doomed", "to be rolled back", false, AS_TEXT },
	{ "coordinator", "coordinator", false, AS_OPTIONAL }, { "groups", "groups to be told", false, AS_OPTIONAL },
	{ "waiting", "waits for groups", false, AS_OPTIONAL },
	{ "owner", "client", false, AS_OPTIONAL }, { "enqueues", "messages enqueued", false, AS_TEXT },
	{ "dequeues", "messages dequeued", false, AS_TEXT }, { "began", "began", false, AS_TIME },
	{ "age", "age in seconds", false, AS_OPTIONAL }, { "deadline", "times out", false, AS_TIME },
	{ "left", "seconds left", false, AS_OPTIONAL }, { "bytes", "bytes of memory", true, AS_TEXT }, { 0 } };

void
forget_transactions(struct session *s)
{
	for (size_t i = 0; i < s->n_trans; i++)
		free(s->trans[i].gtrid);
	free(s->trans);
	s->trans = NULL;
	s->n_trans = 0;
}

static void	/* What a transaction has of each queue. */
show_queues(struct session *s, const struct record *r)
{
	char key[32];
	const char *name;

	for (int i = 0; snprintf(key, sizeof key, "queue.%d", i), (name = record_get(r, key)) != NULL; i++) {
		long in, out;
		snprintf(key, sizeof key, "enqueues.%d", i);
		in = record_long(r, key, 0);
		snprintf(key, sizeof key, "dequeues.%d", i);
		out = record_long(r, key, 0);
		say(s, "  queue %s: %ld to come, %ld to go\n", name, in, out);
	}
}

static void
show_one(struct session *s, const struct record *r, size_t index)
{
	say(s, "transaction index: %zu\n", index);
	for (const struct label *l = trans_labels + 1; l->key != NULL; l++) {	/* all but the first are indented */
		const struct label one[] = { { "", "", false, AS_TEXT }, *l, { 0 } };
		show_record(s, one, r);
	}
	show_queues(s, r);
}

/* The list as it is now becomes the one that indices mean. */
struct listing { bool show, no_memory; size_t room; };
static void
list_page(struct session *s, const struct document *page, void *arg)
{
	struct listing *l = arg;

	for (size_t i = 1; i < page->n && !l->no_memory; i++) {
		const char *gtrid = record_get(&page->rec[i], "gtrid");
		if (s->n_trans == l->room) {
			size_t room = l->room == 0 ? 64 : 2 * l->room;
			struct shown_trans *t = realloc(s->trans, room * sizeof *t);
			if ((l->no_memory = t == NULL))
				break;
			s->trans = t;
			l->room = room;
		}
		if (gtrid == NULL || (s->trans[s->n_trans].gtrid = strdup(gtrid)) == NULL) {
			l->no_memory = gtrid != NULL;
			continue;
		}
		if (l->show)
			show_one(s, &page->rec[i], s->n_trans);
		s->n_trans++;
	}
}

static int
list_all(struct session *s, bool show)
{
	struct listing l = { .show = show };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	forget_transactions(s);
	if (r != NULL)
		rc = owner_run_pages(s, "Print transactions", "qprinttrans", r, list_page, &l);
	if (r == NULL || l.no_memory) {
		say_error(s, 0, "qprinttrans: out of memory");
		rc = -1;
	}
	document_free(&doc);
	return rc;
}

/* --- indices --- */

static int	/* N or N-M.  -1: said why. */
parse_range(struct session *s, const char *command, const char *text, long range[2])
{
	const char *dash = strchr(text + (*text != '\0'), '-');
	char from[24];
	int n = dash != NULL ? (int)(dash - text) : (int)strlen(text);

	snprintf(from, sizeof from, "%.*s", n, text);
	if (n < (int)sizeof from && qparse_long(from, 0, (long)s->n_trans - 1, &range[0]) == 0 &&
	    qparse_long(dash != NULL ? dash + 1 : from, range[0], (long)s->n_trans - 1, &range[1]) == 0)
		return 0;
	say_error(s, 0, "%s: no transaction of index \"%.60s\" in queue space %s", command, text, s->space);
	return -1;
}

/* The record of one transaction as it is now.  -1: said why; it may be over. */
static int
look_at(struct session *s, const char *gtrid, struct document *doc)
{
	struct document args = { 0 };
	struct record *r = document_add(&args);
	int rc = -1;

	*doc = (struct document){ 0 };
	if (r != NULL && record_set(r, "gtrid", gtrid) == 0)
		rc = run_on_open_space(s, "Print transactions", "qprinttrans", r, doc);
	document_free(&args);
	return rc == 0 && doc->n > 1 ? 0 : -1;
}

int
cmd_qprinttrans(struct session *s, const struct args *a)
{
	struct document doc;
	long range[2];
	int rc;

	if (a->argc == 0) {
		console_page(&s->con);
		rc = list_all(s, true);
		console_page_end(&s->con);
		return rc;
	}
	if ((s->n_trans == 0 && list_all(s, false) != 0) || parse_range(s, a->name, a->argv[0], range) != 0)
		return -1;
	console_page(&s->con);
	for (rc = 0; range[0] <= range[1] && !interrupt_came(); range[0]++) {
		if ((rc = look_at(s, s->trans[range[0]].gtrid, &doc)) == 0)
			show_one(s, &doc.rec[1], (size_t)range[0]);
		document_free(&doc);
	}
	console_page_end(&s->con);
	return rc;
}

/* --- by hand --- */

struct by_hand {
	const char *what, *verb, *done;
	enum wire_outcome against;	/* what the coordinator must not have decided; WIRE_OUT_NONE: it does not matter */
};

static bool	/* Is it known that the coordinator decided otherwise? */
decided_otherwise(struct session *s, const struct args *a, const struct by_hand *h, const char *gtrid)
{
	struct document doc;
	const char *coordinator;
	bool otherwise = false;

	if (h->against == WIRE_OUT_NONE)
		return false;
	if (look_at(s, gtrid, &doc) == 0 && strcmp(record_get(&doc.rec[1], "state"), "prepared") == 0 &&
	    (coordinator = record_get(&doc.rec[1], "coordinator")) != NULL &&
	    decision_of(s, coordinator, gtrid) == h->against) {
		otherwise = true;
		say_error(s, 0, "%s: transaction %s: its coordinator %s decided to %s it", a->name, gtrid, coordinator,
		    h->against == WIRE_OUT_COMMITTED ? "commit" : "roll back");
	}
	document_free(&doc);
	return otherwise;
}

static int
end_one(struct session *s, const struct args *a, const struct by_hand *h, const char *gtrid)
{
	struct document doc = { 0 };
	struct record *r;
	int rc = -1;

	if (decided_otherwise(s, a, h, gtrid))
		return -1;
	if ((r = document_add(&doc)) != NULL && record_set(r, "gtrid", gtrid) == 0)
		rc = run_on_open_space(s, h->what, a->name, r, NULL);
	if (rc == 0)
		say_verbose(s, "Transaction %s is %s\n", gtrid, h->done);
	document_free(&doc);
	return rc;
}

/* One word of indices: each is asked about.  -1: something was refused, or the input ended. */
static int
end_range(struct session *s, const struct args *a, const struct by_hand *h, const char *word)
{
	long range[2];
	int rc = 0;

	if (parse_range(s, a->name, word, range) != 0)
		return -1;
	for (long i = range[0]; i <= range[1] && !interrupt_came(); i++) {
		const char *gtrid = s->trans[i].gtrid;
		if (args_flag(a, 'y') || ask_yes(s, "%s transaction %s", h->verb, gtrid))
			rc |= end_one(s, a, h, gtrid);
	}
	return rc;
}

static int	/* A wrong index among several: none of them is touched. */
check_all(struct session *s, const struct args *a)
{
	long range[2];

	for (int i = 0; i < a->argc; i++)
		if (parse_range(s, a->name, a->argv[i], range) != 0)
			return -1;
	return 0;
}

static int
end_by_hand(struct session *s, const struct args *a, const struct by_hand *h)
{
	char *answer = NULL;
	int rc = 0;

	if ((s->n_trans == 0 && list_all(s, false) != 0) || check_all(s, a) != 0)
		return -1;
	if (a->argc == 0) {
		if (ask(s, "Transaction index:", NULL, &answer) != 0)
			return -1;
		rc = end_range(s, a, h, answer);
		free(answer);
	}
	for (int i = 0; i < a->argc && !interrupt_came(); i++)
		rc |= end_range(s, a, h, a->argv[i]);
	return rc;
}

int
cmd_qcommittrans(struct session *s, const struct args *a)
{
	static const struct by_hand h = { "Commit transaction", "Commit", "committed", WIRE_OUT_ROLLED_BACK };

	return end_by_hand(s, a, &h);
}

int
cmd_qaborttrans(struct session *s, const struct args *a)
{
	static const struct by_hand h = { "Abort transaction", "Roll back", "rolled back", WIRE_OUT_COMMITTED };

	return end_by_hand(s, a, &h);
}

int
cmd_qforgettrans(struct session *s, const struct args *a)
{
	static const struct by_hand h = { "Forget transaction", "Forget", "forgotten", WIRE_OUT_NONE };

	return end_by_hand(s, a, &h);
}
