/*
 * spare - zero-filled log files of exactly the log file size, made ahead of time, and the checkpoints.
 *
 * A flush that overwrites blocks written once costs about 92 us, one that grows the file 140 us and more.  Berkeley DB
 * creates log.NNNNNNNNNN with open(O_CREAT) through a function that db_env_set_func_open() lets us replace, for the
 * whole process: it looks for spare.1 or spare.2 in the directory of the file that is being created, moves it into
 * place and wakes that directory's keeper.  Zeroes after the last record read as end of log, so recovery and the
 * db5.3_* tools need not know.  Without a spare a log file of that size is made, with as many blocks as there are.
 *
 * A keeper has two threads: one makes spares at low priority, one asks for a checkpoint whenever a log file was begun
 * (Berkeley DB does nothing until CHECKPOINT_KB of log have been written since the last).  On a full disk one is asked
 * for sooner: it removes the log files that nothing needs any more, which makes room for a spare.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "qspace_impl.h"

enum { SPARES = 2, CHUNK = 256 << 10, SYNC_EVERY = 4 << 20, CHECKPOINT_KB = 30 << 10,
	FIRST_AFTER_MS = 300, SHORT_OF = 4 /* log files */, SECURE_S = 1, FAR_AHEAD = 2 /* log files */, CATCH_UP_MS = 5,
	TRY_AGAIN_S = 1, ASK_EVERY_US = 1000000 };

struct keeper {
	char dir[4096];
	size_t log_bytes;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	atomic_uint rolled;		/* log files begun; how many when the last checkpoint that is done began: */
	atomic_uint settled;
	atomic_bool stop;
	atomic_bool *alarm;
	atomic_uint log_failures;	/* writes and flushes of the log that failed */
	atomic_bool secured;		/* there is a spare, or at least its blocks are taken */
	atomic_bool without;		/* there is none, and there was no room to make one */
	bool wanted;			/* at once: messages come, and the disk is short of room */
	bool asked;			/* for a checkpoint, whatever was written since the last */
	int64_t asked_us;
	DB_ENV *e;			/* NULL: no checkpoints now */
	const char *space;
	uint64_t checkpoints;
	pthread_t maker, checkpointer;
	bool has_maker, has_checkpoints;
	struct keeper *prev, *next;
};

static pthread_mutex_t keepers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct keeper *keepers;

static void
spare_path(char *to, size_t size, const char *dir, size_t dir_len, int number)
{
	snprintf(to, size, "%.*s/spare.%d", (int)dir_len, dir, number);
}

static int	/* The disk's blocks, before anything else gets them.  A file system that cannot do it is trusted. */
blocks_take(int fd, size_t bytes)
{
	int rc;

	do
		rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
	while (rc != 0 && errno == EINTR);
	return rc == 0 || (errno != ENOSPC && errno != EDQUOT) ? 0 : -1;
}

static int
spare_fill(int fd, size_t bytes, const atomic_bool *stop)
{
	static const char zeroes[CHUNK];

	for (size_t off = 0; off < bytes; off += CHUNK) {
		size_t n = bytes - off < CHUNK ? bytes - off : CHUNK;
		if (stop != NULL && *stop) {
			errno = EINTR;
			return -1;
		}
		if ((errno = fault_at(fd, n)) != 0 || pwrite(fd, zeroes, n, (off_t)off) != (ssize_t)n)
			return -1;
		/* In small pieces, so that a flush of the log never waits behind all of it. */
		if ((off + n) % SYNC_EVERY == 0 && fdatasync(fd) != 0)
			return -1;
	}
	return (errno = fault_at(fd, 0)) != 0 ? -1 : fsync(fd);
}

