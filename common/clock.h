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
/* Tests only, of this process: */
void clock_shift_us(int64_t by);/* somebody sets the wall clock */
void clock_pass_us(int64_t by);	/* time passes, on both clocks */
void clock_stop(void);		/* the wall clock stands still, and only moves by these calls; clock_go() ends it */
void clock_go(void);

#endif
