/*
 * story_badinput - what is wrong gets a clear message or its documented code; nothing is lost, and all else goes on.
 */
#include <fcntl.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "given.h"

#define ORDERS "qcreate ORDERS fifo none 5 0 100% 0% \"\"\n"

/* --- applications --- */

static void
two_applications_with_one_ipckey_keep_apart(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS });
	char first[256], second[256];
	struct ran r;

	put("ORDERS", "two boxes of nails");
	tpterm();
	snprintf(first, sizeof first, "%s/tuxconfig", given_dir(g));
	snprintf(second, sizeof second, "%s/two/tuxconfig", given_dir(g));
	free(given_ok(g, NULL, "mkdir two && sed 's;\"%s;&/two;g' ubb >two/ubb", given_dir(g)));
	setenv("TUXCONFIG", second, 1);
	for (int i = 0; i < 2; i++)
		free(given_ok(g, NULL, "APPDIR=$PWD/two tmloadcf -y two/ubb"));
	r = given_run(g, NULL, "tmboot -y");
	CU_ASSERT_TRUE(r.status > 0);
	CU_ASSERT_TRUE(has(r.out, "is in use by the application of") || has(r.err, "is in use by the application of"));
	ran_free(&r);
	r = given_run(g, NULL, "tmshutdown -y");
	CU_ASSERT_TRUE(r.status > 0);
	CU_ASSERT_TRUE(has(r.err, "nothing to shut down"));
	ran_free(&r);
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	setenv("TUXCONFIG", first, 1);
	CU_ASSERT_TRUE(peeks("ORDERS", "two boxes of nails"));
	given_done(g);
}

static void	/* Whoever can replace a socket can pretend to be BBL. */
a_run_directory_that_strangers_may_change_is_not_trusted(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS });
	struct ran r;

	put("ORDERS", "two boxes of nails");
	tpterm();
	CU_ASSERT_EQUAL(chmod(given_rundir(g), 0777), 0);
	CU_ASSERT_EQUAL(tpinit(NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	r = given_run(g, NULL, "tmshutdown -y");
	CU_ASSERT_TRUE(r.status > 0);
	CU_ASSERT_TRUE(has(r.err, given_rundir(g)));
	ran_free(&r);
	CU_ASSERT_EQUAL(chmod(given_rundir(g), 01777), 0);
	CU_ASSERT_TRUE(peeks("ORDERS", "two boxes of nails"));
	given_done(g);
}

/* --- configurations --- */

/* tmloadcf refuses the file, says where with `place` and what with `what`, and writes nothing. */
static void
refused(const struct given *g, const char *place, const char *what)
{
	struct ran r = given_run(g, NULL, "tmloadcf -y ubb");

	CU_ASSERT_TRUE(r.status > 0);
	if (!has(r.err, place) || !has(r.err, what))
		fprintf(stderr, "\n  want \"%s\" and \"%s\" in: %s\n", place, what, r.err);
	CU_ASSERT_TRUE(has(r.err, place));
	CU_ASSERT_TRUE(has(r.err, what));
	CU_ASSERT_FALSE(given_exists(g, "tuxconfig"));
	ran_free(&r);
}

static void
an_unknown_parameter_is_named_with_its_place(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .servers = "TMQUEUE SRVGRP=QUE1 SRVID=2 COLOUR=red\n" });

	refused(g, "ubb:", "COLOUR");
	given_done(g);
}

static void
a_value_of_the_wrong_type_is_named_with_its_place(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .resources = "MAXSERVERS\tmany\n" });

	refused(g, "ubb:", "many");
	given_done(g);
}

static void
a_missing_section_is_told(void)
{
	struct given *g = given_directory();

	given_write(g, "ubb", "*RESOURCES\nIPCKEY %ld\nMASTER SITE1\nMODEL SHM\n", given_ipckey(g));
	refused(g, "ubb", "MACHINES");
	given_done(g);
}

static void
two_servers_with_one_id_are_told(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .servers = "TMQUEUE SRVGRP=QUE1 SRVID=1\n" });

	refused(g, "ubb:", "1");
	given_done(g);
}

