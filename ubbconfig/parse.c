#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ubb_impl.h"

struct parser {
	struct raw *r;
	struct problems *ps;
	const struct token *t;		/* the next one */
	enum section section;
	bool known;			/* false: in no section, or in one that is skipped */
	struct raw_entry defaults;	/* of the section so far */
};

static const char *
token_text(const struct token *t, char *buf, size_t size)
{
	switch (t->kind) {
	case TOK_SECTION: snprintf(buf, size, "section *%.60s", t->text); break;
	case TOK_STRING: snprintf(buf, size, "\"%.60s\"", t->text); break;
	case TOK_END: snprintf(buf, size, "the end of the file"); break;
	default: snprintf(buf, size, "%.60s", t->text); break;
	}
	return buf;
}

static bool
starts_entry(const struct token *t)
{
	return t->column1 || t->kind == TOK_SECTION || t->kind == TOK_DEFAULT || t->kind == TOK_END;
}
static bool is_value(const struct token *t) { return t->kind == TOK_WORD || t->kind == TOK_STRING; }

/* After an error: on to where a parameter or an entry begins. */
static void
skip_to_parameter(struct parser *p)
{
	while (!starts_entry(p->t) && !(p->t[0].kind == TOK_WORD && p->t[1].kind == TOK_EQUALS))
		p->t++;
}

/* One value, or several with commas between, joined.  NULL: there is none, and it was said; or no memory. */
static char *
value(struct parser *p, const struct token *name)
{
	const struct token *t = p->t, *last;
	char found[80], *v;
	size_t len;

	/* Only a comma lets a value go on in column 1, and only text that is not the next NAME=. */
	if (!is_value(t) || t->column1 || (t->kind == TOK_WORD && t[1].kind == TOK_EQUALS)) {
		problem_error(
		    p->ps, name->at, "%s has no value; found %s", name->text, token_text(t, found, sizeof found));
		return NULL;
	}
	len = strlen(t->text);
	for (last = t; last[1].kind == TOK_COMMA && is_value(&last[2]); last += 2)
		len += 1 + strlen(last[2].text);
	if ((v = arena_alloc(&p->r->arena, len + 1)) == NULL) {
		p->r->oom = true;
		return NULL;
	}
	for (len = 0;; t += 2) {
		memcpy(v + len, t->text, strlen(t->text));
		len += strlen(t->text);
		if (t == last)
			break;
		v[len++] = ',';
	}
	p->t = last + 1;
	if (p->t->kind == TOK_COMMA) {
		problem_error(p->ps, p->t->at, "after this comma another value of %s is expected; found %s", name->text,
		    token_text(&p->t[1], found, sizeof found));
		p->t++;
	}
	return v;
}

/* NAME=value, in RESOURCES the = may be missing; into e. */
static void
parameter(struct parser *p, struct raw_entry *e)
{
	const struct section_def *s = &ubb_sections[p->section];
	const struct token *name = p->t++;
	const struct param_def *d = param_find(s, name->text, strlen(name->text));
	struct place at;
	char why[512], *v;

	if (p->t->kind == TOK_EQUALS)
		p->t++;
	else if (p->section != S_RESOURCES) {
		if (d != NULL)
			problem_error(
			    p->ps, name->at, "%s is not followed by =; write %s=value", name->text, name->text);
		else
			problem_error(p->ps, name->at,
			    "found \"%.60s\"; allowed here is NAME=value, and a new %s begins in column 1", name->text,
			    s->noun);
		skip_to_parameter(p);
		return;
	}
	at = p->t->at;
	if (d == NULL) {
		param_explain_unknown(s, name->text, why, sizeof why);
		problem_error(p->ps, name->at, "%s", why);
		if (is_value(p->t) && !p->t->column1 && p->t[1].kind != TOK_EQUALS)
			value(p, name);
		return;
	}
	if ((v = value(p, name)) == NULL) {
		skip_to_parameter(p);
		return;
	}
	raw_param_add(p->r, e, d, v, name->at, at, p->ps);
}

