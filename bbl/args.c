#include "args.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
args_add_owned(struct args *a, char *word)
{
	char **v;

	if (word == NULL || (v = realloc(a->v, (a->n + 2) * sizeof *v)) == NULL) {
		free(word);
		return -1;
	}
	a->v = v;
	a->v[a->n++] = word;
	a->v[a->n] = NULL;
	return 0;
}

int
args_add(struct args *a, const char *word)
{
	return args_add_owned(a, strdup(word));
}

int
args_addf(struct args *a, const char *fmt, ...)
{
	va_list ap;
	char *word = NULL;

	va_start(ap, fmt);
	if (vasprintf(&word, fmt, ap) < 0)
		word = NULL;
	va_end(ap);
	return args_add_owned(a, word);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One word from *p, quotes taken off, into `to`, which has room for what is left of the line. */
static void
word_take(const char **p, char *to)
{
	char quote = 0;

	for (; **p != '\0' && (quote != 0 || !is_blank(**p)); (*p)++) {
		if (quote == 0 && (**p == '"' || **p == '\''))
			quote = **p;
		else if (quote != 0 && **p == quote)
			quote = 0;
		else if (quote == '"' && **p == '\\' && ((*p)[1] == '"' || (*p)[1] == '\\'))
			*to++ = *++*p;
		else
			*to++ = **p;
	}
	*to = '\0';
}

int
args_split(const char *line, struct args *out)
{
	const char *p = line;
	char *word;
	int rc = 0;

	memset(out, 0, sizeof *out);
	if ((word = malloc(strlen(line) + 1)) == NULL)
		return -1;
	while (rc == 0) {
		while (is_blank(*p))
			p++;
		if (*p == '\0')
			break;
		word_take(&p, word);
		rc = args_add(out, word);
	}
	free(word);
	if (rc != 0)
		args_free(out);
	return rc;
}

void
args_free(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	memset(a, 0, sizeof *a);
}
