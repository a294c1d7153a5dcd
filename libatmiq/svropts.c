/*
 * svropts - the command line of a server: what tmboot puts first, CLOPT, and behind -- the server's own arguments.
 *
 * Parsed by hand: getopt's state is left untouched for tpsvrinit().
 */
#include <stdlib.h>
#include <string.h>

#include "servopts.h"
#include "svr.h"
#include "ulog.h"

static int
service_add(struct svropts *o, const char *name, size_t n, const char *function)
{
	void *more = realloc(o->services, (o->n_services + 1) * sizeof *o->services);

	if (more == NULL)
		return -1;
	o->services = more;
	if (n >= WIRE_NAME)
		n = WIRE_NAME - 1;	/* names are cut, not refused */
	memcpy(o->services[o->n_services].name, name, n);
	o->services[o->n_services].name[n] = '\0';
	snprintf(o->services[o->n_services].function, WIRE_NAME, "%s", function);
	o->n_services++;
	return 0;
}

/* a,b:function */
static int
services_add(struct svropts *o, const char *list)
{
	const char *colon = strchr(list, ':'), *end = colon == NULL ? list + strlen(list) : colon, *p = list;

	while (p < end) {
		size_t n = strcspn(p, ",:");

		if (n > 0 && service_add(o, p, n, colon == NULL ? "" : colon + 1) != 0)
			return -1;
		p += n;
		p += p < end;
	}
	return 0;
}

static void
line_skip(FILE *in)
{
	for (int c = fgetc(in); c != EOF && c != '\n';)
		c = fgetc(in);
}

/* @file: lists, separated by white space; # begins a remark */
static int
services_from_file(struct svropts *o, const char *path)
{
	char word[1024];
	FILE *in = fopen(path, "r");
	int rc = 0;

	if (in == NULL) {
		ulog("LIBTUX_CAT:5080: ERROR: server options: cannot read the service list -s @%s: %m", path);
		return -1;
	}
	while (rc == 0 && fscanf(in, "%1023s", word) == 1)
		if (*word == '#')
			line_skip(in);
		else
			rc = services_add(o, word);
	fclose(in);
	return rc;
}

/* Values that are none are no reason not to start. */
static void
nice_set(struct svropts *o, const char *value)
{
	char *end;
	long v = strtol(value, &end, 10);

	if (end == value || *end != '\0' || v < -100 || v > 100)
		ulog("LIBTUX_CAT:5255: WARN: server options: -n %s: not a change of priority; it is ignored", value);
	else
		o->nice = (int)v;
}

static void
lock_set(struct svropts *o, const char *value)
{
	if (strcmp(value, "t") == 0 || strcmp(value, "d") == 0 || strcmp(value, "p") == 0)
		o->lock = true;
	else
		ulog("LIBTUX_CAT:5256: WARN: server options: -l %s: t, d and p can be locked; it is ignored", value);
}

static int
option(struct svropts *o, char letter, char *value)
{
	switch (letter) {
	case 'A':
		o->all = true;
		return 0;
	case 's':
		return *value == '@' ? services_from_file(o, value + 1) : services_add(o, value);
	case 'o':
		o->outfile = value;
		return 0;
	case 'e':
		o->errfile = value;
		return 0;
	case 'r':
		o->report = true;
		return 0;
	case 'h':
		o->hangup = true;
		return 0;
	case 'l':
		lock_set(o, value);
		return 0;
	case 'n':
		nice_set(o, value);
		return 0;
	case 'v':
		o->list = true;
		return 0;
	case 'g':
		o->grpno = strtol(value, NULL, 10);
		return 0;
	case 'i':
		o->srvid = strtol(value, NULL, 10);
		return 0;
	case 'u':
		o->node = value;
		return 0;
	case 'U':
		o->ulogpfx = value;
		return 0;
	case 'C': case 'm': case 'p': case 't': case 'P': case 'S': case 'R': case 'G':
		return 0;		/* accepted; nothing to do for us */
	default:
		return -1;
	}
}

int
svropts_parse(int argc, char **argv, struct svropts *o)
{
	int i = 1;

	memset(o, 0, sizeof *o);
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		char *p = argv[i];

		if (*p++ != '-' || *p == '\0') {
			ulog("LIBTUX_CAT:5081: ERROR: server options: \"%s\" is no option; the server's own go behind "
			     "--",
			    argv[i]);
			return -1;
		}
		for (; *p != '\0'; p++) {
			const char *known = *p != ':' && *p != '+' ? strchr(SERVOPTS, *p) : NULL;
			bool value = known != NULL && known[1] == ':';
			char none[] = "", *v = none;

			if (value && (v = p[1] != '\0' ? p + 1 : argv[++i]) == NULL) {
				ulog("LIBTUX_CAT:5082: ERROR: server options: -%c needs a value", *p);
				return -1;
			}
			if (option(o, *p, v) != 0) {
				ulog("LIBTUX_CAT:5083: ERROR: server options: -%c %s cannot be used", *p, v);
				return -1;
			}
			if (value)
				break;
		}
	}
	if ((o->argv = calloc((size_t)argc + 1, sizeof *o->argv)) == NULL)
		return -1;
	o->argv[o->argc++] = argv[0];
	for (i++; i < argc; i++)
		o->argv[o->argc++] = argv[i];
	return 0;
}
