/*
 * Any text as the file SPACE of a queue space's directory, and as OWNER: refused with a line that says why, or read; and
 * what was read is the same when it is written and read again.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qspace_impl.h"

static char dir[] = "/dev/shm/fuzz_space.XXXXXX";
static bool made;

static void
gone(void)
{
	char cmd[64];

	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	(void)!system(cmd);
}

static void
file_make(const char *name, const uint8_t *p, size_t n)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct qspace qs, again;
	char *why = NULL, endpoint[64];
	long pid;

	if (!made) {
		if (mkdtemp(dir) == NULL)
			abort();
		made = true;
		atexit(gone);
	}
	memset(&qs, 0, sizeof qs);
	memset(&again, 0, sizeof again);
	snprintf(qs.dir, sizeof qs.dir, "%s", dir);
	snprintf(again.dir, sizeof again.dir, "%s", dir);
	file_make("SPACE", p, n);
	file_make("OWNER", p, n);
	if (owner_read(dir, endpoint, sizeof endpoint, &pid) == 0)
		assert(strlen(endpoint) < sizeof endpoint);
	if (space_file_read(&qs, &why) == 0) {
		assert(why == NULL);
		if (space_file_write(&qs, NULL) != 0 || space_file_read(&again, &why) != 0)
			abort();
		assert(memcmp(&qs.params, &again.params, sizeof qs.params) == 0 && strcmp(qs.uuid, again.uuid) == 0);
		assert(strcmp(qs.device_uuid, again.device_uuid) == 0 && qs.log_bytes == again.log_bytes);
	} else
		assert(why != NULL && *why != '\0' && strchr(why, '\n') == NULL);
	free(why);
	return 0;
}
