/*
 * What the link_*.c files share.  For this folder only.
 */
#ifndef LINK_IMPL_H
#define LINK_IMPL_H

#include <netinet/in.h>
#include <sys/types.h>

#include "link.h"
#include "zmtp.h"

/* How long, and how much.  DESIGN.md of this folder says why. */
#define LINK_SPIN_US 100		/* a deadline nearer than this is polled for, not slept for */
#define LINK_HEARTBEAT_MS 500		/* who is silent for so long is asked; link_silence_ms more, and it is gone */
#define LINK_TRUST_MS 32000		/* each answer doubles that, up to this */
#define LINK_PEER_MESSAGES 16384	/* under way for one peer, each direction; */
#define LINK_PEER_BYTES (256u << 20)	/* and their bytes, unless it is one message alone */
#define LINK_MAX_MESSAGE (1ll << 30)	/* a frame */
#define LINK_STRAIGHT 16384		/* what is longer is read to where it stays, without a copy */

extern int link_silence_ms;		/* link_client.c: 9,500, or what a test has no time for */

/* --- link_fork.c --- */
unsigned link_generation(void);		/* grows with each fork(), in the child */

/* --- link_address.c --- */
struct addrinfo;
int link_address_check(const char *endpoint);	/* 0, or -1 and errno: EINVAL, or ENAMETOOLONG for a socket address */
/* The addresses of what follows tcp://, to be freed with freeaddrinfo(); NULL: there are none. */
struct addrinfo *link_address_tcp(const char *where, bool passive);

/* --- link_msg.c --- */
struct link_who { pid_t pid; uid_t uid; struct sockaddr_in6 address; };	/* a peer: pid 0: at this address, if it has one */

struct link_frames {			/* lives in link_msg.opaque */
	uint8_t *head, *body;		/* malloc'ed, or NULL */
	struct link_who who;
	uint8_t small[200];		/* a short head */
};
_Static_assert(sizeof(struct link_frames) <= sizeof(((struct link_msg *)0)->opaque), "link_msg.opaque is too small");

static inline struct link_frames *
link_frames(struct link_msg *m)
{
	return (struct link_frames *)(void *)m->opaque;	/* cppcheck-suppress ctuuninitvar; an address, no value */
}

void link_msg_none(struct link_msg *m);	/* an empty one */
void link_who_name(const struct link_who *who, char *out, size_t size);
void link_body_drop(const struct link_body *body);	/* release without sending; NULL is fine */

/* --- link_stream.c: the bytes of one connection become messages --- */
struct link_piece { uint8_t *p; size_t n, cap; };	/* a frame, as far as it is here */
struct link_stream {
	enum { STREAM_GREETING, STREAM_HEADER, STREAM_FRAME } at;
	bool ready;			/* set by obey(): messages may come; before, commands alone */
	bool complete;			/* head and body are a whole message: take it before more is fed */
	uint8_t flags;			/* of the frame that is coming in */
	uint64_t left;			/* of it */
	int parts;			/* frames of the message that are whole */
	struct link_piece *into;	/* where the frame goes; NULL: it is skipped, or a command */
	struct link_piece head, body;
	size_t n_scratch;
	uint8_t scratch[ZMTP_COMMAND_MAX];	/* the beginning of a greeting or a header; a command */
	uint8_t small[sizeof(((struct link_frames *)0)->small)];	/* a short head */
	int (*obey)(struct link_stream *s, const uint8_t *command, size_t n);	/* -1 ends the connection */
};
void link_stream_init(struct link_stream *s, int (*obey)(struct link_stream *, const uint8_t *, size_t));
void link_stream_done(struct link_stream *s);
/* Use n bytes, or fewer when a message is complete.  How many were used; -1: they are nonsense, or no memory. */
ssize_t link_stream_feed(struct link_stream *s, const uint8_t *p, size_t n);
/* Where bytes may be read to directly, when much of a frame is still to come.  Returns how many, 0: feed them. */
size_t link_stream_room(struct link_stream *s, uint8_t **p);
int link_stream_got(struct link_stream *s, size_t n);	/* so many were read there.  -1: no memory for the rest */
/* Hand the complete message over.  LINK_FAIL: it is not a header and at most a body; it is dropped; *parts says. */
int link_stream_take(struct link_stream *s, struct link_msg *m, int *parts);

/* --- sending, for both ends: link_wait.c --- */
struct iovec;
int link_iov_advance(struct iovec *v, int count, size_t n);	/* takes n bytes off the front; entries left, moved to the front */

/* --- link_wait.c --- */
struct pollfd;
/* Sleep until one of n descriptors is readable (pause_for: POLLIN or POLLOUT), the deadline, or look_us.  LINK_OK: look again; LINK_TIMEOUT: the
 * deadline has passed, or wake_fd is readable; LINK_INTR.  fds has room for one more. */
int link_pause(struct pollfd *fds, int n, int64_t deadline_us, int64_t look_us, int wake_fd);
int link_pause_for(struct pollfd *fds, int n, short events, int64_t deadline_us, int64_t look_us, int wake_fd);

/* --- link_server.c, link_client.c: for link_wait() --- */
int link_server_fd(const struct link_server *s);
bool link_server_ready(struct link_server *s);
int64_t link_server_next_look(struct link_server *s);	/* when link_server_look() wants to be called */
void link_server_asleep(struct link_server *s, bool yes);	/* its thread is about to wait for it; or it woke */
bool link_client_ready(struct link_client *c);

#endif
