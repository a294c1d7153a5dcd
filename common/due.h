/*
 * due - what comes first: a binary heap of times, so that nothing is walked over to find the next event.
 *
 * A member is part of what it is about, and knows its place.  Room is made beforehand (due_room), so setting a time cannot fail.
 */
#ifndef DUE_H
#define DUE_H

#include <stddef.h>
#include <stdint.h>

struct due { int64_t us; size_t at; };		/* at 0: not in a heap, it has no time */
struct due_heap { struct due **d; size_t n, cap; };
int due_room(struct due_heap *h, size_t members);	/* -1: no memory */
void due_set(struct due_heap *h, struct due *d, int64_t us);	/* INT64_MAX takes it out */
struct due *due_first(const struct due_heap *h);	/* NULL: none */
int64_t due_next(const struct due_heap *h);	/* INT64_MAX: none */
void due_free(struct due_heap *h);

#endif
