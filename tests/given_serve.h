/*
 * given_serve - services that fail, die, hang and go away behind several TMQFORWARD, and what must be true of each request.
 *
 * Clients are this program, run again; each has a reply queue of its own and a log of a line for each call:
 *
 *     E seq queue ok|no|unknown    a request: acknowledged, surely not there, outcome not known.  Queue: W WORK, J JOBS
 *     R producer seq ok|no|unknown an answer that was taken, and its commit
 *
 * A request says in its text what becomes of it (serve_service in given_serve_service.h).  The service enqueues one message on SIDE, of
 * QSPACE or of QSPACE2, in the transaction of the request, and notes each attempt in a file.
 *
 * The oracle, for each request that was acknowledged:
 *     exactly one of     its answer on the reply queue, once; an answer of failure on the failure queue; itself on the error queue,
 *                        with its queue, the reason, and as many failed deliveries as its queue allows
 *     SIDE               has its message exactly once if it was answered, and none if not
 *     attempts           at most retries + 1, and one more for each death of the queue manager between the first (or the time of a
 *                        transaction before it) and the last: a queue manager that dies has not counted what was under way
 * A request whose outcome is unknown may be nowhere; one that was refused is nowhere.
 */
#ifndef GIVEN_SERVE_H
#define GIVEN_SERVE_H

#include "given.h"

bool serve_is_client(int argc, char **argv);
int serve_client(char **argv);
/* At least `kills` of TMQUEUE, TMQFORWARD, service and BBL by us, beside those that requests ask for. */
void serve_run(int kills);
int serve_kills(int otherwise);	/* CRASH_KILLS of the environment */

#endif
