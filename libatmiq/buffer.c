/*
 * buffer - typed buffers: a header in front of what the program sees, and a table of all that exist, so that a
 * pointer that is not one of ours is recognised without being read.
 *
 * What a type has of its own is in the switch (typesw.c).  Its functions are called without a lock of ours, but in a call, within
 * that of the context: of ATMI they may use buffers only.  A buffer whose type nobody knows is bytes.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "typesw.h"
#include "ulog.h"

struct header {
	struct header *next;		/* in its slot of the table */
	long size;			/* of data, as asked for */
	const struct tmtype_sw_t *sw;	/* NULL: a type that nobody knows here */
	bool presented;			/* presend() was called, and postsend() is to follow */
	long sent;			/* what presend() said */
	char type[8], subtype[16];	/* zero padded */
	max_align_t data[];
};
#define HEADER(d) ((struct header *)((d) - offsetof(struct header, data)))
#define DATA(h) ((char *)(h)->data)

#define SLOTS 1024
#define SHARDS 16			/* one lock for SLOTS / SHARDS slots */
static struct header *slots[SLOTS];
static pthread_mutex_t locks[SHARDS] = { [0 ... SHARDS - 1] = PTHREAD_MUTEX_INITIALIZER };
static __thread char *inbound;

static size_t
slot_of(const char *data)
{
	uintptr_t v = (uintptr_t)data >> 4;

	return (v ^ (v >> 10) ^ (v >> 20)) % SLOTS;
}

static pthread_mutex_t *
lock_of(size_t slot)
{
	return &locks[slot % SHARDS];
}

static void
table_add(struct header *h)
{
	size_t s = slot_of(DATA(h));

	pthread_mutex_lock(lock_of(s));
	h->next = slots[s];
	slots[s] = h;
	pthread_mutex_unlock(lock_of(s));
}

/* Find, and take out when `take`. */
static struct header *
table_find(const char *data, bool take)
{
	size_t s = slot_of(data);
	struct header **at, *h;

	if (data == NULL)
		return NULL;
	pthread_mutex_lock(lock_of(s));
	for (at = &slots[s]; (h = *at) != NULL && DATA(h) != data; at = &h->next)
		;
	if (h != NULL && take)
		*at = h->next;
	pthread_mutex_unlock(lock_of(s));
	return h;
}

void
buffer_fork_prepare(void)
{
	int i;

	for (i = 0; i < SHARDS; i++)
		pthread_mutex_lock(&locks[i]);
}

void
buffer_fork_done(void)
{
	int i;

	for (i = SHARDS - 1; i >= 0; i--)
		pthread_mutex_unlock(&locks[i]);
}

static void
name_set(char *to, size_t size, const char *from)
{
	memset(to, 0, size);
	memcpy(to, from, strnlen(from, size));
}

static struct header *
header_new(const char *type, const char *subtype, const struct tmtype_sw_t *sw, long size)
{
	struct header *h;

	if ((h = malloc(sizeof *h + (size_t)size + 1)) == NULL)
		return NULL;
	h->size = size;
	h->sw = sw;
	h->presented = false;
	h->sent = 0;
	name_set(h->type, sizeof h->type, type);
	name_set(h->subtype, sizeof h->subtype, subtype);
	DATA(h)[0] = '\0';		/* a STRING is empty until it is filled */
	DATA(h)[size] = '\0';		/* and ends with its buffer */
	return h;
}

static bool	/* false: its type refuses */
header_init(struct header *h)
{
	return h->sw == NULL || h->sw->initbuf == NULL || h->sw->initbuf(DATA(h), h->size) != -1;
}

static void
header_sent(struct header *h)
{
	if (h->presented && h->sw->postsend != NULL)
		h->sw->postsend(DATA(h), h->sent, h->size);
	h->presented = false;
}

static void	/* It stops being of its type. */
header_uninit(struct header *h)
{
	header_sent(h);
	if (h->sw != NULL && h->sw->uninitbuf != NULL)
		h->sw->uninitbuf(DATA(h), h->size);
}

static void	/* h is in the table no more; NULL is fine */
header_free(struct header *h)
{
	if (h != NULL)
		header_uninit(h);
	free(h);
}

