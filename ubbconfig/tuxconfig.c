/*
 * tuxconfig - the compiled form, a libconfig text.  The only file that knows libconfig.
 *
 *     version = 1;
 *     rundir = "/tmp/.atmiq-1000-cd84";
 *     resources : { IPCKEY = 52612; MASTER = "SITE1"; ... };
 *     machines = ( { ADDRESS = "gumby"; LMID = "SITE1"; ... } );
 *     groups = ( ... ); ... one list for each section
 *     complete = true;
 *
 * Parameters have the names of UBBCONFIG; permissions are strings ("0660"), since libconfig has no octal numbers.
 * As a source for tmloadcf the same text may lack version, rundir and complete.
 *
 * Older libconfig cuts a number beyond 32 bits that has no L, and reads 0660 as six hundred and sixty.  So the text
 * is looked through first: such an L is added, such a 0 is an error.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libconfig.h>
#include <sys/stat.h>

#include "ubb_impl.h"

enum { TUXCONFIG_VERSION = 1 };

static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '*'; }

bool
config_recognise(const char *text, size_t len)
{
	static const char *const names[] = { "version", "rundir", "resources", "machines", "groups", "netgroups",
		"network", "servers", "services", "routing", "complete" };
	const char *p = text, *end = text + len;
	size_t i, n;

	for (; p < end; p++) {
		if (*p == '#')
			while (p < end && *p != '\n')
				p++;
		else if (!isspace((unsigned char)*p))
			break;
	}
	if (p >= end)
		return false;
	if (*p == '@' || (*p == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*')))
		return true;
	for (n = 0; p + n < end && is_name_char(p[n]) && p[n] != '*'; n++)
		;
	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == n && memcmp(names[i], p, n) == 0)
			return true;
	return false;
}

/* --- reading --- */
struct reader {
	struct raw *r;
	struct problems *ps;
	const char *text;		/* looked through, NUL-terminated */
	const char **line;		/* starts of lines */
	size_t n_lines;
};

static size_t
skip_string(const char *p)
{
	size_t n = 1;

	while (p[n] && p[n] != '"')
		n += p[n] == '\\' && p[n + 1] ? 2 : 1;
	return n + (p[n] == '"');
}

static size_t
skip_comment(const char *p)
{
	const char *end;

	if (*p == '#' || (*p == '/' && p[1] == '/'))
		return strcspn(p, "\n");
	if (*p == '/' && p[1] == '*')
		return (end = strstr(p + 2, "*/")) != NULL ? (size_t)(end + 2 - p) : strlen(p);
	return 0;
}

/* A number at p: its length.  *wide: needs an L it has not. */
static size_t
number_length(const char *p, bool *wide, bool *octal)
{
	size_t sign = *p == '-' || *p == '+', n = sign;
	long long v;

	*wide = *octal = false;
	if (!isdigit((unsigned char)p[n]))
		return 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '.' ||
	       ((p[n] == '-' || p[n] == '+') && strchr("eE", p[n - 1]) != NULL))
		n++;
	if (p[sign] == '0' && (p[sign + 1] == 'x' || p[sign + 1] == 'X')) {
		v = strtoll(p, NULL, 16);
		*wide = p[n - 1] != 'L' && (v > INT32_MAX || v < INT32_MIN);
	} else if (memchr(p, '.', n) == NULL && memchr(p, 'e', n) == NULL && memchr(p, 'E', n) == NULL) {
		v = strtoll(p, NULL, 10);
		*wide = p[n - 1] != 'L' && (v > INT32_MAX || v < INT32_MIN);
		*octal = p[sign] == '0' && isdigit((unsigned char)p[sign + 1]);
	}
	return n;
}

