/*
 * buffer - typed buffers: a header in front of what the program sees, and a table of all that exist, so that a
 * pointer that is not one of ours is recognised without being read.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "ulog.h"

struct header {
	struct header *next;		/* in its slot of the table */
	long size;			/* of data, as asked for */
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

/* Known types.  by_len: the length argument counts; otherwise the data says itself how long it is. */
static const struct type {
	const char *name;
	long default_size;
	bool by_len, zeroed;
} types[] = {
	{ "CARRAY", 0, true, false },
	{ "STRING", 512, false, false },
	{ X_OCTET, 0, true, false },
	{ "XML", 0, true, false },
	{ "TPINIT", sizeof(TPINIT), false, true },
};

static const struct type *
type_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strncmp(types[i].name, name, 8) == 0)
			return &types[i];
	return NULL;
}

bool
buffer_type_known(const char *type)
{
	return type_find(type) != NULL;
}

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

char *
buffer_new(const char *type, const char *subtype, long size)
{
	struct header *h;

	if ((h = malloc(sizeof *h + (size_t)size + 1)) == NULL)
		return NULL;
	h->size = size;
	name_set(h->type, sizeof h->type, type);
	name_set(h->subtype, sizeof h->subtype, subtype);
	DATA(h)[0] = '\0';		/* a STRING is empty until it is filled */
	DATA(h)[size] = '\0';		/* and ends with its buffer */
	table_add(h);
	return DATA(h);
}

void
buffer_free(char *data)
{
	struct header *h = table_find(data, true);

	if (h != NULL && data == inbound)
		inbound = NULL;
	free(h);
}

void
buffer_release(void *data, void *hint)
{
	(void)hint;
	free(table_find(data, true));
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

int
buffer_look(const char *data, struct typed *out)
{
	const struct header *h = table_find(data, false);

	if (h == NULL)
		return -1;
	memcpy(out->type, h->type, sizeof h->type);
	out->type[sizeof h->type] = '\0';
	memcpy(out->subtype, h->subtype, sizeof h->subtype);
	out->subtype[sizeof h->subtype] = '\0';
	out->size = h->size;
	return 0;
}

int
buffer_outgoing(const char *data, long len, struct typed *t, long *n)
{
	const struct type *type;

	memset(t, 0, sizeof *t);
	*n = 0;
	if (data == NULL)
		return 0;
	if (buffer_look(data, t) != 0)
		return TPEINVAL;
	type = type_find(t->type);
	if (type == NULL || type->by_len) {
		if (len < 0 || len > t->size) {
			ulog("LIBTUX_CAT:5010: ERROR: length %ld does not fit a %s buffer of %ld bytes", len, t->type,
			    t->size);
			return TPEINVAL;
		}
		*n = len;
	} else if (type->zeroed)
		return TPEINVAL;	/* TPINIT is for tpinit() only */
	else {
		*n = (long)strnlen(data, (size_t)t->size) + 1;
		if (*n > t->size) {
			ulog("LIBTUX_CAT:5011: ERROR: a STRING of %ld bytes has no end", t->size);
			return TPEINVAL;
		}
	}
	return 0;
}

int
buffer_incoming(char **data, const char *type, const char *subtype, const void *p, size_t n, bool nochange)
{
	struct header *h = table_find(*data, false);
	char *grown;

	if (h == NULL)
		return TPEINVAL;
	if (nochange && (strncmp(h->type, type, 8) != 0 || strncmp(h->subtype, subtype, 16) != 0))
		return TPEOTYPE;
	if ((size_t)h->size < n) {
		if ((grown = buffer_resize(*data, (long)n)) == NULL)
			return TPEOS;
		*data = grown;
		h = HEADER(grown);
	}
	name_set(h->type, sizeof h->type, type);
	name_set(h->subtype, sizeof h->subtype, subtype);
	if (n > 0)
		memcpy(*data, p, n);
	return 0;
}

char *
tpalloc(char *type, char *subtype, long size)
{
	const struct type *t;
	char *data;

	if (type == NULL || size < 0) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if ((t = type_find(type)) == NULL) {
		tperrno = TPENOENT;
		return NULL;
	}
	if (size < t->default_size)
		size = t->default_size;
	if (size == 0) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if ((data = buffer_new(type, subtype == NULL ? "" : subtype, size)) == NULL) {
		tperrno = TPEOS;
		return NULL;
	}
	if (t->zeroed)
		memset(data, 0, (size_t)size);
	return data;
}

char *
tprealloc(char *ptr, long size)
{
	struct typed t;
	const struct type *type;
	char *moved;

	if (size <= 0 || buffer_look(ptr, &t) != 0) {
		tperrno = TPEINVAL;
		return NULL;
	}
	if ((type = type_find(t.type)) != NULL && size < type->default_size)
		size = type->default_size;
	if ((moved = buffer_resize(ptr, size)) == NULL)
		tperrno = TPEOS;
	return moved;
}

void
tpfree(char *ptr)
{
	if (ptr != NULL && ptr != inbound)
		free(table_find(ptr, true));
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
