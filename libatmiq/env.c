/*
 * env - environment, user log, time and signals under their old names.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "impl.h"
#include "Usignal.h"
#include "Uunix.h"
#include "ubb.h"
#include "ulog.h"

char *proc_name;
int Uunixerr;

__attribute__((constructor)) static void
proc_name_counts(void)
{
	ulog_program_at(&proc_name);
}

int
vuserlog(char *fmt, va_list ap)
{
	context_to_log();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return ulog_v(fmt, ap);
#pragma GCC diagnostic pop
}

int
userlog(char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vuserlog(fmt, ap);
	va_end(ap);
	return n;
}

void
Uunix_err(char *s)
{
	ulog("%s: %s", s, strerror(errno));
}

Usigfunc_t
Usignal(int sig, Usigfunc_t func)
{
	struct sigaction now, before;

	memset(&now, 0, sizeof now);
	now.sa_handler = func;
	now.sa_flags = SA_RESTART;
	sigemptyset(&now.sa_mask);
	return sigaction(sig, &now, &before) == 0 ? before.sa_handler : SIG_ERR;
}

int
Usiginit(void)
{
	return 0;
}

char *
tuxgetenv(char *name)
{
	return name == NULL ? NULL : getenv(name);
}

int
tuxputenv(char *string)
{
	return string == NULL || strchr(string, '=') == NULL ? 1 : putenv(string);
}

/* Lines NAME=value; those under [label] only when that label is asked for, those before any label always. */
int
tuxreadenv(char *file, char *label)
{
	char line[4096], *p, *end;
	bool ours = true;
	FILE *in;

	if (file == NULL || (in = fopen(file, "r")) == NULL)
		return 1;
	while (fgets(line, sizeof line, in) != NULL) {
		for (p = line; isspace((unsigned char)*p); p++)
			;
		for (end = p + strlen(p); end > p && isspace((unsigned char)end[-1]); end--)
			;
		*end = '\0';
		if (*p == '\0' || *p == '#')
			continue;
		if (*p == '[' && end[-1] == ']') {
			end[-1] = '\0';
			ours = label != NULL && strcmp(p + 1, label) == 0;
			continue;
		}
		if (!ours || strchr(p, '=') == NULL)
			continue;
		end = strchr(p, '=');
		*end = '\0';
		if (strncmp(p, "export ", 7) == 0)
			p += 7;
		if (setenv(p, end + 1, 1) != 0) {
			fclose(in);
			return 1;
		}
	}
	fclose(in);
	return 0;
}

long
gp_mktime(struct tm *timeptr)
{
	return (long)mktime(timeptr);
}
