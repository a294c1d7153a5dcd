/*
 * queue - the queues of a space: their attributes, and counters that are kept with each commit so that nothing counts
 * by walking.
 *
 * Table `queues`: key id u32, 'D' for the definition or 'C' for the counters (FORMAT.md).
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "qspace_impl.h"

#define DEFINITION_VERSION 1
#define COUNTERS_VERSION 1

/* --- encode and decode --- */

static void
key_make(uint8_t k[5], uint32_t id, char kind)
{
	be32(k, id);
	k[4] = (uint8_t)kind;
}

static void
threshold_encode(struct wr *w, const struct threshold *t)
{
	wr_u64(w, (uint64_t)t->high);
	wr_u64(w, (uint64_t)t->low);
	wr_u8(w, (uint8_t)t->unit);
	wr_str(w, t->cmd);
}

static void
threshold_decode(struct rd *r, struct threshold *t)
{
	t->high = (long)rd_u64(r);
	t->low = (long)rd_u64(r);
	t->unit = (char)rd_u8(r);
	rd_str(r, t->cmd, sizeof t->cmd);
}

static void
definition_encode(struct wr *w, const struct queue_params *p)
{
	wr_u8(w, DEFINITION_VERSION);
	wr_str(w, p->name);
	wr_bytes(w, p->order, sizeof p->order);
	wr_u8(w, (uint8_t)(p->top | p->msgid << 1 | p->default_nonpersistent << 2));
	wr_u64(w, (uint64_t)p->retries);
	wr_u64(w, (uint64_t)p->retry_delay);
	threshold_encode(w, &p->persistent);
	threshold_encode(w, &p->nonpersistent);
	wr_u64(w, (uint64_t)p->default_expiration);
}

static int
definition_decode(const uint8_t *b, size_t n, struct queue_params *p)
{
	struct rd r = { .p = b, .left = n };
	uint8_t bits;

	memset(p, 0, sizeof *p);
	if (rd_u8(&r) != DEFINITION_VERSION)
		return -1;
	rd_str(&r, p->name, sizeof p->name);
	rd_copy(&r, p->order, sizeof p->order);
	bits = rd_u8(&r);
	p->top = bits & 1;
	p->msgid = bits >> 1 & 1;
	p->default_nonpersistent = bits >> 2 & 1;
	p->retries = (long)rd_u64(&r);
	p->retry_delay = (long)rd_u64(&r);
	threshold_decode(&r, &p->persistent);
	threshold_decode(&r, &p->nonpersistent);
	p->default_expiration = (int64_t)rd_u64(&r);
	return rd_clean_end(&r) ? 0 : -1;
}

static int
counters_decode(const uint8_t *b, size_t n, struct counters *c)
{
	struct rd r = { .p = b, .left = n };

	if (rd_u8(&r) != COUNTERS_VERSION)
		return -1;
	c->messages = (int64_t)rd_u64(&r);
	c->bytes = (int64_t)rd_u64(&r);
	c->pages = (int64_t)rd_u64(&r);
	c->delayed = (int64_t)rd_u64(&r);
	c->armed = rd_u8(&r);
	return rd_clean_end(&r) ? 0 : -1;
}

int
queue_write_counters(struct qspace *qs, struct queue *q)
{
	const struct counters *n = &q->n, *was = &q->saved;
	uint8_t k[5], v[1 + 4 * 8 + 1];

	if (!q->created && !q->armed_unwritten && n->messages == was->messages && n->bytes == was->bytes && n->pages == was->pages &&
	    n->delayed - n->np_delayed == was->delayed - was->np_delayed && n->armed == was->armed)
		return 0;
	key_make(k, q->id, 'C');
	v[0] = COUNTERS_VERSION;
	be64(v + 1, (uint64_t)n->messages);
	be64(v + 9, (uint64_t)n->bytes);
	be64(v + 17, (uint64_t)n->pages);
	be64(v + 25, (uint64_t)(n->delayed - n->np_delayed));
	v[33] = n->armed;
	return table_put(qs, T_QUEUES, false, k, sizeof k, v, sizeof v);
}

