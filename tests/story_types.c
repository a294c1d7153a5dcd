/*
 * story_types - buffer types of one's own: from a program's switch through queues, services and TMQFORWARD, and back; TMQUEUE and
 * TMQFORWARD built anew.
 *
 * A NOTE is text that travels backwards, so whoever has no switch for it sees it backwards.
 */
#include <signal.h>

#include "given.h"

static const char apptypsw[] =
    "#include <string.h>\n#include <tmtypes.h>\n#include <userlog.h>\n"
    "static void turn(char *p, long n) { long i; char c; for (i = 0; i < n / 2; i++) { c = p[i]; p[i] = p[n - 1 - i]; p[n - 1 - i] = c; } }\n"
    "static int note_init(char *p, long n) { memset(p, 0, n); strcpy(p, \"blank\"); return 1; }\n"
    "static long note_presend(char *p, long len, long size) { long n = (long)strlen(p); turn(p, n);\n"
    "  return strcmp(p, \"terces\") == 0 ? -1 : n; }\n"
    "static void note_postsend(char *p, long n, long size) { turn(p, n); }\n"
    "static long note_postrecv(char *p, long n, long size) { turn(p, n); if (n < size) p[n] = 0;\n"
    "  userlog(\"a NOTE came\"); return n + 1; }\n"
    "struct tmtype_sw_t tm_typesw[] = {\n"
    "  { \"CARRAY\", \"*\", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },\n"
    "  { \"STRING\", \"*\", 512, _strinit, 0, 0, _strpresend, 0, 0, _strencdec, 0, _sfilter, _sformat },\n"
    "  { \"FML\", \"*\", 1024, _finit, _freinit, _funinit, _fpresend, _fpostsend, _fpostrecv, _fencdec, _froute, _ffilter, _fformat },\n"
    "  { \"NOTE\", \"*\", 128, note_init, 0, 0, note_presend, note_postsend, note_postrecv, 0, 0, 0, 0 },\n"
    "  { \"\" }\n};\n"
    "struct tmtype_sw_t *_tmtypeswaddr(void) { return tm_typesw; }\n";

static const char client[] =
    "#include <stdio.h>\n#include <string.h>\n#include <atmi.h>\n"
    "int main(int argc, char **argv)\n{\n"
    "	TPQCTL c;\n	long n = 0;\n	char type[9], *data = tpalloc(\"NOTE\", NULL, 0);\n"
    "	if (data == NULL || strcmp(data, \"blank\") != 0) { printf(\"no NOTE: %d\\n\", tperrno); return 1; }\n"
    "	memset(&c, 0, sizeof c); memset(type, 0, sizeof type);\n"
    "	if (strcmp(argv[1], \"put\") == 0) {\n"
    "		strcpy(data, argv[3]); c.flags = TPQREPLYQ; strcpy(c.replyqueue, \"ANSWER\");\n"
    "		if (tpenqueue(\"QSPACE\", argv[2], &c, data, 0, 0) == -1) { printf(\"tpenqueue: %d\\n\", tperrno); return 1; }\n"
    "		printf(\"%s\\n\", data);\n"
    "	} else if (strcmp(argv[1], \"call\") == 0) {\n"
    "		strcpy(data, argv[3]);\n"
    "		if (tpcall(argv[2], data, 0, &data, &n, 0) == -1) { printf(\"tpcall: %d\\n\", tperrno); return 1; }\n"
    "		printf(\"%s %ld\\n\", data, n);\n"
    "	} else {\n"
    "		c.flags = TPQWAIT;\n"
    "		tpfree(data); data = tpalloc(\"STRING\", NULL, 0);\n"
    "		if (tpdequeue(\"QSPACE\", argv[2], &c, &data, &n, 0) == -1) { printf(\"tpdequeue: %d\\n\", tperrno); return 1; }\n"
    "		tptypes(data, type, NULL);\n"
    "		printf(\"%s %ld %s\\n\", data, n, type);\n"
    "	}\n	tpfree(data);\n	tpterm();\n	return 0;\n}\n";

