/*
 * Places of processes in a queue space: counted by locks, which no end of a process leaves behind.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "places.h"
#include "unit.h"

static char dir[] = "/tmp/placesXXXXXX", device[64], space[96];

static void
given_space(long limit)
{
	char *why = NULL, *note = NULL;

	snprintf(dir, sizeof dir, "/tmp/placesXXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(device, sizeof device, "%s/QUE", dir);
	CU_ASSERT_EQUAL_FATAL(device_add(device, NULL, 0, 1000, &why, &note), DEVE_OK);
	snprintf(space, sizeof space, "%s/QUE.d/QS", dir);
	CU_ASSERT_EQUAL_FATAL(mkdir(space, 0700), 0);
	if (limit > 0)
		places_limit(space, limit);
	free(why);
	free(note);
}

static void
space_done(void)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
}

static int	/* the place; -2: refused */
take(enum places_kind kind)
{
	char *why;
	int fd, rc = places_take(device, "QS", kind, &fd, &why);

	if (rc == 0)
		return fd;
	CU_ASSERT_PTR_NOT_NULL_FATAL(why);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "concurrent processes is reached"));
	CU_ASSERT_EQUAL(fd, -1);
	free(why);
	return -2;
}

static void
as_many_as_the_limit_says(void)
{
	int fd[3];

	given_space(3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE((fd[i] = take(PLACES_SERVER)) >= 0);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	CU_ASSERT_EQUAL(take(PLACES_ADMIN), -2);
	CU_ASSERT_EQUAL(places_in_use(space), 3);
	close(fd[0]);
	CU_ASSERT_EQUAL(places_in_use(space), 2);
	CU_ASSERT_TRUE((fd[0] = take(PLACES_ADMIN)) >= 0);
	CU_ASSERT_EQUAL(take(PLACES_ADMIN), -2);
	CU_ASSERT_EQUAL(places_in_use(space), 3);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	CU_ASSERT_EQUAL(places_in_use(space), 0);
	space_done();
}

static void	/* Who looks never keeps a server out. */
servers_come_first(void)
{
	int admin[2], server[2];

	given_space(2);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE((admin[i] = take(PLACES_ADMIN)) >= 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE((server[i] = take(PLACES_SERVER)) >= 0);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	CU_ASSERT_EQUAL(places_in_use(space), 4);
	for (int i = 0; i < 2; i++) {
		close(admin[i]);
		close(server[i]);
	}
	space_done();
}

static void
limit_changes_for_those_who_come(void)
{
	int one, two;

	given_space(1);
	CU_ASSERT_TRUE((one = take(PLACES_SERVER)) >= 0);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	places_limit(space, 12345678);
	CU_ASSERT_TRUE((two = take(PLACES_SERVER)) >= 0);
	places_limit(space, 1);
	CU_ASSERT_EQUAL(places_in_use(space), 2);	/* who is there stays */
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	close(one);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	close(two);
	CU_ASSERT_TRUE((one = take(PLACES_SERVER)) >= 0);
	close(one);
	space_done();
}

static void	/* In any order of coming and going, of this process and of others that are killed. */
counted_whatever_comes_and_goes(void)
{
	enum { MANY = 24 };
	int fd[MANY], n = 0;
	unsigned seed = 1;

	given_space(MANY);
	memset(fd, -1, sizeof fd);
	for (int i = 0; i < 2000; i++) {
		int k = (int)((seed = seed * 1103515245 + 12345) >> 8) % MANY;

		if (fd[k] >= 0) {
			close(fd[k]);
			fd[k] = -1;
			n--;
		} else if ((fd[k] = take(k % 3 == 0 ? PLACES_ADMIN : PLACES_SERVER)) >= 0)
			n++;
		CU_ASSERT_EQUAL(places_in_use(space), n);
	}
	for (int k = 0; k < MANY; k++)
		if (fd[k] >= 0)
			close(fd[k]);
	space_done();
}

static void
a_killed_process_leaves_nothing(void)
{
	char ready;
	int pipes[2];
	pid_t child, grandchild;

	given_space(1);
	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	if ((child = fork()) == 0) {
		char *why;
		int fd;
		ready = places_take(device, "QS", PLACES_SERVER, &fd, &why) == 0 && fd >= 0 ? 'y' : 'n';
		(void)!write(pipes[1], &ready, 1);
		if ((grandchild = fork()) == 0)	/* what it has run does not hold it */
			execlp("sleep", "sleep", "60", (char *)NULL);
		(void)!write(pipes[1], &grandchild, sizeof grandchild);
		pause();
	}
	CU_ASSERT_EQUAL(read(pipes[0], &ready, 1), 1);
	CU_ASSERT_EQUAL_FATAL(read(pipes[0], &grandchild, sizeof grandchild), (ssize_t)sizeof grandchild);
	CU_ASSERT_EQUAL(ready, 'y');
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 10000 && places_in_use(space) != 0; i++)	/* the sleep has not begun yet */
		usleep(1000);
	CU_ASSERT_EQUAL(places_in_use(space), 0);
	kill(grandchild, SIGKILL);
	close(pipes[0]);
	close(pipes[1]);
	space_done();
}

static void	/* An older space, one that is not there, a file that says nothing: nobody is kept out. */
without_a_limit_there_is_none(void)
{
	char path[128], *why;
	int fd;
	FILE *f;

	given_space(0);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -1);
	CU_ASSERT_EQUAL(places_in_use(space), -1);
	CU_ASSERT_EQUAL(places_take(device, "OTHER", PLACES_ADMIN, &fd, &why), 0);
	CU_ASSERT_EQUAL(places_take("/nonexistent/QUE", "QS", PLACES_ADMIN, &fd, &why), 0);
	CU_ASSERT_EQUAL(fd, -1);
	snprintf(path, sizeof path, "%s/PROCESSES", space);
	f = fopen(path, "w");
	fputs("nonsense", f);
	fclose(f);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -1);
	places_limit(space, 1);
	CU_ASSERT_TRUE((fd = take(PLACES_SERVER)) >= 0);
	CU_ASSERT_EQUAL(take(PLACES_SERVER), -2);
	close(fd);
	space_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(as_many_as_the_limit_says),
		UNIT(servers_come_first),
		UNIT(limit_changes_for_those_who_come),
		UNIT(counted_whatever_comes_and_goes),
		UNIT(a_killed_process_leaves_nothing),
		UNIT(without_a_limit_there_is_none),
	};
	return unit_run("places of processes", tests, UNIT_COUNT(tests));
}
