/*
 * What the coordinator of a branch decided.  A queue space does not know: its coordinator is another group of the application,
 * which TUXCONFIG names.  Where that is not set, does not run, or has another space, nothing is known.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gtrid.h"
#include "session.h"
#include "txquery.h"
#include "ubb.h"

#define ANSWER_MS 1500

static bool
same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Is the open space one of this application's?  The groups of another one have the same names, and know nothing. */
static bool
is_ours(const struct session *s, const struct ubb *u)
{
	char device[4096], space[QSPACE_NAME_MAX + 1];

	for (size_t i = 0; i < u->n_groups; i++)
		if (u->groups[i].openinfo != NULL &&
		    openinfo_split(u->groups[i].openinfo, device, sizeof device, space, sizeof space) == 0 &&
		    strcmp(space, s->space) == 0 && same_file(device, s->device))
			return true;
	return false;
}

enum wire_outcome
decision_of(struct session *s, const char *coordinator, const char *gtrid)
{
	const char *path = getenv("TUXCONFIG");
	enum wire_outcome out = WIRE_OUT_NONE;
	uint8_t id[WIRE_GTRID_MAX], len;
	struct ubb *u = NULL;
	char *why = NULL, bbl[300];

	if (path == NULL || *path == '\0' || *coordinator == '\0' || gtrid_from_hex(gtrid, id, &len) != 0)
		return out;
	if (tuxconfig_read(path, &u, &why) == 0) {
		if (is_ours(s, u) && ubb_bbl_endpoint(u, bbl, sizeof bbl) == 0)
			out = tx_query(bbl, coordinator, id, len, ANSWER_MS);
		ubb_free(u);
	}
	free(why);
	return out;
}