static const char service[] =
    "#include <ctype.h>\n#include <string.h>\n#include <atmi.h>\n"
    "void NOTES(TPSVCINFO *m)\n{\n"
    "	char type[9] = \"\", *out = tpalloc(\"NOTE\", NULL, 0), *p;\n"
    "	tptypes(m->data, type, NULL);\n"
    "	if (out == NULL || strcmp(type, \"NOTE\") != 0) tpreturn(TPFAIL, 1, NULL, 0, 0);\n"
    "	strcpy(out, m->data);\n"
    "	for (p = out; *p; p++) *p = (char)toupper((unsigned char)*p);\n"
    "	tpreturn(TPSUCCESS, m->len, out, 0, 0);\n}\n";

#define QUEUES \
	"qcreate NOTES fifo none 2 0 100% 0% \"\"\nqcreate ANSWER fifo none 2 0 100% 0% \"\"\nqcreate PLAIN fifo none 2 0 100% 0% \"\"\n"
#define FORWARDER(name) name " SRVGRP=QUE1 SRVID=5 REPLYQ=N RESTART=Y GRACE=0 CLOPT=\"-- -q NOTES\"\n"

static struct given *
given_notes(const char *servers, bool not_booted)
{
	struct given *g = given_directory();

	given_write(g, "apptypsw.c", "%s", apptypsw);
	given_write(g, "client.c", "%s", client);
	free(given_ok(g, NULL, "cc -I$TUXDIR/include $CFLAGS -std=gnu89 -c apptypsw.c"));
	free(given_ok(g, NULL, "buildclient -o client -f 'client.c apptypsw.o'"));
	return given_system_in(g, &(struct given_conf){ .queues = QUEUES, .server_source = service,
	    .server_services = "-s NOTES -f apptypsw.o", .servers = servers, .not_booted = not_booted });
}

static void
says(const struct given *g, const char *command, const char *wanted)
{
	char *out = given_ok(g, NULL, "%s", command);

	CU_ASSERT_STRING_EQUAL(out, wanted);
	free(out);
}

/* What this process, which has no switch, takes: the bytes, under the type's name. */
static void
seen_without_a_switch(const char *queue, const char *bytes)
{
	char *data = tpalloc("STRING", NULL, 0), type[9] = "";
	TPQCTL c = { 0 };
	long n = 0;

	GIVEN_CALL_OK(tpdequeue("QSPACE", (char *)queue, &c, &data, &n, 0));
	CU_ASSERT_EQUAL(n, (long)strlen(bytes));
	CU_ASSERT_EQUAL(memcmp(data, bytes, strlen(bytes)), 0);
	tptypes(data, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "NOTE");
	GIVEN_CALL_OK(tpenqueue("QSPACE", (char *)queue, NULL, data, n, 0));	/* and may send on */
	tpfree(data);
}

static void
a_message_of_ones_own_type_comes_back_as_it_was(void)
{
	struct given *g = given_notes(NULL, false);

	says(g, "./client put PLAIN 'two boxes of nails'", "two boxes of nails\n");
	seen_without_a_switch("PLAIN", "slian fo sexob owt");
	says(g, "./client take PLAIN", "two boxes of nails 19 NOTE\n");
	given_done(g);
}

static void
a_service_is_called_with_it_and_answers_with_it(void)
{
	struct given *g = given_notes(NULL, false);

	says(g, "./client call NOTES 'a pound of screws'", "A POUND OF SCREWS 18\n");
	given_done(g);
}

static void
what_its_presend_refuses_is_not_sent(void)
{
	struct given *g = given_notes(NULL, false);
	struct ran r = given_run(g, NULL, "./client put PLAIN secret");

	CU_ASSERT_EQUAL(r.status, 1);
	CU_ASSERT_STRING_EQUAL(r.out, "tpenqueue: 12\n");	/* TPESYSTEM */
	ran_free(&r);
	CU_ASSERT_EQUAL(depth(g, "PLAIN"), 0);
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5250"));
	given_done(g);
}

