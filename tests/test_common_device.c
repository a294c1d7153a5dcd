/*
 * The device file: what crdl, dsdl, chdl and the table of contents do to it, and what it says to files that are none.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "device_impl.h"
#include "tlog.h"

static char dir[64], dev[96];
static char *why, *note;

static void
given_directory(void)
{
	snprintf(dir, sizeof dir, "/tmp/device.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(dev, sizeof dev, "%s/QUE", dir);
}

static void
given_done(void)
{
	char cmd[128];

	free(why);
	free(note);
	why = note = NULL;
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
}

static bool
says(const char *part)
{
	bool found = why != NULL && strstr(why, part) != NULL;

	if (!found)
		printf("\n  said \"%s\", expected \"%s\"", why != NULL ? why : "nothing", part);
	free(why);
	why = NULL;
	return found;
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static bool
exists(const char *suffix)
{
	char path[160];

	snprintf(path, sizeof path, "%s%s", dev, suffix);
	return access(path, F_OK) == 0;
}

static void
first_entry_makes_the_device(void)
{
	struct device d;

	given_directory();
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_NOENT);
	CU_ASSERT_TRUE(says("no such device"));
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_OK);
	CU_ASSERT_PTR_NULL(note);
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(d.n_entries, 1);
	CU_ASSERT_STRING_EQUAL(d.entry[0].name, dev);
	CU_ASSERT_EQUAL(d.entry[0].size, 400);
	CU_ASSERT_EQUAL(device_free_pages(&d), 374);
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_EXIST);
	CU_ASSERT_TRUE(says("overlaps entry 0"));
	given_done();
}

static void
size_defaults_to_a_thousand_and_name_to_the_device(void)
{
	struct device d;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, NULL, 0, 0, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(d.entry[0].size, 1000);
	CU_ASSERT_STRING_EQUAL(d.entry[0].name, dev);
	given_done();
}

static void
first_entry_must_be_the_device_at_offset_0(void)
{
	char other[128];

	given_directory();
	snprintf(other, sizeof other, "%s/OTHER", dir);
	CU_ASSERT_EQUAL(device_add(dev, other, 0, 400, &why, NULL), DEVE_INVAL);
	CU_ASSERT_TRUE(says("must be the device itself"));
	CU_ASSERT_FALSE(exists(".d"));
	CU_ASSERT_EQUAL(device_add(dev, dev, 10, 400, &why, NULL), DEVE_INVAL);
	CU_ASSERT_TRUE(says("offset 0"));
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 26, &why, NULL), DEVE_INVAL);
	CU_ASSERT_TRUE(says("too few"));
	CU_ASSERT_FALSE(exists(""));
	CU_ASSERT_FALSE(exists(".d"));
	given_done();
}

static void
other_spellings_of_the_name_are_the_same_device(void)
{
	char dotted[160], link[160];
	struct device d;

	given_directory();
	snprintf(dotted, sizeof dotted, "%s/./QUE", dir);
	snprintf(link, sizeof link, "%s/LINK", dir);
	CU_ASSERT_EQUAL(device_add(dotted, dev, 0, 400, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(symlink(dev, link), 0);
	CU_ASSERT_EQUAL(device_table_add(link, "S", "qspace", 100, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_pages(&d, "S", "qspace"), 100);
	given_done();
}

static void
tables_take_pages_and_give_them_back(void)
{
	struct device d;
	struct device_free piece[4];

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 2000, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "ORDERS", "qspace", 800, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "ORDERS", "qspace", 8, &why), DEVE_EXIST);
	CU_ASSERT_TRUE(says("of the name ORDERS already"));
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_free_map(&d, 0, piece, 4), 1);
	CU_ASSERT_EQUAL(piece[0].addr, 826);
	CU_ASSERT_EQUAL(piece[0].size, 1174);
	CU_ASSERT_EQUAL(device_table_add(dev, "BIG", "qspace", 1175, &why), DEVE_NOSPACE);
	CU_ASSERT_TRUE(says("1175 pages wanted for BIG, 1174 free"));
	CU_ASSERT_EQUAL(device_table_remove(dev, "ORDERS", "qspace", &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_remove(dev, "ORDERS", "qspace", &why), DEVE_NOSUCH);
	CU_ASSERT_TRUE(says("no qspace of the name ORDERS"));
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_free_pages(&d), 1974);
	given_done();
}

static void
sizes_of_the_field_fit(void)
{
	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 200, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "QSPACE", "qspace", 100, &why), DEVE_OK);
	given_done();
	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 1000, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "QSPACE", "qspace", 800, &why), DEVE_OK);
	given_done();
}

static void
table_may_lie_in_pieces_and_grow(void)
{
	struct device d;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 126, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_add(dev, dev, 200, 50, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "S", "qspace", 120, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_extend(dev, "S", "qspace", 8, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_extend(dev, "T", "qspace", 8, &why), DEVE_NOSUCH);
	CU_ASSERT_TRUE(says("no qspace of the name T"));
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_pages(&d, "S", "qspace"), 128);
	CU_ASSERT_EQUAL(d.n_tables, 3);
	CU_ASSERT_EQUAL(d.table[1].entry, 1);
	CU_ASSERT_EQUAL(d.table[1].offset, 200);
	CU_ASSERT_EQUAL(d.table[2].extent, 2);
	given_done();
}

static void
entries_go_when_nothing_lies_in_them(void)
{
	struct device d;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 126, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_add(dev, "/spare", 0, 50, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_add(dev, "/more", 0, 500, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "S", "qspace", 300, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_remove(dev, 7, &why), DEVE_NOSUCH);
	CU_ASSERT_TRUE(says("no entry 7 in its device list (0 to 2)"));
	CU_ASSERT_EQUAL(device_remove(dev, 2, &why), DEVE_INUSE);
	CU_ASSERT_TRUE(says("entry 2 holds qspace S"));
	CU_ASSERT_EQUAL(device_remove(dev, 0, &why), DEVE_INUSE);
	CU_ASSERT_TRUE(says("2 other entries are left"));
	CU_ASSERT_EQUAL(device_remove(dev, 1, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(d.table[0].entry, 1);
	CU_ASSERT_STRING_EQUAL(d.entry[1].name, "/more");
	CU_ASSERT_EQUAL(device_table_remove(dev, "S", "qspace", &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_remove(dev, 1, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_remove(dev, 0, &why), DEVE_OK);
	CU_ASSERT_FALSE(exists(""));
	CU_ASSERT_FALSE(exists(".d"));
	given_done();
}

static void
at_most_25_entries(void)
{
	char name[32];

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 126, &why, NULL), DEVE_OK);
	for (int i = 1; i < DEVICE_MAX_ENTRIES; i++) {
		snprintf(name, sizeof name, "/spare%d", i);
		CU_ASSERT_EQUAL(device_add(dev, name, 0, 50, &why, NULL), DEVE_OK);
	}
	CU_ASSERT_EQUAL(device_add(dev, "/spare", 0, 50, &why, NULL), DEVE_NOSPACE);
	CU_ASSERT_TRUE(says("is full (25 entries)"));
	given_done();
}

static void
renamed_entry_keeps_its_tables(void)
{
	struct device d;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(device_table_add(dev, "S", "qspace", 100, &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_rename(dev, 0, "/new/place", &why), DEVE_OK);
	CU_ASSERT_EQUAL(device_rename(dev, 0, "two\nlines", &why), DEVE_INVAL);
	CU_ASSERT_TRUE(says("printable"));
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_STRING_EQUAL(d.entry[0].name, "/new/place");
	CU_ASSERT_EQUAL(device_table_pages(&d, "S", "qspace"), 100);
	given_done();
}

/* Scripts delete the device file and make it anew; the data of before is not destroyed by that. */
static void
older_data_is_moved_aside(void)
{
	char path[160];

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_OK);
	snprintf(path, sizeof path, "%s.d/S", dev);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	unlink(dev);
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(note);
	CU_ASSERT_PTR_NOT_NULL(strstr(note, "QUE.d.old"));
	free(note);
	note = NULL;
	CU_ASSERT_TRUE(exists(".d.old/S"));
	CU_ASSERT_FALSE(exists(".d/S"));
	/* Once more: the last such is kept.  An empty directory is nothing to keep. */
	unlink(dev);
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_OK);
	CU_ASSERT_PTR_NULL(note);
	CU_ASSERT_TRUE(exists(".d.old/S"));
	given_done();
}

