/*
 * txquery - what did the coordinator of a transaction decide?  For administrators' tools, before they end a branch by hand.
 */
#ifndef TXQUERY_H
#define TXQUERY_H

#include <stdint.h>

#include "wire.h"

/*
 * Ask who serves `..GROUP`, as the bulletin board at `bbl` knows it.  WIRE_OUT_COMMITTED, WIRE_OUT_ROLLED_BACK (which is presumed where
 * nothing is known), WIRE_OUT_UNDECIDED; WIRE_OUT_NONE: no answer came, or one that tells nothing.
 */
enum wire_outcome tx_query(const char *bbl, const char *group, const uint8_t *gtrid, uint8_t len, int64_t timeout_ms);
/* Where a group's transactions are ended.  0, or -1: nobody offers it. */
int tx_endpoint(const char *bbl, const char *group, int64_t timeout_ms, char *out, size_t size);

#endif
