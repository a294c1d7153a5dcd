/*
 * enqueue - a message is checked, numbered, and stored in the batch or put on a branch's list.
 */
#include <errno.h>
#include <string.h>

#include "qspace_impl.h"

#define SUPPLIED (TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY | TPQDELIVERYQOS | TPQREPLYQOS)
enum { DEFAULT_PRIORITY = 50 };

static bool
at_most_one(uint32_t bits)
{
	return (bits & (bits - 1)) == 0;
}

static bool
qos_is_valid(int32_t qos)
{
	return qos == TPQQOSDEFAULTPERSIST || qos == TPQQOSPERSISTENT || qos == TPQQOSNONPERSISTENT;
}

static bool
name_is_valid(const char *name)
{
	return name != NULL && strnlen(name, TMQNAMELEN + 1) <= TMQNAMELEN;
}

/* Bits that only mean something on dequeue are ignored: programs use one TPQCTL for both calls. */
static bool
input_is_valid(const struct queue *q, const struct qmsg_in *in)
{
	uint32_t f = in->flags;

	if (!at_most_one(f & (TPQTIME_ABS | TPQTIME_REL)) || !at_most_one(f & (TPQTOP | TPQBEFOREMSGID)) ||
	    !at_most_one(f & (TPQEXPTIME_ABS | TPQEXPTIME_REL | TPQEXPTIME_NONE)))
		return false;
	if ((f & (TPQTIME_ABS | TPQTIME_REL)) && in->deq_time < 0)
		return false;
	if ((f & (TPQEXPTIME_ABS | TPQEXPTIME_REL)) && in->exp_time < 0)
		return false;
	if ((f & TPQPRIORITY) && (in->priority < 1 || in->priority > 100))
		return false;
	if (((f & TPQDELIVERYQOS) && !qos_is_valid(in->delivery_qos)) ||
	    ((f & TPQREPLYQOS) && !qos_is_valid(in->reply_qos)))
		return false;
	if (((f & TPQREPLYQ) && !name_is_valid(in->replyqueue)) ||
	    ((f & TPQFAILUREQ) && !name_is_valid(in->failurequeue)))
		return false;
	if (((f & TPQTOP) && !q->p.top) || ((f & TPQBEFOREMSGID) && !q->p.msgid))
		return false;
	return strnlen(in->type, 9) <= 8 && strnlen(in->subtype, 17) <= 16;
}

static int64_t	/* `base` plus seconds, which may be absurdly many */
plus_seconds(int64_t base, int64_t s)
{
	int64_t us;

	return __builtin_mul_overflow(s, 1000000, &us) || __builtin_add_overflow(base, us, &us) ? NEVER - 1 : us;
}

static int64_t	/* 0: never */
expiry_of(const struct queue *q, const struct qmsg_in *in, int64_t now)
{
	int64_t us;

	if (in->flags & TPQEXPTIME_NONE)
		return 0;
	if (in->flags & TPQEXPTIME_ABS)
		us = plus_seconds(0, in->exp_time);
	else if (in->flags & TPQEXPTIME_REL)
		us = plus_seconds(now, in->exp_time);
	else if (q->p.default_expiration >= 0)
		us = plus_seconds(now, q->p.default_expiration);
	else
		return 0;
	return us == 0 ? 1 : us;
}

static bool
is_nonpersistent(const struct queue *q, const struct qmsg_in *in)
{
	if ((in->flags & TPQDELIVERYQOS) && in->delivery_qos != TPQQOSDEFAULTPERSIST)
		return in->delivery_qos == TPQQOSNONPERSISTENT;
	return q->p.default_nonpersistent;
}

int
message_locate(struct qspace *qs, struct queue *q, const struct msgid_parts *id, struct okey *k, struct oval *v,
    struct place *at)
{
	uint8_t val[1 + ORDER_KEY_MAX + OVAL_MAX], key[DELAYED_KEY];
	uint64_t seq = id->alias ? id->seq : qorder_seq(&id->key, queue_is_lifo(q));
	size_t n = 0, skip;
	int rc;

