/*
 * story_reports - what users of other systems ran into, as far as it is about clients and their sockets; named after the report.
 *
 * R06 and R15 are in story_flags.  R40 and R43 have a twin in test_common_link, on the link alone.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

#define REFUSED(call, error) do { CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, error); } while (0)

static struct given *
given_room(const char *resources)
{
	return given_system(&(struct given_conf){ .resources = resources, .space = "19000 20 50 50 2000 ERRQ n 16",
	    .queues = "qcreate ROOM fifo none 5 0 100% 0% \"\"\nqcreate OTHER fifo none 5 0 100% 0% \"\"\n" });
}

static bool
has_line(void *path)
{
	char *text = given_read(given_standing(), path);
	bool yes = text != NULL && strchr(text, '\n') != NULL;

	free(text);
	return yes;
}

/* --- R08: a queue manager dies while qmadmin is open --- */

struct session { struct given *g; FILE *to; int asked; };

static bool
has_answered(void *arg)		/* each question ends with an echo of its number */
{
	struct session *s = arg;
	char *text = given_read(s->g, "session.out"), mark[32];
	bool yes;

	snprintf(mark, sizeof mark, "answered %d", s->asked);
	yes = has(text, mark);
	free(text);
	return yes;
}

static void
ask_qmadmin(struct session *s, const char *line)
{
	fprintf(s->to, "%s\n!echo answered %d\n", line, ++s->asked);
	fflush(s->to);
}

