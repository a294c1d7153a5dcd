/*
 * story_large - bodies of many megabytes, through real processes: in and out, byte by byte, whatever happens on the way,
 * and nothing of them is left.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

#define MIB (1L << 20)
#define FIFO(name) "qcreate " name " fifo none 5 0 100% 0% \"\"\n"

static struct given *g;
static long size;		/* of the large ones; all of 64 MiB when TEST_LONG is set */
static char *large;

static void
given_queues(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space = "1000000 20 50 50 4000 ERRQ n 16", .device_pages = 1100000,
		    .space_options = "-n 16000000b",
		    .queues = FIFO("LARGE") FIFO("SMALL") FIFO("SIZES") FIFO("WAIT") FIFO("KILL") });
	if (large != NULL)
		return;
	size = (getenv("TEST_LONG") != NULL ? 64 : 12) * MIB + 4711;
	large = tpalloc("CARRAY", NULL, size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(large);
	for (long i = 0; i < size; i++)
		large[i] = (char)(i * 31 + (i >> 12));
}

static int
enqueue(const char *queue, long flags)
{
	TPQCTL ctl = { 0 };

	return tpenqueue("QSPACE", (char *)queue, &ctl, large, size, flags);
}

static bool	/* the next one is the large one */
dequeue(const char *queue, long ctl_flags, long flags)
{
	TPQCTL ctl = { .flags = ctl_flags };
	char *data = tpalloc("STRING", NULL, 16);
	long n = 0;
	bool same;

	if (tpdequeue("QSPACE", (char *)queue, &ctl, &data, &n, flags) == -1)
		fprintf(stderr, "\n  tpdequeue: %s, diagnostic %ld\n", tpstrerror(tperrno), ctl.diagnostic);
	same = n == size && memcmp(data, large, (size_t)size) == 0;
	tpfree(data);
	return same;
}

static bool	/* the service is there again */
serves(void *arg)
{
	TPQCTL ctl = { .flags = TPQPEEK };
	char *data = tpalloc("CARRAY", NULL, 16);
	long n = 0;
	int rc = tpdequeue("QSPACE", "SMALL", &ctl, &data, &n, 0);

	(void)arg;
	tpfree(data);
	return rc == 0 || (tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG);
}

static bool	/* the room of bodies that went is free again: few files of messages are left, and the table is small */
no_parts(void *arg)
{
	char *parts = given_ok(g, NULL, "du -sk QUE.d/QSPACE/parts.db | cut -f1");
	char *files = given_ok(g, NULL, "ls QUE.d/QSPACE | grep -c '^messages\\.'");
	bool none = atol(parts) < 4096 && atol(files) <= 4;

	(void)arg;
	free(parts);
	free(files);
	return none;
}

static long	/* Entries of a Berkeley DB btree whose owner has closed it: those of its leaf pages. */
btree_entries(const char *file)
{
	enum { PAGE = 4096, ENTRIES = 20, TYPE = 25, LEAF = 5 };
	unsigned char page[PAGE];
	char path[512];
	FILE *f;
	long n = 0;

	snprintf(path, sizeof path, "%s/QUE.d/QSPACE/%s", given_dir(g), file);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f = fopen(path, "r"));
	while (fread(page, sizeof page, 1, f) == 1)
		if (page[TYPE] == LEAF)
			n += page[ENTRIES] | page[ENTRIES + 1] << 8;
	fclose(f);
	return n / 2;		/* keys, and what belongs to them */
}

static bool	/* Not one part, of whatever body.  TMQUEUE frees a few in each batch, so it may take another boot. */
no_part(void *arg)
{
	long n;

	(void)arg;
	free(given_ok(g, NULL, "tmshutdown -y -i 1"));
	n = btree_entries("parts.db");
	free(given_ok(g, NULL, "tmboot -y -i 1"));
	return n == 0;
}

static void	/* more bytes by ten than the files that stay would hold */
room_comes_back(void)
{
	given_queues();
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 3; k++)
			GIVEN_CALL_OK(enqueue("LARGE", 0));
		for (int k = 0; k < 3; k++)
			CU_ASSERT_TRUE(dequeue("LARGE", 0, 0));
	}
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 0);
	CU_ASSERT_TRUE(wait_until(no_parts, NULL, 60));
}

static void
it_comes_out_as_it_went_in_and_others_go_on(void)
{
	given_queues();
	GIVEN_CALL_OK(enqueue("LARGE", 0));
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 1);
	CU_ASSERT_TRUE(dequeue("LARGE", TPQPEEK, 0));
	CU_ASSERT_TRUE(dequeue("LARGE", TPQPEEK | TPQWAIT, 0));
	CU_ASSERT_TRUE(dequeue("LARGE", 0, 0));
	CU_ASSERT_EQUAL(take_diagnostic("LARGE"), QMENOMSG);
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 0);
	CU_ASSERT_TRUE(wait_until(no_part, NULL, 20));
	CU_ASSERT_TRUE(wait_until(serves, NULL, 60));
}

static void
in_a_transaction_it_is_there_at_the_commit(void)
{
	given_queues();
	GIVEN_CALL_OK(tpbegin(60, 0));
	GIVEN_CALL_OK(enqueue("LARGE", 0));
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 0);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(take_diagnostic("LARGE"), QMENOMSG);
	GIVEN_CALL_OK(tpbegin(60, 0));
	GIVEN_CALL_OK(enqueue("LARGE", 0));
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_TRUE(dequeue("LARGE", 0, 0));
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 1);
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_TRUE(dequeue("LARGE", 0, 0));
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(depth(g, "LARGE"), 0);
}

