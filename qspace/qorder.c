/*
 * qorder - keys that sort, byte by byte, as a queue delivers.
 *
 *	queue u32 | class | criteria | sequence u64 | 0x80		big-endian
 *
 * Class TOP has no criteria and the sequence inverted: whoever came last stands first.  LIFO inverts it too.  "Ahead of
 *K" is K without its last byte, then 0x40, the sequence, 0x80: behind all that was ahead of K, and directly ahead of K.
 */
#include <string.h>

#include "qspace_impl.h"

enum { CLASS_TOP = 0x40, CLASS_NORMAL = 0x80, AHEAD = 0x40, END = 0x80 };
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

int
qorder_before(struct okey *k, const struct okey *of, uint64_t seq)
{
	if (of->n + 9 > ORDER_KEY_MAX)
		return -1;
	*k = *of;
	k->b[k->n - 1] = AHEAD;
	key_u64(k, seq);
	key_byte(k, END);
	return 0;
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
