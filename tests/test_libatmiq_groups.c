/*
 * A transaction that several groups joined, as the initiator sees it: who is told what at its end, and what an answer, or none, means.
 */
#include "fake_application.h"
#include "gtt.h"
#include "tx.h"

static char *
given_buffer(void)
{
	char *b = tpalloc("STRING", NULL, 8);

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	strcpy(b, "x");
	return b;
}

/* Enqueue in SPACEnn; its group joins. */
static int
use_space(struct fake *f, char *b, int n)
{
	char space[16];

	snprintf(space, sizeof space, "SPACE%02d", n);
	FAKE(f, snprintf(f->qreply.group, sizeof f->qreply.group, "GRP%02d", n));
	return tpenqueue(space, "Q", NULL, b, 0, 0);
}

/* A transaction that n groups have joined. */
static void
given_transaction(struct fake *f, char *b, int n)
{
	int i;

	CU_ASSERT_EQUAL_FATAL(tpbegin(30, 0), 0);
	for (i = 1; i <= n; i++)
		CU_ASSERT_EQUAL(use_space(f, b, i), 0);
	FAKE(f, f->n_txend = f->n_query = f->n_enqueue = 0);
}

static void
commit_is_one_message_with_all_groups(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	given_transaction(f, b, 3);
	CU_ASSERT_EQUAL(use_space(f, b, 2), 0);		/* once more: joined already */
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 1);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_COMMIT);
	CU_ASSERT_EQUAL(seen(f)->txend.groups.n, 3);
	CU_ASSERT_STRING_EQUAL(seen(f)->txend.groups.name[0], "GRP01");
	CU_ASSERT_STRING_EQUAL(seen(f)->txend.groups.name[2], "GRP03");
	CU_ASSERT_EQUAL(seen(f)->txend.logged, 0);
	CU_ASSERT_TRUE(seen(f)->txend.timeout_ms > 0 && seen(f)->txend.timeout_ms <= 10000);	/* BLOCKTIME */
	tpfree(b);
	fake_done(f);
}

static void	/* TPBLK_NEXT is for a call that can be told not to block: a short one neither shortens a commit nor is used up. */
the_time_of_the_next_call_is_not_that_of_a_commit(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	given_transaction(f, b, 3);
	CU_ASSERT_EQUAL(tpsblktime(50, TPBLK_NEXT | TPBLK_MILLISECOND), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_TRUE(seen(f)->txend.timeout_ms > 5000);
	given_transaction(f, b, 3);
	CU_ASSERT_EQUAL(tpsblktime(50, TPBLK_NEXT | TPBLK_MILLISECOND), 0);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_TRUE(seen(f)->txend.timeout_ms > 1000);
	CU_ASSERT_EQUAL(tpgblktime(TPBLK_NEXT | TPBLK_MILLISECOND), 50);
	CU_ASSERT_EQUAL(tpsblktime(4, TPBLK_ALL), 0);
	given_transaction(f, b, 3);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_TRUE(seen(f)->txend.timeout_ms <= 4000);
	tpfree(b);
	fake_done(f);
}

static void
tpscmt_says_when_a_commit_is_answered(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	CU_ASSERT_EQUAL(tpscmt(TP_CMT_LOGGED), TP_CMT_COMPLETE);
	given_transaction(f, b, 2);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.logged, 1);
	CU_ASSERT_EQUAL(tx_open(), TX_OK);		/* TX has the same setting */
	CU_ASSERT_EQUAL(tx_set_commit_return(TX_COMMIT_COMPLETED), TX_OK);
	CU_ASSERT_EQUAL(tpscmt(TP_CMT_COMPLETE), TP_CMT_COMPLETE);
	given_transaction(f, b, 2);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.logged, 0);
	CU_ASSERT_EQUAL(tpscmt(3), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	tpfree(b);
	fake_done(f);
}

