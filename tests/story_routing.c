/*
 * story_routing - one name for several groups: which of them a request or a message goes to, by ROUTING and without.
 */
#include "given.h"
#include "tmtypes.h"

static struct given *g;

/* A type of this program: its first byte is the number of the queue group. */
static int
mine_route(char *routing, char *service, char *data, long len, char *group)
{
	CU_ASSERT_STRING_EQUAL(routing, "R");
	CU_ASSERT_STRING_EQUAL(service, "ALIAS");
	if (len < 1 || (*data != '1' && *data != '2'))
		return -1;
	sprintf(group, "QUE%c", *data);
	return 1;
}

struct tmtype_sw_t tm_typesw[] = {
	{ .type = "MINE", .subtype = "*", .dfltsize = 16, .route = mine_route },
	{ .type = "" }
};

static const char source[] =
    "#include <atmi.h>\n#include <unistd.h>\n"
    "int tpsvrinit(int argc, char **argv) { (void)argc; return argc < 0; }\nvoid tpsvrdone(void) { }\n"
    "void PID(TPSVCINFO *m) { (void)m; tpreturn(TPSUCCESS, getpid(), NULL, 0, 0); }\n"
    "void FORW(TPSVCINFO *m) { tpforward(\"PID\", m->data, m->len, 0); }\n";

/* ALIAS is both queue spaces, PID is in the groups APP and APP2; both have the criterion R. */
static void
given_criterion(const char *ranges)
{
	char services[512];

	snprintf(services, sizeof services, "ALIAS ROUTING=R\nPID ROUTING=P\n*ROUTING\n"
	    "R FIELD=amount RANGES=\"%s\" BUFTYPE=\"XML;MINE\"\nP FIELD=amount RANGES=\"%s\" BUFTYPE=XML", ranges,
	    has(ranges, "*:QUE2") ? "*:APP2" : ranges);
	g = given_system(&(struct given_conf){ .spaces = 2, .queues = "qcreate Q fifo none 2 0 100% 0% \"\"\n", .services = services,
	    .groups = "APP2\tLMID=SITE1 GRPNO=7\n", .server_source = source, .server_services = "-s PID,FORW",
	    .server_params = "\nserver\tSRVGRP=APP2 SRVID=1 CLOPT=\"-s PID\"", .not_booted = true });
	free(given_ok(g, NULL, "sed -i 's/-s \\(QSPACE2*\\):TMQUEUE/-s \\1,ALIAS:TMQUEUE/' ubb && tmloadcf -y ubb"));
	given_boot(g);
}

static void
done(void)
{
	tpterm();
	given_done(g);
	g = NULL;
}

static int	/* 0 or tperrno */
enqueue(const char *type, const char *text)
{
	char *b = tpalloc((char *)(uintptr_t)type, NULL, 64);
	int rc;

	strcpy(b, text);
	rc = tpenqueue("ALIAS", "Q", NULL, b, (long)strlen(text) + 1, 0) == 0 ? 0 : tperrno;
	tpfree(b);
	return rc;
}

static int	/* 0; else tperrno, and 100 more when a queue manager had nothing */
dequeue(const char *type)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *b = tpalloc((char *)(uintptr_t)type, NULL, 64);
	long len;
	int rc = tpdequeue("ALIAS", "Q", &ctl, &b, &len, 0) == 0 ? 0 : tperrno;

	tpfree(b);
	return rc == TPEDIAGNOSTIC && ctl.diagnostic == QMENOMSG ? 100 + rc : rc;
}

static int
call(const char *service, const char *type)
{
	char *b = tpalloc((char *)(uintptr_t)type, NULL, 64);
	long len;
	int rc;

	strcpy(b, "<amount/>");
	rc = tpcall((char *)(uintptr_t)service, b, 10, &b, &len, 0) == 0 ? 0 : tperrno;
	tpfree(b);
	return rc;
}

