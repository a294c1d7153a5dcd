/*
 * story_idioms - what scripts in the field do, done as they do it: here-documents, pipes, shell lines.
 */
#include <signal.h>

#include "given.h"

/* A script is run by sh; its output is malloc'ed.  $KEY is an IPCKEY of our own, $QKEY one for a queue space. */
static char *
script(const struct given *g, const char *text)
{
	given_write(g, "script", "KEY=%ld QKEY=%ld\n%s", given_ipckey(g), given_ipckey(g) + 1, text);
	return given_ok(g, NULL, "sh ./script 2>&1");
}

static struct given *
given_unbooted(void)
{
	return given_system(&(struct given_conf){ .only_files = true });
}

/* --- qmadmin --- */

static void
each_command_in_a_run_of_its_own(void)
{
	struct given *g = given_unbooted();
	char *out = script(g,
	    "echo \"crdl $QMCONFIG 0 200\" | qmadmin || exit 1\n"
	    "echo \"qspc QSPACE $QKEY 100 3 5 5 100 ERR y 16\" | qmadmin || exit 2\n"
	    "printf \"qopen QSPACE\\nqcr REQ time none 3 5 100%% 0%% ''\\n\" | qmadmin || exit 3\n"
	    "printf \"qopen QSPACE\\nqcr ERR fifo none 0 0 100%% 0%% ''\\n\" | qmadmin || exit 4\n"
	    "printf 'qopen QSPACE\\nqinfo\\nq\\n' | qmadmin\n");

	CU_ASSERT_TRUE(has(out, "REQ"));
	CU_ASSERT_TRUE(has(out, "ERR"));
	free(out);
	given_done(g);
}

static void
a_here_document_answers_every_question(void)
{
	struct given *g = given_unbooted();
	char *out = script(g,
	    "qmadmin ${APPDIR}/QUE <<!\necho\ncrdl ${APPDIR}/QUE 0 400\nqspacecreate -n 100B\nQSPACE\n$QKEY\n100\n6\n4\n9\n3\nerrque\ny\n16\n"
	    "qopen QSPACE\nqcreate\nSTRING\nfifo\nnone\n2\n30\n80%\n0%\n\nqcreate\nerrque\nfifo\nnone\n2\n30\n80%\n0%\n\nqinfo\nq\n!\n");

	CU_ASSERT_TRUE(has(out, "crdl "));		/* echo shows the lines */
	CU_ASSERT_TRUE(has(out, "STRING"));
	CU_ASSERT_EQUAL(depth(g, "STRING"), 0);
	CU_ASSERT_EQUAL(depth(g, "errque"), 0);
	free(out);
	given_done(g);
}

static void
a_here_document_may_end_with_q_with_quit_or_with_nothing(void)
{
	struct given *g = given_unbooted();

	free(script(g,
	    "qmadmin $QMCONFIG <<!\ncrdl $QMCONFIG 0 1000\nquit\n!\n[ $? -eq 0 ] || exit 1\n"
	    "qmadmin <<!\nqspacecreate QSPACE $QKEY 200 20 5 5 200 Q_ERROR 'y' 16\nq\n!\n[ $? -eq 0 ] || exit 2\n"
	    "qmadmin <<! >/dev/null\nqopen QSPACE\nqcreate Q_ERROR fifo none 0 0 100% 0% \"\"\nqcreate E fifo none 0 0 100% 0 \"\"\n!\n"
	    "[ $? -eq 0 ] || exit 3\n"));
	CU_ASSERT_EQUAL(depth(g, "Q_ERROR"), 0);
	CU_ASSERT_EQUAL(depth(g, "E"), 0);
	given_done(g);
}

