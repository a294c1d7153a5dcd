/*
 * server - a TMQUEUE process: its socket, its bulletin board agent, the space it owns or stands by for.
 */
#ifndef TMQUEUE_SERVER_H
#define TMQUEUE_SERVER_H

#include "boot.h"
#include "options.h"

struct server;
/* Bind, register, own the space or stand by, advertise, ready.  0, or -1 after a log line. */
int server_open(const struct options *o, const struct boot *b, struct server **out);
int server_run(struct server *s);	/* until told to stop; 0, or -1 after a log line when it cannot go on */
void server_stop_soon(void);		/* async-signal-safe */
void server_close(struct server *s, int status);	/* answers those who wait, closes the space; NULL is fine */

#endif
