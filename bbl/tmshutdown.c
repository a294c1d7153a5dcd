/*
 * tmshutdown - bring an application, or a part of it, down.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "atmi.h"
#include "bb.h"
#include "link.h"
#include "plan.h"
#include "proc.h"
#include "registry.h"
#include "state.h"
#include "ulog.h"

#define END_PATIENCE_MS 3000	/* for a BBL that does not answer any more */

struct down {
	struct app app;
	struct plan_select sel;
	struct plan plan;
	struct wire_adminreply running;		/* psr rows */
	bool yes, quiet, show_only, even_with_clients;
	long delay_s;
	const char *signal;
	long stopped, failed;
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
			break;
		case 'k':
			if (strcmp(optarg, "TERM") != 0 && strcmp(optarg, "KILL") != 0)
				return -1;
			t->signal = optarg;
			break;
		case 'c':
			t->even_with_clients = true;
			break;
		case 'H': case 'P': case 'R':
			break;		/* migration, partitioned machines: on one machine there is nothing to it */
		case 'y':
			t->yes = true;
			break;
		case 'q':
			t->quiet = true;
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

/* BBL died and its servers live: they are to be stopped all the same, and a new BBL can do that. */
static bool
bring_back_bbl(const struct down *t)
{
	char path[512], *why = NULL;
	struct state old;
	bool lives = false;
	pid_t pid;

	app_file(&t->app, APP_STATE, path, sizeof path);
	if (state_read(path, &old) != 0)
		return false;
	for (size_t i = 0; i < old.n && !lives; i++)
		lives = state_server_lives(&old.servers[i]);
	state_free(&old);
	if (!lives)
		return false;
	lives = app_launch_bbl(&t->app, &pid, &why) != LAUNCH_FAILED;
	free(why);
	return lives;
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

static void
stop_server(struct down *t, const struct plan_step *s)
{
	struct wire_adminreply reply = { 0 };
	char srvid[24], delay[24];
	int rc;

	snprintf(srvid, sizeof srvid, "%ld", s->srvid);
	snprintf(delay, sizeof delay, "%ld", t->delay_s);
	rc = app_ask(&t->app, "shutdown", (2 * t->delay_s + 90) * 1000, &reply, "group", s->groupname, "srvid", srvid,
	    "delay", delay, "signal", t->signal != NULL ? t->signal : "", NULL);
	if (rc != 0) {
		report(t, s, rc == LINK_TIMEOUT ? "BBL does not answer in time" : "BBL does not answer");
		return;
	}
	/* TPENOENT: it ended by itself meanwhile. */
	report(t, s, reply.status == 0 || reply.status == TPENOENT ? NULL : reply.text != NULL ? reply.text : "refused");
	bb_reply_free(&reply);
}

static void
stop_bbl(struct down *t, const struct plan_step *s)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };
	struct wire_adminreply reply = { 0 };
	pid_t bbl = 0;
	int rc;

	if (app_is_booted(&t->app, &bbl))
		p.fd = proc_pidfd(bbl);
	rc = app_ask(&t->app, "shutdown-bbl", 10000, &reply, "force", t->even_with_clients ? "y" : "n", NULL);
	/* BBL may be gone before its answer was read: what counts is that it is gone. */
	if (rc != LINK_OK && (rc != LINK_GONE || p.fd < 0))
		report(t, s, "BBL does not answer");
	else if (reply.status != 0)
		report(t, s, reply.text != NULL ? reply.text : "refused");
	else if (p.fd >= 0 && poll(&p, 1, 10000) <= 0)
		report(t, s, "BBL still runs 10 s after the order to stop");
	else
		report(t, s, NULL);
	bb_reply_free(&reply);
	if (p.fd >= 0)
		close(p.fd);
}

static void
stop_steps(struct down *t)
{
	enum { NONE, ADMIN, SERVERS } heading = NONE;

	for (size_t i = 0; i < t->plan.n; i++) {
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

/* BBL does not answer: it may be about to end, as another tmshutdown told it.  When we have ended it has, so that one can boot. */
static void
wait_for_its_end(const struct down *t)
{
	struct pollfd p = { .events = POLLIN };
	char path[512], text[4200] = "", *tuxconfig;
	int fd;
	ssize_t n;

	app_file(&t->app, APP_LOCK, path, sizeof path);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if ((tuxconfig = strchr(text, ' ')) == NULL || strcmp(tuxconfig + 1, t->app.tuxconfig) != 0 ||
	    (p.fd = proc_pidfd((pid_t)atol(text))) < 0)
		return;
	(void)poll(&p, 1, END_PATIENCE_MS);
	close(p.fd);
}

static int
shut_down(struct down *t)
{
	bool all = plan_select_is_all(&t->sel);

	if (!app_is_booted(&t->app, NULL) && !bring_back_bbl(t)) {
		wait_for_its_end(t);
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
		wait_for_its_end(t);
		fprintf(stderr, "tmshutdown: BBL does not say what runs\n");
		return 1;
	}
	say(t, "Shutting down %s in %s\n", all ? "all admin and server processes" :
	    t->plan.v[t->plan.n - 1].kind == PLAN_BBL ? "admin processes" : "server processes", t->app.tuxconfig);
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