static void
a_second_qopen_closes_the_first_space(void)
{
	struct given *g = given_unbooted();
	char *out = script(g,
	    "qmadmin <<! >/dev/null\ncrdl $QMCONFIG 0 1000\nqspacecreate A $QKEY 100 5 5 5 100 E n 16\nqspacecreate B $((QKEY + 1)) 100 5 5 5 100 E n 16\n"
	    "qopen A\nqcreate ONLYINA fifo none 0 0 100% 0% \"\"\nqopen B\nqcreate ONLYINB fifo none 0 0 100% 0% \"\"\nquit\n!\n"
	    "qmadmin <<!\nqopen A\nqinfo\nqopen B\nqinfo\nquit\n!\n");
	char *a = strstr(out, "ONLYINA"), *b = strstr(out, "ONLYINB");

	CU_ASSERT_PTR_NOT_NULL(a);
	CU_ASSERT_PTR_NOT_NULL(b);
	CU_ASSERT_TRUE(a < b);
	free(out);
	given_done(g);
}

static void
ipcrm_before_anything_is_there_does_no_harm(void)
{
	struct given *g = given_unbooted();

	free(script(g,
	    "echo 'ipcrm -y QSPACE' | qmadmin\n"
	    "rm -f QUE\n"
	    "qmadmin $QMCONFIG <<! || exit 1\ncrdl $QMCONFIG 0 400\nqspacecreate QSPACE $QKEY 100 6 4 9 30 E n 16\nq\n!\n"
	    "echo 'ipcrm -y QSPACE' | qmadmin || exit 2\n"
	    "rm QUE\n"				/* and all of it again, on a new device */
	    "qmadmin $QMCONFIG <<! || exit 3\ncrdl $QMCONFIG 0 400\nqspacecreate QSPACE $QKEY 100 6 4 9 30 E n 16\nq\n!\n"));
	given_done(g);
}

/* The queue's command starts a forwarder when there is work; with -e it ends when there is none left. */
static bool
forwarder_came_and_went(void *g)
{
	return depth(g, "Q_LOG") == 0 && given_count(g, "TMQFORWARD") == 0 && given_exists(g, "served");
}

static void
the_command_of_a_queue_starts_its_forwarder(void)
{
	struct given *g = given_system(&(struct given_conf){
	    .queues = "qcreate Q_LOG fifo none 2 2 5m 0m \"tmboot -s TMQFORWARD\"\n",
	    .server_source = "#include <stdio.h>\n#include \"atmi.h\"\n"
	    "void Q_LOG(TPSVCINFO *m) { fclose(fopen(\"served\", \"a\")); tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n",
	    .server_services = "-s Q_LOG",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -e -n -d -q Q_LOG\"\n", .not_booted = true });
	int i;

	free(given_ok(g, NULL, "tmboot -A -y; tmboot -s server; tmboot -s TMQUEUE"));
	for (i = 0; i < 4; i++)
		put("Q_LOG", "a line");
	CU_ASSERT_EQUAL(given_count(g, "TMQFORWARD"), 0);
	put("Q_LOG", "the fifth");
	CU_ASSERT_TRUE(wait_until(forwarder_came_and_went, g, 30));
	given_done(g);
}

/* --- tmadmin, tmboot and the rest --- */

static void
tmadmin_makes_the_log_of_an_application_that_is_not_booted(void)
{
	struct given *g = given_unbooted();

	free(script(g,
	    "tmloadcf -y ubb || exit 1\n"
	    "tmadmin <<!\necho\ncrdl -b 200 -z ${APPDIR}/TLOG\ncrlog -m SITE1\nq\n!\n[ $? -eq 0 ] || exit 2\n"
	    "[ -f TLOG ] || exit 3\nrm TLOG\n"
	    "tmadmin -c <<!end\ncrdl -b 2000 -z ${APPDIR}/TLOG -m SITE1\n!end\n[ $? -eq 0 ] || exit 4\n[ -f TLOG ] || exit 5\n"));
	given_done(g);
}

