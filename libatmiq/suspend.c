/*
 * suspend - transactions that are taken off their context, and go on in it or in another.
 *
 *    in its slot of the table    what the initiator began: any process of the machine may resume it
 *    in the list of the process  what only this process may resume: of a caller, by AUTOTRAN, or where there is no table
 *
 * A TPTRANID, version 1, which tpconvert() makes text of:
 *    info[0..3]  the key: the gtrid, or for one that is too long a number of this process; zero padded
 *    info[4]     slot in the table + 1; 0: none
 *    info[5]     length of the key
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "clock.h"
#include "ulog.h"

#define BUCKETS 1024
#define KEY_MAX 32

struct key { uint8_t len, bytes[KEY_MAX]; };
struct suspended {
	struct suspended *next;
	struct key key;
	struct tran tran;
	struct context *of_request;	/* whose request came in it; NULL: nobody's */
};
_Static_assert(KEY_MAX == offsetof(TPTRANID, info[4]) && KEY_MAX >= GTT_GTRID, "the layout above");

static struct suspended *bucket[BUCKETS];
static uint64_t serial;			/* of long ids */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
tran_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(bucket, 0, sizeof bucket);	/* they are the parent's to resume */
}

/* ---- the list ---- */

static struct suspended **	/* where it is, or would be */
place_of(const struct key *k)
{
	uint64_t h = 14695981039346656037u;
	struct suspended **at;
	int i;

	for (i = 0; i < k->len; i++)
		h = (h ^ k->bytes[i]) * 1099511628211u;
	for (at = &bucket[(h ^ h >> 32) % BUCKETS]; *at != NULL; at = &(*at)->next)
		if ((*at)->key.len == k->len && memcmp((*at)->key.bytes, k->bytes, k->len) == 0)
			break;
	return at;
}

static void
key_of(const struct tran *t, struct key *k)
{
	memset(k, 0, sizeof *k);
	if (t->gtrid_len <= KEY_MAX) {
		k->len = t->gtrid_len;
		memcpy(k->bytes, t->gtrid, t->gtrid_len);
		return;
	}
	k->len = sizeof serial;
	serial++;
	memcpy(k->bytes, &serial, sizeof serial);
}

/* With the lock: off the list, into the context. */
static void
take_back(struct context *ctx, struct suspended **at)
{
	struct suspended *s = *at;
	struct gtt_entry e;

	*at = s->next;
	ctx->tran = s->tran;
	if (s->of_request != NULL)
		s->of_request->of_request = NULL;
	if (s->tran.slot > 0 && gtt_resume(app_gtt(ctx->app), (unsigned)s->tran.slot - 1, s->tran.gtrid, s->tran.gtrid_len, &e) !=
	    GTT_RESUMED)
		ctx->tran.slot = ctx->tran.table = 0;	/* swept: long over */
	free(s);
	tran_enter(ctx);
}

static int
list_suspend(struct context *ctx, struct key *key)
{
	struct suspended *s = calloc(1, sizeof *s), **at;

	if (s == NULL)
		return TPEOS;
	pthread_mutex_lock(&lock);
	key_of(&ctx->tran, key);
	s->key = *key;
	s->tran = ctx->tran;
	if (ctx->server && (!s->tran.initiator || s->tran.autotran)) {
		s->of_request = ctx;
		ctx->of_request = s;
	}
	at = place_of(key);
	s->next = *at;
	*at = s;
	pthread_mutex_unlock(&lock);
	if (s->tran.slot > 0)
		gtt_suspend(app_gtt(ctx->app), (unsigned)s->tran.slot - 1, true);
	return 0;
}

static bool
list_resume(struct context *ctx, const struct key *key)
{
	struct suspended **at;
	bool found;

	pthread_mutex_lock(&lock);
	at = place_of(key);
	if ((found = *at != NULL))
		take_back(ctx, at);
	pthread_mutex_unlock(&lock);
	return found;
}

/* What a service began meanwhile and left open is rolled back first. */
bool
tran_request_back(struct context *ctx)
{
	if (ctx->of_request == NULL)
		return false;
	if (ctx->tran.active && ctx->tran.initiator)
		tran_abort(ctx);
	pthread_mutex_lock(&lock);
	take_back(ctx, place_of(&ctx->of_request->key));
	pthread_mutex_unlock(&lock);
	tran_doom_because(ctx, TPESVCERR, 0, "a service left it suspended");
	return true;
}

