/*
 * Administration of an open queue space, in process: what qadmin_run() answers, and what it does to messages.
 */
#include <stdarg.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "qparse.h"
#include "qspace.h"
#include "unit.h"

static char dir[64], dev[96];
static struct qspace *qs;
static struct document doc, answer;
static char *text;

static void
given_space(const char *errorq)
{
	struct qspace_params p = { .name = "S", .ipckey = 61000, .pages = 40000, .queues = 5, .trans = 10,
	    .procs = 10, .messages = 20000,
		.blocking = 16, .nonpersistent_bytes = 1 << 20 };
	char *why = NULL;

	snprintf(dir, sizeof dir, "/tmp/qadmin.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(dev, sizeof dev, "%s/QUE", dir);
	CU_ASSERT_EQUAL(chdir(dir), 0);		/* the user log goes there */
	snprintf(p.errorq, sizeof p.errorq, "%s", errorq);
	CU_ASSERT_EQUAL_FATAL(device_add(dev, dev, 0, 50000, &why, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_create(dev, &p, &why), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_open(dev, "S", NULL, &qs, &why), 0);
}

static void
forget(void)
{
	document_free(&doc);
	document_free(&answer);
	doc = answer = (struct document){ 0 };
	free(text);
	text = NULL;
}

static void
given_done(void)
{
	char cmd[128];

	forget();
	qspace_close(qs);
	CU_ASSERT_EQUAL(chdir("/"), 0);
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
}

/* Run an operation with "key=value" arguments; the last one is NULL. */
static int
run(const char *op, ...)
{
	struct record *r;
	const char *arg, *eq;
	char key[32];
	va_list ap;

	forget();
	r = document_add(&doc);
	va_start(ap, op);
	while ((arg = va_arg(ap, const char *)) != NULL) {
		eq = strchr(arg, '=');
		snprintf(key, sizeof key, "%.*s", (int)(eq - arg), arg);
		record_set(r, key, eq + 1);
	}
	va_end(ap);
	return qadmin_run(qs, op, &doc.rec[0], &answer, &text);
}

static int
create(const char *name)
{
	char arg[64];

	snprintf(arg, sizeof arg, "name=%s", name);
	return run("qcreate", arg, "order=fifo", "outoforder=none", "retries=2", "delay=30", "high=100%", "low=0",
	    "cmd=", NULL);
}

static const char *
value(size_t rec, const char *key)
{
	return rec < answer.n ? record_get(&answer.rec[rec], key) : NULL;
}

static bool
says(const char *part)
{
	if (text == NULL || strstr(text, part) == NULL)
		printf("\n  said \"%s\", expected \"%s\"", text != NULL ? text : "nothing", part);
	return text != NULL && strstr(text, part) != NULL;
}

static void
put_with(const char *queue, const struct qmsg_in *in)
{
	uint8_t msgid[TMMSGIDLEN];

	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_enqueue(qs, NULL, queue, in, msgid), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
}

static void
put(const char *queue, const char *body)
{
	put_with(queue, &(struct qmsg_in){ .type = "STRING", .subtype = "", .has_body = true, .body = body,
	    .body_len = strlen(body) });
}

static void
put_many(const char *queue, int n)
{
	uint8_t msgid[TMMSGIDLEN];
	struct qmsg_in in = { .type = "STRING", .subtype = "", .has_body = true, .body = "x", .body_len = 1 };

	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(qs, NULL, queue, &in, msgid), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
}

static struct branch *
hold_first(const char *queue, const char *gtrid)
{
	struct branch_id id = { .len = (uint8_t)strlen(gtrid) };
	struct branch *b = NULL;
	struct qmsg *m = NULL;

	memcpy(id.gtrid, gtrid, id.len);
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_branch_begin(qs, &id, 0, &b), 0);
	CU_ASSERT_EQUAL(qspace_dequeue(qs, b, queue, NULL, &m), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	qmsg_free(m);
	return b;
}

static long
messages(const char *queue)
{
	struct queue_stat st = { 0 };

	CU_ASSERT_EQUAL(qspace_queue_get(qs, queue, NULL, &st), 0);
	return (long)(st.messages + st.np_messages);
}

/* --- queues --- */

static void
queue_is_shown_as_it_was_created(void)
{
	given_space("ERR");
	CU_ASSERT_EQUAL(run("qcreate", "name=LOG", "order=prio,lifo", "outoforder=top,msgid", "retries=3", "delay=60",
	    "high=5m", "low=0m",
	    "cmd=tmboot -s TMQFORWARD", "policy=nonpersist", "nonpersistent=80%,10%,date", "expiration=+90", NULL), 0);
	CU_ASSERT_EQUAL(run("qinfo", "name=LOG", NULL), 0);
	CU_ASSERT_EQUAL_FATAL(answer.n, 2);
	CU_ASSERT_PTR_NULL(value(0, "cursor"));
	CU_ASSERT_STRING_EQUAL(value(1, "name"), "LOG");
	CU_ASSERT_STRING_EQUAL(value(1, "messages"), "0");
	CU_ASSERT_STRING_EQUAL(value(1, "order"), "priority,lifo");
	CU_ASSERT_STRING_EQUAL(value(1, "outoforder"), "top,msgid");
	CU_ASSERT_STRING_EQUAL(value(1, "retries"), "3");
	CU_ASSERT_STRING_EQUAL(value(1, "delay"), "60");
	CU_ASSERT_STRING_EQUAL(value(1, "high"), "5m");
	CU_ASSERT_STRING_EQUAL(value(1, "low"), "0m");
	CU_ASSERT_STRING_EQUAL(value(1, "cmd"), "tmboot -s TMQFORWARD");
	CU_ASSERT_STRING_EQUAL(value(1, "np_high"), "80%");
	CU_ASSERT_STRING_EQUAL(value(1, "np_cmd"), "date");
	CU_ASSERT_STRING_EQUAL(value(1, "expiration"), "+90");
	CU_ASSERT_STRING_EQUAL(value(1, "policy"), "nonpersist");
	given_done();
}

static void
change_keeps_what_is_not_named(void)
{
	given_space("ERR");
	CU_ASSERT_EQUAL(run("qcreate", "name=LOG", "order=time", "retries=3", "delay=60", "high=5m", "low=0m",
	    "cmd=date", NULL), 0);
	CU_ASSERT_EQUAL(run("qchange", "name=LOG", "delay=10", "policy=nonpersist", NULL), 0);
	CU_ASSERT_EQUAL(run("qinfo", "name=LOG", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(1, "order"), "time,fifo");
	CU_ASSERT_STRING_EQUAL(value(1, "retries"), "3");
	CU_ASSERT_STRING_EQUAL(value(1, "delay"), "10");
	CU_ASSERT_STRING_EQUAL(value(1, "cmd"), "date");
	CU_ASSERT_STRING_EQUAL(value(1, "policy"), "nonpersist");
	CU_ASSERT_EQUAL(run("qchange", "name=NONE", "delay=10", NULL), 1);
	CU_ASSERT_TRUE(says("queue NONE: no such queue in queue space S"));
	given_done();
}

static void
refusals_have_their_numbers_and_change_nothing(void)
{
	given_space("ERR");
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "delay=x", NULL), 1201);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "high=5x", NULL), 1205);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "high=xm", NULL), 1206);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "high=200%", NULL), 1207);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "high=5m", "low=1b", NULL), 1210);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "high=5m", "low=6m", NULL), 1212);
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=random", NULL), 1);
	CU_ASSERT_TRUE(says("queue order \"random\""));
	CU_ASSERT_EQUAL(run("qcreate", "name=A", "order=fifo", "retries=-1", NULL), 1);
	CU_ASSERT_EQUAL(run("qcreate", "order=fifo", NULL), 1);
	CU_ASSERT_TRUE(says("argument name is missing"));
	CU_ASSERT_EQUAL(run("qstats", NULL), 1);
	CU_ASSERT_TRUE(says("qstats: no such operation"));
	CU_ASSERT_EQUAL(run("qinfo", NULL), 0);
	CU_ASSERT_EQUAL(answer.n, 1);
	CU_ASSERT_EQUAL(create("A"), 0);
	CU_ASSERT_EQUAL(create("A"), 1);
	CU_ASSERT_TRUE(says("queue A exists already in queue space S"));
	for (const char *n = "BCDE"; *n != '\0'; n++)
		CU_ASSERT_EQUAL(create((char[]){ *n, '\0' }), 0);
	CU_ASSERT_EQUAL(create("F"), 1);
	CU_ASSERT_TRUE(says("has its 5 queues already"));
	CU_ASSERT_EQUAL(run("qinfo", NULL), 0);
	CU_ASSERT_EQUAL(answer.n, 6);
	CU_ASSERT_STRING_EQUAL(value(1, "name"), "A");
	CU_ASSERT_STRING_EQUAL(value(5, "name"), "E");
	given_done();
}

