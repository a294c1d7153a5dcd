/*
 * proc - processes by number, and who they are: a number alone may have been given to another since, so a process is
 * named by its pid, its start time and the boot of the machine it belongs to.
 *
 * Errors     -1 and errno.
 */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

int proc_pidfd(pid_t pid);				/* close-on-exec; readable once the process has ended */
unsigned long long proc_start_time(pid_t pid);		/* clock ticks since boot; 0: no such process, or a zombie with all its threads */
bool proc_is(pid_t pid, unsigned long long start);	/* lives, and is the one that started then */
const char *proc_boot_id(void);				/* "" when the system has none */

/* End the process politely, then by force: SIGTERM, `term_ms` of patience, SIGKILL.  0: it is gone.  1: it is not. */
int proc_end(pid_t pid, unsigned long long start, int term_ms);

/*
 * Where the program `name` is: absolute as it stands, else in the directories of `dirs` (NULL-terminated; NULL or ""
 * entries are passed over), else in `path` (as PATH; NULL: none).  0 and the file in buf; -1 with *why saying all the
 * places looked at (malloc'ed; NULL when out of memory).
 */
int proc_find_program(const char *name, const char *const *dirs, const char *path, char *buf, size_t size, char **why);
int proc_self_dir(char *buf, size_t size);		/* the directory of the running program */
void proc_tell_end(int code, int status, char *buf, size_t size);	/* "killed by signal 9 (Killed)", from a siginfo_t */

#endif
