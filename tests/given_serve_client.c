/*
 * given_serve_client - sends requests of every kind, takes the answers, and writes down what it was told.
 */
#include "given_serve.h"
#include "given_impl.h"

#include <sys/stat.h>

static FILE *out;
static int me, seq, taken;
static unsigned seed;

bool
serve_is_client(int argc, char **argv)
{
	return argc == 5 && strcmp(argv[0], "serve-client") == 0;
}

/* What a failed call leaves open.  A diagnostic is the queue manager's own answer, and TPENOENT means nobody was asked. */
static const char *
outcome(int rc)
{
	if (rc != -1)
		return "ok";
	nap_ms(5);
	return tperrno == TPEDIAGNOSTIC || tperrno == TPENOENT || tperrno == TPEABORT ? "no" : "unknown";
}

static void	/* Of a thousand requests: so many of each kind, the percentage that turns bad, and the rest is served well. */
kind_of_this(char *text, size_t size)
{
	static const struct { char kind; unsigned percent, of_1000; } kinds[] = {
		{ 'n', 100, 80 }, { 'f', 60, 40 }, { 'F', 60, 40 }, { 'f', 100, 15 }, { 'F', 100, 15 }, { 'r', 60, 20 }, { 'w', 100, 20 },
		{ 's', 60, 3 }, { 'S', 60, 3 }, { 'a', 60, 3 }, { 'A', 60, 3 }, { 'e', 60, 3 }, { 'E', 60, 3 }, { 'k', 60, 3 },
		{ 'K', 60, 3 }, { 'K', 100, 1 }, { 's', 100, 1 }, { 'x', 60, 3 }, { 'X', 60, 3 }, { 'h', 60, 1 }, { 'H', 60, 1 }, { 'l', 60, 1 }, { 'L', 60, 1 },
	};
	unsigned at = (unsigned)rand_r(&seed) % 1000u;
	size_t i;

	for (i = 0; i < UNIT_COUNT(kinds) && at >= kinds[i].of_1000; i++)
		at -= kinds[i].of_1000;
	if (i < UNIT_COUNT(kinds))
		snprintf(text, size, "%c%u", kinds[i].kind, kinds[i].percent);
	else
		snprintf(text, size, ".0");
}

static void
send_one(void)
{
	TPQCTL ctl = { .flags = TPQCORRID | TPQREPLYQ | TPQFAILUREQ };
	char *data = tpalloc("STRING", NULL, 100), kind[16];
	bool work = rand_r(&seed) % 2 == 0;
	const char *word;

	kind_of_this(kind, sizeof kind);
	snprintf(data, 100, "P%d S%d %s", me, seq, kind);
	snprintf(ctl.corrid, sizeof ctl.corrid, "c%d.%d", me, seq);
	snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "REPLY%d", me);
	snprintf(ctl.failurequeue, sizeof ctl.failurequeue, "FAILURE");
	word = outcome(tpenqueue("QSPACE", work ? "WORK" : "JOBS", &ctl, data, 0, 0));
	fprintf(out, "E %d %c %s\n", seq++, work ? 'W' : 'J', word);
	tpfree(data);
}

static bool	/* false: there was none */
take_one(void)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 100), queue[16];
	int producer = -1, s = -1;
	long len;
	const char *word = "no";
	bool got = false;

	snprintf(queue, sizeof queue, "REPLY%d", me);
	if (tpbegin(10, 0) == -1) {
		nap_ms(5);
	} else if (tpdequeue("QSPACE", queue, &ctl, &data, &len, 0) == -1) {
		tpabort(0);
	} else {
		got = true;
		sscanf(data, "P%d S%d", &producer, &s);
		if (rand_r(&seed) % 16 == 0)
			tpabort(0);
		else
			word = outcome(tpcommit(0));
		taken += strcmp(word, "ok") == 0;
		fprintf(out, "R %d %d %s\n", producer, s, word);
	}
	tpfree(data);
	return got;
}

/* argv: number, log, the file that ends it */
int
serve_client(char **argv)
{
	struct stat st;

	me = atoi(argv[2]);
	seed = (unsigned)getpid() * 31u + (unsigned)me;
	if ((out = fopen(argv[3], "w")) == NULL || tpinit(NULL) == -1)
		return 1;
	setvbuf(out, NULL, _IOLBF, 0);
	while (stat(argv[4], &st) != 0) {
		/* As many as the services get through: much of it fails, and is not answered. */
		bool may_send = seq < 2 * taken + 25;

		if (may_send && rand_r(&seed) % 2 == 0)
			send_one();
		else if (!take_one())
			nap_ms(10);
	}
	fclose(out);
	tpterm();
	return 0;
}
