/*
 * command - the commands of thresholds: run by the shell in a session of their own, never waited for.
 */
#ifndef TMQUEUE_COMMAND_H
#define TMQUEUE_COMMAND_H

#include <stdbool.h>
#include <sys/resource.h>

void command_files(const struct rlimit *files);	/* how many files they may open, when that is not what we may */

/* false: it cannot be run now, for COMMAND_MAX of them run already or the system refuses; logged once a minute. */
bool command_run(const char *queue, const char *cmd);
bool command_reap(void);	/* bury those that ended; true while some still run */

#define COMMAND_MAX 64

#endif
