/*
 * What administrators do to a device: entries come and go, tables take pages from them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device_impl.h"

static bool
printable_name(const char *s, size_t max)
{
	size_t n = strlen(s);

	if (n == 0 || n > max)
		return false;
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static int
check_stamp(const struct device *d, char **why)
{
	char uuid[37];

	if (device_stamp_read(d->dir, uuid) != DEVE_OK || strcmp(uuid, d->uuid) == 0)
		return DEVE_OK;		/* a directory without a stamp is a device that was copied without its data */
	return device_fail(why, DEVE_FORMAT,
	    "%s: its directory %s belongs to another device file (uuid %s, expected %s)", d->path,
	    d->dir, uuid, d->uuid);
}

int
device_read(const char *path, struct device *out, char **why)
{
	int rc;

	if (why != NULL)
		*why = NULL;
	if ((rc = device_locate(path, out, why)) != DEVE_OK || (rc = device_file_load(out, why)) != DEVE_OK)
		return rc;
	return check_stamp(out, why);
}

/* Lock an existing device and read it. */
static int
open_for_change(const char *path, struct device *d, int *lock, char **why)
{
	int rc;

	*lock = -1;
	if ((rc = device_read(path, d, why)) != DEVE_OK || (rc = device_lock(d, lock, why)) != DEVE_OK)
		return rc;
	if ((rc = device_file_load(d, why)) == DEVE_OK && (rc = check_stamp(d, why)) == DEVE_OK)
		return DEVE_OK;
	close(*lock);
	*lock = -1;
	return rc;
}

/* --- pages --- */

