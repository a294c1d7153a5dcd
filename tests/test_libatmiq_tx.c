/*
 * TX: which result each outcome of a transaction gives, in chained mode too.  Queue manager and bulletin board are threads of the
 * test that answer as they are told (fake_application.h).
 */
#include <sched.h>

#include "fake_application.h"
#include "gtt.h"
#include "tx.h"

static struct fake *
given_tx(void)
{
	struct fake *f = fake_application();

	FAKE(f, strcpy(f->qreply.group, "QUE1"));
	CU_ASSERT_EQUAL(tx_open(), TX_OK);
	return f;
}

static void
work(void)
{
	char *b = tpalloc("STRING", NULL, 10);

	strcpy(b, "work");
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	tpfree(b);
}

static void
answers(struct fake *f, int error, int outcome)
{
	FAKE(f, f->txreply.error = error; f->txreply.outcome = (uint8_t)outcome);
}

static const struct outcome { int error, outcome, commit, rollback; } outcomes[] = {
	{ 0, WIRE_OUT_COMMITTED, TX_OK, 1 },
	{ 0, WIRE_OUT_ROLLED_BACK, 1, TX_OK },
	{ 0, WIRE_OUT_NONE_SUCH, 1, TX_OK },
	{ 0, WIRE_OUT_HEUR_COMMITTED, TX_OK, 1 },
	{ 0, WIRE_OUT_HEUR_ROLLED_BACK, 1, TX_OK },
	{ TPEABORT, WIRE_OUT_ROLLED_BACK, TX_ROLLBACK, 1 },
	{ TPEABORT, WIRE_OUT_NONE_SUCH, TX_ROLLBACK, 1 },
	{ TPEABORT, WIRE_OUT_HEUR_ROLLED_BACK, TX_ROLLBACK, 1 },
	{ TPEHEURISTIC, WIRE_OUT_HEUR_MIXED, TX_MIXED, TX_MIXED },
	{ TPEHEURISTIC, WIRE_OUT_HEUR_COMMITTED, 1, TX_COMMITTED },
	{ TPEHAZARD, WIRE_OUT_HEUR_HAZARD, TX_HAZARD, TX_HAZARD },
};

static void	/* What the queue manager answers, and what the program is told; 1 in the table: cannot be. */
each_outcome_has_its_result(void)
{
	struct fake *f = given_tx();

	for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
		const struct outcome *o = &outcomes[i];

		answers(f, o->error, o->outcome);
		if (o->commit != 1) {
			CU_ASSERT_EQUAL(tx_begin(), TX_OK);
			work();
			CU_ASSERT_EQUAL(tx_commit(), o->commit);
			CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_COMMIT);
			CU_ASSERT_EQUAL(tx_info(NULL), 0);
		}
		if (o->rollback != 1) {
			CU_ASSERT_EQUAL(tx_begin(), TX_OK);
			work();
			CU_ASSERT_EQUAL(tx_rollback(), o->rollback);
			CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);
			CU_ASSERT_EQUAL(tx_info(NULL), 0);
		}
	}
	answers(f, TPETIME, WIRE_OUT_NONE);		/* it did not know in time */
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	work();
	CU_ASSERT_EQUAL(tx_commit(), TX_HAZARD);
	answers(f, TPESYSTEM, WIRE_OUT_NONE);		/* it cannot write: the log has why, and nothing begins */
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_CHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	work();
	CU_ASSERT_EQUAL(tx_commit(), TX_FAIL);
	CU_ASSERT_EQUAL(tx_info(NULL), 0);
	fake_done(f);
}

static void	/* Told to commit, and gone: nobody can know. */
an_unknown_outcome_is_a_hazard(void)
{
	struct fake *f = given_tx();

	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	work();
	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(tx_commit(), TX_HAZARD);
	CU_ASSERT_EQUAL(tx_info(NULL), 0);
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_CHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	work();
	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(tx_commit(), TX_HAZARD);
	CU_ASSERT_EQUAL(tx_info(NULL), 1);		/* in the next one */
	CU_ASSERT_EQUAL(tx_rollback(), TX_OK);
	fake_done(f);
}

static void	/* A commit that surely did not reach it is a rollback. */
one_that_cannot_be_told_is_rolled_back(void)
{
	struct fake *f = given_tx();

	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	work();
	fake_kill(f);
	CU_ASSERT_EQUAL(tpsblktime(300, TPBLK_ALL | TPBLK_MILLISECOND), 0);
	CU_ASSERT_EQUAL(tx_commit(), TX_ROLLBACK);
	CU_ASSERT_EQUAL(tx_info(NULL), 0);
	fake_done(f);
}

