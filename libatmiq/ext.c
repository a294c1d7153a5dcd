/*
 * ext - what our own servers need and atmi.h cannot say; see ext/atmiq_ext.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "svr.h"
#include "ext/atmiq_ext.h"

static pthread_t attached;	/* the thread that did */

#define KNOWN_US 1000000LL	/* for BBL, to say whether a service is offered */

int
atmiq_server_attach(int argc, char **argv, struct atmiq_server *out)
{
	memset(out, 0, sizeof *out);
	attached = pthread_self();
	if (svr_attach(argc, argv, false) != 0) {
		svr_detach(1);
		return fail(TPESYSTEM);
	}
	snprintf(out->group, sizeof out->group, "%s", svr.group->name);
	out->grpno = svr.opt.grpno;
	out->srvid = svr.opt.srvid;
	snprintf(out->openinfo, sizeof out->openinfo, "%s", svr.group->openinfo);
	snprintf(out->tmsname, sizeof out->tmsname, "%s", svr.group->tmsname);
	if (svr.conf != NULL) {
		snprintf(out->rqaddr, sizeof out->rqaddr, "%s", svr.conf->rqaddr);
		out->replyq = svr.conf->replyq;
	}
	out->services_given = svr.opt.all || svr.opt.n_services > 0;
	out->argc = svr.opt.argc;
	out->argv = svr.opt.argv;
	return 0;
}

void
atmiq_server_ready(void)
{
	bb_agent_ready(svr.agent);
}

int
atmiq_server_wake_fd(void)
{
	return svr_wake_fd();
}

static __thread struct context *of_thread;	/* made by atmiq_thread_begin() */

int
atmiq_thread_begin(void)
{
	int64_t cltid[4] = { 0, svr.opt.grpno, svr.opt.srvid, getpid() };
	int err;

	if (pthread_equal(attached, pthread_self())) {
		context_serve_multi();
		return 0;
	}
	if ((err = context_serve_thread(cltid, &of_thread)) != 0)
		return fail(err);
	return 0;
}

void
atmiq_thread_end(void)
{
	if (of_thread != NULL)
		context_serve_end(of_thread);
	of_thread = NULL;
}

int
atmiq_server_stopping(void)
{
	return svr_stopping();
}

void
atmiq_server_detach(int status)
{
	svr_detach(status);
}

void
atmiq_server_count(const char *current_service)
{
	if (current_service != NULL)
		bb_agent_busy(svr.agent, current_service);
	else
		bb_agent_idle(svr.agent, 50);
}

void
atmiq_group_service(const char *group, char *name)
{
	snprintf(name, WIRE_NAME, "..%s", group);
}

static int
abort_as(int error, long urcode, const char *why, bool uncounted)
{
	int before = tperrno;
	struct context *ctx = context_enter();

	if (ctx == NULL)
		return -1;
	ctx->tran.uncounted = uncounted;
	memset(&ctx->tran.why, 0, sizeof ctx->tran.why);	/* who says it here knows better */
	tran_doom_because(ctx, error, urcode, "%s", why);
	if (context_leave(ctx, tran_abort(ctx)) == -1)
		return -1;
	tperrno = before;
	return 0;
}

int
atmiq_abort(int error, long urcode, const char *why)
{
	return abort_as(error, urcode, why, false);
}

int
atmiq_abort_uncounted(const char *why)
{
	return abort_as(TPEABORT, 0, why, true);
}

int
atmiq_service_known(char *svc)
{
	struct patience how = { .deadline_us = deadline_from(KNOWN_US), .noblock = true, .restart = true };
	const struct service *s;
	struct context *ctx;
	int err, known = 0;

	if (svc == NULL || strlen(svc) >= WIRE_NAME)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	err = conn_lookup(conn_of(ctx), svc, &how, &s);
	if (err == 0)
		known = 1;
	else if (err == TPENOENT || err == TPEBLOCK)	/* TPEBLOCK: it is being started */
		err = 0;
	return context_leave(ctx, err) == 0 ? known : -1;
}
