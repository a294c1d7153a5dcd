/*
 * A full disk: a batch that cannot be written has not happened, in memory and on disk, and the next one works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "given_space.h"
#include "qspace_impl.h"

static atomic_int countdown, failed;
static int cause;

static int	/* The countdown's write and the ones behind it fail. */
fail_from(int fd, size_t n)
{
	(void)fd;
	if (n == 0)		/* a flush: test_qspace_faults has those */
		return 0;
	if (--countdown >= 0)
		return 0;
	failed++;
	return cause;
}

static void
break_after(int writes, int e)
{
	countdown = writes;
	failed = 0;
	cause = e;
	env_fault = fail_from;
}

static void
mend(void)
{
	env_fault = NULL;
}

/* What must hold: messages 'low' to 'high' - 1 are on the queue, in order, and nothing else. */
struct oracle { int low, high; };

static void
check(struct given_space *g, const struct oracle *o)
{
	struct qselect look = { .flags = TPQPEEK };
	struct qmsg *m;

	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, o->high - o->low);
	if (o->high > o->low) {
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", &look, &m), 0);
		CU_ASSERT_EQUAL(atoi((const char *)m->body), o->low);
		qmsg_free(m);
	}
}

static int	/* `in` messages more and `out` fewer, in one batch.  What the batch answered. */
round_of(struct given_space *g, struct oracle *o, int in, int out)
{
	struct oracle next_o = *o;
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;
	int rc;

	if ((rc = qspace_batch_begin(g->qs)) != 0)
		return rc;
	for (int i = 0; i < in && rc == 0; i++) {
		char body[3000];
		struct qmsg_in msg;
		snprintf(body, sizeof body, "%-2999d", next_o.high++);
		msg = text(body);
		rc = qspace_enqueue(g->qs, NULL, "orders", &msg, id);
	}
	for (int i = 0; i < out && rc == 0; i++) {
		if ((rc = qspace_dequeue(g->qs, NULL, "orders", NULL, &m)) == 0) {
			CU_ASSERT_EQUAL(atoi((const char *)m->body), next_o.low++);
			qmsg_free(m);
		}
	}
	if (rc == 0)
		rc = qspace_batch_commit(g->qs);
	if (rc == 0)
		*o = next_o;
	else
		qspace_batch_abort(g->qs);
	return rc;
}

static void
each_write_may_be_the_one_that_fails(void)
{
	struct given_space *g = given_space(NULL);
	struct oracle o = { 0, 0 };
	int n_failed = 0, rc = 0;

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(round_of(g, &o, 20, 0), 0);
	for (int writes = 0; writes < 12; writes++) {
		break_after(writes, writes % 3 == 2 ? EIO : ENOSPC);
		for (int i = 0; i < 6; i++)
			n_failed += round_of(g, &o, 4, 3) != 0;
		mend();
		for (int i = 0; i < 5000 && qspace_batch_begin(g->qs) != 0; i++)	/* it tries again by itself */
			usleep(1000);
		commit(g);
		for (int i = 0; i < 5000 && (rc = round_of(g, &o, 2, 1)) == QMENOSPACE; i++)	/* until there is a spare log file */
			usleep(1000);
		CU_ASSERT_EQUAL(rc, 0);
		check(g, &o);
		if (writes % 4 == 3) {
			reopen(g);
			check(g, &o);
		}
	}
	CU_ASSERT_TRUE(n_failed > 10);
	given_done(g);
}

/* Killed, and recovery has no room to write: that is said, and not that its tables are damaged.  Later all is there. */
static void
a_space_without_room_for_recovery_opens_later(void)
{
	struct given_space *g = given_space(NULL);
	struct oracle o = { 0, 0 };
	char cmd[512], *why = NULL;

	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(round_of(g, &o, 20, 3), 0);
	snprintf(cmd, sizeof cmd, "cp -a %s %s.killed", g->dir, g->dir);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	qspace_close(g->qs);
	g->qs = NULL;
	snprintf(cmd, sizeof cmd, "rm -rf %s && mv %s.killed %s", g->dir, g->dir, g->dir);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	for (int i = 0; i < 2; i++) {
		break_after(i * 3, ENOSPC);
		CU_ASSERT_NOT_EQUAL(qspace_open(g->device, "QS", NULL, &g->qs, &why), 0);
		CU_ASSERT_TRUE(failed > 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(why);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "is full"));
		CU_ASSERT_PTR_NULL(strstr(why, "cut off"));
		free(why);
		mend();
	}
	given_open(g);
	check(g, &o);
	given_done(g);
}