/* A copy of the text in which libconfig finds the right numbers.  NULL: no memory. */
static char *
look_through(const char *text, struct problems *ps)
{
	char *copy = malloc(2 * strlen(text) + 1), *to = copy;
	struct place at = { .line = 1, .column = 1 };
	const char *p = text, *line = text, *q;
	bool wide, octal;
	size_t n;

	while (copy != NULL && *p) {
		wide = octal = false;
		at.column = (int)(p - line) + 1;
		if (*p == '"')
			n = skip_string(p);
		else if ((n = skip_comment(p)) > 0)
			;
		else if (p == text || !is_name_char(p[-1]))
			n = number_length(p, &wide, &octal);
		if (octal)
			problem_error(ps, at, "%.*s: numbers have no octal form here; write it as a string, \"%.*s\"",
			    (int)(n < 40 ? n : 40), p, (int)(n < 40 ? n : 40), p);
		if (*p == '"' && (n < 2 || p[n - 1] != '"'))
			problem_error(ps, at, "this string is not closed; a closing \" is missing");
		if (*p == '@')
			problem_error(ps, at, "@include is not taken; the configuration must be one file");
		if (n == 0)
			n = 1;
		for (q = p; q < p + n; q++)
			if (*q == '\n') {
				at.line++;
				line = q + 1;
			}
		memcpy(to, p, n);
		to += n;
		p += n;
		if (wide)
			*to++ = 'L';
	}
	if (copy != NULL)
		*to = '\0';
	return copy;
}

static bool
index_lines(struct reader *rd)
{
	const char *p = rd->text;
	size_t n = 1;

	for (; *p; p++)
		n += *p == '\n';
	if ((rd->line = calloc(n, sizeof *rd->line)) == NULL)
		return false;
	for (p = rd->text; p != NULL; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		if (rd->n_lines < n)
			rd->line[rd->n_lines++] = p;
	return true;
}

/* libconfig tells the line; the column is where the name stands on it. */
static struct place
place_of(const struct reader *rd, const config_setting_t *s)
{
	unsigned line = config_setting_source_line(s);
	const char *name = config_setting_name(s), *start, *end, *found;
	struct place at = { .line = (int)line, .column = 1 };

	if (line == 0 || line > rd->n_lines)
		return at;
	start = rd->line[line - 1];
	end = line < rd->n_lines ? rd->line[line] : start + strlen(start);
	found = name ? memmem(start, (size_t)(end - start), name, strlen(name)) : start + strspn(start, " \t(,");
	if (found != NULL && found < end)
		at.column = (int)(found - start) + 1;
	return at;
}

/* A list of strings as UBBCONFIG has it: A,B.  NULL: not all are strings. */
static char *
join(struct reader *rd, const config_setting_t *s)
{
	char *text = arena_strndup(&rd->r->arena, "", 0), *longer;
	size_t len = 0, n;
	int i;

	for (i = 0; text != NULL && i < config_setting_length(s); i++) {
		const char *one = config_setting_get_string_elem(s, i);

		if (one == NULL)
			return NULL;
		n = strlen(one);
		if ((longer = arena_alloc(&rd->r->arena, len + n + 2)) != NULL)
			snprintf(longer, len + n + 2, i ? "%s,%s" : "%s%s", text, one);
		text = longer;
		len += n + (i > 0);
	}
	if (text == NULL)
		rd->r->oom = true;
	return text;
}

/* The value as UBBCONFIG would have it.  NULL: of a kind that no parameter has. */
static const char *
scalar(struct reader *rd, const config_setting_t *s, char *buf, size_t size)
{
	double f;

	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
		snprintf(buf, size, "%d", config_setting_get_int(s));
		return buf;
	case CONFIG_TYPE_INT64:
		snprintf(buf, size, "%lld", config_setting_get_int64(s));
		return buf;
	case CONFIG_TYPE_FLOAT:
		f = config_setting_get_float(s);
		snprintf(buf, size, f > -1e15 && f < 1e15 && f == (double)(long long)f ? "%.0f" : "%g", f);
		return buf;
	case CONFIG_TYPE_BOOL:
		return config_setting_get_bool(s) ? "Y" : "N";
	case CONFIG_TYPE_STRING:
		return config_setting_get_string(s);
	case CONFIG_TYPE_ARRAY:
	case CONFIG_TYPE_LIST:
		return join(rd, s);
	default:
		return NULL;
	}
}

