/*
 * app - the application that TUXCONFIG names, for the tools and BBL alike, and questions to its BBL.
 *
 * Errors     0 or -1 with one line in *why (malloc'ed).
 */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "ubb.h"
#include "wire.h"

struct app {
	struct ubb *ubb;
	const struct ubb_machine *machine;	/* this one */
	char tuxconfig[4096];			/* as the environment has it */
	char rundir[256], endpoint[300];	/* of BBL */
};

/* Read TUXCONFIG and check that it belongs to this machine, byte for byte, and that APPDIR is there. */
int app_open(struct app *a, char **why);
int app_check_rundir(const struct app *a, char **why);	/* nobody else may change what is in it; none is fine */
int app_check_admin(const struct app *a, char **why);	/* only the administrator (UID), or root */
void app_close(struct app *a);
long app_perm(const struct app *a);

enum { APP_LOCK = 0, APP_STATE, APP_STOPPED, APP_GTT, APP_SLOTS };
void app_file(const struct app *a, int which, char *buf, size_t size);	/* files in the run directory */

/* A question to BBL: pairs of key and value, ended by NULL.  0: an answer came (bb_reply_free() it); LINK codes. */
#define APP_REACH_MS 5000	/* for a BBL to be there at all: it may have ended since it was looked for */
int app_ask(const struct app *a, const char *op, int64_t timeout_ms, struct wire_adminreply *reply, ...)
    __attribute__((sentinel));
bool app_is_booted(const struct app *a, pid_t *bbl);	/* BBL answers */

/* The run directory's plain files and sockets, then the directory itself. */
void app_remove_rundir(const char *dir);

/* Start BBL and wait until it answers. */
enum { LAUNCH_FAILED = -1, LAUNCH_STARTED = 0, LAUNCH_DUPLICATE = 1 };
int app_launch_bbl(const struct app *a, pid_t *pid, char **why);
bool app_was_shut_down(const struct app *a);	/* or never booted: no BBL that died is to be missed */
bool app_servers_live(const struct app *a);	/* processes that a BBL started, whether or not it runs still */
/* BBL died and its servers live: start another, which takes them in.  true: one runs. */
bool app_bring_back_bbl(const struct app *a);
/* The same, but by its servers: they start it within seconds.  true: it answers. */
bool app_await_bbl(const struct app *a);

/* Ask on stdout, read a line of `in`: true for an answer that begins with y.  End of file is no. */
bool app_confirm(FILE *in, const char *question);

#endif
