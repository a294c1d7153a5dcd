/*
 * link: sockets between processes, their death, and what a peer may do wrong.
 *
 * Peers that must die, hang or exit are processes of their own: this program again, with a role as its argument.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>	/* for peers that do what link would never do */

#include "clock.h"
#include "link_impl.h"
#include "ulog.h"

/* --- given --- */

enum { SLOW_READERS = 200, SLOW_EACH = 2, SLEEPER_ASKS = 600 };

static bool playing;		/* a role, where CUnit is not at home */
#define MUST(what) do { if (!(what)) { if (playing) _exit(3); CU_FAIL_FATAL(#what); } } while (0)

static char dir[64], endpoint[128];
static char log_dir[] = "/tmp/test_link_log.XXXXXX";	/* one for all: the prefix is fixed at the first line */

static void
given_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/test_link.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(endpoint, sizeof endpoint, "ipc://%s/socket", dir);
}

static void
dir_done(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

static int64_t
in_ms(int ms)
{
	return clock_mono_us() + (int64_t)ms * 1000;
}

static struct link_server *
server(void)
{
	struct link_server *s = NULL;

	MUST(link_server_open(endpoint, 0600, &s) == LINK_OK);
	return s;
}

static struct link_client *
client(void)
{
	struct link_client *c = NULL;

	MUST(link_client_open(endpoint, &c) == LINK_OK);
	return c;
}

static int
ask(struct link_client *c, const char *text)
{
	return link_client_send(c, text, strlen(text), NULL, in_ms(10000));
}

static const char *	/* the next reply's header, or the code why not */
hear(struct link_client *c, int ms)
{
	static char text[256];
	struct link_msg m;
	int rc = link_client_recv(c, &m, in_ms(ms));

	if (rc == LINK_OK)
		snprintf(text, sizeof text, "%.*s", (int)m.head_len, (const char *)m.head);
	else
		snprintf(text, sizeof text, "code %d", rc);
	link_msg_done(&m);
	return text;
}

static void	/* answers each request with its own header, and a body of as many bytes as "body N" says */
answer(struct link_server *s, const struct link_msg *m)
{
	struct link_body body = { 0 };
	char text[64];
	long n;

	snprintf(text, sizeof text, "%.*s", (int)m->head_len, (const char *)m->head);
	if (sscanf(text, "body %ld", &n) == 1) {
		body.p = calloc(1, (size_t)n);
		body.n = (size_t)n;
		link_server_send(s, &m->peer, m->head, m->head_len, &body);
		free((void *)(uintptr_t)body.p);
	} else
		link_server_send(s, &m->peer, m->head, m->head_len, NULL);
}

static void
serve_one(struct link_server *s)
{
	struct link_msg m;

	MUST(link_server_recv(s, &m, in_ms(10000), -1) == LINK_OK);
	answer(s, &m);
	link_msg_done(&m);
}

/* --- other processes --- */

static pid_t
process(const char *role)
{
	char *argv[] = { (char[]){ "test_common_link" }, (char *)(uintptr_t)role, endpoint, NULL };
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	return pid;
}

static int	/* a server, until it is killed; "silent" gets no answer */
role_server(void)
{
	struct link_server *s;
	struct link_msg m;

	if (link_server_open(endpoint, 0600, &s) != LINK_OK)
		return 1;
	for (;;)
		if (link_server_recv(s, &m, LINK_FOREVER, -1) == LINK_OK) {
			if (m.head_len != 6 || memcmp(m.head, "silent", 6) != 0)
				answer(s, &m);
			link_msg_done(&m);
		}
}

static int	/* a server that answers eight times, closes and ends */
role_eight(void)
{
	struct link_server *s = server();

	for (int i = 0; i < 8; i++)
		serve_one(s);
	link_server_close(s);
	return 0;
}

static int	/* two hundred clients that ask for all and read one after the other */
role_slow_readers(void)
{
	static struct link_client *c[SLOW_READERS];
	struct link_msg m;
	int bad = 0;

	for (int i = 0; i < SLOW_READERS; i++)
		c[i] = client();
	for (int i = 0; i < SLOW_READERS * SLOW_EACH; i++)
		bad += ask(c[i % SLOW_READERS], "body 1000000") != LINK_OK;
	for (int i = 0; i < SLOW_READERS * SLOW_EACH; i++) {
		bad += link_client_recv(c[i % SLOW_READERS], &m, in_ms(30000)) != LINK_OK || m.body_len != 1000000;
		link_msg_done(&m);
	}
	for (int i = 0; i < SLOW_READERS; i++) {
		bad += link_client_recv(c[i], &m, 0) != LINK_TIMEOUT;
		link_client_close(c[i]);
	}
	return bad != 0;
}

static int	/* a client that asks and then hangs */
role_sleeper(void)
{
	struct link_client *c = client();

	for (int i = 0; i < SLEEPER_ASKS; i++)
		ask(c, "sleeper");
	hear(c, 10000);			/* so all is sent */
	raise(SIGSTOP);
	return 0;
}

static struct link_body given_body(size_t n);

static struct link_client *	/* which has megabytes unsent: its server, the parent's child, hangs by now */
laden(void)
{
	struct link_client *c = client();
	struct link_body b;

	ask(c, "silent");
	kill(atoi(getenv("HUNG")), SIGSTOP);
	for (int i = 0; i < 20; i++) {
		b = given_body(1 << 20);
		link_client_send(c, "x", 1, &b, in_ms(1000));
	}
	return c;
}

static int
role_closes_and_exits(void)
{
	link_client_close(laden());
	return 0;
}

static struct link_client *volatile kept;	/* reachable at the exit, so not leaked */

static int
role_just_exits(void)
{
	kept = laden();
	return kept == NULL;
}

static int
play(const char *role)
{
	static const struct { const char *name; int (*run)(void); } roles[] = {
		{ "server", role_server }, { "eight", role_eight }, { "slow readers", role_slow_readers },
		{ "sleeper", role_sleeper }, { "closes", role_closes_and_exits }, { "exits", role_just_exits },
	};

	playing = true;
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
		if (strcmp(roles[i].name, role) == 0)
			return roles[i].run();
	return 2;
}

static void
kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int
exit_status(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- talking --- */

static void
requests_are_answered_to_who_asked(void)
{
	struct link_server *s;
	struct link_client *a, *b;

	given_dir();
	s = server();
	a = client();
	b = client();
	CU_ASSERT_EQUAL(ask(a, "from a"), LINK_OK);
	CU_ASSERT_EQUAL(ask(b, "from b"), LINK_OK);
	serve_one(s);
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(a, 5000), "from a");
	CU_ASSERT_STRING_EQUAL(hear(b, 5000), "from b");
	CU_ASSERT_STRING_EQUAL(hear(a, 0), "code -1");
	link_client_close(a);
	link_client_close(b);
	link_server_close(s);
	dir_done();
}

/* What comes too late was not sent, and its sender knows; what came before is answered; who hangs up is seen. */
static void
a_server_that_takes_no_more_answers_what_it_has(void)
{
	struct link_server *s;
	struct link_client *a, *b, *late;
	struct link_msg m, last;
	char both[64];

	given_dir();
	s = server();
	a = client();
	b = client();
	late = client();
	CU_ASSERT_EQUAL(ask(a, "one"), LINK_OK);
	CU_ASSERT_EQUAL(ask(b, "of b"), LINK_OK);
	CU_ASSERT_EQUAL(ask(a, "two"), LINK_OK);
	MUST(link_server_recv(s, &m, in_ms(5000), -1) == LINK_OK);	/* in hand while the rest is read */
	link_server_no_more(s);
	CU_ASSERT_EQUAL(ask(a, "three"), LINK_GONE);
	CU_ASSERT_EQUAL(link_client_send(late, "x", 1, NULL, in_ms(100)), LINK_TIMEOUT);
	serve_one(s);
	MUST(link_server_recv(s, &last, in_ms(5000), -1) == LINK_OK);
	CU_ASSERT_FALSE(link_server_left(s, &m.peer));
	CU_ASSERT_EQUAL(link_server_recv(s, &(struct link_msg){ 0 }, in_ms(50), -1), LINK_TIMEOUT);
	answer(s, &m);
	answer(s, &last);
	link_msg_done(&m);
	link_msg_done(&last);
	snprintf(both, sizeof both, "%s", hear(a, 5000));	/* in the order of the answers */
	snprintf(both + strlen(both), sizeof both - strlen(both), " %s", hear(a, 5000));
	CU_ASSERT_TRUE(strcmp(both, "one two") == 0 || strcmp(both, "two one") == 0);
	CU_ASSERT_STRING_EQUAL(hear(b, 5000), "of b");
	link_server_close(s);
	CU_ASSERT_STRING_EQUAL(hear(a, 5000), "code -2");
	link_client_close(a);
	link_client_close(b);
	link_client_close(late);
	dir_done();
}

static void
many_requests_are_in_flight_at_once(void)
{
	enum { N = 2000 };
	struct link_server *s;
	struct link_client *c;
	char text[32];

	given_dir();
	s = server();
	c = client();
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "%d", i);
		CU_ASSERT_EQUAL_FATAL(ask(c, text), LINK_OK);
	}
	for (int i = 0; i < N; i++)
		serve_one(s);
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "%d", i);
		CU_ASSERT_STRING_EQUAL(hear(c, 5000), text);
	}
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static _Atomic int released;

