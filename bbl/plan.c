#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"

bool
plan_select_option(struct plan_select *sel, int letter, const char *value)
{
	struct args *list = NULL;

	switch (letter) {
	case 'A': sel->all_admin = true; return true;
	case 'M': sel->master_admin = true; return true;
	case 'S': sel->all_servers = true; return true;
	case 'B': list = &sel->bbl_lmid; break;
	case 'l': list = &sel->lmid; break;
	case 'g': list = &sel->group; break;
	case 'T': list = &sel->tms_group; break;
	case 'i': list = &sel->srvid; break;
	case 's': list = &sel->aout; break;
	case 'o': list = &sel->sequence; break;
	default: return false;
	}
	return args_add(list, value) == 0;
}

static bool
narrows_servers(const struct plan_select *s)
{
	return s->lmid.n + s->group.n + s->srvid.n + s->aout.n + s->sequence.n > 0;
}

static bool
narrows_admin(const struct plan_select *s)
{
	return s->all_admin || s->master_admin || s->bbl_lmid.n > 0;
}

bool
plan_select_is_all(const struct plan_select *s)
{
	return !narrows_servers(s) && !narrows_admin(s) && !s->all_servers && s->tms_group.n == 0;
}

static int
fail(char **why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return -1;
}

static int
check_numbers(const struct args *list, const char *what, char **why)
{
	char *end;

	for (size_t i = 0; i < list->n; i++)
		if (strtol(list->v[i], &end, 10) < 0 || end == list->v[i] || *end != '\0')
			return fail(why, "%s %s is not a number", what, list->v[i]);
	return 0;
}

static int
check_groups(const struct args *list, const struct ubb *u, char **why)
{
	for (size_t i = 0; i < list->n; i++)
		if (ubb_group_by_name(u, list->v[i]) == NULL)
			return fail(why, "group %s is not in section GROUPS", list->v[i]);
	return 0;
}

static int
check_machines(const struct args *list, const struct ubb *u, char **why)
{
	for (size_t i = 0; i < list->n; i++)
		if (ubb_machine_by_lmid(u, list->v[i]) == NULL)
			return fail(why, "machine %s is not in section MACHINES", list->v[i]);
	return 0;
}

int
plan_select_check(const struct plan_select *s, const struct ubb *u, char **why)
{
	*why = NULL;
	return check_numbers(&s->srvid, "server id", why) != 0 || check_numbers(&s->sequence, "sequence", why) != 0 ||
	    check_groups(&s->group, u, why) != 0 || check_groups(&s->tms_group, u, why) != 0 ||
	    check_machines(&s->lmid, u, why) != 0 || check_machines(&s->bbl_lmid, u, why) != 0 ? -1 : 0;
}

void
plan_select_free(struct plan_select *s)
{
	args_free(&s->bbl_lmid);
	args_free(&s->lmid);
	args_free(&s->group);
	args_free(&s->tms_group);
	args_free(&s->srvid);
	args_free(&s->aout);
	args_free(&s->sequence);
}

/* --- does a process pass? --- */

static bool
among(const struct args *list, const char *value)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], value) == 0)
			return true;
	return false;
}

static bool
passes(const struct args *list, const char *value)
{
	return list->n == 0 || among(list, value);
}

