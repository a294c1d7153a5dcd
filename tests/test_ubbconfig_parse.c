/*
 * UBBCONFIG text: the dialect that real files are written in is read, and each fault is named with its exact place.
 */
#include <unistd.h>
#include <sys/utsname.h>

#include "unit.h"
#include "ubb.h"

static struct ubb *u;
static char *said;
static int errors, warnings;

static void
forget(void)
{
	ubb_free(u);
	free(said);
	u = NULL;
	said = NULL;
}

static void
load_bytes(const char *text, size_t len)
{
	size_t size;
	FILE *in = fmemopen((char *)text, len ? len : 1, "r"), *out;

	forget();
	out = open_memstream(&said, &size);
	if (len == 0)
		(void)getc(in);
	errors = ubb_parse(in, "ubb", out, &warnings, &u);
	fclose(in);
	fclose(out);
}

static void load(const char *text) { load_bytes(text, strlen(text)); }

#define RES "*RESOURCES\nIPCKEY 52617\nMASTER SITE1\nMODEL SHM\n"
#define MACH "*MACHINES\nhost LMID=SITE1 TUXCONFIG=\"/a/tuxconfig\" TUXDIR=\"/t\" APPDIR=\"/a\"\n"
#define HEAD RES MACH				/* 6 lines */
#define QUE1 "QUE1 LMID=SITE1 GRPNO=2 TMSNAME=TMS_QM OPENINFO=\"TUXEDO/QM:/a/QUE:QSPACE\"\n"
#define GRP "*GROUPS\nG LMID=SITE1 GRPNO=1\n" QUE1	/* lines 7 to 9 */
#define TAIL "*SERVICES\n"

static bool
is_good(void)
{
	if (errors != 0)
		printf("\n%s", said);
	return errors == 0 && u != NULL;
}

/* `line` is one of the lines said, up to its own length. */
static bool
says(const char *line)
{
	const char *p = said;

	while ((p = strstr(p, line)) != NULL && p != said && p[-1] != '\n')
		p++;
	if (p == NULL)
		printf("\n  expected %s\n  said     %s", line, *said ? said : "nothing\n");
	return p != NULL;
}

/* The tests below count the lines of HEAD. */
#define FAULT(text, line) \
	do { \
		load(text); \
		CU_ASSERT_TRUE(errors > 0); \
		CU_ASSERT_PTR_NULL(u); \
		CU_ASSERT_TRUE(says(line)); \
	} while (0)
#define ONLY_FAULT(text, line) do { FAULT(text, line); CU_ASSERT_EQUAL(errors, 1); } while (0)
#define GOOD(text) do { load(text); CU_ASSERT_TRUE_FATAL(is_good()); } while (0)

/* --- the dialect --- */

static void
a_plain_file_is_read_with_its_defaults(void)
{
	GOOD(HEAD GRP "*SERVERS\nserver SRVGRP=G SRVID=1\n" TAIL "ECHO\n");
	CU_ASSERT_EQUAL(warnings, 0);
	CU_ASSERT_STRING_EQUAL(said, "");
	CU_ASSERT_EQUAL(u->res.ipckey, 52617);
	CU_ASSERT_EQUAL(u->res.perm, 0666);
	CU_ASSERT_EQUAL(u->res.uid, (long)getuid());
	CU_ASSERT_EQUAL(u->res.scanunit_ms, 10000);
	CU_ASSERT_EQUAL(u->res.blocktime, 6);
	CU_ASSERT_EQUAL(u->res.sanityscan, 12);
	CU_ASSERT_EQUAL(u->res.bblquery, 30);
	CU_ASSERT_EQUAL(u->res.dbblwait, 2);
	CU_ASSERT_TRUE(u->res.ldbal);
	CU_ASSERT_STRING_EQUAL(u->machines[0].ulogpfx, "/a/ULOG");
	CU_ASSERT_STRING_EQUAL(u->machines[0].tlogname, "TLOG");
	CU_ASSERT_EQUAL(u->machines[0].maxaccessers, 50);
	CU_ASSERT_EQUAL(u->groups[0].tmscount, 3);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "-A");
	CU_ASSERT_EQUAL(u->servers[0].min, 1);
	CU_ASSERT_EQUAL(u->servers[0].max, 1);
	CU_ASSERT_EQUAL(u->servers[0].maxgen, 1);
	CU_ASSERT_EQUAL(u->servers[0].grace, 86400);
	CU_ASSERT_EQUAL(u->servers[0].rqperm, 0666);
	CU_ASSERT_FALSE(u->servers[0].restart);
	CU_ASSERT_EQUAL(u->servers[0].sequence, 0);
	CU_ASSERT_STRING_EQUAL(u->services[0].name, "ECHO");
	CU_ASSERT_EQUAL(u->services[0].load, 50);
	CU_ASSERT_EQUAL(u->services[0].trantime, 30);
	CU_ASSERT_STRING_EQUAL(u->services[0].buftype, "ALL");
}

static void
blanks_and_tabs_continue_an_entry(void)
{
	GOOD(HEAD GRP "*SERVERS\nserver\n SRVGRP=G\n\tSRVID=1\n    RESTART=Y MAXGEN\n\t\t=\n\t5\n\n\n\tGRACE=0\n" TAIL);
	CU_ASSERT_EQUAL(u->n_servers, 1);
	CU_ASSERT_EQUAL(u->servers[0].maxgen, 5);
	CU_ASSERT_EQUAL(u->servers[0].grace, 0);
}

