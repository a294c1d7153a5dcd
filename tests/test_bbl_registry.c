/*
 * The bulletin board's memory: who offers what, which limits hold, and what outlives BBL.
 */
#include <unistd.h>

#include "unit.h"
#include "atmi.h"
#include "proc.h"
#include "bb.h"
#include "registry.h"
#include "state.h"

static struct ubb_machine machine = { .lmid = "SITE1", .address = "nowhere", .maxaccessers = 4 };
static struct ubb_group group = { .name = "QUE1", .lmid = { "SITE1", "" }, .grpno = 2, .tmsname = "TMS_QM",
	.tmscount = 2 };
static struct ubb_server server = { .aout = "/opt/TMQUEUE", .srvgrp = "QUE1", .srvid = 1, .min = 1, .max = 20,
	.clopt = "-A", .rcmd = "", .rqaddr = "", .envfile = "" };
static struct ubb_service service = { .name = "QSPACE", .srvgrp = "", .buftype = "", .routing = "R", .load = 70,
	.prio = 60, .trantime = 12, .autotran = true };
static struct ubb ubb;
static struct registry reg;

static void
given_board(void)
{
	memset(&ubb, 0, sizeof ubb);
	ubb.n_machines = ubb.n_groups = ubb.n_servers = ubb.n_services = 1;
	ubb.machines = &machine;
	ubb.groups = &group;
	ubb.servers = &server;
	ubb.services = &service;
	ubb.res.master[0] = machine.lmid;
	ubb.res.maxservers = 50;
	ubb.res.maxservices = 5;
	ubb.res.maxaccessers = 50;
	registry_open(&reg, &ubb);
}

static struct server *
add(long srvid, int expected)
{
	struct server *s;
	char why[256];

	CU_ASSERT_EQUAL(registry_add(&reg, "QUE1", srvid, &s, why, sizeof why), expected);
	if (s != NULL) {
		free(s->endpoint);
		s->endpoint = strdup("ipc:///run/2.1");
		s->pid = getpid();
		s->start_time = proc_start_time(getpid());
	}
	return s;
}

static int	/* how many; -1: nobody */
offers(const char *name)
{
	struct document d = { 0 };
	int n = registry_resolve(&reg, name, &d) == 0 ? (int)d.n : -1;

	document_free(&d);
	return n;
}

static void
a_service_is_known_once_its_server_is_ready(void)
{
	struct document d = { 0 };
	struct server *s;

	given_board();
	s = add(1, 0);
	CU_ASSERT_EQUAL(offers("QSPACE"), -1);
	CU_ASSERT_EQUAL(registry_advertise(&reg, s, "QSPACE", "TMQUEUE"), 0);
	CU_ASSERT_EQUAL(offers("QSPACE"), 0);		/* being started: ask again */
	server_enter(s, SERVER_READY);
	CU_ASSERT_EQUAL_FATAL(registry_resolve(&reg, "QSPACE", &d), 0);
	CU_ASSERT_EQUAL_FATAL(d.n, 1);
	CU_ASSERT_STRING_EQUAL(record_get(&d.rec[0], "endpoint"), "ipc:///run/2.1");
	CU_ASSERT_STRING_EQUAL(record_get(&d.rec[0], "group"), "QUE1");
	CU_ASSERT_EQUAL(record_long(&d.rec[0], "grpno", 0), 2);
	CU_ASSERT_EQUAL(record_long(&d.rec[0], "load", 0), 70);
	CU_ASSERT_EQUAL(record_long(&d.rec[0], "prio", 0), 60);
	CU_ASSERT_EQUAL(record_long(&d.rec[0], "trantime", 0), 12);
	CU_ASSERT_STRING_EQUAL(record_get(&d.rec[0], "autotran"), "Y");
	CU_ASSERT_STRING_EQUAL(record_get(&d.rec[0], "buftype"), "ALL");
	CU_ASSERT_STRING_EQUAL(record_get(&d.rec[0], "routing"), "R");
	document_free(&d);
	server_enter(s, SERVER_STOPPING);
	CU_ASSERT_EQUAL(offers("QSPACE"), -1);
	registry_close(&reg);
}

