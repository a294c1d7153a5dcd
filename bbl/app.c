#include "app.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bb.h"
#include "link.h"

static int
fail(char **why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return -1;
}

static int
app_check_place(const struct app *a, char **why)
{
	const struct ubb_machine *m = a->machine;
	struct stat st;

	if (strcmp(m->tuxconfig, a->tuxconfig) != 0)
		return fail(why, "TUXCONFIG is %s in the environment but %s for machine %s in the file itself; "
		    "they must be the same, byte for byte", a->tuxconfig, m->tuxconfig, m->lmid);
	if (stat(m->appdir, &st) != 0)
		return fail(why, "APPDIR %s of machine %s: %s", m->appdir, m->lmid, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(why, "APPDIR %s of machine %s is not a directory", m->appdir, m->lmid);
	return 0;
}

int
app_open(struct app *a, char **why)
{
	const char *tuxconfig = getenv("TUXCONFIG");

	memset(a, 0, sizeof *a);
	*why = NULL;
	if (tuxconfig == NULL || *tuxconfig == '\0')
		return fail(why, "TUXCONFIG is not set in the environment");
	if (snprintf(a->tuxconfig, sizeof a->tuxconfig, "%s", tuxconfig) >= (int)sizeof a->tuxconfig)
		return fail(why, "TUXCONFIG in the environment is longer than %zu bytes", sizeof a->tuxconfig - 1);
	if (tuxconfig_read(tuxconfig, &a->ubb, why) != 0)
		return -1;
	if ((a->machine = ubb_machine_here(a->ubb)) == NULL) {
		fail(why, "%s: no machine of section MACHINES is this one", tuxconfig);
		goto failed;
	}
	if (app_check_place(a, why) != 0)
		goto failed;
	if (snprintf(a->rundir, sizeof a->rundir, "%s", a->ubb->rundir) >= (int)sizeof a->rundir ||
	    ubb_bbl_endpoint(a->ubb, a->endpoint, sizeof a->endpoint) != 0) {
		fail(why, "%s: the run directory's name is too long: %s", tuxconfig, a->ubb->rundir);
		goto failed;
	}
	return 0;
failed:
	app_close(a);
	return -1;
}

/* Whoever may replace what is in it can pretend to be BBL, or have us signal processes that are none of ours. */
int
app_check_rundir(const struct app *a, char **why)
{
	uid_t owner = a->machine->uid < 0 ? geteuid() : (uid_t)a->machine->uid;

	if (link_rundir_check(a->rundir, owner) == 0 || errno == ENOENT)
		return 0;
	return fail(why, "run directory %s: %s", a->rundir,
	    errno == EPERM ? "another user owns it or may replace what is in it; look into it, then remove it" :
			     strerror(errno));
}

int
app_check_admin(const struct app *a, char **why)
{
	uid_t me = geteuid();

	if (me == 0 || a->machine->uid < 0 || (uid_t)a->machine->uid == me)
		return 0;
	return fail(why, "user id %ld is not the administrator of %s (UID %ld)", (long)me, a->tuxconfig, a->machine->uid);
}

void
app_close(struct app *a)
{
	if (a->ubb != NULL)
		ubb_free(a->ubb);
	a->ubb = NULL;
	a->machine = NULL;
}

long
app_perm(const struct app *a)
{
	return a->machine->perm > 0 ? a->machine->perm : a->ubb->res.perm;
}

void
app_file(const struct app *a, int which, char *buf, size_t size)
{
	static const char *const names[] = { [APP_LOCK] = "bbl.lock", [APP_STATE] = "bbl.state",
	    [APP_STOPPED] = "bbl.stopped", [APP_GTT] = "gtt", [APP_SLOTS] = "slots" };

	snprintf(buf, size, "%s/%s", a->rundir, names[which]);
}

int
app_ask(const struct app *a, const char *op, int64_t timeout_ms, struct wire_adminreply *reply, ...)
{
	struct document d = { 0 };
	struct record *r = document_add(&d);
	const char *key, *value;
	va_list ap;
	int rc = r != NULL ? 0 : -1;

	memset(reply, 0, sizeof *reply);
	va_start(ap, reply);
	while (rc == 0 && (key = va_arg(ap, const char *)) != NULL)
		if ((value = va_arg(ap, const char *)) != NULL)
			rc = record_set(r, key, value);
	va_end(ap);
	if (rc == 0)
		rc = bb_request_by(a->endpoint, op, r, APP_REACH_MS, timeout_ms, reply);
	else
		rc = LINK_FAIL;
	document_free(&d);
	return rc;
}

bool
app_is_booted(const struct app *a, pid_t *bbl)
{
	struct wire_adminreply reply;
	char socket[300];
	bool booted = false;

	/* A socket file that is not there needs no waiting for. */
	if (strncmp(a->endpoint, "ipc://", 6) == 0) {
		snprintf(socket, sizeof socket, "%s", a->endpoint + 6);
		if (access(socket, F_OK) != 0)
			return false;
	}
	if (app_ask(a, "ping", 2000, &reply, NULL) == 0) {
		/* The BBL of another application with the same IPCKEY is none of ours. */
		const char *theirs = reply.doc.n > 0 ? record_get(&reply.doc.rec[0], "tuxconfig") : NULL;

		booted = reply.status == 0 && theirs != NULL && strcmp(theirs, a->tuxconfig) == 0;
		if (booted && bbl != NULL)
			*bbl = (pid_t)record_long(&reply.doc.rec[0], "pid", 0);
		bb_reply_free(&reply);
	}
	return booted;
}

void
app_remove_rundir(const char *dir)
{
	struct dirent *e;
	char path[1024];
	DIR *d;

	if ((d = opendir(dir)) == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
			(void)unlink(path);
	closedir(d);
	(void)rmdir(dir);
}

bool
app_confirm(FILE *in, const char *question)
{
	char line[256];
	const char *p;

	printf("%s ", question);
	fflush(stdout);
	if (fgets(line, sizeof line, in) == NULL) {
		printf("\n");
		return false;
	}
	for (p = line; *p == ' ' || *p == '\t'; p++)
		;
	return *p == 'y' || *p == 'Y';
}
