/*
 * notify - telling systemd, or whoever else started us so, how we are: the protocol of sd_notify(3).
 *
 * A datagram of lines NAME=value to the socket that NOTIFY_SOCKET names, by path or, after an @, in the abstract namespace.
 * systemd's documentation offers the protocol for implementation without libsystemd, and says that it is stable.
 *
 * Errors     None: who asked to be told and does not listen is not told.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd;				/* -1: nobody wants to know */
	struct sockaddr_un to;
	socklen_t to_len;
	int64_t watchdog_us;		/* between two signs of life; 0: none are wanted */
	int64_t next_us;		/* clock_mono_us() of the next one */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: they are not for our children. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
void notify_say(struct notify *n, const char *lines);	/* READY=1 and so on, apart by newlines */
void notify_tick(struct notify *n);			/* WATCHDOG=1 when it is due */
int64_t notify_next_due(const struct notify *n);

#endif
