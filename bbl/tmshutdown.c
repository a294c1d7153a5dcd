/*
 * tmshutdown - bring an application, or a part of it, down.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "app.h"
#include "atmi.h"
#include "bb.h"
#include "link.h"
#include "plan.h"
#include "proc.h"
#include "registry.h"
#include "ulog.h"

#define BBL_PATIENCE_MS 10000	/* for BBL to hear that it shall end, and to end */

struct down {
	struct app app;
	struct plan_select sel;
	struct plan plan;
	struct wire_adminreply running;		/* psr rows */
	bool yes, quiet, show_only, even_with_clients;
	long delay_s;
	const char *signal;
	long stopped, failed;
	bool bbl_is_mute;		/* it runs and does not answer: nothing more can be stopped */
};

static void __attribute__((format(printf, 2, 3)))
say(const struct down *t, const char *fmt, ...)
{
	va_list ap;

	if (t->quiet)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fflush(stdout);
}

static int
usage(void)
{
	fprintf(stderr, "usage: tmshutdown [-l lmid] [-g grpname] [-i srvid] [-s aout] [-o sequence] [-S] [-A] [-M]\n"
	    "                  [-B lmid] [-T grpname] [-w delay] [-k {TERM|KILL}] [-c] [-H lmid]\n"
	    "                  [-P lmid] [-R] [-y] [-q] [-n]\n");
	return 1;
}

static int
delay_read(const char *text, long *delay_s)
{
	char *end;

	*delay_s = strtol(text, &end, 10);
	return *text != '\0' && *end == '\0' && *delay_s >= 0 && *delay_s <= 86400 ? 0 : -1;
}

static int
options_read(int argc, char **argv, struct down *t)
{
	int c;

	while ((c = getopt(argc, argv, PLAN_OPTIONS "w:k:cH:P:Ryqn")) != -1)
		switch (c) {
		case 'w':
			if (delay_read(optarg, &t->delay_s) != 0)
				return -1;
			if (t->delay_s == 0) {		/* no patience at all: SIGTERM at once */
				t->delay_s = 1;
				t->signal = t->signal != NULL ? t->signal : "TERM";
			}
			break;
		case 'k':
			if (strcmp(optarg, "TERM") != 0 && strcmp(optarg, "KILL") != 0)
				return -1;
			t->signal = optarg;
			break;
		case 'c':
			t->even_with_clients = true;
			break;
		case 'H': case 'P':
			if (!plan_select_option(&t->sel, 'l', optarg) || !plan_select_option(&t->sel, 'B', optarg))
				return -1;
			break;
		case 'R':
			break;		/* migration: on one machine there is nothing to it */
		case 'y':
			t->yes = true;
			break;
		case 'q':
			t->quiet = t->yes = true;
			break;
		case 'n':
			t->show_only = true;
			break;
		default:
			if (!plan_select_option(&t->sel, c, optarg))
				return -1;
		}
	return optind == argc ? 0 : -1;
}

static const struct record *
running_row(const struct down *t, const struct plan_step *s)
{
	for (size_t i = 0; i < t->running.doc.n; i++) {
		const struct record *r = &t->running.doc.rec[i];
		const char *group = record_get(r, "group");

		if (group != NULL && strcmp(group, s->groupname) == 0 && record_long(r, "srvid", -1) == s->srvid)
			return r;
	}
	return NULL;
}

static bool
is_planned(const struct down *t, const char *group, long srvid)
{
	for (size_t i = 0; i < t->plan.n; i++)
		if (t->plan.v[i].srvid == srvid && strcmp(t->plan.v[i].groupname, group) == 0)
			return true;
	return false;
}

/* A TUXCONFIG changed since the boot does not know all that runs.  Everything means everything: they go first. */
static int
plan_add_strangers(struct down *t)
{
	for (size_t i = 0; i < t->running.doc.n && plan_select_is_all(&t->sel); i++) {
		const char *group = record_get(&t->running.doc.rec[i], "group");
		long srvid = record_long(&t->running.doc.rec[i], "srvid", 0);
		struct plan_step *v;

		if (srvid == 0 || group == NULL || is_planned(t, group, srvid))
			continue;
		if ((v = realloc(t->plan.v, (t->plan.n + 1) * sizeof *v)) == NULL)
			return -1;
		t->plan.v = v;
		memmove(v + 1, v, t->plan.n++ * sizeof *v);
		memset(v, 0, sizeof *v);
		v->kind = srvid >= REG_TMS_FIRST ? PLAN_TMS : PLAN_SERVER;
		v->srvid = srvid;
		snprintf(v->groupname, sizeof v->groupname, "%s", group);
	}
	return 0;
}

