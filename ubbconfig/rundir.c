#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

enum { SOCKET_PATH = 107, LONGEST_NAME = 12 };	/* sun_path without NUL; "/29999.30000" */

int
rundir_choose(const struct ubb *u, char *buf, size_t size)
{
	const struct ubb_machine *m = ubb_machine_here(u);
	const char *base = getenv("ATMIQ_RUNBASE");
	int n;

	if (base == NULL || *base == '\0')
		base = "/tmp";
	if (*base != '/') {
		errno = EINVAL;
		return -1;
	}
	n = snprintf(buf, size, "%s/.atmiq-%ld-%lx", base, m ? m->uid : u->res.uid, u->res.ipckey);
	if (n < 0 || (size_t)n >= size || n + LONGEST_NAME > SOCKET_PATH) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

int
ubb_bbl_endpoint(const struct ubb *u, char *buf, size_t size)
{
	int n = snprintf(buf, size, "ipc://%s/bbl", u->rundir);

	return *u->rundir == '/' && n > 0 && (size_t)n < size ? 0 : -1;
}

int
ubb_server_endpoint(const struct ubb *u, long grpno, long srvid, char *buf, size_t size)
{
	int n = snprintf(buf, size, "ipc://%s/%ld.%ld", u->rundir, grpno, srvid);

	return *u->rundir == '/' && n > 0 && (size_t)n < size ? 0 : -1;
}
