/*
 * values - what a parameter's text means, what to say when it means nothing, and the text again.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ubb_impl.h"

static bool
number(const char *text, long *out)
{
	char *end;

	if (!isdigit((unsigned char)text[*text == '-' || *text == '+']))
		return false;
	errno = 0;
	*out = strtol(text, &end, 0);		/* ERANGE leaves LONG_MAX or LONG_MIN, which no range holds */
	return *end == '\0';
}

static bool
number_value(const struct param_def *d, const char *text, long *out, char *why, size_t size)
{
	char range[64];

	snprintf(range, sizeof range, d->type == T_PERM ? "0%.3lo to 0%.3lo" : "%ld to %ld", d->min, d->max);
	if (!number(text, out)) {
		snprintf(why, size, "%s is \"%.60s\", which is not a number%s; allowed are %s", d->name, text,
		    text[0] == '0' && strpbrk(text, "89") != NULL && text[1] != 'x' ? " (a leading 0 makes it octal)"
										    : "",
		    range);
		return false;
	}
	if (*out < d->min || *out > d->max) {
		snprintf(why, size, "%s is %.60s; allowed are %s%s", d->name, text, range,
		    d->type == T_PERM && text[0] != '0' ? " (a leading 0 makes it octal)" : "");
		return false;
	}
	return true;
}

/* Seconds, a multiple of 2 or 5 up to 60; or nMS, 20 to 30000. */
static bool
scanunit_value(const struct param_def *d, const char *text, long *out, char *why, size_t size)
{
	char digits[24];
	size_t n = strlen(text);
	long v;

	if (n > 2 && n < sizeof digits && strcasecmp(text + n - 2, "MS") == 0) {
		memcpy(digits, text, n - 2);
		digits[n - 2] = '\0';
		if (number(digits, &v) && v >= 20 && v <= 30000) {
			*out = v;
			return true;
		}
	} else if (number(text, &v) && v > 0 && v <= 60 && (v % 2 == 0 || v % 5 == 0)) {
		*out = v * 1000;
		return true;
	}
	snprintf(why, size,
	    "%s is \"%.60s\"; allowed are multiples of 2 or 5 from 2 to 60 (seconds), and 20MS to 30000MS", d->name,
	    text);
	return false;
}

/* Index of `word` in "A|B|C", or -1. */
static int
word_index(const char *words, const char *word, size_t len)
{
	const char *w = words;
	int i;

	for (i = 0;; i++) {
		size_t n = strcspn(w, "|");

		if (n == len && memcmp(w, word, n) == 0)
			return i;
		if (w[n] == '\0')
			return -1;
		w += n + 1;
	}
}

/* "A|B|C" as people read it. */
static const char *
words_list(const char *words, char *buf, size_t size)
{
	size_t n = 0;

	for (; *words && n + 3 < size; words++) {
		buf[n++] = *words == '|' ? ',' : *words;
		if (*words == '|')
			buf[n++] = ' ';
	}
	buf[n] = '\0';
	return buf;
}

static void
words_explain(const struct param_def *d, const char *word, char *why, size_t size)
{
	const char *near = words_nearest(word, d->words);
	char list[400], hint[80] = "";

	if (near != NULL)
		snprintf(hint, sizeof hint, " did you mean %.*s?", (int)strcspn(near, "|"), near);
	snprintf(why, size, "%s is \"%s\";%s allowed are %s%s", d->name, word, hint,
	    words_list(d->words, list, sizeof list),
	    d->type == T_WORDS ? " and lists of these with commas between" : "");
}

static bool
words_value(const struct param_def *d, const char *text, char *why, size_t size)
{
	const char *w = text;
	char one[64];

	for (;;) {
		size_t n = d->type == T_WORDS ? strcspn(w, ",") : strlen(w);

		if (word_index(d->words, w, n) < 0) {
			snprintf(one, sizeof one, "%.*s", (int)(n < 60 ? n : 60), w);
			words_explain(d, one, why, size);
			return false;
		}
		if (w[n] == '\0')
			return true;
		w += n + 1;
	}
}

static bool
string_value(const struct param_def *d, const char *text, char *why, size_t size)
{
	size_t n = strlen(text);
	const char *c;

	if (n > (size_t)d->max) {
		snprintf(why, size, "%s has %zu bytes; allowed are %ld: \"%.40s...\"", d->name, n, d->max, text);
		return false;
	}
	if (n == 0 && (d->flags & P_REQUIRED)) {
		snprintf(why, size, "%s is empty; it is required", d->name);
		return false;
	}
	if (n > 0 && d->type == T_PATH && *text != '/') {
		snprintf(
		    why, size, "%s is \"%.80s\"; allowed is an absolute path, one that begins with /", d->name, text);
		return false;
	}
	for (c = text; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\t') {
			snprintf(why, size, "%s holds a byte 0x%02x; allowed are printing characters", d->name,
			    (unsigned char)*c);
			return false;
		}
	return true;
}

static bool
name_value(const struct param_def *d, const char *text, char *why, size_t size)
{
	const char *c;

	if (!string_value(d, text, why, size))
		return false;
	for (c = text; *c; c++)
		if (isspace((unsigned char)*c) || *c == ',' || *c == '"') {
			snprintf(why, size,
			    "%s is \"%.60s\"; allowed is one name of at most %ld bytes without blanks or commas",
			    d->name, text, d->max);
			return false;
		}
	return true;
}

static bool
names_value(const struct param_def *d, char *text, struct value *v, char *why, size_t size)
{
	char *comma = strchr(text, ',');

	v->text[0] = text;
	v->text[1] = "";
	if (comma != NULL) {
		if (strchr(comma + 1, ',') != NULL) {
			snprintf(why, size, "%s is \"%.80s\"; allowed are one or two names", d->name, text);
			return false;
		}
		if (!name_value(d, comma + 1, why, size))
			return false;
		*comma = '\0';
		v->text[1] = comma + 1;
		if (!name_value(d, text, why, size)) {
			*comma = ',';
			return false;
		}
		return true;
	}
	return name_value(d, text, why, size);
}

