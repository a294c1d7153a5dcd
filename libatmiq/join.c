/*
 * join - a program becomes, and ceases to be, a part of the application that TUXCONFIG describes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"
#include "context.h"
#include "bb.h"
#include "clock.h"
#include "link.h"
#include "ulog.h"

#define JOIN_MS 3000		/* for a BBL whose socket is there */
#define ABSENT_MS 250		/* for one whose socket is not: it may be starting this very moment */
#define LEAVE_MS 500

static pthread_mutex_t app_lock = PTHREAD_MUTEX_INITIALIZER;
static struct app *current;		/* shared while anyone is joined */

void
app_fork_child(void)
{
	pthread_mutex_init(&app_lock, NULL);
	current = NULL;
}

static int
app_read(const char *tuxconfig, struct app **out)
{
	struct app *a = calloc(1, sizeof *a);
	const struct ubb_machine *m;
	char *why = NULL;

	if (a == NULL || (a->tuxconfig = strdup(tuxconfig)) == NULL) {
		free(a);
		return TPEOS;
	}
	if (tuxconfig_read(tuxconfig, &a->ubb, &why) != 0) {
		ulog("LIBTUX_CAT:5020: ERROR: cannot join the application: TUXCONFIG %s: %s", tuxconfig,
		    why == NULL ? strerror(errno) : why);
		goto bad;
	}
	if (ubb_bbl_endpoint(a->ubb, a->bbl, sizeof a->bbl) != 0) {
		ulog("LIBTUX_CAT:5021: ERROR: cannot join the application: TUXCONFIG %s names no usable run directory",
		    tuxconfig);
		goto bad;
	}
	a->blocktime_us = (int64_t)a->ubb->res.blocktime * a->ubb->res.scanunit_ms * 1000;
	if (a->blocktime_us <= 0)
		a->blocktime_us = 60 * 1000000LL;
	if ((m = ubb_machine_here(a->ubb)) != NULL && *m->ulogpfx != '\0')
		ulog_prefix(m->ulogpfx);
	*out = a;
	return 0;
bad:
	free(why);
	ubb_free(a->ubb);
	free(a->tuxconfig);
	free(a);
	return TPESYSTEM;
}

int
app_get(struct app **out)
{
	const char *tuxconfig = getenv("TUXCONFIG");
	int err = 0;

	*out = NULL;
	if (tuxconfig == NULL || *tuxconfig == '\0') {
		ulog("LIBTUX_CAT:5022: ERROR: cannot join the application: TUXCONFIG is not set");
		return TPESYSTEM;
	}
	pthread_mutex_lock(&app_lock);
	if (current != NULL && strcmp(current->tuxconfig, tuxconfig) == 0)
		current->refs++;
	else {
		struct app *fresh;

		if ((err = app_read(tuxconfig, &fresh)) == 0) {
			fresh->refs = 1;
			current = fresh;	/* an older one lives on until its contexts have left */
		}
	}
	if (err == 0)
		*out = current;
	pthread_mutex_unlock(&app_lock);
	return err;
}

void
app_put(struct app *a)
{
	pthread_mutex_lock(&app_lock);
	if (--a->refs == 0) {
		if (current == a)
			current = NULL;
		gtt_close(a->gtt);
		slots_close(a->slots);
		ubb_free(a->ubb);
		free(a->tuxconfig);
		free(a);
	}
	pthread_mutex_unlock(&app_lock);
}