static void
what_the_coordinator_answers_is_what_tpcommit_says(void)
{
	static const struct { int error, outcome, is; } table[] = {
		{ 0, WIRE_OUT_COMMITTED, 0 }, { 0, WIRE_OUT_HEUR_COMMITTED, 0 }, { TPEABORT, WIRE_OUT_ROLLED_BACK, TPEABORT },
		{ TPEABORT, WIRE_OUT_NONE_SUCH, TPEABORT }, { TPEABORT, WIRE_OUT_HEUR_ROLLED_BACK, TPEABORT },
		{ TPEHEURISTIC, WIRE_OUT_HEUR_MIXED, TPEHEURISTIC }, { TPEHAZARD, WIRE_OUT_HEUR_HAZARD, TPEHAZARD },
		{ TPETIME, WIRE_OUT_NONE, TPETIME }, { TPESYSTEM, WIRE_OUT_NONE, TPESYSTEM }, { TPEPROTO, WIRE_OUT_NONE, TPESYSTEM },
	};
	struct fake *f = fake_application();
	char *b = given_buffer();
	size_t i;

	for (i = 0; i < sizeof table / sizeof table[0]; i++) {
		given_transaction(f, b, 2);
		FAKE(f, f->txreply.error = table[i].error; f->txreply.outcome = (uint8_t)table[i].outcome);
		CU_ASSERT_EQUAL(tpcommit(0), table[i].is == 0 ? 0 : -1);
		if (table[i].is != 0)
			CU_ASSERT_EQUAL(tperrno, table[i].is);
		CU_ASSERT_EQUAL(tpgetlev(), 0);		/* over, whatever it says */
	}
	tpfree(b);
	fake_done(f);
}

static void
rollback_goes_to_every_group(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	given_transaction(f, b, 3);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 3);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(seen(f)->txend.why.text, "rolled back by its program"));
	given_transaction(f, b, 3);
	FAKE(f, f->txreply.error = TPEHEURISTIC; f->txreply.outcome = WIRE_OUT_HEUR_COMMITTED);
	CU_ASSERT_EQUAL(tpabort(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEHEURISTIC);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	given_transaction(f, b, 2);
	FAKE(f, f->txreply.error = TPEHAZARD);
	CU_ASSERT_EQUAL(tpabort(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEHAZARD);
	tpfree(b);
	fake_done(f);
}

static void
a_doomed_one_is_rolled_back_in_every_group(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	given_transaction(f, b, 2);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMESYSTEM);
	CU_ASSERT_EQUAL(use_space(f, b, 3), -1);	/* it refused, and may have joined */
	FAKE(f, f->qreply.error = 0; f->qreply.diagnostic = 0; f->n_enqueue = 0);
	CU_ASSERT_EQUAL(use_space(f, b, 1), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(seen(f)->n_enqueue, 0);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_EQUAL(seen(f)->n_txend, 3);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(seen(f)->txend.why.text, "queue operation on SPACE03"));
	tpfree(b);
	fake_done(f);
}

static void
one_group_more_than_may_join(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();
	long len;

	given_transaction(f, b, WIRE_MAX_GROUPS);
	CU_ASSERT_EQUAL(use_space(f, b, 33), -1);
	CU_ASSERT_EQUAL(tperrno, TPETRAN);
	CU_ASSERT_EQUAL(seen(f)->n_enqueue, 0);		/* nothing was sent */
	CU_ASSERT_EQUAL(use_space(f, b, 32), 0);	/* and the transaction is as good as before */
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.groups.n, WIRE_MAX_GROUPS);
	given_transaction(f, b, WIRE_MAX_GROUPS);
	FAKE(f, f->reply.groups.n = 1; strcpy(f->reply.groups.name[0], "GRP99"));
	CU_ASSERT_EQUAL(tpcall("TOUPPER", b, 0, &b, &len, 0), 0);	/* known only now */
	CU_ASSERT_EQUAL(use_space(f, b, 1), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	tpfree(b);
	fake_done(f);
}

