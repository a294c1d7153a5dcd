/*
 * story_groups - tpbegin, tpcommit, tpabort, tpgetlev, tpscmt over two and three queue spaces, with all that api 3.8 says of
 * their errors; doom as api 2.6 has it; time-outs.  Real processes.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"

#define QUEUES "qcreate Q fifo none 2 0 100% 0% \"\"\nqcreate R fifo none 2 0 100% 0% \"\"\n"
#define REFUSED(call, code) do { CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, code); } while (0)

static struct given *
given_spaces(int n)
{
	return given_system(&(struct given_conf){ .spaces = n, .queues = QUEUES });
}

static bool
takes(const char *space, const char *queue, const char *text)
{
	char *got = take_from(space, queue);
	bool same = got != NULL && strcmp(got, text) == 0;

	free(got);
	return same;
}

struct spaces { struct given *g; int n; };

static bool
is_clean(void *arg)
{
	const struct spaces *s = arg;
	bool none = true;

	for (int i = 1; none && i <= s->n; i++) {
		char *text = given_qmadmin_of(s->g, i, "qprinttrans\n");

		none = !has(text, "gtrid");
		free(text);
	}
	return none;
}

static bool	/* No transaction is left in any of n spaces; the record of a decision goes a moment after the reply. */
none_left(struct given *g, int n)
{
	struct spaces s = { g, n };

	return wait_until(is_clean, &s, 10);
}

/* A message that a transaction took from queue Q of a space is there again: waits for it, takes it. */
struct back { const char *space; char *text; };

static bool
is_back(void *arg)
{
	struct back *b = arg;

	return (b->text = take_from(b->space, "Q")) != NULL;
}

static bool
comes_back(const char *space, const char *text, double seconds)
{
	struct back b = { space, NULL };
	bool same = wait_until(is_back, &b, seconds) && strcmp(b.text, text) == 0;

	free(b.text);
	return same;
}

/* --- together --- */

static void
what_is_done_in_three_spaces_is_seen_at_once(void)
{
	struct given *g = given_spaces(3);

	put("Q", "to move");
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "to move"));
	for (int n = 1; n <= 3; n++) {
		put_in(given_space(n), "R", "moved");
		CU_ASSERT_FALSE(takes(given_space(n), "R", "moved"));	/* not even by who put it there */
	}
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	for (int n = 1; n <= 3; n++)
		CU_ASSERT_TRUE(takes(given_space(n), "R", "moved"));
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	CU_ASSERT_TRUE(none_left(g, 3));
	given_done(g);
}

static void
tpabort_undoes_it_in_three_spaces(void)
{
	struct given *g = given_spaces(3);

	for (int n = 1; n <= 3; n++)
		put_in(given_space(n), "Q", given_group(n));
	GIVEN_CALL_OK(tpbegin(30, 0));
	for (int n = 1; n <= 3; n++) {
		CU_ASSERT_TRUE(takes(given_space(n), "Q", given_group(n)));
		put_in(given_space(n), "R", "never");
	}
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	for (int n = 1; n <= 3; n++) {
		char *text = given_qmadmin_of(g, n, "qset Q\nqlist\n");

		CU_ASSERT_EQUAL(depth_in(g, n, "R"), 0);
		CU_ASSERT_TRUE(has(text, "retries: 1"));
		free(text);
		CU_ASSERT_TRUE(takes(given_space(n), "Q", given_group(n)));
	}
	CU_ASSERT_TRUE(none_left(g, 3));
	given_done(g);
}

static void	/* CMTRET is where tpscmt() and TX begin; with either setting a commit is whole. */
tpscmt_begins_as_cmtret_says(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .resources = "CMTRET\tLOGGED\n" });
	static const long settings[] = { TP_CMT_LOGGED, TP_CMT_COMPLETE };

	CU_ASSERT_EQUAL(tpscmt(TP_CMT_COMPLETE), TP_CMT_LOGGED);
	REFUSED(tpscmt(0), TPEINVAL);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(tpscmt(settings[i]) != -1);
		GIVEN_CALL_OK(tpbegin(30, 0));
		put("Q", "one");
		put_in("QSPACE2", "Q", "two");
		GIVEN_CALL_OK(tpcommit(0));
		CU_ASSERT_TRUE(comes_back("QSPACE", "one", 10));
		CU_ASSERT_TRUE(comes_back("QSPACE2", "two", 10));	/* LOGGED: perhaps a moment later */
	}
	given_done(g);
}

