/*
 * story_flags - one test for each bit of TPQCTL.flags: api 1.3, and what 2.3 and 2.4 say of it.
 *
 * One system serves all the tests of this file.  A control structure is full of garbage but for what a test sets.
 */
#include <time.h>

#include "given.h"

static struct given *g;
static char *data;
static long len;

#define QUEUE(name, order, how) "qcreate " name " " order " " how " 5 0 100% 0% \"\"\n"

static void
given_queues(void)
{
	if (g == NULL)
		g = given_system(&(struct given_conf){ .space_options = "-n 100B", .tmqueue =
		    "RESTART=Y GRACE=0 MAXGEN=10 CLOPT=\"-s QSPACE:TMQUEUE -- -t 1\"", .queues =
		    QUEUE("Q", "fifo", "top,msgid") QUEUE("PLAIN", "fifo", "none") QUEUE("TOPONLY", "fifo", "top")
		    QUEUE("IDONLY", "fifo", "msgid") QUEUE("PRIO", "priority,fifo", "none")
		    QUEUE("AGES", "fifo", "none") "qcreate -e +1 SHORT fifo none 5 0 100% 0% \"\"\n" });
	if (data == NULL)
		data = tpalloc("STRING", NULL, 100);
}

#define DIAGNOSED(call, want) do { \
	CU_ASSERT_EQUAL((call), -1); \
	CU_ASSERT_EQUAL(tperrno, TPEDIAGNOSTIC); \
	if (ctl.diagnostic != (want)) \
		fprintf(stderr, "\n  %s: tperrno %d, diagnostic %ld\n", #call, tperrno, ctl.diagnostic); \
	CU_ASSERT_EQUAL(ctl.diagnostic, want); \
} while (0)
#define EXPECT(queue, want) do { \
	char *expect_got = take(queue); \
	if (expect_got == NULL || strcmp(expect_got, (want)) != 0) \
		fprintf(stderr, "\n  got \"%s\", want \"%s\"\n", expect_got == NULL ? "nothing" : expect_got, (want)); \
	CU_ASSERT_TRUE(expect_got != NULL && strcmp(expect_got, (want)) == 0); \
	free(expect_got); \
} while (0)

static TPQCTL
control(long flags)
{
	TPQCTL ctl;

	memset(&ctl, 0xA5, sizeof ctl);
	ctl.flags = flags;
	return ctl;
}

static int
send_it(const char *queue, TPQCTL *ctl, const char *text)
{
	strcpy(data, text);
	return tpenqueue("QSPACE", (char *)queue, ctl, data, 0, 0);
}

static int
fetch(const char *queue, TPQCTL *ctl)
{
	data[0] = '\0';
	return tpdequeue("QSPACE", (char *)queue, ctl, &data, &len, 0);
}

static bool
garbage_still(const void *p, size_t n)
{
	const unsigned char *b = p;

	while (n-- > 0)
		if (*b++ != 0xA5)
			return false;
	return true;
}
#define UNTOUCHED(member) CU_ASSERT_TRUE(garbage_still(&(member), sizeof (member)))

/* Members that no bit asked for, or that the sender did not give. */
static void
untouched_but(const TPQCTL *ctl, long given)
{
	if (!(given & TPQPRIORITY))
		UNTOUCHED(ctl->priority);
	if (!(given & TPQCORRID))
		UNTOUCHED(ctl->corrid);
	if (!(given & TPQMSGID))
		UNTOUCHED(ctl->msgid);
	if (!(given & TPQREPLYQ))
		UNTOUCHED(ctl->replyqueue);
	if (!(given & TPQFAILUREQ))
		UNTOUCHED(ctl->failurequeue);
	if (!(given & TPQDELIVERYQOS))
		UNTOUCHED(ctl->delivery_qos);
	if (!(given & TPQREPLYQOS))
		UNTOUCHED(ctl->reply_qos);
	UNTOUCHED(ctl->deq_time);		/* api 1.2: not returned */
	UNTOUCHED(ctl->exp_time);
}

