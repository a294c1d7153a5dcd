/*
 * qspace_impl - what the files of this folder know of each other.  Nobody else includes it.
 *
 * Errors     0, or a negative QME code; DB_NOTFOUND where a function says so.  A QMESYSTEM or QMEOS makes the batch
 * dead. np         false: the tables on disk.  true: the same tables in memory, for non-persistent messages (D7).
 */
#ifndef QSPACE_IMPL_H
#define QSPACE_IMPL_H

#include <assert.h>
#include <db.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>

#include "clock.h"
#include "due.h"
#include "qspace.h"
#include "ulog.h"
#include "wirebuf.h"

#define PAGE_BYTES 512		/* what administrators call a page */
#define ENV_PAGE 4096		/* Berkeley DB's (D6): what the disk writes whole */
/* What a non-persistent message counts besides its body; what its entries take in memory is no more than four times that. */
enum { NP_PLAIN = 160, NP_CORRID = 96, NP_EXPIRY = 64, NP_BEFORE = 200, NP_ORIGIN = 256 };
#define MIB ((size_t)1 << 20)
#define NEVER INT64_MAX

/* --- qorder.c: keys that sort as the queue delivers, and the identifiers made from them --- */

#define ORDER_KEY_MAX 128
struct okey { uint8_t n; uint8_t b[ORDER_KEY_MAX]; };
struct qorder_values { int32_t priority; int64_t available_us, expires_us; };	/* expires 0: never */

void qorder_key(
    struct okey *k, uint32_t queue, const uint8_t order[4], const struct qorder_values *v, bool top, uint64_t seq);
/* prev: what stands directly ahead of `of` now, n 0 when that is nothing.  Only looked at when qorder_before_looks(). */
bool qorder_before_looks(const struct okey *of);
int qorder_before(struct okey *k, const struct okey *of, const struct okey *prev, uint64_t seq);	/* -1: no place left */
int qorder_compare(const uint8_t *a, size_t an, const uint8_t *b, size_t bn);
uint32_t qorder_queue(const struct okey *k);
uint64_t qorder_seq(const struct okey *k, bool lifo);	/* of a key that qorder_key() made */
/* An identifier is the key itself (DIRECT), or the sequence under which the alias table has the key. */
void qorder_msgid(
    uint8_t msgid[TMMSGIDLEN], const uint8_t space[4], bool np, const struct okey *k, uint64_t seq, bool alias);
struct msgid_parts { bool np, alias; uint32_t queue; uint64_t seq; struct okey key; };	/* seq: alias only */
int qorder_msgid_parse(const uint8_t msgid[TMMSGIDLEN], struct msgid_parts *out);	/* -1: not one of ours */
void be32(uint8_t *to, uint32_t v);
void be64(uint8_t *to, uint64_t v);
uint32_t get32(const uint8_t *from);
uint64_t get64(const uint8_t *from);

/* --- qmsg.c: what is stored, encoded and decoded (FORMAT.md) --- */

#define RECORD_VERSION 2
#define RECORD_VERSION_OLDEST 1	/* still read */
#define RECORD_HEAD_MAX 1024	/* no record's header is longer */
struct rid { uint32_t segment, page; uint16_t slot; };
enum { OV_NP = 1, OV_CORRID = 2, OV_ALIAS = 4, OV_PARTS = 8 };
struct oval {			/* what the order table has of a message: all that selection needs */
	struct rid rid;
	uint64_t seq;
	uint32_t retries, bytes;	/* bytes of the body */
	uint8_t flags;
	int64_t expires_us, failed_us;	/* 0: never; 0: was not rolled back yet */
	uint32_t weight;		/* of a non-persistent message: what it counts */
};
struct origin {
	char queue[TMQNAMELEN + 1];
	uint8_t msgid[TMMSGIDLEN];	/* as it was there; all zero: not known */
	struct wire_why why;		/* of the last failure */
	uint32_t retries;
	int64_t first_us, last_us;
}; /* queue "": none */
struct qrecord {		/* a message in the messages table; body points into the record */
	uint64_t seq;
	uint32_t queue;
	struct qmsg m;
	struct origin origin;
	uint64_t parts;		/* not 0: its body lies in parts, under this number */
};
void qrecord_encode(struct wr *w, const struct qrecord *r);
int qrecord_decode(const uint8_t *p, size_t n, struct qrecord *r);	/* -1 unless exactly one record */
int qrecord_decode_head(
    const uint8_t *p, size_t n, struct qrecord *r); /* the body may be cut off; then m.body is NULL */
