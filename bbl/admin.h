/*
 * admin - what tmadmin's commands share.  For this folder only.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include "app.h"
#include "commands.h"
#include "trans.h"

/* Modes of tmadmin: the bits of commands.mode. */
enum { MODE_RUNNING = 1, MODE_BOOT = 2, MODE_CONFIG = 4, MODE_READ_ONLY = 8 };
#define MODE_ANY (MODE_RUNNING | MODE_BOOT | MODE_CONFIG | MODE_READ_ONLY)
#define MODE_LOOK (MODE_RUNNING | MODE_READ_ONLY)	/* with a bulletin board */
#define MODE_CHANGE (MODE_RUNNING | MODE_BOOT | MODE_CONFIG)

struct admin {
	struct app app;
	bool have_app;			/* TUXCONFIG could be read */
	char *why_no_app;
	char *defaults[128];		/* of `default`, by option letter */
	struct trans trans;		/* as the latest printtrans showed them: what indices mean */
	bool listed;
};

/* The option as given, else its default, else NULL. */
const char *admin_option(const struct admin *a, const struct opts *o, int letter);

/* admin_look.c */
void cmd_psr(struct commands *r, const struct opts *o);
void cmd_psc(struct commands *r, const struct opts *o);
void cmd_pclt(struct commands *r, const struct opts *o);
void cmd_pq(struct commands *r, const struct opts *o);
void cmd_bbs(struct commands *r, const struct opts *o);
void cmd_bbparms(struct commands *r, const struct opts *o);
void cmd_serverparms(struct commands *r, const struct opts *o);

/* admin_device.c */
void cmd_crdl(struct commands *r, const struct opts *o);
void cmd_dsdl(struct commands *r, const struct opts *o);
void cmd_lidl(struct commands *r, const struct opts *o);
void cmd_livtoc(struct commands *r, const struct opts *o);
void cmd_crlog(struct commands *r, const struct opts *o);
void cmd_dslog(struct commands *r, const struct opts *o);
/* The machine whose log is meant: -m, its default, or this one; one that has a TLOGDEVICE.  NULL: said why. */
const struct ubb_machine *admin_log_machine(const struct commands *r, const struct opts *o);
const char *admin_log_name(const struct ubb_machine *m);

/* admin_trans.c */
void cmd_pt(struct commands *r, const struct opts *o);
void cmd_committrans(struct commands *r, const struct opts *o);
void cmd_aborttrans(struct commands *r, const struct opts *o);

/* admin_tlog.c */
void cmd_dumptlog(struct commands *r, const struct opts *o);
void cmd_loadtlog(struct commands *r, const struct opts *o);

#endif
