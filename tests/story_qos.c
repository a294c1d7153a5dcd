/*
 * story_qos - quality of service with real processes: what is persistent stays, what is not stays as long as its owner
 * ends in good order, and is never made the one or the other behind the program's back.
 */
#include <signal.h>
#include <unistd.h>

#include "given.h"

#define FOR_EVER "RESTART=Y GRACE=0 MAXGEN=255"
#define MEMORY "-n 200B"
#define QUEUES \
	"qcreate ORDERS fifo none 100 0 100% 0% \"\"\nqcreate -d nonpersist FAST fifo none 100 0 100% 0% \"\"\n" \
	"qcreate PRIO priority none 100 600 100% 0% \"\"\nqcreate ONCE fifo none 0 60 100% 0% \"\"\n"

static struct given *
given_memory(const char *options)
{
	return given_system(&(struct given_conf){ .queues = QUEUES, .space_options = options,
	    .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
}

/* 0, or the diagnostic. */
static int
put_qos(const char *queue, const char *text, long qos)
{
	TPQCTL ctl = { .flags = qos != 0 ? TPQDELIVERYQOS : TPNOFLAGS, .delivery_qos = qos };
	char *data = tpalloc("STRING", NULL, (long)strlen(text) + 1);
	int rc = 0;

	strcpy(data, text);
	if (tpenqueue("QSPACE", (char *)queue, &ctl, data, 0, 0) == -1)
		rc = tperrno == TPEDIAGNOSTIC ? (int)ctl.diagnostic : 1000 + tperrno;
	tpfree(data);
	return rc;
}

static long	/* a number that qinfo shows of a queue */
shown(const struct given *g, const char *queue, const char *label)
{
	char line[128], *out, *at;
	long n = -1;

	snprintf(line, sizeof line, "qinfo %s\n", queue);
	out = given_qmadmin(g, line);
	snprintf(line, sizeof line, "  %s: ", label);
	if ((at = strstr(out, line)) != NULL)
		n = strtol(at + strlen(line), NULL, 10);
	free(out);
	return n;
}

static long
in_memory(const struct given *g, const char *queue)
{
	return shown(g, queue, "non-persistent messages");
}

static bool
is_text(char *got, const char *want)
{
	bool same = got != NULL && strcmp(got, want) == 0;

	if (!same)
		fprintf(stderr, "\n\"%s\" where \"%s\" was wanted\n", got == NULL ? "nothing" : got, want);
	free(got);
	return same;
}

static void
they_survive_shutdown_and_qmadmin_and_no_crash(void)
{
	struct given *g = given_memory(MEMORY);
	pid_t old;

	put_qos("ORDERS", "p1", 0);
	put_qos("ORDERS", "n2", TPQQOSNONPERSISTENT);
	put_qos("ORDERS", "p3", TPQQOSPERSISTENT);
	put_qos("FAST", "n4", 0);
	put_qos("FAST", "p5", TPQQOSPERSISTENT);
	put_qos("FAST", "n6", TPQQOSDEFAULTPERSIST);
	tpterm();
	given_shutdown(g);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);		/* qmadmin opens and closes the space, twice a command */
	CU_ASSERT_EQUAL(in_memory(g, "ORDERS"), 1);
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 2);
	given_boot(g);
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "p1"));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "n2"));
	CU_ASSERT_TRUE(is_text(take("FAST"), "n4"));
	free(given_ok(g, NULL, "tmshutdown -y -S >/dev/null && tmboot -y -S >/dev/null"));
	CU_ASSERT_TRUE(is_text(take_within("ORDERS", 10), "p3"));
	CU_ASSERT_PTR_NULL(take("ORDERS"));
	CU_ASSERT_TRUE(is_text(take("FAST"), "p5"));
	put_qos("ORDERS", "p7", 0);
	put_qos("ORDERS", "n8", TPQQOSNONPERSISTENT);
	old = given_pid(g, "TMQUEUE", 0);
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE_FATAL(wait_pid_changes(g, "TMQUEUE", old, 10));
	CU_ASSERT_TRUE(is_text(take_within("ORDERS", 10), "p7"));
	CU_ASSERT_PTR_NULL(take("ORDERS"));		/* n8, and n6, are lost in the crash */
	CU_ASSERT_PTR_NULL(take("FAST"));
	given_done(g);
}

