/*
 * server - the service STRING: gives its text back in upper case.
 *
 * Written in the C of the time when such servers were young, and compiled as it is.
 */
#include <stdio.h>
#include <ctype.h>
#include "atmi.h"

STRING(msg)
TPSVCINFO *msg;
{
	char *p;

	for (p = msg->data; *p; p++)
		*p = toupper(*p);
	tpreturn(TPSUCCESS, 0L, msg->data, 0L, 0L);
}
