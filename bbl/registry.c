#include "bb.h"
#include "registry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "proc.h"
#include "ulog.h"

#define POINTER sizeof(void *)	/* the lists hold pointers, so that a row stays where it is */

#define TO(s) (1u << (s))
static const struct { const char *name; unsigned next; } states[] = {
	[SERVER_STARTING] = { "starting", TO(SERVER_READY) | TO(SERVER_STOPPING) | TO(SERVER_DOWN) },
	[SERVER_READY]    = { "ready",    TO(SERVER_STOPPING) | TO(SERVER_DOWN) },
	[SERVER_STOPPING] = { "stopping", 0 },
	[SERVER_DOWN]     = { "down",     TO(SERVER_STARTING) | TO(SERVER_STOPPING) },
};

void	/* The only place that assigns s->state, but for the birth of a row. */
server_enter(struct server *s, enum server_state next)
{
	assert(states[s->state].next & TO(next));
	ulog_debug("server %s/%ld: %s -> %s", s->group, s->srvid, states[s->state].name, states[next].name);
	s->state = next;
	s->since_us = clock_mono_us();
	s->due_us = LINK_FOREVER;
}

bool
server_is_tms(const struct server *s)
{
	return s->conf == NULL;
}

void
registry_open(struct registry *r, const struct ubb *ubb)
{
	const struct ubb_machine *m = ubb_machine_here(ubb);

	memset(r, 0, sizeof *r);
	r->ubb = ubb;
	r->max_accessers = m != NULL && m->maxaccessers > 0 ? m->maxaccessers : ubb->res.maxaccessers;
	r->next_client = 1;
}

static void
server_free(struct server *s)
{
	free(s->program);
	free(s->clopt);
	free(s->rqaddr);
	free(s->endpoint);
	free(s->offers);
	args_free(&s->env);
	while (s->waiters != NULL) {
		struct waiter *next = s->waiters->next;

		free(s->waiters);
		s->waiters = next;
	}
	free(s);
}

void
registry_close(struct registry *r)
{
	for (size_t i = 0; i < r->n_servers; i++)
		server_free(r->servers[i]);
	for (size_t i = 0; i < r->n_clients; i++)
		free(r->clients[i]);
	free(r->servers);
	free(r->clients);
	memset(r, 0, sizeof *r);
}

struct server *
registry_find(const struct registry *r, const char *group, long srvid)
{
	for (size_t i = 0; i < r->n_servers; i++)
		if (r->servers[i]->srvid == srvid && strcmp(r->servers[i]->group, group) == 0)
			return r->servers[i];
	return NULL;
}

static bool
is_administrator(const struct client *c)
{
	return strcmp(c->cltname, "tmadmin") == 0;
}

/* Servers and clients attached; BBL, the TMS it plays and administrators need no place. */
static size_t
accessers(const struct registry *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_servers; i++)
		n += !server_is_tms(r->servers[i]);
	for (size_t i = 0; i < r->n_clients; i++)
		n += !is_administrator(r->clients[i]);
	return n;
}

static int	/* May this row be?  Nothing is taken yet. */
registry_may_add(const struct registry *r, const char *group, long srvid, const struct ubb_server *conf, char *why,
    size_t size)
{
	if (ubb_group_by_name(r->ubb, group) == NULL) {
		snprintf(why, size, "group %s is not in section GROUPS", group);
		return TPENOENT;
	}
	if (conf == NULL && srvid < REG_TMS_FIRST) {
		snprintf(why, size, "server %ld of group %s is not in section SERVERS", srvid, group);
		return TPENOENT;
	}
	if ((long)r->n_servers + 1 >= r->ubb->res.maxservers) {	/* BBL is one of them */
		snprintf(why, size, "MAXSERVERS %ld is reached, server %ld of group %s finds no place",
		    r->ubb->res.maxservers, srvid, group);
		return TPELIMIT;
	}
	if (conf != NULL && (long)accessers(r) >= r->max_accessers) {
		snprintf(why, size, "MAXACCESSERS %ld is reached, server %ld of group %s finds no place",
		    r->max_accessers, srvid, group);
		return TPELIMIT;
	}
	return 0;
}

