/*
 * given_run - commands with a time limit, and the processes of a system.
 */
#include "given_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef TEST_SANFLAGS
#define SLOWER 4
#else
#define SLOWER 1
#endif
#define COMMAND_SECONDS 60

double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void
nap_ms(int ms)
{
	poll(NULL, 0, ms);
}

bool
wait_until(bool (*cond)(void *), void *arg, double seconds)
{
	double end = now_s() + seconds * SLOWER;

	for (;;) {
		if (cond(arg))
			return true;
		if (now_s() > end)
			return false;
		nap_ms(10);
	}
}

bool
has(const char *text, const char *piece)
{
	return text != NULL && strstr(text, piece) != NULL;
}

int
count_of(const char *text, const char *piece)
{
	int n = 0;

	for (; text != NULL && (text = strstr(text, piece)) != NULL; text += strlen(piece))
		n++;
	return n;
}

char *
read_all(FILE *f)
{
	size_t size = 4096, n = 0, got;
	char *text = malloc(size);

	while (text != NULL && (got = fread(text + n, 1, size - n - 1, f)) > 0) {
		n += got;
		if (n + 1 == size)
			text = realloc(text, size *= 2);
	}
	if (text == NULL)
		abort();
	text[n] = '\0';
	return text;
}

/* Output goes to files without a name, so that a server that inherits them cannot keep us waiting. */
static FILE *
scratch(const char *text)
{
	FILE *f = tmpfile();

	if (f == NULL)
		abort();
	fcntl(fileno(f), F_SETFD, FD_CLOEXEC);
	if (text != NULL)
		fputs(text, f);
	fflush(f);
	rewind(f);
	return f;
}

static int
wait_for(pid_t pid)
{
	double end = now_s() + COMMAND_SECONDS * SLOWER;
	int st;

	for (;;) {
		if (waitpid(pid, &st, WNOHANG) == pid)
			return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
		if (now_s() > end) {
			kill(-pid, SIGKILL);
			waitpid(pid, &st, 0);
			return -1;
		}
		nap_ms(2);
	}
}

static struct ran
run_v(const struct given *g, const char *input, const char *fmt, va_list ap)
{
	struct ran r = { 0 };
	FILE *in = scratch(input), *out = scratch(NULL), *err = scratch(NULL);
	char *cmd;
	pid_t pid;

	if (vasprintf(&cmd, fmt, ap) < 0)
		abort();
	if ((pid = fork()) == 0) {
		setpgid(0, 0);
		if (chdir(g->dir) != 0 || dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || dup2(fileno(err), 2) < 0)
			_exit(126);
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	r.status = wait_for(pid);
	rewind(out);
	rewind(err);
	r.out = read_all(out);
	r.err = read_all(err);
	fclose(in);
	fclose(out);
	fclose(err);
	free(cmd);
	return r;
}

struct ran
given_run(const struct given *g, const char *input, const char *fmt, ...)
{
	struct ran r;
	va_list ap;

	va_start(ap, fmt);
	r = run_v(g, input, fmt, ap);
	va_end(ap);
	return r;
}

char *
given_ok(const struct given *g, const char *input, const char *fmt, ...)
{
	struct ran r;
	va_list ap;

	va_start(ap, fmt);
	r = run_v(g, input, fmt, ap);
	va_end(ap);
	if (r.status != 0) {
		fprintf(stderr, "\n%s\n  ended with %d\n--- its input\n%s\n--- its output\n%s\n--- its errors\n%s\n", fmt, r.status,
		    input != NULL ? input : "", r.out, r.err);
		char *log = given_log(g);
		fprintf(stderr, "--- userlog\n%s\n", log);
		free(log);
		ran_free(&r);
		CU_FAIL_FATAL("a command that must work did not");
		return NULL;
	}
	free(r.err);
	return r.out;
}

char *
given_qmadmin(const struct given *g, const char *lines)
{
	return given_qmadmin_of(g, 1, lines);
}

char *
given_qmadmin_of(const struct given *g, int space, const char *lines)
{
	char *input, *out;

	if (asprintf(&input, "qopen %s\n%s\nquit\n", given_space(space), lines) < 0)
		abort();
	out = given_ok(g, input, "qmadmin %s", given_device(g, space));
	free(input);
	return out;
}

void
ran_free(struct ran *r)
{
	free(r->out);
	free(r->err);
	memset(r, 0, sizeof *r);
}

/* --- processes: a system's are those that were started with its TUXCONFIG in their environment --- */

static bool
proc_file(pid_t pid, const char *what, char *buf, size_t size, ssize_t *n)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return false;
	*n = read(fd, buf, size - 1);
	close(fd);
	if (*n < 0)
		return false;
	buf[*n] = '\0';
	return true;
}

