/*
 * What the files of link's server know of each other.  All but the keeper's few atomics is under the lock.
 */
#ifndef LINK_SERVER_IMPL_H
#define LINK_SERVER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "link_impl.h"

enum { INPUT = 65536, EVENTS = 256 };

struct out {			/* what a peer has not read yet */
	struct out *next;
	struct link_body body;	/* sent behind the bytes; n 0: none */
	size_t sent, n;		/* of bytes and body together; of bytes */
	uint8_t bytes[];
};

struct peer {
	struct link_stream in;	/* first: obey() finds us by it */
	struct link_server *s;
	int fd;
	uint32_t slot, generation;	/* of the slot: who comes later in the same one is another */
	struct link_who who;
	bool deaf;		/* nothing can be sent any more; what it sent before is still read */
	bool out_watched, in_unwatched;	/* what epoll is told, beside the usual */
	struct out *out, **out_end;
	size_t owed, owed_bytes;	/* messages it has not read, and their bytes */
	size_t untaken, untaken_bytes;	/* messages in the server's backlog */
	int64_t since_us;
	struct peer *prev, *next;	/* those that did not say READY yet, in order of arrival */
};

struct backlog { struct backlog *next; struct link_msg m; };	/* received, and taken by nobody yet */

struct link_server {
	pthread_mutex_t lock;
	int ep, listener;	/* listener -1: not bound */
	unsigned generation;	/* of the process: see link_generation() */

	struct slot { struct peer *p; uint32_t generation, next_free; } *slot;
	uint32_t n_slots, first_free, n_peers, max_peers;
	struct peer *greeting, *greeting_last;	/* those that did not say READY yet */
	int64_t accept_us;	/* no connection is taken before: there was no descriptor for it; 0: all is well */

	struct epoll_event events[EVENTS];
	int n_events, event;	/* seen; the next one to look at */
	bool fresh;		/* nothing was kept from before the last look at the connections */
	struct peer *reading;	/* whose bytes are in input */
	size_t from, to;
	struct backlog *backlog, **backlog_end;

	pthread_t keeper;	/* see link_keeper.c */
	bool has_keeper;
	int keeper_stop;	/* eventfd */
	atomic_uint visits;	/* of the server's own thread */
	atomic_uint asleep;	/* it waits, and will look by itself */

	int64_t complained_us;	/* when the last line about nonsense was written */
	unsigned long unsaid;	/* dropped since without a line */
	char endpoint[256];
	const char *path;	/* of the socket file, in endpoint; NULL: none */
	dev_t dev;		/* and which file it was */
	ino_t ino;
	unsigned perm;
	uid_t dir_owner;	/* of the directory it was made in */
	int64_t look_us, touch_us;	/* when that is due; look_us LINK_FOREVER: there is no file */
	bool no_more;		/* link_server_no_more() */
	bool lost;		/* the file is gone and could not be made again yet: was said */
	uint8_t input[INPUT];
};

/* --- link_listen.c: the socket that is listened at, and its file --- */
int link_listen_open(struct link_server *s);	/* 0, or -1 and errno */
void link_listen_close(struct link_server *s);	/* removes the file, unless it is another's by now */
void link_listen_look(struct link_server *s, bool at_once);

/* --- link_peer.c: connections --- */
void link_peers_accept(struct link_server *s);
void link_peers_house(struct link_server *s);	/* what time brings: those who never greet, descriptors that are free again */
int64_t link_peers_due(const struct link_server *s);	/* when that is; LINK_FOREVER */
void link_peers_close(struct link_server *s);	/* all */
struct peer *link_peer_at(struct link_server *s, uint32_t slot, uint32_t generation);	/* NULL: it left */
void link_peer_close(struct peer *p);
void link_peer_watch(struct peer *p);	/* tell epoll what we want to know */
int link_peer_flush(struct peer *p);	/* sends what it takes.  -1: it is deaf from now on */
/* Send, or keep what it does not take now.  Takes the body over.  LINK_OK, LINK_GONE, LINK_FAIL. */
int link_peer_send(struct peer *p, const void *head, size_t head_len, const struct link_body *body);

/* --- link_server.c, for the keeper; the lock is held --- */
int link_server_take(struct link_server *s, struct link_msg *m);	/* the next message, without waiting */
int link_server_keep(struct link_server *s, struct link_msg *m);	/* into the backlog */

/* --- link_keeper.c: what goes on while the server's thread is busy --- */
int link_keeper_start(struct link_server *s);	/* 0, or -1 and errno */
void link_keeper_stop(struct link_server *s);

#endif
