/*
 * The order in which requests that wait are served.
 */
#include "rqueue.h"
#include "unit.h"

#define MANY 400

struct request { struct rqueue_entry in; int no, prio; };

static int
take(struct rqueue *q)
{
	struct rqueue_entry *e = rqueue_take(q);

	return e == NULL ? -1 : ((struct request *)(void *)e)->no;
}

static void
equals_come_in_order_of_arrival(void)
{
	struct rqueue q = { 0 };
	struct request r[MANY] = { 0 };

	for (int i = 0; i < MANY; i++) {
		r[i].no = i;
		rqueue_add(&q, &r[i].in, 50);
	}
	for (int i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(take(&q), i);
	CU_ASSERT_EQUAL(take(&q), -1);
}

static void
the_highest_priority_is_first_and_each_tenth_the_oldest(void)
{
	struct rqueue q = { 0 };
	struct request r[40] = { 0 };

	for (int i = 0; i < 40; i++) {
		r[i].no = i;
		rqueue_add(&q, &r[i].in, i < 20 ? 1 : 100);
	}
	for (int i = 0, low = 0, high = 20; i < 20; i++) {
		int expected = (i + 1) % RQUEUE_OLDEST_EVERY == 0 ? low++ : high++;

		CU_ASSERT_EQUAL(take(&q), expected);
	}
	CU_ASSERT_EQUAL(q.n, 20);
}

static void
all_priorities_are_told_apart(void)
{
	struct rqueue q = { 0 };
	struct request r[RQUEUE_PRIO_MAX + 1] = { 0 };

	for (int p = 1; p <= RQUEUE_PRIO_MAX; p++) {
		r[p].no = p;
		rqueue_add(&q, &r[p].in, p);
	}
	for (int p = RQUEUE_PRIO_MAX, i = 1, low = 1; i <= 80; i++) {
		int expected = i % RQUEUE_OLDEST_EVERY == 0 ? low++ : p--;

		CU_ASSERT_EQUAL(take(&q), expected);
	}
}

static void
one_outside_counts_as_the_default(void)
{
	struct rqueue q = { 0 };
	struct request r[4] = { { .no = 0 }, { .no = 1 }, { .no = 2 }, { .no = 3 } };

	rqueue_add(&q, &r[0].in, 0);
	rqueue_add(&q, &r[1].in, 101);
	rqueue_add(&q, &r[2].in, 51);
	rqueue_add(&q, &r[3].in, 49);
	CU_ASSERT_EQUAL(take(&q), 2);
	CU_ASSERT_EQUAL(take(&q), 0);
	CU_ASSERT_EQUAL(take(&q), 1);
	CU_ASSERT_EQUAL(take(&q), 3);
}

/* Against a model that looks at everything. */
static void
any_mixture_agrees_with_a_plain_list(void)
{
	struct rqueue q = { 0 };
	static struct request r[MANY];
	int list[MANY], n = 0, next = 0, taken = 0;
	unsigned seed = 7;

	for (int step = 0; step < 20000; step++) {
		int what = rand_r(&seed) % 5, at = 0;

		if (what < 2 && n < MANY) {
			while (r[next].in.prio != 0)
				next = (next + 1) % MANY;
			r[next].no = next;
			r[next].prio = rand_r(&seed) % 100 + 1;
			rqueue_add(&q, &r[next].in, r[next].prio);
			list[n++] = next;
			continue;
		}
		if (n == 0) {
			CU_ASSERT_EQUAL(take(&q), -1);
			continue;
		}
		if (what == 2)
			rqueue_remove(&q, &r[list[at = rand_r(&seed) % n]].in);
		else {
			if (++taken < RQUEUE_OLDEST_EVERY) {
				for (int i = 1; i < n; i++)
					if (r[list[i]].prio > r[list[at]].prio)
						at = i;
			} else
				taken = 0;
			CU_ASSERT_EQUAL(take(&q), list[at]);
		}
		n--;
		memmove(&list[at], &list[at + 1], (size_t)(n - at) * sizeof *list);
		CU_ASSERT_EQUAL(q.n, (size_t)n);
		CU_ASSERT_TRUE(n == 0 ? rqueue_oldest(&q) == NULL : rqueue_oldest(&q) == &r[list[0]].in);
	}
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(equals_come_in_order_of_arrival),
		UNIT(the_highest_priority_is_first_and_each_tenth_the_oldest),
		UNIT(all_priorities_are_told_apart),
		UNIT(one_outside_counts_as_the_default),
		UNIT(any_mixture_agrees_with_a_plain_list),
	};

	return unit_run("request queue", tests, UNIT_COUNT(tests));
}