#define OVAL_MAX 64
size_t oval_encode(uint8_t to[OVAL_MAX], const struct oval *v);
int oval_decode(const uint8_t *p, size_t n, struct oval *v);
int64_t pages_of(int64_t bytes);

/* --- qindex.c: the window of next keys of a queue; messages that branches hold --- */

struct went { struct oval v; uint8_t n; uint8_t key[]; };
struct window {
	struct went **e; size_t head, n, cap;	/* sorted; e[head .. head+n) */
	size_t max;
	bool whole;				/* holds every not-held key of the queue */
	struct okey hi;				/* else: every one up to here */
};
struct queue;
struct held {
	uint64_t seq;
	struct queue *q;
	struct branch *b;
	struct okey key;
	struct oval v;
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	bool hides;		/* a message of a branch that is being committed: it is there, and not to be seen yet */
	bool unlisted;		/* its branch is over, and somebody else holds the message */
	UT_hash_handle hh;
};
/* corrid NULL: the message has none. */
void window_insert(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v,
    const uint8_t *corrid);			/* only when it belongs there */
void window_remove(struct queue *q, const struct okey *k, const uint8_t *corrid);
const struct went *window_min(struct qspace *qs, struct queue *q, int *rc);	/* refills; NULL: none, or *rc */
void window_drop(struct qspace *qs, struct queue *q);	/* forget; the next look reads the disk */
struct corrid_window;				/* the same for one correlation id of a queue */
struct corrid_window *corrid_window_find(struct qspace *qs, struct queue *q, const uint8_t *corrid);	/* or NULL */
struct corrid_window *corrid_window_new(struct qspace *qs, struct queue *q, const uint8_t *corrid); /* no memory: NULL */
const struct went *corrid_window_min(struct qspace *qs, struct corrid_window *c, int *rc);
bool is_held(const struct qspace *qs, uint64_t seq);
const struct held *held_find(const struct qspace *qs, uint64_t seq);	/* or NULL */
void held_add(struct qspace *qs, struct held *h);
void hold_release(struct qspace *qs, struct held *h);	/* frees it */

/* --- env.c: Berkeley DB --- */

enum table { T_ORDER, T_DELAYED, T_EXPIRY, T_CORRID, T_ALIAS, T_PARTS, N_MESSAGE_TABLES,
	T_QUEUES = N_MESSAGE_TABLES, T_SPACE, T_BRANCHES, T_OPERATIONS, T_DECISIONS, N_TABLES,
	T_MESSAGES };		/* segment.c has it; a name for log lines */
