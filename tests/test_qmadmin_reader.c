/*
 * qmadmin's side of the console: commands, questions and answers.
 */
#include <fcntl.h>
#include <unistd.h>

#include "session.h"
#include "unit.h"

static struct session s;
static char *out;
static size_t out_len;
static char errors[64];

/* A session that reads `input` and writes to memory; what it says on stderr goes to a file. */
static void
given_input(const char *input)
{
	int end[2];

	CU_ASSERT_EQUAL_FATAL(pipe(end), 0);
	CU_ASSERT_EQUAL(write(end[1], input, strlen(input)), (ssize_t)strlen(input));
	close(end[1]);
	memset(&s, 0, sizeof s);
	s.con.out = open_memstream(&out, &out_len);
	s.con.reader = reader_new("qmadmin", end[0], s.con.out);
	s.con.program = &s;
	s.con.run = command_run;
	s.con.trouble = say_trouble;
	s.device = "/nowhere/QUE";
	CU_ASSERT_PTR_NOT_NULL_FATAL(s.con.reader);
	snprintf(errors, sizeof errors, "/tmp/reader.XXXXXX");
	close(mkstemp(errors));
	CU_ASSERT_PTR_NOT_NULL(freopen(errors, "w", stderr));
}

static const char *
said(void)
{
	fflush(s.con.out);
	return out;
}

static bool
complained(const char *part)
{
	static char text[4096];
	FILE *f = fopen(errors, "r");
	size_t n;

	fflush(stderr);
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	if (strstr(text, part) == NULL)
		printf("\n  complained \"%s\", expected \"%s\"", text, part);
	return strstr(text, part) != NULL;
}

static void
given_done(void)
{
	console_close(&s.con);
	document_free(&s.criteria);
	fclose(s.con.out);
	free(out);
	unlink(errors);
}

/* Read and carry out everything. */
static void
run_all(void)
{
	console_loop(&s.con, "> ");
}

static void
echo_and_verbose_are_toggles(void)
{
	given_input("echo\nv\ne off\nverbose on\necho maybe\npage\nq\n");
	run_all();
	CU_ASSERT_STRING_EQUAL(said(), "> Echo is now on\n> v\nVerbose mode is now on\n> e off\nEcho is now off\n"
	    "> Verbose mode is now on\n> > Pagination is now on\n> ");
	CU_ASSERT_TRUE(complained("on or off is expected, not \"maybe\""));
	CU_ASSERT_TRUE(s.con.quit);
	given_done();
}

static void
empty_line_repeats_the_command_before(void)
{
	given_input("\nv\n\n# a comment\n\n");
	run_all();
	CU_ASSERT_STRING_EQUAL(said(),
	    "> > Verbose mode is now on\n> Verbose mode is now off\n> > Verbose mode is now on\n> ");
	given_done();
}

static void
question_is_asked_until_a_required_value_comes(void)
{
	char *answer;

	given_input("\n   \nORDERS\n");
	CU_ASSERT_EQUAL(ask(&s, "Queue space name:", NULL, &answer), 0);
	CU_ASSERT_STRING_EQUAL(answer, "ORDERS");
	CU_ASSERT_STRING_EQUAL(said(), "Queue space name: Queue space name: Queue space name: ");
	CU_ASSERT_TRUE(complained("WARN: a value is required here"));
	free(answer);
	given_done();
}

static void
empty_answer_takes_the_default(void)
{
	char *answer;

	given_input("\n");
	CU_ASSERT_EQUAL(ask(&s, "Blocking factor [default=16]:", "16", &answer), 0);
	CU_ASSERT_STRING_EQUAL(answer, "16");
	free(answer);
	CU_ASSERT_EQUAL(ask(&s, "Blocking factor [default=16]:", "16", &answer), -1);
	CU_ASSERT_PTR_NULL(answer);
	CU_ASSERT_TRUE(complained("the input ended where an answer to \"Blocking factor [default=16]:\" was expected"));
	given_done();
}

static void
positionals_come_first_and_the_rest_is_asked_for(void)
{
	static const struct field f[] = { { "name", "Queue name:", NULL }, { "high", "High limit [default=100%]:",
	    "100%" },
		{ "low", "Reset (low) limit [default=0%]:", "0" }, { "cmd", "Queue capacity command:", "" } };
	char q[] = "Q", *argv[] = { q };
	struct document doc = { 0 };
	struct record *r = document_add(&doc);

	given_input("5m\n\n\n");
	CU_ASSERT_EQUAL(collect(&s, f, 4, 1, argv, r), 0);
	CU_ASSERT_STRING_EQUAL(record_get(r, "name"), "Q");
	CU_ASSERT_STRING_EQUAL(record_get(r, "high"), "5m");
	CU_ASSERT_STRING_EQUAL(record_get(r, "low"), "0");
	CU_ASSERT_STRING_EQUAL(record_get(r, "cmd"), "");
	/* the low limit's default has the unit of the high one */
	CU_ASSERT_STRING_EQUAL(said(),
	    "High limit [default=100%]: Reset (low) limit [default=0m]: Queue capacity command: ");
	document_free(&doc);
	given_done();
}

