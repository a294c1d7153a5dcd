/*
 * story_suspend - transactions that are set aside and go on elsewhere: tpsuspend, tpresume, in other contexts, other processes, in
 * services; and how many may be open at a time, MAXGTT.  Real processes.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

#define QUEUES "qcreate Q fifo none 2 0 100% 0% \"\"\nqcreate R fifo none 2 0 100% 0% \"\"\n"
#define REFUSED(call, code) do { CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, code); } while (0)

static bool
takes(const char *space, const char *queue, const char *text)
{
	char *got = take_from(space, queue);
	bool same = got != NULL && strcmp(got, text) == 0;

	free(got);
	return same;
}

/* What another process, a child, does with a transaction: it tells and is told by pipes. */
struct child { pid_t pid; int to, from; };

static struct child
given_child(int (*does)(TPTRANID *id, int from), TPTRANID *id)
{
	struct child c;
	int to[2], from[2];

	CU_ASSERT_EQUAL_FATAL(pipe(to), 0);
	CU_ASSERT_EQUAL_FATAL(pipe(from), 0);
	if ((c.pid = fork()) == 0) {
		char bit = 'r';
		int rc;

		close(to[1]);
		rc = does(id, to[0]);
		tpterm();
		(void)!write(from[1], &bit, rc == 0);
		_exit(rc);
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

static int	/* 0 when all went as it should */
child_done(struct child *c)
{
	int status = -1;

	close(c->to);
	close(c->from);
	waitpid(c->pid, &status, 0);
	return status;
}

static int
puts_and_commits(TPTRANID *id, int from)
{
	(void)from;
	if (tpresume(id, 0) != 0 || tpgetlev() != 1)
		return 1;
	put_in("QSPACE2", "Q", "by the child");
	return tpcommit(0) == 0 ? 0 : 2;
}

static void	/* Begun here in two spaces, ended there: whole. */
another_process_ends_it(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	TPTRANID id, copy;
	char text[TPCONVMAXSTR];
	struct child c;

	put("R", "taken");
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_TRUE(takes("QSPACE", "R", "taken"));
	put_in("QSPACE2", "Q", "by the parent");
	GIVEN_CALL_OK(tpsuspend(&id, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_FALSE(takes("QSPACE2", "Q", "by the parent"));
	GIVEN_CALL_OK(tpconvert(text, (char *)&id, TPCONVTRANID | TPTOSTRING));	/* as text, as programs send it */
	memset(&copy, 0, sizeof copy);
	GIVEN_CALL_OK(tpconvert(text, (char *)&copy, TPCONVTRANID));
	c = given_child(puts_and_commits, &copy);
	CU_ASSERT_EQUAL(child_done(&c), 0);
	REFUSED(tpresume(&id, 0), TPETRAN);		/* it has ended */
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "by the parent"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "by the child"));
	CU_ASSERT_EQUAL(depth(g, "R"), 0);
	given_done(g);
}

static int
resumes_and_waits(TPTRANID *id, int from)
{
	char c;
	int rc;

	while ((rc = tpresume(id, 0)) == -1 && tperrno == TPEMATCH)	/* the parent has it just now */
		nap_ms(1);
	put("R", "resumed");
	(void)!read(from, &c, 1);		/* the parent closes its end */
	return rc == 0 && tpabort(0) == 0 ? 0 : 1;
}

static bool
somebody_has_it(void *arg)
{
	return tpresume(arg, 0) == -1 && tperrno == TPEMATCH;
}

static void
only_one_of_two_resumes_it(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	TPTRANID id;
	struct child c;

	put("Q", "stays");
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "stays"));
	GIVEN_CALL_OK(tpsuspend(&id, 0));
	tpterm();				/* it does not end with who suspended it */
	c = given_child(resumes_and_waits, &id);
	/* Here tpresume() could win: then it is suspended again, until the child has it. */
	while (!somebody_has_it(&id)) {
		if (tpgetlev() == 1)
			GIVEN_CALL_OK(tpsuspend(&id, 0));
		nap_ms(10);
	}
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(child_done(&c), 0);
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "stays"));
	CU_ASSERT_FALSE(takes("QSPACE", "R", "resumed"));	/* the child put it in the transaction that it rolled back */
	given_done(g);
}

static int
begins_and_suspends(TPTRANID *id, int from)
{
	(void)from;
	if (tpbegin(2, 0) != 0)
		return 1;
	put("Q", "never");
	return tpsuspend(id, 0);
}

