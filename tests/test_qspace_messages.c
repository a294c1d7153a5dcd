/*
 * Messages: what is put is got, in the queue's order, by identifier, after a restart.
 */
#include "given_space.h"

#include <dirent.h>

static void
first_in_first_out(void)
{
	struct given_space *g = given_space(NULL);

	create_fifo(g, "orders", 0, 0);
	CU_ASSERT_EQUAL(put(g, "orders", "one"), 0);
	CU_ASSERT_EQUAL(put(g, "orders", "two"), 0);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "two");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(put(g, "nowhere", "x"), QMEBADQUEUE);
	given_done(g);
}

static void
a_restart_keeps_messages_counters_and_order(void)
{
	struct given_space *g = given_space(NULL);
	char body[32];

	create_fifo(g, "orders", 0, 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(body, sizeof body, "message %d", i);
		CU_ASSERT_EQUAL(put(g, "orders", body), 0);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "message 0");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 2999);
	reopen(g);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 2999);
	for (int i = 1; i < 3000; i++) {
		snprintf(body, sizeof body, "message %d", i);
		CU_ASSERT_STRING_EQUAL(next(g, "orders"), body);
	}
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	CU_ASSERT_EQUAL(stat_of(g, "orders").bytes, 0);
	given_done(g);
}

static void	/* Whatever the order of arrival, and more of them than a window holds. */
priorities_are_strict(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("jobs", QC_PRIORITY, QC_FIFO, 0, 0);
	struct qmsg_in in = text("x");
	struct qmsg *m;
	int last = 101, n = 0;
	unsigned r = 1;

	create(g, &p);
	in.flags = TPQPRIORITY;
	for (int i = 0; i < 3000; i++) {
		r = r * 1103515245 + 12345;
		in.priority = 1 + (int)(r >> 16) % 100;
		CU_ASSERT_EQUAL(put_in(g, NULL, "jobs", in, NULL), 0);
		if (i % 700 == 0) {
			CU_ASSERT_EQUAL_FATAL(take(g, NULL, "jobs", NULL, &m), 0);
			qmsg_free(m);
			n++;
		}
	}
	reopen(g);
	for (; take(g, NULL, "jobs", NULL, &m) == 0; n++) {
		CU_ASSERT_TRUE(m->priority <= last);
		CU_ASSERT_TRUE(m->flags & TPQPRIORITY);
		last = m->priority;
		qmsg_free(m);
	}
	CU_ASSERT_EQUAL(n, 3000);
	given_done(g);
}

static void
last_in_first_out(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("stack", QC_LIFO, 0, 0, 0);

	create(g, &p);
	put(g, "stack", "one");
	put(g, "stack", "two");
	CU_ASSERT_STRING_EQUAL(next(g, "stack"), "two");
	put(g, "stack", "three");
	CU_ASSERT_STRING_EQUAL(next(g, "stack"), "three");
	CU_ASSERT_STRING_EQUAL(next(g, "stack"), "one");
	given_done(g);
}

