/*
 * unit.h - what every test program has: CUnit, and a main that runs a table of tests.
 *
 *     int main(void)
 *     {
 *             static const struct unit_test tests[] = { UNIT(a_message_comes_out_as_it_went_in), ... };
 *             return unit_run("qspace", tests, UNIT_COUNT(tests));
 *     }
 *
 * The exit status is 0 when every test passed.  Tests that take long are marked UNIT_LONG and run when TEST_LONG is set.
 */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

struct unit_test { const char *name; void (*run)(void); bool is_long; };
#define UNIT(f) { #f, f, false }
#define UNIT_LONG(f) { #f, f, true }
#define UNIT_COUNT(a) (sizeof (a) / sizeof (a)[0])

static inline int
unit_run(const char *suite_name, const struct unit_test *tests, size_t n)
{
	const char *only = getenv("TEST_ONLY");		/* run the tests whose name holds this text */
	CU_pSuite suite;
	unsigned failed;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS || (suite = CU_add_suite(suite_name, NULL, NULL)) == NULL)
		return 2;
	for (i = 0; i < n; i++) {
		if ((only != NULL && strstr(tests[i].name, only) == NULL) || (tests[i].is_long && getenv("TEST_LONG") == NULL))
			continue;
		if (CU_add_test(suite, tests[i].name, tests[i].run) == NULL)
			return 2;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	return failed == 0 ? 0 : 1;
}

#endif