	if (id->queue != q->id)
		return DB_NOTFOUND;
	*at = (struct place){ .delayed = false };
	*k = id->key;
	rc = id->alias ? DB_NOTFOUND : table_get(qs, T_ORDER, id->np, k->b, k->n, val, sizeof val, &n);
	skip = 0;
	if (rc == DB_NOTFOUND && (rc = alias_get(qs, id->np, seq, k, at)) == 0 && qorder_queue(k) == q->id) {
		if (at->delayed) {
			delayed_key(key, q->id, at->available_us, seq);
			rc = table_get(qs, T_DELAYED, id->np, key, sizeof key, val, sizeof val, &n);
			skip = 1u + k->n;
		} else {
			rc = table_get(qs, T_ORDER, id->np, k->b, k->n, val, sizeof val, &n);
		}
	}
	if (rc != 0)
		return rc;
	if (n < skip || oval_decode(val + skip, n - skip, v) != 0)
		return batch_dead(qs, env_error(qs, T_ORDER, "an entry is not of this version", EINVAL));
	return v->seq == seq ? 0 : DB_NOTFOUND;
}

static int	/* The last key in `order` before k, of this queue; n 0: there is none. */
key_ahead(struct qspace *qs, const struct queue *q, const struct okey *k, struct okey *out)
{
	struct walk w;
	int rc = 0;

	out->n = 0;
	for (int np = 0; np < 2 && rc == 0; np++) {
		if ((np ? q->n.np_messages : q->n.messages) == 0)
			continue;
		rc = walk_before(qs, &w, T_ORDER, np, k->b, k->n);
		if (rc == 0 && w.kn > 4 && w.kn <= ORDER_KEY_MAX && get32(w.k) == q->id &&
		    (out->n == 0 || qorder_compare(out->b, out->n, w.k, w.kn) < 0)) {
			out->n = (uint8_t)w.kn;
			memcpy(out->b, w.k, w.kn);
		}
		walk_end(qs, &w);
		if (rc == DB_NOTFOUND)
			rc = 0;
	}
	return rc;
}

static uint32_t	/* what the message counts against the memory for non-persistent ones */
weight_of(const struct qmsg *m, bool before)
{
	return (uint32_t)(NP_PLAIN + m->body_len + strlen(m->replyqueue) + strlen(m->failurequeue) +
	    (m->flags & TPQCORRID ? NP_CORRID : 0) + (m->expires_us != 0 ? NP_EXPIRY : 0) + (before ? NP_BEFORE : 0));
}

static int	/* The key of the new message, ahead of the one that is named: one that is there, or of the same branch. */
key_before(struct qspace *qs, struct branch *b, struct queue *q, const struct qmsg_in *in, uint64_t seq,
    struct okey *out)
{
	const struct newmsg *own;
	struct msgid_parts id;
	struct okey k, ahead = { 0 };
	struct oval v;
	struct place at;
	int rc;

	if (qorder_msgid_parse(in->msgid, &id) != 0 || memcmp(in->msgid + 1, qs->id4, 4) != 0)
		return QMEBADMSGID;
	if ((rc = message_locate(qs, q, &id, &k, &v, &at)) == DB_NOTFOUND) {
		if (b == NULL || (own = branch_enqueued(b, q, in->msgid)) == NULL)
			return QMEBADMSGID;
		k = own->key;
	} else if (rc != 0) {
		return rc;
	} else if (v.expires_us != 0 && v.expires_us <= clock_now_us() && !is_held(qs, v.seq)) {
		return QMEBADMSGID;
	}
	if (qorder_before_looks(&k) && (rc = key_ahead(qs, q, &k, &ahead)) != 0)
		return rc;
	return qorder_before(out, &k, &ahead, seq) == 0 ? 0 : QMENOSPACE;
}

