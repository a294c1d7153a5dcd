/*
 * forward - one message: from its queue to its service, the answer to the reply queue; all of it or nothing.
 */
#include "forward.h"

#include <stdio.h>
#include <string.h>

#include "atmiq_ext.h"
#include "clock.h"
#include "say.h"

#define MARGIN_S 5	/* -o: a transaction may have to wait for those ahead of it, and to hear that one of these failed */

/* --- rolling back --- */

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

static void	/* As if it had not been taken: no retry is counted, no delay begins. */
give_back(const char *why)
{
	int keep = tperrno;

	if (tpgetlev() == 1)
		atmiq_abort_uncounted(why);
	tperrno = keep;
}

static enum turn
ended(struct worker *w, enum turn turn, int error)
{
	pthread_mutex_lock(&w->f->lock);
	note(w->s, turn, error);
	pthread_mutex_unlock(&w->f->lock);
	return turn;
}

/* --- taking --- */

static int	/* 0, or what outcome_error() says */
take(struct worker *w)
{
	struct request *r = &w->r;
	long retries;

	memset(&r->ctl, 0, sizeof r->ctl);
	r->ctl.flags = TPQMSGID | TPQCORRID | TPQPRIORITY | TPQREPLYQ | TPQFAILUREQ | TPQREPLYQOS;
	if (atmiq_dequeue(w->f->space, w->s->queue, &r->ctl, &w->data, &r->len, CALL_FLAGS, &retries) == -1)
		return outcome_error(&r->ctl);
	return 0;
}

static enum turn
not_taken(struct worker *w, int error)
{
	roll_back(error > 0 ? error : TPEDIAGNOSTIC, 0, "TMQFORWARD cannot take it", error > 0 ? tpstrerror(error) : "see the user log");
	if (error == QMENOMSG)
		return TURN_EMPTY;
	return ended(w, error == QMEBADQUEUE ? TURN_NOQUEUE : TURN_TROUBLE, error);
}

static int	/* 0 or a tperrno */
begin(struct worker *w)
{
	const struct options *o = w->f->o;
	long s = o->trantime_s;

	w->r.began_us = clock_mono_us();
	if (o->ordered && s > 0)
		s += MARGIN_S;
	return tpbegin((unsigned long)s, 0) == -1 ? tperrno : 0;
}

/* --- calling --- */

static void
is_sent(void *w)
{
	pool_sent(w);
}

static long	/* 0: the transaction's time is the limit */
limit_ms(const struct worker *w)
{
	const struct options *o = w->f->o;
	long ms = 0, left;

	if (o->notran && o->blocktime_s > 0)
		ms = o->blocktime_s * 1000;
	if (o->ordered && o->trantime_s > 0) {
		left = o->trantime_s * 1000 - (long)((clock_mono_us() - w->r.began_us) / 1000);
		if (left < 1)
			left = 1;
		if (ms == 0 || left < ms)
			ms = left;
	}
	return ms;
}

static int	/* 0 or a tperrno */
call(struct worker *w, long *reply_len)
{
	const struct options *o = w->f->o;
	struct atmiq_call c = {
		.service = w->s->queue, .data = w->r.len > 0 ? w->data : NULL, .len = w->r.len,
		.reply = &w->reply, .reply_len = reply_len,
		.flags = CALL_FLAGS | (o->notran ? TPNOTRAN : 0), .limit_ms = limit_ms(w), .sent = is_sent, .arg = w,
	};
	int rc;

	if (w->r.ctl.flags & TPQPRIORITY)
		tpsprio((int)w->r.ctl.priority, TPABSOLUTE);	/* else the service's own, or 50 */
	if (o->noreply)
		rc = tpacall(c.service, c.data, c.len, TPNOREPLY | TPNOTRAN | CALL_FLAGS);
	else
		rc = atmiq_call(&c);
	return rc == -1 ? tperrno : 0;
}

/* --- the end of it --- */

static bool
is_answered_failure(const struct worker *w, int error, long reply_len)
{
	return w->f->o->delete_failed && error == TPESVCFAIL && reply_len > 0;
}

/* Its service failed, or could not be called.  Retry count, retry delay, error queue: the queue manager's business. */
static enum turn
failed(struct worker *w, int error, long urcode, long reply_len)
{
	char service[96];

	line_break(w);
	if (error == TPENOENT && !w->f->o->burn) {
		give_back("nobody offers its service");
		return ended(w, TURN_NOBODY, error);
	}
	line_alone(w);
	if (error == TPEOTYPE)
		say("QM_CAT:2080: ERROR: could not decode the buffer of an answer of service %s", w->s->queue);
	snprintf(service, sizeof service, "service %.80s", w->s->queue);
	if (is_answered_failure(w, error, reply_len)) {
		pool_shut(w);		/* between the two transactions nobody here takes it */
		roll_back(error, urcode, service, tpstrerror(error));
		outcome_failed(w, reply_len, urcode);
		pool_open(w);
	} else
		roll_back(error, error == TPESVCFAIL ? urcode : 0, service, tpstrerror(error));
	return ended(w, TURN_FAILED, error);
}

static enum turn
undecodable(struct worker *w)
{
	line_break(w);
	line_alone(w);
	roll_back(TPEOTYPE, 0, "TMQFORWARD cannot take it", tpstrerror(TPEOTYPE));
	say("QM_CAT:2079: ERROR: could not decode the buffer of a message of queue %s", w->s->queue);
	return ended(w, TURN_FAILED, TPEOTYPE);		/* no use to wait for better times: the retries send it to the error queue */
}

static enum turn
finish(struct worker *w, long reply_len, long urcode)
{
	enum outcome outcome = outcome_commit(w, reply_len, urcode);
	int error = tperrno;

	if (outcome == OUTCOME_COMMITTED)
		return ended(w, TURN_DONE, 0);
	line_break(w);
	if (outcome == OUTCOME_NO_WAY) {
		line_alone(w);
		roll_back(error, 0, "no way onto its reply queue", w->r.ctl.replyqueue);
	} else
		roll_back(error, 0, "TMQFORWARD cannot commit", tpstrerror(error));
	return ended(w, TURN_TROUBLE, error);
}

enum turn
forward_one(struct worker *w)
{
	long reply_len = 0, urcode = 0;
	int error, taken;

	if (!w->f->o->burn)
		switch (atmiq_service_known(w->s->queue)) {
		case 1: break;
		case 0: return ended(w, TURN_NOBODY, TPENOENT);
		default: return ended(w, TURN_TROUBLE, tperrno);
		}
	if ((error = begin(w)) != 0)
		return ended(w, TURN_TROUBLE, error);
	if ((taken = take(w)) != 0 && taken != TPEOTYPE)
		return not_taken(w, taken);
	pool_taken(w);
	if (taken == 0 && line_intact(w)) {
		error = call(w, &reply_len);
		urcode = tpurcode;
	}
	pool_sent(w);
	if (!line_await(w)) {
		give_back("a message ahead of it failed");
		return TURN_BACK;
	}
	if (taken != 0)
		return undecodable(w);
	return error != 0 ? failed(w, error, urcode, reply_len) : finish(w, reply_len, urcode);
}
