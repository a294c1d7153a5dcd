/* Waiting dequeues and watchers: who is tried when, who is tried again after a batch that failed. */
#include "action.h"
#include "clock.h"
#include "unit.h"

static struct actions *as;
static const char *hot_queue;

static struct link_peer
peer(unsigned n)
{
	struct link_peer p = { .n = sizeof n };

	memcpy(p.id, &n, sizeof n);
	return p;
}

static struct action *
waits(unsigned who, const char *queue, uint32_t by, const char *id, int64_t deadline)
{
	struct wire_dequeue d = { .reqid = who * 10ul, .flags = TPQWAIT | by };
	struct link_peer p = peer(who);

	snprintf(d.queue, sizeof d.queue, "%s", queue);
	if (by & TPQGETBYMSGID)
		memcpy(d.msgid, id, strlen(id));
	else if (by & TPQGETBYCORRID)
		memcpy(d.corrid, id, strlen(id));
	return action_wait(as, &p, &d, deadline, ACTION_END_SERVER);
}

static struct action *
watches(unsigned who, const char *a, const char *b)
{
	struct wire_qwait w = { .reqid = who * 10ul, .n = b == NULL ? 1 : 2 };
	struct link_peer p = peer(who);

	snprintf(w.queue[0], sizeof w.queue[0], "%s", a);
	if (b != NULL)
		snprintf(w.queue[1], sizeof w.queue[1], "%s", b);
	return action_watch(as, &p, &w, INT64_MAX);
}

static void
event(const char *queue, const char *corrid)
{
	uint8_t msgid[TMMSGIDLEN] = "m", c[TMCORRIDLEN] = { 0 };

	if (corrid != NULL)
		memcpy(c, corrid, strlen(corrid));
	actions_event(as, queue, msgid, corrid != NULL ? c : NULL);
}

static unsigned	/* who is tried next; 0: nobody */
hot(void)
{
	struct action *a = actions_hot(as, &hot_queue);

	return a == NULL ? 0 : (unsigned)(a->reqid / 10);
}

static void
serve_hot(void)
{
	action_served(as, actions_hot(as, &hot_queue));
}

static void
begin(size_t limit)
{
	as = actions_new(limit);
	CU_ASSERT_PTR_NOT_NULL_FATAL(as);
}

static void
nobody_is_tried_before_something_comes(void)
{
	begin(10);
	waits(1, "A", 0, NULL, INT64_MAX);
	CU_ASSERT_EQUAL(hot(), 0);
	event("B", NULL);
	CU_ASSERT_EQUAL(hot(), 0);
	event("A", NULL);
	CU_ASSERT_EQUAL(hot(), 1);
	CU_ASSERT_STRING_EQUAL(hot_queue, "A");
	actions_free(as);
}

static void
first_come_first_served(void)
{
	begin(10);
	for (unsigned i = 1; i <= 4; i++)
		waits(i, "A", 0, NULL, INT64_MAX);
	event("A", NULL);
	for (unsigned i = 1; i <= 4; i++) {
		CU_ASSERT_EQUAL(hot(), i);
		serve_hot();
	}
	CU_ASSERT_EQUAL(hot(), 0);
	actions_commit(as);
	CU_ASSERT_EQUAL(actions_count(as), 0);
	actions_free(as);
}

static void
selectors_and_plain_waits_keep_one_order(void)
{
	begin(10);
	waits(1, "A", TPQGETBYCORRID, "red", INT64_MAX);
	waits(2, "A", 0, NULL, INT64_MAX);
	waits(3, "A", TPQGETBYCORRID, "blue", INT64_MAX);
	waits(4, "A", TPQGETBYMSGIDOLD, "m", INT64_MAX);
	event("A", "blue");
	CU_ASSERT_EQUAL(hot(), 2);	/* red is not concerned */
	serve_hot();
	CU_ASSERT_EQUAL(hot(), 3);
	serve_hot();
	CU_ASSERT_EQUAL(hot(), 4);
	actions_cool(as, actions_hot(as, &hot_queue));
	CU_ASSERT_EQUAL(hot(), 0);
	event("A", "red");
	CU_ASSERT_EQUAL(hot(), 1);
	actions_free(as);
}

static void
who_finds_nothing_waits_on(void)
{
	begin(10);
	waits(1, "A", 0, NULL, INT64_MAX);
	waits(2, "A", 0, NULL, INT64_MAX);
	actions_commit(as);
	event("A", NULL);
	actions_cool(as, actions_hot(as, &hot_queue));
	CU_ASSERT_EQUAL(hot(), 0);
	CU_ASSERT_EQUAL(actions_count(as), 2);
	event("A", NULL);
	CU_ASSERT_EQUAL(hot(), 1);
	actions_free(as);
}

