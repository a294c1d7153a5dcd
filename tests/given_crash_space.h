/*
 * given_crash_space - everything that a queue space can do, while its servers and clients are killed and writes fail.
 *
 * Three kinds of clients, each a program of its own (this one, run again):
 *     model   has a queue to itself and knows what must be on it (given_crash_model.c); never killed
 *     crowd   many on shared queues, with and without TPQWAIT; killed at any moment; a log of one line before and after
 *             each call, which the oracle reads (given_crash_crowd.c)
 *     gauge   drives a queue over its threshold and back, and counts
 */
#ifndef GIVEN_CRASH_SPACE_H
#define GIVEN_CRASH_SPACE_H

#include "given_control.h"
#include "given_crash.h"

struct crash_queue { const char *name, *order; bool out_of_order, expires; int retries, delay_s; };
#define CRASH_MODELS 8
extern const struct crash_queue crash_queues[CRASH_MODELS];

#define CROWD 8			/* at a time; each has a number of its own, which no other one had before */
#define CROWD_MAX 4000
#define CROWD_CORRIDS 3

struct control *control_open(const char *file);	/* NULL: it cannot be mapped */
bool failing_writes_are_there(char *path, size_t size);	/* the library to load into TMQUEUE; not beside a sanitizer */
int crash_model_client(int number, const char *log, const char *control_file);
int crash_crowd_client(int number, const char *log, const char *control_file);
int crash_gauge_client(const char *log, const char *control_file);

/* What the crowd's logs and what is left on their queues say.  0: nothing is wrong; else how much, said on stderr. */
int crash_crowd_verdict(struct given *g, int clients, long killed);

/* The whole: for so many seconds; faults: writes and flushes of TMQUEUE fail now and then. */
void crash_space(double seconds, bool faults);
double crash_seconds(double otherwise);		/* CRASH_MINUTES of the environment */

#endif
