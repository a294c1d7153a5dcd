/*
 * bb - asking: one question, one answer, over a connection of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "bb.h"
#include "clock.h"
#include "link.h"

#define ONLY_REQUEST 1

static int	/* the answer to our request; anything else that arrives is not for us */
await_reply(struct link_client *c, int64_t deadline_us, struct wire_adminreply *reply)
{
	struct link_msg m;
	int rc;

	while ((rc = link_client_recv(c, &m, deadline_us)) == LINK_OK) {
		int bad = wire_adminreply_decode(m.head, m.head_len, reply);

		link_msg_done(&m);
		if (bad == 0 && reply->reqid == ONLY_REQUEST)
			return LINK_OK;
		if (bad == 0)
			bb_reply_free(reply);
	}
	return rc;
}

int
bb_request(const char *endpoint, const char *op, const struct record *args, int64_t timeout_ms,
    struct wire_adminreply *reply)
{
	return bb_request_by(endpoint, op, args, timeout_ms, timeout_ms, reply);
}

int
bb_request_by(const char *endpoint, const char *op, const struct record *args, int64_t reach_ms, int64_t timeout_ms,
    struct wire_adminreply *reply)
{
	/* The request borrows the caller's record: encoding only reads it. */
	struct record none = { 0 }, *rec = args != NULL ? (struct record *)(uintptr_t)args : &none;
	struct wire_admin q = { .reqid = ONLY_REQUEST, .doc = { .n = args != NULL, .rec = rec } };
	int64_t now = clock_mono_us(), deadline_us = now + timeout_ms * 1000;
	int64_t reach_us = now + (reach_ms < timeout_ms ? reach_ms : timeout_ms) * 1000;
	struct link_client *c = NULL;
	struct wr w = { 0 };
	int rc = LINK_FAIL;

	memset(reply, 0, sizeof *reply);
	if (strlen(op) >= sizeof q.op)
		return LINK_FAIL;
	memcpy(q.op, op, strlen(op));
	wire_admin_encode(&w, &q);
	if (wr_ok(&w) && (rc = link_client_open(endpoint, &c)) == LINK_OK &&
	    (rc = link_client_send(c, w.p, w.len, NULL, reach_us)) == LINK_OK)
		rc = await_reply(c, deadline_us, reply);
	link_client_close(c);
	wr_free(&w);
	return rc;
}

void
bb_reply_free(struct wire_adminreply *reply)
{
	free(reply->text);
	reply->text = NULL;
	document_free(&reply->doc);
}
