/*
 * bench_forward - from queue through service to reply queue, by TMQFORWARD: 1 KiB, persistent, answers too.
 *
 *     bench_forward QUEUE:PROCESSES:OPTIONS:SERVERS...   kinds, which bench/forward has made; of one only that is measured
 *
 * Three figures for each kind:
 *
 *     backlog   EACH requests become visible at once, by one commit; until TAKERS clients, which take BATCH answers in each
 *               transaction, have committed the last of them.  TMQFORWARD is never short of work: this is what it can do.
 *               (One client would be the limit: an answer is a round trip, and waits for the batch that is being written.)
 *     asked     64 clients that ask, and wait for their answer, again and again.  They are most of the load.
 *     idle      one client, one request at a time: from the call of tpenqueue() to the answer taken, which is two durable
 *               operations of its own; and from the call of tpcommit(), or its return, to the first line of the service.
 *
 * The service does nothing but give back what it got, so what is measured is the way there and back.  Kinds are asked in
 * turn, a slice each, again and again.  Flushes are those of the queue manager, which its own and the clients' operations
 * share.  Processor time is that of a request, in all processes of the name; on few processors their sum is the limit.
 */
#include <pthread.h>
#include <stdbool.h>

#include "atmi.h"
#include "figures.h"
#include "outside.h"

enum { SIZE = 1024, ASKERS = 64, ROUNDS = 5, EACH = 2400, TAKERS = 8, BATCH = 50, ALONE = 100, KINDS = 16, PROCESSES = 64, WAIT = 60 };
static char space[] = "QSPACE", answers[] = "ANSWERS";

enum part { TMQUEUES, FORWARDERS, SERVICES, CLIENT, PARTS };
struct usage { double us[PARTS]; long flushes; };

struct kind {
	char queue[64], options[64];
	int processes, servers;
	struct times asked, answer, from_call, from_return;
	double backlog_rate[ROUNDS], asked_rate[ROUNDS];
	struct usage used;
	long forwarded;			/* of which the usage is */
};
static struct kind kinds[KINDS];
static int n_kinds;

struct asker { pthread_t thread; char *data; struct times times; };
static struct asker askers[ASKERS];
static struct { struct kind *kind; bool backlog; double seconds; } job;
static pthread_barrier_t go, done;

static void
die(const char *what, const TPQCTL *ctl)
{
	fprintf(stderr, "bench_forward: %s: %s", what, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, ", diagnostic %ld", ctl->diagnostic);
	fprintf(stderr, "\n");
	exit(1);
}

static void
join(void)
{
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));

	init->flags = TPMULTICONTEXTS;
	if (tpinit(init) == -1)
		die("tpinit", NULL);
	tpfree((char *)init);
}

/* --- a request, an answer --- */

static void
ask(char *queue, TPQCTL *ctl, char *data)
{
	memset(ctl, 0, sizeof *ctl);
	ctl->flags = TPQMSGID | TPQREPLYQ;
	memcpy(ctl->replyqueue, answers, sizeof answers);
	if (tpenqueue(space, queue, ctl, data, SIZE, 0) == -1)
		die("tpenqueue", ctl);
}

static void	/* asked: the request; NULL: any answer will do */
take(const TPQCTL *asked, char **data)
{
	TPQCTL ctl = { .flags = TPQWAIT };
	long len;

	if (asked != NULL) {
		ctl.flags |= TPQGETBYCORRID;
		memcpy(ctl.corrid, asked->msgid, sizeof ctl.corrid);
	}
	if (tpdequeue(space, answers, &ctl, data, &len, TPNOTIME) == -1)
		die("tpdequeue", &ctl);
	if (len != SIZE) {
		fprintf(stderr, "bench_forward: an answer of %ld bytes\n", len);
		exit(1);
	}
}

static void
begin(void)
{
	if (tpbegin(WAIT, 0) == -1)
		die("tpbegin", NULL);
}

static void
commit(void)
{
	if (tpcommit(0) == -1)
		die("tpcommit", NULL);
}

/* --- what was used --- */

static double
program_us(const char *program)
{
	pid_t pid[PROCESSES];
	double us = 0;

	for (int n = program_pids(program, pid, PROCESSES); n-- > 0;)
		us += cpu_us(pid[n]);
	return us;
}

static void	/* sign -1 at the begin, 1 at the end */
use(struct usage *u, int sign)
{
	u->us[TMQUEUES] += sign * program_us("TMQUEUE");
	u->us[FORWARDERS] += sign * program_us("TMQFORWARD");
	u->us[SERVICES] += sign * program_us("forward_service");
	u->us[CLIENT] += sign * cpu_us(getpid());
	u->flushes += sign * flushes(space);
}

/* --- the three figures --- */

static void	/* a part of the answers of a backlog */
take_many(struct asker *a)
{
	for (int i = 0; i < EACH / TAKERS; i += BATCH) {
		begin();
		for (int b = 0; b < BATCH; b++)
			take(NULL, &a->data);
		commit();
	}
}

static void
ask_again_and_again(struct asker *a)
{
	double at = now_s(), until = at + job.seconds, start;
	TPQCTL ctl;

	while (at < until) {
		start = at;
		ask(job.kind->queue, &ctl, a->data);
		take(&ctl, &a->data);
		at = now_s();
		times_add(&a->times, (at - start) * 1e6);
	}
}

