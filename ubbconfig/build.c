/*
 * build - a configuration as written becomes struct ubb, every default filled in.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ubb_impl.h"

static bool
set_string(char **to, const char *s)
{
	char *copy = strdup(s);

	if (copy == NULL)
		return false;
	free(*to);
	*to = copy;
	return true;
}

static bool
set_field(const struct param_def *d, void *record, const struct value *v)
{
	void *f = ubb_field(record, (size_t)d->offset);

	switch (d->type) {
	case T_NUM:
	case T_PERM:
	case T_SCANUNIT:
		*(long *)f = v->num;
		return true;
	case T_FLAG:
		*(bool *)f = v->num != 0;
		return true;
	case T_IDS:
		return set_string((char **)f, v->text[0]) && set_string((char **)f + 1, v->text[1]);
	default:
		return set_string(f, v->text[0]);
	}
}

/* A parameter without effect is kept as text; numbers in the one form that print.c writes. */
static bool
keep(struct ubb_extras *x, const struct param_def *d, const char *text, const struct value *v)
{
	struct ubb_extra *e = realloc(x->v, (x->n + 1) * sizeof *e);
	char buf[32];

	if (e == NULL)
		return false;
	x->v = e;
	e += x->n;
	if (d->type == T_NUM) {
		snprintf(buf, sizeof buf, "%ld", v->num);
		text = buf;
	}
	*e = (struct ubb_extra){ .name = strdup(d->name), .value = strdup(text), .quoted = d->type == T_STR };
	if (e->name == NULL || e->value == NULL) {
		free(e->name);
		free(e->value);
		return false;
	}
	x->n++;
	return true;
}

/* Extras keep the table's order, so that the order in a file does not show in TUXCONFIG. */
static bool
build_record(enum section s, void *record, const struct raw_entry *raw)
{
	const struct section_def *sec = &ubb_sections[s];
	const struct param_def *d;
	struct value v;
	const struct raw_param *p;
	char why[1024], *text;
	bool ok = true;

	for (d = sec->params; ok && d < sec->params + sec->n_params; d++) {
		v = (struct value){ .num = d->def, .text = { d->text ? d->text : "", "" } };
		if (d->offset != KEPT && !set_field(d, record, &v))
			return false;
		if (raw == NULL || (p = raw_given(raw, d->name)) == NULL)
			continue;
		if ((text = strdup(p->value)) == NULL)
			return false;
		param_value(d, text, &v, why, sizeof why);	/* was good once, is good again */
		ok = d->offset == KEPT ? keep(ubb_extras_of(s, record), d, text, &v) : set_field(d, record, &v);
		free(text);
	}
	return ok;
}

static void
require(enum section s, const struct raw_entry *e, struct problems *ps)
{
	const struct section_def *sec = &ubb_sections[s];
	const struct param_def *d;
	size_t i;

	for (d = sec->params; d < sec->params + sec->n_params; d++) {
		if (!(d->flags & P_REQUIRED))
			continue;
		for (i = 0; i < e->n && e->param[i]->def != d; i++)
			;
		if (i == e->n && sec->key == NULL)
			problem_error(ps, e->at, "%s is missing; *%s requires it", d->name, sec->name);
		else if (i == e->n)
			problem_error(ps, e->at, "%s is missing; every %s requires it, and %s \"%.60s\" has none",
			    d->name, sec->noun, sec->noun, e->name);
	}
}

static void unset(long *to, long value) { if (*to == UNSET) *to = value; }

static long
scans(long seconds, long scanunit_ms)
{
	long n = seconds * 1000 / scanunit_ms;

	return n > 0 ? n : 1;
}

static bool
derived_defaults(struct ubb *u)
{
	struct ubb_resources *r = &u->res;
	struct ubb_machine *m;
	char prefix[512];
	size_t i;

	unset(&r->uid, (long)getuid());
	unset(&r->gid, (long)getgid());
	unset(&r->sanityscan, scans(120, r->scanunit_ms));
	unset(&r->bblquery, scans(300, r->scanunit_ms));
	unset(&r->dbblwait, scans(20, r->scanunit_ms));
	unset(&r->blocktime, scans(60, r->scanunit_ms));
	for (i = 0; i < u->n_machines; i++) {
		m = &u->machines[i];
		unset(&m->uid, r->uid);
		unset(&m->gid, r->gid);
		unset(&m->perm, r->perm);
		unset(&m->maxaccessers, r->maxaccessers);
		unset(&m->maxgtt, r->maxgtt);
		if (*m->ulogpfx == '\0') {
			snprintf(prefix, sizeof prefix, "%.*s/ULOG", 256, m->appdir);
			if (!set_string(&m->ulogpfx, prefix))
				return false;
		}
	}
	for (i = 0; i < u->n_servers; i++)
		unset(&u->servers[i].max, u->servers[i].min);
	return true;
}

static bool
build_section(struct ubb *u, enum section s, const struct raw_section *raw, struct problems *ps)
{
	const struct section_def *sec = &ubb_sections[s];
	const struct raw_entry *e;
	void *record, *array;

	if (s == S_RESOURCES) {
		if (raw->n > 0)
			require(s, raw->entry, ps);
		return build_record(s, &u->res, raw->n > 0 ? raw->entry : NULL);
	}
	if (raw->n == 0)
		return true;
	if ((array = calloc(raw->n, sec->record_size)) == NULL)
		return false;
	*(void **)ubb_field(u, sec->array_offset) = array;
	for (e = raw->entry; e < raw->entry + raw->n; e++) {
		record = (char *)array + (size_t)(e - raw->entry) * sec->record_size;
		*(size_t *)ubb_field(u, sec->count_offset) += 1;
		require(s, e, ps);
		if (!set_string(ubb_field(record, sec->key_offset), e->name) || !build_record(s, record, e))
			return false;
	}
	return true;
}

struct ubb *
build(const struct raw *r, struct problems *ps)
{
	struct ubb *u = calloc(1, sizeof *u);
	int s;

	if (u == NULL || (u->rundir = strdup("")) == NULL)
		goto no_memory;
	for (s = 0; s < N_SECTIONS; s++)
		if (!build_section(u, (enum section)s, &r->section[s], ps))
			goto no_memory;
	if (!derived_defaults(u))
		goto no_memory;
	return u;
no_memory:
	ubb_free(u);
	return NULL;
}
