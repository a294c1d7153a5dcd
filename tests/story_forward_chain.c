/*
 * story_forward_chain - TMQFORWARD on queues that feed each other: chains, rings, and the error queue itself.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "given_forward.h"

static long	/* of its CPU time, in milliseconds */
cpu_ms(pid_t pid)
{
	char path[60], text[1000], *at;
	long user = 0, sys = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	if ((at = strrchr(text, ')')) == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &sys) != 2)
		return 0;
	return (user + sys) * 1000 / sysconf(_SC_CLK_TCK);
}

static long
cpu_of_both(struct given *g)
{
	return cpu_ms(given_pid(g, "TMQFORWARD", 0)) + cpu_ms(given_pid(g, "TMQUEUE", 0));
}

/*
 * Services that pass a number on.  FIRST and SECOND: the answer is the number and one.  THIRD puts it on queue FOURTH.
 * PING puts it on PONG, and PONG on PING, both with a reply queue that is forwarded as well, until it is large enough.
 */
static const char passers[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "static void note(const char *s) { int fd = open(\"notes\", O_CREAT | O_APPEND | O_WRONLY, 0600);\n"
    "  dprintf(fd, \"%s\\n\", s); close(fd); }\n"
    "static void put(char *queue, char *reply, int n) { TPQCTL c; char *b = tpalloc(\"STRING\", NULL, 50);\n"
    "  memset(&c, 0, sizeof c); c.flags = TPQREPLYQ; strcpy(c.replyqueue, reply); sprintf(b, \"%d\", n);\n"
    "  if (tpenqueue(\"QSPACE\", queue, &c, b, 0, 0) == -1) note(\"trouble\");\n"
    "  tpfree(b); }\n"
    "static void answer(TPSVCINFO *m, int more) { char *b = tpalloc(\"STRING\", NULL, 50);\n"
    "  note(m->name); sprintf(b, \"%d\", atoi(m->data) + more); tpreturn(TPSUCCESS, 0, b, 0, 0); }\n"
    "void FIRST(TPSVCINFO *m) { answer(m, 1); }\n"
    "void SECOND(TPSVCINFO *m) { put(\"THIRD\", \"LAST\", atoi(m->data) + 1); answer(m, 1); }\n"
    "void THIRD(TPSVCINFO *m) { answer(m, 1); }\n"
    "void PING(TPSVCINFO *m) { if (atoi(m->data) < 60) put(\"PONG\", \"PING2\", atoi(m->data) + 1); answer(m, 0); }\n"
    "void PONG(TPSVCINFO *m) { if (atoi(m->data) < 60) put(\"PING\", \"PONG2\", atoi(m->data) + 1); answer(m, 0); }\n"
    "void PING2(TPSVCINFO *m) { answer(m, 0); }\n"
    "void PONG2(TPSVCINFO *m) { answer(m, 0); }\n"
    "void A(TPSVCINFO *m) { answer(m, 1); }\n"
    "void B(TPSVCINFO *m) { answer(m, 1); }\n"
    "void ERRQ(TPSVCINFO *m) { note(\"ERRQ\"); tpreturn(TPFAIL, 1, NULL, 0, 0); }\n";

#define Q(name) "qcreate " name " fifo none 2 0 100% 0% \"\"\n"

static struct given *
given_passers(const char *forwarder)
{
	return given_system(&(struct given_conf){ .server_source = passers,
	    .server_services = "-s FIRST,SECOND,THIRD,PING,PONG,PING2,PONG2,A,B,ERRQ", .server_params = "RESTART=Y GRACE=0 MIN=2 MAX=2",
	    .servers = forwarder,
	    .queues = Q("FIRST") Q("SECOND") Q("THIRD") Q("LAST") Q("PING") Q("PONG") Q("PING2") Q("PONG2") Q("A") Q("B") });
}

static void
ask_number(const char *queue, const char *reply, const char *number)
{
	TPQCTL c;
	char *b = tpalloc("STRING", NULL, 50);

	memset(&c, 0, sizeof c);
	c.flags = TPQREPLYQ;
	strcpy(c.replyqueue, reply);
	strcpy(b, number);
	GIVEN_CALL_OK(tpenqueue("QSPACE", (char *)queue, &c, b, 0, 0));
	tpfree(b);
}

/* FIRST's answer is SECOND's request; SECOND puts one on THIRD in the same transaction, whose answer is on LAST. */
static void
a_chain_of_three_services_passes_each_message_once(void)
{
	enum { N = 30 };
	struct given *g = given_passers(FORWARDER("-q FIRST,SECOND,THIRD -w 4"));
	char *text;

	for (int i = 0; i < N; i++)
		ask_number("FIRST", "SECOND", "10");
	for (int i = 0; i < N; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(text = take_within("LAST", 20));
		CU_ASSERT_STRING_EQUAL(text, "13");
		free(text);
	}
	CU_ASSERT_EQUAL(depth(g, "LAST") + depth(g, "FIRST") + depth(g, "SECOND") + depth(g, "THIRD") + depth(g, "ERRQ"), 0);
	CU_ASSERT_EQUAL(notes_of(g, "FIRST"), N);
	CU_ASSERT_EQUAL(notes_of(g, "SECOND"), N);
	CU_ASSERT_EQUAL(notes_of(g, "THIRD"), N);
	given_done(g);
}

/* An answer names no reply queue: A to B and B to A end at the second service. */
static void
reply_queues_alone_make_no_circle(void)
{
	struct given *g = given_passers(FORWARDER("-q A,B"));

	ask_number("A", "B", "1");
	ask_number("B", "A", "1");
	ask_number("A", "A", "1");		/* its own answer is its next request, and that has none */
	CU_ASSERT_TRUE(noted(g, "A", 4) && noted(g, "B", 2));
	CU_ASSERT_TRUE(comes_to(g, "A", 0) && comes_to(g, "B", 0));
	CU_ASSERT_EQUAL(notes_of(g, "A"), 4);
	CU_ASSERT_EQUAL(notes_of(g, "B"), 2);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

/* Two services feed each other sixty times, and each answer goes through a forwarded queue as well: as much work, and no more. */
static void
a_ring_works_as_much_as_there_is_to_do(void)
{
	struct given *g = given_passers(FORWARDER("-q PING,PONG,PING2,PONG2 -w 4"));
	long before;
	double until;

	ask_number("PING", "PING2", "0");
	CU_ASSERT_TRUE(noted(g, "PING", 31) && noted(g, "PONG", 30));
	CU_ASSERT_TRUE(noted(g, "PING2", 31) && noted(g, "PONG2", 30));
	before = cpu_of_both(g);
	for (until = now_s() + 1; now_s() < until;)
		nap_ms(50);
	CU_ASSERT(cpu_of_both(g) - before < 300);	/* and then there is nothing */
	CU_ASSERT_EQUAL(notes_of(g, "PING"), 31);
	CU_ASSERT_EQUAL(notes_of(g, "PONG"), 30);
	CU_ASSERT_EQUAL(notes_of(g, "PING2"), 31);
	CU_ASSERT_EQUAL(notes_of(g, "PONG2"), 30);
	CU_ASSERT_EQUAL(notes_of(g, "trouble"), 0);
	CU_ASSERT_EQUAL(depth(g, "PING") + depth(g, "PONG") + depth(g, "PING2") + depth(g, "PONG2") + depth(g, "ERRQ"), 0);
	given_done(g);
}

/*
 * The error queue is forwarded, and its service fails.  The message stays on the error queue, for which there is no other; it is tried at
 * intervals that double, and whoever looks can take it.
 */
static void
r59_an_error_queue_whose_service_fails_does_not_spin(void)
{
	struct given *g = given_passers(FORWARDER("-q ERRQ -w 4"));
	long before, calls;
	double until;

	put("ERRQ", "dead");
	CU_ASSERT_TRUE(noted(g, "ERRQ", 3));
	before = cpu_of_both(g);
	for (until = now_s() + 4; now_s() < until;)
		nap_ms(50);
	calls = notes_of(g, "ERRQ");
	CU_ASSERT(calls <= 6);			/* twice at once, after 1 s, 2 s, 4 s */
	CU_ASSERT(cpu_of_both(g) - before < 800);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 1);
	free(given_ok(g, NULL, "tmshutdown -y -s TMQFORWARD"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 1);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_chain_of_three_services_passes_each_message_once), UNIT(reply_queues_alone_make_no_circle),
		UNIT(a_ring_works_as_much_as_there_is_to_do), UNIT(r59_an_error_queue_whose_service_fails_does_not_spin),
	};

	return unit_run("forwarding from queue to queue", tests, UNIT_COUNT(tests));
}
