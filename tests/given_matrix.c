/*
 * given_matrix - the plan of rounds, one round, its verdict, the table.
 */
#include "given_impl.h"
#include "given_matrix.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/point.h"

#define SPACES 3
#define BACK_S 20		/* a process is restarted and serves */
#define CLIENT_S 40		/* the client has its answer: its call has BLOCKTIME, 15 s, and what it waits for first */
#define HIT_S 8			/* a point that comes after the client's answer is reached */
#define AGAIN_S 3		/* ... once more; the others may have ended it meanwhile */
#define LATE_S 6		/* how long a slow process is slow, at most */

/* --- the plan --- */

enum action { KILL, STOP_KILL, STOP_GO, STOP_LATE, ACTIONS };
static const char *const action_names[] = { "kill", "stop, then kill", "stop, then go on", "stop, go on late" };
/*
 * Who serves again first: the one that died, at once; or the other side dies too, and one of them is held back; or the one that died
 * dies once more, when it gets there again while it recovers.
 */
enum order { AT_ONCE, COORDINATOR_FIRST, PARTICIPANT_FIRST, TWICE, ORDERS };
static const char *const order_names[] = { "at once", "coordinator first", "participant first", "at once, killed there again" };

static const struct { const char *name; enum point_role role; } points[] = {
#define POINT_ROW(name, role) { #name, POINT_ROLE_##role },
	POINTS(POINT_ROW)
};
#define ROLE(p) (points[p].role)

struct round {
	enum point point;
	enum action action;
	enum order order;
	int spaces, nth;
};

static bool
is_one_of(enum point p, const enum point *some, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (some[i] == p)
			return true;
	return false;
}
#define IS(p, ...) is_one_of(p, (const enum point[]){ __VA_ARGS__ }, sizeof (const enum point[]){ __VA_ARGS__ } / sizeof (enum point))

static bool
in_abort(enum point p)
{
	return IS(p, POINT_ABORT_SEND, POINT_ABORT_SENT, POINT_ABORT_ANSWERED, POINT_ABORT_RECEIVED, POINT_ABORT_FLUSH, POINT_ABORT_FLUSHED,
	    POINT_ABORT_REPLIED);
}

static bool	/* a participant must have died before it is reached, so that its vote is lost */
in_undo(enum point p)
{
	return IS(p, POINT_UNDO_SEND, POINT_UNDO_SENT);
}

static bool	/* ... so that it asks: after its vote, or before it, so that the answer is another */
in_query(enum point p)
{
	return IS(p, POINT_QUERY_SEND, POINT_QUERY_SENT, POINT_QUERY_ANSWERED, POINT_QUERY_RECEIVED);
}

static bool	/* It is reached while a queue manager recovers from what became of it there. */
in_recovery(enum point p)
{
	return IS(p, POINT_DECIDED_SEND, POINT_DECIDED_SENT, POINT_DECIDED_ANSWERED, POINT_RECORD_REMOVE,
	    POINT_DECIDED_RECEIVED, POINT_DECIDED_FLUSH, POINT_QUERY_SEND, POINT_QUERY_SENT, POINT_QUERY_ANSWERED, POINT_QUERY_RECEIVED);
}

static bool
makes_sense(const struct round *r)
{
	const char *only = getenv("MATRIX_ONLY");	/* points whose name holds this */
	bool queue_manager = ROLE(r->point) == POINT_ROLE_COORDINATOR || ROLE(r->point) == POINT_ROLE_PARTICIPANT;

	if (ROLE(r->point) == POINT_ROLE_ANY || (only != NULL && strstr(points[r->point].name, only) == NULL))
		return false;
	if (r->order != AT_ONCE && (!queue_manager || r->action == STOP_GO || r->action == STOP_LATE))
		return false;
	if (r->order == TWICE && (r->action != KILL || !in_recovery(r->point)))
		return false;
	if (r->action == STOP_LATE && !IS(r->point, POINT_COMMIT_RECEIVED, POINT_VOTE_READ, POINT_DECISION_WRITE, POINT_PREPARE_RECEIVED,
	    POINT_PREPARE_FLUSHED, POINT_DECIDED_RECEIVED))
		return false;
	return !in_undo(r->point) || r->spaces > 2;	/* somebody else voted */
}

