/*
 * ubb - a configuration: what UBBCONFIG says and TUXCONFIG keeps, as structs with every default filled in.
 *
 * Ownership  ubb_free() releases all; pointers inside live as long as the struct ubb.
 * Strings    Never NULL; "" when not given.  Numbers carry the default of queue-admin.md section 3 when not given.
 */
#ifndef UBB_H
#define UBB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A parameter as written, for those that only tmunloadcf needs: accepted and kept, without effect. */
struct ubb_extra { char *name, *value; bool quoted; };
struct ubb_extras { size_t n; struct ubb_extra *v; };

struct ubb_resources {
	long ipckey, uid, gid, perm;
	char *master[2];		/* lmid, backup or "" */
	bool mp;			/* MODEL MP */
	char *domainid;
	long maxaccessers, maxservers, maxservices, maxgroups, maxqueues, maxgtt, maxconv, maxbuftype, maxbufstype;
	bool ldbal, cmtret_logged;
	long scanunit_ms;
	long sanityscan, bblquery, dbblwait, blocktime;	/* in SCANUNITs, as in the file */
	char *options, *system_access, *security, *authsvc;
	struct ubb_extras extras;
};
struct ubb_machine {
	char *address, *lmid, *tuxconfig, *tuxdir, *appdir, *tlogdevice, *tlogname, *ulogpfx, *envfile;
	long tlogsize, tlogoffset, uid, gid, perm, maxaccessers, maxgtt, maxwsclients;
	struct ubb_extras extras;
};
struct ubb_group {
	char *name, *lmid[2], *tmsname, *openinfo, *closeinfo, *envfile;
	long grpno, tmscount;
	struct ubb_extras extras;
};
struct ubb_server {
	char *aout, *srvgrp, *clopt, *rcmd, *rqaddr, *envfile;
	long srvid, min, max, maxgen, grace, rqperm, rpperm, sequence;	/* sequence 0: none */
	long mindispatchthreads, maxdispatchthreads, threadstacksize;
	bool conv, restart, replyq;
	struct ubb_extras extras;
};
struct ubb_service {
	char *name, *srvgrp, *buftype, *routing;
	long load, prio, trantime, svctimeout, blocktime;	/* blocktime 0: RESOURCES' */
	bool autotran;
	struct ubb_extras extras;
};
struct ubb_routing { char *name, *field, *fieldtype, *ranges, *buftype; struct ubb_extras extras; };
struct ubb_net { char *lmid, *naddr, *nlsaddr, *netgroup; struct ubb_extras extras; };
struct ubb_netgroup { char *name; long netgrpno, netprio; struct ubb_extras extras; };

struct ubb {
	struct ubb_resources res;
	size_t n_machines, n_groups, n_servers, n_services, n_routings, n_nets, n_netgroups;
	struct ubb_machine *machines;
	struct ubb_group *groups;
	struct ubb_server *servers;
	struct ubb_service *services;
	struct ubb_routing *routings;
	struct ubb_net *nets;
	struct ubb_netgroup *netgroups;
	char *rundir;			/* of TUXCONFIG only: where the sockets are */
};

/*
 * Read UBBCONFIG text (or libconfig text: recognised by itself).  Every error of the file goes to `errors` as one line
 *     FILE:LINE:COLUMN: what was found, what is allowed
 * 0: good, *out is to be freed.  >0: that many errors, *out is NULL.  Warnings are counted apart, in *warnings, which may
 * be NULL.
 */
int ubb_parse(FILE *in, const char *name, FILE *errors, int *warnings, struct ubb **out);

/*
 * The compiled form.  write: atomically replaces `path` (temporary file, fsync, rename); a new file has mode 0600 like
 * Tuxedo's, an older one's mode is kept.  -1: errno; ENAMETOOLONG or EINVAL: ATMIQ_RUNBASE cannot be used.
 */
int tuxconfig_write(const struct ubb *u, const char *path);
/* 0; -1 with one line in *why (malloc'ed): missing, not readable, of another version, damaged. */
int tuxconfig_read(const char *path, struct ubb **out, char **why);
void ubb_print(const struct ubb *u, FILE *out);	/* UBBCONFIG text that loads to the same TUXCONFIG */
void ubb_free(struct ubb *u);

