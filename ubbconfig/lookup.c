#include <string.h>

#include <sys/utsname.h>

#include "ubb.h"

const struct ubb_machine *
ubb_machine_by_lmid(const struct ubb *u, const char *lmid)
{
	size_t i;

	for (i = 0; i < u->n_machines; i++)
		if (strcmp(u->machines[i].lmid, lmid) == 0)
			return &u->machines[i];
	return NULL;
}

const struct ubb_machine *
ubb_machine_here(const struct ubb *u)
{
	const struct ubb_machine *master;
	struct utsname host;
	size_t i;

	if (u->n_machines == 0)
		return NULL;
	if (uname(&host) == 0)
		for (i = 0; i < u->n_machines; i++)
			if (strcmp(u->machines[i].address, host.nodename) == 0)
				return &u->machines[i];
	master = ubb_machine_by_lmid(u, u->res.master[0]);
	return master != NULL ? master : &u->machines[0];
}

const struct ubb_group *
ubb_group_by_name(const struct ubb *u, const char *name)
{
	size_t i;

	for (i = 0; i < u->n_groups; i++)
		if (strcmp(u->groups[i].name, name) == 0)
			return &u->groups[i];
	return NULL;
}

const struct ubb_server *
ubb_server_by_id(const struct ubb *u, const char *srvgrp, long srvid)
{
	size_t i;

	for (i = 0; i < u->n_servers; i++) {
		const struct ubb_server *s = &u->servers[i];

		if (srvid >= s->srvid && srvid < s->srvid + s->max && strcmp(s->srvgrp, srvgrp) == 0)
			return s;
	}
	return NULL;
}

const struct ubb_service *
ubb_service_find(const struct ubb *u, const char *name, const char *srvgrp)
{
	const struct ubb_service *general = NULL;
	size_t i;

	for (i = 0; i < u->n_services; i++) {
		const struct ubb_service *s = &u->services[i];

		if (strcmp(s->name, name) != 0)
			continue;
		if (srvgrp != NULL && *s->srvgrp && strcmp(s->srvgrp, srvgrp) == 0)
			return s;
		if (*s->srvgrp == '\0')
			general = s;
	}
	return general;
}