int
registry_add(struct registry *r, const char *group, long srvid, struct server **out, char *why, size_t why_size)
{
	const struct ubb_server *conf = srvid < REG_TMS_FIRST ? ubb_server_by_id(r->ubb, group, srvid) : NULL;
	struct server *s, **grown;
	int rc;

	*out = NULL;
	if (conf != NULL && (long)accessers(r) >= r->max_accessers)
		registry_sweep_clients(r);
	if ((rc = registry_may_add(r, group, srvid, conf, why, why_size)) != 0)
		return rc;
	snprintf(why, why_size, "out of memory");
	if ((grown = realloc(r->servers, (r->n_servers + 1) * POINTER)) == NULL)
		return TPEOS;
	r->servers = grown;
	if ((s = calloc(1, sizeof *s)) == NULL)
		return TPEOS;
	snprintf(s->group, sizeof s->group, "%s", group);
	s->grpno = ubb_group_by_name(r->ubb, group)->grpno;
	s->srvid = srvid;
	s->conf = conf;
	s->state = SERVER_STARTING;
	s->pidfd = s->why_fd = s->go_fd = -1;
	s->since_us = clock_mono_us();
	s->due_us = LINK_FOREVER;
	s->program = strdup(conf != NULL ? conf->aout : ubb_group_by_name(r->ubb, group)->tmsname);
	s->clopt = strdup(conf != NULL ? conf->clopt : "-A");
	s->rqaddr = strdup(conf != NULL ? conf->rqaddr : "");
	s->endpoint = strdup("");
	if (s->program == NULL || s->clopt == NULL || s->rqaddr == NULL || s->endpoint == NULL) {
		server_free(s);
		return TPEOS;
	}
	r->servers[r->n_servers++] = *out = s;
	return 0;
}

void
registry_remove(struct registry *r, struct server *s)
{
	registry_forget_offers(r, s);
	for (size_t i = 0; i < r->n_servers; i++)
		if (r->servers[i] == s) {
			memmove(&r->servers[i], &r->servers[i + 1], (r->n_servers - i - 1) * POINTER);
			r->n_servers--;
			break;
		}
	server_free(s);
}

static struct offer *
offer_find(const struct server *s, const char *service)
{
	for (size_t i = 0; i < s->n_offers; i++)
		if (strcmp(s->offers[i].service, service) == 0)
			return &s->offers[i];
	return NULL;
}

int
registry_advertise(struct registry *r, struct server *s, const char *service, const char *function)
{
	struct offer *o = offer_find(s, service);

	if (o != NULL && o->fresh)
		return strcmp(o->function, function) == 0 ? 0 : TPEMATCH;
	if (o != NULL) {
		snprintf(o->function, sizeof o->function, "%s", function);
		o->fresh = true;
		return 0;
	}
	if ((long)r->n_offers >= r->ubb->res.maxservices)
		return TPELIMIT;
	if ((o = realloc(s->offers, (s->n_offers + 1) * sizeof *o)) == NULL)
		return TPEOS;
	s->offers = o;
	o = &s->offers[s->n_offers++];
	memset(o, 0, sizeof *o);
	snprintf(o->service, sizeof o->service, "%s", service);
	snprintf(o->function, sizeof o->function, "%s", function);
	o->fresh = true;
	r->n_offers++;
	return 0;
}

static void
offer_remove(struct registry *r, struct server *s, struct offer *o)
{
	memmove(o, o + 1, (size_t)(s->offers + s->n_offers - (o + 1)) * sizeof *o);
	s->n_offers--;
	r->n_offers--;
}

int
registry_unadvertise(struct registry *r, struct server *s, const char *service)
{
	struct offer *o = offer_find(s, service);

	if (o == NULL || !o->fresh)
		return TPENOENT;
	offer_remove(r, s, o);
	return 0;
}

void
server_offers_stale(struct server *s)
{
	for (size_t i = 0; i < s->n_offers; i++)
		s->offers[i].fresh = false;
}

void
registry_drop_stale_offers(struct registry *r, struct server *s)
{
	for (size_t i = s->n_offers; i-- > 0;)
		if (!s->offers[i].fresh)
			offer_remove(r, s, &s->offers[i]);
}

void
registry_forget_offers(struct registry *r, struct server *s)
{
	r->n_offers -= s->n_offers;
	s->n_offers = 0;
}

static int
resolve_add(const struct registry *r, const struct server *s, const char *service, struct document *out)
{
	const struct ubb_service *v = ubb_service_find(r->ubb, service, s->group);
	struct record *rec = document_add(out);
	struct ubb_set set;
	bool shared = s->conf != NULL && ubb_set_of(r->ubb, s->conf, &set);

	if (rec == NULL)
		return TPEOS;
	return record_set(rec, "endpoint", s->endpoint) != 0 ||
	    record_set(rec, "group", s->group) != 0 ||
	    record_setf(rec, "grpno", "%ld", s->grpno) != 0 ||
	    record_setf(rec, "srvid", "%ld", shared ? 0 : s->srvid) != 0 ||
	    record_setf(rec, "load", "%ld", v != NULL ? v->load : 50) != 0 ||
	    record_setf(rec, "prio", "%ld", v != NULL ? v->prio : 50) != 0 ||
	    record_setf(rec, "trantime", "%ld", v != NULL ? v->trantime : 30) != 0 ||
	    record_set(rec, "autotran", v != NULL && v->autotran ? "Y" : "N") != 0 ||
	    record_set(rec, "buftype", v != NULL && v->buftype[0] != '\0' ? v->buftype : "ALL") != 0 ||
	    record_set(rec, "routing", v != NULL ? v->routing : "") != 0 ||
	    record_setf(rec, "blocktime", "%ld", v != NULL ? v->blocktime : 0) != 0 ? TPEOS : 0;
}

