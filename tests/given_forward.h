/*
 * given_forward - stories of TMQFORWARD: a system with its queues and services, requests and their answers.
 *
 * Services WORK and MORE do what their requests say (given_doer.h), each in as many servers of its own as a story wants.
 */
#ifndef GIVEN_FORWARD_H
#define GIVEN_FORWARD_H

#include <string.h>

#include "given.h"
#include "given_doer.h"

/* An entry of TMQFORWARD; `id` from 5. */
#define FORWARDER_AS(id, options) "TMQFORWARD SRVGRP=QUE1 SRVID=" #id " REPLYQ=N RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-- " options "\"\n"
#define FORWARDER(options) FORWARDER_AS(5, options)
#define SERVERS(n) "RESTART=Y MAXGEN=255 GRACE=0 MIN=" #n " MAX=" #n
#define SPACE_OF_MANY "16000 40 200 100 5000 ERRQ n 16"

static inline struct given *
given_forwarding(const char *forwarders, const char *servers, const char *more_queues)
{
	char *queues, *entries;
	struct given *g;

	if (asprintf(&entries, "server SRVGRP=APP SRVID=200 %s CLOPT=\"-s MORE:DO\"\n%s", servers, forwarders) == -1)
		return NULL;
	if (asprintf(&queues, "qcreate WORK fifo none 0 0 100%% 0%% \"\"\nqcreate MORE fifo none 0 0 100%% 0%% \"\"\n"
	    "qcreate ANSWER fifo none 9 0 100%% 0%% \"\"\nqcreate FAILED fifo none 9 0 100%% 0%% \"\"\n%s", more_queues) == -1)
		return NULL;
	g = given_system(&(struct given_conf){ .queues = queues, .space = SPACE_OF_MANY, .server_source = given_doer,
	    .server_services = "-s WORK:DO", .server_params = servers, .servers = entries,
	    .tmqueue = "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	free(queues);
	free(entries);
	return g;
}

/* A request whose answer, and failure, bears its name. */
static inline void
ask_as(const char *queue, const char *name, const char *steps, TPQCTL c)
{
	char *b = tpalloc("STRING", NULL, 1000);

	c.flags |= TPQCORRID | TPQREPLYQ | TPQFAILUREQ;
	snprintf(c.replyqueue, sizeof c.replyqueue, "ANSWER");
	snprintf(c.failurequeue, sizeof c.failurequeue, "FAILED");
	memset(c.corrid, 0, sizeof c.corrid);
	snprintf(c.corrid, sizeof c.corrid, "%s", name);
	snprintf(b, 1000, "%s", steps);
	GIVEN_CALL_OK(tpenqueue("QSPACE", (char *)queue, &c, b, 0, 0));
	tpfree(b);
}

static inline void
ask(const char *queue, const char *name, const char *steps)
{
	TPQCTL none;

	memset(&none, 0, sizeof none);
	ask_as(queue, name, steps, none);
}

/* The next message of a queue: its name, malloc'ed; NULL: none came in time.  *c and *text (NULL: not wanted) tell the rest. */
static inline char *
next_name(const char *queue, double seconds, TPQCTL *c, char **text)
{
	TPQCTL own;
	char *b = tpalloc("STRING", NULL, 1000), *name = NULL;
	double end = now_s() + seconds;
	long len = 0;

	if (c == NULL)
		c = &own;
	do {
		memset(c, 0, sizeof *c);
		c->flags = TPQCORRID | TPQPRIORITY | TPQDELIVERYQOS | TPQREPLYQ;
		if (tpdequeue("QSPACE", (char *)queue, c, &b, &len, 0) != -1) {
			name = strndup(c->corrid, sizeof c->corrid);
			break;
		}
		if (seconds > 0)
			nap_ms(5);
	} while (now_s() < end);
	if (text != NULL)
		*text = name != NULL ? strdup(len > 0 ? b : "") : NULL;
	tpfree(b);
	return name;
}

static inline bool
next_is(const char *queue, const char *name)
{
	char *got = next_name(queue, 30, NULL, NULL);
	bool same = got != NULL && strcmp(got, name) == 0;

	if (!same)
		fprintf(stderr, "\n%s: %s instead of %s\n", queue, got != NULL ? got : "nothing", name);
	free(got);
	return same;
}

/* Messages name0 to name(n-1) come to the queue, each once, in any order; and nothing else. */
static inline bool
all_come(const char *queue, const char *name, int n, double seconds)
{
	int *seen = calloc((size_t)n, sizeof *seen), i = 0;
	bool well = true;
	char *got;

	for (; i < n && (got = next_name(queue, seconds, NULL, NULL)) != NULL; i++) {
		int k = strncmp(got, name, strlen(name)) == 0 ? atoi(got + strlen(name)) : -1;

		if (k < 0 || k >= n || seen[k]++ > 0) {
			fprintf(stderr, "\n%s: %s is one too many\n", queue, got);
			well = false;
		}
		free(got);
	}
	free(seen);
	if (i < n)
		fprintf(stderr, "\n%s: %d of %d came\n", queue, i, n);
	got = next_name(queue, 0, NULL, NULL);
	well = well && i == n && got == NULL;
	free(got);
	return well;
}

struct fact { struct given *g; const char *text; long n; };

static inline int
notes_of(struct given *g, const char *line)
{
	char *notes = given_read(g, "notes"), whole[200];
	int n;

	snprintf(whole, sizeof whole, "%s\n", line);
	n = count_of(notes != NULL ? notes : "", whole);
	free(notes);
	return n;
}

static inline bool
is_noted(void *arg)
{
	const struct fact *f = arg;

	return notes_of(f->g, f->text) >= f->n;
}

static inline bool
noted(struct given *g, const char *line, int times)
{
	return wait_until(is_noted, &(struct fact){ g, line, times }, 30);
}

static inline bool
is_logged(void *arg)
{
	const struct fact *f = arg;

	return given_logged(f->g, f->text);
}

static inline bool
logged(struct given *g, const char *text)
{
	return wait_until(is_logged, &(struct fact){ g, text, 0 }, 30);
}

static inline bool
holds(void *arg)
{
	const struct fact *f = arg;

	return depth(f->g, f->text) == f->n;
}

static inline bool
comes_to(struct given *g, const char *queue, long n)
{
	return wait_until(holds, &(struct fact){ g, queue, n }, 30);
}

#endif
