/*
 * given_serve - the system, the killing, the sum.
 */
#include "given_serve.h"
#include "given_serve_service.h"
#include "given_impl.h"

#include <spawn.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 4
#define SEQS 100000
#define SERVERS 4
#define FORWARDERS 5
#define BACK_S 20
#define GO_ON_S 40
#define MANY_KILLS 2000
#define TRAN_US INT64_C(3000000)	/* -t of TMQFORWARD: so long a request may wait for its service, its queue manager dead already */

struct fate {
	uint8_t sent, taken, maybe_taken, left, failed, dead, side, attempts;
	char queue;
	int64_t first_us, last_us;
};
enum known { NEVER = 0, YES, NO, UNKNOWN };

struct scene {
	struct given *g;
	pid_t client[CLIENTS];
	unsigned seed;
	struct fate (*fates)[SEQS];
	int64_t queue_kill_us[MANY_KILLS];	/* of the queue manager that counts the retries */
	int n_queue_kills, kills[5];
	long sent, answered, failed, dead, attempts, wrong;
};

int
serve_kills(int otherwise)
{
	const char *s = getenv("CRASH_KILLS");

	return s != NULL && atoi(s) > 0 ? atoi(s) : otherwise;
}

/* --- the system --- */

#define AGAIN "RESTART=Y GRACE=0 MAXGEN=255"
#define FORWARD(id, more) "TMQFORWARD SRVGRP=QUE1 SRVID=" id " REPLYQ=N " AGAIN " CLOPT=\"-- -i 1 -t 3 " more "\"\n"

static struct given *
system_new(void)
{
	char queues[2000] = "qcreate WORK fifo none 2 0 100% 0% \"\"\nqcreate JOBS fifo none 1 0 100% 0% \"\"\n"
			    "qcreate FAILURE fifo none 0 0 100% 0% \"\"\nqcreate SIDE fifo none 0 0 100% 0% \"\"\n";

	for (int i = 0; i < CLIENTS; i++)
		snprintf(queues + strlen(queues), sizeof queues - strlen(queues), "qcreate REPLY%d fifo none 100000 0 100%% 0%% \"\"\n", i);
	return given_system(&(struct given_conf){ .spaces = 2, .space = "100000 20 100 100 100000 ERRQ n 16", .device_pages = 110000,
	    .services = "WORK SVCTIMEOUT=8\nJOBS SVCTIMEOUT=8\n", .queues = queues, .server_source = serve_service, .server_services = "-s WORK,JOBS:SERVE -s PULSE",
	    .server_params = "MIN=4 MAX=4 " AGAIN, .tmqueue_params = AGAIN,
	    .servers = FORWARD("10", "-q WORK") FORWARD("11", "-q WORK -w 4") FORWARD("12", "-q JOBS -d")
		FORWARD("13", "-q JOBS -d -w 4") FORWARD("14", "-q WORK,JOBS -d -w 2") });
}

static void
log_path(const struct scene *s, int i, char *to, size_t size)
{
	snprintf(to, size, "%s/client%d.log", given_dir(s->g), i);
}

static void
clients_start(struct scene *s)
{
	extern char **environ;
	char number[16], log[PATH_MAX * 2], stop[PATH_MAX * 2];

	snprintf(stop, sizeof stop, "%s/stop", given_dir(s->g));
	for (int i = 0; i < CLIENTS; i++) {
		char *argv[] = { "serve-client", "serve", number, log, stop, NULL };

		snprintf(number, sizeof number, "%d", i);
		log_path(s, i, log, sizeof log);
		CU_ASSERT_EQUAL_FATAL(posix_spawn(&s->client[i], "/proc/self/exe", NULL, NULL, argv, environ), 0);
	}
}

static bool
clients_have_ended(void *arg)
{
	struct scene *s = arg;
	int st;

	for (int i = 0; i < CLIENTS; i++)
		if (s->client[i] > 0) {
			if (waitpid(s->client[i], &st, WNOHANG) != s->client[i])
				return false;
			CU_ASSERT_EQUAL(st, 0);
			s->client[i] = 0;
		}
	return true;
}

