/*
 * The service behind bench_forward's queues: it notes when it began, and gives its request back.  Built by buildserver.
 */
#include <string.h>
#include <time.h>

#include <atmi.h>

void
ECHO(TPSVCINFO *request)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (request->len >= (long)sizeof now)
		memcpy(request->data, &now, sizeof now);
	tpreturn(TPSUCCESS, 0, request->data, request->len, 0);
}
