/*
 * given_crash - the killing, and the oracle.
 */
#include "given_crash.h"
#include "given_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_SEQ 200000
#define QUEUES (CRASH_CLIENTS + 2)	/* OWN0.., SHARED, and the request queue of crash_forward */

int
crash_kills(int otherwise)
{
	const char *s = getenv("CRASH_KILLS");

	return s != NULL && atoi(s) > 0 ? atoi(s) : otherwise;
}

/* --- what is known of each message --- */

enum known { NEVER = 0, YES, NO, UNKNOWN };
struct fate { uint8_t enqueued, taken, maybe_taken, left; };
static struct fate (*fates)[MAX_SEQ];		/* by producer */
static int last_left[CRASH_CLIENTS][QUEUES];

static struct fate *
fate_of(int producer, int seq)
{
	return producer >= 0 && producer < CRASH_CLIENTS && seq >= 0 && seq < MAX_SEQ ? &fates[producer][seq] : NULL;
}

static enum known
known_of(const char *word)
{
	return strcmp(word, "ok") == 0 ? YES : strcmp(word, "no") == 0 ? NO : UNKNOWN;
}

struct sums { long enqueued, unknown_enqueues, taken, unknown_takes, left, lost, doubled, phantom, disordered; };

static void
read_log(const char *path, int client, struct sums *sum)
{
	FILE *f = fopen(path, "r");
	char line[128], word[16];
	int q, producer, seq;
	struct fate *m;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, "E %d %d %15s", &q, &seq, word) == 3 && (m = fate_of(client, seq)) != NULL) {
			m->enqueued = (uint8_t)known_of(word);
			sum->enqueued += m->enqueued == YES;
			sum->unknown_enqueues += m->enqueued == UNKNOWN;
		} else if (sscanf(line, "D %d %d %d %15s", &q, &producer, &seq, word) == 4) {
			if ((m = fate_of(producer, seq)) == NULL) {
				sum->phantom++;
				continue;
			}
			m->taken += known_of(word) == YES;
			m->maybe_taken += known_of(word) == UNKNOWN;
			sum->taken += known_of(word) == YES;
			sum->unknown_takes += known_of(word) == UNKNOWN;
		} else {
			fprintf(stderr, "%s: %s", path, line);
			CU_FAIL("a client says what must not be");
		}
	}
	fclose(f);
}

static void
judge(struct sums *sum)
{
	int p, s;

	for (p = 0; p < CRASH_CLIENTS; p++)
		for (s = 0; s < MAX_SEQ; s++) {
			const struct fate *m = &fates[p][s];
			int out = m->taken + m->left;
			const char *why = NULL;
			if (m->enqueued == YES && out == 0 && m->maybe_taken == 0)
				sum->lost++, why = "lost";
			else if (out > 1)
				sum->doubled++, why = "doubled";
			else if (out > 0 && (m->enqueued == NO || m->enqueued == NEVER))
				sum->phantom++, why = "refused, and yet here";
			if (why != NULL && sum->lost + sum->doubled + sum->phantom <= 10)
				fprintf(stderr, "producer %d message %d: %s (enqueued %d, taken %d, maybe %d, left %d)\n", p, s, why,
				    m->enqueued, m->taken, m->maybe_taken, m->left);
		}
}

static const char *
queue_name(int q)
{
	static char name[16];

	if (q < CRASH_CLIENTS) {
		snprintf(name, sizeof name, "OWN%d", q);
		return name;
	}
	return q == CRASH_CLIENTS ? "SHARED" : "ANSWER";
}

/* Take what is left, one by one, in the order of the queue. */
static void
drain(int q, struct sums *sum)
{
	char *text;
	int producer, seq;
	struct fate *m;

	while ((text = take(queue_name(q))) != NULL) {
		if (sscanf(text, "P%d S%d", &producer, &seq) != 2 || (m = fate_of(producer, seq)) == NULL) {
			fprintf(stderr, "%s holds \"%s\"\n", queue_name(q), text);
			sum->phantom++;
		} else {
			m->left++;
			sum->left++;
			if (q <= CRASH_CLIENTS && last_left[producer][q] >= seq && sum->disordered++ < 10)
				fprintf(stderr, "%s: message %d of producer %d stands behind %d\n", queue_name(q), seq, producer,
				    last_left[producer][q]);
			last_left[producer][q] = seq;
		}
		free(text);
	}
}

/* --- clients --- */

