/*
 * check - what no single parameter can tell: references, duplicates, products, and the rules of queue groups.
 */
#include <stdlib.h>
#include <string.h>

#include "ubb_impl.h"

struct checker { const struct ubb *u; const struct raw *r; struct problems *ps; };

static const struct raw_entry *
raw_of(const struct checker *c, enum section s, size_t i)
{
	return &c->r->section[s].entry[i];
}

/* --- the same thing twice.  Sorted indexes: a file may have 10^5 servers. --- */
struct seen { const char *name, *in; long first, last; size_t index; };

static int
by_name(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;
	int d = strcmp(a->in, b->in);

	if (d == 0)
		d = strcmp(a->name, b->name);
	if (d == 0)
		d = (a->first > b->first) - (a->first < b->first);
	return d ? d : (a->index > b->index) - (a->index < b->index);
}

static struct seen *
seen_alloc(struct checker *c, size_t n)
{
	struct seen *s = calloc(n ? n : 1, sizeof *s);

	if (s == NULL)
		problem_error(c->ps, (struct place){ .line = 1, .column = 1 }, "no memory to check the file");
	return s;
}

/* v: one for each entry that counts.  param NULL: the entry's own name. */
static void
report_twins(struct checker *c, enum section s, const char *param, const char *what, struct seen *v, size_t n)
{
	size_t i, a, b, first = 0;
	struct place at, before;

	if (n > 1)
		qsort(v, n, sizeof *v, by_name);
	for (i = 1; i < n; i++) {
		if (strcmp(v[i].in, v[first].in) != 0 || strcmp(v[i].name, v[first].name) != 0) {
			first = i;
			continue;
		}
		a = v[first].index < v[i].index ? v[first].index : v[i].index;
		b = v[first].index < v[i].index ? v[i].index : v[first].index;
		before = param ? raw_place(raw_of(c, s, a), param) : raw_of(c, s, a)->at;
		at = param ? raw_place(raw_of(c, s, b), param) : raw_of(c, s, b)->at;
		problem_error(c->ps, at, "%s %.80s%s%.40s is given again; it is given first at line %d, column %d",
		    what, v[i].name, *v[i].in ? " of group " : "", v[i].in, before.line, before.column);
	}
}

static void
names_once(struct checker *c, enum section s, const char *param, const char *what, size_t field, size_t in_field)
{
	size_t i, n = 0, count = ubb_count(c->u, s);
	struct seen *v = seen_alloc(c, count);

	for (i = 0; v != NULL && i < count; i++) {
		const void *record = ubb_record(c->u, s, i);

		if (param == NULL || raw_given(raw_of(c, s, i), param))
			v[n++] = (struct seen){ .name = *(char **)ubb_field(record, field), .index = i,
			    .in = in_field ? *(char **)ubb_field(record, in_field) : "" };
	}
	if (v != NULL)
		report_twins(c, s, param, what, v, n);
	free(v);
}

/* Two entries of the group section with one number. */
static void
group_numbers_once(struct checker *c)
{
	const struct ubb *u = c->u;
	static const int most = 30000;
	size_t *first = calloc((size_t)most, sizeof *first), i;

	for (i = 0; first != NULL && i < u->n_groups; i++) {
		long no = u->groups[i].grpno;
		struct place before;

		if (!raw_given(raw_of(c, S_GROUPS, i), "GRPNO") || no >= most)
			continue;
		if (first[no] == 0) {
			first[no] = i + 1;
			continue;
		}
		before = raw_place(raw_of(c, S_GROUPS, first[no] - 1), "GRPNO");
		problem_error(c->ps, raw_place(raw_of(c, S_GROUPS, i), "GRPNO"),
		    "GRPNO %ld is given again; group %s has it at line %d, column %d", no,
		    u->groups[first[no] - 1].name, before.line, before.column);
	}
	free(first);
}

