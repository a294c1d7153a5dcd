/*
 * What the link_*.c files share.  For this folder only.
 */
#ifndef LINK_IMPL_H
#define LINK_IMPL_H

#include <zmq.h>

#include "link.h"

/* How long, and how much.  DESIGN.md of this folder says why. */
#define LINK_SPIN_US 100		/* a deadline nearer than this is polled for, not slept for */
#define LINK_HEARTBEAT_MS 500		/* a hung peer is noticed after the two together at the latest */
#define LINK_SILENCE_MS 1400
#define LINK_COPY_MAX 8192		/* a reply's bodies up to here are copied, larger ones are lent to ZeroMQ */
#define LINK_HWM 16384			/* messages under way for one peer, each direction */
#define LINK_PEER_BYTES (256u << 20)	/* bytes of large bodies under way to one peer, unless it is one body alone */
#define LINK_MAX_MESSAGE (1ll << 30)

/* --- link_context.c --- */
void *link_context_new(void);		/* NULL and errno */
unsigned link_generation(void);		/* grows with each fork(), in the child */
int link_set_int(void *socket, int option, int value);	/* 0, or -1 and errno */
int link_socket_fd(void *socket);	/* readable when the socket wants attention; -1 and errno */
int link_check_path(const char *endpoint);	/* 0, or -1 and errno when the path fits no socket address */

/* --- link_msg.c --- */
struct link_frames {			/* lives in link_msg.opaque */
	zmq_msg_t head, body;
	uint64_t live;			/* head and body are to be closed */
};
_Static_assert(sizeof(struct link_frames) <= sizeof(((struct link_msg *)0)->opaque), "link_msg.opaque is too small");

static inline struct link_frames *
link_frames(struct link_msg *m)
{
	return (struct link_frames *)(void *)m->opaque;	/* cppcheck-suppress ctuuninitvar; an address, no value */
}

/* The frames after the peer's name.  LINK_OK; LINK_TIMEOUT: nothing there; LINK_FAIL with errno EPROTO: something
 * else was there, read whole, *parts frames; the caller says so. */
int link_frames_recv(void *socket, struct link_msg *m, int *parts);

struct link_debts;			/* bytes of large bodies under way, by peer; one thread's */
struct link_debts *link_debts_new(void);
void link_debts_free(struct link_debts *d);	/* bodies may still be under way */
/* Make the body's frame, taking the body over.  d NULL: not counted.  LINK_GONE: the peer has too much already. */
int link_body_frame(zmq_msg_t *frame, const struct link_body *body, struct link_debts *d, const struct link_peer *to);
void link_body_drop(const struct link_body *body);	/* release without sending; NULL is fine */

/* --- link_wait.c --- */
struct pollfd;
/* Sleep until one of n descriptors is readable (pause_for: POLLIN or POLLOUT), the deadline, or look_us.  LINK_OK: look again; LINK_TIMEOUT: the
 * deadline has passed, or wake_fd is readable; LINK_INTR.  fds has room for one more. */
int link_pause(struct pollfd *fds, int n, int64_t deadline_us, int64_t look_us, int wake_fd);
int link_pause_for(struct pollfd *fds, int n, short events, int64_t deadline_us, int64_t look_us, int wake_fd);

/* --- link_server.c, link_client.c: for link_wait() --- */
int link_server_fd(const struct link_server *s);
bool link_server_ready(struct link_server *s);
int64_t link_server_next_look(const struct link_server *s);	/* when link_server_look() wants to be called */
int link_client_fd(const struct link_client *c);	/* -1: not connected */
bool link_client_ready(struct link_client *c);

#endif
