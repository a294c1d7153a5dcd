/* tmadmin: devices and the transaction log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "device.h"
#include "tlog.h"

#define DEFAULT_BLOCKS 1000

/* -z, its default, or FSCONFIG.  NULL: refused. */
static const char *
device_of(const struct commands *r, const struct opts *o)
{
	const char *device = admin_option(r->context, o, 'z');

	if (device == NULL && (device = getenv("FSCONFIG")) != NULL && *device == '\0')
		device = NULL;
	if (device == NULL)
		commands_error("which device? Name it with -z, or in FSCONFIG");
	return device;
}

static bool
number_of(const char *text, long otherwise, long *out)
{
	char *end;

	*out = otherwise;
	if (text == NULL)
		return true;
	errno = 0;
	*out = strtol(text, &end, 10);
	if (errno == 0 && *text != '\0' && *end == '\0' && *out >= 0)
		return true;
	commands_error("%s is not a number of blocks", text);
	return false;
}

static void
tell(int rc, char **why, const char *what, const char *of)	/* **: its value is that of after the call that gives rc */
{
	if (rc < 0)
		commands_error("%s %s: %s", what, of, *why != NULL ? *why : "failed");
	free(*why);
}

void
cmd_crdl(struct commands *r, const struct opts *o)
{
	const char *device = device_of(r, o), *name = o->n_rest > 0 ? o->rest[0] : NULL;
	char *why = NULL, *note = NULL;
	long blocks, offset;
	int rc;

	if (device == NULL || !number_of(admin_option(r->context, o, 'b'), DEFAULT_BLOCKS, &blocks) ||
	    !number_of(admin_option(r->context, o, 'o'), 0, &offset))
		return;
	if ((rc = device_add(device, name, offset, blocks, &why, &note)) == DEVE_OK) {
		if (note != NULL)
			fprintf(r->con.out, "%s\n", note);
		fprintf(r->con.out, "Created device %s, offset %ld, size %ld on %s\n", name != NULL ? name : device, offset, blocks,
		    device);
	}
	free(note);
	tell(rc, &why, "crdl", device);
}

static bool
device_load(const struct commands *r, const struct opts *o, struct device *d)
{
	const char *device = device_of(r, o);
	char *why = NULL;
	int rc;

	if (device == NULL)
		return false;
	if ((rc = device_read(device, d, &why)) == DEVE_OK) {
		free(why);
		return true;
	}
	tell(rc, &why, "device", device);
	return false;
}

/* The list index that an argument names; -1 when there is none; -2: refused. */
static int
index_of(const struct opts *o, const struct device *d)
{
	char *end;
	long i;

	if (o->n_rest == 0)
		return -1;
	i = strtol(o->rest[0], &end, 10);
	if (*end == '\0' && i >= 0 && i < d->n_entries)
		return (int)i;
	commands_error("no entry \"%s\" in the universal device list of %s (0 to %d)", o->rest[0], d->path, d->n_entries - 1);
	return -2;
}

static void
entry_show(const struct commands *r, const struct device *d, int i)
{
	struct device_free piece[DEVICE_MAX_TABLES + 1];
	int n;

	fprintf(r->con.out, "universal device index. %d:\n  name: %s\n  start: %ld\n  size: %ld\n", i, d->entry[i].name,
	    d->entry[i].offset, d->entry[i].size);
	if (!r->con.verbose)
		return;
	n = device_free_map(d, i, piece, DEVICE_MAX_TABLES + 1);
	fprintf(r->con.out, "  free space map(%d %s used %d available):\n", n, n == 1 ? "entry" : "entries", n < 48 ? 48 - n : 0);
	for (int k = 0; k < n; k++)
		fprintf(r->con.out, "    size[%d]: %ld  addr[%d]: %ld\n", k + 1, piece[k].size, k + 1, piece[k].addr);
}

void
cmd_lidl(struct commands *r, const struct opts *o)
{
	struct device d;
	int which;

	if (!device_load(r, o, &d) || (which = index_of(o, &d)) == -2)
		return;
	for (int i = 0; i < d.n_entries; i++)
		if (which < 0 || which == i)
			entry_show(r, &d, i);
}

void
cmd_livtoc(struct commands *r, const struct opts *o)
{
	struct device d;

	if (!device_load(r, o, &d))
		return;
	for (int i = 0; i < d.n_tables; i++)
		fprintf(r->con.out, "volume table of contents entry. %d:\n  name: %s\n  kind: %s\n  device: %s\n  offset: %ld\n"
		    "  pages: %ld\n  extent: %d\n", i, d.table[i].name, d.table[i].kind, d.entry[d.table[i].entry].name,
		    d.table[i].offset, d.table[i].pages, d.table[i].extent);
}

void
cmd_dsdl(struct commands *r, const struct opts *o)
{
	char question[512], *why = NULL;
	struct device d;
	int which;

	if (!device_load(r, o, &d))
		return;
	if (o->n_rest == 0) {
		commands_error("which entry? dsdl wants its index, as lidl shows it");
		return;
	}
	if ((which = index_of(o, &d)) < 0)
		return;
	snprintf(question, sizeof question, "Remove device %s, offset %ld from the universal device list (y/n)?",
	    d.entry[which].name, d.entry[which].offset);
	if (o->v['y'] != NULL || commands_confirm(r, question))
		tell(device_remove(d.path, which, &why), &why, "dsdl", d.path);
}

const struct ubb_machine *
admin_log_machine(const struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	const char *lmid = admin_option(a, o, 'm');
	const struct ubb_machine *m;

	if (!a->have_app) {
		commands_error("%s", a->why_no_app != NULL ? a->why_no_app : "no TUXCONFIG");
		return NULL;
	}
	m = lmid != NULL ? ubb_machine_by_lmid(a->app.ubb, lmid) : a->app.machine;
	if (m == NULL)
		commands_error("machine %s is not in section MACHINES", lmid);
	else if (m->tlogdevice[0] == '\0')
		commands_error("machine %s has no TLOGDEVICE", m->lmid);
	return m != NULL && m->tlogdevice[0] != '\0' ? m : NULL;
}

const char *
admin_log_name(const struct ubb_machine *m)
{
	return m->tlogname[0] != '\0' ? m->tlogname : "TLOG";
}

void
cmd_crlog(struct commands *r, const struct opts *o)
{
	const struct ubb_machine *m = admin_log_machine(r, o);
	char *why = NULL;

	if (m == NULL)
		return;
	if (tlog_exists(m->tlogdevice, admin_log_name(m)) == 1) {
		fflush(r->con.out);
		fprintf(stderr, "TMADMIN_CAT:109: WARN: the transaction log %s on %s exists already\n", admin_log_name(m), m->tlogdevice);
		return;
	}
	tell(tlog_create(m->tlogdevice, admin_log_name(m), m->tlogsize, &why), &why, "crlog", m->tlogdevice);
}

void
cmd_dslog(struct commands *r, const struct opts *o)
{
	const struct ubb_machine *m = admin_log_machine(r, o);
	char question[512], *why = NULL;

	if (m == NULL)
		return;
	if (r->mode == MODE_RUNNING) {
		commands_error("the application runs and may need its transaction log");
		return;
	}
	snprintf(question, sizeof question, "Remove the transaction log %s from %s (y/n)?", admin_log_name(m), m->tlogdevice);
	if (o->v['y'] != NULL || commands_confirm(r, question))
		tell(tlog_destroy(m->tlogdevice, admin_log_name(m), &why), &why, "dslog", m->tlogdevice);
}
