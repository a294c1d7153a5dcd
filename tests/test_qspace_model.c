/*
 * Every order a queue can have, against a model that is too simple to be wrong: a list for each queue, in which each message
 * ever enqueued has its place.  Random messages of all kinds on all queues at once, in transactions and outside, with TPQTOP and
 * TPQBEFOREMSGID, delayed, expiring, non-persistent, rolled back; the space is closed and killed in the middle.  Whatever is dequeued
 * must be the first one of the list that can be had.
 */
#include "given_space.h"

#define SECOND INT64_C(1000000)
enum { QUEUES = 32, BRANCHES = 3, DEPTH = 5 };
enum state { PENDING, HERE, HELD, GONE };

struct mm {
	enum state state;
	int branch, number, prio, depth;
	bool top, before, np;
	int64_t time_ms, expires_us, due_us;
	uint8_t msgid[TMMSGIDLEN];
};
struct mq { char name[16]; uint8_t order[4]; bool lifo; long delay; struct mm **m; size_t n, cap; };
struct model {
	struct given_space *g;
	struct mq q[QUEUES];
	struct branch *branch[BRANCHES];
	char gtrid[BRANCHES][16];
	int number, transactions;
	unsigned long taken;
	unsigned seed;
};

static unsigned
dice(struct model *o, unsigned n)
{
	o->seed = o->seed * 1103515245 + 12345;
	return (o->seed >> 8) % n;
}

static int	/* as the administrator asked for it; who came first is what is left */
compare(const struct mq *q, const struct mm *a, const struct mm *b)
{
	if (a->top != b->top)
		return a->top ? -1 : 1;
	if (a->top)
		return a->number > b->number ? -1 : 1;
	for (int i = 0; i < 4; i++) {
		int64_t x = 0, y = 0;
		switch (q->order[i]) {
		case QC_PRIORITY: x = b->prio, y = a->prio; break;
		case QC_TIME: x = a->time_ms, y = b->time_ms; break;
		case QC_EXPIRATION:
			x = a->expires_us == 0 ? INT64_MAX : a->expires_us / 1000;
			y = b->expires_us == 0 ? INT64_MAX : b->expires_us / 1000;
			break;
		case QC_FIFO: x = a->number, y = b->number; break;
		case QC_LIFO: x = b->number, y = a->number; break;
		}
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static void
insert(struct mq *q, struct mm *m, const struct mm *before)
{
	size_t at = 0;

	if (before != NULL)
		while (q->m[at] != before)
			at++;
	else
		for (size_t i = 0; i < q->n; i++)	/* behind the last one that goes first, ahead of what was put ahead of the next */
			if (!q->m[i]->before && compare(q, q->m[i], m) < 0)
				at = i + 1;
	if (q->n == q->cap) {
		q->cap = q->cap == 0 ? 64 : 2 * q->cap;
		q->m = realloc(q->m, q->cap * sizeof(struct mm *));
	}
	memmove(q->m + at + 1, q->m + at, (q->n - at) * sizeof(struct mm *));
	q->m[at] = m;
	q->n++;
}

static bool
expired(const struct mm *m)
{
	return m->expires_us != 0 && m->expires_us <= clock_now_us();
}

static struct mm *
first(const struct mq *q)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->m[i]->state == HERE && !expired(q->m[i]) && q->m[i]->due_us <= clock_now_us())
			return q->m[i];
	return NULL;
}

