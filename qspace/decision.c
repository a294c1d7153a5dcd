/*
 * decision - the transactions that this space coordinated and that were committed: kept until all groups have answered.
 */
#include <errno.h>
#include <string.h>

#include "branch_impl.h"

void
decision_encode(struct wr *w, const struct wire_groups *g)
{
	wr_u8(w, DECISION_VERSION);
	wr_u8(w, g->n);
	for (int i = 0; i < g->n; i++)
		wr_str(w, g->name[i]);
}

int
decision_decode(const uint8_t *p, size_t n, struct wire_groups *g)
{
	struct rd r = { .p = p, .left = n };

	*g = (struct wire_groups){ 0 };
	if (rd_u8(&r) != DECISION_VERSION || (g->n = rd_u8(&r)) > WIRE_MAX_GROUPS)
		return -1;
	for (int i = 0; i < g->n; i++)
		rd_str(&r, g->name[i], sizeof g->name[i]);
	return rd_clean_end(&r) ? 0 : -1;
}

int
qspace_decision_put(struct qspace *qs, const struct branch_id *id, const struct wire_groups *groups)
{
	struct wr w = { 0 };
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (id->len == 0 || id->len > QSPACE_GTRID_MAX || groups->n > WIRE_MAX_GROUPS)
		return QMEINVAL;
	decision_encode(&w, groups);
	rc = wr_ok(&w) ? table_put(qs, T_DECISIONS, false, id->gtrid, id->len, w.p, w.len) : batch_dead(qs, QMEOS);
	wr_free(&w);
	return rc;
}

static int
unreadable(struct qspace *qs)
{
	return env_error(qs, T_DECISIONS, "the outcome of a transaction cannot be read", EINVAL);
}

int
qspace_decision_get(struct qspace *qs, const struct branch_id *id, struct wire_groups *groups)
{
	uint8_t v[DECISION_BYTES];
	size_t n;
	int rc;

	*groups = (struct wire_groups){ 0 };
	if (id->len == 0 || id->len > QSPACE_GTRID_MAX)
		return QMENOMSG;
	if ((rc = table_get(qs, T_DECISIONS, false, id->gtrid, id->len, v, sizeof v, &n)) != 0)
		return rc == DB_NOTFOUND ? QMENOMSG : rc;
	return decision_decode(v, n, groups) != 0 ? unreadable(qs) : 0;
}

int
qspace_decision_remove(struct qspace *qs, const struct branch_id *id)
{
	int rc;

	if (qs->batch.rc != 0)
		return qs->batch.rc;
	if (id->len == 0 || id->len > QSPACE_GTRID_MAX)
		return 0;
	rc = table_del(qs, T_DECISIONS, false, id->gtrid, id->len);
	return rc == DB_NOTFOUND ? 0 : rc;
}

int
qspace_decision_next(struct qspace *qs, const struct branch_id *after, struct branch_id *id, struct wire_groups *groups)
{
	struct branch_id from = { 0 };
	struct walk w;
	int rc;

	if (after != NULL)
		from = *after;
	rc = walk_first(qs, &w, T_DECISIONS, false, from.gtrid, from.len);
	if (rc == 0 && after != NULL && w.kn == from.len && memcmp(w.k, from.gtrid, w.kn) == 0)
		rc = walk_next(qs, &w);
	if (rc == 0 && (w.kn == 0 || w.kn > QSPACE_GTRID_MAX || decision_decode(w.v, w.vn, groups) != 0))
		rc = unreadable(qs);
	if (rc == 0) {
		*id = (struct branch_id){ .len = (uint8_t)w.kn };
		memcpy(id->gtrid, w.k, w.kn);
	}
	walk_end(qs, &w);
	return rc == DB_NOTFOUND ? QMENOMSG : rc;
}
