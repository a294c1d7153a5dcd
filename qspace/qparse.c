#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device.h"
#include "qparse.h"

#define MAX_LIMIT 999999999999L

int
qparse_fail(char **text, int code, const char *fmt, ...)
{
	va_list ap;

	if (text == NULL || *text != NULL)
		return code;
	va_start(ap, fmt);
	if (vasprintf(text, fmt, ap) < 0)
		*text = NULL;
	va_end(ap);
	return code;
}

int
qparse_long(const char *s, long min, long max, long *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(s, &end, 10);
	if (end == s || *end != '\0' || errno != 0 || *s == ' ' || v < min || v > max)
		return -1;
	*out = v;
	return 0;
}

/* Digits in front, and what follows them in *rest.  False when there is no digit, or no end of them. */
static bool
leading_number(const char *s, long *out, const char **rest)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtol(s, &end, 10);
	*rest = end;
	return errno == 0 && *out <= MAX_LIMIT;
}

int
qparse_bytes(const char *s, int64_t *bytes)
{
	const char *rest;
	long v;

	if (!leading_number(s, &v, &rest) || strlen(rest) > 1 || (*rest != '\0' && strchr("bB", *rest) == NULL))
		return -1;
	*bytes = *rest == 'b' ? (v + DEVICE_PAGE - 1) / DEVICE_PAGE * DEVICE_PAGE : (int64_t)v * DEVICE_PAGE;
	return 0;
}

/* --- names --- */

static bool
printable(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

int
qparse_space_name(const char *s, char **text)
{
	if (*s == '\0')
		return qparse_fail(text, 1, "the queue space name is empty");
	if (strlen(s) > QSPACE_NAME_MAX)
		return qparse_fail(text, 1, "queue space name \"%.60s\" is longer than %d characters", s,
		    QSPACE_NAME_MAX);
	if (!printable(s) || strpbrk(s, " /:;") != NULL || *s == '.')
		return qparse_fail(text, 1,
		    "queue space name \"%s\": blanks, / : ; and a dot in front are not allowed", s);
	return 0;
}

int
qparse_queue_name(const char *s, char **text)
{
	if (*s == '\0')
		return qparse_fail(text, 1, "the queue name is empty");
	if (strlen(s) > TMQNAMELEN)
		return qparse_fail(text, 1, "queue name \"%.40s...\" is longer than %d characters", s, TMQNAMELEN);
	if (!printable(s))
		return qparse_fail(text, 1, "the queue name has unprintable characters");
	return 0;
}

/* --- order --- */

static const char *const criterion_names[] = {
	[QC_PRIORITY] = "priority", [QC_TIME] = "time", [QC_EXPIRATION] = "expiration", [QC_FIFO] = "fifo",
	    [QC_LIFO] = "lifo",
};

/* The whole word, or its first four letters and more ("prio", "expir"). */
static int
criterion(const char *word, size_t n)
{
	for (int i = QC_PRIORITY; i <= QC_LIFO; i++)
		if (n >= 4 && n <= strlen(criterion_names[i]) && strncasecmp(word, criterion_names[i], n) == 0)
			return i;
	return QC_NONE;
}

int
qparse_order(const char *s, uint8_t order[4], char **text)
{
	unsigned seen = 0;
	int n = 0, last = QC_NONE;

	memset(order, 0, 4);
	for (const char *p = s;; p++) {
		size_t len = strcspn(p, ",");
		last = criterion(p, len);
		if (last == QC_NONE)
			return qparse_fail(text, 1,
			    "queue order \"%.80s\": priority, time, expiration, fifo and lifo are known", s);
		if ((seen & 1u << last) != 0)
			return qparse_fail(text, 1, "queue order \"%.80s\": %s is there twice", s,
			    criterion_names[last]);
		seen |= 1u << last;
		order[n++] = (uint8_t)last;
		p += len;
		if (*p == '\0')
			break;
		if (last == QC_FIFO || last == QC_LIFO)
			return qparse_fail(text, 1, "queue order \"%.80s\": nothing can follow %s", s,
			    criterion_names[last]);
	}
	if (last != QC_FIFO && last != QC_LIFO)
		order[n] = QC_FIFO;
	return 0;
}

void
qformat_order(const uint8_t order[4], char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < 4 && order[i] != QC_NONE && order[i] <= QC_LIFO && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i > 0 ? "," : "", criterion_names[order[i]]);
}

int
qparse_out_of_order(const char *s, bool *top, bool *msgid, char **text)
{
	bool none = false;

	*top = *msgid = false;
	for (const char *p = s;; p++) {
		size_t len = strcspn(p, ",");
		bool *what = len == 3 && strncasecmp(p, "top", 3) == 0 ? top : len == 5 &&
		    strncasecmp(p, "msgid", 5) == 0 ? msgid :
		    len == 4 && strncasecmp(p, "none", 4) == 0 ? &none : NULL;
		if (what == NULL)
			return qparse_fail(text, 1,
			    "out-of-order enqueuing \"%.80s\": none, top, msgid and top,msgid are known", s);
		*what = true;
		p += len;
		if (*p == '\0')
			break;
	}
	if (none && (*top || *msgid))
		return qparse_fail(text, 1, "out-of-order enqueuing \"%.80s\": none excludes the others", s);
	return 0;
}

