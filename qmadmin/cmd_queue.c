/*
 * qcreate, qchange, qdestroy, qinfo.
 */
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "session.h"

#define HIGH_PROMPT "High limit for queue capacity warning (b for bytes used, B for blocks used, % for percent used, m for messages [default="
#define LOW_PROMPT "Reset (low) limit for queue capacity warning [default="

static int
take_queue_options(const struct args *a, struct record *r)
{
	static const struct { char letter; const char *key; } option[] = { { 'd', "policy" },
		{ 'n', "nonpersistent" }, { 'e', "expiration" } };
	const char *value;

	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
		if ((value = args_option(a, option[i].letter)) != NULL && record_set(r, option[i].key, value) != 0)
			return -1;
	return 0;
}

int
cmd_qcreate(struct session *s, const struct args *a)
{
	static const struct field fields[] = { { "name", "Queue name:", NULL },
		{ "order", "Queue order (priority, time, expiration, fifo, lifo):", NULL },
		{ "outoforder", "Out-of-ordering enqueuing (top, msgid, [default=none]):", "none" },
		{ "retries", "Retries [default=0]:", "0" }, { "delay", "Retry delay in seconds [default=0]:", "0" },
		{ "high", HIGH_PROMPT "100%]):", "100%" }, { "low", LOW_PROMPT "0%]:", "0" },
		{ "cmd", "Queue capacity command:", "" } };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (r != NULL && collect(s, fields, 8, a->argc, a->argv, r) == 0 && take_queue_options(a, r) == 0 &&
	    (rc = run_on_open_space(s, "Create queue", "qcreate", r, NULL)) == 0)
		say_verbose(s, "Queue %s created in queue space %s\n", record_get(r, "name"), s->space);
	document_free(&doc);
	return rc;
}

/* The queue as it is now: its values are the defaults of qchange's questions.  -1: said why. */
static int
current_values(struct session *s, const char *name, struct document *out)
{
	struct document ask_for = { 0 };
	struct record *r = document_add(&ask_for);
	int rc = -1;

	*out = (struct document){ 0 };
	if (r != NULL && record_set(r, "name", name) == 0)
		rc = run_on_open_space(s, "Queue information", "qinfo", r, out);
	document_free(&ask_for);
	if (rc == 0 && out->n < 2) {
		document_free(out);
		return -1;
	}
	return rc;
}

static int
ask_changes(struct session *s, const struct args *a, const struct record *now, struct record *r)
{
	static const struct { const char *key, *before, *after; } question[] = {
		{ "outoforder", "Out-of-ordering enqueuing (top, msgid, none [default=", "]):" },
		{ "retries", "Retries [default=", "]:" }, { "delay", "Retry delay in seconds [default=", "]:" },
		{ "high", HIGH_PROMPT, "]):" }, { "low", LOW_PROMPT, "]:" },
		{ "cmd", "Queue capacity command [default=", "]:" } };
	char prompt[512];

	for (int i = 0; i < 6; i++) {
		const char *value = record_get(now, question[i].key);
		struct field f = { question[i].key, prompt, value != NULL ? value : "" };
		snprintf(prompt, sizeof prompt, "%s%s%s", question[i].before, f.deflt, question[i].after);
		if (collect(s, &f, 1, a->argc - 1 - i, a->argv + 1 + i, r) != 0)
			return -1;
	}
	return 0;
}

int
cmd_qchange(struct session *s, const struct args *a)
{
	static const struct field name = { "name", "Queue name:", NULL };
	struct document doc = { 0 }, now = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (r == NULL || collect(s, &name, 1, a->argc, a->argv, r) != 0)
		goto done;
	/* With everything on the command line there is nothing to ask, nor to look up; an empty word clears the command. */
	if (a->argc == 7) {
		static const struct field rest[] = { { "outoforder", "", "none" }, { "retries", "", "0" },
			{ "delay", "", "0" },
			{ "high", "", "100%" }, { "low", "", "0" }, { "cmd", "", "" } };
		if (collect(s, rest, 6, a->argc - 1, a->argv + 1, r) != 0)
			goto done;
	} else if (current_values(s, record_get(r, "name"), &now) != 0 || ask_changes(s, a, &now.rec[1], r) != 0)
		goto done;
	if (take_queue_options(a, r) == 0 && (rc = run_on_open_space(s, "Change queue", "qchange", r, NULL)) == 0)
		say_verbose(s, "Queue %s changed\n", record_get(r, "name"));
done:
	document_free(&doc);
	document_free(&now);
	return rc;
}

