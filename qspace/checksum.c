/*
 * checksum - Berkeley DB's checksum of pages and log records, faster.
 *
 * Its function goes byte by byte (h = 33 * h + c) and takes a fifth of the processor at 1 KiB a message and half of a
 * recovery. The library calls it through its symbol table, so the one of a program that exports the same name
 * (-rdynamic) is used instead.  Same result for every input; where it is not exported, nothing but speed is lost.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "qspace_impl.h"

#define P1 33u
#define P2 (P1 * P1)
#define P4 (P2 * P2)
#define P8 (P4 * P4)
#define P16 (P8 * P8)
#define P32 (P16 * P16)
#define P64 (P32 * P32)
#define P128 (P64 * P64)

#if defined(__x86_64__)
enum { STEP = 32, BLOCK = 4 * STEP };

/*
 * Pairs of bytes become 33 a + b in 16 bits, pairs of pairs 33^2 a + b in 32, exactly; so each 32 bytes are eight numbers, for
 * four bytes each, and number i of the j-th 32 bytes goes to a sum of its own, which advances by 33^128 a block.
 */
__attribute__((target("avx2"))) static uint32_t
sum_steps(const uint8_t *p, size_t steps)
{
	const __m256i pair = _mm256_set1_epi16(1 << 8 | P1), quad = _mm256_set1_epi32(1 << 16 | P2);
	const __m256i step = _mm256_set1_epi32((int)P128), to_next = _mm256_set1_epi32((int)P32);
	const __m256i weight = _mm256_set_epi32(1, (int)P4, (int)P8, (int)(P8 * P4), (int)P16, (int)(P16 * P4),
	    (int)(P16 * P8), (int)(P16 * P8 * P4));
	__m256i s[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256() }, all;
	uint32_t lane[8], h = 0;

	for (; steps >= 4; steps -= 4, p += BLOCK)
		for (int j = 0; j < 4; j++) {
			__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(p + STEP * j));

			b = _mm256_madd_epi16(_mm256_maddubs_epi16(b, pair), quad);
			s[j] = _mm256_add_epi32(_mm256_mullo_epi32(s[j], step), b);
		}
	all = s[0];
	for (int j = 1; j < 4; j++)
		all = _mm256_add_epi32(_mm256_mullo_epi32(all, to_next), s[j]);
	for (; steps > 0; steps--, p += STEP) {
		__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)p);

		b = _mm256_madd_epi16(_mm256_maddubs_epi16(b, pair), quad);
		all = _mm256_add_epi32(_mm256_mullo_epi32(all, to_next), b);
	}
	_mm256_storeu_si256((__m256i *)(void *)lane, _mm256_mullo_epi32(all, weight));
	for (int i = 0; i < 8; i++)
		h += lane[i];
	return h;
}
#endif

/* Four bytes a step: one multiplication after the other is what takes the time. */
static uint32_t
sum_on(uint32_t h, const uint8_t *p, size_t n)
{
	for (; n >= 4; n -= 4, p += 4)
		h = h * P4 + (p[0] * (P2 * P1) + p[1] * P2 + p[2] * P1 + p[3]);
	for (; n > 0; n--)
		h = h * P1 + *p++;
	return h;
}

uint32_t
checksum_of(const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
	size_t steps = n / STEP;

	if (steps > 0 && __builtin_cpu_supports("avx2"))
		return sum_on(sum_steps(p, steps), p + STEP * steps, n % STEP);
#endif
	return sum_on(0, p, n);
}

__attribute__((visibility("default"))) uint32_t
__ham_func4(DB *db, const void *key, uint32_t len)
{
	(void)db;
	return checksum_of(key, len);
}