static void
release(void *p, void *hint)
{
	(void)hint;
	released++;
	free(p);
}

static struct link_body
given_body(size_t n)
{
	struct link_body b = { .p = malloc(n > 0 ? n : 1), .n = n, .release = release };

	memset((void *)(uintptr_t)b.p, 'x', n);
	return b;
}

static void
bodies_of_any_size_pass_and_are_released_once(void)
{
	static const size_t sizes[] = { 0, 1, 33, 34, 1024, 8192, 8193, 100000, 64 << 20 };
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;

	given_dir();
	s = server();
	c = client();
	released = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct link_body b = given_body(sizes[i]);

		CU_ASSERT_EQUAL_FATAL(link_client_send(c, "h", 1, &b, in_ms(10000)), LINK_OK);
		CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(30000), -1), LINK_OK);
		CU_ASSERT_TRUE(m.has_body && m.body_len == sizes[i]);
		CU_ASSERT_TRUE(sizes[i] == 0 || (m.body[0] == 'x' && m.body[sizes[i] - 1] == 'x'));
		b = given_body(sizes[i]);
		CU_ASSERT_EQUAL(link_server_send(s, &m.peer, "r", 1, &b), LINK_OK);
		link_msg_done(&m);
		CU_ASSERT_EQUAL_FATAL(link_client_recv(c, &m, in_ms(30000)), LINK_OK);
		CU_ASSERT_TRUE(m.has_body && m.body_len == sizes[i]);
		link_msg_done(&m);
		link_msg_done(&m);
	}
	CU_ASSERT_EQUAL(ask(c, "no body"), LINK_OK);
	CU_ASSERT_EQUAL(link_server_recv(s, &m, in_ms(5000), -1), LINK_OK);
	CU_ASSERT_FALSE(m.has_body);
	link_msg_done(&m);
	link_client_close(c);
	link_server_close(s);
	for (int64_t until = in_ms(5000); released < 18 && clock_mono_us() < until; )
		sched_yield();
	CU_ASSERT_EQUAL(released, 18);
	dir_done();
}

