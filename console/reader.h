/*
 * reader - lines of input: commands and answers, from a terminal, a pipe or a here-document.
 *
 * A prompt is always written, to the same place as all other output, and nothing is ever asked of /dev/tty.  With a
 * terminal on both sides a line can be edited and the history recalled.
 */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stdio.h>

enum reader_end { READER_LINE, READER_EOF, READER_BREAK };	/* BREAK: an interrupt came while waiting */

struct reader;
/* `program` names the section of editrc(5).  NULL: out of memory. */
struct reader *reader_new(const char *program, int in, FILE *out);
void reader_free(struct reader *r);
bool reader_is_terminal(const struct reader *r);
void reader_echo(struct reader *r, bool on);	/* repeat what is read after its prompt */
/* The next line, without its end, valid until the next call.  `history`: worth recalling. */
enum reader_end reader_next(struct reader *r, const char *prompt, bool history, char **line);

/*
 * Split a command line at blanks and tabs.  Double quotes group, \" in them is a quote.  A word between single quotes
 * loses them: 'y' and '' come from scripts.  argv is one block, free() it.  Returns how many words, or -1: a quote is
 * not closed, or no memory; then *argv is NULL.
 */
int words_split(const char *line, char ***argv);
/* An answer: blanks around it and one matching pair of quotes go; in place. */
char *answer_trim(char *s);

#endif
