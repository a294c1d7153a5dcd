/*
 * Limits that hold, room that comes back, ownership, versions, and what create and destroy leave behind.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "given_space.h"

static void
messages_and_pages_are_exact_and_come_back(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct branch *b;
	char *page = calloc(1, 600);
	struct qmsg_in two = text("");

	p.messages = 3;
	p.pages = 5;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	two.body = page;
	two.body_len = 513;
	CU_ASSERT_EQUAL(put(g, "orders", "one page"), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", two, NULL), 0);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", two, NULL), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "a fourth message"), QMENOSPACE);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one page");
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", two, NULL), QMENOSPACE);	/* two pages where one is left */
	b = tx(g, "t");
	CU_ASSERT_EQUAL(put_in(g, b, "orders", text("reserves"), NULL), 0);	/* so its commit cannot fail */
	CU_ASSERT_EQUAL(put(g, "orders", "x"), QMENOSPACE);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "x"), 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").blocks, 5);
	reopen(g);
	CU_ASSERT_EQUAL(put(g, "orders", "x"), QMENOSPACE);
	CU_ASSERT_NOT_EQUAL(*next(g, "orders"), '!');
	CU_ASSERT_EQUAL(put(g, "orders", "x"), 0);
	free(page);
	given_done(g);
}

static void
queues_and_transactions_are_limits_too(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	struct branch_id id = { 3, "t-6" };
	struct queue_params q = queue_of("q3", QC_FIFO, 0, 0, 0);
	struct branch *b;

	p.queues = 2;
	p.trans = 5;
	g = given_space(&p);
	create_fifo(g, "q1", 0, 0);
	create_fifo(g, "q2", 0, 0);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &q), QMENOSPACE);
	commit(g);
	for (int i = 0; i < 5; i++) {
		char name[8];
		snprintf(name, sizeof name, "t-%d", i);
		tx(g, name);
	}
	begin(g);
	CU_ASSERT_EQUAL(qspace_branch_begin(g->qs, &id, 0, &b), QMENOSPACE);
	commit(g);
	CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "t-0")), 0);
	CU_ASSERT_PTR_NOT_NULL(tx(g, "t-6"));
	given_done(g);
}

