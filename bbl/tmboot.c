/*
 * tmboot - bring an application, or a part of it, up.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "atmi.h"
#include "bb.h"
#include "link.h"
#include "plan.h"
#include "registry.h"
#include "tlog.h"
#include "ulog.h"
#include "version.h"

#define START_PATIENCE_MS 90000	/* BBL itself answers earlier */

extern char **environ;

struct boot {
	struct app app;
	struct plan_select sel;
	struct plan plan;
	bool yes, quiet, show_only, ipc_needs, no_wait, show_command;
	bool bbl_is_lost;		/* and is not to be had again: nothing more can be booted */
	const char *on_failure;
	long started, failed;
	char dead_group[WIRE_GROUP];	/* whose TMS could not be booted: its servers are not tried */
};

static void __attribute__((format(printf, 2, 3)))
say(const struct boot *t, const char *fmt, ...)
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
	fprintf(stderr, "usage: tmboot [-l lmid] [-g grpname] [-i srvid] [-s aout] [-o sequence] [-S] [-A] [-b] [-B lmid]\n"
	    "              [-T grpname] [-e command] [-w] [-y] [-q] [-n] [-c] [-M] [-m] [-d1]\n");
	return 1;
}

static int
options_read(int argc, char **argv, struct boot *t)
{
	int c;

	while ((c = getopt(argc, argv, PLAN_OPTIONS "be:wyqncmd:")) != -1)
		switch (c) {
		case 'b': case 'm':
			break;		/* for networked machines; nothing to do on one */
		case 'e':
			t->on_failure = optarg;
			break;
		case 'w':
			t->no_wait = true;
			break;
		case 'y':
			t->yes = true;
			break;
		case 'q':
			t->quiet = t->yes = true;
			break;
		case 'n':
			t->show_only = true;
			break;
		case 'c':
			t->ipc_needs = true;
			break;
		case 'd':
			t->show_command = strcmp(optarg, "1") == 0;
			break;
		default:
			if (!plan_select_option(&t->sel, c, optarg))
				return -1;
		}
	return optind == argc ? 0 : -1;
}

static void
show_exec(const struct boot *t, const struct plan_step *s)
{
	const struct ubb_machine *m = t->app.machine;

	if (!t->show_command || s->kind != PLAN_SERVER)
		say(t, "exec %s %s :\n", s->name, s->args);
	else
		say(t, "exec %s -C dom=%s -g %ld -i %ld -u %s -U %s -m 0 %s :\n", s->name, t->app.ubb->res.domainid,
		    s->group->grpno, s->srvid, m->address, m->ulogpfx, s->args);
}

static void
failed(struct boot *t, long pid, const char *why)
{
	char id[48] = "";

	t->failed++;
	if (pid > 0)
		snprintf(id, sizeof id, "process id=%ld ... ", pid);
	say(t, "\t%sFailed.\n", id);
	fprintf(stderr, "CMDTUX_CAT:1685: ERROR: Application initialization failure%s%s\n", why != NULL ? ": " : "",
	    why != NULL ? why : "");
	if (t->on_failure != NULL && system(t->on_failure) == -1)
		fprintf(stderr, "tmboot: %s: %s\n", t->on_failure, strerror(errno));
}

static void
started(struct boot *t, long pid)
{
	t->started++;
	say(t, "\tprocess id=%ld ... Started.\n", pid);
}

static void
duplicate(const struct boot *t)
{
	say(t, "\tCMDTUX_CAT:821: INFO: Duplicate server.\n");
}

static void
boot_bbl(struct boot *t)
{
	char *why = NULL;
	pid_t pid;

	switch (app_launch_bbl(&t->app, &pid, &why)) {
	case LAUNCH_STARTED:
		started(t, (long)pid);
		break;
	case LAUNCH_DUPLICATE:
		duplicate(t);
		break;
	default:
		failed(t, (long)pid, why);
		t->bbl_is_lost = true;
	}
	free(why);
}

/* The servers' environment is the one that tmboot has now, not the one that BBL was started with. */
static int
ask_start(const struct boot *t, const struct plan_step *s, struct wire_adminreply *reply)
{
	struct document d = { 0 };
	struct record *r = document_add(&d);
	char key[32];
	int rc = r == NULL || record_set(r, "group", s->groupname) != 0 ||
	    record_setf(r, "srvid", "%ld", s->srvid) != 0 || (t->no_wait && record_set(r, "wait", "n") != 0);

	for (int i = 0; environ[i] != NULL && rc == 0; i++) {
		snprintf(key, sizeof key, "env.%d", i);
		rc = record_set(r, key, environ[i]);
	}
	rc = rc == 0 ? bb_request_by(t->app.endpoint, "start", r, APP_REACH_MS, START_PATIENCE_MS, reply) : LINK_FAIL;
	document_free(&d);
	return rc;
}

/* Where BBL has died, who boots it too starts it again; else a server does, if one lives. */
static bool
bbl_is_there(const struct boot *t)
{
	char *why = NULL;
	bool back;
	pid_t pid;

	if (app_is_booted(&t->app, NULL))
		return true;
	if (app_was_shut_down(&t->app))
		return false;
	if (t->plan.v[0].kind != PLAN_BBL)
		return app_await_bbl(&t->app);
	back = app_launch_bbl(&t->app, &pid, &why) != LAUNCH_FAILED && app_is_booted(&t->app, NULL);
	free(why);
	return back;
}