static bool
is_ours(const struct given *g, pid_t pid)
{
	static char env[131072];
	char want[PATH_MAX + 32];
	ssize_t n;

	if (pid == getpid() || !proc_file(pid, "environ", env, sizeof env, &n) || n == 0)
		return false;
	snprintf(want, sizeof want, "TUXCONFIG=%s/", g->dir);
	return memmem(env, (size_t)n, want, strlen(want)) != NULL;
}

/* State letter and start time, from /proc/PID/stat; the name in it may hold anything, so look behind its last ')'. */
static bool
proc_stat(pid_t pid, char *name, size_t size, char *state, unsigned long long *started)
{
	char buf[1024], *open, *close;
	ssize_t n;

	if (!proc_file(pid, "stat", buf, sizeof buf, &n) || (open = strchr(buf, '(')) == NULL || (close = strrchr(buf, ')')) == NULL)
		return false;
	snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
	return sscanf(close + 2, "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", state, started) == 2;
}

bool
process_gone(pid_t pid)
{
	char name[64], state;
	unsigned long long started;

	return !proc_stat(pid, name, sizeof name, &state, &started) || state == 'Z' || state == 'X';
}

char
process_state(pid_t pid)
{
	char name[64], state;
	unsigned long long started;

	return pid > 0 && proc_stat(pid, name, sizeof name, &state, &started) ? state : '\0';
}

static int
list(const struct given *g, const char *want, pid_t *pids, int max)
{
	unsigned long long started[256], when;
	char name[64], state;
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0, i;

	while (d != NULL && (e = readdir(d)) != NULL) {
		pid_t pid = (pid_t)atol(e->d_name);
		if (pid <= 0 || !proc_stat(pid, name, sizeof name, &state, &when) || state == 'Z' || state == 'X')
			continue;
		if ((want != NULL && strcmp(name, want) != 0) || n == max || !is_ours(g, pid))
			continue;
		for (i = n++; i > 0 && started[i - 1] > when; i--) {
			started[i] = started[i - 1];
			pids[i] = pids[i - 1];
		}
		started[i] = when;
		pids[i] = pid;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

pid_t
given_pid(const struct given *g, const char *name, int nth)
{
	pid_t pids[256];

	return nth < list(g, name, pids, 256) ? pids[nth] : 0;
}

/* BBL starts a server with its place on the command line. */
static bool
is_at(pid_t pid, const char *grpno, const char *srvid)
{
	char args[4096];
	const char *want[] = { "-g", grpno, "-i", srvid };
	size_t found = 0;
	ssize_t n;

	if (!proc_file(pid, "cmdline", args, sizeof args, &n))
		return false;
	for (const char *at = args; at < args + n && found < 4; at += strlen(at) + 1)
		found = strcmp(at, want[found]) == 0 ? found + 1 : found;
	return found == 4;
}

pid_t
given_pid_as(const struct given *g, int grpno, int srvid)
{
	pid_t pids[256];
	char grp[16], id[16];
	int n = list(g, NULL, pids, 256);

	snprintf(grp, sizeof grp, "%d", grpno);
	snprintf(id, sizeof id, "%d", srvid);
	for (int i = 0; i < n; i++)
		if (is_at(pids[i], grp, id))
			return pids[i];
	return 0;
}

pid_t
given_tmqueue(const struct given *g, int space)
{
	return given_pid_as(g, GIVEN_GRPNO(space), 1);
}

int
given_count(const struct given *g, const char *name)
{
	pid_t pids[256];

	return list(g, name, pids, 256);
}

static bool
gone(void *arg)
{
	return process_gone(*(pid_t *)arg);
}

void
given_kill(const struct given *g, const char *name, int sig)
{
	pid_t pid = given_pid(g, name, 0);

	CU_ASSERT_TRUE(pid > 0);
	if (pid <= 0)
		return;
	kill(pid, sig);
	if (sig == SIGKILL || sig == SIGTERM)
		CU_ASSERT_TRUE(wait_until(gone, &pid, 10));
}

struct change { const struct given *g; const char *name; pid_t old; };

static bool
changed(void *arg)
{
	struct change *c = arg;
	pid_t pid = given_pid(c->g, c->name, 0);

	return pid > 0 && pid != c->old;
}

bool
wait_pid_changes(const struct given *g, const char *name, pid_t old, double seconds)
{
	struct change c = { g, name, old };

	return wait_until(changed, &c, seconds);
}
