/*
 * What tmboot and tmshutdown choose, and in which order.
 */
#include "unit.h"
#include "plan.h"

static struct ubb_machine machines[] = { { .lmid = "SITE1" } };
static struct ubb_group groups[] = {
	{ .name = "APP", .lmid = { "SITE1", "" }, .grpno = 1, .tmsname = "" },
	{ .name = "QUE", .lmid = { "SITE1", "" }, .grpno = 2, .tmsname = "TMS_QM", .tmscount = 2 },
};
static struct ubb_server servers_of_file[] = {
	{ .aout = "late", .srvgrp = "APP", .srvid = 1, .min = 1, .max = 1, .clopt = "-A" },
	{ .aout = "TMQUEUE", .srvgrp = "QUE", .srvid = 1, .min = 1, .max = 1, .sequence = 2, .clopt = "-s Q:TMQUEUE" },
	{ .aout = "TMQFORWARD", .srvgrp = "QUE", .srvid = 5, .min = 1, .max = 1, .sequence = 1, .clopt = "-- -q A" },
	{ .aout = "/opt/app/many", .srvgrp = "APP", .srvid = 10, .min = 2, .max = 4, .clopt = "-A" },
};
static char *master[] = { "SITE1", "" };

static struct ubb
configuration(void)
{
	struct ubb u = { .n_machines = 1, .machines = machines, .n_groups = 2, .groups = groups, .n_servers = 4,
		.servers = servers_of_file };

	u.res.master[0] = master[0];
	u.res.master[1] = master[1];
	return u;
}

/* The plan of a command line of selectors such as "-g QUE -i 1", as text: `BBL QUE:TMS_QM/30001 ...`. */
static char text[1024];

static const char *
planned(const char *options, bool down)
{
	struct ubb u = configuration();
	struct plan_select sel = { 0 };
	struct args words;
	struct plan p;
	FILE *f = fmemopen(text, sizeof text, "w");

	args_split(options, &words);
	for (size_t i = 0; i < words.n; i++) {
		int letter = words.v[i][1];

		plan_select_option(&sel, letter, strchr("ASM", letter) == NULL ? words.v[++i] : NULL);
	}
	CU_ASSERT_EQUAL((down ? plan_shutdown : plan_boot)(&u, &machines[0], &sel, &p), 0);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].kind == PLAN_BBL)
			fprintf(f, "BBL ");
		else
			fprintf(f, "%s/%ld ", p.v[i].groupname, p.v[i].srvid);
	fputc('\0', f);
	fclose(f);
	plan_free(&p);
	plan_select_free(&sel);
	args_free(&words);
	return text;
}

#define BOOTS(options, order) CU_ASSERT_STRING_EQUAL(planned(options, false), order)
#define STOPS(options, order) CU_ASSERT_STRING_EQUAL(planned(options, true), order)

static void
everything_is_booted_bbl_first_then_tms_then_by_sequence_then_as_the_file_has_it(void)
{
	BOOTS("", "BBL QUE/30001 QUE/30002 QUE/5 QUE/1 APP/1 APP/10 APP/11 ");
}

static void
everything_is_stopped_the_other_way_round_with_all_that_may_run(void)
{
	STOPS("", "APP/13 APP/12 APP/11 APP/10 APP/1 QUE/1 QUE/5 QUE/30002 QUE/30001 BBL ");
}

static void
admin_and_servers_can_be_had_apart(void)
{
	BOOTS("-A", "BBL ");
	BOOTS("-M", "BBL ");
	BOOTS("-B SITE1", "BBL ");
	BOOTS("-S", "QUE/30001 QUE/30002 QUE/5 QUE/1 APP/1 APP/10 APP/11 ");
	BOOTS("-A -S", "BBL QUE/30001 QUE/30002 QUE/5 QUE/1 APP/1 APP/10 APP/11 ");
	BOOTS("-l SITE1", "QUE/30001 QUE/30002 QUE/5 QUE/1 APP/1 APP/10 APP/11 ");
}

