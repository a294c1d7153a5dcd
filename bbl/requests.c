/*
 * The operations that BBL answers: one function each, found by name in the table at the end.  An operation fills `a`
 * and returns true, or returns false: the answer comes later, from the supervisor or a look.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bbl.h"
#include "clock.h"
#include "proc.h"
#include "sanity.h"
#include "supervisor.h"
#include "ulog.h"

struct ask {			/* one request under way */
	const struct link_peer *peer;
	uint64_t reqid;
	const struct record *args;
};
struct answer { int status; char text[1200]; struct document doc; };

static const char *
arg(const struct ask *q, const char *key)
{
	const char *v = record_get(q->args, key);

	return v != NULL ? v : "";
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct answer *a, int status, const char *fmt, ...)
{
	va_list ap;

	a->status = status;
	va_start(ap, fmt);
	vsnprintf(a->text, sizeof a->text, fmt, ap);
	va_end(ap);
}

void
bbl_answer(struct bbl *b, const struct link_peer *to, uint64_t reqid, int status, const char *text,
    const struct document *doc)
{
	struct wire_adminreply reply = { .reqid = reqid, .status = status };
	struct wr w = { 0 };

	if (text != NULL && *text != '\0')
		reply.text = strdup(text);
	if (doc != NULL)
		reply.doc = *doc;
	wire_adminreply_encode(&w, &reply);
	if (wr_ok(&w))
		(void)link_server_send(b->link, to, w.p, w.len, NULL);	/* who is gone asks no more */
	wr_free(&w);
	free(reply.text);
}

static struct record *
answer_record(struct answer *a)
{
	struct record *r = document_add(&a->doc);

	if (r == NULL)
		refuse(a, TPEOS, "BBL is out of memory");
	return r;
}

/* The row that the request speaks for: by name, and by pid where one is given.  NULL: refused. */
static struct server *
server_of(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = registry_find(&b->reg, arg(q, "group"), record_long(q->args, "srvid", 0));
	long pid = record_long(q->args, "pid", 0);

	if (s == NULL || (pid != 0 && pid != (long)s->pid)) {
		refuse(a, TPENOENT, "server %ld of group %s, process %ld, is not known", record_long(q->args, "srvid", 0),
		    arg(q, "group"), pid);
		return NULL;
	}
	if (pid != 0)
		sanity_heard(s);
	return s;
}

/* --- being known --- */

static int
field_set(char **field, const char *value)
{
	char *copy;

	if (*value == '\0')
		return 0;
	if ((copy = strdup(value)) == NULL)
		return -1;
	free(*field);
	*field = copy;
	return 0;
}

static bool	/* The row for a process that registers: its own, one that waits for a restart, or a new one. */
register_row(struct bbl *b, const struct ask *q, struct answer *a, struct server **out)
{
	const char *group = arg(q, "group");
	long srvid = record_long(q->args, "srvid", 0);
	pid_t pid = (pid_t)record_long(q->args, "pid", 0);
	struct server *s = registry_find(&b->reg, group, srvid);

	*out = s;
	if (s != NULL && s->pid == pid)
		return true;
	if (s != NULL && s->state != SERVER_DOWN) {
		refuse(a, TPEMATCH, "CMDTUX_CAT:821: INFO: Duplicate server: %ld of group %s runs as process %ld", srvid, group,
		    (long)s->pid);
		return false;
	}
	if (s == NULL && (a->status = registry_add(&b->reg, group, srvid, &s, a->text, sizeof a->text)) != 0)
		return false;
	a->text[0] = '\0';
	if (s->state == SERVER_DOWN)
		server_enter(s, SERVER_STARTING);
	s->pid = pid;
	s->generation++;
	if (supervisor_watch(b, s) != 0) {
		refuse(a, TPEINVAL, "process %ld is not there", (long)pid);
		registry_remove(&b->reg, s);
		return false;
	}
	*out = s;
	return true;
}