/* api 1.3 values: with a bit below or above of its own, no two alike */
static void
the_bits_have_their_numbers(void)
{
	static const long flags[] = { TPQCORRID, TPQFAILUREQ, TPQBEFOREMSGID, TPQGETBYMSGIDOLD, TPQMSGID, TPQPRIORITY, TPQTOP, TPQWAIT,
		TPQREPLYQ, TPQTIME_ABS, TPQTIME_REL, TPQGETBYCORRIDOLD, TPQPEEK, TPQDELIVERYQOS, TPQREPLYQOS, TPQEXPTIME_ABS,
		TPQEXPTIME_REL, TPQEXPTIME_NONE };
	size_t i;

	CU_ASSERT_EQUAL(TPNOFLAGS, 0);
	for (i = 0; i < sizeof flags / sizeof flags[0]; i++)
		CU_ASSERT_EQUAL(flags[i], 1L << i);
	CU_ASSERT_EQUAL(TPQGETBYMSGID, 0x40008);
	CU_ASSERT_EQUAL(TPQGETBYCORRID, 0x80800);
	CU_ASSERT_EQUAL(TPQQOSDEFAULTPERSIST, 1);
	CU_ASSERT_EQUAL(TPQQOSPERSISTENT, 2);
	CU_ASSERT_EQUAL(TPQQOSNONPERSISTENT, 4);
}

/* api 1.3 TPNOFLAGS */
static void
without_a_bit_nothing_is_read_or_written(void)
{
	TPQCTL ctl = control(TPNOFLAGS);

	given_queues();
	ctl.urcode = 4711;
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "plain"));
	CU_ASSERT_EQUAL(ctl.flags, 0);
	untouched_but(&ctl, 0);
	ctl = control(TPNOFLAGS);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "plain");
	CU_ASSERT_EQUAL(ctl.flags, 0);
	CU_ASSERT_EQUAL(ctl.urcode, 4711);		/* api 2.3 urcode: copied without a bit */
	CU_ASSERT_EQUAL(ctl.diagnostic, 0);
	CU_ASSERT_FALSE(garbage_still(&ctl.cltid, sizeof ctl.cltid));
	untouched_but(&ctl, 0);
}

/* One output bit at a time: with a sender that gave the value, and with one that did not. */
static void
asked_for(long bit, const TPQCTL *sent)
{
	TPQCTL ctl = *sent;

	given_queues();
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "with it"));
	ctl = control(TPNOFLAGS);
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "without"));
	ctl = *sent;
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "not asked for"));
	ctl = control(bit);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_EQUAL(ctl.flags, bit);
	untouched_but(&ctl, bit);
	switch (bit) {
	case TPQPRIORITY: CU_ASSERT_EQUAL(ctl.priority, sent->priority); break;
	case TPQCORRID: CU_ASSERT_EQUAL(memcmp(ctl.corrid, sent->corrid, TMCORRIDLEN), 0); break;
	case TPQREPLYQ: CU_ASSERT_STRING_EQUAL(ctl.replyqueue, sent->replyqueue); break;
	case TPQFAILUREQ: CU_ASSERT_STRING_EQUAL(ctl.failurequeue, sent->failurequeue); break;
	case TPQDELIVERYQOS: CU_ASSERT_EQUAL(ctl.delivery_qos, sent->delivery_qos); break;
	case TPQREPLYQOS: CU_ASSERT_EQUAL(ctl.reply_qos, sent->reply_qos); break;
	default: CU_FAIL("a bit that asks for nothing");
	}
	ctl = control(bit);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "without");
	CU_ASSERT_EQUAL(ctl.flags, 0);
	untouched_but(&ctl, 0);
	ctl = control(TPNOFLAGS);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "not asked for");
	CU_ASSERT_EQUAL(ctl.flags, 0);
	untouched_but(&ctl, 0);
}

