/*
 * tx - which branch a request belongs to.
 *
 * Remembers the transactions that joined here until their initiator ends them, so that one that timed out, and was
 * rolled back, is not opened a second time by a late request.
 *
 * Batches    What a batch opened or ended counts once txs_commit() was called; txs_abort() takes it back.
 */
#ifndef TMQUEUE_TX_H
#define TMQUEUE_TX_H

#include "link.h"
#include "qspace.h"
#include "wire.h"

struct txs;

/* started_us: when this process took the space.  Transactions begun before it, and not known to the space, are refused. */
struct txs *txs_new(struct qspace *qs, int64_t started_us);
void txs_free(struct txs *t);

/* error 0: well; else a TPE code.  stranger: there is no branch here that the caller would have to end. */
struct verdict { int error, diagnostic; bool doomed, stranger; };

struct branch_id tx_id(const struct wire_tx *tx);

/* The branch of a request (`m`) that may be the first of its transaction here; NULL with the reason in *v. */
struct branch *txs_join(struct txs *t, const struct wire_tx *tx, const struct link_msg *m, struct verdict *v);
/* The branch of a transaction that must be here already; NULL when it is not. */
struct branch *txs_find(struct txs *t, const struct wire_tx *tx);
/* A QME or QMETYPE code as the caller will see it; dooms b (may be NULL) where the transaction cannot go on. */
struct verdict verdict_of(int rc, struct branch *b);

/*
 * What a transaction is asked to do (INTERFACES.md, TXEND), but for a commit over several groups and for QUERY, which are the
 * coordinator's.  0: *a is the answer.  Else the batch is dead.
 */
struct tx_answer { int error, outcome; };
int txs_end(struct txs *t, const struct wire_txend *m, const struct link_msg *from, struct tx_answer *a);
/* The same after the batch of its own failed: what can be said about the transaction now. */
struct tx_answer txs_end_failed(struct txs *t, const struct wire_txend *m);
void txs_ended(struct txs *t, const struct branch_id *id);	/* in a batch: its end came another way */

void txs_commit(struct txs *t);
void txs_abort(struct txs *t);

#endif