/* Looked for when it is first needed: BBL, which makes it, has answered by then. */
struct gtt *
app_gtt(struct app *a)
{
	const struct ubb_machine *m;
	char path[512], *why = NULL;

	if (atomic_load_explicit(&a->gtt_known, memory_order_acquire))
		return a->gtt;
	pthread_mutex_lock(&app_lock);
	if (!a->gtt_known) {
		m = ubb_machine_here(a->ubb);
		gtt_path(a->ubb->rundir, path, sizeof path);
		if (gtt_open(path, 0, &a->gtt, &why) != 0 ||
		    gtt_slots(a->gtt) != (unsigned)(m == NULL ? a->ubb->res.maxgtt : m->maxgtt)) {
			ulog("LIBTUX_CAT:5143: WARN: cannot use the table of transactions: %s; MAXGTT does not count those of "
			     "this program, and they are resumed in it alone",
			    a->gtt != NULL ? "it has not as many entries as MAXGTT says" : why != NULL ? why : "out of memory");
			gtt_close(a->gtt);
			a->gtt = NULL;
		}
		free(why);
		atomic_store_explicit(&a->gtt_known, true, memory_order_release);
	}
	pthread_mutex_unlock(&app_lock);
	return a->gtt;
}

/* The same. */
struct slots *
app_slots(struct app *a)
{
	char path[512], *why = NULL;

	if (atomic_load_explicit(&a->slots_known, memory_order_acquire))
		return a->slots;
	pthread_mutex_lock(&app_lock);
	if (!a->slots_known) {
		slots_path(a->ubb->rundir, path, sizeof path);
		if (slots_open(path, &a->slots, &why) != 0)
			ulog("LIBTUX_CAT:5231: WARN: cannot use the table of servers: %s; requests are sent without regard to what "
			     "others have sent",
			    why != NULL ? why : "out of memory");
		free(why);
		atomic_store_explicit(&a->slots_known, true, memory_order_release);
	}
	pthread_mutex_unlock(&app_lock);
	return a->slots;
}

static bool
socket_absent(const char *endpoint)
{
	return strncmp(endpoint, "ipc://", 6) == 0 && access(endpoint + 6, F_OK) != 0;
}

/* Ask BBL; a LINK code, with the patience that fits what can be seen of it. */
static int
bbl_ask(
    struct context *ctx, const char *op, const struct record *args, int64_t timeout_ms, struct wire_adminreply *reply)
{
	int64_t until = clock_mono_us() + timeout_ms * 1000, absent = clock_mono_us() + ABSENT_MS * 1000, left;
	int rc;

	for (;;) {
		if (socket_absent(ctx->app->bbl)) {
			if (clock_mono_us() >= absent)
				return LINK_GONE;
			usleep(20000);
			continue;
		}
		if ((left = (until - clock_mono_us()) / 1000) <= 0)
			return LINK_TIMEOUT;
		rc = bb_request(ctx->app->bbl, op, args, left, reply);
		if (rc == LINK_OK || rc == LINK_FAIL)
			return rc;
		if (rc != LINK_INTR)
			usleep(20000);
	}
}

static long
pid_of(const char *v)
{
	return v == NULL ? 0 : strtol(v, NULL, 10);
}

/* Whoever owns the directory of the sockets can pretend to be BBL. */
static bool
rundir_is_theirs(const struct app *a, const struct ubb_machine *m)
{
	if (strncmp(a->bbl, "ipc://", 6) != 0 || access(a->ubb->rundir, F_OK) != 0 ||
	    link_rundir_check(a->ubb->rundir, m->uid < 0 ? geteuid() : (uid_t)m->uid) == 0)
		return true;
	ulog("LIBTUX_CAT:5025: ERROR: cannot join the application of TUXCONFIG %s: its run directory %s: %s",
	    a->tuxconfig, a->ubb->rundir,
	    errno == EPERM ? "another user owns it or may replace what is in it" : strerror(errno));
	return false;
}

static int	/* BBL does not answer: it is not there, or nobody of this user may talk to it. */
bbl_unheard(const struct app *a)
{
	if (strncmp(a->bbl, "ipc://", 6) == 0 && faccessat(AT_FDCWD, a->bbl + 6, W_OK, AT_EACCESS) != 0 && errno == EACCES) {
		ulog("LIBTUX_CAT:5026: ERROR: cannot join the application of TUXCONFIG %s: PERM does not let user %ld in (%s)",
		    a->tuxconfig, (long)geteuid(), a->bbl);
		return TPEPERM;
	}
	ulog("LIBTUX_CAT:5023: ERROR: cannot join the application of TUXCONFIG %s: it is not booted (no BBL at %s)", a->tuxconfig,
	    a->bbl);
	return TPENOENT;
}

