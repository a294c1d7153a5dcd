#include "forward.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "atmiq_ext.h"
#include "say.h"

#define CALL_FLAGS (TPNOTIME | TPSIGRSTRT)	/* the transaction's time is the limit */
#define NOBODY_MS 250		/* between two questions for a service, or a queue, that is not there */
#define TROUBLE_MS 500
#define SLICE_MS 50		/* how soon a pause hears the order to stop */
#define WATCH_MAX 64		/* queues that one wait can cover */
#define BUFFER 4096

int
forward_init(struct forwarder *f, struct options *o, const char *group)
{
	memset(f, 0, sizeof *f);
	f->o = o;
	atmiq_group_service(group, f->space);
	f->data = tpalloc((char *)"STRING", NULL, BUFFER);
	f->reply = tpalloc((char *)"STRING", NULL, BUFFER);
	return f->data == NULL || f->reply == NULL ? -1 : 0;
}

void
forward_done(struct forwarder *f)
{
	tpfree(f->data);
	tpfree(f->reply);
}

/* --- what is said, and how often --- */

/* The state of queue i, and why (a tperrno, or a negative QME code).  Logged when it differs from the last one. */
static enum turn
forward_note(struct forwarder *f, size_t i, enum turn turn, int error)
{
	struct source *s = &f->source[i];
	const char *queue = f->o->queue[i];

	if (turn == TURN_EMPTY)
		return turn;	/* says nothing about the service or the way there */
	if (turn == s->last && error == s->error)
		return turn;
	if (turn == TURN_FAILED)
		say("QM_CAT:1624: WARN: service %s failed: %s; its message goes back to the queue", queue, tpstrerror(error));
	else if (turn == TURN_NOBODY)
		say("QM_CAT:1625: WARN: nobody offers service %s: the messages of queue %s wait", queue, queue);
	else if (turn == TURN_TROUBLE)
		say("QM_CAT:1626: WARN: queue %s cannot be served now: %s (%d); it is tried again", queue,
		    error < 0 ? "diagnostic" : tpstrerror(error), error);
	else if (s->last == TURN_NOBODY || s->last == TURN_TROUBLE)
		say("QM_CAT:1627: INFO: queue %s is served again", queue);
	s->last = turn;
	s->error = error;
	return turn;
}

/* --- one message --- */

/* What is under way is undone, for a reason that goes with the message; a transaction that is over already has nothing to
 * undo. */
static void
roll_back(int error, long urcode, const char *what, const char *why)
{
	int keep = tperrno;
	char text[128];

	if (snprintf(text, sizeof text, "%s: %s", what, why) < 0)
		text[0] = '\0';
	if (tpgetlev() == 1)
		atmiq_abort(error, urcode, text);
	tperrno = keep;
}

static int	/* 0, or what outcome_error() says */
take(struct forwarder *f, struct request *r)
{
	long retries;

	memset(&r->ctl, 0, sizeof r->ctl);
	r->ctl.flags = TPQMSGID | TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQREPLYQOS;
	if (atmiq_dequeue(f->space, r->queue, &r->ctl, &f->data, &r->len, CALL_FLAGS, &retries) == -1)
		return outcome_error(&r->ctl);
	return 0;
}

static int
call(struct forwarder *f, const struct request *r, long *reply_len)
{
	char *data = r->len > 0 ? f->data : NULL;
	long flags = CALL_FLAGS | (f->o->notran ? TPNOTRAN : 0);

	*reply_len = 0;
	if (r->ctl.flags & TPQPRIORITY)
		tpsprio((int)r->ctl.priority, TPABSOLUTE);	/* else the service's own, or 50 */
	if (f->o->noreply)
		return tpacall(r->queue, data, r->len, TPNOREPLY | TPNOTRAN | CALL_FLAGS) == -1 ? -1 : 0;
	if (f->o->notran && f->o->blocktime_s > 0) {
		flags &= ~TPNOTIME;
		tpsblktime((int)f->o->blocktime_s, TPBLK_NEXT);
	}
	return tpcall(r->queue, data, r->len, &f->reply, reply_len, flags);
}

static enum turn
failed(struct forwarder *f, size_t i, const struct request *r, long reply_len)
{
	int error = tperrno;
	long urcode = tpurcode;
	char service[96];

	/* Retry count, retry delay, error queue: the queue manager's business. */
	snprintf(service, sizeof service, "service %.80s", r->queue);
	roll_back(error, error == TPESVCFAIL ? urcode : 0, service, tpstrerror(error));
	if (f->o->delete_failed && error == TPESVCFAIL && reply_len > 0)
		outcome_failed(f, r, reply_len, urcode);
	/* It was there a moment ago: ask again before the next message is taken, and do not spin. */
	return forward_note(f, i, error == TPENOENT ? TURN_NOBODY : TURN_FAILED, error);
}

