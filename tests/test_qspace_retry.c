/*
 * Retries: how often, when again, and where to in the end.  All of it is on disk, so a restart in the middle changes nothing.
 */
#include <glob.h>

#include "given_space.h"

#define SECOND INT64_C(1000000)
static char ulog_dir[] = "/tmp/qspace.ulog.XXXXXX";
static int64_t passed;

static void
later(int64_t seconds)
{
	clock_shift_us(seconds * SECOND);
	passed += seconds;
}

static void
done(struct given_space *g)
{
	given_done(g);
	clock_shift_us(-passed * SECOND);
	passed = 0;
}

static int transactions;

static const char *	/* Taken and rolled back: what it was, "" when there was nothing. */
fail(struct given_space *g, const char *queue)
{
	static char body[256];
	char gtrid[16];
	struct branch *b;

	snprintf(gtrid, sizeof gtrid, "fail%d", transactions++);
	b = tx(g, gtrid);
	snprintf(body, sizeof body, "%s", next_in(g, b, queue));
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	return body;
}

static long	/* of the next message, which is only looked at; -1: there is none */
retries_of_next(struct given_space *g, const char *queue, const char *body)
{
	struct qselect peek = { .flags = TPQPEEK };
	struct qmsg *m;
	long n;

	if (take(g, NULL, queue, &peek, &m) != 0)
		return -1;
	CU_ASSERT_STRING_EQUAL((const char *)m->body, body);
	n = m->retries;
	qmsg_free(m);
	return n;
}

static void
restart(struct given_space *g, int killed)
{
	if (killed)
		given_killed(g);
	else
		reopen(g);
}

static struct qmsg_in
of_priority(const char *body, int32_t priority)
{
	struct qmsg_in in = text(body);

	in.flags = TPQPRIORITY;
	in.priority = priority;
	return in;
}

static void
r56_priority_retry_count_and_delay_survive_a_restart(void)
{
	for (int killed = 0; killed < 2; killed++) {
		struct given_space *g = given_space(NULL);
		struct queue_params p = queue_of("q", QC_PRIORITY, QC_FIFO, 0, 0);

		p.retries = 5;
		p.retry_delay = 60;
		create(g, &p);
		put_in(g, NULL, "q", of_priority("low", 10), NULL);
		put_in(g, NULL, "q", of_priority("high", 90), NULL);
		CU_ASSERT_STRING_EQUAL(fail(g, "q"), "high");
		restart(g, killed);
		CU_ASSERT_EQUAL(retries_of_next(g, "q", "low"), 0);	/* the other one waits for its time */
		later(59);
		CU_ASSERT_EQUAL(retries_of_next(g, "q", "low"), 0);
		later(2);
		CU_ASSERT_EQUAL(retries_of_next(g, "q", "high"), 1);
		CU_ASSERT_STRING_EQUAL(fail(g, "q"), "high");
		restart(g, killed);
		later(61);
		restart(g, killed);
		CU_ASSERT_EQUAL(retries_of_next(g, "q", "high"), 2);
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "high");
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "low");
		done(g);
	}
}

static void	/* What a dead queue manager had lent out counts as never taken. */
a_transaction_that_a_restart_ended_counts_no_retry(void)
{
	for (int killed = 0; killed < 2; killed++) {
		struct given_space *g = given_space(NULL);

		create_fifo(g, "q", 0, 0);
		put(g, "q", "one");
		CU_ASSERT_STRING_EQUAL(next_in(g, tx(g, "t"), "q"), "one");
		restart(g, killed);
		CU_ASSERT_EQUAL(retries_of_next(g, "q", "one"), 0);
		done(g);
	}
}

static void	/* R12: the retry delay of its queue, and that of the error queue, are none of its business any more. */
r12_on_the_error_queue_nobody_waits(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "q", 0, 60);
	create_fifo(g, "ERRQ", 0, 60);
	put(g, "q", "bad");
	CU_ASSERT_STRING_EQUAL(fail(g, "q"), "bad");
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").delayed, 0);
	CU_ASSERT_EQUAL(retries_of_next(g, "ERRQ", "bad"), 0);
	restart(g, 1);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "bad");
	done(g);
}

