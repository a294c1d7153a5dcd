/*
 * soak_queue - `make soak`: a queue space that is filled, drained and filled again for SOAK_MINUTES (30) by eight clients.
 *
 * Bodies of 10 bytes to 1 MiB, persistent and not, by priority and by arrival, one in eight in a transaction, of which
 * some are rolled back, some that expire.  Every other round leaves a third where it is, so that holes come about.  What
 * comes out is what went in, byte by byte.
 *
 * After each phase a line is printed: rate, bytes of files by kind, descriptors and memory of TMQUEUE.  The test fails when
 * a size of the later rounds is beyond what the first ones reached, by a generous factor, never for a rate.  At the end
 * the counters (qinfo), the list (qlist) and what is taken out agree, and an empty space counts nothing.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "given.h"

enum { CLIENTS = 8, KINDS = 4, WARM_ROUNDS = 6, BODY_MAX = 1 << 20 };
static const char *const queues[] = { "ARRIVAL", "PRIO", "STACK" };
enum { QUEUES = sizeof queues / sizeof *queues };

/* --- bodies that tell whether they are whole --- */

struct body_head { uint32_t length, seed; };

static uint32_t
mix(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void
body_make(char *to, uint32_t length, uint32_t seed)
{
	struct body_head h = { length, seed | 1 };
	uint32_t x = h.seed;

	memcpy(to, &h, sizeof h);
	for (uint32_t i = sizeof h; i < length; i++) {
		if (i % 64 == 0)
			x = mix(x);
		to[i] = (char)(x + i);
	}
}

static bool
body_is_whole(const char *p, long n)
{
	struct body_head h;
	uint32_t x;

	if (n < (long)sizeof h)
		return false;
	memcpy(&h, p, sizeof h);
	if (h.length != n)
		return false;
	x = h.seed;
	for (uint32_t i = sizeof h; i < h.length; i++) {
		if (i % 64 == 0)
			x = mix(x);
		if (p[i] != (char)(x + i))
			return false;
	}
	return true;
}

/* Most are small, most of the bytes are in large ones: 10 B to 1 MiB, from 4 KiB on each factor of two as likely as the next. */
static uint32_t
size_of_next(unsigned *seed)
{
	uint32_t top = 16u << (rand_r(seed) % (rand_r(seed) % 8 != 0 ? 9u : 17u));
	uint32_t n = top / 2 + (uint32_t)rand_r(seed) % (top / 2 + 1);

	return n < 10 ? 10 : n;
}

/* --- clients --- */

enum phase { FILL, DRAIN };
struct work {
	enum phase phase;
	bool plain;			/* no transaction, nothing that expires */
	long long bytes;		/* to do, of all clients */
	_Atomic long long done_bytes;
	atomic_long done, damaged, refused, failed;
	unsigned seed;
};
struct client { struct work *w; unsigned seed; char *data; };

static void
note_failure(struct client *c, const char *what, const TPQCTL *ctl)
{
	if (tperrno == TPEDIAGNOSTIC && ctl != NULL && ctl->diagnostic == QMENOSPACE) {
		c->w->refused++;
		return;
	}
	if (c->w->failed++ < 5)
		fprintf(stderr, "%s: %s, diagnostic %ld\n", what, tpstrerror(tperrno), ctl != NULL ? ctl->diagnostic : 0L);
}

static void
put_one(struct client *c)
{
	uint32_t n = size_of_next(&c->seed);
	bool in_tx = !c->w->plain && rand_r(&c->seed) % 8 == 0 && tpbegin(60, 0) == 0, keep = rand_r(&c->seed) % 4 != 0;
	TPQCTL ctl = { .flags = TPQPRIORITY, .priority = rand_r(&c->seed) % 100 + 1 };

	body_make(c->data, n, (uint32_t)rand_r(&c->seed));
	if (n < 4096 && rand_r(&c->seed) % 4 == 0) {
		ctl.flags |= TPQDELIVERYQOS;
		ctl.delivery_qos = TPQQOSNONPERSISTENT;
	}
	if (!c->w->plain && rand_r(&c->seed) % 16 == 0) {
		ctl.flags |= TPQEXPTIME_REL;
		ctl.exp_time = 1 + rand_r(&c->seed) % 3;
	}
	if (tpenqueue("QSPACE", (char *)queues[(unsigned)rand_r(&c->seed) % QUEUES], &ctl, c->data, (long)n, 0) == -1) {
		note_failure(c, "tpenqueue", &ctl);
		keep = false;
	} else if (!in_tx || keep) {
		c->w->done++;
		c->w->done_bytes += n;
	}
	if (in_tx && (keep ? tpcommit(0) : tpabort(0)) == -1)
		note_failure(c, "tpcommit or tpabort", NULL);
}

static bool	/* false: the queue is empty */
take_one(struct client *c, const char *queue)
{
	bool in_tx = !c->w->plain && rand_r(&c->seed) % 8 == 0 && tpbegin(60, 0) == 0, keep = rand_r(&c->seed) % 4 != 0;
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long n = 0;
	bool got = tpdequeue("QSPACE", (char *)queue, &ctl, &c->data, &n, TPNOTIME) != -1;

	if (!got && (tperrno != TPEDIAGNOSTIC || ctl.diagnostic != QMENOMSG))
		note_failure(c, "tpdequeue", &ctl);
	if (got && !body_is_whole(c->data, n))
		c->w->damaged++;
	if (got && (!in_tx || keep)) {
		c->w->done++;
		c->w->done_bytes += n;
	}
	if (in_tx && (got && keep ? tpcommit(0) : tpabort(0)) == -1)
		note_failure(c, "tpcommit or tpabort", NULL);
	return got;
}

static void *
client(void *arg)
{
	struct client *c = arg;
	TPINIT *init = (TPINIT *)tpalloc("TPINIT", NULL, TPINITNEED(0));
	unsigned q = c->seed % QUEUES, empty = 0;

	init->flags = TPMULTICONTEXTS;
	c->data = tpalloc("CARRAY", NULL, BODY_MAX + 64);
	if (tpinit(init) == -1)
		note_failure(c, "tpinit", NULL);
	while (c->w->done_bytes < c->w->bytes && c->w->failed < 5 && c->w->refused < 1000 && empty < QUEUES) {
		if (c->w->phase == FILL)
			put_one(c);
		else if (take_one(c, queues[q]))
			empty = 0;
		else {
			empty++;
			q = (q + 1) % QUEUES;
		}
	}
	tpfree(c->data);
	tpfree((char *)init);
	tpterm();
	return NULL;
}

/* --- sizes, from outside --- */

struct sample { long long bytes[KINDS], total; long files, logs, descriptors, rss_kb; };
static struct sample most[2];		/* of the first rounds, of the later ones */

static int
kind_of(const char *name)
{
	return strstr(name, "messages.") != NULL || strstr(name, "bod") != NULL ? 0 : strncmp(name, "log", 3) == 0 ? 2 :
	    strstr(name, ".db") != NULL ? 1 : 3;
}

static void
measure_files(const struct given *g, struct sample *s)
{
	char dir[4200], path[4600];
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(dir, sizeof dir, "%s/QUE.d/QSPACE", given_dir(g));
	d = opendir(dir);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		s->bytes[kind_of(e->d_name)] += (long long)st.st_blocks * 512;
		s->total += (long long)st.st_blocks * 512;
		s->files++;
		s->logs += kind_of(e->d_name) == 2;
	}
	closedir(d);
}

