/*
 * crash_matrix - one process of a distributed transaction stops or dies, at every point of the protocol.
 */
#include "given_matrix.h"

static void	/* MATRIX_STRIDE=10: every tenth round. */
all_or_nothing_whoever_dies_wherever(void)
{
	const char *stride = getenv("MATRIX_STRIDE");

	matrix_run(stride != NULL && atoi(stride) > 0 ? atoi(stride) : 1, 2);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(all_or_nothing_whoever_dies_wherever) };

	if (matrix_is_client(argc, argv))
		return matrix_client(argv);
	return unit_run("crash: matrix", tests, UNIT_COUNT(tests));
}
