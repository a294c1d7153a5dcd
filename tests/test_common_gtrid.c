/*
 * The id of a transaction, as people see it.
 */
#include "gtrid.h"
#include "unit.h"

static void
hex_comes_back_as_the_same_bytes(void)
{
	uint8_t id[WIRE_GTRID_MAX], back[WIRE_GTRID_MAX], len;
	char hex[GTRID_HEX];

	for (int i = 0; i < WIRE_GTRID_MAX; i++)
		id[i] = (uint8_t)(i * 7 + 250);
	for (size_t n = 1; n <= WIRE_GTRID_MAX; n++) {
		gtrid_to_hex(id, n, hex);
		CU_ASSERT_EQUAL(strlen(hex), 2 * n);
		CU_ASSERT_EQUAL(gtrid_from_hex(hex, back, &len), 0);
		CU_ASSERT_TRUE(len == n && memcmp(id, back, n) == 0);
	}
}

static void
what_is_no_id_is_refused(void)
{
	static const char *const bad[] = { "", "0", "0g", "0A", "00 0", "-1", "+1" };
	uint8_t id[WIRE_GTRID_MAX], len;
	char longer[2 * WIRE_GTRID_MAX + 3];

	for (size_t i = 0; i < UNIT_COUNT(bad); i++)
		CU_ASSERT_EQUAL(gtrid_from_hex(bad[i], id, &len), -1);
	memset(longer, '0', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CU_ASSERT_EQUAL(gtrid_from_hex(longer, id, &len), -1);
}

static void
its_numbers_are_those_of_the_user_log(void)
{
	/* time, process, count; then what is random */
	static const uint8_t ours[] = { 0, 6, 0x4b, 0xd1, 0x9a, 0xa7, 0xf3, 1, 0, 0, 0x2b, 0xb8, 0, 0, 0, 7, 9, 9 };
	/* by XA: mark, formatID, length, the global part */
	static const uint8_t xa[] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 5, 1, 2, 3, 4, 5, 6 };
	unsigned long w[3];

	gtrid_words(ours, sizeof ours, w);
	CU_ASSERT_TRUE(w[0] == 0x9aa7f301 && w[1] == 0x2bb8 && w[2] == 7);
	gtrid_words(xa, sizeof xa, w);
	CU_ASSERT_TRUE(w[0] == 0x01020304 && w[1] == 0x05060000 && w[2] == 0);
	gtrid_words(ours, 3, w);
	CU_ASSERT_TRUE(w[0] == 0 && w[1] == 0 && w[2] == 0);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(hex_comes_back_as_the_same_bytes),
		UNIT(what_is_no_id_is_refused),
		UNIT(its_numbers_are_those_of_the_user_log),
	};

	return unit_run("gtrid", tests, UNIT_COUNT(tests));
}
