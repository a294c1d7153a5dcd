/*
 * story_xa - a transaction manager that is not ours drives our queue spaces: each call, each flag, each answer.
 */
#include "given_xa.h"
#include "tx.h"

#include <pthread.h>
#include <unistd.h>

#define QUEUES "qcreate ORDERS fifo none 5 0 100% 0% \"\"\nqcreate BILLS fifo none 5 0 100% 0% \"\"\n"

static struct given *
given_spaces(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 2), 2, TMNOFLAGS), XA_OK);
	return g;
}

static void
spaces_done(struct given *g)
{
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(2, TMNOFLAGS), XA_OK);
	given_done(g);
}

static bool
gets(int space, const char *queue, const char *text)
{
	char got[64] = "";
	int rc = xa_take(space, queue, got);

	if (rc != 0 || strcmp(got, text) != 0)
		printf("\n    %s of space %d: %d \"%s\", not \"%s\"", queue, space, rc, got, text);
	return rc == 0 && strcmp(got, text) == 0;
}

static bool
is_empty(int space, const char *queue)
{
	char got[64];

	return xa_take(space, queue, got) == QMENOMSG;
}

/* ---- open, close ---- */

static void
the_switch_says_what_it_is(void)
{
	CU_ASSERT_STRING_EQUAL(tmqm_switch.name, "TUXEDO/QM");
	CU_ASSERT_EQUAL(tmqm_switch.flags, TMNOMIGRATE);
	CU_ASSERT_EQUAL(tmqm_switch.version, 0);
}

static void
nothing_works_before_it_is_open(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	XID x = xa_id("g", "b"), list[1];
	int handle, value;

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_forget(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMSTARTRSCAN), XAER_PROTO);
	CU_ASSERT_EQUAL(tmqm_switch.xa_complete_entry(&handle, &value, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 2, TMNOFLAGS), XAER_PROTO);	/* that one is not */
	CU_ASSERT_EQUAL(tmqm_switch.xa_complete_entry(&handle, &value, 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(tmqm_switch.xa_complete_entry(&handle, &value, 1, TMASYNC), XAER_ASYNC);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_PROTO);
	given_done(g);
}

static void
open_takes_an_openinfo_of_the_configuration(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES });
	char info[512], longest[300];

	CU_ASSERT_EQUAL(xa_open("", 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_open("Oracle_XA:Oracle_XA+Acc=P", 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_open("TUXEDO/QM:/nowhere/QUE:QSPACE", 1, TMNOFLAGS), XAER_INVAL);
	snprintf(info, sizeof info, "TUXEDO/QM:%s/QUE:QSPACE2", given_dir(g));	/* of the other device */
	CU_ASSERT_EQUAL(xa_open(info, 1, TMNOFLAGS), XAER_INVAL);
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	CU_ASSERT_EQUAL(xa_open(longest, 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(tmqm_switch.xa_open_entry(NULL, 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMASYNC), XAER_ASYNC);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOWAIT), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_close(1, TMASYNC), XAER_ASYNC);
	CU_ASSERT_EQUAL(xa_close(1, TMNOWAIT), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);	/* twice is once */
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 2), 1, TMNOFLAGS), XAER_INVAL);	/* this number is taken */
	snprintf(info, sizeof info, "  TUXEDO/QM;%s/QUE;QSPACE ", given_dir(g));	/* as ubbconfig(5) has it, too */
	CU_ASSERT_EQUAL(xa_open(info, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	given_done(g);
}

static void
an_application_that_is_not_booted_cannot_be_opened(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .not_booted = true });

	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XAER_RMFAIL);
	setenv("TUXCONFIG", "/nowhere/tuxconfig", 1);
	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XAER_RMERR);
	given_write(g, "dummy", "%s", "");
	{
		char path[4096];
		snprintf(path, sizeof path, "%s/tuxconfig", given_dir(g));
		setenv("TUXCONFIG", path, 1);
	}
	given_done(g);
}

static void
one_that_is_at_work_is_not_closed(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("close", "1");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND), XA_OK);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XA_OK);
	spaces_done(g);
}