static void
register_offers(struct bbl *b, const struct ask *q, struct answer *a, struct server *s)
{
	char key[32];

	server_offers_stale(s);
	for (int i = 0;; i++) {
		const char *service, *function;

		snprintf(key, sizeof key, "service.%d", i);
		if ((service = record_get(q->args, key)) == NULL && i > 0)
			break;		/* counting may begin at 0 or at 1 */
		snprintf(key, sizeof key, "function.%d", i);
		function = arg(q, key);
		if (service != NULL && registry_advertise(&b->reg, s, service, *function != '\0' ? function : service) == TPELIMIT)
			refuse(a, TPELIMIT, "MAXSERVICES %ld is reached, service %s finds no place", b->app.ubb->res.maxservices,
			    service);
	}
}

static bool
op_register(struct bbl *b, const struct ask *q, struct answer *a)
{
	const char *program = strrchr(arg(q, "program"), '/');
	struct server *s;

	if (!register_row(b, q, a, &s))
		return true;
	if (field_set(&s->program, program != NULL ? program + 1 : arg(q, "program")) != 0 ||
	    field_set(&s->clopt, arg(q, "clopt")) != 0 || field_set(&s->endpoint, arg(q, "endpoint")) != 0 ||
	    field_set(&s->rqaddr, arg(q, "rqaddr")) != 0) {
		refuse(a, TPEOS, "BBL is out of memory");
		return true;
	}
	s->peer = *q->peer;
	s->has_peer = true;
	sanity_heard(s);
	register_offers(b, q, a, s);
	if (s->state == SERVER_STARTING && s->was_ready)
		supervisor_ready(b, s);
	else if (s->state == SERVER_READY)
		registry_drop_stale_offers(&b->reg, s);
	else if (s->state == SERVER_STOPPING)
		supervisor_send_stop(b, s);
	supervisor_save(b);
	return true;
}

static bool
op_ready(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);

	if (s != NULL)
		supervisor_ready(b, s);
	return true;
}

static bool
op_advertise(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);
	const char *service = arg(q, "service"), *function = arg(q, "function");

	if (s == NULL)
		return true;
	if (*service == '\0' || strlen(service) >= WIRE_NAME || strlen(function) >= WIRE_NAME)
		refuse(a, TPEINVAL, "service and function names have 1 to %d bytes", WIRE_NAME - 1);
	else if ((a->status = registry_advertise(&b->reg, s, service, *function != '\0' ? function : service)) == TPELIMIT)
		refuse(a, TPELIMIT, "MAXSERVICES %ld is reached, service %s finds no place", b->app.ubb->res.maxservices, service);
	else if (a->status == 0)
		supervisor_save(b);
	return true;
}

static bool
op_unadvertise(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);

	if (s != NULL && (a->status = registry_unadvertise(&b->reg, s, arg(q, "service"))) == 0)
		supervisor_save(b);
	return true;
}

/* Counters of single services: service.N with done.N, where the server keeps them. */
static void
heartbeat_services(struct server *s, const struct ask *q)
{
	char key[32];

	for (int i = 0;; i++) {
		const char *service;

		snprintf(key, sizeof key, "service.%d", i);
		if ((service = record_get(q->args, key)) == NULL && i > 0)
			return;
		snprintf(key, sizeof key, "done.%d", i);
		for (size_t k = 0; k < s->n_offers && service != NULL; k++)
			if (strcmp(s->offers[k].service, service) == 0)
				s->offers[k].done = (uint64_t)record_long(q->args, key, 0);
	}
}

static bool
op_heartbeat(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);

	if (s == NULL)
		return true;
	if (!s->has_peer) {	/* known from the state file alone: its services and endpoint are wanted */
		refuse(a, TPENOENT, "register first");
		return true;
	}
	s->peer = *q->peer;
	s->done = (uint64_t)record_long(q->args, "done", 0);
	s->load = (uint64_t)record_long(q->args, "load", 0);
	snprintf(s->current, sizeof s->current, "%s", arg(q, "current"));
	s->reported = (uint64_t)record_long(q->args, "report", 0);
	heartbeat_services(s, q);
	return true;
}

