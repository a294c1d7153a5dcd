#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

struct raw_entry *
raw_entry_add(struct raw *r, enum section s, const char *name, struct place at)
{
	struct raw_section *sec = &r->section[s];
	struct raw_entry *v;
	size_t cap;

	if (sec->n == sec->cap) {
		cap = sec->cap ? sec->cap * 2 : 16;
		if ((v = realloc(sec->entry, cap * sizeof *v)) == NULL) {
			r->oom = true;
			return NULL;
		}
		sec->entry = v;
		sec->cap = cap;
	}
	v = &sec->entry[sec->n];
	*v = (struct raw_entry){ .at = at };
	if ((v->name = arena_strndup(&r->arena, name, strlen(name))) == NULL) {
		r->oom = true;
		return NULL;
	}
	sec->n++;
	return v;
}

struct raw_param *
raw_param_add(struct raw *r, struct raw_entry *e, const struct param_def *d, const char *value,
    struct place at, struct place value_at, struct problems *ps)
{
	struct raw_param *p, **v;
	struct value meaning;
	char why[1024], *scratch;
	size_t i, cap;

	for (i = 0; i < e->n; i++)
		if (e->param[i]->def == d) {
			problem_error(ps, at, "%s is given again; it is given first at line %d, column %d", d->name,
			    e->param[i]->at.line, e->param[i]->at.column);
			return NULL;
		}
	if (e->n == e->cap) {		/* the old array stays in the arena: few entries have more than one */
		cap = e->cap ? e->cap * 2 : 8;
		if ((v = arena_alloc(&r->arena, cap * sizeof(struct raw_param *))) == NULL)
			goto no_memory;
		if (e->n > 0)
			memcpy(v, e->param, e->n * sizeof(struct raw_param *));
		e->param = v;
		e->cap = cap;
	}
	if ((p = arena_alloc(&r->arena, sizeof *p)) == NULL ||
	    (p->value = arena_strndup(&r->arena, value, strlen(value))) == NULL)
		goto no_memory;
	p->def = d;
	p->at = at;
	p->value_at = value_at;
	if ((scratch = arena_strndup(&r->arena, value, strlen(value))) == NULL)
		goto no_memory;
	if (!param_value(d, scratch, &meaning, why, sizeof why)) {
		problem_error(ps, value_at, "%s", why);
		p->bad = true;
	}
	e->param[e->n++] = p;
	return p;
no_memory:
	r->oom = true;
	return NULL;
}

static const struct raw_param *
find(const struct raw_entry *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		if (strcmp(e->param[i]->def->name, name) == 0)
			return e->param[i];
	return NULL;
}

const struct raw_param *
raw_given(const struct raw_entry *e, const char *name)
{
	const struct raw_param *p = find(e, name);

	return p != NULL && !p->bad ? p : NULL;
}

struct place
raw_place(const struct raw_entry *e, const char *name)
{
	const struct raw_param *p = find(e, name);

	return p != NULL ? p->value_at : e->at;
}

void
raw_name_check(enum section s, const char *name, struct place at, struct problems *ps)
{
	const struct section_def *d = &ubb_sections[s];
	size_t n = strlen(name);
	const char *c;

	if (n == 0)
		problem_error(ps, at, "the name of a %s is empty; allowed are 1 to %ld bytes", d->noun, d->key_max);
	else if (n > (size_t)d->key_max)
		problem_error(ps, at, "the name of a %s has %zu bytes; allowed are %ld: \"%.40s%s\"", d->noun, n,
		    d->key_max, name, n > 40 ? "..." : "");
	for (c = name; *c; c++)
		if ((unsigned char)*c < ' ') {
			problem_error(ps, at, "the name of a %s holds a byte 0x%02x; allowed are printing characters",
			    d->noun, *c);
			return;
		}
}

void
raw_free(struct raw *r)
{
	int i;

	for (i = 0; i < N_SECTIONS; i++)
		free(r->section[i].entry);
	arena_free(&r->arena);
	*r = (struct raw){ .oom = false };
}
