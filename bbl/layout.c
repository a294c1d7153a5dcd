#include "layout.h"

#include <stdlib.h>
#include <string.h>

static const char *
value(const struct record *r, const char *key)
{
	const char *v = record_get(r, key);

	return v != NULL ? v : "";
}

static bool
passes(const char *wanted, const struct record *r, const char *key)
{
	return wanted == NULL || strcmp(wanted, value(r, key)) == 0;
}

/* A name in a column of `width`: one that is too long shows that it goes on. */
static const char *
cut(const char *name, size_t width, char *buf)
{
	if (strlen(name) <= width)
		snprintf(buf, width + 1, "%s", name);
	else
		snprintf(buf, width + 1, "%.*s+", (int)width - 1, name);
	return buf;
}

static void
block(FILE *out, const struct record *r, const char *const (*labels)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%*s: %s\n", i == 0 ? "" : "  ", (int)(i == 0 ? 18 : 16), labels[i][0], value(r, labels[i][1]));
	fprintf(out, "\n");
}
#define BLOCK(out, r, labels) block(out, r, labels, sizeof labels / sizeof *labels)

static void
psr_line(FILE *out, const struct record *r)
{
	char group[9], current[32];
	const char *service = value(r, "current");

	snprintf(current, sizeof current, "%s", *service != '\0' ? service : "(  IDLE )");
	fprintf(out, "%-14.14s %-11.11s %-8s%8ld%7ld%10ld %s\n", value(r, "program"), value(r, "queue"),
	    cut(value(r, "group"), 8, group), record_long(r, "srvid", 0), record_long(r, "done", 0),
	    record_long(r, "load", 0), current);
}

void
layout_psr(FILE *out, const struct document *rows, const struct layout_show *show)
{
	static const char *const labels[][2] = { { "Group ID", "group" }, { "Server ID", "srvid" }, { "Machine ID", "lmid" },
		{ "Process ID", "pid" }, { "Request Q Addr", "queue" }, { "Prog Name", "program" }, { "CLOPT", "clopt" },
		{ "Generation", "generation" }, { "Status", "state" }, { "Requests Done", "done" }, { "Load Done", "load" },
		{ "Current Service", "current" }, { "Up Time", "uptime" } };

	if (!show->verbose)
		fprintf(out, "Prog Name      Queue Name  Grp Name      ID RqDone Load Done Current Service\n"
		    "---------      ----------  --------      -- ------ --------- ---------------\n");
	for (size_t i = 0; i < rows->n; i++) {
		const struct record *r = &rows->rec[i];

		if (!passes(show->lmid, r, "lmid") || !passes(show->group, r, "group") || !passes(show->srvid, r, "srvid") ||
		    !passes(show->queue, r, "queue"))
			continue;
		if (show->verbose)
			BLOCK(out, r, labels);
		else
			psr_line(out, r);
	}
	fprintf(out, "\n");
}

static void
psc_line(FILE *out, const struct record *r)
{
	char service[13], function[13], program[11], group[9];

	fprintf(out, "%-12s %-12s %-10s %-8s%4ld%11.11s%8ld %s\n", cut(value(r, "service"), 12, service),
	    cut(value(r, "function"), 12, function), cut(value(r, "program"), 10, program), cut(value(r, "group"), 8, group),
	    record_long(r, "srvid", 0), value(r, "lmid"), record_long(r, "done", 0), value(r, "status"));
}

void
layout_psc(FILE *out, const struct document *rows, const struct layout_show *show)
{
	static const char *const labels[][2] = { { "Service Name", "service" }, { "Routine Name", "function" },
		{ "Prog Name", "program" }, { "Group ID", "group" }, { "Server ID", "srvid" }, { "Machine ID", "lmid" },
		{ "Requests Done", "done" }, { "Status", "status" } };

	if (!show->verbose)
		fprintf(out, "Service Name Routine Name Prog Name  Grp Name  ID    Machine  # Done Status\n"
		    "------------ ------------ ---------  --------  --    -------  ------ ------\n");
	for (size_t i = 0; i < rows->n; i++) {
		const struct record *r = &rows->rec[i];

		if (!passes(show->lmid, r, "lmid") || !passes(show->group, r, "group") || !passes(show->srvid, r, "srvid") ||
		    !passes(show->service, r, "service") || !passes(show->queue, r, "queue") ||
		    (show->system_services == 0 && value(r, "service")[0] == '.'))
			continue;
		if (show->verbose)
			BLOCK(out, r, labels);
		else
			psc_line(out, r);
	}
	fprintf(out, "\n");
}

