/*
 * bench_tx - transactions: one message is taken from a queue and one put on another, at 1, 8 and 64 in flight, 1 KiB each.
 *
 *     bench_tx               in one space; over two spaces, waiting for all groups, and only for the decision (TP_CMT_LOGGED)
 *     bench_tx KIND N        one kind (one, two, logged) with N in flight, for BENCH_SECONDS: for a profile
 *
 * Each client moves messages to and fro: so the queues stay as long as they are, and where there are two spaces each is the
 * coordinator of half of the transactions.  A transaction is four calls and three round trips.  Flushes are those of all
 * spaces, counted by their queue managers; the removal of a decision record is written with whatever is flushed next, or
 * after a while, so it counts where somebody waited for it or not.  Processor time is that of the TMQUEUEs, and of this program.
 *
 * What is compared is asked in turn, a slice each, again and again.  bench/run makes the system.
 */
#include <pthread.h>
#include <stdbool.h>

#include "atmi.h"
#include "figures.h"
#include "outside.h"

enum { SIZE = 1024, MOST = 64, ROUNDS = 4, EACH = 40, SERVERS = 4 };
enum kind { ONE, TWO, LOGGED, KINDS };
static const char *const names[KINDS] = { "one space", "two spaces", "two, logged" };
static const char *const words[KINDS] = { "one", "two", "logged" };
static char *const space[2] = { (char *)"QSPACE", (char *)"QSPACE2" };
static char *const queue[2] = { (char *)"PING", (char *)"PONG" };

struct client { pthread_t thread; bool turn; char *data; struct times all, step[3]; };
static struct client clients[MOST];
static struct { enum kind kind; int n; double seconds; bool fill; } job;
static pthread_barrier_t go, done;

struct result { struct times all, step[3]; double tmqueue_us, client_us; long flushes; };

static void
die(const char *what, const TPQCTL *ctl)
{
	fprintf(stderr, "bench_tx: %s: %s", what, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, ", diagnostic %ld", ctl->diagnostic);
	fprintf(stderr, "\n");
	exit(1);
}

/* --- clients --- */

static void
put(struct client *c, int where)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	if (tpenqueue(space[job.kind == ONE ? 0 : where], queue[where], &ctl, c->data, SIZE, 0) == -1)
		die("tpenqueue", &ctl);
}

static void
take(struct client *c, int where)
{
	TPQCTL ctl = { .flags = TPQWAIT };	/* TP_CMT_LOGGED: the other space may be behind */
	long len;

	if (tpdequeue(space[job.kind == ONE ? 0 : where], queue[where], &ctl, &c->data, &len, 0) == -1)
		die("tpdequeue", &ctl);
}

static double	/* the time now, after this step */
step_done(struct times *t, double since)
{
	double now = now_s();

	times_add(t, (now - since) * 1e6);
	return now;
}

static double
move_one(struct client *c)
{
	double start = now_s(), at = start;

	if (tpbegin(60, 0) == -1)
		die("tpbegin", NULL);
	take(c, c->turn);
	at = step_done(&c->step[0], at);
	put(c, !c->turn);
	at = step_done(&c->step[1], at);
	if (tpcommit(0) == -1)
		die("tpcommit", NULL);
	at = step_done(&c->step[2], at);
	c->turn = !c->turn;
	times_add(&c->all, (at - start) * 1e6);
	return at;
}

static void
work_once(struct client *c)
{
	double until = now_s() + job.seconds;

	if (job.fill) {
		for (int i = 0; i < EACH; i++)
			put(c, i % 2);
		return;
	}
	if (tpscmt(job.kind == LOGGED ? TP_CMT_LOGGED : TP_CMT_COMPLETE) == -1)
		die("tpscmt", NULL);
	while (move_one(c) < until)
		;
}

static void *
work(void *arg)
{
	struct client *c = arg;
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	init->flags = TPMULTICONTEXTS;
	c->data = tpalloc("CARRAY", NULL, SIZE);
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	memset(c->data, 'x', SIZE);
	for (;;) {
		pthread_barrier_wait(&go);
		if (job.n == 0)
			break;
		if (c - clients < job.n)
			work_once(c);
		pthread_barrier_wait(&done);
	}
	tpfree(c->data);
	tpfree((char *)init);
	tpterm();
	return NULL;
}