/* Berkeley DB cuts a table that becomes smaller; what was allocated behind it is there all the same. */
static void
a_table_that_is_cut_keeps_its_room(void)
{
	struct given_space *g = given_space(NULL);
	struct oracle o = { 0, 0 };
	struct stat full, empty;
	char path[160];

	create_fifo(g, "orders", 0, 0);
	snprintf(path, sizeof path, "%s/QUE.d/QS/order.db", g->dir);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(round_of(g, &o, 20, 0), 0);
	CU_ASSERT_EQUAL(g->qs->env.e->txn_checkpoint(g->qs->env.e, 0, 0, DB_FORCE), 0);	/* not only in the cache */
	CU_ASSERT_EQUAL(stat(path, &full), 0);
	while (o.low < o.high)
		CU_ASSERT_EQUAL(round_of(g, &o, 0, 20), 0);
	CU_ASSERT_EQUAL(stat(path, &empty), 0);
	CU_ASSERT_TRUE(empty.st_size < full.st_size);
	CU_ASSERT_TRUE(empty.st_blocks >= full.st_blocks);
	given_done(g);
}

static int	/* There are no blocks for room.c, which opens files to write them only; what is there can be written. */
no_more_blocks(int fd, size_t n)
{
	(void)n;
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY ? ENOSPC : 0;
}

/* Free pages inside are room, but the file grows a little all the same: no further than there are blocks. */
static void
a_heap_with_holes_grows_into_its_blocks_only(void)
{
	struct given_space *g = given_space(NULL);
	struct oracle o = { 0, 0 };
	struct stat before, after;
	char path[160];
	int accepted = 0;

	create_fifo(g, "orders", 0, 0);
	snprintf(path, sizeof path, "%s/QUE.d/QS/messages.1.db", g->dir);
	for (int i = 0; i < 60; i++)
		CU_ASSERT_EQUAL(round_of(g, &o, 20, 0), 0);
	for (int i = 0; i < 60; i++)
		CU_ASSERT_EQUAL(round_of(g, &o, 0, 20), 0);
	CU_ASSERT_EQUAL(stat(path, &before), 0);
	env_fault = no_more_blocks;
	for (int i = 0; i < 3000; i++)
		if (round_of(g, &o, 10, 0) == 0) {
			accepted++;
			CU_ASSERT_EQUAL(round_of(g, &o, 0, 10), 0);
		}
	CU_ASSERT_EQUAL(g->qs->env.e->txn_checkpoint(g->qs->env.e, 0, 0, DB_FORCE), 0);
	CU_ASSERT_EQUAL(stat(path, &after), 0);
	mend();
	CU_ASSERT_TRUE(accepted > 0);
	CU_ASSERT_TRUE(after.st_size <= before.st_blocks * 512);
	check(g, &o);
	given_done(g);
}

static void
a_transaction_survives_the_batch_that_failed(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;
	int rc;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "in");
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "in");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("out"), NULL), 0);
	break_after(0, ENOSPC);
	begin(g);
	rc = qspace_branch_commit(g->qs, b);
	if (rc == 0)
		rc = qspace_batch_commit(g->qs);
	CU_ASSERT_NOT_EQUAL(rc, 0);
	qspace_batch_abort(g->qs);
	CU_ASSERT_TRUE(failed > 0);
	mend();
	b = find_tx(g, "t1");
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(tx_commit(g, b), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "out");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Berkeley DB wants recovery: the engine does it, and goes on with the transactions it had. */
recovery_while_running(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("np");
	struct branch *b, *p;

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "one");
	put(g, "orders", "two");
	put(g, "orders", "three");
	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "one");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("four"), NULL), 0);
	p = tx(g, "t2");
	CU_ASSERT_STRING_EQUAL(next_in(g, p, "orders"), "two");
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, p, "G"), 0);
	commit(g);
	g->qs->env.panicked = true;
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "three");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "np");	/* nobody died: it is not lost (D7) */
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").held, 2);
	CU_ASSERT_EQUAL(tx_commit(g, find_tx(g, "t1")), 0);
	CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "t2")), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "four");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Never served: an error, again and again if need be, and the rest of the store stays what it was. */