static void *
asker(void *arg)
{
	struct asker *a = arg;

	join();
	a->data = tpalloc("CARRAY", NULL, SIZE);
	memset(a->data, 'a', SIZE);
	for (;;) {
		pthread_barrier_wait(&go);
		if (job.kind == NULL)
			break;
		if (!job.backlog)
			ask_again_and_again(a);
		else if (a - askers < TAKERS)
			take_many(a);
		pthread_barrier_wait(&done);
	}
	tpfree(a->data);
	tpterm();
	return NULL;
}

static double	/* requests a second */
backlog(struct kind *k, char *data)
{
	TPQCTL ctl;
	double start;

	begin();
	for (int i = 0; i < EACH; i++)
		ask(k->queue, &ctl, data);
	use(&k->used, -1);
	job.kind = k;
	job.backlog = true;
	commit();
	start = now_s();	/* nothing was visible before; some requests may be forwarded already */
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	start = now_s() - start;
	use(&k->used, 1);
	k->forwarded += EACH;
	return EACH / start;
}

static double
asked(struct kind *k, double seconds)
{
	double start = now_s();
	size_t n = k->asked.n;

	job.kind = k;
	job.backlog = false;
	job.seconds = seconds;
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	start = now_s() - start;
	for (int i = 0; i < ASKERS; i++) {
		times_add_all(&k->asked, &askers[i].times);
		times_clear(&askers[i].times);
	}
	return (double)(k->asked.n - n) / start;
}

static double
service_began_s(const char *data)
{
	struct timespec t;

	memcpy(&t, data, sizeof t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
alone(struct kind *k, char **data)
{
	for (int i = 0; i < ALONE; i++) {
		double start = now_s(), call, back;
		TPQCTL ctl;

		ask(k->queue, &ctl, *data);
		take(&ctl, data);
		times_add(&k->answer, (now_s() - start) * 1e6);
		begin();
		ask(k->queue, &ctl, *data);
		call = now_s();
		commit();
		back = now_s();
		take(&ctl, data);
		times_add(&k->from_call, (service_began_s(*data) - call) * 1e6);
		times_add(&k->from_return, (service_began_s(*data) - back) * 1e6);
	}
}

/* --- all kinds --- */

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v)
{
	qsort(v, ROUNDS, sizeof *v, by_value);
	return v[ROUNDS / 2];
}

static void
print_kind(struct kind *k)
{
	double each = (double)k->forwarded;

	printf("%d x %-8s %d server%s  backlog %6.0f/s   asked by %d %6.0f/s, p50 %6.0f us, p99 %6.0f us   idle: answer p50 %5.0f us, p99 %5.0f us; "
	       "service after tpcommit is called p50 %5.0f us, p99 %5.0f us, after it returns %5.0f us   of a request in the backlog: "
	       "%.3f flushes; processor: TMQUEUE %5.1f us, TMQFORWARD %5.1f us, service %5.1f us, client %5.1f us\n",
	    k->processes, k->options, k->servers, k->servers == 1 ? " " : "s", median(k->backlog_rate), ASKERS, median(k->asked_rate),
	    times_percentile(&k->asked, 50), times_percentile(&k->asked, 99), times_percentile(&k->answer, 50),
	    times_percentile(&k->answer, 99), times_percentile(&k->from_call, 50), times_percentile(&k->from_call, 99),
	    times_percentile(&k->from_return, 50), (double)k->used.flushes / each, k->used.us[TMQUEUES] / each,
	    k->used.us[FORWARDERS] / each, k->used.us[SERVICES] / each, k->used.us[CLIENT] / each);
	fflush(stdout);
}

static void
kind_add(const char *text)
{
	struct kind *k = &kinds[n_kinds];

	if (n_kinds == KINDS || sscanf(text, "%63[^:]:%d:%63[^:]:%d", k->queue, &k->processes, k->options, &k->servers) != 4) {
		fprintf(stderr, "bench_forward: %s: not QUEUE:PROCESSES:OPTIONS:SERVERS\n", text);
		exit(1);
	}
	for (char *p = k->options; *p != '\0'; p++)
		*p = *p == '_' ? ' ' : *p;
	n_kinds++;
}

int
main(int argc, char **argv)
{
	char *data = tpalloc("CARRAY", NULL, SIZE);
	double seconds = bench_seconds(1);

	for (int i = 1; i < argc; i++)
		kind_add(argv[i]);
	memset(data, 'x', SIZE);
	pthread_barrier_init(&go, NULL, ASKERS + 1);
	pthread_barrier_init(&done, NULL, ASKERS + 1);
	for (int i = 0; i < ASKERS; i++)
		if (pthread_create(&askers[i].thread, NULL, asker, &askers[i]) != 0)
			die("pthread_create", NULL);
	join();
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < n_kinds; i++) {
			struct kind *k = &kinds[(i + round) % n_kinds];

			k->backlog_rate[round] = backlog(k, data);
			k->asked_rate[round] = asked(k, seconds / ROUNDS);
			alone(k, &data);
		}
	for (int i = 0; i < n_kinds; i++)
		print_kind(&kinds[i]);
	job.kind = NULL;
	pthread_barrier_wait(&go);
	for (int i = 0; i < ASKERS; i++)
		pthread_join(askers[i].thread, NULL);
	tpfree(data);
	tpterm();
	return 0;
}
