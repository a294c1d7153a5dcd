/*
 * buildserver [-C] [-s {@file | svc[,svc...][:func] | :func}] [-v] [-o out] [-f files] [-l files] [{-r|-g} rmname]
 * [-k] [-t]
 *
 * Writes a small C source with the table of services and a main() that starts the server, and compiles it with the
 * rest.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"

struct entry { char *service, *function; };	/* service NULL: a function without one */
static struct entry *entries;
static size_t n_entries;

static void
usage(void)
{
	fputs("usage: buildserver [-C] [-s {@file | service[,service...][:function] | :function}] [-v] [-o outfile] "
	      "[-f files]\n"
	      "                   [-l files] [{-r | -g} rmname] [-k] [-t] [-n maxdynam]\n",
	    stderr);
	exit(1);
}

static void
entry_add(const char *service, size_t n, const char *function, size_t fn)
{
	struct entry *more = realloc(entries, (n_entries + 1) * sizeof *entries);
	size_t i;

	if (more == NULL)
		build_die("out of memory");
	entries = more;
	for (i = 0; i < fn; i++)
		if (!isalnum((unsigned char)function[i]) && function[i] != '_')
			build_die(
			    "-s: \"%.*s\" is no name of a C function; give one behind a colon", (int)fn, function);
	if (n > 127 || fn > 128 || fn == 0)
		build_die("-s: name of a service (1 to 127 characters) or function (1 to 128) has %zu, %zu", n, fn);
	entries[n_entries].service = service == NULL ? NULL : strndup(service, n);
	entries[n_entries].function = strndup(function, fn);
	n_entries++;
}

/* svc,svc:func | svc,svc | :func */
static void
services_add(const char *list)
{
	size_t head = strcspn(list, ":"), n;
	const char *function = list[head] == ':' ? list + head + 1 : NULL, *p = list, *end = list + head;

	if (head == 0 && function == NULL)
		usage();
	if (head == 0)
		entry_add(NULL, 0, function, strlen(function));
	for (; p < end; p += n + 1) {
		n = strcspn(p, ",:");
		if (n == 0)
			continue;
		if (function != NULL)
			entry_add(p, n, function, strlen(function));
		else
			entry_add(p, n, p, n);
	}
}

static void
services_from(const char *spec)
{
	char word[1024];
	FILE *in;

	if (*spec != '@') {
		services_add(spec);
		return;
	}
	if ((in = fopen(spec + 1, "r")) == NULL)
		build_die("cannot read the service list %s: %s", spec + 1, strerror(errno));
	while (fscanf(in, "%1023s", word) == 1)
		if (*word == '#') {
			while (!feof(in) && fgetc(in) != '\n')
				;
		} else
			services_add(word);
	fclose(in);
}

static void
c_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

/* The functions are declared with their asm names under names of ours: a service may well be called like a C word or
 * a libc function. */
static void
source_write(FILE *f, const struct build_rm *rm, bool threads)
{
	size_t i;

	fputs("/* Written by buildserver. */\n#include <stddef.h>\n#include <atmi.h>\n#include <xa.h>\n\n"
	    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n", f);
	if (rm->swname != NULL && strcmp(rm->swname, "tmnull_switch") != 0)
		fprintf(f, "extern struct xa_switch_t %s;\n", rm->swname);
	for (i = 0; i < n_entries; i++)
		fprintf(f, "extern void service_%zu(TPSVCINFO *) __asm__(\"%s\");\n", i, entries[i].function);
	fputs("#ifdef __cplusplus\n}\n#endif\n\nstatic struct tmsvc services[] = {\n", f);
	for (i = 0; i < n_entries; i++) {
		fputs("\t{ ", f);
		if (entries[i].service == NULL)
			fputs("NULL", f);
		else {
			fputs("(char *)", f);
			c_string(f, entries[i].service);
		}
		fputs(", (char *)", f);
		c_string(f, entries[i].function);
		fprintf(f, ", service_%zu },\n", i);
	}
	fprintf(f,
	    "\t{ NULL, NULL, NULL }\n};\n\nstatic struct tmserver server = { services, &%s, tpsvrinit, tpsvrdone };\n%s\n"
	    "int\nmain(int argc, char **argv)\n{\n\treturn %s);\n}\n",
	    rm->swname == NULL ? "tmnull_switch" : rm->swname,
	    threads ? "static struct tmthreads threads = { tpsvrthrinit, tpsvrthrdone };\n" : "",
	    threads ? "_tmstartthreads(argc, argv, &server, &threads" : "_tmstartserver(argc, argv, &server");
}

int
main(int argc, char **argv)
{
	static struct build_line line = { .out = "SERVER" };
	static struct build_rm rm;
	const char *rmname = NULL;
	bool keep = false;
	void *file;
	int c, status;

	build_program("buildserver");
	while ((c = getopt(argc, argv, "Cs:vo:f:l:r:g:ktn:")) != -1)
		switch (c) {
		case 'C':
			line.cobol = true;
			break;
		case 's':
			services_from(optarg);
			break;
		case 'v':
			line.verbose = true;
			break;
		case 'o':
			line.out = optarg;
			break;
		case 'f':
			words_split(&line.first, optarg);
			break;
		case 'l':
			words_split(&line.last, optarg);
			break;
		case 'r':
		case 'g':
			rmname = optarg;
			break;
		case 'k':
			keep = true;
			break;
		case 't':
			line.threads = true;
			break;
		case 'n':
			break;		/* how many services may come at run time: as many as there is room for */
		default:
			usage();
		}
	if (optind != argc)
		usage();
	if (rmname != NULL) {
		build_rm_find(rmname, &rm);
		line.rm_libs = &rm.libs;
	}
	line.source = build_source_open(keep, line.out, &file);
	source_write(file, &rm, line.threads);
	if (fclose(file) != 0)
		build_die("cannot write %s: %s", line.source, strerror(errno));
	status = build_run(&line);
	if (!keep)
		unlink(line.source);
	return status;
}
