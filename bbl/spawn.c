/*
 * Running a server's program: where it is, its arguments, its environment, and what its death tells when it could not
 * even begin.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bbl.h"
#include "device.h"
#include "proc.h"
#include "ulog.h"

extern char **environ;

static const char *
env_get(const struct args *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			return env->v[i] + n + 1;
	return NULL;
}

static int
env_set(struct args *env, const char *name, const char *fmt_value)
{
	size_t n = strlen(name);
	char *entry;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=') {
			if (asprintf(&entry, "%s=%s", name, fmt_value) < 0)
				return -1;
			free(env->v[i]);
			env->v[i] = entry;
			return 0;
		}
	return args_addf(env, "%s=%s", name, fmt_value);
}

/* `dirs` before what the variable holds, unless it begins with them already. */
static int
env_prepend(struct args *env, const char *name, const char *dirs)
{
	const char *old = env_get(env, name);
	size_t n = strlen(dirs);
	char *value;
	int rc;

	if (old != NULL && strncmp(old, dirs, n) == 0 && (old[n] == ':' || old[n] == '\0'))
		return 0;
	if (asprintf(&value, "%s%s%s", dirs, old != NULL && *old != '\0' ? ":" : "", old != NULL ? old : "") < 0)
		return -1;
	rc = env_set(env, name, value);
	free(value);
	return rc;
}

/* The environment it was booted with (BBL's own when that is not known), and what every server has. */
static int
env_make(const struct bbl *b, const struct server *s, struct args *env)
{
	const struct ubb_machine *m = b->app.machine;
	char dirs[2 * PATH_MAX];
	char **from = s->env.n > 0 ? s->env.v : environ;
	int rc = 0;

	memset(env, 0, sizeof *env);
	for (; *from != NULL && rc == 0; from++)
		rc = args_add(env, *from);
	if (rc != 0 || env_set(env, "TUXCONFIG", b->app.tuxconfig) != 0 || env_set(env, "TUXDIR", m->tuxdir) != 0 ||
	    env_set(env, "APPDIR", m->appdir) != 0)
		return -1;
	snprintf(dirs, sizeof dirs, "%s:%s/bin", m->appdir, m->tuxdir);
	if (env_prepend(env, "PATH", dirs) != 0)
		return -1;
	snprintf(dirs, sizeof dirs, "%s/lib:%s", m->tuxdir, m->appdir);
	return env_prepend(env, "LD_LIBRARY_PATH", dirs);
}

static int
argv_make(const struct bbl *b, const struct server *s, struct args *argv)
{
	const struct ubb_machine *m = b->app.machine;
	struct args clopt;
	int rc;

	memset(argv, 0, sizeof *argv);
	if (args_split(s->clopt, &clopt) != 0)
		return -1;
	rc = args_add(argv, s->conf->aout) != 0 ||
	    args_add(argv, "-C") != 0 || args_addf(argv, "dom=%s", b->app.ubb->res.domainid) != 0 ||
	    args_add(argv, "-g") != 0 || args_addf(argv, "%ld", s->grpno) != 0 ||
	    args_add(argv, "-i") != 0 || args_addf(argv, "%ld", s->srvid) != 0 ||
	    args_add(argv, "-u") != 0 || args_add(argv, m->address) != 0 ||
	    args_add(argv, "-U") != 0 || args_add(argv, m->ulogpfx) != 0 ||
	    args_add(argv, "-m") != 0 || args_add(argv, "0") != 0 ? -1 : 0;
	for (size_t i = 0; i < clopt.n && rc == 0; i++)
		rc = args_add(argv, clopt.v[i]);
	args_free(&clopt);
	return rc;
}

static void __attribute__((noreturn, format(printf, 2, 3)))
child_fail(int why_fd, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (write(why_fd, text, strlen(text)) < 0)
		_exit(126);
	_exit(127);
}

static void
child_output(int fd, const char *appdir, const char *name, int why_fd)
{
	char path[PATH_MAX];
	int to;

	snprintf(path, sizeof path, "%s/%s", appdir, name);
	if ((to = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666)) < 0 || dup2(to, fd) < 0)
		child_fail(why_fd, "cannot write %s: %s", path, strerror(errno));
	if (to != fd)
		close(to);
}

static void
child_envfile(const char *path, int why_fd)
{
	if (path[0] != '\0' && envfile_load(path) != 0)
		child_fail(why_fd, "ENVFILE %s: %s", path, strerror(errno));
}

