/*
 * Transactions: list them, and end by hand one that is in doubt and whose coordinator will not come back.
 */
#include <stdlib.h>
#include <string.h>

#include "qadmin_impl.h"

static void
gtrid_format(const struct branch_id *id, char out[2 * QSPACE_GTRID_MAX + 1])
{
	out[0] = '\0';
	for (int i = 0; i < id->len && i < QSPACE_GTRID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", id->gtrid[i]);
}

static int
gtrid_parse(const char *s, struct branch_id *id)
{
	size_t n = strlen(s);
	unsigned byte;

	memset(id, 0, sizeof *id);
	if (n == 0 || n % 2 != 0 || n / 2 > QSPACE_GTRID_MAX || strspn(s, "0123456789abcdef") != n)
		return -1;
	for (size_t i = 0; i < n / 2; i++) {
		sscanf(s + 2 * i, "%2x", &byte);
		id->gtrid[i] = (uint8_t)byte;
	}
	id->len = (uint8_t)(n / 2);
	return 0;
}

static int
show_branch(struct qadmin *a, const struct branch_info *b)
{
	char gtrid[2 * QSPACE_GTRID_MAX + 1];
	struct record *r = document_add(a->out);

	if (r == NULL)
		return -1;
	gtrid_format(&b->id, gtrid);
	return record_set(r, "gtrid", gtrid) | record_set(r, "state", b->state_name) | record_set(r, "coordinator",
	    b->coordinator) |
	    record_setf(r, "enqueues", "%lld", (long long)b->enqueues) | record_setf(r, "dequeues", "%lld",
	    (long long)b->dequeues) |
	    record_setf(r, "began", "%lld", (long long)b->began_us) | record_setf(r, "deadline", "%lld",
	    (long long)b->deadline_us) |
	    (b->doomed ? record_set(r, "doomed", "yes") : 0);
}

int
qadmin_qprinttrans(struct qadmin *a)
{
	struct branch_info *b = NULL;
	size_t n = 0;
	int rc;

	if ((rc = qspace_branch_list(a->qs, &b, &n)) != 0)
		return qadmin_error(a, "transactions", rc);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = show_branch(a, &b[i]);
	free(b);
	return rc == 0 ? 0 : qadmin_no_memory(a);
}

/* Only what is in doubt is ended by hand: anything else ends by itself, at its deadline at the latest. */
static int
end_by_hand(struct qadmin *a, int (*end)(struct qspace *, struct branch *), const char *done, int number)
{
	const char *gtrid = qadmin_arg(a, "gtrid");
	struct branch_id id;
	struct branch *b;
	int rc;

	if (gtrid == NULL)
		return 1;
	if (gtrid_parse(gtrid, &id) != 0 || (b = qspace_branch_find(a->qs, &id)) == NULL)
		return qparse_fail(a->text, 1, "transaction %.80s: none such in queue space %s", gtrid,
		    qspace_params(a->qs)->name);
	if (b->state != BR_PREPARED)
		return qparse_fail(a->text, 1,
		    "transaction %s is not in doubt: it is not prepared, and ends by itself", gtrid);
	if ((rc = qspace_batch_begin(a->qs)) != 0)
		return qadmin_error(a, gtrid, rc);
	rc = qadmin_finish(a->qs, end(a->qs, b));
	if (rc == QMENOSPACE)
		return qparse_fail(a->text, number, "transaction %s: no room in queue space %s to record its end",
		    gtrid, qspace_params(a->qs)->name);
	if (rc != 0)
		return qadmin_error(a, gtrid, rc);
	ulog("queue space %s: transaction %s was %s by an administrator", qspace_params(a->qs)->name, gtrid, done);
	return 0;
}

int
qadmin_qcommittrans(struct qadmin *a)
{
	return end_by_hand(a, qspace_branch_commit, "committed", 1500);
}

static int
rollback_by_hand(struct qspace *qs, struct branch *b)
{
	static const struct wire_why why = { .error = TPEABORT, .text = "rolled back by an administrator" };

	return qspace_branch_rollback_because(qs, b, &why);
}

int
qadmin_qaborttrans(struct qadmin *a)
{
	return end_by_hand(a, rollback_by_hand, "rolled back", 1501);
}
