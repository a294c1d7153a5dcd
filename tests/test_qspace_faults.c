/*
 * Faults of the disk, one at each place there is: the k-th write, flush, making or renaming of a file fails, once or from
 * then on, or is written short.  Whatever was refused has not happened, whatever was acknowledged is there, in process,
 * after a close and after a kill.
 *
 * The story is the same each time; a model knows what was acknowledged.
 */
#include <errno.h>
#include <glob.h>
#include <stdatomic.h>
#include <time.h>

#include "given_space.h"
#include "qspace_impl.h"

enum { MODEL_MAX = 64, BIG = 300000 };

/* --- the model: numbers, in the order in which they must come --- */

enum { Q_ORDERS, Q_PRIO, Q_LATE, Q_NP, N_QUEUES };
static const char *const queue_names[N_QUEUES] = { "orders", "prio", "late", "np" };
struct model {
	struct { int n, num[MODEL_MAX]; } q[N_QUEUES];
	int next;			/* number to give */
	int held, pending;		/* of the branch: what it took off "orders", put into "prio"; 0: none */
	bool prepared, open;
	uint8_t first_id[TMMSGIDLEN];	/* of the message with the number below */
	int first;
};

static void
model_put(struct model *m, int q, int at, int num)
{
	memmove(&m->q[q].num[at + 1], &m->q[q].num[at], sizeof(int) * (size_t)(m->q[q].n - at));
	m->q[q].num[at] = num;
	m->q[q].n++;
}

static int
model_take(struct model *m, int q, int at)
{
	int num = m->q[q].num[at];

	m->q[q].n--;
	memmove(&m->q[q].num[at], &m->q[q].num[at + 1], sizeof(int) * (size_t)(m->q[q].n - at));
	return num;
}

static int	/* the first one that the branch does not hold */
model_free_one(const struct model *m)
{
	return m->q[Q_ORDERS].n > 0 && m->held == m->q[Q_ORDERS].num[0] ? 1 : 0;
}

/* --- faults --- */

static struct { atomic_int count; int at, error; bool on; } fault;

static int
fail_at(int fd, size_t n)
{
	int i = fault.count++;

	(void)fd;
	if (i != fault.at && (!fault.on || i < fault.at))
		return 0;
	return fault.error == FAULT_SHORT && n < 2 ? EIO : fault.error;
}

static void
break_at(int at, int error, bool on)
{
	fault.count = 0;
	fault.at = at;
	fault.error = error;
	fault.on = on;
	env_fault = fail_at;
}

static bool
is_honest(int rc)	/* what a broken disk may answer */
{
	return rc == QMESYSTEM || rc == QMEOS || rc == QMENOSPACE || rc == QSPACE_UNKNOWN;
}

/* --- the steps: each is a batch --- */

static int
put_number(struct given_space *g, struct branch *b, const char *queue, int num, size_t size, struct qmsg_in in,
    uint8_t *id)
{
	static char body[BIG + 16];
	uint8_t any[TMMSGIDLEN];

	snprintf(body, sizeof body, "%-*d", (int)size, num);
	in.type = "STRING";
	in.subtype = "";
	in.has_body = true;
	in.body = body;
	in.body_len = strlen(body) + 1;
	return qspace_enqueue(g->qs, b, queue, &in, id != NULL ? id : any);
}

static int
take_number(struct given_space *g, struct branch *b, const char *queue, const struct qselect *sel, int want)
{
	struct qmsg *m;
	int rc = qspace_dequeue(g->qs, b, queue, sel, &m);

	if (rc == 0) {
		CU_ASSERT_EQUAL(atoi((const char *)m->body), want);
		qmsg_free(m);
	}
	return rc;
}

static int
step_enqueue(struct given_space *g, struct model *m)
{
	size_t sizes[] = { 10, 6000, BIG };
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = put_number(g, NULL, "orders", m->next, sizes[i], (struct qmsg_in){ 0 }, i == 0 ? m->first_id : NULL);
		if (i == 0)
			m->first = m->next;
		model_put(m, Q_ORDERS, m->q[Q_ORDERS].n, m->next++);
	}
	return rc;
}

static int
step_before(struct given_space *g, struct model *m)
{
	struct qmsg_in in = { .flags = TPQBEFOREMSGID };
	int at = 0;

	while (at < m->q[Q_ORDERS].n && m->q[Q_ORDERS].num[at] != m->first)
		at++;
	if (at == m->q[Q_ORDERS].n)
		return 0;
	memcpy(in.msgid, m->first_id, TMMSGIDLEN);
	model_put(m, Q_ORDERS, at, m->next);
	return put_number(g, NULL, "orders", m->next++, 50, in, NULL);
}