static void
log_path(const struct given *g, int i, char *to, size_t size)
{
	snprintf(to, size, "%s/client%d.log", given_dir(g), i);
}

void
crowd_start(struct crowd *c, struct given *g, const char *kind)
{
	extern char **environ;
	char number[16], log[PATH_MAX * 2], stop[PATH_MAX * 2];
	int i;

	c->g = g;
	snprintf(stop, sizeof stop, "%s/stop", given_dir(g));
	for (i = 0; i < CRASH_CLIENTS; i++) {
		char *argv[] = { "crash-client", (char *)kind, number, log, stop, NULL };
		snprintf(number, sizeof number, "%d", i);
		log_path(g, i, log, sizeof log);
		CU_ASSERT_EQUAL_FATAL(posix_spawn(&c->pid[i], "/proc/self/exe", NULL, NULL, argv, environ), 0);
	}
}

long
crowd_wrote(const struct crowd *c, int i)
{
	char log[PATH_MAX * 2];
	struct stat st;

	log_path(c->g, i, log, sizeof log);
	return stat(log, &st) == 0 ? (long)st.st_size : 0;
}

bool
crowd_is_at_work(void *arg)
{
	struct crowd *c = arg;
	int i;

	for (i = 0; i < CRASH_CLIENTS; i++)
		if (crowd_wrote(c, i) == 0)
			return false;
	return true;
}

static bool
all_have_ended(void *arg)
{
	struct crowd *c = arg;
	int i, st;

	for (i = 0; i < CRASH_CLIENTS; i++)
		if (c->pid[i] > 0) {
			if (waitpid(c->pid[i], &st, WNOHANG) != c->pid[i])
				return false;
			CU_ASSERT_EQUAL(st, 0);
			c->pid[i] = 0;
		}
	return true;
}

void
crowd_stop(struct crowd *c)
{
	int i;

	given_write(c->g, "stop", "now\n");
	CU_ASSERT_TRUE(wait_until(all_have_ended, c, 60));
	for (i = 0; i < CRASH_CLIENTS; i++)
		if (c->pid[i] > 0) {
			fprintf(stderr, "client %d does not end\n", i);
			kill(c->pid[i], SIGKILL);
			waitpid(c->pid[i], NULL, 0);
		}
}

/* --- killing --- */

struct progress { struct crowd *c; long then[CRASH_CLIENTS]; };

static bool
one_went_on(void *arg)
{
	struct progress *p = arg;
	int i;

	for (i = 0; i < CRASH_CLIENTS; i++)
		if (crowd_wrote(p->c, i) > p->then[i] + 400)
			return true;
	return false;
}

/* Kill the victims in turn at random moments; most kills hit a system at work, one in four may hit a recovery. */
static void
kill_again_and_again(struct crowd *c, const char *const *victims, size_t n, int kills)
{
	unsigned seed = (unsigned)getpid();
	struct progress p = { .c = c };
	int i, k;

	printf("(seed %u) ", seed);
	fflush(stdout);
	for (k = 0; k < kills; k++) {
		const char *name = victims[(unsigned)k % n];
		pid_t pid;
		nap_ms((int)(rand_r(&seed) % 150u));
		if ((pid = given_pid(c->g, name, 0)) > 0)
			kill(pid, SIGKILL);
		CU_ASSERT_TRUE(wait_pid_changes(c->g, name, pid, 20));
		/* BBL and the queue manager dead in one moment would leave nobody to start anything again. */
		if (rand_r(&seed) % 4 == 0 && strcmp(victims[(unsigned)(k + 1) % n], "BBL") != 0 && strcmp(name, "BBL") != 0)
			continue;
		for (i = 0; i < CRASH_CLIENTS; i++)
			p.then[i] = crowd_wrote(c, i);
		if (!wait_until(one_went_on, &p, 20)) {
			fprintf(stderr, "after kill %d, of %s: no client gets on\n", k, name);
			CU_FAIL("the system does not go on");
			return;
		}
	}
}

