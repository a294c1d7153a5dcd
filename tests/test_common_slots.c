/*
 * The table of server processes: slots that processes claim, what others read there of their load, and what a request was at
 * when its server died.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "slots.h"
#include "unit.h"

static char dir[32], path[64];

static struct slots *
given_table(unsigned n)
{
	struct slots *t = NULL;
	char *why = NULL;

	snprintf(dir, sizeof dir, "/tmp/slotsXXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	slots_path(dir, path, sizeof path);
	CU_ASSERT_EQUAL_FATAL(slots_make(path, n, 0600, &t, &why), 0);
	return t;
}

static void
table_done(struct slots *t)
{
	slots_close(t);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void	/* A full disk is an error when the table is made, not a SIGBUS later. */
its_room_on_the_disk_is_taken_at_once(void)
{
	struct slots *t = given_table(500);
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	CU_ASSERT_TRUE((off_t)st.st_blocks * 512 >= st.st_size);
	table_done(t);
}

/* A server process that claims a slot, does something, and stays until it is killed. */
struct server { pid_t pid; int ready; };

static struct server
given_server(long grpno, long srvid, void (*what)(struct slots *t, unsigned i))
{
	struct server s;
	int ready[2];
	char c = 0;

	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	if ((s.pid = fork()) == 0) {
		struct slots *t = NULL;
		char *why = NULL;
		int i;

		if (slots_open(path, &t, &why) != 0 || (i = slots_claim(t, grpno, srvid, NULL)) < 0)
			_exit(9);
		if (what != NULL)
			what(t, (unsigned)i);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return s;
}

static void
kill_server(struct server *s)
{
	kill(s->pid, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(s->pid, NULL, 0), s->pid);
}

static struct slots_ref
find(const struct slots *t, long grpno, long srvid)
{
	struct slots_ref ref;

	CU_ASSERT_TRUE(slots_find(t, grpno, srvid, 0, &ref));
	return ref;
}

static void
what_a_server_claims_others_find(void)
{
	struct slots *t = given_table(4);
	struct slots_ref ref, none;
	struct slots_entry e;
	int i = slots_claim(t, 3, 30001, "orders");

	CU_ASSERT_FATAL(i >= 0);
	CU_ASSERT_TRUE(slots_find(t, 3, 30001, getpid(), &ref));
	CU_ASSERT_EQUAL(ref.i, i);
	CU_ASSERT_FALSE(slots_find(t, 3, 30001, getppid(), &none));
	CU_ASSERT_EQUAL(none.generation, 0);
	CU_ASSERT_FALSE(slots_find(t, 3, 30002, 0, &none));
	CU_ASSERT_TRUE(slots_read(t, (unsigned)i, &e));
	CU_ASSERT_EQUAL(e.pid, getpid());
	CU_ASSERT_EQUAL(e.grpno, 3);
	CU_ASSERT_EQUAL(e.srvid, 30001);
	CU_ASSERT_STRING_EQUAL(e.rqaddr, "orders");
	CU_ASSERT_FALSE(e.dead);
	CU_ASSERT_FALSE(slots_read(t, 3, &e));
	CU_ASSERT_FALSE(slots_read(t, 4, &e));
	table_done(t);
}

static void	/* The load of a server is what all have sent and it has not done. */
load_is_the_sum_of_what_all_send(void)
{
	struct slots *t = given_table(4), *other = NULL;
	struct slots_ref ref;
	struct slots_entry e;
	char *why = NULL;
	unsigned i = (unsigned)slots_claim(t, 1, 1, NULL);

	CU_ASSERT_EQUAL_FATAL(slots_open(path, &other, &why), 0);
	ref = find(other, 1, 1);
	slots_sent(other, ref, 50);
	slots_sent(t, ref, 70);
	slots_sent(t, ref, 5);
	slots_unsent(t, ref, 5);
	CU_ASSERT_EQUAL(slots_load(other, ref), 120);
	CU_ASSERT_TRUE(slots_read(other, i, &e) && e.load == 120 && e.sent == 2);
	slots_done(t, i, 50);
	CU_ASSERT_EQUAL(slots_load(other, ref), 70);
	slots_done(t, i, 70);
	CU_ASSERT_EQUAL(slots_load(other, ref), 0);
	slots_done(t, i, 70);		/* one that nobody counted */
	CU_ASSERT_EQUAL(slots_load(other, ref), 0);
	slots_close(other);
	table_done(t);
}

static void	/* A sender that died before it sent leaves nothing behind with a server that waits for work. */
load_that_never_came_is_forgotten(void)
{
	struct slots *t = given_table(4);
	unsigned i = (unsigned)slots_claim(t, 1, 1, NULL);
	struct slots_ref ref = find(t, 1, 1);

	slots_sent(t, ref, 50);
	CU_ASSERT_EQUAL(slots_load(t, ref), 50);	/* it may be on its way */
	clock_pass_us(1000000);
	CU_ASSERT_EQUAL(slots_load(t, ref), 0);
	slots_begin(t, i, 0, 1, 0);
	slots_sent(t, ref, 50);
	slots_sent(t, ref, 70);
	clock_pass_us(1000000);
	CU_ASSERT_EQUAL(slots_load(t, ref), 120);	/* it serves */
	slots_end(t, i, 0);
	slots_done(t, i, 50);
	CU_ASSERT_EQUAL(slots_load(t, ref), 70);	/* it is about to go on with the other */
	clock_pass_us(-2000000);
	table_done(t);
}

static void	/* Whoever is served takes the place of an uncounted one: a server that works is not idle. */
a_server_that_serves_has_load(void)
{
	struct slots *t = given_table(4);
	unsigned i = (unsigned)slots_claim(t, 1, 1, NULL);
	struct slots_ref ref = find(t, 1, 1);

	slots_begin(t, i, 0, 77, 0);
	CU_ASSERT_TRUE(slots_load(t, ref) > 0);
	slots_end(t, i, 0);
	CU_ASSERT_EQUAL(slots_load(t, ref), 0);
	table_done(t);
}

static void
serves_7_and_has_done_5(struct slots *t, unsigned i)
{
	slots_begin(t, i, 0, 5, 0);
	slots_end(t, i, 0);
	slots_begin(t, i, 63, 7, clock_mono_us() + 1000000);
}

static void
only_a_request_that_was_not_begun_may_be_sent_again(void)
{
	struct slots *t = given_table(4);
	struct server s = given_server(1, 1, serves_7_and_has_done_5);
	struct slots_ref ref = find(t, 1, 1);
	struct slots_entry e;

	CU_ASSERT_EQUAL(slots_fate(t, ref, 7, 0), SLOTS_UNKNOWN);	/* it lives: it may begin any time */
	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 0), SLOTS_UNKNOWN);
	CU_ASSERT_TRUE(slots_read(t, ref.i, &e));
	CU_ASSERT_EQUAL(e.serving, 1);
	CU_ASSERT_EQUAL(e.mark[63].key, 7);
	CU_ASSERT_TRUE(e.mark[63].since_us <= clock_mono_us() && e.mark[63].limit_us > e.mark[63].since_us);
	CU_ASSERT_EQUAL(e.mark[0].key, 0);
	kill_server(&s);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 7, 0), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 0), SLOTS_NOT_BEGUN);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 0, 0), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(slots_sweep(t), 1);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 7, 0), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 0), SLOTS_NOT_BEGUN);
	table_done(t);
}