static bool
is_unused(void *arg)
{
	char *text = given_qmadmin(arg, "qprinttrans\n");
	bool none = !has(text, "gtrid");

	free(text);
	return none;
}

static bool	/* It counts for a while yet; tmadmin says what can become of it. */
is_out_of_time(void *arg)
{
	struct ran r = given_run(arg, "pt\n", "tmadmin");
	bool said = has(r.out, "Transaction status: TMGABORTONLY, Group count: 0");

	ran_free(&r);
	return said;
}

static void	/* Its time goes on when its process is gone. */
one_that_nobody_resumes(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES });
	TPTRANID id;
	struct child c = given_child(begins_and_suspends, &id);

	CU_ASSERT_EQUAL(child_done(&c), 0);
	CU_ASSERT_TRUE(wait_until(is_unused, g, 30));
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	CU_ASSERT_TRUE(wait_until(is_out_of_time, g, 30));
	given_done(g);
}

/* --- services --- */

static const char source[] =
    "#include <atmi.h>\n#include <stddef.h>\n"
    "static void text(TPSVCINFO *m, const char *q) { tpenqueue(\"QSPACE\", (char *)q, NULL, m->data, 0, 0); }\n"
    /* what it was called in is set aside for a transaction of its own */
    "void ASIDE(TPSVCINFO *m) { TPTRANID id; int rc = tpsuspend(&id, 0); if (rc == 0) rc = tpbegin(30, 0);\n"
    "  text(m, \"R\"); if (rc == 0) rc = tpcommit(0); if (rc == 0) rc = tpresume(&id, 0); text(m, \"Q\");\n"
    "  tpreturn(rc == 0 ? TPSUCCESS : TPFAIL, tperrno, NULL, 0, 0); }\n"
    "void FORGETS(TPSVCINFO *m) { TPTRANID id; text(m, \"Q\"); tpsuspend(&id, 0); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void AUTO(TPSVCINFO *m) { text(m, \"Q\"); tpreturn(TPSUCCESS, tpgetlev(), NULL, 0, 0); }\n"
    "void ANYBODY(TPSVCINFO *m) { TPTRANID *id = (TPTRANID *)m->data; int rc = tpresume(id, 0);\n"
    "  if (rc == 0) rc = tpcommit(0); tpreturn(rc == 0 ? TPSUCCESS : TPFAIL, tperrno, NULL, 0, 0); }\n";

static struct given *
given_services(const char *resources)
{
	return given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .resources = resources, .server_source = source,
	    .server_services = "-s ASIDE,FORGETS,AUTO,ANYBODY", .services = "AUTO AUTOTRAN=Y TRANTIME=30\n" });
}

static int	/* tperrno, 0: none */
call(const char *service, const char *text)
{
	char *b = tpalloc("STRING", NULL, 64);
	long len;
	int err;

	strcpy(b, text);
	err = tpcall((char *)service, b, 0, &b, &len, 0) == 0 ? 0 : tperrno;
	tpfree(b);
	return err;
}

static void
a_service_sets_its_callers_transaction_aside(void)
{
	struct given *g = given_services("");

	GIVEN_CALL_OK(tpbegin(30, 0));
	put_in("QSPACE2", "Q", "with it");
	CU_ASSERT_EQUAL(call("ASIDE", "x"), 0);
	CU_ASSERT_TRUE(takes("QSPACE", "R", "x"));	/* committed by the service (and taken here) */
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "x"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "with it"));
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_EQUAL(call("FORGETS", "never"), TPESVCERR);	/* and the transaction is lost */
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	CU_ASSERT_EQUAL(call("ASIDE", "x"), TPESVCFAIL);	/* in no transaction: TPEPROTO */
	CU_ASSERT_EQUAL(tpurcode, TPEPROTO);
	CU_ASSERT_TRUE(takes("QSPACE", "R", "x"));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "x"));
	given_done(g);
}

static void	/* The client begins, a server ends: of what the initiator began and suspended. */
a_service_ends_what_a_client_began(void)
{
	struct given *g = given_services("");
	char *b = tpalloc("CARRAY", NULL, sizeof(TPTRANID));
	long len;

	GIVEN_CALL_OK(tpbegin(30, 0));
	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	GIVEN_CALL_OK(tpsuspend((TPTRANID *)(void *)b, 0));
	GIVEN_CALL_OK(tpcall("ANYBODY", b, sizeof(TPTRANID), &b, &len, 0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "two"));
	tpfree(b);
	given_done(g);
}

/* --- how many --- */