/* SRVID .. SRVID+MAX-1 of a server are its own in its group. */
static void
server_ids_once(struct checker *c)
{
	const struct ubb *u = c->u;
	size_t i, n = 0, last = 0;
	struct seen *v = seen_alloc(c, u->n_servers);

	for (i = 0; v != NULL && i < u->n_servers; i++) {
		const struct ubb_server *s = &u->servers[i];

		if (raw_given(raw_of(c, S_SERVERS, i), "SRVID") && raw_given(raw_of(c, S_SERVERS, i), "SRVGRP"))
			v[n++] = (struct seen){ .name = "",
				.in = s->srvgrp,
				.first = s->srvid,
				.last = s->srvid + s->max - 1,
				.index = i };
	}
	if (v != NULL && n > 1)
		qsort(v, n, sizeof *v, by_name);
	for (i = 1; i < n; i++) {
		const struct seen *a = &v[last], *b = &v[i];
		struct place before;

		if (strcmp(a->in, b->in) == 0 && b->first <= a->last) {
			if (a->index > b->index) {
				a = &v[i];
				b = &v[last];
			}
			before = raw_place(raw_of(c, S_SERVERS, a->index), "SRVID");
			problem_error(c->ps, raw_place(raw_of(c, S_SERVERS, b->index), "SRVID"),
			    "SRVID %ld to %ld (SRVID to SRVID+MAX-1) of group %.40s meets %ld to %ld of %.60s at line "
			    "%d, column %d",
			    b->first, b->last, b->in, a->first, a->last, u->servers[a->index].aout, before.line,
			    before.column);
		}
		if (strcmp(v[last].in, v[i].in) != 0 || v[i].last > v[last].last)
			last = i;
	}
	free(v);
}

/* --- references --- */
static bool
lmid_known(const struct checker *c, const char *lmid)
{
	return *lmid == '\0' || c->u->n_machines == 0 || ubb_machine_by_lmid(c->u, lmid) != NULL;
}

static void
lmid_refers(struct checker *c, const struct raw_entry *e, const char *const *lmid, size_t n, const char *param)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!lmid_known(c, lmid[i]))
			problem_error(c->ps, param ? raw_place(e, param) : e->at,
			    "%s is \"%s\"; allowed is an LMID of *MACHINES, the first is %s",
			    param ? param : "the name of a network entry", lmid[i], c->u->machines[0].lmid);
}

static void
group_refers(struct checker *c, const struct raw_entry *e, const char *name)
{
	const struct ubb *u = c->u;

	if (!raw_given(e, "SRVGRP") || ubb_group_by_name(u, name) != NULL)
		return;
	problem_error(c->ps, raw_place(e, "SRVGRP"),
	    u->n_groups ? "SRVGRP is \"%s\"; allowed is a group of *GROUPS, the first is %s"
			: "SRVGRP is \"%s\"; *GROUPS has no group%s",
	    name, u->n_groups ? u->groups[0].name : "");
}

static void
references(struct checker *c)
{
	const struct ubb *u = c->u;
	const struct raw_section *r = c->r->section;
	size_t i, j;

	if (r[S_RESOURCES].n > 0)
		lmid_refers(c, r[S_RESOURCES].entry, (const char *const *)u->res.master, 2, "MASTER");
	for (i = 0; i < u->n_groups; i++)
		lmid_refers(c, raw_of(c, S_GROUPS, i), (const char *const *)u->groups[i].lmid, 2, "LMID");
	for (i = 0; i < u->n_nets; i++)
		lmid_refers(c, raw_of(c, S_NETWORK, i), (const char *const *)&u->nets[i].lmid, 1, NULL);
	for (i = 0; i < u->n_servers; i++)
		group_refers(c, raw_of(c, S_SERVERS, i), u->servers[i].srvgrp);
	for (i = 0; i < u->n_services; i++) {
		group_refers(c, raw_of(c, S_SERVICES, i), u->services[i].srvgrp);
		if (*u->services[i].routing == '\0')
			continue;
		for (j = 0; j < u->n_routings && strcmp(u->routings[j].name, u->services[i].routing) != 0; j++)
			;
		if (j == u->n_routings)
			problem_error(c->ps, raw_place(raw_of(c, S_SERVICES, i), "ROUTING"),
			    "ROUTING is \"%s\"; *ROUTING has no such criterion", u->services[i].routing);
	}
}

/* --- numbers that depend on others --- */
static void
scan_product(struct checker *c, const char *name, long scans)
{
	const struct raw_entry *e = c->r->section[S_RESOURCES].entry;
	long most = 32767000 / c->u->res.scanunit_ms;

	if (raw_given(e, name) && scans > most)
		problem_error(c->ps, raw_place(e, name),
		    "%s is %ld times SCANUNIT; with this SCANUNIT allowed are 1 to %ld (32767 seconds)", name, scans,
		    most);
}

