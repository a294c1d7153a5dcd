/*
 * Messages: what is put is got, in order, by identifier, after a restart.
 */
#include "given_space.h"

static void
first_in_first_out(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put(g, "orders", "one"), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "two"), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(put(g, "nowhere", "x"), QMEBADQUEUE);
	given_done(g);
}

static void
a_restart_keeps_messages_counters_and_order(void)
{
	struct given_space *g = given_space(NULL);
	char body[32];

	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(body, sizeof body, "message %d", i);
		CU_ASSERT_EQUAL(put(g, "orders", body), 0);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "message 0");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 2999);
	reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 2999);
	for (int i = 1; i < 3000; i++) {
		snprintf(body, sizeof body, "message %d", i);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").bytes, 0);
	given_done(g);
}

int
main(void)
{
	CU_TestInfo tests[] = {
		{ "first in, first out", first_in_first_out },
		{ "a restart keeps messages, counters and order", a_restart_keeps_messages_counters_and_order },
		CU_TEST_INFO_NULL,
	};
	return run_suite("qspace messages", tests);
}
