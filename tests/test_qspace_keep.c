/*
 * Non-persistent messages over the end of their owner: a close in good order keeps them, whole and once; a crash, and
 * nothing else, loses them (D7).
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "given_space.h"
#include "qspace_impl.h"
#include "ulog.h"

static struct qmsg_in
np(const char *body)
{
	struct qmsg_in in = text(body);

	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	return in;
}

static char *
keep_path(const struct given_space *g, const char *suffix)
{
	static char path[2][256];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s.d/QS/NONPERSISTENT%s", g->device, suffix);
	return path[turn];
}

static void
close_it(struct given_space *g)
{
	qspace_close(g->qs);
	g->qs = NULL;
}

/* Run `life` in a process of its own, which then ends without a close. */
static void
and_die(struct given_space *g, void (*life)(struct given_space *g))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		life(g);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static char log_dir[] = "/tmp/keep.XXXXXX";

static long	/* lines since log_here() */
logged(const char *piece)
{
	char cmd[512];
	FILE *p;
	long n = -1;

	snprintf(cmd, sizeof cmd, "cat %s/ULOG.* 2>/dev/null | grep -cF '%s'", log_dir, piece);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p = popen(cmd, "r"));
	CU_ASSERT_EQUAL(fscanf(p, "%ld", &n), 1);
	pclose(p);
	return n;
}

static void
log_here(void)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rm -f %s/ULOG.*", log_dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
}

static struct qmsg *
get(struct given_space *g, const char *queue)
{
	struct qmsg *m = NULL;

	CU_ASSERT_EQUAL_FATAL(take(g, NULL, queue, NULL, &m), 0);
	return m;
}

static void
everything_about_a_message_comes_back(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = np("");
	uint8_t body[256], id[TMMSGIDLEN];
	struct qselect by = { .flags = TPQGETBYCORRID };
	struct qmsg *m;

	for (int i = 0; i < 256; i++)
		body[i] = (uint8_t)i;
	create_fifo(g, "orders", 5, 0);
	in.flags |= TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY | TPQREPLYQOS | TPQEXPTIME_REL;
	memcpy(in.corrid, body + 200, TMCORRIDLEN);
	in.replyqueue = "answers";
	in.failurequeue = "failures";
	in.priority = 77;
	in.reply_qos = TPQQOSPERSISTENT;
	in.exp_time = 1000;
	in.urcode = -5;
	in.appkey = 9;
	in.cltid[2] = 42;
	in.type = "CARRAY";
	in.body = body;
	in.body_len = sizeof body;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, id), 0);
	for (int i = 0; i < 3; i++)		/* the second time from the same file */
		reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 1);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	memcpy(by.corrid, in.corrid, TMCORRIDLEN);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", &by, &m), 0);
	CU_ASSERT_EQUAL(memcmp(m->msgid, id, TMMSGIDLEN), 0);
	CU_ASSERT_EQUAL(memcmp(m->corrid, in.corrid, TMCORRIDLEN), 0);
	CU_ASSERT_TRUE(m->body_len == sizeof body && memcmp(m->body, body, sizeof body) == 0);
	CU_ASSERT_STRING_EQUAL(m->replyqueue, "answers");
	CU_ASSERT_STRING_EQUAL(m->failurequeue, "failures");
	CU_ASSERT_STRING_EQUAL(m->type, "CARRAY");
	CU_ASSERT_EQUAL(m->priority, 77);
	CU_ASSERT_EQUAL(m->delivery_qos, TPQQOSNONPERSISTENT);
	CU_ASSERT_EQUAL(m->reply_qos, TPQQOSPERSISTENT);
	CU_ASSERT_EQUAL(m->urcode, -5);
	CU_ASSERT_EQUAL(m->appkey, 9);
	CU_ASSERT_EQUAL(m->cltid[2], 42);
	CU_ASSERT_FALSE(m->persistent);
	CU_ASSERT_NOT_EQUAL(m->expires_us, 0);
	qmsg_free(m);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_NOT_EQUAL(access(keep_path(g, ""), F_OK), 0);
	given_done(g);
}

