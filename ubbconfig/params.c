/*
 * params - every section and parameter of a configuration.
 *
 * A row: name, type, range (of a number; the second figure is the most bytes of a string), default, flags, where it is
 * stored.  KEPT parameters have no effect here: they are checked, kept in TUXCONFIG and printed by tmunloadcf.
 */
#include <string.h>

#include "ubb_impl.h"

#define AT(type, field) (int)offsetof(struct type, field)
#define NUM(name, lo, hi, def, flags, where)	{ name, T_NUM, lo, hi, def, NULL, flags, where, NULL }
#define PERM(name, def, where)			{ name, T_PERM, 1, 0777, def, NULL, 0, where, NULL }
#define FLAG(name, words, def, flags, where)	{ name, T_FLAG, 0, 0, def, NULL, flags, where, words }
#define YN(name, def, where)			FLAG(name, "N|Y", def, 0, where)
#define ID(name, most, flags, where)		{ name, T_ID, 0, most, 0, NULL, flags, where, NULL }
#define IDS(name, most, flags, where)		{ name, T_IDS, 0, most, 0, NULL, flags, where, NULL }
#define STR(name, most, def, flags, where)	{ name, T_STR, 0, most, 0, def, flags, where, NULL }
#define ABSPATH(name, flags, where)		{ name, T_PATH, 0, 256, 0, NULL, flags, where, NULL }
#define CHOICE(name, words, def, where)		{ name, T_CHOICE, 0, 256, 0, def, 0, where, words }
#define WORDS(name, words, def, where)		{ name, T_WORDS, 0, 256, 0, def, 0, where, words }

#define BIG 2147483647L
#define ACCESS_WORDS "FASTPATH|PROTECTED|NO_OVERRIDE"
#define PRINCIPAL \
	STR("SEC_PRINCIPAL_NAME", 511, NULL, 0, KEPT), \
	STR("SEC_PRINCIPAL_LOCATION", 1023, NULL, 0, KEPT), \
	STR("SEC_PRINCIPAL_PASSVAR", 31, NULL, 0, KEPT)
#define REQUIRED_SECURITY \
	YN("SIGNATURE_REQUIRED", 0, KEPT), \
	YN("ENCRYPTION_REQUIRED", 0, KEPT)

