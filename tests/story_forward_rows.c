/*
 * story_forward_rows - TMQFORWARD(5) row by row: what goes with a request and with its answer, and where each of them ends.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "given_crash_space.h"
#include "given_forward.h"

#define Q(name) "qcreate " name " fifo none 0 0 100% 0% \"\"\n"

static struct given *
given_work(const char *options, const char *queues, const char *services)
{
	return given_system(&(struct given_conf){ .queues = queues, .server_source = given_doer, .server_services = "-s WORK,MORE:DO",
	    .space_options = "-n 100000B", .server_params = "RESTART=Y MAXGEN=255 GRACE=0", .servers = options, .services = services,
	    .tmqueue = "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
}

static bool	/* the next message of a queue is this text; it is taken */
text_is(const char *queue, const char *text)
{
	char *got = NULL, *name = next_name(queue, 20, NULL, &got);
	bool same = got != NULL && strcmp(got, text) == 0;

	if (!same)
		fprintf(stderr, "\n%s: \"%s\" instead of \"%s\"\n", queue, got != NULL ? got : "nothing", text);
	free(name);
	free(got);
	return same;
}

static void	/* The message's, else the service's, else 50. */
the_priority_of_the_call(void)
{
	struct given *g = given_work(FORWARDER("-q WORK,MORE"), Q("WORK") Q("MORE") Q("ANSWER"), "WORK PRIO=33\n");
	TPQCTL c;

	ask("WORK", "r", "prio");
	CU_ASSERT_TRUE(text_is("ANSWER", "33"));
	ask("MORE", "r", "prio");
	CU_ASSERT_TRUE(text_is("ANSWER", "50"));
	memset(&c, 0, sizeof c);
	c.flags = TPQPRIORITY;
	c.priority = 77;
	ask_as("WORK", "r", "prio", c);
	CU_ASSERT_TRUE(text_is("ANSWER", "77"));
	given_done(g);
}

static bool	/* qlist shows this line of the one message that comes there */
shown(struct given *g, const char *queue, const char *line)
{
	char lines[100], *out = NULL;
	bool is;

	snprintf(lines, sizeof lines, "verbose on\nqset %s\nqlist", queue);
	for (double end = now_s() + 20; now_s() < end && !has(out, "message: ");) {
		free(out);
		out = given_qmadmin(g, lines);
	}
	is = has(out, line);
	if (!is)
		fprintf(stderr, "\nno %s in\n%s\n", line, out);
	free(out);
	return is;
}

/* TPQREPLYQOS when it was given; else the policy of the reply queue in the moment of the reply, not of the request. */
static void
the_quality_of_the_answer(void)
{
	struct given *g = given_work(FORWARDER("-q WORK"), Q("WORK") Q("ANSWER"), NULL);
	TPQCTL c;

	memset(&c, 0, sizeof c);
	ask("WORK", "r", "note begun; wait go");
	CU_ASSERT_TRUE(noted(g, "begun", 1));
	free(given_qmadmin(g, "qchange -d nonpersist ANSWER none 0 0 100% 0% \"\""));
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(shown(g, "ANSWER", "delivery: nonpersistent\n"));
	CU_ASSERT_TRUE(text_is("ANSWER", ""));
	c.flags = TPQREPLYQOS;
	c.reply_qos = TPQQOSPERSISTENT;
	ask_as("WORK", "r", "", c);
	CU_ASSERT_TRUE(shown(g, "ANSWER", "delivery: persistent\n"));
	CU_ASSERT_TRUE(text_is("ANSWER", ""));
	free(given_qmadmin(g, "qchange -d persist ANSWER none 0 0 100% 0% \"\""));
	c.reply_qos = TPQQOSNONPERSISTENT;
	ask_as("WORK", "r", "", c);
	CU_ASSERT_TRUE(shown(g, "ANSWER", "delivery: nonpersistent\n"));
	given_done(g);
}

/* Of whatever type, as it is: the service gives back what it got. */
static const char echo[] =
    "#include <stdio.h>\n#include <string.h>\n#include \"atmi.h\"\n"
    "void ECHO(TPSVCINFO *m) { char type[9] = \"\", sub[17] = \"\"; FILE *f = fopen(\"types\", \"a\");\n"
    "  if (m->data != NULL) tptypes(m->data, type, sub);\n"
    "  fprintf(f, \"%s:%s %ld %s\\n\", type, sub, m->len, m->data == NULL ? \"null\" : \"data\"); fclose(f);\n"
    "  tpreturn(TPSUCCESS, 12, m->data, m->len, 0); }\n";