static void
child_signals_and_limits(const struct bbl *b)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);	/* servers decide: -h of CLOPT */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (b->files.rlim_max != 0)
		(void)setrlimit(RLIMIT_NOFILE, &b->files);
	(void)syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
}

static void __attribute__((noreturn))
child_run(const struct bbl *b, const struct server *s, const char *program, char **argv, char **envp, int why_fd)
{
	const struct ubb_machine *m = b->app.machine;
	const struct ubb_group *g = ubb_group_by_name(b->app.ubb, s->group);

	child_signals_and_limits(b);
	if (chdir(m->appdir) != 0)
		child_fail(why_fd, "APPDIR %s: %s", m->appdir, strerror(errno));
	fore_child(b);
	if (!b->fore.echo) {
		child_output(STDOUT_FILENO, m->appdir, "stdout", why_fd);
		child_output(STDERR_FILENO, m->appdir, "stderr", why_fd);
	}
	environ = envp;
	child_envfile(m->envfile, why_fd);
	child_envfile(g->envfile, why_fd);
	child_envfile(s->conf->envfile, why_fd);
	execv(program, argv);
	child_fail(why_fd, "cannot run %s: %s", program, strerror(errno));
}

static int
program_find(const struct bbl *b, const struct server *s, const struct args *env, char *buf, size_t size, char **why)
{
	const struct ubb_machine *m = b->app.machine;
	char bin[PATH_MAX], self[PATH_MAX] = "";
	const char *dirs[] = { m->appdir, bin, self, NULL };

	snprintf(bin, sizeof bin, "%s/bin", m->tuxdir);
	(void)proc_self_dir(self, sizeof self);
	return proc_find_program(s->conf->aout, dirs, env_get(env, "PATH"), buf, size, why);
}

/*
 * The program is run once the state file knows the process: a BBL that dies in between leaves no server behind that the
 * next one does not know of, and that would go on when all the others are shut down.  The end of BBL is heard too.
 */