/* ---- the way of a transaction ---- */

static void
two_spaces_commit_together(void)
{
	struct given *g = given_spaces();
	XID a = xa_id("move", "1"), b = xa_id("move", "2");

	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	CU_ASSERT_EQUAL(xa_start(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&b, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "nails"));
	CU_ASSERT_EQUAL(xa_put(2, "ORDERS", "nails, moved"), 0);
	CU_ASSERT_EQUAL(xa_put(1, "BILLS", "for nails"), 0);
	CU_ASSERT_EQUAL(xa_end(&b, 2, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_end(&a, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_TRUE(is_empty(2, "ORDERS"));			/* not yet */
	CU_ASSERT_EQUAL(xa_prepare(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&b, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(is_empty(2, "ORDERS"));
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));			/* nor back */
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&b, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(gets(2, "ORDERS", "nails, moved"));
	CU_ASSERT_TRUE(gets(1, "BILLS", "for nails"));
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_rollback(&a, 1, TMNOFLAGS), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_prepare(&a, 1, TMNOFLAGS), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_commit(&a, 1, TMONEPHASE), XAER_NOTA);
	spaces_done(g);
}

static void
rollback_brings_back_before_and_after_prepare(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("back", "1");
	int prepare;

	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	for (prepare = 0; prepare < 2; prepare++) {
		CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_TRUE(gets(1, "ORDERS", "nails"));
		CU_ASSERT_EQUAL(xa_put(1, "BILLS", "for nails"), 0);
		CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
		if (prepare)
			CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_TRUE(is_empty(1, "BILLS"));
		CU_ASSERT_TRUE(peeks("ORDERS", "nails"));
	}
	spaces_done(g);
}

static void
one_branch_commits_in_one_phase(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("one", "phase");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XAER_PROTO);	/* it is not prepared */
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "nails"));
	spaces_done(g);
}

static void	/* It has voted; one phase is for a branch that has not. */
a_prepared_branch_is_not_committed_in_one_phase(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("two", "phases");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XAER_PROTO);
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "nails"));
	spaces_done(g);
}

static void
a_branch_without_work_is_read_only(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("read", "only"), y = xa_id("read", "too");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_RDONLY);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XAER_NOTA);	/* it is over */
	CU_ASSERT_EQUAL(xa_start(&y, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_end(&y, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&y, 1, TMONEPHASE), XA_OK);
	spaces_done(g);
}

/* ---- who works in a branch ---- */

static void
an_id_is_used_once_and_joined_when_it_is_there(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("dup", "1"), other = xa_id("dup", "2");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&other, 1, TMNOFLAGS), XAER_PROTO);	/* one at a time */
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "one"), 0);
	CU_ASSERT_EQUAL(xa_end(&other, 1, TMSUCCESS), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_DUPID);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMRESUME), XAER_NOTA);		/* nobody suspended it */
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "two"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XAER_PROTO);		/* too late */
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_DUPID);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);		/* a vote may be asked for again */
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "one") && gets(1, "ORDERS", "two"));
	spaces_done(g);
}

static void
while_it_is_suspended_the_thread_works_outside(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("susp", "1"), y = xa_id("susp", "2");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "in x"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND | TMMIGRATE), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND), XA_OK);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND), XAER_PROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(xa_put(1, "BILLS", "outside"), 0);
	CU_ASSERT_TRUE(gets(1, "BILLS", "outside"));
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_start(&y, 1, TMNOFLAGS), XA_OK);		/* another one meanwhile */
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMRESUME), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_put(1, "BILLS", "in y"), 0);
	CU_ASSERT_EQUAL(xa_end(&y, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&y, 1, TMRESUME), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMRESUME), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMRESUME), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "in x again"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND), XA_OK);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);		/* may end so, too */
	CU_ASSERT_EQUAL(xa_rollback(&y, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "in x") && gets(1, "ORDERS", "in x again"));
	CU_ASSERT_TRUE(is_empty(1, "BILLS"));
	spaces_done(g);
}

