/*
 * svr - the life of a server: attach, offer, serve, withdraw, detach.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "svr.h"
#include "clock.h"
#include "ulog.h"

#define RELAYS_US 10000000LL		/* at the end: for replies that pass through us */
#define DRAIN_US 30000000LL		/* and for requests of those who know us still: each hears with his answer that we end */
#define MAX_WAIT 64
#define TURN 1000			/* so many messages are taken in before one is served */
#define IDLE_US 1000LL			/* a request that took longer to come was not there before */

struct svr svr;

static volatile sig_atomic_t term_came;	/* before there was anybody to be told */

static void
on_term(int sig)
{
	(void)sig;
	term_came = 1;
	if (svr.agent != NULL)
		bb_agent_stop_now(svr.agent);
}

static int
signals_install(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sigemptyset(&sa.sa_mask);
	sa.sa_handler = on_term;
	sa.sa_flags = SA_RESTART;
	if (sigaction(SIGTERM, &sa, NULL) != 0)
		return -1;
	sa.sa_handler = SIG_IGN;
	return sigaction(SIGPIPE, &sa, NULL) != 0 || (!svr.opt.hangup && sigaction(SIGHUP, &sa, NULL) != 0) ? -1 : 0;
}

static int
file_open(const char *path, FILE *as)
{
	if (path == NULL)
		return 0;
	if (freopen(path, "a", as) != NULL) {
		setvbuf(as, NULL, as == stderr ? _IONBF : _IOLBF, 0);	/* which stderr was, and is no more */
		return 0;
	}
	ulog("LIBTUX_CAT:5090: ERROR: cannot open %s: %m", path);
	return -1;
}

static const struct ubb_group *
group_by_number(const struct ubb *u, long grpno)
{
	size_t i;

	for (i = 0; i < u->n_groups; i++)
		if (u->groups[i].grpno == grpno)
			return &u->groups[i];
	return NULL;
}

