/*
 * point - see point.h.  No lock and no memory: it is called from anywhere.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "point.h"
#include "ulog.h"

const char *point_dir;
static char dir[PATH_MAX - 64];

#define POINT_NAME(name, role) #name,
static uint64_t noted;		/* the batch that runs: its points X_FLUSH */
_Static_assert(POINT_COUNT <= 64, "a bit for each");

static const char *const names[] = { POINTS(POINT_NAME) };

__attribute__((constructor)) static void
look(void)
{
	const char *env = secure_getenv("ATMIQ_TEST_POINT");

	if (env == NULL || *env != '/' || strlen(env) >= sizeof dir)
		return;
	memcpy(dir, env, strlen(env) + 1);
	point_dir = dir;
}

static void
act(enum point p, const char *action, int sig)
{
	char file[PATH_MAX], other[PATH_MAX];

	snprintf(file, sizeof file, "%s/%s.%s", dir, names[p], action);
	snprintf(other, sizeof other, "%s/hit.%s", dir, names[p]);
	if (rename(file, other) == 0) {
		raise(sig);		/* of this thread: it does not take a step more */
		return;
	}
	snprintf(other, sizeof other, "%s/%s.%s.1", dir, names[p], action);
	if (rename(other, file) != 0 && errno != ENOENT)
		ulog_debug("test point %s: %s", names[p], strerror(errno));
}

void
point_reached(enum point p)
{
	int before = errno;

	act(p, "kill", SIGKILL);
	act(p, "stop", SIGSTOP);
	errno = before;
}

void
point_note(enum point flush)
{
	if (point_dir != NULL)
		noted |= UINT64_C(1) << flush;
}

static bool	/* does an answer follow, that has a point? */
is_answered(enum point flush)
{
	return flush == POINT_PREPARE_FLUSH || flush == POINT_DECIDED_FLUSH || flush == POINT_ABORT_FLUSH;
}

void
point_batch(enum point_step step)
{
	if (noted == 0)
		return;
	for (int p = 0; p < POINT_COUNT; p++)
		if ((noted & UINT64_C(1) << p) != 0 && (step != POINT_ANSWERED || is_answered((enum point)p)))
			point_reached((enum point)(p + (int)step));
	if (step == POINT_ANSWERED)
		noted = 0;
}

void
point_batch_undone(void)
{
	noted = 0;
}