static void
a_group_that_joined_is_preferred(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();
	int i;

	given_transaction(f, b, 2);			/* both: whichever is less busy, in turn */
	FAKE(f, strcpy(f->qreply.group, "GRP01"));
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(tpenqueue("BOTH", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_second, 3);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	given_transaction(f, b, 1);
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(tpenqueue("BOTH", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(seen(f)->n_second, 3);
	CU_ASSERT_EQUAL(tpenqueue("BOTH", "Q", NULL, b, 0, TPNOTRAN), 0);	/* no preference outside */
	CU_ASSERT_EQUAL(tpenqueue("BOTH", "Q", NULL, b, 0, TPNOTRAN), 0);
	CU_ASSERT_EQUAL(seen(f)->n_second, 4);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	tpfree(b);
	fake_done(f);
}

static void
no_room_for_a_transaction_more_is_not_joined(void)
{
	struct fake *f = fake_application();
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *b = given_buffer();

	given_transaction(f, b, 1);
	FAKE(f, f->qreply.error = TPEDIAGNOSTIC; f->qreply.diagnostic = QMENOSPACE; f->qreply.group[0] = '\0');
	CU_ASSERT_EQUAL(tpenqueue("SPACE02", "Q", &ctl, b, 0, 0), -1);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMENOSPACE);
	FAKE(f, f->qreply.error = 0; f->qreply.diagnostic = 0);
	CU_ASSERT_EQUAL(use_space(f, b, 3), 0);		/* not doomed */
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.groups.n, 2);
	CU_ASSERT_STRING_EQUAL(seen(f)->txend.groups.name[1], "GRP03");
	tpfree(b);
	fake_done(f);
}

/* ---- the coordinator is gone after it was told ---- */

static int	/* tperrno of the commit, or 0 */
commit_and_lose(struct fake *f, char *b, int groups)
{
	given_transaction(f, b, groups);
	FAKE(f, f->die_after_request = true);
	return tpcommit(0) == 0 ? 0 : tperrno;
}

static void
the_record_of_the_decision_is_believed(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	FAKE(f, f->query = (struct wire_txreply){ .outcome = WIRE_OUT_COMMITTED });
	CU_ASSERT_EQUAL(commit_and_lose(f, b, 2), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_QUERY);
	CU_ASSERT_TRUE(seen(f)->txend.tx.gtrid_len > 0);
	FAKE(f, f->undecided = 2);
	CU_ASSERT_EQUAL(commit_and_lose(f, b, 3), 0);
	CU_ASSERT_EQUAL(seen(f)->n_query, 3);
	tpfree(b);
	fake_done(f);
}

static void	/* It may have been removed since. */
that_there_is_no_record_is_not_believed(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	FAKE(f, f->query = (struct wire_txreply){ .outcome = WIRE_OUT_ROLLED_BACK });
	CU_ASSERT_EQUAL(commit_and_lose(f, b, 2), TPETIME);
	CU_ASSERT_EQUAL(seen(f)->n_query, 1);
	CU_ASSERT_EQUAL(tpsblktime(1, TPBLK_ALL), 0);
	FAKE(f, f->undecided = 1000);			/* as long as the caller's time */
	CU_ASSERT_EQUAL(commit_and_lose(f, b, 2), TPETIME);
	CU_ASSERT_TRUE(seen(f)->n_query > 3);
	FAKE(f, f->undecided = 0; f->query.outcome = WIRE_OUT_COMMITTED);
	CU_ASSERT_EQUAL(commit_and_lose(f, b, 1), TPETIME);	/* one group makes no record */
	CU_ASSERT_EQUAL(seen(f)->n_query, 0);
	tpfree(b);
	fake_done(f);
}

static void
a_coordinator_that_does_not_answer_is_a_timeout(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();

	given_transaction(f, b, 2);
	FAKE(f, f->silent = true);
	CU_ASSERT_EQUAL(tpsblktime(1, TPBLK_ALL), 0);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(seen(f)->txend.op, WIRE_TX_ABORT);	/* the other group is told, and does not answer either */
	FAKE(f, f->silent = false);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	tpfree(b);
	fake_done(f);
}

/* ---- the table of transactions, and suspended ones ---- */

static struct gtt *
given_table(struct fake *f)
{
	struct gtt *g = NULL;
	char path[256], dir[200], *why = NULL;

	snprintf(dir, sizeof dir, "%s", f->endpoint + strlen("ipc://"));
	*strrchr(dir, '/') = '\0';
	gtt_path(dir, path, sizeof path);
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, 100, 0600, &g, &why), 0);
	return g;
}

