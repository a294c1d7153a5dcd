/*
 * plan - which processes a tmboot or tmshutdown is about, and in which order.
 *
 * Boot order: BBL; the transaction managers, group by group in file order; servers with SEQUENCE, low to high; the
 * others in file order.  Shutdown order is the exact reverse.
 *
 * The selectors restrict together: a process must pass each that is given.  Values of one selector that is given
 * several times are alternatives.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>

#include "args.h"
#include "ubb.h"

enum plan_kind { PLAN_BBL, PLAN_TMS, PLAN_SERVER };

struct plan_step {
	enum plan_kind kind;
	const struct ubb_group *group;		/* NULL for BBL */
	const struct ubb_server *conf;		/* PLAN_SERVER; NULL when only BBL knows it */
	char groupname[32];
	long srvid;				/* 0 for BBL */
	char name[256];				/* as `exec` shows it */
	char args[1100];
};
struct plan { size_t n; struct plan_step *v; };

struct plan_select {
	bool all_admin;			/* -A */
	bool master_admin;		/* -M */
	bool all_servers;		/* -S */
	struct args bbl_lmid;		/* -B */
	struct args lmid, group, tms_group, srvid, aout, sequence;	/* -l -g -T -i -s -o */
};

/* Read one option letter into sel; false when it is none of them. */
bool plan_select_option(struct plan_select *sel, int letter, const char *value);
bool plan_select_is_all(const struct plan_select *sel);	/* nothing narrows the scope */
/* Are the values numbers, are groups, machines configured?  0, or -1 with a line in *why (malloc'ed). */
int plan_select_check(const struct plan_select *sel, const struct ubb *u, char **why);
void plan_select_free(struct plan_select *sel);

/* Boot order on machine `here`.  0 or -1 (out of memory). */
int plan_boot(const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel, struct plan *out);
/* The same processes with MAX instances instead of MIN, in reverse: what may have to be stopped. */
int plan_shutdown(const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel, struct plan *out);
void plan_free(struct plan *p);

#define PLAN_OPTIONS "ASMl:g:T:i:s:o:B:"

#endif
