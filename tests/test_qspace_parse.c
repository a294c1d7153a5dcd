/*
 * What administrators write: orders, limits, times, identifiers, criteria.
 */
#include <time.h>

#include "qparse.h"
#include "unit.h"

static char *text;

/* The number a refusal has; its text must hold `part`. */
static int
refused(int rc, const char *part)
{
	if (text == NULL || strstr(text, part) == NULL)
		printf("\n  said \"%s\", expected \"%s\"", text != NULL ? text : "nothing", part);
	CU_ASSERT_TRUE(text != NULL && strstr(text, part) != NULL);
	free(text);
	text = NULL;
	return rc;
}

static const char *
order_of(const char *s)
{
	static char out[64];
	uint8_t order[4];

	if (qparse_order(s, order, NULL) != 0)
		return "refused";
	qformat_order(order, out, sizeof out);
	return out;
}

static void
orders_end_in_fifo_or_lifo(void)
{
	CU_ASSERT_STRING_EQUAL(order_of("fifo"), "fifo");
	CU_ASSERT_STRING_EQUAL(order_of("priority"), "priority,fifo");
	CU_ASSERT_STRING_EQUAL(order_of("PRIO,LIFO"), "priority,lifo");
	CU_ASSERT_STRING_EQUAL(order_of("expir,time"), "expiration,time,fifo");
	CU_ASSERT_STRING_EQUAL(order_of("priority,time,expiration,lifo"), "priority,time,expiration,lifo");
	CU_ASSERT_STRING_EQUAL(order_of("fifo,lifo"), "refused");
	CU_ASSERT_STRING_EQUAL(order_of("lifo,time"), "refused");
	CU_ASSERT_STRING_EQUAL(order_of("time,time"), "refused");
	CU_ASSERT_STRING_EQUAL(order_of("pri"), "refused");
	CU_ASSERT_STRING_EQUAL(order_of("time,"), "refused");
	CU_ASSERT_STRING_EQUAL(order_of(""), "refused");
}

static void
out_of_order_words(void)
{
	bool top, msgid;

	CU_ASSERT_EQUAL(qparse_out_of_order("none", &top, &msgid, &text), 0);
	CU_ASSERT_TRUE(!top && !msgid);
	CU_ASSERT_EQUAL(qparse_out_of_order("top,msgid", &top, &msgid, &text), 0);
	CU_ASSERT_TRUE(top && msgid);
	CU_ASSERT_EQUAL(qparse_out_of_order("msgid", &top, &msgid, &text), 0);
	CU_ASSERT_TRUE(!top && msgid);
	CU_ASSERT_NOT_EQUAL(refused(qparse_out_of_order("none,top", &top, &msgid, &text), "none excludes"), 0);
	CU_ASSERT_NOT_EQUAL(refused(qparse_out_of_order("bottom", &top, &msgid, &text), "are known"), 0);
}

static int
limits(const char *high, const char *low, const char *cmd)
{
	struct threshold t;

	return qparse_threshold(high, low, cmd, "bBm%", &t, &text);
}

static void
limits_have_their_catalogue_numbers(void)
{
	struct threshold t;
	char cmd[130];

	CU_ASSERT_EQUAL(qparse_threshold("5m", "0m", "tmboot -s TMQFORWARD", "bBm%", &t, &text), 0);
	CU_ASSERT_TRUE(t.high == 5 && t.low == 0 && t.unit == 'm');
	CU_ASSERT_STRING_EQUAL(t.cmd, "tmboot -s TMQFORWARD");
	CU_ASSERT_EQUAL(limits("100%", "0", ""), 0);
	CU_ASSERT_EQUAL(limits("80%", "0%", ""), 0);
	CU_ASSERT_EQUAL(refused(limits("5x", "0", ""), "unit"), 1205);
	CU_ASSERT_EQUAL(refused(limits("5", "0", ""), "unit"), 1205);
	CU_ASSERT_EQUAL(refused(limits("", "0", ""), "unit"), 1205);
	CU_ASSERT_EQUAL(refused(limits("fivem", "0", ""), "not a number"), 1206);
	CU_ASSERT_EQUAL(refused(limits("5.5m", "0", ""), "not a number"), 1206);
	CU_ASSERT_EQUAL(refused(limits("0%", "0", ""), "above 0"), 1207);
	CU_ASSERT_EQUAL(refused(limits("101%", "0", ""), "at most 100%"), 1207);
	CU_ASSERT_EQUAL(limits("101m", "0", ""), 0);
	CU_ASSERT_EQUAL(refused(limits("5m", "1%", ""), "its unit is not that of the high limit, m"), 1210);
	CU_ASSERT_EQUAL(refused(limits("5m", "5m", ""), "5m is not below the high limit 5m"), 1212);
	memset(cmd, 'x', sizeof cmd);
	cmd[128] = '\0';
	CU_ASSERT_EQUAL(refused(limits("5m", "0", cmd), "128 characters long; 127 are allowed"), 1215);
	cmd[127] = '\0';
	CU_ASSERT_EQUAL(limits("5m", "0", cmd), 0);
}