static void
what_thread(XID *x, const char *text)
{
	CU_ASSERT_EQUAL(xa_start(x, 1, TMRESUME), XAER_PROTO);		/* another thread's */
	CU_ASSERT_EQUAL(xa_end(x, 1, TMSUCCESS), XAER_PROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(xa_start(x, 1, TMJOIN), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", text), 0);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
}

static void *
joins_and_ends(void *x)
{
	what_thread(x, "by a second thread");
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_end(x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);			/* it did not open it: it stays open */
	return NULL;
}

static void *
joins_and_dies(void *x)
{
	what_thread(x, "by a thread that ends");
	return NULL;
}

static void
run_thread(void *(*f)(void *), void *arg)
{
	pthread_t t;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, f, arg), 0);
	pthread_join(t, NULL);
}

static void
threads_join_a_branch_and_it_ends_when_all_have(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("threads", "1");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "by the first"), 0);
	run_thread(joins_and_ends, &x);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XAER_PROTO);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "by the first") && gets(1, "ORDERS", "by a second thread"));
	spaces_done(g);
}

static void
a_thread_that_ends_in_a_branch_leaves_it_rollback_only(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("dead", "thread");

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	run_thread(joins_and_dies, &x);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_RBROLLBACK);
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));
	spaces_done(g);
}

struct crowd { int n; };

static void *
many_branches(void *arg)
{
	struct crowd *c = arg;
	char gtrid[40], text[40];
	int i;

	CU_ASSERT_EQUAL(xa_open(xa_info(given_dir(given_standing()), 1), 1, TMNOFLAGS), XA_OK);
	for (i = 0; i < 20; i++) {
		XID a, b;

		snprintf(gtrid, sizeof gtrid, "crowd %d %d", c->n, i);
		snprintf(text, sizeof text, "%d %d", c->n, i);
		a = xa_id(gtrid, "1");
		b = xa_id(gtrid, "2");
		CU_ASSERT_EQUAL(xa_start(&a, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_start(&b, 2, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_put(1, "ORDERS", text), 0);
		CU_ASSERT_EQUAL(xa_put(2, "ORDERS", text), 0);
		CU_ASSERT_EQUAL(xa_end(&a, 1, TMSUCCESS), XA_OK);
		CU_ASSERT_EQUAL(xa_end(&b, 2, TMSUCCESS), XA_OK);
		if (i % 2 == 0) {
			CU_ASSERT_EQUAL(xa_prepare(&a, 1, TMNOFLAGS), XA_OK);
			CU_ASSERT_EQUAL(xa_prepare(&b, 2, TMNOFLAGS), XA_OK);
			CU_ASSERT_EQUAL(xa_commit(&a, 1, TMNOFLAGS), XA_OK);
			CU_ASSERT_EQUAL(xa_commit(&b, 2, TMNOFLAGS), XA_OK);
		} else {
			CU_ASSERT_EQUAL(xa_rollback(&a, 1, TMNOFLAGS), XA_OK);
			CU_ASSERT_EQUAL(xa_rollback(&b, 2, TMNOFLAGS), XA_OK);
		}
	}
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	return NULL;
}

static void
many_threads_work_in_branches_of_their_own(void)
{
	struct given *g = given_spaces();
	struct crowd c[6];
	pthread_t t[6];
	int i;

	for (i = 0; i < 6; i++) {
		c[i].n = i;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, many_branches, &c[i]), 0);
	}
	for (i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS"), 60);
	CU_ASSERT_EQUAL(depth_in(g, 2, "ORDERS"), 60);
	CU_ASSERT_EQUAL(xa_in_doubt(1, NULL, 0), 0);
	spaces_done(g);
}

static void *
in_a_context_of_its_own(void *x)
{
	TPINIT init = { .flags = TPMULTICONTEXTS };

	if (tpinit(&init) == -1 || xa_start(x, 1, TMJOIN) != XA_OK || xa_put(1, "ORDERS", "from another context") != 0 ||
	    xa_end(x, 1, TMSUCCESS) != XA_OK)
		return NULL;
	tpterm();
	return x;
}

static int
driver_contexts(const char *dir)
{
	XID x = xa_id("contexts", "1");
	TPINIT init = { .flags = TPMULTICONTEXTS };
	void *well = NULL;
	pthread_t t;

	if (tpinit(&init) == -1 || xa_open(xa_info(dir, 1), 1, TMNOFLAGS) != XA_OK || xa_start(&x, 1, TMNOFLAGS) != XA_OK ||
	    xa_put(1, "ORDERS", "from one context") != 0)
		return 2;
	if (pthread_create(&t, NULL, in_a_context_of_its_own, &x) != 0 || pthread_join(t, &well) != 0 || well == NULL)
		return 3;
	if (xa_end(&x, 1, TMSUCCESS) != XA_OK)
		return 4;
	tpterm();			/* the resource manager is not the context's */
	return xa_prepare(&x, 1, TMNOFLAGS) == XA_OK && xa_commit(&x, 1, TMNOFLAGS) == XA_OK &&
	    xa_close(1, TMNOFLAGS) == XA_OK ? 0 : 5;
}

static void
a_branch_is_of_the_thread_whatever_its_context(void)
{
	struct given *g = given_spaces();
	struct xa_driver d = xa_driver_start("contexts", given_dir(g));

	CU_ASSERT_EQUAL(xa_driver_ends(&d), 0);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "from one context") && gets(1, "ORDERS", "from another context"));
	spaces_done(g);
}

