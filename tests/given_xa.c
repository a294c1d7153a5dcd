/*
 * given_xa - see given_xa.h.
 */
#include "given_xa.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

XID
xa_id(const char *gtrid, const char *bqual)
{
	XID x;

	memset(&x, 0, sizeof x);
	x.formatID = 4711;
	x.gtrid_length = (long)strlen(gtrid);
	x.bqual_length = (long)strlen(bqual);
	memcpy(x.data, gtrid, strlen(gtrid));
	memcpy(x.data + x.gtrid_length, bqual, strlen(bqual));
	return x;
}

bool
xid_same(const XID *a, const XID *b)
{
	return a->formatID == b->formatID && a->gtrid_length == b->gtrid_length && a->bqual_length == b->bqual_length &&
	    memcmp(a->data, b->data, (size_t)(a->gtrid_length + a->bqual_length)) == 0;
}

char *
xa_hex(const XID *x)
{
	char *s = calloc(1, 2 * 138 + 1), *at = s;
	long i;

	at += sprintf(at, "ff%016lx%02lx", (unsigned long)x->formatID, x->gtrid_length);
	for (i = 0; i < x->gtrid_length + x->bqual_length; i++)
		at += sprintf(at, "%02x", (unsigned char)x->data[i]);
	return s;
}

const char *
xa_info(const char *dir, int space)
{
	static __thread char info[PATH_MAX];
	char n[16] = "";

	if (space > 1)
		snprintf(n, sizeof n, "%d", space);
	snprintf(info, sizeof info, "TUXEDO/QM:%s/QUE%s:%s", dir, n, given_space(space));
	return info;
}

int
xa_open(const char *info, int rmid, long flags)
{
	char copy[2 * MAXINFOSIZE];

	snprintf(copy, sizeof copy, "%s", info);
	return tmqm_switch.xa_open_entry(copy, rmid, flags);
}

int
xa_close(int rmid, long flags)
{
	char none[] = "";

	return tmqm_switch.xa_close_entry(none, rmid, flags);
}

#define ENTRY(name) \
	int xa_##name(const XID *x, int rmid, long flags) { return tmqm_switch.xa_##name##_entry((XID *)x, rmid, flags); }
ENTRY(start)
ENTRY(end)
ENTRY(prepare)
ENTRY(commit)
ENTRY(rollback)
ENTRY(forget)

int
xa_recover(XID *x, long n, int rmid, long flags)
{
	return tmqm_switch.xa_recover_entry(x, n, rmid, flags);
}

struct coming { int (*call)(const XID *, int, long); const XID *x; int rmid; long flags; int wanted; };

static bool
came(void *arg)
{
	struct coming *c = arg;

	return c->call(c->x, c->rmid, c->flags) == c->wanted;
}

bool
xa_comes(int (*call)(const XID *, int, long), const XID *x, int rmid, long flags, int wanted)
{
	struct coming c = { call, x, rmid, flags, wanted };

	return wait_until(came, &c, 20);
}

int
xa_in_doubt(int rmid, XID *xids, int max)
{
	XID page[8];
	int n, all = 0, i;
	long flags = TMSTARTRSCAN;

	do {
		if ((n = xa_recover(page, 8, rmid, flags)) < 0)
			return -1;
		for (i = 0; i < n; i++, all++)
			if (xids != NULL && all < max)
				xids[all] = page[i];
		flags = TMNOFLAGS;
	} while (n == 8);
	return xa_recover(NULL, 0, rmid, TMENDRSCAN) == 0 ? all : -1;
}

int
xa_put(int space, const char *queue, const char *text)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, (long)strlen(text) + 1);
	int rc;

	strcpy(data, text);
	rc = tpenqueue((char *)given_space(space), (char *)queue, &ctl, data, 0, 0) == -1 ? tperrno : 0;
	tpfree(data);
	return rc == TPEDIAGNOSTIC ? (int)ctl.diagnostic : rc;
}

int
xa_take(int space, const char *queue, char text[64])
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 64);
	long len = 0;
	int rc = tpdequeue((char *)given_space(space), (char *)queue, &ctl, &data, &len, 0) == -1 ? tperrno : 0;

	if (rc == 0)
		snprintf(text, 64, "%s", data);
	tpfree(data);
	return rc == TPEDIAGNOSTIC ? (int)ctl.diagnostic : rc;
}

/* ---- drivers ---- */

struct xa_driver
xa_driver_start(const char *what, const char *arg)
{
	struct xa_driver d = { .out = -1 };
	int fd[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	fflush(NULL);
	if ((d.pid = fork()) == 0) {
		dup2(fd[1], 3);
		if (fd[0] != 3)
			close(fd[0]);
		if (fd[1] != 3)
			close(fd[1]);
		execl("/proc/self/exe", "driver", what, arg, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	d.out = fd[0];
	return d;
}

bool
xa_driver_said(struct xa_driver *d, const char *line)
{
	char got[200];
	size_t n = 0;

	while (n < sizeof got - 1 && read(d->out, got + n, 1) == 1 && got[n] != '\n')
		n++;
	got[n] = '\0';
	if (strcmp(got, line) != 0)
		printf("\n    a driver said \"%s\", not \"%s\"", got, line);
	return strcmp(got, line) == 0;
}

static int
driver_gone(struct xa_driver *d)
{
	int status = -1;

	waitpid(d->pid, &status, 0);
	close(d->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void
xa_driver_kill(struct xa_driver *d)
{
	kill(d->pid, SIGKILL);
	driver_gone(d);
}

int
xa_driver_ends(struct xa_driver *d)
{
	return driver_gone(d);
}

void
xa_driver_says(const char *line)
{
	dprintf(3, "%s\n", line);
}
