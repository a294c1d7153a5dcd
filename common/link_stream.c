/*
 * link - the bytes of one connection become messages.  Both ends use it; no sockets here.
 *
 *                64 bytes            a header                     its bytes
 *     GREETING ------------> HEADER ----------> FRAME ----------------------------> HEADER
 *                                                       command: obeyed; last frame of a message: complete
 *
 * Nothing is believed: a frame gets memory as its bytes come, so one that promises a gigabyte costs what it sends.
 */
#include <stdlib.h>
#include <string.h>

#include "link_impl.h"

enum { GRANT = 4 << 20 };	/* what a frame may have at once, before its bytes are here */

void
link_stream_init(struct link_stream *s, int (*obey)(struct link_stream *, const uint8_t *, size_t))
{
	s->at = STREAM_GREETING;
	s->ready = s->complete = false;
	s->flags = 0;
	s->left = 0;
	s->parts = 0;
	s->into = NULL;
	s->head = s->body = (struct link_piece){ 0 };
	s->n_scratch = 0;
	s->obey = obey;
}

static void
message_forget(struct link_stream *s)
{
	if (s->head.p != s->small)
		free(s->head.p);
	free(s->body.p);
	s->head = s->body = (struct link_piece){ 0 };
	s->parts = 0;
	s->complete = false;
}

void
link_stream_done(struct link_stream *s)
{
	message_forget(s);
}

static int	/* room for n bytes in all */
piece_grow(struct link_piece *f, size_t n)
{
	uint8_t *p;

	if (n <= f->cap)
		return 0;
	if ((p = realloc(f->p, n)) == NULL)
		return -1;
	f->p = p;	// NOLINT(clang-analyzer-unix.Malloc): f is of the stream, and not what was freed
	f->cap = n;
	return 0;
}

static int	/* more of its frame may come now */
piece_wants_more(const struct link_stream *s, struct link_piece *f)
{
	size_t whole = f->n + (size_t)s->left;

	if (f->n < f->cap || s->left == 0)
		return 0;
	return piece_grow(f, whole - f->n <= f->cap ? whole : 2 * f->cap);
}

static int	/* The next frame's header has been read: where its bytes go.  -1: nonsense. */
frame_begin(struct link_stream *s, uint64_t length)
{
	uint64_t most = s->flags & ZMTP_COMMAND ? ZMTP_COMMAND_MAX : LINK_MAX_MESSAGE;

	if (length > most || (s->flags & (ZMTP_COMMAND | ZMTP_MORE)) == (ZMTP_COMMAND | ZMTP_MORE))
		return -1;
	if (!(s->flags & ZMTP_COMMAND) && !s->ready)
		return -1;	/* READY comes first */
	s->at = STREAM_FRAME;
	s->left = length;
	s->n_scratch = 0;
	s->into = s->flags & ZMTP_COMMAND || s->parts >= 2 ? NULL : s->parts == 0 ? &s->head : &s->body;
	if (s->into == &s->head && length <= sizeof s->small) {
		s->head = (struct link_piece){ .p = s->small, .cap = sizeof s->small };
		return 0;
	}
	return s->into == NULL ? 0 : piece_grow(s->into, length == 0 ? 1 : length < GRANT ? (size_t)length : GRANT);
}

static int	/* all its bytes are here */
frame_end(struct link_stream *s)
{
	s->at = STREAM_HEADER;
	if (s->flags & ZMTP_COMMAND) {
		size_t n = s->n_scratch;

		s->n_scratch = 0;
		return s->obey(s, s->scratch, n);
	}
	s->parts++;
	s->complete = (s->flags & ZMTP_MORE) == 0;
	s->into = NULL;
	return 0;
}

