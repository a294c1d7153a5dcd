/*
 * Queues: create, change, destroy, show.
 */
#include <stdlib.h>
#include <string.h>

#include "qadmin_impl.h"

/* Values that qcreate and qchange both take; an absent one leaves *p as it is. */
static int
take_values(struct qadmin *a, struct queue_params *p)
{
	const char *v, *low = record_get(a->args, "low"), *cmd = record_get(a->args, "cmd");
	int rc;

	if ((v = record_get(a->args, "outoforder")) != NULL &&
	    (rc = qparse_out_of_order(v, &p->top, &p->msgid, a->text)) != 0)
		return rc;
	if ((v = record_get(a->args, "retries")) != NULL && qparse_long(v, 0, INT32_MAX, &p->retries) != 0)
		return qparse_fail(a->text, 1, "retries \"%.80s\" is not a number from 0 to %d", v, INT32_MAX);
	if ((v = record_get(a->args, "delay")) != NULL && (rc = qparse_retry_delay(v, &p->retry_delay, a->text)) != 0)
		return rc;
	if ((v = record_get(a->args, "high")) != NULL &&
	    (rc = qparse_threshold(v, low != NULL ? low : "0", cmd != NULL ? cmd : "", "bBm%", &p->persistent,
	    a->text)) != 0)
		return rc;
	if ((v = record_get(a->args, "policy")) != NULL &&
	    (rc = qparse_policy(v, &p->default_nonpersistent, a->text)) != 0)
		return rc;
	if ((v = record_get(a->args, "nonpersistent")) != NULL &&
	    (rc = qparse_np_threshold(v, &p->nonpersistent, a->text)) != 0)
		return rc;
	if ((v = record_get(a->args, "expiration")) != NULL &&
	    (rc = qparse_expiration(v, &p->default_expiration, a->text)) != 0)
		return rc;
	return 0;
}

static int
write_queue(struct qadmin *a, int (*write)(struct qspace *, const struct queue_params *), const struct queue_params *p)
{
	int rc;

	if ((rc = qspace_batch_begin(a->qs)) != 0)
		return rc;
	return qadmin_finish(a->qs, write(a->qs, p));
}

int
qadmin_qcreate(struct qadmin *a)
{
	struct queue_params p = { .default_expiration = -1, .persistent = { .high = 100, .unit = '%' },
	    .nonpersistent = { .high = 100, .unit = '%' } };
	const char *name = qadmin_arg(a, "name"), *order = record_get(a->args, "order");
	int rc;

	if (name == NULL)
		return 1;
	if ((rc = qparse_queue_name(name, a->text)) != 0 ||
	    (rc = qparse_order(order != NULL ? order : "fifo", p.order, a->text)) != 0 ||
	    (rc = take_values(a, &p)) != 0)
		return rc;
	snprintf(p.name, sizeof p.name, "%s", name);
	rc = write_queue(a, qspace_queue_create, &p);
	if (rc == QMEBADQUEUE)
		return qparse_fail(a->text, 1, "queue %s exists already in queue space %s", name,
		    qspace_params(a->qs)->name);
	if (rc == QMENOSPACE)
		return qparse_fail(a->text, 1, "queue %s: queue space %s has its %ld queues already", name,
		    qspace_params(a->qs)->name,
		    qspace_params(a->qs)->queues);
	return rc == 0 ? 0 : qadmin_error(a, name, rc);
}

static int
no_such_queue(struct qadmin *a, const char *name)
{
	return qparse_fail(a->text, 1, "queue %s: no such queue in queue space %s", name, qspace_params(a->qs)->name);
}

int
qadmin_qchange(struct qadmin *a)
{
	const char *name = qadmin_arg(a, "name");
	struct queue_params p;
	int rc;

	if (name == NULL)
		return 1;
	if (qspace_queue_get(a->qs, name, &p, NULL) != 0)
		return no_such_queue(a, name);
	if ((rc = take_values(a, &p)) != 0)
		return rc;
	return (rc = write_queue(a, qspace_queue_change, &p)) == 0 ? 0 : qadmin_error(a, name, rc);
}

/* A page of its messages first, so that a long queue does not stop everybody else; the queue itself when it is empty. */
static int
destroy_some(struct qadmin *a, struct queue *q, bool purge, bool *more)
{
	long deleted = 0;
	int rc;

	*more = false;
	if ((rc = qspace_batch_begin(a->qs)) != 0)
		return rc;
	if (purge && q->n.held == 0 && q->n.pending == 0)
		rc = qadmin_purge_some(a->qs, q, false, &deleted, more);
	if (rc == 0 && !*more)
		rc = qspace_queue_destroy(a->qs, q->p.name, purge);
	return qadmin_finish(a->qs, rc);
}