static void
resources_agree(struct checker *c)
{
	const struct ubb *u = c->u;
	const struct raw_section *r = c->r->section;
	const struct raw_entry *e;
	size_t i;

	if (r[S_RESOURCES].n == 0)
		return;
	e = r[S_RESOURCES].entry;
	scan_product(c, "SANITYSCAN", u->res.sanityscan);
	scan_product(c, "BBLQUERY", u->res.bblquery);
	scan_product(c, "DBBLWAIT", u->res.dbblwait);
	scan_product(c, "BLOCKTIME", u->res.blocktime);
	if (*u->res.master[1] && strcmp(u->res.master[0], u->res.master[1]) == 0)
		problem_error(c->ps, raw_place(e, "MASTER"), "MASTER names \"%s\" twice; the backup is another machine",
		    u->res.master[0]);
	if (raw_given(e, "MODEL") && !u->res.mp && u->n_machines > 1)
		problem_error(
		    c->ps, raw_of(c, S_MACHINES, 1)->at, "MODEL is SHM, which is one machine; this is the second one");
	if (u->n_groups > (size_t)u->res.maxgroups)
		problem_error(c->ps, raw_place(e, "MAXGROUPS"), "MAXGROUPS is %ld; *GROUPS has %zu", u->res.maxgroups,
		    u->n_groups);
	for (i = 0; i < u->n_groups; i++)
		if (u->groups[i].tmscount == 1)
			problem_error(c->ps, raw_place(raw_of(c, S_GROUPS, i), "TMSCOUNT"),
			    "TMSCOUNT is 1; allowed are 0 and 2 to 10");
}

/* --- servers --- */
static const char *
basename_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_program(const char *path, const char *name) { return strcmp(basename_of(path), name) == 0; }

/* The next word of a CLOPT; false at the end. */
static bool
next_word(const char **p, char *word, size_t size)
{
	size_t n;

	*p += strspn(*p, " \t");
	if ((n = strcspn(*p, " \t")) == 0)
		return false;
	snprintf(word, size, "%.*s", (int)n, *p);
	*p += n;
	return true;
}

/* What TMQFORWARD demands before it can boot. */
static void
forwarder(struct checker *c, const struct ubb_server *s, const struct raw_entry *e)
{
	const char *p = s->clopt, *letter;
	char word[1100], argument[1100];
	bool own = false, queues = false, services = false;

	while (next_word(&p, word, sizeof word)) {
		if (!own && strcmp(word, "--") == 0)
			own = true;
		else if (word[0] == '-' && !own)
			services |= word[1] == 's';
		else if (word[0] == '-')		/* like getopt: flags in one word, an argument joined or next */
			for (letter = word + 1; *letter; letter++)
				if (strchr("qtifb", *letter) != NULL) {
					bool has_argument =
					    letter[1] != '\0' || next_word(&p, argument, sizeof argument);

					queues |= *letter == 'q' && has_argument;
					break;
				}
	}
	if (!queues)
		problem_error(c->ps, raw_place(e, "CLOPT"),
		    "CLOPT of TMQFORWARD is \"%.80s\"; it must name queues: \"-- -q queue[,queue...]\"", s->clopt);
	if (services)
		problem_error(
		    c->ps, raw_place(e, "CLOPT"), "CLOPT of TMQFORWARD has -s; TMQFORWARD offers no services");
	if (s->replyq)
		problem_error(c->ps, raw_place(e, "REPLYQ"), "REPLYQ of TMQFORWARD is Y; allowed is N");
	if (*s->rqaddr && s->max > 1)
		problem_error(c->ps, raw_place(e, "RQADDR"),
		    "RQADDR \"%s\" would be shared by %ld TMQFORWARD; each needs its own", s->rqaddr, s->max);
}

