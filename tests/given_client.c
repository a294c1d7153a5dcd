/*
 * given_client - the few words that most stories say as a client.
 */
#include "given_impl.h"

bool
given_call_ok(int rc, const char *what, const char *file, int line)
{
	if (rc != -1)
		return true;
	fprintf(stderr, "\n%s:%d: %s: tperrno %d, %s\n", file, line, what, tperrno, tpstrerror(tperrno));
	CU_assertImplementation(CU_FALSE, (unsigned)line, what, file, "", CU_FALSE);
	return false;
}

void
put(const char *queue, const char *text)
{
	put_in("QSPACE", queue, text);
}

void
put_in(const char *space, const char *queue, const char *text)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, (long)strlen(text) + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	snprintf(data, strlen(text) + 1, "%s", text);
	if (!GIVEN_CALL_OK(tpenqueue((char *)space, (char *)queue, &ctl, data, 0, 0)))
		fprintf(stderr, "    space %s, queue %s, diagnostic %ld\n", space, queue, ctl.diagnostic);
	tpfree(data);
}

/* 0 and *text (malloc'ed, "" without data), or a QME code; any other error is 1000 + tperrno. */
static int
try_take(const char *space, const char *queue, long flags, char **text)
{
	TPQCTL ctl = { .flags = flags };
	char *data = tpalloc("STRING", NULL, 512);
	long len = 0;
	int rc = 0;

	*text = NULL;
	if (tpdequeue((char *)space, (char *)queue, &ctl, &data, &len, TPNOTIME) == -1)
		rc = tperrno == TPEDIAGNOSTIC ? (int)ctl.diagnostic : 1000 + tperrno;
	else
		*text = len > 0 ? strndup(data, (size_t)len) : strdup("");
	tpfree(data);
	return rc;
}

char *
take(const char *queue)
{
	return take_from("QSPACE", queue);
}

char *
take_from(const char *space, const char *queue)
{
	char *text;
	int rc = try_take(space, queue, TPNOFLAGS, &text);

	if (rc != 0 && rc != QMENOMSG) {
		fprintf(stderr, "\ntake from %s of %s: %d\n", queue, space, rc);
		CU_FAIL("dequeue");
	}
	return text;
}

int
take_diagnostic(const char *queue)
{
	char *text;
	int rc = try_take("QSPACE", queue, TPNOFLAGS, &text);

	free(text);
	return rc;
}

bool
peeks(const char *queue, const char *text)
{
	char *got;
	bool same = try_take("QSPACE", queue, TPQPEEK, &got) == 0 && strcmp(got, text) == 0;

	free(got);
	return same;
}

/* qinfo prints "queue: NAME", and below it "  messages: N". */
long
depth(const struct given *g, const char *queue)
{
	return depth_in(g, 1, queue);
}

long
depth_in(const struct given *g, int space, const char *queue)
{
	char lines[300], want[200], *at;
	struct ran r;
	long n = -1;

	snprintf(lines, sizeof lines, "qopen %s\nqinfo %s\nq\n", given_space(space), queue);
	snprintf(want, sizeof want, "queue: %s\n", queue);
	r = given_run(g, lines, "qmadmin %s", given_device(g, space));
	if ((at = strstr(r.out, want)) != NULL && (at = strstr(at, "\n  messages: ")) != NULL)
		n = atol(at + strlen("\n  messages: "));
	ran_free(&r);
	return n;
}

struct wanted { const char *queue; char *text; };

static bool
took(void *arg)
{
	struct wanted *w = arg;

	return try_take("QSPACE", w->queue, TPNOFLAGS, &w->text) == 0;
}

char *
take_within(const char *queue, double seconds)
{
	struct wanted w = { queue, NULL };

	wait_until(took, &w, seconds);
	return w.text;
}
