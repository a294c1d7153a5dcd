/*
 * quiet - log lines that somebody else's behaviour can repeat without end: each text at most once a second, or a minute.
 */
#ifndef TMQUEUE_QUIET_H
#define TMQUEUE_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "ulog.h"

static inline bool
quiet_pass(int64_t *next_us, int64_t every_us)
{
	int64_t now = clock_mono_us();

	if (now < *next_us)
		return false;
	*next_us = now + every_us;
	return true;
}

/* One limit for each place in the source. */
#define quiet_log_every(us, ...) do { \
	static int64_t next_us_; \
	if (quiet_pass(&next_us_, us)) \
		ulog(__VA_ARGS__); \
} while (0)
#define quiet_log(...) quiet_log_every(1000000, __VA_ARGS__)
#define quiet_log_each_minute(...) quiet_log_every(60000000, __VA_ARGS__)

#endif