static void
dies_soon(struct slots *t, unsigned i)
{
	(void)t;
	(void)i;
	signal(SIGALRM, SIG_DFL);
	alarm(1);
}

static void
a_process_that_is_just_ending_is_waited_for(void)
{
	struct slots *t = given_table(4);
	struct server s = given_server(1, 1, dies_soon);
	struct slots_ref ref = find(t, 1, 1);

	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 0), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 30000), SLOTS_NOT_BEGUN);
	CU_ASSERT_EQUAL(waitpid(s.pid, NULL, 0), s.pid);
	table_done(t);
}

static void
keeps_many(struct slots *t, unsigned i)
{
	for (uint64_t key = 1; key <= SLOTS_KEPT; key++) {
		slots_begin(t, i, 2, key, 0);
		if (slots_keep(t, i, 2) != (int)key - 1)
			_exit(8);
	}
	slots_drop(t, i, 9);		/* of key 10 */
}

static void
keeps_one_too_many(struct slots *t, unsigned i)
{
	keeps_many(t, i);
	for (uint64_t key = 100; key <= 101; key++) {
		slots_begin(t, i, 2, key, 0);
		slots_keep(t, i, 2);
	}
}

static void
counts_one_too_many_and_is_rid_of_it(struct slots *t, unsigned i)
{
	keeps_one_too_many(t, i);
	slots_drop(t, i, SLOTS_KEPT);
}

