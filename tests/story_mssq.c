/*
 * story_mssq - servers that share one queue of requests (RQADDR): real servers, TMRQ, BBL.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

enum { MEMBERS = 3 };

static const char source[] =
    "#include <atmi.h>\n#include <userlog.h>\n#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#include <string.h>\n#include <unistd.h>\n"
    "static void note(const char *text) { char line[300]; int fd = open(\"notes\", O_WRONLY | O_APPEND | O_CREAT, 0644);\n"
    "  int n = snprintf(line, sizeof line, \"%s\\n\", text); if (write(fd, line, n) != n) abort(); close(fd); }\n"
    "static void wait_for(const char *file) { while (access(file, F_OK) != 0) usleep(2000); }\n"
    "void PID(TPSVCINFO *m) { tpreturn(TPSUCCESS, getpid(), m->data, m->len, 0); }\n"
    "void SLOW(TPSVCINFO *m) { char at[40]; snprintf(at, sizeof at, \"at.%ld\", (long)getpid()); note(at); wait_for(m->data);\n"
    "  tpreturn(TPSUCCESS, getpid(), m->data, m->len, 0); }\n"
    "void NOTE(TPSVCINFO *m) { note(m->data); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
    "void DIE(TPSVCINFO *m) { (void)m; signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }\n"
    "void DIEAT(TPSVCINFO *m) { note(\"dieat\"); wait_for(m->data); signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }\n"
    "void PUT(TPSVCINFO *m) { int rc = tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0);\n"
    "  tpreturn(rc == -1 ? TPFAIL : TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void PUTDIE(TPSVCINFO *m) { tpenqueue(\"QSPACE\", \"Q\", NULL, m->data, m->len, 0); raise(SIGKILL); }\n"
    "void FORW(TPSVCINFO *m) { tpforward(\"PID\", m->data, m->len, 0); }\n"
    "void EXIT(TPSVCINFO *m) { tpreturn(TPEXIT, getpid(), m->data, m->len, 0); }\n"
    "void OFFER(TPSVCINFO *m) { int rc = tpadvertise(m->data, PID); tpreturn(rc ? TPFAIL : TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void TAKE(TPSVCINFO *m) { int rc = tpunadvertise(m->data); tpreturn(rc ? TPFAIL : TPSUCCESS, getpid(), NULL, 0, 0); }\n";

static struct given *g;
static char *buffer;
static long length;

static void
given_set(void)
{
	g = given_system(&(struct given_conf){ .server_source = source,
	    .server_services = "-s PID,SLOW,NOTE,DIE,DIEAT,PUT,PUTDIE,FORW,EXIT,OFFER,TAKE",
	    .server_params = "MIN=3 MAX=5 RQADDR=one_for_all_of_them RESTART=Y MAXGEN=200 GRACE=0 CLOPT=\"-A\"",
	    .services = "PID\nNOTE LOAD=70\n", .resources = "LDBAL\tY\n", .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

static void	/* One server alone, which serves on four threads. */
given_threads(void)
{
	g = given_system(&(struct given_conf){ .server_source = source,
	    .server_services = "-t -s PID,SLOW,NOTE,DIE,DIEAT,PUT,PUTDIE,FORW,EXIT,OFFER,TAKE",
	    .server_params = "MIN=1 MAX=2 RQADDR=one_for_all_of_them RESTART=Y MAXGEN=200 GRACE=0 MINDISPATCHTHREADS=1 "
			     "MAXDISPATCHTHREADS=4 CLOPT=\"-A\"",
	    .queues = "qcreate Q fifo none 5 0 100% 0% \"\"\n" });
}

static void
set_done(void)
{
	tpterm();
	given_done(g);
}

static int
call(const char *service, const char *text)
{
	if (buffer != NULL)
		tpfree(buffer);
	buffer = tpalloc("STRING", NULL, 512);
	snprintf(buffer, 512, "%s", text);
	length = 0;
	return tpcall((char *)service, buffer, 0, &buffer, &length, TPSIGRSTRT);
}

