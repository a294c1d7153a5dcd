/*
 * ulog: lines as log shippers split them.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "ulog.h"
#include "version.h"

static char dir[] = "/tmp/test_ulog.XXXXXX";

/* --- given --- */

static char *	/* all of today's file, or of the only file there is; free() it */
log_text(void)
{
	static char pattern[64];
	char *text = NULL;
	glob_t g;
	FILE *f;
	size_t n = 0;

	snprintf(pattern, sizeof pattern, "%s/ULOG.*", dir);
	CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &g), 0);
	f = fopen(g.gl_pathv[0], "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	if (getdelim(&text, &n, '\0', f) < 0)
		text = strdup("");
	fclose(f);
	globfree(&g);
	return text;
}

static char *	/* the last line, without its newline; free() it */
last_line(void)
{
	char *text = log_text(), *from, *line;

	CU_ASSERT_TRUE(*text != '\0' && text[strlen(text) - 1] == '\n');
	text[strlen(text) - 1] = '\0';
	from = strrchr(text, '\n');
	line = strdup(from != NULL ? from + 1 : text);
	free(text);
	return line;
}

static void	/* the last line is: time, a dot, and this */
expect_line(const char *rest)
{
	char *line = last_line();

	CU_ASSERT_EQUAL(strspn(line, "0123456789"), 6);
	CU_ASSERT_STRING_EQUAL(line + 6, rest);
	free(line);
}

static char *	/* ".node!test.pid.thread.context: text" in a static buffer */
tagged(long thread, long context, const char *text)
{
	static char line[512];
	struct utsname u;

	uname(&u);
	snprintf(line, sizeof line, ".%s!test.%ld.%ld.%ld: %s", u.nodename, (long)getpid(), thread, context, text);
	return line;
}

