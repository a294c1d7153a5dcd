/*
 * device_impl - the text of a device file and the lock on its directory, for device.c and tests only.
 */
#ifndef DEVICE_IMPL_H
#define DEVICE_IMPL_H

#include <stdbool.h>

#include "device.h"

#define DEVICE_TEXT_MAX 65536

/* *why := the formatted line (NULL when memory is short); returns code. */
int device_fail(char **why, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fill d->path and d->dir: symbolic links resolved, so that one device has one directory whatever it is called. */
int device_locate(const char *path, struct device *d, char **why);

/* Text to lists.  `where` names the file in messages.  Sets uuid, entries and tables of *d only. */
int device_text_parse(const char *text, size_t len, const char *where, struct device *d, char **why);
/* Lists to text; malloc'ed; NULL when out of memory. */
char *device_text_format(const struct device *d);

int device_file_load(struct device *d, char **why);		/* d is located */
int device_file_store(const struct device *d, char **why);	/* atomic: old text or new text, never less */

/* The stamp of a directory: DEVE_NOENT when there is none. */
int device_stamp_read(const char *dir, char uuid[37]);
int device_stamp_write(const char *dir, const char *uuid, char **why);
void device_uuid_make(char uuid[37]);

/* Make the directory when it is missing, and lock it against every other writer.  The lock ends with close(). */
int device_lock(const struct device *d, int *fd, char **why);
bool device_dir_is_bare(const char *dir);	/* nothing but the lock and the stamp */
/* Move the directory to <dir>.old, deleting what was there before. */
int device_dir_set_aside(const char *dir, char **why);

#endif
