/*
 * Any text as what an administrator gives to qmadmin: refused with at most one line that says why, or read; what is
 * read is within its bounds, and an identifier or an order comes back as it was when it is written and read again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "qparse.h"

static void
judged(int rc, char *why)
{
	assert(rc == 0 ? why == NULL : why != NULL && *why != '\0');
	free(why);
}

static void
numbers(const char *s)
{
	struct threshold t;
	int64_t seconds, us;
	bool a, b;
	long v;
	char *why = NULL;

	if (qparse_bytes(s, &seconds) == 0)
		assert(seconds >= 0);
	judged(qparse_retry_delay(s, &v, &why), why);
	why = NULL;
	judged(qparse_threshold(s, "0", "", "bBm%", &t, &why), why);
	why = NULL;
	judged(qparse_threshold("80%", s, "", "bBm%", &t, &why), why);
	why = NULL;
	judged(qparse_np_threshold(s, &t, &why), why);
	why = NULL;
	judged(qparse_expiration(s, &seconds, &why), why);
	why = NULL;
	judged(qparse_policy(s, &a, &why), why);
	why = NULL;
	judged(qparse_out_of_order(s, &a, &b, &why), why);
	if (qparse_time(s, 1700000000000000, &us) == 0)
		assert(us >= -86400000000);		/* the first day of 1970, in the zones east of Greenwich */
}

static void
names(const char *s)
{
	char *why = NULL;

	judged(qparse_space_name(s, &why), why);
	why = NULL;
	judged(qparse_queue_name(s, &why), why);
}

static void
order(const char *s)
{
	uint8_t o[4], again[4];
	char text[64], *why = NULL;
	int rc = qparse_order(s, o, &why);

	judged(rc, why);
	if (rc != 0)
		return;
	qformat_order(o, text, sizeof text);
	assert(qparse_order(text, again, NULL) == 0 && memcmp(o, again, sizeof o) == 0);
}

static void
identifier(const char *s)
{
	uint8_t id[TMMSGIDLEN], again[TMMSGIDLEN];
	char text[3 * TMMSGIDLEN + 1];

	if (qparse_id(s, id) != 0)
		return;
	qformat_id(id, text);
	if (*text == '\0')		/* nothing but zero bytes: written as nothing, which is none */
		return;
	assert(qparse_id(text, again) == 0 && memcmp(id, again, sizeof id) == 0);
}

static void
criteria(const char *s)
{
	static const char *const keys[] = { "time", "priority", "msgid", "corrid", "delivery", "expiry" };
	struct qcriteria c;
	struct qmsg m = { 0 };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct document d = { 0 };
		struct record *r = document_add(&d);
		char *why = NULL;
		int rc;

		if (r == NULL || record_set(r, keys[i], s) != 0)
			abort();
		if ((rc = qcriteria_parse(r, 1700000000000000, &c, &why)) == 0)
			(void)qcriteria_match(&c, &m);
		judged(rc, why);
		document_free(&d);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = malloc(n + 1);

	if (s == NULL)
		return 0;
	memcpy(s, p, n);
	s[n] = '\0';
	numbers(s);
	names(s);
	order(s);
	identifier(s);
	criteria(s);
	free(s);
	return 0;
}
