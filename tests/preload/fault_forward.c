/*
 * Loaded into TMQFORWARD with LD_PRELOAD: what FAULT_FORWARD names fails.  malloc: a typed buffer, known by its size; pthread_create:
 * the third thread; dequeue, call: what comes is of a type that cannot be decoded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "atmi.h"

struct atmiq_call;

static int
fails(const char *what)
{
	const char *which = getenv("FAULT_FORWARD");

	return which != NULL && strcmp(which, what) == 0 && strcmp(program_invocation_short_name, "TMQFORWARD") == 0;
}

void *
malloc(size_t n)
{
	static void *(*real)(size_t);

	if (n > 4096 && n < 4200 && fails("malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	if (real == NULL) {
		void *p = dlsym(RTLD_NEXT, "malloc");

		memcpy(&real, &p, sizeof real);
	}
	return real(n);
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	static int n;

	if (fails("pthread_create") && ++n == 3)
		return EAGAIN;
	if (real == NULL) {
		void *p = dlsym(RTLD_NEXT, "pthread_create");

		memcpy(&real, &p, sizeof real);
	}
	return real(thread, attr, run, arg);
}

int
atmiq_dequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags, long *retries)
{
	static int (*real)(char *, char *, TPQCTL *, char **, long *, long, long *);
	void *p = dlsym(RTLD_NEXT, "atmiq_dequeue");
	int rc;

	memcpy(&real, &p, sizeof real);
	rc = real(qspace, qname, ctl, data, len, flags, retries);
	if (rc != -1 && fails("dequeue")) {
		tperrno = TPEOTYPE;
		return -1;
	}
	return rc;
}

int
atmiq_call(const struct atmiq_call *c)
{
	static int (*real)(const struct atmiq_call *);
	void *p = dlsym(RTLD_NEXT, "atmiq_call");
	int rc;

	memcpy(&real, &p, sizeof real);
	rc = real(c);
	if (rc != -1 && fails("call")) {
		tperrno = TPEOTYPE;
		return -1;
	}
	return rc;
}