static void
failed_batch_puts_everybody_back_in_order(void)
{
	begin(10);
	for (unsigned i = 1; i <= 3; i++)
		waits(i, "A", 0, NULL, INT64_MAX);
	watches(9, "A", "B");
	actions_commit(as);
	event("A", NULL);
	for (int i = 0; i < 4; i++)
		serve_hot();
	waits(5, "A", 0, NULL, INT64_MAX);	/* asked in that batch: its request is run again */
	CU_ASSERT_EQUAL(hot(), 0);
	actions_abort(as);
	CU_ASSERT_EQUAL(actions_count(as), 3);
	for (unsigned i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(hot(), i);
		serve_hot();
	}
	CU_ASSERT_EQUAL(hot(), 9);
	actions_commit(as);
	CU_ASSERT_EQUAL(actions_count(as), 0);
	event("B", NULL);
	CU_ASSERT_EQUAL(hot(), 9);
	actions_free(as);
}

static void
watcher_hears_of_each_of_its_queues_once(void)
{
	begin(10);
	watches(1, "A", "B");
	watches(2, "B", NULL);
	event("B", NULL);
	CU_ASSERT_EQUAL(hot(), 1);
	CU_ASSERT_STRING_EQUAL(hot_queue, "B");
	serve_hot();
	CU_ASSERT_EQUAL(hot(), 2);
	serve_hot();
	actions_commit(as);
	event("A", NULL);
	CU_ASSERT_EQUAL(hot(), 0);
	CU_ASSERT_EQUAL(actions_count(as), 0);
	actions_free(as);
}

static void
cancelled_waits_are_not_tried(void)
{
	struct link_peer one = peer(1), two = peer(2);

	begin(10);
	waits(1, "A", 0, NULL, INT64_MAX);
	waits(2, "A", 0, NULL, INT64_MAX);
	action_cancel(as, &two, 10);	/* somebody else's request */
	action_cancel(as, &one, 10);
	action_cancel(as, &one, 10);
	actions_commit(as);
	event("A", NULL);
	CU_ASSERT_EQUAL(hot(), 2);
	CU_ASSERT_EQUAL(actions_count(as), 1);
	actions_free(as);
}

static void
limit_holds_and_frees(void)
{
	begin(2);
	CU_ASSERT_PTR_NOT_NULL(waits(1, "A", 0, NULL, INT64_MAX));
	CU_ASSERT_PTR_NOT_NULL(waits(2, "A", 0, NULL, INT64_MAX));
	CU_ASSERT_PTR_NULL(waits(3, "A", 0, NULL, INT64_MAX));
	CU_ASSERT_PTR_NOT_NULL(watches(4, "A", NULL));	/* watching takes no action of the space */
	event("A", NULL);
	serve_hot();
	CU_ASSERT_PTR_NULL(waits(5, "A", 0, NULL, INT64_MAX));	/* not before the batch is settled */
	actions_commit(as);
	CU_ASSERT_PTR_NOT_NULL(waits(6, "A", 0, NULL, INT64_MAX));
	actions_free(as);
}

static void
times_end_in_their_order(void)
{
	unsigned when[] = { 50, 10, 40, 20, 30, 60 };
	struct action *a;

	begin(10);
	for (unsigned i = 0; i < 6; i++)
		waits(when[i], "A", 0, NULL, when[i]);
	CU_ASSERT_EQUAL(actions_next_deadline(as), 10);
	CU_ASSERT_PTR_NULL(actions_due(as, 9));
	for (unsigned t = 10; t <= 60; t += 10) {
		a = actions_due(as, 60);
		CU_ASSERT_PTR_NOT_NULL_FATAL(a);
		CU_ASSERT_EQUAL(a->reqid, t * 10);
		action_served(as, a);
	}
	CU_ASSERT_EQUAL(actions_next_deadline(as), INT64_MAX);
	actions_free(as);
}

static void
ten_thousand_waiters_cost_an_event_nothing(void)
{
	char corrid[32];
	unsigned tried = 0;

	begin(10000);
	for (unsigned i = 1; i <= 10000; i++) {
		snprintf(corrid, sizeof corrid, "c%u", i);
		CU_ASSERT_PTR_NOT_NULL_FATAL(waits(i, i % 2 ? "A" : "B", TPQGETBYCORRID, corrid, 1000000 - i));
	}
	actions_commit(as);
	event("A", "nobody's");
	CU_ASSERT_EQUAL(hot(), 0);
	for (unsigned i = 10000; i >= 1; i--) {
		snprintf(corrid, sizeof corrid, "c%u", i);
		event(i % 2 ? "A" : "B", corrid);
		if (hot() == i)
			tried++;
		serve_hot();
	}
	CU_ASSERT_EQUAL(tried, 10000);
	actions_commit(as);
	CU_ASSERT_EQUAL(actions_count(as), 0);
	actions_free(as);
}

