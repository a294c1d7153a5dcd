/*
 * TUXCONFIG: what is written is read back, prints as text that loads to the same bytes, and damage is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"
#include "ubb.h"

static char dir[64], path[96], other[96];

static void
given_directory(void)
{
	unsetenv("ATMIQ_RUNBASE");
	snprintf(dir, sizeof dir, "/tmp/tuxconfig.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/tuxconfig", dir);
	snprintf(other, sizeof other, "%s/other", dir);
}

static void
given_done(void)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	CU_ASSERT_EQUAL(system(cmd), 0);
}

static const char full[] =
    "*RESOURCES\nIPCKEY 0xcd89\nMASTER SITE1,SITE2\nMODEL MP\nOPTIONS LAN,MIGRATE\nDOMAINID \"a \\\"b\\\\\"\nUID "
    "17\nGID 18\nPERM 0640\n"
    "LDBAL N\nCMTRET LOGGED\nSCANUNIT 500MS\nBLOCKTIME 7\nSECURITY APP_PW\nAUTHSVC \"..AUTHSVC\"\nNOTIFY "
    "SIGNAL\nMAXACLGROUPS 0x10\n"
    "SYSTEM_ACCESS PROTECTED,NO_OVERRIDE\nUSIGNAL SIGUSR1\nSEC_PRINCIPAL_NAME \"x y\"\n"
    "*MACHINES\nDEFAULT: TUXDIR=\"/t\" APPDIR=\"/a b\" TUXCONFIG=\"/a/t\"\n"
    "\"one.example\" LMID=SITE1 TLOGDEVICE=\"/a/TLOG\" TLOGNAME=T TLOGSIZE=10 TYPE=\"x\" CMPLIMIT=5,6 UID=5\n"
    "two LMID=SITE2 ULOGPFX=\"/log/ULOG\" ENVFILE=\"env\" PERM=0600 MAXWSCLIENTS=3\n"
    "*GROUPS\nG LMID=SITE1,SITE2 GRPNO=1 ENVFILE=\"e\"\nQ LMID=SITE1 GRPNO=2 TMSNAME=TMS_QM "
    "OPENINFO=\"TUXEDO/QM:/a/QUE:S\" CLOSEINFO=\"c\"\n"
    "*NETGROUPS\nN NETGRPNO=1\n"
    "*NETWORK\nSITE1 NADDR=\"//one:1\" NLSADDR=\"//one:2\" NETGROUP=N\nSITE2 NADDR=\"//two:1\"\n"
    "*SERVERS\n\"sub/server\" SRVGRP=G SRVID=1 MAX=4 CLOPT=\"\" RCMD=\"r # no comment\" SEQUENCE=5 "
    "SYSTEM_ACCESS=FASTPATH\n"
    "TMQUEUE SRVGRP=Q SRVID=1 CLOPT=\"-s S:TMQUEUE --  \" RQADDR=\"q\" REPLYQ=Y CONV=N GRACE=0 RESTART=Y MAXGEN=10\n"
    "*SERVICES\nA SRVGRP=G LOAD=3 PRIO=4 AUTOTRAN=Y ROUTING=R BLOCKTIME=9\n\"DEFAULT:\"\n"
    "*ROUTING\nR FIELD=F FIELDTYPE=LONG RANGES=\"MIN-5:G,*:*\" BUFTYPE=\"FML32\"\n";

static struct ubb *
parsed(const char *text)
{
	FILE *in = fmemopen((char *)text, strlen(text), "r");
	struct ubb *u;

	CU_ASSERT_EQUAL_FATAL(ubb_parse(in, "ubb", stdout, NULL, &u), 0);
	fclose(in);
	return u;
}

static char *
printed(const struct ubb *u)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	ubb_print(u, out);
	fclose(out);
	return text;
}

static char *
content(const char *name)
{
	char *text = calloc(1, 1 << 16);
	FILE *f = fopen(name, "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(fread(text, 1, (1 << 16) - 1, f) > 0);
	fclose(f);
	return text;
}

static void
write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void
what_is_written_is_read_back(void)
{
	struct ubb *u, *back;
	char *why;

	given_directory();
	u = parsed(full);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(path, &back, &why), 0);
	CU_ASSERT_EQUAL(back->res.ipckey, 0xcd89);
	CU_ASSERT_STRING_EQUAL(back->res.domainid, "a \"b\\");
	CU_ASSERT_STRING_EQUAL(back->res.master[1], "SITE2");
	CU_ASSERT_EQUAL(back->res.scanunit_ms, 500);
	CU_ASSERT_EQUAL(back->res.perm, 0640);
	CU_ASSERT_TRUE(back->res.cmtret_logged);
	CU_ASSERT_FALSE(back->res.ldbal);
	CU_ASSERT_EQUAL(back->machines[0].uid, 5);
	CU_ASSERT_EQUAL(back->machines[1].uid, 17);
	CU_ASSERT_EQUAL(back->machines[0].perm, 0640);
	CU_ASSERT_STRING_EQUAL(back->machines[0].ulogpfx, "/a b/ULOG");
	CU_ASSERT_STRING_EQUAL(back->servers[0].clopt, "");
	CU_ASSERT_STRING_EQUAL(back->servers[0].rcmd, "r # no comment");
	CU_ASSERT_STRING_EQUAL(back->services[1].name, "DEFAULT:");
	CU_ASSERT_EQUAL(back->services[0].blocktime, 9);
	CU_ASSERT_STRING_EQUAL(back->nets[0].netgroup, "N");
	CU_ASSERT_EQUAL(back->netgroups[0].netprio, 100);
	CU_ASSERT_STRING_EQUAL(back->rundir, "/tmp/.atmiq-5-cd89");
	ubb_free(u);
	ubb_free(back);
	given_done();
}

static void
printed_text_loads_to_the_same_bytes(void)
{
	struct ubb *u = parsed(full), *back, *again;
	char *why, *text, *a, *b;

	given_directory();
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(path, &back, &why), 0);
	text = printed(back);
	again = parsed(text);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(again, other), 0);
	a = content(path);
	b = content(other);
	CU_ASSERT_STRING_EQUAL(a, b);
	ubb_free(again);
	again = parsed(a);			/* a TUXCONFIG is a source as well */
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(again, other), 0);
	free(b);
	b = content(other);
	CU_ASSERT_STRING_EQUAL(a, b);
	free(a);
	free(b);
	free(text);
	ubb_free(u);
	ubb_free(back);
	ubb_free(again);
	given_done();
}

