/*
 * Any bytes, through every decoder of wire.h.  What one accepts, its encoder must write again byte by byte: there is one
 * encoding of each struct, so nothing can hide in a frame.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define TRY(kind, done) do { \
	static struct wire_##kind m; \
	if (wire_##kind##_decode(p, n, &m) == 0) { \
		wire_##kind##_encode(&w, &m); \
		assert(wr_ok(&w) && w.len == n && memcmp(w.p, p, n) == 0); \
		done; \
	} \
} while (0)

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct wr w;
	enum wire_kind kind;
	uint64_t reqid;

	wire_peek(p, n, &kind, &reqid);
	TRY(enqueue, (void)0);
	TRY(dequeue, (void)0);
	TRY(qreply, (void)0);
	TRY(qwait, (void)0);
	TRY(cancel, (void)0);
	TRY(txend, (void)0);
	TRY(txreply, (void)0);
	TRY(call, (void)0);
	TRY(reply, (void)0);
	TRY(member, (void)0);
	TRY(admin, document_free(&m.doc));
	TRY(adminreply, (document_free(&m.doc), free(m.text)));
	return 0;
}
