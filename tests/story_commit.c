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

/* Space `n` can be served by group SPARE too; servers that die stay dead, so that it will be. */
static struct given *
given_spare(int n)
{
	struct given *g = given_directory();
	char groups[600], server[200];

	snprintf(groups, sizeof groups, "SPARE LMID=SITE1 GRPNO=300 TMSNAME=TMS_QM TMSCOUNT=2 OPENINFO=\"TUXEDO/QM:%s:%s\"\n", given_device(g, n),
	    given_space(n));
	snprintf(server, sizeof server, "TMQUEUE SRVGRP=SPARE SRVID=1 RESTART=N CLOPT=\"-s %s:TMQUEUE\"\n", given_space(n));
	return given_system_in(g, &(struct given_conf){ .spaces = 2, .queues = QUEUES, .points = true, .tmqueue_params = "RESTART=N",
	    .groups = groups, .servers = server });
}

struct held { struct given *g; int space; };

static bool
holds_nothing(void *arg)
{
	struct held *h = arg;
	char *text = given_qmadmin_of(h->g, h->space, "qprinttrans");
	bool none = !has(text, "gtrid");

	free(text);
	return none;
}

/* The one that takes the space over is found under the name of the group that joined, and finishes what that one had prepared. */
static void
another_group_takes_the_participants_space_over(void)
{
	struct given *g = given_spare(2);
	struct held h = { g, 2 };

	given_point_set(g, "QUE2", "VOTE_SENT", "kill");
	both("voted and died");
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_TRUE(given_point_hit(g, "QUE2", "VOTE_SENT"));
	CU_ASSERT_TRUE(wait_until(holds_nothing, &h, 15));
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	CU_ASSERT_TRUE(given_logged(g, "in doubt"));
	given_done(g);
}

/* The decision moves with the space: its initiator and the participant hear of it from the group that has the space now. */
static void
another_group_takes_the_coordinators_space_over(void)
{
	struct given *g = given_spare(1);
	struct held first = { g, 1 }, second = { g, 2 };

	given_point_set(g, "QUE1", "DECISION_FLUSHED", "kill");
	both("decided and died");
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_TRUE(given_point_hit(g, "QUE1", "DECISION_FLUSHED"));
	CU_ASSERT_TRUE(wait_until(holds_nothing, &second, 15));
	CU_ASSERT_TRUE(wait_until(holds_nothing, &first, 15));
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	given_done(g);
}

/* The other group is shut down: tpcommit() says so at once, and the first one has its messages back. */
static void
group_that_is_shut_down_is_a_no(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	double began;

	both("half of it");
	free(given_ok(g, NULL, "tmshutdown -y -g QUE2"));
	began = now_s();
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_TRUE(now_s() - began < 10);		/* it is not waited for */
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	free(given_ok(g, NULL, "tmboot -y -g QUE2"));
	both("all of it");
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 1);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(commit_is_seen_in_both_spaces),
		UNIT(another_group_takes_the_participants_space_over),
		UNIT(another_group_takes_the_coordinators_space_over),
		UNIT(group_that_is_shut_down_is_a_no),
	};

	return unit_run("story: commit over several groups", tests, UNIT_COUNT(tests));
}
