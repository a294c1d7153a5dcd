/*
 * commands - tmadmin's command table at work: options, modes, help, and trouble in the form of the TMADMIN catalogue.
 *
 * Lines, repetition, shell lines and paging are console's.  Trouble goes to stderr with a number: 109 any, 110 an
 * argument is too long, 111 no such command, 112 a bad option.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "console.h"

#define COMMANDS_MAX_ARG 80

struct opts { const char *v[128]; int n_rest; char **rest; };	/* option letter -> value ("" when it has none) */

struct commands;
struct command {
	const char *name, *abbrev;	/* abbrev NULL: none */
	unsigned modes;			/* where it may be used: the bits of commands.mode */
	const char *opts;		/* as for getopt; NULL: the words are taken as they are */
	void (*run)(struct commands *r, const struct opts *o);
	const char *syntax, *about;
};

struct commands {
	struct console con;
	const struct command *table;
	size_t n;
	const struct command *running;	/* the latest command */
	unsigned mode;
	const char *mode_name;		/* "boot mode": for the text that refuses a command */
	char prompt[48];
	void *context;			/* the program's */
	int (*check)(struct commands *r, const struct opts *o);	/* values of options; NULL: none; -1: said why */
};

/* Commands from the file descriptor `in`, until `quit` or the end of the input.  0 or -1: out of memory. */
int commands_open(struct commands *r, const struct command *table, size_t n, int in, void *context);
void commands_run(struct commands *r);
void commands_close(struct commands *r);
void commands_bad_option(const struct commands *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));	/* 112, with the syntax of the command that runs */
void commands_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* 109 */
bool commands_confirm(struct commands *r, const char *question);	/* end of the input is no */

/* The commands that every table has. */
void cmd_echo(struct commands *r, const struct opts *o);
void cmd_verbose(struct commands *r, const struct opts *o);
void cmd_paginate(struct commands *r, const struct opts *o);
void cmd_help(struct commands *r, const struct opts *o);
void cmd_quit(struct commands *r, const struct opts *o);

#endif
