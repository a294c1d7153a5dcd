/* What tmadmin shows, as records; tmadmin lays it out. */
#include <string.h>
#include <unistd.h>

#include "bbl.h"
#include "clock.h"
#include "slots.h"

void
server_queue_name(const struct server *s, char *buf, size_t size)
{
	if (server_is_tms(s))
		snprintf(buf, size, "%s_TMS", s->group);
	else if (s->rqaddr[0] != '\0')
		snprintf(buf, size, "%s", s->rqaddr);
	else
		snprintf(buf, size, "%05ld.%05ld", s->grpno, s->srvid);
}

static long
seconds_since(int64_t mono_us)
{
	return (long)((clock_mono_us() - mono_us) / 1000000);
}

static int
psr_bbl(const struct bbl *b, struct document *out)
{
	struct record *r = document_add(out);

	return r == NULL || record_set(r, "program", "BBL") != 0 ||
	    record_setf(r, "queue", "%ld", b->app.ubb->res.ipckey) != 0 ||
	    record_set(r, "group", b->app.machine->lmid) != 0 || record_set(r, "srvid", "0") != 0 ||
	    record_set(r, "grpno", "0") != 0 || record_setf(r, "done", "%llu", (unsigned long long)b->done) != 0 ||
	    record_setf(r, "load", "%llu", (unsigned long long)b->done * 50) != 0 || record_set(r, "current", "") != 0 ||
	    record_setf(r, "pid", "%ld", (long)getpid()) != 0 || record_set(r, "lmid", b->app.machine->lmid) != 0 ||
	    record_set(r, "generation", "1") != 0 || record_set(r, "state", "ready") != 0 ||
	    record_set(r, "clopt", "-A") != 0 ||
	    record_setf(r, "uptime", "%ld", seconds_since(b->started_us)) != 0 ? -1 : 0;
}

int
rows_psr(const struct bbl *b, struct document *out)
{
	static const char *const state[] = { [SERVER_STARTING] = "starting", [SERVER_READY] = "ready",
		[SERVER_STOPPING] = "stopping", [SERVER_DOWN] = "restarting" };
	int rc = psr_bbl(b, out);
	char queue[128];

	for (size_t i = 0; i < b->reg.n_servers && rc == 0; i++) {
		const struct server *s = b->reg.servers[i];
		struct record *r = document_add(out);

		server_queue_name(s, queue, sizeof queue);
		rc = r == NULL || record_set(r, "program", s->program) != 0 || record_set(r, "queue", queue) != 0 ||
		    record_set(r, "group", s->group) != 0 || record_setf(r, "srvid", "%ld", s->srvid) != 0 ||
		    record_setf(r, "grpno", "%ld", s->grpno) != 0 ||
		    record_setf(r, "done", "%llu", (unsigned long long)s->done) != 0 ||
		    record_setf(r, "load", "%llu", (unsigned long long)s->load) != 0 ||
		    record_set(r, "current", s->current) != 0 || record_setf(r, "pid", "%ld", (long)s->pid) != 0 ||
		    record_set(r, "lmid", b->app.machine->lmid) != 0 ||
		    record_setf(r, "generation", "%ld", s->generation) != 0 || record_set(r, "state", s->hung ? "hung" : state[s->state]) != 0 ||
		    record_set(r, "clopt", s->clopt) != 0 || record_set(r, "endpoint", s->endpoint) != 0 ||
		    record_setf(r, "uptime", "%ld", seconds_since(s->since_us)) != 0 ? -1 : 0;
	}
	return rc;
}

static int
psc_row(const struct bbl *b, const struct server *s, const struct offer *o, struct document *out)
{
	struct record *r = document_add(out);
	/* Counters of single services may be missing; with one service the server's are the same. */
	uint64_t done = o->done == 0 && s->n_offers == 1 ? s->done : o->done;
	const char *status = s->suspender != 0 ? "SUSP" : s->state == SERVER_DOWN || s->hung ? "UNAVAIL" :
	    s->state == SERVER_READY ? "AVAIL" : "SUSP";
	char queue[128];

	server_queue_name(s, queue, sizeof queue);
	return r == NULL || record_set(r, "queue", queue) != 0 || record_set(r, "service", o->service) != 0 || record_set(r, "function", o->function) != 0 ||
	    record_set(r, "program", s->program) != 0 || record_set(r, "group", s->group) != 0 ||
	    record_setf(r, "srvid", "%ld", s->srvid) != 0 || record_set(r, "lmid", b->app.machine->lmid) != 0 ||
	    record_setf(r, "done", "%llu", (unsigned long long)done) != 0 || record_set(r, "status", status) != 0 ? -1 : 0;
}