static pid_t
child(void (*fn)(void))
{
	pid_t pid = fork();

	CU_ASSERT_NOT_EQUAL_FATAL(pid, -1);
	if (pid == 0) {
		alarm(60);	/* whatever becomes of the test */
		fn();
		_exit(0);
	}
	return pid;
}

static void
child_waits(void)
{
	_exit(dequeue("WAIT", TPQWAIT, TPNOTIME) ? 0 : 1);
}

static void
one_who_waits_gets_it(void)
{
	pid_t pid;
	int status = -1;

	given_queues();
	tpterm();
	pid = child(child_waits);
	nap_ms(50);				/* it works whoever comes first */
	GIVEN_CALL_OK(enqueue("WAIT", 0));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(depth(g, "WAIT"), 0);
}

static void
child_enqueues(void)
{
	for (;;)
		(void)enqueue("KILL", 0);
}

static void
child_dequeues(void)
{
	for (;;)
		(void)dequeue("KILL", 0, 0);
}

static bool
has_some(void *arg)
{
	return depth(g, "KILL") >= *(long *)arg;
}

static void
a_client_killed_in_the_middle_leaves_whole_messages_or_none(void)
{
	long two = 2, n;
	pid_t pid;

	given_queues();
	tpterm();
	pid = child(child_enqueues);
	CU_ASSERT_TRUE(wait_until(has_some, &two, 60));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = child(child_dequeues);
	nap_ms(30);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while ((n = depth(g, "KILL")) > 0)
		CU_ASSERT_TRUE_FATAL(dequeue("KILL", 0, 0));
	CU_ASSERT_EQUAL(n, 0);
}

static void
tmqueue_killed_in_the_middle_leaves_whole_messages_or_none(void)
{
	long one = 1, n;
	pid_t pid, old;

	given_queues();
	for (int i = 0; i < 3; i++) {
		tpterm();
		pid = child(child_enqueues);
		CU_ASSERT_TRUE(wait_until(has_some, &one, 60));
		nap_ms(7 * i);
		old = given_pid(g, "TMQUEUE", 0);
		given_kill(g, "TMQUEUE", SIGKILL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CU_ASSERT_TRUE(wait_pid_changes(g, "TMQUEUE", old, 30));
		CU_ASSERT_TRUE(wait_until(serves, NULL, 60));
		CU_ASSERT_TRUE(depth(g, "KILL") >= one);
		while ((n = depth(g, "KILL")) > 0)
			CU_ASSERT_TRUE_FATAL(dequeue("KILL", 0, 0));
		CU_ASSERT_EQUAL(n, 0);
	}
}

static void
r03_no_size_and_no_quality_of_service_is_a_border(void)
{
	static const long kb[] = { 1, 10, 29, 31, 64, 1000 };
	TPQCTL ctl;
	char *data, *got;
	long n;

	given_queues();
	for (int np = 0; np < 2; np++)
		for (size_t i = 0; i < sizeof kb / sizeof *kb; i++) {
			data = tpalloc("CARRAY", NULL, kb[i] * 1000);
			got = tpalloc("CARRAY", NULL, 16);
			for (n = 0; n < kb[i] * 1000; n++)
				data[n] = (char)(n * 7 + kb[i]);
			ctl = (TPQCTL){ .flags = TPQDELIVERYQOS, .delivery_qos = np ? TPQQOSNONPERSISTENT : TPQQOSPERSISTENT };
			GIVEN_CALL_OK(tpenqueue("QSPACE", "SIZES", &ctl, data, kb[i] * 1000, 0));
			ctl = (TPQCTL){ .flags = TPQDELIVERYQOS };
			n = 0;
			GIVEN_CALL_OK(tpdequeue("QSPACE", "SIZES", &ctl, &got, &n, 0));
			CU_ASSERT_EQUAL(n, kb[i] * 1000);
			CU_ASSERT_EQUAL(memcmp(got, data, (size_t)n), 0);
			CU_ASSERT_EQUAL(ctl.delivery_qos, np ? TPQQOSNONPERSISTENT : TPQQOSPERSISTENT);
			tpfree(data);
			tpfree(got);
		}
}

static void
a_shutdown_in_the_middle_keeps_what_was_answered(void)
{
	long one = 1, n;
	pid_t pid;

	given_queues();
	tpterm();
	pid = child(child_enqueues);
	CU_ASSERT_TRUE(wait_until(has_some, &one, 60));
	free(given_ok(g, NULL, "tmshutdown -y -i 1"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(given_ok(g, NULL, "tmboot -y -i 1"));
	CU_ASSERT_TRUE(wait_until(serves, NULL, 60));
	CU_ASSERT_TRUE((n = depth(g, "KILL")) >= 1);
	for (; n > 0; n--)
		CU_ASSERT_TRUE_FATAL(dequeue("KILL", 0, 0));
	CU_ASSERT_EQUAL(depth(g, "KILL"), 0);
	CU_ASSERT_TRUE(wait_until(no_parts, NULL, 20));
	CU_ASSERT_TRUE(wait_until(no_part, NULL, 20));
	tpterm();
	tpfree(large);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(it_comes_out_as_it_went_in_and_others_go_on),
		UNIT(in_a_transaction_it_is_there_at_the_commit),
		UNIT(room_comes_back),
		UNIT(one_who_waits_gets_it),
		UNIT(r03_no_size_and_no_quality_of_service_is_a_border),
		UNIT(a_client_killed_in_the_middle_leaves_whole_messages_or_none),
		UNIT(tmqueue_killed_in_the_middle_leaves_whole_messages_or_none),
		UNIT(a_shutdown_in_the_middle_keeps_what_was_answered),
	};

	return unit_run("large bodies", tests, UNIT_COUNT(tests));
}