static void
blanks_may_stand_round_the_equals_sign(void)
{
	GOOD(RES "*MACHINES\n\"a-host.example\" LMID= SITE1\n\tTUXCONFIG =\"/a/tuxconfig\" TUXDIR = \"/t\"\n "
		 "APPDIR\t=\t\"/a\"\n" GRP "*SERVERS\nserver SRVGRP = G SRVID= 5\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->machines[0].address, "a-host.example");
	CU_ASSERT_STRING_EQUAL(u->machines[0].lmid, "SITE1");
	CU_ASSERT_EQUAL(u->servers[0].srvid, 5);
}

static void
resources_do_with_and_without_an_equals_sign(void)
{
	GOOD("*RESOURCES\nIPCKEY=52617\nMASTER = SITE1 , SITE2\nMODEL\tMP\nOPTIONS LAN,MIGRATE\nPERM "
	     "0660\nMAXACCESSERS 0x20\n"
	     "  MAXSERVERS 010\n*MACHINES\nDEFAULT: TUXDIR=\"/t\" APPDIR=\"/a\" TUXCONFIG=\"/a/t\"\na LMID=SITE1\nb "
	     "LMID=SITE2\n"
	     "*GROUPS\n*NETWORK\nSITE1 NADDR=\"//a:1\"\n*SERVERS\n*SERVICES\n");
	CU_ASSERT_EQUAL(u->res.ipckey, 52617);
	CU_ASSERT_STRING_EQUAL(u->res.master[0], "SITE1");
	CU_ASSERT_STRING_EQUAL(u->res.master[1], "SITE2");
	CU_ASSERT_TRUE(u->res.mp);
	CU_ASSERT_STRING_EQUAL(u->res.options, "LAN,MIGRATE");
	CU_ASSERT_EQUAL(u->res.perm, 0660);
	CU_ASSERT_EQUAL(u->res.maxaccessers, 32);
	CU_ASSERT_EQUAL(u->res.maxservers, 8);
	CU_ASSERT_EQUAL(u->n_nets, 1);
}

static void
comments_stand_anywhere_outside_quotes(void)
{
	GOOD("# first\n## second\n*RESOURCES # third\nIPCKEY 52617#fourth\n\t# fifth\nMASTER SITE1\nMODEL SHM\n" MACH
	     "*GROUPS\nDEFAULT: # of the defaults\n# column 1, inside DEFAULT\n\tLMID=SITE1 # after a value\nG "
	     "GRPNO=1\n" QUE1 "*SERVERS\nserver # name\n# inside the record\n\tSRVGRP=G\n\t## and again\n\tSRVID=1 "
			      "CLOPT=\"-A -- #kept\"\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->groups[0].lmid[0], "SITE1");
	CU_ASSERT_EQUAL(u->servers[0].srvid, 1);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "-A -- #kept");
}

static void
strings_have_escapes_and_may_run_over_a_line_end(void)
{
	GOOD(HEAD GRP "*SERVERS\nserver SRVGRP=G SRVID=1 CLOPT=\"-A -- a\n\tb \\\"c\\\" \\\\d \\n\"\n"
	    "other SRVGRP=G SRVID=2 CLOPT=\"-A -- a\\\n   b\" RESTART=Y\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "-A -- a b \"c\" \\d \\n");
	CU_ASSERT_STRING_EQUAL(u->servers[1].clopt, "-A -- ab");
	CU_ASSERT_TRUE(u->servers[1].restart);
}

static void
line_ends_of_other_systems_and_a_byte_order_mark_are_read(void)
{
	GOOD("\xef\xbb\xbf*RESOURCES\r\nIPCKEY 52617\r\nMASTER SITE1\r\nMODEL SHM\r\n"
	    "*MACHINES\r\nhost LMID=SITE1 TUXCONFIG=\"/a/t\"\r\n\tTUXDIR=\"/t\" APPDIR=\"/a\"\r\n*GROUPS\r\n"
	    "G LMID=SITE1 GRPNO=1 OPENINFO=\"a\r\n b\"\r\n*SERVERS\r\n*SERVICES\r\n");
	CU_ASSERT_STRING_EQUAL(u->machines[0].appdir, "/a");
	CU_ASSERT_STRING_EQUAL(u->groups[0].openinfo, "a b");
}

static void
the_last_line_needs_no_newline(void)
{
	GOOD(HEAD GRP "*SERVERS\nserver SRVGRP=G SRVID=7");
	CU_ASSERT_EQUAL(u->servers[0].srvid, 7);
	GOOD(HEAD GRP "*SERVERS\n*SERVICES # empty");
	GOOD(HEAD GRP "*SERVERS\n*SERVICES\nECHO");
	CU_ASSERT_EQUAL(u->n_services, 1);
}

static void
a_line_of_a_megabyte_is_read(void)
{
	static const char head[] = HEAD GRP "*SERVERS\nserver SRVGRP=G ", tail[] = "SRVID=3\n" TAIL;
	size_t n = 1 << 20, len = strlen(head) + n + strlen(tail);
	char *text = malloc(len + 1);

	if (text == NULL)
		return;
	memcpy(text, head, strlen(head));
	memset(text + strlen(head), ' ', n);
	memcpy(text + strlen(head) + n, tail, strlen(tail) + 1);
	load(text);
	CU_ASSERT_TRUE(is_good() && u->servers[0].srvid == 3);
	memset(text + strlen(head), 'x', n - 1);
	load(text);
	CU_ASSERT_EQUAL(errors, 1);		/* what follows is still read */
	CU_ASSERT_TRUE(strlen(said) < 2000);
	free(text);
}

static void
machine_names_do_with_and_without_quotes(void)
{
	GOOD(RES "*MACHINES\nmy-host.example.org LMID=SITE1 TUXCONFIG=\"/a/t\" TUXDIR=\"/t\" APPDIR=\"/a\"\n" GRP
		 "*SERVERS\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->machines[0].address, "my-host.example.org");
	GOOD(RES "*MACHINES\n\"my-host\"\tLMID=\"SITE1\" TUXCONFIG=/a/t TUXDIR=/t APPDIR=/a\n" GRP "*SERVERS\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->machines[0].address, "my-host");
	CU_ASSERT_STRING_EQUAL(u->machines[0].appdir, "/a");
}

static void
defaults_add_up_override_and_are_cleared(void)
{
	GOOD(HEAD GRP "*SERVERS\n"
	    "DEFAULT: SRVGRP=G RESTART=Y\n\tMAXGEN=5\n"
	    "a SRVID=1\n"
	    "DEFAULT:\n\tMAXGEN=7\n"
	    "b SRVID=2 RESTART=N\n"
	    "c SRVID=3\n"
	    "DEFAULT:\n"
	    "d SRVID=4 SRVGRP=G\n"
	    "DEFAULT:GRACE=5\n"
	    "e SRVID=6 SRVGRP=G\n" TAIL "f\n");
	CU_ASSERT_EQUAL(u->servers[0].maxgen, 5);
	CU_ASSERT_TRUE(u->servers[0].restart);
	CU_ASSERT_EQUAL(u->servers[1].maxgen, 7);
	CU_ASSERT_FALSE(u->servers[1].restart);
	CU_ASSERT_TRUE(u->servers[2].restart);
	CU_ASSERT_EQUAL(u->servers[3].maxgen, 1);
	CU_ASSERT_FALSE(u->servers[3].restart);
	CU_ASSERT_EQUAL(u->servers[4].grace, 5);
}

static void
none_as_openinfo_is_nothing(void)
{
	GOOD(HEAD "*GROUPS\nG LMID=SITE1 GRPNO=1 TMSNAME=TMS TMSCOUNT=2 OPENINFO=NONE\n*SERVERS\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->groups[0].openinfo, "");
	CU_ASSERT_STRING_EQUAL(u->groups[0].tmsname, "TMS");
}

static void
an_empty_clopt_is_not_the_default_one(void)
{
	GOOD(HEAD GRP "*SERVERS\nserver SRVGRP=G SRVID=1 CLOPT=\"\"\n" TAIL);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "");
}

static void
queue_servers_are_read_as_real_files_write_them(void)
{
	GOOD(HEAD GRP "*SERVERS\nDEFAULT: CLOPT=\"-A\"\n"
	    "TMQUEUE SRVGRP=QUE1 SRVID=1 CLOPT = \"-s QSPACE:TMQUEUE --  \" GRACE=0 RESTART=Y CONV=N MAXGEN=10\n"
	    "TMQUEUE SRVGRP=QUE1 SRVID=2 CLOPT=\"-s QSPACE:TMQUEUE -- -t 5\"\n"
	    "TMQUEUE SRVGRP=QUE1 SRVID=3 RQADDR=q REPLYQ=Y MIN=1 MAX=2\n"
	    "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -i 2 -q STRING\"\n"
	    "TMQFORWARD SRVGRP=QUE1 SRVID=6 CLOPT=\"-A -- -i 2 -qX -t60\" REPLYQ=N\n"
	    "TMQFORWARD SRVGRP=QUE1 SRVID=7 CLOPT=\"-- -e -n -d -q X\"\n"
	    "TMQFORWARD SRVGRP=QUE1 SRVID=8 CLOPT=\"-- -q A,B -i 10\"\n"
	    "TMQFORWARD SRVGRP=QUE1 SRVID=9 CLOPT=\"-- -ednqX\" RQADDR=own\n"
	    TAIL "X SRVGRP=G LOAD=1\nX\n");
	CU_ASSERT_EQUAL(u->n_servers, 8);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "-s QSPACE:TMQUEUE --  ");
	CU_ASSERT_EQUAL(u->servers[2].max, 2);
}

static void
routing_ranges_are_checked_against_the_groups(void)
{
	GOOD(HEAD GRP "*SERVERS\n*SERVICES\nQSPACE ROUTING=R\n*ROUTING\nR FIELD=ACCOUNT BUFTYPE=\"FML32\"\n"
	    "\tRANGES=\"1-10:QUE1,'a,b'-'c:d':G,\n*:*\"\n");
	CU_ASSERT_STRING_EQUAL(u->routings[0].ranges, "1-10:QUE1,'a,b'-'c:d':G, *:*");
	ONLY_FAULT(HEAD GRP "*SERVERS\n*SERVICES\n*ROUTING\nR FIELD=A BUFTYPE=\"FML\" RANGES=\"1-2:G,3:NOPE\"\n",
	    "ubb:13:32: group \"NOPE\" in RANGES is not in *GROUPS");
}

#define ROUTED(line) HEAD GRP "*SERVERS\n*SERVICES\nS ROUTING=R\n*ROUTING\n" line "\n"	/* the line is number 13 + 1 */

static void
values_of_ranges_are_read(void)
{
	struct ubb_range r;
	const char *p;

	GOOD(ROUTED("R FIELD=A FIELDTYPE=LONG BUFTYPE=\"FML32;VIEW:v1,v2;XML\" RANGES=\"MIN - -1:G, 0-4.5:*,\n+5:QUE1,6 -MAX : G\""));
	CU_ASSERT_EQUAL(warnings, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(u->routings[0].ranges, &r));
	CU_ASSERT_TRUE(r.low.kind == UBB_END_MIN && r.high.kind == UBB_END_NUMBER && r.high.number == -1);
	CU_ASSERT_STRING_EQUAL(r.group, "G");
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(p, &r));
	CU_ASSERT_TRUE(r.low.number == 0 && r.high.number == 4.5 && strcmp(r.group, "*") == 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(p, &r));
	CU_ASSERT_TRUE(r.low.number == 5 && r.high.number == 5);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(p, &r));
	CU_ASSERT_TRUE(r.low.number == 6 && r.high.kind == UBB_END_MAX);
	CU_ASSERT_PTR_NULL(ubb_range_next(p, &r));
	GOOD(ROUTED("R FIELD=A BUFTYPE=FML RANGES=\"'A-b:c, d'-'O\\'Brien':G,*:*\""));
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(u->routings[0].ranges, &r));
	CU_ASSERT_STRING_EQUAL(r.low.text, "A-b:c, d");
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = ubb_range_next(p, &r));
	CU_ASSERT_TRUE(r.any && *r.why == '\0');
}

