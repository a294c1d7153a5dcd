/*
 * typesw - which buffer types there are.
 */
#ifndef TYPESW_H
#define TYPESW_H

#include <stdbool.h>

#include "tmtypes.h"

/* type, subtype: as far as 8 and 16 characters go.  NULL: no such type. */
const struct tmtype_sw_t *typesw_find(const char *type, const char *subtype);
/* A wrong length is the caller's mistake, and not that of a function of the program's. */
bool typesw_is_systems(const struct tmtype_sw_t *t);

#endif
