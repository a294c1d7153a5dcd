/*
 * story_contexts - threads, contexts, forks: who shares what, and who is left alone.
 *
 * One system serves all the tests of this file; each leaves the queues empty and nothing joined.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

static struct given *g;

static void
given_rooms(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space = "4000 20 60 50 2000 ERRQ n 16",
		    .queues = "qcreate ROOM fifo none 5 0 100% 0% \"\"\nqcreate OTHER fifo none 5 0 100% 0% \"\"\n" });
}

#define REFUSED(call, error) do { CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, error); } while (0)
#define EXPECT(queue, want) do { \
	char *expect_got = take(queue); \
	CU_ASSERT_TRUE(expect_got != NULL && strcmp(expect_got, (want)) == 0); \
	free(expect_got); \
} while (0)

static TPCONTEXT_T
join_as_one_of_many(void)
{
	TPINIT init = { .flags = TPMULTICONTEXTS };
	TPCONTEXT_T id = 0;

	GIVEN_CALL_OK(tpinit(&init));
	GIVEN_CALL_OK(tpgetctxt(&id, 0));
	return id;
}

static TPCONTEXT_T
where_am_i(void)
{
	TPCONTEXT_T id = 77;

	GIVEN_CALL_OK(tpgetctxt(&id, 0));
	return id;
}

/* --- a thread that waits for a message --- */

struct waiter {
	pthread_t thread;
	TPCONTEXT_T context;		/* to wait in; TPSINGLECONTEXT: the only one */
	char text[64];			/* what came */
	int error;			/* tperrno */
	atomic_long tid;		/* set when it is about to wait */
	atomic_int done;
};

static void *
wait_in_a_thread(void *arg)
{
	struct waiter *w = arg;
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	if (w->context != TPSINGLECONTEXT)
		GIVEN_CALL_OK(tpsetctxt(w->context, 0));
	w->tid = gettid();
	if (tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME) == -1)
		w->error = tperrno;
	else
		snprintf(w->text, sizeof w->text, "%s", data);
	w->done = 1;
	tpfree(data);
	return NULL;
}

/* A thread or process that sleeps each time one looks: it has sent what it had to send, and waits. */
struct sleeper { long pid, tid; int seen; };

static bool
sleeps(void *arg)
{
	struct sleeper *s = arg;
	char path[80], text[400] = "", *at;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", s->pid, s->tid);
	if ((f = fopen(path, "r")) != NULL) {
		if (fgets(text, sizeof text, f) == NULL)
			text[0] = '\0';
		fclose(f);
	}
	at = strrchr(text, ')');
	s->seen = at != NULL && at[1] == ' ' && at[2] == 'S' ? s->seen + 1 : 0;
	return s->seen >= 4;
}

static void
start_waiting(struct waiter *w, TPCONTEXT_T context)
{
	struct sleeper s = { .pid = getpid() };

	memset(w, 0, sizeof *w);
	w->context = context;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_in_a_thread, w), 0);
	while (w->tid == 0)
		nap_ms(2);
	s.tid = w->tid;
	CU_ASSERT_TRUE(wait_until(sleeps, &s, 20));
}

/* --- one context, many threads --- */

/* The message that ends the wait comes from another thread of the same context. */
static void
threads_of_one_context_work_while_one_waits(void)
{
	struct waiter w;

	given_rooms();
	GIVEN_CALL_OK(tpinit(NULL));
	CU_ASSERT_EQUAL(where_am_i(), TPSINGLECONTEXT);
	start_waiting(&w, TPSINGLECONTEXT);
	put("OTHER", "meanwhile");
	EXPECT("OTHER", "meanwhile");
	CU_ASSERT_EQUAL(w.done, 0);
	put("ROOM", "from beside you");
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "from beside you");
	GIVEN_CALL_OK(tpterm());
}

#define THREADS 6
#define ROUNDS 20

