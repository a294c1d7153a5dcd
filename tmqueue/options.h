/*
 * options - the command line of TMQUEUE: what BBL puts in front, servopts, and after -- its own.
 */
#ifndef TMQUEUE_OPTIONS_H
#define TMQUEUE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

#define TMQUEUE_FUNCTION "TMQUEUE"	/* the one service function that is built in */
#define TMQUEUE_TIMEOUT 30		/* seconds, without -t */
#define TMQUEUE_MAX_NAMES 64

struct options {
	long grpno, srvid;		/* -g -i; -1: not given */
	const char *ulogpfx;		/* -U, or NULL; these point into argv */
	const char *outfile, *errfile;	/* -o -e */
	int nice;			/* -n */
	bool hangup;			/* -h: a hangup ends the server */
	bool list;			/* -v: print the services and end */
	size_t n_names;
	char name[TMQUEUE_MAX_NAMES][WIRE_NAME];	/* to advertise; never empty */
	long timeout_s;			/* -- -t */
};

/* 0, or -1 with a line in `why`.  Values that Tuxedo would ignore are ignored and logged. */
int options_parse(int argc, char **argv, struct options *o, char *why, size_t why_size);

#endif
