/*
 * given_impl.h - what the files of given share among themselves.
 */
#ifndef GIVEN_IMPL_H
#define GIVEN_IMPL_H

#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "given.h"

struct given {
	char dir[PATH_MAX], tuxdir[PATH_MAX], node[80];
	long key;
	int key_fd;
	bool booted;
};

#define GIVEN_GRPNO(n) ((n) == 1 ? 2 : 100 + (n))	/* of the group of space n; those between are for stories */

void given_remove(struct given *g);
void given_append(const struct given *g, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
char *read_all(FILE *f);

#endif
