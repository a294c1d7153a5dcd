/* What configurations write after -- in the CLOPT of TMQFORWARD, and where it may run. */
#include "check.h"
#include "options.h"
#include "unit.h"

static struct options o;
static char why[512];

#define PARSE(...) parse((char *[]){ "TMQFORWARD", __VA_ARGS__, NULL })

static int
count(char **argv)
{
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	return argc;
}

static int
parse(char **argv)
{
	return options_parse(count(argv), argv, &o, why, sizeof why);
}

static void
defaults_are_the_documented_ones(void)
{
	CU_ASSERT_EQUAL(PARSE("-q", "ORDERS"), 0);
	CU_ASSERT_EQUAL(o.n_queues, 1);
	CU_ASSERT_STRING_EQUAL(o.queue[0], "ORDERS");
	CU_ASSERT_EQUAL(o.trantime_s, 60);
	CU_ASSERT_EQUAL(o.idle_s, 30);
	CU_ASSERT_FALSE(o.exit_when_empty || o.delete_failed || o.notran || o.noreply);
	CU_ASSERT_EQUAL(o.n_warnings, 0);
}

static void
forms_of_the_field(void)
{
	CU_ASSERT_EQUAL(PARSE("-i", "2", "-qX", "-t60"), 0);
	CU_ASSERT_STRING_EQUAL(o.queue[0], "X");
	CU_ASSERT_EQUAL(o.idle_s, 2);
	CU_ASSERT_EQUAL(PARSE("-e", "-n", "-d", "-q", "X"), 0);
	CU_ASSERT_TRUE(o.exit_when_empty && o.delete_failed && o.notran);
	CU_ASSERT_EQUAL(PARSE("-q", "A,B", "-i", "10"), 0);
	CU_ASSERT_EQUAL(o.n_queues, 2);
	CU_ASSERT_STRING_EQUAL(o.queue[1], "B");
	CU_ASSERT_EQUAL(PARSE("-qA,,B,", "-i0", "-f", "3"), 0);
	CU_ASSERT_EQUAL(o.n_queues, 2);
	CU_ASSERT_EQUAL(o.idle_s, 0);
	CU_ASSERT_TRUE(o.noreply);
	CU_ASSERT_EQUAL(o.pause_s, 3);
	CU_ASSERT_EQUAL(PARSE("-edn", "-b5", "-q", "X"), 0);
	CU_ASSERT_TRUE(o.exit_when_empty && o.delete_failed && o.notran);
	CU_ASSERT_EQUAL(o.blocktime_s, 5);
	CU_ASSERT_EQUAL(o.n_warnings, 0);
}

static void
bad_numbers_warn_and_leave_the_default(void)
{
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-t", "soon", "-i", "often"), 0);
	CU_ASSERT_EQUAL(o.trantime_s, 60);
	CU_ASSERT_EQUAL(o.idle_s, 30);
	CU_ASSERT_EQUAL_FATAL(o.n_warnings, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[0], ":1602: WARN: -t soon"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[1], ":1604: WARN: -i often"));
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-t", "2147483648"), 0);
	CU_ASSERT_EQUAL(o.trantime_s, 60);
	CU_ASSERT_EQUAL_FATAL(o.n_warnings, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[0], ":1603: WARN"));
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-t", "2147483647"), 0);
	CU_ASSERT_EQUAL(o.trantime_s, 2147483647L);
	CU_ASSERT_EQUAL(o.n_warnings, 0);
}

