/*
 * crash_boot - see given_crash.h.  CRASH_ROUNDS says how many; two hundred when it does not.  CRASH_SEED repeats a run's dice.
 */
#include "given_crash.h"

static void
two_hundred_rounds_of_boot_load_and_shutdown_lose_nothing_and_leave_nothing(void)
{
	crash_boot(crash_rounds(200));
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(two_hundred_rounds_of_boot_load_and_shutdown_lose_nothing_and_leave_nothing) };

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("crash: boot", tests, UNIT_COUNT(tests));
}
