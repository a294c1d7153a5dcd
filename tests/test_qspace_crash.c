/*
 * kill -9 while the engine writes: what was acknowledged is there, in order and once; the batch that was cut off
 * happened whole or not at all.
 *
 * The child moves numbered messages from "in" to "out" and takes them from there, so three numbers tell all: "out"
 * holds [taken, moved), "in" holds [moved, made); `prepared` is 1 while message `moved` is held by a branch in doubt.
 * Before each batch it says where the batch would lead, after the commit that it is there.
 */
#include <signal.h>
#include <sys/wait.h>

#include "given_space.h"

struct state { int taken, moved, made, prepared; };
struct say {
	char what;
	struct state s;
}; /* 'R' found at start, 'I' intended, 'D' done; a pipe write of this size is atomic */

enum { LIVES = 40 };
static int pipe_to;

static void
say(char what, struct state s)
{
	struct say m = { .what = what, .s = s };

	if (write(pipe_to, &m, sizeof m) != (ssize_t)sizeof m)
		_exit(3);
}

#define MUST(x) do { if (!(x)) { fprintf(stderr, "child, line %d: %s\n", __LINE__, #x); _exit(4); } } while (0)

static int
head_of(struct qspace *qs, const char *queue)
{
	struct qselect look = { .flags = TPQPEEK };
	struct qmsg *m;
	int n;

	if (qspace_dequeue(qs, NULL, queue, &look, &m) != 0)
		return -1;
	n = atoi((const char *)m->body);
	qmsg_free(m);
	return n;
}

static struct state
state_of(struct qspace *qs)
{
	struct queue_stat in, out, np;
	struct branch_info *list;
	struct state s;
	size_t n;

	MUST(qspace_batch_begin(qs) == 0);
	MUST(qspace_queue_get(qs, "in", NULL, &in) == 0 && qspace_queue_get(qs, "out", NULL, &out) == 0);
	MUST(qspace_queue_get(qs, "np", NULL, &np) == 0 && np.np_messages == 0 && np.messages == 0);
	MUST(qspace_branch_list(qs, &list, &n) == 0 && n <= 1);
	free(list);
	s.prepared = (int)n;
	s.moved = head_of(qs, "in") - s.prepared;
	s.made = s.moved + (int)in.messages;
	s.taken = s.moved - (int)out.messages;
	MUST(out.messages == 0 || head_of(qs, "out") == s.taken);
	MUST(in.held == s.prepared && out.held == 0);
	MUST(qspace_batch_commit(qs) == 0);
	return s;
}

static void
make(struct qspace *qs, struct branch *b, const char *queue, int n, int r)
{
	char body[6000];
	struct qmsg_in in;
	uint8_t id[TMMSGIDLEN];

	snprintf(body, sizeof body, "%-*d", r % 5 == 0 ? 5000 : r % 300, n);
	in = text(body);
	if (r % 3 == 0) {
		in.flags |= TPQCORRID | TPQEXPTIME_REL;
		in.exp_time = 86400;
	}
	MUST(qspace_enqueue(qs, b, queue, &in, id) == 0);
}

static void
get(struct qspace *qs, struct branch *b, const char *queue, int want)
{
	struct qmsg *m;

	MUST(qspace_dequeue(qs, b, queue, NULL, &m) == 0);
	MUST(atoi((const char *)m->body) == want);
	qmsg_free(m);
}

