/*
 * story_old_spaces - whole programs in the style of old ones, built as their makefiles build them (the compiler's own dialect, and
 * -std=gnu89), over two queue spaces: uninitialised control structures, tpopen() first, tpbegin(30, 0), no look at return codes.
 */
#include <signal.h>

#include "given.h"

/* Puts an order into one space and its bill into the other. */
static const char order_c[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"atmi.h\"\n#include \"userlog.h\"\n\n"
    "extern char *proc_name;\n"
    "main(argc, argv)\nint argc;\nchar *argv[];\n{\n"
    "\tTPQCTL qctl;\n\tTPINIT *tpinitbuf;\n\tchar *sendbuf;\n\tint rc;\n\n"
    "\tproc_name = argv[0];\n"
    "\ttpinitbuf = (TPINIT *)tpalloc(\"TPINIT\", (char *)NULL, TPINITNEED(16));\n"
    "\tstrcpy(tpinitbuf->usrname, \"clerk\"); strcpy(tpinitbuf->cltname, \"order\"); tpinitbuf->passwd[0] = '\\0';\n"
    "\ttpinitbuf->flags = 0L; tpinitbuf->datalen = 0L; tpinitbuf->grpname[0] = '\\0';\n"
    "\tif (tpinit(tpinitbuf) == -1) { (void)fprintf(stderr, \"tpinit: %s\\n\", tpstrerror(tperrno)); exit(1); }\n"
    "\tif (tpopen() == -1) { (void)userlog(\"tpopen failed\"); tpterm(); exit(1); }\n"
    "\tif ((sendbuf = tpalloc(\"STRING\", NULL, 80L)) == NULL) exit(1);\n"
    "\tif (tpbegin(30, 0) == -1) { fprintf(stderr, \"tpbegin: %s\\n\", tpstrerror(tperrno)); exit(1); }\n"
    "\tqctl.flags = TPNOFLAGS;\n"
    "\t(void)sprintf(sendbuf, \"order %s\", argv[1]);\n"
    "\tif (tpenqueue(\"QSPACE\", \"ORDERS\", &qctl, sendbuf, 0L, 0L) == -1) {\n"
    "\t\tif (tperrno == TPEDIAGNOSTIC) fprintf(stderr, \"diagnostic %ld\\n\", qctl.diagnostic);\n"
    "\t\ttpabort(0L); tpterm(); exit(1); }\n"
    "\t(void)sprintf(sendbuf, \"bill %s\", argv[1]);\n"
    "\tqctl.flags = TPQMSGID|TPQPRIORITY; qctl.priority = 70;\n"
    "\tif (tpenqueue(\"QSPACE2\", argc > 2 ? argv[2] : \"BILLS\", &qctl, sendbuf, 0L, TPSIGRSTRT) == -1) {\n"
    "\t\tif (tperrno == TPEDIAGNOSTIC) fprintf(stderr, \"diagnostic %ld\\n\", qctl.diagnostic);\n"
    "\t\trc = tpabort(0L); if (rc == -1) fprintf(stderr, \"tpabort\\n\"); tpclose(); tpterm(); exit(2); }\n"
    "\tif (tpcommit(0) == -1) { fprintf(stderr, \"tpcommit: %s\\n\", tpstrerror(tperrno)); tpterm(); exit(3); }\n"
    "\ttpfree(sendbuf); tpfree((char *)tpinitbuf);\n"
    "\ttpclose();\n\ttpterm();\n\tprintf(\"%s done\\n\", argv[1]);\n\treturn(0);\n}\n";

/* Moves all orders of one space to the other, each by way of a service, until there are none. */
static const char move_c[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <atmi.h>\n\n"
    "int main(int argc, char **argv)\n{\n"
    "    TPQCTL ctl; char *buf; long len; int n = 0, failed = 0;\n"
    "    if (tpopen() == -1) { printf(\"tpopen %d\\n\", tperrno); return 1; }     /* joins */\n"
    "    buf = tpalloc(\"STRING\", NULL, 128);\n"
    "    for (;;) {\n"
    "        if (tpbegin(30, 0) == -1) { printf(\"tpbegin %d\\n\", tperrno); break; }\n"
    "        ctl.flags = TPQPRIORITY | TPQCORRID;\n"
    "        if (tpdequeue(\"QSPACE\", \"ORDERS\", &ctl, &buf, &len, 0) == -1) {\n"
    "            if (tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG) { tpabort(0); break; }\n"
    "            tpabort(0); failed++; if (failed > 20) break; continue; }\n"
    "        if (argc > 1 && n == 1 && failed == 0) { strcpy(buf, \"fail\"); }\n"
    "        if (tpcall(\"PRICE\", buf, 0, &buf, &len, 0) == -1) { tpabort(0); failed++; if (failed > 20) break; continue; }\n"
    "        ctl.flags = 0;\n"
    "        if (tpenqueue(\"QSPACE2\", \"PRICED\", &ctl, buf, 0, 0) == -1) { tpabort(0); failed++; if (failed > 20) break; continue; }\n"
    "        if (tpcommit(0) == -1) { failed++; if (failed > 20) break; continue; }\n"
    "        n++;\n"
    "    }\n"
    "    printf(\"moved %d, failed %d\\n\", n, failed);\n"
    "    tpterm();\n    return 0;\n}\n";

/* A server of its time: its own tpsvrinit(), static data, a service that writes into the second space. */
static const char server_c[] =
    "#include <stdio.h>\n#include <string.h>\n#include <atmi.h>\n#include <userlog.h>\n\n"
    "static long served;\n"
    "tpsvrinit(argc, argv)\nint argc; char **argv;\n{\n\tif (tpopen() == -1) { userlog(\"tpopen: %d\", tperrno); return(-1); }\n"
    "\tuserlog(\"price server is up\");\n\treturn(0);\n}\n"
    "void tpsvrdone()\n{\n\ttpclose();\n}\n"
    "PRICE(rqst)\nTPSVCINFO *rqst;\n{\n\tTPQCTL qctl; char *note; char text[100];\n\tserved++;\n"
    "\tif (strcmp(rqst->data, \"fail\") == 0) tpreturn(TPFAIL, 1L, rqst->data, 0L, 0L);\n"
    "\tif (!(rqst->flags & TPTRAN)) tpreturn(TPFAIL, 2L, rqst->data, 0L, 0L);\n"
    "\tnote = tpalloc(\"STRING\", NULL, 120L);\n\tsprintf(note, \"noted %s\", rqst->data);\n\tqctl.flags = TPNOFLAGS;\n"
    "\tif (tpenqueue(\"QSPACE2\", \"NOTES\", &qctl, note, 0L, 0L) == -1) { tpfree(note); tpreturn(TPFAIL, 3L, rqst->data, 0L, 0L); }\n"
    "\ttpfree(note);\n\tsprintf(text, \"priced %s\", rqst->data);\n\trqst->data = tprealloc(rqst->data, 200L);\n"
    "\tstrcpy(rqst->data, text);\n\ttpreturn(TPSUCCESS, 0L, rqst->data, 0L, 0L);\n}\n";

/* TX, as in books about it. */
static const char tx_c[] =
    "#include <stdio.h>\n#include <string.h>\n#include <tx.h>\n#include <atmi.h>\n\n"
    "int main()\n{\n"
    "    char *b; TPQCTL c; TXINFO info; int rc;\n"
    "    if (tx_open() != TX_OK) return 1;\n"
    "    if (tx_set_transaction_timeout((TRANSACTION_TIMEOUT)30) != TX_OK) return 2;\n"
    "    if (tx_begin() != TX_OK) return 3;\n"
    "    b = tpalloc(\"STRING\", NULL, 50); strcpy(b, \"by tx\"); memset((char *)&c, '\\0', sizeof(c));\n"
    "    if (tpenqueue(\"QSPACE\", \"ORDERS\", &c, b, 0, 0) < 0 || tpenqueue(\"QSPACE2\", \"BILLS\", &c, b, 0, 0) < 0) { tx_rollback(); return 4; }\n"
    "    if (tx_info(&info) != 1 || info.transaction_state != TX_ACTIVE) return 5;\n"
    "    if ((rc = tx_commit()) != TX_OK) { printf(\"tx_commit %d\\n\", rc); return 6; }\n"
    "    if (tx_close() != TX_OK) return 7;\n"
    "    puts(\"tx done\");\n    return 0;\n}\n";

/* Gives up in the middle, as programs do that find a file missing: no tpabort(), no tpterm(); or worse. */
static const char quit_c[] =
    "#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n#include <atmi.h>\n"
    "int main(int argc, char **argv)\n{\n    TPQCTL c; char *b = tpalloc(\"STRING\", 0, 100); long n;\n"
    "    tpbegin(5, 0);\n    c.flags = 0; tpdequeue(\"QSPACE\", \"ORDERS\", &c, &b, &n, 0);\n"
    "    c.flags = 0; tpenqueue(\"QSPACE2\", \"BILLS\", &c, b, 0, 0);\n"
    "    if (argc > 1) kill(getpid(), SIGKILL);\n    exit(9);\n}\n";

static struct given *
given_old_shop(const char *cflags)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .not_booted = true, .groups = "OLD LMID=SITE1 GRPNO=50",
	    .servers = "prices SRVGRP=OLD SRVID=1 CLOPT=\"-A\"",
	    .queues = "qcreate ORDERS fifo none 9 0 100% 0% \"\"\nqcreate BILLS fifo none 9 0 100% 0% \"\"\n"
		      "qcreate PRICED fifo none 9 0 100% 0% \"\"\nqcreate NOTES fifo none 9 0 100% 0% \"\"\n" });

	given_write(g, "order.c", "%s", order_c);
	given_write(g, "move.c", "%s", move_c);
	given_write(g, "prices.c", "%s", server_c);
	given_write(g, "txprog.c", "%s", tx_c);
	given_write(g, "quit.c", "%s", quit_c);
	free(given_ok(g, NULL, "CFLAGS=\"$CFLAGS %s\" buildserver -o prices -s PRICE -f prices.c", cflags));
	free(given_ok(g, NULL, "for p in order move txprog quit; do CFLAGS=\"$CFLAGS %s\" buildclient -o $p -f $p.c || exit 1; done", cflags));
	given_boot(g);
	return g;
}

