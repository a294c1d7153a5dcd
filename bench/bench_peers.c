/*
 * bench_peers - the same work by us, by PostgreSQL and by Redis: N clients, one call in flight each, bodies of 1 KiB, each
 * call confirmed when it is on the disk.
 *
 *     bench_peers            PEER_PG: connection string of a PostgreSQL server; PEER_REDIS: socket path of a Redis server
 *
 * PostgreSQL  INSERT one row; DELETE the first row that nobody has locked, RETURNING it; synchronous_commit on
 *             a transaction: BEGIN, that DELETE, an INSERT in another table, COMMIT: four round trips, and three of ours
 * Redis       LPUSH and RPOP on a list; appendfsync always.  RPOP is at most once: what a client took and lost is gone
 *
 * The three are asked in turn, a slice each, again and again.  Ratios are ours to theirs.  bench/peers starts the servers.
 */
#include <errno.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "atmi.h"
#include "figures.h"

enum { SIZE = 1024, MOST = 64, ROUNDS = 4 };
enum who { OURS, POSTGRES, REDIS, N_PEERS };
enum what { PUT, TAKE, MOVE };	/* MOVE: take one and put it elsewhere, in one transaction */
static const char *const names[N_PEERS] = { "atmiq", "PostgreSQL", "Redis" };

struct client {
	pthread_t thread;
	enum who who;
	enum what what;
	long put;
	double seconds;
	struct times times;
	PGconn *pg;
	int redis;
	char *data;
	pthread_barrier_t *go;
};

static void
fail(const char *who, const char *what)
{
	fprintf(stderr, "bench_peers: %s: %s\n", who, what);
	exit(1);
}

/* --- ours --- */

static void
ours_call(struct client *c)
{
	char *to = c->what == MOVE ? "SIDE" : "SHORT";
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long len = SIZE;

	if ((c->what == MOVE && tpbegin(60, 0) == -1) ||
	    (c->what != PUT && tpdequeue("QSPACE", "SHORT", &ctl, &c->data, &len, 0) == -1))
		fail(names[OURS], tpstrerror(tperrno));
	ctl.flags = TPNOFLAGS;
	if ((c->what != TAKE && tpenqueue("QSPACE", to, &ctl, c->data, SIZE, 0) == -1) || (c->what == MOVE && tpcommit(0) == -1))
		fail(names[OURS], tpstrerror(tperrno));
}

/* --- PostgreSQL --- */

static void
pg_open(struct client *c)
{
	PGresult *r;

	c->pg = PQconnectdb(getenv("PEER_PG"));
	if (PQstatus(c->pg) != CONNECTION_OK)
		fail(names[POSTGRES], PQerrorMessage(c->pg));
	r = PQprepare(c->pg, "put", "INSERT INTO q (body) VALUES ($1)", 1, NULL);
	PQclear(r);
	r = PQprepare(c->pg, "aside", "INSERT INTO q2 (body) VALUES ($1)", 1, NULL);
	PQclear(r);
	r = PQprepare(c->pg, "take",
	    "DELETE FROM q WHERE id = (SELECT id FROM q ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING body", 0, NULL);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		fail(names[POSTGRES], PQerrorMessage(c->pg));
	PQclear(r);
}

static void
pg_put(struct client *c, const char *statement, const char *body)
{
	int length[1] = { SIZE }, binary[1] = { 1 };
	PGresult *r = PQexecPrepared(c->pg, statement, 1, &body, length, binary, 1);

	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		fail(names[POSTGRES], PQerrorMessage(c->pg));
	PQclear(r);
}

static PGresult *
pg_take(struct client *c)
{
	PGresult *r = PQexecPrepared(c->pg, "take", 0, NULL, NULL, NULL, 1);

	if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
		fail(names[POSTGRES], PQresultStatus(r) == PGRES_TUPLES_OK ? "nothing to take" : PQerrorMessage(c->pg));
	return r;
}

static void
pg_do(struct client *c, const char *command)
{
	PGresult *r = PQexec(c->pg, command);

	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		fail(names[POSTGRES], PQerrorMessage(c->pg));
	PQclear(r);
}

static void
pg_call(struct client *c)
{
	PGresult *r;

	if (c->what == PUT) {
		pg_put(c, "put", c->data);
		return;
	}
	if (c->what == MOVE)
		pg_do(c, "BEGIN");
	r = pg_take(c);
	if (c->what == MOVE) {
		pg_put(c, "aside", PQgetvalue(r, 0, 0));
		pg_do(c, "COMMIT");
	}
	PQclear(r);
}

/* --- Redis --- */

static void
redis_open(struct client *c)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("PEER_REDIS"));
	if ((c->redis = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 || connect(c->redis, (struct sockaddr *)&to, sizeof to) != 0)
		fail(names[REDIS], strerror(errno));
}

