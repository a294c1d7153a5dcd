#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "places.h"
#include "servopts.h"
#include "ubb.h"

bool
check_names_services(int argc, char **argv)
{
	bool found = false;
	int c;

	opterr = 0;
	optind = 0;
	while ((c = getopt(argc, argv, SERVOPTS)) != -1)
		found |= c == 's';
	return found;
}

static bool	/* Another server, or another copy of this one, reads the same request queue. */
is_shared(const struct ubb *u, const struct ubb_server *s)
{
	int readers = 0;

	if (s->rqaddr[0] == '\0')
		return false;
	for (size_t i = 0; i < u->n_servers; i++)
		if (strcmp(u->servers[i].rqaddr, s->rqaddr) == 0)
			readers += u->servers[i].max > 1 ? 2 : 1;
	return readers > 1;
}

static int
check_server(const struct ubb *u, const char *group, long srvid, char *why, size_t size)
{
	const struct ubb_group *g = ubb_group_by_name(u, group);
	const struct ubb_server *s = ubb_server_by_id(u, group, srvid);
	char device[512], space[32], *full = NULL;
	int place;

	if (g == NULL || strcmp(g->tmsname, "TMS_QM") != 0)
		snprintf(why, size, "group %s: TMQFORWARD needs a group with TMSNAME=TMS_QM; found \"%s\"", group,
		    g != NULL ? g->tmsname : "");
	else if (openinfo_split(g->openinfo, device, sizeof device, space, sizeof space) != 0)
		snprintf(why, size, "group %s: OPENINFO must be \"TUXEDO/QM:<device>:<queue space>\"; found \"%s\"", group, g->openinfo);
	else if (places_take(device, space, PLACES_SERVER, &place, &full) != 0) {	/* until we end */
		snprintf(why, size, "group %s: %s", group, full != NULL ? full : "no memory");
		free(full);
	} else if (s != NULL && s->replyq)
		snprintf(why, size, "group %s, server %ld: TMQFORWARD wants REPLYQ=N", group, srvid);
	else if (s != NULL && is_shared(u, s))
		snprintf(why, size, "group %s, server %ld: TMQFORWARD may not share the request queue RQADDR=\"%s\" with other servers",
		    group, srvid, s->rqaddr);
	else
		return 0;
	return -1;
}

int
check_place(const char *tuxconfig, const char *group, long srvid, char *why, size_t why_size)
{
	struct ubb *u;
	char *line = NULL;
	int rc;

	if (tuxconfig == NULL || tuxconfig_read(tuxconfig, &u, &line) != 0) {
		snprintf(why, why_size, "%s", line != NULL ? line : "TUXCONFIG is not set");
		free(line);
		return -1;
	}
	rc = check_server(u, group, srvid, why, why_size);
	ubb_free(u);
	return rc;
}
