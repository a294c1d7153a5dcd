/*
 * A space that was written in an earlier disk version (tests/fixture/space-v*.tar.xz) is opened, and everything is there.
 *
 * The archives were made by the programs of those versions with what make_it() puts in, which is kept here to tell what must
 * be found; TEST_FIXTURE=directory makes one like it of the present version.
 */
#include "given_space.h"

#define MADE_AT (INT64_C(1600000000) * 1000000)	/* the clock when it was made */

static void
clock_is(int64_t us)
{
	clock_shift_us(us - clock_now_us());
}

static void
give(struct given_space *g, struct branch *b, const char *queue, struct qmsg_in in)
{
	CU_ASSERT_EQUAL(put_in(g, b, queue, in, NULL), 0);
}

static void
make_it(struct given_space *g)
{
	static char big[300000];
	struct queue_params p = queue_of("sorted", QC_PRIORITY, QC_FIFO, 0, 0);
	struct qmsg_in in;
	struct branch *b;

	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "orders", 0, 0);
	create(g, &p);
	give(g, NULL, "orders", text("plain"));
	in = text("for later");
	in.flags = TPQTIME_REL;
	in.deq_time = 3600;
	give(g, NULL, "orders", in);
	in = text("for a day");
	in.flags = TPQEXPTIME_REL | TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY;
	in.exp_time = 86400;
	in.priority = 70;
	in.replyqueue = "answers";
	in.failurequeue = "faults";
	memset(in.corrid, 'c', sizeof in.corrid);
	in.urcode = 42;
	give(g, NULL, "orders", in);
	memset(big, 'x', sizeof big);
	in = text("");
	in.body = big;
	in.body_len = sizeof big;
	give(g, NULL, "orders", in);
	in = text("");
	in.has_body = false;
	in.body_len = 0;
	in.type = "";
	give(g, NULL, "orders", in);
	in = text("second");
	in.flags = TPQPRIORITY;
	in.priority = 10;
	give(g, NULL, "sorted", in);
	in.body = "first";
	in.body_len = 6;
	in.priority = 90;
	give(g, NULL, "sorted", in);
	give(g, NULL, "sorted", text("poison"));	/* priority 50: after the first */
	CU_ASSERT_STRING_EQUAL(next(g, "sorted"), "first");
	b = tx(g, "poisoned");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "sorted"), "poison");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	in.body = "top";
	in.body_len = 4;
	in.flags = TPQTOP;
	give(g, NULL, "sorted", in);
	b = tx(g, "in doubt");
	give(g, b, "sorted", text("prepared"));
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "plain");
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GROUP9"), 0);
	commit(g);
}

static struct given_space *
given_archive(const char *name)
{
	struct given_space *g = calloc(1, sizeof *g);
	char cmd[512];

	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	snprintf(g->dir, sizeof g->dir, "/tmp/qspace.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(g->dir));
	snprintf(g->device, sizeof g->device, "%s/QUE", g->dir);
	g->params = given_params("OLD");
	/* The device file names itself. */
	snprintf(cmd, sizeof cmd, "tar -C %s -xJf tests/fixture/%s && sed -i 's|^\\(entry [0-9]* [0-9]*\\) .*|\\1 %s|' %s", g->dir,
	    name, g->device, g->device);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	return g;
}

static bool	/* has its file SPACE this line? */
says(const struct given_space *g, const char *line)
{
	char cmd[256];

	snprintf(cmd, sizeof cmd, "grep -qx '%s' %s.d/OLD/SPACE", line, g->device);
	return system(cmd) == 0;
}

static void
everything_is_found(const char *archive, const char *version)
{
	struct given_space *g = given_archive(archive);
	struct branch *b;
	struct qmsg *m;

	clock_is(MADE_AT + 60 * INT64_C(1000000));
	CU_ASSERT_TRUE(says(g, version));
	given_open(g);
	CU_ASSERT_TRUE(says(g, "version 3"));
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 5);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 1);

	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "for a day");
	CU_ASSERT_EQUAL(m->priority, 70);
	CU_ASSERT_EQUAL(m->urcode, 42);
	CU_ASSERT_STRING_EQUAL(m->replyqueue, "answers");
	CU_ASSERT_STRING_EQUAL(m->failurequeue, "faults");
	CU_ASSERT_EQUAL(m->corrid[31], 'c');
	CU_ASSERT_EQUAL(m->expires_us - m->enqueued_us, INT64_C(86400) * 1000000);
	qmsg_free(m);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_EQUAL(m->body_len, 300000);
	CU_ASSERT_EQUAL(m->body[299999], 'x');
	qmsg_free(m);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_FALSE(m->has_body);
	qmsg_free(m);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");

	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "poison");
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "in doubt"));
	CU_ASSERT_EQUAL(qspace_branch_state(b), BR_PREPARED);
	CU_ASSERT_STRING_EQUAL(qspace_branch_coordinator(b), "GROUP9");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "sorted"), "top");
	CU_ASSERT_STRING_EQUAL(next(g, "sorted"), "prepared");
	CU_ASSERT_STRING_EQUAL(next(g, "sorted"), "second");

	clock_is(MADE_AT + 3700 * INT64_C(1000000));
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "for later");
	CU_ASSERT_EQUAL(put(g, "orders", "new"), 0);
	reopen(g);			/* and now it is one of ours */
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "new");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	given_done(g);
}

static void
what_version_1_stored_is_found(void)
{
	everything_is_found("space-v1.tar.xz", "version 1");
}

static void
what_version_2_stored_is_found(void)
{
	everything_is_found("space-v2.tar.xz", "version 2");
}

static void
make_a_fixture(void)
{
	struct qspace_params p = given_params("OLD");
	const char *dir = getenv("TEST_FIXTURE");
	struct given_space *g;
	char cmd[512];

	clock_is(MADE_AT);
	p.pages = 8000;
	g = given_space(&p);
	make_it(g);
	qspace_close(g->qs);
	snprintf(cmd, sizeof cmd, "mv %s/* %s && rmdir %s", g->dir, dir, g->dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
	free(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_version_1_stored_is_found),
		UNIT(what_version_2_stored_is_found),
	}, making[] = { UNIT(make_a_fixture) };

	return getenv("TEST_FIXTURE") != NULL ? unit_run("fixture", making, 1) :
	    unit_run("qspace versions", tests, UNIT_COUNT(tests));
}
