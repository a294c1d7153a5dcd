/*
 * outside - TMQUEUE, and the disk, as they are seen from outside: processes, memory, processor time, bytes, flushes.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

static inline int
read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (f == NULL)
		return -1;
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	fclose(f);
	return (int)n;
}

static inline int	/* The processes of our application that run this program (at most 15 characters): how many, at most `most`. */
program_pids(const char *program, pid_t *pid, int most)
{
	static char env[131072];
	char path[300], comm[32], want[4200];
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n, found = 0;

	snprintf(want, sizeof want, "TUXCONFIG=%s", getenv("TUXCONFIG"));
	while (found < most && d != NULL && (e = readdir(d)) != NULL) {
		if (atol(e->d_name) <= 0)
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		if (read_file(path, comm, sizeof comm) < 0)
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		if (strcmp(comm, program) != 0)
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		if ((n = read_file(path, env, sizeof env)) > 0 && memmem(env, (size_t)n, want, strlen(want) + 1) != NULL)
			pid[found++] = (pid_t)atol(e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return found;
}

static inline int
tmqueue_pids(pid_t *pid, int most)
{
	return program_pids("TMQUEUE", pid, most);
}

static inline pid_t
tmqueue_pid(void)
{
	pid_t pid;

	return tmqueue_pids(&pid, 1) == 1 ? pid : 0;
}

static inline long
proc_value(pid_t pid, const char *file, const char *label)
{
	char path[64], text[8192], *at;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
	if (read_file(path, text, sizeof text) < 0 || (at = strstr(text, label)) == NULL)
		return -1;
	return atol(at + strlen(label));
}

static inline double	/* Processor time of a process, all threads that it has now; in microseconds. */
cpu_us(pid_t pid)
{
	char path[320], text[128];
	struct dirent *e;
	double us = 0;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "/proc/%ld/task/%s/schedstat", (long)pid, e->d_name);
		if (e->d_name[0] != '.' && read_file(path, text, sizeof text) > 0)
			us += (double)atoll(text) / 1000;
	}
	closedir(d);
	return us;
}

/*
 * Bytes that reached the disk which holds the queue space, by anybody.  What /proc counts for the process itself is of no
 * use for this: the kernel charges a whole large page for each small overwrite.
 */
static inline long long
disk_bytes(void)
{
	char path[64], text[512];
	struct stat st;
	long long sectors;

	if (stat(getenv("APPDIR"), &st) != 0)
		return -1;
	snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", major(st.st_dev), minor(st.st_dev));
	if (read_file(path, text, sizeof text) < 0 || sscanf(text, "%*s %*s %*s %*s %*s %*s %lld", &sectors) != 1)
		return -1;
	return sectors * 512;
}

/* Flushes of a space so far, which its queue manager counts and qmadmin shows; -1 when it does not. */
static inline long
flushes(const char *space)
{
	char line[256], *at;
	long n = -1;
	FILE *p;

	snprintf(line, sizeof line, "printf 'qopen %s\\nverbose on\\nqspacelist\\nq\\n' | qmadmin 2>/dev/null", space);
	p = popen(line, "r");
	while (p != NULL && fgets(line, sizeof line, p) != NULL)
		if ((at = strstr(line, " flushes: ")) != NULL)
			n = atol(at + 10);
	if (p != NULL)
		pclose(p);
	return n;
}

#endif
