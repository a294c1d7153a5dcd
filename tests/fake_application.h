/*
 * fake_application.h - an application of threads in the test's own process: a BBL that knows a few names, and a
 * server that records what it is asked and answers what the test told it to.  For tests of libatmiq without any other
 * program.
 *
 * The server offers QSPACE, TOUPPER and ..QUE1, in group QUE1; OTHER and ..QUE2, in group QUE2; SPACE01, ..GRP01 and so on, in
 * groups GRP01...; BOOTING is being started, for ever.  BOTH is offered by it in group GRP01, and by a second server, which answers
 * the same and counts, in group GRP02.
 */
#ifndef FAKE_APPLICATION_H
#define FAKE_APPLICATION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atmi.h"
#include "clock.h"
#include "link.h"
#include "ubb.h"
#include "unit.h"
#include "wire.h"

struct fake {
	char dir[64], tuxconfig[96], bbl_endpoint[200], endpoint[200], endpoint2[200];
	struct link_server *bbl, *server, *second, *answering;
	int wake;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_bool stop;
	/* what was asked last, and how often */
	struct wire_enqueue enqueue; struct wire_dequeue dequeue; struct wire_txend txend; struct wire_call call;
	char body[8192]; size_t body_len;
	int n_second, n_query, n_enqueue, n_dequeue, n_txend, n_call, n_cancel, n_resolve, n_join, n_leave;
	/* what to answer */
	struct wire_qreply qreply; struct wire_txreply txreply; struct wire_reply reply;
	struct wire_txreply query;			/* to QUERY, after so many times UNDECIDED: */
	int undecided;
	const void *answer; size_t answer_len;		/* body of the answer */
	bool silent;					/* no answer; the request is kept for fake_answer_late() */
	bool die_after_request;				/* the server's socket closes */
	struct link_peer kept_peer; uint64_t kept_reqid;
};

static inline void
fake_send(struct link_server *s, const struct link_peer *to, struct wr *w, const void *body, size_t n, bool has_body)
{
	struct link_body b = { .p = body, .n = n };

	CU_ASSERT_TRUE(wr_ok(w));
	link_server_send(s, to, w->p, w->len, has_body ? &b : NULL);
	wr_free(w);
}

static inline void
fake_record(struct document *d, const char *endpoint, const char *group)
{
	struct record *r = document_add(d);

	record_set(r, "endpoint", endpoint);
	record_set(r, "group", group);
	record_set(r, "prio", "50");
}

static inline void
fake_bbl(struct fake *f, const struct link_msg *m)
{
	struct wire_admin ask;
	struct wire_adminreply answer = { 0 };
	struct wr w = { 0 };
	const char *service;

	if (wire_admin_decode(m->head, m->head_len, &ask) != 0)
		return;
	answer.reqid = ask.reqid;
	if (strcmp(ask.op, "join") == 0) {
		struct record *r = document_add(&answer.doc);

		f->n_join++;
		record_set(r, "clientid0", "11");
		record_set(r, "clientid1", "22");
		record_set(r, "clientid2", "33");
		record_set(r, "clientid3", "44");
	} else if (strcmp(ask.op, "leave") == 0)
		f->n_leave++;
	else if (strcmp(ask.op, "resolve") == 0 && ask.doc.n == 1 &&
		 (service = record_get(&ask.doc.rec[0], "service")) != NULL) {
		f->n_resolve++;
		if (strcmp(service, "QSPACE") == 0 || strcmp(service, "..QUE1") == 0 || strcmp(service, "TOUPPER") == 0)
			fake_record(&answer.doc, f->endpoint, "QUE1");
		else if (strcmp(service, "OTHER") == 0 || strcmp(service, "..QUE2") == 0)
			fake_record(&answer.doc, f->endpoint, "QUE2");
		else if (strncmp(service, "SPACE", 5) == 0 || strncmp(service, "..GRP", 5) == 0) {
			char group[WIRE_GROUP];

			snprintf(group, sizeof group, "GRP%.8s", service + 5);
			fake_record(&answer.doc, f->endpoint, group);
		} else if (strcmp(service, "BOTH") == 0) {
			fake_record(&answer.doc, f->endpoint, "GRP01");
			fake_record(&answer.doc, f->endpoint2, "GRP02");
		}
		else if (strcmp(service, "BOOTING") != 0)
			answer.status = TPENOENT;
	}
	wire_adminreply_encode(&w, &answer);
	fake_send(f->bbl, &m->peer, &w, NULL, 0, false);
	document_free(&answer.doc);
	document_free(&ask.doc);
}