static int
begin_call(const char *service, const char *text, long flags)
{
	char *data = tpalloc("STRING", NULL, 512);
	int cd;

	snprintf(data, 512, "%s", text);
	cd = tpacall((char *)service, data, 0, flags | TPSIGRSTRT);
	tpfree(data);
	return cd;
}

static int	/* 0, or tperrno */
end_call(int cd)
{
	return tpgetrply(&cd, &buffer, &length, TPSIGRSTRT) == 0 ? 0 : tperrno;
}

static bool
notes_have(void *arg)
{
	const struct { const char *text; int n; } *want = arg;
	char *notes = given_read(g, "notes");
	bool yes = notes != NULL && count_of(notes, want->text) >= want->n;

	free(notes);
	return yes;
}

static bool
noted(const char *text, int n)
{
	struct { const char *text; int n; } want = { text, n };

	return wait_until(notes_have, &want, 20);
}

static bool
all_members(void *arg)
{
	return given_count(g, "server") == *(int *)arg;
}

static bool
members_are(int n)
{
	return wait_until(all_members, &n, 20);
}

static long	/* of pq's line of the set: column 0 # Serve, 1 Wk Queued, 2 # Queued; -1: no line */
pq_number(int column)
{
	char *out = given_ok(g, "pq\nq\n", "tmadmin"), *line = strstr(out, "one_for_all");
	long v[3] = { -1, -1, -1 };

	if (line != NULL)
		(void)sscanf(line + 11, "%ld %ld %ld", &v[0], &v[1], &v[2]);
	free(out);
	return v[column];
}

static bool
is_queued(void *arg)
{
	return pq_number(2) == *(long *)arg;
}

static bool
queued_are(long n)
{
	return wait_until(is_queued, &n, 20);
}

/* Every member is at a request, until the file `gate` is written. */
static void
block_all(const char *gate, int cds[MEMBERS])
{
	free(given_ok(g, NULL, "rm -f notes"));
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_NOT_EQUAL(cds[i] = begin_call("SLOW", gate, 0), -1);
	CU_ASSERT_TRUE(noted("at.", MEMBERS));
}

/* --- stories --- */

static void	/* One member is at a long request: all others pass through the rest. */
idle_member_takes_the_next(void)
{
	int slow;
	long at;

	given_set();
	CU_ASSERT_EQUAL(given_count(g, "server"), MEMBERS);
	CU_ASSERT_EQUAL(given_count(g, "TMRQ"), 1);
	CU_ASSERT_NOT_EQUAL(slow = begin_call("SLOW", "gate", 0), -1);
	CU_ASSERT_TRUE(noted("at.", 1));
	for (int i = 0; i < 200; i++) {
		CU_ASSERT_EQUAL(call("PID", "x"), 0);
		CU_ASSERT_STRING_EQUAL(buffer, "x");
	}
	given_write(g, "gate", "open");
	CU_ASSERT_EQUAL(end_call(slow), 0);
	at = tpurcode;
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_TRUE(at != 0 && given_pid(g, "server", i) > 0);
	set_done();
}

static void	/* As long as nobody is busy they take turns. */
members_that_are_idle_take_turns(void)
{
	int seen[MEMBERS] = { 0 };

	given_set();
	for (int i = 0; i < 30; i++) {
		CU_ASSERT_EQUAL(call("PID", "x"), 0);
		for (int k = 0; k < MEMBERS; k++)
			seen[k] += tpurcode == given_pid(g, "server", k);
	}
	for (int k = 0; k < MEMBERS; k++)
		CU_ASSERT_TRUE(seen[k] >= 5);
	set_done();
}

