/*
 * Arguments that the command line lacks are asked for, one at a time; each answer is one line of input, wherever it
 * comes from.  An empty line is an answer, too.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "interrupt.h"
#include "session.h"

static int
input_ended(struct session *s, const char *prompt, enum reader_end end)
{
	say(s, "\n");
	if (end == READER_EOF)
		say_error(s, 0, "the input ended where an answer to \"%s\" was expected; the command was not carried out", prompt);
	return -1;
}

int
ask(struct session *s, const char *prompt, const char *deflt, char **answer)
{
	char shown[512];
	enum reader_end end;
	char *line;

	*answer = NULL;
	snprintf(shown, sizeof shown, "%s ", prompt);
	for (;;) {
		if ((end = reader_next(s->con.reader, shown, false, &line)) != READER_LINE)
			return input_ended(s, prompt, end);
		line = answer_trim(line);
		if (*line == '\0' && deflt != NULL)
			line = (char *)(uintptr_t)deflt;
		if (*line != '\0' || deflt != NULL)
			return (*answer = strdup(line)) != NULL ? 0 : -1;
		say_warning(s, 0, "a value is required here");
	}
}

bool
ask_yes(struct session *s, const char *question, ...)
{
	char text[480], prompt[512];
	enum reader_end end;
	char *line;
	va_list ap;

	va_start(ap, question);
	vsnprintf(text, sizeof text, question, ap);
	va_end(ap);
	snprintf(prompt, sizeof prompt, "%s (y/n)? ", text);
	if ((end = reader_next(s->con.reader, prompt, false, &line)) != READER_LINE) {
		input_ended(s, text, end);
		return false;
	}
	line = answer_trim(line);
	return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

/* The low limit's default has the unit of the high limit that was given just before. */
static const char *
prompt_of(const struct field *f, const struct record *so_far, char *room, size_t size)
{
	const char *high, *mark = strstr(f->prompt, "0%]");

	if (strcmp(f->key, "low") != 0 || mark == NULL || (high = record_get(so_far, "high")) == NULL ||
	    *high == '\0' ||
	    strchr("bBm%", high[strlen(high) - 1]) == NULL)
		return f->prompt;
	snprintf(room, size, "%.*s0%c]%s", (int)(mark - f->prompt), f->prompt, high[strlen(high) - 1], mark + 3);
	return room;
}

int
collect(struct session *s, const struct field *f, int n, int argc, char **argv, struct record *to)
{
	char room[256], *answer;
	int rc;

	for (int i = 0; i < n; i++) {
		if (i < argc) {
			if (record_set(to, f[i].key, *argv[i] == '\0' && f[i].deflt != NULL ? f[i].deflt :
			    argv[i]) != 0)
				return -1;
			continue;
		}
		if (ask(s, prompt_of(&f[i], to, room, sizeof room), f[i].deflt, &answer) != 0)
			return -1;
		rc = record_set(to, f[i].key, answer);
		free(answer);
		if (rc != 0)
			return -1;
	}
	return 0;
}