/* api 1.3, 2.3, 2.4 TPQPRIORITY */
static void
tpqpriority_orders_and_comes_back(void)
{
	TPQCTL ctl = control(TPQPRIORITY);

	ctl.priority = 77;
	asked_for(TPQPRIORITY, &ctl);
	GIVEN_CALL_OK(send_it("PRIO", &ctl, "77"));
	ctl = control(TPNOFLAGS);
	GIVEN_CALL_OK(send_it("PRIO", &ctl, "default, so 50"));
	ctl = control(TPQPRIORITY);
	ctl.priority = 51;
	GIVEN_CALL_OK(send_it("PRIO", &ctl, "51"));
	ctl.priority = 100;
	GIVEN_CALL_OK(send_it("PRIO", &ctl, "100"));
	ctl.priority = 1;
	GIVEN_CALL_OK(send_it("PRIO", &ctl, "1"));
	EXPECT("PRIO", "100");
	EXPECT("PRIO", "77");
	EXPECT("PRIO", "51");
	EXPECT("PRIO", "default, so 50");
	EXPECT("PRIO", "1");
	ctl.priority = 0;
	DIAGNOSED(send_it("PLAIN", &ctl, "0"), QMEINVAL);
	ctl.priority = 1L << 32 | 50;
	DIAGNOSED(send_it("PLAIN", &ctl, "2^32 + 50"), QMEINVAL);
}

/* api 1.3, 2.3, 2.4 TPQCORRID: all 32 bytes, whatever they are */
static void
tpqcorrid_comes_back_whole(void)
{
	TPQCTL ctl = control(TPQCORRID);
	int i;

	for (i = 0; i < TMCORRIDLEN; i++)
		ctl.corrid[i] = (char)(i * 11);		/* the first byte is 0 */
	asked_for(TPQCORRID, &ctl);
}

/* api 1.3, 2.3, 2.4 TPQREPLYQ; api 2.1 a name that is too long is cut; the queue need not be there */
static void
tpqreplyq_comes_back(void)
{
	TPQCTL ctl = control(TPQREPLYQ);

	strcpy(ctl.replyqueue, "NOT.THERE");
	asked_for(TPQREPLYQ, &ctl);
	memset(ctl.replyqueue, 'r', sizeof ctl.replyqueue);	/* without an end */
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "long"));
	ctl = control(TPQREPLYQ);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_EQUAL(strlen(ctl.replyqueue), TMQNAMELEN);
}

/* api 1.3, 2.3, 2.4 TPQFAILUREQ */
static void
tpqfailureq_comes_back(void)
{
	TPQCTL ctl = control(TPQFAILUREQ);

	strcpy(ctl.failurequeue, "TROUBLE");
	asked_for(TPQFAILUREQ, &ctl);
}

/* api 1.3, 2.3, 2.4 TPQDELIVERYQOS: one of three values */
static void
tpqdeliveryqos_comes_back(void)
{
	TPQCTL ctl = control(TPQDELIVERYQOS);

	for (ctl.delivery_qos = TPQQOSDEFAULTPERSIST; ctl.delivery_qos <= TPQQOSNONPERSISTENT; ctl.delivery_qos *= 2)
		asked_for(TPQDELIVERYQOS, &ctl);
	DIAGNOSED(send_it("PLAIN", &ctl, "8"), QMEINVAL);
	ctl.delivery_qos = TPQQOSPERSISTENT | TPQQOSNONPERSISTENT;
	DIAGNOSED(send_it("PLAIN", &ctl, "two"), QMEINVAL);
}

/* api 1.3, 2.3, 2.4 TPQREPLYQOS */
static void
tpqreplyqos_comes_back(void)
{
	TPQCTL ctl = control(TPQREPLYQOS);

	for (ctl.reply_qos = TPQQOSDEFAULTPERSIST; ctl.reply_qos <= TPQQOSNONPERSISTENT; ctl.reply_qos *= 2)
		asked_for(TPQREPLYQOS, &ctl);
	ctl.reply_qos = 0;
	DIAGNOSED(send_it("PLAIN", &ctl, "0"), QMEINVAL);
}

/* api 1.3, 2.3, 2.4 TPQMSGID: in both calls, always given */
static void
tpqmsgid_is_told_by_both_calls(void)
{
	TPQCTL sent = control(TPQMSGID), got = control(TPQMSGID);

	given_queues();
	GIVEN_CALL_OK(send_it("PLAIN", &sent, "known"));
	CU_ASSERT_FALSE(garbage_still(sent.msgid, TMMSGIDLEN));
	CU_ASSERT_EQUAL(sent.flags, TPQMSGID);
	untouched_but(&sent, TPQMSGID);
	GIVEN_CALL_OK(fetch("PLAIN", &got));
	CU_ASSERT_EQUAL(got.flags, TPQMSGID);
	CU_ASSERT_EQUAL(memcmp(got.msgid, sent.msgid, TMMSGIDLEN), 0);
	untouched_but(&got, TPQMSGID);
}

