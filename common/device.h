/*
 * device - the file that QMCONFIG names, and the tlog device: universal device list and table of contents.
 *
 * The file is a short text: format version, UUID, device list entries, table of contents.  Data lies beside it in
 * `<device>.d/`, stamped with the same UUID.  Changes are atomic (temporary file, fsync, rename) under a lock on
 * `<device>.d/lock`; readers need no lock.  A device file created beside a directory of another UUID moves that
 * directory to `<device>.d.old` (the last such is kept) and says so.
 *
 * Units      Sizes and offsets are pages of DEVICE_PAGE bytes, as crdl takes them.
 * Errors     0 or a DEVE code; *why (may be NULL) gets one malloc'ed line naming file, place and cause.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stddef.h>
#include <stdint.h>

#define DEVICE_PAGE 512
#define DEVICE_HEADER_PAGES 26	/* of entry 0: universal device list and table of contents */
#define DEVICE_DEFAULT_SIZE 1000
#define DEVICE_MAX_ENTRIES 25
#define DEVICE_MAX_TABLES 100

enum { DEVE_OK = 0, DEVE_NOENT = -1,	/* no such device file */
	DEVE_FORMAT = -2,		/* not a device file, or damaged: file, line, cause */
	DEVE_VERSION = -3,		/* of another version: found and wanted */
	DEVE_OWNER = -4,		/* effective user does not own it */
	DEVE_EXIST = -5, DEVE_INVAL = -6, DEVE_NOSPACE = -7,	/* no room on the device list for that many pages */
	DEVE_INUSE = -8, DEVE_OS = -9, DEVE_NOSUCH = -10 };	/* NOSUCH: no such entry or table */

struct device_entry { char name[257]; long offset, size; };
struct device_table { char name[32]; char kind[8]; int entry; long offset, pages; int extent;
    };	/* kind: qspace, tlog */
struct device {
	char path[4096], dir[4096];	/* the file; the directory beside it */
	char uuid[37];
	int n_entries; struct device_entry entry[DEVICE_MAX_ENTRIES];
	int n_tables; struct device_table table[DEVICE_MAX_TABLES];
};

int device_read(const char *path, struct device *out, char **why);
/* crdl: the first entry creates the file.  name NULL: the device itself; size 0: default 1000. */
int device_add(const char *path, const char *name, long offset, long size, char **why, char **note);
int device_remove(const char *path, int index,
    char **why);		/* dsdl: entry 0 only when nothing else is left */
int device_rename(const char *path, int index, const char *newname, char **why);	/* chdl */
/* Reserve pages for a table (first fit over the entries; in several extents when no piece is large enough) / give them back. */
int device_table_add(const char *path, const char *name, const char *kind, long pages, char **why);
int device_table_extend(const char *path, const char *name, const char *kind, long pages, char **why);	/* qaddext */
int device_table_remove(const char *path, const char *name, const char *kind, char **why);
long device_table_pages(const struct device *d, const char *name,
    const char *kind);	/* of all extents; 0: no such table */
long device_free_pages(const struct device *d);			/* on all entries together */
/* Free pieces of an entry, ascending address, for lidl in verbose mode; returns how many, at most max. */
struct device_free { long addr, size; };
int device_free_map(const struct device *d, int index, struct device_free *out, int max);

#endif
