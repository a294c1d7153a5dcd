/*
 * link - endpoints: "ipc://PATH" and "tcp://HOST:PORT".
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "link_impl.h"

int
link_address_check(const char *endpoint)
{
	size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	errno = EINVAL;
	if (strncmp(endpoint, "tcp://", 6) == 0)
		return strlen(endpoint) < 256 ? 0 : -1;
	if (strncmp(endpoint, "ipc://", 6) != 0)
		return -1;
	errno = ENAMETOOLONG;
	return strlen(endpoint + 6) <= max ? 0 : -1;
}

struct addrinfo *
link_address_tcp(const char *where, bool passive)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) };
	struct addrinfo *list = NULL;
	const char *colon = strrchr(where, ':');
	char host[256];
	bool any;

	if (colon == NULL || colon == where || (size_t)(colon - where) >= sizeof host)
		return NULL;
	snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
	if (host[0] == '[' && host[strlen(host) - 1] == ']')
		snprintf(host, sizeof host, "%.*s", (int)(colon - where) - 2, where + 1);
	any = passive && strcmp(host, "*") == 0;
	return getaddrinfo(any ? NULL : host, colon + 1, &hints, &list) == 0 ? list : NULL;
}
