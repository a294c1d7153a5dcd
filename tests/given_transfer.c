/*
 * given_transfer - the clients, the killing, the sum.
 */
#include "given_impl.h"
#include "given_transfer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 200
#define PROCESSES 16
#define TRAN_S 6		/* a transaction whose client was killed holds its message so long */
#define BACK_S 20
#define STILL_S 10		/* R33: something is committed in so many seconds while nobody is down */
#define SETTLE_S 30

/* A page that all share. */
struct tally {
	atomic_long committed, aborted, wanted_abort, by_service, unknown, empty;
	atomic_int stop;
};

static struct tally *
tally_open(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct tally *t;

	if (fd < 0 || ftruncate(fd, sizeof *t) != 0)
		return NULL;
	t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return t == MAP_FAILED ? NULL : t;
}

double
transfer_seconds(double otherwise)
{
	const char *s = getenv("TRANSFER_SECONDS");

	return s != NULL && atof(s) > 0 ? atof(s) : otherwise;
}

/* --- a client --- */

static struct tally *tally;

struct mover { pthread_t thread; unsigned seed; char *text; };

static bool
put_by_service(struct mover *m, const char *space)
{
	char *ask = tpalloc("STRING", NULL, 128), *answer = tpalloc("STRING", NULL, 128);
	long len = 0;
	bool good;

	/* Some services fail after they have enqueued. */
	snprintf(ask, 128, "%s %s", space, m->text);
	good = tpcall(rand_r(&m->seed) % 20 == 0 ? "PUTFAIL" : "PUT", ask, 0, &answer, &len, 0) != -1;
	tpfree(ask);
	tpfree(answer);
	return good;
}

static bool
put_directly(struct mover *m, const char *space)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	return tpenqueue((char *)space, "ACCOUNT", &ctl, m->text, 0, 0) != -1;
}

static void
give_up(atomic_long *which)
{
	(*which)++;
	tpabort(0);
}

static void
move_one(struct mover *m)
{
	int way = rand_r(&m->seed) % 2;
	bool service = rand_r(&m->seed) % 3 == 0;
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long len = 0;

	if (tpbegin(TRAN_S, 0) == -1) {
		nap_ms(20);
		return;
	}
	if (tpdequeue((char *)given_space(1 + way), "ACCOUNT", &ctl, &m->text, &len, 0) == -1) {
		bool none = tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG;
		give_up(none ? &tally->empty : &tally->aborted);
		nap_ms(none ? 5 : 20);
	} else if (!(service ? put_by_service(m, given_space(2 - way)) : put_directly(m, given_space(2 - way))))
		give_up(&tally->aborted);
	else if (rand_r(&m->seed) % 10 == 0)
		give_up(&tally->wanted_abort);
	else if (tpcommit(0) == -1)
		tperrno == TPEABORT ? tally->aborted++ : tally->unknown++;
	else {
		tally->committed++;
		tally->by_service += service;
	}
}

static void *
move_on(void *arg)
{
	struct mover *m = arg;
	TPINIT init = { .flags = TPMULTICONTEXTS };

	while (tpinit(&init) == -1 && !tally->stop)
		nap_ms(50);
	m->text = tpalloc("STRING", NULL, 64);
	while (!tally->stop)
		move_one(m);
	tpfree(m->text);
	tpterm();
	return NULL;
}

bool
transfer_is_client(int argc, char **argv)
{
	return argc > 4 && strcmp(argv[1], "transfer-client") == 0;
}