struct keeper;
struct segment;
struct log_end;
struct lsn { uint32_t file, offset; };	/* a place in the log */
struct segments { struct segment *all, *current, *open; unsigned n_open; uint32_t next_no; bool full; int64_t looked_us; };
struct room {			/* what the next messages need is there: */
	const struct segment *segment;
	int messages;
	int64_t bytes;
	int64_t reserved[N_TABLES];	/* bytes of each file whose blocks are allocated */
	unsigned given_up;		/* and hold no longer when this has changed */
};
struct env {
	DB_ENV *e;
	DB_ENV *np_e;		/* of non-persistent messages, in memory only; lives on when e is recovered. NULL: no memory for them */
	DB *db[2][N_TABLES];
	struct segments seg[2];	/* the messages table */
	struct keeper *keeper;	/* spare log files and checkpoints */
	struct room room;
	_Atomic int64_t said_from_us;	/* log lines of this second */
	atomic_int said;
	atomic_bool panicked;	/* Berkeley DB wants recovery */
	int64_t np_memory;	/* bytes of such messages that it was opened for */
	struct lsn flushed, marked;	/* the mark of the last batch that was flushed; of this one */
	int64_t try_again_us;	/* when recovery failed */
	atomic_bool np_broken;	/* it is np_e that does */
	char trouble[512];	/* while it is opened: what was wrong first; "": nothing */
};
int env_open(struct qspace *qs, bool create, struct log_end *end);	/* end: of the log, may be NULL */
void env_close(struct qspace *qs, bool checkpoint);	/* the tables on disk */
void env_np_close(struct qspace *qs);
void env_np_failed(struct qspace *qs, int dbrc);	/* memory cannot be relied on: logs; they are made anew, empty */
int env_error(struct qspace *qs, enum table t, const char *what, int dbrc);	/* logs; the QME code */
int env_error_at(struct qspace *qs, const char *file, const char *what, int dbrc);
void env_trouble(struct qspace *qs, const char *text);	/* for who asked to open the space */
int env_db_open(struct qspace *qs, const char *name, DBTYPE type, bool np, bool create, DB **out);
int env_db_close(DB *db, uint32_t flags);	/* of env_db_open() */
void env_in_heap(bool is);	/* what this thread reads now are pages of a heap: one that belongs elsewhere is an error */
const char *table_name(enum table t);
void env_file_name(char *to, size_t size, enum table t);
/* In the batch's transaction, which the first write begins.  get and del may answer DB_NOTFOUND. */
int table_put(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, const void *v, size_t vn);
int table_get(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, void *v, size_t cap, size_t *vn);
int table_get_alloc(struct qspace *qs, enum table t, bool np, const void *k, size_t kn, uint8_t **v, size_t *vn);
int table_del(struct qspace *qs, enum table t, bool np, const void *k, size_t kn);
/* Walk a btree upward from `from`, itself included.  The entry's bytes are valid until the next step. */
struct walk { DBC *c; enum table t; const uint8_t *k, *v; size_t kn, vn; DBT many; void *at; };
int walk_first(struct qspace *qs, struct walk *w, enum table t, bool np, const void *from, size_t n);
int walk_next(struct qspace *qs, struct walk *w);
int walk_before(struct qspace *qs, struct walk *w, enum table t, bool np, const void *than, size_t n); /* the one before it */
/* After walk_first(): walk_next() reads as many entries at once as the buffer takes (a multiple of 1024, a page at least,
 * aligned for an uint32_t).  For who changes nothing until walk_end(). */
void walk_ahead(struct walk *w, void *buf, size_t size);
void walk_end(struct qspace *qs, struct walk *w);
/* Tests: not NULL, called before each write (n bytes), flush (n 0), and where a file is made or renamed (fd -1).  An errno
 * makes it fail, FAULT_SHORT writes half. */
enum { FAULT_SHORT = -1 };
extern int (*_Atomic env_fault)(int fd, size_t n);

/* --- flush.c --- */

int fault_at(int fd, size_t n);		/* what env_fault says, 0 without one */
int flush_checked(int fd);		/* Berkeley DB's fsync(): 0, or an errno; what failed once fails until */
void flush_write_failed(int fd);
int flush_settle(struct qspace *qs);	/* it is written again.  0 or QMEOS */

/* --- log_end.c --- */

struct log_end {
	bool sound;		/* false: damaged there, records are missing */
	bool torn;		/* a write that was cut off stood there, and was cleared */
	struct lsn end;
	struct lsn mark;	/* the last batch that is in the log; 0: none */
	bool committed;		/* that one's commit is there */
	struct lsn needs;	/* where the last checkpoint in it says that recovery begins; 0: it has none */
};
int log_find_end(struct qspace *qs, uint32_t first, uint32_t last, struct log_end *out);	/* 0, or an errno: reading out->end.file */
/* While this thread opens the space that log_find_end() was called for: a write of zeroes where there are some is passed over,
 * true. */
bool log_zeroes_pass(int fd, const uint8_t *p, size_t n);
void log_zeroes_forget(void);
int log_mark(struct qspace *qs);	/* in the batch, before its commit */
int log_dispatch(DB_ENV *e, DBT *rec, DB_LSN *lsn, db_recops op);

/* --- log_last.c --- */

struct log_last { uint32_t no, bytes; };
bool log_last_read(const char *dir, struct log_last *l);	/* false: not known */
void log_last_write(const char *dir, struct log_last l);	/* that file is durably there.  What fails is as if it were not known */

/* --- log_check.c --- */

int log_check_begin(struct qspace *qs, struct log_end *end);	/* before recovery; 0, or QMESYSTEM, QMEOS: said why */
int log_check_end(struct qspace *qs);	/* after it */
void recovery_tell(struct qspace *qs, const char *trouble);	/* it failed, trouble: what Berkeley DB said first; whose fault was it? */