static void
retries_delays_expiry_and_places_go_on(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = np("expires");
	struct branch *b;
	struct qmsg *m;
	uint8_t first[TMMSGIDLEN];

	create_fifo(g, "orders", 2, 60);
	create_fifo(g, "ERRQ", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("fails"), NULL), 0);
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "fails");
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	in.flags |= TPQEXPTIME_REL;
	in.exp_time = 30;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	in = np("later");
	in.flags |= TPQTIME_REL;
	in.deq_time = 90;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("now"), first), 0);
	in = np("ahead");
	in.flags |= TPQBEFOREMSGID;
	memcpy(in.msgid, first, TMMSGIDLEN);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 2);
	clock_shift_us(31 * 1000000LL);
	reopen(g);
	tick(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "ahead");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "now");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");		/* one has expired, the others wait */
	clock_shift_us(30 * 1000000LL);
	reopen(g);
	for (int i = 1; i <= 2; i++) {
		tick(g);
		b = tx(g, "t2");
		CU_ASSERT_EQUAL_FATAL(take(g, b, "orders", NULL, &m), 0);
		CU_ASSERT_EQUAL(m->retries, i);
		qmsg_free(m);
		CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
		clock_shift_us(61 * 1000000LL);
		reopen(g);
		if (i == 1) {
			tick(g);
			CU_ASSERT_EQUAL(stat_of(g, "orders").delayed, 0);
			b = tx(g, "t3");		/* "later" has become due and stands behind */
			CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "fails");
			CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "later");
			reopen(g);			/* a branch that is dropped by a close counts no retry */
		}
	}
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").np_messages, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "fails");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "later");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	clock_shift_us(-(31 + 30 + 61 + 61) * 1000000LL);
	given_done(g);
}

static void
a_prepared_transaction_keeps_its_part(void)
{
	struct given_space *g = given_space(NULL);
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	for (int i = 0; i < 2; i++) {
		put(g, "orders", "p");
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("n"), NULL), 0);
		b = tx(g, "t1");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "p");
		CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "n");
		CU_ASSERT_EQUAL(put_in(g, b, "orders", np("n2"), NULL), 0);
		begin(g);
		CU_ASSERT_EQUAL(qspace_branch_prepare(g->qs, b, "G"), 0);
		commit(g);
		reopen(g);
		reopen(g);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");		/* in doubt: neither there nor gone */
		CU_ASSERT_EQUAL(stat_of(g, "orders").held, 2);
		CU_ASSERT_PTR_NOT_NULL_FATAL(b = find_tx(g, "t1"));
		CU_ASSERT_EQUAL(i == 0 ? tx_commit(g, b) : tx_roll_back(g, b), 0);
		reopen(g);
		if (i == 0) {
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "n2");
		} else {
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "p");
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "n");
		}
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	}
	given_done(g);
}

/* --- once, and never twice --- */

static void
open_and_look(struct given_space *g)
{
	given_open(g);
	if (stat_of(g, "orders").np_messages != 2)
		_exit(1);
}

static void
a_crash_after_the_open_loses_them(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "stays");
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("1"), NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("2"), NULL), 0);
	close_it(g);
	and_die(g, open_and_look);
	CU_ASSERT_EQUAL(access(keep_path(g, ""), F_OK), 0);	/* it is there, and does not count */
	given_open(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 0);
	CU_ASSERT_NOT_EQUAL(access(keep_path(g, ""), F_OK), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "stays");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Put back by hand, by a backup, or because it could not be removed. */
an_old_file_never_counts_again(void)
{
	struct given_space *g = given_space(NULL);
	char cmd[1024];

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("old"), NULL), 0);
	close_it(g);
	snprintf(cmd, sizeof cmd, "cp %s %s/old", keep_path(g, ""), g->dir);
	CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
	given_open(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "old");
	for (int i = 0; i < 2; i++) {
		close_it(g);
		snprintf(cmd, sizeof cmd, "cp %s/old %s", g->dir, keep_path(g, ""));
		CU_ASSERT_EQUAL_FATAL(system(cmd), 0);
		log_here();
		given_open(g);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		if (i == 0)			/* and in place of another one it is not the one that was meant */
			CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("new"), NULL), 0);
	}
	CU_ASSERT_EQUAL(logged("1 of 1 non-persistent messages are lost"), 1);
	given_done(g);
}

static int until_death;

static int
die_at_last(int fd, size_t n)
{
	(void)fd, (void)n;
	if (--until_death <= 0)
		_exit(0);
	return 0;
}