static bool
op_end(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);

	if (s != NULL) {
		s->wanted_end = true;
		registry_forget_offers(&b->reg, s);
		supervisor_save(b);
	}
	return true;
}

/* --- asking --- */

static bool
op_ping(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct record *r = answer_record(a);

	(void)q;
	if (r != NULL && (record_setf(r, "pid", "%ld", (long)getpid()) != 0 ||
	    record_set(r, "tuxconfig", b->app.tuxconfig) != 0 || record_set(r, "version", ATMIQ_VERSION) != 0))
		refuse(a, TPEOS, "BBL is out of memory");
	return true;
}

static bool
op_resolve(struct bbl *b, const struct ask *q, struct answer *a)
{
	a->status = registry_resolve(&b->reg, arg(q, "service"), &a->doc);
	if (a->status == TPENOENT)
		refuse(a, TPENOENT, "no server offers service %s", arg(q, "service"));
	return true;
}

static bool
op_set_offers(struct bbl *b, const struct ask *q, struct answer *a)
{
	a->status = registry_set_offers(&b->reg, arg(q, "group"), arg(q, "rqaddr"), arg(q, "service"));
	return true;
}

static bool
op_join(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct client *c;
	struct record *r;
	char key[16];

	if (*arg(q, "tuxconfig") != '\0' && strcmp(arg(q, "tuxconfig"), b->app.tuxconfig) != 0) {
		refuse(a, TPENOENT, "IPCKEY %ld is in use by the application of %s", b->app.ubb->res.ipckey,
		    b->app.tuxconfig);
		return true;
	}
	a->status = registry_join(&b->reg, arg(q, "usrname"), arg(q, "cltname"), (pid_t)record_long(q->args, "pid", 0), &c);
	if (a->status != 0) {
		refuse(a, a->status, "MAXACCESSERS %ld is reached, client %s finds no place", b->reg.max_accessers,
		    arg(q, "cltname"));
		return true;
	}
	if ((r = answer_record(a)) == NULL)
		return true;
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof key, "clientid%d", i);
		if (record_setf(r, key, "%lld", (long long)c->id[i]) != 0)
			refuse(a, TPEOS, "BBL is out of memory");
	}
	return true;
}

static bool
op_leave(struct bbl *b, const struct ask *q, struct answer *a)
{
	(void)a;
	registry_leave(&b->reg, record_long(q->args, "clientid1", 0), (pid_t)record_long(q->args, "pid", 0));
	return true;
}

/* --- life and death --- */

static bool
start_tms(struct bbl *b, const struct ubb_group *g, long srvid, struct answer *a)
{
	struct server *s;
	struct record *r;

	if (g->tmsname[0] == '\0') {
		refuse(a, TPENOENT, "group %s has no TMSNAME", g->name);
	} else if (strcmp(g->tmsname, "TMS_QM") != 0 && strcmp(g->tmsname, "TMS") != 0) {
		refuse(a, TPENOENT, "TMSNAME %s of group %s: TMS_QM and TMS are known; a transaction manager server of one's own "
		    "cannot be run", g->tmsname, g->name);
	} else if (tms_check(g, a->text, sizeof a->text) != 0) {
		a->status = TPERMERR;
	} else if ((a->status = registry_add(&b->reg, g->name, srvid, &s, a->text, sizeof a->text)) == 0) {
		a->text[0] = '\0';
		s->pid = getpid();
		s->generation = 1;
		(void)registry_advertise(&b->reg, s, "TMS", "TMS");
		server_enter(s, SERVER_READY);
		supervisor_save(b);
		if ((r = answer_record(a)) != NULL)
			(void)record_setf(r, "pid", "%ld", (long)getpid());
	}
	if (a->status != 0)
		ulog("CMDTUX_CAT:1685: ERROR: Application initialization failure: %s of group %s: %s", g->tmsname, g->name, a->text);
	return true;
}

