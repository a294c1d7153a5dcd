/*
 * story_service - what a service routine may do, and what its caller sees of it; real server, real BBL.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

static const char source[] =
    "#include <atmi.h>\n#include <userlog.h>\n#include <string.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "
    "<unistd.h>\n"
    "static int inits;\n"
    "int tpsvrinit(int argc, char **argv) { inits = argc; userlog(\"init with %d: %s\", argc, argc > 1 ? argv[1] : "
    "\"\"); return 0; }\n"
    "void tpsvrdone(void) { userlog(\"done was called\"); }\n"
    "void ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 42, m->data, m->len, 0); }\n"
    "void OTHER(TPSVCINFO *m) { char *b = tpalloc(\"CARRAY\", NULL, 100000); memset(b, 7, 100000);\n"
    "  tpfree(m->data); tpreturn(TPSUCCESS, 0, b, 100000, 0); }\n"
    "void FAIL(TPSVCINFO *m) { tpreturn(TPFAIL, 13, m->data, m->len, 0); }\n"
    "void FORW(TPSVCINFO *m) { tpforward(\"ECHO\", m->data, m->len, 0); }\n"
    "void FORWFORW(TPSVCINFO *m) { tpforward(\"FORW\", m->data, m->len, 0); }\n"
    "void FORWNONE(TPSVCINFO *m) { tpforward(\"NOBODY\", m->data, m->len, 0); }\n"
    "void NORETURN(TPSVCINFO *m) { (void)m; }\n"
    "void BADDATA(TPSVCINFO *m) { static char s[] = \"x\"; (void)m; tpreturn(TPSUCCESS, 0, s, 0, 0); }\n"
    "void OPENCALL(TPSVCINFO *m) { tpacall(\"SECOND\", m->data, m->len, 0); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void OPENTRAN(TPSVCINFO *m) { tpbegin(10, 0); tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0);\n"
    "  tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void PUT(TPSVCINFO *m) { if (tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0) == -1)\n"
    "  tpreturn(TPFAIL, tperrno, NULL, 0, 0); tpreturn(TPSUCCESS, tpgetlev(), NULL, 0, 0); }\n"
    "void PUTFAIL(TPSVCINFO *m) { tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0); tpreturn(TPFAIL, 0, NULL, 0, "
    "0); }\n"
    "void COMMIT(TPSVCINFO *m) { int rc = tpcommit(0); (void)m; tpreturn(TPSUCCESS, rc == -1 ? tperrno : 0, NULL, 0, "
    "0); }\n"
    "void OFFER(TPSVCINFO *m) { int rc = tpadvertise(m->data, FAIL); tpreturn(rc ? TPFAIL : TPSUCCESS, tperrno, NULL, "
    "0, 0); }\n"
    "void TAKE(TPSVCINFO *m) { int rc = tpunadvertise(m->data); tpreturn(rc ? TPFAIL : TPSUCCESS, tperrno, NULL, 0, "
    "0); }\n"
    "void FLAGS(TPSVCINFO *m) { tpreturn(TPSUCCESS, m->flags, NULL, 0, 0); }\n"
    "void INIT(TPSVCINFO *m) { int a = tpinit(NULL) == -1 ? tperrno : 0, b = tpterm() == -1 ? tperrno : 0; (void)m;\n"
    "  tpreturn(TPSUCCESS, a * 100 + b, NULL, 0, 0); }\n"
    "void NEXT(TPSVCINFO *m) { char *r = tpalloc(\"STRING\", NULL, 10); long n; int rc = tpcall(\"SECOND\", m->data, "
    "m->len, &r, &n, 0);\n"
    "  tpreturn(rc ? TPFAIL : TPSUCCESS, tpurcode, r, n, 0); }\n"
    "void PID(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void EXIT(TPSVCINFO *m) { while (m->len > 1 && access(m->data, F_OK) != 0) usleep(1000);\n"
    "  tpreturn(TPEXIT, 1, NULL, 0, 0); }\n"
    "void DIE(TPSVCINFO *m) { (void)m; _exit(3); }\n";

static void
given_services(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .server_source = source,
		    .server_services = "-s ECHO,OTHER,FAIL -s FORW,FORWFORW,FORWNONE -s "
				       "NORETURN,BADDATA,OPENCALL,OPENTRAN,PUT,PUTFAIL,COMMIT "
				       "-s OFFER,TAKE,FLAGS -s AUTO:FLAGS -s INIT,NEXT,PID,EXIT,DIE -s SECOND,BOTH:ECHO",
		    .server_params = "RESTART=Y MAXGEN=20 GRACE=0 CLOPT=\"-A -- first second\"\n"
				     "server\tSRVGRP=APP SRVID=2 CLOPT=\"-s SECOND,BOTH:ECHO\"",
		    .services = "AUTO AUTOTRAN=Y TRANTIME=5\nECHO BUFTYPE=\"STRING;CARRAY\"\nSLOWNAME BLOCKTIME=1",
		    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

static char *buffer;
static long length;

static int
call(const char *service, const char *text)
{
	buffer = tpalloc("STRING", NULL, 512);
	snprintf(buffer, 512, "%s", text);
	length = 0;
	return tpcall((char *)service, buffer, 0, &buffer, &length, 0);
}

#define ANSWERS(service, rc, error, code) do { \
	CU_ASSERT_EQUAL(call(service, "text"), rc); \
	if ((rc) == -1) CU_ASSERT_EQUAL(tperrno, error); \
	if ((code) != -1) CU_ASSERT_EQUAL(tpurcode, code); \
} while (0)

static void
reply_and_code_come_back(void)
{
	char type[9] = "", subtype[17] = "";

	given_services();
	ANSWERS("ECHO", 0, 0, 42);
	CU_ASSERT_STRING_EQUAL(buffer, "text");
	ANSWERS("OTHER", 0, 0, 0);
	CU_ASSERT_EQUAL(length, 100000);
	tptypes(buffer, type, subtype);
	CU_ASSERT_STRING_EQUAL(type, "CARRAY");
	ANSWERS("FAIL", -1, TPESVCFAIL, 13);
	CU_ASSERT_STRING_EQUAL(buffer, "text");
	ANSWERS("NOBODY", -1, TPENOENT, -1);
	CU_ASSERT_TRUE(given_logged(g, "init with 3: first"));
}

static void
forwarding_ends_at_the_caller(void)
{
	given_services();
	ANSWERS("FORW", 0, 0, 42);
	ANSWERS("FORWFORW", 0, 0, 42);
	CU_ASSERT_STRING_EQUAL(buffer, "text");
	ANSWERS("FORWNONE", -1, TPESVCERR, -1);
	ANSWERS("ECHO", 0, 0, 42);
}

static void
routine_that_goes_wrong_is_a_service_error(void)
{
	given_services();
	ANSWERS("NORETURN", -1, TPESVCERR, -1);
	ANSWERS("BADDATA", -1, TPESVCERR, -1);
	ANSWERS("OPENCALL", -1, TPESVCERR, -1);
	ANSWERS("OPENTRAN", -1, TPESVCERR, -1);
	CU_ASSERT_PTR_NULL(take("Q"));
	ANSWERS("INIT", 0, 0, TPEPROTO * 100 + TPEPROTO);
	ANSWERS("NEXT", 0, 0, 42);
}

static void	/* What a service does in its caller's transaction is decided by the caller. */
service_works_in_the_transaction_of_its_caller(void)
{
	char *text;

	given_services();
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	ANSWERS("PUT", 0, 0, 1);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "text");
	free(text);
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	ANSWERS("PUT", 0, 0, 1);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_PTR_NULL(take("Q"));
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	ANSWERS("PUTFAIL", -1, TPESVCFAIL, 0);
	ANSWERS("PUT", -1, TPETIME, -1);		/* rollback-only */
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_PTR_NULL(take("Q"));
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	ANSWERS("COMMIT", 0, 0, TPEPROTO);		/* only the initiator may */
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	ANSWERS("PUT", 0, 0, 0);
	CU_ASSERT_STRING_EQUAL(text = take("Q"), "text");
	free(text);
}