static void
space_is_shown_as_it_was_created(void)
{
	given_space("ERR");
	CU_ASSERT_EQUAL(run("qopen", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "name"), "S");
	CU_ASSERT_EQUAL(run("qspacelist", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "ipckey"), "61000");
	CU_ASSERT_STRING_EQUAL(value(0, "pages"), "40000");
	CU_ASSERT_STRING_EQUAL(value(0, "errorq"), "ERR");
	CU_ASSERT_STRING_EQUAL(value(0, "nonpersistent"), "1048576");
	given_done();
}

static void
change_of_the_space_holds_at_once_and_after_a_restart(void)
{
	char *why = NULL;

	given_space("ERR");
	create("A");
	CU_ASSERT_EQUAL(run("qspacechange", "messages=2", "errorq=OTHER", "nonpersistent=100B", NULL), 0);
	CU_ASSERT_EQUAL(run("qaddext", "pages=40008", NULL), 0);
	CU_ASSERT_EQUAL(run("qaddext", "pages=5", NULL), 1);
	CU_ASSERT_TRUE(says("from 40008 on is expected"));
	CU_ASSERT_EQUAL(run("qspacechange", "trans=0", NULL), 1);
	CU_ASSERT_TRUE(says("trans \"0\""));
	CU_ASSERT_EQUAL(run("qspacechange", "blocking=0", NULL), 1505);
	put_many("A", 2);
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_enqueue(qs, NULL, "A", &(struct qmsg_in){ .type = "CARRAY", .subtype = "" },
	    (uint8_t[TMMSGIDLEN]){ 0 }), QMENOSPACE);
	qspace_batch_abort(qs);
	qspace_close(qs);
	CU_ASSERT_EQUAL_FATAL(qspace_open(dev, "S", NULL, &qs, &why), 0);
	CU_ASSERT_EQUAL(run("qspacelist", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "messages"), "2");
	CU_ASSERT_STRING_EQUAL(value(0, "errorq"), "OTHER");
	CU_ASSERT_STRING_EQUAL(value(0, "nonpersistent"), "51200");
	CU_ASSERT_STRING_EQUAL(value(0, "pages"), "40008");
	CU_ASSERT_STRING_EQUAL(value(0, "trans"), "10");
	given_done();
}

