/*
 * xa_recover - ids of other transaction managers, there and back; which of their branches are in doubt, or ended by hand.
 */
#include <stdlib.h>
#include <string.h>

#include "xa_impl.h"
#include "bb.h"
#include "ulog.h"

#define HEAD 10		/* the mark, formatID, length of the gtrid */

void
xid_to_wire(const XID *xid, struct wire_tx *tx)
{
	uint64_t format = (uint64_t)xid->formatID;
	size_t n = (size_t)(xid->gtrid_length + xid->bqual_length);
	int i;

	_Static_assert(HEAD + XIDDATASIZE <= WIRE_GTRID_MAX, "every XID has room");
	memset(tx, 0, sizeof *tx);
	tx->gtrid[0] = WIRE_GTRID_XID;
	for (i = 0; i < 8; i++)
		tx->gtrid[1 + i] = (uint8_t)(format >> (56 - 8 * i));
	tx->gtrid[9] = (uint8_t)xid->gtrid_length;
	memcpy(tx->gtrid + HEAD, xid->data, n);
	tx->gtrid_len = (uint8_t)(HEAD + n);
}

bool
xid_from_wire(const uint8_t *id, size_t n, XID *xid)
{
	uint64_t format = 0;
	int i;

	memset(xid, 0, sizeof *xid);
	if (n < HEAD || id[0] != WIRE_GTRID_XID || id[9] < 1 || id[9] > MAXGTRIDSIZE || n < HEAD + (size_t)id[9] ||
	    n - HEAD - id[9] > MAXBQUALSIZE)
		return false;
	for (i = 0; i < 8; i++)
		format = format << 8 | id[1 + i];
	xid->formatID = (long)format;
	xid->gtrid_length = id[9];
	xid->bqual_length = (long)(n - HEAD - id[9]);
	memcpy(xid->data, id + HEAD, n - HEAD);
	return true;
}

/* ---- what qprinttrans says ---- */

static void
hex_of(const struct wire_tx *tx, char out[2 * WIRE_GTRID_MAX + 1])
{
	int i;

	out[0] = '\0';
	for (i = 0; i < tx->gtrid_len; i++)
		snprintf(out + 2 * i, 3, "%02x", tx->gtrid[i]);
}

static size_t	/* How many bytes; 0: that is no id. */
bytes_of(const char *hex, uint8_t out[WIRE_GTRID_MAX])
{
	size_t n = strlen(hex), i;
	unsigned byte;

	if (n % 2 != 0 || n / 2 > WIRE_GTRID_MAX)
		return 0;
	for (i = 0; i < n / 2; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 0;
		out[i] = (uint8_t)byte;
	}
	return n / 2;
}

static enum xa_stage
stage_of(const struct record *r)
{
	const char *state = record_get(r, "state");

	if (state == NULL)
		return XA_STAGE_NONE;
	if (strcmp(state, "prepared") == 0)
		return XA_STAGE_PREPARED;
	return strncmp(state, "heuristically", 13) == 0 ? XA_STAGE_HEURISTIC : XA_STAGE_ACTIVE;
}

static int
code_of(int err)
{
	return err == TPEOS ? XAER_RMERR : XAER_RMFAIL;
}

static int	/* A page of the list; only: about one transaction.  *refused: the server would not. */
page(struct xa_rm *rm, const char *only, const char *cursor, struct wire_adminreply *reply)
{
	struct document args = { 0 };
	struct record *r = document_add(&args);
	int err = TPEOS;

	if (r != NULL && (only == NULL || record_set(r, "gtrid", only) == 0) && (cursor == NULL || record_set(r, "cursor", cursor) == 0))
		err = xa_ask_admin(rm, "qprinttrans", r, reply);
	document_free(&args);
	return err == 0 ? XA_OK : code_of(err);
}

int
xa_stage(struct xa_rm *rm, const struct wire_tx *tx, enum xa_stage *out)
{
	struct wire_adminreply reply = { 0 };
	char hex[2 * WIRE_GTRID_MAX + 1];
	const char *v;
	size_t i;
	int rc;

	*out = XA_STAGE_NONE;
	hex_of(tx, hex);
	if ((rc = page(rm, hex, NULL, &reply)) != XA_OK)
		return rc;
	for (i = 0; i < reply.doc.n; i++)	/* a refusal: there is none */
		if ((v = record_get(&reply.doc.rec[i], "gtrid")) != NULL && strcmp(v, hex) == 0)
			*out = stage_of(&reply.doc.rec[i]);
	bb_reply_free(&reply);
	return XA_OK;
}

