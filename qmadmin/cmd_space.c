/*
 * Commands about a queue space as a whole.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "device.h"
#include "qparse.h"
#include "session.h"

#define MAX_COUNT 999999999L

/* The space a command is about: its argument, else the open one where that is meant, else an answer.  -1: none. */
static int
space_name(struct session *s, const struct args *a, bool open_one_will_do, char name[QSPACE_NAME_MAX + 1])
{
	char *answer = NULL, *text = NULL;
	int rc;

	if (a->argc == 0 && open_one_will_do && s->space[0] != '\0') {
		snprintf(name, QSPACE_NAME_MAX + 1, "%s", s->space);
		return 0;
	}
	if (a->argc == 0 && ask(s, "Queue space name:", NULL, &answer) != 0)
		return -1;
	if ((rc = qparse_space_name(a->argc > 0 ? a->argv[0] : answer, &text)) != 0)
		say_error(s, 0, "%s: %s", a->name, text != NULL ? text : "bad name");
	else
		snprintf(name, QSPACE_NAME_MAX + 1, "%s", a->argc > 0 ? a->argv[0] : answer);
	free(answer);
	free(text);
	return rc == 0 ? 0 : -1;
}

static void
close_space(struct session *s)
{
	s->space[0] = s->queue[0] = '\0';
	document_free(&s->trans);
	s->trans = (struct document){ 0 };
}

int
cmd_qopen(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1];

	if (space_name(s, a, false, name) != 0)
		return -1;
	close_space(s);
	if (run_on_space(s, name, "Open queue space", "qopen", NULL, NULL) != 0)
		return -1;
	snprintf(s->space, sizeof s->space, "%s", name);
	say_verbose(s, "Queue space %s is open\n", name);
	return 0;
}

int
cmd_qclose(struct session *s, const struct args *a)
{
	(void)a;
	say_verbose(s, "Queue space %s is closed\n", s->space);
	close_space(s);
	return 0;
}

