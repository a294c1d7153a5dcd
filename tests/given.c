/*
 * given - the system's directory, files, boot and end.
 */
#include "given_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "given.h"

static struct given *standing;		/* the one system of this process */

/* --- a key and a directory that nobody else has --- */

/* An abstract socket is ours until this process ends: no file to clean up. */
static long
key_take(int *fd)
{
	struct sockaddr_un a;
	unsigned seed = (unsigned)getpid() * 2654435761u ^ (unsigned)time(NULL);

	for (;;) {
		long key = 32769 + (long)(rand_r(&seed) % 200000u);
		memset(&a, 0, sizeof a);
		a.sun_family = AF_UNIX;
		snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "atmiq-test-%ld", key);
		*fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (bind(*fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1))) == 0)
			return key;
		close(*fd);
	}
}

static void
find_tuxdir(char *to, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(self, '/')) != NULL)
		*slash = '\0';
	snprintf(to, size, "%.*s/../tuxdir", (int)(size - 16), self);
	if (realpath(to, self) != NULL)
		snprintf(to, size, "%s", self);
}

static pid_t maker;		/* of the systems */

static void
at_exit(void)
{
	if (getpid() != maker)		/* a child that a story forked */
		return;
	if (standing != NULL)
		given_remove(standing);
}

static void
environment(const struct given *g)
{
	const char *path = getenv("PATH");
	char buf[PATH_MAX * 2];

	setenv("TUXDIR", g->tuxdir, 1);
	setenv("APPDIR", g->dir, 1);
	setenv("LD_LIBRARY_PATH", "", 1);
	snprintf(buf, sizeof buf, "%s/lib", g->tuxdir);
	setenv("LD_LIBRARY_PATH", buf, 1);
	snprintf(buf, sizeof buf, "%s/tuxconfig", g->dir);
	setenv("TUXCONFIG", buf, 1);
	snprintf(buf, sizeof buf, "%s/QUE", g->dir);
	setenv("QMCONFIG", buf, 1);
	snprintf(buf, sizeof buf, "%s/ULOG", g->dir);
	setenv("ULOGPFX", buf, 1);
	if (path == NULL || strncmp(path, g->tuxdir, strlen(g->tuxdir)) != 0) {
		snprintf(buf, sizeof buf, "%s/bin:%s", g->tuxdir, path != NULL ? path : "/usr/bin:/bin");
		setenv("PATH", buf, 1);
	}
	unsetenv("ULOGDEBUG");
	unsetenv("ULOGMILLISEC");
#ifdef TEST_SANFLAGS
	setenv("CFLAGS", TEST_SANFLAGS, 1);
#endif
}

struct given *
given_directory(void)
{
	static bool registered;
	struct given *g = calloc(1, sizeof *g);
	const char *tmp = getenv("TMPDIR");
	struct utsname un;

	if (!registered)
		atexit(at_exit);
	maker = getpid();
	registered = true;
	if (standing != NULL)
		given_remove(standing);
	if (g == NULL)
		abort();
	standing = g;
	snprintf(g->dir, sizeof g->dir, "%s/given.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(g->dir) == NULL) {
		perror(g->dir);
		abort();
	}
	uname(&un);
	snprintf(g->node, sizeof g->node, "%s", un.nodename);
	find_tuxdir(g->tuxdir, sizeof g->tuxdir);
	g->key = key_take(&g->key_fd);
	environment(g);
	return g;
}

/* --- files --- */

static const char *
or(const char *s, const char *otherwise)
{
	return s != NULL ? s : otherwise;
}

/* --- several spaces --- */

static int
spaces_of(const struct given_conf *c)
{
	return c->no_queue_group ? 0 : c->spaces > 4 ? 4 : c->spaces > 1 ? c->spaces : 1;
}

const char *
given_space(int n)
{
	static const char *const names[] = { "QSPACE", "QSPACE2", "QSPACE3", "QSPACE4" };

	return names[(n - 1) & 3];
}

const char *
given_group(int n)
{
	static const char *const names[] = { "QUE1", "QUE2", "QUE3", "QUE4" };

	return names[(n - 1) & 3];
}

const char *
given_device(const struct given *g, int n)
{
	static char path[4][PATH_MAX + 16];

	snprintf(path[(n - 1) & 3], sizeof path[0], n > 1 ? "%s/QUE%d" : "%s/QUE", g->dir, n);
	return path[(n - 1) & 3];
}

static void
write_groups(const struct given *g, const struct given_conf *c)
{
	for (int n = 1; n <= spaces_of(c); n++)
		given_append(g, "ubb", "%s\tLMID=SITE1 GRPNO=%d TMSNAME=TMS_QM TMSCOUNT=2\n\tOPENINFO=\"TUXEDO/QM:%s:%s\"\n",
		    given_group(n), GIVEN_GRPNO(n), given_device(g, n), given_space(n));
}

