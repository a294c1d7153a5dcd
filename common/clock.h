/*
 * clock - the only source of time.  Tests move it instead of sleeping.
 *
 * Units      int64_t microseconds.
 * Threads    All functions may be called from any thread.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

int64_t clock_now_us(void);	/* wall clock, since the epoch, plus what clock_shift_us() added */
int64_t clock_mono_us(void);	/* monotonic; for measuring and for deadlines inside one process */
void clock_shift_us(int64_t by);/* tests only: move clock_now_us() of this process */

#endif