static void
calls_outside_their_place(void)
{
	struct given *g = given_spaces(1);

	REFUSED(tpbegin(1, 1), TPEINVAL);
	REFUSED(tpcommit(1), TPEINVAL);
	REFUSED(tpabort(1), TPEINVAL);
	REFUSED(tpcommit(0), TPEPROTO);
	REFUSED(tpabort(0), TPEPROTO);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	GIVEN_CALL_OK(tpbegin(0, 0));		/* 0: the longest */
	REFUSED(tpbegin(30, 0), TPEPROTO);
	put("Q", "kept");
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpbegin(30, 0));
	GIVEN_CALL_OK(tpcommit(0));		/* nobody joined */
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "kept"));
	given_done(g);
}

/* --- a participant is lost --- */

static bool
is_gone(void *arg)
{
	return kill(*(pid_t *)arg, 0) == -1;	/* with all its threads, and BBL has seen it */
}

static void	/* So that nothing can be sent to it any more. */
kill_tmqueue(struct given *g, int space)
{
	pid_t pid = given_tmqueue(g, space);

	kill(pid, SIGKILL);
	CU_ASSERT_TRUE(wait_until(is_gone, &pid, 10));
}

static bool
runs_anew(void *arg)
{
	const pid_t *old = arg;		/* and the space is the first one */

	return given_tmqueue(given_standing(), 1) > 0 && given_tmqueue(given_standing(), 1) != *old;
}

static void	/* Its branch is lost with it, so the others' are rolled back: TPEABORT, and nothing half. */
a_group_that_died_before_the_commit(void)
{
	struct given *g = given_spaces(2);
	pid_t old = given_tmqueue(g, 1);

	put("Q", "first");
	put_in("QSPACE2", "Q", "second");
	for (int first = 1; first <= 2; first++) {	/* as the coordinator, and as another */
		old = given_tmqueue(g, 1);
		GIVEN_CALL_OK(tpbegin(60, 0));
		CU_ASSERT_TRUE(first == 1 ? takes("QSPACE", "Q", "first") : takes("QSPACE2", "Q", "second"));
		CU_ASSERT_TRUE(first == 1 ? takes("QSPACE2", "Q", "second") : takes("QSPACE", "Q", "first"));
		put("R", "never");
		put_in("QSPACE2", "R", "never");
		kill(old, SIGKILL);
		CU_ASSERT_TRUE(wait_until(runs_anew, &old, 15));
		REFUSED(tpcommit(0), TPEABORT);
		CU_ASSERT_EQUAL(tpgetlev(), 0);
		if (first == 2)			/* the coordinator knows whose fault it was, and says it to who reads the log */
			CU_ASSERT_TRUE(given_logged(g, "is rolled back: group QUE1 "));
		CU_ASSERT_TRUE(comes_back("QSPACE", "first", 10));
		CU_ASSERT_TRUE(comes_back("QSPACE2", "second", 10));
		put("Q", "first");
		put_in("QSPACE2", "Q", "second");
	}
	CU_ASSERT_EQUAL(depth(g, "R"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "R"), 0);
	CU_ASSERT_TRUE(none_left(g, 2));
	given_done(g);
}

static void	/* It cannot be told to commit: surely not committed, and the others hear it, long before their time. */
a_coordinator_that_is_gone_for_good(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 3, .queues = QUEUES, .tmqueue_params = "RESTART=N" });

	put_in("QSPACE2", "Q", "second");
	GIVEN_CALL_OK(tpbegin(3600, 0));
	put("R", "never");
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "second"));
	kill_tmqueue(g, 1);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(comes_back("QSPACE2", "second", 30));
	put_in("QSPACE2", "Q", "second");
	put_in("QSPACE3", "Q", "third");
	GIVEN_CALL_OK(tpbegin(3600, 0));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "second"));
	CU_ASSERT_TRUE(takes("QSPACE3", "Q", "third"));
	kill_tmqueue(g, 2);
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_TRUE(comes_back("QSPACE3", "third", 30));
	given_done(g);
}