static int
compare_free(const void *a, const void *b)
{
	const struct device_free *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The pieces of an entry that something lies in, ascending. */
static int
used_map(const struct device *d, int index, struct device_free used[DEVICE_MAX_TABLES + 1])
{
	int n = 0;

	if (index == 0)
		used[n++] = (struct device_free){ 0, DEVICE_HEADER_PAGES };
	for (int i = 0; i < d->n_tables; i++)
		if (d->table[i].entry == index)
			used[n++] = (struct device_free){ d->table[i].offset, d->table[i].pages };
	qsort(used, (size_t)n, sizeof used[0], compare_free);
	return n;
}

int
device_free_map(const struct device *d, int index, struct device_free *out, int max)
{
	struct device_free used[DEVICE_MAX_TABLES + 1];
	const struct device_entry *e;
	long at, end;
	int n_used, n = 0;

	if (index < 0 || index >= d->n_entries)
		return 0;
	e = &d->entry[index];
	at = e->offset;
	end = e->offset + e->size;
	n_used = used_map(d, index, used);
	for (int i = 0; i <= n_used && n < max; i++) {
		long next = i < n_used ? used[i].addr : end;
		if (next > at)
			out[n++] = (struct device_free){ at, next - at };
		if (i < n_used && used[i].addr + used[i].size > at)
			at = used[i].addr + used[i].size;
	}
	return n;
}

long
device_free_pages(const struct device *d)
{
	struct device_free piece[DEVICE_MAX_TABLES + 1];
	long sum = 0;

	for (int i = 0; i < d->n_entries; i++)
		for (int n = device_free_map(d, i, piece, DEVICE_MAX_TABLES + 1), k = 0; k < n; k++)
			sum += piece[k].size;
	return sum;
}

static bool
is_table(const struct device_table *t, const char *name, const char *kind)
{
	return strcmp(t->name, name) == 0 && strcmp(t->kind, kind) == 0;
}

long
device_table_pages(const struct device *d, const char *name, const char *kind)
{
	long sum = 0;

	for (int i = 0; i < d->n_tables; i++)
		if (is_table(&d->table[i], name, kind))
			sum += d->table[i].pages;
	return sum;
}

static void
take_piece(struct device *d, const char *name, const char *kind, int entry, long addr, long pages)
{
	struct device_table *t;
	int extent = 0;

	for (int i = 0; i < d->n_tables; i++)
		if (is_table(&d->table[i], name, kind))
			extent++;
	t = &d->table[d->n_tables++];
	memset(t, 0, sizeof *t);
	snprintf(t->name, sizeof t->name, "%s", name);
	snprintf(t->kind, sizeof t->kind, "%s", kind);
	t->entry = entry;
	t->offset = addr;
	t->pages = pages;
	t->extent = extent;
}

static bool
take_contiguous(struct device *d, const char *name, const char *kind, long pages)
{
	struct device_free piece[DEVICE_MAX_TABLES + 1];

	for (int i = 0; i < d->n_entries; i++)
		for (int n = device_free_map(d, i, piece, DEVICE_MAX_TABLES + 1), k = 0; k < n; k++)
			if (piece[k].size >= pages) {
				take_piece(d, name, kind, i, piece[k].addr, pages);
				return true;
			}
	return false;
}

/* From every hole in turn.  The caller knows that there are enough pages; the table of contents may still be full. */
static bool
take_scattered(struct device *d, const char *name, const char *kind, long pages)
{
	struct device_free piece[DEVICE_MAX_TABLES + 1];

	for (int i = 0; i < d->n_entries && pages > 0; i++)
		for (int n = device_free_map(d, i, piece, DEVICE_MAX_TABLES + 1), k = 0; k < n && pages > 0; k++) {
			long part = piece[k].size < pages ? piece[k].size : pages;
			if (d->n_tables == DEVICE_MAX_TABLES)
				return false;
			take_piece(d, name, kind, i, piece[k].addr, part);
			pages -= part;
		}
	return pages == 0;
}

static int
take_pages(struct device *d, const char *name, const char *kind, long pages, char **why)
{
	long left = device_free_pages(d);

	if (left < pages)
		return device_fail(why, DEVE_NOSPACE, "%s: %ld pages wanted for %s, %ld free on its %d %s", d->path,
		    pages, name, left,
		    d->n_entries, d->n_entries == 1 ? "entry" : "entries");
	if (d->n_tables == DEVICE_MAX_TABLES || (!take_contiguous(d, name, kind, pages) &&
	    !take_scattered(d, name, kind, pages)))
		return device_fail(why, DEVE_NOSPACE, "%s: the table of contents is full (%d entries)", d->path,
		    DEVICE_MAX_TABLES);
	return DEVE_OK;
}

static int
table_grow(const char *path, const char *name, const char *kind, long pages, bool fresh, char **why)
{
	struct device d;
	int rc, lock;

	if (why != NULL)
		*why = NULL;
	if (!printable_name(name, sizeof d.table[0].name - 1) || !printable_name(kind, sizeof d.table[0].kind - 1) ||
	    pages <= 0)
		return device_fail(why, DEVE_INVAL, "%s: bad name or size for a table: \"%.40s\", %ld pages", path,
		    name, pages);
	if ((rc = open_for_change(path, &d, &lock, why)) != DEVE_OK)
		return rc;
	if (fresh && device_table_pages(&d, name, kind) > 0)
		rc = device_fail(why, DEVE_EXIST, "%s: there is a %s of the name %s already", d.path, kind, name);
	else if (!fresh && device_table_pages(&d, name, kind) == 0)
		rc = device_fail(why, DEVE_NOSUCH, "%s: there is no %s of the name %s", d.path, kind, name);
	else if ((rc = take_pages(&d, name, kind, pages, why)) == DEVE_OK)
		rc = device_file_store(&d, why);
	close(lock);
	return rc;
}

int
device_table_add(const char *path, const char *name, const char *kind, long pages, char **why)
{
	return table_grow(path, name, kind, pages, true, why);
}

int
device_table_extend(const char *path, const char *name, const char *kind, long pages, char **why)
{
	return table_grow(path, name, kind, pages, false, why);
}

int
device_table_remove(const char *path, const char *name, const char *kind, char **why)
{
	struct device d;
	int rc, lock, kept = 0;

	if ((rc = open_for_change(path, &d, &lock, why)) != DEVE_OK)
		return rc;
	for (int i = 0; i < d.n_tables; i++)
		if (!is_table(&d.table[i], name, kind))
			d.table[kept++] = d.table[i];
	if (kept == d.n_tables)
		rc = device_fail(why, DEVE_NOSUCH, "%s: there is no %s of the name %s", d.path, kind, name);
	else {
		d.n_tables = kept;
		rc = device_file_store(&d, why);
	}
	close(lock);
	return rc;
}

/* --- entries --- */

/* The name of an entry as a place: two spellings of one file are one file. */
static bool
same_file(const char *a, const char *b)
{
	struct device x, y;

	if (strcmp(a, b) == 0)
		return true;
	return device_locate(a, &x, NULL) == DEVE_OK && device_locate(b, &y, NULL) == DEVE_OK &&
	    strcmp(x.path, y.path) == 0;
}

static int
check_new_entry(const struct device *d, const char *name, long offset, long size, char **why)
{
	if (!printable_name(name, sizeof d->entry[0].name - 1))
		return device_fail(why, DEVE_INVAL, "%.60s: a device name has 1 to %zu printable characters", name,
		    sizeof d->entry[0].name - 1);
	if (offset < 0 || size <= 0 || offset > 999999999L || size > 999999999999L)
		return device_fail(why, DEVE_INVAL, "%s: offset %ld, size %ld: out of range", name, offset, size);
	for (int i = 0; i < d->n_entries; i++) {
		const struct device_entry *e = &d->entry[i];
		if (offset < e->offset + e->size && e->offset < offset + size && same_file(name, e->name))
			return device_fail(why, DEVE_EXIST,
			    "%s: offset %ld, size %ld overlaps entry %d (offset %ld, size %ld)", name,
			    offset, size, i, e->offset, e->size);
	}
	return DEVE_OK;
}

static int
add_more(struct device *d, const char *name, long offset, long size, char **why)
{
	struct device_entry *e;
	int rc;

	if (d->n_entries == DEVICE_MAX_ENTRIES)
		return device_fail(why, DEVE_NOSPACE, "%s: the universal device list is full (%d entries)", d->path,
		    DEVICE_MAX_ENTRIES);
	if ((rc = check_new_entry(d, name, offset, size, why)) != DEVE_OK)
		return rc;
	e = &d->entry[d->n_entries++];
	snprintf(e->name, sizeof e->name, "%s", name);
	e->offset = offset;
	e->size = size;
	return device_file_store(d, why);
}

/* A table's owner holds a lock on <directory>/<table>/lock for as long as it runs. */
static bool
is_owned(const char *dir, const char *table)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX + 264];
	bool owned;
	int fd;

	snprintf(path, sizeof path, "%s/%s/lock", dir, table);
	if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return false;
	owned = fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
	close(fd);
	return owned;
}