static ssize_t
feed_greeting(struct link_stream *s, const uint8_t *p, size_t n)
{
	size_t k = ZMTP_GREETING - s->n_scratch;

	k = n < k ? n : k;
	memcpy(s->scratch + s->n_scratch, p, k);
	s->n_scratch += k;
	if (s->n_scratch > 0 && s->scratch[0] != 0xff)
		return -1;		/* it will not become one */
	if (s->n_scratch == ZMTP_GREETING) {
		if (!zmtp_greeting_good(s->scratch))
			return -1;
		s->at = STREAM_HEADER;
		s->n_scratch = 0;
	}
	return (ssize_t)k;
}

static ssize_t
feed_header(struct link_stream *s, const uint8_t *p, size_t n)
{
	size_t old = s->n_scratch, k;
	uint64_t length;
	int rc;

	if (old == 0) {		/* the usual case: all of it is here */
		if ((rc = zmtp_header_read(p, n, &s->flags, &length)) > 0)
			return frame_begin(s, length) == 0 ? rc : -1;
		if (rc < 0)
			return -1;
	}
	k = ZMTP_HEADER_MAX - old;
	k = n < k ? n : k;
	memcpy(s->scratch + old, p, k);
	if ((rc = zmtp_header_read(s->scratch, old + k, &s->flags, &length)) < 0)
		return -1;
	if (rc == 0) {
		s->n_scratch += k;
		return (ssize_t)k;
	}
	return frame_begin(s, length) == 0 ? rc - (ssize_t)old : -1;
}

static ssize_t
feed_frame(struct link_stream *s, const uint8_t *p, size_t n)
{
	size_t k = n < s->left ? n : (size_t)s->left;
	struct link_piece *f = s->into;

	if (f != NULL) {
		if (k > f->cap - f->n)
			k = f->cap - f->n;
		memcpy(f->p + f->n, p, k);
		f->n += k;
	} else if (s->flags & ZMTP_COMMAND) {
		memcpy(s->scratch + s->n_scratch, p, k);
		s->n_scratch += k;
	}
	s->left -= k;
	return f != NULL && piece_wants_more(s, f) != 0 ? -1 : (ssize_t)k;
}

ssize_t
link_stream_feed(struct link_stream *s, const uint8_t *p, size_t n)
{
	size_t used = 0;
	ssize_t k;

	while (!s->complete) {
		if (s->at == STREAM_FRAME && s->left == 0) {
			if (frame_end(s) != 0)
				return -1;
			continue;
		}
		if (used == n)
			break;
		k = s->at == STREAM_GREETING ? feed_greeting(s, p + used, n - used) :
		    s->at == STREAM_HEADER ? feed_header(s, p + used, n - used) : feed_frame(s, p + used, n - used);
		if (k < 0)
			return -1;
		used += (size_t)k;
	}
	return (ssize_t)used;
}

size_t
link_stream_room(struct link_stream *s, uint8_t **p)
{
	if (s->complete || s->at != STREAM_FRAME || s->into == NULL || s->left < LINK_STRAIGHT)
		return 0;
	*p = s->into->p + s->into->n;
	return s->into->cap - s->into->n < s->left ? s->into->cap - s->into->n : (size_t)s->left;
}

int
link_stream_got(struct link_stream *s, size_t n)
{
	s->into->n += n;
	s->left -= n;
	return piece_wants_more(s, s->into);
}

int
link_stream_take(struct link_stream *s, struct link_msg *m, int *parts)
{
	struct link_frames *f = link_frames(m);

	*parts = s->parts;
	link_msg_none(m);
	if (s->parts > 2 || s->head.n == 0) {
		message_forget(s);
		return LINK_FAIL;
	}
	if (s->head.p == s->small) {
		memcpy(f->small, s->small, s->head.n);
		m->head = f->small;
	} else {
		m->head = f->head = s->head.p;
	}
	m->head_len = s->head.n;
	m->has_body = s->parts > 1;
	m->body = f->body = s->body.p;
	m->body_len = s->body.n;
	s->head = s->body = (struct link_piece){ 0 };
	message_forget(s);
	return LINK_OK;
}
