/*
 * qspace - a queue space as a whole: create, open, close, destroy; who owns it; its limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "places.h"
#include "qspace_impl.h"
#include "version.h"

#define STATE_VERSION 1
enum { SEQ_BLOCK = 1 << 16, SMALL_SPACE = 64 << 20, CLOCK_SLACK_US = 5000000, SAY_FULL_EVERY_US = 60000000, TRY_AGAIN_US = 200000,
	BUILD_ROOM = 4 << 20 };

/* --- the record of what the space has reached: table `space`, key "state" --- */

int
space_write(struct qspace *qs)
{
	uint8_t v[1 + 8 + 4 + 8];
	int64_t now = clock_now_us();
	int rc;

	v[0] = STATE_VERSION;
	be64(v + 1, qs->seq_limit);
	be32(v + 9, qs->next_queue);
	be64(v + 13, (uint64_t)now);
	if ((rc = table_put(qs, T_SPACE, false, "state", 5, v, sizeof v)) == 0)
		qs->stored_us = now;
	return rc;
}

static int
space_load(struct qspace *qs)
{
	uint8_t v[64];
	size_t n;
	int rc = table_get(qs, T_SPACE, false, "state", 5, v, sizeof v, &n);

	if (rc != 0 || n != 21 || v[0] != STATE_VERSION)
		return env_error(qs, T_SPACE, "the state record cannot be read", rc != 0 ? rc : EINVAL);
	qs->seq_limit = qs->next_seq = get64(v + 1);
	qs->next_queue = get32(v + 9);
	qs->stored_us = (int64_t)get64(v + 13);
	return 0;
}

/* Numbers are reserved on disk a block at a time, so that they cost no write each and none is ever given twice. */
uint64_t
space_next_seq(struct qspace *qs)
{
	if (qs->next_seq >= qs->seq_limit) {
		qs->seq_limit = qs->next_seq + SEQ_BLOCK;
		qs->batch.space_dirty = true;
	}
	return qs->next_seq++;
}

/* --- limits --- */

void
space_say_full(struct qspace *qs, enum full what)
{
	static const struct { const char *name, *way_out; } limit[] = {
		[FULL_MESSAGES] = { "messages", "messages that are taken make room, qspacechange allows more" },
		[FULL_PAGES] = { "pages", "messages that are taken make room, qaddext adds pages" },
		[FULL_NP] = { "bytes of non-persistent memory", "messages that are taken make room, qspacechange -n allows more" },
		[FULL_TRANS] = { "concurrent transactions", "qprinttrans shows them, qspacechange allows more" },
	};
	const long long limits[] = { qs->params.messages, qs->params.pages, np_limit(qs),
		qs->params.trans };
	int64_t now = clock_mono_us();

	if (qs->full_said_us[what] != 0 && now - qs->full_said_us[what] < SAY_FULL_EVERY_US)
		return;
	qs->full_said_us[what] = now;
	if (what == FULL_LIST) {
		ulog("QM_CAT:1356: ERROR: queue space %s: no more room: the lists of operations of its transactions are full: "
		     "end them, or do less in each", qs->params.name);
		return;
	}
	if (what == FULL_DISK) {
		ulog("QM_CAT:1357: ERROR: queue space %s: no more room: the disk of %s has %" PRId64 " KB free%s; messages can be taken",
		    qs->params.name, qs->dir, disk_free(qs->dir) / 1024,
		    !keeper_is_without(qs->env.keeper) ? "" : qs->log_bytes > 16 * MIB ? ", and the next log file takes 32 MB" :
		    ", and the next log file takes 16 MB");
		return;
	}
	ulog("QM_CAT:1357: ERROR: queue space %s in %s: no more room: the limit of %lld %s is reached (%s)", qs->params.name,
	    qs->device, limits[what], limit[what].name, limit[what].way_out);
}

/* More than it was opened with is for the next start: its cache would not hold it. */
int64_t
np_limit(const struct qspace *qs)
{
	int64_t now = qs->params.nonpersistent_bytes, memory = qs->env.np_memory;

	return now < memory ? now : memory;
}

