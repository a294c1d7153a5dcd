/*
 * wirebuf - see wirebuf.h.  Every access goes through take() or room(), the two places that know bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "wirebuf.h"

/* --- reading --- */

static const uint8_t *	/* the next n bytes, or NULL and bad from then on */
take(struct rd *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return p;
}

uint8_t
rd_u8(struct rd *r)
{
	const uint8_t *p = take(r, 1);

	return p == NULL ? 0 : p[0];
}

uint16_t
rd_u16(struct rd *r)
{
	const uint8_t *p = take(r, 2);

	return p == NULL ? 0 : (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint32_t
rd_u32(struct rd *r)
{
	const uint8_t *p = take(r, 4);

	return p == NULL ? 0 : be32(p);
}

uint64_t
rd_u64(struct rd *r)
{
	const uint8_t *p = take(r, 8);

	return p == NULL ? 0 : (uint64_t)be32(p) << 32 | be32(p + 4);
}

void
rd_copy(struct rd *r, void *to, size_t n)
{
	const uint8_t *p = take(r, n);

	if (n == 0)
		return;
	if (p == NULL)
		memset(to, 0, n);
	else
		memcpy(to, p, n);
}

const uint8_t *
rd_view(struct rd *r, size_t n)
{
	const uint8_t *p = take(r, n);

	return n == 0 ? NULL : p;
}

void
rd_str(struct rd *r, char *to, size_t size)
{
	size_t n = rd_u16(r);
	const uint8_t *p = take(r, n);

	to[0] = '\0';
	if (p == NULL)
		return;
	if (n >= size || memchr(p, '\0', n) != NULL) {
		r->bad = true;
		return;
	}
	memcpy(to, p, n);
	to[n] = '\0';
}

char *
rd_strdup(struct rd *r)
{
	size_t n = rd_u32(r);
	const uint8_t *p = take(r, n);
	char *s;

	if (p == NULL)
		return NULL;
	if (memchr(p, '\0', n) != NULL || (s = malloc(n + 1)) == NULL) {
		r->bad = true;
		return NULL;
	}
	memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

bool
rd_clean_end(const struct rd *r)
{
	return !r->bad && r->left == 0;
}

/* --- writing --- */

#define WR_FIRST 256	/* most headers fit */

static uint8_t *	/* room for n more bytes, already counted; NULL when there is no memory */
room(struct wr *w, size_t n)
{
	uint8_t *p;
	size_t cap = w->cap;

	if (w->bad || n > SIZE_MAX / 2 - w->len) {
		w->bad = true;
		return NULL;
	}
	if (w->len + n > cap) {
		for (cap = cap == 0 ? WR_FIRST : cap; cap < w->len + n; cap *= 2)
			;
		if ((p = realloc(w->p, cap)) == NULL) {
			w->bad = true;
			return NULL;
		}
		w->p = p;
		w->cap = cap;
	}
	p = w->p + w->len;
	w->len += n;
	return p;
}

void
wr_u8(struct wr *w, uint8_t v)
{
	uint8_t *p = room(w, 1);

	if (p != NULL)
		p[0] = v;
}

void
wr_u16(struct wr *w, uint16_t v)
{
	uint8_t *p = room(w, 2);

	if (p == NULL)
		return;
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

void
wr_u32(struct wr *w, uint32_t v)
{
	uint8_t *p = room(w, 4);

	if (p != NULL)
		put32(p, v);
}

void
wr_u64(struct wr *w, uint64_t v)
{
	uint8_t *p = room(w, 8);

	if (p == NULL)
		return;
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

void
wr_bytes(struct wr *w, const void *from, size_t n)
{
	uint8_t *p;

	if (n > 0 && (p = room(w, n)) != NULL)
		memcpy(p, from, n);
}

void
wr_str(struct wr *w, const char *s)
{
	size_t n = strlen(s);

	if (n > UINT16_MAX) {
		w->bad = true;
		return;
	}
	wr_u16(w, (uint16_t)n);
	wr_bytes(w, s, n);
}

void
wr_longstr(struct wr *w, const char *s)
{
	size_t n = strlen(s);

	if (n > UINT32_MAX) {
		w->bad = true;
		return;
	}
	wr_u32(w, (uint32_t)n);
	wr_bytes(w, s, n);
}

void
wr_reset(struct wr *w)
{
	w->len = 0;
	w->bad = false;
}

void
wr_free(struct wr *w)
{
	free(w->p);
	*w = (struct wr){ 0 };
}

bool
wr_ok(const struct wr *w)
{
	return !w->bad;
}
