#include "letters.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "clock.h"
#include "link.h"
#include "point.h"

/*
 * One group: is there a link?
 *
 *    NONE --- a letter, and its time ---> LOOKING --- found ---> UP
 *     ^                                      |                    |
 *     '------------ not found ---------------'---- broke ---------'
 */
#define AGAIN_US 100000			/* after a failure, doubled at each up to: */
#define AGAIN_MOST_US 10000000
#define AGAIN_URGENT_US 200000		/* while somebody waits for what does not stay */

struct letter_box {
	char group[WIRE_GROUP];
	enum { BOX_NONE, BOX_LOOKING, BOX_UP } state;
	bool full;			/* the link takes nothing now */
	int64_t look_us, again_us;	/* not before; by how much more next time */
	struct letter *waiting[2], *sent[2];	/* of them [1] stay */
	UT_hash_handle hh;
};

struct letters {
	char from[WIRE_GROUP];
	struct letter_way way;
	struct letter_box *boxes;
	struct letter *by_reqid;
	uint64_t reqid, posted;
	int64_t next_us;		/* of all boxes; what was due is found by a look at them */
	struct wr frame;
};

struct letters *
letters_new(const char *from)
{
	struct letters *ls = calloc(1, sizeof *ls);

	if (ls != NULL) {
		memcpy(ls->from, from, strnlen(from, sizeof ls->from - 1));
		ls->next_us = INT64_MAX;
	}
	return ls;
}

static void
soon(struct letters *ls, int64_t us)
{
	if (us < ls->next_us)
		ls->next_us = us;
}

void
letters_way(struct letters *ls, const struct letter_way *way)
{
	ls->way = *way;
	soon(ls, 0);
}

void
letters_free(struct letters *ls)
{
	struct letter_box *b, *next;

	if (ls == NULL)
		return;
	HASH_CLEAR(hh, ls->by_reqid);
	for (b = ls->boxes; b != NULL; b = next) {
		next = b->hh.next;
		HASH_DEL(ls->boxes, b);	// NOLINT: inside uthash
		free(b);
	}
	wr_free(&ls->frame);
	free(ls);
}

static struct letter_box *
box_find(struct letters *ls, const char *group)
{
	struct letter_box *b;

	HASH_FIND_STR(ls->boxes, group, b);
	return b;
}

static struct letter_box *	/* NULL: no memory */
box_of(struct letters *ls, const char *group)
{
	struct letter_box *b = box_find(ls, group);

	if (b != NULL || (b = calloc(1, sizeof *b)) == NULL)
		return b;
	memcpy(b->group, group, strnlen(group, sizeof b->group - 1));
	HASH_ADD_STR(ls->boxes, group, b);
	return b;
}

/* --- sending --- */

static void	/* For tests: before (0) and after (1) it is sent. */
point_of(const struct letter *l, int after)
{
	static const struct { uint8_t op; enum point send; } points[] = { { WIRE_TX_PREPARE, POINT_PREPARE_SEND },
		{ WIRE_TX_DECIDED, POINT_DECIDED_SEND }, { WIRE_TX_ABORT, POINT_UNDO_SEND }, { WIRE_TX_QUERY, POINT_QUERY_SEND } };

	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
		if (points[i].op == l->op)
			point((enum point)(points[i].send + after));
}

static int
letter_send(struct letters *ls, struct letter_box *b, struct letter *l)
{
	struct wire_txend m = { .reqid = ls->reqid + 1, .op = l->op, .tx = { .gtrid_len = l->id->len } };
	int rc;

	memcpy(m.tx.gtrid, l->id->gtrid, l->id->len);
	if (l->op == WIRE_TX_PREPARE || l->op == WIRE_TX_ABORT) {	/* who decides: whom to ask, and that it is allowed to */
		m.groups.n = 1;
		memcpy(m.groups.name[0], ls->from, sizeof ls->from);
	}
	if (l->op == WIRE_TX_ABORT && l->why != NULL)
		m.why = *l->why;
	wire_txend_encode(&ls->frame, &m);
	if (!wr_ok(&ls->frame)) {
		wr_free(&ls->frame);
		return LINK_TIMEOUT;
	}
	point_of(l, 0);
	if ((rc = ls->way.send(ls->way.arg, b->group, ls->frame.p, ls->frame.len)) == LINK_OK)
		point_of(l, 1);
	return rc;
}

static void
box_flush(struct letters *ls, struct letter_box *b)
{
	struct letter *l;

	while (b->state == BOX_UP && !b->full && (l = b->waiting[b->waiting[0] == NULL]) != NULL) {
		if (letter_send(ls, b, l) != LINK_OK) {	/* is the link gone, the way says so too, but not in the midst of this */
			b->full = true;
			return;
		}
		l->reqid = ++ls->reqid;
		l->at = LETTER_SENT;
		DL_DELETE(b->waiting[l->stays], l);
		DL_APPEND(b->sent[l->stays], l);
		HASH_ADD(hh, ls->by_reqid, reqid, sizeof l->reqid, l);
	}
}

static void
letter_unsend(struct letters *ls, struct letter *l)	/* its answer, should it come, is nobody's */
{
	HASH_DEL(ls->by_reqid, l);	// NOLINT: inside uthash
	DL_DELETE(l->box->sent[l->stays], l);
	l->at = LETTER_IDLE;
}

