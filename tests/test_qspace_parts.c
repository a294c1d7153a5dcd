/*
 * Large bodies: written and read in slices over several batches, with all that can come between; and nothing is left.
 */
#include <errno.h>

#include "given_space.h"
#include "qspace_impl.h"

#define BIG (5 * PART_BYTES + 1000)

static uint8_t big[BIG];

static struct qmsg_in
large(uint8_t salt)
{
	struct qmsg_in in = { .type = "CARRAY", .subtype = "", .has_body = true, .body = big, .body_len = sizeof big };

	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + salt);
	return in;
}

static bool
is_large(const struct qmsg *m, uint8_t salt)
{
	(void)large(salt);
	return m != NULL && m->body_len == sizeof big && memcmp(m->body, big, sizeof big) == 0;
}

static void	/* until nothing is due */
settle(struct given_space *g)
{
	int64_t next_us;

	do {
		begin(g);
		next_us = qspace_tick(g->qs, clock_now_us());
		commit(g);
	} while (next_us <= clock_now_us());
}

static long	/* entries of the table of parts */
entries(struct given_space *g)
{
	struct walk w;
	long n = 0;

	begin(g);
	for (int np = 0; np < 2; np++) {
		int rc;
		for (rc = walk_first(g->qs, &w, T_PARTS, np, "", 0); rc == 0; rc = walk_next(g->qs, &w))
			n++;
		walk_end(g->qs, &w);
	}
	commit(g);
	return n;
}

static bool	/* neither slices nor marks nor reservations; `messages` small ones are all there is */
nothing_is_left(struct given_space *g, int64_t messages)
{
	int64_t records = 0;

	settle(g);
	for (int np = 0; np < 2; np++)
		for (struct segment *s = g->qs->env.seg[np].all; s != NULL; s = segment_next(s))
			records += segment_records(s);
	return entries(g) == 0 && records == messages && g->qs->used.messages == messages && g->qs->parts.pins == NULL &&
	    g->qs->parts.reserved.messages == 0 && g->qs->parts.reserved.pages == 0 && g->qs->parts.reserved.np_bytes == 0 &&
	    g->qs->held == NULL;
}

static struct spool *
spool(struct given_space *g, const struct qmsg_in *in)
{
	struct spool *sp = NULL;

	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_spool_begin(g->qs, "orders", in, &sp), 0);
	commit(g);
	return sp;
}

static void
slice(struct given_space *g, struct spool *sp)
{
	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_spool_write(sp, big, 1), 0);
	commit(g);
}

static struct fetch *
fetch(struct given_space *g, struct branch *b, const struct qselect *sel)
{
	struct fetch *f = NULL;
	struct qmsg *m = NULL;

	begin(g);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue_begin(g->qs, b, "orders", sel, &m, &f), 0);
	commit(g);
	CU_ASSERT_PTR_NULL(m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	return f;
}

static void
read_all(struct given_space *g, struct fetch *f)
{
	while (!qspace_fetch_whole(f)) {
		begin(g);
		CU_ASSERT_EQUAL_FATAL(qspace_fetch_read(f, 1), 0);
		commit(g);
	}
}

static int
take_large(struct given_space *g, struct branch *b, const char *queue, uint8_t salt)
{
	struct qmsg *m;
	int rc = take(g, b, queue, NULL, &m);

	if (rc == 0)
		CU_ASSERT_TRUE(is_large(m, salt));
	qmsg_free(m);
	return rc;
}

static void
a_large_body_comes_out_as_it_went_in(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 0, 0);
	for (int np = 0; np < 2; np++) {
		struct qmsg_in in = large((uint8_t)np);

		in.flags = TPQDELIVERYQOS;
		in.delivery_qos = np ? TPQQOSNONPERSISTENT : TPQQOSPERSISTENT;
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
		CU_ASSERT_EQUAL(entries(g), 6);
		CU_ASSERT_EQUAL(np ? stat_of(g, "orders").np_bytes : stat_of(g, "orders").bytes, BIG + (np ? 160 : 0));
		if (!np)
			reopen(g);
		CU_ASSERT_EQUAL(take_large(g, NULL, "orders", (uint8_t)np), 0);
		CU_ASSERT_EQUAL(stat_of(g, "orders").bytes, 0);
		CU_ASSERT_TRUE(nothing_is_left(g, 0));
	}
	given_done(g);
}

static void
nobody_sees_it_before_it_is_whole(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(1);
	struct spool *sp;

	create_fifo(g, "orders", 0, 0);
	sp = spool(g, &in);
	while (!qspace_spool_full(sp)) {
		slice(g, sp);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
		put(g, "orders", "between");			/* others go on */
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "between");
		settle(g);					/* and it is not taken for something left */
	}
	put(g, "orders", "before");
	in.spool = sp;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "before");
	reopen(g);
	settle(g);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 1), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

