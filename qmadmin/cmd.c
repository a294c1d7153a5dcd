/*
 * The command table, and from the words of a line to a command with its options and arguments.
 */
#include <string.h>

#include "session.h"

#define AREAS "[-A actions] [-H handles] [-C cursors] [-O owners] [-Q tmp_queues] [-f filter_memory] [-n nonpersistent_memory[b,B]] [-o overflow_memory]"
#define MANY 1000		/* words of a line */
#define QUEUE_OPTIONS "[-d persist|nonpersist] [-n nhigh,nlow,ncmd] [-e default_relative_expiration_time]"

/* options: letters; one followed by : takes a value. */
const struct command commands[] = {
	{ "chdl", NULL, "", "[dlindex [newdevice]]", "Rename an entry of the universal device list.", 2, false,
	    cmd_chdl },
	{ "crdl", NULL, "", "[device [offset [size]]]",
	    "Add an entry to the universal device list; the first one makes the device.", 3, false, cmd_crdl },
	{ "dsdl", NULL, "y", "[-y] [dlindex]", "Remove an entry from the universal device list.", 1, false, cmd_dsdl },
	{ "echo", "e", "", "[{off|on}]", "Repeat input lines, or stop it; initially off.", 1, false, cmd_echo },
	{ "help", "h", "", "[{command|all}]", "Syntax of all commands, or what one of them does.", 1, false, cmd_help },
	{ "ipcrm", NULL, "fy", "[-f] [-y] [queue_space_name]",
	    "Remove what a queue space has in memory: its non-persistent messages.", 1, false, cmd_ipcrm },
	{ "ipcs", NULL, "", "[queue_space_name]", "Show which process serves a queue space, and where.", 1, false,
	    cmd_ipcs },
	{ "lidl", NULL, "", "[dlindex]", "List the universal device list; in verbose mode with its free pieces.", 1,
	    false, cmd_lidl },
	{ "livtoc", NULL, "", "", "List the table of contents: what takes the device's pages.", 0, false, cmd_livtoc },
	{ "paginate", "page", "", "[{off|on}]", "Show lists through a pager, or not.", 1, false, cmd_paginate },
	{ "qaborttrans", "qabort", "y", "[-y] [tranindex[-tranindex] ...]", "Roll back transactions that are in doubt.",
	    MANY, true, cmd_qaborttrans },
	{ "qaddext", "qadd", "", "[queue_space_name [pages]]", "Add an extent to a queue space.", 2, false,
	    cmd_qaddext },
	{ "qchange", "qch", "d:n:e:", QUEUE_OPTIONS " [queue_name [out-of-order [retries [delay [high [low [cmd]]]]]]]",
	    "Change a queue; its order never changes.", 7, true, cmd_qchange },
	{ "qchangeexptime", "qce", "y", "[-y] [newtime]", "Change the expiration time of the selected messages.", 1,
	    true, cmd_unavailable },
	{ "qchangeprio", "qcp", "y", "[-y] [newpriority]", "Change the priority of the selected messages.", 1, true,
	    cmd_unavailable },
	{ "qchangequeue", "qcq", "y", "[-y] [newqueue]", "Move the selected messages to another queue.", 1, true,
	    cmd_unavailable },
	{ "qchangetime", "qct", "y", "[-y] [newtime]", "Change the availability time of the selected messages.", 1,
	    true, cmd_unavailable },
	{ "qclose", NULL, "", "", "Close the open queue space.", 0, true, cmd_qclose },
	{ "qcommittrans", "qcommit", "y", "[-y] [tranindex[-tranindex] ...]", "Commit transactions that are in doubt.",
	    MANY, true, cmd_qcommittrans },
	{ "qcreate", "qcr", "d:n:e:",
	    QUEUE_OPTIONS " [queue_name [qorder [out-of-order [retries [delay [high [low [cmd]]]]]]]]",
	    "Create a queue in the open queue space.", 8, true, cmd_qcreate },
	{ "qdeletemsg", "qdltm", "y", "[-y]", "Delete the selected messages of the queue that qset names.", 0, true,
	    cmd_qdeletemsg },
	{ "qdestroy", "qds", "pfy", "[{-p|-f}] [-y] [queue_name]", "Destroy a queue; with -p its messages, too.", 1,
	    true, cmd_qdestroy },
	{ "qforgettrans", "qforget", "y", "[-y] [tranindex[-tranindex] ...]",
	    "Forget how transactions ended that nobody will ask about.", MANY, true, cmd_qforgettrans },
	{ "qinfo", NULL, "", "[queue_name]", "Show one queue, or all; in verbose mode with how they were created.", 1,
	    true, cmd_qinfo },
	{ "qlist", "ql", "", "", "List the messages of the queue that qset names and qscan selects.", 0, true,
	    cmd_qlist },
	{ "qopen", NULL, "", "[queue_space_name]", "Open a queue space for the commands that follow.", 1, false,
	    cmd_qopen },
	{ "qprinttrans", "qpt", "", "[tranindex[-tranindex]]", "List the transactions of the open queue space.", 1, true,
	    cmd_qprinttrans },
	{ "qscan", NULL, "t:p:m:i:d:e:",
	    "[{[-t time1[-time2]] [-p prio1[-prio2]] [-m msgid] [-i corrid] [-d delivery_mode] [-e time1[-time2]] | none}]",
	    "Set or show what qlist and others select.", 1, true, cmd_qscan },
	{ "qset", NULL, "", "[queue_name]", "Name the queue of qlist and others, or show its name.", 1, true,
	    cmd_qset },
	{ "qsize", NULL, "A:H:C:O:Q:f:n:o:", AREAS " [pages [queues [transactions [processes [messages]]]]]",
	    "Show what a queue space of that size takes; create nothing.", 5, false, cmd_qsize },
	{ "qspacechange", "qspch", "A:H:C:O:Q:f:n:o:",
	    AREAS " [queue_space_name [ipckey [trans [procs [messages [errorq [inityn [blocking]]]]]]]]",
	    "Change a queue space.", 8, false, cmd_qspacechange },
	{ "qspacecreate", "qspc", "A:H:C:O:Q:f:n:o:",
	    AREAS " [queue_space_name [ipckey [pages [queues [trans [procs [messages [errorq [inityn [blocking]]]]]]]]]]",
	    "Create a queue space on the device.", 10, false, cmd_qspacecreate },
	{ "qspacedestroy", "qspds", "fy", "[-f] [-y] [queue_space_name]",
	    "Destroy a queue space; with -f its messages, too.", 1, false, cmd_qspacedestroy },
	{ "qspacelist", "qspl", "", "[queue_space_name]", "Show how a queue space was created.", 1, false,
	    cmd_qspacelist },
	{ "quit", "q", "", "", "End the program.", 0, false, cmd_quit },
	{ "verbose", "v", "", "[{off|on}]", "Show more, or less; initially off.", 1, false, cmd_verbose },
	{ 0 },
};