static void
r08_an_open_qmadmin_goes_on_when_tmqueue_dies(void)
{
	struct given *g = given_system(&(struct given_conf){ .tmqueue =
	    "RESTART=Y GRACE=0 MAXGEN=200 CLOPT=\"-s QSPACE:TMQUEUE\"", .space = "19000 20 50 50 2000 ERRQ n 16",
	    .queues = "qcreate ROOM fifo none 5 0 100% 0% \"\"\n" });
	struct session s = { .g = g };
	char cmd[400], *text;

	for (int i = 0; i < 200; i++)
		put("ROOM", "one of many");
	snprintf(cmd, sizeof cmd, "cd %s && exec qmadmin >session.out 2>&1", given_dir(g));
	CU_ASSERT_PTR_NOT_NULL_FATAL(s.to = popen(cmd, "w"));
	ask_qmadmin(&s, "qopen QSPACE\nqset ROOM\nqlist");
	CU_ASSERT_TRUE(wait_until(has_answered, &s, 20));
	for (int i = 0; i < 6; i++) {
		pid_t pid = given_pid(g, "TMQUEUE", 0);

		for (int k = 0; k < 3; k++)	/* it may be in any of these, or between them */
			ask_qmadmin(&s, "qlist");
		nap_ms(i * 7);
		kill(pid, SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", pid, 20));
		text = NULL;
		for (double end = now_s() + 20; text == NULL && now_s() < end; nap_ms(5)) {	/* and that soon */
			TPQCTL c = { 0 };
			char *data = tpalloc("STRING", NULL, 8);

			if (tpenqueue("QSPACE", "ROOM", &c, data, 0, 0) != -1)
				text = take("ROOM");
			tpfree(data);
		}
		CU_ASSERT_PTR_NOT_NULL(text);
		free(text);
		ask_qmadmin(&s, "qinfo ROOM");
		CU_ASSERT_TRUE(wait_until(has_answered, &s, 30));
	}
	fprintf(s.to, "q\n");
	CU_ASSERT_EQUAL(pclose(s.to), 0);
	text = given_qmadmin(g, "qinfo ROOM");
	CU_ASSERT_TRUE(has(text, "messages: 2"));
	free(text);
	given_done(g);
}

/* --- R39: the daemons are down, a client enqueues and leaves --- */

static const char leaver[] =
    "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n#include \"atmi.h\"\n"
    "static char *data;\nstatic double began;\n"
    "static double now(void)\n{\n\tstruct timespec t;\n\tclock_gettime(CLOCK_MONOTONIC, &t);\n\treturn t.tv_sec + t.tv_nsec / 1e9;\n}\n"
    "static void leave(void)\n{\n\tbegan = now();\n\tif (tpterm() == -1)\n\t\t_Exit(3);\n\tif (now() - began >= 3)\n\t\t_Exit(4);\n}\n"
    "static void *in_thread(void *arg) { leave(); return arg; }\n"
    "int main(int argc, char **argv)\n{\n\tpthread_t t;\n\tchar line[10];\n"
    "\tif (tpinit(NULL) == -1)\n\t\treturn 1;\n\tdata = tpalloc(\"STRING\", NULL, 100);\n\tstrcpy(data, \"x\");\n"
    "\tif (strcmp(argv[1], \"thread\") == 0 && tpbegin(600, 0) == -1)\n\t\treturn 7;\n"
    "\tif (tpenqueue(\"QSPACE\", \"ROOM\", NULL, data, 0, 0) == -1)\n\t\treturn 2;\n"
    "\tprintf(\"joined\\n\");\n\tfflush(stdout);\n\tif (fgets(line, sizeof line, stdin) == NULL)\n\t\treturn 5;\n"
    "\ttpsblktime(1, TPBLK_ALL);\n"
    "\tif (tpgetlev() == 0 && tpenqueue(\"QSPACE\", \"ROOM\", NULL, data, 0, 0) != -1)\n\t\treturn 6;\n"
    "\tif (strcmp(argv[1], \"thread\") == 0) {\n\t\tpthread_create(&t, NULL, in_thread, NULL);\n\t\tpthread_join(t, NULL);\n"
    "\t} else if (strcmp(argv[1], \"atexit\") == 0)\n\t\tatexit(leave);\n\telse\n\t\tleave();\n\texit(0);\n}\n";

static void
r39_leaving_does_not_wait_for_daemons_that_are_down(void)
{
	static const char *ways[] = { "term", "atexit", "thread" };
	struct given *g = given_room(NULL);
	char cmd[400], name[40];
	FILE *client[3];
	int i;

	given_write(g, "leaver.c", "%s", leaver);
	free(given_ok(g, NULL, "buildclient -o leaver -f leaver.c -l -lpthread"));
	for (i = 0; i < 3; i++) {
		snprintf(cmd, sizeof cmd, "cd '%s' && exec ./leaver %s >%s.out 2>&1", given_dir(g), ways[i], ways[i]);
		client[i] = popen(cmd, "w");
		CU_ASSERT_PTR_NOT_NULL_FATAL(client[i]);
		snprintf(name, sizeof name, "%s.out", ways[i]);
		CU_ASSERT_TRUE(wait_until(has_line, name, 20));
	}
	given_kill(g, "BBL", SIGKILL);				/* first, so that nobody starts the other again */
	given_kill(g, "TMQUEUE", SIGKILL);
	for (i = 0; i < 3; i++) {
		fputs("go\n", client[i]);
		fflush(client[i]);
	}
	for (i = 0; i < 3; i++) {
		int status = pclose(client[i]);

		if (status != 0)
			fprintf(stderr, "\n  %s: status %d, exit %d\n", ways[i], status, WEXITSTATUS(status));
		CU_ASSERT_EQUAL(status, 0);
	}
	given_boot(g);
	given_done(g);
}

/* --- R40: large replies to readers that are slow, or never read --- */

static const char reader[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"atmi.h\"\n"
    "int main(int argc, char **argv)\n{\n\tTPQCTL ctl;\n\tlong len, i, bad = 0;\n\tchar *data = tpalloc(\"CARRAY\", NULL, 10);\n"
    "\tmemset(&ctl, 0, sizeof ctl);\n\tmemset(ctl.corrid, atoi(argv[1]), TMCORRIDLEN);\n"
    "\tctl.flags = argc > 2 ? TPQPEEK : TPQWAIT | TPQGETBYCORRID;\n\tif (tpinit(NULL) == -1)\n\t\treturn 1;\n"
    "\tprintf(\"waiting\\n\");\n\tfflush(stdout);\n"
    "\tif (tpdequeue(\"QSPACE\", \"ROOM\", &ctl, &data, &len, TPNOTIME) == -1)\n\t\treturn 2;\n"
    "\tfor (i = 0; i < len; i++)\n\t\tbad += data[i] != (char)atoi(argv[1]);\n"
    "\tprintf(\"%ld bytes, %ld wrong\\n\", len, bad);\n\treturn bad != 0;\n}\n";

#define READERS 9
#define SIZE (900L * 1024)

static void
given_reader(struct given *g)
{
	given_write(g, "reader.c", "%s", reader);
	free(given_ok(g, NULL, "buildclient -o reader -f reader.c"));
}

static bool
got_it(void *name)
{
	char *text = given_read(given_standing(), name), want[60];
	bool yes;

	snprintf(want, sizeof want, "%ld bytes, 0 wrong", SIZE);
	yes = has(text, want);
	free(text);
	return yes;
}

static void
r40_no_reply_to_a_slow_reader_is_lost_or_doubled(void)
{
	struct given *g = given_room(NULL);
	char *data = tpalloc("CARRAY", NULL, SIZE), name[READERS][20], *out;
	TPQCTL ctl = { .flags = TPQCORRID };
	pid_t pid[READERS];
	int i;

	given_reader(g);
	for (i = 0; i < READERS; i++) {
		snprintf(name[i], sizeof name[i], "r%d.out", i + 1);
		out = given_ok(g, NULL, "./reader %d >%s 2>&1 </dev/null & echo $!", i + 1, name[i]);
		pid[i] = (pid_t)atol(out);
		free(out);
		CU_ASSERT_TRUE(wait_until(has_line, name[i], 20));
		nap_ms(50);
		if (i % 2 == 0)				/* slow: reads nothing for now */
			kill(pid[i], SIGSTOP);
	}
	for (i = 0; i < READERS; i++) {
		memset(ctl.corrid, i + 1, TMCORRIDLEN);
		memset(data, i + 1, (size_t)SIZE);
		GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", &ctl, data, SIZE, 0));
	}
	for (i = 1; i < READERS; i += 2)
		CU_ASSERT_TRUE(wait_until(got_it, name[i], 20));
	put("OTHER", "others are served");
	free(take("OTHER"));
	for (i = 2; i < READERS; i += 2)		/* all but the first, which never reads again */
		kill(pid[i], SIGCONT);
	for (i = 2; i < READERS; i += 2)
		CU_ASSERT_TRUE(wait_until(got_it, name[i], 30));
	kill(pid[0], SIGKILL);
	for (i = 0; i < READERS; i++) {
		char *text = given_read(g, name[i]);

		CU_ASSERT_EQUAL(count_of(text, "bytes"), i > 0);
		free(text);
	}
	for (double end = now_s() + 10; !process_gone(pid[0]) && now_s() < end;)
		nap_ms(5);
	CU_ASSERT_TRUE(depth(g, "ROOM") <= 1);		/* the first one's, when it had not asked before it was stopped */
	tpfree(data);
	given_done(g);
}

static void
r40_two_hundred_read_a_megabyte_each(void)
{
	const long size = 1024 * 1024;
	struct given *g = given_room("");
	char *data = tpalloc("CARRAY", NULL, size), *out;

	given_reader(g);
	memset(data, 7, (size_t)size);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", NULL, data, size, 0));
	/* A few at a time are stopped in the middle. */
	out = given_ok(g, NULL, "for i in $(seq 190); do ./reader 7 peek >p$i.out 2>&1 & p=$!; [ $((i %% 4)) = 0 ] && kill -STOP $p && stopped=\"$stopped $p\"; done\n"
	    "sleep 1; kill -CONT $stopped; wait; cat p*.out | grep -c '^%ld bytes, 0 wrong'", size);
	CU_ASSERT_EQUAL(atoi(out), 190);
	free(out);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 1);
	tpfree(data);
	given_done(g);
}

/* --- R43: a long APPDIR; the mode of sockets --- */

static void
sockets_have_mode(const struct given *g, const char *mode)
{
	char *out = given_ok(g, NULL, "find '%s' -type s ! -perm %s | wc -l; find '%s' -type s | wc -l", given_rundir(g), mode, given_rundir(g));
	int wrong = -1, all = 0;

	CU_ASSERT_EQUAL(sscanf(out, "%d %d", &wrong, &all), 2);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(all >= 2);
	free(out);
}

static void
r43_an_appdir_of_150_characters_works(void)
{
	const char *was = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
	char *before = strdup(was), dir[400];
	struct given *g;

	snprintf(dir, sizeof dir, "%s/%0*d", before, strlen(before) < 140 ? 140 - (int)strlen(before) : 1, 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
	setenv("TMPDIR", dir, 1);
	g = given_room(NULL);
	CU_ASSERT_TRUE(strlen(given_dir(g)) >= 150);
	CU_ASSERT_TRUE(strlen(given_rundir(g)) < 80);
	put("ROOM", "far away");
	free(take("ROOM"));
	given_done(g);
	setenv("TMPDIR", before, 1);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
	free(before);
}

static void
r43_sockets_have_the_mode_of_perm(void)
{
	struct given *g = given_room("PERM\t0600");

	sockets_have_mode(g, "0600");
	given_done(g);
	g = given_room("PERM\t0660");
	sockets_have_mode(g, "0660");
	given_done(g);
}

/* --- R46: after a wait that timed out the context works, and a late reply is nobody's --- */

static void
r46_a_late_reply_is_not_given_to_the_next_call(void)
{
	struct given *g = given_room(NULL);
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 64), *text;
	long len;

	GIVEN_CALL_OK(tpsblktime(200, TPBLK_NEXT | TPBLK_MILLISECOND));
	REFUSED(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, 0), TPETIME);
	put("ROOM", "on the same context");
	text = take("ROOM");
	CU_ASSERT_TRUE(text != NULL && strcmp(text, "on the same context") == 0);
	free(text);

	put("ROOM", "late");
	kill(given_pid(g, "TMQUEUE", 0), SIGSTOP);
	GIVEN_CALL_OK(tpsblktime(200, TPBLK_NEXT | TPBLK_MILLISECOND));
	ctl.flags = TPNOFLAGS;
	REFUSED(tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, 0), TPETIME);
	kill(given_pid(g, "TMQUEUE", 0), SIGCONT);
	put("OTHER", "mine");					/* its answer is not that of the dequeue */
	ctl.flags = TPNOFLAGS;
	GIVEN_CALL_OK(tpdequeue("QSPACE", "OTHER", &ctl, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "mine");
	CU_ASSERT_TRUE(depth(g, "ROOM") <= 1);
	tpfree(data);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(r08_an_open_qmadmin_goes_on_when_tmqueue_dies),
		UNIT(r39_leaving_does_not_wait_for_daemons_that_are_down),
		UNIT(r40_no_reply_to_a_slow_reader_is_lost_or_doubled),
		UNIT_LONG(r40_two_hundred_read_a_megabyte_each),
		UNIT(r43_an_appdir_of_150_characters_works),
		UNIT(r43_sockets_have_the_mode_of_perm),
		UNIT(r46_a_late_reply_is_not_given_to_the_next_call),
	};

	return unit_run("reports of users", tests, UNIT_COUNT(tests));
}
