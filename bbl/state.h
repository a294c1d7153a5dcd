/*
 * state - what BBL must still know after a kill -9: which processes are its servers.
 *
 * A short text in the run directory, replaced as a whole (temporary file, rename) whenever that changes.  It need not
 * outlive the machine: no flush.  One record a line, fields apart by tabs: see state.c.  A file of another version, of
 * another boot of the machine or that is damaged counts as absent; nothing worse follows than servers that register as
 * if they were new.
 */
#ifndef STATE_H
#define STATE_H

#include "registry.h"

struct state_server {
	char group[WIRE_GROUP];
	long srvid, generation, restarts, backoff_ms;
	int64_t grace_begin_us;			/* clock_mono_us(), which a boot of the machine has in common */
	pid_t pid;
	unsigned long long start_time;
	bool tms, was_ready, stopping;
	size_t n_offers;
	struct offer *offers;
};
struct state_set { char group[WIRE_GROUP]; long id; pid_t pid; unsigned long long start_time; };	/* a TMRQ */
struct state {
	char tuxconfig[4096];
	size_t n;
	struct state_server *servers;
	size_t n_sets;
	struct state_set *sets;
};

struct rqset;
int state_write(const struct registry *r, const struct rqset *sets, const char *tuxconfig, const char *path);	/* 0 or -1, errno */
/* 0; -1: absent, damaged, of another version or of an earlier boot; *out is empty then.  Free with state_free(). */
int state_read(const char *path, struct state *out);
bool state_set_lives(const struct state_set *s);
bool state_server_lives(const struct state_server *s);	/* it is a process of its own, and runs */
void state_free(struct state *s);

#endif
