/*
 * story_enqueue - the calls of /Q, through real processes: what goes in comes out, as it was asked for.
 *
 * One system serves all the tests of this file; each has a queue of its own.
 */
#include "given.h"

static struct given *g;

#define FIFO(name, retries, delay) "qcreate " name " fifo none " retries " " delay " 100% 0% \"\"\n"

/* The system is made by the first test that asks for it, and ended by the last test. */
static void
given_queues(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space = "16000 40 50 50 4000 ERRQ n 16", .queues =
		    FIFO("LINES", "0", "0") FIFO("BYTES", "0", "0") FIFO("EMPTY", "0", "0") FIFO("IDS", "0", "0")
		    FIFO("CORR", "0", "0") FIFO("ATTRS", "0", "0") FIFO("LOOK", "0", "0") FIFO("COMMIT", "5", "0")
		    FIFO("ABORT", "5", "0") FIFO("ONCE", "0", "60") FIFO("TYPES", "5", "0") FIFO("BIG", "0", "0")
		    FIFO("LATER", "0", "0") FIFO("SHORT", "0", "0") FIFO("WRONG", "0", "0") FIFO("FROM", "5", "0") FIFO("TO", "5", "0")
		    FIFO("SLOW", "5", "0") FIFO("DELAY", "5", "2")
		    "qcreate PRIO priority none 0 0 100% 0% \"\"\nqcreate LAST lifo none 0 0 100% 0% \"\"\n" });
}

/* Every member that no flag asks about is garbage, as in a program that declares its TPQCTL on the stack. */
static TPQCTL
garbage(long flags)
{
	TPQCTL ctl;

	memset(&ctl, 0xA5, sizeof ctl);
	ctl.flags = flags;
	return ctl;
}

static int
enqueue(const char *queue, TPQCTL *ctl, const char *text)
{
	char *data = tpalloc("STRING", NULL, (long)strlen(text) + 1);
	int rc;

	snprintf(data, strlen(text) + 1, "%s", text);
	rc = tpenqueue("QSPACE", (char *)queue, ctl, data, 0, 0);
	tpfree(data);
	return rc;
}

/* The text, malloc'ed, or NULL: tperrno and ctl->diagnostic say why. */
static char *
dequeue(const char *queue, TPQCTL *ctl)
{
	char *data = tpalloc("STRING", NULL, 512), *text = NULL;
	long len = 0;

	if (tpdequeue("QSPACE", (char *)queue, ctl, &data, &len, 0) != -1)
		text = strdup(len > 0 ? data : "");
	tpfree(data);
	return text;
}

#define EXPECT(got, want) do { \
	char *expect_got = (got); \
	CU_ASSERT_PTR_NOT_NULL(expect_got); \
	if (expect_got != NULL) { \
		if (strcmp(expect_got, (want)) != 0) \
			fprintf(stderr, "\n  got \"%s\", want \"%s\"\n", expect_got, (want)); \
		CU_ASSERT_STRING_EQUAL(expect_got, (want)); \
	} \
	free(expect_got); \
} while (0)

#define EXPECT_DIAGNOSTIC(call, ctl, want) do { \
	CU_ASSERT_EQUAL((call), -1); \
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC); \
	if ((ctl).diagnostic != (want)) \
		fprintf(stderr, "\n  %s: tperrno %d, diagnostic %ld, want %d\n", #call, tperrno, (ctl).diagnostic, (want)); \
	CU_ASSERT_EQUAL((ctl).diagnostic, (want)); \
} while (0)

static void
messages_come_out_in_the_order_they_went_in(void)
{
	given_queues();
	put("LINES", "one");
	put("LINES", "two");
	put("LINES", "three");
	CU_ASSERT_EQUAL(depth(g, "LINES"), 3);
	EXPECT(take("LINES"), "one");
	EXPECT(take("LINES"), "two");
	EXPECT(take("LINES"), "three");
	CU_ASSERT_EQUAL(take_diagnostic("LINES"), QMENOMSG);
	CU_ASSERT_EQUAL(depth(g, "LINES"), 0);
}

