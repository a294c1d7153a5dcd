#include "commands.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "interrupt.h"

static void __attribute__((format(printf, 2, 3)))
complain(int number, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "TMADMIN_CAT:%d: ERROR: ", number);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

void
commands_error(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	complain(109, "%s", text);
}

void
commands_bad_option(const struct commands *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	complain(112, "Invalid option to %s: %s; syntax: %s", r->running->name, text, r->running->syntax);
}

bool
commands_confirm(struct commands *r, const char *question)
{
	char prompt[600], *line;

	snprintf(prompt, sizeof prompt, "%s ", question);
	if (reader_next(r->con.reader, prompt, false, &line) != READER_LINE)
		return false;
	line = answer_trim(line);
	return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

/* --- running one command --- */

static const struct command *
command_find(const struct commands *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->table[i].name, name) == 0 ||
		    (r->table[i].abbrev != NULL && strcmp(r->table[i].abbrev, name) == 0))
			return &r->table[i];
	return NULL;
}

static int
opts_read(const struct command *c, int argc, char **argv, struct opts *o)
{
	int letter;

	memset(o, 0, sizeof *o);
	optind = 0;
	opterr = 0;
	while (c->opts != NULL && (letter = getopt(argc, argv, c->opts)) != -1) {
		if (letter == '?' || letter == ':') {
			complain(112, "Invalid option to %s; syntax: %s", c->name, c->syntax);
			return -1;
		}
		o->v[letter & 127] = optarg != NULL ? optarg : "";
	}
	if (c->opts == NULL)
		optind = 1;
	o->rest = argv + optind;
	o->n_rest = argc - optind;
	return 0;
}

static int
command_run(void *commands, int argc, char **argv)
{
	struct commands *r = commands;
	const struct command *c;
	struct opts o;

	for (int i = 0; i < argc; i++)
		if (strlen(argv[i]) > COMMANDS_MAX_ARG) {
			complain(110, "Argument is longer than %d characters: %s", COMMANDS_MAX_ARG, argv[i]);
			return -1;
		}
	if ((c = command_find(r, argv[0])) == NULL) {
		complain(111, "No such command: %s", argv[0]);
		return -1;
	}
	if ((c->modes & r->mode) == 0) {
		commands_error("%s cannot be used in %s", c->name, r->mode_name);
		return -1;
	}
	if (opts_read(c, argc, argv, &o) != 0)
		return -1;
	r->running = c;
	if (r->check != NULL && r->check(r, &o) != 0)
		return -1;
	console_page(&r->con);
	c->run(r, &o);
	console_page_end(&r->con);
	return 0;
}

static void
trouble(void *commands, const char *text)
{
	(void)commands;
	commands_error("%s", text);
}

int
commands_open(struct commands *r, const struct command *table, size_t n, int in, void *context)
{
	memset(r, 0, sizeof *r);
	if (console_open(&r->con, "tmadmin", in) != 0)
		return -1;
	r->con.program = r;
	r->con.run = command_run;
	r->con.trouble = trouble;
	r->table = table;
	r->n = n;
	r->context = context;
	snprintf(r->prompt, sizeof r->prompt, "> ");
	interrupt_catch();
	return 0;
}

void
commands_close(struct commands *r)
{
	console_close(&r->con);
}

void
commands_run(struct commands *r)
{
	console_loop(&r->con, r->prompt);
	if (!r->con.quit)
		fprintf(r->con.out, "\n");
	fflush(r->con.out);
}

/* --- commands of every table --- */

static const char *
word_of(const struct opts *o)
{
	return o->n_rest > 0 ? o->rest[0] : NULL;
}

void
cmd_echo(struct commands *r, const struct opts *o)
{
	console_toggle(&r->con, &r->con.echo, "Echo mode", word_of(o));
}

void
cmd_verbose(struct commands *r, const struct opts *o)
{
	console_toggle(&r->con, &r->con.verbose, "Verbose mode", word_of(o));
}

void
cmd_paginate(struct commands *r, const struct opts *o)
{
	console_toggle(&r->con, &r->con.paginate, "Pagination", word_of(o));
}

static void
help_one(FILE *out, const struct command *c, bool long_form)
{
	fprintf(out, "%s", c->syntax);
	if (c->abbrev != NULL)
		fprintf(out, "   (%s)", c->abbrev);
	fprintf(out, "\n");
	if (long_form)
		fprintf(out, "\t%s\n", c->about);
}

void
cmd_help(struct commands *r, const struct opts *o)
{
	bool all = o->n_rest > 0 && strcmp(o->rest[0], "all") == 0;
	const struct command *c;

	if (o->n_rest == 0 || all) {
		for (size_t i = 0; i < r->n; i++)
			if (r->table[i].modes & r->mode)
				help_one(r->con.out, &r->table[i], all);
		fprintf(r->con.out, "! shellcommand\n!!\n# remark\n");
	} else if ((c = command_find(r, o->rest[0])) != NULL) {
		help_one(r->con.out, c, true);
	} else {
		complain(111, "No such command: %s", o->rest[0]);
	}
}

void
cmd_quit(struct commands *r, const struct opts *o)
{
	(void)o;
	r->con.quit = true;
}
