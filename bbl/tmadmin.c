/*
 * tmadmin - look at a running application, and make its transaction log.
 *
 *	tmadmin [-r] [-c] [-v]
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "admin.h"
#include "bb.h"
#include "version.h"

const char *
admin_option(const struct admin *a, const struct opts *o, int letter)
{
	return o->v[letter] != NULL ? o->v[letter] : a->defaults[letter];
}

static void
defaults_show(const struct commands *r)
{
	static const struct { int letter; const char *what; } known[] = {
		{ 'm', "machine" }, { 'g', "group name" }, { 'i', "server id" }, { 'u', "user name" }, { 'c', "client name" },
		{ 'q', "queue address" }, { 's', "service name" }, { 'b', "blocks" }, { 'o', "offset" }, { 'z', "device" },
		{ 'a', "system services" } };
	const struct admin *a = r->context;

	fprintf(r->con.out, "Current Default Settings:\n");
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		fprintf(r->con.out, "\t%s: %s\n", known[i].what,
		    a->defaults[known[i].letter] != NULL ? a->defaults[known[i].letter] : "*");
}

static void
cmd_default(struct commands *r, const struct opts *o)
{
	struct admin *a = r->context;
	bool any = false;

	for (int letter = 0; letter < 128; letter++) {
		if (o->v[letter] == NULL)
			continue;
		if (letter == 'm' && strcmp(o->v['m'], "*") != 0 && a->have_app &&
		    ubb_machine_by_lmid(a->app.ubb, o->v['m']) == NULL) {
			commands_error("machine %s is not in section MACHINES", o->v['m']);
			return;
		}
		any = true;
		free(a->defaults[letter]);
		a->defaults[letter] = strcmp(o->v[letter], "*") != 0 ? strdup(o->v[letter]) : NULL;
	}
	if (!any)
		defaults_show(r);
	snprintf(r->prompt, sizeof r->prompt, "%s%s> ", a->defaults['m'] != NULL ? a->defaults['m'] : "",
	    a->defaults['m'] != NULL ? " " : "");
}

/* What scripts know and we do not do must not look like a typing error. */
static void
cmd_unavailable(struct commands *r, const struct opts *o)
{
	(void)o;
	commands_error("%s: not available in this version", r->running->name);
}

#define UNAVAILABLE(name, abbrev, modes, syntax) \
	{ name, abbrev, modes, NULL, cmd_unavailable, name syntax, "Not available in this version." }

static bool
is_number(const char *text, long lo, long hi)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && n >= lo && n <= hi;
}

/* Values that can match nothing, whatever runs, are slips of the pen; names that nobody has now may come. */
static int
options_check(struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	const char *v;

	if ((v = o->v['i']) != NULL && strcmp(v, "*") != 0 && !is_number(v, 0, 30000)) {
		commands_bad_option(r, "-i %s is not a server id", v);
		return -1;
	}
	if ((v = o->v['a']) != NULL && strcmp(v, "*") != 0 && !is_number(v, 0, 2)) {
		commands_bad_option(r, "-a %s is none of 0, 1, 2", v);
		return -1;
	}
	if ((v = o->v['g']) != NULL && strcmp(v, "*") != 0 && a->have_app &&
	    ubb_group_by_name(a->app.ubb, v) == NULL && ubb_machine_by_lmid(a->app.ubb, v) == NULL) {	/* BBL's is a machine */
		commands_bad_option(r, "-g %s is not in section GROUPS", v);
		return -1;
	}
	if ((v = o->v['m']) != NULL && strcmp(v, "*") != 0 && (r->running->modes & (MODE_BOOT | MODE_CONFIG)) == 0 &&
	    a->have_app && ubb_machine_by_lmid(a->app.ubb, v) == NULL) {
		commands_bad_option(r, "-m %s is not in section MACHINES", v);
		return -1;
	}
	return 0;
}