static void	/* the last parameter of an entry: what the server looks at for its test points */
write_envfile(const struct given *g, const char *who)
{
	char name[64];

	snprintf(name, sizeof name, "%s.env", who);
	given_write(g, name, "ATMIQ_TEST_POINT=%s\n", given_point_dir(g, who));
	given_append(g, "ubb", "\tENVFILE=\"%s/%s\"\n", g->dir, name);
}

static void
write_tmqueues(const struct given *g, const struct given_conf *c)
{
	const char *params = or(c->tmqueue_params, c->spaces > 1 ? "RESTART=Y GRACE=0 MAXGEN=255" : "RESTART=Y GRACE=0 MAXGEN=10");

	for (int n = 1; n <= spaces_of(c); n++) {
		given_append(g, "ubb", "TMQUEUE\tSRVGRP=%s SRVID=1 ", given_group(n));
		if (n == 1 && c->tmqueue != NULL)
			given_append(g, "ubb", "%s\n", c->tmqueue);
		else
			given_append(g, "ubb", "%s CLOPT=\"-s %s:TMQUEUE -- -t 30\"\n", params, given_space(n));
		if (c->points)
			write_envfile(g, given_group(n));
	}
}

static void
write_ubb(const struct given *g, const struct given_conf *c)
{
	given_write(g, "ubb",
	    "*RESOURCES\nIPCKEY\t%ld\nMASTER\tSITE1\nMODEL\tSHM\nDOMAINID\tgiven\nMAXACCESSERS\t200\n%s%s%s\n"
	    "*MACHINES\n\"%s\"\tLMID=SITE1\n\tTUXDIR=\"%s\"\n\tAPPDIR=\"%s\"\n\tTUXCONFIG=\"%s/tuxconfig\"\n"
	    "\tTLOGDEVICE=\"%s/TLOG\"\n\tTLOGNAME=TLOG\n\tTLOGSIZE=10\n\tULOGPFX=\"%s/ULOG\"\n\n"
	    "*GROUPS\nAPP\tLMID=SITE1 GRPNO=1\n",
	    g->key, has(c->resources, "SCANUNIT") ? "" : "SCANUNIT\t2\nBLOCKTIME\t15\n", has(c->resources, "MAXGTT") ? "" : "MAXGTT\t1000\n", or(c->resources, ""), g->node, g->tuxdir, g->dir, g->dir, g->dir, g->dir);
	write_groups(g, c);
	given_append(g, "ubb", "%s\n*SERVERS\nDEFAULT: CLOPT=\"-A\"\n", or(c->groups, ""));
	if (c->server_source != NULL)
		given_append(g, "ubb", "server\tSRVGRP=APP SRVID=1 %s\n", or(c->server_params, ""));
	if (c->server_source != NULL && c->points)
		write_envfile(g, "server");
	write_tmqueues(g, c);
	given_append(g, "ubb", "%s\n*SERVICES\n%s\n", or(c->servers, ""), or(c->services, ""));
}

static void
make_space(struct given *g, const struct given_conf *c, int n)
{
	char *lines;
	long key = g->key + n;

	if (asprintf(&lines,
	    "crdl %s 0 %ld\nqspacecreate %s %s %ld %s\nqopen %s\nqcreate ERRQ fifo none 0 0 100%% 0%% \"\"\n%s\nquit\n",
	    given_device(g, n), c->device_pages > 0 ? c->device_pages : 20000, or(c->space_options, ""), given_space(n),
	    key > 262143 ? 32769 : key, or(c->space, "4000 20 50 50 2000 ERRQ n 16"), given_space(n), or(c->queues, "")) < 0)
		abort();
	free(given_ok(g, lines, "qmadmin %s", given_device(g, n)));
	free(lines);
}

void
given_boot(struct given *g)
{
	free(given_ok(g, NULL, "tmboot -y"));
	g->booted = true;
}

void
given_shutdown(struct given *g)
{
	free(given_ok(g, NULL, "tmshutdown -y"));
	g->booted = false;
}

struct given *
given_system(const struct given_conf *c)
{
	return given_system_in(given_directory(), c);
}

