/*
 * story_servopts - the options of servers: which services are offered, where output goes, what is accepted, what is refused.
 */
#include <sys/resource.h>

#include "given.h"

static const char services[] =
    "#include <stdio.h>\n#include <string.h>\n#include <atmi.h>\n"
    "static char args[200];\n"
    "int tpsvrinit(int argc, char **argv)\n{\n	int i;\n"
    "	for (i = 1; i < argc; i++) { strcat(args, argv[i]); strcat(args, \" \"); }\n"
    "	printf(\"here is its output\\n\"); fflush(stdout);\n	fprintf(stderr, \"here are its errors\\n\");\n	return 0;\n}\n"
    "static void says(const char *text)\n{\n	char *out = tpalloc(\"STRING\", NULL, 0);\n"
    "	strcpy(out, text);\n	tpreturn(TPSUCCESS, 0, out, 0, 0);\n}\n"
    "void ONE(TPSVCINFO *m) { says(\"one\"); }\n"
    "void TWO(TPSVCINFO *m) { says(\"two\"); }\n"
    "void HIDDEN(TPSVCINFO *m) { says(\"hidden\"); }\n"
    "void ARGS(TPSVCINFO *m) { says(args); }\n";

#define SERVER(id, clopt) "server SRVGRP=APP SRVID=" id " CLOPT=\"" clopt "\"\n"

static struct given *g;

static void
given_servers(void)
{
	if (g != NULL && g == given_standing())
		return;
	g = given_directory();
	given_write(g, "services.list", "# what is offered\nSEVENTH:ONE EIGHTH,NINTH:TWO # and no more: TENTH:ONE\n");
	g = given_system_in(g, &(struct given_conf){ .no_queue_group = true, .server_source = services,
	    .server_services = "-s ONE,TWO,ARGS -s ALIAS:TWO -s :HIDDEN", .server_params = "CLOPT=\"-A\"", .not_booted = true,
	    .servers =
		SERVER("10", "-s ONE -s FIRST,SECOND:TWO -s THIRD:HIDDEN")
		SERVER("11", "-s @services.list")
		SERVER("12", "-A -s FOURTH:ONE")
		SERVER("13", "-s FIFTH:NOSUCH")
		SERVER("14", "-s NOSUCH")
		SERVER("15", "-Z")
		SERVER("16", "-s")
		SERVER("17", "ONE")
		SERVER("18", "-s @nothere.list")
		SERVER("20", "-s WRITER:ONE -o out.log -eerr.log")
		SERVER("21", "-s REPORTED:ONE -r -e report.log")
		SERVER("22", "-s NICE:ONE -n 3 -h")
		SERVER("23", "-s LOCKED:ONE -l p")
		SERVER("24", "-s ODD:ARGS -n much -l x -p L1,5:10,20 -t -P -S -R -G -- -x 1 -A -q A,B")
		SERVER("25", "-rs CLUSTER:ONE -e/dev/null")
		SERVER("26", "-v") });
	free(given_ok(g, NULL, "tmboot -yM"));
}

static bool
boots(const char *id)
{
	struct ran r = given_run(g, NULL, "tmboot -y -i %s", id);
	bool ok = r.status == 0;

	ran_free(&r);
	return ok;
}

static const char *
says(const char *service)
{
	static char text[200];
	char *data = tpalloc("STRING", NULL, 0);
	long n;

	if (tpcall((char *)service, data, 0, &data, &n, 0) == -1)
		snprintf(text, sizeof text, "tperrno %d", tperrno);
	else
		snprintf(text, sizeof text, "%s", data);
	tpfree(data);
	return text;
}
#define NOBODY "tperrno 6"	/* TPENOENT */

static void
s_offers_what_it_names_and_nothing_else(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("10"));
	CU_ASSERT_STRING_EQUAL(says("ONE"), "one");
	CU_ASSERT_STRING_EQUAL(says("FIRST"), "two");
	CU_ASSERT_STRING_EQUAL(says("SECOND"), "two");
	CU_ASSERT_STRING_EQUAL(says("THIRD"), "hidden");
	CU_ASSERT_STRING_EQUAL(says("TWO"), NOBODY);
	CU_ASSERT_STRING_EQUAL(says("ALIAS"), NOBODY);
}

static void
s_reads_lists_from_a_file(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("11"));
	CU_ASSERT_STRING_EQUAL(says("SEVENTH"), "one");
	CU_ASSERT_STRING_EQUAL(says("EIGHTH"), "two");
	CU_ASSERT_STRING_EQUAL(says("NINTH"), "two");
	CU_ASSERT_STRING_EQUAL(says("TENTH"), NOBODY);
}

static void
a_offers_all_and_s_adds_to_it(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("12"));
	CU_ASSERT_STRING_EQUAL(says("FOURTH"), "one");
	CU_ASSERT_STRING_EQUAL(says("ALIAS"), "two");
	CU_ASSERT_STRING_EQUAL(says("ARGS"), "");
	CU_ASSERT_STRING_EQUAL(says("HIDDEN"), NOBODY);	/* a function without a service */
}

