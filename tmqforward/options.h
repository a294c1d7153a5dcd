/*
 * options - what stands after -- in the CLOPT of TMQFORWARD.
 *
 * Bad numbers are no error: the default is used, as Tuxedo does, and a line of the log says so.
 */
#ifndef TMQFORWARD_OPTIONS_H
#define TMQFORWARD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define FORWARD_MAX_QUEUES 256
#define FORWARD_NAME 128		/* queue names, NUL included */
#define FORWARD_TRANTIME 60		/* -t, seconds */
#define FORWARD_IDLE 30			/* -i, seconds */
#define FORWARD_MAX_WORKERS 128		/* -w */

struct options {
	size_t n_queues;
	char queue[FORWARD_MAX_QUEUES][FORWARD_NAME];	/* -q */
	long trantime_s, idle_s;
	bool exit_when_empty;		/* -e */
	bool delete_failed;		/* -d */
	bool notran;			/* -n */
	bool noreply;			/* -f */
	long pause_s;			/* -f s */
	long blocktime_s;		/* -b; 0: not given */
	size_t workers;			/* -w */
	bool ordered;			/* -o, where -w is more than 1 */
	bool burn;			/* -r: a service that is not there uses up retries */
	size_t n_warnings;
	char warning[8][160];		/* lines for the log */
};

/* argv[0] is the program.  0; or -1 with a line in `why`: no queue, or a name that is none. */
int options_parse(int argc, char **argv, struct options *o, char *why, size_t why_size);

#endif