static void
a_name_is_coming_while_a_server_stands_by_for_it(void)
{
	struct server *s, *second;

	given_board();
	s = add(1, 0);
	second = add(2, 0);
	registry_advertise(&reg, s, "QSPACE", "TMQUEUE");
	registry_advertise(&reg, second, BB_STANDBY "QSPACE", "TMQUEUE");
	server_enter(s, SERVER_READY);
	server_enter(second, SERVER_READY);
	CU_ASSERT_EQUAL(offers("QSPACE"), 1);
	registry_remove(&reg, s);
	CU_ASSERT_EQUAL(offers("QSPACE"), 0);
	CU_ASSERT_EQUAL(offers("QSPAC"), -1);
	registry_advertise(&reg, second, "QSPACE", "TMQUEUE");
	CU_ASSERT_EQUAL(offers("QSPACE"), 1);
	server_enter(second, SERVER_STOPPING);
	CU_ASSERT_EQUAL(offers("QSPACE"), -1);
	registry_close(&reg);
}

static void
a_restarted_server_keeps_the_name_until_it_has_spoken(void)
{
	struct server *s;

	given_board();
	s = add(1, 0);
	registry_advertise(&reg, s, "OLD", "F");
	registry_advertise(&reg, s, "BOTH", "F");
	server_enter(s, SERVER_READY);
	server_enter(s, SERVER_DOWN);
	CU_ASSERT_EQUAL(offers("OLD"), 0);
	server_enter(s, SERVER_STARTING);
	server_offers_stale(s);
	CU_ASSERT_EQUAL(registry_advertise(&reg, s, "BOTH", "G"), 0);	/* another function: it may, it is another process */
	CU_ASSERT_EQUAL(offers("OLD"), 0);
	server_enter(s, SERVER_READY);
	registry_drop_stale_offers(&reg, s);
	CU_ASSERT_EQUAL(offers("OLD"), -1);
	CU_ASSERT_EQUAL(offers("BOTH"), 1);
	CU_ASSERT_EQUAL(reg.n_offers, 1);
	registry_close(&reg);
}

static void
limits_hold(void)
{
	struct server *s;
	struct client *c;
	char name[16];

	given_board();
	s = add(1, 0);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "S%d", i);
		CU_ASSERT_EQUAL(registry_advertise(&reg, s, name, "F"), 0);
	}
	CU_ASSERT_EQUAL(registry_advertise(&reg, s, "S5", "F"), TPELIMIT);		/* MAXSERVICES */
	CU_ASSERT_EQUAL(registry_advertise(&reg, s, "S4", "F"), 0);
	CU_ASSERT_EQUAL(registry_advertise(&reg, s, "S4", "G"), TPEMATCH);
	CU_ASSERT_EQUAL(registry_unadvertise(&reg, s, "S4"), 0);
	CU_ASSERT_EQUAL(registry_unadvertise(&reg, s, "S4"), TPENOENT);
	add(2, 0);
	CU_ASSERT_EQUAL(registry_join(&reg, "u", "c", getpid(), &c), 0);
	CU_ASSERT_EQUAL(registry_join(&reg, "u", "c", getpid(), &c), 0);
	CU_ASSERT_EQUAL(registry_join(&reg, "u", "c", getpid(), &c), TPENOENT);	/* MAXACCESSERS */
	CU_ASSERT_EQUAL(registry_join(&reg, "u", "tmadmin", getpid(), &c), 0);	/* an administrator always */
	CU_ASSERT_PTR_NULL(add(3, TPELIMIT));
	ubb.res.maxservers = 3;		/* with BBL that is what we have */
	CU_ASSERT_PTR_NULL(add(30001, TPELIMIT));
	CU_ASSERT_PTR_NULL(add(999, TPENOENT));
	registry_close(&reg);
}