static void
last_in_first_out_where_the_queue_says_so(void)
{
	given_queues();
	put("LAST", "one");
	put("LAST", "two");
	EXPECT(take("LAST"), "two");
	EXPECT(take("LAST"), "one");
}

static void
bytes_are_bytes(void)
{
	char *data = tpalloc("CARRAY", NULL, 256), *back = tpalloc("CARRAY", NULL, 1), type[9] = "";
	TPQCTL ctl = garbage(TPNOFLAGS);
	long len = 0;
	int i, same = 1;

	given_queues();
	for (i = 0; i < 256; i++)
		data[i] = (char)i;
	GIVEN_CALL_OK(tpenqueue("QSPACE", "BYTES", &ctl, data, 256, 0));
	ctl = garbage(TPNOFLAGS);
	GIVEN_CALL_OK(tpdequeue("QSPACE", "BYTES", &ctl, &back, &len, 0));
	CU_ASSERT_EQUAL(len, 256);
	for (i = 0; i < 256 && i < len; i++)
		same &= back[i] == (char)i;
	CU_ASSERT_TRUE(same);
	tptypes(back, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "CARRAY");
	tpfree(data);
	tpfree(back);
}

static void
a_message_without_data_leaves_the_buffer_alone(void)
{
	char *back = tpalloc("STRING", NULL, 64);
	TPQCTL ctl = garbage(TPNOFLAGS);
	long len = 77;

	given_queues();
	snprintf(back, 64, "untouched");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "EMPTY", &ctl, NULL, 0, 0));
	ctl = garbage(TPNOFLAGS);
	GIVEN_CALL_OK(tpdequeue("QSPACE", "EMPTY", &ctl, &back, &len, 0));
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_STRING_EQUAL(back, "untouched");
	tpfree(back);
}

static void
a_control_structure_is_optional(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	given_queues();
	snprintf(data, 64, "no ctl");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "LINES", NULL, data, 0, 0));
	snprintf(data, 64, "-");
	GIVEN_CALL_OK(tpdequeue("QSPACE", "LINES", NULL, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "no ctl");
	tpfree(data);
}

static void
a_message_is_found_by_its_identifier(void)
{
	TPQCTL first = garbage(TPQMSGID), second = garbage(TPQMSGID), third = garbage(TPQMSGID), get;

	given_queues();
	GIVEN_CALL_OK(enqueue("IDS", &first, "first"));
	GIVEN_CALL_OK(enqueue("IDS", &second, "second"));
	GIVEN_CALL_OK(enqueue("IDS", &third, "third"));
	CU_ASSERT_NOT_EQUAL(memcmp(first.msgid, second.msgid, TMMSGIDLEN), 0);

	get = garbage(TPQGETBYMSGID | TPQMSGID);
	memcpy(get.msgid, second.msgid, TMMSGIDLEN);
	EXPECT(dequeue("IDS", &get), "second");
	CU_ASSERT_EQUAL(memcmp(get.msgid, second.msgid, TMMSGIDLEN), 0);
	CU_ASSERT_TRUE((get.flags & TPQMSGID) != 0);

	get = garbage(TPQGETBYMSGIDOLD);			/* the bit of old programs means the same */
	memcpy(get.msgid, third.msgid, TMMSGIDLEN);
	EXPECT(dequeue("IDS", &get), "third");

	get = garbage(TPQGETBYMSGID);				/* gone */
	memcpy(get.msgid, second.msgid, TMMSGIDLEN);
	CU_ASSERT_PTR_NULL(dequeue("IDS", &get));
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC);
	CU_ASSERT_TRUE(get.diagnostic == QMENOMSG || get.diagnostic == QMEBADMSGID);

	get = garbage(TPQMSGID);
	EXPECT(dequeue("IDS", &get), "first");
	CU_ASSERT_EQUAL(memcmp(get.msgid, first.msgid, TMMSGIDLEN), 0);
}

