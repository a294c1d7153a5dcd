/*
 * The queue of a set of servers: what is given to whom, and when a server may go.
 */
#include "queue.h"
#include "unit.h"

static struct queue q;
static int64_t now = 1000000;

static struct link_peer
peer_no(uint32_t no)
{
	struct link_peer p = { .n = 8 };

	memcpy(p.id, &no, sizeof no);
	return p;
}

static struct request *
add(const char *service, int prio, uint64_t reqid)
{
	struct wire_call call = { .reqid = reqid, .priority = prio };
	struct link_msg m;

	memset(&m, 0, sizeof m);
	m.peer = peer_no(1);
	snprintf(call.service, sizeof call.service, "%s", service);
	return queue_add(&q, &m, &call, now);
}

static struct member *
member(uint32_t no, const char *service)
{
	struct link_peer p = peer_no(100 + no);
	struct member *m = queue_join(&q, &p, no, 5000 + no);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	CU_ASSERT_EQUAL(queue_offer(&q, m, service), 0);
	return m;
}

static uint64_t	/* The caller's number of what is given next, to `to`; 0: nothing. */
given(const struct member *to)
{
	struct member *m;
	struct request *r = queue_next(&q, &m);

	if (r == NULL)
		return 0;
	CU_ASSERT_PTR_EQUAL(m, to);
	queue_give(&q, r, m);
	return r->from.reqid;
}

static void
done(void)
{
	queue_close(&q);
	CU_ASSERT_EQUAL(q.n, 0);
	CU_ASSERT_EQUAL(q.bytes, 0);
	CU_ASSERT_EQUAL(q.load, 0);
	CU_ASSERT_EQUAL(q.given, 0);
	CU_ASSERT_EQUAL(q.leaving, 0);
	CU_ASSERT_PTR_NULL(q.services);
	CU_ASSERT_PTR_NULL(q.idle_first);
}

static void
the_longest_idle_gets_the_next(void)
{
	struct member *a, *b;

	queue_open(&q);
	a = member(1, "S");
	b = member(2, "S");
	queue_ready(&q, b, 1);
	queue_ready(&q, a, 1);
	add("S", 50, 1);
	add("S", 50, 2);
	add("S", 50, 3);
	CU_ASSERT_EQUAL(given(b), 1);
	CU_ASSERT_EQUAL(given(a), 2);
	CU_ASSERT_EQUAL(given(NULL), 0);
	CU_ASSERT_EQUAL(q.n, 1);
	queue_ready(&q, a, 1);
	CU_ASSERT_EQUAL(given(a), 3);
	done();
}

static void	/* A server of several threads gets as many as it asked for, in turn with the others. */
who_takes_several_shares_with_others(void)
{
	struct member *many, *one;

	queue_open(&q);
	many = member(1, "S");
	one = member(2, "S");
	queue_ready(&q, many, 3);
	queue_ready(&q, one, 1);
	for (uint64_t i = 1; i <= 5; i++)
		add("S", 50, i);
	CU_ASSERT_EQUAL(given(many), 1);
	CU_ASSERT_EQUAL(given(one), 2);
	CU_ASSERT_EQUAL(given(many), 3);
	CU_ASSERT_EQUAL(given(many), 4);
	CU_ASSERT_EQUAL(given(NULL), 0);
	done();
}

static void
priorities_hold_over_all_services_and_each_tenth_is_the_oldest(void)
{
	struct member *m;

	queue_open(&q);
	m = member(1, "S");
	queue_offer(&q, m, "T");
	add("S", 10, 1);		/* the oldest, and never its turn but for its age */
	for (uint64_t i = 2; i <= 30; i++)
		add(i % 2 ? "S" : "T", i > 15 ? 90 : 60, i);
	queue_ready(&q, m, 30);
	for (uint64_t i = 16; i <= 24; i++)
		CU_ASSERT_EQUAL(given(m), i);
	CU_ASSERT_EQUAL(given(m), 1);
	for (uint64_t i = 25; i <= 30; i++)
		CU_ASSERT_EQUAL(given(m), i);
	CU_ASSERT_EQUAL(given(m), 2);
	done();
}

static void
a_request_goes_only_to_who_offers_it(void)
{
	struct member *s, *t;
	struct service *orphan;

	queue_open(&q);
	s = member(1, "S");
	t = member(2, "T");
	queue_ready(&q, s, 1);
	queue_ready(&q, t, 1);
	add("T", 50, 1);
	CU_ASSERT_EQUAL(given(t), 1);
	add("T", 50, 2);
	CU_ASSERT_EQUAL(given(NULL), 0);
	CU_ASSERT_PTR_NULL(queue_orphan(&q, now));
	queue_withdraw(&q, t, "T");
	CU_ASSERT_PTR_NOT_NULL(orphan = queue_orphan(&q, now));
	orphan->ask_us = now + 1;
	CU_ASSERT_PTR_NULL(queue_orphan(&q, now));
	queue_offer(&q, s, "T");
	CU_ASSERT_EQUAL(given(s), 2);
	done();
}