static void	/* Somebody is to be told something, and there is no link: make one, if it is time. */
box_look(struct letters *ls, struct letter_box *b, int64_t now)
{
	if (now < b->look_us || ls->way.find == NULL) {
		soon(ls, b->look_us);
		return;
	}
	b->state = BOX_LOOKING;
	ls->way.find(ls->way.arg, b->group);
}

int
letter_post(struct letters *ls, struct letter *l, const char *group, uint8_t op, bool stays)
{
	struct letter_box *b = box_of(ls, group);

	letter_cancel(ls, l);
	if (b == NULL)
		return -1;
	l->box = b;
	l->op = op;
	l->stays = stays;
	l->at = LETTER_WAITS;
	l->posted = ++ls->posted;
	DL_APPEND(b->waiting[stays], l);
	if (!stays && b->look_us > clock_mono_us() + AGAIN_URGENT_US)
		b->look_us = clock_mono_us() + AGAIN_URGENT_US;
	if (b->state == BOX_UP)
		box_flush(ls, b);
	else if (b->state == BOX_NONE)
		box_look(ls, b, clock_mono_us());
	return 0;
}

void
letter_cancel(struct letters *ls, struct letter *l)
{
	if (l->at == LETTER_SENT)
		letter_unsend(ls, l);
	else if (l->at == LETTER_WAITS)
		DL_DELETE(l->box->waiting[l->stays], l);
	l->at = LETTER_IDLE;
}

const char *
letter_group(const struct letter *l)
{
	return l->box->group;
}

void
letters_hurry(struct letters *ls, const char *group)
{
	struct letter_box *b = box_find(ls, group);

	if (b == NULL)
		return;
	b->look_us = 0;
	b->again_us = 0;
	soon(ls, 0);
}

/* --- from the way --- */

static void	/* It is to be looked for again, later each time. */
box_later(struct letters *ls, struct letter_box *b)
{
	int64_t us = b->waiting[0] != NULL && b->again_us > AGAIN_URGENT_US ? AGAIN_URGENT_US : b->again_us;

	b->look_us = clock_mono_us() + us;
	b->again_us = b->again_us == 0 ? AGAIN_US : b->again_us < AGAIN_MOST_US / 2 ? 2 * b->again_us : AGAIN_MOST_US;
	soon(ls, b->look_us);
}

/* Those that do not stay fail.  Their owners take back and post others meanwhile; what is posted now is not meant. */
static void
box_fail(struct letters *ls, struct letter_box *b, bool sent)
{
	uint64_t last = ls->posted;
	struct letter *l;

	while ((l = sent ? b->sent[0] : b->waiting[0]) != NULL && (sent || l->posted <= last)) {
		letter_cancel(ls, l);
		l->owner->failed(l, sent);
	}
}

void
letters_found(struct letters *ls, const char *group)
{
	struct letter_box *b = box_find(ls, group);

	if (b == NULL)
		return;
	b->state = BOX_UP;
	b->full = false;
	box_flush(ls, b);
}

void
letters_not_found(struct letters *ls, const char *group, bool nobody)
{
	struct letter_box *b = box_find(ls, group);

	if (b == NULL || b->state != BOX_LOOKING)
		return;
	b->state = BOX_NONE;
	if (b->again_us == 0)
		b->again_us = AGAIN_US;
	box_later(ls, b);
	if (nobody)
		box_fail(ls, b, false);
}

void
letters_broke(struct letters *ls, const char *group)
{
	struct letter_box *b = box_find(ls, group);
	struct letter *l;

	if (b == NULL)
		return;
	b->state = BOX_NONE;
	box_later(ls, b);
	while ((l = b->sent[1]) != NULL) {
		letter_unsend(ls, l);
		l->at = LETTER_WAITS;
		DL_APPEND(b->waiting[1], l);
	}
	box_fail(ls, b, true);
}

void
letters_room(struct letters *ls, const char *group)
{
	struct letter_box *b = box_find(ls, group);

	if (b == NULL)
		return;
	b->full = false;
	box_flush(ls, b);
}

void
letters_reply(struct letters *ls, const char *group, const struct wire_txreply *m)
{
	struct letter_box *b = box_find(ls, group);
	struct letter *l;

	HASH_FIND(hh, ls->by_reqid, &m->reqid, sizeof m->reqid, l);
	if (b == NULL || l == NULL || l->box != b)
		return;		/* it was taken back meanwhile */
	if (m->error == TPENOENT) {	/* it stands by only: who serves the group is elsewhere */
		letters_broke(ls, group);
		ls->way.drop(ls->way.arg, group);
		return;
	}
	b->again_us = 0;
	letter_unsend(ls, l);
	l->owner->answered(l, m->error, m->outcome);
}

bool
letters_await(const struct letters *ls)
{
	return ls->by_reqid != NULL;
}

/* --- time --- */

static void
box_turn(struct letters *ls, struct letter_box *b, int64_t now)
{
	if (b->state != BOX_NONE || (b->waiting[0] == NULL && b->waiting[1] == NULL))
		return;
	if (ls->way.find != NULL)
		box_look(ls, b, now);
	else
		box_fail(ls, b, false);
}

void
letters_turn(struct letters *ls, int64_t now)
{
	struct letter_box *b, *next;

	if (now < ls->next_us)
		return;
	ls->next_us = INT64_MAX;
	for (b = ls->boxes; b != NULL; b = next) {
		next = b->hh.next;
		box_turn(ls, b, now);
	}
}

int64_t
letters_next_event(const struct letters *ls)
{
	return ls->next_us;
}