static void
messages_are_found_by_correlation_in_the_order_of_the_queue(void)
{
	static const char *texts[] = { "a1", "b1", "a2", "b2" };
	TPQCTL ctl;
	int i;

	given_queues();
	for (i = 0; i < 4; i++) {
		ctl = garbage(TPQCORRID);
		memset(ctl.corrid, texts[i][0], TMCORRIDLEN);
		GIVEN_CALL_OK(enqueue("CORR", &ctl, texts[i]));
	}
	for (i = 1; i < 4; i += 2) {
		ctl = garbage(TPQGETBYCORRID | TPQCORRID);
		memset(ctl.corrid, 'b', TMCORRIDLEN);
		EXPECT(dequeue("CORR", &ctl), texts[i]);
		CU_ASSERT_TRUE((ctl.flags & TPQCORRID) != 0);
	}
	ctl = garbage(TPQGETBYCORRID);
	memset(ctl.corrid, 'b', TMCORRIDLEN);
	CU_ASSERT_PTR_NULL(dequeue("CORR", &ctl));
	CU_ASSERT_EQUAL(ctl.diagnostic, QMENOMSG);
	ctl = garbage(TPQGETBYCORRIDOLD);
	memset(ctl.corrid, 'a', TMCORRIDLEN);
	EXPECT(dequeue("CORR", &ctl), "a1");
	EXPECT(take("CORR"), "a2");
}

/* Flags that come back say which members hold something: those that the sender gave, and no others. */
static void
what_the_sender_gave_comes_back_and_nothing_else(void)
{
	const long wanted = TPQMSGID | TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQDELIVERYQOS | TPQREPLYQOS;
	TPQCTL ctl = garbage(TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQREPLYQOS);

	given_queues();
	memset(ctl.corrid, 7, TMCORRIDLEN);
	ctl.priority = 33;
	ctl.reply_qos = TPQQOSPERSISTENT;
	ctl.urcode = -12345678901;
	snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "ANSWERS");
	snprintf(ctl.failurequeue, sizeof ctl.failurequeue, "TROUBLE");
	GIVEN_CALL_OK(enqueue("ATTRS", &ctl, "all"));
	ctl = garbage(TPNOFLAGS);
	ctl.urcode = 9;
	GIVEN_CALL_OK(enqueue("ATTRS", &ctl, "nothing"));

	ctl = garbage(wanted);
	EXPECT(dequeue("ATTRS", &ctl), "all");
	CU_ASSERT_EQUAL(ctl.flags & wanted, wanted & ~TPQDELIVERYQOS);
	CU_ASSERT_EQUAL(ctl.priority, 33);
	CU_ASSERT_EQUAL(ctl.reply_qos, TPQQOSPERSISTENT);
	CU_ASSERT_EQUAL(ctl.urcode, -12345678901);
	CU_ASSERT_EQUAL(ctl.corrid[31], 7);
	CU_ASSERT_STRING_EQUAL(ctl.replyqueue, "ANSWERS");
	CU_ASSERT_STRING_EQUAL(ctl.failurequeue, "TROUBLE");

	ctl = garbage(wanted | TPQTOP | TPQTIME_REL);
	EXPECT(dequeue("ATTRS", &ctl), "nothing");
	CU_ASSERT_EQUAL(ctl.flags & (wanted | TPQTOP | TPQTIME_REL), TPQMSGID);
	CU_ASSERT_EQUAL(ctl.urcode, 9);
}

static void
higher_priority_goes_first_where_the_queue_says_so(void)
{
	static const struct { long priority; const char *text; } m[] = { { 10, "low" }, { 0, "default" }, { 90, "high" },
	    { 90, "high, later" }, { 50, "fifty" } };
	TPQCTL ctl;
	size_t i;

	given_queues();
	for (i = 0; i < sizeof m / sizeof m[0]; i++) {
		ctl = garbage(m[i].priority != 0 ? TPQPRIORITY : TPNOFLAGS);
		ctl.priority = m[i].priority != 0 ? m[i].priority : 99;
		GIVEN_CALL_OK(enqueue("PRIO", &ctl, m[i].text));
	}
	EXPECT(take("PRIO"), "high");
	EXPECT(take("PRIO"), "high, later");
	ctl = garbage(TPQPRIORITY);
	EXPECT(dequeue("PRIO", &ctl), "default");
	CU_ASSERT_EQUAL(ctl.flags & TPQPRIORITY, 0);
	EXPECT(take("PRIO"), "fifty");
	EXPECT(take("PRIO"), "low");
}

