/*
 * given_point - where in the protocol a process is to stop or to die: files that common/point.c looks for.
 */
#include "given_impl.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

const char *
given_point_dir(const struct given *g, const char *who)
{
	static char dir[PATH_MAX + 64];

	snprintf(dir, sizeof dir, "%s/points", g->dir);
	mkdir(dir, 0700);
	snprintf(dir, sizeof dir, "%s/points/%s", g->dir, who);
	mkdir(dir, 0700);
	return dir;
}

void
given_point_clear(const struct given *g, const char *who)
{
	char path[PATH_MAX + 400];
	DIR *d = opendir(given_point_dir(g, who));
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", given_point_dir(g, who), e->d_name);
			unlink(path);
		}
	if (d != NULL)
		closedir(d);
}

void
given_point_set(const struct given *g, const char *who, const char *point, const char *action)
{
	char path[PATH_MAX + 400];
	FILE *f;

	snprintf(path, sizeof path, "%s/hit.%s", given_point_dir(g, who), point);
	unlink(path);
	snprintf(path, sizeof path, "%s/%s.%s", given_point_dir(g, who), point, action);
	if ((f = fopen(path, "w")) == NULL || fclose(f) != 0)
		abort();
}

bool
given_point_hit(const struct given *g, const char *who, const char *point)
{
	char path[PATH_MAX + 400];

	snprintf(path, sizeof path, "%s/hit.%s", given_point_dir(g, who), point);
	return access(path, F_OK) == 0;
}
