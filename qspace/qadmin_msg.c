/*
 * Messages: list and delete those that the criteria of qscan select.
 */
#include <stdlib.h>
#include <string.h>

#include "gtrid.h"
#include "qadmin_impl.h"
#include "tpe.h"

struct victim { struct okey key; struct oval v; struct place at; };
struct page {
	struct qadmin *a;
	struct qcriteria want;
	int64_t before_us;		/* deletions: only what was there when the command began */
	long looked, held;
	bool no_memory, np_only;
	struct victim *victim; size_t n;	/* deletions */
};

/* --- list --- */

static const char *
qos_name(long qos)
{
	return qos == TPQQOSPERSISTENT ? "persistent" : qos == TPQQOSNONPERSISTENT ? "nonpersistent" : "default";
}

static int	/* Where a message of the error queue comes from, and why it is here. */
show_origin(struct record *r, const struct origin *o)
{
	static const uint8_t unknown[TMMSGIDLEN];
	char id[3 * TMMSGIDLEN + 1];
	int rc;

	rc = record_set(r, "from_queue", o->queue) | record_setf(r, "failures", "%u", o->retries) |
	    record_setf(r, "first_failure", "%lld", (long long)o->first_us) |
	    record_setf(r, "last_failure", "%lld", (long long)o->last_us) |
	    record_setf(r, "tperrno", "%s (%d)", tpe_name(o->why.error), (int)o->why.error) |
	    record_setf(r, "tpurcode", "%lld", (long long)o->why.urcode) | record_set(r, "reason", o->why.text);
	if (memcmp(o->msgid, unknown, sizeof unknown) != 0) {
		qformat_id(o->msgid, id);
		rc |= record_set(r, "from_msgid", id);
	}
	return rc;
}

static int
show_message(struct qadmin *a, const struct scanned_msg *s)
{
	const struct qmsg *m = s->m;
	char id[3 * TMMSGIDLEN + 1], gtrid[GTRID_HEX];
	struct record *r = document_add(a->out);
	int rc;

	if (r == NULL)
		return -1;
	qformat_id(m->msgid, id);
	rc = record_set(r, "msgid", id) | record_setf(r, "priority", "%d", m->priority) |
	    record_setf(r, "retries", "%ld", m->retries) | record_setf(r, "length", "%zu", m->body_len) |
	    record_set(r, "delivery", m->persistent ? "persistent" : "nonpersistent") |
	    record_set(r, "reply", qos_name(m->flags & TPQREPLYQOS ? m->reply_qos : 0)) |
	    record_set(r, "type", m->type) | record_set(r, "subtype", m->subtype) |
	    record_set(r, "replyqueue", m->replyqueue) | record_set(r, "failurequeue", m->failurequeue) |
	    record_setf(r, "enqueued", "%lld", (long long)m->enqueued_us);
	if (m->expires_us != 0)
		rc |= record_setf(r, "expires", "%lld", (long long)m->expires_us);
	if (m->available_us != 0)
		rc |= record_setf(r, "available", "%lld", (long long)m->available_us);
	if (s->held)
		rc |= record_set(r, "held", "yes");
	if (s->holder != NULL) {
		gtrid_to_hex(s->holder->gtrid, s->holder->len, gtrid);
		rc |= record_set(r, "holder", gtrid);
	}
	if (m->flags & TPQCORRID) {
		qformat_id(m->corrid, id);
		rc |= record_set(r, "corrid", id);
	}
	if (s->origin->queue[0] != '\0')
		rc |= show_origin(r, s->origin);
	return rc;
}

static int
list_one(void *arg, const struct scanned_msg *s)
{
	struct page *p = arg;

	p->looked++;
	if (qcriteria_match(&p->want, s->m)) {
		if (show_message(p->a, s) != 0)
			return p->no_memory = true;
		p->n++;
	}
	return p->n >= QADMIN_PAGE || p->looked >= QADMIN_LOOK;
}

/* --- what both need --- */

static int
find_queue(struct qadmin *a, struct queue **q)
{
	const char *name = qadmin_arg(a, "queue");

	if (name == NULL)
		return 1;
	if ((*q = queue_find(a->qs, name)) == NULL)
		return qparse_fail(a->text, 1, "queue %s: no such queue in queue space %s", name,
		    qspace_params(a->qs)->name);
	return 0;
}

/* A cursor is the time when the command began, a colon, and where the scan stopped. */
static int
take_cursor(struct qadmin *a, const struct queue *q, int64_t *began_us, struct scan_pos *pos)
{
	const char *cursor = record_get(a->args, "cursor");
	char *colon;

	*pos = (struct scan_pos){ 0 };
	*began_us = clock_now_us();
	if (cursor == NULL)
		return 0;
	*began_us = strtoll(cursor, &colon, 10);
	if (*colon != ':' || scan_pos_parse(colon + 1, pos) != 0 || (pos->started && get32(pos->key.b) != q->id))
		return qparse_fail(a->text, 1, "the cursor is not one of queue %s", q->p.name);
	return 0;
}

static int
give_cursor(struct qadmin *a, int64_t began_us, const struct scan_pos *pos)
{
	char where[2 * ORDER_KEY_MAX + 2];

	scan_pos_format(pos, where, sizeof where);
	return record_setf(&a->out->rec[0], "cursor", "%lld:%s", (long long)began_us, where) == 0 ? 0 :
	    qadmin_no_memory(a);
}

