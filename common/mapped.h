/*
 * mapped - a table in a file of the run directory, which every process maps: the file itself; what is in its slots is the table's.
 *
 * The file, of this machine and its byte order:
 *    offset  size  field
 *         0     8  magic
 *         8     4  version
 *        12     4  n, slots
 *        16    48  boot of the machine, text, zero padded
 *        64   192  the table's, zero when it is made
 *       256        n slots
 *
 * Errors     0, or -1 with one line in *why (malloc'ed; NULL: out of memory).
 */
#ifndef MAPPED_H
#define MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAPPED_HEAD 64			/* where the table's own part of the head begins */
#define MAPPED_SLOTS 256		/* and the slots */

struct mapped_kind { char magic[8]; uint32_t version; unsigned max; size_t slot; };	/* of slots the most, and bytes of one */
struct mapped { char *p; size_t size; unsigned n; dev_t dev; ino_t ino; };

/* n: how many slots it must have; 0: any number.  Not there, damaged, of another version, or boot: -1. */
int mapped_open(const struct mapped_kind *kind, const char *path, unsigned n, struct mapped *out, char **why);
/* The same, but a new one with n slots is made where that does not go.  larger: one that has more is kept, too. */
int mapped_make(const struct mapped_kind *kind, const char *path, unsigned n, mode_t mode, bool larger, struct mapped *out, char **why);
bool mapped_is_at(const struct mapped *m, const char *path);	/* the file is the one that is mapped */
void mapped_close(const struct mapped *m);

#endif
