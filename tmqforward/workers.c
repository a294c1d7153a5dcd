/*
 * workers - the forwarder with its threads: made, run, ended.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "atmiq_ext.h"
#include "forward.h"

#define BUFFER 4096

static int
worker_init(struct forwarder *f, struct worker *w)
{
	w->f = f;
	pthread_cond_init(&w->cond, NULL);
	w->data = tpalloc((char *)"STRING", NULL, BUFFER);
	w->reply = tpalloc((char *)"STRING", NULL, BUFFER);
	return w->data == NULL || w->reply == NULL ? -1 : 0;
}

static int	/* wait_fd is readable when somebody kicks, and when it is time to stop */
wait_init(struct forwarder *f)
{
	struct epoll_event e = { .events = EPOLLIN };

	f->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (f->kick_fd == -1 || f->wait_fd == -1)
		return -1;
	return epoll_ctl(f->wait_fd, EPOLL_CTL_ADD, f->kick_fd, &e) != 0 ||
	    epoll_ctl(f->wait_fd, EPOLL_CTL_ADD, atmiq_server_wake_fd(), &e) != 0 ? -1 : 0;
}

int
forward_init(struct forwarder *f, struct options *o, const char *group)
{
	memset(f, 0, sizeof *f);
	f->o = o;
	f->kick_fd = f->wait_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->quiet, NULL);
	atmiq_group_service(group, f->space);
	for (size_t i = 0; i < o->n_queues; i++)
		f->source[i].queue = o->queue[i];
	if ((f->worker = calloc(o->workers, sizeof *f->worker)) == NULL)
		return -1;
	for (size_t i = 0; i < o->workers; i++)
		if (worker_init(f, &f->worker[i]) != 0)
			return -1;
	return wait_init(f);
}

void
forward_done(struct forwarder *f)
{
	if (f->o == NULL)
		return;
	for (size_t i = 0; f->worker != NULL && i < f->o->workers; i++) {
		tpfree(f->worker[i].data);
		tpfree(f->worker[i].reply);
	}
	free(f->worker);
	if (f->kick_fd != -1)
		close(f->kick_fd);
	if (f->wait_fd != -1)
		close(f->wait_fd);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	if (atmiq_thread_begin() == -1)
		return NULL;		/* the others do its work */
	pool_run(w);
	atmiq_thread_end();
	return NULL;
}

int
forward_start(struct forwarder *f)
{
	if (f->o->workers > 1 && atmiq_thread_begin() == -1)
		return -1;
	for (f->n_started = 1; f->n_started < f->o->workers; f->n_started++)
		if (pthread_create(&f->worker[f->n_started].thread, NULL, worker_main, &f->worker[f->n_started]) != 0)
			return -1;
	return 0;
}

void
forward_run(struct forwarder *f)
{
	pool_run(&f->worker[0]);
}

void
forward_stop(struct forwarder *f)
{
	pool_stop(f);
	for (; f->n_started > 1; f->n_started--)
		pthread_join(f->worker[f->n_started - 1].thread, NULL);
}