static int	/* run in a child, where nothing is settled yet */
in_child(int (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- tests --- */

static void
the_first_line_tells_date_and_version(void)
{
	char want[128], *text, *end;
	time_t now = time(NULL);
	struct tm tm;

	CU_ASSERT_TRUE(ulog("hello") > 0);
	localtime_r(&now, &tm);
	snprintf(want, sizeof want, "%02d-%02d-%04d: atmiq Version " ATMIQ_VERSION ", 64-bit", tm.tm_mon + 1, tm.tm_mday,
	    tm.tm_year + 1900);
	text = log_text();
	end = strchr(text, '\n');
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	*end = '\0';
	CU_ASSERT_STRING_EQUAL(text + 6, tagged(1, 0, want));
	free(text);
	expect_line(tagged(1, 0, "hello"));
}

static void
a_missing_newline_is_added_and_others_stay(void)
{
	char *line;

	ulog("one\n");
	expect_line(tagged(1, 0, "one"));
	ulog("two\nthree");
	line = last_line();
	CU_ASSERT_STRING_EQUAL(line, "three");
	free(line);
	CU_ASSERT_TRUE(ulog("%s", "") > 0);
	expect_line(tagged(1, 0, ""));
}

static void
a_line_of_any_length_is_written_whole(void)
{
	char *line;

	ulog("%0100000d", 1);
	line = last_line();
	CU_ASSERT_EQUAL(strlen(line), 6 + strlen(tagged(1, 0, "")) + 100000);
	free(line);
}

static void
a_transaction_stands_before_the_text(void)
{
	static const unsigned long xid[3] = { 0, 0x47fb1049, 0x16e };

	ulog_gtrid(xid);
	ulog("in it");
	expect_line(tagged(1, 0, "gtrid x0 x47fb1049 x16e: in it"));
	ulog_gtrid(NULL);
	ulog("out of it");
	expect_line(tagged(1, 0, "out of it"));
}

static void *
another_thread(void *tid)
{
	*(long *)tid = gettid();
	ulog_context(3);
	ulog("other");
	return NULL;
}

static void
threads_and_contexts_are_told(void)
{
	pthread_t t;
	long tid = 0;

	pthread_create(&t, NULL, another_thread, &tid);
	pthread_join(t, NULL);
	expect_line(tagged(tid, 3, "other"));
	ulog("main");
	expect_line(tagged(1, 0, "main"));
}

static void
milliseconds_when_wanted(void)
{
	char *line;

	setenv("ULOGMILLISEC", "Y", 1);
	ulog("x");
	unsetenv("ULOGMILLISEC");
	line = last_line();
	CU_ASSERT_EQUAL(strspn(line, "0123456789"), 6);
	CU_ASSERT_EQUAL(line[6], '.');
	CU_ASSERT_EQUAL(strspn(line + 7, "0123456789"), 3);
	CU_ASSERT_STRING_EQUAL(line + 10, tagged(1, 0, "x"));
	free(line);
}

static void
the_file_has_the_day_in_its_name(void)
{
	time_t then = time(NULL) + 40 * 86400;
	struct tm tm;
	char path[128];

	clock_shift_us(INT64_C(40) * 86400 * 1000000);
	ulog("later");
	clock_shift_us(INT64_C(-40) * 86400 * 1000000);
	localtime_r(&then, &tm);
	snprintf(path, sizeof path, "%s/ULOG.%02d%02d%02d", dir, tm.tm_mon + 1, tm.tm_mday, tm.tm_year % 100);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	CU_ASSERT_EQUAL(unlink(path), 0);
}

static void
errno_is_preserved(void)
{
	errno = ENOSPC;
	ulog("x");
	CU_ASSERT_EQUAL(errno, ENOSPC);
}

static int
debug_child(void)
{
	char text[4096];
	int to[2], n;

	if (pipe(to) != 0 || dup2(to[1], STDERR_FILENO) < 0)
		return 1;
	ulog_debug("not seen");
	ulog("not echoed");
	setenv("ULOGDEBUG", "yes", 1);
	ulog_debug("seen %d", 1);
	close(STDERR_FILENO);
	close(to[1]);
	n = (int)read(to[0], text, sizeof text - 1);
	if (n <= 0)
		return 2;
	text[n] = '\0';
	return strstr(text, "seen 1\n") == NULL || strstr(text, "not") != NULL;
}

static void
ulogdebug_copies_to_stderr(void)
{
	CU_ASSERT_EQUAL(in_child(debug_child), 0);
}

static int
greeting_child(void)
{
	ulog("from the child");
	return 0;
}

static void
each_process_greets(void)
{
	char *text, *at;
	int greetings = 0;

	CU_ASSERT_EQUAL(in_child(greeting_child), 0);
	text = log_text();
	for (at = text; (at = strstr(at, ": atmiq Version ")) != NULL; at++)
		greetings++;
	CU_ASSERT_TRUE(greetings >= 2);
	free(text);
}

static void *
write_lines(void *arg)
{
	for (int i = 0; i < 200; i++)
		ulog("line %04d of thread %s end", i, (const char *)arg);
	return NULL;
}

static void
lines_of_many_threads_are_whole(void)
{
	char *name[] = { (char[]){ "A" }, (char[]){ "B" }, (char[]){ "C" } };
	char *text, *line, *save = NULL;
	pthread_t t[3];
	int n = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, write_lines, name[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	text = log_text();
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		const char *at = strstr(line, ": line ");

		n += at != NULL && strlen(at) == strlen(": line 0000 of thread A end");
	}
	CU_ASSERT_EQUAL(n, 600);
	free(text);
}

static int
unwritable_child(void)
{
	ulog_prefix("/nonexistent/place/ULOG");
	return ulog("x") != -1;
}

static int
relative_child(void)
{
	struct stat st;
	char path[64];
	time_t now = time(NULL);
	struct tm tm;

	unsetenv("ULOGPFX");
	if (chdir(dir) != 0)
		return 1;
	ulog_prefix("mylog");
	ulog("x");
	localtime_r(&now, &tm);
	snprintf(path, sizeof path, "mylog.%02d%02d%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_year % 100);
	return stat(path, &st) != 0;
}

static void	/* Children that come before the first line of ours, for it fixes the prefix. */
the_prefix_comes_from_the_environment_or_the_configuration(void)
{
	char prefix[64];

	CU_ASSERT_EQUAL(in_child(relative_child), 0);
	unsetenv("ULOGPFX");
	CU_ASSERT_EQUAL(in_child(unwritable_child), 0);
	snprintf(prefix, sizeof prefix, "%s/ULOG", dir);
	setenv("ULOGPFX", prefix, 1);
	ulog_prefix("/nonexistent/place/ULOG");	/* the environment wins */
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(the_prefix_comes_from_the_environment_or_the_configuration),
		UNIT(the_first_line_tells_date_and_version),
		UNIT(a_missing_newline_is_added_and_others_stay),
		UNIT(a_line_of_any_length_is_written_whole),
		UNIT(a_transaction_stands_before_the_text),
		UNIT(threads_and_contexts_are_told),
		UNIT(milliseconds_when_wanted),
		UNIT(the_file_has_the_day_in_its_name),
		UNIT(errno_is_preserved),
		UNIT(ulogdebug_copies_to_stderr),
		UNIT(each_process_greets),
		UNIT(lines_of_many_threads_are_whole),
	};
	char command[64];
	int rc;

	if (mkdtemp(dir) == NULL)
		return 2;
	ulog_program("/usr/bin/test");
	rc = unit_run("ulog", tests, UNIT_COUNT(tests));
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) == 0 ? rc : 2;
}