static void
echoes(const char *type, const char *sub, const char *bytes, long n)
{
	char *b = n > 0 ? tpalloc((char *)type, (char *)sub, n) : NULL, *back = tpalloc("CARRAY", NULL, 8), is[9] = "", is_sub[17] = "";
	long len = 0;
	double end = now_s() + 20;
	TPQCTL c;
	int rc;

	memset(&c, 0, sizeof c);
	c.flags = TPQREPLYQ;
	strcpy(c.replyqueue, "ANSWER");
	if (n > 0)
		memcpy(b, bytes, (size_t)n);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ECHO", &c, b, n, 0));
	memset(&c, 0, sizeof c);
	while ((rc = tpdequeue("QSPACE", "ANSWER", &c, &back, &len, 0)) == -1 && now_s() < end)
		nap_ms(5);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(len, n);
	CU_ASSERT_EQUAL(c.urcode, 12);
	if (n > 0) {
		CU_ASSERT_EQUAL(memcmp(back, bytes, (size_t)n), 0);
		tptypes(back, is, is_sub);
		CU_ASSERT_EQUAL(strncmp(is, type, 8), 0);
		CU_ASSERT_EQUAL(strncmp(is_sub, sub, 16), 0);
		tpfree(b);
	}
	tpfree(back);
}

static void
buffers_pass_as_they_are(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = Q("ECHO") Q("ANSWER"), .server_source = echo, .server_services = "-s ECHO",
	    .servers = FORWARDER("-q ECHO -w 2"), .device_pages = 40000, .space = "30000 20 50 50 2000 ERRQ n 16" });
	char *large = malloc(3000000), *types;

	for (int i = 0; i < 3000000; i++)
		large[i] = (char)(i * 7 + i / 256);
	echoes("CARRAY", "", "a\0b\0\0c", 6);
	echoes("X_OCTET", "", "\0\xff\0", 3);
	echoes("XML", "", "<a/>", 4);
	echoes("STRING", "", "text", 5);
	echoes("CARRAY", "kind", "sub", 3);
	echoes("CARRAY", "", "", 0);
	echoes("CARRAY", "", large, 3000000);
	types = given_read(g, "types");
	CU_ASSERT_STRING_EQUAL(types, "CARRAY: 6 data\nX_OCTET: 3 data\nXML: 4 data\nSTRING: 5 data\nCARRAY:kind 3 data\n: 0 null\nCARRAY: 3000000 data\n");
	free(types);
	free(large);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

static void	/* It waits for its service, and expires: nobody hears of it. */
an_expired_message_is_not_forwarded(void)
{
	struct given *g = given_work(FORWARDER("-q WORK"), Q("WORK") Q("ANSWER"), NULL);
	TPQCTL c;

	free(given_ok(g, NULL, "tmshutdown -y -g APP"));
	memset(&c, 0, sizeof c);
	c.flags = TPQEXPTIME_REL;
	c.exp_time = 1;
	ask_as("WORK", "gone", "note gone", c);
	CU_ASSERT_TRUE(comes_to(g, "WORK", 0));
	ask("WORK", "stays", "");
	free(given_ok(g, NULL, "tmboot -y -g APP"));
	CU_ASSERT_TRUE(next_is("ANSWER", "stays"));
	CU_ASSERT_EQUAL(notes_of(g, "gone"), 0);
	CU_ASSERT_EQUAL(depth(g, "ERRQ") + depth(g, "ANSWER"), 0);
	given_done(g);
}

/* Its time comes while TMQFORWARD sleeps for half a minute. */
static void
a_message_for_later_comes_at_its_time(void)
{
	struct given *g = given_work(FORWARDER("-q WORK -i 300"), Q("WORK") Q("ANSWER"), NULL);
	double since = now_s();
	TPQCTL c;

	memset(&c, 0, sizeof c);
	c.flags = TPQTIME_REL;
	c.deq_time = 2;
	ask_as("WORK", "later", "", c);
	ask("WORK", "now", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "now") && next_is("ANSWER", "later"));
	CU_ASSERT(now_s() - since > 0.9 && now_s() - since < 25);
	given_done(g);
}