static void
the_file_is_its_owners_unless_it_was_opened_to_others(void)
{
	struct ubb *u = parsed(full);
	struct stat st;

	given_directory();
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_TRUE(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	CU_ASSERT_EQUAL(chmod(path, 0644), 0);
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_TRUE(stat(path, &st) == 0 && (st.st_mode & 0777) == 0644);
	ubb_free(u);
	given_done();
}

static bool
refused(const char *part)
{
	struct ubb *u;
	char *why;
	bool ok = tuxconfig_read(path, &u, &why) == -1 && u == NULL && why != NULL && strstr(why, part) != NULL &&
	    strncmp(why, path, strlen(path)) == 0 && strchr(why, '\n') == NULL;

	if (!ok)
		printf("\n  expected \"%s\", said \"%s\"", part, why ? why : "nothing");
	free(why);
	ubb_free(u);
	return ok;
}

static void
damage_is_told(void)
{
	struct ubb *u = parsed(full);
	char *text, *end;
	size_t n;

	given_directory();
	CU_ASSERT_TRUE(refused("No such file or directory"));
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, path), 0);
	text = content(path);
	for (n = strlen(text) - 3; n > 0; n -= n > 97 ? 97 : n) {	/* cut short anywhere */
		FILE *f = fopen(path, "w");

		fwrite(text, 1, n, f);
		fclose(f);
		CU_ASSERT_TRUE(refused(""));
	}
	end = strstr(text, "complete");
	*end = '\0';
	write_file(path, text);
	CU_ASSERT_TRUE(refused("is damaged: its end is missing"));
	write_file(path, "version = 2;\n");
	CU_ASSERT_TRUE(refused("is a TUXCONFIG of version 2, and version 1 is wanted"));
	write_file(path, "resources = { IPCKEY = 40000; };\n");
	CU_ASSERT_TRUE(refused("it has no version"));
	write_file(path, "version = 1;\ncomplete = true;\nrundir = \"/tmp/x\";\n");
	CU_ASSERT_TRUE(refused("resources or machines are missing"));
	write_file(path, "version = 1;\nresources = { IPCKEY = 1; };\nmachines = ( { ADDRESS = \"h\"; } );\ncomplete = "
			 "true;\nrundir = \"/x\";\n");
	CU_ASSERT_TRUE(refused(":2:15: IPCKEY is 1; allowed are"));
	write_file(path, "QSPACE garbage \1\2");
	CU_ASSERT_TRUE(refused("is not a TUXCONFIG; tmloadcf makes one"));
	write_file(path, "");
	CU_ASSERT_TRUE(refused("is not a TUXCONFIG"));
	unlink(path);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	CU_ASSERT_TRUE(refused("is not a file"));
	free(text);
	ubb_free(u);
	given_done();
}

static void
a_write_that_fails_leaves_the_old_file(void)
{
	struct ubb *u = parsed(full);
	char *before, *after, list[256];
	FILE *ls;

	given_directory();
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), 0);
	before = content(path);
	setenv("ATMIQ_RUNBASE", "relative", 1);
	errno = 0;
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	unsetenv("ATMIQ_RUNBASE");
	after = content(path);
	CU_ASSERT_STRING_EQUAL(before, after);
	CU_ASSERT_EQUAL(tuxconfig_write(u, "/nonexistent/tuxconfig"), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	snprintf(list, sizeof list, "ls -A '%s'", dir);
	ls = popen(list, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(list, sizeof list, ls));
	CU_ASSERT_STRING_EQUAL(list, "tuxconfig\n");
	CU_ASSERT_PTR_NULL(fgets(list, sizeof list, ls));
	pclose(ls);
	free(before);
	free(after);
	ubb_free(u);
	given_done();
}

