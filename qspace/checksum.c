/*
 * checksum - Berkeley DB's checksum of pages and log records, faster.
 *
 * Its function goes byte by byte (h = 33 * h + c) and takes a fifth of the processor at 1 KiB a message and half of a
 * recovery. The library calls it through its symbol table, so the one of a program that exports the same name
 * (-rdynamic) is used instead.  Same result for every input; where it is not exported, nothing but speed is lost.
 */
#include <string.h>

#include "qspace_impl.h"

typedef uint32_t lanes __attribute__((vector_size(32)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));

#define P1 33u
#define P2 (P1 * P1)
#define P4 (P2 * P2)
#define P8 (P4 * P4)
#define P16 (P8 * P8)
#define P32 (P16 * P16)

/* Four times eight sums side by side; byte i of 32 goes to sum i, and each sum advances by 33^32. */
static inline __attribute__((always_inline)) uint32_t
sum_blocks(const uint8_t *p, size_t blocks)
{
	const lanes weight = { P4 * P2 * P1, P4 * P2, P4 * P1, P4, P2 * P1, P2, P1, 1 };
	lanes s[4] = { { 0 }, { 0 }, { 0 }, { 0 } }, all;
	uint32_t h = 0;

	for (; blocks > 0; blocks--, p += 32)
		for (int i = 0; i < 4; i++) {
			bytes8 b;
			memcpy(&b, p + 8 * i, sizeof b);
			s[i] = s[i] * P32 + __builtin_convertvector(b, lanes);
		}
	all = (s[0] * (P16 * P8) + s[1] * P16 + s[2] * P8 + s[3]) * weight;
	for (int i = 0; i < 8; i++)
		h += all[i];
	return h;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t
sum_blocks_avx2(const uint8_t *p, size_t blocks)
{
	return sum_blocks(p, blocks);
}
#endif

static uint32_t
sum_blocks_any(const uint8_t *p, size_t blocks)
{
	return sum_blocks(p, blocks);
}

uint32_t
checksum_of(const uint8_t *p, size_t n)
{
	uint32_t h = 0;

	if (n >= 64) {
		size_t blocks = n / 32;
#if defined(__x86_64__)
		h = __builtin_cpu_supports("avx2") ? sum_blocks_avx2(p, blocks) : sum_blocks_any(p, blocks);
#else
		h = sum_blocks_any(p, blocks);
#endif
		p += 32 * blocks;
		n -= 32 * blocks;
	}
	for (; n > 0; n--)
		h = h * P1 + *p++;
	return h;
}

__attribute__((visibility("default"))) uint32_t
__ham_func4(DB *db, const void *key, uint32_t len)
{
	(void)db;
	return checksum_of(key, len);
}