static void
top_and_before_go_where_they_say(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in;
	uint8_t b[TMMSGIDLEN], x[TMMSGIDLEN];

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "a");
	put_in(g, NULL, "orders", text("b"), b);
	put(g, "orders", "c");
	in = text("before b");
	in.flags = TPQBEFOREMSGID;
	memcpy(in.msgid, b, sizeof b);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, x), 0);
	in = text("before before b");
	in.flags = TPQBEFOREMSGID;
	memcpy(in.msgid, x, sizeof x);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	in = text("top");
	in.flags = TPQTOP;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	reopen(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "top");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "a");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "before before b");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "before b");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "b");
	in = text("late");
	in.flags = TPQBEFOREMSGID;
	memcpy(in.msgid, b, sizeof b);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMEBADMSGID);
	memset(in.msgid, 0, sizeof in.msgid);
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMEBADMSGID);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "c");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void
bad_combinations_store_nothing(void)
{
	static const struct { uint32_t flags; int64_t deq, exp; int32_t priority, qos; } bad[] = {
		{ TPQTOP | TPQBEFOREMSGID, 0, 0, 0, 0 }, { TPQTIME_ABS | TPQTIME_REL, 1, 0, 0, 0 },
		{ TPQEXPTIME_ABS | TPQEXPTIME_REL, 0, 1, 0, 0 }, { TPQEXPTIME_NONE | TPQEXPTIME_REL, 0, 1, 0, 0 },
		{ TPQPRIORITY, 0, 0, 0, 0 }, { TPQPRIORITY, 0, 0, 101, 0 }, { TPQTIME_REL, -1, 0, 0, 0 },
		{ TPQEXPTIME_REL, 0, -1, 0, 0 }, { TPQDELIVERYQOS, 0, 0, 0, 0 }, { TPQDELIVERYQOS, 0, 0, 0, 3 },
		{ TPQTOP, 0, 0, 0, 0 }, { TPQBEFOREMSGID, 0, 0, 0, 0 },		/* the queue forbids these */
	};
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("orders", QC_FIFO, 0, 0, 0);
	struct qmsg_in in = text("x");

	p.top = p.msgid = false;
	create(g, &p);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		in.flags = bad[i].flags;
		in.deq_time = bad[i].deq;
		in.exp_time = bad[i].exp;
		in.priority = bad[i].priority;
		in.delivery_qos = bad[i].qos;
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), QMEINVAL);
	}
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 0);
	in = text("bits of the other call mean nothing here");
	in.flags = TPQWAIT | TPQPEEK | TPQGETBYMSGID | TPQGETBYCORRID | TPQMSGID;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	given_done(g);
}

static void
by_identifier_and_by_correlation(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect sel = { .flags = TPQGETBYMSGID };
	struct qmsg_in in = text("answer 1");
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	create_fifo(g, "replies", 0, 0);
	create_fifo(g, "other", 0, 0);
	put(g, "replies", "first");
	in.flags = TPQCORRID;
	memset(in.corrid, 'c', sizeof in.corrid);
	CU_ASSERT_EQUAL(put_in(g, NULL, "replies", in, id), 0);
	in.body = "answer 2";
	CU_ASSERT_EQUAL(put_in(g, NULL, "replies", in, NULL), 0);
	put(g, "replies", "last");
	reopen(g);
	memcpy(sel.msgid, id, sizeof id);
	CU_ASSERT_EQUAL(take(g, NULL, "other", &sel, &m), QMENOMSG);
	sel.flags = TPQGETBYMSGID | TPQPEEK;
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "replies", &sel, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "answer 1");
	CU_ASSERT_EQUAL(memcmp(m->msgid, id, sizeof id), 0);
	qmsg_free(m);
	sel.flags = TPQGETBYMSGID | TPQGETBYCORRID;
	memset(sel.corrid, 'd', sizeof sel.corrid);
	CU_ASSERT_EQUAL(take(g, NULL, "replies", &sel, &m), QMENOMSG);
	sel.flags = TPQGETBYCORRIDOLD;
	memset(sel.corrid, 'c', sizeof sel.corrid);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "replies", &sel, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "answer 1");
	qmsg_free(m);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "replies", &sel, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "answer 2");
	qmsg_free(m);
	CU_ASSERT_EQUAL(take(g, NULL, "replies", &sel, &m), QMENOMSG);
	sel.flags = TPQGETBYMSGIDOLD;
	CU_ASSERT_EQUAL(take(g, NULL, "replies", &sel, &m), QMENOMSG);
	memset(sel.msgid, 0, sizeof sel.msgid);
	CU_ASSERT_EQUAL(take(g, NULL, "replies", &sel, &m), QMEBADMSGID);
	CU_ASSERT_STRING_EQUAL(next(g, "replies"), "first");
	CU_ASSERT_STRING_EQUAL(next(g, "replies"), "last");
	given_done(g);
}