#define R(field) AT(ubb_resources, field)
static const struct param_def resources[] = {
	NUM("IPCKEY", 32769, 262143, 0, P_REQUIRED, R(ipckey)),
	IDS("MASTER", 30, P_REQUIRED, R(master)),
	FLAG("MODEL", "SHM|MP", 0, P_REQUIRED, R(mp)),
	STR("DOMAINID", 30, NULL, 0, R(domainid)),
	NUM("UID", 0, BIG, UNSET, 0, R(uid)),
	NUM("GID", 0, BIG, UNSET, 0, R(gid)),
	PERM("PERM", 0666, R(perm)),
	NUM("MAXACCESSERS", 1, 32767, 50, 0, R(maxaccessers)),
	NUM("MAXSERVERS", 1, 8191, 50, 0, R(maxservers)),
	NUM("MAXSERVICES", 1, 1048575, 100, 0, R(maxservices)),
	NUM("MAXGROUPS", 100, 32765, 100, 0, R(maxgroups)),
	NUM("MAXQUEUES", 1, 8191, 50, 0, R(maxqueues)),
	NUM("MAXGTT", 0, 32767, 100, 0, R(maxgtt)),
	NUM("MAXCONV", 0, 32767, 64, 0, R(maxconv)),
	NUM("MAXBUFTYPE", 1, 32766, 16, 0, R(maxbuftype)),
	NUM("MAXBUFSTYPE", 1, 32766, 32, 0, R(maxbufstype)),
	WORDS("OPTIONS",
	    "LAN|MIGRATE|ACCSTATS|NO_AA|NO_XA|EXT_AA|RMOPTIONS|SSL|SINGLETON|ONEPC|TGIOV|DMCDE|EECS|EXALOGIC|RDMA|XPP",
	    NULL, R(options)),
	YN("LDBAL", 1, R(ldbal)),
	FLAG("CMTRET", "COMPLETE|LOGGED", 0, 0, R(cmtret_logged)),
	{ "SCANUNIT", T_SCANUNIT, 0, 0, 10000, NULL, 0, R(scanunit_ms), NULL },
	NUM("SANITYSCAN", 1, 32767, UNSET, 0, R(sanityscan)),
	NUM("BBLQUERY", 1, 32767, UNSET, 0, R(bblquery)),
	NUM("DBBLWAIT", 1, 32767, UNSET, 0, R(dbblwait)),
	NUM("BLOCKTIME", 1, 32767, UNSET, 0, R(blocktime)),
	WORDS("SYSTEM_ACCESS", ACCESS_WORDS, "FASTPATH", R(system_access)),
	CHOICE("SECURITY", "NONE|APP_PW|USER_AUTH|ACL|MANDATORY_ACL", "NONE", R(security)),
	STR("AUTHSVC", 127, NULL, 0, R(authsvc)),
	CHOICE("NOTIFY", "DIPIN|SIGNAL|THREAD|IGNORE", NULL, KEPT),
	CHOICE("USIGNAL", "SIGUSR1|SIGUSR2", NULL, KEPT),
	NUM("MAXMACHINES", 256, 8191, 0, 0, KEPT),
	NUM("MAXNETGROUPS", 1, 8192, 0, 0, KEPT),
	NUM("MAXACLGROUPS", 1, 16384, 0, 0, KEPT),
	NUM("MAXDRT", 0, 32767, 0, 0, KEPT),
	NUM("MAXRFT", 0, 32767, 0, 0, KEPT),
	NUM("MAXRTDATA", 0, 32767, 0, 0, KEPT),
	NUM("MAXSPDATA", 0, BIG, 0, 0, KEPT),
	NUM("MAXTRANTIME", 0, BIG, 0, 0, KEPT),
	NUM("MAXINTERFACES", 0, 32767, 0, 0, KEPT),
	NUM("MAXOBJECTS", 0, 32767, 0, 0, KEPT),
	NUM("MAXCACHE", 0, BIG, 0, 0, KEPT),
	NUM("SIGNATURE_AHEAD", 1, BIG, 0, 0, KEPT),
	NUM("SIGNATURE_BEHIND", 1, BIG, 0, 0, KEPT),
	REQUIRED_SECURITY,
	PRINCIPAL,
	STR("COMPONENTS", 256, NULL, 0, KEPT),
	YN("SSL_RENEGOTIATION", 0, KEPT),
};

#define M(field) AT(ubb_machine, field)
static const struct param_def machines[] = {
	ID("LMID", 30, P_REQUIRED, M(lmid)),
	ABSPATH("TUXCONFIG", P_REQUIRED, M(tuxconfig)),
	ABSPATH("TUXDIR", P_REQUIRED, M(tuxdir)),
	ABSPATH("APPDIR", P_REQUIRED, M(appdir)),
	ABSPATH("TLOGDEVICE", 0, M(tlogdevice)),
	STR("TLOGNAME", 30, "TLOG", 0, M(tlogname)),
	NUM("TLOGSIZE", 1, 2048, 100, 0, M(tlogsize)),
	NUM("TLOGOFFSET", 0, BIG, 0, 0, M(tlogoffset)),
	STR("ULOGPFX", 300, NULL, 0, M(ulogpfx)),
	STR("ENVFILE", 256, NULL, 0, M(envfile)),
	NUM("UID", 0, BIG, UNSET, 0, M(uid)),
	NUM("GID", 0, BIG, UNSET, 0, M(gid)),
	PERM("PERM", UNSET, M(perm)),
	NUM("MAXACCESSERS", 1, 32767, UNSET, 0, M(maxaccessers)),
	NUM("MAXGTT", 0, 32767, UNSET, 0, M(maxgtt)),
	NUM("MAXWSCLIENTS", 0, 32767, 0, 0, M(maxwsclients)),
	NUM("MAXCONV", 0, 32767, 0, 0, KEPT),
	NUM("MAXACLCACHE", 10, 32000, 0, 0, KEPT),
	NUM("MAXPENDINGBYTES", 100000, BIG, 0, 0, KEPT),
	NUM("MAXRTDATA", 0, 32767, 0, 0, KEPT),
	NUM("MAXSPDATA", 0, BIG, 0, 0, KEPT),
	NUM("MAXOBJECTS", 0, 32767, 0, 0, KEPT),
	STR("TYPE", 15, NULL, 0, KEPT),
	NUM("TUXOFFSET", 0, BIG, 0, 0, KEPT),
	NUM("SPINCOUNT", 0, BIG, 0, 0, KEPT),
	STR("CMPLIMIT", 64, NULL, 0, KEPT),
	NUM("NETLOAD", 0, 32767, 0, 0, KEPT),
	WORDS("SYSTEM_ACCESS", ACCESS_WORDS, NULL, KEPT),
	REQUIRED_SECURITY,
	PRINCIPAL,
};

