/*
 * qorder - keys that sort, byte by byte, as a queue delivers.
 *
 *	queue u32 | class | criteria | sequence u64 | 0x80		big-endian
 *
 * Class TOP has no criteria and the sequence inverted: whoever came last stands first.  LIFO inverts it too.  "Ahead of
 *K" is K without its last byte, then 0x40, the sequence, 0x80: behind all that was ahead of K, and directly ahead of K.
 *
 * That takes nine bytes for each message ahead of one that itself was put ahead of another.  Where they get too many, those
 * ahead of K stand in a line: K without its last byte, 0x20, place u64, sequence, 0x80.  A newcomer ahead of one in
 * the line gets a place between that one and its neighbour, far from the neighbour, and another line when there is none left.
 */
#include <string.h>

#include "qspace_impl.h"

enum { CLASS_TOP = 0x40, CLASS_NORMAL = 0x80, AHEAD_LINE = 0x20, AHEAD = 0x40, END = 0x80 };
enum { LINE_BYTES = 1 + 8 + 8, LINES = 3, LINE_FROM = ORDER_KEY_MAX - LINES * LINE_BYTES };
#define LINE_MIDDLE (UINT64_C(1) << 63)
#define LINE_STEP (UINT64_C(1) << 32)
/* First byte of an identifier: its kind, and with that its version. */
enum { ID_DIRECT = 0x51, ID_DIRECT_NP, ID_ALIAS, ID_ALIAS_NP };
#define DIRECT_MAX (TMMSGIDLEN - 6 + 1)	/* longest key that fits an identifier: its last byte is known */

void
be32(uint8_t *to, uint32_t v)
{
	for (int i = 3; i >= 0; i--, v >>= 8)
		to[i] = (uint8_t)v;
}

void
be64(uint8_t *to, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		to[i] = (uint8_t)v;
}

uint32_t
get32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

uint64_t
get64(const uint8_t *from)
{
	return (uint64_t)get32(from) << 32 | get32(from + 4);
}

static void
key_byte(struct okey *k, uint8_t b)
{
	k->b[k->n++] = b;
}

static void
key_u64(struct okey *k, uint64_t v)
{
	be64(k->b + k->n, v);
	k->n = (uint8_t)(k->n + 8);
}

static void	/* Milliseconds in six bytes: good until the year 10889. */
key_time(struct okey *k, int64_t us)
{
	uint8_t ms[8];

	be64(ms, us <= 0 ? 0 : us == NEVER ? UINT64_MAX : (uint64_t)(us / 1000));
	memcpy(k->b + k->n, ms + 2, 6);
	k->n = (uint8_t)(k->n + 6);
}

void
qorder_key(
    struct okey *k, uint32_t queue, const uint8_t order[4], const struct qorder_values *v, bool top, uint64_t seq)
{
	bool lifo = false;

	be32(k->b, queue);
	k->n = 4;
	key_byte(k, top ? CLASS_TOP : CLASS_NORMAL);
	for (int i = 0; i < 4 && order[i] != QC_NONE; i++) {
		if (order[i] == QC_LIFO)
			lifo = true;
		if (top)
			continue;
		switch (order[i]) {
		case QC_PRIORITY:
			key_byte(k, (uint8_t)(100 - v->priority));
			break;
		case QC_TIME:
			key_time(k, v->available_us);
			break;
		case QC_EXPIRATION:
			key_time(k, v->expires_us == 0 ? NEVER : v->expires_us);
			break;
		}
	}
	key_u64(k, top || lifo ? ~seq : seq);
	key_byte(k, END);
}

static bool	/* Do the first n bytes and the one that follows agree?  Then k is one of those ahead of a message. */
stands_under(const struct okey *k, const uint8_t *stem, size_t n, uint8_t kind)
{
	return k->n > n + 1 && memcmp(k->b, stem, n) == 0 && k->b[n] == kind;
}