static void	/* Into what is zero.  Four snprintf() were a twentieth of an enqueue. */
text_copy(char *to, size_t size, const char *from)
{
	memcpy(to, from, strnlen(from, size - 1));
}

static void	/* What its receiver will see. */
message_fill(struct qmsg *m, const struct queue *q, const struct qmsg_in *in, int64_t now)
{
	*m = (struct qmsg){ .flags = in->flags & SUPPLIED,
		.priority = in->flags & TPQPRIORITY ? in->priority : DEFAULT_PRIORITY,
		.delivery_qos = in->flags & TPQDELIVERYQOS ? in->delivery_qos : 0,
		.reply_qos = in->flags & TPQREPLYQOS ? in->reply_qos : 0,
		.urcode = in->urcode,
		.appkey = in->appkey,
		.persistent = !is_nonpersistent(q, in),
		.enqueued_us = now,
		.expires_us = expiry_of(q, in, now),
		.has_body = in->has_body,
		.body = in->body,
		.body_len = in->has_body ? in->body_len : 0 };
	memcpy(m->cltid, in->cltid, sizeof m->cltid);
	if (in->flags & (TPQTIME_ABS | TPQTIME_REL))
		m->available_us = plus_seconds(in->flags & TPQTIME_ABS ? 0 : now, in->deq_time);
	if (in->flags & TPQTIME_ABS && m->available_us == 0)
		m->available_us = 1;			/* 0 stands for a message that gives no time */
	if (in->flags & TPQCORRID)
		memcpy(m->corrid, in->corrid, TMCORRIDLEN);
	if (in->flags & TPQREPLYQ)
		text_copy(m->replyqueue, sizeof m->replyqueue, in->replyqueue);
	if (in->flags & TPQFAILUREQ)
		text_copy(m->failurequeue, sizeof m->failurequeue, in->failurequeue);
	text_copy(m->type, sizeof m->type, in->type);
	text_copy(m->subtype, sizeof m->subtype, in->subtype);
}

int
message_make(struct qspace *qs, struct branch *b, struct queue *q, const struct qmsg_in *in, int64_t now,
    struct newmsg *out)
{
	struct qrecord r = { .seq = space_next_seq(qs), .queue = q->id };
	struct qorder_values values;
	bool before = in->flags & TPQBEFOREMSGID;
	int rc;

	memset(out, 0, sizeof *out);
	message_fill(&r.m, q, in, now);
	if (in->spool != NULL && (r.parts = spool_body(in->spool)) == 0)
		return batch_dead(qs, QMESYSTEM);
	if (in->spool != NULL)
		r.m.persistent = !spool_is_np(in->spool);	/* whatever the queue's policy has become */
	out->v = (struct oval){ .seq = r.seq,
		.bytes = (uint32_t)r.m.body_len,
		.expires_us = r.m.expires_us,
		.flags = (uint8_t)((r.m.persistent ? 0 : OV_NP) | (in->flags & TPQCORRID ? OV_CORRID : 0) |
				   (before ? OV_ALIAS : 0) | (r.parts != 0 ? OV_PARTS : 0)) };
	if (!r.m.persistent)
		out->v.weight = weight_of(&r.m, before);
	if ((rc = space_room(qs, &out->v, in->spool)) != 0 ||
	    (r.m.persistent &&
		(rc = room_take(qs, (r.parts != 0 ? 0 : r.m.body_len) + RECORD_HEAD_MAX, b != NULL ? b->n : 0)) != 0))
		return rc;
	if (before) {
		if ((rc = key_before(qs, b, q, in, r.seq, &out->key)) != 0)
			return rc;
	} else {
		values = (struct qorder_values){ .priority = r.m.priority, .expires_us = r.m.expires_us,
		    .available_us = r.m.available_us != 0 ? r.m.available_us : now };
		qorder_key(&out->key, q->id, q->p.order, &values, in->flags & TPQTOP, r.seq);
	}
	out->available_us = r.m.available_us;
	out->parts = r.parts;
	qorder_msgid(out->msgid, qs->id4, !r.m.persistent, &out->key, r.seq, before);
	memcpy(r.m.msgid, out->msgid, TMMSGIDLEN);
	memcpy(out->corrid, r.m.corrid, TMCORRIDLEN);
	wr_reset(&qs->rec);
	qrecord_encode(&qs->rec, &r);
	if (!wr_ok(&qs->rec))
		return batch_dead(qs, QMEOS);
	out->rec = qs->rec.p;
	out->rec_len = qs->rec.len;
	return 0;
}

