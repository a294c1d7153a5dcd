#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

enum { SOCKET_PATH = 107, LONGEST_NAME = 13 };	/* sun_path without NUL; "/29999.30000q" */

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

static int
set_socket(const struct ubb *u, const struct ubb_set *set, char which, char *buf, size_t size)
{
	int n = snprintf(buf, size, "ipc://%s/%ld.%ld%c", u->rundir, set->group->grpno, set->id, which);

	return *u->rundir == '/' && n > 0 && (size_t)n < size ? 0 : -1;
}

int
ubb_set_endpoint(const struct ubb *u, const struct ubb_set *set, char *buf, size_t size)
{
	return set_socket(u, set, 'q', buf, size);
}

int
ubb_set_members(const struct ubb *u, const struct ubb_set *set, char *buf, size_t size)
{
	return set_socket(u, set, 'm', buf, size);
}

int
ubb_server_endpoint(const struct ubb *u, long grpno, long srvid, char *buf, size_t size)
{
	int n = snprintf(buf, size, "ipc://%s/%ld.%ld", u->rundir, grpno, srvid);

	return *u->rundir == '/' && n > 0 && (size_t)n < size ? 0 : -1;
}