static void
a_peek_takes_nothing(void)
{
	TPQCTL ctl = garbage(TPQPEEK);

	given_queues();
	put("LOOK", "still here");
	EXPECT(dequeue("LOOK", &ctl), "still here");
	CU_ASSERT_TRUE(peeks("LOOK", "still here"));
	CU_ASSERT_EQUAL(depth(g, "LOOK"), 1);
	EXPECT(take("LOOK"), "still here");
}

/* --- transactions --- */

static void
nothing_is_seen_before_the_commit(void)
{
	TPQCTL ctl = garbage(TPNOFLAGS);
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	given_queues();
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_EQUAL(tpgetlev(), 1);
	GIVEN_CALL_OK(enqueue("COMMIT", &ctl, "kept"));
	ctl = garbage(TPNOFLAGS);		/* outside the transaction: it is not there yet */
	EXPECT_DIAGNOSTIC(tpdequeue("QSPACE", "COMMIT", &ctl, &data, &len, TPNOTRAN), ctl, QMENOMSG);
	ctl = garbage(TPNOFLAGS);		/* nor can its own transaction take it */
	EXPECT_DIAGNOSTIC(tpdequeue("QSPACE", "COMMIT", &ctl, &data, &len, 0), ctl, QMENOMSG);
	CU_ASSERT_FALSE(peeks("COMMIT", "kept"));
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	EXPECT(take("COMMIT"), "kept");

	GIVEN_CALL_OK(tpbegin(30, 0));
	put("COMMIT", "never was");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_PTR_NULL(take("COMMIT"));
	tpfree(data);
}

static void
an_abort_puts_a_taken_message_back_in_its_place(void)
{
	given_queues();
	put("ABORT", "one");
	put("ABORT", "two");
	put("ABORT", "three");
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("ABORT"), "one");
	EXPECT(take("ABORT"), "two");
	GIVEN_CALL_OK(tpabort(0));
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("ABORT"), "one");
	GIVEN_CALL_OK(tpcommit(0));
	EXPECT(take("ABORT"), "two");
	EXPECT(take("ABORT"), "three");
	CU_ASSERT_PTR_NULL(take("ABORT"));
}

static void
take_and_put_happen_together_or_not_at_all(void)
{
	given_queues();
	put("FROM", "an order");
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("FROM"), "an order");
	put("TO", "its answer");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_PTR_NULL(take("TO"));
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("FROM"), "an order");
	put("TO", "its answer");
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_PTR_NULL(take("FROM"));
	EXPECT(take("TO"), "its answer");
}

/* Without retries the first rollback ends it; the delay of the queue does not hold it back on the error queue. */
static void
a_message_whose_retries_are_spent_goes_to_the_error_queue_at_once(void)
{
	TPQCTL sent = garbage(TPQMSGID | TPQCORRID), got = garbage(TPQMSGID | TPQCORRID);

	given_queues();
	memset(sent.corrid, 'k', TMCORRIDLEN);
	GIVEN_CALL_OK(enqueue("ONCE", &sent, "only once"));
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("ONCE"), "only once");
	GIVEN_CALL_OK(tpabort(0));
	CU_ASSERT_PTR_NULL(take("ONCE"));
	EXPECT(dequeue("ERRQ", &got), "only once");
	CU_ASSERT_EQUAL(memcmp(got.corrid, sent.corrid, TMCORRIDLEN), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(got.msgid, sent.msgid, TMMSGIDLEN), 0);	/* another queue, another identifier */
}

