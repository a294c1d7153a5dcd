#include <errno.h>
#include <histedit.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"
#include "interrupt.h"

struct reader {
	int in;
	FILE *out;
	bool terminal, echo, eof;
	char buf[4096];
	size_t at, n;			/* unread: buf[at .. n) */
	char *line;
	size_t len, cap;
	EditLine *el;
	History *history;
	HistEvent event;
	const char *prompt;		/* while el_gets() runs */
};

static char *
edit_prompt(EditLine *el)
{
	static char none[] = "";
	struct reader *r = NULL;

	el_get(el, EL_CLIENTDATA, &r);
	return r != NULL && r->prompt != NULL ? (char *)(uintptr_t)r->prompt : none;
}

static void
start_editing(struct reader *r, const char *program)
{
	if ((r->history = history_init()) == NULL || (r->el = el_init(program, stdin, r->out, stderr)) == NULL)
		return;		/* plain lines, then */
	history(r->history, &r->event, H_SETSIZE, 500);
	el_set(r->el, EL_CLIENTDATA, r);
	el_set(r->el, EL_PROMPT, edit_prompt);
	el_set(r->el, EL_EDITOR, "emacs");
	el_set(r->el, EL_HIST, history, r->history);
	el_source(r->el, NULL);
}

struct reader *
reader_new(const char *program, int in, FILE *out)
{
	struct reader *r = calloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->in = in;
	r->out = out;
	r->terminal = isatty(in) == 1;
	if (r->terminal && in == STDIN_FILENO && isatty(fileno(out)) == 1)
		start_editing(r, program);
	return r;
}

void
reader_free(struct reader *r)
{
	if (r == NULL)
		return;
	if (r->el != NULL)
		el_end(r->el);
	if (r->history != NULL)
		history_end(r->history);
	free(r->line);
	free(r);
}

bool
reader_is_terminal(const struct reader *r)
{
	return r->terminal;
}

void
reader_echo(struct reader *r, bool on)
{
	r->echo = on;
}

static bool
append(struct reader *r, char c)
{
	if (r->len + 1 >= r->cap) {
		size_t cap = r->cap == 0 ? 256 : r->cap * 2;
		char *bigger = realloc(r->line, cap);
		if (bigger == NULL)
			return false;
		r->line = bigger;
		r->cap = cap;
	}
	if (c != '\0')		/* a NUL in a command has no meaning */
		r->line[r->len++] = c;
	r->line[r->len] = '\0';
	return true;
}

/* 1: there is something in buf; 0: the end; -1: interrupted. */
static int
fill(struct reader *r)
{
	ssize_t n;

	if (r->at < r->n)
		return 1;
	do {
		n = interruptible_read(r->in, r->buf, sizeof r->buf);
	} while (n < 0 && errno == EINTR && !interrupt_came());
	if (n < 0)
		return errno == EINTR ? -1 : 0;
	r->at = 0;
	r->n = (size_t)n;
	return n > 0;
}

static enum reader_end
read_plain(struct reader *r)
{
	r->len = 0;
	if (!append(r, '\0'))
		return READER_EOF;
	for (;;) {
		int rc = fill(r);
		if (rc < 0)
			return READER_BREAK;
		if (rc == 0)
			return r->len > 0 ? READER_LINE : READER_EOF;	/* the last line may lack its end */
		char c = r->buf[r->at++];
		if (c == '\n')
			return READER_LINE;
		if (!append(r, c))
			return READER_EOF;
	}
}

static enum reader_end
read_edited(struct reader *r, const char *prompt, bool remember)
{
	const char *got;
	int n = 0;

	r->prompt = prompt;
	got = el_gets(r->el, &n);
	if (interrupt_came()) {
		el_reset(r->el);
		return READER_BREAK;
	}
	if (got == NULL || n <= 0)
		return READER_EOF;
	if (remember && n > 1)
		history(r->history, &r->event, H_ENTER, got);
	r->len = 0;
	append(r, '\0');
	for (int i = 0; i < n && got[i] != '\n'; i++)
		if (!append(r, got[i]))
			return READER_EOF;
	return READER_LINE;
}

enum reader_end
reader_next(struct reader *r, const char *prompt, bool remember, char **line)
{
	enum reader_end end;

	*line = NULL;
	if (r->eof)
		return READER_EOF;
	if (r->el == NULL)
		fputs(prompt, r->out);
	fflush(r->out);
	end = r->el != NULL ? read_edited(r, prompt, remember) : read_plain(r);
	r->eof = end == READER_EOF;
	if (end != READER_LINE)
		return end;
	while (r->len > 0 && r->line[r->len - 1] == '\r')
		r->line[--r->len] = '\0';
	if (r->echo && r->el == NULL) {
		fprintf(r->out, "%s\n", r->line);
		fflush(r->out);
	}
	*line = r->line;
	return READER_LINE;
}
