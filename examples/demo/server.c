/*
 * server - the service ORDERS: answers an order in upper case, and fails for one that begins with "bad".
 */
#include <ctype.h>
#include <string.h>

#include "atmi.h"
#include "userlog.h"

void
ORDERS(TPSVCINFO *msg)
{
	char *p;

	if (strncmp(msg->data, "bad", 3) == 0) {
		userlog("ORDERS: refused \"%s\"", msg->data);
		tpreturn(TPFAIL, 1, NULL, 0, 0);
	}
	for (p = msg->data; *p != '\0'; p++)
		*p = toupper((unsigned char)*p);
	tpreturn(TPSUCCESS, 0, msg->data, 0, 0);
}
