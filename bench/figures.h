/*
 * figures - what benchmarks measure with: time, percentiles, and what the bare disk does.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- times of many operations, of which percentiles are wanted --- */

struct times { float *us; size_t n, cap; double seconds; };	/* seconds: what they took together, by the wall clock */

static inline void
times_add(struct times *t, double us)
{
	if (t->n == t->cap) {
		size_t cap = t->cap == 0 ? 4096 : 2 * t->cap;
		float *more = realloc(t->us, cap * sizeof *more);
		if (more == NULL)
			return;
		t->us = more;
		t->cap = cap;
	}
	t->us[t->n++] = (float)us;
}

static inline void
times_add_all(struct times *t, const struct times *more)
{
	for (size_t i = 0; i < more->n; i++)
		times_add(t, more->us[i]);
}

static inline void
times_clear(struct times *t)
{
	t->n = 0;
	t->seconds = 0;
}

static inline int
times_compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static inline double	/* sorts */
times_percentile(struct times *t, int percent)
{
	if (t->n == 0)
		return 0;
	qsort(t->us, t->n, sizeof *t->us, times_compare);
	return t->us[(t->n - 1) * (size_t)percent / 100];
}

static inline double
times_rate(const struct times *t)
{
	return t->seconds > 0 ? (double)t->n / t->seconds : 0;
}

/* --- the bare disk --- */

/*
 * Overwrite `bytes`, rounded up to whole pages, of a file whose blocks were written before, and flush it, again and again
 * for `seconds`: what no log can beat that flushes each write.  The percentiles are in *t.
 */
static inline void
disk_probe(const char *dir, size_t bytes, double seconds, struct times *t)
{
	enum { PAGE = 4096, FILE_BYTES = 4 << 20 };
	char path[4200];
	static char zeroes[1 << 20];
	double start, before;
	off_t at = 0;
	int fd;

	times_clear(t);
	bytes = bytes == 0 ? PAGE : (bytes + PAGE - 1) / PAGE * PAGE;
	if (bytes > sizeof zeroes)
		bytes = sizeof zeroes;
	snprintf(path, sizeof path, "%s/probe.%ld", dir, (long)getpid());
	if ((fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
		return;
	(void)unlink(path);
	for (off_t i = 0; i < FILE_BYTES; i += (off_t)sizeof zeroes)
		if (pwrite(fd, zeroes, sizeof zeroes, i) < 0)
			break;
	fsync(fd);
	start = now_s();
	while ((before = now_s()) - start < seconds) {
		if (pwrite(fd, zeroes, bytes, at) < 0 || fdatasync(fd) != 0)
			break;
		times_add(t, (now_s() - before) * 1e6);
		at = at + (off_t)(2 * bytes) > FILE_BYTES ? 0 : at + (off_t)bytes;
	}
	t->seconds = now_s() - start;
	close(fd);
}

static inline double
bench_seconds(double otherwise)
{
	const char *s = getenv("BENCH_SECONDS");

	return s != NULL && atof(s) > 0 ? atof(s) : otherwise;
}

#endif
