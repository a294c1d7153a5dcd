/*
 * story_forward - TMQFORWARD: what becomes of a request whose service answers, fails, is slow, or is not there.
 */
#include <signal.h>
#include <time.h>

#include "given.h"

/* Services by the first letter of the text: f fails with an answer, n fails with none, s is slow the first time, else the answer. */
static const char services[] =
    "#include <ctype.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "static void note(TPSVCINFO *m)\n{\n"
    "	FILE *f = fopen(\"calls\", \"a\");\n"
    "	fprintf(f, \"%s %s prio=%d tran=%d\\n\", m->name, m->data == NULL ? \"-\" : m->data, tpgprio(), tpgetlev());\n"
    "	fclose(f);\n}\n"
    "static void serve(TPSVCINFO *m)\n{\n"
    "	char *out = tpalloc(\"STRING\", NULL, m->len + 16), *p;\n"
    "	note(m);\n"
    "	if (m->data == NULL) { strcpy(out, \"NOTHING\"); tpreturn(TPSUCCESS, 3, out, 0, 0); }\n"
    "	strcpy(out, m->data);\n"
    "	for (p = out; *p; p++) *p = toupper((unsigned char)*p);\n"
    "	if (*m->data == 'n') tpreturn(TPFAIL, 8, NULL, 0, 0);\n"
    "	if (*m->data == 's' && access(\"slept\", F_OK) != 0) { fclose(fopen(\"slept\", \"w\")); sleep(3); }\n"
    "	tpreturn(*m->data == 'f' ? TPFAIL : TPSUCCESS, 7, out, 0, 0);\n}\n"
    "void UPPER(TPSVCINFO *m) { serve(m); }\n"
    "void LOWER(TPSVCINFO *m) { serve(m); }\n";

#define QUEUES \
	"qcreate UPPER fifo none 2 0 100% 0% \"\"\nqcreate LOWER fifo none 2 1 100% 0% \"\"\nqcreate ANSWER fifo none 2 0 100% 0% \"\"\n" \
	"qcreate FAILED fifo none 2 0 100% 0% \"\"\nqcreate ABSENT fifo none 1 0 100% 0% \"\"\n"
#define FORWARDER(options) "TMQFORWARD SRVGRP=QUE1 SRVID=5 REPLYQ=N RESTART=Y GRACE=0 CLOPT=\"-- " options "\"\n"

static struct given *
given_forwarder(const char *line)
{
	return given_system(&(struct given_conf){ .queues = QUEUES, .server_source = services, .server_services = "-s UPPER,LOWER",
	    .server_params = "RESTART=Y GRACE=0", .tmqueue = "RESTART=Y GRACE=0 CLOPT=\"-s QSPACE:TMQUEUE\"", .servers = line });
}

static TPQCTL
asks_for_answer(void)
{
	TPQCTL c;

	memset(&c, 0, sizeof c);
	c.flags = TPQMSGID | TPQREPLYQ | TPQFAILUREQ;
	strcpy(c.replyqueue, "ANSWER");
	strcpy(c.failurequeue, "FAILED");
	return c;
}

static void
request(const char *queue, TPQCTL *c, const char *text)
{
	char *data = text == NULL ? NULL : tpalloc("STRING", NULL, 256);

	if (text != NULL)
		snprintf(data, 256, "%s", text);
	GIVEN_CALL_OK(tpenqueue("QSPACE", (char *)queue, c, data, 0, 0));
	if (data != NULL)
		tpfree(data);
}

/* The answer with this correlation id; *c tells the rest. */
static char *
answer(const char *queue, const char *corrid, TPQCTL *c)
{
	char *data = tpalloc("STRING", NULL, 256), *text = NULL;
	long len;

	if (tpbegin(20, 0) == -1)
		return NULL;
	memset(c, 0, sizeof *c);
	c->flags = TPQGETBYCORRID | TPQWAIT | TPQCORRID | TPQPRIORITY | TPQDELIVERYQOS;
	memcpy(c->corrid, corrid, TMCORRIDLEN);
	if (tpdequeue("QSPACE", (char *)queue, c, &data, &len, 0) != -1)
		text = strdup(len > 0 ? data : "(nothing)");
	if (text != NULL)
		GIVEN_CALL_OK(tpcommit(0));
	else
		tpabort(0);
	tpfree(data);
	return text;
}

static void
expect(char *got, const char *text)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	CU_ASSERT_STRING_EQUAL(got, text);
	free(got);
}

struct at { struct given *g; const char *queue, *text; long depth; };

static bool
holds(void *arg)
{
	const struct at *a = arg;

	return depth(a->g, a->queue) == a->depth;
}

static void
comes_to(struct given *g, const char *queue, long n)
{
	CU_ASSERT_TRUE(wait_until(holds, &(struct at){ g, queue, NULL, n }, 20));
}

static bool
is_logged(void *arg)
{
	const struct at *a = arg;

	return given_logged(a->g, a->text);
}

static int
calls_of(struct given *g, const char *piece)
{
	char *calls = given_read(g, "calls");
	int n = count_of(calls != NULL ? calls : "", piece);

	free(calls);
	return n;
}

