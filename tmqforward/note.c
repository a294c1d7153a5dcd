#include "clock.h"
#include "forward.h"
#include "say.h"

#define LOST_US INT64_C(5000000)	/* one that is restarted, or booted later, is back by then */

static bool	/* says nothing about the service or the way there */
is_silent(enum turn turn)
{
	return turn == TURN_EMPTY || turn == TURN_BACK;
}

void
note(struct source *s, enum turn turn, int error)
{
	enum turn before = s->last;

	if (is_silent(turn) || (turn == before && error == s->error))
		return;
	s->last = turn;
	s->error = error;
	switch (turn) {
	case TURN_FAILED:
		say("QM_CAT:1624: WARN: service %s failed: %s; its message goes back to the queue", s->queue, tpstrerror(error));
		break;
	case TURN_NOBODY:
		say("QM_CAT:1625: WARN: nobody offers service %s: the messages of queue %s wait", s->queue, s->queue);
		break;
	case TURN_NOQUEUE:
		say("QM_CAT:1681: WARN: there is no queue %s in this queue space; it is served once it is created", s->queue);
		break;
	case TURN_TROUBLE:
		say("QM_CAT:1626: WARN: queue %s cannot be served now: %s (%d); it is tried again", s->queue,
		    error < 0 ? "diagnostic" : tpstrerror(error), error);
		break;
	default:
		if (before == TURN_NOBODY || before == TURN_NOQUEUE || before == TURN_TROUBLE)
			say("QM_CAT:1627: INFO: queue %s is served again", s->queue);
	}
}

void
note_manager(struct forwarder *f, int error)
{
	int64_t now = clock_mono_us();

	if (error == 0) {
		if (f->lost_told)
			say("QM_CAT:1711: INFO: the queues are served again: a TMQUEUE of this queue space answers");
		f->lost_us = 0;
		f->lost_told = false;
	} else if (f->lost_us == 0)
		f->lost_us = now;
	else if (!f->lost_told && now - f->lost_us >= LOST_US) {
		f->lost_told = true;
		say("QM_CAT:1710: WARN: no TMQUEUE of this queue space answers (%s): all queues wait until one does",
		    tpstrerror(error));
	}
}