static void *
talk_to_oneself(void *arg)
{
	char me = *(char *)arg, *data = tpalloc("STRING", NULL, 64), want[64];
	long wrong = 0, len;
	TPQCTL ctl;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		memset(&ctl, 0, sizeof ctl);
		ctl.flags = TPQCORRID;
		memset(ctl.corrid, me, TMCORRIDLEN);
		ctl.urcode = i;
		snprintf(want, sizeof want, "%c says %d", me, i);
		strcpy(data, want);
		wrong += tpenqueue("QSPACE", "ROOM", &ctl, data, 0, 0) == -1;
		ctl.flags = TPQGETBYCORRID | TPQWAIT;
		data[0] = '\0';
		wrong += tpdequeue("QSPACE", "ROOM", &ctl, &data, &len, TPNOTIME) == -1 || strcmp(data, want) != 0 || ctl.urcode != i;
	}
	tpfree(data);
	return (void *)wrong;
}

static void
each_thread_gets_its_own_reply(void)
{
	pthread_t thread[THREADS];
	char name[THREADS];
	void *wrong;
	int i;

	given_rooms();
	GIVEN_CALL_OK(tpinit(NULL));
	for (i = 0; i < THREADS; i++) {
		name[i] = (char)('a' + i);
		pthread_create(&thread[i], NULL, talk_to_oneself, &name[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		CU_ASSERT_PTR_NULL(wrong);
	}
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	GIVEN_CALL_OK(tpterm());
}

static void *
put_five(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 5; i++)
		put("ROOM", "one of twenty");
	return NULL;
}

static void
four_threads_put(void)
{
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, put_five, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void
threads_of_one_context_share_its_transaction(void)
{
	int i;

	given_rooms();
	GIVEN_CALL_OK(tpinit(NULL));
	GIVEN_CALL_OK(tpbegin(60, 0));
	four_threads_put();
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	GIVEN_CALL_OK(tpbegin(60, 0));
	four_threads_put();
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 20);
	for (i = 0; i < 20; i++)
		EXPECT("ROOM", "one of twenty");
	GIVEN_CALL_OK(tpterm());
}

static void *
commit_in_a_thread(void *arg)
{
	struct waiter *w = arg;
	long rc = tpcommit(0);

	return (void *)(rc == -1 ? -1L : w->done ? 0L : 1L);	/* 1: it did not wait for what the transaction had under way */
}

static void
an_end_of_the_transaction_waits_for_what_it_has_under_way(void)
{
	struct waiter w;
	pthread_t thread;
	char *data = tpalloc("STRING", NULL, 64);
	void *rc;

	given_rooms();
	GIVEN_CALL_OK(tpinit(NULL));
	GIVEN_CALL_OK(tpbegin(60, 0));
	start_waiting(&w, TPSINGLECONTEXT);
	pthread_create(&thread, NULL, commit_in_a_thread, &w);
	strcpy(data, "the last one");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ROOM", NULL, data, 0, TPNOTRAN));
	pthread_join(thread, &rc);
	pthread_join(w.thread, NULL);
	CU_ASSERT_PTR_NULL(rc);
	CU_ASSERT_STRING_EQUAL(w.text, "the last one");
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	tpfree(data);
	GIVEN_CALL_OK(tpterm());
}

/* --- many contexts --- */

static void
contexts_of_one_thread_have_transactions_side_by_side(void)
{
	TPCONTEXT_T id[3];
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	int i, k;

	given_rooms();
	for (i = 0; i < 3; i++) {
		id[i] = join_as_one_of_many();
		GIVEN_CALL_OK(tpbegin(60, 0));
	}
	CU_ASSERT_TRUE(id[0] > 0 && id[1] > 0 && id[2] > 0);
	CU_ASSERT_TRUE(id[0] != id[1] && id[1] != id[2] && id[0] != id[2]);
	for (k = 0; k < 2; k++)
		for (i = 0; i < 3; i++) {
			GIVEN_CALL_OK(tpsetctxt(id[i], 0));
			CU_ASSERT_EQUAL(where_am_i(), id[i]);
			snprintf(data, 64, "context %d, message %d", i, k);
			GIVEN_CALL_OK(tpenqueue("QSPACE", i == 2 ? "OTHER" : "ROOM", NULL, data, 0, 0));
		}
	GIVEN_CALL_OK(tpsetctxt(id[1], 0));
	GIVEN_CALL_OK(tpabort(0));
	GIVEN_CALL_OK(tpsetctxt(id[0], 0));
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpsetctxt(id[1], 0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	EXPECT("ROOM", "context 0, message 0");
	EXPECT("ROOM", "context 0, message 1");
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "OTHER", NULL, &data, &len, 0), -1);	/* of the third, which is still open */
	CU_ASSERT_EQUAL(take_diagnostic("ROOM"), QMENOMSG);
	GIVEN_CALL_OK(tpsetctxt(id[2], 0));
	GIVEN_CALL_OK(tpcommit(0));
	EXPECT("OTHER", "context 2, message 0");
	EXPECT("OTHER", "context 2, message 1");
	for (i = 0; i < 3; i++) {
		GIVEN_CALL_OK(tpsetctxt(id[i], 0));
		GIVEN_CALL_OK(tpterm());
	}
	tpfree(data);
}