/* 256 queues, the last one with work; names of 127 characters; -qa,b without a blank. */
static void
many_queues_and_long_names(void)
{
	char *queues, *line, name[128], n127[2][128];
	size_t at = 0, on = 0;
	struct given *g;

	CU_ASSERT_PTR_NOT_NULL_FATAL(queues = calloc(1, 40000));
	CU_ASSERT_PTR_NOT_NULL_FATAL(line = calloc(1, 4000));
	for (int i = 0; i < 2; i++) {
		memset(n127[i], 'a' + i, 127);
		n127[i][127] = '\0';
		at += (size_t)sprintf(queues + at, "qcreate %s fifo none 0 0 100%% 0%% \"\"\n", n127[i]);
	}
	on += (size_t)sprintf(line + on, "%s", "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -q");
	for (int i = 0; i < 256; i++) {
		snprintf(name, sizeof name, "%c%c", 'A' + i / 16, 'A' + i % 16);
		at += (size_t)sprintf(queues + at, "qcreate %s fifo none 0 0 100%% 0%% \"\"\n", name);
		on += (size_t)sprintf(line + on, "%s%s", i == 0 ? "" : ",", name);
	}
	on += (size_t)sprintf(line + on, " -w 3\"\nTMQFORWARD SRVGRP=QUE1 SRVID=6 CLOPT=\"-- -q%s,%s -i 0\"\n", n127[0], n127[1]);
	sprintf(queues + at, "%s", Q("ANSWER"));
	snprintf(name, sizeof name, "-s AA,PP,DO:DO");
	g = given_system(&(struct given_conf){ .queues = queues, .space = "8000 300 50 50 2000 ERRQ n 16", .server_source = given_doer,
	    .server_services = name, .servers = line, .server_params = "" });
	free(queues);
	free(line);
	ask("AA", "first", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "first"));
	ask("PP", "last", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "last"));
	ask("BB", "nobody's", "");		/* one whose service is missing does not hold up the others */
	CU_ASSERT_TRUE(logged(g, "nobody offers service BB"));
	ask("PP", "still", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "still"));
	ask(n127[1], "long", "");
	CU_ASSERT_TRUE(logged(g, n127[1]));
	CU_ASSERT_EQUAL(depth(g, n127[1]), 1);
	given_done(g);
}

/* It is told once, holds up nobody, and is served when it is there; and the same when it goes away under it. */
static void
a_queue_that_is_not_there_yet(void)
{
	struct given *g = given_work(FORWARDER("-q MORE,WORK -w 2"), Q("WORK") Q("ANSWER"), NULL);
	char *log;

	CU_ASSERT_TRUE(logged(g, "there is no queue MORE"));
	ask("WORK", "r", "");
	CU_ASSERT_TRUE(next_is("ANSWER", "r"));
	for (int i = 0; i < 2; i++) {
		free(given_qmadmin(g, Q("MORE")));
		ask("MORE", "r", "");
		CU_ASSERT_TRUE(next_is("ANSWER", "r"));
		CU_ASSERT_TRUE(comes_to(g, "MORE", 0));
		free(given_qmadmin(g, "qdestroy -f -y MORE"));
		ask("WORK", "r", "");
		CU_ASSERT_TRUE(next_is("ANSWER", "r"));
	}
	log = given_log(g);
	CU_ASSERT(count_of(log, "there is no queue MORE") <= 3);
	CU_ASSERT_FALSE(has(log, "TMQUEUE wait"));	/* each question for it is no line of TMQUEUE's */
	free(log);
	given_done(g);
}

static void	/* The retry limit is reached in the same moment: the original request is on the error queue, and no answer anywhere. */
d_and_the_last_retry(void)
{
	struct given *g = given_work(FORWARDER("-d -q WORK"), Q("WORK") Q("ANSWER") Q("FAILED"), NULL);
	TPQCTL c;
	char *text, *name;

	ask("WORK", "original", "tran; fail");
	CU_ASSERT_PTR_NOT_NULL_FATAL(name = next_name("ERRQ", 20, &c, &text));
	CU_ASSERT_STRING_EQUAL(name, "original");
	CU_ASSERT_STRING_EQUAL(text, "tran; fail");
	CU_ASSERT_TRUE((c.flags & TPQREPLYQ) != 0 && strcmp(c.replyqueue, "ANSWER") == 0);
	CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "ANSWER") + depth(g, "FAILED") + depth(g, "ERRQ"), 0);
	free(name);
	free(text);
	given_done(g);
}

static void	/* Named, and not there: the request is deleted, its answer dropped. */
d_and_a_missing_failure_queue(void)
{
	struct given *g = given_work(FORWARDER("-d -q WORK"), "qcreate WORK fifo none 3 1 100% 0% \"\"\n" Q("ANSWER"), NULL);

	ask("WORK", "r", "note called; tran; fail");
	CU_ASSERT_TRUE(noted(g, "called", 1) && comes_to(g, "WORK", 0));
	CU_ASSERT_EQUAL(notes_of(g, "called"), 1);
	CU_ASSERT_EQUAL(depth(g, "ANSWER") + depth(g, "ERRQ"), 0);
	given_done(g);
}