static void
serves_on_many_threads(struct slots *t, unsigned i)
{
	slots_begin(t, i, SLOTS_THREADS, 1, 0);
}

static void
served_on_many_threads(struct slots *t, unsigned i)
{
	serves_on_many_threads(t, i);
	slots_end(t, i, SLOTS_THREADS);
}

static enum slots_fate
fate_after(void (*what)(struct slots *t, unsigned i), uint64_t key)
{
	struct slots *t = given_table(4);
	struct server s = given_server(1, 1, what);
	struct slots_ref ref = find(t, 1, 1);
	enum slots_fate fate;

	kill_server(&s);
	fate = slots_fate(t, ref, key, 0);
	table_done(t);
	return fate;
}

static void	/* It is forwarded, or a part of its answer is in memory, while its thread serves the next one. */
a_mark_can_outlast_its_thread(void)
{
	CU_ASSERT_EQUAL(fate_after(keeps_many, 9), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(fate_after(keeps_many, 10), SLOTS_NOT_BEGUN);
	CU_ASSERT_EQUAL(fate_after(keeps_many, 64), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(fate_after(keeps_many, 65), SLOTS_NOT_BEGUN);
}

static void
where_marks_do_not_suffice_nothing_is_known(void)
{
	CU_ASSERT_EQUAL(fate_after(keeps_one_too_many, 9), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(fate_after(keeps_one_too_many, 101), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(fate_after(keeps_one_too_many, 999), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(fate_after(counts_one_too_many_and_is_rid_of_it, 999), SLOTS_NOT_BEGUN);
	CU_ASSERT_EQUAL(fate_after(serves_on_many_threads, 999), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(fate_after(served_on_many_threads, 999), SLOTS_NOT_BEGUN);
}

static void	/* Who lost the first process asks about that one, though another is at its place. */
a_server_that_is_started_again_has_another_slot(void)
{
	struct slots *t = given_table(4);
	struct server first = given_server(1, 1, serves_7_and_has_done_5), second;
	struct slots_ref before = find(t, 1, 1), after;

	kill_server(&first);
	second = given_server(1, 1, NULL);
	after = find(t, 1, 1);
	CU_ASSERT_TRUE(after.i != before.i && after.generation > before.generation);
	CU_ASSERT_EQUAL(slots_fate(t, before, 7, 0), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(slots_fate(t, after, 7, 0), SLOTS_UNKNOWN);
	kill_server(&second);
	CU_ASSERT_EQUAL(slots_fate(t, after, 7, 0), SLOTS_NOT_BEGUN);
	table_done(t);
}

static void	/* ... for a minute; then its slot is another's, which is noticed. */
a_dead_slot_is_left_alone_while_there_are_others(void)
{
	struct slots *t = given_table(3);
	struct server s = given_server(1, 1, NULL);
	struct slots_ref ref = find(t, 1, 1);
	int i;

	kill_server(&s);
	slots_sweep(t);
	clock_pass_us(SLOTS_HURRY_US + 1000000);
	for (i = 0; i < 2; i++)
		CU_ASSERT_NOT_EQUAL(slots_claim(t, 2, 2 + i, NULL), (int)ref.i);
	CU_ASSERT_EQUAL(slots_claim(t, 2, 4, NULL), (int)ref.i);
	clock_pass_us(-(SLOTS_HURRY_US + 1000000));
	table_done(t);
}

static void	/* A storm of deaths takes no new server its place. */
the_slot_that_is_dead_for_longest_is_claimed_first(void)
{
	struct slots *t = given_table(3);
	struct server s[3];
	struct slots_ref ref[3];
	struct slots_entry e;
	int i;

	for (i = 0; i < 3; i++) {
		s[i] = given_server(1, i, NULL);
		ref[i] = find(t, 1, i);
	}
	CU_ASSERT_EQUAL(slots_claim(t, 2, 2, NULL), -1);
	for (i = 2; i >= 1; i--) {
		kill_server(&s[i]);
		slots_sweep(t);
	}
	CU_ASSERT_EQUAL(slots_claim(t, 2, 2, NULL), -1);	/* too young */
	clock_pass_us(SLOTS_HURRY_US + 1000000);
	CU_ASSERT_EQUAL(slots_claim(t, 2, 2, NULL), (int)ref[2].i);
	CU_ASSERT_EQUAL(slots_fate(t, ref[2], 1, 0), SLOTS_UNKNOWN);
	CU_ASSERT_EQUAL(slots_load(t, ref[2]), -1);
	slots_sent(t, ref[2], 50);
	CU_ASSERT_TRUE(slots_read(t, ref[2].i, &e) && e.sent == 0);
	CU_ASSERT_EQUAL(slots_claim(t, 2, 3, NULL), (int)ref[1].i);
	CU_ASSERT_EQUAL(slots_claim(t, 2, 4, NULL), -1);
	kill_server(&s[0]);
	clock_pass_us(-(SLOTS_HURRY_US + 1000000));
	table_done(t);
}

static void
leaves_with_one_begun(struct slots *t, unsigned i)
{
	slots_begin(t, i, 0, 7, 0);
	slots_leave(t, i);
}

static void	/* It tidies up for long: what it did not begin need not wait for that. */
a_server_that_leaves_begins_nothing_more(void)
{
	struct slots *t = given_table(4);
	struct server s = given_server(1, 1, leaves_with_one_begun);
	struct slots_ref ref = find(t, 1, 1);

	CU_ASSERT_EQUAL(slots_fate(t, ref, 7, 0), SLOTS_BEGUN);
	CU_ASSERT_EQUAL(slots_fate(t, ref, 8, 0), SLOTS_NOT_BEGUN);
	CU_ASSERT_EQUAL(slots_load(t, ref), -1);
	kill_server(&s);
	table_done(t);
}

static void
bbl_keeps_a_table_that_is_there(void)
{
	struct slots *t = given_table(4), *again = NULL, *more = NULL;
	struct slots_ref ref;
	struct stat st;
	char *why = NULL;

	CU_ASSERT_TRUE(slots_claim(t, 1, 1, NULL) >= 0);
	CU_ASSERT_EQUAL_FATAL(slots_make(path, 3, 0660, &again, &why), 0);
	CU_ASSERT_EQUAL(slots_count(again), 4);
	CU_ASSERT_TRUE(slots_find(again, 1, 1, getpid(), &ref));
	CU_ASSERT_TRUE(stat(path, &st) == 0 && (st.st_mode & 0777) == 0660);
	CU_ASSERT_TRUE(slots_is_at(t, path));
	CU_ASSERT_EQUAL_FATAL(slots_make(path, 5, 0600, &more, &why), 0);	/* it is too small */
	CU_ASSERT_FALSE(slots_is_at(t, path));
	CU_ASSERT_FALSE(slots_find(more, 1, 1, 0, &ref));
	slots_close(again);
	slots_close(more);
	table_done(t);
}

static void
spoil(const char *file, off_t at, const char *bytes, size_t n)
{
	int fd = open(file, O_WRONLY);

	CU_ASSERT_EQUAL(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

static void
a_file_that_is_no_table_is_refused(void)
{
	struct slots *t = given_table(4), *bad = NULL;
	char *why = NULL;

	spoil(path, 0, "X", 1);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), -1);
	CU_ASSERT_PTR_NOT_NULL(why != NULL ? strstr(why, "damaged") : NULL);
	free(why);
	spoil(path, 0, "a", 1);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), 0);
	slots_close(bad);
	spoil(path, 12, "\377\377\377\177", 4);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), -1);
	free(why);
	spoil(path, 12, "\5\0\0\0", 4);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), -1);
	free(why);
	CU_ASSERT_EQUAL(truncate(path, 10), 0);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), -1);
	free(why);
	unlink(path);
	CU_ASSERT_EQUAL(symlink("/dev/zero", path), 0);
	CU_ASSERT_EQUAL(slots_open(path, &bad, &why), -1);
	free(why);
	table_done(t);
}

