/*
 * given_crash_space - the system, the killing, and the sum of the verdicts; see given_crash_space.h.
 */
#include "given_crash_space.h"
#include "given_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDLESS 1000000

const struct crash_queue crash_queues[CRASH_MODELS] = {
	{ "PLAIN", "fifo", false, false, ENDLESS, 0 },
	{ "PRIO", "priority,fifo", false, false, ENDLESS, 1 },
	{ "TIME", "time,lifo", false, false, ENDLESS, 0 },
	{ "EXPIRY", "expiration,fifo", false, true, ENDLESS, 1 },
	{ "STACK", "lifo", true, false, ENDLESS, 0 },
	{ "JUMP", "fifo", true, true, ENDLESS, 0 },
	{ "ALL", "priority,expiration,time,lifo", false, false, ENDLESS, 0 },
	{ "RETRY", "fifo", false, false, 2, 1 },
};

double
crash_seconds(double otherwise)
{
	const char *s = getenv("CRASH_MINUTES");

	return s != NULL && atof(s) > 0 ? atof(s) * 60 : otherwise;
}

struct control *
control_open(const char *file)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);
	void *p;

	if (fd == -1)
		return NULL;
	p = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* --- the gauge: over the threshold and back, once in each round --- */

int
crash_gauge_client(const char *log, const char *control_file)
{
	struct control *control = control_open(control_file);
	FILE *out = fopen(log, "w");
	char *data = tpalloc("STRING", NULL, 64);
	long rounds = 0, calm = 0, len;

	if (control == NULL || out == NULL || tpinit(NULL) == -1)
		return 1;
	for (;;) {
		uint32_t epoch = control->epoch;
		TPQCTL c = { 0 };
		int sent = 0;

		for (; sent < 12 && (sent > 0 || !control->stop); nap_ms(1))
			sent += tpenqueue("QSPACE", "GAUGE", &c, data, 0, 0) != -1;
		if (sent == 0)
			break;
		rounds++;
		calm += epoch % 2 == 0 && control->epoch == epoch;
		for (c.diagnostic = 0; c.diagnostic != QMENOMSG; c.flags = 0)
			if (tpdequeue("QSPACE", "GAUGE", &c, &data, &len, 0) == -1 && (tperrno != TPEDIAGNOSTIC || c.diagnostic != QMENOMSG))
				nap_ms(5), c.diagnostic = 0;
		nap_ms(20);
	}
	fprintf(out, "G %ld %ld\n", rounds, calm);
	fclose(out);
	tpterm();
	return 0;
}

/* --- the clients --- */

struct scene {
	struct given *g;
	struct control *control;
	char control_file[PATH_MAX * 2];
	unsigned seed;
	pid_t model[CRASH_MODELS], gauge, crowd[CROWD];
	int crowd_no[CROWD], crowd_next;
	long killed_owner, killed_bbl, killed_crowd, shutdowns, bursts;
	uint32_t faults;
	bool faulty;			/* writes can be made to fail */
};