static void	/* SIGSEGV in a service: its caller alone is told, what waits is served by others and by the one that is started again. */
death_of_a_member_loses_its_request_alone(void)
{
	int cds[MEMBERS], die, waiting[20];

	given_set();
	CU_ASSERT_NOT_EQUAL(die = begin_call("DIEAT", "gate", 0), -1);
	CU_ASSERT_TRUE(noted("dieat", 1));
	for (int i = 0; i < MEMBERS - 1; i++)
		CU_ASSERT_NOT_EQUAL(cds[i] = begin_call("SLOW", "gate2", 0), -1);
	CU_ASSERT_TRUE(noted("at.", MEMBERS - 1));
	for (int i = 0; i < 20; i++)
		CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("PID", "w", 0), -1);
	CU_ASSERT_TRUE(queued_are(20));
	given_write(g, "gate", "open");
	CU_ASSERT_EQUAL(end_call(die), TPESVCERR);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(end_call(waiting[i]), 0);	/* by the one that was started again: the others are busy */
	given_write(g, "gate2", "open");
	for (int i = 0; i < MEMBERS - 1; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), 0);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(call("DIE", "x"), -1);
		CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	}
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	CU_ASSERT_TRUE(members_are(MEMBERS));
	set_done();
}

static void	/* All are busy: the highest priority first, whoever becomes idle; each tenth the oldest. */
priorities_hold_across_the_set(void)
{
	static const int prio[] = { 10, 90, 50, 90, 10, 70 };
	int cds[MEMBERS], waiting[6];
	char text[20], *notes;

	given_set();
	block_all("gate", cds);
	for (int i = 0; i < 6; i++) {
		snprintf(text, sizeof text, "p%d.%d", prio[i], i);
		CU_ASSERT_EQUAL(tpsprio(prio[i], TPABSOLUTE), 0);
		CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("NOTE", text, 0), -1);
		CU_ASSERT_TRUE(queued_are(i + 1));
	}
	CU_ASSERT_EQUAL(pq_number(1), 6 * 70);
	/* One of them only becomes idle, so that the order is seen: the others are ended. */
	for (int i = 1; i < MEMBERS; i++)
		kill(given_pid(g, "server", i), SIGSTOP);
	given_write(g, "gate", "open");
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(end_call(waiting[i]), 0);
	notes = given_read(g, "notes");
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(notes, "p90"));
	CU_ASSERT_STRING_EQUAL(strstr(notes, "p90"), "p90.1\np90.3\np70.5\np50.2\np10.0\np10.4\n");
	free(notes);
	for (int i = 1; i < MEMBERS; i++)
		kill(given_pid(g, "server", i), SIGCONT);
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), 0);
	set_done();
}

static void	/* Nobody is there for a while: what waits, waits for those who are started again. */
requests_wait_while_all_members_are_started_again(void)
{
	int cds[MEMBERS], waiting[10];

	given_set();
	block_all("never", cds);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("PID", "w", 0), -1);
	CU_ASSERT_TRUE(queued_are(10));
	for (int i = MEMBERS; i-- > 0;)
		kill(given_pid(g, "server", i), SIGKILL);
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), TPESVCERR);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(end_call(waiting[i]), 0);
	set_done();
}

static void	/* The queue dies: its callers are told, nothing hangs, and the set works again. */
killed_queue_comes_back(void)
{
	int cds[MEMBERS], waiting[5];
	pid_t old;

	given_set();
	for (int round = 0; round < 3; round++) {
		free(given_ok(g, NULL, "rm -f gate"));
		block_all("gate", cds);
		for (int i = 0; i < 5; i++)
			CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("PID", "w", 0), -1);
		CU_ASSERT_TRUE(queued_are(5));
		old = given_pid(g, "TMRQ", 0);
		given_kill(g, "TMRQ", SIGKILL);
		for (int i = 0; i < MEMBERS; i++)
			CU_ASSERT_EQUAL(end_call(cds[i]), TPESVCERR);
		for (int i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(end_call(waiting[i]), TPESVCERR);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMRQ", old, 10));
		given_write(g, "gate", "open");		/* their answers are wanted by nobody now */
		for (int i = 0; i < 50; i++)
			CU_ASSERT_EQUAL(call("PID", "x"), 0);
	}
	CU_ASSERT_EQUAL(pq_number(0), MEMBERS);
	CU_ASSERT_EQUAL(pq_number(2), 0);
	CU_ASSERT_TRUE(given_logged(g, "the request queue one_for_all_of_them of group APP (TMRQ)"));
	set_done();
}

