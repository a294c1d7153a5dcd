/*
 * BBL - the bulletin board.
 *
 *	BBL [-A] [-R] [-f] [-b [-t seconds]] [-e] [-p fd]
 *
 *	-R	started by a server that found BBL gone: silent when another was faster or the application was shut down
 *	-f	stay in the foreground
 *	-b	in the foreground: boot all servers, and shut them down before the end, which may take -t seconds
 *	-e	in the foreground: log lines on stderr too, and the output of the servers
 *	-p fd	say there how the start went, one line: ready, duplicate PID, failed WHY
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bbl.h"
#include "clock.h"
#include "sanity.h"
#include "sets.h"
#include "supervisor.h"
#include "ulog.h"
#include "version.h"

#define SWEEP_US INT64_C(2000000)	/* how often clients that died are looked for */
#define PLACE_US INT64_C(1000000)	/* and the run directory is looked at */

struct options { bool resume; int ready_fd; };

static int
options_read(int argc, char **argv, struct options *o, struct foreground *fore)
{
	int c;

	*o = (struct options){ .ready_fd = -1 };
	while ((c = getopt(argc, argv, "ARfbet:p:")) != -1)
		switch (c) {
		case 'A':
			break;
		case 'R':
			o->resume = true;
			break;
		case 'f':
			fore->on = true;
			break;
		case 'b':
			fore->on = fore->boot = true;
			break;
		case 'e':
			fore->on = fore->echo = true;
			break;
		case 't':
			if ((fore->limit_s = atol(optarg)) < 1 || fore->limit_s > 86400)
				return -1;
			break;
		case 'p':
			o->ready_fd = atoi(optarg);
			break;
		default:
			return -1;
		}
	return optind == argc ? 0 : -1;
}

static void __attribute__((format(printf, 2, 3)))
tell(struct options *o, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	if (o->ready_fd < 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line - 1, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof line - 1)
		n = (int)sizeof line - 2;
	line[n++] = '\n';
	if (write(o->ready_fd, line, (size_t)n) != n)
		ulog("CMDTUX_CAT:1697: WARN: nobody hears that BBL is started: %s", strerror(errno));
	close(o->ready_fd);
	o->ready_fd = -1;
}

static void
output_to(int fd, const char *appdir, const char *name, int flags)
{
	char path[4200];
	int to;

	snprintf(path, sizeof path, "%s/%s", appdir, name);
	if ((to = open(appdir[0] != '\0' ? path : name, flags, 0666)) >= 0) {
		dup2(to, fd);
		if (to != fd)
			close(to);
	}
}

