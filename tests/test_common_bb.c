/*
 * bb: asking BBL, being known to it, and its death.  BBL is played by a thread here, which notes what it hears and
 * answers as told.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "atmi.h"
#include "bb.h"
#include "clock.h"
#include "link.h"

/* --- given --- */

static char dir[64], endpoint[128], starter[128];

struct bbl {			/* the one that is played */
	struct link_server *s;
	pthread_t thread;
	int end_fd;
	pthread_mutex_t lock;
	pthread_cond_t heard;
	char log[65536];	/* a line for each request: op key=value ... */
	const char *refused;	/* this op is refused */
	int status;
	_Atomic bool silent;	/* no answers */
	struct link_peer last;
};
static struct bbl bbl = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
note(const struct wire_admin *q)
{
	size_t n = strlen(bbl.log);

	n += (size_t)snprintf(bbl.log + n, sizeof bbl.log - n, "%s", q->op);
	for (size_t i = 0; q->doc.n > 0 && i < q->doc.rec[0].n; i++)
		n += (size_t)snprintf(bbl.log + n, sizeof bbl.log - n, " %s=%s", q->doc.rec[0].kv[i].key,
		    q->doc.rec[0].kv[i].value);
	snprintf(bbl.log + n, sizeof bbl.log - n, "\n");
}

static void
answer(const struct link_peer *to, const struct wire_admin *q)
{
	bool refuse = bbl.refused != NULL && strcmp(bbl.refused, q->op) == 0;
	struct wire_adminreply a = { .reqid = q->reqid, .status = refuse ? bbl.status : 0 };
	struct record *r = document_add(&a.doc);
	struct wr w = { 0 };

	a.text = refuse ? (char[]){ "not you" } : NULL;
	record_set(r, "op", q->op);
	wire_adminreply_encode(&w, &a);
	link_server_send(bbl.s, to, w.p, w.len, NULL);
	document_free(&a.doc);
	wr_free(&w);
}

static void *
bbl_thread(void *arg)
{
	struct link_msg m;
	struct wire_admin q;
	int rc;

	while ((rc = link_server_recv(bbl.s, &m, LINK_FOREVER, bbl.end_fd)) == LINK_OK || rc == LINK_INTR) {
		if (rc == LINK_OK && wire_admin_decode(m.head, m.head_len, &q) == 0) {
			pthread_mutex_lock(&bbl.lock);
			bbl.last = m.peer;
			note(&q);
			if (!bbl.silent)
				answer(&m.peer, &q);
			pthread_cond_broadcast(&bbl.heard);
			pthread_mutex_unlock(&bbl.lock);
			document_free(&q.doc);
		}
		link_msg_done(&m);
	}
	return arg;
}

static void
bbl_appears(void)
{
	CU_ASSERT_EQUAL_FATAL(link_server_open(endpoint, 0600, &bbl.s), LINK_OK);
	bbl.end_fd = eventfd(0, EFD_CLOEXEC);
	bbl.log[0] = '\0';
	bbl.refused = NULL;
	bbl.silent = false;
	pthread_create(&bbl.thread, NULL, bbl_thread, NULL);
}

static void	/* its thread ends, its socket stays: for a test that wants to speak in its place */
bbl_pauses(void)
{
	uint64_t one = 1;

	CU_ASSERT_EQUAL(write(bbl.end_fd, &one, sizeof one), sizeof one);
	pthread_join(bbl.thread, NULL);
	close(bbl.end_fd);
}

static void
bbl_dies(void)
{
	bbl_pauses();
	link_server_close(bbl.s);
}

static void
bbl_refuses(const char *op, int status)
{
	pthread_mutex_lock(&bbl.lock);
	bbl.refused = op;
	bbl.status = status;
	pthread_mutex_unlock(&bbl.lock);
}