static void
parameters(struct parser *p, struct raw_entry *e)
{
	const struct section_def *s = &ubb_sections[p->section];
	char found[80];

	while (!p->r->oom) {
		if (p->t->kind == TOK_WORD && p->t->column1 && p->t[1].kind == TOK_EQUALS &&
		    param_find(s, p->t->text, strlen(p->t->text)) != NULL)
			problem_warning(p->ps, p->t->at,
			    "%s= stands in column 1, where a new %s would begin; taken as a parameter of the one "
			    "before",
			    p->t->text, s->noun);
		else if (starts_entry(p->t))
			break;
		if (p->t->kind == TOK_WORD)
			parameter(p, e);
		else {
			problem_error(p->ps, p->t->at, "found %s; allowed here is NAME=value",
			    token_text(p->t, found, sizeof found));
			p->t++;
			skip_to_parameter(p);
		}
	}
}

static void
resources(struct parser *p)
{
	struct raw_section *s = &p->r->section[S_RESOURCES];
	struct raw_entry *e = s->n > 0 ? s->entry : raw_entry_add(p->r, S_RESOURCES, "RESOURCES", s->at);
	char found[80];

	while (e != NULL && !p->r->oom && p->t->kind != TOK_SECTION && p->t->kind != TOK_END) {
		if (p->t->kind == TOK_WORD)
			parameter(p, e);
		else {
			problem_error(p->ps, p->t->at,
			    p->t->kind == TOK_DEFAULT ? "found %s; *RESOURCES has no defaults"
						      : "found %s; allowed here is NAME value",
			    token_text(p->t, found, sizeof found));
			p->t++;
		}
	}
}

/* DEFAULT: adds to the defaults so far, each parameter in place of an older one; without parameters it clears them. */
static void
defaults(struct parser *p)
{
	struct raw_entry fresh = { .name = p->t->text, .at = p->t->at };
	size_t i, j;

	p->t++;
	parameters(p, &fresh);
	if (fresh.n > 0)
		for (i = 0; i < p->defaults.n; i++) {
			for (j = 0; j < fresh.n && fresh.param[j]->def != p->defaults.param[i]->def; j++)
				;
			if (j < fresh.n)
				continue;
			if (fresh.n == fresh.cap) {
				struct raw_param **v =
				    arena_alloc(&p->r->arena, 2 * fresh.cap * sizeof(struct raw_param *));

				if (v == NULL) {
					p->r->oom = true;
					return;
				}
				memcpy(v, fresh.param, fresh.n * sizeof(struct raw_param *));
				fresh.param = v;
				fresh.cap *= 2;
			}
			fresh.param[fresh.n++] = p->defaults.param[i];
		}
	p->defaults = fresh;
}

static void
apply_defaults(struct parser *p, struct raw_entry *e)
{
	struct raw_param **v;
	size_t i, j, own = e->n;

	if (p->defaults.n == 0)
		return;
	if ((v = arena_alloc(&p->r->arena, (own + p->defaults.n) * sizeof(struct raw_param *))) == NULL) {
		p->r->oom = true;
		return;
	}
	if (own > 0)
		memcpy(v, e->param, own * sizeof(struct raw_param *));
	e->param = v;
	e->cap = own + p->defaults.n;
	for (i = 0; i < p->defaults.n; i++) {
		for (j = 0; j < own && v[j]->def != p->defaults.param[i]->def; j++)
			;
		if (j == own)
			v[e->n++] = p->defaults.param[i];
	}
}

static void
entry(struct parser *p)
{
	struct raw_entry *e;
	const struct token *name = p->t++;

	raw_name_check(p->section, name->text, name->at, p->ps);
	if ((e = raw_entry_add(p->r, p->section, name->text, name->at)) == NULL)
		return;
	parameters(p, e);
	apply_defaults(p, e);
}

static void
entries(struct parser *p)
{
	const struct section_def *s = &ubb_sections[p->section];
	char found[80];

	p->defaults = (struct raw_entry){ .n = 0 };
	while (!p->r->oom && p->t->kind != TOK_SECTION && p->t->kind != TOK_END) {
		if (p->t->kind == TOK_DEFAULT)
			defaults(p);
		else if (is_value(p->t) && p->t->column1 && p->t[1].kind != TOK_EQUALS)
			entry(p);
		else {
			problem_error(p->ps, p->t->at, "found %s; allowed here is the name of a %s, in column 1",
			    token_text(p->t, found, sizeof found), s->noun);
			do
				p->t++;
			while (!starts_entry(p->t));
		}
	}
}