static void
pclt_line(FILE *out, const struct record *r)
{
	long t = record_long(r, "time", 0);
	char time[32];

	snprintf(time, sizeof time, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
	fprintf(out, "%-15.15s %-15.15s %-15.15s %8s %-7s %ld/%ld/%ld\n", value(r, "lmid"), value(r, "usrname"),
	    value(r, "cltname"), time, value(r, "status"), record_long(r, "begun", 0), record_long(r, "committed", 0),
	    record_long(r, "aborted", 0));
}

void
layout_pclt(FILE *out, const struct document *rows, const struct layout_show *show)
{
	static const char *const labels[][2] = { { "LMID", "lmid" }, { "User Name", "usrname" }, { "Client Name", "cltname" },
		{ "Process ID", "pid" }, { "Status", "status" }, { "Time", "time" } };

	if (!show->verbose)
		fprintf(out, "     LMID         User Name       Client Name    Time    Status  Bgn/Cmmt/Abrt\n"
		    "--------------- --------------- --------------- -------- ------- -------------\n");
	for (size_t i = 0; i < rows->n; i++) {
		const struct record *r = &rows->rec[i];

		if (!passes(show->lmid, r, "lmid") || !passes(show->usrname, r, "usrname") || !passes(show->cltname, r, "cltname"))
			continue;
		if (show->verbose)
			BLOCK(out, r, labels);
		else
			pclt_line(out, r);
	}
	fprintf(out, "\n");
}

static void
pq_line(FILE *out, const struct record *r)
{
	long serving = record_long(r, "serving", 0), queued = record_long(r, "queued", 0);

	fprintf(out, "%-14.14s %-11.11s%8ld%10ld%10ld%10.1f%11.11s\n", value(r, "program"), value(r, "queue"), serving,
	    record_long(r, "wkqueued", 0), queued, serving > 0 ? (double)queued / (double)serving : 0.0, value(r, "lmid"));
}

void
layout_pq(FILE *out, const struct document *rows, const struct layout_show *show)
{
	static const char *const labels[][2] = { { "Prog Name", "program" }, { "Queue Name", "queue" },
		{ "Serving", "serving" }, { "Work Queued", "wkqueued" }, { "Queued", "queued" }, { "Machine", "lmid" } };

	if (!show->verbose)
		fprintf(out, "Prog Name      Queue Name  # Serve Wk Queued  # Queued  Ave. Len    Machine\n"
		    "---------      ------------------- ---------  --------  --------    -------\n");
	for (size_t i = 0; i < rows->n; i++) {
		const struct record *r = &rows->rec[i];

		if (!passes(show->lmid, r, "lmid") || !passes(show->queue, r, "queue"))
			continue;
		if (show->verbose)
			BLOCK(out, r, labels);
		else
			pq_line(out, r);
	}
	fprintf(out, "\n");
}

void
layout_bbs(FILE *out, const struct document *rows)
{
	static const struct record none;
	const struct record *r = rows->n > 0 ? &rows->rec[0] : &none;

	fprintf(out, "Current Bulletin Board Status:\n"
	    "\tCurrent number of servers: %ld\n"
	    "\tCurrent number of services: %ld\n"
	    "\tCurrent number of request queues: %ld\n"
	    "\tCurrent number of server groups: %ld\n"
	    "\tCurrent number of interfaces: 0\n\n",
	    record_long(r, "servers", 0), record_long(r, "services", 0), record_long(r, "queues", 0),
	    record_long(r, "groups", 0));
}