static bool
passes_number(const struct args *list, long value)
{
	for (size_t i = 0; i < list->n; i++)
		if (strtol(list->v[i], NULL, 10) == value)
			return true;
	return list->n == 0;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool
bbl_is_wanted(const struct plan_select *s, const struct ubb *u, const struct ubb_machine *here)
{
	if (s->all_admin || among(&s->bbl_lmid, here->lmid) ||
	    (s->master_admin && strcmp(u->res.master[0], here->lmid) == 0))
		return true;
	return plan_select_is_all(s);
}

static bool
program_passes(const struct args *list, const char *program)
{
	return passes(list, program) || among(list, base_name(program));
}

/* -T names it by itself; else it passes as a server does: by its program, and by an id as psr shows it.  It has no SEQUENCE. */
static bool
tms_is_wanted(const struct plan_select *s, const struct ubb_group *g, long srvid)
{
	if (!passes(&s->lmid, g->lmid[0]))
		return false;
	if (among(&s->tms_group, g->name))
		return true;
	if (!narrows_servers(s) && !s->all_servers && !plan_select_is_all(s))
		return false;	/* -A, -M, -B, -T alone */
	return passes(&s->group, g->name) && s->sequence.n == 0 && passes_number(&s->srvid, srvid) &&
	    program_passes(&s->aout, g->tmsname);
}

static bool
server_is_wanted(const struct plan_select *s, const struct ubb_server *v, const struct ubb_group *g)
{
	if (!narrows_servers(s) && !s->all_servers && !plan_select_is_all(s))
		return false;	/* -A, -M, -B, -T alone */
	return passes(&s->lmid, g->lmid[0]) && passes(&s->group, g->name) && passes_number(&s->sequence, v->sequence) &&
	    program_passes(&s->aout, v->aout);
}

/* --- building --- */

static struct plan_step *
plan_add(struct plan *p, enum plan_kind kind, const struct ubb_group *g, long srvid)
{
	struct plan_step *v = realloc(p->v, (p->n + 1) * sizeof *v);

	if (v == NULL)
		return NULL;
	p->v = v;
	v = &p->v[p->n++];
	memset(v, 0, sizeof *v);
	v->kind = kind;
	v->group = g;
	v->srvid = srvid;
	if (g != NULL)
		snprintf(v->groupname, sizeof v->groupname, "%s", g->name);
	return v;
}

static int
add_named(struct plan *p, enum plan_kind kind, const struct ubb_group *g, long srvid, const char *name,
    const char *args, const struct ubb_server *conf)
{
	struct plan_step *v = plan_add(p, kind, g, srvid);

	if (v == NULL)
		return -1;
	v->conf = conf;
	snprintf(v->name, sizeof v->name, "%s", name);
	snprintf(v->args, sizeof v->args, "%s", args);
	return 0;
}

static int
add_tms(struct plan *p, const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel)
{
	int rc = 0;

	for (size_t i = 0; i < u->n_groups; i++) {
		const struct ubb_group *g = &u->groups[i];

		if (g->tmsname[0] == '\0' || strcmp(g->lmid[0], here->lmid) != 0)
			continue;
		for (long k = 0; k < g->tmscount && rc == 0; k++)
			if (tms_is_wanted(sel, g, REG_TMS_FIRST + k))
				rc = add_named(p, PLAN_TMS, g, REG_TMS_FIRST + k, g->tmsname, "-A", NULL);
	}
	return rc;
}

/* MIN instances; an instance up to MAX where its id is asked for, or where what runs is looked for. */
static int
add_instances(struct plan *p, const struct ubb_server *v, const struct ubb_group *g, const struct plan_select *sel,
    bool all)
{
	long max = v->max > v->min ? v->max : v->min;
	int rc = 0;

	for (long k = 0; k < max && rc == 0; k++) {
		bool chosen = sel->srvid.n > 0 && passes_number(&sel->srvid, v->srvid + k);

		if (chosen || (sel->srvid.n == 0 && (all || k < v->min)))
			rc = add_named(p, PLAN_SERVER, g, v->srvid + k, v->aout, v->clopt, v);
	}
	return rc;
}

struct ordered { long sequence; size_t at; };

static int
by_sequence(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if ((x->sequence == 0) != (y->sequence == 0))
		return x->sequence == 0 ? 1 : -1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int
add_servers(struct plan *p, const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel,
    bool all)
{
	struct ordered *order = calloc(u->n_servers + 1, sizeof *order);
	int rc = order != NULL ? 0 : -1;

	for (size_t i = 0; i < u->n_servers && rc == 0; i++)
		order[i] = (struct ordered){ u->servers[i].sequence, i };
	if (rc == 0)
		qsort(order, u->n_servers, sizeof *order, by_sequence);
	for (size_t i = 0; i < u->n_servers && rc == 0; i++) {
		const struct ubb_server *v = &u->servers[order[i].at];
		const struct ubb_group *g = ubb_group_by_name(u, v->srvgrp);

		if (g != NULL && strcmp(g->lmid[0], here->lmid) == 0 && server_is_wanted(sel, v, g))
			rc = add_instances(p, v, g, sel, all);
	}
	free(order);
	return rc;
}

static int
plan_make(const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel, bool all,
    struct plan *out)
{
	int rc = 0;

	memset(out, 0, sizeof *out);
	if (bbl_is_wanted(sel, u, here))
		rc = add_named(out, PLAN_BBL, NULL, 0, "BBL", "-A", NULL);
	if (rc != 0 || add_tms(out, u, here, sel) != 0 || add_servers(out, u, here, sel, all) != 0) {
		plan_free(out);
		return -1;
	}
	return 0;
}

int
plan_boot(const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel, struct plan *out)
{
	return plan_make(u, here, sel, false, out);
}

int
plan_shutdown(const struct ubb *u, const struct ubb_machine *here, const struct plan_select *sel, struct plan *out)
{
	if (plan_make(u, here, sel, true, out) != 0)
		return -1;
	for (size_t i = 0; i < out->n / 2; i++) {
		struct plan_step t = out->v[i];

		out->v[i] = out->v[out->n - 1 - i];
		out->v[out->n - 1 - i] = t;
	}
	return 0;
}

void
plan_free(struct plan *p)
{
	free(p->v);
	memset(p, 0, sizeof *p);
}
