#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/utsname.h>

#include "ubb_impl.h"

char *
ubb_slurp(FILE *in, size_t *len)
{
	char *text = NULL, *more;
	size_t cap = 0;

	*len = 0;
	do {
		if (cap - *len < 2) {
			cap = cap ? cap * 2 : 65536;
			if ((more = realloc(text, cap)) == NULL) {
				free(text);
				return NULL;
			}
			text = more;
		}
		*len += fread(text + *len, 1, cap - *len - 1, in);
	} while (!feof(in) && !ferror(in));
	if (ferror(in)) {
		free(text);
		return NULL;
	}
	text[*len] = '\0';
	return text;
}

/* The configuration must be this machine's and this user's: TUXCONFIG is written here and read here. */
static void
check_local(const struct ubb *u, const struct raw *r, const struct ubb_wanted *want, struct problems *ps)
{
	const struct ubb_machine *m = ubb_machine_here(u);
	const struct raw_entry *e;
	struct utsname host;

	if (m == NULL)
		return;
	e = &r->section[S_MACHINES].entry[m - u->machines];
	if (want->tuxconfig != NULL && raw_given(e, "TUXCONFIG") && strcmp(m->tuxconfig, want->tuxconfig) != 0)
		problem_error(ps, raw_place(e, "TUXCONFIG"),
		    "TUXCONFIG is \"%s\"; the environment variable TUXCONFIG is \"%s\", and both must be the same",
		    m->tuxconfig, want->tuxconfig);
	if (!want->local)
		return;
	if (uname(&host) == 0 && strcmp(host.nodename, m->address) != 0)
		problem_warning(ps, e->at,
		    "\"%s\" is not the name of this machine, which is \"%s\"; it is taken for this machine", m->address,
		    host.nodename);
	if (m->uid != (long)geteuid())
		problem_error(ps,
		    raw_given(e, "UID")         ? raw_place(e, "UID")
		    : r->section[S_RESOURCES].n ? raw_place(r->section[S_RESOURCES].entry, "UID")
						: e->at,
		    "UID is %ld; the user that loads the file has %ld, and it must be the same", m->uid,
		    (long)geteuid());
}

int
ubb_load(FILE *in, const char *name, const struct ubb_wanted *want, FILE *errors, int *warnings, struct ubb **out)
{
	struct problems ps = { .name = name };
	struct raw raw = { .oom = false };
	struct place start = { .line = 1, .column = 1 };
	struct ubb *u = NULL;
	size_t len, bom = 0;
	char *text;
	int n;

	*out = NULL;
	if ((text = ubb_slurp(in, &len)) == NULL) {
		problem_error(&ps, start, "cannot be read: %s", strerror(errno));
		goto done;
	}
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		bom = 3;
	if (!config_recognise(text + bom, len - bom))
		parse(&raw, text + bom, len - bom, &ps);
	else if (!config_parse(&raw, text + bom, len - bom, false, NULL, &ps) && !raw.oom)
		goto done;
	if (!raw.oom && (u = build(&raw, &ps)) != NULL) {
		check(u, &raw, &ps);
		if (want != NULL)
			check_local(u, &raw, want, &ps);
	} else
		problem_error(&ps, start, "there is no memory for this configuration");
done:
	problems_print(&ps, errors);
	if (warnings != NULL)
		*warnings = ps.warnings;
	if ((n = ps.errors) == 0) {
		*out = u;
		u = NULL;
	}
	ubb_free(u);
	raw_free(&raw);
	problems_free(&ps);
	free(text);
	return n;
}

int
ubb_parse(FILE *in, const char *name, FILE *errors, int *warnings, struct ubb **out)
{
	return ubb_load(in, name, NULL, errors, warnings, out);
}

static void
free_record(enum section s, void *record)
{
	const struct section_def *sec = &ubb_sections[s];
	struct ubb_extras *x = ubb_extras_of(s, record);
	size_t i;

	for (i = 0; i < sec->n_params; i++) {
		const struct param_def *d = &sec->params[i];
		char **text = d->offset == KEPT ? NULL : ubb_field(record, (size_t)d->offset);

		if (text == NULL || d->type == T_NUM || d->type == T_PERM || d->type == T_SCANUNIT || d->type == T_FLAG)
			continue;
		free(text[0]);
		if (d->type == T_IDS)
			free(text[1]);
	}
	if (sec->key != NULL)
		free(*(char **)ubb_field(record, sec->key_offset));
	for (i = 0; i < x->n; i++) {
		free(x->v[i].name);
		free(x->v[i].value);
	}
	free(x->v);
}

void
ubb_free(struct ubb *u)
{
	size_t i;
	int s;

	if (u == NULL)
		return;
	for (s = 0; s < N_SECTIONS; s++) {
		for (i = 0; i < ubb_count(u, (enum section)s); i++)
			free_record((enum section)s, ubb_record(u, (enum section)s, i));
		if (s != S_RESOURCES)
			free(*(void **)ubb_field(u, ubb_sections[s].array_offset));
	}
	free(u->rundir);
	free(u);
}
