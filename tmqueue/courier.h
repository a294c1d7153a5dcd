/*
 * courier - the way of letters: connections to other queue managers.
 *
 * Messages are sent and read by the server's own thread, without waiting.  Where a group's queue manager is, and the connection
 * to it, is found by a thread, which BBL and connect(2) may keep waiting; it starts when the first letter is to be sent.
 */
#ifndef TMQUEUE_COURIER_H
#define TMQUEUE_COURIER_H

#include "letters.h"

struct courier;
/* stop_fd: readable when the server is to wake for other reasons; it makes courier_fd() readable too. */
struct courier *courier_new(const char *bbl_endpoint, int stop_fd);	/* NULL, and errno */
void courier_free(struct courier *c);		/* waits for the thread: at most about two seconds; NULL is fine */
void courier_serve(struct courier *c, struct letters *ls);	/* carries these from now on; NULL: none */
int courier_fd(const struct courier *c);	/* readable: something came */
void courier_turn(struct courier *c);		/* hand over what came; letters' owners may be called */
int64_t courier_next_event(const struct courier *c);	/* clock_mono_us(): courier_turn() wants to be called */

#endif