static void
redis_call(struct client *c)
{
	static const char pop[] = "*2\r\n$4\r\nRPOP\r\n$1\r\nq\r\n";
	char out[SIZE + 128], in[SIZE + 128];
	size_t n = 0, want;
	ssize_t got;

	if (c->what == TAKE) {
		n = sizeof pop - 1;
		memcpy(out, pop, n);
	} else {
		n = (size_t)snprintf(out, sizeof out, "*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$%d\r\n", SIZE);
		memcpy(out + n, c->data, SIZE);
		memcpy(out + n + SIZE, "\r\n", 2);
		n += SIZE + 2;
	}
	if (send(c->redis, out, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail(names[REDIS], strerror(errno));
	want = c->what == TAKE ? sizeof "$1024\r\n" - 1 + SIZE + 2 : 0;
	for (n = 0; n < want || n < 3 || in[n - 1] != '\n'; n += (size_t)got)
		if ((got = recv(c->redis, in + n, sizeof in - n, 0)) <= 0)
			fail(names[REDIS], "the connection ended");
		else if (in[0] != (c->what == TAKE ? '$' : ':') || (c->what == TAKE && n + (size_t)got >= 2 && in[1] == '-'))
			fail(names[REDIS], in[0] == '-' ? "it answers with an error" : "nothing to take");
}

/* --- in turn --- */

static void
one_call(struct client *c)
{
	c->who == OURS ? ours_call(c) : c->who == POSTGRES ? pg_call(c) : redis_call(c);
}

static void *
work(void *arg)
{
	struct client *c = arg;
	double start, before, after;

	if (c->who == OURS) {
		TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
		init->flags = TPMULTICONTEXTS;
		if (tpinit(init) == -1)
			fail(names[OURS], tpstrerror(tperrno));
		tpfree((char *)init);
	} else if (c->who == POSTGRES)
		pg_open(c);
	else
		redis_open(c);
	c->data = tpalloc("CARRAY", NULL, SIZE);
	memset(c->data, 'x', SIZE);
	pthread_barrier_wait(c->go);
	pthread_barrier_wait(c->go);		/* the clock starts */
	start = after = now_s();
	for (long i = 0; c->what != PUT ? i < c->put : after - start < c->seconds; i++) {
		before = now_s();
		one_call(c);
		after = now_s();
		times_add(&c->times, (after - before) * 1e6);
	}
	if (c->what == PUT)
		c->put = (long)c->times.n;
	pthread_barrier_wait(c->go);
	tpfree(c->data);
	if (c->who == OURS)
		tpterm();
	else if (c->who == POSTGRES)
		PQfinish(c->pg);
	else
		close(c->redis);
	return NULL;
}

static struct client clients[N_PEERS][MOST];

static void
slice(enum who who, int n, enum what what, double seconds, struct times *t)
{
	pthread_barrier_t go;
	double start;

	pthread_barrier_init(&go, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		struct client *c = &clients[who][i];
		c->who = who;
		c->what = what;
		c->seconds = seconds;
		c->go = &go;
		times_clear(&c->times);
		if (pthread_create(&c->thread, NULL, work, c) != 0)
			fail("pthread_create", strerror(errno));
	}
	pthread_barrier_wait(&go);		/* all are connected */
	start = now_s();
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&go);
	t->seconds += now_s() - start;
	for (int i = 0; i < n; i++) {
		pthread_join(clients[who][i].thread, NULL);
		times_add_all(t, &clients[who][i].times);
	}
	pthread_barrier_destroy(&go);
}

static void
print_row(const char *what, int n, const bool *there, struct times *t)
{
	for (int who = 0; who < N_PEERS; who++) {
		if (!there[who] || t[who].n == 0)
			continue;
		printf("%-11s %2d clients  %-10s %8.0f/s   p50 %6.0f us   p99 %6.0f us", what, n, names[who], times_rate(&t[who]),
		    times_percentile(&t[who], 50), times_percentile(&t[who], 99));
		if (who != OURS)
			printf("   ours/theirs: rate %.2f, p50 %.2f, p99 %.2f", times_rate(&t[OURS]) / times_rate(&t[who]),
			    times_percentile(&t[OURS], 50) / times_percentile(&t[who], 50),
			    times_percentile(&t[OURS], 99) / times_percentile(&t[who], 99));
		printf("\n");
	}
	for (int who = 0; who < N_PEERS; who++)
		times_clear(&t[who]);
	fflush(stdout);
}

int
main(void)
{
	static const int ns[] = { 1, 8, 64 };
	static struct times in[N_PEERS], out[N_PEERS], again[N_PEERS], moved[N_PEERS], probe;
	const bool there[N_PEERS] = { true, getenv("PEER_PG") != NULL, getenv("PEER_REDIS") != NULL };
	double seconds = bench_seconds(2) / ROUNDS;

	disk_probe(getenv("APPDIR"), SIZE, 0.3, &probe);
	printf("bare disk: %.0f writes and flushes/s, p50 %.0f us\n", times_rate(&probe), times_percentile(&probe, 50));
	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
		for (int round = 0; round < ROUNDS; round++)
			for (int k = 0; k < N_PEERS; k++) {
				int who = (k + round) % N_PEERS;
				if (!there[who])
					continue;
				slice((enum who)who, ns[i], PUT, seconds, &in[who]);
				slice((enum who)who, ns[i], TAKE, 0, &out[who]);
				if (who == REDIS)
					continue;	/* has no such transaction */
				slice((enum who)who, ns[i], PUT, seconds / 2, &again[who]);
				slice((enum who)who, ns[i], MOVE, 0, &moved[who]);
			}
		print_row("enqueue", ns[i], there, in);
		print_row("dequeue", ns[i], there, out);
		print_row("transaction", ns[i], there, moved);
	}
	return 0;
}
