/*
 * letters - what is asked of other queue managers, by their groups' names: one TXEND each, and one answer.
 *
 * A letter is its owner's memory.  It is on its way from letter_post() until its owner hears of it, once, by one of the two
 * calls of struct letter_owner, or takes it back with letter_cancel().
 *
 * How letters leave is the way's (courier.c; a test by hand), which tells of what comes back.  Nothing here waits for anybody.
 */
#ifndef TMQUEUE_LETTERS_H
#define TMQUEUE_LETTERS_H

#include <uthash.h>

#include "qspace.h"
#include "wire.h"

struct letters;
struct letter;

struct letter_owner {
	void (*answered)(struct letter *l, int error, int outcome);
	/* Of one that does not stay: nobody serves its group (sent false), or the link broke after it was sent: it may have been read. */
	void (*failed)(struct letter *l, bool sent);
};

struct letter {
	const struct letter_owner *owner;	/* set by its owner, these three */
	const struct branch_id *id;
	const struct wire_why *why;		/* of an abort; NULL: not told */
	uint8_t op;				/* the rest is set by letter_post() */
	bool stays;
	struct letter_box *box;
	enum { LETTER_IDLE, LETTER_WAITS, LETTER_SENT } at;
	uint64_t reqid, posted;
	struct letter *prev, *next;		/* in its box: those that wait, or those sent */
	UT_hash_handle hh;			/* by reqid, once it is sent */
};

/* What carries them.  `send` never waits: LINK_OK; LINK_TIMEOUT: not now, letters_room() will be said; else the link is gone. */
struct letter_way {
	void *arg;
	int (*send)(void *arg, const char *group, const void *head, size_t n);
	void (*find)(void *arg, const char *group);	/* make a link; letters_found() or letters_not_found() follows */
	void (*drop)(void *arg, const char *group);	/* of no use: letters_broke() was done */
};

struct letters *letters_new(const char *from);		/* the group that sends them; NULL: no memory */
void letters_way(struct letters *ls, const struct letter_way *way);	/* from now on; before, nobody can be found */
void letters_free(struct letters *ls);			/* owners have taken theirs back, or will not touch them any more */

/*
 * Send `op` to the group, now or as soon as there is a link.  stays: until it is answered, over breaks of the link, for ever;
 * else its owner hears of the first failure (not from within this call).  -1: no memory.
 */
int letter_post(struct letters *ls, struct letter *l, const char *group, uint8_t op, bool stays);
void letter_cancel(struct letters *ls, struct letter *l);	/* harmless when it is not on its way; a late answer is dropped */
const char *letter_group(const struct letter *l);		/* to whom it was posted last */
void letters_hurry(struct letters *ls, const char *group);	/* it was heard of: look for it now */

/* --- from the way --- */
void letters_found(struct letters *ls, const char *group);
void letters_not_found(struct letters *ls, const char *group, bool nobody);	/* nobody (not from within find()): none is being started either */
void letters_broke(struct letters *ls, const char *group);
void letters_room(struct letters *ls, const char *group);	/* it takes more now */
void letters_reply(struct letters *ls, const char *group, const struct wire_txreply *m);
bool letters_await(const struct letters *ls);			/* some were sent, and are not answered */

/* --- time: clock_mono_us() --- */
void letters_turn(struct letters *ls, int64_t now);		/* owners may be called */
int64_t letters_next_event(const struct letters *ls);

#endif
