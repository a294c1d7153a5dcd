/*
 * svrdefault - what a server does at its start and end when its programmer wrote nothing.
 */
#include "svr.h"
#include "ulog.h"

int
tpsvrthrinit(int argc, char **argv)
{
	(void)argc, (void)argv;
	return tx_open() == TX_OK ? 0 : -1;
}

void
tpsvrthrdone(void)
{
	tx_close();
}

int
tpsvrinit(int argc, char **argv)
{
	ulog("LIBTUX_CAT:522: INFO: Default tpsvrinit() function used");
	return svr.threads != NULL ? 0 : tpsvrthrinit(argc, argv);	/* each thread that serves calls its own */
}

void
tpsvrdone(void)
{
	if (svr.threads == NULL)
		tpsvrthrdone();
}
