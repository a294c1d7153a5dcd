/*
 * keep - non-persistent messages over a close in good order: the file NONPERSISTENT (FORMAT.md).
 *
 * They are in memory alone, and only a crash may lose them (D7): a close writes them down, the next open reads them.  A
 * file counts once.  The table `space` names the one file that does, by its token; the name is written after the file
 * is whole on disk and deleted, durably, before the first message is taken out of it.  So whatever a kill leaves
 * behind, no message comes twice: a file that is not named is rubbish.
 *
 * Until something changes the messages in memory the file stays, and a close need only name it again: commands of
 * qmadmin on a space that nobody serves read it and write nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "qspace_impl.h"

#define KEEP_VERSION 1
#define KEEP_MAGIC "atmiqNPM"
#define NAME_KEY "kept", 4	/* in table `space` */
enum { MAGIC_BYTES = 8, HEAD_BYTES = MAGIC_BYTES + 1 + 36 + 8, ENTRY_HEAD = 5, NAME_BYTES = 1 + 8 + 8,
	ENTRY_MAX = INT32_MAX, LOAD_MESSAGES = 256, LOAD_BYTES = 4 << 20, BUFFER = 1 << 20 };
enum kind { KEEP_END = 0, KEEP_MESSAGE = 1, KEEP_OPERATION = 2, KEEP_QUEUE = 3 };

static void
keep_path(const struct qspace *qs, char *to, size_t size, const char *suffix)
{
	snprintf(to, size, "%s/NONPERSISTENT%s", qs->dir, suffix);
}

static void
keep_unlink(const struct qspace *qs)
{
	char path[4200];

	keep_path(qs, path, sizeof path, "");
	(void)unlink(path);
	keep_path(qs, path, sizeof path, ".new");
	(void)unlink(path);
}

bool
keep_is_there(const struct qspace *qs)
{
	char path[4200];

	keep_path(qs, path, sizeof path, "");
	return access(path, F_OK) == 0;
}

void
keep_changed(struct qspace *qs)
{
	if (qs->kept_token == 0 || qs->keeping)
		return;
	qs->kept_token = 0;
	keep_unlink(qs);
}

static int64_t
count_messages(const struct qspace *qs)
{
	int64_t n = 0;

	for (const struct queue *q = qs->queues; q != NULL; q = q->next)
		n += q->n.np_messages;
	return n;
}

/* --- which file counts --- */

static int	/* token 0: none.  Durable when it returns 0. */
name_write(struct qspace *qs, uint64_t token, int64_t messages)
{
	uint8_t v[NAME_BYTES] = { KEEP_VERSION };
	int rc;

	be64(v + 1, token);
	be64(v + 9, (uint64_t)messages);
	if ((rc = qspace_batch_begin(qs)) != 0)
		return rc;
	rc = token != 0 ? table_put(qs, T_SPACE, false, NAME_KEY, v, sizeof v) : table_del(qs, T_SPACE, false, NAME_KEY);
	if (rc == 0 && (rc = qspace_batch_commit(qs)) == 0)
		return 0;
	qspace_batch_abort(qs);
	return rc;
}

static int	/* or DB_NOTFOUND */
name_read(struct qspace *qs, uint64_t *token, int64_t *messages)
{
	uint8_t v[NAME_BYTES];
	size_t n;
	int rc = table_get(qs, T_SPACE, false, NAME_KEY, v, sizeof v, &n);

	if (rc != 0)
		return rc;
	if (n != sizeof v || v[0] != KEEP_VERSION)
		return env_error(qs, T_SPACE, "the name of the kept messages is not of this version", EINVAL);
	*token = get64(v + 1);
	*messages = (int64_t)get64(v + 9);
	return 0;
}

/* --- write --- */

struct writing { struct qspace *qs; FILE *f; uint8_t *p; size_t n, cap; uint64_t entries; };

