/*
 * story_log_gtrid - which transaction a line of the user log belongs to: in its program, in its services, in contexts and threads;
 * by the numbers that tmadmin shows.  Real processes.
 *
 * One system serves all the tests of this file, for a process writes to one log; each leaves the queue empty and nothing joined.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"
#include "userlog.h"

#define QUEUES "qcreate Q fifo none 2 0 100% 0% \"\"\n"
#define WORDS 80

static struct given *g;

/* "gtrid xN xN xN" of the line with this text, "" where it has none. */
static void
gtrid_of_line(const char *text, char out[WORDS])
{
	char *log = given_log(g), *end = strstr(log, text), *line = end, *at;

	*out = '\0';
	CU_ASSERT_PTR_NOT_NULL(end);
	if (end != NULL) {
		while (line > log && line[-1] != '\n')
			line--;
		at = strstr(line, ": gtrid ");
		if (at != NULL && at < end)
			snprintf(out, WORDS, "%.*s", (int)strcspn(at + 2, ":"), at + 2);
	}
	free(log);
}

static bool
line_is_in(const char *text, const char *gtrid)
{
	char words[WORDS];

	gtrid_of_line(text, words);
	return strcmp(words, gtrid) == 0;
}

/* The one transaction that tmadmin shows, written as in the log. */
static void
gtrid_of_tmadmin(char out[WORDS])
{
	char *text = given_ok(g, "pt\nq\n", "tmadmin"), *at = strstr(text, "gtrid=");

	CU_ASSERT_PTR_NOT_NULL(at);
	CU_ASSERT_EQUAL(count_of(text, "gtrid="), 1);
	snprintf(out, WORDS, "gtrid %.*s", at == NULL ? 0 : (int)strcspn(at + 6, ":"), at == NULL ? "" : at + 6);
	free(text);
}

static const char source[] =
    "#include <atmi.h>\n#include <stddef.h>\n#include <userlog.h>\n"
    "void SAYS(TPSVCINFO *m) { userlog(\"the service says %s\", m->data); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n";

static void
call(const char *text, long flags)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	snprintf(data, 64, "%s", text);
	GIVEN_CALL_OK(tpcall("SAYS", data, 0, &data, &len, flags));
	tpfree(data);
}

static void
given_one(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .queues = QUEUES, .server_source = source, .server_services = "-s SAYS" });
}

static void
program_service_and_administrator_see_the_same(void)
{
	char words[WORDS];

	given_one();
	GIVEN_CALL_OK(tpinit(NULL));
	userlog("before it");
	GIVEN_CALL_OK(tpbegin(60, 0));
	userlog("in the program");
	put("Q", "one");
	call("yes", 0);
	call("no", TPNOTRAN);
	gtrid_of_tmadmin(words);
	GIVEN_CALL_OK(tpcommit(0));
	userlog("after it");
	free(take("Q"));
	CU_ASSERT_TRUE(line_is_in("in the program", words));
	CU_ASSERT_TRUE(line_is_in("the service says yes", words));
	CU_ASSERT_TRUE(line_is_in("the service says no", ""));
	CU_ASSERT_TRUE(line_is_in("before it", ""));
	CU_ASSERT_TRUE(line_is_in("after it", ""));
	GIVEN_CALL_OK(tpterm());
}

static void
try_nosuch(long flags)
{
	char *data = tpalloc("STRING", NULL, 64);

	strcpy(data, "words");
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "NOSUCH", NULL, data, 0, flags), -1);
	tpfree(data);
}

static int
count_nosuch(const char *words)
{
	char *log = given_log(g);
	int n = 0;

	for (char *line = strtok(log, "\n"); line != NULL; line = strtok(NULL, "\n"))
		n += strstr(line, "!TMQUEUE.") != NULL && strstr(line, "no queue \"NOSUCH\"") != NULL &&
		    (words == NULL ? strstr(line, ": gtrid ") == NULL : strstr(line, words) != NULL);
	free(log);
	return n;
}

static bool
logs_nosuch(long flags, const char *words)
{
	for (int i = 0; i < 100 && count_nosuch(words) == 0; i++) {	/* such lines are rare: one a second */
		try_nosuch(flags);
		nap_ms(50);
	}
	return count_nosuch(words) > 0;
}