static void
report(struct down *t, const struct plan_step *s, const char *why)
{
	const char *group = s->kind == PLAN_BBL ? t->app.machine->lmid : s->groupname;

	if (why == NULL)
		t->stopped++;
	else
		t->failed++;
	say(t, "\tServer Id = %ld Group Id = %s Machine = %s:\tshutdown %s\n", s->srvid, group, t->app.machine->lmid,
	    why == NULL ? "succeeded" : "failed");
	if (why != NULL)
		fprintf(stderr, "tmshutdown: CMDTUX_CAT:1702: ERROR: server %ld of %s: %s\n", s->srvid, group, why);
}

/* The BBL that runs, from its lock, whether or not it answers; -1: there is none. */
static int
bbl_pidfd(const struct down *t)
{
	char path[512], text[4200] = "", *tuxconfig;
	int fd, pidfd = -1;

	app_file(&t->app, APP_LOCK, path, sizeof path);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 && pread(fd, text, sizeof text - 1, 0) > 0) {
		text[strcspn(text, "\n")] = '\0';
		if ((tuxconfig = strchr(text, ' ')) != NULL && strcmp(tuxconfig + 1, t->app.tuxconfig) == 0)
			pidfd = proc_pidfd((pid_t)atol(text));
	}
	close(fd);
	return pidfd;
}

/* It may be about to end, as we or another tmshutdown told it.  When we have ended it has, so that one can boot. */
static bool
await_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	bool ended = pidfd < 0 || poll(&p, 1, BBL_PATIENCE_MS) > 0;

	if (pidfd >= 0)
		close(pidfd);
	return ended;
}

/* An order to BBL, once more when it died over it and a server lives that another BBL can stop.  LINK codes. */
static int
order(struct down *t, const char *op, const char *group, const char *srvid, struct wire_adminreply *reply)
{
	bool bbl = strcmp(op, "shutdown-bbl") == 0;
	int64_t patience_ms = bbl ? BBL_PATIENCE_MS : (2 * t->delay_s + 90) * 1000;
	char delay[24];
	int rc;

	snprintf(delay, sizeof delay, "%ld", t->delay_s);
	for (int tries = 0;; tries++) {
		rc = app_ask(&t->app, op, patience_ms, reply, "group", group, "srvid", srvid, "delay", delay, "signal",
		    t->signal != NULL ? t->signal : "", "force", t->even_with_clients ? "y" : "n", NULL);
		if (rc == 0 || tries == 1 || (!app_is_booted(&t->app, NULL) && !app_bring_back_bbl(&t->app)))
			return rc;
	}
}

/* BBL did not answer: gone, and all servers with it, as another tmshutdown would have it, or deaf. */
static bool
all_is_gone(const struct down *t)
{
	return await_end(bbl_pidfd(t)) && !app_servers_live(&t->app);
}

static void
stop_server(struct down *t, const struct plan_step *s)
{
	struct wire_adminreply reply = { 0 };
	char srvid[24];

	snprintf(srvid, sizeof srvid, "%ld", s->srvid);
	if (order(t, "shutdown", s->groupname, srvid, &reply) != 0) {
		t->bbl_is_mute = !all_is_gone(t);
		report(t, s, t->bbl_is_mute ? "BBL does not answer" : NULL);
		return;
	}
	/* TPENOENT: it ended by itself meanwhile. */
	report(t, s, reply.status == 0 || reply.status == TPENOENT ? NULL : reply.text != NULL ? reply.text : "refused");
	bb_reply_free(&reply);
}

static void
stop_bbl(struct down *t, const struct plan_step *s)
{
	struct wire_adminreply reply = { 0 };
	int pidfd = bbl_pidfd(t), rc = order(t, "shutdown-bbl", "", "0", &reply);

	/* BBL may be gone before its answer was read: what counts is that it is gone. */
	if (rc == 0 && reply.status != 0) {
		report(t, s, reply.text != NULL ? reply.text : "refused");
		if (pidfd >= 0)
			close(pidfd);
	} else if (!await_end(pidfd) || !await_end(bbl_pidfd(t)))
		report(t, s, rc != 0 ? "BBL does not answer" : "BBL still runs 10 s after the order to stop");
	else
		report(t, s, NULL);
	bb_reply_free(&reply);
}

