/*
 * Who runs a command on a queue space: the process that serves it, asked over its endpoint; or nobody does, and then we
 * open the space for as long as the command takes.  Both run qadmin_run().
 *
 * Nothing is kept between commands, so it does not matter who came or went in the meantime.  While another qmadmin has
 * the space open, or a server is starting up on it, we wait for our turn.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bb.h"
#include "clock.h"
#include "interrupt.h"
#include "link.h"
#include "session.h"

#define TURN_US 10000000	/* how long we wait for our turn */
#define POLL_NS 20000000
#define ANSWER_MS 60000

struct owner {
	struct qspace *qs;	/* NULL: ask at endpoint */
	char endpoint[256];
	char space[QSPACE_NAME_MAX + 1];
	long pid;
};

static void
wait_a_little(void)
{
	struct timespec t = { 0, POLL_NS };

	nanosleep(&t, NULL);
}

/* The lock is held; what is written beside it may still be its former holder's. */
static bool
has_endpoint(struct session *s, struct owner *o)
{
	return qspace_owner(s->device, o->space, o->endpoint, sizeof o->endpoint, &o->pid) == 0 &&
	    o->endpoint[0] != '\0' &&
	    (kill((pid_t)o->pid, 0) == 0 || errno != ESRCH);
}

/* Find the process that serves the space, or open it.  -1: said why. */
static int
find_owner(struct session *s, struct owner *o, const char *what)
{
	int64_t give_up = clock_mono_us() + TURN_US;
	char *why = NULL;
	int rc;

	while (!has_endpoint(s, o)) {
		free(why);
		why = NULL;
		if ((rc = qspace_open(s->device, o->space, NULL, &o->qs, &why)) == 0)
			break;
		if (rc != QSPACE_OWNED || interrupt_came() || clock_mono_us() > give_up) {
			say_error(s, 1350, "%s: queue space %s: %s", what, o->space,
			    why != NULL ? why : "cannot be opened");
			free(why);
			return -1;
		}
		wait_a_little();
	}
	free(why);
	return 0;
}

int
owner_begin(struct session *s, const char *space, const char *what, struct owner **out)
{
	struct owner *o = calloc(1, sizeof *o);

	*out = NULL;
	if (o == NULL) {
		say_error(s, 0, "%s: out of memory", what);
		return -1;
	}
	snprintf(o->space, sizeof o->space, "%s", space);
	if (find_owner(s, o, what) != 0) {
		free(o);
		return -1;
	}
	*out = o;
	return 0;
}

void
owner_end(struct owner *o)
{
	if (o == NULL)
		return;
	qspace_close(o->qs);
	free(o);
}

static int
run_here(struct session *s, struct owner *o, const char *op, const struct record *args, struct document *out)
{
	char *text = NULL;
	int rc = qadmin_run(o->qs, op, args, out, &text);

	if (rc != 0)
		say_error(s, rc, "%s", text != NULL ? text : op);
	free(text);
	return rc == 0 ? 0 : -1;
}

/* What only looks may be asked again, of whoever owns the space next. */
static bool
only_looks(const char *op)
{
	static const char *const ops[] = { "qinfo", "qlist", "qopen", "qprinttrans", "qset", "qspacelist" };

	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (strcmp(op, ops[i]) == 0)
			return true;
	return false;
}

enum { AGAIN = 1 };

static int
run_there(struct session *s, struct owner *o, const char *op, const struct record *args, struct document *out)
{
	struct wire_adminreply reply = { 0 };
	int rc = bb_request(o->endpoint, op, args, ANSWER_MS, &reply);

	if (rc == LINK_INTR)
		return -1;
	if (rc == LINK_GONE && only_looks(op))
		return AGAIN;
	if (rc != LINK_OK) {
		say_error(s, 1350, "%s: process %ld, which serves queue space %s, %s; whether the command was carried out is not known",
		    op, o->pid, o->space, rc == LINK_TIMEOUT ? "does not answer" : rc == LINK_GONE ? "ended" :
		    "cannot be asked");
		return -1;
	}
	if (reply.status != 0)
		say_error(s, (int)reply.status, "%s", reply.text != NULL && *reply.text != '\0' ? reply.text : op);
	else {
		*out = reply.doc;
		reply.doc = (struct document){ 0 };
	}
	rc = reply.status == 0 ? 0 : -1;
	bb_reply_free(&reply);
	return rc;
}

int
owner_run(struct session *s, struct owner *o, const char *op, const struct record *args, struct document *out)
{
	static const struct record nothing;
	struct document answer = { 0 };
	int rc, tries = 0;

	if (args == NULL)
		args = &nothing;
	do
		rc = o->qs != NULL ? run_here(s, o, op, args, &answer) : run_there(s, o, op, args, &answer);
	while (rc == AGAIN && ++tries < 5 && find_owner(s, o, op) == 0);
	if (rc == AGAIN && tries == 5)
		say_error(s, 1350, "%s: process %ld, which serves queue space %s, cannot be reached", op, o->pid,
		    o->space);
	if (rc != 0 || out == NULL)
		document_free(&answer);
	if (out != NULL)
		*out = rc == 0 ? answer : (struct document){ 0 };
	return rc == 0 ? 0 : -1;
}

int
run_on_space(struct session *s, const char *space, const char *what, const char *op, const struct record *args,
    struct document *out)
{
	struct owner *o;
	int rc;

	if (out != NULL)
		*out = (struct document){ 0 };
	if (owner_begin(s, space, what, &o) != 0)
		return -1;
	rc = owner_run(s, o, op, args, out);
	owner_end(o);
	return rc;
}

int
run_on_open_space(struct session *s, const char *what, const char *op, const struct record *args, struct document *out)
{
	return run_on_space(s, s->space, what, op, args, out);
}

int
owner_run_pages(struct session *s, const char *what, const char *op, struct record *r,
    void (*each)(struct session *, const struct document *, void *), void *arg)
{
	struct document page;
	struct owner *o;
	bool more = true;
	int rc = 0;

	if (owner_begin(s, s->space, what, &o) != 0)
		return -1;
	while (more && !interrupt_came() && (rc = owner_run(s, o, op, r, &page)) == 0) {
		each(s, &page, arg);
		more = page.n > 0 && record_get(&page.rec[0], "cursor") != NULL &&
		    record_set(r, "cursor", record_get(&page.rec[0], "cursor")) == 0;
		document_free(&page);
	}
	owner_end(o);
	return rc;
}