a_damaged_page_is_reported(void)
{
	struct given_space *g = given_space(NULL);
	char path[256], junk[512];
	struct qmsg *m;
	int rc;
	FILE *f;

	create_fifo(g, "orders", 5, 0);
	create_fifo(g, "other", 5, 0);
	for (int i = 0; i < 200; i++)
		put(g, "orders",
		    "a message that fills some pages of the heap, for there are many of them; see how long it is");
	put(g, "other", "fine");
	qspace_close(g->qs);
	snprintf(path, sizeof path, "%s.d/QS/messages.1.db", g->device);
	f = fopen(path, "r+");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	memset(junk, 0x5a, sizeof junk);
	fseek(f, 2 * 4096 + 1000, SEEK_SET);
	fwrite(junk, 1, sizeof junk, f);
	fclose(f);
	given_open(g);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(rc = qspace_batch_begin(g->qs), 0);
		rc = qspace_dequeue(g->qs, NULL, "orders", NULL, &m);
		CU_ASSERT_TRUE(rc == QMESYSTEM || rc == QMEOS);
		CU_ASSERT_PTR_NULL(m);
		qspace_batch_abort(g->qs);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "other"), "fine");
	given_done(g);
}

static void	/* Made anew it would be empty, and messages would be missing without a word. */
a_table_that_is_lost_is_not_made_anew(void)
{
	struct given_space *g = given_space(NULL);
	char path[256], aside[256];

	create_fifo(g, "orders", 5, 0);
	put(g, "orders", "fine");
	qspace_close(g->qs);
	snprintf(path, sizeof path, "%s.d/QS/corrid.db", g->device);
	snprintf(aside, sizeof aside, "%s.d/aside", g->device);
	CU_ASSERT_EQUAL(rename(path, aside), 0);
	CU_ASSERT_NOT_EQUAL(qspace_open(g->device, "QS", NULL, &g->qs, NULL), 0);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	CU_ASSERT_EQUAL(rename(aside, path), 0);
	given_open(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "fine");
	given_done(g);
}

/* --- what lies on disk is damaged while nobody looks --- */

static void
sh(const char *fmt, ...)
{
	char cmd[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
}

static struct given_space *	/* closed, or as after kill -9; DIR.good has a copy of it */
given_stopped(bool killed)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 5, 0);
	for (int i = 0; i < 50; i++)
		put(g, "orders", "fine");
	if (killed)		/* a spare log file may be renamed meanwhile */
		sh("cp -r %s %s.good 2>/dev/null || true", g->dir, g->dir);
	qspace_close(g->qs);
	g->qs = NULL;
	if (!killed)
		sh("cp -r %s %s.good", g->dir, g->dir);
	sh("rm -f %s.good/QUE.d/QS/spare.*", g->dir);
	return g;
}

static void
stopped_done(struct given_space *g)
{
	sh("rm -rf %s.good", g->dir);
	given_done(g);
}

static void
flip(const struct given_space *g, const char *file, long at)
{
	char path[256];
	FILE *f;
	int c;

	snprintf(path, sizeof path, "%s.d/QS/%s", g->device, file);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f = fopen(path, "r+"));
	fseek(f, at, SEEK_SET);
	c = getc(f);
	fseek(f, at, SEEK_SET);
	putc(c ^ 0xff, f);
	fclose(f);
}

/* Refused, and `why` names the file; or all 50 messages are there. */
static bool
refused_naming(struct given_space *g, const char *file)
{
	char *why = NULL;
	bool refused = qspace_open(g->device, "QS", NULL, &g->qs, &why) != 0;

	if (refused) {
		CU_ASSERT_TRUE(why != NULL && strstr(why, file) != NULL);
		if (why == NULL || strstr(why, file) == NULL)
			fprintf(stderr, "%s: %s\n", file, why);
	} else {
		CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 50);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "fine");
	}
	qspace_close(g->qs);
	g->qs = NULL;
	free(why);
	return refused;
}