static void
the_queue_manager_sees_the_same(void)
{
	char words[WORDS];

	given_one();
	GIVEN_CALL_OK(tpinit(NULL));
	GIVEN_CALL_OK(tpbegin(60, 0));
	put("Q", "one");
	gtrid_of_tmadmin(words);
	CU_ASSERT_TRUE(logs_nosuch(0, words));
	CU_ASSERT_TRUE(logs_nosuch(TPNOTRAN, NULL));
	GIVEN_CALL_OK(tpcommit(0));
	free(take("Q"));
	GIVEN_CALL_OK(tpterm());
}

static void
each_context_has_its_own(void)
{
	TPINIT many = { .flags = TPMULTICONTEXTS };
	TPCONTEXT_T one, other;
	char words[WORDS];
	TPTRANID id;

	given_one();
	GIVEN_CALL_OK(tpinit(&many));
	GIVEN_CALL_OK(tpgetctxt(&one, 0));
	GIVEN_CALL_OK(tpinit(&many));
	GIVEN_CALL_OK(tpgetctxt(&other, 0));
	GIVEN_CALL_OK(tpbegin(60, 0));
	gtrid_of_tmadmin(words);
	GIVEN_CALL_OK(tpsetctxt(one, 0));
	userlog("in the one");
	GIVEN_CALL_OK(tpsetctxt(other, 0));
	userlog("in the other");
	GIVEN_CALL_OK(tpsetctxt(TPNULLCONTEXT, 0));
	userlog("in none");
	GIVEN_CALL_OK(tpsetctxt(other, 0));
	GIVEN_CALL_OK(tpsuspend(&id, 0));
	userlog("suspended");
	GIVEN_CALL_OK(tpsetctxt(one, 0));
	GIVEN_CALL_OK(tpresume(&id, 0));
	userlog("resumed");
	GIVEN_CALL_OK(tpsetctxt(other, 0));
	userlog("where it was");
	GIVEN_CALL_OK(tpterm());
	GIVEN_CALL_OK(tpsetctxt(one, 0));
	userlog("still there");
	GIVEN_CALL_OK(tpterm());
	userlog("at the end");
	CU_ASSERT_TRUE(line_is_in("in the one", ""));
	CU_ASSERT_TRUE(line_is_in("in the other", words));
	CU_ASSERT_TRUE(line_is_in("in none", ""));
	CU_ASSERT_TRUE(line_is_in("suspended", ""));
	CU_ASSERT_TRUE(line_is_in("resumed", words));
	CU_ASSERT_TRUE(line_is_in("where it was", ""));
	CU_ASSERT_TRUE(line_is_in("still there", words));
	CU_ASSERT_TRUE(line_is_in("at the end", ""));
}

static void *
works_in_it(void *arg)
{
	(void)arg;
	put("Q", "by a thread");
	userlog("in another thread");
	GIVEN_CALL_OK(tpcommit(0));
	return NULL;
}

static void
threads_of_a_context_share_it(void)
{
	pthread_t thread;
	char words[WORDS];

	given_one();
	GIVEN_CALL_OK(tpbegin(60, 0));
	gtrid_of_tmadmin(words);
	pthread_create(&thread, NULL, works_in_it, NULL);
	pthread_join(thread, NULL);
	userlog("ended elsewhere");
	free(take("Q"));
	CU_ASSERT_TRUE(line_is_in("in another thread", words));
	CU_ASSERT_TRUE(line_is_in("ended elsewhere", ""));
	GIVEN_CALL_OK(tpterm());
}

static void
a_child_is_in_none(void)
{
	char words[WORDS];
	pid_t pid;

	given_one();
	GIVEN_CALL_OK(tpbegin(60, 0));
	gtrid_of_tmadmin(words);
	if ((pid = fork()) == 0) {
		userlog("in the child");
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
	userlog("in the parent");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(line_is_in("in the child", ""));
	CU_ASSERT_TRUE(line_is_in("in the parent", words));
	GIVEN_CALL_OK(tpterm());
}

static void
the_system_ends_cleanly(void)
{
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(program_service_and_administrator_see_the_same),
		UNIT(the_queue_manager_sees_the_same),
		UNIT(each_context_has_its_own),
		UNIT(threads_of_a_context_share_it),
		UNIT(a_child_is_in_none),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("story: gtrid of the log", tests, UNIT_COUNT(tests));
}