#define G(field) AT(ubb_group, field)
static const struct param_def groups[] = {
	IDS("LMID", 30, P_REQUIRED, G(lmid)),
	NUM("GRPNO", 1, 29999, 0, P_REQUIRED, G(grpno)),
	STR("TMSNAME", 256, NULL, P_NONE, G(tmsname)),
	NUM("TMSCOUNT", 0, 10, 3, 0, G(tmscount)),
	STR("OPENINFO", 256, NULL, P_NONE, G(openinfo)),
	STR("CLOSEINFO", 256, NULL, P_NONE, G(closeinfo)),
	STR("ENVFILE", 256, NULL, 0, G(envfile)),
	REQUIRED_SECURITY,
	PRINCIPAL,
};

#define S(field) AT(ubb_server, field)
static const struct param_def servers[] = {
	ID("SRVGRP", 30, P_REQUIRED, S(srvgrp)),
	NUM("SRVID", 1, 30000, 0, P_REQUIRED, S(srvid)),
	NUM("MIN", 1, 1000, 1, 0, S(min)),
	NUM("MAX", 1, 1000, UNSET, 0, S(max)),
	STR("CLOPT", 1024, "-A", 0, S(clopt)),
	YN("CONV", 0, S(conv)),
	YN("RESTART", 0, S(restart)),
	NUM("MAXGEN", 1, 255, 1, 0, S(maxgen)),
	NUM("GRACE", 0, BIG, 86400, 0, S(grace)),
	STR("RCMD", 256, NULL, 0, S(rcmd)),
	YN("REPLYQ", 0, S(replyq)),
	STR("RQADDR", 30, NULL, 0, S(rqaddr)),
	PERM("RQPERM", 0666, S(rqperm)),
	PERM("RPPERM", 0666, S(rpperm)),
	NUM("SEQUENCE", 1, 9999, 0, P_ZERO_ABSENT, S(sequence)),
	STR("ENVFILE", 256, NULL, 0, S(envfile)),
	NUM("MINDISPATCHTHREADS", 0, 1000, 0, 0, S(mindispatchthreads)),
	NUM("MAXDISPATCHTHREADS", 0, 1000, 0, 0, S(maxdispatchthreads)),
	NUM("THREADSTACKSIZE", 0, BIG, 0, 0, S(threadstacksize)),
	WORDS("SYSTEM_ACCESS", ACCESS_WORDS, NULL, KEPT),
	CHOICE("CONCURR_STRATEGY", "PER_REQUEST|PER_OBJECT", NULL, KEPT),
	STR("SICACHEENTRIESMAX", 32, NULL, 0, KEPT),
	NUM("MAXEJBCACHE", 0, BIG, 0, 0, KEPT),
	NUM("MAXQUEUELEN", 0, BIG, 0, 0, KEPT),
	STR("CLASSPATH", 1024, NULL, 0, KEPT),
	PRINCIPAL,
};

#define V(field) AT(ubb_service, field)
static const struct param_def services[] = {
	ID("SRVGRP", 30, 0, V(srvgrp)),
	NUM("LOAD", 1, 32767, 50, 0, V(load)),
	NUM("PRIO", 1, 100, 50, 0, V(prio)),
	STR("BUFTYPE", 256, "ALL", 0, V(buftype)),
	YN("AUTOTRAN", 0, V(autotran)),
	NUM("TRANTIME", 0, BIG, 30, 0, V(trantime)),
	ID("ROUTING", 30, 0, V(routing)),
	NUM("SVCTIMEOUT", 0, BIG, 0, 0, V(svctimeout)),
	NUM("BLOCKTIME", 0, 32767, 0, 0, V(blocktime)),
	STR("BUFTYPECONV", 64, NULL, 0, KEPT),
	NUM("MAXTRANTIME", 0, BIG, 0, 0, KEPT),
	STR("CACHING", 64, NULL, 0, KEPT),
	STR("SESSIONROLE", 30, NULL, 0, KEPT),
	REQUIRED_SECURITY,
};