static void	/* BBL dies in between: the set goes on, and the new BBL watches its queue. */
set_outlives_bbl(void)
{
	pid_t queue, bbl;

	given_set();
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	queue = given_pid(g, "TMRQ", 0);
	bbl = given_pid(g, "BBL", 0);
	given_kill(g, "BBL", SIGKILL);
	for (int i = 0; i < 50; i++)
		CU_ASSERT_EQUAL(call("PID", "x"), 0);
	CU_ASSERT_TRUE(wait_pid_changes(g, "BBL", bbl, 20));
	CU_ASSERT_TRUE(queued_are(0));
	CU_ASSERT_EQUAL(given_pid(g, "TMRQ", 0), queue);
	CU_ASSERT_EQUAL(given_count(g, "TMRQ"), 1);
	given_kill(g, "TMRQ", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMRQ", queue, 20));
	while (call("PID", "x") == -1 && tperrno == TPESVCERR)
		;				/* the first may still have the old connection */
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	set_done();
}

static void	/* Both die together. */
set_comes_back_when_queue_and_bbl_die(void)
{
	pid_t queue;
	double end;

	given_set();
	queue = given_pid(g, "TMRQ", 0);
	given_kill(g, "BBL", SIGKILL);
	given_kill(g, "TMRQ", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMRQ", queue, 20));
	end = now_s() + 60;
	while (call("PID", "x") == -1 && now_s() < end)
		nap_ms(50);
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	CU_ASSERT_TRUE(members_are(MEMBERS));
	set_done();
}

static void	/* R20: tmshutdown of one leaves the others, of all leaves none, and no queue. */
shutdown_ends_one_or_all(void)
{
	int cd;

	given_set();
	CU_ASSERT_NOT_EQUAL(cd = begin_call("SLOW", "gate", 0), -1);
	CU_ASSERT_TRUE(noted("at.", 1));
	free(given_ok(g, NULL, "(sleep 0.3; touch gate) & tmshutdown -y -i 2"));
	free(given_ok(g, NULL, "touch gate"));
	CU_ASSERT_EQUAL(end_call(cd), 0);
	CU_ASSERT_EQUAL(given_count(g, "server"), MEMBERS - 1);
	CU_ASSERT_EQUAL(pq_number(0), MEMBERS - 1);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(call("PID", "x"), 0);
	free(given_ok(g, NULL, "tmboot -y -i 2"));
	free(given_ok(g, NULL, "tmboot -y -i 5"));
	CU_ASSERT_EQUAL(given_count(g, "server"), MEMBERS + 1);
	CU_ASSERT_EQUAL(pq_number(0), MEMBERS + 1);
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	free(given_ok(g, NULL, "tmshutdown -y -g APP"));
	CU_ASSERT_EQUAL(given_count(g, "server"), 0);
	CU_ASSERT_EQUAL(pq_number(0), -1);
	CU_ASSERT_EQUAL(call("PID", "x"), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	free(given_ok(g, NULL, "tmboot -y -g APP"));
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	CU_ASSERT_EQUAL(given_count(g, "TMRQ"), 1);
	set_done();			/* asserts that no process and no socket is left */
}

static void	/* What waits when the order to stop comes is served before the last one goes. */
shutdown_finishes_what_waits(void)
{
	int cds[MEMBERS], waiting[10];

	given_set();
	block_all("gate", cds);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("NOTE", "served", 0), -1);
	CU_ASSERT_TRUE(queued_are(10));
	free(given_ok(g, NULL, "tmshutdown -y -g APP >shut 2>&1 & sleep 0.3; touch gate; wait"));
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), 0);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(end_call(waiting[i]), 0);
	CU_ASSERT_EQUAL(given_count(g, "server"), 0);
	set_done();
}

