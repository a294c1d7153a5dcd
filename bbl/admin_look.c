/* tmadmin: what is there and what it does. */
#include <string.h>

#include "admin.h"
#include "bb.h"
#include "layout.h"

#define ASK_MS 10000
#define SHARED_MS 1000	/* for the queue of a set of servers */

static int	/* the rows of one operation; the caller frees */
rows_ask(const struct admin *a, const char *op, struct wire_adminreply *reply)
{
	if (app_ask(&a->app, op, ASK_MS, reply, NULL) != 0) {
		commands_error("BBL of %s does not answer", a->app.tuxconfig);
		return -1;
	}
	if (reply->status != 0) {
		commands_error("%s", reply->text != NULL ? reply->text : "refused");
		bb_reply_free(reply);
		return -1;
	}
	return 0;
}

static struct layout_show
show_of(const struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	const char *level = admin_option(a, o, 'a');

	return (struct layout_show){ .lmid = admin_option(a, o, 'm'), .group = admin_option(a, o, 'g'),
		.srvid = admin_option(a, o, 'i'), .queue = admin_option(a, o, 'q'), .service = admin_option(a, o, 's'),
		.usrname = admin_option(a, o, 'u'), .cltname = admin_option(a, o, 'c'),
		.system_services = level != NULL && level[0] > '0', .verbose = r->con.verbose };
}

/* What waits in a queue that several servers share is known to the queue's own process. */
static void
shared_queues_ask(struct document *rows)
{
	static const char *const counts[] = { "queued", "wkqueued" };
	struct wire_adminreply reply;

	for (size_t i = 0; i < rows->n; i++) {
		const char *endpoint = record_get(&rows->rec[i], "endpoint");

		if (endpoint == NULL || bb_request(endpoint, "queue", NULL, SHARED_MS, &reply) != 0)
			continue;
		for (size_t k = 0; k < sizeof counts / sizeof *counts && reply.status == 0 && reply.doc.n > 0; k++)
			(void)record_setf(&rows->rec[i], counts[k], "%ld", record_long(&reply.doc.rec[0], counts[k], 0));
		bb_reply_free(&reply);
	}
}

static void
table(struct commands *r, const char *op, const struct layout_show *show,
    void (*layout)(FILE *, const struct document *, const struct layout_show *))
{
	struct wire_adminreply reply;

	if (rows_ask(r->context, op, &reply) != 0)
		return;
	if (layout == layout_pq)
		shared_queues_ask(&reply.doc);
	layout(r->con.out, &reply.doc, show);
	bb_reply_free(&reply);
}

void
cmd_psr(struct commands *r, const struct opts *o)
{
	struct layout_show show = show_of(r, o);

	table(r, "psr", &show, layout_psr);
}

void
cmd_psc(struct commands *r, const struct opts *o)
{
	struct layout_show show = show_of(r, o);

	table(r, "psc", &show, layout_psc);
}

void
cmd_pclt(struct commands *r, const struct opts *o)
{
	struct layout_show show = show_of(r, o);

	table(r, "pclt", &show, layout_pclt);
}

void
cmd_pq(struct commands *r, const struct opts *o)
{
	struct layout_show show = show_of(r, o);

	if (o->n_rest > 0)
		show.queue = o->rest[0];
	table(r, "pq", &show, layout_pq);
}

void
cmd_bbs(struct commands *r, const struct opts *o)
{
	struct wire_adminreply reply;

	(void)o;
	if (rows_ask(r->context, "bbs", &reply) != 0)
		return;
	layout_bbs(r->con.out, &reply.doc);
	bb_reply_free(&reply);
}

void
cmd_bbparms(struct commands *r, const struct opts *o)
{
	const struct admin *a = r->context;
	const struct ubb_resources *u = &a->app.ubb->res;

	(void)o;
	fprintf(r->con.out, "Bulletin Board Parameters:\n"
	    "\tMAXSERVERS: %ld\n\tMAXSERVICES: %ld\n\tMAXACCESSERS: %ld\n\tMAXGROUPS: %ld\n\tMAXQUEUES: %ld\n\tMAXGTT: %ld\n"
	    "\tLoad Balancing: %s\n\tIPCKEY: %ld\n\tSCANUNIT: %ld ms\n\tBLOCKTIME: %ld\n\tModel: %s\n\n",
	    u->maxservers, u->maxservices, u->maxaccessers, u->maxgroups, u->maxqueues, u->maxgtt, u->ldbal ? "ON" : "OFF",
	    u->ipckey, u->scanunit_ms, u->blocktime, u->mp ? "MP" : "SHM");
}

void
cmd_serverparms(struct commands *r, const struct opts *o)
{
	struct layout_show show = show_of(r, o);

	if (show.group == NULL || show.srvid == NULL) {
		commands_error("serverparms needs -g group and -i srvid");
		return;
	}
	show.verbose = true;
	table(r, "psr", &show, layout_psr);
}