static void	/* A server that answers, closes and ends at once: what it said arrives. */
replies_under_way_survive_the_close(void)
{
	struct link_client *c;
	struct link_msg m;
	pid_t pid;

	given_dir();
	pid = process("eight");
	c = client();
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL_FATAL(ask(c, "body 1000000"), LINK_OK);
	for (int i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(link_client_recv(c, &m, in_ms(10000)), LINK_OK);
		CU_ASSERT_EQUAL(m.body_len, 1000000);
		link_msg_done(&m);
	}
	CU_ASSERT_STRING_EQUAL(hear(c, 10000), "code -2");
	link_client_close(c);
	CU_ASSERT_EQUAL(exit_status(pid), 0);
	CU_ASSERT_NOT_EQUAL(access(endpoint + 6, F_OK), 0);
	dir_done();
}

/* --- servers that are not there --- */

static void
nothing_is_queued_for_a_server_that_is_not_there(void)
{
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	struct link_body b;

	given_dir();
	c = client();
	released = 0;
	b = given_body(20000);
	CU_ASSERT_EQUAL(link_client_send(c, "early", 5, &b, in_ms(50)), LINK_TIMEOUT);
	CU_ASSERT_EQUAL(released, 1);
	CU_ASSERT_STRING_EQUAL(hear(c, 20), "code -1");
	s = server();
	CU_ASSERT_EQUAL(ask(c, "late"), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(5000), -1), LINK_OK);
	CU_ASSERT_TRUE(m.head_len == 4 && memcmp(m.head, "late", 4) == 0);
	link_msg_done(&m);
	CU_ASSERT_EQUAL(link_server_recv(s, &m, 0, -1), LINK_TIMEOUT);
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static void
a_killed_server_is_gone_after_its_last_reply(void)
{
	struct link_client *c;
	int64_t start;
	pid_t pid;

	given_dir();
	pid = process("server");
	c = client();
	CU_ASSERT_EQUAL(ask(c, "one"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "one");
	CU_ASSERT_EQUAL(ask(c, "two"), LINK_OK);
	CU_ASSERT_EQUAL(ask(c, "silent"), LINK_OK);
	while (true) {		/* until the reply is here, unread */
		struct link_wait w = { .client = c };

		if (link_wait(&w, 1, in_ms(10000), -1) != 0)
			break;
	}
	start = clock_mono_us();
	kill_and_wait(pid);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "two");
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "code -2");
	CU_ASSERT_TRUE(clock_mono_us() - start < 1000000);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "code -2");
	CU_ASSERT_EQUAL(ask(c, "three"), LINK_GONE);
	link_client_close(c);
	dir_done();
}