static void	/* It is bytes to TMQFORWARD, and a NOTE again where it arrives. */
tmqforward_passes_it_on_as_it_is(void)
{
	struct given *g = given_notes(FORWARDER("TMQFORWARD"), false);

	says(g, "./client put NOTES 'a gross of hinges'", "a gross of hinges\n");
	says(g, "./client take ANSWER", "A GROSS OF HINGES 18 NOTE\n");
	given_done(g);
}

static void	/* As the manuals of old have it; under names of their own. */
tmqueue_and_tmqforward_are_built_anew(void)
{
	struct given *g = given_notes(FORWARDER("MYFORWARD"), true);
	char *out;

	free(given_ok(g, NULL, "buildserver -o MYTMQUEUE -s QSPACE:TMQUEUE -r TUXEDO/QM -f $TUXDIR/lib/TMQUEUE.o -f apptypsw.o"));
	free(given_ok(g, NULL, "buildserver -o MYFORWARD -r TUXEDO/QM -f $TUXDIR/lib/TMQFORWARD.o -f apptypsw.o"));
	free(given_ok(g, NULL, "sed -i 's/^TMQUEUE.*SRVGRP=QUE1 .*/MYTMQUEUE SRVGRP=QUE1 SRVID=1 RESTART=Y GRACE=0 MAXGEN=9 CLOPT=\"-A\"/' ubb && tmloadcf -y ubb"));
	given_boot(g);
	CU_ASSERT_EQUAL(given_count(g, "MYTMQUEUE"), 1);
	CU_ASSERT_EQUAL(given_count(g, "MYFORWARD"), 1);
	says(g, "./client put NOTES 'a gross of hinges'", "a gross of hinges\n");
	says(g, "./client take ANSWER", "A GROSS OF HINGES 18 NOTE\n");
	CU_ASSERT_TRUE(given_logged(g, "MYFORWARD."));
	CU_ASSERT_TRUE(given_logged(g, "a NOTE came"));
	out = given_ok(g, "psr\nq\n", "tmadmin");
	CU_ASSERT_TRUE(has(out, "MYTMQUEUE "));
	CU_ASSERT_TRUE(has(out, "MYFORWARD "));
	free(out);
	given_kill(g, "MYTMQUEUE", SIGKILL);	/* and is a queue manager like any other */
	says(g, "./client put PLAIN 'two boxes of nails'", "two boxes of nails\n");
	says(g, "./client take PLAIN", "two boxes of nails 19 NOTE\n");
	given_done(g);
}

static void	/* It may be a program's, or a library's that it is linked with. */
the_switch_may_be_in_a_shared_library(void)
{
	struct given *g = given_notes(NULL, false);

	free(given_ok(g, NULL, "cc -I$TUXDIR/include $CFLAGS -fPIC -shared -o libtypes.so apptypsw.c"));
	free(given_ok(g, NULL, "buildclient -o client2 -f client.c -l '-L. -Wl,-rpath,'$PWD' -Wl,--no-as-needed -ltypes'"));
	says(g, "./client2 put PLAIN 'two boxes of nails'", "two boxes of nails\n");
	seen_without_a_switch("PLAIN", "slian fo sexob owt");
	says(g, "./client2 take PLAIN", "two boxes of nails 19 NOTE\n");
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_message_of_ones_own_type_comes_back_as_it_was),
		UNIT(a_service_is_called_with_it_and_answers_with_it),
		UNIT(what_its_presend_refuses_is_not_sent),
		UNIT(tmqforward_passes_it_on_as_it_is),
		UNIT(tmqueue_and_tmqforward_are_built_anew),
		UNIT(the_switch_may_be_in_a_shared_library),
	};

	return unit_run("buffer types of one's own", tests, UNIT_COUNT(tests));
}