static void
a_message_of_another_type_stays(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect sel = { .only_type = true, .type = "CARRAY", .subtype = "" };
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "text");
	CU_ASSERT_EQUAL(take(g, NULL, "orders", &sel, &m), QMETYPE);
	CU_ASSERT_PTR_NULL(m);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "text");
	given_done(g);
}

static void
a_message_without_data_is_of_no_type(void)
{
	struct given_space *g = given_space(NULL);
	struct qselect sel = { .only_type = true, .type = "CARRAY", .subtype = "" };
	struct qmsg_in in = text("");
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	in.has_body = false;
	in.body_len = 0;
	in.type = "";
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", &sel, &m), 0);
	CU_ASSERT_FALSE(m->has_body);
	qmsg_free(m);
	given_done(g);
}

static void
empty_and_large_bodies_and_everything_the_sender_gave(void)
{
	struct given_space *g = given_space(NULL);
	size_t sizes[] = { 0, 1, 511, 512, 513, 4000, 4096, 70000, 3000000 };
	char *big = malloc(3000000);
	struct qmsg_in in = { .type = "CARRAY",
		.subtype = "sub",
		.has_body = true,
		.urcode = -7,
		.cltid = { 1, 2, 3, 4 },
		.appkey = 5,
		.flags = TPQREPLYQ | TPQFAILUREQ | TPQREPLYQOS,
		.replyqueue = "R",
		.failurequeue = "F",
		.reply_qos = TPQQOSPERSISTENT };
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	for (size_t i = 0; i < 3000000; i++)
		big[i] = (char)(i * 7 + i / 1000);
	in.body = big;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		in.body_len = sizes[i];
		CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	}
	in.has_body = false;
	CU_ASSERT_EQUAL(put_in(g, NULL, "orders", in, NULL), 0);
	reopen(g);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
		CU_ASSERT_TRUE(m->has_body);
		CU_ASSERT_EQUAL(m->body_len, sizes[i]);
		CU_ASSERT_TRUE(sizes[i] == 0 || memcmp(m->body, big, sizes[i]) == 0);
		CU_ASSERT_EQUAL(m->urcode, -7);
		CU_ASSERT_EQUAL(m->cltid[3], 4);
		CU_ASSERT_EQUAL(m->appkey, 5);
		CU_ASSERT_STRING_EQUAL(m->replyqueue, "R");
		CU_ASSERT_STRING_EQUAL(m->failurequeue, "F");
		CU_ASSERT_STRING_EQUAL(m->type, "CARRAY");
		CU_ASSERT_STRING_EQUAL(m->subtype, "sub");
		CU_ASSERT_EQUAL(m->flags & ~(uint32_t)TPQMSGID, TPQREPLYQ | TPQFAILUREQ | TPQREPLYQOS);
		CU_ASSERT_EQUAL(m->priority, 50);
		qmsg_free(m);
	}
	CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_FALSE(m->has_body);
	qmsg_free(m);
	free(big);
	given_done(g);
}

static void
an_aborted_batch_changes_nothing(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("never");
	struct queue_params p = queue_of("new", QC_FIFO, 0, 0, 0);
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	put(g, "orders", "one");
	begin(g);
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	CU_ASSERT_EQUAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
	qmsg_free(m);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &p), 0);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "orders", true), 0);
	qspace_batch_abort(g->qs);
	CU_ASSERT_EQUAL(stat_of(g, "orders").messages, 1);
	CU_ASSERT_EQUAL(qspace_queue_get(g->qs, "new", NULL, NULL), QMEBADQUEUE);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "one");
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	given_done(g);
}

static void	/* Enqueued and dequeued in one batch: both are durable together. */
one_batch_may_do_both(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("swift");
	struct qspace_counts a, b;
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	create_fifo(g, "orders", 0, 0);
	qspace_counts(g->qs, &a);
	begin(g);
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	CU_ASSERT_EQUAL_FATAL(qspace_dequeue(g->qs, NULL, "orders", NULL, &m), 0);
	CU_ASSERT_STRING_EQUAL((const char *)m->body, "swift");
	qmsg_free(m);
	commit(g);
	CU_ASSERT_STRING_EQUAL(next(g, "orders"), "");
	qspace_counts(g->qs, &b);
	CU_ASSERT_EQUAL(b.flushes - a.flushes, 1);	/* looking at an empty queue costs none */
	given_done(g);
}

