/*
 * In doubt: what a prepared branch holds is in nobody's way, before and after a crash, and comes as it would have come.
 */
#include <errno.h>

#include "given_space.h"
#include "qspace_impl.h"

/* "orders" has one, two, three; in doubt, one (by id 1) is taken and A, B, C are put; "quick" is another queue of the branch. */
struct doubt { struct given_space *g; uint8_t taken[TMMSGIDLEN], put[TMMSGIDLEN]; };

static struct qmsg_in
with_corrid(const char *body)
{
	struct qmsg_in in = text(body);

	in.flags = TPQCORRID;
	memset(in.corrid, 'c', sizeof in.corrid);
	return in;
}

static struct doubt
given_doubt(void)
{
	struct doubt d = { .g = given_space(NULL) };
	struct branch *b;

	create_fifo(d.g, "orders", 5, 0);
	create_fifo(d.g, "quick", 5, 0);
	CU_ASSERT_EQUAL(put_in(d.g, NULL, "orders", with_corrid("one"), d.taken), 0);
	CU_ASSERT_EQUAL(put_in(d.g, NULL, "orders", with_corrid("two"), NULL), 0);
	b = tx(d.g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(d.g, b, "orders"), "one");
	CU_ASSERT_EQUAL(put_in(d.g, b, "orders", with_corrid("A"), d.put), 0);
	CU_ASSERT_EQUAL(put_in(d.g, b, "orders", text("B"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(d.g, b, "quick", text("C"), NULL), 0);
	CU_ASSERT_EQUAL(tx_prepare(d.g, b, "GROUP1"), 0);
	return d;
}

static const char *
selected(struct given_space *g, uint32_t flags, const uint8_t *id)
{
	struct qselect sel = { .flags = flags };
	static char body[64];
	struct qmsg *m;
	int rc;

	memset(sel.corrid, 'c', sizeof sel.corrid);
	if (id != NULL)
		memcpy(sel.msgid, id, sizeof sel.msgid);
	if ((rc = take(g, NULL, "orders", &sel, &m)) != 0)
		return rc == QMENOMSG ? "" : rc == QMEBADMSGID ? "?" : "!";
	snprintf(body, sizeof body, "%s", (const char *)m->body);
	qmsg_free(m);
	return body;
}

static long
listed(struct given_space *g, const char *queue)
{
	struct document in = { 0 }, out = { 0 };
	char *why = NULL;
	long n;

	record_set(document_add(&in), "queue", queue);
	CU_ASSERT_EQUAL(qadmin_run(g->qs, "qinfo", &in.rec[0], &out, &why), 0);
	document_free(&out);
	CU_ASSERT_EQUAL(qadmin_run(g->qs, "qlist", &in.rec[0], &out, &why), 0);
	n = (long)out.n;
	document_free(&in);
	document_free(&out);
	free(why);
	return n;
}

static void
nobody_is_held_up(struct doubt *d)
{
	struct given_space *g = d->g;
	struct queue_params p = queue_of("orders", QC_FIFO, 0, 0, 0);
	struct branch *b;

	/* what is held is passed over, by whatever way it is asked for */
	CU_ASSERT_STRING_EQUAL(selected(g, TPQPEEK, NULL), "two");
	CU_ASSERT_STRING_EQUAL(selected(g, TPQPEEK | TPQGETBYCORRID, NULL), "two");
	CU_ASSERT_STRING_EQUAL(selected(g, TPQGETBYMSGID, d->taken), "");
	CU_ASSERT_STRING_EQUAL(selected(g, TPQPEEK | TPQGETBYMSGID, d->taken), "");
	CU_ASSERT_STRING_EQUAL(selected(g, TPQGETBYMSGID, d->put), "");
	CU_ASSERT_FALSE(qspace_has_eligible(g->qs, "quick"));
	/* and its neighbours, on its page, come and go */
	CU_ASSERT_EQUAL(put(g, "orders", "three"), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	b = tx(g, "t2");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "three");
	CU_ASSERT_EQUAL(put_in(g, b, "quick", text("D"), NULL), 0);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "quick"), "D");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	/* administrators too */
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_EQUAL(stat_of(g, "quick").messages, 0);
	CU_ASSERT_TRUE(listed(g, "orders") >= 1);
	CU_ASSERT_TRUE(listed(g, "quick") >= 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), QMEINUSE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "quick", true), QMEINUSE);
	p.retries = 7;
	CU_ASSERT_EQUAL(qspace_queue_change(g->qs, &p), 0);
	commit(g);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", with_corrid("two"), NULL), 0);	/* as it was */
}