static void
limits_set(void)
{
	if (svr.opt.nice != 0 && nice(svr.opt.nice) == -1)
		ulog("LIBTUX_CAT:5091: WARN: cannot change the priority by %d: %m", svr.opt.nice);
	if (svr.opt.lock && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		ulog("LIBTUX_CAT:5092: WARN: cannot lock the server in memory: %m");
	if (svr.conf != NULL && svr.conf->maxdispatchthreads > 1)
		ulog("LIBTUX_CAT:5093: WARN: MAXDISPATCHTHREADS=%ld: requests are served one at a time",
		    svr.conf->maxdispatchthreads);
}

/* Who we are, by number from the command line, by name from TUXCONFIG. */
static int
identity_find(void)
{
	const struct ubb *u = svr.app->ubb;

	if ((svr.group = group_by_number(u, svr.opt.grpno)) == NULL || svr.opt.srvid <= 0) {
		ulog("LIBTUX_CAT:5094: ERROR: no server of group number %ld and id %ld in TUXCONFIG %s; servers are "
		     "started by tmboot",
		    svr.opt.grpno, svr.opt.srvid, svr.app->tuxconfig);
		return -1;
	}
	svr.conf = ubb_server_by_id(u, svr.group->name, svr.opt.srvid);
	return 0;
}

static int
endpoint_bind(char *endpoint, size_t size)
{
	const struct ubb_machine *m = ubb_machine_here(svr.app->ubb);
	unsigned perm = (unsigned)(m == NULL ? svr.app->ubb->res.perm : m->perm);

	if (ubb_server_endpoint(svr.app->ubb, svr.opt.grpno, svr.opt.srvid, endpoint, size) != 0) {
		ulog("LIBTUX_CAT:5095: ERROR: the run directory of TUXCONFIG %s is too long for a socket",
		    svr.app->tuxconfig);
		return -1;
	}
	if (svr.conf != NULL && svr.conf->rqperm > 0)
		perm &= (unsigned)svr.conf->rqperm;
	if (link_server_open(endpoint, perm, &svr.link) != LINK_OK) {
		ulog("LIBTUX_CAT:5096: ERROR: cannot listen at %s: %m", endpoint);
		return -1;
	}
	return 0;
}

static int
agent_start(const char *endpoint)
{
	const struct ubb_machine *m = ubb_machine_here(svr.app->ubb);
	char bbl_program[4200] = "";
	struct bb_agent_conf conf = {
		.bbl_endpoint = svr.app->bbl, .endpoint = endpoint, .group = svr.group->name, .grpno = svr.opt.grpno,
		.srvid = svr.opt.srvid, .program = svr.conf == NULL ? svr.program : svr.conf->aout,
		.clopt = svr.conf == NULL ? "" : svr.conf->clopt, .rqaddr = svr.conf == NULL ? "" : svr.conf->rqaddr,
		.tuxconfig = svr.app->tuxconfig, .bbl_program = bbl_program
	};
	int rc;

	if (m != NULL && *m->tuxdir != '\0')
		snprintf(bbl_program, sizeof bbl_program, "%s/bin/BBL", m->tuxdir);
	if ((rc = bb_agent_start(&conf, &svr.agent)) == 0) {
		if (term_came)
			bb_agent_stop_now(svr.agent);
		return 0;
	}
	ulog("LIBTUX_CAT:5097: ERROR: cannot register group %s id %ld with BBL at %s: %s", svr.group->name,
	    svr.opt.srvid, svr.app->bbl, rc > 0 ? "refused" : "it does not answer");
	return -1;
}

static int
options_read(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	if (svr.opt.argv != NULL)
		return 0;
	snprintf(svr.program, sizeof svr.program, "%s", slash == NULL ? argv[0] : slash + 1);
	ulog_program(svr.program);
	if (proc_name == NULL)
		proc_name = svr.program;
	return svropts_parse(argc, argv, &svr.opt);
}

int
svr_attach(int argc, char **argv, bool calls)
{
	char endpoint[CONN_ENDPOINT] = "";
	int64_t cltid[4];

	if (options_read(argc, argv) != 0)
		return -1;
	if (svr.opt.ulogpfx != NULL)
		ulog_prefix(svr.opt.ulogpfx);
	if (app_get(&svr.app) != 0 || identity_find() != 0 || file_open(svr.opt.outfile, stdout) != 0 ||
	    file_open(svr.opt.errfile, stderr) != 0 || signals_install() != 0)
		return -1;
	limits_set();
	cltid[0] = 0;
	cltid[1] = svr.opt.grpno;
	cltid[2] = svr.opt.srvid;
	cltid[3] = getpid();
	if (context_serve(svr.app, cltid, &svr.ctx) != 0)
		return -1;
	if (calls && endpoint_bind(endpoint, sizeof endpoint) != 0)
		return -1;
	return agent_start(endpoint);
}

void
svr_detach(int status)
{
	struct bb_agent *agent;

	if (svr.ctx != NULL)
		context_serve_end(svr.ctx);
	svr.ctx = NULL;
	if (svr.link != NULL)
		link_server_close(svr.link);
	svr.link = NULL;
	agent = svr.agent;
	svr.agent = NULL;	/* first: BBL may send one more signal when it loses the connection */
	bb_agent_end(agent, status);
}

bool
svr_stopping(void)
{
	return svr.agent != NULL && bb_agent_stopping(svr.agent);
}

bool
svr_turns_away(void)
{
	return svr.leaving || svr_stopping() || (svr.agent != NULL && bb_agent_suspended_us(svr.agent) != 0);
}

int
svr_wake_fd(void)
{
	return svr.agent == NULL ? -1 : bb_agent_wake_fd(svr.agent);
}

/* ---- what is on offer at the start ---- */

static struct tmsvc *
built_find(const char *name, bool function)
{
	struct tmsvc *s;

	for (s = svr.built->services; s != NULL && s->call != NULL; s++)
		if ((function ? s->function : s->name) != NULL && strcmp(function ? s->function : s->name, name) == 0)
			return s;
	return NULL;
}

static int
offer_at_start(const char *name, void (*call)(TPSVCINFO *))
{
	int err = offer_add(name, call);

	if (err == 0)
		return 0;
	ulog("LIBTUX_CAT:5098: ERROR: service %s cannot be offered: %s", name, tpstrerror(err));
	return -1;
}

static int
offers_start(void)
{
	const struct tmsvc *s;
	size_t i;

	for (s = svr.built->services; svr.opt.all && s != NULL && s->call != NULL; s++)
		if (s->name != NULL && offer_at_start(s->name, s->call) != 0)
			return -1;
	for (i = 0; i < svr.opt.n_services; i++) {
		const char *name = svr.opt.services[i].name, *function = svr.opt.services[i].function;

		s = *function != '\0' ? built_find(function, true) : built_find(name, false);
		if (s == NULL && *function == '\0')
			s = built_find(name, true);
		if (s == NULL) {
			ulog("LIBTUX_CAT:5099: ERROR: -s %s%s%s: the server was not built with that %s", name,
			    *function ? ":" : "", function, *function ? "function" : "service");
			return -1;
		}
		if (offer_at_start(name, s->call) != 0)
			return -1;
	}
	return 0;
}

/* ---- the loop ---- */

static void
admin_answer(const struct link_msg *m)
{
	struct wire_admin ask = { 0 };
	struct wire_adminreply reply = { 0 };
	struct wr w = { 0 };
	char text[] = "a server answers ping alone";

	if (wire_admin_decode(m->head, m->head_len, &ask) != 0)
		return;
	reply.reqid = ask.reqid;
	if (strcmp(ask.op, "ping") != 0) {
		reply.status = TPENOENT;
		reply.text = text;
	}
	wire_adminreply_encode(&w, &reply);
	if (wr_ok(&w))
		link_server_send(svr.link, &m->peer, w.p, w.len, NULL);
	wr_free(&w);
	document_free(&ask.doc);
}

/* A queue operation sent to a service that is no queue manager. */
static void
queue_refuse(const struct link_msg *m, uint64_t reqid)
{
	struct wire_qreply reply = { .reqid = reqid, .error = TPENOENT };
	struct wr w = { 0 };

	wire_qreply_encode(&w, &reply);
	if (wr_ok(&w))
		link_server_send(svr.link, &m->peer, w.p, w.len, NULL);
	wr_free(&w);
}

static void
strange(const struct link_msg *m)
{
	if (++svr.strange <= 10 || svr.strange % 1000 == 0)
		ulog("LIBTUX_CAT:5100: WARN: dropped %zu bytes that are no request (%llu so far)", m->head_len,
		    (unsigned long long)svr.strange);
}

static void
cancelled(const struct link_msg *m)
{
	struct wire_cancel cancel;

	if (wire_cancel_decode(m->head, m->head_len, &cancel) == 0)
		requests_cancel(&m->peer, cancel.target);
}

/* Suspended, and there was a moment since when nothing waited: it came afterwards. */
static bool
came_too_late(void)
{
	int64_t since = bb_agent_suspended_us(svr.agent);

	return since != 0 && svr.busy_since_us > since;
}

/* It waits for its turn.  False: it is none, or is refused. */
static bool
call_arrived(struct request *r)
{
	int64_t came = r->m.came_us != 0 ? r->m.came_us : clock_mono_us();

	if (wire_call_decode(r->m.head, r->m.head_len, &r->call) != 0) {
		ulog("LIBTUX_CAT:5111: WARN: dropped a service request that cannot be read (%zu bytes)", r->m.head_len);
		return false;
	}
	if (came_too_late()) {
		work_refuse(r, "this server is suspended");
		return false;
	}
	r->deadline_us = r->call.timeout_ms == 0 ? LINK_FOREVER : came + (int64_t)r->call.timeout_ms * 1000;
	r->since_us = came < svr.busy_since_us ? came : svr.busy_since_us;
	requests_add(r);
	return true;
}

static bool	/* True: it waits for its turn, and is not ours any more. */
handle(struct request *r)
{
	struct link_msg *m = &r->m;
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0) {
		strange(m);
		return false;
	}
	switch (kind) {
	case WIRE_CALL:
		return call_arrived(r);
	case WIRE_ADMIN:
		admin_answer(m);
		break;
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
	case WIRE_QWAIT:
		queue_refuse(m, reqid);
		break;
	case WIRE_CANCEL:
		cancelled(m);
		break;
	default:
		strange(m);
	}
	return false;
}

