/*
 * link - sockets between processes.  The only code that knows their protocol, which is ZeroMQ's.
 *
 * A server binds one endpoint and answers many clients; a client connects to one server and may have many requests in
 * flight.  A message is a header frame and at most one body frame.  Endpoints are "ipc://PATH" or "tcp://HOST:PORT".
 *
 * Death of a peer is noticed at once when its process dies (the socket closes).  A server that hangs is noticed within
 * 10 s by a client that waits in link_client_recv() or link_wait() (it sends a PING, which a busy server answers all the
 * same), and within 42 s by one that had waited for long; a client that hangs is not, it just does not read.
 *
 * Nothing is queued for a server that is not there: a send waits for the connection up to its deadline, so LINK_TIMEOUT
 * or LINK_GONE from a send means surely not sent.  Once LINK_GONE came from a receive, all that was in flight has an
 * unknown outcome and the client must be closed and opened anew.
 *
 * Threads    One thread at a time may use an object.  Different objects may be used by different threads.  A server's
 *            link_server_send(), _left(), _hold() and _release() may be called by any thread at any time; nobody is woken for it.
 * Fork       A child must not touch objects made before the fork (it may close them: nothing is sent); new ones work.
 *            Connections of clients are closed in it, so that the parent's death is seen whatever the child does.
 * Signals    A signal ends a wait with LINK_INTR.
 * Deadlines  clock_mono_us() values; LINK_FOREVER waits for ever, 0 or the past does not wait.
 */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LINK_OK = 0, LINK_TIMEOUT = -1, LINK_GONE = -2, LINK_INTR = -3,
	LINK_FAIL = -4 };		/* errno says why */
#define LINK_FOREVER INT64_MAX

struct link_peer { uint8_t n; uint8_t id[31]; };	/* who sent a request; good for replies while it is connected */

struct link_msg {			/* one received message; not to be copied: head and body may point into it */
	struct link_peer peer;		/* servers only */
	const uint8_t *head; size_t head_len;
	const uint8_t *body; size_t body_len;
	bool has_body;
	int64_t came_us;		/* servers only: when it was read, if that was not just now, clock_mono_us(); else 0 */
	uint64_t opaque[40];		/* link's own: what head and body point into, and who sent it */
};
void link_msg_done(struct link_msg *m);		/* gives the memory back; harmless twice */
void link_msg_move(struct link_msg *to, struct link_msg *from);	/* the frames go along; `from` is empty then */
/* Who sent it, for a log line: "process 123 of user 1000", or an address. */
void link_msg_peer_name(const struct link_msg *m, char *out, size_t size);

/* A body to send: freed by `release(p, hint)`, from any thread, once it is no longer needed (also when the send fails).
 * release NULL: the bytes are copied. */
struct link_body { const void *p; size_t n; void (*release)(void *p, void *hint); void *hint; };

/* --- server --- */
struct link_server;
/* Bind; ipc: a leftover socket file is replaced, and the file gets mode `perm`.  LINK_FAIL: errno; ENAMETOOLONG when
 * the path does not fit a socket address (107 bytes), EADDRINUSE when a living process listens there. */
int link_server_open(const char *endpoint, unsigned perm, struct link_server **out);
/* The next request.  LINK_TIMEOUT when none came by the deadline, or when wake_fd (-1: none) became readable. */
int link_server_recv(struct link_server *s, struct link_msg *m, int64_t deadline_us, int wake_fd);
/* Another one that is there already: of what link_server_recv() found, which looks again only after requests had to be kept. */
int link_server_recv_rest(struct link_server *s, struct link_msg *m);
/* For who lets requests wait after they were received: a held one counts against its sender like one that was not, so that no
 * more is read of a sender than link keeps for it.  Release it before link_msg_done(). */
void link_server_hold(struct link_server *s, const struct link_msg *m);
void link_server_release(struct link_server *s, const struct link_msg *m);
/* Answer.  A peer that is gone or does not read: LINK_GONE, no byte of the message reaches it, nobody waits.  body NULL: no
 * body frame. */
int link_server_send(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body);
/* The same; *owed: a part of what it was sent stays in our memory, where it is lost if this process dies. */
int link_server_send_told(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body, bool *owed);
/* Has it closed its connection, or died?  Looks, and sends nothing. */
bool link_server_left(struct link_server *s, const struct link_peer *peer);
/* Is a part of what was sent to it still in our memory, where it is lost if this process dies?  Nothing is owed to who left. */
bool link_server_owes(struct link_server *s, const struct link_peer *peer);
/* The socket file is looked at once a second while the server waits or receives, and made again when somebody took it
 * away; connections that are there go on.  This looks now. */
void link_server_look(struct link_server *s, bool at_once);
/* Nobody new, and no request more from those who are connected: who sends one gets LINK_GONE from the send, so he knows that it was
 * not sent.  What came before is still received, and can be answered.  (tcp: it may be lost, as with a close.) */
void link_server_no_more(struct link_server *s);
void link_server_close(struct link_server *s);	/* waits at most 0.5 s for replies under way; removes the socket file */

/* --- client --- */
struct link_client;
int link_client_open(const char *endpoint, struct link_client **out);	/* does not wait for the server */
int link_client_send(struct link_client *c, const void *head, size_t head_len, const struct link_body *body,
    int64_t deadline_us);
/* The same for a caller whose patience changes once a part of the message is on its way: the rest has until rest_us, as
 * long as the server takes some of it every stall_us, and after a signal no longer than signal_us (0: signals do not
 * count).  A message that stays a part is lost with its connection, and surely not served: LINK_TIMEOUT or LINK_INTR. */
struct link_haste { int64_t begin_us, rest_us, stall_us, signal_us; };
int link_client_send_by(struct link_client *c, const void *head, size_t head_len, const struct link_body *body,
    const struct link_haste *haste);
int link_client_recv(struct link_client *c, struct link_msg *m, int64_t deadline_us);
void link_client_close(struct link_client *c);	/* never waits; NULL is fine */
pid_t link_client_pid(const struct link_client *c);	/* the process that listens at the other end; 0: over a network, or not connected */
/* The other end closed the connection, and all that came from it was received: not true of one that was given up here. */
bool link_client_ended(const struct link_client *c);
/* For who waits by a poll(2) of its own: connect now, LINK_OK once the server has greeted.  Then the descriptor tells when to call
 * link_client_recv() with no deadline until it answers LINK_TIMEOUT; it has to be called four times a second while an answer is
 * due, or a hung server is not noticed. */
int link_client_connect(struct link_client *c, int64_t deadline_us);
int link_client_fd(const struct link_client *c);	/* -1: not connected */

/* Wait until one of the servers or clients has something to receive (or a client lost its server), or wake_fd is
 * readable, or the deadline.  ready[i] is set for each.  Returns how many are ready (0: deadline or wake_fd), or
 * LINK_INTR. */
struct link_wait { struct link_server *server; struct link_client *client; bool ready; };
int link_wait(struct link_wait *w, size_t n, int64_t deadline_us, int wake_fd);

/* The run directory: checked (exists, ours or root's to share, mode as perm allows), or made.  0, or -1 and errno. */
int link_rundir_make(const char *dir, unsigned perm);
int link_rundir_check(const char *dir, unsigned long owner_uid);

#endif