static void
close_and_die(struct given_space *g)
{
	given_open(g);
	for (int i = 0; i < 20; i++)
		if (put_in(g, NULL, "orders", np("x"), NULL) != 0)
			_exit(1);
	env_fault = die_at_last;
	qspace_close(g->qs);
	_exit(2);			/* it closed before its time came: the last round */
}

static void
a_kill_in_the_middle_of_the_close_loses_all_or_none(void)
{
	struct given_space *g = given_space(NULL);
	int status = 0, none = 0, all = 0;

	create_fifo(g, "orders", 0, 0);
	close_it(g);
	for (int n = 1; n < 400; n += getenv("TEST_LONG") != NULL ? 1 : 1 + n / 6) {
		pid_t pid;
		until_death = n;
		if ((pid = fork()) == 0)
			close_and_die(g);
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_TRUE_FATAL(WIFEXITED(status) && WEXITSTATUS(status) != 1);
		given_open(g);
		CU_ASSERT_TRUE(stat_of(g, "orders").np_messages == 0 || stat_of(g, "orders").np_messages == 20);
		*(stat_of(g, "orders").np_messages == 0 ? &none : &all) += 1;
		for (int k = stat_of(g, "orders").np_messages > 0 ? 20 : 0; k > 0; k--)
			CU_ASSERT_STRING_EQUAL(next(g, "orders"), "x");
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
		close_it(g);
		if (WEXITSTATUS(status) == 2)
			break;
	}
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 2);
	CU_ASSERT_TRUE(none > 8 && all > 0);
	given_open(g);
	given_done(g);
}

/* --- what is damaged, what does not fit --- */

static void
a_damaged_file_is_dropped_with_a_line(void)
{
	struct given_space *g = given_space(NULL);
	char path[256];
	struct stat st;
	int fd, rounds = 0;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "stays");
	log_here();
	for (off_t at = 0; rounds == 0 || at < st.st_size; at += 61, rounds++) {
		uint8_t byte;
		bool cut = rounds % 4 == 3;

		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("one"), NULL), 0);
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("two"), NULL), 0);
		close_it(g);
		snprintf(path, sizeof path, "%s", keep_path(g, ""));
		CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
		CU_ASSERT_NOT_EQUAL_FATAL(fd = open(path, O_RDWR), -1);
		CU_ASSERT_EQUAL(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		CU_ASSERT_EQUAL(cut ? ftruncate(fd, at) : pwrite(fd, &byte, 1, at) - 1, 0);
		close(fd);
		given_open(g);
		CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 0);
		CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
		CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	}
	CU_ASSERT_TRUE(rounds > 8);
	CU_ASSERT_EQUAL(logged("2 of 2 non-persistent messages are lost"), rounds);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "stays");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static int
full_for_large_files(int fd, size_t n)
{
	char link[64], path[256];
	ssize_t len;

	(void)n;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((len = readlink(link, path, sizeof path - 1)) <= 0)
		return 0;
	path[len] = '\0';
	return strstr(path, "NONPERSISTENT") != NULL && --until_death <= 0 ? ENOSPC : 0;
}

static void
a_full_disk_at_the_close_loses_them_with_a_line_and_nothing_else(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "stays");
	for (int i = 0; i < 30; i++)
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", np("goes"), NULL), 0);
	log_here();
	until_death = 17;
	env_fault = full_for_large_files;
	close_it(g);
	env_fault = NULL;
	CU_ASSERT_EQUAL(logged("30 non-persistent messages could not be kept"), 1);
	CU_ASSERT_NOT_EQUAL(access(keep_path(g, ".new"), F_OK), 0);
	CU_ASSERT_NOT_EQUAL(access(keep_path(g, ""), F_OK), 0);
	given_open(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "stays");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Their memory is a limit after it as before, to the byte. */
a_full_memory_comes_back_full(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	char *body = calloc(1, 30000);
	struct qmsg_in in = np("");
	int64_t used;
	int n = 0;

	p.nonpersistent_bytes = 8 << 20;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	in.body = body;
	do
		in.body_len = (size_t)(n * 7919 % 30000);
	while (put_in(g, NULL, "orders", in, NULL) == 0 && ++n);
	used = stat_of(g, "orders").np_bytes;
	CU_ASSERT_TRUE(used > (8 << 20) - 30500);
	reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_messages, n);
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, used);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMENOSPACE);
	for (int i = 0; i < n; i++) {
		struct qmsg *m = get(g, "orders");
		if (m->body_len != (size_t)(i * 7919 % 30000))
			CU_FAIL("out of order, or not whole");
		qmsg_free(m);
	}
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	free(body);
	given_done(g);
}

