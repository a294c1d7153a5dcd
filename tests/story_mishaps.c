/*
 * story_mishaps - programs that are killed in the middle, or started where another one runs.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "given.h"
#include "given_crash_space.h"

#define QUEUE "qcreate ORDERS fifo none 2 0 100% 0% \"\"\n"

static bool
can_put(void *queue)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };

	return tpenqueue("QSPACE", queue, &ctl, NULL, 0, 0) != -1;
}


static void
a_qmadmin_that_is_killed_leaves_nothing_behind(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUE });
	char *out;

	tpterm();
	for (int running = 1; running >= 0; running--) {
		if (!running)
			given_shutdown(g);
		given_write(g, "half", "mkfifo pipe; qmadmin <pipe >qm 2>&1 & pid=$!; exec 3>pipe\n"
		    "printf 'qopen QSPACE\\nqcreate HALF\\nfifo\\n' >&3\n"
		    "until grep -q -i out-of-order qm; do :; done; kill -9 $pid; rm -f pipe qm\n");
		free(given_ok(g, NULL, "timeout 20 sh ./half"));
		out = given_qmadmin(g, "qinfo\nqcreate WHOLE fifo none 2 30 80% 0% \"\"\nqdestroy -y WHOLE\n");
		CU_ASSERT_FALSE(has(out, "HALF"));
		free(out);
	}
	given_boot(g);
	given_done(g);
}

/* One that is started by hand beside the one that BBL knows must not take its place, not even for a moment. */
static void
a_second_queue_manager_by_hand_is_sent_away(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUE });
	pid_t pid = given_pid(g, "TMQUEUE", 0);
	struct ran r = given_run(g, NULL, "TMQUEUE -g 2 -i 1 -s QSPACE:TMQUEUE");

	CU_ASSERT_TRUE(r.status > 0);
	CU_ASSERT_TRUE(given_logged(g, "cannot listen at") && given_logged(g, "in use"));
	ran_free(&r);
	tpterm();
	put("ORDERS", "two boxes of nails");
	CU_ASSERT_EQUAL(given_pid(g, "TMQUEUE", 0), pid);
	given_done(g);
}

/* Whoever has the space: the queue manager stands by until it is free. */
static void
a_lock_that_another_process_holds_is_waited_for(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUE });
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[300];
	int fd;

	tpterm();
	given_shutdown(g);
	snprintf(path, sizeof path, "%s/QUE.d/QSPACE/lock", given_dir(g));
	CU_ASSERT_TRUE_FATAL((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0 && fcntl(fd, F_OFD_SETLK, &l) == 0);
	given_boot(g);
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	close(fd);
	CU_ASSERT_TRUE(wait_until(can_put, "ORDERS", 10));
	given_done(g);
}

/* BBL does what it was told, and the next tmboot finds it done or under way. */
static void
a_tmboot_that_is_killed_is_repeated(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = QUEUE, .not_booted = true,
	    .server_source = "#include <fcntl.h>\n#include <unistd.h>\n#include \"atmi.h\"\nint tpsvrinit(int c, char **v)\n{\n"
		"\tclose(creat(\"started\", 0600));\n\twhile (access(\"go\", F_OK) != 0)\n\t\tusleep(1000);\n\t(void)c;\n\t(void)v;\n\treturn 0;\n}\n"
		"void SVC(TPSVCINFO *m)\n{\n\ttpreturn(TPSUCCESS, 0, m->data, 0, 0);\n}\n",
	    .server_services = "-s SVC" });

	given_write(g, "half", "tmboot -y >boot.out 2>&1 & pid=$!\nuntil [ -e started ]; do :; done; kill -9 $pid\n");
	free(given_ok(g, NULL, "timeout 20 sh ./half"));
	given_write(g, "go", "now\n");
	given_boot(g);
	put("ORDERS", "two boxes of nails");
	CU_ASSERT_EQUAL(given_count(g, "BBL"), 1);
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 1);
	CU_ASSERT_EQUAL(given_count(g, "server"), 1);
	given_done(g);
}