static int	/* room for so many bytes behind what is there: 0, or an errno */
entry_grow(struct writing *w, size_t more)
{
	uint8_t *p;

	if (w->n + more <= w->cap)
		return 0;
	if ((p = realloc(w->p, w->n + more + 4096)) == NULL)
		return ENOMEM;
	w->p = p;
	w->cap = w->n + more + 4096;
	return 0;
}

static int
bytes_write(struct writing *w, const void *p, size_t n)
{
	int (*fault)(int, size_t) = env_fault, e = fault == NULL ? 0 : fault(fileno(w->f), n);

	if (e != 0)
		return e;
	errno = 0;
	return fwrite(p, 1, n, w->f) == n ? 0 : errno != 0 ? errno : EIO;
}

static int	/* w->p holds ENTRY_HEAD bytes of room and the payload */
entry_write(struct writing *w, enum kind kind)
{
	int rc;

	if (w->n - ENTRY_HEAD > ENTRY_MAX)
		return EFBIG;
	if ((rc = entry_grow(w, 4)) != 0)
		return rc;
	w->p[0] = (uint8_t)kind;
	be32(w->p + 1, (uint32_t)(w->n - ENTRY_HEAD));
	be32(w->p + w->n, checksum_of(w->p, w->n));
	w->entries++;
	return bytes_write(w, w->p, w->n + 4);
}

static void
entry_begin(struct writing *w)
{
	w->n = ENTRY_HEAD;
}

static void	/* the caller has made room */
add_bytes(struct writing *w, const void *p, size_t n)
{
	memcpy(w->p + w->n, p, n);
	w->n += n;
}

static int
message_write(struct writing *w, uint32_t queue, const struct okey *k, const struct oval *v, int64_t until)
{
	uint8_t fixed[4 + 8 + 1], val[OVAL_MAX], head[RECORD_HEAD_MAX];
	size_t cap = v->bytes + (size_t)RECORD_HEAD_MAX, n;
	struct oval whole = *v;
	struct wr rec = { 0 };
	int rc;

	whole.flags &= (uint8_t)~OV_PARTS;	/* the parts are not kept: the record gets its body back */
	if ((v->flags & OV_PARTS) && (heap_get(w->qs, true, v->rid, head, sizeof head, &n) != 0 ||
	    parts_gather(w->qs, head, n, &rec) != 0)) {
		wr_free(&rec);
		return EIO;
	}
	entry_begin(w);
	if ((rc = entry_grow(w, sizeof fixed + ORDER_KEY_MAX + 1 + OVAL_MAX + cap)) != 0) {
		wr_free(&rec);
		return rc;
	}
	be32(fixed, queue);
	be64(fixed + 4, (uint64_t)until);
	fixed[12] = k->n;
	add_bytes(w, fixed, sizeof fixed);
	add_bytes(w, k->b, k->n);
	n = oval_encode(val, &whole);
	w->p[w->n++] = (uint8_t)n;
	add_bytes(w, val, n);
	if (rec.p != NULL)
		add_bytes(w, rec.p, rec.len);
	else if (heap_get(w->qs, true, v->rid, w->p + w->n, cap, &n) != 0)
		return EIO;
	else
		w->n += n;
	wr_free(&rec);
	return entry_write(w, KEEP_MESSAGE);
}

static int
table_write(struct writing *w, enum table t)
{
	int64_t until = 0;
	struct walk at;
	struct okey k;
	struct oval v;
	int rc, bad = 0;

	for (rc = walk_first(w->qs, &at, t, true, "", 0); rc == 0 && bad == 0; rc = walk_next(w->qs, &at)) {
		if (t == T_DELAYED) {
			bad = delayed_decode(&at, &until, &k, &v) == 0 ? 0 : EINVAL;
		} else if (at.kn <= ORDER_KEY_MAX && oval_decode(at.v, at.vn, &v) == 0) {
			k.n = (uint8_t)at.kn;
			memcpy(k.b, at.k, at.kn);
		} else {
			bad = EINVAL;
		}
		if (bad == 0)
			bad = message_write(w, qorder_queue(&k), &k, &v, until);
	}
	walk_end(w->qs, &at);
	return bad != 0 ? bad : rc == DB_NOTFOUND ? 0 : EIO;
}