static void
a_message_rests_for_the_retry_delay(void)
{
	double start;

	given_queues();
	put("DELAY", "patience");
	GIVEN_CALL_OK(tpbegin(30, 0));
	EXPECT(take("DELAY"), "patience");
	GIVEN_CALL_OK(tpabort(0));
	start = now_s();
	CU_ASSERT_PTR_NULL(take("DELAY"));
	EXPECT(take_within("DELAY", 10), "patience");
	CU_ASSERT_TRUE(now_s() - start > 1.5);
}

static bool
is_held(void *queue)
{
	char lines[64], *out;
	bool held;

	snprintf(lines, sizeof lines, "qinfo %s\n", (char *)queue);
	out = given_qmadmin(g, lines);
	held = has(out, "held by transactions: 1");
	free(out);
	return held;
}

static bool
is_back(void *queue)
{
	return depth(g, queue) == 1 && !is_held(queue);
}

static void
a_transaction_that_takes_too_long_is_rolled_back(void)
{
	given_queues();
	put("SLOW", "slow");
	GIVEN_CALL_OK(tpbegin(1, 0));
	EXPECT(take("SLOW"), "slow");
	CU_ASSERT_TRUE(is_held("SLOW"));
	CU_ASSERT_TRUE(wait_until(is_back, "SLOW", 10));
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_TRUE(tperrno == TPETIME || tperrno == TPEABORT);
	CU_ASSERT_EQUAL(tpgetlev(), 0);
	EXPECT(take("SLOW"), "slow");
}

