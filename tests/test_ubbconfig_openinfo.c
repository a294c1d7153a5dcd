/*
 * OPENINFO of a queue group: TUXEDO/QM:<device>:<queue space>.
 */
#include "unit.h"
#include "ubb.h"

static char device[64], space[16];

static bool
splits(const char *openinfo, const char *want_device, const char *want_space)
{
	return openinfo_split(openinfo, device, sizeof device, space, sizeof space) == 0 &&
	       strcmp(device, want_device) == 0 && strcmp(space, want_space) == 0;
}

static bool
refused(const char *openinfo)
{
	return openinfo_split(openinfo, device, sizeof device, space, sizeof space) == -1;
}

static void
device_and_space_come_apart(void)
{
	CU_ASSERT_TRUE(splits("TUXEDO/QM:/home/app/QUE:QSPACE", "/home/app/QUE", "QSPACE"));
	CU_ASSERT_TRUE(splits("TUXEDO/QM:/home/app/QUE;QSPACE", "/home/app/QUE", "QSPACE"));
	CU_ASSERT_TRUE(splits("TUXEDO/QM:C:\\app\\QUE;QSPACE", "C:\\app\\QUE", "QSPACE"));
	CU_ASSERT_TRUE(splits("TUXEDO/QM;/home/app/QUE;QSPACE", "/home/app/QUE", "QSPACE"));
	CU_ASSERT_TRUE(splits(" TUXEDO/QM:/a:b:S  ", "/a:b", "S"));
}

static void
other_forms_are_refused(void)
{
	CU_ASSERT_TRUE(refused(""));
	CU_ASSERT_TRUE(refused("NONE"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/dev"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/dev:"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/dev: "));
	CU_ASSERT_TRUE(refused("TUXEDO/QM::S"));
	CU_ASSERT_TRUE(refused("TUXEDO/QMX:/dev:S"));
	CU_ASSERT_TRUE(refused("Oracle_XA:x:y"));
}

static void
what_does_not_fit_is_refused(void)
{
	CU_ASSERT_TRUE(splits("TUXEDO/QM:/d:123456789012345", "/d", "123456789012345"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/d:1234567890123456"));
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/23456789012345678901234567890123456789012345678901234567890123:S") == false);
	CU_ASSERT_TRUE(refused("TUXEDO/QM:/234567890123456789012345678901234567890123456789012345678901234:S"));
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(device_and_space_come_apart), UNIT(other_forms_are_refused),
		UNIT(what_does_not_fit_is_refused) };

	return unit_run("ubbconfig: OPENINFO", tests, UNIT_COUNT(tests));
}