int
rows_psc(const struct bbl *b, struct document *out)
{
	int rc = 0;

	for (size_t i = 0; i < b->reg.n_servers; i++) {
		const struct server *s = b->reg.servers[i];

		for (size_t k = 0; k < s->n_offers && rc == 0; k++)
			if (strncmp(s->offers[k].service, "..", 2) != 0)
				rc = psc_row(b, s, &s->offers[k], out);
	}
	return rc;
}

int
rows_pclt(struct bbl *b, struct document *out)
{
	int rc = 0;

	registry_sweep_clients(&b->reg);
	for (size_t i = 0; i < b->reg.n_clients && rc == 0; i++) {
		const struct client *c = b->reg.clients[i];
		struct record *r = document_add(out);

		rc = r == NULL || record_set(r, "lmid", b->app.machine->lmid) != 0 ||
		    record_set(r, "usrname", c->usrname) != 0 || record_set(r, "cltname", c->cltname) != 0 ||
		    record_setf(r, "pid", "%ld", (long)c->pid) != 0 || record_set(r, "status", "IDLE") != 0 ||
		    record_setf(r, "clientid1", "%lld", (long long)c->id[1]) != 0 ||
		    record_setf(r, "time", "%ld", seconds_since(c->since_us)) != 0 ? -1 : 0;
	}
	return rc;
}

static struct record *
pq_find(struct document *d, const char *queue, const char *endpoint)
{
	for (size_t i = 0; i < d->n; i++) {
		const char *at = record_get(&d->rec[i], "endpoint");

		if (strcmp(record_get(&d->rec[i], "queue"), queue) == 0 && strcmp(at != NULL ? at : "", endpoint) == 0)
			return &d->rec[i];
	}
	return NULL;
}

/* Where the queue that this server shares with others can be asked what waits; "": its queue is its own. */
static const char *
shared_endpoint(const struct bbl *b, const struct server *s)
{
	struct ubb_set set;

	return s->conf != NULL && ubb_set_of(b->app.ubb, s->conf, &set) ? s->endpoint : "";
}

static int
pq_add(struct document *out, const char *program, const char *queue, const char *endpoint, const char *lmid)
{
	struct record *r = pq_find(out, queue, endpoint);

	if (r != NULL)
		return record_setf(r, "serving", "%ld", record_long(r, "serving", 0) + 1);
	r = document_add(out);
	return r == NULL || record_set(r, "program", program) != 0 || record_set(r, "queue", queue) != 0 ||
	    (*endpoint != '\0' && record_set(r, "endpoint", endpoint) != 0) ||
	    record_set(r, "serving", "1") != 0 || record_set(r, "lmid", lmid) != 0 ? -1 : 0;
}

/* What waits in the server's own queue, as the table of servers has it: sent to it, and not begun. */
static int
pq_waits(const struct bbl *b, const struct server *s, struct record *r)
{
	struct slots_ref ref;
	struct slots_entry e;
	unsigned long waits;

	if (b->slots == NULL || !slots_find(b->slots, s->grpno, s->srvid, 0, &ref) || !slots_read(b->slots, ref.i, &e) || e.dead)
		return 0;
	waits = e.sent > e.serving ? e.sent - e.serving : 0;
	return record_setf(r, "queued", "%lu", waits) != 0 ||
	    record_setf(r, "wkqueued", "%lu", waits == 0 ? 0 : (unsigned long)e.load * waits / e.sent) != 0 ? -1 : 0;
}

int
rows_pq(const struct bbl *b, struct document *out)
{
	const char *shared;
	char queue[128];
	int rc;

	snprintf(queue, sizeof queue, "%ld", b->app.ubb->res.ipckey);
	rc = pq_add(out, "BBL", queue, "", b->app.machine->lmid);
	for (size_t i = 0; i < b->reg.n_servers && rc == 0; i++) {
		server_queue_name(b->reg.servers[i], queue, sizeof queue);
		shared = shared_endpoint(b, b->reg.servers[i]);
		rc = pq_add(out, b->reg.servers[i]->program, queue, shared, b->app.machine->lmid);
		if (rc == 0 && *shared == '\0')
			rc = pq_waits(b, b->reg.servers[i], pq_find(out, queue, ""));
	}
	return rc;
}

int
rows_bbs(const struct bbl *b, struct document *out)
{
	struct document queues = { 0 };
	struct record *r = document_add(out);
	int rc = r == NULL || rows_pq(b, &queues) != 0 ||
	    record_setf(r, "servers", "%zu", b->reg.n_servers + 1) != 0 ||
	    record_setf(r, "services", "%zu", b->reg.n_offers) != 0 ||
	    record_setf(r, "queues", "%zu", queues.n) != 0 ||
	    record_setf(r, "groups", "%zu", b->app.ubb->n_groups) != 0 ||
	    record_setf(r, "clients", "%zu", b->reg.n_clients) != 0 ? -1 : 0;

	document_free(&queues);
	return rc;
}
