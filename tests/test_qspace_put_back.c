/*
 * qspace_put_back: a message that was taken and reached nobody is where it was, as it was, and counted as if nothing had happened.
 */
#include <pthread.h>

#include "given_space.h"
#include "qspace_impl.h"

#define SECOND INT64_C(1000000)

static struct qmsg *
taken(struct given_space *g, const char *queue)
{
	struct qmsg *m;

	CU_ASSERT_EQUAL_FATAL(take(g, NULL, queue, NULL, &m), 0);
	CU_ASSERT_TRUE(qspace_can_put_back(m));
	return m;
}

static int
put_back(struct given_space *g, struct qmsg *m)
{
	int rc;

	begin(g);
	rc = qspace_put_back(g->qs, m);
	commit(g);
	qmsg_free(m);
	return rc;
}

static struct qmsg_in
in_memory(struct qmsg_in in)
{
	in.flags |= TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	return in;
}

static struct qmsg_in
of_order(struct qmsg_in in, const char *corrid)
{
	in.flags |= TPQCORRID;
	snprintf((char *)in.corrid, sizeof in.corrid, "%s", corrid);
	return in;
}

/* --- what the tables hold, and what is counted --- */

static int
entries(struct given_space *g, enum table t)
{
	struct walk w;
	int n = 0;

	for (int np = 0; np < 2; np++) {
		int rc;

		for (rc = walk_first(g->qs, &w, t, np, "", 0); rc == 0; rc = walk_next(g->qs, &w))
			n++;
		walk_end(g->qs, &w);
		CU_ASSERT_EQUAL(rc, DB_NOTFOUND);
	}
	return n;
}

struct count { int order, delayed, expiry, corrid, alias; struct queue_stat st; int64_t messages, pages, np_bytes; };

static struct count
count(struct given_space *g, const char *queue)
{
	struct count c;

	memset(&c, 0, sizeof c);
	c.order = entries(g, T_ORDER);
	c.delayed = entries(g, T_DELAYED);
	c.expiry = entries(g, T_EXPIRY);
	c.corrid = entries(g, T_CORRID);
	c.alias = entries(g, T_ALIAS);
	c.st = stat_of(g, queue);
	c.messages = g->qs->used.messages;
	c.pages = g->qs->used.pages;
	c.np_bytes = g->qs->used.np_bytes;
	CU_ASSERT_EQUAL(c.st.messages + c.st.np_messages, c.order);
	CU_ASSERT_EQUAL(c.messages, c.order);
	return c;
}

static bool
same_count(const struct count *a, const struct count *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* --- places --- */

enum { N = 8 };
static const char *const in_line[N] = { "top", "a", "before before b", "before b in memory", "b", "c of order 7", "in memory", "ends" };

static void	/* one of each kind, in an order that is none of arrival */
given_line(struct given_space *g)
{
	uint8_t b[TMMSGIDLEN], x[TMMSGIDLEN];
	struct qmsg_in in;

	create_fifo(g, "line", 5, 0);
	put(g, "line", "a");
	put_in(g, NULL, "line", text("b"), b);
	put_in(g, NULL, "line", of_order(text("c of order 7"), "order 7"), NULL);
	put_in(g, NULL, "line", in_memory(of_order(text("in memory"), "order 7")), NULL);
	in = text("ends");
	in.flags = TPQEXPTIME_REL;
	in.exp_time = 1000;
	put_in(g, NULL, "line", in, NULL);
	in = in_memory(text("before b in memory"));
	in.flags |= TPQBEFOREMSGID;
	memcpy(in.msgid, b, sizeof b);
	CU_ASSERT_EQUAL(put_in(g, NULL, "line", in, x), 0);
	in = of_order(text("before before b"), "order 8");
	in.flags |= TPQBEFOREMSGID | TPQEXPTIME_REL;
	in.exp_time = 1000;
	memcpy(in.msgid, x, sizeof x);
	CU_ASSERT_EQUAL(put_in(g, NULL, "line", in, NULL), 0);
	in = text("top");
	in.flags = TPQTOP;
	CU_ASSERT_EQUAL(put_in(g, NULL, "line", in, NULL), 0);
}

static void
drained(struct given_space *g, const char *const *bodies, int n)
{
	for (int i = 0; i < n; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "line"), bodies[i]);
	CU_ASSERT_STRING_EQUAL(next(g, "line"), "");
	CU_ASSERT_EQUAL(g->qs->used.messages, 0);
	CU_ASSERT_EQUAL(g->qs->used.pages, 0);
	CU_ASSERT_EQUAL(g->qs->used.np_bytes, 0);
	for (int t = T_ORDER; t <= T_ALIAS; t++)
		if (t == T_ORDER || t == T_DELAYED || t == T_EXPIRY || t == T_CORRID || t == T_ALIAS)
			CU_ASSERT_EQUAL(entries(g, t), 0);
}