static void
the_default_is_that_of_the_moment_of_the_enqueue(void)
{
	struct given *g = given_memory(MEMORY);

	put_qos("ORDERS", "was persistent", 0);
	free(given_qmadmin(g, "qchange -d nonpersist ORDERS none 100 0 100% 0% \"\"\n"));
	put_qos("ORDERS", "in memory now", 0);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 1);
	CU_ASSERT_EQUAL(in_memory(g, "ORDERS"), 1);
	free(given_qmadmin(g, "qchange -d persist ORDERS none 100 0 100% 0% \"\"\n"));
	put_qos("ORDERS", "and back", 0);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);
	CU_ASSERT_EQUAL(in_memory(g, "ORDERS"), 1);
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "was persistent"));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "in memory now"));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "and back"));
	given_done(g);
}

static bool
can_put(void *queue)
{
	return put_qos(queue, "probe", TPQQOSPERSISTENT) == 0;
}

static bool
is_gone(void *pid)
{
	return process_gone(*(pid_t *)pid);
}

static void
end_the_owner(const struct given *g, int signal)
{
	char *out = given_qmadmin(g, "ipcs QSPACE\n"), *at = strstr(out, "process: ");
	pid_t pid = at == NULL ? 0 : (pid_t)strtol(at + 9, NULL, 10);

	free(out);
	CU_ASSERT_TRUE_FATAL(pid > 0 && kill(pid, signal) == 0);
	CU_ASSERT_TRUE(wait_until(is_gone, &pid, 20));
}

static void	/* After a crash of the first it finds none; after a good end it finds them. */
who_stood_by_finds_them_after_a_good_end_only(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .space_options = MEMORY,
	    .tmqueue = "MIN=2 MAX=2 RESTART=N CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });

	put_qos("ORDERS", "p", 0);
	put_qos("ORDERS", "n", TPQQOSNONPERSISTENT);
	end_the_owner(g, SIGTERM);
	CU_ASSERT_TRUE(wait_until(can_put, "ONCE", 10));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "p"));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "n"));
	put_qos("ORDERS", "p", 0);
	put_qos("ORDERS", "n", TPQQOSNONPERSISTENT);
	tpterm();
	given_shutdown(g);
	given_boot(g);
	end_the_owner(g, SIGKILL);
	CU_ASSERT_TRUE(wait_until(can_put, "ONCE", 10));
	CU_ASSERT_TRUE(is_text(take("ORDERS"), "p"));
	CU_ASSERT_PTR_NULL(take("ORDERS"));
	given_done(g);
}

/* --- reports --- */

static void	/* R05: no memory means no, not persistent behind one's back; what would be lost is asked about. */
r05_memory_is_asked_for_and_never_dropped_unasked(void)
{
	struct given *g = given_memory("");
	struct ran r;

	CU_ASSERT_EQUAL(put_qos("ORDERS", "x", TPQQOSNONPERSISTENT), QMENOSPACE);
	CU_ASSERT_EQUAL(put_qos("FAST", "x", 0), QMENOSPACE);
	CU_ASSERT_EQUAL(put_qos("FAST", "x", TPQQOSPERSISTENT), 0);
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 0);
	CU_ASSERT_EQUAL(depth(g, "FAST"), 1);
	free(given_qmadmin(g, "qspacechange -n 100B QSPACE\n\n\n\n\n\n\n\n"));
	CU_ASSERT_EQUAL(put_qos("FAST", "x", 0), QMENOSPACE);	/* from the next start on */
	tpterm();
	given_shutdown(g);
	given_boot(g);
	CU_ASSERT_EQUAL(put_qos("FAST", "in memory", 0), 0);
	CU_ASSERT_EQUAL(put_qos("FAST", "in memory too", 0), 0);
	free(given_ok(g, "qaddext QSPACE 40\n", "qmadmin"));		/* drops nothing, served or not */
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 2);
	tpterm();
	given_shutdown(g);
	free(given_ok(g, "qaddext QSPACE 40\nqspacechange -n 50B QSPACE\n\n\n\n\n\n\n\n", "qmadmin"));
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 2);
	r = given_run(g, "qspacechange -n 0 QSPACE\n\n\n\n\n\n\n\n", "qmadmin");
	CU_ASSERT_TRUE(has(r.err, "non-persistent messages"));
	ran_free(&r);
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 2);
	r = given_run(g, "ipcrm QSPACE\nn\n", "qmadmin");
	CU_ASSERT_TRUE(has(r.out, "Remove all 2 non-persistent messages of queue space QSPACE (y/n)?"));
	ran_free(&r);
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 2);
	free(given_ok(g, "ipcrm -y QSPACE\n", "qmadmin"));
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 0);
	free(given_ok(g, "ipcrm QSPACE\nipcrm -f -y QSPACE\n", "qmadmin"));	/* nothing there: no question, no error */
	given_boot(g);
	CU_ASSERT_TRUE(is_text(take("FAST"), "x"));
	CU_ASSERT_EQUAL(put_qos("FAST", "in memory", 0), 0);
	r = given_run(g, "ipcrm -y QSPACE\n", "qmadmin");		/* served: only by force */
	CU_ASSERT_TRUE(has(r.err, "use -f"));
	ran_free(&r);
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 1);
	free(given_ok(g, "ipcrm -f -y QSPACE\n", "qmadmin"));
	CU_ASSERT_EQUAL(in_memory(g, "FAST"), 0);
	given_done(g);
}