static void
a_hung_server_is_gone_in_time(void)
{
	int usual = link_silence_ms;
	struct link_client *c;
	int64_t start;
	pid_t pid;

	given_dir();
	pid = process("server");
	c = client();
	CU_ASSERT_EQUAL(ask(c, "one"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "one");
	kill(pid, SIGSTOP);
	start = clock_mono_us();
	link_silence_ms = 1400;
	CU_ASSERT_EQUAL(ask(c, "two"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 10000), "code -2");
	CU_ASSERT_TRUE(clock_mono_us() - start >= 1400000 && clock_mono_us() - start < 8000000);
	link_silence_ms = usual;
	kill_and_wait(pid);
	link_client_close(c);
	dir_done();
}

static void	/* Also behind bytes that nobody has read yet. */
who_has_left_is_seen_without_a_word(void)
{
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	struct link_peer peer;

	given_dir();
	s = server();
	c = client();
	CU_ASSERT_EQUAL(ask(c, "one"), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(5000), -1), LINK_OK);
	peer = m.peer;
	link_msg_done(&m);
	CU_ASSERT_FALSE(link_server_left(s, &peer));
	CU_ASSERT_EQUAL(ask(c, "two"), LINK_OK);
	CU_ASSERT_FALSE(link_server_left(s, &peer));
	link_client_close(c);
	CU_ASSERT_TRUE(link_server_left(s, &peer));
	serve_one(s);					/* what it asked is served all the same */
	while (link_server_recv(s, &m, 0, -1) == LINK_OK)
		link_msg_done(&m);
	CU_ASSERT_TRUE(link_server_left(s, &peer));	/* nor is it another that came in its place */
	link_server_close(s);
	dir_done();
}

static void	/* Nobody receives for longer than a hung server is given; the server is alive all the same. */
a_busy_server_is_not_gone(void)
{
	int usual = link_silence_ms;
	struct link_server *s;
	struct link_client *c;

	given_dir();
	link_silence_ms = 1400;
	s = server();
	c = client();
	CU_ASSERT_EQUAL(ask(c, "slow"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 2600), "code -1");
	link_silence_ms = usual;
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "slow");
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static void	/* Between two requests the server came again: the second surely was not sent. */
a_server_that_came_again_is_another_one(void)
{
	struct link_client *c;
	pid_t pid;

	given_dir();
	pid = process("server");
	c = client();
	CU_ASSERT_EQUAL(ask(c, "one"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "one");
	kill_and_wait(pid);
	pid = process("server");
	while (ask(c, "two") == LINK_OK)	/* at once, or as soon as the news is here */
		if (strcmp(hear(c, 5000), "code -2") == 0)
			break;
	link_client_close(c);
	c = client();
	CU_ASSERT_EQUAL(ask(c, "three"), LINK_OK);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "three");
	link_client_close(c);
	kill_and_wait(pid);
	dir_done();
}

/* Who is connected notices nothing; who comes later finds a socket again.  Never in a directory of somebody else's. */
static void
a_socket_file_that_is_taken_away_is_made_again(void)
{
	struct link_server *s;
	struct link_client *old, *new = NULL;
	struct link_msg m;
	struct stat st;

	given_dir();
	s = server();
	old = client();
	ask(old, "one");
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(old, 5000), "one");
	CU_ASSERT_EQUAL(unlink(endpoint + 6), 0);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
	CU_ASSERT_EQUAL(symlink("/tmp", dir), 0);	/* not the directory it was */
	link_server_look(s, true);
	CU_ASSERT_EQUAL(lstat("/tmp/socket", &st), -1);
	CU_ASSERT_EQUAL(unlink(dir), 0);
	CU_ASSERT_EQUAL(mkdir(dir, 0700), 0);
	CU_ASSERT_EQUAL(link_server_recv(s, &m, in_ms(1500), -1), LINK_TIMEOUT);	/* it looks by itself */
	CU_ASSERT_TRUE(lstat(endpoint + 6, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
	new = client();
	ask(new, "two");
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(new, 5000), "two");
	ask(old, "three");
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(old, 5000), "three");
	link_client_close(old);
	link_client_close(new);
	link_server_close(s);
	CU_ASSERT_EQUAL(lstat(endpoint + 6, &st), -1);
	dir_done();
}