static const struct command table[] = {
	{ "aborttrans", "abort", MODE_RUNNING, "y::g:m:", cmd_aborttrans, "aborttrans [-yes] [-g groupname] [-m machine] tranindex",
	    "Roll back a transaction, or its part in a group." },
	UNAVAILABLE("advertise", "adv", MODE_LOOK,
	    " {-q qaddress [-g groupname] [-i srvid] | -g groupname -i srvid} service[:func]"),
	{ "bbparms", "bbp", MODE_LOOK, "", cmd_bbparms, "bbparms", "Show the parameters of the bulletin board." },
	{ "bbstats", "bbs", MODE_LOOK, "", cmd_bbs, "bbstats",
	    "Show how many servers, services, queues and groups there are." },
	UNAVAILABLE("changeload", "chl", MODE_LOOK,
	    " [-m machine] {-q qaddress [-g groupname] [-i srvid] [-s service]"
	    " | -g groupname -i srvid -s service} newload"),
	UNAVAILABLE("changepriority", "chp", MODE_LOOK,
	    " [-m machine] {-q qaddress [-g groupname] [-i srvid] [-s service] | -g groupname -i srvid -s service} newpri"),
	UNAVAILABLE("changetrantime", "chtt", MODE_LOOK,
	    " [-m machine] {-q qaddress [-g groupname] [-i srvid] [-s service]"
	    " | -g groupname -i srvid -s service} newtlim"),
	{ "committrans", "commit", MODE_RUNNING, "y::g:m:", cmd_committrans,
	    "committrans [-yes] [-g groupname] [-m machine] tranindex", "Commit what is prepared of a transaction, or of its part in a group." },
	{ "crdl", NULL, MODE_CHANGE, "m:z:b:o:", cmd_crdl, "crdl -b blocks -z device [-o offset] [-m machine] [newdevice]",
	    "Create an entry in the universal device list; the first one creates the device." },
	{ "crlog", NULL, MODE_CHANGE, "m:", cmd_crlog, "crlog [-m machine]", "Create the transaction log of a machine." },
	{ "default", "d", MODE_ANY, "g:i:m:u:c:q:s:b:o:z:a:", cmd_default,
	    "default [-g groupname] [-i srvid] [-m machine] [-u usrname] [-c cltname] [-q qaddress] [-s service] [-b blocks] "
	    "[-o offset] [-z device] [-a {0|1|2}]",
	    "Set what other commands take for an option that is not given; * takes it back." },
	{ "dsdl", NULL, MODE_CHANGE, "m:z:o:y::", cmd_dsdl, "dsdl [-z device] [-yes] dlindex",
	    "Remove an entry from the universal device list." },
	{ "dslog", NULL, MODE_CHANGE, "m:y::", cmd_dslog, "dslog [-yes] [-m machine]",
	    "Remove the transaction log of a machine." },
	{ "dumptlog", "dl", MODE_ANY, "z:o:n:g:m:", cmd_dumptlog,
	    "dumptlog [-z config] [-o offset] [-n name] [-g groupname] [-m machine] filename",
	    "Write what coordinators have decided, and others have yet to hear, to a file." },
	{ "echo", "e", MODE_ANY, "", cmd_echo, "echo [{off|on}]",
	    "Repeat input lines; without an argument: the other way." },
	{ "help", "h", MODE_ANY, "", cmd_help, "help [{command|all}]", "Show the commands." },
	{ "lidl", NULL, MODE_ANY, "m:z:o:", cmd_lidl, "lidl [-z device] [dlindex]",
	    "List the universal device list; in verbose mode the free space too." },
	{ "livtoc", NULL, MODE_ANY, "m:z:o:", cmd_livtoc, "livtoc [-z device]", "List the table of contents of a device." },
	{ "loadtlog", NULL, MODE_ANY, NULL, cmd_loadtlog, "loadtlog -m machine filename", "Decisions are not loaded; says so." },
	{ "paginate", "page", MODE_ANY, "", cmd_paginate, "paginate [{off|on}]", "Show output page by page." },
	{ "printclient", "pclt", MODE_LOOK, "m:u:c:", cmd_pclt, "printclient [-m machine] [-u usrname] [-c cltname]",
	    "Show the clients." },
	{ "printqueue", "pq", MODE_LOOK, "m:q:", cmd_pq, "printqueue [-m machine] [-q qaddress | qaddress]", "Show the request queues." },
	{ "printserver", "psr", MODE_LOOK, "m:g:i:q:", cmd_psr,
	    "printserver [-m machine] [-g groupname] [-i srvid] [-q qaddress]",
	    "Show the servers." },
	{ "printservice", "psc", MODE_LOOK, "m:g:i:a:q:s:", cmd_psc,
	    "printservice [-m machine] [-g groupname] [-i srvid] [-a {0|1|2}] [-q qaddress] [-s service]",
	    "Show the services." },
	{ "printtrans", "pt", MODE_LOOK, "m:g:", cmd_pt, "printtrans [-m machine] [-g groupname]", "Show the transactions." },
	{ "quit", "q", MODE_ANY, "", cmd_quit, "quit", "End the session." },
	{ "serverparms", "srp", MODE_LOOK, "g:i:", cmd_serverparms, "serverparms -g groupname -i srvid",
	    "Show the parameters of a server." },
	UNAVAILABLE("resume", "res", MODE_LOOK, " {-q qaddress | -g groupname | -i srvid | -s service | all}"),
	UNAVAILABLE("suspend", "susp", MODE_LOOK, " {-q qaddress | -g groupname | -i srvid | -s service | all}"),
	UNAVAILABLE("unadvertise", "unadv", MODE_LOOK,
	    " {-q qaddress [-g groupname] [-i srvid] | -g groupname -i srvid} service"),
	{ "verbose", "v", MODE_ANY, "", cmd_verbose, "verbose [{off|on}]",
	    "Say more; without an argument: the other way." },
};