static bool	/* It will offer the service as soon as it sees that its owner is gone. */
stands_by_for(const struct server *s, const char *service)
{
	for (size_t i = 0; i < s->n_offers; i++)
		if (strncmp(s->offers[i].service, BB_STANDBY, sizeof BB_STANDBY - 1) == 0 &&
		    strcmp(s->offers[i].service + sizeof BB_STANDBY - 1, service) == 0)
			return true;
	return false;
}

static bool	/* A set of servers that share a queue has one endpoint, and is one to its callers. */
is_among(const struct document *d, const char *endpoint)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(record_get(&d->rec[i], "endpoint"), endpoint) == 0)
			return true;
	return false;
}

int
registry_set_offers(const struct registry *r, const char *group, const char *rqaddr, const char *service)
{
	for (size_t i = 0; i < r->n_servers; i++) {
		const struct server *s = r->servers[i];

		if (strcmp(s->group, group) == 0 && strcmp(s->rqaddr, rqaddr) == 0 &&
		    (*service == '\0' || (s->state != SERVER_STOPPING && offer_find(s, service) != NULL)))
			return 0;
	}
	return TPENOENT;
}

int
registry_resolve(const struct registry *r, const char *service, struct document *out)
{
	bool coming = false;
	int rc = 0;

	for (size_t i = 0; i < r->n_servers && rc == 0; i++) {
		const struct server *s = r->servers[i];

		if (s->state == SERVER_STOPPING || s->suspender != 0 || (s->hung && !s->conf->restart) || server_is_tms(s))
			continue;
		if (offer_find(s, service) == NULL) {
			coming = coming || stands_by_for(s, service);
			continue;
		}
		if (s->state == SERVER_READY && !s->hung && s->endpoint[0] != '\0')
			rc = is_among(out, s->endpoint) ? 0 : resolve_add(r, s, service, out);
		else
			coming = true;
	}
	if (rc != 0)
		return rc;
	return out->n > 0 || coming ? 0 : TPENOENT;
}

int
registry_join(struct registry *r, const char *usrname, const char *cltname, pid_t pid, struct client **out)
{
	struct client *c, **grown;

	*out = NULL;
	if ((long)accessers(r) >= r->max_accessers)
		registry_sweep_clients(r);
	if ((long)accessers(r) >= r->max_accessers && strcmp(cltname, "tmadmin") != 0)
		return TPENOENT;
	if ((grown = realloc(r->clients, (r->n_clients + 1) * POINTER)) == NULL)
		return TPEOS;
	r->clients = grown;
	if ((c = calloc(1, sizeof *c)) == NULL)
		return TPEOS;
	c->id[0] = clock_now_us() / 1000000;
	c->id[1] = r->next_client++;
	c->id[2] = pid;
	snprintf(c->usrname, sizeof c->usrname, "%s", usrname);
	snprintf(c->cltname, sizeof c->cltname, "%s", cltname);
	c->pid = pid;
	c->start_time = proc_start_time(pid);
	c->since_us = clock_mono_us();
	r->clients[r->n_clients++] = *out = c;
	return 0;
}

static void
client_remove(struct registry *r, size_t i)
{
	free(r->clients[i]);
	r->clients[i] = r->clients[--r->n_clients];
}

void
registry_leave(struct registry *r, int64_t id1, pid_t pid)
{
	for (size_t i = 0; i < r->n_clients; i++)
		if (r->clients[i]->id[1] == id1 && r->clients[i]->pid == pid) {
			client_remove(r, i);
			return;
		}
}

size_t
registry_sweep_clients(struct registry *r)
{
	size_t left = 0;

	for (size_t i = 0; i < r->n_clients;) {
		if (!proc_is(r->clients[i]->pid, r->clients[i]->start_time)) {
			client_remove(r, i);
			continue;
		}
		left += !is_administrator(r->clients[i]);
		i++;
	}
	return left;
}
