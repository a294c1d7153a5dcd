#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "servopts.h"
#include "ulog.h"

static int
name_add(struct options *o, const char *name, size_t len, char *why, size_t why_size)
{
	if (len == 0)
		return 0;
	if (len >= WIRE_NAME || o->n_names == TMQUEUE_MAX_NAMES) {
		snprintf(why, why_size, "-s %.*s: %s", (int)len, name,
		    len >= WIRE_NAME ? "a service name has at most 127 characters" : "at most 64 service names");
		return -1;
	}
	for (size_t i = 0; i < o->n_names; i++)
		if (strlen(o->name[i]) == len && memcmp(o->name[i], name, len) == 0)
			return 0;
	memcpy(o->name[o->n_names], name, len);
	o->name[o->n_names++][len] = '\0';
	return 0;
}

static int	/* service[,service...][:function] */
names_add(struct options *o, const char *list, char *why, size_t why_size)
{
	const char *function = strchr(list, ':');
	const char *end = function ? function : list + strlen(list);

	for (const char *p = list; p < end;) {
		size_t len = strcspn(p, ",:");

		/* A service without a function is served by the function of its own name. */
		if (len != 0 && (function ? strcmp(function + 1, TMQUEUE_FUNCTION) != 0 :
		    len != strlen(TMQUEUE_FUNCTION) || memcmp(p, TMQUEUE_FUNCTION, len) != 0)) {
			snprintf(why, why_size, "-s %s: there is no function %s here; write -s %.*s:" TMQUEUE_FUNCTION, list,
			    function ? function + 1 : list, (int)(end - list), list);
			return -1;
		}
		if (name_add(o, p, len, why, why_size) != 0)
			return -1;
		p += len + (p[len] == ',');
	}
	return 0;
}

static void
timeout_set(struct options *o, const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || v < 1 || v > 2147483647L)
		ulog("QM_CAT:1605: WARN: TMQUEUE -t %s: not a number of seconds from 1 to 2147483647; %d is used", text,
		    TMQUEUE_TIMEOUT);
	else
		o->timeout_s = v;
}

int
options_parse(int argc, char **argv, struct options *o, char *why, size_t why_size)
{
	bool all = false;
	int c;

	memset(o, 0, sizeof *o);
	o->grpno = o->srvid = -1;
	o->timeout_s = TMQUEUE_TIMEOUT;
	opterr = 0;
	optind = 0;	/* begin anew, and forget what an earlier caller scanned */
	while ((c = getopt(argc, argv, SERVOPTS)) != -1) {
		switch (c) {
		case 'g': o->grpno = strtol(optarg, NULL, 10); break;
		case 'i': o->srvid = strtol(optarg, NULL, 10); break;
		case 'U': o->ulogpfx = optarg; break;
		case 'o': o->outfile = optarg; break;
		case 'e': o->errfile = optarg; break;
		case 'n': o->nice = (int)strtol(optarg, NULL, 10); break;
		case 'h': o->hangup = true; break;
		case 'v': o->list = true; break;
		case 'A': all = true; break;
		case 's':
			if (names_add(o, optarg, why, why_size) != 0)
				return -1;
			break;
		case ':':
			snprintf(why, why_size, "option -%c wants a value", optopt);
			return -1;
		case '?':
			ulog("QM_CAT:1606: WARN: TMQUEUE: unknown option -%c before -- is ignored", optopt);
			break;
		default:
			break;		/* accepted without effect: old files have them */
		}
	}
	if ((all || o->n_names == 0) &&
	    name_add(o, TMQUEUE_FUNCTION, strlen(TMQUEUE_FUNCTION), why, why_size) != 0)
		return -1;
	if (optind < 2 || strcmp(argv[optind - 1], "--") != 0)
		return 0;	/* no --: nothing of our own */
	argc -= optind - 1;
	argv += optind - 1;
	optind = 0;
	while ((c = getopt(argc, argv, "+:t:")) != -1) {
		switch (c) {
		case 't':
			timeout_set(o, optarg);
			break;
		case ':':
			timeout_set(o, "");
			break;
		default:
			ulog("QM_CAT:1606: WARN: TMQUEUE: unknown option -%c after -- is ignored", optopt);
			break;
		}
	}
	for (; optind < argc; optind++)
		ulog("QM_CAT:1606: WARN: TMQUEUE: argument %.60s after -- is ignored", argv[optind]);
	return 0;
}