int
space_room(struct qspace *qs, const struct oval *v, const struct spool *own)
{
	const struct qspace_params *p = &qs->params;
	const struct used *reserved = &qs->parts.reserved;
	enum full what;

	if (own != NULL)	/* its room is taken */
		return 0;
	if (p->messages > 0 && qs->used.messages + reserved->messages + 1 > p->messages)
		what = FULL_MESSAGES;
	else if (v->flags & OV_NP && qs->used.np_bytes + reserved->np_bytes + v->weight > np_limit(qs))
		what = FULL_NP;
	else if (!(v->flags & OV_NP) && p->pages > 0 &&
	    qs->used.pages + reserved->pages + pages_of(v->bytes) > p->pages)
		what = FULL_PAGES;
	else
		return 0;
	space_say_full(qs, what);
	return QMENOSPACE;
}

/* --- where it is --- */

static bool
name_is_valid(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strlen(name) <= QSPACE_NAME_MAX && strchr(name, '/') == NULL &&
	    strchr(name, '\n') == NULL && strcmp(name, "lock") != 0;
}

static int	/* A DEVE code.  Fills device, dir and params.name; the space need not be there. */
space_locate(struct qspace *qs, const char *device, const char *name, struct device *d, char **why)
{
	int rc;

	if (!name_is_valid(name)) {
		why_set(why, "%s: not a name for a queue space: 1 to %d characters, no /, not beginning with a dot",
		    name, QSPACE_NAME_MAX);
		return DEVE_INVAL;
	}
	if ((rc = device_read(device, d, why)) != DEVE_OK)
		return rc;
	if (strlen(d->dir) + strlen(name) + 2 > sizeof qs->dir - 64) {
		why_set(why, "%s: the path is too long", d->dir);
		return DEVE_INVAL;
	}
	snprintf(qs->device, sizeof qs->device, "%s", d->path);
	snprintf(qs->dir, sizeof qs->dir, "%.*s/%s", (int)sizeof qs->dir - 64, d->dir, name);
	snprintf(qs->params.name, sizeof qs->params.name, "%s", name);
	return DEVE_OK;
}

static const struct device_table *
device_has(const struct device *d, const char *name)
{
	for (int i = 0; i < d->n_tables; i++)
		if (strcmp(d->table[i].name, name) == 0 && strcmp(d->table[i].kind, "qspace") == 0)
			return &d->table[i];
	return NULL;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int
tree_remove(const char *dir)
{
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT ? 0 : -1;
}

void
dir_sync(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd != -1) {
		(void)fsync(fd);
		close(fd);
	}
}

/* --- create --- */

static void
uuid_make(char uuid[37])
{
	uint8_t b[16];
	char *p = uuid;

	while (getrandom(b, sizeof b, 0) != sizeof b)
		;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		p += snprintf(p, 3, "%02x", b[i]);
	}
}

static void
id4_read(struct qspace *qs)
{
	unsigned b[4] = { 0 };

	(void)sscanf(qs->uuid, "%2x%2x%2x%2x", &b[0], &b[1], &b[2], &b[3]);
	for (int i = 0; i < 4; i++)
		qs->id4[i] = (uint8_t)b[i];
}