static int
queues_write(struct writing *w)
{
	int rc = 0;

	for (const struct queue *q = w->qs->queues; q != NULL && rc == 0; q = q->next) {
		entry_begin(w);
		if ((rc = entry_grow(w, 5)) != 0)
			break;
		be32(w->p + w->n, q->id);
		w->p[w->n + 4] = (uint8_t)q->n.np_armed;
		w->n += 5;
		rc = entry_write(w, KEEP_QUEUE);
	}
	return rc;
}

static int
operation_write(void *arg, const uint8_t *p, size_t n)
{
	struct writing *w = arg;
	int rc;

	entry_begin(w);
	if ((rc = entry_grow(w, n)) != 0)
		return rc;
	add_bytes(w, p, n);
	return entry_write(w, KEEP_OPERATION);
}

static int
head_write(struct writing *w, uint64_t token)
{
	uint8_t head[HEAD_BYTES];

	memcpy(head, KEEP_MAGIC, MAGIC_BYTES);
	head[MAGIC_BYTES] = KEEP_VERSION;
	memcpy(head + MAGIC_BYTES + 1, w->qs->uuid, 36);
	be64(head + MAGIC_BYTES + 1 + 36, token);
	return bytes_write(w, head, sizeof head);
}

static int
end_write(struct writing *w)
{
	uint64_t entries = w->entries;
	int rc;

	entry_begin(w);
	if ((rc = entry_grow(w, 8)) != 0)
		return rc;
	be64(w->p + w->n, entries);
	w->n += 8;
	if ((rc = entry_write(w, KEEP_END)) != 0)
		return rc;
	errno = 0;
	return fflush(w->f) == 0 && fdatasync(fileno(w->f)) == 0 ? 0 : errno != 0 ? errno : EIO;
}

static int	/* 0, or an errno: then there is no file */
file_write(struct qspace *qs, uint64_t token)
{
	char tmp[4200], path[4200];
	struct writing w = { .qs = qs };
	int rc;

	keep_path(qs, tmp, sizeof tmp, ".new");
	keep_path(qs, path, sizeof path, "");
	keep_unlink(qs);
	if ((w.f = fopen(tmp, "wxe")) == NULL)
		return errno;
	(void)setvbuf(w.f, NULL, _IOFBF, BUFFER);
	if ((rc = entry_grow(&w, 4096)) == 0 && (rc = head_write(&w, token)) == 0 && (rc = queues_write(&w)) == 0 &&
	    (rc = table_write(&w, T_ORDER)) == 0 && (rc = table_write(&w, T_DELAYED)) == 0 &&
	    (rc = branch_each_memory_op(qs, operation_write, &w)) == 0)
		rc = end_write(&w);
	if (fclose(w.f) != 0 && rc == 0)
		rc = errno;
	free(w.p);
	if (rc == 0 && rename(tmp, path) != 0)
		rc = errno;
	if (rc != 0)
		keep_unlink(qs);
	else
		dir_sync(qs->dir);
	return rc;
}

void
keep_save(struct qspace *qs)
{
	int64_t messages = count_messages(qs);
	uint64_t token = qs->kept_token;
	int rc;

	if (messages == 0 && !branch_has_memory_ops(qs)) {
		if (token != 0)
			keep_unlink(qs);
		return;
	}
	if (qs->env.np_broken) {
		rc = EIO;
	} else if (token != 0) {	/* it is there, and nothing has changed */
		rc = 0;
	} else {
		while (token == 0)
			if (getrandom(&token, sizeof token, 0) != sizeof token)
				token = 0;
		rc = file_write(qs, token);
	}
	if (rc == 0 && name_write(qs, token, messages) != 0)
		rc = EIO;
	if (rc == 0)
		return;
	keep_unlink(qs);
	ulog("QM_CAT:1360: ERROR: queue space %s in %s: %lld non-persistent messages could not be kept at the end, and are "
	     "lost: %s",
	    qs->params.name, qs->dir, (long long)messages, strerror(rc));
}

