/*
 * qset and qscan say which messages; qlist and qdeletemsg do something with them, a page at a time, so that whoever
 * serves the space is never kept long.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "qparse.h"
#include "session.h"

int
cmd_qset(struct session *s, const struct args *a)
{
	static const struct field name = { "name", "Queue name:", NULL };
	struct document doc = { 0 };
	struct record *r;
	int rc = -1;

	if (a->argc == 0 && s->queue[0] != '\0') {
		say(s, "queue: %s\n", s->queue);
		return 0;
	}
	if ((r = document_add(&doc)) != NULL && collect(s, &name, 1, a->argc, a->argv, r) == 0 &&
	    (rc = run_on_open_space(s, "Queue information", "qset", r, NULL)) == 0) {
		snprintf(s->queue, sizeof s->queue, "%s", record_get(r, "name"));
		say_verbose(s, "Queue %s is set\n", s->queue);
	}
	document_free(&doc);
	return rc;
}

static const struct { char letter; const char *key; } criteria[] = { { 't', "time" }, { 'p', "priority" },
	{ 'm', "msgid" },
	{ 'i', "corrid" }, { 'd', "delivery" }, { 'e', "expiry" } };
#define N_CRITERIA (sizeof criteria / sizeof criteria[0])

static void
show_criteria(struct session *s)
{
	if (s->criteria.n == 0) {
		say(s, "selection criteria: none\n");
		return;
	}
	say(s, "selection criteria:\n");
	for (size_t i = 0; i < N_CRITERIA; i++)
		if (record_get(&s->criteria.rec[0], criteria[i].key) != NULL)
			say(s, "  %s: %s\n", criteria[i].key, record_get(&s->criteria.rec[0], criteria[i].key));
}

int
cmd_qscan(struct session *s, const struct args *a)
{
	struct document doc = { 0 };
	struct qcriteria parsed;
	struct record *r;
	char *text = NULL;
	int rc;

	if (a->argc == 0 && a->n_opt == 0) {
		show_criteria(s);
		return 0;
	}
	if (a->argc > 0 && (a->n_opt > 0 || strcasecmp(a->argv[0], "none") != 0)) {
		say_error(s, 0, "qscan: \"%.60s\": options or none are expected", a->argv[0]);
		return -1;
	}
	if (a->n_opt > 0 && (r = document_add(&doc)) != NULL) {
		for (size_t i = 0; i < N_CRITERIA; i++)
			if (args_option(a, criteria[i].letter) != NULL)
				record_set(r, criteria[i].key, args_option(a, criteria[i].letter));
		if ((rc = qcriteria_parse(r, clock_now_us(), &parsed, &text)) != 0) {
			say_error(s, rc, "qscan: %s", text != NULL ? text : "out of memory");
			free(text);
			document_free(&doc);
			return -1;
		}
	}
	document_free(&s->criteria);
	s->criteria = doc;
	if (s->con.verbose)
		show_criteria(s);
	return 0;
}

/* The queue that qset names, and the criteria, as arguments of an operation.  NULL: none is set, which was said. */
static struct record *
selection(struct session *s, const char *command, struct document *doc)
{
	struct record *r;

	if (s->queue[0] == '\0') {
		say_error(s, 0, "%s: no queue is set; use qset", command);
		return NULL;
	}
	if ((r = document_add(doc)) == NULL || record_set(r, "queue", s->queue) != 0)
		return NULL;
	for (size_t i = 0; i < N_CRITERIA && s->criteria.n > 0; i++) {
		const char *value = record_get(&s->criteria.rec[0], criteria[i].key);
		if (value != NULL && record_set(r, criteria[i].key, value) != 0)
			return NULL;
	}
	return r;
}

static const struct label message_labels[] = { { "msgid", "message", false, AS_TEXT },
	{ "priority", "priority", false, AS_TEXT },
	{ "retries", "retries", false, AS_TEXT }, { "length", "length", false, AS_TEXT },
	{ "delivery", "delivery", false, AS_TEXT },
	{ "reply", "reply delivery", false, AS_TEXT }, { "expires", "expires", false, AS_TIME },
	{ "available", "available", false, AS_TIME }, { "held", "held by transaction", false, AS_TEXT },
	{ "holder", "transaction id", true, AS_TEXT },
	{ "corrid", "correlation id", true, AS_TEXT }, { "type", "type", true, AS_OPTIONAL },
	{ "subtype", "subtype", true, AS_OPTIONAL },
	{ "enqueued", "enqueued", true, AS_TIME }, { "replyqueue", "reply queue", true, AS_OPTIONAL },
	{ "failurequeue", "failure queue", true, AS_OPTIONAL }, { "from_queue", "from queue", true, AS_TEXT },
	{ "from_msgid", "from message", true, AS_TEXT }, { "failures", "failed deliveries", true, AS_TEXT },
	{ "first_failure", "first failure", true, AS_TIME }, { "last_failure", "last failure", true, AS_TIME },
	{ "tperrno", "tperrno", true, AS_TEXT }, { "tpurcode", "tpurcode", true, AS_TEXT },
	{ "reason", "reason", true, AS_TEXT }, { 0 } };

static void
list_page(struct session *s, const struct document *page, void *arg)
{
	long *shown = arg;

	for (size_t i = 1; i < page->n; i++, ++*shown)
		show_record(s, message_labels, &page->rec[i]);
}

int
cmd_qlist(struct session *s, const struct args *a)
{
	struct document doc = { 0 };
	struct record *r = selection(s, a->name, &doc);
	long shown = 0;
	int rc = -1;

	if (r != NULL) {
		console_page(&s->con);
		rc = owner_run_pages(s, "Queue list", "qlist", r, list_page, &shown);
		console_page_end(&s->con);
		if (rc == 0 && shown == 0)
			say_info(s, 1401, "qlist: no message of queue %s matches the selection criteria of qscan",
			    s->queue);
	}
	document_free(&doc);
	return rc;
}

struct deleted { long gone, kept; };

static void
deleted_page(struct session *s, const struct document *page, void *arg)
{
	struct deleted *d = arg;

	if (page->n > 0)
		d->kept += record_long(&page->rec[0], "held", 0);
	for (size_t i = 1; i < page->n; i++, d->gone++)
		if (record_get(&page->rec[i], "msgid") != NULL)
			say_verbose(s, "deleted: %s\n", record_get(&page->rec[i], "msgid"));
}

int
cmd_qdeletemsg(struct session *s, const struct args *a)
{
	struct document doc = { 0 };
	struct record *r = selection(s, a->name, &doc);
	struct deleted d = { 0 };
	int rc = -1;

	if (r == NULL || (!args_flag(a, 'y') && !ask_yes(s, "Delete %s messages of queue %s",
	    s->criteria.n > 0 ? "the selected" : "all", s->queue)))
		goto done;
	rc = owner_run_pages(s, "Delete messages", "qdeletemsg", r, deleted_page, &d);
	if (d.gone > 0)
		say(s, "%ld %s deleted\n", d.gone, d.gone == 1 ? "message" : "messages");
	if (d.kept > 0)
		say_warning(s, 0, "qdeletemsg: %ld %s held by transactions, not deleted", d.kept,
		    d.kept == 1 ? "message is" : "messages are");
	if (rc == 0 && d.gone == 0 && d.kept == 0)
		say_info(s, 1407, "qdeletemsg: no message of queue %s matches the selection criteria of qscan",
		    s->queue);
done:
	document_free(&doc);
	return rc;
}