static void
clients_stop(struct scene *s)
{
	given_write(s->g, "stop", "now\n");
	CU_ASSERT_TRUE(wait_until(clients_have_ended, s, 60));
	for (int i = 0; i < CLIENTS; i++)
		if (s->client[i] > 0) {
			fprintf(stderr, "client %d does not end\n", i);
			kill(s->client[i], SIGKILL);
			waitpid(s->client[i], NULL, 0);
		}
}

/* --- killing --- */

enum victim { MANAGER, MANAGER2, FORWARDER, SERVICE, BULLETIN_BOARD };

static pid_t
victim_pid(struct scene *s, enum victim v)
{
	switch (v) {
	case MANAGER:
		return given_tmqueue(s->g, 1);
	case MANAGER2:
		return given_tmqueue(s->g, 2);
	case FORWARDER:
		return given_pid(s->g, "TMQFORWARD", (int)(rand_r(&s->seed) % FORWARDERS));
	case SERVICE:
		return given_pid(s->g, "server", (int)(rand_r(&s->seed) % SERVERS));
	default:
		return given_pid(s->g, "BBL", 0);
	}
}

struct loss { struct scene *s; enum victim v; pid_t old; };

static bool
is_replaced(void *arg)
{
	struct loss *l = arg;
	pid_t pid;

	if (!process_gone(l->old))
		return false;
	if (l->v == FORWARDER)
		return given_count(l->s->g, "TMQFORWARD") == FORWARDERS;
	if (l->v == SERVICE)
		return given_count(l->s->g, "server") > 0;	/* others die meanwhile */
	return (pid = victim_pid(l->s, l->v)) > 0 && pid != l->old;
}

static int64_t
wall_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void
kill_one(struct scene *s, enum victim v)
{
	struct loss l = { s, v, victim_pid(s, v) };

	if (l.old <= 0 || kill(l.old, SIGKILL) != 0)
		return;			/* it has just died by itself */
	s->kills[v]++;
	if (v == MANAGER && s->n_queue_kills < MANY_KILLS)
		s->queue_kill_us[s->n_queue_kills++] = wall_us();
	if (!wait_until(is_replaced, &l, BACK_S)) {
		fprintf(stderr, "victim %d, process %ld, has no successor\n", (int)v, (long)l.old);
		CU_FAIL("a killed server does not come back");
	}
}