static void
without_an_error_queue_the_last_failure_deletes(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = Q("WORK"), .space = "4000 20 50 50 2000 NOERR n 16",
	    .server_source = given_doer, .server_services = "-s WORK:DO", .servers = FORWARDER("-q WORK") });

	put("WORK", "note called; fail");
	CU_ASSERT_TRUE(noted(g, "called", 1) && comes_to(g, "WORK", 0));
	CU_ASSERT_TRUE(logged(g, "service WORK: TPESVCFAIL"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	given_done(g);
}

/* -n: the queue manager dies between the service's work and the commit: it is done again. */
static void
with_n_a_commit_that_fails_calls_again(void)
{
	struct given *g = given_work(FORWARDER("-n -t 10 -q WORK"), Q("WORK") Q("ANSWER"), NULL);
	pid_t old;

	ask("WORK", "r", "note called; wait go");
	CU_ASSERT_TRUE(noted(g, "called", 1));
	old = given_pid(g, "TMQUEUE", 0);
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 20));
	given_write(g, "go", "x");
	CU_ASSERT_TRUE(noted(g, "called", 2));
	CU_ASSERT_TRUE(next_is("ANSWER", "r"));
	CU_ASSERT_EQUAL(depth(g, "ANSWER") + depth(g, "WORK") + depth(g, "ERRQ"), 0);
	given_done(g);
}

/* What the service did in another space is committed there later; TMQFORWARD waits for that, or does not. */
static bool
goes_on_while_the_other_space_commits(const char *cmtret)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .points = true, .resources = cmtret, .server_source = given_doer,
	    .server_services = "-s WORK:DO", .queues = Q("WORK") Q("ANSWER") Q("SOLD"), .servers = FORWARDER("-q WORK") });
	char *got;

	given_point_set(g, "QUE2", "DECIDED_RECEIVED", "stop");
	ask("WORK", "r1", "put QSPACE2 SOLD x");
	for (int i = 0; i < 4000 && !given_point_hit(g, "QUE2", "DECIDED_RECEIVED"); i++)
		nap_ms(5);
	CU_ASSERT_TRUE(given_point_hit(g, "QUE2", "DECIDED_RECEIVED"));
	ask("WORK", "r2", "note second");
	CU_ASSERT_TRUE(next_is("ANSWER", "r1"));		/* it is decided either way */
	for (double end = now_s() + 3; now_s() < end && notes_of(g, "second") == 0;)
		nap_ms(20);
	got = notes_of(g, "second") > 0 ? "went on" : NULL;
	given_point_clear(g, "QUE2");
	for (pid_t pid = 0; (pid = given_pid_as(g, 102, 1)) > 0 && process_state(pid) == 'T';) {
		kill(pid, SIGCONT);
		nap_ms(20);
	}
	CU_ASSERT_TRUE(next_is("ANSWER", "r2"));
	given_done(g);
	return got != NULL;
}

static void
commit_returns_as_cmtret_says(void)
{
	CU_ASSERT_TRUE(goes_on_while_the_other_space_commits("CMTRET\tLOGGED\n"));
	CU_ASSERT_FALSE(goes_on_while_the_other_space_commits("CMTRET\tCOMPLETE\n"));
}

/* A group that is none of queues is refused with the file; one whose space is not there, when it boots. */
static void
groups_that_it_does_not_boot_in(void)
{
	static const struct { const char *group, *line, *why; } wrong[] = {
		{ "OTHER LMID=SITE1 GRPNO=50\n", "TMQFORWARD SRVGRP=OTHER SRVID=5 CLOPT=\"-- -q WORK\"\n", "TMQFORWARD needs a group with TMSNAME=TMS_QM" },
		{ "OTHER LMID=SITE1 GRPNO=50 TMSNAME=TMS_QM\n", "TMQFORWARD SRVGRP=OTHER SRVID=5 CLOPT=\"-- -q WORK\"\n", "OPENINFO" },
		{ "OTHER LMID=SITE1 GRPNO=50 TMSNAME=TMS_QM OPENINFO=\"TUXEDO/QM:/nowhere/QUE:QSPACE\"\n",
		  "TMQFORWARD SRVGRP=OTHER SRVID=5 CLOPT=\"-- -q WORK\"\n", "/nowhere/QUE" },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct given *g = given_system(&(struct given_conf){ .queues = Q("WORK"), .groups = wrong[i].group, .servers = wrong[i].line,
		    .only_files = true });
		struct ran r = given_run(g, NULL, "tmloadcf -y ubb && tmboot -y");
		char *log = given_log(g);

		if (!has(r.err, wrong[i].why) && !has(log, wrong[i].why))
			fprintf(stderr, "\n%s: not in\n%s%s\n", wrong[i].why, r.err, log);
		CU_ASSERT_TRUE(has(r.err, wrong[i].why) || has(log, wrong[i].why));
		CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
		free(log);
		ran_free(&r);
		given_done(g);
	}
}

