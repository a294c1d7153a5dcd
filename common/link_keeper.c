/*
 * link - the keeper of a server: a thread that does what is due on its connections while the server's own thread is
 * busy elsewhere, for a service may compute for a minute.  It answers PINGs, greets, sends on what a slow reader did not
 * take, and keeps requests until they are asked for.
 *
 * The server's thread does all of that itself whenever it receives, sends or waits, without any other thread waking up.
 * So the keeper sleeps until there is something, leaves the server's thread a moment to come, and only then looks.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "link_server_impl.h"

enum { A_MOMENT_MS = 5 };

static bool	/* Until there is something on a connection, or `ms` have passed.  True: it is time to end. */
wait_for(struct link_server *s, bool connections, int ms)
{
	struct pollfd fds[2] = { { .fd = s->keeper_stop, .events = POLLIN }, { .fd = s->ep, .events = POLLIN } };

	(void)poll(fds, connections ? 2 : 1, ms);
	return fds[0].revents != 0;
}

static bool
is_away(const struct link_server *s, unsigned visits)
{
	return atomic_load(&s->visits) == visits && !atomic_load(&s->asleep);
}

static bool	/* One step.  False: there was nothing to do. */
step(struct link_server *s, unsigned visits)
{
	struct link_msg m;
	bool more = false;

	pthread_mutex_lock(&s->lock);
	if (is_away(s, visits)) {
		link_peers_house(s);
		more = link_server_take(s, &m) == LINK_OK && link_server_keep(s, &m) == 0;
	}
	pthread_mutex_unlock(&s->lock);
	return more;
}

static void *
run(void *arg)
{
	struct link_server *s = arg;
	unsigned visits;

	while (!wait_for(s, true, -1)) {
		visits = atomic_load(&s->visits);
		if (wait_for(s, false, A_MOMENT_MS))
			break;
		while (is_away(s, visits)) {
			while (step(s, visits))
				;
			if (wait_for(s, true, -1) || wait_for(s, false, 1))	/* at most a thousand times a second */
				return NULL;
		}
	}
	return NULL;
}

int
link_keeper_start(struct link_server *s)
{
	sigset_t all, old;
	int rc;

	if ((s->keeper_stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		return -1;
	sigfillset(&all);	/* signals are for the program's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&s->keeper, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->has_keeper = rc == 0;
	errno = rc;
	return rc == 0 ? 0 : -1;
}

void
link_keeper_stop(struct link_server *s)
{
	uint64_t one = 1;

	if (!s->has_keeper)
		return;
	while (write(s->keeper_stop, &one, sizeof one) < 0 && errno == EINTR)
		;
	pthread_join(s->keeper, NULL);
	s->has_keeper = false;
}
