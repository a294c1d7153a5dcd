/*
 * story_forward_spaces - TMQFORWARD, and services that use a queue space that is not its own: one transaction covers the request, what
 * the service did there, and the answer.
 */
#include <signal.h>

#include "given.h"
#include "given_doer.h"

static struct given *g;

/*
 * Queues WORK, OUT (-n), DEL (-d) and ASYNC (-f) of the first space are forwarded to services of the same names, which do what the
 * message says.
 */
static void
given_forwarders(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .spaces = 2, .server_source = given_doer,
		    .server_services = "-s WORK,OUT,DEL,ASYNC,AUTO:DO",
		    .server_params = "RESTART=Y MAXGEN=255 GRACE=0",
		    .services = "AUTO AUTOTRAN=Y TRANTIME=8",
		    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 REPLYQ=N RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-- -i 1 -t 8 -q WORK\"\n"
			       "TMQFORWARD SRVGRP=QUE1 SRVID=6 REPLYQ=N RESTART=Y GRACE=0 CLOPT=\"-- -i 1 -t 8 -n -q OUT\"\n"
			       "TMQFORWARD SRVGRP=QUE1 SRVID=7 REPLYQ=N RESTART=Y GRACE=0 CLOPT=\"-- -i 1 -t 8 -d -q DEL\"\n"
			       "TMQFORWARD SRVGRP=QUE1 SRVID=8 REPLYQ=N RESTART=Y GRACE=0 CLOPT=\"-- -i 1 -t 8 -f 0 -q ASYNC\"\n",
		    .queues = "qcreate WORK fifo none 1 0 100% 0% \"\"\nqcreate OUT fifo none 1 0 100% 0% \"\"\n"
			      "qcreate DEL fifo none 1 0 100% 0% \"\"\nqcreate ASYNC fifo none 1 0 100% 0% \"\"\n"
			      "qcreate ANSWER fifo none 2 0 100% 0% \"\"\nqcreate FAILED fifo none 2 0 100% 0% \"\"\n"
			      "qcreate STOCK fifo none 9 0 100% 0% \"\"\nqcreate SOLD fifo none 9 0 100% 0% \"\"\n" });
}

static void
request(const char *queue, const char *steps)
{
	TPQCTL c;
	char *b = tpalloc("STRING", NULL, 1000);

	memset(&c, 0, sizeof c);
	c.flags = TPQREPLYQ | TPQFAILUREQ;
	strcpy(c.replyqueue, "ANSWER");
	strcpy(c.failurequeue, "FAILED");
	snprintf(b, 1000, "%s", steps);
	GIVEN_CALL_OK(tpenqueue("QSPACE", (char *)queue, &c, b, 0, 0));
	tpfree(b);
}

static bool
comes(const char *queue, const char *text)
{
	char *got = take_within(queue, 20);
	bool same = got != NULL && strcmp(got, text) == 0;

	if (!same)
		fprintf(stderr, "\n%s: \"%s\" instead of \"%s\"\n", queue, got != NULL ? got : "nothing", text);
	free(got);
	return same;
}

static bool	/* this message alone (NULL: none) is on that queue of the second space; it is taken */
only(const char *queue, const char *text)
{
	char *got = take_from("QSPACE2", queue), *more = got != NULL ? take_from("QSPACE2", queue) : NULL;
	bool same = more == NULL && (text == NULL ? got == NULL : got != NULL && strcmp(got, text) == 0);

	if (!same)
		fprintf(stderr, "\n%s: \"%s\", \"%s\"\n", queue, got != NULL ? got : "nothing", more != NULL ? more : "nothing");
	free(got);
	free(more);
	return same;
}

static void
what_a_service_does_elsewhere_commits_with_the_request(void)
{
	given_forwarders();
	put_in("QSPACE2", "STOCK", "chair");
	request("WORK", "tran; take QSPACE2 STOCK; put QSPACE2 SOLD chair");
	CU_ASSERT_TRUE(comes("ANSWER", "1 chair 0"));
	CU_ASSERT_TRUE(only("SOLD", "chair"));
	CU_ASSERT_TRUE(only("STOCK", NULL));
	CU_ASSERT_EQUAL(depth(g, "WORK"), 0);
	request("WORK", "put QSPACE ANSWER side; put QSPACE2 SOLD b");	/* both spaces, and the answer after it */
	CU_ASSERT_TRUE(comes("ANSWER", "side"));
	CU_ASSERT_TRUE(comes("ANSWER", "0 0"));
	CU_ASSERT_TRUE(only("SOLD", "b"));
}

static void	/* The second try fails as well: then it is on the error queue, and nothing has happened elsewhere. */
and_is_undone_with_it(void)
{
	static const char *ways[] = { "fail", "none", "die", "bad" };
	char *text;

	given_forwarders();
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		char steps[200];

		put_in("QSPACE2", "STOCK", "chair");
		snprintf(steps, sizeof steps, "take QSPACE2 STOCK; put QSPACE2 SOLD chair; %s", ways[i]);
		request("WORK", steps);
		text = take_within("ERRQ", 30);
		CU_ASSERT_TRUE(text != NULL && strcmp(text, steps) == 0);
		free(text);
		CU_ASSERT_TRUE(only("SOLD", NULL));
		text = NULL;				/* where the server died, its branch ends by time */
		for (int n = 0; n < 1500 && (text = take_from("QSPACE2", "STOCK")) == NULL; n++)
			nap_ms(10);
		CU_ASSERT_TRUE(text != NULL && strcmp(text, "chair") == 0);
		free(text);
		CU_ASSERT_TRUE(only("STOCK", NULL));
		CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	}
}