/* api 1.3, 2.3 TPQTOP */
static void
tpqtop_goes_first_where_the_queue_allows_it(void)
{
	TPQCTL ctl;

	given_queues();
	put("TOPONLY", "was first");
	ctl = control(TPQTOP);
	GIVEN_CALL_OK(send_it("TOPONLY", &ctl, "is first"));
	EXPECT("TOPONLY", "is first");
	EXPECT("TOPONLY", "was first");
	ctl = control(TPQTOP);
	DIAGNOSED(send_it("IDONLY", &ctl, "no"), QMEINVAL);
	ctl = control(TPQTOP);
	DIAGNOSED(send_it("PLAIN", &ctl, "no"), QMEINVAL);
	ctl = control(TPQTOP | TPQBEFOREMSGID);
	DIAGNOSED(send_it("Q", &ctl, "no"), QMEINVAL);
}

/* api 1.3, 2.3 TPQBEFOREMSGID; with TPQMSGID msgid is read, then overwritten */
static void
tpqbeforemsgid_goes_directly_before(void)
{
	TPQCTL second = control(TPQMSGID), ctl;

	given_queues();
	put("IDONLY", "first");
	GIVEN_CALL_OK(send_it("IDONLY", &second, "third"));
	ctl = second;
	ctl.flags = TPQBEFOREMSGID | TPQMSGID;
	GIVEN_CALL_OK(send_it("IDONLY", &ctl, "second"));
	CU_ASSERT_NOT_EQUAL(memcmp(ctl.msgid, second.msgid, TMMSGIDLEN), 0);
	ctl.flags = TPQGETBYMSGID;
	GIVEN_CALL_OK(tpdequeue("QSPACE", "IDONLY", &ctl, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "second");
	EXPECT("IDONLY", "first");
	EXPECT("IDONLY", "third");
	ctl = second;
	ctl.flags = TPQBEFOREMSGID;
	DIAGNOSED(send_it("IDONLY", &ctl, "before what is gone"), QMEBADMSGID);
	DIAGNOSED(send_it("TOPONLY", &ctl, "no"), QMEINVAL);
}

/* api 1.3, 2.4 TPQGETBYMSGID and TPQGETBYMSGIDOLD: the same selection; the bits stay */
static void
tpqgetbymsgid_takes_that_message(void)
{
	static const long bits[] = { TPQGETBYMSGID, TPQGETBYMSGIDOLD };
	TPQCTL wanted, ctl;
	size_t i;

	given_queues();
	for (i = 0; i < 2; i++) {
		put("Q", "before");
		wanted = control(TPQMSGID);
		GIVEN_CALL_OK(send_it("Q", &wanted, "wanted"));
		ctl = control(bits[i]);
		memcpy(ctl.msgid, wanted.msgid, TMMSGIDLEN);
		GIVEN_CALL_OK(fetch("Q", &ctl));
		CU_ASSERT_STRING_EQUAL(data, "wanted");
		CU_ASSERT_EQUAL(ctl.flags, bits[i]);
		DIAGNOSED(fetch("Q", &ctl), QMENOMSG);
		ctl.msgid[TMMSGIDLEN - 1] ^= 1;			/* all 32 bytes count */
		CU_ASSERT_EQUAL(fetch("Q", &ctl), -1);
		EXPECT("Q", "before");
	}
}

/* api 1.3, 2.4 TPQGETBYCORRID and TPQGETBYCORRIDOLD; both selections together: both must match */
static void
tpqgetbycorrid_takes_the_first_that_matches(void)
{
	static const long bits[] = { TPQGETBYCORRID, TPQGETBYCORRIDOLD };
	TPQCTL sent[3], ctl;
	size_t i, k;

	given_queues();
	for (i = 0; i < 2; i++) {
		put("Q", "without one");
		for (k = 0; k < 3; k++) {
			sent[k] = control(TPQCORRID | TPQMSGID);
			memset(sent[k].corrid, 0, TMCORRIDLEN);
			sent[k].corrid[TMCORRIDLEN - 1] = k == 1 ? 'x' : 'y';	/* only the last byte differs */
			snprintf(data, 100, "%zu", k);
			GIVEN_CALL_OK(tpenqueue("QSPACE", "Q", &sent[k], data, 0, 0));
		}
		ctl = sent[1];
		ctl.flags = bits[i] | TPQGETBYMSGID;
		memcpy(ctl.corrid, sent[2].corrid, TMCORRIDLEN);
		CU_ASSERT_EQUAL(fetch("Q", &ctl), -1);		/* that message has another corrid */
		memcpy(ctl.msgid, sent[2].msgid, TMMSGIDLEN);
		GIVEN_CALL_OK(fetch("Q", &ctl));
		CU_ASSERT_STRING_EQUAL(data, "2");
		ctl = control(bits[i]);
		memcpy(ctl.corrid, sent[2].corrid, TMCORRIDLEN);
		GIVEN_CALL_OK(fetch("Q", &ctl));
		CU_ASSERT_STRING_EQUAL(data, "0");
		CU_ASSERT_EQUAL(ctl.flags, bits[i]);
		DIAGNOSED(fetch("Q", &ctl), QMENOMSG);
		EXPECT("Q", "without one");
		EXPECT("Q", "1");
	}
}

/* api 1.3, 2.4 TPQWAIT: ends at -t, here a second; with a message at once; the bit stays */
static void
tpqwait_waits(void)
{
	TPQCTL ctl = control(TPQWAIT | TPQCORRID);
	double start = now_s();

	given_queues();
	DIAGNOSED(fetch("PLAIN", &ctl), QMENOMSG);
	CU_ASSERT_TRUE(now_s() - start >= 0.99);
	CU_ASSERT_EQUAL(ctl.flags, TPQWAIT | TPQCORRID);	/* after a failure they are as they were */
	put("PLAIN", "there");
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_EQUAL(ctl.flags, TPQWAIT);
}

/* api 1.3, 2.4 TPQPEEK: takes nothing, is in no transaction, goes with selection and waiting; the bit stays */
static void
tpqpeek_only_looks(void)
{
	TPQCTL ctl = control(TPQCORRID);

	given_queues();
	put("Q", "first");
	memset(ctl.corrid, 'p', TMCORRIDLEN);
	GIVEN_CALL_OK(send_it("Q", &ctl, "second"));
	GIVEN_CALL_OK(tpbegin(60, 0));
	ctl.flags = TPQPEEK | TPQGETBYCORRID;
	GIVEN_CALL_OK(fetch("Q", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "second");
	CU_ASSERT_EQUAL(ctl.flags, TPQPEEK | TPQGETBYCORRID);
	ctl = control(TPQPEEK | TPQWAIT);
	GIVEN_CALL_OK(fetch("Q", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "first");
	GIVEN_CALL_OK(tpabort(0));			/* no retry is counted, nothing was held */
	CU_ASSERT_EQUAL(depth(g, "Q"), 2);
	GIVEN_CALL_OK(tpbegin(60, 0));			/* what a transaction has taken or put is not seen */
	EXPECT("Q", "first");
	put("Q", "third");
	ctl = control(TPQPEEK);
	GIVEN_CALL_OK(fetch("Q", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "second");
	GIVEN_CALL_OK(tpabort(0));
	EXPECT("Q", "first");
	EXPECT("Q", "second");
	CU_ASSERT_EQUAL(take_diagnostic("Q"), QMENOMSG);
}

/* api 1.3, 2.3 TPQTIME_ABS, TPQTIME_REL */
static void
tpqtime_hides_until_then(void)
{
	TPQCTL ctl = control(TPQTIME_ABS);
	time_t now = time(NULL);
	struct timespec after;

	given_queues();
	ctl.deq_time = now + 2;
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "absolute"));
	ctl = control(TPQTIME_REL);
	ctl.deq_time = 2;
	GIVEN_CALL_OK(send_it("Q", &ctl, "relative"));
	ctl = control(TPQTIME_ABS);
	ctl.deq_time = 1;				/* long past */
	GIVEN_CALL_OK(send_it("TOPONLY", &ctl, "at once"));
	CU_ASSERT_EQUAL(take_diagnostic("PLAIN"), QMENOMSG);
	CU_ASSERT_EQUAL(take_diagnostic("Q"), QMENOMSG);
	EXPECT("TOPONLY", "at once");
	free(take_within("PLAIN", 20));
	clock_gettime(CLOCK_REALTIME, &after);		/* time() may lag behind it by a tick */
	CU_ASSERT_TRUE(after.tv_sec >= now + 2);
	free(take_within("Q", 20));
	CU_ASSERT_EQUAL(depth(g, "PLAIN") + depth(g, "Q"), 0);
	ctl = control(TPQTIME_ABS | TPQTIME_REL);
	DIAGNOSED(send_it("PLAIN", &ctl, "both"), QMEINVAL);
	ctl = control(TPQTIME_REL);
	ctl.deq_time = -1;
	DIAGNOSED(send_it("PLAIN", &ctl, "negative"), QMEINVAL);
}

static bool
is_empty(void *queue)
{
	return !peeks(queue, "mortal");
}

/* api 1.3, 2.3 TPQEXPTIME_ABS, TPQEXPTIME_REL, TPQEXPTIME_NONE, none of the three; api 2.8 */
static void
tpqexptime_ends_a_message(void)
{
	static const long pairs[] = { TPQEXPTIME_ABS | TPQEXPTIME_REL, TPQEXPTIME_ABS | TPQEXPTIME_NONE,
		TPQEXPTIME_REL | TPQEXPTIME_NONE };
	TPQCTL ctl = control(TPQEXPTIME_NONE);
	size_t i;

	given_queues();
	GIVEN_CALL_OK(send_it("SHORT", &ctl, "immortal"));
	put("SHORT", "the default of the queue, a second");
	ctl = control(TPQEXPTIME_ABS);
	ctl.exp_time = time(NULL) + 2;
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "mortal"));
	ctl = control(TPQEXPTIME_REL);
	ctl.exp_time = 2;
	GIVEN_CALL_OK(send_it("Q", &ctl, "mortal"));
	ctl = control(TPQEXPTIME_REL);
	ctl.exp_time = 0;				/* api 2.8: at once */
	GIVEN_CALL_OK(send_it("TOPONLY", &ctl, "mortal"));
	CU_ASSERT_EQUAL(take_diagnostic("TOPONLY"), QMENOMSG);
	CU_ASSERT_TRUE(wait_until(is_empty, "PLAIN", 20));
	CU_ASSERT_TRUE(wait_until(is_empty, "Q", 20));
	EXPECT("SHORT", "immortal");
	CU_ASSERT_EQUAL(take_diagnostic("SHORT"), QMENOMSG);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	for (i = 0; i < 3; i++) {
		ctl = control(pairs[i]);
		ctl.exp_time = 60;
		DIAGNOSED(send_it("PLAIN", &ctl, "two"), QMEINVAL);
	}
	ctl = control(TPQEXPTIME_REL);
	ctl.exp_time = -1;
	DIAGNOSED(send_it("PLAIN", &ctl, "negative"), QMEINVAL);
}