static void
join(struct admin *a, char *clientid1, size_t size)
{
	struct passwd *pw = getpwuid(geteuid());
	struct wire_adminreply reply;
	char pid[24], user[40];

	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	if (pw != NULL)
		snprintf(user, sizeof user, "%s", pw->pw_name);
	else
		snprintf(user, sizeof user, "%ld", (long)geteuid());
	*clientid1 = '\0';
	if (app_ask(&a->app, "join", 5000, &reply, "usrname", user, "cltname", "tmadmin", "pid", pid, NULL) != 0)
		return;
	if (reply.doc.n > 0 && record_get(&reply.doc.rec[0], "clientid1") != NULL)
		snprintf(clientid1, size, "%s", record_get(&reply.doc.rec[0], "clientid1"));
	bb_reply_free(&reply);
}

static void
leave(struct admin *a, const char *clientid1)
{
	struct wire_adminreply reply;
	char pid[24];

	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	if (app_is_booted(&a->app, NULL) &&
	    app_ask(&a->app, "leave", 2000, &reply, "clientid1", clientid1, "pid", pid, NULL) == 0)
		bb_reply_free(&reply);
}

/* One administrator at a time: a lock on TUXCONFIG, so that it works booted or not.  -1: another has it. */
static int
administrator_lock(const struct admin *a)
{
	int fd = open(a->app.tuxconfig, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static unsigned
mode_choose(const struct admin *a, bool read_only, bool config, const char **name)
{
	if (config) {
		*name = "configuration mode";
		return MODE_CONFIG;
	}
	if (!a->have_app || !app_is_booted(&a->app, NULL)) {
		*name = "boot mode";
		printf("No bulletin board exists. Entering boot mode.\n\n");
		return MODE_BOOT;
	}
	if (!read_only && administrator_lock(a) >= 0) {
		*name = "administrator mode";
		return MODE_RUNNING;
	}
	if (!read_only)
		fprintf(stderr, "TMADMIN_CAT:109: WARN: Cannot become administrator. Limited set of commands available.\n\n");
	*name = "read-only mode";
	return MODE_READ_ONLY;
}

int
main(int argc, char **argv)
{
	static struct admin a;
	static struct commands r;
	bool read_only = false, config = false;
	char clientid1[32] = "";
	int c;

	while ((c = getopt(argc, argv, "rcv")) != -1)
		switch (c) {
		case 'r': read_only = true; break;
		case 'c': config = true; break;
		case 'v':
			printf("INFO: atmiq, Version %s\n", ATMIQ_VERSION);
			return 0;
		default: goto usage;
		}
	if (optind != argc)
		goto usage;
	a.have_app = app_open(&a.app, &a.why_no_app) == 0 && app_check_rundir(&a.app, &a.why_no_app) == 0;
	if (!a.have_app && !config)
		fprintf(stderr, "tmadmin: %s\n", a.why_no_app != NULL ? a.why_no_app : "out of memory");
	if (isatty(STDIN_FILENO))	/* scripts read columns, and take a word on stderr for trouble */
		fprintf(stderr, "tmadmin - atmiq, Version %s\n", ATMIQ_VERSION);
	if (commands_open(&r, table, sizeof table / sizeof *table, STDIN_FILENO, &a) != 0)
		return 1;
	r.check = options_check;
	r.mode = mode_choose(&a, read_only, config, &r.mode_name);
	if (r.mode & MODE_LOOK)
		join(&a, clientid1, sizeof clientid1);
	commands_run(&r);
	if (clientid1[0] != '\0')
		leave(&a, clientid1);
	commands_close(&r);
	for (int i = 0; i < 128; i++)
		free(a.defaults[i]);
	free(a.why_no_app);
	trans_free(&a.trans);
	app_close(&a.app);
	return 0;
usage:
	fprintf(stderr, "usage: tmadmin [-r] [-c] [-v]\n");
	return 1;
}