static void	/* With a delay they go by at once, without one after its retries. */
a_poison_message_at_the_head_starves_nobody(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "ERRQ", 0, 0);
	create_fifo(g, "delay", 3, 10);
	create_fifo(g, "none", 3, 0);
	for (int i = 0; i < 2; i++) {
		put(g, i ? "none" : "delay", "poison");
		put(g, i ? "none" : "delay", "good");
	}
	CU_ASSERT_STRING_EQUAL(fail(g, "delay"), "poison");
	CU_ASSERT_STRING_EQUAL(next(g, "delay"), "good");
	for (int i = 0; i < 4; i++)
		CU_ASSERT_STRING_EQUAL(fail(g, "none"), "poison");
	CU_ASSERT_STRING_EQUAL(next(g, "none"), "good");
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 1);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_STRING_EQUAL(fail(g, "delay"), "");
		later(11);
		CU_ASSERT_STRING_EQUAL(fail(g, "delay"), "poison");
	}
	later(11);
	CU_ASSERT_STRING_EQUAL(fail(g, "delay"), "");
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 2);
	done(g);
}

static void	/* Expired when its transaction ends: gone, not moved.  Moved in time: it still expires. */
retries_spent_and_expiry_at_once(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("short");
	struct branch *b;

	create_fifo(g, "q", 0, 0);
	create_fifo(g, "ERRQ", 0, 0);
	in.flags = TPQEXPTIME_REL;
	in.exp_time = 10;
	put_in(g, NULL, "q", in, NULL);
	b = tx(g, "b");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "q"), "short");
	later(10);
	CU_ASSERT_EQUAL(tx_roll_back(g, b), 0);
	CU_ASSERT_EQUAL(stat_of(g, "q").messages + stat_of(g, "ERRQ").messages, 0);
	put_in(g, NULL, "q", in, NULL);
	CU_ASSERT_STRING_EQUAL(fail(g, "q"), "short");
	CU_ASSERT_EQUAL(retries_of_next(g, "ERRQ", "short"), 0);
	later(10);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "");
	tick(g);
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 0);
	done(g);
}

static char *	/* all lines of the log; malloc'ed */
log_text(void)
{
	char pattern[64], *text = calloc(1, 1 << 20);
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/ULOG*", ulog_dir);
	if (glob(pattern, 0, NULL, &found) == 0) {
		FILE *f = fopen(found.gl_pathv[0], "r");
		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		CU_ASSERT_TRUE(fread(text, 1, (1 << 20) - 1, f) > 0);
		fclose(f);
		globfree(&found);
	}
	return text;
}

static int
count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

static void	/* No error queue named; named and never made; made and destroyed. */
without_an_error_queue_it_is_deleted_with_one_line(void)
{
	char hex[2 * TMMSGIDLEN + 1], *text;

	for (int i = 0; i < 3; i++) {
		struct qspace_params params = given_params("QS");
		struct given_space *g;
		struct qmsg_in in = { 0 };
		uint8_t id[TMMSGIDLEN];

		if (i == 0)
			params.errorq[0] = '\0';
		g = given_space(&params);
		create_fifo(g, "q", 1, 0);
		if (i == 2) {
			create_fifo(g, "ERRQ", 1, 0);
			begin(g);
			CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "ERRQ", false), 0);
			commit(g);
		}
		in = (struct qmsg_in){ .flags = TPQCORRID, .type = "STRING", .subtype = "", .has_body = true, .body = "bad", .body_len = 4 };
		memset(in.corrid, 0xab, sizeof in.corrid);
		put_in(g, NULL, "q", in, id);
		put(g, "q", "good");
		CU_ASSERT_STRING_EQUAL(fail(g, "q"), "bad");
		CU_ASSERT_STRING_EQUAL(fail(g, "q"), "bad");
		CU_ASSERT_STRING_EQUAL(next(g, "q"), "good");
		CU_ASSERT_EQUAL(stat_of(g, "q").messages, 0);
		for (int k = 0; k < TMMSGIDLEN; k++)
			snprintf(hex + 2 * k, 3, "%02x", id[k]);
		text = log_text();
		CU_ASSERT_EQUAL(count(text, hex), 1);
		CU_ASSERT_EQUAL(count(text, "queue q: message "), i + 1);
		CU_ASSERT_EQUAL(count(text, "abababababababababababababababababababababababababababababababab"), i + 1);
		CU_ASSERT_EQUAL(count(text, "deleted after 2 failed deliveries"), i + 1);
		CU_ASSERT_EQUAL(count(text, "transaction rolled back"), i + 1);
		CU_ASSERT_EQUAL(count(text, "has no error queue ERRQ"), i);
		free(text);
		done(g);
	}
}

