/*
 * The file, version 2:
 *
 *	atmiq-bbl TAB 2 TAB boot id
 *	tuxconfig TAB path
 *	server TAB group TAB srvid TAB pid TAB start time TAB generation TAB restarts TAB flags TAB grace begin TAB back-off
 *	service TAB name TAB function			of the server above
 *	tmrq TAB group TAB id TAB pid TAB start time	the request queue of a set
 *	end
 *
 * flags: letters, t a TMS that BBL plays, r ready, s being stopped, - none.  grace begin: us of the monotonic clock, the first
 * of the restarts that are counted; back-off: milliseconds of the last pause before a restart.  Version 1, which is read too,
 * ended a server's line with the flags.
 */
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"
#include "sets.h"

static void
server_print(const struct server *s, FILE *f)
{
	bool tms = server_is_tms(s), ready = s->state == SERVER_READY || s->state == SERVER_DOWN || s->was_ready;

	fprintf(f, "server\t%s\t%ld\t%ld\t%llu\t%ld\t%ld\t%s%s%s-\t%lld\t%ld\n", s->group, s->srvid, (long)s->pid, s->start_time,
	    s->generation, s->restarts, tms ? "t" : "", ready ? "r" : "", s->state == SERVER_STOPPING ? "s" : "",
	    (long long)s->grace_begin_us, s->backoff_ms);
	for (size_t i = 0; i < s->n_offers; i++)
		if (strpbrk(s->offers[i].service, "\t\n") == NULL && strpbrk(s->offers[i].function, "\t\n") == NULL)
			fprintf(f, "service\t%s\t%s\n", s->offers[i].service, s->offers[i].function);
}

int
state_write(const struct registry *r, const struct rqset *sets, const char *tuxconfig, const char *path)
{
	char tmp[1024];
	FILE *f;
	int bad;

	if (snprintf(tmp, sizeof tmp, "%s.new", path) >= (int)sizeof tmp) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if ((f = fopen(tmp, "we")) == NULL)
		return -1;
	fprintf(f, "atmiq-bbl\t2\t%s\ntuxconfig\t%s\n", proc_boot_id(), tuxconfig);
	for (size_t i = 0; i < r->n_servers; i++)
		server_print(r->servers[i], f);
	for (const struct rqset *q = sets; q != NULL; q = q->next)
		if (q->pid != 0)
			fprintf(f, "tmrq\t%s\t%ld\t%ld\t%llu\n", q->group, q->id, (long)q->pid, q->start_time);
	fprintf(f, "end\n");
	bad = ferror(f);
	if (fclose(f) != 0 || bad || rename(tmp, path) != 0) {
		(void)unlink(tmp);
		return -1;
	}
	return 0;
}

/* Split at tabs in place; how many fields. */
static size_t
fields(char *line, char **v, size_t max)
{
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *p = line; p != NULL && n < max;)
		v[n++] = strsep(&p, "\t");
	return n;
}

static int
server_take(struct state *s, char **v, size_t n)
{
	struct state_server *p = realloc(s->servers, (s->n + 1) * sizeof *p);

	if (p == NULL)
		return -1;
	s->servers = p;
	p = &s->servers[s->n++];
	memset(p, 0, sizeof *p);
	snprintf(p->group, sizeof p->group, "%s", v[1]);
	p->srvid = strtol(v[2], NULL, 10);
	p->pid = (pid_t)strtol(v[3], NULL, 10);
	p->start_time = strtoull(v[4], NULL, 10);
	p->generation = strtol(v[5], NULL, 10);
	p->restarts = strtol(v[6], NULL, 10);
	p->tms = strchr(v[7], 't') != NULL;
	p->was_ready = strchr(v[7], 'r') != NULL;
	p->stopping = strchr(v[7], 's') != NULL;
	p->grace_begin_us = n == 10 ? strtoll(v[8], NULL, 10) : 0;
	p->backoff_ms = n == 10 ? strtol(v[9], NULL, 10) : 0;
	return 0;
}

static int
service_take(struct state *s, char **v)
{
	struct state_server *p = s->n > 0 ? &s->servers[s->n - 1] : NULL;
	struct offer *o;

	if (p == NULL || (o = realloc(p->offers, (p->n_offers + 1) * sizeof *o)) == NULL)
		return -1;
	p->offers = o;
	o = &p->offers[p->n_offers++];
	memset(o, 0, sizeof *o);
	snprintf(o->service, sizeof o->service, "%s", v[1]);
	snprintf(o->function, sizeof o->function, "%s", v[2]);
	return 0;
}

static int
set_take(struct state *s, char **v)
{
	struct state_set *p = realloc(s->sets, (s->n_sets + 1) * sizeof *p);

	if (p == NULL)
		return -1;
	s->sets = p;
	p = &s->sets[s->n_sets++];
	memset(p, 0, sizeof *p);
	snprintf(p->group, sizeof p->group, "%s", v[1]);
	p->id = strtol(v[2], NULL, 10);
	p->pid = (pid_t)strtol(v[3], NULL, 10);
	p->start_time = strtoull(v[4], NULL, 10);
	return 0;
}

static int	/* 1: a good line; 0: the last one; -1: bad */
line_take(struct state *s, char *line)
{
	char *v[10];
	size_t n = fields(line, v, 10);

	if (n == 1 && strcmp(v[0], "end") == 0)
		return 0;
	if (n == 2 && strcmp(v[0], "tuxconfig") == 0)
		return snprintf(s->tuxconfig, sizeof s->tuxconfig, "%s", v[1]) < (int)sizeof s->tuxconfig ? 1 : -1;
	if ((n == 8 || n == 10) && strcmp(v[0], "server") == 0)
		return server_take(s, v, n) == 0 ? 1 : -1;
	if (n == 5 && strcmp(v[0], "tmrq") == 0)
		return set_take(s, v) == 0 ? 1 : -1;
	if (n == 3 && strcmp(v[0], "service") == 0)
		return service_take(s, v) == 0 ? 1 : -1;
	return -1;
}

int
state_read(const char *path, struct state *out)
{
	char *line = NULL, *v[3];
	size_t size = 0;
	int rc = -1;
	FILE *f;

	memset(out, 0, sizeof *out);
	if ((f = fopen(path, "re")) == NULL)
		return -1;
	if (getline(&line, &size, f) > 0 && fields(line, v, 3) == 3 && strcmp(v[0], "atmiq-bbl") == 0 &&
	    (strcmp(v[1], "1") == 0 || strcmp(v[1], "2") == 0) && strcmp(v[2], proc_boot_id()) == 0)
		for (rc = 1; rc == 1;)
			rc = getline(&line, &size, f) > 0 ? line_take(out, line) : -1;
	free(line);
	fclose(f);
	if (rc != 0)
		state_free(out);
	return rc;
}

bool
state_server_lives(const struct state_server *s)
{
	return !s->tms && proc_is(s->pid, s->start_time);
}

bool
state_set_lives(const struct state_set *s)
{
	return proc_is(s->pid, s->start_time);
}

void
state_free(struct state *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->servers[i].offers);
	free(s->servers);
	free(s->sets);
	memset(s, 0, sizeof *s);
}