static bool	/* wait until it has heard a line with this in it, and forget all up to there */
bbl_hears(const char *what)
{
	struct timespec until;
	char *at, *end;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	pthread_mutex_lock(&bbl.lock);
	while ((at = strstr(bbl.log, what)) == NULL && rc == 0)
		rc = pthread_cond_timedwait(&bbl.heard, &bbl.lock, &until);
	if (at != NULL && (end = strchr(at, '\n')) != NULL)
		memmove(bbl.log, end + 1, strlen(end + 1) + 1);
	if (at == NULL)
		printf("\n    heard only: %s", bbl.log);
	pthread_mutex_unlock(&bbl.lock);
	return at != NULL;
}

static void
given_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/test_bb.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(endpoint, sizeof endpoint, "ipc://%s/bbl", dir);
	snprintf(starter, sizeof starter, "%s/start", dir);
	pthread_cond_init(&bbl.heard, NULL);
}

static void
dir_done(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

static struct bb_agent *
given_agent(long srvid, const char *bbl_program)
{
	struct bb_agent_conf conf = { .bbl_endpoint = endpoint, .endpoint = "ipc:///x", .group = "GRP",
	    .program = "server", .clopt = "-A", .grpno = 2, .srvid = srvid, .rqaddr = "", .tuxconfig = "/the/tuxconfig",
	    .bbl_program = bbl_program };
	struct bb_agent *a = NULL;

	CU_ASSERT_EQUAL_FATAL(bb_agent_start(&conf, &a), 0);
	return a;
}

/* --- asking --- */

static void
a_question_gets_its_answer(void)
{
	struct document d = { 0 };
	struct wire_adminreply a;
	struct record *r;

	given_dir();
	bbl_appears();
	r = document_add(&d);
	record_set(r, "service", "STRING");
	CU_ASSERT_EQUAL(bb_request(endpoint, "resolve", r, 5000, &a), LINK_OK);
	CU_ASSERT_EQUAL(a.status, 0);
	CU_ASSERT_STRING_EQUAL(record_get(&a.doc.rec[0], "op"), "resolve");
	bb_reply_free(&a);
	CU_ASSERT_TRUE(bbl_hears("resolve service=STRING\n"));
	bbl_refuses("psr", TPEINVAL);
	CU_ASSERT_EQUAL(bb_request(endpoint, "psr", NULL, 5000, &a), LINK_OK);
	CU_ASSERT_EQUAL(a.status, TPEINVAL);
	CU_ASSERT_STRING_EQUAL(a.text, "not you");
	bb_reply_free(&a);
	bb_reply_free(&a);
	document_free(&d);
	bbl_dies();
	dir_done();
}

static void
a_question_to_nobody_ends_in_time(void)
{
	struct wire_adminreply a;

	given_dir();
	CU_ASSERT_EQUAL(bb_request(endpoint, "psr", NULL, 50, &a), LINK_TIMEOUT);
	bb_reply_free(&a);
	CU_ASSERT_EQUAL(bb_request_by(endpoint, "start", NULL, 50, 3600000, &a), LINK_TIMEOUT);	/* patience is for the answer alone */
	bbl_appears();
	bbl.silent = true;
	CU_ASSERT_EQUAL(bb_request(endpoint, "psr", NULL, 50, &a), LINK_TIMEOUT);
	bbl_dies();
	dir_done();
}

/* --- being known --- */

static void
a_server_is_known_from_start_to_end(void)
{
	struct bb_agent *a;
	char want[128];

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	snprintf(want, sizeof want, "register group=GRP srvid=10 pid=%ld grpno=2 program=server endpoint=ipc:///x "
	    "clopt=-A", (long)getpid());
	CU_ASSERT_TRUE(bbl_hears(want));
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "STRING", "stringfn"), 0);
	CU_ASSERT_TRUE(bbl_hears("service=STRING function=stringfn"));
	bb_agent_ready(a);
	CU_ASSERT_TRUE(bbl_hears("ready group=GRP"));
	CU_ASSERT_EQUAL(bb_agent_unadvertise(a, "STRING"), 0);
	CU_ASSERT_TRUE(bbl_hears("unadvertise group=GRP"));
	bb_agent_end(a, 3);
	CU_ASSERT_TRUE(bbl_hears("end group=GRP"));
	bb_agent_end(NULL, 0);
	bbl_dies();
	dir_done();
}

