/*
 * line - option -o: messages of a queue are under way side by side, and end one after the other.
 *
 * A worker enters the line of its queue with its message, in the order in which messages were taken (one at a time takes, see
 * pool.c).  Who is first may end.  When it fails the line is broken: all behind it go back uncounted, nobody takes until the last
 * of them has, and then the one that failed goes alone until it is through, or is not the first of its queue any more: on the
 * error queue, or in its retry delay.
 */
#include <string.h>
#include <utlist.h>

#include "forward.h"

static void
tell_all(struct source *s)
{
	for (struct worker *w = s->line; w != NULL; w = w->next)
		pthread_cond_signal(&w->cond);
}

void
line_enter(struct worker *w)
{
	struct source *s = w->s;

	if (!w->f->o->ordered)
		return;
	DL_APPEND(s->line, w);
	if (s->alone && memcmp(s->failing, w->r.ctl.msgid, sizeof s->failing) != 0)
		s->alone = false;
}

static bool
is_in(const struct worker *w)
{
	return w->prev != NULL;		/* the first one's is the last one */
}

void
line_leave(struct worker *w)
{
	struct source *s = w->s;

	if (!is_in(w))
		return;
	DL_DELETE(s->line, w);
	w->prev = w->next = NULL;
	if (s->line == NULL)
		s->broken = false;
	else
		pthread_cond_signal(&s->line->cond);
}

bool
line_intact(struct worker *w)
{
	bool intact;

	pthread_mutex_lock(&w->f->lock);
	intact = !w->s->broken;
	pthread_mutex_unlock(&w->f->lock);
	return intact;
}

bool
line_await(struct worker *w)
{
	struct source *s = w->s;
	bool first;

	pthread_mutex_lock(&w->f->lock);
	while (is_in(w) && s->line != w && !s->broken)
		pthread_cond_wait(&w->cond, &w->f->lock);
	first = !s->broken;
	pthread_mutex_unlock(&w->f->lock);
	return first;
}

void
line_break(struct worker *w)
{
	struct source *s = w->s;

	if (!w->f->o->ordered)
		return;
	pthread_mutex_lock(&w->f->lock);
	s->broken = true;
	tell_all(s);
	while (s->taking > 0)		/* or it would be taken again at once by who is about to take the next one */
		pthread_cond_wait(&w->f->quiet, &w->f->lock);
	pthread_mutex_unlock(&w->f->lock);
}

void
line_alone(struct worker *w)
{
	if (!w->f->o->ordered)
		return;
	pthread_mutex_lock(&w->f->lock);
	w->s->alone = true;
	memcpy(w->s->failing, w->r.ctl.msgid, sizeof w->s->failing);
	pthread_mutex_unlock(&w->f->lock);
}