static int	/* corrid, priority, expiry */
step_attributes(struct given_space *g, struct model *m)
{
	struct qmsg_in in = { .flags = TPQCORRID | TPQPRIORITY | TPQEXPTIME_REL, .priority = 90, .exp_time = 86400 };

	snprintf((char *)in.corrid, sizeof in.corrid, "corr");
	model_put(m, Q_PRIO, 0, m->next);
	return put_number(g, NULL, "prio", m->next++, 300, in, NULL);
}

static int
step_by_corrid(struct given_space *g, struct model *m)
{
	struct qselect sel = { .flags = TPQGETBYCORRID };

	snprintf((char *)sel.corrid, sizeof sel.corrid, "corr");
	if (m->q[Q_PRIO].n == 0 || m->q[Q_PRIO].num[0] < 0)
		return 0;
	return take_number(g, NULL, "prio", &sel, model_take(m, Q_PRIO, 0));
}

static int
step_delayed(struct given_space *g, struct model *m)
{
	struct qmsg_in in = { .flags = TPQTIME_REL, .deq_time = 600 };

	model_put(m, Q_LATE, m->q[Q_LATE].n, m->next);
	return put_number(g, NULL, "late", m->next++, 100, in, NULL);
}

static int
step_np(struct given_space *g, struct model *m)
{
	struct qmsg_in in = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT };
	int rc = put_number(g, NULL, "np", m->next, 100, in, NULL);

	model_put(m, Q_NP, m->q[Q_NP].n, m->next++);
	return rc != 0 ? rc : step_delayed(g, m);	/* memory and disk in one batch */
}

static int
step_np_out(struct given_space *g, struct model *m)
{
	return m->q[Q_NP].n == 0 ? 0 : take_number(g, NULL, "np", NULL, model_take(m, Q_NP, 0));
}

static int
step_dequeue(struct given_space *g, struct model *m)
{
	int at = model_free_one(m), n = m->q[Q_ORDERS].n;

	return n <= at ? 0 : take_number(g, NULL, "orders", NULL, model_take(m, Q_ORDERS, at));
}

static struct branch *
the_branch(struct given_space *g)
{
	return find_tx(g, "tx");
}

static int	/* takes one and puts one; stays open */
step_branch(struct given_space *g, struct model *m)
{
	struct branch_id id = { 2, "tx" };
	struct branch *b;
	int rc;

	if (m->open || m->q[Q_ORDERS].n == 0)
		return 0;
	m->open = true;
	m->held = m->q[Q_ORDERS].num[0];
	m->pending = m->next++;
	if ((rc = qspace_branch_begin(g->qs, &id, 0, &b)) != 0 || (rc = take_number(g, b, "orders", NULL, m->held)) != 0)
		return rc;
	return put_number(g, b, "prio", m->pending, 100, (struct qmsg_in){ 0 }, NULL);
}

static void
model_end(struct model *m)
{
	m->open = m->prepared = false;
	m->held = m->pending = 0;
}