/* ---- the table ---- */

static bool	/* All of it stands in its slot: what began it, and groups that TUXCONFIG has a number of. */
any_may_resume(const struct context *ctx)
{
	const struct tran *t = &ctx->tran;
	int i;

	if (t->slot == 0 || !t->initiator || t->autotran)
		return false;
	for (i = 0; i < t->groups.n; i++)
		if (ubb_group_by_name(ctx->app->ubb, t->groups.name[i]) == NULL)
			return false;
	return true;
}

static const char *
group_name(const struct context *ctx, long grpno)
{
	const struct ubb *u = ctx->app->ubb;
	size_t i;

	for (i = 0; i < u->n_groups; i++)
		if (u->groups[i].grpno == grpno)
			return u->groups[i].name;
	return NULL;
}

static void
tran_from_slot(struct context *ctx, int slot, const struct gtt_entry *e)
{
	struct tran *t = &ctx->tran;
	const char *name;
	int i;

	memset(t, 0, sizeof *t);
	t->initiator = true;
	t->by_tx = e->by_tx;
	t->slot = slot;
	t->table = gtt_mark(app_gtt(ctx->app));
	t->gtrid_len = e->gtrid_len;
	memcpy(t->gtrid, e->gtrid, e->gtrid_len);
	t->deadline_us = e->deadline_us;
	tran_enter(ctx);
	for (i = 0; i < e->n_groups; i++)
		if ((name = group_name(ctx, e->grpno[i])) != NULL)
			snprintf(t->groups.name[t->groups.n++], WIRE_GROUP, "%s", name);
		else
			tran_doom_because(ctx, TPESYSTEM, 0, "group %u that joined is not in TUXCONFIG", e->grpno[i]);
	if (e->doomed)
		tran_doom(ctx);
}

/* By the slot that the id names.  One without a slot, that the list does not have, was resumed or ended: nobody knows which. */
static int
slot_resume(struct context *ctx, const struct key *key, long slot)
{
	struct gtt *table = app_gtt(ctx->app);
	struct gtt_entry e;

	if (slot == 0 || table == NULL)
		return TPEMATCH;
	switch (gtt_resume(table, (unsigned)slot - 1, key->bytes, key->len, &e)) {
	case GTT_RESUMED:
		tran_from_slot(ctx, (int)slot, &e);
		return 0;
	case GTT_TAKEN:
		return TPEMATCH;
	default:
		return TPETRAN;
	}
}

/* ---- the calls ---- */

static int
tran_suspend(struct context *ctx, TPTRANID *out)
{
	struct key key;
	long slot = 0;
	int err = 0;

	if (!context_settle(ctx) || !ctx->tran.active || calls_open(ctx, true) > 0)
		return TPEPROTO;
	if (!tran_usable(ctx)) {
		if (ctx->tran.initiator && !ctx->tran.autotran)
			tran_abort(ctx);
		return TPEABORT;
	}
	if (any_may_resume(ctx)) {
		key_of(&ctx->tran, &key);
		slot = ctx->tran.slot;
		gtt_suspend(app_gtt(ctx->app), (unsigned)slot - 1, false);
	} else if ((err = list_suspend(ctx, &key)) != 0)
		return err;
	memset(out, 0, sizeof *out);
	memcpy(out->info, key.bytes, sizeof key.bytes);
	out->info[4] = slot;
	out->info[5] = key.len;
	tran_leave(ctx);
	return 0;
}

int
tpsuspend(TPTRANID *tranid, long flags)
{
	struct context *ctx;

	if (tranid == NULL || flags != 0)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	return context_leave(ctx, tran_suspend(ctx, tranid));
}

int
tpresume(TPTRANID *tranid, long flags)
{
	struct context *ctx;
	struct key key = { 0 };
	int err = 0;

	if (tranid == NULL || flags != 0 || tranid->info[5] <= 0 || tranid->info[5] > KEY_MAX || tranid->info[4] < 0 ||
	    tranid->info[4] > GTT_MAX)
		return fail(TPEINVAL);
	if ((ctx = context_enter()) == NULL)
		return -1;
	key.len = (uint8_t)tranid->info[5];
	memcpy(key.bytes, tranid->info, key.len);
	if (ctx->tran.active || xa_working())
		err = TPEPROTO;
	else if (!list_resume(ctx, &key))
		err = slot_resume(ctx, &key, tranid->info[4]);
	return context_leave(ctx, err);
}