static void
queue_with_messages_is_destroyed_only_when_meant(void)
{
	struct branch *b;

	given_space("");
	create("A");
	put("A", "one");
	put("A", "two");
	CU_ASSERT_EQUAL(run("qdestroy", "name=A", NULL), 1);
	CU_ASSERT_TRUE(says("queue A: it has 2 messages; -p deletes them"));
	b = hold_first("A", "tx");
	CU_ASSERT_EQUAL(run("qdestroy", "name=A", "purge=y", NULL), 1);
	CU_ASSERT_TRUE(says("transactions that have not ended"));
	CU_ASSERT_EQUAL(messages("A"), 2);
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_branch_commit(qs, b), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	CU_ASSERT_EQUAL(run("qdestroy", "name=A", "purge=y", NULL), 0);
	CU_ASSERT_EQUAL(run("qset", "name=A", NULL), 1);
	CU_ASSERT_EQUAL(run("qdestroy", "name=A", NULL), 1);
	CU_ASSERT_TRUE(says("no such queue"));
	given_done();
}

/* The one who serves a space has others to serve (D9). */
static void
long_queue_is_destroyed_in_pieces(void)
{
	int calls = 0;

	given_space("");
	create("A");
	put_many("A", 1200);
	do {
		CU_ASSERT_EQUAL_FATAL(run("qdestroy", "name=A", "purge=y", NULL), 0);
		calls++;
	} while (value(0, "cursor") != NULL);
	CU_ASSERT_EQUAL(calls, 3);
	CU_ASSERT_EQUAL(run("qset", "name=A", NULL), 1);
	given_done();
}

