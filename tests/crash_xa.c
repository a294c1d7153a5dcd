/*
 * crash_xa - other transaction managers move messages between two queue spaces while they, the queue managers and the bulletin
 * board are killed.  CRASH_KILLS says how often; a hundred times when it does not.
 *
 * Each manager has a file with the ids that it decided to commit, written before the first xa_commit(), and recovers by it when
 * it is started again.  Each transaction leaves a receipt with its id in both spaces.  At the end
 *     every message is there once, in one space or the other
 *     the ids of the receipts in either space are those that were decided: all or nothing, in both
 *     nothing is in doubt
 */
#include "given_crash.h"
#include "given_xa.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define QUEUES "qcreate ORDERS fifo none 30000 0 100% 0% \"\"\nqcreate RECEIPTS fifo none 30000 0 100% 0% \"\"\n"
enum { MANAGERS = 5, MESSAGES = 30, PATIENCE_S = 60 };

/* ---- a transaction manager ---- */

static char dir[4096];
static int me, decisions;
static unsigned seed;

static bool
asked_to_stop(void)
{
	char path[4200];

	snprintf(path, sizeof path, "%s/stop", dir);
	return access(path, F_OK) == 0;
}

static char *		/* All that was decided by anybody, in one string. */
decided_text(void)
{
	char path[4200], *text = calloc(1, 1), *more;
	size_t n = 0;
	int i;

	for (i = 0; i < MANAGERS; i++) {
		char line[100];
		FILE *f;

		snprintf(path, sizeof path, "%s/decided.%d", dir, i);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		while (fgets(line, sizeof line, f) != NULL) {
			size_t len = strlen(line);
			if ((more = realloc(text, n + len + 1)) == NULL)
				abort();
			text = more;
			memcpy(text + n, line, len + 1);
			n += len;
		}
		fclose(f);
	}
	return text;
}

static bool
was_decided(const char *decided, const XID *x)
{
	char id[80];

	snprintf(id, sizeof id, "%.*s\n", (int)x->gtrid_length, x->data);	/* no id is the end of another: they begin with M */
	return has(decided, id);
}

/* Until it is known how it ended.  false: the time is over. */
static bool
ends(int (*call)(const XID *, int, long), const XID *x, int rmid)
{
	double until = now_s() + PATIENCE_S;
	int rc;

	while (now_s() < until) {
		rc = call(x, rmid, TMNOFLAGS);
		if (rc == XA_OK || rc == XAER_NOTA)
			return true;
		if (rc != XA_RETRY && rc != XAER_RMFAIL) {
			fprintf(stderr, "crash_xa: %s of %.*s in space %d: %d\n", call == xa_commit ? "commit" : "rollback",
			    (int)x->gtrid_length, x->data, rmid, rc);
			return false;
		}
		nap_ms(20);
	}
	return false;
}

/* Who begins with mine (NULL: everybody): committed when that was decided. */
static bool
recover(const char *mine)
{
	static XID x[1000];
	char *decided = decided_text();
	bool well = true;
	int rmid, n, i;

	for (rmid = 1; rmid <= 2; rmid++) {
		double until = now_s() + PATIENCE_S;

		while ((n = xa_in_doubt(rmid, x, 1000)) == -1 && now_s() < until)
			nap_ms(50);
		for (i = 0; i < n; i++)
			if (mine == NULL || strncmp(x[i].data, mine, strlen(mine)) == 0)
				well = ends(was_decided(decided, &x[i]) ? xa_commit : xa_rollback, &x[i], rmid) && well;
		well = well && n >= 0;
	}
	free(decided);
	return well;
}

static int
open_both(void)
{
	double until = now_s() + PATIENCE_S;
	int rmid;

	for (rmid = 1; rmid <= 2; rmid++)
		while (xa_open(xa_info(dir, rmid), rmid, TMNOFLAGS) != XA_OK) {
			if (now_s() > until)
				return -1;
			nap_ms(50);
		}
	return 0;
}

static bool
move_message(const char *gtrid)
{
	int from = rand_r(&seed) % 2 != 0 ? 1 : 2;
	char text[64];

	return xa_take(from, "ORDERS", text) == 0 && xa_put(3 - from, "ORDERS", text) == 0 && xa_put(1, "RECEIPTS", gtrid) == 0 &&
	    xa_put(2, "RECEIPTS", gtrid) == 0;
}

static bool
decide(const char *gtrid)
{
	char line[80];
	int n = snprintf(line, sizeof line, "%s\n", gtrid);

	return write(decisions, line, (size_t)n) == n;
}