/* A place of its own: nothing held open of whoever started us, no terminal, APPDIR. */
static int
settle(struct bbl *b, struct options *o, char **why)
{
	const char *appdir = b->app.machine->appdir;
	struct rlimit files;

	if (chdir(appdir) != 0) {
		if (asprintf(why, "APPDIR %s: %s", appdir, strerror(errno)) < 0)
			*why = NULL;
		return -1;
	}
	if (!b->fore.on) {
		(void)setsid();
		output_to(STDIN_FILENO, "", "/dev/null", O_RDONLY);
		output_to(STDOUT_FILENO, appdir, "stdout", O_WRONLY | O_APPEND | O_CREAT);
		output_to(STDERR_FILENO, appdir, "stderr", O_WRONLY | O_APPEND | O_CREAT);
	}
	if (o->ready_fd >= 0) {
		int moved = dup2(o->ready_fd, 3);

		o->ready_fd = moved;
		(void)fcntl(3, F_SETFD, FD_CLOEXEC);
		(void)syscall(SYS_close_range, 4, ~0U, 0);
	} else {
		(void)syscall(SYS_close_range, 3, ~0U, 0);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {	/* two descriptors a server, one a connection */
		b->files = files;
		files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	return 0;
}

/* --- one application an IPCKEY --- */

/* Servers of another application under the same IPCKEY, whose BBL is gone: not ours to take in. */
static int
others_live(const struct bbl *b, char **why)
{
	char path[512];
	struct state old;
	int rc = 0;

	app_file(&b->app, APP_STATE, path, sizeof path);
	if (state_read(path, &old) != 0)
		return 0;
	if (strcmp(old.tuxconfig, b->app.tuxconfig) != 0) {
		for (size_t i = 0; i < old.n && rc == 0; i++)
			rc = state_server_lives(&old.servers[i]);
		if (rc != 0 && asprintf(why, "IPCKEY %ld of %s is in use by the servers of %s", b->app.ubb->res.ipckey,
		    b->app.tuxconfig, old.tuxconfig) < 0)
			*why = NULL;
		if (rc == 0)
			(void)unlink(path);
	}
	state_free(&old);
	return rc;
}

/* --- open, serve, close --- */

static int
signals_open(struct bbl *b)
{
	struct epoll_event e = { .events = EPOLLIN };
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || (b->epfd = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
	    (b->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return -1;
	e.data.fd = b->sigfd;
	return epoll_ctl(b->epfd, EPOLL_CTL_ADD, b->sigfd, &e);
}

static int
bbl_open(struct bbl *b, char **why)
{
	registry_open(&b->reg, b->app.ubb);
	b->started_us = clock_mono_us();
	if (signals_open(b) != 0 ||
	    link_server_open(b->app.endpoint, (unsigned)app_perm(&b->app), &b->link) != LINK_OK) {
		if (asprintf(why, "%s: %s", b->app.endpoint, strerror(errno)) < 0)
			*why = NULL;
		return -1;
	}
	gtt_keep(b);
	servers_table_keep(b);
	supervisor_resume(b);
	supervisor_save(b);
	return 0;
}

static void
bbl_serve(struct bbl *b)
{
	int64_t sweep = clock_mono_us() + SWEEP_US, place = clock_mono_us() + PLACE_US;

	while (!b->end || (b->end_application && sets_any(b))) {
		int64_t due = supervisor_next_due(b);
		struct link_msg m;

		if (look_next_due(b) < due)
			due = look_next_due(b);
		if (b->reg.n_clients > 0 && sweep < due)
			due = sweep;
		if (place < due)
			due = place;
		if (fore_next_due(b) < due)
			due = fore_next_due(b);
		if (link_server_recv(b->link, &m, due, b->epfd) == LINK_OK) {
			bbl_handle(b, &m);
			link_msg_done(&m);
		}
		supervisor_reap(b);
		supervisor_tick(b);
		look_tick(b);
		fore_tick(b);
		if (clock_mono_us() >= sweep) {
			registry_sweep_clients(&b->reg);
			sweep = clock_mono_us() + SWEEP_US;
		}
		if (clock_mono_us() >= place) {
			place_keep(b);
			suspend_keep(b);
			sanity_tick(b);
			place = clock_mono_us() + PLACE_US;
		}
	}
}

static void
bbl_close(struct bbl *b)
{
	char path[512];
	int fd;

	app_file(&b->app, APP_STOPPED, path, sizeof path);
	if ((fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) >= 0)
		close(fd);	/* no server may start us again */
	look_free(b);
	link_server_close(b->link);
	if (b->end_application)
		app_remove_rundir(b->app.rundir);
	sets_close(b);
	registry_close(&b->reg);
	ulog("CMDTUX_CAT:1698: INFO: BBL ends%s", b->end_application ? "; the application is shut down" :
	    "; the servers go on without it");
	fore_close(b);
	close(b->epfd);
	close(b->sigfd);
	place_leave(b);
}

static int
bbl_run(struct bbl *b, struct options *o, char **why)
{
	char path[512];
	int place;

	app_file(&b->app, APP_STOPPED, path, sizeof path);
	if (o->resume && access(path, F_OK) == 0)
		return 0;
	if ((place = place_take(b, o->resume, why)) == PLACE_DUPLICATE) {
		tell(o, "duplicate %s", *why != NULL ? *why : "?");
		if (b->fore.on)
			fprintf(stderr, "BBL: it runs already, as process %s\n", *why != NULL ? *why : "?");
		return o->resume ? 0 : 1;
	}
	if (place == PLACE_REFUSED || others_live(b, why) != 0)
		return -1;
	(void)unlink(path);
	if (bbl_open(b, why) != 0)
		return -1;
	ulog("CMDTUX_CAT:1699: INFO: BBL serves IPCKEY %ld, %s%s", b->app.ubb->res.ipckey, b->app.tuxconfig,
	    o->resume ? "; started again by a server" : "");
	tell(o, "ready");
	fore_begin(b);
	bbl_serve(b);
	bbl_close(b);
	return b->fore.status;
}

int
main(int argc, char **argv)
{
	static struct bbl b = { .epfd = -1, .sigfd = -1, .lock_fd = -1, .name_fd = -1,
		.fore = { .limit_s = FORE_LIMIT_S, .notify = { .fd = -1 } } };
	struct options o;
	char *why = NULL, prefix[4200];
	int rc;

	ulog_program("BBL");
	if (options_read(argc, argv, &o, &b.fore) != 0) {
		fprintf(stderr, "usage: BBL [-A] [-R] [-f] [-b [-t seconds]] [-e] [-p fd]\n");
		return 1;
	}
	if ((rc = app_open(&b.app, &why)) == 0) {
		snprintf(prefix, sizeof prefix, "%s/ULOG", b.app.machine->appdir);
		ulog_prefix(b.app.machine->ulogpfx[0] != '\0' ? b.app.machine->ulogpfx : prefix);
		if ((rc = settle(&b, &o, &why)) == 0 && (rc = app_check_rundir(&b.app, &why)) == 0) {
			fore_open(&b);
			rc = bbl_run(&b, &o, &why);
		}
	}
	if (rc < 0) {
		ulog("CMDTUX_CAT:1700: ERROR: BBL cannot start: %s", why != NULL ? why : "out of memory");
		if (b.fore.on)
			fprintf(stderr, "BBL: %s\n", why != NULL ? why : "out of memory");
		tell(&o, "failed %s", why != NULL ? why : "out of memory");
	}
	free(why);
	app_close(&b.app);
	return rc < 0 ? 1 : rc;
}
