/*
 * buildclient [-C] [-v] [{-r rmname | -w}] [-o name] [-f files] [-l files]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"

static void
usage(void)
{
	fputs("usage: buildclient [-C] [-v] [{-r rmname | -w}] [-o name] [-f files] [-l files]\n", stderr);
	exit(1);
}

int
main(int argc, char **argv)
{
	static struct build_line line = { .out = "a.out" };
	static struct build_rm rm;
	const char *rmname = NULL;
	bool workstation = false;
	int c;

	build_program("buildclient");
	while ((c = getopt(argc, argv, "Cvr:wo:f:l:")) != -1)
		switch (c) {
		case 'C':
			line.cobol = true;
			break;
		case 'v':
			line.verbose = true;
			break;
		case 'r':
			rmname = optarg;
			break;
		case 'w':
			workstation = true;
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
		default:
			usage();
		}
	if (optind != argc || (workstation && rmname != NULL))
		usage();
	if (rmname != NULL) {
		build_rm_find(rmname, &rm);
		line.rm_libs = &rm.libs;
	}
	return build_run(&line);
}
