/*
 * svroffer - the services of this server: tpadvertise, tpunadvertise, and what CLOPT offers.
 */
#include <stdlib.h>
#include <string.h>

#include "svr.h"
#include "ulog.h"

struct offer *
offer_find(const char *name)
{
	struct offer *o;

	for (o = svr.offers; o != NULL; o = o->next)
		if (o->offered && strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

/* The name that buildserver knew the function by: psc shows it. */
static const char *
function_name(void (*call)(TPSVCINFO *), const char *otherwise)
{
	const struct tmsvc *s;

	for (s = svr.built == NULL ? NULL : svr.built->services; s != NULL && s->call != NULL; s++)
		if (s->call == call && s->function != NULL)
			return s->function;
	return otherwise;
}

static struct offer *
offer_new(const char *name, void (*call)(TPSVCINFO *))
{
	const struct ubb_service *conf = ubb_service_find(svr.app->ubb, name, svr.group->name);
	struct offer *o;

	for (o = svr.offers; o != NULL && strcmp(o->name, name) != 0; o = o->next)
		;
	if (o == NULL) {
		if ((o = calloc(1, sizeof *o)) == NULL)
			return NULL;
		snprintf(o->name, sizeof o->name, "%s", name);
		o->next = svr.offers;
		svr.offers = o;
	}
	o->call = call;
	o->load = conf == NULL ? 50 : (unsigned)conf->load;
	o->autotran = conf != NULL && conf->autotran;
	o->trantime = conf == NULL ? 30 : conf->trantime;
	return o;
}

int
offer_add(const char *name, void (*call)(TPSVCINFO *))
{
	char cut[WIRE_NAME];
	struct offer *o;
	int rc;

	snprintf(cut, sizeof cut, "%s", name);
	if ((o = offer_find(cut)) != NULL)
		return o->call == call ? 0 : TPEMATCH;
	if ((o = offer_new(cut, call)) == NULL)
		return TPEOS;
	rc = bb_agent_advertise(svr.agent, cut, function_name(call, cut));
	if (rc != 0)
		return rc > 0 && rc < TPMAXVAL ? rc : TPESYSTEM;
	o->offered = true;
	return 0;
}

int
offer_remove(const char *name)
{
	char cut[WIRE_NAME];
	struct offer *o;

	snprintf(cut, sizeof cut, "%s", name);
	if ((o = offer_find(cut)) == NULL)
		return TPENOENT;
	o->offered = false;
	return bb_agent_unadvertise(svr.agent, cut) == 0 ? 0 : TPESYSTEM;
}

/* BBL tells nobody of us any more; who knows us already is still served. */
void
offers_withdraw(void)
{
	struct offer *o;

	for (o = svr.offers; o != NULL; o = o->next)
		if (o->offered)
			bb_agent_unadvertise(svr.agent, o->name);
}

int
tpadvertise(char *svcname, void (*func)(TPSVCINFO *))
{
	int err;

	if (svcname == NULL || *svcname == '\0' || *svcname == '.' || func == NULL)
		return fail(TPEINVAL);
	if (svr.agent == NULL || !context_is_server())
		return fail(TPEPROTO);
	return (err = offer_add(svcname, func)) == 0 ? 0 : fail(err);
}

int
tpadvertisex(char *svcname, void (*func)(TPSVCINFO *), long flags)
{
	if ((flags & ~(long)(TPSINGLETON | TPSECONDARYRQ)) != 0)
		return fail(TPEINVAL);
	if (flags & TPSINGLETON)
		return fail(TPENOSINGLETON);
	if (flags & TPSECONDARYRQ)
		return fail(TPENOSECONDARYRQ);
	return tpadvertise(svcname, func);
}

int
tpunadvertise(char *svcname)
{
	int err;

	if (svcname == NULL || *svcname == '\0' || *svcname == '.')
		return fail(TPEINVAL);
	if (svr.agent == NULL || !context_is_server())
		return fail(TPEPROTO);
	return (err = offer_remove(svcname)) == 0 ? 0 : fail(err);
}