static void	/* each for itself, from wherever it stands */
the_message_of_each_place_gets_it_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect sel = { .flags = TPQGETBYMSGID };
	struct qmsg *all[N], *m, *again;
	struct count before, now;

	given_line(g);
	for (int i = 0; i < N; i++) {
		all[i] = taken(g, "line");
		CU_ASSERT_STRING_EQUAL((const char *)all[i]->body, in_line[i]);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "line"), "");
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(put_back(g, all[(i * 5 + 3) % N]), 0);		/* in no order */
	before = count(g, "line");
	CU_ASSERT_EQUAL(before.order, N);
	CU_ASSERT_EQUAL(before.expiry, 2);
	CU_ASSERT_EQUAL(before.corrid, 3);
	CU_ASSERT_EQUAL(before.alias, 2);
	for (int i = 0; i < N; i++) {
		struct qselect peek = { .flags = TPQPEEK | TPQGETBYMSGID };

		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &(struct qselect){ .flags = TPQPEEK }, &m), 0);
		qmsg_free(m);
		for (int k = 0; k < 2; k++) {		/* and again */
			struct qmsg *x[N];

			for (int j = 0; j <= i; j++)
				x[j] = taken(g, "line");
			m = x[i];
			CU_ASSERT_STRING_EQUAL((const char *)m->body, in_line[i]);
			memcpy(sel.msgid, m->msgid, TMMSGIDLEN);
			memcpy(peek.msgid, m->msgid, TMMSGIDLEN);
			CU_ASSERT_EQUAL(take(g, NULL, "line", &peek, &again), QMENOMSG);
			for (int j = i - 1; j >= 0; j--)
				CU_ASSERT_EQUAL(put_back(g, x[j]), 0);
			qmsg_keep(m);
			CU_ASSERT_EQUAL(put_back(g, m), 0);
			CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &peek, &again), 0);
			CU_ASSERT_EQUAL(memcmp(again->msgid, m->msgid, TMMSGIDLEN), 0);
			CU_ASSERT_EQUAL(memcmp(again->corrid, m->corrid, TMCORRIDLEN), 0);
			CU_ASSERT_EQUAL(again->flags, m->flags);
			CU_ASSERT_EQUAL(again->persistent, m->persistent);
			CU_ASSERT_EQUAL(again->enqueued_us, m->enqueued_us);
			CU_ASSERT_EQUAL(again->expires_us, m->expires_us);
			qmsg_free(again);
			qmsg_free(m);
		}
		now = count(g, "line");
		CU_ASSERT_TRUE(same_count(&before, &now));
	}
	drained(g, in_line, N);
	given_done(g);
}

