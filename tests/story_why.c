/*
 * story_why - a message on the error queue tells where it came from, why, how often it failed, and when.
 */
#include <signal.h>
#include <unistd.h>

#include "given.h"

static const char services[] =
    "#include <stdlib.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "void FAILS(TPSVCINFO *m) { tpreturn(TPFAIL, 40 + m->len, m->data, m->len, 0); }\n"
    "void FORGETS(TPSVCINFO *m) { (void)m; }\n"
    "void SLEEPS(TPSVCINFO *m) { sleep(2); tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n";

#define QUEUE(name, retries) "qcreate " name " fifo none " retries " 0 100% 0% \"\"\n"

static struct given *
given_failures(const char *space)
{
	return given_system(&(struct given_conf){ .server_source = services, .server_services = "-s FAILS,FORGETS,SLEEPS",
	    .queues = QUEUE("FAILS", "2") QUEUE("FORGETS", "0") QUEUE("SLEEPS", "0") QUEUE("MANUAL", "1") QUEUE("LATE", "0"),
	    .space = space, .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 REPLYQ=N CLOPT=\"-- -t 1 -i 30 -q FAILS,FORGETS,SLEEPS\"\n" });
}

struct expected { struct given *g; long depth; };

static bool
has_arrived(void *arg)
{
	struct expected *e = arg;

	return depth(e->g, "ERRQ") >= e->depth;
}

static char *	/* qlist of the error queue once there is one message on it, which then is taken away; malloc'ed */
obituary(struct given *g)
{
	char *text;

	CU_ASSERT_TRUE(wait_until(has_arrived, &(struct expected){ g, 1 }, 30));
	text = given_qmadmin(g, "verbose on\nqset ERRQ\nqlist\nqdeletemsg -y\n");
	return text;
}

static void
says(const char *text, const char *line)
{
	if (has(text, line))
		return;
	fprintf(stderr, "\"%s\" is not in\n%s\n", line, text);
	CU_FAIL("qlist does not tell it");
}

static void
the_answer_of_a_service_is_on_the_error_queue(void)
{
	struct given *g = given_failures(NULL);
	char *text;

	put("FAILS", "ab");		/* urcode: 40 and its length with the final NUL */
	text = obituary(g);
	says(text, "from queue: FAILS\n");
	says(text, "from message: ");
	says(text, "failed deliveries: 3\n");
	says(text, "first failure: 20");
	says(text, "last failure: 20");
	says(text, "tperrno: TPESVCFAIL (11)\n");
	says(text, "tpurcode: 43\n");
	says(text, "reason: service FAILS: ");
	says(text, "  retries: 0\n");
	free(text);

	put("FORGETS", "x");
	text = obituary(g);
	says(text, "from queue: FORGETS\n");
	says(text, "failed deliveries: 1\n");
	says(text, "tperrno: TPESVCERR (10)\n");
	says(text, "tpurcode: 0\n");
	says(text, "reason: service FORGETS: ");
	free(text);

	put("SLEEPS", "x");
	text = obituary(g);
	says(text, "from queue: SLEEPS\n");
	says(text, "tperrno: TPETIME (13)\n");
	free(text);
	given_done(g);
}

static void
join_as(const char *user, const char *client)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	memset(init, 0, sizeof *init);
	snprintf(init->usrname, sizeof init->usrname, "%s", user);
	snprintf(init->cltname, sizeof init->cltname, "%s", client);
	GIVEN_CALL_OK(tpinit(init));
	tpfree((char *)init);
}

static void
take_and_abort(const char *queue)
{
	char *text;

	GIVEN_CALL_OK(tpbegin(30, 0));
	text = take(queue);
	CU_ASSERT_PTR_NOT_NULL(text);
	free(text);
	GIVEN_CALL_OK(tpabort(0));
}

static void
who_called_tpabort_is_named(void)
{
	struct given *g = given_failures(NULL);
	char *text, me[64];

	join_as("bob", "till7");
	snprintf(me, sizeof me, ", process %ld, user bob, client till7\n", (long)getpid());
	put("MANUAL", "thrown back twice");
	take_and_abort("MANUAL");
	take_and_abort("MANUAL");
	text = obituary(g);
	says(text, "failed deliveries: 2\n");
	says(text, "tperrno: none (0)\n");
	says(text, "reason: rolled back by its program ");
	says(text, me);
	free(text);
	tpterm();
	given_done(g);
}

