/*
 * UBBCONFIG and libconfig sources: never a crash; what is accepted prints as text that is accepted, and prints the same
 * again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ubb.h"

static char *
printed(const struct ubb *u)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	ubb_print(u, out);
	fclose(out);
	return text;
}

static struct ubb *
parsed(const void *text, size_t n)
{
	struct ubb *u = NULL;
	FILE *in = fmemopen((void *)text, n, "r"), *out = fopen("/dev/null", "w");

	ubb_parse(in, "fuzz", out, NULL, &u);
	fclose(in);
	fclose(out);
	return u;
}

/* libconfig loses some bytes of a text that it refuses. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libconfig"; }

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ubb *u, *again;
	char *once, *twice;

	if (size == 0 || (u = parsed(data, size)) == NULL)
		return 0;
	once = printed(u);
	again = parsed(once, strlen(once));
	assert(again != NULL);
	twice = printed(again);
	assert(strcmp(once, twice) == 0);
	free(once);
	free(twice);
	ubb_free(u);
	ubb_free(again);
	return 0;
}