static void
enqueue_one(struct model *o, struct mq *q, int b)
{
	struct mm *m = calloc(1, sizeof *m), *before = NULL;
	int64_t now = clock_now_us();
	struct qmsg_in in;
	char body[16];
	int rc, want = 0;

	snprintf(body, sizeof body, "%d", m->number = o->number++);
	in = text(body);
	m->branch = b;
	m->prio = 50;
	m->time_ms = now / 1000;
	if (dice(o, 2)) {
		in.flags |= TPQPRIORITY;
		in.priority = m->prio = 30 + 20 * (int)dice(o, 3);
	}
	if (dice(o, 3) == 0) {
		in.flags |= TPQTIME_REL;
		in.deq_time = dice(o, 3);
		m->due_us = now + in.deq_time * SECOND;
	} else if (dice(o, 4) == 0) {
		in.flags |= TPQTIME_ABS;
		in.deq_time = now / SECOND - 2 + dice(o, 5);
		m->due_us = in.deq_time * SECOND;
	}
	if (m->due_us != 0)
		m->time_ms = m->due_us / 1000;
	if (dice(o, 3) == 0) {
		in.flags |= TPQEXPTIME_REL;
		in.exp_time = dice(o, 12);
		m->expires_us = now + in.exp_time * SECOND;
	}
	if ((m->np = dice(o, 4) == 0)) {
		in.flags |= TPQDELIVERYQOS;
		in.delivery_qos = TPQQOSNONPERSISTENT;
	}
	if (dice(o, 12) == 0) {
		in.flags |= TPQTOP;
		m->top = true;
	} else if (q->n > 0 && dice(o, 4) == 0) {
		before = q->m[dice(o, (unsigned)q->n)];
		in.flags |= TPQBEFOREMSGID;
		memcpy(in.msgid, before->msgid, TMMSGIDLEN);
		m->before = true;
		m->depth = before->depth + 1;
		if (before->state == GONE || (before->state == PENDING && before->branch != b) ||
		    (before->state == HERE && expired(before)))
			want = QMEBADMSGID;
		if (m->depth > DEPTH) {
			free(m);
			return;
		}
	}
	rc = qspace_enqueue(o->g->qs, b < 0 ? NULL : o->branch[b], q->name, &in, m->msgid);
	CU_ASSERT_EQUAL_FATAL(rc, want);
	if (rc != 0) {
		free(m);
		return;
	}
	m->state = b < 0 ? HERE : PENDING;
	insert(q, m, before);
}

static void
dequeue_one(struct model *o, struct mq *q, int b, bool peek)
{
	struct qselect sel = { .flags = peek ? TPQPEEK : 0 };
	struct mm *m = first(q);
	struct qmsg *got;
	char body[16];
	int rc = qspace_dequeue(o->g->qs, b < 0 ? NULL : o->branch[b], q->name, &sel, &got);

	CU_ASSERT_EQUAL_FATAL(rc, m == NULL ? QMENOMSG : 0);
	if (m == NULL)
		return;
	snprintf(body, sizeof body, "%d", m->number);
	CU_ASSERT_STRING_EQUAL_FATAL((const char *)got->body, body);
	CU_ASSERT_EQUAL_FATAL(memcmp(got->msgid, m->msgid, TMMSGIDLEN), 0);
	qmsg_free(got);
	o->taken++;
	if (peek)
		return;
	m->state = b < 0 ? GONE : HELD;
	m->branch = b;
}

/* What becomes of the messages of a transaction.  lost: its queue manager is gone, nobody counts a retry. */
static void
ended(struct model *o, int b, bool good, bool lost)
{
	for (int i = 0; i < QUEUES; i++)
		for (size_t k = 0; k < o->q[i].n; k++) {
			struct mm *m = o->q[i].m[k];
			if (m->branch != b || (m->state != PENDING && m->state != HELD))
				continue;
			if (m->state == PENDING)
				m->state = good && !expired(m) ? HERE : GONE;
			else
				m->state = good || (!lost && expired(m)) ? GONE : HERE;
			if (!good && !lost && m->state == HERE && o->q[i].delay > 0)
				m->due_us = clock_now_us() + o->q[i].delay * SECOND;
		}
}

static void
end_branch(struct model *o, int b)
{
	bool good = dice(o, 2);

	if (o->branch[b] == NULL)
		return;
	begin(o->g);
	CU_ASSERT_EQUAL_FATAL(good ? qspace_branch_commit(o->g->qs, o->branch[b]) :
				       qspace_branch_rollback(o->g->qs, o->branch[b]), 0);
	commit(o->g);
	o->branch[b] = NULL;
	ended(o, b, good, false);
}

static void
some_work(struct model *o)
{
	for (int b = 0; b < BRANCHES; b++)
		if (o->branch[b] == NULL) {
			snprintf(o->gtrid[b], sizeof o->gtrid[b], "t%d", o->transactions++);
			o->branch[b] = tx(o->g, o->gtrid[b]);
		}
	begin(o->g);
	for (int i = 0; i < 120; i++) {
		struct mq *q = &o->q[dice(o, QUEUES)];
		int b = (int)dice(o, 2 * BRANCHES) - BRANCHES;
		if (dice(o, 5) < 3)
			enqueue_one(o, q, b < 0 ? -1 : b);
		else
			dequeue_one(o, q, b < 0 ? -1 : b, dice(o, 6) == 0);
	}
	commit(o->g);
	end_branch(o, (int)dice(o, BRANCHES));
	if (dice(o, 3) == 0)
		tick(o->g);
	clock_shift_us(dice(o, 4) == 0 ? 700000 + dice(o, 900000) : dice(o, 3) * 1000);
}