static void
squeeze(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != ' ' && *text != '\t')
			*to++ = *text;
	*to = '\0';
}

bool
param_value(const struct param_def *d, char *text, struct value *v, char *why, size_t size)
{
	int i;

	*v = (struct value){ .text = { text, "" } };
	switch (d->type) {
	case T_NUM:
	case T_PERM:
		return number_value(d, text, &v->num, why, size);
	case T_SCANUNIT:
		return scanunit_value(d, text, &v->num, why, size);
	case T_FLAG:
		if ((i = word_index(d->words, text, strlen(text))) < 0)
			return words_value(d, text, why, size);
		v->num = i;
		return true;
	case T_CHOICE:
		return words_value(d, text, why, size);
	case T_WORDS:
		squeeze(text);
		return words_value(d, text, why, size);
	case T_ID:
		return name_value(d, text, why, size);
	case T_IDS:
		squeeze(text);
		return names_value(d, text, v, why, size);
	case T_STR:
	case T_PATH:
		if ((d->flags & P_NONE) && strcmp(text, "NONE") == 0)
			v->text[0] = "";
		return string_value(d, text, why, size);
	}
	return false;
}

bool
param_is_given(const struct param_def *d, const void *record)
{
	const void *f = ubb_field(record, (size_t)d->offset);

	switch (d->type) {
	case T_NUM:
		return !(d->flags & P_ZERO_ABSENT) || *(const long *)f != 0;
	case T_PERM:
	case T_SCANUNIT:
	case T_FLAG:
		return true;
	default:		/* an empty string is worth printing only where it overrides a default */
		return **(char *const *)f != '\0' || d->text != NULL;
	}
}

const char *
param_text(const struct param_def *d, const void *record, char *buf, size_t size)
{
	const void *f = ubb_field(record, (size_t)d->offset);
	char *const *s = f;
	long v;

	switch (d->type) {
	case T_NUM:
		snprintf(buf, size, "%ld", *(const long *)f);
		return buf;
	case T_PERM:
		snprintf(buf, size, "0%lo", *(const long *)f);
		return buf;
	case T_SCANUNIT:
		v = *(const long *)f;
		snprintf(buf, size, v % 1000 ? "%ldMS" : "%ld", v % 1000 ? v : v / 1000);
		return buf;
	case T_FLAG:
		if (*(const bool *)f)
			return strchr(d->words, '|') + 1;
		snprintf(buf, size, "%.*s", (int)strcspn(d->words, "|"), d->words);
		return buf;
	case T_IDS:
		snprintf(buf, size, *s[1] ? "%s,%s" : "%s%s", s[0], s[1]);
		return buf;
	default:
		return s[0];
	}
}

/* Edits between two names, letter case aside: a letter more, less or another one, or two neighbours swapped. */
static size_t
distance(const char *a, size_t na, const char *b, size_t nb)
{
	enum { MOST = 32 };
	size_t d[MOST + 1][MOST + 1], i, j, least;

	if (na > MOST || nb > MOST)
		return SIZE_MAX;
#define SAME(i, j) (toupper((unsigned char)a[(i) - 1]) == toupper((unsigned char)b[(j) - 1]))
	for (i = 0; i <= na; i++)
		for (j = 0; j <= nb; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			least = d[i - 1][j - 1] + !SAME(i, j);
			if (d[i - 1][j] + 1 < least)
				least = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < least)
				least = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && SAME(i, j - 1) && SAME(i - 1, j) && d[i - 2][j - 2] + 1 < least)
				least = d[i - 2][j - 2] + 1;
			d[i][j] = least;
		}
#undef SAME
	return d[na][nb];
}

static size_t how_near(const char *word) { return strlen(word) < 4 ? 1 : strlen(word) < 8 ? 2 : 3; }

const char *
words_nearest(const char *word, const char *words)
{
	const char *w, *best = NULL;
	size_t n, dist, least = how_near(word) + 1;

	for (w = words; *w; w += n + (w[n] != '\0')) {
		n = strcspn(w, "|");
		if ((dist = distance(word, strlen(word), w, n)) < least) {
			least = dist;
			best = w;
		}
	}
	return best;
}

void
param_explain_unknown(const struct section_def *s, const char *name, char *buf, size_t size)
{
	const char *best = NULL;
	size_t i, dist, least = how_near(name) + 1;

	if (strcmp(name, "QMCONFIG") == 0) {
		snprintf(buf, size,
		    "QMCONFIG is no parameter but an environment variable; set it where programs start, or in an "
		    "ENVFILE");
		return;
	}
	for (i = 0; i < s->n_params; i++)
		if ((dist = distance(name, strlen(name), s->params[i].name, strlen(s->params[i].name))) < least) {
			least = dist;
			best = s->params[i].name;
		}
	if (best != NULL && least == 0) {
		snprintf(buf, size, "%.60s is not in capitals; write %s", name, best);
		return;
	}
	for (i = 0; i < N_SECTIONS; i++)
		if (param_find(&ubb_sections[i], name, strlen(name)) != NULL) {
			snprintf(
			    buf, size, "%s is a parameter of *%s, not of *%s", name, ubb_sections[i].name, s->name);
			return;
		}
	if (best != NULL)
		snprintf(buf, size, "%.60s is no parameter of *%s; did you mean %s?", name, s->name, best);
	else
		snprintf(buf, size, "%.60s is no parameter of *%s; those are listed in ubbconfig(5)", name, s->name);
}