static enum turn
forward_one(struct forwarder *f, size_t i)
{
	struct request r = { .queue = f->o->queue[i] };
	long reply_len;
	int error;

	switch (atmiq_service_known(r.queue)) {
	case 1: break;
	case 0: return forward_note(f, i, TURN_NOBODY, TPENOENT);
	default: return forward_note(f, i, TURN_TROUBLE, tperrno);
	}
	if (tpbegin((unsigned long)f->o->trantime_s, 0) == -1)
		return forward_note(f, i, TURN_TROUBLE, tperrno);
	if ((error = take(f, &r)) != 0) {
		roll_back(error > 0 ? error : TPEDIAGNOSTIC, 0, "TMQFORWARD cannot take it", error > 0 ? tpstrerror(error) : "see the user log");
		if (error == TPEOTYPE) {	/* no use to wait for better times: the retries send it to the error queue */
			say("QM_CAT:2079: ERROR: could not decode the buffer of a message of queue %s", r.queue);
			return forward_note(f, i, TURN_FAILED, error);
		}
		return forward_note(f, i, error == QMENOMSG ? TURN_EMPTY : TURN_TROUBLE, error);
	}
	if (call(f, &r, &reply_len) == -1)
		return failed(f, i, &r, reply_len);
	if (!f->o->noreply && outcome_reply(f, &r, reply_len, tpurcode) == -1) {
		roll_back(tperrno, 0, "no way onto its reply queue", r.ctl.replyqueue);
		return forward_note(f, i, TURN_TROUBLE, tperrno);
	}
	if (tpcommit(0) == -1) {
		error = tperrno;
		roll_back(error, 0, "TMQFORWARD cannot commit", tpstrerror(error));
		return forward_note(f, i, TURN_TROUBLE, error);
	}
	return forward_note(f, i, TURN_DONE, 0);
}

/* --- round after round --- */

static void
pause_ms(long ms)
{
	for (; ms > 0 && !atmiq_server_stopping(); ms -= SLICE_MS) {
		struct timespec slice = { 0, SLICE_MS * 1000000L };

		nanosleep(&slice, NULL);
	}
}

/* Queues whose message would be taken now; *all is false when some are not among them. */
static int
watchable(struct forwarder *f, const enum turn *now, char **names, bool *all)
{
	int n = 0;

	*all = true;
	for (size_t i = 0; i < f->o->n_queues; i++)
		if (now[i] == TURN_EMPTY && n < WATCH_MAX)
			names[n++] = f->o->queue[i];
		else
			*all = false;
	return n;
}

static void
idle(struct forwarder *f, const enum turn *now)
{
	char *names[WATCH_MAX];
	long ms = f->o->idle_s > 2147483L ? 2147483647L : f->o->idle_s * 1000;
	bool all;
	int n = watchable(f, now, names, &all);

	if (!all && (ms > NOBODY_MS || ms == 0))
		ms = NOBODY_MS;		/* a service may come, a queue be made: nobody tells us */
	if (ms == 0)
		return;
	if (n == 0)
		pause_ms(ms);
	else if (atmiq_qwait(f->space, names, n, ms) == -1 && tperrno != TPETIME && tperrno != TPGOTSIG)
		pause_ms(TROUBLE_MS);
}

static bool	/* -e: only what nobody serves may be left, and that is not "no message left" */
nothing_left(struct forwarder *f, const enum turn *now)
{
	for (size_t i = 0; i < f->o->n_queues; i++) {
		char *name = f->o->queue[i];

		if (now[i] == TURN_EMPTY)
			continue;
		if (now[i] != TURN_NOBODY || atmiq_qwait(f->space, &name, 1, 1) != -1 || tperrno != TPETIME)
			return false;
	}
	return true;
}

void
forward_run(struct forwarder *f)
{
	enum turn now[FORWARD_MAX_QUEUES] = { 0 };

	while (!atmiq_server_stopping()) {
		bool worked = false, trouble = false;

		for (size_t i = 0; i < f->o->n_queues && !atmiq_server_stopping(); i++) {
			now[i] = forward_one(f, i);
			worked |= now[i] == TURN_DONE || now[i] == TURN_FAILED;
			trouble |= now[i] == TURN_TROUBLE;
			if (now[i] == TURN_DONE && f->o->noreply)
				pause_ms(f->o->pause_s * 1000);
		}
		if (worked || atmiq_server_stopping())
			continue;
		if (trouble)
			pause_ms(TROUBLE_MS);
		else if (f->o->exit_when_empty && nothing_left(f, now))
			return;
		else
			idle(f, now);
	}
}