static void
what_cannot_be_done_keeps_a_server_from_starting_and_is_named(void)
{
	given_servers();
	CU_ASSERT_FALSE(boots("13"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5099: ERROR: -s FIFTH:NOSUCH"));
	CU_ASSERT_FALSE(boots("14"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5099: ERROR: -s NOSUCH"));
	CU_ASSERT_FALSE(boots("15"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5083: ERROR: server options: -Z"));
	CU_ASSERT_FALSE(boots("16"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5082: ERROR: server options: -s needs a value"));
	CU_ASSERT_FALSE(boots("17"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5081: ERROR: server options: \"ONE\""));
	CU_ASSERT_FALSE(boots("18"));
	CU_ASSERT_TRUE(given_logged(g, "-s @nothere.list"));
}

static void
o_and_e_say_where_output_goes(void)
{
	char *out, *err;

	given_servers();
	given_write(g, "out.log", "%s", "an earlier line\n");
	CU_ASSERT_TRUE(boots("20"));
	out = given_read(g, "out.log");
	err = given_read(g, "err.log");
	CU_ASSERT_STRING_EQUAL(out, "an earlier line\nhere is its output\n");
	CU_ASSERT_TRUE(has(err, "here are its errors\n"));
	free(out);
	free(err);
}

static bool
is_reported(void *arg)
{
	char *text = given_read(g, "report.log");
	bool there = has(text, "@REPORTED\t") && strchr(strstr(text, "@REPORTED\t"), '\n') != NULL;

	(void)arg;
	free(text);
	return there;
}

static void	/* service, process, begin, end */
r_writes_a_line_for_each_request(void)
{
	char *text, service[64] = "";
	double began = 0, ended = 0;
	long pid = 0;

	given_servers();
	CU_ASSERT_TRUE(boots("21"));
	CU_ASSERT_STRING_EQUAL(says("REPORTED"), "one");
	CU_ASSERT_TRUE_FATAL(wait_until(is_reported, NULL, 10));
	text = given_read(g, "report.log");
	CU_ASSERT_EQUAL(sscanf(strstr(text, "@REPORTED"), "@%63s\t%ld\t%lf\t%lf\n", service, &pid, &began, &ended), 4);
	CU_ASSERT_STRING_EQUAL(service, "REPORTED");
	CU_ASSERT_EQUAL(pid, (long)given_pid_as(g, 1, 21));
	CU_ASSERT_TRUE(began > 1e9 && ended >= began);
	free(text);
}

static char *
status_of(pid_t pid, const char *field)
{
	return given_ok(g, NULL, "sed -n 's/^%s:[[:space:]]*//p' /proc/%ld/status", field, (long)pid);
}

static bool
ignores_hangup(const char *id)
{
	char *mask = status_of(given_pid_as(g, 1, atoi(id)), "SigIgn");
	bool ignored = (strtoull(mask, NULL, 16) & 1) != 0;

	free(mask);
	return ignored;
}

static void
n_is_nicer_and_h_hears_the_hangup(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("22"));
	CU_ASSERT_EQUAL(getpriority(PRIO_PROCESS, (id_t)given_pid_as(g, 1, 22)), getpriority(PRIO_PROCESS, 0) + 3);
	CU_ASSERT_FALSE(ignores_hangup("22"));
	CU_ASSERT_TRUE(ignores_hangup("20"));
}

static void	/* where the system lets it; else the log says so, and it serves */
l_locks_the_server_in_memory(void)
{
	char *locked;

	given_servers();
	CU_ASSERT_TRUE(boots("23"));
	CU_ASSERT_STRING_EQUAL(says("LOCKED"), "one");
	locked = status_of(given_pid_as(g, 1, 23), "VmLck");
#ifndef TEST_SANFLAGS	/* which does not let mlockall() through */
	CU_ASSERT_TRUE(atol(locked) > 0 || given_logged(g, "LIBTUX_CAT:5092"));
#endif
	free(locked);
}

static void
what_has_no_effect_is_accepted_and_the_rest_is_the_programs(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("24"));
	CU_ASSERT_STRING_EQUAL(says("ODD"), "-x 1 -A -q A,B ");
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5255: WARN: server options: -n much"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5256: WARN: server options: -l x"));
}

static void
letters_may_stand_together(void)
{
	given_servers();
	CU_ASSERT_TRUE(boots("25"));
	CU_ASSERT_STRING_EQUAL(says("CLUSTER"), "one");
}

static void	/* It is a list for -s @file, and needs no system. */
v_prints_what_was_built_in(void)
{
	char *out;

	given_servers();
	out = given_ok(g, NULL, "./server -v");
	CU_ASSERT_STRING_EQUAL(out, "ONE:ONE\nTWO:TWO\nARGS:ARGS\nALIAS:TWO\n:HIDDEN\n");
	free(out);
	CU_ASSERT_FALSE(boots("26"));		/* it lists, and serves nobody */
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(s_offers_what_it_names_and_nothing_else), UNIT(s_reads_lists_from_a_file), UNIT(a_offers_all_and_s_adds_to_it),
		UNIT(what_cannot_be_done_keeps_a_server_from_starting_and_is_named), UNIT(o_and_e_say_where_output_goes),
		UNIT(r_writes_a_line_for_each_request), UNIT(n_is_nicer_and_h_hears_the_hangup), UNIT(l_locks_the_server_in_memory),
		UNIT(what_has_no_effect_is_accepted_and_the_rest_is_the_programs), UNIT(letters_may_stand_together),
		UNIT(v_prints_what_was_built_in),
	};

	return unit_run("servopts", tests, UNIT_COUNT(tests));
}