struct given *
given_system_in(struct given *g, const struct given_conf *c)
{
	write_ubb(g, c);
	if (c->only_files)
		return g;
	if (c->server_source != NULL) {
		given_write(g, "server.c", "%s", c->server_source);
		free(given_ok(g, NULL, "buildserver -o server %s -f server.c", or(c->server_services, "")));
	}
	free(given_ok(g, NULL, "tmloadcf -y ubb"));
	if (!c->no_queue_group) {
		char lines[PATH_MAX + 64];
		snprintf(lines, sizeof lines, "crdl -b 200 -z %s/TLOG\ncrlog -m SITE1\nq\n", g->dir);
		free(given_ok(g, lines, "tmadmin"));
		for (int n = 1; n <= spaces_of(c); n++)
			make_space(g, c, n);
	}
	if (!c->not_booted)
		given_boot(g);
	return g;
}

/* --- the end --- */

static int
remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st; (void)kind; (void)ftw;
	remove(path);
	return 0;
}

/* Whatever still runs is killed, one by one; then the directories go. */
void
given_remove(struct given *g)
{
	char rundir[PATH_MAX];
	pid_t pid;

	snprintf(rundir, sizeof rundir, "%s", given_rundir(g));
	while ((pid = given_pid(g, NULL, 0)) > 0) {
		kill(pid, SIGKILL);
		for (int i = 0; i < 500 && !process_gone(pid); i++)
			nap_ms(10);
	}
	if (rundir[0] == '/' && strlen(rundir) > 5)
		nftw(rundir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	if (getenv("TEST_KEEP") == NULL)
		nftw(g->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	else
		fprintf(stderr, "kept: %s\n", g->dir);
	close(g->key_fd);
	standing = NULL;
	free(g);
}

static bool
none_left(void *arg)
{
	return given_count(arg, NULL) == 0;
}

static int
sockets_in(const char *dir)
{
	char cmd[PATH_MAX + 64], n[32] = "0";
	FILE *p;

	snprintf(cmd, sizeof cmd, "find '%s' -type s 2>/dev/null | wc -l", dir);
	if ((p = popen(cmd, "r")) != NULL) {
		if (fgets(n, sizeof n, p) == NULL)
			n[0] = '\0';
		pclose(p);
	}
	return atoi(n);
}

void
given_done(struct given *g)
{
	tpterm();
	if (g->booted || given_pid(g, "BBL", 0) > 0)
		given_shutdown(g);
	CU_ASSERT_TRUE(wait_until(none_left, g, 3));
	if (given_rundir(g)[0] != '\0')
		CU_ASSERT_EQUAL(sockets_in(given_rundir(g)), 0);
	given_remove(g);
}

/* --- looking --- */

struct given *given_standing(void) { return standing; }
const char *given_dir(const struct given *g) { return g->dir; }
const char *given_tuxdir(const struct given *g) { return g->tuxdir; }
long given_ipckey(const struct given *g) { return g->key; }

const char *
given_rundir(const struct given *g)
{
	static char dir[PATH_MAX];
	char *text = given_read(g, "tuxconfig"), *at = text != NULL ? strstr(text, "rundir") : NULL, *end;

	dir[0] = '\0';
	if (at != NULL && (at = strchr(at, '"')) != NULL && (end = strchr(at + 1, '"')) != NULL)
		snprintf(dir, sizeof dir, "%.*s", (int)(end - at - 1), at + 1);
	free(text);
	return dir;
}

static void
write_file(const struct given *g, const char *name, const char *mode, const char *fmt, va_list ap)
{
	char path[PATH_MAX * 2];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", g->dir, name);
	if ((f = fopen(path, mode)) == NULL || vfprintf(f, fmt, ap) < 0 || fclose(f) != 0) {
		perror(path);
		abort();
	}
}

void
given_write(const struct given *g, const char *name, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_file(g, name, "w", fmt, ap);
	va_end(ap);
}

void
given_append(const struct given *g, const char *name, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_file(g, name, "a", fmt, ap);
	va_end(ap);
}

char *
given_read(const struct given *g, const char *name)
{
	char path[PATH_MAX * 2];
	FILE *f;
	char *text;

	snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : g->dir, name[0] == '/' ? "" : "/", name);
	if ((f = fopen(path, "r")) == NULL)
		return NULL;
	text = read_all(f);
	fclose(f);
	return text;
}

bool
given_exists(const struct given *g, const char *name)
{
	char path[PATH_MAX * 2];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", g->dir, name);
	return stat(path, &st) == 0;
}

char *
given_log(const struct given *g)
{
	char name[32];
	time_t t = time(NULL);
	struct tm tm;
	char *text;

	strftime(name, sizeof name, "ULOG.%m%d%y", localtime_r(&t, &tm));
	text = given_read(g, name);
	return text != NULL ? text : strdup("");
}

bool
given_logged(const struct given *g, const char *text)
{
	char *log = given_log(g);
	bool found = has(log, text);

	free(log);
	return found;
}
