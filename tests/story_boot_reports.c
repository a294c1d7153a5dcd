/*
 * story_boot_reports - what users of other systems ran into when they booted and shut down; named after the report.
 */
#include "given_crash.h"

#include <signal.h>

/* --- R61: operators ignore the first error of tmshutdown, zap IPC, and boot again --- */

static void
r61_zap_and_boot_again_loses_nothing(void)
{
	crash_zap(20);
}

/* --- R62: a test suite fails when a server writes one byte on stderr --- */

static const char source[] =
    "#include <atmi.h>\n#include <string.h>\n"
    "void ECHO(TPSVCINFO *m) { if (m->data != NULL && strcmp(m->data, \"fail\") == 0) tpreturn(TPFAIL, 1, m->data, 0, 0);\n"
    "  tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n"
    "void NEXT(TPSVCINFO *m) { tpforward(\"ECHO\", m->data, 0, 0); }\n"
    "int tpsvrinit(int argc, char **argv) { return 0; }\n"
    "void tpsvrdone(void) { }\n";

static int
call(const char *service, const char *text)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	int rc;

	snprintf(data, 64, "%s", text);
	rc = tpcall((char *)service, data, 0, &data, &len, 0) == -1 ? tperrno : 0;
	tpfree(data);
	return rc;
}

static void
request(const char *text)
{
	TPQCTL ctl = { .flags = TPQREPLYQ | TPQFAILUREQ };
	char *data = tpalloc("STRING", NULL, 64);

	snprintf(data, 64, "%s", text);
	snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "ANSWER");
	snprintf(ctl.failurequeue, sizeof ctl.failurequeue, "FAILURE");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ECHO", &ctl, data, 0, 0));
	tpfree(data);
}

static struct given *
all_our_servers(const char *server_params)
{
	return given_system(&(struct given_conf){ .server_source = source, .server_services = "-s ECHO -s NEXT", .server_params = server_params,
	    .queues = "qcreate ECHO fifo none 3 0 100% 0% \"\"\nqcreate ANSWER fifo none 3 0 100% 0% \"\"\nqcreate FAILURE fifo none 3 0 100% 0% \"\"\n",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=10 CLOPT=\"-- -i 1 -d -q ECHO\"\nserver SRVGRP=APP SRVID=20 RQADDR=\"set\" MIN=2 MAX=3\n" });
}

static void
nothing_is_written(struct given *g)
{
	static const char *const files[] = { "stderr", "stdout", "err", "out" };

	for (size_t i = 0; i < UNIT_COUNT(files); i++) {
		char *text = given_read(g, files[i]);

		CU_ASSERT_STRING_EQUAL(text != NULL ? text : "", "");
		free(text);
	}
}

static void
works(struct given *g)
{
	char *text;

	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	CU_ASSERT_EQUAL(call("NEXT", "x"), 0);
	CU_ASSERT_EQUAL(call("ECHO", "fail"), TPESVCFAIL);
	CU_ASSERT_EQUAL(call("NOTHERE", "x"), TPENOENT);
	request("x");
	CU_ASSERT_PTR_NOT_NULL(text = take_within("ANSWER", 20));
	free(text);
	request("fail");
	CU_ASSERT_PTR_NOT_NULL(text = take_within("FAILURE", 20));
	free(text);
	free(given_ok(g, NULL, "echo psr | tmadmin -r >/dev/null 2>&1"));
	tpterm();
}

static void
r62_no_server_writes_a_byte_on_stderr(void)
{
	static const char *const params[] = { "", "CLOPT=\"-A -e err -o out\"", "MINDISPATCHTHREADS=1 MAXDISPATCHTHREADS=4" };

	for (size_t i = 0; i < UNIT_COUNT(params); i++) {
		struct given *g = all_our_servers(params[i]);

		works(g);
		given_shutdown(g);
		nothing_is_written(g);
		given_boot(g);			/* and with what goes wrong, which the log tells */
		given_kill(g, "TMQUEUE", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", 0, 20));
		given_kill(g, "BBL", SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", 0, 20));
		works(g);
		given_shutdown(g);
		nothing_is_written(g);
		given_done(g);
	}
}

/* --- R20: tmshutdown of a set of servers that share a queue left one behind --- */

static bool
bbl_alone(void *g)
{
	return given_count(g, NULL) == 1;
}

static void
r20_all_servers_of_a_set_are_shut_down(void)
{
	struct given *g = given_system(&(struct given_conf){ .no_queue_group = true, .server_source = source, .server_services = "-s ECHO -s NEXT",
	    .server_params = "RQADDR=\"set\" MIN=5 MAX=8 REPLYQ=Y RESTART=Y GRACE=0" });
	int i;

	for (i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
		tpterm();
		free(given_ok(g, NULL, "tmboot -i %d", 6 + i % 3));
		kill(given_pid(g, "server", i), SIGKILL);
		free(given_ok(g, NULL, i % 2 == 0 ? "tmshutdown -s server" : "tmshutdown -g APP -k TERM"));
		CU_ASSERT_TRUE(wait_until(bbl_alone, g, 10));	/* TMRQ ends once its last server has */
		free(given_ok(g, NULL, "tmboot -y"));
	}
	given_done(g);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(r61_zap_and_boot_again_loses_nothing),
		UNIT(r62_no_server_writes_a_byte_on_stderr),
		UNIT(r20_all_servers_of_a_set_are_shut_down),
	};

	if (crash_is_client(argc, argv))
		return crash_client(argc, argv);
	return unit_run("boot reports", tests, UNIT_COUNT(tests));
}