static int
check(struct qspace *qs, const struct queue *q, const struct qmsg_in *in)
{
	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (q == NULL)
		return QMEBADQUEUE;
	return !input_is_valid(q, in) || (in->has_body && in->body_len > QSPACE_BODY_MAX) ? QMEINVAL : 0;
}

static int
spool_for(struct qspace *qs, const struct queue *q, const struct qmsg_in *in, bool inner, struct spool **out)
{
	struct oval v = { .bytes = (uint32_t)in->body_len, .flags = is_nonpersistent(q, in) ? OV_NP : 0 };
	struct qmsg m;
	int rc;

	message_fill(&m, q, in, clock_now_us());
	v.weight = weight_of(&m, in->flags & TPQBEFOREMSGID);
	rc = space_room(qs, &v, NULL);
	*out = NULL;
	return rc != 0 ? rc : spool_new(qs, &v, inner, out);
}

int
qspace_spool_begin(struct qspace *qs, const char *queue, const struct qmsg_in *in, struct spool **out)
{
	struct queue *q = queue_find(qs, queue);
	int rc = check(qs, q, in);

	*out = NULL;
	return rc != 0 ? rc : spool_for(qs, q, in, false, out);
}

static int	/* A body that is too large for one record, all of it in this batch. */
enqueue_in_parts(
    struct qspace *qs, struct branch *b, const char *queue, const struct qmsg_in *in, uint8_t msgid[TMMSGIDLEN])
{
	struct qmsg_in whole = *in;
	int rc = spool_for(qs, queue_find(qs, queue), in, true, &whole.spool);

	if (rc == 0 && (rc = qspace_spool_write(whole.spool, in->body, in->body_len)) == 0)
		rc = qspace_enqueue(qs, b, queue, &whole, msgid);
	return rc;
}

bool
qspace_needs_spool(const struct qmsg_in *in)
{
	return in->has_body && in->body_len > WHOLE_MAX;
}

int
qspace_enqueue(
    struct qspace *qs, struct branch *b, const char *queue, const struct qmsg_in *in, uint8_t msgid[TMMSGIDLEN])
{
	struct queue *q = queue_find(qs, queue);
	int64_t now = clock_now_us();
	struct newmsg m;
	int rc;

	if (qs->batch.rc == 0 && b != NULL && (rc = branch_check(b)) != 0)
		return rc;
	if ((rc = check(qs, q, in)) != 0)
		return rc;
	if (in->spool == NULL && qspace_needs_spool(in))
		return enqueue_in_parts(qs, b, queue, in, msgid);
	if ((rc = message_make(qs, b, q, in, now, &m)) != 0)
		return rc;
	if (b != NULL)
		rc = branch_add_enqueue(qs, b, q, &m);
	else if (m.v.expires_us == 0 || m.v.expires_us > now) {	/* else it is gone at once */
		used_add(qs, &m.v, 1);
		if ((rc = store_put(qs, q, &m, now)) == 0 && m.parts != 0)
			rc = parts_own(qs, m.v.flags & OV_NP, m.parts);
	}
	if (rc == 0 && in->spool != NULL)
		spool_use(in->spool);
	if (rc == 0)
		memcpy(msgid, m.msgid, TMMSGIDLEN);
	return rc;
}
