/*
 * env - the Berkeley DB environment of a queue space and its tables (DESIGN section 6).
 *
 * One writer, so no locking subsystem; private, so nothing lies in shared memory that a kill -9 could leave half
 * changed. A code of Berkeley DB becomes a QME code here, with one line in the log that names space, table and cause.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qspace_impl.h"

static const struct { const char *name; DBTYPE type; } tables[N_TABLES] = {
	[T_ORDER]     = { "order",     DB_BTREE },
	[T_DELAYED]   = { "delayed",   DB_BTREE },
	[T_EXPIRY]    = { "expiry",    DB_BTREE },
	[T_CORRID]    = { "corrid",    DB_BTREE },
	[T_ALIAS]     = { "alias",     DB_BTREE },
	[T_PARTS]     = { "parts",     DB_BTREE },
	[T_QUEUES]    = { "queues",    DB_BTREE },
	[T_SPACE]     = { "space",     DB_BTREE },
	[T_BRANCHES]  = { "branches",  DB_BTREE },
	[T_OPERATIONS] = { "operations", DB_BTREE },
	[T_DECISIONS] = { "decisions", DB_BTREE },
};
enum { LOG_BUFFER = 4 << 20, SAY_A_SECOND = 12, NUMBER_AT = 8 };	/* NUMBER_AT: of a page, its own */

int (*_Atomic env_fault)(int fd, size_t n);

const char *
table_name(enum table t)
{
	return tables[t].name;
}

void
env_file_name(char *to, size_t size, enum table t)
{
	snprintf(to, size, "%s.db", t < N_TABLES ? tables[t].name : "messages.*");
}

/*
 * Berkeley DB writes through these two.  All of it, or an error: it takes a short write for an error of its own, and half
 * a page would stay on disk.
 */
static ssize_t
write_all(int fd, const uint8_t *p, size_t n, off_t at, bool positioned)
{
	size_t done = 0, piece;
	ssize_t w;
	int e;

	while (done < n) {
		if ((e = fault_at(fd, n - done)) > 0) {
			errno = e;
			w = -1;
		} else {
			piece = e == FAULT_SHORT ? (n - done + 1) / 2 : n - done;
			w = positioned ? pwrite(fd, p + done, piece, at + (off_t)done) : write(fd, p + done, piece);
		}
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			e = w == 0 ? EIO : errno;
			flush_write_failed(fd);
			errno = e;
			return -1;
		}
		done += (size_t)w;
	}
	return (ssize_t)n;
}

static ssize_t
write_checked(int fd, const void *p, size_t n)
{
	return log_zeroes_pass(fd, p, n) ? (ssize_t)n : write_all(fd, p, n, 0, false);
}

static ssize_t
pwrite_checked(int fd, const void *p, size_t n, off_t at)
{
	return write_all(fd, p, n, at, true);
}

/*
 * A page of zeroes passes for a new one, checksum and all, and Berkeley DB searches a tree for ever that has one among its
 * leaves.  Who looks for a record meets no new page (`looking`; recovery does, and who appends to a heap): it is made one
 * whose checksum is wrong.  So is a page that belongs elsewhere, which Berkeley DB takes as it comes: one that has no
 * records at all, read as one of a heap's, sends it looking for them outside its cache.
 */
static _Thread_local bool looking, in_heap;

void
env_in_heap(bool is)
{
	in_heap = is;
}

static ssize_t
pread_checked(int fd, void *p, size_t n, off_t at)
{
	ssize_t got = pread(fd, p, n, at);
	uint32_t no, is = (uint32_t)(at / ENV_PAGE);
	uint8_t *b = p;
	bool elsewhere, zero;

	if ((!looking && !in_heap) || got != ENV_PAGE)
		return got;
	memcpy(&no, b + NUMBER_AT, sizeof no);
	elsewhere = no != is && no != __builtin_bswap32(is);
	zero = b[0] == 0 && memcmp(b, b + 1, ENV_PAGE - 1) == 0;
	if (looking ? elsewhere || zero : elsewhere && !zero)
		memset(b, 0xff, ENV_PAGE);
	return got;		/* less than n, or -1: Berkeley DB reads it by itself */
}

