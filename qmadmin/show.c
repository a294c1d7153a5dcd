#include <stdlib.h>
#include <time.h>

#include "session.h"

static void
show_time(struct session *s, const char *label, const char *us)
{
	time_t t = (time_t)(strtoll(us, NULL, 10) / 1000000);
	char text[32];
	struct tm tm;

	if (t == 0 || localtime_r(&t, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return;
	say(s, "  %s: %s\n", label, text);
}

void
show_record(struct session *s, const struct label *table, const struct record *r)
{
	for (const struct label *l = table; l->key != NULL; l++) {
		const char *value = record_get(r, l->key);
		if (value == NULL || (l->verbose && !s->con.verbose) || (l->as == AS_OPTIONAL && *value == '\0'))
			continue;
		if (l->as == AS_TIME)
			show_time(s, l->label, value);
		else
			say(s, "%s%s: %s\n", l == table ? "" : "  ", l->label, value);
	}
}