/* The files as a kill would leave them now: what the process still had in memory is not there. */
static struct given_space *
as_after_a_kill(const struct given_space *g)
{
	struct given_space *copy = calloc(1, sizeof *copy);
	char cmd[512];

	copy->params = g->params;
	snprintf(copy->dir, sizeof copy->dir, "/tmp/qspace.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(copy->dir));
	snprintf(copy->device, sizeof copy->device, "%s/QUE", copy->dir);
	snprintf(cmd, sizeof cmd, "tar -C %s --exclude='spare.*' -Scf - . 2>/dev/null | tar -C %s -xf - && sed -i 's|%s|%s|' %s", g->dir, copy->dir, g->dir, copy->dir,
	    copy->device);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	given_open(copy);
	return copy;
}

static void
a_kill_between_any_two_slices_leaves_nothing(void)
{
	struct given_space *g = given_space(NULL), *after;
	struct qmsg_in in = large(2);
	struct spool *sp;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "small");
	sp = spool(g, &in);
	while (!qspace_spool_full(sp)) {
		slice(g, sp);
		after = as_after_a_kill(g);
		CU_ASSERT_TRUE(nothing_is_left(after, 1));
		CU_ASSERT_STRING_EQUAL(next(after, "orders"), "small");
		given_done(after);
	}
	in.spool = sp;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "small");
	after = as_after_a_kill(g);
	settle(after);
	CU_ASSERT_EQUAL(take_large(after, NULL, "orders", 2), 0);
	for (long n = 7; n > 0; n--) {			/* and while it is freed: six slices and the mark */
		struct given_space *later;

		CU_ASSERT_EQUAL(entries(after), n);
		later = as_after_a_kill(after);
		CU_ASSERT_TRUE(nothing_is_left(later, 0));
		given_done(later);
		begin(after);
		CU_ASSERT_TRUE(parts_tick_some(after->qs, 1) >= 0);
		commit(after);
	}
	given_done(after);
	given_done(g);
}

static void
what_is_given_up_is_freed(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(3);
	uint8_t id[TMMSGIDLEN];
	struct spool *sp;

	create_fifo(g, "orders", 0, 0);
	sp = spool(g, &in);		/* its client died */
	slice(g, sp);
	slice(g, sp);
	qspace_spool_drop(sp);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));

	sp = spool(g, &in);		/* its message was refused */
	while (!qspace_spool_full(sp))
		slice(g, sp);
	in.spool = sp;
	in.flags = TPQBEFOREMSGID;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMEBADMSGID);
	CU_ASSERT_EQUAL(put_in(g, NULL, "nowhere", in, NULL), QMEBADQUEUE);
	in.flags = 0;
	begin(g);			/* its batch failed, and is run again */
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	qspace_batch_abort(g->qs);
	settle(g);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 3), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));

	in = large(4);
	sp = spool(g, &in);		/* a slice's batch failed: it is written again */
	slice(g, sp);
	begin(g);
	CU_ASSERT_EQUAL(qspace_spool_write(sp, big, 2 * PART_BYTES), 0);
	qspace_batch_abort(g->qs);
	while (!qspace_spool_full(sp))
		slice(g, sp);
	in.spool = sp;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 4), 0);

	begin(g);			/* all of it in one batch that failed */
	in.spool = NULL;
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	qspace_batch_abort(g->qs);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");

	sp = spool(g, &in);		/* and one that nobody ended */
	slice(g, sp);
	reopen(g);
	qspace_spool_drop(sp);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
a_transaction_has_it_when_it_commits(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	b = tx(g, "t1");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", large(5), NULL), 0);
	settle(g);
	CU_ASSERT_TRUE(b->bytes < 2048);		/* the list has no body */
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));

	b = tx(g, "t2");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", large(5), NULL), 0);
	reopen(g);					/* a crash forgets it */
	CU_ASSERT_TRUE(nothing_is_left(g, 0));

	b = tx(g, "t3");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", large(5), NULL), 0);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	settle(g);
	b = tx(g, "t4");
	CU_ASSERT_EQUAL(take_large(g, b, "orders", 5), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	settle(g);
	b = tx(g, "t5");
	CU_ASSERT_EQUAL(take_large(g, b, "orders", 5), 0);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
what_is_prepared_keeps_it_over_a_restart(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	for (int commits = 0; commits < 2; commits++) {
		b = tx(g, "in doubt");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", large(6), NULL), 0);
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GROUP9"), 0);
		commit(g);
		settle(g);
		reopen(g);
		settle(g);
		CU_ASSERT_EQUAL(entries(g), 6);
		CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "in doubt"));
		if (commits) {
			CU_ASSERT_EQUAL(tx_commit(g, b), 0);
			settle(g);
			CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 6), 0);
		} else
			CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
		CU_ASSERT_TRUE(nothing_is_left(g, 0));
	}
	given_done(g);
}

