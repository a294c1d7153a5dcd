/*
 * routing - what the criteria of *ROUTING say, piece by piece.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ubb.h"

static const char *
blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static bool
bad(struct ubb_range *r, const char *fmt, const char *p, size_t n)
{
	snprintf(r->why, sizeof r->why, fmt, (int)(n < 60 ? n : 60), p);
	return false;
}

/* 'text', where \' is a quote of the text; files of the field have "text" too. */
static bool
text_end(struct ubb_range *r, struct ubb_range_end *e, const char **at)
{
	const char *p = *at + 1;
	char quote = **at;
	size_t n = 0;

	for (; *p != '\0' && *p != quote; p++) {
		if (*p == '\\' && p[strspn(p, "\\")] == quote)
			p += strspn(p, "\\");
		if (n < sizeof e->text - 1)
			e->text[n++] = *p;
	}
	if (*p != quote)
		return bad(r, "%.*s in RANGES has no closing quote", *at, strlen(*at));
	e->text[n] = '\0';
	e->kind = UBB_END_TEXT;
	*at = p + 1;
	return true;
}

/* MIN, MAX, a number or 'text'. */
static bool
end_read(struct ubb_range *r, struct ubb_range_end *e, const char **at)
{
	const char *p = blanks(*at);
	char *after;

	if (*p == '\'' || *p == '"') {
		*at = p;
		return text_end(r, e, at);
	}
	if ((strncmp(p, "MIN", 3) == 0 || strncmp(p, "MAX", 3) == 0) && strchr(" \t-:", p[3]) != NULL && p[3] != '\0') {
		e->kind = p[1] == 'I' ? UBB_END_MIN : UBB_END_MAX;
		*at = p + 3;
		return true;
	}
	e->number = strtold(p, &after);
	if (after == p || strchr(".0123456789", p[strspn(p, "+-")]) == NULL)
		return bad(r, "\"%.*s\" in RANGES is no value; allowed are numbers, 'text', MIN, MAX and *", p, strcspn(p, ",:"));
	e->kind = UBB_END_NUMBER;
	*at = after;
	return true;
}

/* -1, 0, 1; kinds that cannot be compared are equal */
static int
end_compare(const struct ubb_range_end *a, const struct ubb_range_end *b)
{
	int d;

	if (a->kind == UBB_END_MIN || b->kind == UBB_END_MAX)
		return a->kind == b->kind ? 0 : -1;
	if (a->kind == UBB_END_MAX || b->kind == UBB_END_MIN)
		return 1;
	if (a->kind != b->kind)
		return 0;
	if (a->kind == UBB_END_NUMBER)
		return (a->number > b->number) - (a->number < b->number);
	d = strcmp(a->text, b->text);
	return (d > 0) - (d < 0);
}

static bool
values_read(struct ubb_range *r, const char **at)
{
	const char *from = *at;

	if (*from == '*') {
		r->any = true;
		*at = blanks(from + 1);
		return true;
	}
	if (!end_read(r, &r->low, at))
		return false;
	r->high = r->low;
	*at = blanks(*at);
	if (**at == '-') {
		++*at;
		if (!end_read(r, &r->high, at))
			return false;
		*at = blanks(*at);
	}
	if (end_compare(&r->low, &r->high) > 0)
		return bad(r, "\"%.*s\" in RANGES: the low end is above the high one", from, (size_t)(*at - from));
	return true;
}

const char *
ubb_range_next(const char *p, struct ubb_range *r)
{
	const char *from;
	size_t n;

	memset(r, 0, sizeof *r);
	p = from = blanks(p);
	if (*p == '\0')
		return NULL;
	if (!values_read(r, &p))
		return p;
	if (*p != ':') {
		bad(r, "\"%.*s\" in RANGES has no :group; allowed is low-high:group", from, strcspn(from, ","));
		return p;
	}
	p = blanks(p + 1);
	n = strcspn(p, ", \t\r\n");
	if (n == 0 || n >= sizeof r->group) {
		bad(r, n == 0 ? "\"%.*s\" in RANGES has no group behind the colon" : "group \"%.*s\" in RANGES is too long",
		    n == 0 ? from : p, n == 0 ? strcspn(from, ",") : n);
		return p;
	}
	memcpy(r->group, p, n);
	p = blanks(p + n);
	if (*p != ',' && *p != '\0')
		bad(r, "\"%.*s\" in RANGES: a comma is missing", from, strlen(from));
	return p + (*p == ',');
}

static bool
is_text(const struct ubb_range *r)
{
	return r->low.kind == UBB_END_TEXT || r->high.kind == UBB_END_TEXT;
}

bool
ubb_ranges_overlap(const struct ubb_range *a, const struct ubb_range *b)
{
	return !a->any && !b->any && is_text(a) == is_text(b) && end_compare(&a->low, &b->high) <= 0 && end_compare(&b->low, &a->high) <= 0;
}

/* ---- BUFTYPE ---- */

const char *
ubb_buftype_next(const char *p, struct ubb_buftype *t)
{
	size_t n;

	memset(t, 0, sizeof *t);
	p = blanks(p);
	if (*p == '\0')
		return NULL;
	n = strcspn(p, ":; \t\r\n");
	t->type = p;
	t->type_len = n;
	p = blanks(p + n);
	if (*p == ':') {
		t->subtypes = blanks(p + 1);
		t->subtypes_len = strcspn(t->subtypes, ";");
		p = t->subtypes + t->subtypes_len;
	}
	p += strcspn(p, ";");
	return p + (*p == ';');
}

/* Is the subtype among them?  Of XML it is the root element, which is not known to be another. */
static bool
has_subtype(const struct ubb_buftype *t, const char *subtype)
{
	const char *p = t->subtypes, *end = p == NULL ? NULL : p + t->subtypes_len;
	size_t n;

	if (p == NULL || *subtype == '\0')
		return true;
	for (; p < end; p += n + 1) {
		n = strcspn(p, ",; \t");
		if (n == strlen(subtype) && strncmp(p, subtype, n) == 0)
			return true;
	}
	return false;
}

const struct ubb_routing *
ubb_routing_find(const struct ubb *u, const char *name, const char *type, const char *subtype)
{
	struct ubb_buftype t;
	const char *p;
	size_t i;

	for (i = 0; i < u->n_routings; i++) {
		if (strcmp(u->routings[i].name, name) != 0)
			continue;
		for (p = u->routings[i].buftype; (p = ubb_buftype_next(p, &t)) != NULL;)
			if (t.type_len == strlen(type) && strncmp(t.type, type, t.type_len) == 0 && has_subtype(&t, subtype))
				return &u->routings[i];
	}
	return NULL;
}

bool
ubb_routing_of_all(const struct ubb_routing *r, char *group, size_t size)
{
	struct ubb_range first;

	if (ubb_range_next(r->ranges, &first) == NULL || *first.why != '\0' || !first.any)
		return false;
	snprintf(group, size, "%s", strcmp(first.group, "*") == 0 ? "" : first.group);
	return true;
}