static void
nonpersistent_limits_are_one_word(void)
{
	struct threshold t;

	CU_ASSERT_EQUAL(qparse_np_threshold("80%,20%,echo a, b", &t, &text), 0);
	CU_ASSERT_TRUE(t.high == 80 && t.low == 20 && t.unit == '%');
	CU_ASSERT_STRING_EQUAL(t.cmd, "echo a, b");
	CU_ASSERT_EQUAL(qparse_np_threshold("4096b,0,", &t, &text), 0);
	CU_ASSERT_EQUAL(refused(qparse_np_threshold("80%,20%", &t, &text), "high,low,command"), 1);
	CU_ASSERT_EQUAL(refused(qparse_np_threshold("80m,0,", &t, &text), "unit"), 1205);
}

static void
other_values_of_a_queue(void)
{
	int64_t seconds, bytes;
	bool np;
	long v;

	CU_ASSERT_EQUAL(refused(qparse_retry_delay("soon", &v, &text), "\"soon\" is not a number of seconds"), 1201);
	CU_ASSERT_EQUAL(qparse_retry_delay("30", &v, &text), 0);
	CU_ASSERT_EQUAL(qparse_expiration("+90", &seconds, &text), 0);
	CU_ASSERT_EQUAL(seconds, 90);
	CU_ASSERT_EQUAL(qparse_expiration("none", &seconds, &text), 0);
	CU_ASSERT_EQUAL(seconds, -1);
	CU_ASSERT_EQUAL(refused(qparse_expiration("90", &seconds, &text), "+seconds or none"), 1);
	CU_ASSERT_EQUAL(refused(qparse_expiration("+-90", &seconds, &text), "+seconds or none"), 1);
	CU_ASSERT_EQUAL(qparse_policy("nonpersist", &np, &text), 0);
	CU_ASSERT_TRUE(np);
	CU_ASSERT_EQUAL(refused(qparse_policy("perhaps", &np, &text), "persist or nonpersist"), 1);
	CU_ASSERT_EQUAL(qparse_bytes("100B", &bytes), 0);
	CU_ASSERT_EQUAL(bytes, 51200);
	CU_ASSERT_EQUAL(qparse_bytes("100", &bytes), 0);
	CU_ASSERT_EQUAL(bytes, 51200);
	CU_ASSERT_EQUAL(qparse_bytes("513b", &bytes), 0);
	CU_ASSERT_EQUAL(bytes, 1024);
	CU_ASSERT_EQUAL(qparse_bytes("100K", &bytes), -1);
	CU_ASSERT_EQUAL(qparse_bytes("-1", &bytes), -1);
}

static void
names_are_checked(void)
{
	CU_ASSERT_EQUAL(qparse_space_name("QSPACE", &text), 0);
	CU_ASSERT_EQUAL(qparse_space_name("123456789012345", &text), 0);
	CU_ASSERT_EQUAL(refused(qparse_space_name("1234567890123456", &text), "longer than 15"), 1);
	CU_ASSERT_EQUAL(refused(qparse_space_name("../etc", &text), "not allowed"), 1);
	CU_ASSERT_EQUAL(refused(qparse_space_name("a:b", &text), "not allowed"), 1);
	CU_ASSERT_EQUAL(qparse_queue_name("0", &text), 0);
	CU_ASSERT_EQUAL(refused(qparse_queue_name("", &text), "empty"), 1);
	CU_ASSERT_EQUAL(refused(qparse_queue_name("a\nb", &text), "unprintable"), 1);
}

static const char *
time_of(const char *s)
{
	static char out[32];
	int64_t us;
	struct tm tm;
	time_t t;

	if (qparse_time(s, 1000000000000000LL, &us) != 0)
		return "refused";
	t = (time_t)(us / 1000000);
	strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S", localtime_r(&t, &tm));
	return out;
}

