/*
 * Transactions: list them; end by hand one that is in doubt and whose coordinator will not come back; forget how one ended.
 *
 * The list is in the order of their ids, which is that of their begin, so a cursor is the id of the last one shown: what comes and
 * goes between two pages moves nothing.  Branches first, then decisions.
 */
#include <stdlib.h>
#include <string.h>

#include "branch_impl.h"
#include "gtrid.h"
#include "qadmin_impl.h"

#define LOOK_OPS 100000		/* operations counted for one page: the owner has others to serve */
#define QUEUES_SHOWN 100	/* of one transaction */

static int
id_compare(const struct branch_id *a, const struct branch_id *b)
{
	int c = memcmp(a->gtrid, b->gtrid, a->len < b->len ? a->len : b->len);

	return c != 0 ? c : (int)a->len - (int)b->len;
}

static int
id_parse(const char *s, struct branch_id *id)
{
	memset(id, 0, sizeof *id);
	return gtrid_from_hex(s, id->gtrid, &id->len);
}

/* --- one transaction as a record --- */

static int	/* What both kinds have. */
show_id(struct record *r, const struct branch_id *id, const char *state)
{
	char gtrid[GTRID_HEX];
	unsigned long w[3];

	gtrid_to_hex(id->gtrid, id->len, gtrid);
	gtrid_words(id->gtrid, id->len, w);
	return record_set(r, "gtrid", gtrid) | record_setf(r, "log", "x%lx x%lx x%lx", w[0], w[1], w[2]) | record_set(r, "state", state);
}

/* How much it has of each queue.  A transaction is about few queues, so the latest one found is mostly the one wanted. */
struct of_queue { const struct queue *q; int64_t enqueues, dequeues; };
static size_t
count_queues(const struct branch *b, struct of_queue of[QUEUES_SHOWN], int64_t total[2])
{
	size_t n = 0, at = 0;

	for (size_t i = b->done; i < b->n; i++) {
		const struct op *op = &b->op[i];
		bool in = op->kind == OP_ENQUEUE;
		total[in ? 0 : 1]++;
		if (n == 0 || of[at].q != op->q)
			for (at = 0; at < n && of[at].q != op->q; at++)
				;
		if (at == n) {
			if (n == QUEUES_SHOWN) {
				at = 0;
				continue;
			}
			of[n++] = (struct of_queue){ .q = op->q };
		}
		*(in ? &of[at].enqueues : &of[at].dequeues) += 1;
	}
	return n;
}

static int
show_operations(struct record *r, const struct branch *b)
{
	struct of_queue of[QUEUES_SHOWN];
	int64_t total[2] = { 0, 0 };
	size_t n = count_queues(b, of, total);
	char key[32];
	int rc = record_setf(r, "enqueues", "%lld", (long long)total[0]) | record_setf(r, "dequeues", "%lld", (long long)total[1]) |
	    record_setf(r, "bytes", "%zu", b->bytes);

	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof key, "queue.%zu", i);
		rc |= record_set(r, key, of[i].q->p.name);
		snprintf(key, sizeof key, "enqueues.%zu", i);
		rc |= record_setf(r, key, "%lld", (long long)of[i].enqueues);
		snprintf(key, sizeof key, "dequeues.%zu", i);
		rc |= record_setf(r, key, "%lld", (long long)of[i].dequeues);
	}
	return rc;
}

static int
show_branch(struct qadmin *a, const struct branch *b)
{
	int64_t now = clock_now_us();
	struct record *r = document_add(a->out);
	int rc;

	if (r == NULL)
		return -1;
	rc = show_id(r, &b->id, b->state == BR_ACTIVE && b->closed ? "deciding" : branch_state_name(b->state)) |
	    record_set(r, "coordinator", b->coordinator) | record_set(r, "owner", b->owner) |
	    record_setf(r, "began", "%lld", (long long)b->began_us) | record_setf(r, "deadline", "%lld", (long long)b->deadline_us) |
	    record_setf(r, "age", "%lld", (long long)((now - b->began_us) / 1000000)) | show_operations(r, b);
	if (b->state == BR_ACTIVE && b->deadline_us != 0)
		rc |= record_setf(r, "left", "%lld", (long long)(b->deadline_us > now ? (b->deadline_us - now + 999999) / 1000000 : 0));
	return rc | (b->doomed ? record_set(r, "doomed", "yes") : 0);
}

