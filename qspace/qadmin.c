/*
 * qadmin_run: an administrator's command on an open queue space, whoever has it open.
 *
 * Nothing here walks over an unbounded number of messages in one call: answers come in pages, with a cursor for the next
 * one, and so do deletions (D9).
 */
#include <stdlib.h>
#include <string.h>

#include "qadmin_impl.h"

int
qadmin_no_memory(struct qadmin *a)
{
	return qparse_fail(a->text, 1, "out of memory");
}

int
qadmin_error(struct qadmin *a, const char *what, int qme)
{
	static const struct { int code; const char *means; } words[] = {
		{ QMEBADQUEUE, "no such queue" }, { QMEINUSE, "it is in use" },
		{ QMENOSPACE, "the queue space has no room for it" },
		{ QMEINVAL, "a value is out of range" }, { QMEABORTED, "the transaction was rolled back" },
		{ QMEPROTO, "the transaction is not in that state" },
		{ QMEOS, "out of memory, or the system refused; see the user log" },
		{ QMESYSTEM, "the queue space could not be read or written; see the user log" },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (words[i].code == qme)
			return qparse_fail(a->text, qme == QMESYSTEM || qme == QMEOS ? 1351 : 1, "%s: %s", what,
			    words[i].means);
	return qparse_fail(a->text, 1, "%s: error %d", what, qme);
}

const char *
qadmin_arg(struct qadmin *a, const char *key)
{
	const char *value = record_get(a->args, key);

	if (value == NULL)
		qparse_fail(a->text, 1, "argument %s is missing", key);
	return value;
}

int
qadmin_finish(struct qspace *qs, int rc)
{
	if (rc == 0 && (rc = qspace_batch_commit(qs)) == 0)
		return 0;
	qspace_batch_abort(qs);
	return rc;
}

static const struct { const char *op; int (*run)(struct qadmin *a); } operations[] = {
	{ "qopen", qadmin_qopen }, { "qspacelist", qadmin_qspacelist },
	{ "qaddext", qadmin_qaddext }, { "qspacechange", qadmin_qspacechange },
	{ "qcreate", qadmin_qcreate }, { "qchange", qadmin_qchange },
	{ "qdestroy", qadmin_qdestroy }, { "qinfo", qadmin_qinfo }, { "qset", qadmin_qset }, { "qlist", qadmin_qlist },
	{ "qdeletemsg", qadmin_qdeletemsg }, { "ipcrm", qadmin_ipcrm }, { "qprinttrans", qadmin_qprinttrans },
	{ "qcommittrans", qadmin_qcommittrans }, { "qaborttrans", qadmin_qaborttrans }, { "qforgettrans", qadmin_qforgettrans },
};

int
qadmin_run(struct qspace *qs, const char *op, const struct record *args, struct document *out, char **text)
{
	struct qadmin a = { .qs = qs, .args = args, .out = out, .text = text };
	int rc;

	*out = (struct document){ 0 };
	*text = NULL;
	for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
		if (strcmp(op, operations[i].op) == 0) {
			if ((rc = operations[i].run(&a)) != 0) {
				document_free(out);
				*out = (struct document){ 0 };
			}
			return rc;
		}
	return qparse_fail(text, 1, "%.40s: no such operation of a queue space", op);
}