static void
read_record(struct reader *rd, enum section sec, const config_setting_t *group)
{
	const struct section_def *d = &ubb_sections[sec];
	const struct param_def *param;
	struct place at = place_of(rd, group);
	struct raw_entry *e;
	const char *name = "RESOURCES", *value;
	char buf[400];
	int i;

	if (config_setting_type(group) != CONFIG_TYPE_GROUP) {
		problem_error(rd->ps, at, "allowed here is { NAME = value; ... }, a %s", d->noun);
		return;
	}
	if (d->key != NULL) {
		if (!config_setting_lookup_string(group, d->key, &name)) {
			problem_error(rd->ps, at, "%s is missing; every %s requires it, a string", d->key, d->noun);
			return;
		}
		raw_name_check(sec, name, at, rd->ps);
	}
	if ((e = raw_entry_add(rd->r, sec, name, at)) == NULL)
		return;
	for (i = 0; i < config_setting_length(group) && !rd->r->oom; i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);

		name = config_setting_name(s);
		if (name == NULL || (d->key != NULL && strcmp(name, d->key) == 0))
			continue;
		at = place_of(rd, s);
		if ((param = param_find(d, name, strlen(name))) == NULL) {
			param_explain_unknown(d, name, buf, sizeof buf);
			problem_error(rd->ps, at, "%s", buf);
		} else if ((value = scalar(rd, s, buf, sizeof buf)) == NULL) {
			if (!rd->r->oom)
				problem_error(
				    rd->ps, at, "%s is a group; allowed are a number, a string, true or false", name);
		} else
			raw_param_add(rd->r, e, param, value, at, at, rd->ps);
	}
}

static void
read_section(struct reader *rd, enum section sec, const config_setting_t *s)
{
	int i;

	rd->r->section[sec].seen = true;
	rd->r->section[sec].at = place_of(rd, s);
	if (sec == S_RESOURCES)
		read_record(rd, sec, s);
	else if (config_setting_type(s) != CONFIG_TYPE_LIST && config_setting_length(s) > 0)
		problem_error(rd->ps, rd->r->section[sec].at, "%s is not a list; allowed is %s = ( { ... }, { ... } )",
		    ubb_sections[sec].config_name, ubb_sections[sec].config_name);
	else
		for (i = 0; i < config_setting_length(s); i++)
			read_record(rd, sec, config_setting_get_elem(s, (unsigned)i));
}

static void
read_top(struct reader *rd, const config_setting_t *root)
{
	const config_setting_t *s;
	const char *name;
	int i, sec;

	for (i = 0; i < config_setting_length(root) && !rd->r->oom; i++) {
		s = config_setting_get_elem(root, (unsigned)i);
		name = config_setting_name(s);
		for (sec = 0; sec < N_SECTIONS && strcmp(name, ubb_sections[sec].config_name) != 0; sec++)
			;
		if (sec < N_SECTIONS)
			read_section(rd, (enum section)sec, s);
		else if (strcmp(name, "version") != 0 && strcmp(name, "rundir") != 0 && strcmp(name, "complete") != 0)
			problem_error(rd->ps, place_of(rd, s),
			    "%.60s is no section; sections are resources, machines, groups, netgroups, "
			    "network, servers, services, routing",
			    name);
	}
}

/* What only tmloadcf writes, and what nothing works without. */
static void
read_compiled(struct reader *rd, const config_t *c, char **rundir)
{
	struct place at = { .line = 1, .column = 1 };
	const char *dir;
	int version = 0, complete = 0;

	if (!config_lookup_int(c, "version", &version))
		problem_error(rd->ps, at, "is not a TUXCONFIG: it has no version; make it with tmloadcf");
	else if (version != TUXCONFIG_VERSION)
		problem_error(rd->ps, at,
		    "is a TUXCONFIG of version %d, and version %d is wanted; load the configuration again with "
		    "tmloadcf",
		    version, TUXCONFIG_VERSION);
	else if (!config_lookup_bool(c, "complete", &complete) || !complete)
		problem_error(rd->ps, at, "is damaged: its end is missing; load the configuration again with tmloadcf");
	else if (!config_lookup_string(c, "rundir", &dir) || *dir != '/')
		problem_error(rd->ps, at, "is damaged: rundir is missing; load the configuration again with tmloadcf");
	else if (rd->r->section[S_RESOURCES].n == 0 || rd->r->section[S_MACHINES].n == 0)
		problem_error(rd->ps, at,
		    "is damaged: resources or machines are missing; load the configuration again with tmloadcf");
	else if ((*rundir = strdup(dir)) == NULL)
		rd->r->oom = true;
}