/* What must stand before what: RESOURCES, MACHINES, then the others; GROUPS before what refers to groups. */
static void
section_order(struct parser *p, const struct token *t)
{
	const struct raw_section *s = p->r->section;
	const struct section_def *d = &ubb_sections[p->section];
	int i;

	if (p->section == S_RESOURCES)
		for (i = S_MACHINES; i < N_SECTIONS; i++)
			if (s[i].seen) {
				problem_error(p->ps, t->at,
				    "*RESOURCES must be the first section; *%s stands before it at line %d",
				    ubb_sections[i].name, s[i].at.line);
				return;
			}
	if (p->section == S_MACHINES)
		for (i = S_GROUPS; i < N_SECTIONS; i++)
			if (s[i].seen) {
				problem_error(p->ps, t->at,
				    "*MACHINES must be the second section; *%s stands before it at line %d",
				    ubb_sections[i].name, s[i].at.line);
				return;
			}
	if (p->section == S_GROUPS)
		for (i = S_SERVERS; i < N_SECTIONS; i++)
			if (s[i].seen) {
				problem_error(p->ps, t->at, "*GROUPS must stand before *%s, which begins at line %d",
				    ubb_sections[i].name, s[i].at.line);
				return;
			}
	if (s[p->section].seen)
		problem_warning(
		    p->ps, t->at, "*%s begins again; it begins first at line %d", d->name, s[p->section].at.line);
}

/* Sections of other features: read over. */
static const char *const ignored[] = { "INTERFACES", "MODULES" };

static void
section(struct parser *p)
{
	const struct token *t = p->t++;
	char names[128] = "";
	size_t i, n;

	p->known = false;
	for (i = 0; i < sizeof ignored / sizeof *ignored; i++)
		if (strcasecmp(t->text, ignored[i]) == 0) {
			if (p->t->kind != TOK_SECTION && p->t->kind != TOK_END)
				problem_warning(
				    p->ps, t->at, "*%s has no effect here and is left out of TUXCONFIG", ignored[i]);
			return;
		}
	for (i = 0; i < N_SECTIONS && strcasecmp(t->text, ubb_sections[i].name) != 0; i++) {
		n = strlen(names);
		snprintf(names + n, sizeof names - n, "%s%s", i ? "|" : "", ubb_sections[i].name);
	}
	if (i == N_SECTIONS) {
		const char *near = words_nearest(t->text, names);

		if (near != NULL)
			problem_error(p->ps, t->at, "*%.40s is no section; did you mean *%.*s?", t->text,
			    (int)strcspn(near, "|"), near);
		else
			problem_error(p->ps, t->at,
			    "*%.40s is no section; sections are *RESOURCES *MACHINES *GROUPS *NETGROUPS *NETWORK "
			    "*SERVERS *SERVICES *INTERFACES *ROUTING",
			    t->text);
		return;
	}
	if (strcmp(t->text, ubb_sections[i].name) != 0)
		problem_error(p->ps, t->at, "*%s is not in capitals; write *%s", t->text, ubb_sections[i].name);
	p->section = (enum section)i;
	p->known = true;
	section_order(p, t);
	if (!p->r->section[i].seen) {
		p->r->section[i].seen = true;
		p->r->section[i].at = t->at;
	}
	if (i == S_RESOURCES)
		resources(p);
	else
		entries(p);
}

void
parse(struct raw *r, const char *text, size_t len, struct problems *ps)
{
	struct tokens tokens = { .n = 0 };
	struct parser p = { .r = r, .ps = ps, .known = true };
	char found[80];

	if (!lex(r, text, len, &tokens, ps))
		goto done;
	p.t = tokens.v;
	while (!r->oom && p.t->kind != TOK_END) {
		if (p.t->kind == TOK_SECTION)
			section(&p);
		else {
			if (p.known)		/* before the first section; one message is enough */
				problem_error(ps, p.t->at,
				    "found %s; allowed here is a section such as *RESOURCES, the star in column 1",
				    token_text(p.t, found, sizeof found));
			p.known = false;
			p.t++;
		}
	}
done:
	free(tokens.v);
}