/* --- a model --- */

enum { MODEL_MAX = 400 };
struct model { struct { int no, prio; bool np; } m[MODEL_MAX]; int n; };

static void	/* by priority, then by number; non-persistent ones among the others */
model_put(struct model *md, int no, int prio, bool is_np)
{
	int at = md->n++;

	while (at > 0 && md->m[at - 1].prio < prio) {
		md->m[at] = md->m[at - 1];
		at--;
	}
	md->m[at].no = no;
	md->m[at].prio = prio;
	md->m[at].np = is_np;
}

static void
model_take(struct model *md, int at)
{
	memmove(&md->m[at], &md->m[at + 1], (size_t)(--md->n - at) * sizeof md->m[0]);
}

/* Enqueue, take, roll back, close, crash, at random: the queue is what a list would be. */
static void
both_kinds_are_one_queue_whatever_happens(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params q = queue_of("orders", QC_PRIORITY, QC_FIFO, 0, 0);
	struct model md = { .n = 0 };
	unsigned r = 12345;
	char body[16];
	int no = 0, reopened = 0, crashed = 0;
	unsigned failures = CU_get_number_of_failures();

	q.retries = 1000000;
	create(g, &q);
	for (int step = 0; step < 3000; step++) {
		r = r * 1103515245 + 12345;
		switch (r >> 16 & 63) {
		case 0:
			reopen(g);
			reopened++;
			break;
		case 1:
			close_it(g);
			and_die(g, given_open);		/* who opened it last did not close it */
			given_open(g);
			for (int i = md.n - 1; i >= 0; i--)
				if (md.m[i].np)
					model_take(&md, i);
			crashed++;
			break;
		default:
			if ((r >> 16 & 63) < 34 && md.n < MODEL_MAX) {
				bool is_np = r >> 24 & 1;
				struct qmsg_in in;
				snprintf(body, sizeof body, "%d", no);
				in = is_np ? np(body) : text(body);
				in.flags |= TPQPRIORITY;
				in.priority = 1 + (int)(r >> 25) % 5;
				CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
				model_put(&md, no++, in.priority, is_np);
			} else if (md.n > 0) {
				struct branch *b = tx(g, "t");
				snprintf(body, sizeof body, "%d", md.m[0].no);
				CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), body);
				if (r >> 24 & 1) {
					CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
				} else {
					CU_ASSERT_EQUAL(tx_commit(g, b), 0);
					model_take(&md, 0);
				}
			}
		}
		if (CU_get_number_of_failures() > failures)
			break;
	}
	CU_ASSERT_TRUE(reopened > 10 && crashed > 3);
	for (int i = 0; i < md.n; i++) {
		snprintf(body, sizeof body, "%d", md.m[i].no);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").np_bytes, 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").bytes, 0);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(everything_about_a_message_comes_back),
		UNIT(retries_delays_expiry_and_places_go_on),
		UNIT(a_prepared_transaction_keeps_its_part),
		UNIT(a_crash_after_the_open_loses_them),
		UNIT(an_old_file_never_counts_again),
		UNIT(a_kill_in_the_middle_of_the_close_loses_all_or_none),
		UNIT(a_damaged_file_is_dropped_with_a_line),
		UNIT(a_full_disk_at_the_close_loses_them_with_a_line_and_nothing_else),
		UNIT(a_full_memory_comes_back_full),
		UNIT(both_kinds_are_one_queue_whatever_happens),
	};
	char prefix[64], cmd[64];
	int rc;

	if (mkdtemp(log_dir) == NULL)
		return 2;
	snprintf(prefix, sizeof prefix, "%s/ULOG", log_dir);
	setenv("ULOGPFX", prefix, 1);
	rc = unit_run("qspace keep", tests, UNIT_COUNT(tests));
	snprintf(cmd, sizeof cmd, "rm -rf %s", log_dir);
	return system(cmd) == 0 ? rc : 2;
}
