/*
 * tranend - a transaction ends in the groups that joined it.
 *
 *    commit     one message, to the first group, which coordinates where there are several and answers for all
 *    rollback   one message to each, all of them under way at once
 *
 * A commit that was sent and not answered may have happened.  Where several groups joined, the coordinator that comes back is
 * asked while the caller's time lasts: that it committed is certain, since its record of the decision says so.  That it knows
 * nothing says nothing: the record goes when all groups have answered.  Where it stays unknown the others are told to roll back:
 * one that has not voted yet does, and then it is certain; one that has voted refuses, and hears the outcome from the coordinator.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"
#include "clock.h"
#include "point.h"
#include "ulog.h"

#define ABORT_US 2000000LL	/* for servers that may be gone: their branches are gone too, or end at the deadline */

static void
service_of_group(char service[WIRE_NAME], const char *group)
{
	snprintf(service, WIRE_NAME, "..%s", group);
}

/* Send one word to group i.  0: p is under way; else as conn_submit(): surely not sent. */
static int
group_tell(struct context *ctx, int i, enum wire_txop op, const struct patience *how, struct pending *p)
{
	struct conn *c = conn_of(ctx);
	struct wire_txend m = { .op = (uint8_t)op, .timeout_ms = time_left_ms(how->deadline_us) };
	char service[WIRE_NAME];
	int err;

	service_of_group(service, ctx->tran.groups.name[i]);
	m.reqid = p->reqid = conn_next_reqid(c);
	tran_to_wire(ctx, &m.tx);
	if (op == WIRE_TX_COMMIT) {
		m.logged = ctx->commit_logged;
		m.groups = ctx->tran.groups;
	}
	if (op == WIRE_TX_ABORT) {
		m.why = ctx->tran.why;
		m.uncounted = ctx->tran.uncounted;
	}
	wr_reset(&c->out);
	wire_txend_encode(&c->out, &m);
	if (op != WIRE_TX_QUERY)
		point(op == WIRE_TX_COMMIT ? POINT_COMMIT_SEND : POINT_ABORT_SEND);
	err = conn_submit(c, service, NULL, NULL, how, p);
	if (op != WIRE_TX_QUERY && err == 0)
		point(op == WIRE_TX_COMMIT ? POINT_COMMIT_SENT : POINT_ABORT_SENT);
	return err;
}

/* Its answer: 0; TPETIME: none in time; TPESVCERR: it is gone, or talks nonsense.  p is done with. */
static int
group_hear(struct context *ctx, int i, const struct patience *how, struct pending *p, struct wire_txreply *reply)
{
	int err = conn_await(conn_of(ctx), p, how, -1);

	if (err == 0 && wire_txreply_decode(p->msg->head, p->msg->head_len, reply) != 0) {
		ulog("LIBTUX_CAT:5031: ERROR: group %s gave no proper answer to the end of a transaction",
		    ctx->tran.groups.name[i]);
		err = TPESVCERR;
	}
	conn_forget(conn_of(ctx), p);
	return err == 0 || err == TPETIME ? err : TPESVCERR;
}

/* ---- rollback ---- */

static void	/* Nothing doomed it: it is the wish of the program, which is named. */
why_of_program(struct context *ctx)
{
	struct wire_why *why = &ctx->tran.why;

	if (why->text[0] == '\0' && snprintf(why->text, sizeof why->text, "rolled back by its program %.24s, process %ld%s",
	    proc_name != NULL ? proc_name : program_invocation_short_name, (long)getpid(), ctx->who) >= (int)sizeof why->text)
		memcpy(why->text + sizeof why->text - 4, "...", 4);
}

static int	/* Of two errors of tpabort() the worse one. */
worse(int a, int b)
{
	if (a == TPEHEURISTIC || b == TPEHEURISTIC)
		return TPEHEURISTIC;
	return a != 0 ? a : b;
}

/* What a group's answer to ABORT means to who aborts.  *heard: it has one. */
static int
abort_heard(struct context *ctx, int i, const struct patience *how, struct pending *p, bool *heard)
{
	struct wire_txreply reply = { 0 };

	*heard = group_hear(ctx, i, how, p, &reply) == 0 && (reply.error == 0 || reply.error == TPEHEURISTIC ||
	    reply.error == TPEHAZARD);
	if (*heard)
		point(POINT_ABORT_ANSWERED);
	if (reply.outcome != WIRE_OUT_HEUR_COMMITTED)
		ctx->abort_found_committed = false;
	return *heard ? reply.error : 0;
}

/* Those that can be reached at once are told first, so that one that is gone does not use up the time of the others. */
int
groups_abort(struct context *ctx)
{
	struct pending p[WIRE_MAX_GROUPS] = { 0 };
	bool heard[WIRE_MAX_GROUPS];
	int64_t patience_us = blocking_of_end_us(ctx) < ABORT_US ? blocking_of_end_us(ctx) : ABORT_US;
	struct patience how = { .deadline_us = deadline_from(patience_us), .restart = true, .noblock = true };
	int sent[WIRE_MAX_GROUPS], i, err = 0, n = ctx->tran.groups.n;

	why_of_program(ctx);
	ctx->abort_found_committed = n > 0;
	for (i = 0; i < n; i++)
		sent[i] = group_tell(ctx, i, WIRE_TX_ABORT, &how, &p[i]);
	how.noblock = false;
	for (i = 0; i < n; i++)
		if (sent[i] == TPEBLOCK)
			sent[i] = group_tell(ctx, i, WIRE_TX_ABORT, &how, &p[i]);
	for (i = 0; i < n; i++) {
		heard[i] = false;
		if (sent[i] == 0)
			err = worse(err, abort_heard(ctx, i, &how, &p[i], &heard[i]));
		if (!heard[i]) {
			ctx->abort_found_committed = false;
			ulog("LIBTUX_CAT:5032: WARN: group %s did not hear that a transaction is rolled back; it will "
			     "at its time-out",
			    ctx->tran.groups.name[i]);
		}
	}
	return err;
}

