/*
 * crash_queue - see given_crash.h.  CRASH_KILLS says how often; a hundred times when it does not.
 */
#include "given_crash.h"

static void
what_was_acknowledged_survives_kills_of_the_queue_manager(void)
{
	crash_queue(crash_kills(100));
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(what_was_acknowledged_survives_kills_of_the_queue_manager) };

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("crash: queue", tests, UNIT_COUNT(tests));
}