static void
a_leftover_socket_is_replaced_and_other_files_are_not(void)
{
	struct link_server *s, *second;
	struct stat st;
	pid_t pid;
	int fd;

	given_dir();
	pid = process("server");
	while (lstat(endpoint + 6, &st) != 0)
		sched_yield();
	kill_and_wait(pid);
	CU_ASSERT_EQUAL(access(endpoint + 6, F_OK), 0);
	s = server();
	CU_ASSERT_EQUAL(link_server_open(endpoint, 0600, &second), LINK_FAIL);	/* not from one who listens */
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_EQUAL(access(endpoint + 6, F_OK), 0);
	link_server_close(s);
	fd = open(endpoint + 6, O_CREAT | O_WRONLY, 0600);
	close(fd);
	CU_ASSERT_EQUAL(link_server_open(endpoint, 0600, &s), LINK_FAIL);
	CU_ASSERT_EQUAL(errno, EEXIST);
	CU_ASSERT_PTR_NULL(s);
	dir_done();
}

static void
the_socket_has_the_mode_of_perm(void)
{
	static const unsigned perms[] = { 0600, 0660, 0666 };
	struct link_server *s;
	struct stat st;

	given_dir();
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(link_server_open(endpoint, perms[i], &s), LINK_OK);
		CU_ASSERT_EQUAL(stat(endpoint + 6, &st), 0);
		CU_ASSERT_EQUAL(st.st_mode & 07777, perms[i]);
		link_server_close(s);
	}
	dir_done();
}

static void
a_path_too_long_for_a_socket_is_said_to_be(void)
{
	struct link_server *s;
	struct link_client *c;
	char path[200];

	given_dir();
	snprintf(path, sizeof path, "ipc://%s/%0*d", dir, 107 - (int)strlen(dir), 0);
	CU_ASSERT_EQUAL(link_server_open(path, 0600, &s), LINK_FAIL);
	CU_ASSERT_EQUAL(errno, ENAMETOOLONG);
	CU_ASSERT_EQUAL(link_client_open(path, &c), LINK_FAIL);
	CU_ASSERT_EQUAL(errno, ENAMETOOLONG);
	path[6 + 107] = '\0';
	CU_ASSERT_EQUAL(link_server_open(path, 0600, &s), LINK_OK);
	link_server_close(s);
	dir_done();
}

/* --- clients that are gone, or slow, or hostile --- */

static void
a_reply_to_a_client_that_left_is_dropped(void)
{
	struct link_server *s;
	struct link_client *c;
	struct link_body b;
	struct link_msg m;
	int rc;

	given_dir();
	s = server();
	c = client();
	CU_ASSERT_EQUAL(ask(c, "one"), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(5000), -1), LINK_OK);
	link_client_close(c);
	released = 0;
	do {			/* until the news of its leaving is here */
		int before = released;

		b = given_body(20000);
		rc = link_server_send(s, &m.peer, "x", 1, &b);
		CU_ASSERT_TRUE(rc == LINK_OK || (rc == LINK_GONE && released > before));
	} while (rc == LINK_OK);
	CU_ASSERT_EQUAL(rc, LINK_GONE);
	link_msg_done(&m);
	link_server_close(s);
	dir_done();
}

static void	/* Two hundred clients, a megabyte for each, read one after the other. */
no_reply_to_a_slow_reader_is_lost(void)
{
	struct link_server *s;
	pid_t pid;

	given_dir();
	s = server();
	pid = process("slow readers");
	for (int i = 0; i < SLOW_READERS * SLOW_EACH; i++)
		serve_one(s);
	CU_ASSERT_EQUAL(exit_status(pid), 0);
	link_server_close(s);
	dir_done();
}