/* --- segment.c: the messages table, in files of one heap region each --- */

extern unsigned segments_open_max;	/* files open at a time; tests lower it */
int segments_load(struct qspace *qs);
void segments_close(struct qspace *qs, bool np, uint32_t flags);
int segments_begin(struct qspace *qs);	/* at the beginning of a batch */
int segments_write(struct qspace *qs);	/* with the batch: what lives where */
void segments_abort(struct qspace *qs);
/* bytes: of the body, the same when it is added and when it is deleted.  get and del may answer DB_NOTFOUND. */
int heap_add(struct qspace *qs, bool np, const void *rec, size_t n, uint32_t bytes, struct rid *rid);
int heap_get(struct qspace *qs, bool np, struct rid rid, void *to, size_t cap, size_t *n); /* at most cap bytes of it */
int heap_del(struct qspace *qs, bool np, struct rid rid, uint32_t bytes);
struct segment *segment_next(struct segment *s);	/* of all; for counting */
int64_t segment_records(const struct segment *s);
int segment_room(struct qspace *qs, int64_t ahead);	/* blocks for so many bytes more: 0, or an errno */

/* --- room.c: the disk's blocks are taken before a message is accepted --- */

/* For a message of so many bytes, and the `ops` operations its branch has. 0 or QMENOSPACE; the batch lives. */
int room_take(struct qspace *qs, size_t bytes, size_t ops);
/* Blocks up to `ahead` bytes behind the last page of an open file, and `chunk` more when it has to be taken anyway and
 * the disk has plenty.  0, or an errno. */
int room_behind(const struct qspace *qs, const char *file, DB *db, int64_t ahead, int64_t chunk, db_pgno_t *last,
    int64_t *reserved);
int64_t room_chunk(const struct qspace *qs);	/* for a segment */
int room_truncate(int fd, off_t size);	/* in place of ftruncate(2): what is allocated behind stays so */
int64_t disk_free(const char *dir);	/* bytes; -1: cannot be known */

/* --- checksum.c --- */

uint32_t checksum_of(const uint8_t *p, size_t n);
uint32_t __ham_func4(DB *db, const void *key, uint32_t len);	/* Berkeley DB's own name for it */

/* --- spare.c: zero-filled log files, made ahead of time; checkpoints --- */

struct keeper *keeper_start(const char *dir, size_t log_bytes, atomic_bool *alarm);	/* alarm: a flush failed */
void keeper_flush_failed(const char *path);	/* of a file of the space */
void keeper_log_failed(const char *path);	/* a write or flush of this log file */
unsigned keeper_log_failures(const struct keeper *k);	/* how many did */
int keeper_checkpoints(struct keeper *k, DB_ENV *e, const char *space);	/* from now on, while e is open */
void keeper_checkpoints_end(struct keeper *k);
uint64_t keeper_checkpoint_count(struct keeper *k);
void keeper_let_catch_up(struct keeper *k);	/* the writer, between batches: a short wait when it is far ahead */
void keeper_stop(struct keeper *k);
bool keeper_is_without(const struct keeper *k);	/* no spare, and no room to make one */
bool keeper_has_room(struct keeper *k);		/* for the next log file: may messages come?  It may wait a moment */
void keeper_ask_checkpoint(struct keeper *k);	/* soon; at most one a second */
void spare_hook(void);	/* Berkeley DB opens files through us, which finds the spares */
int spare_make(const char *dir, int number, size_t bytes, const atomic_bool *stop);	/* 0, or -1 with errno */

/* --- queue.c --- */