/* A full disk makes every batch fail: a few lines a second say it as well as thousands. */
static bool
may_say(struct qspace *qs)
{
	int64_t now = clock_mono_us(), from = qs->env.said_from_us;

	if (now - from > 1000000 && atomic_compare_exchange_strong(&qs->env.said_from_us, &from, now))
		qs->env.said = 0;
	return atomic_fetch_add(&qs->env.said, 1) < SAY_A_SECOND;
}

void
env_trouble(struct qspace *qs, const char *text)
{
	char *t = qs->env.trouble;
	size_t n = strlen(t);

	/* Berkeley DB does not always say where: the next one to tell does. */
	if (!qs->loaded && (n == 0 || (strstr(t, qs->dir) == NULL && strstr(text, qs->dir) != NULL)))
		snprintf(t + n, sizeof qs->env.trouble - n, "%s%.500s", n > 0 ? "; " : "", text);
}

static void
say_db_error(const DB_ENV *e, const char *prefix, const char *msg)
{
	struct qspace *qs = e->app_private;

	(void)prefix;
	if (qs->env.panicked)		/* all that follows says the same */
		return;
	if (strstr(msg, "PANIC") != NULL) {
		qs->env.np_broken = e == qs->env.np_e;
		qs->env.panicked = true;
	}
	env_trouble(qs, msg);
	if (may_say(qs))
		ulog("QM_CAT:1351: ERROR: queue space %s in %s: Berkeley DB: %s", qs->params.name, qs->dir, msg);
}

int
env_error_at(struct qspace *qs, const char *file, const char *what, int dbrc)
{
	char text[4600];

	if (dbrc == DB_RUNRECOVERY)
		qs->env.panicked = true;
	snprintf(text, sizeof text, "%s: %s/%s: %s", what, qs->dir, file, db_strerror(dbrc));
	env_trouble(qs, text);
	if (may_say(qs))
		ulog("QM_CAT:1350: ERROR: queue space %s: %s: %s/%s: %s", qs->params.name, what, qs->dir, file,
		    db_strerror(dbrc));
	return dbrc > 0 ? QMEOS : QMESYSTEM;
}

int
env_error(struct qspace *qs, enum table t, const char *what, int dbrc)
{
	char file[32];

	env_file_name(file, sizeof file, t);
	return env_error_at(qs, t == N_TABLES ? "" : file, what, dbrc);
}

static size_t	/* Half of what the space may hold, within sense. */
cache_bytes(const struct qspace_params *p)
{
	size_t half = (size_t)(p->pages > 0 ? p->pages : 0) * PAGE_BYTES / 2;
	size_t c = half < 16 * MIB ? 16 * MIB : half > 128 * MIB ? 128 * MIB : half;

	return c;
}

int
env_db_open(struct qspace *qs, const char *name, DBTYPE type, bool np, bool create, DB **out)
{
	DB *db;
	int rc;

	*out = NULL;
	if ((rc = db_create(&db, np ? qs->env.np_e : qs->env.e, 0)) != 0)
		return env_error_at(qs, name, "open", rc);
	if ((rc = db->set_pagesize(db, ENV_PAGE)) == 0)
		rc = db->set_flags(db, np ? DB_TXN_NOT_DURABLE : DB_CHKSUM);
	if (rc == 0)
		rc = db->open(db, NULL, np ? NULL : name, np ? name : NULL, type,
		    DB_AUTO_COMMIT | (create ? DB_CREATE : 0), 0600);
	if (rc != 0) {
		(void)db->close(db, DB_NOSYNC);
		return env_error_at(qs, name, "open", rc);
	}
	/*
	 * The environment is threaded for the keeper's checkpoints, and they do not touch the handles of tables: these are
	 * the writer's alone.  Berkeley DB gives each a mutex all the same, and took it forty times a dequeue.
	 */
	db->app_private = (void *)db->mutex;
	db->mutex = 0;
	*out = db;
	return 0;
}