static void
keeper_secured(struct keeper *k)
{
	pthread_mutex_lock(&k->lock);
	k->secured = true;
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

static int
make(const char *dir, int number, size_t bytes, const atomic_bool *stop, struct keeper *k)
{
	char making[4200], path[4200];
	int64_t left;
	int fd, rc;

	snprintf(making, sizeof making, "%s/spare.new", dir);
	spare_path(path, sizeof path, dir, strlen(dir), number);
	(void)unlink(making);
	left = disk_free(dir);
	/* Do not fill the disk to find out, and leave room for messages rather than have a second spare. */
	if (left != -1 && left < number * (int64_t)bytes) {
		errno = ENOSPC;
		return -1;
	}
	if ((errno = fault_at(-1, 0)) != 0 || (fd = open(making, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) == -1)
		return -1;
	if ((rc = blocks_take(fd, bytes)) == 0) {
		if (k != NULL)
			keeper_secured(k);
		rc = spare_fill(fd, bytes, stop);
	}
	close(fd);
	if (rc == 0)
		rc = (errno = fault_at(-1, 0)) != 0 ? -1 : rename(making, path);
	if (rc != 0)
		(void)unlink(making);
	return rc;
}

int
spare_make(const char *dir, int number, size_t bytes, const atomic_bool *stop)
{
	return make(dir, number, bytes, stop, NULL);
}

/* --- the hook --- */

static size_t	/* how long its log files are; 0: nobody keeps that directory.  last: there is no spare now */
keeper_rolled(const char *dir, size_t len, bool last)
{
	struct keeper *k;
	size_t log_bytes = 0;

	pthread_mutex_lock(&keepers_lock);
	DL_FOREACH(keepers, k)
		if (strlen(k->dir) == len && memcmp(k->dir, dir, len) == 0) {
			pthread_mutex_lock(&k->lock);
			k->rolled++;
			if (last)
				k->secured = false;
			pthread_cond_broadcast(&k->wake);
			pthread_mutex_unlock(&k->lock);
			log_bytes = k->log_bytes;
		}
	pthread_mutex_unlock(&keepers_lock);
	return log_bytes;
}

void
keeper_flush_failed(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct keeper *k;

	pthread_mutex_lock(&keepers_lock);
	DL_FOREACH(keepers, k)
		if (slash != NULL && strlen(k->dir) == (size_t)(slash - path) && memcmp(k->dir, path, strlen(k->dir)) == 0)
			*k->alarm = true;
	pthread_mutex_unlock(&keepers_lock);
}

void
keeper_log_failed(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct keeper *k;

	pthread_mutex_lock(&keepers_lock);
	DL_FOREACH(keepers, k)
		if (slash != NULL && strlen(k->dir) == (size_t)(slash - path) && memcmp(k->dir, path, strlen(k->dir)) == 0)
			k->log_failures++;
	pthread_mutex_unlock(&keepers_lock);
}

unsigned
keeper_log_failures(const struct keeper *k)
{
	return k == NULL ? 0 : k->log_failures;
}

static void	/* It gets its full size, and is durably there, before LAST_LOG says so (log_last.c). */
log_begun(const char *path, const char *slash, int fd, size_t log_bytes)
{
	char dir[4096];
	struct log_last l;
	struct stat st;

	snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
	dir_sync(dir);
	if (fstat(fd, &st) != 0)
		return;
	for (size_t n = st.st_size == 0 ? log_bytes : 0; n >= CHUNK && blocks_take(fd, n) != 0; n /= 2)
		;
	if (st.st_size < (off_t)log_bytes && (fault_at(fd, 0) != 0 || ftruncate(fd, (off_t)log_bytes) != 0 ||
		fsync(fd) != 0 || fstat(fd, &st) != 0))
		return;
	if (log_last_read(dir, &l) && l.no >= strtoul(slash + 5, NULL, 10))
		return;
	if (st.st_size <= UINT32_MAX)
		log_last_write(dir, (struct log_last){ (uint32_t)strtoul(slash + 5, NULL, 10), (uint32_t)st.st_size });
}

static int	/* Berkeley DB's open(): a file descriptor, or -1 with errno */
open_with_spare(const char *path, int flags, ...)
{
	const char *slash = strrchr(path, '/');
	bool begins = (flags & O_CREAT) && slash != NULL && strncmp(slash + 1, "log.", 4) == 0;
	size_t log_bytes = 0;
	char spare[4200];
	struct stat st;
	va_list ap;
	int mode, fd;

	va_start(ap, flags);
	mode = va_arg(ap, int);		/* Berkeley DB always passes it */
	va_end(ap);
	if (begins && stat(path, &st) == -1)
		for (int i = 1; i <= SPARES; i++) {
			spare_path(spare, sizeof spare, path, (size_t)(slash - path), i);
			if (rename(spare, path) == 0)
				break;
		}
	if (begins) {
		spare_path(spare, sizeof spare, path, (size_t)(slash - path), SPARES);
		log_bytes = keeper_rolled(path, (size_t)(slash - path), access(spare, F_OK) != 0);
	}
	if ((fd = open(path, flags | O_CLOEXEC, mode)) != -1 && begins)
		log_begun(path, slash, fd, log_bytes);
	return fd;
}

void
spare_hook(void)
{
	(void)db_env_set_func_open(open_with_spare);
}

/* --- the threads --- */

static void
spares_check(struct keeper *k)	/* What an earlier run left: whole spares are kept, the rest removed. */
{
	char path[4200];
	struct stat st;
	int64_t left;
	int n = 0;

	snprintf(path, sizeof path, "%s/spare.new", k->dir);
	(void)unlink(path);
	for (int i = 1; i <= SPARES; i++) {
		spare_path(path, sizeof path, k->dir, strlen(k->dir), i);
		if (stat(path, &st) != 0)
			continue;
		if (st.st_size != (off_t)k->log_bytes)
			(void)unlink(path);
		else
			n++;
	}
	k->secured = n > 0;
	k->without = n == 0 && (left = disk_free(k->dir)) != -1 && left < (int64_t)k->log_bytes;
}

static bool	/* all are there */
spares_fill_up(struct keeper *k)
{
	char path[4200];
	int n = 0;

	for (int i = 1; i <= SPARES && !k->stop; i++) {
		spare_path(path, sizeof path, k->dir, strlen(k->dir), i);
		n += access(path, F_OK) == 0 || make(k->dir, i, k->log_bytes, &k->stop, k) == 0;
	}
	pthread_mutex_lock(&k->lock);
	k->without = n == 0;	/* a full disk: room.c lets nothing in */
	k->secured = n > 0;
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
	return n == SPARES;
}

static void *
maker_run(void *arg)
{
	struct keeper *k = arg;
	struct timespec until;
	uint64_t seen_done;
	unsigned seen;
	bool all;

	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FIRST_AFTER_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&k->lock);
	/* Who opens the space for one command has closed it by then. */
	while (!k->stop && !k->wanted && k->rolled == 0 && pthread_cond_timedwait(&k->wake, &k->lock, &until) != ETIMEDOUT)
		;
	while (!k->stop) {
		seen = k->rolled;
		seen_done = k->checkpoints;
		pthread_mutex_unlock(&k->lock);
		all = spares_fill_up(k);
		pthread_mutex_lock(&k->lock);
		while (all && !k->stop && k->rolled == seen)
			pthread_cond_wait(&k->wake, &k->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += TRY_AGAIN_S;
		while (!all && !k->stop && k->rolled == seen && k->checkpoints == seen_done &&
		    pthread_cond_timedwait(&k->wake, &k->lock, &until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

static void *
checkpoints_run(void *arg)
{
	struct keeper *k = arg;
	unsigned seen;
	bool asked;
	DB_ENV *e;
	int rc;

	pthread_mutex_lock(&k->lock);
	while (!k->stop && (e = k->e) != NULL) {
		seen = k->rolled;
		asked = k->asked;
		k->asked = false;
		pthread_mutex_unlock(&k->lock);
		if ((rc = e->txn_checkpoint(e, asked ? 0 : CHECKPOINT_KB, 0, asked ? DB_FORCE : 0)) != 0)
			ulog("QM_CAT:1352: ERROR: queue space %s: checkpoint: %s", k->space, db_strerror(rc));
		pthread_mutex_lock(&k->lock);
		if (rc == 0)
			k->checkpoints++;
		k->settled = seen;	/* after an error too: the writer is not to wait for what will not come */
		pthread_cond_broadcast(&k->wake);
		while (!k->stop && k->e != NULL && k->rolled == seen && !k->asked)
			pthread_cond_wait(&k->wake, &k->lock);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

struct keeper *
keeper_start(const char *dir, size_t log_bytes, atomic_bool *alarm)
{
	struct keeper *k = calloc(1, sizeof *k);

	if (k == NULL)
		return NULL;
	snprintf(k->dir, sizeof k->dir, "%s", dir);
	k->log_bytes = log_bytes;
	k->alarm = alarm;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->wake, NULL);
	spares_check(k);
	pthread_mutex_lock(&keepers_lock);
	DL_APPEND(keepers, k);
	pthread_mutex_unlock(&keepers_lock);
	k->has_maker = pthread_create(&k->maker, NULL, maker_run, k) == 0;	/* without it: without spares */
	return k;
}

int
keeper_checkpoints(struct keeper *k, DB_ENV *e, const char *space)
{
	k->e = e;
	k->space = space;
	k->has_checkpoints = pthread_create(&k->checkpointer, NULL, checkpoints_run, k) == 0;
	return k->has_checkpoints ? 0 : -1;
}

void
keeper_checkpoints_end(struct keeper *k)
{
	if (k == NULL || !k->has_checkpoints)
		return;
	pthread_mutex_lock(&k->lock);
	k->e = NULL;
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->checkpointer, NULL);
	k->has_checkpoints = false;
}

/* Without it a fast writer leaves the checkpoints behind, and a start after a kill pays for that. */
void
keeper_let_catch_up(struct keeper *k)
{
	struct timespec until;

	if (k == NULL || !k->has_checkpoints || k->rolled - k->settled <= FAR_AHEAD)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CATCH_UP_MS * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&k->lock);
	if (k->rolled - k->settled > FAR_AHEAD)
		(void)pthread_cond_timedwait(&k->wake, &k->lock, &until);
	pthread_mutex_unlock(&k->lock);
}

void
keeper_ask_checkpoint(struct keeper *k)
{
	int64_t now = clock_mono_us();

	pthread_mutex_lock(&k->lock);
	if (now - k->asked_us > ASK_EVERY_US) {
		k->asked = true;
		k->asked_us = now;
		pthread_cond_broadcast(&k->wake);
	}
	pthread_mutex_unlock(&k->lock);
}

bool
keeper_is_without(const struct keeper *k)
{
	return k->without;
}

/* While the disk is short of room, the room of the next log file is taken before that of messages. */
bool
keeper_has_room(struct keeper *k)
{
	struct timespec until;
	int64_t left;

	if (k->secured || !k->has_maker || (left = disk_free(k->dir)) == -1 || left >= SHORT_OF * (int64_t)k->log_bytes)
		return !k->without;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECURE_S;
	pthread_mutex_lock(&k->lock);
	k->wanted = true;
	pthread_cond_broadcast(&k->wake);
	while (!k->secured && !k->without && pthread_cond_timedwait(&k->wake, &k->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&k->lock);
	return k->secured;
}

uint64_t
keeper_checkpoint_count(struct keeper *k)
{
	uint64_t n;

	pthread_mutex_lock(&k->lock);
	n = k->checkpoints;
	pthread_mutex_unlock(&k->lock);
	return n;
}

void
keeper_stop(struct keeper *k)
{
	if (k == NULL)
		return;
	keeper_checkpoints_end(k);
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
	if (k->has_maker)
		pthread_join(k->maker, NULL);
	pthread_mutex_lock(&keepers_lock);
	DL_DELETE(keepers, k);
	pthread_mutex_unlock(&keepers_lock);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
