/*
 * check_routing - what must be true of *ROUTING: values that are values, groups that exist, types that can be routed.
 */
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

struct criterion {
	const struct ubb *u;
	const struct ubb_routing *r;
	const struct raw_entry *e;
	struct problems *ps;
};

static bool
is_text(const char *fieldtype)
{
	return strcmp(fieldtype, "STRING") == 0 || strcmp(fieldtype, "CHAR") == 0;
}

/* Numbers for fields that are numbers, text for others.  Where the type is not told files of the field have both. */
static bool
kind_fits(const struct criterion *c, const struct ubb_range_end *e)
{
	struct place at = raw_place(c->e, "RANGES");

	if (e->kind == UBB_END_MIN || e->kind == UBB_END_MAX || *c->r->fieldtype == '\0' ||
	    is_text(c->r->fieldtype) == (e->kind == UBB_END_TEXT))
		return true;
	problem_error(c->ps, at, "RANGES has %s, and FIELDTYPE is %s; allowed are %s", e->kind == UBB_END_TEXT ?
	    "text" : "numbers", c->r->fieldtype, e->kind == UBB_END_TEXT ? "numbers, MIN, MAX and *" :
	    "values in single quotes, MIN, MAX and *");
	return false;
}

static bool
range_good(const struct criterion *c, const struct ubb_range *r)
{
	struct place at = raw_place(c->e, "RANGES");

	if (*r->why != '\0') {
		problem_error(c->ps, at, "%s", r->why);
		return false;
	}
	if (strcmp(r->group, "*") != 0 && c->u->n_groups > 0 && ubb_group_by_name(c->u, r->group) == NULL)
		problem_error(c->ps, at, "group \"%s\" in RANGES is not in *GROUPS; allowed are its groups and *", r->group);
	return r->any || (kind_fits(c, &r->low) && kind_fits(c, &r->high));
}

/* Tuxedo takes the first range that fits, and so do we: ranges that overlap, or come behind *, are only pointed out. */
static void
ranges_check(const struct criterion *c)
{
	struct ubb_range *v = NULL, *more;
	const char *p = c->r->ranges;
	bool overlap = false;
	size_t n = 0, i;

	for (;; n++) {
		if ((more = realloc(v, (n + 1) * sizeof *v)) == NULL)
			break;
		v = more;
		if ((p = ubb_range_next(p, &v[n])) == NULL || !range_good(c, &v[n]))
			break;
		for (i = 0; i < n && !overlap; i++) {
			overlap = v[i].any || ubb_ranges_overlap(&v[i], &v[n]);
			if (overlap)
				problem_warning(c->ps, raw_place(c->e, "RANGES"),
				    "range %zu in RANGES has values of range %zu, which counts because it comes first", n + 1, i + 1);
		}
	}
	free(v);
}

static bool
type_is(const struct ubb_buftype *t, const char *name)
{
	return t->type_len == strlen(name) && strncmp(t->type, name, t->type_len) == 0;
}

static bool
is_one_of(const struct ubb_buftype *t, const char *const *names)
{
	while (*names != NULL && !type_is(t, *names))
		names++;
	return *names != NULL;
}

/* A program may have types of its own (tuxtypes(5)); the names of those that have no fields are ours. */
static void
type_check(const struct criterion *c, const struct ubb_buftype *t)
{
	static const char *const plain[] = { "FML", "FML32", NULL }, *const with[] = { "VIEW", "VIEW32", "X_C_TYPE", "X_COMMON", NULL },
		*const without_fields[] = { "STRING", "CARRAY", "X_OCTET", "TPINIT", "MBSTRING", "ALL", "*", "", NULL };
	struct place at = raw_place(c->e, "BUFTYPE");
	int n = t->type_len < 60 ? (int)t->type_len : 60;

	if (is_one_of(t, without_fields))
		problem_error(c->ps, at, "\"%.*s\" in BUFTYPE has no fields; allowed are FML, FML32, VIEW, VIEW32, X_C_TYPE, X_COMMON, XML, "
		    "with semicolons between", n, t->type);
	else if (is_one_of(t, plain) && t->subtypes != NULL)
		problem_error(c->ps, at, "\"%.*s\" in BUFTYPE has a subtype; allowed is none for that type", n, t->type);
	else if (is_one_of(t, with) && (t->subtypes == NULL || t->subtypes_len == 0 || *t->subtypes == '*'))
		problem_error(c->ps, at, "\"%.*s\" in BUFTYPE has no subtype; allowed is type:subtype, and not *", n, t->type);
}

/* The same type in two criteria of one name: which one is meant? */
static void
types_once(const struct criterion *c, size_t before)
{
	struct ubb_buftype t;
	const char *p = c->r->buftype;
	char type[64], subtype[64];
	size_t i;

	while ((p = ubb_buftype_next(p, &t)) != NULL) {
		snprintf(type, sizeof type, "%.*s", (int)t.type_len, t.type);
		snprintf(subtype, sizeof subtype, "%.*s", t.subtypes == NULL ? 0 : (int)strcspn(t.subtypes, ",; \t"),
		    t.subtypes == NULL ? "" : t.subtypes);
		for (i = 0; i < before; i++) {
			const struct ubb one = { .routings = &c->u->routings[i], .n_routings = 1 };

			if (ubb_routing_find(&one, c->r->name, type, subtype) != NULL) {
				problem_error(c->ps, c->e->at, "routing criterion %.80s is given again for the buffer type %s; entries of one "
				    "name have different types in BUFTYPE", c->r->name, type);
				return;
			}
		}
	}
}

void
routing_check(const struct ubb *u, const struct raw *r, struct problems *ps)
{
	struct ubb_buftype t;
	const char *p;
	size_t i;

	for (i = 0; i < u->n_routings; i++) {
		struct criterion c = { u, &u->routings[i], &r->section[S_ROUTING].entry[i], ps };

		ranges_check(&c);
		for (p = c.r->buftype; (p = ubb_buftype_next(p, &t)) != NULL;)
			type_check(&c, &t);
		types_once(&c, i);
	}
}
