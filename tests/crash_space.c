/*
 * crash_space - see given_crash_space.h.  CRASH_MINUTES says how long; nine minutes when it does not.  CRASH_NO_FAULTS: no write fails.
 * CRASH_CLIENTS_ONLY: servers are left alone, which shows what clients that are killed in a wait without transaction take along.
 */
#include "given_crash_space.h"

static void
nothing_is_lost_doubled_out_of_order_early_or_late(void)
{
	crash_space(crash_seconds(540), getenv("CRASH_NO_FAULTS") == NULL);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(nothing_is_lost_doubled_out_of_order_early_or_late) };

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("crash: space", tests, UNIT_COUNT(tests));
}