/* --- creation --- */

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
	const struct { char letter; long *to; const char *what; } option[] = { { 'A', &p->actions, "actions" }, { 'H', &p->handles, "handles" },
		{ 'C', &p->cursors, "cursors" }, { 'O', &p->owners, "owners" }, { 'Q', &p->tmpqueues, "temporary queues" },
		{ 'f', &p->filter_memory, "filter memory" }, { 'o', &p->overflow_memory, "overflow memory" } };
	const char *value;

	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
		if ((value = args_option(a, option[i].letter)) != NULL && number(s, option[i].what, value, 0, option[i].to) != 0)
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
	const struct field fields[] = { { "name", "Queue space name:", NULL }, { "ipckey", "IPC Key for queue space:", NULL },
		PAGES, QUEUES, TRANS, PROCS, MESSAGES, { "errorq", "Error queue name:", "" },
		{ "inityn", "Initialize extents (y, n [default=n]):", "n" }, { "blocking", "Blocking factor [default=16]:", "16" } };
	struct qspace_params p = { 0 };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	char *why = NULL;
	int rc = -1;

	if (r == NULL || collect(s, fields, 10, a->argc, a->argv, r) != 0 || take_areas(s, a, &p) != 0 || take_params(s, r, &p) != 0)
		goto done;
	if ((rc = qspace_create(s->device, &p, &why)) != 0) {
		say_error(s, rc == DEVE_OWNER ? 1105 : rc == DEVE_NOENT || rc == DEVE_FORMAT || rc == DEVE_VERSION ? 1104 : 0,
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

/* --- what it takes, what it is --- */

int
cmd_qsize(struct session *s, const struct args *a)
{
	const struct field fields[] = { PAGES, QUEUES, TRANS, PROCS, MESSAGES };
	struct qspace_params p = { 0 };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	int rc = -1;

	if (r == NULL || collect(s, fields, 5, a->argc, a->argv, r) != 0 || take_areas(s, a, &p) != 0 || take_size(s, r, &p) != 0)
		goto done;
	/* No shared memory and no semaphores: one process owns the space, and what it keeps in memory is its own. */
	say(s, "shared memory: 0 bytes\nsemaphores: 0\n");
	say(s, "pages on the device: %ld\nnon-persistent messages in the memory of the serving process: %lld bytes\n", p.pages,
	    (long long)p.nonpersistent_bytes);
	rc = 0;
done:
	document_free(&doc);
	return rc;
}

static void
show_extents(struct session *s, const char *name)
{
	struct device d;

	if (device_read(s->device, &d, NULL) != DEVE_OK)
		return;
	for (int i = 0; i < d.n_tables; i++) {
		const struct device_table *t = &d.table[i];
		if (strcmp(t->name, name) == 0 && strcmp(t->kind, "qspace") == 0)
			say(s, "  extent %d: %ld pages at %ld on %s\n", t->extent, t->pages, t->offset, d.entry[t->entry].name);
	}
}

int
cmd_qspacelist(struct session *s, const struct args *a)
{
	static const struct label labels[] = { { "name", "queue space", false, AS_TEXT }, { "ipckey", "ipc key", false, AS_TEXT },
		{ "pages", "pages", false, AS_TEXT }, { "queues", "queues", false, AS_TEXT }, { "trans", "transactions", false, AS_TEXT },
		{ "procs", "processes", false, AS_TEXT }, { "messages", "messages", false, AS_TEXT },
		{ "errorq", "error queue", false, AS_TEXT }, { "inityn", "initialize extents", false, AS_TEXT },
		{ "blocking", "blocking factor", false, AS_TEXT }, { "nonpersistent", "non-persistent memory in bytes", false, AS_TEXT },
		{ "overflow", "overflow memory in bytes", false, AS_TEXT }, { "filter", "filter memory in bytes", false, AS_TEXT },
		{ "actions", "actions", false, AS_TEXT }, { "handles", "handles", false, AS_TEXT }, { "cursors", "cursors", false, AS_TEXT },
		{ "owners", "owners", false, AS_TEXT }, { "tmpqueues", "temporary queues", false, AS_TEXT }, { 0 } };
	char name[QSPACE_NAME_MAX + 1];
	struct document doc;

	if (space_name(s, a, true, name) != 0 || run_on_space(s, name, "Queue space information", "qspacelist", NULL, &doc) != 0)
		return -1;
	list_begin(s);
	if (doc.n > 0) {
		show_record(s, labels, &doc.rec[0]);
		show_extents(s, name);
		say(s, "  shared memory reserved by the system in bytes: 0\n  shared memory in bytes: 0\n");
	}
	list_end(s);
	document_free(&doc);
	return 0;
}

/* --- what a running space has besides its files --- */

int
cmd_ipcs(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1], endpoint[256] = "";
	long pid = 0;

	if (space_name(s, a, true, name) != 0)
		return -1;
	say(s, "queue space: %s\n", name);
	if (qspace_owner(s->device, name, endpoint, sizeof endpoint, &pid) != 0)
		say(s, "  process: none\n");
	else {
		say(s, "  process: %ld\n", pid);
		if (endpoint[0] != '\0')
			say(s, "  endpoint: %s\n", endpoint);
	}
	return 0;
}

/* Non-persistent messages live in the process that serves the space, and go with it: where none runs nothing is left. */
int
cmd_ipcrm(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1], endpoint[256] = "";
	struct document doc = { 0 };
	long pid = 0, removed = 0;
	int rc;

	if (space_name(s, a, true, name) != 0)
		return -1;
	if (strcmp(name, s->space) == 0)
		close_space(s);
	if (qspace_owner(s->device, name, endpoint, sizeof endpoint, &pid) != 0 || endpoint[0] == '\0') {
		say_verbose(s, "Nothing to remove for queue space %s\n", name);
		return 0;
	}
	if (!args_flag(a, 'f')) {
		say_error(s, 0, "ipcrm: process %ld serves queue space %s; stop it, or use -f to lose its non-persistent messages", pid, name);
		return -1;
	}
	if (!args_flag(a, 'y') && !ask_yes(s, "Remove all non-persistent messages of queue space %s", name))
		return -1;
	do {
		rc = run_on_space(s, name, "ipcrm", "ipcrm", NULL, &doc);
		if (rc == 0 && doc.n > 0)
			removed += record_long(&doc.rec[0], "deleted", 0);
		if (rc != 0 || doc.n == 0 || record_get(&doc.rec[0], "cursor") == NULL)
			break;
		document_free(&doc);
	} while (1);
	document_free(&doc);
	if (rc == 0)
		say_verbose(s, "%ld non-persistent messages removed from queue space %s\n", removed, name);
	return rc;
}