static void	/* The caller's transaction goes along, and comes back; with a member that dies it can only be rolled back. */
transactions_pass_through_the_set(void)
{
	char *text;

	given_set();
	CU_ASSERT_EQUAL(tpbegin(20, 0), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(call("PUT", "kept"), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_STRING_EQUAL(text = take("Q"), "kept");
		free(text);
	}
	CU_ASSERT_EQUAL(tpbegin(20, 0), 0);
	CU_ASSERT_EQUAL(call("PUT", "undone"), 0);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_PTR_NULL(take("Q"));
	CU_ASSERT_EQUAL(tpbegin(20, 0), 0);
	CU_ASSERT_EQUAL(call("PUT", "with the other"), 0);
	CU_ASSERT_EQUAL(call("PUTDIE", "lost"), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCERR);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_PTR_NULL(take("Q"));
	set_done();
}

static void	/* There and back, not a byte changed. */
bodies_of_all_sizes_pass(void)
{
	static const long sizes[] = { 0, 1, 65535, 65536, 1 << 20, 64 << 20 };
	char *data = tpalloc("CARRAY", NULL, 64 << 20), *back = tpalloc("CARRAY", NULL, 512);

	given_set();
	for (long i = 0; i < 64 << 20; i++)
		data[i] = (char)(i * 7 ^ i >> 13);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CU_ASSERT_EQUAL(tpcall("PID", data, sizes[i], &back, &length, 0), 0);
		CU_ASSERT_EQUAL(length, sizes[i]);
		CU_ASSERT_TRUE(length == sizes[i] && memcmp(back, data, (size_t)length) == 0);
	}
	tpfree(data);
	tpfree(back);
	set_done();
}

static void	/* Wanting no reply, and forwarding, are as with any server. */
requests_without_a_reply_and_forwarded_ones_pass(void)
{
	int cds[MEMBERS];

	given_set();
	block_all("gate", cds);
	for (int i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(begin_call("NOTE", "silent", TPNOREPLY | TPNOTRAN), 0);
	CU_ASSERT_TRUE(queued_are(40));
	given_write(g, "gate", "open");
	CU_ASSERT_TRUE(noted("silent", 40));
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), 0);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(call("FORW", "f"), 0);
		CU_ASSERT_STRING_EQUAL(buffer, "f");
	}
	set_done();
}