static void	/* Whatever others write into the table, a reader reads what is in it and no more. */
nonsense_in_the_table_harms_nobody(void)
{
	struct slots *t = given_table(2);
	struct slots_entry e;
	struct slots_ref ref, odd = { 77, 1 };
	unsigned seed = 1;
	char block[512];
	int round;

	for (round = 0; round < 200; round++) {
		for (size_t k = 0; k < sizeof block; k++)
			block[k] = (char)(rand_r(&seed) >> 8);
		spoil(path, 256 + (rand_r(&seed) % 8) * 512, block, sizeof block);
		for (unsigned i = 0; i < 3; i++)
			(void)slots_read(t, i, &e);
		(void)slots_find(t, 1, 1, 0, &ref);
		(void)slots_fate(t, ref, 5, 0);
		slots_sent(t, ref, 50);
		slots_done(t, 1, 50);
		slots_begin(t, 1, 1, 5, 0);
		slots_drop(t, 1, slots_keep(t, 1, 1));
	}
	slots_begin(t, 2, 0, 1, 0);
	slots_end(t, 2, 0);
	slots_drop(t, 2, slots_keep(t, 2, 0));
	slots_drop(t, 0, -1);
	CU_ASSERT_EQUAL(slots_load(t, odd), -1);
	table_done(t);
}