static void
ranges_that_cannot_be_are_refused(void)
{
	static const struct { const char *ranges, *said; } bad[] = {
		{ "1-2", "\"1-2\" in RANGES has no :group" }, { "1-2:", "\"1-2:\" in RANGES has no group behind the colon" },
		{ "x-y:G", "\"x-y\" in RANGES is no value" }, { "5-1:G", "\"5-1\" in RANGES: the low end is above the high one" },
		{ "'b'-'a':G", "\"'b'-'a'\" in RANGES: the low end" }, { "5-MIN:G", "\"5-MIN\" in RANGES: the low end" },
		{ "MAX-5:G", "\"MAX-5\" in RANGES: the low end" }, { "'a:G", "'a:G in RANGES has no closing quote" },
		{ "1-2:G 3:G", "\"1-2:G 3:G\" in RANGES: a comma is missing" }, 		{ "*:NOPE", "group \"NOPE\" in RANGES is not in *GROUPS" }, { "-:G", "\"-\" in RANGES is no value" } };
	char text[1024], said_[256];
	size_t i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(text, sizeof text, "%s", ROUTED("R FIELD=A BUFTYPE=FML RANGES=\"@\""));
		snprintf(strchr(text, '@'), 200, "%s\"\n", bad[i].ranges);
		snprintf(said_, sizeof said_, "ubb:14:30: %s", bad[i].said);
		ONLY_FAULT(text, said_);
	}
	ONLY_FAULT(ROUTED("R FIELD=A FIELDTYPE=STRING BUFTYPE=XML RANGES=\"1:G\""), "ubb:14:47: RANGES has numbers, and FIELDTYPE is STRING");
	ONLY_FAULT(ROUTED("R FIELD=A FIELDTYPE=LONG BUFTYPE=XML RANGES=\"'a':G\""), "ubb:14:45: RANGES has text, and FIELDTYPE is LONG");
}

