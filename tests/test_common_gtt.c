/*
 * The global transaction table: slots that processes claim, pass on and leave behind.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "gtt.h"
#include "unit.h"

static char dir[32], path[64];

static struct gtt *
given_table(unsigned n)
{
	struct gtt *g = NULL;
	char *why = NULL;

	snprintf(dir, sizeof dir, "/tmp/gttXXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	gtt_path(dir, path, sizeof path);
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, n, 0600, &g, &why), 0);
	return g;
}

static void
table_done(struct gtt *g)
{
	gtt_close(g);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static struct gtt_entry
entry(const char *gtrid)
{
	struct gtt_entry e = { .gtrid_len = (uint8_t)strlen(gtrid), .begun_us = 5, .deadline_us = clock_mono_us() + 60000000 };

	memcpy(e.gtrid, gtrid, strlen(gtrid));
	return e;
}

static int
claim(struct gtt *g, const char *gtrid)
{
	struct gtt_entry e = entry(gtrid);

	return gtt_claim(g, &e);
}

static enum gtt_resumed
resume(struct gtt *g, int i, const char *gtrid, struct gtt_entry *e)
{
	return gtt_resume(g, (unsigned)i, (const uint8_t *)gtrid, strlen(gtrid), e);
}

static unsigned
used(const struct gtt *g)
{
	struct gtt_entry e;
	unsigned i, n = 0;

	for (i = 0; i < gtt_slots(g); i++)
		n += gtt_read(g, i, &e);
	return n;
}

static void	/* Another process does something with the table and ends: what it returned. */
other_process(int (*what)(struct gtt *g, int arg), int arg, int expected)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct gtt *g = NULL;
		char *why = NULL;

		_exit(gtt_open(path, 0, &g, &why) != 0 ? 99 : what(g, arg));
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(WEXITSTATUS(status), expected);
}

static void
what_is_written_can_be_read_by_others(void)
{
	struct gtt *g = given_table(10), *h = NULL;
	struct gtt_entry e = entry("first");
	char *why = NULL;
	int i, k;

	e.by_tx = true;
	CU_ASSERT_EQUAL_FATAL(gtt_open(path, 10, &h, &why), 0);
	CU_ASSERT_EQUAL(gtt_slots(h), 10);
	i = gtt_claim(g, &e);
	CU_ASSERT_FATAL(i >= 0);
	for (k = 1; k <= 6; k++)
		gtt_joined(g, (unsigned)i, (uint16_t)(k * 1000));
	gtt_doomed(g, (unsigned)i);
	CU_ASSERT_TRUE_FATAL(gtt_read(h, (unsigned)i, &e));
	CU_ASSERT_EQUAL(e.state, GTT_ACTIVE);
	CU_ASSERT_EQUAL(e.pid, getpid());
	CU_ASSERT_TRUE(e.process_start != 0);
	CU_ASSERT_EQUAL(e.gtrid_len, 5);
	CU_ASSERT_NSTRING_EQUAL(e.gtrid, "first", 5);
	CU_ASSERT_EQUAL(e.begun_us, 5);
	CU_ASSERT_TRUE(e.doomed && e.by_tx && !e.autotran && !e.tied);
	CU_ASSERT_EQUAL(e.n_groups, 6);
	for (k = 1; k <= 6; k++)
		CU_ASSERT_EQUAL(e.grpno[k - 1], k * 1000);
	gtt_enter(g, (unsigned)i, GTT_COMMITTING);
	CU_ASSERT_TRUE(gtt_read(h, (unsigned)i, &e));
	CU_ASSERT_EQUAL(e.state, GTT_COMMITTING);
	gtt_enter(g, (unsigned)i, GTT_FREE);
	CU_ASSERT_FALSE(gtt_read(h, (unsigned)i, &e));
	CU_ASSERT_FALSE(gtt_read(h, 10, &e));
	gtt_close(h);
	table_done(g);
}

static void *
stays(void *arg)
{
	(void)!write(*(int *)arg, "x", 1);
	for (;;)
		pause();
	return NULL;
}