static int
check_nobody_inside(const char *dir, char **why)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = DEVE_OK;

	if (d == NULL)
		return DEVE_OK;
	while (rc == DEVE_OK && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && is_owned(dir, e->d_name))
			rc = device_fail(why, DEVE_INUSE,
			    "%s: a process still serves %s from it; stop it before making the device anew", dir,
			    e->d_name);
	closedir(d);
	return rc;
}

static int
check_first_entry(const char *path, const char *name, long offset, long size, char **why)
{
	if (!same_file(path, name))
		return device_fail(why, DEVE_INVAL, "%s: the first entry must be the device itself, %s", name, path);
	if (offset != 0)
		return device_fail(why, DEVE_INVAL, "%s: the first entry must begin at offset 0, not %ld", path, offset);
	if (size <= DEVICE_HEADER_PAGES)
		return device_fail(why, DEVE_INVAL, "%s: %ld pages are too few: the device list itself takes %d", path, size,
		    DEVICE_HEADER_PAGES);
	return DEVE_OK;
}

/* The first entry makes the device.  What an earlier device of this name left behind is moved aside, not touched. */
static int
make_device(struct device *d, const char *name, long offset, long size, int *lock, char **why, char **note)
{
	int rc;

	if (!device_dir_is_bare(d->dir)) {
		if ((rc = check_nobody_inside(d->dir, why)) != DEVE_OK ||
		    (rc = device_dir_set_aside(d->dir, why)) != DEVE_OK)
			return rc;
		if (note != NULL)
			device_fail(note, 0, "%s: data of an earlier device of this name was moved to %s.old",
			    d->path, d->dir);
		close(*lock);
		*lock = -1;
		if ((rc = device_lock(d, lock, why)) != DEVE_OK)
			return rc;
	}
	device_uuid_make(d->uuid);
	if ((rc = device_stamp_write(d->dir, d->uuid, why)) != DEVE_OK)
		return rc;
	return add_more(d, name, offset, size, why);
}