/* ---- many at once ---- */

static struct slots *shared;
static struct slots_ref everybodys;

static void *
sends_and_serves(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg;

	for (uint64_t n = 1; n <= 20000; n++) {
		slots_sent(shared, everybodys, 50);
		slots_begin(shared, everybodys.i, thread, n, 0);
		if (n % 3 == 0)
			slots_drop(shared, everybodys.i, slots_keep(shared, everybodys.i, thread));
		else
			slots_end(shared, everybodys.i, thread);
		slots_done(shared, everybodys.i, 50);
		(void)slots_load(shared, everybodys);
	}
	return NULL;
}

static void
many_threads_leave_nothing_behind(void)
{
	struct slots_entry e;
	pthread_t t[6];
	uintptr_t k;

	shared = given_table(2);
	CU_ASSERT_TRUE_FATAL(slots_claim(shared, 1, 1, NULL) >= 0);
	everybodys = find(shared, 1, 1);
	for (k = 0; k < 6; k++)
		pthread_create(&t[k], NULL, sends_and_serves, (void *)(k * 13));	/* 0 to 65: one has no mark */
	for (k = 0; k < 6; k++)
		pthread_join(t[k], NULL);
	CU_ASSERT_TRUE(slots_read(shared, everybodys.i, &e));
	CU_ASSERT_EQUAL(e.sent, 0);
	CU_ASSERT_EQUAL(e.load, 0);
	CU_ASSERT_EQUAL(e.serving, 0);
	table_done(shared);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(its_room_on_the_disk_is_taken_at_once),
		UNIT(what_a_server_claims_others_find),
		UNIT(load_is_the_sum_of_what_all_send),
		UNIT(load_that_never_came_is_forgotten),
		UNIT(a_server_that_serves_has_load),
		UNIT(only_a_request_that_was_not_begun_may_be_sent_again),
		UNIT(a_process_that_is_just_ending_is_waited_for),
		UNIT(a_mark_can_outlast_its_thread),
		UNIT(where_marks_do_not_suffice_nothing_is_known),
		UNIT(a_server_that_is_started_again_has_another_slot),
		UNIT(a_dead_slot_is_left_alone_while_there_are_others),
		UNIT(the_slot_that_is_dead_for_longest_is_claimed_first),
		UNIT(a_server_that_leaves_begins_nothing_more),
		UNIT(bbl_keeps_a_table_that_is_there),
		UNIT(a_file_that_is_no_table_is_refused),
		UNIT(nonsense_in_the_table_harms_nobody),
		UNIT(many_threads_leave_nothing_behind),
	};

	return unit_run("the table of server processes", tests, UNIT_COUNT(tests));
}