static int
plan_make(struct round *plan)
{
	int n = 0;

	for (int p = 0; p < POINT_COUNT; p++)
		for (int a = 0; a < ACTIONS; a++)
			for (int o = 0; o < ORDERS; o++)
				for (int spaces = 2; spaces <= SPACES; spaces++) {
					struct round r = { (enum point)p, (enum action)a, (enum order)o, spaces, n };
					if (makes_sense(&r))
						plan[n++] = r;
				}
	return n;
}

/* --- one round --- */

enum outcome { COMMITTED, ROLLED_BACK, UNKNOWN_COMMITTED, UNKNOWN_ROLLED_BACK, FAILED, MISSED, OUTCOMES };
struct scores { atomic_int n[POINT_COUNT][OUTCOMES]; atomic_int longest_ms; };

struct scene {
	struct given *g;
	const struct round *r;
	char message[40], steps[8], end[2], answer[64];
	int coordinator, participant, third;		/* spaces; third: the other participant, 0: none */
	const char *who;				/* where the point is looked for */
	pid_t client, target;
	bool killed[SPACES + 1], client_died, client_killed, again;
	int settled_ms, took_ms;
	char why[400];					/* it failed */
};

static void
failed(struct scene *s, const char *fmt, ...)
{
	va_list ap;

	if (s->why[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof s->why, fmt, ap);
	va_end(ap);
}

static struct given *
system_new(void)
{
	return given_system(&(struct given_conf){ .spaces = SPACES, .points = true, .device_pages = 6000,
	    .space = "2000 20 50 50 2000 ERRQ n 16",
	    .queues = "qcreate SRC fifo none 1000 0 100% 0% \"\"\nqcreate OUT fifo none 1000 0 100% 0% \"\"\n"
		      "qcreate ALSO fifo none 1000 0 100% 0% \"\"\nqcreate NUDGE fifo none 0 0 100% 0% \"\"\n",
	    .server_params = "RESTART=Y GRACE=0 MAXGEN=255",
	    .server_services = "-s PUT,PING",
	    .server_source = "#include <atmi.h>\n#include <stdio.h>\n#include <string.h>\n"
			     "void PING(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n"
			     "void PUT(TPSVCINFO *m) { char s[32], q[32], *t; TPQCTL c; long rc; sscanf(m->data, \"%31s %31s\", s, q);\n"
			     "  t = tpalloc(\"STRING\", NULL, m->len); strcpy(t, strrchr(m->data, ' ') + 1); memset(&c, 0, sizeof c);\n"
			     "  rc = tpenqueue(s, q, &c, t, 0, 0); tpfree(t);\n"
			     "  tpreturn(rc == -1 ? TPFAIL : TPSUCCESS, rc == -1 ? tperrno : 0, NULL, 0, 0); }\n" });
}

/* The transaction of this round: who coordinates is who joins first. */
static void
scene_set(struct scene *s, struct given *g, const struct round *r)
{
	static const char *const steps[] = { "dse", "sde", "eds" };
	int n = r->nth / 5 % (r->spaces == 2 ? 2 : 3), last = r->spaces;

	memset(s, 0, sizeof *s);
	s->g = g;
	s->r = r;
	snprintf(s->message, sizeof s->message, "m%d", r->nth);
	snprintf(s->steps, sizeof s->steps, "%s", steps[n]);
	s->end[0] = in_abort(r->point) ? 'a' : r->nth / 2 % 2 ? 'l' : 'c';
	s->coordinator = n == 0 ? 1 : n == 1 ? last : 2;
	s->participant = s->coordinator == 1 ? 2 : 1;
	s->third = r->spaces > 2 ? 6 - s->coordinator - s->participant : 0;
	if (s->third != 0 && r->nth % 2) {
		s->participant = s->third;
		s->third = 6 - s->coordinator - s->participant;
	}
	switch (ROLE(r->point)) {
	case POINT_ROLE_INITIATOR:
		s->who = "client";
		break;
	case POINT_ROLE_SERVICE:
		s->who = "server";
		s->target = given_pid(g, "server", 0);
		break;
	case POINT_ROLE_COORDINATOR:
		s->who = given_group(s->coordinator);
		s->target = given_tmqueue(g, s->coordinator);
		break;
	default:
		s->who = given_group(s->participant);
		s->target = given_tmqueue(g, s->participant);
	}
}

static void
points_clear(struct given *g)
{
	given_point_clear(g, "client");
	given_point_clear(g, "server");
	for (int i = 1; i <= SPACES; i++)
		given_point_clear(g, given_group(i));
}

static void
client_start(struct scene *s)
{
	char result[PATH_MAX + 16];

	snprintf(result, sizeof result, "%s/result", given_dir(s->g));
	unlink(result);
	if ((s->client = fork()) == 0) {
		setenv("ATMIQ_TEST_POINT", given_point_dir(s->g, "client"), 1);
		execl("/proc/self/exe", "client", "matrix-client", s->message, s->steps, given_space(s->r->spaces), s->end, result,
		    (char *)NULL);
		_exit(127);
	}
	if (ROLE(s->r->point) == POINT_ROLE_INITIATOR)
		s->target = s->client;
}

static bool
client_over(void *arg)
{
	struct scene *s = arg;
	int st;

	if (s->client == 0 || waitpid(s->client, &st, WNOHANG) != s->client)
		return s->client == 0;
	s->client = 0;
	s->client_died = !WIFEXITED(st);
	return true;
}

static bool
hit(const struct scene *s)
{
	return given_point_hit(s->g, s->who, points[s->r->point].name);
}

static bool
hit_or_over(void *arg)
{
	return hit(arg) || client_over(arg);
}

static bool
is_hit(void *arg)
{
	return hit(arg);
}

static bool
is_stopped(void *arg)
{
	return process_state(*(pid_t *)arg) == 'T';
}

static bool
is_gone(void *arg)
{
	return process_gone(*(pid_t *)arg);
}

/* A participant that asks has been restarted: who is meant is who runs now. */
static pid_t
target_now(const struct scene *s)
{
	switch (ROLE(s->r->point)) {
	case POINT_ROLE_COORDINATOR:
		return given_tmqueue(s->g, s->coordinator);
	case POINT_ROLE_PARTICIPANT:
		return given_tmqueue(s->g, s->participant);
	default:
		return s->target;
	}
}

struct awaited { struct given *g; int space; pid_t not; };

static bool
waits_at_its_start(void *arg)
{
	struct awaited *a = arg;
	pid_t pid = given_tmqueue(a->g, a->space);

	return pid > 0 && pid != a->not && given_point_hit(a->g, given_group(a->space), "START") && process_state(pid) == 'T';
}

static bool
serves(void *arg)
{
	struct awaited *a = arg;
	TPQCTL ctl = { .flags = TPQPEEK };
	char *data = tpalloc("STRING", NULL, 64);
	long len;
	bool answers = tpdequeue((char *)given_space(a->space), "SRC", &ctl, &data, &len, 0) != -1 ||
	    (tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG);

	tpfree(data);
	return answers && given_tmqueue(a->g, a->space) > 0;
}

static void
let_go(struct scene *s, int space)
{
	struct awaited a = { s->g, space, 0 };

	kill(given_tmqueue(s->g, space), SIGCONT);
	if (!wait_until(serves, &a, BACK_S))
		failed(s, "the queue manager of %s does not serve again", given_space(space));
}

/* The target dies, or is dead; the other side is killed too, and they serve again one after the other. */
static void
both_die(struct scene *s)
{
	bool coordinator = ROLE(s->r->point) == POINT_ROLE_COORDINATOR;
	int other = coordinator ? s->participant : s->coordinator;
	struct awaited c = { s->g, s->coordinator, 0 }, p = { s->g, s->participant, 0 };

	*(coordinator ? &c.not : &p.not) = s->target;
	*(coordinator ? &p.not : &c.not) = given_tmqueue(s->g, other);
	if (coordinator ? p.not > 0 : c.not > 0)
		kill(coordinator ? p.not : c.not, SIGKILL);
	s->killed[other] = true;
	if (!wait_until(waits_at_its_start, &c, BACK_S) || !wait_until(waits_at_its_start, &p, BACK_S))
		failed(s, "a queue manager is not restarted");
	let_go(s, s->r->order == COORDINATOR_FIRST ? s->coordinator : s->participant);
	let_go(s, s->r->order == COORDINATOR_FIRST ? s->participant : s->coordinator);
}

/* What is done to the process that got there.  It has stopped, or is about to die. */
static void
strike(struct scene *s)
{
	const struct round *r = s->r;
	bool dies = r->action == KILL || r->action == STOP_KILL;

	if (r->action != KILL)
		s->target = target_now(s);
	if (r->action != KILL && !wait_until(is_stopped, &s->target, 10))
		failed(s, "it does not stop");
	if (dies && ROLE(r->point) == POINT_ROLE_COORDINATOR)
		s->killed[s->coordinator] = true;
	if (dies && ROLE(r->point) == POINT_ROLE_PARTICIPANT)
		s->killed[s->participant] = true;
	if (r->action == STOP_LATE)
		wait_until(client_over, s, LATE_S);
	if (r->action == STOP_KILL)
		kill(s->target, SIGKILL);
	if (!dies)
		kill(s->target, SIGCONT);
	else if (ROLE(r->point) == POINT_ROLE_INITIATOR)
		s->client_killed = wait_until(client_over, s, 10);
	else if (!wait_until(is_gone, &s->target, 10))
		failed(s, "it does not die");
	if (r->order == TWICE) {
		given_point_set(s->g, s->who, points[r->point].name, "kill");
		s->again = wait_until(is_hit, s, AGAIN_S);
	} else if (r->order != AT_ONCE)
		both_die(s);
}

static void
arm_point(struct scene *s)
{
	const struct round *r = s->r;

	given_point_set(s->g, s->who, points[r->point].name, r->action == KILL ? "kill" : "stop");
	if (r->order == COORDINATOR_FIRST || r->order == PARTICIPANT_FIRST) {
		given_point_set(s->g, given_group(s->coordinator), "START", "stop");
		given_point_set(s->g, given_group(s->participant), "START", "stop");
	}
}

static void
arm(struct scene *s)
{
	if (in_query(s->r->point)) {
		given_point_set(s->g, given_group(s->participant), s->r->nth / 2 % 2 ? "VOTE_SENT" : "PREPARE_FLUSHED", "kill");
		given_point_set(s->g, given_group(s->participant), "START", "stop");
		s->killed[s->participant] = true;
		return;			/* the point itself once it has died of that: see provoke() */
	}
	arm_point(s);
	if (in_undo(s->r->point)) {
		given_point_set(s->g, given_group(s->third), "PREPARE_RECEIVED", "kill");
		s->killed[s->third] = true;
	}
}

/* The participant has died in doubt and stands at its start.  A question of an earlier round's transaction cannot be taken for its own then. */
static void
provoke(struct scene *s)
{
	struct awaited a = { s->g, s->participant, 0 };

	if (!in_query(s->r->point))
		return;
	if (!wait_until(waits_at_its_start, &a, BACK_S))
		failed(s, "the participant did not die, or is not restarted");
	arm_point(s);
	kill(given_tmqueue(s->g, s->participant), SIGCONT);
}

/* --- afterwards --- */

static bool
service_answers(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len = 0;
	bool answers = tpcall("PING", NULL, 0, &data, &len, 0) != -1;

	tpfree(data);
	return answers;
}

static bool
all_back(void *arg)
{
	struct scene *s = arg;

	for (int i = 1; i <= SPACES; i++) {
		struct awaited a = { s->g, i, 0 };
		if (!serves(&a))
			return false;
	}
	return service_answers();
}

static long
number_after(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at != NULL ? atol(at + strlen(label)) : -1;
}

static long
messages_of(const char *text, const char *queue)
{
	char want[64];
	const char *at;

	snprintf(want, sizeof want, "queue: %s\n", queue);
	return (at = strstr(text, want)) != NULL ? number_after(at, "\n  messages: ") : -1;
}

struct state { long src, out, also, retries; };

static bool	/* nothing is under way in any space; *st: what is where, in the spaces of this round and the others */
is_clean(struct scene *s, struct state *st)
{
	bool clean = true;

	*st = (struct state){ 0, 0, 0, -1 };
	for (int i = 1; i <= SPACES; i++) {
		char *text = given_qmadmin_of(s->g, i, i == 1 ? "qprinttrans\nqinfo\nqset SRC\nqlist" : "qprinttrans\nqinfo");
		int held = count_of(text, "held by transactions: "), none = count_of(text, "held by transactions: 0\n");
		if (has(text, "transaction id") || held == 0 || held != none)
			clean = false;
		st->src += messages_of(text, "SRC");
		st->out += messages_of(text, "OUT");
		st->also += messages_of(text, "ALSO");
		if (i == 1)
			st->retries = number_after(text, "\n  retries: ");
		free(text);
	}
	return clean;
}

/* A coordinator removes a record with the next batch that is written anyway, or after a second: most rounds need not wait for that. */
static void
write_something(const struct scene *s)
{
	for (int i = 1; i <= SPACES && s->r->nth % 4 != 0; i++) {
		put_in(given_space(i), "NUDGE", "x");
		free(take_from(given_space(i), "NUDGE"));
	}
}

struct settling { struct scene *s; struct state st; };

static bool
settled(void *arg)
{
	struct settling *a = arg;

	write_something(a->s);
	return is_clean(a->s, &a->st);
}

static bool	/* exactly the message of this round, once */
holds_it(struct scene *s, const char *space, const char *queue)
{
	char *text = take_from(space, queue), *more = take_from(space, queue);
	bool it = text != NULL && more == NULL && strcmp(text, s->message) == 0;

	free(text);
	free(more);
	return it;
}

static enum outcome
judge(struct scene *s, bool was_hit)
{
	struct settling a = { s, { 0 } };
	char *answer = given_read(s->g, "result");
	bool in_src, in_out, in_also, yes = has(answer, "committed"), unknown;
	double began = now_s();

	snprintf(s->answer, sizeof s->answer, "%.*s", answer != NULL ? (int)strcspn(answer, "\n") : 7, answer != NULL ? answer : "nothing");
	unknown = answer == NULL || has(answer, "commit failed 13") || has(answer, "begin");
	free(answer);
	if (!wait_until(settled, &a, MATRIX_RECOVERY_S))
		failed(s, "a branch or a decision is left: SRC %ld, OUT %ld, ALSO %ld", a.st.src, a.st.out, a.st.also);
	s->settled_ms = (int)((now_s() - began) * 1000);
	in_src = holds_it(s, "QSPACE", "SRC");
	in_out = holds_it(s, given_space(s->r->spaces), "OUT");
	in_also = holds_it(s, "QSPACE2", "ALSO");
	if (in_out != in_also || in_out == in_src || a.st.src + a.st.out + a.st.also != (in_out ? 2 : 1))
		failed(s, "half: SRC %ld, OUT %ld, ALSO %ld", a.st.src, a.st.out, a.st.also);
	if (s->client_died && !s->client_killed)
		failed(s, "the client died");
	if (!unknown && yes != in_out)
		failed(s, "the program was told otherwise");
	if (in_src && a.st.retries != 1 && !(a.st.retries == 0 && (s->killed[1] || ROLE(s->r->point) == POINT_ROLE_SERVICE)))
		failed(s, "its retry count is %ld", a.st.retries);
	if (in_out && (in_abort(s->r->point) || (s->r->point == POINT_COMMIT_SEND && s->client_killed)))
		failed(s, "committed, and nobody wanted that");
	return s->why[0] != '\0' ? FAILED : !was_hit ? MISSED : unknown ? in_out ? UNKNOWN_COMMITTED : UNKNOWN_ROLLED_BACK : in_out ? COMMITTED : ROLLED_BACK;
}

static void
let_all_run(struct given *g)
{
	for (int i = 1; i <= SPACES; i++) {
		pid_t pid = given_tmqueue(g, i);
		if (process_state(pid) == 'T')
			kill(pid, SIGCONT);
	}
}

static enum outcome
play(struct scene *s)
{
	bool was_hit;

	put_in("QSPACE", "SRC", s->message);
	arm(s);
	client_start(s);
	provoke(s);
	wait_until(hit_or_over, s, CLIENT_S);
	was_hit = hit(s) || wait_until(is_hit, s, HIT_S);
	if (was_hit)
		strike(s);
	if (!wait_until(client_over, s, CLIENT_S)) {
		failed(s, "the program hangs");
		kill(s->client, SIGKILL);
		wait_until(client_over, s, 10);
	}
	points_clear(s->g);
	let_all_run(s->g);
	if (!wait_until(all_back, s, BACK_S))
		failed(s, "not all processes are back");
	return judge(s, was_hit);
}

/* --- all rounds --- */

static void
tell(const struct scene *s, const char *what)
{
	const struct round *r = s->r;

	fprintf(stderr, "\n%s: round %d: %s, %s, %d spaces, restart %s; steps %s, end %s, coordinator %d, participant %d; the program was told: %s; %d ms%s%s%s\n",
	    what, r->nth, points[r->point].name, action_names[r->action], r->spaces, order_names[r->order], s->steps, s->end,
	    s->coordinator, s->participant, s->answer, s->took_ms, s->again ? ", killed again" : "", s->why[0] != '\0' ? ": " : "", s->why);
}

static bool	/* the table of all transactions of the application */
none_in_the_table(void *arg)
{
	char *all = given_ok(arg, "printtrans\nq\n", "tmadmin 2>&1");
	bool none = !has(all, "gtrid");

	free(all);
	return none;
}

static void
play_all(struct scores *scores, const struct round *plan, int n, int part, int parts, int stride)
{
	struct given *g = system_new();
	struct scene s;
	enum outcome o;
	double began;

	for (int i = part * stride; i < n; i += parts * stride) {
		scene_set(&s, g, &plan[i]);
		began = now_s();
		o = play(&s);
		s.took_ms = (int)((now_s() - began) * 1000);
		scores->n[plan[i].point][o]++;
		if (s.settled_ms > scores->longest_ms)
			scores->longest_ms = s.settled_ms;
		if (getenv("MATRIX_TELL") != NULL || o == FAILED)
			tell(&s, o == FAILED ? "failed" : o == MISSED ? "missed" : "ok");
		if (o != FAILED)
			continue;
		tpterm();		/* what is left of it would disturb the rounds that follow */
		given_remove(g);
		g = system_new();
	}
	CU_ASSERT_TRUE(wait_until(none_in_the_table, g, MATRIX_RECOVERY_S));
	given_done(g);
}

static void
print_table(const struct scores *scores)
{
	static const char *const roles[] = { "initiator", "service", "coordinator", "participant", "any" };

	printf("\n%-18s %-12s %6s %6s %9s %11s %17s %19s %6s\n", "point", "process", "rounds", "hit", "committed", "rolled back",
	    "unknown/committed", "unknown/rolled back", "failed");
	for (int p = 0; p < POINT_COUNT; p++) {
		const atomic_int *n = scores->n[p];
		int hit = n[COMMITTED] + n[ROLLED_BACK] + n[UNKNOWN_COMMITTED] + n[UNKNOWN_ROLLED_BACK] + n[FAILED];
		if (ROLE(p) != POINT_ROLE_ANY)
			printf("%-18s %-12s %6d %6d %9d %11d %17d %19d %6d\n", points[p].name, roles[ROLE(p)], hit + n[MISSED], hit,
			    n[COMMITTED], n[ROLLED_BACK], n[UNKNOWN_COMMITTED], n[UNKNOWN_ROLLED_BACK], n[FAILED]);
	}
	printf("settled at most %d ms after all processes were back\n", scores->longest_ms);
}

void
matrix_run(int stride, int side_by_side)
{
	struct scores *scores = mmap(NULL, sizeof *scores, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static struct round plan[POINT_COUNT * ACTIONS * ORDERS * (SPACES - 1)];
	int n = plan_make(plan), st;
	pid_t pid[8];

	CU_ASSERT_TRUE_FATAL(scores != MAP_FAILED && side_by_side <= 8);
	fflush(NULL);
	for (int i = 0; i < side_by_side; i++)
		if ((pid[i] = fork()) == 0) {
			play_all(scores, plan, n, i, side_by_side, stride);
			_exit(CU_get_number_of_failures() == 0 ? 0 : 1);
		}
	for (int i = 0; i < side_by_side; i++) {
		waitpid(pid[i], &st, 0);
		CU_ASSERT_TRUE(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	}
	print_table(scores);
	for (int p = 0; p < POINT_COUNT; p++) {
		int hit = 0, missed = scores->n[p][MISSED];
		for (int o = 0; o < MISSED; o++)
			hit += scores->n[p][o];
		CU_ASSERT_EQUAL(scores->n[p][FAILED], 0);
		if (ROLE(p) != POINT_ROLE_ANY && hit + missed > 0 && hit == 0) {
			fprintf(stderr, "%s was never reached\n", points[p].name);
			CU_FAIL("a point was never reached");
		}
	}
	munmap(scores, sizeof *scores);
}
