/*
 * serve - TMRQ at work: callers on one socket, members of the set on the other, the queue between them.
 *
 * Callers have their own socket so that they can be kept waiting when too much waits already, while members are still heard.
 */
#ifndef TMRQ_SERVE_H
#define TMRQ_SERVE_H

#include "ask.h"
#include "queue.h"

struct serve {
	const struct ubb *ubb;
	struct ubb_set set;
	struct queue queue;
	struct link_server *callers, *members;
	struct ask ask;
	struct wr out;
	int epfd, sigfd;		/* every member's pidfd and sigfd: a death wakes the loop */
	int64_t tick_us, alone_us;	/* when the next tick is due; since when there is no member, 0: there are some */
	unsigned turns;
	uint64_t strange;		/* messages dropped as nonsense */
	bool end;
};

int serve_open(struct serve *s, const struct ubb *u, const struct ubb_set *set, const char *bbl);	/* 0, or -1: logged */
void serve_turn(struct serve *s, int64_t deadline_us);	/* wait, and do what is to be done */
void serve_close(struct serve *s);

/* --- the two sides, for serve.c and fuzzing: one message each, which is taken over or left for link_msg_done() --- */
void caller_hear(struct serve *s, struct link_msg *m);
void caller_answer(struct serve *s, const struct request *r, int error);
void member_hear(struct serve *s, struct link_msg *m);
void member_lost(struct serve *s, struct member *m);
void hand_out(struct serve *s);		/* what can be given is given */
void strange(struct serve *s, const struct link_msg *m);

#endif