static int
holds_one(TPTRANID *id, int from)
{
	char c;
	int rc = tpbegin(3600, 0);

	*id = (TPTRANID){ { 0 } };
	put("R", "it holds one");
	(void)!read(from, &c, 1);
	return rc != 0 || tpcommit(0) != 0;
}

static bool
can_begin(void *arg)
{
	(void)arg;
	return tpbegin(60, 0) == 0;
}

static void	/* MAXGTT 3: over all processes, AUTOTRAN included; what dead ones had is free again. */
maxgtt_counts_all_of_the_application(void)
{
	struct given *g = given_services("MAXGTT\t3\n");
	TPTRANID id[3];
	struct child c;

	for (int i = 0; i < 2; i++) {
		GIVEN_CALL_OK(tpbegin(60, 0));
		GIVEN_CALL_OK(tpsuspend(&id[i], 0));
	}
	CU_ASSERT_EQUAL(call("AUTO", "third"), 0);
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "third"));
	c = given_child(holds_one, &id[2]);
	while (can_begin(NULL)) {		/* until the child has the third one */
		GIVEN_CALL_OK(tpabort(0));
		nap_ms(5);
	}
	CU_ASSERT_EQUAL(tperrno, TPETRAN);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(call("AUTO", "fourth"), TPETRAN);	/* the service was not begun */
	put("Q", "without");
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "without"));
	CU_ASSERT_TRUE(given_logged(g, "LIBTUX_CAT:5140: ERROR: no transaction can be begun: 3 are open in the application"));
	kill(c.pid, SIGKILL);
	CU_ASSERT_EQUAL(child_done(&c), SIGKILL);
	CU_ASSERT_TRUE(wait_until(can_begin, NULL, 15));
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(call("AUTO", "third"), 0);
	for (int i = 0; i < 2; i++) {
		GIVEN_CALL_OK(tpresume(&id[i], 0));
		GIVEN_CALL_OK(tpcommit(0));
	}
	given_done(g);
}

static void	/* With 10,000 that wait, each begins, goes on and ends as the first one did. */
ten_thousand_are_open(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .resources = "MAXGTT\t32767\n",
	    .space = "40000 20 10010 50 20000 ERRQ n 16", .device_pages = 50000 });
	enum { MANY = 10000 };
	TPTRANID *id = calloc(MANY, sizeof *id);
	char *text;
	int bad = 0, i;

	for (i = 0; i < MANY && bad == 0; i++) {
		bad += tpbegin(3600, 0) != 0;
		put("Q", "x");
		bad += tpsuspend(&id[i], 0) != 0;
	}
	CU_ASSERT_EQUAL_FATAL(bad, 0);
	text = given_qmadmin(g, "qspacelist\n");
	CU_ASSERT_TRUE(has(text, "transactions in use: 10000"));
	free(text);
	GIVEN_CALL_OK(tpbegin(60, 0));		/* and one more */
	put("R", "meanwhile");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("QSPACE", "R", "meanwhile"));
	for (i = 0; i < MANY; i++) {
		bad += tpresume(&id[i], 0) != 0;
		bad += (i % 2 == 0 ? tpcommit(0) : tpabort(0)) != 0;
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(depth(g, "Q"), MANY / 2);
	CU_ASSERT_TRUE(is_unused(g));
	free(id);
	given_done(g);
}

static void	/* Nothing but MAXGTT and other processes misses it; BBL puts it back. */
the_table_is_taken_away(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	char path[300];
	TPTRANID id;

	GIVEN_CALL_OK(tpbegin(60, 0));
	put("Q", "one");
	snprintf(path, sizeof path, "%s/gtt", given_rundir(g));
	CU_ASSERT_EQUAL(unlink(path), 0);
	put_in("QSPACE2", "Q", "two");
	GIVEN_CALL_OK(tpsuspend(&id, 0));
	GIVEN_CALL_OK(tpresume(&id, 0));
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "two"));
	while (access(path, F_OK) != 0)
		nap_ms(20);
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:1706: WARN: The table of transactions"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(another_process_ends_it),
		UNIT(only_one_of_two_resumes_it),
		UNIT(one_that_nobody_resumes),
		UNIT(a_service_sets_its_callers_transaction_aside),
		UNIT(a_service_ends_what_a_client_began),
		UNIT(maxgtt_counts_all_of_the_application),
		UNIT(ten_thousand_are_open),
		UNIT(the_table_is_taken_away),
	};

	return unit_run("story: suspend", tests, UNIT_COUNT(tests));
}
