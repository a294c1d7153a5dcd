#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int
proc_pidfd(pid_t pid)
{
	return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

unsigned long long
proc_start_time(pid_t pid)
{
	char path[64], line[1024], *p;
	bool ended;
	ssize_t n;
	int fd;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	n = read(fd, line, sizeof line - 1);
	close(fd);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	/* The name, field 2, may hold blanks and brackets: count from the last one. */
	if ((p = strrchr(line, ')')) == NULL || p[1] == '\0')
		return 0;
	ended = p[2] == 'Z' || p[2] == 'X';
	for (int field = 2; field < 22; field++) {
		if ((p = strchr(p + 1, ' ')) == NULL)
			return 0;
		if (field == 19 && ended && strtol(p + 1, NULL, 10) <= 1)	/* else its first thread ended, and others go on */
			return 0;
	}
	return strtoull(p + 1, NULL, 10);
}

bool
proc_is(pid_t pid, unsigned long long start)
{
	return start != 0 && proc_start_time(pid) == start;
}

const char *
proc_boot_id(void)
{
	static char id[64];
	ssize_t n;
	int fd;

	if (id[0] != '\0')
		return id;
	if ((fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)) < 0)
		return id;
	if ((n = read(fd, id, sizeof id - 1)) > 0) {
		id[n] = '\0';
		id[strcspn(id, "\n")] = '\0';
	}
	close(fd);
	return id;
}

int
proc_end(pid_t pid, unsigned long long start, int term_ms)
{
	struct pollfd p = { .events = POLLIN };
	int rc = 0;

	if (!proc_is(pid, start) || (p.fd = proc_pidfd(pid)) < 0)
		return 0;
	if (proc_is(pid, start)) {	/* still so, now that the descriptor pins it down */
		kill(pid, SIGTERM);
		if (poll(&p, 1, term_ms) <= 0) {
			kill(pid, SIGKILL);
			rc = poll(&p, 1, 5000) <= 0;
		}
	}
	close(p.fd);
	return rc;
}

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Append `more` to the list of places in *why. */
static void
places_add(char **why, const char *more)
{
	char *text = NULL;

	if (*why != NULL && asprintf(&text, "%s%s%s", *why, **why != '\0' ? ", " : "", more) >= 0) {
		free(*why);
		*why = text;
	}
}

static bool	/* is it in the list already?  PATH may name a directory twice */
places_hold(const char *why, const char *path)
{
	size_t n = strlen(path);

	for (const char *p = why; p != NULL && (p = strstr(p, path)) != NULL; p += n)
		if ((p == why || p[-1] == ' ') && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

static bool
look_in(const char *dir, size_t len, const char *name, char *buf, size_t size, char **places)
{
	int n = snprintf(buf, size, "%.*s/%s", (int)len, dir, name);

	if (n < 0 || (size_t)n >= size)
		return false;
	if (is_program(buf))
		return true;
	if (!places_hold(*places, buf))
		places_add(places, buf);
	return false;
}

int
proc_find_program(const char *name, const char *const *dirs, const char *path, char *buf, size_t size, char **why)
{
	char *places = strdup("");
	bool found = false;

	*why = NULL;
	if (name[0] == '/') {
		found = snprintf(buf, size, "%s", name) < (int)size && is_program(buf);
		if (!found)
			places_add(&places, name);
	} else {
		for (size_t i = 0; dirs[i] != NULL && !found; i++)
			if (dirs[i][0] != '\0')
				found = look_in(dirs[i], strlen(dirs[i]), name, buf, size, &places);
		for (const char *p = path; p != NULL && *p != '\0' && !found; p += strcspn(p, ":"), p += *p == ':')
			if (*p != ':')
				found = look_in(p, strcspn(p, ":"), name, buf, size, &places);
	}
	if (!found && asprintf(why, "no executable file %s; looked at %s", name, places != NULL ? places : "?") < 0)
		*why = NULL;
	free(places);
	return found ? 0 : -1;
}

int
proc_self_dir(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size);
	char *slash;

	if (n <= 0 || (size_t)n >= size)
		return -1;
	buf[n] = '\0';
	if ((slash = strrchr(buf, '/')) == NULL)
		return -1;
	*slash = '\0';
	return 0;
}

void
proc_tell_end(int code, int status, char *buf, size_t size)
{
	switch (code) {
	case CLD_EXITED:
		snprintf(buf, size, "ended with exit status %d", status);
		break;
	case CLD_KILLED:
		snprintf(buf, size, "was killed by signal %d (%s)", status, strsignal(status));
		break;
	case CLD_DUMPED:
		snprintf(buf, size, "was killed by signal %d (%s), core dumped", status, strsignal(status));
		break;
	default:
		snprintf(buf, size, "ended");	/* not our child: nobody tells us how */
		break;
	}
}