static void
zap_load_boot_and_shut_down(void)
{
	struct given *g = given_system(&(struct given_conf){ .not_booted = true });
	char *out = script(g,
	    "tmipcrm -y >/dev/null 2>&1\ntmloadcf -y ubb || exit 1\ntmboot -y || exit 2\n"
	    "tmboot -y\n"				/* everything is there already */
	    "tmshutdown -y || exit 3\n"
	    "tmboot -y >/dev/null || exit 4\necho y | tmshutdown || exit 5\n");

	CU_ASSERT_TRUE(has(out, "Booting admin processes ..."));
	CU_ASSERT_TRUE(has(out, "Booting server processes ..."));
	CU_ASSERT_TRUE(has(out, "exec BBL "));
	CU_ASSERT_TRUE(has(out, "exec TMQUEUE "));
	CU_ASSERT_TRUE(has(out, "Started."));
	CU_ASSERT_TRUE(has(out, "CMDTUX_CAT:821: INFO: Duplicate server."));
	CU_ASSERT_TRUE(has(out, "processes started."));
	CU_ASSERT_TRUE(has(out, "processes stopped."));
	CU_ASSERT_EQUAL(given_count(g, NULL), 0);
	free(out);
	given_done(g);
}

/* Monitoring scripts cut these by column. */
struct shown { const char *command, *row; char *out; };

static bool
shows_row(void *arg)
{
	struct shown *s = arg;
	struct given *g = given_standing();

	free(s->out);
	s->out = given_ok(g, NULL, "echo %s | tmadmin -r 2>/dev/null", s->command);
	return has(s->out, s->row);
}

/* Counters come with the servers' heartbeats, so the row may need a moment. */
static void
shows(const char *command, const char *heading, const char *row)
{
	struct shown s = { command, row, NULL };

	CU_ASSERT_TRUE(wait_until(shows_row, &s, 10));
	CU_ASSERT_TRUE(has(s.out, heading));
	if (!has(s.out, row))
		fprintf(stderr, "\n%s\n", s.out);
	free(s.out);
}

static void
psr_and_psc_have_their_columns(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 0 0 100% 0% \"\"\n" });
	int i;

	for (i = 0; i < 4; i++)
		put("ORDERS", "x");
	shows("psr", "Prog Name      Queue Name  Grp Name      ID RqDone Load Done Current Service\n"
	    "---------      ----------  --------      -- ------ --------- ---------------\n",
	    "\nTMQUEUE        00002.00001 QUE1           1      4       200 (  IDLE )\n");
	shows("psr", "\nBBL ", "\nTMS_QM         QUE1_TMS    QUE1       30001      0         0 (  IDLE )\n");
	shows("psc", "Service Name Routine Name Prog Name  Grp Name  ID    Machine  # Done Status\n"
	    "------------ ------------ ---------  --------  --    -------  ------ ------\n",
	    "\nQSPACE       TMQUEUE      TMQUEUE    QUE1       1      SITE1       4 AVAIL\n");
	given_done(g);
}

static void
log_lines_can_be_split(void)
{
	struct given *g = given_system(&(struct given_conf){ 0 });
	char *out;

	/* hhmmss.host!process.pid.thread.context: text */
	out = given_ok(g, NULL, "grep -vE '^[0-9]{6}\\.[^!]+![^.]+\\.[0-9]+\\.[0-9]+\\.-?[0-9]+: ' ULOG.* | head -n 5; true");
	CU_ASSERT_STRING_EQUAL(out, "");
	free(out);
	CU_ASSERT_TRUE(given_logged(g, "!BBL."));
	CU_ASSERT_TRUE(given_logged(g, "!tmloadcf."));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(each_command_in_a_run_of_its_own),
		UNIT(a_here_document_answers_every_question),
		UNIT(a_here_document_may_end_with_q_with_quit_or_with_nothing),
		UNIT(a_second_qopen_closes_the_first_space),
		UNIT(ipcrm_before_anything_is_there_does_no_harm),
		UNIT(the_command_of_a_queue_starts_its_forwarder),
		UNIT(tmadmin_makes_the_log_of_an_application_that_is_not_booted),
		UNIT(zap_load_boot_and_shut_down),
		UNIT(psr_and_psc_have_their_columns),
		UNIT(log_lines_can_be_split),
	};

	return unit_run("idioms", tests, UNIT_COUNT(tests));
}
