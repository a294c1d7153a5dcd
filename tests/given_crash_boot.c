/*
 * given_crash_boot - rounds of boot, load, shutdown, and what is left after each.
 */
#include "given_crash.h"
#include "given_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int
crash_rounds(int otherwise)
{
	const char *s = getenv("CRASH_ROUNDS");

	return s != NULL && atoi(s) > 0 ? atoi(s) : otherwise;
}

struct rounds {
	struct given *g;
	struct crowd crowd;
	unsigned seed;
	int round, kills, interrupts;
	double boots_s, longest_boot_s;
	long wrote[CRASH_CLIENTS];
};

static unsigned
dice(struct rounds *r, unsigned sides)
{
	return (unsigned)rand_r(&r->seed) % sides;
}

/* --- what must be true --- */

static void
fails(struct rounds *r, const char *what, const char *detail)
{
	fprintf(stderr, "\nround %d: %s%s%s\n", r->round, what, detail != NULL ? ": " : "", detail != NULL ? detail : "");
	CU_FAIL("a round does not end as it should");
}

static int
servers_left(const struct given *g)
{
	return given_count(g, NULL) - given_count(g, "exe");	/* the clients, as posix_spawn() names them */
}

static bool	/* a line of the file has the text */
file_has(const char *path, const char *text)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
		found = strstr(line, text) != NULL;
	if (f != NULL)
		fclose(f);
	return found;
}

/* Temporary files that a process left, and files that a lock is held on; in the directory and those below it. */
static void
look_at_files(struct rounds *r, const char *dir)
{
	DIR *d = opendir(dir);
	char path[PATH_MAX * 2 + 300], inode[64];
	struct dirent *e;
	struct stat st;

	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] == '.' || lstat(path, &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode))
			look_at_files(r, path);
		snprintf(inode, sizeof inode, ":%lu ", (unsigned long)st.st_ino);
		if (file_has("/proc/locks", inode))
			fails(r, "locked", path);
		if (strstr(e->d_name, ".new") != NULL || strstr(e->d_name, ".tmp") != NULL || strncmp(e->d_name, "core", 4) == 0 ||
		    S_ISSOCK(st.st_mode))
			fails(r, "left behind", path);
	}
	if (d != NULL)
		closedir(d);
}

static void
nothing_is_left(struct rounds *r)
{
	const char *rundir = given_rundir(r->g);
	struct ran ps;

	if (servers_left(r->g) > 0) {
		ps = given_run(r->g, NULL, "ps -ef | grep -E 'BBL|TMQ|server' | grep -v grep");
		fails(r, "processes are left", ps.out);
		ran_free(&ps);
	}
	if (access(rundir, F_OK) == 0)
		fails(r, "the run directory is left", rundir);
	if (file_has("/proc/net/unix", rundir))
		fails(r, "a name of a socket is left", rundir);
	look_at_files(r, given_dir(r->g));
}

static bool
all_went_on(void *arg)
{
	struct rounds *r = arg;

	for (int i = 0; i < CRASH_CLIENTS; i++)
		if (crowd_wrote(&r->crowd, i) <= r->wrote[i])
			return false;
	return true;
}

/* Each client gets on: none needs to be started again. */
static void
load(struct rounds *r)
{
	for (int i = 0; i < CRASH_CLIENTS; i++)
		r->wrote[i] = crowd_wrote(&r->crowd, i);
	if (!wait_until(all_went_on, r, 30))
		fails(r, "a client does not get on", NULL);
	nap_ms((int)dice(r, 200));
}

/* --- commands, whole or interrupted --- */

static void
sure(struct rounds *r, const char *command)
{
	struct ran x = given_run(r->g, NULL, "%s 2>&1", command);

	if (x.status != 0) {
		fprintf(stderr, "\n%s: %d\n%s", command, x.status, x.out);
		fails(r, "fails", command);
	}
	ran_free(&x);
}

static bool
child_ended(void *pid)
{
	return waitpid(*(pid_t *)pid, NULL, WNOHANG) == *(pid_t *)pid;
}

static pid_t
begin(const char *command)
{
	pid_t pid = fork();
	char line[200];

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		setpgid(0, 0);
		snprintf(line, sizeof line, "exec %s", command);
		if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2)
			execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	setpgid(pid, pid);
	return pid;
}

/* Killed by `sig` after a moment; what it has begun goes on by itself. */
static void
interrupted(struct rounds *r, const char *command, int sig)
{
	pid_t pid = begin(command);

	nap_ms((int)dice(r, 40));
	kill(-pid, sig);		/* as Ctrl-C does: all of the process group */
	r->interrupts++;
	if (!wait_until(child_ended, &pid, 20))
		fails(r, "cannot be interrupted", command);
}

static void
kill_one(struct rounds *r, const char *name)
{
	pid_t pid = given_pid(r->g, name, 0);

	if (pid > 0 && kill(pid, SIGKILL) == 0)
		r->kills++;
}