/* ---- commit ---- */

/* The coordinator was told to commit and is gone.  Does its successor know that it did? */
static bool
surely_committed(struct context *ctx, const struct patience *how)
{
	struct pending p = { 0 };
	struct wire_txreply reply;
	char service[WIRE_NAME];
	int err;

	service_of_group(service, ctx->tran.groups.name[0]);
	for (;;) {
		if (group_tell(ctx, 0, WIRE_TX_QUERY, how, &p) != 0)
			return false;
		if ((err = group_hear(ctx, 0, how, &p, &reply)) == TPETIME)
			return false;
		if (err == 0 && reply.error == 0 && reply.outcome == WIRE_OUT_COMMITTED)
			return true;
		if (err == 0 && reply.error != TPENOENT && reply.outcome != WIRE_OUT_UNDECIDED)
			return false;
		if (conn_ask_again(conn_of(ctx), service, true, how) != 0)
			return false;
	}
}

/* Did one of the others roll back for it?  Then nobody committed: its vote was needed. */
static bool
surely_rolled_back(struct context *ctx)
{
	struct patience how = { .deadline_us = deadline_from(ABORT_US), .restart = true };
	struct pending p[WIRE_MAX_GROUPS] = { 0 };
	int sent[WIRE_MAX_GROUPS], i, n = ctx->tran.groups.n;
	struct wire_txreply reply;
	bool certain = false;

	tran_doom_because(ctx, TPETIME, 0, "group %s, which was told to commit, is lost", ctx->tran.groups.name[0]);
	for (i = 1; i < n; i++)
		sent[i] = group_tell(ctx, i, WIRE_TX_ABORT, &how, &p[i]);
	for (i = 1; i < n; i++)
		if (sent[i] == 0 && group_hear(ctx, i, &how, &p[i], &reply) == 0)
			certain |= reply.error == 0 && reply.outcome == WIRE_OUT_ROLLED_BACK;
	return certain;
}

static int
commit_unknown(struct context *ctx, int err, const struct patience *how)
{
	const struct wire_groups *g = &ctx->tran.groups;

	if (err != TPETIME && g->n > 1 && surely_committed(ctx, how))
		return 0;
	if (g->n > 1 && surely_rolled_back(ctx)) {
		ulog("LIBTUX_CAT:5034: ERROR: transaction rolled back: group %s was told to commit and %s", g->name[0],
		    err == TPETIME ? "did not answer in time" : "is gone");
		return TPEABORT;
	}
	ulog("LIBTUX_CAT:5033: ERROR: the outcome of a transaction is unknown: group %s was told to commit and %s", g->name[0],
	    err == TPETIME ? "did not answer in time" : "is gone");
	return TPETIME;
}

static int	/* Nobody was told, so surely nobody committed, and nobody will. */
commit_unsent(struct context *ctx, int err)
{
	const char *group = ctx->tran.groups.name[0];

	ulog("LIBTUX_CAT:5034: ERROR: transaction rolled back: group %s cannot be reached to commit: %s", group,
	    tpstrerror(err));
	tran_doom_because(ctx, TPEABORT, 0, "group %s cannot be reached to commit", group);
	groups_abort(ctx);
	return TPEABORT;
}

static int
commit_answered(struct context *ctx, const struct wire_txreply *reply)
{
	switch (reply->error) {
	case 0:
	case TPEABORT:
	case TPEHEURISTIC:
	case TPEHAZARD:
	case TPETIME:
		return reply->error;
	default:
		ulog("LIBTUX_CAT:5142: ERROR: group %s could not commit a transaction: %s", ctx->tran.groups.name[0],
		    tpstrerror(reply->error) != NULL ? tpstrerror(reply->error) : "for no known reason");
		return TPESYSTEM;
	}
}

int
groups_commit(struct context *ctx)
{
	struct patience how = { .deadline_us = deadline_from(blocking_of_end_us(ctx)), .restart = true };
	struct pending p = { 0 };
	struct wire_txreply reply;
	char service[WIRE_NAME];
	int err;

	service_of_group(service, ctx->tran.groups.name[0]);
	for (;;) {
		if ((err = group_tell(ctx, 0, WIRE_TX_COMMIT, &how, &p)) != 0)
			return commit_unsent(ctx, err);
		if ((err = group_hear(ctx, 0, &how, &p, &reply)) != 0)
			return commit_unknown(ctx, err, &how);
		point(POINT_COMMIT_ANSWERED);
		if (reply.error != TPENOENT)		/* it only stands by: not done */
			return commit_answered(ctx, &reply);
		if ((err = conn_ask_again(conn_of(ctx), service, true, &how)) != 0)
			return commit_unsent(ctx, err);
	}
}

int
group_committed(struct context *ctx, const struct wire_txreply *reply, int err)
{
	struct patience none = { .deadline_us = 0 };

	return reply != NULL ? commit_answered(ctx, reply) : commit_unknown(ctx, err, &none);
}
