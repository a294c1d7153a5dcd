/*
 * Any bytes as UBBCONFIG or libconfig text.  What is accepted must survive printing: the text that tmunloadcf would write
 * loads again, without an error.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ubb.h"

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static FILE *errors;
	struct ubb *u = NULL, *again = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *in, *out;
	int warnings;

	if (n == 0 || (in = fmemopen((void *)(uintptr_t)p, n, "r")) == NULL)
		return 0;
	if (errors == NULL)
		errors = fopen("/dev/null", "w");
	if (ubb_parse(in, "ubb", errors, &warnings, &u) == 0) {
		out = open_memstream(&text, &len);
		ubb_print(u, out);
		fclose(out);
		fclose(in);
		in = fmemopen(text, len, "r");
		assert(ubb_parse(in, "printed", errors, &warnings, &again) == 0);
		ubb_free(again);
		ubb_free(u);
	}
	fclose(in);
	free(text);
	return 0;
}
