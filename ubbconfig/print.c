#include <ctype.h>
#include <string.h>

#include "ubb_impl.h"

static bool
is_plain(const char *s)
{
	const char *c = s;

	if (!isalnum((unsigned char)*c) && *c != '_')
		return false;
	for (; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != ',')
			return false;
	return true;
}

static void
print_string(FILE *out, const char *s, bool quoted)
{
	if (!quoted && is_plain(s)) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		putc(*s, out);
	}
	putc('"', out);
}

static void
print_value(FILE *out, const struct param_def *d, const void *record)
{
	char buf[400];

	print_string(out, param_text(d, record, buf, sizeof buf), d->type == T_STR || d->type == T_PATH);
}

static void
print_resources(const struct ubb *u, FILE *out)
{
	const struct section_def *s = &ubb_sections[S_RESOURCES];
	const struct param_def *d;
	size_t i;

	fprintf(out, "*RESOURCES\n");
	for (d = s->params; d < s->params + s->n_params; d++) {
		if (d->offset == KEPT || !param_is_given(d, &u->res))
			continue;
		fprintf(out, "%-15s ", d->name);
		print_value(out, d, &u->res);
		putc('\n', out);
	}
	for (i = 0; i < u->res.extras.n; i++) {
		fprintf(out, "%-15s ", u->res.extras.v[i].name);
		print_string(out, u->res.extras.v[i].value, u->res.extras.v[i].quoted);
		putc('\n', out);
	}
}

static void
print_entry(enum section sec, const void *record, FILE *out)
{
	const struct section_def *s = &ubb_sections[sec];
	const struct ubb_extras *x = ubb_extras_of(sec, record);
	const struct param_def *d;
	size_t i;

	print_string(out, *(char **)ubb_field(record, s->key_offset), sec == S_MACHINES);
	putc('\n', out);
	for (d = s->params; d < s->params + s->n_params; d++) {
		if (d->offset == KEPT || !param_is_given(d, record))
			continue;
		fprintf(out, "\t%s=", d->name);
		print_value(out, d, record);
		putc('\n', out);
	}
	for (i = 0; i < x->n; i++) {
		fprintf(out, "\t%s=", x->v[i].name);
		print_string(out, x->v[i].value, x->v[i].quoted);
		putc('\n', out);
	}
}

void
ubb_print(const struct ubb *u, FILE *out)
{
	/* tmloadcf warns of these three when they are missing. */
	static const bool always[N_SECTIONS] = { [S_GROUPS] = true, [S_SERVERS] = true, [S_SERVICES] = true };
	size_t i;
	int s;

	print_resources(u, out);
	for (s = S_MACHINES; s < N_SECTIONS; s++) {
		if (ubb_count(u, (enum section)s) == 0 && !always[s])
			continue;
		fprintf(out, "\n*%s\n", ubb_sections[s].name);
		for (i = 0; i < ubb_count(u, (enum section)s); i++)
			print_entry((enum section)s, ubb_record(u, (enum section)s, i), out);
	}
}