/* With -w and -k no new work comes to any of the servers from now on.  While we live: BBL sees to that. */
static void
suspend_all(const struct down *t)
{
	struct wire_adminreply reply;
	char srvid[24], by[24];

	snprintf(by, sizeof by, "%ld", (long)getpid());
	for (size_t i = 0; i < t->plan.n; i++) {
		const struct plan_step *s = &t->plan.v[i];

		snprintf(srvid, sizeof srvid, "%ld", s->srvid);
		if (s->kind == PLAN_SERVER && running_row(t, s) != NULL &&
		    app_ask(&t->app, "suspend", BBL_PATIENCE_MS, &reply, "group", s->groupname, "srvid", srvid, "by", by, NULL) == 0)
			bb_reply_free(&reply);
	}
}

static void
stop_steps(struct down *t)
{
	enum { NONE, ADMIN, SERVERS } heading = NONE;

	for (size_t i = 0; i < t->plan.n && !t->bbl_is_mute; i++) {
		const struct plan_step *s = &t->plan.v[i];

		if (s->kind != PLAN_BBL && running_row(t, s) == NULL)
			continue;
		if (s->kind == PLAN_BBL && heading != ADMIN) {
			say(t, "\nShutting down admin processes ...\n\n");
			heading = ADMIN;
		} else if (s->kind != PLAN_BBL && heading != SERVERS) {
			say(t, "\nShutting down server processes ...\n\n");
			heading = SERVERS;
		}
		if (t->show_only)
			say(t, "\tServer Id = %ld Group Id = %s Machine = %s\n", s->srvid,
			    s->kind == PLAN_BBL ? t->app.machine->lmid : s->groupname, t->app.machine->lmid);
		else if (s->kind == PLAN_BBL)
			stop_bbl(t, s);
		else
			stop_server(t, s);
	}
}

static int
shut_down(struct down *t)
{
	bool all = plan_select_is_all(&t->sel);

	if (!app_is_booted(&t->app, NULL) && !app_bring_back_bbl(&t->app)) {
		(void)await_end(bbl_pidfd(t));
		fprintf(stderr, "tmshutdown: CMDTUX_CAT:764: ERROR: no bulletin board exists for %s: nothing to shut down\n",
		    t->app.tuxconfig);
		return 1;
	}
	if (t->plan.n == 0) {
		fprintf(stderr, "tmshutdown: nothing in %s is selected by these options\n", t->app.tuxconfig);
		return 1;
	}
	if (all && !t->yes && !t->show_only && !app_confirm(stdin, "Shutdown all admin and server processes? (y/n):"))
		return 0;
	if (app_ask(&t->app, "psr", 10000, &t->running, NULL) != 0 || plan_add_strangers(t) != 0) {
		(void)await_end(bbl_pidfd(t));
		fprintf(stderr, "tmshutdown: BBL does not answer; where it hangs, end its process, and tmshutdown starts another\n");
		return 1;
	}
	say(t, "Shutting down %s in %s\n", all ? "all admin and server processes" :
	    t->plan.v[t->plan.n - 1].kind == PLAN_BBL ? "admin processes" : "server processes", t->app.tuxconfig);
	if ((t->delay_s > 0 || t->signal != NULL) && !t->show_only)
		suspend_all(t);
	stop_steps(t);
	if (!t->show_only)
		say(t, "\n%ld process%s stopped.\n", t->stopped, t->stopped == 1 ? "" : "es");
	return t->failed > 0;
}

int
main(int argc, char **argv)
{
	static struct down t;
	char *why = NULL;
	int rc = 1;

	ulog_program("tmshutdown");
	signal(SIGHUP, SIG_IGN);	/* a terminal that is closed leaves no half of an application */
	if (options_read(argc, argv, &t) != 0)
		return usage();
	if (app_open(&t.app, &why) == 0) {
		ulog_prefix(t.app.machine->ulogpfx);
		if (app_check_admin(&t.app, &why) == 0 && app_check_rundir(&t.app, &why) == 0 &&
		    plan_select_check(&t.sel, t.app.ubb, &why) == 0 &&
		    plan_shutdown(t.app.ubb, t.app.machine, &t.sel, &t.plan) == 0)
			rc = shut_down(&t);
		else if (why == NULL)
			why = strdup("out of memory");
	}
	if (why != NULL)
		fprintf(stderr, "tmshutdown: %s\n", why);
	free(why);
	bb_reply_free(&t.running);
	plan_free(&t.plan);
	plan_select_free(&t.sel);
	app_close(&t.app);
	return rc;
}
