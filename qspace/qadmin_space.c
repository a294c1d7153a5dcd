/*
 * The queue space as a whole: its numbers, and changing them.
 *
 * A change is written to the space's own file, atomically, and holds from then on, for whoever has the space open too.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "qadmin_impl.h"

int
qadmin_qopen(struct qadmin *a)
{
	struct record *r = document_add(a->out);

	return r != NULL && record_set(r, "name", qspace_params(a->qs)->name) == 0 ? 0 : qadmin_no_memory(a);
}

int
qadmin_qspacelist(struct qadmin *a)
{
	const struct qspace_params *p = qspace_params(a->qs);
	const struct { const char *key; long value; } number[] = { { "ipckey", p->ipckey }, { "pages", p->pages },
		{ "queues", p->queues },
		{ "trans", p->trans }, { "procs", p->procs }, { "messages", p->messages }, { "blocking", p->blocking },
		{ "nonpersistent", (long)p->nonpersistent_bytes }, { "overflow", p->overflow_memory },
		{ "filter", p->filter_memory },
		{ "actions", p->actions }, { "handles", p->handles }, { "cursors", p->cursors },
		{ "owners", p->owners },
		{ "tmpqueues", p->tmpqueues },
		{ "used_pages", (long)(a->qs->used.pages + a->qs->parts.reserved.pages) },
		{ "used_queues", (long)HASH_COUNT(a->qs->by_name) }, { "used_trans", (long)HASH_COUNT(a->qs->branches) },
		{ "used_messages", (long)(a->qs->used.messages + a->qs->parts.reserved.messages) },
		{ "used_procs", places_in_use(a->qs->dir) },
		{ "used_nonpersistent", (long)(a->qs->used.np_bytes + a->qs->parts.reserved.np_bytes) } };
	struct record *r = document_add(a->out);
	struct qspace_counts c;

	qspace_counts(a->qs, &c);
	if (r == NULL || record_set(r, "name", p->name) != 0 || record_set(r, "errorq", p->errorq) != 0 ||
	    record_set(r, "inityn", p->init ? "y" : "n") != 0)
		return qadmin_no_memory(a);
	for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
		if (record_setf(r, number[i].key, "%ld", number[i].value) != 0)
			return qadmin_no_memory(a);
	if (record_setf(r, "enqueues", "%" PRIu64, c.enqueues) != 0 || record_setf(r, "dequeues", "%" PRIu64, c.dequeues) != 0 ||
	    record_setf(r, "batches", "%" PRIu64, c.batches) != 0 || record_setf(r, "flushes", "%" PRIu64, c.flushes) != 0 ||
	    record_setf(r, "log_bytes", "%" PRIu64, c.log_bytes) != 0 ||
	    record_setf(r, "checkpoints", "%" PRIu64, c.checkpoints) != 0)
		return qadmin_no_memory(a);
	return 0;
}

/* Write what `changed` says, and go by it.  1: said why. */
static int
adopt(struct qadmin *a, const struct qspace_params *changed)
{
	struct qspace_params before = a->qs->params;
	char *why = NULL;
	int rc;

	a->qs->params = *changed;
	rc = space_file_write(a->qs, &why);
	if (rc != 0) {
		a->qs->params = before;
		rc = qparse_fail(a->text, 1, "%s", why != NULL ? why : "the change could not be written");
	}
	free(why);
	return rc;
}

/* The pages are reserved on the device already; `pages` is what the space has on it altogether. */
int
qadmin_qaddext(struct qadmin *a)
{
	struct qspace_params p = *qspace_params(a->qs);
	const char *pages = qadmin_arg(a, "pages");

	if (pages == NULL)
		return 1;
	if (qparse_long(pages, p.pages, 999999999999L, &p.pages) != 0)
		return qparse_fail(a->text, 1, "pages \"%.60s\": a number from %ld on is expected", pages, p.pages);
	return adopt(a, &p);
}

int
qadmin_qspacechange(struct qadmin *a)
{
	struct qspace_params p = *qspace_params(a->qs);
	const struct { const char *key; long *to; long min; } number[] = { { "ipckey", &p.ipckey, 1 },
		{ "trans", &p.trans, 1 },
		{ "procs", &p.procs, 1 }, { "messages", &p.messages, 1 }, { "overflow", &p.overflow_memory, 0 },
		{ "filter", &p.filter_memory, 0 },
		{ "actions", &p.actions, 0 }, { "handles", &p.handles, 0 }, { "cursors", &p.cursors, 0 },
		{ "owners", &p.owners, 0 },
		{ "tmpqueues", &p.tmpqueues, 0 } };
	const char *v;
	int rc;

	for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
		if ((v = record_get(a->args, number[i].key)) != NULL && qparse_long(v, number[i].min, 999999999999L,
		    number[i].to) != 0)
			return qparse_fail(a->text, 1, "%s \"%.60s\" is not a number from %ld on", number[i].key, v,
			    number[i].min);
	if ((v = record_get(a->args, "blocking")) != NULL && qparse_long(v, 1, 999999999L, &p.blocking) != 0)
		return qparse_fail(a->text, 1505, "blocking factor \"%.60s\" is not a number from 1 on", v);
	if ((v = record_get(a->args, "nonpersistent")) != NULL && qparse_bytes(v, &p.nonpersistent_bytes) != 0)
		return qparse_fail(a->text, 1,
		    "non-persistent memory \"%.60s\" is not a number of bytes (b) or blocks (B)", v);
	p.nonpersistent_bytes = (p.nonpersistent_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (p.nonpersistent_bytes == 0 && a->qs->used.np_bytes > 0)
		return qparse_fail(a->text, 1,
		    "queue space %s has non-persistent messages (%lld bytes): take them, or remove them by ipcrm, before -n 0",
		    p.name, (long long)a->qs->used.np_bytes);
	if ((v = record_get(a->args, "inityn")) != NULL)
		p.init = *v == 'y' || *v == 'Y';
	if ((v = record_get(a->args, "errorq")) != NULL) {
		if (*v != '\0' && (rc = qparse_queue_name(v, a->text)) != 0)
			return rc;
		snprintf(p.errorq, sizeof p.errorq, "%s", v);
	}
	return adopt(a, &p);
}
