/*
 * What the conn*.c files share.  For these files only.
 */
#ifndef CONN_IMPL_H
#define CONN_IMPL_H

#include "conn.h"

/* --- conn.c --- */
struct peer *peer_find(struct conn *c, const char *endpoint);

/* --- conn_load.c: which server is the idle one, and what became of a request whose server died --- */
/*
 * A server of a group that joined already, or else any while there is room for one more: a transaction that stays on one
 * branch ends with one message.  Among these the one with the least load, in turn among equals.  One that ends comes last.
 * only ("": any): of that group alone.  NULL: there is none that the request may go to.
 */
struct target *target_choose(struct conn *c, struct service *s, const struct wire_groups *joined, const char *only);
/* Just before a request is sent to t; and when it was not.  What was counted is told to the second. */
struct slots_ref target_count(struct conn *c, struct target *t);
void target_uncount(struct conn *c, const struct target *t, struct slots_ref counted);
void peer_recognise(struct conn *c, struct peer *p, const struct target *t);	/* it is connected: which process is it? */
void pendings_lost(struct conn *c, struct peer *gone);	/* all that it had */

/* --- conn_again.c --- */
void kept_free(struct pending *p);
bool pending_refused(struct conn *c, struct pending *p, const struct link_msg *answer);

#endif
