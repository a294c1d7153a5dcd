/*
 * TMRQ - the request queue that the servers of an MSSQ set share.  Started by BBL.
 *
 *	TMRQ -g GRPNO -i ID [-U ulogpfx]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "serve.h"
#include "ulog.h"

struct options { long grpno, id; };

static int
options_read(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ .grpno = -1, .id = -1 };
	while ((c = getopt(argc, argv, "g:i:U:")) != -1)
		switch (c) {
		case 'g':
			o->grpno = strtol(optarg, NULL, 10);
			break;
		case 'i':
			o->id = strtol(optarg, NULL, 10);
			break;
		case 'U':
			ulog_prefix(optarg);
			break;
		default:
			return -1;
		}
	return optind == argc && o->grpno >= 0 && o->id > 0 ? 0 : -1;
}

static int
set_find(const struct options *o, struct ubb **u, struct ubb_set *set, char *bbl, size_t size)
{
	const char *tuxconfig = getenv("TUXCONFIG");
	char *why = NULL;

	if (tuxconfig == NULL || tuxconfig_read(tuxconfig, u, &why) != 0) {
		ulog("CMDTUX_CAT:1726: ERROR: TMRQ cannot start: %s", why != NULL ? why : "TUXCONFIG is not set in the environment");
		free(why);
		return -1;
	}
	if (ubb_set_find(*u, o->grpno, o->id, set) && ubb_bbl_endpoint(*u, bbl, size) == 0)
		return 0;
	ulog("CMDTUX_CAT:1726: ERROR: TMRQ cannot start: %s has no servers of group number %ld that share the RQADDR of server %ld", tuxconfig,
	    o->grpno, o->id);
	return -1;
}

static void	/* A descriptor each: as many callers as the system allows. */
files_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		ulog_debug("%ld files were refused: %m", (long)files.rlim_max);
}

int
main(int argc, char **argv)
{
	static struct serve s;
	struct ubb *u = NULL;
	struct ubb_set set;
	struct options o;
	char bbl[300];
	int rc = 1;

	ulog_program("TMRQ");
	if (options_read(argc, argv, &o) != 0) {
		fprintf(stderr, "usage: TMRQ -g grpno -i id [-U ulogpfx]\n");
		return 1;
	}
	files_raise();
	if (set_find(&o, &u, &set, bbl, sizeof bbl) == 0) {
		if ((rc = serve_open(&s, u, &set, bbl)) == 0)
			while (!s.end)
				serve_turn(&s, LINK_FOREVER);
		serve_close(&s);
	}
	ubb_free(u);
	return rc == 0 ? 0 : 1;
}