int
env_db_close(DB *db, uint32_t flags)
{
	db->mutex = (db_mutex_t)db->app_private;	/* it is Berkeley DB's to free */
	return db->close(db, flags);
}

static int
table_open(struct qspace *qs, enum table t, bool np, bool create)
{
	char name[32];

	snprintf(name, sizeof name, np ? "np_%s" : "%s.db", tables[t].name);
	return env_db_open(qs, name, tables[t].type, np, create, &qs->env.db[np][t]);
}

static int
recovery_failed(struct qspace *qs, int dbrc)
{
	char first[sizeof qs->env.trouble];
	int rc;

	snprintf(first, sizeof first, "%s", qs->env.trouble);
	rc = env_error(qs, N_TABLES, "open and recover", dbrc);
	recovery_tell(qs, first);
	return rc;
}

static int
cache_set(DB_ENV *e, size_t bytes)
{
	return e->set_cachesize(e, (uint32_t)(bytes >> 30), (uint32_t)(bytes & ((1u << 30) - 1)), 1);
}

/* An environment of their own: when that of the disk is closed and recovered while running, they stay (D7). */
static int
env_np_open(struct qspace *qs)
{
	struct env *env = &qs->env;
	int rc;

	if ((rc = db_env_create(&env->np_e, 0)) != 0)
		return env_error(qs, N_TABLES, "open in memory", rc);
	env->np_e->app_private = qs;
	env->np_e->set_errcall(env->np_e, say_db_error);
	if ((rc = cache_set(env->np_e, 16 * MIB + 4 * (size_t)qs->params.nonpersistent_bytes)) != 0 ||
	    (rc = env->np_e->log_set_config(env->np_e, DB_LOG_IN_MEMORY, 1)) != 0 ||
	    (rc = env->np_e->open(env->np_e, NULL,
		 DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL, 0600)) != 0)
		return env_error(qs, N_TABLES, "open in memory", rc);
	for (int t = 0; t < N_MESSAGE_TABLES; t++)
		if ((rc = table_open(qs, t, true, true)) != 0)
			return rc;
	env->seg[1].next_no = 1;
	env->np_memory = qs->params.nonpersistent_bytes;
	return 0;
}

int
env_open(struct qspace *qs, bool create, struct log_end *end)
{
	struct env *env = &qs->env;
	struct log_end found;
	int rc;

	spare_hook();
	assert(__ham_func4(NULL, "atmiq", 5) == checksum_of((const uint8_t *)"atmiq", 5));	/* links it in */
	(void)db_env_set_func_write(write_checked);
	(void)db_env_set_func_pwrite(pwrite_checked);
	(void)db_env_set_func_pread(pread_checked);
	(void)db_env_set_func_fsync(flush_checked);
	(void)db_env_set_func_ftruncate(room_truncate);
	env->panicked = false;
	env->room = (struct room){ 0 };
	env->trouble[0] = '\0';
	if (!create && ((rc = flush_settle(qs)) != 0 || (rc = log_check_begin(qs, end != NULL ? end : &found)) != 0))
		return rc;
	if ((rc = db_env_create(&env->e, 0)) != 0)
		return env_error(qs, N_TABLES, "open", rc);
	env->e->app_private = qs;
	env->e->set_errcall(env->e, say_db_error);
	if ((rc = cache_set(env->e, cache_bytes(&qs->params))) == 0 &&
	    (rc = env->e->set_app_dispatch(env->e, log_dispatch)) == 0 &&
	    (rc = env->e->set_lg_max(env->e, (uint32_t)qs->log_bytes)) == 0 &&
	    (rc = env->e->set_lg_bsize(env->e, LOG_BUFFER)) == 0 &&
	    (rc = env->e->log_set_config(env->e, DB_LOG_AUTO_REMOVE, 1)) == 0)
		rc = env->e->open(env->e, qs->dir,
		    DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_THREAD | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL, 0600);
	log_zeroes_forget();
	if (rc != 0)
		return recovery_failed(qs, rc);
	if (!create && (rc = log_check_end(qs)) != 0)
		return rc;
	for (int t = 0; t < N_TABLES; t++)
		/* A table that is lost is not made anew; some came with a later version. */
		if ((rc = table_open(qs, t, false, create || (t == T_PARTS && qs->disk_version < 2) ||
		    (t == T_OPERATIONS && qs->disk_version < 3))) != 0)
			return rc;
	if (env->np_e == NULL && qs->params.nonpersistent_bytes > 0 && (rc = env_np_open(qs)) != 0)
		return rc;
	return segments_load(qs);
}