int
qadmin_qlist(struct qadmin *a)
{
	struct page p = { .a = a };
	struct scan_pos pos;
	struct queue *q;
	int64_t began_us;
	int rc;

	if ((rc = find_queue(a, &q)) != 0 || (rc = take_cursor(a, q, &began_us, &pos)) != 0 ||
	    (rc = qcriteria_parse(a->args, began_us, &p.want, a->text)) != 0)
		return rc;
	if (document_add(a->out) == NULL)
		return qadmin_no_memory(a);
	if ((rc = qspace_batch_begin(a->qs)) != 0)
		return qadmin_error(a, q->p.name, rc);
	rc = qadmin_scan(a->qs, q, &pos, list_one, &p);
	qspace_batch_abort(a->qs);	/* looking changes nothing */
	if (rc < 0)
		return qadmin_error(a, q->p.name, rc);
	if (p.no_memory)
		return qadmin_no_memory(a);
	return rc == SCAN_STOPPED ? give_cursor(a, began_us, &pos) : 0;
}

/* --- delete --- */

static int
collect_one(void *arg, const struct scanned_msg *s)
{
	struct page *p = arg;

	p->looked++;
	if (s->m->enqueued_us > p->before_us || (p->np_only && s->m->persistent) || !qcriteria_match(&p->want, s->m))
		return p->looked >= QADMIN_LOOK;
	if (s->held) {		/* its branch decides */
		p->held++;
		return p->looked >= QADMIN_LOOK;
	}
	p->victim[p->n++] = (struct victim){ *s->key, *s->v, s->at };
	if (p->a != NULL) {
		struct record *r = document_add(p->a->out);
		char id[3 * TMMSGIDLEN + 1];
		qformat_id(s->m->msgid, id);
		if (r == NULL || record_set(r, "msgid", id) != 0)
			return p->no_memory = true;
	}
	return p->n >= QADMIN_PAGE || p->looked >= QADMIN_LOOK;
}

/* In a batch.  A QME code, SCAN_END or SCAN_STOPPED. */
static int
delete_page(struct qspace *qs, struct queue *q, struct scan_pos *pos, struct page *p)
{
	int end, rc;

	if ((p->victim = malloc(QADMIN_PAGE * sizeof *p->victim)) == NULL)
		return QMEOS;
	end = qadmin_scan(qs, q, pos, collect_one, p);
	rc = end < 0 ? end : p->no_memory ? QMEOS : 0;
	for (size_t i = 0; i < p->n && rc == 0; i++) {
		const struct victim *x = &p->victim[i];
		if ((rc = store_remove(qs, q, &x->key, &x->v, &x->at, NULL)) == 0)
			used_add(qs, &x->v, -1);
	}
	free(p->victim);
	p->victim = NULL;
	return rc != 0 ? rc : end;
}

int
qadmin_qdeletemsg(struct qadmin *a)
{
	struct page p = { .a = a };
	struct scan_pos pos;
	struct queue *q;
	int rc, end;

	if ((rc = find_queue(a, &q)) != 0 || (rc = take_cursor(a, q, &p.before_us, &pos)) != 0 ||
	    (rc = qcriteria_parse(a->args, p.before_us, &p.want, a->text)) != 0)
		return rc;
	if (document_add(a->out) == NULL)
		return qadmin_no_memory(a);
	if ((rc = qspace_batch_begin(a->qs)) != 0)
		return qadmin_error(a, q->p.name, rc);
	end = delete_page(a->qs, q, &pos, &p);
	if ((rc = qadmin_finish(a->qs, end < 0 ? end : 0)) != 0)
		return qadmin_error(a, q->p.name, rc);
	if (record_setf(&a->out->rec[0], "deleted", "%zu", p.n) != 0 || record_setf(&a->out->rec[0], "held", "%ld",
	    p.held) != 0)
		return qadmin_no_memory(a);
	return end == SCAN_STOPPED ? give_cursor(a, p.before_us, &pos) : 0;
}

int
qadmin_purge_some(struct qspace *qs, struct queue *q, bool np_only, long *deleted, bool *more)
{
	struct page p = { .before_us = INT64_MAX, .np_only = np_only };
	struct scan_pos pos = { 0 };
	int rc = delete_page(qs, q, &pos, &p);

	*deleted = (long)p.n;
	*more = rc == SCAN_STOPPED && p.n > 0;
	return rc < 0 ? rc : 0;
}

/* What is only in memory goes: some of the non-persistent messages of the first queue that has any. */
int
qadmin_ipcrm(struct qadmin *a)
{
	struct record *r = document_add(a->out);
	struct queue *q, *found = NULL;
	long deleted = 0;
	bool more = false;
	int rc;

	if (r == NULL)
		return qadmin_no_memory(a);
	if (record_get(a->args, "count") != NULL) {
		int64_t n = 0;
		for (q = a->qs->queues; q != NULL; q = q->next)
			n += q->n.np_messages;
		return record_setf(r, "messages", "%lld", (long long)n) == 0 ? 0 : qadmin_no_memory(a);
	}
	for (q = a->qs->queues; q != NULL && found == NULL; q = q->next)
		if (q->n.np_messages > q->n.held)
			found = q;
	if (found != NULL) {
		if ((rc = qspace_batch_begin(a->qs)) == 0)
			rc = qadmin_finish(a->qs, qadmin_purge_some(a->qs, found, true, &deleted, &more));
		if (rc != 0)
			return qadmin_error(a, found->p.name, rc);
	}
	if (record_setf(r, "deleted", "%ld", deleted) != 0 || (deleted > 0 && record_set(r, "cursor", "more") != 0))
		return qadmin_no_memory(a);
	return 0;
}