static void
forwarders_share_no_queue(struct checker *c)
{
	const struct ubb *u = c->u;
	size_t i, n = 0;
	struct seen *v = seen_alloc(c, u->n_servers);

	for (i = 0; v != NULL && i < u->n_servers; i++)
		if (*u->servers[i].rqaddr)
			v[n++] = (struct seen){ .name = u->servers[i].rqaddr, .in = "", .index = i };
	if (v != NULL && n > 1)
		qsort(v, n, sizeof *v, by_name);
	for (i = 1; i < n; i++) {
		size_t a = v[i - 1].index, b = v[i].index;

		if (strcmp(v[i].name, v[i - 1].name) != 0)
			continue;
		if (!is_program(u->servers[b].aout, "TMQFORWARD") && is_program(u->servers[a].aout, "TMQFORWARD")) {
			a = v[i].index;
			b = v[i - 1].index;
		}
		if (is_program(u->servers[b].aout, "TMQFORWARD"))
			problem_error(c->ps, raw_place(raw_of(c, S_SERVERS, b), "RQADDR"),
			    "RQADDR \"%s\" of TMQFORWARD is also that of %s at line %d; TMQFORWARD cannot share a "
			    "request queue",
			    v[i].name, u->servers[a].aout, raw_of(c, S_SERVERS, a)->at.line);
	}
	free(v);
}

/* Tuxedo's manual wants one group and one program for a shared queue; files that have it otherwise are taken, and told what happens. */
static void
shared_queue_agrees(struct checker *c, size_t a, size_t b)
{
	const struct ubb_server *first = &c->u->servers[a], *second = &c->u->servers[b];
	struct place at = raw_place(raw_of(c, S_SERVERS, b), "RQADDR");
	struct ubb_set set;

	if (!ubb_set_serves(first) || !ubb_set_serves(second))
		return;
	if (strcmp(first->srvgrp, second->srvgrp) != 0)
		problem_warning(c->ps, at, "RQADDR \"%s\" is also given in group %s at line %d; servers of two groups share no queue: "
		    "each group has one of this name", second->rqaddr, first->srvgrp, raw_of(c, S_SERVERS, a)->at.line);
	else if (strcmp(first->aout, second->aout) != 0 && ubb_set_of(c->u, second, &set))
		problem_warning(c->ps, at, "RQADDR \"%s\" is shared by %s and, at line %d, by %s; a request goes to servers that offer its "
		    "service", second->rqaddr, second->aout, raw_of(c, S_SERVERS, a)->at.line, first->aout);
}

static void
shared_queues(struct checker *c)
{
	const struct ubb *u = c->u;
	size_t i, n = 0;
	struct seen *v = seen_alloc(c, u->n_servers);

	for (i = 0; v != NULL && i < u->n_servers; i++)
		if (*u->servers[i].rqaddr)
			v[n++] = (struct seen){ .name = u->servers[i].rqaddr, .in = "", .index = i };
	if (v != NULL && n > 1)
		qsort(v, n, sizeof *v, by_name);
	for (i = 1; i < n; i++)
		if (strcmp(v[i].name, v[i - 1].name) == 0)
			shared_queue_agrees(c, v[i - 1].index, v[i].index);
	free(v);
}

static void
servers_agree(struct checker *c)
{
	const struct ubb *u = c->u;
	size_t i;

	for (i = 0; i < u->n_servers; i++) {
		const struct ubb_server *s = &u->servers[i];
		const struct raw_entry *e = raw_of(c, S_SERVERS, i);
		const struct ubb_group *g = ubb_group_by_name(u, s->srvgrp);
		bool forwards = is_program(s->aout, "TMQFORWARD");

		if (s->max < s->min)
			problem_error(c->ps, raw_place(e, "MAX"), "MAX is %ld and MIN is %ld; allowed are %ld to 1000",
			    s->max, s->min, s->min);
		if (s->srvid + s->max - 1 > 30000)
			problem_error(c->ps, raw_place(e, "SRVID"),
			    "SRVID %ld with MAX %ld reaches %ld; allowed are 1 to 30000", s->srvid, s->max,
			    s->srvid + s->max - 1);
		if (s->maxdispatchthreads > 0 && s->mindispatchthreads > s->maxdispatchthreads)
			problem_error(c->ps, raw_place(e, "MINDISPATCHTHREADS"),
			    "MINDISPATCHTHREADS is %ld; allowed are 0 to %ld, MAXDISPATCHTHREADS",
			    s->mindispatchthreads, s->maxdispatchthreads);
		if (forwards)
			forwarder(c, s, e);
		if (g != NULL && (forwards || is_program(s->aout, "TMQUEUE")) && !is_program(g->tmsname, "TMS_QM"))
			problem_error(c->ps, e->at,
			    "%s needs a group with TMSNAME=TMS_QM; group %s at line %d has %s%s", basename_of(s->aout),
			    g->name, raw_of(c, S_GROUPS, (size_t)(g - u->groups))->at.line,
			    *g->tmsname ? "TMSNAME=" : "no TMSNAME", g->tmsname);
	}
	forwarders_share_no_queue(c);
	shared_queues(c);
}

