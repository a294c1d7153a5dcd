/*
 * Commands about a queue space as it is: open, close, show, and what a running one has besides its files.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "places.h"
#include "qparse.h"
#include "session.h"

int
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

void
close_space(struct session *s)
{
	if (s->space[0] != '\0' && s->place != -1)
		close(s->place);
	s->place = -1;
	s->space[0] = s->queue[0] = '\0';
	forget_transactions(s);
}

int
cmd_qopen(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1], *why = NULL;
	int place;

	if (space_name(s, a, false, name) != 0)
		return -1;
	close_space(s);
	if (places_take(s->device, name, PLACES_ADMIN, &place, &why) != 0) {
		say_error(s, 1350, "Open queue space: %s", why != NULL ? why : name);
		free(why);
		return -1;
	}
	if (run_on_space(s, name, "Open queue space", "qopen", NULL, NULL) != 0) {
		if (place != -1)
			close(place);
		return -1;
	}
	s->place = place;
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

/* --- what it is --- */

static void
show_extents(struct session *s, const char *name)
{
	struct device d;

	if (device_read(s->device, &d, NULL) != DEVE_OK)
		return;
	for (int i = 0; i < d.n_tables; i++) {
		const struct device_table *t = &d.table[i];
		if (strcmp(t->name, name) == 0 && strcmp(t->kind, "qspace") == 0)
			say(s, "  extent %d: %ld pages at %ld on %s\n", t->extent, t->pages, t->offset,
			    d.entry[t->entry].name);
	}
}

int
cmd_qspacelist(struct session *s, const struct args *a)
{
	static const struct label labels[] = { { "name", "queue space", false, AS_TEXT },
		{ "ipckey", "ipc key", false, AS_TEXT },
		{ "pages", "pages", false, AS_TEXT }, { "queues", "queues", false, AS_TEXT },
		{ "trans", "transactions", false, AS_TEXT },
		{ "procs", "processes", false, AS_TEXT }, { "messages", "messages", false, AS_TEXT },
		{ "errorq", "error queue", false, AS_TEXT }, { "inityn", "initialize extents", false, AS_TEXT },
		{ "blocking", "blocking factor", false, AS_TEXT },
		{ "nonpersistent", "non-persistent memory in bytes", false, AS_TEXT },
		{ "overflow", "overflow memory in bytes", false, AS_TEXT },
		{ "filter", "filter memory in bytes", false, AS_TEXT },
		{ "actions", "actions", false, AS_TEXT }, { "handles", "handles", false, AS_TEXT },
		{ "cursors", "cursors", false, AS_TEXT },
		{ "owners", "owners", false, AS_TEXT }, { "tmpqueues", "temporary queues", false, AS_TEXT },
		{ "used_pages", "pages in use", false, AS_TEXT }, { "used_queues", "queues in use", false, AS_TEXT },
		{ "used_trans", "transactions in use", false, AS_TEXT },
		{ "used_procs", "processes in use", false, AS_TEXT },
		{ "used_messages", "messages in use", false, AS_TEXT },
		{ "used_nonpersistent", "non-persistent memory in use in bytes", false, AS_TEXT },
		{ "used_actions", "actions in use", false, AS_TEXT },
		{ "enqueues", "enqueues", true, AS_TEXT }, { "dequeues", "dequeues", true, AS_TEXT },
		{ "batches", "batches", true, AS_TEXT }, { "flushes", "flushes", true, AS_TEXT },
		{ "log_bytes", "bytes of log written", true, AS_TEXT },
		{ "checkpoints", "checkpoints", true, AS_TEXT }, { 0 } };
	char name[QSPACE_NAME_MAX + 1];
	struct document doc;

	if (space_name(s, a, true, name) != 0 || run_on_space(s, name, "Queue space information", "qspacelist", NULL,
	    &doc) != 0)
		return -1;
	console_page(&s->con);
	if (doc.n > 0) {
		show_record(s, labels, &doc.rec[0]);
		show_extents(s, name);
		say(s, "  shared memory reserved by the system in bytes: 0\n  shared memory in bytes: 0\n");
	}
	console_page_end(&s->con);
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

static long	/* non-persistent messages, or -1: said why */
count_nonpersistent(struct session *s, const char *name)
{
	struct document args = { 0 }, doc = { 0 };
	struct record *r = document_add(&args);
	long n = -1;

	if (r != NULL && record_set(r, "count", "y") == 0 && run_on_space(s, name, "ipcrm", "ipcrm", r, &doc) == 0 &&
	    doc.n > 0)
		n = record_long(&doc.rec[0], "messages", 0);
	document_free(&args);
	document_free(&doc);
	return n;
}

static int
remove_nonpersistent(struct session *s, const char *name)
{
	struct document doc = { 0 };
	long removed = 0;
	bool more = true;
	int rc;

	do {
		if ((rc = run_on_space(s, name, "ipcrm", "ipcrm", NULL, &doc)) != 0)
			break;
		if (doc.n > 0)
			removed += record_long(&doc.rec[0], "deleted", 0);
		more = doc.n > 0 && record_get(&doc.rec[0], "cursor") != NULL;
		document_free(&doc);
	} while (more);
	document_free(&doc);
	if (rc == 0)
		say_verbose(s, "%ld non-persistent messages removed from queue space %s\n", removed, name);
	return rc;
}

/*
 * Non-persistent messages are what the original has in shared memory.  They are in the process that serves the space, or
 * were written down by the last one: a script that removes them says so with -y, anybody else is asked, if there are any.
 */
int
cmd_ipcrm(struct session *s, const struct args *a)
{
	char name[QSPACE_NAME_MAX + 1], endpoint[256] = "";
	bool served;
	long pid = 0, n;

	if (space_name(s, a, true, name) != 0)
		return -1;
	if (strcmp(name, s->space) == 0)
		close_space(s);
	served = qspace_owner(s->device, name, endpoint, sizeof endpoint, &pid) == 0 && endpoint[0] != '\0';
	if (!served && !qspace_has_kept(s->device, name)) {
		say_verbose(s, "Nothing to remove for queue space %s\n", name);
		return 0;
	}
	if (served && !args_flag(a, 'f')) {
		say_error(s, 0, "ipcrm: process %ld serves queue space %s; stop it, or use -f to lose its non-persistent messages", pid, name);
		return -1;
	}
	if (!args_flag(a, 'y')) {
		if ((n = count_nonpersistent(s, name)) < 0)
			return -1;
		if (n > 0 && !ask_yes(s, "Remove all %ld non-persistent messages of queue space %s", n, name))
			return -1;
	}
	return remove_nonpersistent(s, name);
}