static int
driver_joins(const char *dir)
{
	XID x = xa_id("processes", "1");

	if (xa_open(xa_info(dir, 1), 1, TMNOFLAGS) != XA_OK || xa_start(&x, 1, TMJOIN) != XA_OK ||
	    xa_put(1, "ORDERS", "by another process") != 0 || xa_end(&x, 1, TMSUCCESS) != XA_OK)
		return 2;
	return xa_prepare(&x, 1, TMNOFLAGS) == XA_OK ? 0 : 3;	/* the branch is nobody's own */
}

static void
a_branch_is_joined_and_ended_by_any_process(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("processes", "1");
	struct xa_driver d;

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "by the first"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	d = xa_driver_start("joins", given_dir(g));
	CU_ASSERT_EQUAL(xa_driver_ends(&d), 0);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "by the first") && gets(1, "ORDERS", "by another process"));
	spaces_done(g);
}

static void
a_child_opens_for_itself(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("fork", "1");
	struct xa_driver d = { .out = -1 };

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "the parent's"), 0);
	fflush(NULL);
	if ((d.pid = fork()) == 0) {
		XID y = xa_id("fork", "2");
		bool well = xa_start(&y, 1, TMNOFLAGS) == XAER_PROTO && xa_prepare(&x, 1, TMNOFLAGS) == XAER_PROTO &&
		    tpgetlev() == 0 && xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS) == XA_OK &&
		    xa_start(&y, 1, TMNOFLAGS) == XA_OK && xa_put(1, "ORDERS", "the child's") == 0 &&
		    xa_end(&y, 1, TMSUCCESS) == XA_OK && xa_commit(&y, 1, TMONEPHASE) == XA_OK && xa_close(1, TMNOFLAGS) == XA_OK;
		tpterm();
		_exit(well ? 0 : 1);
	}
	CU_ASSERT_EQUAL(xa_driver_ends(&d), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_OK);
	CU_ASSERT_TRUE(gets(1, "ORDERS", "the parent's") && gets(1, "ORDERS", "the child's"));
	spaces_done(g);
}

/* ---- beside ATMI's own transactions ---- */

static void
atmi_transactions_and_branches_exclude_each_other(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("atmi", "1");

	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_OUTSIDE);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(tpbegin(30, 0) == -1 && tperrno == TPEPROTO);
	CU_ASSERT_EQUAL(tx_open(), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_OUTSIDE);
	CU_ASSERT_EQUAL(tx_close(), TX_OK);
	CU_ASSERT_TRUE(tpcommit(0) == -1 && tperrno == TPEPROTO);
	CU_ASSERT_TRUE(tpabort(0) == -1 && tperrno == TPEPROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "in the branch"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	GIVEN_CALL_OK(tpbegin(30, 0));					/* and the other way round */
	CU_ASSERT_TRUE(is_empty(1, "ORDERS"));
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XA_OK);		/* not this thread's work: it may end it any time */
	GIVEN_CALL_OK(tpcommit(0));
	spaces_done(g);
}

