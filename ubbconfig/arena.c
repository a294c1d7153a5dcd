#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

struct arena_block { struct arena_block *next; size_t used, size; _Alignas(max_align_t) char bytes[]; };

enum { BLOCK = 16384 };

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->blocks;
	size_t align = _Alignof(max_align_t), want = (size + align - 1) / align * align, room;
	void *p;

	if (want < size)
		return NULL;
	if (b == NULL || b->size - b->used < want) {
		room = want > BLOCK ? want : BLOCK;
		if ((b = calloc(1, sizeof *b + room)) == NULL)
			return NULL;
		b->size = room;
		b->next = a->blocks;
		a->blocks = b;
	}
	p = b->bytes + b->used;
	b->used += want;
	return p;
}

char *
arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	if (p != NULL)
		memcpy(p, s, n);
	return p;
}

void
arena_free(struct arena *a)
{
	struct arena_block *b, *next;

	for (b = a->blocks; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	a->blocks = NULL;
}