static unsigned
entries(const struct gtt *g, struct gtt_entry *last)
{
	unsigned i, n = 0;

	for (i = 0; i < gtt_slots(g); i++)
		n += gtt_read(g, i, last);
	return n;
}

static void
a_transaction_is_in_the_table_until_it_ends(void)
{
	struct fake *f = fake_application();
	struct gtt *g = given_table(f);
	struct gtt_entry e;
	char *b = given_buffer();
	TPTRANID id;

	given_transaction(f, b, 0);
	CU_ASSERT_EQUAL(entries(g, &e), 1);
	CU_ASSERT_EQUAL(e.state, GTT_ACTIVE);
	CU_ASSERT_EQUAL(e.pid, getpid());
	FAKE(f, strcpy(f->qreply.group, "QUE1"));
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 1);
	CU_ASSERT_EQUAL(e.n_groups, 1);
	CU_ASSERT_EQUAL(e.grpno[0], 1);
	CU_ASSERT_TRUE(e.gtrid_len == seen(f)->enqueue.tx.gtrid_len && memcmp(e.gtrid, seen(f)->enqueue.tx.gtrid, e.gtrid_len) == 0);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 1);
	CU_ASSERT_EQUAL(e.state, GTT_SUSPENDED);
	CU_ASSERT_EQUAL(tpresume(&id, 0), 0);
	FAKE(f, f->qreply.doomed = 1);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 1);
	CU_ASSERT_TRUE(e.doomed);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(entries(g, &e), 0);
	given_transaction(f, b, 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 0);
	given_transaction(f, b, 0);
	CU_ASSERT_EQUAL(tpterm(), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 0);
	gtt_close(g);
	tpfree(b);
	fake_done(f);
}

static void	/* Whatever fills the table: MAXGTT is 100 here. */
no_transaction_more_than_maxgtt(void)
{
	struct fake *f = fake_application();
	struct gtt *g = given_table(f);
	struct gtt_entry e;
	TPTRANID id[100];
	char *b = given_buffer();
	int i;

	for (i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(tpbegin(60, 0), 0);
		CU_ASSERT_EQUAL(tpsuspend(&id[i], 0), 0);
	}
	CU_ASSERT_EQUAL(tpbegin(60, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETRAN);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(tx_open(), TX_OK);
	CU_ASSERT_EQUAL(tx_begin(), TX_ERROR);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), 0);	/* without one */
	CU_ASSERT_EQUAL(tpresume(&id[50], 0), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(tpbegin(60, 0), 0);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	for (i = 0; i < 100; i++)
		if (i != 50) {
			CU_ASSERT_EQUAL(tpresume(&id[i], 0), 0);
			CU_ASSERT_EQUAL(tpabort(0), 0);
		}
	CU_ASSERT_EQUAL(entries(g, &e), 0);
	gtt_close(g);
	tpfree(b);
	fake_done(f);
}