static void
measure_process(const struct given *g, struct sample *s)
{
	char path[64], line[128];
	pid_t pid = given_pid(g, "TMQUEUE", 0);
	FILE *f;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	if ((d = opendir(path)) != NULL) {
		while (readdir(d) != NULL)
			s->descriptors++;
		closedir(d);
	}
	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	if ((f = fopen(path, "r")) != NULL) {
		while (fgets(line, sizeof line, f) != NULL)
			if (sscanf(line, "VmRSS: %ld", &s->rss_kb) == 1)
				break;
		fclose(f);
	}
}

static void
keep_most(struct sample *m, const struct sample *s)
{
#define KEEP(x) if (s->x > m->x) m->x = s->x
	for (int k = 0; k < KINDS; k++)
		KEEP(bytes[k]);
	KEEP(total);
	KEEP(files);
	KEEP(logs);
	KEEP(descriptors);
	KEEP(rss_kb);
#undef KEEP
}

static void
look(const struct given *g, int round, const char *what, const struct work *w, double seconds)
{
	struct sample s = { 0 };

	measure_files(g, &s);
	measure_process(g, &s);
	keep_most(&most[round > WARM_ROUNDS], &s);
	printf("\n    %4d %-6s %7ld messages %7.0f/s %5.0f MB/s | files MB: messages %6.0f tables %4.0f log %4.0f | %3ld files, "
	       "%2ld logs | %3ld descriptors, %4ld MB resident | %ld refused", round, what, (long)w->done,
	    (double)w->done / seconds, (double)w->done_bytes / seconds / 1e6, (double)s.bytes[0] / 1e6, (double)s.bytes[1] / 1e6,
	    (double)s.bytes[2] / 1e6, s.files, s.logs, s.descriptors, s.rss_kb / 1024, (long)w->refused);
	fflush(stdout);
}

/* --- rounds --- */

static bool
phase(const struct given *g, int round, enum phase what, long long bytes, bool plain, struct work *w)
{
	struct client c[CLIENTS];
	pthread_t t[CLIENTS];
	double start = now_s();

	*w = (struct work){ .phase = what, .bytes = bytes, .plain = plain };
	for (int i = 0; i < CLIENTS; i++) {
		c[i] = (struct client){ .w = w, .seed = (unsigned)(round * 1000 + i + (what == DRAIN ? 500 : 0)) };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, client, &c[i]), 0);
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(t[i], NULL);
	look(g, round, what == FILL ? "fill" : "drain", w, now_s() - start);
	CU_ASSERT_EQUAL(w->failed, 0);
	CU_ASSERT_EQUAL(w->damaged, 0);
	return w->failed == 0 && w->damaged == 0;
}

