/*
 * reply - the answers of one batch: gathered while it runs, sent once it is on disk (D1), dropped when it is not.
 */
#ifndef TMQUEUE_REPLY_H
#define TMQUEUE_REPLY_H

#include "link.h"
#include "qspace.h"
#include "wire.h"

struct reply { struct link_peer to; struct wr head; struct qmsg *msg; bool waited; };	/* msg: its body goes with the reply; owned */
struct replies { struct reply *v; size_t n, cap; };
struct unsent { struct unsent *prev, *next; struct qmsg *msg; bool back; };	/* messages that were taken, and reached nobody */

int replies_init(struct replies *r, size_t cap);	/* 0 or -1; room for cap answers, so that adding cannot fail */
void replies_free(struct replies *r);

/* Add an answer.  msg may be NULL; it is taken over, and its attributes are put into *m.  waited: since long, so the caller may have left. */
void reply_queue(struct replies *r, const struct link_peer *to, struct wire_qreply *m, struct qmsg *msg, bool waited);
void reply_tx(struct replies *r, const struct link_peer *to, uint64_t reqid, int error, int outcome);
void reply_service(struct replies *r, const struct link_peer *to, uint64_t reqid, int error);	/* to a service call */

/* How an answer leaves; the signature of link_server_send(), so that a test can look at them instead. */
typedef int reply_send_fn(void *arg, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body);
typedef bool reply_left_fn(void *arg, const struct link_peer *to);	/* and whether a caller is gone: link_server_left() */
bool replies_any_left(const struct replies *r, reply_left_fn *left, void *arg);	/* one who waited, and is to get a message */
/* All; the list is empty afterwards.  *unsent gets the messages that can be put back. */
void replies_send(struct replies *r, reply_send_fn *send, void *arg, struct unsent **unsent);
void replies_drop(struct replies *r);

#endif
