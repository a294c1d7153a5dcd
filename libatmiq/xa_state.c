/*
 * xa_state - what this process knows of its work for another transaction manager: open queue spaces, and which thread works in
 * which branch.
 *
 *                  xa_start                xa_end(TMSUSPEND)
 *    not associated -------> associated ----------------------> suspended      of one thread and one branch
 *         ^                   |     ^                              |
 *         '-- xa_end ---------'     '------- xa_start(TMRESUME) ---+---- xa_end ----> not associated
 *
 * The queue manager knows nothing of associations; it knows the branch.  One lock guards the lists, for moments only.
 */
#include <stdlib.h>
#include <string.h>

#include "xa_impl.h"
#include "ulog.h"

struct xa_opener { struct xa_opener *next; uint64_t thread; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xa_rm *rms;
static struct xa_assoc *assocs;
static uint64_t last_thread;
static unsigned generation;		/* counts forks */

static __thread uint64_t me;
static __thread unsigned me_generation;
static __thread unsigned active;	/* how many branches this thread works in: a quick no for those that never do */
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- threads ---- */

static void	/* It ended inside a branch.  Nobody can end its association any more; the branch is not to be committed. */
thread_ended(void *value)
{
	struct xa_assoc *a;

	(void)value;
	if (me_generation != generation)
		return;
	pthread_mutex_lock(&lock);
	for (a = assocs; a != NULL; a = a->next)
		if (a->thread == me) {
			a->thread = 0;
			ulog("LIBTUX_CAT:5186: WARN: XA: a thread ended without xa_end(): its branch in group %s will be rolled back",
			    a->rm->group);
		}
	pthread_mutex_unlock(&lock);
	me = 0;
}

static void
start(void)
{
	pthread_key_create(&thread_end, thread_ended);
}

uint64_t
xa_thread(void)
{
	if (me == 0 || me_generation != generation) {
		pthread_once(&once, start);
		pthread_mutex_lock(&lock);
		me = ++last_thread;
		pthread_mutex_unlock(&lock);
		me_generation = generation;
		active = 0;
		pthread_setspecific(thread_end, &me);
	}
	return me;
}

/* The child has opened nothing: what is here is the parent's. */
void
xa_fork_child(void)
{
	static struct { struct xa_rm *rms; struct xa_assoc *assocs; void *older; } *forgotten;	/* what leak checkers are to find */
	void *older = forgotten;

	pthread_mutex_init(&lock, NULL);
	if ((rms != NULL || assocs != NULL) && (forgotten = malloc(sizeof *forgotten)) != NULL) {
		forgotten->rms = rms;
		forgotten->assocs = assocs;
		forgotten->older = older;
	}
	rms = NULL;
	assocs = NULL;
	generation++;
	xa_ask_fork_child();
	xa_scan_fork_child();
}

/* ---- open queue spaces ---- */

static struct xa_rm *
rm_of(int rmid)
{
	struct xa_rm *rm;

	for (rm = rms; rm != NULL && rm->rmid != rmid; rm = rm->next)
		;
	return rm;
}

struct xa_rm *
xa_rm_find(int rmid)
{
	struct xa_rm *rm;

	pthread_mutex_lock(&lock);
	if ((rm = rm_of(rmid)) != NULL)
		rm->refs++;
	pthread_mutex_unlock(&lock);
	return rm;
}

void
xa_rm_free(struct xa_rm *rm)
{
	struct xa_opener *o;
	struct line *l;

	if (rm == NULL)
		return;
	while ((o = rm->openers) != NULL) {
		rm->openers = o->next;
		free(o);
	}
	while ((l = rm->idle) != NULL) {
		rm->idle = l->next;
		conn_close(&l->conn);
		free(l);
	}
	if (rm->app != NULL)
		app_put(rm->app);
	free(rm);
}

void
xa_rm_put(struct xa_rm *rm)
{
	bool last;

	if (rm == NULL)
		return;
	pthread_mutex_lock(&lock);
	last = --rm->refs == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		xa_rm_free(rm);
}

static struct xa_opener **
opener_of(struct xa_rm *rm, uint64_t thread)
{
	struct xa_opener **at;

	for (at = &rm->openers; *at != NULL && (*at)->thread != thread; at = &(*at)->next)
		;
	return at;
}

int
xa_rm_open(struct xa_rm *fresh)
{
	struct xa_opener *o = calloc(1, sizeof *o);
	uint64_t thread = xa_thread();
	struct xa_rm *rm;
	int rc = XA_OK;

	pthread_mutex_lock(&lock);
	if (o == NULL)
		rc = XAER_RMERR;
	else if ((rm = rm_of(fresh->rmid)) == NULL) {
		rm = fresh;
		rm->refs = 1;			/* the list's */
		rm->next = rms;
		rms = rm;
		fresh = NULL;
	} else if (strcmp(rm->group, fresh->group) != 0 || rm->app != fresh->app)
		rc = XAER_INVAL;		/* this number has another queue space */
	if (rc == XA_OK && *opener_of(rm, thread) == NULL) {
		o->thread = thread;
		o->next = rm->openers;
		rm->openers = o;
		o = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(o);
	xa_rm_free(fresh);
	return rc;
}

static bool	/* Is a thread (0: any living one) associated with a branch of rm? */
tied_to_rm(const struct xa_rm *rm, uint64_t thread)
{
	const struct xa_assoc *a;

	for (a = assocs; a != NULL; a = a->next)
		if (a->rm == rm && (thread == 0 ? a->thread != 0 : a->thread == thread))
			return true;
	return false;
}

int
xa_rm_close(int rmid)
{
	struct xa_opener **at, *o = NULL;
	uint64_t thread = xa_thread();
	struct xa_rm *rm, **rat, *gone = NULL;
	int rc = XA_OK;

	pthread_mutex_lock(&lock);
	if ((rm = rm_of(rmid)) == NULL)
		goto out;
	at = opener_of(rm, thread);
	if (tied_to_rm(rm, thread) || (*at != NULL && rm->openers->next == NULL && tied_to_rm(rm, 0)))
		rc = XAER_PROTO;
	else if ((o = *at) != NULL) {
		*at = o->next;
		if (rm->openers == NULL) {
			for (rat = &rms; *rat != rm; rat = &(*rat)->next)
				;
			*rat = rm->next;
			gone = rm;
		}
	}
out:
	pthread_mutex_unlock(&lock);
	free(o);
	xa_rm_put(gone);
	return rc;
}

/* ---- associations ---- */

static bool
same(const struct xa_assoc *a, const struct xa_rm *rm, const struct wire_tx *tx)
{
	return a->rm == rm && a->tx.gtrid_len == tx->gtrid_len && memcmp(a->tx.gtrid, tx->gtrid, tx->gtrid_len) == 0;
}

enum xa_tie
xa_tied(const struct xa_rm *rm, const struct wire_tx *tx)
{
	enum xa_tie is = XA_NOT_TIED;
	const struct xa_assoc *a;

	pthread_mutex_lock(&lock);
	for (a = assocs; a != NULL && is != XA_TIED; a = a->next)
		if (same(a, rm, tx))
			is = a->thread != 0 ? XA_TIED : XA_TIED_TO_DEAD;
	pthread_mutex_unlock(&lock);
	return is;
}

void
xa_bury(const struct xa_rm *rm, const struct wire_tx *tx)
{
	struct xa_assoc **at, *a, *dead = NULL;

	pthread_mutex_lock(&lock);
	for (at = &assocs; (a = *at) != NULL;)
		if (a->thread == 0 && same(a, rm, tx)) {
			*at = a->next;
			a->next = dead;
			dead = a;
		} else
			at = &a->next;
	pthread_mutex_unlock(&lock);
	while ((a = dead) != NULL) {
		dead = a->next;
		xa_rm_put(a->rm);
		free(a);
	}
}

struct xa_assoc *
xa_mine(const struct xa_rm *rm, const struct wire_tx *tx)
{
	uint64_t thread = xa_thread();
	struct xa_assoc *a;

	pthread_mutex_lock(&lock);
	for (a = assocs; a != NULL; a = a->next)
		if (a->thread == thread && (tx != NULL ? same(a, rm, tx) : a->rm == rm && !a->suspended))
			break;
	pthread_mutex_unlock(&lock);
	return a;
}

int
xa_tie(struct xa_rm *rm, const struct wire_tx *tx)
{
	struct xa_assoc *a = calloc(1, sizeof *a);

	if (a == NULL)
		return XAER_RMERR;
	a->thread = xa_thread();
	a->rm = rm;
	a->tx = *tx;
	pthread_mutex_lock(&lock);
	rm->refs++;
	a->next = assocs;
	assocs = a;
	pthread_mutex_unlock(&lock);
	active++;
	return XA_OK;
}

void
xa_suspend(struct xa_assoc *a, bool yes)
{
	a->suspended = yes;
	if (yes)
		active--;
	else
		active++;
}

void
xa_untie(struct xa_assoc *a)
{
	struct xa_assoc **at;

	if (!a->suspended)
		active--;
	pthread_mutex_lock(&lock);
	for (at = &assocs; *at != a; at = &(*at)->next)
		;
	*at = a->next;
	pthread_mutex_unlock(&lock);
	xa_rm_put(a->rm);
	free(a);
}

/* ---- what the calls of atmi.h ask ---- */

bool
xa_working(void)
{
	return active > 0 && me_generation == generation;
}

static bool
serves(const struct service *s, const struct wire_groups *g)
{
	size_t i;
	int k;

	for (i = 0; i < s->n; i++)
		for (k = 0; k < g->n; k++)
			if (strcmp(s->target[i].group, g->name[k]) == 0)
				return true;
	return false;
}

struct xa_assoc *
xa_of_service(const struct service *s, struct wire_tx *tx, struct wire_groups *only)
{
	struct xa_assoc *a;

	pthread_mutex_lock(&lock);
	for (a = assocs; a != NULL && (a->thread != me || a->suspended || !serves(s, &a->rm->groups)); a = a->next)
		;
	pthread_mutex_unlock(&lock);
	if (a == NULL)
		return NULL;
	*tx = a->tx;
	*only = a->rm->groups;
	only->n = WIRE_MAX_GROUPS;		/* a full list: no other group will do */
	return a;
}

void
xa_doom(struct xa_assoc *a, int code)
{
	if (a->doomed == 0)
		a->doomed = code;
}

bool
xa_doomed(const struct xa_assoc *a)
{
	return a->doomed != 0;
}
