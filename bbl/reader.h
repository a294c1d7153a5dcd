/*
 * reader - the command reader of tmadmin: prompt, echo, repetition, shell lines, help, paging.
 *
 * An empty line repeats the last command.  `! cmd` runs a shell command, `!!` the last one again, `#` begins a remark.
 * Output is paged only when stdin and stdout are terminals.  Trouble goes to stderr, with the numbers of the TMADMIN
 * catalogue: 109 any, 110 an argument is too long, 111 no such command, 112 a bad option.
 */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stdio.h>

#define READER_MAX_ARG 80

struct reader;

struct reader_opts { const char *v[128]; int n_rest; char **rest; };	/* option letter -> value ("" when it has none) */

struct reader_command {
	const char *name, *abbrev;	/* abbrev NULL: none */
	unsigned modes;			/* where it may be used: the bits of reader.mode */
	const char *opts;		/* as for getopt; NULL: the words are taken as they are */
	void (*run)(struct reader *r, const struct reader_opts *o);
	const char *syntax, *about;
};

struct reader {
	FILE *in, *out;			/* out: where the command that runs writes */
	const struct reader_command *commands;
	size_t n_commands;
	unsigned mode;
	const char *mode_name;		/* "boot mode": for the text that refuses a command */
	bool verbose, echo, paginate, end;
	char prompt_prefix[48];		/* "" or what stands before `> ` */
	void *context;			/* the program's */
	char *last, *last_shell;	/* the reader's own from here */
	bool terminal;
};

void reader_open(struct reader *r, const struct reader_command *commands, size_t n, void *context);
void reader_run(struct reader *r);			/* until `quit` or the end of the input */
void reader_line_do(struct reader *r, const char *line);/* one command, as if it had been read */
void reader_close(struct reader *r);
void reader_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* 109 */
bool reader_confirm(struct reader *r, const char *question);	/* end of the input is no */

/* The commands that every table has. */
void reader_cmd_echo(struct reader *r, const struct reader_opts *o);
void reader_cmd_verbose(struct reader *r, const struct reader_opts *o);
void reader_cmd_paginate(struct reader *r, const struct reader_opts *o);
void reader_cmd_help(struct reader *r, const struct reader_opts *o);
void reader_cmd_quit(struct reader *r, const struct reader_opts *o);

#endif