static pid_t
client_start(struct scene *s, const char *kind, int number, const char *log)
{
	extern char **environ;
	char n[16], path[PATH_MAX * 2];
	char *argv[] = { "crash-client", (char *)kind, n, path, s->control_file, NULL };
	pid_t pid = 0;

	snprintf(n, sizeof n, "%d", number);
	snprintf(path, sizeof path, "%s/%s%d.log", given_dir(s->g), log, number);
	CU_ASSERT_EQUAL_FATAL(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	return pid;
}

static void
crowd_place(struct scene *s, int i)
{
	if (s->crowd_next >= CROWD_MAX - CROWD)
		return;		/* enough of them */
	while (s->crowd_next % CROWD != i)
		s->crowd_next++;		/* its number says what it does */
	s->crowd_no[i] = s->crowd_next++;
	s->crowd[i] = client_start(s, "crowd", s->crowd_no[i], "crowd");
}

static bool
ended_well(pid_t pid, const char *who)
{
	int st = -1;
	bool gone = false;

	for (double end = now_s() + 90; !gone && now_s() < end; nap_ms(20))
		gone = waitpid(pid, &st, WNOHANG) == pid;
	if (!gone) {
		fprintf(stderr, "%s does not end\n", who);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else if (st != 0)
		fprintf(stderr, "%s ended with %x\n", who, (unsigned)st);
	return gone && st == 0;
}

/* --- disturbing --- */

static unsigned
dice(struct scene *s, unsigned sides)
{
	return (unsigned)rand_r(&s->seed) % sides;
}

static long
ops_of_all(const struct scene *s)
{
	long n = 0;

	for (int i = 0; i < CRASH_MODELS; i++)
		n += s->control->ops[i];
	return n;
}

struct going { struct scene *s; uint32_t ops[CRASH_MODELS]; };

static bool
each_went_on(void *arg)
{
	struct going *p = arg;

	for (int i = 0; i < CRASH_MODELS; i++)
		if (p->s->control->ops[i] < p->ops[i] + 3)
			return false;
	return true;
}

static bool
gets_on(struct scene *s)
{
	struct going p = { .s = s };

	for (int i = 0; i < CRASH_MODELS; i++)
		p.ops[i] = s->control->ops[i];
	return wait_until(each_went_on, &p, 60);
}

static void
kill_server(struct scene *s, const char *name, bool owner)
{
	pid_t pid = given_pid(s->g, name, 0);

	if (pid <= 0)
		return;
	s->control->owners += owner;
	kill(pid, SIGKILL);
	s->control->owners += owner;
	while (!process_gone(pid))
		;
	s->control->deaths += owner;
	s->control->owners += owner;
	CU_ASSERT_TRUE(wait_pid_changes(s->g, name, pid, 30));
	s->control->owners += owner;
}

static void
kill_one_of_the_crowd(struct scene *s)
{
	int i = (int)dice(s, CROWD);

	if (s->crowd[i] <= 0)
		return;
	kill(s->crowd[i], SIGKILL);
	waitpid(s->crowd[i], NULL, 0);
	s->crowd[i] = 0;
	s->killed_crowd++;
	crowd_place(s, i);
}

static void
shut_down_and_boot(struct scene *s)
{
	struct ran r;

	s->control->owners++;
	r = given_run(s->g, NULL, "tmshutdown -y -s TMQUEUE && tmboot -y -s TMQUEUE");
	if (r.status != 0) {
		fprintf(stderr, "tmshutdown or tmboot: %d\n%s%s\n", r.status, r.out, r.err);
		CU_FAIL("a queue manager that is shut down and booted");
	}
	ran_free(&r);
	s->control->owners++;
	s->shutdowns++;
}

static void
fail_some_writes(struct scene *s)
{
	s->control->owners++;
	s->control->fault_kinds = 1 + dice(s, 15);
	s->control->fault_one_in = 3 + dice(s, 60);
	nap_ms(30 + (int)dice(s, 300));
	s->control->fault_one_in = 0;
	s->bursts++;
}

static void
disturb(struct scene *s)
{
	unsigned d = dice(s, 100);

	if (d >= 70 || getenv("CRASH_CLIENTS_ONLY") != NULL) {		/* of no concern to the others */
		kill_one_of_the_crowd(s);
		return;
	}
	s->control->epoch++;
	if (d < 40)
		kill_server(s, "TMQUEUE", true), s->killed_owner++;
	else if (d < 47)
		kill_server(s, "BBL", false), s->killed_bbl++;
	else if (d < 52 || !s->faulty)
		shut_down_and_boot(s);
	else
		fail_some_writes(s);
	if (!gets_on(s)) {
		fprintf(stderr, "after a disturbance (%u) somebody does not get on\n", d);
		CU_FAIL("the system does not go on");
	}
	s->control->owners++;
	s->control->epoch++;
}

/* --- verdicts --- */

static int
model_verdict(struct scene *s, char *must, size_t n_must)
{
	char path[PATH_MAX * 2], line[512], how[8], sums[512] = "";
	int wrong = 0, seq;

	for (int i = 0; i < CRASH_MODELS; i++) {
		FILE *f;
		snprintf(path, sizeof path, "%s/model%d.log", given_dir(s->g), i);
		if ((f = fopen(path, "r")) == NULL)
			return 1;
		sums[0] = '\0';
		while (fgets(line, sizeof line, f) != NULL) {
			if (line[0] == 'S')
				snprintf(sums, sizeof sums, "%s", line + 2);
			else if (sscanf(line, "X %d %7s", &seq, how) == 2 && seq >= 0 && (size_t)seq < n_must)
				must[(size_t)i * n_must + (size_t)seq] = how[1] == 'u' ? 2 : 1;
			else {
				wrong++;
				if (wrong < 20)
					fprintf(stderr, "model %d: %s", i, line);
			}
		}
		fclose(f);
		if (sums[0] == '\0') {
			fprintf(stderr, "%s has no end\n", path);
			wrong++;
		}
		printf("%-7s %-18s %s", crash_queues[i].name, crash_queues[i].order, sums);
	}
	return wrong;
}

static int	/* each message on the error queue may be there, and each that must is */
error_queue_verdict(struct scene *s, char *must, size_t n_must)
{
	int producer, seq, wrong = 0, there = 0;
	char *text;

	(void)s;
	while ((text = take("ERRQ")) != NULL) {
		char *m = sscanf(text, "P%d S%d", &producer, &seq) == 2 && producer >= 0 && producer < CRASH_MODELS && seq >= 0 &&
		    (size_t)seq < n_must ? &must[(size_t)producer * n_must + (size_t)seq] : NULL;
		there++;
		if (m == NULL || *m == 0) {
			if (wrong++ < 10)
				fprintf(stderr, "on the error queue, and should not be: %.40s\n", text);
		} else
			*m = 0;
		free(text);
	}
	for (size_t i = 0; i < CRASH_MODELS * n_must; i++)
		if (must[i] == 2 && wrong++ < 10)
			fprintf(stderr, "not on the error queue: queue %s message %zu\n", crash_queues[i / n_must].name, i % n_must);
	printf("%d on the error queue\n", there);
	return wrong;
}

struct runs { struct given *g; long at_least, n; };

static bool
command_ran(void *arg)
{
	struct runs *r = arg;
	char *text = given_read(r->g, "runs");

	r->n = text == NULL ? 0 : count_of(text, "x");
	free(text);
	return r->n >= r->at_least;
}

static int
gauge_verdict(struct scene *s)
{
	struct runs r = { .g = s->g };
	char *text = given_read(s->g, "gauge0.log");
	long rounds = 0;
	int wrong = text == NULL || sscanf(text, "G %ld %ld", &rounds, &r.at_least) != 2;

	free(text);
	wait_until(command_ran, &r, 10);
	printf("threshold: %ld crossings (%ld in peace), its command ran %ld times\n", rounds, r.at_least, r.n);
	/* One that was started right before its TMQUEUE was killed is started again. */
	return wrong + (r.n > rounds + s->killed_owner) + (r.n < r.at_least);
}

static bool
no_transaction_is_open(void *arg)
{
	char *text = given_qmadmin(arg, "qprinttrans\n");
	bool none = !has(text, "transaction id");

	free(text);
	return none;
}

/* --- the whole --- */

static struct given *
given_scene(struct scene *s)
{
	static char queues[4096], tmqueue[PATH_MAX * 2];
	size_t n = 0;

	for (int i = 0; i < CRASH_MODELS; i++) {
		const struct crash_queue *q = &crash_queues[i];
		n += (size_t)snprintf(queues + n, sizeof queues - n, "qcreate %s %s %s %d %d 100%% 0%% \"\"\n", q->name, q->order,
		    q->out_of_order ? "top,msgid" : "none", q->retries, q->delay_s);
	}
	n += (size_t)snprintf(queues + n, sizeof queues - n, "qcreate SHARED fifo none 1000000 0 100%% 0%% \"\"\n"
	    "qcreate LOOSE fifo none 1000000 0 100%% 0%% \"\"\nqcreate GAUGE fifo none 1000000 0 10m 2m \"echo x >>$APPDIR/runs\"\n");
	s->g = given_directory();
	snprintf(tmqueue, sizeof tmqueue, "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 3\" ENVFILE=\"%s/envfile\"",
	    given_dir(s->g));
	return given_system_in(s->g, &(struct given_conf){ .queues = queues, .tmqueue = tmqueue, .not_booted = true,
	    .space = "15000 30 100 100 20000 ERRQ n 16", .space_options = "-n 16384B" });
}

bool
failing_writes_are_there(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

#ifdef TEST_SANFLAGS
	return false;			/* a sanitizer's library must be the first */
#endif
	if (n <= 0)
		return false;
	path[n] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		return false;
	snprintf(slash, size - (size_t)(slash - path), "/fault_writes.so");
	return access(path, R_OK) == 0;
}

void
crash_space(double seconds, bool faults)
{
	enum { MUST = 1000000 };
	static char must[CRASH_MODELS * (size_t)MUST];
	struct scene s = { .seed = (unsigned)getpid() };
	char preload[PATH_MAX] = "";
	double end;
	int wrong = 0;

	given_scene(&s);
	snprintf(s.control_file, sizeof s.control_file, "%s/control", given_dir(s.g));
	given_write(s.g, "control", "%*s", (int)sizeof(struct control), "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(s.control = control_open(s.control_file));
	memset((void *)s.control, 0, sizeof *s.control);
	s.faulty = faults && failing_writes_are_there(preload, sizeof preload);
	given_write(s.g, "envfile", "FAULT_CONTROL=%s\n%s%s\n", s.control_file, s.faulty ? "LD_PRELOAD=" : "", s.faulty ? preload : "");
	given_boot(s.g);
	for (int i = 0; i < CRASH_MODELS; i++)
		s.model[i] = client_start(&s, "model", i, "model");
	s.gauge = client_start(&s, "gauge", 0, "gauge");
	for (int i = 0; i < CROWD; i++)
		crowd_place(&s, i);
	CU_ASSERT_TRUE_FATAL(gets_on(&s));
	printf("(seed %u%s)\n", s.seed, s.faulty ? "" : ", no write fails");
	fflush(stdout);
	for (end = now_s() + seconds; now_s() < end;) {
		/* Now and then a longer peace: only what is done in it must be counted exactly. */
		nap_ms(getenv("CRASH_CLIENTS_ONLY") != NULL ? (int)dice(&s, 40) : dice(&s, 6) == 0 ? 2000 : (int)dice(&s, 250));
		disturb(&s);
	}
	s.faults = s.control->faults;
	s.control->stop = 1;
	for (int i = 0; i < CRASH_MODELS; i++)
		wrong += !ended_well(s.model[i], crash_queues[i].name);
	wrong += !ended_well(s.gauge, "the gauge");
	for (int i = 0; i < CROWD; i++)
		if (s.crowd[i] > 0)
			wrong += !ended_well(s.crowd[i], "one of the crowd");
	CU_ASSERT_TRUE(wait_until(no_transaction_is_open, s.g, 30));
	printf("%.0f s, %ld operations; killed: TMQUEUE %ld, BBL %ld, clients %ld; shut down %ld times; %ld bursts of failing writes "
	    "(%u failed)\n", seconds, ops_of_all(&s), s.killed_owner, s.killed_bbl, s.killed_crowd, s.shutdowns, s.bursts, s.faults);
	wrong += model_verdict(&s, must, MUST);
	wrong += error_queue_verdict(&s, must, MUST);
	wrong += gauge_verdict(&s);
	wrong += crash_crowd_verdict(s.g, s.crowd_next, s.killed_crowd);
	CU_ASSERT_EQUAL(wrong, 0);
	munmap((void *)s.control, sizeof *s.control);
	given_done(s.g);
}
