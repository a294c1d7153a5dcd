/*
 * link - life across fork(): a child must not touch what its parent made.  The generation tells it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "link_impl.h"

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

#ifdef __SANITIZE_THREAD__
/* A child may open servers, so make threads, of its own. */
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *
__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#endif