static bool
one_is_left(void *queue)
{
	return depth(g, queue) == 1;
}

/* api 2.8: a changed default touches no stored message; what expires before its time comes is never delivered */
static void
the_default_of_now_is_for_what_comes_now(void)
{
	TPQCTL ctl = control(TPQTIME_REL | TPQEXPTIME_REL);

	given_queues();
	put("AGES", "stored before");
	free(given_qmadmin(g, "qchange -e +1 AGES none 5 0 100% 0% \"\"\n"));
	put("AGES", "stored after");
	ctl.deq_time = 3600;
	ctl.exp_time = 1;
	GIVEN_CALL_OK(send_it("AGES", &ctl, "never delivered"));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	CU_ASSERT_TRUE(wait_until(one_is_left, "AGES", 20));
	EXPECT("AGES", "stored before");
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
}

/* api 1.3 "cleared", 2.4: bits of the other call do no harm, in either direction */
static void
bits_of_the_other_call_do_no_harm(void)
{
	const long of_dequeue = TPQWAIT | TPQPEEK | TPQGETBYMSGID | TPQGETBYCORRID;
	const long of_enqueue = TPQTOP | TPQBEFOREMSGID | TPQTIME_ABS | TPQTIME_REL | TPQEXPTIME_ABS | TPQEXPTIME_REL | TPQEXPTIME_NONE;
	TPQCTL ctl = control(of_dequeue);

	given_queues();
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "one structure for both"));
	ctl = control(of_enqueue);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_STRING_EQUAL(data, "one structure for both");
	CU_ASSERT_EQUAL(ctl.flags, 0);
	ctl = control(0x20000000);			/* of other products */
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "high bits"));
	ctl = control(0x20000000);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
}

