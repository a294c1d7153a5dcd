/*
 * story_spaces - several queue spaces in one system, each with its own queue manager.
 */
#include <signal.h>

#include "given.h"

struct restarted { struct given *g; int space; pid_t old; };

static bool
is_restarted(void *arg)
{
	struct restarted *r = arg;
	pid_t pid = given_tmqueue(r->g, r->space);

	return pid > 0 && pid != r->old;
}

static void	/* Three spaces, with queues of the same names: each has its own messages. */
spaces_have_their_own_messages(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 3, .queues = "qcreate Q fifo none 2 0 100% 0% \"\"\n" });
	char *text;

	for (int n = 1; n <= 3; n++)
		put_in(given_space(n), "Q", given_group(n));
	put_in("QSPACE3", "Q", "one more");
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 3, "Q"), 2);
	text = given_qmadmin_of(g, 3, "qspacelist");
	CU_ASSERT_TRUE(has(text, "QSPACE3"));
	free(text);
	for (int n = 1; n <= 3; n++) {
		text = take_from(given_space(n), "Q");
		CU_ASSERT_TRUE(text != NULL && strcmp(text, given_group(n)) == 0);
		free(text);
	}
	given_done(g);
}

static void	/* One queue manager dies: the others serve on, and it is back with what it had. */
one_dies_and_comes_back(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = "qcreate Q fifo none 2 0 100% 0% \"\"\n" });
	struct restarted r = { g, 2, given_tmqueue(g, 2) };
	pid_t first = given_tmqueue(g, 1);
	char *text;

	CU_ASSERT_TRUE(r.old > 0 && first > 0 && first != r.old);
	put_in("QSPACE2", "Q", "stays");
	kill(r.old, SIGKILL);
	put("Q", "meanwhile");
	CU_ASSERT_TRUE(wait_until(is_restarted, &r, 15));
	CU_ASSERT_EQUAL(given_tmqueue(g, 1), first);
	text = take_from("QSPACE2", "Q");
	CU_ASSERT_TRUE(text != NULL && strcmp(text, "stays") == 0);
	free(text);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(spaces_have_their_own_messages),
		UNIT(one_dies_and_comes_back),
	};

	return unit_run("story: spaces", tests, UNIT_COUNT(tests));
}