static void	/* Tuxedo takes the first that fits. */
ranges_that_overlap_are_pointed_out(void)
{
	GOOD(ROUTED("R FIELD=A BUFTYPE=FML RANGES=\"1-5:G,5-9:QUE1,20:G\""));
	CU_ASSERT_EQUAL(warnings, 1);
	CU_ASSERT_TRUE(says("ubb:14:30: warning: range 2 in RANGES has values of range 1") || warnings == 1);
	GOOD(ROUTED("R FIELD=A BUFTYPE=FML RANGES=\"*:G,5-9:QUE1\""));
	CU_ASSERT_EQUAL(warnings, 1);
}

static void
types_of_a_criterion_are_checked(void)
{
	GOOD(ROUTED("R FIELD=A BUFTYPE=\"FML32;VIEW:a,b;X_COMMON:c;XML:root;MINE\" RANGES=\"*:G\"\nR FIELD=B BUFTYPE=\"FML;VIEW:c\" RANGES=\"*:QUE1\""));
	CU_ASSERT_STRING_EQUAL(ubb_routing_find(u, "R", "FML32", "")->field, "A");
	CU_ASSERT_STRING_EQUAL(ubb_routing_find(u, "R", "VIEW", "c")->field, "B");
	CU_ASSERT_STRING_EQUAL(ubb_routing_find(u, "R", "VIEW", "b")->field, "A");
	CU_ASSERT_STRING_EQUAL(ubb_routing_find(u, "R", "XML", "")->field, "A");
	CU_ASSERT_PTR_NULL(ubb_routing_find(u, "R", "VIEW", "d"));
	CU_ASSERT_PTR_NULL(ubb_routing_find(u, "R", "STRING", ""));
	CU_ASSERT_PTR_NULL(ubb_routing_find(u, "S", "FML", ""));
	ONLY_FAULT(ROUTED("R FIELD=A BUFTYPE=\"FML;STRING\" RANGES=\"*:G\""), "ubb:14:19: \"STRING\" in BUFTYPE has no fields");
	ONLY_FAULT(ROUTED("R FIELD=A BUFTYPE=\"FML:x\" RANGES=\"*:G\""), "ubb:14:19: \"FML\" in BUFTYPE has a subtype");
	ONLY_FAULT(ROUTED("R FIELD=A BUFTYPE=\"VIEW32\" RANGES=\"*:G\""), "ubb:14:19: \"VIEW32\" in BUFTYPE has no subtype");
	ONLY_FAULT(ROUTED("R FIELD=A BUFTYPE=\"VIEW:*\" RANGES=\"*:G\""), "ubb:14:19: \"VIEW\" in BUFTYPE has no subtype");
	ONLY_FAULT(ROUTED("R FIELD=A BUFTYPE=\"FML;FML32\" RANGES=\"*:G\"\nR FIELD=B BUFTYPE=FML32 RANGES=\"*:G\""),
	    "ubb:15:1: routing criterion R is given again for the buffer type FML32");
}

static void
parameters_without_effect_are_kept(void)
{
	GOOD("*RESOURCES\nIPCKEY 52617\nMASTER SITE1\nMODEL SHM\nNOTIFY DIPIN\nMAXACLGROUPS 0x10\n" MACH
	     "\tSPINCOUNT=1 CMPLIMIT=\"1,2\"\n" GRP "*SERVERS\n" TAIL);
	CU_ASSERT_EQUAL_FATAL(u->res.extras.n, 2);
	CU_ASSERT_STRING_EQUAL(u->res.extras.v[0].name, "NOTIFY");
	CU_ASSERT_STRING_EQUAL(u->res.extras.v[1].value, "16");
	CU_ASSERT_EQUAL_FATAL(u->machines[0].extras.n, 2);
	CU_ASSERT_STRING_EQUAL(u->machines[0].extras.v[1].value, "1,2");
	CU_ASSERT_TRUE(u->machines[0].extras.v[1].quoted);
}

static void
a_section_that_has_no_effect_is_passed_over(void)
{
	GOOD(HEAD GRP "*SERVERS\n*INTERFACES\n\"IDL:x:1.0\" FACTORYROUTING=y\n" TAIL "ECHO\n");
	CU_ASSERT_EQUAL(warnings, 1);
	CU_ASSERT_EQUAL(u->n_services, 1);
}