static void
a_restart_and_a_crash_find_it_there(void)
{
	static const char *const kept[] = { "top", "a", "before before b", "b", "c of order 7", "ends" };
	struct given_space *g = given_space(NULL);
	struct qmsg *all[N];
	struct count before, now;

	given_line(g);
	before = count(g, "line");
	for (int i = 0; i < N; i++)
		all[i] = taken(g, "line");
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(put_back(g, all[i]), 0);
	reopen(g);		/* which keeps what is in memory */
	now = count(g, "line");
	CU_ASSERT_TRUE(same_count(&before, &now));
	for (int i = 0; i < N; i++)
		all[i] = taken(g, "line");
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(put_back(g, all[i]), 0);
	given_killed(g);	/* which does not */
	drained(g, kept, sizeof kept / sizeof kept[0]);
	given_done(g);
}

static void	/* Not only fifo: the key decides, and there is more in the queue than in the window. */
the_order_of_the_queue_is_kept(void)
{
	static const struct { uint8_t first, last; } orders[] = { { QC_FIFO, 0 }, { QC_LIFO, 0 }, { QC_PRIORITY, QC_FIFO }, { QC_PRIORITY, QC_LIFO } };

	for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
		struct given_space *g = given_space(NULL);
		struct queue_params p = queue_of("many", orders[o].first, orders[o].last, 0, 0);
		static char want[1200][16];
		struct qmsg *m[40];
		int n;

		create(g, &p);
		for (int i = 0; i < 1200; i++) {
			struct qmsg_in in;
			char body[16];

			snprintf(body, sizeof body, "%d", i);
			in = text(body);
			in.flags = TPQPRIORITY;
			in.priority = 1 + i * 7 % 100;
			CU_ASSERT_EQUAL_FATAL(put_in(g, NULL, "many", i % 3 ? in : in_memory(in), NULL), 0);
		}
		for (n = 0; n < 1200; n++) {
			m[n % 40] = taken(g, "many");
			snprintf(want[n], sizeof want[n], "%s", (const char *)m[n % 40]->body);
			if (n % 40 != 39)
				continue;
			begin(g);
			for (int i = 0; i < 40; i++)
				CU_ASSERT_EQUAL(qspace_put_back(g->qs, m[i * 17 % 40]), 0);
			commit(g);
			for (int i = 0; i < 40; i++)
				qmsg_free(m[i]);
			for (int i = 0; i < 40; i++)
				CU_ASSERT_STRING_EQUAL(next(g, "many"), want[n - 39 + i]);
		}
		CU_ASSERT_STRING_EQUAL(next(g, "many"), "");
		CU_ASSERT_EQUAL(g->qs->used.messages, 0);
		given_done(g);
	}
}

static void
it_is_found_by_what_names_it(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect by = { .flags = TPQGETBYCORRID, .corrid = "order 7" };
	struct qmsg *m, *next_one;
	struct qmsg_in in = text("before what came back");

	create_fifo(g, "line", 0, 0);
	for (int i = 0; i < 50; i++)	/* so many in the way that a window is kept for them */
		put_in(g, NULL, "line", of_order(text("7"), "order 7"), NULL);
	{
		struct branch *b = tx(g, "t");

		for (int i = 0; i < 40; i++) {
			CU_ASSERT_EQUAL(take(g, b, "line", &by, &m), 0);
			CU_ASSERT_FALSE(qspace_can_put_back(m));	/* it is held, and comes back by itself */
			qmsg_free(m);
		}
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &by, &m), 0);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &by, &next_one), 0);
		qmsg_keep(m);
		CU_ASSERT_EQUAL(put_back(g, next_one), 0);
		CU_ASSERT_EQUAL(put_back(g, m), 0);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &by, &next_one), 0);
		CU_ASSERT_EQUAL(memcmp(next_one->msgid, m->msgid, TMMSGIDLEN), 0);
		CU_ASSERT_EQUAL(put_back(g, next_one), 0);
		CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	}
	in.flags = TPQBEFOREMSGID;
	memcpy(in.msgid, m->msgid, TMMSGIDLEN);
	CU_ASSERT_EQUAL(put_in(g, NULL, "line", in, NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "line"), "before what came back");
	for (int i = 0; i < 10; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "line"), "7");
	qmsg_free(m);
	drained(g, NULL, 0);
	given_done(g);
}

