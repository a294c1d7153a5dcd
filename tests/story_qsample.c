/*
 * story_qsample - the sample runs as its README says: copied, with atmiq's bin directory on PATH and nothing else set.
 */
#include "given.h"

static void
the_sample_runs_and_leaves_only_what_it_came_with(void)
{
	struct given *g = given_directory();
	char *out;

	out = given_ok(g, NULL, "cp -r %s/apps/qsample . && cd qsample && ls >../before && env -i HOME=/ PATH=%s/bin:/usr/bin:/bin "
	    "CC=\"cc $CFLAGS\" ASAN_OPTIONS=\"$ASAN_OPTIONS\" TSAN_OPTIONS=\"$TSAN_OPTIONS\" LSAN_OPTIONS=\"$LSAN_OPTIONS\" "
	    "UBSAN_OPTIONS=\"$UBSAN_OPTIONS\" SAMPLE_KEY=%ld SAMPLE_QKEY=%ld ./runsample 2>&1; echo status $?; ls >../after",
	    given_tuxdir(g), given_tuxdir(g), given_ipckey(g), given_ipckey(g) + 1);
	if (!has(out, "status 0"))
		fprintf(stderr, "\n%s\n", out);
	CU_ASSERT_TRUE(has(out, "before: these words were typed in lower case"));
	CU_ASSERT_TRUE(has(out, "after:  THESE WORDS WERE TYPED IN LOWER CASE"));
	CU_ASSERT_TRUE(has(out, "status 0"));
	CU_ASSERT_FALSE(has(out, "cannot remove"));		/* stdout, stderr, TLOG, ULOG: all had been made */
	CU_ASSERT_FALSE(has(out, "No such file"));
	free(out);
	out = given_ok(g, NULL, "diff before after");
	CU_ASSERT_STRING_EQUAL(out, "");
	free(out);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(the_sample_runs_and_leaves_only_what_it_came_with) };

	return unit_run("qsample", tests, UNIT_COUNT(tests));
}