static inline void
fake_answer(struct fake *f, const struct link_peer *to, enum wire_kind kind, uint64_t reqid)
{
	struct wire_txreply query;
	struct wr w = { 0 };

	if (kind == WIRE_ENQUEUE && f->enqueue.commits && f->qreply.error == 0) {
		f->txreply.reqid = reqid;
		wire_txreply_encode(&w, &f->txreply);
		fake_send(f->answering, to, &w, NULL, 0, false);
		return;
	}
	switch (kind) {
	case WIRE_ENQUEUE:
	case WIRE_DEQUEUE:
		f->qreply.reqid = reqid;
		f->qreply.has_body = kind == WIRE_DEQUEUE && f->answer != NULL;
		wire_qreply_encode(&w, &f->qreply);
		fake_send(f->answering, to, &w, f->answer, f->answer_len, f->qreply.has_body);
		break;
	case WIRE_TXEND:
		query = f->txend.op != WIRE_TX_QUERY ? f->txreply : f->n_query > f->undecided ? f->query :
		    (struct wire_txreply){ .outcome = WIRE_OUT_UNDECIDED };
		query.reqid = reqid;
		wire_txreply_encode(&w, &query);
		fake_send(f->answering, to, &w, NULL, 0, false);
		break;
	case WIRE_CALL:
		f->reply.reqid = reqid;
		f->reply.has_body = f->answer != NULL;
		wire_reply_encode(&w, &f->reply);
		fake_send(f->answering, to, &w, f->answer, f->answer_len, f->reply.has_body);
		break;
	default:
		break;
	}
}

static inline void
fake_serve(struct fake *f, const struct link_msg *m)
{
	enum wire_kind kind;
	uint64_t reqid;

	if (wire_peek(m->head, m->head_len, &kind, &reqid) != 0)
		return;
	f->body_len = m->has_body && m->body_len <= sizeof f->body ? m->body_len : 0;
	if (f->body_len > 0)
		memcpy(f->body, m->body, f->body_len);
	if (kind == WIRE_ENQUEUE && wire_enqueue_decode(m->head, m->head_len, &f->enqueue) == 0)
		f->n_enqueue++;
	else if (kind == WIRE_DEQUEUE && wire_dequeue_decode(m->head, m->head_len, &f->dequeue) == 0)
		f->n_dequeue++;
	else if (kind == WIRE_TXEND && wire_txend_decode(m->head, m->head_len, &f->txend) == 0) {
		f->n_txend++;
		f->n_query += f->txend.op == WIRE_TX_QUERY;
	}
	else if (kind == WIRE_CALL && wire_call_decode(m->head, m->head_len, &f->call) == 0)
		f->n_call++;
	else if (kind == WIRE_CANCEL)
		f->n_cancel++;
	else
		CU_FAIL("a request that cannot be read");
	if (kind == WIRE_CANCEL)
		return;
	if (f->silent || f->die_after_request) {
		f->kept_peer = m->peer;
		f->kept_reqid = reqid;
	} else
		fake_answer(f, &m->peer, kind, reqid);
	if (f->die_after_request) {
		f->die_after_request = false;
		link_server_close(f->server);
		link_server_open(f->endpoint, 0600, &f->server);
	}
}

