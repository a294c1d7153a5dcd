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

bool
ubb_set_serves(const struct ubb_server *s)
{
	static const char *const names[] = { "TMQUEUE", "TMQFORWARD", "TMQAMQP" };
	const char *slash = strrchr(s->aout, '/'), *name = slash == NULL ? s->aout : slash + 1;
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return false;
	return *s->rqaddr != '\0';
}

bool
ubb_set_of(const struct ubb *u, const struct ubb_server *s, struct ubb_set *out)
{
	long servers = 0;
	size_t i;

	if (!ubb_set_serves(s))
		return false;
	*out = (struct ubb_set){ ubb_group_by_name(u, s->srvgrp), s->rqaddr, s->srvid, s->rqperm };
	for (i = 0; i < u->n_servers; i++) {
		const struct ubb_server *v = &u->servers[i];

		if (strcmp(v->rqaddr, s->rqaddr) != 0 || strcmp(v->srvgrp, s->srvgrp) != 0 || !ubb_set_serves(v))
			continue;
		servers += v->max > 1 ? v->max : 1;
		if (v->srvid <= out->id) {
			out->id = v->srvid;
			out->rqperm = v->rqperm;
		}
	}
	return servers > 1 && out->group != NULL;
}

bool
ubb_set_find(const struct ubb *u, long grpno, long id, struct ubb_set *out)
{
	size_t i;

	for (i = 0; i < u->n_servers; i++)
		if (u->servers[i].srvid == id && ubb_set_of(u, &u->servers[i], out) && out->group->grpno == grpno && out->id == id)
			return true;
	return false;
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