static void
service_is_told_of_the_transaction_it_is_in(void)
{
	given_services();
	ANSWERS("FLAGS", 0, 0, 0);
	ANSWERS("AUTO", 0, 0, TPTRAN);
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	ANSWERS("FLAGS", 0, 0, TPTRAN);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
}

static void
services_come_and_go_at_run_time(void)
{
	given_services();
	CU_ASSERT_EQUAL(call("OFFER", "LATER"), 0);
	ANSWERS("LATER", -1, TPESVCFAIL, 13);
	CU_ASSERT_EQUAL(call("OFFER", "ECHO"), -1);	/* with another function */
	CU_ASSERT_EQUAL(tpurcode, TPEMATCH);
	CU_ASSERT_EQUAL(call("OFFER", ".SYSTEM"), -1);
	CU_ASSERT_EQUAL(tpurcode, TPEINVAL);
	CU_ASSERT_EQUAL(call("TAKE", "LATER"), 0);
	ANSWERS("LATER", -1, TPENOENT, -1);
	CU_ASSERT_EQUAL(call("TAKE", "LATER"), -1);
	CU_ASSERT_EQUAL(tpurcode, TPENOENT);
}

static void	/* Whom its callers know as one of two refuses, and the other one is called. */
service_that_one_server_takes_back_is_called_at_the_other(void)
{
	int i;

	given_services();
	for (i = 0; i < 4; i++)
		ANSWERS("BOTH", 0, 0, 42);
	CU_ASSERT_EQUAL(call("TAKE", "BOTH"), 0);
	for (i = 0; i < 4; i++)
		ANSWERS("BOTH", 0, 0, 42);
}