static long long
number_of(const struct given *g, const char *queue, const char *label)
{
	char lines[64], want[64], *out, *at;
	long long n;

	snprintf(lines, sizeof lines, "qinfo %s", queue);
	snprintf(want, sizeof want, "\n  %s: ", label);
	out = given_qmadmin(g, lines);
	at = strstr(out, want);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	n = atoll(at + strlen(want));
	free(out);
	return n;
}

static long
listed(const struct given *g, const char *queue)
{
	char lines[64], *out;
	long n;

	snprintf(lines, sizeof lines, "qset %s\nqlist", queue);
	out = given_qmadmin(g, lines);
	n = count_of(out, "message: ");
	free(out);
	return n;
}

static void	/* what qinfo says, what qlist lists, what comes out */
counters_agree(const struct given *g, int round)
{
	long long told = 0, told_bytes = 0;
	long seen = 0;
	struct work w;

	for (int q = 0; q < QUEUES; q++) {
		long long here = number_of(g, queues[q], "messages") + number_of(g, queues[q], "non-persistent messages");
		long list = listed(g, queues[q]);

		printf("\n    %s: %lld messages by qinfo, %ld by qlist", queues[q], here, list);
		CU_ASSERT_EQUAL(here, list);
		told += here;
		told_bytes += number_of(g, queues[q], "bytes");
		seen += list;
	}
	CU_ASSERT_TRUE(phase(g, round, DRAIN, INT64_MAX, true, &w));
	printf("\n    %lld messages were counted, %ld listed, %ld came out; bytes of persistent ones %lld, of all that came %lld", told,
	    seen, (long)w.done, told_bytes, (long long)w.done_bytes);
	CU_ASSERT_EQUAL(w.done, told);
	CU_ASSERT_TRUE(told > 100 && told_bytes <= w.done_bytes);
	for (int q = 0; q < QUEUES; q++) {
		CU_ASSERT_EQUAL(number_of(g, queues[q], "messages"), 0);
		CU_ASSERT_EQUAL(number_of(g, queues[q], "bytes"), 0);
		CU_ASSERT_EQUAL(number_of(g, queues[q], "non-persistent messages"), 0);
	}
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
}

static double
minutes(void)
{
	const char *s = getenv("SOAK_MINUTES");

	return s != NULL && atof(s) > 0 ? atof(s) : 30;
}

#define NOT_ABOVE(x, factor, more, unit) do { \
	long long first = (long long)most[0].x, later = (long long)most[1].x; \
	printf("\n    most of " #x ": %lld in the first %d rounds, %lld later", first / (unit), WARM_ROUNDS, later / (unit)); \
	CU_ASSERT_TRUE((double)later <= (double)first * (factor) + (double)(more)); \
} while (0)

static void
sizes_level_off_rates_and_memory_stay_and_counters_agree(void)
{
	struct given *g = given_system(&(struct given_conf){ .space = "3000000 20 50 50 400000 ERRQ n 16", .device_pages = 3100000,
	    .space_options = "-n 20000000b",
	    .queues = "qcreate ARRIVAL fifo none 1000000 0 100% 0% \"\"\nqcreate PRIO priority,fifo none 1000000 0 100% 0% \"\"\n"
		      "qcreate STACK lifo none 1000000 0 100% 0% \"\"\n" });
	double end = now_s() + minutes() * 60;
	long long fill = 256 << 20;
	struct work w;
	int round = 0;

	while (now_s() < end) {
		round++;
		if (!phase(g, round, FILL, fill, false, &w))
			break;
		if (!phase(g, round, DRAIN, round % 2 == 1 ? fill * 2 / 3 : INT64_MAX, false, &w))
			break;
	}
	/* What has expired by now goes, so that what is counted at the end is what can be taken. */
	phase(g, ++round, DRAIN, INT64_MAX, true, &w);
	phase(g, ++round, FILL, fill / 2, true, &w);
	counters_agree(g, ++round);
	if (round > WARM_ROUNDS + 4) {
		NOT_ABOVE(total, 1.3, 128 << 20, 1 << 20);
		NOT_ABOVE(bytes[0], 1.3, 128 << 20, 1 << 20);
		NOT_ABOVE(bytes[1], 1.5, 8 << 20, 1 << 20);
		NOT_ABOVE(bytes[2], 1.5, 96 << 20, 1 << 20);
		NOT_ABOVE(files, 1.5, 6, 1);
		NOT_ABOVE(logs, 1.5, 3, 1);
		NOT_ABOVE(descriptors, 1.2, 16, 1);
		NOT_ABOVE(rss_kb, 1.1, 128 << 10, 1 << 10);	/* 120 MB: the cache of non-persistent messages, which fills slowly */
	}
	printf("\n    ");
	CU_ASSERT_FALSE(given_logged(g, "ERROR:"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(sizes_level_off_rates_and_memory_stay_and_counters_agree) };

	return unit_run("soak: queue", tests, UNIT_COUNT(tests));
}