static void	/* One asks for a gigabyte and stops; the other is served, and the server's memory has a bound. */
a_client_that_never_reads_stops_nobody(void)
{
	enum { N = SLEEPER_ASKS };
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	struct link_peer sleeper = { 0 };
	int gone = 0;
	pid_t pid;

	given_dir();
	s = server();
	pid = process("sleeper");
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(10000), -1), LINK_OK);
		sleeper = m.peer;
		link_msg_done(&m);
	}
	CU_ASSERT_EQUAL(link_server_send(s, &sleeper, "x", 1, NULL), LINK_OK);
	waitpid(pid, NULL, WUNTRACED);
	for (int i = 0; i < N; i++) {
		struct link_body b = { .p = calloc(1, 1 << 20), .n = 1 << 20, .release = release };

		gone += link_server_send(s, &sleeper, "x", 1, &b) == LINK_GONE;
	}
	CU_ASSERT_TRUE(gone >= N - 300);
	c = client();
	CU_ASSERT_EQUAL(ask(c, "awake"), LINK_OK);
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "awake");
	kill_and_wait(pid);
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static bool
log_says(const char *what)
{
	char command[256];

	snprintf(command, sizeof command, "grep -q '%s' %s/ULOG.*", what, log_dir);
	return system(command) == 0;
}

static void
messages_of_other_shapes_are_dropped_and_their_sender_named(void)
{
	void *ctx = zmq_ctx_new(), *raw = zmq_socket(ctx, ZMQ_DEALER);
	struct link_server *s;
	struct link_client *c;
	char who[64];

	given_dir();
	s = server();
	snprintf(who, sizeof who, "5 frames from process %ld of user", (long)getpid());
	CU_ASSERT_EQUAL(zmq_connect(raw, endpoint), 0);
	for (int i = 0; i < 5; i++)
		zmq_send(raw, "x", 1, i < 4 ? ZMQ_SNDMORE : 0);
	zmq_send(raw, "", 0, ZMQ_SNDMORE);	/* what a REQ socket would send */
	zmq_send(raw, "x", 1, 0);
	zmq_send(raw, "good", 4, 0);
	serve_one(s);
	CU_ASSERT_TRUE(zmq_recv(raw, who + 60, 4, 0) == 4 && memcmp(who + 60, "good", 4) == 0);
	who[60] = '\0';
	CU_ASSERT_TRUE(log_says(who));
	c = client();
	CU_ASSERT_EQUAL(ask(c, "next"), LINK_OK);
	serve_one(s);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "next");
	link_client_close(c);
	zmq_close(raw);
	zmq_ctx_term(ctx);
	link_server_close(s);
	dir_done();
}