/* Wait for a request, a reply to pass on, or the order to stop.  True when a request is there to be received. */
static bool
wait_for_work(int64_t deadline, int wake_fd)
{
	struct link_wait w[MAX_WAIT] = { { .server = svr.link } };
	size_t n = 1 + relay_waitables(w + 1, MAX_WAIT - 1);
	int64_t next = relay_next_us();
	int ready = link_wait(w, n, deadline < next ? deadline : next, wake_fd);

	relay_poll();
	return ready > 0 && w[0].ready;
}

/* The first message of a turn.  Without one nothing is received. */
static bool
receive_first(struct link_msg *m, int64_t deadline, int wake_fd)
{
	int64_t before = clock_mono_us(), now;

	if (relay_busy()) {
		if (!wait_for_work(deadline, wake_fd))
			return false;
		deadline = 0;
	}
	if (link_server_recv(svr.link, m, deadline, wake_fd) != LINK_OK)
		return false;
	if ((now = clock_mono_us()) - before > IDLE_US)
		svr.busy_since_us = now;
	return true;
}

/* Take in what is there, so that the most urgent of all is served next; wait for the first. */
static void
receive(int64_t deadline, int wake_fd)
{
	struct request *r = request_get();
	int n = 1;

	if (r == NULL || !receive_first(&r->m, deadline, wake_fd))
		goto done;
	do {
		if (handle(r))
			r = request_get();
		else
			link_msg_done(&r->m);
	} while (r != NULL && n++ < TURN && link_server_recv_rest(svr.link, &r->m) == LINK_OK);
done:
	if (r != NULL)
		request_put(r);
}

