/* The command lines that BBL and old configurations give to TMQUEUE. */
#include "options.h"
#include "ulog.h"
#include "unit.h"

static struct options o;
static char why[512];

#define BOOT "TMQUEUE", "-C", "dom=D", "-g", "3", "-i", "17", "-u", "node", "-U", "/srv/app/ULOG", "-m", "0"
#define PARSE(...) parse((char *[]){ __VA_ARGS__, NULL })

static int
parse(char **argv)
{
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	why[0] = '\0';
	return options_parse(argc, argv, &o, why, sizeof why);
}

static void
says_who_it_is(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-A"), 0);
	CU_ASSERT_EQUAL(o.grpno, 3);
	CU_ASSERT_EQUAL(o.srvid, 17);
	CU_ASSERT_STRING_EQUAL(o.ulogpfx, "/srv/app/ULOG");
	CU_ASSERT_EQUAL(o.timeout_s, 30);
}

static void
default_name_is_TMQUEUE(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-A"), 0);
	CU_ASSERT_EQUAL(o.n_names, 1);
	CU_ASSERT_STRING_EQUAL(o.name[0], "TMQUEUE");
	CU_ASSERT_EQUAL(PARSE(BOOT), 0);
	CU_ASSERT_EQUAL(o.n_names, 1);
	CU_ASSERT_STRING_EQUAL(o.name[0], "TMQUEUE");
}

static void
alias_replaces_the_default(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "QSPACE:TMQUEUE"), 0);
	CU_ASSERT_EQUAL(o.n_names, 1);
	CU_ASSERT_STRING_EQUAL(o.name[0], "QSPACE");
	CU_ASSERT_EQUAL(o.timeout_s, 30);
	CU_ASSERT_EQUAL(PARSE(BOOT, "-sA,B:TMQUEUE", "--"), 0);
	CU_ASSERT_EQUAL(o.n_names, 2);
	CU_ASSERT_STRING_EQUAL(o.name[1], "B");
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "A:TMQUEUE", "-s", "B,A:TMQUEUE", "--"), 0);
	CU_ASSERT_EQUAL(o.n_names, 2);
}

static void
A_adds_the_built_in_name(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "QSPACE:TMQUEUE", "-A"), 0);
	CU_ASSERT_EQUAL(o.n_names, 2);
	CU_ASSERT_STRING_EQUAL(o.name[1], "TMQUEUE");
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "TMQUEUE", "-A"), 0);
	CU_ASSERT_EQUAL(o.n_names, 1);
}

static void
other_functions_are_refused_by_name(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "QSPACE:STRING"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "STRING"));
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "QSPACE"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "QSPACE:TMQUEUE"));
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s"), -1);
}

static void
timeout_stands_after_the_dashes(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", "QSPACE:TMQUEUE", "--", "-t", "45"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 45);
	CU_ASSERT_EQUAL(PARSE(BOOT, "-A", "--", "-t5"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 5);
	CU_ASSERT_EQUAL(PARSE(BOOT, "-A", "-t", "45"), 0);	/* before them -t means something else */
	CU_ASSERT_EQUAL(o.timeout_s, 30);
}

static void
bad_timeouts_leave_the_default(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "--", "-t", "soon"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 30);
	CU_ASSERT_EQUAL(PARSE(BOOT, "--", "-t", "0"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 30);
	CU_ASSERT_EQUAL(PARSE(BOOT, "--", "-t", "2147483648"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 30);
	CU_ASSERT_EQUAL(PARSE(BOOT, "--", "-t"), 0);
	CU_ASSERT_EQUAL(o.timeout_s, 30);
}

static void
all_of_servopts_is_accepted(void)
{
	CU_ASSERT_EQUAL(PARSE(BOOT, "-r", "-t", "-h", "-l", "l", "-n", "3", "-p", "L1,2", "-P", "-S", "-R", "-G", "-e", "err", "-o",
	    "out", "-s", "Q:TMQUEUE", "--", "-t", "7"), 0);
	CU_ASSERT_EQUAL(o.nice, 3);
	CU_ASSERT_TRUE(o.hangup);
	CU_ASSERT_STRING_EQUAL(o.errfile, "err");
	CU_ASSERT_STRING_EQUAL(o.outfile, "out");
	CU_ASSERT_STRING_EQUAL(o.name[0], "Q");
	CU_ASSERT_EQUAL(o.timeout_s, 7);
}

static void
names_of_full_length_and_no_longer(void)
{
	char arg[200];

	memset(arg, 'N', 127);
	memcpy(arg + 127, ":TMQUEUE", 9);
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", arg), 0);
	CU_ASSERT_EQUAL(strlen(o.name[0]), 127);
	memset(arg, 'N', 128);
	memcpy(arg + 128, ":TMQUEUE", 9);
	CU_ASSERT_EQUAL(PARSE(BOOT, "-s", arg), -1);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(says_who_it_is), UNIT(default_name_is_TMQUEUE), UNIT(alias_replaces_the_default), UNIT(A_adds_the_built_in_name),
		UNIT(other_functions_are_refused_by_name), UNIT(timeout_stands_after_the_dashes), UNIT(bad_timeouts_leave_the_default),
		UNIT(all_of_servopts_is_accepted), UNIT(names_of_full_length_and_no_longer),
	};
	char dir[] = "/tmp/tmqoptXXXXXX", log[64];

	if (mkdtemp(dir) == NULL)
		return 2;
	snprintf(log, sizeof log, "%s/ULOG", dir);
	ulog_prefix(log);	/* warnings go there */
	int rc = unit_run("TMQUEUE options", tests, UNIT_COUNT(tests));
	snprintf(log, sizeof log, "rm -rf %s", dir);
	return system(log) == 0 ? rc : 2;
}
