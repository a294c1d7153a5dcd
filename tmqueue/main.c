/*
 * TMQUEUE - the queue manager: serves the queue space of its group to everybody who calls tpenqueue and tpdequeue.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "boot.h"
#include "command.h"
#include "options.h"
#include "point.h"
#include "server.h"
#include "ulog.h"

static void
on_stop(int sig)
{
	(void)sig;
	server_stop_soon();
}

static void
signals_set(const struct options *o)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, stop = { .sa_handler = on_stop };

	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGHUP, o->hangup ? &stop : &ignore, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
}

static void	/* A descriptor each: as many clients as the system allows. */
files_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	command_files(&files);		/* which others are not to notice */
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		ulog_debug("%ld files were refused: %s", (long)files.rlim_max, strerror(errno));
}

static int
redirect(const char *file, FILE *stream)
{
	if (file == NULL)
		return 0;
	if (freopen(file, "a", stream) != NULL) {
		setvbuf(stream, NULL, stream == stderr ? _IONBF : _IOLBF, 0);	/* which stderr was, and is no more */
		return 0;
	}
	ulog("QM_CAT:1620: ERROR: TMQUEUE: cannot open %s for the server's output: %s", file, strerror(errno));
	return -1;
}

int
main(int argc, char **argv)
{
	static struct options o;
	static struct boot b;
	struct server *s = NULL;
	const char *slash = strrchr(argv[0], '/');
	char why[1024];
	int status = 1;

	ulog_program(slash != NULL ? slash + 1 : argv[0]);	/* built anew it may have another name */
	point(POINT_START);
	if (options_parse(argc, argv, &o, why, sizeof why) != 0) {
		ulog("QM_CAT:1620: ERROR: TMQUEUE: %s", why);
		return 1;
	}
	if (o.list) {
		for (size_t i = 0; i < o.n_names; i++)
			printf("%s:" TMQUEUE_FUNCTION "\n", o.name[i]);
		return 0;
	}
	if (o.ulogpfx != NULL)
		ulog_prefix(o.ulogpfx);
	if (redirect(o.outfile, stdout) != 0 || redirect(o.errfile, stderr) != 0)
		return 1;
	if (o.nice != 0 && nice(o.nice) == -1)
		ulog_debug("nice %d was refused", o.nice);
	signals_set(&o);
	files_raise();
	if (boot_find(&o, &b, why, sizeof why) != 0) {
		ulog("QM_CAT:1621: ERROR: TMQUEUE cannot boot: %s", why);
		goto done;
	}
	if (server_open(&o, &b, &s) != 0)
		goto done;
	status = server_run(s) == 0 ? 0 : 1;
done:
	server_close(s, status);
	boot_done(&b);
	return status;
}