static void
put_bytes(long qos, const char *bytes, long len)
{
	TPQCTL ctl = { .flags = TPQDELIVERYQOS, .delivery_qos = qos };
	char *data = tpalloc("CARRAY", NULL, len);

	memcpy(data, bytes, (size_t)len);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ORDERS", &ctl, data, len, 0));
	tpfree(data);
}

static void	/* R04 */
r04_bytes_are_bytes_over_queue_restart_and_call(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES, .space_options = MEMORY,
	    .server_source = "#include \"atmi.h\"\nvoid BACK(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n",
	    .server_services = "-s BACK", .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE\"" });
	char bytes[1024], type[9], *data;
	long len;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i < 256 ? i : i < 512 ? 511 - i : i * 7);
	put_bytes(TPQQOSPERSISTENT, bytes, sizeof bytes);
	put_bytes(TPQQOSNONPERSISTENT, bytes, sizeof bytes);
	put_bytes(TPQQOSPERSISTENT, bytes, 256);
	put_bytes(TPQQOSPERSISTENT, bytes, 1);		/* one zero byte */
	tpterm();
	given_shutdown(g);
	given_boot(g);
	data = tpalloc("STRING", NULL, 16);
	for (int i = 0; i < 4; i++) {
		TPQCTL ctl = { .flags = TPNOFLAGS };
		long want = i < 2 ? (long)sizeof bytes : i == 2 ? 256 : 1;
		GIVEN_CALL_OK(tpdequeue("QSPACE", "ORDERS", &ctl, &data, &len, 0));
		CU_ASSERT_EQUAL(len, want);
		CU_ASSERT_TRUE(len == want && memcmp(data, bytes, (size_t)want) == 0);
		tptypes(data, type, NULL);
		CU_ASSERT_EQUAL(strncmp(type, "CARRAY", 8), 0);
		GIVEN_CALL_OK(tpcall("BACK", data, len, &data, &len, 0));
		CU_ASSERT_TRUE(len == want && memcmp(data, bytes, (size_t)want) == 0);
	}
	tpfree(data);
	given_done(g);
}

static void	/* R12: the retry delay is no delay on the error queue. */
r12_a_spent_message_is_on_the_error_queue_at_once(void)
{
	struct given *g = given_memory(MEMORY);

	for (int i = 0; i < 2; i++) {
		put_qos("ONCE", i ? "n" : "p", i ? TPQQOSNONPERSISTENT : TPQQOSPERSISTENT);
		GIVEN_CALL_OK(tpbegin(60, 0));
		CU_ASSERT_TRUE(is_text(take("ONCE"), i ? "n" : "p"));
		GIVEN_CALL_OK(tpabort(0));
		CU_ASSERT_PTR_NULL(take("ONCE"));
		CU_ASSERT_TRUE(is_text(take("ERRQ"), i ? "n" : "p"));
	}
	given_done(g);
}

static long
retries_shown(const struct given *g, const char *queue, const char *id)
{
	char cmd[200], *out, *at;
	long n = -1;

	snprintf(cmd, sizeof cmd, "qset %s\nqscan -i %s\nqlist\n", queue, id);
	out = given_qmadmin(g, cmd);
	if ((at = strstr(out, "  retries: ")) != NULL)
		n = strtol(at + strlen("  retries: "), NULL, 10);
	free(out);
	return n;
}