static void
good_again(const struct given_space *g)
{
	sh("rm -rf %s && cp -r %s.good %s", g->dir, g->dir, g->dir);
}

/* Recovery would take a damaged place for the log's end, and acknowledged messages would be missing without a word. */
static void
a_damaged_log_is_told_by_name(void)
{
	static const struct { const char *how; long at; } damage[] = {
		{ "flip", 10 }, { "flip", 30 }, { "flip", 5000 }, { "flip", 40000 }, { "truncate -s 5000", 0 },
		{ "truncate -s 0", 0 }, { "rm", 0 } };

	for (int killed = 0; killed < 2; killed++) {
		struct given_space *g = given_stopped(killed);

		for (size_t i = 0; i < UNIT_COUNT(damage); i++) {
			good_again(g);
			if (strcmp(damage[i].how, "flip") == 0)
				flip(g, "log.0000000001", damage[i].at);
			else
				sh("%s %s.d/QS/log.0000000001", damage[i].how, g->device);
			CU_ASSERT_TRUE(refused_naming(g, "log.0000000001"));
		}
		good_again(g);
		CU_ASSERT_FALSE(refused_naming(g, ""));
		stopped_done(g);
	}
}

static void
a_damaged_table_is_told_by_name_or_served_right(void)
{
	struct given_space *g = given_stopped(false);
	int refused = 0;

	for (long at = 5; at < 8192; at += 271) {
		good_again(g);
		flip(g, "space.db", at);
		refused += refused_naming(g, "space.db");
	}
	CU_ASSERT_TRUE(refused >= 15);		/* the page that holds the record; what follows the metadata is unused */
	for (int size = 0; size < 8192; size += 2500) {
		good_again(g);
		sh("truncate -s %d %s.d/QS/space.db", size, g->device);
		CU_ASSERT_TRUE(refused_naming(g, "space.db"));
	}
	stopped_done(g);
}

static void
a_description_that_is_no_number_is_refused_by_line(void)
{
	static const struct { const char *edit, *where; } bad[] = {
		{ "s/^pages .*/pages oops/", "pages oops: not a number" }, { "s/^pages .*/pages 12x/", "pages 12x: not a number" },
		{ "s/^pages .*/pages  12/", "not a number" }, { "s/^pages .*/pages /", "not a number" },
		{ "s/^queues .*/queues -1/", "queues -1" }, { "s/^trans .*/trans 99999999999999999999/", "trans 9999" },
		{ "s/^init .*/init yes/", "init yes" }, { "s/^log_bytes .*/log_bytes 7/", "log_bytes 7" },
		{ "s/^version .*/version 1x/", "disk version 1x" }, { "/^messages/d", "incomplete" },
		{ "s/^messages/massages/", "unknown word massages" }, { "3i\\\n", "line 3" },
		{ "s/^messages .*/messages 4/", "check" }, { "s/^check ./check x/", "check" }, { "$a check 0", "check" } };
	struct given_space *g = given_stopped(false);

	for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
		good_again(g);
		sh("sed -i '%s' %s.d/QS/SPACE", bad[i].edit, g->device);
		CU_ASSERT_TRUE(refused_naming(g, bad[i].where));
	}
	good_again(g);
	sh("sed -i 's/^pages .*/pages oops/' %s.d/QS/SPACE", g->device);
	CU_ASSERT_TRUE(refused_naming(g, "SPACE, line "));
	stopped_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(each_write_may_be_the_one_that_fails),
		UNIT(a_space_without_room_for_recovery_opens_later),
		UNIT(a_table_that_is_cut_keeps_its_room),
		UNIT(a_heap_with_holes_grows_into_its_blocks_only),
		UNIT(a_transaction_survives_the_batch_that_failed),
		UNIT(recovery_while_running),
		UNIT(a_damaged_page_is_reported),
		UNIT(a_table_that_is_lost_is_not_made_anew),
		UNIT(a_damaged_log_is_told_by_name),
		UNIT(a_damaged_table_is_told_by_name_or_served_right),
		UNIT(a_description_that_is_no_number_is_refused_by_line),
	};
	return unit_run("qspace full", tests, UNIT_COUNT(tests));
}
