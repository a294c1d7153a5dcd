/*
 * qmadmin's reader: lines, words, questions and answers.
 */
#include <fcntl.h>
#include <unistd.h>

#include "reader.h"
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
	s.out = open_memstream(&out, &out_len);
	s.reader = reader_new(end[0], s.out);
	s.device = "/nowhere/QUE";
	CU_ASSERT_PTR_NOT_NULL_FATAL(s.reader);
	snprintf(errors, sizeof errors, "/tmp/reader.XXXXXX");
	close(mkstemp(errors));
	CU_ASSERT_PTR_NOT_NULL(freopen(errors, "w", stderr));
}

static const char *
said(void)
{
	fflush(s.out);
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
	reader_free(s.reader);
	document_free(&s.criteria);
	free(s.last_command);
	free(s.last_shell);
	fclose(s.out);
	free(out);
	unlink(errors);
}

/* Read and carry out everything. */
static void
run_all(void)
{
	char *line;

	while (!s.quit && reader_next(s.reader, "> ", true, &line) == READER_LINE)
		command_line(&s, line);
}

static const char *
words(const char *line)
{
	static char text[512];
	char **argv;
	int n = words_split(line, &argv);
	size_t at = 0;

	if (n < 0)
		return "not closed";
	text[0] = '\0';
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "[%s]", argv[i]);
	CU_ASSERT_PTR_NULL(argv[n]);
	free(argv);
	return text;
}

static void
words_are_split_at_blanks_and_grouped_by_quotes(void)
{
	CU_ASSERT_STRING_EQUAL(words("crdl /a/QUE 0 400"), "[crdl][/a/QUE][0][400]");
	CU_ASSERT_STRING_EQUAL(words("  v\t \r"), "[v]");
	CU_ASSERT_STRING_EQUAL(words(""), "");
	CU_ASSERT_STRING_EQUAL(words("qcr Q fifo none 0 0 100% 0% \"\""), "[qcr][Q][fifo][none][0][0][100%][0%][]");
	CU_ASSERT_STRING_EQUAL(words("qcr Q fifo none 0 0 100% 0% ''"), "[qcr][Q][fifo][none][0][0][100%][0%][]");
	CU_ASSERT_STRING_EQUAL(words("x 'y' 16"), "[x][y][16]");
	CU_ASSERT_STRING_EQUAL(words("5m \"tmboot -s TMQFORWARD\""), "[5m][tmboot -s TMQFORWARD]");
	CU_ASSERT_STRING_EQUAL(words("\"say \\\"hello\\\" now\""), "[say \"hello\" now]");
	CU_ASSERT_STRING_EQUAL(words("hello\\20world"), "[hello\\20world]");
	CU_ASSERT_STRING_EQUAL(words("it's a 'mess"), "[it's][a]['mess]");
	CU_ASSERT_STRING_EQUAL(words("\"it's\""), "[it's]");
	CU_ASSERT_STRING_EQUAL(words("a\"b c\"d"), "[ab cd]");
	CU_ASSERT_STRING_EQUAL(words("\"open"), "not closed");
	CU_ASSERT_STRING_EQUAL(words("'' '' ''"), "[][][]");
}

static void
answers_lose_blanks_and_one_pair_of_quotes(void)
{
	char a[] = "  'y' \r", b[] = "\"\"", c[] = "\"tmboot -s X\"", d[] = "'", e[] = "a b", f[] = "";

	CU_ASSERT_STRING_EQUAL(answer_trim(a), "y");
	CU_ASSERT_STRING_EQUAL(answer_trim(b), "");
	CU_ASSERT_STRING_EQUAL(answer_trim(c), "tmboot -s X");
	CU_ASSERT_STRING_EQUAL(answer_trim(d), "'");
	CU_ASSERT_STRING_EQUAL(answer_trim(e), "a b");
	CU_ASSERT_STRING_EQUAL(answer_trim(f), "");
}

