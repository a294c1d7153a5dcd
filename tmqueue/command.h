/*
 * command - the commands of thresholds: run by the shell in a session of their own, never waited for.
 */
#ifndef TMQUEUE_COMMAND_H
#define TMQUEUE_COMMAND_H

#include <stdbool.h>

/* At most COMMAND_MAX at a time; beyond that it is logged and not run. */
void command_run(const char *queue, const char *cmd);
bool command_reap(void);	/* bury those that ended; true while some still run */

#define COMMAND_MAX 64

#endif