/* A system whose TMQFORWARD is loaded with a library that makes something fail; NULL: there is none. */
static struct given *
given_faults(char *preload, size_t size)
{
	char *slash, line[PATH_MAX];
	struct given *g;

	if (!failing_writes_are_there(preload, size)) {
		printf("(not with a sanitizer) ");
		return NULL;
	}
	if ((slash = strrchr(preload, '/')) != NULL)
		snprintf(slash, size - (size_t)(slash - preload), "/fault_forward.so");
	g = given_directory();
	snprintf(line, sizeof line, "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -q WORK -w 5\" ENVFILE=\"%s/envfile\"\n", given_dir(g));
	return given_system_in(g, &(struct given_conf){ .queues = "qcreate WORK fifo none 1 0 100% 0% \"\"\n" Q("ANSWER"), .servers = line,
	    .server_source = given_doer, .server_services = "-s WORK:DO", .not_booted = true });
}

/* No memory for its buffers (1600), no threads (1601): it does not boot, and says so. */
static void
without_memory_it_does_not_boot(void)
{
	static const struct { const char *what, *line; } wants[] = { { "malloc", "QM_CAT:1600: ERROR" }, { "pthread_create", "QM_CAT:1601: ERROR" } };
	char preload[PATH_MAX];
	struct given *g = given_faults(preload, sizeof preload);

	for (size_t i = 0; g != NULL && i < 2; i++) {
		struct ran r;

		given_write(g, "envfile", "FAULT_FORWARD=%s\nLD_PRELOAD=%s\n", wants[i].what, preload);
		r = given_run(g, NULL, "tmboot -y");
		CU_ASSERT_TRUE(given_logged(g, wants[i].line));
		CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
		ran_free(&r);
	}
	if (g != NULL)
		given_done(g);
}

/* A message (2079), or an answer (2080), that cannot be decoded is a failure that counts. */
static void
what_cannot_be_decoded_ends_on_the_error_queue(void)
{
	static const struct { const char *what, *line; int calls; } wants[] = { { "dequeue", "QM_CAT:2079: ERROR", 0 }, { "call", "QM_CAT:2080: ERROR", 2 } };
	char preload[PATH_MAX];
	struct given *g = given_faults(preload, sizeof preload);

	for (size_t i = 0; g != NULL && i < 2; i++) {
		given_write(g, "envfile", "FAULT_FORWARD=%s\nLD_PRELOAD=%s\n", wants[i].what, preload);
		free(given_ok(g, NULL, "tmboot -y"));
		ask("WORK", "r", "note called");
		CU_ASSERT_TRUE(comes_to(g, "ERRQ", 1));
		CU_ASSERT_TRUE(given_logged(g, wants[i].line));
		CU_ASSERT_TRUE(shown(g, "ERRQ", "failed deliveries: 2\n") && shown(g, "ERRQ", "tperrno: TPEOTYPE (18)\n"));
		CU_ASSERT_TRUE(next_is("ERRQ", "r"));
		CU_ASSERT_EQUAL(depth(g, "WORK") + depth(g, "ANSWER"), 0);
		CU_ASSERT_EQUAL(notes_of(g, "called"), wants[i].calls);
		free(given_ok(g, NULL, "tmshutdown -y -s TMQFORWARD"));
	}
	if (g != NULL)
		given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_priority_of_the_call), UNIT(the_quality_of_the_answer), UNIT(buffers_pass_as_they_are),
		UNIT(an_expired_message_is_not_forwarded), UNIT(a_message_for_later_comes_at_its_time), UNIT(many_queues_and_long_names),
		UNIT(a_queue_that_is_not_there_yet), UNIT(d_and_the_last_retry), UNIT(d_and_a_missing_failure_queue),
		UNIT(without_an_error_queue_the_last_failure_deletes), UNIT(with_n_a_commit_that_fails_calls_again),
		UNIT(commit_returns_as_cmtret_says), UNIT(groups_that_it_does_not_boot_in), UNIT(without_memory_it_does_not_boot),
		UNIT(what_cannot_be_decoded_ends_on_the_error_queue),
	};

	return unit_run("forwarding, row by row", tests, UNIT_COUNT(tests));
}
