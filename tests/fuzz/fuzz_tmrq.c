/*
 * TMRQ, told by callers and members whatever the bytes say: well-formed frames in any order, and some that are none.  It stays
 * sound: what waits is what is counted, who has something is a member, and at the end nothing is left.
 *
 * Input: messages; each a byte (whose: its lowest bit a caller or a member, the next three which one), two of length, the frame.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "serve.h"

static char callers[128], members[128];
static struct serve s;

static void
open_once(void)
{
	static struct ubb_group group = { .name = "GROUP", .grpno = 1 };

	if (s.callers != NULL)
		return;
	setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	snprintf(callers, sizeof callers, "ipc:///tmp/fuzz_tmrq.%ldq", (long)getpid());
	snprintf(members, sizeof members, "ipc:///tmp/fuzz_tmrq.%ldm", (long)getpid());
	s.set = (struct ubb_set){ .group = &group, .rqaddr = "queue", .id = 1 };
	s.epfd = -1;
	if (link_server_open(callers, 0600, &s.callers) != LINK_OK || link_server_open(members, 0600, &s.members) != LINK_OK)
		abort();
}

/* Frames are as they come; the sockets of their senders are not there, so that what is answered goes nowhere. */
static void
tell(uint8_t whose, const uint8_t *p, size_t n)
{
	static const uint8_t body[4] = "body";
	struct link_msg m;

	memset(&m, 0, sizeof m);
	m.peer.n = 8;
	m.peer.id[0] = (uint8_t)(whose >> 1 & 7);
	m.peer.id[7] = 0x7f;
	m.head = p;
	m.head_len = n;
	m.has_body = (whose & 0x10) != 0;
	m.body = m.has_body ? body : NULL;
	m.body_len = m.has_body ? sizeof body : 0;
	if (whose & 1)
		member_hear(&s, &m);
	else
		caller_hear(&s, &m);
	if (whose & 0x20)
		hand_out(&s);
	if (whose & 0x40) {	/* the sender cannot be reached: as if all were given, and then the member dies */
		struct member *to = NULL;
		struct request *r = queue_next(&s.queue, &to);

		if (r != NULL)
			queue_give(&s.queue, r, to);
		else if (s.queue.members != NULL && (whose & 0x80))
			member_lost(&s, s.queue.members);
	}
}

static void
check(void)
{
	size_t waits = 0, given = 0, has = 0;
	const struct request *r;
	const struct member *m;
	const struct service *v;

	for (r = s.queue.by_id; r != NULL; r = r->by_id.next) {
		waits += r->member == NULL;
		given += r->member != NULL;
	}
	for (m = s.queue.members; m != NULL; m = m->hh.next)
		for (r = m->has; r != NULL; r = r->next, has++)
			assert(r->member == m);
	assert(waits == s.queue.n && given == s.queue.given && given == has);
	for (v = s.queue.waiting; v != NULL; v = v->next) {
		assert(v->waiting.n > 0 && v->waiting.n <= waits);
		waits -= v->waiting.n;
	}
	assert(waits == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct member *m, *next;

	open_once();
	queue_open(&s.queue);
	s.queue.last_id = 0;		/* so that a frame can name one */
	while (n >= 3) {
		uint8_t whose = p[0];
		size_t len = (size_t)(p[1] << 8 | p[2]) % 512;

		p += 3;
		n -= 3;
		if (len > n)
			len = n;
		tell(whose, p, len);
		check();
		p += len;
		n -= len;
	}
	HASH_ITER(hh, s.queue.members, m, next)
		member_lost(&s, m);
	queue_close(&s.queue);
	assert(s.queue.n == 0 && s.queue.bytes == 0 && s.queue.given == 0 && s.queue.services == NULL && s.queue.leaving == 0);
	return 0;
}
