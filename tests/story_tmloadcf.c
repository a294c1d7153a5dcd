/*
 * story_tmloadcf - tmloadcf and tmunloadcf as administrators and scripts run them.
 */
#include <string.h>
#include <sys/stat.h>

#include "given.h"

static struct given *
given_files(void)
{
	return given_system(&(struct given_conf){ .only_files = true });
}

/* The command ends with `status`, and says `text` on the stream that is named. */
static void
ends(const struct given *g, const char *input, const char *command, int status, const char *on_out, const char *on_err)
{
	struct ran r = given_run(g, input, "%s", command);

	if (r.status != status || !has(r.out, on_out) || !has(r.err, on_err))
		fprintf(stderr, "\n  %s: status %d\n%s%s", command, r.status, r.out, r.err);
	CU_ASSERT_EQUAL(r.status, status);
	CU_ASSERT_TRUE(has(r.out, on_out));
	CU_ASSERT_TRUE(has(r.err, on_err));
	ran_free(&r);
}

static void
a_good_file_is_loaded_without_a_word(void)
{
	struct given *g = given_files();
	struct ran r = given_run(g, NULL, "tmloadcf -y ubb");
	struct stat st;
	char path[4200];

	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_STRING_EQUAL(r.out, "");
	CU_ASSERT_STRING_EQUAL(r.err, "");
	ran_free(&r);
	snprintf(path, sizeof path, "%s/tuxconfig", given_dir(g));
	CU_ASSERT_TRUE(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:879: INFO: A new file system has been created. (size = "));
	CU_ASSERT_TRUE(given_logged(g, "CMDTUX_CAT:871: INFO: TUXCONFIG file "));
	given_done(g);
}

static void
questions_are_asked_and_only_y_means_yes(void)
{
	struct given *g = given_files();

	ends(g, "", "tmloadcf ubb", 1, "Initialize TUXCONFIG file: ", "");
	ends(g, "q\n", "tmloadcf ubb", 1, "/tuxconfig [y, q] ? ", "");
	ends(g, "n\n", "tmloadcf ubb", 1, "", "");
	CU_ASSERT_FALSE(given_exists(g, "tuxconfig"));
	ends(g, "what\ny\n", "tmloadcf ubb", 0, "Initialize TUXCONFIG file: ", "");
	CU_ASSERT_TRUE(given_exists(g, "tuxconfig"));
	ends(g, "y\n", "tmloadcf ubb", 0, "Overwrite TUXCONFIG file: ", "");
	given_done(g);
}

static void
a_check_needs_and_writes_nothing(void)
{
	struct given *g = given_files();
	struct ran r = given_run(g, NULL, "env -u TUXCONFIG tmloadcf -n ubb; tmloadcf -ny ubb");

	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_STRING_EQUAL(r.out, "");
	CU_ASSERT_STRING_EQUAL(r.err, "");
	ran_free(&r);
	ends(g, NULL, "tmloadcf -c ubb", 0, "SITE1", "");
	CU_ASSERT_FALSE(given_exists(g, "tuxconfig"));
	given_done(g);
}

static void	/* Such files are taken; what becomes of the queues is told, by file and line. */
shared_queues_that_are_odd_are_warned_of(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .groups = "OTHER LMID=SITE1 GRPNO=7\n",
	    .servers = "one SRVGRP=APP SRVID=11 RQADDR=q1\nanother SRVGRP=APP SRVID=12 RQADDR=q1\n"
		       "one SRVGRP=APP SRVID=13 RQADDR=q2\none SRVGRP=OTHER SRVID=14 RQADDR=q2\n" });

	ends(g, NULL, "tmloadcf -n ubb", 0, "", "RQADDR \"q1\" is shared by another and, at line");
	ends(g, NULL, "tmloadcf -n ubb", 0, "", "RQADDR \"q2\" is also given in group APP at line");
	given_done(g);
}

static void
what_is_unloaded_loads_to_the_same_file(void)
{
	struct given *g = given_files();

	free(given_ok(g, NULL, "tmloadcf -y - <ubb && cp tuxconfig first && tmunloadcf >ubb2 && tmloadcf -y ubb2"));
	free(given_ok(g, NULL, "cmp first tuxconfig && tmloadcf -y first && cmp first tuxconfig"));
	given_done(g);
}

static void
a_wrong_environment_is_told(void)
{
	struct given *g = given_files();

	ends(g, NULL, "env -u TUXCONFIG tmloadcf -y ubb", 1, "", "TUXCONFIG is not set");
	ends(g, NULL, "TUXCONFIG=/elsewhere/tuxconfig tmloadcf -y ubb", 1, "", "both must be the same\ntmloadcf: 1 error; nothing");
	ends(g, NULL, "ATMIQ_RUNBASE=relative tmloadcf -y ubb", 1, "", "ATMIQ_RUNBASE is \"relative\"");
	ends(g, NULL, "sed 's/^IPCKEY/UID 4242\\n&/' ubb >other && tmloadcf -y other", 1, "", "UID is 4242; the user that loads");
	ends(g, NULL, "tmloadcf -y nowhere", 1, "", "tmloadcf: nowhere: No such file");
	ends(g, NULL, "tmloadcf -z ubb", 1, "", "usage: tmloadcf");
	ends(g, NULL, "tmloadcf", 1, "", "usage: tmloadcf");
	CU_ASSERT_FALSE(given_exists(g, "tuxconfig"));
	ends(g, NULL, "tmunloadcf", 1, "", "No such file");
	ends(g, NULL, "echo nonsense >tuxconfig; tmunloadcf", 1, "", "is not a TUXCONFIG");
	given_done(g);
}

static void
a_file_with_faults_leaves_the_old_tuxconfig(void)
{
	struct given *g = given_files();

	free(given_ok(g, NULL, "tmloadcf -y ubb && cp tuxconfig first"));
	given_write(g, "bad", "*RESOURCES\nIPCKEY 5\n");
	ends(g, NULL, "tmloadcf -y bad", 1, "", "bad:2:8: IPCKEY is 5; allowed are 32769 to 262143\n");
	free(given_ok(g, NULL, "cmp first tuxconfig"));
	given_done(g);
}

static void
a_running_application_keeps_its_configuration(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 5 0 100% 0% \"\"\n" });

	ends(g, NULL, "tmloadcf -y ubb", 1, "", "is running; shut it down with tmshutdown first; nothing was written");
	ends(g, NULL, "tmloadcf -n ubb", 0, "", "");
	put("ORDERS", "two boxes of nails");
	free(given_ok(g, NULL, "tmshutdown -y -c && tmloadcf -y ubb && tmboot -y"));
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_good_file_is_loaded_without_a_word),
		UNIT(questions_are_asked_and_only_y_means_yes),
		UNIT(a_check_needs_and_writes_nothing),
		UNIT(shared_queues_that_are_odd_are_warned_of),
		UNIT(what_is_unloaded_loads_to_the_same_file),
		UNIT(a_wrong_environment_is_told),
		UNIT(a_file_with_faults_leaves_the_old_tuxconfig),
		UNIT(a_running_application_keeps_its_configuration),
	};

	return unit_run("story: tmloadcf and tmunloadcf", tests, UNIT_COUNT(tests));
}