const struct command *
command_find(const char *name)
{
	for (const struct command *c = commands; c->name != NULL; c++)
		if (strcmp(name, c->name) == 0 || (c->abbreviation != NULL && strcmp(name, c->abbreviation) == 0))
			return c;
	return NULL;
}

bool
args_flag(const struct args *a, char letter)
{
	return strchr(a->flag, letter) != NULL;
}

const char *
args_option(const struct args *a, char letter)
{
	const char *value = NULL;

	for (int i = 0; i < a->n_opt; i++)
		if (a->opt[i].letter == letter)
			value = a->opt[i].value;
	return value;
}

static int
usage(struct session *s, const struct command *c)
{
	fflush(s->con.out);
	fprintf(stderr, "usage: %s%s%s\n", c->name, *c->syntax != '\0' ? " " : "", c->syntax);
	return -1;
}

/* One word of options: letters together, the value of the last one in the word or after it. */
static int
take_options(struct session *s, const struct command *c, struct args *a, const char *word)
{
	size_t flags = strlen(a->flag);

	for (const char *p = word + 1; *p != '\0'; p++) {
		const char *known = *p != ':' ? strchr(c->options, *p) : NULL;
		if (known == NULL) {
			say_error(s, 0, "%s: unknown option -%c", c->name, *p);
			return usage(s, c);
		}
		if (known[1] != ':') {
			if (flags + 1 < sizeof a->flag && strchr(a->flag, *p) == NULL) {
				a->flag[flags++] = *p;
				a->flag[flags] = '\0';
			}
			continue;
		}
		if (p[1] == '\0' && a->argc == 0) {
			say_error(s, 0, "%s: option -%c needs a value", c->name, *p);
			return usage(s, c);
		}
		if (a->n_opt == (int)(sizeof a->opt / sizeof a->opt[0])) {
			say_error(s, 0, "%s: too many options", c->name);
			return -1;
		}
		a->opt[a->n_opt].letter = *p;
		a->opt[a->n_opt++].value = p[1] != '\0' ? p + 1 : *a->argv;
		if (p[1] == '\0') {
			a->argv++;
			a->argc--;
		}
		break;
	}
	return 0;
}

static int
take_arguments(struct session *s, const struct command *c, int argc, char **argv, struct args *a)
{
	memset(a, 0, sizeof *a);
	a->name = c->name;
	a->argc = argc;
	a->argv = argv;
	while (a->argc > 0 && a->argv[0][0] == '-' && a->argv[0][1] != '\0') {
		const char *word = *a->argv++;
		a->argc--;
		if (strcmp(word, "--") == 0)
			break;
		if (take_options(s, c, a, word) != 0)
			return -1;
	}
	if (a->argc > c->max_args) {
		say_error(s, 0, "%s: too many arguments, from \"%.60s\" on", c->name, a->argv[c->max_args]);
		return usage(s, c);
	}
	return 0;
}

int
command_run(void *session, int argc, char **argv)
{
	struct session *s = session;
	const struct command *c = command_find(argv[0]);
	struct args a;

	if (c == NULL) {
		say_error(s, 0, "%.60s: no such command; \"help\" lists them", argv[0]);
		return -1;
	}
	if (take_arguments(s, c, argc - 1, argv + 1, &a) != 0)
		return -1;
	if (c->needs_space && s->space[0] == '\0') {
		say_error(s, 0, "%s: no queue space is open", c->name);
		return -1;
	}
	return c->run(s, &a);
}