static void	/* Its first thread called pthread_exit(): it looks dead at a glance. */
a_process_without_its_first_thread_keeps_its_slots(void)
{
	struct gtt *g = given_table(3);
	int ready[2], status;
	pid_t pid;
	char state = 0, text[64], *line = NULL;

	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	if ((pid = fork()) == 0) {
		struct gtt_entry e = entry("its");
		struct gtt *mine = NULL;
		char *why = NULL;
		pthread_t t;

		if (gtt_open(path, 0, &mine, &why) != 0 || gtt_claim(mine, &e) < 0)
			_exit(1);
		pthread_create(&t, NULL, stays, &ready[1]);
		pthread_exit(NULL);
	}
	CU_ASSERT_EQUAL(read(ready[0], &state, 1), 1);
	snprintf(text, sizeof text, "/proc/%ld/stat", (long)pid);
	for (state = 0; state != 'Z';) {
		FILE *f = fopen(text, "r");
		size_t n = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		if (getline(&line, &n, f) > 0 && strrchr(line, ')') != NULL)
			state = strrchr(line, ')')[2];
		fclose(f);
		free(line);
		line = NULL;
		usleep(1000);
	}
	CU_ASSERT_EQUAL(gtt_sweep(g), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(gtt_sweep(g), 1);
	close(ready[0]);
	close(ready[1]);
	table_done(g);
}

static void
open_is_what_has_a_slot_and_time(void)
{
	struct gtt *g = given_table(3), *other = NULL;
	struct gtt_entry e = entry("first"), out;
	char *why = NULL;
	int i;

	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"first", 5));
	e.deadline_us = GTT_NEVER;
	i = gtt_claim(g, &e);
	CU_ASSERT_TRUE(gtt_is_open(g, (const uint8_t *)"first", 5));
	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"firs", 4));
	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"", 0));
	gtt_suspend(g, (unsigned)i, false);
	CU_ASSERT_TRUE(gtt_is_open(g, (const uint8_t *)"first", 5));
	CU_ASSERT_EQUAL(gtt_resume(g, (unsigned)i, (const uint8_t *)"first", 5, &out), GTT_RESUMED);
	gtt_enter(g, (unsigned)i, GTT_ABORTING);
	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"first", 5));
	gtt_enter(g, (unsigned)i, GTT_FREE);
	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"first", 5));
	e.deadline_us = clock_mono_us() - 1;		/* its time is over */
	CU_ASSERT_TRUE(gtt_claim(g, &e) >= 0);
	CU_ASSERT_FALSE(gtt_is_open(g, (const uint8_t *)"first", 5));
	CU_ASSERT_EQUAL_FATAL(gtt_open(path, 0, &other, &why), 0);
	CU_ASSERT_TRUE(gtt_mark(g) != 0 && gtt_mark(other) == gtt_mark(g));
	gtt_close(other);
	CU_ASSERT_EQUAL(unlink(path), 0);		/* one that is made in its place is another */
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, 3, 0600, &other, &why), 0);
	CU_ASSERT_NOT_EQUAL(gtt_mark(other), gtt_mark(g));
	gtt_close(other);
	table_done(g);
}

static void
no_more_than_there_are_slots(void)
{
	struct gtt *g = given_table(3);
	int i = claim(g, "a");

	CU_ASSERT_TRUE(claim(g, "b") >= 0);
	CU_ASSERT_TRUE(claim(g, "c") >= 0);
	CU_ASSERT_EQUAL(claim(g, "d"), -1);
	gtt_enter(g, (unsigned)i, GTT_FREE);
	CU_ASSERT_EQUAL(claim(g, "d"), i);
	CU_ASSERT_EQUAL(used(g), 3);
	table_done(g);
	g = given_table(0);
	CU_ASSERT_EQUAL(claim(g, "a"), -1);
	table_done(g);
}

static int
resumed_here(struct gtt *g, int i)
{
	struct gtt_entry e;

	return (int)resume(g, i, "gone on", &e);
}

