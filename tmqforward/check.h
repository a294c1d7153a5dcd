/*
 * check - whether TUXCONFIG lets a TMQFORWARD be what it is.
 */
#ifndef TMQFORWARD_CHECK_H
#define TMQFORWARD_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* CLOPT, before its --, names services with -s. */
bool check_names_services(int argc, char **argv);
/*
 * The group has queues: TMSNAME=TMS_QM and an OPENINFO of the right form; the server shares no request queue (MSSQ) and
 * has no reply queue.  0, or -1 with a line in `why` that names what was found and what is wanted.
 */
int check_place(const char *tuxconfig, const char *group, long srvid, char *why, size_t why_size);

#endif
