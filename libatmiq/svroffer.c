/*
 * svroffer - the services of this server: tpadvertise, tpunadvertise, and what CLOPT offers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "svr.h"
#include "ulog.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of the list: for moments */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;	/* while BBL is told: who changes it; taken before lock */

struct offer *
offer_find(const char *name, void (**call)(TPSVCINFO *))
{
	struct offer *o;

	pthread_mutex_lock(&lock);
	for (o = svr.offers; o != NULL; o = o->next)
		if (o->offered && strcmp(o->name, name) == 0)
			break;
	if (o != NULL)
		*call = o->call;
	pthread_mutex_unlock(&lock);
	return o;
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

static struct offer *	/* in the list, perhaps since it was offered before; with what SERVICES says of it */
offer_new(const char *name)
{
	const struct ubb_service *conf;
	struct offer *o;

	for (o = svr.offers; o != NULL && strcmp(o->name, name) != 0; o = o->next)
		;
	if (o != NULL || (o = calloc(1, sizeof *o)) == NULL)
		return o;
	conf = ubb_service_find(svr.app->ubb, name, svr.group->name);
	snprintf(o->name, sizeof o->name, "%s", name);
	o->load = conf == NULL ? 50 : (unsigned)conf->load;
	o->autotran = conf != NULL && conf->autotran;
	o->trantime = conf == NULL ? 30 : conf->trantime;
	o->svctimeout = conf == NULL ? 0 : conf->svctimeout;
	o->next = svr.offers;
	svr.offers = o;
	return o;
}

static void
offer_set(struct offer *o, void (*call)(TPSVCINFO *))	/* NULL: no longer */
{
	pthread_mutex_lock(&lock);
	if (call != NULL)
		o->call = call;
	o->offered = call != NULL;
	pthread_mutex_unlock(&lock);
}

static int
add(const char *name, void (*call)(TPSVCINFO *))
{
	void (*now)(TPSVCINFO *);
	struct offer *o;
	int rc;

	if (offer_find(name, &now) != NULL)
		return now == call ? 0 : TPEMATCH;
	pthread_mutex_lock(&lock);
	o = offer_new(name);
	pthread_mutex_unlock(&lock);
	if (o == NULL)
		return TPEOS;
	rc = bb_agent_advertise(svr.agent, name, function_name(call, name));
	if (rc != 0)
		return rc > 0 && rc < TPMAXVAL ? rc : TPESYSTEM;
	offer_set(o, call);
	set_offer(name, true);
	return 0;
}

int
offer_add(const char *name, void (*call)(TPSVCINFO *))
{
	char cut[WIRE_NAME];
	int err;

	snprintf(cut, sizeof cut, "%s", name);
	pthread_mutex_lock(&changing);
	err = add(cut, call);
	pthread_mutex_unlock(&changing);
	return err;
}

int
offer_remove(const char *name)
{
	void (*call)(TPSVCINFO *);
	char cut[WIRE_NAME];
	struct offer *o;
	int err = TPENOENT;

	snprintf(cut, sizeof cut, "%s", name);
	pthread_mutex_lock(&changing);
	if ((o = offer_find(cut, &call)) != NULL) {
		offer_set(o, NULL);
		set_offer(cut, false);
		err = bb_agent_unadvertise(svr.agent, cut) == 0 ? 0 : TPESYSTEM;
	}
	pthread_mutex_unlock(&changing);
	return err;
}

/* BBL tells nobody of us any more; who knows us already is still served. */
void
offers_withdraw(void)
{
	const struct offer *o;

	pthread_mutex_lock(&changing);
	for (o = svr.offers; o != NULL; o = o->next)
		if (o->offered)
			bb_agent_unadvertise(svr.agent, o->name);
	pthread_mutex_unlock(&changing);
}

void
offers_each(void (*tell)(const char *service, bool yes))
{
	const struct offer *o;

	pthread_mutex_lock(&lock);
	for (o = svr.offers; o != NULL; o = o->next)
		if (o->offered)
			tell(o->name, true);
	pthread_mutex_unlock(&lock);
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
