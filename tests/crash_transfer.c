/*
 * crash_transfer - fifty clients, two queue spaces, one service, and everybody is killed now and then.
 */
#include "given_transfer.h"

static void	/* TRANSFER_SECONDS=600 for the long run. */
the_sum_stays_whoever_is_killed(void)
{
	transfer_run(transfer_seconds(120), 10, 5, 800);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(the_sum_stays_whoever_is_killed) };

	if (transfer_is_client(argc, argv))
		return transfer_client(argv);
	return unit_run("crash: transfer", tests, UNIT_COUNT(tests));
}
