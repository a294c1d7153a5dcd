/*
 * Any bytes as the file that QMCONFIG names: read or refused with a line that says why.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct device d;
	char path[64], *why = NULL;
	int fd = memfd_create("device", 0);

	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (device_read(path, &d, &why) == 0)
		assert(d.n_entries <= DEVICE_MAX_ENTRIES && d.n_tables <= DEVICE_MAX_TABLES);
	else
		assert(why != NULL && strlen(why) > 0);
	free(why);
	close(fd);
	return 0;
}
