#include "orphan.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "clock.h"

#define LOOK_US 1000000
#define RETRY_US 100000			/* after a batch that failed, perhaps before it came to them */
enum { PEERS = 8 };		/* the last ones; who comes later counts, who was before them does not */

struct orphan {
	struct branch_id id;
	UT_hash_handle hh;
	struct link_peer peer[PEERS];
	size_t n;
};

struct orphans { struct qspace *qs; struct orphan *all; int64_t next_us; };

struct orphans *
orphans_new(struct qspace *qs)
{
	struct orphans *os = calloc(1, sizeof *os);

	if (os != NULL) {
		os->qs = qs;
		os->next_us = INT64_MAX;
	}
	return os;
}

static void
orphan_free(struct orphans *os, struct orphan *o)
{
	HASH_DEL(os->all, o);	// NOLINT: inside uthash
	free(o);
}

void
orphans_free(struct orphans *os)
{
	struct orphan *o, *next;

	if (os == NULL)
		return;
	for (o = os->all; o != NULL; o = next) {
		next = o->hh.next;
		orphan_free(os, o);
	}
	free(os);
}

int
orphan_note(struct orphans *os, const struct branch_id *id, const struct link_peer *peer)
{
	struct orphan *o;

	HASH_FIND(hh, os->all, id->gtrid, id->len, o);
	if (o == NULL) {
		if ((o = calloc(1, sizeof *o)) == NULL)
			return QMEOS;
		o->id = *id;
		HASH_ADD_KEYPTR(hh, os->all, o->id.gtrid, o->id.len, o);
		if (os->next_us == INT64_MAX)
			os->next_us = clock_mono_us() + LOOK_US;
	}
	for (size_t i = 0; i < o->n; i++)
		if (o->peer[i].n == peer->n && memcmp(o->peer[i].id, peer->id, peer->n) == 0)
			return 0;
	if (o->n == PEERS)
		memmove(o->peer, o->peer + 1, --o->n * sizeof o->peer[0]);
	o->peer[o->n++] = *peer;
	return 0;
}

static bool
all_left(struct orphan *o, reply_left_fn *left, void *arg)
{
	for (size_t i = 0; i < o->n; i++)
		if (!left(arg, &o->peer[i]))
			return false;
	return true;
}

int
orphans_work(struct orphans *os, reply_left_fn *left, void *left_arg)
{
	static const struct wire_why why = { .error = TPEABORT, .text = "its program is gone" };
	int64_t now = clock_mono_us();
	struct orphan *o, *next;
	struct branch *b;
	int rc;

	if (now < os->next_us || left == NULL)
		return 0;
	os->next_us = now + LOOK_US;
	for (o = os->all; o != NULL; o = next) {
		next = o->hh.next;
		b = qspace_branch_find(os->qs, &o->id);
		if (b == NULL || qspace_branch_state(b) != BR_ACTIVE)
			orphan_free(os, o);
		else if (all_left(o, left, left_arg)) {	/* it is forgotten at the next look, once this is on disk */
			qspace_branch_doom(b);
			rc = qspace_branch_rollback_because(os->qs, b, &why);
			if (rc == QMESYSTEM || rc == QMEOS)
				return rc;
		}
	}
	if (os->all == NULL)
		os->next_us = INT64_MAX;
	return 0;
}

void
orphans_abort(struct orphans *os)
{
	int64_t soon = clock_mono_us() + RETRY_US;

	if (os->next_us < soon)
		os->next_us = soon;
}

int64_t
orphans_next_event(const struct orphans *os)
{
	return os->next_us;
}
