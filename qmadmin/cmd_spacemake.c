/*
 * Making and changing queue spaces: qspacecreate, qspacedestroy, qsize, qaddext, qspacechange.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device.h"
#include "qparse.h"
#include "session.h"

#define MAX_COUNT 999999999L

static int
number(struct session *s, const char *what, const char *text, long min, long *out)
{
	if (qparse_long(text, min, MAX_COUNT, out) == 0)
		return 0;
	say_error(s, 0, "%s \"%.60s\" is not a number from %ld to %ld", what, text, min, MAX_COUNT);
	return -1;
}

/* -A and its like. */
static int
take_areas(struct session *s, const struct args *a, struct qspace_params *p)
{
	const struct { char letter; long *to; const char *what; } option[] = { { 'A', &p->actions, "actions" },
		{ 'H', &p->handles, "handles" },
		{ 'C', &p->cursors, "cursors" }, { 'O', &p->owners, "owners" },
		{ 'Q', &p->tmpqueues, "temporary queues" },
		{ 'f', &p->filter_memory, "filter memory" }, { 'o', &p->overflow_memory, "overflow memory" } };
	const char *value;

	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
		if ((value = args_option(a, option[i].letter)) != NULL && number(s, option[i].what, value, 0,
		    option[i].to) != 0)
			return -1;
	if ((value = args_option(a, 'n')) != NULL && qparse_bytes(value, &p->nonpersistent_bytes) != 0) {
		say_error(s, 0, "non-persistent memory \"%.60s\" is not a number of bytes (b) or blocks (B)", value);
		return -1;
	}
	return 0;
}

static int
take_init(struct session *s, const char *text, bool *init)
{
	*init = strcasecmp(text, "y") == 0 || strcasecmp(text, "yes") == 0;
	if (*init || strcasecmp(text, "n") == 0 || strcasecmp(text, "no") == 0)
		return 0;
	say_error(s, 0, "initialize extents: y or n is expected, not \"%.60s\"", text);
	return -1;
}

static int
take_size(struct session *s, const struct record *r, struct qspace_params *p)
{
	if (number(s, "number of pages", record_get(r, "pages"), 1, &p->pages) != 0 ||
	    number(s, "number of queues", record_get(r, "queues"), 1, &p->queues) != 0 ||
	    number(s, "number of transactions", record_get(r, "trans"), 1, &p->trans) != 0 ||
	    number(s, "number of processes", record_get(r, "procs"), 1, &p->procs) != 0 ||
	    number(s, "number of messages", record_get(r, "messages"), 1, &p->messages) != 0)
		return -1;
	p->pages -= p->pages % 4;
	if (p->pages >= 1 + p->queues)
		return 0;
	say_error(s, 0, "%ld pages do not cover the overhead of a queue space with %ld queues: one page, and one for each queue", p->pages, p->queues);
	return -1;
}

static int
take_params(struct session *s, const struct record *r, struct qspace_params *p)
{
	const char *errorq = record_get(r, "errorq");
	char *text = NULL;
	int rc;

	rc = qparse_space_name(record_get(r, "name"), &text);
	if (rc == 0 && *errorq != '\0')
		rc = qparse_queue_name(errorq, &text);
	if (rc != 0) {
		say_error(s, 0, "%s", text != NULL ? text : "bad name");
		free(text);
		return -1;
	}
	snprintf(p->name, sizeof p->name, "%s", record_get(r, "name"));
	snprintf(p->errorq, sizeof p->errorq, "%s", errorq);
	if (number(s, "IPC key", record_get(r, "ipckey"), 1, &p->ipckey) != 0 || take_size(s, r, p) != 0 ||
	    take_init(s, record_get(r, "inityn"), &p->init) != 0)
		return -1;
	if (qparse_long(record_get(r, "blocking"), 1, MAX_COUNT, &p->blocking) == 0)
		return 0;
	say_error(s, 1505, "blocking factor \"%.60s\" is not a number from 1 on", record_get(r, "blocking"));
	return -1;
}

#define PAGES { "pages", "Size of queue space in disk pages:", NULL }
#define QUEUES { "queues", "Number of queues in queue space:", NULL }
#define TRANS { "trans", "Number of concurrent transactions in queue space:", NULL }
#define PROCS { "procs", "Number of concurrent processes in queue space:", NULL }
#define MESSAGES { "messages", "Number of messages in queue space:", NULL }

int
cmd_qspacecreate(struct session *s, const struct args *a)
{
	const struct field fields[] = { { "name", "Queue space name:", NULL },
		{ "ipckey", "IPC Key for queue space:", NULL },
		PAGES, QUEUES, TRANS, PROCS, MESSAGES, { "errorq", "Error queue name:", "" },
		{ "inityn", "Initialize extents (y, n [default=n]):", "n" },
		{ "blocking", "Blocking factor [default=16]:", "16" } };
	struct qspace_params p = { 0 };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	char *why = NULL;
	int rc = -1;

	if (r == NULL || collect(s, fields, 10, a->argc, a->argv, r) != 0 || take_areas(s, a, &p) != 0 ||
	    take_params(s, r, &p) != 0)
		goto done;
	if ((rc = qspace_create(s->device, &p, &why)) != 0) {
		say_error(s, rc == DEVE_OWNER ? 1105 : rc == DEVE_NOENT || rc == DEVE_FORMAT ||
		    rc == DEVE_VERSION ? 1104 : 0,
		    "Create queue space: %s", why != NULL ? why : p.name);
		rc = -1;
	} else {
		if (p.init)
			say_verbose(s, "....................\n");
		say_verbose(s, "Queue space %s created\n", p.name);
	}
done:
	free(why);
	document_free(&doc);
	return rc;
}