static int
env_take(struct server *s, const struct ask *q)
{
	args_free(&s->env);
	for (size_t i = 0; i < q->args->n; i++)
		if (strncmp(q->args->kv[i].key, "env.", 4) == 0 && strchr(q->args->kv[i].value, '=') != NULL &&
		    args_add(&s->env, q->args->kv[i].value) != 0)
			return -1;
	return 0;
}

static bool
start_server(struct bbl *b, const struct ask *q, struct answer *a, struct server *s)
{
	bool wait = strcmp(arg(q, "wait"), "n") != 0;
	struct record *r;
	pid_t pid;

	if (env_take(s, q) != 0 || (wait && supervisor_wait_for(s, q->peer, q->reqid) != 0)) {
		refuse(a, TPEOS, "BBL is out of memory");
		return true;
	}
	/* A refusal has answered whoever waits. */
	if (supervisor_start(b, s, a->text, sizeof a->text) != 0) {
		a->status = TPESYSTEM;
		return !wait;
	}
	a->text[0] = '\0';
	pid = s->pid;
	if (!wait && (r = answer_record(a)) != NULL)
		(void)record_setf(r, "pid", "%ld", (long)pid);
	return !wait;
}

/*
 * It runs.  Where its first start is under way, which an interrupted tmboot left, that is waited for: after a boot that
 * went well the servers are there.
 */
static bool
start_second(const struct ask *q, struct answer *a, struct server *s)
{
	bool wait = strcmp(arg(q, "wait"), "n") != 0 && s->state == SERVER_STARTING && s->generation <= 1 &&
	    s->due_us != LINK_FOREVER;

	if (wait && supervisor_wait_for(s, q->peer, q->reqid) == 0) {
		s->waiters->second = true;
		return false;
	}
	refuse(a, TPEMATCH, DUPLICATE_SERVER);
	return true;
}

static bool
op_start(struct bbl *b, const struct ask *q, struct answer *a)
{
	const char *group = arg(q, "group");
	long srvid = record_long(q->args, "srvid", 0);
	const struct ubb_group *g = ubb_group_by_name(b->app.ubb, group);
	struct server *s = registry_find(&b->reg, group, srvid);

	if (g == NULL) {
		refuse(a, TPENOENT, "group %s is not in section GROUPS", group);
	} else if (s != NULL && s->state == SERVER_STOPPING) {
		refuse(a, TPESYSTEM, "server %ld of group %s, process %ld, is still being shut down", srvid, group, (long)s->pid);
	} else if (s != NULL && s->state != SERVER_DOWN) {
		return start_second(q, a, s);
	} else if (srvid >= REG_TMS_FIRST) {
		return start_tms(b, g, srvid, a);
	} else if (s != NULL || (a->status = registry_add(&b->reg, group, srvid, &s, a->text, sizeof a->text)) == 0) {
		return start_server(b, q, a, s);
	}
	return true;
}

static bool
op_shutdown(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);
	const char *sig = arg(q, "signal");
	int signo = strcmp(sig, "TERM") == 0 ? SIGTERM : strcmp(sig, "KILL") == 0 ? SIGKILL : 0;

	if (s == NULL)
		return true;
	while (s->waiters != NULL && s->state != SERVER_STOPPING) {	/* who waits for its start waits in vain */
		struct waiter *w = s->waiters;

		s->waiters = w->next;
		bbl_answer(b, &w->peer, w->reqid, TPESYSTEM, "shut down before it was ready", NULL);
		free(w);
	}
	if (supervisor_wait_for(s, q->peer, q->reqid) != 0) {
		refuse(a, TPEOS, "BBL is out of memory");
		return true;
	}
	supervisor_stop(b, s, record_long(q->args, "delay", 0), signo);
	return false;
}

static bool
op_suspend(struct bbl *b, const struct ask *q, struct answer *a)
{
	struct server *s = server_of(b, q, a);

	if (s != NULL)
		suspend_server(b, s, (pid_t)record_long(q->args, "by", 0));
	return true;
}

