/*
 * story_xa_foreign - one transaction over a queue space of ours and a resource manager that is not: Berkeley DB, which has an
 * XA switch of its own.
 */
#include "given_xa.h"

#include <db.h>
#include <sys/stat.h>

extern struct xa_switch_t db_xa_switch;

#define QUEUES "qcreate ORDERS fifo none 5 0 100% 0% \"\"\n"
enum { QUEUE_SPACE = 1, DATABASE = 2 };

static DB *db;
static char home[4200];

static struct given *
given_both(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUES });

	CU_ASSERT_EQUAL_FATAL(xa_open(xa_info(given_dir(g), 1), QUEUE_SPACE, TMNOFLAGS), XA_OK);
	snprintf(home, sizeof home, "%s/database", given_dir(g));
	mkdir(home, 0700);
	CU_ASSERT_EQUAL_FATAL(db_xa_switch.xa_open_entry(home, DATABASE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL_FATAL(db_create(&db, NULL, DB_XA_CREATE), 0);
	CU_ASSERT_EQUAL_FATAL(db->open(db, NULL, "orders.db", NULL, DB_BTREE, DB_CREATE | DB_AUTO_COMMIT, 0600), 0);
	return g;
}

static void
both_done(struct given *g)
{
	db->close(db, 0);
	CU_ASSERT_EQUAL(db_xa_switch.xa_close_entry(home, DATABASE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_close(QUEUE_SPACE, TMNOFLAGS), XA_OK);
	given_done(g);
}

static void
row_put(const char *text)
{
	DBT key = { .data = "order", .size = 5 }, value = { .data = (char *)text, .size = (u_int32_t)strlen(text) + 1 };

	CU_ASSERT_EQUAL(db->put(db, NULL, &key, &value, 0), 0);
}

static bool
row_is(const char *text)		/* NULL: not there */
{
	DBT key = { .data = "order", .size = 5 }, value = { .flags = DB_DBT_MALLOC };
	int rc = db->get(db, NULL, &key, &value, 0);
	bool yes = text == NULL ? rc == DB_NOTFOUND : rc == 0 && strcmp(value.data, text) == 0;

	free(value.data);
	return yes;
}

/* A message becomes a row. */
static void
work(XID *q, XID *d)
{
	char got[64] = "";

	CU_ASSERT_EQUAL(xa_start(q, QUEUE_SPACE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(db_xa_switch.xa_start_entry(d, DATABASE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(xa_take(1, "ORDERS", got), 0);
	row_put(got);
	CU_ASSERT_EQUAL(db_xa_switch.xa_end_entry(d, DATABASE, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_end(q, QUEUE_SPACE, TMSUCCESS), XA_OK);
	CU_ASSERT_EQUAL(xa_prepare(q, QUEUE_SPACE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(db_xa_switch.xa_prepare_entry(d, DATABASE, TMNOFLAGS), XA_OK);
}

static void
a_message_becomes_a_row_or_stays_a_message(void)
{
	struct given *g = given_both();
	XID q = xa_id("both", "queue"), d = xa_id("both", "data"), q2 = xa_id("both again", "queue"), d2 = xa_id("both again", "data");
	char got[64];

	CU_ASSERT_EQUAL(xa_put(1, "ORDERS", "nails"), 0);
	work(&q, &d);
	CU_ASSERT_EQUAL(xa_rollback(&q, QUEUE_SPACE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(db_xa_switch.xa_rollback_entry(&d, DATABASE, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(row_is(NULL));
	CU_ASSERT_TRUE(peeks("ORDERS", "nails"));
	work(&q2, &d2);
	CU_ASSERT_EQUAL(xa_commit(&q2, QUEUE_SPACE, TMNOFLAGS), XA_OK);
	CU_ASSERT_EQUAL(db_xa_switch.xa_commit_entry(&d2, DATABASE, TMNOFLAGS), XA_OK);
	CU_ASSERT_TRUE(row_is("nails"));
	CU_ASSERT_EQUAL(xa_take(1, "ORDERS", got), QMENOMSG);
	both_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(a_message_becomes_a_row_or_stays_a_message) };

	return unit_run("story: XA beside a foreign resource manager", tests, UNIT_COUNT(tests));
}
