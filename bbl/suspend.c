/*
 * Suspended servers: tmshutdown -w and -k have no new work come to any of the servers that they are going to stop.
 *
 * Queue managers, and whoever else offers names that begin with "..", go on: services that finish what is queued need
 * them, and transactions end through them.  They are stopped in their turn.
 */
#include <string.h>

#include "bbl.h"
#include "proc.h"
#include "ulog.h"

static bool
others_need_it(const struct server *s)
{
	for (size_t i = 0; i < s->n_offers; i++)
		if (strncmp(s->offers[i].service, "..", 2) == 0)
			return true;
	return false;
}

static void
order(struct bbl *b, const struct server *s, const char *op)
{
	struct wire_admin m = { 0 };
	struct wr w = { 0 };

	memcpy(m.op, op, strlen(op));
	wire_admin_encode(&w, &m);
	if (s->has_peer && wr_ok(&w))
		(void)link_server_send(b->link, &s->peer, w.p, w.len, NULL);	/* who is gone serves nobody */
	wr_free(&w);
}

void
suspend_server(struct bbl *b, struct server *s, pid_t by)
{
	unsigned long long start = proc_start_time(by);

	if (start == 0 || server_is_tms(s) || s->state == SERVER_STOPPING || others_need_it(s))
		return;
	s->suspender = by;
	s->suspender_start = start;
	order(b, s, "suspend");
}

void
suspend_keep(struct bbl *b)
{
	for (size_t i = 0; i < b->reg.n_servers; i++) {
		struct server *s = b->reg.servers[i];

		if (s->suspender == 0 || s->state == SERVER_STOPPING || proc_is(s->suspender, s->suspender_start))
			continue;
		ulog("CMDTUX_CAT:1770: WARN: server %s/%ld (%s) serves again: tmshutdown, process %ld, suspended it and ended without "
		    "having stopped it", s->group, s->srvid, s->program, (long)s->suspender);
		s->suspender = 0;
		order(b, s, "resume");
	}
}