static int
queue_write_definition(struct qspace *qs, const struct queue *q)
{
	struct wr w = { 0 };
	uint8_t k[5];
	int rc;

	key_make(k, q->id, 'D');
	definition_encode(&w, &q->p);
	rc = wr_ok(&w) ? table_put(qs, T_QUEUES, false, k, sizeof k, w.p, w.len) : batch_dead(qs, QMEOS);
	wr_free(&w);
	return rc;
}

/* --- in memory --- */

struct queue *
queue_find(struct qspace *qs, const char *name)
{
	struct queue *q;

	HASH_FIND(hh, qs->by_name, name, strlen(name), q);
	return q != NULL && !q->dying ? q : NULL;
}

struct queue *
queue_by_id(struct qspace *qs, uint32_t id)
{
	struct queue *q;

	HASH_FIND(hh_id, qs->by_id, &id, sizeof id, q);
	return q;
}

static struct queue *
queue_add(struct qspace *qs, uint32_t id, const struct queue_params *p)
{
	struct queue *q = calloc(1, sizeof *q);

	if (q == NULL)
		return NULL;
	if (due_room(&qs->due_queues, HASH_CNT(hh_id, qs->by_id) + 1) != 0) {
		free(q);
		return NULL;
	}
	q->id = id;
	q->p = *p;
	q->n.next_due = NEVER;
	q->n.armed = q->n.np_armed = TH_ARMED;
	window_drop(qs, q);
	DL_APPEND(qs->queues, q);
	HASH_ADD_KEYPTR(hh, qs->by_name, q->p.name, strlen(q->p.name), q);
	HASH_ADD(hh_id, qs->by_id, id, sizeof q->id, q);
	return q;
}

void
queue_forget(struct qspace *qs, struct queue *q)
{
	threshold_drop(qs, q);
	due_set(&qs->due_queues, &q->due, NEVER);
	HASH_DELETE(hh, qs->by_name, q);
	HASH_DELETE(hh_id, qs->by_id, q);
	DL_DELETE(qs->queues, q);
	window_drop(qs, q);
	free(q->w.e);
	free(q->saved_p);
	free(q);
}

void
queue_touch(struct qspace *qs, struct queue *q)
{
	struct batch *b = &qs->batch;

	assert(b->open);
	if (q->batch == b->no)
		return;
	q->batch = b->no;
	q->saved = q->n;
	q->touched_next = b->queues;
	b->queues = q;
}

void
queue_count(struct qspace *qs, struct queue *q, const struct oval *v, int by)
{
	queue_touch(qs, q);
	if (v->flags & OV_NP) {
		q->n.np_messages += by;
		q->n.np_bytes += by * (int64_t)v->weight;
	} else {
		q->n.messages += by;
		q->n.bytes += by * (int64_t)v->bytes;
		q->n.pages += by * pages_of(v->bytes);
	}
	if ((v->flags & OV_NP ? q->p.nonpersistent.cmd : q->p.persistent.cmd)[0] != '\0')
		threshold_look(qs, q, v->flags & OV_NP);
}

bool
queue_is_lifo(const struct queue *q)
{
	for (int i = 0; i < 4; i++)
		if (q->p.order[i] == QC_LIFO)
			return true;
	return false;
}

void
queue_due(struct qspace *qs, struct queue *q, int64_t us)
{
	q->n.next_due = us;
	due_set(&qs->due_queues, &q->due, q->dying ? NEVER : us);
	tick_at(qs, us);
}

int
queue_find_due(struct qspace *qs, struct queue *q)
{
	int64_t first = NEVER;
	uint8_t from[4];
	struct walk w;
	int rc = 0;

	be32(from, q->id);
	for (int np = 0; np < 2 && rc == 0; np++) {
		rc = walk_first(qs, &w, T_DELAYED, np, from, sizeof from);
		if (rc == 0 && w.kn == DELAYED_KEY && get32(w.k) == q->id && (int64_t)get64(w.k + 4) < first)
			first = (int64_t)get64(w.k + 4);
		walk_end(qs, &w);
		rc = rc == DB_NOTFOUND ? 0 : rc;
	}
	queue_due(qs, q, first);
	return rc;
}