/* Over both spaces.  false: it does not end. */
static bool
transaction(const char *gtrid)
{
	XID a = xa_id(gtrid, "1"), b = xa_id(gtrid, "2");
	bool in_a = xa_start(&a, 1, TMNOFLAGS) == XA_OK, in_b = in_a && xa_start(&b, 2, TMNOFLAGS) == XA_OK;
	bool well = in_b && move_message(gtrid);
	long how = rand_r(&seed) % 10 == 0 ? TMFAIL : TMSUCCESS;

	if (in_a)
		well = xa_end(&a, 1, how) == XA_OK && well;
	if (in_b)
		well = xa_end(&b, 2, how) == XA_OK && well;
	well = well && how == TMSUCCESS && xa_prepare(&a, 1, TMNOFLAGS) == XA_OK && xa_prepare(&b, 2, TMNOFLAGS) == XA_OK;
	if (well && rand_r(&seed) % 10 != 0)
		return decide(gtrid) && ends(xa_commit, &a, 1) && ends(xa_commit, &b, 2);
	return ends(xa_rollback, &a, 1) && ends(xa_rollback, &b, 2);
}

/* In one space and in one phase: a message goes to the end of its queue.  Whatever becomes of it, it is there once. */
static bool
short_transaction(const char *gtrid)
{
	XID x = xa_id(gtrid, "short");
	int space = rand_r(&seed) % 2 != 0 ? 1 : 2, rc;
	char text[64];
	bool well;

	if (xa_start(&x, space, TMNOFLAGS) != XA_OK)
		return ends(xa_rollback, &x, space);
	well = xa_take(space, "ORDERS", text) == 0 && xa_put(space, "ORDERS", text) == 0;
	well = xa_end(&x, space, TMSUCCESS) == XA_OK && well;
	if (!well)
		return ends(xa_rollback, &x, space);
	rc = xa_commit(&x, space, TMONEPHASE);
	return rc == XA_OK || rc == XAER_NOTA || rc >= XA_RBBASE || ends(xa_rollback, &x, space);
}

static int
manager(const char *where, const char *number)
{
	char path[4200], mine[40], gtrid[64];
	int n;

	snprintf(dir, sizeof dir, "%s", where);
	me = atoi(number);
	seed = (unsigned)getpid();
	snprintf(path, sizeof path, "%s/decided.%d", dir, me);
	if ((decisions = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600)) == -1 || open_both() != 0)
		return 2;
	snprintf(mine, sizeof mine, "M%d ", me);
	if (!recover(mine))
		return 3;
	for (n = 0; !asked_to_stop(); n++) {
		snprintf(gtrid, sizeof gtrid, "M%d %ld %d.", me, (long)getpid(), n);
		if (!(n % 5 == 4 ? short_transaction(gtrid) : transaction(gtrid)))
			return 4;
		nap_ms((int)(rand_r(&seed) % 20u));
	}
	return recover(mine) && xa_close(1, TMNOFLAGS) == XA_OK && xa_close(2, TMNOFLAGS) == XA_OK && tpterm() == 0 ? 0 : 5;
}

/* ---- who kills ---- */

static struct xa_driver managers[MANAGERS];

static void
manager_start(int i)
{
	char number[12];

	snprintf(number, sizeof number, "%d", i);
	managers[i] = xa_driver_start(dir, number);
}

/* Whoever lives starts the others again, so somebody must: BBL dies while both queue managers live, and they after it is back. */
static void
kill_board(const struct given *g)
{
	pid_t pid = given_pid(g, "BBL", 0);

	if (pid <= 0 || given_tmqueue(g, 1) <= 0 || given_tmqueue(g, 2) <= 0)
		return;
	kill(pid, SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "BBL", pid, 30));
}

static void
kill_somebody(const struct given *g)
{
	int i = (int)(rand_r(&seed) % MANAGERS), which = (int)(rand_r(&seed) % 10);
	pid_t pid;

	if (which < 5) {
		xa_driver_kill(&managers[i]);
		manager_start(i);
		return;
	}
	if (which == 9)
		kill_board(g);
	else if ((pid = given_tmqueue(g, 1 + which % 2)) > 0)
		kill(pid, SIGKILL);
}