static int
line_key(struct okey *k, const uint8_t *stem, size_t n, uint64_t place, uint64_t seq)
{
	if (n + LINE_BYTES + 1 > ORDER_KEY_MAX)
		return -1;
	memcpy(k->b, stem, n);
	k->n = (uint8_t)n;
	key_byte(k, AHEAD_LINE);
	key_u64(k, place);
	key_u64(k, seq);
	key_byte(k, END);
	return 0;
}

bool
qorder_before_looks(const struct okey *of)
{
	return of->n + 9 > LINE_FROM;
}

int
qorder_before(struct okey *k, const struct okey *of, const struct okey *prev, uint64_t seq)
{
	size_t stem = of->n - 1u;
	uint64_t place, low = 0;

	if (!qorder_before_looks(of) || (stands_under(prev, of->b, stem, AHEAD) && of->n + 9 <= ORDER_KEY_MAX)) {
		*k = *of;
		k->b[k->n - 1] = AHEAD;
		key_u64(k, seq);
		key_byte(k, END);
		return 0;
	}
	if (stands_under(prev, of->b, stem, AHEAD_LINE)) {	/* some stand there: behind the last one */
		place = get64(prev->b + stem + 1);
		return place > UINT64_MAX - LINE_STEP ? -1 : line_key(k, of->b, stem, place + LINE_STEP, seq);
	}
	if (of->n > LINE_BYTES + 5 && of->b[of->n - 1 - LINE_BYTES] == AHEAD_LINE) {	/* in a line itself: beside it */
		stem = of->n - 1u - LINE_BYTES;
		place = get64(of->b + stem + 1);
		if (stands_under(prev, of->b, stem, AHEAD_LINE))
			low = get64(prev->b + stem + 1);
		if (place > low && place - low > 1)
			return line_key(k, of->b, stem, place - low > 2 * LINE_STEP ? place - LINE_STEP :
			    low + (place - low) / 2, seq);
		stem = of->n - 1u;
	}
	return line_key(k, of->b, stem, LINE_MIDDLE, seq);
}

int
qorder_compare(const uint8_t *a, size_t an, const uint8_t *b, size_t bn)
{
	int c = memcmp(a, b, an < bn ? an : bn);

	return c != 0 ? c : an < bn ? -1 : an > bn;
}

uint32_t
qorder_queue(const struct okey *k)
{
	return get32(k->b);
}

uint64_t
qorder_seq(const struct okey *k, bool lifo)
{
	uint64_t seq = get64(k->b + k->n - 9);

	return k->b[4] == CLASS_TOP || lifo ? ~seq : seq;
}

void
qorder_msgid(uint8_t msgid[TMMSGIDLEN], const uint8_t space[4], bool np, const struct okey *k, uint64_t seq, bool alias)
{
	memset(msgid, 0, TMMSGIDLEN);
	msgid[0] = (uint8_t)((alias ? ID_ALIAS : ID_DIRECT) + (np ? 1 : 0));
	memcpy(msgid + 1, space, 4);
	if (alias) {
		memcpy(msgid + 6, k->b, 4);
		be64(msgid + 10, seq);
	} else {
		msgid[5] = k->n;
		memcpy(msgid + 6, k->b, k->n - 1u);
	}
}

int
qorder_msgid_parse(const uint8_t msgid[TMMSGIDLEN], struct msgid_parts *out)
{
	memset(out, 0, sizeof *out);
	if (msgid[0] < ID_DIRECT || msgid[0] > ID_ALIAS_NP)
		return -1;
	out->np = msgid[0] == ID_DIRECT_NP || msgid[0] == ID_ALIAS_NP;
	out->alias = msgid[0] >= ID_ALIAS;
	if (out->alias) {
		out->queue = get32(msgid + 6);
		out->seq = get64(msgid + 10);
		return msgid[5] == 0 ? 0 : -1;
	}
	if (msgid[5] < 4 + 1 + 8 + 1 || msgid[5] > DIRECT_MAX)
		return -1;
	out->key.n = msgid[5];
	memcpy(out->key.b, msgid + 6, out->key.n - 1u);
	out->key.b[out->key.n - 1] = END;
	out->queue = qorder_queue(&out->key);
	return 0;
}