static long
attempts_made(const struct scene *s)
{
	char path[PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof path, "%s/attempts", given_dir(s->g));
	return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

struct progress { struct scene *s; long then; };

static bool
goes_on(void *arg)
{
	struct progress *p = arg;

	return attempts_made(p->s) > p->then + 400;
}

static void
kill_again_and_again(struct scene *s, int kills)
{
	static const enum victim order[] = { MANAGER, FORWARDER, SERVICE, MANAGER2, FORWARDER, MANAGER, FORWARDER, BULLETIN_BOARD };
	struct progress p = { s, 0 };

	printf("(seed %u) ", s->seed);
	fflush(stdout);
	for (int k = 0; k < kills; k++) {
		enum victim v = order[(size_t)k % UNIT_COUNT(order)];

		nap_ms((int)(rand_r(&s->seed) % 200u));
		kill_one(s, v);
		p.then = attempts_made(s);
		if (!wait_until(goes_on, &p, GO_ON_S)) {
			fprintf(stderr, "after kill %d, victim %d: no request gets on\n", k, (int)v);
			CU_FAIL("the system does not go on");
			return;
		}
	}
}

/* --- the end of it: what is under way is finished --- */

static bool
all_is_done(void *arg)
{
	struct scene *s = arg;
	bool clean = true;
	char *text;

	for (int i = 0; i < 2 * SERVERS; i++)		/* services that went away come back; nobody waits for one that hangs */
		tpacall("PULSE", NULL, 0, TPNOREPLY | TPNOBLOCK);
	if (depth(s->g, "WORK") != 0 || depth(s->g, "JOBS") != 0)
		return false;
	for (int i = 1; i <= 2; i++) {
		text = given_qmadmin_of(s->g, i, "qprinttrans");
		clean &= !has(text, "transaction id");
		free(text);
	}
	return clean;
}

/* --- what is known of each request --- */

static struct fate *
fate_of(struct scene *s, int producer, int seq)
{
	return producer >= 0 && producer < CLIENTS && seq >= 0 && seq < SEQS ? &s->fates[producer][seq] : NULL;
}

static void
strange(struct scene *s, const char *where, const char *what)
{
	s->wrong++;
	fprintf(stderr, "%s: %s\n", where, what);
}

static enum known
known_of(const char *word)
{
	return strcmp(word, "ok") == 0 ? YES : strcmp(word, "no") == 0 ? NO : UNKNOWN;
}

static void
read_log(struct scene *s, int client)
{
	char path[PATH_MAX * 2], line[128], word[16], queue;
	struct fate *f;
	int p, seq;
	FILE *in;

	log_path(s, client, path, sizeof path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(in = fopen(path, "r"));
	while (fgets(line, sizeof line, in) != NULL)
		if (sscanf(line, "E %d %c %15s", &seq, &queue, word) == 3 && (f = fate_of(s, client, seq)) != NULL) {
			f->sent = (uint8_t)known_of(word);
			f->queue = queue;
			s->sent += f->sent == YES;
		} else if (sscanf(line, "R %d %d %15s", &p, &seq, word) == 3 && p == client && (f = fate_of(s, p, seq)) != NULL) {
			f->taken += known_of(word) == YES;
			f->maybe_taken += known_of(word) == UNKNOWN;
		} else
			strange(s, path, line);
	fclose(in);
}

static void
read_attempts(struct scene *s)
{
	char path[PATH_MAX + 16], line[128];
	long long when;
	struct fate *f;
	int p, seq;
	FILE *in;

	snprintf(path, sizeof path, "%s/attempts", given_dir(s->g));
	CU_ASSERT_PTR_NOT_NULL_FATAL(in = fopen(path, "r"));
	while (fgets(line, sizeof line, in) != NULL)
		if (sscanf(line, "%d %d %lld", &p, &seq, &when) == 3 && (f = fate_of(s, p, seq)) != NULL) {
			s->attempts++;
			if (f->attempts++ == 0)
				f->first_us = when;
			f->last_us = when;
		} else
			strange(s, path, line);
	fclose(in);
}

/* Each message of a queue is counted in the member of its request's fate that lies at `offset`. */
static long
drain(struct scene *s, const char *space, const char *queue, size_t offset)
{
	char *text;
	struct fate *f;
	int p, seq;
	long n = 0;

	for (; (text = take_from(space, queue)) != NULL; n++, free(text))
		if (sscanf(text, "P%d S%d", &p, &seq) == 2 && (f = fate_of(s, p, seq)) != NULL)
			++*((uint8_t *)f + offset);
		else
			strange(s, queue, text);
	return n;
}

/* --- the verdict --- */

static int
limit_of(const struct fate *f)
{
	return f->queue == 'J' ? 2 : 3;
}

static int
queue_deaths_between(const struct scene *s, int64_t from, int64_t to)
{
	int n = 0;

	for (int i = 0; i < s->n_queue_kills; i++)
		n += s->queue_kill_us[i] >= from - TRAN_US && s->queue_kill_us[i] <= to;
	return n;
}

static const char *	/* NULL: all is well */
what_is_wrong(const struct scene *s, const struct fate *f)
{
	int answers = f->taken + f->left, ends = answers + f->failed + f->dead;

	if (f->sent == YES && ends == 0 && f->maybe_taken == 0)
		return "lost";
	if (ends > 1)
		return "ended more than once";
	if (ends > 0 && (f->sent == NO || f->sent == NEVER))
		return "refused, and yet here";
	if (f->side > 1)
		return "the service's own message is there twice";
	if (f->side == 1 && answers == 0 && f->maybe_taken == 0)
		return "not answered, and yet the service's own message is there";
	if (f->attempts > limit_of(f) + queue_deaths_between(s, f->first_us, f->last_us))
		return "tried more often than its retries allow";
	return NULL;
}

static void
judge(struct scene *s)
{
	for (int p = 0; p < CLIENTS; p++)
		for (int i = 0; i < SEQS; i++) {
			const struct fate *f = &s->fates[p][i];
			const char *why = what_is_wrong(s, f);

			s->answered += f->taken + f->left;
			if (why == NULL)
				continue;
			if (s->wrong++ < 10)
				fprintf(stderr, "producer %d request %d: %s (queue %c, sent %d, taken %d, maybe %d, left %d, failed %d, dead %d, "
				    "side %d, attempts %d)\n", p, i, why, f->queue, f->sent, f->taken, f->maybe_taken, f->left, f->failed,
				    f->dead, f->side, f->attempts);
		}
}

/* What is on the error queue tells where it was, why, and that its retries are spent. */
static void
obituaries(struct scene *s)
{
	char *text = given_qmadmin(s->g, "verbose on\nqset ERRQ\nqlist");
	int work = count_of(text, "from queue: WORK\n"), jobs = count_of(text, "from queue: JOBS\n");

	CU_ASSERT_EQUAL(work + jobs, s->dead);
	if (work + jobs != s->dead)
		fprintf(stderr, "%ld on the error queue:\n%s\n", s->dead, text);
	CU_ASSERT_EQUAL(count_of(text, "failed deliveries: 3\n"), work);
	CU_ASSERT_EQUAL(count_of(text, "failed deliveries: 2\n"), jobs);
	CU_ASSERT_EQUAL(count_of(text, "  reason: "), s->dead);
	CU_ASSERT_EQUAL(count_of(text, "  reason: \n"), 0);
	free(text);
}

static void
oracle(struct scene *s)
{
	char queue[16];

	s->fates = calloc(CLIENTS, sizeof *s->fates);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s->fates);
	for (int i = 0; i < CLIENTS; i++)
		read_log(s, i);
	read_attempts(s);
	s->dead = depth(s->g, "ERRQ");
	obituaries(s);
	for (int i = 0; i < CLIENTS; i++) {
		snprintf(queue, sizeof queue, "REPLY%d", i);
		drain(s, "QSPACE", queue, offsetof(struct fate, left));
	}
	s->failed = drain(s, "QSPACE", "FAILURE", offsetof(struct fate, failed));
	CU_ASSERT_EQUAL(drain(s, "QSPACE", "ERRQ", offsetof(struct fate, dead)), s->dead);
	drain(s, "QSPACE", "SIDE", offsetof(struct fate, side));
	drain(s, "QSPACE2", "SIDE", offsetof(struct fate, side));
	judge(s);
	free(s->fates);
}

void
serve_run(int kills)
{
	struct scene s = { .g = system_new(), .seed = (unsigned)getpid() };
	struct progress p = { &s, 0 };
	int deaths;
	char *log;

	clients_start(&s);
	CU_ASSERT_TRUE_FATAL(wait_until(goes_on, &p, GO_ON_S));
	kill_again_and_again(&s, kills);
	clients_stop(&s);
	CU_ASSERT_TRUE(wait_until(all_is_done, &s, 120));
	oracle(&s);
	deaths = count_of(log = given_log(s.g), "(server), process");
	free(log);
	printf("%ld requests, %ld attempts: %ld answered, %ld on the failure queue, %ld on the error queue; killed: queue managers %d and %d, "
	    "forwarders %d, services %d (and %d died by themselves), BBL %d; wrong %ld ... ", s.sent, s.attempts, s.answered, s.failed,
	    s.dead, s.kills[MANAGER], s.kills[MANAGER2], s.kills[FORWARDER], s.kills[SERVICE], deaths - s.kills[SERVICE],
	    s.kills[BULLETIN_BOARD], s.wrong);
	CU_ASSERT_EQUAL(s.wrong, 0);
	CU_ASSERT_TRUE(s.answered > kills && s.failed > 0 && s.dead > 0 && deaths > 0);
	given_done(s.g);
}