static int
step_commit(struct given_space *g, struct model *m)
{
	int at = 0;

	if (!m->open)
		return 0;
	while (m->q[Q_ORDERS].num[at] != m->held)
		at++;
	model_take(m, Q_ORDERS, at);
	model_put(m, Q_PRIO, m->q[Q_PRIO].n, m->pending);
	model_end(m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(the_branch(g));
	return qspace_branch_commit(g->qs, the_branch(g));
}

static int
step_rollback(struct given_space *g, struct model *m)
{
	if (!m->open)
		return 0;
	model_end(m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(the_branch(g));
	return qspace_branch_rollback(g->qs, the_branch(g));
}

static int
step_prepare(struct given_space *g, struct model *m)
{
	if (!m->open || m->prepared)
		return 0;
	m->prepared = true;
	CU_ASSERT_PTR_NOT_NULL_FATAL(the_branch(g));
	return qspace_branch_prepare(g->qs, the_branch(g), "G");
}

static int
step_due(struct given_space *g, struct model *m)
{
	(void)m;
	qspace_tick(g->qs, clock_now_us());
	return g->qs->batch.rc;
}

static int
step_checkpoint(struct given_space *g, struct model *m)
{
	(void)m;
	(void)g->qs->env.e->txn_checkpoint(g->qs->env.e, 0, 0, DB_FORCE);
	return 0;
}

static int (*const story[])(struct given_space *, struct model *) = {
	step_enqueue, step_attributes, step_before, step_delayed, step_branch, step_dequeue, step_commit, step_np,
	step_checkpoint, step_branch, step_rollback, step_enqueue, step_dequeue, step_branch, step_prepare, step_np_out,
	step_dequeue, step_due, step_by_corrid, step_np, step_checkpoint, step_commit, step_enqueue, step_branch,
	step_prepare, step_due, step_rollback, step_before, step_dequeue, step_enqueue, step_branch, step_checkpoint,
	step_dequeue };

static bool	/* false: nobody knows what is there now; *next may be */
step_run(struct given_space *g, struct model *m, struct model *next, int (*step)(struct given_space *, struct model *))
{
	int rc = qspace_batch_begin(g->qs);

	*next = *m;
	if (rc != 0) {
		CU_ASSERT_TRUE(is_honest(rc));
		return true;
	}
	if ((rc = step(g, next)) == 0)
		rc = qspace_batch_commit(g->qs);
	if (rc == 0) {
		*m = *next;
		return true;
	}
	CU_ASSERT_TRUE(is_honest(rc));
	qspace_batch_abort(g->qs);
	return rc != QSPACE_UNKNOWN;
}

/* --- what is there --- */

static void	/* all that is there, in order; counters must agree at the end */
drain(struct given_space *g, struct model *found)
{
	struct qmsg *msg;
	int rc;

	memset(found, 0, sizeof *found);
	clock_shift_us(3600 * INT64_C(1000000));	/* what was delayed is due */
	if (the_branch(g) != NULL)
		CU_ASSERT_EQUAL(tx_roll_back(g, the_branch(g)), 0);
	for (int q = 0; q < N_QUEUES; q++) {
		int *n = &found->q[q].n;

		while (*n < MODEL_MAX && (rc = take(g, NULL, queue_names[q], NULL, &msg)) == 0) {
			found->q[q].num[(*n)++] = atoi((const char *)msg->body);
			qmsg_free(msg);
		}
		CU_ASSERT_EQUAL(rc, QMENOMSG);
		CU_ASSERT_EQUAL(stat_of(g, queue_names[q]).messages, 0);
		CU_ASSERT_EQUAL(stat_of(g, queue_names[q]).bytes, 0);
		CU_ASSERT_EQUAL(stat_of(g, queue_names[q]).np_bytes, 0);
	}
	CU_ASSERT_EQUAL(g->qs->used.messages, 0);
	CU_ASSERT_EQUAL(g->qs->used.pages, 0);
	CU_ASSERT_EQUAL(g->qs->used.np_bytes, 0);
}

static bool
same(const struct model *found, const struct model *m, bool crashed)
{
	for (int q = 0; q < N_QUEUES; q++) {
		if (q == Q_NP && crashed && found->q[q].n == 0)
			continue;
		if (found->q[q].n != m->q[q].n ||
		    memcmp(found->q[q].num, m->q[q].num, sizeof(int) * (size_t)m->q[q].n) != 0)
			return false;
	}
	return true;
}

static void
sh(const char *fmt, ...)
{
	char cmd[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
}

static void
go_to(struct given_space *g, const char *copy)	/* opens that copy of the space */
{
	g->qs = NULL;
	sh("rm -rf %s/QUE.d/QS && cp -r %s/%s %s/QUE.d/QS", g->dir, g->dir, copy, g->dir);
	given_open(g);
}

/* A space with log files of 1 MB, so that the story goes through some; DIR.base has it, closed. */
static struct given_space *
given_base(void)
{
	struct given_space *g = given_space(NULL);
	static char mb[(1 << 20) - 64];
	DBT rec = { .data = mb, .size = sizeof mb };
	DB_LSN at;

	for (int q = 0; q < N_QUEUES; q++) {
		struct queue_params p = q == Q_PRIO ? queue_of(queue_names[q], QC_PRIORITY, QC_FIFO, 0, 0) :
		    queue_of(queue_names[q], QC_FIFO, 0, 0, 0);
		p.retries = 1000;
		create(g, &p);
	}
	qspace_close(g->qs);
	sh("sed -i 's/^log_bytes .*/log_bytes 1048576/; /^check/d' %s.d/QS/SPACE; rm -f %s.d/QS/spare.*", g->device, g->device);
	given_open(g);
	memcpy(mb, &(uint32_t){ 10000 }, 4);	/* as a mark begins: recovery passes it by */
	for (int i = 0; i < 16; i++)		/* to the end of the first log file, of 16 MB */
		CU_ASSERT_EQUAL_FATAL(g->qs->env.e->log_put(g->qs->env.e, &at, &rec, DB_FLUSH), 0);
	reopen(g);				/* the first log file goes */
	qspace_close(g->qs);
	g->qs = NULL;
	sh("rm -f %s.d/QS/spare.*; cp -r %s.d/QS %s/base", g->device, g->device, g->dir);
	if (getenv("FAULT_SHOW"))
		sh("ls -l %s/base >&2", g->dir);
	return g;
}

static void
mended(struct given_space *g)	/* the engine tries again by itself */
{
	env_fault = NULL;
	for (int i = 0; i < 5000 && qspace_batch_begin(g->qs) != 0; i++)
		usleep(2000);
	if (!g->qs->batch.open)
		CU_FAIL_FATAL("it does not come back");
	commit(g);
}

static void
tell(const char *where, const struct model *found, const struct model *m)
{
	fprintf(stderr, "%s: fault at %d (%d%s)\n", where, fault.at, fault.error, fault.on ? ", from then on" : "");
	for (int q = 0; q < N_QUEUES; q++) {
		fprintf(stderr, "  %s: found", queue_names[q]);
		for (int i = 0; i < found->q[q].n; i++)
			fprintf(stderr, " %d", found->q[q].num[i]);
		fprintf(stderr, "; acknowledged");
		for (int i = 0; i < m->q[q].n; i++)
			fprintf(stderr, " %d", m->q[q].num[i]);
		fprintf(stderr, "\n");
	}
}

static void
model_closed(struct model *m)	/* transactions that are not prepared are no more */
{
	if (m->open && !m->prepared)
		model_end(m);
}

static void
must_be(struct given_space *g, const char *where, const struct model *m, const struct model *or_m, bool crashed)
{
	struct model found;
	bool good;

	drain(g, &found);
	good = same(&found, m, crashed) || same(&found, or_m, crashed);
	CU_ASSERT_TRUE(good);
	if (!good)
		tell(where, &found, m);
}

static bool	/* the fault fell into it */
story_with_fault(struct given_space *g, int at, int error, bool on)
{
	enum { RESTART = 17 };
	struct model m = { .next = 1 }, next = m;
	bool known = true, crashed = false, fell;
	int n = (int)(sizeof story / sizeof story[0]);

	go_to(g, "base");
	break_at(at, error, on);
	for (int i = 0; i < n && known && !crashed; i++) {
		known = step_run(g, &m, &next, story[i]);
		if (i == RESTART && known) {
			qspace_close(g->qs);
			model_closed(&m);
			next = m;
			crashed = qspace_open(g->device, "QS", NULL, &g->qs, NULL) != 0;
		}
	}
	if (known)
		next = m;
	fell = fault.count > at;
	env_fault = NULL;
	if (!crashed)		/* a copy that takes time is not a kill: nothing may write meanwhile */
		keeper_checkpoints_end(g->qs->env.keeper);
	sh("rm -rf %s/crash; cp -r %s/QUE.d/QS %s/crash 2>/dev/null || true", g->dir, g->dir, g->dir);
	if (!crashed && g->qs->env.e != NULL)
		(void)keeper_checkpoints(g->qs->env.keeper, g->qs->env.e, "QS");
	if (!crashed && known) {
		mended(g);
		if (at % 2 == 0) {
			must_be(g, "in process", &m, &m, false);
		} else {
			reopen(g);
			must_be(g, "closed and opened", &m, &m, false);
		}
	}
	qspace_close(g->qs);
	go_to(g, "crash");
	must_be(g, "after a kill", &m, &next, true);
	qspace_close(g->qs);
	g->qs = NULL;
	return fell;
}

static struct given_space *base;

static unsigned	/* another one each run; FAULT_SEED gives it */
unit_seed(void)
{
	static unsigned seed;
	const char *given = getenv("FAULT_SEED");

	if (seed == 0) {
		seed = given != NULL ? (unsigned)atoi(given) : (unsigned)(time(NULL) ^ getpid()) % 99991 + 1;
		printf("(FAULT_SEED=%u) ", seed);
	}
	return seed;
}

static void	/* All places, or with short tests some of them. */
each_place(int error, bool on)
{
	const char *one = getenv("FAULT_AT");		/* to look at one */
	int step = getenv("TEST_LONG") != NULL ? 1 : 131, at = (int)(unit_seed() % (unsigned)step);

	if (base == NULL)
		base = given_base();
	if (one != NULL) {
		(void)story_with_fault(base, atoi(one), error, on);
		return;
	}
	while (story_with_fault(base, at, error, on))
		at += step;
	CU_ASSERT_TRUE(at > 60);
	printf("(%d of %d places) ", at / step, at);
}

/* --- damage of the log, and writes that were torn --- */

static void
log_bytes(struct given_space *g, uint32_t no, size_t at, const uint8_t *p, uint8_t *was, size_t n)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/QUE.d/QS/log.%010u", g->dir, no);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f = fopen(path, p == NULL ? "r" : "r+"));
	fseek(f, (long)at, SEEK_SET);
	CU_ASSERT_EQUAL((p == NULL ? fread(was, 1, n, f) : fwrite(p, 1, n, f)), n);
	fclose(f);
}

static void
log_place(struct given_space *g, uint32_t *file, uint32_t *offset)
{
	DB_LOG_STAT *st;

	CU_ASSERT_EQUAL_FATAL(g->qs->env.e->log_stat(g->qs->env.e, &st, 0), 0);
	*file = st->st_cur_file;
	*offset = st->st_cur_offset;
	free(st);
}

enum { LOGGED = 12 };
struct logged { uint32_t file, start, last, end; };	/* the first batch, the last one, the end */

static struct logged
given_log(struct given_space *g)	/* killed after LOGGED batches of a message each: DIR/crash */
{
	struct logged l = { 0 };
	uint32_t file;

	go_to(g, "base");
	log_place(g, &l.file, &l.start);
	for (int i = 0; i < LOGGED; i++) {
		log_place(g, &file, &l.last);
		begin(g);
		CU_ASSERT_EQUAL(put_number(g, NULL, "orders", i, 1500, (struct qmsg_in){ 0 }, NULL), 0);
		commit(g);
	}
	log_place(g, &file, &l.end);
	CU_ASSERT_EQUAL_FATAL(file, l.file);
	sh("rm -rf %s/crash; cp -r %s/QUE.d/QS %s/crash 2>/dev/null || true; rm -f %s/crash/spare.*", g->dir, g->dir, g->dir, g->dir);
	qspace_close(g->qs);
	g->qs = NULL;
	return l;
}

static int	/* how many messages are there; -1: refused, and *why names file and byte */
opened_with(struct given_space *g)
{
	char *why = NULL;
	int n = -1;

	if (qspace_open(g->device, "QS", NULL, &g->qs, &why) == 0) {
		n = (int)stat_of(g, "orders").messages;
		for (int i = 0; i < n; i++)
			CU_ASSERT_EQUAL(atoi(next(g, "orders")), i);
	} else {
		CU_ASSERT_TRUE(why != NULL && strstr(why, "/log.") != NULL && strstr(why, " byte ") != NULL);
	}
	qspace_close(g->qs);
	g->qs = NULL;
	free(why);
	return n;
}

static void
back_to_crash(struct given_space *g)
{
	sh("rm -rf %s/QUE.d/QS && cp -r %s/crash %s/QUE.d/QS", g->dir, g->dir, g->dir);
}

static void	/* The last batch, behind which nothing stands, included. */
a_flipped_byte_of_the_log_is_told_by_place(void)
{
	size_t step = getenv("TEST_LONG") != NULL ? 1 : 397;
	struct logged l;
	uint8_t byte;

	if (base == NULL)
		base = given_base();
	l = given_log(base);
	for (size_t at = l.start; at < l.end; at += step) {
		int n;

		back_to_crash(base);
		log_bytes(base, l.file, at, NULL, &byte, 1);
		byte ^= 0x10;
		log_bytes(base, l.file, at, &byte, NULL, 1);
		n = opened_with(base);
		CU_ASSERT_EQUAL(n, -1);
		if (n != -1)
			fprintf(stderr, "byte %zu of %u to %u, %u: %d messages\n", at, l.start, l.last, l.end, n);
	}
	for (size_t at = l.last; at < l.last + 40; at += step > 1 ? 3 : 1) {	/* headers of the last batch's first records */
		back_to_crash(base);
		log_bytes(base, l.file, at, NULL, &byte, 1);
		byte ^= 0x01;
		log_bytes(base, l.file, at, &byte, NULL, 1);
		CU_ASSERT_EQUAL(opened_with(base), -1);
	}
	back_to_crash(base);
	CU_ASSERT_EQUAL(opened_with(base), LOGGED);
}

static void	/* Any sectors of the last flush may be missing: it was never acknowledged. */
a_torn_write_is_no_damage(void)
{
	static const uint8_t zeroes[64 << 10];
	struct logged l;

	if (base == NULL)
		base = given_base();
	l = given_log(base);
	for (size_t at = l.last; at < l.end; at = (at / 512 + 1) * 512) {
		size_t next = (at / 512 + 1) * 512;

		for (int rest = 0; rest < 2; rest++) {	/* this one, or it and all behind it */
			int n;

			back_to_crash(base);
			log_bytes(base, l.file, at, zeroes, NULL, (rest || next > l.end ? l.end : next) - at);
			n = opened_with(base);
			CU_ASSERT_EQUAL(n, LOGGED - 1);
			if (n != LOGGED - 1)
				fprintf(stderr, "sector at %zu of %u to %u, %u (rest %d): %d messages\n", at, l.start, l.last, l.end, rest, n);
		}
	}
}

/* --- damage of the tables --- */

enum { STORED = 30, PAGE = 4096, N_DAMAGES = 3 };

static bool	/* false: there is no such page */
page_damage(const char *path, long page, int how)
{
	uint8_t p[2 * PAGE] = { 0 }, q[2 * PAGE];
	FILE *f = fopen(path, "r+");
	size_t n;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fseek(f, page * PAGE, SEEK_SET);
	n = fread(p, 1, sizeof p, f);
	if (n >= PAGE) {
		memcpy(q, p, sizeof q);
		if (how == 0)
			q[(page * 577 + 30) % PAGE] ^= 0x40;
		else if (how == 1)
			memset(q, 0, PAGE);
		else {
			memcpy(q, p + PAGE, PAGE);
			memcpy(q + PAGE, p, PAGE);
		}
		fseek(f, page * PAGE, SEEK_SET);
		fwrite(q, 1, how == 2 ? n : PAGE, f);
	}
	fclose(f);
	return n >= (how == 2 ? 2 * PAGE : PAGE);
}

static const char *	/* what became of it; NULL: what must not be */
used_after(struct given_space *g, const char *file)
{
	char *why = NULL;
	int taken = 0, failed = 0, rc;
	struct qmsg *m;

	if (qspace_open(g->device, "QS", NULL, &g->qs, &why) != 0) {
		bool named = why != NULL && strstr(why, file) != NULL;
		if (!named)
			fprintf(stderr, "%s: %s\n", file, why);
		free(why);
		return named ? "refused" : NULL;
	}
	for (int i = 0; i < 2 * STORED && failed < 3; i++) {
		if (qspace_batch_begin(g->qs) != 0) {
			failed++;
			continue;
		}
		if ((rc = qspace_dequeue(g->qs, NULL, "orders", NULL, &m)) == 0) {
			bool right = atoi((const char *)m->body) == taken && m->body_len == 901;
			qmsg_free(m);
			if (!right || (rc = qspace_batch_commit(g->qs)) != 0)
				qspace_batch_abort(g->qs);
			if (!right)
				return NULL;
			taken += rc == 0;
			failed += rc != 0;
		} else {
			qspace_batch_abort(g->qs);
			if (rc == QMENOMSG)
				return taken == STORED ? "unharmed" : NULL;
			failed++;
		}
	}
	return failed >= 3 ? "told" : NULL;
}

static void	/* Whatever page it is: refused by name, or an error each time; never a wrong message, never one less in silence. */
a_damaged_page_is_never_served(void)
{
	static const char *const files[] = { "order.db", "messages.1.db", "queues.db", "space.db", "delayed.db", "expiry.db",
		"corrid.db", "alias.db", "branches.db", "decisions.db" };
	char path[160];

	if (base == NULL)
		base = given_base();
	go_to(base, "base");
	for (int i = 0; i < STORED; i++) {
		begin(base);
		CU_ASSERT_EQUAL(put_number(base, NULL, "orders", i, 900, (struct qmsg_in){ 0 }, NULL), 0);
		commit(base);
	}
	qspace_close(base->qs);
	base->qs = NULL;
	sh("rm -rf %s/crash; cp -r %s/QUE.d/QS %s/crash; rm -f %s/crash/spare.*", base->dir, base->dir, base->dir, base->dir);
	for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
		for (int how = 0; how < N_DAMAGES; how++)
			for (long page = 0; page < 12; page++) {
				const char *what;

				back_to_crash(base);
				snprintf(path, sizeof path, "%s/QUE.d/QS/%s", base->dir, files[f]);
				if (!page_damage(path, page, how))
					break;
				what = used_after(base, files[f]);
				qspace_close(base->qs);
				base->qs = NULL;
				CU_ASSERT_PTR_NOT_NULL(what);
				if (getenv("FAULT_SHOW") || what == NULL)
					fprintf(stderr, "%s, page %ld, damage %d: %s\n", files[f], page, how, what == NULL ? "WRONG" : what);
			}
}

/* --- larger damage: many pages, whole files --- */

enum { MANY = 3000, BATCH = 50 };

static void	/* MANY messages over a tree of several levels and some log files: DIR/many, killed; DIR/many_closed, closed */
given_many(struct given_space *g)
{
	char body[1000];
	struct qmsg_in in = { 0 };
	uint8_t id[TMMSGIDLEN];

	go_to(g, "base");
	in.type = "STRING";
	in.subtype = "";
	in.has_body = true;
	in.body = body;
	for (int i = 0; i < MANY;) {
		begin(g);
		for (int k = 0; k < BATCH; k++, i++) {
			in.body_len = (size_t)snprintf(body, sizeof body, "%-900d", i) + 1;
			CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
		}
		commit(g);
	}
	keeper_checkpoints_end(g->qs->env.keeper);
	sh("rm -rf %s/many; cp -r %s/QUE.d/QS %s/many; rm -f %s/many/spare.*", g->dir, g->dir, g->dir, g->dir);
	CU_ASSERT_EQUAL(keeper_checkpoints(g->qs->env.keeper, g->qs->env.e, "QS"), 0);
	qspace_close(g->qs);
	g->qs = NULL;
	sh("rm -rf %s/many_closed; cp -r %s/QUE.d/QS %s/many_closed; rm -f %s/many_closed/spare.*", g->dir, g->dir, g->dir, g->dir);
}

static const char *	/* as used_after(), in batches; a message less is told at the latest when the others are gone */
many_after(struct given_space *g, const char *file, int *taken)
{
	char *why = NULL;
	int failed = 0, rc = 0;
	bool skipped = false;

	*taken = 0;
	if (qspace_open(g->device, "QS", NULL, &g->qs, &why) != 0) {
		bool named = why != NULL && strstr(why, file) != NULL;
		if (!named)
			fprintf(stderr, "%s: %s\n", file, why);
		free(why);
		return named ? "refused" : NULL;
	}
	for (int i = 0, next = 0; i < 2 * MANY / BATCH && failed < 3; i++) {
		int got = 0;

		if (qspace_batch_begin(g->qs) != 0) {
			failed++;
			continue;
		}
		for (rc = 0; got < BATCH && rc == 0; got += rc == 0) {
			struct qmsg *m;
			int n;

			if ((rc = qspace_dequeue(g->qs, NULL, "orders", NULL, &m)) != 0)
				break;
			n = atoi((const char *)m->body);
			skipped |= n != next;
			if (n < next || m->body_len != 901)
				return NULL;
			next = n + 1;
			qmsg_free(m);
		}
		if ((rc == 0 || rc == QMENOMSG) && qspace_batch_commit(g->qs) == 0) {
			*taken += got;
			if (rc == QMENOMSG)
				return *taken == MANY && !skipped ? "unharmed" : NULL;
			continue;
		}
		next -= got;
		qspace_batch_abort(g->qs);
		failed++;
	}
	return failed >= 3 ? "told" : NULL;
}

static void
many_from(struct given_space *g, const char *copy)
{
	sh("rm -rf %s/QUE.d/QS && cp -r %s/%s %s/QUE.d/QS", g->dir, g->dir, copy, g->dir);
}

static void
many_verdict(struct given_space *g, const char *file, const char *how, const char *must)
{
	int taken;
	const char *what = many_after(g, file, &taken);

	qspace_close(g->qs);
	g->qs = NULL;
	CU_ASSERT_PTR_NOT_NULL(what);
	if (must != NULL && what != NULL)
		CU_ASSERT_STRING_EQUAL(what, must);
	if (getenv("FAULT_SHOW") || what == NULL || (must != NULL && strcmp(must, what) != 0))
		fprintf(stderr, "%s, %s: %s (%d taken)\n", file, how, what == NULL ? "WRONG" : what, taken);
}

static void	/* Pages of a tree of levels, and of a long heap. */
any_page_of_many(void)
{
	static const char *const files[] = { "order.db", "messages.1.db" };
	long step = getenv("TEST_LONG") != NULL ? 1 : getenv("FAULT_STEP") ? atol(getenv("FAULT_STEP")) : 97;
	char path[160], how[60];

	if (base == NULL)
		base = given_base();
	given_many(base);
	for (size_t f = 0; f < 2; f++)
		for (long at = (long)(unit_seed() % (unsigned)step); ; at += f == 0 ? step / 4 + 1 : 2 * step) {
			many_from(base, "many_closed");
			snprintf(path, sizeof path, "%s/QUE.d/QS/%s", base->dir, files[f]);
			if (!page_damage(path, at / N_DAMAGES, (int)(at % N_DAMAGES)))
				break;
			snprintf(how, sizeof how, "page %ld, damage %ld", at / N_DAMAGES, at % N_DAMAGES);
			many_verdict(base, files[f], how, NULL);
		}
}

static void	/* A table that is not there, or is cut off: no message less in silence. */
a_table_is_removed_or_cut_off(void)
{
	static const char *const files[] = { "order.db", "messages.1.db", "queues.db", "space.db", "delayed.db", "expiry.db",
		"corrid.db", "alias.db", "parts.db", "branches.db", "decisions.db" };

	if (base == NULL)
		base = given_base();
	given_many(base);
	for (int killed = 0; killed < 2; killed++)
		for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
			many_from(base, killed ? "many" : "many_closed");
			sh("rm %s/QUE.d/QS/%s", base->dir, files[f]);
			many_verdict(base, files[f], killed ? "removed after a kill" : "removed", "refused");
			many_from(base, killed ? "many" : "many_closed");
			sh(": > %s/QUE.d/QS/%s", base->dir, files[f]);
			many_verdict(base, files[f], killed ? "emptied after a kill" : "emptied", "refused");
			many_from(base, killed ? "many" : "many_closed");
			sh("truncate -s 4096 %s/QUE.d/QS/%s", base->dir, files[f]);
			many_verdict(base, files[f], killed ? "cut off after a kill" : "cut off", NULL);
		}
}

/* --- log files that are gone, or cut off between two records --- */

enum { FIRST, MIDDLE, LAST };

static char *	/* that log file of the space, without the directory */
log_name(struct given_space *g, int which)
{
	static char name[20];
	char pattern[160];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/QUE.d/QS/log.*", g->dir);
	CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &found), 0);
	CU_ASSERT_TRUE_FATAL(found.gl_pathc >= 3);
	snprintf(name, sizeof name, "%s", strrchr(found.gl_pathv[which == FIRST ? 0 : which == LAST ? found.gl_pathc - 1 : 1], '/') + 1);
	globfree(&found);
	return name;
}