static void
what_has_no_branch_is_refused_unless_it_is_to_stay_outside(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("other", "1");
	TPQCTL ctl = { .flags = TPNOFLAGS };

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(2, "ORDERS", "nobody's"), TPETRAN);
	GIVEN_CALL_OK(tpenqueue("QSPACE2", "ORDERS", &ctl, NULL, 0, TPNOTRAN));
	GIVEN_CALL_OK(tpenqueue("QSPACE", "BILLS", &ctl, NULL, 0, TPNOTRAN));
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "undone"), 0);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);		/* a refusal dooms nothing */
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(depth_in(g, 2, "ORDERS"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 1, "BILLS"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS"), 0);
	spaces_done(g);
}

/* ---- rollback-only ---- */

static void	/* A message of another type than the one that TPNOCHANGE insists on: the operation fails, the branch is doomed. */
fail_in_branch(void)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("CARRAY", NULL, 10);
	long len;

	CU_ASSERT_TRUE(tpdequeue("QSPACE", "BILLS", &ctl, &data, &len, TPNOCHANGE) == -1 && tperrno == TPEOTYPE);
	tpfree(data);
}

static void
what_failed_is_rolled_back_whoever_ends_it(void)
{
	struct given *g = given_spaces();
	XID x = xa_id("fail", "1");

	CU_ASSERT_EQUAL(xa_put(1, "BILLS", "a string"), 0);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "stays"), 0);

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);		/* its manager says so */
	CU_ASSERT_TRUE(gets(1, "ORDERS", "stays"));
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMFAIL), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN), XA_RBROLLBACK);
	CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_RBROLLBACK);
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XAER_NOTA);	/* it is gone */
	CU_ASSERT_TRUE(peeks("ORDERS", "stays"));

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);		/* an operation in it failed */
	CU_ASSERT_TRUE(gets(1, "ORDERS", "stays"));
	fail_in_branch();
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "more"), TPETIME);		/* as in every transaction that is doomed */
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_RBROLLBACK);
	CU_ASSERT_EQUAL(xa_commit(&x, 1, TMONEPHASE), XA_RBROLLBACK);
	CU_ASSERT_TRUE(peeks("ORDERS", "stays"));

	CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);		/* suspending says it, too */
	fail_in_branch();
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUSPEND), XA_RBROLLBACK);
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMRESUME), XAER_NOTA);
	CU_ASSERT_EQUAL(xa_rollback(&x, 1, TMNOFLAGS), XA_OK);
	spaces_done(g);
}

/* ---- flags and ids ---- */