/* R06: the flags say which members are valid, and nothing else is read or written */
static void
r06_flags_say_what_is_valid(void)
{
	const long wanted = TPQMSGID | TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ;
	TPQCTL ctl = control(TPNOFLAGS), was;

	given_queues();
	was = ctl;
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "nothing given"));
	was.diagnostic = 0;
	CU_ASSERT_EQUAL(memcmp(&ctl, &was, sizeof ctl), 0);
	ctl = control(wanted);
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_EQUAL(ctl.flags, TPQMSGID);
	untouched_but(&ctl, TPQMSGID);
	GIVEN_CALL_OK(send_it("PLAIN", &ctl, "a loop that does not set its flags again"));
	GIVEN_CALL_OK(fetch("PLAIN", &ctl));
	CU_ASSERT_EQUAL(ctl.flags, TPQMSGID);
}

/* R15: an unknown queue is not an empty one; with TPQWAIT at once; the log names space and queue */
static void
r15_an_unknown_queue_is_not_an_empty_one(void)
{
	TPQCTL ctl = control(TPQWAIT);
	char *log, *line;
	double start;

	given_queues();
	GIVEN_CALL_OK(tpbegin(60, 0));
	start = now_s();
	DIAGNOSED(fetch("NOPE", &ctl), QMEBADQUEUE);
	ctl = control(TPQWAIT | TPQPEEK);
	DIAGNOSED(fetch("NOPE", &ctl), QMEBADQUEUE);
	CU_ASSERT_TRUE(now_s() - start < 30);		/* and not when the transaction's time is over */
	GIVEN_CALL_OK(tpcommit(0));
	log = given_log(g);
	line = strstr(log, "NOPE");
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	while (line > log && line[-1] != '\n')
		line--;
	line[strcspn(line, "\n")] = '\0';
	CU_ASSERT_TRUE(has(line, "QSPACE"));
	free(log);
}