struct hidden { int64_t messages, bytes, pages, np_messages, np_bytes; };	/* of branches that are being committed */
struct counters {
	int64_t messages, bytes, pages, np_messages, np_bytes;	/* committed */
	int64_t held, delayed, np_delayed,
	    pending; /* delayed: np_delayed among them; pending: enqueued by branches that have not ended */
	struct hidden hidden;					/* of those above */
	int64_t next_due;
	uint8_t armed, np_armed;				/* enum threshold_state */
};
struct queue {
	uint32_t id;
	struct queue_params p;
	struct counters n;
	struct due due;			/* at n.next_due */
	struct window w;
	struct corrid_window *corrids;	/* NULL: none, the usual case */
	uint64_t batch;			/* the batch that saved these: */
	struct counters saved;
	struct queue_params *saved_p;	/* NULL: not changed in the batch */
	bool created, dying;
	bool armed_unwritten;		/* the command was run, and the disk still says that it is due */
	uint8_t look_later;		/* at its thresholds, when the branch has ended: bits */
	struct queue *look_next, *touched_next, *prev, *next;
	UT_hash_handle hh, hh_id;
};
struct queue *queue_find(struct qspace *qs, const char *name);
struct queue *queue_by_id(struct qspace *qs, uint32_t id);
void queue_touch(struct qspace *qs, struct queue *q);	/* before its counters change */
void queue_count(struct qspace *qs, struct queue *q, const struct oval *v, int by);	/* a message more or less */
int queue_write_counters(struct qspace *qs, struct queue *q);
int queue_load_all(struct qspace *qs);
int queue_reload_all(struct qspace *qs);	/* counters anew from disk; non-persistent ones are gone */
int queue_find_due(struct qspace *qs, struct queue *q);	/* sets n.next_due */
void queue_forget(struct qspace *qs, struct queue *q);
bool queue_is_lifo(const struct queue *q);
void queue_due(struct qspace *qs, struct queue *q, int64_t us);	/* sets n.next_due */

/* --- store.c: one message into and out of the tables --- */

struct newmsg {
	struct okey key;
	struct oval v;
	int64_t available_us;
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	const uint8_t *rec;
	size_t rec_len;
	uint64_t parts;		/* as in struct qrecord */
	bool stored;		/* its record is written, at v.rid, and nothing leads to it yet */
};
struct place { bool delayed; int64_t available_us; };	/* where a stored message is: order, or delayed until then */
struct taken { struct okey key; struct oval v; uint32_t queue; size_t rec_len; uint8_t rec[]; };	/* behind a struct qmsg */
uint32_t store_weight(const struct oval *v);	/* of its record: a body in parts is counted with them */
int store_put(struct qspace *qs, struct queue *q, struct newmsg *m, int64_t now);
int store_remove(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const struct place *at,
    const uint8_t *corrid);	/* corrid NULL: read from the record when needed */
/* A body in parts is not read: m->body is NULL then, and *parts its number (else 0). */
int store_read(struct qspace *qs, struct queue *q, const struct oval *v, struct qmsg **out, uint64_t *parts);
void store_taken(struct qmsg *m, const struct queue *q, const struct okey *k, const struct oval *v);	/* qspace_put_back() may need it */
int store_delay(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const uint8_t *corrid,
    int64_t until);
int store_retry(struct qspace *qs, const struct okey *k, const struct oval *v);	/* new value at the same place */
int store_promote(struct qspace *qs, struct queue *q, int64_t now, int max);	/* how many were moved, or a QME code */
int store_to_error_queue(struct qspace *qs, struct held *h, const struct oval *v, const struct wire_why *why,
    int64_t now);
int64_t np_limit(const struct qspace *qs);	/* bytes that non-persistent messages may take now */
void used_add(struct qspace *qs, const struct oval *v, int by);
/* 0 or QMENOSPACE.  own: what is reserved for this one (NULL: nothing). */
int space_room(struct qspace *qs, const struct oval *v, const struct spool *own);
int store_promote_one(
    struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, int64_t available_us);
#define DELAYED_KEY 20
void delayed_key(uint8_t to[DELAYED_KEY], uint32_t queue, int64_t us, uint64_t seq);
int delayed_decode(const struct walk *w, int64_t *us, struct okey *k, struct oval *v);
int alias_get(struct qspace *qs, bool np, uint64_t seq, struct okey *k, struct place *at);	/* or DB_NOTFOUND */
int expiry_decode(const struct walk *w, int64_t *us, uint64_t *seq, struct okey *k, struct place *at);

/* --- keep.c: non-persistent messages over a close in good order --- */

void keep_save(struct qspace *qs);	/* at the close; what cannot be kept is said */
int keep_load(struct qspace *qs);	/* at the open, once the queues and branches are there */
bool keep_is_there(const struct qspace *qs);	/* by its file alone */
void keep_changed(struct qspace *qs);	/* what is in memory is no longer what the file has */