static void
restart(struct model *o, bool killed)
{
	for (int b = 0; b < BRANCHES; b++) {
		ended(o, b, false, true);
		o->branch[b] = NULL;
	}
	for (int i = 0; killed && i < QUEUES; i++)
		for (size_t k = 0; k < o->q[i].n; k++)
			if (o->q[i].m[k]->np)
				o->q[i].m[k]->state = GONE;
	if (killed)
		given_killed(o->g);
	else
		reopen(o->g);
}

static void
drain(struct model *o)
{
	for (int b = 0; b < BRANCHES; b++)
		end_branch(o, b);
	clock_shift_us(3 * SECOND);
	begin(o->g);
	for (int i = 0; i < QUEUES; i++)
		while (first(&o->q[i]) != NULL)
			dequeue_one(o, &o->q[i], -1, false);
	commit(o->g);
	clock_shift_us(30 * SECOND);
	tick(o->g);
	for (int i = 0; i < QUEUES; i++) {
		struct queue_stat st = stat_of(o->g, o->q[i].name);
		CU_ASSERT_EQUAL(st.messages + st.np_messages + st.held + st.delayed, 0);
	}
}

static void	/* All ordered choices of the three criteria, with fifo and with lifo behind them. */
create_all(struct model *o)
{
	static const uint8_t order[16][3] = { { 0 }, { 1 }, { 2 }, { 3 }, { 1, 2 }, { 2, 1 }, { 1, 3 }, { 3, 1 }, { 2, 3 },
		{ 3, 2 }, { 1, 2, 3 }, { 1, 3, 2 }, { 2, 1, 3 }, { 2, 3, 1 }, { 3, 1, 2 }, { 3, 2, 1 } };

	for (int i = 0; i < QUEUES; i++) {
		struct mq *q = &o->q[i];
		struct queue_params p;
		int n = 0;
		snprintf(q->name, sizeof q->name, "q%d", i);
		while (n < 3 && order[i / 2][n] != 0)
			q->order[n] = order[i / 2][n], n++;
		q->order[n] = i % 2 ? QC_LIFO : QC_FIFO;
		q->delay = i % 3 == 0 ? 2 : 0;
		p = queue_of(q->name, q->order[0], q->order[1], q->order[2], q->order[3]);
		p.retries = 1000;
		p.retry_delay = q->delay;
		create(o->g, &p);
	}
}

static void
play(unsigned seed, int rounds)
{
	struct qspace_params params = given_params("QS");
	struct model *o = calloc(1, sizeof *o);

	params.queues = QUEUES + 1;
	params.nonpersistent_bytes = 16 << 20;
	params.errorq[0] = '\0';
	clock_stop();
	o->seed = seed;
	o->g = given_space(&params);
	create_all(o);
	for (int i = 1; i <= rounds; i++) {
		some_work(o);
		if (i % 40 == 0)
			drain(o);
		else if (i % 13 == 0)
			restart(o, i % 2);
	}
	drain(o);
	CU_ASSERT_TRUE(o->taken > (unsigned long)rounds * 10);
	for (int i = 0; i < QUEUES; i++) {
		for (size_t k = 0; k < o->q[i].n; k++)
			free(o->q[i].m[k]);
		free(o->q[i].m);
	}
	given_done(o->g);
	free(o);
	clock_go();
}

static void
every_order_delivers_as_a_plain_list_says(void)
{
	unsigned seed = getenv("TEST_SEED") != NULL ? (unsigned)atoi(getenv("TEST_SEED")) : 1;
	int games = getenv("TEST_LONG") != NULL ? 20 : 1;

	for (int i = 0; i < games; i++)
		play(seed + (unsigned)i, games > 1 ? 400 : 100);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(every_order_delivers_as_a_plain_list_says),
	};
	return unit_run("qspace model", tests, UNIT_COUNT(tests));
}
