/*
 * svr - the life of a server: attach, offer, serve (svrloop.c), detach.
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

struct svr svr;
char svr_self[CONN_ENDPOINT];

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
	struct ubb_set set;

	if (svr.conf != NULL && ubb_set_of(svr.app->ubb, svr.conf, &set))
		return set_open(&set, endpoint, size);
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
	if (calls)
		mark_open();		/* first: who reaches us finds our slot */
	if (calls && endpoint_bind(endpoint, sizeof endpoint) != 0)
		return -1;
	if (svr.link != NULL)
		snprintf(svr_self, sizeof svr_self, "%s", endpoint);
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
	set_close();
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

/* ---- from beginning to end ---- */

/* Until the process may end; it does so here after TPEXIT: not a wanted end, BBL restarts us where that is configured. */
static void
end(struct tmserver *server)
{
	if (svr.leaving) {
		relay_close(clock_mono_us());
		mark_close();
		if (svr.link != NULL)
			link_server_close(svr.link);
		fflush(NULL);
		_exit(1);
	}
	if (svr.threads != NULL)
		threads_end();
	relay_close(clock_mono_us() + RELAYS_US);
	mark_close();
	server->done();
	svr_detach(0);
}

/* From the programmer's tpsvrinit() to the last service offered.  0, or -1: logged. */
static int
begin(struct tmserver *server)
{
	rm_set(server->rm, svr.group->openinfo, svr.group->closeinfo);
	if (relay_open(svr.app, svr.threads != NULL) != 0)
		return -1;
	if (server->init(svr.opt.argc, svr.opt.argv) == -1) {
		ulog("LIBTUX_CAT:250: ERROR: tpsvrinit() failed");
		return -1;
	}
	if ((svr.threads != NULL && threads_start() != 0) || offers_start() != 0)
		return -1;
	return set_member() ? set_join(svr.threads != NULL ? (unsigned)svr.conf->maxdispatchthreads : 1, svr_wake_fd()) : 0;
}

static void	/* -v: what was built in, as -s @file takes it */
services_print(const struct tmsvc *s)
{
	for (; s != NULL && s->call != NULL; s++)
		printf("%s:%s\n", s->name != NULL ? s->name : "", s->function);
}

static int
run(int argc, char **argv, struct tmserver *server, struct tmthreads *threads)
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
	if (threads != NULL && svr.conf != NULL && svr.conf->maxdispatchthreads > 1) {
		svr.threads = threads;
		svr_self[0] = '\0';	/* another thread may serve what one asks for */
		context_serve_multi();
	} else {
		work.ctx = svr.ctx;
		work_here = &work;
		if (svr.conf != NULL && svr.conf->maxdispatchthreads > 1)
			ulog("LIBTUX_CAT:5093: WARN: MAXDISPATCHTHREADS=%ld: requests are served one at a time, for the server "
			     "was built without -t",
			    svr.conf->maxdispatchthreads);
	}
	ulog("LIBTUX_CAT:262: INFO: Standard main starting");
	if (begin(server) != 0) {
		relay_close(clock_mono_us());
		svr_detach(1);
		return 1;
	}
	bb_agent_ready(svr.agent);
	serve();
	end(server);
	return 0;
}

int
_tmstartserver(int argc, char **argv, struct tmserver *server)
{
	return run(argc, argv, server, NULL);
}

int
_tmstartthreads(int argc, char **argv, struct tmserver *server, struct tmthreads *threads)
{
	return run(argc, argv, server, threads);
}