/* What an event and the choice of the next one cost does not depend on who else waits: counted, not timed. */
static uint64_t
looks_of_an_event(unsigned others)
{
	uint64_t before, looks;

	begin(20000);
	for (unsigned i = 1; i <= others; i++) {
		char corrid[32];

		snprintf(corrid, sizeof corrid, "c%u", i);
		waits(i, i % 3 == 0 ? "A" : "B", i % 2 ? TPQGETBYCORRID : 0, corrid, INT64_MAX);
	}
	waits(15000, "QUIET", 0, NULL, INT64_MAX);
	actions_commit(as);
	before = actions_looked(as);
	event("NOBODY", "x");
	event("QUIET", "x");
	CU_ASSERT_EQUAL(hot(), 15000);
	serve_hot();
	actions_commit(as);
	looks = actions_looked(as) - before;
	actions_free(as);
	return looks;
}

static void
an_event_looks_at_no_more_sets_with_ten_thousand_waiters(void)
{
	uint64_t few = looks_of_an_event(10), many = looks_of_an_event(10000);

	printf("(%llu sets looked at with 10 others, %llu with 10,000) ", (unsigned long long)few, (unsigned long long)many);
	CU_ASSERT_TRUE(many <= few + 4);	/* what shares a bucket */
}

/* A transaction that commits ten thousand messages wakes ten thousand: the next one is found in a few steps. */
static void
ten_thousand_hot_ones_are_served_in_order_in_few_steps(void)
{
	uint64_t before;

	begin(10000);
	for (unsigned i = 1; i <= 10000; i++) {
		char corrid[32];

		snprintf(corrid, sizeof corrid, "c%u", i);
		waits(i, "A", TPQGETBYCORRID, corrid, INT64_MAX);
	}
	actions_commit(as);
	for (unsigned i = 10000; i >= 1; i--) {		/* the last one's comes first */
		char corrid[32];

		snprintf(corrid, sizeof corrid, "c%u", i);
		event("A", corrid);
	}
	before = actions_looked(as);
	for (unsigned i = 1; i <= 10000; i++) {
		if (hot() != i) {
			CU_ASSERT_EQUAL_FATAL(hot(), i);
		}
		if (i % 3 == 0)
			actions_cool(as, actions_hot(as, &hot_queue));
		else
			serve_hot();
	}
	CU_ASSERT_EQUAL(hot(), 0);
	CU_ASSERT_TRUE(actions_looked(as) - before < 10000 * 2 * 14);
	actions_commit(as);
	CU_ASSERT_EQUAL(actions_count(as), 3333);
	actions_free(as);
}

/* Who is first of its set changes while the set is hot: cancelled, served, put back. */
static void
the_earliest_stays_first_whatever_happens_to_the_first(void)
{
	struct link_peer one = peer(1);

	begin(10);
	waits(1, "A", TPQGETBYCORRID, "red", INT64_MAX);
	waits(2, "A", 0, NULL, INT64_MAX);
	waits(3, "A", TPQGETBYCORRID, "red", INT64_MAX);
	waits(4, "A", 0, NULL, INT64_MAX);
	actions_commit(as);
	event("A", "red");
	CU_ASSERT_EQUAL(hot(), 1);
	action_cancel(as, &one, 10);
	CU_ASSERT_EQUAL(hot(), 2);
	serve_hot();
	CU_ASSERT_EQUAL(hot(), 3);
	actions_abort(as);
	CU_ASSERT_EQUAL(hot(), 1);
	serve_hot();
	serve_hot();
	serve_hot();
	serve_hot();
	CU_ASSERT_EQUAL(hot(), 0);
	actions_commit(as);
	CU_ASSERT_EQUAL(actions_count(as), 0);
	actions_free(as);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(nobody_is_tried_before_something_comes), UNIT(first_come_first_served),
		UNIT(selectors_and_plain_waits_keep_one_order), UNIT(who_finds_nothing_waits_on),
		UNIT(failed_batch_puts_everybody_back_in_order), UNIT(watcher_hears_of_each_of_its_queues_once),
		UNIT(cancelled_waits_are_not_tried), UNIT(limit_holds_and_frees), UNIT(times_end_in_their_order),
		UNIT(ten_thousand_waiters_cost_an_event_nothing),
		UNIT(an_event_looks_at_no_more_sets_with_ten_thousand_waiters),
		UNIT(ten_thousand_hot_ones_are_served_in_order_in_few_steps),
		UNIT(the_earliest_stays_first_whatever_happens_to_the_first),
	};

	return unit_run("TMQUEUE actions", tests, UNIT_COUNT(tests));
}
