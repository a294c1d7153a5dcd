/*
 * tmadmin: what a transaction log would have.  The decisions of coordinators are kept in their queue spaces, written in one flush
 * with the coordinator's own part (D4), so the log on TLOGDEVICE is empty, and those are asked instead.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "admin.h"
#include "clock.h"
#include "tlog.h"

static FILE *dump;

static void
silent_group(const char *group, const char *why)
{
	fprintf(dump, "# group %s: %s; its decisions are in its queue space\n", group, why);
	fflush(stdout);
	fprintf(stderr, "TMADMIN_CAT:109: WARN: group %s: %s; its decisions are in its queue space\n", group, why);
}

static int
dump_decisions(const struct admin *a, const char *group, const char *lmid)
{
	struct trans t = { 0 };
	time_t now = (time_t)(clock_now_us() / 1000000);
	char when[32];
	struct tm tm;

	if (localtime_r(&now, &tm) == NULL || strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		when[0] = '\0';
	fprintf(dump, "# transactions that coordinators of %s decided to commit, and whose other groups have not all answered; %s\n",
	    a->app.tuxconfig, when);
	if (trans_gather(&a->app, lmid, silent_group, &t) != 0) {
		commands_error("out of memory");
		return -1;
	}
	for (size_t i = 0; i < t.n; i++)
		if (strcmp(t.part[i].state, "decided") == 0 && (group == NULL || strcmp(group, t.part[i].group) == 0))
			fprintf(dump, "gtrid=%s decision=commit coordinator=%s groups=%s\n", t.part[i].gtrid, t.part[i].group, t.part[i].told);
	trans_free(&t);
	return 0;
}

/* -n names the log, as elsewhere; alone it was taken for the file, too. */
void
cmd_dumptlog(struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	const struct ubb_machine *m = admin_log_machine(r, o);
	const char *device = admin_option(a, o, 'z'), *name, *file = o->n_rest > 0 ? o->rest[0] : o->v['n'];

	if (m == NULL)
		return;
	device = device != NULL ? device : m->tlogdevice;
	name = o->n_rest > 0 && o->v['n'] != NULL ? o->v['n'] : admin_log_name(m);
	if (file == NULL) {
		commands_error("dumptlog: which file? Its name comes last");
		return;
	}
	if (tlog_exists(device, name) != 1) {
		commands_error("dumptlog: there is no transaction log %s on %s; crlog makes it", name, device);
		return;
	}
	if (!app_is_booted(&a->app, NULL)) {
		commands_error("dumptlog: the application does not run; what its coordinators have decided is in their queue spaces, "
		    "where qprinttrans of qmadmin shows it, and nothing of it is on %s", device);
		return;
	}
	if ((dump = fopen(file, "we")) == NULL) {
		commands_error("dumptlog: %s: %s", file, strerror(errno));
		return;
	}
	(void)dump_decisions(a, admin_option(a, o, 'g'), m->lmid);
	if (fflush(dump) != 0 || ferror(dump))
		commands_error("dumptlog: %s: %s", file, strerror(errno));
	fclose(dump);
}

void
cmd_loadtlog(struct commands *r, const struct opts *o)
{
	(void)r;
	(void)o;
	commands_error("loadtlog: nothing is to be loaded; decisions move with the queue spaces that keep them");
}
