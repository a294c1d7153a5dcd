/*
 * svrown - TMQUEUE and TMQFORWARD, built anew by buildserver with buffer types of the administrator's.
 *
 * The program is a library beside ours, and is opened: the process has the name that it was built with, and the buffer types that
 * were linked into it.  What it is made of does not meet what else was linked.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "servopts.h"
#include "svr.h"
#include "ulog.h"

const char *
own_program(void)
{
	return _tmserverprogram;
}

static bool
has_option(int argc, char **argv, char wanted)
{
	int keep_optind = optind, keep_opterr = opterr, c;
	bool found = false;

	optind = 0;
	opterr = 0;
	while ((c = getopt(argc, argv, SERVOPTS)) != -1)
		found |= c == wanted;
	optind = keep_optind;
	opterr = keep_opterr;
	return found;
}

/*
 * The services that buildserver was told of are those of -A, and of a command line that names none: they are put into it, as
 * -s options.  NULL: no memory.
 */
static char **
command_line(int *argc, char **argv, const struct tmserver *built)
{
	static char **line;		/* as long as the process */
	bool all = has_option(*argc, argv, 'A'), wanted = all || !has_option(*argc, argv, 's');
	size_t n = 0, at = 0;
	bool ours = true;		/* before -- */

	while (built->services != NULL && built->services[n].call != NULL)
		n++;
	if ((line = calloc((size_t)*argc + 2 * n + 1, sizeof *line)) == NULL)
		return NULL;
	line[at++] = argv[0];
	for (size_t i = 0; wanted && i < n; i++) {
		const struct tmsvc *s = &built->services[i];

		if (s->name == NULL)
			continue;
		line[at++] = (char *)"-s";
		if (asprintf(&line[at++], "%s:%s", s->name, s->function) == -1)
			return NULL;
	}
	for (int i = 1; i < *argc; i++) {
		ours &= strcmp(argv[i], "--") != 0;
		if (at > 1 && ours && strcmp(argv[i], "-A") == 0 && n > 0)
			continue;
		line[at++] = argv[i];
	}
	*argc = (int)at;
	return line;
}

int
own_run(int argc, char **argv, const struct tmserver *built)
{
	char path[4200] = "";
	const char *slash;
	int (*run)(int, char **);
	void *library;
	Dl_info us;

	ulog_program((slash = strrchr(argv[0], '/')) != NULL ? slash + 1 : argv[0]);
	if (dladdr((void *)(uintptr_t)own_run, &us) != 0 && us.dli_fname != NULL && (slash = strrchr(us.dli_fname, '/')) != NULL)
		snprintf(path, sizeof path, "%.*s/%s.so", (int)(slash - us.dli_fname), us.dli_fname, _tmserverprogram);
	else
		snprintf(path, sizeof path, "%s.so", _tmserverprogram);
	if ((library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL ||
	    (*(void **)&run = dlsym(library, "atmiq_program_main")) == NULL) {
		ulog("LIBTUX_CAT:5253: ERROR: this server is a %s, which cannot be run: %s", _tmserverprogram, dlerror());
		return 1;
	}
	if ((argv = command_line(&argc, argv, built)) == NULL) {
		ulog("LIBTUX_CAT:5254: ERROR: no memory to start %s", _tmserverprogram);
		return 1;
	}
	return run(argc, argv);
}