/* --- messages --- */

static void
message_is_shown_with_what_its_sender_said(void)
{
	struct qmsg_in in = { .flags = TPQCORRID | TPQREPLYQ | TPQFAILUREQ | TPQPRIORITY | TPQDELIVERYQOS |
	    TPQEXPTIME_REL,
		.priority = 70, .delivery_qos = TPQQOSNONPERSISTENT, .exp_time = 100, .corrid = "order 7",
		    .replyqueue = "R",
		.failurequeue = "F", .type = "STRING", .subtype = "", .has_body = true, .body = "nails",
		    .body_len = 5 };

	given_space("");
	create("A");
	put("A", "plain");
	put_with("A", &in);
	CU_ASSERT_EQUAL(run("qlist", "queue=A", NULL), 0);
	CU_ASSERT_EQUAL_FATAL(answer.n, 3);
	CU_ASSERT_PTR_NULL(value(0, "cursor"));
	CU_ASSERT_STRING_EQUAL(value(1, "priority"), "50");
	CU_ASSERT_STRING_EQUAL(value(1, "length"), "5");
	CU_ASSERT_STRING_EQUAL(value(1, "retries"), "0");
	CU_ASSERT_STRING_EQUAL(value(1, "delivery"), "persistent");
	CU_ASSERT_STRING_EQUAL(value(1, "reply"), "default");
	CU_ASSERT_PTR_NULL(value(1, "corrid"));
	CU_ASSERT_PTR_NULL(value(1, "expires"));
	CU_ASSERT_PTR_NULL(value(1, "available"));
	CU_ASSERT_STRING_EQUAL(value(2, "priority"), "70");
	CU_ASSERT_STRING_EQUAL(value(2, "delivery"), "nonpersistent");
	CU_ASSERT_STRING_EQUAL(value(2, "corrid"), "order\\207");
	CU_ASSERT_STRING_EQUAL(value(2, "replyqueue"), "R");
	CU_ASSERT_STRING_EQUAL(value(2, "failurequeue"), "F");
	CU_ASSERT_STRING_EQUAL(value(2, "type"), "STRING");
	CU_ASSERT_PTR_NOT_NULL(value(2, "expires"));
	CU_ASSERT_EQUAL(run("qlist", "queue=A", "corrid=order\\207", NULL), 0);
	CU_ASSERT_EQUAL(answer.n, 2);
	CU_ASSERT_EQUAL(run("qlist", "queue=A", "priority=0", NULL), 1);
	CU_ASSERT_EQUAL(run("qlist", "queue=B", NULL), 1);
	CU_ASSERT_TRUE(says("queue B: no such queue"));
	CU_ASSERT_EQUAL(run("qlist", "queue=A", "cursor=nonsense", NULL), 1);
	CU_ASSERT_TRUE(says("cursor"));
	given_done();
}

