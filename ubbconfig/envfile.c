/*
 * envfile - NAME=value lines.  As tmboot always read them: $NAME and ${NAME} stand for what is set by then, or nothing;
 * a backslash before $ or \ takes its meaning away; quotes are ordinary.  Lines that are not NAME=value are passed over
 * and logged.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"
#include "ulog.h"

static size_t
name_length(const char *p)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*p) && *p != '_')
		return 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

/* A $ at p: what it stands for, and how much of the text that is.  NULL: an ordinary dollar. */
static const char *
variable(const char *p, size_t *used)
{
	bool braces = p[1] == '{';
	size_t n = name_length(p + 1 + braces);
	char *name;
	const char *value;

	if (n == 0 || (braces && p[2 + n] != '}'))
		return NULL;
	*used = 1 + n + (braces ? 2 : 0);
	if ((name = strndup(p + 1 + braces, n)) == NULL)
		return NULL;
	value = getenv(name);
	free(name);
	return value ? value : "";
}

static char *
expand(const char *p)
{
	char *text = NULL;
	const char *value;
	size_t size = 0, used;
	FILE *to = open_memstream(&text, &size);

	if (to == NULL)
		return NULL;
	while (*p) {
		if (*p == '\\' && (p[1] == '$' || p[1] == '\\')) {
			putc(p[1], to);
			p += 2;
		} else if (*p == '$' && (value = variable(p, &used)) != NULL) {
			fputs(value, to);
			p += used;
		} else
			putc(*p++, to);
	}
	if (fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int
set_line(char *line, const char *path, int number)
{
	size_t n;
	char *value;
	int rc;

	line[strcspn(line, "\r\n")] = '\0';
	line += strspn(line, " \t");
	if (*line == '\0' || *line == '#')
		return 0;
	n = name_length(line);
	if (n == 0 || line[n] != '=') {
		ulog("LIBTUX_CAT:0: WARN: ENVFILE %s, line %d: \"%.60s\" is not NAME=value; passed over", path, number,
		    line);
		return 0;
	}
	line[n] = '\0';
	if ((value = expand(line + n + 1)) == NULL)
		return -1;
	rc = setenv(line, value, 1);
	free(value);
	return rc;
}

int
envfile_load(const char *path)
{
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = 0, number = 0, error;

	if (in == NULL)
		return -1;
	while (rc == 0 && getline(&line, &size, in) >= 0)
		rc = set_line(line, path, ++number);
	if (ferror(in))
		rc = -1;
	error = errno;
	free(line);
	fclose(in);
	errno = error;
	return rc;
}