static void	/* The space is as full as it may be: a move needs no room. */
a_full_space_moves_to_its_error_queue(void)
{
	struct qspace_params params = given_params("QS");
	struct given_space *g;

	params.messages = 3;
	g = given_space(&params);
	create_fifo(g, "q", 0, 0);
	create_fifo(g, "ERRQ", 0, 0);
	for (int i = 0; i < 3; i++)
		put(g, "q", "bad");
	CU_ASSERT_EQUAL(put(g, "q", "one too many"), QMENOSPACE);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_STRING_EQUAL(fail(g, "q"), "bad");
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").messages, 3);
	CU_ASSERT_EQUAL(put(g, "q", "one too many"), QMENOSPACE);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "bad");
	CU_ASSERT_EQUAL(put(g, "q", "room"), 0);
	done(g);
}

static void	/* They too wait for their retry, and go to the error queue: in memory. */
non_persistent_messages_are_retried_likewise(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("np");

	create_fifo(g, "q", 1, 60);
	create_fifo(g, "ERRQ", 0, 0);
	in.flags = TPQDELIVERYQOS;
	in.delivery_qos = TPQQOSNONPERSISTENT;
	put_in(g, NULL, "q", in, NULL);
	CU_ASSERT_STRING_EQUAL(fail(g, "q"), "np");
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	restart(g, 0);			/* a close in good order keeps it, and its count and time */
	CU_ASSERT_STRING_EQUAL(next(g, "q"), "");
	later(61);
	CU_ASSERT_EQUAL(retries_of_next(g, "q", "np"), 1);
	CU_ASSERT_STRING_EQUAL(fail(g, "q"), "np");
	CU_ASSERT_EQUAL(stat_of(g, "ERRQ").np_messages, 1);
	CU_ASSERT_EQUAL(stat_of(g, "q").np_messages, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "ERRQ"), "np");
	done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(r56_priority_retry_count_and_delay_survive_a_restart),
		UNIT(a_transaction_that_a_restart_ended_counts_no_retry),
		UNIT(r12_on_the_error_queue_nobody_waits),
		UNIT(a_poison_message_at_the_head_starves_nobody),
		UNIT(retries_spent_and_expiry_at_once),
		UNIT(without_an_error_queue_it_is_deleted_with_one_line),
		UNIT(a_full_space_moves_to_its_error_queue),
		UNIT(non_persistent_messages_are_retried_likewise),
	};
	char prefix[64], cmd[64];
	int rc;

	if (mkdtemp(ulog_dir) == NULL)
		return 1;
	snprintf(prefix, sizeof prefix, "%s/ULOG", ulog_dir);
	setenv("ULOGPFX", prefix, 1);
	rc = unit_run("qspace retry", tests, UNIT_COUNT(tests));
	snprintf(cmd, sizeof cmd, "rm -rf %s", ulog_dir);
	return system(cmd) == 0 ? rc : 1;
}
