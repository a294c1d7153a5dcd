/*
 * crdl, dsdl, chdl, lidl, livtoc: the universal device list and the table of contents.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "qparse.h"
#include "session.h"

static int
refused(struct session *s, int code, char *why)
{
	int number = code == DEVE_OWNER ? 1105 : code == DEVE_NOENT || code == DEVE_OS || code == DEVE_FORMAT ||
	    code == DEVE_VERSION ? 1104 : 0;

	say_error(s, number, "%s", why != NULL ? why : "out of memory");
	free(why);
	return -1;
}

static int
load(struct session *s, struct device *d)
{
	char *why = NULL;
	int rc = device_read(s->device, d, &why);

	return rc == DEVE_OK ? 0 : refused(s, rc, why);
}

static int
number_of(struct session *s, const struct record *r, const char *key, const char *what, long max, long *out)
{
	const char *text = record_get(r, key);

	if (text != NULL && qparse_long(text, 0, max, out) == 0)
		return 0;
	say_error(s, 0, "%s \"%.60s\" is not a number from 0 to %ld", what, text != NULL ? text : "", max);
	return -1;
}

int
cmd_crdl(struct session *s, const struct args *a)
{
	const struct field fields[] = { { "device", "Device name:", NULL },
		{ "offset", "Device offset [default=0]:", "0" },
		{ "size", "Device size in disk pages [default=1000]:", "1000" } };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	char *why = NULL, *note = NULL;
	long offset, size;
	int rc = -1;

	if (r == NULL || collect(s, fields, 3, a->argc, a->argv, r) != 0 || number_of(s, r, "offset", "offset",
	    999999999L, &offset) != 0 ||
	    number_of(s, r, "size", "size", 999999999L, &size) != 0)
		goto done;
	if ((rc = device_add(s->device, record_get(r, "device"), offset, size, &why, &note)) != DEVE_OK) {
		rc = refused(s, rc, why);
		goto done;
	}
	if (note != NULL)
		say_info(s, 0, "%s", note);
	if (size == 0)
		size = DEVICE_DEFAULT_SIZE;
	say(s, "Created device %s, offset %ld, size %ld on %s\n", record_get(r, "device"), offset, size, s->device);
done:
	free(note);
	document_free(&doc);
	return rc;
}

static int
index_of(struct session *s, const struct args *a, const struct device *d, int *index)
{
	const struct field fields[] = { { "index", "Universal device list index:", NULL } };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);
	long v;
	int rc = -1;

	if (r == NULL || collect(s, fields, 1, a->argc, a->argv, r) != 0)
		goto done;
	if ((rc = qparse_long(record_get(r, "index"), 0, d->n_entries - 1, &v)) != 0)
		say_error(s, 0, "%s: no entry \"%.60s\" in the universal device list (0 to %d)", a->name,
		    record_get(r, "index"), d->n_entries - 1);
	else
		*index = (int)v;
done:
	document_free(&doc);
	return rc;
}

int
cmd_dsdl(struct session *s, const struct args *a)
{
	struct device d;
	char *why = NULL;
	int rc, index;

	if (load(s, &d) != 0 || index_of(s, a, &d, &index) != 0)
		return -1;
	if (!args_flag(a, 'y') && !ask_yes(s, "Remove device %s, offset %ld from the universal device list",
	    d.entry[index].name, d.entry[index].offset))
		return -1;
	if ((rc = device_remove(s->device, index, &why)) != DEVE_OK)
		return refused(s, rc, why);
	say_verbose(s, "Removed device %s, offset %ld\n", d.entry[index].name, d.entry[index].offset);
	return 0;
}

int
cmd_chdl(struct session *s, const struct args *a)
{
	struct device d;
	char *why = NULL, *name = NULL;
	int rc, index;

	if (load(s, &d) != 0 || index_of(s, a, &d, &index) != 0)
		return -1;
	if (a->argc > 1)
		name = strdup(a->argv[1]);
	else {
		say(s, "name: %s\n", d.entry[index].name);
		if (ask(s, "New device name:", NULL, &name) != 0)
			return -1;
	}
	rc = device_rename(s->device, index, name, &why);
	if (rc != DEVE_OK)
		rc = refused(s, rc, why);
	else
		say_verbose(s, "Renamed device %s to %s\n", d.entry[index].name, name);
	free(name);
	return rc;
}

static void
show_entry(struct session *s, const struct device *d, int index)
{
	struct device_free piece[DEVICE_MAX_TABLES + 1];
	const struct device_entry *e = &d->entry[index];
	int n;

	say(s, "universal device index. %d:\n  name: %s\n  start: %ld\n  size: %ld\n", index, e->name, e->offset,
	    e->size);
	if (!s->con.verbose)
		return;
	n = device_free_map(d, index, piece, DEVICE_MAX_TABLES + 1);
	say(s, "  free space map(%d %s used %d available):\n", n, n == 1 ? "entry" : "entries", n < 48 ? 48 - n : 0);
	for (int i = 0; i < n; i++)
		say(s, "    size[%d]: %ld  addr[%d]: %ld\n", i + 1, piece[i].size, i + 1, piece[i].addr);
}

int
cmd_lidl(struct session *s, const struct args *a)
{
	struct device d;
	int index = -1;

	if (load(s, &d) != 0 || (a->argc > 0 && index_of(s, a, &d, &index) != 0))
		return -1;
	console_page(&s->con);
	for (int i = 0; i < d.n_entries; i++)
		if (index < 0 || index == i)
			show_entry(s, &d, i);
	console_page_end(&s->con);
	return 0;
}

int
cmd_livtoc(struct session *s, const struct args *a)
{
	struct device d;

	(void)a;
	if (load(s, &d) != 0)
		return -1;
	console_page(&s->con);
	for (int i = 0; i < d.n_tables; i++) {
		const struct device_table *t = &d.table[i];
		say(s, "volume table of contents entry. %d:\n  name: %s\n  kind: %s\n  device: %s\n  offset: %ld\n  pages: %ld\n  extent: %d\n",
		    i, t->name, t->kind, d.entry[t->entry].name, t->offset, t->pages, t->extent);
	}
	console_page_end(&s->con);
	return 0;
}
