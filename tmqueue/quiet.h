/*
 * quiet - log lines that somebody else's behaviour can repeat without end: each text at most once a second.
 */
#ifndef TMQUEUE_QUIET_H
#define TMQUEUE_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "ulog.h"

static inline bool
quiet_pass(int64_t *next_us)
{
	int64_t now = clock_mono_us();

	if (now < *next_us)
		return false;
	*next_us = now + 1000000;
	return true;
}

/* One limit for each place in the source. */
#define quiet_log(...) do { \
	static int64_t next_us_; \
	if (quiet_pass(&next_us_)) \
		ulog(__VA_ARGS__); \
} while (0)

#endif
