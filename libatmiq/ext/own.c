/*
 * TMQUEUE.o, TMQFORWARD.o - what buildserver links when an administrator builds one of these anew, with buffer types of his
 * own.  It says which one it is; libatmiq finds that and runs the program, which is in a library beside libatmiq (svrown.c).
 *
 * Compiled once for each, with PROGRAM its name.
 */
#include <stddef.h>

#include "atmi.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

extern const char _tmserverprogram[] __attribute__((visibility("default")));
const char _tmserverprogram[] = TEXT(PROGRAM);

/* The function that -s names.  Queue operations do not come this way. */
void PROGRAM(TPSVCINFO *request);
void
PROGRAM(TPSVCINFO *request)
{
	(void)request;
	tpreturn(TPFAIL, 0, NULL, 0, 0);
}