int
app_join(struct context *ctx, const char *usrname, const char *cltname)
{
	struct wire_adminreply reply = { 0 };
	struct document args = { 0 };
	const struct ubb_machine *m = ubb_machine_here(ctx->app->ubb);
	struct record *r;
	char key[] = "clientid0";
	int i, err = TPEOS;

	if ((r = document_add(&args)) == NULL || record_set(r, "usrname", usrname) != 0 ||
	    record_set(r, "cltname", cltname) != 0 || record_setf(r, "pid", "%ld", (long)getpid()) != 0)
		goto done;
	if (m != NULL && record_set(r, "tuxconfig", m->tuxconfig) != 0)
		goto done;
	if (m != NULL && !rundir_is_theirs(ctx->app, m)) {
		err = TPESYSTEM;
		goto done;
	}
	if (bbl_ask(ctx, "join", r, JOIN_MS, &reply) != LINK_OK) {
		err = bbl_unheard(ctx->app);
		goto done;
	}
	snprintf(ctx->who, sizeof ctx->who, "%s%s%s%s", *usrname != '\0' ? ", user " : "", usrname,
	    *cltname != '\0' ? ", client " : "", cltname);
	err = reply.status;
	if (err != 0)
		ulog("LIBTUX_CAT:5024: ERROR: BBL refused to let the program join: %s",
		    reply.text == NULL ? "no reason given" : reply.text);
	if (err < 0 || err >= TPMAXVAL)
		err = TPESYSTEM;
	for (i = 0; err == 0 && i < 4; i++) {
		key[8] = (char)('0' + i);
		ctx->cltid[i] = reply.doc.n == 0 ? 0 : pid_of(record_get(&reply.doc.rec[0], key));
	}
	bb_reply_free(&reply);
done:
	document_free(&args);
	return err;
}

void
app_leave(struct context *ctx)
{
	struct wire_adminreply reply = { 0 };
	struct document args = { 0 };
	struct record *r;

	if (ctx->server || socket_absent(ctx->app->bbl))
		return;
	if ((r = document_add(&args)) != NULL && record_setf(r, "clientid1", "%ld", (long)ctx->cltid[1]) == 0 &&
	    record_setf(r, "pid", "%ld", (long)getpid()) == 0 &&
	    bb_request(ctx->app->bbl, "leave", r, LEAVE_MS, &reply) == LINK_OK)
		bb_reply_free(&reply);
	document_free(&args);
}

static void
name_copy(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

int
tpinit(TPINIT *tpinfo)
{
	char usr[MAXTIDENT + 1] = "", clt[MAXTIDENT + 1] = "";
	bool multi = false;
	int err;

	if (tpinfo != NULL) {
		if ((tpinfo->flags & ~(long)(TPU_MASK | TPSA_FASTPATH | TPSA_PROTECTED | TPMULTICONTEXTS)) != 0)
			return fail(TPEINVAL);
		name_copy(usr, sizeof usr, tpinfo->usrname);
		name_copy(clt, sizeof clt, tpinfo->cltname);
		multi = (tpinfo->flags & TPMULTICONTEXTS) != 0;
	}
	if ((err = context_join(usr, clt, multi)) != 0)
		return fail(err);
	return 0;
}

int
tpterm(void)
{
	int err = context_part();

	return err == 0 ? 0 : fail(err);
}

int
tpchkauth(void)
{
	struct app *app;
	const char *security;
	int err, is = TPNOAUTH;

	if ((err = app_get(&app)) != 0)
		return fail(err);
	security = app->ubb->res.security;
	if (strcmp(security, "APP_PW") == 0)
		is = TPSYSAUTH;
	else if (*security != '\0' && strcmp(security, "NONE") != 0)
		is = TPAPPAUTH;
	app_put(app);
	return is;
}