static int
raw_socket(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%.107s", endpoint + 6);
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void
bytes_that_are_no_protocol_are_survived(void)
{
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	unsigned char junk[512];
	bool next;

	given_dir();
	s = server();
	srand(1);
	for (int i = 0; i < 40; i++) {
		int fd = raw_socket();

		for (size_t k = 0; k < sizeof junk; k++)
			junk[k] = (unsigned char)rand();
		if (i % 2) {	/* a greeting that promises the protocol, then junk */
			memset(junk, 0, 64);
			memcpy(junk, "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
		}
		CU_ASSERT_TRUE(send(fd, junk, sizeof junk, MSG_NOSIGNAL) > 0);
		close(fd);
	}
	c = client();
	CU_ASSERT_EQUAL(ask(c, "next"), LINK_OK);
	do {			/* an old dialect has no greeting, so junk may be a message: no frame of ours */
		CU_ASSERT_EQUAL_FATAL(link_server_recv(s, &m, in_ms(10000), -1), LINK_OK);
		answer(s, &m);
		next = m.head_len == 4 && memcmp(m.head, "next", 4) == 0;
		link_msg_done(&m);
	} while (!next);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "next");
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static void *	/* a greeting, and a message where READY should be */
hasty_server(void *arg)
{
	int listener = *(int *)arg, fd;
	char bytes[64 + 7] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";

	memcpy(bytes + 64, "\0\5hasty", 7);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		(void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
		while (recv(fd, bytes + 64, 1, 0) > 0)		/* until the client hangs up */
			memcpy(bytes + 64, "\0\5hasty", 7);
		close(fd);
	}
	return NULL;
}

static void	/* Found by fuzz_link: it took the message for the end of the greeting, and asked for more for ever. */
a_server_that_speaks_before_its_time_does_not_hold_its_client(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct link_client *c;
	pthread_t t;

	given_dir();
	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", endpoint + 6);
	CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	CU_ASSERT_EQUAL_FATAL(listen(listener, 8), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, hasty_server, &listener), 0);
	c = client();
	CU_ASSERT_EQUAL(link_client_send(c, "hello", 5, NULL, in_ms(100)), LINK_TIMEOUT);
	link_client_close(c);
	shutdown(listener, SHUT_RDWR);
	pthread_join(t, NULL);
	close(listener);
	unlink(at.sun_path);
	dir_done();
}

/* --- waiting --- */

static void
no_deadline_no_waiting(void)
{
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	int64_t start;

	given_dir();
	s = server();
	c = client();
	start = clock_mono_us();
	for (int i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(link_server_recv(s, &m, 0, -1), LINK_TIMEOUT);
		CU_ASSERT_EQUAL(link_client_recv(c, &m, 1), LINK_TIMEOUT);
		CU_ASSERT_EQUAL(link_server_recv(s, &m, clock_mono_us() + 30, -1), LINK_TIMEOUT);
	}
	CU_ASSERT_TRUE(clock_mono_us() - start < 5000000);
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static void
a_wait_ends_when_the_wake_fd_is_readable(void)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	struct link_wait w[2] = { { 0 } };

	given_dir();
	s = server();
	c = client();
	w[0].server = s;
	w[1].client = c;
	CU_ASSERT_EQUAL(link_server_recv(s, &m, LINK_FOREVER, fd), LINK_TIMEOUT);
	CU_ASSERT_EQUAL(link_wait(w, 2, LINK_FOREVER, fd), 0);
	CU_ASSERT_EQUAL(ask(c, "x"), LINK_OK);
	while (link_wait(w, 2, LINK_FOREVER, fd) == 0)
		;		/* the message wins over the descriptor once it is here */
	CU_ASSERT_TRUE(w[0].ready && !w[1].ready);
	close(fd);
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

static void
link_wait_tells_which_is_ready(void)
{
	enum { N = 20 };
	struct link_server *s;
	struct link_client *c[N];
	struct link_wait w[N] = { { 0 } };

	given_dir();
	s = server();
	for (int i = 0; i < N; i++)
		w[i].client = c[i] = client();
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(link_wait(w, N, in_ms(2), -1), 0);
		CU_ASSERT_EQUAL(ask(c[i], "x"), LINK_OK);
		serve_one(s);
		CU_ASSERT_EQUAL(link_wait(w, N, in_ms(5000), -1), 1);
		CU_ASSERT_TRUE(w[i].ready);
		CU_ASSERT_STRING_EQUAL(hear(c[i], 0), "x");
	}
	link_server_close(s);
	for (int i = 0; i < N; i++)	/* and all notice that their server left */
		CU_ASSERT_STRING_EQUAL(hear(c[i], 5000), "code -2");
	CU_ASSERT_EQUAL(link_wait(w, N, 0, -1), N);
	for (int i = 0; i < N; i++)
		link_client_close(c[i]);
	dir_done();
}

static void
on_alarm(int sig)
{
	(void)sig;
}

static void
a_signal_ends_a_wait(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec soon = { { 0, 20000000 }, { 0, 20000000 } };
	struct link_server *s;
	struct link_client *c;
	struct link_msg m;
	timer_t timer;

	given_dir();
	s = server();
	c = client();
	sigaction(SIGALRM, &sa, NULL);
	timer_create(CLOCK_MONOTONIC, &ev, &timer);
	timer_settime(timer, 0, &soon, NULL);
	CU_ASSERT_EQUAL(link_server_recv(s, &m, LINK_FOREVER, -1), LINK_INTR);
	CU_ASSERT_EQUAL(link_client_recv(c, &m, LINK_FOREVER), LINK_INTR);
	timer_delete(timer);
	link_client_close(c);
	link_server_close(s);
	dir_done();
}

/* --- processes --- */

#ifndef __SANITIZE_THREAD__
static void
a_child_makes_its_own_and_leaves_its_parents_alone(void)
{
	struct link_server *s;
	struct link_client *c, *mine;
	pid_t pid;

	given_dir();
	s = server();
	c = client();
	CU_ASSERT_EQUAL(ask(c, "parent"), LINK_OK);
	serve_one(s);
	if ((pid = fork()) == 0) {
		link_client_close(c);
		link_server_close(s);
		mine = client();
		if (ask(mine, "child") != LINK_OK || strcmp(hear(mine, 10000), "child") != 0)
			_exit(1);
		link_client_close(mine);
		_exit(0);
	}
	serve_one(s);
	CU_ASSERT_EQUAL(exit_status(pid), 0);
	CU_ASSERT_EQUAL(access(endpoint + 6, F_OK), 0);
	CU_ASSERT_STRING_EQUAL(hear(c, 5000), "parent");
	link_client_close(c);
	link_server_close(s);
	dir_done();
}
#endif

static void	/* Megabytes for a server that hangs: neither close nor exit waits for them. */
an_exit_never_waits_for_unsent_data(void)
{
	static const char *const roles[] = { "closes", "exits" };
	char text[16];
	int64_t start;
	pid_t hung;

	for (int i = 0; i < 2; i++) {
		given_dir();
		hung = process("server");
		snprintf(text, sizeof text, "%ld", (long)hung);
		setenv("HUNG", text, 1);
		start = clock_mono_us();
		CU_ASSERT_EQUAL(exit_status(process(roles[i])), 0);
		CU_ASSERT_TRUE(clock_mono_us() - start < 3000000);
		kill_and_wait(hung);
		dir_done();
	}
}

static void
the_run_directory_is_made_and_checked(void)
{
	static const struct { unsigned perm, mode; } cases[] = {
		{ 0600, 0700 }, { 0660, 0770 }, { 0666, 01777 }, { 0640, 0770 },
	};
	char run[128], other[128];
	struct stat st;

	given_dir();
	snprintf(run, sizeof run, "%s/run", dir);
	snprintf(other, sizeof other, "%s/link", dir);
	CU_ASSERT_EQUAL(link_rundir_check(run, geteuid()), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(link_rundir_make(run, cases[i].perm), 0);
		CU_ASSERT_EQUAL(stat(run, &st), 0);
		CU_ASSERT_EQUAL(st.st_mode & 07777, cases[i].mode);
		CU_ASSERT_EQUAL(link_rundir_check(run, geteuid()), 0);
	}
	if (geteuid() != 0) {
		CU_ASSERT_EQUAL(link_rundir_check(run, geteuid() + 1), -1);
		CU_ASSERT_EQUAL(errno, EPERM);
	}
	CU_ASSERT_EQUAL(chmod(run, 0777), 0);
	CU_ASSERT_EQUAL(link_rundir_check(run, geteuid()), -1);
	CU_ASSERT_EQUAL(symlink(run, other), 0);
	CU_ASSERT_EQUAL(link_rundir_check(other, geteuid()), -1);
	CU_ASSERT_EQUAL(errno, ENOTDIR);
	CU_ASSERT_EQUAL(link_rundir_make(other, 0600), -1);
	dir_done();
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT(requests_are_answered_to_who_asked),
		UNIT(a_server_that_takes_no_more_answers_what_it_has),
		UNIT(many_requests_are_in_flight_at_once),
		UNIT(bodies_of_any_size_pass_and_are_released_once),
		UNIT(replies_under_way_survive_the_close),
		UNIT(nothing_is_queued_for_a_server_that_is_not_there),
		UNIT(a_killed_server_is_gone_after_its_last_reply),
		UNIT(a_hung_server_is_gone_in_time),
		UNIT(a_busy_server_is_not_gone), UNIT(who_has_left_is_seen_without_a_word),
		UNIT(a_server_that_came_again_is_another_one),
		UNIT(a_socket_file_that_is_taken_away_is_made_again),
		UNIT(a_leftover_socket_is_replaced_and_other_files_are_not),
		UNIT(the_socket_has_the_mode_of_perm),
		UNIT(a_path_too_long_for_a_socket_is_said_to_be),
		UNIT(a_reply_to_a_client_that_left_is_dropped),
		UNIT(no_reply_to_a_slow_reader_is_lost),
		UNIT(a_client_that_never_reads_stops_nobody),
		UNIT(messages_of_other_shapes_are_dropped_and_their_sender_named),
		UNIT(bytes_that_are_no_protocol_are_survived),
		UNIT(a_server_that_speaks_before_its_time_does_not_hold_its_client),
		UNIT(no_deadline_no_waiting),
		UNIT(a_wait_ends_when_the_wake_fd_is_readable),
		UNIT(link_wait_tells_which_is_ready),
		UNIT(a_signal_ends_a_wait),
#ifndef __SANITIZE_THREAD__	/* which knows no threads in a child of threads */
		UNIT(a_child_makes_its_own_and_leaves_its_parents_alone),
#endif
		UNIT(an_exit_never_waits_for_unsent_data),
		UNIT(the_run_directory_is_made_and_checked),
	};
	char command[128];
	int rc;

	if (argc == 3) {
		snprintf(endpoint, sizeof endpoint, "%s", argv[2]);
		return play(argv[1]);
	}
	if (mkdtemp(log_dir) == NULL)
		return 2;
	snprintf(command, sizeof command, "%s/ULOG", log_dir);
	setenv("ULOGPFX", command, 1);
	rc = unit_run("link", tests, UNIT_COUNT(tests));
	snprintf(command, sizeof command, "rm -rf %s", log_dir);
	return system(command) == 0 ? rc : 2;
}
