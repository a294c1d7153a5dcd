/*
 * trans - the transactions of an application, put together from what its queue managers and its initiators say.
 *
 * A transaction is a run of parts with the same id, one for each group (group "": its initiator).  Runs are in the order of their
 * begin; the number of a run is the index that committrans and aborttrans take.
 */
#ifndef TRANS_H
#define TRANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app.h"
#include "gtrid.h"

struct trans_part {
	char gtrid[GTRID_HEX], group[WIRE_GROUP], lmid[32], coordinator[WIRE_GROUP];
	char state[32];			/* as qprinttrans has it; "decided": this group coordinated */
	char client[64];		/* who began it; "": not known */
	char told[WIRE_MAX_GROUPS * (WIRE_GROUP + 1)];	/* groups that the coordinator waits for */
	bool doomed;
	int64_t began_us, deadline_us;	/* 0: not known, none */
};
struct trans { struct trans_part *part; size_t n, room; };	/* zero-initialise */

struct trans_part *trans_add(struct trans *t);	/* zeroed; NULL: out of memory; valid until the next one */
void trans_sort(struct trans *t);		/* once all are there */
void trans_free(struct trans *t);
size_t trans_count(const struct trans *t);	/* transactions */
/* The parts of transaction `index`.  NULL: there is none. */
const struct trans_part *trans_find(const struct trans *t, size_t index, size_t *n);
size_t trans_run(const struct trans *t, size_t from);	/* how many parts from `from` on are of one transaction */

/* TMGACTIVE, TMGREADY and so on. */
const char *trans_part_status(const struct trans_part *p);
const char *trans_status(const struct trans_part *p, size_t n);
const char *trans_coordinator(const struct trans_part *p, size_t n);	/* "": none yet */

/*
 * All of them.  Only groups of machine `lmid` (NULL: any) are asked; `silent` is told each group that does not answer.
 * 0, or -1: out of memory.
 */
int trans_gather(const struct app *a, const char *lmid, void (*silent)(const char *group, const char *why), struct trans *t);

#endif