static int	/* Everything of a new space, in qs->dir, which is not yet where it will be. */
space_build(struct qspace *qs, const char *parent, char **why)
{
	int64_t left = disk_free(parent), need = 2 * (int64_t)qs->log_bytes + BUILD_ROOM;
	int rc;

	if (left != -1 && left < need) {	/* or it would be made, and refuse its first message */
		why_set(why, "%s: a new queue space takes %" PRId64 " MB of disk, for two log files and its tables, and %" PRId64
		    " MB are free", parent, need / MIB, left / MIB);
		return QMEOS;
	}
	if (mkdir(qs->dir, 0700) != 0) {
		why_set(why, "%s: %s", qs->dir, strerror(errno));
		return QMEOS;
	}
	if (spare_make(qs->dir, 1, qs->log_bytes, NULL) != 0) {	/* it becomes the first log file */
		why_set(why, "%s: %zu MB of log cannot be made: %s", qs->dir, qs->log_bytes / MIB, strerror(errno));
		return QMEOS;
	}
	if ((rc = env_open(qs, true, NULL)) == 0) {
		qs->next_seq = qs->seq_limit = 1;
		qs->next_queue = 1;
		if ((rc = qspace_batch_begin(qs)) == 0 && (rc = space_write(qs)) == 0)
			rc = qspace_batch_commit(qs);
	}
	env_close(qs, rc == 0);
	env_np_close(qs);
	if (rc != 0)
		why_set(why, "%s: Berkeley DB could not make the tables; the log has the cause", qs->dir);
	return rc != 0 ? rc : space_file_write(qs, why);
}

int
qspace_create(const char *device, const struct qspace_params *p, char **why)
{
	struct qspace *qs = calloc(1, sizeof *qs);
	struct device *d = calloc(1, sizeof *d);
	char final[sizeof qs->dir];
	int rc = DEVE_OS;

	if (qs == NULL || d == NULL || (rc = space_locate(qs, device, p->name, d, why)) != DEVE_OK)
		goto done;
	qs->params = *p;
	qs->params.nonpersistent_bytes = (p->nonpersistent_bytes + DEVICE_PAGE - 1) / DEVICE_PAGE * DEVICE_PAGE;
	qs->log_bytes = p->pages * (int64_t)PAGE_BYTES < SMALL_SPACE ? 16 * MIB : 32 * MIB;
	snprintf(qs->device_uuid, sizeof qs->device_uuid, "%s", d->uuid);
	uuid_make(qs->uuid);
	if ((rc = device_table_add(device, p->name, "qspace", p->pages, why)) != DEVE_OK)
		goto done;
	memcpy(final, qs->dir, sizeof final);
	strncat(qs->dir, ".new", sizeof qs->dir - strlen(qs->dir) - 1);
	rc = DEVE_OK;
	if (tree_remove(final) != 0 || tree_remove(qs->dir) != 0) {	/* what a create that was cut short left */
		why_set(why, "%s: cannot remove what is left there: %s", final, strerror(errno));
		rc = DEVE_OS;
	} else if (space_build(qs, d->dir, why) != 0) {
		rc = DEVE_OS;
	} else if (rename(qs->dir, final) != 0) {
		why_set(why, "%s: %s", final, strerror(errno));
		rc = DEVE_OS;
	}
	dir_sync(d->dir);
	if (rc != DEVE_OK) {
		(void)tree_remove(qs->dir);
		(void)device_table_remove(device, p->name, "qspace", NULL);
	}
done:
	wr_free(&qs->rec);
	free(qs);
	free(d);
	return rc;
}

/* --- open --- */

static int	/* QME code */
space_find(struct qspace *qs, const char *device, const char *name, char **why)
{
	struct device *d = calloc(1, sizeof *d);
	int rc;

	if (d == NULL)
		return QMEOS;
	if ((rc = space_locate(qs, device, name, d, why)) != DEVE_OK) {
		rc = rc == DEVE_VERSION ? QMERELEASE : rc == DEVE_OS ? QMEOS : QMEBADRMID;
	} else if (device_has(d, name) == NULL) {
		why_set(why, "%s: there is no queue space %s", d->path, name);
		rc = QMEBADRMID;
	} else if ((rc = space_file_read(qs, why)) == 0 && strcmp(qs->device_uuid, d->uuid) != 0) {
		why_set(why, "%s: belongs to the device %s, and %s is %s", qs->dir, qs->device_uuid, d->path, d->uuid);
		rc = QMEBADRMID;
	}
	free(d);
	return rc;
}

