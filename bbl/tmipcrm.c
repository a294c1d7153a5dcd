/*
 * tmipcrm - after a crash: whatever of the application is left in this machine's memory goes.
 *
 * Processes that still live are stopped (SIGTERM, then SIGKILL), so that a boot afterwards always works; what is on
 * disk is never touched.  Nothing there: nothing said, success.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "clock.h"
#include "proc.h"
#include "state.h"
#include "ulog.h"

#define BBL_PATIENCE_MS 3000
#define SERVERS_PATIENCE_MS 10000	/* for all of them: many that hang must not add up; and for each, */
#define LEAST_PATIENCE_MS 1000

struct leftover {
	pid_t bbl;			/* 0: none runs */
	unsigned long long bbl_start;
	char owner[4200];		/* TUXCONFIG that the run directory belongs to; "" unknown */
	struct state state;
	size_t living;
};

static void
lock_look(const struct app *a, struct leftover *l)
{
	char path[512], text[4200], *tuxconfig;
	ssize_t n;
	int fd;

	app_file(a, APP_LOCK, path, sizeof path);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK && (n = read(fd, text, sizeof text - 1)) > 0) {
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		l->bbl = (pid_t)strtol(text, &tuxconfig, 10);
		l->bbl_start = proc_start_time(l->bbl);
		snprintf(l->owner, sizeof l->owner, "%s", *tuxconfig == ' ' ? tuxconfig + 1 : tuxconfig);
	}
	close(fd);
}

static void
state_look(const struct app *a, struct leftover *l)
{
	char path[512];

	state_free(&l->state);
	l->living = 0;
	app_file(a, APP_STATE, path, sizeof path);
	if (state_read(path, &l->state) != 0)
		return;
	for (size_t i = 0; i < l->state.n; i++)
		l->living += state_server_lives(&l->state.servers[i]);
	for (size_t i = 0; i < l->state.n_sets; i++)
		l->living += state_set_lives(&l->state.sets[i]);
	if (l->owner[0] == '\0' && l->living > 0)
		snprintf(l->owner, sizeof l->owner, "%s", l->state.tuxconfig);
}

static int
end_process(const char *what, pid_t pid, unsigned long long start, int64_t until_us)
{
	int64_t left_us = until_us - clock_mono_us();

	ulog("CMDTUX_CAT:1703: INFO: tmipcrm stops %s, process %ld", what, (long)pid);
	if (proc_end(pid, start, left_us > LEAST_PATIENCE_MS * 1000 ? (int)(left_us / 1000) : LEAST_PATIENCE_MS) == 0)
		return 0;
	fprintf(stderr, "tmipcrm: %s, process %ld, cannot be stopped\n", what, (long)pid);
	return -1;
}

static int
end_all(const struct app *a, struct leftover *l)
{
	char path[512], what[128];
	int64_t until_us;
	int fd, rc = 0;

	app_file(a, APP_STOPPED, path, sizeof path);	/* no server may start BBL again meanwhile */
	if ((fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) >= 0)
		close(fd);
	if (l->bbl > 0)
		rc = end_process("BBL", l->bbl, l->bbl_start, clock_mono_us() + BBL_PATIENCE_MS * INT64_C(1000));
	state_look(a, l);				/* BBL may have started another until now */
	until_us = clock_mono_us() + SERVERS_PATIENCE_MS * INT64_C(1000);
	for (size_t i = l->state.n; i-- > 0;) {
		const struct state_server *s = &l->state.servers[i];

		snprintf(what, sizeof what, "server %s/%ld", s->group, s->srvid);
		if (state_server_lives(s) && end_process(what, s->pid, s->start_time, until_us) != 0)
			rc = -1;
	}
	for (size_t i = 0; i < l->state.n_sets; i++) {
		const struct state_set *q = &l->state.sets[i];

		snprintf(what, sizeof what, "the request queue of %s/%ld", q->group, q->id);
		if (state_set_lives(q) && end_process(what, q->pid, q->start_time, until_us) != 0)
			rc = -1;
	}
	return rc;
}

static int
clean(const struct app *a, bool yes, bool look_only)
{
	struct leftover l = { 0 };
	char question[512];
	struct stat st;
	int rc = 0;

	if (lstat(a->rundir, &st) != 0)
		return 0;
	lock_look(a, &l);
	state_look(a, &l);
	snprintf(question, sizeof question, "%s holds what is left of IPCKEY %ld: BBL %s, %zu servers run.", a->rundir,
	    a->ubb->res.ipckey, l.bbl > 0 ? "runs" : "does not run", l.living);
	if (l.owner[0] != '\0' && strcmp(l.owner, a->tuxconfig) != 0) {
		fprintf(stderr, "tmipcrm: IPCKEY %ld of %s is in use by the application of %s: not removed\n", a->ubb->res.ipckey,
		    a->tuxconfig, l.owner);
		rc = 1;
	} else if (look_only) {
		printf("%s\n", question);
	} else {
		if (!yes)
			printf("%s\n", question);
		if (yes || app_confirm(stdin, "Stop and remove all of it? (y/n):")) {
			rc = end_all(a, &l) != 0;
			app_remove_rundir(a->rundir);
		}
	}
	state_free(&l.state);
	return rc;
}

int
main(int argc, char **argv)
{
	static struct app a;
	bool yes = false, look_only = false;
	char *why = NULL;
	const char *tuxconfig;
	int c, rc = 1;

	ulog_program("tmipcrm");
	while ((c = getopt(argc, argv, "yni")) != -1)
		switch (c) {
		case 'y': yes = true; break;
		case 'n': look_only = true; break;
		case 'i': yes = false; break;
		default: goto usage;
		}
	if (argc - optind > 1)
		goto usage;
	if (optind < argc)
		setenv("TUXCONFIG", argv[optind], 1);
	tuxconfig = getenv("TUXCONFIG");
	if (tuxconfig != NULL && *tuxconfig != '\0' && access(tuxconfig, F_OK) != 0 && errno == ENOENT)
		return 0;	/* not configured yet: nothing can be left */
	if (app_open(&a, &why) == 0) {
		ulog_prefix(a.machine->ulogpfx);
		if (app_check_admin(&a, &why) == 0)
			rc = clean(&a, yes, look_only);
	}
	if (why != NULL)
		fprintf(stderr, "tmipcrm: %s\n", why);
	free(why);
	app_close(&a);
	return rc;
usage:
	fprintf(stderr, "usage: tmipcrm [-y] [-n] [-i] [tuxconfig]\n");
	return 1;
}