static void
a_suspended_one_is_resumed_once_and_anywhere(void)
{
	struct gtt *g = given_table(5);
	struct gtt_entry e;
	int i = claim(g, "gone on");

	CU_ASSERT_EQUAL(resume(g, i, "gone on", &e), GTT_TAKEN);	/* not suspended */
	gtt_joined(g, (unsigned)i, 7);
	gtt_suspend(g, (unsigned)i, false);
	CU_ASSERT_EQUAL(resume(g, i, "gone", &e), GTT_NONE);
	CU_ASSERT_EQUAL(resume(g, (i + 1) % 5, "gone on", &e), GTT_NONE);
	CU_ASSERT_EQUAL(resume(g, 99, "gone on", &e), GTT_NONE);
	CU_ASSERT_EQUAL(resume(g, i, "gone on", &e), GTT_RESUMED);
	CU_ASSERT_EQUAL(e.n_groups, 1);
	CU_ASSERT_EQUAL(e.grpno[0], 7);
	CU_ASSERT_EQUAL(resume(g, i, "gone on", &e), GTT_TAKEN);
	gtt_suspend(g, (unsigned)i, true);
	other_process(resumed_here, i, GTT_NONE);	/* tied to us */
	CU_ASSERT_EQUAL(resume(g, i, "gone on", &e), GTT_RESUMED);
	gtt_suspend(g, (unsigned)i, false);
	other_process(resumed_here, i, GTT_RESUMED);
	CU_ASSERT_EQUAL(resume(g, i, "gone on", &e), GTT_TAKEN);
	gtt_enter(g, (unsigned)i, GTT_FREE);		/* not ours any more: without effect */
	CU_ASSERT_EQUAL(used(g), 1);
	table_done(g);
}

static int
claims_and_dies(struct gtt *g, int n)
{
	while (n-- > 0)
		if (claim(g, "left") < 0)
			return 1;
	return 0;
}

static int
suspends_and_dies(struct gtt *g, int seconds)
{
	struct gtt_entry e = entry("left");
	int i;

	e.deadline_us = clock_mono_us() + seconds * INT64_C(1000000);
	if ((i = gtt_claim(g, &e)) < 0)
		return 1;
	gtt_suspend(g, (unsigned)i, false);
	return 0;
}

static void
slots_of_dead_processes_are_swept(void)
{
	struct gtt *g = given_table(20);

	CU_ASSERT_TRUE(claim(g, "mine") >= 0);
	other_process(claims_and_dies, 19, 0);
	CU_ASSERT_EQUAL(claim(g, "more"), -1);
	CU_ASSERT_EQUAL(gtt_sweep(g), 19);
	CU_ASSERT_EQUAL(used(g), 1);
	CU_ASSERT_EQUAL(gtt_sweep(g), 0);
	table_done(g);
}

static void
a_suspended_one_outlives_its_process_until_its_time(void)
{
	struct gtt *g = given_table(5);

	other_process(suspends_and_dies, 30, 0);
	CU_ASSERT_EQUAL(gtt_sweep(g), 0);
	clock_pass_us(31000000);
	CU_ASSERT_EQUAL(gtt_sweep(g), 0);	/* who comes late still hears that its time is over */
	clock_pass_us(61000000);
	CU_ASSERT_EQUAL(gtt_sweep(g), 1);
	table_done(g);
}

static void
a_good_table_is_kept_and_a_bad_one_replaced(void)
{
	struct gtt *g = given_table(8), *again = NULL;
	char *why = NULL;
	struct stat st;
	int fd;

	CU_ASSERT_TRUE(claim(g, "a") >= 0);
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, 8, 0660, &again, &why), 0);
	CU_ASSERT_TRUE(gtt_is_at(g, path));
	CU_ASSERT_EQUAL(used(again), 1);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0660);
	gtt_close(again);
	CU_ASSERT_EQUAL(gtt_open(path, 9, &again, &why), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "another size"));
	free(why);
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, 9, 0600, &again, &why), 0);
	CU_ASSERT_FALSE(gtt_is_at(g, path));
	CU_ASSERT_EQUAL(used(again), 0);
	gtt_close(again);
	fd = open(path, O_RDWR);
	CU_ASSERT_EQUAL(pwrite(fd, "\2", 1, 8), 1);	/* its version */
	close(fd);
	CU_ASSERT_EQUAL(gtt_open(path, 0, &again, &why), -1);
	free(why);
	CU_ASSERT_EQUAL(truncate(path, 100), 0);
	CU_ASSERT_EQUAL(gtt_open(path, 0, &again, &why), -1);
	free(why);
	CU_ASSERT_EQUAL_FATAL(gtt_make(path, 9, 0600, &again, &why), 0);
	gtt_close(again);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(gtt_open(path, 0, &again, &why), -1);
	CU_ASSERT_PTR_NULL(again);
	free(why);
	gtt_close(g);
	rmdir(dir);
}