/* --- parts.c: bodies in pieces --- */

#define PART_BYTES (64 << 10)
#define WHOLE_MAX (256 << 10)	/* larger ones are stored in parts */
struct used { int64_t messages, pages, np_bytes, branch_bytes, heuristics; };
struct parts {
	struct pin *pins;		/* bodies that somebody is at: they are not freed */
	struct spool *spools;
	struct fetch *fetches;
	struct used reserved;		/* for the messages of spools */
	bool to_free;			/* perhaps there is something */
};
int parts_own(struct qspace *qs, bool np, uint64_t body);	/* a message has it now; in the batch */
int parts_disown(struct qspace *qs, bool np, uint64_t body);	/* nobody has: it will be freed; in the batch */
int parts_pin(struct qspace *qs, uint64_t body);	/* 0 or QMENOSPACE */
void parts_unpin(struct qspace *qs, uint64_t body);
int parts_tick_some(struct qspace *qs, int at_most);	/* slices */
int parts_tick(struct qspace *qs);	/* free some; 1: there may be more, 0, or a QME code */
int spool_new(struct qspace *qs, const struct oval *v, bool inner, struct spool **out);	/* inner: ends with the batch */
uint64_t spool_body(const struct spool *sp);	/* 0: it is not complete, or not there any more */
bool spool_is_np(const struct spool *sp);
void spool_use(struct spool *sp);	/* a message of the batch has its body */
int fetch_new(struct qspace *qs, struct queue *q, const struct okey *k, const struct oval *v, const struct qmsg *head,
    uint64_t body, bool hold, struct fetch **out);
void parts_after_commit(struct qspace *qs);
void parts_let_go(struct qspace *qs);		/* an abort, before the queues go back, */
void parts_after_abort(struct qspace *qs);	/* and after */
int parts_reload(struct qspace *qs, bool np_gone);	/* what is there of those that are under way */
/* A record of a message whose body is in parts, with the body in it.  Not in a batch. */
int parts_gather(struct qspace *qs, const uint8_t *rec, size_t n, struct wr *out);
void parts_forget_all(struct qspace *qs);	/* memory only */

/* --- enqueue.c --- */

/* Everything of a message but where its record lies: checked, numbered, encoded into qs->rec. */
int message_make(struct qspace *qs, struct branch *b, struct queue *q, const struct qmsg_in *in, int64_t now,
    struct newmsg *out);
/* The message that an identifier names, held or delayed ones too.  DB_NOTFOUND: none on this queue. */
int message_locate(struct qspace *qs, struct queue *q, const struct msgid_parts *id, struct okey *k, struct oval *v,
    struct place *at);

/* --- branch*.c --- */

enum op_kind { OP_ENQUEUE = 1, OP_DEQUEUE = 2 };
enum fate { FATE_HELD, FATE_BACK, FATE_GONE };	/* of a dequeued message, once its branch has ended */
struct op {
	enum op_kind kind;
	struct queue *q;
	struct newmsg *m;	/* enqueue: with the record behind it */
	struct held *h;		/* dequeue */
	bool pinned;		/* enqueue: its body in parts is kept from being freed by us */
	enum fate fate;
	uint32_t chunk;		/* of a large branch: where it is on disk */
	struct oval after;	/* FATE_BACK */
};
struct hidden_sum { struct queue *q; struct hidden n; };
struct branch {
	struct branch_id id;
	struct qspace *qs;
	enum branch_state state;
	bool doomed, closed;
	char coordinator[WIRE_GROUP], owner[64];
	int64_t began_us, deadline_us;	/* wall clock, to be shown */
	int64_t until_us;		/* the deadline, clock_mono_us(); NEVER */
	struct due due;			/* at until_us, while it is active */
	struct op *op; size_t n, cap;
	size_t bytes;		/* of memory */
	size_t cost;		/* what counts against the limit of its list */
	bool recorded, owned;	/* it has a record in `branches`; which owns the bodies in parts of its messages to come */
	bool by_hand;		/* an administrator ends it */
	bool uncounted;		/* it is rolled back, and counts no retry */
	/* A large one (branch_chunk.c, branch_step.c): */
	uint64_t number;	/* not 0: its first n_stored operations are in so many chunks under this number */
	uint32_t chunks, applied;	/* applied: chunks that are carried out */
	size_t n_stored, unsaved, done;	/* unsaved: bytes of the records behind n_stored; done: operations carried out */
	struct hidden_sum *hidden; size_t n_hidden;
	struct wire_why why;
	bool listed, releasing, over;
	struct branch *end_prev, *end_next;
	uint64_t batch;		/* the batch that saved these: */
	struct {
		size_t n, bytes, cost, n_stored, unsaved, done;
		enum branch_state state;
		char coordinator[WIRE_GROUP];
		bool recorded, owned, by_hand, uncounted;
		uint64_t number;
		uint32_t chunks, applied;
	} saved;
	bool begun, ended;	/* in this batch */
	bool emptied;		/* in this batch: its operations were carried out, and its record stays */
	struct branch *touched_next;
	UT_hash_handle hh;
};
extern int64_t branch_bytes_max;		/* tests lower it */
int branch_check(const struct branch *b);	/* 0, QMEABORTED or QMEPROTO */
/* The message of this identifier that the branch itself has enqueued on q, or NULL. */
const struct newmsg *branch_enqueued(const struct branch *b, const struct queue *q, const uint8_t msgid[TMMSGIDLEN]);
int branch_add_enqueue(struct qspace *qs, struct branch *b, struct queue *q, const struct newmsg *m);
int branch_add_dequeue(struct qspace *qs, struct branch *b, struct queue *q, const struct okey *k, const struct oval *v,
    const struct qmsg *m);
