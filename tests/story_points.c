/*
 * story_points - the short form of crash_matrix and crash_transfer.
 */
#include "given_matrix.h"
#include "given_transfer.h"

static void	/* Some of the rounds of crash_matrix, of all kinds. */
all_or_nothing_at_some_points(void)
{
	matrix_run(29, 2);
}

static void	/* Fewer clients than in crash_transfer, for some seconds, and everybody is killed at least once. */
the_sum_stays(void)
{
	transfer_run(transfer_seconds(6), 3, 4, 100);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(all_or_nothing_at_some_points), UNIT(the_sum_stays) };

	if (matrix_is_client(argc, argv))
		return matrix_client(argv);
	if (transfer_is_client(argc, argv))
		return transfer_client(argv);
	return unit_run("story: crashes in transactions", tests, UNIT_COUNT(tests));
}
