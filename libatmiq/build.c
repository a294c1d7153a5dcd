/*
 * build - see build.h.  Programs of one run: what they allocate is not given back.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"

static const char *program = "build";

void
build_program(const char *name)
{
	program = name;
}

void
build_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void *
need(void *p)
{
	if (p == NULL)
		build_die("out of memory");
	return p;
}

static void
words_add(struct words *w, const char *word)
{
	w->v = need(realloc(w->v, (w->n + 2) * sizeof *w->v));
	w->v[w->n++] = need(strdup(word));
	w->v[w->n] = NULL;
}

static void __attribute__((format(printf, 2, 3)))
words_addf(struct words *w, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		build_die("out of memory");
	words_add(w, s);
	free(s);
}

void
words_split(struct words *w, const char *list)
{
	char *word = need(malloc(strlen(list) + 1)), quote = '\0';
	size_t n = 0;
	bool any = false;

	for (; *list != '\0'; list++) {
		if (quote != '\0' ? *list == quote : *list == '"' || *list == '\'') {
			quote = quote != '\0' ? '\0' : *list;
			any = true;
		} else if (*list == '\\' && list[1] != '\0' && quote != '\'')
			word[n++] = *++list;
		else if (isspace((unsigned char)*list) && quote == '\0') {
			word[n] = '\0';
			if (n > 0 || any)
				words_add(w, word);
			n = 0;
			any = false;
		} else
			word[n++] = *list;
	}
	word[n] = '\0';
	if (n > 0 || any)
		words_add(w, word);
	free(word);
}

/* $TUXDIR, or the directory above that of this program. */
static const char *
build_tuxdir(void)
{
	static char dir[PATH_MAX];
	const char *env = getenv("TUXDIR");
	ssize_t n;
	char *slash;
	int i;

	if (env != NULL && *env != '\0')
		return env;
	if ((n = readlink("/proc/self/exe", dir, sizeof dir - 1)) <= 0)
		build_die("TUXDIR is not set, and where this program lies cannot be found: %s", strerror(errno));
	dir[n] = '\0';
	for (i = 0; i < 2; i++)		/* DIR/bin/program */
		if ((slash = strrchr(dir, '/')) != NULL)
			*slash = '\0';
	return dir;
}

/* name:switch:libraries, white space around the parts does not count */
void
build_rm_find(const char *rmname, struct build_rm *out)
{
	char path[PATH_MAX], line[4096], *parts[3], *p, *end;
	FILE *in;
	int n;

	snprintf(path, sizeof path, "%s/udataobj/RM", build_tuxdir());
	if ((in = fopen(path, "r")) == NULL)
		build_die("cannot read %s, the list of resource managers: %s", path, strerror(errno));
	while (fgets(line, sizeof line, in) != NULL) {
		if (*line == '#' || *line == '\n')
			continue;
		for (n = 0, p = line; n < 3; n++) {
			while (isspace((unsigned char)*p))
				p++;
			parts[n] = p;
			end = p + (n < 2 ? strcspn(p, ":;\n") : strlen(p));
			p = *end == '\0' ? end : end + 1;
			while (end > parts[n] && isspace((unsigned char)end[-1]))
				end--;
			*end = '\0';
		}
		if (strcmp(parts[0], rmname) != 0)
			continue;
		out->swname = need(strdup(parts[1]));
		words_split(&out->libs, parts[2]);
		fclose(in);
		return;
	}
	build_die("resource manager %s is not in %s", rmname, path);
}

char *
build_source_open(bool keep, const char *keep_name, void **file)
{
	char path[PATH_MAX];
	const char *tmp = getenv("TMPDIR");
	int fd;

	if (keep) {
		snprintf(path, sizeof path, "%s.c", keep_name);
		*file = fopen(path, "w");
	} else {
		snprintf(path, sizeof path, "%s/%sXXXXXX.c", tmp != NULL && *tmp != '\0' ? tmp : "/tmp", program);
		fd = mkstemps(path, 2);
		*file = fd == -1 ? NULL : fdopen(fd, "w");
	}
	if (*file == NULL)
		build_die("cannot write %s: %s", path, strerror(errno));
	return need(strdup(path));
}

static void
words_append(struct words *w, const struct words *more)
{
	size_t i;

	for (i = 0; i < more->n; i++)
		words_add(w, more->v[i]);
}

/* -ltux and the like name libraries that are all one here; they are beside libatmiq under those names. */
static void
command_make(const struct build_line *l, struct words *cmd)
{
	const char *tuxdir = build_tuxdir(), *cc = getenv(l->cobol ? "ALTCC" : "CC");
	const char *cflags = getenv(l->cobol ? "ALTCFLAGS" : "CFLAGS");

	words_split(cmd, cc != NULL && *cc != '\0' ? cc : l->cobol ? "cob" : "cc");
	if (cflags != NULL)
		words_split(cmd, cflags);
	if (l->threads)
		words_add(cmd, "-pthread");
	words_addf(cmd, "-I%s/include", tuxdir);
	words_add(cmd, "-o");
	words_add(cmd, l->out);
	if (l->source != NULL)
		words_add(cmd, l->source);
	words_append(cmd, &l->first);
	words_addf(cmd, "-L%s/lib", tuxdir);
	words_addf(cmd, "-Wl,-rpath,%s/lib", tuxdir);
	if (l->rm_libs != NULL)
		words_append(cmd, l->rm_libs);
	words_add(cmd, "-latmiq");
	words_append(cmd, &l->last);
}

static void
command_print(const struct words *cmd)
{
	size_t i;

	for (i = 0; i < cmd->n; i++)
		printf("%s%s", i > 0 ? " " : "", cmd->v[i]);
	putchar('\n');
	fflush(stdout);
}

int
build_run(const struct build_line *l)
{
	static struct words cmd;
	int status;
	pid_t pid;

	command_make(l, &cmd);
	if (l->verbose)
		command_print(&cmd);
	if ((pid = fork()) == -1)
		build_die("cannot start %s: %s", cmd.v[0], strerror(errno));
	if (pid == 0) {
		execvp(cmd.v[0], cmd.v);
		fprintf(stderr, "%s: cannot run the compiler %s: %s\n", program, cmd.v[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			build_die("lost the compiler: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "%s: cannot build %s: the compiler failed\n", program, l->out);
	return 1;
}