static void
boot(struct rounds *r)
{
	double began = now_s();

	sure(r, "tmboot -y");
	began = now_s() - began;
	r->boots_s += began;
	r->longest_boot_s = began > r->longest_boot_s ? began : r->longest_boot_s;
}

/* --- ways to shut down --- */

static void plainly(struct rounds *r) { sure(r, "tmshutdown -y -c"); }
static void by_force(struct rounds *r) { sure(r, "tmshutdown -y -c -k KILL"); }
static void by_sigterm(struct rounds *r) { sure(r, "tmshutdown -y -c -k TERM"); }
static void with_a_delay(struct rounds *r) { sure(r, "tmshutdown -y -c -w 1"); }

static void	/* parts in any order, some booted again in between, BBL last */
in_parts(struct rounds *r)
{
	static const char *const parts[] = { "-s server", "-s TMQFORWARD", "-s TMQUEUE", "-T QUE1", "-g APP", "-i 10", "-g QUE1" };
	char line[64];

	for (int i = 0; i < 4; i++) {
		const char *part = parts[dice(r, UNIT_COUNT(parts))];

		snprintf(line, sizeof line, "tmshutdown %s", part);
		sure(r, line);
		snprintf(line, sizeof line, "tmboot %s", part);
		if (dice(r, 2) == 0)
			sure(r, line);
	}
	sure(r, "tmshutdown -S");
	sure(r, "tmshutdown -A -c");
}

static void
interrupted_and_again(struct rounds *r)
{
	interrupted(r, "tmshutdown -y -c", dice(r, 2) == 0 ? SIGINT : SIGKILL);
	/* The first one may have been over already. */
	if (servers_left(r->g) > 0 || access(given_rundir(r->g), F_OK) == 0)
		sure(r, "tmshutdown -y -c || test $? -eq 1 -a ! -d \"$RUNDIR\"");
}

static void
at_once_with_another(struct rounds *r)
{
	const char *second = dice(r, 2) == 0 ? "tmshutdown -y -c" : "tmboot -y";
	pid_t one = begin("tmshutdown -y -c"), other = begin(second);

	if (!wait_until(child_ended, &one, 60))
		fails(r, "tmshutdown does not end, at once with", second);
	if (!wait_until(child_ended, &other, 60))
		fails(r, "does not end, at once with tmshutdown", second);
	if (servers_left(r->g) > 0 || access(given_rundir(r->g), F_OK) == 0)
		sure(r, "tmboot -y && tmshutdown -y -c");
}

static void
while_processes_die(struct rounds *r)
{
	static const char *const any[] = { "BBL", "TMQUEUE", "TMQFORWARD", "server" };
	pid_t pid = begin("tmshutdown -y -c");

	nap_ms((int)dice(r, 30));
	kill_one(r, any[dice(r, UNIT_COUNT(any))]);
	if (!wait_until(child_ended, &pid, 60))
		fails(r, "tmshutdown does not end when a process dies", NULL);
	sure(r, "tmboot -y && tmshutdown -y -c");
}

static void
with_hung_processes(struct rounds *r)
{
	kill(given_pid(r->g, "server", 0), SIGSTOP);
	kill(given_pid(r->g, "TMQFORWARD", 0), SIGSTOP);
	sure(r, dice(r, 2) == 0 ? "tmshutdown -y -c -w 1" : "tmipcrm -y");
}

static void
after_a_boot_that_was_interrupted(struct rounds *r)
{
	sure(r, "tmshutdown -y -c");
	for (int i = 0; i < 3; i++)
		interrupted(r, "tmboot -y", dice(r, 2) == 0 ? SIGINT : SIGKILL);
	boot(r);
	load(r);
	sure(r, "tmshutdown -y -c");
}

static void
after_the_death_of_bbl(struct rounds *r)
{
	kill_one(r, "BBL");
	sure(r, "tmshutdown -y -c");
}

static void
after_the_death_of_the_queue_manager(struct rounds *r)
{
	kill_one(r, "TMQUEUE");
	if (dice(r, 2) == 0)
		load(r);
	sure(r, "tmshutdown -y -c");
}

static void
after_the_death_of_the_forwarder(struct rounds *r)
{
	kill_one(r, "TMQFORWARD");
	if (dice(r, 2) == 0)
		kill_one(r, "server");
	sure(r, "tmshutdown -y -c");
}

static void	/* nobody is left who could know of the others */
after_the_death_of_all(struct rounds *r)
{
	static const char *const all[] = { "BBL", "TMQUEUE", "TMQFORWARD", "server" };

	for (size_t i = 0; i < UNIT_COUNT(all); i++)
		kill_one(r, all[i]);
	boot(r);
	load(r);
	sure(r, "tmshutdown -y -c");
}

static void
by_tmipcrm(struct rounds *r)
{
	sure(r, "tmipcrm -y");
	sure(r, "echo 'ipcrm -f -y QSPACE' | qmadmin");
}