static void
several_at_a_time(void)
{
	CU_ASSERT_EQUAL(PARSE("-q", "X"), 0);
	CU_ASSERT_EQUAL(o.workers, 1);
	CU_ASSERT_FALSE(o.ordered || o.burn);
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-w8", "-or"), 0);
	CU_ASSERT_EQUAL(o.workers, 8);
	CU_ASSERT_TRUE(o.ordered && o.burn);
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-o"), 0);
	CU_ASSERT_FALSE(o.ordered);		/* one at a time is in order */
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-w", "128"), 0);
	CU_ASSERT_EQUAL(o.workers, 128);
	CU_ASSERT_EQUAL(o.n_warnings, 0);
	for (int i = 0; i < 4; i++) {
		char *wrong[] = { "TMQFORWARD", "-q", "X", "-w", (char *[]){ "many", "0", "129", "-1" }[i], NULL };

		CU_ASSERT_EQUAL(parse(wrong), 0);
		CU_ASSERT_EQUAL(o.workers, 1);
		CU_ASSERT_EQUAL_FATAL(o.n_warnings, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[0], ":1680: WARN: -w"));
	}
}

static void
names_and_how_many(void)
{
	char name[130], *list = calloc(257, 3);

	memset(name, 'n', 128);
	name[128] = '\0';
	CU_ASSERT_EQUAL(PARSE("-q", name), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "127"));
	name[127] = '\0';
	CU_ASSERT_EQUAL(PARSE("-q", name), 0);
	CU_ASSERT_STRING_EQUAL(o.queue[0], name);
	for (int i = 0; i < 256; i++)
		memcpy(list + strlen(list), "q,", 2);
	CU_ASSERT_EQUAL(PARSE("-q", list), 0);
	CU_ASSERT_EQUAL(o.n_queues, 256);
	CU_ASSERT_EQUAL(PARSE("-q", list, "-q", "more"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "256"));
	free(list);
}

static void	/* -b and -f too; an option that is not known is left out */
other_options_warn(void)
{
	CU_ASSERT_EQUAL(PARSE("-q", "X", "-f", "soon", "-b", "late", "-z", "-i", "-5", "-t", "-1"), 0);
	CU_ASSERT_EQUAL_FATAL(o.n_warnings, 5);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[0], ":1622: WARN: -f"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[1], ":1622: WARN: -b"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[2], ":1622: WARN: unknown option -z"));
	CU_ASSERT_TRUE(o.noreply);
	CU_ASSERT_EQUAL(o.pause_s, 0);
	CU_ASSERT_EQUAL(o.trantime_s, 60);
	CU_ASSERT_EQUAL(o.idle_s, 30);
}

static void	/* what stands behind one is not read either, and is named, too */
arguments_that_belong_to_no_option_warn(void)
{
	CU_ASSERT_EQUAL(PARSE("-q", "A,", "B", "-i", "10"), 0);
	CU_ASSERT_EQUAL(o.n_queues, 1);
	CU_ASSERT_EQUAL_FATAL(o.n_warnings, 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[0], ":1622: WARN: argument B is ignored"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.warning[1], ":1622: WARN: argument -i is ignored"));
}

static void
queues_are_required(void)
{
	CU_ASSERT_EQUAL(PARSE("-i", "2"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "-q"));
	CU_ASSERT_EQUAL(PARSE("-q", ","), -1);
	CU_ASSERT_EQUAL(PARSE("-q"), -1);
}

static void
services_are_found_before_the_dashes_alone(void)
{
	char *plain[] = { "TMQFORWARD", "-C", "dom=D", "-g", "2", "-i", "5", "-A", "--", "-q", "X", "-s", "Y", NULL };
	char *named[] = { "TMQFORWARD", "-C", "dom=D", "-g", "2", "-i", "5", "-s", "X", "--", "-q", "X", NULL };

	CU_ASSERT_FALSE(check_names_services(count(plain), plain));
	CU_ASSERT_TRUE(check_names_services(count(named), named));
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(defaults_are_the_documented_ones), UNIT(forms_of_the_field), UNIT(bad_numbers_warn_and_leave_the_default),
		UNIT(several_at_a_time), UNIT(names_and_how_many), UNIT(other_options_warn), UNIT(arguments_that_belong_to_no_option_warn),
		UNIT(queues_are_required), UNIT(services_are_found_before_the_dashes_alone),
	};

	return unit_run("TMQFORWARD options", tests, UNIT_COUNT(tests));
}