int
queue_reload_all(struct qspace *qs)
{
	struct queue *q;
	int rc;

	qs->used = (struct used){ 0 };	/* branches add theirs */
	for (q = qs->queues; q != NULL; q = q->next) {
		uint8_t k[5], v[64];
		struct counters was = q->n;
		size_t n;

		key_make(k, q->id, 'C');
		rc = table_get(qs, T_QUEUES, false, k, sizeof k, v, sizeof v, &n);
		if (rc != 0 || counters_decode(v, n, &q->n) != 0)
			return env_error(qs, T_QUEUES, "counters of a queue cannot be read", rc != 0 ? rc : EINVAL);
		q->n.held = q->n.pending = 0;
		q->n.hidden = (struct hidden){ 0 };
		q->n.np_messages = was.np_messages;
		q->n.np_bytes = was.np_bytes;
		q->n.np_delayed = was.np_delayed;
		q->n.delayed += was.np_delayed;
		q->n.np_armed = was.np_armed;
		if (q->armed_unwritten)
			q->n.armed = was.armed;
		window_drop(qs, q);
		if ((rc = queue_find_due(qs, q)) != 0)
			return rc;
		qs->used.messages += q->n.messages;
		qs->used.messages += q->n.np_messages;
		qs->used.np_bytes += q->n.np_bytes;
		qs->used.pages += q->n.pages;
	}
	threshold_find_due(qs);
	return 0;
}

int
queue_load_all(struct qspace *qs)
{
	struct queue_params p;
	struct walk w;
	int rc;

	for (rc = walk_first(qs, &w, T_QUEUES, false, "", 0); rc == 0; rc = walk_next(qs, &w)) {
		uint32_t id = w.kn == 5 ? get32(w.k) : 0;
		if (w.kn == 5 && w.k[4] == 'D') {
			if (definition_decode(w.v, w.vn, &p) != 0)
				rc = env_error(qs, T_QUEUES, "a definition is not of this version", EINVAL);
			else if (queue_by_id(qs, id) == NULL && queue_add(qs, id, &p) == NULL)
				rc = QMEOS;
		}
		if (rc != 0)
			break;
	}
	walk_end(qs, &w);
	if (rc != DB_NOTFOUND)
		return rc;
	return queue_reload_all(qs);
}

/* --- what administrators do --- */

static bool
order_is_valid(const uint8_t order[4])
{
	bool seen[QC_LIFO + 1] = { false };

	for (int i = 0; i < 4; i++) {
		if (order[i] == QC_NONE || order[i] > QC_LIFO || seen[order[i]])
			return false;
		seen[order[i]] = true;
		if (order[i] == QC_FIFO || order[i] == QC_LIFO) {
			while (++i < 4)
				if (order[i] != QC_NONE)
					return false;
			return true;
		}
	}
	return false;
}

static bool
params_are_valid(const struct queue_params *p)
{
	if (p->name[0] == '\0' || strnlen(p->name, sizeof p->name) == sizeof p->name)
		return false;
	if (strnlen(p->persistent.cmd, sizeof p->persistent.cmd) == sizeof p->persistent.cmd ||
	    strnlen(p->nonpersistent.cmd, sizeof p->nonpersistent.cmd) == sizeof p->nonpersistent.cmd)
		return false;
	return order_is_valid(p->order) && p->retries >= 0 && p->retry_delay >= 0 && p->default_expiration >= -1;
}

int
qspace_queue_create(struct qspace *qs, const struct queue_params *p)
{
	struct queue *q;
	int rc;

	if (!params_are_valid(p))
		return QMEINVAL;
	if (queue_find(qs, p->name) != NULL)
		return QMEBADQUEUE;
	HASH_FIND(hh, qs->by_name, p->name, strlen(p->name), q);
	if (q != NULL)			/* destroyed in this very batch */
		return QMEINUSE;
	if (qs->params.queues > 0 && HASH_COUNT(qs->by_name) >= (unsigned)qs->params.queues)
		return QMENOSPACE;
	if ((q = queue_add(qs, qs->next_queue, p)) == NULL)
		return batch_dead(qs, QMEOS);
	qs->next_queue++;
	qs->batch.space_dirty = true;
	queue_touch(qs, q);
	q->created = true;
	q->w.whole = true;
	if ((rc = queue_write_definition(qs, q)) != 0)
		return rc;
	return queue_write_counters(qs, q);
}