void branch_touch(struct qspace *qs, struct branch *b);
void branch_after_commit(struct qspace *qs, struct branch *b);
void branch_after_abort(struct qspace *qs, struct branch *b);
int branch_load_all(struct qspace *qs);
int branch_reload_all(struct qspace *qs, bool np_gone);	/* what is on disk decides about those in doubt */
void branch_forget_all(struct qspace *qs);	/* memory only */
/* For keep.c: operations of prepared branches on non-persistent messages, each as bytes. */
bool branch_has_memory_ops(const struct qspace *qs);
int branch_each_memory_op(struct qspace *qs, int (*fn)(void *arg, const uint8_t *p, size_t n), void *arg);	/* 0, or an errno */
int branch_restore_memory_op(struct qspace *qs, const uint8_t *p, size_t n);
int branch_expire(struct qspace *qs, int64_t mono, int max);	/* rolled back, or a QME code */
int branches_step(struct qspace *qs, int64_t mono);	/* one chunk of a large one that ends: 1, 0 nothing to do, or a QME code */
bool branches_hide_memory(const struct qspace *qs);	/* of one that is being committed, non-persistent messages are there, and hidden */
void branches_release(struct qspace *qs);	/* some holds of those that are over; after a commit */
int chunks_sweep(struct qspace *qs);		/* one that is nobody's: 1, 0 there is none, or a QME code */

/* --- batch.c --- */

struct event { struct queue *q; bool has_corrid; uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN]; };
struct batch {
	bool open;
	int rc;			/* not 0: dead */
	uint64_t no;
	DB_TXN *txn[2];		/* of the tables on disk, and of those in memory */
	bool durable;		/* it was flushed */
	bool space_dirty;
	struct used used;	/* as it was; likewise: */
	uint64_t seq_limit; uint32_t next_queue;
	uint8_t expired_to[2][16];
	struct queue *queues; struct branch *branches; struct segment *segments;	/* touched */
	struct spool *spools; struct fetch *fetches;
	uint64_t enqueues, dequeues;
	bool in_branch;		/* a branch ends: its operations are one change */
	struct queue *look_later;
	size_t n_fired;		/* as it was */
	int steps;		/* messages that may still be moved out of the way of its dequeues */
};
int batch_write(struct qspace *qs, bool np);	/* before each write: a transaction is there */
void batch_event(struct qspace *qs, struct queue *q, const uint8_t *msgid, const uint8_t *corrid);

/* --- threshold.c --- */