static void
child_wait(int go_fd)
{
	char go;
	ssize_t n;

	while ((n = read(go_fd, &go, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(127);
}

static int	/* a pipe each for the causes of a failure, and for the word to go on */
pipes_make(int why[2], int go[2])
{
	if (pipe2(why, O_CLOEXEC) != 0)
		return -1;
	if (pipe2(go, O_CLOEXEC) == 0)
		return 0;
	close(why[0]);
	close(why[1]);
	return -1;
}

static int
child_start(struct bbl *b, struct server *s, const char *program, char **argv, char **envp, char *why, size_t size)
{
	int fds[2], go[2];
	pid_t pid;

	if (pipes_make(fds, go) != 0) {
		snprintf(why, size, "pipe: %s", strerror(errno));
		return -1;
	}
	if ((pid = fork()) == 0) {
		close(go[1]);
		child_wait(go[0]);
		child_run(b, s, program, argv, envp, fds[1]);
	}
	close(fds[1]);
	close(go[0]);
	if (pid < 0 || (s->pidfd = proc_pidfd(pid)) < 0) {
		snprintf(why, size, "%s: %s", pid < 0 ? "fork" : "pidfd_open", strerror(errno));
		close(fds[0]);
		close(go[1]);
		return -1;
	}
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	s->why_fd = fds[0];
	s->go_fd = go[1];
	s->pid = pid;
	s->start_time = proc_start_time(pid);
	return 0;
}

void
server_go(struct server *s)
{
	if (write(s->go_fd, "g", 1) < 0)
		ulog_debug("server %s/%ld is gone already", s->group, s->srvid);
	close(s->go_fd);
	s->go_fd = -1;
}

int
server_spawn(struct bbl *b, struct server *s, char *why, size_t size)
{
	struct args argv = { 0 }, env = { 0 };
	char program[PATH_MAX], *cause = NULL;
	int rc = -1;

	snprintf(why, size, "out of memory");
	if (env_make(b, s, &env) != 0 || argv_make(b, s, &argv) != 0)
		goto done;
	if (program_find(b, s, &env, program, sizeof program, &cause) != 0) {
		if (cause != NULL)
			snprintf(why, size, "%s", cause);
		goto done;
	}
	rc = child_start(b, s, program, argv.v, env.v, why, size);
done:
	free(cause);
	args_free(&argv);
	args_free(&env);
	return rc;
}

/* The environment of the server that is restarted, its ENVFILEs too where they can be read. */
static void __attribute__((noreturn))
rcmd_run(const struct bbl *b, const struct server *s, char **envp)
{
	const struct ubb_machine *m = b->app.machine;
	const struct ubb_group *g = ubb_group_by_name(b->app.ubb, s->group);
	const char *files[] = { m->envfile, g != NULL ? g->envfile : "", s->conf->envfile };

	child_signals_and_limits(b);
	environ = envp;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (files[i][0] != '\0')
			(void)envfile_load(files[i]);
	/* A grandchild, so that nobody has to collect it. */
	if (fork() == 0 && chdir(m->appdir) == 0)
		execl("/bin/sh", "sh", "-c", s->conf->rcmd, (char *)NULL);
	_exit(0);
}

static void __attribute__((noreturn))
tmrq_run(const struct bbl *b, const char *program, char **argv, int go)
{
	const struct ubb_machine *m = b->app.machine;
	char c;

	if (read(go, &c, 1) != 1)
		_exit(0);
	child_signals_and_limits(b);
	fore_child(b);
	if (chdir(m->appdir) != 0 || setenv("TUXCONFIG", b->app.tuxconfig, 1) != 0)
		_exit(127);
	execv(program, argv);
	_exit(127);
}

int
tmrq_spawn(struct bbl *b, long grpno, long id, pid_t *pid, int *pidfd, int *go_fd, char *why, size_t size)
{
	const struct ubb_machine *m = b->app.machine;
	char bin[PATH_MAX], self[PATH_MAX] = "", program[PATH_MAX], group[32], set[32], *cause = NULL;
	const char *dirs[] = { bin, self, NULL };
	char name[] = "TMRQ", g[] = "-g", i[] = "-i", u[] = "-U", *argv[] = { name, g, group, i, set, u, m->ulogpfx, NULL };
	int go[2];

	snprintf(bin, sizeof bin, "%s/bin", m->tuxdir);
	snprintf(group, sizeof group, "%ld", grpno);
	snprintf(set, sizeof set, "%ld", id);
	(void)proc_self_dir(self, sizeof self);
	if (proc_find_program("TMRQ", dirs, NULL, program, sizeof program, &cause) != 0) {
		snprintf(why, size, "%s", cause != NULL ? cause : "out of memory");
		free(cause);
		return -1;
	}
	if (m->ulogpfx[0] == '\0')
		argv[5] = NULL;
	if (pipe2(go, O_CLOEXEC) != 0) {
		snprintf(why, size, "pipe: %s", strerror(errno));
		return -1;
	}
	if ((*pid = fork()) == 0) {
		close(go[1]);
		tmrq_run(b, program, argv, go[0]);
	}
	close(go[0]);
	*go_fd = go[1];
	if (*pid > 0 && (*pidfd = proc_pidfd(*pid)) >= 0)
		return 0;
	snprintf(why, size, "%s: %s", *pid < 0 ? "fork" : "pidfd_open", strerror(errno));
	close(go[1]);
	return -1;
}

void
server_run_rcmd(struct bbl *b, const struct server *s)
{
	struct args env = { 0 };
	pid_t pid = -1;

	if (s->conf == NULL || s->conf->rcmd[0] == '\0')
		return;
	errno = ENOMEM;
	if (env_make(b, s, &env) == 0 && (pid = fork()) == 0)
		rcmd_run(b, s, env.v);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	else
		ulog("CMDTUX_CAT:1687: ERROR: RCMD \"%s\" of server %s/%ld: %s", s->conf->rcmd, s->group, s->srvid,
		    strerror(errno));
	args_free(&env);
}

int
tms_check(const struct ubb_group *g, char *why, size_t size)
{
	char path[4096], space[128], *cause = NULL;
	struct device d;

	if (strcmp(g->tmsname, "TMS_QM") != 0)
		return 0;
	if (openinfo_split(g->openinfo, path, sizeof path, space, sizeof space) != 0) {
		snprintf(why, size, "OPENINFO \"%s\" of group %s is not TUXEDO/QM:device:space", g->openinfo, g->name);
		return -1;
	}
	if (device_read(path, &d, &cause) != 0) {
		snprintf(why, size, "OPENINFO of group %s: %s", g->name, cause != NULL ? cause : path);
		free(cause);
		return -1;
	}
	free(cause);
	for (int i = 0; i < d.n_tables; i++)
		if (strcmp(d.table[i].kind, "qspace") == 0 && strcmp(d.table[i].name, space) == 0)
			return 0;
	snprintf(why, size, "OPENINFO of group %s: no queue space %s on device %s", g->name, space, path);
	return -1;
}
