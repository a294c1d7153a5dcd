/*
 * Lines and words, as qmadmin and tmadmin read them.
 */
#include <stdlib.h>
#include <unistd.h>

#include "console.h"
#include "unit.h"

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

static const char *
next_line(struct reader *r)
{
	static const char *const ends[] = { [READER_EOF] = "(end)", [READER_BREAK] = "(break)" };
	char *line;
	enum reader_end end = reader_next(r, "> ", true, &line);

	return end == READER_LINE ? line : ends[end];
}

static void
last_line_may_lack_its_end(void)
{
	static const char input[] = "one\n\ntwo\r\nthree";
	struct reader *r;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int end[2];

	CU_ASSERT_EQUAL_FATAL(pipe(end), 0);
	CU_ASSERT_EQUAL(write(end[1], input, strlen(input)), (ssize_t)strlen(input));
	close(end[1]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r = reader_new("test", end[0], out));
	CU_ASSERT_STRING_EQUAL(next_line(r), "one");
	CU_ASSERT_STRING_EQUAL(next_line(r), "");
	CU_ASSERT_STRING_EQUAL(next_line(r), "two");
	CU_ASSERT_STRING_EQUAL(next_line(r), "three");
	CU_ASSERT_STRING_EQUAL(next_line(r), "(end)");
	CU_ASSERT_STRING_EQUAL(next_line(r), "(end)");
	reader_free(r);
	close(end[0]);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, "> > > > > ");
	free(text);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(words_are_split_at_blanks_and_grouped_by_quotes),
		UNIT(answers_lose_blanks_and_one_pair_of_quotes),
		UNIT(last_line_may_lack_its_end),
	};

	return unit_run("the console", tests, UNIT_COUNT(tests));
}
