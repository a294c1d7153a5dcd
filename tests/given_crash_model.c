/*
 * given_crash_model - a client that has a queue to itself and knows what must be on it.
 *
 * It sends with all that TPQCTL can say, takes by any selector, looks, waits, rolls back; given_model says what may come.
 * Its log: violations (!), what may or must be on the error queue at the end (X seq may|must), and a line of sums (S).
 */
#include "given_crash_space.h"
#include "given_impl.h"
#include "given_model.h"

#include <string.h>

#define TX_S 3
#define BIG (300 * 1024)
#define LIVELY 60		/* messages, beyond which more is taken than sent */

static struct model model;
static const struct crash_queue *kind;
static struct control *control;
static unsigned seed;
static int me, next_seq;
static uint32_t owners_seen, deaths_seen;
static char *buffer;
static bool in_tran;	/* messages are in hand: none is forgotten */
static struct { long sent, unknown_sent, taken, rolled, peeked, waited, selected, big, held_back; } sum;

static unsigned
dice(unsigned sides)
{
	return (unsigned)rand_r(&seed) % sides;
}

/* --- calls, and what they tell --- */

struct at { uint32_t epoch; int64_t t0, t1; };

static struct at
begin(void)
{
	uint32_t owners = control->owners;
	struct at a = { .epoch = control->epoch };

	if (control->deaths != deaths_seen) {
		deaths_seen = control->deaths;
		model.fog_until = 0;
	}
	if (owners != owners_seen) {
		owners_seen = owners;
		model_owner_died(&model);
	}
	a.t0 = model_now();
	if (!in_tran)
		model_forget_expired(&model, a.t0);
	return a;
}

static bool	/* nobody was killed, and nothing failed, from its beginning to now */
calm(struct at *a)
{
	a->t1 = model_now();
	if (a->epoch % 2 != 0 || control->epoch != a->epoch)
		return false;
	return true;
}

enum outcome { DONE, NOT_DONE, UNKNOWN };

/*
 * What a failed call leaves open.  The queue manager's own refusals are clear; a system error is one of a disk that fails, and
 * then nobody knows.
 */
static enum outcome
outcome(int rc, const TPQCTL *ctl)
{
	if (rc != -1)
		return DONE;
	if (tperrno == TPENOENT || tperrno == TPEABORT)
		return NOT_DONE;
	if (tperrno == TPEDIAGNOSTIC && ctl != NULL && ctl->diagnostic != QMESYSTEM && ctl->diagnostic != QMEOS)
		return NOT_DONE;
	return UNKNOWN;
}

/* --- bodies: who, which, and as many letters as the number says --- */

static size_t
body_size(int seq)
{
	unsigned h = (unsigned)seq * 2654435761u + (unsigned)me;

	return seq % 211 == 7 ? BIG + h % 1000 : 24 + h % 1000;
}

static long
body_write(int seq)
{
	size_t n = body_size(seq), at = (size_t)snprintf(buffer, n + 1, "P%d S%d ", me, seq);

	memset(buffer + at, 'a' + seq % 26, n - at);
	buffer[n] = '\0';
	sum.big += n > 2000;
	return (long)n + 1;
}

static int	/* the number of a body; -1, and a violation, when it is none of ours */
body_read(long len)
{
	int producer, seq, at = 0;

	if (sscanf(buffer, "P%d S%d %n", &producer, &seq, &at) != 2 || producer != me || len != (long)body_size(seq) + 1 ||
	    (size_t)at + strspn(buffer + at, (char[]){ (char)('a' + seq % 26), '\0' }) != body_size(seq)) {
		fprintf(model.out, "! %s: a body of %ld bytes is not one of ours: %.60s\n", model.queue, len, buffer);
		model.phantom++;
		return -1;
	}
	return seq;
}

/* --- sending --- */

static struct model_msg *	/* a message that surely is there now, to be named; NULL */
somebody(bool with_msgid)
{
	int64_t now = model_now();
	int from = (int)dice(MODEL_MAX);

	for (int i = 0; i < MODEL_MAX; i++) {
		struct model_msg *m = &model.m[(from + i) % MODEL_MAX];
		if (model_is_there(&model, m, now, now + 500000) && m->placed && m->has_msgid >= with_msgid)
			return m;
	}
	return NULL;
}

