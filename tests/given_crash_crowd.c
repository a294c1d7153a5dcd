/*
 * given_crash_crowd - clients that are killed, and what their logs prove.
 *
 *     e S seq            about to enqueue; E S seq ok|no|unknown afterwards.  S: s SHARED, l LOOSE
 *     d s producer seq   in hand, in a transaction that is about to commit; D ... ok|no|unknown afterwards
 *     w l                about to take from LOOSE, without a transaction; D l producer seq ok, or W l none|unknown
 *
 * SHARED is read in transactions: whoever dies, each message acknowledged comes out exactly once.  LOOSE is read without,
 * by clients that wait: one that dies, or is not answered, may take one message with it; no other is lost.
 */
#include "given_crash_space.h"
#include "given_impl.h"

#include <unistd.h>

#define SEQS 20000

static struct control *control;
static FILE *out;
static unsigned seed;
static int me, seq;

static unsigned
dice(unsigned sides)
{
	return (unsigned)rand_r(&seed) % sides;
}

static const char *
word(int rc, const TPQCTL *ctl)
{
	if (rc != -1)
		return "ok";
	if (tperrno == TPENOENT || tperrno == TPEABORT)
		return "no";
	return tperrno == TPEDIAGNOSTIC && ctl != NULL && ctl->diagnostic != QMESYSTEM && ctl->diagnostic != QMEOS ? "no" :
	    "unknown";
}

static void
breathe(const char *w)
{
	if (strcmp(w, "ok") != 0)
		nap_ms(5);
}

static void
corrid_of(TPQCTL *c, unsigned which)
{
	memset(c->corrid, 0, sizeof c->corrid);
	snprintf(c->corrid, sizeof c->corrid, "crowd %u", which);
}

static void
send_to(const char *queue, char sign)
{
	TPQCTL c = { 0 };
	char *data = tpalloc("STRING", NULL, 200);
	bool tran = dice(3) == 0 && tpbegin(5, 0) == 0;
	const char *w;

	if (dice(4) != 0) {
		c.flags |= TPQCORRID;
		corrid_of(&c, dice(CROWD_CORRIDS));
	}
	snprintf(data, 200, "P%d S%d", me, seq);
	fprintf(out, "e %c %d\n", sign, seq);
	w = word(tpenqueue("QSPACE", (char *)queue, &c, data, 0, 0), &c);
	if (tran && strcmp(w, "ok") == 0)
		w = word(tpcommit(0), NULL);
	else if (tran) {
		tpabort(0);
		w = "no";
	}
	fprintf(out, "E %c %d %s\n", sign, seq++, w);
	tpfree(data);
	breathe(w);
}

/* In a transaction, waiting, by correlation id or not. */
static void
take_shared(void)
{
	TPQCTL c = { .flags = dice(3) != 0 ? TPQWAIT : 0 };
	char *data = tpalloc("STRING", NULL, 200);
	int producer, s;
	long len;
	const char *w = "no";

	if (dice(2) == 0) {
		c.flags |= TPQGETBYCORRID;
		corrid_of(&c, dice(CROWD_CORRIDS));
	}
	if (tpbegin(1 + dice(2), 0) == -1) {
		nap_ms(5);
	} else if (tpdequeue("QSPACE", "SHARED", &c, &data, &len, 0) == -1) {
		tpabort(0);
		if (tperrno != TPEDIAGNOSTIC && tperrno != TPETIME)
			nap_ms(5);
	} else if (sscanf(data, "P%d S%d", &producer, &s) != 2) {
		fprintf(out, "! not a message of ours: %s\n", data);
		tpabort(0);
	} else {
		fprintf(out, "d s %d %d\n", producer, s);
		if (dice(8) == 0)
			tpabort(0);
		else
			w = word(tpcommit(0), NULL);
		fprintf(out, "D s %d %d %s\n", producer, s, w);
	}
	tpfree(data);
}

static void
take_loose(void)
{
	TPQCTL c = { .flags = TPQWAIT };
	char *data = tpalloc("STRING", NULL, 200);
	int producer, s;
	long len;

	if (dice(2) == 0) {
		c.flags |= TPQGETBYCORRID;
		corrid_of(&c, dice(CROWD_CORRIDS));
	}
	if (dice(3) == 0)
		tpsblktime(1, TPBLK_NEXT);
	fprintf(out, "w l\n");
	if (tpdequeue("QSPACE", "LOOSE", &c, &data, &len, 0) == -1) {
		fprintf(out, "W l %s\n", strcmp(word(-1, &c), "no") == 0 ? "none" : "unknown");
		breathe("");
	} else if (sscanf(data, "P%d S%d", &producer, &s) == 2)
		fprintf(out, "D l %d %d ok\n", producer, s);
	else
		fprintf(out, "! not a message of ours: %s\n", data);
	tpfree(data);
}

int
crash_crowd_client(int number, const char *log, const char *control_file)
{
	int role = number % CROWD;

	me = number;
	seed = (unsigned)getpid() * 31u + (unsigned)me;
	if ((out = fopen(log, "w")) == NULL || (control = control_open(control_file)) == NULL)
		return 1;
	setvbuf(out, NULL, _IOLBF, 0);
	while (tpinit(NULL) == -1 && !control->stop)
		nap_ms(20);
	while (!control->stop) {
		switch (role) {
		case 0:
		case 1:
			send_to("SHARED", 's');
			nap_ms(2);
			break;
		case 2:
			send_to("LOOSE", 'l');
			nap_ms(4);
			break;
		case 3:
		case 4:
			take_loose();
			break;
		default:
			take_shared();
			break;
		}
		control->ops[CRASH_MODELS + role]++;
		if (seq >= SEQS)
			break;
	}
	fclose(out);
	tpterm();
	return 0;
}

