/*
 * given_model - see given_model.h.
 */
#include "given_model.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

int64_t
model_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void __attribute__((format(printf, 4, 5)))
wrong(struct model *q, int *which, const struct model_msg *m, const char *fmt, ...)
{
	va_list ap;

	++*which;
	if (++q->violations > 20)
		return;
	fprintf(q->out, "! %s (%s): message %d ", q->queue, q->order, m != NULL ? m->seq : -1);
	va_start(ap, fmt);
	vfprintf(q->out, fmt, ap);
	va_end(ap);
	if (m != NULL)
		fprintf(q->out, " [sure %d placed %d volatile %d priority %d come %lld..%lld back %lld..%lld end %lld..%lld rank %g "
		    "rolled %d..%d delivered %d]", m->sure, m->placed, m->volatile_, m->priority, (long long)m->come_lo,
		    (long long)m->come_hi, (long long)m->back_lo, (long long)m->back_hi, (long long)m->end_lo,
		    (long long)m->end_hi, m->rank, m->rolled_lo, m->rolled_hi, m->delivered);
	fprintf(q->out, "\n");
	fflush(q->out);
}

struct model_msg *
model_find(struct model *q, int seq)
{
	for (int i = 0; i < MODEL_MAX; i++)
		if (q->m[i].used && q->m[i].seq == seq)
			return &q->m[i];
	return NULL;
}

struct model_msg *
model_add(struct model *q, int seq)
{
	for (int i = 0; i < MODEL_MAX; i++)
		if (!q->m[i].used) {
			q->m[i] = (struct model_msg){ .used = true, .seq = seq, .priority = 50 };
			return &q->m[i];
		}
	return NULL;
}

void
model_gone(struct model_msg *m)
{
	m->used = false;
}

size_t
model_count(const struct model *q)
{
	size_t n = 0;

	for (int i = 0; i < MODEL_MAX; i++)
		n += q->m[i].used;
	return n;
}

/* --- order --- */

void
model_rank(struct model *q, struct model_msg *m, enum model_place place, const struct model_msg *before)
{
	bool lifo = strstr(q->order, "lifo") != NULL;
	double under;

	switch (place) {
	case PLACE_TOP:
		m->rank = (q->top = q->top > -1e9 ? -1e9 : q->top) - 1;
		q->top = m->rank;
		break;
	case PLACE_BEFORE:		/* in the gap that arrivals leave ahead of it, behind all that is there */
		under = ceil(before->rank) - 1;
		for (int i = 0; i < MODEL_MAX; i++)
			if (q->m[i].used && &q->m[i] != m && q->m[i].rank < before->rank && q->m[i].rank > under)
				under = q->m[i].rank;
		m->rank = (under + before->rank) / 2;
		break;
	default:
		m->rank = lifo ? --q->first : ++q->last;
		break;
	}
}

/* -1: the first interval surely lies before the other, 1: behind it, 0: both are the same instant, 2: who knows. */
static int
compare_times(int64_t a_lo, int64_t a_hi, int64_t b_lo, int64_t b_hi)
{
	a_lo /= 1000, a_hi /= 1000, b_lo /= 1000, b_hi /= 1000;	/* queues order by milliseconds */
	if (a_hi < b_lo)
		return -1;
	if (a_lo > b_hi)
		return 1;
	return a_lo == a_hi && b_lo == b_hi ? 0 : 2;
}

static bool
surely_before(const struct model *q, const struct model_msg *a, const struct model_msg *b)
{
	const char *p = q->order;
	int c;

	if (!a->placed || !b->placed)
		return false;
	if ((a->rank <= -1e9) != (b->rank <= -1e9))	/* put on top */
		return a->rank <= -1e9;
	if (a->rank <= -1e9)
		return a->rank < b->rank;
	for (; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
		if (*p == 'p')
			c = a->priority > b->priority ? -1 : a->priority < b->priority;
		else if (*p == 't')
			c = compare_times(a->come_lo, a->come_hi, b->come_lo, b->come_hi);
		else if (*p == 'e')
			c = a->end_lo == 0 || b->end_lo == 0 ? (a->end_lo == 0) - (b->end_lo == 0) :
			    compare_times(a->end_lo, a->end_hi, b->end_lo, b->end_hi);
		else
			c = a->rank < b->rank ? -1 : 1;
		if (c != 0)
			return c == -1;
	}
	return false;
}

/* --- what must be so --- */

bool
model_is_there(const struct model *q, const struct model_msg *m, int64_t t0, int64_t t1)
{
	return m->used && m->sure && m->come_hi <= t0 && m->back_hi <= t0 && (m->end_lo == 0 || m->end_lo > t1) &&
	    t0 >= q->fog_until && m->rolled_hi <= q->retries;
}

struct model_msg *
model_came(struct model *q, int seq, int64_t t0, int64_t t1, bool first)
{
	struct model_msg *m = model_find(q, seq);

	if (m == NULL) {
		struct model_msg was = { .seq = seq };
		wrong(q, &q->doubled, &was, "came again, or was refused, or expired long ago");
		return NULL;
	}
	m->sure = true;		/* for here it is */
	if (t1 < m->come_lo || t1 < m->back_lo)
		wrong(q, &q->early, m, "came too early: %lld", (long long)t1);
	if (m->end_hi != 0 && t0 >= m->end_hi)
		wrong(q, &q->expired, m, "came after it had expired: %lld", (long long)t0);
	if (m->rolled_lo > q->retries)
		wrong(q, &q->often, m, "came once more than its queue allows");
	for (int i = 0; first && i < MODEL_MAX; i++)
		if (&q->m[i] != m && model_is_there(q, &q->m[i], t0, t1) && surely_before(q, &q->m[i], m)) {
			wrong(q, &q->disordered, &q->m[i], "was passed over:");
			wrong(q, &q->disordered, m, "came (%lld to %lld)", (long long)t0, (long long)t1);
			break;
		}
	return m;
}

void
model_nothing(struct model *q, const struct model_msg *only, int64_t t0, int64_t t1)
{
	for (int i = 0; i < MODEL_MAX; i++)
		if ((only == NULL || &q->m[i] == only) && model_is_there(q, &q->m[i], t0, t1)) {
			wrong(q, &q->lost, &q->m[i], "is lost or late: nothing was there from %lld to %lld", (long long)t0,
			    (long long)t1);
			q->m[i].sure = false;	/* said once */
		}
}

void
model_rolled(struct model *q, struct model_msg *m, int64_t t0, int64_t t1, bool counted, int64_t longest_us)
{
	int64_t delay = (int64_t)q->delay_s * 1000000;

	m->rolled_hi++;
	m->rolled_lo += counted;
	m->back_lo = counted ? t0 + delay : 0;
	m->back_hi = t1 + delay + (counted ? 0 : longest_us);	/* or when the transaction's time is up */
	if (m->rolled_hi > q->retries)
		m->sure = false;	/* it may be on the error queue */
}

void
model_fog(struct model *q, int64_t until)
{
	if (until > q->fog_until)
		q->fog_until = until;
	for (int i = 0; i < MODEL_MAX; i++)
		if (q->m[i].used && ++q->m[i].rolled_hi > q->retries)
			q->m[i].sure = false;
}

void
model_owner_died(struct model *q)
{
	for (int i = 0; i < MODEL_MAX; i++)
		if (q->m[i].volatile_)
			q->m[i].sure = false;
}

void
model_forget_expired(struct model *q, int64_t t)
{
	for (int i = 0; i < MODEL_MAX; i++)
		if (q->m[i].used && q->m[i].end_hi != 0 && q->m[i].end_hi < t)
			model_gone(&q->m[i]);
}
