/*
 * console - the command line of qmadmin and tmadmin: the prompt, remarks, repetition, shell lines, toggles, the pager.
 *
 * What a command is and does is the program's: it gets the words of a line.  Every line that is read, command or answer,
 * comes through `reader`, so it does not matter whether input is a terminal, a pipe or a here-document.
 */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

#include "reader.h"

struct console {
	struct reader *reader;
	FILE *out;			/* where answers go: stdout, or the pager while a list is printed */
	FILE *pager;
	bool verbose, echo, paginate, quit;
	char *last_command, *last_shell;

	void *program;			/* the program's, handed to these two */
	int (*run)(void *program, int argc, char **argv);	/* argv[0] is the command; what it returns comes back */
	void (*trouble)(void *program, const char *text);	/* one line, to be said in the program's own form */
};

/* Reads from `in`, answers to stdout.  The members for the program are to be set by it.  0 or -1: out of memory. */
int console_open(struct console *c, const char *program_name, int in);
void console_close(struct console *c);

/* Lines until `quit` or the end of the input.  *prompt is looked at before each. */
void console_loop(struct console *c, const char *prompt);
/* Anything that can be typed at the prompt.  What run() returned; 0 for remarks and shell lines; -1: trouble was told. */
int console_line(struct console *c, const char *line);

/* A command such as echo: `word` is on, off, or NULL for the other way.  0, or -1: trouble was told. */
int console_toggle(struct console *c, bool *what, const char *name, const char *word);

void console_page(struct console *c);		/* from here on through the pager, when both ends are terminals */
void console_page_end(struct console *c);

#endif