/* --- a disk that fails, and comes back --- */

static int	/* tperrno; 0: it is there */
put_number(int n)
{
	TPQCTL ctl = { .flags = TPNOFLAGS };
	char *data = tpalloc("STRING", NULL, 20);
	int e;

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	snprintf(data, 20, "%d", n);
	e = tpenqueue("QSPACE", "ORDERS", &ctl, data, 0, 0) == -1 ? tperrno : 0;
	tpfree(data);
	return e;
}

static bool
ended_and_cannot_start(void *g)
{
	return given_logged(g, "QM_CAT:1630") && given_logged(g, "cannot be opened");
}

static int	/* how many are there, each once and in order; all below `sure` among them */
numbers_taken(int sure)
{
	int n = 0, last = -1;
	char *text;

	for (; (text = take("ORDERS")) != NULL; n++) {
		int is = atoi(text);

		CU_ASSERT_TRUE(is > last && (is == last + 1 || last + 1 >= sure));
		last = is;
		free(text);
	}
	return n;
}

/* Nobody can tell whether the last batch is on it: TMQUEUE ends rather than say so.  The next one finds what is there. */
static void
a_disk_that_stays_dead_ends_the_queue_manager_and_loses_nothing(void)
{
	enum { SURE = 20 };
	char tmqueue[PATH_MAX * 2], preload[PATH_MAX] = "", file[PATH_MAX];
	struct control *control;
	struct given *g;
	int e;

	if (!failing_writes_are_there(preload, sizeof preload)) {
		printf("(not with a sanitizer) ");
		return;
	}
	g = given_directory();
	snprintf(tmqueue, sizeof tmqueue, "RESTART=Y GRACE=0 MAXGEN=255 CLOPT=\"-s QSPACE:TMQUEUE -- -t 30\" ENVFILE=\"%s/envfile\"",
	    given_dir(g));
	given_system_in(g, &(struct given_conf){ .queues = QUEUE, .tmqueue = tmqueue, .not_booted = true });
	snprintf(file, sizeof file, "%s/control", given_dir(g));
	given_write(g, "control", "%*s", (int)sizeof(struct control), "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(control = control_open(file));
	memset((void *)control, 0, sizeof *control);
	given_write(g, "envfile", "FAULT_CONTROL=%s\nLD_PRELOAD=%s\n", file, preload);
	given_boot(g);
	for (int i = 0; i < SURE; i++)
		CU_ASSERT_EQUAL(put_number(i), 0);

	control->fault_kinds = FAULT_SYNC;	/* a write that fails is taken back, and refused: nothing is unknown */
	control->fault_one_in = 1;
	e = put_number(SURE);
	CU_ASSERT_TRUE(e == TPESVCERR || e == TPETIME);
	CU_ASSERT_TRUE(wait_until(ended_and_cannot_start, g, 20));
	CU_ASSERT_EQUAL(tpsblktime(300, TPBLK_NEXT | TPBLK_MILLISECOND), 0);
	CU_ASSERT_NOT_EQUAL(put_number(SURE + 1), 0);

	control->fault_one_in = 0;
	for (double end = now_s() + 60; (e = put_number(SURE + 2)) != 0 && now_s() < end;)
		nap_ms(20);
	CU_ASSERT_EQUAL(e, 0);
	e = numbers_taken(SURE);
	CU_ASSERT_TRUE(e >= SURE + 1 && e <= SURE + 3);
	munmap(control, sizeof *control);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_qmadmin_that_is_killed_leaves_nothing_behind),
		UNIT(a_second_queue_manager_by_hand_is_sent_away),
		UNIT(a_lock_that_another_process_holds_is_waited_for),
		UNIT(a_tmboot_that_is_killed_is_repeated),
		UNIT(a_disk_that_stays_dead_ends_the_queue_manager_and_loses_nothing),
	};

	return unit_run("mishaps", tests, UNIT_COUNT(tests));
}
