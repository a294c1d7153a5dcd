/*
 * wire - the frames of administration, ADMIN and ADMINREPLY, and the documents that they carry.
 *
 * A document on the wire: number of records (4); each record: number of values (4), and each value a key and a value,
 * strings of 4 + n bytes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire_impl.h"

/* --- documents --- */

static void *	/* room for one more: arrays have the capacity of the next power of two, so none is stored */
grown(void *array, size_t n, size_t size)
{
	if (n != 0 && (n & (n - 1)) != 0)
		return array;
	return reallocarray(array, n == 0 ? 1 : n * 2, size);
}

struct record *
document_add(struct document *d)
{
	struct record *rec = grown(d->rec, d->n, sizeof *rec);

	if (rec == NULL)
		return NULL;
	d->rec = rec;
	rec[d->n] = (struct record){ 0 };
	return &rec[d->n++];
}

static int	/* both strings are taken over, also when it fails */
record_push(struct record *r, char *key, char *value)
{
	struct kv *kv;

	if (key == NULL || value == NULL || (kv = grown(r->kv, r->n, sizeof *kv)) == NULL) {
		free(key);
		free(value);
		return -1;
	}
	r->kv = kv;
	kv[r->n++] = (struct kv){ key, value };
	return 0;
}

static struct kv *
find(const struct record *r, const char *key)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->kv[i].key, key) == 0)
			return &r->kv[i];
	return NULL;
}

int
record_set(struct record *r, const char *key, const char *value)
{
	struct kv *old = find(r, key);
	char *copy = strdup(value);

	if (old == NULL)
		return record_push(r, strdup(key), copy);
	if (copy == NULL)
		return -1;
	free(old->value);
	old->value = copy;
	return 0;
}

int
record_setf(struct record *r, const char *key, const char *fmt, ...)
{
	va_list ap;
	char *value;
	int n, rc;

	va_start(ap, fmt);
	n = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	rc = record_set(r, key, value);
	free(value);
	return rc;
}

const char *
record_get(const struct record *r, const char *key)
{
	const struct kv *kv = find(r, key);

	return kv == NULL ? NULL : kv->value;
}

long
record_long(const struct record *r, const char *key, long otherwise)
{
	const char *s = record_get(r, key);
	char *end;
	long v;

	if (s == NULL || *s == '\0')
		return otherwise;
	v = strtol(s, &end, 10);
	return *end == '\0' ? v : otherwise;
}

void
document_free(struct document *d)
{
	for (size_t i = 0; i < d->n; i++) {
		for (size_t k = 0; k < d->rec[i].n; k++) {
			free(d->rec[i].kv[k].key);
			free(d->rec[i].kv[k].value);
		}
		free(d->rec[i].kv);
	}
	free(d->rec);
	*d = (struct document){ 0 };
}

static void
put_document(struct wr *w, const struct document *d)
{
	wr_u32(w, (uint32_t)d->n);
	for (size_t i = 0; i < d->n; i++) {
		wr_u32(w, (uint32_t)d->rec[i].n);
		for (size_t k = 0; k < d->rec[i].n; k++) {
			wr_longstr(w, d->rec[i].kv[k].key);
			wr_longstr(w, d->rec[i].kv[k].value);
		}
	}
}

static void	/* Counts are believed one element at a time, so a lie costs no memory. */
get_document(struct rd *r, size_t max_records, struct document *d)
{
	uint32_t n_rec = rd_u32(r), n_kv;
	struct record *rec;

	insist(r, n_rec <= max_records);
	for (uint32_t i = 0; i < n_rec && !r->bad; i++) {
		if ((rec = document_add(d)) == NULL) {
			r->bad = true;
			return;
		}
		n_kv = rd_u32(r);
		for (uint32_t k = 0; k < n_kv && !r->bad; k++) {
			char *key = rd_strdup(r), *value = rd_strdup(r);

			insist(r, record_push(rec, key, value) == 0);
		}
	}
}

/*
 * ADMIN.      offset  size  field
 *                  0    10  version, kind, reqid
 *                 10  2+n   op
 *                           document of at most one record
 */
void
wire_admin_encode(struct wr *w, const struct wire_admin *m)
{
	put_start(w, WIRE_ADMIN, m->reqid);
	wr_str(w, m->op);
	put_document(w, &m->doc);
}

int
wire_admin_decode(const uint8_t *p, size_t n, struct wire_admin *m)
{
	struct rd r = { .p = p, .left = n };

	m->doc = (struct document){ 0 };
	m->reqid = get_start(&r, WIRE_ADMIN);
	rd_str(&r, m->op, sizeof m->op);
	if (!r.bad)
		get_document(&r, 1, &m->doc);
	if (rd_clean_end(&r))
		return 0;
	document_free(&m->doc);
	return -1;
}

/*
 * ADMINREPLY. offset  size  field
 *                  0    10  version, kind, reqid
 *                 10     4  status
 *                 14  4+n   text
 *                           document
 */
void
wire_adminreply_encode(struct wr *w, const struct wire_adminreply *m)
{
	put_start(w, WIRE_ADMINREPLY, m->reqid);
	wr_u32(w, (uint32_t)m->status);
	wr_longstr(w, m->text == NULL ? "" : m->text);
	put_document(w, &m->doc);
}

int
wire_adminreply_decode(const uint8_t *p, size_t n, struct wire_adminreply *m)
{
	struct rd r = { .p = p, .left = n };

	m->doc = (struct document){ 0 };
	m->text = NULL;
	m->reqid = get_start(&r, WIRE_ADMINREPLY);
	m->status = (int32_t)rd_u32(&r);
	if (!r.bad)
		m->text = rd_strdup(&r);
	if (!r.bad)
		get_document(&r, UINT32_MAX, &m->doc);
	if (rd_clean_end(&r))
		return 0;
	document_free(&m->doc);
	free(m->text);
	m->text = NULL;
	return -1;
}