static void
it_goes_as_any_message_goes(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(7);
	struct branch *b;

	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "orders", 0, 0);
	in.flags = TPQEXPTIME_REL;			/* it expires */
	in.exp_time = 10;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	b = tx(g, "t0");				/* and one that does while its transaction is open */
	CU_ASSERT_EQUAL(put_in(g, b, "orders", in, NULL), 0);
	clock_shift_us(11 * INT64_C(1000000));
	settle(g);
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	in.flags = TPQTIME_REL;				/* it is delayed */
	in.deq_time = 10;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	clock_shift_us(11 * INT64_C(1000000));
	b = tx(g, "t1");				/* it fails, and is moved; the slices stay where they are */
	CU_ASSERT_EQUAL(take_large(g, b, "orders", 7), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	settle(g);
	CU_ASSERT_EQUAL(entries(g), 6);
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").bytes, BIG);
	reopen(g);
	CU_ASSERT_EQUAL(take_large(g, NULL, "ERRQ", 7), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", large(7), NULL), 0);
	begin(g);					/* its queue goes */
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), 0);
	commit(g);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
	clock_shift_us(-22 * INT64_C(1000000));
}

static void
it_is_held_while_it_is_read(void)
{
	struct given_space *g = given_space(NULL);
	struct fetch *f;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	put_in(g, NULL, "orders", large(8), NULL);
	put(g, "orders", "second");
	f = fetch(g, NULL, NULL);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "second");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), QMEINUSE);
	commit(g);
	put(g, "orders", "third");
	qspace_fetch_drop(f);				/* its client died: it comes back to its place, and that is no failure */
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 0);
	f = fetch(g, NULL, NULL);
	read_all(g, f);
	begin(g);					/* the batch that removes it fails */
	CU_ASSERT_EQUAL(qspace_fetch_take(f, &m), 0);
	qmsg_free(m);
	qspace_batch_abort(g->qs);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "third");
	read_all(g, f);
	begin(g);
	CU_ASSERT_EQUAL(qspace_fetch_take(f, &m), 0);
	commit(g);
	qspace_fetch_drop(f);
	CU_ASSERT_TRUE(is_large(m, 8));
	CU_ASSERT_EQUAL(m->retries, 0);
	qmsg_free(m);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_TRUE(nothing_is_left(g, 0));

	put_in(g, NULL, "orders", large(8), NULL);
	begin(g);					/* the batch that chose it fails */
	CU_ASSERT_EQUAL(qspace_dequeue_begin(g->qs, NULL, "orders", NULL, &m, &f), 0);
	qspace_batch_abort(g->qs);
	qspace_fetch_drop(f);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 0);
	f = fetch(g, NULL, NULL);			/* an end while it is read */
	begin(g);
	CU_ASSERT_EQUAL(qspace_fetch_read(f, 1), 0);
	commit(g);
	reopen(g);
	qspace_fetch_drop(f);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 8), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
one_that_expires_while_it_is_held_goes_when_it_is_given_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(9);
	struct fetch *f;

	create_fifo(g, "orders", 0, 0);
	in.flags = TPQEXPTIME_REL;
	in.exp_time = 10;
	put_in(g, NULL, "orders", in, NULL);
	f = fetch(g, NULL, NULL);
	clock_shift_us(11 * INT64_C(1000000));
	settle(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	qspace_fetch_drop(f);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
	clock_shift_us(-11 * INT64_C(1000000));
}

static void
one_that_is_looked_at_may_go_meanwhile(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect look = { .flags = TPQPEEK };
	struct fetch *f;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	put_in(g, NULL, "orders", large(10), NULL);
	f = fetch(g, NULL, &look);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 10), 0);
	settle(g);
	read_all(g, f);
	begin(g);
	CU_ASSERT_EQUAL(qspace_fetch_take(f, &m), 0);
	commit(g);
	CU_ASSERT_TRUE(is_large(m, 10));
	qmsg_free(m);
	qspace_fetch_drop(f);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