int
qspace_queue_change(struct qspace *qs, const struct queue_params *p)
{
	struct queue *q = queue_find(qs, p->name);
	struct queue_params was;

	if (q == NULL)
		return QMEBADQUEUE;
	if (!params_are_valid(p) || memcmp(p->order, q->p.order, sizeof p->order) != 0)
		return QMEINVAL;
	queue_touch(qs, q);
	if (q->saved_p == NULL) {
		if ((q->saved_p = malloc(sizeof *q->saved_p)) == NULL)
			return batch_dead(qs, QMEOS);
		*q->saved_p = q->p;
	}
	was = q->p;
	q->p = *p;
	threshold_changed(qs, q, &was);
	return queue_write_definition(qs, q);
}

static int	/* Every message of the queue, in both sets of tables. */
queue_purge(struct qspace *qs, struct queue *q)
{
	uint8_t from[4];
	struct walk w;
	struct okey k;
	struct oval v;
	struct place at;
	int rc = 0;

	be32(from, q->id);
	for (int np = 0; np < 2; np++)
		for (int t = T_ORDER; t <= T_DELAYED; t++)
			for (;;) {
				rc = walk_first(qs, &w, t, np, from, sizeof from);
				at = (struct place){ .delayed = t == T_DELAYED };
				if (rc == 0 && get32(w.k) != q->id)
					rc = DB_NOTFOUND;
				if (rc == 0 && at.delayed && delayed_decode(&w, &at.available_us, &k, &v) != 0)
					rc = env_error(qs, t, "an entry is not of this version", EINVAL);
				if (rc == 0 && !at.delayed) {
					k.n = (uint8_t)w.kn;
					memcpy(k.b, w.k, w.kn);
					if (oval_decode(w.v, w.vn, &v) != 0)
						rc = env_error(qs, t, "an entry is not of this version", EINVAL);
				}
				walk_end(qs, &w);
				if (rc == 0 && (rc = store_remove(qs, q, &k, &v, &at, NULL)) == 0)
					used_add(qs, &v, -1);
				if (rc == DB_NOTFOUND)
					break;
				if (rc != 0)
					return batch_dead(qs, rc);
			}
	return 0;
}

int
qspace_queue_destroy(struct qspace *qs, const char *name, bool purge)
{
	struct queue *q = queue_find(qs, name);
	uint8_t k[5];
	int rc;

	if (q == NULL)
		return QMEBADQUEUE;
	if (q->n.held > 0 || q->n.pending > 0 || (!purge && q->n.messages + q->n.np_messages > 0))
		return QMEINUSE;
	queue_touch(qs, q);
	if (purge && (rc = queue_purge(qs, q)) != 0)
		return rc;
	key_make(k, q->id, 'D');
	if (table_del(qs, T_QUEUES, false, k, sizeof k) != 0)
		return batch_dead(qs, QMESYSTEM);
	key_make(k, q->id, 'C');
	if (table_del(qs, T_QUEUES, false, k, sizeof k) != 0)
		return batch_dead(qs, QMESYSTEM);
	q->dying = true;
	queue_due(qs, q, NEVER);
	return 0;
}

int
qspace_queue_get(struct qspace *qs, const char *name, struct queue_params *p, struct queue_stat *st)
{
	const struct queue *q = queue_find(qs, name);

	if (q == NULL)
		return QMEBADQUEUE;
	if (p != NULL)
		*p = q->p;
	if (st != NULL)
		*st = (struct queue_stat){ .messages = q->n.messages - q->n.hidden.messages,
			.bytes = q->n.bytes - q->n.hidden.bytes,
			.blocks = q->n.pages - q->n.hidden.pages,
			.np_messages = q->n.np_messages - q->n.hidden.np_messages,
			.np_bytes = q->n.np_bytes - q->n.hidden.np_bytes,
			.held = q->n.held,
			.delayed = q->n.delayed };
	return 0;
}

const char *
qspace_queue_next(struct qspace *qs, const char *after)
{
	struct queue *q = after == NULL ? NULL : queue_find(qs, after);

	if (after != NULL && q == NULL)
		return NULL;
	for (q = after == NULL ? qs->queues : q->next; q != NULL && q->dying; q = q->next)
		;
	return q == NULL ? NULL : q->p.name;
}
