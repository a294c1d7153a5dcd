/*
 * sanity - finds servers that hang: a process that shows no life (SANITYSCAN), a service that takes too long (SVCTIMEOUT).
 *
 * A sign of life is anything that a server's agent says; it has a thread of its own and speaks once a second, so a server that
 * is busy, however long, is not one that hangs.
 */
#ifndef SANITY_H
#define SANITY_H

#include "bbl.h"

void sanity_heard(struct server *s);		/* its process spoke */
void sanity_tick(struct bbl *b);		/* about once a second */

#endif