static void	/* What recovery finds looks whole each time. */
a_log_file_is_removed(void)
{
	static const char *const what[] = { "first removed", "one removed", "last removed" };
	char name[20];

	if (base == NULL)
		base = given_base();
	given_many(base);
	for (int which = FIRST; which <= LAST; which++) {
		many_from(base, "many");
		memcpy(name, log_name(base, which), sizeof name);
		sh("rm %s/QUE.d/QS/%s", base->dir, name);
		many_verdict(base, name, what[which], "refused");
	}
	many_from(base, "many");
	memcpy(name, log_name(base, LAST), sizeof name);
	sh(": >%s/QUE.d/QS/%s", base->dir, name);
	many_verdict(base, name, "last emptied", "refused");
}

static void	/* Killed while the next log file is made, of an earlier release, damaged: nothing is missing. */
what_is_known_of_the_last_log_file_may_be_old(void)
{
	static const char *const how[] = {
		"n=$(ls log.* | tail -1); n=$(printf log.%010d $((${n##*[.0]} + 1))); : >$n",
		"n=$(ls log.* | tail -1); n=$(printf log.%010d $((${n##*[.0]} + 1))); truncate -s 1048576 $n",
		"rm LAST_LOG", ": >LAST_LOG", "sed -i 's/0 bytes/9 bytes/; s/[1-9] bytes/8 bytes/' LAST_LOG",
	};

	if (base == NULL)
		base = given_base();
	given_many(base);
	many_from(base, "many");
	/* made with a spare or without: all of it from the beginning, which is what LAST_LOG rests on */
	sh("cd %s/QUE.d/QS && for f in log.*; do [ $(stat -c %%s $f) -eq 1048576 ] || exit 1; done", base->dir);
	sh("cd %s/QUE.d/QS && grep -q \"^log $(ls log.* | tail -1 | cut -c 5-) bytes 0001048576 \" LAST_LOG", base->dir);
	for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
		many_from(base, "many");
		sh("cd %s/QUE.d/QS && { %s; }", base->dir, how[i]);
		many_verdict(base, "LAST_LOG", how[i], "unharmed");
		sh("cd %s/QUE.d/QS && grep -q \"^log $(ls log.* | tail -1 | cut -c 5-) bytes 0001048576 \" LAST_LOG", base->dir);
	}
}