static void
choose(TPQCTL *c, struct model_msg *m, enum model_place *place, struct model_msg **before)
{
	int64_t now_s = model_now() / 1000000;

	c->flags |= TPQCORRID;
	snprintf(c->corrid, sizeof c->corrid, "c%d.%d", me, m->seq);
	memcpy(m->corrid, c->corrid, sizeof m->corrid);
	if (dice(3) != 0) {
		c->flags |= TPQPRIORITY;
		c->priority = m->priority = 1 + (int)dice(100);
	}
	switch (dice(8)) {
	case 0: c->flags |= TPQTIME_ABS; c->deq_time = now_s + 1 + dice(2); break;
	case 1: c->flags |= TPQTIME_REL; c->deq_time = 1 + dice(2); break;
	}
	switch (dice(kind->expires ? 3 : 12)) {
	case 0: c->flags |= TPQEXPTIME_ABS; c->exp_time = now_s + 2 + dice(8); break;
	case 1: c->flags |= TPQEXPTIME_REL; c->exp_time = 2 + dice(8); break;
	}
	if (dice(5) == 0) {
		c->flags |= TPQDELIVERYQOS;
		c->delivery_qos = TPQQOSNONPERSISTENT;
		m->volatile_ = true;
	}
	if (!kind->out_of_order)
		return;
	if (dice(6) == 0) {
		c->flags |= TPQTOP;
		*place = PLACE_TOP;
	} else if (dice(6) == 0 && (*before = somebody(true)) != NULL) {
		c->flags |= TPQBEFOREMSGID;
		memcpy(c->msgid, (*before)->msgid, TMMSGIDLEN);
		*place = PLACE_BEFORE;
	}
}

/* Within a transaction or without.  NULL: surely nothing is sent. */
static struct model_msg *
send_one(enum outcome *how)
{
	TPQCTL c = { .flags = TPQMSGID };
	enum model_place place = PLACE_USUAL;
	struct model_msg *before = NULL, *m = model_add(&model, next_seq);
	bool volatile_unsure = false;
	struct at a;

	if (m == NULL)
		return NULL;
	next_seq++;
	choose(&c, m, &place, &before);
	body_write(m->seq);
	a = begin();
	if (before != NULL && !before->used) {		/* it expired just now */
		model_gone(m);
		return NULL;
	}
	*how = outcome(tpenqueue("QSPACE", (char *)model.queue, &c, buffer, 0, 0), &c);
	if (!calm(&a) && m->volatile_)
		volatile_unsure = true;
	if (*how == NOT_DONE) {
		model_gone(m);
		return NULL;
	}
	m->placed = *how == DONE;
	m->sure = *how == DONE && !volatile_unsure;
	m->come_lo = c.flags & TPQTIME_ABS ? c.deq_time * 1000000 : a.t0 + (c.flags & TPQTIME_REL ? c.deq_time * 1000000 : 0);
	m->come_hi = c.flags & TPQTIME_ABS ? c.deq_time * 1000000 : a.t1 + (c.flags & TPQTIME_REL ? c.deq_time * 1000000 : 0);
	if (c.flags & TPQEXPTIME_ABS)
		m->end_lo = m->end_hi = c.exp_time * 1000000;
	else if (c.flags & TPQEXPTIME_REL) {
		m->end_lo = a.t0 + c.exp_time * 1000000;
		m->end_hi = a.t1 + c.exp_time * 1000000;
	}
	if (*how == UNKNOWN && m->come_hi < m->end_hi)
		m->end_hi += 20 * 1000000;		/* nobody knows when it arrived */
	model_rank(&model, m, place, before);
	if ((m->has_msgid = *how == DONE))
		memcpy(m->msgid, c.msgid, TMMSGIDLEN);
	return m;
}

static void
put_one(void)
{
	enum outcome how;
	struct model_msg *m = send_one(&how);

	sum.sent += m != NULL && how == DONE;
	sum.unknown_sent += m != NULL && how == UNKNOWN;
}

/* Several in one transaction: all of them, or none. */
static void
put_several(void)
{
	struct model_msg *m[5];
	enum outcome how = DONE;
	struct at a;
	int n = 0, want = 2 + (int)dice(4);

	if (tpbegin(TX_S, 0) == -1)
		return;
	in_tran = true;
	for (int i = 0; i < want && how == DONE; i++)
		if ((m[n] = send_one(&how)) != NULL)
			m[n++]->back_hi = INT64_MAX;	/* not there before the commit */
	a = begin();
	if (how != DONE || n == 0 || dice(4) == 0) {
		tpabort(0);
		how = NOT_DONE;
	} else
		how = outcome(tpcommit(0), NULL);
	calm(&a);
	in_tran = false;
	for (int i = 0; i < n; i++) {
		m[i]->back_hi = 0;
		if (how == NOT_DONE)
			model_gone(m[i]);
		else {
			m[i]->sure &= how == DONE;
			m[i]->placed &= how == DONE;
			m[i]->come_hi = m[i]->come_hi > a.t1 ? m[i]->come_hi : a.t1;	/* not before the commit */
		}
		if (m[i]->volatile_ && (a.epoch % 2 != 0 || control->epoch != a.epoch))
			m[i]->sure = false;
	}
	sum.sent += how == DONE ? n : 0;
	sum.unknown_sent += how == UNKNOWN ? n : 0;
}