bool
config_parse(struct raw *r, const char *text, size_t len, bool as_compiled, char **rundir, struct problems *ps)
{
	struct reader rd = { .r = r, .ps = ps };
	struct place at = { .line = 1, .column = 1 };
	char *copy = NULL;
	bool parsed = false;
	config_t c;

	if (strlen(text) != len) {
		for (; *text; text++)
			at = *text == '\n' ? (struct place){ .line = at.line + 1, .column = 1 } :
			    (struct place){ .line = at.line, .column = at.column + 1 };
		problem_error(ps, at, "a byte 0x00 stands here; text is expected");
		return false;
	}
	config_init(&c);
	if ((copy = look_through(text, ps)) == NULL || (rd.text = copy, !index_lines(&rd))) {
		r->oom = true;
		goto done;
	}
	if (ps->errors > 0)
		goto done;
	if (!config_read_string(&c, copy)) {
		at.line = config_error_line(&c) > 0 ? config_error_line(&c) : 1;
		problem_error(ps, at, "%s", config_error_text(&c) ? config_error_text(&c) : "cannot be read");
		goto done;
	}
	parsed = true;
	read_top(&rd, config_root_setting(&c));
	if (as_compiled)
		read_compiled(&rd, &c, rundir);
done:
	config_destroy(&c);
	free(rd.line);
	free(copy);
	return parsed;
}

static int
read_failed(char **why, const char *path, const char *text)
{
	if (asprintf(why, "%s: %s", path, text) < 0)
		*why = NULL;
	return -1;
}

/* The first of the problems, as one line. */
static char *
first_problem(struct problems *ps)
{
	char *line = NULL;
	size_t i;

	problems_print(ps, NULL);
	for (i = 0; i < ps->n && ps->v[i].warning; i++)
		;
	if (i == ps->n ||
	    asprintf(&line, "%s:%d:%d: %s", ps->name, ps->v[i].at.line, ps->v[i].at.column, ps->v[i].text) < 0)
		return NULL;
	return line;
}

int
tuxconfig_read(const char *path, struct ubb **out, char **why)
{
	struct raw raw = { .oom = false };
	struct problems ps = { .name = path };
	struct ubb *u = NULL;
	char *text = NULL, *rundir = NULL;
	struct stat st;
	size_t len;
	FILE *in;
	int rc = -1;

	*out = NULL;
	*why = NULL;
	if ((in = fopen(path, "re")) == NULL)
		return read_failed(why, path, strerror(errno));
	if (fstat(fileno(in), &st) == 0 && !S_ISREG(st.st_mode)) {
		read_failed(why, path, "is not a file");
		goto done;
	}
	if ((text = ubb_slurp(in, &len)) == NULL) {
		read_failed(why, path, strerror(errno));
		goto done;
	}
	if (!config_recognise(text, len)) {
		read_failed(why, path, "is not a TUXCONFIG; tmloadcf makes one");
		goto done;
	}
	config_parse(&raw, text, len, true, &rundir, &ps);
	if (!raw.oom && ps.errors == 0)
		u = build(&raw, &ps);
	if (ps.errors > 0)
		*why = first_problem(&ps);
	else if (u == NULL)
		read_failed(why, path, "there is no memory for this configuration");
	else {
		free(u->rundir);
		u->rundir = rundir;
		rundir = NULL;
		*out = u;
		u = NULL;
		rc = 0;
	}
done:
	fclose(in);
	ubb_free(u);
	raw_free(&raw);
	problems_free(&ps);
	free(rundir);
	free(text);
	return rc;
}

/* --- writing --- */
static bool
put_string(config_setting_t *group, const char *name, const char *value)
{
	config_setting_t *s = config_setting_add(group, name, CONFIG_TYPE_STRING);

	return s != NULL && config_setting_set_string(s, value) == CONFIG_TRUE;
}

static bool
put_number(config_setting_t *group, const char *name, long value)
{
	bool wide = value > INT32_MAX || value < INT32_MIN;
	config_setting_t *s = config_setting_add(group, name, wide ? CONFIG_TYPE_INT64 : CONFIG_TYPE_INT);

	return s != NULL &&
	       (wide ? config_setting_set_int64(s, value) : config_setting_set_int(s, (int)value)) == CONFIG_TRUE;
}

