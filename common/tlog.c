/*
 * The transaction log as a table on a device: a reservation, so that crlog, dslog and a check at boot have something to
 * be about.  What it would hold, the coordinators' decisions, lies in the queue spaces (DESIGN section 7).
 */
#include "device.h"
#include "tlog.h"

#define KIND "tlog"

int
tlog_create(const char *device, const char *name, long pages, char **why)
{
	return device_table_add(device, name, KIND, pages, why);
}

int
tlog_destroy(const char *device, const char *name, char **why)
{
	return device_table_remove(device, name, KIND, why);
}

int
tlog_exists(const char *device, const char *name)
{
	struct device d;
	int rc = device_read(device, &d, NULL);

	if (rc != DEVE_OK)
		return rc;
	return device_table_pages(&d, name, KIND) > 0;
}
