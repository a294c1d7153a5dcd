#include "sanity.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "slots.h"
#include "supervisor.h"
#include "ulog.h"

#define SECOND INT64_C(1000000)
#define LEAST_US (3 * SECOND)	/* a server speaks once a second, and machines are busy */
#define AWAY_US (3 * SECOND)	/* longer between two looks: it was BBL that did not run, and heard nobody */

void
sanity_heard(struct server *s)
{
	if (s->hung)
		ulog("CMDTUX_CAT:1742: INFO: server %s/%ld (%s), process %ld, shows life again; its services are offered", s->group,
		    s->srvid, s->program, (long)s->pid);
	s->hung = s->hang_told = false;
	s->suspect_us = 0;
	s->heard_us = clock_mono_us();
}

/* --- what is to be seen of a process --- */

struct sight { char state; long tracer; };	/* state as in ps(1), ?: it is gone; tracer: 0 or the debugger's pid */

static struct sight
look_at(pid_t pid)
{
	struct sight seen = { .state = '?' };
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	if ((f = fopen(path, "re")) == NULL)
		return seen;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "State:", 6) == 0)
			seen.state = line[6 + strspn(line + 6, " \t")];
		else if (strncmp(line, "TracerPid:", 10) == 0)
			seen.tracer = strtol(line + 10, NULL, 10);
	fclose(f);
	return seen;
}

/* By its descriptor, which is no other process's ever. */
static void
end_by_force(struct server *s, const char *why)
{
	snprintf(s->doom, sizeof s->doom, "%s", why);
	if (syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
		ulog("CMDTUX_CAT:1755: ERROR: server %s/%ld (%s), process %ld, cannot be killed: %s", s->group, s->srvid, s->program,
		    (long)s->pid, strerror(errno));
}

/* --- SANITYSCAN --- */

static int64_t
patience_us(const struct bbl *b)
{
	int64_t us = (int64_t)b->app.ubb->res.sanityscan * b->app.ubb->res.scanunit_ms * 1000;

	return us > LEAST_US ? us : LEAST_US;
}

static bool	/* Its agent must be heard by now.  A first start is tmboot's, and what ends is tmshutdown's. */
should_speak(const struct server *s)
{
	if (server_is_tms(s) || s->pidfd < 0)
		return false;
	return s->state == SERVER_READY || (s->state == SERVER_STARTING && (s->generation > 1 || s->was_ready));
}

static void
hangs(struct bbl *b, struct server *s, long quiet_s)
{
	struct sight seen = look_at(s->pid);
	char why[96];

	if (s->hung || (seen.tracer != 0 && s->hang_told))
		return;
	if (seen.tracer != 0) {
		s->hang_told = true;
		ulog("CMDTUX_CAT:1743: WARN: server %s/%ld (%s), process %ld, has shown no life for %ld s (state %c); it is being traced "
		    "by process %ld and left alone", s->group, s->srvid, s->program, (long)s->pid, quiet_s, seen.state, seen.tracer);
		return;
	}
	s->hung = true;
	if (!s->conf->restart) {
		ulog("CMDTUX_CAT:1741: ERROR: server %s/%ld (%s), process %ld, has shown no life for %ld s (state %c); RESTART=N: its "
		    "services are not offered until it does", s->group, s->srvid, s->program, (long)s->pid, quiet_s, seen.state);
		supervisor_save(b);
		return;
	}
	ulog("CMDTUX_CAT:1740: ERROR: server %s/%ld (%s), process %ld, has shown no life for %ld s (state %c); killed", s->group,
	    s->srvid, s->program, (long)s->pid, quiet_s, seen.state);
	snprintf(why, sizeof why, "showed no life for %ld s and was killed", quiet_s);
	end_by_force(s, why);
}

/* Before the verdict it is asked once more. */
static void
server_check(struct bbl *b, struct server *s, int64_t now)
{
	int64_t since = s->heard_us > s->since_us ? s->heard_us : s->since_us;

	if (now - since < patience_us(b))
		return;
	if (s->suspect_us == 0) {
		s->suspect_us = now;
		look_poke(b, s);
	} else if (now - s->suspect_us >= SECOND / 2) {
		hangs(b, s, (long)((now - since) / SECOND));
	}
}

/* BBL was stopped, or its machine was: what servers said meanwhile has not been read yet. */
static void
forgive_all(struct bbl *b, int64_t now)
{
	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (!b->reg.servers[i]->hung) {
			b->reg.servers[i]->heard_us = now;
			b->reg.servers[i]->suspect_us = 0;
		}
}

/* --- SVCTIMEOUT --- */

static bool
is_limited(const struct ubb *u)
{
	for (size_t i = 0; i < u->n_services; i++)
		if (u->services[i].svctimeout > 0)
			return true;
	return false;
}

static struct server *
server_of_slot(struct bbl *b, const struct slots_entry *e)
{
	for (size_t i = 0; i < b->reg.n_servers; i++) {
		struct server *s = b->reg.servers[i];

		if (s->pid == e->pid && s->start_time == e->process_start && s->pidfd >= 0 && !server_is_tms(s))
			return s;
	}
	return NULL;
}

static const struct slots_mark *	/* the request that is longest over its time; NULL: none is */
overdue(const struct slots_entry *e, int64_t now)
{
	const struct slots_mark *worst = NULL;

	for (unsigned i = 0; i < SLOTS_THREADS; i++) {
		const struct slots_mark *m = &e->mark[i];

		if (m->key != 0 && m->limit_us > 0 && now > m->limit_us && (worst == NULL || m->limit_us < worst->limit_us))
			worst = m;
	}
	return worst;
}

static void
service_is_late(struct server *s, const struct slots_mark *m, int64_t now)
{
	long limit_s = (long)((m->limit_us - m->since_us + SECOND / 2) / SECOND), since_s = (long)((now - m->since_us) / SECOND);
	struct sight seen = look_at(s->pid);
	char why[96];

	if (s->doom[0] != '\0' || (seen.tracer != 0 && s->late_told))
		return;
	s->late_told = true;
	ulog("CMDTUX_CAT:1750: ERROR: service %s of server %s/%ld (%s), process %ld, has run for %ld s, SVCTIMEOUT is %ld s; %s",
	    s->current[0] != '\0' ? s->current : "(not known)", s->group, s->srvid, s->program, (long)s->pid, since_s, limit_s,
	    seen.tracer != 0 ? "it is being traced and left alone" : "killed");
	if (seen.tracer != 0)
		return;
	snprintf(why, sizeof why, "ran a service for more than %ld s (SVCTIMEOUT) and was killed", limit_s);
	end_by_force(s, why);
}

static void
services_check(struct bbl *b, int64_t now)
{
	struct slots_entry *e;

	if (b->slots == NULL || !is_limited(b->app.ubb) || (e = malloc(sizeof *e)) == NULL)
		return;
	for (unsigned i = 0; i < slots_count(b->slots); i++) {
		const struct slots_mark *m;
		struct server *s;

		if (slots_read(b->slots, i, e) && !e->dead && (m = overdue(e, now)) != NULL && (s = server_of_slot(b, e)) != NULL)
			service_is_late(s, m, now);
	}
	free(e);
}

void
sanity_tick(struct bbl *b)
{
	int64_t now = clock_mono_us();

	if (b->sane_us != 0 && now - b->sane_us > AWAY_US)
		forgive_all(b, now);
	b->sane_us = now;
	for (size_t i = 0; i < b->reg.n_servers; i++)
		if (should_speak(b->reg.servers[i]))
			server_check(b, b->reg.servers[i], now);
	services_check(b, now);
}
