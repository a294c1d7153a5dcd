/*
 * qadmin_impl - what the files behind qadmin_run() know of each other.
 */
#ifndef QADMIN_IMPL_H
#define QADMIN_IMPL_H

#include "qparse.h"
#include "qspace_impl.h"

#define QADMIN_PAGE 500		/* messages, or queues, of one answer */
#define QADMIN_LOOK 2000	/* messages looked at for one answer: the owner has others to serve */

/* --- qadmin_scan.c --- */

/* Where a scan stopped: behind this key of the order table, or of the delayed table. */
struct scan_pos { bool started, delayed; struct okey key; };
void scan_pos_format(const struct scan_pos *p, char *out, size_t size);
int scan_pos_parse(const char *s, struct scan_pos *p);	/* 0 or -1 */

struct scanned_msg {
	const struct okey *key;
	const struct oval *v;
	struct place at;
	bool held;
	const struct branch_id *holder;	/* held: by this transaction; NULL: by none, it is on its way */
	const struct qmsg *m;		/* without its body; body_len is right */
	const struct origin *origin;	/* queue "": it did not come from another one */
};
enum { SCAN_END = 0, SCAN_STOPPED = 1 };
/*
 * The messages of a queue behind *pos: first those in their order, persistent and non-persistent together, then those
 * not available yet, by time.  fn answers 0 to go on; anything else stops behind this message.  fn must not change
 * the tables.  In a batch.  SCAN_END, SCAN_STOPPED, or a QME code.
 */
int qadmin_scan(struct qspace *qs, struct queue *q, struct scan_pos *pos,
    int (*fn)(void *arg, const struct scanned_msg *s), void *arg);

/* --- qadmin_*.c: one function for each operation --- */

struct qadmin {
	struct qspace *qs;
	const struct record *args;
	struct document *out;
	char **text;
};
int qadmin_error(struct qadmin *a, const char *what, int qme);	/* a QME code as a sentence; 1 */
int qadmin_no_memory(struct qadmin *a);
/* An argument that must be there; NULL: said so in *text. */
const char *qadmin_arg(struct qadmin *a, const char *key);
/* Commit what `rc` says went well, else put everything back.  A QME code. */
int qadmin_finish(struct qspace *qs, int rc);

int qadmin_qopen(struct qadmin *a);
int qadmin_qspacelist(struct qadmin *a);
int qadmin_qaddext(struct qadmin *a);
int qadmin_qspacechange(struct qadmin *a);

int qadmin_qcreate(struct qadmin *a);
int qadmin_qchange(struct qadmin *a);
int qadmin_qdestroy(struct qadmin *a);
int qadmin_qinfo(struct qadmin *a);
int qadmin_qset(struct qadmin *a);

int qadmin_qlist(struct qadmin *a);
int qadmin_qdeletemsg(struct qadmin *a);
int qadmin_ipcrm(struct qadmin *a);
/* Delete up to QADMIN_PAGE messages of a queue.  *more: there may be others. */
int qadmin_purge_some(struct qspace *qs, struct queue *q, bool np_only, long *deleted, bool *more);

int qadmin_qprinttrans(struct qadmin *a);
int qadmin_qcommittrans(struct qadmin *a);
int qadmin_qaborttrans(struct qadmin *a);
int qadmin_qforgettrans(struct qadmin *a);

#endif
