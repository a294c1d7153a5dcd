/*
 * session - what one qmadmin keeps between commands: names and toggles, never an open queue space.
 *
 * Errors     A command that fails says why on stderr and the session goes on; cmd functions return 0 or -1, which tests
 *            and nobody else looks at.
 */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdio.h>

#include "console.h"
#include "qspace.h"
#include "wire.h"

struct shown_trans { char *gtrid; };

struct session {
	const char *device;
	struct console con;
	char space[QSPACE_NAME_MAX + 1];	/* "": none is open */
	int place;				/* among its processes; -1: none */
	char queue[TMQNAMELEN + 1];	/* qset */
	struct document criteria;	/* qscan: one record, or none */
	struct shown_trans *trans; size_t n_trans;	/* as the last qprinttrans showed them: what its indices mean */
};

/* --- say.c --- */

/* One line on stderr.  number 0: of no catalogue.  Numbered ones go to the user log too. */
void say_error(struct session *s, int number, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void say_warning(struct session *s, int number, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void say_info(struct session *s, int number, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void say(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_verbose(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_trouble(void *session, const char *text);	/* what the console calls for its own */

/* One block of `label: value` lines, in the order of the table.  An absent value is not shown. */
enum show_as { AS_TEXT, AS_TIME, AS_OPTIONAL };	/* TIME: from microseconds; OPTIONAL: not shown when empty */
struct label { const char *key, *label; bool verbose; enum show_as as; };
void show_record(struct session *s, const struct label *table, const struct record *r);	/* table ends with a NULL key */

/* --- ask.c --- */

/* One answer.  deflt NULL: required, asked again until there is one.  *answer is malloc'ed.  -1: input ended, or break. */
int ask(struct session *s, const char *prompt, const char *deflt, char **answer);
bool ask_yes(struct session *s, const char *question, ...)
    __attribute__((format(printf, 2, 3)));	/* end of input: no */

/* A positional argument: where it goes, and how it is asked for when the command line has none. */
struct field { const char *key, *prompt, *deflt; };
/* argv has the positionals from argv[0] on.  -1: input ended, which was said. */
int collect(struct session *s, const struct field *f, int n, int argc, char **argv, struct record *to);

/* --- owner.c: whoever can run a command on a queue space --- */

struct owner;
/* The process that serves the space, or the space itself, opened here until owner_end().  -1: said why. */
int owner_begin(struct session *s, const char *space, const char *what, struct owner **out);
/* Run one operation of qadmin_run().  -1: said why; *out is empty then. */
int owner_run(struct session *s, struct owner *o, const char *op, const struct record *args, struct document *out);
void owner_end(struct owner *o);
/* Run an operation that answers in pages; `each` sees every page.  -1: said why. */
int owner_run_pages(struct session *s, const char *what, const char *op, struct record *r,
    void (*each)(struct session *, const struct document *, void *), void *arg);
/* begin, run, end on the open space.  args may be NULL, out may be NULL. */
int run_on_open_space(struct session *s, const char *what, const char *op, const struct record *args,
    struct document *out);
int run_on_space(struct session *s, const char *space, const char *what, const char *op, const struct record *args,
    struct document *out);

/* --- decided.c --- */

/* What the coordinator of a branch decided, where that can be learned: the running application of TUXCONFIG has the open space. */
enum wire_outcome decision_of(struct session *s, const char *coordinator, const char *gtrid);

/* --- cmd.c --- */

struct args {			/* of one command */
	const char *name;
	char flag[16];		/* options given that take no value, in order */
	struct { char letter; const char *value; } opt[16];
	int n_opt;
	int argc; char **argv;	/* positionals */
};
bool args_flag(const struct args *a, char letter);
const char *args_option(const struct args *a, char letter);	/* NULL: not given */
struct command {
	const char *name, *abbreviation, *options, *syntax, *description;
	int max_args;
	bool needs_space;
	int (*run)(struct session *s, const struct args *a);
};
extern const struct command commands[];	/* ends with a NULL name */
const struct command *command_find(const char *name);
int command_run(void *session, int argc, char **argv);	/* what the console calls for each command */

/* --- cmd_*.c --- */

/* The space a command is about: its argument, else the open one where that is meant, else an answer.  -1: none. */
int space_name(struct session *s, const struct args *a, bool open_one_will_do, char name[QSPACE_NAME_MAX + 1]);
void close_space(struct session *s);
void forget_transactions(struct session *s);	/* no index means anything any more */

int cmd_chdl(struct session *s, const struct args *a);
int cmd_crdl(struct session *s, const struct args *a);
int cmd_dsdl(struct session *s, const struct args *a);
int cmd_lidl(struct session *s, const struct args *a);
int cmd_livtoc(struct session *s, const struct args *a);

int cmd_ipcrm(struct session *s, const struct args *a);
int cmd_ipcs(struct session *s, const struct args *a);
int cmd_qaddext(struct session *s, const struct args *a);
int cmd_qclose(struct session *s, const struct args *a);
int cmd_qopen(struct session *s, const struct args *a);
int cmd_qsize(struct session *s, const struct args *a);
int cmd_qspacechange(struct session *s, const struct args *a);
int cmd_qspacecreate(struct session *s, const struct args *a);
int cmd_qspacedestroy(struct session *s, const struct args *a);
int cmd_qspacelist(struct session *s, const struct args *a);

int cmd_qchange(struct session *s, const struct args *a);
int cmd_qcreate(struct session *s, const struct args *a);
int cmd_qdestroy(struct session *s, const struct args *a);
int cmd_qinfo(struct session *s, const struct args *a);

int cmd_qdeletemsg(struct session *s, const struct args *a);
int cmd_qlist(struct session *s, const struct args *a);
int cmd_qscan(struct session *s, const struct args *a);
int cmd_qset(struct session *s, const struct args *a);

int cmd_qaborttrans(struct session *s, const struct args *a);
int cmd_qcommittrans(struct session *s, const struct args *a);
int cmd_qforgettrans(struct session *s, const struct args *a);
int cmd_qprinttrans(struct session *s, const struct args *a);

int cmd_echo(struct session *s, const struct args *a);
int cmd_help(struct session *s, const struct args *a);
int cmd_paginate(struct session *s, const struct args *a);
int cmd_quit(struct session *s, const struct args *a);
int cmd_unavailable(struct session *s, const struct args *a);
int cmd_verbose(struct session *s, const struct args *a);

#endif