char *
buffer_new(const char *type, const char *subtype, long size)
{
	struct header *h = header_new(type, subtype, typesw_find(type, subtype), size);

	if (h == NULL)
		return NULL;
	if (!header_init(h)) {
		free(h);
		return NULL;
	}
	table_add(h);
	return DATA(h);
}

void
buffer_free(char *data)
{
	struct header *h = table_find(data, true);

	if (h != NULL && data == inbound)
		inbound = NULL;
	header_free(h);
}

void
buffer_release(void *data, void *hint)
{
	(void)hint;
	header_free(table_find(data, true));
}

/* Another size; the content stays up to the smaller one.  NULL: out of memory, nothing changed. */
static char *
buffer_resize(char *data, long size)
{
	struct header *h = table_find(data, true), *bigger;

	if (h == NULL)
		return NULL;
	if ((bigger = realloc(h, sizeof *h + (size_t)size + 1)) == NULL) {
		table_add(h);
		return NULL;
	}
	bigger->size = size;
	DATA(bigger)[size] = '\0';
	table_add(bigger);
	if (inbound != NULL && inbound == data)
		inbound = DATA(bigger);
	return DATA(bigger);
}

void
buffer_inbound(char *data)
{
	inbound = data;
}

char *
buffer_inbound_now(void)
{
	return inbound;
}

static void
describe(const struct header *h, struct typed *out)
{
	memcpy(out->type, h->type, sizeof h->type);
	out->type[sizeof h->type] = '\0';
	memcpy(out->subtype, h->subtype, sizeof h->subtype);
	out->subtype[sizeof h->subtype] = '\0';
	out->size = h->size;
}

int
buffer_look(const char *data, struct typed *out)
{
	const struct header *h = table_find(data, false);

	if (h == NULL)
		return -1;
	describe(h, out);
	return 0;
}

/* What the type's own presend() makes of it; 0 or a TPE code. */
static int
present(struct header *h, long len, const struct typed *t, long *n)
{
	*n = h->sw->presend(DATA(h), len, h->size);
	if (*n == -1 && typesw_is_systems(h->sw))
		return TPEINVAL;
	if (*n >= 0 && *n <= h->size) {
		if (h->sw->postsend != NULL) {		/* else nothing of the buffer changes: threads may send it at once */
			h->presented = true;
			h->sent = *n;
		}
		return 0;
	}
	ulog("LIBTUX_CAT:5250: ERROR: presend of buffer type %s failed: it returned %ld for a buffer of %ld bytes", t->type, *n, h->size);
	return TPESYSTEM;
}

int
buffer_outgoing(const char *data, long len, struct typed *t, long *n)
{
	struct header *h;

	memset(t, 0, sizeof *t);
	*n = 0;
	if (data == NULL)
		return 0;
	if ((h = table_find(data, false)) == NULL)
		return TPEINVAL;
	describe(h, t);
	if (h->sw != NULL && h->sw->presend != NULL)
		return present(h, len, t, n);
	if (len < 0 || len > t->size) {
		ulog("LIBTUX_CAT:5010: ERROR: length %ld does not fit a %s buffer of %ld bytes", len, t->type, t->size);
		return TPEINVAL;
	}
	*n = len;
	return 0;
}

void
buffer_sent(const char *data)
{
	struct header *h = table_find(data, false);

	if (h != NULL)
		header_sent(h);
}

/* The buffer is of this type from now on; 0 or a TPE code. */
static int
retype(struct header *h, const char *type, const char *subtype)
{
	const struct tmtype_sw_t *sw = typesw_find(type, subtype);

	if (strncmp(h->type, type, sizeof h->type) == 0 && strncmp(h->subtype, subtype, sizeof h->subtype) == 0)
		return 0;
	header_uninit(h);
	h->sw = sw;
	name_set(h->type, sizeof h->type, type);
	name_set(h->subtype, sizeof h->subtype, subtype);
	if (header_init(h))
		return 0;
	h->sw = NULL;		/* nothing of that type is in it */
	ulog("LIBTUX_CAT:5251: ERROR: initbuf of buffer type %.8s failed: a message is not taken", type);
	return TPESYSTEM;
}