static void	/* The coordinator hangs and asked for no vote: the caller makes sure that none is given.  When it goes on, all is undone. */
a_coordinator_that_hangs_finds_no_votes_later(void)
{
	struct given *g = given_spaces(2);
	pid_t coordinator = given_tmqueue(g, 1);

	GIVEN_CALL_OK(tpbegin(60, 0));
	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	GIVEN_CALL_OK(tpsblktime(1, TPBLK_ALL));
	kill(coordinator, SIGSTOP);
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	kill(coordinator, SIGCONT);
	GIVEN_CALL_OK(tpsblktime(0, TPBLK_ALL));
	put("R", "it serves again");
	GIVEN_CALL_OK(tpbegin(30, 0));		/* the next one waits its turn behind what was under way there */
	put("R", "marker");
	put_in("QSPACE2", "R", "marker");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_PTR_NULL(take("Q"));
	CU_ASSERT_PTR_NULL(take_from("QSPACE2", "Q"));
	CU_ASSERT_TRUE(none_left(g, 2));
	given_done(g);
}

/* --- time --- */

static void	/* Each owner undoes its part at the deadline, whatever SCANUNIT; the caller hears TPETIME, then TPEABORT. */
a_timeout_undoes_it_everywhere(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 3, .queues = QUEUES,
	    .resources = "SCANUNIT\t60\nBLOCKTIME\t1\n" });
	double began;

	for (int n = 1; n <= 3; n++)
		put_in(given_space(n), "Q", given_group(n));
	began = now_s();
	GIVEN_CALL_OK(tpbegin(1, 0));
	for (int n = 1; n <= 3; n++)
		CU_ASSERT_TRUE(takes(given_space(n), "Q", given_group(n)));
	while (tpgetlev() == 1 && now_s() - began < 30) {
		char *data = tpalloc("STRING", NULL, 10);
		long len;
		int rc = tpdequeue("QSPACE", "R", NULL, &data, &len, 0), err = tperrno;

		tpfree(data);
		CU_ASSERT_EQUAL(rc, -1);
		if (err == TPETIME)
			break;
		CU_ASSERT_EQUAL(err, TPEDIAGNOSTIC);
		nap_ms(20);
	}
	CU_ASSERT_TRUE(now_s() - began >= 0.999 && now_s() - began < 30);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	REFUSED(tpcommit(0), TPEABORT);
	for (int n = 1; n <= 3; n++)
		CU_ASSERT_TRUE(comes_back(given_space(n), given_group(n), 15));
	CU_ASSERT_TRUE(none_left(g, 3));
	given_done(g);
}

static void	/* Nobody ends it: the owners do at its time. */
a_transaction_whose_program_is_killed(void)
{
	struct given *g = given_spaces(2);
	int ready[2], status;
	pid_t pid;

	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	tpterm();
	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	if ((pid = fork()) == 0) {
		if (tpbegin(2, 0) == 0 && takes("QSPACE", "Q", "one") && takes("QSPACE2", "Q", "two"))
			(void)!write(ready[1], "x", 1);
		pause();
		_exit(1);
	}
	close(ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &status, 1), 1);
	close(ready[0]);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(comes_back("QSPACE", "one", 30));
	CU_ASSERT_TRUE(comes_back("QSPACE2", "two", 30));
	CU_ASSERT_TRUE(none_left(g, 2));
	given_done(g);
}

static void	/* A TPNOTRAN operation leaves the transaction alone, however it ends, but has no longer than that. */
operations_outside_are_bounded_by_the_transaction(void)
{
	struct given *g = given_spaces(2);
	TPQCTL ctl = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 10);
	double began;
	long len;

	GIVEN_CALL_OK(tpbegin(30, 0));
	put("Q", "inside");
	ctl.flags = TPNOFLAGS;
	REFUSED(tpdequeue("QSPACE2", "nowhere", &ctl, &data, &len, TPNOTRAN), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMEBADQUEUE);
	REFUSED(tpdequeue("NOSPACE", "Q", &ctl, &data, &len, TPNOTRAN), TPENOENT);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "inside"));
	began = now_s();
	GIVEN_CALL_OK(tpbegin(1, 0));
	ctl.flags = TPQWAIT;
	REFUSED(tpdequeue("QSPACE2", "Q", &ctl, &data, &len, TPNOTRAN | TPNOTIME), TPETIME);	/* -t of TMQUEUE is 30 s */
	CU_ASSERT_TRUE(now_s() - began < 25);
	GIVEN_CALL_OK(tpabort(0));
	tpfree(data);
	given_done(g);
}