static void
a_space_has_one_owner_and_says_who(void)
{
	struct given_space *g = given_space(NULL);
	char *why = NULL, endpoint[64];
	struct qspace *second;
	char path[256];
	long pid = 0;
	FILE *f;

	CU_ASSERT_EQUAL(qspace_open(g->device, "QS", NULL, &second, &why), QSPACE_OWNED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(why);
	snprintf(path, sizeof path, "process %ld", (long)getpid());
	CU_ASSERT_PTR_NOT_NULL(strstr(why, path));
	free(why);
	qspace_close(g->qs);
	CU_ASSERT_EQUAL(qspace_owner(g->device, "QS", endpoint, sizeof endpoint, &pid), -1);
	CU_ASSERT_EQUAL(qspace_open(g->device, "QS", "ipc:///run/x", &g->qs, NULL), 0);
	CU_ASSERT_EQUAL(qspace_owner(g->device, "QS", endpoint, sizeof endpoint, &pid), 0);
	CU_ASSERT_STRING_EQUAL(endpoint, "ipc:///run/x");
	CU_ASSERT_EQUAL(pid, getpid());
	qspace_close(g->qs);
	snprintf(path, sizeof path, "%s.d/QS/OWNER", g->device);
	f = fopen(path, "w");				/* what a dead owner left */
	fprintf(f, "pid 1\nendpoint ipc:///run/dead\n");
	fclose(f);
	CU_ASSERT_EQUAL(qspace_owner(g->device, "QS", endpoint, sizeof endpoint, &pid), -1);
	given_open(g);
	given_done(g);
}

static void
another_disk_version_is_refused_untouched(void)
{
	struct given_space *g = given_space(NULL);
	char path[256], text_of[4096], *why = NULL, *v;
	struct stat before, after;
	size_t n;
	FILE *f;

	qspace_close(g->qs);
	snprintf(path, sizeof path, "%s.d/QS/SPACE", g->device);
	f = fopen(path, "r+");
	n = fread(text_of, 1, sizeof text_of - 1, f);
	text_of[n] = '\0';
	v = strstr(text_of, "version 3");
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	v[8] = '9';
	rewind(f);
	fwrite(text_of, 1, n, f);
	fclose(f);
	snprintf(path, sizeof path, "%s.d/QS", g->device);
	stat(path, &before);
	CU_ASSERT_EQUAL(qspace_open(g->device, "QS", NULL, &g->qs, &why), QMERELEASE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(why);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "version 9"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "version 3"));
	stat(path, &after);
	CU_ASSERT_EQUAL(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	free(why);
	given_done(g);
}

static void
destroying_asks_first_and_a_name_can_be_used_again(void)
{
	struct given_space *g = given_space(NULL);
	char *why = NULL;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "x");
	CU_ASSERT_EQUAL(qspace_destroy(g->device, "QS", true, &why), DEVE_INUSE);
	CU_ASSERT_PTR_NOT_NULL(why);
	free(why);
	why = NULL;
	qspace_close(g->qs);
	CU_ASSERT_EQUAL(qspace_create(g->device, &g->params, NULL), DEVE_EXIST);
	CU_ASSERT_EQUAL(qspace_destroy(g->device, "QS", false, NULL), DEVE_INUSE);
	CU_ASSERT_EQUAL(qspace_destroy(g->device, "nope", false, NULL), DEVE_NOSUCH);
	CU_ASSERT_EQUAL(qspace_destroy(g->device, "QS", true, &why), 0);
	CU_ASSERT_PTR_NULL(why);
	CU_ASSERT_EQUAL(qspace_open(g->device, "QS", NULL, &g->qs, &why), QMEBADRMID);
	free(why);
	why = NULL;
	CU_ASSERT_EQUAL(qspace_create(g->device, &g->params, &why), 0);
	given_open(g);
	CU_ASSERT_PTR_NULL(qspace_queue_next(g->qs, NULL));
	given_done(g);
}

static void	/* Spare log files are found by directory, so spaces of one process do not take each other's. */
several_spaces_live_in_one_process(void)
{
	struct qspace_params p = given_params("TWO");
	struct given_space *g = given_space(NULL), *h = given_space(&p);

	create_fifo(g, "orders", 0, 0);
	create_fifo(h, "orders", 0, 0);
	put(g, "orders", "of QS");
	put(h, "orders", "of TWO");
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "of QS");
	CU_ASSERT_STRING_EQUAL(next(h, "orders"), "of TWO");
	given_done(g);
	given_done(h);
}

static void	/* The kill fell between the new log file's appearance and its first record. */
a_log_file_of_zeroes_is_the_end_of_the_log(void)
{
	struct given_space *g = given_space(NULL);
	char path[256];
	int fd;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "kept");
	qspace_close(g->qs);
	snprintf(path, sizeof path, "%s.d/QS/log.0000000002", g->device);
	CU_ASSERT_NOT_EQUAL_FATAL(fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
	CU_ASSERT_EQUAL(ftruncate(fd, 16 << 20), 0);
	close(fd);
	given_open(g);
	put(g, "orders", "after");
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "kept");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "after");
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(messages_and_pages_are_exact_and_come_back),
		UNIT(queues_and_transactions_are_limits_too),
		UNIT(a_space_has_one_owner_and_says_who),
		UNIT(another_disk_version_is_refused_untouched),
		UNIT(destroying_asks_first_and_a_name_can_be_used_again),
		UNIT(several_spaces_live_in_one_process),
		UNIT(a_log_file_of_zeroes_is_the_end_of_the_log),
	};
	return unit_run("qspace limits", tests, UNIT_COUNT(tests));
}