static void
an_answer_finds_who_asked(void)
{
	struct given *g = given_forwarder(FORWARDER("-i 30 -q UPPER,LOWER"));
	TPQCTL c = asks_for_answer(), a;
	char corrid[TMCORRIDLEN] = "order 17";
	double start;

	request("UPPER", &c, "a box of nails");		/* no correlation id: its message id */
	expect(answer("ANSWER", c.msgid, &a), "A BOX OF NAILS");
	CU_ASSERT_EQUAL(a.urcode, 7);
	start = now_s();
	c = asks_for_answer();
	c.flags |= TPQCORRID | TPQPRIORITY | TPQREPLYQOS;
	c.priority = 77;
	c.reply_qos = TPQQOSPERSISTENT;
	memcpy(c.corrid, corrid, sizeof corrid);
	request("LOWER", &c, "a pound of screws");
	expect(answer("ANSWER", corrid, &a), "A POUND OF SCREWS");
	CU_ASSERT(now_s() - start < 5);			/* woken, whatever -i says */
	CU_ASSERT_TRUE((a.flags & TPQDELIVERYQOS) != 0);
	CU_ASSERT_FALSE((a.flags & TPQPRIORITY) != 0);
	CU_ASSERT_EQUAL(calls_of(g, "UPPER a box of nails prio=50 tran=1\n"), 1);
	CU_ASSERT_EQUAL(calls_of(g, "LOWER a pound of screws prio=77 tran=1\n"), 1);
	c = asks_for_answer();
	request("UPPER", &c, NULL);			/* a message without data is a call without data */
	expect(answer("ANSWER", c.msgid, &a), "NOTHING");
	CU_ASSERT_EQUAL(a.urcode, 3);
	given_done(g);
}

static void
a_missing_reply_queue_drops_the_answer(void)
{
	struct given *g = given_forwarder(FORWARDER("-i 1 -q UPPER"));
	TPQCTL c = asks_for_answer();

	strcpy(c.replyqueue, "NOWHERE");
	request("UPPER", &c, "to nobody");
	put("UPPER", "asks for none");
	comes_to(g, "UPPER", 0);
	CU_ASSERT_EQUAL(calls_of(g, "UPPER to nobody"), 1);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void
a_failing_request_ends_on_the_error_queue(void)
{
	struct given *g = given_forwarder(FORWARDER("-i 1 -q UPPER"));
	TPQCTL c = asks_for_answer();

	request("UPPER", &c, "fails");
	comes_to(g, "ERRQ", 1);
	CU_ASSERT_EQUAL(calls_of(g, "UPPER fails"), 3);		/* once, and two retries */
	CU_ASSERT_EQUAL(depth(g, "FAILED"), 0);			/* without -d */
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	expect(take("ERRQ"), "fails");
	given_done(g);
}

static void
d_deletes_the_request_and_sends_the_answer_to_the_failure_queue(void)
{
	struct given *g = given_forwarder(FORWARDER("-d -i 1 -q LOWER,UPPER"));
	TPQCTL c = asks_for_answer(), a;

	request("LOWER", &c, "fails, delayed");			/* its retry delay runs when it is deleted */
	expect(answer("FAILED", c.msgid, &a), "FAILS, DELAYED");
	CU_ASSERT_EQUAL(a.urcode, 7);
	comes_to(g, "LOWER", 0);
	CU_ASSERT_EQUAL(calls_of(g, "LOWER fails, delayed"), 1);
	c = asks_for_answer();
	request("UPPER", &c, "nothing to say");			/* an empty answer is an ordinary failure */
	comes_to(g, "ERRQ", 1);
	CU_ASSERT_EQUAL(calls_of(g, "UPPER nothing to say"), 3);
	c = asks_for_answer();
	c.flags &= ~TPQFAILUREQ;
	request("UPPER", &c, "fails in silence");		/* deleted all the same */
	comes_to(g, "UPPER", 0);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 1);
	CU_ASSERT_EQUAL(depth(g, "FAILED"), 0);
	given_done(g);
}

