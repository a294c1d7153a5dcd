/*
 * story_boot_rounds - a short run of what crash_boot does at length: each way to shut down once.
 */
#include "given_crash.h"

static void
rounds_of_boot_load_and_shutdown_lose_nothing_and_leave_nothing(void)
{
	crash_boot(17);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(rounds_of_boot_load_and_shutdown_lose_nothing_and_leave_nothing) };

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("boot rounds", tests, UNIT_COUNT(tests));
}