static void	/* Whatever is in a slot, reading it does no harm, and no number leads out of an array. */
nonsense_in_a_slot_is_not_believed(void)
{
	struct gtt *g = given_table(4);
	struct gtt_entry e;
	uint8_t junk[192];
	int fd = open(path, O_RDWR), round, i;
	unsigned seed = 7;

	for (round = 0; round < 2000; round++) {
		for (i = 0; i < (int)sizeof junk; i++)
			junk[i] = (uint8_t)rand_r(&seed);
		CU_ASSERT_EQUAL(pwrite(fd, junk, sizeof junk, 256 + 192), (ssize_t)sizeof junk);
		if (gtt_read(g, 1, &e)) {
			CU_ASSERT_TRUE(e.n_groups <= GTT_GROUPS);
			CU_ASSERT_TRUE(e.gtrid_len <= GTT_GTRID);
			CU_ASSERT_TRUE(e.state < GTT_STATES);
		}
		gtt_sweep(g);
	}
	close(fd);
	table_done(g);
}

/* ---- many at once ---- */

static struct gtt *shared;
static atomic_bool stop;
static atomic_long rounds, copies, torn;

static void *
owner(void *arg)
{
	char gtrid[32];
	struct gtt_entry e;
	int k;

	(void)arg;
	for (k = 0; !stop; k++) {
		int i;

		memset(&e, 0, sizeof e);
		memset(gtrid, 'a' + k % 26, sizeof gtrid);
		memcpy(e.gtrid, gtrid, sizeof e.gtrid);
		e.gtrid_len = sizeof gtrid;
		e.begun_us = e.deadline_us = 'a' + k % 26;
		if ((i = gtt_claim(shared, &e)) < 0)
			continue;
		gtt_joined(shared, (unsigned)i, (uint16_t)('a' + k % 26));
		gtt_enter(shared, (unsigned)i, GTT_FREE);
		rounds++;
	}
	return NULL;
}

static void *
looker(void *arg)
{
	struct gtt_entry e;
	unsigned i;

	(void)arg;
	while (!stop)
		for (i = 0; i < gtt_slots(shared); i++)
			if (gtt_read(shared, i, &e)) {
				copies++;
				torn += e.gtrid[0] != e.gtrid[31] || e.begun_us != e.gtrid[0] ||
				    (e.n_groups > 0 && e.grpno[0] != e.gtrid[0]);
			}
	return NULL;
}

static void
copies_are_whole_while_many_write(void)
{
	pthread_t t[4];
	int i;

	shared = given_table(2);
	stop = false;
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, i < 2 ? owner : looker, NULL);
	while (rounds < 3000000 || copies < 1000000)
		usleep(1000);
	stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CU_ASSERT_EQUAL(torn, 0);
	CU_ASSERT_EQUAL(used(shared), 0);
	table_done(shared);
}

static void	/* A writer that dies in the middle leaves a slot that nobody reads and a sweep frees. */
a_slot_left_in_writing_is_swept(void)
{
	struct gtt *g = given_table(2);
	struct gtt_entry e;
	uint64_t word;
	int fd = open(path, O_RDWR);
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	word = (uint64_t)pid << 32 | 0x100 | 0x80 | GTT_ACTIVE;
	CU_ASSERT_EQUAL(pwrite(fd, &word, sizeof word, 256), (ssize_t)sizeof word);
	CU_ASSERT_FALSE(gtt_read(g, 0, &e));
	CU_ASSERT_EQUAL(gtt_sweep(g), 1);
	CU_ASSERT_TRUE(claim(g, "a") >= 0);
	CU_ASSERT_TRUE(claim(g, "b") >= 0);
	close(fd);
	table_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_is_written_can_be_read_by_others),
		UNIT(a_process_without_its_first_thread_keeps_its_slots),
		UNIT(open_is_what_has_a_slot_and_time),
		UNIT(no_more_than_there_are_slots),
		UNIT(a_suspended_one_is_resumed_once_and_anywhere),
		UNIT(slots_of_dead_processes_are_swept),
		UNIT(a_suspended_one_outlives_its_process_until_its_time),
		UNIT(a_good_table_is_kept_and_a_bad_one_replaced),
		UNIT(nonsense_in_a_slot_is_not_believed),
		UNIT(copies_are_whole_while_many_write),
		UNIT(a_slot_left_in_writing_is_swept),
	};

	return unit_run("gtt", tests, UNIT_COUNT(tests));
}