static void
the_system_ends_cleanly(void)
{
	given_queues();
	tpfree(data);
	given_done(g);
	g = NULL;
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_bits_have_their_numbers),
		UNIT(without_a_bit_nothing_is_read_or_written),
		UNIT(tpqpriority_orders_and_comes_back),
		UNIT(tpqcorrid_comes_back_whole),
		UNIT(tpqreplyq_comes_back),
		UNIT(tpqfailureq_comes_back),
		UNIT(tpqdeliveryqos_comes_back),
		UNIT(tpqreplyqos_comes_back),
		UNIT(tpqmsgid_is_told_by_both_calls),
		UNIT(tpqtop_goes_first_where_the_queue_allows_it),
		UNIT(tpqbeforemsgid_goes_directly_before),
		UNIT(tpqgetbymsgid_takes_that_message),
		UNIT(tpqgetbycorrid_takes_the_first_that_matches),
		UNIT(tpqwait_waits),
		UNIT(tpqpeek_only_looks),
		UNIT(tpqtime_hides_until_then),
		UNIT(tpqexptime_ends_a_message),
		UNIT(the_default_of_now_is_for_what_comes_now),
		UNIT(bits_of_the_other_call_do_no_harm),
		UNIT(r06_flags_say_what_is_valid),
		UNIT(r15_an_unknown_queue_is_not_an_empty_one),
		UNIT(the_system_ends_cleanly),
	};

	return unit_run("the flags of TPQCTL", tests, UNIT_COUNT(tests));
}
