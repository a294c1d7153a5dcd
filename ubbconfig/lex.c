#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ubb_impl.h"

struct lexer {
	struct raw *r;
	struct problems *ps;
	struct tokens *out;
	const char *p, *end, *line_start;
	int line;
	bool first;			/* nothing but blanks on this line so far */
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
static bool is_word(char c) { return (unsigned char)c > ' ' && c != 0x7f && strchr("=,\"#", c) == NULL; }

static struct place
here(const struct lexer *l, const char *p)
{
	return (struct place){ .line = l->line, .column = (int)(p - l->line_start) + 1 };
}

static bool
emit(struct lexer *l, enum token_kind kind, const char *text, size_t len, struct place at)
{
	struct tokens *t = l->out;
	struct token *v;
	size_t cap;

	if (t->n == t->cap) {
		cap = t->cap ? t->cap * 2 : 256;
		if ((v = realloc(t->v, cap * sizeof *v)) == NULL)
			return !(l->r->oom = true);
		t->v = v;
		t->cap = cap;
	}
	v = &t->v[t->n++];
	*v = (struct token){ .kind = kind, .at = at, .column1 = l->first && at.column == 1 };
	if ((v->text = arena_strndup(&l->r->arena, text, len)) == NULL)
		return !(l->r->oom = true);
	l->first = false;
	return true;
}

/* After the quote.  A line end with the blanks that follow it counts as one blank; a backslash before it joins the
 * lines. */
static const char *
string_end(const char *p, const char *end, char *to, size_t *len, bool *many_lines)
{
	*len = 0;
	*many_lines = false;
	for (; p < end && *p != '"'; p++) {
		if (*p == '\r')
			continue;
		if (*p == '\\' && p + 1 < end && (p[1] == '\\' || p[1] == '"')) {
			to[(*len)++] = *++p;
			continue;
		}
		if (*p == '\\' && p + 1 < end && (p[1] == '\n' || (p[1] == '\r' && p + 2 < end && p[2] == '\n')))
			p += p[1] == '\r' ? 2 : 1;
		else if (*p != '\n') {
			to[(*len)++] = *p;
			continue;
		} else
			to[(*len)++] = ' ';
		*many_lines = true;
		while (p + 1 < end && is_blank(p[1]))
			p++;
		if (*p == '\n' && p + 2 < end && p[1] == '*' && isupper((unsigned char)p[2]))
			return end;		/* the next section: somebody forgot the closing quote */
	}
	return p;
}

static bool
string(struct lexer *l)
{
	struct place at = here(l, l->p);
	const char *open = l->p, *close;
	char *text;
	size_t len;
	bool many_lines, ok;

	if ((text = malloc((size_t)(l->end - open))) == NULL)
		return !(l->r->oom = true);
	close = string_end(open + 1, l->end, text, &len, &many_lines);
	/* Text right after the closing quote of a string of several lines: it is the opening quote of another one. */
	if (close == l->end || (many_lines && close + 1 < l->end && is_word(close[1]))) {
		problem_error(l->ps, at, "this string is not closed; a closing \" is missing");
		while (l->p < l->end && *l->p != '\n')
			l->p++;
		for (len = (size_t)(l->p - open - 1); len > 0 && is_blank(open[len]); len--)
			;
		ok = emit(l, TOK_STRING, open + 1, len, at);
		free(text);
		return ok;
	}
	ok = emit(l, TOK_STRING, text, len, at);
	free(text);
	for (; l->p < close; l->p++)
		if (*l->p == '\n') {
			l->line++;
			l->line_start = l->p + 1;
		}
	l->p = close + 1;
	return ok;
}

/* DEFAULT: with or without blanks before the colon, and with or without any after it. */
static bool
default_word(struct lexer *l)
{
	const char *p = l->p + 7;
	struct place at = here(l, l->p);

	if (!l->first || l->end - l->p < 8 || strncasecmp(l->p, "DEFAULT", 7) != 0)
		return false;
	while (p < l->end && is_blank(*p))
		p++;
	if (p == l->end || *p != ':')
		return false;
	if (strncmp(l->p, "DEFAULT", 7) != 0)
		problem_error(l->ps, at, "%.7s: is written in capitals, DEFAULT:", l->p);
	emit(l, TOK_DEFAULT, "DEFAULT:", 8, at);
	l->p = p + 1;
	return true;
}

static bool
word(struct lexer *l)
{
	const char *start = l->p;
	struct place at = here(l, start);
	bool star = *start == '*' && l->first;

	if (default_word(l))
		return !l->r->oom;
	while (l->p < l->end && is_word(*l->p))
		l->p++;
	if (star)
		return emit(l, TOK_SECTION, start + 1, (size_t)(l->p - start - 1), at);
	return emit(l, TOK_WORD, start, (size_t)(l->p - start), at);
}

bool
lex(struct raw *r, const char *text, size_t len, struct tokens *out, struct problems *ps)
{
	struct lexer l = {
		.r = r, .ps = ps, .out = out, .p = text, .end = text + len, .line_start = text, .line = 1, .first = true
	};
	bool ok = true;

	while (ok && l.p < l.end) {
		if (*l.p == '\n') {
			l.line_start = ++l.p;
			l.line++;
			l.first = true;
		} else if (is_blank(*l.p))
			l.p++;
		else if (*l.p == '#')
			while (l.p < l.end && *l.p != '\n')
				l.p++;
		else if (*l.p == '"')
			ok = string(&l);
		else if (*l.p == '=' || *l.p == ',') {
			ok = emit(&l, *l.p == '=' ? TOK_EQUALS : TOK_COMMA, l.p, 1, here(&l, l.p));
			l.p++;
		} else if (is_word(*l.p))
			ok = word(&l);
		else {
			problem_error(
			    ps, here(&l, l.p), "a byte 0x%02x stands here; text is expected", (unsigned char)*l.p);
			while (l.p < l.end && !is_word(*l.p) && !is_blank(*l.p) &&
			       strchr("\n=,\"#", *l.p ? *l.p : 1) == NULL)
				l.p++;
		}
	}
	l.first = true;			/* the end counts as column 1: it ends an entry */
	return ok &&
	       emit(&l, TOK_END, "", 0, (struct place){ .line = l.line, .column = (int)(l.end - l.line_start) + 1 }) &&
	       (out->v[out->n - 1].column1 = true);
}