static void
queues_are_made_changed_listed_and_destroyed(void)
{
	struct given_space *g = given_space(NULL);
	struct queue_params p = queue_of("a", QC_TIME, QC_LIFO, 0, 0), back;

	create(g, &p);
	create_fifo(g, "b", 3, 60);
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &p), QMEBADQUEUE);
	p.order[0] = QC_FIFO;
	snprintf(p.name, sizeof p.name, "c");
	CU_ASSERT_EQUAL(qspace_queue_create(g->qs, &p), QMEINVAL);	/* fifo, lifo */
	commit(g);
	put(g, "b", "x");
	CU_ASSERT_EQUAL(qspace_queue_get(g->qs, "b", &back, NULL), 0);
	back.retries = 9;
	snprintf(back.persistent.cmd, sizeof back.persistent.cmd, "echo full");
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_change(g->qs, &back), 0);
	commit(g);
	reopen(g);
	CU_ASSERT_EQUAL(qspace_queue_get(g->qs, "b", &back, NULL), 0);
	CU_ASSERT_EQUAL(back.retries, 9);
	CU_ASSERT_EQUAL(back.retry_delay, 60);
	CU_ASSERT_STRING_EQUAL(back.persistent.cmd, "echo full");
	CU_ASSERT_STRING_EQUAL(qspace_queue_next(g->qs, NULL), "a");
	CU_ASSERT_STRING_EQUAL(qspace_queue_next(g->qs, "a"), "b");
	CU_ASSERT_PTR_NULL(qspace_queue_next(g->qs, "b"));
	begin(g);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "b", false), QMEINUSE);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "b", true), 0);
	CU_ASSERT_EQUAL(qspace_queue_destroy(g->qs, "z", true), QMEBADQUEUE);
	commit(g);
	reopen(g);
	CU_ASSERT_PTR_NULL(qspace_queue_next(g->qs, "a"));
	create_fifo(g, "b", 0, 0);
	CU_ASSERT_STRING_EQUAL(next(g, "b"), "");
	given_done(g);
}


static int
segment_files(const struct given_space *g)
{
	char cmd[256];
	int n = -1;
	FILE *f;

	snprintf(cmd, sizeof cmd, "ls %s.d/QS | grep -c '^messages'", g->device);
	if ((f = popen(cmd, "r")) != NULL) {
		if (fscanf(f, "%d", &n) != 1)
			n = -1;
		pclose(f);
	}
	return n;
}

extern unsigned segments_open_max;

static int	/* of this process, for segments */
open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char to[512];
	ssize_t len;
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	while ((e = readdir(d)) != NULL)
		if ((len = readlinkat(dirfd(d), e->d_name, to, sizeof to - 1)) > 0) {
			to[len] = '\0';
			n += strstr(to, "/messages.") != NULL;
		}
	closedir(d);
	return n;
}

