/*
 * Any text as CLOPT and as OPENINFO: split into words, read as the command line of TMQUEUE, or refused with a line that
 * says why; what is read is within its bounds.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "options.h"
#include "ubb.h"

static void
openinfo(const char *text)
{
	char device[64], space[16], *back;

	if (openinfo_split(text, device, sizeof device, space, sizeof space) != 0)
		return;
	assert(*device != '\0' && *space != '\0');
	if (strchr(space, ':') == NULL && asprintf(&back, "TUXEDO/QM:%s;%s", device, space) > 0) {
		char d[64], s[16];

		assert(openinfo_split(back, d, sizeof d, s, sizeof s) == 0);
		assert(strcmp(d, device) == 0 && strcmp(s, space) == 0);
		free(back);
	}
}

static void
clopt(const char *text)
{
	static struct options o;
	struct args a = { 0 }, words;
	char why[200] = "";

	if (args_split(text, &words) != 0 || args_add(&a, "TMQUEUE") != 0)
		abort();
	for (size_t i = 0; i < words.n; i++)
		if (args_add(&a, words.v[i]) != 0)
			abort();
	if (options_parse((int)a.n, a.v, &o, why, sizeof why) == 0) {
		assert(o.n_names >= 1 && o.n_names <= TMQUEUE_MAX_NAMES && o.timeout_s >= 0);
		for (size_t i = 0; i < o.n_names; i++)
			assert(memchr(o.name[i], '\0', sizeof o.name[i]) != NULL);
	} else
		assert(*why != '\0' && strlen(why) < sizeof why);
	args_free(&words);
	args_free(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static bool once;
	char *text = malloc(n + 1);

	if (text == NULL)
		return 0;
	if (!once)
		setenv("ULOGPFX", "/nonexistent/ULOG", 0);
	once = true;
	memcpy(text, p, n);
	text[n] = '\0';
	openinfo(text);
	clopt(text);
	free(text);
	return 0;
}