static void
calls_out_of_place_are_refused(void)
{
	given_queues();
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	CU_ASSERT_EQUAL(tpabort(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	GIVEN_CALL_OK(tpbegin(30, 0));
	CU_ASSERT_EQUAL(tpbegin(30, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEPROTO);
	GIVEN_CALL_OK(tpcommit(0));
	CU_ASSERT_EQUAL(tpbegin(30, TPNOBLOCK), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
}

/* --- types and sizes --- */

static void
the_buffer_takes_the_type_of_the_message_unless_told_not_to(void)
{
	char *data = tpalloc("CARRAY", NULL, 10), type[9] = "";
	TPQCTL ctl = garbage(TPNOFLAGS);
	long len = 0;

	given_queues();
	put("TYPES", "text");
	CU_ASSERT_EQUAL(tpdequeue("QSPACE", "TYPES", &ctl, &data, &len, TPNOCHANGE), -1);
	CU_ASSERT_EQUAL(tperrno, TPEOTYPE);
	ctl = garbage(TPNOFLAGS);			/* and it is still there */
	GIVEN_CALL_OK(tpdequeue("QSPACE", "TYPES", &ctl, &data, &len, 0));
	tptypes(data, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "STRING");
	CU_ASSERT_STRING_EQUAL(data, "text");
	CU_ASSERT_EQUAL(len, 5);
	tpfree(data);
}

static void
a_megabyte_fits_and_the_buffer_grows(void)
{
	const long size = 1024 * 1024;
	char *data = tpalloc("CARRAY", NULL, size), *back = tpalloc("CARRAY", NULL, 1);
	TPQCTL ctl = garbage(TPNOFLAGS);
	long len = 0, i;

	given_queues();
	for (i = 0; i < size; i++)
		data[i] = (char)(i * 7 + i / 251);
	GIVEN_CALL_OK(tpenqueue("QSPACE", "BIG", &ctl, data, size, 0));
	ctl = garbage(TPNOFLAGS);
	GIVEN_CALL_OK(tpdequeue("QSPACE", "BIG", &ctl, &back, &len, 0));
	CU_ASSERT_EQUAL(len, size);
	CU_ASSERT_TRUE(len == size && memcmp(data, back, (size_t)size) == 0);
	CU_ASSERT_TRUE(tptypes(back, NULL, NULL) >= size);
	tpfree(data);
	tpfree(back);
}

/* --- time --- */

static void
a_delayed_message_waits_for_its_time(void)
{
	TPQCTL ctl = garbage(TPQTIME_REL);
	double start = now_s();

	given_queues();
	ctl.deq_time = 2;
	GIVEN_CALL_OK(enqueue("LATER", &ctl, "later"));
	CU_ASSERT_PTR_NULL(take("LATER"));
	put("LATER", "now");
	EXPECT(take("LATER"), "now");
	EXPECT(take_within("LATER", 10), "later");
	CU_ASSERT_TRUE(now_s() - start > 1.5);
}

static void
an_expired_message_vanishes(void)
{
	TPQCTL ctl = garbage(TPQEXPTIME_REL);

	given_queues();
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	ctl.exp_time = 2;
	GIVEN_CALL_OK(enqueue("SHORT", &ctl, "short life"));
	CU_ASSERT_TRUE(peeks("SHORT", "short life"));
	put("SHORT", "long life");
	for (double end = now_s() + 10; peeks("SHORT", "short life") && now_s() < end;)
		nap_ms(20);
	EXPECT(take("SHORT"), "long life");
	CU_ASSERT_PTR_NULL(take("SHORT"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
}

/* --- what is wrong gets its own answer --- */

static void
an_unknown_queue_is_not_an_empty_queue(void)
{
	TPQCTL ctl = garbage(TPNOFLAGS);
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	double start = now_s();

	given_queues();
	data[0] = '\0';
	EXPECT_DIAGNOSTIC(tpenqueue("QSPACE", "NOPE", &ctl, data, 0, 0), ctl, QMEBADQUEUE);
	ctl = garbage(TPNOFLAGS);
	EXPECT_DIAGNOSTIC(tpdequeue("QSPACE", "NOPE", &ctl, &data, &len, 0), ctl, QMEBADQUEUE);
	ctl = garbage(TPQWAIT);				/* at once, not after a wait */
	EXPECT_DIAGNOSTIC(tpdequeue("QSPACE", "NOPE", &ctl, &data, &len, 0), ctl, QMEBADQUEUE);
	CU_ASSERT_TRUE(now_s() - start < 10);
	CU_ASSERT_TRUE(given_logged(g, "NOPE"));
	tpfree(data);
}

static void
a_space_that_nobody_serves_is_no_entry(void)
{
	TPQCTL ctl = garbage(TPNOFLAGS);

	given_queues();
	CU_ASSERT_EQUAL(tpenqueue("NOSPACE", "LINES", &ctl, NULL, 0, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
}

static void
arguments_are_checked(void)
{
	TPQCTL ctl = garbage(TPNOFLAGS);
	char *data = tpalloc("STRING", NULL, 64), *nothing = NULL, stack[16] = "on the stack", *sp = stack;
	long len;

	given_queues();
#define INVALID(call) do { CU_ASSERT_EQUAL((call), -1); CU_ASSERT_EQUAL(tperrno, TPEINVAL); ctl = garbage(TPNOFLAGS); } while (0)
	INVALID(tpenqueue(NULL, "LINES", &ctl, data, 0, 0));
	INVALID(tpenqueue("QSPACE", "LINES", &ctl, stack, 0, 0));
	INVALID(tpenqueue("QSPACE", "LINES", &ctl, data, 0, 0x40000000));
	INVALID(tpdequeue(NULL, "LINES", &ctl, &data, &len, 0));
	INVALID(tpdequeue("QSPACE", "LINES", &ctl, NULL, &len, 0));
	INVALID(tpdequeue("QSPACE", "LINES", &ctl, &nothing, &len, 0));
	INVALID(tpdequeue("QSPACE", "LINES", &ctl, &sp, &len, 0));
	INVALID(tpdequeue("QSPACE", "LINES", &ctl, &data, NULL, 0));
#undef INVALID
	CU_ASSERT_EQUAL(depth(g, "LINES"), 0);
	tpfree(data);
}

static void
flags_that_contradict_each_other_store_nothing(void)
{
	TPQCTL ctl;

	given_queues();
#define BAD(flag_bits, set) do { \
	ctl = garbage(flag_bits); ctl.deq_time = 1; ctl.exp_time = 100; ctl.priority = 50; memset(ctl.msgid, 0, TMMSGIDLEN); \
	set; \
	EXPECT_DIAGNOSTIC(enqueue("WRONG", &ctl, "wrong"), ctl, QMEINVAL); \
} while (0)
	BAD(TPQTIME_ABS | TPQTIME_REL, (void)0);
	BAD(TPQTOP | TPQBEFOREMSGID, (void)0);
	BAD(TPQTOP, (void)0);				/* the queue allows nothing out of order */
	BAD(TPQEXPTIME_REL | TPQEXPTIME_NONE, (void)0);
	BAD(TPQPRIORITY, ctl.priority = 0);
	BAD(TPQPRIORITY, ctl.priority = 101);
	BAD(TPQTIME_REL, ctl.deq_time = -1);
	BAD(TPQDELIVERYQOS, ctl.delivery_qos = 0);
	BAD(TPQDELIVERYQOS, ctl.delivery_qos = TPQQOSPERSISTENT | TPQQOSNONPERSISTENT);
#undef BAD
	CU_ASSERT_EQUAL(depth(g, "WRONG"), 0);
}

/* A space without memory for them refuses non-persistent messages, and does not quietly store them. */
static void
non_persistent_needs_its_memory(void)
{
	TPQCTL ctl = garbage(TPQDELIVERYQOS);

	given_queues();
	ctl.delivery_qos = TPQQOSNONPERSISTENT;
	EXPECT_DIAGNOSTIC(enqueue("WRONG", &ctl, "light"), ctl, QMENOSPACE);
	CU_ASSERT_EQUAL(depth(g, "WRONG"), 0);
}

static void
the_system_ends_cleanly_and_silently(void)
{
	char *err;

	given_queues();
	tpterm();
	given_shutdown(g);
	err = given_read(g, "stderr");			/* no server of ours has written a byte there */
	CU_ASSERT_TRUE(err == NULL || err[0] == '\0');
	if (err != NULL && err[0] != '\0')
		fprintf(stderr, "\nstderr of the servers: %s\n", err);
	free(err);
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(messages_come_out_in_the_order_they_went_in),
		UNIT(last_in_first_out_where_the_queue_says_so),
		UNIT(bytes_are_bytes),
		UNIT(a_message_without_data_leaves_the_buffer_alone),
		UNIT(a_control_structure_is_optional),
		UNIT(a_message_is_found_by_its_identifier),
		UNIT(messages_are_found_by_correlation_in_the_order_of_the_queue),
		UNIT(what_the_sender_gave_comes_back_and_nothing_else),
		UNIT(higher_priority_goes_first_where_the_queue_says_so),
		UNIT(a_peek_takes_nothing),
		UNIT(nothing_is_seen_before_the_commit),
		UNIT(an_abort_puts_a_taken_message_back_in_its_place),
		UNIT(take_and_put_happen_together_or_not_at_all),
		UNIT(a_message_whose_retries_are_spent_goes_to_the_error_queue_at_once),
		UNIT(a_message_rests_for_the_retry_delay),
		UNIT(a_transaction_that_takes_too_long_is_rolled_back),
		UNIT(calls_out_of_place_are_refused),
		UNIT(the_buffer_takes_the_type_of_the_message_unless_told_not_to),
		UNIT(a_megabyte_fits_and_the_buffer_grows),
		UNIT(a_delayed_message_waits_for_its_time),
		UNIT(an_expired_message_vanishes),
		UNIT(an_unknown_queue_is_not_an_empty_queue),
		UNIT(a_space_that_nobody_serves_is_no_entry),
		UNIT(arguments_are_checked),
		UNIT(flags_that_contradict_each_other_store_nothing),
		UNIT(non_persistent_needs_its_memory),
		UNIT(the_system_ends_cleanly_and_silently),
	};

	return unit_run("tpenqueue and tpdequeue", tests, UNIT_COUNT(tests));
}