static void	/* Hundreds of MB in and out: the room is used again, given back in the end, and every body is right. */
segments_fill_and_empty(void)
{
	struct qspace_params p = given_params("QS");
	struct given_space *g;
	char *body = malloc(200000);
	struct qmsg_in in = text("");
	int made = 0, taken = 0, files, most = 0, open_files;
	unsigned usual = segments_open_max;
	uint8_t id[TMMSGIDLEN];
	struct qmsg *m;

	p.pages = 2000000;
	g = given_space(&p);
	create_fifo(g, "orders", 0, 0);
	memset(body, 'b', 200000);
	in.body = body;
	in.body_len = 200000;
	segments_open_max = 2;
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 60; i++) {		/* 12 MB a batch, more than a segment in all */
			begin(g);
			for (int k = 0; k < 10; k++) {
				snprintf(body, 200000, "%d", made++);
				CU_ASSERT_EQUAL_FATAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
			}
			commit(g);
		}
		if (round == 2)
			reopen(g);
		for (int i = 0; i < (round == 5 ? made : 500) && taken < made; i++) {
			CU_ASSERT_EQUAL_FATAL(take(g, NULL, "orders", NULL, &m), 0);
			CU_ASSERT_EQUAL(m->body_len, 200000);
			CU_ASSERT_EQUAL(atoi((const char *)m->body), taken++);
			CU_ASSERT_EQUAL(m->body[199999], 'b');
			qmsg_free(m);
		}
		begin(g);
		commit(g);
		files = segment_files(g);
		most = files > most ? files : most;
		for (int i = 0; (open_files = open_descriptors()) > 2 && i < 500; i++)	/* a checkpoint opens some for itself */
			usleep(10000);
		CU_ASSERT_TRUE(open_files >= 1 && open_files <= 2);
	}
	CU_ASSERT_TRUE(most > 3);
	segments_open_max = usual;
	CU_ASSERT_EQUAL(taken, made);
	for (int i = 0; i < 100 && segment_files(g) > 3; i++) {
		begin(g);
		commit(g);
		usleep(50000);
	}
	files = segment_files(g);
	CU_ASSERT_TRUE(files >= 1 && files <= 3);
	free(body);
	given_done(g);
}

static int eligible_n;
static char eligible_queue[64];
static bool eligible_corrid;

static void
on_eligible(void *arg, const char *queue, const uint8_t *msgid, const uint8_t *corrid)
{
	(void)arg, (void)msgid;
	eligible_n++;
	eligible_corrid = corrid != NULL;
	snprintf(eligible_queue, sizeof eligible_queue, "%s", queue);
}

static void
whoever_waits_is_told_after_the_commit(void)
{
	struct given_space *g = given_space(NULL);
	struct qmsg_in in = text("x");
	uint8_t id[TMMSGIDLEN];
	struct branch *b;

	create_fifo(g, "orders", 5, 0);
	qspace_on_eligible(g->qs, on_eligible, NULL);
	eligible_n = 0;
	in.flags = TPQCORRID;
	begin(g);
	CU_ASSERT_EQUAL(qspace_enqueue(g->qs, NULL, "orders", &in, id), 0);
	CU_ASSERT_EQUAL(eligible_n, 0);
	commit(g);
	CU_ASSERT_EQUAL(eligible_n, 1);
	CU_ASSERT_TRUE(eligible_corrid);
	CU_ASSERT_STRING_EQUAL(eligible_queue, "orders");
	CU_ASSERT_TRUE(qspace_has_eligible(g->qs, "orders"));
	b = tx(g, "t1");
	CU_ASSERT_STRING_EQUAL(next_in(g, b, "orders"), "x");
	CU_ASSERT_FALSE(qspace_has_eligible(g->qs, "orders"));
	tx_roll_back(g, b);
	CU_ASSERT_EQUAL(eligible_n, 2);
	CU_ASSERT_TRUE(qspace_has_eligible(g->qs, "orders"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(first_in_first_out),
		UNIT(a_restart_keeps_messages_counters_and_order),
		UNIT(priorities_are_strict),
		UNIT(last_in_first_out),
		UNIT(top_and_before_go_where_they_say),
		UNIT(bad_combinations_store_nothing),
		UNIT(by_identifier_and_by_correlation),
		UNIT(a_message_of_another_type_stays),
		UNIT(a_message_without_data_is_of_no_type),
		UNIT(empty_and_large_bodies_and_everything_the_sender_gave),
		UNIT(an_aborted_batch_changes_nothing),
		UNIT(one_batch_may_do_both),
		UNIT(queues_are_made_changed_listed_and_destroyed),
		UNIT(whoever_waits_is_told_after_the_commit),
		UNIT_LONG(segments_fill_and_empty),
	};
	return unit_run("qspace messages", tests, UNIT_COUNT(tests));
}
