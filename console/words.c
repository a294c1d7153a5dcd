#include <stdlib.h>
#include <string.h>

#include "reader.h"

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The quote that ends a word which began with one: it stands before a blank or the end. */
static const char *
closing_single(const char *p)
{
	for (; (p = strchr(p, '\'')) != NULL; p++)
		if (p[1] == '\0' || is_blank(p[1]))
			return p;
	return NULL;
}

/* One word from p to *to, which has room for it.  Where it ends; NULL when a double quote is not closed. */
static const char *
take_word(const char *p, char **to)
{
	const char *end;
	bool quoted = false;

	if (*p == '\'' && (end = closing_single(p + 1)) != NULL) {
		memcpy(*to, p + 1, (size_t)(end - p - 1));
		*to += end - p - 1;
		return end + 1;
	}
	for (; *p != '\0' && (quoted || !is_blank(*p)); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (quoted && p[0] == '\\' && p[1] == '"')
			*(*to)++ = *++p;
		else
			*(*to)++ = *p;
	}
	return quoted ? NULL : p;
}

int
words_split(const char *line, char ***argv)
{
	size_t n = strlen(line), max = n / 2 + 2;
	char **v = malloc(max * sizeof *v + n + max);
	char *to;
	int argc = 0;

	*argv = NULL;
	if (v == NULL)
		return -1;
	to = (char *)(v + max);
	for (const char *p = line;;) {
		while (is_blank(*p))
			p++;
		if (*p == '\0')
			break;
		v[argc++] = to;
		if ((p = take_word(p, &to)) == NULL) {
			free(v);
			return -1;
		}
		*to++ = '\0';
	}
	v[argc] = NULL;
	*argv = v;
	return argc;
}

char *
answer_trim(char *s)
{
	size_t n;

	while (is_blank(*s))
		s++;
	n = strlen(s);
	while (n > 0 && is_blank(s[n - 1]))
		s[--n] = '\0';
	if (n >= 2 && (*s == '\'' || *s == '"') && s[n - 1] == *s) {
		s[n - 1] = '\0';
		s++;
	}
	return s;
}