/* --- doom, api 2.6 --- */

static void	/* In the second space: the whole transaction is rollback-only, and every call says TPETIME but one. */
a_doomed_transaction(void)
{
	struct given *g = given_spaces(2);
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("CARRAY", NULL, 10);
	long len;

	put("Q", "one");
	put_in("QSPACE2", "Q", "text");
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	REFUSED(tpdequeue("QSPACE2", "Q", &ctl, &data, &len, TPNOCHANGE), TPEOTYPE);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, data, 1, 0), TPETIME);
	REFUSED(tpenqueue("QSPACE", "Q", &ctl, data, 1, TPNOTRAN), TPETIME);
	REFUSED(tpdequeue("QSPACE2", "Q", &ctl, &data, &len, 0), TPETIME);
	REFUSED(tpcall("NOWHERE", NULL, 0, &data, &len, 0), TPETIME);
	REFUSED(tpacall("NOWHERE", NULL, 0, 0), TPETIME);
	REFUSED(tpacall("NOWHERE", NULL, 0, TPNOREPLY | TPNOTRAN | TPNOBLOCK), TPENOENT);	/* it is let through */
	REFUSED(tpcommit(0), TPEABORT);
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "text"));
	tpfree(data);
	given_done(g);
}

static void
what_does_not_doom(void)
{
	struct given *g = given_spaces(2);
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 10);
	long len;

	GIVEN_CALL_OK(tpbegin(30, 0));
	put("Q", "stays");
	REFUSED(tpdequeue("QSPACE2", "Q", &ctl, &data, &len, 0), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMENOMSG);
	REFUSED(tpdequeue("QSPACE2", "nowhere", &ctl, &data, &len, 0), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMEBADQUEUE);
	ctl.flags = TPQGETBYMSGID;
	memset(ctl.msgid, 7, sizeof ctl.msgid);
	REFUSED(tpdequeue("QSPACE2", "Q", &ctl, &data, &len, 0), TPEDIAGNOSTIC);
	ctl.flags = TPQTIME_ABS | TPQTIME_REL;
	REFUSED(tpenqueue("QSPACE2", "Q", &ctl, data, 0, 0), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMEINVAL);
	REFUSED(tpenqueue("QSPACE2", "Q", NULL, data, 0, 0x4000000), TPEINVAL);
	REFUSED(tpenqueue("NOSPACE", "Q", NULL, data, 0, 0), TPENOENT);
	put_in("QSPACE2", "Q", "stays too");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "stays"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "stays too"));
	tpfree(data);
	given_done(g);
}

static void	/* R35, over two spaces: the one that has no room for a transaction more is as if it had not been asked. */
a_space_without_room_for_a_transaction_more(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .space = "4000 20 5 50 2000 ERRQ n 16" });
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 10);
	TPTRANID open[5], sixth;

	data[0] = '\0';
	for (int i = 0; i < 5; i++) {
		GIVEN_CALL_OK(tpbegin(60, 0));
		put_in("QSPACE2", "Q", "five");
		GIVEN_CALL_OK(tpsuspend(&open[i], 0));
	}
	GIVEN_CALL_OK(tpbegin(60, 0));
	put("Q", "sixth");
	REFUSED(tpenqueue("QSPACE2", "Q", &ctl, data, 0, 0), TPEDIAGNOSTIC);
	CU_ASSERT_EQUAL(ctl.diagnostic, QMENOSPACE);
	GIVEN_CALL_OK(tpsuspend(&sixth, 0));
	GIVEN_CALL_OK(tpresume(&open[0], 0));
	GIVEN_CALL_OK(tpcommit(0));
	GIVEN_CALL_OK(tpresume(&sixth, 0));
	put_in("QSPACE2", "Q", "sixth");		/* one has ended: now it can */
	GIVEN_CALL_OK(tpcommit(0));
	for (int i = 1; i < 5; i++) {
		GIVEN_CALL_OK(tpresume(&open[i], 0));
		GIVEN_CALL_OK(tpabort(0));
	}
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 2);
	CU_ASSERT_TRUE(none_left(g, 2));
	tpfree(data);
	given_done(g);
}