static void
every_fault_of_a_file_is_told_in_one_run(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .resources = "MAXSERVERS\tmany\nIPCKEY 1\n",
	    .servers = "TMQUEUE SRVGRP=NOGROUP SRVID=2\nTMQUEUE SRVGRP=QUE1 SRVID=3 COLOUR=red\nTMQUEUE SRVGRP=QUE1 SRVID=99999\n" });
	struct ran r = given_run(g, NULL, "tmloadcf -y ubb");

	CU_ASSERT_TRUE(r.status > 0);
	CU_ASSERT_TRUE(has(r.err, "many"));
	CU_ASSERT_TRUE(has(r.err, "NOGROUP"));
	CU_ASSERT_TRUE(has(r.err, "COLOUR"));
	CU_ASSERT_TRUE(has(r.err, "99999"));
	CU_ASSERT_TRUE(count_of(r.err, "ubb:") >= 5);
	ran_free(&r);
	given_done(g);
}

/* --- queue managers that cannot start; the service beside them does --- */

static const char echo_service[] = "#include \"atmi.h\"\nvoid ECHO(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n";

static void
calls_work(void)
{
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	snprintf(data, 64, "hello");
	GIVEN_CALL_OK(tpcall("ECHO", data, 0, &data, &len, 0));
	CU_ASSERT_STRING_EQUAL(data, "hello");
	tpfree(data);
}

/* Boots; TMQUEUE fails with `reason` in the log or the output; the service of the other group works. */
static void
only_the_queue_manager_fails(struct given *g, const char *reason)
{
	struct ran r = given_run(g, NULL, "tmboot -y");
	char *log = given_log(g), *err = given_read(g, "stderr");

	CU_ASSERT_NOT_EQUAL(r.status, -1);
	CU_ASSERT_TRUE(has(r.out, "Failed") || has(r.err, "Failed"));
	if (!has(log, reason) && !has(r.out, reason) && !has(r.err, reason))
		fprintf(stderr, "\n  want \"%s\" in\n%s%s%s\n", reason, r.out, r.err, log);
	CU_ASSERT_TRUE(has(log, reason) || has(r.out, reason) || has(r.err, reason));
	CU_ASSERT_EQUAL(given_count(g, "TMQUEUE"), 0);
	calls_work();
	CU_ASSERT_TRUE(err == NULL || err[0] == '\0');
	free(err);
	free(log);
	ran_free(&r);
}

#define SERVED_BY_QX "TMQUEUE SRVGRP=QX SRVID=1 CLOPT=\"-s QSPACE:TMQUEUE\"\n"

static struct given *
given_service_and(const char *group)
{
	return given_system(&(struct given_conf){ .server_source = echo_service, .server_services = "-s ECHO", .no_queue_group = true,
	    .groups = group, .servers = SERVED_BY_QX, .not_booted = true });
}

static void
a_queue_manager_in_a_group_without_tms_qm_is_told(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .no_queue_group = true, .servers = SERVED_BY_QX,
	    .groups = "QX LMID=SITE1 GRPNO=5 OPENINFO=\"TUXEDO/QM:/nowhere/QUE:QSPACE\"\n" });

	refused(g, "ubb:", "TMS_QM");
	given_done(g);
}

static void
an_openinfo_that_cannot_open_anything_is_told(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true, .no_queue_group = true, .servers = SERVED_BY_QX,
	    .groups = "QX LMID=SITE1 GRPNO=5 TMSNAME=TMS_QM TMSCOUNT=2 OPENINFO=\"SOMETHING/ELSE:x\"\n" });

	refused(g, "ubb:", "SOMETHING/ELSE");
	given_done(g);
}

static void
an_openinfo_that_names_no_space_is_told(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = echo_service, .server_services = "-s ECHO", .not_booted = true });

	free(given_ok(g, NULL, "sed -i 's;/QUE:QSPACE;/QUE:NOSPACE;' ubb && tmloadcf -y ubb"));
	only_the_queue_manager_fails(g, "NOSPACE");
	given_done(g);
}

static void
a_device_that_is_missing_is_told(void)
{
	struct given *g = given_service_and(
	    "QX LMID=SITE1 GRPNO=5 TMSNAME=TMS_QM TMSCOUNT=2 OPENINFO=\"TUXEDO/QM:/nowhere/at/all/QUE:QSPACE\"\n");

	only_the_queue_manager_fails(g, "/nowhere/at/all/QUE");
	given_done(g);
}