static bool
put_record(config_setting_t *group, enum section sec, const void *record)
{
	const struct section_def *d = &ubb_sections[sec];
	const struct ubb_extras *x = ubb_extras_of(sec, record);
	const struct param_def *p;
	char buf[400];
	size_t i;

	if (d->key != NULL && !put_string(group, d->key, *(char **)ubb_field(record, d->key_offset)))
		return false;
	for (p = d->params; p < d->params + d->n_params; p++) {
		if (p->offset == KEPT || !param_is_given(p, record))
			continue;
		long *number = ubb_field(record, (size_t)p->offset);

		if (p->type == T_NUM ? !put_number(group, p->name, *number) :
		    p->type == T_SCANUNIT && *number % 1000 == 0 ? !put_number(group, p->name, *number / 1000) :
		    !put_string(group, p->name, param_text(p, record, buf, sizeof buf)))
			return false;
	}
	for (i = 0; i < x->n; i++) {
		p = param_find(d, x->v[i].name, strlen(x->v[i].name));
		if (p != NULL && p->type == T_NUM ? !put_number(group, x->v[i].name, strtol(x->v[i].value, NULL, 10)) :
		    !put_string(group, x->v[i].name, x->v[i].value))
			return false;
	}
	return true;
}

static bool
put_all(config_t *c, const struct ubb *u, const char *rundir)
{
	config_setting_t *root = config_root_setting(c), *s, *done;
	size_t i;
	int sec;

	if (!put_number(root, "version", TUXCONFIG_VERSION) || !put_string(root, "rundir", rundir))
		return false;
	for (sec = 0; sec < N_SECTIONS; sec++) {
		s = config_setting_add(
		    root, ubb_sections[sec].config_name, sec == S_RESOURCES ? CONFIG_TYPE_GROUP : CONFIG_TYPE_LIST);
		if (s == NULL)
			return false;
		if (sec == S_RESOURCES && !put_record(s, S_RESOURCES, &u->res))
			return false;
		for (i = 0; sec != S_RESOURCES && i < ubb_count(u, (enum section)sec); i++) {
			config_setting_t *group = config_setting_add(s, NULL, CONFIG_TYPE_GROUP);

			if (group == NULL || !put_record(group, (enum section)sec, ubb_record(u, (enum section)sec, i)))
				return false;
		}
	}
	done = config_setting_add(root, "complete", CONFIG_TYPE_BOOL);
	return done != NULL && config_setting_set_bool(done, CONFIG_TRUE) == CONFIG_TRUE;
}

/* The rename counts once the directory is on disk. */
static int
sync_directory_of(const char *path)
{
	char *copy = strdup(path);
	int fd = -1, rc = -1;

	if (copy != NULL && (fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0)
		rc = fsync(fd);
	if (fd >= 0)
		close(fd);
	free(copy);
	return rc;
}

static int
write_file(const config_t *c, const char *path, const char *temporary, int fd)
{
	struct stat old;
	FILE *f = fdopen(fd, "w");
	int failed;

	if (f == NULL) {
		close(fd);
		return -1;
	}
	/* Whoever opened an older TUXCONFIG to others goes on to do so. */
	if (stat(path, &old) == 0 && fchmod(fd, old.st_mode & 0777) != 0) {
		fclose(f);
		return -1;
	}
	fputs("# Written by tmloadcf; tmunloadcf(1) prints it as UBBCONFIG text.\n", f);
	config_write(c, f);
	failed = fflush(f) != 0 || ferror(f) || fsync(fd) != 0;
	if (fclose(f) != 0 || failed || rename(temporary, path) != 0)
		return -1;
	return sync_directory_of(path);
}

int
tuxconfig_write(const struct ubb *u, const char *path)
{
	char chosen[4096], *temporary = NULL;
	const char *rundir = u->rundir;
	config_t c;
	int fd, rc = -1, error;

	config_init(&c);
	if (*rundir == '\0') {
		if (rundir_choose(u, chosen, sizeof chosen) != 0)
			goto done;
		rundir = chosen;
	}
	errno = ENOMEM;
	if (!put_all(&c, u, rundir) || asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		goto done;
	}
	if ((fd = mkostemp(temporary, O_CLOEXEC)) < 0)
		goto done;
	if ((rc = write_file(&c, path, temporary, fd)) != 0) {
		error = errno;
		unlink(temporary);
		errno = error;
	}
done:
	error = errno;
	free(temporary);
	config_destroy(&c);
	errno = error;
	return rc;
}
