/*
 * given_xa - the queue spaces of a story as resource managers, and a transaction manager's few words about them.
 *
 * Queue space n is the resource manager with rmid n.
 */
#ifndef GIVEN_XA_H
#define GIVEN_XA_H

#include "given.h"
#include "xa.h"

XID xa_id(const char *gtrid, const char *bqual);
bool xid_same(const XID *a, const XID *b);
char *xa_hex(const XID *x);			/* as qmadmin writes the id; malloc'ed */
const char *xa_info(const char *dir, int space);	/* its open string; valid until the next call of the thread */

int xa_open(const char *info, int rmid, long flags);
int xa_close(int rmid, long flags);
int xa_start(const XID *x, int rmid, long flags);
int xa_end(const XID *x, int rmid, long flags);
int xa_prepare(const XID *x, int rmid, long flags);
int xa_commit(const XID *x, int rmid, long flags);
int xa_rollback(const XID *x, int rmid, long flags);
int xa_forget(const XID *x, int rmid, long flags);
int xa_recover(XID *x, long n, int rmid, long flags);

/* Does this happen within some seconds?  For what follows a crash. */
bool xa_comes(int (*call)(const XID *, int, long), const XID *x, int rmid, long flags, int wanted);
/* How many branches are in doubt there, as xa_recover() says; x of them in xids (NULL: not wanted).  -1: it fails. */
int xa_in_doubt(int rmid, XID *xids, int max);

/* A message: 0, a tperrno, or the QME code, which is negative. */
int xa_put(int space, const char *queue, const char *text);
int xa_take(int space, const char *queue, char text[64]);

/* A program of the story's own file, run with these words as its arguments behind "driver"; it says one line when it is there. */
struct xa_driver { pid_t pid; int out; };
struct xa_driver xa_driver_start(const char *what, const char *arg);
bool xa_driver_said(struct xa_driver *d, const char *line);	/* waits for its next line */
void xa_driver_kill(struct xa_driver *d);
int xa_driver_ends(struct xa_driver *d);			/* its exit status */
void xa_driver_says(const char *line);				/* in the driver */

#endif
