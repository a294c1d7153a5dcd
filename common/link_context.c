/*
 * link - ZeroMQ contexts, their life across fork(), and socket options.
 *
 * Clients share one context, made on first use and never terminated: termination is where ZeroMQ waits for unsent data,
 * and an exit must not wait.  A server has a context of its own, so that its closing can wait for its replies and for
 * nothing else.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/un.h>

#include "link_impl.h"

#define MAX_SOCKETS 16384	/* of a context; memory is used as they are made */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *shared, *orphan;	/* orphan: the parent's, in a child; unusable, kept reachable */
static _Atomic unsigned generation;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void
in_child(void)
{
	if (shared != NULL)
		orphan = shared;
	shared = NULL;
	atomic_fetch_add(&generation, 1);
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void
link_survive_fork(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

unsigned
link_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

void *
link_context_new(void)
{
	void *ctx = zmq_ctx_new();

	if (ctx != NULL)
		zmq_ctx_set(ctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
	return ctx;
}

void *
link_context_shared(void)
{
	void *ctx;

	pthread_mutex_lock(&lock);
	if (shared == NULL)
		shared = link_context_new();
	ctx = shared;
	pthread_mutex_unlock(&lock);
	return ctx;
}

int
link_set_int(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof value);
}

/* No ZMQ_HEARTBEAT_TTL: both ends are ours and ping for themselves; it would only be a second timer for the same
 * thing. */
int
link_set_heartbeat(void *socket)
{
	if (link_set_int(socket, ZMQ_HEARTBEAT_IVL, LINK_HEARTBEAT_MS) != 0)
		return -1;
	return link_set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, LINK_SILENCE_MS);
}

int
link_socket_fd(void *socket)
{
	int fd;
	size_t size = sizeof fd;

	return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) != 0 ? -1 : fd;
}

int
link_check_path(const char *endpoint)
{
	size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (strncmp(endpoint, "ipc://", 6) == 0 && strlen(endpoint + 6) > max) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

#ifdef __SANITIZE_THREAD__
/* libzmq is not built for the thread sanitizer, which would take its lock-free queues for races.  And a child may
 * make sockets, so threads, of its own. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void)
{
	return "called_from_lib:libzmq.so\n";
}

__attribute__((visibility("default"))) const char *
__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#endif