static void	/* Its server dies after the work was done, before it has answered: done again, and once. */
a_service_that_dies_once_has_worked_once(void)
{
	given_forwarders();
	request("WORK", "put QSPACE2 SOLD once; dieonce died");
	CU_ASSERT_TRUE(comes("ANSWER", "0"));
	CU_ASSERT_TRUE(only("SOLD", "once"));
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	free(given_ok(g, NULL, "rm died"));
}

static void	/* TMQFORWARD dies while the service works: its transaction is undone everywhere, and the request done again. */
a_forwarder_that_dies_has_done_nothing(void)
{
	char *text = NULL;
	pid_t pid;

	given_forwarders();
	request("WORK", "put QSPACE2 SOLD again; touch working; wait goon");
	for (int n = 0; n < 1000 && !given_exists(g, "working"); n++)
		nap_ms(10);
	CU_ASSERT_TRUE((pid = given_pid_as(g, 2, 5)) > 0);
	kill(pid, SIGKILL);
	given_write(g, "goon", "x");
	CU_ASSERT_TRUE(comes("ANSWER", "0"));
	CU_ASSERT_TRUE((text = take_from("QSPACE2", "SOLD")) != NULL && strcmp(text, "again") == 0);
	free(text);
	CU_ASSERT_TRUE(only("SOLD", NULL));
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
	free(given_ok(g, NULL, "rm working goon"));
}

static void	/* -n: the service is called outside; what it did stays, whatever becomes of the request. */
with_n_the_service_is_outside(void)
{
	char *text;

	given_forwarders();
	request("OUT", "tran; put QSPACE2 SOLD outside");
	CU_ASSERT_TRUE(comes("ANSWER", "0 0"));
	CU_ASSERT_TRUE(only("SOLD", "outside"));
	request("OUT", "put QSPACE2 SOLD outside; fail");
	free(text = take_within("ERRQ", 20));
	CU_ASSERT_PTR_NOT_NULL(text);
	for (int n = 0; n < 2; n++) {			/* tried twice, done twice */
		text = take_from("QSPACE2", "SOLD");
		CU_ASSERT_TRUE(text != NULL && strcmp(text, "outside") == 0);
		free(text);
	}
	CU_ASSERT_TRUE(only("SOLD", NULL));
}

static void	/* -d: the failure's answer goes to the failure queue, the request goes, and what the service did is undone. */
with_d_the_failure_is_answered_and_the_work_undone(void)
{
	given_forwarders();
	put_in("QSPACE2", "STOCK", "chair");
	request("DEL", "take QSPACE2 STOCK; put QSPACE2 SOLD chair; fail");
	CU_ASSERT_TRUE(comes("FAILED", "chair 0"));
	CU_ASSERT_TRUE(only("SOLD", NULL));
	CU_ASSERT_TRUE(only("STOCK", "chair"));
	CU_ASSERT_EQUAL(depth(g, "DEL"), 0);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	request("DEL", "put QSPACE2 SOLD chair");
	CU_ASSERT_TRUE(comes("ANSWER", "0"));
	CU_ASSERT_TRUE(only("SOLD", "chair"));
}

static void	/* -f: nobody waits for the service, so it is outside. */
with_f_nobody_waits_for_the_service(void)
{
	char *text = NULL;

	given_forwarders();
	request("ASYNC", "put QSPACE2 SOLD asynchronous; fail");
	for (int n = 0; n < 1500 && (text = take_from("QSPACE2", "SOLD")) == NULL; n++)
		nap_ms(10);
	CU_ASSERT_TRUE(text != NULL && strcmp(text, "asynchronous") == 0);
	free(text);
	CU_ASSERT_EQUAL(depth(g, "ASYNC"), 0);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	CU_ASSERT_EQUAL(depth(g, "ANSWER"), 0);
}

static bool
is_quiet(void *arg)
{
	bool quiet = true;

	(void)arg;
	for (int i = 1; i <= 2; i++) {
		char *out = given_qmadmin_of(g, i, "qprinttrans");

		quiet = quiet && !has(out, "transaction index:");
		free(out);
	}
	return quiet;
}

static void
the_system_ends_cleanly(void)
{
	if (g == NULL)
		return;
	CU_ASSERT_TRUE(wait_until(is_quiet, NULL, 30));
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_a_service_does_elsewhere_commits_with_the_request),
		UNIT(and_is_undone_with_it),
		UNIT(a_service_that_dies_once_has_worked_once),
		UNIT(a_forwarder_that_dies_has_done_nothing),
		UNIT(with_n_the_service_is_outside),
		UNIT(with_d_the_failure_is_answered_and_the_work_undone),
		UNIT(with_f_nobody_waits_for_the_service),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: TMQFORWARD and several spaces", tests, UNIT_COUNT(tests));
}