static void
flags_and_ids_are_checked(void)
{
	static const struct { int (*call)(const XID *, int, long); long good; } calls[] = { { xa_start, TMJOIN | TMRESUME | TMNOWAIT },
		{ xa_end, TMSUCCESS | TMFAIL | TMSUSPEND }, { xa_prepare, 0 }, { xa_commit, TMONEPHASE | TMNOWAIT }, { xa_rollback, 0 },
		{ xa_forget, 0 } };
	struct given *g = given_spaces();
	XID x = xa_id("flags", "1"), bad = x;
	size_t i;
	long bit;

	for (i = 0; i < sizeof calls / sizeof *calls; i++) {
		for (bit = 1; bit < TMASYNC; bit <<= 1)
			if ((bit & calls[i].good) == 0)
				CU_ASSERT_EQUAL(calls[i].call(&x, 1, bit), XAER_INVAL);
		CU_ASSERT_EQUAL(calls[i].call(&x, 1, TMASYNC), XAER_ASYNC);
		CU_ASSERT_EQUAL(calls[i].call(NULL, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
		bad = x;
		bad.formatID = -1;
		CU_ASSERT_EQUAL(calls[i].call(&bad, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
		bad = x;
		bad.gtrid_length = 0;
		CU_ASSERT_EQUAL(calls[i].call(&bad, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
		bad.gtrid_length = 65;
		CU_ASSERT_EQUAL(calls[i].call(&bad, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
		bad = x;
		bad.bqual_length = 65;
		CU_ASSERT_EQUAL(calls[i].call(&bad, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
		bad.bqual_length = -1;
		CU_ASSERT_EQUAL(calls[i].call(&bad, 1, calls[i].good & TMSUCCESS), XAER_INVAL);
	}
	CU_ASSERT_EQUAL(xa_start(&x, 1, TMJOIN | TMRESUME), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMNOFLAGS), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS | TMFAIL), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_forget(&x, 1, TMNOFLAGS), XAER_NOTA);
	spaces_done(g);
}

static void
ids_of_every_length_come_back_as_they_went(void)
{
	struct given *g = given_spaces();
	XID x[3], got[3];
	int i, k, found;

	for (i = 0; i < 3; i++) {
		memset(&x[i], 0, sizeof x[i]);
		x[i].formatID = i == 0 ? 0 : i == 1 ? -2 : 0x7fffffffffffffff;
		x[i].gtrid_length = i == 0 ? 1 : 64;
		x[i].bqual_length = i == 0 ? 0 : i == 1 ? 64 : 1;
		for (k = 0; k < x[i].gtrid_length + x[i].bqual_length; k++)
			x[i].data[k] = (char)(255 - k - i);
		CU_ASSERT_EQUAL(xa_start(&x[i], 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "x"), 0);
		CU_ASSERT_EQUAL(xa_end(&x[i], 1, TMSUCCESS), XA_OK);
		CU_ASSERT_EQUAL(xa_prepare(&x[i], 1, TMNOFLAGS), XA_OK);
	}
	CU_ASSERT_EQUAL(xa_in_doubt(1, got, 3), 3);
	for (i = 0; i < 3; i++) {
		for (k = 0, found = 0; k < 3; k++)
			found += xid_same(&x[i], &got[k]);
		CU_ASSERT_EQUAL(found, 1);
		CU_ASSERT_EQUAL(xa_commit(&x[i], 1, TMNOFLAGS), XA_OK);
	}
	spaces_done(g);
}

/* ---- recover ---- */

static void
recover_lists_what_is_in_doubt_page_by_page(void)
{
	enum { N = 7 };
	struct given *g = given_spaces();
	XID x[N], list[N + 1], active = xa_id("not", "prepared"), other = xa_id("other", "space");
	char b[64];
	int i, n;

	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMNOFLAGS), XAER_INVAL);		/* no scan is open */
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMENDRSCAN), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_recover(NULL, 1, 1, TMSTARTRSCAN), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_recover(list, -1, 1, TMSTARTRSCAN), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMSTARTRSCAN | TMNOWAIT), XAER_INVAL);
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMASYNC), XAER_ASYNC);
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMSTARTRSCAN | TMENDRSCAN), 0);
	for (i = 0; i < N; i++) {
		snprintf(b, sizeof b, "%d", i);
		x[i] = xa_id("recover", b);
		CU_ASSERT_EQUAL(xa_start(&x[i], 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_put(1, "ORDERS", b), 0);
		CU_ASSERT_EQUAL(xa_end(&x[i], 1, TMSUCCESS), XA_OK);
		CU_ASSERT_EQUAL(xa_prepare(&x[i], 1, TMNOFLAGS), XA_OK);
	}
	CU_ASSERT_EQUAL(xa_start(&active, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "active"), 0);
	CU_ASSERT_EQUAL(xa_end(&active, 1, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_start(&other, 2, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_put(2, "ORDERS", "prepared elsewhere"), 0);
	CU_ASSERT_EQUAL(xa_end(&other, 2, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(&other, 2, TMNOFLAGS), XA_OK);

	CU_ASSERT_EQUAL(xa_recover(NULL, 0, 1, TMSTARTRSCAN), 0);
	CU_ASSERT_EQUAL(xa_recover(list, 3, 1, TMNOFLAGS), 3);
	CU_ASSERT_EQUAL(xa_recover(list + 3, 3, 1, TMNOFLAGS), 3);
	CU_ASSERT_EQUAL(xa_recover(list + 6, 2, 1, TMENDRSCAN), 1);
	CU_ASSERT_EQUAL(xa_recover(list, 1, 1, TMNOFLAGS), XAER_INVAL);
	for (i = 0; i < N; i++) {
		int k, found = 0;
		for (k = 0; k < N; k++)
			found += xid_same(&x[i], &list[k]);
		CU_ASSERT_EQUAL(found, 1);
	}
	CU_ASSERT_EQUAL(xa_recover(list, 2, 1, TMSTARTRSCAN), 2);
	CU_ASSERT_EQUAL(xa_recover(list, N + 1, 1, TMSTARTRSCAN | TMENDRSCAN), N);	/* begins anew */
	CU_ASSERT_EQUAL(xa_recover(list, 2, 2, TMSTARTRSCAN | TMENDRSCAN), 1);
	CU_ASSERT_TRUE(xid_same(&list[0], &other));
	for (i = 0; i < N; i++)
		CU_ASSERT_EQUAL((i % 2 == 0 ? xa_commit : xa_rollback)(&x[i], 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_rollback(&active, 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_rollback(&other, 2, TMNOFLAGS), XA_OK);
	for (n = 0; xa_take(1, "ORDERS", b) == 0; n++)
		;
	CU_ASSERT_EQUAL(n, (N + 1) / 2);
	spaces_done(g);
}

static void	/* More than fit into one answer of the queue manager. */
recover_lists_many(void)
{
	enum { N = 1100 };
	struct given *g = given_system(&(struct given_conf){ .spaces = 1, .space = "8000 20 1500 50 3000 ERRQ n 16", .queues = QUEUES });
	static XID list[N + 10];
	char b[20];
	XID x;
	int i;

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	for (i = 0; i < N; i++) {
		snprintf(b, sizeof b, "%d", i);
		x = xa_id("many", b);
		CU_ASSERT_EQUAL_FATAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL_FATAL(xa_put(1, "ORDERS", b), 0);
		CU_ASSERT_EQUAL_FATAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
		CU_ASSERT_EQUAL_FATAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
	}
	CU_ASSERT_EQUAL(xa_in_doubt(1, list, N + 10), N);
	for (i = 0; i < N; i++)
		CU_ASSERT_EQUAL_FATAL(xa_commit(&list[i], 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_in_doubt(1, NULL, 0), 0);
	CU_ASSERT_EQUAL(depth_in(g, 1, "ORDERS"), N);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	given_done(g);
}

static void
the_limit_of_transactions_holds(void)
{
	struct given *g = given_system(&(struct given_conf){ .space = "4000 20 3 50 2000 ERRQ n 16", .queues = QUEUES });
	XID x[4];
	char b[20];
	int i;

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), 1, TMNOFLAGS), XA_OK);
	for (i = 0; i < 4; i++) {
		snprintf(b, sizeof b, "%d", i);
		x[i] = xa_id("limit", b);
		CU_ASSERT_EQUAL(xa_start(&x[i], 1, TMNOFLAGS), i < 3 ? XA_OK : XAER_RMERR);
		if (i < 3)
			CU_ASSERT_EQUAL(xa_end(&x[i], 1, TMSUCCESS), XA_OK);
	}
	for (i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(xa_rollback(&x[i], 1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	given_done(g);
}

/* ---- by hand ---- */

static void	/* The only transaction of the space is ended by an administrator. */
by_hand(const struct given *g, const char *command)
{
	char lines[200];

	snprintf(lines, sizeof lines, "qprinttrans\n%s -y 0\n", command);
	free(given_qmadmin_of(g, 1, lines));
}

static void
what_an_administrator_did_is_told_and_forgotten(void)
{
	static const struct { const char *command; int (*decided)(const XID *, int, long); int told; } rows[] = {
		{ "qcommittrans", xa_commit, XA_HEURCOM }, { "qcommittrans", xa_rollback, XA_HEURCOM },
		{ "qaborttrans", xa_commit, XA_HEURRB }, { "qaborttrans", xa_rollback, XA_HEURRB } };
	struct given *g = given_spaces();
	XID x, got[2];
	char b[20];
	size_t i;

	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(b, sizeof b, "%zu", i);
		x = xa_id("hand", b);
		CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_put(1, "ORDERS", b), 0);
		CU_ASSERT_EQUAL(xa_end(&x, 1, TMSUCCESS), XA_OK);
		CU_ASSERT_EQUAL(xa_prepare(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_forget(&x, 1, TMNOFLAGS), XAER_PROTO);	/* nothing heuristic about it */
		by_hand(g, rows[i].command);
		CU_ASSERT_EQUAL(xa_in_doubt(1, got, 2), 1);			/* it has still to be told */
		CU_ASSERT_TRUE(xid_same(&got[0], &x));
		CU_ASSERT_EQUAL(rows[i].decided(&x, 1, TMNOFLAGS), rows[i].told);
		CU_ASSERT_EQUAL(rows[i].decided(&x, 1, TMNOFLAGS), rows[i].told);
		CU_ASSERT_EQUAL(xa_start(&x, 1, TMNOFLAGS), XAER_DUPID);
		CU_ASSERT_EQUAL(xa_forget(&x, 1, TMNOFLAGS), XA_OK);
		CU_ASSERT_EQUAL(xa_forget(&x, 1, TMNOFLAGS), XAER_NOTA);
		CU_ASSERT_EQUAL(rows[i].decided(&x, 1, TMNOFLAGS), XAER_NOTA);
		CU_ASSERT_EQUAL(xa_in_doubt(1, NULL, 0), 0);
	}
	CU_ASSERT_TRUE(gets(1, "ORDERS", "0") && gets(1, "ORDERS", "1") && is_empty(1, "ORDERS"));
	spaces_done(g);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(the_switch_says_what_it_is),
		UNIT(nothing_works_before_it_is_open),
		UNIT(open_takes_an_openinfo_of_the_configuration),
		UNIT(an_application_that_is_not_booted_cannot_be_opened),
		UNIT(one_that_is_at_work_is_not_closed),
		UNIT(two_spaces_commit_together),
		UNIT(rollback_brings_back_before_and_after_prepare),
		UNIT(one_branch_commits_in_one_phase),
		UNIT(a_prepared_branch_is_not_committed_in_one_phase),
		UNIT(a_branch_without_work_is_read_only),
		UNIT(an_id_is_used_once_and_joined_when_it_is_there),
		UNIT(while_it_is_suspended_the_thread_works_outside),
		UNIT(threads_join_a_branch_and_it_ends_when_all_have),
		UNIT(a_thread_that_ends_in_a_branch_leaves_it_rollback_only),
		UNIT(many_threads_work_in_branches_of_their_own),
		UNIT(a_branch_is_of_the_thread_whatever_its_context),
		UNIT(a_branch_is_joined_and_ended_by_any_process),
		UNIT(a_child_opens_for_itself),
		UNIT(atmi_transactions_and_branches_exclude_each_other),
		UNIT(what_has_no_branch_is_refused_unless_it_is_to_stay_outside),
		UNIT(what_failed_is_rolled_back_whoever_ends_it),
		UNIT(flags_and_ids_are_checked),
		UNIT(ids_of_every_length_come_back_as_they_went),
		UNIT(recover_lists_what_is_in_doubt_page_by_page),
		UNIT(recover_lists_many),
		UNIT(the_limit_of_transactions_holds),
		UNIT(what_an_administrator_did_is_told_and_forgotten),
	};

	if (argc == 3 && strcmp(argv[0], "driver") == 0)
		return strcmp(argv[1], "contexts") == 0 ? driver_contexts(argv[2]) : driver_joins(argv[2]);
	return unit_run("story: XA", tests, UNIT_COUNT(tests));
}