void
crowd_oracle(struct given *g, int first_queue, int last_queue, int kills)
{
	struct sums sum = { 0 };
	char log[PATH_MAX * 2];
	int i, q;

	fates = calloc(CRASH_CLIENTS, sizeof *fates);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fates);
	memset(last_left, -1, sizeof last_left);
	for (i = 0; i < CRASH_CLIENTS; i++) {
		log_path(g, i, log, sizeof log);
		read_log(log, i, &sum);
	}
	for (q = first_queue; q <= last_queue; q++)
		drain(q, &sum);
	judge(&sum);
	free(fates);
	printf("%d kills, %ld acknowledged enqueues (%ld unknown), %ld taken (%ld unknown), %ld left: lost %ld, doubled %ld, "
	    "out of nowhere %ld, out of order %ld ... ", kills, sum.enqueued, sum.unknown_enqueues, sum.taken, sum.unknown_takes,
	    sum.left, sum.lost, sum.doubled, sum.phantom, sum.disordered);
	CU_ASSERT_EQUAL(sum.lost, 0);
	CU_ASSERT_EQUAL(sum.doubled, 0);
	CU_ASSERT_EQUAL(sum.phantom, 0);
	CU_ASSERT_EQUAL(sum.disordered, 0);
	CU_ASSERT_TRUE(sum.enqueued > kills);
	CU_ASSERT_TRUE(sum.taken > 0);
	CU_ASSERT_EQUAL(take_diagnostic("ERRQ"), QMENOMSG);
}

#define UNLIMITED "RESTART=Y GRACE=0 MAXGEN=255"

void
crash_queue(int kills)
{
	static const char *const victims[] = { "TMQUEUE", "TMQUEUE", "TMQUEUE", "TMQUEUE", "TMQUEUE", "BBL" };
	char queues[2048] = "qcreate SHARED fifo none 1000000 0 100% 0% \"\"\n";
	struct crowd c = { 0 };
	struct given *g;
	int i;

	for (i = 0; i < CRASH_CLIENTS; i++)
		snprintf(queues + strlen(queues), sizeof queues - strlen(queues), "qcreate OWN%d fifo none 1000000 0 100%% 0%% \"\"\n", i);
	g = given_system(&(struct given_conf){ .queues = queues, .space = "15000 20 50 50 20000 ERRQ n 16",
	    .tmqueue = UNLIMITED " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"" });
	crowd_start(&c, g, "queue");
	CU_ASSERT_TRUE_FATAL(wait_until(crowd_is_at_work, &c, 30));
	kill_again_and_again(&c, victims, sizeof victims / sizeof victims[0], kills);
	crowd_stop(&c);
	crowd_oracle(g, 0, CRASH_CLIENTS, kills);
	given_done(g);
}

static const char service[] =
    "#include <stdio.h>\n#include <time.h>\n#include \"atmi.h\"\n"
    "void REQUEST(TPSVCINFO *m)\n{\n"
    "\tstatic FILE *f;\n\tstruct timespec t;\n"
    "\tif (f == NULL && (f = fopen(\"attempts\", \"a\")) != NULL)\n\t\tsetvbuf(f, NULL, _IOLBF, 0);\n"
    "\tclock_gettime(CLOCK_REALTIME, &t);\n"
    "\tif (f != NULL)\n\t\tfprintf(f, \"%ld.%06ld %.12s\\n\", (long)t.tv_sec, t.tv_nsec / 1000, m->data);\n"
    "\ttpreturn(TPSUCCESS, 0, m->data, 0, 0);\n}\n";

void
crash_forward(int kills)
{
	static const char *const victims[] = { "TMQUEUE", "TMQFORWARD", "server", "TMQUEUE", "TMQFORWARD", "server", "BBL" };
	struct crowd c = { 0 };
	struct given *g = given_system(&(struct given_conf){ .server_source = service, .server_services = "-s REQUEST",
	    .server_params = UNLIMITED, .space = "100000 20 50 50 100000 ERRQ n 16", .device_pages = 110000,
	    .tmqueue = UNLIMITED " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=10 " UNLIMITED " CLOPT=\"-- -i 1 -t 10 -q REQUEST\"\n",
	    .queues = "qcreate REQUEST fifo none 1000000 0 100% 0% \"\"\nqcreate ANSWER fifo none 1000000 0 100% 0% \"\"\n" });

	crowd_start(&c, g, "forward");
	CU_ASSERT_TRUE_FATAL(wait_until(crowd_is_at_work, &c, 30));
	kill_again_and_again(&c, victims, sizeof victims / sizeof victims[0], kills);
	crowd_stop(&c);
	for (double end = now_s() + 240; depth(g, "REQUEST") > 0 && now_s() < end;)	/* the rest is forwarded */
		nap_ms(50);
	CU_ASSERT_EQUAL(depth(g, "REQUEST"), 0);
	crowd_oracle(g, CRASH_CLIENTS + 1, CRASH_CLIENTS + 1, kills);
	given_done(g);
}