static void
data_in_use_is_not_moved_aside(void)
{
	char path[160];
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_OK);
	snprintf(path, sizeof path, "%s.d/S", dev);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s.d/S/lock", dev);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CU_ASSERT_EQUAL(fcntl(fd, F_OFD_SETLK, &l), 0);
	unlink(dev);
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, &note), DEVE_INUSE);
	CU_ASSERT_TRUE(says("still serves S"));
	CU_ASSERT_TRUE(exists(".d/S/lock"));
	close(fd);
	given_done();
}

static void
directory_of_another_device_is_refused(void)
{
	struct device d;
	char path[160];

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 400, &why, NULL), DEVE_OK);
	snprintf(path, sizeof path, "%s.d/uuid", dev);
	write_file(path, "00000000-0000-4000-8000-000000000000\n");
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_FORMAT);
	CU_ASSERT_TRUE(says("belongs to another device"));
	CU_ASSERT_EQUAL(device_table_add(dev, "S", "qspace", 100, &why), DEVE_FORMAT);
	CU_ASSERT_TRUE(says("belongs to another device"));
	given_done();
}

static void
other_files_are_told_from_devices(void)
{
	static const struct { const char *text; int code; const char *says; } files[] = {
		{ "", DEVE_FORMAT, "QUE:1: not a device file" },
		{ "#!/bin/sh\n", DEVE_FORMAT, "QUE:1: not a device file" },
		{ "atmiq-device x\n", DEVE_FORMAT, "no version number" },
		{ "atmiq-device 2\nwhatever\n", DEVE_VERSION,
		    "QUE:1: device file of version 2; this program reads and writes version 1" },
		{ "atmiq-device 1\n", DEVE_FORMAT, "QUE:1: damaged device file: it ends too early" },
		{ "atmiq-device 1\nuuid 00000000-0000-4000-8000-000000000000\nend\n", DEVE_FORMAT,
		    "QUE:3: damaged device file: no uuid or no entry" },
		{ "atmiq-device 1\nuuid 00000000-0000-4000-8000-000000000000\nentry 0 400 /a\n", DEVE_FORMAT,
		    "QUE:3: damaged device file: it ends too early" },
		{ "atmiq-device 1\nuuid 00000000-0000-4000-8000-000000000000\nentry 0 -4 /a\nend\n", DEVE_FORMAT,
		    "QUE:3: damaged" },
		{ "atmiq-device 1\nuuid 00000000-0000-4000-8000-000000000000\nentry 0 400 /a\ntable qspace 0 390 20 0 S\nend\n", DEVE_FORMAT, "QUE:4: damaged" },
		{ "atmiq-device 1\nuuid 00000000-0000-4000-8000-000000000000\nentry 0 400 /a\nend\nmore\n",
		    DEVE_FORMAT, "text behind its end" },
	};
	struct device d;

	given_directory();
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		write_file(dev, files[i].text);
		CU_ASSERT_EQUAL(device_read(dev, &d, &why), files[i].code);
		CU_ASSERT_TRUE(says(files[i].says));
		CU_ASSERT_EQUAL(device_table_add(dev, "S", "qspace", 100, &why), files[i].code);
		CU_ASSERT_TRUE(says(files[i].says));
		CU_ASSERT_EQUAL(device_add(dev, dev, 0, 100, &why, NULL), files[i].code);
		CU_ASSERT_TRUE(says(files[i].says));
	}
	CU_ASSERT_FALSE(exists(".d"));
	CU_ASSERT_EQUAL(device_read(dir, &d, &why), DEVE_FORMAT);
	CU_ASSERT_TRUE(says("regular file"));
	given_done();
}

