/*
 * ubb_impl - what the files of this folder share.
 *
 *   text --lex--> tokens --parse--> struct raw --build--> struct ubb --check--> good
 *   libconfig text --tuxconfig----> struct raw                  \--print, tuxconfig--> text
 *
 * One table (params.c) knows every section and parameter; all arrows above but lex and check are driven by it.
 * struct raw keeps each value as written and its place, so that a check of the finished configuration can say where.
 */
#ifndef UBB_IMPL_H
#define UBB_IMPL_H

#include "ubb.h"

/* Where something stands in the file that is read; columns count bytes from 1. */
struct place { int line, column; };

/* --- problems.c: errors and warnings, gathered and then printed in the order of the file --- */
struct problem { struct place at; bool warning; char *text; size_t serial; };
struct problems { const char *name; size_t n, cap; struct problem *v; int errors, warnings; };
void problem_error(struct problems *ps, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void problem_warning(struct problems *ps, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void problems_print(struct problems *ps, FILE *out);
void problems_free(struct problems *ps);

/* --- arena.c: memory that is given back all at once --- */
struct arena_block;
struct arena { struct arena_block *blocks; };
void *arena_alloc(struct arena *a, size_t size);	/* zeroed; NULL when there is no memory */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_free(struct arena *a);

/* --- params.c: what a configuration may hold --- */
enum param_type {
	T_NUM,		/* number in C notation, min..max                     long */
	T_PERM,		/* the same, printed in octal                         long */
	T_SCANUNIT,	/* seconds, or nMS                                    long, milliseconds */
	T_FLAG,		/* `words` is "FALSE|TRUE" by their own names         bool */
	T_ID,		/* a name, at most max bytes                          char * */
	T_IDS,		/* one or two names                                   char *[2] */
	T_STR,		/* any string, at most max bytes                      char * */
	T_PATH,		/* the same, beginning with /                         char * */
	T_CHOICE,	/* one of `words`                                     char * */
	T_WORDS		/* one or more of `words`, with commas                char * */
};
enum {
	P_REQUIRED = 1,
	P_NONE = 2,		/* the word NONE stands for nothing */
	P_ZERO_ABSENT = 4	/* 0 in the struct: not given; not printed */
};
#define UNSET (-1L)		/* default that build.c works out from other parameters */
#define KEPT (-1)		/* offset of a parameter that is only kept, among the extras */

struct param_def {
	const char *name;
	enum param_type type;
	long min, max;		/* numbers: range; strings: max bytes */
	long def;
	const char *text;	/* default of a string; NULL: "" */
	unsigned flags;
	int offset;		/* in the record, or KEPT */
	const char *words;
};
enum section {
	S_RESOURCES, S_MACHINES, S_GROUPS, S_NETGROUPS, S_NETWORK, S_SERVERS, S_SERVICES, S_ROUTING, N_SECTIONS
};
struct section_def {
	const char *name;		/* of UBBCONFIG, without the star */
	const char *config_name;	/* of TUXCONFIG */
	const char *key;		/* what an entry's name is called in TUXCONFIG; NULL: there are no entries */
	const char *noun;		/* what an entry is called in messages */
	long key_max;			/* bytes */
	size_t key_offset, record_size, extras_offset;
	size_t count_offset, array_offset;	/* in struct ubb; of RESOURCES the record itself */
	size_t n_params;
	const struct param_def *params;
};
extern const struct section_def ubb_sections[N_SECTIONS];

struct value { long num; const char *text[2]; };
const struct param_def *param_find(const struct section_def *s, const char *name, size_t len);
/* Text of a value to what it means.  May change `text`; v->text points into it.  false: why says what is allowed. */
bool param_value(const struct param_def *d, char *text, struct value *v, char *why, size_t why_size);
/* One sentence on a name that `s` does not know: nearest name, section that knows it. */
void param_explain_unknown(const struct section_def *s, const char *name, char *buf, size_t size);
/* A value as UBBCONFIG writes it, without quotes; buf may be used for it. */
const char *param_text(const struct param_def *d, const void *record, char *buf, size_t size);
bool param_is_given(const struct param_def *d, const void *record);	/* there is something to print */
const char *words_nearest(const char *word, const char *words);		/* NULL: none is near */

static inline void *ubb_field(const void *record, size_t offset) { return (char *)record + offset; }
size_t ubb_count(const struct ubb *u, enum section s);
void *ubb_record(const struct ubb *u, enum section s, size_t i);
struct ubb_extras *ubb_extras_of(enum section s, const void *record);

/* --- raw: a configuration as written --- */
struct raw_param { const struct param_def *def; char *value; struct place at, value_at; bool bad; };
struct raw_entry { char *name; struct place at; size_t n, cap; struct raw_param **param; };
struct raw_section { bool seen; struct place at; size_t n, cap; struct raw_entry *entry; };
struct raw { struct arena arena; bool oom; struct raw_section section[N_SECTIONS]; };
/* NULL: r->oom */
struct raw_entry *raw_entry_add(struct raw *r, enum section s, const char *name, struct place at);
/* Checks the value; a parameter given twice is a problem.  NULL: r->oom, or given twice. */
struct raw_param *raw_param_add(struct raw *r, struct raw_entry *e, const struct param_def *d, const char *value,
    struct place at, struct place value_at, struct problems *ps);
const struct raw_param *raw_given(const struct raw_entry *e, const char *name);	/* NULL when absent or bad */
struct place raw_place(const struct raw_entry *e, const char *name);	/* of the value; of the entry when absent */
/* A name for an entry: length, control characters. */
void raw_name_check(enum section s, const char *name, struct place at, struct problems *ps);
void raw_free(struct raw *r);

/* --- lex.c, parse.c --- */
enum token_kind { TOK_SECTION, TOK_DEFAULT, TOK_WORD, TOK_STRING, TOK_EQUALS, TOK_COMMA, TOK_END };
struct token { enum token_kind kind; char *text; struct place at; bool column1; };
struct tokens { size_t n, cap; struct token *v; };
/* The last token is TOK_END.  false: no memory (r->oom). */
bool lex(struct raw *r, const char *text, size_t len, struct tokens *out, struct problems *ps);
void parse(struct raw *r, const char *text, size_t len, struct problems *ps);

/* --- tuxconfig.c --- */
bool config_recognise(const char *text, size_t len);
/* as_compiled: must be a whole TUXCONFIG; rundir (malloc'ed) is taken from it.  false: the text as such is wrong. */
bool config_parse(struct raw *r, const char *text, size_t len, bool as_compiled, char **rundir, struct problems *ps);

/* --- build.c, check.c --- */
struct ubb *build(const struct raw *r, struct problems *ps);	/* NULL: no memory */
void check(const struct ubb *u, const struct raw *r, struct problems *ps);
void routing_check(const struct ubb *u, const struct raw *r, struct problems *ps);	/* check_routing.c */

/* --- ubb.c: what tmloadcf asks beyond ubb_parse() --- */
struct ubb_wanted {
	const char *tuxconfig;	/* the local machine's TUXCONFIG must be this; NULL: do not look */
	bool local;		/* this machine and this user must be the configuration's */
};
int ubb_load(FILE *in, const char *name, const struct ubb_wanted *want, FILE *errors, int *warnings, struct ubb **out);
/* The whole of a file, NUL-terminated, malloc'ed.  NULL: errno. */
char *ubb_slurp(FILE *in, size_t *len);

/* --- rundir.c --- */
/* The run directory of a configuration that has none yet.  0, or -1: ENAMETOOLONG; EINVAL, ATMIQ_RUNBASE not absolute. */
int rundir_choose(const struct ubb *u, char *buf, size_t size);

#endif
