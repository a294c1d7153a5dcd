/*
 * Columns of tmadmin, to the byte: monitoring scripts cut them.  And its command reader.
 */
#include <unistd.h>

#include "unit.h"
#include "layout.h"
#include "commands.h"

static struct document rows;
static char *shown;
static struct layout_show show_all;

static struct record *
given_row(void)
{
	document_free(&rows);
	return document_add(&rows);
}

static void
and(struct record *r, const char *key, const char *value)
{
	record_set(r, key, value);
}

static void
show(void (*layout)(FILE *, const struct document *, const struct layout_show *), const struct layout_show *what)
{
	size_t n;
	FILE *f;

	free(shown);
	f = open_memstream(&shown, &n);
	layout(f, &rows, what);
	fclose(f);
}

static struct record *
given_tmqueue(void)
{
	struct record *r = given_row();

	and(r, "program", "TMQUEUE");
	and(r, "queue", "00002.00001");
	and(r, "group", "QUE1");
	and(r, "srvid", "1");
	and(r, "done", "4");
	and(r, "load", "200");
	and(r, "lmid", "SITE1");
	and(r, "service", "QSPACE");
	and(r, "function", "TMQUEUE");
	and(r, "status", "AVAIL");
	and(r, "serving", "1");
	return r;
}

static void
psr_is_exact(void)
{
	given_tmqueue();
	show(layout_psr, &show_all);
	CU_ASSERT_STRING_EQUAL(shown,
	    "Prog Name      Queue Name  Grp Name      ID RqDone Load Done Current Service\n"
	    "---------      ----------  --------      -- ------ --------- ---------------\n"
	    "TMQUEUE        00002.00001 QUE1           1      4       200 (  IDLE )\n\n");
}

static void
long_names_are_cut_to_their_columns(void)
{
	struct record *r = given_tmqueue();

	and(r, "program", "a_very_long_program_name");
	and(r, "group", "GROUP_OF_NINE");
	and(r, "queue", "a_long_request_queue");
	and(r, "srvid", "30001");
	and(r, "current", "ECHO");
	show(layout_psr, &show_all);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, "\na_very_long_pr a_long_requ GROUP_O+   30001      4       200 ECHO\n"));
	and(r, "group", "EIGHT_CH");
	show(layout_psr, &show_all);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, " EIGHT_CH   30001 "));
	and(r, "service", "A_SERVICE_OF_20_CHAR");
	show(layout_psc, &show_all);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown,
	    "\nA_SERVICE_O+ TMQUEUE      a_very_lo+ EIGHT_CH30001      SITE1       4 AVAIL\n"));
}

static void
psc_pq_and_pclt_are_exact(void)
{
	struct record *r = given_tmqueue();

	show(layout_psc, &show_all);
	CU_ASSERT_STRING_EQUAL(shown,
	    "Service Name Routine Name Prog Name  Grp Name  ID    Machine  # Done Status\n"
	    "------------ ------------ ---------  --------  --    -------  ------ ------\n"
	    "QSPACE       TMQUEUE      TMQUEUE    QUE1       1      SITE1       4 AVAIL\n\n");
	show(layout_pq, &show_all);
	CU_ASSERT_STRING_EQUAL(shown,
	    "Prog Name      Queue Name  # Serve Wk Queued  # Queued  Ave. Len    Machine\n"
	    "---------      ------------------- ---------  --------  --------    -------\n"
	    "TMQUEUE        00002.00001       1         0         0       0.0      SITE1\n\n");
	and(r, "usrname", "app");
	and(r, "cltname", "tmadmin");
	and(r, "time", "7");
	and(r, "status", "IDLE");
	show(layout_pclt, &show_all);
	CU_ASSERT_STRING_EQUAL(shown,
	    "     LMID         User Name       Client Name    Time    Status  Bgn/Cmmt/Abrt\n"
	    "--------------- --------------- --------------- -------- ------- -------------\n"
	    "SITE1           app             tmadmin          0:00:07 IDLE    0/0/0\n\n");
}

static void
what_is_selected_is_shown(void)
{
	struct layout_show other = { .group = "OTHER" }, id = { .srvid = "1" }, verbose = { .verbose = true };

	given_tmqueue();
	show(layout_psr, &other);
	CU_ASSERT_PTR_NULL(strstr(shown, "TMQUEUE"));
	show(layout_psr, &id);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, "TMQUEUE"));
	show(layout_psr, &verbose);
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, ": TMQUEUE\n"));
	CU_ASSERT_PTR_NULL(strstr(shown, "---------"));
}

/* --- printtrans --- */

static struct trans trans;