/* What is on a queue, each line once. */
static int
drain(int space, const char *queue, char *into, size_t room)
{
	size_t at = strlen(into);
	char text[64];
	int n = 0, rc;
	double until = now_s() + PATIENCE_S;

	while ((rc = xa_take(space, queue, text)) != QMENOMSG && now_s() < until) {
		if (rc != 0) {
			nap_ms(20);
			continue;
		}
		at += (size_t)snprintf(into + at, room - at, "%s\n", text);
		n++;
	}
	return n;
}

/* No branch is left: a queue manager notices within a second or two who is gone. */
static bool
nothing_is_held(void *arg)
{
	bool none = true;
	int space;

	for (space = 1; space <= 2; space++) {
		char *list = given_qmadmin_of(arg, space, "qprinttrans\n");

		none = none && !has(list, "transaction index");
		free(list);
	}
	return none;
}

static void
each_message_is_there_once(void)
{
	static char all[100 * MESSAGES];
	char line[40];
	int i;

	all[0] = '\0';
	CU_ASSERT_EQUAL(drain(1, "ORDERS", all, sizeof all) + drain(2, "ORDERS", all, sizeof all), MESSAGES);
	for (i = 0; i < MESSAGES; i++) {
		snprintf(line, sizeof line, "order %d.\n", i);
		CU_ASSERT_EQUAL(count_of(all, line), 1);
	}
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **		/* Its lines in order. */
sorted(char *text, int *n)
{
	char **line = NULL, *p;
	int room = 0;

	*n = 0;
	for (p = strtok(text, "\n"); p != NULL; p = strtok(NULL, "\n")) {
		if (*n == room)
			line = realloc(line, (size_t)(room = room * 2 + 1000) * sizeof *line);
		line[(*n)++] = p;
	}
	if (*n > 0)
		qsort(line, (size_t)*n, sizeof *line, by_text);
	return line;
}

static void
receipts_are_those_of_what_was_decided(void)
{
	enum { ROOM = 8 << 20 };
	char *decided = decided_text(), **want, **have, *text = malloc(ROOM);
	int n, m, space, i;

	want = sorted(decided, &n);
	printf("\n    %d transactions were decided to commit", n);
	CU_ASSERT_TRUE(n > MANAGERS);
	for (space = 1; space <= 2; space++) {
		text[0] = '\0';
		drain(space, "RECEIPTS", text, ROOM);
		have = sorted(text, &m);
		CU_ASSERT_EQUAL(m, n);
		for (i = 0; i < n && i < m && strcmp(want[i], have[i]) == 0; i++)
			;
		if (i < n && i < m)
			printf("\n    decided \"%s\", receipt in space %d \"%s\"", want[i], space, have[i]);
		CU_ASSERT_EQUAL(i, n);
		free(have);
	}
	free(want);
	free(decided);
	free(text);
}

static void
all_or_nothing_in_both_spaces_whoever_is_killed(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .device_pages = 80000,
		.space = "60000 20 500 50 60000 ERRQ n 16" });
	int kills = crash_kills(100), i;
	char text[40];

	snprintf(dir, sizeof dir, "%s", given_dir(g));
	seed = (unsigned)getpid();
	for (i = 0; i < MESSAGES; i++) {
		snprintf(text, sizeof text, "order %d.", i);
		CU_ASSERT_EQUAL(xa_put(1 + i % 2, "ORDERS", text), 0);
	}
	for (i = 0; i < MANAGERS; i++)
		manager_start(i);
	for (i = 0; i < kills; i++) {
		nap_ms(100 + (int)(rand_r(&seed) % 700u));
		kill_somebody(g);
	}
	given_write(g, "stop", "now");
	for (i = 0; i < MANAGERS; i++)
		CU_ASSERT_EQUAL(xa_driver_ends(&managers[i]), 0);
	CU_ASSERT_EQUAL_FATAL(open_both(), 0);
	CU_ASSERT_TRUE(recover(NULL));
	CU_ASSERT_TRUE(wait_until(nothing_is_held, g, 30));
	each_message_is_there_once();
	receipts_are_those_of_what_was_decided();
	CU_ASSERT_EQUAL(depth_in(g, 1, "ERRQ") + depth_in(g, 2, "ERRQ"), 0);
	CU_ASSERT_EQUAL(xa_close(1, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(2, TMNOFLAGS), XA_OK);
	given_done(g);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(all_or_nothing_in_both_spaces_whoever_is_killed) };

	if (argc == 3 && strcmp(argv[0], "driver") == 0)
		return manager(argv[1], argv[2]);
	return unit_run("crash: XA", tests, UNIT_COUNT(tests));
}
