/*
 * args - a line into words, as CLOPT and the command readers want it: split at blanks, tabs and line ends; "double" and
 * 'single' quotes group, an empty pair is an empty word; inside double quotes \" and \\ stand for the character.
 */
#ifndef ARGS_H
#define ARGS_H

#include <stddef.h>

struct args { size_t n; char **v; };	/* v[n] is NULL; free with args_free() */

/* 0, or -1: out of memory.  An unclosed quote ends with the line. */
int args_split(const char *line, struct args *out);
int args_add(struct args *a, const char *word);		/* copies; 0 or -1 */
int args_addf(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void args_free(struct args *a);

#endif
