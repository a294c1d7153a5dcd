/* printtrans: a block for each transaction, that begins as its lines in the user log do. */
#include <string.h>

#include "layout.h"

static bool	/* Are its machine and its group among those that are shown? */
passes(const struct trans_part *p, size_t n, const struct layout_show *show)
{
	bool group = show->group == NULL, machine = show->lmid == NULL;

	for (size_t i = 0; i < n; i++) {
		group = group || strcmp(show->group, p[i].group) == 0;
		machine = machine || strcmp(show->lmid, p[i].lmid) == 0;
	}
	return group && machine;
}

static void
words_of(const struct trans_part *p, unsigned long w[3])
{
	uint8_t id[WIRE_GTRID_MAX], len = 0;

	(void)gtrid_from_hex(p->gtrid, id, &len);
	gtrid_words(id, len, w);
}

static int64_t	/* The latest deadline, or begin, that a part knows of; 0: none. */
latest(const struct trans_part *p, size_t n, bool deadline)
{
	int64_t us = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t v = deadline ? p[i].deadline_us : p[i].began_us;
		if (v > us)
			us = v;
	}
	return us;
}

static int64_t
seconds(int64_t us)
{
	return us > 0 ? (us + 999999) / 1000000 : 0;
}

static void
show_times(FILE *out, const struct trans_part *p, size_t n, int64_t now_us)
{
	int64_t began = latest(p, n, false), deadline = latest(p, n, true);

	if (deadline != 0 && began != 0)
		fprintf(out, ", Time out: %lld, Time left: %lld", (long long)seconds(deadline - began), (long long)seconds(deadline - now_us));
	if (began != 0)
		fprintf(out, ", Age: %lld", (long long)(now_us > began ? (now_us - began) / 1000000 : 0));
}

static void
show_groups(FILE *out, const struct trans_part *p, size_t n)
{
	const char *coordinator = trans_coordinator(p, n), *client = "";
	bool seen = *coordinator == '\0';

	for (size_t i = 0; i < n; i++) {
		if (*client == '\0')
			client = p[i].client;
		if (p[i].group[0] == '\0')
			continue;
		fprintf(out, "\tgroup: %s, status: %s%s\n", p[i].group, trans_part_status(&p[i]),
		    strcmp(p[i].group, coordinator) == 0 ? ", coordinator" : "");
		if (p[i].told[0] != '\0')
			fprintf(out, "\twaits for: %s\n", p[i].told);
		seen = seen || strcmp(p[i].group, coordinator) == 0;
	}
	if (!seen)		/* it does not run, or knows nothing of it: whose word is waited for all the same */
		fprintf(out, "\tcoordinator: %s\n", coordinator);
	if (*client != '\0')
		fprintf(out, "\tclient: %s\n", client);
	fprintf(out, "\tid: %s\n", p[0].gtrid);	/* queue managers log it */
}

void
layout_pt(FILE *out, const struct trans *t, const struct layout_show *show, int64_t now_us)
{
	size_t index = 0, shown = 0, n;

	for (size_t i = 0; i < t->n; i += n, index++) {
		const struct trans_part *p = &t->part[i];
		unsigned long w[3];
		size_t groups = 0;

		n = trans_run(t, i);
		if (!passes(p, n, show))
			continue;
		for (size_t k = 0; k < n; k++)
			groups += p[k].group[0] != '\0';
		shown++;
		words_of(p, w);
		fprintf(out, ">> gtrid=x%lx x%lx x%lx:%sIndex: %zu, Machine id: %s, Transaction status: %s%sGroup count: %zu", w[0], w[1],
		    w[2], show->verbose ? "\n\t" : " ", index, p[n - 1].lmid, trans_status(p, n), show->verbose ? "\n\t" : ", ", groups);
		if (show->verbose)
			show_times(out, p, n, now_us);
		fprintf(out, "\n");
		if (show->verbose)
			show_groups(out, p, n);
	}
	if (shown > 0)
		fprintf(out, "\n");
}
