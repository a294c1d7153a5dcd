#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "interrupt.h"

static volatile sig_atomic_t came;

static void
on_interrupt(int sig)
{
	(void)sig;
	came = 1;
}

void
interrupt_catch(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	sigemptyset(&sa.sa_mask);	/* no SA_RESTART: waits are to end */
	sigaction(SIGINT, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}

bool
interrupt_came(void)
{
	return came != 0;
}

void
interrupt_forget(void)
{
	came = 0;
}

ssize_t
interruptible_read(int fd, void *buf, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	sigset_t block, before;
	int rc;

	/* The signal is let in by ppoll() alone, so that it cannot fall between the look and the wait. */
	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	pthread_sigmask(SIG_BLOCK, &block, &before);
	if (came) {
		rc = -1;
		errno = EINTR;
	} else
		rc = ppoll(&p, 1, NULL, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc < 0) {
		errno = EINTR;
		return -1;
	}
	return read(fd, buf, n);
}
