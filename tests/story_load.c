/*
 * story_load - requests go to the server that has least to do, whoever gave it that; and a request that only waited in a server
 * that died is answered by another, or by the one that is started in its place: once.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"
#include "slots.h"

static struct given *g;

/* Each routine writes its name to the file "ran" when it begins.  WAIT and POISON wait for the file that the request names. */
static const char source[] =
    "#include <atmi.h>\n#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <unistd.h>\n"
    "static void ran(const char *what) { char s[64]; int fd = open(\"ran\", O_WRONLY | O_CREAT | O_APPEND, 0600);\n"
    "  snprintf(s, sizeof s, \"%s.\\n\", what); if (write(fd, s, strlen(s)) < 0) abort(); close(fd); }\n"
    "static void until(const char *file) { while (access(file, F_OK) != 0) usleep(1000); }\n"
    "int tpsvrinit(int argc, char **argv) { (void)argc; (void)argv; signal(SIGSEGV, SIG_DFL); return tpopen(); }\n"
    "void tpsvrdone(void) { }\n"
    "void PID(TPSVCINFO *m) { ran(m->data); tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void WAIT(TPSVCINFO *m) { ran(\"wait\"); until(m->data); tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void POISON(TPSVCINFO *m) { ran(\"poison\"); until(m->data); raise(SIGSEGV); }\n"
    "void LEAVE(TPSVCINFO *m) { until(m->data); tpreturn(TPEXIT, 0, NULL, 0, 0); }\n"
    "void TAKE(TPSVCINFO *m) { until(m->data); tpunadvertise(\"BIG\"); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void BIG(TPSVCINFO *m) { char *b = tpalloc(\"CARRAY\", NULL, 4000000); ran(m->data); memset(b, 7, 4000000);\n"
    "  tpreturn(TPSUCCESS, 0, b, 4000000, 0); }\n"
    "void PUT(TPSVCINFO *m) { int rc = tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0); ran(m->data);\n"
    "  tpreturn(rc ? TPFAIL : TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void FORW(TPSVCINFO *m) { tpforward(\"PID\", m->data, m->len, 0); }\n"
    "void FORWWAIT(TPSVCINFO *m) { tpforward(\"WAIT\", m->data, m->len, 0); }\n";

