#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void __attribute__((format(printf, 2, 3)))
warn(struct options *o, const char *fmt, ...)
{
	va_list ap;

	if (o->n_warnings == sizeof o->warning / sizeof o->warning[0])
		return;
	va_start(ap, fmt);
	vsnprintf(o->warning[o->n_warnings++], sizeof o->warning[0], fmt, ap);
	va_end(ap);
}

static int
queues_add(struct options *o, const char *list, char *why, size_t size)
{
	while (*list != '\0') {
		size_t len = strcspn(list, ", ");

		if (len >= FORWARD_NAME || o->n_queues == FORWARD_MAX_QUEUES) {
			snprintf(why, size, "-q %.*s: %s", (int)(len > 200 ? 200 : len), list,
			    len >= FORWARD_NAME ? "a queue name has at most 127 characters" : "at most 256 queues");
			return -1;
		}
		if (len > 0) {
			memcpy(o->queue[o->n_queues], list, len);
			o->queue[o->n_queues++][len] = '\0';
		}
		list += len;
		list += *list != '\0';
	}
	return 0;
}

/* A number, such as of seconds: 0; 1: none at all; 2: too large. */
static int
number(const char *text, long *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || v < 0)
		return 1;
	if (errno == ERANGE || v > 2147483647L)
		return 2;
	*out = v;
	return 0;
}

static void
workers_set(struct options *o, const char *value)
{
	long n;

	if (number(value, &n) == 0 && n >= 1 && n <= FORWARD_MAX_WORKERS)
		o->workers = (size_t)n;
	else
		warn(o, "QM_CAT:1680: WARN: -w %.60s: not a number from 1 to %d; 1 is used", value, FORWARD_MAX_WORKERS);
}

static void
option_set(struct options *o, int c, const char *value)
{
	switch (c) {
	case 't':
		switch (number(value, &o->trantime_s)) {
		case 1: warn(o, "QM_CAT:1602: WARN: -t %.60s: not a number of seconds; %d is used", value, FORWARD_TRANTIME); break;
		case 2: warn(o, "QM_CAT:1603: WARN: -t %.60s: more than 2147483647 seconds; %d is used", value, FORWARD_TRANTIME); break;
		}
		break;
	case 'i':
		if (number(value, &o->idle_s) != 0)
			warn(o, "QM_CAT:1604: WARN: -i %.60s: not a number of seconds; %d is used", value, FORWARD_IDLE);
		break;
	case 'f':
		o->noreply = true;
		if (number(value, &o->pause_s) != 0)
			warn(o, "QM_CAT:1622: WARN: -f %.60s: not a number of seconds; 0 is used", value);
		break;
	case 'b':
		if (number(value, &o->blocktime_s) != 0)
			warn(o, "QM_CAT:1622: WARN: -b %.60s: not a number of seconds; it is ignored", value);
		break;
	case 'e': o->exit_when_empty = true; break;
	case 'd': o->delete_failed = true; break;
	case 'n': o->notran = true; break;
	case 'w': workers_set(o, value); break;
	case 'o': o->ordered = true; break;
	case 'r': o->burn = true; break;
	default: break;
	}
}

int
options_parse(int argc, char **argv, struct options *o, char *why, size_t why_size)
{
	int c;

	memset(o, 0, sizeof *o);
	o->trantime_s = FORWARD_TRANTIME;
	o->idle_s = FORWARD_IDLE;
	o->workers = 1;
	opterr = 0;
	optind = 0;	/* begin anew: servopts were scanned before */
	while ((c = getopt(argc, argv, "+:q:t:i:ednf:b:w:or")) != -1) {
		if (c == 'q') {
			if (queues_add(o, optarg, why, why_size) != 0)
				return -1;
		} else if (c == ':')
			option_set(o, optopt, "");
		else if (c == '?')
			warn(o, "QM_CAT:1622: WARN: unknown option -%c is ignored", optopt);
		else
			option_set(o, c, optarg);
	}
	for (; optind < argc; optind++)		/* as after -q A, B: B would never be served, and nobody would know */
		warn(o, "QM_CAT:1622: WARN: argument %.60s is ignored", argv[optind]);
	if (o->n_queues == 0) {
		snprintf(why, why_size, "option -q, the queues to forward from, is missing");
		return -1;
	}
	o->ordered &= o->workers > 1;	/* one after the other anyway */
	return 0;
}