/* Every message once, in the order of the queue, delayed ones last, however many pages it takes. */
static void
long_list_comes_in_pages(void)
{
	struct qmsg_in later = { .flags = TPQTIME_REL, .deq_time = 100, .type = "CARRAY", .subtype = "" };
	struct qmsg_in np = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT, .type = "CARRAY",
	    .subtype = "" };
	char cursor[400] = "", arg[420];
	int seen = 0, pages = 0, delayed = 0, nonpersistent = 0;
	int64_t last = 0;

	given_space("");
	create("A");
	put_many("A", 600);
	put_with("A", &later);
	put_with("A", &np);
	put_many("A", 600);
	do {
		snprintf(arg, sizeof arg, "cursor=%s", cursor);
		CU_ASSERT_EQUAL_FATAL(run("qlist", "queue=A", *cursor != '\0' ? arg : NULL, NULL), 0);
		pages++;
		CU_ASSERT_TRUE(answer.n <= 501);
		for (size_t i = 1; i < answer.n; i++, seen++) {
			int64_t when = atoll(value(i, "enqueued"));
			CU_ASSERT_EQUAL(delayed, 0);
			delayed += value(i, "available") != NULL;
			nonpersistent += strcmp(value(i, "delivery"), "nonpersistent") == 0;
			CU_ASSERT_TRUE(delayed || when >= last);
			last = when;
		}
		snprintf(cursor, sizeof cursor, "%s", value(0, "cursor") != NULL ? value(0, "cursor") : "");
	} while (*cursor != '\0');
	CU_ASSERT_EQUAL(pages, 3);
	CU_ASSERT_EQUAL(seen, 1202);
	CU_ASSERT_EQUAL(delayed, 1);
	CU_ASSERT_EQUAL(nonpersistent, 1);
	given_done();
}

static void
held_message_is_shown_but_not_deleted(void)
{
	struct branch *b;

	given_space("");
	create("A");
	put("A", "one");
	put("A", "two");
	b = hold_first("A", "tx");
	CU_ASSERT_EQUAL(run("qlist", "queue=A", NULL), 0);
	CU_ASSERT_EQUAL_FATAL(answer.n, 3);
	CU_ASSERT_STRING_EQUAL(value(1, "held"), "yes");
	CU_ASSERT_PTR_NULL(value(2, "held"));
	CU_ASSERT_EQUAL(run("qdeletemsg", "queue=A", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "deleted"), "1");
	CU_ASSERT_STRING_EQUAL(value(0, "held"), "1");
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_branch_rollback(qs, b), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	CU_ASSERT_EQUAL(run("qlist", "queue=A", NULL), 0);
	CU_ASSERT_EQUAL_FATAL(answer.n, 2);
	CU_ASSERT_STRING_EQUAL(value(1, "retries"), "1");
	CU_ASSERT_PTR_NOT_NULL(value(1, "available"));		/* the retry delay runs */
	CU_ASSERT_EQUAL(run("qdeletemsg", "queue=A", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "deleted"), "1");
	CU_ASSERT_EQUAL(messages("A"), 0);
	given_done();
}

/* What arrives while a queue is being cleared stays, and every deleted one is named. */
static void
only_what_is_reported_deleted_vanishes(void)
{
	char cursor[400] = "", arg[420];
	long deleted = 0, named = 0;

	given_space("");
	create("A");
	put_many("A", 1100);
	do {
		snprintf(arg, sizeof arg, "cursor=%s", cursor);
		CU_ASSERT_EQUAL_FATAL(run("qdeletemsg", "queue=A", *cursor != '\0' ? arg : NULL, NULL), 0);
		deleted += atol(value(0, "deleted"));
		named += (long)answer.n - 1;
		snprintf(cursor, sizeof cursor, "%s", value(0, "cursor") != NULL ? value(0, "cursor") : "");
		if (*cursor != '\0')
			put_many("A", 10);
	} while (*cursor != '\0');
	CU_ASSERT_EQUAL(deleted, 1100);
	CU_ASSERT_EQUAL(named, 1100);
	CU_ASSERT_EQUAL(messages("A"), 20);
	given_done();
}

