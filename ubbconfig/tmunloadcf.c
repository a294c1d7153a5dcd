/*
 * tmunloadcf - prints TUXCONFIG as UBBCONFIG text, defaults filled in.  tmunloadcf(1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ubb.h"

int
main(int argc, char **argv)
{
	const char *path = getenv("TUXCONFIG");
	struct ubb *u;
	char *why;
	int rc = 0;

	(void)argv;
	if (argc != 1) {
		fprintf(stderr, "usage: tmunloadcf\n");
		return 1;
	}
	if (path == NULL || *path == '\0') {
		fprintf(
		    stderr, "tmunloadcf: the environment variable TUXCONFIG is not set; it names the file to print\n");
		return 1;
	}
	if (tuxconfig_read(path, &u, &why) != 0) {
		fprintf(stderr, "tmunloadcf: %s\n", why ? why : path);
		free(why);
		return 1;
	}
	ubb_print(u, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "tmunloadcf: standard output: %s\n", strerror(errno));
		rc = 1;
	}
	ubb_free(u);
	return rc;
}