static double	/* how long it took */
run(enum kind kind, int n, double seconds, bool fill)
{
	double start = now_s();

	job.kind = kind;
	job.n = n;
	job.seconds = seconds;
	job.fill = fill;
	pthread_barrier_wait(&go);
	if (n > 0)
		pthread_barrier_wait(&done);
	return now_s() - start;
}

/* --- figures --- */

static double
all_tmqueues_us(void)
{
	pid_t pid[SERVERS];
	double us = 0;

	for (int n = tmqueue_pids(pid, SERVERS); n-- > 0;)
		us += cpu_us(pid[n]);
	return us;
}

static long
all_flushes(void)
{
	long a = flushes(space[0]), b = flushes(space[1]);

	return (a > 0 ? a : 0) + (b > 0 ? b : 0);
}

static void
slice(enum kind kind, int n, double seconds, struct result *r)
{
	long flushed = all_flushes();
	double tmqueue = all_tmqueues_us(), client = cpu_us(getpid());

	r->all.seconds += run(kind, n, seconds, false);
	r->tmqueue_us += all_tmqueues_us() - tmqueue;
	r->client_us += cpu_us(getpid()) - client;
	r->flushes += all_flushes() - flushed;
	for (int i = 0; i < n; i++) {
		times_add_all(&r->all, &clients[i].all);
		times_clear(&clients[i].all);
		for (int k = 0; k < 3; k++) {
			times_add_all(&r->step[k], &clients[i].step[k]);
			times_clear(&clients[i].step[k]);
		}
	}
}

static void
print_result(enum kind kind, int n, struct result *r)
{
	double each = (double)r->all.n;

	printf("%-12s %2d in flight: %7.0f transactions/s   p50 %6.0f us   p99 %6.0f us   p50 of dequeue %5.0f, enqueue %5.0f, commit %5.0f us   "
	       "%.3f flushes/transaction   processor: TMQUEUE %5.1f us, client %5.1f us\n", names[kind], n, times_rate(&r->all),
	    times_percentile(&r->all, 50), times_percentile(&r->all, 99), times_percentile(&r->step[0], 50),
	    times_percentile(&r->step[1], 50), times_percentile(&r->step[2], 50), (double)r->flushes / each, r->tmqueue_us / each,
	    r->client_us / each);
	fflush(stdout);
	times_clear(&r->all);
	for (int k = 0; k < 3; k++)
		times_clear(&r->step[k]);
	r->tmqueue_us = r->client_us = 0;
	r->flushes = 0;
}

static void
all_of_it(double seconds)
{
	static const int in_flight[] = { 1, 8, 64 };
	static struct result r[KINDS];

	for (size_t i = 0; i < sizeof in_flight / sizeof *in_flight; i++) {
		for (int round = 0; round < ROUNDS; round++)
			for (int k = 0; k < KINDS; k++)
				slice((enum kind)((k + round) % KINDS), in_flight[i], seconds / ROUNDS, &r[(k + round) % KINDS]);
		for (int k = 0; k < KINDS; k++)
			print_result((enum kind)k, in_flight[i], &r[k]);
	}
}

static void
one_kind(const char *word, int n, double seconds)
{
	static struct result r;

	for (int k = 0; k < KINDS; k++)
		if (strcmp(words[k], word) == 0 && n >= 1 && n <= MOST) {
			slice((enum kind)k, n, seconds, &r);
			print_result((enum kind)k, n, &r);
		}
}

int
main(int argc, char **argv)
{
	pthread_barrier_init(&go, NULL, MOST + 1);
	pthread_barrier_init(&done, NULL, MOST + 1);
	for (int i = 0; i < MOST; i++)
		if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
			die("pthread_create", NULL);
	run(ONE, MOST, 0, true);
	run(TWO, MOST, 0, true);
	if (argc > 2)
		one_kind(argv[1], atoi(argv[2]), bench_seconds(1));
	else
		all_of_it(bench_seconds(1));
	run(ONE, 0, 0, false);
	for (int i = 0; i < MOST; i++)
		pthread_join(clients[i].thread, NULL);
	return 0;
}
