/*
 * tick - what time brings: delayed messages become due, messages expire, branches pass their deadline.
 *
 * Messages go by the wall clock, as their times are stored.  Deadlines of branches are a length of time, and nobody who sets
 * the clock rolls a transaction back, or keeps it.
 *
 * Each table is sorted by time, so a look costs one seek, and nothing at all before qs->next_event.  Expired messages
 * that a branch holds are passed over (qs->expired_to) and removed when the branch ends.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "qspace_impl.h"

enum { TICK_WORK = 256, EXPIRE_AT_ONCE = 64, JUMP_US = 2000000 };

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
	struct due *d;
	int done = 0, n;

	while (done < max && (d = due_first(&qs->due_queues)) != NULL && d->us <= now) {
		if ((n = store_promote(qs, (struct queue *)((char *)d - offsetof(struct queue, due)), now, max - done)) < 0)
			return n;
		done += n;
	}
	return done;
}

static void
say_jump(const struct qspace *qs, int64_t us)
{
	if (us < 0)
		ulog("QM_CAT:1380: WARN: queue space %s: the clock was set back by %lld s; messages that were delayed until "
		     "a time of the old clock wait for that time",
		    qs->params.name, (long long)(-us / 1000000));
	else
		ulog("QM_CAT:1381: INFO: queue space %s: the clock was set forward by %lld s", qs->params.name,
		    (long long)(us / 1000000));
}

/* Was the wall clock set?  What was passed over as expired may not be so any more. */
static void
clock_look(struct qspace *qs, int64_t now, int64_t mono)
{
	int64_t by = now - mono - qs->ahead_us;

	if (qs->looked_us != 0 && (by < -JUMP_US || by > JUMP_US)) {
		say_jump(qs, by);
		qs->batch.space_dirty = true;	/* the time of last use, which the next open compares with the clock */
	}
	if (now < qs->looked_us) {
		memset(qs->expired_to, 0, sizeof qs->expired_to);
		qs->next_event = qs->next_expiry = 0;
	}
	qs->looked_us = now;
	qs->ahead_us = now - mono;
}

int64_t
qspace_tick(struct qspace *qs, int64_t now)
{
	int64_t mono = clock_mono_us(), deadline;
	int more, swept = 0, steps = 0;

	if (qs->batch.rc != 0)
		return threshold_next(qs, now, qs->next_event);
	clock_look(qs, now, mono);
	if (now >= qs->next_event || due_next(&qs->due_branches) <= mono) {
		if (promote_all(qs, now, TICK_WORK) < 0 || expire(qs, now, TICK_WORK) < 0 ||
		    branch_expire(qs, mono, TICK_WORK) < 0)
			return now + 1000000;	/* the batch is dead; its abort lets the next tick look again */
		qs->next_event = due_next(&qs->due_queues) < qs->next_expiry ? due_next(&qs->due_queues) : qs->next_expiry;
	}
	if ((more = parts_tick(qs)) < 0 || (swept = chunks_sweep(qs)) < 0 || (steps = branches_step(qs, mono)) < 0)
		return now + 1000000;
	more |= swept | steps | (qs->releasing != NULL);
	deadline = due_next(&qs->due_branches);
	if (qs->ending != NULL && qs->step_after_us < deadline)	/* a step that failed */
		deadline = qs->step_after_us;
	if (deadline != NEVER)
		deadline += now - mono;
	return threshold_next(qs, now, more ? 0 : deadline < qs->next_event ? deadline : qs->next_event);
}