static void
given_one_server(void)
{
	g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-s PID,WAIT,POISON,LEAVE,BIG,PUT",
	    .server_params = "RESTART=Y MAXGEN=200 GRACE=0", .resources = "LDBAL\tY\n", .points = true,
	    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

static void
given_two_servers(const char *first, const char *second)
{
	char params[256];

	snprintf(params, sizeof params, "RESTART=Y MAXGEN=200 GRACE=0 CLOPT=\"-s %s\"\nserver\tSRVGRP=APP SRVID=2 RESTART=Y MAXGEN=200 "
	    "GRACE=0 CLOPT=\"-s %s\"", first, second);
	g = given_system(&(struct given_conf){ .server_source = source, .server_services = "-s PID,WAIT,POISON,LEAVE,TAKE,BIG,PUT,FORW,FORWWAIT",
	    .server_params = params, .resources = "LDBAL\tY\n", .points = true });
}

static void
done(void)
{
	tpterm();
	given_done(g);
	g = NULL;
}

static char *buffer;
static long length;

static char *
text(const char *s)
{
	if (buffer != NULL)
		tpfree(buffer);		/* it may have become another type */
	buffer = tpalloc("STRING", NULL, 512);
	snprintf(buffer, 512, "%s", s);
	return buffer;
}

static int
call(const char *service, const char *s)
{
	return tpcall((char *)(uintptr_t)service, text(s), 0, &buffer, &length, 0);
}

static int
acall(const char *service, const char *s)
{
	int cd = tpacall((char *)(uintptr_t)service, text(s), 0, 0);

	CU_ASSERT_TRUE(cd > 0);
	return cd;
}

static int
reply(int cd)
{
	return tpgetrply(&cd, &buffer, &length, 0);
}

/* ---- what the table says ---- */

struct state { long srvid; unsigned long sent; unsigned serving; };

static bool
is_in_state(void *arg)
{
	const struct state *want = arg;
	struct slots *t = NULL;
	struct slots_entry e = { .sent = 999 };
	struct slots_ref ref;
	char path[512], *why = NULL;

	slots_path(given_rundir(g), path, sizeof path);
	if (slots_open(path, &t, &why) != 0) {
		free(why);
		return false;
	}
	if (slots_find(t, 1, want->srvid, 0, &ref))
		slots_read(t, ref.i, &e);
	slots_close(t);
	return e.sent == want->sent && e.serving == want->serving;
}

/* So many requests were sent to the server of that id and are not done, so many of them are begun. */
static void
await_state(long srvid, unsigned long sent, unsigned serving)
{
	struct state s = { srvid, sent, serving };

	CU_ASSERT_TRUE(wait_until(is_in_state, &s, 20));
}

static int
times_ran(const char *what)
{
	char *ran = given_read(g, "ran"), line[64];
	int n;

	snprintf(line, sizeof line, "%s.\n", what);
	n = ran == NULL ? 0 : count_of(ran, line);
	free(ran);
	return n;
}

/* ---- load ---- */

static void	/* Another client keeps one of two servers busy: all requests go to the other one. */
requests_go_to_the_idle_server(void)
{
	pid_t busy, other;
	int i;

	given_two_servers("PID,WAIT", "PID,WAIT");
	CU_ASSERT_EQUAL(call("PID", "p"), 0);
	busy = (pid_t)tpurcode;
	for (other = busy, i = 0; other == busy && i < 10; i++) {
		CU_ASSERT_EQUAL(call("PID", "p"), 0);
		other = (pid_t)tpurcode;
	}
	CU_ASSERT_NOT_EQUAL(other, busy);	/* in turn while both are idle */
	if (fork() == 0) {			/* another client */
		tpterm();
		buffer = NULL;
		_exit(call("WAIT", "go") == 0 ? 0 : 1);
	}
	for (i = 0; i < 200 && times_ran("wait") == 0; i++)
		nap_ms(50);
	busy = 0;
	for (i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(call("PID", "p"), 0);
		if (busy == 0)
			busy = (pid_t)tpurcode;
		CU_ASSERT_EQUAL(busy, (pid_t)tpurcode);
	}
	given_write(g, "go", "x");
	wait(&i);
	CU_ASSERT_EQUAL(i, 0);
	done();
}

static void	/* Each gets half of what one client sends at once, counted by what waits, not by turns. */
a_burst_is_shared(void)
{
	int cd[20], i;

	given_two_servers("PID,WAIT", "PID,WAIT");
	for (i = 0; i < 20; i++)
		cd[i] = acall("WAIT", "go");
	await_state(1, 10, 1);
	await_state(2, 10, 1);
	given_write(g, "go", "x");
	for (i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(reply(cd[i]), 0);
	await_state(1, 0, 0);
	await_state(2, 0, 0);
	done();
}

static void	/* pq shows what waits, without what is served. */
pq_shows_what_waits(void)
{
	char *out;
	int cd[4], i;

	given_one_server();
	for (i = 0; i < 4; i++)
		cd[i] = acall("WAIT", "go");
	await_state(1, 4, 1);
	out = given_ok(g, "pq\nquit\n", "tmadmin -r");
	CU_ASSERT_TRUE(has(out, "server         00001.00001       1       150         3       3.0      SITE1\n"));
	free(out);
	given_write(g, "go", "x");
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(reply(cd[i]), 0);
	await_state(1, 0, 0);
	out = given_ok(g, "pq\nquit\n", "tmadmin -r");
	CU_ASSERT_TRUE(has(out, "server         00001.00001       1         0         0       0.0      SITE1\n"));
	free(out);
	done();
}

/* ---- a server that dies ---- */

static void	/* 20 callers, one of which sends what kills the server: it costs that one request and no other. */
poison_costs_one_request(void)
{
	int answered = 0, lost = 0, status, i;

	given_one_server();
	for (i = 0; i < 20; i++) {
		if (i == 1)
			await_state(1, 1, 1);
		if (fork() == 0) {
			int rc = i == 0 ? call("POISON", "go") : call("PID", "p");

			_exit(rc == 0 ? 0 : tperrno);
		}
	}
	await_state(1, 20, 1);
	given_write(g, "go", "x");
	while (wait(&status) > 0) {
		answered += WEXITSTATUS(status) == 0;
		lost += WEXITSTATUS(status) == TPESVCERR;
	}
	CU_ASSERT_EQUAL(answered, 19);
	CU_ASSERT_EQUAL(lost, 1);
	CU_ASSERT_EQUAL(times_ran("p"), 19);
	done();
}

static void	/* The same with all requests of one client, by tpacall(); its bodies are its own again once that returned. */
poison_among_the_calls_of_one_client_costs_one(void)
{
	int cd[20], i, answered = 0;

	given_one_server();
	cd[0] = acall("POISON", "go");
	for (i = 1; i < 20; i++)
		cd[i] = acall("PID", "p");
	text("overwritten");
	await_state(1, 20, 1);
	given_write(g, "go", "x");
	for (i = 0; i < 20; i++) {
		int any = 0;

		if (tpgetrply(&any, &buffer, &length, TPGETANY) == 0)
			answered++;
		else {
			CU_ASSERT_EQUAL(tperrno, TPESVCERR);
			CU_ASSERT_EQUAL(any, cd[0]);
		}
	}
	CU_ASSERT_EQUAL(answered, 19);
	CU_ASSERT_EQUAL(times_ran("p"), 19);
	done();
}

static void	/* A service ends its server (TPEXIT): what waited there was refused, and is answered by the one that is started again. */
calls_that_a_leaving_server_refused_are_sent_again(void)
{
	int cd[20], i, any, answered = 0;

	given_one_server();
	cd[0] = acall("LEAVE", "go");
	for (i = 1; i < 20; i++)
		cd[i] = acall("PID", "p");
	await_state(1, 20, 1);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(reply(cd[1]), 0);
	for (i = 0; i < 19; i++) {
		any = 0;
		if (tpgetrply(&any, &buffer, &length, TPGETANY) == 0)
			answered++;
		else
			CU_ASSERT_EQUAL(any, cd[0]);
	}
	CU_ASSERT_EQUAL(answered, 18);
	CU_ASSERT_EQUAL(times_ran("p"), 19);
	done();
}

static void
forwarded_requests_that_a_leaving_server_refused_are_sent_again(void)
{
	int cd[6], i;

	given_two_servers("FORW", "PID,LEAVE");
	cd[0] = acall("LEAVE", "go");
	for (i = 1; i < 6; i++)
		cd[i] = acall("FORW", "p");
	await_state(2, 6, 1);
	given_write(g, "go", "x");
	for (i = 1; i < 6; i++)
		CU_ASSERT_EQUAL(reply(cd[i]), 0);
	CU_ASSERT_EQUAL(reply(cd[0]), -1);
	CU_ASSERT_EQUAL(times_ran("p"), 5);
	done();
}

static void	/* The server goes on without the service, which nobody else offers: as the caller is told by tpacall(). */
a_call_that_nobody_takes_any_more_is_told_so(void)
{
	int cd[2];

	given_two_servers("PID", "TAKE,BIG");
	cd[0] = acall("TAKE", "go");
	cd[1] = acall("BIG", "p");
	await_state(2, 2, 1);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(reply(cd[0]), 0);
	CU_ASSERT_EQUAL(reply(cd[1]), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	cd[1] = 0;
	CU_ASSERT_EQUAL(tpgetrply(&cd[1], &buffer, &length, TPGETANY), -1);
	CU_ASSERT_EQUAL(tperrno, TPEBADDESC);
	done();
}

static void	/* ... and one that does not wait hears that nothing is there yet, and has its answer later. */
a_caller_that_does_not_wait_gets_its_answer_later(void)
{
	int cd[2], i, rc = -1;

	given_one_server();
	cd[0] = acall("POISON", "go");
	cd[1] = acall("PID", "p");
	await_state(1, 2, 1);
	given_write(g, "go", "x");
	for (i = 0; i < 400 && rc != 0; i++) {
		if ((rc = tpgetrply(&cd[1], &buffer, &length, TPNOBLOCK)) != 0) {
			CU_ASSERT_EQUAL_FATAL(tperrno, TPEBLOCK);
			nap_ms(50);
		}
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(reply(cd[0]), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	done();
}

static void	/* A body that is too large to be kept: the outcome is what it was. */
what_is_too_large_is_not_kept(void)
{
	char *large;
	int cd[2];

	given_one_server();
	cd[0] = acall("POISON", "go");
	large = tpalloc("CARRAY", NULL, 100000);
	memset(large, 0, 100000);
	CU_ASSERT_TRUE((cd[1] = tpacall("PID", large, 100000, 0)) > 0);
	await_state(1, 2, 1);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(reply(cd[0]), -1);
	CU_ASSERT_EQUAL(reply(cd[1]), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_EQUAL(times_ran("poison"), 1);
	tpfree(large);
	done();
}

/* ---- at each step ---- */

static void
dies_at(const char *point)
{
	given_point_clear(g, "server");
	given_point_set(g, "server", point, "kill");
}

static bool
is_hit(void *point)
{
	return given_point_hit(g, "server", point);
}

static void	/* Whatever the moment: a request is never carried out twice, and is lost only where it may have been begun. */
no_moment_makes_a_request_run_twice(void)
{
	static const struct { const char *point; int error, ran; } step[] = {
		{ "MARK_BEGIN", 0, 1 }, { "MARK_BEGUN", TPESVCERR, 0 }, { "MARK_END", 0, 1 }, { "MARK_ENDED", 0, 1 } };
	char name[32];
	size_t i;
	int cd, way, rc;

	given_one_server();
	for (i = 0; i < sizeof step / sizeof step[0]; i++)
		for (way = 0; way < 2; way++) {
			snprintf(name, sizeof name, "%s-%d", step[i].point, way);
			CU_ASSERT_EQUAL(call("PID", "before"), 0);
			dies_at(step[i].point);
			if (way == 0)
				rc = call("PID", name);
			else {
				cd = acall("PID", name);
				rc = reply(cd);
			}
			CU_ASSERT_EQUAL(rc == 0 ? 0 : tperrno, step[i].error);
			CU_ASSERT_TRUE(wait_until(is_hit, (void *)(uintptr_t)step[i].point, 20));	/* it may come after the answer */
			given_point_clear(g, "server");
			CU_ASSERT_EQUAL(call("PID", "after"), 0);
			CU_ASSERT_EQUAL(times_ran(name), step[i].ran);
		}
	done();
}

static void	/* Its transaction goes on. */
a_request_in_a_transaction_is_sent_again_too(void)
{
	char *got;

	given_one_server();
	CU_ASSERT_EQUAL(call("PID", "before"), 0);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	dies_at("MARK_BEGIN");
	CU_ASSERT_EQUAL(call("PUT", "one"), 0);
	CU_ASSERT_TRUE(given_point_hit(g, "server", "MARK_BEGIN"));
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_STRING_EQUAL(got = take("Q"), "one");
	free(got);
	CU_ASSERT_PTR_NULL(take("Q"));
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	dies_at("MARK_BEGUN");
	CU_ASSERT_EQUAL(call("PUT", "two"), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_EQUAL(tpcommit(0), -1);	/* it may have done something */
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_PTR_NULL(take("Q"));
	done();
}

static void	/* The answer is too large for the socket, its caller does not read: a part of it dies with the server. */
an_answer_that_was_cut_off_is_not_asked_for_again(void)
{
	pid_t pid;
	int cd;

	given_one_server();
	CU_ASSERT_EQUAL(call("PID", "before"), 0);
	pid = (pid_t)tpurcode;
	cd = acall("BIG", "big");
	await_state(1, 0, 0);
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(reply(cd), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_EQUAL(call("PID", "after"), 0);
	CU_ASSERT_EQUAL(times_ran("big"), 1);
	cd = acall("BIG", "whole");
	CU_ASSERT_EQUAL(reply(cd), 0);
	CU_ASSERT_EQUAL(length, 4000000);
	done();
}

/* ---- forwarded requests ---- */

static void
a_forwarded_request_is_sent_again(void)
{
	given_two_servers("FORW", "PID");
	CU_ASSERT_EQUAL(call("FORW", "before"), 0);
	given_point_set(g, "server", "MARK_BEGIN", "kill");	/* of the second server, given.c */
	CU_ASSERT_EQUAL(call("FORW", "again"), 0);
	CU_ASSERT_TRUE(given_point_hit(g, "server", "MARK_BEGIN"));
	CU_ASSERT_EQUAL(times_ran("again"), 1);
	done();
}

static void	/* The one that forwarded it dies: it is under way elsewhere, and must not run once more. */
a_request_that_was_forwarded_is_begun(void)
{
	pid_t pid;
	int cd;

	given_two_servers("FORWWAIT", "WAIT,PID");
	pid = given_pid_as(g, 1, 1);
	cd = acall("FORWWAIT", "go");
	await_state(2, 1, 1);
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(reply(cd), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	given_write(g, "go", "x");
	CU_ASSERT_EQUAL(call("PID", "after"), 0);
	CU_ASSERT_EQUAL(times_ran("wait"), 1);
	done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_burst_is_shared),
		UNIT(pq_shows_what_waits),
		UNIT(poison_among_the_calls_of_one_client_costs_one),
		UNIT(a_caller_that_does_not_wait_gets_its_answer_later),
		UNIT(what_is_too_large_is_not_kept),
		UNIT(no_moment_makes_a_request_run_twice),
		UNIT(calls_that_a_leaving_server_refused_are_sent_again),
		UNIT(forwarded_requests_that_a_leaving_server_refused_are_sent_again),
		UNIT(a_call_that_nobody_takes_any_more_is_told_so),
		UNIT(a_request_in_a_transaction_is_sent_again_too),
		UNIT(an_answer_that_was_cut_off_is_not_asked_for_again),
		UNIT(a_forwarded_request_is_sent_again),
		UNIT(a_request_that_was_forwarded_is_begun),
#ifndef __SANITIZE_THREAD__	/* which does not allow threads in a child of threads */
		UNIT(requests_go_to_the_idle_server),
		UNIT(poison_costs_one_request),
#endif
	};

	return unit_run("story: load", tests, UNIT_COUNT(tests));
}
