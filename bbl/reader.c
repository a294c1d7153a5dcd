#include "reader.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

static volatile sig_atomic_t broken;	/* BREAK was pressed */

static void
on_break(int sig)
{
	(void)sig;
	broken = 1;
}

void
reader_open(struct reader *r, const struct reader_command *commands, size_t n, void *context)
{
	struct sigaction sa = { .sa_handler = on_break };	/* without SA_RESTART: the read ends */

	memset(r, 0, sizeof *r);
	r->in = stdin;
	r->out = stdout;
	r->commands = commands;
	r->n_commands = n;
	r->context = context;
	r->terminal = r->paginate = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	sigaction(SIGINT, &sa, NULL);
}

void
reader_close(struct reader *r)
{
	free(r->last);
	free(r->last_shell);
	r->last = r->last_shell = NULL;
}

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
reader_error(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	complain(109, "%s", text);
}

bool
reader_confirm(struct reader *r, const char *question)
{
	char line[256];
	const char *p;

	fflush(r->out);
	printf("%s ", question);
	fflush(stdout);
	if (fgets(line, sizeof line, r->in) == NULL)
		return false;
	if (r->echo)
		printf("%s", line);
	for (p = line; *p == ' ' || *p == '\t'; p++)
		;
	return *p == 'y' || *p == 'Y';
}

/* --- running one command --- */

static const struct reader_command *
command_find(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->n_commands; i++)
		if (strcmp(r->commands[i].name, name) == 0 ||
		    (r->commands[i].abbrev != NULL && strcmp(r->commands[i].abbrev, name) == 0))
			return &r->commands[i];
	return NULL;
}

static int
opts_read(const struct reader_command *c, struct args *words, struct reader_opts *o)
{
	int letter;

	memset(o, 0, sizeof *o);
	optind = 0;
	opterr = 0;
	while (c->opts != NULL && (letter = getopt((int)words->n, words->v, c->opts)) != -1) {
		if (letter == '?' || letter == ':') {
			complain(112, "Invalid option to %s; syntax: %s", c->name, c->syntax);
			return -1;
		}
		o->v[letter & 127] = optarg != NULL ? optarg : "";
	}
	if (c->opts == NULL)
		optind = 1;
	o->rest = words->v + optind;
	o->n_rest = (int)words->n - optind;
	return 0;
}

static void
command_run_paged(struct reader *r, const struct reader_command *c, const struct reader_opts *o)
{
	const char *pager = getenv("PAGER");
	FILE *pipe_to = NULL;

	if (r->terminal && r->paginate && pager != NULL && *pager != '\0' && (pipe_to = popen(pager, "w")) != NULL)
		r->out = pipe_to;
	c->run(r, o);
	fflush(r->out);
	r->out = stdout;
	if (pipe_to != NULL)
		pclose(pipe_to);
}

static void
command_do(struct reader *r, struct args *words)
{
	const struct reader_command *c;
	struct reader_opts o;

	for (size_t i = 0; i < words->n; i++)
		if (strlen(words->v[i]) > READER_MAX_ARG) {
			complain(110, "Argument is longer than %d characters: %s", READER_MAX_ARG, words->v[i]);
			return;
		}
	if ((c = command_find(r, words->v[0])) == NULL)
		complain(111, "No such command: %s", words->v[0]);
	else if ((c->modes & r->mode) == 0)
		reader_error("%s cannot be used in %s", c->name, r->mode_name);
	else if (opts_read(c, words, &o) == 0)
		command_run_paged(r, c, &o);
}

static void
shell_do(struct reader *r, const char *line)
{
	while (*line == ' ' || *line == '\t')
		line++;
	if (*line == '!') {
		if (r->last_shell == NULL) {
			reader_error("no shell command to repeat");
			return;
		}
		printf("%s\n", r->last_shell);
	} else if (*line != '\0') {
		free(r->last_shell);
		r->last_shell = strdup(line);
	}
	fflush(NULL);
	if (r->last_shell != NULL && *line != '\0' && system(r->last_shell) == -1)
		reader_error("%s: %s", r->last_shell, strerror(errno));
}