static bool	/* False: there was none. */
serve_one(int64_t deadline, int wake_fd)
{
	struct request *r;

	receive(requests_wait() ? 0 : deadline, wake_fd);
	if ((r = requests_take()) == NULL)
		return false;
	work_run(work_here, r);
	return true;
}

static void
serve(void)
{
	int wake_fd = bb_agent_wake_fd(svr.agent);
	int64_t until;

	while (!bb_agent_stopping(svr.agent) && !svr.leaving)
		serve_one(LINK_FOREVER, wake_fd);
	if (!svr.leaving)
		offers_withdraw();
	link_server_no_more(svr.link);
	until = clock_mono_us() + DRAIN_US;
	while (serve_one(0, -1) && clock_mono_us() < until)
		;			/* what was queued until then; after TPEXIT it is refused */
	if (svr.leaving)
		return;
	until = clock_mono_us() + RELAYS_US;
	while (relay_busy() && clock_mono_us() < until)
		wait_for_work(LINK_FOREVER, -1);
}

static void	/* -v: what was built in, as -s @file takes it */
services_print(const struct tmsvc *s)
{
	for (; s != NULL && s->call != NULL; s++)
		printf("%s:%s\n", s->name != NULL ? s->name : "", s->function);
}

int
_tmstartserver(int argc, char **argv, struct tmserver *server)
{
	static struct work work;

	if (own_program() != NULL)
		return own_run(argc, argv, server);
	svr.built = server;
	if (options_read(argc, argv) != 0)
		return 1;
	if (svr.opt.list) {
		services_print(server->services);
		return 0;
	}
	if (svr_attach(argc, argv, true) != 0) {
		svr_detach(1);
		return 1;
	}
	work.ctx = svr.ctx;
	work_here = &work;
	ulog("LIBTUX_CAT:262: INFO: Standard main starting");
	rm_set(server->rm, svr.group->openinfo, svr.group->closeinfo);
	relay_open(svr.app->bbl);
	if (server->init(svr.opt.argc, svr.opt.argv) == -1) {
		ulog("LIBTUX_CAT:250: ERROR: tpsvrinit() failed");
		svr_detach(1);
		return 1;
	}
	if (offers_start() != 0) {
		svr_detach(1);
		return 1;
	}
	bb_agent_ready(svr.agent);
	serve();
	relay_close();
	if (svr.leaving) {		/* TPEXIT: not a wanted end, BBL restarts us where that is configured */
		link_server_close(svr.link);
		fflush(NULL);
		_exit(1);
	}
	server->done();
	svr_detach(0);
	return 0;
}
