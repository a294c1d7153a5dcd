/*
 * zmtp - the few bytes of ZMTP 3.1 (ZeroMQ's protocol, RFC 37/ZMTP) that our clients and servers speak: NULL security,
 * socket types DEALER and ROUTER.  Frames only; no sockets here.
 *
 *     greeting   64 bytes both ways, then each side's READY command
 *     frame      flags; length, 1 byte or, with LONG, 8 big-endian; that many bytes
 */
#ifndef ZMTP_H
#define ZMTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZMTP_MORE = 1, ZMTP_LONG = 2, ZMTP_COMMAND = 4 };
enum { ZMTP_GREETING = 64, ZMTP_HEADER_MAX = 9, ZMTP_HELLO_MAX = 128, ZMTP_COMMAND_MAX = 512 };

/* Greeting and READY, as the first bytes of a connection.  to: ZMTP_HELLO_MAX bytes.  Returns their number. */
size_t zmtp_hello(uint8_t *to);			/* a client's, DEALER */
size_t zmtp_hello_server(uint8_t *to);		/* a server's, ROUTER */
bool zmtp_is_asker(const uint8_t *ready, size_t n);	/* a READY of n bytes says that it is of a type that asks a ROUTER */
bool zmtp_greeting_good(const uint8_t greeting[ZMTP_GREETING]);	/* of a peer that we can talk to */

size_t zmtp_header(uint8_t to[ZMTP_HEADER_MAX], uint8_t flags, size_t length);	/* LONG is set as needed.  Returns its size */
/* The header at p, of which n bytes are there.  Returns its size, 0: not all of it is there yet, -1: not a header. */
int zmtp_header_read(const uint8_t *p, size_t n, uint8_t *flags, uint64_t *length);

enum zmtp_command { ZMTP_UNKNOWN, ZMTP_READY, ZMTP_ERROR, ZMTP_PING, ZMTP_PONG };
enum zmtp_command zmtp_command(const uint8_t *body, size_t n);
size_t zmtp_ping(uint8_t to[32]);	/* a whole frame.  Returns its size */
/* The answer to a PING of n bytes, a whole frame; 0: it is not one that can be answered. */
size_t zmtp_pong(uint8_t to[32], const uint8_t *ping, size_t n);

#endif