/* Looking up.  NULL when absent. */
const struct ubb_machine *ubb_machine_here(const struct ubb *u);	/* by uname -n; else the only one, or the master */
const struct ubb_machine *ubb_machine_by_lmid(const struct ubb *u, const char *lmid);
const struct ubb_group *ubb_group_by_name(const struct ubb *u, const char *name);
/* The record whose SRVID..SRVID+MAX-1 holds srvid. */
const struct ubb_server *ubb_server_by_id(const struct ubb *u, const char *srvgrp, long srvid);
/* The group's own entry, else the general one; srvgrp may be NULL. */
const struct ubb_service *ubb_service_find(const struct ubb *u, const char *name, const char *srvgrp);

/*
 * What a criterion of *ROUTING says.  *_next(): the piece at p, and where the next one begins; NULL: there is none.  A piece that
 * cannot be read has a sentence in `why`.
 */
enum ubb_end_kind { UBB_END_MIN, UBB_END_MAX, UBB_END_NUMBER, UBB_END_TEXT };
struct ubb_range_end { enum ubb_end_kind kind; long double number; char text[256]; };
struct ubb_range { bool any; struct ubb_range_end low, high; char group[32]; char why[160]; };	/* any: *; group * is any group */
struct ubb_buftype { const char *type, *subtypes; size_t type_len, subtypes_len; };	/* subtypes NULL: none; else with commas */
const char *ubb_range_next(const char *p, struct ubb_range *out);
bool ubb_ranges_overlap(const struct ubb_range *a, const struct ubb_range *b);
const char *ubb_buftype_next(const char *p, struct ubb_buftype *out);
/* The criterion of that name for buffers of this type; NULL: it does not route them. */
const struct ubb_routing *ubb_routing_find(const struct ubb *u, const char *name, const char *type, const char *subtype);
/* Does it send all values to one group?  True: which one, "" any. */
bool ubb_routing_of_all(const struct ubb_routing *r, char *group, size_t size);

/* OPENINFO "TUXEDO/QM:<device>:<space>" (or ; as the last separator).  0, or -1: not of that form.  Sizes with NUL. */
int openinfo_split(const char *openinfo, char *device, size_t device_size, char *space, size_t space_size);

/* Endpoints in the run directory; the string is written into buf.  -1 when it does not fit. */
int ubb_bbl_endpoint(const struct ubb *u, char *buf, size_t size);		/* ipc://RUNDIR/bbl */
/* ipc://RUNDIR/GRPNO.SRVID */
int ubb_server_endpoint(const struct ubb *u, long grpno, long srvid, char *buf, size_t size);

/*
 * An MSSQ set: the servers of one group that have the same RQADDR, when there can be more than one of them.  Its queue is a process,
 * TMRQ.  id: the lowest SRVID of the entries, which names the set in its group.  Servers of ours that take nothing from a queue that
 * others read (TMQUEUE, TMQFORWARD, TMQAMQP) are in none.
 */
struct ubb_set { const struct ubb_group *group; const char *rqaddr; long id, rqperm; };
bool ubb_set_serves(const struct ubb_server *s);	/* it could be in one: it has RQADDR, and is none of those */
bool ubb_set_of(const struct ubb *u, const struct ubb_server *s, struct ubb_set *out);	/* false: it is in none */
bool ubb_set_find(const struct ubb *u, long grpno, long id, struct ubb_set *out);
int ubb_set_endpoint(const struct ubb *u, const struct ubb_set *set, char *buf, size_t size);	/* for callers: ipc://RUNDIR/GRPNO.IDq */
int ubb_set_members(const struct ubb *u, const struct ubb_set *set, char *buf, size_t size);	/* for members: ipc://RUNDIR/GRPNO.IDm */

/* Set the variables of an ENVFILE (NAME=value lines, # comments, $VAR and ${VAR} expanded).  0, or -1 and errno. */
int envfile_load(const char *path);

#endif