static void
life(const char *device, unsigned r)
{
	struct branch_id id = { 2, "tx" };
	struct qmsg_in np = text("lost in a crash");
	uint8_t msgid[TMMSGIDLEN];
	struct branch *b;
	struct qspace *qs;
	struct state s;

	MUST(qspace_open(device, "QS", NULL, &qs, NULL) == 0);
	s = state_of(qs);
	say('R', s);
	np.flags = TPQDELIVERYQOS;
	np.delivery_qos = TPQQOSNONPERSISTENT;
	for (;;) {
		r = r * 1103515245 + 12345;
		MUST(qspace_batch_begin(qs) == 0);
		MUST(qspace_enqueue(qs, NULL, "np", &np, msgid) == 0 || true);
		for (int i = 0, n = 1 + (int)(r >> 16) % 8; i < n && s.made - s.taken < 500; i++)
			make(qs, NULL, "in", s.made++, (int)(r >> 8) + i);
		if (s.prepared) {
			MUST((b = qspace_branch_find(qs, &id)) != NULL);
			if (r >> 20 & 1) {
				MUST(qspace_branch_commit(qs, b) == 0);
				s.moved++;
			} else
				MUST(qspace_branch_rollback(qs, b) == 0);
			s.prepared = 0;
		} else if (s.made - s.moved > 5) {
			MUST(qspace_branch_begin(qs, &id, 0, &b) == 0);
			get(qs, b, "in", s.moved);
			make(qs, b, "out", s.moved, (int)(r >> 8));
			switch (r >> 20 & 3) {
			case 0:
				MUST(qspace_branch_rollback(qs, b) == 0);
				break;
			case 1:
				MUST(qspace_branch_prepare(qs, b, "G") == 0);
				s.prepared = 1;
				break;
			default:
				MUST(qspace_branch_commit(qs, b) == 0);
				s.moved++;
			}
		}
		for (int n = (int)(r >> 24) % 4; n > 0 && s.taken < s.moved; n--)
			get(qs, NULL, "out", s.taken++);
		say('I', s);
		MUST(qspace_batch_commit(qs) == 0);
		say('D', s);
	}
}

static bool
same(struct state a, struct state b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

/* One life of the child, cut off after some acknowledgements.  *done and *meant are what may be found next. */
static long
live_and_die(const char *device, unsigned r, struct state *done, struct state *meant)
{
	int fds[2], acks = 1 + (int)(r >> 16) % 200, status;
	struct say m;
	long n = 0;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	if ((pid = fork()) == 0) {
		close(fds[0]);
		pipe_to = fds[1];
		life(device, r);
	}
	close(fds[1]);
	while (read(fds[0], &m, sizeof m) == (ssize_t)sizeof m) {
		if (m.what == 'R') {
			CU_ASSERT_TRUE(same(m.s, *done) || same(m.s, *meant));
			*done = *meant = m.s;
		} else if (m.what == 'I') {
			*meant = m.s;
		} else {
			*done = m.s;
			n++;
		}
		if (n == acks)		/* what it has said since is still in the pipe, and is read */
			kill(pid, SIGKILL);
	}
	close(fds[0]);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return n;
}

static void
nothing_acknowledged_is_lost_and_nothing_comes_twice(void)
{
	struct given_space *g = given_space(NULL);
	struct state done = { 0, 0, 3, 0 }, meant = done, found;
	unsigned r = (unsigned)getpid();
	long acks = 0;

	create_fifo(g, "in", 1000000, 0);
	create_fifo(g, "out", 1000000, 0);
	create_fifo(g, "np", 0, 0);
	for (int i = 0; i < 3; i++)
		put(g, "in", i == 0 ? "0" : i == 1 ? "1" : "2");
	qspace_close(g->qs);
	g->qs = NULL;
	for (int i = 0; i < LIVES; i++) {
		r = r * 1103515245 + 12345;
		acks += live_and_die(g->device, r, &done, &meant);
	}
	given_open(g);
	found = state_of(g->qs);
	CU_ASSERT_TRUE(same(found, done) || same(found, meant));
	if (found.prepared)
		CU_ASSERT_EQUAL(tx_roll_back(g, find_tx(g, "tx")), 0);
	for (int i = found.taken; i < found.made; i++)
		CU_ASSERT_EQUAL(atoi(next(g, i < found.moved ? "out" : "in")), i);
	CU_ASSERT_STRING_EQUAL(next(g, "in"), "");
	CU_ASSERT_STRING_EQUAL(next(g, "out"), "");
	CU_ASSERT_EQUAL(stat_of(g, "in").bytes, 0);
	CU_ASSERT_EQUAL(stat_of(g, "out").blocks, 0);
	printf("(%d kills, %ld batches acknowledged) ", LIVES, acks);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(nothing_acknowledged_is_lost_and_nothing_comes_twice),
	};
	return unit_run("qspace crash", tests, UNIT_COUNT(tests));
}