static void
by_tmipcrm_that_was_interrupted(struct rounds *r)
{
	interrupted(r, "tmipcrm -y", dice(r, 2) == 0 ? SIGINT : SIGKILL);
	if (dice(r, 2) == 0)
		boot(r);
	sure(r, "tmipcrm -y");
}

static void	/* for clients are attached, or BBL is dead */
by_tmshutdown_that_fails_and_tmipcrm(struct rounds *r)
{
	sure(r, "tmshutdown -y >/dev/null 2>&1; tmipcrm -y");
	sure(r, "echo 'ipcrm -f -y QSPACE' | qmadmin");
}

static void (*const ways[])(struct rounds *) = {
	plainly, by_force, with_a_delay, in_parts, interrupted_and_again, after_a_boot_that_was_interrupted, after_the_death_of_bbl,
	after_the_death_of_the_queue_manager, after_the_death_of_the_forwarder, after_the_death_of_all, by_tmipcrm,
	by_tmshutdown_that_fails_and_tmipcrm, by_sigterm, at_once_with_another, while_processes_die, with_hung_processes,
	by_tmipcrm_that_was_interrupted,
};

/* --- the run --- */

static const char service[] = "#include \"atmi.h\"\nvoid REQUEST(TPSVCINFO *m)\n{\n\ttpreturn(TPSUCCESS, 0, m->data, 0, 0);\n}\n";

#define UNLIMITED "RESTART=Y GRACE=0 MAXGEN=255"

static struct given *
application(void)
{
	char queues[2048] = "qcreate SHARED fifo none 1000000 0 100% 0% \"\"\nqcreate REQUEST fifo none 1000000 0 100% 0% \"\"\n"
	    "qcreate ANSWER fifo none 1000000 0 100% 0% \"\"\n";
	struct given *g;

	for (int i = 0; i < CRASH_CLIENTS; i++)
		snprintf(queues + strlen(queues), sizeof queues - strlen(queues), "qcreate OWN%d fifo none 1000000 0 100%% 0%% \"\"\n", i);
	g = given_system(&(struct given_conf){ .server_source = service, .server_services = "-s REQUEST", .server_params = "RQADDR=\"set\" MIN=2 " UNLIMITED,
	    .space = "100000 20 50 50 100000 ERRQ n 16", .device_pages = 110000, .queues = queues,
	    .tmqueue = UNLIMITED " CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\"",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=10 MIN=2 " UNLIMITED " CLOPT=\"-- -i 1 -t 10 -w 4 -q REQUEST\"\n" });
	setenv("RUNDIR", given_rundir(g), 1);
	return g;
}

static void
all_is_forwarded(struct given *g)
{
	for (double end = now_s() + 240; depth(g, "REQUEST") > 0 && now_s() < end;)
		nap_ms(50);
	CU_ASSERT_EQUAL(depth(g, "REQUEST"), 0);
}

static void
one_of_all_ways(struct rounds *r)
{
	const char *way = getenv("CRASH_WAY");		/* its number, to look into one */

	ways[(size_t)(way != NULL ? atoi(way) : r->round) % UNIT_COUNT(ways)](r);
}

static void
zap(struct rounds *r)
{
	static const char *const victims[] = { "BBL", "TMQUEUE", "server" };

	if (r->round % 4 > 0)
		kill_one(r, victims[r->round % 4 - 1]);
	by_tmshutdown_that_fails_and_tmipcrm(r);
}

static void
rounds_run(int rounds, void (*shut_down)(struct rounds *))
{
	const char *seed = getenv("CRASH_SEED");
	struct rounds r = { .g = application(), .seed = seed != NULL ? (unsigned)atol(seed) : (unsigned)getpid() };
	double began = now_s();

	printf("(seed %u) ", r.seed);
	fflush(stdout);
	crowd_start(&r.crowd, r.g, "boot");
	CU_ASSERT_TRUE_FATAL(wait_until(crowd_is_at_work, &r.crowd, 30));
	for (r.round = 1; r.round <= rounds && CU_get_number_of_failures() == 0; r.round++) {
		load(&r);
		shut_down(&r);
		nothing_is_left(&r);
		boot(&r);
	}
	crowd_stop(&r.crowd);
	all_is_forwarded(r.g);
	printf("%d rounds in %.0f s, boots of %.0f ms, the longest of %.0f ms, %d interrupts, ", r.round - 1, now_s() - began,
	    r.boots_s * 1000 / (r.round > 1 ? r.round - 1 : 1), r.longest_boot_s * 1000, r.interrupts);
	crowd_oracle(r.g, 0, CRASH_CLIENTS + 1, r.kills);
	given_done(r.g);
}

void crash_boot(int rounds) { rounds_run(rounds, one_of_all_ways); }
void crash_zap(int rounds) { rounds_run(rounds, zap); }