static void	/* Whose time is over, or who has left in its transaction, takes no place and is not served. */
requests_that_nobody_waits_for_are_taken_out(void)
{
	int cds[MEMBERS], waiting;
	char *notes;
	pid_t pid;

	given_set();
	block_all("gate", cds);
	if ((pid = fork()) == 0) {
		tpbegin(60, 0);
		begin_call("NOTE", "left", 0);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	CU_ASSERT_TRUE(queued_are(0));
	CU_ASSERT_NOT_EQUAL(waiting = begin_call("NOTE", "cancelled", 0), -1);
	CU_ASSERT_TRUE(queued_are(1));
	CU_ASSERT_EQUAL(tpcancel(waiting), 0);
	CU_ASSERT_EQUAL(tpsblktime(1, TPBLK_NEXT), 0);
	CU_ASSERT_EQUAL(call("NOTE", "late"), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_TRUE(queued_are(1));
	given_write(g, "gate", "open");
	for (int i = 0; i < MEMBERS; i++)
		CU_ASSERT_EQUAL(end_call(cds[i]), 0);
	CU_ASSERT_EQUAL(call("NOTE", "last"), 0);
	notes = given_read(g, "notes");
	CU_ASSERT_PTR_NOT_NULL(strstr(notes, "cancelled"));	/* only its answer was */
	CU_ASSERT_PTR_NULL(strstr(notes, "left"));
	CU_ASSERT_PTR_NULL(strstr(notes, "late"));
	free(notes);
	set_done();
}

static void	/* A request goes to members that offer its service; when none does any more, its caller is told so. */
services_are_those_of_each_member(void)
{
	pid_t one;

	given_set();
	CU_ASSERT_EQUAL(call("EXTRA", "x"), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_EQUAL(call("OFFER", "EXTRA"), 0);
	one = (pid_t)tpurcode;
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(call("EXTRA", "x"), 0);
		CU_ASSERT_EQUAL(tpurcode, one);
	}
	kill(one, SIGKILL);		/* started again, it offers what it was built with */
	while (call("EXTRA", "x") == -1 && tperrno == TPESVCERR)
		;
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_EQUAL(call("EXIT", "x"), -1);
	CU_ASSERT_EQUAL(tperrno, TPESVCFAIL);
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	CU_ASSERT_TRUE(members_are(MEMBERS));
	set_done();
}

static void	/* One line in pq for all, a line each in psr and psc; TMRQ is in none. */
tables_show_one_queue(void)
{
	char *out;

	given_set();
	out = given_ok(g, "psr\nq\n", "tmadmin");
	CU_ASSERT_EQUAL(count_of(out, "server         one_for_all "), MEMBERS);
	CU_ASSERT_PTR_NULL(strstr(out, "TMRQ"));
	free(out);
	out = given_ok(g, "pq\nq\n", "tmadmin");
	CU_ASSERT_EQUAL(count_of(out, "one_for_all"), 1);
	CU_ASSERT_TRUE(has(out, "server         one_for_all       3         0         0"));
	CU_ASSERT_PTR_NULL(strstr(out, "TMRQ"));
	free(out);
	out = given_ok(g, "pq -q one_for_all_of_them\nq\n", "tmadmin");
	CU_ASSERT_EQUAL(count_of(out, "one_for_all"), 1);
	CU_ASSERT_PTR_NULL(strstr(out, "BBL "));
	free(out);
	out = given_ok(g, "psc -s PID\nq\n", "tmadmin");
	CU_ASSERT_EQUAL(count_of(out, "AVAIL"), MEMBERS);
	free(out);
	set_done();
}

static void	/* It takes as many requests at once as it has threads, the rest waits for any member. */
member_with_threads_takes_as_many(void)
{
	int slow[4], waiting[5];

	given_threads();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_NOT_EQUAL(slow[i] = begin_call("SLOW", "gate", 0), -1);
	CU_ASSERT_TRUE(noted("at.", 4));
	for (int i = 0; i < 5; i++)
		CU_ASSERT_NOT_EQUAL(waiting[i] = begin_call("PID", "w", 0), -1);
	CU_ASSERT_TRUE(queued_are(5));
	free(given_ok(g, NULL, "tmboot -y -i 2"));
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(end_call(waiting[i]), 0);	/* by the second one, which has just come */
	given_kill(g, "TMRQ", SIGKILL);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(end_call(slow[i]), TPESVCERR);
	given_write(g, "gate", "open");
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			CU_ASSERT_NOT_EQUAL(slow[i] = begin_call(i % 2 ? "PID" : "FORW", "w", 0), -1);
		for (int i = 0; i < 4; i++)
			CU_ASSERT_EQUAL(end_call(slow[i]), 0);
	}
	set_done();
}

static void	/* Everything at once is killed: tmipcrm leaves nothing of the set. */
tmipcrm_takes_the_queue_along(void)
{
	given_set();
	given_kill(g, "BBL", SIGKILL);
	free(given_ok(g, NULL, "tmipcrm -y"));
	CU_ASSERT_EQUAL(given_count(g, "TMRQ"), 0);
	CU_ASSERT_EQUAL(given_count(g, "server"), 0);
	given_boot(g);
	CU_ASSERT_EQUAL(call("PID", "x"), 0);
	set_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(idle_member_takes_the_next),
		UNIT(members_that_are_idle_take_turns),
		UNIT(death_of_a_member_loses_its_request_alone),
		UNIT(priorities_hold_across_the_set),
		UNIT(requests_wait_while_all_members_are_started_again),
		UNIT(killed_queue_comes_back),
		UNIT(set_outlives_bbl),
		UNIT(set_comes_back_when_queue_and_bbl_die),
		UNIT(shutdown_ends_one_or_all),
		UNIT(shutdown_finishes_what_waits),
		UNIT(transactions_pass_through_the_set),
		UNIT(bodies_of_all_sizes_pass),
		UNIT(requests_without_a_reply_and_forwarded_ones_pass),
		UNIT(requests_that_nobody_waits_for_are_taken_out),
		UNIT(services_are_those_of_each_member),
		UNIT(tables_show_one_queue),
		UNIT(member_with_threads_takes_as_many),
		UNIT(tmipcrm_takes_the_queue_along),
	};

	return unit_run("mssq", tests, UNIT_COUNT(tests));
}
