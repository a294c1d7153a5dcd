/*
 * clock - see clock.h.
 */
#include <stdatomic.h>
#include <time.h>

#include "clock.h"

static _Atomic int64_t shift_us;

static int64_t
read_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
clock_now_us(void)
{
	return read_us(CLOCK_REALTIME) + atomic_load_explicit(&shift_us, memory_order_relaxed);
}

int64_t
clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

void
clock_shift_us(int64_t by)
{
	atomic_fetch_add(&shift_us, by);
}