static void
a_service_that_comes_later_finds_every_retry_unused(void)
{
	struct given *g = given_forwarder(FORWARDER("-i 1 -q ABSENT,UPPER"));
	TPQCTL c = asks_for_answer(), a;

	put("ABSENT", "waits");
	CU_ASSERT_TRUE(wait_until(is_logged, &(struct at){ g, NULL, "nobody offers service ABSENT", 0 }, 20));
	request("UPPER", &c, "others go on");
	expect(answer("ANSWER", c.msgid, &a), "OTHERS GO ON");
	free(given_ok(g, NULL, "tmshutdown -y -s server"));
	c = asks_for_answer();
	request("UPPER", &c, "patience");
	CU_ASSERT_TRUE(wait_until(is_logged, &(struct at){ g, NULL, "nobody offers service UPPER", 0 }, 20));
	CU_ASSERT_EQUAL(depth(g, "ABSENT"), 1);
	CU_ASSERT_EQUAL(depth(g, "UPPER"), 1);
	free(given_ok(g, NULL, "tmboot -y -s server"));
	expect(answer("ANSWER", c.msgid, &a), "PATIENCE");
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static bool
forwarder_is_gone(void *g)
{
	return given_count(g, "TMQFORWARD") == 0;
}

static void
e_ends_when_all_is_done_and_n_calls_outside_the_transaction(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .server_source = services,
	    .server_services = "-s UPPER,LOWER", .servers = FORWARDER("-e -n -q UPPER,LOWER"), .not_booted = true });

	free(given_ok(g, NULL, "tmboot -A -y; tmboot -y -s server; tmboot -y -s TMQUEUE"));
	for (int i = 0; i < 5; i++)
		put(i % 2 ? "UPPER" : "LOWER", "work");
	free(given_ok(g, NULL, "tmboot -y -s TMQFORWARD"));
	CU_ASSERT_TRUE(wait_until(forwarder_is_gone, g, 20));
	CU_ASSERT_EQUAL(calls_of(g, " work prio=50 tran=0\n"), 5);
	CU_ASSERT_EQUAL(depth(g, "UPPER") + depth(g, "LOWER"), 0);
	given_done(g);
}

static void
f_waits_for_no_answer(void)
{
	struct given *g = given_forwarder(FORWARDER("-f 0 -i 1 -q UPPER"));
	TPQCTL c = asks_for_answer();

	request("UPPER", &c, "fails unheard");
	request("UPPER", &c, "and forgotten");
	comes_to(g, "UPPER", 0);
	CU_ASSERT_EQUAL(depth(g, "ANSWER") + depth(g, "ERRQ") + depth(g, "FAILED"), 0);
	given_done(g);
}

static void
a_slow_service_is_a_retry(void)
{
	struct given *g = given_forwarder(FORWARDER("-t 2 -i 1 -q UPPER"));
	TPQCTL c = asks_for_answer(), a;

	request("UPPER", &c, "slow");
	expect(answer("ANSWER", c.msgid, &a), "SLOW");
	CU_ASSERT_EQUAL(calls_of(g, "UPPER slow"), 2);
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);		/* the late answer of the first call is nobody's */
	given_done(g);
}

static void
a_forwarded_error_queue_makes_no_circle(void)
{
	struct given *g = given_forwarder(FORWARDER("-i 1 -q UPPER,ERRQ"));

	put("UPPER", "fails twice");
	comes_to(g, "UPPER", 0);
	CU_ASSERT_TRUE(wait_until(is_logged, &(struct at){ g, NULL, "nobody offers service ERRQ", 0 }, 20));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 1);
	given_done(g);
}

static void	/* by tmloadcf where the file alone shows it, else by TMQFORWARD */
what_cannot_be_is_refused_and_told(void)
{
	static const struct { const char *line, *why; } wrong[] = {
		{ "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -i 3\"\n", "-q" },
		{ "TMQFORWARD SRVGRP=QUE1 SRVID=5 REPLYQ=Y CLOPT=\"-- -q UPPER\"\n", "REPLYQ" },
		{ "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-s UPPER -- -q UPPER\"\n", "-s" },
		{ "TMQFORWARD SRVGRP=QUE1 SRVID=5 MAX=2 RQADDR=shared CLOPT=\"-- -q UPPER\"\n", "RQADDR" },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .servers = wrong[i].line, .only_files = true });
		struct ran r = given_run(g, NULL, "tmloadcf -y ubb && tmboot -A -y && tmboot -y -s TMQFORWARD");
		char *log = given_log(g), *at = strstr(log, "TMQFORWARD cannot boot");

		CU_ASSERT_TRUE(has(r.err, wrong[i].why) || (at != NULL && strstr(at, wrong[i].why) != NULL));
		CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
		free(log);
		ran_free(&r);
		given_done(g);
	}
}

static void
strange_numbers_are_warned_of_and_it_boots(void)
{
	struct given *g = given_forwarder(FORWARDER("-t soon -i often -q UPPER"));

	CU_ASSERT_TRUE(given_logged(g, ":1602: WARN"));
	CU_ASSERT_TRUE(given_logged(g, ":1604: WARN"));
	put("UPPER", "works");
	comes_to(g, "UPPER", 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(an_answer_finds_who_asked), UNIT(a_missing_reply_queue_drops_the_answer),
		UNIT(a_failing_request_ends_on_the_error_queue),
		UNIT(d_deletes_the_request_and_sends_the_answer_to_the_failure_queue),
		UNIT(a_service_that_comes_later_finds_every_retry_unused),
		UNIT(e_ends_when_all_is_done_and_n_calls_outside_the_transaction), UNIT(f_waits_for_no_answer),
		UNIT(a_slow_service_is_a_retry), UNIT(a_forwarded_error_queue_makes_no_circle),
		UNIT(what_cannot_be_is_refused_and_told), UNIT(strange_numbers_are_warned_of_and_it_boots),
	};

	return unit_run("forwarding", tests, UNIT_COUNT(tests));
}
