/*
 * qprinttrans, qcommittrans, qaborttrans: transactions, and ending by hand those that are in doubt.
 */
#include <stdlib.h>
#include <string.h>

#include "qparse.h"
#include "session.h"

static const struct label trans_labels[] = { { "index", "transaction index", false, AS_TEXT },
	{ "gtrid", "transaction id", false, AS_TEXT },
	{ "state", "status", false, AS_TEXT }, { "doomed", "to be rolled back", false, AS_TEXT },
	{ "coordinator", "coordinator", false, AS_OPTIONAL }, { "enqueues", "messages enqueued", false, AS_TEXT },
	{ "dequeues", "messages dequeued", false, AS_TEXT }, { "began", "began", false, AS_TIME },
	{ "deadline", "times out", false, AS_TIME }, { 0 } };

/* The list as it is now becomes the one that indices mean. */
static int
refresh(struct session *s)
{
	struct document doc;

	if (run_on_open_space(s, "Print transactions", "qprinttrans", NULL, &doc) != 0)
		return -1;
	document_free(&s->trans);
	s->trans = doc;
	for (size_t i = 0; i < doc.n; i++)
		record_setf(&doc.rec[i], "index", "%zu", i);
	return 0;
}

static int
check_index(struct session *s, const struct args *a, const char *text, long *index)
{
	if (qparse_long(text, 0, (long)s->trans.n - 1, index) == 0)
		return 0;
	say_error(s, 0, "%s: no transaction of index \"%.60s\" in queue space %s", a->name, text, s->space);
	return -1;
}

int
cmd_qprinttrans(struct session *s, const struct args *a)
{
	long only = -1;

	if (refresh(s) != 0 || (a->argc > 0 && check_index(s, a, a->argv[0], &only) != 0))
		return -1;
	console_page(&s->con);
	for (size_t i = 0; i < s->trans.n; i++)
		if (only < 0 || only == (long)i)
			show_record(s, trans_labels, &s->trans.rec[i]);
	console_page_end(&s->con);
	return 0;
}

static int
end_by_hand(struct session *s, const struct args *a, const char *what, const char *verb)
{
	struct document doc = { 0 };
	struct record *r = NULL;
	char *text = NULL;
	const char *gtrid;
	long index;
	int rc = -1;

	if ((s->trans.n == 0 && refresh(s) != 0) || (a->argc == 0 && ask(s, "Transaction index:", NULL, &text) != 0) ||
	    check_index(s, a, a->argc > 0 ? a->argv[0] : text, &index) != 0)
		goto done;
	gtrid = record_get(&s->trans.rec[index], "gtrid");
	if (!args_flag(a, 'y') && !ask_yes(s, "%s transaction %s", verb, gtrid))
		goto done;
	if (gtrid != NULL && (r = document_add(&doc)) != NULL && record_set(r, "gtrid", gtrid) == 0)
		rc = run_on_open_space(s, what, a->name, r, NULL);
done:
	document_free(&doc);
	free(text);
	return rc;
}

int
cmd_qcommittrans(struct session *s, const struct args *a)
{
	return end_by_hand(s, a, "Commit transaction", "Commit");
}

int
cmd_qaborttrans(struct session *s, const struct args *a)
{
	return end_by_hand(s, a, "Abort transaction", "Roll back");
}