static void *
leave_it(void *arg)
{
	GIVEN_CALL_OK(tpsetctxt(*(TPCONTEXT_T *)arg, 0));
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_EQUAL(where_am_i(), TPNULLCONTEXT);
	return NULL;
}

static void
call_is_out_of_place(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	REFUSED(tpenqueue("QSPACE", "ROOM", NULL, data, 0, 0), TPEPROTO);
	REFUSED(tpdequeue("QSPACE", "ROOM", NULL, &data, &len, 0), TPEPROTO);
	REFUSED(tpbegin(10, 0), TPEPROTO);
	REFUSED(tpsprio(10, 0), TPEPROTO);
	tpfree(data);
}

static void
a_context_is_none_one_or_gone(void)
{
	TPINIT single = { .flags = 0 };
	TPCONTEXT_T first, second;
	pthread_t thread;

	given_rooms();
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_EQUAL(where_am_i(), TPNULLCONTEXT);
	REFUSED(tpsetctxt(1, 0), TPENOENT);
	first = join_as_one_of_many();
	REFUSED(tpinit(&single), TPEPROTO);
	REFUSED(tpinit(NULL), TPEPROTO);
	REFUSED(tpgetctxt(NULL, 0), TPEINVAL);
	REFUSED(tpgetctxt(&second, 1), TPEINVAL);
	REFUSED(tpsetctxt(first, 1), TPEINVAL);
	REFUSED(tpsetctxt(TPINVALIDCONTEXT, 0), TPEINVAL);
	REFUSED(tpsetctxt(TPSINGLECONTEXT, 0), TPEPROTO);
	REFUSED(tpsetctxt(first + 1000, 0), TPENOENT);
	CU_ASSERT_EQUAL(where_am_i(), first);			/* what was refused changed nothing */

	GIVEN_CALL_OK(tpsetctxt(TPNULLCONTEXT, 0));
	CU_ASSERT_EQUAL(where_am_i(), TPNULLCONTEXT);
	call_is_out_of_place();
	second = join_as_one_of_many();
	pthread_create(&thread, NULL, leave_it, &second);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(where_am_i(), TPINVALIDCONTEXT);
	call_is_out_of_place();

	pthread_create(&thread, NULL, leave_it, &first);	/* the last one: still, nothing joins by itself */
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(where_am_i(), TPINVALIDCONTEXT);
	call_is_out_of_place();
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_EQUAL(where_am_i(), TPNULLCONTEXT);
	GIVEN_CALL_OK(tpinit(NULL));
	REFUSED(tpsetctxt(TPNULLCONTEXT, 0), TPEPROTO);
	REFUSED(tpsetctxt(1, 0), TPEPROTO);
	GIVEN_CALL_OK(tpsetctxt(TPSINGLECONTEXT, 0));
	CU_ASSERT_EQUAL(where_am_i(), TPSINGLECONTEXT);
	GIVEN_CALL_OK(tpterm());
}

static void
a_context_in_which_another_thread_waits_cannot_be_left(void)
{
	TPCONTEXT_T id;
	struct waiter w;

	given_rooms();
	id = join_as_one_of_many();
	start_waiting(&w, id);
	REFUSED(tpterm(), TPEPROTO);
	CU_ASSERT_EQUAL(w.done, 0);
	put("ROOM", "and it works on");
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "and it works on");
	GIVEN_CALL_OK(tpterm());
}