static char *	/* NULL: no memory, or its type refuses; the old one is there still, or what was made of it */
grow(char **data, long size)
{
	char *grown = buffer_resize(*data, size);
	struct header *h;

	if (grown == NULL)
		return NULL;
	*data = grown;
	h = HEADER(grown);
	return h->sw == NULL || h->sw->reinitbuf == NULL || h->sw->reinitbuf(grown, size) != -1 ? grown : NULL;
}

/* Bytes that came: into a buffer of their type that has the room.  *len: what its postrecv() makes of that. */
static int
fill(struct header *h, const void *p, size_t n, long *len)
{
	if (n > 0)
		memcpy(DATA(h), p, n);
	*len = (long)n;
	if (h->sw == NULL || h->sw->postrecv == NULL)
		return 0;
	if ((*len = h->sw->postrecv(DATA(h), (long)n, h->size)) >= 0 && *len <= h->size)
		return 0;
	ulog("LIBTUX_CAT:5252: ERROR: postrecv of buffer type %.8s failed: it returned %ld for %zu bytes in a buffer of %ld", h->type, *len,
	    n, h->size);
	*len = 0;
	return TPESYSTEM;
}

int
buffer_incoming(char **data, const char *type, const char *subtype, const void *p, size_t n, bool nochange, long *len)
{
	struct header *h = table_find(*data, false);
	int err;

	if (h == NULL)
		return TPEINVAL;
	if (nochange && (strncmp(h->type, type, 8) != 0 || strncmp(h->subtype, subtype, 16) != 0))
		return TPEOTYPE;
	if ((size_t)h->size < n && grow(data, (long)n) == NULL)
		return TPEOS;
	h = HEADER(*data);
	if ((err = retype(h, type, subtype)) != 0)
		return err;
	return fill(h, p, n, len);
}

int
buffer_received(char **data, const char *type, const char *subtype, const void *p, size_t n, long *len)
{
	const struct tmtype_sw_t *sw = typesw_find(type, subtype);
	long size = (long)(n < 512 ? 512 : n);

	if (sw != NULL && size < sw->dfltsize)
		size = sw->dfltsize;
	if ((*data = buffer_new(type, subtype, size)) == NULL)
		return TPEOS;
	(*data)[n] = '\0';
	return fill(HEADER(*data), p, n, len);
}

char *
tpalloc(char *type, char *subtype, long size)
{
	const struct tmtype_sw_t *t;
	const char *sub = subtype == NULL ? "" : subtype;
	struct header *h;

	if (type == NULL || size < 0) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if (*type == '\0' || (t = typesw_find(type, sub)) == NULL) {
		tperrno = TPENOENT;
		return NULL;
	}
	if (size < t->dfltsize)
		size = t->dfltsize;
	if (size == 0) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if ((h = header_new(type, sub, t, size)) == NULL) {
		tperrno = TPEOS;
		return NULL;
	}
	if (!header_init(h)) {
		free(h);
		tperrno = TPESYSTEM;
		return NULL;
	}
	table_add(h);
	return DATA(h);
}

char *
tprealloc(char *ptr, long size)
{
	struct header *h = table_find(ptr, false);

	if (size <= 0 || h == NULL) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if (h->sw != NULL && size < h->sw->dfltsize)
		size = h->sw->dfltsize;
	if ((ptr = buffer_resize(ptr, size)) == NULL) {
		tperrno = TPEOS;
		return NULL;
	}
	h = HEADER(ptr);
	if (h->sw != NULL && h->sw->reinitbuf != NULL && h->sw->reinitbuf(ptr, size) == -1) {
		buffer_free(ptr);	/* the program has lost it: its address may be another one */
		tperrno = TPESYSTEM;
		return NULL;
	}
	return ptr;
}

void
tpfree(char *ptr)
{
	if (ptr != NULL && ptr != inbound)
		header_free(table_find(ptr, true));
}

long
tptypes(char *ptr, char *type, char *subtype)
{
	struct typed t;

	if (buffer_look(ptr, &t) != 0)
		return fail(TPEINVAL);
	/* A full-length name has no NUL: the arrays are 8 and 16 bytes. */
	if (type != NULL)	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
		memcpy(type, t.type, strlen(t.type) + (strlen(t.type) < 8));
	if (subtype != NULL)	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
		memcpy(subtype, t.subtype, strlen(t.subtype) + (strlen(t.subtype) < 16));
	return t.size;
}