limits_hold_to_the_page(void)
{
	struct qspace_params p = given_params("QS");
	int64_t pages = (BIG + 511) / 512;
	struct given_space *g;
	struct spool *sp, *more;
	struct qmsg_in in = large(11);

	p.pages = 2 * pages + 1;
	p.nonpersistent_bytes = 0;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	sp = spool(g, &in);				/* what is under way counts */
	begin(g);
	CU_ASSERT_EQUAL(qspace_spool_begin(g->qs, "orders", &in, &more), QMENOSPACE);
	commit(g);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMENOSPACE);
	CU_ASSERT_EQUAL(put(g, "orders", "one page"), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "one page"), QMENOSPACE);
	while (!qspace_spool_full(sp))
		slice(g, sp);
	in.spool = sp;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "one page"), QMENOSPACE);
	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	in.spool = NULL;
	begin(g);
	CU_ASSERT_EQUAL(qspace_spool_begin(g->qs, "orders", &in, &more), QMENOSPACE);
	commit(g);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 11), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one page");
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 11), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static int
full(int fd, size_t n)
{
	(void)fd;
	return n > 0 ? ENOSPC : 0;
}

static void
a_full_disk_refuses_it_and_leaves_nothing(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(12);
	struct spool *sp;
	int rc = 0;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "small");
	sp = spool(g, &in);
	slice(g, sp);
	env_fault = full;
	for (int i = 0; i < 100 && rc == 0; i++) {	/* until the blocks that were taken ahead are used up */
		if (qspace_batch_begin(g->qs) != 0)
			break;
		rc = qspace_spool_write(sp, big, PART_BYTES);
		if (rc == 0 && qspace_spool_full(sp)) {
			qspace_batch_abort(g->qs);
			break;
		}
		if (qspace_batch_commit(g->qs) != 0) {
			qspace_batch_abort(g->qs);
			rc = QMEOS;
		}
	}
	env_fault = NULL;
	qspace_spool_drop(sp);
	settle(g);
	CU_ASSERT_TRUE(nothing_is_left(g, 1));
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "small");
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", large(12), NULL), 0);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 12), 0);
	given_done(g);
}

static void
recovery_while_running_does_not_lose_it(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(13), np = large(13);
	struct spool *sp, *lost;
	struct fetch *f;
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	put_in(g, NULL, "orders", in, NULL);
	f = fetch(g, NULL, NULL);
	sp = spool(g, &in);
	slice(g, sp);
	np.flags = TPQDELIVERYQOS;
	np.delivery_qos = TPQQOSNONPERSISTENT;
	lost = spool(g, &np);
	slice(g, lost);
	g->qs->env.np_broken = g->qs->env.panicked = true;
	while (!qspace_spool_full(sp))
		slice(g, sp);
	begin(g);
	CU_ASSERT_EQUAL(qspace_spool_write(lost, big, 1), QMESYSTEM);
	qspace_batch_abort(g->qs);
	qspace_spool_drop(lost);
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 1);
	in.spool = sp;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	read_all(g, f);
	begin(g);
	CU_ASSERT_EQUAL(qspace_fetch_take(f, &m), 0);
	commit(g);
	qspace_fetch_drop(f);
	CU_ASSERT_TRUE(is_large(m, 13));
	qmsg_free(m);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 13), 0);
	CU_ASSERT_EQUAL(take(g, NULL, "orders", NULL, &m), QMENOMSG);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
non_persistent_ones_are_kept_over_a_stop(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = large(15);
	struct branch *b;

	create_fifo(g, "orders", 0, 0);
	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	b = tx(g, "in doubt");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", in, NULL), 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "GROUP9"), 0);
	commit(g);
	reopen(g);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 15), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "in doubt"));
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_EQUAL(take_large(g, NULL, "orders", 15), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

static void
many_fill_the_files_and_give_them_back(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct qmsg_in in = large(14);

	p.pages = 1000000;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 600; i++)			/* 200 MB: four files of messages */
		CU_ASSERT_EQUAL_FATAL(put_in(g, NULL, "orders", in, NULL), 0);
	for (int i = 0; i < 600; i++)
		CU_ASSERT_EQUAL_FATAL(take_large(g, NULL, "orders", 14), 0);
	CU_ASSERT_TRUE(nothing_is_left(g, 0));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_large_body_comes_out_as_it_went_in),
		UNIT(nobody_sees_it_before_it_is_whole),
		UNIT(a_kill_between_any_two_slices_leaves_nothing),
		UNIT(what_is_given_up_is_freed),
		UNIT(a_transaction_has_it_when_it_commits),
		UNIT(what_is_prepared_keeps_it_over_a_restart),
		UNIT(it_goes_as_any_message_goes),
		UNIT(it_is_held_while_it_is_read),
		UNIT(one_that_expires_while_it_is_held_goes_when_it_is_given_back),
		UNIT(one_that_is_looked_at_may_go_meanwhile),
		UNIT(limits_hold_to_the_page),
		UNIT(a_full_disk_refuses_it_and_leaves_nothing),
		UNIT(recovery_while_running_does_not_lose_it),
		UNIT(non_persistent_ones_are_kept_over_a_stop),
		UNIT_LONG(many_fill_the_files_and_give_them_back),
	};

	return unit_run("qspace parts", tests, UNIT_COUNT(tests));
}
