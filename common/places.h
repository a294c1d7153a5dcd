/*
 * places - how many processes have a queue space open at a time: its servers (TMQUEUE, also one that stands by, and TMQFORWARD) and
 * the qmadmin in which it is open.
 *
 * A process holds its place by a lock in the file PROCESSES of the space's directory.  The lock goes with the process, however that
 * ends, and is passed on by no exec(), so nothing is ever left over and nobody needs to count.
 *
 * Servers come first: they are refused when the servers alone are as many as the limit, qmadmin when both together are.  So who looks
 * at a space never keeps its server from being started again.
 */
#ifndef PLACES_H
#define PLACES_H

enum places_kind { PLACES_SERVER, PLACES_ADMIN };
/*
 * *fd: the place, to be left by closing it; -1 where there is nothing to count in (no such device or space, and whoever opens that will
 * say so).  0, or -1 when all are taken: *why has the line, malloc'ed.
 */
int places_take(const char *device, const char *space, enum places_kind kind, int *fd, char **why);
/* The limit from now on; who has a place keeps it.  dir: of the space. */
void places_limit(const char *dir, long limit);
/* How many have one; -1: cannot be known. */
long places_in_use(const char *dir);

#endif