/* --- taking --- */

struct wanted { TPQCTL c; struct model_msg *m; bool first; };

static struct wanted
want(void)
{
	struct wanted w = { .c.flags = TPQMSGID | TPQCORRID, .first = true };
	bool by_msgid = dice(2) == 0;

	if (dice(4) != 0 || (w.m = somebody(by_msgid)) == NULL)
		return w;
	w.first = false;
	w.c.flags |= by_msgid ? TPQGETBYMSGID : TPQGETBYCORRID;
	memcpy(w.c.msgid, w.m->msgid, TMMSGIDLEN);
	memcpy(w.c.corrid, w.m->corrid, TMCORRIDLEN);
	return w;
}

/* One dequeue or peek.  DONE: *m is what came (NULL: nothing was there). */
static enum outcome
get(struct wanted *w, struct at *a, struct model_msg **m)
{
	enum outcome how;
	long len = 0;
	int seq;

	*m = NULL;
	*a = begin();
	if (w->m != NULL && !w->m->used)
		return NOT_DONE;
	sum.selected += w->m != NULL;
	how = outcome(tpdequeue("QSPACE", (char *)model.queue, &w->c, &buffer, &len, 0), &w->c);
	calm(a);
	if (how == NOT_DONE && tperrno == TPEDIAGNOSTIC && w->c.diagnostic == QMENOMSG) {
		if (control->owners == owners_seen)
			model_nothing(&model, w->m, a->t0, a->t1);
		return DONE;
	}
	if (how != DONE)
		return how;
	if ((seq = body_read(len)) == -1)
		return NOT_DONE;
	if (w->m != NULL && seq != w->m->seq)
		fprintf(model.out, "! %s: message %d came, %d was asked for\n", model.queue, seq, w->m->seq), model.violations++;
	if (w->first && control->owners != owners_seen)
		w->first = false;	/* what is volatile may be gone by now */
	*m = model_came(&model, seq, a->t0, a->t1, w->first);
	if (*m != NULL && (w->c.flags & TPQMSGID)) {
		if ((*m)->has_msgid && memcmp((*m)->msgid, w->c.msgid, TMMSGIDLEN) != 0)
			fprintf(model.out, "! %s: message %d has another identifier\n", model.queue, seq), model.violations++;
		(*m)->has_msgid = true;
		memcpy((*m)->msgid, w->c.msgid, TMMSGIDLEN);
	}
	return DONE;
}

static void
peek_one(void)
{
	struct wanted w = want();
	struct model_msg *m;
	struct at a;

	w.c.flags |= TPQPEEK;
	if (get(&w, &a, &m) == DONE && m != NULL)
		sum.peeked++;
}

static struct model_msg *	/* a message that surely comes within a second and stays for some; NULL */
due_soon(void)
{
	int64_t now = model_now();

	for (int i = 0; i < MODEL_MAX; i++)
		if (model_is_there(&model, &model.m[i], now + 1000000, now + (TX_S + 1) * INT64_C(1000000)))
			return &model.m[i];
	return NULL;
}

/* Up to three messages in one transaction, which commits or rolls back. */
static void
take_some(long wait)
{
	struct model_msg *taken[3], *m, *expected = NULL;
	int n = 0, want_n = 1 + (int)dice(3);
	enum outcome how = DONE;
	int64_t longest = (TX_S + 1) * INT64_C(1000000);
	struct at a = { 0 };
	uint32_t epoch = control->epoch;
	int64_t began;

	if (tpbegin(TX_S, 0) == -1) {
		nap_ms(5);
		return;
	}
	in_tran = true;
	began = model_now();
	while (n < want_n && how == DONE) {
		struct wanted w = want();
		w.c.flags |= wait;
		if (wait != 0 && n == 0)
			expected = due_soon();
		if ((how = get(&w, &a, &m)) != DONE || m == NULL) {
			if (wait != 0 && n == 0 && how == UNKNOWN && tperrno == TPETIME && expected != NULL && expected->sure &&
			    a.epoch % 2 == 0 && control->epoch == a.epoch) {
				fprintf(model.out, "! %s: message %d did not wake who waited for it\n", model.queue, expected->seq);
				model.late++;
			}
			break;
		}
		wait = 0;
		sum.waited += w.c.flags & TPQWAIT ? 1 : 0;
		m->delivered++;
		m->back_lo = m->back_hi = INT64_MAX;	/* held */
		taken[n++] = m;
	}
	if (how == UNKNOWN)
		model_fog(&model, model_now() + longest + model.delay_s * INT64_C(1000000));
	a = begin();
	if (how == UNKNOWN || dice(kind->retries < 100 ? 2 : 5) == 0) {
		tpabort(0);
		how = NOT_DONE;
	} else
		how = outcome(tpcommit(0), NULL);
	calm(&a);
	in_tran = false;
	for (int i = 0; i < n; i++)
		if (how == DONE) {
			model_gone(taken[i]);
			sum.taken++;
		} else if (how == NOT_DONE) {
			model_rolled(&model, taken[i], began, a.t1, epoch % 2 == 0 && control->epoch == epoch, longest);
			sum.rolled++;
		} else {
			model_rolled(&model, taken[i], a.t0, a.t1, false, longest);
			taken[i]->sure = false;	/* it was taken, or it comes back */
		}
}