static void
refusals_reach_the_caller(void)
{
	struct bb_agent_conf conf = { .bbl_endpoint = endpoint, .group = "GRP", .program = "server", .srvid = 1 };
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	bbl_refuses("register", TPEMATCH);
	CU_ASSERT_EQUAL(bb_agent_start(&conf, &a), TPEMATCH);
	CU_ASSERT_PTR_NULL(a);
	bbl_refuses("advertise", TPELIMIT);
	a = given_agent(1, "");
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "NOT", "f"), TPELIMIT);
	bbl_refuses("heartbeat", TPENOENT);
	CU_ASSERT_TRUE(bbl_hears("heartbeat"));
	CU_ASSERT_TRUE(bbl_hears("rqaddr=\n"));	/* a registration without services */
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

static void
heartbeats_tell_what_psr_shows(void)
{
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "STRING", "f"), 0);
	bb_agent_busy(a, "STRING");
	CU_ASSERT_TRUE(bbl_hears("done=0 load=0 current=STRING service.0=STRING done.0=0"));
	bb_agent_idle(a, 50);
	CU_ASSERT_TRUE(bbl_hears("done=1 load=50 current= service.0=STRING done.0=1"));
	bb_agent_busy(a, "UNKNOWN");
	bb_agent_idle(a, 50);
	CU_ASSERT_TRUE(bbl_hears("done=2 load=100 current= service.0=STRING done.0=1"));
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

static bool
readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 20000) == 1;
}

static void
the_order_to_stop_is_heard(void)
{
	struct wire_admin stop = { .reqid = 0, .op = "stop" };
	struct wr w = { 0 };
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	CU_ASSERT_FALSE(bb_agent_stopping(a));
	wire_admin_encode(&w, &stop);
	bbl_pauses();
	CU_ASSERT_EQUAL(link_server_send(bbl.s, &bbl.last, w.p, w.len, NULL), LINK_OK);
	CU_ASSERT_TRUE(readable(bb_agent_wake_fd(a)));
	CU_ASSERT_TRUE(bb_agent_stopping(a));
	link_server_close(bbl.s);
	bb_agent_end(a, 0);
	wr_free(&w);
	dir_done();
}

static struct bb_agent *signalled;

static void
on_term(int sig)
{
	(void)sig;
	bb_agent_stop_now(signalled);
}

static void
a_signal_stops_like_the_order(void)
{
	struct sigaction sa = { .sa_handler = on_term };

	given_dir();
	bbl_appears();
	signalled = given_agent(10, "");
	sigaction(SIGTERM, &sa, NULL);
	CU_ASSERT_EQUAL(raise(SIGTERM), 0);
	CU_ASSERT_TRUE(bb_agent_stopping(signalled));
	CU_ASSERT_TRUE(readable(bb_agent_wake_fd(signalled)));
	signal(SIGTERM, SIG_DFL);
	bb_agent_end(signalled, 0);
	bbl_dies();
	dir_done();
}

/* --- BBL dies --- */

static void
a_new_bbl_is_told_all(void)
{
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "ONE", "f1"), 0);
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "TWO", "f2"), 0);
	bb_agent_ready(a);
	bb_agent_busy(a, "ONE");
	bb_agent_idle(a, 50);
	bbl_dies();
	bbl_appears();
	CU_ASSERT_TRUE(bbl_hears("service.0=ONE function.0=f1 service.1=TWO function.1=f2"));
	CU_ASSERT_TRUE(bbl_hears("ready"));
	CU_ASSERT_TRUE(bbl_hears("heartbeat group=GRP"));
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

static void
a_bbl_that_forgot_is_told_again(void)
{
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "ONE", "f1"), 0);
	bbl_refuses("heartbeat", TPENOENT);
	CU_ASSERT_TRUE(bbl_hears("service.0=ONE function.0=f1"));
	bbl_refuses(NULL, 0);
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

