/*
 * ulog - see ulog.h.
 *
 * The file is opened for each line: lines are rare, and an administrator who moves the file away, or the day that
 * changes, needs no care then.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "ulog.h"
#include "version.h"

static struct {			/* of the process; under lock */
	pthread_mutex_t lock;
	char program[64];
	char *const *program_at;
	char configured[4096];	/* by ulog_prefix() */
	char prefix[4096];	/* fixed at the first line; "" before it */
	char node[65];
	pid_t greeted;		/* the process that has written its version line; a child writes its own */
} me = { .lock = PTHREAD_MUTEX_INITIALIZER, .program = "?proc" };

static _Thread_local long context;
static _Thread_local struct { unsigned char on; unsigned long x[3]; } gtrid;

/* --- the lock, also across fork() --- */

static void lock(void) { pthread_mutex_lock(&me.lock); }
static void unlock(void) { pthread_mutex_unlock(&me.lock); }

__attribute__((constructor)) static void
ulog_survive_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

/* --- who we are --- */

void
ulog_program(const char *name)
{
	const char *slash;

	if (name == NULL || *name == '\0')
		name = "?proc";
	slash = strrchr(name, '/');
	lock();
	snprintf(me.program, sizeof me.program, "%s", slash != NULL ? slash + 1 : name);
	unlock();
}

void
ulog_program_at(char *const *name)
{
	lock();
	me.program_at = name;
	unlock();
}

void
ulog_prefix(const char *prefix)
{
	lock();
	snprintf(me.configured, sizeof me.configured, "%s", prefix);
	unlock();
}

void
ulog_context(long ctx)
{
	context = ctx;
}

void
ulog_gtrid(const unsigned long xid[3])
{
	gtrid.on = xid != NULL;
	if (xid != NULL)
		memcpy(gtrid.x, xid, sizeof gtrid.x);
}

static void	/* The prefix and the node's name, at the first line; me.lock is held. */
settle(void)
{
	const char *env = getenv("ULOGPFX");
	struct utsname u;

	if (me.prefix[0] != '\0')
		return;
	snprintf(me.prefix, sizeof me.prefix, "%s",
	    env != NULL && *env != '\0' ? env : me.configured[0] != '\0' ? me.configured : "ULOG");
	snprintf(me.node, sizeof me.node, "%s", uname(&u) == 0 ? u.nodename : "?");
}

/* --- one line --- */

#define TAG_MAX 320
#define GTRID_MAX 96
#define PROGRAM_MAX 63

static const char *	/* me.lock is held */
program(void)
{
	const char *name = me.program_at != NULL ? *me.program_at : NULL, *slash;

	if (name == NULL || *name == '\0')
		return me.program;
	return (slash = strrchr(name, '/')) != NULL ? slash + 1 : name;
}

static size_t	/* "hhmmss.node!process.pid.thread.context: " and the gtrid; me.lock is held */
put_tag(char *to, const struct tm *tm, int ms)
{
	const char *milli = getenv("ULOGMILLISEC");
	pid_t pid = getpid();
	long thread = gettid() == pid ? 1 : gettid();
	char part[16] = "";
	int n;

	if (milli != NULL && (*milli == 'Y' || *milli == 'y'))
		snprintf(part, sizeof part, ".%03d", ms);
	n = snprintf(to, TAG_MAX, "%02d%02d%02d%s.%s!%.*s.%ld.%ld.%ld: ", tm->tm_hour, tm->tm_min, tm->tm_sec, part,
	    me.node, PROGRAM_MAX, program(), (long)pid, thread, context);
	return (size_t)n < TAG_MAX ? (size_t)n : TAG_MAX - 1;
}

static bool
debug_wanted(void)
{
	const char *debug = getenv("ULOGDEBUG");

	return debug != NULL && (*debug == '1' || *debug == 'y');
}

static bool
echo_wanted(void)
{
	const char *also = getenv("ULOGSTDERR");

	return debug_wanted() || (also != NULL && *also == 'y');
}

static int	/* bytes written, or -1 */
append(const struct tm *tm, const char *line, size_t n)
{
	char path[sizeof me.prefix + 64];
	int fd;
	ssize_t done;

	snprintf(path, sizeof path, "%s.%02d%02d%02d", me.prefix, tm->tm_mon + 1, tm->tm_mday, tm->tm_year % 100);
	while (echo_wanted() && write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
		;		/* a courtesy: whether it works does not count */
	if ((fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) < 0)
		return -1;
	do
		done = write(fd, line, n);
	while (done < 0 && errno == EINTR);
	close(fd);
	return done == (ssize_t)n ? (int)n : -1;
}

static int	/* text, with its tag and a newline; me.lock is held */
put_line(const char *text, size_t len)
{
	int64_t now = clock_now_us();
	time_t sec = (time_t)(now / 1000000);
	struct tm tm = { 0 };
	char small[1024], *line = small;
	size_t n, want = TAG_MAX + GTRID_MAX + len + 2;
	int rc;

	localtime_r(&sec, &tm);
	if (want > sizeof small && (line = malloc(want)) == NULL)
		return -1;
	n = put_tag(line, &tm, (int)(now / 1000 % 1000));
	if (gtrid.on)
		n += (size_t)snprintf(line + n, GTRID_MAX, "gtrid x%lx x%lx x%lx: ", gtrid.x[0], gtrid.x[1],
		    gtrid.x[2]);
	memcpy(line + n, text, len);
	n += len;
	if (line[n - 1] != '\n')
		line[n++] = '\n';
	rc = append(&tm, line, n);
	if (line != small)
		free(line);
	return rc;
}

static void	/* Once a process: date and version. */
greet(void)
{
	time_t sec = (time_t)(clock_now_us() / 1000000);
	struct tm tm = { 0 };
	char text[96];

	if (me.greeted == getpid())
		return;
	me.greeted = getpid();
	localtime_r(&sec, &tm);
	snprintf(text, sizeof text, "%02d-%02d-%04d: atmiq Version " ATMIQ_VERSION ", %d-bit", tm.tm_mon + 1,
	    tm.tm_mday, tm.tm_year + 1900, (int)sizeof(void *) * 8);
	put_line(text, strlen(text));
}

int
ulog_v(const char *fmt, va_list ap)
{
	char small[512], *text = small;
	va_list again;
	int saved = errno, n, rc = -1;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof small, fmt, ap);
	if (n >= (int)sizeof small && (n = vasprintf(&text, fmt, again)) < 0)
		text = small;
	va_end(again);
	if (n >= 0) {
		lock();
		settle();
		greet();
		rc = put_line(text, (size_t)n);
		unlock();
	}
	if (text != small)
		free(text);
	errno = saved;
	return rc;
}

int
ulog(const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = ulog_v(fmt, ap);
	va_end(ap);
	return rc;
}

void
ulog_debug(const char *fmt, ...)
{
	va_list ap;

	if (!debug_wanted())
		return;
	va_start(ap, fmt);
	ulog_v(fmt, ap);
	va_end(ap);
}
