#include <string.h>

#include "ubb.h"

static const char prefix[] = "TUXEDO/QM";

int
openinfo_split(const char *openinfo, char *device, size_t device_size, char *space, size_t space_size)
{
	const char *start, *colon, *semicolon, *last;
	size_t n;

	openinfo += strspn(openinfo, " \t");
	start = openinfo + sizeof prefix - 1;
	if (strncmp(openinfo, prefix, sizeof prefix - 1) != 0 || (*start != ':' && *start != ';'))
		return -1;
	start++;
	/* A device may hold colons itself where ; is the separator: C:\app\QUE;SPACE */
	colon = strrchr(start, ':');
	semicolon = strrchr(start, ';');
	last = semicolon != NULL ? semicolon : colon;
	if (last == NULL || last == start || last[1] == '\0')
		return -1;
	n = strlen(last + 1);
	while (n > 0 && strchr(" \t", last[n]) != NULL)
		n--;
	if (n == 0 || n >= space_size || (size_t)(last - start) >= device_size)
		return -1;
	memcpy(device, start, (size_t)(last - start));
	device[last - start] = '\0';
	memcpy(space, last + 1, n);
	space[n] = '\0';
	return 0;
}