static int
space_own(struct qspace *qs, const char *endpoint, char **why)
{
	long pid = 0;
	int rc = owner_lock(qs->dir, &qs->lock_fd);

	if (rc == QSPACE_OWNED) {
		(void)owner_read(qs->dir, NULL, 0, &pid);
		why_set(why, "queue space %s in %s is in use by process %ld", qs->params.name, qs->device, pid);
		return rc;
	}
	if (rc != 0) {
		why_set(why, "%s/lock: %s", qs->dir, strerror(errno));
		return rc;
	}
	return owner_write(qs, endpoint, why);
}

static void
time_text(char *to, size_t size, int64_t us)
{
	time_t t = (time_t)(us / 1000000);
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(to, size, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Messages would expire late, and delayed ones come late, for as long as the clock is behind: an administrator decides.
 */
static int
clock_check(const struct qspace *qs, char **why)
{
	const char *back = getenv("ATMIQ_CLOCK_BACK");
	int64_t now = clock_now_us();
	char was[32], is[32];

	if (qs->stored_us <= now + CLOCK_SLACK_US)
		return 0;
	time_text(was, sizeof was, qs->stored_us);
	time_text(is, sizeof is, now);
	if (back != NULL && strcmp(back, "accept") == 0) {
		ulog("QM_CAT:1502: WARN: queue space %s in %s was last used at %s, and the clock says %s: accepted",
		    qs->params.name, qs->device, was, is);
		return 0;
	}
	why_set(why,
	    "QM_CAT:1502: ERROR: queue space %s in %s was last used at %s, and the clock says %s: set the clock right, "
	    "or "
	    "set ATMIQ_CLOCK_BACK=accept in the environment to open it all the same",
	    qs->params.name, qs->device, was, is);
	return QMESYSTEM;
}

static int	/* What memory has of the disk. */
space_load_all(struct qspace *qs, char **why)
{
	int rc;

	if ((rc = space_load(qs)) != 0 || (rc = clock_check(qs, why)) != 0)
		return rc;
	if ((rc = queue_load_all(qs)) != 0)
		return rc;
	qs->parts.to_free = qs->sweep = true;	/* what was under way when the last owner ended */
	if ((rc = branch_load_all(qs)) != 0)
		return rc;
	return keep_load(qs);
}

static int	/* All of it could be read: from now on it may get records of the present version. */
space_raise_version(struct qspace *qs, char **why)
{
	int rc;

	if (qs->disk_version == DISK_VERSION)
		return 0;
	if ((rc = space_file_write(qs, why)) != 0)
		return rc;
	ulog("QM_CAT:1362: INFO: queue space %s in %s: disk version %d, is one of version %d from now on", qs->params.name,
	    qs->device, qs->disk_version, DISK_VERSION);
	qs->disk_version = DISK_VERSION;
	return 0;
}

int
qspace_open(const char *device, const char *name, const char *endpoint, struct qspace **out, char **why)
{
	struct qspace *qs = calloc(1, sizeof *qs);
	int rc = QMEOS;

	*out = NULL;
	if (why != NULL)
		*why = NULL;
	if (qs == NULL)
		goto done;
	qs->lock_fd = -1;
	if ((rc = space_find(qs, device, name, why)) != 0 || (rc = space_own(qs, endpoint, why)) != 0)
		goto done;
	id4_read(qs);
	rc = QMEOS;
	if ((qs->env.keeper = keeper_start(qs->dir, qs->log_bytes, &qs->env.panicked)) == NULL)
		goto done;
	if ((rc = env_open(qs, false, NULL)) != 0 ||
	    (rc = keeper_checkpoints(qs->env.keeper, qs->env.e, qs->params.name)) != 0 ||
	    (rc = space_load_all(qs, why)) != 0 || (rc = space_raise_version(qs, why)) != 0)
		goto done;
	places_limit(qs->dir, qs->params.procs);	/* one that an earlier release made has none */
	qs->loaded = true;
	*out = qs;
	qs = NULL;
done:
	if (rc != 0 && why != NULL && *why == NULL)
		why_set(why, "queue space %s in %s cannot be opened%s%s; the log has the cause", name, device,
		    qs != NULL && qs->env.trouble[0] != '\0' ? ": " : "", qs != NULL ? qs->env.trouble : "");
	qspace_close(qs);
	return rc;
}

static void
space_say_time(struct qspace *qs)	/* when it was last used */
{
	if (qspace_batch_begin(qs) != 0)
		return;
	if (space_write(qs) != 0 || qspace_batch_commit(qs) != 0)
		qspace_batch_abort(qs);
}

/* A large commit that shows nothing yet has messages in memory that only a hold hides; they are kept, the hold is not.  So it is done. */
static void
space_finish(struct qspace *qs)
{
	qs->step_after_us = 0;
	while (branches_hide_memory(qs)) {
		if (qspace_batch_begin(qs) != 0)
			return;
		if (branches_step(qs, clock_mono_us()) < 0 || qspace_batch_commit(qs) != 0) {
			qspace_batch_abort(qs);
			return;
		}
	}
}

void
qspace_close(struct qspace *qs)
{
	struct queue *q, *next;

	if (qs == NULL)
		return;
	if (qs->batch.open)
		qspace_batch_abort(qs);
	if (qs->loaded) {
		if (!qs->env.panicked) {
			space_say_time(qs);
			space_finish(qs);
		}
		keep_save(qs);
	}
	parts_forget_all(qs);
	branch_forget_all(qs);
	for (q = qs->queues; q != NULL; q = next) {
		next = q->next;
		queue_forget(qs, q);
	}
	keeper_checkpoints_end(qs->env.keeper);
	env_close(qs, qs->loaded);
	env_np_close(qs);
	keeper_stop(qs->env.keeper);
	if (qs->lock_fd != -1)
		close(qs->lock_fd);	/* OWNER stays: it is written over, which a full disk allows */
	wr_free(&qs->rec);
	due_free(&qs->due_queues);
	due_free(&qs->due_branches);
	free(qs->events);
	free(qs->fired);
	free(qs);
}

/*
 * The tables on disk are closed, what a failed flush left unsure is written again (flush.c), the log is read and the
 * tables are recovered.  Nothing else may be written before: a panic is declared, lest closing flushes.
 */
int
space_recover(struct qspace *qs, struct log_end *end)
{
	int rc;

	ulog("QM_CAT:1358: WARN: queue space %s in %s: recovering while running", qs->params.name, qs->device);
	keeper_checkpoints_end(qs->env.keeper);
	qs->env.panicked = true;
	if (qs->env.e != NULL)
		(void)qs->env.e->set_flags(qs->env.e, DB_PANIC_ENVIRONMENT, 1);
	env_close(qs, false);
	if ((rc = env_open(qs, false, end)) == 0 &&
	    keeper_checkpoints(qs->env.keeper, qs->env.e, qs->params.name) != 0)
		rc = QMEOS;
	if (rc == 0 && !qs->env.panicked)
		return 0;
	env_close(qs, false);
	qs->env.panicked = true;
	return QMESYSTEM;
}

/*
 * Berkeley DB asked for recovery.  Transactions go on: what they hold is in memory.  Non-persistent messages are in an
 * environment of their own, and stay.
 */
int
space_reopen(struct qspace *qs)
{
	bool np_gone = qs->env.np_broken;
	struct log_end end;
	int64_t now = clock_mono_us();
	int rc;

	if (now < qs->env.try_again_us)		/* a broken disk: each request is refused, but at once */
		return QMESYSTEM;
	if (np_gone) {
		env_np_close(qs);
		for (struct queue *q = qs->queues; q != NULL; q = q->next)
			q->n.np_messages = q->n.np_bytes = q->n.np_delayed = 0;
	}
	if (space_recover(qs, &end) != 0) {
		qs->env.try_again_us = now + TRY_AGAIN_US;
		return QMESYSTEM;
	}
	qs->undecided = false;
	if (np_gone)
		keep_changed(qs);
	memset(qs->expired_to, 0, sizeof qs->expired_to);
	qs->next_event = qs->next_expiry = 0;
	while (qs->releasing != NULL)
		branches_release(qs);
	if ((rc = queue_reload_all(qs)) != 0 || (rc = branch_reload_all(qs, np_gone)) != 0 ||
	    (rc = parts_reload(qs, np_gone)) != 0) {
		qs->env.panicked = true;
		return rc;
	}
	return 0;
}

/* --- destroy --- */

static int	/* May it go?  A DEVE code. */
destroy_check(const char *device, const char *name, bool force, char **why)
{
	struct qspace *qs;
	int64_t messages;
	unsigned branches;
	int rc = qspace_open(device, name, NULL, &qs, why);

	if (rc == QSPACE_OWNED)
		return DEVE_INUSE;
	if (rc != 0)
		return force || rc == QMEBADRMID ? DEVE_OK : DEVE_OS;
	messages = qs->used.messages;
	branches = HASH_COUNT(qs->branches);
	qspace_close(qs);
	if (force || (messages == 0 && branches == 0))
		return DEVE_OK;
	why_set(why, "queue space %s in %s holds %lld messages and %u transactions in doubt", name, device,
	    (long long)messages, branches);
	return DEVE_INUSE;
}

int
qspace_destroy(const char *device, const char *name, bool force, char **why)
{
	struct qspace *qs = calloc(1, sizeof *qs);
	struct device *d = calloc(1, sizeof *d);
	char gone[sizeof qs->dir];
	int rc = DEVE_OS, fd = -1;

	if (qs == NULL || d == NULL || (rc = space_locate(qs, device, name, d, why)) != DEVE_OK)
		goto done;
	if (device_has(d, name) == NULL) {
		why_set(why, "%s: there is no queue space %s", d->path, name);
		rc = DEVE_NOSUCH;
		goto done;
	}
	if (access(qs->dir, F_OK) == 0) {
		if ((rc = destroy_check(device, name, force, why)) != DEVE_OK)
			goto done;
		if ((rc = owner_lock(qs->dir, &fd)) != 0) {
			why_set(why, "queue space %s in %s is in use", name, device);
			rc = rc == QSPACE_OWNED ? DEVE_INUSE : DEVE_OS;
			goto done;
		}
	}
	if ((rc = device_table_remove(device, name, "qspace", why)) != DEVE_OK)
		goto done;
	memcpy(gone, qs->dir, sizeof gone);
	strncat(gone, ".gone", sizeof gone - strlen(gone) - 1);
	(void)tree_remove(gone);
	if (rename(qs->dir, gone) == 0 && tree_remove(gone) != 0)
		ulog("QM_CAT:1359: WARN: %s could not be removed: %s", gone, strerror(errno));
done:
	if (rc == DEVE_OK && why != NULL) {
		free(*why);
		*why = NULL;
	}
	if (fd != -1)
		close(fd);
	free(qs);
	free(d);
	return rc;
}

/* --- to look at --- */

bool
qspace_has_kept(const char *device, const char *name)
{
	struct qspace *qs = calloc(1, sizeof *qs);
	struct device *d = calloc(1, sizeof *d);
	bool has = false;

	if (qs != NULL && d != NULL && space_locate(qs, device, name, d, NULL) == DEVE_OK)
		has = keep_is_there(qs);
	free(qs);
	free(d);
	return has;
}

int
qspace_owner(const char *device, const char *name, char *endpoint, size_t size, long *pid)
{
	struct qspace *qs = calloc(1, sizeof *qs);
	struct device *d = calloc(1, sizeof *d);
	int rc = -1;

	if (qs != NULL && d != NULL && space_locate(qs, device, name, d, NULL) == DEVE_OK && owner_is_alive(qs->dir))
		rc = owner_read(qs->dir, endpoint, size, pid);
	free(qs);
	free(d);
	return rc;
}

const struct qspace_params *
qspace_params(const struct qspace *qs)
{
	return &qs->params;
}