static void
the_run_directory_leaves_room_for_every_socket(void)
{
	struct ubb *u = parsed(full), *back;
	char base[128], endpoint[160], *why;

	given_directory();
	memset(base, 'x', sizeof base);
	base[0] = '/';
	base[107 - 13 - (int)strlen("/.atmiq-5-cd89")] = '\0';	/* the longest that fits */
	setenv("ATMIQ_RUNBASE", base, 1);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(path, &back, &why), 0);
	CU_ASSERT_EQUAL(ubb_server_endpoint(back, 29999, 30000, endpoint, sizeof endpoint), 0);
	CU_ASSERT_EQUAL(strlen(endpoint) - strlen("ipc://"), 106);	/* the queue of a set has a letter more */
	CU_ASSERT_EQUAL(ubb_server_endpoint(back, 29999, 30000, endpoint, 100), -1);
	CU_ASSERT_EQUAL(ubb_bbl_endpoint(back, endpoint, sizeof endpoint), 0);
	CU_ASSERT_STRING_EQUAL(endpoint + strlen(endpoint) - 4, "/bbl");
	base[strlen(base)] = 'x';
	setenv("ATMIQ_RUNBASE", base, 1);
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), -1);
	CU_ASSERT_EQUAL(errno, ENAMETOOLONG);
	unsetenv("ATMIQ_RUNBASE");
	CU_ASSERT_EQUAL(ubb_bbl_endpoint(u, endpoint, sizeof endpoint), -1); /* not of TUXCONFIG: no run directory */
	ubb_free(back);
	ubb_free(u);
	given_done();
}

static void
thousands_of_servers_take_no_time(void)
{
	char *text, *why;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct ubb *u, *back;
	int i;

	given_directory();
	fputs("*RESOURCES\nIPCKEY 52617\nMASTER S\nMODEL SHM\n*MACHINES\nh LMID=S TUXDIR=\"/t\" APPDIR=\"/a\" "
	      "TUXCONFIG=\"/a/t\"\n"
	      "*GROUPS\nG LMID=S GRPNO=1\n*SERVERS\nDEFAULT: SRVGRP=G\n",
	    out);
	for (i = 1; i <= 8000; i++)
		fprintf(out, "server SRVID=%d\n", i);
	fputs("*SERVICES\n", out);
	for (i = 1; i <= 8000; i++)
		fprintf(out, "S%d\n", i);
	fclose(out);
	u = parsed(text);
	CU_ASSERT_EQUAL(tuxconfig_write(u, path), 0);
	CU_ASSERT_EQUAL_FATAL(tuxconfig_read(path, &back, &why), 0);
	CU_ASSERT_EQUAL(back->n_servers, 8000);
	CU_ASSERT_EQUAL(back->servers[7999].srvid, 8000);
	ubb_free(back);
	ubb_free(u);
	free(text);
	given_done();
}

static void
an_envfile_sets_and_expands(void)
{
	given_directory();
	write_file(path,
	    "# comment\nATQ_A=one\n\nATQ_B=${ATQ_A}/$ATQ_A/$ATQ_NOT_SET-\r\nATQ_C=\\$ATQ_A \\\\ \"q\" $ 5 ${ATQ_A\n"
	    "  ATQ_D=d\nnot a line\nATQ_E=");
	unsetenv("ATQ_NOT_SET");
	setenv("ULOGPFX", other, 1);
	CU_ASSERT_EQUAL(envfile_load(path), 0);
	CU_ASSERT_STRING_EQUAL(getenv("ATQ_A"), "one");
	CU_ASSERT_STRING_EQUAL(getenv("ATQ_B"), "one/one/-");
	CU_ASSERT_STRING_EQUAL(getenv("ATQ_C"), "$ATQ_A \\ \"q\" $ 5 ${ATQ_A");
	CU_ASSERT_STRING_EQUAL(getenv("ATQ_D"), "d");
	CU_ASSERT_STRING_EQUAL(getenv("ATQ_E"), "");
	CU_ASSERT_EQUAL(envfile_load("/nonexistent"), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	given_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(what_is_written_is_read_back), UNIT(printed_text_loads_to_the_same_bytes),
		UNIT(the_file_is_its_owners_unless_it_was_opened_to_others), UNIT(damage_is_told),
		UNIT(a_write_that_fails_leaves_the_old_file), UNIT(the_run_directory_leaves_room_for_every_socket),
		UNIT(thousands_of_servers_take_no_time), UNIT(an_envfile_sets_and_expands),
	};

	return unit_run("ubbconfig: TUXCONFIG", tests, UNIT_COUNT(tests));
}
