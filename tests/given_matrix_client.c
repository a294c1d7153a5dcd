/*
 * given_matrix_client - the program whose transaction it is.  It writes down what it was told last, so that a dead one has said
 * nothing.
 */
#include "given_impl.h"
#include "given_matrix.h"

#include <fcntl.h>
#include <unistd.h>

#define TIME_OUT_S 4

static char *text;		/* a typed buffer: "space queue message" for the service, the message for us */

static bool
take_it(void)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long len = 0;

	return tpdequeue("QSPACE", "SRC", &ctl, &text, &len, 0) != -1;
}

static bool
call_service(const char *space)
{
	char *ask = tpalloc("STRING", NULL, 256), *answer = tpalloc("STRING", NULL, 256);
	long len = 0;
	bool good;

	snprintf(ask, 256, "%s OUT %s", space, text);
	good = tpcall("PUT", ask, 0, &answer, &len, 0) != -1;
	tpfree(ask);
	tpfree(answer);
	return good;
}

static bool
put_it(void)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	return tpenqueue("QSPACE2", "ALSO", &ctl, text, 0, 0) != -1;
}

static bool
step(char what, const char *last)
{
	return what == 'd' ? take_it() : what == 's' ? call_service(last) : put_it();
}

static void
say(const char *file, const char *fmt, int error)
{
	char line[64];
	int fd = open(file, O_CREAT | O_WRONLY | O_TRUNC, 0600), n = snprintf(line, sizeof line, fmt, error);

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

bool
matrix_is_client(int argc, char **argv)
{
	return argc > 6 && strcmp(argv[1], "matrix-client") == 0;
}

/* argv: message, order of the steps (such as dse), the last space, how it ends (c: commit, l: commit logged, a: abort), result file */
int
matrix_client(char **argv)
{
	const char *steps = argv[3], *last = argv[4], *file = argv[6];
	char end = argv[5][0];
	int error = 0;

	text = tpalloc("STRING", NULL, 256);
	snprintf(text, 256, "%s", argv[2]);
	tpscmt(end == 'l' ? TP_CMT_LOGGED : TP_CMT_COMPLETE);
	if (tpbegin(TIME_OUT_S, 0) == -1) {
		say(file, "begin %d\n", tperrno);
		return 1;
	}
	for (; *steps != '\0' && error == 0; steps++)
		if (!step(*steps, last))
			error = tperrno;
	if (end == 'a' || error != 0) {
		if (tpabort(0) == -1)
			say(file, "abort failed %d\n", tperrno);
		else
			say(file, end == 'a' ? "aborted %d\n" : "gave up %d\n", error);
	} else if (tpcommit(0) == -1)
		say(file, "commit failed %d\n", tperrno);
	else
		say(file, "committed %d\n", 0);
	tpterm();
	return 0;
}