static void
criteria_choose_what_is_deleted(void)
{
	struct qmsg_in in = { .flags = TPQPRIORITY, .priority = 90, .type = "CARRAY", .subtype = "" };

	given_space("");
	create("A");
	put("A", "stays");
	put_with("A", &in);
	CU_ASSERT_EQUAL(run("qdeletemsg", "queue=A", "priority=60-100", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "deleted"), "1");
	CU_ASSERT_EQUAL(messages("A"), 1);
	CU_ASSERT_EQUAL(run("qdeletemsg", "queue=A", "priority=60-100", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(0, "deleted"), "0");
	given_done();
}

static void
ipcrm_takes_nonpersistent_messages_alone(void)
{
	struct qmsg_in np = { .flags = TPQDELIVERYQOS, .delivery_qos = TPQQOSNONPERSISTENT, .type = "CARRAY",
	    .subtype = "" };
	long deleted = 0;

	given_space("");
	create("A");
	create("B");
	put("A", "stays");
	put_with("A", &np);
	put_with("B", &np);
	do {
		CU_ASSERT_EQUAL_FATAL(run("ipcrm", NULL), 0);
		deleted += atol(value(0, "deleted"));
	} while (value(0, "cursor") != NULL);
	CU_ASSERT_EQUAL(deleted, 2);
	CU_ASSERT_EQUAL(messages("A"), 1);
	CU_ASSERT_EQUAL(messages("B"), 0);
	given_done();
}

/* --- transactions --- */

static const char *	/* of transaction `gtrid` in the latest answer */
of(const char *gtrid, const char *key)
{
	for (size_t i = 1; i < answer.n; i++)
		if (value(i, "gtrid") != NULL && strcmp(value(i, "gtrid"), gtrid) == 0)
			return value(i, key) != NULL ? value(i, key) : "";
	return "not listed";
}

static const char *
state_of(const char *gtrid)
{
	CU_ASSERT_EQUAL(run("qprinttrans", NULL), 0);
	return of(gtrid, "state");
}

static void
prepare(struct branch *b, const char *coordinator)
{
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_branch_prepare(qs, b, coordinator), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
}

static void
put_in(struct branch *b, const char *queue, int n)
{
	struct qmsg_in in = { .type = "STRING", .subtype = "", .has_body = true, .body = "x", .body_len = 1 };
	uint8_t msgid[TMMSGIDLEN];

	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(qspace_enqueue(qs, b, queue, &in, msgid), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
}

static void
reopen(void)
{
	char *why = NULL;

	qspace_close(qs);
	CU_ASSERT_EQUAL_FATAL(qspace_open(dev, "S", NULL, &qs, &why), 0);
}

/* Who has what, of which queue, since when. */
static void
transaction_is_listed_with_all_it_holds(void)
{
	struct branch *b;

	given_space("");
	create("A");
	create("B");
	put("A", "one");
	b = hold_first("A", "tx1");
	qspace_branch_set_owner(b, "process 5 of user 7");
	put_in(b, "B", 3);
	put_in(b, "A", 1);
	CU_ASSERT_EQUAL(run("qprinttrans", NULL), 0);
	CU_ASSERT_EQUAL_FATAL(answer.n, 2);
	CU_ASSERT_PTR_NULL(value(0, "cursor"));
	CU_ASSERT_STRING_EQUAL(value(1, "gtrid"), "747831");
	CU_ASSERT_STRING_EQUAL(value(1, "state"), "active");
	CU_ASSERT_STRING_EQUAL(value(1, "owner"), "process 5 of user 7");
	CU_ASSERT_STRING_EQUAL(value(1, "enqueues"), "4");
	CU_ASSERT_STRING_EQUAL(value(1, "dequeues"), "1");
	CU_ASSERT_STRING_EQUAL(value(1, "queue.0"), "A");
	CU_ASSERT_STRING_EQUAL(value(1, "enqueues.0"), "1");
	CU_ASSERT_STRING_EQUAL(value(1, "dequeues.0"), "1");
	CU_ASSERT_STRING_EQUAL(value(1, "queue.1"), "B");
	CU_ASSERT_STRING_EQUAL(value(1, "enqueues.1"), "3");
	CU_ASSERT_STRING_EQUAL(value(1, "dequeues.1"), "0");
	CU_ASSERT_PTR_NULL(value(1, "queue.2"));
	CU_ASSERT_STRING_EQUAL(value(1, "age"), "0");
	CU_ASSERT_PTR_NULL(value(1, "left"));		/* it has no deadline */
	CU_ASSERT_PTR_NULL(value(1, "doomed"));
	qspace_branch_doom(b);
	CU_ASSERT_EQUAL(run("qprinttrans", "gtrid=747831", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(1, "doomed"), "yes");
	CU_ASSERT_EQUAL(run("qlist", "queue=A", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(1, "holder"), "747831");
	qspace_branch_close(b);
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "deciding");
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747831", "active=y", NULL), 1);
	CU_ASSERT_EQUAL(run("qprinttrans", "gtrid=747839", NULL), 1);
	CU_ASSERT_TRUE(says("none such in queue space S"));
	given_done();
}

static void
active_transaction_is_rolled_back_only_when_that_is_said(void)
{
	given_space("");
	create("A");
	put("A", "one");
	hold_first("A", "tx1");
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_TRUE(says("is not in doubt"));
	CU_ASSERT_EQUAL(run("qcommittrans", "gtrid=747831", "active=y", NULL), 1);
	CU_ASSERT_EQUAL(run("qforgettrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747831", "active=y", NULL), 0);
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "not listed");	/* nothing to remember: it had not voted */
	CU_ASSERT_EQUAL(messages("A"), 1);
	given_done();
}

/* Ended, remembered over a restart, and forgotten by hand when nobody asks. */
static void
transaction_in_doubt_is_ended_by_hand(void)
{
	given_space("");
	create("A");
	put("A", "one");
	put("A", "two");
	prepare(hold_first("A", "tx1"), "QUE1");
	prepare(hold_first("A", "tx2"), "QUE1");
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "prepared");
	CU_ASSERT_STRING_EQUAL(of("747831", "coordinator"), "QUE1");
	CU_ASSERT_EQUAL(run("qforgettrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_TRUE(says("was not ended by an administrator: it is prepared"));
	CU_ASSERT_EQUAL(run("qcommittrans", "gtrid=747831", NULL), 0);
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747832", NULL), 0);
	CU_ASSERT_EQUAL(messages("A"), 1);
	reopen();
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "heuristically committed");
	CU_ASSERT_STRING_EQUAL(of("747832", "state"), "heuristically rolled back");
	CU_ASSERT_STRING_EQUAL(of("747832", "dequeues"), "0");
	CU_ASSERT_EQUAL(messages("A"), 1);
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_TRUE(says("is heuristically committed already"));
	CU_ASSERT_EQUAL(run("qforgettrans", "gtrid=747831", NULL), 0);
	CU_ASSERT_EQUAL(run("qforgettrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_TRUE(says("none such in queue space S"));
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "not listed");
	CU_ASSERT_EQUAL(run("qcommittrans", "gtrid=zz", NULL), 1);
	reopen();
	CU_ASSERT_EQUAL(run("qprinttrans", NULL), 0);
	CU_ASSERT_EQUAL(answer.n, 2);
	given_done();
}

/* What this space decided for others is listed until they have heard, is not undone, and can be given up. */
static void
decision_is_listed_and_can_be_given_up(void)
{
	struct branch_id id = { .len = 3, .gtrid = "tx1" };
	struct wire_groups groups = { 2, { "QUE2", "QUE3" } };

	given_space("");
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	CU_ASSERT_EQUAL(qspace_decision_put(qs, &id, &groups), 0);
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "decided");
	CU_ASSERT_STRING_EQUAL(of("747831", "groups"), "QUE2 QUE3");
	CU_ASSERT_EQUAL(run("qprinttrans", "gtrid=747831", NULL), 0);
	CU_ASSERT_STRING_EQUAL(value(1, "state"), "decided");
	CU_ASSERT_EQUAL(run("qaborttrans", "gtrid=747831", NULL), 1);
	CU_ASSERT_TRUE(says("was decided here: it is committed"));
	CU_ASSERT_EQUAL(run("qforgettrans", "gtrid=747831", NULL), 0);
	CU_ASSERT_STRING_EQUAL(state_of("747831"), "not listed");
	given_done();
}

/* Page by page, each once, in the order of their begin, whatever ends and begins between two pages. */
static void
many_transactions_are_listed_in_pages(void)
{
	enum { BRANCHES = 1200, DECISIONS = 700 };
	static char seen[BRANCHES + DECISIONS];
	struct wire_groups groups = { 1, { "QUE2" } };
	char cursor[400] = "", arg[420], last[80] = "";
	struct branch_id id = { .len = 4 };
	struct branch *b;
	int pages = 0, n;

	given_space("");
	memset(seen, 0, sizeof seen);
	run("qspacechange", "trans=5000", NULL);
	CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
	for (int i = 0; i < BRANCHES + DECISIONS; i++) {
		int k = i < BRANCHES ? i * 7 % BRANCHES : i;	/* not in the order in which they are listed */
		snprintf((char *)id.gtrid, sizeof id.gtrid, "%04d", k);
		CU_ASSERT_EQUAL(i < BRANCHES ? qspace_branch_begin(qs, &id, 0, &b) : qspace_decision_put(qs, &id, &groups), 0);
	}
	CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	do {
		snprintf(arg, sizeof arg, "cursor=%s", cursor);
		CU_ASSERT_EQUAL_FATAL(run("qprinttrans", *cursor != '\0' ? arg : NULL, NULL), 0);
		CU_ASSERT_TRUE(answer.n <= 501);
		for (size_t i = 1; i < answer.n; i++) {
			const char *gtrid = value(i, "gtrid");
			CU_ASSERT_TRUE(strcmp(last, gtrid) < 0);
			snprintf(last, sizeof last, "%s", gtrid);
			n = (gtrid[1] - '0') * 1000 + (gtrid[3] - '0') * 100 + (gtrid[5] - '0') * 10 + (gtrid[7] - '0');
			seen[n]++;
		}
		snprintf(cursor, sizeof cursor, "%s", value(0, "cursor") != NULL ? value(0, "cursor") : "");
		snprintf((char *)id.gtrid, sizeof id.gtrid, "%04d", 3 + 500 * pages++);	/* one that was shown, and one to come, end */
		CU_ASSERT_EQUAL(qspace_batch_begin(qs), 0);
		if ((b = qspace_branch_find(qs, &id)) != NULL)
			CU_ASSERT_EQUAL(qspace_branch_rollback(qs, b), 0);
		CU_ASSERT_EQUAL(qspace_batch_commit(qs), 0);
	} while (*cursor != '\0' && pages < 20);
	CU_ASSERT_EQUAL(pages, 4);
	for (int i = 0; i < BRANCHES + DECISIONS; i++)
		CU_ASSERT_EQUAL(seen[i], 1);
	CU_ASSERT_EQUAL(run("qprinttrans", "cursor=x", NULL), 1);
	CU_ASSERT_TRUE(says("the cursor is not one of transactions"));
	given_done();
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(queue_is_shown_as_it_was_created),
	    UNIT(change_keeps_what_is_not_named),
		UNIT(refusals_have_their_numbers_and_change_nothing), UNIT(space_is_shown_as_it_was_created),
		UNIT(change_of_the_space_holds_at_once_and_after_a_restart),
		UNIT(queue_with_messages_is_destroyed_only_when_meant), UNIT(long_queue_is_destroyed_in_pieces),
		UNIT(message_is_shown_with_what_its_sender_said), UNIT(long_list_comes_in_pages),
		UNIT(held_message_is_shown_but_not_deleted), UNIT(only_what_is_reported_deleted_vanishes),
		UNIT(criteria_choose_what_is_deleted), UNIT(ipcrm_takes_nonpersistent_messages_alone),
		UNIT(transaction_is_listed_with_all_it_holds), UNIT(active_transaction_is_rolled_back_only_when_that_is_said),
		UNIT(transaction_in_doubt_is_ended_by_hand), UNIT(decision_is_listed_and_can_be_given_up),
		UNIT(many_transactions_are_listed_in_pages) };

	return unit_run("queue administration", tests, UNIT_COUNT(tests));
}