static void
a_device_of_another_version_is_left_alone(void)
{
	struct given *g = given_system(&(struct given_conf){ .server_source = echo_service, .server_services = "-s ECHO",
	    .queues = ORDERS, .not_booted = true });
	char *before, *after;

	/* The first line of a device file names its format and version. */
	free(given_ok(g, NULL, "sed -i '1s/[0-9][0-9]*/99/' QUE && cksum QUE >before"));
	only_the_queue_manager_fails(g, "99");
	before = given_read(g, "before");
	after = given_ok(g, NULL, "cksum QUE");
	CU_ASSERT_STRING_EQUAL(before, after);
	free(before);
	free(after);
	given_done(g);
}

/* The device belongs to a running system; another application that names it does not get it, and disturbs nobody. */
static void
a_device_that_somebody_owns_is_not_opened_twice(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS });
	struct ran r;
	char *log;

	put("ORDERS", "mine");
	free(given_ok(g, NULL, "mkdir second && sed -e 's;^IPCKEY.*;IPCKEY %ld;' -e 's;/tuxconfig\";/tuxconfig2\";' "
	    "-e 's;/ULOG\";/ULOG2\";' ubb >ubb2", given_ipckey(g) + 11));
	free(given_ok(g, NULL, "TUXCONFIG=%s/tuxconfig2 ULOGPFX=%s/ULOG2 tmloadcf -y ubb2", given_dir(g), given_dir(g)));
	r = given_run(g, NULL, "TUXCONFIG=%s/tuxconfig2 ULOGPFX=%s/ULOG2 tmboot -y", given_dir(g), given_dir(g));
	CU_ASSERT_NOT_EQUAL(r.status, -1);
	log = given_ok(g, NULL, "cat ULOG2.*");
	CU_ASSERT_TRUE(has(log, "QSPACE"));
	put("ORDERS", "still mine");
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 2);
	ran_free(&r);
	free(log);
	r = given_run(g, NULL, "TUXCONFIG=%s/tuxconfig2 ULOGPFX=%s/ULOG2 tmshutdown -y", given_dir(g), given_dir(g));
	ran_free(&r);
	CU_ASSERT_TRUE(peeks("ORDERS", "mine"));
	given_done(g);
}

/* --- services and queues that are not there --- */

static bool
forwarder_met_it(void *g)
{
	return given_logged(g, "ORDERS");
}

/* The message waits for its service; its retries are for services that fail. */
static void
a_service_that_is_not_there_costs_no_message(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 1 0 100% 0% \"\"\n",
	    .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -i 1 -q ORDERS\"\n" });
	char *data = tpalloc("STRING", NULL, 64);
	long len;

	data[0] = '\0';
	CU_ASSERT_EQUAL(tpcall("NOBODY", data, 0, &data, &len, 0), -1);
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	put("ORDERS", "waits for its service");
	CU_ASSERT_TRUE(wait_until(forwarder_met_it, g, 15));
	CU_ASSERT_EQUAL(depth(g, "ORDERS"), 1);
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	tpfree(data);
	given_done(g);
}

static bool
no_orders_left(void *g)
{
	return depth(g, "ORDERS") == 0;
}

static void
a_reply_queue_that_is_not_there_drops_the_reply(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 5 0 100% 0% \"\"\n",
	    .server_source = "#include \"atmi.h\"\nvoid ORDERS(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, 0, 0); }\n",
	    .server_services = "-s ORDERS", .servers = "TMQFORWARD SRVGRP=QUE1 SRVID=5 CLOPT=\"-- -i 1 -q ORDERS\"\n" });
	TPQCTL ctl = { .flags = TPQREPLYQ, .replyqueue = "NOWHERE" };
	char *data = tpalloc("STRING", NULL, 64);

	snprintf(data, 64, "answer me");
	GIVEN_CALL_OK(tpenqueue("QSPACE", "ORDERS", &ctl, data, 0, 0));
	CU_ASSERT_TRUE(wait_until(no_orders_left, g, 15));
	CU_ASSERT_EQUAL(depth(g, "ERRQ"), 0);
	tpfree(data);
	given_done(g);
}