/* --- the verdict --- */

struct fate { unsigned char queue, sent, taken, maybe_taken, left; };	/* sent: 0 never, 1 yes, 2 no, 3 unknown */
static struct fate *fates[CROWD_MAX];
struct tally { long sent, unknown, taken, left, lost, doubled, phantom, loose_lost, unanswered; };

static struct fate *
fate_of(int producer, int s)
{
	if (producer < 0 || producer >= CROWD_MAX || s < 0 || s >= SEQS)
		return NULL;
	if (fates[producer] == NULL)
		fates[producer] = calloc(SEQS, sizeof **fates);
	return fates[producer] == NULL ? NULL : &fates[producer][s];
}

static void
read_log(const char *path, int client, struct tally *t)
{
	FILE *f = fopen(path, "r");
	char line[256], how[16], sign;
	struct fate *open = NULL, *m;
	bool waiting = false;
	int producer, s;

	if (f == NULL)
		return;		/* killed before it had one */
	while (fgets(line, sizeof line, f) != NULL) {
		if (strchr(line, '\n') == NULL)
			break;	/* killed while it wrote */
		if (sscanf(line, "e %c %d", &sign, &s) == 2 && (m = fate_of(client, s)) != NULL) {
			m->queue = (unsigned char)sign;
			m->sent = 3;
		} else if (sscanf(line, "E %c %d %15s", &sign, &s, how) == 3 && (m = fate_of(client, s)) != NULL) {
			m->sent = how[0] == 'o' ? 1 : how[0] == 'n' ? 2 : 3;
			t->sent += m->sent == 1;
			t->unknown += m->sent == 3;
		} else if (sscanf(line, "d s %d %d", &producer, &s) == 2 && (m = fate_of(producer, s)) != NULL) {
			open = m;
		} else if (sscanf(line, "D %c %d %d %15s", &sign, &producer, &s, how) == 4 && (m = fate_of(producer, s)) != NULL) {
			m->taken += how[0] == 'o';
			m->maybe_taken += how[0] == 'u';
			t->taken += how[0] == 'o';
			open = NULL;
			waiting = false;
		} else if (strncmp(line, "w l", 3) == 0) {
			waiting = true;
		} else if (strncmp(line, "W l", 3) == 0) {
			t->unanswered += strstr(line, "unknown") != NULL;
			waiting = false;
		} else {
			fprintf(stderr, "%s: %s", path, line);
			t->phantom++;
		}
	}
	if (open != NULL)
		open->maybe_taken++;
	t->unanswered += waiting;
	fclose(f);
}

static void
drain(const char *queue, struct tally *t)
{
	char *text;
	int producer, s;
	struct fate *m;

	while ((text = take(queue)) != NULL) {
		if (sscanf(text, "P%d S%d", &producer, &s) != 2 || (m = fate_of(producer, s)) == NULL)
			t->phantom++;
		else
			m->left++;
		t->left++;
		free(text);
	}
}

int
crash_crowd_verdict(struct given *g, int clients, long killed)
{
	struct tally t = { 0 };
	char path[PATH_MAX * 2];
	const char *why;

	for (int i = 0; i < clients; i++) {
		snprintf(path, sizeof path, "%s/crowd%d.log", given_dir(g), i);
		read_log(path, i, &t);
	}
	drain("SHARED", &t);
	drain("LOOSE", &t);
	for (int i = 0; i < clients; i++)
		for (int s = 0; fates[i] != NULL && s < SEQS; s++) {
			const struct fate *m = &fates[i][s];
			int n = m->taken + m->left;
			why = NULL;
			if (n > 1)
				t.doubled++, why = "doubled";
			else if (n == 1 && (m->sent == 0 || m->sent == 2))
				t.phantom++, why = "refused, and yet here";
			else if (n == 0 && m->sent == 1 && m->maybe_taken == 0) {
				if (m->queue == 'l')
					t.loose_lost++;
				else
					t.lost++, why = "lost";
			}
			if (why != NULL && t.lost + t.doubled + t.phantom < 10)
				fprintf(stderr, "crowd %d message %d on %c: %s (taken %d, maybe %d, left %d)\n", i, s, m->queue, why,
				    m->taken, m->maybe_taken, m->left);
		}
	for (int i = 0; i < clients; i++) {
		free(fates[i]);
		fates[i] = NULL;
	}
	printf("crowd of %d (%ld killed): %ld sent (%ld unknown), %ld taken, %ld left, lost %ld, doubled %ld, out of nowhere %ld; "
	    "waits without transaction that got no answer %ld, messages they took along %ld\n", clients, killed, t.sent, t.unknown,
	    t.taken, t.left, t.lost, t.doubled, t.phantom, t.unanswered, t.loose_lost);
	return (int)(t.lost + t.doubled + t.phantom) + (t.loose_lost > t.unanswered);
}