static struct trans_part *	/* What group has of transaction `tail`, 16 bytes: a time of 2026, process 0x2bb8, the tail as its number. */
given_part(unsigned tail, const char *group, const char *state)
{
	struct trans_part *p = trans_add(&trans);

	snprintf(p->gtrid, sizeof p->gtrid, "00064bd19aa7f30100002bb8%08x", tail);
	snprintf(p->group, sizeof p->group, "%s", group);
	snprintf(p->lmid, sizeof p->lmid, "SITE1");
	snprintf(p->state, sizeof p->state, "%s", state);
	p->began_us = 1000000000;
	p->deadline_us = 1030000000;
	return p;
}

static void
show_pt(const char *group, bool verbose)
{
	struct layout_show what = { .group = group, .verbose = verbose };
	size_t n;
	FILE *f;

	free(shown);
	f = open_memstream(&shown, &n);
	trans_sort(&trans);
	layout_pt(f, &trans, &what, 1012400000);
	fclose(f);
}

/* The three numbers are those of the user log; what two groups have of one transaction is one block. */
static void
pt_begins_as_the_user_log_does(void)
{
	show_pt(NULL, true);
	CU_ASSERT_STRING_EQUAL(shown, "");
	snprintf(given_part(2, "QUE2", "prepared")->coordinator, WIRE_GROUP, "QUE1");
	snprintf(given_part(2, "QUE1", "deciding")->client, 64, "process 11192 of user 1000");
	given_part(1, "QUE1", "active");
	show_pt(NULL, false);
	CU_ASSERT_STRING_EQUAL(shown,
	    ">> gtrid=x9aa7f301 x2bb8 x1: Index: 0, Machine id: SITE1, Transaction status: TMGACTIVE, Group count: 1\n"
	    ">> gtrid=x9aa7f301 x2bb8 x2: Index: 1, Machine id: SITE1, Transaction status: TMGREADY, Group count: 2\n\n");
	show_pt("QUE2", true);		/* an index is that of the whole list */
	CU_ASSERT_STRING_EQUAL(shown,
	    ">> gtrid=x9aa7f301 x2bb8 x2:\n"
	    "\tIndex: 1, Machine id: SITE1, Transaction status: TMGREADY\n"
	    "\tGroup count: 2, Time out: 30, Time left: 18, Age: 12\n"
	    "\tgroup: QUE1, status: TMGCOMCALLED, coordinator\n"
	    "\tgroup: QUE2, status: TMGREADY\n"
	    "\tclient: process 11192 of user 1000\n\tid: 00064bd19aa7f30100002bb800000002\n\n");
	show_pt("QUE3", true);
	CU_ASSERT_STRING_EQUAL(shown, "");
	trans_free(&trans);
}

/* One that does not run is what its administrator looks for. */
static void
pt_names_a_coordinator_that_is_away(void)
{
	snprintf(given_part(2, "QUE2", "prepared")->coordinator, WIRE_GROUP, "QUE1");
	show_pt(NULL, true);
	CU_ASSERT_TRUE(strstr(shown, "\tgroup: QUE2, status: TMGREADY\n\tcoordinator: QUE1\n\tid: ") != NULL);
	trans_free(&trans);
}

static const char *
status_of(const char *a, const char *b)
{
	static const char *status;

	trans_free(&trans);
	given_part(1, "", a);
	given_part(1, "QUE1", b);
	status = trans_status(trans.part, trans.n);
	trans_free(&trans);
	return status;
}

static void
a_transaction_is_as_far_as_its_furthest_part(void)
{
	CU_ASSERT_STRING_EQUAL(status_of("active", "active"), "TMGACTIVE");
	CU_ASSERT_STRING_EQUAL(status_of("suspended", "active"), "TMGSUSPENDED");
	CU_ASSERT_STRING_EQUAL(status_of("deciding", "active"), "TMGCOMCALLED");
	CU_ASSERT_STRING_EQUAL(status_of("deciding", "prepared"), "TMGREADY");
	CU_ASSERT_STRING_EQUAL(status_of("aborting", "prepared"), "TMGABORTED");
	CU_ASSERT_STRING_EQUAL(status_of("deciding", "decided"), "TMGDECIDED");
	CU_ASSERT_STRING_EQUAL(status_of("heuristically rolled back", "heuristically rolled back"), "TMGHABORT");
	CU_ASSERT_STRING_EQUAL(status_of("active", "heuristically committed"), "TMGACTIVE");
	CU_ASSERT_STRING_EQUAL(status_of("what", "heuristically committed"), "TMGACTIVE");
	given_part(1, "QUE1", "active")->doomed = true;
	CU_ASSERT_STRING_EQUAL(trans_status(trans.part, 1), "TMGABORTONLY");
	trans_free(&trans);
}