static void	/* R56: over a good end for both kinds, over a kill for what is persistent. */
r56_priority_pause_and_redelivery_count_survive(void)
{
	struct given *g = given_memory(MEMORY);
	char *data = tpalloc("STRING", NULL, 32);

	for (int i = 0; i < 6; i++) {
		TPQCTL ctl = { .flags = TPQPRIORITY | TPQCORRID | TPQDELIVERYQOS, .priority = 10 + 10 * i,
		    .delivery_qos = i % 2 ? TPQQOSNONPERSISTENT : TPQQOSPERSISTENT };
		if (i == 3) {
			ctl.flags |= TPQTIME_REL;
			ctl.deq_time = 3600;
		}
		snprintf(ctl.corrid, sizeof ctl.corrid, "m%d", i);
		snprintf(data, 32, "m%d", i);
		GIVEN_CALL_OK(tpenqueue("QSPACE", "PRIO", &ctl, data, 0, 0));
	}
	GIVEN_CALL_OK(tpbegin(60, 0));
	CU_ASSERT_TRUE(is_text(take("PRIO"), "m5"));
	CU_ASSERT_TRUE(is_text(take("PRIO"), "m4"));
	GIVEN_CALL_OK(tpabort(0));			/* both rest for ten minutes now */
	tpterm();
	given_shutdown(g);
	given_boot(g);
	CU_ASSERT_EQUAL(retries_shown(g, "PRIO", "m5"), 1);
	CU_ASSERT_EQUAL(retries_shown(g, "PRIO", "m4"), 1);
	CU_ASSERT_EQUAL(retries_shown(g, "PRIO", "m2"), 0);
	CU_ASSERT_EQUAL(shown(g, "PRIO", "not available yet"), 3);
	CU_ASSERT_TRUE(is_text(take("PRIO"), "m2"));
	CU_ASSERT_TRUE(is_text(take("PRIO"), "m1"));
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(is_text(take_within("PRIO", 10), "m0"));
	CU_ASSERT_PTR_NULL(take("PRIO"));
	CU_ASSERT_EQUAL(retries_shown(g, "PRIO", "m4"), 1);
	CU_ASSERT_EQUAL(shown(g, "PRIO", "not available yet"), 1);
	tpfree(data);
	given_done(g);
}

/* --- the quality of an answer --- */

static void	/* Given by the asker, or decided by the reply queue's policy when the answer is stored. */
the_answer_has_the_quality_that_was_asked_for(void)
{
	struct given *g = given_system(&(struct given_conf){
	    .queues = "qcreate ASK fifo none 100 0 100% 0% \"\"\nqcreate ANSWER fifo none 100 0 100% 0% \"\"\n",
	    .space_options = MEMORY,
	    .server_source = "#include \"atmi.h\"\nvoid ASK(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n",
	    .server_services = "-s ASK", .tmqueue = FOR_EVER " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 " FOR_EVER " CLOPT=\"-- -q ASK -i 2\"\n" });
	static const struct { long asked, policy_changed; bool in_memory; } t[] = {
		{ 0, 0, false }, { TPQQOSNONPERSISTENT, 0, true }, { TPQQOSPERSISTENT, 0, false },
		{ TPQQOSDEFAULTPERSIST, 0, false }, { 0, 1, true }, { TPQQOSPERSISTENT, 0, false },
		{ TPQQOSDEFAULTPERSIST, 0, true },
	};
	char *data = tpalloc("STRING", NULL, 32);

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		TPQCTL ctl = { .flags = TPQREPLYQ | (t[i].asked != 0 ? TPQREPLYQOS : 0), .reply_qos = t[i].asked,
		    .replyqueue = "ANSWER" };
		TPQCTL look = { .flags = TPQWAIT | TPQPEEK | TPQDELIVERYQOS };
		long len;
		if (t[i].policy_changed)
			free(given_qmadmin(g, "qchange -d nonpersist ANSWER none 100 0 100% 0% \"\"\n"));
		snprintf(data, 32, "%zu", i);
		GIVEN_CALL_OK(tpenqueue("QSPACE", "ASK", &ctl, data, 0, 0));
		GIVEN_CALL_OK(tpdequeue("QSPACE", "ANSWER", &look, &data, &len, TPNOTIME));
		CU_ASSERT_EQUAL(depth(g, "ANSWER"), !t[i].in_memory);
		CU_ASSERT_EQUAL(in_memory(g, "ANSWER"), t[i].in_memory);
		free(take("ANSWER"));
	}
	tpfree(data);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(they_survive_shutdown_and_qmadmin_and_no_crash),
		UNIT(the_default_is_that_of_the_moment_of_the_enqueue),
		UNIT(who_stood_by_finds_them_after_a_good_end_only),
		UNIT(r05_memory_is_asked_for_and_never_dropped_unasked),
		UNIT(r04_bytes_are_bytes_over_queue_restart_and_call),
		UNIT(r12_a_spent_message_is_on_the_error_queue_at_once),
		UNIT(r56_priority_pause_and_redelivery_count_survive),
		UNIT(the_answer_has_the_quality_that_was_asked_for),
	};

	return unit_run("qos", tests, UNIT_COUNT(tests));
}
