#include "boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
refuse(char *why, size_t size, const char *group, const char *text, const char *value)
{
	snprintf(why, size, "group %s: %s%s%s", group, text, value[0] != '\0' ? ": " : "", value);
	return -1;
}

static int
group_find(const struct options *o, struct boot *b, char *why, size_t size)
{
	for (size_t i = 0; i < b->ubb->n_groups; i++)
		if (b->ubb->groups[i].grpno == o->grpno)
			b->group = &b->ubb->groups[i];
	if (b->group == NULL) {
		snprintf(why, size, "%s has no group with GRPNO %ld (option -g)", b->tuxconfig, o->grpno);
		return -1;
	}
	if (strcmp(b->group->tmsname, "TMS_QM") != 0)
		return refuse(why, size, b->group->name, "TMQUEUE needs a group with TMSNAME=TMS_QM; found TMSNAME",
		    b->group->tmsname[0] != '\0' ? b->group->tmsname : "not given");
	if (openinfo_split(b->group->openinfo, b->device, sizeof b->device, b->space, sizeof b->space) != 0)
		return refuse(why, size, b->group->name, "OPENINFO must be \"TUXEDO/QM:<device>:<queue space>\"; found OPENINFO",
		    b->group->openinfo[0] != '\0' ? b->group->openinfo : "not given");
	return 0;
}

/* Transactions may have joined under the name of another group, when the space was that one's. */
static void
groups_of_space(struct boot *b)
{
	char device[sizeof b->device], space[sizeof b->space];

	for (size_t i = 0; i < b->ubb->n_groups && b->groups.n < WIRE_MAX_GROUPS; i++) {
		const struct ubb_group *g = &b->ubb->groups[i];
		if (g == b->group || (openinfo_split(g->openinfo, device, sizeof device, space, sizeof space) == 0 &&
		    strcmp(device, b->device) == 0 && strcmp(space, b->space) == 0))
			snprintf(b->groups.name[b->groups.n++], WIRE_GROUP, "%s", g->name);
	}
}

static int
endpoints_find(const struct options *o, struct boot *b, char *why, size_t size)
{
	const char *tuxdir = b->machine != NULL ? b->machine->tuxdir : "";
	int n = snprintf(b->bbl_program, sizeof b->bbl_program, "%s/bin/BBL", tuxdir);

	if (tuxdir[0] == '\0' || n < 0 || (size_t)n >= sizeof b->bbl_program)
		b->bbl_program[0] = '\0';
	if (ubb_bbl_endpoint(b->ubb, b->bbl_endpoint, sizeof b->bbl_endpoint) != 0 ||
	    ubb_server_endpoint(b->ubb, o->grpno, o->srvid, b->endpoint, sizeof b->endpoint) != 0) {
		snprintf(why, size, "the run directory %s is too long for a socket address", b->ubb->rundir);
		return -1;
	}
	return 0;
}

int
boot_find(const struct options *o, struct boot *b, char *why, size_t size)
{
	const char *tuxconfig = getenv("TUXCONFIG");
	char *line = NULL;

	memset(b, 0, sizeof *b);
	if (tuxconfig == NULL || strlen(tuxconfig) >= sizeof b->tuxconfig) {
		snprintf(why, size, "TUXCONFIG is %s in the environment", tuxconfig == NULL ? "not set" : "too long");
		return -1;
	}
	memcpy(b->tuxconfig, tuxconfig, strlen(tuxconfig) + 1);
	if (o->grpno < 0 || o->srvid < 0) {
		snprintf(why, size, "options -g and -i, group number and server id, are missing: TMQUEUE is started by tmboot");
		return -1;
	}
	if (tuxconfig_read(tuxconfig, &b->ubb, &line) != 0) {
		snprintf(why, size, "%s", line != NULL ? line : tuxconfig);
		free(line);
		return -1;
	}
	b->machine = ubb_machine_here(b->ubb);
	b->perm = (unsigned)b->ubb->res.perm;
	if (group_find(o, b, why, size) != 0 || endpoints_find(o, b, why, size) != 0)
		return -1;
	groups_of_space(b);
	b->server = ubb_server_by_id(b->ubb, b->group->name, o->srvid);
	return 0;
}

void
boot_done(struct boot *b)
{
	ubb_free(b->ubb);
	b->ubb = NULL;
}