/* --- read --- */

struct reading { FILE *f; uint8_t *p; size_t n, cap; long long at; };	/* p: an entry, its head and checksum too */

static bool
head_read(struct reading *r, const struct qspace *qs, uint64_t token)
{
	uint8_t head[HEAD_BYTES];

	r->at = 0;
	if (fseek(r->f, 0, SEEK_SET) != 0 || fread(head, 1, sizeof head, r->f) != sizeof head ||
	    memcmp(head, KEEP_MAGIC, MAGIC_BYTES) != 0 || head[MAGIC_BYTES] != KEEP_VERSION ||
	    memcmp(head + MAGIC_BYTES + 1, qs->uuid, 36) != 0 || get64(head + MAGIC_BYTES + 1 + 36) != token)
		return false;
	r->at = sizeof head;
	return true;
}

static bool	/* the next entry is whole; r->at stays at one that is not */
entry_read(struct reading *r, long long size)
{
	uint8_t head[ENTRY_HEAD], *p;
	size_t n;

	if (fread(head, 1, sizeof head, r->f) != sizeof head)
		return false;
	n = ENTRY_HEAD + (size_t)get32(head + 1) + 4;
	if ((long long)n > size - r->at)
		return false;
	if (n > r->cap) {
		if ((p = realloc(r->p, n)) == NULL)
			return false;
		r->p = p;
		r->cap = n;
	}
	memcpy(r->p, head, sizeof head);
	if (fread(r->p + ENTRY_HEAD, 1, n - ENTRY_HEAD, r->f) != n - ENTRY_HEAD ||
	    get32(r->p + n - 4) != checksum_of(r->p, n - 4))
		return false;
	r->n = n;
	r->at += (long long)n;
	return true;
}

static bool	/* all of it, before anything is believed */
file_is_whole(struct reading *r, const struct qspace *qs, uint64_t token)
{
	uint64_t entries = 0;
	long long size;

	if (fseek(r->f, 0, SEEK_END) != 0 || (size = ftell(r->f)) < 0 || !head_read(r, qs, token))
		return false;
	while (entry_read(r, size)) {
		if (r->p[0] == KEEP_END)
			return r->n == ENTRY_HEAD + 8 + 4 && get64(r->p + ENTRY_HEAD) == entries && r->at == size;
		entries++;
	}
	return false;
}

static int
message_load(struct qspace *qs, struct rd *r, int64_t now)
{
	struct newmsg m = { 0 };
	struct qrecord rec;
	struct queue *q = queue_by_id(qs, rd_u32(r));
	uint8_t val[OVAL_MAX];
	size_t n;
	int rc;

	m.available_us = (int64_t)rd_u64(r);
	m.key.n = rd_u8(r);
	if (m.key.n > ORDER_KEY_MAX)
		return QMESYSTEM;
	rd_copy(r, m.key.b, m.key.n);
	if ((n = rd_u8(r)) > sizeof val)
		return QMESYSTEM;
	rd_copy(r, val, n);
	if (q == NULL || r->bad || oval_decode(val, n, &m.v) != 0 || !(m.v.flags & OV_NP) || r->left == 0)
		return QMESYSTEM;
	m.rec_len = r->left;
	m.rec = rd_view(r, r->left);
	if (qrecord_decode(m.rec, m.rec_len, &rec) != 0 || rec.seq != m.v.seq || rec.m.body_len != m.v.bytes)
		return QMESYSTEM;
	memcpy(m.msgid, rec.m.msgid, sizeof m.msgid);
	memcpy(m.corrid, rec.m.corrid, sizeof m.corrid);
	used_add(qs, &m.v, 1);
	if ((rc = store_put(qs, q, &m, now)) == 0)
		qs->batch.enqueues--;	/* back, not new */
	return rc;
}

