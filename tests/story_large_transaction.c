/*
 * story_large_transaction - a transaction of more operations than one batch carries out, through real processes: the caller is answered
 * when all of it is there, others see nothing of it before and are served meanwhile, and a killed server goes on with it.
 */
#include <signal.h>
#include <sys/wait.h>

#include "given.h"

enum { N = 3000 };

static struct given *g;

static void
given_queues(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space = "40000 40 50 50 20000 ERRQ n 16", .spaces = 2, .device_pages = 60000, .queues =
		    "qcreate IN fifo none 5 0 100% 0% \"\"\nqcreate OUT fifo none 5 0 100% 0% \"\"\n"
		    "qcreate OTHER fifo none 5 0 100% 0% \"\"\n" });
}

static void	/* N messages into OUT, and one into the other space when both */
grow(bool both)
{
	char text[32];

	CU_ASSERT_NOT_EQUAL_FATAL(tpbegin(120, 0), -1);
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "message %d", i);
		put("OUT", text);
	}
	if (both)
		put_in(given_space(2), "OUT", "there");
}

static void
all_came(void)
{
	char text[32], *got;

	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "message %d", i);
		got = take("OUT");
		CU_ASSERT_PTR_NOT_NULL_FATAL(got);
		CU_ASSERT_STRING_EQUAL(got, text);
		free(got);
	}
	CU_ASSERT_PTR_NULL(take("OUT"));
}

static void	/* Another program comes and goes, and looks, until it is stopped.  Its exit: 0, or it saw a part. */
beside(volatile sig_atomic_t *stop)
{
	bool seen = false;
	int rounds = 0;

	if (tpinit(NULL) == -1)
		_exit(3);
	while (!*stop || rounds == 0) {
		char *got;
		long n = depth(g, "OUT");
		seen |= n != 0 && n != N;
		put("OTHER", "mine");
		if ((got = take("OTHER")) == NULL)
			_exit(4);
		free(got);
		rounds++;
	}
	(void)tpterm();
	_exit(seen ? 1 : 0);
}

static volatile sig_atomic_t stopped;

static void
on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void
it_is_there_when_the_caller_is_answered(void)
{
	int status = -1;
	pid_t pid;

	given_queues();
	for (int both = 0; both < 2; both++) {
		fflush(NULL);
		if ((pid = fork()) == 0) {
			signal(SIGUSR1, on_stop);
			beside(&stopped);
		}
		grow(both);
		CU_ASSERT_NOT_EQUAL(tpcommit(0), -1);
		CU_ASSERT_EQUAL(depth(g, "OUT"), N);
		CU_ASSERT_EQUAL(kill(pid, SIGUSR1), 0);
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_TRUE(WIFEXITED(status));
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
		all_came();
		if (both) {
			char *got = take_from(given_space(2), "OUT");
			CU_ASSERT_PTR_NOT_NULL(got);
			free(got);
		}
	}
}

static void
it_comes_back_when_it_is_rolled_back(void)
{
	char text[32], *got;

	given_queues();
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof text, "in %d", i);
		put("IN", text);
	}
	CU_ASSERT_NOT_EQUAL_FATAL(tpbegin(60, 0), -1);
	for (int i = 0; i < 1000; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(got = take("IN"));
		free(got);
		put("OUT", "never");
	}
	CU_ASSERT_NOT_EQUAL(tpabort(0), -1);
	CU_ASSERT_EQUAL(depth(g, "IN"), 1000);
	CU_ASSERT_EQUAL(depth(g, "OUT"), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof text, "in %d", i);
		CU_ASSERT_PTR_NOT_NULL_FATAL(got = take("IN"));
		CU_ASSERT_STRING_EQUAL(got, text);
		free(got);
	}
}

static bool
is_whole(void *arg)
{
	long n = depth(g, "OUT");

	(void)arg;
	return n == 0 || n == N;
}

static bool
is_gone(void *arg)
{
	char *text = given_qmadmin(g, "qprinttrans\n");
	bool gone = !has(text, "committing") && !has(text, "prepared");

	(void)arg;
	free(text);
	return gone;
}

static void	/* The server dies in the commit: all or nothing, and no list keeps anything. */
a_killed_server_goes_on(void)
{
	for (int round = 0; round < 4; round++) {
		pid_t old, killer;

		given_queues();
		grow(false);
		old = given_tmqueue(g, 1);
		fflush(NULL);
		if ((killer = fork()) == 0) {
			nap_ms(5 * round);
			_exit(kill(old, SIGKILL) == 0 ? 0 : 1);
		}
		(void)tpcommit(0);
		CU_ASSERT_EQUAL(waitpid(killer, NULL, 0), killer);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 60));
		CU_ASSERT_TRUE(wait_until(is_gone, NULL, 60));
		CU_ASSERT_TRUE(wait_until(is_whole, NULL, 60));
		if (depth(g, "OUT") != 0)
			all_came();
		CU_ASSERT_EQUAL(depth(g, "OUT"), 0);
		put("OTHER", "it serves");	/* qmadmin answers sooner; a transaction must not begin before its queue manager */
		free(take("OTHER"));
	}
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(it_is_there_when_the_caller_is_answered),
		UNIT(it_comes_back_when_it_is_rolled_back),
		UNIT(a_killed_server_goes_on),
	};

	return unit_run("story: large transactions", tests, UNIT_COUNT(tests));
}