static void	/* Nothing of a transaction rests on the table. */
without_a_table_everything_else_works(void)
{
	struct fake *f = fake_application();
	char *b = given_buffer();
	TPTRANID id;

	given_transaction(f, b, 2);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	CU_ASSERT_EQUAL(tpresume(&id, 0), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.groups.n, 2);
	CU_ASSERT_EQUAL(tpresume(&id, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEMATCH);
	tpfree(b);
	fake_done(f);
}

static void	/* GRP01 is not in TUXCONFIG: its number would not bring the name back. */
a_group_without_a_number_keeps_the_transaction_in_its_process(void)
{
	struct fake *f = fake_application();
	struct gtt *g = given_table(f);
	char *b = given_buffer();
	struct gtt_entry e;
	TPTRANID id;

	given_transaction(f, b, 2);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	CU_ASSERT_EQUAL(entries(g, &e), 1);
	CU_ASSERT_TRUE(e.state == GTT_SUSPENDED && e.tied);
	CU_ASSERT_EQUAL(tpresume(&id, 0), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(seen(f)->txend.groups.n, 2);
	CU_ASSERT_EQUAL(entries(g, &e), 0);
	gtt_close(g);
	tpfree(b);
	fake_done(f);
}

static void	/* Each line a reason for which tpresume() or tpsuspend() fails. */
what_cannot_be_suspended_or_resumed(void)
{
	struct fake *f = fake_application();
	struct gtt *g = given_table(f);
	TPTRANID id, none;
	char *b = given_buffer();
	int cd;

	CU_ASSERT_EQUAL(tpsuspend(NULL, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	CU_ASSERT_EQUAL(tpsuspend(&id, 1), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), -1);		/* in no transaction */
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	memset(&none, 0xff, sizeof none);
	CU_ASSERT_EQUAL(tpresume(&none, 0), -1);	/* no identifier */
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	CU_ASSERT_EQUAL(tpresume(NULL, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	FAKE(f, f->silent = true);
	CU_ASSERT_TRUE((cd = tpacall("TOUPPER", b, 0, 0)) > 0);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), -1);		/* a reply is outstanding */
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	FAKE(f, f->silent = false);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(tpresume(&id, 0), -1);		/* in a transaction already */
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	CU_ASSERT_EQUAL(tpabort(0), 0);
	none = id;
	none.info[0] ^= 1;
	CU_ASSERT_EQUAL(tpresume(&none, 0), -1);	/* unknown */
	CU_ASSERT_EQUAL(tperrno, TPETRAN);
	CU_ASSERT_EQUAL(tpresume(&id, 0), 0);
	CU_ASSERT_EQUAL(tpcommit(0), 0);
	CU_ASSERT_EQUAL(tpresume(&id, 0), -1);		/* ended */
	CU_ASSERT_EQUAL(tperrno, TPETRAN);
	CU_ASSERT_EQUAL(tpbegin(30, 0), 0);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	gtt_resume(g, (unsigned)id.info[4] - 1, (const uint8_t *)id.info, (size_t)id.info[5], &(struct gtt_entry){ 0 });
	CU_ASSERT_EQUAL(tpresume(&id, 0), -1);		/* somebody else was faster */
	CU_ASSERT_EQUAL(tperrno, TPEMATCH);
	gtt_close(g);
	tpfree(b);
	fake_done(f);
}

static void	/* The time of a transaction runs while it is suspended. */
a_suspended_transaction_can_be_too_late(void)
{
	struct fake *f = fake_application();
	struct gtt *g = given_table(f);
	char *b = given_buffer();
	TPTRANID id;

	CU_ASSERT_EQUAL(tpbegin(1, 0), 0);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), 0);
	usleep(1100000);
	CU_ASSERT_EQUAL(tpresume(&id, 0), 0);
	CU_ASSERT_EQUAL(tpenqueue("QSPACE", "Q", NULL, b, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPETIME);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_EQUAL(tpsuspend(&id, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	gtt_close(g);
	tpfree(b);
	fake_done(f);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(commit_is_one_message_with_all_groups),
		UNIT(the_time_of_the_next_call_is_not_that_of_a_commit),
		UNIT(tpscmt_says_when_a_commit_is_answered),
		UNIT(what_the_coordinator_answers_is_what_tpcommit_says),
		UNIT(rollback_goes_to_every_group),
		UNIT(a_doomed_one_is_rolled_back_in_every_group),
		UNIT(one_group_more_than_may_join),
		UNIT(a_group_that_joined_is_preferred),
		UNIT(no_room_for_a_transaction_more_is_not_joined),
		UNIT(the_record_of_the_decision_is_believed),
		UNIT(that_there_is_no_record_is_not_believed),
		UNIT(a_coordinator_that_does_not_answer_is_a_timeout),
		UNIT(a_transaction_is_in_the_table_until_it_ends),
		UNIT(no_transaction_more_than_maxgtt),
		UNIT(without_a_table_everything_else_works),
		UNIT(a_group_without_a_number_keeps_the_transaction_in_its_process),
		UNIT(what_cannot_be_suspended_or_resumed),
		UNIT(a_suspended_transaction_can_be_too_late),
	};

	return unit_run("libatmiq groups", tests, UNIT_COUNT(tests));
}