static void
a_group_comes_with_its_tms_and_minus_t_is_the_tms_alone(void)
{
	BOOTS("-g QUE", "QUE/30001 QUE/30002 QUE/5 QUE/1 ");
	BOOTS("-T QUE", "QUE/30001 QUE/30002 ");
	BOOTS("-g APP", "APP/1 APP/10 APP/11 ");
	STOPS("-g QUE", "QUE/1 QUE/5 QUE/30002 QUE/30001 ");
}

static void
selectors_restrict_together(void)
{
	BOOTS("-i 1", "QUE/1 APP/1 ");
	BOOTS("-i 1 -g QUE", "QUE/1 ");
	BOOTS("-s TMQFORWARD", "QUE/5 ");
	BOOTS("-s TMQFORWARD -g APP", "");
	BOOTS("-s many", "APP/10 APP/11 ");		/* by its base name */
	BOOTS("-o 2", "QUE/1 ");
	BOOTS("-i 1 -i 5", "QUE/5 QUE/1 APP/1 ");	/* one option given twice: either */
}

static void
an_instance_between_min_and_max_is_booted_by_its_id(void)
{
	BOOTS("-i 13", "APP/13 ");
	BOOTS("-i 14", "");
}

static void
what_is_not_configured_is_named(void)
{
	struct ubb u = configuration();
	static const struct { int letter; const char *value, *says; } bad[] = {
		{ 'g', "NOGROUP", "NOGROUP" }, { 'T', "NOGROUP", "NOGROUP" }, { 'l', "NOSITE", "NOSITE" }, { 'B', "X", "X" },
		{ 'i', "one", "one" }, { 'o', "2x", "2x" } };

	for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
		struct plan_select sel = { 0 };
		char *why = NULL;

		plan_select_option(&sel, bad[i].letter, bad[i].value);
		CU_ASSERT_EQUAL(plan_select_check(&sel, &u, &why), -1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(why);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, bad[i].says));
		free(why);
		plan_select_free(&sel);
	}
}

static void
words_are_split_as_clopt_and_commands_want_them(void)
{
	struct args a;

	CU_ASSERT_EQUAL(args_split("  -s Q:TMQUEUE --\t-x \"two words\" '' \"\" a\\b \"say \\\"hi\\\"\" 'y'", &a), 0);
	CU_ASSERT_EQUAL_FATAL(a.n, 10);
	CU_ASSERT_STRING_EQUAL(a.v[1], "Q:TMQUEUE");
	CU_ASSERT_STRING_EQUAL(a.v[4], "two words");
	CU_ASSERT_STRING_EQUAL(a.v[5], "");
	CU_ASSERT_STRING_EQUAL(a.v[6], "");
	CU_ASSERT_STRING_EQUAL(a.v[7], "a\\b");
	CU_ASSERT_STRING_EQUAL(a.v[8], "say \"hi\"");
	CU_ASSERT_STRING_EQUAL(a.v[9], "y");
	args_free(&a);
	CU_ASSERT_EQUAL(args_split(" \t ", &a), 0);
	CU_ASSERT_EQUAL(a.n, 0);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(everything_is_booted_bbl_first_then_tms_then_by_sequence_then_as_the_file_has_it),
		UNIT(everything_is_stopped_the_other_way_round_with_all_that_may_run),
		UNIT(admin_and_servers_can_be_had_apart),
		UNIT(a_group_comes_with_its_tms_and_minus_t_is_the_tms_alone),
		UNIT(selectors_restrict_together),
		UNIT(an_instance_between_min_and_max_is_booted_by_its_id),
		UNIT(what_is_not_configured_is_named),
		UNIT(words_are_split_as_clopt_and_commands_want_them),
	};

	return unit_run("bbl plan", tests, UNIT_COUNT(tests));
}