static void
qscan_keeps_criteria(void)
{
	given_input("");
	snprintf(s.space, sizeof s.space, "S");
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan -p 10-20 -i hello\\20world -dpersist"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan -t 38"), -1);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan all"), -1);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan none"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "qscan"), 0);
	CU_ASSERT_STRING_EQUAL(said(),
	    "selection criteria: none\nselection criteria:\n  priority: 10-20\n  corrid: hello\\20world\n"
	    "  delivery: persist\nselection criteria: none\n");
	CU_ASSERT_TRUE(complained("years 00 to 37"));
	given_done();
}

static void
mistakes_are_answered_and_the_session_goes_on(void)
{
	given_input("");
	CU_ASSERT_EQUAL(console_line(&s.con, "qstats"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qstats: no such command"));
	CU_ASSERT_EQUAL(console_line(&s.con, "qinfo"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qinfo: no queue space is open"));
	CU_ASSERT_EQUAL(console_line(&s.con, "dsdl -x 1"), -1);
	CU_ASSERT_TRUE(complained("ERROR: dsdl: unknown option -x\nusage: dsdl [-y] [dlindex]\n"));
	CU_ASSERT_EQUAL(console_line(&s.con, "qspc -n"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qspacecreate: option -n needs a value"));
	CU_ASSERT_EQUAL(console_line(&s.con, "lidl 1 2"), -1);
	CU_ASSERT_TRUE(complained("ERROR: lidl: too many arguments, from \"2\" on"));
	CU_ASSERT_EQUAL(console_line(&s.con, "qopen \"S"), -1);
	CU_ASSERT_TRUE(complained("a double quote is not closed"));
	snprintf(s.space, sizeof s.space, "S");
	CU_ASSERT_EQUAL(console_line(&s.con, "qcp -y 10"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qchangeprio: not available in this version"));
	CU_ASSERT_EQUAL(console_line(&s.con, "!!"), -1);
	CU_ASSERT_TRUE(complained("no shell command to repeat"));
	given_done();
}

/* Scripts answer what it asks, and no answer must be run as a command. */
static void
a_command_that_is_not_available_takes_its_answers(void)
{
	given_input("qch\ny\nverbose\ny\nverbose\n");
	snprintf(s.space, sizeof s.space, "S");
	CU_ASSERT_EQUAL(console_line(&s.con, "qchangequeue"), -1);
	CU_ASSERT_EQUAL(console_line(&s.con, "qchangetime"), -1);
	CU_ASSERT_EQUAL(console_line(&s.con, "qce -y +0"), -1);
	CU_ASSERT_TRUE(complained("qchangequeue: not available in this version"));
	CU_ASSERT_TRUE(complained("qchangetime: not available in this version"));
	CU_ASSERT_TRUE(complained("qchangeexptime: not available in this version"));
	CU_ASSERT_FALSE(s.con.verbose);
	run_all();
	CU_ASSERT_TRUE(s.con.verbose);		/* what follows is a command again */
	CU_ASSERT_EQUAL(console_line(&s.con, "qcp"), -1);
	CU_ASSERT_TRUE(complained("the input ended where an answer to \"New priority:\" was expected"));
	given_done();
}

static void
help_knows_every_command(void)
{
	char line[64];

	given_input("");
	for (const struct command *c = commands; c->name != NULL; c++) {
		snprintf(line, sizeof line, "help %s", c->abbreviation != NULL ? c->abbreviation : c->name);
		CU_ASSERT_EQUAL(console_line(&s.con, line), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(said(), c->name));
		CU_ASSERT_PTR_NOT_NULL(strstr(said(), c->description));
	}
	CU_ASSERT_EQUAL(console_line(&s.con, "h"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "h all"), 0);
	CU_ASSERT_EQUAL(console_line(&s.con, "h qstats"), -1);
	given_done();
}

static void
shell_lines_do_not_take_our_input(void)
{
	given_input("!cat >/dev/null\nv\n! exit 3\nq\n");
	run_all();
	CU_ASSERT_STRING_EQUAL(said(), "> > Verbose mode is now on\n> > ");
	given_done();
}

int
main(void)
{
	static const struct unit_test tests[] = { UNIT(echo_and_verbose_are_toggles),
		UNIT(empty_line_repeats_the_command_before), UNIT(question_is_asked_until_a_required_value_comes),
		UNIT(empty_answer_takes_the_default), UNIT(positionals_come_first_and_the_rest_is_asked_for),
		    UNIT(qscan_keeps_criteria),
		UNIT(mistakes_are_answered_and_the_session_goes_on), UNIT(a_command_that_is_not_available_takes_its_answers),
		UNIT(help_knows_every_command),
		UNIT(shell_lines_do_not_take_our_input) };

	return unit_run("qmadmin's reader", tests, UNIT_COUNT(tests));
}