static bool
says(const struct given *g, const char *command, const char *text)
{
	char *out = given_ok(g, NULL, "%s", command);
	bool same = strcmp(out, text) == 0;

	if (!same)
		fprintf(stderr, "\n%s: %s", command, out);
	free(out);
	return same;
}

static bool
comes(const char *space, const char *queue, const char *text)
{
	char *got = NULL;
	bool same;

	for (int i = 0; i < 1000 && (got = take_from(space, queue)) == NULL; i++)
		nap_ms(10);
	same = got != NULL && strcmp(got, text) == 0;
	if (!same)
		fprintf(stderr, "\n%s %s: \"%s\" instead of \"%s\"\n", space, queue, got != NULL ? got : "nothing", text);
	free(got);
	return same;
}

static void
shop(const char *cflags)
{
	struct given *g = given_old_shop(cflags);
	struct ran r;

	/* both or none */
	CU_ASSERT_TRUE(says(g, "./order one", "one done\n"));
	r = given_run(g, NULL, "./order two NONE");
	CU_ASSERT_EQUAL(r.status, 2);
	CU_ASSERT_STRING_EQUAL(r.err, "diagnostic -10\n");
	ran_free(&r);
	CU_ASSERT_TRUE(says(g, "./order three", "three done\n"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);
	CU_ASSERT_EQUAL(depth_in(g, 2, "BILLS"), 2);
	CU_ASSERT_TRUE(comes("QSPACE2", "BILLS", "bill one") && comes("QSPACE2", "BILLS", "bill three"));

	/* through a service, which writes too; one of them fails the first time */
	CU_ASSERT_TRUE(says(g, "./order four", "four done\n"));
	CU_ASSERT_TRUE(says(g, "./move failing", "moved 3, failed 1\n"));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	CU_ASSERT_TRUE(comes("QSPACE2", "PRICED", "priced order one") && comes("QSPACE2", "PRICED", "priced order three") &&
	    comes("QSPACE2", "PRICED", "priced order four"));
	CU_ASSERT_TRUE(comes("QSPACE2", "NOTES", "noted order one") && comes("QSPACE2", "NOTES", "noted order three") &&
	    comes("QSPACE2", "NOTES", "noted order four"));
	CU_ASSERT_EQUAL(depth_in(g, 2, "PRICED"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "NOTES"), 0);
	CU_ASSERT_TRUE(comes("QSPACE2", "BILLS", "bill four"));

	CU_ASSERT_TRUE(says(g, "./txprog", "tx done\n"));
	CU_ASSERT_TRUE(comes("QSPACE2", "BILLS", "by tx"));

	/* gone in the middle: all is as before, at once where the program could still say so, else by time */
	r = given_run(g, NULL, "./quit");
	CU_ASSERT_EQUAL(r.status, 9);
	ran_free(&r);
	CU_ASSERT_TRUE(peeks("ORDERS", "by tx"));
	r = given_run(g, NULL, "./quit now");
	ran_free(&r);
	CU_ASSERT_TRUE(comes("QSPACE", "ORDERS", "by tx"));
	CU_ASSERT_EQUAL(depth_in(g, 2, "BILLS"), 0);
	given_done(g);
}

static void
old_programs_use_two_spaces(void)
{
	shop("");
}

static void
old_programs_of_1989_use_two_spaces(void)
{
	shop("-std=gnu89");
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(old_programs_use_two_spaces),
		UNIT(old_programs_of_1989_use_two_spaces),
	};

	return unit_run("story: old programs and two spaces", tests, UNIT_COUNT(tests));
}