static int
show_decision(struct qadmin *a, const struct branch_id *id, const struct wire_groups *g)
{
	char groups[WIRE_MAX_GROUPS * (WIRE_GROUP + 1)] = "";
	struct record *r = document_add(a->out);
	size_t n = 0;

	for (int i = 0; i < g->n; i++)
		n += (size_t)snprintf(groups + n, sizeof groups - n, "%s%s", i > 0 ? " " : "", g->name[i]);
	return r == NULL ? -1 : show_id(r, id, "decided") | record_set(r, "groups", groups);
}

/* --- the list --- */

struct cursor { bool decisions, started; struct branch_id after; };

static int
cursor_parse(struct qadmin *a, struct cursor *c)
{
	const char *s = record_get(a->args, "cursor");

	*c = (struct cursor){ 0 };
	if (s == NULL)
		return 0;
	c->decisions = s[0] == 'd';
	c->started = s[0] != '\0' && s[1] == ':' && s[2] != '\0';
	if ((s[0] != 'b' && s[0] != 'd') || s[1] != ':' || (c->started && id_parse(s + 2, &c->after) != 0))
		return qparse_fail(a->text, 1, "the cursor is not one of transactions");
	return 0;
}

static int
cursor_give(struct qadmin *a, char kind, const struct branch_id *after)
{
	char gtrid[GTRID_HEX] = "";

	if (after != NULL)
		gtrid_to_hex(after->gtrid, after->len, gtrid);
	return record_setf(&a->out->rec[0], "cursor", "%c:%s", kind, gtrid) == 0 ? 0 : qadmin_no_memory(a);
}

static int
by_id(const void *a, const void *b)
{
	return id_compare(&(*(struct branch *const *)a)->id, &(*(struct branch *const *)b)->id);
}

/* Branches behind the cursor.  *more: the page is full. */
static int
list_branches(struct qadmin *a, const struct cursor *c, bool *more)
{
	struct branch **v = malloc((HASH_COUNT(a->qs->branches) + 1) * sizeof *v);
	size_t n = 0, i, looked = 0;
	int rc = v == NULL ? -1 : 0;

	for (struct branch *b = a->qs->branches; b != NULL && v != NULL; b = b->hh.next)
		if (!c->started || id_compare(&b->id, &c->after) > 0)
			v[n++] = b;
	if (n > 1)
		qsort(v, n, sizeof *v, by_id);
	for (i = 0; i < n && rc == 0 && i < QADMIN_PAGE && looked < LOOK_OPS; i++) {
		looked += v[i]->n;
		rc = show_branch(a, v[i]);
	}
	*more = i < n;
	if (rc == 0 && *more)
		rc = cursor_give(a, 'b', &v[i - 1]->id);
	free(v);
	return rc == 0 ? 0 : rc > 0 ? rc : qadmin_no_memory(a);
}

static int
list_decisions(struct qadmin *a, const struct cursor *c)
{
	struct branch_id last = c->after, id, *after = c->decisions && c->started ? &last : NULL;
	struct wire_groups groups;
	int rc;

	while ((rc = qspace_decision_next(a->qs, after, &id, &groups)) == 0) {
		if (a->out->n > QADMIN_PAGE)
			return cursor_give(a, 'd', after);
		if (show_decision(a, &id, &groups) != 0)
			return qadmin_no_memory(a);
		last = id;
		after = &last;
	}
	return rc == QMENOMSG ? 0 : qadmin_error(a, "transactions", rc);
}

static int
none_such(struct qadmin *a, const char *gtrid)
{
	return qparse_fail(a->text, 1, "transaction %.80s: none such in queue space %s", gtrid, qspace_params(a->qs)->name);
}

static int
show_only(struct qadmin *a, const char *gtrid)
{
	struct wire_groups groups;
	struct branch_id id;
	struct branch *b;
	int rc;

	if (id_parse(gtrid, &id) != 0)
		return none_such(a, gtrid);
	if ((b = qspace_branch_find(a->qs, &id)) != NULL)
		return show_branch(a, b) == 0 ? 0 : qadmin_no_memory(a);
	if ((rc = qspace_decision_get(a->qs, &id, &groups)) == 0)
		return show_decision(a, &id, &groups) == 0 ? 0 : qadmin_no_memory(a);
	return rc == QMENOMSG ? none_such(a, gtrid) : qadmin_error(a, gtrid, rc);
}

int
qadmin_qprinttrans(struct qadmin *a)
{
	const char *gtrid = record_get(a->args, "gtrid");
	struct cursor c;
	bool more = false;
	int rc;

	if ((rc = cursor_parse(a, &c)) != 0)
		return rc;
	if (document_add(a->out) == NULL)
		return qadmin_no_memory(a);
	if (gtrid != NULL)
		return show_only(a, gtrid);
	if (!c.decisions && (rc = list_branches(a, &c, &more)) != 0)
		return rc;
	return more ? 0 : list_decisions(a, &c);
}