int
cmd_qspacedestroy(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1];
	char *why = NULL;
	int rc;

	if (space_name(s, a, false, name) != 0)
		return -1;
	if (!args_flag(a, 'y') && !ask_yes(s, "Destroy queue space %s", name))
		return -1;
	if (strcmp(name, s->space) == 0)
		close_space(s);
	if ((rc = qspace_destroy(s->device, name, args_flag(a, 'f'), &why)) != 0)
		say_error(s, 0, "Destroy queue space: %s", why != NULL ? why : name);
	else
		say_verbose(s, "Queue space %s destroyed\n", name);
	free(why);
	return rc == 0 ? 0 : -1;
}

int
cmd_qsize(struct session *s, const struct args *a)
{
	const struct field fields[] = { PAGES, QUEUES, TRANS, PROCS, MESSAGES };
	struct qspace_params p = { 0 };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (r == NULL || collect(s, fields, 5, a->argc, a->argv, r) != 0 || take_areas(s, a, &p) != 0 ||
	    take_size(s, r, &p) != 0)
		goto done;
	/* No shared memory and no semaphores: one process owns the space, and what it keeps in memory is its own. */
	say(s, "shared memory: 0 bytes\nsemaphores: 0\n");
	say(s, "pages on the device: %ld\nnon-persistent messages in the memory of the serving process: %lld bytes\n",
	    p.pages,
	    (long long)p.nonpersistent_bytes);
	rc = 0;
done:
	document_free(&doc);
	return rc;
}

/* --- change --- */

static long
pages_on_device(struct session *s, const char *name)
{
	struct device d;

	return device_read(s->device, &d, NULL) == DEVE_OK ? device_table_pages(&d, name, "qspace") : 0;
}

static int
add_extent(struct session *s, const char *name, long pages)
{
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	char *why = NULL;
	int rc = -1;

	if (device_table_extend(s->device, name, "qspace", pages, &why) != DEVE_OK)
		say_error(s, 0, "Add extent: %s", why != NULL ? why : name);
	else if (r != NULL && record_setf(r, "pages", "%ld", pages_on_device(s, name)) == 0)
		rc = run_on_space(s, name, "Add extent", "qaddext", r, NULL);
	free(why);
	document_free(&doc);
	return rc;
}

int
cmd_qaddext(struct session *s, const struct args *a)
{
	static const struct field field = { "pages", "Size of extent in disk pages:", NULL };
	char name[QSPACE_NAME_MAX + 1];
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	long pages;
	int rc = -1;

	if (r == NULL || space_name(s, a, false, name) != 0 || collect(s, &field, 1, a->argc - 1, a->argv + 1,
	    r) != 0 ||
	    number(s, "number of pages", record_get(r, "pages"), 4, &pages) != 0)
		goto done;
	if (strcmp(name, s->space) == 0)
		close_space(s);
	pages -= pages % 4;
	if ((rc = add_extent(s, name, pages)) == 0)
		say_verbose(s, "%ld pages added to queue space %s\n", pages, name);
done:
	document_free(&doc);
	return rc;
}

static int
ask_space_changes(struct session *s, const struct args *a, const struct record *now, struct record *r)
{
	static const struct { const char *key, *prompt; } question[] = { { "ipckey", "IPC Key for queue space" },
		{ "trans", "Number of concurrent transactions in queue space" },
		{ "procs", "Number of concurrent processes in queue space" },
		{ "messages", "Number of messages in queue space" }, { "errorq", "Error queue name" },
		{ "inityn", "Initialize extents (y, n)" }, { "blocking", "Blocking factor" } };
	static const struct { char letter; const char *key; } option[] = { { 'A', "actions" }, { 'H', "handles" },
		{ 'C', "cursors" },
		{ 'O', "owners" }, { 'Q', "tmpqueues" }, { 'f', "filter" }, { 'n', "nonpersistent" },
		{ 'o', "overflow" } };
	char prompt[256];

	for (int i = 0; i < 7; i++) {
		const char *value = record_get(now, question[i].key);
		struct field f = { question[i].key, prompt, value != NULL ? value : "" };
		snprintf(prompt, sizeof prompt, "%s [default=%s]:", question[i].prompt, f.deflt);
		if (collect(s, &f, 1, a->argc - 1 - i, a->argv + 1 + i, r) != 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
		if (args_option(a, option[i].letter) != NULL &&
		    record_set(r, option[i].key, args_option(a, option[i].letter)) != 0)
			return -1;
	return 0;
}

int
cmd_qspacechange(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1];
	struct document doc = { 0 }, now = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (a->argc > 0 && *a->argv[0] == '\0') {
		say_error(s, 1507, "Change queue space: the queue space name is empty");
		goto done;
	}
	if (r == NULL || space_name(s, a, false, name) != 0 || run_on_space(s, name, "Change queue space",
	    "qspacelist", NULL, &now) != 0 ||
	    now.n == 0 || ask_space_changes(s, a, &now.rec[0], r) != 0)
		goto done;
	if (strcmp(name, s->space) == 0)
		close_space(s);
	if ((rc = run_on_space(s, name, "Change queue space", "qspacechange", r, NULL)) == 0)
		say_verbose(s, "Queue space %s changed\n", name);
done:
	document_free(&doc);
	document_free(&now);
	return rc;
}
