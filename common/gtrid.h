/*
 * gtrid - a transaction's id as people and tools see it.
 */
#ifndef GTRID_H
#define GTRID_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define GTRID_HEX (2 * WIRE_GTRID_MAX + 1)

/* The three numbers before a line of the user log, `gtrid xN xN xN:`, and of tmadmin's printtrans.  Of an id that came by XA: of
 * the first bytes of its global part. */
void gtrid_words(const uint8_t *gtrid, size_t len, unsigned long words[3]);
void gtrid_to_hex(const uint8_t *gtrid, size_t len, char out[GTRID_HEX]);	/* as qmadmin and the ADMIN operations write it */
int gtrid_from_hex(const char *s, uint8_t gtrid[WIRE_GTRID_MAX], uint8_t *len);	/* 0 or -1 */

#endif
