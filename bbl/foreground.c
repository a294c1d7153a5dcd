#include "foreground.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bbl.h"
#include "clock.h"
#include "proc.h"
#include "supervisor.h"
#include "ulog.h"

#define FORCE_US INT64_C(5000000)	/* for killed processes to be gone */
#define SECOND INT64_C(1000000)

void
fore_open(struct bbl *b)
{
	if (!b->fore.on)
		return;
	notify_open(&b->fore.notify);
	if (b->fore.echo)
		(void)setenv("ULOGSTDERR", "y", 1);
	/* What our children leave behind comes to us, as to the first process of a container, and is reaped. */
	if (b->fore.boot)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* A session of its own, so that what is typed at BBL's terminal ends BBL, which then ends the others in order. */
void
fore_child(const struct bbl *b)
{
	int null;

	if (!b->fore.on)
		return;
	(void)setsid();
	if ((null = open("/dev/null", O_RDONLY)) > STDIN_FILENO) {
		dup2(null, STDIN_FILENO);
		close(null);
	}
}

static void	/* what fore_child_ended() gets to know of, also when it could not even begin */
tool_run(struct bbl *b, char **argv)
{
	const struct ubb_machine *m = b->app.machine;
	char path[PATH_MAX], bin[PATH_MAX], self[PATH_MAX] = "", *why = NULL;
	const char *dirs[] = { bin, self, NULL };
	sigset_t none;

	snprintf(bin, sizeof bin, "%s/bin", m->tuxdir);
	(void)proc_self_dir(self, sizeof self);
	if (proc_find_program(argv[0], dirs, getenv("PATH"), path, sizeof path, &why) == 0 && (b->fore.tool = fork()) == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		fore_child(b);
		execv(path, argv);
		_exit(127);
	}
	if (b->fore.tool > 0)
		return;
	fprintf(stderr, "BBL: cannot run %s: %s\n", argv[0], why != NULL ? why : strerror(errno));
	free(why);
	b->fore.tool = 0;
	b->fore.status = 1;
	b->fore.force_us = 0;
}

void
fore_begin(struct bbl *b)
{
	char *argv[] = { (char[]){ "tmboot" }, (char[]){ "-y" }, (char[]){ "-q" }, NULL };

	if (!b->fore.boot) {
		notify_say(&b->fore.notify, "READY=1\nSTATUS=BBL serves");
		return;
	}
	b->fore.state = FORE_BOOTING;
	notify_say(&b->fore.notify, "STATUS=Booting the servers");
	tool_run(b, argv);
	if (b->fore.tool == 0)
		fore_stop(b);
}

static void
begin_stop(struct bbl *b)
{
	char delay[24];
	char *argv[] = { (char[]){ "tmshutdown" }, (char[]){ "-y" }, (char[]){ "-q" }, (char[]){ "-S" }, (char[]){ "-w" }, delay, NULL };

	/* One server that does not stop has to leave time for those that come after it. */
	snprintf(delay, sizeof delay, "%ld", b->fore.limit_s / 4 > 0 ? b->fore.limit_s / 4 : 1);
	if (b->fore.tool != 0)
		(void)kill(b->fore.tool, SIGTERM);
	b->fore.tool = 0;
	b->fore.state = FORE_STOPPING;
	b->fore.force_us = clock_mono_us() + b->fore.limit_s * SECOND;
	notify_say(&b->fore.notify, "STOPPING=1\nSTATUS=Shutting down");
	ulog("CMDTUX_CAT:1745: INFO: BBL ends the application%s", b->fore.status != 0 ? ", which could not be booted" : ", as it was told to");
	if (b->reg.n_servers > 0)
		tool_run(b, argv);
}

void
fore_stop(struct bbl *b)
{
	if (!b->fore.boot)
		b->end = true;
	else if (b->fore.state != FORE_STOPPING)
		begin_stop(b);
	else if (!b->fore.forced)
		b->fore.force_us = clock_mono_us();
}

void
fore_child_ended(struct bbl *b, pid_t pid, const siginfo_t *how)
{
	char text[128];

	if (pid != b->fore.tool || pid == 0)
		return;
	b->fore.tool = 0;
	proc_tell_end(how->si_code, how->si_status, text, sizeof text);
	if (b->fore.state == FORE_STOPPING) {
		b->fore.force_us = b->reg.n_servers > 0 ? 0 : b->fore.force_us;
	} else if (how->si_code == CLD_EXITED && how->si_status == 0) {
		b->fore.state = FORE_UP;
		notify_say(&b->fore.notify, "READY=1\nSTATUS=All servers are booted");
		ulog("CMDTUX_CAT:1744: INFO: the application is booted");
	} else {
		b->fore.status = 1;
		fprintf(stderr, "BBL: the application is not booted: tmboot %s; what runs is shut down\n", text);
		ulog("CMDTUX_CAT:1746: ERROR: the application is not booted: tmboot %s; what runs is shut down", text);
		begin_stop(b);
	}
}

/* The time is over, or tmshutdown did not do it. */
static void
force(struct bbl *b)
{
	if (b->fore.forced) {
		ulog("CMDTUX_CAT:1748: ERROR: %zu servers do not end; BBL leaves them", b->reg.n_servers);
		b->fore.status = 1;
		b->end = true;
		return;
	}
	b->fore.forced = true;
	b->fore.force_us = clock_mono_us() + FORCE_US;
	if (b->fore.tool != 0)
		(void)kill(b->fore.tool, SIGTERM);
	ulog("CMDTUX_CAT:1749: WARN: %zu servers did not end in order and are killed", b->reg.n_servers);
	for (size_t i = b->reg.n_servers; i-- > 0;)
		if (i < b->reg.n_servers)
			supervisor_stop(b, b->reg.servers[i], 0, SIGKILL);
}

void
fore_tick(struct bbl *b)
{
	notify_tick(&b->fore.notify);
	if (b->fore.state != FORE_STOPPING)
		return;
	if (b->reg.n_servers == 0 && b->fore.tool == 0)
		b->end = b->end_application = true;
	else if (clock_mono_us() >= b->fore.force_us)
		force(b);
}

int64_t
fore_next_due(const struct bbl *b)
{
	int64_t due = notify_next_due(&b->fore.notify);

	return b->fore.state == FORE_STOPPING && b->fore.force_us < due ? b->fore.force_us : due;
}

void
fore_close(struct bbl *b)
{
	if (!b->fore.on)
		return;
	if (b->fore.state != FORE_STOPPING)
		notify_say(&b->fore.notify, "STOPPING=1");
	notify_close(&b->fore.notify);
}
