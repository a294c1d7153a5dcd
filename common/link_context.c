/*
 * link - ZeroMQ contexts of servers, life across fork(), and socket options.
 *
 * Each server has a context of its own, so that its closing can wait for its replies and for nothing else.  A child
 * must not touch its parent's: the generation tells it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/un.h>

#include "link_impl.h"

#define MAX_SOCKETS 16384	/* of a context; memory is used as they are made */

static _Atomic unsigned generation;

static void
in_child(void)
{
	atomic_fetch_add(&generation, 1);
}

__attribute__((constructor)) static void
link_survive_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
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

int
link_set_int(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof value);
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
