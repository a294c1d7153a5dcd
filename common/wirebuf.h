/*
 * wirebuf - bounded reads and growing writes of integers (big-endian), bytes and strings.
 *
 * A read past the end gives zeroes, marks the reader bad, and it stays bad: check once, with rd_clean_end().
 * A write that finds no memory marks the writer bad; check once, with wr_ok().
 */
#ifndef WIREBUF_H
#define WIREBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rd { const uint8_t *p; size_t left; bool bad; };

uint8_t rd_u8(struct rd *r);
uint16_t rd_u16(struct rd *r);
uint32_t rd_u32(struct rd *r);
uint64_t rd_u64(struct rd *r);
void rd_copy(struct rd *r, void *to, size_t n);
const uint8_t *rd_view(struct rd *r, size_t n);		/* points into the buffer; NULL when bad or n is 0 */
/* A string of u16 length without NUL; copied and terminated into `to` of `size` bytes; too long or holding a NUL:
 * bad. */
void rd_str(struct rd *r, char *to, size_t size);
char *rd_strdup(struct rd *r);		/* a string of u32 length; malloc'ed; NULL when bad */
bool rd_clean_end(const struct rd *r);	/* nothing went wrong and nothing is left over */

struct wr { uint8_t *p; size_t len, cap; bool bad; };	/* zero-initialise; free with wr_free() */

void wr_u8(struct wr *w, uint8_t v);
void wr_u16(struct wr *w, uint16_t v);
void wr_u32(struct wr *w, uint32_t v);
void wr_u64(struct wr *w, uint64_t v);
void wr_bytes(struct wr *w, const void *from, size_t n);
void wr_str(struct wr *w, const char *s);	/* u16 length, bytes */
void wr_longstr(struct wr *w, const char *s);	/* u32 length, bytes; read by rd_strdup() */
void wr_reset(struct wr *w);			/* empty again, memory kept */
void wr_free(struct wr *w);
bool wr_ok(const struct wr *w);

#endif