static void
last_line_may_lack_its_end(void)
{
	char *line;

	given_input("one\n\ntwo\r\nthree");
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_LINE);
	CU_ASSERT_STRING_EQUAL(line, "one");
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_LINE);
	CU_ASSERT_STRING_EQUAL(line, "");
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_LINE);
	CU_ASSERT_STRING_EQUAL(line, "two");
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_LINE);
	CU_ASSERT_STRING_EQUAL(line, "three");
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_EOF);
	CU_ASSERT_EQUAL(reader_next(s.reader, "> ", true, &line), READER_EOF);
	CU_ASSERT_STRING_EQUAL(said(), "> > > > > ");
	given_done();
}

static void
echo_and_verbose_are_toggles(void)
{
	given_input("echo\nv\ne off\nverbose on\necho maybe\npage\nq\n");
	run_all();
	CU_ASSERT_STRING_EQUAL(said(), "> Echo is now on\n> v\nVerbose mode is now on\n> e off\nEcho is now off\n"
	    "> Verbose mode is now on\n> > Pagination is now on\n> ");
	CU_ASSERT_TRUE(complained("on or off is expected, not \"maybe\""));
	CU_ASSERT_TRUE(s.quit);
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
	CU_ASSERT_EQUAL(command_line(&s, "qscan"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "qscan -p 10-20 -i hello\\20world -dpersist"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "qscan"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "qscan -t 38"), -1);
	CU_ASSERT_EQUAL(command_line(&s, "qscan all"), -1);
	CU_ASSERT_EQUAL(command_line(&s, "qscan none"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "qscan"), 0);
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
	CU_ASSERT_EQUAL(command_line(&s, "qstats"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qstats: no such command"));
	CU_ASSERT_EQUAL(command_line(&s, "qinfo"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qinfo: no queue space is open"));
	CU_ASSERT_EQUAL(command_line(&s, "dsdl -x 1"), -1);
	CU_ASSERT_TRUE(complained("ERROR: dsdl: unknown option -x\nusage: dsdl [-y] [dlindex]\n"));
	CU_ASSERT_EQUAL(command_line(&s, "qspc -n"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qspacecreate: option -n needs a value"));
	CU_ASSERT_EQUAL(command_line(&s, "lidl 1 2"), -1);
	CU_ASSERT_TRUE(complained("ERROR: lidl: too many arguments, from \"2\" on"));
	CU_ASSERT_EQUAL(command_line(&s, "qopen \"S"), -1);
	CU_ASSERT_TRUE(complained("a double quote is not closed"));
	snprintf(s.space, sizeof s.space, "S");
	CU_ASSERT_EQUAL(command_line(&s, "qcp -y 10"), -1);
	CU_ASSERT_TRUE(complained("ERROR: qchangeprio: not available in this version"));
	CU_ASSERT_EQUAL(command_line(&s, "!!"), -1);
	CU_ASSERT_TRUE(complained("no shell command to repeat"));
	given_done();
}

static void
help_knows_every_command(void)
{
	char line[64];

	given_input("");
	for (const struct command *c = commands; c->name != NULL; c++) {
		snprintf(line, sizeof line, "help %s", c->abbreviation != NULL ? c->abbreviation : c->name);
		CU_ASSERT_EQUAL(command_line(&s, line), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(said(), c->name));
		CU_ASSERT_PTR_NOT_NULL(strstr(said(), c->description));
	}
	CU_ASSERT_EQUAL(command_line(&s, "h"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "h all"), 0);
	CU_ASSERT_EQUAL(command_line(&s, "h qstats"), -1);
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
	static const struct unit_test tests[] = { UNIT(words_are_split_at_blanks_and_grouped_by_quotes),
		UNIT(answers_lose_blanks_and_one_pair_of_quotes), UNIT(last_line_may_lack_its_end),
		    UNIT(echo_and_verbose_are_toggles),
		UNIT(empty_line_repeats_the_command_before), UNIT(question_is_asked_until_a_required_value_comes),
		UNIT(empty_answer_takes_the_default), UNIT(positionals_come_first_and_the_rest_is_asked_for),
		    UNIT(qscan_keeps_criteria),
		UNIT(mistakes_are_answered_and_the_session_goes_on), UNIT(help_knows_every_command),
		UNIT(shell_lines_do_not_take_our_input) };

	return unit_run("qmadmin's reader", tests, UNIT_COUNT(tests));
}
