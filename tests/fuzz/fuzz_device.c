/*
 * Any bytes as the text of a device file: refused with a line that says why, or read, and then written and read again
 * without a difference.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device_impl.h"

static void
comes_back(const struct device *d)
{
	static struct device again;
	char *text = device_text_format(d), *why = NULL;
	int rc;

	if (text == NULL)
		return;
	rc = device_text_parse(text, strlen(text), "text", &again, &why);
	assert(rc == DEVE_OK && why == NULL);
	assert(again.n_entries == d->n_entries && again.n_tables == d->n_tables && strcmp(again.uuid, d->uuid) == 0);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct device d;
	static struct device_free piece[DEVICE_MAX_TABLES + 1];
	char *why = NULL, *text = malloc(n + 1);

	if (text == NULL)
		return 0;
	memcpy(text, p, n);
	text[n] = '\0';
	if (device_text_parse(text, n, "text", &d, &why) == DEVE_OK) {
		assert(d.n_entries <= DEVICE_MAX_ENTRIES && d.n_tables <= DEVICE_MAX_TABLES);
		for (int i = 0; i < d.n_entries; i++)
			assert(device_free_map(&d, i, piece, DEVICE_MAX_TABLES + 1) <= DEVICE_MAX_TABLES + 1);
		comes_back(&d);
	} else
		assert(why != NULL && *why != '\0');
	free(why);
	free(text);
	return 0;
}