static char heard[64];

static void
hear(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	(void)arg;
	(void)msgid;
	snprintf(heard, sizeof heard, "%s %s", queue, corrid != NULL ? (const char *)corrid : "-");
}

static void	/* Its failed deliveries stay counted, nobody counts it as new, and those who wait hear of it. */
it_is_not_a_new_message(void)
{
	struct given_space *g = given_space(NULL);
	struct qspace_counts before, after;
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "line", 5, 0);
	put_in(g, NULL, "line", of_order(text("x"), "order 7"), NULL);
	b = tx(g, "t");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "line"), "x");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	m = taken(g, "line");
	CU_ASSERT_EQUAL(m->retries, 1);
	qspace_on_eligible(g->qs, hear, NULL);
	qspace_counts(g->qs, &before);
	CU_ASSERT_EQUAL(put_back(g, m), 0);
	qspace_counts(g->qs, &after);
	CU_ASSERT_STRING_EQUAL(heard, "line order 7");
	CU_ASSERT_EQUAL(after.enqueues, before.enqueues);
	CU_ASSERT_EQUAL(after.flushes, before.flushes + 1);
	m = taken(g, "line");
	CU_ASSERT_EQUAL(m->retries, 1);
	qmsg_free(m);
	given_done(g);
}

static void	/* It is not taken out of the dead: the time that it had is over. */
one_that_expired_meanwhile_is_gone(void)
{
	for (int np = 0; np < 2; np++) {
		struct given_space *g = given_space(NULL);
		struct qmsg_in in = of_order(np ? in_memory(text("milk")) : text("milk"), "order 7");
		struct qselect by = { .flags = TPQGETBYCORRID, .corrid = "order 7" };
		struct qmsg *m, *other;

		create_fifo(g, "line", 0, 0);
		in.flags |= TPQEXPTIME_REL;
		in.exp_time = 10;
		put_in(g, NULL, "line", in, NULL);
		put_in(g, NULL, "line", in, NULL);
		m = taken(g, "line");
		clock_pass_us(20 * SECOND);
		tick(g);	/* the other one is gone, and looked past is where this one's time is */
		CU_ASSERT_EQUAL(count(g, "line").order, 0);
		CU_ASSERT_EQUAL(put_back(g, m), 0);
		CU_ASSERT_EQUAL(count(g, "line").expiry, 1);
		CU_ASSERT_EQUAL(take(g, NULL, "line", &by, &other), QMENOMSG);
		tick(g);
		drained(g, NULL, 0);
		given_done(g);
	}
}

static void	/* Somebody else has taken the room: it is there all the same, and a new one has to wait. */
its_room_is_not_asked_for(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct qmsg *m, *other;

	p.messages = 2;
	p.pages = 2;
	p.nonpersistent_bytes = 0;
	g = given_space(&p);
	create_fifo(g, "line", 0, 0);
	put(g, "line", "one");
	put(g, "line", "two");
	m = taken(g, "line");
	CU_ASSERT_EQUAL(put(g, "line", "three"), 0);
	CU_ASSERT_EQUAL(put_back(g, m), 0);
	CU_ASSERT_EQUAL(g->qs->used.messages, 3);
	CU_ASSERT_EQUAL(put(g, "line", "four"), QMENOSPACE);
	CU_ASSERT_STRING_EQUAL(next(g, "line"), "one");
	CU_ASSERT_EQUAL(put(g, "line", "four"), QMENOSPACE);
	other = taken(g, "line");
	CU_ASSERT_STRING_EQUAL((const char *)other->body, "two");
	qmsg_free(other);
	CU_ASSERT_EQUAL(put(g, "line", "four"), 0);
	reopen(g);
	drained(g, (const char *const[]){ "three", "four" }, 2);
	given_done(g);
}