static void
scanunit_and_what_counts_in_it(void)
{
	GOOD("*RESOURCES\nIPCKEY 52617\nMASTER SITE1\nMODEL SHM\nSCANUNIT 500MS\n" MACH GRP "*SERVERS\n" TAIL);
	CU_ASSERT_EQUAL(u->res.scanunit_ms, 500);
	CU_ASSERT_EQUAL(u->res.blocktime, 120);
	GOOD(
	    "*RESOURCES\nIPCKEY 52617\nMASTER SITE1\nMODEL SHM\nSCANUNIT 15\nBLOCKTIME 2\n" MACH GRP "*SERVERS\n" TAIL);
	CU_ASSERT_EQUAL(u->res.blocktime, 2);
	CU_ASSERT_EQUAL(u->res.dbblwait, 1);
	ONLY_FAULT(RES "SCANUNIT 7\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:10: SCANUNIT is \"7\"; allowed are multiples of 2 or 5");
	ONLY_FAULT(RES "SCANUNIT 62\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:10: SCANUNIT is \"62\"");
	ONLY_FAULT(RES "SCANUNIT 10MS\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:10: SCANUNIT is \"10MS\"");
	ONLY_FAULT(RES "BLOCKTIME 3277\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:11: BLOCKTIME is 3277 times SCANUNIT; with this SCANUNIT allowed are 1 to 3276");
}

/* --- faults --- */

static void
every_fault_of_a_file_is_said_in_the_order_of_the_file(void)
{
	load("*RESOURCES\nIPCKEY 5\nMASTER SITE1\nMODEL SHM\n" MACH GRP
	     "*SERVERS\na SRVGRP=X SRVID=1\nb SRVGRP=G SRVID=x\n" TAIL "C PRIO=0\n");
	CU_ASSERT_EQUAL(errors, 4);
	CU_ASSERT_STRING_EQUAL(said,
	    "ubb:2:8: IPCKEY is 5; allowed are 32769 to 262143\n"
	    "ubb:11:10: SRVGRP is \"X\"; allowed is a group of *GROUPS, the first is G\n"
	    "ubb:12:18: SRVID is \"x\", which is not a number; allowed are 1 to 30000\n"
	    "ubb:14:8: PRIO is 0; allowed are 1 to 100\n");
}

static void
an_unknown_parameter_is_explained(void)
{
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1\n\tMAXGENN=5\n" TAIL,
	    "ubb:12:2: MAXGENN is no parameter of *SERVERS; did you mean MAXGEN?");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 GRPNO=5\n" TAIL,
	    "ubb:11:20: GRPNO is a parameter of *GROUPS, not of *SERVERS");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 restart=Y\n" TAIL,
	    "ubb:11:20: restart is not in capitals; write RESTART");
	ONLY_FAULT(HEAD " QMCONFIG=\"/q\"\n" GRP "*SERVERS\n" TAIL,
	    "ubb:7:2: QMCONFIG is no parameter but an environment variable");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 COLOUR=red\n" TAIL,
	    "ubb:11:20: COLOUR is no parameter of *SERVERS; those are listed in ubbconfig(5)");
}

static void
a_wrong_value_is_told_what_is_allowed(void)
{
	ONLY_FAULT(RES "PERM 666\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:6: PERM is 666; allowed are 0001 to 0777 (a leading 0 makes it octal)");
	ONLY_FAULT(RES "MAXSERVERS 09\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:12: MAXSERVERS is \"09\", which is not a number (a leading 0");
	ONLY_FAULT(RES "MAXGTT 99999999999999999999\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:8: MAXGTT is 99999999999999999999; allowed are 0 to 32767");
	ONLY_FAULT(RES "MAXGTT -1\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:8: MAXGTT is -1; allowed are 0 to 32767");
	ONLY_FAULT(RES "LDBAL yes\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:7: LDBAL is \"yes\"; allowed are N, Y");
	ONLY_FAULT(
	    RES "OPTIONS LAN,NO_XB\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:9: OPTIONS is \"NO_XB\"; did you mean NO_XA?");
	ONLY_FAULT(RES "DOMAINID \"0123456789012345678901234567890\"\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:10: DOMAINID has 31 bytes; allowed are 30:");
	ONLY_FAULT(HEAD "\tTLOGDEVICE=\"TLOG\"\n" GRP "*SERVERS\n" TAIL,
	    "ubb:7:13: TLOGDEVICE is \"TLOG\"; allowed is an absolute path");
	ONLY_FAULT(HEAD "*GROUPS\nG LMID=SITE1 GRPNO=1 TMSCOUNT=1\n*SERVERS\n" TAIL,
	    "ubb:8:31: TMSCOUNT is 1; allowed are 0 and 2 to 10");
	ONLY_FAULT(HEAD "*GROUPS\nG LMID=\"\" GRPNO=1\n*SERVERS\n" TAIL, "ubb:8:8: LMID is empty; it is required");
}

static void
what_is_missing_is_named(void)
{
	ONLY_FAULT("*RESOURCES\nIPCKEY 52617\nMASTER SITE1\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:1:1: MODEL is missing; *RESOURCES requires it");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G\n" TAIL,
	    "ubb:11:1: SRVID is missing; every server requires it, and server \"a\" has none");
	ONLY_FAULT(RES, "ubb:1:1: section *MACHINES is missing; it is required");
	ONLY_FAULT(RES "*MACHINES\n", "ubb:5:1: *MACHINES has no machine");
	FAULT("", "ubb:1:1: section *RESOURCES is missing; it is required");
	FAULT("IPCKEY 5\n", "ubb:1:1: found IPCKEY; allowed here is a section");
	load(HEAD);
	CU_ASSERT_EQUAL(errors, 0);
	CU_ASSERT_EQUAL(warnings, 3);
	CU_ASSERT_TRUE(says("ubb:1:1: warning: section *GROUPS is missing"));
}

static void
a_value_that_is_not_there_is_missed_at_its_parameter(void)
{
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVID=1 SRVGRP=G RCMD=\nb SRVGRP=G SRVID=2\n" TAIL,
	    "ubb:11:20: RCMD has no value; found b");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVID=1 RCMD= SRVGRP=G\n" TAIL, "ubb:11:11: RCMD has no value; found SRVGRP");
	ONLY_FAULT(
	    HEAD GRP "*SERVERS\na SRVID=1 SRVGRP=G RCMD=", "ubb:11:20: RCMD has no value; found the end of the file");
	ONLY_FAULT(RES "DOMAINID\nLDBAL Y\n" MACH GRP "*SERVERS\n" TAIL, "ubb:5:1: DOMAINID has no value; found LDBAL");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVID=1 SRVGRP G RESTART=Y\n\tSRVGRP=G\n" TAIL,
	    "ubb:11:11: SRVGRP is not followed by =; write SRVGRP=value");
}