void
env_close(struct qspace *qs, bool checkpoint)
{
	struct env *env = &qs->env;
	int rc;

	if (env->e == NULL)
		return;
	if (checkpoint && !env->panicked && (rc = env->e->txn_checkpoint(env->e, 0, 0, DB_FORCE)) != 0)
		env_error(qs, N_TABLES, "last checkpoint", rc);
	segments_close(qs, false, checkpoint && !env->panicked ? 0 : DB_NOSYNC);
	for (int t = 0; t < N_TABLES; t++)
		if (env->db[0][t] != NULL) {
			rc = env_db_close(env->db[0][t], checkpoint && !env->panicked ? 0 : DB_NOSYNC);
			if (rc != 0 && !env->panicked)
				env_error(qs, t, "close", rc);
			env->db[0][t] = NULL;
		}
	if ((rc = env->e->close(env->e, 0)) != 0 && !env->panicked)
		env_error(qs, N_TABLES, "close", rc);
	env->e = NULL;
}

void
env_np_failed(struct qspace *qs, int dbrc)
{
	env_error_at(qs, "memory", "commit of non-persistent messages", dbrc);
	qs->env.np_broken = true;
	qs->env.panicked = true;
}

void
env_np_close(struct qspace *qs)
{
	struct env *env = &qs->env;

	if (env->np_e == NULL)
		return;
	segments_close(qs, true, DB_NOSYNC);
	for (int t = 0; t < N_TABLES; t++)
		if (env->db[1][t] != NULL) {
			(void)env_db_close(env->db[1][t], DB_NOSYNC);
			env->db[1][t] = NULL;
		}
	(void)env->np_e->close(env->np_e, 0);
	env->np_e = NULL;
	env->np_broken = false;
	env->np_memory = 0;
}

/* --- records --- */

static DB *
table_of(struct qspace *qs, enum table t, bool np)
{
	return qs->env.db[np][t];
}

int
table_put(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, const void *v, size_t vn)
{
	DBT key = { .data = (void *)(uintptr_t)k, .size = (uint32_t)kn };
	DBT val = { .data = (void *)(uintptr_t)v, .size = (uint32_t)vn };
	DB *db = table_of(qs, t, np);
	int rc = batch_write(qs, np);

	looking = true;
	if (rc == 0 && (rc = db->put(db, qs->batch.txn[np], &key, &val, 0)) != 0)
		rc = batch_dead(qs, env_error(qs, t, "put", rc));
	looking = false;
	return rc;
}

int
table_del(struct qspace *qs, enum table t, bool np, const void *k, size_t kn)
{
	DBT key = { .data = (void *)(uintptr_t)k, .size = (uint32_t)kn };
	DB *db = table_of(qs, t, np);
	int rc = batch_write(qs, np);

	looking = true;
	if (rc == 0 && (rc = db->del(db, qs->batch.txn[np], &key, 0)) != 0 && rc != DB_NOTFOUND)
		rc = batch_dead(qs, env_error(qs, t, "delete", rc));
	looking = false;
	return rc;
}

int
table_get(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, void *v, size_t cap, size_t *vn)
{
	DBT key = { .data = (void *)(uintptr_t)k, .size = (uint32_t)kn };
	DBT val = { .data = v, .ulen = (uint32_t)cap, .flags = DB_DBT_USERMEM };
	DB *db = table_of(qs, t, np);
	int rc;

	*vn = 0;
	if (db == NULL)		/* no memory was set aside for non-persistent messages */
		return DB_NOTFOUND;
	looking = true;
	rc = db->get(db, qs->batch.txn[np], &key, &val, 0);
	looking = false;
	*vn = val.size;
	return rc == 0 || rc == DB_NOTFOUND ? rc : batch_dead(qs, env_error(qs, t, "get", rc));
}