static void *
begin_and_die(void *arg)
{
	GIVEN_CALL_OK(tpsetctxt(*(TPCONTEXT_T *)arg, 0));
	GIVEN_CALL_OK(tpbegin(60, 0));
	put("ROOM", "my last will");
	pthread_exit(NULL);
}

/* Neither a thread that ends nor one that is cancelled takes its context with it. */
static void
a_context_outlives_its_threads(void)
{
	TPCONTEXT_T id;
	struct waiter w;
	pthread_t thread;

	given_rooms();
	id = join_as_one_of_many();
	pthread_create(&thread, NULL, begin_and_die, &id);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(tpcommit(0));
	EXPECT("ROOM", "my last will");

	start_waiting(&w, id);
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	put("OTHER", "not in the way");
	EXPECT("OTHER", "not in the way");
	put("ROOM", "not lost");
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "not lost");	/* the call was finished, and the thread ends after it */
	GIVEN_CALL_OK(tpterm());
}

/* --- forks --- */

static int
child_says(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void
a_child_is_a_client_of_its_own_while_its_parent_waits(void)
{
	struct waiter w;
	pid_t pid;

	given_rooms();
	GIVEN_CALL_OK(tpinit(NULL));
	start_waiting(&w, TPSINGLECONTEXT);
	fflush(NULL);
	if ((pid = fork()) == 0) {
		char *text;

		if (where_am_i() != TPNULLCONTEXT || tpgetlev() != 0)
			_exit(1);
		put("OTHER", "from the child");
		if ((text = take("OTHER")) == NULL || strcmp(text, "from the child") != 0)
			_exit(2);
		if (tpgetlev() != 0 || tpterm() != 0)
			_exit(3);
		put("ROOM", "for my parent");		/* joins again */
		_exit(tpterm() == 0 ? 0 : 4);
	}
	CU_ASSERT_EQUAL(child_says(pid), 0);
	pthread_join(w.thread, NULL);
	CU_ASSERT_STRING_EQUAL(w.text, "for my parent");
	put("OTHER", "parent");
	EXPECT("OTHER", "parent");
	GIVEN_CALL_OK(tpterm());
}

/* Built as a program of its own, for its exit() is to be a real one. */
static const char family[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n#include \"atmi.h\"\n"
    "static char *data;\n"
    "static int put(const char *text) { strcpy(data, text); return tpenqueue(\"QSPACE\", \"ROOM\", NULL, data, 0, 0); }\n"
    "int main(int argc, char **argv)\n{\n"
    "\tlong len;\n\tint status = -1;\n\tpid_t pid;\n\tFILE *p;\n\tchar line[200];\n\tTPQCTL ctl = { .flags = TPQWAIT };\n"
    "\tif (tpinit(NULL) == -1)\n\t\treturn 10;\n"
    "\tdata = tpalloc(\"STRING\", NULL, 100);\n"
    "\tif (argc > 1 && strcmp(argv[1], \"orphan\") == 0) {\t\t/* waits, and leaves a child that outlives it */\n"
    "\t\tif (put(\"connected\") == -1 || tpdequeue(\"QSPACE\", \"ROOM\", NULL, &data, &len, 0) == -1)\n\t\t\treturn 11;\n"
    "\t\tif ((pid = fork()) == 0) {\n\t\t\tfor (;;)\n\t\t\t\tpause();\n\t\t}\n"
    "\t\tprintf(\"%ld waiting\\n\", (long)pid);\n\t\tfflush(stdout);\n"
    "\t\treturn tpdequeue(\"QSPACE\", \"ROOM\", &ctl, &data, &len, TPNOTIME) == -1;\n\t}\n"
    "\tif (tpbegin(60, 0) == -1 || put(\"in the transaction\") == -1)\n\t\treturn 12;\n"
    "\tif ((pid = fork()) == 0) {\n"
    "\t\tif (argc > 1 && strcmp(argv[1], \"works\") == 0 && (put(\"from the child\") == -1 || tpgetlev() != 0))\n\t\t\texit(13);\n"
    "\t\texit(0);\n\t}\n"
    "\tif (waitpid(pid, &status, 0) != pid || status != 0)\n\t\treturn 14;\n"
    "\tif (system(\"true\") != 0 || (p = popen(\"ls -l /proc/self/fd | grep -c 'socket:'\", \"r\")) == NULL ||\n"
    "\t    fgets(line, sizeof line, p) == NULL || atoi(line) != 0)\n\t\treturn 15;\t/* no connection of ours goes to who is exec'ed */\n"
    "\tpclose(p);\n"
    "\tif ((pid = vfork()) == 0) {\n\t\texecl(\"/bin/true\", \"true\", (char *)NULL);\n\t\t_exit(1);\n\t}\n"
    "\twaitpid(pid, &status, 0);\n"
    "\tif (tpgetlev() != 1 || tpcommit(0) == -1 || tpterm() == -1)\n\t\treturn 16;\n\treturn 0;\n}\n";

static void
given_family(void)
{
	given_rooms();
	if (given_exists(g, "family"))
		return;
	given_write(g, "family.c", "%s", family);
	free(given_ok(g, NULL, "buildclient -o family -f family.c"));
}

static void
the_exit_of_a_child_does_not_end_its_parents_transaction(void)
{
	given_family();
	free(given_ok(g, NULL, "./family idle"));
	EXPECT("ROOM", "in the transaction");
	free(given_ok(g, NULL, "./family works"));
	EXPECT("ROOM", "in the transaction");
	EXPECT("ROOM", "from the child");
	CU_ASSERT_EQUAL(take_diagnostic("ROOM"), QMENOMSG);
	GIVEN_CALL_OK(tpterm());
}

static bool
orphan_is_there(void *arg)
{
	char *out = given_read(g, "orphan.out");
	bool yes = has(out, "waiting");

	*(long *)arg = out != NULL ? atol(out) : 0;
	free(out);
	return yes;
}

/* A child holds no connection of its parent's open, so the parent's death is seen, and its wait eats no message. */
static void
a_dead_parent_eats_no_message_though_its_child_lives(void)
{
	struct sleeper s = { 0 };
	char *out;
	long child = 0;

	given_family();
	out = given_ok(g, NULL, "./family orphan >orphan.out 2>&1 </dev/null & echo $!");
	s.pid = s.tid = atol(out);
	CU_ASSERT_TRUE_FATAL(wait_until(orphan_is_there, &child, 20));
	CU_ASSERT_TRUE(wait_until(sleeps, &s, 20));
	kill((pid_t)s.pid, SIGKILL);
	for (double end = now_s() + 20; !process_gone((pid_t)s.pid) && now_s() < end;)
		nap_ms(5);
	/* The server sees the broken connection with its next round of input: two questions of somebody else are such. */
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	CU_ASSERT_EQUAL(depth(g, "ROOM"), 0);
	put("ROOM", "for the living");
	EXPECT("ROOM", "for the living");
	CU_ASSERT_TRUE_FATAL(child > 1);
	CU_ASSERT_EQUAL(kill((pid_t)child, SIGKILL), 0);
	free(out);
	GIVEN_CALL_OK(tpterm());
}

static void
the_system_ends_cleanly(void)
{
	given_rooms();
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(threads_of_one_context_work_while_one_waits),
		UNIT(each_thread_gets_its_own_reply),
		UNIT(threads_of_one_context_share_its_transaction),
		UNIT(an_end_of_the_transaction_waits_for_what_it_has_under_way),
		UNIT(contexts_of_one_thread_have_transactions_side_by_side),
		UNIT(a_context_is_none_one_or_gone),
		UNIT(a_context_in_which_another_thread_waits_cannot_be_left),
		UNIT(a_context_outlives_its_threads),
		UNIT(a_child_is_a_client_of_its_own_while_its_parent_waits),
		UNIT(the_exit_of_a_child_does_not_end_its_parents_transaction),
		UNIT(a_dead_parent_eats_no_message_though_its_child_lives),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("contexts, threads and forks", tests, UNIT_COUNT(tests));
}
