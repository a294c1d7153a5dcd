/*
 * given_space - a device, a queue space and its queues in a directory of their own, for one test of qspace.
 */
#ifndef GIVEN_SPACE_H
#define GIVEN_SPACE_H

#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "qspace.h"
#include "unit.h"

struct given_space { char dir[64], device[96]; struct qspace_params params; struct qspace *qs; };

static const char *given_root = "/tmp";

static inline struct qspace_params
given_params(const char *name)
{
	struct qspace_params p = { .ipckey = 61000,
		.pages = 100000,
		.queues = 20,
		.trans = 20,
		.procs = 10,
		.messages = 50000,
		.errorq = "ERRQ",
		.blocking = 16,
		.nonpersistent_bytes = 1 << 20 };

	snprintf(p.name, sizeof p.name, "%s", name);
	return p;
}

static inline void
given_open(struct given_space *g)
{
	char *why = NULL;
	int rc = qspace_open(g->device, g->params.name, NULL, &g->qs, &why);

	if (rc != 0)
		fprintf(stderr, "qspace_open: %d: %s\n", rc, why == NULL ? "" : why);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	free(why);
}

static inline struct given_space *
given_space(const struct qspace_params *p)
{
	struct given_space *g = calloc(1, sizeof *g);
	char *why = NULL, *note = NULL;
	int rc;

	snprintf(g->dir, sizeof g->dir, "%s/qspace.XXXXXX", given_root);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(g->dir));
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);	/* what is provoked here is nobody's trouble */
	snprintf(g->device, sizeof g->device, "%s/QUE", g->dir);
	g->params = p != NULL ? *p : given_params("QS");
	rc = device_add(g->device, NULL, 0, g->params.pages + 1000, &why, &note);
	if (rc == 0)
		rc = qspace_create(g->device, &g->params, &why);
	if (rc != 0)
		fprintf(stderr, "%s: %d: %s\n", g->device, rc, why == NULL ? "" : why);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	free(why);
	free(note);
	given_open(g);
	return g;
}

static inline void
given_done(struct given_space *g)
{
	char cmd[256];

	qspace_close(g->qs);
	snprintf(cmd, sizeof cmd, "rm -rf %s", g->dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
	free(g);
}

static inline void
begin(struct given_space *g)
{
	CU_ASSERT_EQUAL_FATAL(qspace_batch_begin(g->qs), 0);
}

static inline void
commit(struct given_space *g)
{
	CU_ASSERT_EQUAL_FATAL(qspace_batch_commit(g->qs), 0);
}

static inline void
reopen(struct given_space *g)
{
	qspace_close(g->qs);
	g->qs = NULL;
	given_open(g);
}

/* The files as a kill -9 of the owner in this moment leaves them, opened again. */
static inline void
given_killed(struct given_space *g)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd,
	    "cp -a --sparse=always %s %s.killed 2>/dev/null; rm -f %s.killed/QUE.d/QS/spare.*", g->dir, g->dir, g->dir);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	qspace_close(g->qs);
	snprintf(cmd, sizeof cmd, "rm -rf %s && mv %s.killed %s", g->dir, g->dir, g->dir);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	given_open(g);
}

/* A queue; order is a list of criteria that ends in QC_FIFO or QC_LIFO. */
static inline struct queue_params
queue_of(const char *name, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	struct queue_params p = { .order = { a, b, c, d },
		.top = true,
		.msgid = true,
		.default_expiration = -1,
		.persistent = { .high = 100, .low = 0, .unit = '%' },
		.nonpersistent = { .high = 100, .low = 0, .unit = '%' } };

	snprintf(p.name, sizeof p.name, "%s", name);
	return p;
}

static inline void
create(struct given_space *g, const struct queue_params *p)
{
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_create(g->qs, p), 0);
	commit(g);
}

static inline void
create_fifo(struct given_space *g, const char *name, long retries, long delay)
{
	struct queue_params p = queue_of(name, QC_FIFO, 0, 0, 0);

	p.retries = retries;
	p.retry_delay = delay;
	create(g, &p);
}

static inline struct qmsg_in
text(const char *body)
{
	return (struct qmsg_in){
		.type = "STRING", .subtype = "", .has_body = true, .body = body, .body_len = strlen(body) + 1
	};
}