static void
buffer_type_that_the_service_does_not_take_is_refused(void)
{
	char *b;
	long len;

	given_services();
	CU_ASSERT_EQUAL(call("ECHO", "x"), 0);
	b = tpalloc(X_OCTET, NULL, 10);
	CU_ASSERT_EQUAL(tpcall("ECHO", b, 5, &b, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEITYPE);
	CU_ASSERT_EQUAL(tpcall("PID", b, 5, &b, &len, 0), 0);
	tpfree(b);
}

static void
server_that_ends_is_started_again_and_found_again(void)
{
	long before;

	given_services();
	CU_ASSERT_EQUAL(call("PID", ""), 0);
	before = tpurcode;
	CU_ASSERT_EQUAL(call("EXIT", ""), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCFAIL);
	CU_ASSERT_EQUAL(call("PID", ""), 0);		/* waits for the new one */
	CU_ASSERT_NOT_EQUAL(tpurcode, before);
	before = tpurcode;
	CU_ASSERT_EQUAL(call("DIE", ""), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_EQUAL(call("PID", ""), 0);		/* waits for the new one */
	CU_ASSERT_NOT_EQUAL(tpurcode, before);
}

static void	/* What stands behind the request that ends the server is not done by it, but by the one that is started in its place. */
request_that_a_server_did_not_take_before_its_end_goes_to_its_successor(void)
{
	int cd[3], i;
	long before;
	FILE *f;

	given_services();
	CU_ASSERT_EQUAL(call("PID", ""), 0);
	before = tpurcode;
	snprintf(buffer, 512, "%s/leave", given_dir(g));
	CU_ASSERT_TRUE((cd[0] = tpacall("EXIT", buffer, 0, 0)) > 0);
	for (i = 1; i < 3; i++)
		CU_ASSERT_TRUE((cd[i] = tpacall("PID", buffer, 0, 0)) > 0);
	CU_ASSERT_EQUAL(call("SECOND", ""), 0);		/* the other server: so they are on their way */
	snprintf(buffer, 512, "%s/leave", given_dir(g));
	CU_ASSERT_PTR_NOT_NULL_FATAL(f = fopen(buffer, "w"));
	fclose(f);
	CU_ASSERT_EQUAL(tpgetrply(&cd[0], &buffer, &length, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCFAIL);
	for (i = 1; i < 3; i++) {
		CU_ASSERT_EQUAL(tpgetrply(&cd[i], &buffer, &length, 0), 0);
		CU_ASSERT_NOT_EQUAL(tpurcode, before);
	}
	CU_ASSERT_EQUAL(call("PID", ""), 0);
}

static void
random_bytes_on_its_socket_do_not_disturb_a_server(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	unsigned char junk[4096];
	int fd, i;

	given_services();
	srandom(1);
	for (i = 0; i < (int)sizeof junk; i++)
		junk[i] = (unsigned char)random();
	for (i = 0; i < 5; i++) {
		snprintf(a.sun_path, sizeof a.sun_path, "%s/1.1", given_rundir(g));
		CU_ASSERT_TRUE((fd = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
		CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
		CU_ASSERT_TRUE(send(fd, junk + i, sizeof junk - 10, MSG_NOSIGNAL) > 0);
		close(fd);
	}
	ANSWERS("ECHO", 0, 0, 42);
}

#ifndef __SANITIZE_THREAD__	/* which does not allow threads in a child of threads */
static void	/* A child of a client joins afresh; the parent's connection is untouched. */
child_after_fork_is_a_client_of_its_own(void)
{
	pid_t pid;
	int status = -1;

	given_services();
	ANSWERS("ECHO", 0, 0, 42);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		int rc = call("ECHO", "child") == 0 && strcmp(buffer, "child") == 0 ? 0 : 1;

		if (tpterm() != 0)
			rc = 2;
		_exit(rc);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	ANSWERS("ECHO", 0, 0, 42);
	CU_ASSERT_STRING_EQUAL(buffer, "text");
}
#endif

static void
servers_are_silent_and_end_in_order(void)
{
	char *text;

	given_services();
	tpterm();
	given_shutdown(g);
	CU_ASSERT_TRUE(given_logged(g, "done was called"));
	CU_ASSERT_STRING_EQUAL(text = given_read(g, "stdout"), "");
	free(text);
	CU_ASSERT_STRING_EQUAL(text = given_read(g, "stderr"), "");
	free(text);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(reply_and_code_come_back),
		UNIT(forwarding_ends_at_the_caller),
		UNIT(routine_that_goes_wrong_is_a_service_error),
		UNIT(service_works_in_the_transaction_of_its_caller),
		UNIT(service_is_told_of_the_transaction_it_is_in),
		UNIT(services_come_and_go_at_run_time),
		UNIT(service_that_one_server_takes_back_is_called_at_the_other),
		UNIT(buffer_type_that_the_service_does_not_take_is_refused),
		UNIT(random_bytes_on_its_socket_do_not_disturb_a_server),

#ifndef __SANITIZE_THREAD__
		UNIT(child_after_fork_is_a_client_of_its_own),
#endif
		UNIT(server_that_ends_is_started_again_and_found_again),
		UNIT(request_that_a_server_did_not_take_before_its_end_goes_to_its_successor),
		UNIT(servers_are_silent_and_end_in_order),
	};

	return unit_run("story: services", tests, UNIT_COUNT(tests));
}