static inline void *
fake_run(void *arg)
{
	struct fake *f = arg;
	struct link_msg m;

	memset(&m, 0, sizeof m);
	while (!f->stop) {
		struct link_wait w[3] = { { .server = f->server }, { .server = f->bbl }, { .server = f->second } };

		if (link_wait(w, 3, LINK_FOREVER, f->wake) <= 0)
			continue;
		pthread_mutex_lock(&f->lock);
		f->answering = f->server;
		if (w[0].ready && link_server_recv(f->server, &m, 0, -1) == LINK_OK) {
			fake_serve(f, &m);
			link_msg_done(&m);
		}
		f->answering = f->second;
		if (w[2].ready && link_server_recv(f->second, &m, 0, -1) == LINK_OK) {
			f->n_second++;
			fake_serve(f, &m);
			link_msg_done(&m);
		}
		f->answering = f->server;
		if (w[1].ready && link_server_recv(f->bbl, &m, 0, -1) == LINK_OK) {
			fake_bbl(f, &m);
			link_msg_done(&m);
		}
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	return NULL;
}

/* The test holds the lock while it looks at what was asked or says what to answer. */
#define FAKE(f, statement) do { pthread_mutex_lock(&(f)->lock); statement; pthread_mutex_unlock(&(f)->lock); } while (0)

/* For looking at what was asked, once the call that asked has returned. */
static inline struct fake *
seen(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	pthread_mutex_unlock(&f->lock);
	return f;
}

/* Wait until *count is at least n (guarded by the lock); at most 5 s. */
static inline bool
fake_wait(struct fake *f, const int *count, int n)
{
	struct timespec until;
	bool met;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	pthread_mutex_lock(&f->lock);
	while (*count < n && pthread_cond_timedwait(&f->changed, &f->lock, &until) == 0)
		;
	met = *count >= n;
	pthread_mutex_unlock(&f->lock);
	return met;
}

static inline void
fake_configure(struct fake *f)
{
	char host[65], *text, *base;
	struct ubb *u = NULL;
	FILE *in;

	gethostname(host, sizeof host);
	setenv("ATMIQ_RUNBASE", f->dir, 1);
	setenv("TUXCONFIG", f->tuxconfig, 1);
	base = f->dir;
	if (asprintf(&text,
		"*RESOURCES\nIPCKEY 50123\nMASTER SITE1\nMODEL SHM\nSCANUNIT 10\nBLOCKTIME 1\n*MACHINES\n\"%s\" "
		"LMID=SITE1 "
		"TUXCONFIG=\"%s\" TUXDIR=\"%s\" APPDIR=\"%s\" ULOGPFX=\"%s/ULOG\"\n*GROUPS\nQUE1 LMID=SITE1 "
		"GRPNO=1\n*SERVERS\n"
		"server SRVGRP=QUE1 SRVID=1\n*SERVICES\n",
		host, f->tuxconfig, base, base, base) == -1)
		abort();
	in = fmemopen(text, strlen(text), "r");
	CU_ASSERT_EQUAL_FATAL(ubb_parse(in, "test", stderr, NULL, &u), 0);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, f->tuxconfig), 0);
	fclose(in);
	free(text);
	ubb_free(u);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(f->tuxconfig, &u, &text), 0);
	CU_ASSERT_EQUAL_FATAL(link_rundir_make(u->rundir, 0700), 0);
	ubb_bbl_endpoint(u, f->bbl_endpoint, sizeof f->bbl_endpoint);
	ubb_server_endpoint(u, 1, 1, f->endpoint, sizeof f->endpoint);
	ubb_server_endpoint(u, 1, 2, f->endpoint2, sizeof f->endpoint2);
	ubb_free(u);
}

static inline struct fake *
fake_application(void)
{
	struct fake *f = calloc(1, sizeof *f);

	snprintf(f->dir, sizeof f->dir, "/tmp/atmiqXXXXXX");
	if (mkdtemp(f->dir) == NULL)
		abort();
	snprintf(f->tuxconfig, sizeof f->tuxconfig, "%s/tuxconfig", f->dir);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	fake_configure(f);
	CU_ASSERT_EQUAL_FATAL(link_server_open(f->bbl_endpoint, 0600, &f->bbl), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_server_open(f->endpoint, 0600, &f->server), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_server_open(f->endpoint2, 0600, &f->second), LINK_OK);
	f->answering = f->server;
	f->wake = eventfd(0, 0);
	pthread_create(&f->thread, NULL, fake_run, f);
	return f;
}

/* Stop the threads, as if every process of the application had died; the files stay. */
static inline void
fake_kill(struct fake *f)
{
	if (f->stop)
		return;
	f->stop = true;
	eventfd_write(f->wake, 1);
	pthread_join(f->thread, NULL);
	link_server_close(f->server);
	link_server_close(f->second);
	link_server_close(f->bbl);
}

static inline void
fake_done(struct fake *f)
{
	char command[128];

	tpterm();
	fake_kill(f);
	close(f->wake);
	snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
	CU_ASSERT_EQUAL(system(command), 0);
	free(f);
}

#endif