int
qadmin_qdestroy(struct qadmin *a)
{
	const char *name = qadmin_arg(a, "name"), *purge = record_get(a->args, "purge");
	struct queue_stat st;
	struct record *r;
	struct queue *q;
	bool more;
	int rc;

	if (name == NULL)
		return 1;
	if ((q = queue_find(a->qs, name)) == NULL || qspace_queue_get(a->qs, name, NULL, &st) != 0)
		return no_such_queue(a, name);
	rc = destroy_some(a, q, purge != NULL && *purge == 'y', &more);
	if (rc == QMEINUSE && purge == NULL && st.held == 0 && st.messages + st.np_messages > 0)
		return qparse_fail(a->text, 1, "queue %s: it has %lld messages; -p deletes them", name,
		    (long long)st.messages + (long long)st.np_messages);
	if (rc == QMEINUSE) {
		ulog("queue space %s, queue %s: not destroyed, transactions have messages of it",
		    qspace_params(a->qs)->name, name);
		return qparse_fail(a->text, 1, "queue %s: transactions that have not ended have messages of it", name);
	}
	if (rc != 0)
		return qadmin_error(a, name, rc);
	if ((r = document_add(a->out)) == NULL || (more && record_set(r, "cursor", "more") != 0))
		return qadmin_no_memory(a);
	return 0;
}

int
qadmin_qset(struct qadmin *a)
{
	const char *name = qadmin_arg(a, "name");

	if (name == NULL)
		return 1;
	return queue_find(a->qs, name) != NULL ? 0 : no_such_queue(a, name);
}

/* --- show --- */

static int
show_params(struct record *r, const struct queue_params *p)
{
	char order[64];

	qformat_order(p->order, order, sizeof order);
	return record_set(r, "order", order) |
	    record_set(r, "outoforder", p->top ? (p->msgid ? "top,msgid" : "top") : p->msgid ? "msgid" : "none") |
	    record_setf(r, "retries", "%ld", p->retries) | record_setf(r, "delay", "%ld", p->retry_delay) |
	    record_set(r, "policy", p->default_nonpersistent ? "nonpersist" : "persist") |
	    (p->default_expiration < 0 ? record_set(r, "expiration", "none") :
	    record_setf(r, "expiration", "+%lld", (long long)p->default_expiration));
}

static int
show_threshold(struct record *r, const char *high, const char *low, const char *cmd, const struct threshold *t)
{
	char text[32];
	int rc;

	qformat_limit(t->high, t->unit, text, sizeof text);
	rc = record_set(r, high, text);
	qformat_limit(t->low, t->unit, text, sizeof text);
	return rc | record_set(r, low, text) | record_set(r, cmd, t->cmd);
}

static int
set_number(struct record *r, const char *key, int64_t n)
{
	return record_setf(r, key, "%lld", (long long)n);
}

static int
show_queue(struct qadmin *a, const char *name)
{
	struct queue_params p;
	struct queue_stat st;
	struct record *r;
	int rc = qspace_queue_get(a->qs, name, &p, &st);

	if (rc != 0)
		return no_such_queue(a, name);
	if ((r = document_add(a->out)) == NULL)
		return qadmin_no_memory(a);
	rc = record_set(r, "name", p.name) | set_number(r, "messages", st.messages) | set_number(r, "bytes", st.bytes) |
	    set_number(r, "blocks", st.blocks) | set_number(r, "np_messages", st.np_messages) |
	    set_number(r, "np_bytes", st.np_bytes) | set_number(r, "held", st.held) | set_number(r, "delayed", st.delayed) |
	    show_params(r, &p) | show_threshold(r, "high", "low", "cmd", &p.persistent) |
	    show_threshold(r, "np_high", "np_low", "np_cmd", &p.nonpersistent);
	return rc == 0 ? 0 : qadmin_no_memory(a);
}

int
qadmin_qinfo(struct qadmin *a)
{
	const char *name = record_get(a->args, "name"), *cursor = record_get(a->args, "cursor"), *last = cursor;
	struct record *head = document_add(a->out);
	int rc = 0, n = 0;

	if (head == NULL)
		return qadmin_no_memory(a);
	if (name != NULL)
		return show_queue(a, name);
	if (cursor != NULL && queue_find(a->qs, cursor) == NULL)
		return qparse_fail(a->text, 1, "queue %s was destroyed in the meantime", cursor);
	while (rc == 0 && n < QADMIN_PAGE && (name = qspace_queue_next(a->qs, last)) != NULL) {
		rc = show_queue(a, name);
		last = name;
		n++;
	}
	if (rc == 0 && n == QADMIN_PAGE && record_set(&a->out->rec[0], "cursor", last) != 0)
		return qadmin_no_memory(a);
	return rc;
}