/* ---- xa_recover: a scan is one thread's ---- */

struct scan {
	struct scan *next;
	uint64_t thread;
	int rmid;
	XID *xid;			/* as it was when the scan began */
	size_t n, room, at;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scan *scans;

void
xa_scan_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);	/* the parent's scans stay in the list: no thread of ours has their numbers */
}

static void
scan_free(struct scan *s)
{
	if (s != NULL)
		free(s->xid);
	free(s);
}

static struct scan *	/* Out of the list: the caller's. */
scan_take(int rmid)
{
	uint64_t thread = xa_thread();
	struct scan **at, *s;

	pthread_mutex_lock(&lock);
	for (at = &scans; (s = *at) != NULL && (s->thread != thread || s->rmid != rmid); at = &s->next)
		;
	if (s != NULL)
		*at = s->next;
	pthread_mutex_unlock(&lock);
	return s;
}

static void
scan_keep(struct scan *s)
{
	pthread_mutex_lock(&lock);
	s->next = scans;
	scans = s;
	pthread_mutex_unlock(&lock);
}

void
xa_scan_drop(int rmid)
{
	scan_free(scan_take(rmid));
}

static int
scan_add(struct scan *s, const struct document *doc)
{
	uint8_t id[WIRE_GTRID_MAX];
	const char *v;
	size_t i, room;
	XID *more;

	for (i = 0; i < doc->n; i++) {
		if ((v = record_get(&doc->rec[i], "gtrid")) == NULL || stage_of(&doc->rec[i]) < XA_STAGE_PREPARED)
			continue;
		if (s->n == s->room) {
			room = s->room == 0 ? 64 : 2 * s->room;
			if ((more = realloc(s->xid, room * sizeof *more)) == NULL)
				return XAER_RMERR;
			s->xid = more;
			s->room = room;
		}
		if (xid_from_wire(id, bytes_of(v, id), &s->xid[s->n]))
			s->n++;
	}
	return XA_OK;
}

static int
scan_fill(struct xa_rm *rm, struct scan *s)
{
	struct wire_adminreply reply = { 0 };
	const char *next;
	char *cursor = NULL;
	int rc;

	do {
		if ((rc = page(rm, NULL, cursor, &reply)) != XA_OK)
			break;
		if (reply.status != 0) {
			ulog("LIBTUX_CAT:5188: ERROR: XA: the queue manager of group %s does not list its transactions: %s", rm->group,
			    reply.text == NULL ? "no reason given" : reply.text);
			rc = XAER_RMERR;
		} else
			rc = scan_add(s, &reply.doc);
		next = reply.doc.n > 0 ? record_get(&reply.doc.rec[0], "cursor") : NULL;
		free(cursor);
		cursor = NULL;
		if (rc == XA_OK && next != NULL && (cursor = strdup(next)) == NULL)
			rc = XAER_RMERR;
		bb_reply_free(&reply);
		memset(&reply, 0, sizeof reply);
	} while (rc == XA_OK && cursor != NULL);
	free(cursor);
	return rc;
}

int
xa_scan(struct xa_rm *rm, XID *xids, long count, long flags)
{
	struct scan *s = scan_take(rm->rmid);
	long n = 0;
	int rc;

	if (flags & TMSTARTRSCAN) {
		scan_free(s);
		if ((s = calloc(1, sizeof *s)) == NULL)
			return XAER_RMERR;
		s->thread = xa_thread();
		s->rmid = rm->rmid;
		if ((rc = scan_fill(rm, s)) != XA_OK) {
			scan_free(s);
			return rc;
		}
	}
	if (s == NULL)
		return XAER_INVAL;
	for (; n < count && s->at < s->n; n++)
		xids[n] = s->xid[s->at++];
	if (flags & TMENDRSCAN)
		scan_free(s);
	else
		scan_keep(s);
	return (int)n;
}
