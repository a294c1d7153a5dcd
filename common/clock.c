/*
 * clock - see clock.h.
 */
#include <stdatomic.h>
#include <time.h>

#include "clock.h"

static _Atomic int64_t shift_us, passed_us;
static _Atomic int64_t stopped_us;	/* 0: it goes */

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
	int64_t stopped = atomic_load_explicit(&stopped_us, memory_order_relaxed);

	return (stopped != 0 ? stopped : read_us(CLOCK_REALTIME)) + atomic_load_explicit(&shift_us, memory_order_relaxed);
}

int64_t
clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC) + atomic_load_explicit(&passed_us, memory_order_relaxed);
}

void
clock_shift_us(int64_t by)
{
	atomic_fetch_add(&shift_us, by);
}

void
clock_pass_us(int64_t by)
{
	atomic_fetch_add(&shift_us, by);
	atomic_fetch_add(&passed_us, by);
}

void
clock_stop(void)
{
	stopped_us = read_us(CLOCK_REALTIME);
}

void
clock_go(void)
{
	stopped_us = 0;
}
