/*
 * story_commit - a transaction over the queue spaces of two groups is one thing, whoever dies meanwhile.
 */
#include <signal.h>
#include <string.h>

#include "given.h"

#define QUEUES "qcreate Q fifo none 9 0 100% 0% \"\"\n"

static int
enqueue_in(const char *space, const char *text)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *buf = tpalloc((char *)"STRING", NULL, (long)strlen(text) + 1);
	int rc;

	CU_ASSERT_PTR_NOT_NULL_FATAL(buf);
	memcpy(buf, text, strlen(text) + 1);
	rc = tpenqueue((char *)space, (char *)"Q", &ctl, buf, 0, 0);
	tpfree(buf);
	return rc;
}

static void
both(const char *text)
{
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(enqueue_in("QSPACE", text), 0);
	CU_ASSERT_EQUAL(enqueue_in("QSPACE2", text), 0);
}

static void
commit_is_seen_in_both_spaces(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });

	both("one");
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	both("two");
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	for (int i = 0; i < 20; i++) {
		both("more");
		CU_ASSERT_EQUAL(tpcommit(0), 0);
	}
	CU_ASSERT_EQUAL(depth(g, "Q"), 21);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 21);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(commit_is_seen_in_both_spaces),
	};

	return unit_run("story: commit over several groups", tests, UNIT_COUNT(tests));
}