/* A group with TMS_QM is one queue space. */
static void
queue_groups(struct checker *c)
{
	const struct ubb *u = c->u;
	const char *no_xa = strstr(u->res.options, "NO_XA");
	char device[257], space[257];
	size_t i;

	for (i = 0; i < u->n_groups; i++) {
		const struct ubb_group *g = &u->groups[i];
		const struct raw_entry *e = raw_of(c, S_GROUPS, i);

		if (!is_program(g->tmsname, "TMS_QM"))
			continue;
		if (*g->openinfo == '\0')
			problem_error(c->ps, e->at,
			    "group %s has TMSNAME=TMS_QM and no OPENINFO; it must be \"TUXEDO/QM:<device>:<queue "
			    "space>\"",
			    g->name);
		else if (openinfo_split(g->openinfo, device, sizeof device, space, sizeof space) != 0)
			problem_error(c->ps, raw_place(e, "OPENINFO"),
			    "OPENINFO is \"%.120s\"; in a group with TMSNAME=TMS_QM allowed is "
			    "\"TUXEDO/QM:<device>:<queue space>\"",
			    g->openinfo);
		else if (*device != '/' && strchr(device, ':') == NULL)
			problem_error(c->ps, raw_place(e, "OPENINFO"),
			    "the device \"%s\" in OPENINFO is not an absolute path", device);
		if (no_xa != NULL) {
			problem_error(c->ps, raw_place(c->r->section[S_RESOURCES].entry, "OPTIONS"),
			    "OPTIONS has NO_XA, but group %s at line %d has TMSNAME=TMS_QM; queues need transactions",
			    g->name, e->at.line);
			no_xa = NULL;
		}
	}
}

static void
sections_present(struct checker *c)
{
	static const enum section wanted[] = { S_RESOURCES, S_MACHINES, S_GROUPS, S_SERVERS, S_SERVICES };
	struct place at = { .line = 1, .column = 1 };
	size_t i;

	for (i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		const struct raw_section *r = &c->r->section[wanted[i]];
		const char *name = ubb_sections[wanted[i]].name;

		if (!r->seen && wanted[i] <= S_MACHINES)
			problem_error(c->ps, at, "section *%s is missing; it is required", name);
		else if (!r->seen)
			problem_warning(c->ps, at, "section *%s is missing", name);
		else if (wanted[i] == S_MACHINES && r->n == 0)
			problem_error(c->ps, r->at, "*MACHINES has no machine; at least one is required");
	}
	if (c->u->res.mp && strstr(c->u->res.options, "LAN") != NULL && !c->r->section[S_NETWORK].seen)
		problem_warning(c->ps, at, "section *NETWORK is missing; OPTIONS has LAN");
}

void
check(const struct ubb *u, const struct raw *r, struct problems *ps)
{
	struct checker c = { .u = u, .r = r, .ps = ps };

	sections_present(&c);
	resources_agree(&c);
	names_once(&c, S_MACHINES, "LMID", "LMID", offsetof(struct ubb_machine, lmid), 0);
	names_once(&c, S_MACHINES, NULL, "machine", offsetof(struct ubb_machine, address), 0);
	names_once(&c, S_GROUPS, NULL, "group", offsetof(struct ubb_group, name), 0);
	group_numbers_once(&c);
	server_ids_once(&c);
	names_once(
	    &c, S_SERVICES, NULL, "service", offsetof(struct ubb_service, name), offsetof(struct ubb_service, srvgrp));
	names_once(&c, S_NETGROUPS, NULL, "network group", offsetof(struct ubb_netgroup, name), 0);
	references(&c);
	routing_check(c.u, c.r, c.ps);
	servers_agree(&c);
	queue_groups(&c);
}