static void
times_are_pairs_of_digits(void)
{
	int64_t us;

	CU_ASSERT_STRING_EQUAL(time_of("9506"), "1995-06-01 00:00:00");
	CU_ASSERT_STRING_EQUAL(time_of("70"), "1970-01-01 00:00:00");
	CU_ASSERT_STRING_EQUAL(time_of("370228235959"), "2037-02-28 23:59:59");
	CU_ASSERT_STRING_EQUAL(time_of("00"), "2000-01-01 00:00:00");
	CU_ASSERT_STRING_EQUAL(time_of("38"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of("69"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of("9513"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of("950230"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of("950"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of("9506010000001"), "refused");
	CU_ASSERT_STRING_EQUAL(time_of(""), "refused");
	CU_ASSERT_EQUAL(qparse_time("+60", 1000000000000000LL, &us), 0);
	CU_ASSERT_EQUAL(us, 1000000060000000LL);
	CU_ASSERT_EQUAL(qparse_time("+", 0, &us), -1);
}

static void
identifiers_come_back_as_they_were_shown(void)
{
	uint8_t id[TMMSGIDLEN], again[TMMSGIDLEN];
	char out[3 * TMMSGIDLEN + 1];

	CU_ASSERT_EQUAL(qparse_id("hello\\20world", id), 0);
	CU_ASSERT_EQUAL(memcmp(id, "hello world\0\0", 13), 0);
	qformat_id(id, out);
	CU_ASSERT_STRING_EQUAL(out, "hello\\20world");
	for (int i = 0; i < TMMSGIDLEN; i++)
		id[i] = (uint8_t)(i * 37 + 1);
	qformat_id(id, out);
	CU_ASSERT_EQUAL(qparse_id(out, again), 0);
	CU_ASSERT_EQUAL(memcmp(id, again, TMMSGIDLEN), 0);
	CU_ASSERT_EQUAL(qparse_id("", id), -1);
	CU_ASSERT_EQUAL(qparse_id("\\2", id), -1);
	CU_ASSERT_EQUAL(qparse_id("\\zz", id), -1);
	CU_ASSERT_EQUAL(qparse_id("123456789012345678901234567890123", id), -1);
}

static bool
selects(const char *key, const char *value, const struct qmsg *m)
{
	struct document doc = { 0 };
	struct qcriteria c;
	struct record *r = document_add(&doc);
	bool yes;

	record_set(r, key, value);
	CU_ASSERT_EQUAL(qcriteria_parse(r, 0, &c, &text), 0);
	yes = qcriteria_match(&c, m);
	document_free(&doc);
	return yes;
}

static int
criteria(const char *key, const char *value)
{
	struct document doc = { 0 };
	struct qcriteria c;
	struct record *r = document_add(&doc);
	int rc;

	record_set(r, key, value);
	rc = qcriteria_parse(r, 0, &c, &text);
	document_free(&doc);
	return rc;
}

static void
criteria_select(void)
{
	struct qmsg m = { .priority = 50, .persistent = true, .flags = TPQCORRID, .corrid = "order 1", .msgid = "m1" };
	int64_t us;

	qparse_time("260615120000", 0, &us);
	m.enqueued_us = us + 500000;
	CU_ASSERT_TRUE(selects("priority", "50", &m));
	CU_ASSERT_TRUE(selects("priority", "1-50", &m));
	CU_ASSERT_FALSE(selects("priority", "51-100", &m));
	CU_ASSERT_TRUE(selects("corrid", "order\\201", &m));
	CU_ASSERT_FALSE(selects("corrid", "order", &m));
	CU_ASSERT_TRUE(selects("msgid", "m1", &m));
	CU_ASSERT_FALSE(selects("msgid", "m2", &m));
	CU_ASSERT_TRUE(selects("delivery", "persist", &m));
	CU_ASSERT_FALSE(selects("delivery", "nonpersist", &m));
	CU_ASSERT_TRUE(selects("time", "2606-2607", &m));
	CU_ASSERT_TRUE(selects("time", "260615120000", &m));	/* the whole second */
	CU_ASSERT_FALSE(selects("time", "2607-2608", &m));
	CU_ASSERT_FALSE(selects("expiry", "00-37", &m));		/* it never expires */
	m.expires_us = us;
	CU_ASSERT_TRUE(selects("expiry", "00-37", &m));
	m.available_us = us + 86400000000LL;
	CU_ASSERT_FALSE(selects("time", "260615120000", &m));	/* when it becomes available is what counts */
	CU_ASSERT_EQUAL(refused(criteria("priority", "0-50"), "1 to 100"), 1);
	CU_ASSERT_EQUAL(refused(criteria("priority", "60-50"), "1 to 100"), 1);
	CU_ASSERT_EQUAL(refused(criteria("time", "2607-2606"), "YY[MM"), 1);
	CU_ASSERT_EQUAL(refused(criteria("time", "50"), "years 00 to 37"), 1);
	CU_ASSERT_EQUAL(refused(criteria("msgid", "\\q"), "1 to 32 bytes"), 1);
	CU_ASSERT_EQUAL(refused(criteria("delivery", "fast"), "persist or nonpersist"), 1);
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(orders_end_in_fifo_or_lifo), UNIT(out_of_order_words),
		UNIT(limits_have_their_catalogue_numbers), UNIT(nonpersistent_limits_are_one_word),
		    UNIT(other_values_of_a_queue),
		UNIT(names_are_checked), UNIT(times_are_pairs_of_digits),
		    UNIT(identifiers_come_back_as_they_were_shown),
		UNIT(criteria_select) };

	return unit_run("what administrators write", tests, UNIT_COUNT(tests));
}
