/*
 * tick - what time brings: delayed messages become due, messages expire, branches pass their deadline.
 *
 * Each table is sorted by time, so a look costs one seek, and nothing at all before qs->next_event.  Expired messages
 * that a branch holds are passed over (qs->expired_to) and removed when the branch ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

enum { TICK_WORK = 1000, EXPIRE_AT_ONCE = 64 };

void
tick_at(struct qspace *qs, int64_t us)
{
	if (us < qs->next_event)
		qs->next_event = us;
}

struct gone { uint64_t seq; struct okey k; struct place at; };

/*
 * Collect up to `max` expired messages of one set of tables and move expired_to past what was seen.  *next becomes the
 * time of the first entry that has not expired.
 */
static int
expired_collect(struct qspace *qs, bool np, int64_t now, struct gone *g, int max, int64_t *next)
{
	uint8_t *to = qs->expired_to[np];
	struct walk w;
	int64_t us;
	int n = 0, rc;

	*next = NEVER;
	rc = walk_first(qs, &w, T_EXPIRY, np, to, sizeof qs->expired_to[np]);
	if (rc == 0 && w.kn == 16 && memcmp(w.k, to, 16) == 0)
		rc = walk_next(qs, &w);
	for (; rc == 0; rc = walk_next(qs, &w)) {
		if (expiry_decode(&w, &us, &g[n].seq, &g[n].k, &g[n].at) != 0) {
			rc = batch_dead(qs, env_error(qs, T_EXPIRY, "an entry is not of this version", EINVAL));
			break;
		}
		if (us > now || n == max - 1) {
			*next = us;
			break;
		}
		memcpy(to, w.k, 16);
		if (!is_held(qs, g[n].seq))
			n++;
	}
	walk_end(qs, &w);
	return rc < 0 && rc != DB_NOTFOUND ? rc : n;
}

static int
expired_remove(struct qspace *qs, bool np, const struct gone *g)
{
	struct queue *q = queue_by_id(qs, qorder_queue(&g->k));
	uint8_t val[1 + ORDER_KEY_MAX + OVAL_MAX], key[DELAYED_KEY];
	size_t n, skip = 0;
	struct oval v;
	int rc;

	if (g->at.delayed) {
		delayed_key(key, qorder_queue(&g->k), g->at.available_us, g->seq);
		rc = table_get(qs, T_DELAYED, np, key, sizeof key, val, sizeof val, &n);
		skip = 1u + g->k.n;
	} else {
		rc = table_get(qs, T_ORDER, np, g->k.b, g->k.n, val, sizeof val, &n);
	}
	if (q == NULL || rc == DB_NOTFOUND || (rc == 0 && (n < skip || oval_decode(val + skip, n - skip, &v) != 0)))
		rc = env_error(qs, T_EXPIRY, "an entry leads to no message", EINVAL);
	if (rc != 0)
		return batch_dead(qs, rc);
	if ((rc = store_remove(qs, q, &g->k, &v, &g->at, NULL)) == 0)
		used_add(qs, &v, -1);
	return rc;
}

static int	/* how many were removed, or a QME code; sets qs->next_expiry */
expire(struct qspace *qs, int64_t now, int max)
{
	struct gone *g;
	int64_t next, first = NEVER;
	int done = 0, n, rc = 0;

	if (now < qs->next_expiry)
		return 0;
	if ((g = malloc(EXPIRE_AT_ONCE * sizeof *g)) == NULL)
		return batch_dead(qs, QMEOS);
	for (int np = 0; np < 2 && rc == 0; np++) {
		do {
			if ((n = expired_collect(qs, np, now, g, EXPIRE_AT_ONCE, &next)) < 0)
				rc = n;
			for (int i = 0; i < n && rc == 0; i++, done++)
				rc = expired_remove(qs, np, &g[i]);
		} while (rc == 0 && next <= now && done < max);
		if (next < first)
			first = next;
	}
	free(g);
	qs->next_expiry = first;
	return rc != 0 ? rc : done;
}

static int
promote_all(struct qspace *qs, int64_t now, int max)
{
	int done = 0, n;

	for (struct queue *q = qs->queues; q != NULL && done < max; q = q->next) {
		if (q->dying || q->n.next_due > now)
			continue;
		if ((n = store_promote(qs, q, now, max - done)) < 0)
			return n;
		done += n;
	}
	return done;
}

int64_t
qspace_tick(struct qspace *qs, int64_t now)
{
	int64_t next;

	if (qs->batch.rc != 0 || now < qs->next_event)
		return threshold_next(qs, now, qs->next_event);
	if (promote_all(qs, now, TICK_WORK) < 0 || expire(qs, now, TICK_WORK) < 0 ||
	    branch_expire(qs, now, TICK_WORK) < 0)
		return now + 1000000;	/* the batch is dead; its abort lets the next tick look again */
	next = qs->next_expiry < qs->next_deadline ? qs->next_expiry : qs->next_deadline;
	for (struct queue *q = qs->queues; q != NULL; q = q->next)
		if (!q->dying && q->n.next_due < next)
			next = q->n.next_due;
	qs->next_event = next;
	return threshold_next(qs, now, next);
}