/* argv: file of the tally, threads, seed */
int
transfer_client(char **argv)
{
	struct mover m[64] = { 0 };
	int n = atoi(argv[3]);

	if ((tally = tally_open(argv[2])) == NULL)
		return 1;
	for (int i = 0; i < n; i++) {
		m[i].seed = (unsigned)atoi(argv[4]) * 100 + (unsigned)i;
		pthread_create(&m[i].thread, NULL, move_on, &m[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(m[i].thread, NULL);
	return 0;
}

/* --- the killing --- */

struct scene {
	struct given *g;
	char file[PATH_MAX + 16], threads[8];
	pid_t client[PROCESSES];
	int processes, started;
	unsigned seed;
	long kills[5];
	int killed;
};
enum victim { SPACE_A, SPACE_B, SERVICE, BULLETIN_BOARD, CLIENT };

static void
client_start(struct scene *s, int i)
{
	char seed[16];

	snprintf(seed, sizeof seed, "%d", ++s->started);
	if ((s->client[i] = fork()) == 0) {
		execl("/proc/self/exe", "client", "transfer-client", s->file, s->threads, seed, (char *)NULL);
		_exit(127);
	}
}

static pid_t
pid_of(const struct scene *s, enum victim v)
{
	switch (v) {
	case SPACE_A:
		return given_tmqueue(s->g, 1);
	case SPACE_B:
		return given_tmqueue(s->g, 2);
	case SERVICE:
		return given_pid(s->g, "server", 0);
	case BULLETIN_BOARD:
		return given_pid(s->g, "BBL", 0);
	default:
		return 0;
	}
}

struct replaced { struct scene *s; enum victim v; pid_t old; };

static bool
is_replaced(void *arg)
{
	struct replaced *r = arg;
	pid_t pid = pid_of(r->s, r->v);

	return pid > 0 && pid != r->old;
}

static void
kill_one(struct scene *s)
{
	int n = s->killed++;
	enum victim v = (enum victim)(n < 5 ? n : rand_r(&s->seed) % 5);	/* each once, then by chance */
	struct replaced r = { s, v, pid_of(s, v) };
	int i = rand_r(&s->seed) % s->processes;

	s->kills[v]++;
	if (v == CLIENT) {
		kill(s->client[i], SIGKILL);
		waitpid(s->client[i], NULL, 0);
		client_start(s, i);
	} else if (r.old > 0) {
		kill(r.old, SIGKILL);
		CU_ASSERT_TRUE(wait_until(is_replaced, &r, BACK_S));
	}
}

struct progress { long committed; };

static bool
goes_on(void *arg)
{
	return tally->committed > ((struct progress *)arg)->committed;
}

/* Nobody is down: somebody commits. */
static void
see_progress(void)
{
	struct progress p = { tally->committed };

	if (!wait_until(goes_on, &p, STILL_S)) {
		fprintf(stderr, "\nnothing was committed for %d s; %ld before\n", STILL_S, p.committed);
		CU_FAIL("it froze");
	}
}

static struct given *
system_new(void)
{
	struct given *g = given_system(&(struct given_conf){ .spaces = 2, .device_pages = 10000,
	    .space = "4000 20 200 100 4000 ERRQ n 16",
	    .queues = "qcreate ACCOUNT fifo none 1000000 0 100% 0% \"\"\n",
	    .server_params = "RESTART=Y GRACE=0 MAXGEN=255 MIN=1",
	    .server_services = "-s PUT,PUTFAIL",
	    .server_source = "#include <atmi.h>\n#include <stdio.h>\n#include <string.h>\n"
			     "static long put(TPSVCINFO *m) { char s[32], *t = strrchr(m->data, ' ') + 1, *d; TPQCTL c; long rc;\n"
			     "  sscanf(m->data, \"%31s\", s); d = tpalloc(\"STRING\", NULL, m->len); strcpy(d, t); memset(&c, 0, sizeof c);\n"
			     "  rc = tpenqueue(s, \"ACCOUNT\", &c, d, 0, 0); tpfree(d); return rc; }\n"
			     "void PUT(TPSVCINFO *m) { long rc = put(m); tpreturn(rc == -1 ? TPFAIL : TPSUCCESS, 0, NULL, 0, 0); }\n"
			     "void PUTFAIL(TPSVCINFO *m) { put(m); tpreturn(TPFAIL, 0, NULL, 0, 0); }\n" });
	char text[32];

	for (int i = 0; i < MESSAGES; i++) {
		snprintf(text, sizeof text, "M%d", i);
		put_in(given_space(1 + i % 2), "ACCOUNT", text);
	}
	return g;
}

/* --- the sum --- */

static bool	/* no transaction is left, here or in the table of all, nothing is held, and all messages are there to be taken */
nothing_is_held(void *arg)
{
	struct scene *s = arg;
	char *all = given_ok(s->g, "printtrans\nq\n", "tmadmin 2>&1");
	bool clean = !has(all, "gtrid");
	long sum = 0;

	free(all);
	for (int i = 1; i <= 2; i++) {
		char *text = given_qmadmin_of(s->g, i, "qprinttrans\nqinfo");
		if (has(text, "transaction id") || count_of(text, "held by transactions: ") != count_of(text, "held by transactions: 0\n"))
			clean = false;
		free(text);
		sum += depth_in(s->g, i, "ACCOUNT");
	}
	return clean && sum == MESSAGES;
}

static void
count_all(struct scene *s)
{
	int seen[MESSAGES] = { 0 }, number, lost = 0, doubled = 0;
	char *text;

	for (int i = 1; i <= 2; i++)
		while ((text = take_from(given_space(i), "ACCOUNT")) != NULL) {
			if (sscanf(text, "M%d", &number) == 1 && number >= 0 && number < MESSAGES)
				seen[number]++;
			else
				CU_FAIL("a message that nobody sent");
			free(text);
		}
	for (int i = 0; i < MESSAGES; i++) {
		lost += seen[i] == 0;
		doubled += seen[i] > 1;
	}
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_EQUAL(doubled, 0);
	for (int i = 1; i <= 2; i++)
		CU_ASSERT_EQUAL(depth_in(s->g, i, "ERRQ"), 0);
}

static void
clients_end(struct scene *s)
{
	tally->stop = 1;
	for (int i = 0; i < s->processes; i++) {
		double end = now_s() + 60;
		int st = 0;
		while (waitpid(s->client[i], &st, WNOHANG) == 0 && now_s() < end)
			nap_ms(10);
		if (now_s() >= end) {
			kill(s->client[i], SIGKILL);
			waitpid(s->client[i], &st, 0);
		}
		CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	}
}

void
transfer_run(double seconds, int processes, int threads, int pause_ms)
{
	struct scene s = { .g = system_new(), .processes = processes, .seed = (unsigned)getpid() };
	double end = now_s() + seconds;
	char *left;

	snprintf(s.file, sizeof s.file, "%s/tally", given_dir(s.g));
	snprintf(s.threads, sizeof s.threads, "%d", threads);
	tally = tally_open(s.file);
	CU_ASSERT_PTR_NOT_NULL_FATAL(tally);
	for (int i = 0; i < processes; i++)
		client_start(&s, i);
	while (now_s() < end) {
		see_progress();
		kill_one(&s);
		nap_ms((int)(rand_r(&s.seed) % (unsigned)(2 * pause_ms)));
	}
	see_progress();
	clients_end(&s);
	if (!wait_until(nothing_is_held, &s, SETTLE_S)) {
		CU_FAIL("something is held, or left");
		for (int i = 1; i <= 2; i++) {
			left = given_qmadmin_of(s.g, i, "qprinttrans\nqinfo");
			fprintf(stderr, "%s\n", left);
			free(left);
		}
		left = given_ok(s.g, "printtrans\nq\n", "tmadmin 2>&1");
		fprintf(stderr, "%s\n", left);
		free(left);
	}
	count_all(&s);
	printf("\n  %ld moved (%ld through the service), %ld rolled back on purpose, %ld otherwise, %ld with an unknown outcome; "
	    "killed: queue managers %ld and %ld, service %ld, BBL %ld, clients %ld\n  ", (long)tally->committed, (long)tally->by_service,
	    (long)tally->wanted_abort, (long)tally->aborted, (long)tally->unknown, s.kills[SPACE_A], s.kills[SPACE_B], s.kills[SERVICE],
	    s.kills[BULLETIN_BOARD], s.kills[CLIENT]);
	CU_ASSERT_TRUE(tally->by_service > 0);
	munmap(tally, sizeof *tally);
	given_done(s.g);
}
