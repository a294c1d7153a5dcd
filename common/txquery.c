#include "txquery.h"

#include <stdio.h>
#include <string.h>

#include "bb.h"
#include "clock.h"
#include "link.h"

int
tx_endpoint(const char *bbl, const char *group, int64_t timeout_ms, char *out, size_t size)
{
	struct document args = { 0 };
	struct record *r = document_add(&args);
	struct wire_adminreply reply;
	const char *endpoint = NULL;

	*out = '\0';
	if (r != NULL && record_setf(r, "service", "..%s", group) == 0 && bb_request(bbl, "resolve", r, timeout_ms, &reply) == LINK_OK) {
		if (reply.status == 0 && reply.doc.n > 0)
			endpoint = record_get(&reply.doc.rec[0], "endpoint");
		snprintf(out, size, "%s", endpoint != NULL ? endpoint : "");
		bb_reply_free(&reply);
	}
	document_free(&args);
	return *out != '\0' ? 0 : -1;
}

static enum wire_outcome
answer_of(struct link_client *c, int64_t deadline_us)
{
	struct wire_txreply reply;
	enum wire_outcome out = WIRE_OUT_NONE;
	struct link_msg m;

	if (link_client_recv(c, &m, deadline_us) != LINK_OK)
		return WIRE_OUT_NONE;
	if (wire_txreply_decode(m.head, m.head_len, &reply) == 0 && reply.error == 0)
		out = (enum wire_outcome)reply.outcome;
	link_msg_done(&m);
	return out;
}

enum wire_outcome
tx_query(const char *bbl, const char *group, const uint8_t *gtrid, uint8_t len, int64_t timeout_ms)
{
	int64_t deadline_us = clock_mono_us() + timeout_ms * 1000;
	struct wire_txend q = { .reqid = 1, .op = WIRE_TX_QUERY, .timeout_ms = (uint32_t)timeout_ms };
	enum wire_outcome out = WIRE_OUT_NONE;
	struct link_client *c = NULL;
	struct wr head = { 0 };
	char endpoint[300];

	q.tx.gtrid_len = len;
	memcpy(q.tx.gtrid, gtrid, len);
	wire_txend_encode(&head, &q);
	if (wr_ok(&head) && tx_endpoint(bbl, group, timeout_ms, endpoint, sizeof endpoint) == 0 &&
	    link_client_open(endpoint, &c) == LINK_OK && link_client_send(c, head.p, head.len, NULL, deadline_us) == LINK_OK)
		out = answer_of(c, deadline_us);
	link_client_close(c);
	wr_free(&head);
	return out;
}
