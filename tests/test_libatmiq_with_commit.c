/*
 * atmiq_enqueue_commit() as its caller sees it: when it is one request, what the answer, or none, means, and what else it does.
 */
#include "fake_application.h"
#include "ext/atmiq_ext.h"

enum { LARGE = 40000 };

/* A transaction that n groups have joined, GRP01 first, and that has so many seconds. */
static void
given_short_transaction(struct fake *f, char *b, int n, unsigned long seconds)
{
	char space[16];

	CU_ASSERT_EQUAL_FATAL(tpbegin(seconds, 0), 0);
	for (int i = 1; i <= n; i++) {
		snprintf(space, sizeof space, "SPACE%02d", i);
		FAKE(f, snprintf(f->qreply.group, sizeof f->qreply.group, "GRP%02d", i));
		CU_ASSERT_EQUAL(tpenqueue(space, "Q", NULL, b, 0, 0), 0);
	}
	FAKE(f, strcpy(f->qreply.group, "GRP01"); f->n_txend = f->n_enqueue = 0);
}

static void
given_transaction(struct fake *f, char *b, int n)
{
	given_short_transaction(f, b, n, 30);
}

static char *
given_buffer(long size)
{
	char *b = tpalloc("STRING", NULL, size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	memset(b, 'x', (size_t)size - 1);
	b[size - 1] = '\0';
	return b;
}

/* 0, or tperrno. */
static int
finish(char *space, char *b, TPQCTL *ctl)
{
	*ctl = (TPQCTL){ .flags = TPNOFLAGS };
	return atmiq_enqueue_commit(space, "Q", ctl, b, 0, TPNOTIME) == 0 ? 0 : tperrno;
}

static void
it_is_one_request_where_one_group_joined(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer(8);
	TPQCTL ctl;

	given_transaction(f, b, 1);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), 0);
	CU_ASSERT_TRUE(seen(f)->n_enqueue == 1 && seen(f)->enqueue.commits);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 0);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);	/* nothing is left of it */
	CU_ASSERT_EQUAL(tpabort(0), 0);
	tpfree(b);
	fake_done(f);
}

static void
its_answer_is_that_of_tpcommit(void)
{
	static const struct { int error, outcome, is; } table[] = {
		{ TPEABORT, WIRE_OUT_ROLLED_BACK, TPEABORT }, { TPEABORT, WIRE_OUT_NONE_SUCH, TPEABORT },
		{ 0, WIRE_OUT_HEUR_COMMITTED, 0 }, { TPESYSTEM, WIRE_OUT_NONE, TPESYSTEM }, { TPEPROTO, WIRE_OUT_NONE, TPESYSTEM },
	};
	struct fake *f = fake_application();
	char *b = given_buffer(8);
	TPQCTL ctl;

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		given_transaction(f, b, 1);
		FAKE(f, f->txreply.error = table[i].error; f->txreply.outcome = (uint8_t)table[i].outcome);
		CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), table[i].is);
		CU_ASSERT_EQUAL(tpgetlev(), 0);
	}
	tpfree(b);
	fake_done(f);
}

static void
refused_it_leaves_the_transaction(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer(8);
	TPQCTL ctl;

	given_transaction(f, b, 1);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMEINVAL);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMEINVAL);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 0);
	FAKE(f, f->qreply.error = 0; f->qreply.diagnostic = 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	tpfree(b);
	fake_done(f);
}

static void	/* As with tpcommit(): it may have happened. */
without_an_answer_the_outcome_is_unknown(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer(8);
	TPQCTL ctl;

	given_transaction(f, b, 1);
	FAKE(f, f->die_after_request = true);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), TPETIME);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	given_short_transaction(f, b, 1, 1);
	FAKE(f, f->silent = true);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), TPETIME);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	FAKE(f, f->silent = false);
	tpfree(b);
	fake_done(f);
}

static void
else_it_is_an_enqueue_and_a_commit(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer(8), *large = given_buffer(LARGE);
	TPQCTL ctl;

	given_transaction(f, b, 2);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), 0);			/* a second group has a say */
	CU_ASSERT_TRUE(seen(f)->n_enqueue == 1 && !seen(f)->enqueue.commits);
	CU_ASSERT_TRUE(seen(f)->n_txend == 1 && seen(f)->txend.op == WIRE_TX_COMMIT && seen(f)->txend.groups.n == 2);
	given_transaction(f, b, 1);
	CU_ASSERT_EQUAL(finish("SPACE01", b, &ctl), 0);			/* whose it is only the answer tells */
	CU_ASSERT_TRUE(!seen(f)->enqueue.commits && seen(f)->n_txend == 1);
	given_transaction(f, b, 1);
	CU_ASSERT_EQUAL(finish("..GRP01", large, &ctl), 0);
	CU_ASSERT_TRUE(!seen(f)->enqueue.commits && seen(f)->n_txend == 1);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	tpfree(b);
	tpfree(large);
	fake_done(f);
}

static void
so_done_it_goes_on_without_a_queue_too(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer(8);
	TPQCTL ctl;

	given_transaction(f, b, 2);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMEBADQUEUE);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), 0);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 1);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	FAKE(f, f->qreply.error = 0; f->qreply.diagnostic = 0);
	given_transaction(f, b, 2);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMEINVAL);
	CU_ASSERT_EQUAL(finish("..GRP01", b, &ctl), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMEINVAL);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	tpfree(b);
	fake_done(f);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(it_is_one_request_where_one_group_joined), UNIT(its_answer_is_that_of_tpcommit),
		UNIT(refused_it_leaves_the_transaction), UNIT(without_an_answer_the_outcome_is_unknown),
		UNIT(else_it_is_an_enqueue_and_a_commit), UNIT(so_done_it_goes_on_without_a_queue_too),
	};

	return unit_run("libatmiq: an enqueue that commits", tests, UNIT_COUNT(tests));
}