static void	/* Also of the last file: after a batch, or only zeroes of it. */
a_log_that_is_cut_between_two_batches_is_told(void)
{
	struct logged l;

	if (base == NULL)
		base = given_base();
	l = given_log(base);
	for (int i = 0; i < 4; i++) {
		back_to_crash(base);
		sh("truncate -s %u %s/QUE.d/QS/log.%010u", i == 0 ? l.start : i == 1 ? l.last : i == 2 ? l.end : (1 << 20) - 1,
		    base->dir, l.file);
		CU_ASSERT_EQUAL(opened_with(base), -1);
	}
	back_to_crash(base);
	CU_ASSERT_EQUAL(opened_with(base), LOGGED);
}

static void once_eio(void) { each_place(EIO, false); }
static void eio_from_then_on(void) { each_place(EIO, true); }
static void once_enospc(void) { each_place(ENOSPC, false); }
static void enospc_from_then_on(void) { each_place(ENOSPC, true); }
static void a_short_write(void) { each_place(FAULT_SHORT, false); }

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(once_eio),
		UNIT(eio_from_then_on),
		UNIT(once_enospc),
		UNIT(enospc_from_then_on),
		UNIT(a_short_write),
		UNIT(a_flipped_byte_of_the_log_is_told_by_place),
		UNIT(a_torn_write_is_no_damage),
		UNIT(a_damaged_page_is_never_served),
		UNIT(any_page_of_many),
		UNIT(a_table_is_removed_or_cut_off),
		UNIT(a_log_file_is_removed),
		UNIT(what_is_known_of_the_last_log_file_may_be_old),
		UNIT(a_log_that_is_cut_between_two_batches_is_told),
	};
	int rc;

	if (access("/dev/shm", W_OK) == 0)	/* hundreds of spaces, and none is to outlive a power cut */
		given_root = "/dev/shm";
	rc = unit_run("qspace faults", tests, UNIT_COUNT(tests));

	if (base != NULL) {
		char cmd[128];

		snprintf(cmd, sizeof cmd, "rm -rf %s", base->dir);
		if (system(cmd) != 0)
			rc = 1;
		free(base);
	}
	return rc;
}