static void
what_is_offered_while_bbl_is_away_is_told_later(void)
{
	struct bb_agent *a;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "ONE", "f1"), 0);
	bbl_dies();
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "TWO", "f2"), 0);
	CU_ASSERT_EQUAL(bb_agent_unadvertise(a, "ONE"), 0);
	bbl_appears();
	CU_ASSERT_TRUE(bbl_hears("rqaddr= service.0=TWO function.0=f2\n"));
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

static void	/* a program that notes how it was started */
given_starter(void)
{
	FILE *f = fopen(starter, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "#!/bin/sh\necho \"$* $TUXCONFIG\" >>%s/note\nmv %s/note %s/started.$$\n", dir, dir, dir);
	fclose(f);
	CU_ASSERT_EQUAL(chmod(starter, 0700), 0);
}

static int	/* how many times it was started; waits for the first */
starts(int wait_ms)
{
	int64_t until = clock_mono_us() + (int64_t)wait_ms * 1000;
	char command[128];
	int n;

	snprintf(command, sizeof command, "exit $(ls %s | grep -c started)", dir);
	do
		n = WEXITSTATUS(system(command));
	while (n == 0 && clock_mono_us() < until);
	return n;
}

static void
a_dead_bbl_is_started_again_by_one(void)
{
	struct bb_agent *a, *b;
	char command[160];

	given_dir();
	given_starter();
	bbl_appears();
	a = given_agent(1, starter);
	b = given_agent(2, starter);
	bbl_dies();
	CU_ASSERT_TRUE(starts(20000) > 0);
	snprintf(command, sizeof command, "grep -qx -- '-R /the/tuxconfig' %s/started.*", dir);
	CU_ASSERT_EQUAL(system(command), 0);
	bbl_appears();
	CU_ASSERT_TRUE(bbl_hears("srvid=1"));
	bbl_dies();
	CU_ASSERT_EQUAL(starts(0), 1);
	bb_agent_end(a, 0);
	bb_agent_end(b, 0);
	dir_done();
}

static void
a_bbl_that_was_shut_down_is_not_started_again(void)
{
	struct bb_agent *a;
	char path[128];

	given_dir();
	given_starter();
	bbl_appears();
	a = given_agent(1, starter);
	snprintf(path, sizeof path, "%s/bbl.stopped", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	bbl_dies();
	CU_ASSERT_EQUAL(starts(1600), 0);
	bb_agent_end(a, 0);
	dir_done();
}

static void
a_child_does_not_speak_for_its_parent(void)
{
	struct bb_agent *a;
	int status = -1;
	pid_t pid;

	given_dir();
	bbl_appears();
	a = given_agent(10, "");
	if ((pid = fork()) == 0) {
		bb_agent_end(a, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(bb_agent_advertise(a, "STILL", "f"), 0);
	CU_ASSERT_TRUE(bbl_hears("service=STILL"));
	bb_agent_end(a, 0);
	bbl_dies();
	dir_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_question_gets_its_answer),
		UNIT(a_question_to_nobody_ends_in_time),
		UNIT(a_server_is_known_from_start_to_end),
		UNIT(refusals_reach_the_caller),
		UNIT(heartbeats_tell_what_psr_shows),
		UNIT(the_order_to_stop_is_heard),
		UNIT(a_signal_stops_like_the_order),
		UNIT(a_new_bbl_is_told_all),
		UNIT(a_bbl_that_forgot_is_told_again),
		UNIT(what_is_offered_while_bbl_is_away_is_told_later),
		UNIT(a_dead_bbl_is_started_again_by_one),
		UNIT(a_bbl_that_was_shut_down_is_not_started_again),
		UNIT(a_child_does_not_speak_for_its_parent),
	};

	setenv("ULOGPFX", "/nonexistent/ULOG", 1);	/* the lines are not what is tested here */
	return unit_run("bb", tests, UNIT_COUNT(tests));
}