static void
all_came(struct given_space *g, bool committed)
{
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), committed ? "A" : "one");
	if (committed)
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "B");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "quick"), committed ? "C" : "");
	CU_ASSERT_STRING_EQUAL(next(g, "quick"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages + stat_of(g, "orders").held, 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", false), 0);
	commit(g);
}

static void
in_doubt_is_in_nobodys_way(void)
{
	for (int how = 0; how < 2; how++) {
		struct doubt d = given_doubt();

		nobody_is_held_up(&d);
		given_killed(d.g);
		nobody_is_held_up(&d);
		CU_ASSERT_STRING_EQUAL(selected(d.g, TPQGETBYCORRID, NULL), "two");
		CU_ASSERT_EQUAL(put_in(d.g, NULL, "orders", with_corrid("two"), NULL), 0);
		reopen(d.g);
		nobody_is_held_up(&d);
		given_killed(d.g);
		CU_ASSERT_STRING_EQUAL(next(d.g, "orders"), "two");
		CU_ASSERT_EQUAL(how == 0 ? tx_commit(d.g, find_tx(d.g, "t1")) : tx_roll_back(d.g, find_tx(d.g, "t1")), 0);
		all_came(d.g, how == 0);
		given_done(d.g);
	}
}

/* R27: A, B, C are prepared, the owner dies, the outcome comes after the recovery: in their order, each once. */
static void
r27_order_after_recovery(void)
{
	static const char *const body[] = { "A", "B", "C" };
	struct given_space *g = given_space(NULL);
	struct qselect look = { .flags = TPQPEEK };
	struct qmsg *m;
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	for (int i = 0; i < 3; i++) {
		b = tx(g, body[i]);
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text(body[i]), NULL), 0);
		CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
	}
	CU_ASSERT_EQUAL(put(g, "orders", "later"), 0);
	for (int kills = 0; kills < 3; kills++) {
		given_killed(g);
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", &look, &m), 0);
		CU_ASSERT_STRING_EQUAL((const char *)m->body, "later");
		qmsg_free(m);
	}
	for (int i = 2; i >= 0; i--) {		/* the last one first */
		CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, body[i])), 0);
		given_killed(g);
		CU_ASSERT_PTR_NULL(find_tx(g, body[i]));
	}
	for (int i = 0; i < 3; i++)
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body[i]);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "later");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_killed(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static bool fails;

static int
no_disk(int fd, size_t n)
{
	(void)n;
	return fails && fd >= 0 ? EIO : 0;
}

/*
 * The disk fails in a batch: of prepare, of a commit, of by hand.  Whatever is found on the disk then, it is all or nothing, and the
 * branch can still be ended: R27, a rollback after a commit that failed.
 */
static void
a_failing_disk_leaves_all_or_nothing(void)
{
	enum { PREPARE, COMMIT, BY_HAND, FORGET, N_HOW };

	for (int how = 0; how < N_HOW; how++) {
		struct given_space *g = given_space(NULL);
		struct branch *b;
		int rc;

		create_fifo(g, "orders", 5, 0);
		put(g, "orders", "old");
		b = tx(g, "t1");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "old");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("new"), NULL), 0);
		if (how != PREPARE)
			CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
		if (how == FORGET)
			CU_ASSERT_EQUAL(by_hand(g, b, false), 0);
		begin(g);
		env_fault = no_disk;
		fails = true;
		rc = how == PREPARE ? qspace_branch_prepare(g->qs, b, "GROUP1") : how == COMMIT ? qspace_branch_commit(g->qs, b) :
		    how == BY_HAND ? qspace_branch_by_hand(g->qs, b, true) : qspace_branch_forget(g->qs, b);
		if (rc == 0)
			rc = qspace_batch_commit(g->qs);
		CU_ASSERT_NOT_EQUAL(rc, 0);
		qspace_batch_abort(g->qs);
		fails = false;
		env_fault = NULL;
		begin(g);			/* recovered in place */
		commit(g);
		b = find_tx(g, "t1");
		if (how == PREPARE || how == COMMIT) {	/* not decided: nothing else may have happened to it */
			CU_ASSERT_PTR_NOT_NULL_FATAL(b);
			CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "old");
		} else if (b != NULL && qspace_branch_state(b) == BR_PREPARED) {
			CU_ASSERT_EQUAL(by_hand(g, b, true), 0);
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "new");
		} else if (how == BY_HAND) {
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "new");
		} else {
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "old");
		}
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		if ((b = find_tx(g, "t1")) != NULL) {
			begin(g);
			CU_ASSERT_EQUAL(qspace_branch_forget(g->qs, b), 0);
			commit(g);
		}
		given_killed(g);
		CU_ASSERT_PTR_NULL(find_tx(g, "t1"));
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		given_done(g);
	}
}

static void	/* prepared, rolled back: the retry counts, and is durable; with none left it goes to the error queue */
a_prepared_one_that_is_rolled_back_counts(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	struct qmsg *m;

	create_fifo(g, "orders", 1, 0);
	create_fifo(g, "ERRQ", 0, 0);
	put(g, "orders", "bad");
	for (int i = 0; i < 2; i++) {
		b = tx(g, "t1");
		CU_ASSERT_EQUAL_FATAL(take(g, b, "orders", NULL, &m), 0);
		CU_ASSERT_EQUAL(m->retries, i);
		qmsg_free(m);
		CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
		given_killed(g);
		CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "t1")), 0);
		given_killed(g);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "bad");
	given_done(g);
}

static void	/* over a close in good order; a crash loses those in memory, and nothing else of it (D7) */
memory_messages_in_doubt(void)
{
	for (int kill = 0; kill < 2; kill++) {
		struct given_space *g = given_space(NULL);
		struct qmsg_in in = text("light");
		struct branch *b;

		create_fifo(g, "orders", 5, 0);
		in.flags = TPQDELIVERYQOS;
		in.delivery_qos = TPQQOSNONPERSISTENT;
		b = tx(g, "t1");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", in, NULL), 0);
		CU_ASSERT_EQUAL(put_in(g, b, "orders", text("heavy"), NULL), 0);
		CU_ASSERT_EQUAL(tx_prepare(g, b, "GROUP1"), 0);
		if (kill)
			given_killed(g);
		else
			reopen(g);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "t1")), 0);
		if (!kill)
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "light");
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "heavy");
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		given_done(g);
	}
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(in_doubt_is_in_nobodys_way),
		UNIT(r27_order_after_recovery),
		UNIT(a_failing_disk_leaves_all_or_nothing),
		UNIT(a_prepared_one_that_is_rolled_back_counts),
		UNIT(memory_messages_in_doubt),
	};

	return unit_run("qspace branches in doubt", tests, UNIT_COUNT(tests));
}