/* --- sockets --- */

static int
connect_to(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void
send_all(int fd, const void *p, size_t n)
{
	ssize_t done = send(fd, p, n, MSG_NOSIGNAL);

	(void)done;		/* the other end may well have hung up already */
}

static void
fill(unsigned char *p, size_t n, unsigned *seed)
{
	while (n-- > 0)
		*p++ = (unsigned char)(rand_r(seed) >> 7);
}

/* The transport's own greeting, so that what follows arrives as frames and not as a broken connection. */
static void
greet(int fd)
{
	static const unsigned char ready[] = "\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x06" "DEALER";
	unsigned char hello[64] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L' };

	send_all(fd, hello, sizeof hello);
	send_all(fd, ready, sizeof ready - 1);
}

static void
nonsense(const char *path, unsigned *seed)
{
	unsigned char junk[4096];
	int fd, i;

	for (i = 0; i < 4; i++)
		if ((fd = connect_to(path)) >= 0) {
			fill(junk, sizeof junk, seed);
			send_all(fd, junk, sizeof junk);
			close(fd);
		}
	if ((fd = connect_to(path)) < 0)
		return;
	greet(fd);
	for (i = 0; i < 300; i++) {
		unsigned n = (unsigned)rand_r(seed) % 200u + 1, parts = (unsigned)rand_r(seed) % 3u;
		fill(junk, sizeof junk, seed);
		for (; parts > 0; parts--) {		/* frames with more to follow */
			unsigned char head[2] = { 1, (unsigned char)n };
			send_all(fd, head, 2);
			send_all(fd, junk, n);
		}
		if (i % 2 == 0)
			junk[0] = 1;			/* the right version, so that the next byte is looked at too */
		junk[1] = (unsigned char)(i % 14);
		unsigned char head[2] = { 0, (unsigned char)n };
		send_all(fd, head, 2);
		send_all(fd, junk, n);
	}
	struct pollfd p = { fd, POLLIN, 0 };
	poll(&p, 1, 200);
	close(fd);
}

static int
nonsense_to_all(const char *dir)
{
	unsigned seed = 20261130;
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d != NULL && (e = readdir(d)) != NULL) {
		char path[600];
		struct stat st;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (stat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
			continue;
		nonsense(path, &seed);
		n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

static void
random_bytes_on_every_socket_disturb_nobody(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS, .server_source = echo_service, .server_services = "-s ECHO" });
	pid_t bbl = given_pid(g, "BBL", 0), queue = given_pid(g, "TMQUEUE", 0), server = given_pid(g, "server", 0);
	char *text;

	put("ORDERS", "before");
	CU_ASSERT_TRUE(nonsense_to_all(given_rundir(g)) >= 3);
	put("ORDERS", "after");
	calls_work();
	CU_ASSERT_EQUAL(given_pid(g, "BBL", 0), bbl);
	CU_ASSERT_EQUAL(given_pid(g, "TMQUEUE", 0), queue);
	CU_ASSERT_EQUAL(given_pid(g, "server", 0), server);
	text = take("ORDERS");
	CU_ASSERT_STRING_EQUAL(text, "before");
	free(text);
	text = take("ORDERS");
	CU_ASSERT_STRING_EQUAL(text, "after");
	free(text);
	given_done(g);
}

/* --- no room --- */

static long
put_until_full(const char *queue, long size, long most, long *diagnostic)
{
	char *data = tpalloc("CARRAY", NULL, size);
	long n;

	*diagnostic = 0;
	memset(data, 'x', (size_t)size);
	for (n = 0; n < most; n++) {
		TPQCTL ctl = { .flags = TPNOFLAGS };
		if (tpenqueue("QSPACE", (char *)queue, &ctl, data, size, 0) == -1) {
			*diagnostic = tperrno == TPEDIAGNOSTIC ? ctl.diagnostic : 1000 + tperrno;
			break;
		}
	}
	tpfree(data);
	return n;
}

static bool
take_any(const char *queue)
{
	char *text = take(queue);

	free(text);
	return text != NULL;
}

static void
a_space_without_room_says_so_and_can_be_emptied(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS, .space = "4000 5 5 5 10 ERRQ n 16" });
	long diagnostic, n;

	n = put_until_full("ORDERS", 100, 1000, &diagnostic);
	CU_ASSERT_EQUAL(n, 10);				/* ten messages, as qspacecreate was told */
	CU_ASSERT_EQUAL(diagnostic, QMENOSPACE);
	CU_ASSERT_TRUE(take_any("ORDERS"));
	CU_ASSERT_EQUAL(put_until_full("ORDERS", 100, 1, &diagnostic), 1);
	CU_ASSERT_EQUAL(put_until_full("ORDERS", 100, 1, &diagnostic), 0);
	for (n = 0; take_any("ORDERS"); n++)
		;
	CU_ASSERT_EQUAL(n, 10);
	given_done(g);
}