#define C(field) AT(ubb_routing, field)
static const struct param_def routings[] = {
	STR("FIELD", 256, NULL, P_REQUIRED, C(field)),
	CHOICE("FIELDTYPE", "CHAR|SHORT|LONG|FLOAT|DOUBLE|STRING", NULL, C(fieldtype)),
	STR("RANGES", 4096, NULL, P_REQUIRED, C(ranges)),
	STR("BUFTYPE", 256, NULL, P_REQUIRED, C(buftype)),
	CHOICE("TYPE", "SERVICE|FACTORY", NULL, KEPT),
};

#define N(field) AT(ubb_net, field)
static const struct param_def nets[] = {
	STR("NADDR", 256, NULL, P_REQUIRED, N(naddr)),
	STR("NLSADDR", 256, NULL, 0, N(nlsaddr)),
	ID("NETGROUP", 30, 0, N(netgroup)),
	STR("BRIDGE", 78, NULL, 0, KEPT),
	STR("FADDR", 256, NULL, 0, KEPT),
	NUM("FRANGE", 1, 65535, 0, 0, KEPT),
	NUM("MINENCRYPTBITS", 0, 256, 0, 0, KEPT),
	NUM("MAXENCRYPTBITS", 0, 256, 0, 0, KEPT),
};

static const struct param_def netgroups[] = {
	NUM("NETGRPNO", 0, 8192, 0, P_REQUIRED, AT(ubb_netgroup, netgrpno)),
	NUM("NETPRIO", 1, 8192, 100, 0, AT(ubb_netgroup, netprio)),
};

#define TABLE(array) sizeof array / sizeof *array, array
#define ENTRIES(type, key_field, count, array) \
	offsetof(struct type, key_field), sizeof(struct type), offsetof(struct type, extras), \
	offsetof(struct ubb, count), offsetof(struct ubb, array)

const struct section_def ubb_sections[N_SECTIONS] = {
	[S_RESOURCES] = { "RESOURCES", "resources", NULL, "parameter", 0, 0, sizeof(struct ubb_resources),
	    offsetof(struct ubb_resources, extras), 0, offsetof(struct ubb, res), TABLE(resources) },
	[S_MACHINES] = { "MACHINES", "machines", "ADDRESS", "machine", 78,
	    ENTRIES(ubb_machine, address, n_machines, machines), TABLE(machines) },
	[S_GROUPS] = { "GROUPS", "groups", "NAME", "group", 30,
	    ENTRIES(ubb_group, name, n_groups, groups), TABLE(groups) },
	[S_NETGROUPS] = { "NETGROUPS", "netgroups", "NAME", "network group", 30,
	    ENTRIES(ubb_netgroup, name, n_netgroups, netgroups), TABLE(netgroups) },
	[S_NETWORK] = { "NETWORK", "network", "LMID", "network entry", 30,
	    ENTRIES(ubb_net, lmid, n_nets, nets), TABLE(nets) },
	[S_SERVERS] = { "SERVERS", "servers", "AOUT", "server", 256,
	    ENTRIES(ubb_server, aout, n_servers, servers), TABLE(servers) },
	[S_SERVICES] = { "SERVICES", "services", "NAME", "service", 127,
	    ENTRIES(ubb_service, name, n_services, services), TABLE(services) },
	[S_ROUTING] = { "ROUTING", "routing", "NAME", "routing criterion", 30,
	    ENTRIES(ubb_routing, name, n_routings, routings), TABLE(routings) },
};

const struct param_def *
param_find(const struct section_def *s, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < s->n_params; i++)
		if (strncmp(s->params[i].name, name, len) == 0 && s->params[i].name[len] == '\0')
			return &s->params[i];
	return NULL;
}

size_t
ubb_count(const struct ubb *u, enum section s)
{
	return s == S_RESOURCES ? 1 : *(size_t *)ubb_field(u, ubb_sections[s].count_offset);
}

void *
ubb_record(const struct ubb *u, enum section s, size_t i)
{
	const struct section_def *d = &ubb_sections[s];

	if (s == S_RESOURCES)
		return ubb_field(u, d->array_offset);
	return *(char **)ubb_field(u, d->array_offset) + i * d->record_size;
}

struct ubb_extras *
ubb_extras_of(enum section s, const void *record)
{
	return ubb_field(record, ubb_sections[s].extras_offset);
}
