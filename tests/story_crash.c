/*
 * story_crash - a short run of what `make crash` does at length.
 */
#include "given_crash_space.h"

static void
what_was_acknowledged_survives_kills_of_the_queue_manager(void)
{
	crash_queue(10);
}

static void
every_request_has_one_reply_whoever_is_killed(void)
{
	crash_forward(8);
}

static void
nothing_is_lost_doubled_out_of_order_early_or_late(void)
{
	crash_space(3, false);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(what_was_acknowledged_survives_kills_of_the_queue_manager),
		UNIT(every_request_has_one_reply_whoever_is_killed),
		UNIT(nothing_is_lost_doubled_out_of_order_early_or_late),
	};

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("crash", tests, UNIT_COUNT(tests));
}