static void	/* Where all values go to one group, so does every buffer of the criterion's types, and no other. */
a_criterion_for_all_values_is_obeyed(void)
{
	pid_t in_app2;
	int i;

	given_criterion("*:QUE2");
	in_app2 = given_pid_as(g, 7, 1);
	for (i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(enqueue("XML", "<amount>7</amount>"), 0);
		CU_ASSERT_EQUAL(call("PID", "XML"), 0);
		CU_ASSERT_EQUAL(tpurcode, in_app2);
		CU_ASSERT_EQUAL(call("FORW", "XML"), 0);
		CU_ASSERT_EQUAL(tpurcode, in_app2);
	}
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 6);
	CU_ASSERT_EQUAL(depth(g, "Q"), 0);
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(dequeue("XML"), 0);
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(enqueue("STRING", "not routed"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 3);	/* in turn */
	CU_ASSERT_EQUAL(depth(g, "Q"), 3);
	done();
}

static void
any_group_is_any(void)
{
	int i;

	given_criterion("*:*");
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(enqueue("XML", "<amount>7</amount>"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 3);
	CU_ASSERT_EQUAL(depth(g, "Q"), 3);
	done();
}

static void	/* The value of a field that cannot be read: nothing is sent anywhere, and the log says why. */
what_needs_the_value_of_a_field_is_refused(void)
{
	given_criterion("1-5:QUE1,*:*");
	CU_ASSERT_EQUAL(enqueue("XML", "<amount>7</amount>"), TPESYSTEM);
	CU_ASSERT_TRUE(given_logged(g, "service ALIAS is not called: criterion R routes by the value of field amount, which cannot be read "
	    "from a buffer of type XML"));
	CU_ASSERT_EQUAL(call("PID", "XML"), TPESYSTEM);
	CU_ASSERT_TRUE(given_logged(g, "service PID is not called: criterion P routes by the value of field amount"));
	CU_ASSERT_EQUAL(call("FORW", "XML"), TPESVCERR);
	CU_ASSERT_EQUAL(call("PID", "STRING"), 0);
	CU_ASSERT_EQUAL(enqueue("STRING", "not routed"), 0);
	CU_ASSERT_EQUAL(depth(g, "Q") + depth_in(g, 2, "Q"), 1);
	CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
	CU_ASSERT_EQUAL(enqueue("XML", "<amount>7</amount>"), TPESYSTEM);
	CU_ASSERT_EQUAL(tpcommit(0), -1);
	CU_ASSERT_EQUAL(tperrno, TPEABORT);
	done();
}

static void	/* A type of the program's own, with a function that reads the value. */
a_program_routes_its_own_type(void)
{
	int i;

	given_criterion("1-5:QUE1,*:*");
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(enqueue("MINE", "2 this"), 0);
	CU_ASSERT_EQUAL(enqueue("MINE", "1 that"), 0);
	CU_ASSERT_EQUAL(depth_in(g, 2, "Q"), 4);
	CU_ASSERT_EQUAL(depth(g, "Q"), 1);
	CU_ASSERT_EQUAL(enqueue("MINE", "x"), TPESYSTEM);
	done();
}

static void	/* One name for two spaces: a transaction stays in the one that it touched first. */
a_transaction_stays_in_its_space(void)
{
	int round, i;

	given_criterion("*:*");
	for (round = 1; round <= 3; round++) {
		CU_ASSERT_EQUAL(tpbegin(10, 0), 0);
		for (i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(enqueue("STRING", "together"), 0);
		CU_ASSERT_EQUAL(tpcommit(0), 0);
		CU_ASSERT_EQUAL(depth(g, "Q") % 5, 0);
		CU_ASSERT_EQUAL(depth(g, "Q") + depth_in(g, 2, "Q"), 5 * round);
	}
	done();
}

static void	/* A dequeue asks one of the spaces: it finds what is there, and nothing of the other. */
a_dequeue_asks_one_space(void)
{
	int i, found = 0, none = 0, rc;

	given_criterion("*:*");
	put_in("QSPACE2", "Q", "only one");
	for (i = 0; i < 4; i++) {
		rc = dequeue("STRING");
		found += rc == 0;
		none += rc == 100 + TPEDIAGNOSTIC;
	}
	CU_ASSERT_EQUAL(found, 1);	/* they ask in turn */
	CU_ASSERT_EQUAL(none, 3);
	done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_criterion_for_all_values_is_obeyed),
		UNIT(any_group_is_any),
		UNIT(what_needs_the_value_of_a_field_is_refused),
		UNIT(a_program_routes_its_own_type),
		UNIT(a_transaction_stays_in_its_space),
		UNIT(a_dequeue_asks_one_space),
	};

	return unit_run("story: routing", tests, UNIT_COUNT(tests));
}