static void
pages_are_a_limit_that_holds(void)
{
	struct given *g = given_system(&(struct given_conf){ .queues = ORDERS, .space = "100 5 5 5 10000 ERRQ n 16" });
	long diagnostic, n, taken;

	n = put_until_full("ORDERS", 1000, 10000, &diagnostic);
	CU_ASSERT_EQUAL(diagnostic, QMENOSPACE);
	CU_ASSERT_TRUE(n >= 30);	/* at least what so many pages of 512 bytes hold, when a message takes whole pages */
	CU_ASSERT_TRUE(n < 5000);
	for (taken = 0; take_any("ORDERS"); taken++)
		;
	CU_ASSERT_EQUAL(taken, n);
	CU_ASSERT_EQUAL(put_until_full("ORDERS", 1000, n, &diagnostic), n);
	given_done(g);
}

static bool
takes_one(void *queue)
{
	char *data = tpalloc("CARRAY", NULL, 16);
	TPQCTL ctl = { .flags = TPNOFLAGS };
	long len = 0;
	bool ok = tpdequeue("QSPACE", queue, &ctl, &data, &len, 0) != -1;

	tpfree(data);
	return ok;
}

static bool
puts_one(void *queue)
{
	char *data = tpalloc("CARRAY", NULL, 5000);
	TPQCTL ctl = { .flags = TPNOFLAGS };
	bool ok;

	memset(data, 'y', 5000);
	ok = tpenqueue("QSPACE", queue, &ctl, data, 5000, 0) != -1;
	CU_ASSERT_TRUE(ok || (tperrno == TPEDIAGNOSTIC && ctl.diagnostic == QMENOSPACE));
	tpfree(data);
	return ok;
}