static void	/* A doomed one is rolled back by tx_commit(), with its settings as they are; chained, the next one begins. */
a_doomed_one_is_rolled_back(void)
{
	struct fake *f = given_tx();
	TXINFO info;
	TPQCTL ctl = { 0 };

	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_CHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_OK);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMEABORTED);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", &ctl, NULL, 0, 0), -1);
	CU_ASSERT_EQUAL(tx_info(&info), 1);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ROLLBACK_ONLY);
	FAKE(f, f->qreply.error = 0; f->qreply.diagnostic = 0);
	CU_ASSERT_EQUAL(tx_commit(), TX_ROLLBACK);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);
	CU_ASSERT_EQUAL(tx_info(&info), 1);
	CU_ASSERT_EQUAL(info.transaction_state, TX_ACTIVE);
	work();
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_UNCHAINED), TX_OK);
	CU_ASSERT_EQUAL(tx_commit(), TX_OK);
	CU_ASSERT_EQUAL(tx_info(&info), 0);
	fake_done(f);
}

/* --- the next transaction cannot begin: a table of transactions with one place, that another wants as well --- */

struct rival { struct gtt *table; pthread_t thread; atomic_bool stop, give; };

static void *
rival_run(void *arg)
{
	struct rival *r = arg;
	struct gtt_entry e = { .gtrid_len = 1, .deadline_us = GTT_NEVER };
	int slot;

	while (!r->stop) {
		if ((slot = gtt_claim(r->table, &e)) < 0)
			continue;
		while (!r->give && !r->stop)
			sched_yield();
		r->give = false;
		gtt_enter(r->table, (unsigned)slot, GTT_FREE);
		while (!r->give && !r->stop)		/* until the other one has it */
			sched_yield();
		r->give = false;
	}
	return NULL;
}

static void
given_one_place(struct fake *f, struct rival *r)
{
	struct gtt_entry e = { .gtrid_len = 1, .deadline_us = GTT_NEVER };
	struct ubb *u = NULL;
	char path[512], *why = NULL;
	long n;

	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(f->tuxconfig, &u, &why), 0);
	gtt_path(u->rundir, path, sizeof path);
	n = ubb_machine_here(u)->maxgtt;
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, (unsigned)n, 0600, &r->table, &why), 0);
	for (; n > 1; n--)
		CU_ASSERT_TRUE(gtt_claim(r->table, &e) >= 0);
	ubb_free(u);
}

/* In chained mode, until the place was lost between the end of one and the beginning of the next: the end's result. */
static int
result_without_a_next(struct rival *r, int (*end)(void))
{
	double until = (double)clock_mono_us() + 30e6;
	int result = 0;

	while (tx_begin() != TX_OK && (double)clock_mono_us() < until)
		r->give = true;			/* the rival has it */
	while (tx_info(NULL) == 1 && (double)clock_mono_us() < until) {
		r->give = true;			/* it may try */
		work();
		result = end();
	}
	return result;
}

static void
a_next_one_that_cannot_begin_is_told(void)
{
	struct rival r = { 0 };
	struct fake *f = fake_application();
	static const int no_begin[] = { TX_NO_BEGIN, TX_ROLLBACK_NO_BEGIN, TX_MIXED_NO_BEGIN, TX_HAZARD_NO_BEGIN, TX_COMMITTED_NO_BEGIN };

	CU_ASSERT_TRUE(no_begin[0] == -100 && no_begin[1] == -102 && no_begin[2] == -103 && no_begin[3] == -104 && no_begin[4] == -109);
	given_one_place(f, &r);
	FAKE(f, strcpy(f->qreply.group, "QUE1"));
	CU_ASSERT_EQUAL(tx_open(), TX_OK);
	CU_ASSERT_EQUAL(tx_set_transaction_control(TX_CHAINED), TX_OK);
	pthread_create(&r.thread, NULL, rival_run, &r);
	for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
		const struct outcome *o = &outcomes[i];

		answers(f, o->error, o->outcome);
		if (o->commit != 1)
			CU_ASSERT_EQUAL(result_without_a_next(&r, tx_commit), o->commit + TX_NO_BEGIN);
		if (o->rollback != 1)
			CU_ASSERT_EQUAL(result_without_a_next(&r, tx_rollback), o->rollback + TX_NO_BEGIN);
		CU_ASSERT_EQUAL(tx_info(NULL), 0);
	}
	CU_ASSERT_EQUAL(tx_begin(), TX_ERROR);		/* the rival has the place */
	r.stop = true;
	pthread_join(r.thread, NULL);
	gtt_close(r.table);
	fake_done(f);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(each_outcome_has_its_result),
		UNIT(an_unknown_outcome_is_a_hazard),
		UNIT(one_that_cannot_be_told_is_rolled_back),
		UNIT(a_doomed_one_is_rolled_back),
		UNIT(a_next_one_that_cannot_begin_is_told),
	};

	return unit_run("libatmiq: TX", tests, UNIT_COUNT(tests));
}
