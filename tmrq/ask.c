#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define SEND_US 20000		/* for BBL's socket to take it */
#define ANSWER_US 1000000

bool
ask_busy(const struct ask *a)
{
	return a->until_us != 0;
}

void
ask_close(struct ask *a)
{
	link_client_close(a->bbl);
	a->bbl = NULL;
}

void
ask_begin(struct ask *a, const char *service)
{
	struct wire_admin q = { .reqid = ++a->reqid, .op = "set-offers" };
	struct record *r = document_add(&q.doc);
	struct wr w = { 0 };

	snprintf(a->service, sizeof a->service, "%s", service);
	a->until_us = clock_mono_us() + ANSWER_US;
	if (r != NULL && record_set(r, "group", a->set->group->name) == 0 && record_set(r, "rqaddr", a->set->rqaddr) == 0 &&
	    record_set(r, "service", service) == 0)
		wire_admin_encode(&w, &q);
	if (w.len == 0 || !wr_ok(&w) || (a->bbl == NULL && link_client_open(a->endpoint, &a->bbl) != LINK_OK) ||
	    link_client_send(a->bbl, w.p, w.len, NULL, clock_mono_us() + SEND_US) != LINK_OK)
		ask_close(a);
	wr_free(&w);
	document_free(&q.doc);
}

static enum ask_answer
answered(struct ask *a, int32_t status)
{
	a->until_us = 0;
	return status == 0 ? ASK_YES : status == TPENOENT ? ASK_NO : ASK_SILENCE;
}

enum ask_answer
ask_take(struct ask *a)
{
	struct wire_adminreply reply;
	enum ask_answer answer = ASK_NOTHING;
	struct link_msg m;
	int rc = LINK_GONE;

	if (a->until_us == 0)
		return ASK_NOTHING;
	while (answer == ASK_NOTHING && a->bbl != NULL && (rc = link_client_recv(a->bbl, &m, 0)) == LINK_OK) {
		if (wire_adminreply_decode(m.head, m.head_len, &reply) == 0) {
			if (reply.reqid == a->reqid)
				answer = answered(a, reply.status);
			document_free(&reply.doc);
			free(reply.text);
		}
		link_msg_done(&m);
	}
	if (answer != ASK_NOTHING)
		return answer;
	if (a->bbl != NULL && rc != LINK_GONE && rc != LINK_FAIL && clock_mono_us() < a->until_us)
		return ASK_NOTHING;
	ask_close(a);
	a->until_us = 0;
	return ASK_SILENCE;
}
