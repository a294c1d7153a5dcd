/*
 * TUXCONFIG: never a crash; a file that is refused says why in one line.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ubb.h"

/* libconfig loses some bytes of a text that it refuses. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libconfig"; }

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	struct ubb *u;
	char *why;

	if (fd < 0) {
		fd = memfd_create("tuxconfig", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	if (tuxconfig_read(path, &u, &why) == 0)
		assert(u != NULL && why == NULL && u->rundir[0] == '/' && u->n_machines > 0);
	else
		assert(u == NULL && why != NULL && strchr(why, '\n') == NULL);
	free(why);
	ubb_free(u);
	return 0;
}
