/*
 * build - what buildserver and buildclient share: lists of words, where the product is, the compiler command.
 */
#ifndef BUILD_H
#define BUILD_H

#include <stdbool.h>
#include <stddef.h>

struct words { size_t n; char **v; };		/* v[n] is NULL once anything was added */
void words_split(struct words *w, const char *list);	/* blanks separate; quotes keep together, as a shell does */

void build_program(const char *name);		/* for messages */
void build_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));	/* exit 1 */

/* A line of $TUXDIR/udataobj/RM: the name of its switch (malloc'ed), its libraries.  Unknown: dies, naming the file. */
struct build_rm { char *swname; struct words libs; };
void build_rm_find(const char *rmname, struct build_rm *out);

/*
 * Compile and link:  CC CFLAGS -I.. -o out source(s) first -L.. -latmiq last.  verbose: the command is printed.
 * Returns the exit status for main.
 */
struct build_line {
	const char *out;
	char *source;			/* generated, or NULL */
	struct words first, last;	/* -f, -l */
	const struct words *rm_libs;
	bool verbose, threads, cobol;
};
int build_run(const struct build_line *l);
/* A generated source in a temporary file; the name is malloc'ed and ends in .c.  keep: in the current directory,
 * name.c */
char *build_source_open(bool keep, const char *keep_name, void **file);

#endif
