#include "console.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interrupt.h"

int
console_open(struct console *c, const char *program_name, int in)
{
	memset(c, 0, sizeof *c);
	c->out = stdout;
	c->paginate = isatty(in) == 1 && isatty(STDOUT_FILENO) == 1;
	return (c->reader = reader_new(program_name, in, stdout)) != NULL ? 0 : -1;
}

void
console_close(struct console *c)
{
	fflush(c->out);
	reader_free(c->reader);
	free(c->last_command);
	free(c->last_shell);
}

static int __attribute__((format(printf, 2, 3)))
trouble(struct console *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	c->trouble(c->program, text);
	return -1;
}

/* --- shell lines --- */

static const char *
skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* The shell's own input is the terminal, or nothing: the lines that follow are for us. */
static int
run_shell(struct console *c, const char *text)
{
	pid_t pid;
	int status;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (!reader_is_terminal(c->reader) && freopen("/dev/null", "r", stdin) == NULL)
			_exit(127);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		return trouble(c, "cannot start a shell: %m");
	while (waitpid(pid, &status, 0) < 0)
		;		/* an interrupt is for the shell; it ends by itself */
	return 0;
}

static int
shell_line(struct console *c, const char *rest)
{
	const char *text = skip_blanks(rest);

	if (strcmp(rest, "!") == 0) {
		if (c->last_shell == NULL)
			return trouble(c, "no shell command to repeat");
		fprintf(c->out, "%s\n", c->last_shell);
	} else if (*text == '\0') {
		return 0;
	} else {
		free(c->last_shell);
		if ((c->last_shell = strdup(text)) == NULL)
			return trouble(c, "%m");
	}
	return run_shell(c, c->last_shell);
}

/* --- lines --- */

int
console_line(struct console *c, const char *line)
{
	char **argv, *copy;
	int argc, rc = 0;

	line = skip_blanks(line);
	if (*line == '#')
		return 0;
	if (*line == '!')
		return shell_line(c, line + 1);
	if (*line == '\0' && (line = c->last_command) == NULL)
		return 0;
	if ((argc = words_split(line, &argv)) < 0)
		return trouble(c, "a double quote is not closed: %.120s", line);
	if (argc > 0) {
		if (line != c->last_command && (copy = strdup(line)) != NULL) {
			free(c->last_command);
			c->last_command = copy;
		}
		rc = c->run(c->program, argc, argv);
	}
	free(argv);
	return rc;
}

void
console_loop(struct console *c, const char *prompt)
{
	bool after_break = false;
	enum reader_end end;
	char *line;

	while (!c->quit && (end = reader_next(c->reader, prompt, true, &line)) != READER_EOF) {
		if (end == READER_LINE && !(after_break && *line == '\0'))
			console_line(c, line);
		after_break = end == READER_BREAK || interrupt_came();
		if (after_break)
			fputc('\n', c->out);
		interrupt_forget();
	}
}

int
console_toggle(struct console *c, bool *what, const char *name, const char *word)
{
	if (word == NULL)
		*what = !*what;
	else if (strcasecmp(word, "on") == 0)
		*what = true;
	else if (strcasecmp(word, "off") == 0)
		*what = false;
	else
		return trouble(c, "on or off is expected, not \"%.60s\"", word);
	reader_echo(c->reader, c->echo);
	fprintf(c->out, "%s is now %s\n", name, *what ? "on" : "off");
	return 0;
}

/* --- the pager --- */

void
console_page(struct console *c)
{
	const char *pager = getenv("PAGER");

	if (!c->paginate || !reader_is_terminal(c->reader) || isatty(STDOUT_FILENO) != 1)
		return;
	fflush(c->out);
	if ((c->pager = popen(pager != NULL && *pager != '\0' ? pager : "more", "w")) != NULL)
		c->out = c->pager;
}

void
console_page_end(struct console *c)
{
	if (c->pager != NULL) {
		pclose(c->pager);
		c->pager = NULL;
		c->out = stdout;
	}
	fflush(c->out);
}