enum threshold_state { TH_OFF, TH_ARMED, TH_DUE };	/* on disk: do not renumber */
void threshold_look(struct qspace *qs, struct queue *q, bool np);	/* its use has changed, and it has a command */
void threshold_branch(struct qspace *qs, bool inside);	/* what is between true and false counts as one change */
void threshold_changed(struct qspace *qs, struct queue *q, const struct queue_params *was);
void threshold_run(struct qspace *qs);		/* after the commit */
int64_t threshold_next(const struct qspace *qs, int64_t now, int64_t next);	/* a batch is wanted by then */
void threshold_touch_unwritten(struct qspace *qs);
void threshold_written(struct qspace *qs, struct queue *q);
void threshold_forget(struct qspace *qs);	/* what the batch noted */
void threshold_drop(struct qspace *qs, struct queue *q);	/* it goes */
void threshold_find_due(struct qspace *qs);	/* what an earlier run left undone */

/* --- tick.c --- */

void tick_at(struct qspace *qs, int64_t us);	/* something will be due then */
int tick_find_expiry(struct qspace *qs);

/* --- qspace.c --- */

struct fired { struct queue *q; bool np; };
enum full { FULL_MESSAGES, FULL_PAGES, FULL_NP, FULL_TRANS, FULL_DISK, FULL_LIST, N_FULL };
struct qspace {
	struct qspace_params params;
	char device[4096], dir[4096];
	char uuid[37], device_uuid[37];
	uint8_t id4[4];
	size_t log_bytes;
	int lock_fd, disk_version;	/* disk_version: as it was found */
	struct env env;
	struct queue *queues, *by_name, *by_id;
	struct branch *branches;
	struct branch *ending, *releasing;	/* large ones: being carried out; over, with holds to be freed */
	int64_t step_after_us;			/* clock_mono_us(); a step failed */
	bool sweep;				/* chunks may be left of branches that are no more */
	struct held *held;
	struct corrid_window *corrid_windows; size_t n_corrid_windows;
	uint64_t next_seq, seq_limit;
	uint32_t next_queue;
	int64_t stored_us;		/* the time of use that is on disk */
	struct used used;		/* what is stored and what branches have reserved */
	int64_t next_event, next_expiry;	/* wall clock, without the deadlines of branches */
	struct due_heap due_queues, due_branches;
	int64_t looked_us, ahead_us;	/* the last tick: wall clock, and how far ahead of clock_mono_us() that was */
	uint8_t expired_to[2][16];	/* expiry entries up to here are done with, or held */
	struct parts parts;
	struct batch batch;
	struct event *events; size_t n_events, cap_events;
	struct fired *fired; size_t n_fired, cap_fired;	/* commands to run */
	int n_unwritten;		/* queues with armed_unwritten */
	struct wr rec;			/* the record that is being made */
	int64_t full_said_us[N_FULL];
	uint64_t kept_token;		/* of the file that holds what is in memory; 0: there is none */
	bool keeping;			/* it is being read */
	bool loaded;
	bool undecided;			/* a batch whose outcome was not known: the disk will tell */
	void (*eligible)(void *, const char *, const uint8_t *, const uint8_t *); void *eligible_arg;
	bool (*threshold)(void *, const char *, const char *); void *threshold_arg;
	struct qspace_counts counts;
};

static inline int	/* The batch will not commit, and rc says why.  Here, so that analysers see that it is never 0. */
batch_dead(struct qspace *qs, int rc)
{
	assert(rc != 0);
	if (qs->batch.open && qs->batch.rc == 0)
		qs->batch.rc = rc;
	return rc;
}

uint64_t space_next_seq(struct qspace *qs);
int space_write(struct qspace *qs);	/* its record, in the batch */
int space_reopen(struct qspace *qs);	/* after Berkeley DB asked for recovery; memory is read again */
int space_recover(struct qspace *qs, struct log_end *end);	/* the tables on disk alone; memory is right, or put right after */
void space_say_full(struct qspace *qs, enum full what);	/* one line a minute for each */
int space_file_write(const struct qspace *qs, char **why);	/* space_file.c: identity and params */
int space_file_read(struct qspace *qs, char **why);
int owner_lock(const char *dir, int *fd);	/* 0, QSPACE_OWNED, QMEOS */
bool owner_is_alive(const char *dir);
int owner_write(const struct qspace *qs, const char *endpoint, char **why);
int owner_read(const char *dir, char *endpoint, size_t size, long *pid);	/* -1: nothing readable */
void dir_sync(const char *dir);
char *why_set(char **why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