/* --- leaving --- */

static void
who_leaves_rolls_back(void)
{
	struct given *g = given_spaces(2);
	int status;
	pid_t pid;

	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	GIVEN_CALL_OK(tpbegin(3600, 0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "two"));
	GIVEN_CALL_OK(tpterm());
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "two"));
	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	tpterm();
	if ((pid = fork()) == 0) {
		bool all = tpbegin(3600, 0) == 0 && takes("QSPACE", "Q", "one") && takes("QSPACE2", "Q", "two");

		exit(all ? 0 : 1);		/* not a word of an end */
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_TRUE(comes_back("QSPACE", "one", 10));
	CU_ASSERT_TRUE(comes_back("QSPACE2", "two", 10));
	CU_ASSERT_TRUE(none_left(g, 2));
	given_done(g);
}

static void	/* It is in no transaction, and what it does is its own. */
the_child_of_a_fork_does_not_end_it(void)
{
	struct given *g = given_spaces(2);
	int status;
	pid_t pid;

	GIVEN_CALL_OK(tpbegin(60, 0));
	put("Q", "one");
	put_in("QSPACE2", "Q", "two");
	if ((pid = fork()) == 0) {
		bool ok = tpgetlev() == 0 && tpabort(0) == -1 && tperrno == TPEPROTO && tpbegin(30, 0) == 0;

		put("R", "child");
		ok = ok && tpcommit(0) == 0 && tpterm() == 0;
		exit(ok ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_TRUE(takes("QSPACE", "Q", "one"));
	CU_ASSERT_TRUE(takes("QSPACE2", "Q", "two"));
	CU_ASSERT_TRUE(takes("QSPACE", "R", "child"));
	given_done(g);
}

/* ---- users ---- */

/* What a program of another user gets from a transaction over both spaces; 0: it is committed. */
static int
another_users_transaction(void)
{
	int status;
	pid_t pid;

	if ((pid = fork()) == 0) {
		setenv("ULOGPFX", "/dev/null/none", 1);
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(99);
		if (tpbegin(30, 0) == -1)
			_exit(tperrno);
		put("Q", "of nobody");
		put_in("QSPACE2", "Q", "of nobody");
		_exit(tpcommit(0) == -1 ? tperrno : 0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void	/* PERM says who may take part.  Only root can try. */
programs_of_another_user(void)
{
	static const struct { const char *resources; int is; } table[] = { { "PERM\t0666\n", 0 }, { "PERM\t0660\n", TPEPERM } };

	for (size_t i = 0; geteuid() == 0 && i < sizeof table / sizeof table[0]; i++) {
		struct given *g = given_system(&(struct given_conf){ .spaces = 2, .queues = QUEUES, .resources = table[i].resources });
		char *said = given_ok(g, NULL, "chmod o+x .. && chmod 755 . && chmod 644 tuxconfig");

		CU_ASSERT_EQUAL(another_users_transaction(), table[i].is);
		CU_ASSERT_EQUAL(takes("QSPACE", "Q", "of nobody"), table[i].is == 0);
		CU_ASSERT_EQUAL(takes("QSPACE2", "Q", "of nobody"), table[i].is == 0);
		free(said);
		given_done(g);
	}
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_is_done_in_three_spaces_is_seen_at_once),
		UNIT(tpabort_undoes_it_in_three_spaces),
		UNIT(tpscmt_begins_as_cmtret_says),
		UNIT(calls_outside_their_place),
		UNIT(a_group_that_died_before_the_commit),
		UNIT(a_coordinator_that_is_gone_for_good),
		UNIT(a_coordinator_that_hangs_finds_no_votes_later),
		UNIT(a_timeout_undoes_it_everywhere),
		UNIT(a_transaction_whose_program_is_killed),
		UNIT(operations_outside_are_bounded_by_the_transaction),
		UNIT(a_doomed_transaction),
		UNIT(what_does_not_doom),
		UNIT(a_space_without_room_for_a_transaction_more),
		UNIT(who_leaves_rolls_back),
		UNIT(the_child_of_a_fork_does_not_end_it),
		UNIT(programs_of_another_user),
	};

	return unit_run("story: groups", tests, UNIT_COUNT(tests));
}
