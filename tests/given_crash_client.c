/*
 * given_crash_client - a client that goes on whatever happens, and writes down what it was told.
 */
#include "given_crash_space.h"
#include "given_impl.h"

#include <sys/stat.h>
#include <unistd.h>

static FILE *out;
static int me, seq, taken;
static unsigned seed;

bool
crash_is_client(int argc, char **argv)
{
	return argc == 5 && strcmp(argv[0], "crash-client") == 0;
}

static bool
asked_to_stop(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0;
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

static void
send_one(const char *queue, int q, const char *replyqueue)
{
	TPQCTL ctl = { .flags = TPQCORRID };
	char *data = tpalloc("STRING", NULL, 1100);
	bool in_tx = replyqueue == NULL && rand_r(&seed) % 4 == 0 && tpbegin(10, 0) == 0;
	const char *word;

	snprintf(data, 1100, "P%d S%d %0*d", me, seq, (int)(rand_r(&seed) % 1000u) + 1, 0);
	snprintf(ctl.corrid, sizeof ctl.corrid, "c%d.%d", me, seq);
	if (replyqueue != NULL) {
		ctl.flags |= TPQREPLYQ;
		snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "%s", replyqueue);
	}
	word = outcome(tpenqueue("QSPACE", (char *)queue, &ctl, data, 0, 0));
	if (in_tx && strcmp(word, "ok") == 0)
		word = outcome(tpcommit(0));
	else if (in_tx) {
		tpabort(0);		/* never committed: whatever became of the enqueue, it is undone */
		word = "no";
	}
	fprintf(out, "E %d %d %s\n", q, seq++, word);
	fflush(out);
	tpfree(data);
}

static void
take_one(const char *queue, int q)
{
	static int last_own = -1;
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 1100);
	long len;
	int producer, s;
	const char *word = "no";

	if (tpbegin(10, 0) == -1) {
		nap_ms(5);
		tpfree(data);
		return;
	}
	if (tpdequeue("QSPACE", (char *)queue, &ctl, &data, &len, 0) == -1) {
		if (tperrno != TPEDIAGNOSTIC || ctl.diagnostic != QMENOMSG)
			nap_ms(5);
		tpabort(0);
	} else if (sscanf(data, "P%d S%d", &producer, &s) != 2) {
		fprintf(out, "not a message of ours: %s\n", data);
	} else {
		if (q < CRASH_CLIENTS && s <= last_own)		/* the only consumer of this queue sees its order */
			fprintf(out, "own message %d came after %d\n", s, last_own);
		if (rand_r(&seed) % 8 == 0)
			tpabort(0);
		else
			word = outcome(tpcommit(0));
		if (strcmp(word, "ok") == 0) {
			taken++;
			last_own = q < CRASH_CLIENTS ? s : last_own;
		}
		fprintf(out, "D %d %d %d %s\n", q, producer, s, word);
	}
	fflush(out);
	tpfree(data);
}

int
crash_client(int argc, char **argv)
{
	char own[16];
	bool forward;

	if (argc == 5 && strcmp(argv[1], "model") == 0)
		return crash_model_client(atoi(argv[2]), argv[3], argv[4]);
	if (argc == 5 && strcmp(argv[1], "crowd") == 0)
		return crash_crowd_client(atoi(argv[2]), argv[3], argv[4]);
	if (argc == 5 && strcmp(argv[1], "gauge") == 0)
		return crash_gauge_client(argv[3], argv[4]);
	me = atoi(argv[2]);
	forward = strcmp(argv[1], "forward") == 0 || (strcmp(argv[1], "boot") == 0 && me >= CRASH_CLIENTS / 2);
	seed = (unsigned)getpid() * 31u + (unsigned)me;
	if ((out = fopen(argv[3], "w")) == NULL || tpinit(NULL) == -1)
		return 1;
	snprintf(own, sizeof own, "OWN%d", me);
	while (!asked_to_stop(argv[4])) {
		bool mine = !forward && rand_r(&seed) % 2 == 0;
		int q = forward ? CRASH_CLIENTS + 1 : mine ? me : CRASH_CLIENTS;
		/* A little more going in than out, up to a point, so that the queues are seldom empty and never full. */
		if (rand_r(&seed) % 100u < (seq < taken + 200 ? 52u : 5u))
			send_one(forward ? "REQUEST" : mine ? own : "SHARED", q, forward ? "ANSWER" : NULL);
		else
			take_one(forward ? "ANSWER" : mine ? own : "SHARED", q);
	}
	fclose(out);
	tpterm();
	return 0;
}