static void
a_batch_that_fails_put_nothing_back(void)
{
	struct given_space *g = given_space(NULL);
	struct count before, now;
	struct qmsg *all[N];

	given_line(g);
	for (int i = 0; i < N; i++)
		all[i] = taken(g, "line");
	before = count(g, "line");
	begin(g);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(qspace_put_back(g->qs, all[i]), 0);
	qspace_batch_abort(g->qs);
	now = count(g, "line");
	CU_ASSERT_TRUE(same_count(&before, &now));
	CU_ASSERT_STRING_EQUAL(next(g, "line"), "");
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(put_back(g, all[i]), 0);
	drained(g, in_line, N);
	given_done(g);
}

static void	/* A queue of the same name is another queue. */
its_queue_may_be_gone(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg *m;

	create_fifo(g, "line", 0, 0);
	put(g, "line", "x");
	m = taken(g, "line");
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_queue_destroy(g->qs, "line", false), 0);
	commit(g);
	qmsg_keep(m);
	CU_ASSERT_EQUAL(put_back(g, m), QMEBADQUEUE);
	create_fifo(g, "line", 0, 0);
	CU_ASSERT_EQUAL(put_back(g, m), QMEBADQUEUE);
	drained(g, NULL, 0);
	given_done(g);
}

static void
what_was_looked_at_or_came_in_parts_is_not_put_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect peek = { .flags = TPQPEEK };
	static char large[WHOLE_MAX + 1];
	struct qmsg_in in = { .type = "CARRAY", .subtype = "", .has_body = true, .body = large, .body_len = WHOLE_MAX };
	struct qmsg *m;

	create_fifo(g, "line", 0, 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(put_in(g, NULL, "line", in, NULL), 0);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", &peek, &m), 0);
		CU_ASSERT_FALSE(qspace_can_put_back(m));
		qmsg_free(m);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "line", NULL, &m), 0);
		CU_ASSERT_EQUAL(qspace_can_put_back(m), in.body_len == WHOLE_MAX);
		qmsg_free(m);
		in.body_len++;
	}
	given_done(g);
}

static void *
let_go(void *m)
{
	const struct qmsg *q = m;
	bool same = strcmp((const char *)q->body, "x") == 0;

	qmsg_free(m);
	return same ? m : NULL;
}

static void	/* The one that sends its body, and the one that may have to put it back: whoever is last frees it. */
two_threads_let_go_of_it(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg *m;
	pthread_t t;
	void *seen;

	create_fifo(g, "line", 0, 0);
	for (int i = 0; i < 100; i++) {
		put(g, "line", "x");
		m = taken(g, "line");
		qmsg_keep(m);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, let_go, m), 0);
		CU_ASSERT_EQUAL(put_back(g, m), 0);
		CU_ASSERT_EQUAL(pthread_join(t, &seen), 0);
		CU_ASSERT_PTR_NOT_NULL(seen);
		CU_ASSERT_STRING_EQUAL(next(g, "line"), "x");
	}
	drained(g, NULL, 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_message_of_each_place_gets_it_back),
		UNIT(a_restart_and_a_crash_find_it_there),
		UNIT(the_order_of_the_queue_is_kept),
		UNIT(it_is_found_by_what_names_it),
		UNIT(it_is_not_a_new_message),
		UNIT(one_that_expired_meanwhile_is_gone),
		UNIT(its_room_is_not_asked_for),
		UNIT(a_batch_that_fails_put_nothing_back),
		UNIT(its_queue_may_be_gone),
		UNIT(what_was_looked_at_or_came_in_parts_is_not_put_back),
		UNIT(two_threads_let_go_of_it),
	};
	if (access("/dev/shm", W_OK) == 0)	/* not about the disk */
		given_root = "/dev/shm";
	return unit_run("qspace put back", tests, UNIT_COUNT(tests));
}