static void
boot_server(struct boot *t, const struct plan_step *s)
{
	struct wire_adminreply reply = { 0 };
	char text[128];
	long pid;
	int rc = LINK_GONE;

	if (s->kind == PLAN_SERVER && strcmp(t->dead_group, s->groupname) == 0) {
		snprintf(text, sizeof text, "the TMS of group %s is not booted", s->groupname);
		failed(t, 0, text);
		return;
	}
	for (int tries = 0; tries < 2 && rc != 0 && bbl_is_there(t); tries++)
		rc = ask_start(t, s, &reply);
	if (rc != 0) {
		t->bbl_is_lost = true;
		snprintf(text, sizeof text, "%s", app_was_shut_down(&t->app) ? "the application was shut down meanwhile" :
		    rc == LINK_TIMEOUT ? "BBL does not answer in time" : "BBL does not answer");
		failed(t, 0, text);
		return;
	}
	pid = reply.doc.n > 0 ? record_long(&reply.doc.rec[0], "pid", 0) : 0;
	if (reply.status == 0) {
		started(t, pid);
	} else if (reply.status == TPEMATCH) {
		duplicate(t);
	} else {
		failed(t, pid, reply.text);
		if (s->kind == PLAN_TMS)
			snprintf(t->dead_group, sizeof t->dead_group, "%s", s->groupname);
	}
	bb_reply_free(&reply);
}

/* A transactional configuration without a log is worth a word, and boots. */
static void
warn_of_tlog(const struct boot *t)
{
	const struct ubb_machine *m = t->app.machine;
	const char *name = m->tlogname[0] != '\0' ? m->tlogname : "TLOG";

	for (size_t i = 0; i < t->app.ubb->n_groups; i++)
		if (strcmp(t->app.ubb->groups[i].tmsname, "TMS_QM") == 0) {
			if (m->tlogdevice[0] == '\0')
				ulog("CMDTUX_CAT:1701: WARN: machine %s has no TLOGDEVICE", m->lmid);
			else if (tlog_exists(m->tlogdevice, name) != 1)
				ulog("CMDTUX_CAT:1701: WARN: no transaction log %s on TLOGDEVICE %s of machine %s; make it with crdl and "
				    "crlog of tmadmin", name, m->tlogdevice, m->lmid);
			return;
		}
}

static void
boot_steps(struct boot *t)
{
	enum { NONE, ADMIN, SERVERS } heading = NONE;

	for (size_t i = 0; i < t->plan.n && !t->bbl_is_lost; i++) {
		const struct plan_step *s = &t->plan.v[i];

		if (s->kind == PLAN_BBL && heading != ADMIN) {
			say(t, "\nBooting admin processes ...\n\n");
			heading = ADMIN;
		} else if (s->kind != PLAN_BBL && heading != SERVERS) {
			say(t, "\nBooting server processes ...\n\n");
			heading = SERVERS;
		}
		show_exec(t, s);
		if (t->show_only)
			continue;
		if (s->kind == PLAN_BBL)
			boot_bbl(t);
		else
			boot_server(t, s);
	}
}

static void
show_ipc_needs(const struct boot *t)
{
	const struct ubb_resources *r = &t->app.ubb->res;

	printf("IPC needs of %s on machine %s:\n", t->app.tuxconfig, t->app.machine->lmid);
	printf("\tshared memory segments: 0\n\tsemaphores: 0\n\tmessage queues: 0\n");
	printf("\tsockets in %s: %ld at most\n", t->app.rundir, r->maxservers + 1);
	printf("\tfile descriptors of BBL: %ld at most\n", 2 * r->maxservers + r->maxaccessers + 32);
}

static int
boot(struct boot *t)
{
	bool with_bbl = t->plan.n > 0 && t->plan.v[0].kind == PLAN_BBL;

	if (t->plan.n == 0) {
		fprintf(stderr, "tmboot: nothing in %s is selected by these options\n", t->app.tuxconfig);
		return 1;
	}
	if (plan_select_is_all(&t->sel) && !t->yes && !t->show_only &&
	    !app_confirm(stdin, "Boot all admin and server processes? (y/n):"))
		return 0;
	say(t, "Booting %s in %s\n", plan_select_is_all(&t->sel) ? "all admin and server processes" :
	    with_bbl ? "admin processes" : "server processes", t->app.tuxconfig);
	say(t, "INFO: atmiq, Version %s\n", ATMIQ_VERSION);
	if (!with_bbl && !t->show_only && !app_await_bbl(&t->app)) {
		fprintf(stderr, "tmboot: CMDTUX_CAT:764: ERROR: no bulletin board exists for %s; boot the admin processes first "
		    "(tmboot -A)\n", t->app.tuxconfig);
		return 1;
	}
	if (!t->show_only)
		warn_of_tlog(t);
	boot_steps(t);
	if (!t->show_only)
		say(t, "%ld process%s started.\n", t->started, t->started == 1 ? "" : "es");
	return t->failed > 0;
}

int
main(int argc, char **argv)
{
	static struct boot t;
	char *why = NULL;
	int rc = 1;

	ulog_program("tmboot");
	signal(SIGHUP, SIG_IGN);	/* a terminal that is closed leaves no half of an application */
	if (options_read(argc, argv, &t) != 0)
		return usage();
	if (app_open(&t.app, &why) == 0) {
		ulog_prefix(t.app.machine->ulogpfx);
		if (app_check_admin(&t.app, &why) == 0 && app_check_rundir(&t.app, &why) == 0 &&
		    plan_select_check(&t.sel, t.app.ubb, &why) == 0 &&
		    plan_boot(t.app.ubb, t.app.machine, &t.sel, &t.plan) == 0) {
			rc = 0;
			if (t.ipc_needs)
				show_ipc_needs(&t);
			else
				rc = boot(&t);
		} else if (why == NULL) {
			why = strdup("out of memory");
		}
	}
	if (why != NULL)
		fprintf(stderr, "tmboot: %s\n", why);
	free(why);
	plan_free(&t.plan);
	plan_select_free(&t.sel);
	app_close(&t.app);
	return rc;
}