/* Its messages go first, a page at a time; the owner says whether there is more to do. */
static int
destroy_by_pages(struct session *s, const struct record *r)
{
	struct document answer;
	struct owner *o;
	bool more = true;
	int rc = 0;

	if (owner_begin(s, s->space, "Destroy queue", &o) != 0)
		return -1;
	while (more && (rc = owner_run(s, o, "qdestroy", r, &answer)) == 0) {
		more = answer.n > 0 && record_get(&answer.rec[0], "cursor") != NULL;
		document_free(&answer);
	}
	owner_end(o);
	return rc;
}

int
cmd_qdestroy(struct session *s, const struct args *a)
{
	static const struct field name = { "name", "Queue name:", NULL };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (r == NULL || collect(s, &name, 1, a->argc, a->argv, r) != 0)
		goto done;
	if (!args_flag(a, 'y') && !ask_yes(s, "Destroy queue %s", record_get(r, "name")))
		goto done;
	if (args_flag(a, 'p') || args_flag(a, 'f'))
		record_set(r, "purge", "y");
	if ((rc = destroy_by_pages(s, r)) != 0)
		goto done;
	say_verbose(s, "Queue %s destroyed\n", record_get(r, "name"));
	if (strcmp(s->queue, record_get(r, "name")) == 0)
		s->queue[0] = '\0';
done:
	document_free(&doc);
	return rc;
}

static const struct label queue_labels[] = { { "name", "queue", false, AS_TEXT },
	{ "messages", "messages", false, AS_TEXT },
	{ "bytes", "bytes", false, AS_TEXT }, { "blocks", "blocks", false, AS_TEXT },
	{ "np_messages", "non-persistent messages", false, AS_TEXT },
	{ "np_bytes", "non-persistent bytes", false, AS_TEXT },
	{ "held", "held by transactions", false, AS_TEXT }, { "delayed", "not available yet", false, AS_TEXT },
	{ "order", "order", true, AS_TEXT }, { "outoforder", "out-of-order enqueuing", true, AS_TEXT },
	{ "retries", "retries", true, AS_TEXT }, { "delay", "retry delay in seconds", true, AS_TEXT },
	{ "high", "high limit", true, AS_TEXT }, { "low", "low limit", true, AS_TEXT },
	{ "cmd", "capacity command", true, AS_TEXT },
	{ "np_high", "non-persistent high limit", true, AS_TEXT },
	{ "np_low", "non-persistent low limit", true, AS_TEXT },
	{ "np_cmd", "non-persistent capacity command", true, AS_TEXT },
	{ "expiration", "default expiration", true, AS_TEXT }, { "policy", "delivery policy", true, AS_TEXT }, { 0 } };

int
cmd_qinfo(struct session *s, const struct args *a)
{
	struct document doc = { 0 }, page;
	struct record *r = document_add(&doc);
	struct owner *o;
	bool more = true;
	int rc = 0;

	if (r == NULL || (a->argc > 0 && record_set(r, "name", a->argv[0]) != 0) ||
	    owner_begin(s, s->space, "Queue information", &o) != 0) {
		document_free(&doc);
		return -1;
	}
	console_page(&s->con);
	while (more && !interrupt_came() && (rc = owner_run(s, o, "qinfo", r, &page)) == 0) {
		for (size_t i = 1; i < page.n; i++)
			show_record(s, queue_labels, &page.rec[i]);
		more = page.n > 0 && record_get(&page.rec[0], "cursor") != NULL &&
		    record_set(r, "cursor", record_get(&page.rec[0], "cursor")) == 0;
		document_free(&page);
	}
	console_page_end(&s->con);
	owner_end(o);
	document_free(&doc);
	return rc;
}