static bool
op_shutdown_bbl(struct bbl *b, const struct ask *q, struct answer *a)
{
	bool force = strcmp(arg(q, "force"), "y") == 0;
	size_t clients = registry_sweep_clients(&b->reg);

	if (b->reg.n_servers > 0)
		refuse(a, TPEPROTO, "%zu servers still run, the first is %s (%s/%ld)", b->reg.n_servers,
		    b->reg.servers[0]->program, b->reg.servers[0]->group, b->reg.servers[0]->srvid);
	else if (clients > 0 && !force)
		refuse(a, TPEPROTO, "%zu clients are still attached, the first is process %ld; -c shuts down all the same", clients,
		    (long)b->reg.clients[0]->pid);
	else
		b->end = b->end_application = true;
	return true;
}

/* --- looking --- */

#define ROWS(name) \
	static bool \
	op_##name(struct bbl *b, const struct ask *q, struct answer *a) \
	{ \
		(void)q; \
		if (rows_##name(b, &a->doc) != 0) \
			refuse(a, TPEOS, "BBL is out of memory"); \
		return true; \
	}
#define LOOK(name) \
	static bool \
	op_##name(struct bbl *b, const struct ask *q, struct answer *a) \
	{ \
		if (look_begin(b, q->peer, q->reqid, rows_##name) == 0) \
			return false; \
		refuse(a, TPEOS, "BBL is out of memory"); \
		return true; \
	}
LOOK(psr)
LOOK(psc)
ROWS(pclt)
ROWS(pq)
ROWS(bbs)

static const struct {
	const char *op;
	bool (*run)(struct bbl *, const struct ask *, struct answer *);
} ops[] = {
	{ "heartbeat", op_heartbeat }, { "resolve", op_resolve }, { "join", op_join }, { "leave", op_leave },
	{ "register", op_register }, { "ready", op_ready }, { "end", op_end },
	{ "advertise", op_advertise }, { "unadvertise", op_unadvertise },
	{ "start", op_start }, { "suspend", op_suspend }, { "shutdown", op_shutdown },
	{ "shutdown-bbl", op_shutdown_bbl },
	{ "ping", op_ping }, { "set-offers", op_set_offers }, { "psr", op_psr }, { "psc", op_psc }, { "pclt", op_pclt }, { "pq", op_pq }, { "bbs", op_bbs },
};

static void
request_run(struct bbl *b, const struct link_peer *peer, const struct wire_admin *m)
{
	static const struct record none;
	struct ask q = { .peer = peer, .reqid = m->reqid, .args = m->doc.n > 0 ? &m->doc.rec[0] : &none };
	struct answer *a = calloc(1, sizeof *a);
	bool now = true;
	size_t i;

	if (a == NULL) {
		bbl_answer(b, peer, m->reqid, TPEOS, "BBL is out of memory", NULL);
		return;
	}
	for (i = 0; i < sizeof ops / sizeof *ops && strcmp(ops[i].op, m->op) != 0; i++)
		;
	if (i < sizeof ops / sizeof *ops)
		now = ops[i].run(b, &q, a);
	else
		refuse(a, TPEINVAL, "BBL knows no operation %s", m->op);
	if (now)
		bbl_answer(b, peer, m->reqid, a->status, a->text, &a->doc);
	document_free(&a->doc);
	free(a);
	b->done += strcmp(m->op, "heartbeat") != 0;
}

void
bbl_handle(struct bbl *b, const struct link_msg *m)
{
	struct wire_admin request;
	char peer[64];

	if (wire_admin_decode(m->head, m->head_len, &request) != 0) {
		if (++b->strange <= 10 || b->strange % 1000 == 0) {
			link_msg_peer_name(m, peer, sizeof peer);
			ulog("CMDTUX_CAT:1696: WARN: BBL was sent %zu bytes that are no request of version %d by %s; "
			     "ignored (%llu so far)", m->head_len, WIRE_VERSION, peer, (unsigned long long)b->strange);
		}
		return;
	}
	request_run(b, &m->peer, &request);
	document_free(&request.doc);
}
