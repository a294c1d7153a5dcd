/*
 * crash_forward - see given_crash.h.  CRASH_KILLS says how often; a hundred times when it does not.
 */
#include "given_crash.h"

static void
every_request_has_one_reply_whoever_is_killed(void)
{
	crash_forward(crash_kills(100));
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(every_request_has_one_reply_whoever_is_killed) };

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("crash: forward", tests, UNIT_COUNT(tests));
}