/* --- by hand --- */

enum by_hand { COMMIT, ROLL_BACK, FORGET };
static const struct { const char *done; int full; } hands[] = {
	[COMMIT]    = { "committed", 1500 },
	[ROLL_BACK] = { "rolled back", 1501 },
	[FORGET]    = { "forgotten", 1 },
};

static bool
is_heuristic(const struct branch *b)
{
	return b->state == BR_HEUR_COMMITTED || b->state == BR_HEUR_ROLLED_BACK;
}

/* May this be done to a branch in its state?  0, or said why not. */
static int
may_end(struct qadmin *a, const struct branch *b, enum by_hand how, const char *gtrid)
{
	bool active = b->state == BR_ACTIVE && !b->closed && how == ROLL_BACK && record_get(a->args, "active") != NULL;

	if (how == FORGET)
		return is_heuristic(b) ? 0 : qparse_fail(a->text, 1,
		    "transaction %s was not ended by an administrator: it is %s, and nothing is to be forgotten", gtrid,
		    branch_state_name(b->state));
	if (is_heuristic(b))
		return qparse_fail(a->text, 1, "transaction %s is %s already", gtrid, branch_state_name(b->state));
	if (b->state != BR_PREPARED && !active)
		return qparse_fail(a->text, 1, "transaction %s is not in doubt: it is not prepared, and ends by itself", gtrid);
	return 0;
}

static int	/* In a batch. */
end_branch(struct qspace *qs, struct branch *b, enum by_hand how)
{
	static const struct wire_why why = { .error = TPEABORT, .text = "rolled back by an administrator" };
	int rc = how == FORGET ? qspace_branch_forget(qs, b) :
	    b->state == BR_ACTIVE ? qspace_branch_rollback_because(qs, b, &why) : qspace_branch_by_hand(qs, b, how == COMMIT);

	return rc == QSPACE_AGAIN ? 0 : rc;	/* a large one: it is decided, and the rest follows by itself */
}

/* A decision is to commit; only what it is kept for can be given up. */
static int
end_decision(struct qadmin *a, const struct branch_id *id, enum by_hand how, const char *gtrid)
{
	struct wire_groups groups;
	int rc = qspace_decision_get(a->qs, id, &groups);

	if (rc == QMENOMSG)
		return none_such(a, gtrid);
	if (rc != 0)
		return qadmin_error(a, gtrid, rc);
	if (how != FORGET)
		return qparse_fail(a->text, 1, "transaction %s was decided here: it is committed, and the other groups are told", gtrid);
	if ((rc = qspace_batch_begin(a->qs)) == 0)
		rc = qadmin_finish(a->qs, qspace_decision_remove(a->qs, id));
	return rc == 0 ? 0 : qadmin_error(a, gtrid, rc);
}

static int
by_hand(struct qadmin *a, enum by_hand how)
{
	const char *gtrid = qadmin_arg(a, "gtrid");
	struct branch_id id;
	struct branch *b;
	int rc;

	if (gtrid == NULL)
		return 1;
	if (id_parse(gtrid, &id) != 0)
		return none_such(a, gtrid);
	if ((b = qspace_branch_find(a->qs, &id)) == NULL)
		rc = end_decision(a, &id, how, gtrid);
	else if ((rc = may_end(a, b, how, gtrid)) == 0) {
		if ((rc = qspace_batch_begin(a->qs)) == 0)
			rc = qadmin_finish(a->qs, end_branch(a->qs, b, how));
		if (rc == QMENOSPACE)
			rc = qparse_fail(a->text, hands[how].full, "transaction %s: no room in queue space %s to record its end",
			    gtrid, qspace_params(a->qs)->name);
		else if (rc != 0)
			rc = qadmin_error(a, gtrid, rc);
	}
	if (rc == 0)
		ulog("QM_CAT:1670: INFO: queue space %s: transaction %s was %s by an administrator", qspace_params(a->qs)->name, gtrid,
		    hands[how].done);
	return rc;
}

int
qadmin_qcommittrans(struct qadmin *a)
{
	return by_hand(a, COMMIT);
}

int
qadmin_qaborttrans(struct qadmin *a)
{
	return by_hand(a, ROLL_BACK);
}

int
qadmin_qforgettrans(struct qadmin *a)
{
	return by_hand(a, FORGET);
}