/* --- numbers of a queue --- */

int
qparse_retry_delay(const char *s, long *out, char **text)
{
	if (qparse_long(s, 0, MAX_LIMIT, out) != 0)
		return qparse_fail(text, 1201, "retry delay \"%.80s\" is not a number of seconds", s);
	return 0;
}

static int
parse_high(const char *s, const char *units, struct threshold *t, char **text)
{
	const char *unit = s;

	if (!leading_number(s, &t->high, &unit)) {
		size_t n = strlen(s);
		if (n == 0 || strchr(units, s[n - 1]) == NULL)
			return qparse_fail(text, 1205, "high limit \"%.80s\": no unit; one of %s is expected", s,
			    units);
		return qparse_fail(text, 1206, "high limit \"%.80s\" is not a number", s);
	}
	if (strlen(unit) > 1 && strchr(units, unit[strlen(unit) - 1]) != NULL)
		return qparse_fail(text, 1206, "high limit \"%.80s\" is not a number", s);
	if (strlen(unit) != 1 || strchr(units, *unit) == NULL)
		return qparse_fail(text, 1205, "high limit \"%.80s\": unit is none of %s", s, units);
	t->unit = *unit;
	if (t->high == 0 || (t->unit == '%' && t->high > 100))
		return qparse_fail(text, 1207, "high limit \"%.80s\": must be above 0%s", s,
		    t->unit == '%' ? " and at most 100%" : "");
	return 0;
}

static int
parse_low(const char *s, struct threshold *t, char **text)
{
	const char *unit;

	if (!leading_number(s, &t->low, &unit))
		return qparse_fail(text, 1206, "low limit \"%.80s\" is not a number", s);
	if (*unit != '\0' && (unit[0] != t->unit || unit[1] != '\0'))
		return qparse_fail(text, 1210, "low limit \"%.80s\": its unit is not that of the high limit, %c", s,
		    t->unit);
	if (t->low >= t->high)
		return qparse_fail(text, 1212, "low limit %ld%c is not below the high limit %ld%c", t->low, t->unit,
		    t->high, t->unit);
	return 0;
}

int
qparse_threshold(const char *high, const char *low, const char *cmd, const char *units, struct threshold *out,
    char **text)
{
	int rc;

	memset(out, 0, sizeof *out);
	if ((rc = parse_high(high, units, out, text)) != 0 || (rc = parse_low(low, out, text)) != 0)
		return rc;
	if (strlen(cmd) >= sizeof out->cmd)
		return qparse_fail(text, 1215, "capacity command is %zu characters long; %zu are allowed",
		    strlen(cmd), sizeof out->cmd - 1);
	snprintf(out->cmd, sizeof out->cmd, "%s", cmd);
	return 0;
}

int
qparse_np_threshold(const char *s, struct threshold *out, char **text)
{
	char high[32], low[32];
	size_t h = strcspn(s, ","), l = s[h] == '\0' ? 0 : strcspn(s + h + 1, ",");

	if (s[h] == '\0' || s[h + 1 + l] == '\0' || h >= sizeof high || l >= sizeof low)
		return qparse_fail(text, 1,
		    "non-persistent limits \"%.80s\": high,low,command is expected, in one argument", s);
	snprintf(high, sizeof high, "%.*s", (int)h, s);
	snprintf(low, sizeof low, "%.*s", (int)l, s + h + 1);
	return qparse_threshold(high, low, s + h + 1 + l + 1, "bB%", out, text);
}

void
qformat_limit(long value, char unit, char *out, size_t size)
{
	snprintf(out, size, "%ld%c", value, unit != '\0' ? unit : '%');
}

int
qparse_expiration(const char *s, int64_t *seconds, char **text)
{
	long v;

	*seconds = -1;
	if (strcasecmp(s, "none") == 0)
		return 0;
	if (*s != '+' || s[1] < '0' || s[1] > '9' || qparse_long(s + 1, 0, MAX_LIMIT, &v) != 0)
		return qparse_fail(text, 1, "expiration time \"%.80s\": +seconds or none is expected", s);
	*seconds = v;
	return 0;
}

int
qparse_policy(const char *s, bool *nonpersistent, char **text)
{
	*nonpersistent = strcasecmp(s, "nonpersist") == 0;
	if (!*nonpersistent && strcasecmp(s, "persist") != 0)
		return qparse_fail(text, 1, "delivery mode \"%.80s\": persist or nonpersist is expected", s);
	return 0;
}
