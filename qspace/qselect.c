/*
 * The criteria of qscan: their grammar, and whether a message meets them.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qparse.h"

/* Two digits at a time, and the least where they end: 9506 is the first of June 1995. */
static int
absolute_time(const char *s, size_t n, int64_t *us)
{
	int part[6] = { 0, 1, 1, 0, 0, 0 };
	struct tm tm = { .tm_isdst = -1 }, back;
	time_t t;

	if (n < 2 || n > 12 || n % 2 != 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return -1;
	for (size_t i = 0; i < n / 2; i++)
		part[i] = (s[2 * i] - '0') * 10 + (s[2 * i + 1] - '0');
	if ((part[0] > 37 && part[0] < 70) || part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 ||
	    part[3] > 23 || part[4] > 59 || part[5] > 59)
		return -1;
	tm.tm_year = part[0] < 70 ? 100 + part[0] : part[0];
	tm.tm_mon = part[1] - 1;
	tm.tm_mday = part[2];
	tm.tm_hour = part[3];
	tm.tm_min = part[4];
	tm.tm_sec = part[5];
	t = mktime(&tm);
	if (localtime_r(&t, &back) == NULL || back.tm_mday != part[2])	/* the 30th of February */
		return -1;
	*us = (int64_t)t * 1000000;
	return 0;
}

static int
one_time(const char *s, size_t n, int64_t now_us, int64_t *us)
{
	char digits[16];
	long v;

	if (n == 0 || *s != '+')
		return absolute_time(s, n, us);
	if (n < 2 || n - 1 >= sizeof digits || !isdigit((unsigned char)s[1]))
		return -1;
	memcpy(digits, s + 1, n - 1);
	digits[n - 1] = '\0';
	if (qparse_long(digits, 0, 999999999999L, &v) != 0)
		return -1;
	*us = now_us + (int64_t)v * 1000000;
	return 0;
}

int
qparse_time(const char *s, int64_t now_us, int64_t *us)
{
	return one_time(s, strlen(s), now_us, us);
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' &&
	    c <= 'F' ? c - 'A' + 10 : -1;
}

int
qparse_id(const char *s, uint8_t id[TMMSGIDLEN])
{
	size_t n = 0;

	memset(id, 0, TMMSGIDLEN);
	for (; *s != '\0'; n++) {
		if (n == TMMSGIDLEN)
			return -1;
		if (*s != '\\')
			id[n] = (uint8_t)*s++;
		else if (hex_digit(s[1]) >= 0 && hex_digit(s[2]) >= 0) {
			id[n] = (uint8_t)(hex_digit(s[1]) << 4 | hex_digit(s[2]));
			s += 3;
		} else
			return -1;
	}
	return n == 0 ? -1 : 0;
}

void
qformat_id(const uint8_t id[TMMSGIDLEN], char out[3 * TMMSGIDLEN + 1])
{
	size_t n = TMMSGIDLEN, at = 0;

	while (n > 0 && id[n - 1] == 0)
		n--;
	for (size_t i = 0; i < n; i++)
		if (id[i] > ' ' && id[i] < 0x7f && id[i] != '\\' && id[i] != '"' && id[i] != '\'')
			out[at++] = (char)id[i];
		else
			at += (size_t)snprintf(out + at, 4, "\\%02x", id[i]);
	out[at] = '\0';
}

static int
time_range(const char *s, int64_t now_us, int64_t range[2])
{
	size_t n = strcspn(s, "-");

	if (one_time(s, n, now_us, &range[0]) != 0)
		return -1;
	range[1] = range[0];
	if (s[n] != '\0' && one_time(s + n + 1, strlen(s + n + 1), now_us, &range[1]) != 0)
		return -1;
	return range[0] > range[1] ? -1 : 0;
}

static int
priority_range(const char *s, long range[2])
{
	char low[8];
	size_t n = strcspn(s, "-");

	if (n >= sizeof low)
		return -1;
	snprintf(low, sizeof low, "%.*s", (int)n, s);
	if (qparse_long(low, 1, 100, &range[0]) != 0)
		return -1;
	range[1] = range[0];
	if (s[n] != '\0' && qparse_long(s + n + 1, 1, 100, &range[1]) != 0)
		return -1;
	return range[0] > range[1] ? -1 : 0;
}

static int
time_criterion(const struct record *r, const char *key, int64_t now_us, bool *on, int64_t range[2], char **text)
{
	const char *s = record_get(r, key);

	if (s == NULL)
		return 0;
	*on = true;
	if (time_range(s, now_us, range) != 0)
		return qparse_fail(text, 1,
		    "%s \"%.80s\": YY[MM[DD[hh[mm[ss]]]]], +seconds, or two of these with - between, is expected "
		    "(years 00 to 37 and 70 to 99)", key, s);
	return 0;
}

static int
id_criterion(const struct record *r, const char *key, bool *on, uint8_t *id, char **text)
{
	const char *s = record_get(r, key);

	if (s == NULL)
		return 0;
	*on = true;
	if (qparse_id(s, id) != 0)
		return qparse_fail(text, 1,
		    "%s \"%.120s\": 1 to %d bytes are expected, \\hh for those that do not print", key, s, TMMSGIDLEN);
	return 0;
}

int
qcriteria_parse(const struct record *r, int64_t now_us, struct qcriteria *out, char **text)
{
	const char *s;
	bool nonpersistent = false;
	int rc;

	memset(out, 0, sizeof *out);
	if (r == NULL)
		return 0;
	if ((rc = time_criterion(r, "time", now_us, &out->by_time, out->time, text)) != 0 ||
	    (rc = time_criterion(r, "expiry", now_us, &out->by_expiry, out->expiry, text)) != 0 ||
	    (rc = id_criterion(r, "msgid", &out->by_msgid, out->msgid, text)) != 0 ||
	    (rc = id_criterion(r, "corrid", &out->by_corrid, out->corrid, text)) != 0)
		return rc;
	if ((s = record_get(r, "priority")) != NULL) {
		out->by_priority = true;
		if (priority_range(s, out->priority) != 0)
			return qparse_fail(text, 1,
			    "priority \"%.80s\": 1 to 100, or two of these with - between, is expected", s);
	}
	if ((s = record_get(r, "delivery")) != NULL) {
		out->by_delivery = true;
		if ((rc = qparse_policy(s, &nonpersistent, text)) != 0)
			return rc;
		out->persistent = !nonpersistent;
	}
	return 0;
}

/* A range ends with the whole last second. */
static bool
in_range(int64_t us, const int64_t range[2])
{
	return us >= range[0] && us <= range[1] + 999999;
}

bool
qcriteria_match(const struct qcriteria *c, const struct qmsg *m)
{
	if (c->by_time && !in_range(m->available_us != 0 ? m->available_us : m->enqueued_us, c->time))
		return false;
	if (c->by_expiry && (m->expires_us == 0 || !in_range(m->expires_us, c->expiry)))
		return false;
	if (c->by_priority && (m->priority < c->priority[0] || m->priority > c->priority[1]))
		return false;
	if (c->by_msgid && memcmp(m->msgid, c->msgid, TMMSGIDLEN) != 0)
		return false;
	if (c->by_corrid && ((m->flags & TPQCORRID) == 0 || memcmp(m->corrid, c->corrid, TMCORRIDLEN) != 0))
		return false;
	return !c->by_delivery || m->persistent == c->persistent;
}