void
reader_line_do(struct reader *r, const char *line)
{
	struct args words;

	while (*line == ' ' || *line == '\t')
		line++;
	if (*line == '#')
		return;
	if (*line == '!') {
		shell_do(r, line + 1);
		return;
	}
	if (args_split(line, &words) != 0)
		return;
	if (words.n > 0)
		command_do(r, &words);
	args_free(&words);
}

static bool
is_empty(const char *line)
{
	return line[strspn(line, " \t")] == '\0';
}

/* The line to do: what was read, or the last one again.  NULL: nothing. */
static const char *
line_or_last(struct reader *r, const char *line)
{
	if (is_empty(line))
		return r->last;
	if (line[strspn(line, " \t")] != '#' && line[strspn(line, " \t")] != '!') {
		free(r->last);
		r->last = strdup(line);
	}
	return line;
}

void
reader_run(struct reader *r)
{
	char *line = NULL;
	size_t size = 0;

	while (!r->end) {
		const char *todo;

		printf("%s> ", r->prompt_prefix);
		fflush(stdout);
		if (getline(&line, &size, r->in) < 0) {
			if (!broken)
				break;
			broken = 0;	/* BREAK: a new prompt, and nothing to repeat */
			clearerr(r->in);
			free(r->last);
			r->last = NULL;
			printf("\n");
			continue;
		}
		line[strcspn(line, "\r\n")] = '\0';
		if (r->echo)
			printf("%s\n", line);
		if ((todo = line_or_last(r, line)) != NULL) {
			char *copy = strdup(todo);	/* a command may change what is remembered */

			if (copy != NULL)
				reader_line_do(r, copy);
			free(copy);
		}
	}
	if (!r->end)
		printf("\n");
	fflush(stdout);
	free(line);
}

/* --- commands of every table --- */

static bool
toggle(bool *what, const struct reader_opts *o, const char *name, FILE *out)
{
	if (o->n_rest == 0)
		*what = !*what;
	else if (strcmp(o->rest[0], "on") == 0 || strcmp(o->rest[0], "off") == 0)
		*what = o->rest[0][1] == 'n';
	else {
		reader_error("on or off is wanted, not %s", o->rest[0]);
		return false;
	}
	fprintf(out, "%s now %s\n", name, *what ? "on" : "off");
	return true;
}

void
reader_cmd_echo(struct reader *r, const struct reader_opts *o)
{
	toggle(&r->echo, o, "Echo mode is", r->out);
}

void
reader_cmd_verbose(struct reader *r, const struct reader_opts *o)
{
	toggle(&r->verbose, o, "Verbose mode is", r->out);
}

void
reader_cmd_paginate(struct reader *r, const struct reader_opts *o)
{
	toggle(&r->paginate, o, "Pagination is", r->out);
}

static void
help_one(FILE *out, const struct reader_command *c, bool long_form)
{
	fprintf(out, "%s", c->syntax);
	if (c->abbrev != NULL)
		fprintf(out, "   (%s)", c->abbrev);
	fprintf(out, "\n");
	if (long_form)
		fprintf(out, "\t%s\n", c->about);
}

void
reader_cmd_help(struct reader *r, const struct reader_opts *o)
{
	bool all = o->n_rest > 0 && strcmp(o->rest[0], "all") == 0;
	const struct reader_command *c;

	if (o->n_rest == 0 || all) {
		for (size_t i = 0; i < r->n_commands; i++)
			if (r->commands[i].modes & r->mode)
				help_one(r->out, &r->commands[i], all);
		fprintf(r->out, "! shellcommand\n!!\n# remark\n");
	} else if ((c = command_find(r, o->rest[0])) != NULL) {
		help_one(r->out, c, true);
	} else {
		complain(111, "No such command: %s", o->rest[0]);
	}
}

void
reader_cmd_quit(struct reader *r, const struct reader_opts *o)
{
	(void)o;
	r->end = true;
}