/* A file system of a few megabytes, where the user may make one: enqueues are refused, and everything else goes on. */
static void
a_full_disk_refuses_and_loses_nothing(void)
{
	struct given *g = given_directory();
	char dir[512], *out;
	long diagnostic, n, taken;
	struct ran r;

	snprintf(dir, sizeof dir, "%s/small", given_dir(g));
	mkdir(dir, 0700);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", dir, "tmpfs", 0, "size=96m") != 0) {
		printf("(no file system can be mounted here: not run) ");
		given_done(g);
		return;
	}
	given_write(g, "ubb",
	    "*RESOURCES\nIPCKEY %ld\nMASTER SITE1\nMODEL SHM\nSCANUNIT 2\nBLOCKTIME 15\n*MACHINES\n\"%s\" LMID=SITE1 TUXDIR=\"%s\" APPDIR=\"%s\"\n"
	    "\tTUXCONFIG=\"%s/tuxconfig\" TLOGDEVICE=\"%s/TLOG\" TLOGSIZE=10 ULOGPFX=\"%s/ULOG\"\n"
	    "*GROUPS\nQUE1 LMID=SITE1 GRPNO=2 TMSNAME=TMS_QM TMSCOUNT=2 OPENINFO=\"TUXEDO/QM:%s/small/QUE:QSPACE\"\n"
	    "*SERVERS\nTMQUEUE SRVGRP=QUE1 SRVID=1 RESTART=Y GRACE=0 MAXGEN=100 CLOPT=\"-s QSPACE:TMQUEUE\"\n*SERVICES\n",
	    given_ipckey(g), (out = given_ok(g, NULL, "printf %%s \"$(uname -n)\"")), given_tuxdir(g), given_dir(g), given_dir(g),
	    given_dir(g), given_dir(g), given_dir(g));
	free(out);
	free(given_ok(g, NULL, "tmloadcf -y ubb && QMCONFIG= tmadmin <<!\ncrdl -b 200 -z %s/TLOG\ncrlog -m SITE1\nq\n!", given_dir(g)));
	free(given_ok(g, NULL, "qmadmin small/QUE <<!\ncrdl %s/QUE 0 900000\nqspacecreate QSPACE %ld 800000 5 5 5 900000 ERRQ n 16\n"
	    "qopen QSPACE\nqcreate ORDERS fifo none 5 0 100%% 0%% \"\"\nq\n!", dir, given_ipckey(g) + 1));
	given_boot(g);

	/* One that could not even take its first message is not made. */
	snprintf(dir, sizeof dir, "%s/tiny", given_dir(g));
	mkdir(dir, 0700);
	CU_ASSERT_EQUAL(mount("none", dir, "tmpfs", 0, "size=24m"), 0);
	r = given_run(g, NULL, "qmadmin tiny/QUE 2>&1 <<!\ncrdl %s/QUE 0 1000\nqspacecreate QSPACE %ld 400 5 5 5 10 ERRQ n 16\nlivtoc\nq\n!", dir,
	    given_ipckey(g) + 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "takes 36 MB of disk"));
	CU_ASSERT_PTR_NULL(strstr(r.out, "kind: qspace"));
	ran_free(&r);
	umount2(dir, MNT_DETACH);

	n = put_until_full("ORDERS", 200000, 2000, &diagnostic);
	CU_ASSERT_TRUE(n > 0);
	CU_ASSERT_TRUE(n < 2000);
	if (diagnostic != QMENOSPACE)
		fprintf(stderr, "\n  after %ld messages: %ld\n", n, diagnostic);
	CU_ASSERT_EQUAL(diagnostic, QMENOSPACE);
	CU_ASSERT_TRUE(given_logged(g, "the disk of"));
	r = given_run(g, NULL, "cat /dev/zero >small/somebody");	/* not even the rest is left */
	ran_free(&r);
	CU_ASSERT_TRUE(takes_one("ORDERS"));
	given_kill(g, "TMQUEUE", SIGKILL);
	CU_ASSERT_TRUE(wait_until(takes_one, "ORDERS", 10));
	tpterm();
	given_shutdown(g);
	given_boot(g);
	for (taken = 2; take_any("ORDERS"); taken++)
		;
	CU_ASSERT_EQUAL(taken, n);
	free(given_ok(g, NULL, "rm small/somebody"));
	CU_ASSERT_TRUE(wait_until(puts_one, "ORDERS", 10));	/* what was taken has left room */
	CU_ASSERT_TRUE(take_any("ORDERS"));
	put("ORDERS", "life goes on");
	CU_ASSERT_TRUE(peeks("ORDERS", "life goes on"));
	tpterm();
	given_shutdown(g);
	umount2(dir, MNT_DETACH);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(two_applications_with_one_ipckey_keep_apart),
		UNIT(a_run_directory_that_strangers_may_change_is_not_trusted),
		UNIT(an_unknown_parameter_is_named_with_its_place),
		UNIT(a_value_of_the_wrong_type_is_named_with_its_place),
		UNIT(a_missing_section_is_told),
		UNIT(two_servers_with_one_id_are_told),
		UNIT(every_fault_of_a_file_is_told_in_one_run),
		UNIT(a_queue_manager_in_a_group_without_tms_qm_is_told),
		UNIT(an_openinfo_that_cannot_open_anything_is_told),
		UNIT(an_openinfo_that_names_no_space_is_told),
		UNIT(a_device_that_is_missing_is_told),
		UNIT(a_device_of_another_version_is_left_alone),
		UNIT(a_device_that_somebody_owns_is_not_opened_twice),
		UNIT(a_service_that_is_not_there_costs_no_message),
		UNIT(a_reply_queue_that_is_not_there_drops_the_reply),
		UNIT(random_bytes_on_every_socket_disturb_nobody),
		UNIT(a_space_without_room_says_so_and_can_be_emptied),
		UNIT(pages_are_a_limit_that_holds),
		UNIT(a_full_disk_refuses_and_loses_nothing),
	};

	return unit_run("bad input", tests, UNIT_COUNT(tests));
}