/* --- the end: everything that must be there comes, in its order --- */

static void
drain(void)
{
	int64_t until = model_now() + 40 * INT64_C(1000000);

	while (model_now() < until) {
		struct wanted w = { .c.flags = TPQMSGID, .first = true };
		struct model_msg *m;
		enum outcome how;
		struct at a;
		bool more = false;

		if (tpbegin(TX_S, 0) == -1)
			continue;
		how = get(&w, &a, &m);
		if (m != NULL)
			model_gone(m);
		if (tpcommit(0) == -1)
			fprintf(model.out, "! %s: a commit in the last drain failed: %s\n", model.queue, tpstrerror(tperrno));
		if (how == DONE && m != NULL) {
			sum.held_back++;
			continue;
		}
		for (int i = 0; i < MODEL_MAX; i++)	/* not available yet */
			more |= model.m[i].used && (model.m[i].come_hi > a.t0 || model.m[i].back_hi > a.t0) && model.m[i].back_hi != INT64_MAX;
		if (!more && a.t0 > model.fog_until)
			break;
		nap_ms(50);
	}
	for (int i = 0; i < MODEL_MAX; i++) {
		struct model_msg *m = &model.m[i];
		if (m->used && m->rolled_hi > model.retries)
			fprintf(model.out, "X %d %s\n", m->seq,
			    m->rolled_lo > model.retries && !m->volatile_ && m->end_lo == 0 ? "must" : "may");
		else if (m->used && m->sure && m->end_lo == 0)
			fprintf(model.out, "! %s: message %d is lost\n", model.queue, m->seq), model.lost++;
	}
}

int
crash_model_client(int number, const char *log, const char *control_file)
{
	me = number;
	kind = &crash_queues[number];
	model = (struct model){ .queue = kind->name, .order = kind->order, .retries = kind->retries, .delay_s = kind->delay_s };
	seed = (unsigned)getpid() * 31u + (unsigned)me;
	if ((model.out = fopen(log, "w")) == NULL || (control = control_open(control_file)) == NULL || tpinit(NULL) == -1)
		return 1;
	setvbuf(model.out, NULL, _IOLBF, 0);
	owners_seen = control->owners;
	buffer = tpalloc("STRING", NULL, BIG + 2048);
	while (!control->stop) {
		unsigned d = dice(100), before = control->ops[me];
		bool full = model_count(&model) > LIVELY;

		tperrno = 0;
		if (d < (full ? 5u : 30u))
			put_one();
		else if (d < (full ? 7u : 38u))
			put_several();
		else if (d < 50)
			peek_one();
		else if (d < 54 && due_soon() != NULL)
			take_some(TPQWAIT);
		else
			take_some(0);
		if (tperrno == 0 || tperrno == TPEDIAGNOSTIC)
			control->ops[me] = before + 1;	/* a queue manager answered: who kills waits for that */
		else
			nap_ms(5);
	}
	drain();
	fprintf(model.out, "S sent %ld unknown %ld taken %ld rolled %ld peeked %ld waited %ld selected %ld big %ld left %ld "
	    "lost %d doubled %d disordered %d early %d late %d expired %d phantom %d often %d\n", sum.sent, sum.unknown_sent,
	    sum.taken, sum.rolled, sum.peeked, sum.waited, sum.selected, sum.big, sum.held_back, model.lost, model.doubled,
	    model.disordered, model.early, model.late, model.expired, model.phantom, model.often);
	fclose(model.out);
	tpterm();
	return 0;
}
