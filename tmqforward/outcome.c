#include <string.h>

#include "atmiq_ext.h"
#include "forward.h"
#include "say.h"

int
outcome_error(const TPQCTL *ctl)
{
	return tperrno == TPEDIAGNOSTIC ? (int)ctl->diagnostic : tperrno;
}

/* Who asked finds the answer by the request's correlation id or, when it had none, by its message id. */
static void
answer_ctl(const struct request *r, long urcode, TPQCTL *out)
{
	memset(out, 0, sizeof *out);
	out->flags = TPQCORRID;
	memcpy(out->corrid, r->ctl.flags & TPQCORRID ? r->ctl.corrid : r->ctl.msgid, sizeof out->corrid);
	out->urcode = urcode;
	if (r->ctl.flags & TPQREPLYQOS) {
		out->flags |= TPQDELIVERYQOS;
		out->delivery_qos = r->ctl.reply_qos;
	}
}

static void
no_way(const struct worker *w, const char *queue, const TPQCTL *ctl)
{
	int keep = tperrno;

	say("QM_CAT:1623: ERROR: the answer to a message of queue %s does not get onto queue %s: %s (diagnostic %ld)", w->s->queue,
	    queue, tpstrerror(tperrno), ctl->diagnostic);
	tperrno = keep;
}

static int
answer(struct worker *w, const char *queue, long reply_len, long urcode)
{
	TPQCTL ctl;
	char name[TMQNAMELEN + 1];

	answer_ctl(&w->r, urcode, &ctl);
	memcpy(name, queue, sizeof name);
	if (tpenqueue(w->f->space, name, &ctl, reply_len > 0 ? w->reply : NULL, reply_len, CALL_FLAGS) != -1)
		return 0;
	if (outcome_error(&ctl) == QMEBADQUEUE)
		return 0;	/* no such queue: nobody wants the answer */
	no_way(w, name, &ctl);
	return -1;
}

enum outcome
outcome_commit(struct worker *w, long reply_len, long urcode)
{
	TPQCTL ctl;
	char name[TMQNAMELEN + 1];

	if (w->f->o->noreply || (w->r.ctl.flags & TPQREPLYQ) == 0)
		return tpcommit(0) == -1 ? OUTCOME_UNCOMMITTED : OUTCOME_COMMITTED;
	answer_ctl(&w->r, urcode, &ctl);
	memcpy(name, w->r.ctl.replyqueue, sizeof name);
	if (atmiq_enqueue_commit(w->f->space, name, &ctl, reply_len > 0 ? w->reply : NULL, reply_len, CALL_FLAGS) != -1)
		return OUTCOME_COMMITTED;
	if (tpgetlev() == 0)
		return OUTCOME_UNCOMMITTED;
	no_way(w, name, &ctl);
	return OUTCOME_NO_WAY;
}

static int	/* Its retry delay runs; if its retries are spent it is on the error queue by now, and not to be found. */
delete_request(struct worker *w)
{
	TPQCTL ctl;
	long len, retries;

	memset(&ctl, 0, sizeof ctl);
	ctl.flags = TPQGETBYMSGID | ATMIQ_QDELAYED;
	memcpy(ctl.msgid, w->r.ctl.msgid, sizeof ctl.msgid);
	return atmiq_dequeue(w->f->space, w->s->queue, &ctl, &w->data, &len, CALL_FLAGS, &retries);
}

void
outcome_failed(struct worker *w, long reply_len, long urcode)
{
	const TPQCTL *asked = &w->r.ctl;

	if (tpbegin((unsigned long)w->f->o->trantime_s, 0) == -1)
		return;		/* the message is tried again: nothing is lost */
	if (delete_request(w) == -1 ||
	    ((asked->flags & TPQFAILUREQ) && answer(w, asked->failurequeue, reply_len, urcode) == -1) || tpcommit(0) == -1)
		if (tpgetlev() == 1)
			tpabort(0);
}