static void	/* Others go on: what waits is theirs.  The last one serves what waited when it was told to go, and no more. */
the_last_one_leaves_when_what_waited_is_served(void)
{
	struct member *a, *b;

	queue_open(&q);
	a = member(1, "S");
	b = member(2, "S");
	add("S", 50, 1);
	add("S", 50, 2);
	queue_leave(&q, a);
	queue_ready(&q, a, 1);
	CU_ASSERT_EQUAL(given(NULL), 0);
	CU_ASSERT_PTR_EQUAL(queue_leaver(&q), a);
	CU_ASSERT_PTR_NULL(queue_leaver(&q));
	queue_leave(&q, b);
	CU_ASSERT_PTR_NULL(queue_leaver(&q));
	add("S", 50, 3);
	queue_ready(&q, b, 1);
	CU_ASSERT_EQUAL(given(b), 1);
	queue_ready(&q, b, 1);
	CU_ASSERT_EQUAL(given(b), 2);
	queue_ready(&q, b, 1);
	CU_ASSERT_EQUAL(given(NULL), 0);
	CU_ASSERT_PTR_EQUAL(queue_leaver(&q), b);
	CU_ASSERT_EQUAL(q.n, 1);
	done();
}

static void
who_cannot_be_reached_keeps_nothing_from_others(void)
{
	struct member *a, *b, *m;

	queue_open(&q);
	a = member(1, "S");
	b = member(2, "S");
	queue_ready(&q, a, 1);
	queue_ready(&q, b, 1);
	add("S", 50, 1);
	CU_ASSERT_PTR_NOT_NULL(queue_next(&q, &m));
	CU_ASSERT_PTR_EQUAL(m, a);
	queue_unable(&q, a);
	CU_ASSERT_EQUAL(given(b), 1);
	queue_part(&q, a);
	done();
}

static void
a_request_is_known_by_both_its_names(void)
{
	struct link_peer caller = peer_no(1), other = peer_no(2);
	struct request *r;

	queue_open(&q);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r = add("S", 50, 77));
	CU_ASSERT_PTR_EQUAL(queue_find(&q, r->id), r);
	CU_ASSERT_PTR_EQUAL(queue_find_from(&q, &caller, 77), r);
	CU_ASSERT_PTR_NULL(queue_find_from(&q, &other, 77));
	CU_ASSERT_PTR_NULL(add("S", 50, 77));
	CU_ASSERT_EQUAL(q.n, 1);
	queue_over(&q, r);
	CU_ASSERT_PTR_NULL(queue_find_from(&q, &caller, 77));
	done();
}

static void	/* A body on its way outlives the request. */
memory_goes_when_the_last_user_is_done(void)
{
	struct request *r;

	queue_open(&q);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r = add("S", 50, 1));
	request_hold(r);
	queue_over(&q, r);
	CU_ASSERT_EQUAL(r->from.reqid, 1);
	request_release(NULL, r);
	done();
}

static void
what_waits_is_bounded(void)
{
	struct member *m;

	queue_open(&q);
	for (uint64_t i = 1; i <= QUEUE_REQUESTS; i++) {
		CU_ASSERT_FALSE_FATAL(queue_full(&q));
		add("S", (int)(i % 100) + 1, i);
	}
	CU_ASSERT_TRUE(queue_full(&q));
	m = member(1, "S");
	queue_ready(&q, m, 1);
	CU_ASSERT_TRUE(given(m) != 0);
	CU_ASSERT_FALSE(queue_full(&q));
	done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_longest_idle_gets_the_next),
		UNIT(who_takes_several_shares_with_others),
		UNIT(priorities_hold_over_all_services_and_each_tenth_is_the_oldest),
		UNIT(a_request_goes_only_to_who_offers_it),
		UNIT(the_last_one_leaves_when_what_waited_is_served),
		UNIT(who_cannot_be_reached_keeps_nothing_from_others),
		UNIT(a_request_is_known_by_both_its_names),
		UNIT(memory_goes_when_the_last_user_is_done),
		UNIT(what_waits_is_bounded),
	};

	return unit_run("the queue of a set", tests, UNIT_COUNT(tests));
}