static void
a_parameter_given_twice_names_the_first(void)
{
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1\n MIN=1 SRVID=2\n" TAIL,
	    "ubb:12:8: SRVID is given again; it is given first at line 11, column 12");
	ONLY_FAULT(RES "IPCKEY 40000\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:1: IPCKEY is given again; it is given first at line 2, column 1");
}

static void
a_string_without_its_end_is_found_where_it_begins(void)
{
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 CLOPT=\"-A\n\tRCMD=\"x\" MIN=2\n" TAIL,
	    "ubb:11:26: this string is not closed");
	ONLY_FAULT(
	    HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 CLOPT=\"-A\n*SERVICES\nX\n", "ubb:11:26: this string is not closed");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1 CLOPT=\"-A", "ubb:11:26: this string is not closed");
}

static void
sections_have_names_letters_and_an_order(void)
{
	ONLY_FAULT(
	    HEAD GRP "*Servers\na SRVGRP=G SRVID=1\n" TAIL, "ubb:10:1: *Servers is not in capitals; write *SERVERS");
	ONLY_FAULT(
	    HEAD GRP "*SERVERS\n*SERVIECS\nX\n" TAIL, "ubb:11:1: *SERVIECS is no section; did you mean *SERVICES?");
	ONLY_FAULT(
	    HEAD GRP "*SERVERS\n*TABLES\nX Y=1\n" TAIL, "ubb:11:1: *TABLES is no section; sections are *RESOURCES");
	FAULT(MACH RES GRP "*SERVERS\n" TAIL,
	    "ubb:3:1: *RESOURCES must be the first section; *MACHINES stands before it at line 1");
	FAULT(HEAD "*SERVERS\n" GRP TAIL, "ubb:8:1: *GROUPS must stand before *SERVERS, which begins at line 7");
	ONLY_FAULT("*RESOURCES\nDEFAULT:\nIPCKEY 52617\nMASTER SITE1\nMODEL SHM\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:2:1: found DEFAULT:; *RESOURCES has no defaults");
}

static void
an_entry_begins_in_column_1(void)
{
	FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=1\n  b SRVID=2\n" TAIL,
	    "ubb:12:3: found \"b\"; allowed here is NAME=value, and a new server begins in column 1");
	load(HEAD GRP "*SERVERS\na SRVGRP=G\nSRVID=1\n" TAIL);
	CU_ASSERT_EQUAL(errors, 0);
	CU_ASSERT_TRUE(says("ubb:12:1: warning: SRVID= stands in column 1"));
}