static void
missing_directory_is_named(void)
{
	struct device d;
	char path[160];

	given_directory();
	snprintf(path, sizeof path, "%s/no/QUE", dir);
	CU_ASSERT_EQUAL(device_read(path, &d, &why), DEVE_NOENT);
	CU_ASSERT_TRUE(says("/no/"));
	CU_ASSERT_EQUAL(device_add(path, path, 0, 400, &why, NULL), DEVE_NOENT);
	CU_ASSERT_TRUE(says("/no/"));
	given_done();
}

/* Two administrators at once: every change of both is there afterwards. */
static void
writers_take_turns(void)
{
	struct device d;
	int status;

	given_directory();
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 2000, &why, NULL), DEVE_OK);
	for (int p = 0; p < 2; p++)
		if (fork() == 0) {
			char name[16];
			for (int i = 0; i < 20; i++) {
				snprintf(name, sizeof name, "T%d.%d", p, i);
				if (device_table_add(dev, name, "qspace", 4, NULL) != DEVE_OK)
					_exit(1);
			}
			_exit(0);
		}
	for (int p = 0; p < 2; p++) {
		CU_ASSERT_TRUE(wait(&status) > 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	CU_ASSERT_EQUAL(device_read(dev, &d, &why), DEVE_OK);
	CU_ASSERT_EQUAL(d.n_tables, 40);
	CU_ASSERT_EQUAL(device_free_pages(&d), 1974 - 160);
	given_done();
}

static void
tlog_is_a_table_of_its_own_kind(void)
{
	given_directory();
	CU_ASSERT_EQUAL(tlog_exists(dev, "TLOG"), DEVE_NOENT);
	CU_ASSERT_EQUAL(device_add(dev, dev, 0, 200, &why, NULL), DEVE_OK);
	CU_ASSERT_EQUAL(tlog_exists(dev, "TLOG"), 0);
	CU_ASSERT_EQUAL(tlog_create(dev, "TLOG", 100, &why), DEVE_OK);
	CU_ASSERT_EQUAL(tlog_exists(dev, "TLOG"), 1);
	CU_ASSERT_EQUAL(tlog_create(dev, "TLOG", 100, &why), DEVE_EXIST);
	CU_ASSERT_TRUE(says("tlog of the name TLOG already"));
	CU_ASSERT_EQUAL(device_table_add(dev, "TLOG", "qspace", 20, &why), DEVE_OK);
	CU_ASSERT_EQUAL(tlog_destroy(dev, "TLOG", &why), DEVE_OK);
	CU_ASSERT_EQUAL(tlog_exists(dev, "TLOG"), 0);
	given_done();
}

/* What format writes, parse reads; and every truncation of it is noticed. */
static void
text_has_a_round_trip(void)
{
	struct device d = { 0 }, back = { 0 };
	char *text;
	size_t n;

	device_uuid_make(d.uuid);
	d.n_entries = 2;
	snprintf(d.entry[0].name, sizeof d.entry[0].name, "/a name with blanks");
	d.entry[0].size = 500;
	snprintf(d.entry[1].name, sizeof d.entry[1].name, "/b");
	d.entry[1].offset = 7;
	d.entry[1].size = 100;
	d.n_tables = 1;
	snprintf(d.table[0].name, sizeof d.table[0].name, "SPACE 1");
	snprintf(d.table[0].kind, sizeof d.table[0].kind, "qspace");
	d.table[0].entry = 1;
	d.table[0].offset = 7;
	d.table[0].pages = 100;
	text = device_text_format(&d);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	n = strlen(text);
	CU_ASSERT_EQUAL(device_text_parse(text, n, "text", &back, &why), DEVE_OK);
	CU_ASSERT_EQUAL(memcmp(&d, &back, sizeof d), 0);
	for (size_t cut = 0; cut < n; cut++) {
		char *part = strndup(text, cut);
		CU_ASSERT_NOT_EQUAL(device_text_parse(part, cut, "text", &back, NULL), DEVE_OK);
		free(part);
	}
	free(text);
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		{ "the first entry makes the device", first_entry_makes_the_device },
		{ "size defaults to 1000, name to the device", size_defaults_to_a_thousand_and_name_to_the_device },
		{ "the first entry must be the device at offset 0", first_entry_must_be_the_device_at_offset_0 },
		{ "other spellings of the name are the same device", other_spellings_of_the_name_are_the_same_device },
		{ "tables take pages and give them back", tables_take_pages_and_give_them_back },
		{ "sizes of the field fit", sizes_of_the_field_fit },
		{ "a table may lie in pieces, and grow", table_may_lie_in_pieces_and_grow },
		{ "entries go when nothing lies in them", entries_go_when_nothing_lies_in_them },
		{ "at most 25 entries", at_most_25_entries },
		{ "a renamed entry keeps its tables", renamed_entry_keeps_its_tables },
		{ "older data is moved aside", older_data_is_moved_aside },
		{ "data in use is not moved aside", data_in_use_is_not_moved_aside },
		{ "a directory of another device is refused", directory_of_another_device_is_refused },
		{ "other files are told from devices", other_files_are_told_from_devices },
		{ "a missing directory is named", missing_directory_is_named },
		{ "writers take turns", writers_take_turns },
		{ "the tlog is a table of its own kind", tlog_is_a_table_of_its_own_kind },
		{ "the text has a round trip", text_has_a_round_trip },
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = { { "device", NULL, NULL, NULL, NULL, tests }, CU_SUITE_INFO_NULL };
	unsigned failed;

	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 2;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
