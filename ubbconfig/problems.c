#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

enum { MOST = 10000 };		/* kept; a file of garbage has no end of errors */

static void
add(struct problems *ps, struct place at, bool warning, const char *fmt, va_list ap)
{
	struct problem *v;
	char *text, *c;
	size_t cap;

	*(warning ? &ps->warnings : &ps->errors) += 1;
	if (ps->n >= MOST)
		return;
	if (ps->n == ps->cap) {
		cap = ps->cap ? ps->cap * 2 : 16;
		if ((v = realloc(ps->v, cap * sizeof *v)) == NULL)
			return;			/* still counted */
		ps->v = v;
		ps->cap = cap;
	}
	if (vasprintf(&text, fmt, ap) < 0)
		return;
	for (c = text; *c; c++)		/* what was found may hold anything; a message is one line */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	ps->v[ps->n] = (struct problem){ .at = at, .warning = warning, .text = text, .serial = ps->n };
	ps->n++;
}

void
problem_error(struct problems *ps, struct place at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(ps, at, false, fmt, ap);
	va_end(ap);
}

void
problem_warning(struct problems *ps, struct place at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(ps, at, true, fmt, ap);
	va_end(ap);
}

static int
by_place(const void *left, const void *right)
{
	const struct problem *a = left, *b = right;

	if (a->at.line != b->at.line)
		return a->at.line < b->at.line ? -1 : 1;
	if (a->at.column != b->at.column)
		return a->at.column < b->at.column ? -1 : 1;
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

void
problems_print(struct problems *ps, FILE *out)
{
	size_t i;

	if (ps->n > 1)
		qsort(ps->v, ps->n, sizeof *ps->v, by_place);
	if (out == NULL)
		return;
	for (i = 0; i < ps->n; i++) {
		const struct problem *p = &ps->v[i];

		fprintf(out, "%s:%d:%d: %s%s\n", ps->name, p->at.line, p->at.column, p->warning ? "warning: " : "",
		    p->text);
	}
	if (ps->errors + ps->warnings > MOST)
		fprintf(out, "%s:1:1: %d more messages are not shown\n", ps->name, ps->errors + ps->warnings - MOST);
}

void
problems_free(struct problems *ps)
{
	size_t i;

	for (i = 0; i < ps->n; i++)
		free(ps->v[i].text);
	free(ps->v);
	*ps = (struct problems){ .name = ps->name };
}
