/*
 * boot - what a TMQUEUE finds in TUXCONFIG about itself.
 */
#ifndef TMQUEUE_BOOT_H
#define TMQUEUE_BOOT_H

#include "options.h"
#include "ubb.h"
#include "wire.h"

struct boot {
	struct ubb *ubb;
	const struct ubb_machine *machine;
	const struct ubb_group *group;
	const struct ubb_server *server;	/* NULL when SRVID is in no record */
	char device[512], space[32];		/* of the group's OPENINFO */
	struct wire_groups groups;		/* this one, and others with the same device and space */
	char endpoint[256], bbl_endpoint[256], bbl_program[4096];
	char tuxconfig[4096];
	unsigned perm;
};
/* 0, or -1 with a line in `why`: no TUXCONFIG, no such group, a group that is not one of queues. */
int boot_find(const struct options *o, struct boot *b, char *why, size_t why_size);
void boot_done(struct boot *b);

#endif