static int
entry_load(struct qspace *qs, const struct reading *in, int64_t now)
{
	struct rd r = { .p = in->p + ENTRY_HEAD, .left = in->n - ENTRY_HEAD - 4 };
	struct queue *q;

	switch (in->p[0]) {
	case KEEP_MESSAGE:
		return message_load(qs, &r, now);
	case KEEP_OPERATION:
		return branch_restore_memory_op(qs, r.p, r.left);
	case KEEP_QUEUE:
		if ((q = queue_by_id(qs, rd_u32(&r))) == NULL)
			return QMESYSTEM;
		queue_touch(qs, q);
		q->n.np_armed = rd_u8(&r);
		return rd_clean_end(&r) ? 0 : QMESYSTEM;
	default:
		return QMESYSTEM;
	}
}

static int	/* A batch of them.  1: that was all. */
some_load(struct qspace *qs, struct reading *in, int64_t now)
{
	size_t bytes = 0;
	int rc, end = 0;

	if ((rc = qspace_batch_begin(qs)) != 0)
		return rc;
	for (int n = 0; rc == 0 && n < LOAD_MESSAGES && bytes < LOAD_BYTES; n++) {
		if (!entry_read(in, INT64_MAX)) {
			rc = QMESYSTEM;
		} else if (in->p[0] == KEEP_END) {
			end = 1;
			break;
		} else {
			rc = entry_load(qs, in, now);
		}
		bytes += in->n;
	}
	if (rc == 0 && (rc = qspace_batch_commit(qs)) == 0)
		return end;
	qspace_batch_abort(qs);
	return rc;
}

static int	/* 0: all there; else `why` says what was wrong */
file_load(struct qspace *qs, uint64_t token, char *why, size_t size)
{
	struct reading in = { 0 };
	char path[4200];
	int rc = 0;

	keep_path(qs, path, sizeof path, "");
	if ((in.f = fopen(path, "re")) == NULL) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return -1;
	}
	(void)setvbuf(in.f, NULL, _IOFBF, BUFFER);
	if (!file_is_whole(&in, qs, token)) {
		snprintf(why, size, "%s is damaged at offset %lld", path, in.at);
		rc = -1;
	} else {
		(void)head_read(&in, qs, token);
		while ((rc = some_load(qs, &in, clock_now_us())) == 0)
			;
		if (rc < 0)
			snprintf(why, size, "%s could not be read back at offset %lld (%d)", path, in.at, rc);
	}
	free(in.p);
	(void)fclose(in.f);
	return rc < 0 ? -1 : 0;
}

int
keep_load(struct qspace *qs)
{
	char why[4400] = "";
	uint64_t token = 0;
	int64_t messages = 0;
	int rc = name_read(qs, &token, &messages);

	if (rc == DB_NOTFOUND) {
		keep_unlink(qs);	/* what a run left that did not end in good order */
		return 0;
	}
	if (rc != 0 || (rc = name_write(qs, 0, 0)) != 0)
		return rc;
	qs->keeping = true;
	if (qs->env.db[1][T_ORDER] == NULL)
		snprintf(why, sizeof why, "there is no memory for them any more (qspacechange -n)");
	else if (file_load(qs, token, why, sizeof why) == 0)
		qs->kept_token = token;
	qs->keeping = false;
	for (struct queue *q = qs->queues; q != NULL; q = q->next)
		window_drop(qs, q);
	if (qs->kept_token != 0)
		return 0;
	keep_unlink(qs);
	ulog("QM_CAT:1361: WARN: queue space %s in %s: %lld of %lld non-persistent messages are lost: %s", qs->params.name,
	    qs->device, (long long)(messages - count_messages(qs)), (long long)messages, why);
	return 0;
}