int
table_get_alloc(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, uint8_t **v, size_t *vn)
{
	DBT key = { .data = (void *)(uintptr_t)k, .size = (uint32_t)kn };
	DBT val = { .flags = DB_DBT_MALLOC };
	DB *db = table_of(qs, t, np);
	int rc;

	looking = true;
	rc = db->get(db, qs->batch.txn[np], &key, &val, 0);
	looking = false;
	*v = rc == 0 ? val.data : NULL;
	*vn = val.size;
	return rc == 0 || rc == DB_NOTFOUND ? rc : batch_dead(qs, env_error(qs, t, "get", rc));
}

/* --- walking --- */

static int
walk_get(struct qspace *qs, struct walk *w, const void *from, size_t n, uint32_t how)
{
	DBT key = { .data = (void *)(uintptr_t)from, .size = (uint32_t)n }, val = { 0 };
	int rc;

	looking = true;
	rc = w->c->get(w->c, &key, &val, how);
	looking = false;
	qs->counts.steps++;
	w->k = key.data;
	w->kn = key.size;
	w->v = val.data;
	w->vn = val.size;
	return rc == 0 || rc == DB_NOTFOUND ? rc : batch_dead(qs, env_error(qs, w->t, "read", rc));
}

int
walk_first(struct qspace *qs, struct walk *w, enum table t, bool np, const void *from, size_t n)
{
	DB *db = table_of(qs, t, np);
	int rc;

	memset(w, 0, sizeof *w);
	w->t = t;
	if (db == NULL)
		return DB_NOTFOUND;
	if ((rc = db->cursor(db, qs->batch.txn[np], &w->c, 0)) != 0)
		return batch_dead(qs, env_error(qs, t, "cursor", rc));
	return walk_get(qs, w, from, n, DB_SET_RANGE);
}

void
walk_ahead(struct walk *w, void *buf, size_t size)
{
	w->many = (DBT){ .data = buf, .ulen = (uint32_t)size, .flags = DB_DBT_USERMEM };
	w->at = NULL;
}

static bool	/* The next entry of those that were read at once. */
walk_take(struct qspace *qs, struct walk *w)
{
	void *k, *v;

	if (w->at == NULL)
		return false;
	DB_MULTIPLE_KEY_NEXT(w->at, &w->many, k, w->kn, v, w->vn);
	w->k = k;
	w->v = v;
	qs->counts.steps += w->at != NULL;
	return w->at != NULL;
}

int
walk_next(struct qspace *qs, struct walk *w)
{
	DBT key = { 0 };
	int rc;

	if (w->many.data == NULL)
		return walk_get(qs, w, NULL, 0, DB_NEXT);
	if (walk_take(qs, w))
		return 0;
	looking = true;
	rc = w->c->get(w->c, &key, &w->many, DB_NEXT | DB_MULTIPLE_KEY);
	looking = false;
	if (rc == 0) {
		DB_MULTIPLE_INIT(w->at, &w->many);
		return walk_take(qs, w) ? 0 : DB_NOTFOUND;
	}
	return rc == DB_NOTFOUND ? rc : batch_dead(qs, env_error(qs, w->t, "read", rc));
}

int
walk_before(struct qspace *qs, struct walk *w, enum table t, bool np, const void *than, size_t n)
{
	int rc = walk_first(qs, w, t, np, than, n);

	if (rc == 0)
		return walk_get(qs, w, NULL, 0, DB_PREV);
	return rc == DB_NOTFOUND && w->c != NULL ? walk_get(qs, w, NULL, 0, DB_LAST) : rc;
}

void
walk_end(struct qspace *qs, struct walk *w)
{
	int rc;

	if (w->c != NULL && (rc = w->c->close(w->c)) != 0)
		batch_dead(qs, env_error(qs, w->t, "close cursor", rc));
	w->c = NULL;
}