/* In a batch of its own, or in branch b of an open batch of its own.  The code. */
static inline int
put_in(struct given_space *g, struct branch *b, const char *queue, struct qmsg_in in, uint8_t *msgid)
{
	uint8_t id[TMMSGIDLEN];
	int rc;

	begin(g);
	rc = qspace_enqueue(g->qs, b, queue, &in, msgid != NULL ? msgid : id);
	commit(g);
	return rc;
}

static inline int
put(struct given_space *g, const char *queue, const char *body)
{
	return put_in(g, NULL, queue, text(body), NULL);
}

static inline int
take(struct given_space *g, struct branch *b, const char *queue, const struct qselect *sel, struct qmsg **m)
{
	int rc;

	begin(g);
	rc = qspace_dequeue(g->qs, b, queue, sel, m);
	commit(g);
	return rc;
}

/* The text of the next message, "" when there is none, "!" when the call failed.  Valid until the next call. */
static inline const char *
next_in(struct given_space *g, struct branch *b, const char *queue)
{
	static char body[256];
	struct qmsg *m;
	int rc = take(g, b, queue, NULL, &m);

	if (rc != 0)
		return rc == QMENOMSG ? "" : "!";
	snprintf(body, sizeof body, "%.*s", (int)m->body_len, (const char *)m->body);
	qmsg_free(m);
	return body;
}

static inline const char *
next(struct given_space *g, const char *queue)
{
	return next_in(g, NULL, queue);
}

static inline struct branch *
tx(struct given_space *g, const char *gtrid)
{
	struct branch_id id = { .len = (uint8_t)strlen(gtrid) };
	struct branch *b;

	memcpy(id.gtrid, gtrid, id.len);
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(g->qs, &id, 0, &b), 0);
	commit(g);
	return b;
}

static inline struct branch *
find_tx(struct given_space *g, const char *gtrid)
{
	struct branch_id id = { .len = (uint8_t)strlen(gtrid) };

	memcpy(id.gtrid, gtrid, id.len);
	return qspace_branch_find(g->qs, &id);
}

static inline void
tick(struct given_space *g)
{
	begin(g);
	qspace_tick(g->qs, clock_now_us());
	commit(g);
}

static inline bool	/* is a large branch on its way to its end? */
is_ending(struct given_space *g)
{
	struct branch_info *all = NULL;
	bool found = false;
	size_t n = 0;

	CU_ASSERT_EQUAL_FATAL(qspace_branch_list(g->qs, &all, &n), 0);
	for (size_t i = 0; i < n; i++)
		found |= all[i].state == BR_COMMITTING || all[i].state == BR_ROLLING_BACK;
	free(all);
	return found;
}

/* The code of what ended a branch; a large one is waited for. */
static inline int
tx_ended(struct given_space *g, int rc)
{
	while (rc == QSPACE_AGAIN && is_ending(g))
		tick(g);
	return rc == QSPACE_AGAIN ? 0 : rc;
}

static inline int
tx_commit(struct given_space *g, struct branch *b)
{
	int rc;

	begin(g);
	rc = qspace_branch_commit(g->qs, b);
	commit(g);
	return tx_ended(g, rc);
}

static inline int
tx_roll_back(struct given_space *g, struct branch *b)
{
	int rc;

	begin(g);
	rc = qspace_branch_rollback(g->qs, b);
	commit(g);
	return tx_ended(g, rc);
}

static inline int
tx_prepare(struct given_space *g, struct branch *b, const char *coordinator)
{
	int rc;

	begin(g);
	rc = qspace_branch_prepare(g->qs, b, coordinator);
	commit(g);
	return rc;
}

static inline int
by_hand(struct given_space *g, struct branch *b, bool commits)
{
	int rc;

	begin(g);
	rc = qspace_branch_by_hand(g->qs, b, commits);
	commit(g);
	return tx_ended(g, rc);
}

static inline struct queue_stat
stat_of(struct given_space *g, const char *queue)
{
	struct queue_stat st = { 0 };

	CU_ASSERT_EQUAL(qspace_queue_get(g->qs, queue, NULL, &st), 0);
	return st;
}

#endif
