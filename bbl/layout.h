/*
 * layout - the tables of tmadmin, column by column as scripts cut them out.
 *
 * Each takes the rows that BBL answered and shows those that `show` lets pass.  A value of show that is NULL lets all
 * pass.  In verbose mode a row is a block of `label: value` lines.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stdbool.h>
#include <stdio.h>

#include "trans.h"
#include "wire.h"

struct layout_show {
	const char *lmid, *group, *srvid, *queue, *service, *usrname, *cltname;
	int system_services;		/* 0: names that begin with a dot are left out */
	bool verbose;
};

void layout_psr(FILE *out, const struct document *rows, const struct layout_show *show);
void layout_psc(FILE *out, const struct document *rows, const struct layout_show *show);
void layout_pclt(FILE *out, const struct document *rows, const struct layout_show *show);
void layout_pq(FILE *out, const struct document *rows, const struct layout_show *show);
void layout_bbs(FILE *out, const struct document *rows);
/* The number of a transaction is its index in t, whatever is left out.  now_us: wall clock */
void layout_pt(FILE *out, const struct trans *t, const struct layout_show *show, int64_t now_us);

#endif