static void
an_index_leads_to_all_parts_of_a_transaction(void)
{
	const struct trans_part *p;
	size_t n;

	given_part(2, "QUE1", "prepared");
	given_part(1, "QUE1", "active");
	given_part(2, "QUE2", "prepared");
	trans_sort(&trans);
	CU_ASSERT_EQUAL(trans_count(&trans), 2);
	p = trans_find(&trans, 1, &n);
	CU_ASSERT_TRUE(p != NULL && n == 2 && strcmp(p[1].group, "QUE2") == 0);
	CU_ASSERT_PTR_NULL(trans_find(&trans, 2, &n));
	trans_free(&trans);
}

/* --- the reader --- */

static int runs;
static char heard[256];

static void
cmd_say(struct commands *r, const struct opts *o)
{
	(void)r;
	runs++;
	snprintf(heard, sizeof heard, "%s|%s|%d", o->v['a'] != NULL ? o->v['a'] : "-", o->n_rest > 0 ? o->rest[0] : "",
	    o->n_rest);
}

static const struct command table[] = {
	{ "say", "s", 1, "a:", cmd_say, "say [-a x] [word]", "Say it." },
	{ "later", NULL, 2, "", cmd_say, "later", "Not now." },
	{ "quit", "q", 3, "", cmd_quit, "quit", "End." },
};

/* What a session says on stdout, and on stderr in `errors`. */
static char errors[4096], output[4096];

static void
session(const char *input)
{
	int out = dup(1), err = dup(2);
	FILE *to = tmpfile(), *to_err = tmpfile();
	struct commands r;
	int end[2];
	size_t n;

	CU_ASSERT_EQUAL_FATAL(pipe(end), 0);
	CU_ASSERT_EQUAL(write(end[1], input, strlen(input)), (ssize_t)strlen(input));
	close(end[1]);

	fflush(stdout);
	dup2(fileno(to), 1);
	dup2(fileno(to_err), 2);
	runs = 0;
	heard[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(commands_open(&r, table, UNIT_COUNT(table), end[0], NULL), 0);
	r.mode = 1;
	r.mode_name = "test mode";
	commands_run(&r);
	commands_close(&r);
	close(end[0]);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	rewind(to);
	rewind(to_err);
	n = fread(output, 1, sizeof output - 1, to);
	output[n] = '\0';
	n = fread(errors, 1, sizeof errors - 1, to_err);
	errors[n] = '\0';
	fclose(to);
	fclose(to_err);
}

static void
commands_are_known_by_name_and_by_abbreviation(void)
{
	session("say -a 1 \"two words\"\n");
	CU_ASSERT_STRING_EQUAL(heard, "1|two words|1");
	session("  s   x y # z\nq\ns never\n");
	CU_ASSERT_STRING_EQUAL(heard, "-|x|4");
	CU_ASSERT_STRING_EQUAL(output, "> > ");
	CU_ASSERT_STRING_EQUAL(errors, "");
}

static void
an_empty_line_repeats_the_last_command(void)
{
	session("\nsay\n\n\n# a remark\n\nquit\n");
	CU_ASSERT_EQUAL(runs, 4);
}

static void
trouble_has_its_numbers(void)
{
	char line[200] = "say ";

	memset(line + 4, 'x', 81);
	line[85] = '\n';
	session(line);
	CU_ASSERT_PTR_NOT_NULL(strstr(errors, "TMADMIN_CAT:110:"));
	CU_ASSERT_EQUAL(runs, 0);
	line[84] = '\n';
	line[85] = '\0';
	session(line);
	CU_ASSERT_EQUAL(runs, 1);		/* 80 are not too many */
	session("shout\nsay -b\nlater\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(errors, "TMADMIN_CAT:111:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(errors, "TMADMIN_CAT:112:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(errors, "later cannot be used in test mode"));
	CU_ASSERT_EQUAL(runs, 0);
}

static void
shell_lines_run_and_repeat(void)
{
	session("! echo hallo\n!!\n");
	CU_ASSERT_STRING_EQUAL(output, "> hallo\n> echo hallo\nhallo\n> \n");
	session("!cat >/dev/null\nsay heard\n");		/* the lines that follow are not the shell's */
	CU_ASSERT_STRING_EQUAL(heard, "-|heard|1");
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(psr_is_exact),
		UNIT(long_names_are_cut_to_their_columns),
		UNIT(psc_pq_and_pclt_are_exact),
		UNIT(what_is_selected_is_shown),
		UNIT(pt_begins_as_the_user_log_does),
		UNIT(pt_names_a_coordinator_that_is_away),
		UNIT(a_transaction_is_as_far_as_its_furthest_part),
		UNIT(an_index_leads_to_all_parts_of_a_transaction),
		UNIT(commands_are_known_by_name_and_by_abbreviation),
		UNIT(an_empty_line_repeats_the_last_command),
		UNIT(trouble_has_its_numbers),
		UNIT(shell_lines_run_and_repeat),
	};
	int rc = unit_run("tmadmin", tests, UNIT_COUNT(tests));

	document_free(&rows);
	free(shown);
	return rc;
}