static void
clients_that_died_make_room(void)
{
	struct client *c;

	given_board();
	CU_ASSERT_EQUAL(registry_join(&reg, "u", "c", getpid(), &c), 0);
	CU_ASSERT_EQUAL(registry_sweep_clients(&reg), 1);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(registry_join(&reg, "u", "c", 0x3ffffff, &c), 0);	/* nobody's number */
	CU_ASSERT_EQUAL(registry_sweep_clients(&reg), 1);
	registry_leave(&reg, reg.clients[0]->id[1], getpid());
	CU_ASSERT_EQUAL(registry_sweep_clients(&reg), 0);
	registry_close(&reg);
}

/* --- the state file --- */

static const char *
state_path(void)
{
	static char path[300];

	snprintf(path, sizeof path, "%s/bbl-state.%ld", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (long)getpid());
	return path;
}

static void
given_state(void)
{
	struct server *s;

	given_board();
	s = add(1, 0);
	s->generation = 7;
	s->restarts = 3;
	registry_advertise(&reg, s, "QSPACE", "TMQUEUE");
	registry_advertise(&reg, s, "with blanks in it", "F");
	server_enter(s, SERVER_READY);
	s = add(30001, 0);
	server_enter(s, SERVER_READY);
	add(2, 0);
	CU_ASSERT_EQUAL(state_write(&reg, NULL, "/app dir/tuxconfig", state_path()), 0);
	registry_close(&reg);
}

static void
a_new_bbl_reads_what_the_old_one_wrote(void)
{
	struct state st;

	given_state();
	CU_ASSERT_EQUAL_FATAL(state_read(state_path(), &st), 0);
	CU_ASSERT_STRING_EQUAL(st.tuxconfig, "/app dir/tuxconfig");
	CU_ASSERT_EQUAL_FATAL(st.n, 3);
	CU_ASSERT_STRING_EQUAL(st.servers[0].group, "QUE1");
	CU_ASSERT_EQUAL(st.servers[0].srvid, 1);
	CU_ASSERT_EQUAL(st.servers[0].generation, 7);
	CU_ASSERT_EQUAL(st.servers[0].restarts, 3);
	CU_ASSERT_TRUE(st.servers[0].was_ready);
	CU_ASSERT_TRUE(state_server_lives(&st.servers[0]));
	CU_ASSERT_EQUAL_FATAL(st.servers[0].n_offers, 2);
	CU_ASSERT_STRING_EQUAL(st.servers[0].offers[1].service, "with blanks in it");
	CU_ASSERT_TRUE(st.servers[1].tms);
	CU_ASSERT_FALSE(state_server_lives(&st.servers[1]));
	CU_ASSERT_FALSE(st.servers[2].was_ready);
	state_free(&st);
	unlink(state_path());
}

static void
a_state_file_that_was_cut_short_counts_as_absent(void)
{
	struct state st;
	char whole[4096];
	size_t n;
	FILE *f;

	given_state();
	f = fopen(state_path(), "r");
	n = fread(whole, 1, sizeof whole, f);
	fclose(f);
	for (size_t cut = 0; cut + 1 < n; cut++) {	/* the last line end may be missing */
		f = fopen(state_path(), "w");
		fwrite(whole, 1, cut, f);
		fclose(f);
		if (cut + 1 < n)
			CU_ASSERT_EQUAL(state_read(state_path(), &st), -1);
		CU_ASSERT_EQUAL(st.n, 0);
	}
	unlink(state_path());
	CU_ASSERT_EQUAL(state_read(state_path(), &st), -1);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_service_is_known_once_its_server_is_ready),
		UNIT(a_name_is_coming_while_a_server_stands_by_for_it),
		UNIT(a_restarted_server_keeps_the_name_until_it_has_spoken),
		UNIT(limits_hold),
		UNIT(clients_that_died_make_room),
		UNIT(a_new_bbl_reads_what_the_old_one_wrote),
		UNIT(a_state_file_that_was_cut_short_counts_as_absent),
	};

	return unit_run("bbl registry", tests, UNIT_COUNT(tests));
}
