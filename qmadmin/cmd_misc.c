/*
 * Commands about qmadmin itself.
 */
#include <stdlib.h>
#include <string.h>

#include "session.h"

static int
toggle(struct session *s, const struct args *a, bool *what, const char *name)
{
	return console_toggle(&s->con, what, name, a->argc > 0 ? a->argv[0] : NULL);
}

int
cmd_echo(struct session *s, const struct args *a)
{
	return toggle(s, a, &s->con.echo, "Echo");
}

int
cmd_verbose(struct session *s, const struct args *a)
{
	return toggle(s, a, &s->con.verbose, "Verbose mode");
}

int
cmd_paginate(struct session *s, const struct args *a)
{
	return toggle(s, a, &s->con.paginate, "Pagination");
}

int
cmd_quit(struct session *s, const struct args *a)
{
	(void)a;
	s->con.quit = true;
	return 0;
}

/*
 * A command that scripts know and we do not carry out yet must not look like a typing error, nor like success.  Its
 * answers are taken as if it were there, or they would be run as commands.
 */
int
cmd_unavailable(struct session *s, const struct args *a)
{
	static const struct { const char *name, *prompt; } asks[] = { { "qchangeprio", "New priority:" },
		{ "qchangequeue", "New queue name:" }, { "qchangetime", "New availability time:" },
		{ "qchangeexptime", "New expiration time:" } };
	char *answer;

	for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
		if (strcmp(a->name, asks[i].name) != 0)
			continue;
		if (a->argc == 0) {
			if (ask(s, asks[i].prompt, NULL, &answer) != 0)
				break;
			free(answer);
		}
		if (!args_flag(a, 'y'))
			(void)ask_yes(s, "Change %s messages", s->criteria.n > 0 ? "the selected" : "all");
	}
	say_error(s, 0, "%s: not available in this version", a->name);
	return -1;
}

static void
syntax_of(struct session *s, const struct command *c)
{
	say(s, "%s", c->name);
	if (c->abbreviation != NULL)
		say(s, " (%s)", c->abbreviation);
	say(s, "%s%s\n", *c->syntax != '\0' ? " " : "", c->syntax);
}

static void
describe(struct session *s, const struct command *c)
{
	syntax_of(s, c);
	say(s, "    %s%s\n", c->description, c->run == cmd_unavailable ? "  Not available in this version." : "");
}

static void
all_syntax(struct session *s)
{
	for (const struct command *c = commands; c->name != NULL; c++)
		syntax_of(s, c);
	say(s, "! shellcommand\n!!\n# [text]\n");
}

int
cmd_help(struct session *s, const struct args *a)
{
	const struct command *one = NULL;

	if (a->argc > 0 && strcmp(a->argv[0], "all") != 0 && (one = command_find(a->argv[0])) == NULL) {
		say_error(s, 0, "help: %.60s: no such command", a->argv[0]);
		return -1;
	}
	console_page(&s->con);
	if (one != NULL)
		describe(s, one);
	else if (a->argc > 0)
		for (const struct command *c = commands; c->name != NULL; c++)
			describe(s, c);
	else
		all_syntax(s);
	console_page_end(&s->con);
	return 0;
}