static void
what_must_be_single_names_where_it_was_first(void)
{
	ONLY_FAULT(HEAD "*GROUPS\nA LMID=SITE1 GRPNO=1\nA LMID=SITE1 GRPNO=2\n*SERVERS\n" TAIL,
	    "ubb:9:1: group A is given again; it is given first at line 8, column 1");
	ONLY_FAULT(HEAD "*GROUPS\nA LMID=SITE1 GRPNO=1\nB LMID=SITE1 GRPNO=1\n*SERVERS\n" TAIL,
	    "ubb:9:20: GRPNO 1 is given again; group A has it at line 8, column 20");
	ONLY_FAULT(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=5\nb SRVGRP=G SRVID=3 MAX=3\n" TAIL,
	    "ubb:12:18: SRVID 3 to 5 (SRVID to SRVID+MAX-1) of group G meets 5 to 5 of a at line 11, column 18");
	ONLY_FAULT(HEAD GRP "*SERVERS\n" TAIL "S SRVGRP=G\nS\nS SRVGRP=G LOAD=5\n",
	    "ubb:14:1: service S of group G is given again; it is given first at line 12, column 1");
	FAULT(HEAD "h2 LMID=SITE1 TUXCONFIG=\"/a/t\" TUXDIR=\"/t\" APPDIR=\"/a\"\n" GRP "*SERVERS\n" TAIL,
	    "ubb:7:9: LMID SITE1 is given again; it is given first at line 6, column 11");
	FAULT(HEAD "h2 LMID=S2 TUXCONFIG=\"/a/t\" TUXDIR=\"/t\" APPDIR=\"/a\"\n" GRP "*SERVERS\n" TAIL,
	    "ubb:7:1: MODEL is SHM, which is one machine; this is the second one");
	/* The same number in two groups is fine. */
	GOOD(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=5\nTMQUEUE SRVGRP=QUE1 SRVID=5\n" TAIL);
}

static void
references_lead_somewhere(void)
{
	ONLY_FAULT("*RESOURCES\nIPCKEY 52617\nMASTER SITE2\nMODEL SHM\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:3:8: MASTER is \"SITE2\"; allowed is an LMID of *MACHINES, the first is SITE1");
	ONLY_FAULT(HEAD "*GROUPS\nG LMID=SITE2 GRPNO=1\n*SERVERS\n" TAIL, "ubb:8:8: LMID is \"SITE2\"");
	ONLY_FAULT(HEAD GRP "*SERVERS\n" TAIL "S SRVGRP=X\n", "ubb:12:10: SRVGRP is \"X\"");
	ONLY_FAULT(
	    HEAD GRP "*SERVERS\n" TAIL "S ROUTING=X\n", "ubb:12:11: ROUTING is \"X\"; *ROUTING has no such criterion");
}

static void
queue_groups_must_be_able_to_open_their_space(void)
{
#define GROUP(params) HEAD "*GROUPS\nQ LMID=SITE1 GRPNO=1 " params "\n*SERVERS\n"
	ONLY_FAULT(GROUP("TMSNAME=TMS_QM") TAIL, "ubb:8:1: group Q has TMSNAME=TMS_QM and no OPENINFO");
	ONLY_FAULT(GROUP("TMSNAME=TMS_QM OPENINFO=\"ORACLE:x\"") TAIL,
	    "ubb:8:46: OPENINFO is \"ORACLE:x\"; in a group with TMSNAME=TMS_QM allowed is");
	ONLY_FAULT(GROUP("TMSNAME=TMS_QM OPENINFO=\"TUXEDO/QM:QUE:SPACE\"") TAIL,
	    "ubb:8:46: the device \"QUE\" in OPENINFO is not an absolute path");
	ONLY_FAULT(GROUP("TMSNAME=TMS") "TMQUEUE SRVGRP=Q SRVID=1\n" TAIL,
	    "ubb:10:1: TMQUEUE needs a group with TMSNAME=TMS_QM; group Q at line 8 has TMSNAME=TMS");
	ONLY_FAULT(GROUP("") "TMQFORWARD SRVGRP=Q SRVID=1 CLOPT=\"-- -q A\"\n" TAIL,
	    "ubb:10:1: TMQFORWARD needs a group with TMSNAME=TMS_QM; group Q at line 8 has no TMSNAME");
	ONLY_FAULT(RES "OPTIONS NO_XA\n" MACH GRP "*SERVERS\n" TAIL,
	    "ubb:5:9: OPTIONS has NO_XA, but group QUE1 at line 10 has TMSNAME=TMS_QM");
	GOOD(GROUP("TMSNAME=\"/t/bin/TMS_QM\" OPENINFO=\"TUXEDO/QM:C:\\\\app\\\\QUE;SPACE\"") TAIL);
}

static void
forwarders_name_queues_and_share_nothing(void)
{
#define FORWARD(params) HEAD GRP "*SERVERS\nTMQFORWARD SRVGRP=QUE1 SRVID=5 " params "\n" TAIL
	ONLY_FAULT(FORWARD(""), "ubb:11:1: CLOPT of TMQFORWARD is \"-A\"; it must name queues");
	ONLY_FAULT(FORWARD("CLOPT=\"-A -q X -- -i 5\""), "ubb:11:38: CLOPT of TMQFORWARD is");
	ONLY_FAULT(FORWARD("CLOPT=\"-- -i 5 -q\""), "ubb:11:38: CLOPT of TMQFORWARD is");
	ONLY_FAULT(FORWARD("CLOPT=\"-s X -- -q A\""), "ubb:11:38: CLOPT of TMQFORWARD has -s");
	ONLY_FAULT(FORWARD("CLOPT=\"-- -q A\" REPLYQ=Y"), "ubb:11:55: REPLYQ of TMQFORWARD is Y; allowed is N");
	ONLY_FAULT(
	    FORWARD("CLOPT=\"-- -q A\" RQADDR=q MAX=2"), "ubb:11:55: RQADDR \"q\" would be shared by 2 TMQFORWARD");
	ONLY_FAULT(FORWARD("CLOPT=\"-- -q A\" RQADDR=q\nserver SRVGRP=G SRVID=1 RQADDR=q"),
	    "ubb:11:55: RQADDR \"q\" of TMQFORWARD is also that of server at line 12");
}

static void
bytes_that_are_no_text_are_shown(void)
{
	static const char text[] = HEAD GRP "*SERVERS\n\1\2 a\0b\n" TAIL;

	load_bytes(text, sizeof text - 1);
	CU_ASSERT_TRUE(errors > 0);
	CU_ASSERT_TRUE(says("ubb:11:1: a byte 0x01 stands here; text is expected"));
	CU_ASSERT_TRUE(says("ubb:11:5: a byte 0x00 stands here; text is expected"));
}

/* --- the same from libconfig text --- */

#define CONFIG_MACHINE \
	"machines = ( { ADDRESS = \"host\"; LMID = \"SITE1\"; TUXCONFIG = \"/a/t\"; TUXDIR = \"/t\"; APPDIR = " \
	"\"/a\"; } );\n"
#define CONFIG_SERVER(x) \
	"resources = { IPCKEY = 52617; MASTER = \"SITE1\"; MODEL = \"SHM\"; };\n" CONFIG_MACHINE \
	"groups = ( { NAME = \"G\"; LMID = \"SITE1\"; GRPNO = 1; } );\nservers = (\n { AOUT = \"a\"; SRVGRP = \"G\"; " \
	"SRVID = 1;\n   " x " } );\nservices = ();\n"

static void
libconfig_text_is_taken_too(void)
{
	GOOD(CONFIG_SERVER("GRACE = 2147483647; RESTART = true; RQPERM = \"0600\"; CLOPT = \"-A -- \\\"x\\\"\";"));
	CU_ASSERT_EQUAL(u->servers[0].grace, 2147483647L);
	CU_ASSERT_TRUE(u->servers[0].restart);
	CU_ASSERT_EQUAL(u->servers[0].rqperm, 0600);
	CU_ASSERT_STRING_EQUAL(u->servers[0].clopt, "-A -- \"x\"");
	GOOD("\xef\xbb\xbf// a comment\r\n" CONFIG_SERVER("GRACE = 1e9; /* 3000000000 */"));
	CU_ASSERT_EQUAL(u->servers[0].grace, 1000000000L);
	GOOD("/* a comment */ " CONFIG_SERVER("GRACE = 0x10;"));
	CU_ASSERT_EQUAL(u->servers[0].grace, 16);
	GOOD("resources = { IPCKEY = 52617; MASTER = [\"SITE1\"]; MODEL = \"SHM\"; };\n" CONFIG_MACHINE
	     "groups=();servers=();services=()");
}

static void
numbers_of_libconfig_text_are_right_or_refused(void)
{
	ONLY_FAULT(CONFIG_SERVER("GRACE = 2147483648;"), "ubb:6:4: GRACE is 2147483648; allowed are 0 to 2147483647");
	ONLY_FAULT(CONFIG_SERVER("GRACE = 3000000000L;"), "ubb:6:4: GRACE is 3000000000; allowed");
	ONLY_FAULT(CONFIG_SERVER("GRACE = 0xFFFFFFFF;"), "ubb:6:4: GRACE is 4294967295; allowed");
	ONLY_FAULT(CONFIG_SERVER("GRACE = -1;"), "ubb:6:4: GRACE is -1; allowed");
	ONLY_FAULT(CONFIG_SERVER("GRACE = 1.5;"), "ubb:6:4: GRACE is \"1.5\", which is not a number");
	ONLY_FAULT(CONFIG_SERVER("RQPERM = 0660;"),
	    "ubb:6:13: 0660: numbers have no octal form here; write it as a string, \"0660\"");
	ONLY_FAULT(CONFIG_SERVER("GRACE = { a = 1; };"), "ubb:6:4: GRACE is a group");
}

static void
faults_of_libconfig_text_have_their_place(void)
{
	FAULT(CONFIG_SERVER("MAXGENN = 5;"), "ubb:6:4: MAXGENN is no parameter of *SERVERS; did you mean MAXGEN?");
	ONLY_FAULT(CONFIG_SERVER("MIN = 1; MIN = 2;"), "ubb:6:1: duplicate setting name");
	ONLY_FAULT(CONFIG_SERVER("MIN = ;"), "ubb:6:1: syntax error");
	FAULT("resources = { IPCKEY = 1; } @include \"/etc/passwd\"\n", "ubb:1:29: @include is not taken");
	ONLY_FAULT("version = 1;\n rundir = \"x\n", "ubb:2:11: this string is not closed");
	ONLY_FAULT("@include \"/etc/passwd\"\n", "ubb:1:1: @include is not taken");
	FAULT("resources = { };\nbogus = 1;\n", "ubb:2:1: bogus is no section");
	FAULT("servers = ( 1 );\n", "ubb:1:1: allowed here is { NAME = value; ... }, a server");
}

/* --- looking up --- */

static void
records_are_found(void)
{
	struct utsname host;
	char text[1024];

	GOOD(HEAD GRP "*SERVERS\na SRVGRP=G SRVID=10 MAX=5\n" TAIL "S LOAD=1\nS SRVGRP=G LOAD=2\n");
	CU_ASSERT_PTR_EQUAL(ubb_machine_here(u), &u->machines[0]);
	CU_ASSERT_PTR_EQUAL(ubb_machine_by_lmid(u, "SITE1"), &u->machines[0]);
	CU_ASSERT_PTR_NULL(ubb_machine_by_lmid(u, "X"));
	CU_ASSERT_PTR_EQUAL(ubb_group_by_name(u, "QUE1"), &u->groups[1]);
	CU_ASSERT_PTR_EQUAL(ubb_server_by_id(u, "G", 14), &u->servers[0]);
	CU_ASSERT_PTR_NULL(ubb_server_by_id(u, "G", 15));
	CU_ASSERT_PTR_NULL(ubb_server_by_id(u, "QUE1", 10));
	CU_ASSERT_EQUAL(ubb_service_find(u, "S", "G")->load, 2);
	CU_ASSERT_EQUAL(ubb_service_find(u, "S", "QUE1")->load, 1);
	CU_ASSERT_EQUAL(ubb_service_find(u, "S", NULL)->load, 1);
	CU_ASSERT_PTR_NULL(ubb_service_find(u, "T", "G"));
	uname(&host);
	snprintf(text, sizeof text,
	    "*RESOURCES\nIPCKEY 52617\nMASTER S1\nMODEL MP\n*MACHINES\nDEFAULT: TUXDIR=\"/t\" APPDIR=\"/a\" "
	    "TUXCONFIG=\"/a/t\"\n"
	    "elsewhere LMID=S1\n\"%s\" LMID=S2\n*GROUPS\n*SERVERS\n*SERVICES\n",
	    host.nodename);
	GOOD(text);
	CU_ASSERT_STRING_EQUAL(ubb_machine_here(u)->lmid, "S2");
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_plain_file_is_read_with_its_defaults),
		UNIT(blanks_and_tabs_continue_an_entry),
		UNIT(blanks_may_stand_round_the_equals_sign),
		UNIT(resources_do_with_and_without_an_equals_sign),
		UNIT(comments_stand_anywhere_outside_quotes),
		UNIT(strings_have_escapes_and_may_run_over_a_line_end),
		UNIT(line_ends_of_other_systems_and_a_byte_order_mark_are_read),
		UNIT(the_last_line_needs_no_newline),
		UNIT(a_line_of_a_megabyte_is_read),
		UNIT(machine_names_do_with_and_without_quotes),
		UNIT(defaults_add_up_override_and_are_cleared),
		UNIT(none_as_openinfo_is_nothing),
		UNIT(an_empty_clopt_is_not_the_default_one),
		UNIT(queue_servers_are_read_as_real_files_write_them),
		UNIT(routing_ranges_are_checked_against_the_groups),
		UNIT(values_of_ranges_are_read),
		UNIT(ranges_that_cannot_be_are_refused),
		UNIT(ranges_that_overlap_are_pointed_out),
		UNIT(types_of_a_criterion_are_checked),
		UNIT(parameters_without_effect_are_kept),
		UNIT(a_section_that_has_no_effect_is_passed_over),
		UNIT(scanunit_and_what_counts_in_it),
		UNIT(every_fault_of_a_file_is_said_in_the_order_of_the_file),
		UNIT(an_unknown_parameter_is_explained),
		UNIT(a_wrong_value_is_told_what_is_allowed),
		UNIT(what_is_missing_is_named),
		UNIT(a_value_that_is_not_there_is_missed_at_its_parameter),
		UNIT(a_parameter_given_twice_names_the_first),
		UNIT(a_string_without_its_end_is_found_where_it_begins),
		UNIT(sections_have_names_letters_and_an_order),
		UNIT(an_entry_begins_in_column_1),
		UNIT(what_must_be_single_names_where_it_was_first),
		UNIT(references_lead_somewhere),
		UNIT(queue_groups_must_be_able_to_open_their_space),
		UNIT(forwarders_name_queues_and_share_nothing),
		UNIT(bytes_that_are_no_text_are_shown),
		UNIT(libconfig_text_is_taken_too),
		UNIT(numbers_of_libconfig_text_are_right_or_refused),
		UNIT(faults_of_libconfig_text_have_their_place),
		UNIT(records_are_found),
	};
	int rc = unit_run("ubbconfig: reading", tests, UNIT_COUNT(tests));

	forget();
	return rc;
}