int
device_add(const char *path, const char *name, long offset, long size, char **why, char **note)
{
	struct device d;
	int rc, lock = -1;

	if (why != NULL)
		*why = NULL;
	if (note != NULL)
		*note = NULL;
	if (name == NULL)
		name = path;
	if (size == 0)
		size = DEVICE_DEFAULT_SIZE;
	if ((rc = device_locate(path, &d, why)) != DEVE_OK)
		return rc;
	/* Looked at before the lock, so that a refused device gets no directory. */
	if ((rc = device_file_load(&d, NULL)) == DEVE_NOENT &&
	    (rc = check_first_entry(path, name, offset, size, why)) != DEVE_OK)
		return rc;
	if (rc != DEVE_OK && rc != DEVE_NOENT)
		return device_file_load(&d, why);
	if ((rc = device_lock(&d, &lock, why)) != DEVE_OK)
		return rc;
	rc = device_file_load(&d, NULL);
	if (rc == DEVE_OK) {
		if ((rc = check_stamp(&d, why)) == DEVE_OK)
			rc = add_more(&d, name, offset, size, why);
	} else if (rc == DEVE_NOENT)
		rc = make_device(&d, name, offset, size, &lock, why, note);
	else
		rc = device_file_load(&d, why);
	if (lock >= 0)
		close(lock);
	return rc;
}

static int
check_index(const struct device *d, int index, char **why)
{
	if (index >= 0 && index < d->n_entries)
		return DEVE_OK;
	return device_fail(why, DEVE_NOSUCH, "%s: no entry %d in its device list (0 to %d)", d->path, index,
	    d->n_entries - 1);
}

/* The device goes, and its directory with it unless something lies there that we did not put there. */
static int
remove_device(const struct device *d, char **why)
{
	char path[PATH_MAX + 8];

	if (unlink(d->path) != 0)
		return device_fail(why, DEVE_OS, "%s: %s", d->path, strerror(errno));
	if (device_dir_is_bare(d->dir)) {
		snprintf(path, sizeof path, "%s/uuid", d->dir);
		unlink(path);
		snprintf(path, sizeof path, "%s/lock", d->dir);
		unlink(path);
		rmdir(d->dir);
	}
	return DEVE_OK;
}

static int
remove_entry(struct device *d, int index, char **why)
{
	for (int i = 0; i < d->n_tables; i++)
		if (d->table[i].entry == index)
			return device_fail(why, DEVE_INUSE, "%s: entry %d holds %s %s", d->path, index,
			    d->table[i].kind, d->table[i].name);
	if (index == 0 && d->n_entries > 1)
		return device_fail(why, DEVE_INUSE, "%s: entry 0 holds the device list, and %d other %s left in it",
		    d->path,
		    d->n_entries - 1, d->n_entries == 2 ? "entry is" : "entries are");
	if (index == 0)
		return remove_device(d, why);
	memmove(&d->entry[index], &d->entry[index + 1], (size_t)(d->n_entries - index - 1) * sizeof d->entry[0]);
	d->n_entries--;
	for (int i = 0; i < d->n_tables; i++)
		if (d->table[i].entry > index)
			d->table[i].entry--;
	return device_file_store(d, why);
}

int
device_remove(const char *path, int index, char **why)
{
	struct device d;
	int rc, lock;

	if ((rc = open_for_change(path, &d, &lock, why)) != DEVE_OK)
		return rc;
	if ((rc = check_index(&d, index, why)) == DEVE_OK)
		rc = remove_entry(&d, index, why);
	close(lock);
	return rc;
}

int
device_rename(const char *path, int index, const char *newname, char **why)
{
	struct device d;
	int rc, lock;

	if ((rc = open_for_change(path, &d, &lock, why)) != DEVE_OK)
		return rc;
	if ((rc = check_index(&d, index, why)) == DEVE_OK && !printable_name(newname, sizeof d.entry[0].name - 1))
		rc = device_fail(why, DEVE_INVAL, "%.60s: a device name has 1 to %zu printable characters", newname,
		    sizeof d.entry[0].name - 1);
	if (rc == DEVE_OK) {
		snprintf(d.entry[index].name, sizeof d.entry[index].name, "%s", newname);
		rc = device_file_store(&d, why);
	}
	close(lock);
	return rc;
}