/* A call that failed in the transaction is the reason, and not the tpabort() that had to follow. */
static void
a_failed_call_before_tpabort_is_the_reason(void)
{
	struct given *g = given_failures(NULL);
	char *data, *text;
	long len = 0;

	put("LATE", "x");
	data = tpalloc("STRING", NULL, 64);
	strcpy(data, "four");
	GIVEN_CALL_OK(tpbegin(30, 0));
	text = take("LATE");
	CU_ASSERT_PTR_NOT_NULL(text);
	free(text);
	CU_ASSERT_EQUAL(tpcall("FAILS", data, 0, &data, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCFAIL);
	GIVEN_CALL_OK(tpabort(0));
	text = obituary(g);
	says(text, "tperrno: TPESVCFAIL (11)\n");
	says(text, "tpurcode: 45\n");
	says(text, "reason: service FAILS: failed\n");
	free(text);
	tpfree(data);
	given_done(g);
}

static void
a_transaction_out_of_time_and_a_dead_client_say_so(void)
{
	struct given *g = given_failures(NULL);
	char *text, *got;
	pid_t child;

	put("LATE", "too long in hand");
	GIVEN_CALL_OK(tpbegin(1, 0));
	got = take("LATE");
	CU_ASSERT_PTR_NOT_NULL(got);
	free(got);
	text = obituary(g);		/* while the transaction is still ours */
	says(text, "tperrno: TPETIME (13)\n");
	says(text, "reason: transaction timed out\n");
	free(text);
	tpabort(0);

	put("LATE", "in a dead hand");
	tpterm();
	if ((child = fork()) == 0) {
		tpbegin(1, 0);
		got = take("LATE");
		kill(getpid(), SIGKILL);
	}
	text = obituary(g);
	says(text, "from queue: LATE\n");
	says(text, "tperrno: TPETIME (13)\n");
	free(text);
	given_done(g);
}

static void
without_an_error_queue_the_log_tells_the_reason(void)
{
	struct given *g = given_failures("4000 20 50 50 2000 \"\" n 16");

	put("FAILS", "ab");
	for (double end = now_s() + 20; !given_logged(g, "QM_CAT:1354") && now_s() < end;)
		nap_ms(20);
	CU_ASSERT_TRUE(given_logged(g, "queue FAILS: message 51"));
	CU_ASSERT_TRUE(given_logged(g, "deleted after 3 failed deliveries (tperrno TPESVCFAIL, tpurcode 43: service FAILS: "));
	given_done(g);
}

/* TPQCTL of who takes it from the error queue: the sender's values, and nothing of all that. */
static void
the_control_structure_is_untouched_by_it(void)
{
	struct given *g = given_failures(NULL);
	TPQCTL in = { .flags = TPQCORRID | TPQPRIORITY | TPQREPLYQ, .priority = 77, .urcode = 5, .corrid = "order 17",
		.replyqueue = "MANUAL" };
	TPQCTL out = { .flags = TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQMSGID };
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	strcpy(data, "dying");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "LATE", &in, data, 0, 0));
	take_and_abort("LATE");
	CU_ASSERT_TRUE(wait_until(has_arrived, &(struct expected){ g, 1 }, 30));
	GIVEN_CALL_OK(tpdequeue("QSPACE", "ERRQ", &out, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "dying");
	CU_ASSERT_EQUAL(out.flags, TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQMSGID);
	CU_ASSERT_EQUAL(out.urcode, 5);
	CU_ASSERT_EQUAL(out.priority, 77);
	CU_ASSERT_STRING_EQUAL(out.corrid, "order 17");
	CU_ASSERT_STRING_EQUAL(out.replyqueue, "MANUAL");
	tpfree(data);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_answer_of_a_service_is_on_the_error_queue),
		UNIT(who_called_tpabort_is_named),
		UNIT(a_failed_call_before_tpabort_is_the_reason),
		UNIT(a_transaction_out_of_time_and_a_dead_client_say_so),
		UNIT(without_an_error_queue_the_log_tells_the_reason),
		UNIT(the_control_structure_is_untouched_by_it),
	};

	return unit_run("why a message died", tests, UNIT_COUNT(tests));
}
